//! `agent/session/*`.

use kode_engine::agent::engine::AttachedSession;
use kode_engine::agent::session::Session;
use kode_engine::agent::state::config::ConfigChange;
use kode_engine::base::ids::{AgentId, ItemId, SessionId};
use kode_engine::base::mode::Mode;
use kode_protocol as wire;

use crate::agent::EventFilter;
use crate::backend::Backend;
use crate::convert::error::{self, RequestError};
use crate::convert::{self, UriNames};
use crate::documents::file_path;
use crate::handlers::params::Params;

/// Items of a snapshot, unless the client wants another number.
pub(super) const DEFAULT_ITEMS: usize = 200;
/// The most items of a snapshot.
const MOST_ITEMS: usize = 2_000;

/// Begins a session.
pub(crate) async fn new(backend: &Backend, params: Params) -> Result<wire::NewSessionResult, RequestError> {
    let params: wire::NewSessionParams = params.read()?;
    let agent = backend.agent()?;
    let folder = match params.workspace_folder {
        None => None,
        Some(uri) => {
            let parsed = lsp_types::Url::parse(uri.as_str()).ok();
            let folder = parsed.as_ref().and_then(file_path).filter(|folder| folder.as_path().is_dir());
            let wrong = || {
                error::invalid_params("workspaceFolder", &format!("{uri} is not a folder on this machine"))
            };
            Some(folder.ok_or_else(wrong)?)
        }
    };
    let mode = params.mode.map(convert::mode_from_wire);
    let session = match params.worktree {
        true => agent.new_session_in_worktree(folder, mode, params.model).await,
        false => agent.new_session(folder, mode, params.model),
    };
    let session = session.map_err(error::session)?;
    Ok(wire::NewSessionResult {
        session_id: convert::session_id(session.id()),
        snapshot: snapshot(backend, &session, DEFAULT_ITEMS)?,
    })
}

/// Gives a session as it is now.
pub(crate) async fn load(backend: &Backend, params: Params) -> Result<wire::Snapshot, RequestError> {
    let params: wire::LoadSessionParams = params.read()?;
    let agent = backend.agent()?;
    let id = SessionId::from_external(params.session_id.as_str());
    let channels = params.channels.into_iter().map(convert::channel_from_wire).collect();
    let filter = EventFilter { channels, kinds: params.kinds };
    let attached = agent.load_session(&id, params.since, filter).await.map_err(error::session)?;
    let items = limit(params.items, DEFAULT_ITEMS, MOST_ITEMS);
    match attached {
        AttachedSession::Live(session) => snapshot(backend, &session, items),
        AttachedSession::Following(following) => {
            let by = following.writer().map(convert::writer);
            let models = agent.engine.models();
            let snapshot = convert::snapshot(
                &models,
                following.snapshot(items),
                UriNames::of(&backend.connection().documents),
            );
            Ok(wire::Snapshot { following: Some(wire::FollowedSession { by }), ..snapshot })
        }
    }
}

/// Makes this server the one that writes a session.
pub(crate) async fn take_over(backend: &Backend, params: Params) -> Result<wire::Snapshot, RequestError> {
    let params: wire::TakeOverSessionParams = params.read()?;
    let id = SessionId::from_external(params.session_id.as_str());
    let taken = backend.agent()?.take_over(&id, params.force).await.map_err(error::session)?;
    snapshot(backend, &taken, DEFAULT_ITEMS)
}

/// Gives what a sub-agent did.
pub(crate) async fn load_sub_agent(
    backend: &Backend,
    params: Params,
) -> Result<wire::Subagent, RequestError> {
    let params: wire::LoadSubagentParams = params.read()?;
    let id = AgentId::from_external(params.agent_id.as_str());
    let items = limit(params.items, DEFAULT_ITEMS, MOST_ITEMS);
    let unknown =
        || error::invalid_params("agentId", &format!("there is no sub-agent `{id}` in this session"));
    let found = match backend.attached(&params.session_id)? {
        AttachedSession::Live(session) => session.history().sub_agent(&id, items),
        AttachedSession::Following(following) => following.sub_agent(&id, items),
    };
    found
        .map(|agent| convert::sub_agent(agent, UriNames::of(&backend.connection().documents)))
        .ok_or_else(unknown)
}

/// Gives older items of a transcript.
pub(crate) async fn items(backend: &Backend, params: Params) -> Result<wire::ItemPage, RequestError> {
    let params: wire::GetItemsParams = params.read()?;
    let agent = params.agent_id.map(|id| AgentId::from_external(id.as_str()));
    let before = ItemId::from_external(params.before.as_str());
    let limit = limit(params.limit, DEFAULT_ITEMS, MOST_ITEMS);
    let page = match backend.attached(&params.session_id)? {
        AttachedSession::Live(session) => session.history().items_before(agent, before, limit).await,
        AttachedSession::Following(following) => following.items_before(agent, before, limit).await,
    };
    Ok(convert::item_page(page.map_err(error::paging)?, UriNames::of(&backend.connection().documents)))
}

/// Reads an image that went with a prompt.
pub(crate) async fn read_attachment(
    backend: &Backend,
    params: Params,
) -> Result<wire::ImagePart, RequestError> {
    let params: wire::ReadAttachmentParams = params.read()?;
    let session = backend.session(&params.session_id)?;
    let item = ItemId::from_external(params.item_id.as_str());
    let index = usize::try_from(params.index).unwrap_or(usize::MAX);
    let image = session.history().attached_image(item, index).await.map_err(error::paging)?;
    Ok(wire::ImagePart { media_type: image.media_type, data: image.data })
}

/// Ends a live session.
pub(crate) async fn close(backend: &Backend, params: Params) -> Result<(), RequestError> {
    let params: wire::CloseSessionParams = params.read()?;
    let id = SessionId::from_external(params.session_id.as_str());
    backend.agent()?.close_session(&id).map_err(error::session)
}

/// Changes mode, model, effort, style of answers and delivery: all given values, or none if one is invalid.
pub(crate) async fn configure(
    backend: &Backend,
    params: Params,
) -> Result<wire::ConfigureSessionResult, RequestError> {
    let params: wire::ConfigureSessionParams = params.read()?;
    let agent = backend.agent()?;
    let session = backend.session(&params.session_id)?;
    let model = params.model.map(|model| session.models().named(&model)).transpose();
    let model = model.map_err(|reason| error::model(&reason))?;
    let mode: Option<Mode> = params.mode.map(convert::mode_from_wire);
    if let Some(mode) = mode {
        session.gate().allow_mode(mode).await.map_err(error::mode)?;
    }
    let deliveries = params.delivery.map(convert::deliveries_from_wire).transpose();
    let deliveries = deliveries.map_err(|bad| error::invalid_params("delivery", &bad.to_string()))?;
    let output_style = match params.output_style {
        None => None,
        Some(name) if name.trim().is_empty() => Some(None),
        Some(name) => {
            let found = session.extensions().style_named(&name).await;
            Some(Some(found.map_err(|problem| error::invalid_params("outputStyle", &problem))?))
        }
    };
    let effort = params.effort.map(convert::models::effort_from_wire);
    let sandbox = params.sandbox.map(|name| session.gate().profile_named(&name)).transpose();
    let sandbox = sandbox.map_err(|bad| error::invalid_params("sandbox", &bad))?;
    session.configure(ConfigChange { mode, model, effort, output_style, sandbox });
    if let Some(deliveries) = deliveries {
        session.gate().deliver(deliveries);
    }
    let now = session.snapshot(0);
    Ok(wire::ConfigureSessionResult {
        mode: convert::mode(now.mode),
        model: convert::model_ref(&agent.engine.models(), &now.model),
        effort: now.effort.map(convert::models::effort),
        output_style: now.output_style,
        delivery: convert::deliveries(&session.gate().deliveries()),
        sandbox: now.sandbox,
        sandbox_profiles: session
            .gate()
            .sandbox_profiles()
            .into_iter()
            .map(|(name, description)| wire::SandboxProfile { name, description })
            .collect(),
    })
}

/// Says what a session has taken of its models.
pub(crate) async fn usage(backend: &Backend, params: Params) -> Result<wire::SessionUsage, RequestError> {
    let params: wire::GetUsageParams = params.read()?;
    let spending = match backend.attached(&params.session_id)? {
        AttachedSession::Live(session) => session.spending(),
        AttachedSession::Following(following) => following.spending(),
    };
    Ok(convert::models::spending(&spending))
}

fn snapshot(backend: &Backend, session: &Session, items: usize) -> Result<wire::Snapshot, RequestError> {
    let trust_required = session.gate().trust_waiting().map(convert::rules::trust_required);
    let snapshot = convert::snapshot(
        &backend.agent()?.engine.models(),
        session.snapshot(items),
        UriNames::of(&backend.connection().documents),
    );
    Ok(wire::Snapshot { trust_required, ..snapshot })
}

pub(super) fn limit(wanted: Option<u32>, default: usize, most: usize) -> usize {
    wanted.map_or(default, |wanted| usize::try_from(wanted).unwrap_or(most).clamp(1, most))
}
