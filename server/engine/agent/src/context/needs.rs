//! Tools by need: requests to models with a small context window, and those with many tools of MCP servers.
//!
//! Rule: a small window gets the tools that all work needs, others when the model asks for them, and no more of the
//! instruction files than a share of it. In other windows tools of MCP servers are declared by need where all of them
//! would take more than a share of the window. Omitted files and tools are named, so that the model can get them.

use std::collections::BTreeSet;

use super::system::SystemPrompt;
use crate::conversation::Conversation;
use kode_model::profile::Profile;
use kode_model::{Block, ToolDeclaration};
use kode_permission::rules::names::MCP_PREFIX;
use kode_tool::names::{ESSENTIAL, TOOL_SEARCH};

/// The largest small window, in tokens.
const SMALL_WINDOW: u64 = 32_768;

/// Instruction files take at most the window divided by this number.
const MEMORY_PART: u64 = 16;

/// The list of the project's files takes at most the window divided by this number.
const OVERVIEW_PART: u64 = 32;

/// Tools of MCP servers are declared by need where they take more than the window divided by this number.
const SERVER_TOOLS_PART: u64 = 10;

/// The list of tools that are not declared takes at most the window divided by this number.
const LIST_PART: u64 = 20;

/// Roughly how many bytes make a token.
const BYTES_PER_TOKEN: u64 = 4;

/// The most characters of a tool's description.
const MAX_DESCRIPTION: usize = 300;

/// The most characters of the description of an argument.
const MAX_ARGUMENT: usize = 120;

/// How much a model can be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ContextRoom {
    /// Everything but more tools of MCP servers than fit; the window in tokens.
    Ample(u64),
    /// Little; the window in tokens.
    Small(u64),
}

/// The tools of a request.
pub(super) struct NeededTools {
    /// Those that are declared.
    pub(super) declared: Vec<ToolDeclaration>,
    /// Those that the system prompt names.
    pub(super) left_out: Vec<ToolDeclaration>,
}

impl ContextRoom {
    /// The room that the model of a profile has.
    pub(crate) fn of(profile: &Profile) -> Self {
        match profile.context_window {
            window if window <= SMALL_WINDOW => Self::Small(window),
            window => Self::Ample(window),
        }
    }

    fn window(self) -> u64 {
        match self {
            Self::Ample(window) | Self::Small(window) => window,
        }
    }

    /// Whether tools of this size are declared by need.
    pub(super) fn is_by_need(self, tools: &[ToolDeclaration]) -> bool {
        match self {
            Self::Small(_) => true,
            Self::Ample(window) => {
                let of_servers = tools.iter().filter(|tool| is_of_server(&tool.name));
                of_servers.map(tokens).sum::<u64>() > window / SERVER_TOOLS_PART
            }
        }
    }
}

fn is_of_server(name: &str) -> bool {
    name.starts_with(MCP_PREFIX)
}

/// Roughly how many tokens a declaration takes.
fn tokens(tool: &ToolDeclaration) -> u64 {
    let bytes = tool.name.len() + tool.description.len() + tool.input_schema.json().len();
    u64::try_from(bytes).unwrap_or(u64::MAX) / BYTES_PER_TOKEN
}

/// The names and words by which the model of a conversation has asked for tools. Reads all of its messages: only where tools
/// are declared by need.
pub(crate) fn of(conversation: &Conversation) -> BTreeSet<String> {
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

/// The part of the system prompt that names the tools which are not declared; empty without any. Descriptions are left
/// out where they take too much of the window, then names.
pub(super) fn further(left_out: &[ToolDeclaration], room: ContextRoom) -> String {
    if left_out.is_empty() {
        return String::new();
    }
    let most = usize::try_from(room.window() / LIST_PART * BYTES_PER_TOKEN).unwrap_or(usize::MAX);
    let mut lines: Vec<_> = left_out
        .iter()
        .map(|tool| format!("- {}: {}", tool.name, first_sentence(&tool.description)))
        .collect();
    if lines.iter().map(|line| line.len() + 1).sum::<usize>() > most {
        lines = left_out.iter().map(|tool| format!("- {}", tool.name)).collect();
    }
    let mut used = 0;
    let fits = |line: &&String| {
        used += line.len() + 1;
        used <= most
    };
    let fitting = lines.iter().take_while(fits).count();
    if fitting < lines.len() {
        let more = lines.len() - fitting;
        lines.truncate(fitting);
        lines.push(format!("- and {more} more: call {TOOL_SEARCH} with words that their names may contain"));
    }
    format!("# Further tools\nCall {TOOL_SEARCH} with their names to get them:\n{}", lines.join("\n"))
}

/// Divides the tools into those that are declared and those that are named.
pub(super) fn divide(
    tools: Vec<ToolDeclaration>,
    needed: &BTreeSet<String>,
    room: ContextRoom,
) -> NeededTools {
    let is_declared = |tool: &ToolDeclaration| match room {
        ContextRoom::Small(_) => is_needed(&tool.name, needed),
        ContextRoom::Ample(_) => !is_of_server(&tool.name) || is_needed(&tool.name, needed),
    };
    let (declared, left_out) = tools.into_iter().partition(is_declared);
    NeededTools { declared, left_out }
}

/// Which tools by need are declared from the start or because the model asked for them.
fn is_needed(name: &str, needed: &BTreeSet<String>) -> bool {
    let lower = name.to_lowercase();
    name == TOOL_SEARCH
        || ESSENTIAL.contains(&name)
        || needed.iter().any(|word| lower.contains(word.as_str()))
}

/// A declaration with shorter descriptions.
pub(super) fn shortened(mut tool: ToolDeclaration) -> ToolDeclaration {
    tool.description = shorter(&tool.description, MAX_DESCRIPTION);
    let mut schema = serde_json::Value::clone(&tool.input_schema);
    if let Some(properties) = schema.get_mut("properties").and_then(serde_json::Value::as_object_mut) {
        for property in properties.values_mut() {
            if let Some(serde_json::Value::String(text)) = property.get_mut("description") {
                *text = shorter(text, MAX_ARGUMENT);
            }
        }
        tool.input_schema = schema.into();
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
            input_schema: json!({}).into(),
            grammar: None,
        };
        let room = ContextRoom::Small(8_192);
        let text = further(&[tool("Task"), tool("WebFetch")], room);
        assert!(text.ends_with("- Task: Does it.\n- WebFetch: Does it."), "{text}");
        assert_eq!(further(&[], room), "");
        let many: Vec<_> = (0..100).map(|number| tool(&format!("mcp__big__tool_{number}"))).collect();
        let text = further(&many, ContextRoom::Small(8_192));
        assert!(text.len() < 8_192 / 5 + 200 && !text.contains("Does it."), "{text}");
        assert!(text.contains("mcp__big__tool_0\n") && text.contains("more: call ToolSearch"), "{text}");
    }

    #[test]
    fn many_tools_of_servers_are_by_need_in_every_window() {
        let tool = |name: String| ToolDeclaration {
            name,
            description: "word ".repeat(100),
            input_schema: json!({}).into(),
            grammar: None,
        };
        let room = ContextRoom::Ample(200_000);
        let with = |count: usize| {
            let of_server = (0..count).map(|number| tool(format!("mcp__big__tool_{number}")));
            of_server.chain([tool("Task".to_owned())]).collect::<Vec<_>>()
        };
        assert!(!room.is_by_need(&with(100)) && room.is_by_need(&with(200)));
        let divided = divide(with(200), &BTreeSet::from(["tool_7".to_owned()]), room);
        let names: Vec<_> = divided.declared.iter().map(|tool| tool.name.as_str()).collect();
        assert_eq!(names.first().zip(names.last()), Some((&"mcp__big__tool_7", &"Task")));
        assert_eq!((names.len(), divided.left_out.len()), (12, 189), "tool_7 and tool_70 to tool_79");
    }
}
