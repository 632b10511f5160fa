//! The program of a guest as it is started: approved, with its variables, in its sandbox.
//!
//! Rule: a program of the project starts only if the user has approved what its file says now. It gets none of the user's keys,
//! unless a file of the user's own hands one over by name.

#![expect(clippy::disallowed_methods, reason = "files of agents name variables")]

use std::collections::BTreeMap;

use crate::turn::services::TurnContext;
use kode_base::blocking;
use kode_base::call::{ToolError, ToolErrorKind};
use kode_config::agents::guest::{GuestProgram, ReadyProgram};
use kode_process::shell::served::ServedSpec;

/// The variable that tells programs which project they work for.
const PROJECT_FOLDER: &str = "CLAUDE_PROJECT_DIR";

/// The program to start, and the mode it is to work in.
///
/// # Errors
/// Why it is not started.
pub(super) async fn ready(
    turn: TurnContext<'_>,
    program: &GuestProgram,
) -> Result<(ServedSpec, Option<String>), ToolError> {
    let services = turn.services;
    let line = program.command_line();
    let failed = |kind, message: String, hint: &str| Err(ToolError::new(kind, message, hint));
    let asked = program.clone();
    let wanted = blocking(move || asked.trust_request()).await;
    if !services.gate.unapproved(wanted.into_iter().collect()).await.is_empty() {
        let message = format!("The program `{line}` waits for the user's approval and was not started.");
        return failed(ToolErrorKind::Denied, message, "Ask the user to check it with /trust.");
    }
    let in_force = services.gate.in_force_for(turn.conversation);
    let policy = &in_force.policy;
    let given: BTreeMap<String, String> =
        policy.declared.variables().map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
    let secrets = services.environment.shell.secrets().all();
    let is_of_project = program.is_of_project();
    let lookup = |name: &str| {
        let value = given.get(name).cloned().or_else(|| std::env::var(name).ok());
        value.filter(|value| !is_of_project || !secrets.iter().any(|secret| value.contains(secret.expose())))
    };
    let made = program.ready(&lookup);
    let ReadyProgram { command, arguments, variables: own, sandboxed, network, writable, mode } = match made {
        Ok(made) => made,
        Err(why) => {
            let message = format!("The program `{line}` was not started: {why}.");
            return failed(ToolErrorKind::Failed, message, "Ask the user to put the agent's file right.");
        }
    };
    let workspace = turn.conversation.workspace();
    let sandbox = match (sandboxed, &policy.sandbox) {
        (false, _) => None,
        (true, Some(sandbox)) => {
            // It changes the workspace through this program alone.
            let seen: Vec<_> = workspace.roots().to_vec();
            let own = sandbox.writing_in(Vec::new(), &seen).map_err(|error| {
                let message = format!("The program `{line}` was not started: the sandbox failed: {error}.");
                ToolError::new(
                    ToolErrorKind::Failed,
                    message,
                    "`kode-ls doctor` says what the machine offers.",
                )
            })?;
            Some(std::sync::Arc::new(own))
        }
        (true, None) => {
            let message = format!("The program `{line}` needs the sandbox, and this machine has no sandbox.");
            return failed(ToolErrorKind::Failed, message, "Ask the user: `kode-ls doctor` says why.");
        }
    };
    let directory = workspace.cwd();
    let mut variables = given;
    variables.insert(PROJECT_FOLDER.to_owned(), directory.to_string());
    variables.extend(own);
    let spec = ServedSpec {
        program: command,
        arguments,
        directory,
        variables,
        secrets,
        sandbox,
        network,
        writable,
        readable: Vec::new(),
        holds: true,
    };
    Ok((spec, mode))
}
