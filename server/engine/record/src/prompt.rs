//! The parts of a prompt, as clients send them and journals keep them.
//!
//! Rule: plain data; what a part refers to is read when its turn starts.

use serde::{Deserialize, Serialize};

use kode_base::paths::{AbsPath, Target};
use kode_model::Image;

/// Maximum number of open documents that are reported.
pub const MAX_OPEN: usize = 20;

/// Maximum characters of selected text that are reported.
pub const MAX_SELECTED: usize = 50_000;

/// Lines as people count them: from 1, both ends included.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LineSpan {
    /// The first one.
    pub first: u32,
    /// The last one.
    pub last: u32,
}

/// Something that goes with a prompt.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum PromptPart {
    /// A file, folder or document that the user names.
    Mention {
        /// The named thing.
        target: Target,
        /// The lines that are meant; all of it when `None`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        lines: Option<LineSpan>,
    },
    /// Something that is defined in the code.
    Symbol {
        /// Its name.
        name: String,
        /// Where it is defined, where the editor knows.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        target: Option<Target>,
        /// The lines of the definition.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        lines: Option<LineSpan>,
    },
    /// Diagnostics.
    Diagnostics {
        /// About this file; about all files when `None`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        target: Option<Target>,
        /// About these lines of it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        lines: Option<LineSpan>,
        /// One that the editor submits unchanged.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        message: Option<String>,
    },
    /// The changes in the repository.
    Diff {
        /// Against what.
        #[serde(default)]
        of: DiffOf,
    },
    /// The outcome of another conversation.
    Session {
        /// Its id, or a part of its title.
        session: String,
    },
    /// Something that an MCP server has.
    Resource {
        /// The server.
        server: String,
        /// Its address there.
        uri: String,
    },
    /// Text that the user has selected.
    Selection {
        /// The document.
        target: Target,
        /// Where in it.
        lines: LineSpan,
        /// The text as it was when it was selected.
        text: String,
    },
    /// A picture.
    Image(Image),
    /// Text that was pasted into the prompt.
    Pasted {
        /// The text.
        text: String,
    },
    /// The editor's state.
    Editor(EditorContext),
}

/// Against what changes are shown.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum DiffOf {
    /// The working tree against the last commit.
    #[default]
    Head,
    /// The staged changes, against the last commit.
    Staged,
    /// The working tree against a revision, or the two ends of a range.
    Revision(String),
}

/// The editor's state.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct EditorContext {
    /// The document with the cursor.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub active: Option<Target>,
    /// The line of the cursor, or the selected lines.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub selection: Option<LineSpan>,
    /// The selected text; empty when nothing is selected.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub selected: String,
    /// The lines that are seen.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub visible: Option<LineSpan>,
    /// The documents that are open.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub open: Vec<Target>,
}

impl EditorContext {
    /// The same without what one prompt does not tell anyway. That there is more stays to be seen.
    #[must_use]
    pub fn bounded(mut self) -> Self {
        self.open.truncate(MAX_OPEN + 1);
        if let Some((end, _)) = self.selected.char_indices().nth(MAX_SELECTED + 1) {
            self.selected.truncate(end);
        }
        self
    }
}

/// An attachment of a prompt, as users see it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Attachment {
    /// Its kind.
    pub kind: AttachmentKind,
    /// Its name: a path with its lines, a symbol, a revision, a title.
    pub label: String,
    /// The file it is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<AbsPath>,
    /// The lines that are attached, where it is text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lines: Option<u32>,
    /// The bytes that are attached.
    #[serde(default)]
    pub bytes: u64,
    /// Whether only a part is attached.
    #[serde(default)]
    pub cut: bool,
    /// Why nothing of it is attached.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
}

/// The kinds of attachments.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum AttachmentKind {
    /// A file or document.
    File,
    /// The list of a folder's content.
    Folder,
    /// A definition in the code.
    Symbol,
    /// Diagnostics.
    Diagnostics,
    /// Changes in the repository.
    Diff,
    /// Another conversation.
    Session,
    /// Selected text.
    Selection,
    /// A picture.
    Image,
    /// Pasted text.
    Pasted,
    /// The editor's state.
    Editor,
}

impl Attachment {
    /// Something of which nothing is attached.
    #[must_use]
    pub fn missing(kind: AttachmentKind, label: &str, problem: &str) -> Self {
        let problem = Some(problem.to_owned());
        Self { kind, label: label.to_owned(), path: None, lines: None, bytes: 0, cut: false, problem }
    }
}

impl LineSpan {
    /// How many they are.
    #[must_use]
    pub fn count(self) -> usize {
        self.last.saturating_sub(self.first) as usize + 1
    }
}
