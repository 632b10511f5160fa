//! `session/new`, `load`, `resume`, `list`, `delete`, `close`, and the prompts of a session.
//!
//! Rule: a transcript is replayed before its request is answered, and nothing of it comes after. No request waits for an MCP
//! server.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use agent_client_protocol_schema::v1::{
    CloseSessionRequest, CloseSessionResponse, ConfigOptionUpdate, DeleteSessionRequest,
    DeleteSessionResponse, Error, ListSessionsRequest, ListSessionsResponse, LoadSessionRequest,
    LoadSessionResponse, McpServer, NewSessionRequest, NewSessionResponse, PromptRequest, RequestId,
    ResumeSessionRequest, ResumeSessionResponse, SessionInfo, SessionUpdate,
};
use kode_engine::agent::engine::{AttachedSession, NewSession, SessionError};
use kode_engine::agent::prompt::Prompt;
use kode_engine::agent::session::Session;
use kode_engine::agent::session::prompts::SubmitOutcome;
use kode_engine::agent::sessions::{
    BadCursor, ListSessions, SessionPresence, SessionSummary, WorkspaceFilter,
};
use kode_engine::base::ids::SessionId;
use kode_engine::base::mode::Mode;
use kode_engine::base::paths::AbsPath;
use kode_engine::base::spelling::Spellings;
use kode_engine::base::task;
use kode_engine::config::command::{TypedCommand, btw};
use kode_engine::record::event::NoticeLevel;
use serde::Serialize;
use serde_json::Value;

use super::agent::AcpAgent;
#[cfg(unix)]
use super::paired;
use super::prompts::{PromptCancel, TurnSlot, command_done};
use super::requests::{AcpServer, RpcReply};
use super::session::AcpSession;
use super::tool_call::SessionPlaces;
use super::updates::UpdateSender;
use super::{aside, commands, config, content, error, follow, mode};

/// The sessions of a page of the list.
const PAGE: usize = 50;

/// The most pages of unused sessions that one request passes over; the cursor continues behind them.
const MAX_LOOKS: usize = 20;

/// Follows a session after event number `since`. The client knows its mode from the answer.
fn follow_from(open: &Arc<AcpSession>, attached: &AttachedSession, mode: Mode, since: u64) {
    let mut following = updates(open);
    following.knows_mode(mode);
    follow::start(open, attached, following, since);
}

/// The folders that a request names.
struct RequestFolders {
    cwd: PathBuf,
    additional: Vec<PathBuf>,
}

impl AcpServer {
    /// Begins a session.
    pub(super) async fn new_session(
        self: &Arc<Self>,
        id: RequestId,
        request: NewSessionRequest,
    ) -> Result<RpcReply, Error> {
        self.check_login()?;
        let folders = RequestFolders { cwd: request.cwd, additional: request.additional_directories };
        let roots = folders.roots()?;
        let agent = self.agent()?;
        agent.servers.give(&roots[0], request.mcp_servers);
        agent.host.pair(&roots[0]).await;
        let new = NewSession { roots, mode: self.mode(), model: agent.profile.clone() };
        let session = agent.engine.new_session(new).map_err(|problem| error::session(&problem))?;
        agent.watch_settings();
        let open = self.keep(session.id(), &agent, places(&session));
        let attached = AttachedSession::Live(Arc::clone(&session));
        let now = session.snapshot(0);
        let response = NewSessionResponse::new(session.id().as_str().to_owned())
            .modes(mode::state(now.mode))
            .config_options(config::options(&agent, &attached, &now));
        self.peer.respond(id, encoded(response)).await;
        // From its beginning: a session that cannot be stored has said so by now.
        follow_from(&open, &attached, now.mode, 0);
        // Files of commands and styles are read meanwhile; the request does not wait for them.
        let sent = config::options(&agent, &attached, &now);
        task::spawn(async move {
            if let Some(update) = commands::update(&open).await {
                updates(&open).send(update).await;
            }
            let options = config::options(&agent, &attached, &follow::snapshot(&attached, 0));
            if options != sent {
                let update = SessionUpdate::ConfigOptionUpdate(ConfigOptionUpdate::new(options));
                updates(&open).send(update).await;
            }
        });
        Ok(RpcReply::Later)
    }

    /// Replays a stored session, and continues it.
    pub(super) async fn load_session(
        self: &Arc<Self>,
        id: RequestId,
        request: LoadSessionRequest,
    ) -> Result<RpcReply, Error> {
        self.check_login()?;
        let folders = RequestFolders { cwd: request.cwd, additional: request.additional_directories };
        let (open, attached) = self.attach(&request.session_id.0, folders, request.mcp_servers).await?;
        let of_items = attached.clone();
        let now = task::spawn_blocking(move || follow::snapshot(&of_items, usize::MAX));
        let now = now.await.map_err(|_| error::internal("The transcript could not be read."))?;
        let mut replay = updates(&open).replaying();
        for item in &now.items {
            replay.item(item).await;
        }
        if !now.todos.is_empty() {
            replay.plan(&now.todos).await;
        }
        if !now.title.is_empty() {
            replay.title(now.title.clone()).await;
        }
        replay.usage(&now).await;
        if let Some(update) = commands::update(&open).await {
            replay.send(update).await;
        }
        let response = LoadSessionResponse::new()
            .modes(mode::state(now.mode))
            .config_options(config::options(&open.agent, &attached, &now));
        self.peer.respond(id, encoded(response)).await;
        follow_from(&open, &attached, now.mode, now.bookmark.seq);
        Ok(RpcReply::Later)
    }

    /// Continues a stored session without its transcript.
    pub(super) async fn resume_session(
        self: &Arc<Self>,
        id: RequestId,
        request: ResumeSessionRequest,
    ) -> Result<RpcReply, Error> {
        self.check_login()?;
        let folders = RequestFolders { cwd: request.cwd, additional: request.additional_directories };
        let (open, attached) = self.attach(&request.session_id.0, folders, request.mcp_servers).await?;
        let now = follow::snapshot(&attached, 0);
        if let Some(update) = commands::update(&open).await {
            updates(&open).send(update).await;
        }
        let response = ResumeSessionResponse::new()
            .modes(mode::state(now.mode))
            .config_options(config::options(&open.agent, &attached, &now));
        self.peer.respond(id, encoded(response)).await;
        follow_from(&open, &attached, now.mode, now.bookmark.seq);
        Ok(RpcReply::Later)
    }

    /// Lists the sessions of a folder, or all of them. Each panel that was opened and closed without a prompt has left one: these
    /// are left out.
    pub(super) async fn list_sessions(
        &self,
        request: ListSessionsRequest,
    ) -> Result<ListSessionsResponse, Error> {
        let workspaces = match request.cwd {
            Some(cwd) => WorkspaceFilter::These(vec![absolute(&cwd)?]),
            None => WorkspaceFilter::All,
        };
        let mut query = ListSessions { cursor: request.cursor, ..ListSessions::newest(workspaces, PAGE) };
        let engine = self.agent()?.engine.clone();
        let pages = task::spawn_blocking(move || {
            let (mut sessions, mut looks) = (Vec::new(), 0);
            loop {
                let page = engine.list_sessions(&query)?;
                sessions.extend(page.sessions.into_iter().filter(is_used).filter_map(info));
                looks += 1;
                // A client that shows one page must not show an empty one.
                if !sessions.is_empty() || page.next.is_none() || looks == MAX_LOOKS {
                    return Ok::<_, BadCursor>((sessions, page.next));
                }
                query.cursor = page.next;
            }
        });
        let pages = pages.await.map_err(|_| error::internal("The sessions could not be listed."))?;
        let (sessions, next) = pages.map_err(|bad| error::invalid_params(&bad.to_string()))?;
        Ok(ListSessionsResponse::new(sessions).next_cursor(next))
    }

    /// Deletes a session. One that is not there is deleted already.
    pub(super) async fn delete_session(
        &self,
        request: DeleteSessionRequest,
    ) -> Result<DeleteSessionResponse, Error> {
        let id = SessionId::from_external(&*request.session_id.0);
        let agent = self.agent()?;
        self.cancel(id.as_str());
        let open = self.sessions().remove(&id);
        let live = agent.engine.session(&id).ok();
        if let Some(live) = live {
            // Its turn is cancelled and its journal written before the folder goes.
            drop(agent.engine.close_session(&id));
            live.closed().await;
        }
        drop(open);
        match agent.engine.delete_session(&WorkspaceFilter::All, &id).await {
            Ok(()) | Err(SessionError::Unknown(_)) => Ok(DeleteSessionResponse::new()),
            Err(problem) => Err(error::session(&problem)),
        }
    }

    /// Closes a session: its turn is cancelled, and other processes may write it.
    pub(super) async fn close_session(
        &self,
        request: CloseSessionRequest,
    ) -> Result<CloseSessionResponse, Error> {
        let open = self.open_session(&request.session_id.0)?;
        self.cancel(open.id.as_str());
        let live = open.live().ok();
        open.agent.engine.close_session(&open.id).map_err(|problem| error::session(&problem))?;
        if let Some(live) = live {
            live.closed().await;
        }
        self.sessions().remove(&open.id);
        Ok(CloseSessionResponse::new())
    }

    /// Submits a prompt. It is answered at the end of its turn.
    pub(super) async fn prompt(
        self: &Arc<Self>,
        id: RequestId,
        request: PromptRequest,
    ) -> Result<RpcReply, Error> {
        self.check_login()?;
        let open = self.open_session(&request.session_id.0)?;
        let steers = request.meta.as_ref().is_some_and(|meta| {
            meta.get("kode").and_then(|kode| kode.get("delivery")).and_then(Value::as_str) == Some("steer")
        });
        let prompt = content::prompt(request.prompt)?;
        if let Some(question) = btw::asked(prompt.text()) {
            return Ok(RpcReply::Now(aside::ask(&open, question).await));
        }
        // Before the first wait: a cancel that arrives next finds the prompt.
        open.prompts().add(id.clone());
        match self.submit(&open, &id, prompt, steers).await {
            Ok(()) => Ok(RpcReply::Later),
            Err(outcome) => {
                open.prompts().remove(&id);
                Ok(RpcReply::Now(*outcome))
            }
        }
    }

    /// Submits a prompt that is in the table of its session.
    ///
    /// # Errors
    /// The answer to a prompt that has no turn.
    async fn submit(
        self: &Arc<Self>,
        open: &Arc<AcpSession>,
        id: &RequestId,
        prompt: Prompt,
        steers: bool,
    ) -> Result<(), Box<Result<Value, Error>>> {
        let refused = |problem: Error| Box::new(Err(problem));
        let _in_order = open.order.lock().await;
        if let Some(typed) = TypedCommand::read(prompt.text())
            && typed.name == commands::TAKE_OVER
        {
            let force = typed.arguments == "force";
            self.take_over(open, force).await.map_err(|problem| refused(error::session(&problem)))?;
            return Err(Box::new(Ok(command_done())));
        }
        let live = open.agent.engine.session_for_prompt(&open.id).await;
        let live = live.map_err(|problem| refused(error::session(&problem)))?;
        self.follow_live(open, &live);
        if let Some(warning) = open.places.roots.first().and_then(|folder| open.agent.host.warning(folder))
            && open.is_first_warning()
        {
            let hint =
                "Save your files before a prompt, or run the kode-ls language server in the same editor.";
            updates(open).notice(NoticeLevel::Warning, &warning, Some(hint), None).await;
        }
        open.agent.host.refresh(&open.id).await;
        // Held while it is submitted: the task that follows the session sees no turn before its prompt.
        let mut prompts = open.prompts();
        if let Some(cancelled) = prompts.cancelled(id) {
            return Err(Box::new(cancelled.answer()));
        }
        let submitted = match steers {
            true => live.prompts().steer(prompt),
            false => live.prompts().submit(prompt),
        };
        let place = match submitted.map_err(|problem| refused(error::submit(problem)))? {
            SubmitOutcome::Started(turn) => TurnSlot::Turn(turn),
            SubmitOutcome::Queued(queue) => TurnSlot::Queued(queue),
            SubmitOutcome::Steering { turn, queue } => TurnSlot::Steering(turn, queue),
            SubmitOutcome::Answered { item, .. } => TurnSlot::Answer(item),
        };
        prompts.place(id, place);
        Ok(())
    }

    /// Cancels the turn of a session and the prompts that wait in it.
    pub(super) fn cancel(&self, id: &str) {
        let Ok(open) = self.open_session(id) else { return };
        let queued = open.prompts().cancel_all();
        let Ok(live) = open.live() else { return };
        let mut answers = Vec::new();
        for (request, queue) in queued {
            // A prompt that has started meanwhile is cancelled with its turn.
            if live.prompts().remove_queued(&queue).is_ok() {
                open.prompts().remove(&request);
                answers.push((request, PromptCancel::Session.answer()));
            }
        }
        live.turns().cancel();
        live.side_questions().cancel();
        if !answers.is_empty() {
            task::spawn(async move { open.answer(answers).await });
        }
    }

    /// Cancels one prompt by the id of its request.
    pub(super) fn cancel_prompt(&self, request: &RequestId) {
        let sessions: Vec<_> = self.sessions().values().cloned().collect();
        for open in sessions {
            let Some(place) = open.prompts().cancel(request) else { continue };
            let Ok(live) = open.live() else { return };
            match place {
                TurnSlot::Turn(turn) => drop(live.turns().cancel_of(turn.as_str())),
                TurnSlot::Queued(queue) | TurnSlot::Steering(_, queue) => {
                    if live.prompts().remove_queued(&queue).is_ok() {
                        open.prompts().remove(request);
                        let answer = (request.clone(), Err(error::cancelled()));
                        task::spawn(async move { open.answer(vec![answer]).await });
                    }
                }
                TurnSlot::Preparing | TurnSlot::Answer(_) | TurnSlot::Restoring => {}
            }
            return;
        }
    }

    /// Makes this process the writer of a session.
    async fn take_over(self: &Arc<Self>, open: &Arc<AcpSession>, force: bool) -> Result<(), SessionError> {
        let live = open.agent.engine.take_over(&open.id, force).await?;
        self.follow_live(open, &live);
        updates(open).say("The session continues here.").await;
        Ok(())
    }

    /// Opens the stored or live session of that id.
    async fn attach(
        self: &Arc<Self>,
        id: &str,
        folders: RequestFolders,
        servers: Vec<McpServer>,
    ) -> Result<(Arc<AcpSession>, AttachedSession), Error> {
        let roots = folders.roots()?;
        let agent = self.agent()?;
        let id = SessionId::from_external(id);
        agent.servers.give(&roots[0], servers);
        agent.host.pair(&roots[0]).await;
        let attached = agent.engine.attach(&roots, &id, None, |_| {}).await;
        let attached = attached.map_err(|problem| error::session(&problem))?;
        agent.watch_settings();
        let places = match &attached {
            AttachedSession::Live(session) => {
                let known = session.roots();
                let added: Vec<_> = roots.iter().filter(|root| !known.contains(root)).cloned().collect();
                session.gate().add_folders(&added);
                places(session)
            }
            AttachedSession::Following(_) => SessionPlaces { cwd: roots[0].clone(), roots },
        };
        Ok((self.keep(&id, &agent, places), attached))
    }

    /// Keeps a session as one that the client has open. One that was open before is followed no more.
    fn keep(
        self: &Arc<Self>,
        id: &SessionId,
        agent: &Arc<AcpAgent>,
        places: SessionPlaces,
    ) -> Arc<AcpSession> {
        let mut sessions = self.sessions();
        if let Some(known) = sessions.get(id) {
            known.unfollow();
            return Arc::clone(known);
        }
        let open = AcpSession::new(id, agent, &self.peer, &self.client(), places);
        #[cfg(unix)]
        if let Some(editor) = open.places.roots.first().and_then(|folder| agent.host.paired(folder)) {
            paired::report_end(&open, &editor);
        }
        sessions.insert(id.clone(), Arc::clone(&open));
        open
    }

    /// Follows a session that has become live: taken over, or free after another process had it.
    fn follow_live(&self, open: &Arc<AcpSession>, live: &Arc<Session>) {
        if !open.is_followed(live.events()) {
            let attached = AttachedSession::Live(Arc::clone(live));
            follow::start(open, &attached, updates(open), live.events().newest());
        }
    }
}

/// A sender of updates to the client of a session.
pub(super) fn updates(open: &AcpSession) -> UpdateSender {
    let terminals = open.agent.terminals.table(&open.id);
    UpdateSender::new(&open.peer, &open.client, &open.id, open.places.clone(), terminals)
}

/// The folders of a live session.
fn places(session: &Session) -> SessionPlaces {
    SessionPlaces { roots: session.roots(), cwd: session.cwd() }
}

impl RequestFolders {
    /// The folders, the working directory first.
    ///
    /// # Errors
    /// A path that is not absolute, or no folder.
    fn roots(self) -> Result<Vec<AbsPath>, Error> {
        let mut roots = Vec::new();
        for folder in std::iter::once(self.cwd).chain(self.additional) {
            let folder = absolute(&folder)?;
            if !folder.as_path().is_dir() {
                return Err(error::invalid_params(&format!("{folder} is not a folder on this machine.")));
            }
            if !roots.contains(&folder) {
                roots.push(folder);
            }
        }
        Ok(roots)
    }
}

fn absolute(path: &Path) -> Result<AbsPath, Error> {
    AbsPath::new(path)
        .map(|path| Spellings::here().spelled(&path))
        .map_err(|_| error::invalid_params(&format!("`{}` is not an absolute path.", path.display())))
}

/// Whether anything was said in a session, or may be said in it here.
fn is_used(summary: &SessionSummary) -> bool {
    let is_live = matches!(summary.presence, SessionPresence::Live(_));
    is_live || summary.turns != Some(0) || !summary.title.is_empty()
}

/// A stored session for the list. One whose folder is not known cannot be loaded.
fn info(summary: SessionSummary) -> Option<SessionInfo> {
    let info = SessionInfo::new(summary.id.as_str().to_owned(), PathBuf::from(summary.folder?));
    let title = Some(summary.title).filter(|title| !title.is_empty());
    Some(info.title(title).updated_at(summary.updated.to_string()))
}

fn encoded(response: impl Serialize) -> Result<Value, Error> {
    serde_json::to_value(response).map_err(|problem| error::internal(&problem.to_string()))
}
