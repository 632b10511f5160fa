//! Hooks that are commands: their environment, their sandbox, and missing programs.
//!
//! Rule: a hook that a file of the workspace declares has no more rights than the agent's own commands; hooks of the user's
//! and the administrator's own files have the user's rights, for the user has written them down as commands of theirs. A
//! script that commands of the agent can write gets those rights from settings alone, which have it guarded.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use super::HookRunner;
use super::environment::EnvironmentFile;
use super::fire::HookPayload;
use kode_base::blocking;
use kode_base::paths::AbsPath;
use kode_base::variables::expand;
use kode_command::analyse;
use kode_config::hooks::config::{HookAction, HookHandler};
use kode_config::hooks::event::HookEvent;
use kode_config::in_force::EffectivePolicy;
use kode_process::sandbox::Sandbox;
use kode_process::shell::piped::{PipedOutcome, PipedSpec};

/// The most bytes of each output that are read.
const MAX_OUTPUT: usize = 1 << 20;

/// The shell where a handler names none.
const SHELL: &str = "bash";

/// The shell where that one is not there.
const OTHER_SHELL: &str = "sh";

/// The variable with the folder of the project, by the names that scripts know.
const PROJECT: [&str; 2] = ["CLAUDE_PROJECT_DIR", "KODE_PROJECT_DIR"];

/// The ends of the names of scripts.
const SCRIPTS: [&str; 9] = [".sh", ".bash", ".zsh", ".py", ".js", ".mjs", ".ts", ".rb", ".pl"];

/// The messages of interpreters about a missing script.
const NOT_THERE: [&str; 5] =
    ["can't open", "cannot open", "No such file or directory", "Cannot find module", "not found"];

/// A hook's command, ready to be started.
pub(super) struct HookCommand {
    spec: PipedSpec,
    /// The file for its exports to later commands.
    file: Option<EnvironmentFile>,
    is_default_shell: bool,
    /// Scripts it names that are not there.
    absent: Vec<String>,
}

impl HookCommand {
    /// The sandbox a hook runs in.
    pub(super) fn sandbox_of(handler: &HookHandler, in_force: &EffectivePolicy) -> Option<Arc<Sandbox>> {
        let HookAction::Command { command, args, .. } = &handler.action else { return None };
        let line =
            args.as_ref().map_or_else(|| command.clone(), |args| format!("{command} {}", args.join(" ")));
        let policy = &in_force.policy;
        let is_held = (handler.is_of_workspace() || handler.is_confined)
            && !policy.confinement.excludes(&analyse(&line, &handler.root));
        policy.sandbox.clone().filter(|_| is_held)
    }

    /// Makes a command ready.
    ///
    /// # Errors
    /// Why it cannot be started.
    pub(super) async fn new(
        hooks: &HookRunner,
        handler: &HookHandler,
        payload: &HookPayload,
        in_force: &EffectivePolicy,
        limit: Duration,
    ) -> Result<Self, String> {
        if let Some(plugin) = handler.plugin.clone() {
            blocking(move || plugin.make_data()).await;
        }
        let mut spec = Self::spec(hooks, handler, payload, in_force, limit)?;
        let file = match handler.event {
            HookEvent::SessionStart => EnvironmentFile::make(hooks, spec.sandbox.as_ref()).await,
            _ => None,
        };
        if let Some(file) = &file {
            spec.variables.insert(EnvironmentFile::VARIABLE.to_owned(), file.path().to_string());
        }
        let is_default_shell = matches!(&handler.action, HookAction::Command { args: None, shell: None, .. });
        let absent = absent(&spec, hooks, handler);
        Ok(Self { spec, file, is_default_shell, absent })
    }

    /// The command and the environment of a hook.
    ///
    /// # Errors
    /// Why it cannot be.
    pub(super) fn spec(
        hooks: &HookRunner,
        handler: &HookHandler,
        payload: &HookPayload,
        in_force: &EffectivePolicy,
        limit: Duration,
    ) -> Result<PipedSpec, String> {
        let HookAction::Command { command, args, shell } = &handler.action else {
            return Err("it is no command".to_owned());
        };
        let sandbox = Self::sandbox_of(handler, in_force);
        let mut variables: BTreeMap<String, String> = in_force
            .policy
            .declared
            .variables()
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .collect();
        let project = project(hooks, handler).to_string();
        variables.extend(PROJECT.map(|name| (name.to_owned(), project.clone())));
        variables.extend(handler.plugin.iter().flat_map(|plugin| plugin.variables()));
        let (program, arguments) = match args {
            Some(args) => {
                let put_in = |text: &String| expand(text, &|name| Self::variable(hooks, handler, name)).text;
                (put_in(command), args.iter().map(put_in).collect())
            }
            // The shell expands the variables: their values are never parsed as a part of the command.
            None => {
                let shell = shell.clone().unwrap_or_else(|| SHELL.to_owned());
                (shell, vec!["-c".to_owned(), command.clone()])
            }
        };
        Ok(PipedSpec {
            program,
            arguments,
            directory: hooks.project(),
            variables,
            input: payload.json(sandbox.is_some()).into_bytes(),
            limit,
            max_bytes: MAX_OUTPUT,
            sandbox,
        })
    }

    /// A variable in a handler's text.
    pub(super) fn variable(hooks: &HookRunner, handler: &HookHandler, name: &str) -> Option<String> {
        let of_plugin = || handler.plugin.as_ref().and_then(|plugin| plugin.variable(name));
        PROJECT.contains(&name).then(|| project(hooks, handler).to_string()).or_else(of_plugin)
    }

    /// Runs it to its end, and takes over its exports.
    ///
    /// # Errors
    /// Why it could not be started.
    pub(super) async fn run(
        &self,
        hooks: &HookRunner,
        cancel: &CancellationToken,
    ) -> Result<PipedOutcome, String> {
        let mut ended = hooks.environment.shell.run_piped(self.spec.clone(), cancel).await;
        if self.is_default_shell && ended.as_ref().is_err_and(|reason| is_not_found(reason)) {
            let spec = PipedSpec { program: OTHER_SHELL.to_owned(), ..self.spec.clone() };
            ended = hooks.environment.shell.run_piped(spec, cancel).await;
        }
        if let (Some(file), Ok(_)) = (&self.file, &ended) {
            file.apply(hooks, &self.spec, cancel).await;
        }
        ended
    }

    /// The missing program or script, if that is why it failed.
    pub(super) fn missing(&self, stderr: &str) -> Option<String> {
        let is_said = |script: &&String| {
            let name = script.rsplit('/').next().unwrap_or(script);
            stderr.contains(name) && NOT_THERE.iter().any(|words| stderr.contains(words))
        };
        self.absent.iter().find(is_said).map(|script| format!("there is no `{script}`"))
    }
}

fn is_not_found(reason: &str) -> bool {
    reason.contains("No such file or directory") || reason.contains("not found")
}

/// The folder of the project a hook is for.
fn project(hooks: &HookRunner, handler: &HookHandler) -> AbsPath {
    if handler.is_of_workspace() { handler.root.clone() } else { hooks.project() }
}

/// The scripts that a command names and that are not there. It only guesses, and its word counts only beside what the
/// interpreter says.
fn absent(spec: &PipedSpec, hooks: &HookRunner, handler: &HookHandler) -> Vec<String> {
    let project = project(hooks, handler).to_string();
    let words: Vec<String> = match &handler.action {
        HookAction::Command { args: None, command, .. } => words(command),
        _ => std::iter::once(&spec.program).chain(&spec.arguments).cloned().collect(),
    };
    let home = std::env::home_dir().unwrap_or_default();
    let named = words.into_iter().filter_map(|word| {
        let put_in = |word: String, name: &str, value: &str| {
            word.replace(&format!("${{{name}}}"), value).replace(&format!("${name}"), value)
        };
        let word = PROJECT.iter().fold(word, |word, name| put_in(word, name, &project));
        let of_plugin = handler.plugin.iter().flat_map(|plugin| plugin.variables());
        let word = of_plugin.fold(word, |word, (name, value)| put_in(word, &name, &value));
        let is_script = word.contains('/') || SCRIPTS.iter().any(|end| word.ends_with(end));
        let path = match word.strip_prefix("~/") {
            Some(rest) => home.join(rest),
            None => spec.directory.join(&word).into(),
        };
        (is_script && !word.starts_with('-') && !word.contains('$') && !path.exists()).then_some(word)
    });
    named.collect()
}

/// The words of a command line, without their quotes.
fn words(line: &str) -> Vec<String> {
    line.split(|char: char| char.is_whitespace() || ";|&<>()".contains(char))
        .map(|word| word.replace(['"', '\''], ""))
        .filter(|word| !word.is_empty())
        .collect()
}
