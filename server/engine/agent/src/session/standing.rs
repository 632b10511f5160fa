//! What stands in the system prompt beside what is built in: instruction files, output style, language.
//!
//! Rule: it is looked up when a turn begins and stays as it is until the next one begins; what has changed since the
//! turn before is told to the user.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex};

use tokio::task::JoinHandle;

use crate::context::overview;
use crate::session::conversation::Conversation;
use crate::session::{Session, lock};
use kode_base::ids::{AgentId, TurnId};
use kode_base::mode::Mode;
use kode_base::paths::{AbsPath, Target};
use kode_base::{blocking, regular, reminder};
use kode_config::in_force::EffectivePolicy;
use kode_config::memory::{InstructionFolders, Memory};
use kode_config::preferences::Preferences;
use kode_config::style::{Style, Styles};
use kode_record::event::NoticeLevel;
use kode_record::prompt::EditorContext;
use kode_text::workspace::real_paths::RealPaths;

/// The longest text that commits and pull requests end with, in characters.
const MAX_ATTRIBUTION: usize = 1_000;

/// What stands above the instructions of a deeper folder.
const BESIDE: &str = "Instructions of the project for the folder that was just read from:";

/// A file that names a branch is not larger, in bytes.
const MAX_HEAD: u64 = 4 << 10;

/// No name of a language is longer.
const MAX_LOCALE: usize = 35;

/// What stands in the system prompt beside what is built in.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Standing {
    /// The instruction files.
    pub memory: Memory,
    /// How is answered.
    pub style: Style,
    /// The language of the answers; that of the user's message when `None`.
    pub language: Option<String>,
    /// The language of the editor, where it is not English; for messages that do not tell in which to answer.
    pub locale: Option<String>,
    /// What is said last.
    pub appended: Option<String>,
    /// The branch of the repository when the session was begun or taken up.
    pub branch: Option<String>,
    /// What lay in the working directory when the session was begun or taken up; empty when that is not told.
    pub overview: String,
    /// Why another style is used than the one that was chosen.
    pub style_problem: Option<String>,
}

/// What is found on the disk for it.
pub(super) struct Surroundings {
    memory: Memory,
    first: FirstSight,
}

/// What was seen of the working directory when the session was begun or taken up.
#[derive(Debug)]
struct FirstSight {
    branch: Option<String>,
    overview: String,
}

/// What it was looked at by.
type SeenBy = (Arc<EffectivePolicy>, Mode);

/// What a live session keeps of it.
#[derive(Debug, Default)]
pub(super) struct Kept {
    standing: Mutex<Option<Arc<Standing>>>,
    /// What the first turn waits for, looked at meanwhile.
    first_sight: Mutex<Option<JoinHandle<(FirstSight, SeenBy)>>>,
    styles: Mutex<Arc<Styles>>,
    told: Mutex<HashMap<Option<AgentId>, Told>>,
    /// What the editor showed with the newest prompt that said so.
    editor: Mutex<Option<EditorContext>>,
}

/// The deeper folders that were looked at for instructions in a turn, with those whose instructions the conversation
/// had been given before it. What a turn gave counts for good once its record does: see `Thread::instructed`.
#[derive(Debug)]
struct Told {
    turn: Option<TurnId>,
    /// As `Thread::rewrites` when they were gathered: a conversation that is another one now may not know them.
    rewrites: u64,
    folders: HashSet<AbsPath>,
}

/// Instructions of deeper folders.
#[derive(Debug)]
pub(crate) struct Beside {
    /// As the model gets them.
    pub(crate) text: String,
    /// The folders they are of.
    pub(crate) folders: Vec<AbsPath>,
}

impl Kept {
    /// Lets these styles count from now on.
    pub(super) fn know(&self, styles: &Arc<Styles>) {
        *lock(&self.styles) = Arc::clone(styles);
    }
}

impl Session {
    /// What stands in the system prompt beside what is built in, as the turn found it.
    #[must_use]
    pub fn standing(&self) -> Arc<Standing> {
        lock(&self.kept.standing).clone().unwrap_or_default()
    }

    /// The style of answers that a name means here, whatever its letter case, as it is called.
    ///
    /// # Errors
    /// That there is none, naming those there are.
    pub async fn style_named(&self, name: &str) -> Result<String, String> {
        self.extensions.now().await.styles.find(name).map(|style| style.name.clone())
    }

    /// The name of the style that was chosen, for this session or in the settings as they were looked at last.
    #[must_use]
    pub fn chosen_style(&self) -> Option<String> {
        let chosen = self.state().output_style.clone();
        chosen.or_else(|| self.in_force().policy.preferences.output_style.clone())
    }

    /// Looks up what stands in the system prompt and tells what has changed: with these surroundings, and the styles that are
    /// known by now.
    pub(super) fn look_up_standing(&self, turn: &TurnId, surroundings: Surroundings) {
        let now = Arc::new(self.standing_in(surroundings));
        let before = lock(&self.kept.standing).replace(Arc::clone(&now));
        let known = before.clone().unwrap_or_default();
        let conversation = Conversation::main(self);
        let new = now.memory.problems().iter().filter(|problem| !known.memory.problems().contains(problem));
        let new: Vec<_> = new.cloned().collect();
        if !new.is_empty() {
            let hint = "`kode-ls doctor` lists the instruction files that are found.".to_owned();
            conversation.notice(turn, NoticeLevel::Warning, new.join("\n"), Some(hint));
        }
        if let Some(problem) = now.style_problem.as_ref().filter(|_| now.style_problem != known.style_problem)
        {
            let text = format!("The output style {} is used: {problem}", now.style.name);
            let hint = "Choose one of them in `outputStyle`.".to_owned();
            conversation.notice(turn, NoticeLevel::Warning, text, Some(hint));
        }
        if before.is_some_and(|before| before.memory.text() != now.memory.text()) {
            let text = "The instruction files have changed; they count as they are now.".to_owned();
            conversation.notice(turn, NoticeLevel::Info, text, None);
        }
    }

    /// Begins to look at the working directory, which the first turn tells of.
    pub(super) fn begin_first_sight(self: &Arc<Self>) {
        let session = Arc::clone(self);
        let sight = tokio::spawn(async move { blocking(move || session.see()).await });
        *lock(&self.kept.first_sight) = Some(sight);
    }

    /// What is found on the disk for the system prompt.
    pub(super) async fn surroundings(self: &Arc<Self>) -> Surroundings {
        let session = Arc::clone(self);
        let memory = blocking(move || {
            let may_mention = |path: &AbsPath| session.may_mention(&Target::File(path.clone()));
            Memory::load(&session.memory_places(), &may_mention)
        });
        let (memory, first) = tokio::join!(memory, self.first_sight());
        Surroundings { memory, first }
    }

    /// What was seen of the working directory at first: what the turns before tell, or what was begun with the session, unless
    /// other rules count by now, by which it may not be told.
    async fn first_sight(self: &Arc<Self>) -> FirstSight {
        if let Some(known) = &*lock(&self.kept.standing) {
            let (branch, overview) = (known.branch.clone(), known.overview.clone());
            return FirstSight { branch, overview };
        }
        let begun = lock(&self.kept.first_sight).take();
        if let Some(begun) = begun
            && let Ok((seen, (by, mode))) = begun.await
            && by.is_same(&self.in_force())
            && mode == self.mode()
        {
            return seen;
        }
        let session = Arc::clone(self);
        blocking(move || session.see().0).await
    }

    fn see(&self) -> (FirstSight, SeenBy) {
        let (places, by) = (self.memory_places(), (self.in_force(), self.mode()));
        let overview = self.overview(&places, by.0.policy.preferences.project_overview);
        (FirstSight { branch: branch(&places.top()), overview }, by)
    }

    fn standing_in(&self, surroundings: Surroundings) -> Standing {
        let Surroundings { memory, first: FirstSight { branch, overview } } = surroundings;
        let policy = Arc::clone(&self.in_force().policy);
        let preferences = &policy.preferences;
        let styles = Arc::clone(&lock(&self.kept.styles));
        let chosen = self.state().output_style.clone();
        let (style, style_problem) = match chosen.as_deref().or(preferences.output_style.as_deref()) {
            None => (Style::default(), None),
            Some(name) => match styles.find(name) {
                Ok(style) => (style.clone(), None),
                Err(problem) => (Style::default(), Some(problem)),
            },
        };
        let said = |text: &Option<String>| text.clone().filter(|text| !text.trim().is_empty());
        Standing {
            memory,
            style,
            language: said(&preferences.language),
            locale: self.workspace.locale().as_deref().and_then(foreign),
            appended: appended(preferences),
            branch,
            overview,
            style_problem,
        }
    }

    /// What lies in the working directory, where that is wanted. What lies in a home folder is no project.
    fn overview(&self, places: &InstructionFolders, is_wanted: bool) -> String {
        if !is_wanted || places.home.as_ref() == Some(&places.cwd) || places.cwd.parent().is_none() {
            return String::new();
        }
        let (may_mention, real_paths) = (self.mentionable(), RealPaths::default());
        let may_tell = |path: &AbsPath| may_mention(&Target::File(path.clone()), &real_paths).is_ok();
        overview::of(&places.cwd, &may_tell).unwrap_or_default()
    }

    /// The instructions of the deeper folders that a file lies in, if the model has not been given them in the
    /// conversation as it is now. Looks at the disk once in a turn for each folder.
    pub(crate) async fn instructions_beside(
        &self,
        conversation: &Conversation<'_>,
        target: &Target,
    ) -> Option<Beside> {
        let (file, agent) = (target.file()?, conversation.agent.as_ref());
        let places = match conversation.isolated() {
            None => self.memory_places(),
            Some(isolated) => {
                let workspace = &isolated.workspace;
                self.memory_places_in(workspace.cwd(), workspace.roots().to_vec())
            }
        };
        let (places, above) = (Arc::new(places), self.standing());
        let beside = above.memory.beside(&places, file);
        loop {
            let folders = Arc::new(self.with_told(agent, |told| {
                beside.iter().filter(|folder| !told.contains(*folder)).cloned().collect::<Vec<_>>()
            })?);
            if folders.is_empty() {
                return None;
            }
            let may_mention = conversation.mentionable();
            let (places, above, looked_at) = (Arc::clone(&places), Arc::clone(&above), Arc::clone(&folders));
            let memory = blocking(move || {
                let may_give =
                    |path: &AbsPath| may_mention(&Target::File(path.clone()), &RealPaths::default());
                Memory::of_folders(&places, &may_give, &looked_at, &above.memory)
            })
            .await;
            let is_first = self.with_told(agent, |told| {
                let is_first = !folders.iter().any(|folder| told.contains(folder));
                if is_first {
                    told.extend(folders.iter().cloned());
                }
                is_first
            })?;
            // Another call may have given some of them meanwhile: what is left is looked at again.
            if is_first {
                return (!memory.text().is_empty()).then(|| Beside {
                    text: reminder(&format!("{BESIDE}\n\n{}", memory.text())),
                    folders: memory.folders().to_vec(),
                });
            }
        }
    }

    /// Looks at the deeper folders that were looked at in the turn, or whose instructions the conversation has; `None`
    /// when there is no such conversation.
    fn with_told<T>(
        &self,
        agent: Option<&AgentId>,
        look: impl FnOnce(&mut HashSet<AbsPath>) -> T,
    ) -> Option<T> {
        let turn = self.active().as_ref().map(|active| active.id.clone());
        let mut told = lock(&self.kept.told);
        let (rewrites, given) = {
            let state = self.state();
            let thread = state.thread(agent)?;
            let rewrites = thread.rewrites();
            let is_good = |told: &Told| told.turn == turn && told.rewrites == rewrites;
            let known = told.get(&agent.cloned()).is_some_and(is_good);
            (rewrites, (!known).then(|| thread.instructed().cloned().collect()))
        };
        if let Some(folders) = given {
            told.insert(agent.cloned(), Told { turn, rewrites, folders });
        }
        told.get_mut(&agent.cloned()).map(|told| look(&mut told.folders))
    }

    /// Notes what the editor shows. False when it showed the same with the prompt before.
    pub(crate) fn note_editor(&self, context: &EditorContext) -> bool {
        let before = lock(&self.kept.editor).replace(context.clone());
        before.as_ref() != Some(context)
    }

    /// Has what the editor shows told with the next prompt, whatever was told before.
    pub(crate) fn forget_editor(&self) {
        lock(&self.kept.editor).take();
    }

    /// Where the session's journal lies.
    pub(crate) fn journal_path(&self) -> std::path::PathBuf {
        self.journal.path().to_path_buf()
    }

    pub(crate) fn memory_places(&self) -> InstructionFolders {
        let (cwd, roots) = {
            let state = self.state();
            (state.cwd.clone(), state.roots.clone())
        };
        self.memory_places_in(cwd, roots)
    }

    fn memory_places_in(&self, cwd: AbsPath, roots: Vec<AbsPath>) -> InstructionFolders {
        let excludes = self.in_force().policy.preferences.memory_excludes.clone();
        InstructionFolders::usual(cwd, roots, excludes)
    }
}

/// The language that an editor names, where it is one and not English, in the form of `pt-BR`.
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

/// The branch that a repository is on, where it says so in the usual way.
fn branch(top: &AbsPath) -> Option<String> {
    let head = regular::read_text(top.join(".git/HEAD").as_path(), MAX_HEAD).ok()?;
    let branch = head.trim().strip_prefix("ref: refs/heads/")?;
    (!branch.contains(char::is_control)).then(|| branch.to_owned())
}

/// What settings append to the system prompt.
fn appended(preferences: &Preferences) -> Option<String> {
    let said = |text: &Option<String>| text.clone().filter(|text| !text.trim().is_empty());
    let ending = |what: &str, text: &Option<String>| {
        let text: String = said(text)?.trim().chars().take(MAX_ATTRIBUTION).collect();
        Some(format!("End {what} with this text, after an empty line:\n\n{text}"))
    };
    let attribution = &preferences.attribution;
    let parts = [
        said(&preferences.append_system_prompt),
        ending("the message of every commit you make", &attribution.commit),
        ending("the description of every pull request you open", &attribution.pull_request),
    ];
    let parts: Vec<_> = parts.into_iter().flatten().collect();
    (!parts.is_empty()).then(|| parts.join("\n\n"))
}

#[cfg(test)]
mod tests;
