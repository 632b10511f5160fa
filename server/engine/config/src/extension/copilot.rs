//! Files of GitHub Copilot in a workspace: prompts and agents, in terms of commands and sub-agents.
//!
//! Rule: what has no meaning here is dropped with a note, and nothing of such a file gives more rights than one of ours would.

use kode_base::paths::AbsPath;

use super::front_matter;

/// The folder of prompts, and the end of their names.
pub(crate) const PROMPTS: &str = ".github/prompts";
pub(crate) const PROMPT: &str = ".prompt.md";
/// The folder of agents, and the ends of their names, the longer first.
pub(crate) const AGENTS: &str = ".github/agents";
const AGENT: [&str; 2] = [".agent.md", ".md"];
/// The keys of a prompt that mean the same here.
const KNOWN_KEYS: [&str; 2] = ["description", "argument-hint"];
/// The keys of a prompt that mean something to Copilot alone.
const DROPPED_KEYS: [&str; 4] = ["agent", "mode", "model", "tools"];
/// How a prompt asks for a text of the user.
const INPUT: &str = "${input:";
/// The names of tools in files of Copilot, with the tools here that do the same.
const TOOLS: [(&[&str], &[&str]); 8] = [
    (&["read", "readfile", "codebase", "usages", "githubrepo"], &["Read", "Grep", "Glob", "LS"]),
    (&["search", "grep", "glob", "textsearch", "filesearch", "listdirectory"], &["Grep", "Glob", "LS"]),
    (
        &["edit", "editfiles", "write", "multiedit", "notebookedit", "createfile", "new"],
        &["Edit", "MultiEdit", "Write", "NotebookEdit"],
    ),
    (
        &["execute", "shell", "bash", "powershell", "runcommands", "runinterminal", "runtasks", "runtests"],
        &["Bash", "BashOutput", "KillShell"],
    ),
    (&["web", "fetch", "websearch", "webfetch"], &["WebFetch", "WebSearch"]),
    (&["problems"], &["Diagnostics"]),
    (&["agent", "custom-agent", "runsubagent", "task"], &["Task"]),
    // A sub-agent has no list of its own.
    (&["todo", "todos", "todowrite"], &[]),
];

/// A prompt of Copilot as a command.
pub(super) struct TranslatedPrompt {
    /// The text of the command.
    pub(super) text: String,
    /// The dropped parts, for people.
    pub(super) notes: Vec<String>,
}

/// The tools that a file of Copilot names.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct TranslatedTools {
    /// The tools here.
    pub(crate) tools: Vec<String>,
    /// The MCP servers whose tools are all meant.
    pub(crate) servers: Vec<String>,
    /// The names without a meaning here.
    pub(crate) unknown: Vec<String>,
}

/// Whether a file is a prompt of Copilot.
pub(super) fn is_prompt(file: &AbsPath) -> bool {
    file.parent().is_some_and(|folder| folder.as_path().ends_with(PROMPTS))
}

/// The name that an agent of Copilot has by its file; `None` for other files.
pub(crate) fn agent_name(file: &AbsPath) -> Option<String> {
    file.as_path().ancestors().skip(1).find(|folder| folder.ends_with(AGENTS))?;
    let name = file.file_name();
    AGENT.iter().find_map(|end| name.strip_suffix(end)).map(str::to_owned)
}

/// A prompt as a command: with the keys that are known here, and the arguments where it asks for a text.
pub(super) fn prompt(text: &str) -> TranslatedPrompt {
    let (head, body) = front_matter::split(text);
    let (mut kept, mut notes, mut is_kept) = (String::new(), Vec::new(), false);
    for line in head.unwrap_or_default().lines() {
        let begins_key = !line.starts_with([' ', '\t', '-', '#', ']', '}']);
        if let Some((key, _)) = line.split_once(':').filter(|_| begins_key) {
            let key = key.trim();
            is_kept = KNOWN_KEYS.contains(&key);
            if DROPPED_KEYS.contains(&key) {
                notes.push(format!("`{key}` of a prompt of Copilot has no effect"));
            }
        }
        if is_kept {
            kept.push_str(line);
            kept.push('\n');
        }
    }
    TranslatedPrompt { text: format!("---\n{kept}---\n{}", with_arguments(body)), notes }
}

/// The text with the arguments where it asks for a text: `${input:name}` and `${input:name:hint}`.
fn with_arguments(body: &str) -> String {
    let mut parts = body.split(INPUT);
    let mut text = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        match part.split_once('}') {
            Some((name, rest)) if !name.contains('\n') => {
                text.push_str("$ARGUMENTS");
                text.push_str(rest);
            }
            Some(_) | None => {
                text.push_str(INPUT);
                text.push_str(part);
            }
        }
    }
    text
}

/// The tools that these names of Copilot mean.
pub(crate) fn tools(names: &[String]) -> TranslatedTools {
    let mut found = TranslatedTools::default();
    for name in names {
        let lower = name.to_ascii_lowercase();
        // A set of tools comes before its tool: `search/codebase`.
        let own = lower.rsplit('/').next().unwrap_or_default();
        let of = |name: &str| TOOLS.iter().find(|(names, _)| names.contains(&name)).map(|(_, tools)| *tools);
        let is_set = lower.split_once('/').is_some_and(|(set, _)| of(set).is_some());
        match (of(own).filter(|_| is_set || own == lower), name.split_once('/')) {
            (Some(tools), _) => tools.iter().for_each(|tool| add(&mut found.tools, (*tool).to_owned())),
            (None, Some((server, "*"))) => add(&mut found.servers, server.to_owned()),
            (None, Some((server, tool))) if !is_set => {
                add(&mut found.tools, format!("mcp__{server}__{tool}"))
            }
            (None, _) if name == "*" => add(&mut found.tools, name.clone()),
            (None, _) => add(&mut found.unknown, name.clone()),
        }
    }
    found
}

fn add(names: &mut Vec<String>, name: String) {
    if !names.contains(&name) {
        names.push(name);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prompt_keeps_the_keys_that_are_known_here() {
        let text = "---\nmode: 'agent'\nmodel:\n  - GPT-5\ndescription: >\n  Make\n  a form\ntools: ['search']\n---\nMake ${input:name:of it} now.\n";
        let prompt = prompt(text);
        assert_eq!(prompt.text, "---\ndescription: >\n  Make\n  a form\n---\nMake $ARGUMENTS now.\n");
        assert_eq!(prompt.notes.len(), 3, "{:?}", prompt.notes);
        assert_eq!(super::prompt("Only ${input:x").text, "---\n---\nOnly ${input:x");
    }

    #[test]
    fn names_of_tools_mean_those_that_do_the_same() {
        let names = ["search/codebase", "edit", "github/*", "db/query", "todo", "extensions", "Bash"]
            .map(str::to_owned);
        let found = tools(&names);
        let expected = [
            "Read",
            "Grep",
            "Glob",
            "LS",
            "Edit",
            "MultiEdit",
            "Write",
            "NotebookEdit",
            "mcp__db__query",
            "Bash",
            "BashOutput",
            "KillShell",
        ];
        assert_eq!(found.tools, expected);
        assert_eq!(
            (found.servers, found.unknown),
            (vec!["github".to_owned()], vec!["extensions".to_owned()])
        );
    }
}
