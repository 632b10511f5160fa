//! `agent/tools/list`, `agent/models/list`, `agent/agents/list`, `agent/styles/list`, `agent/hooks/list`, `agent/commands/list` and `agent/doctor`.
//!
//! Rule: answers say how files are now; none of them is read that has not changed since it was read last.

use kode_engine::base::call::ToolKind;
use kode_engine::base::paths::AbsPath;
use kode_engine::base::task;
use kode_engine::config::extension::Extension;
use kode_engine::config::extension::live::Extensions;
use kode_engine::config::style::DEFAULT;
use kode_engine::permission::rules::names;
use kode_engine::tools::listing::listing_of;
use kode_protocol as wire;

use crate::backend::Backend;
use crate::convert;
use crate::convert::error::{self, RequestError};
use crate::handlers::params::Params;

/// Lists the tools.
pub(crate) async fn tools(backend: &Backend, params: Params) -> Result<wire::ListToolsResult, RequestError> {
    let wire::ListToolsParams {} = params.read()?;
    let agent = backend.agent()?;
    let tools = agent.engine.tools().iter().map(|tool| {
        let facts = tool.facts();
        let listing = listing_of(facts.name);
        let uses_network = listing.is_some_and(|listing| listing.uses_network);
        wire::ToolInfo {
            name: facts.name.to_owned(),
            display_name: listing.map_or(facts.name, |listing| listing.title).to_owned(),
            category: listing.map_or("", |listing| listing.category).to_owned(),
            tags: listing
                .map_or(&[][..], |listing| listing.tags)
                .iter()
                .map(|tag| (*tag).to_owned())
                .collect(),
            needs_permission: facts.kind != ToolKind::ReadOnly || uses_network,
            summary: first_sentence(facts.description),
            kind: convert::tool_kind(facts.kind),
            read_only: facts.kind == ToolKind::ReadOnly,
            concurrency_safe: facts.concurrency_safe,
            description: facts.description.to_owned(),
            input_schema: serde_json::Value::clone(&tool.input_schema()),
            aliases: names::aliases(facts.name).iter().map(|alias| (*alias).to_owned()).collect(),
        }
    });
    Ok(wire::ListToolsResult { tools: tools.collect() })
}

/// The first sentence of a text, with its period.
fn first_sentence(text: &str) -> String {
    let first = text.split_inclusive(". ").next().unwrap_or_default();
    first.lines().next().unwrap_or_default().trim_end().to_owned()
}

/// Lists the model profiles.
pub(crate) async fn models(
    backend: &Backend,
    params: Params,
) -> Result<wire::ListModelsResult, RequestError> {
    let wire::ListModelsParams {} = params.read()?;
    let agent = backend.agent()?;
    let models = agent.engine.models();
    let wanted = agent.options.profile.as_deref().and_then(|name| models.resolve(name).ok());
    let active = wanted.unwrap_or_else(|| models.default_name().to_owned());
    Ok(convert::models::list(&models, &active))
}

/// Lists the hooks. Checks the settings files.
pub(crate) async fn hooks(backend: &Backend, params: Params) -> Result<wire::ListHooksResult, RequestError> {
    let params: wire::ListHooksParams = params.read()?;
    match &params.session_id {
        Some(id) => {
            let session = backend.session(id)?;
            session.gate().refresh().await;
            Ok(convert::hooks::list(session.hooks().list().await))
        }
        None => {
            let agent = backend.agent()?;
            let (engine, folders) = (agent.engine.clone(), agent.folders());
            let loaded = engine.extensions(&folders).now().await;
            blocking(move || convert::hooks::list(engine.list_hooks(&folders, &loaded))).await
        }
    }
}

/// Lists the types of sub-agents, and the problems of files.
pub(crate) async fn agents(
    backend: &Backend,
    params: Params,
) -> Result<wire::ListAgentsResult, RequestError> {
    let params: wire::ListAgentsParams = params.read()?;
    let extensions = extensions(backend, params.session_id.as_ref())?;
    Ok(convert::agents::list(&*extensions.now().await))
}

/// Lists the output styles.
pub(crate) async fn styles(
    backend: &Backend,
    params: Params,
) -> Result<wire::ListStylesResult, RequestError> {
    let params: wire::ListStylesParams = params.read()?;
    let now = extensions(backend, params.session_id.as_ref())?.now().await;
    let session = params.session_id.as_ref().map(|id| backend.session(id)).transpose()?;
    let active = match session {
        Some(session) => {
            session.gate().refresh().await;
            session.instructions().chosen_style()
        }
        None => None,
    };
    // The chosen one may be missing: the default one is used then.
    let active =
        active.map(|name| now.styles.find(&name).map_or(DEFAULT.to_owned(), |style| style.name.clone()));
    Ok(convert::agents::styles(&now.styles, active.as_deref()))
}

/// Reports the used and unused files of users.
pub(crate) async fn doctor(backend: &Backend, params: Params) -> Result<wire::DoctorResult, RequestError> {
    let params: wire::DoctorParams = params.read()?;
    let now = extensions(backend, params.session_id.as_ref())?.now().await;
    let (engine, roots) = (backend.agent()?.engine.clone(), roots(backend, params.session_id.as_ref())?);
    let report = blocking(move || engine.report(&roots, &now)).await?;
    Ok(convert::agents::report(&report))
}

/// The folders of a session, or those of the workspace.
fn roots(backend: &Backend, session: Option<&wire::SessionId>) -> Result<Vec<AbsPath>, RequestError> {
    Ok(match session {
        Some(id) => backend.session(id)?.roots(),
        None => backend.agent()?.folders(),
    })
}

fn extensions(backend: &Backend, session: Option<&wire::SessionId>) -> Result<Extensions, RequestError> {
    Ok(backend.agent()?.engine.extensions(&roots(backend, session)?))
}

/// Has work done that waits for the disk.
async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T, RequestError> {
    task::spawn_blocking(work).await.map_err(|failed| error::internal(&failed.to_string()))
}

/// Lists the commands that can be typed after `/`.
pub(crate) async fn commands(
    backend: &Backend,
    params: Params,
) -> Result<wire::ListCommandsResult, RequestError> {
    let params: wire::ListCommandsParams = params.read()?;
    let Some(id) = &params.session_id else {
        let now = extensions(backend, None)?.now().await;
        return Ok(convert::commands::list(&now.catalog, &|_| Vec::new()));
    };
    let session = backend.session(id)?;
    let catalog = session.extensions().skills_and_commands().await;
    let waiting = session.gate().unapproved(catalog.trust_requests().cloned().collect()).await;
    let keys = |one: &Extension| -> Vec<String> {
        let of_one = one.trust_requests.iter().filter(|trust_request| waiting.contains(trust_request));
        of_one.map(|trust_request| trust_request.key.clone()).collect()
    };
    Ok(convert::commands::list(&catalog, &keys))
}
