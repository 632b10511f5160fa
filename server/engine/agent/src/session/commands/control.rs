//! Commands that change something of the session, or lead to another one.
//!
//! Rule: each does the same as its method of the protocol, with the same code, and shows the result.

use std::fmt::Write as _;

use serde_json::json;

use super::CommandContext;
use super::show::code;
use crate::edits::review::{RestoreWhat, UserEdits};
use crate::hooks::EndReason;
use crate::state::config::ConfigChange;
use kode_base::blocking;
use kode_base::call::{ToolKind, Touch};
use kode_base::effort::Effort;
use kode_base::mask::masked_text;
use kode_base::mode::Mode;
use kode_base::paths::{AbsPath, Target};
use kode_config::command::CommandReport;
use kode_config::sandbox_profile::DEFAULT_PROFILE;
use kode_permission::GateDecision;
use kode_permission::gate::GateCase;
use kode_text::edit::{Author, ChangeSet, FileChange, TextEdit};
use kode_text::workspace::ReadError;

/// The most sessions and checkpoints in a list.
const MAX_LISTED: usize = 20;

/// The most characters of an exported session that are shown.
const MAX_EXPORT: usize = 100_000;

/// The most models that are listed of one server of this machine.
const MAX_RUNNING: usize = 20;

impl CommandContext<'_> {
    pub(super) async fn clear(&self) -> CommandReport {
        match self.directory.begin_like(self.session).await {
            Ok(id) => {
                self.session.hooks().leave(EndReason::Clear).await;
                let text = format!(
                    "A new session starts. This one is kept: `/resume {}` continues it.",
                    self.session.id()
                );
                CommandReport { go_to: Some(id), ..CommandReport::text(text) }
            }
            Err(error) => CommandReport::failure(format!("No session was started: {error}")),
        }
    }

    pub(super) async fn fork(&self) -> CommandReport {
        match self.directory.copy(self.session, self.arguments).await {
            Ok(id) => CommandReport {
                go_to: Some(id.clone()),
                ..CommandReport::text(format!("`{id}` continues from here; this session stays as it is."))
            },
            Err(error) => CommandReport::failure(format!("No copy was made: {error}")),
        }
    }

    pub(super) async fn resume(&self) -> CommandReport {
        let others = match self.directory.others(self.session).await {
            Ok(others) => others,
            Err(error) => return CommandReport::failure(error),
        };
        if self.arguments.is_empty() {
            let mut text = String::new();
            for other in others.iter().take(MAX_LISTED) {
                let title = if other.title.is_empty() { "(no title)" } else { &other.title };
                let _ =
                    writeln!(text, "- `{}` {title} ({})", other.id, other.updated.strftime("%Y-%m-%d %H:%M"));
            }
            if others.is_empty() {
                text.push_str("There are no other sessions of this workspace.");
            } else {
                text.push_str("\n`/resume ID` continues one; words of its title work as well.");
            }
            let listed = others.iter().take(MAX_LISTED);
            let listed: Vec<_> =
                listed.map(|other| json!({ "sessionId": other.id, "title": other.title })).collect();
            return CommandReport::text(text).with(json!({ "sessions": listed }));
        }
        let wanted = self.arguments.to_lowercase();
        let is_id = |id: &str| {
            id.starts_with(&wanted) || id.strip_prefix("ses_").is_some_and(|id| id.starts_with(&wanted))
        };
        let by_id: Vec<_> = others.iter().filter(|other| is_id(other.id.as_str())).collect();
        let found = match by_id.as_slice() {
            [] => others.iter().filter(|other| other.title.to_lowercase().contains(&wanted)).collect(),
            _ => by_id,
        };
        match found.as_slice() {
            [one] => {
                self.session.hooks().leave(EndReason::Resume).await;
                let text = format!("Going on with `{}` {}.", one.id, one.title);
                CommandReport { go_to: Some(one.id.clone()), ..CommandReport::text(text) }
            }
            [] => CommandReport::failure(format!(
                "There is no session `{}`; `/resume` lists them.",
                self.arguments
            )),
            several => {
                let named: Vec<_> =
                    several.iter().take(5).map(|one| format!("`{}` {}", one.id, one.title)).collect();
                CommandReport::failure(format!(
                    "Several are meant: {}. Say more of the id.",
                    named.join(", ")
                ))
            }
        }
    }

    pub(super) fn rewind(&self) -> CommandReport {
        // The newest is where one most likely wants to go.
        let mut checkpoints = self.session.edits().checkpoints();
        checkpoints.reverse();
        let mut words = self.arguments.split_whitespace();
        let Some(wanted) = words.next() else {
            let mut text = String::new();
            for (at, one) in checkpoints.iter().take(MAX_LISTED).enumerate() {
                let files = match one.targets.len() {
                    0 => String::new(),
                    1 => ", 1 file changed".to_owned(),
                    many => format!(", {many} files changed"),
                };
                let _ =
                    writeln!(text, "{}. {} ({}{files})", at + 1, one.title, one.timestamp.strftime("%H:%M"));
            }
            match checkpoints.is_empty() {
                true => text.push_str("There is no prompt to go back before."),
                false => text.push_str("\n`/rewind NUMBER` goes back before one, `/rewind NUMBER files` or `conversation` with a part only."),
            }
            let ids: Vec<_> = checkpoints
                .iter()
                .take(MAX_LISTED)
                .map(|one| json!({ "checkpointId": one.id, "title": one.title }))
                .collect();
            return CommandReport::text(text).with(json!({ "checkpoints": ids }));
        };
        let number = wanted.parse::<usize>().ok().and_then(|number| checkpoints.get(number.checked_sub(1)?));
        let found = number.or_else(|| checkpoints.iter().find(|one| one.id.as_str() == wanted));
        let Some(checkpoint) = found else {
            return CommandReport::failure(format!(
                "There is no prompt `{wanted}` to go back before; `/rewind` lists them."
            ));
        };
        let what = match words.next() {
            None | Some("both") => RestoreWhat::Both,
            Some("conversation" | "chat") => RestoreWhat::Conversation,
            Some("files" | "code") => RestoreWhat::Files,
            Some(other) => {
                return CommandReport::failure(format!(
                    "`{other}` is nothing to go back with; say both, conversation or files."
                ));
            }
        };
        match self.session.edits().restore(&checkpoint.id, what, UserEdits::Keep) {
            Ok(resolution) => CommandReport::text(format!(
                "Back before “{}”. What you changed yourself stays; the step can be taken back.",
                checkpoint.title
            ))
            .with(json!({ "resolutionId": resolution, "checkpointId": checkpoint.id })),
            Err(error) => CommandReport::failure(format!("Nothing was taken back: {error}")),
        }
    }

    pub(super) fn rename(&self) -> CommandReport {
        match self.session.rename(self.arguments) {
            Ok(()) => CommandReport::text(format!(
                "This session is called “{}”.",
                self.session.core().state().title.text
            )),
            Err(error) => CommandReport::failure(format!("It keeps its title: {error}")),
        }
    }

    pub(super) async fn model(&self) -> CommandReport {
        let session = self.session;
        if self.arguments.is_empty() {
            let (models, own) = (session.models().now(), session.core().state().config.model.clone());
            let mut text = String::new();
            for profile in models.profiles() {
                let mark = if profile.name == own { " ← this session" } else { "" };
                let pointers = self.pointers_to(&profile.name);
                let used =
                    if pointers.is_empty() { String::new() } else { format!(" [{}]", pointers.join(", ")) };
                let _ = writeln!(text, "- **{}**: {}{used}{mark}", profile.name, profile.model);
            }
            for server in session.models().running().await.iter().filter(|server| !server.models.is_empty()) {
                let models = server.models.iter().take(MAX_RUNNING).cloned().collect::<Vec<_>>().join(", ");
                let _ = write!(text, "\n{} at {} serves {models}.", server.label, server.base_url);
                text.push_str(" `kode-ls setup` makes a profile of one.\n");
            }
            text.push_str("\n`/model NAME` changes that of this session.");
            let names: Vec<_> = models.profiles().map(|profile| profile.name.clone()).collect();
            return CommandReport::text(text).with(json!({ "model": own, "models": names }));
        }
        match session.models().named(self.arguments) {
            Ok(name) => {
                session.configure(ConfigChange { model: Some(name.clone()), ..ConfigChange::default() });
                CommandReport::text(format!("The model is {name} from the next call on."))
                    .with(json!({ "model": name }))
            }
            Err(error) => CommandReport::failure(error.to_string()),
        }
    }

    pub(super) fn effort(&self) -> CommandReport {
        let session = self.session;
        let wanted = match self.arguments.to_lowercase().as_str() {
            "" => {
                let effort = session.core().state().config.effort;
                let said = effort.map_or("as the profile and the settings say", Effort::name);
                return CommandReport::text(format!(
                    "Models think: {said}. `/effort low`, `medium`, `high` or `auto` changes it."
                ))
                .with(json!({ "effort": effort }));
            }
            "auto" | "default" => None,
            name => match Effort::ALL.into_iter().find(|effort| effort.name() == name) {
                Some(effort) => Some(effort),
                None => {
                    return CommandReport::failure(format!(
                        "`{name}` is no effort; there are low, medium, high and auto."
                    ));
                }
            },
        };
        session.configure(ConfigChange { effort: Some(wanted), ..ConfigChange::default() });
        let said = wanted.map_or("as the profile and the settings say", Effort::name);
        CommandReport::text(format!("Models think {said} from the next call on."))
            .with(json!({ "effort": wanted }))
    }

    pub(super) async fn output_style(&self) -> CommandReport {
        let session = self.session;
        if self.arguments.is_empty() {
            let styles = std::sync::Arc::clone(&session.extensions().live().now().await.styles);
            let own = session.core().state().config.output_style.clone();
            let own = own.unwrap_or_else(|| session.instructions().current().style.name.clone());
            let mut text = String::new();
            for style in styles.iter() {
                let mark = if style.name == own { " ← this session" } else { "" };
                let _ = writeln!(text, "- **{}**: {}{mark}", style.name, style.description);
            }
            text.push_str(&self.problems(&styles.problems));
            let names: Vec<_> = styles.iter().map(|style| &style.name).collect();
            return CommandReport::text(text.trim_end()).with(json!({ "outputStyle": own, "styles": names }));
        }
        match session.extensions().style_named(self.arguments).await {
            Ok(name) => {
                let output_style = Some(Some(name.clone()));
                session.configure(ConfigChange { output_style, ..ConfigChange::default() });
                CommandReport::text(format!("Answers are in the style {name} from the next turn on."))
                    .with(json!({ "outputStyle": name }))
            }
            Err(error) => CommandReport::failure(error),
        }
    }

    pub(super) fn sandbox(&self) -> CommandReport {
        let (session, gate) = (self.session, self.session.gate());
        let profiles = gate.sandbox_profiles();
        if self.arguments.is_empty() {
            let own = session.core().state().config.sandbox.clone();
            let own = own.as_deref().unwrap_or(DEFAULT_PROFILE);
            let mut text = String::new();
            for (name, description) in &profiles {
                let mark = if name == own { " ← this session" } else { "" };
                let _ = writeln!(text, "- **{name}**: {description}{mark}");
            }
            text.push_str("\n`/sandbox NAME` chooses one for the commands of this session.");
            let names: Vec<_> = profiles.iter().map(|(name, _)| name).collect();
            return CommandReport::text(text).with(json!({ "sandbox": own, "profiles": names }));
        }
        match gate.profile_named(self.arguments) {
            Ok(sandbox) => {
                session.configure(ConfigChange { sandbox: Some(sandbox), ..ConfigChange::default() });
                let text = format!("Commands run in the sandbox profile {} from now on.", self.arguments);
                CommandReport::text(text).with(json!({ "sandbox": self.arguments }))
            }
            Err(error) => CommandReport::failure(format!("The sandbox stays as it is: {error}.")),
        }
    }

    pub(super) async fn permissions(&self) -> CommandReport {
        let session = self.session;
        if !self.arguments.is_empty() {
            let Some(mode) = Mode::parse(self.arguments) else {
                let names: Vec<_> = Mode::ALL.iter().map(|mode| mode.name()).collect();
                return CommandReport::failure(format!(
                    "There is no mode `{}`; there are {}.",
                    self.arguments,
                    names.join(", ")
                ));
            };
            return self.set_mode(mode).await;
        }
        let in_force = session.gate().rules_in_force();
        let mut text = format!("Mode: **{}**\n", in_force.mode.name());
        for rule in &in_force.rules {
            let _ = write!(
                text,
                "\n- {} `{}` ({})",
                rule.behavior.name(),
                masked_text(&rule.rule.to_string()),
                rule.source
            );
        }
        if in_force.rules.is_empty() {
            text.push_str("\nThere are no rules.");
        }
        let waiting = self.waiting().await.len();
        if waiting > 0 {
            let _ = write!(
                text,
                "\n\n{waiting} wishes of files of this workspace wait for your approval: `/trust`."
            );
        }
        text.push_str(&self.problems(&in_force.problems));
        let rules: Vec<_> = in_force
            .rules
            .iter()
            .map(|rule| json!({ "behavior": rule.behavior.name(), "rule": masked_text(&rule.rule.to_string()) }))
            .collect();
        CommandReport::text(text).with(json!({ "mode": in_force.mode.name(), "rules": rules }))
    }

    async fn set_mode(&self, mode: Mode) -> CommandReport {
        match self.session.gate().allow_mode(mode).await {
            Ok(mode) => {
                self.session.core().set_mode(mode);
                CommandReport::text(format!("The mode is {}.", mode.name()))
                    .with(json!({ "mode": mode.name() }))
            }
            Err(error) => CommandReport::failure(error.to_string()),
        }
    }

    pub(super) fn plan(&self) -> CommandReport {
        self.session.core().set_mode(Mode::Plan);
        CommandReport::text("Plan mode is on: nothing is changed until you accept a plan.")
            .with(json!({ "mode": "plan" }))
    }

    pub(super) async fn reload_skills(&self) -> CommandReport {
        let before: Vec<String> =
            self.session.extensions().catalog().all().map(|one| one.name.clone()).collect();
        self.session.extensions().refresh().await;
        let catalog = self.session.extensions().catalog();
        let now: Vec<String> = catalog.all().map(|one| one.name.clone()).collect();
        let new: Vec<_> = now.iter().filter(|name| !before.contains(name)).cloned().collect();
        let gone: Vec<_> = before.iter().filter(|name| !now.contains(name)).cloned().collect();
        let mut text = format!("{} skills and commands of files.", now.len());
        for (label, names) in [("New", &new), ("Gone", &gone)] {
            if !names.is_empty() {
                let _ = write!(text, " {label}: {}.", code(names));
            }
        }
        for (file, reason) in &catalog.problems {
            let _ = write!(text, "\n- Left out: {}: {reason}", file.display());
        }
        CommandReport::text(text).with(json!({ "names": now }))
    }

    pub(super) async fn add_folder(&self) -> CommandReport {
        let Ok(Target::File(folder)) = self.session.services.environment.workspace.resolve(self.arguments)
        else {
            return CommandReport::failure(format!("`{}` is no folder.", self.arguments));
        };
        let is_folder = {
            let folder = folder.clone();
            blocking(move || folder.as_path().is_dir()).await
        };
        if self.arguments.is_empty() || !is_folder {
            return CommandReport::failure("Say which folder: `/add-dir FOLDER`; it has to be there.");
        }
        if self.session.services.environment.workspace.contains(&Target::File(folder.clone())) {
            return CommandReport::text(format!("{folder} is in the workspace already."));
        }
        self.session.gate().add_folders(std::slice::from_ref(&folder));
        let text = format!(
            "Files in {folder} are read and edited as this session's mode says. Settings, instructions and commands in it \
             do not count, and commands do not write there."
        );
        CommandReport::text(text).with(json!({ "folder": folder.to_string() }))
    }

    pub(super) async fn export(&self) -> CommandReport {
        let document = match self.directory.document(self.session).await {
            Ok(document) => document,
            Err(error) => return CommandReport::failure(format!("It was not exported: {error}")),
        };
        if self.arguments.is_empty() {
            return match document.char_indices().nth(MAX_EXPORT) {
                None => CommandReport::text(document),
                Some((end, _)) => CommandReport::text(format!(
                    "{}\n\n*Only the beginning; `/export FILE` writes all of it.*",
                    &document[..end]
                )),
            };
        }
        match self.write(&document).await {
            Ok(path) => CommandReport::text(format!("Written to {path}.")).with(json!({ "path": path })),
            Err(error) => CommandReport::failure(format!("It was not written: {error}")),
        }
    }

    /// Writes a document into the file that is named, which must not be there yet.
    async fn write(&self, document: &str) -> Result<String, String> {
        let session = self.session;
        let target = session
            .services
            .environment
            .workspace
            .resolve(self.arguments)
            .map_err(|error| error.to_string())?;
        match session.services.environment.workspace.text(&target).await {
            Err(ReadError::NotFound { .. }) => {}
            Ok(_) => return Err("there is such a file already".to_owned()),
            Err(error) => return Err(error.to_string()),
        }
        let input = json!({ "file_path": target.file().map(AbsPath::to_string) });
        let touches = [Touch::Write(target.clone())];
        let case = GateCase { tool: "Write", kind: ToolKind::Write, input: &input, touches: &touches };
        // No prompt: the user has named the file.
        let verdict = session.gate().judge(&case, Mode::Default).verdict;
        if verdict.decision == GateDecision::Deny {
            return Err(verdict.reason);
        }
        let edit = TextEdit { range: 0..0, new_text: document.to_owned() };
        let change = ChangeSet {
            label: "Kode: Export".to_owned(),
            summary: String::new(),
            files: vec![FileChange { target: target.clone(), base: None, edits: vec![edit] }],
            removals: Vec::new(),
            author: Author::User,
        };
        session
            .services
            .environment
            .workspace
            .apply(change, self.cancel)
            .await
            .map_err(|error| error.to_string())?;
        Ok(session.services.environment.workspace.display(&target))
    }
}
