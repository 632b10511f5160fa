//! Servers that are programs: started, spoken to line by line, and listened to for what they complain of.
//!
//! Rule: what a server writes to its standard error is read to the end, so that it never blocks, and only the end of it is
//! kept.

use kode_base::task;
use rmcp::RoleClient;
use rmcp::transport::Transport;
use rmcp::transport::async_rw::AsyncRwTransport;

use super::MAX_MESSAGE_BYTES;
use crate::surroundings::ServerSurroundings;
use kode_config::mcp::config::{ServerDefinition, ServerProgram};
use kode_config::mcp::fault::McpFailure;
use kode_process::outcome::Exit;
use kode_process::shell::error_output::ErrorOutput;
use kode_process::shell::served::{self, ServedProcess, ServedSpec, ServiceEnd};

/// The exit code of shells for a program that is not there, and for one that cannot be started.
const NOT_FOUND: i32 = 127;
const NOT_STARTED: i32 = 126;

/// Starts the program and opens the way to it.
///
/// # Errors
/// Why it could not be started.
pub(crate) async fn start(
    definition: &ServerDefinition,
    program: &ServerProgram,
    surroundings: &ServerSurroundings,
    complaints: &ErrorOutput,
) -> Result<(impl Transport<RoleClient> + use<>, ServedProcess), McpFailure> {
    let sandbox = surroundings.sandbox_of(definition);
    let mut variables = surroundings.variables_of_programs(definition);
    let (mut writable, mut readable) = (Vec::new(), Vec::new());
    if let Some(plugin) = &definition.plugin {
        plugin.make_data();
        writable.extend(plugin.data.as_path().is_dir().then(|| plugin.data.clone()));
        readable.push(plugin.root.clone());
    }
    if sandbox.is_some() {
        match surroundings.cache_of(definition) {
            Ok(cache) => {
                // Runners of packages keep what they fetch; their usual places cannot be written in the sandbox.
                for (name, folder) in
                    [("npm_config_cache", "npm"), ("UV_CACHE_DIR", "uv"), ("UV_TOOL_DIR", "uv-tools")]
                {
                    variables.insert(name.to_owned(), cache.join(folder).to_string());
                }
                variables.insert("XDG_CACHE_HOME".to_owned(), cache.to_string());
                writable.push(cache);
            }
            Err(error) => tracing::warn!(%error, server = definition.name, "there is no cache folder for it"),
        }
    }
    variables.extend(program.variables.iter().cloned());
    let is_sandboxed = sandbox.is_some();
    let spec = ServedSpec {
        program: program.command.clone(),
        arguments: program.arguments.clone(),
        directory: program.directory.clone().unwrap_or_else(|| surroundings.project.clone()),
        variables,
        secrets: surroundings.secrets.clone(),
        sandbox,
        network: definition.network,
        writable,
        readable,
        holds: false,
    };
    let served = served::start(spec).await.map_err(|ended| failure(&ended, complaints, is_sandboxed))?;
    task::spawn(complaints.clone().read_from(served.errors));
    let transport =
        AsyncRwTransport::new_client(served.output, served.input).with_max_line_length(MAX_MESSAGE_BYTES);
    Ok((transport, served.process))
}

/// The meaning of a program's end.
pub(crate) fn failure(ended: &ServiceEnd, complaints: &ErrorOutput, is_sandboxed: bool) -> McpFailure {
    let failure = match ended {
        ServiceEnd::NotFound(why) => not_found(why),
        ServiceEnd::Ran(Exit::Code(NOT_FOUND)) => not_found("exit code 127"),
        ServiceEnd::NotStarted(why) => not_started(why),
        ServiceEnd::Ran(Exit::Code(NOT_STARTED)) => not_started("exit code 126"),
        ServiceEnd::NoSandbox(why) => McpFailure::permanent(
            format!("the sandbox could not be set up: {why}"),
            "`kode-ls doctor` says what your machine offers; `\"sandbox\": false` in the entry runs it outside.",
        ),
        ServiceEnd::Ran(exit) => {
            let how = match exit {
                Exit::Code(code) => format!("exit code {code}"),
                Exit::Signal(signal) => format!("signal {signal}"),
                Exit::TimedOut | Exit::Cancelled => "it was stopped".to_owned(),
            };
            let sandbox = match is_sandboxed {
                true => {
                    " It runs in the sandbox, where it can write only in the workspace and a cache of its own; \
                     `\"sandbox\": false` in the entry runs it outside."
                }
                false => "",
            };
            McpFailure::transient(
                format!("the server has ended ({how})"),
                format!("It is started again by itself. If it stays so, run its command by hand.{sandbox}"),
            )
        }
    };
    McpFailure { stderr: complaints.text(), ..failure }
}

fn not_found(why: &str) -> McpFailure {
    McpFailure::permanent(
        format!("the server's command was not found: {why}"),
        "Install it, or write its whole path into `command`; editors often start with another PATH than your shell.",
    )
}

fn not_started(why: &str) -> McpFailure {
    McpFailure::permanent(
        format!("the server's command could not be started: {why}"),
        "Check that it is a program, that you may run it, and that its folder is there.",
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use kode_config::mcp::fault::McpFailureClass;

    #[test]
    fn what_is_missing_is_not_tried_again_and_what_ended_is() {
        let class = |ended| failure(&ended, &ErrorOutput::default(), false).class;
        assert_eq!(class(ServiceEnd::NotFound("x".into())), McpFailureClass::Permanent);
        assert_eq!(class(ServiceEnd::NotStarted("x".into())), McpFailureClass::Permanent);
        assert_eq!(class(ServiceEnd::Ran(Exit::Code(127))), McpFailureClass::Permanent);
        assert_eq!(class(ServiceEnd::Ran(Exit::Code(1))), McpFailureClass::Transient);
        assert_eq!(class(ServiceEnd::Ran(Exit::Signal(9))), McpFailureClass::Transient);
    }
}
