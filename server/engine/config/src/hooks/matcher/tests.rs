//! Which calls the matcher of a hook fires for.

use serde_json::json;

use super::*;
use kode_base::call::{CommandLanguage, ToolKind, Touch};
use kode_base::command_shell::CommandShell;
use kode_base::paths::AbsPath;
use kode_text::host::NoEditor;

fn root() -> AbsPath {
    AbsPath::new("/w").unwrap()
}

fn workspace() -> Workspace {
    Workspace::new(std::sync::Arc::new(NoEditor), vec![root()], root())
}

fn matcher(value: Value, is_glob_dialect: bool) -> Result<Matcher, String> {
    let root = root();
    Matcher::parse(Some(&value), is_glob_dialect, PatternBase { cwd: &root, root: &root })
}

/// Whether a matcher is for a call of a tool.
fn fires_with(value: Value, is_glob_dialect: bool, tool: &str, input: &Value) -> bool {
    let touches = match input.get("command").and_then(Value::as_str) {
        Some(command) => {
            let language = CommandLanguage::unread(CommandShell::of_tool(tool).unwrap_or_default());
            let (command, directory) = (command.to_owned(), root());
            vec![Touch::Command { command, directory, outside_sandbox: false, language }]
        }
        None => Vec::new(),
    };
    let case = GateCase { tool, kind: ToolKind::Execute, input, touches: &touches };
    let workspace = workspace();
    let subject = MatchSubject { value: Some(tool), call: Some(&case), workspace: &workspace };
    matcher(value, is_glob_dialect).unwrap().matches(subject)
}

fn fires(text: &str, tool: &str) -> bool {
    fires_with(json!(text), false, tool, &json!({}))
}

#[test]
fn names_are_exact_and_anything_else_is_looked_for_in_the_name() {
    for (text, tool, expected) in [
        ("", "Read", true),
        ("*", "Read", true),
        ("all", "Read", true),
        ("Edit", "Edit", true),
        ("Edit", "Write", false),
        ("Edit", "NotebookEdit", false),
        ("Edit.*", "NotebookEdit", true),
        ("Edit|Write", "Write", true),
        ("Edit, Write", "Write", true),
        ("Edit|Write", "MultiEdit", false),
        ("^(Edit|Write)$", "Write", true),
        ("^(Edit|Write)$", "MultiEdit", false),
        ("edit", "Edit", false),
        ("mcp__git__.*", "mcp__git__log", true),
        ("mcp__git", "mcp__git__log", false),
        ("mcp__.*__write.*", "mcp__git__write_file", true),
        ("^(?!Bash$)", "Read", true),
        ("^(?!Bash$)", "Bash", false),
        ("Notebook(Edit|Read)", "NotebookEdit", true),
        ("*Edit", "MultiEdit", true),
        ("*Edit", "Write", false),
    ] {
        assert_eq!(fires(text, tool), expected, "{text} for {tool}");
    }
}

#[test]
fn a_tool_is_meant_by_any_of_its_names() {
    for (text, tool, expected) in [
        ("Agent", "Task", true),
        ("Task", "Task", true),
        ("TaskStop", "KillShell", true),
        ("^Agent$", "Task", true),
        ("read_file", "Read", true),
        ("^(?!Agent$).*", "Task", false),
        ("Agent", "Read", false),
    ] {
        assert_eq!(fires(text, tool), expected, "{text} for {tool}");
    }
}

#[test]
fn where_other_agents_write_globs_they_are_globs() {
    for (text, tool, is_glob_dialect, expected) in [
        ("Notebook*", "NotebookEdit", true, true),
        ("Edit*", "NotebookEdit", true, false),
        ("Edit*", "NotebookEdit", false, true),
        ("Edit.*", "NotebookEdit", true, true),
        ("mcp__*", "mcp__git__log", true, true),
    ] {
        assert_eq!(fires_with(json!(text), is_glob_dialect, tool, &json!({})), expected, "{text} for {tool}");
    }
}

#[test]
fn a_rule_and_an_object_inspect_the_arguments() {
    let push = json!({ "command": "git push --force" });
    let list = json!({ "command": "ls" });
    let source = json!({ "file_path": "/w/src/a.rs" });
    let other = json!({ "file_path": "/w/README.md" });
    for (value, tool, input, expected) in [
        (json!("Bash(git push *)"), "Bash", &push, true),
        (json!("Bash(git push *)"), "Bash", &list, false),
        (json!({ "tools": ["Edit", "Write"], "paths": ["src/**"] }), "Write", &source, true),
        (json!({ "tools": ["Edit", "Write"], "paths": ["src/**"] }), "Write", &other, false),
        (json!({ "tools": "Edit", "paths": "*.rs" }), "Edit", &source, true),
        (json!({ "tools": "Edit", "paths": "*.rs" }), "Read", &source, false),
        (json!({ "commands": ["git push*"] }), "Bash", &push, true),
        (json!({ "commands": ["git push*"] }), "Bash", &list, false),
        (json!({}), "Bash", &list, true),
    ] {
        assert_eq!(fires_with(value.clone(), false, tool, input), expected, "{value} for {tool} {input}");
    }
}

#[test]
fn what_cannot_be_read_is_reported_and_a_runaway_expression_lets_the_hook_run() {
    for value in [json!("("), json!(3), json!({ "names": [] }), json!({ "tools": [1] }), json!("Bash()")] {
        assert!(matcher(value.clone(), false).is_err(), "{value}");
    }
    let name = "a".repeat(200);
    assert!(
        fires(r"^(a+)(a+)(a+)(a+)(a+)\1c$", &name),
        "it was given up, so nobody knows that it does not match"
    );
}
