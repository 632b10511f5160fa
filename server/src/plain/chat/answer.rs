//! The answer of a turn, written into its chat document as it comes.
//!
//! Rule: one edit at a time and never more often than [`PAUSE`], each made on the text as it is and counted only when
//! the document has shown it; it touches nothing but the line that holds the answer's place. Where the document cannot
//! be written any more, or not for long, the user is notified, and hears the answer the plain way.

use std::pin::pin;
use std::sync::{Arc, Weak};
use std::time::Duration;

use kode_engine::agent::session::Session;
use kode_engine::base::ids::{ItemId, TurnId};
use kode_engine::base::task;
use kode_engine::record::event::{Event, Item, ItemBody, RunState, Subscription, TurnEnd};
use kode_engine::text::document::DocumentSnapshot;
use kode_engine::text::edit::TextEdit;
use kode_engine::text::host::{DocumentEdit, DocumentEditOutcome};
use lsp_types::{MessageType, Url};
use tokio::time::{Instant, sleep_until, timeout};

use super::layout::{ChatLayout, PROMPT};
use super::words::AnswerText;
use crate::display::{both_ends, printable, readable};
use crate::host::{EDIT_LIMIT, LspHost};
use crate::plain::PlainFrontEnd;
use crate::plain::view::{ANSWER_LIMIT, outcome};

/// The least time between two edits of a document.
pub(super) const PAUSE: Duration = Duration::from_millis(250);

/// The longest time between two edits, where the user types without rest.
const MAX_PAUSE: Duration = Duration::from_secs(4);

/// So often the editor may refuse an edit of the document in a row.
const MAX_REFUSALS: u32 = 3;

/// Number of a session's newest items that are checked for missed ones.
const LOOKED_AT: usize = 500;

/// The beginning of an answer.
pub(super) struct AnswerStart {
    /// The document.
    pub(super) uri: Url,
    /// The turn that answers.
    pub(super) turn: TurnId,
    /// The one item that is the answer, where the turn is not the prompt's own.
    pub(super) only: Option<ItemId>,
    /// Events after this one are checked.
    pub(super) since: u64,
    /// The first edit of the document.
    pub(super) first: FirstEdit,
}

/// The edit of a document before an answer is written into it.
pub(super) enum FirstEdit {
    /// A place for the answer is made behind the prompt, at this byte of this text.
    Prompt {
        /// The text that was sent from.
        base: DocumentSnapshot,
        /// The edit that makes the place.
        edit: TextEdit,
    },
    /// The existing part of the answer is replaced by all of it.
    Again,
}

/// Why no more is written into a document.
enum StopCause {
    /// It was closed.
    Closed,
    /// The line that holds the answer's place is gone.
    PlaceGone,
    /// The editor does not do as asked.
    Refused(String),
}

struct AnswerWriter {
    front_end: Arc<PlainFrontEnd>,
    host: LspHost,
    /// A task that waits for an answer does not keep a closed session from ending.
    session: Weak<Session>,
    uri: Url,
    turn: TurnId,
    only: Option<ItemId>,
    words: AnswerText,
    /// Whether the last line in the document waits for more.
    mid_line: bool,
    /// Whether the existing part of the answer is replaced by the next edit.
    again: bool,
    /// Whether the turn is over.
    over: bool,
    refusals: u32,
    pause: Duration,
    /// Whether the user knows that the document is shown late.
    reported_late: bool,
}

/// Writes an answer until it is whole, or the document takes no more. Nothing waits for it.
pub(super) fn start(front_end: &Arc<PlainFrontEnd>, session: &Arc<Session>, begin: AnswerStart) {
    let (front_end, session) = (Arc::clone(front_end), Arc::clone(session));
    task::spawn(async move {
        let AnswerStart { uri, turn, only, since, first } = begin;
        let mut writing = AnswerWriter {
            host: LspHost::new(Arc::clone(&front_end.connection)),
            session: Arc::downgrade(&session),
            uri,
            turn,
            only,
            words: AnswerText::default(),
            mid_line: false,
            again: matches!(first, FirstEdit::Again),
            over: false,
            refusals: 0,
            pause: PAUSE,
            reported_late: false,
            front_end,
        };
        let stopped = match first {
            FirstEdit::Prompt { base, edit } => writing.make_place(base, edit).await,
            FirstEdit::Again => {
                writing.inspect_all(Arc::clone(&session)).await;
                Ok(())
            }
        };
        let mut events = session.events().subscribe(since, Vec::new());
        drop(session);
        let stopped = match stopped {
            Ok(()) => writing.follow(&mut events).await,
            Err(stopped) => Err(stopped),
        };
        let was_left = writing.front_end.chats.end(&writing.uri);
        if let Err(stopped) = stopped {
            tracing::info!(uri = %writing.uri, "an answer is no longer written into its document");
            writing.report_stopped(&stopped).await;
            if was_left {
                writing.show().await;
            }
        }
    });
}

impl AnswerWriter {
    /// Makes the place for the answer: behind the prompt, wherever that is by now.
    async fn make_place(&mut self, base: DocumentSnapshot, edit: TextEdit) -> Result<(), StopCause> {
        let (mut base, mut edit) = (base, edit);
        loop {
            let attempt = DocumentEdit { base, edits: vec![edit.clone()], label: "Kode: answer".to_owned() };
            if self.edited(attempt).await?.is_some() {
                return Ok(());
            }
            sleep_until(Instant::now() + self.pause).await;
            let document = self.document()?;
            let text = document.text.to_string();
            let layout = ChatLayout::of(&text);
            // Kakoune puts in a line above its end what goes behind the last line.
            if layout.answering.is_some_and(|place| place.turn == self.turn) {
                return Ok(());
            }
            edit.range = behind(&text, layout.prompt.end);
            base = document;
        }
    }

    async fn follow(&mut self, events: &mut Subscription) -> Result<(), StopCause> {
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
                    Err(_) => match self.session.upgrade() {
                        Some(session) => self.inspect_all(session).await,
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
                // The document may be saved, and the address of a page may have secrets.
                let page =
                    question.draft.page.as_ref().map(|page| format!("to open a page of {}", page.host));
                let asked = question.draft.questions.first().map_or("", |asked| &asked.question);
                self.words.waits("asks you", page.as_deref().unwrap_or(asked));
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
    async fn inspect_all(&mut self, session: Arc<Session>) {
        // Items that have left memory are read from the disk.
        let looking = task::spawn_blocking(move || session.snapshot(LOOKED_AT));
        let Ok(snapshot) = looking.await else { return };
        snapshot.items.iter().for_each(|item| self.item(item));
        // A turn that is not the newest any more is over, and so is every one while none runs.
        let newest = snapshot.items.iter().rev().find(|item| item.agent.is_none());
        let is_newest = newest.is_none_or(|item| item.turn == self.turn);
        self.over |= snapshot.state == RunState::Ready || !is_newest;
    }

    /// Writes what has come.
    async fn write(&mut self) -> Result<(), StopCause> {
        let document = self.document()?;
        let text = document.text.to_string();
        let place = ChatLayout::of(&text).answering.filter(|place| place.turn == self.turn);
        let place = place.ok_or(StopCause::PlaceGone)?;
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
    async fn end(&mut self) -> Result<bool, StopCause> {
        if self.again {
            self.write().await?;
            return Ok(false);
        }
        let document = self.document()?;
        let text = document.text.to_string();
        let place = ChatLayout::of(&text).answering.filter(|place| place.turn == self.turn);
        let place = place.ok_or(StopCause::PlaceGone)?;
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
    ) -> Result<Option<()>, StopCause> {
        if range.is_empty() && new_text.is_empty() {
            return Ok(Some(()));
        }
        let new_text = with_endings(new_text, text);
        let edits = vec![TextEdit { range, new_text }];
        self.edited(DocumentEdit { base, edits, label: "Kode: answer".to_owned() }).await
    }

    /// Tries one edit; `None` when it is to be tried again on the text as it is then.
    async fn edited(&mut self, edit: DocumentEdit) -> Result<Option<()>, StopCause> {
        match self.attempt(edit).await {
            DocumentEditOutcome::Applied(_) => {
                (self.refusals, self.pause) = (0, PAUSE);
                Ok(Some(()))
            }
            DocumentEditOutcome::Stale => {
                // The typing user comes first.
                self.pause = (self.pause * 2).min(MAX_PAUSE);
                Ok(None)
            }
            DocumentEditOutcome::Rejected { reason } => {
                self.refusals += 1;
                let can_edit = self.front_end.connection.facts.get().is_some_and(|facts| facts.apply_edit);
                if self.refusals >= MAX_REFUSALS || !can_edit {
                    Err(StopCause::Refused(reason))
                } else {
                    Ok(None)
                }
            }
            // The requested edit may still come: asking again could write it twice.
            DocumentEditOutcome::Unconfirmed { reason } => Err(StopCause::Refused(reason)),
            DocumentEditOutcome::Closed => Err(StopCause::Closed),
        }
    }

    /// Makes one edit. While the document takes long to show it nothing else is written, and the answer is shown the plain
    /// way; it continues in the document when that has shown the edit after all.
    async fn attempt(&mut self, edit: DocumentEdit) -> DocumentEditOutcome {
        let mut editing = pin!(self.host.edit_patiently(edit));
        if let Ok(outcome) = timeout(EDIT_LIMIT, &mut editing).await {
            return outcome;
        }
        let was_left = self.front_end.chats.be_late(&self.uri);
        if !self.reported_late {
            let text = "the editor does not show the latest text of the answer yet in";
            let then = "The answer continues there when it does, and is shown here when it is complete.";
            self.report(&format!("{text} {}. {then}", self.name())).await;
        }
        if was_left {
            self.show().await;
        }
        let outcome = editing.await;
        self.reported_late = true;
        self.front_end.chats.be_in_time(&self.uri);
        outcome
    }

    fn document(&self) -> Result<DocumentSnapshot, StopCause> {
        self.front_end.connection.documents.snapshot(&self.uri).ok_or(StopCause::Closed)
    }

    fn name(&self) -> &str {
        self.uri.path_segments().and_then(|mut parts| parts.next_back()).unwrap_or_default()
    }

    async fn report_stopped(&self, stopped: &StopCause) {
        let name = self.name();
        let text = match stopped {
            StopCause::Closed => format!(
                "{name} was closed while an answer was written into it. The conversation continues; open \
                     the document and send again to get the rest of the answer in it."
            ),
            StopCause::PlaceGone => format!(
                "the answer is no longer written into {name}: its placeholder line is gone. The \
                     conversation continues; `kode.cancel` stops it."
            ),
            StopCause::Refused(reason) => format!(
                "the answer cannot be written into {name}: {}. It is shown here when it is complete.",
                printable(reason)
            ),
        };
        self.report(&text).await;
    }

    async fn report(&self, text: &str) {
        self.front_end.connection.client.show_message(MessageType::WARNING, format!("Kode: {text}")).await;
    }

    /// Shows the answer the plain way.
    async fn show(&self) {
        if let Some(answer) = self.session.upgrade().map(|session| session.answer()) {
            let answer = both_ends(answer.trim(), ANSWER_LIMIT);
            self.front_end.connection.client.show_message(MessageType::INFO, readable(&answer)).await;
        }
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

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use kode_engine::base::ids::SessionId;
    use kode_engine::record::event::EventLog;
    use serde_json::{Value, json};

    use super::super::layout::{ANSWER, answering_line};
    use super::*;
    use crate::testing::TestClient;

    const URI: &str = "file:///w/talk.kode.md";

    /// An editor with a chat document in which an answer is being written, and the events of the conversation.
    struct Editor {
        client: TestClient,
        front_end: Arc<PlainFrontEnd>,
        session: SessionId,
        log: Arc<EventLog>,
        turn: TurnId,
        item: ItemId,
        text: String,
        version: i32,
    }

    impl Editor {
        /// An editor with a prompt, and below it what `answer` makes of the line that holds the answer's place.
        async fn new(answer: impl Fn(&str) -> String) -> Self {
            let (service, socket) = crate::server::service();
            let front_end = Arc::clone(service.inner().front_end());
            let mut client =
                TestClient::connect((service, socket), Arc::clone(&front_end.connection.lifecycle));
            let workspace = json!({ "applyEdit": true, "workspaceEdit": { "documentChanges": true } });
            client.initialize(json!({ "workspace": workspace })).await;
            let (session, turn) = (SessionId::generate(), TurnId::generate());
            let text = format!("## You\nhello\n{}", answer(&answering_line(&turn)));
            let document = json!({ "uri": URI, "languageId": "markdown", "version": 1, "text": text });
            client.notify("textDocument/didOpen", json!({ "textDocument": document })).await;
            // The answer says that the document was taken in.
            client.request(1, "no/such", Value::Null).await;
            let log = EventLog::new(session.clone(), 0);
            Self { client, front_end, session, log, turn, item: ItemId::generate(), text, version: 1 }
        }

        fn writing(&self) -> AnswerWriter {
            let uri = Url::parse(URI).unwrap();
            assert!(self.front_end.chats.begin(&uri, &self.session));
            AnswerWriter {
                host: LspHost::new(Arc::clone(&self.front_end.connection)),
                front_end: Arc::clone(&self.front_end),
                session: Weak::new(),
                uri,
                turn: self.turn.clone(),
                only: None,
                words: AnswerText::default(),
                mid_line: false,
                again: false,
                over: false,
                refusals: 0,
                pause: PAUSE,
                reported_late: false,
            }
        }

        fn write(&self) {
            let mut writing = self.writing();
            let mut events = self.log.subscribe(0, Vec::new());
            tokio::spawn(async move {
                if let Err(stopped) = writing.follow(&mut events).await {
                    writing.report_stopped(&stopped).await;
                }
            });
        }

        /// The model says more.
        fn says(&self, text: &str) {
            let (id, turn) = (self.item.clone(), self.turn.clone());
            let body = ItemBody::AgentMessage {
                text: text.to_owned(),
                complete: false,
                interrupted: false,
                model: None,
                duration_ms: None,
            };
            let item = Item { id, turn, agent: None, timestamp: Timestamp::UNIX_EPOCH, body };
            self.log.publish(Event::ItemUpdated { item: item.into() });
        }

        /// The next thing that the server wants.
        async fn asked(&mut self, method: &str) -> Value {
            let message = self.client.receive().await;
            assert_eq!(message["method"], method, "{message}");
            message
        }

        /// Makes an edit and tells so.
        async fn show(&mut self, request: &Value) {
            let [edit] =
                request["params"]["edit"]["documentChanges"][0]["edits"].as_array().unwrap().as_slice()
            else {
                panic!("not one edit: {request}")
            };
            let at = |place: &Value| {
                let (line, character) =
                    (place["line"].as_u64().unwrap(), place["character"].as_u64().unwrap());
                let begin: usize =
                    self.text.split_inclusive('\n').take(usize::try_from(line).unwrap()).map(str::len).sum();
                begin + usize::try_from(character).unwrap()
            };
            let range = at(&edit["range"]["start"])..at(&edit["range"]["end"]);
            self.text.replace_range(range, edit["newText"].as_str().unwrap());
            self.show_text(request).await;
        }

        /// Reports the text and says that an edit was made.
        async fn show_text(&mut self, request: &Value) {
            self.version += 1;
            let document = json!({ "uri": URI, "version": self.version });
            let changes = json!([{ "text": self.text }]);
            self.client
                .notify(
                    "textDocument/didChange",
                    json!({ "textDocument": document, "contentChanges": changes }),
                )
                .await;
            self.client.send(json!({ "id": request["id"], "result": { "applied": true } })).await;
        }
    }

    /// The place of an answer.
    fn place(line: &str) -> String {
        format!("\n{ANSWER}\n\n{line}\n")
    }

    #[tokio::test(start_paused = true)]
    async fn an_answer_continues_where_the_editor_shows_it_much_later_and_nothing_of_it_is_lost_or_there_twice()
     {
        let mut editor = Editor::new(place).await;
        editor.says("One.\n");
        editor.write();
        let late = editor.asked("workspace/applyEdit").await;
        editor.says("One.\nTwo.\n");
        let reported = editor.asked("window/showMessage").await;
        let reported = reported["params"]["message"].as_str().unwrap();
        assert!(reported.contains("talk.kode.md") && reported.contains("continues there"), "{reported}");
        assert!(
            !editor.front_end.chats.leave(&editor.session),
            "the answer is shown the plain way meanwhile"
        );
        tokio::time::sleep(Duration::from_secs(300)).await;
        editor.show(&late).await;

        let later = editor.asked("workspace/applyEdit").await;
        assert!(editor.front_end.chats.leave(&editor.session), "it is left to the document again");
        editor.says("One.\nTwo.\nThree.\n");
        // The user knows by now that the editor is slow.
        tokio::time::sleep(EDIT_LIMIT * 2).await;
        editor.show(&later).await;
        let rest = editor.asked("workspace/applyEdit").await;
        editor.show(&rest).await;
        editor.log.close();
        let end = editor.asked("workspace/applyEdit").await;
        editor.show(&end).await;
        assert_eq!(editor.text, "## You\nhello\n\n## Kode\n\nOne.\nTwo.\nThree.\n\n## You\n\n");
    }

    #[tokio::test(start_paused = true)]
    async fn a_place_that_the_editor_has_made_elsewhere_is_made_once() {
        let mut editor = Editor::new(|_| String::new()).await;
        let mut writing = editor.writing();
        let base = writing.document().ok().unwrap();
        let new_text = place(&answering_line(&editor.turn));
        let edit = TextEdit { range: behind(&editor.text, editor.text.len() - 1), new_text };
        let making = tokio::spawn(async move { writing.make_place(base, edit).await.is_ok() });
        let request = editor.asked("workspace/applyEdit").await;
        editor.text = format!("## You\nhello{}\n", place(&answering_line(&editor.turn)));
        editor.show_text(&request).await;
        assert!(making.await.unwrap());
        let next = editor.client.request(2, "no/such", Value::Null).await;
        assert_eq!(next["error"]["code"], -32601, "nothing else is asked");
    }

    #[tokio::test(start_paused = true)]
    async fn an_editor_that_never_shows_an_edit_is_given_up_in_the_end() {
        let mut editor = Editor::new(place).await;
        editor.says("One.\n");
        editor.write();
        editor.asked("workspace/applyEdit").await;
        for expected in ["continues there", "neither answered"] {
            let reported = editor.asked("window/showMessage").await;
            let reported = reported["params"]["message"].as_str().unwrap();
            assert!(reported.contains(expected), "no {expected:?} in {reported}");
        }
    }
}
