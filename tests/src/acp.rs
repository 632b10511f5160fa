//! A client of the Agent Client Protocol over a process of `kode-ls acp`.
//!
//! Rule: dropping a client closes the process's input and waits for its end, as an editor that is closed would; a process that
//! then does not end is killed.

use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::{Value, json};

use crate::connection::{Connection, Framing, Received, Reply, RpcError};
use crate::process::Process;

/// A client and the process of its agent.
pub struct AcpClient {
    connection: Arc<Connection>,
    process: Mutex<Process>,
    cwd: PathBuf,
}

/// The updates of a session among messages, in order.
#[must_use]
pub fn updates_of(messages: &[Value], session: &str) -> Vec<Value> {
    let of_session =
        |message: &&Value| message["method"] == "session/update" && message["params"]["sessionId"] == session;
    messages.iter().filter(of_session).map(|message| message["params"]["update"].clone()).collect()
}

impl AcpClient {
    /// Starts an agent; nothing is sent yet.
    #[must_use]
    pub fn start(environment: &[(&str, &str)], cwd: &Path) -> Self {
        let mut process = Process::start(&["acp"], Some(cwd), environment);
        let connection = Connection::with(&mut process, Framing::Lines);
        Self { connection, process: Mutex::new(process), cwd: cwd.to_owned() }
    }

    /// Does the handshake and gives the agent's answer.
    ///
    /// # Panics
    /// When the agent refuses.
    pub fn initialize(&self, capabilities: Value) -> Value {
        self.initialize_as("kode-e2e", capabilities)
    }

    /// As [`AcpClient::initialize`], for a client of this name.
    ///
    /// # Panics
    /// When the agent refuses.
    pub fn initialize_as(&self, name: &str, capabilities: Value) -> Value {
        let params = json!({
            "protocolVersion": 1, "clientCapabilities": capabilities,
            "clientInfo": { "name": name, "version": "1.0" },
        });
        self.request("initialize", params).expect("initialize works")
    }

    /// Sends a request and gives the result.
    ///
    /// # Panics
    /// When the agent answers with an error.
    pub fn call(&self, method: &str, params: Value) -> Value {
        self.request(method, params).unwrap_or_else(|error| panic!("{method}: {error:?}"))
    }

    /// Begins a session in the workspace and gives its id.
    ///
    /// # Panics
    /// When the agent refuses.
    pub fn new_session(&self) -> String {
        let result = self.call("session/new", json!({ "cwd": self.cwd, "mcpServers": [] }));
        result["sessionId"].as_str().expect("a session has an id").to_owned()
    }

    /// Sets the mode of a session.
    ///
    /// # Panics
    /// When the agent refuses.
    pub fn set_mode(&self, session: &str, mode: &str) {
        self.call("session/set_mode", json!({ "sessionId": session, "modeId": mode }));
    }

    /// Sends a prompt of one text and gives the id of the request.
    pub fn send_prompt(&self, session: &str, text: &str) -> i64 {
        self.send_blocks(session, json!([{ "type": "text", "text": text }]))
    }

    /// Sends a prompt of these blocks and gives the id of the request.
    pub fn send_blocks(&self, session: &str, blocks: Value) -> i64 {
        self.send_request("session/prompt", json!({ "sessionId": session, "prompt": blocks }))
    }

    /// Sends a prompt and waits for the end of its turn.
    ///
    /// # Errors
    /// The error that the agent answers with.
    pub fn prompt(&self, session: &str, text: &str) -> Result<Value, RpcError> {
        self.await_answer(self.send_prompt(session, text))
    }

    /// Sends a prompt, waits for the end of its turn, and gives the updates that came before it.
    ///
    /// # Panics
    /// When the turn does not end by itself.
    pub fn run(&self, session: &str, text: &str) -> Vec<Value> {
        let before = self.look(|received| received.messages.len());
        let id = self.send_prompt(session, text);
        let ended = self.await_answer(id).unwrap_or_else(|error| panic!("{text}: {error:?}"));
        assert_eq!(ended["stopReason"], "end_turn", "{ended}");
        self.look(|received| {
            let (until, _) = received.around_answer(id).expect("it is answered");
            updates_of(&until[before..], session)
        })
    }

    /// Answers all permission requests with the option of this id.
    pub fn permit(&self, option: &'static str) {
        self.on_request("session/request_permission", move |_, _| Reply::Result(selected(option)));
    }

    /// Waits for the request of the agent with this method that comes behind this many others of it.
    #[must_use]
    pub fn wait_request(&self, method: &str, skip: usize) -> Value {
        self.wait_for(&format!("request {skip} of {method}"), |received| {
            received.of(method).filter(|message| message.get("id").is_some()).nth(skip).cloned()
        })
    }

    /// Selects an option of a permission request that waits.
    pub fn select(&self, request: &Value, option: &str) {
        self.answer(request, selected(option));
    }

    /// Waits for an update of a session that `is_meant`.
    pub fn wait_update(&self, session: &str, what: &str, is_meant: impl Fn(&Value) -> bool) -> Value {
        self.wait_for(what, |received: &Received| {
            updates_of(&received.messages, session).into_iter().find(|update| is_meant(update))
        })
    }

    /// Kills the agent at once, as a crash would.
    pub fn kill(&self) {
        self.process.lock().unwrap_or_else(PoisonError::into_inner).kill();
    }

    /// Closes the agent's input and gives the exit code.
    pub fn close(&self) -> i32 {
        self.connection.close_input();
        self.process.lock().unwrap_or_else(PoisonError::into_inner).wait("the end of the input")
    }

    /// The id of the agent's process.
    pub fn process_id(&self) -> u32 {
        self.process.lock().unwrap_or_else(PoisonError::into_inner).child().id()
    }
}

/// The answer to a permission request that selects an option.
fn selected(option: &str) -> Value {
    json!({ "outcome": { "outcome": "selected", "optionId": option } })
}

impl Deref for AcpClient {
    type Target = Connection;

    fn deref(&self) -> &Connection {
        &self.connection
    }
}

impl Drop for AcpClient {
    fn drop(&mut self) {
        self.connection.close_input();
        if !std::thread::panicking() {
            self.process.lock().unwrap_or_else(PoisonError::into_inner).wait("the end of the client");
        }
    }
}
