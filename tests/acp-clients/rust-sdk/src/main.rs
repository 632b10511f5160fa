//! A client of the Agent Client Protocol in the terminal, with the official Rust SDK: `rust-sdk-client [--resume] AGENT...`
//!
//! A line is a prompt; `:cancel` ends the turn; while the agent asks for permission, a line is the number of an option.
//!
//! Rule: everything between agent and client goes through the SDK, which refuses what its types do not allow. What it refuses
//! ends this program with an error.

use std::collections::VecDeque;
use std::io::{BufRead, Write};
use std::sync::{Arc, Mutex, PoisonError};

use agent_client_protocol::schema::ProtocolVersion;
use agent_client_protocol::v1::schema::{
    CancelNotification, ContentBlock, InitializeRequest, ListSessionsRequest, LoadSessionRequest,
    NewSessionRequest, PromptRequest, RequestPermissionOutcome, RequestPermissionRequest,
    RequestPermissionResponse, SelectedPermissionOutcome, SessionId, SessionNotification, SessionUpdate,
    TextContent, ToolCallContent,
};
use agent_client_protocol::v1::{ConnectionTo, Responder};
use agent_client_protocol::{AcpAgent, Agent, Client, Error};
use futures::StreamExt;
use futures::channel::mpsc::{UnboundedReceiver, unbounded};

/// The requests for permission that wait for an answer, oldest first.
type Asked = Arc<Mutex<VecDeque<(RequestPermissionRequest, Responder<RequestPermissionResponse>)>>>;

fn main() -> Result<(), Error> {
    let mut arguments: Vec<String> = std::env::args().skip(1).collect();
    let resume = arguments.first().is_some_and(|first| first == "--resume");
    if resume {
        arguments.remove(0);
    }
    let asked = Asked::default();
    let shown = Arc::clone(&asked);
    let client = Client
        .v1()
        .on_receive_notification(
            async move |notification: SessionNotification, _| {
                show(&notification.update);
                Ok(())
            },
            agent_client_protocol::on_receive_notification!(),
        )
        .on_receive_request(
            async move |request: RequestPermissionRequest, responder, _| {
                show_request(&request);
                lock(&shown).push_back((request, responder));
                Ok(())
            },
            agent_client_protocol::on_receive_request!(),
        )
        .connect_with(AcpAgent::from_args(arguments)?, async move |connection| {
            converse(connection, asked, resume).await
        });
    futures::executor::block_on(client)
}

/// Starts or resumes a session, and takes lines until the input ends.
async fn converse(connection: ConnectionTo<Agent>, asked: Asked, resume: bool) -> Result<(), Error> {
    connection.send_request(InitializeRequest::new(ProtocolVersion::V1)).block_task().await?;
    let session = if resume { resumed(&connection).await? } else { started(&connection).await? };
    print(&format!("ready: {session}\n"));
    let mut lines = lines();
    while let Some(line) = lines.next().await {
        if line == ":cancel" {
            connection.send_notification(CancelNotification::new(session.clone()))?;
            for (_, responder) in lock(&asked).drain(..) {
                responder.respond(RequestPermissionResponse::new(RequestPermissionOutcome::Cancelled))?;
            }
            continue;
        }
        let waiting = lock(&asked).pop_front();
        if let Some((request, responder)) = waiting {
            let number = line.parse::<usize>().unwrap_or_default();
            match number.checked_sub(1).and_then(|at| request.options.get(at)) {
                Some(option) => {
                    let selected = SelectedPermissionOutcome::new(option.option_id.clone());
                    responder.respond(RequestPermissionResponse::new(RequestPermissionOutcome::Selected(
                        selected,
                    )))?;
                }
                None => {
                    print("no such number\n");
                    lock(&asked).push_front((request, responder));
                }
            }
            continue;
        }
        let prompt = PromptRequest::new(session.clone(), vec![ContentBlock::Text(TextContent::new(line))]);
        let sent = connection.send_request(prompt);
        connection.spawn(async move {
            let ended = sent.block_task().await?;
            print(&format!("\nturn ended: {:?}\n", ended.stop_reason));
            Ok(())
        })?;
    }
    Ok(())
}

async fn started(connection: &ConnectionTo<Agent>) -> Result<SessionId, Error> {
    let folder = std::env::current_dir().map_err(Error::into_internal_error)?;
    Ok(connection.send_request(NewSessionRequest::new(folder)).block_task().await?.session_id)
}

/// Loads the session that was used last.
async fn resumed(connection: &ConnectionTo<Agent>) -> Result<SessionId, Error> {
    let folder = std::env::current_dir().map_err(Error::into_internal_error)?;
    let stored = connection.send_request(ListSessionsRequest::new().cwd(folder.clone())).block_task().await?;
    let newest = stored.sessions.into_iter().next().ok_or_else(Error::invalid_params)?;
    connection.send_request(LoadSessionRequest::new(newest.session_id.clone(), folder)).block_task().await?;
    Ok(newest.session_id)
}

/// The lines of the input, read on a thread of their own.
fn lines() -> UnboundedReceiver<String> {
    let (sender, receiver) = unbounded();
    std::thread::spawn(move || {
        for line in std::io::stdin().lock().lines().map_while(Result::ok) {
            if sender.unbounded_send(line).is_err() {
                return;
            }
        }
    });
    receiver
}

fn show(update: &SessionUpdate) {
    match update {
        SessionUpdate::AgentMessageChunk(chunk) => {
            if let ContentBlock::Text(text) = &chunk.content {
                print(&text.text);
            }
        }
        SessionUpdate::ToolCall(call) => print(&format!("\ncall: {}\n", call.title)),
        _ => {}
    }
}

fn show_request(request: &RequestPermissionRequest) {
    let fields = &request.tool_call.fields;
    print(&format!("\npermission: {}\n", fields.title.as_deref().unwrap_or("a call")));
    for content in fields.content.iter().flatten() {
        match content {
            ToolCallContent::Diff(diff) => {
                for line in diff.old_text.iter().flat_map(|text| text.lines()) {
                    print(&format!("- {line}\n"));
                }
                for line in diff.new_text.lines() {
                    print(&format!("+ {line}\n"));
                }
            }
            ToolCallContent::Content(content) => {
                if let ContentBlock::Text(text) = &content.content {
                    print(&format!("{}\n", text.text));
                }
            }
            _ => {}
        }
    }
    for (at, option) in request.options.iter().enumerate() {
        print(&format!("[{}] {}\n", at + 1, option.name));
    }
}

/// Writes to the terminal. One that is gone ends the program by the end of its input.
fn print(text: &str) {
    let mut output = std::io::stdout().lock();
    let _ = output.write_all(text.as_bytes()).and_then(|()| output.flush());
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
