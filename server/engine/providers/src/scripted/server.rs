//! The HTTP server of the scripted model.
//!
//! Rule: loopback only, and only for clients that came for loopback (no web page gets at it by another name);
//! everything it keeps is bounded, and nothing of it outlives its handle.

use std::collections::BTreeMap;
use std::collections::hash_map::{DefaultHasher, RandomState};
use std::convert::Infallible;
use std::hash::{BuildHasher, Hash, Hasher};
use std::io;
use std::net::SocketAddr;
use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::stream;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full, Limited, StreamBody};
use hyper::body::{Frame, Incoming};
use hyper::header::{CONTENT_TYPE, HOST, HeaderName, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{HeaderMap, Method, Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use kode_base::task;
use parking_lot::{Mutex, MutexGuard};
use serde_json::{Value, json};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::time::{MissedTickBehavior, timeout};
use tokio_util::sync::{CancellationToken, DropGuard};
use url::Url;

use super::log::{Gates, Log, LoggedExchange};
use super::memory::{ConversationStore, StoredConversation};
use super::playback::{Cue, ScriptedAnswer, WireAnswer, cues};
use super::question::RequestView;
use super::refusal::Refusal;
use super::route::{RouteFraming, ScriptedRoute};
use super::scenes::Scenes;
use super::script::{Quirks, Script, ScriptFault};
use super::timed::{CurrentTimes, ServerClock, TimedStream, Times, write_for};
use super::validate;
use kode_model::Wire;
use kode_net::http::is_loopback;

/// How many connections are served at once.
const MAX_CONNECTIONS: usize = 128;

/// The most bytes of a request's body.
const MAX_REQUEST_BYTES: usize = 64 * 1024 * 1024;

/// How long `/scripted/waiting` waits for a request to reach a gate.
const WAITING_LIMIT: Duration = Duration::from_secs(30);

/// The pause after a failed accept, so that a lack of file handles is not met by spinning.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// The text when the script has ended.
const NO_FURTHER_STEP: &str = "(the script has no further step)";

type ServerBody = UnsyncBoxBody<Bytes, io::Error>;

/// A running scripted model. Dropping it stops the server and closes its connections.
#[derive(Debug)]
pub struct ScriptedServer {
    addr: SocketAddr,
    state: Arc<ScriptedState>,
    _stop: DropGuard,
}

#[derive(Debug)]
struct ScriptedState {
    scenes: Scenes,
    quirks: Quirks,
    gates: Gates,
    log: Mutex<Log>,
    memory: Mutex<ConversationStore>,
    clock: ServerClock,
    /// The mark of this server's ids.
    number: u64,
}

impl ScriptedState {
    /// The number by which seals are known: of this server and, in formats with seals, of the model. No model takes the seal
    /// of another one.
    fn number_of(&self, route: &ScriptedRoute, body: &Value) -> u64 {
        match route.wire {
            Wire::ChatCompletions | Wire::Gemini => {
                let mut hasher = DefaultHasher::new();
                (self.number, route.model.as_deref().or(body["model"].as_str())).hash(&mut hasher);
                hasher.finish()
            }
            Wire::AnthropicMessages | Wire::Responses | Wire::Ollama => self.number,
        }
    }
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
        let state = Arc::new(ScriptedState {
            scenes: Scenes::new(script.programs)?,
            quirks: script.quirks,
            gates: Gates::new(),
            log: Mutex::default(),
            memory: Mutex::default(),
            clock: ServerClock::start(),
            number: random_number(),
        });
        let listener = TcpListener::bind(addr).await?;
        let addr = listener.local_addr()?;
        let stop = CancellationToken::new();
        task::spawn(accept(listener, Arc::clone(&state), stop.clone()));
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

    /// The bodies of the last requests for an answer, refused ones included, oldest first.
    #[must_use]
    pub fn requests(&self) -> Vec<Value> {
        let bodies = self.state.log().bodies();
        bodies.iter().filter_map(|body| serde_json::from_slice(body).ok()).collect()
    }

    /// Opens the gate `name` for good.
    pub fn release(&self, name: &str) {
        self.state.gates.release(name);
    }

    /// Waits until an answer is held at the gate `name`.
    pub async fn waiting(&self, name: &str) {
        self.state.gates.waiting(name).await;
    }

    /// Forgets every response that could be continued from.
    pub fn forget(&self) {
        self.state.memory().forget();
    }
}

impl ScriptedState {
    fn log(&self) -> MutexGuard<'_, Log> {
        self.log.lock()
    }

    fn memory(&self) -> MutexGuard<'_, ConversationStore> {
        self.memory.lock()
    }
}

/// A number that another server hardly has.
fn random_number() -> u64 {
    RandomState::new().build_hasher().finish()
}

async fn accept(listener: TcpListener, state: Arc<ScriptedState>, stop: CancellationToken) {
    let slots = Arc::new(Semaphore::new(MAX_CONNECTIONS));
    let accepting = async {
        // The semaphore is never closed.
        while let Ok(slot) = Arc::clone(&slots).acquire_owned().await {
            match listener.accept().await {
                Ok((stream, _)) => {
                    let (state, stop) = (Arc::clone(&state), stop.clone());
                    task::spawn(async move {
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

async fn serve_connection(stream: TcpStream, state: Arc<ScriptedState>) {
    // Without this, the last piece of an answer can wait for an acknowledgement.
    let _ = stream.set_nodelay(true);
    let current = CurrentTimes::default();
    let stream = TimedStream::new(stream, state.clock, Arc::clone(&current));
    let service = service_fn(|request| {
        let (state, current) = (Arc::clone(&state), Arc::clone(&current));
        async move { Ok::<_, Infallible>(handle(state, &current, request).await) }
    });
    // Clients that leave and answers that are cut on purpose both end here as errors.
    if let Err(error) = http1::Builder::new().serve_connection(TokioIo::new(stream), service).await {
        tracing::trace!(%error, "a connection to the scripted model ended");
    }
}

async fn handle(
    state: Arc<ScriptedState>,
    current: &CurrentTimes,
    request: Request<Incoming>,
) -> Response<ServerBody> {
    let nothing = Wire::AnthropicMessages;
    if !came_for_loopback(request.headers()) {
        return refuse(nothing, &Refusal::new(403, "This server is for this machine only"));
    }
    let (method, path) = (request.method().clone(), request.uri().path().to_owned());
    let segments: Vec<&str> = path.trim_matches('/').split('/').collect();
    if let Some(page) = state.quirks.pages.get(&path) {
        return json_response(StatusCode::OK, page);
    }
    if let Some(route) = ScriptedRoute::of(&segments).filter(|_| method == Method::POST) {
        return answer(state, current, route, request).await;
    }
    match (&method, segments.as_slice()) {
        (&Method::GET, ["scripted", "requests"]) => json_text(StatusCode::OK, state.log().reported(true)),
        (&Method::GET, ["scripted", "newest"]) => json_text(StatusCode::OK, state.log().newest()),
        (&Method::GET, ["scripted", "exchanges"]) => json_text(StatusCode::OK, state.log().reported(false)),
        (&Method::GET, ["scripted", "refusals"]) => {
            json_response(StatusCode::OK, &json!(state.log().refusals()))
        }
        (&Method::POST, ["scripted", "forget"]) => {
            state.memory().forget();
            json_response(StatusCode::OK, &json!({"forgotten": true}))
        }
        (&Method::POST, ["scripted", "release", name]) => {
            state.gates.release(name);
            json_response(StatusCode::OK, &json!({"released": name}))
        }
        (&Method::GET, ["scripted", "waiting", name]) => {
            match timeout(WAITING_LIMIT, state.gates.waiting(name)).await {
                Ok(()) => json_response(StatusCode::OK, &json!({"waiting": name})),
                Err(_) => {
                    let message = format!("No request reached the gate `{name}` within {WAITING_LIMIT:?}");
                    refuse(nothing, &Refusal::new(504, message))
                }
            }
        }
        _ => refuse(nothing, &Refusal::new(404, format!("There is no {method} {path}"))),
    }
}

/// Answers a request for an answer, or refuses it as the wire's API would.
async fn answer(
    state: Arc<ScriptedState>,
    current: &CurrentTimes,
    route: ScriptedRoute,
    request: Request<Incoming>,
) -> Response<ServerBody> {
    let wire = route.wire;
    let path = request.uri().path().to_owned();
    let (headers, uri) = (request.headers().clone(), request.uri().clone());
    let most = state.quirks.max_request_bytes.unwrap_or(MAX_REQUEST_BYTES);
    let Ok(bytes) = Limited::new(request.into_body(), most).collect().await else {
        return refuse(wire, &Refusal::new(413, "Request exceeds the maximum allowed number of bytes"));
    };
    let bytes = bytes.to_bytes();
    if let Err(refusal) = route.admits(&headers, &uri, &bytes, &state.quirks) {
        return refuse(wire, &refusal);
    }
    let times = Arc::new(Times { received: state.clock.nanoseconds(), ..Times::default() });
    write_for(current, &times);
    let body: Value = match serde_json::from_slice(&bytes) {
        Ok(body) => body,
        Err(error) => {
            let reason = format!("The request body is not valid JSON: {error}");
            return refuse(wire, &Refusal::invalid(reason));
        }
    };
    let length = bytes.len();
    state.log().record(LoggedExchange { wire, path, bytes: length, body: Some(bytes), times });
    let judged = route.plain(body).and_then(|body| {
        let conversation = judge(&state, &route, &body, length)?;
        Ok((body, conversation))
    });
    match judged {
        Err(refusal) => {
            state.log().note_refusal(&refusal.message);
            refuse(wire, &refusal)
        }
        Ok((body, conversation)) => play(state, &route, &body, conversation, length).await,
    }
}

/// Checks a request and gives the conversation it is about, where the wire has the server keep it.
fn judge(
    state: &ScriptedState,
    route: &ScriptedRoute,
    body: &Value,
    bytes: usize,
) -> Result<StoredConversation, Refusal> {
    let (wire, number) = (route.wire, state.number_of(route, body));
    validate::quirks(wire, body, &state.quirks)?;
    validate::window(bytes, &state.quirks)?;
    match wire {
        Wire::Gemini | Wire::Ollama | Wire::AnthropicMessages | Wire::ChatCompletions
            if state.quirks.unchecked => {}
        Wire::Gemini => validate::gemini::request(body, number)?,
        Wire::Ollama => validate::ollama::request(body, &state.quirks)?,
        Wire::AnthropicMessages => validate::messages::request(body)?,
        Wire::ChatCompletions => validate::chat::request(body, &state.quirks, number)?,
        Wire::Responses => {
            let mut items = input_items(&body["input"])?;
            if !state.quirks.unchecked {
                validate::responses::request(body)?;
                validate::responses::input(body, &items)?;
            }
            let memory = state.memory();
            let mut conversation = match body["previous_response_id"].as_str() {
                None => StoredConversation::default(),
                Some(id) => memory.get(id).cloned().ok_or_else(|| not_found(id))?,
            };
            conversation.items.append(&mut items);
            conversation.bytes += bytes;
            if !state.quirks.unchecked {
                validate::responses::conversation(&conversation.items, |item| memory.needed(item))?;
            }
            return Ok(conversation);
        }
    }
    Ok(StoredConversation { bytes, ..StoredConversation::default() })
}

/// The items of an input, which may also be one text.
fn input_items(input: &Value) -> Result<Vec<Arc<Value>>, Refusal> {
    match input {
        Value::Null => Ok(Vec::new()),
        Value::String(text) => {
            Ok(vec![Arc::new(json!({"type": "message", "role": "user", "content": text}))])
        }
        Value::Array(items) => Ok(items.iter().cloned().map(Arc::new).collect()),
        Value::Bool(_) | Value::Number(_) | Value::Object(_) => {
            Err(Refusal::invalid("Invalid type for 'input': expected a string or an array.").param("input"))
        }
    }
}

fn not_found(id: &str) -> Refusal {
    Refusal::invalid(format!("Previous response with id '{id}' not found."))
        .param("previous_response_id")
        .code("previous_response_not_found")
}

/// Plays the step that answers a request.
async fn play(
    state: Arc<ScriptedState>,
    route: &ScriptedRoute,
    body: &Value,
    conversation: StoredConversation,
    bytes: usize,
) -> Response<ServerBody> {
    let (wire, number) = (route.wire, state.number_of(route, body));
    let question = match wire {
        Wire::Gemini => RequestView::gemini(body, bytes),
        Wire::Ollama => RequestView::ollama(body, bytes),
        Wire::AnthropicMessages => RequestView::messages(body, bytes),
        Wire::ChatCompletions => RequestView::chat(body, bytes),
        Wire::Responses => RequestView::responses(body, &conversation.items, conversation.bytes),
    };
    let (is_streamed, framing) = (route.is_streamed(body), route.framing());
    let Some((position, step)) = state.scenes.find(&question) else {
        let numbers = state.log().number(&question, 0, number);
        let answer = ScriptedAnswer::text(NO_FURTHER_STEP, &question, &state.quirks, numbers).write();
        keep(&state, body, &answer, &conversation);
        return deliver(&state, answer, is_streamed.then_some(framing), Cues::default());
    };
    let mut cut = None;
    let fault = state.log().take_fault(position, step);
    match fault {
        Some(ScriptFault::Status { status, headers, body }) => {
            return status_fault(wire, status, &headers, body);
        }
        Some(ScriptFault::Raw { raw }) => return stream_of(framing, full(raw)),
        Some(ScriptFault::Cut { cut_after_events }) => cut = Some(cut_after_events),
        Some(ScriptFault::Hang { hang: true }) => std::future::pending().await,
        Some(ScriptFault::Forget { forget: true }) => {
            state.memory().forget();
            if let Some(id) = body["previous_response_id"].as_str() {
                return refuse(wire, &not_found(id));
            }
        }
        Some(ScriptFault::Hang { hang: false } | ScriptFault::Forget { forget: false }) | None => {}
    }
    let mut gate = step.gate.clone().map(|name| (step.gate_after_events, name));
    if let Some((_, name)) = gate.take_if(|(after, _)| *after == 0 || !is_streamed) {
        state.gates.hold(&name).await;
    }
    let numbers = state.log().number(&question, step.calls(question.was_refused()), number);
    let answer = ScriptedAnswer::new(step, &question, &state.quirks, numbers).write();
    if cut.is_none() {
        keep(&state, body, &answer, &conversation);
    }
    let mut response =
        deliver(&state, answer, is_streamed.then_some(framing), Cues { gate, cut, rate: step.rate });
    add_headers(&mut response, &step.headers);
    response
}

/// Keeps a conversation with its answer, if the wire and the request want that.
fn keep(state: &ScriptedState, body: &Value, answer: &WireAnswer, conversation: &StoredConversation) {
    let Some((id, output)) = &answer.output else { return };
    let mut memory = state.memory();
    memory.note(output);
    if body["store"] == false || state.quirks.forgetful {
        return;
    }
    let mut conversation = conversation.clone();
    conversation.items.extend(output.iter().cloned());
    memory.keep(id.clone(), conversation);
}

/// How the events of an answer go out.
#[derive(Default)]
struct Cues {
    /// The gate, and how many events are before it.
    gate: Option<(usize, String)>,
    /// How many events go out before the connection is cut.
    cut: Option<usize>,
    /// Events in a second.
    rate: Option<NonZeroU32>,
}

fn deliver(
    state: &Arc<ScriptedState>,
    answer: WireAnswer,
    framing: Option<RouteFraming>,
    Cues { gate, cut, rate }: Cues,
) -> Response<ServerBody> {
    let framing = match (framing, cut) {
        (None, None) => return json_response(StatusCode::OK, &answer.whole),
        (framing, _) => framing.unwrap_or(RouteFraming::Events),
    };
    let events = answer.events.into_iter().map(|event| framing.frame(event)).collect();
    let cues = cues(events, gate, cut).into_iter();
    let mut pace = rate.map(|rate| tokio::time::interval(Duration::from_secs(1) / rate.get()));
    if let Some(pace) = &mut pace {
        // An event that was late does not delay those after it.
        pace.set_missed_tick_behavior(MissedTickBehavior::Burst);
    }
    let frames = stream::unfold((cues, Arc::clone(state), pace), |(mut cues, state, mut pace)| async move {
        loop {
            match cues.next()? {
                Cue::Send(event) => {
                    if let Some(pace) = &mut pace {
                        pace.tick().await;
                    }
                    return Some((Ok(Frame::data(event)), (cues, state, pace)));
                }
                Cue::Hold(name) => state.gates.hold(&name).await,
                Cue::Cut => {
                    // Pausing once lets the server send what it has before it closes the connection.
                    tokio::task::yield_now().await;
                    return Some((Err(io::Error::other("cut by the script")), (cues, state, pace)));
                }
            }
        }
    });
    stream_of(framing, StreamBody::new(frames).boxed_unsync())
}

fn status_fault(
    wire: Wire,
    status: u16,
    headers: &BTreeMap<String, String>,
    body: Option<Value>,
) -> Response<ServerBody> {
    let refusal = Refusal::new(status, "The script wants this request to fail");
    let status = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let mut response = match body {
        None => refuse(wire, &refusal),
        Some(Value::String(text)) => respond(status, "text/plain; charset=utf-8", full(text)),
        Some(body) => json_response(status, &body),
    };
    add_headers(&mut response, headers);
    response
}

fn add_headers(response: &mut Response<ServerBody>, headers: &BTreeMap<String, String>) {
    for (name, value) in headers {
        if let (Ok(name), Ok(value)) = (HeaderName::try_from(name), HeaderValue::try_from(value)) {
            response.headers_mut().insert(name, value);
        }
    }
}

/// Whether the client named this machine as the host; a page that rebinds its own name to it does not.
fn came_for_loopback(headers: &HeaderMap) -> bool {
    let host = headers.get(HOST).and_then(|host| host.to_str().ok());
    host.and_then(|host| Url::parse(&format!("http://{host}")).ok()).is_some_and(|url| is_loopback(&url))
}

/// A refusal as the wire writes it.
fn refuse(wire: Wire, refusal: &Refusal) -> Response<ServerBody> {
    let status = StatusCode::from_u16(refusal.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let mut response = json_response(status, &refusal.body(wire));
    let name = match wire {
        Wire::AnthropicMessages => "request-id",
        Wire::ChatCompletions | Wire::Responses | Wire::Gemini | Wire::Ollama => "x-request-id",
    };
    response.headers_mut().insert(name, HeaderValue::from_static("req_scripted"));
    response
}

fn json_response(status: StatusCode, body: &Value) -> Response<ServerBody> {
    json_text(status, body.to_string())
}

fn json_text(status: StatusCode, text: String) -> Response<ServerBody> {
    respond(status, "application/json", full(text))
}

fn stream_of(framing: RouteFraming, body: ServerBody) -> Response<ServerBody> {
    respond(StatusCode::OK, framing.content_type(), body)
}

fn respond(status: StatusCode, content_type: &'static str, body: ServerBody) -> Response<ServerBody> {
    let mut response = Response::new(body);
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    response
}

fn full(text: String) -> ServerBody {
    Full::new(Bytes::from(text)).map_err(|never| match never {}).boxed_unsync()
}
