//! Requests the diagnostics of changed files: after a change, and again when the texts have come to rest.
//!
//! Rule: looking starts no server that the user has not configured; looking again starts none at all, and happens only where
//! hunks have reports and a text has changed.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use ropey::Rope;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use crate::edits::review_reports::FileComparison;
use crate::edits::{EditBook, Edits};
use kode_base::ids::CallId;
use kode_base::paths::Target;
use kode_record::event::Event;
use kode_text::edit::ledger::review::HunkState;
use kode_text::edit::ledger::{Ledger, LedgerEntry};
use kode_text::host::FileDiagnostics;
use kode_text::workspace::Workspace;
use kode_text::workspace::language::{DiagnosticsRequest, ServerStart};

/// The longest wait for diagnostics, before a change and after it.
const LIMIT: Duration = Duration::from_secs(2);
/// How long an editor waits after a change until its servers have published.
pub(crate) const SETTLE: Duration = Duration::from_secs(1);
/// The most files whose diagnostics are asked for at a time.
pub(crate) const MAX_FILES: usize = 10;
/// How long no text changes until the diagnostics of files with reports are requested again.
const PAUSE: Duration = Duration::from_secs(1);
/// The most requests for texts that do not change, as long as a server has not finished.
const MAX_LOOKS: usize = 5;

/// A request for the diagnostics of files.
#[derive(Clone, Copy)]
pub(crate) struct Look<'a> {
    /// The files.
    pub(crate) targets: &'a [Target],
    /// How long the editor waits for its servers.
    pub(crate) settle: Duration,
    /// Which servers are started for it.
    pub(crate) start: ServerStart,
}

/// The diagnostics of files whose servers run. A server that fails costs the change nothing.
///
/// The editor waits for none of a file without a known language.
pub(crate) async fn look(
    workspace: &Workspace,
    Look { targets, settle, start }: Look<'_>,
    cancel: &CancellationToken,
) -> Vec<FileDiagnostics> {
    let Some(languages) = workspace.languages() else { return Vec::new() };
    let targets: Vec<Target> =
        targets.iter().filter(|target| languages.knows_language(target)).cloned().collect();
    if targets.is_empty() {
        return Vec::new();
    }
    let request = DiagnosticsRequest { targets: &targets, limit: LIMIT, start };
    let asked = async {
        match workspace.editor_diagnostics(&targets, settle).await {
            Some(found) => found,
            None => languages.diagnostics(workspace, request).await,
        }
    };
    let found = tokio::select! {
        biased;
        () = cancel.cancelled() => return Vec::new(),
        found = asked => found,
    };
    found.unwrap_or_else(|error| {
        tracing::debug!(%error, "no diagnostics of an edited file");
        Vec::new()
    })
}

/// Looks again at the files with reports, as often as texts change and come to rest, until the session is closed.
pub(crate) async fn follow_diagnostics(edits: Arc<Edits>) {
    while edits.texts_rest().await {
        let mut looks = 0;
        while looks < MAX_LOOKS && edits.look_again(looks + 1 == MAX_LOOKS).await {
            looks += 1;
        }
    }
}

/// Whether an entry changes a text, or decides about hunks in it.
pub(super) fn is_of_text(entry: &LedgerEntry, ledger: &Ledger) -> bool {
    let is_proposal = |id| ledger.state(id) == Some(HunkState::Proposed);
    match entry {
        LedgerEntry::Moved { moves, .. } => !moves.iter().all(|(id, _)| is_proposal(id)),
        LedgerEntry::Changed { change, .. } => change.permission.is_none(),
        LedgerEntry::Typed { .. } | LedgerEntry::Replaced { .. } | LedgerEntry::Unmade { .. } => true,
        LedgerEntry::Withdrawn { .. }
        | LedgerEntry::Tracked { .. }
        | LedgerEntry::Before { .. }
        | LedgerEntry::Told { .. } => false,
    }
}

impl Edits {
    /// The texts of files as the ledger has them, each with the name that the ledger follows it by.
    pub(crate) async fn texts_of(&self, targets: &[Target]) -> BTreeMap<Target, (Target, Rope)> {
        let mut texts = BTreeMap::new();
        for target in targets {
            let followed = self.followed_as(target).await;
            let text = self.synced().ledger.text(&followed).cloned();
            texts.extend(text.map(|text| (target.clone(), (followed, text))));
        }
        texts
    }

    /// Adds the difference that a change has made to its hunks, for files whose texts are still the same.
    pub(crate) fn report_change(&self, call: &CallId, compared: Vec<FileComparison>) {
        let mut book = self.synced();
        let EditBook { ledger, review_reports, .. } = &mut *book;
        let mut targets = Vec::new();
        for file in compared {
            let is_current = ledger.text(&file.target).is_some_and(|text| *text == file.text);
            let Some(review) = ledger.review_of(&file.target).filter(|_| is_current) else { continue };
            if review_reports.enter(&review, call, file) {
                targets.push(review.target);
            }
        }
        self.feed.note_diagnostics(!review_reports.is_empty());
        self.feed.outdate_diagnostics();
        drop(book);
        self.publish_reports(targets);
    }

    /// Waits for a change of a text, and then until no text changes any more. Returns false when the session is closed.
    async fn texts_rest(&self) -> bool {
        let mut is_changed = false;
        loop {
            tokio::select! {
                biased;
                () = self.core.closing() => return false,
                () = self.feed.diagnostics_outdated() => is_changed = true,
                () = sleep(PAUSE), if is_changed => return true,
            }
        }
    }

    /// Brings the reports to the diagnostics of the texts now. Returns whether a server has not finished. In the last look, reports of
    /// changed texts that no server has checked are dropped.
    async fn look_again(&self, is_last: bool) -> bool {
        let texts = {
            let book = self.synced();
            book.review_reports.files(&book.ledger, MAX_FILES)
        };
        let targets: Vec<Target> = texts.iter().map(|(target, _)| target.clone()).collect();
        let wanted = Look { targets: &targets, settle: SETTLE, start: ServerStart::Running };
        let never = CancellationToken::new();
        let found = tokio::select! {
            biased;
            () = self.core.closing() => return false,
            found = look(&self.workspace, wanted, &never) => found,
        };
        let (mut changed, mut is_unfinished) = (Vec::new(), false);
        let mut book = self.synced();
        let EditBook { ledger, review_reports, .. } = &mut *book;
        for (target, text) in texts {
            // A text that has changed meanwhile is checked when it rests.
            let Some(review) = ledger.review_of(&target).filter(|review| review.text == text) else {
                continue;
            };
            let is_different = match found.iter().find(|file| file.target == target) {
                Some(file) if !file.is_outdated => review_reports.compare(&review, &text, &file.diagnostics),
                Some(_) if !is_last => {
                    is_unfinished = true;
                    false
                }
                Some(_) | None => review_reports.drop_unchecked(&target, &text),
            };
            if is_different {
                changed.push(target);
            }
        }
        self.feed.note_diagnostics(!review_reports.is_empty());
        drop(book);
        self.publish_reports(changed);
        is_unfinished
    }

    fn publish_reports(&self, targets: Vec<Target>) {
        if !targets.is_empty() {
            self.core.publish(Event::EditsChanged { targets });
        }
    }
}
