//! The HTTP server of the scripted model.
//!
//! Rule: loopback only, and only for clients that came for loopback (no web page gets at it by another name);
//! everything it keeps is bounded, and nothing of it outlives its handle.

use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};
use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use futures::stream;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full, Limited, StreamBody};
use hyper::body::{Frame, Incoming};
use hyper::header::{AUTHORIZATION, CONTENT_TYPE, HOST, HeaderName, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{HeaderMap, Method, Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, watch};
use tokio::time::timeout;
use tokio_util::sync::{CancellationToken, DropGuard};
use url::Url;

use super::playback::{Answer, CALL_ID_PREFIX, Cue, Numbers, cues};
use super::script::{Fault, Position, Scenes, Script, Step};
use super::{script, validate};
use crate::model::http::is_loopback;

/// How many connections are served at once.
const MAX_CONNECTIONS: usize = 128;

/// The most bytes of a request's body.
const MAX_REQUEST_BYTES: usize = 64 * 1024 * 1024;

/// How many requests are kept for looking at; the oldest go first.
const MAX_RECORDED: usize = 1_024;

/// How long `/scripted/waiting` waits for a request to reach a gate.
const WAITING_LIMIT: Duration = Duration::from_secs(30);

/// The pause after a failed accept, so that a lack of file handles is not met by spinning.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// What is said when the script has nothing more to say.
const NO_FURTHER_STEP: &str = "(the script has no further step)";

type Body = UnsyncBoxBody<Bytes, io::Error>;

/// A running scripted model. Dropping it stops the server and closes its connections.
#[derive(Debug)]
pub struct ScriptedServer {
    addr: SocketAddr,
    state: Arc<State>,
    _stop: DropGuard,
}

#[derive(Debug)]
struct State {
    scenes: Scenes,
    gates: watch::Sender<Gates>,
    log: Mutex<Log>,
}

/// The gates that are open, and how many answers each holds.
#[derive(Debug, Default)]
struct Gates {
    open: HashSet<String>,
    held: HashMap<String, usize>,
}

#[derive(Debug, Default)]
struct Log {
    requests: VecDeque<Value>,
    /// Messages asked for so far.
    messages: usize,
    /// The highest number that the id of a call has had, in this server or in a history it was shown.
    calls: usize,
    faults_taken: HashMap<Position, usize>,
}

impl ScriptedServer {
    /// Serves `script` on `addr`, where port 0 means any free one.
    ///
    /// # Errors
    /// [`io::ErrorKind::InvalidInput`] for an address that is not loopback or a pattern that is no regular
    /// expression, and what the system says when it cannot bind.
    pub async fn serve(script: Script, addr: SocketAddr) -> io::Result<Self> {
        if !addr.ip().is_loopback() {
            return Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                format!("the scripted model serves this machine only; {addr} is not a loopback address"),
            ));
        }
        let state = Arc::new(State {
            scenes: Scenes::new(script)?,
            gates: watch::Sender::new(Gates::default()),
            log: Mutex::default(),
        });
        let listener = TcpListener::bind(addr).await?;
        let addr = listener.local_addr()?;
        let stop = CancellationToken::new();
        tokio::spawn(accept(listener, Arc::clone(&state), stop.clone()));
        Ok(Self { addr, state, _stop: stop.drop_guard() })
    }

    /// Where it listens.
    #[must_use]
    pub fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// Its address as a profile's base URL.
    #[must_use]
    pub fn base_url(&self) -> String {
        format!("http://{}", self.addr)
    }

    /// The bodies of the last requests for a message, refused ones included, oldest first.
    #[must_use]
    pub fn requests(&self) -> Vec<Value> {
        self.state.log().requests.iter().cloned().collect()
    }

    /// Opens the gate `name` for good.
    pub fn release(&self, name: &str) {
        self.state.release(name);
    }

    /// Waits until an answer is held at the gate `name`.
    pub async fn waiting(&self, name: &str) {
        self.state.waiting(name).await;
    }
}

impl State {
    fn log(&self) -> MutexGuard<'_, Log> {
        self.log.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn release(&self, name: &str) {
        self.gates.send_modify(|gates| {
            gates.open.insert(name.to_owned());
        });
    }

    async fn waiting(&self, name: &str) {
        let is_held = |gates: &Gates| gates.held.get(name).is_some_and(|held| *held > 0);
        // The sender lives as long as `self`.
        let _ = self.gates.subscribe().wait_for(is_held).await;
    }

    /// Waits at the gate `name` until it is open; being dropped there counts as leaving.
    async fn hold(&self, name: &str) {
        let _held = Held::new(self, name);
        let _ = self.gates.subscribe().wait_for(|gates| gates.open.contains(name)).await;
    }

    fn record(&self, request: Value) {
        let mut log = self.log();
        if log.requests.len() == MAX_RECORDED {
            log.requests.pop_front();
        }
        log.requests.push_back(request);
    }

    /// Numbers for an answer to `request` with so many calls. A history that outlived another server goes on with
    /// numbers it has not had.
    fn number(&self, request: &Value, calls: usize) -> Numbers {
        let ids = script::blocks(request).filter_map(|block| block["id"].as_str());
        let numbers = ids.filter_map(|id| id.strip_prefix(CALL_ID_PREFIX)?.parse().ok());
        let highest: usize = numbers.max().unwrap_or_default();
        let mut log = self.log();
        log.messages = log.messages.saturating_add(1);
        let first_call = log.calls.max(highest).saturating_add(1);
        log.calls = first_call.saturating_add(calls).saturating_sub(1);
        Numbers { message: log.messages, first_call }
    }

    /// The next fault of the step that no request has taken yet.
    fn take_fault(&self, position: Position, step: &Step) -> Option<Fault> {
        let mut log = self.log();
        let taken = log.faults_taken.entry(position).or_default();
        let fault = step.faults.get(*taken).cloned();
        *taken += usize::from(fault.is_some());
        fault
    }
}

struct Held<'a> {
    state: &'a State,
    name: &'a str,
}

impl<'a> Held<'a> {
    fn new(state: &'a State, name: &'a str) -> Self {
        state.gates.send_modify(|gates| *gates.held.entry(name.to_owned()).or_default() += 1);
        Self { state, name }
    }
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        self.state.gates.send_modify(|gates| {
            if let Some(held) = gates.held.get_mut(self.name) {
                *held -= 1;
            }
        });
    }
}

async fn accept(listener: TcpListener, state: Arc<State>, stop: CancellationToken) {
    let slots = Arc::new(Semaphore::new(MAX_CONNECTIONS));
    let accepting = async {
        // The semaphore is never closed.
        while let Ok(slot) = Arc::clone(&slots).acquire_owned().await {
            match listener.accept().await {
                Ok((stream, _)) => {
                    let (state, stop) = (Arc::clone(&state), stop.clone());
                    tokio::spawn(async move {
                        stop.run_until_cancelled(serve_connection(stream, state)).await;
                        drop(slot);
                    });
                }
                Err(error) => {
                    tracing::debug!(%error, "the scripted model could not accept a connection");
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                }
            }
        }
    };
    stop.run_until_cancelled(accepting).await;
}

async fn serve_connection(stream: TcpStream, state: Arc<State>) {
    // Without this, the last piece of an answer can wait for an acknowledgement.
    let _ = stream.set_nodelay(true);
    let service = service_fn(|request| {
        let state = Arc::clone(&state);
        async move { Ok::<_, Infallible>(handle(state, request).await) }
    });
    // Clients that leave and answers that are cut on purpose both end here as errors.
    if let Err(error) = http1::Builder::new().serve_connection(TokioIo::new(stream), service).await {
        tracing::trace!(%error, "a connection to the scripted model ended");
    }
}

async fn handle(state: Arc<State>, request: Request<Incoming>) -> Response<Body> {
    if !came_for_loopback(request.headers()) {
        return error(StatusCode::FORBIDDEN, "permission_error", "This server is for this machine only");
    }
    let (method, path) = (request.method().clone(), request.uri().path().to_owned());
    let segments: Vec<&str> = path.trim_matches('/').split('/').collect();
    match (&method, segments.as_slice()) {
        (&Method::POST, ["v1", "messages"]) => messages(state, request).await,
        (&Method::GET, ["scripted", "requests"]) => {
            let requests: Vec<Value> = state.log().requests.iter().cloned().collect();
            json_response(StatusCode::OK, &Value::Array(requests))
        }
        (&Method::POST, ["scripted", "release", name]) => {
            state.release(name);
            json_response(StatusCode::OK, &json!({"released": name}))
        }
        (&Method::GET, ["scripted", "waiting", name]) => {
            match timeout(WAITING_LIMIT, state.waiting(name)).await {
                Ok(()) => json_response(StatusCode::OK, &json!({"waiting": name})),
                Err(_) => error(
                    StatusCode::GATEWAY_TIMEOUT,
                    "timeout_error",
                    &format!("No request reached the gate `{name}` within {WAITING_LIMIT:?}"),
                ),
            }
        }
        _ => error(StatusCode::NOT_FOUND, "not_found_error", &format!("There is no {method} {path}")),
    }
}

async fn messages(state: Arc<State>, request: Request<Incoming>) -> Response<Body> {
    let invalid = |reason: &str| error(StatusCode::BAD_REQUEST, "invalid_request_error", reason);
    let headers = request.headers();
    if !headers.contains_key("x-api-key") && !headers.contains_key(AUTHORIZATION) {
        return error(StatusCode::UNAUTHORIZED, "authentication_error", "x-api-key header is required");
    }
    if !headers.contains_key("anthropic-version") {
        return invalid("anthropic-version: header is required");
    }
    let Ok(body) = Limited::new(request.into_body(), MAX_REQUEST_BYTES).collect().await else {
        return error(
            StatusCode::PAYLOAD_TOO_LARGE,
            "request_too_large",
            "Request exceeds the maximum allowed number of bytes",
        );
    };
    let body: Value = match serde_json::from_slice(&body.to_bytes()) {
        Ok(body) => body,
        Err(error) => return invalid(&format!("The request body is not valid JSON: {error}")),
    };
    state.record(body.clone());
    if let Err(reason) = validate::request(&body) {
        return invalid(&reason);
    }
    let streamed = body["stream"] == true;
    let Some((position, step)) = state.scenes.find(&body) else {
        let answer = Answer::text(NO_FURTHER_STEP, &body, state.number(&body, 0));
        return deliver(&state, answer, streamed, None, None);
    };
    let mut cut = None;
    match state.take_fault(position, step) {
        Some(Fault::Status { status, headers, body }) => return status_fault(status, &headers, body),
        Some(Fault::Raw { raw }) => return event_stream(full(raw)),
        Some(Fault::Cut { cut_after_events }) => cut = Some(cut_after_events),
        Some(Fault::Hang { hang: true }) => std::future::pending().await,
        Some(Fault::Hang { hang: false }) | None => {}
    }
    let mut gate = step.gate.clone().map(|name| (step.gate_after_events, name));
    if let Some((_, name)) = gate.take_if(|(after, _)| *after == 0 || !streamed) {
        state.hold(&name).await;
    }
    let numbers = state.number(&body, step.calls());
    deliver(&state, Answer::new(step, &body, numbers), streamed, gate, cut)
}

fn deliver(
    state: &Arc<State>,
    answer: Answer,
    streamed: bool,
    gate: Option<(usize, String)>,
    cut: Option<usize>,
) -> Response<Body> {
    if !streamed && cut.is_none() {
        return json_response(StatusCode::OK, &answer.whole());
    }
    let cues = cues(answer.events(), gate, cut).into_iter();
    let frames = stream::unfold((cues, Arc::clone(state)), |(mut cues, state)| async move {
        loop {
            match cues.next()? {
                Cue::Send(event) => return Some((Ok(Frame::data(event)), (cues, state))),
                Cue::Hold(name) => state.hold(&name).await,
                Cue::Cut => {
                    // Pausing once lets the server send what it has before it closes the connection.
                    tokio::task::yield_now().await;
                    return Some((Err(io::Error::other("cut by the script")), (cues, state)));
                }
            }
        }
    });
    event_stream(StreamBody::new(frames).boxed_unsync())
}

fn status_fault(status: u16, headers: &BTreeMap<String, String>, body: Option<Value>) -> Response<Body> {
    let status = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let mut response = match body {
        None => error(status, error_type(status), "The script wants this request to fail"),
        Some(Value::String(text)) => respond(status, "text/plain; charset=utf-8", full(text)),
        Some(body) => json_response(status, &body),
    };
    for (name, value) in headers {
        if let (Ok(name), Ok(value)) = (HeaderName::try_from(name), HeaderValue::try_from(value)) {
            response.headers_mut().insert(name, value);
        }
    }
    response
}

fn error_type(status: StatusCode) -> &'static str {
    match status.as_u16() {
        401 => "authentication_error",
        403 => "permission_error",
        404 => "not_found_error",
        413 => "request_too_large",
        429 => "rate_limit_error",
        529 => "overloaded_error",
        500..=599 => "api_error",
        _ => "invalid_request_error",
    }
}

/// Whether the client named this machine as the host; a page that rebinds its own name to it does not.
fn came_for_loopback(headers: &HeaderMap) -> bool {
    let host = headers.get(HOST).and_then(|host| host.to_str().ok());
    host.and_then(|host| Url::parse(&format!("http://{host}")).ok()).is_some_and(|url| is_loopback(&url))
}

fn error(status: StatusCode, kind: &str, message: &str) -> Response<Body> {
    let body = json!({"type": "error", "error": {"type": kind, "message": message}});
    let mut response = json_response(status, &body);
    response.headers_mut().insert("request-id", HeaderValue::from_static("req_scripted"));
    response
}

fn json_response(status: StatusCode, body: &Value) -> Response<Body> {
    respond(status, "application/json", full(body.to_string()))
}

fn event_stream(body: Body) -> Response<Body> {
    respond(StatusCode::OK, "text/event-stream; charset=utf-8", body)
}

fn respond(status: StatusCode, content_type: &'static str, body: Body) -> Response<Body> {
    let mut response = Response::new(body);
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    response
}

fn full(text: String) -> Body {
    Full::new(Bytes::from(text)).map_err(|never| match never {}).boxed_unsync()
}
