//! Long sessions: the journal of a short one, with its turn written down again and again.
//!
//! Rule: the written journal is one of the program itself, with other ids, so that it is read as its own; ids and event
//! numbers grow as they do in life. Here alone the harness knows how a session is stored.

use std::fs;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::project::Project;

/// The journal of a stored session that has one turn.
pub struct History {
    /// The journal.
    pub path: PathBuf,
    /// The lines before the turn, and those of the turn.
    opening: Vec<String>,
    turn: Vec<String>,
}

/// The content of a long journal.
#[derive(Clone, Copy, Debug, Default)]
pub struct Length {
    /// Number of turns.
    pub turns: usize,
    /// Minimum bytes, with more turns if need be.
    pub bytes: u64,
    /// After each of this many turns, the conversation is compacted; never if 0.
    pub compact_every: usize,
}

impl History {
    /// The journal of a session whose server has ended.
    ///
    /// # Panics
    /// If absent.
    #[must_use]
    pub fn of(project: &Project, session: &str) -> Self {
        let path = find(&project.home().join("sessions"), session).expect("the session is stored");
        let text = fs::read_to_string(&path).expect("a journal is text");
        let lines: Vec<String> = text.lines().map(str::to_owned).collect();
        let is = |line: &String, kind: &str| {
            serde_json::from_str::<Value>(line).is_ok_and(|line| line["type"] == kind)
        };
        let first = lines.iter().position(|line| is(line, "prompt")).expect("it has a turn");
        let last = lines.iter().position(|line| is(line, "turnEnded")).expect("its turn has ended");
        Self { path, opening: lines[..first].to_vec(), turn: lines[first..=last].to_vec() }
    }

    /// The file of that name beside the journal.
    #[must_use]
    pub fn beside(&self, name: &str) -> PathBuf {
        self.path.with_file_name(name)
    }

    /// Writes the journal again. Everything beside it that could report another one is removed. Answers how many turns it
    /// has.
    ///
    /// # Panics
    /// When that does not work.
    pub fn write(&self, length: Length) -> usize {
        for name in ["base.bin", "items.jsonl", "summary.json"] {
            drop(fs::remove_file(self.beside(name)));
        }
        let mut file = BufWriter::new(fs::File::create(&self.path).expect("the journal is ours"));
        let mut written = 0_u64;
        let mut put = |line: &str| {
            written += line.len() as u64 + 1;
            writeln!(file, "{line}").expect("there is room");
            written
        };
        let pieces: Vec<Vec<Piece>> = self.turn.iter().map(|line| pieces(line)).collect();
        let mut bytes = self.opening.iter().map(|line| put(line)).last().unwrap_or_default();
        let (mut turn, mut seq) = (0, 100_u64);
        while turn < length.turns || bytes < length.bytes {
            for line in &pieces {
                bytes = put(&with_ids(line, turn, seq));
                seq += 10;
            }
            turn += 1;
            if length.compact_every > 0 && turn.is_multiple_of(length.compact_every) {
                bytes = put(&compacted(turn, seq));
                seq += 10;
            }
        }
        file.flush().expect("there is room");
        turn
    }
}

/// The id of the window of the compaction after this many turns.
#[must_use]
pub fn window_after(turns: usize) -> String {
    format!("win_{turns:032x}")
}

fn find(folder: &Path, session: &str) -> Option<PathBuf> {
    let workspaces = fs::read_dir(folder).ok()?.flatten();
    workspaces.map(|entry| entry.path().join(session).join("journal.jsonl")).find(|path| path.is_file())
}

/// A part of a line.
enum Piece {
    Text(String),
    /// The time in an id: its first 12 digits.
    Time,
    /// The number of the newest event.
    Seq,
}

/// Takes a line apart at what differs from turn to turn.
fn pieces(line: &str) -> Vec<Piece> {
    const ID: usize = 32;
    const TIME: usize = 12;
    let (mut pieces, mut text) = (Vec::new(), String::new());
    let mut rest = line;
    while let Some(first) = rest.chars().next() {
        let is_hex =
            |text: &str| text.bytes().all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte));
        if let Some(after) = rest.strip_prefix("\"seq\":") {
            text.push_str("\"seq\":");
            pieces.extend([Piece::Text(std::mem::take(&mut text)), Piece::Seq]);
            rest = after.trim_start_matches(|char: char| char.is_ascii_digit());
            continue;
        }
        let kind =
            ["turn_", "item_", "change_", "hunk_", "perm_"].into_iter().find(|kind| rest.starts_with(kind));
        let id = kind.and_then(|kind| Some((kind, rest.get(kind.len()..kind.len() + ID)?)));
        if let Some((kind, id)) = id.filter(|(_, id)| is_hex(id)) {
            text.push_str(kind);
            pieces.extend([Piece::Text(std::mem::take(&mut text)), Piece::Time]);
            text.push_str(&id[TIME..]);
            rest = &rest[kind.len() + ID..];
            continue;
        }
        text.push(first);
        rest = &rest[first.len_utf8()..];
    }
    pieces.push(Piece::Text(text));
    pieces
}

fn with_ids(line: &[Piece], turn: usize, seq: u64) -> String {
    let mut made = String::new();
    for piece in line {
        match piece {
            Piece::Text(text) => made.push_str(text),
            // Some time of the year 2026.
            Piece::Time => made.push_str(&format!("{:012x}", 0x019b_8000_0000_usize + turn)),
            Piece::Seq => made.push_str(&seq.to_string()),
        }
    }
    made
}

/// A compaction that keeps nothing but a summary.
fn compacted(turns: usize, seq: u64) -> String {
    let many = json!({ "before": 100, "after": 1 });
    let head = json!([{ "type": "text", "text": format!("A summary of {turns} turns.") }]);
    let compaction = json!({
        "window": window_after(turns), "turn": format!("turn_{turns:032x}"), "cause": "asked", "messages": many,
        "tokens": many, "keptFrom": u32::MAX, "head": head,
    });
    let written = "2026-01-01T00:00:00Z";
    json!({ "v": 1, "seq": seq, "written": written, "type": "compacted", "compaction": compaction })
        .to_string()
}
