//! Notes: a prompt that begins with `#` is no question but something to remember, and goes into the project's
//! instruction files.
//!
//! Rule: a note asks nothing of the model; it is written as an edit of the user's, only lines are added, and only to
//! files of the project itself; what forbids a write forbids it as well.

use serde_json::json;
use tokio_util::sync::CancellationToken;

use crate::input::Prompt;
use crate::session::Session;
use crate::session::conversation::Conversation;
use kode_base::call::{ToolKind, Touch};
use kode_base::ids::TurnId;
use kode_base::paths::Target;
use kode_permission::GateDecision;
use kode_permission::gate::GateCase;
use kode_record::event::NoticeLevel;
use kode_record::prompt::PromptPart;
use kode_text::edit::{Author, ChangeSet, FileChange, TextEdit};
use kode_text::workspace::ReadError;

/// The most characters of a note.
const MAX_NOTE: usize = 2_000;

/// The file that a note goes to, made if it is not there.
const FILE: &str = "AGENTS.md";

/// A file that gets it as well where it is there and does not import the other.
const OTHER_FILE: &str = "CLAUDE.md";

/// The note in a prompt, if it is one: a single line that begins with `#`, and not with the number of an issue.
#[must_use]
pub fn of(prompt: &Prompt) -> Option<&str> {
    let text = prompt.text.trim();
    let note = text.strip_prefix('#')?;
    let is_note = !text.contains('\n')
        && !note.starts_with(|char: char| char.is_ascii_digit() || char == '!' || char == '#')
        && !note.trim().is_empty()
        && note.chars().count() <= MAX_NOTE
        && prompt.parts.iter().all(|part| matches!(part, PromptPart::Editor(_)));
    is_note.then(|| note.trim())
}

impl Session {
    /// Writes a note into the project's instruction files, and tells how it went.
    pub(crate) async fn take_note(&self, turn: &TurnId, note: &str, cancel: &CancellationToken) {
        let folder = self.memory_places().top();
        let top = Target::File(folder.clone());
        let (own, other) = (Target::File(folder.join(FILE)), Target::File(folder.join(OTHER_FILE)));
        let mut written = Vec::new();
        let mut problems = Vec::new();
        for (target, is_own) in [(own, true), (other, false)] {
            match self.add_line(&target, &top, note, is_own, cancel).await {
                Ok(true) => written.push(self.workspace.display(&target)),
                Ok(false) => {}
                Err(error) => problems.push(format!("{}: {error}", self.workspace.display(&target))),
            }
        }
        let conversation = Conversation::main(self);
        if !written.is_empty() {
            let text = format!("Noted in {}.", written.join(" and "));
            let hint =
                "It counts from the next prompt on. An open document has still to be saved.".to_owned();
            conversation.notice(turn, NoticeLevel::Info, text, Some(hint));
        }
        if !problems.is_empty() {
            let text = format!("Not noted in {}.", problems.join("; in "));
            let hint = "Write it into the file by hand.".to_owned();
            conversation.notice(turn, NoticeLevel::Warning, text, Some(hint));
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
        let base = match self.workspace.text(target).await {
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
        let path = self.workspace.display(target);
        let change = ChangeSet {
            label: format!("Kode: Note in {path}"),
            summary: String::new(),
            files: vec![FileChange { target: target.clone(), base, edits: vec![edit] }],
            author: Author::User,
        };
        self.workspace.apply(change, cancel).await.map(|_| true).map_err(|error| error.to_string())
    }

    /// Whether a note may go into a file of the folder `top`. Nobody is asked: the user has asked for it.
    fn may_note(&self, target: &Target, top: &Target) -> Result<(), String> {
        let (real, real_top) = (self.workspace.real(target), self.workspace.real(top));
        let lies_within = real.file().zip(real_top.file()).is_some_and(|(file, top)| file.is_within(top));
        if !lies_within {
            return Err("it leads out of the project through a symbolic link".to_owned());
        }
        let input = json!({ "file_path": target.file() });
        let touches = [Touch::Write(target.clone())];
        let case = GateCase { tool: "Write", kind: ToolKind::Write, input: &input, touches: &touches };
        let verdict = self.judge(&case, self.mode()).verdict;
        match verdict.decision {
            GateDecision::Allow | GateDecision::Ask => Ok(()),
            GateDecision::Deny => Err(verdict.reason),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_note_is_one_line_that_begins_with_a_number_sign() {
        for (text, note) in [
            ("# use tabs", Some("use tabs")),
            ("#use tabs ", Some("use tabs")),
            ("#12 is not fixed", None),
            ("# A title\nand a text", None),
            ("## a section", None),
            ("#!/bin/sh", None),
            ("#", None),
            ("what is #1", None),
        ] {
            assert_eq!(of(&Prompt::text(text)), note, "{text}");
        }
        let shown = PromptPart::Pasted { text: "log".into() };
        assert_eq!(of(&Prompt { text: "# see".into(), parts: vec![shown], ..Prompt::default() }), None);
    }
}
