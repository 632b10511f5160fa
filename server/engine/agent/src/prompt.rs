//! A prompt of the user's: its text, its attachments, its options, and its kind.
//!
//! Rule: a prompt is in the journal as it was submitted before its attachments are read; they are read when its turn
//! begins, so that a prompt that waited sees the files as they are then. The kind of a prompt is decided once, when it is
//! made: at submission, and in the same way by the fold of a journal.

use serde::{Deserialize, Serialize};

use kode_config::command::{BuiltInCommand, TypedCommand, compact};
use kode_model::Block;
use kode_record::options::TurnOptions;
use kode_record::prompt::PromptPart;

/// The tag around pasted text in a message for the model.
pub(crate) const PASTED_TAG: &str = "pasted-text";

/// The longest note, in characters.
const MAX_NOTE: usize = 2_000;

/// A prompt of the user's.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(from = "StoredPrompt", into = "StoredPrompt")]
pub struct Prompt {
    text: String,
    parts: Vec<PromptPart>,
    options: TurnOptions,
    kind: PromptKind,
}

/// The kind of a prompt.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum PromptKind {
    /// A message for the model.
    #[default]
    Text,
    /// A line for the instruction files of the project.
    Note(String),
    /// A request to compact the conversation.
    Compaction {
        /// The focus of the summary; empty for none.
        focus: String,
    },
    /// A built-in command.
    BuiltIn {
        /// The command.
        command: &'static BuiltInCommand,
        /// The name that was typed, without the `/`.
        name: String,
        /// The text behind the name.
        arguments: String,
    },
    /// A command of a file or an MCP server, a skill, or a name that nothing has.
    Named {
        /// The name, without the `/`.
        name: String,
        /// The text behind it.
        arguments: String,
    },
}

/// A prompt as a base stores it.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct StoredPrompt {
    text: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    parts: Vec<PromptPart>,
    #[serde(default, skip_serializing_if = "TurnOptions::is_default")]
    options: TurnOptions,
}

impl From<StoredPrompt> for Prompt {
    fn from(StoredPrompt { text, parts, options }: StoredPrompt) -> Self {
        Self::new(text, parts).with_options(options)
    }
}

impl From<Prompt> for StoredPrompt {
    fn from(Prompt { text, parts, options, kind: _ }: Prompt) -> Self {
        Self { text, parts, options }
    }
}

/// A prompt of text alone.
impl From<&str> for Prompt {
    fn from(text: &str) -> Self {
        Self::new(text, Vec::new())
    }
}

/// A prompt of text alone.
impl From<String> for Prompt {
    fn from(text: String) -> Self {
        Self::new(text, Vec::new())
    }
}

impl Prompt {
    /// A prompt with attachments.
    #[must_use]
    pub fn new(text: impl Into<String>, parts: Vec<PromptPart>) -> Self {
        let text = text.into();
        let kind = PromptKind::of(&text, &parts);
        Self { text, parts, options: TurnOptions::default(), kind }
    }

    /// The same with options for its turn.
    #[must_use]
    pub fn with_options(self, options: TurnOptions) -> Self {
        Self { options, ..self }
    }

    /// The text, as shown in the transcript.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The attachments.
    #[must_use]
    pub fn parts(&self) -> &[PromptPart] {
        &self.parts
    }

    /// The options of its turn.
    #[must_use]
    pub fn options(&self) -> TurnOptions {
        self.options.clone()
    }

    /// The kind.
    #[must_use]
    pub fn kind(&self) -> &PromptKind {
        &self.kind
    }

    /// Whether it asks nothing: the state of the editor alone is no question.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.text.trim().is_empty() && self.parts.iter().all(|part| matches!(part, PromptPart::Editor(_)))
    }

    /// The text and the attachments.
    pub(crate) fn into_input(self) -> (String, Vec<PromptPart>) {
        (self.text, self.parts)
    }

    /// Its text as the model gets it.
    #[must_use]
    pub(crate) fn content(&self) -> Vec<Block> {
        let has_text = !self.text.trim().is_empty();
        has_text.then(|| Block::Text { text: self.text.clone() }).into_iter().collect()
    }
}

impl PromptKind {
    /// The kind of a prompt with this text and these attachments.
    #[must_use]
    pub fn of(text: &str, parts: &[PromptPart]) -> Self {
        if let Some(focus) = compact::asked(text) {
            return Self::Compaction { focus: focus.to_owned() };
        }
        let Some(typed) = TypedCommand::read(text) else {
            return note(text, parts).map_or(Self::Text, |note| Self::Note(note.to_owned()));
        };
        let (name, arguments) = (typed.name.to_owned(), typed.arguments.to_owned());
        match typed.built_in() {
            Some(command) => Self::BuiltIn { command, name, arguments },
            None => Self::Named { name, arguments },
        }
    }

    /// Whether it is a command.
    #[must_use]
    pub fn is_command(&self) -> bool {
        match self {
            Self::Compaction { .. } | Self::BuiltIn { .. } | Self::Named { .. } => true,
            Self::Text | Self::Note(_) => false,
        }
    }

    /// Whether the model gets nothing of it: it names no session, and no hook sees it.
    #[must_use]
    pub fn is_silent(&self) -> bool {
        matches!(self, Self::Compaction { .. }) || self.is_answered_without_model()
    }

    /// Whether it is a built-in command that is answered without a model.
    #[must_use]
    pub fn is_answered_without_model(&self) -> bool {
        match self {
            Self::BuiltIn { command, arguments, .. } => !command.asks_model(arguments),
            Self::Text | Self::Note(_) | Self::Compaction { .. } | Self::Named { .. } => false,
        }
    }
}

/// The note in a prompt, if it is one: a single line that begins with `#`, and not with the number of an issue.
fn note<'a>(text: &'a str, parts: &[PromptPart]) -> Option<&'a str> {
    let text = text.trim();
    let note = text.strip_prefix('#')?;
    let is_note = !text.contains('\n')
        && !note.starts_with(|char: char| char.is_ascii_digit() || char == '!' || char == '#')
        && !note.trim().is_empty()
        && note.chars().count() <= MAX_NOTE
        && parts.iter().all(|part| matches!(part, PromptPart::Editor(_)));
    is_note.then(|| note.trim())
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
            let expected = note.map_or(PromptKind::Text, |note| PromptKind::Note(note.to_owned()));
            assert_eq!(Prompt::from(text).kind(), &expected, "{text}");
        }
        let shown = PromptPart::Pasted { text: "log".into() };
        assert_eq!(Prompt::new("# see", vec![shown]).kind(), &PromptKind::Text);
    }

    #[test]
    fn a_command_is_known_by_its_name() {
        let kind = |text: &str| Prompt::from(text).kind().clone();
        let focus = |focus: &str| PromptKind::Compaction { focus: focus.to_owned() };
        assert_eq!(kind(" /compact  the tests "), focus("the tests"));
        assert_eq!(kind("/compact"), focus(""));
        let named = PromptKind::Named { name: "compaction".to_owned(), arguments: "now".to_owned() };
        assert_eq!(kind("/compaction now"), named);
        let PromptKind::BuiltIn { name, arguments, .. } = kind("/plan the move") else { panic!("a command") };
        assert_eq!((name.as_str(), arguments.as_str()), ("plan", "the move"));
        assert_eq!(kind("/usr/bin is full"), PromptKind::Text);
        for (text, is_silent, is_answered) in [
            ("/compact", true, false),
            ("/cost", true, true),
            ("/model", true, true),
            ("/model quick", true, true),
            ("/plugin", true, true),
            ("/plugin enable x", true, true),
            ("/rewind 1", true, true),
            ("/clear", true, true),
            ("/login", true, true),
            ("/plan", true, true),
            ("/plan the move", false, false),
            ("/init", false, false),
            ("/somebody-s-own", false, false),
            ("# a note", false, false),
            ("words", false, false),
        ] {
            let kind = kind(text);
            assert_eq!(
                (kind.is_silent(), kind.is_answered_without_model()),
                (is_silent, is_answered),
                "{text}"
            );
        }
    }

    #[test]
    fn a_stored_prompt_has_its_kind_again() {
        let prompt = Prompt::from("/compact all");
        let stored = serde_json::to_value(&prompt).unwrap();
        assert_eq!(stored, serde_json::json!({ "text": "/compact all" }));
        assert_eq!(serde_json::from_value::<Prompt>(stored).unwrap(), prompt);
    }
}
