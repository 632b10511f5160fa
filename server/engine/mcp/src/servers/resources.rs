//! The two tools that list and read what servers have to show.
//!
//! Rule: a resource is read from the server that was named and from no other; what it holds is data and is bounded like the
//! result of any call.

use std::fmt::Write as _;
use std::sync::{Arc, Weak};
use std::time::Duration;

use async_trait::async_trait;
use rmcp::model::ReadResourceRequestParams;
use schemars::JsonSchema;
use serde::Deserialize;
use tokio::time::timeout;

use crate::result::{self, ResultBounds};
use crate::{Servers, failure};
use kode_base::call::{ToolError, ToolErrorKind, ToolKind, Touch};
use kode_config::mcp::fault::McpFailure;
use kode_tool::offer::{ResourceInfo, ResourceText};
use kode_tool::{CallAction, CallContext, CallPlan, OfferContext, Tool, ToolFacts, ToolOutput};

/// The tool that lists resources.
pub(crate) const LIST: &str = "ListMcpResourcesTool";
/// The tool that reads one.
pub(crate) const READ: &str = "ReadMcpResourceTool";
/// Maximum number of resources of one server that are listed.
const MAX_LISTED: usize = 200;

/// The arguments of the tool that lists.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ListResourcesInput {
    /// The server to list the resources of. All servers if left out.
    #[serde(default)]
    pub server: Option<String>,
}

/// The arguments of the tool that reads.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ReadResourceInput {
    /// The server that has the resource.
    pub server: String,
    /// The address of the resource.
    pub uri: String,
}

/// Lists resources.
pub(crate) struct ListResources(pub(crate) Weak<Servers>);

/// Reads a resource.
pub(crate) struct ReadResource(pub(crate) Weak<Servers>);

fn servers(servers: &Weak<Servers>) -> Result<Arc<Servers>, ToolError> {
    servers.upgrade().ok_or_else(|| {
        ToolError::new(ToolErrorKind::Failed, "The MCP servers are gone.", "Go on without them.")
    })
}

fn failed(failure: &McpFailure) -> ToolError {
    ToolError::new(ToolErrorKind::Failed, format!("{}.", failure.message), failure.hint.clone())
}

#[async_trait]
impl Tool for ListResources {
    type Input = ListResourcesInput;

    fn facts(&self) -> ToolFacts {
        ToolFacts {
            name: LIST,
            kind: ToolKind::ReadOnly,
            concurrency_safe: true,
            description: "Lists the resources that MCP servers have: documents, records and the like, each with its address. \
                Read one with ReadMcpResourceTool.",
        }
    }

    fn describe(&self, _offer: &OfferContext<'_>) -> Option<String> {
        Some(self.facts().description.to_owned())
    }

    async fn plan(&self, input: ListResourcesInput, _context: &CallContext) -> Result<CallPlan, ToolError> {
        let servers = servers(&self.0)?;
        if let Some(server) = &input.server {
            servers.find(server).map_err(|failure| failed(&failure))?;
        }
        let title = match &input.server {
            Some(server) => format!("List the resources of {server}"),
            None => "List the resources of MCP servers".to_owned(),
        };
        let run = move |_context: CallContext| -> futures::future::BoxFuture<'static, _> {
            Box::pin(async move {
                let found = servers.resources(input.server.as_deref());
                let mut text = String::new();
                for resource in &found {
                    let kind =
                        resource.mime_type.as_deref().map(|kind| format!(" ({kind})")).unwrap_or_default();
                    let _ = writeln!(
                        text,
                        "{} {} — {}{kind} {}",
                        resource.server, resource.uri, resource.name, resource.description
                    );
                }
                if found.is_empty() {
                    text.push_str("There are no resources.");
                }
                let display = format!("{} resources", found.len());
                Ok(ToolOutput { model_text: text, display, ..ToolOutput::default() })
            })
        };
        Ok(CallPlan { title, touches: Vec::new(), action: CallAction::Run(Box::new(run)) })
    }
}

#[async_trait]
impl Tool for ReadResource {
    type Input = ReadResourceInput;

    fn facts(&self) -> ToolFacts {
        ToolFacts {
            name: READ,
            kind: ToolKind::ReadOnly,
            concurrency_safe: true,
            description: "Reads a resource of an MCP server, by the server's name and the resource's address.",
        }
    }

    fn timeout(&self) -> Option<Duration> {
        None
    }

    async fn plan(&self, input: ReadResourceInput, _context: &CallContext) -> Result<CallPlan, ToolError> {
        let servers = servers(&self.0)?;
        servers.find(&input.server).map_err(|failure| failed(&failure))?;
        let shown = format!("{}:{}", input.server, input.uri);
        let touch = Touch::Foreign { tool: READ.to_owned(), shown: shown.clone(), only_looks: true };
        let run = move |context: CallContext| -> futures::future::BoxFuture<'static, _> {
            Box::pin(async move {
                let read = tokio::select! {
                    read = servers.read_resource(&input.server, &input.uri) => read,
                    () = context.cancel.cancelled() => {
                        return Err(ToolError::new(
                            ToolErrorKind::Cancelled,
                            "The user cancelled reading the resource.",
                            "Do not repeat it unless the user asks.",
                        ));
                    }
                };
                let ResourceText { text, images } = read.map_err(|failure| failed(&failure))?;
                let outputs = context.shell.tasks().outputs();
                let bounds =
                    ResultBounds { tokens: servers.output_tokens(), outputs, call: &context.call_id };
                let display = format!("{} characters", text.chars().count());
                let model_text = result::bounded(text, &bounds);
                Ok(ToolOutput { model_text, display, images, ..ToolOutput::default() })
            })
        };
        Ok(CallPlan {
            title: format!("Read {shown}"),
            touches: vec![touch],
            action: CallAction::Run(Box::new(run)),
        })
    }
}

impl Servers {
    /// The resources there are, of one server or of all, as they were listed last.
    #[must_use]
    pub fn resources(&self, server: Option<&str>) -> Vec<ResourceInfo> {
        let wanted = self.all().into_iter().filter(|one| server.is_none_or(|server| one.name == server));
        let of = |one: Arc<crate::servers::server::McpServer>| {
            let offered = one.offered();
            let info = |uri: &str, name: &str, description: Option<&String>, mime_type: Option<&String>| {
                ResourceInfo {
                    server: one.name.clone(),
                    uri: uri.to_owned(),
                    name: name.to_owned(),
                    description: description.map(|said| said.chars().take(200).collect()).unwrap_or_default(),
                    mime_type: mime_type.cloned(),
                }
            };
            let resources = offered.resources.iter().map(|resource| {
                let title = resource.title.as_ref().unwrap_or(&resource.name);
                info(&resource.uri, title, resource.description.as_ref(), resource.mime_type.as_ref())
            });
            let templates = offered.templates.iter().map(|template| {
                let title = template.title.as_ref().unwrap_or(&template.name);
                info(
                    &template.uri_template,
                    title,
                    template.description.as_ref(),
                    template.mime_type.as_ref(),
                )
            });
            resources.chain(templates).take(MAX_LISTED).collect::<Vec<_>>()
        };
        wanted.flat_map(of).collect()
    }

    /// Reads a resource.
    ///
    /// # Errors
    /// Why it cannot be read.
    pub async fn read_resource(&self, server: &str, uri: &str) -> Result<ResourceText, McpFailure> {
        let found = self.find(server)?;
        let way = found.way().await?;
        let limit = found.surroundings().limits.call;
        let asked = way.peer.read_resource(ReadResourceRequestParams::new(uri));
        let read = timeout(limit, asked).await.map_err(|_| {
            McpFailure::transient(
                format!("`{server}` did not give the resource within {} s", limit.as_secs_f32()),
                "Try it again, or go on without it.",
            )
        })?;
        let read = read.map_err(|error| failure::of_request(server, &error))?;
        let mut images = Vec::new();
        let texts: Vec<_> =
            read.contents.into_iter().map(|contents| result::resource_text(contents, &mut images)).collect();
        Ok(ResourceText { text: texts.join("\n"), images })
    }
}
