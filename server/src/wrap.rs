//! Another language server and the agent on one connection, for editors that take one server for a buffer.
//!
//! Rule: neither server waits for the other. What the agent has no part in passes unchanged but for ids. The end of one server is
//! reported and survived by the other; the end of the editor is the end of both.

mod body;
mod calls;
mod capabilities;
mod child;
mod from_editor;
mod from_servers;
mod outbox;
mod relay;
mod restart;
mod results;
mod selectors;
#[cfg(test)]
mod tests;
mod texts;

use std::ffi::OsString;
use std::io;
use std::process::ExitCode;
use std::sync::Arc;

use kode_engine::base::task;
use kode_engine::process::shell::served;
use tokio::io::{AsyncRead, AsyncWrite};

use crate::backend::Backend;
use crate::connection::ClientConnection;
use crate::transport::ServeEnd;
use crate::wrapped::WrappedServer;
use crate::{runtime, server, transport};
use child::{ChildLauncher, LaunchedChild};
use relay::{AgentEnd, Relay, RelayParts};

/// Room for messages between the relay and the agent, in bytes.
const CONNECTION: usize = 256 << 10;

/// Serves one editor on standard input and output together with a server of this command.
///
/// # Errors
/// When the process cannot serve.
pub(crate) fn main(command: Vec<OsString>) -> anyhow::Result<ExitCode> {
    let ended = runtime::run(async {
        let (input, output) = transport::stdio::open()?;
        let [program, arguments @ ..] = command.as_slice() else {
            return Err(io::Error::other("there is no command of a server"));
        };
        let (program, arguments) = (program.clone(), arguments.to_vec());
        let name = program.clone();
        let launch: ChildLauncher = Box::new(move || {
            let started = served::start_unconfined(&program, &arguments)?;
            Ok(LaunchedChild {
                input: Box::new(started.input),
                output: Box::new(started.output),
                process: Some(started.process),
            })
        });
        Ok(serve((input, output), &name, launch).await)
    })?;
    Ok(ended.into())
}

/// Serves one editor until it leaves.
async fn serve(
    (input, output): (impl AsyncRead + Send + Unpin + 'static, impl AsyncWrite + Send + Unpin + 'static),
    program: &OsString,
    launch: ChildLauncher,
) -> ServeEnd {
    let (wrapped, from_tools) = WrappedServer::new(program);
    let wrapped = Arc::new(wrapped);
    let beside = Arc::clone(&wrapped);
    let (service, socket) = server::service_of(move |client| Backend::beside(client, beside));
    let connection: Arc<ClientConnection> = Arc::clone(service.inner().connection());
    runtime::end_on_signal(&connection.lifecycle);
    let (to_agent, agent_input) = tokio::io::duplex(CONNECTION);
    let (agent_output, from_agent) = tokio::io::duplex(CONNECTION);
    let lifecycle = Arc::clone(&connection.lifecycle);
    let serving =
        task::spawn(
            async move { transport::serve(agent_input, agent_output, service, socket, &lifecycle).await },
        );
    let agent = AgentEnd { to_agent, from_agent, serving };
    Relay::new(RelayParts { wrapped, connection, launch, from_tools }).run((input, output), agent).await
}
