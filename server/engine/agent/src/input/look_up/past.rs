//! The result of another session of the same workspace.
//!
//! Rule: it is read from the journal on disk; a session that runs meanwhile is not disturbed.

use std::cmp::Reverse;
use std::path::{Path, PathBuf};

use crate::input::look_up::{FoundPart, LookUp, MAX_OTHER_BYTES};
use crate::input::render::bounded;
use crate::sessions;
use crate::state::SessionState;
use kode_base::{blocking, todo};
use kode_journal as journal;
use kode_record::prompt::Attachment;
use kode_record::record::Record;

/// The most sessions that are searched, the newest first.
const MAX_SESSIONS: usize = 200;

/// The largest journal that is read for this, in bytes.
const MAX_JOURNAL_BYTES: u64 = 128 << 20;

/// The result of a session.
struct PastSession {
    id: String,
    title: String,
    answer: String,
    todos: String,
}

impl LookUp<'_> {
    pub(super) async fn past_session(&self, shown: Attachment, wanted: &str, room: usize) -> FoundPart {
        let (own, wanted) = (self.input.core.journal().path().to_path_buf(), wanted.trim().to_owned());
        match blocking(move || find(&own, &wanted)).await {
            Ok(PastSession { id, title, answer, todos }) => {
                let todos = if todos.is_empty() { todos } else { format!("\n\nIts todo list:\n{todos}") };
                let answer = if answer.is_empty() { "(none)" } else { &answer };
                let text = format!("Title: {title}\n\nIts last answer:\n{answer}{todos}");
                let shown = Attachment { label: title, ..shown };
                FoundPart::text(shown, "session", &[("id", id)], &bounded(&text, room.min(MAX_OTHER_BYTES)))
            }
            Err(problem) => FoundPart::problem(shown, problem),
        }
    }
}

/// The newest conversation beside the own one that has this id, or whose title has these words.
fn find(own: &Path, wanted: &str) -> Result<PastSession, String> {
    let own = own.parent().ok_or("there are no other conversations")?;
    let folder = own.parent().ok_or("there are no other conversations")?;
    let name = own.file_name().unwrap_or_default();
    let entries = std::fs::read_dir(folder).map_err(|error| error.to_string())?;
    let mut journals: Vec<(Reverse<std::time::SystemTime>, PathBuf)> = entries
        .flatten()
        .filter_map(|entry| {
            let journal = own.file_name().map(|_| entry.path().join("journal.jsonl"))?;
            Some((Reverse(journal.metadata().ok()?.modified().ok()?), journal))
        })
        .collect();
    journals.sort();
    let others = journals.into_iter().map(|(_, journal)| journal);
    let mut others = others.filter(|journal| journal.parent().and_then(Path::file_name) != Some(name));
    let lower = wanted.to_lowercase();
    let is_it = |journal: &PathBuf| {
        let id = journal.parent().and_then(Path::file_name).unwrap_or_default();
        id == wanted || sessions::title(journal).to_lowercase().contains(&lower)
    };
    let found = others.by_ref().take(MAX_SESSIONS).find(is_it);
    let journal = found
        .filter(|_| !wanted.is_empty())
        .ok_or("no conversation of this workspace has that id or title")?;
    if journal.metadata().is_ok_and(|metadata| metadata.len() > MAX_JOURNAL_BYTES) {
        return Err("its journal is too large to be read for this".to_owned());
    }
    let read = journal::read(&journal).map_err(|error| error.to_string())?;
    let records = read.records.into_iter().filter(|record| !matches!(record, Record::Edits { .. }));
    let state = SessionState::fold(records.collect()).ok_or("its journal holds no conversation")?;
    let todos = match state.todos.list() {
        [] => String::new(),
        todos => todo::render(todos),
    };
    Ok(PastSession {
        id: state.id.to_string(),
        title: state.title.text.clone(),
        answer: state.main.answer(),
        todos,
    })
}
