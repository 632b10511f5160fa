//! Notes: a prompt that begins with `#` is a line for the project's instruction files.
//!
//! Rule: no model is called for a note. It is written as an edit of the user's that only adds lines, only to files of the
//! project itself; a rule that denies a write denies it as well.

use serde_json::json;
use tokio_util::sync::CancellationToken;

use crate::core::thread::ThreadHandle;
use crate::input::InputReader;
use kode_base::call::{ToolKind, Touch};
use kode_base::ids::TurnId;
use kode_base::paths::Target;
use kode_permission::GateDecision;
use kode_permission::gate::GateCase;
use kode_record::event::NoticeLevel;
use kode_text::edit::{Author, ChangeSet, FileChange, TextEdit};
use kode_text::workspace::ReadError;

/// The file of notes, created where it is missing.
const FILE: &str = "AGENTS.md";

/// A file that gets the note as well where it exists and does not import the other.
const OTHER_FILE: &str = "CLAUDE.md";

impl InputReader {
    /// Writes a note into the project's instruction files, and adds a notice of the result.
    pub(crate) async fn take_note(&self, turn: &TurnId, note: &str, cancel: &CancellationToken) {
        let folder = self.instructions.memory_places().top();
        let top = Target::File(folder.clone());
        let (own, other) = (Target::File(folder.join(FILE)), Target::File(folder.join(OTHER_FILE)));
        let mut written = Vec::new();
        let mut problems = Vec::new();
        for (target, is_own) in [(own, true), (other, false)] {
            match self.add_line(&target, &top, note, is_own, cancel).await {
                Ok(true) => written.push(self.environment.workspace.display(&target)),
                Ok(false) => {}
                Err(error) => {
                    problems.push(format!("{}: {error}", self.environment.workspace.display(&target)))
                }
            }
        }
        let thread = ThreadHandle::main(&self.core);
        if !written.is_empty() {
            let text = format!("Noted in {}.", written.join(" and "));
            let hint =
                "It applies from the next prompt on. An open document still has to be saved.".to_owned();
            thread.notice(turn, NoticeLevel::Info, text, Some(hint));
        }
        if !problems.is_empty() {
            let text = format!("Not noted in {}.", problems.join("; in "));
            let hint = "Write it into the file by hand.".to_owned();
            thread.notice(turn, NoticeLevel::Warning, text, Some(hint));
        }
    }

    /// Adds a note to the end of a file, which may be made for it. False when the file is not there, or needs none.
    async fn add_line(
        &self,
        target: &Target,
        top: &Target,
        note: &str,
        may_make: bool,
        cancel: &CancellationToken,
    ) -> Result<bool, String> {
        let base = match self.environment.workspace.text(target).await {
            Ok(file) => Some(file),
            Err(ReadError::NotFound { .. }) if may_make => None,
            Err(ReadError::NotFound { .. }) => return Ok(false),
            Err(error) => return Err(error.to_string()),
        };
        self.may_note(target, top)?;
        let text = base.as_ref().map_or("", |base| &*base.text);
        if !may_make && text.contains(&format!("@{FILE}")) {
            return Ok(false);
        }
        let line_break = if text.contains("\r\n") { "\r\n" } else { "\n" };
        let before = if text.is_empty() || text.ends_with('\n') { "" } else { line_break };
        let end = text.len();
        let edit = TextEdit { range: end..end, new_text: format!("{before}- {note}{line_break}") };
        let path = self.environment.workspace.display(target);
        let change = ChangeSet {
            label: format!("Kode: Note in {path}"),
            summary: String::new(),
            files: vec![FileChange { target: target.clone(), base, edits: vec![edit] }],
            removals: Vec::new(),
            author: Author::User,
        };
        self.environment
            .workspace
            .apply(change, cancel)
            .await
            .map(|_| true)
            .map_err(|error| error.to_string())
    }

    /// Whether a note may go into a file of the folder `top`. The user has asked for it and is not asked again.
    fn may_note(&self, target: &Target, top: &Target) -> Result<(), String> {
        let workspace = &self.environment.workspace;
        let (real, real_top) = (workspace.real(target), workspace.real(top));
        let lies_within = real.file().zip(real_top.file()).is_some_and(|(file, top)| file.is_within(top));
        if !lies_within {
            return Err("it leads out of the project through a symbolic link".to_owned());
        }
        let input = json!({ "file_path": target.file() });
        let touches = [Touch::Write(target.clone())];
        let case = GateCase { tool: "Write", kind: ToolKind::Write, input: &input, touches: &touches };
        let mode = self.core.state().config.mode;
        let verdict = self.gate.judge(&case, mode).verdict;
        match verdict.decision {
            GateDecision::Allow | GateDecision::Ask => Ok(()),
            GateDecision::Deny => Err(verdict.reason),
        }
    }
}
