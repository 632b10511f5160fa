//! A turn in a terminal: the streaming answer, and a status line for the running call.
//!
//! Rule: standard output gets nothing but the answer. The status line is drawn only if standard error is a terminal, is erased
//! before any other output, and is never drawn while the user types.

use std::collections::HashSet;
use std::io::{self, IsTerminal, Write};
use std::time::{Duration, Instant};

use kode_engine::base::ids::ItemId;
use kode_engine::permission::NOBODY;
use kode_engine::record::event::{CallState, Event, Item, ItemBody, NoticeLevel};

use crate::cli::terminal;
use crate::cli::watch::TurnView;
use crate::display::{printable, readable, retry_line};

/// The interval between two updates of the status line.
pub(super) const TICK: Duration = Duration::from_millis(500);

/// The user at this terminal.
const OWN_ANSWERS: [&str; 3] = ["terminal", "--yes", NOBODY];

/// The view of a running turn.
pub(super) struct Screen {
    /// Whether the status line is drawn.
    is_live: bool,
    /// Whether the answer is written while it streams.
    streams: bool,
    /// Whether the last line of standard output lacks its line end.
    is_open: bool,
    /// The last streamed message.
    message: Option<ItemId>,
    /// Messages of sub-agents, which are hidden.
    foreign: HashSet<ItemId>,
    running: Vec<(ItemId, String, Instant)>,
    /// The start of the wait for the model.
    thinking: Option<Instant>,
    /// The number of open prompts and questions.
    asked: usize,
    is_drawn: bool,
    out: Box<dyn Write + Send>,
    err: Box<dyn Write + Send>,
}

impl Screen {
    /// The screen of this process. With `wants_answer` the answer streams if both outputs are terminals.
    pub(super) fn of_process(wants_answer: bool) -> Self {
        let is_live = io::stderr().is_terminal();
        let streams = wants_answer && is_live && io::stdout().is_terminal();
        Self::new(is_live, streams, Box::new(io::stdout()), Box::new(io::stderr()))
    }

    fn new(is_live: bool, streams: bool, out: Box<dyn Write + Send>, err: Box<dyn Write + Send>) -> Self {
        Self {
            is_live,
            streams,
            is_open: false,
            message: None,
            foreign: HashSet::new(),
            running: Vec::new(),
            thinking: None,
            asked: 0,
            is_drawn: false,
            out,
            err,
        }
    }

    /// Whether the answer is written while it streams.
    pub(super) fn streams(&self) -> bool {
        self.streams
    }

    /// Whether standard error is a terminal.
    pub(super) fn is_live(&self) -> bool {
        self.is_live
    }

    /// Starts waiting for the model.
    pub(super) fn begin(&mut self) {
        self.thinking = Some(Instant::now());
        self.message = None;
    }

    /// Writes a line to standard error.
    ///
    /// # Errors
    /// When the open line of standard output cannot be ended.
    pub(super) fn line(&mut self, text: &str) -> io::Result<()> {
        self.close_line()?;
        drop(writeln!(self.err, "{text}"));
        self.draw();
        Ok(())
    }

    fn item(&mut self, item: &Item) -> io::Result<()> {
        match &item.body {
            ItemBody::AgentMessage { text, .. } if !text.is_empty() => self.text(&item.id, text),
            ItemBody::Notice { level, text, hint, kind: _ } => {
                let mark = match level {
                    NoticeLevel::Info => "i",
                    NoticeLevel::Warning => "!",
                    NoticeLevel::Error => "error:",
                };
                let hint = hint.as_deref().unwrap_or_default();
                self.line(format!("{mark} {} {}", printable(text), printable(hint)).trim_end())
            }
            _ => Ok(()),
        }
    }

    fn text(&mut self, item: &ItemId, text: &str) -> io::Result<()> {
        if !self.streams || self.foreign.contains(item) || text.is_empty() {
            return Ok(());
        }
        self.thinking = None;
        self.erase();
        if self.message.as_ref().is_some_and(|last| last != item) {
            // An empty line separates two messages.
            self.close_line()?;
            writeln!(self.out)?;
        }
        self.message = Some(item.clone());
        let shown = readable(text);
        self.out.write_all(shown.as_bytes())?;
        self.out.flush()?;
        self.is_open = !shown.ends_with('\n');
        Ok(())
    }

    fn ended(&mut self, item: &Item) -> io::Result<()> {
        let ItemBody::ToolCall(call) = &item.body else { return Ok(()) };
        self.line(&call_line(&call.title, call.state, &call.display))
    }

    /// Ends a prompt or question, and its line unless the answer ended it.
    fn close_question(&mut self, by: &str) {
        self.asked = self.asked.saturating_sub(1);
        if self.is_live && !OWN_ANSWERS.contains(&by) {
            drop(writeln!(self.err));
        }
    }

    /// Ends an open line of standard output, and erases the status line.
    fn close_line(&mut self) -> io::Result<()> {
        self.erase();
        if std::mem::take(&mut self.is_open) {
            writeln!(self.out)?;
            self.out.flush()?;
        }
        Ok(())
    }

    fn draw(&mut self) {
        // It would break an open line of the answer, or the line that the user types.
        if !self.is_live || self.is_open || self.asked > 0 {
            return;
        }
        let line = match (self.running.last(), self.thinking) {
            (Some((_, title, since)), _) => {
                let others = match self.running.len() {
                    1 => String::new(),
                    count => format!(" and {} more", count - 1),
                };
                format!("◦ {title}{others} ({} s)", since.elapsed().as_secs())
            }
            (None, Some(since)) => format!("… {} s", since.elapsed().as_secs()),
            (None, None) => return,
        };
        let line = line.replace(['\n', '\t'], " ");
        let shown: String = line.chars().take(terminal::size().0.saturating_sub(1)).collect();
        drop(write!(self.err, "\r\u{1b}[2K{}", terminal::dim(&shown)).and_then(|()| self.err.flush()));
        self.is_drawn = true;
    }

    fn erase(&mut self) {
        if std::mem::take(&mut self.is_drawn) {
            drop(write!(self.err, "\r\u{1b}[2K").and_then(|()| self.err.flush()));
        }
    }
}

impl TurnView for Screen {
    fn event(&mut self, event: &Event) -> io::Result<()> {
        if event.is_of_sub_agent() {
            if let Event::ItemAdded { item } = event {
                self.foreign.insert(item.id.clone());
            }
            return Ok(());
        }
        match event {
            Event::ItemAdded { item } => self.item(item),
            Event::TextChunk { item, text } => self.text(item, text),
            Event::ToolStart { item } => {
                if let ItemBody::ToolCall(call) = &item.body {
                    self.close_line()?;
                    self.running.push((item.id.clone(), printable(&call.title), Instant::now()));
                    self.draw();
                }
                Ok(())
            }
            Event::ToolEnd { item } => {
                self.running.retain(|(id, ..)| *id != item.id);
                if self.running.is_empty() {
                    self.thinking = Some(Instant::now());
                }
                self.ended(item)
            }
            Event::ModelRetry { retry } => self.line(&format!("… {}", retry_line(retry))),
            Event::StorageFailure { message, recovered } => {
                let mark = if *recovered { "i" } else { "!" };
                self.line(&format!("{mark} {}", printable(message)))
            }
            // The answerer prints prompts and questions.
            Event::PermissionRequired { .. } | Event::QuestionAsked { .. } => {
                self.asked += 1;
                self.close_line()
            }
            Event::PermissionDecided { decision } => {
                self.close_question(&decision.by);
                Ok(())
            }
            Event::QuestionAnswered { resolved } => {
                self.close_question(&resolved.by);
                Ok(())
            }
            Event::Done { .. } => {
                self.running.clear();
                (self.thinking, self.asked) = (None, 0);
                self.close_line()
            }
            _ => Ok(()),
        }
    }

    fn tick(&mut self) {
        self.draw();
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        self.erase();
    }
}

/// The line of a finished call.
fn call_line(title: &str, state: CallState, display: &str) -> String {
    let state = serde_json::to_value(state).unwrap_or_default();
    let state = state.as_str().unwrap_or_default().to_lowercase().replace('_', " ");
    let (title, display) = (printable(title), printable(display));
    format!("• {title} ({state}) {display}").trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use jiff::Timestamp;
    use kode_engine::base::ids::{CallId, TurnId};
    use kode_engine::record::event::ToolCallItem;

    use super::*;

    /// The written text, to both outputs in the order of writing.
    #[derive(Clone, Default)]
    struct Written(Arc<Mutex<Vec<u8>>>);

    impl Write for Written {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    impl Written {
        fn text(&self) -> String {
            String::from_utf8(self.0.lock().unwrap().clone()).unwrap()
        }
    }

    fn item(id: &ItemId, body: ItemBody) -> Item {
        Item { id: id.clone(), turn: TurnId::generate(), agent: None, timestamp: Timestamp::now(), body }
    }

    fn call(title: &str, state: CallState) -> ItemBody {
        ItemBody::ToolCall(Box::new(ToolCallItem {
            call: CallId::generate(),
            name: "Bash".into(),
            title: title.into(),
            kind: None,
            input: serde_json::json!({}).into(),
            state,
            display: "3 lines".into(),
            structured: None,
            error: None,
            started: None,
            ended: None,
            audit: Vec::new(),
        }))
    }

    fn message() -> ItemBody {
        let (text, complete, interrupted) = (String::new(), false, false);
        ItemBody::AgentMessage { text, complete, interrupted, model: None, duration_ms: None }
    }

    /// A turn: some words, a call, and the answer.
    fn play(screen: &mut Screen) {
        let (first, run, last) = (ItemId::generate(), ItemId::generate(), ItemId::generate());
        let chunk = |id: &ItemId, text: &str| Event::TextChunk { item: id.clone(), text: text.into() };
        let added = |id: &ItemId, body| Event::ItemAdded { item: item(id, body).into() };
        let (starts, ends) =
            (call("make\ttest", CallState::Executing), call("make test", CallState::Completed));
        let events = [
            added(&first, message()),
            chunk(&first, "I look "),
            chunk(&first, "\u{1b}[2J at it."),
            Event::ToolStart { item: item(&run, starts).into() },
            Event::ToolEnd { item: item(&run, ends).into() },
            added(&last, message()),
            chunk(&last, "Done.\n"),
        ];
        screen.begin();
        for event in &events {
            screen.event(event).unwrap();
            screen.tick();
        }
    }

    #[test]
    fn on_a_terminal_the_answer_streams_and_the_running_call_is_seen() {
        let written = Written::default();
        let mut screen = Screen::new(true, true, Box::new(written.clone()), Box::new(written.clone()));
        play(&mut screen);
        drop(screen);
        let text = written.text();
        let lines: Vec<&str> =
            text.split('\n').map(|line| line.rsplit("\u{1b}[2K").next().unwrap()).collect();
        assert_eq!(
            lines,
            ["I look \\u{1b}[2J at it.", "• make test (completed) 3 lines", "", "Done.", ""],
            "{text:?}"
        );
        assert!(text.contains("◦ make test (0 s)"), "{text:?}");
    }

    #[test]
    fn elsewhere_the_steps_are_lines_and_the_answer_is_left_to_the_end() {
        let written = Written::default();
        let mut screen = Screen::new(false, false, Box::new(written.clone()), Box::new(written.clone()));
        play(&mut screen);
        drop(screen);
        assert_eq!(written.text(), "• make test (completed) 3 lines\n");
    }

    #[test]
    fn nothing_is_drawn_where_a_person_types() {
        let written = Written::default();
        let mut screen = Screen::new(true, true, Box::new(written.clone()), Box::new(written.clone()));
        screen.begin();
        screen.asked = 1;
        screen.tick();
        assert_eq!(written.text(), "");
    }
}
