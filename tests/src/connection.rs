//! A JSON-RPC connection to a server process: messages out, messages in, and everything that came kept in order.
//!
//! Rule: writing never blocks the one who writes, reading never stops, and whatever is on standard output besides
//! frames fails the test at its next wait.

use std::collections::HashMap;
use std::fmt;
use std::io::{BufRead, BufReader, Read, Write};
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::sync::mpsc::{self, Sender};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Instant;

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::LIMIT;
use crate::process::{LOG_VARIABLE, Process};

/// Amount of the received messages that is shown when a wait fails.
const SHOWN_MESSAGES: usize = 40;
/// Number of bytes of each message that are shown.
const SHOWN_BYTES: usize = 600;

/// The reaction to a request of the server.
#[derive(Clone, Debug)]
pub enum Reply {
    /// Answer with this result.
    Result(Value),
    /// Answer with an error.
    Error(i64, String),
    /// Do not answer; the test may do so later.
    Silence,
}

type Responder = Box<dyn FnMut(&Connection, &Value) -> Reply + Send>;

/// An error answer.
#[derive(Clone, Debug, PartialEq)]
pub struct RpcError {
    /// The JSON-RPC code.
    pub code: i64,
    /// The server's text.
    pub message: String,
    /// The data for programs; `Null` without any.
    pub data: Value,
}

impl RpcError {
    /// The error's class; empty when it has none.
    #[must_use]
    pub fn kind(&self) -> &str {
        self.data["kind"].as_str().unwrap_or_default()
    }

    /// The next step; empty when it does not say.
    #[must_use]
    pub fn hint(&self) -> &str {
        self.data["hint"].as_str().unwrap_or_default()
    }
}

/// How messages are separated on the streams.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Framing {
    /// A header with the length before each, as LSP has it.
    Headers,
    /// One a line, as ACP has it.
    Lines,
}

/// Everything that came from the server.
#[derive(Default)]
pub struct Received {
    /// Notifications and requests, in order.
    pub messages: Vec<Value>,
    /// Answers that belong to no request of ours, for example to malformed ones.
    pub strays: Vec<Value>,
    /// Whether the server has closed its output.
    pub ended: bool,
    answers: HashMap<i64, Value>,
    /// The number of messages that came before each answer.
    before_answers: HashMap<i64, usize>,
    events: HashMap<String, Vec<Value>>,
    fault: Option<String>,
    stderr: Vec<u8>,
}

impl Received {
    /// The notifications of a method, in order.
    pub fn of<'a>(&'a self, method: &'a str) -> impl Iterator<Item = &'a Value> {
        self.messages.iter().filter(move |message| message["method"] == method)
    }

    /// The `agent/event` parameters of a session, in order.
    #[must_use]
    pub fn events(&self, session: &str) -> &[Value] {
        self.events.get(session).map(Vec::as_slice).unwrap_or_default()
    }

    /// The messages that came before the answer to a request, and those after it; `None` while it is not answered.
    #[must_use]
    pub fn around_answer(&self, id: i64) -> Option<(&[Value], &[Value])> {
        self.before_answers.get(&id).map(|before| self.messages.split_at(*before))
    }
}

#[derive(Default)]
struct Inbox {
    received: Mutex<Received>,
    arrived: Condvar,
}

/// A connection; shared between the test and the threads that read and answer.
pub struct Connection {
    framing: Framing,
    outbox: Mutex<Option<Sender<Vec<u8>>>>,
    inbox: Inbox,
    responders: Mutex<HashMap<String, Responder>>,
    next_id: AtomicI64,
    /// Held while the client does not read.
    reading: Mutex<()>,
    /// Whether the client is gone: the next message is not read any more.
    is_gone: AtomicBool,
}

impl fmt::Debug for Connection {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Connection").finish_non_exhaustive()
    }
}

impl Connection {
    /// Takes over the streams of a server process.
    ///
    /// # Panics
    /// When they were taken already.
    #[must_use]
    pub fn new(process: &mut Process) -> Arc<Self> {
        Self::with(process, Framing::Headers)
    }

    /// Takes over the streams of a process whose messages are separated so.
    ///
    /// # Panics
    /// When they were taken already.
    #[must_use]
    pub fn with(process: &mut Process, framing: Framing) -> Arc<Self> {
        let child = process.child();
        let mut stdin = child.stdin.take().expect("stdin is a pipe");
        let stdout = child.stdout.take().expect("stdout is a pipe");
        let mut stderr = child.stderr.take().expect("stderr is a pipe");
        let (outbox, queue) = mpsc::channel::<Vec<u8>>();
        thread::spawn(move || {
            for bytes in queue {
                // A server that has ended reads no more, and the waits see its end.
                if stdin.write_all(&bytes).and_then(|()| stdin.flush()).is_err() {
                    break;
                }
            }
        });
        let connection = Arc::new(Self {
            framing,
            outbox: Mutex::new(Some(outbox)),
            inbox: Inbox::default(),
            responders: Mutex::default(),
            next_id: AtomicI64::new(1),
            reading: Mutex::new(()),
            is_gone: AtomicBool::new(false),
        });
        let reading = Arc::clone(&connection);
        thread::spawn(move || reading.read(BufReader::new(stdout)));
        let listening = Arc::clone(&connection);
        thread::spawn(move || {
            let mut buffer = [0; 4096];
            let is_shown = std::env::var_os(LOG_VARIABLE).is_some();
            while let Ok(count @ 1..) = stderr.read(&mut buffer) {
                if is_shown {
                    show(&buffer[..count]);
                }
                listening.lock().stderr.extend_from_slice(&buffer[..count]);
            }
        });
        connection
    }

    /// Sends a request and waits for its answer.
    ///
    /// # Errors
    /// The error the server answers with.
    pub fn request(&self, method: &str, params: Value) -> Result<Value, RpcError> {
        let id = self.send_request(method, params);
        self.await_answer(id)
    }

    /// Sends a request and gives its id for [`Connection::await_answer`].
    pub fn send_request(&self, method: &str, params: Value) -> i64 {
        let id = self.next_id.fetch_add(1, Ordering::SeqCst);
        self.send(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }));
        id
    }

    /// Waits for the answer to a request.
    ///
    /// # Errors
    /// The error the server answers with.
    pub fn await_answer(&self, id: i64) -> Result<Value, RpcError> {
        let answer = self
            .wait_for(&format!("the answer to request {id}"), |received| received.answers.get(&id).cloned());
        match answer.get("error") {
            None | Some(Value::Null) => Ok(answer["result"].clone()),
            Some(error) => Err(RpcError {
                code: error["code"].as_i64().unwrap_or_default(),
                message: error["message"].as_str().unwrap_or_default().to_owned(),
                data: error["data"].clone(),
            }),
        }
    }

    /// Whether a request has been answered.
    #[must_use]
    pub fn is_answered(&self, id: i64) -> bool {
        self.lock().answers.contains_key(&id)
    }

    /// Sends a notification.
    pub fn notify(&self, method: &str, params: Value) {
        self.send(&json!({ "jsonrpc": "2.0", "method": method, "params": params }));
    }

    /// Answers a request of the server.
    pub fn answer(&self, request: &Value, result: Value) {
        self.send(&json!({ "jsonrpc": "2.0", "id": request["id"], "result": result }));
    }

    /// Sends one message.
    pub fn send(&self, message: &Value) {
        let body = message.to_string().into_bytes();
        self.send_bytes(match self.framing {
            Framing::Headers => frame(&body),
            Framing::Lines => [body.as_slice(), b"\n"].concat(),
        });
    }

    /// Sends bytes as they are.
    pub fn send_bytes(&self, bytes: Vec<u8>) {
        if let Some(outbox) = lock(&self.outbox).as_ref() {
            // Fails only when the server reads no more; the waits see its end.
            let _ = outbox.send(bytes);
        }
    }

    /// Closes the server's input.
    pub fn close_input(&self) {
        lock(&self.outbox).take();
    }

    /// Closes both streams, as the system does for a client that was killed: what has not arrived does not arrive any more. The
    /// output is closed with the next message that the server writes.
    pub fn hang_up(&self) {
        self.is_gone.store(true, Ordering::SeqCst);
        self.close_input();
    }

    /// Stops reading, but for the message that is being read, as long as the guard lives.
    pub fn stop_reading(&self) -> MutexGuard<'_, ()> {
        lock(&self.reading)
    }

    /// Says how requests of the server with this method are answered from now on; the responder gets the whole
    /// request.
    pub fn on_request(&self, method: &str, responder: impl FnMut(&Self, &Value) -> Reply + Send + 'static) {
        lock(&self.responders).insert(method.to_owned(), Box::new(responder));
    }

    /// Forgets every message and event that came so far; for clients that live so long that they would fill up.
    pub fn forget(&self) {
        let mut received = self.lock();
        received.messages.clear();
        received.events.clear();
        received.answers.clear();
    }

    /// Checks the messages received so far.
    pub fn look<T>(&self, look: impl FnOnce(&Received) -> T) -> T {
        look(&self.lock())
    }

    /// Waits until `find` finds a match in the received messages.
    ///
    /// # Panics
    /// When it is not found within [`LIMIT`], when the server has ended, and when something other than frames came;
    /// the message shows the received ones instead.
    pub fn wait_for<T>(&self, what: &str, mut find: impl FnMut(&Received) -> Option<T>) -> T {
        let deadline = Instant::now() + LIMIT;
        let mut received = self.lock();
        loop {
            if let Some(fault) = &received.fault {
                panic!("waited for {what}, but {fault}\n{}", describe(&received));
            }
            if let Some(found) = find(&received) {
                return found;
            }
            let left = deadline.saturating_duration_since(Instant::now());
            let why = match (received.ended, left.is_zero()) {
                (true, _) => "the server has ended",
                (false, true) => "the limit is over",
                (false, false) => {
                    let waited = self.inbox.arrived.wait_timeout(received, left);
                    received = waited.unwrap_or_else(PoisonError::into_inner).0;
                    continue;
                }
            };
            panic!("waited for {what}, but {why}\n{}", describe(&received));
        }
    }

    /// Waits until the server has closed its output.
    ///
    /// # Panics
    /// As [`Connection::wait_for`].
    pub fn wait_for_end(&self) {
        self.wait_for("the end of the server", |received| received.ended.then_some(()));
    }

    /// The server's standard error so far.
    #[must_use]
    pub fn stderr(&self) -> String {
        String::from_utf8_lossy(&self.lock().stderr).into_owned()
    }

    fn read(&self, mut reader: impl BufRead) {
        let _end = End(self);
        loop {
            drop(lock(&self.reading));
            let message = match self.framing {
                Framing::Headers => read_frame(&mut reader),
                Framing::Lines => read_line(&mut reader),
            };
            if self.is_gone.load(Ordering::SeqCst) {
                break;
            }
            match message {
                Ok(Some(message)) => self.take(message),
                Ok(None) => break,
                Err(fault) => {
                    self.lock().fault = Some(format!("standard output holds more than frames: {fault}"));
                    break;
                }
            }
        }
    }

    fn take(&self, message: Value) {
        let method = message["method"].as_str().map(str::to_owned);
        let is_request = method.is_some() && message.get("id").is_some();
        {
            let mut received = self.lock();
            match (&method, message["id"].as_i64()) {
                (Some(_), _) => received.messages.push(message.clone()),
                (None, Some(id)) => {
                    let before = received.messages.len();
                    received.before_answers.insert(id, before);
                    if received.answers.insert(id, message.clone()).is_some() {
                        received.fault = Some(format!("request {id} was answered twice"));
                    }
                }
                (None, None) => received.strays.push(message.clone()),
            }
            if method.as_deref() == Some("agent/event") {
                if let Err(fault) = conforms::<kode_protocol::AgentEventParams>(&message["params"]) {
                    received.fault = Some(fault);
                }
                let session = message["params"]["sessionId"].as_str().unwrap_or_default().to_owned();
                received.events.entry(session).or_default().push(message["params"].clone());
            }
        }
        self.inbox.arrived.notify_all();
        if let (Some(method), true) = (method, is_request) {
            self.reply(&method, &message);
        }
    }

    fn reply(&self, method: &str, request: &Value) {
        // Taken out while it runs: it may send, and nothing else answers requests.
        let responder = lock(&self.responders).remove(method);
        let reply = match responder {
            Some(mut responder) => {
                let reply = responder(self, request);
                lock(&self.responders).entry(method.to_owned()).or_insert(responder);
                reply
            }
            None => default_reply(method),
        };
        let id = &request["id"];
        match reply {
            Reply::Result(result) => self.send(&json!({ "jsonrpc": "2.0", "id": id, "result": result })),
            Reply::Error(code, message) => {
                let error = json!({ "code": code, "message": message });
                self.send(&json!({ "jsonrpc": "2.0", "id": id, "error": error }));
            }
            Reply::Silence => {}
        }
    }

    fn lock(&self) -> MutexGuard<'_, Received> {
        lock(&self.inbox.received)
    }
}

/// Marks the end of reading, however it came.
struct End<'a>(&'a Connection);

impl Drop for End<'_> {
    fn drop(&mut self) {
        let mut received = self.0.lock();
        received.ended = true;
        if thread::panicking() {
            received.fault = Some("the editor could not follow the server (see the panic above)".to_owned());
        }
        drop(received);
        self.0.inbox.arrived.notify_all();
    }
}

/// A frame around a body.
#[must_use]
pub fn frame(body: &[u8]) -> Vec<u8> {
    let mut frame = format!("Content-Length: {}\r\n\r\n", body.len()).into_bytes();
    frame.extend_from_slice(body);
    frame
}

/// Whether a value is exactly one of the protocol's type: nothing missing, nothing that the type does not know.
///
/// # Errors
/// The difference.
pub fn conforms<T: DeserializeOwned + Serialize>(value: &Value) -> Result<(), String> {
    let typed: T = serde_json::from_value(value.clone()).map_err(|error| format!("{error} in {value}"))?;
    match serde_json::to_value(typed) {
        Ok(again) if again == *value => Ok(()),
        Ok(again) => Err(format!("{value} is {again} to the protocol")),
        Err(error) => Err(format!("{value} has a case that the protocol does not know: {error}")),
    }
}

fn default_reply(method: &str) -> Reply {
    match method {
        "window/workDoneProgress/create" | "client/registerCapability" => Reply::Result(Value::Null),
        "window/showMessageRequest" | "session/request_permission" | "elicitation/create" => Reply::Silence,
        _ => Reply::Error(-32601, format!("this client has no {method}")),
    }
}

/// Reads one message of a line; the error shows the bytes found instead.
fn read_line(reader: &mut impl BufRead) -> Result<Option<Value>, String> {
    let mut line = Vec::new();
    let count = reader.read_until(b'\n', &mut line).map_err(|error| error.to_string())?;
    if count == 0 {
        return Ok(None);
    }
    let text = String::from_utf8_lossy(&line);
    let body = text.strip_suffix('\n').ok_or_else(|| format!("{text:?} is no whole line"))?;
    serde_json::from_str(body).map(Some).map_err(|error| format!("a line that is no JSON: {error}: {body:?}"))
}

/// Reads one frame; the error shows the bytes found instead.
fn read_frame(reader: &mut impl BufRead) -> Result<Option<Value>, String> {
    let mut length = None;
    loop {
        let mut line = Vec::new();
        let count = reader.read_until(b'\n', &mut line).map_err(|error| error.to_string())?;
        if count == 0 {
            return Ok(None);
        }
        let line = String::from_utf8_lossy(&line);
        let header = line.strip_suffix("\r\n").ok_or_else(|| format!("{line:?} is no header line"))?;
        match header.split_once(": ") {
            _ if header.is_empty() => break,
            Some(("Content-Length", value)) => {
                length = Some(value.parse::<usize>().map_err(|_| format!("{header:?} has no length"))?);
            }
            Some(("Content-Type", _)) => {}
            _ => return Err(format!("{header:?} is no header")),
        }
    }
    let mut body = vec![0; length.ok_or("a header block without Content-Length")?];
    if reader.read_exact(&mut body).is_err() {
        return Ok(None);
    }
    serde_json::from_slice(&body).map(Some).map_err(|error| format!("a body that is no JSON: {error}"))
}

fn describe(received: &Received) -> String {
    let skipped = received.messages.len().saturating_sub(SHOWN_MESSAGES);
    let mut text = format!("received ({skipped} older ones left out):\n");
    for message in &received.messages[skipped..] {
        let line: String = message.to_string().chars().take(SHOWN_BYTES).collect();
        text.push_str(&format!("  {line}\n"));
    }
    for stray in &received.strays {
        text.push_str(&format!("  stray answer: {stray}\n"));
    }
    let stderr = String::from_utf8_lossy(&received.stderr);
    let tail: Vec<&str> = stderr.lines().rev().take(SHOWN_MESSAGES).collect();
    text.push_str("standard error:\n");
    for line in tail.into_iter().rev() {
        text.push_str(&format!("  {line}\n"));
    }
    text
}

/// Prints what the server logs, among the output of the test.
#[expect(clippy::print_stderr, reason = "asked for by the person who debugs a test")]
fn show(bytes: &[u8]) {
    eprint!("{}", String::from_utf8_lossy(bytes));
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
