//! Tells the editor that hunks have come, gone or moved: diagnostics, and a request to ask for lenses again. The problems of
//! the settings, and prompts that wait, go the same way, for a document has one list of diagnostics from us.
//!
//! Rule: many changes become one notification, which always has the whole state, so that no outdated part
//! remains; at most one request for lenses is open.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use kode_engine::agent::session::Session;
use kode_engine::base::ids::{CallId, SessionId};
use kode_engine::base::paths::Target;
use kode_engine::base::task;
use kode_engine::permission::rules::SettingsProblem;
use kode_engine::record::event::{Item, ItemBody};
use lsp_types::{Diagnostic, MessageType, Url};
use serde::{Deserialize, Serialize};
use tokio::time::sleep;

use super::diagnostics::diagnostics;
use super::prompts;
use crate::agent::sides;
use crate::agent::{ReviewDiagnostics, UserOptions};
use crate::connection::ClientConnection;
use crate::display::{both_ends, readable};
use crate::plain::{PlainFrontEnd, settings};

/// Time for which changes are gathered before a notification.
pub(crate) const GATHER: Duration = Duration::from_millis(150);

/// Maximum characters of a list in a message.
const MESSAGE_LIMIT: usize = 4_000;

/// Number of a session's newest items that are checked first for the name of a call's tool.
const NEWEST_ITEMS: usize = 32;

/// The published state of hunks.
#[derive(Debug, Default)]
pub(crate) struct ReviewPublisher {
    state: Mutex<PublisherState>,
    /// Held during a notification, so that the newest comes last.
    reporting: tokio::sync::Mutex<()>,
}

#[derive(Debug, Default)]
struct PublisherState {
    scheduled: bool,
    /// Whether lenses may be others now, and not only at other places.
    lenses_changed: bool,
    /// Whether sides of files may be other texts now.
    sides_changed: bool,
    refresh: LensRefresh,
    published: BTreeMap<Url, Vec<Diagnostic>>,
    /// The problems of files of agents, skills and commands, and whether that has to be checked again.
    problems: Vec<SettingsProblem>,
    problems_stale: bool,
    tools: HashMap<SessionId, HashMap<CallId, Option<String>>>,
    decided_last: Option<SessionId>,
    /// The hunks of paired sessions, by the numbers of their process and of themselves.
    paired: BTreeMap<(u64, u64), Vec<HunkFile>>,
}

/// Where the request to ask for lenses again is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum LensRefresh {
    #[default]
    None,
    Open,
    /// Open, and lenses have changed since it was sent.
    OpenAndStale,
}

/// The hunks of a file of a paired session as diagnostics.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct HunkFile {
    /// The file or document.
    pub(crate) target: Target,
    /// Where the hunks are now.
    pub(crate) diagnostics: Vec<Diagnostic>,
}

/// The notification for a document.
type DocumentDiagnostics = (Url, Option<i32>, Vec<Diagnostic>);

impl ReviewPublisher {
    /// Tells the editor soon that hunks have come, gone, moved or changed their state.
    pub(crate) fn hunks_changed(front_end: &Arc<PlainFrontEnd>) {
        front_end.publisher.lock().lenses_changed = true;
        Self::sides_changed(front_end);
    }

    /// Tells the editor soon that sides of files are other texts, of a session that another server writes too.
    pub(crate) fn sides_changed(front_end: &Arc<PlainFrontEnd>) {
        front_end.publisher.lock().sides_changed = true;
        Self::schedule(front_end);
    }

    /// Tells the editor soon that something else is wrong with files of settings, agents, skills or commands, or nothing any
    /// more.
    pub(crate) fn settings_changed(front_end: &Arc<PlainFrontEnd>) {
        front_end.publisher.lock().problems_stale = true;
        Self::schedule(front_end);
    }

    /// Tells the editor soon that a permission prompt waits, or waits no more.
    pub(crate) fn prompts_changed(front_end: &Arc<PlainFrontEnd>) {
        Self::schedule(front_end);
    }

    /// Tells the editor soon where the hunks of a document are, if it was notified of any: editors move diagnostics along
    /// with the typed text, but not all of them do.
    pub(crate) fn text_changed(front_end: &Arc<PlainFrontEnd>, uri: &Url) {
        if front_end.publisher.lock().published.contains_key(uri) {
            Self::schedule(front_end);
        }
    }

    /// Shows the hunks of a paired session in place of those before. Answers whether that is not one session too many.
    #[cfg(unix)]
    pub(crate) fn show_partner(
        front_end: &Arc<PlainFrontEnd>,
        of: (u64, u64),
        files: Vec<HunkFile>,
        most: usize,
    ) -> bool {
        {
            let paired = &mut front_end.publisher.lock().paired;
            paired.remove(&of);
            if !files.is_empty() {
                if paired.range((of.0, 0)..=(of.0, u64::MAX)).count() >= most {
                    return false;
                }
                paired.insert(of, files);
            }
        }
        Self::schedule(front_end);
        true
    }

    /// Shows nothing of a process any more that was paired.
    #[cfg(unix)]
    pub(crate) fn forget_partner(front_end: &Arc<PlainFrontEnd>, partner: u64) {
        front_end.publisher.lock().paired.retain(|(of, _), _| *of != partner);
        Self::schedule(front_end);
    }

    /// Remembers that the user has decided about hunks of this session.
    pub(crate) fn decided(&self, session: &SessionId) {
        self.lock().decided_last = Some(session.clone());
    }

    /// The session whose hunks were decided about last.
    pub(crate) fn decided_last(&self) -> Option<SessionId> {
        self.lock().decided_last.clone()
    }

    fn schedule(front_end: &Arc<PlainFrontEnd>) {
        if std::mem::replace(&mut front_end.publisher.lock().scheduled, true) {
            return;
        }
        let front_end = Arc::clone(front_end);
        task::spawn(async move {
            sleep(GATHER).await;
            if front_end.connection.lifecycle.is_ending() {
                return;
            }
            let (lenses_changed, sides_changed) = {
                let mut state = front_end.publisher.lock();
                state.scheduled = false;
                (std::mem::take(&mut state.lenses_changed), std::mem::take(&mut state.sides_changed))
            };
            publish(&front_end).await;
            if sides_changed && let Some(agent) = front_end.live_agent() {
                sides::refresh(agent).await;
            }
            if lenses_changed && front_end.connection.facts.get().is_some_and(|facts| facts.code_lens_refresh)
            {
                refresh_lenses(&front_end);
            }
        });
    }

    fn lock(&self) -> MutexGuard<'_, PublisherState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Shows a list to the user of a client that leaves watching to us.
pub(crate) fn report(connection: &ClientConnection, text: &str) {
    if connection.facts.get().is_some_and(|facts| facts.kode.events) {
        return;
    }
    let (client, text) = (connection.client.clone(), both_ends(&readable(text), MESSAGE_LIMIT));
    task::spawn(async move { client.show_message(MessageType::INFO, text).await });
}

async fn publish(front_end: &Arc<PlainFrontEnd>) {
    let _one_after_the_other = front_end.publisher.reporting.lock().await;
    let problems = problems(front_end).await;
    let mut now = if wanted(front_end) { current(front_end) } else { Vec::new() };
    let paired = if wanted(front_end) { paired(front_end) } else { Vec::new() };
    let others = prompts::current(front_end).into_iter().chain(settings::current(front_end, &problems));
    for (uri, found) in paired.into_iter().chain(others) {
        match now.iter_mut().find(|(known, _, _)| *known == uri) {
            Some((_, _, diagnostics)) => diagnostics.extend(found),
            None => now.push((uri, None, found)),
        }
    }
    let news = news(&mut front_end.publisher.lock().published, now);
    for (uri, version, diagnostics) in news {
        front_end.connection.client.publish_diagnostics(uri, diagnostics, version).await;
    }
}

/// The problems of files of agents, skills and commands of the workspace.
async fn problems(front_end: &Arc<PlainFrontEnd>) -> Vec<SettingsProblem> {
    let is_stale = std::mem::take(&mut front_end.publisher.lock().problems_stale);
    if let (true, Some(agent)) = (is_stale, front_end.live_agent()) {
        let found = agent.engine.file_problems(agent.folders()).await;
        front_end.publisher.lock().problems = found;
    }
    front_end.publisher.lock().problems.clone()
}

/// Whether hunks are to be diagnostics: as the user says, and by themselves where the client shows no hunks.
fn wanted(front_end: &PlainFrontEnd) -> bool {
    let Some(facts) = front_end.connection.facts.get() else { return false };
    // Paired sessions have hunks without an agent here.
    let option = match front_end.live_agent() {
        Some(agent) => agent.options.review_diagnostics,
        None => UserOptions::read(&facts.initialization_options).0.review_diagnostics,
    };
    match option {
        ReviewDiagnostics::Auto => !facts.kode.events,
        ReviewDiagnostics::On => true,
        ReviewDiagnostics::Off => false,
    }
}

/// The diagnostics of all files with hunks.
fn current(front_end: &PlainFrontEnd) -> Vec<DocumentDiagnostics> {
    let Some(agent) = front_end.live_agent() else { return Vec::new() };
    let encoding = front_end.connection.documents.encoding();
    let sessions = agent.engine.live_sessions();
    let known = |id: &SessionId| sessions.iter().any(|session| session.id() == id);
    front_end.publisher.lock().tools.retain(|id, _| known(id));
    let mut files: BTreeMap<Url, (Option<i32>, Vec<Diagnostic>)> = BTreeMap::new();
    for session in &sessions {
        for file in session.edits().review() {
            let uri = front_end.connection.documents.uri_of(&file.target);
            let Ok(uri) = Url::parse(&uri) else {
                tracing::warn!(%uri, "a file with hunks has no URI and gets no diagnostics");
                continue;
            };
            let tools = tools(front_end, session, file.hunks.iter().map(|hunk| &hunk.call));
            let found = diagnostics(&file, encoding, |call| tools.get(call).cloned().flatten());
            let (version, all) = files.entry(uri).or_default();
            *version = file.version;
            all.extend(found);
        }
    }
    files.into_iter().map(|(uri, (version, diagnostics))| (uri, version, diagnostics)).collect()
}

/// The diagnostics of the files with hunks of paired sessions.
fn paired(front_end: &PlainFrontEnd) -> Vec<(Url, Vec<Diagnostic>)> {
    let documents = &front_end.connection.documents;
    let files: Vec<_> = front_end.publisher.lock().paired.values().flatten().cloned().collect();
    let of_file = |file: HunkFile| {
        let uri = Url::parse(&documents.uri_of(&file.target)).ok()?;
        Some((uri, file.diagnostics))
    };
    files.into_iter().filter_map(of_file).collect()
}

/// The notifications that bring the editor to `now`; outdated ones are cleared.
fn news(
    published: &mut BTreeMap<Url, Vec<Diagnostic>>,
    now: Vec<DocumentDiagnostics>,
) -> Vec<DocumentDiagnostics> {
    let mut news = Vec::new();
    let before = std::mem::take(published);
    for (uri, version, diagnostics) in now {
        if diagnostics.is_empty() {
            continue;
        }
        published.insert(uri.clone(), diagnostics.clone());
        if before.get(&uri) != Some(&diagnostics) {
            news.push((uri, version, diagnostics));
        }
    }
    let gone = before.into_keys().filter(|uri| !published.contains_key(uri));
    news.extend(gone.map(|uri| (uri, None, Vec::new())));
    news
}

/// The tools of some calls of a session. A transcript can be long, so a name is looked up once.
fn tools<'a>(
    front_end: &PlainFrontEnd,
    session: &Session,
    calls: impl Iterator<Item = &'a CallId>,
) -> HashMap<CallId, Option<String>> {
    let mut tools = front_end.publisher.lock().tools.get(session.id()).cloned().unwrap_or_default();
    if find_tools(session, &mut tools, calls) {
        front_end.publisher.lock().tools.insert(session.id().clone(), tools.clone());
    }
    tools
}

/// Adds the tools of those calls of a session that are not known. Answers whether there were any.
pub(crate) fn find_tools<'a>(
    session: &Session,
    tools: &mut HashMap<CallId, Option<String>>,
    calls: impl Iterator<Item = &'a CallId>,
) -> bool {
    let mut unknown: Vec<CallId> = calls.filter(|call| !tools.contains_key(*call)).cloned().collect();
    if unknown.is_empty() {
        return false;
    }
    let mut look_up = |items: &[Arc<Item>]| {
        for item in items {
            if let ItemBody::ToolCall(call) = &item.body {
                tools.insert(call.call.clone(), Some(call.name.clone()));
            }
        }
        unknown.retain(|call| !tools.contains_key(call));
        unknown.is_empty()
    };
    if !look_up(&session.snapshot(NEWEST_ITEMS).items) {
        look_up(&session.history().edit_items());
    }
    tools.extend(unknown.into_iter().map(|call| (call, None)));
    true
}

fn refresh_lenses(front_end: &Arc<PlainFrontEnd>) {
    {
        let mut state = front_end.publisher.lock();
        if state.refresh != LensRefresh::None {
            state.refresh = LensRefresh::OpenAndStale;
            return;
        }
        state.refresh = LensRefresh::Open;
    }
    let front_end = Arc::clone(front_end);
    // The request is owned by a task of its own: the service cannot bear an answer no caller waits for.
    task::spawn(async move {
        loop {
            if let Err(error) = front_end.connection.client.code_lens_refresh().await {
                tracing::debug!(%error, "the client did not ask for lenses again");
            }
            let mut state = front_end.publisher.lock();
            let stale = state.refresh == LensRefresh::OpenAndStale;
            state.refresh = if stale { LensRefresh::Open } else { LensRefresh::None };
            if !stale {
                return;
            }
        }
    });
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::testing::TestClient;

    fn diagnostic(line: u32) -> Diagnostic {
        let at = lsp_types::Position::new(line, 0);
        Diagnostic { range: lsp_types::Range::new(at, at), ..Diagnostic::default() }
    }

    #[test]
    fn what_is_gone_is_cleared_what_has_moved_is_reported_and_what_is_the_same_is_not() {
        let uri = |name: &str| Url::parse(&format!("file:///{name}")).unwrap();
        let mut published = BTreeMap::new();
        let first = vec![
            (uri("gone"), Some(1), vec![diagnostic(1)]),
            (uri("moved"), Some(1), vec![diagnostic(1)]),
            (uri("same"), None, vec![diagnostic(1)]),
            (uri("none"), None, vec![]),
        ];
        assert_eq!(news(&mut published, first.clone()), first[..3]);
        let moved = (uri("moved"), Some(2), vec![diagnostic(2)]);
        let second = vec![moved.clone(), (uri("same"), None, vec![diagnostic(1)])];
        assert_eq!(news(&mut published, second), [moved, (uri("gone"), None, vec![])]);
        let gone = news(&mut published, vec![]);
        assert_eq!(gone.len(), 2, "{gone:?}");
        assert!(published.is_empty());
    }

    async fn connect() -> (TestClient, Arc<PlainFrontEnd>) {
        let (service, socket) = crate::server::service();
        let front_end = Arc::clone(service.inner().front_end());
        let mut client = TestClient::connect((service, socket), Arc::clone(&front_end.connection.lifecycle));
        let refresh = json!({ "workspace": { "codeLens": { "refreshSupport": true } } });
        client.initialize(refresh).await;
        (client, front_end)
    }

    #[tokio::test(start_paused = true)]
    async fn many_changes_are_one_request_for_lenses_and_those_meanwhile_one_more() {
        let (mut client, front_end) = connect().await;
        for _ in 0..10 {
            ReviewPublisher::hunks_changed(&front_end);
        }
        let first = client.receive().await;
        assert_eq!(first["method"], "workspace/codeLens/refresh");
        for _ in 0..3 {
            ReviewPublisher::hunks_changed(&front_end);
            sleep(GATHER * 2).await;
        }
        client.send(json!({ "id": first["id"], "result": null })).await;
        let second = client.receive().await;
        assert_eq!(second["method"], "workspace/codeLens/refresh");
        client.send(json!({ "id": second["id"], "result": null })).await;
        sleep(GATHER * 2).await;
        client.request(1, "shutdown", serde_json::Value::Null).await;
    }

    #[tokio::test(start_paused = true)]
    async fn after_the_end_nothing_is_reported() {
        let (mut client, front_end) = connect().await;
        ReviewPublisher::hunks_changed(&front_end);
        client.request(1, "shutdown", serde_json::Value::Null).await;
        ReviewPublisher::hunks_changed(&front_end);
        sleep(GATHER * 2).await;
        client.hang_up();
        assert_eq!(client.try_receive().await, None);
    }

    #[cfg(unix)]
    #[tokio::test]
    async fn partners_show_a_bounded_number_of_sessions_and_take_theirs_with_them() {
        let (_client, front_end) = connect().await;
        let target = Target::Untitled("untitled:a".to_owned());
        let files = || vec![HunkFile { target: target.clone(), diagnostics: vec![diagnostic(1)] }];
        let show = |of, files| ReviewPublisher::show_partner(&front_end, of, files, 2);
        assert!(show((1, 1), files()) && show((1, 2), files()) && show((2, 1), files()));
        assert!(!show((1, 3), files()), "one session too many");
        assert!(show((1, 2), files()), "in place of what it showed before");
        assert!(show((1, 1), vec![]) && show((1, 3), files()));
        assert_eq!(paired(&front_end).len(), 3);
        ReviewPublisher::forget_partner(&front_end, 1);
        let left: Vec<_> = front_end.publisher.lock().paired.keys().copied().collect();
        assert_eq!(left, [(2, 1)]);
    }

    #[tokio::test(start_paused = true)]
    async fn typing_in_a_document_without_hunks_reports_nothing() {
        let (mut client, front_end) = connect().await;
        let uri = Url::parse("file:///a").unwrap();
        ReviewPublisher::text_changed(&front_end, &uri);
        assert!(!front_end.publisher.lock().scheduled);
        front_end.publisher.lock().published.insert(uri.clone(), vec![diagnostic(1)]);
        ReviewPublisher::text_changed(&front_end, &uri);
        let cleared = client.receive().await;
        assert_eq!(cleared["params"], json!({ "uri": "file:///a", "diagnostics": [] }));
        client.request(1, "shutdown", serde_json::Value::Null).await;
    }
}
