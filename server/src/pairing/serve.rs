//! The language server's side of a pair: it listens on a private socket, shows its documents and edits them.
//!
//! Rule: events and answers leave in one order, the order in which they happened. A partner that reads too slowly loses the
//! pair; no document waits for it.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use kode_engine::acp::lines::{OUTBOX, read_lines, write_lines};
use kode_engine::acp::message::{RpcError, RpcMessage, internal};
use kode_engine::acp::peer::RpcPeer;
use kode_engine::base::host_name::host_name;
use kode_engine::base::ids::SessionId;
use kode_engine::base::paths::{AbsPath, real_path};
use kode_engine::base::task;
use kode_engine::text::host::{
    DocumentEdit, DocumentEditOutcome, DocumentEvent, DocumentObserver, Host, SaveOutcome,
};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::{Semaphore, mpsc};
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use url::Url;

use super::place;
use super::wire::{
    DELETE, DIAGNOSE, DiagnoseParams, EDIT, EVENT, EditParams, HELLO, HUNKS, Hello, HunkParams,
    MAX_HUNK_FILES, PairEvent, PairOffer, PairedDocument, SAVE, VERSION, Welcome, WireDiagnostics,
    WireDocument, WireEdit, WireSave,
};
use crate::client::ClientFacts;
use crate::documents::target;
use crate::host::LspHost;
use crate::plain::PlainFrontEnd;
use crate::plain::review::SHOWN_HUNKS;
use crate::plain::review::publish::ReviewPublisher;
use crate::processes;

/// The most partners at a time.
const MAX_PARTNERS: usize = 8;

/// The most requests of a partner at a time.
const MAX_REQUESTS: usize = 64;

/// The most sessions of a partner whose hunks are shown.
const MAX_SESSIONS: usize = 64;

/// How long a partner may take to say hello.
const HELLO_LIMIT: Duration = Duration::from_secs(5);

/// The most events that wait for a partner to read them.
const MAX_EVENTS: usize = 4_096;

/// Offers this server to processes of the same editor, until it ends. Nothing waits for it, and what fails costs pairs alone.
pub(crate) fn begin(front_end: &Arc<PlainFrontEnd>) {
    let front_end = Arc::clone(front_end);
    task::spawn(async move {
        if let Err(error) = listen(&front_end).await {
            tracing::info!(%error, "this server cannot be paired with");
        }
    });
}

async fn listen(front_end: &Arc<PlainFrontEnd>) -> io::Result<()> {
    let connection = &front_end.connection;
    let editor = connection.facts.get().and_then(ClientFacts::editor_process).or_else(processes::parent);
    let Some(editor) = editor else { return Err(io::Error::other("the editor's process is not known")) };
    let roots = connection.workspace_roots().into_iter();
    let roots: Vec<AbsPath> =
        roots.filter_map(|root| AbsPath::new(real_path(&root.path).ok()?).ok()).collect();
    if roots.is_empty() {
        return Ok(());
    }
    let folder = task::spawn_blocking(place::folder).await.map_err(io::Error::other)??;
    let process = std::process::id();
    // Two ids have more than 128 random bits.
    let token = format!("{}{}", SessionId::generate(), SessionId::generate());
    let host = host_name().to_owned();
    let socket = folder.join(format!("{}.sock", place::name(&host, process)));
    let offer = Arc::new(PairOffer { version: VERSION, host, process, editor, roots, socket, token });
    place::withdraw(&offer, &folder);
    let listener = UnixListener::bind(&offer.socket)?;
    let (ending, of) = (Arc::clone(&offer), folder.clone());
    connection.lifecycle.at_end(async move { place::withdraw(&ending, &of) });
    let (published, of) = (Arc::clone(&offer), folder.clone());
    task::spawn_blocking(move || place::publish(&published, &of)).await.map_err(io::Error::other)??;
    let places = Arc::new(Semaphore::new(MAX_PARTNERS));
    let mut partners = JoinSet::new();
    loop {
        let accepted = tokio::select! {
            biased;
            () = connection.lifecycle.stopped() => return Ok(()),
            accepted = listener.accept() => accepted,
            Some(_) = partners.join_next(), if !partners.is_empty() => continue,
        };
        let (stream, _) = accepted?;
        let Ok(place) = Arc::clone(&places).try_acquire_owned() else { continue };
        let (front_end, offer) = (Arc::clone(front_end), Arc::clone(&offer));
        partners.spawn(async move {
            let _place = place;
            if let Err(why) = serve(stream, &front_end, &offer).await {
                tracing::info!(why, "a pair has ended");
            }
        });
    }
}

/// Serves one partner until it leaves.
async fn serve(stream: UnixStream, front_end: &Arc<PlainFrontEnd>, offer: &PairOffer) -> Result<(), String> {
    let connection = &front_end.connection;
    let credentials = stream.peer_cred().map_err(|error| error.to_string())?;
    if credentials.uid() != rustix::process::geteuid().as_raw() {
        return Err("a process of another user was sent away".to_owned());
    }
    let (input, output) = stream.into_split();
    let (mut lines, reading) = read_lines(input, MAX_REQUESTS);
    let _reading = AbortOnDrop(reading);
    let first = timeout(HELLO_LIMIT, lines.recv()).await.ok().flatten().ok_or("no greeting came")?;
    let RpcMessage::Request { id, method, params } = RpcMessage::of(&first) else {
        return Err("something else than a request came first".to_owned());
    };
    let hello: Hello = read(params).map_err(|_| "no hello came first".to_owned())?;
    if method != HELLO || hello.version != VERSION || hello.token != offer.token {
        return Err("the token or the version is wrong".to_owned());
    }
    let (outbox, queue) = mpsc::channel(OUTBOX + MAX_EVENTS);
    let peer = RpcPeer::new(outbox);
    let mut writing = task::spawn(write_lines(output, queue));
    let behind = CancellationToken::new();
    let host = Arc::new(LspHost::new(Arc::clone(connection)));
    // Events come from here on, also those before the snapshot for the answer.
    let observer = Arc::new(EventSender { peer: Arc::clone(&peer), behind: behind.clone() });
    let observed: Arc<dyn DocumentObserver> = observer.clone();
    host.observe_documents(Arc::downgrade(&observed));
    let documents = host.documents();
    let welcome = Welcome {
        editor: connection
            .facts
            .get()
            .and_then(|facts| facts.name.clone())
            .unwrap_or_else(|| "the editor".to_owned()),
        documents: documents.iter().map(WireDocument::from).collect(),
        can_save: host.can_save(),
        can_diagnose: host.can_diagnose(),
        locale: host.locale(),
        encoding: connection.documents.encoding(),
    };
    peer.respond(id, written(&welcome)).await;
    // One that was closed before the answer left is open in the answer.
    for document in documents.iter().filter(|document| host.document(&document.target()).is_none()) {
        observer.send(&PairEvent::Closed { uri: document.uri.clone() });
    }
    let shown = Arc::new(PartnerHunks::new(front_end));
    let mut requests = JoinSet::new();
    let ended = loop {
        let line = tokio::select! {
            biased;
            () = connection.lifecycle.stopped() => break Ok(()),
            () = behind.cancelled() => break Err("it reads too slowly".to_owned()),
            _ = &mut writing => break Ok(()),
            line = lines.recv() => line,
            Some(_) = requests.join_next(), if !requests.is_empty() => continue,
        };
        let Some(line) = line else { break Ok(()) };
        match RpcMessage::of(&line) {
            // In the order of their arrival: each replaces the one before.
            RpcMessage::Request { id, method, params } if method == HUNKS => {
                let outcome = read(params).and_then(|params| shown.show(params));
                peer.respond(id, outcome.and_then(|()| written(&()))).await;
            }
            RpcMessage::Request { id, method, params } if requests.len() < MAX_REQUESTS => {
                let (host, peer) = (Arc::clone(&host), Arc::clone(&peer));
                requests.spawn(async move {
                    let outcome = answer(&host, &method, params).await;
                    peer.respond(id, outcome).await;
                });
            }
            _ => break Err("it does not speak the language of pairs".to_owned()),
        }
    };
    requests.shutdown().await;
    writing.abort();
    ended
}

/// The hunks that a partner has shown; they go with it.
struct PartnerHunks {
    front_end: Arc<PlainFrontEnd>,
    /// The number of the partner.
    partner: u64,
}

impl PartnerHunks {
    fn new(front_end: &Arc<PlainFrontEnd>) -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        Self { front_end: Arc::clone(front_end), partner: NEXT.fetch_add(1, Ordering::Relaxed) }
    }

    fn show(&self, params: HunkParams) -> Result<(), RpcError> {
        let HunkParams { number, mut files } = params;
        files.truncate(MAX_HUNK_FILES);
        files.iter_mut().for_each(|file| file.diagnostics.truncate(SHOWN_HUNKS));
        let is_taken =
            ReviewPublisher::show_partner(&self.front_end, (self.partner, number), files, MAX_SESSIONS);
        if is_taken { Ok(()) } else { Err(internal("a partner shows too many sessions")) }
    }
}

impl Drop for PartnerHunks {
    fn drop(&mut self) {
        ReviewPublisher::forget_partner(&self.front_end, self.partner);
    }
}

/// A task that ends with this.
struct AbortOnDrop(JoinHandle<()>);

impl Drop for AbortOnDrop {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Carries a request of a partner out.
async fn answer(host: &LspHost, method: &str, params: Option<Value>) -> Result<Value, RpcError> {
    match method {
        EDIT => {
            let EditParams { uri, version, edits, label } = read(params)?;
            let base = host.document(&named(&uri)?);
            let outcome = match base {
                None => DocumentEditOutcome::Closed,
                Some(base) if base.version != version => DocumentEditOutcome::Stale,
                Some(base) => host.edit_document(DocumentEdit { base, edits, label }).await,
            };
            written(&WireEdit::from(outcome))
        }
        SAVE => {
            let PairedDocument { uri, .. } = read(params)?;
            let outcome = match named(&uri) {
                Ok(target) => host.save_document(&target).await,
                Err(_) => SaveOutcome::NotOpen,
            };
            written(&WireSave::from(outcome))
        }
        DELETE => {
            let PairedDocument { uri, version } = read(params)?;
            let document = host.document(&named(&uri)?);
            let document =
                document.filter(|document| version.is_none_or(|version| version == document.version));
            let is_deleted = match document {
                Some(document) => host.delete_document(&document).await,
                None => false,
            };
            written(&is_deleted)
        }
        DIAGNOSE => {
            let DiagnoseParams { targets, settle_ms } = read(params)?;
            let found = match settle_ms {
                None => host.diagnostics(&targets).await,
                Some(limit) => host.settled_diagnostics(&targets, Duration::from_millis(limit)).await,
            };
            let found = found.map_err(|error| internal(&error.to_string()))?;
            written(&found.into_iter().map(WireDiagnostics::from).collect::<Vec<_>>())
        }
        _ => Err(internal(&format!("pairs have no method `{method}`"))),
    }
}

/// The name of the document of a URI.
fn named(uri: &str) -> Result<kode_engine::base::paths::Target, RpcError> {
    Url::parse(uri)
        .map(|uri| target(&uri))
        .map_err(|error| internal(&format!("`{uri}` is not a URI: {error}")))
}

fn read<T: DeserializeOwned>(params: Option<Value>) -> Result<T, RpcError> {
    serde_json::from_value(params.unwrap_or_default()).map_err(|error| internal(&error.to_string()))
}

fn written(answer: &impl Serialize) -> Result<Value, RpcError> {
    serde_json::to_value(answer).map_err(|error| internal(&error.to_string()))
}

/// Sends a partner the events of documents.
struct EventSender {
    peer: Arc<RpcPeer>,
    /// Fires when the partner reads too slowly.
    behind: CancellationToken,
}

impl EventSender {
    fn send(&self, event: &PairEvent) {
        if !self.peer.try_notify(EVENT, event) {
            self.behind.cancel();
        }
    }
}

impl DocumentObserver for EventSender {
    fn observe(&self, event: &DocumentEvent) {
        self.send(&match event {
            DocumentEvent::Opened(document) => PairEvent::Opened { document: document.into() },
            DocumentEvent::Changed { before: _, after, edits } => PairEvent::Changed {
                uri: after.uri.clone(),
                version: after.version,
                edits: edits.clone(),
                text: edits.is_none().then(|| after.text.to_string()),
                length: after.text.len_bytes(),
            },
            DocumentEvent::Saved { document, by_user } => {
                PairEvent::Saved { uri: document.uri.clone(), by_user: *by_user }
            }
            DocumentEvent::Closed(document) => PairEvent::Closed { uri: document.uri.clone() },
        });
    }
}
