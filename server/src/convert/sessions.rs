//! Stored sessions: the list and hits.
//!
//! Rule: values only, no decisions.

use kode_engine::agent::sessions::{
    ArchiveFilter, Hit, HitKind, SearchPage, SessionPage, SessionPresence, SessionSummary, SessionTotals,
};
use kode_engine::record::title::TitledBy;
use kode_protocol as wire;

use super::{UriNames, item_id, mode, run_state, session_id, timestamp};
use crate::lsp::PositionEncoding;

/// A page of the list.
#[must_use]
pub fn page(page: SessionPage, names: UriNames<'_>) -> wire::ListSessionsResult {
    wire::ListSessionsResult {
        sessions: page.sessions.into_iter().map(|session| summary(session, names)).collect(),
        next_cursor: page.next,
        totals: page.totals.map(totals),
    }
}

/// A session in the list.
#[must_use]
pub fn summary(summary: SessionSummary, names: UriNames<'_>) -> wire::SessionSummary {
    let said = |text: String| Some(text).filter(|text| !text.is_empty());
    let (state, doing, problem) = match summary.presence {
        SessionPresence::Live(state) => (wire::SessionPresence::Live, Some(run_state(state)), None),
        SessionPresence::Stored => (wire::SessionPresence::Stored, None, None),
        SessionPresence::Elsewhere => (wire::SessionPresence::Elsewhere, None, None),
        SessionPresence::Unreadable(problem) => (wire::SessionPresence::Unreadable, None, Some(problem)),
    };
    wire::SessionSummary {
        session_id: session_id(&summary.id),
        title: summary.title,
        titled_by: summary.titled.map(titled_by),
        created_at: summary.created.map(timestamp),
        updated_at: timestamp(summary.updated),
        state,
        run_state: doing,
        problem,
        archived: summary.archived,
        turns: summary.turns,
        model: said(summary.model),
        mode: summary.mode.map(mode),
        folder: summary.folder.map(|folder| names.file(folder)),
        bytes: summary.size.total,
        cost: summary.cost,
        last_answer: said(summary.answer),
    }
}

/// The totals of sessions.
#[must_use]
pub fn totals(totals: SessionTotals) -> wire::SessionTotals {
    wire::SessionTotals { sessions: totals.sessions, bytes: totals.bytes }
}

/// The author of a session's title.
#[must_use]
pub fn titled_by(by: TitledBy) -> wire::TitledBy {
    match by {
        TitledBy::User => wire::TitledBy::User,
        TitledBy::Model => wire::TitledBy::Model,
    }
}

/// That a session has another title.
pub(super) fn title_changed(title: String, by: Option<TitledBy>) -> wire::Event {
    wire::Event::TitleChanged(wire::TitleChanged { title, by: by.map(titled_by) })
}

/// That a session was archived, or taken out again.
pub(super) fn archived_changed(archived: bool) -> wire::Event {
    wire::Event::ArchivedChanged(wire::ArchivedChanged { archived })
}

/// Whether sessions that are archived are listed.
#[must_use]
pub fn archived_from_wire(archived: wire::ArchivedFilter) -> ArchiveFilter {
    match archived {
        wire::ArchivedFilter::Hide => ArchiveFilter::Hide,
        wire::ArchivedFilter::Only => ArchiveFilter::Only,
        wire::ArchivedFilter::Include => ArchiveFilter::Include,
    }
}

/// A page of hits.
#[must_use]
pub fn search_page(page: SearchPage, encoding: PositionEncoding) -> wire::SearchSessionsResult {
    wire::SearchSessionsResult {
        hits: page.hits.into_iter().map(|one| hit(one, encoding)).collect(),
        next_cursor: page.next,
        out_of_time: page.is_out_of_time,
    }
}

fn hit(hit: Hit, encoding: PositionEncoding) -> wire::SessionHit {
    let units = |end: usize| encoding.units(hit.snippet.get(..end).unwrap_or(&hit.snippet));
    wire::SessionHit {
        session_id: session_id(&hit.session),
        item_id: hit.item.as_ref().map(item_id),
        kind: match hit.kind {
            HitKind::Prompt => wire::SessionHitKind::Prompt,
            HitKind::Answer => wire::SessionHitKind::Answer,
            HitKind::Title => wire::SessionHitKind::Title,
            HitKind::ToolTitle => wire::SessionHitKind::ToolTitle,
            HitKind::ToolOutput => wire::SessionHitKind::ToolOutput,
        },
        written_at: hit.written.map(timestamp),
        start: units(hit.range.start),
        end: units(hit.range.end),
        title: hit.title,
        snippet: hit.snippet,
    }
}
