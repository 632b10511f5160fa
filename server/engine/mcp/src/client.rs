//! Requests of a server to us, and its reports while a call of it runs.
//!
//! Rule: a server learns the folders of the workspace and what the user answers to its questions, and nothing else; it gets
//! no answer of a model. A question of its goes to the user of a call that runs, and without one it is declined.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::{Mutex, MutexGuard};
use rmcp::ClientHandler;
use rmcp::model::{
    ClientCapabilities, ClientConfig, CustomNotification, ElicitRequestParams, ElicitResult,
    ElicitationAction, ElicitationCapability, ErrorData, FormElicitationCapability, Implementation,
    ProgressNotificationParam, ProgressToken, UrlElicitationCapability,
};
#[expect(deprecated, reason = "newer servers ask for roots in another way; those there are ask so")]
use rmcp::model::{ListRootsResult, LoggingMessageNotificationParam, Root, RootsCapabilities};
use rmcp::service::{NotificationContext, RequestContext, RoleClient};
use tokio::sync::watch;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use url::Url;

use crate::elicit;
use crate::pages::{self, PageRequest, PageTable};
use kode_base::paths::AbsPath;
use kode_base::question::Reply;
use kode_tool::{ProgressReporter, QuestionAsker};

/// Maximum number of calls without a follower whose progress is kept.
const MAX_EARLY: usize = 32;
/// The longest text of progress that is shown.
const MAX_PROGRESS: usize = 500;

/// A call that runs.
pub(crate) struct OngoingCall {
    /// Takes what it reports its progress.
    pub(crate) progress: ProgressReporter,
    /// Asks the user of the call.
    pub(crate) ask: Option<QuestionAsker>,
    clock: Mutex<CallClock>,
}

/// How long a call has continued; the time the user takes to answer does not count.
struct CallClock {
    began: Instant,
    last_sign: Instant,
    waited: Duration,
    waits: usize,
    waits_since: Instant,
}

impl OngoingCall {
    /// A call that begins now.
    pub(crate) fn new(progress: ProgressReporter, ask: Option<QuestionAsker>) -> Arc<Self> {
        let now = Instant::now();
        let clock =
            CallClock { began: now, last_sign: now, waited: Duration::ZERO, waits: 0, waits_since: now };
        Arc::new(Self { progress, ask, clock: Mutex::new(clock) })
    }

    /// When the call has taken too long, as far as is known now: without a sign for `idle`, or in all for `total`. `None`
    /// while it waits for the user.
    pub(crate) fn deadline(&self, idle: Duration, total: Duration) -> Option<Instant> {
        let clock = self.clock();
        (clock.waits == 0).then(|| (clock.last_sign + idle).min(clock.began + total + clock.waited))
    }

    fn sign(&self) {
        self.clock().last_sign = Instant::now();
    }

    pub(crate) fn begin_waiting(&self) {
        let mut clock = self.clock();
        if clock.waits == 0 {
            clock.waits_since = Instant::now();
        }
        clock.waits += 1;
    }

    pub(crate) fn end_waiting(&self) {
        let mut clock = self.clock();
        clock.waits = clock.waits.saturating_sub(1);
        let now = Instant::now();
        clock.last_sign = now;
        if clock.waits == 0 {
            let waited = now - clock.waits_since;
            clock.waited += waited;
        }
    }

    fn clock(&self) -> MutexGuard<'_, CallClock> {
        self.clock.lock()
    }
}

/// The answers to a server.
#[derive(Clone)]
pub(crate) struct ServerHandler {
    server: String,
    roots: Vec<AbsPath>,
    calls: Arc<Mutex<HashMap<ProgressToken, Arc<OngoingCall>>>>,
    /// The last progress of calls without a follower: a quick server tells before the call is known by its token.
    early: Arc<Mutex<VecDeque<(ProgressToken, String)>>>,
    /// Grows whenever the server says that what it offers has changed.
    changes: Arc<watch::Sender<u64>>,
    /// Whether users can be asked to open pages.
    asks_for_pages: bool,
    /// The pages whose report is waited for.
    pub(crate) pages: PageTable,
}

impl ServerHandler {
    pub(crate) fn new(server: &str, roots: &[AbsPath], asks_for_pages: bool) -> Self {
        Self {
            server: server.to_owned(),
            roots: roots.to_vec(),
            calls: Arc::default(),
            early: Arc::default(),
            changes: Arc::new(watch::Sender::new(0)),
            asks_for_pages,
            pages: PageTable::default(),
        }
    }

    /// Tells whenever the server says that what it offers has changed.
    pub(crate) fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    /// Sends reports about a call to it until the guard is dropped.
    pub(crate) fn follow(&self, token: ProgressToken, call: Arc<OngoingCall>) -> CallSubscription {
        self.calls().insert(token.clone(), Arc::clone(&call));
        let mut early = self.early.lock();
        if let Some(at) = early.iter().position(|(of, _)| *of == token)
            && let Some((_, text)) = early.remove(at)
        {
            (call.progress)(text);
        }
        CallSubscription { handler: self.clone(), token }
    }

    /// Whether no call runs.
    pub(crate) fn is_idle(&self) -> bool {
        self.calls().is_empty()
    }

    fn calls(&self) -> MutexGuard<'_, HashMap<ProgressToken, Arc<OngoingCall>>> {
        self.calls.lock()
    }

    fn changed(&self) {
        self.changes.send_modify(|count| *count += 1);
    }
}

/// Reports about a call go to it while this exists.
pub(crate) struct CallSubscription {
    handler: ServerHandler,
    token: ProgressToken,
}

impl Drop for CallSubscription {
    fn drop(&mut self) {
        self.handler.calls().remove(&self.token);
    }
}

#[expect(deprecated, reason = "newer servers ask for roots in another way; those there are ask so")]
impl ClientHandler for ServerHandler {
    fn get_info(&self) -> ClientConfig {
        let mut capabilities = ClientCapabilities::default();
        capabilities.roots = Some(RootsCapabilities::default());
        let mut elicitation = ElicitationCapability::new().with_form(FormElicitationCapability::new());
        if self.asks_for_pages {
            elicitation = elicitation.with_url(UrlElicitationCapability::new());
        }
        capabilities.elicitation = Some(elicitation);
        let me = Implementation::new(format!("kode-{}", self.server), env!("CARGO_PKG_VERSION"));
        ClientConfig::new(capabilities, me)
    }

    async fn list_roots(&self, _context: RequestContext<RoleClient>) -> Result<ListRootsResult, ErrorData> {
        let root = |folder: &AbsPath| {
            let uri = Url::from_directory_path(folder.as_path()).ok()?;
            Some(Root::new(uri.as_str().trim_end_matches('/')).with_name(folder.file_name()))
        };
        Ok(ListRootsResult::new(self.roots.iter().filter_map(root).collect()))
    }

    async fn create_elicitation(
        &self,
        request: ElicitRequestParams,
        context: RequestContext<RoleClient>,
    ) -> Result<ElicitResult, ErrorData> {
        let declined = || Ok(ElicitResult::new(ElicitationAction::Decline));
        // The protocol does not say which call a question belongs to; with several at once the newest is asked for.
        let call = self
            .calls()
            .values()
            .filter(|call| call.ask.is_some())
            .max_by_key(|call| call.clock().began)
            .cloned();
        let Some((call, ask)) = call.and_then(|call| Some((Arc::clone(&call), call.ask.clone()?))) else {
            tracing::info!(server = self.server, "a server asks while no call of it runs; it is declined");
            return declined();
        };
        let refused = |what: &str, reason: String| {
            tracing::warn!(server = self.server, reason, "{what} is declined");
            (call.progress)(format!("{what} of this server is declined without a question: {reason}."));
            declined()
        };
        if let ElicitRequestParams::UrlElicitationParams { message, url, elicitation_id, .. } = request {
            if !self.asks_for_pages {
                return refused("A page", "no user can be asked to open it".to_owned());
            }
            let page = PageRequest { id: elicitation_id, url, message };
            return match page.draft(&self.server, self.pages.begin(&page.id)) {
                Ok(draft) => {
                    let reply = asked(&call, ask(draft.clone()), &context.ct).await;
                    let result = pages::result(&draft, reply.as_ref());
                    if result.action != ElicitationAction::Accept {
                        self.pages.end(&page.id);
                    }
                    Ok(result)
                }
                Err(reason) => {
                    self.pages.end(&page.id);
                    refused("A page", reason)
                }
            };
        }
        let form = match elicit::ElicitForm::of(&self.server, &request) {
            Ok(form) => form,
            Err(reason) => return refused("A form", reason),
        };
        let reply = asked(&call, ask(form.draft()), &context.ct).await;
        Ok(form.result(reply.as_ref()))
    }

    async fn on_progress(
        &self,
        reported: ProgressNotificationParam,
        _context: NotificationContext<RoleClient>,
    ) {
        let share = match reported.total.filter(|total| *total > 0.0) {
            Some(total) => format!("{} of {total}", reported.progress),
            None => reported.progress.to_string(),
        };
        let text = match reported.message.as_deref().map(str::trim).filter(|message| !message.is_empty()) {
            Some(message) => format!("{share}: {message}"),
            None => share,
        };
        let text: String = text.chars().take(MAX_PROGRESS).collect();
        let call = self.calls().get(&reported.progress_token).cloned();
        match call {
            Some(call) => {
                call.sign();
                (call.progress)(text);
            }
            None => {
                let mut early = self.early.lock();
                early.retain(|(of, _)| *of != reported.progress_token);
                if early.len() >= MAX_EARLY {
                    early.pop_front();
                }
                early.push_back((reported.progress_token, text));
            }
        }
    }

    async fn on_logging_message(
        &self,
        reported: LoggingMessageNotificationParam,
        _context: NotificationContext<RoleClient>,
    ) {
        tracing::debug!(server = self.server, level = ?reported.level, "a server logs something");
    }

    async fn on_custom_notification(
        &self,
        notification: CustomNotification,
        _context: NotificationContext<RoleClient>,
    ) {
        if notification.method == pages::COMPLETE {
            self.pages.report(notification.params.as_ref());
        }
    }

    async fn on_tool_list_changed(&self, _context: NotificationContext<RoleClient>) {
        self.changed();
    }

    async fn on_prompt_list_changed(&self, _context: NotificationContext<RoleClient>) {
        self.changed();
    }

    async fn on_resource_list_changed(&self, _context: NotificationContext<RoleClient>) {
        self.changed();
    }
}

/// Waits for the answer of the user, unless the server takes its question back.
async fn asked(
    call: &OngoingCall,
    asking: impl Future<Output = Option<Reply>>,
    cancel: &CancellationToken,
) -> Option<Reply> {
    call.begin_waiting();
    let reply = tokio::select! {
        reply = asking => reply,
        () = cancel.cancelled() => None,
    };
    call.end_waiting();
    reply
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_call_has_its_time_from_the_last_sign_and_none_while_the_user_is_asked() {
        let second = Duration::from_secs(1);
        let call = OngoingCall::new(Arc::new(drop), None);
        let began = Instant::now();
        let deadline = |call: &OngoingCall| call.deadline(10 * second, 25 * second);
        assert_eq!(deadline(&call), Some(began + 10 * second));
        tokio::time::advance(8 * second).await;
        call.sign();
        assert_eq!(deadline(&call), Some(began + 18 * second));
        call.begin_waiting();
        assert_eq!(deadline(&call), None);
        tokio::time::advance(100 * second).await;
        call.end_waiting();
        assert_eq!(deadline(&call), Some(began + 118 * second));
        tokio::time::advance(9 * second).await;
        call.sign();
        assert_eq!(deadline(&call), Some(began + 125 * second), "in all it has had 17 seconds");
    }
}
