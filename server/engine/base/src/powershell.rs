//! The syntax of a PowerShell command, as PowerShell's own parser gives it.
//!
//! Rule: plain data, and checked: an answer that is not whole and consistent is no syntax, but a reason to say so.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;
use serde_json::from_str;

/// The version of the answer that is understood.
const VERSION: u32 = 1;
/// The most nodes of a syntax tree.
const MAX_NODES: usize = 5_000;
/// How deep nodes may lie in each other.
const MAX_DEPTH: usize = 200;
/// Words that have the parser load modules, so that it is not asked about a command that holds one.
const LOADING: [&str; 3] = ["using", "configuration", "import-dscresource"];

/// How a command reads, or why that is not known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SyntaxReading {
    /// The nodes in source order, each after its parent; the first is the root.
    pub nodes: Result<Vec<SyntaxNode>, String>,
}

/// One node of a syntax tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SyntaxNode {
    /// The name of its type in PowerShell, for example `CommandAst`.
    pub kind: String,
    /// Where its text begins, in bytes of the command.
    pub start: usize,
    /// Where its text ends, in bytes of the command.
    pub end: usize,
    /// The number of its parent; `None` for the root.
    pub parent: Option<usize>,
    /// The value of a constant, or the name of a variable or a parameter.
    pub value: String,
    /// A variant of its kind, such as the operator in front of a command; mostly empty.
    pub form: String,
}

/// The first line of an answer.
#[derive(Deserialize)]
struct AnswerHead {
    version: u32,
    nodes: usize,
    problems: usize,
    problem: String,
}

/// Any other line.
#[derive(Deserialize)]
struct AnswerNode {
    kind: String,
    /// In UTF-16 units, as the end.
    start: usize,
    end: usize,
    parent: i64,
    #[serde(default)]
    value: String,
    #[serde(default)]
    form: String,
}

impl SyntaxReading {
    /// That of a command that no parser was asked about.
    #[must_use]
    pub fn unread() -> Self {
        Self::failed("PowerShell's parser was not asked about it")
    }

    /// No syntax, for this reason; without a final period.
    #[must_use]
    pub fn failed(reason: impl Into<String>) -> Self {
        Self { nodes: Err(reason.into()) }
    }

    /// The answer of the parser's script about a command.
    #[must_use]
    pub fn of_answer(command: &str, answer: &str) -> Self {
        Self { nodes: read(command, answer) }
    }
}

/// Why the parser must not be asked about a command, if it must not; without a final period.
#[must_use]
pub fn objection(command: &str) -> Option<String> {
    let is_part = |letter: char| !letter.is_alphanumeric() && !matches!(letter, '_' | '-' | '.' | '/' | '\\');
    let mut words = command.split(is_part);
    let word = words.find(|word| LOADING.iter().any(|loading| word.eq_ignore_ascii_case(loading)))?;
    Some(format!("it holds the word `{word}`, which can load modules"))
}

fn read(command: &str, answer: &str) -> Result<Vec<SyntaxNode>, String> {
    let unreadable = |what: &str| format!("the answer of PowerShell's parser cannot be read: {what}");
    let mut lines = answer.trim_start_matches('\u{feff}').lines().filter(|line| !line.trim().is_empty());
    let head: AnswerHead = lines
        .next()
        .ok_or_else(|| unreadable("it is empty"))
        .and_then(|line| from_str(line).map_err(|error| unreadable(&error.to_string())))?;
    if head.version != VERSION {
        return Err(unreadable("it has another version"));
    }
    if head.problems > 0 {
        let problem = text(&head.problem).unwrap_or_default();
        return Err(format!(
            "PowerShell's parser does not accept it: {}",
            problem.trim().trim_end_matches('.')
        ));
    }
    if head.nodes > MAX_NODES {
        return Err(format!("it has more than {MAX_NODES} parts"));
    }
    let offsets = byte_offsets(command);
    let mut nodes: Vec<SyntaxNode> = Vec::with_capacity(head.nodes);
    let mut depths: Vec<usize> = Vec::with_capacity(head.nodes);
    for line in lines {
        let found: AnswerNode = from_str(line).map_err(|error| unreadable(&error.to_string()))?;
        let place = |unit: usize| offsets.get(unit).copied().flatten();
        let (Some(start), Some(end)) = (place(found.start), place(found.end)) else {
            return Err(unreadable("a part lies outside of the command"));
        };
        let parent = match (usize::try_from(found.parent).ok(), nodes.is_empty()) {
            (None, true) => None,
            (Some(parent), false) if parent < nodes.len() => Some(parent),
            _ => return Err(unreadable("a part has no place in the whole")),
        };
        let depth = parent.map_or(0, |parent| depths[parent] + 1);
        if depth > MAX_DEPTH {
            return Err(format!("its parts nest deeper than {MAX_DEPTH}"));
        }
        if start > end {
            return Err(unreadable("a part ends before it begins"));
        }
        let value = text(&found.value).ok_or_else(|| unreadable("a value is no text"))?;
        nodes.push(SyntaxNode { kind: found.kind, start, end, parent, value, form: found.form });
        depths.push(depth);
    }
    if nodes.len() != head.nodes || nodes.is_empty() {
        return Err(unreadable("it is not whole"));
    }
    Ok(nodes)
}

/// The text in base64.
fn text(encoded: &str) -> Option<String> {
    String::from_utf8(STANDARD.decode(encoded).ok()?).ok()
}

/// For each UTF-16 unit of a text, and its end, the byte where it begins; nothing within a character.
fn byte_offsets(text: &str) -> Vec<Option<usize>> {
    let mut offsets = Vec::with_capacity(text.len() + 1);
    for (at, letter) in text.char_indices() {
        offsets.push(Some(at));
        offsets.extend((1..letter.len_utf16()).map(|_| None));
    }
    offsets.push(Some(text.len()));
    offsets
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: &str = r#"{"version":1,"nodes":2,"problems":0,"problem":""}"#;
    const ROOT: &str = r#"{"kind":"ScriptBlockAst","start":0,"end":4,"parent":-1}"#;

    fn reason(command: &str, answer: &str) -> String {
        SyntaxReading::of_answer(command, answer).nodes.unwrap_err()
    }

    #[test]
    fn places_are_in_bytes_and_values_are_text() {
        let command = "\u{1f600}é1";
        let child = format!(
            r#"{{"form":"BareWord","kind":"StringConstantExpressionAst","start":2,"end":3,"parent":0,"value":"{}"}}"#,
            STANDARD.encode("é")
        );
        let answer = format!("\u{feff}{HEAD}\r\n{ROOT}\r\n{child}\r\n");
        let nodes = SyntaxReading::of_answer(command, &answer).nodes.unwrap();
        assert_eq!((nodes[0].start, nodes[0].end, nodes[0].parent), (0, command.len(), None));
        assert_eq!((&command[nodes[1].start..nodes[1].end], nodes[1].parent), ("é", Some(0)));
        assert_eq!((nodes[1].value.as_str(), nodes[1].form.as_str()), ("é", "BareWord"));
    }

    #[test]
    fn an_answer_that_is_not_whole_and_consistent_is_no_syntax() {
        let node = |start: usize, end: usize, parent: i64| {
            format!(r#"{{"kind":"PipelineAst","start":{start},"end":{end},"parent":{parent}}}"#)
        };
        for (answer, expected) in [
            (String::new(), "it is empty"),
            ("Oops".to_owned(), "cannot be read"),
            (r#"{"version":2,"nodes":2,"problems":0,"problem":""}"#.to_owned(), "another version"),
            (format!("{HEAD}\n{ROOT}"), "not whole"),
            (format!("{HEAD}\n{ROOT}\n{}\n{}", node(0, 1, 0), node(0, 1, 0)), "not whole"),
            (format!("{HEAD}\n{ROOT}\n{}", node(0, 9, 0)), "outside of the command"),
            (format!("{HEAD}\n{ROOT}\n{}", node(3, 1, 0)), "ends before it begins"),
            (format!("{HEAD}\n{ROOT}\n{}", node(0, 1, 1)), "no place"),
            (format!("{HEAD}\n{ROOT}\n{}", node(0, 1, -1)), "no place"),
            (r#"{"version":1,"nodes":9000,"problems":0,"problem":""}"#.to_owned(), "more than 5000 parts"),
            (
                format!(
                    r#"{{"version":1,"nodes":0,"problems":1,"problem":"{}"}}"#,
                    STANDARD.encode("Missing '}'.")
                ),
                "does not accept it: Missing '}'",
            ),
        ] {
            let found = reason("a b ", &answer);
            assert!(found.contains(expected), "{answer}: {found}");
        }
        let deep: String = (0..300).map(|at| node(0, 1, at) + "\n").collect();
        let head = r#"{"version":1,"nodes":301,"problems":0,"problem":""}"#;
        assert!(reason("a b ", &format!("{head}\n{ROOT}\n{deep}")).contains("nest deeper"));
    }

    #[test]
    fn the_parser_is_not_asked_about_words_that_have_it_load_modules() {
        for command in
            ["using module ./x.psm1", "Configuration C { }", "a;\tUSING namespace System", "$using:x"]
        {
            assert!(objection(command).is_some(), "{command}");
        }
        for command in ["Get-Content configuration.json", "Get-Item ./using/x", "Write-Output misusing"] {
            assert_eq!(objection(command), None, "{command}");
        }
    }
}
