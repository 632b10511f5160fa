//! The hunks of a paired session, shown by the language server of the editor as those of its own sessions are.
//!
//! Rule: each message has the whole state and replaces the one before; many changes become one message. With the session's end
//! here, or once another process writes it, nothing of it is shown any more.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};

use kode_engine::agent::engine::AttachedSession;
use kode_engine::base::ids::CallId;
use kode_engine::base::task;
use kode_engine::record::event::{Event, Subscription};
use kode_engine::text::host::{DocumentEvent, DocumentObserver, Host};
use tokio::sync::Notify;
use tokio::time::sleep;
use tokio_util::sync::{CancellationToken, DropGuard};

use super::follow::log;
use super::session::AcpSession;
use crate::pairing::{MAX_HUNK_FILES, PairedEditor};
use crate::plain::review::diagnostics::diagnostics;
use crate::plain::review::publish::{GATHER, HunkFile, find_tools};

/// The number of the next session that is shown.
static NEXT: AtomicU64 = AtomicU64::new(1);

/// Shows the hunks of a session.
struct HunkSender {
    open: Weak<AcpSession>,
    editor: Arc<PairedEditor>,
    number: u64,
    tools: HashMap<CallId, Option<String>>,
}

/// Wakes the sender when text has changed, because hunks move with it.
struct TextObserver(Notify);

impl DocumentObserver for TextObserver {
    fn observe(&self, event: &DocumentEvent) {
        match event {
            DocumentEvent::Opened(_) | DocumentEvent::Changed { .. } | DocumentEvent::Closed(_) => {
                self.0.notify_one();
            }
            DocumentEvent::Saved { .. } => {}
        }
    }
}

/// Shows the hunks of a session in the editor that it is paired with, until the guard is dropped; `None` without a pair.
pub(super) fn show(open: &Arc<AcpSession>, attached: &AttachedSession) -> Option<DropGuard> {
    let editor = open.places.roots.first().and_then(|folder| open.agent.host.paired(folder))?;
    let (stop, events) = (CancellationToken::new(), log(attached));
    let events = events.subscribe(events.newest(), vec![]);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let sender = HunkSender { open: Arc::downgrade(open), editor, number, tools: HashMap::new() };
    task::spawn(sender.run(events, stop.clone()));
    Some(stop.drop_guard())
}

impl HunkSender {
    async fn run(mut self, mut events: Subscription, stop: CancellationToken) {
        let text = Arc::new(TextObserver(Notify::new()));
        let observed: Arc<dyn DocumentObserver> = text.clone();
        self.editor.observe_documents(Arc::downgrade(&observed));
        let ended = self.editor.ended();
        let mut sent = Vec::new();
        loop {
            let now = self.files();
            if now != sent {
                self.editor.show_hunks(self.number, now.clone()).await;
                sent = now;
            }
            tokio::select! {
                biased;
                () = stop.cancelled() => break,
                () = ended.cancelled() => return,
                is_open = changed(&mut events) => if !is_open { break },
                () = text.0.notified(), if !sent.is_empty() => {}
            }
            tokio::select! {
                () = stop.cancelled() => break,
                () = sleep(GATHER) => {}
            }
        }
        if !sent.is_empty() {
            self.editor.show_hunks(self.number, Vec::new()).await;
        }
    }

    /// The hunks as they are now; none of a session that another process writes.
    fn files(&mut self) -> Vec<HunkFile> {
        let Some(open) = self.open.upgrade() else { return Vec::new() };
        let Ok(live) = open.live() else { return Vec::new() };
        let reviews = live.edits().review().into_iter().take(MAX_HUNK_FILES);
        reviews
            .filter_map(|file| {
                find_tools(&live, &mut self.tools, file.hunks.iter().map(|hunk| &hunk.call));
                let tool = |call: &CallId| self.tools.get(call).cloned().flatten();
                let mut found = diagnostics(&file, self.editor.encoding, tool);
                for diagnostic in &mut found {
                    diagnostic.message.push_str(&format!("; of the session in {}", open.client.label()));
                }
                (!found.is_empty()).then_some(HunkFile { target: file.target, diagnostics: found })
            })
            .collect()
    }
}

/// Waits for an event after which hunks may be others; false at the end of the log.
async fn changed(events: &mut Subscription) -> bool {
    loop {
        match events.next_paced().await {
            Ok(None) => return false,
            Ok(Some(batch)) => {
                let is_meant = |event: &Event| {
                    matches!(
                        event,
                        Event::EditsChanged { .. } | Event::EditsResolved { .. } | Event::LeaseChanged { .. }
                    )
                };
                if batch.iter().any(|record| is_meant(&record.event)) {
                    return true;
                }
            }
            Err(_) => return true,
        }
    }
}
