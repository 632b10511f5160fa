//! Exports and imports of sessions, as clients see them.
//!
//! Rule: values only, no decisions.

use kode_engine::agent::state::agents::SubAgent;
use kode_engine::agent::transfer::{ImportOutcome, SessionExport};
use kode_protocol as wire;

use crate::convert::{self, UriNames};

/// The form of an export in JSON.
const FORMAT_VERSION: u32 = 1;

/// The longest name of a file that is made from a title, in characters.
const NAME_LIMIT: usize = 60;

/// An export in the form that was asked for.
#[must_use]
pub fn exported(exported: SessionExport, format: wire::ExportFormat) -> wire::ExportSessionResult {
    let title = exported.state.title.text.clone();
    let (document, ending) = match format {
        wire::ExportFormat::Markdown => {
            (wire::ExportedDocument::Markdown { text: exported.markdown() }, "md")
        }
        wire::ExportFormat::Json => {
            (wire::ExportedDocument::Json { session: Box::new(session(exported)) }, "json")
        }
    };
    let file_name = format!("{}.{ending}", file_stem(&title));
    wire::ExportSessionResult { title, file_name, document }
}

/// A session that was imported.
#[must_use]
pub fn imported(imported: ImportOutcome) -> wire::ImportSessionResult {
    wire::ImportSessionResult {
        session_id: convert::session_id(&imported.session),
        agent_id: imported.agent,
        template_id: imported.template,
        messages: count(imported.messages),
        skipped: count(imported.skipped),
    }
}

fn session(exported: SessionExport) -> wire::ExportedSession {
    let SessionExport { state, skipped } = exported;
    wire::ExportedSession {
        format_version: FORMAT_VERSION,
        session_id: convert::session_id(&state.id),
        forked_from: state.forked_from.as_ref().map(convert::session_id),
        title: state.title.text,
        folder: state.cwd.to_string(),
        mode: convert::mode(state.config.mode),
        model: state.config.model,
        usage: convert::usage(state.spending.usage()),
        cost_usd: state.spending.total().total(),
        items: state
            .main
            .items
            .into_newest()
            .into_iter()
            .map(|each| convert::item(each, UriNames::standard()))
            .collect(),
        subagents: state.agents.into_iter().map(|(id, agent)| sub_agent(&id, agent)).collect(),
        todos: convert::question::todos(state.todos.list()),
        skipped_records: skipped,
    }
}

fn sub_agent(id: &kode_engine::base::ids::AgentId, agent: SubAgent) -> wire::ExportedSubagent {
    wire::ExportedSubagent {
        agent_id: convert::agent_id(id),
        kind: agent.kind,
        description: agent.description,
        items: agent
            .thread
            .items
            .into_newest()
            .into_iter()
            .map(|each| convert::item(each, UriNames::standard()))
            .collect(),
    }
}

/// A name for a file that every system takes.
fn file_stem(title: &str) -> String {
    let mut stem = String::new();
    for char in title.chars().take(NAME_LIMIT) {
        if char.is_alphanumeric() {
            stem.extend(char.to_lowercase());
        } else if !stem.ends_with('-') && !stem.is_empty() {
            stem.push('-');
        }
    }
    let stem = stem.trim_end_matches('-');
    if stem.is_empty() { "session".to_owned() } else { stem.to_owned() }
}

fn count(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}
