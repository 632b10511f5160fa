//! The offer of a connected server: tools, prompts, resources, and its description.
//!
//! Rule: lists are bounded and checked whole; a tool without a usable name is left out and told, alone. What cannot be
//! listed beside tools is not a reason to do without the tools.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use futures::future::BoxFuture;
use rmcp::model::{PaginatedRequestParams, Prompt, Resource, ResourceTemplate, ServerPeerInfo, Tool};
use rmcp::service::ServiceError;

use crate::connection::ServerChannel;
use crate::failure;
use crate::seen::{self, ToolDescriptions};
use crate::servers::server::McpServer;
use crate::servers::tool::McpTool;
use kode_base::blocking;
use kode_config::mcp::config::ServerDefinition;
use kode_config::mcp::fault::McpFailure;
use kode_config::mcp::names;

/// Maximum number of items of a kind that a server can offer.
const MAX_LISTED: usize = 1_000;
/// Maximum number of pages of a list.
const MAX_PAGES: usize = 100;
/// The longest text of a server about itself.
const MAX_INSTRUCTIONS: usize = 2_000;

/// The offer of a server.
#[derive(Clone, Default)]
pub(crate) struct ServerOffer {
    /// The tools, in the order of their names.
    pub(crate) tools: Vec<Arc<McpTool>>,
    pub(crate) prompts: Vec<Prompt>,
    pub(crate) resources: Vec<Resource>,
    pub(crate) templates: Vec<ResourceTemplate>,
    /// Whether it has resources at all.
    pub(crate) has_resources: bool,
    /// Its description, for the model.
    pub(crate) instructions: String,
    /// Tools that say something else of themselves than when the server was first used.
    pub(crate) changed: Vec<String>,
    /// The description of every tool.
    pub(crate) described: ToolDescriptions,
    /// A remark for the user.
    pub(crate) notes: Vec<String>,
}

impl ServerOffer {
    /// Looks what a server offers.
    ///
    /// # Errors
    /// When it has tools and does not tell them.
    pub(crate) async fn look(
        server: &McpServer,
        definition: &ServerDefinition,
        way: &ServerChannel,
        info: Option<&ServerPeerInfo>,
    ) -> Result<Self, McpFailure> {
        let Some(info) = info else { return Ok(Self::default()) };
        let (capabilities, mut notes) = (&info.capabilities, Vec::new());
        let peer = &way.peer;
        let mut reported = Vec::new();
        if capabilities.tools.is_some() {
            reported = pages(|page| {
                Box::pin(async move {
                    let listed = peer.list_tools(page).await?;
                    Ok((listed.tools, listed.next_cursor))
                })
            })
            .await
            .map_err(|error| failure::of_request(&server.name, &error))?;
        }
        let described: BTreeMap<_, _> =
            reported.iter().map(|tool| (tool.name.to_string(), seen::description(tool))).collect();
        let changed = changed(server, definition, &described).await;
        let tools = named(server, definition, reported, &mut notes);
        let mut prompts = Vec::new();
        if capabilities.prompts.is_some() {
            let listed = pages(|page| {
                Box::pin(async move {
                    let listed = peer.list_prompts(page).await?;
                    Ok((listed.prompts, listed.next_cursor))
                })
            });
            prompts = without(listed.await, "prompts", &mut notes);
        }
        let (mut resources, mut templates) = (Vec::new(), Vec::new());
        if capabilities.resources.is_some() {
            let listed = pages(|page| {
                Box::pin(async move {
                    let listed = peer.list_resources(page).await?;
                    Ok((listed.resources, listed.next_cursor))
                })
            });
            resources = without(listed.await, "resources", &mut notes);
            let listed = pages(|page| {
                Box::pin(async move {
                    let listed = peer.list_resource_templates(page).await?;
                    Ok((listed.resource_templates, listed.next_cursor))
                })
            });
            // Many servers have none and do not know the question.
            templates = listed.await.unwrap_or_default();
        }
        let instructions = info.instructions.as_deref().unwrap_or_default().trim();
        Ok(Self {
            tools,
            prompts,
            resources,
            templates,
            has_resources: capabilities.resources.is_some(),
            instructions: instructions.chars().take(MAX_INSTRUCTIONS).collect(),
            changed,
            described,
            notes,
        })
    }
}

/// A page of a list, and what names the next.
type ListPage<T> = Result<(Vec<T>, Option<String>), ServiceError>;

/// All pages of a list, up to a bound.
async fn pages<'a, T>(
    page: impl Fn(Option<PaginatedRequestParams>) -> BoxFuture<'a, ListPage<T>>,
) -> Result<Vec<T>, ServiceError> {
    let mut all = Vec::new();
    let mut cursor = None;
    for _ in 0..MAX_PAGES {
        let asked = cursor.map(|cursor| PaginatedRequestParams::default().with_cursor(Some(cursor)));
        let (listed, next) = page(asked).await?;
        all.extend(listed);
        cursor = next;
        if cursor.is_none() || all.len() >= MAX_LISTED {
            break;
        }
    }
    all.truncate(MAX_LISTED);
    Ok(all)
}

fn without<T>(listed: Result<Vec<T>, ServiceError>, what: &str, notes: &mut Vec<String>) -> Vec<T> {
    listed.unwrap_or_else(|error| {
        notes.push(format!("Its {what} could not be listed: {}.", failure::of_request("", &error)));
        Vec::new()
    })
}

async fn changed(
    server: &McpServer,
    definition: &ServerDefinition,
    described: &ToolDescriptions,
) -> Vec<String> {
    let (state, digest) = (server.surroundings().state.clone(), definition.digest.clone());
    let now = described.clone();
    blocking(move || seen::compare(&state, &digest, &now)).await.unwrap_or_else(|error| {
        tracing::warn!(%error, server = server.name, "the earlier descriptions of its tools are not known");
        Vec::new()
    })
}

fn named(
    server: &McpServer,
    definition: &ServerDefinition,
    reported: Vec<Tool>,
    notes: &mut Vec<String>,
) -> Vec<Arc<McpTool>> {
    let (mut taken, mut tools) = (BTreeSet::new(), Vec::new());
    let has = |name: &str| reported.iter().any(|tool| tool.name == name);
    for unknown in definition.tools.unknown(&has) {
        notes.push(format!("`enabledTools` or `disabledTools` names `{unknown}`, which it does not have."));
    }
    let on = reported.iter().filter(|tool| definition.tools.has(&tool.name)).count();
    if on < reported.len() {
        notes.push(format!("{} of its {} tools are off by its entry.", reported.len() - on, reported.len()));
    }
    for tool in reported.into_iter().filter(|tool| definition.tools.has(&tool.name)) {
        let name = names::tool_name(&server.part, &tool.name, &taken);
        if tool.name.is_empty() || !taken.insert(name.clone()) {
            notes.push(format!("Its tool `{}` is left out: another one has the name.", tool.name));
            continue;
        }
        let Some(name) = names::kept(&name) else {
            notes.push(format!("Its tool `{}` is left out: there are too many.", tool.name));
            continue;
        };
        tools.push(Arc::new(McpTool::new(server, definition, name, tool)));
    }
    tools.sort_by_key(|tool| tool.name());
    tools
}
