//! What is wrong with the settings, for editors: diagnostics at the place, messages for what must be known, and the
//! commands `kode.approveSettings` and `kode.permissionRules`.
//!
//! Rule: a diagnostic stands as long as a live session sees what it tells of; a message is told once.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::sync::{Arc, Mutex, PoisonError};

use kode_engine::ids::SessionId;
use kode_engine::paths::AbsPath;
use kode_engine::permission::rules::{Place, Problem, Severity};
use kode_engine::session::Session;
use kode_engine::session::guard::Complaints;
use kode_engine::settings::{Shown, Withheld};
use lsp_types::{Diagnostic, DiagnosticSeverity, MessageType, Position, Range, Url};
use ropey::Rope;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::agent::Agent;
use crate::backend::Shared;
use crate::convert;
use crate::display::{printable, readable};
use crate::handlers::error::{self, Failure};
use crate::lsp::PositionEncoding;

/// The command that approves what a settings file of the workspace asks for.
pub(super) const APPROVE: &str = "kode.approveSettings";
/// The command that lists the rules in force.
pub(super) const RULES: &str = "kode.permissionRules";
/// The source of diagnostics in settings files.
const SOURCE: &str = "kode-ls";

/// The argument of `kode.approveSettings`.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub(super) struct Approve {
    /// The file; it may be left out when one file alone waits.
    file: Option<String>,
    session_id: Option<SessionId>,
}

/// The argument of `kode.permissionRules`.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub(super) struct ListRules {
    session_id: Option<SessionId>,
}

/// What the client has been told about the settings.
#[derive(Debug, Default)]
pub(crate) struct SettingsTeller {
    told: Mutex<HashSet<String>>,
}

/// Tells by a message what protects less than the user thinks, and what waits for approval; each once.
pub(crate) fn tell(shared: &Arc<Shared>, complaints: &Complaints) {
    let severe = complaints.problems.iter().filter(|problem| problem.severity == Severity::Error);
    let mut messages: Vec<_> = severe.map(|problem| (MessageType::ERROR, severe_text(problem))).collect();
    let waits = waiting(&complaints.withheld).into_iter();
    messages.extend(waits.map(|(file, keys)| (MessageType::WARNING, waiting_text(&file, &keys))));
    let mut told = shared.settings.told.lock().unwrap_or_else(PoisonError::into_inner);
    messages.retain(|(_, text)| told.insert(text.clone()));
    drop(told);
    if messages.is_empty() {
        return;
    }
    let client = shared.client.clone();
    tokio::spawn(async move {
        for (kind, text) in messages {
            client.show_message(kind, readable(&text)).await;
        }
    });
}

/// The diagnostics of all files that live sessions look at: settings, agents, skills, commands, output styles.
pub(super) fn current(shared: &Shared) -> BTreeMap<Url, Vec<Diagnostic>> {
    let mut files: BTreeMap<Url, Vec<Diagnostic>> = BTreeMap::new();
    let Some(agent) = shared.live_agent() else { return files };
    for session in agent.engine.live_sessions() {
        let mut complaints = session.complaints();
        complaints.problems.extend(session.extensions().problems());
        for (file, diagnostic) in diagnostics(&complaints, shared.documents.encoding()) {
            let Ok(uri) = Url::from_file_path(file.as_path()) else {
                tracing::warn!(%file, "a settings file has no URI and gets no diagnostics");
                continue;
            };
            let known = files.entry(uri).or_default();
            // Sessions of one workspace see the same.
            if !known.contains(&diagnostic) {
                known.push(diagnostic);
            }
        }
    }
    files
}

fn diagnostics(complaints: &Complaints, encoding: PositionEncoding) -> Vec<(AbsPath, Diagnostic)> {
    let diagnostic = |file: &AbsPath, place: Option<Place>, severity, message: String| {
        let range = place.map(|place| range(file, place, encoding)).unwrap_or_default();
        let source = Some(SOURCE.to_owned());
        (
            file.clone(),
            Diagnostic { range, severity: Some(severity), source, message, ..Diagnostic::default() },
        )
    };
    let problems = complaints.problems.iter().filter_map(|problem| {
        let severity = match problem.severity {
            Severity::Error => DiagnosticSeverity::ERROR,
            Severity::Warning => DiagnosticSeverity::WARNING,
            Severity::Information => DiagnosticSeverity::INFORMATION,
        };
        Some(diagnostic(problem.file.as_ref()?, problem.place, severity, readable(&problem.message)))
    });
    let withheld = complaints.withheld.iter().map(|withheld| {
        let message = format!(
            "{} does not count until you approve this file: run the command {APPROVE}.",
            printable(&withheld.wish.key)
        );
        diagnostic(&withheld.wish.file, withheld.source.place, DiagnosticSeverity::INFORMATION, message)
    });
    problems.chain(withheld).collect()
}

/// A place of a file as the client counts.
fn range(file: &AbsPath, place: Place, encoding: PositionEncoding) -> Range {
    let start = Position::new(place.line, place.column);
    let end = Position::new(place.end_line, place.end_column);
    if encoding == PositionEncoding::Utf16 {
        return Range::new(start, end);
    }
    match std::fs::read_to_string(file.as_path()) {
        Ok(text) => {
            let text = Rope::from_str(&text);
            encoding.range(&text, PositionEncoding::Utf16.byte_range(&text, Range::new(start, end)))
        }
        Err(error) => {
            tracing::debug!(%file, %error, "columns in a settings file are not converted");
            Range::new(start, end)
        }
    }
}

fn severe_text(problem: &Problem) -> String {
    let line = problem.place.map(|place| format!(":{}", place.line + 1)).unwrap_or_default();
    let place = problem.file.as_ref().map(|file| format!(" ({file}{line})")).unwrap_or_default();
    format!("A setting that should protect does not: {}{place}", problem.message)
}

/// The files with what waits in them, each with how often a setting is asked for.
fn waiting(withheld: &[Withheld]) -> BTreeMap<AbsPath, BTreeMap<&str, usize>> {
    let mut files: BTreeMap<AbsPath, BTreeMap<&str, usize>> = BTreeMap::new();
    for withheld in withheld {
        let keys = files.entry(withheld.wish.file.clone()).or_default();
        *keys.entry(withheld.wish.key.as_str()).or_default() += 1;
    }
    files
}

fn waiting_text(file: &AbsPath, keys: &BTreeMap<&str, usize>) -> String {
    let asked: Vec<_> = keys
        .iter()
        .map(|(key, count)| match (*key, *count) {
            ("permissions.allow", 1) => "1 allow rule".to_owned(),
            ("permissions.allow", count) => format!("{count} allow rules"),
            (key, 1) => key.to_owned(),
            (key, count) => format!("{key} ({count} times)"),
        })
        .collect();
    format!(
        "{file} asks for {}; what it asks for does not count until you approve it: run the command {APPROVE}, or \
         `kode-ls permissions approve`.",
        asked.join(", ")
    )
}

/// The session that is meant: the one that is named, else that of prompts without one.
fn session(agent: &Arc<Agent>, id: Option<&SessionId>) -> Result<Arc<Session>, Failure> {
    match id {
        Some(id) => agent.engine.session(id),
        None => agent.plain_session(),
    }
    .map_err(error::session)
}

/// Approves what a settings file asks for: `{file, approved}`.
pub(super) async fn approve(agent: &Arc<Agent>, approve: Approve) -> Result<Value, Failure> {
    let session = session(agent, approve.session_id.as_ref())?;
    let told: Vec<_> = session.complaints().withheld.into_iter().map(|withheld| withheld.wish).collect();
    let file = match approve.file {
        Some(file) => session.cwd().join(file),
        None => {
            let files: BTreeSet<_> = told.iter().map(|wish| wish.file.clone()).collect();
            let mut files = files.into_iter();
            match (files.next(), files.next()) {
                (Some(file), None) => file,
                (None, _) => return Err(error::invalid_params("file", "nothing waits for approval")),
                (Some(one), Some(other)) => {
                    let message = format!("several files wait, name one of them: {one}, {other}");
                    return Err(error::invalid_params("file", &message));
                }
            }
        }
    };
    // What the client has been told of, and not what the file asks for by now.
    let shown = told.iter().filter(|wish| wish.file == file).map(Shown::from).collect();
    let approved =
        session.approve_settings(file.clone(), shown).await.map_err(|error| error::keep(&error))?;
    if approved == 0 {
        return Err(error::invalid_params("file", &format!("nothing in {file} waits for approval")));
    }
    Ok(json!({ "file": file, "approved": approved }))
}

/// Lists the rules in force: `{text, mode, rules, withheld, problems}`.
pub(super) fn rules(agent: &Arc<Agent>, list: &ListRules) -> Result<Value, Failure> {
    let in_force = session(agent, list.session_id.as_ref())?.rules_in_force();
    let mut lines = vec![format!("Mode {}.", in_force.mode.name())];
    if in_force.rules.is_empty() {
        lines.push("There are no rules.".to_owned());
    }
    lines.extend(
        in_force.rules.iter().map(|rule| format!("{} {} ({})", rule.behavior.name(), rule.rule, rule.source)),
    );
    lines.extend(in_force.withheld.iter().map(|withheld| {
        format!("waits for approval: {} {} ({})", withheld.wish.key, withheld.wish.text, withheld.source)
    }));
    lines.extend(in_force.problems.iter().map(|problem| format!("! {}", problem.message)));
    let text = lines.iter().map(|line| printable(line)).collect::<Vec<_>>().join("\n");
    let listed = serde_json::to_value(convert::rules::in_force(in_force));
    let mut listed = listed.map_err(|error| error::internal(&error.to_string()))?;
    listed["text"] = json!(text);
    Ok(listed)
}
