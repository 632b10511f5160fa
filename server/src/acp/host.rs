//! The client as the engine's editor: the text of files by `fs/read_text_file`, changes by `fs/write_text_file`.
//!
//! Rule: the client is asked for a file directly before each use, and a change is written only onto the text that it was
//! computed on. Whatever the client then shows is the text, and what differs from the change is the user's.

use std::collections::HashMap;
use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use agent_client_protocol_schema::v1::{
    ReadTextFileRequest, ReadTextFileResponse, SessionId as WireSessionId, WriteTextFileRequest,
    WriteTextFileResponse,
};
use async_trait::async_trait;
use futures::future::join_all;
use kode_engine::base::ids::SessionId;
use kode_engine::base::paths::{AbsPath, Target};
use kode_engine::base::task;
use kode_engine::text::document::DocumentSnapshot;
use kode_engine::text::edit::change::apply_edits;
use kode_engine::text::host::{
    DocumentEdit, DocumentEditOutcome, DocumentEvent, DocumentObserver, Host, NoEditor, SaveOutcome,
};
use ropey::Rope;
use url::Url;

use super::initialize::AcpClient;
#[cfg(unix)]
use super::paired::{EditorPairs, PairedFiles};
#[cfg(unix)]
use crate::pairing::PairedEditor;
use kode_engine::acp::peer::{PeerCallError, RpcPeer};

/// The method that reads a file.
const READ: &str = "fs/read_text_file";

/// The method that writes a file.
const WRITE: &str = "fs/write_text_file";

/// How long the client may take to read a file; then the file is read from the disk.
const READ_LIMIT: Duration = Duration::from_secs(10);

/// How long the client may take to write a file.
const WRITE_LIMIT: Duration = Duration::from_secs(30);

/// How long a prompt waits for the files that the session knows.
const PROMPT_LIMIT: Duration = Duration::from_secs(1);

/// The most files that are asked for before a prompt: those used last.
const MAX_REFRESHED: usize = 64;

/// The bytes of a file that are searched for a sign that it is no text.
const SNIFFED: usize = 8 << 10;

/// Clients whose files are those of the disk, whatever they announce. CodeCompanion reads from the disk and overwrites the
/// buffer; acpx has no buffers, and asks a second time before it writes.
const DISK_CLIENTS: [&str; 3] = ["acpx", "codecompanion", "codecompanion.nvim"];

/// Clients whose editors have unsaved text that they do not show; those of agentic load changed files over it.
const HIDING_CLIENTS: [&str; 4] = ["agentic", "agentic.nvim", "codecompanion", "codecompanion.nvim"];

/// How much of a client's files can be reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FileReach {
    /// Nothing: the disk is read and written.
    Disk,
    /// Its texts can be read, and the disk is written.
    Read,
    /// Its texts can be read and changed.
    Write,
}

impl FileReach {
    /// The reach of a client. One without a name is not trusted: avante, which has none, writes to the disk and gives no
    /// answer where the buffer has unsaved text.
    pub(super) fn of(client: &AcpClient) -> Self {
        let fs = &client.capabilities.fs;
        match (client.plain_name(), fs.read_text_file, fs.write_text_file) {
            (None, ..) | (_, false, _) => Self::Disk,
            (Some(name), ..) if DISK_CLIENTS.contains(&name.as_str()) => Self::Disk,
            (_, true, true) => Self::Write,
            (_, true, false) => Self::Read,
        }
    }
}

/// The client as the host of all sessions. It has no documents of its own: each session asks for its files.
pub(super) struct AcpHost {
    peer: Arc<RpcPeer>,
    reach: FileReach,
    /// The name of the client where it is one that hides unsaved text.
    hides: Option<String>,
    sessions: Mutex<HashMap<SessionId, Weak<ClientFiles>>>,
    #[cfg(unix)]
    pairs: EditorPairs,
}

/// The files of a client as one session has asked for them.
pub(super) struct ClientFiles {
    peer: Arc<RpcPeer>,
    reach: FileReach,
    session: WireSessionId,
    roots: Vec<AbsPath>,
    table: Mutex<FileTable>,
}

#[derive(Default)]
struct FileTable {
    /// The texts that the client showed last.
    shown: HashMap<Target, ShownFile>,
    observers: Vec<Weak<dyn DocumentObserver>>,
    /// The number of the last use.
    uses: u64,
}

struct ShownFile {
    document: DocumentSnapshot,
    used: u64,
    /// Held while the document is changed.
    turn: Arc<tokio::sync::Mutex<()>>,
}

impl AcpHost {
    pub(super) fn new(peer: &Arc<RpcPeer>, client: &AcpClient) -> Arc<Self> {
        let reach = FileReach::of(client);
        let hides = client.plain_name().is_none_or(|name| HIDING_CLIENTS.contains(&name.as_str()));
        Arc::new(Self {
            peer: Arc::clone(peer),
            reach,
            hides: hides.then(|| client.label().to_owned()),
            sessions: Mutex::default(),
            #[cfg(unix)]
            pairs: EditorPairs::default(),
        })
    }

    /// Pairs with the language server that the same editor runs for a folder, if there is one. Waits for a limited time.
    pub(super) async fn pair(&self, folder: &AbsPath) {
        #[cfg(unix)]
        self.pairs.find(folder).await;
        #[cfg(not(unix))]
        let _ = folder;
    }

    /// The pair of a folder.
    #[cfg(unix)]
    pub(super) fn paired(&self, folder: &AbsPath) -> Option<Arc<PairedEditor>> {
        self.pairs.of(folder)
    }

    /// The warning for a client that hides unsaved text, where no language server keeps it.
    pub(super) fn warning(&self, folder: &AbsPath) -> Option<String> {
        #[cfg(unix)]
        if self.pairs.of(folder).is_some() {
            return None;
        }
        #[cfg(not(unix))]
        let _ = folder;
        let name = self.hides.as_ref()?;
        Some(format!("{name} does not show unsaved text: files are read from the disk and changed there."))
    }

    /// Asks the client for the files that a session knows, so that its next turn sees what the user has typed since. Waits at
    /// most a second.
    pub(super) async fn refresh(&self, session: &SessionId) {
        let files = lock(&self.sessions).get(session).and_then(Weak::upgrade);
        if let Some(files) = files
            && tokio::time::timeout(PROMPT_LIMIT, files.refresh_known()).await.is_err()
        {
            tracing::info!("the client did not show all known files before a prompt");
        }
    }
}

#[async_trait]
impl Host for AcpHost {
    fn document(&self, target: &Target) -> Option<DocumentSnapshot> {
        NoEditor.document(target)
    }

    fn documents(&self) -> Vec<DocumentSnapshot> {
        NoEditor.documents()
    }

    async fn edit_document(&self, edit: DocumentEdit) -> DocumentEditOutcome {
        NoEditor.edit_document(edit).await
    }

    fn observe_documents(&self, observer: Weak<dyn DocumentObserver>) {
        NoEditor.observe_documents(observer);
    }

    fn can_save(&self) -> bool {
        false
    }

    async fn save_document(&self, target: &Target) -> SaveOutcome {
        NoEditor.save_document(target).await
    }

    fn of_session(&self, session: &SessionId, roots: &[AbsPath]) -> Option<Arc<dyn Host>> {
        let own = self.own_files(session, roots);
        #[cfg(unix)]
        if let Some(editor) = roots.first().and_then(|folder| self.pairs.of(folder)) {
            let own = own.unwrap_or_else(|| Arc::new(NoEditor) as Arc<dyn Host>);
            return Some(Arc::new(PairedFiles { editor, own }));
        }
        own
    }
}

impl AcpHost {
    /// The files of a client that shows them.
    fn own_files(&self, session: &SessionId, roots: &[AbsPath]) -> Option<Arc<dyn Host>> {
        if self.reach == FileReach::Disk {
            return None;
        }
        let files = Arc::new(ClientFiles {
            peer: Arc::clone(&self.peer),
            reach: self.reach,
            session: WireSessionId::new(session.as_str()),
            roots: roots.to_vec(),
            table: Mutex::default(),
        });
        let mut sessions = lock(&self.sessions);
        sessions.retain(|_, files| files.strong_count() > 0);
        sessions.insert(session.clone(), Arc::downgrade(&files));
        Some(files)
    }
}

impl ClientFiles {
    /// The path of a file of the session's folders. Other files are those of the disk.
    fn own<'t>(&self, target: &'t Target) -> Option<&'t AbsPath> {
        target.file().filter(|path| self.roots.iter().any(|root| path.is_within(root) && *path != root))
    }

    async fn read(&self, path: &AbsPath) -> Result<String, PeerCallError> {
        let request = ReadTextFileRequest::new(self.session.clone(), path.as_path());
        let response: ReadTextFileResponse = self.peer.request(READ, request, Some(READ_LIMIT)).await?;
        Ok(response.content)
    }

    async fn write(&self, path: &AbsPath, text: &str) -> Result<(), PeerCallError> {
        let request = WriteTextFileRequest::new(self.session.clone(), path.as_path(), text);
        let _: Option<WriteTextFileResponse> = self.peer.request(WRITE, request, Some(WRITE_LIMIT)).await?;
        Ok(())
    }

    /// Asks for the files that were used last.
    async fn refresh_known(&self) {
        let mut known: Vec<(u64, Target)> = {
            let table = lock(&self.table);
            table.shown.iter().map(|(target, file)| (file.used, target.clone())).collect()
        };
        known.sort_unstable_by(|a, b| b.cmp(a));
        known.truncate(MAX_REFRESHED);
        join_all(known.iter().map(|(_, target)| self.refresh_document(target))).await;
    }

    /// Notes the text that the client shows, and returns the document.
    fn show(&self, target: &Target, text: &str) -> Option<DocumentSnapshot> {
        let path = target.file()?;
        let mut table = lock(&self.table);
        table.uses += 1;
        let used = table.uses;
        if let Some(known) = table.shown.get_mut(target) {
            known.used = used;
            if known.document.text == *text {
                return Some(known.document.clone());
            }
            let before = known.document.clone();
            known.document = DocumentSnapshot {
                version: before.version.wrapping_add(1),
                text: Rope::from_str(text),
                ..before.clone()
            };
            let after = known.document.clone();
            table.publish(&DocumentEvent::Changed { before, after: after.clone(), edits: None });
            return Some(after);
        }
        let document = DocumentSnapshot {
            uri: Url::from_file_path(path).ok()?.to_string(),
            path: Some(path.clone()),
            language_id: String::new(),
            version: 1,
            text: Rope::from_str(text),
        };
        let turn = Arc::default();
        table.shown.insert(target.clone(), ShownFile { document: document.clone(), used, turn });
        table.publish(&DocumentEvent::Opened(document.clone()));
        Some(document)
    }

    /// Forgets a file that the client cannot show.
    fn hide(&self, target: &Target) {
        let mut table = lock(&self.table);
        if let Some(known) = table.shown.remove(target) {
            table.publish(&DocumentEvent::Closed(known.document));
        }
    }

    /// Notes that the file on the disk has the text of its document, if it has.
    async fn note_saved(&self, target: &Target) {
        let Some(document) = self.document(target) else { return };
        let path = document.path.clone();
        let saved = task::spawn_blocking(move || std::fs::read_to_string(path?).ok()).await;
        if saved.is_ok_and(|saved| saved.is_some_and(|saved| document.text == *saved)) {
            lock(&self.table).publish(&DocumentEvent::Saved { document, by_user: false });
        }
    }

    /// Writes a text and reads what the client then shows. The first snapshot is the document as the change left it; what the
    /// client shows beside that is entered after it.
    async fn write_and_read(
        &self,
        target: &Target,
        path: &AbsPath,
        new: &str,
        old: Option<&str>,
    ) -> DocumentEditOutcome {
        match self.write(path, new).await {
            Ok(()) => {}
            Err(error @ (PeerCallError::Late(_) | PeerCallError::Gone)) => return unconfirmed(&error),
            Err(error) => return DocumentEditOutcome::Rejected { reason: error.to_string() },
        }
        let shown = match self.read(path).await {
            Ok(shown) => shown,
            Err(error) => return unconfirmed(&error),
        };
        if old.is_some_and(|old| old == shown && old != new) {
            let reason = "the client confirmed the change and still shows the old text".to_owned();
            return DocumentEditOutcome::Unconfirmed { reason };
        }
        let Some(changed) = self.show(target, new) else { return DocumentEditOutcome::Closed };
        self.show(target, &shown);
        self.note_saved(target).await;
        DocumentEditOutcome::Applied(changed)
    }
}

#[async_trait]
impl Host for ClientFiles {
    fn document(&self, target: &Target) -> Option<DocumentSnapshot> {
        lock(&self.table).shown.get(target).map(|known| known.document.clone())
    }

    fn documents(&self) -> Vec<DocumentSnapshot> {
        lock(&self.table).shown.values().map(|known| known.document.clone()).collect()
    }

    async fn refresh_document(&self, target: &Target) {
        let Some(path) = self.own(target) else { return };
        let at = path.clone();
        let on_disk = task::spawn_blocking(move || sniff(at.as_path())).await;
        let on_disk = on_disk.unwrap_or(StoredFile::NoText);
        if on_disk == StoredFile::NoText {
            return self.hide(target);
        }
        match self.read(path).await {
            // Some clients show a file that is not there as an empty one.
            Ok(text) if text.is_empty() && on_disk == StoredFile::Missing => self.hide(target),
            Ok(text) if self.reach == FileReach::Read && is_on_disk(path, &text).await => self.hide(target),
            Ok(text) => drop(self.show(target, &text)),
            Err(PeerCallError::Gone) => {}
            Err(error) => {
                tracing::debug!(%error, path = %path, "the client does not show a file");
                self.hide(target);
            }
        }
    }

    async fn edit_document(&self, edit: DocumentEdit) -> DocumentEditOutcome {
        let target = edit.base.target();
        let Some(path) = self.own(&target) else { return DocumentEditOutcome::Closed };
        if self.reach != FileReach::Write {
            return DocumentEditOutcome::Rejected {
                reason: "the client has unsaved changes in it and does not offer fs/write_text_file. \
                         Ask the user to save the file"
                    .to_owned(),
            };
        }
        let turn = lock(&self.table).shown.get(&target).map(|known| Arc::clone(&known.turn));
        let Some(turn) = turn else { return DocumentEditOutcome::Closed };
        let _one_at_a_time = turn.lock().await;
        let old = match self.read(path).await {
            Ok(old) => old,
            Err(PeerCallError::Refused { .. }) => {
                self.hide(&target);
                return DocumentEditOutcome::Closed;
            }
            Err(error) => return DocumentEditOutcome::Rejected { reason: error.to_string() },
        };
        if edit.base.text != *old {
            self.show(&target, &old);
            return DocumentEditOutcome::Stale;
        }
        let new = apply_edits(&old, &edit.edits);
        self.write_and_read(&target, path, &new, Some(&old)).await
    }

    async fn create_document(&self, target: &Target, text: &str) -> Option<DocumentEditOutcome> {
        let path = self.own(target).filter(|_| self.reach == FileReach::Write)?;
        Some(self.write_and_read(target, path, text, None).await)
    }

    fn observe_documents(&self, observer: Weak<dyn DocumentObserver>) {
        lock(&self.table).observers.push(observer);
    }

    fn can_save(&self) -> bool {
        false
    }

    async fn save_document(&self, target: &Target) -> SaveOutcome {
        match self.document(target) {
            Some(_) => SaveOutcome::Failed { reason: "the protocol has no way to save a file".to_owned() },
            None => SaveOutcome::NotOpen,
        }
    }
}

impl FileTable {
    fn publish(&mut self, event: &DocumentEvent) {
        self.observers.retain(|observer| match observer.upgrade() {
            Some(observer) => {
                observer.observe(event);
                true
            }
            None => false,
        });
    }
}

/// A file on the disk, as far as its beginning shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum StoredFile {
    /// It may be a text.
    Text,
    /// Nothing is there.
    Missing,
    /// It is a folder, a device, or binary: no client is asked for it.
    NoText,
}

fn sniff(path: &Path) -> StoredFile {
    match std::fs::metadata(path) {
        Err(_) => return StoredFile::Missing,
        Ok(metadata) if !metadata.is_file() => return StoredFile::NoText,
        Ok(_) => {}
    }
    let mut beginning = Vec::with_capacity(SNIFFED);
    let read = File::open(path).and_then(|file| file.take(SNIFFED as u64).read_to_end(&mut beginning));
    match read {
        Ok(_) if beginning.contains(&0) => StoredFile::NoText,
        Ok(_) => StoredFile::Text,
        Err(_) => StoredFile::NoText,
    }
}

async fn is_on_disk(path: &AbsPath, text: &str) -> bool {
    let (path, text) = (path.clone(), text.to_owned());
    let same = move || std::fs::read_to_string(path).is_ok_and(|saved| saved == text);
    task::spawn_blocking(same).await.unwrap_or(false)
}

fn unconfirmed(error: &PeerCallError) -> DocumentEditOutcome {
    DocumentEditOutcome::Unconfirmed { reason: error.to_string() }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn client(name: Option<&str>, read: bool, write: bool) -> AcpClient {
        let capabilities = json!({ "fs": { "readTextFile": read, "writeTextFile": write } });
        AcpClient {
            name: name.map(str::to_owned),
            title: None,
            capabilities: serde_json::from_value(capabilities).unwrap(),
        }
    }

    #[test]
    fn files_are_reached_as_far_as_a_client_keeps_unsaved_text() {
        for (name, read, write, expected) in [
            (Some("zed"), true, true, FileReach::Write),
            (Some("agent-shell"), true, false, FileReach::Read),
            (Some("agentic.nvim"), false, false, FileReach::Disk),
            (Some("CodeCompanion.nvim"), true, true, FileReach::Disk),
            (Some("x"), false, true, FileReach::Disk),
            (Some("acpx"), true, true, FileReach::Disk),
            (None, true, true, FileReach::Disk),
        ] {
            assert_eq!(FileReach::of(&client(name, read, write)), expected, "{name:?}");
        }
    }

    #[test]
    fn a_binary_file_and_a_folder_are_no_texts() {
        let folder = tempfile::tempdir().unwrap();
        let file = |name: &str, bytes: &[u8]| {
            let path = folder.path().join(name);
            std::fs::write(&path, bytes).unwrap();
            path
        };
        assert_eq!(sniff(&file("a", b"text")), StoredFile::Text);
        assert_eq!(sniff(&file("b", b"\x89PNG\0")), StoredFile::NoText);
        assert_eq!(sniff(folder.path()), StoredFile::NoText);
        assert_eq!(sniff(&folder.path().join("none")), StoredFile::Missing);
    }
}
