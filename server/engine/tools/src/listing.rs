//! How people see the built-in tools in lists: a name in words, a category and search words.
//!
//! Rule: one entry for each built-in tool; a test compares this table with the registry.

/// How people see a tool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ToolListing {
    /// The name of the tool, as [`ToolFacts::name`](kode_tool::ToolFacts::name).
    pub name: &'static str,
    /// Its name in words.
    pub title: &'static str,
    /// Its purpose: `agents`, `code`, `commands`, `files`, `planning`, `questions`, `search` or `web`.
    pub category: &'static str,
    /// Words that people search it by, its category apart.
    pub tags: &'static [&'static str],
    /// Whether its calls reach the network, which is asked for although they change nothing here.
    pub uses_network: bool,
}

const fn listing(
    name: &'static str,
    title: &'static str,
    category: &'static str,
    tags: &'static [&'static str],
) -> ToolListing {
    ToolListing { name, title, category, tags, uses_network: false }
}

/// The table, in the order of names.
const LISTINGS: &[ToolListing] = &[
    listing("ApplyCodeAction", "Apply code action", "code", &["fix", "refactor", "language server"]),
    listing("AskUserQuestion", "Ask a question", "questions", &["choice", "form"]),
    listing("Bash", "Run command", "commands", &["shell", "terminal", "test", "build"]),
    listing("BashOutput", "Read command output", "commands", &["shell", "background", "log"]),
    listing("CallHierarchy", "Show callers", "code", &["calls", "usages", "language server"]),
    listing("CodeActions", "List code actions", "code", &["fix", "refactor", "language server"]),
    listing("Definition", "Go to definition", "code", &["declaration", "symbol", "language server"]),
    listing("Diagnostics", "Read diagnostics", "code", &["error", "warning", "language server"]),
    listing("Edit", "Edit file", "files", &["change", "replace"]),
    listing("EnterPlanMode", "Enter plan mode", "planning", &["plan", "mode"]),
    listing("ExitPlanMode", "Propose plan", "planning", &["plan", "mode"]),
    listing("Format", "Format file", "code", &["style", "language server"]),
    listing("Glob", "Find files", "search", &["pattern", "path"]),
    listing("Grep", "Search text", "search", &["regex", "content"]),
    listing("KillShell", "Stop command", "commands", &["shell", "background", "end"]),
    listing("LS", "List folder", "files", &["directory", "tree"]),
    listing("LSP", "Ask language server", "code", &["symbol", "language server"]),
    listing("MultiEdit", "Edit file in several places", "files", &["change", "replace"]),
    listing("NotebookEdit", "Edit notebook", "files", &["jupyter", "cell", "change"]),
    listing("PowerShell", "Run PowerShell command", "commands", &["shell", "terminal", "windows"]),
    listing("Read", "Read file", "files", &["open", "image", "pdf"]),
    listing("References", "Find references", "code", &["usages", "symbol", "language server"]),
    listing("RenameSymbol", "Rename symbol", "code", &["refactor", "language server"]),
    listing("SendMessage", "Send message to agent", "agents", &["team", "background", "mailbox"]),
    listing("Skill", "Use skill", "agents", &["instructions"]),
    listing("SlashCommand", "Use command", "agents", &["slash", "prompt"]),
    listing("Symbols", "List symbols", "code", &["outline", "function", "class", "language server"]),
    listing("Task", "Run sub-agent", "agents", &["delegate", "background"]),
    listing("TeamTasks", "Share tasks", "agents", &["team", "background", "list"]),
    listing("Think", "Think", "planning", &["reason"]),
    listing("TodoWrite", "Write todo list", "planning", &["task", "progress"]),
    listing("ToolSearch", "Search tools", "agents", &["mcp", "load"]),
    listing("WaitForMessage", "Wait for agent", "agents", &["team", "background", "mailbox"]),
    ToolListing {
        uses_network: true,
        ..listing("WebFetch", "Fetch page", "web", &["http", "url", "download"])
    },
    ToolListing {
        uses_network: true,
        ..listing("WebSearch", "Search the web", "web", &["internet", "find"])
    },
    listing("Write", "Write file", "files", &["create", "replace"]),
    listing("apply_patch", "Apply patch", "files", &["change", "diff", "move", "delete"]),
];

/// How people see the built-in tool of this name; `None` for other names.
#[must_use]
pub fn listing_of(name: &str) -> Option<&'static ToolListing> {
    LISTINGS.iter().find(|listing| listing.name == name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::built_in::built_in;

    #[test]
    fn every_built_in_tool_has_a_listing_and_every_listing_a_tool() {
        let registry = built_in();
        let mut tools: Vec<_> =
            registry.iter().map(|tool| tool.facts().name).chain(["PowerShell", "WebSearch"]).collect();
        tools.sort_unstable();
        let listed: Vec<_> = LISTINGS.iter().map(|listing| listing.name).collect();
        assert_eq!(listed, tools);
    }
}
