//! The answer of a turn, written into its chat document as it comes.
//!
//! Rule: one edit at a time and never more often than [`PAUSE`], each made on the text as it is and counted only when
//! the document has shown it; it touches nothing but the line that holds the answer's place. Where the document cannot
//! be written any more the user is told, and hears the answer the plain way.

use std::sync::Arc;
use std::time::Duration;

use kode_engine::edit::TextEdit;
use kode_engine::event::{Event, Item, ItemBody, RunState, Subscription, TurnEnd};
use kode_engine::host::{DocumentEdit, DocumentEditOutcome, DocumentSnapshot, Host};
use kode_engine::ids::{ItemId, TurnId};
use kode_engine::session::Session;
use lsp_types::{MessageType, Url};
use tokio::time::{Instant, sleep_until};

use super::layout::{Layout, PROMPT};
use super::words::Words;
use crate::backend::Shared;
use crate::display::{both_ends, printable, readable};
use crate::host::LspHost;
use crate::plain::{ANSWER_LIMIT, outcome};

/// The least time between two edits of a document.
pub(super) const PAUSE: Duration = Duration::from_millis(250);

/// The longest time between two edits, where the user types without rest.
const MAX_PAUSE: Duration = Duration::from_secs(4);

/// So often the editor may refuse an edit of the document in a row.
const MAX_REFUSALS: u32 = 3;

/// So many of a session's newest items are looked at for what was missed.
const LOOKED_AT: usize = 500;

/// What begins an answer.
pub(super) struct Begin {
    /// The document.
    pub(super) uri: Url,
    /// The turn that answers.
    pub(super) turn: TurnId,
    /// The one item that is the answer, where the turn is not the prompt's own.
    pub(super) only: Option<ItemId>,
    /// Events after this one are looked at.
    pub(super) since: u64,
    /// What is done to the document first.
    pub(super) first: First,
}

/// What is done to a document before an answer is written into it.
pub(super) enum First {
    /// A place for the answer is made behind the prompt, at this byte of this text.
    Prompt {
        /// The text that was sent from.
        base: DocumentSnapshot,
        /// The edit that makes the place.
        edit: TextEdit,
    },
    /// What stands of the answer is replaced by all of it.
    Again,
}

/// Why no more is written into a document.
enum Stopped {
    /// It was closed.
    Closed,
    /// The line that holds the answer's place is gone.
    PlaceGone,
    /// The editor does not do as asked.
    Refused(String),
}

struct Writing {
    shared: Arc<Shared>,
    host: LspHost,
    uri: Url,
    turn: TurnId,
    only: Option<ItemId>,
    words: Words,
    /// Whether the last line in the document waits for more.
    mid_line: bool,
    /// Whether what stands of the answer is to be replaced by the next edit.
    again: bool,
    /// Whether the turn is over.
    over: bool,
    refusals: u32,
    pause: Duration,
}

/// Writes an answer until it is whole, or the document takes no more. Nothing waits for it.
pub(super) fn start(shared: &Arc<Shared>, session: &Arc<Session>, begin: Begin) {
    let (shared, session) = (Arc::clone(shared), Arc::clone(session));
    tokio::spawn(async move {
        let Begin { uri, turn, only, since, first } = begin;
        let mut writing = Writing {
            host: LspHost::new(Arc::clone(&shared)),
            uri,
            turn,
            only,
            words: Words::default(),
            mid_line: false,
            again: matches!(first, First::Again),
            over: false,
            refusals: 0,
            pause: PAUSE,
            shared: Arc::clone(&shared),
        };
        let stopped = match first {
            First::Prompt { base, edit } => writing.make_place(base, edit).await,
            First::Again => {
                writing.look_at_all(Arc::clone(&session)).await;
                Ok(())
            }
        };
        let (uri, mut events) = (writing.uri.clone(), session.events().subscribe(since, Vec::new()));
        // Who waits here would keep a closed session from ending.
        let weak = Arc::downgrade(&session);
        drop(session);
        let stopped = match stopped {
            Ok(()) => writing.follow(&mut events, &weak).await,
            Err(stopped) => Err(stopped),
        };
        let was_left = shared.chats.end(&uri);
        if let Err(stopped) = stopped {
            tracing::info!(%uri, "an answer is written no further into its document");
            tell(&shared, &uri, &stopped).await;
            if was_left && let Some(session) = weak.upgrade() {
                let answer = both_ends(session.answer().trim(), ANSWER_LIMIT);
                drop(session);
                shared.client.show_message(MessageType::INFO, readable(&answer)).await;
            }
        }
    });
}

impl Writing {
    /// Makes the place for the answer: behind the prompt, wherever that is by now.
    async fn make_place(&mut self, base: DocumentSnapshot, edit: TextEdit) -> Result<(), Stopped> {
        let (mut base, mut edit) = (base, edit);
        loop {
            let attempt = DocumentEdit { base, edits: vec![edit.clone()], label: "Kode: answer".to_owned() };
            if self.edited(attempt).await?.is_some() {
                return Ok(());
            }
            sleep_until(Instant::now() + self.pause).await;
            let document = self.document()?;
            let text = document.text.to_string();
            let layout = Layout::of(&text);
            edit.range = behind(&text, layout.prompt.end);
            base = document;
        }
    }

    async fn follow(
        &mut self,
        events: &mut Subscription,
        session: &std::sync::Weak<Session>,
    ) -> Result<(), Stopped> {
        let mut next = Instant::now() + self.pause;
        loop {
            if self.over {
                self.words.finish();
                sleep_until(next).await;
                if self.end().await? {
                    return Ok(());
                }
                next = Instant::now() + self.pause;
                continue;
            }
            let has_news = !self.words.is_empty() || self.again;
            tokio::select! {
                batch = events.next() => match batch {
                    Ok(Some(batch)) => batch.iter().for_each(|record| self.take(&record.event)),
                    // The session has ended; what it said is all there is.
                    Ok(None) => self.over = true,
                    Err(_) => match session.upgrade() {
                        Some(session) => self.look_at_all(session).await,
                        None => self.over = true,
                    },
                },
                () = sleep_until(next), if has_news => {
                    self.write().await?;
                    next = Instant::now() + self.pause;
                }
            }
        }
    }

    fn take(&mut self, event: &Event) {
        match event {
            Event::ItemAdded { item } | Event::ItemUpdated { item } | Event::ToolEnd { item } => {
                self.item(item)
            }
            Event::TextChunk { item, text } => self.words.chunk(item, text),
            Event::PermissionRequired { prompt } => {
                self.words.waits("waits for your permission", &prompt.title)
            }
            Event::QuestionAsked { question } => {
                let asked = question.draft.questions.first();
                self.words.waits("asks you", asked.map_or("", |asked| &asked.question));
            }
            Event::Done { turn, reason, .. } if *turn == self.turn => self.done(*reason),
            _ => {}
        }
    }

    fn item(&mut self, item: &Item) {
        if item.turn != self.turn || item.agent.is_some() {
            return;
        }
        match &self.only {
            None => self.words.item(item),
            Some(only) if *only == item.id => {
                self.words.item(item);
                self.over |= matches!(item.body, ItemBody::Command { .. });
            }
            Some(_) => {}
        }
    }

    fn done(&mut self, reason: TurnEnd) {
        self.over = true;
        if reason != TurnEnd::EndTurn {
            self.words.end(outcome(reason));
        }
    }

    /// Takes what the session knows of the turn, where events were missed.
    async fn look_at_all(&mut self, session: Arc<Session>) {
        // What has left memory is read from the disk.
        let looking = tokio::task::spawn_blocking(move || session.snapshot(LOOKED_AT));
        let Ok(snapshot) = looking.await else { return };
        snapshot.items.iter().for_each(|item| self.item(item));
        // A turn that is not the newest any more is over, and so is every one while none runs.
        let newest = snapshot.items.iter().rev().find(|item| item.agent.is_none());
        let is_newest = newest.is_none_or(|item| item.turn == self.turn);
        self.over |= snapshot.state == RunState::Ready || !is_newest;
    }

    /// Writes what has come.
    async fn write(&mut self) -> Result<(), Stopped> {
        let document = self.document()?;
        let text = document.text.to_string();
        let place = Layout::of(&text).answering.filter(|place| place.turn == self.turn);
        let place = place.ok_or(Stopped::PlaceGone)?;
        let words = self.words.take();
        let (range, mut new_text, mid_line) = if self.again {
            (place.begin..place.line.start, format!("\n{words}"), false)
        } else {
            let at = self.place(&text, place.line.start);
            (at..at, words.clone(), at < place.line.start)
        };
        let was_mid_line = self.mid_line;
        self.mid_line = !new_text.ends_with('\n');
        match (mid_line, self.mid_line) {
            (true, false) => drop(new_text.pop()),
            (false, true) => new_text.push('\n'),
            (true, true) | (false, false) => {}
        }
        let was_again = std::mem::take(&mut self.again);
        if self.put(document, &text, range, &new_text).await?.is_none() {
            self.words.put_back(&words);
            (self.mid_line, self.again) = (was_mid_line, was_again);
        }
        Ok(())
    }

    /// Writes the rest and a heading for the next prompt in place of the line that held the place; whether it is done.
    async fn end(&mut self) -> Result<bool, Stopped> {
        if self.again {
            self.write().await?;
            return Ok(false);
        }
        let document = self.document()?;
        let text = document.text.to_string();
        let place = Layout::of(&text).answering.filter(|place| place.turn == self.turn);
        let place = place.ok_or(Stopped::PlaceGone)?;
        let words = self.words.take();
        let at = self.place(&text, place.line.start);
        let line_end = if place.line.end == text.len() { "\n" } else { "" };
        let open = if at < place.line.start && !words.ends_with('\n') { "\n" } else { "" };
        let new_text = format!("{words}{open}\n{PROMPT}\n{line_end}");
        let done = self.put(document, &text, at..place.line.end, &new_text).await?.is_some();
        if !done {
            self.words.put_back(&words);
        }
        Ok(done)
    }

    /// Where more of the answer goes: in front of the line that holds its place, or to the end of the line before.
    fn place(&self, text: &str, line: usize) -> usize {
        let before = &text[..line];
        let ending = before.strip_suffix('\n').map(|line| line.strip_suffix('\r').unwrap_or(line));
        ending.filter(|_| self.mid_line).map_or(line, str::len)
    }

    async fn put(
        &mut self,
        base: DocumentSnapshot,
        text: &str,
        range: std::ops::Range<usize>,
        new_text: &str,
    ) -> Result<Option<()>, Stopped> {
        if range.is_empty() && new_text.is_empty() {
            return Ok(Some(()));
        }
        let new_text = with_endings(new_text, text);
        let edits = vec![TextEdit { range, new_text }];
        self.edited(DocumentEdit { base, edits, label: "Kode: answer".to_owned() }).await
    }

    /// Tries one edit; `None` when it is to be tried again on the text as it is then.
    async fn edited(&mut self, edit: DocumentEdit) -> Result<Option<()>, Stopped> {
        match self.host.edit_document(edit).await {
            DocumentEditOutcome::Applied(_) => {
                (self.refusals, self.pause) = (0, PAUSE);
                Ok(Some(()))
            }
            DocumentEditOutcome::Stale => {
                // Whoever types comes first.
                self.pause = (self.pause * 2).min(MAX_PAUSE);
                Ok(None)
            }
            DocumentEditOutcome::Rejected { reason } => {
                self.refusals += 1;
                let can_edit = self.shared.facts.get().is_some_and(|facts| facts.apply_edit);
                if self.refusals >= MAX_REFUSALS || !can_edit {
                    Err(Stopped::Refused(reason))
                } else {
                    Ok(None)
                }
            }
            // What was asked for may still come: asking again could write it twice.
            DocumentEditOutcome::Unconfirmed { reason } => Err(Stopped::Refused(reason)),
            DocumentEditOutcome::Closed => Err(Stopped::Closed),
        }
    }

    fn document(&self) -> Result<DocumentSnapshot, Stopped> {
        self.shared.documents.snapshot(&self.uri).ok_or(Stopped::Closed)
    }
}

/// Where something goes behind a byte of a text: to the beginning of the next line, or the end of the text.
pub(super) fn behind(text: &str, at: usize) -> std::ops::Range<usize> {
    let end = text[at..].find('\n').map_or(text.len(), |found| at + found + 1);
    end..end
}

/// New text with the line endings of the text that it comes into.
pub(super) fn with_endings(new_text: &str, text: &str) -> String {
    let is_dos = text.find('\n').is_some_and(|at| text[..at].ends_with('\r'));
    if is_dos { new_text.replace('\n', "\r\n") } else { new_text.to_owned() }
}

async fn tell(shared: &Shared, uri: &Url, stopped: &Stopped) {
    let name = uri.path_segments().and_then(|mut parts| parts.next_back()).unwrap_or_default();
    let text = match stopped {
        Stopped::Closed => format!(
            "Kode: {name} was closed while an answer was written into it. The conversation goes on; open the document \
             and send again to have the rest of the answer in it."
        ),
        Stopped::PlaceGone => format!(
            "Kode: the line that held the place of the answer in {name} is gone, so no more is written there. The \
             conversation goes on; `kode.cancel` stops it."
        ),
        Stopped::Refused(reason) => format!(
            "Kode: the answer cannot be written into {name}: {}. It is shown here when it is whole.",
            printable(reason)
        ),
    };
    shared.client.show_message(MessageType::WARNING, text).await;
}
