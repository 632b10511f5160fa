//! Checkpoints: the state before each prompt, and going back to it.
//!
//! Rule: going back takes out what the agent and its commands did since, hunk by hunk, and leaves what the user did; only
//! when asked to it makes files what they were to the byte. It is an act like any other and can be taken back.

use std::collections::BTreeMap;
use std::sync::Arc;

use ropey::Rope;

use crate::edits::EditBook;
use crate::edits::Edits;
use crate::edits::command::{content, kind_of};
use crate::edits::review::{
    CheckpointView, ResolveError, RestoreFile, RestorePreview, RestoreWhat, UserEdits,
};
use crate::edits::switch::ReviewStep;
use crate::state::rewinds::PendingRestore;
use crate::state::thread::PromptFacts;
use kode_base::ids::{CallId, ChangeId, CheckpointId, HunkId, PermissionId, ResolutionId, TurnId};
use kode_base::paths::Target;
use kode_base::task;
use kode_base::{blocking, encoding};
use kode_record::event::Event;
use kode_record::record::Record;
use kode_record::resolution::ResolutionOutcome;
use kode_text::edit::diff::{Patch, line_changes};
use kode_text::edit::ledger::review::{HunkKind, HunkState};
use kode_text::edit::ledger::{ChangeOrigin, FileBefore, LedgerEntry, NewHunk, split};
use kode_text::shell_change::FileImage;
use kode_text::workspace::ReadError;

/// The mode of a file whose own is not known and that has to be made again.
const NEW_MODE: u32 = 0o644;

impl Edits {
    /// The checkpoints, oldest first.
    #[must_use]
    pub fn checkpoints(&self) -> Vec<CheckpointView> {
        let prompts: Vec<PromptFacts> = self.core.state().main.prompts().cloned().collect();
        let book = self.synced();
        let view = |prompt: PromptFacts| {
            let files = book.ledger.before(&prompt.turn);
            let is_uncovered = |before: &FileBefore| {
                matches!(before, FileBefore::Image { image: FileImage::NotKept { .. } })
            };
            let (uncovered, covered): (Vec<_>, Vec<_>) =
                files.into_iter().flatten().partition(|(_, before)| is_uncovered(before));
            CheckpointView {
                id: CheckpointId::before(&prompt.turn),
                title: prompt.title,
                timestamp: prompt.timestamp,
                targets: covered.into_iter().map(|(target, _)| target.clone()).collect(),
                uncovered: uncovered.into_iter().map(|(target, _)| target.clone()).collect(),
                turn: prompt.turn,
                item: prompt.item,
            }
        };
        prompts.into_iter().map(view).collect()
    }

    /// The effect of a restore. Reads files.
    ///
    /// # Errors
    /// [`ResolveError::UnknownCheckpoint`].
    pub async fn preview_restore(
        &self,
        checkpoint: &CheckpointId,
        what: RestoreWhat,
        user_edits: UserEdits,
    ) -> Result<RestorePreview, ResolveError> {
        self.may_restore(what)?;
        let turn = self.turn_of(checkpoint)?;
        let (items, turns) = {
            let state = self.core.state();
            (state.main.count_since(&turn), state.rewinds.turns_since(&turn))
        };
        let mut preview = RestorePreview { files: Vec::new(), items: 0 };
        if what != RestoreWhat::Files {
            preview.items = items;
        }
        if what == RestoreWhat::Conversation {
            return Ok(preview);
        }
        let wanted = self.synced().ledger.in_place_of(&turns);
        for (target, before) in self.befores(&turns) {
            let hunks = wanted.get(&target).map(Vec::as_slice).unwrap_or_default();
            preview.files.extend(self.preview_file(target, &before, hunks, user_edits).await);
        }
        Ok(preview)
    }

    /// Begins to restore. [`Event::EditsResolved`] has the outcome.
    ///
    /// # Errors
    /// [`ResolveError`]; nothing is started then.
    pub fn restore(
        self: &Arc<Self>,
        checkpoint: &CheckpointId,
        what: RestoreWhat,
        user_edits: UserEdits,
    ) -> Result<ResolutionId, ResolveError> {
        if self.core.is_closing() {
            return Err(ResolveError::Closed);
        }
        self.may_restore(what)?;
        let turn = self.turn_of(checkpoint)?;
        let id = ResolutionId::generate();
        let turns = self.core.state().rewinds.turns_since(&turn);
        if what != RestoreWhat::Files {
            self.rewind(&turn, &id, what != RestoreWhat::Conversation)?;
        } else if !self.core.state().is_idle() {
            return Err(ResolveError::Busy);
        }
        let edits = Arc::clone(self);
        let restoring = PendingRestore { resolution: id.clone(), turns };
        let files = (what != RestoreWhat::Conversation).then_some(user_edits);
        let under_way = self.begin_resolving();
        task::spawn(async move {
            edits.bring_back(restoring, files).await;
            drop(under_way);
        });
        Ok(id)
    }

    /// Continues with files that were to be brought back with the conversation when the server ended. The user's own text
    /// stays, also where it was to go: since then they may have written more.
    pub(crate) async fn finish_restore(&self) {
        let restoring = self.core.state().rewinds.restoring().cloned();
        if let Some(restoring) = restoring {
            tracing::info!(session = %self.core.id(), "files are brought back with the conversation");
            self.bring_back(restoring, Some(UserEdits::Keep)).await;
        }
    }

    // -- inside -------------------------------------------------------------------------------------------------

    /// Undoes the changes of turns to files, where files are restored, and publishes the outcome.
    async fn bring_back(&self, restoring: PendingRestore, files: Option<UserEdits>) {
        let PendingRestore { resolution: id, turns } = restoring;
        let label = "Kode: restore a checkpoint".to_owned();
        let step = ReviewStep { id: id.clone(), reverts: None, label, force: true };
        // Held over both steps: nothing is taken back between them, and the session does not end there.
        let one_at_a_time = self.writing.lock().await;
        let wanted = if files.is_some() { self.synced().ledger.in_place_of(&turns) } else { BTreeMap::new() };
        let undone = |hunk| (hunk, HunkState::Undone);
        let wanted: BTreeMap<_, Vec<_>> = wanted
            .into_iter()
            .map(|(target, hunks)| (target, hunks.into_iter().map(undone).collect()))
            .collect();
        let mut outcome = self.carry_out_alone(&wanted, &step).await;
        if files == Some(UserEdits::Discard) {
            self.discard_all(&turns, &step, &mut outcome).await;
        }
        // A closed session leaves the rest for the next run. An editor that goes away breaks its pipes first, so that edits
        // fail while the session is still being closed.
        let has_lost_edits = self.core.is_closing() && !outcome.failed.is_empty();
        let is_cut_short = has_lost_edits || self.book().is_closed;
        drop(one_at_a_time);
        let is_noted =
            self.core.state().rewinds.restoring().is_some_and(|restoring| restoring.resolution == id);
        if is_noted && !is_cut_short {
            self.core.commit(Record::Restored { resolution: id });
        }
        self.core.sync().await;
        self.core.publish(Event::EditsResolved { outcome: Box::new(outcome) });
    }

    /// Whether the settings allow restoring files.
    fn may_restore(&self, what: RestoreWhat) -> Result<(), ResolveError> {
        let wants_files = self.gate.in_force().policy.preferences.checkpointing;
        if wants_files || what == RestoreWhat::Conversation { Ok(()) } else { Err(ResolveError::FilesOff) }
    }

    fn turn_of(&self, checkpoint: &CheckpointId) -> Result<TurnId, ResolveError> {
        let state = self.core.state();
        let found = state.main.turns().find(|turn| CheckpointId::before(turn) == *checkpoint);
        found.cloned().ok_or_else(|| ResolveError::UnknownCheckpoint(checkpoint.clone()))
    }

    /// The files before these turns.
    fn befores(&self, turns: &[TurnId]) -> BTreeMap<Target, FileBefore> {
        let book = self.book();
        let mut befores = BTreeMap::new();
        for (target, before) in turns.iter().filter_map(|turn| book.ledger.before(turn)).flatten() {
            befores.entry(target.clone()).or_insert_with(|| before.clone());
        }
        befores
    }

    async fn preview_file(
        &self,
        target: Target,
        before: &FileBefore,
        hunks: &[HunkId],
        edits: UserEdits,
    ) -> Option<RestoreFile> {
        let path = self.workspace.display(&target);
        let moves: Vec<_> = hunks.iter().map(|hunk| (hunk.clone(), HunkState::Undone)).collect();
        let whole = self.synced().ledger.replacements(&moves);
        let images = self.images(&target, before).await;
        let (unified, user_edits) = (String::new(), String::new());
        let file = RestoreFile { target: target.clone(), unified, user_edits, problem: None };
        let discards = edits == UserEdits::Discard;
        let mut version = None;
        let now = match self.workspace.text(&target).await {
            Ok(now) => {
                version = now.version();
                Some(now.text.to_string())
            }
            Err(ReadError::NotFound { .. } | ReadError::NotOpen { .. }) if discards || !whole.is_empty() => {
                Some(String::new())
            }
            // Files that the user has deleted stay deleted.
            Err(ReadError::NotFound { .. } | ReadError::NotOpen { .. }) => return None,
            Err(error) if images.is_none() => {
                return Some(RestoreFile { problem: Some(error.to_string()), ..file });
            }
            Err(_) => None,
        };
        let then = match self.text_before(before).await {
            Ok(then) => Some(then),
            Err(problem) if images.is_none() => {
                return Some(RestoreFile { problem: Some(problem), ..file });
            }
            Err(_) => None,
        };
        if let (Some(now), Some(then)) = (now, then) {
            let kept = self.text_kept(&target, (&now, version), &moves).filter(|_| whole.is_empty());
            let kept = kept.unwrap_or_else(|| then.clone());
            let diff = |old: &str, new: &str| match old == new {
                true => String::new(),
                false => Patch::between(old, new).unified(&path, false),
            };
            let unified = diff(&now, if discards { &then } else { &kept });
            if !unified.is_empty() {
                return Some(RestoreFile { unified, user_edits: diff(&then, &kept), ..file });
            }
        }
        let (now, then) = images.filter(|(now, then)| now != then && (discards || !whole.is_empty()))?;
        let is_touched = whole.first().is_some_and(|whole| whole.expected != now);
        let problem = (is_touched && !discards).then(|| "it was changed since".to_owned());
        let unified = format!("{path}: {} → {}", self.in_words(&now).await, self.in_words(&then).await);
        Some(RestoreFile { unified, problem, ..file })
    }

    /// The text of a file without hunks. `now` was read just before, with the document's version.
    fn text_kept(
        &self,
        target: &Target,
        (now, version): (&str, Option<i32>),
        moves: &[(HunkId, HunkState)],
    ) -> Option<String> {
        let mut book = self.synced();
        self.reconcile_read(&mut book, target, &Rope::from_str(now), version);
        book.ledger.text_with(target, moves)
    }

    /// An image in a few words.
    async fn in_words(&self, image: &FileImage) -> String {
        match image {
            FileImage::Absent => "no file".to_owned(),
            FileImage::Symlink { target } => format!("a link to `{}`", target.display()),
            FileImage::NotKept { reason } => format!("not known: {reason}"),
            FileImage::Kept { blob, mode } => {
                let (blobs, id) = (self.blobs.clone(), *blob);
                let bytes = blocking(move || blobs.get(&id)).await.unwrap_or_default();
                let what = if encoding::decode(&bytes).is_ok() { "text" } else { "binary" };
                format!("{what} file, {} bytes, mode {mode:o}", bytes.len())
            }
        }
    }

    /// The current and former content of a closed file of the workspace; `None` for a target that is reported by its text
    /// alone: an open document, a file elsewhere or behind a link, and one too large to be kept.
    async fn images(&self, target: &Target, before: &FileBefore) -> Option<(FileImage, FileImage)> {
        let path =
            target.file().filter(|path| self.workspace.roots().iter().any(|root| path.is_within(root)))?;
        if self.workspace.open_document(target).await.is_some() {
            return None;
        }
        let (shadow, path) = (Arc::clone(&self.shadow), path.clone());
        let now = blocking(move || shadow.image(&path)).await;
        let then = match (before, &now) {
            (_, FileImage::NotKept { .. }) | (FileBefore::Image { image: FileImage::NotKept { .. } }, _) => {
                return None;
            }
            (FileBefore::Absent, _) => FileImage::Absent,
            (FileBefore::Image { image }, _) => image.clone(),
            (FileBefore::File { bytes: blob } | FileBefore::Document { text: blob }, FileImage::Absent) => {
                FileImage::Kept { blob: *blob, mode: NEW_MODE }
            }
            (FileBefore::File { bytes: blob }, FileImage::Kept { mode, .. }) => {
                FileImage::Kept { blob: *blob, mode: *mode }
            }
            // The document's content on the disk is unknown.
            (
                FileBefore::File { .. } | FileBefore::Document { .. },
                FileImage::Kept { .. } | FileImage::Symlink { .. },
            ) => {
                return None;
            }
        };
        Some((now, then))
    }

    /// Makes all files what they were before these turns, also where the user has changed them. The lock of what writes is
    /// held by the caller.
    async fn discard_all(&self, turns: &[TurnId], step: &ReviewStep, outcome: &mut ResolutionOutcome) {
        // New files are removed first: one may be in a folder that replaced a file.
        let (made, others): (Vec<_>, Vec<_>) =
            self.befores(turns).into_iter().partition(|(_, before)| is_absence(before));
        for (target, before) in made.into_iter().rev().chain(others) {
            if self.book().is_closed {
                return;
            }
            let discarded = self.discard(&target, &before, turns, step).await;
            // The file is restored, or this is the reason why not.
            outcome.failed.retain(|(failed, _)| *failed != target);
            match discarded {
                Ok(hunks) => outcome.resolved.extend(hunks),
                Err(reason) => outcome.failed.push((target, reason)),
            }
        }
    }

    /// Makes a file what it was, also where the user has changed it: these changes are hunks as well, and can be taken
    /// back like all others.
    async fn discard(
        &self,
        target: &Target,
        before: &FileBefore,
        turns: &[TurnId],
        step: &ReviewStep,
    ) -> Result<Vec<HunkId>, String> {
        let change = ChangeOrigin {
            id: ChangeId::generate(),
            turn: turns.first().cloned().unwrap_or_else(TurnId::generate),
            call: CallId::from_external(step.id.as_str()),
            kind: HunkKind::Text,
            permission: None,
        };
        if let Some((now, then)) = self.images(target, before).await {
            return self.discard_whole(target, change, now, then, step).await;
        }
        let mut resolved = self.discard_text(target, before, change.clone(), step).await?;
        if let (Some(path), true) = (target.file().cloned(), is_absence(before)) {
            // The document is empty now, and has no file again.
            let shadow = Arc::clone(&self.shadow);
            let now = blocking(move || shadow.image(&path)).await;
            resolved.extend(self.discard_whole(target, change, now, FileImage::Absent, step).await?);
        }
        Ok(resolved)
    }

    async fn discard_whole(
        &self,
        target: &Target,
        change: ChangeOrigin,
        before: FileImage,
        after: FileImage,
        step: &ReviewStep,
    ) -> Result<Vec<HunkId>, String> {
        if before == after {
            return Ok(Vec::new());
        }
        let is_open = self.workspace.open_document(target).await.is_some();
        let text = self.text_of(&before).await;
        let change = ChangeOrigin { kind: kind_of(&before, &after), ..change };
        let (target, hunk) = (target.clone(), HunkId::generate());
        let sets_aside = !is_open && content(&before) != content(&after);
        {
            let mut book = self.synced();
            if let (Some(text), FileImage::Kept { .. }, true) = (text, &before, sets_aside) {
                self.reconcile(&mut book, &target, &Rope::from_str(&text));
            }
            let (file, id) = (target.clone(), hunk.clone());
            let entry = LedgerEntry::Replaced { target: file, change, hunk: id, before, after, sets_aside };
            self.enter(&mut book, entry, None);
            self.enter_not_yet(&mut book, &target, std::slice::from_ref(&hunk));
        }
        Ok(self.switch(&target, &[(hunk, HunkState::Kept)], step).await?.resolved)
    }

    async fn discard_text(
        &self,
        target: &Target,
        before: &FileBefore,
        change: ChangeOrigin,
        step: &ReviewStep,
    ) -> Result<Vec<HunkId>, String> {
        let then = self.text_before(before).await?;
        let now = match self.workspace.text(target).await {
            Ok(now) => now.text.to_string(),
            // A missing file is not written.
            Err(ReadError::NotFound { .. } | ReadError::NotOpen { .. }) if is_absence(before) => {
                return Ok(Vec::new());
            }
            Err(error) => return Err(error.to_string()),
        };
        if now == then {
            return Ok(Vec::new());
        }
        let base = self.keep_bytes(now.as_bytes().into()).await;
        let hunks: Vec<NewHunk> = split(&now, &line_changes(&now, &then))
            .into_iter()
            .map(|edits| NewHunk { id: HunkId::generate(), edits })
            .collect();
        let names: Vec<HunkId> = hunks.iter().map(|hunk| hunk.id.clone()).collect();
        // Not in the text yet: it comes into it like everything else that is switched.
        let change = ChangeOrigin { permission: Some(PermissionId::generate()), ..change };
        let kept: Vec<_> = names.iter().map(|hunk| (hunk.clone(), HunkState::Kept)).collect();
        {
            let mut book = self.synced();
            if !book.ledger.is_tracked(target) {
                self.feed.follow(target);
                self.enter(&mut book, LedgerEntry::Tracked { target: target.clone(), base }, Some(&now));
            }
            self.reconcile(&mut book, target, &Rope::from_str(&now));
            self.enter(&mut book, LedgerEntry::Changed { target: target.clone(), change, hunks }, None);
            self.enter_not_yet(&mut book, target, &names);
        }
        Ok(self.switch(target, &kept, step).await?.resolved)
    }

    /// Enters that hunks wait to be switched.
    fn enter_not_yet(&self, book: &mut EditBook, target: &Target, hunks: &[HunkId]) {
        let moves = hunks.iter().map(|hunk| (hunk.clone(), HunkState::Undone)).collect();
        let moved = LedgerEntry::Moved { target: target.clone(), resolution: None, reverts: None, moves };
        self.enter(book, moved, None);
    }

    /// The text a file had; empty when there was none.
    async fn text_before(&self, before: &FileBefore) -> Result<String, String> {
        let id = match before {
            FileBefore::Absent | FileBefore::Image { image: FileImage::Absent } => return Ok(String::new()),
            FileBefore::Document { text: id }
            | FileBefore::File { bytes: id }
            | FileBefore::Image { image: FileImage::Kept { blob: id, .. } } => *id,
            FileBefore::Image { image: FileImage::Symlink { target } } => {
                return Err(format!("it was a link to `{}`", target.display()));
            }
            FileBefore::Image { image: FileImage::NotKept { reason } } => {
                return Err(format!("its earlier content is not known: {reason}"));
            }
        };
        let blobs = self.blobs.clone();
        let bytes = blocking(move || blobs.get(&id)).await;
        let bytes = bytes.map_err(|error| format!("its earlier content cannot be read: {error}"))?;
        encoding::decode(&bytes).map(|decoded| decoded.text).map_err(|_| "it is not text".to_owned())
    }

    /// The text of an image; `None` where its bytes are no text.
    pub(crate) async fn text_of(&self, image: &FileImage) -> Option<String> {
        match image {
            FileImage::Absent | FileImage::Kept { .. } => {
                self.text_before(&FileBefore::Image { image: image.clone() }).await.ok()
            }
            FileImage::Symlink { .. } | FileImage::NotKept { .. } => None,
        }
    }

    fn rewind(&self, turn: &TurnId, resolution: &ResolutionId, files: bool) -> Result<(), ResolveError> {
        if !self.core.state().can_rewind(turn)
            && let Err(error) = self.core.mend()
        {
            tracing::warn!(%error, "older entries cannot be shown until the journal can be read");
        }
        let (turn, resolution) = (turn.clone(), resolution.clone());
        self.core.commit_when_idle(Record::Rewound { turn, resolution, files })?;
        // Which of them were read in turns that are gone is not known: the model reads again what it changes.
        self.workspace.forget_reads();
        self.editor.forget();
        Ok(())
    }

    /// Takes the conversation forward again to where it was before this act took it back.
    pub(crate) fn unwind(&self, resolution: &ResolutionId) -> Result<(), ResolveError> {
        Ok(self.core.commit_when_idle(Record::Unwound { resolution: resolution.clone() })?)
    }
}

/// Whether there was no file.
fn is_absence(before: &FileBefore) -> bool {
    matches!(before, FileBefore::Absent | FileBefore::Image { image: FileImage::Absent })
}
