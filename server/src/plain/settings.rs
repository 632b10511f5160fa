//! The problems of files of settings, agents, skills and commands, for editors: diagnostics at the place, messages for
//! what must be known, the question about what the workspace asks for, and the commands `kode.trust` and
//! `kode.permissionRules`.
//!
//! Rule: a diagnostic stays as long as its cause; a message is shown once, and a question asked once.

use std::collections::{BTreeMap, HashSet};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use kode_engine::agent::gate::IneffectiveSettings;
use kode_engine::agent::session::Session;
use kode_engine::base::ids::SessionId;
use kode_engine::base::mask::masked_text;
use kode_engine::base::paths::{AbsPath, Target};
use kode_engine::base::task;
use kode_engine::config::settings::{ApprovedTrust, PendingTrust, TrustRequest, summary};
use kode_engine::permission::rules::{FileRange, ProblemSeverity, SettingsProblem};
use lsp_types::request::ShowMessageRequest;
use lsp_types::{
    Diagnostic, DiagnosticSeverity, MessageActionItem, MessageType, Position, Range,
    ShowMessageRequestParams, Url,
};
use ropey::Rope;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::agent::Agent;
use crate::agent::trust::{self, TrustDecision};
use crate::convert;
use crate::convert::error::{self, RequestError};
use crate::display::{printable, readable};
use crate::lsp::PositionEncoding;
use crate::plain::PlainFrontEnd;

/// The command that lists what files of the workspace ask for, and has it count.
pub(super) const TRUST: &str = "kode.trust";
/// The answers on offer. The no is first: a stray key takes the first choice, and must not approve.
const NOT_NOW: &str = "Not now";
const SHOW: &str = "Show";
const TRUST_IT: &str = "Trust";
/// Maximum characters of a request in a message.
const SHOWN_LIMIT: usize = 4_000;
/// The command that lists the rules in force.
pub(super) const RULES: &str = "kode.permissionRules";
/// The source of diagnostics in settings files.
const SOURCE: &str = "kode-ls";

/// The argument of `kode.trust`.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub(super) struct TrustArgument {
    op: TrustOp,
    /// The file that is meant, by its path, whole or in a workspace folder; all when it is left out.
    file: Option<String>,
    /// The selected entries, as it was listed.
    digests: Option<Vec<String>>,
    session_id: Option<SessionId>,
}

/// The action on requests of workspace files.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
enum TrustOp {
    /// It is listed.
    #[default]
    List,
    /// The shown texts are approved.
    Approve,
    /// The approved texts are revoked.
    Revoke,
}

/// The argument of `kode.permissionRules`.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub(super) struct RulesArgument {
    session_id: Option<SessionId>,
}

/// The messages about settings that the user was shown.
#[derive(Debug, Default)]
pub(crate) struct SettingsNotices {
    reported: Mutex<HashSet<String>>,
    /// The requests that the user was asked about, by digest.
    asked: Mutex<HashSet<String>>,
}

/// Tells by a message what protects less than the user thinks; each once.
pub(crate) fn report(front_end: &PlainFrontEnd, complaints: &IneffectiveSettings) {
    let severe = complaints.problems.iter().filter(|problem| problem.severity == ProblemSeverity::Error);
    let mut messages: Vec<_> = severe.map(|problem| (MessageType::ERROR, severe_text(problem))).collect();
    let mut reported = front_end.settings.reported.lock().unwrap_or_else(PoisonError::into_inner);
    messages.retain(|(_, text)| reported.insert(text.clone()));
    drop(reported);
    if messages.is_empty() {
        return;
    }
    let client = front_end.connection.client.clone();
    task::spawn(async move {
        for (kind, text) in messages {
            client.show_message(kind, readable(&text)).await;
        }
    });
}

/// The diagnostics of all settings files that live sessions check, and of the files of other problems.
pub(super) fn current(
    front_end: &PlainFrontEnd,
    others: &[SettingsProblem],
) -> BTreeMap<Url, Vec<Diagnostic>> {
    let mut files: BTreeMap<Url, Vec<Diagnostic>> = BTreeMap::new();
    let Some(agent) = front_end.live_agent() else { return files };
    let others = IneffectiveSettings { problems: others.to_vec(), withheld: Vec::new() };
    let sessions = agent.engine.live_sessions();
    let of_sessions = sessions.iter().map(|session| {
        let mut complaints = session.gate().complaints();
        complaints.problems.extend(session.extensions().live().problems());
        complaints
    });
    for complaints in of_sessions.chain([others]) {
        for (file, diagnostic) in diagnostics(&complaints, front_end.connection.documents.encoding()) {
            let Ok(uri) = Url::parse(&front_end.connection.documents.uri_of(&Target::File(file.clone())))
            else {
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

fn diagnostics(complaints: &IneffectiveSettings, encoding: PositionEncoding) -> Vec<(AbsPath, Diagnostic)> {
    let diagnostic = |file: &AbsPath, place: Option<FileRange>, severity, message: String| {
        let range = place.map(|place| range(file, place, encoding)).unwrap_or_default();
        let source = Some(SOURCE.to_owned());
        (
            file.clone(),
            Diagnostic { range, severity: Some(severity), source, message, ..Diagnostic::default() },
        )
    };
    let problems = complaints.problems.iter().filter_map(|problem| {
        let severity = match problem.severity {
            ProblemSeverity::Error => DiagnosticSeverity::ERROR,
            ProblemSeverity::Warning => DiagnosticSeverity::WARNING,
            ProblemSeverity::Information => DiagnosticSeverity::INFORMATION,
        };
        Some(diagnostic(problem.file.as_ref()?, problem.place, severity, readable(&problem.message)))
    });
    let withheld = complaints.withheld.iter().map(|withheld| {
        let message = format!(
            "{} is ignored until you trust it: run the command {TRUST}.",
            printable(&withheld.trust_request.key)
        );
        diagnostic(
            &withheld.trust_request.file,
            withheld.source.place,
            DiagnosticSeverity::INFORMATION,
            message,
        )
    });
    problems.chain(withheld).collect()
}

/// A place of a file as the client counts.
fn range(file: &AbsPath, place: FileRange, encoding: PositionEncoding) -> Range {
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

fn severe_text(problem: &SettingsProblem) -> String {
    let line = problem.place.map(|place| format!(":{}", place.line + 1)).unwrap_or_default();
    let place = problem.file.as_ref().map(|file| format!(" ({file}{line})")).unwrap_or_default();
    format!("A protective setting is not in effect: {}{place}", problem.message)
}

/// Asks the user about what files of the workspace ask for, once for each thing. Nothing waits for the answer.
pub(crate) fn ask(front_end: &Arc<PlainFrontEnd>, session: &Arc<Session>) {
    let Some(agent) = front_end.live_agent().cloned() else { return };
    let (front_end, roots) = (Arc::clone(front_end), session.roots());
    task::spawn(async move {
        let state = trust::state(&agent, roots.clone()).await;
        let fresh: Vec<PendingTrust> = {
            let mut asked = front_end.settings.asked.lock().unwrap_or_else(PoisonError::into_inner);
            let waiting = state.waiting.into_iter().filter(|waiting| !waiting.is_dismissed);
            waiting.filter(|waiting| asked.insert(waiting.digest.clone())).collect()
        };
        if !fresh.is_empty() && !state.is_distrusted {
            ask_about(&agent, roots, &fresh).await;
        }
    });
}

async fn ask_about(agent: &Arc<Agent>, roots: Vec<AbsPath>, waiting: &[PendingTrust]) {
    let client = &agent.connection.client;
    let asked_for = summary(waiting.iter().map(|waiting| waiting.trust_request.key.as_str()));
    let text = format!("This workspace asks for {asked_for}. It is ignored until you trust it.");
    if !agent.connection.facts.get().is_some_and(|facts| facts.show_message_request) {
        let how = format!("The command {TRUST} lists it, and so does `kode-ls trust`.");
        return client.show_message(MessageType::WARNING, readable(&format!("{text} {how}"))).await;
    }
    let lines: Vec<_> = waiting.iter().map(waiting_line).collect();
    // Users approve only shown texts.
    let whole = format!("{text}\n{}", lines.join("\n"));
    if whole.chars().count() <= SHOWN_LIMIT {
        if let Some(act) =
            choose(agent, &whole, &[NOT_NOW, TRUST_IT]).await.and_then(|chosen| act_of(&chosen))
        {
            take(agent, &roots, act, waiting).await;
        }
        return;
    }
    match choose(agent, &text, &[NOT_NOW, SHOW]).await.as_deref() {
        Some(SHOW) => {}
        Some(NOT_NOW) => return take(agent, &roots, TrustDecision::Dismiss, waiting).await,
        Some(_) | None => return,
    }
    for (one, line) in waiting.iter().zip(lines) {
        if line.chars().count() > SHOWN_LIMIT {
            let text = format!("{}: too long to be shown here; `kode-ls trust` shows all of it.", one.source);
            client.show_message(MessageType::WARNING, readable(&text)).await;
            continue;
        }
        let text = format!("This workspace asks for\n{line}");
        let Some(chosen) = choose(agent, &text, &[NOT_NOW, TRUST_IT]).await else { return };
        if let Some(act) = act_of(&chosen) {
            take(agent, &roots, act, std::slice::from_ref(one)).await;
        }
    }
}

/// Asks the user with a message; nothing when they close it.
async fn choose(agent: &Arc<Agent>, text: &str, actions: &[&str]) -> Option<String> {
    let title =
        |title: &&str| MessageActionItem { title: (*title).to_owned(), properties: Default::default() };
    let asked = agent.connection.client.send_request::<ShowMessageRequest>(ShowMessageRequestParams {
        typ: MessageType::WARNING,
        message: readable(text),
        actions: Some(actions.iter().map(title).collect()),
    });
    match asked.await {
        Ok(chosen) => chosen.map(|chosen| chosen.title),
        Err(error) => {
            tracing::warn!(%error, "the user was not asked about the workspace's settings");
            None
        }
    }
}

fn act_of(chosen: &str) -> Option<TrustDecision> {
    match chosen {
        TRUST_IT => Some(TrustDecision::Approve),
        NOT_NOW => Some(TrustDecision::Dismiss),
        _ => None,
    }
}

/// Does what the user has chosen about what they were shown.
async fn take(agent: &Arc<Agent>, roots: &[AbsPath], act: TrustDecision, waiting: &[PendingTrust]) {
    let client = &agent.connection.client;
    let digests = waiting.iter().map(|waiting| waiting.digest.clone()).collect();
    match trust::act(agent, roots.to_vec(), act, digests).await {
        Ok(done) if act == TrustDecision::Approve && done < waiting.len() => {
            let text = format!(
                "The files changed meanwhile: {done} of {} were approved. The command {TRUST} lists the others.",
                waiting.len()
            );
            client.show_message(MessageType::WARNING, text).await;
        }
        Ok(_) => {}
        Err(error) => client.show_message(MessageType::ERROR, readable(&error.to_string())).await,
    }
}

/// Something that waits, in a line.
fn waiting_line(waiting: &PendingTrust) -> String {
    let earlier = waiting.earlier.as_ref().map(|earlier| format!(" (you trusted before: {earlier})"));
    printable(&format!(
        "{} {} ({}){}",
        waiting.trust_request.key,
        waiting.trust_request.shown(),
        waiting.source,
        earlier.unwrap_or_default()
    ))
}

/// The session that is meant: the one that is named, else that of prompts without one.
fn session(agent: &Arc<Agent>, id: Option<&SessionId>) -> Result<Arc<Session>, RequestError> {
    match id {
        Some(id) => agent.engine.session(id),
        None => agent.plain_session(),
    }
    .map_err(error::session)
}

/// Lists what files of the workspace ask for: `{text, waiting, approved, wishes}`; or approves or revokes shown ones:
/// `{changed}`.
pub(super) async fn trust(agent: &Arc<Agent>, argument: TrustArgument) -> Result<Value, RequestError> {
    let roots = match &argument.session_id {
        Some(id) => agent.engine.session(id).map_err(error::session)?.roots(),
        None => agent.folders(),
    };
    let state = trust::state(agent, roots.clone()).await;
    let is_meant = |file: &AbsPath| {
        argument.file.as_deref().is_none_or(|named| {
            file.as_path() == Path::new(named) || roots.iter().any(|root| root.join(named) == *file)
        })
    };
    let waiting: Vec<_> =
        state.waiting.iter().filter(|waiting| is_meant(&waiting.trust_request.file)).collect();
    let approved: Vec<_> =
        state.approved.iter().filter(|approved| is_meant(&approved.trust_request.file)).collect();
    let (act, there): (_, Vec<&String>) = match argument.op {
        TrustOp::List => return Ok(listed(&waiting, &approved)),
        TrustOp::Approve => (TrustDecision::Approve, waiting.iter().map(|waiting| &waiting.digest).collect()),
        TrustOp::Revoke => {
            (TrustDecision::Revoke, approved.iter().map(|approved| &approved.digest).collect())
        }
    };
    let digests = match (argument.digests, act) {
        (Some(digests), _) => digests,
        // Revoking unseen entries loses nothing.
        (None, TrustDecision::Revoke) => there.iter().copied().cloned().collect(),
        (None, TrustDecision::Approve | TrustDecision::Dismiss) => {
            let message = "name the entries: `{\"op\": \"list\"}` lists each with its digest";
            return Err(error::invalid_params("digests", message));
        }
    };
    if digests.is_empty() {
        return Err(error::invalid_params("digests", "nothing there waits, or was approved"));
    }
    if !digests.iter().all(|digest| there.contains(&digest)) {
        let message =
            "the text changed since it was shown, so nothing was done; run `{\"op\": \"list\"}` again";
        return Err(error::invalid_params("digests", message));
    }
    let changed =
        trust::act(agent, roots, act, digests.clone()).await.map_err(|error| error::keep(&error))?;
    if changed < digests.len() {
        let message = format!(
            "of {} entries only {changed} were unchanged in the files and took effect; run `{{\"op\": \
                 \"list\"}}` again",
            digests.len()
        );
        return Err(error::invalid_params("digests", &message));
    }
    Ok(json!({ "changed": changed }))
}

/// The waiting and the approved requests, for people and for programs.
fn listed(waiting: &[&PendingTrust], approved: &[&ApprovedTrust]) -> Value {
    let mut lines: Vec<_> =
        waiting.iter().map(|one| format!("waits {} [{}]", waiting_line(one), one.digest)).collect();
    lines.extend(approved.iter().map(|one| {
        let line = format!(
            "trusted {} {} ({}) [{}]",
            one.trust_request.key,
            one.trust_request.shown(),
            one.source,
            one.digest
        );
        printable(&line)
    }));
    if lines.is_empty() {
        lines.push("The workspace asks for nothing.".to_owned());
    }
    let trust_request = |digest: &str, trust_request: &TrustRequest, waits: bool| {
        let (text, file) = (trust_request.shown(), trust_request.file.to_string());
        json!({ "digest": digest, "key": trust_request.key, "text": text, "file": file, "waits": waits })
    };
    let trust_requests = waiting.iter().map(|one| trust_request(&one.digest, &one.trust_request, true));
    let trust_requests: Vec<_> = trust_requests
        .chain(approved.iter().map(|one| trust_request(&one.digest, &one.trust_request, false)))
        .collect();
    json!({ "text": lines.join("\n"), "waiting": waiting.len(), "approved": approved.len(), "wishes": trust_requests })
}

/// Lists the rules in force: `{text, mode, rules, withheld, problems}`.
pub(super) async fn rules(agent: &Arc<Agent>, list: &RulesArgument) -> Result<Value, RequestError> {
    let session = session(agent, list.session_id.as_ref())?;
    session.gate().refresh().await;
    let in_force = session.gate().rules_in_force();
    let mut lines = vec![format!("Mode {}.", in_force.mode.name())];
    if in_force.rules.is_empty() {
        lines.push("There are no rules.".to_owned());
    }
    lines.extend(in_force.rules.iter().map(|rule| {
        format!("{} {} ({})", rule.behavior.name(), masked_text(&rule.rule.to_string()), rule.source)
    }));
    lines.extend(in_force.withheld.iter().map(|withheld| {
        format!(
            "waits for approval: {} {} ({})",
            withheld.trust_request.key,
            withheld.trust_request.shown(),
            withheld.source
        )
    }));
    lines.extend(in_force.problems.iter().map(|problem| format!("! {}", problem.message)));
    let text = lines.iter().map(|line| printable(line)).collect::<Vec<_>>().join("\n");
    let listed = serde_json::to_value(convert::rules::in_force(in_force));
    let mut listed = listed.map_err(|error| error::internal(&error.to_string()))?;
    listed["text"] = json!(text);
    Ok(listed)
}
