//! The names of tools: the canonical ones, what other agents call them, and the parameters a rule can refer to.
//!
//! Rule: everything past this table speaks canonical names; an alias never means two tools. The names of MCP tools are
//! unknown beforehand, so a rule for one is compared with every form such a name has.

/// The meaning of the text in the parentheses of a rule for a tool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SpecifierKind {
    /// Nothing but `parameter:value`.
    Nothing,
    /// A command.
    Command,
    /// A path that is read.
    ReadPath,
    /// A path that is written.
    WritePath,
    /// `domain:host`.
    Domain,
    /// The name of an agent, a skill or a command.
    Name,
}

struct RuleTool {
    name: &'static str,
    aliases: &'static [&'static str],
    takes: SpecifierKind,
    /// The parameters of `parameter:value`. Those that could begin a command are left out of Bash's.
    parameters: &'static [&'static str],
}

const TOOLS: [RuleTool; 41] = [
    RuleTool {
        name: "Read",
        aliases: &["fs_read", "read_file", "FileRead", "View"],
        takes: SpecifierKind::ReadPath,
        parameters: &["file_path", "offset", "limit", "pages"],
    },
    RuleTool {
        name: "Write",
        aliases: &["fs_write", "write_file", "FileWrite", "Replace"],
        takes: SpecifierKind::WritePath,
        parameters: &["file_path", "content"],
    },
    RuleTool {
        name: "Edit",
        aliases: &["fs_edit", "edit_file", "edit_text", "FileEdit", "Update"],
        takes: SpecifierKind::WritePath,
        parameters: &["file_path", "old_string", "new_string", "replace_all"],
    },
    RuleTool {
        name: "MultiEdit",
        aliases: &["fs_multi_edit", "multi_edit"],
        takes: SpecifierKind::WritePath,
        parameters: &["file_path"],
    },
    RuleTool {
        name: "apply_patch",
        aliases: &["ApplyPatch", "applyPatch", "patch"],
        takes: SpecifierKind::WritePath,
        parameters: &["input"],
    },
    RuleTool {
        name: "NotebookEdit",
        aliases: &["notebook_edit", "edit_notebook", "NotebookEditCell"],
        takes: SpecifierKind::WritePath,
        parameters: &["notebook_path", "cell_id", "new_source", "cell_type", "edit_mode"],
    },
    RuleTool {
        name: "NotebookRead",
        aliases: &["ReadNotebook"],
        takes: SpecifierKind::ReadPath,
        parameters: &["notebook_path", "cell_id"],
    },
    RuleTool {
        name: "Glob",
        aliases: &["fs_glob", "GlobTool"],
        takes: SpecifierKind::ReadPath,
        parameters: &["pattern", "path"],
    },
    RuleTool {
        name: "Grep",
        aliases: &["fs_grep", "GrepTool"],
        takes: SpecifierKind::ReadPath,
        parameters: &["pattern", "path", "glob", "type", "output_mode", "multiline", "head_limit", "offset"],
    },
    RuleTool {
        name: "LS",
        aliases: &["ListFiles", "list_files", "list_directory"],
        takes: SpecifierKind::ReadPath,
        parameters: &["path", "ignore"],
    },
    RuleTool {
        name: "Bash",
        aliases: &["bash", "bash_run", "run_command", "Shell"],
        takes: SpecifierKind::Command,
        parameters: &["description", "run_in_background", "dangerouslyDisableSandbox"],
    },
    RuleTool {
        name: "PowerShell",
        aliases: &["powershell", "pwsh"],
        takes: SpecifierKind::Command,
        parameters: &["description", "run_in_background", "dangerouslyDisableSandbox"],
    },
    RuleTool {
        name: "BashOutput",
        aliases: &["TaskOutput", "bash_logs", "AgentOutputTool"],
        takes: SpecifierKind::Nothing,
        parameters: &["task_id", "shell_id", "bash_id", "block", "timeout", "filter"],
    },
    RuleTool {
        name: "KillShell",
        aliases: &["TaskStop", "bash_kill", "KillBash"],
        takes: SpecifierKind::Nothing,
        parameters: &["shell_id", "task_id"],
    },
    RuleTool {
        name: "Task",
        aliases: &["Agent", "task_run"],
        takes: SpecifierKind::Name,
        parameters: &[
            "description",
            "prompt",
            "subagent_type",
            "model",
            "resume",
            "run_in_background",
            "isolation",
            "name",
        ],
    },
    RuleTool { name: "Guest", aliases: &[], takes: SpecifierKind::Nothing, parameters: &["kind", "title"] },
    RuleTool {
        name: "SendMessage",
        aliases: &[],
        takes: SpecifierKind::Nothing,
        parameters: &["to", "text"],
    },
    RuleTool {
        name: "TeamTasks",
        aliases: &[],
        takes: SpecifierKind::Nothing,
        parameters: &["action", "task", "title", "blockedBy"],
    },
    RuleTool {
        name: "WaitForMessage",
        aliases: &[],
        takes: SpecifierKind::Nothing,
        parameters: &["from", "timeout_seconds"],
    },
    RuleTool {
        name: "TodoWrite",
        aliases: &["todo_write"],
        takes: SpecifierKind::Nothing,
        parameters: &["todos"],
    },
    RuleTool {
        name: "AskUserQuestion",
        aliases: &[],
        takes: SpecifierKind::Nothing,
        parameters: &["questions"],
    },
    RuleTool {
        name: "EnterPlanMode",
        aliases: &["enter_plan_mode"],
        takes: SpecifierKind::Nothing,
        parameters: &[],
    },
    RuleTool {
        name: "ExitPlanMode",
        aliases: &["exit_plan_mode"],
        takes: SpecifierKind::Nothing,
        parameters: &["plan"],
    },
    RuleTool {
        name: "Skill",
        aliases: &["skills"],
        takes: SpecifierKind::Name,
        parameters: &["skill", "args"],
    },
    RuleTool { name: "SlashCommand", aliases: &[], takes: SpecifierKind::Name, parameters: &["command"] },
    RuleTool {
        name: "WebFetch",
        aliases: &["URLFetcher", "web_fetch", "fetch"],
        takes: SpecifierKind::Domain,
        parameters: &["url", "prompt"],
    },
    RuleTool {
        name: "WebSearch",
        aliases: &["web_search"],
        takes: SpecifierKind::Nothing,
        parameters: &["query", "allowed_domains", "blocked_domains"],
    },
    RuleTool {
        name: "ListMcpResourcesTool",
        aliases: &["ListMcpResources"],
        takes: SpecifierKind::Nothing,
        parameters: &["server"],
    },
    RuleTool {
        name: "ReadMcpResourceTool",
        aliases: &["ReadMcpResource"],
        takes: SpecifierKind::Nothing,
        parameters: &["server", "uri"],
    },
    RuleTool {
        name: "Diagnostics",
        aliases: &["getDiagnostics"],
        takes: SpecifierKind::Nothing,
        parameters: &["path", "file_path"],
    },
    RuleTool {
        name: "Symbols",
        aliases: &["lsp_symbols"],
        takes: SpecifierKind::ReadPath,
        parameters: &["file_path", "query"],
    },
    RuleTool {
        name: "Definition",
        aliases: &["lsp_definition", "goto_definition", "go_to_definition"],
        takes: SpecifierKind::ReadPath,
        parameters: &["symbol", "file_path", "line", "kind"],
    },
    RuleTool {
        name: "References",
        aliases: &["lsp_references", "find_references"],
        takes: SpecifierKind::ReadPath,
        parameters: &["symbol", "file_path", "line"],
    },
    RuleTool {
        name: "CallHierarchy",
        aliases: &["lsp_call_hierarchy"],
        takes: SpecifierKind::ReadPath,
        parameters: &["symbol", "file_path", "line", "direction", "levels"],
    },
    RuleTool {
        name: "CodeActions",
        aliases: &["get_code_actions"],
        takes: SpecifierKind::ReadPath,
        parameters: &["file_path", "line", "end_line", "kind"],
    },
    RuleTool {
        name: "RenameSymbol",
        aliases: &["lsp_rename", "rename_symbol"],
        takes: SpecifierKind::WritePath,
        parameters: &["symbol", "file_path", "line", "new_name"],
    },
    RuleTool {
        name: "ApplyCodeAction",
        aliases: &["apply_code_action"],
        takes: SpecifierKind::WritePath,
        parameters: &["file_path", "id"],
    },
    RuleTool {
        name: "Format",
        aliases: &["lsp_format", "format_document"],
        takes: SpecifierKind::WritePath,
        parameters: &["file_path", "line", "end_line"],
    },
    RuleTool {
        name: "LSP",
        aliases: &["Lsp", "lsp"],
        takes: SpecifierKind::ReadPath,
        parameters: &["operation", "filePath", "line", "character", "query"],
    },
    RuleTool { name: "Think", aliases: &["think"], takes: SpecifierKind::Nothing, parameters: &["thought"] },
    RuleTool {
        name: "ToolSearch",
        aliases: &["tool_search"],
        takes: SpecifierKind::Nothing,
        parameters: &["query"],
    },
];

/// Tools that a bare `Read` refers to.
const READING: [&str; 11] = [
    "Read",
    "NotebookRead",
    "Grep",
    "Glob",
    "LS",
    "Symbols",
    "Definition",
    "References",
    "CallHierarchy",
    "CodeActions",
    "LSP",
];
/// Tools that a bare `Edit` refers to.
const WRITING: [&str; 8] = [
    "Edit",
    "MultiEdit",
    "Write",
    "NotebookEdit",
    "apply_patch",
    "RenameSymbol",
    "ApplyCodeAction",
    "Format",
];
/// How the names of MCP tools begin.
pub const MCP_PREFIX: &str = "mcp__";

/// The canonical name of a tool: its own, the one an alias represents, or the name itself if it is unknown.
#[must_use]
pub fn canonical(name: &str) -> &str {
    find(name).map_or(name, |tool| tool.name)
}

/// All names of the tool that a name means, where it is built in.
pub fn all_names(name: &str) -> impl Iterator<Item = &'static str> {
    find(name).into_iter().flat_map(|tool| std::iter::once(tool.name).chain(tool.aliases.iter().copied()))
}

/// The other names of a tool that is built in, by its canonical name; none for others.
#[must_use]
pub fn aliases(name: &str) -> &'static [&'static str] {
    TOOLS.iter().find(|tool| tool.name == name).map_or(&[], |tool| tool.aliases)
}

/// Whether a name, canonical or an alias, is one of a tool that is built in.
#[must_use]
pub fn is_built_in(name: &str) -> bool {
    find(name).is_some()
}

/// The canonical names of all tools that are built in.
pub fn built_in() -> impl Iterator<Item = &'static str> {
    TOOLS.iter().map(|tool| tool.name)
}

/// The meaning of the text in parentheses for a tool; `None` for one that is not built in.
pub(crate) fn takes(name: &str) -> Option<SpecifierKind> {
    find(name).map(|tool| tool.takes)
}

/// Whether a rule can refer to this parameter of a tool. Those of a tool that is not built in are unknown.
pub(crate) fn has_parameter(tool: &str, parameter: &str) -> bool {
    find(tool).is_none_or(|tool| tool.parameters.contains(&parameter))
}

/// The tools that a bare canonical name refers to.
pub(crate) fn family(name: &str) -> &[&str] {
    match name {
        "Read" => &READING,
        "Edit" => &WRITING,
        _ => &[],
    }
}

/// A tool that was probably meant by an unknown name.
pub fn similar(name: &str) -> Option<&'static str> {
    TOOLS
        .iter()
        .find(|tool| {
            std::iter::once(&tool.name).chain(tool.aliases).any(|known| known.eq_ignore_ascii_case(name))
        })
        .map(|tool| tool.name)
}

/// Whether a name has one of the forms of MCP tools: `mcp__server`, `mcp__server__tool`, `mcp_server_tool`,
/// `server__tool`.
pub fn is_mcp(name: &str) -> bool {
    find(name).is_none() && (name.starts_with("mcp_") || name.contains("__"))
}

/// The other names a call of the MCP tool `mcp__server__tool` goes by: the server's own (`mcp__server`), and the forms
/// `mcp_server_tool` and `server__tool`. None for other tools.
pub fn mcp_forms(name: &str) -> Option<[String; 3]> {
    let (server, tool) = name.strip_prefix(MCP_PREFIX)?.split_once("__")?;
    Some([format!("{MCP_PREFIX}{server}"), format!("mcp_{server}_{tool}"), format!("{server}__{tool}")])
}

fn find(name: &str) -> Option<&'static RuleTool> {
    TOOLS.iter().find(|tool| tool.name == name || tool.aliases.contains(&name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_name_means_two_tools() {
        let mut names: Vec<_> =
            TOOLS.iter().flat_map(|tool| tool.aliases.iter().copied().chain([tool.name])).collect();
        names.sort_unstable();
        let all = names.len();
        names.dedup();
        assert_eq!(names.len(), all);
    }

    #[test]
    fn aliases_lead_to_the_tool_and_unknown_names_stay() {
        for (name, tool) in
            [("fs_read", "Read"), ("Agent", "Task"), ("KillBash", "KillShell"), ("Other", "Other")]
        {
            assert_eq!(canonical(name), tool);
        }
        assert_eq!(similar("webfetch"), Some("WebFetch"));
        assert_eq!(similar("Nothing"), None);
    }

    #[test]
    fn an_mcp_tool_goes_by_all_its_forms() {
        assert_eq!(
            mcp_forms("mcp__git_hub__get_me").unwrap(),
            ["mcp__git_hub", "mcp_git_hub_get_me", "git_hub__get_me"]
        );
        assert_eq!(mcp_forms("Read"), None);
        assert!(is_mcp("git__log") && is_mcp("mcp_git_log") && is_mcp("mcp__git") && !is_mcp("LS"));
    }
}
