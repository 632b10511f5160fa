//! A script as it was read: commands and what joins them.
//!
//! Rule: data only; what could not be read is among the problems and is never left out.

use super::lexer::RawWord;

/// A script as far as it was read.
#[derive(Debug, Default)]
pub(super) struct ShellScript {
    pub body: Vec<(ScriptNode, Continuation)>,
    pub problems: Vec<ScriptProblem>,
    /// The text of the here-documents, in order.
    pub documents: Vec<String>,
    /// The words in source order, for comparison with another reader.
    pub spans: Vec<WordSpan>,
    /// Functions the script defines.
    pub functions: Vec<String>,
    /// Scripts inside substitutions, but for the plain ones in arguments of commands.
    pub scripts: Vec<String>,
    /// Stand-ins of the same length for parts that the other reader sees otherwise, and where they stand.
    pub stand_ins: Vec<(usize, String)>,
}

impl ShellScript {
    /// The text with the stand-ins in it.
    pub(super) fn for_comparison(&self, text: &str) -> String {
        let mut bytes = text.as_bytes().to_vec();
        for (start, stand_in) in &self.stand_ins {
            if let Some(part) = bytes.get_mut(*start..start + stand_in.len()) {
                part.copy_from_slice(stand_in.as_bytes());
            }
        }
        String::from_utf8_lossy(&bytes).into_owned()
    }
}

/// The problem of a part of a script.
#[derive(Debug)]
pub(super) struct ScriptProblem {
    pub start: usize,
    pub end: usize,
    pub reason: &'static str,
    pub opaque: bool,
}

/// A word and the part it plays.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct WordSpan {
    pub start: usize,
    pub end: usize,
    pub part: WordRole,
}

/// The part a word plays.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum WordRole {
    /// It names the program.
    Name,
    /// It is an argument, an assignment or the value of a loop.
    Argument,
    /// It is the file of a redirection.
    Target,
}

/// The text after a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Continuation {
    Always,
    Background,
    OnSuccess,
    OnFailure,
}

#[derive(Debug)]
pub(super) enum ScriptNode {
    Command(RawCommand),
    Pipeline { negated: bool, elements: Vec<ScriptNode> },
    Compound { kind: Compound, body: Vec<(ScriptNode, Continuation)>, redirects: Vec<Redirect> },
}

/// How a compound command runs its body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Compound {
    Subshell,
    Group,
    /// Maybe, or more than once.
    Maybe,
}

#[derive(Debug, Default)]
pub(super) struct RawCommand {
    pub start: usize,
    pub end: usize,
    pub assignments: Vec<RawWord>,
    pub words: Vec<RawWord>,
    pub redirects: Vec<Redirect>,
}

#[derive(Debug)]
pub(super) enum Redirect {
    Read(RawWord),
    Write(RawWord),
    Text,
    /// The place of its text in [`ShellScript::documents`].
    Document(usize),
}
