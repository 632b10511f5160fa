//! The changes of a command become the agent's hunks, also where the editor shows them before the command has ended.
//!
//! Rule: what the user types or saves while a command runs stays the user's; only a document that becomes what the
//! command has left on the disk is treated as reloaded.

use std::collections::BTreeMap;
use std::sync::Arc;

use ropey::Rope;

use crate::edits::EditBook;
use crate::edits::Edits;
use crate::edits::feed::CommandWatch;
use kode_base::blocking;
use kode_base::ids::HunkId;
use kode_base::paths::Target;
use kode_journal::BlobId;
use kode_text::document::DocumentSnapshot;
use kode_text::edit::diff::line_changes;
use kode_text::edit::ledger::review::{HunkKind, HunkState};
use kode_text::edit::ledger::{ChangeOrigin, FileBefore, LedgerEntry, NewHunk, split};
use kode_text::host::DocumentEvent;
use kode_text::shell_change::{FileImage, ShellChange};
use kode_text::workspace::shadow::{Scan, ShellChanges};

/// Maximum number of files changed by one command that are entered hunk by hunk; the others are entered as a whole.
const MAX_FILES_IN_HUNKS: usize = 200;

/// The mode of a file that was saved for the first time while a command ran.
const SAVED_MODE: u32 = 0o644;

/// The texts at the beginning of a command.
pub(crate) struct CommandBaseline {
    scan: Scan,
    /// The texts of the open documents.
    open: BTreeMap<Target, Rope>,
    /// Keeps their events waiting.
    watch: CommandWatch,
}

/// The entry of a changed file.
enum ShellEntry {
    /// It is in the ledger.
    Entered,
    /// Its content before was not kept, so it cannot be restored.
    NotKept,
    /// The user saved it while the command ran.
    ByUser,
}

/// The relation of an open document to the file that a command has changed.
enum DocumentState {
    /// The editor has loaded it again.
    Reloaded,
    /// It is as the command found it, and may be loaded again soon.
    NotYet,
    /// It has a text of its own.
    Apart,
}

impl CommandBaseline {
    /// The open documents.
    pub(crate) fn open(&self) -> &BTreeMap<Target, Rope> {
        &self.open
    }
}

impl Edits {
    /// Checks the workspace before a command.
    pub(crate) async fn before_command(&self) -> CommandBaseline {
        let (open, watch) = self.open_now();
        let shadow = Arc::clone(&self.shadow);
        let scan = blocking(move || shadow.before()).await;
        CommandBaseline { scan, open, watch }
    }

    /// A baseline of files as they were, and of the open documents as they are.
    pub(crate) fn baseline_of(&self, scan: Scan) -> CommandBaseline {
        let (open, watch) = self.open_now();
        CommandBaseline { scan, open, watch }
    }

    fn open_now(&self) -> (BTreeMap<Target, Rope>, CommandWatch) {
        let documents = || self.workspace.documents().into_iter().filter(|document| document.path.is_some());
        let watch = self.feed.watch(documents().map(|document| document.target()).collect());
        // Documents that were opened meanwhile are not waited for.
        let open = documents().map(|document| (document.target(), document.text)).collect();
        (open, watch)
    }

    /// Enters the changes of a command, and returns the changed files.
    pub(crate) async fn after_command(&self, began: CommandBaseline, change: &ChangeOrigin) -> Vec<Target> {
        self.after_command_except(began, change, &[]).await.0
    }

    /// As [`Self::after_command`], but for files that others have changed meanwhile; with the files as they were found.
    pub(crate) async fn after_command_except(
        &self,
        began: CommandBaseline,
        change: &ChangeOrigin,
        others: &[Target],
    ) -> (Vec<Target>, Scan) {
        let shadow = Arc::clone(&self.shadow);
        let CommandBaseline { scan, open, watch } = began;
        let (ShellChanges { changes, coverage }, found) = blocking(move || shadow.since(&scan)).await;
        for gap in coverage.gaps {
            tracing::info!(%gap, "not all that the command changed may be known");
        }
        let _one_at_a_time = self.writing.lock().await;
        let (mut in_hunks, mut changed) = (0, Vec::new());
        for made in changes {
            // The journal is JSON, which has no name for such a file.
            if made.path.as_path().to_str().is_none() {
                tracing::warn!(path = %made.path, "a file whose name is not Unicode cannot be restored");
                continue;
            }
            let target = Target::File(made.path.clone());
            if others.contains(&target) {
                continue;
            }
            let fits = in_hunks < MAX_FILES_IN_HUNKS;
            match self.enter_shell_change(&target, made, change, (&open, &watch), fits).await {
                ShellEntry::Entered => in_hunks += 1,
                ShellEntry::NotKept => {}
                ShellEntry::ByUser => continue,
            }
            changed.push(target);
        }
        drop(watch);
        drop(self.synced());
        (changed, found)
    }

    /// Takes in what the user does to open documents while a command runs. What looks like a reload continues waiting.
    pub(crate) async fn take_in_typing(&self) {
        for (target, text) in self.feed.watched() {
            let saved = self.workspace.saved_text(&target).await;
            if text.zip(saved).is_some_and(|(text, saved)| text == *saved) {
                continue;
            }
            let mut book = self.book();
            self.feed.take(&target).into_iter().for_each(|event| self.take_in(&mut book, event));
        }
    }

    async fn enter_shell_change(
        &self,
        target: &Target,
        mut made: ShellChange,
        change: &ChangeOrigin,
        (open, watch): (&BTreeMap<Target, Rope>, &CommandWatch),
        in_hunks: bool,
    ) -> ShellEntry {
        let document = self.workspace.open_document(target).await;
        let after = self.text_of(&made.after).await;
        let saved = watch.saved(target);
        if let (Some(saved), Some(after)) = (&saved, &after)
            && *saved == **after
        {
            return ShellEntry::ByUser;
        }
        if let Some(saved) = &saved {
            // The command read the saved text, not the one at its beginning.
            let mode = match made.before {
                FileImage::Kept { mode, .. } => mode,
                FileImage::Absent | FileImage::Symlink { .. } | FileImage::NotKept { .. } => SAVED_MODE,
            };
            made.before =
                FileImage::Kept { blob: self.keep_bytes(saved.to_string().as_bytes().into()).await, mode };
        }
        let before = self.text_of(&made.before).await;
        {
            let (turn, image) = (change.turn.clone(), made.before.clone());
            let entry =
                LedgerEntry::Before { turn, target: target.clone(), before: FileBefore::Image { image } };
            let mut book = self.synced();
            if book.ledger.before(&change.turn).is_none_or(|files| !files.contains_key(target)) {
                self.enter(&mut book, entry, None);
            }
        }
        if matches!(made.before, FileImage::NotKept { .. }) {
            return ShellEntry::NotKept;
        }
        let began = saved.as_ref().or_else(|| open.get(target));
        let shown = document.as_ref().map(|document| match (&before, &after) {
            (Some(before), Some(after)) if document.target() == *target => {
                shown(document, began, before, after)
            }
            _ => DocumentState::Apart,
        });
        let is_text = in_hunks && after.is_some() && keeps_mode(&made.before, &made.after);
        let (Some(before), Some(after)) = (before.as_deref(), after.as_deref()) else {
            self.enter_whole(target, made, change, before.as_deref(), document.is_none());
            return ShellEntry::Entered;
        };
        match shown {
            None if is_text => {
                let base = self.base_before(&made, before).await;
                let mut book = self.synced();
                self.follow(&mut book, target, base, before);
                self.enter_lines(&mut book, target, change, &made, (before, after));
            }
            Some(DocumentState::Reloaded) if is_text => {
                let base = self.base_before(&made, before).await;
                self.enter_reloaded(target, base, change, &made, (before, after));
            }
            Some(DocumentState::NotYet) => {
                let base = self.base_before(&made, before).await;
                self.follow(&mut self.synced(), target, base, before);
                self.enter_whole(target, made, change, Some(before), false);
            }
            None | Some(DocumentState::Reloaded | DocumentState::Apart) => {
                self.enter_whole(target, made, change, Some(before), document.is_none());
            }
        }
        ShellEntry::Entered
    }

    /// Enters the changes of a command that the editor has shown by now; the user's edits since are entered after them.
    fn enter_reloaded(
        &self,
        target: &Target,
        base: BlobId,
        change: &ChangeOrigin,
        made: &ShellChange,
        (before, after): (&str, &str),
    ) {
        let mut book = self.synced();
        let mut events = self.feed.take(target);
        let is_it = |event: &DocumentEvent| match event {
            DocumentEvent::Changed { after: now, .. } => now.text == *after,
            DocumentEvent::Opened(_) | DocumentEvent::Saved { .. } | DocumentEvent::Closed(_) => false,
        };
        let later = match events.iter().rposition(is_it) {
            Some(at) => events.split_off(at + 1),
            None => std::mem::take(&mut events),
        };
        self.follow(&mut book, target, base, before);
        self.enter_lines(&mut book, target, change, made, (before, after));
        if let Some(reload) = events.last() {
            book.versions.insert(target.clone(), reload.document().version);
        }
        later.into_iter().for_each(|event| self.take_in(&mut book, event));
    }

    /// Enters a file as a whole. The followed text of a closed file ends; a document continues whatever
    /// becomes of its file.
    pub(super) fn enter_whole(
        &self,
        target: &Target,
        made: ShellChange,
        change: &ChangeOrigin,
        before: Option<&str>,
        is_closed: bool,
    ) {
        let change = ChangeOrigin { kind: kind_of(&made.before, &made.after), ..change.clone() };
        let sets_aside = is_closed && content(&made.before) != content(&made.after);
        let mut book = self.synced();
        if let (Some(before), true) = (before, sets_aside) {
            self.reconcile(&mut book, target, &Rope::from_str(before));
        }
        let ShellChange { before, after, .. } = made;
        let (target, hunk) = (target.clone(), HunkId::generate());
        self.enter(
            &mut book,
            LedgerEntry::Replaced { target, change, hunk, before, after, sets_aside },
            None,
        );
    }

    /// The text a file is followed from. Mostly the bytes are the text, and kept already.
    async fn base_before(&self, made: &ShellChange, before: &str) -> BlobId {
        match &made.before {
            FileImage::Kept { blob, .. } if *blob == BlobId::of(before.as_bytes()) => *blob,
            _ => self.keep_bytes(before.as_bytes().into()).await,
        }
    }

    /// Follows a text from before a command on.
    fn follow(&self, book: &mut EditBook, target: &Target, base: BlobId, before: &str) {
        if !book.ledger.is_tracked(target) {
            self.feed.follow(target);
            self.enter(book, LedgerEntry::Tracked { target: target.clone(), base }, Some(before));
        }
        self.reconcile(book, target, &Rope::from_str(before));
    }

    fn enter_lines(
        &self,
        book: &mut EditBook,
        target: &Target,
        change: &ChangeOrigin,
        made: &ShellChange,
        (before, after): (&str, &str),
    ) {
        let kind = if made.before == FileImage::Absent { HunkKind::Created } else { change.kind };
        let hunks = split(before, &line_changes(before, after)).into_iter();
        let hunks = hunks.map(|edits| NewHunk { id: HunkId::generate(), edits }).collect();
        let change = ChangeOrigin { kind, ..change.clone() };
        self.enter(book, LedgerEntry::Changed { target: target.clone(), change, hunks }, None);
    }

    /// Enters that the editor has loaded a file again that a command has replaced: its lines are the agent's. Answers
    /// whether it was so.
    pub(crate) fn enter_reload(&self, book: &mut EditBook, target: &Target, event: &DocumentEvent) -> bool {
        let DocumentEvent::Changed { before, after, .. } = event else { return false };
        let Some((hunk, change)) = book.ledger.reload_of(target, &before.text, &after.text) else {
            return false;
        };
        let is_kept = book.ledger.state(&hunk) == Some(HunkState::Kept);
        let (before, now) = (before.text.to_string(), after.text.to_string());
        let hunks: Vec<NewHunk> = split(&before, &line_changes(&before, &now))
            .into_iter()
            .map(|edits| NewHunk { id: HunkId::generate(), edits })
            .collect();
        let moves = hunks.iter().map(|hunk| (hunk.id.clone(), HunkState::Kept)).collect();
        let target = target.clone();
        self.enter(book, LedgerEntry::Withdrawn { target: target.clone(), hunks: vec![hunk] }, None);
        self.enter(book, LedgerEntry::Changed { target: target.clone(), change, hunks }, None);
        if is_kept {
            let moved = LedgerEntry::Moved { target: target.clone(), resolution: None, reverts: None, moves };
            self.enter(book, moved, None);
        }
        book.ledger.adopt(&target, &after.text);
        book.versions.insert(target.clone(), after.version);
        true
    }
}

fn shown(document: &DocumentSnapshot, began: Option<&Rope>, before: &str, after: &str) -> DocumentState {
    let was_clean = began.is_none_or(|began| *began == *before);
    match was_clean {
        true if document.text == *after => DocumentState::Reloaded,
        true if document.text == *before => DocumentState::NotYet,
        true | false => DocumentState::Apart,
    }
}

/// The fate of a file as a whole.
pub(crate) fn kind_of(before: &FileImage, after: &FileImage) -> HunkKind {
    match (before, after) {
        (FileImage::Absent, _) => HunkKind::Created,
        (_, FileImage::Absent) => HunkKind::Deleted,
        _ => HunkKind::Binary,
    }
}

/// The bytes of an image, if it has any.
pub(crate) fn content(image: &FileImage) -> Option<BlobId> {
    match image {
        FileImage::Kept { blob, .. } => Some(*blob),
        FileImage::Absent | FileImage::Symlink { .. } | FileImage::NotKept { .. } => None,
    }
}

/// Whether the mode bits are the same, or there is nothing to compare.
fn keeps_mode(before: &FileImage, after: &FileImage) -> bool {
    match (before, after) {
        (FileImage::Kept { mode, .. }, FileImage::Kept { mode: now, .. }) => mode == now,
        (FileImage::Absent, FileImage::Kept { .. }) => true,
        _ => false,
    }
}
