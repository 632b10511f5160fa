//! The tools that every session has.
//!
//! Rule: WebSearch is not among them; it is added where a search service is known. PowerShell is added where there is one, and then
//! Bash is left out where no bash is found.

use std::sync::Arc;

use crate::apply_patch::ApplyPatch;
use crate::ask_user_question::AskUserQuestion;
use crate::bash::Bash;
use crate::bash_output::BashOutput;
use crate::call_hierarchy::CallHierarchy;
use crate::code_actions::{ApplyCodeAction, CodeActions};
use crate::definition::Definition;
use crate::diagnostics::Diagnostics;
use crate::edit::Edit;
use crate::format::Format;
use crate::glob::Glob;
use crate::grep::Grep;
use crate::kill_shell::KillShell;
use crate::ls::Ls;
use crate::lsp::Lsp;
use crate::multi_edit::MultiEdit;
use crate::notebook_edit::NotebookEdit;
use crate::plan_mode::{EnterPlanMode, ExitPlanMode};
use crate::powershell::PowerShell;
use crate::read::Read;
use crate::references::References;
use crate::rename_symbol::RenameSymbol;
use crate::send_message::SendMessage;
use crate::skill::Skill;
use crate::slash_command::SlashCommand;
use crate::symbols::Symbols;
use crate::task::Task;
use crate::team_tasks::TeamTasks;
use crate::think::Think;
use crate::todo_write::TodoWrite;
use crate::tool_search::ToolSearch;
use crate::wait_for_message::WaitForMessage;
use crate::web_fetch::WebFetch;
use crate::write::Write;
use kode_base::command_shell::CommandShell;
use kode_net::WebClient;
use kode_process::programs;
use kode_tool::Registry;

/// The built-in tools.
#[must_use]
pub fn built_in() -> Registry {
    let mut registry = Registry::default();
    registry.add(ApplyCodeAction);
    registry.add(ApplyPatch);
    registry.add(AskUserQuestion);
    registry.add(Bash);
    registry.add(BashOutput);
    registry.add(CallHierarchy);
    registry.add(CodeActions);
    registry.add(Definition);
    registry.add(Diagnostics);
    registry.add(Edit);
    registry.add(Format);
    registry.add(Glob);
    registry.add(Grep);
    registry.add(KillShell);
    registry.add(Ls);
    registry.add(Lsp);
    registry.add(MultiEdit);
    registry.add(NotebookEdit);
    registry.add(EnterPlanMode);
    registry.add(ExitPlanMode);
    registry.add(Read);
    registry.add(References);
    registry.add(RenameSymbol);
    registry.add(SendMessage);
    registry.add(Skill);
    registry.add(SlashCommand);
    registry.add(Symbols);
    registry.add(Task);
    registry.add(TeamTasks);
    registry.add(Think);
    registry.add(TodoWrite);
    registry.add(ToolSearch);
    registry.add(WaitForMessage);
    registry.add(WebFetch::new(Arc::new(WebClient::default())));
    registry.add(Write);
    registry
}

/// The tools with those for the shells of this machine. Bash stays where there is no shell at all: its error says what to do.
#[must_use]
pub fn with_shells(tools: Registry) -> Registry {
    if programs::shell(CommandShell::PowerShell).is_none() {
        return tools;
    }
    let mut tools = match programs::shell(CommandShell::Bash) {
        Some(_) => tools,
        None => tools.only(|name| CommandShell::of_tool(name) != Some(CommandShell::Bash)),
    };
    tools.add(PowerShell);
    tools
}

#[cfg(test)]
mod tests {
    use super::*;
    use kode_base::paths::AbsPath;
    use kode_config::agents::{AgentType, AgentTypes, TASK};
    use kode_config::extension::places::ExtensionFolders;
    use kode_permission::rules::{Rule, names};
    use kode_tool::names::OF_TEAM;

    /// The type that a file with these lines in its front matter describes.
    fn described(more: &str) -> AgentType {
        let folder = tempfile::tempdir().unwrap();
        let agents = folder.path().join(".claude/agents");
        std::fs::create_dir_all(&agents).unwrap();
        let text = format!("---\nname: one\ndescription: Does things.\n{more}---\nYou do things.\n");
        std::fs::write(agents.join("one.md"), text).unwrap();
        let types = AgentTypes::load(&ExtensionFolders::usual(vec![AbsPath::new(folder.path()).unwrap()]));
        types.find("one").unwrap().clone()
    }

    #[test]
    fn rules_and_calls_know_every_tool_by_all_of_its_names() {
        let tools = built_in();
        for tool in tools.iter() {
            let name = tool.facts().name;
            assert!(names::is_built_in(name), "rules do not know {name}");
            for other in names::aliases(name) {
                assert_eq!(Rule::parse(other).unwrap().0.tool(), name, "{other}");
                assert_eq!(tools.find(other).unwrap().facts().name, name, "{other}");
            }
        }
    }

    #[test]
    fn a_type_has_the_tools_it_names_and_never_more_than_it_was_offered() {
        let offered = built_in();
        let names = |more: &str, offered: &Registry, may_delegate| -> Vec<&str> {
            let tools = offered.for_agent(&described(more), may_delegate).unwrap();
            let names = tools.iter().map(|tool| tool.facts().name);
            names.filter(|name| !OF_TEAM.contains(name)).collect()
        };
        let all = names("", &offered, true);
        assert!(all.contains(&"Bash") && !all.contains(&TASK), "{all:?}");
        assert_eq!(names("tools: fs_read, Nothing, Task\n", &offered, true), ["Read", "Task"]);
        assert_eq!(names("tools: Read, Task\n", &offered, false), ["Read"]);
        assert_eq!(names("tools: []\n", &offered, true), [""; 0]);
        assert_eq!(names("tools: Read, Bash\ndisallowedTools: Bash(rm *)\n", &offered, true), ["Read"]);
        let served = described("tools: Read\nmcpServers: hub\n");
        assert!(served.has_server_of("mcp__hub__get") && !served.has_server_of("mcp__hubs__get"));
        let few = offered.only(|name| name == "Read");
        assert_eq!(names("", &few, true), ["Read"]);
        let error = offered.for_agent(&described("tools: Nothing\n"), true).err().unwrap();
        assert!(error.message.contains("`one`") && error.message.contains("Nothing"), "{error}");
    }

    #[test]
    fn a_type_with_tools_has_those_of_a_team_besides_unless_it_refuses_them() {
        let offered = built_in();
        for (more, expected) in [
            ("", 3),
            ("tools: Read\n", 3),
            ("tools: Read\ndisallowedTools: SendMessage\n", 2),
            ("tools: []\n", 0),
        ] {
            let tools = offered.for_agent(&described(more), true).unwrap();
            let of_team = tools.iter().filter(|tool| OF_TEAM.contains(&tool.facts().name)).count();
            assert_eq!(of_team, expected, "{more}");
        }
        let few = offered.only(|name| name == "Read");
        let tools = few.for_agent(&described("tools: Read\n"), true).unwrap();
        assert_eq!(tools.iter().count(), 1, "never more than it was offered");
    }
}
