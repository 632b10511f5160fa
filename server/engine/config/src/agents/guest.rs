//! `runs` of an agent's file: the program of another agent, which is spoken to by the Agent Client Protocol.
//!
//! Rule: parsing only. A program that a file of the project names starts after an approval of that very text, and no entry of
//! a project is given a key of the user's.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;

use crate::extension::head::FrontMatterFile;
use crate::extension::places::ExtensionOrigin;
use crate::settings::TrustRequest;
use kode_base::call::{CommandLanguage, Touch};
use kode_base::paths::AbsPath;
use kode_base::variables;

/// The key; an approval is kept under it.
pub const RUNS_KEY: &str = "runs";

/// The most arguments of a program.
const MAX_ARGUMENTS: usize = 100;

/// Characters that a word of a command line may have without quotes.
const PLAIN: &str = "_-./=:,@%+";

/// The program of another agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GuestProgram {
    at: FrontMatterFile,
    value: Value,
    written: RawProgram,
}

/// A program that is ready to be started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReadyProgram {
    /// The program, by its path or a name in `PATH`.
    pub command: String,
    /// Its arguments.
    pub arguments: Vec<String>,
    /// The variables that its entry gives it.
    pub variables: BTreeMap<String, String>,
    /// Whether it runs in the sandbox, where it cannot write in the workspace.
    pub sandboxed: bool,
    /// Whether it has the network there.
    pub network: bool,
    /// Folders that it may write in there.
    pub writable: Vec<AbsPath>,
    /// The id of the mode it is to work in, in its own words; the one it begins in if absent.
    pub mode: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct RawProgram {
    command: String,
    #[serde(default)]
    args: Vec<String>,
    #[serde(default)]
    env: BTreeMap<String, String>,
    #[serde(default)]
    sandbox: bool,
    network: Option<bool>,
    #[serde(default)]
    writable: Vec<String>,
    mode: Option<String>,
}

impl GuestProgram {
    /// Reads the value of `runs`: a command line without quotes, or `{command, args, env, sandbox, network, writable, mode}`.
    ///
    /// # Errors
    /// Why it names no program.
    pub(crate) fn read(value: &Value, at: &FrontMatterFile) -> Result<Self, String> {
        let written = match value {
            Value::String(line) if line.contains(['"', '\'', '\\', '$', '`', '|', '&', ';', '<', '>']) => {
                return Err(format!(
                    "its `{RUNS_KEY}` is one text with characters that a shell would read; write `command` and `args` instead"
                ));
            }
            Value::String(line) => {
                let mut words = line.split_whitespace().map(str::to_owned);
                RawProgram {
                    command: words.next().unwrap_or_default(),
                    args: words.collect(),
                    env: BTreeMap::new(),
                    sandbox: false,
                    network: None,
                    writable: Vec::new(),
                    mode: None,
                }
            }
            value => serde_path_to_error::deserialize(value).map_err(|error| {
                format!("its `{RUNS_KEY}` cannot be used: at `{}`: {}", error.path(), error.inner())
            })?,
        };
        if written.command.trim().is_empty() || written.command.contains('\0') {
            return Err(format!("its `{RUNS_KEY}` names no program"));
        }
        if written.args.len() > MAX_ARGUMENTS {
            return Err(format!("its `{RUNS_KEY}` has more than {MAX_ARGUMENTS} arguments"));
        }
        if let Some(name) = written.env.keys().find(|name| name.is_empty() || name.contains(['=', '\0'])) {
            return Err(format!("its `{RUNS_KEY}` gives `{name}`, which cannot be the name of a variable"));
        }
        Ok(Self { at: at.clone(), value: value.clone(), written })
    }

    /// Program and arguments as a command line, by which it is judged and shown.
    #[must_use]
    pub fn command_line(&self) -> String {
        let words = std::iter::once(&self.written.command).chain(&self.written.args);
        words.map(|word| quoted(word)).collect::<Vec<_>>().join(" ")
    }

    /// The touch of starting it in a folder.
    #[must_use]
    pub fn touch(&self, directory: AbsPath) -> Touch {
        let outside_sandbox = !self.written.sandbox;
        Touch::Command {
            command: self.command_line(),
            directory,
            outside_sandbox,
            language: CommandLanguage::Bash,
        }
    }

    /// Its trust request, as its file and the files of the workspace that it names are now. Blocks on the
    /// disk.
    #[must_use]
    pub fn trust_request(&self) -> Option<TrustRequest> {
        self.at.trust_request(RUNS_KEY.to_owned(), &self.value)
    }

    /// Whether a file of the project names it.
    #[must_use]
    pub fn is_of_project(&self) -> bool {
        self.at.origin == ExtensionOrigin::Project
    }

    /// Puts the variables in that `variable` gives.
    ///
    /// # Errors
    /// The missing variable, or another fault.
    pub fn ready(&self, variable: &dyn Fn(&str) -> Option<String>) -> Result<ReadyProgram, String> {
        let expand = |field: &str, text: &str| {
            variables::expand(text, variable).complete().map_err(|missing| {
                format!("the variable `{missing}` in `{field}` of `{RUNS_KEY}` is not set")
            })
        };
        let written = &self.written;
        let command = expand("command", &written.command)?;
        let path = |text: String| match text.strip_prefix("~/") {
            Some(rest) => {
                std::env::home_dir().map(|home| home.join(rest)).ok_or("there is no home folder".to_owned())
            }
            None => Ok(text.into()),
        };
        let command = match command.contains('/') {
            true => self.at.root.join(path(command)?).to_string(),
            false => command,
        };
        let arguments = written.args.iter().map(|word| expand("args", word)).collect::<Result<_, _>>()?;
        let given = written.env.iter().map(|(name, value)| Ok((name.clone(), expand(name, value)?)));
        let variables = given.collect::<Result<_, String>>()?;
        let folder = |text: &String| Ok(self.at.root.join(path(expand("writable", text)?)?));
        let writable = written.writable.iter().map(folder).collect::<Result<_, String>>()?;
        Ok(ReadyProgram {
            command,
            arguments,
            variables,
            sandboxed: written.sandbox,
            network: written.network.unwrap_or(true),
            writable,
            mode: written.mode.clone(),
        })
    }
}

/// A word as a shell reads it.
fn quoted(word: &str) -> String {
    let is_plain = |char: char| char.is_ascii_alphanumeric() || PLAIN.contains(char);
    match !word.is_empty() && word.chars().all(is_plain) {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', r"'\''")),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(value: &Value, origin: ExtensionOrigin) -> Result<GuestProgram, String> {
        let root = AbsPath::new("/w").unwrap();
        let at = FrontMatterFile { file: root.join(".claude/agents/one.md"), root, origin };
        GuestProgram::read(value, &at)
    }

    #[test]
    fn a_command_line_and_its_parts_are_the_same_program() {
        let line = read(&json!("agent --acp"), ExtensionOrigin::User).unwrap();
        let parts = read(&json!({ "command": "agent", "args": ["--acp"] }), ExtensionOrigin::User).unwrap();
        assert_eq!((line.command_line(), parts.command_line()), ("agent --acp".into(), "agent --acp".into()));
        let none = |_: &str| None;
        assert_eq!(line.ready(&none), parts.ready(&none));
        let odd = json!({ "command": "./bin/agent", "args": ["it's", ""], "env": { "KEY": "${MINE}" } });
        let odd = read(&odd, ExtensionOrigin::User).unwrap();
        assert_eq!(odd.command_line(), r"./bin/agent 'it'\''s' ''");
        assert_eq!(odd.ready(&none), Err("the variable `MINE` in `KEY` of `runs` is not set".to_owned()));
        let ready = odd.ready(&|_| Some("x".to_owned())).unwrap();
        assert_eq!((ready.command.as_str(), ready.variables["KEY"].as_str()), ("/w/bin/agent", "x"));
        assert_eq!((ready.sandboxed, ready.network), (false, true));
    }

    #[test]
    fn what_names_no_program_says_why() {
        for (value, expected) in [
            (json!(""), "names no program"),
            (json!("agent | tee x"), "`command` and `args`"),
            (json!({ "args": [] }), "missing field `command`"),
            (json!({ "command": "x", "shell": true }), "unknown field `shell`"),
            (json!({ "command": "x", "env": { "A=B": "" } }), "name of a variable"),
            (json!(["x"]), "cannot be used"),
        ] {
            let error = read(&value, ExtensionOrigin::User).unwrap_err();
            assert!(error.contains(expected), "{value}: {error}");
        }
    }

    #[test]
    fn a_program_of_the_project_is_approved_by_its_very_text() {
        let text = |value: Value| {
            let program = read(&value, ExtensionOrigin::Project).unwrap();
            program.trust_request().map(|wanted| wanted.text)
        };
        assert_ne!(text(json!("agent")), text(json!("agent --yolo")));
        assert_eq!(read(&json!("agent"), ExtensionOrigin::User).unwrap().trust_request(), None);
    }
}
