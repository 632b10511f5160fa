//! Requests to models with a small context window: short, and with few tools at first.
//!
//! Rule: a small window gets the tools that all work needs, others when the model asks for them, and no more of the
//! instruction files than a share of it. Omitted files are named, so that the model can get it.

use std::collections::BTreeSet;

use super::system::SystemPrompt;
use crate::conversation::Conversation;
use kode_model::profile::Profile;
use kode_model::{Block, ToolDeclaration};
use kode_tool::names::{ESSENTIAL, TOOL_SEARCH};

/// The largest small window, in tokens.
const SMALL_WINDOW: u64 = 32_768;

/// Instruction files take at most the window divided by this number.
const MEMORY_PART: u64 = 16;

/// The list of the project's files takes at most the window divided by this number.
const OVERVIEW_PART: u64 = 32;

/// Roughly how many bytes make a token.
const BYTES_PER_TOKEN: u64 = 4;

/// The most characters of a tool's description.
const MAX_DESCRIPTION: usize = 300;

/// The most characters of the description of an argument.
const MAX_ARGUMENT: usize = 120;

/// How much a model can be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ContextRoom {
    /// Everything.
    Ample,
    /// A window of this number of tokens.
    Small(u64),
}

impl ContextRoom {
    /// The room that the model of a profile has.
    pub(crate) fn of(profile: &Profile) -> Self {
        match profile.context_window {
            window if window <= SMALL_WINDOW => Self::Small(window),
            _ => Self::Ample,
        }
    }
}

/// The names and words by which the model of a conversation has asked for tools; nothing where it is offered all.
pub(crate) fn of(conversation: &Conversation, room: ContextRoom) -> BTreeSet<String> {
    if room == ContextRoom::Ample {
        return BTreeSet::new();
    }
    conversation.thread.read(|thread| {
        let blocks = thread.messages.iter().flat_map(|message| &message.content);
        blocks.filter_map(asked).flatten().collect()
    })
}

/// The tools that a call asks for.
fn asked(block: &Block) -> Option<Vec<String>> {
    let Block::ToolUse { name, input, .. } = block else { return None };
    if name != TOOL_SEARCH {
        // A tool that was called stays.
        return Some(vec![name.to_lowercase()]);
    }
    let query = input.get("query")?.as_str()?.to_lowercase();
    let words =
        query.split(|char: char| !char.is_alphanumeric() && char != '_').filter(|word| word.len() > 2);
    Some(words.filter(|word| *word != "select").map(str::to_owned).collect())
}

/// Shortens a prompt to the room.
pub(super) fn fit(prompt: SystemPrompt, room: ContextRoom) -> SystemPrompt {
    let ContextRoom::Small(window) = room else { return prompt };
    let memory = cut(&prompt.memory, window / MEMORY_PART, "Read the instruction files for the rest.");
    SystemPrompt { memory, ..prompt }
}

/// The most tokens of the project's overview; `None` for all of it.
pub(super) fn overview_tokens(room: ContextRoom) -> Option<u64> {
    let ContextRoom::Small(window) = room else { return None };
    Some(window / OVERVIEW_PART)
}

/// A text of at most this number of tokens, cut at the end of a line.
pub(super) fn cut(text: &str, tokens: u64, rest: &str) -> String {
    let most = usize::try_from(tokens.saturating_mul(BYTES_PER_TOKEN)).unwrap_or(usize::MAX);
    if text.len() <= most {
        return text.to_owned();
    }
    let mut end = most;
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    let kept = &text[..end];
    let kept = kept.rfind('\n').map_or(kept, |line| &kept[..line]);
    format!("{}\n[Cut: the context window is small. {rest}]", kept.trim_end())
}

/// The part of the system prompt that names the tools which are not declared; empty without any.
pub(super) fn further(left_out: &[ToolDeclaration]) -> String {
    if left_out.is_empty() {
        return String::new();
    }
    let lines = left_out.iter().map(|tool| format!("- {}: {}", tool.name, first_sentence(&tool.description)));
    format!(
        "# Further tools\nCall {TOOL_SEARCH} with their names to get them:\n{}",
        lines.collect::<Vec<_>>().join("\n")
    )
}

/// Which declared tools a small window has from the start or by need.
pub(super) fn is_needed(name: &str, needed: &BTreeSet<String>) -> bool {
    let lower = name.to_lowercase();
    name == TOOL_SEARCH
        || ESSENTIAL.contains(&name)
        || needed.iter().any(|word| lower.contains(word.as_str()))
}

/// A declaration with shorter descriptions.
pub(super) fn shortened(mut tool: ToolDeclaration) -> ToolDeclaration {
    tool.description = shorter(&tool.description, MAX_DESCRIPTION);
    if let Some(properties) =
        tool.input_schema.get_mut("properties").and_then(serde_json::Value::as_object_mut)
    {
        for property in properties.values_mut() {
            if let Some(serde_json::Value::String(text)) = property.get_mut("description") {
                *text = shorter(text, MAX_ARGUMENT);
            }
        }
    }
    tool
}

/// Whole sentences of a text, up to `most` characters, and at least the first.
fn shorter(text: &str, most: usize) -> String {
    let mut end = first_sentence(text).len();
    for (at, _) in text.match_indices(". ") {
        if at < most {
            end = end.max(at + 1);
        }
    }
    if text.len() <= most { text.to_owned() } else { text[..end].to_owned() }
}

fn first_sentence(text: &str) -> &str {
    let line = text.lines().next().unwrap_or_default();
    line.find(". ").map_or(line, |end| &line[..=end])
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn tools_are_asked_for_by_name_and_by_word() {
        let call = |name: &str, input: serde_json::Value| Block::ToolUse {
            id: "c".into(),
            name: name.into(),
            input,
            input_error: None,
        };
        let query = |query: &str| asked(&call(TOOL_SEARCH, json!({ "query": query }))).unwrap_or_default();
        assert_eq!(query("select:WebFetch,notebook"), ["webfetch", "notebook"]);
        assert_eq!(query("a"), Vec::<String>::new());
        assert_eq!(asked(&call("Task", json!({}))), Some(vec!["task".to_owned()]));
        let needed = BTreeSet::from(["web".to_owned()]);
        for (name, expected) in [("WebFetch", true), ("Read", true), (TOOL_SEARCH, true), ("Task", false)] {
            assert_eq!(is_needed(name, &needed), expected, "{name}");
        }
    }

    #[test]
    fn descriptions_keep_whole_sentences() {
        let long = format!("First. {} Second.", "word ".repeat(100));
        assert_eq!(shorter(&long, 20), "First.");
        assert_eq!(shorter("One. Two. Three is long", 12), "One. Two.");
        assert_eq!(shorter("Short.", 20), "Short.");
        assert_eq!(first_sentence("A line without an end\nand more"), "A line without an end");
    }

    #[test]
    fn instructions_are_cut_at_a_line_and_say_so() {
        let text = "one line\n".repeat(100);
        let cut = cut(&text, 10, "Read the file.");
        assert!(
            cut.len() < 120 && cut.contains("[Cut: the context window is small. Read the file.]"),
            "{cut}"
        );
        assert!(cut.lines().take(4).all(|line| line == "one line"), "{cut}");
        assert_eq!(super::cut("short", 10, ""), "short");
    }

    #[test]
    fn what_is_left_out_is_named() {
        let tool = |name: &str| ToolDeclaration {
            name: name.into(),
            description: "Does it. And more.".into(),
            input_schema: json!({}),
            grammar: None,
        };
        let text = further(&[tool("Task"), tool("WebFetch")]);
        assert!(text.ends_with("- Task: Does it.\n- WebFetch: Does it."), "{text}");
        assert_eq!(further(&[]), "");
    }
}
