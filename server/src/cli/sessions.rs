//! `kode-ls sessions`: stored sessions, for people without an editor: list, show, rename, archive, delete, search, size.
//!
//! Rule: a session that is open in an editor is only checked; nothing is deleted without a yes. Any beginning of an id
//! that only one session has names it.

use std::fmt::Write as _;
use std::fs::File;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context;
use clap::{Args, Subcommand, ValueEnum};
use jiff::tz::TimeZone;
use kode_engine::agent::sessions::{
    ArchiveFilter, Catalogue, Hit, ListSessions, SearchSessions, SessionPresence, SessionSummary,
    WorkspaceFilter,
};
use kode_engine::agent::transfer::SessionExport;
use kode_engine::base::ids::SessionId;
use kode_protocol::{ExportFormat, ExportedDocument};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::cli::{FolderArgs, terminal};
use crate::convert::{self, UriNames};
use crate::display::printable;
use crate::home;
use crate::lsp::PositionEncoding;

/// Default number of listed sessions and hits.
const DEFAULT_LIMIT: usize = 50;

/// The longest title in the table, in characters.
const TITLE_WIDTH: usize = 60;

/// The arguments of `kode-ls sessions`.
#[derive(Debug, Args)]
pub struct SessionsArgs {
    #[command(subcommand)]
    command: Option<SessionsCommand>,

    #[command(flatten)]
    at: FolderArgs,

    /// Sessions of all folders, not only the current one
    #[arg(long, global = true)]
    all: bool,

    /// Include archived sessions in a list
    #[arg(long, global = true)]
    archived: bool,

    /// The most sessions or places that are listed
    #[arg(long, global = true, value_name = "N", default_value_t = DEFAULT_LIMIT)]
    limit: usize,
}

#[derive(Debug, Subcommand)]
enum SessionsCommand {
    /// List the sessions, the most recent first (the default)
    List,
    /// Show a session's details
    Show {
        /// Its id, or a unique prefix
        id: String,
    },
    /// Give a session another title
    Rename {
        /// Its id, or the beginning of it
        id: String,
        /// The title
        #[arg(required = true)]
        title: Vec<String>,
    },
    /// Archive a session: it is not listed, and not deleted for its age
    Archive {
        /// Its id, or the beginning of it
        id: String,
        /// Unarchive it
        #[arg(long)]
        undo: bool,
    },
    /// Delete a session and its stored data
    Delete {
        /// Its id, or the beginning of it
        id: String,
        /// Do not ask
        #[arg(long)]
        yes: bool,
    },
    /// Search prompts, answers, titles and tool calls
    Search {
        /// The words, in this order; letter case is ignored
        #[arg(required = true)]
        words: Vec<String>,
    },
    /// Write a session as a document
    Export {
        /// Its id, or the beginning of it
        id: String,
        /// The output format
        #[arg(long, value_enum, default_value_t)]
        format: ExportName,
        /// The file; it must not exist yet [default: standard output]
        #[arg(short, long, value_name = "FILE")]
        output: Option<PathBuf>,
    },
    /// Show the disk usage of the sessions, the largest first
    Size,
}

/// The output for a session.
#[derive(Clone, Copy, Debug, Default, ValueEnum)]
enum ExportName {
    /// A document for people
    #[default]
    Markdown,
    /// All items, for programs
    Json,
}

impl From<ExportName> for ExportFormat {
    fn from(name: ExportName) -> Self {
        match name {
            ExportName::Markdown => Self::Markdown,
            ExportName::Json => Self::Json,
        }
    }
}

/// The stored sessions, and whose are meant.
struct Sessions {
    catalogue: Catalogue,
    workspaces: WorkspaceFilter,
    json: bool,
}

/// Runs the command.
///
/// # Errors
/// What cannot be read, written or deleted, and ids that name no session or several.
pub fn run(args: SessionsArgs) -> anyhow::Result<ExitCode> {
    let workspaces = match args.all {
        true => WorkspaceFilter::All,
        false => WorkspaceFilter::These(vec![args.at.folder()?]),
    };
    let sessions = Sessions { catalogue: Catalogue::new(&home::folder()?), workspaces, json: args.at.json };
    let text = match args.command.unwrap_or(SessionsCommand::List) {
        SessionsCommand::List => sessions.list(args.archived, args.limit)?,
        SessionsCommand::Show { id } => sessions.show(&id)?,
        SessionsCommand::Rename { id, title } => {
            let id = sessions.named(&id)?;
            sessions.catalogue.rename(&WorkspaceFilter::All, &id, &title.join(" "))?;
            sessions.done(&id, "renamed")
        }
        SessionsCommand::Archive { id, undo } => {
            let id = sessions.named(&id)?;
            sessions.catalogue.archive(&WorkspaceFilter::All, &id, !undo)?;
            sessions.done(&id, if undo { "taken out again" } else { "archived" })
        }
        SessionsCommand::Delete { id, yes } => {
            let id = sessions.named(&id)?;
            if !yes && !sessions.is_sure(&id)? {
                return Ok(ExitCode::FAILURE);
            }
            sessions.catalogue.delete(&WorkspaceFilter::All, &id)?;
            sessions.done(&id, "deleted")
        }
        SessionsCommand::Search { words } => sessions.search(&words.join(" "), args.limit)?,
        SessionsCommand::Export { id, format, output } => sessions.export(&id, format, output.as_deref())?,
        SessionsCommand::Size => sessions.size()?,
    };
    terminal::output(&text).context("could not write")?;
    Ok(ExitCode::SUCCESS)
}

impl Sessions {
    fn list(&self, archived: bool, limit: usize) -> anyhow::Result<String> {
        let archived = if archived { ArchiveFilter::Include } else { ArchiveFilter::Hide };
        let query = ListSessions { archived, ..ListSessions::newest(self.workspaces.clone(), limit) };
        let page = self.catalogue.list(&query, &|_| None)?;
        if self.json {
            return json_text(&serde_json::to_value(convert::sessions::page(page, UriNames::standard()))?);
        }
        let mut text = table(&page.sessions);
        if page.sessions.iter().any(|session| session.turns.is_none()) {
            text.push_str("`?`: only the start and the end of a large journal were read; `kode-ls sessions show ID` reads all of it.\n");
        }
        if page.next.is_some() {
            text.push_str("There are more; `--limit` says how many are listed.\n");
        }
        Ok(text)
    }

    fn show(&self, wanted: &str) -> anyhow::Result<String> {
        let session = self.summary(&self.named(wanted)?)?;
        let folder = self.catalogue.find(&WorkspaceFilter::All, &session.id)?;
        if self.json {
            let mut value = serde_json::to_value(convert::sessions::summary(session, UriNames::standard()))?;
            value["path"] = json!(folder);
            return json_text(&value);
        }
        let unknown = || "not known".to_owned();
        let size = session.size;
        let rows = [
            ("id", session.id.to_string()),
            ("title", title(&session)),
            ("state", state(&session)),
            ("folder", session.folder.as_ref().map_or_else(unknown, ToString::to_string)),
            ("begun", session.created.map_or_else(unknown, time)),
            ("last used", time(session.updated)),
            ("turns", session.turns.map_or_else(unknown, |turns| turns.to_string())),
            ("model", session.model.clone()),
            ("mode", session.mode.map_or_else(unknown, |mode| mode.name().to_owned())),
            ("cost", session.cost.map_or_else(unknown, |cost| format!("${cost:.4}"))),
            ("journal", bytes(size.journal)),
            ("kept contents", bytes(size.blobs)),
            ("output", bytes(size.output)),
            ("all of it", bytes(size.total)),
            ("kept in", folder.display().to_string()),
            ("last answer", session.answer.clone()),
        ];
        Ok(rows.iter().fold(String::new(), |text, (name, value)| {
            text + format!("{name:<15}{}", printable(value)).trim_end() + "\n"
        }))
    }

    fn search(&self, words: &str, limit: usize) -> anyhow::Result<String> {
        let (workspaces, text) = (self.workspaces.clone(), words.to_owned());
        let query = SearchSessions { workspaces, text, limit, cursor: None };
        let page = self.catalogue.search(&query, &CancellationToken::new())?;
        if self.json {
            let page = convert::sessions::search_page(page, PositionEncoding::Utf8);
            return json_text(&serde_json::to_value(page)?);
        }
        let mut text = String::new();
        let mut last: Option<&SessionId> = None;
        for hit in &page.hits {
            if last != Some(&hit.session) {
                let _ = writeln!(text, "{}  {}", hit.session, printable(&hit.title));
                last = Some(&hit.session);
            }
            let _ = writeln!(text, "  {:<11}  {}", kind(hit), printable(&hit.snippet));
        }
        if page.hits.is_empty() {
            text.push_str("nothing found\n");
        } else if page.next.is_some() {
            text.push_str("There is more; `--limit` says how much is listed.\n");
        }
        Ok(text)
    }

    fn export(&self, wanted: &str, format: ExportName, file: Option<&Path>) -> anyhow::Result<String> {
        let id = self.named(wanted)?;
        let folder = self.catalogue.find(&WorkspaceFilter::All, &id)?;
        let exported = SessionExport::read(&folder)?;
        if exported.skipped > 0 {
            let skipped = exported.skipped;
            terminal::error_line(&format!("! {skipped} damaged lines of its journal are left out"));
        }
        let text = match convert::transfer::exported(exported, format.into()).document {
            ExportedDocument::Markdown { text } => text,
            ExportedDocument::Json { session } => json_text(&serde_json::to_value(session)?)?,
        };
        let Some(file) = file else { return Ok(text) };
        let shown = printable(&file.display().to_string());
        let mut created = File::create_new(file).with_context(|| format!("could not write {shown}"))?;
        created.write_all(text.as_bytes()).with_context(|| format!("could not write {shown}"))?;
        Ok(self.done(&id, &format!("written to {shown}")))
    }

    fn size(&self) -> anyhow::Result<String> {
        let query = ListSessions {
            archived: ArchiveFilter::Include,
            totals: true,
            ..ListSessions::newest(self.workspaces.clone(), usize::MAX)
        };
        let page = self.catalogue.list(&query, &|_| None)?;
        let totals = page.totals.unwrap_or_default();
        let mut sessions = page.sessions;
        sessions.sort_by_key(|session| std::cmp::Reverse(session.size.total));
        if self.json {
            let of = |session: &SessionSummary| {
                let size = session.size;
                json!({
                    "sessionId": session.id, "title": session.title, "bytes": size.total,
                    "journal": size.journal, "blobs": size.blobs, "output": size.output,
                })
            };
            let listed: Vec<_> = sessions.iter().map(of).collect();
            let totals = convert::sessions::totals(totals);
            return json_text(&json!({ "totals": totals, "sessions": listed }));
        }
        let mut text = format!("{} in {} sessions\n", bytes(totals.bytes), totals.sessions);
        for session in sessions.iter().take(DEFAULT_LIMIT) {
            let _ = writeln!(text, "{:>10}  {}  {}", bytes(session.size.total), session.id, title(session));
        }
        Ok(text)
    }

    /// The session that the beginning of an id names.
    fn named(&self, wanted: &str) -> anyhow::Result<SessionId> {
        match self.catalogue.complete(&self.workspaces, wanted) {
            Ok(id) => Ok(id),
            // An id that was copied from elsewhere names its session wherever one is.
            Err(error) => self.catalogue.complete(&WorkspaceFilter::All, wanted).map_err(|_| error.into()),
        }
    }

    fn summary(&self, id: &SessionId) -> anyhow::Result<SessionSummary> {
        let mut query = ListSessions {
            archived: ArchiveFilter::Include,
            thorough: true,
            ..ListSessions::newest(WorkspaceFilter::All, DEFAULT_LIMIT)
        };
        loop {
            let page = self.catalogue.list(&query, &|_| None)?;
            let found = page.sessions.into_iter().find(|session| session.id == *id);
            match (found, page.next) {
                (Some(session), _) => return Ok(session),
                (None, Some(next)) => query.cursor = Some(next),
                (None, None) => anyhow::bail!("the session {id} is gone"),
            }
        }
    }

    /// Asks whether a session is to be deleted.
    fn is_sure(&self, id: &SessionId) -> anyhow::Result<bool> {
        let session = self.summary(id)?;
        let what = format!("{id}, \"{}\", {}", title(&session), bytes(session.size.total));
        anyhow::ensure!(
            terminal::is_interactive(),
            "`--yes` is required to delete {what} without a terminal"
        );
        terminal::agrees(&format!("Delete {what}? This cannot be undone."))
            .context("could not read the answer")
    }

    fn done(&self, id: &SessionId, what: &str) -> String {
        if self.json { format!("{}\n", json!({ "sessionId": id })) } else { format!("{id} {what}\n") }
    }
}

/// How much room all sessions take together.
pub(super) fn totals() -> anyhow::Result<Value> {
    let totals = Catalogue::new(&home::folder()?).totals(&WorkspaceFilter::All);
    Ok(serde_json::to_value(convert::sessions::totals(totals))?)
}

/// A number of bytes for people.
pub(super) fn bytes(bytes: u64) -> String {
    const UNITS: [(u64, &str); 3] = [(1_000_000_000, "GB"), (1_000_000, "MB"), (1_000, "kB")];
    match UNITS.iter().find(|(unit, _)| bytes >= *unit) {
        Some((unit, name)) => format!("{}.{} {name}", bytes / unit, bytes % unit * 10 / unit),
        None => format!("{bytes} B"),
    }
}

fn json_text(value: &Value) -> anyhow::Result<String> {
    Ok(serde_json::to_string_pretty(value)? + "\n")
}

fn table(sessions: &[SessionSummary]) -> String {
    if sessions.is_empty() {
        return "no sessions; `--all` lists those of other folders\n".to_owned();
    }
    let head = ["ID", "LAST USED", "TURNS", "SIZE", "STATE", "TITLE"].map(str::to_owned);
    let row = |session: &SessionSummary| {
        let turns = session.turns.map_or_else(|| "?".to_owned(), |turns| turns.to_string());
        let size = bytes(session.size.total);
        let mut short: String = title(session).chars().take(TITLE_WIDTH).collect();
        if short.len() < title(session).len() {
            short.push('…');
        }
        [session.id.to_string(), time(session.updated), turns, size, state(session), short]
    };
    let rows: Vec<_> = std::iter::once(head).chain(sessions.iter().map(row)).collect();
    let widths: Vec<usize> = (0..6)
        .map(|column| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or_default())
        .collect();
    let line = |row: &[String; 6]| {
        let cells = row.iter().zip(&widths).map(|(cell, width)| format!("{cell:<width$}"));
        cells.collect::<Vec<_>>().join("  ").trim_end().to_owned() + "\n"
    };
    rows.iter().map(line).collect()
}

fn title(session: &SessionSummary) -> String {
    if session.title.is_empty() { "(no prompt yet)".to_owned() } else { printable(&session.title) }
}

fn state(session: &SessionSummary) -> String {
    let state = match &session.presence {
        SessionPresence::Live(_) | SessionPresence::Stored => "stored",
        SessionPresence::Elsewhere => "open",
        SessionPresence::Unreadable(problem) => return format!("unreadable: {}", printable(problem)),
    };
    if session.archived { format!("{state}, archived") } else { state.to_owned() }
}

fn kind(hit: &Hit) -> &'static str {
    use kode_engine::agent::sessions::HitKind;
    match hit.kind {
        HitKind::Prompt => "prompt",
        HitKind::Answer => "answer",
        HitKind::Title => "title",
        HitKind::ToolTitle => "tool",
        HitKind::ToolOutput => "tool output",
    }
}

fn time(time: jiff::Timestamp) -> String {
    time.to_zoned(TimeZone::system()).strftime("%Y-%m-%d %H:%M").to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_reported_with_one_digit_behind_the_point() {
        for (count, reported) in [(0, "0 B"), (999, "999 B"), (1_250, "1.2 kB"), (3_900_000_000, "3.9 GB")] {
            assert_eq!(bytes(count), reported);
        }
    }
}
