//! The instructions in the system prompt besides the built-in ones: instruction files, output style, language.
//!
//! Rule: they are read when a turn begins and stay the same until the next one begins. Changes since the turn before are
//! reported to the user.

mod overview;
#[cfg(test)]
mod tests;

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex};

use tokio::task::JoinHandle;

use crate::conversation::Conversation;
use crate::core::environment::Environment;
use crate::core::thread::ThreadHandle;
use crate::core::{Core, lock};
use crate::extensions::SessionExtensions;
use crate::gate::Gatekeeper;
use kode_base::ids::{AgentId, TurnId};
use kode_base::mode::Mode;
use kode_base::paths::{AbsPath, Target};
use kode_base::task;
use kode_base::{blocking, regular, reminder};
use kode_config::in_force::EffectivePolicy;
use kode_config::memory::{InstructionFolders, Memory};
use kode_config::preferences::Preferences;
use kode_config::style::Style;
use kode_record::event::NoticeLevel;
use kode_text::workspace::real_paths::RealPaths;

use overview::FolderContents;

/// The longest text that commits and pull requests end with, in characters.
const MAX_ATTRIBUTION: usize = 1_000;

/// The heading of the instructions of a deeper folder.
const FOLDER_HEADING: &str = "Instructions of the project for the folder that was just read from:";

/// The largest file that names a branch, in bytes.
const MAX_HEAD: u64 = 4 << 10;

/// The longest name of a language, in characters.
const MAX_LOCALE: usize = 35;

/// The instructions in the system prompt besides the built-in ones.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Instructions {
    /// The instruction files.
    pub memory: Memory,
    /// The output style.
    pub style: Style,
    /// The language of the answers; `None` for that of the user's message.
    pub language: Option<String>,
    /// The language of the editor, unless it is English; for messages that do not show in which to answer.
    pub locale: Option<String>,
    /// The text at the end.
    pub appended: Option<String>,
    /// The branch of the repository when the session was started or resumed.
    pub branch: Option<String>,
    /// The content of the working directory when the session was started or resumed; empty where it is not shown.
    pub overview: String,
    /// Why another style is used than the chosen one.
    pub style_problem: Option<String>,
}

/// The files that the instructions of a turn are made from.
struct InstructionSources {
    memory: Memory,
    first: StartOverview,
}

/// The working directory when the session was started or resumed.
#[derive(Debug)]
struct StartOverview {
    branch: Option<String>,
    overview: String,
}

/// The policy and the mode that decide what the first look may show.
type OverviewPolicy = (Arc<EffectivePolicy>, Mode);

/// Reads the instructions of a session.
pub struct InstructionLoader {
    core: Arc<Core>,
    environment: Environment,
    gate: Arc<Gatekeeper>,
    extensions: Arc<SessionExtensions>,
    /// The instructions of the last turn.
    current: Mutex<Option<Arc<Instructions>>>,
    /// The first look, which begins with the session and which the first turn waits for.
    first_look: Mutex<Option<JoinHandle<(StartOverview, OverviewPolicy)>>>,
    given: Mutex<HashMap<Option<AgentId>, GivenFolders>>,
}

/// The deeper folders that were read for instructions in a turn, and those whose instructions the conversation was given
/// before. What a turn gave is recorded with its calls: see `Thread::instructed`.
#[derive(Debug)]
struct GivenFolders {
    turn: Option<TurnId>,
    /// As `Thread::rewrites` when they were read: a rewritten conversation may not contain them.
    rewrites: u64,
    folders: HashSet<AbsPath>,
}

/// The instructions of deeper folders.
#[derive(Debug)]
pub(crate) struct FolderInstructions {
    /// The text for the model.
    pub(crate) text: String,
    /// The folders.
    pub(crate) folders: Vec<AbsPath>,
}

impl InstructionLoader {
    pub(crate) fn new(
        core: &Arc<Core>,
        environment: &Environment,
        gate: &Arc<Gatekeeper>,
        extensions: &Arc<SessionExtensions>,
    ) -> Arc<Self> {
        Arc::new(Self {
            core: Arc::clone(core),
            environment: environment.clone(),
            gate: Arc::clone(gate),
            extensions: Arc::clone(extensions),
            current: Mutex::default(),
            first_look: Mutex::default(),
            given: Mutex::default(),
        })
    }

    /// The instructions of the last turn.
    #[must_use]
    pub fn current(&self) -> Arc<Instructions> {
        lock(&self.current).clone().unwrap_or_default()
    }

    /// The instructions of the last turn; before the first one those that it would have, which are not kept.
    pub(crate) async fn current_or_first(self: &Arc<Self>) -> Arc<Instructions> {
        let known = lock(&self.current).clone();
        match known {
            Some(known) => known,
            None => Arc::new(self.assemble(self.sources().await)),
        }
    }

    /// The name of the style that was chosen, for this session or in the settings of the last refresh.
    #[must_use]
    pub fn chosen_style(&self) -> Option<String> {
        let chosen = self.core.state().config.output_style.clone();
        chosen.or_else(|| self.gate.in_force().policy.preferences.output_style.clone())
    }

    /// Begins the first check the working directory.
    pub(crate) fn begin_first_look(self: &Arc<Self>) {
        let loader = Arc::clone(self);
        let look = task::spawn(async move { blocking(move || loader.look()).await });
        *lock(&self.first_look) = Some(look);
    }

    /// Reads the instructions of a turn, while `extensions` are refreshed, and reports their changes.
    pub(crate) async fn load(self: &Arc<Self>, turn: &TurnId, extensions: impl Future<Output = ()>) {
        let (sources, ()) = tokio::join!(self.sources(), extensions);
        let now = Arc::new(self.assemble(sources));
        let before = lock(&self.current).replace(Arc::clone(&now));
        self.report_changes(turn, before.as_deref(), &now);
    }

    /// The instructions of the deeper folders that a file lies in, unless the conversation contains them. Reads each folder
    /// once in a turn.
    pub(crate) async fn beside(
        &self,
        conversation: &Conversation,
        target: &Target,
    ) -> Option<FolderInstructions> {
        let (file, agent) = (target.file()?, conversation.agent());
        let places = match conversation.isolation() {
            None if self.gate.isolation().is_none() => self.memory_places(),
            isolation => {
                let workspace = isolation.map_or(&self.environment.workspace, |own| &own.workspace);
                self.memory_places_in(workspace.cwd(), workspace.roots().to_vec())
            }
        };
        let (places, above) = (Arc::new(places), self.current());
        let beside = above.memory.beside(&places, file);
        loop {
            let folders = Arc::new(self.with_given(agent, |given| {
                beside.iter().filter(|folder| !given.contains(*folder)).cloned().collect::<Vec<_>>()
            })?);
            if folders.is_empty() {
                return None;
            }
            let may_mention = self.gate.mentionable_for(conversation);
            let (places, above, wanted) = (Arc::clone(&places), Arc::clone(&above), Arc::clone(&folders));
            let memory = blocking(move || {
                let real_paths = RealPaths::default();
                let may_give = |path: &AbsPath| may_mention(&Target::File(path.clone()), &real_paths);
                Memory::of_folders(&places, &may_give, &wanted, &above.memory)
            })
            .await;
            let is_first = self.with_given(agent, |given| {
                let is_first = !folders.iter().any(|folder| given.contains(folder));
                if is_first {
                    given.extend(folders.iter().cloned());
                }
                is_first
            })?;
            // Another call may have given some of them meanwhile: the rest is read again.
            if is_first {
                return (!memory.text().is_empty()).then(|| FolderInstructions {
                    text: reminder(&format!("{FOLDER_HEADING}\n\n{}", memory.text())),
                    folders: memory.folders().to_vec(),
                });
            }
        }
    }

    /// The places of instruction files.
    pub(crate) fn memory_places(&self) -> InstructionFolders {
        let (cwd, roots) = self.folders();
        self.memory_places_in(cwd, roots)
    }

    /// The working directory, and the workspace folders.
    fn folders(&self) -> (AbsPath, Vec<AbsPath>) {
        let state = self.core.state();
        (state.cwd.clone(), state.roots.clone())
    }

    fn memory_places_in(&self, cwd: AbsPath, roots: Vec<AbsPath>) -> InstructionFolders {
        let excludes = self.gate.in_force().policy.preferences.memory_excludes.clone();
        InstructionFolders::usual(cwd, roots, excludes)
    }

    async fn sources(self: &Arc<Self>) -> InstructionSources {
        let loader = Arc::clone(self);
        let memory = blocking(move || {
            let (may_mention, real_paths) = (loader.gate.mentionable(), RealPaths::default());
            let may_give = |path: &AbsPath| may_mention(&Target::File(path.clone()), &real_paths);
            Memory::load(&loader.memory_places(), &may_give)
        });
        let (memory, first) = tokio::join!(memory, self.first_look());
        InstructionSources { memory, first }
    }

    /// The first look: that of the turns before, or the one that began with the session, unless other rules apply by now
    /// that may forbid showing it.
    async fn first_look(self: &Arc<Self>) -> StartOverview {
        if let Some(known) = &*lock(&self.current) {
            let (branch, overview) = (known.branch.clone(), known.overview.clone());
            return StartOverview { branch, overview };
        }
        let begun = lock(&self.first_look).take();
        if let Some(begun) = begun
            && let Ok((seen, (by, mode))) = begun.await
            && by.is_same(&self.gate.in_force())
            && mode == self.mode()
        {
            return seen;
        }
        let loader = Arc::clone(self);
        blocking(move || loader.look().0).await
    }

    fn look(&self) -> (StartOverview, OverviewPolicy) {
        let contents = self.contents();
        let (places, by) = (self.memory_places(), (self.gate.in_force(), self.mode()));
        let overview = self.overview(&places, contents, by.0.policy.preferences.project_overview);
        (StartOverview { branch: branch(&places.top()), overview }, by)
    }

    fn mode(&self) -> Mode {
        self.core.state().config.mode
    }

    fn assemble(&self, sources: InstructionSources) -> Instructions {
        let InstructionSources { memory, first: StartOverview { branch, overview } } = sources;
        let policy = Arc::clone(&self.gate.in_force().policy);
        let preferences = &policy.preferences;
        let styles = self.extensions.styles();
        let chosen = self.core.state().config.output_style.clone();
        let (style, style_problem) = match chosen.as_deref().or(preferences.output_style.as_deref()) {
            None => (Style::default(), None),
            Some(name) => match styles.find(name) {
                Ok(style) => (style.clone(), None),
                Err(problem) => (Style::default(), Some(problem)),
            },
        };
        let non_empty = |text: &Option<String>| text.clone().filter(|text| !text.trim().is_empty());
        Instructions {
            memory,
            style,
            language: non_empty(&preferences.language),
            locale: self.environment.workspace.locale().as_deref().and_then(foreign),
            appended: appended(preferences),
            branch,
            overview,
            style_problem,
        }
    }

    fn report_changes(&self, turn: &TurnId, before: Option<&Instructions>, now: &Instructions) {
        let main = ThreadHandle::main(&self.core);
        let none = Instructions::default();
        let known = before.unwrap_or(&none);
        let new = now.memory.problems().iter().filter(|problem| !known.memory.problems().contains(problem));
        let new: Vec<_> = new.cloned().collect();
        if !new.is_empty() {
            let hint = "`kode-ls doctor` lists the instruction files that are found.".to_owned();
            main.notice(turn, NoticeLevel::Warning, new.join("\n"), Some(hint));
        }
        if let Some(problem) = now.style_problem.as_ref().filter(|_| now.style_problem != known.style_problem)
        {
            let text = format!("The output style {} is used: {problem}", now.style.name);
            let hint = "Choose one of them in `outputStyle`.".to_owned();
            main.notice(turn, NoticeLevel::Warning, text, Some(hint));
        }
        if before.is_some_and(|before| before.memory.text() != now.memory.text()) {
            let text = "The instruction files have changed; they count as they are now.".to_owned();
            main.notice(turn, NoticeLevel::Info, text, None);
        }
    }

    /// The folders of the overview, where it is wanted. They are read while the session's policy is made.
    fn contents(&self) -> FolderContents {
        let (cwd, roots) = self.folders();
        let is_wanted = self.gate.source().preferences().project_overview;
        let places = InstructionFolders::usual(cwd, roots, Vec::new());
        if is_wanted && is_project(&places) {
            FolderContents::read(&places.cwd)
        } else {
            FolderContents::default()
        }
    }

    /// The content of the working directory, where it is wanted.
    fn overview(&self, places: &InstructionFolders, contents: FolderContents, is_wanted: bool) -> String {
        if !is_wanted || !is_project(places) {
            return String::new();
        }
        let (may_mention, real_paths) = (self.gate.mentionable(), RealPaths::default());
        let may_show = |path: &AbsPath| may_mention(&Target::File(path.clone()), &real_paths).is_ok();
        overview::of(&places.cwd, contents, &may_show).unwrap_or_default()
    }

    /// Reads or extends the deeper folders of a conversation that were read in the turn or given before; `None` for an
    /// unknown conversation.
    fn with_given<T>(
        &self,
        agent: Option<&AgentId>,
        read: impl FnOnce(&mut HashSet<AbsPath>) -> T,
    ) -> Option<T> {
        let mut given = lock(&self.given);
        let (turn, rewrites, before) = {
            let state = self.core.state();
            let turn = state.running.id.clone();
            let thread = state.thread(agent)?;
            let rewrites = thread.rewrites();
            let is_current = |given: &GivenFolders| given.turn == turn && given.rewrites == rewrites;
            let is_known = given.get(&agent.cloned()).is_some_and(is_current);
            (turn, rewrites, (!is_known).then(|| thread.instructed().cloned().collect()))
        };
        if let Some(folders) = before {
            given.insert(agent.cloned(), GivenFolders { turn, rewrites, folders });
        }
        given.get_mut(&agent.cloned()).map(|given| read(&mut given.folders))
    }
}

/// Whether the working directory is that of a project: a home folder and the root of a disk are none.
fn is_project(places: &InstructionFolders) -> bool {
    places.home.as_ref() != Some(&places.cwd) && places.cwd.parent().is_some()
}

/// The language that an editor names, in the form of `pt-BR`; `None` for English and for no language.
fn foreign(locale: &str) -> Option<String> {
    // Systems write `pt_BR.UTF-8`.
    let name = locale.split(['.', '@']).next().unwrap_or_default().trim().replace('_', "-");
    let mut parts = name.split('-');
    let language = parts.next().unwrap_or_default().to_lowercase();
    let is_language =
        (2..=3).contains(&language.len()) && language.bytes().all(|byte| byte.is_ascii_lowercase());
    let is_part =
        |part: &str| (1..=8).contains(&part.len()) && part.bytes().all(|byte| byte.is_ascii_alphanumeric());
    (is_language && language != "en" && name.len() <= MAX_LOCALE && parts.all(is_part)).then_some(name)
}

/// The branch that a repository is on, where its head names one.
fn branch(top: &AbsPath) -> Option<String> {
    let head = regular::read_text(top.join(".git/HEAD").as_path(), MAX_HEAD).ok()?;
    let branch = head.trim().strip_prefix("ref: refs/heads/")?;
    (!branch.contains(char::is_control)).then(|| branch.to_owned())
}

/// The text that settings append to the system prompt.
fn appended(preferences: &Preferences) -> Option<String> {
    let non_empty = |text: &Option<String>| text.clone().filter(|text| !text.trim().is_empty());
    let ending = |what: &str, text: &Option<String>| {
        let text: String = non_empty(text)?.trim().chars().take(MAX_ATTRIBUTION).collect();
        Some(format!("End {what} with this text, after an empty line:\n\n{text}"))
    };
    let attribution = &preferences.attribution;
    let parts = [
        non_empty(&preferences.append_system_prompt),
        ending("the message of every commit you make", &attribution.commit),
        ending("the description of every pull request you open", &attribution.pull_request),
    ];
    let parts: Vec<_> = parts.into_iter().flatten().collect();
    (!parts.is_empty()).then(|| parts.join("\n\n"))
}
