//! `agent/tools/list`, `agent/models/list`, `agent/agents/list` and `agent/commands/list`.

use kode_engine::agents::AgentTypes;
use kode_engine::extension::Catalog;
use kode_engine::tools::ToolKind;
use kode_protocol as wire;

use crate::backend::Backend;
use crate::convert;
use crate::handlers::error::Failure;
use crate::handlers::params::Params;

/// Lists the tools.
pub(crate) async fn tools(
    backend: &Backend,
    _params: wire::ListToolsParams,
) -> Result<wire::ListToolsResult, Failure> {
    let agent = backend.agent()?;
    let tools = agent.engine.tools().iter().map(|tool| {
        let facts = tool.facts();
        wire::ToolInfo {
            name: facts.name.to_owned(),
            kind: convert::tool_kind(facts.kind),
            read_only: facts.kind == ToolKind::ReadOnly,
            concurrency_safe: facts.concurrency_safe,
            description: facts.description.to_owned(),
            input_schema: tool.input_schema(),
            aliases: facts.aliases.iter().map(|alias| (*alias).to_owned()).collect(),
        }
    });
    Ok(wire::ListToolsResult { tools: tools.collect() })
}

/// Lists the model profiles.
pub(crate) async fn models(
    backend: &Backend,
    _params: wire::ListModelsParams,
) -> Result<wire::ListModelsResult, Failure> {
    let agent = backend.agent()?;
    let models = agent.engine.models();
    let wanted = agent.options.profile.as_deref().and_then(|name| models.resolve(name).ok());
    let active = wanted.unwrap_or_else(|| models.default_name().to_owned());
    Ok(convert::models::list(&models, &active))
}

/// Lists the types of sub-agents, and the files of sub-agents, skills and commands that are left out.
pub(crate) async fn agents(backend: &Backend, params: Params) -> Result<wire::ListAgentsResult, Failure> {
    let params: wire::ListAgentsParams = params.read()?;
    let roots = match &params.session_id {
        Some(id) => backend.session(id)?.roots(),
        None => backend.agent()?.folders(),
    };
    let (types, catalog) = tokio::join!(AgentTypes::of(roots.clone()), Catalog::of(roots));
    Ok(convert::agents::list(&types, &catalog))
}

/// Lists the commands that can be typed after `/`.
pub(crate) async fn commands(backend: &Backend, params: Params) -> Result<wire::ListCommandsResult, Failure> {
    let params: wire::ListCommandsParams = params.read()?;
    let Some(id) = &params.session_id else {
        let catalog = Catalog::of(backend.agent()?.folders()).await;
        return Ok(convert::commands::list(&catalog, &|_| Vec::new()));
    };
    let session = backend.session(id)?;
    let catalog = session.extensions().await;
    Ok(convert::commands::list(&catalog, &|one| session.waiting_of(one)))
}
