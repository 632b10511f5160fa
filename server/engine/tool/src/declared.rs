//! The touches of a call by its arguments alone, before its plan and any knowledge of the world.
//!
//! Rule: this is a forecast, for putting calls in order and for looking at past calls; the gate judges the plan. What
//! cannot be told is `None`, which every caller treats as "anything".

use serde_json::Value;
use url::Url;

use kode_base::call::{CommandLanguage, Touch};
use kode_base::command_shell::CommandShell;
use kode_base::paths::{AbsPath, Target};
use kode_text::edit::file_patch::FilePatch;

/// The touches of a call of the tool with this canonical name. Paths are taken as `resolve` reads them; commands
/// start in `directory`.
#[must_use]
pub fn declared(
    tool: &str,
    input: &Value,
    directory: &AbsPath,
    resolve: &dyn Fn(&str) -> Option<Target>,
) -> Option<Vec<Touch>> {
    let text = |names: &[&str]| names.iter().find_map(|name| input.get(name)?.as_str());
    let file = || text(&["file_path", "path", "notebook_path"]);
    let place = || match text(&["path"]) {
        Some(path) => resolve(path),
        None => Some(Target::File(directory.clone())),
    };
    let touch = match tool {
        "Read" | "NotebookRead" => Touch::Read(resolve(file()?)?),
        "Glob" | "Grep" | "LS" => Touch::Read(place()?),
        "Diagnostics" => match text(&["path", "file_path"]) {
            Some(path) => Touch::Read(resolve(path)?),
            None => return Some(Vec::new()),
        },
        "Symbols" => match file() {
            Some(path) => Touch::Read(resolve(path)?),
            None => return Some(Vec::new()),
        },
        "Definition" | "References" | "CallHierarchy" | "CodeActions" => Touch::Read(resolve(file()?)?),
        "LSP" => Touch::Read(resolve(text(&["filePath"])?)?),
        "Edit" | "MultiEdit" | "NotebookEdit" | "Write" => Touch::Write(resolve(file()?)?),
        "apply_patch" => {
            let mut paths = Vec::new();
            for patch in FilePatch::parse(text(&["input"])?).ok()? {
                paths.push(Touch::Write(resolve(patch.path())?));
                if let FilePatch::Update { moved_to: Some(new), .. } = &patch {
                    paths.push(Touch::Write(resolve(new)?));
                }
            }
            return Some(paths);
        }
        "Bash" | "PowerShell" => Touch::Command {
            command: text(&["command"])?.to_owned(),
            directory: directory.clone(),
            outside_sandbox: input.get("dangerouslyDisableSandbox").and_then(Value::as_bool).unwrap_or(false),
            language: CommandLanguage::unread(CommandShell::of_tool(tool)?),
        },
        "WebFetch" => Touch::Fetch { url: Url::parse(text(&["url"])?).ok()? },
        "WebSearch" => Touch::Named { tool: "WebSearch", name: text(&["query"])?.to_owned() },
        "Task" => Touch::Named { tool: "Task", name: text(&["subagent_type"])?.to_owned() },
        "Skill" => Touch::Named { tool: "Skill", name: text(&["skill"])?.to_owned() },
        "SlashCommand" => Touch::Named { tool: "SlashCommand", name: text(&["command"])?.to_owned() },
        "AskUserQuestion" | "BashOutput" | "KillShell" | "Think" => return Some(Vec::new()),
        _ => return None,
    };
    Some(vec![touch])
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_a_call_touches_is_distinguished_from_its_arguments_or_not_at_all() {
        let directory = AbsPath::new("/w").unwrap();
        let resolve = |path: &str| Some(Target::File(directory.join(path)));
        let of = |tool, input| declared(tool, &input, &directory, &resolve);
        let file = |path: &str| Target::File(AbsPath::new(path).unwrap());
        assert_eq!(of("Read", json!({ "file_path": "a" })), Some(vec![Touch::Read(file("/w/a"))]));
        assert_eq!(of("Edit", json!({ "path": "/x" })), Some(vec![Touch::Write(file("/x"))]));
        let patch = "*** Begin Patch\n*** Update File: a\n*** Move to: b\n*** End Patch";
        let moved = Some(vec![Touch::Write(file("/w/a")), Touch::Write(file("/w/b"))]);
        assert_eq!(of("apply_patch", json!({ "input": patch })), moved);
        assert_eq!(of("apply_patch", json!({ "input": "no patch" })), None);
        assert_eq!(of("Grep", json!({ "pattern": "x" })), Some(vec![Touch::Read(file("/w"))]));
        assert_eq!(of("Think", json!({})), Some(vec![]));
        assert_eq!(of("Read", json!({})), None);
        assert_eq!(of("SomethingElse", json!({ "path": "a" })), None);
    }
}
