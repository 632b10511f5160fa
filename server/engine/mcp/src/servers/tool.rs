//! A tool of a server, as a tool like any other.
//!
//! Rule: what a server says of a tool is a hint and no permission: every call is judged as something whose effects are not
//! known, unless the user's own entry says that the hints are to be believed. Arguments are checked against the whole schema
//! before anybody is asked, and the schema reaches the model unchanged.

use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;

use async_trait::async_trait;
use futures::future::BoxFuture;
use rmcp::model::{CallToolRequest, CallToolRequestParams, ClientRequest, ServerResult, Tool};
use rmcp::service::{PeerRequestOptions, ServiceError};
use serde_json::Value;
use tokio::time::sleep_until;

use crate::arguments;
use crate::client::OngoingCall;
use crate::connection::{ProtocolObject, ServerChannel};
use crate::failure;
use crate::pages::{self, PageRequest, PageTable};
use crate::result::{self, ResultBounds};
use crate::schema::JsonSchema;
use crate::servers::server::McpServer;
use kode_base::call::{ToolError, ToolErrorKind, ToolKind, Touch};
use kode_config::mcp::config::{CALL_TOTAL, ServerDefinition};
use kode_config::mcp::fault::McpFailure;
use kode_config::mcp::names;
use kode_model::InputSchema;
use kode_tool::{CallAction, CallContext, CallPlan, ErasedTool, OfferContext, ToolFacts, ToolOutput};

/// The longest description that the model gets.
const MAX_DESCRIPTION: usize = 4_096;

/// A tool of a server.
pub(crate) struct McpTool {
    server: Weak<McpServer>,
    server_name: String,
    name: &'static str,
    /// Its name at the server.
    tool: String,
    description: String,
    schema: InputSchema,
    /// Whether it only looks, where that is believed.
    only_looks: bool,
    /// The server's hint that it is read-only.
    says_it_only_looks: bool,
    total: Option<Duration>,
    validator: OnceLock<Option<JsonSchema>>,
}

impl McpTool {
    pub(crate) fn new(
        server: &McpServer,
        definition: &ServerDefinition,
        name: &'static str,
        tool: Tool,
    ) -> Self {
        let says_it_only_looks =
            tool.annotations.as_ref().and_then(|hints| hints.read_only_hint).unwrap_or(false);
        let description = tool.description.as_deref().map(str::trim).filter(|said| !said.is_empty());
        let description = match description {
            Some(said) => said.chars().take(MAX_DESCRIPTION).collect(),
            None => format!("The tool `{}` of the MCP server `{}`.", tool.name, server.name),
        };
        Self {
            server: server.weak(),
            server_name: server.name.clone(),
            name,
            description,
            schema: Value::Object((*tool.input_schema).clone()).into(),
            only_looks: definition.trusts_hints && says_it_only_looks,
            says_it_only_looks,
            total: definition.timeout,
            validator: OnceLock::new(),
            tool: tool.name.into_owned(),
        }
    }

    /// Its canonical name.
    pub(crate) fn name(&self) -> &'static str {
        self.name
    }

    /// Its name at the server.
    pub(crate) fn own_name(&self) -> &str {
        &self.tool
    }

    /// The text for the model about it.
    pub(crate) fn description(&self) -> &str {
        &self.description
    }

    /// Whether the server says that it only looks.
    pub(crate) fn says_it_only_looks(&self) -> bool {
        self.says_it_only_looks
    }

    fn shown(&self) -> String {
        names::shown(&self.server_name, &self.tool)
    }

    fn is_changed(&self) -> bool {
        let server = self.server.upgrade();
        server.is_some_and(|server| server.offered().changed.contains(&self.tool))
    }

    /// Checks arguments against all of the schema.
    fn check(&self, input: &Value) -> Result<ProtocolObject, ToolError> {
        let validator = self.validator.get_or_init(|| match JsonSchema::compile(&self.schema) {
            Ok(validator) => Some(validator),
            Err(error) => {
                // The server checks them itself as well.
                tracing::warn!(tool = self.name, %error, "the schema of a tool cannot be used to check arguments");
                None
            }
        });
        arguments::check(self.name, validator.as_ref(), input)
    }
}

#[async_trait]
impl ErasedTool for McpTool {
    fn facts(&self) -> ToolFacts {
        let kind = if self.only_looks { ToolKind::ReadOnly } else { ToolKind::Execute };
        ToolFacts {
            name: self.name,
            kind,
            concurrency_safe: self.only_looks,
            description: "A tool of an MCP server.",
        }
    }

    fn describe(&self, _offer: &OfferContext<'_>) -> Option<String> {
        Some(self.description.clone())
    }

    fn timeout(&self) -> Option<Duration> {
        None
    }

    fn input_schema(&self) -> InputSchema {
        self.schema.clone()
    }

    async fn plan(&self, input: Value, _context: &CallContext) -> Result<CallPlan, ToolError> {
        let arguments = self.check(&input)?;
        let mut title = arguments::title(&self.shown(), &input);
        if self.is_changed() {
            title.push_str(" (the server describes it otherwise than when you let it in)");
        }
        let call = McpCall {
            server: self.server.clone(),
            server_name: self.server_name.clone(),
            name: self.name,
            tool: self.tool.clone(),
            arguments,
            total: self.total,
        };
        let touch = Touch::Foreign {
            tool: self.name.to_owned(),
            shown: format!("{} {input}", self.shown()),
            only_looks: self.only_looks,
        };
        let run = move |context: CallContext| -> BoxFuture<'static, _> { Box::pin(call.run(context)) };
        Ok(CallPlan { title, touches: vec![touch], action: CallAction::Run(Box::new(run)) })
    }
}

/// How a server answers a call.
enum CallReply {
    Result(Box<ServerResult>),
    /// It is to be made again once these pages are done.
    Pages(Vec<PageRequest>),
}

/// A call that may run.
struct McpCall {
    server: Weak<McpServer>,
    server_name: String,
    name: &'static str,
    tool: String,
    arguments: ProtocolObject,
    total: Option<Duration>,
}

impl McpCall {
    async fn run(self, context: CallContext) -> Result<ToolOutput, ToolError> {
        let server = self.server.upgrade().ok_or_else(|| {
            self.failed(&McpFailure::permanent("the MCP server is no longer there", "Go on without it."))
        })?;
        let way = tokio::select! {
            way = server.way() => way.map_err(|failure| self.failed(&failure))?,
            () = context.cancel.cancelled() => return Err(self.cancelled()),
        };
        let limits = server.surroundings().limits;
        let ask = context.ask.clone();
        let ongoing = OngoingCall::new(std::sync::Arc::clone(&context.progress), ask);
        let mut has_opened = false;
        let result = loop {
            match self.answered(&way, &ongoing, limits.call, &context).await? {
                CallReply::Result(result) => break result,
                CallReply::Pages(pages) if !has_opened => {
                    self.open(&pages, &way, &ongoing, &context).await?;
                    has_opened = true;
                }
                CallReply::Pages(_) => {
                    return Err(self.failed(&McpFailure::permanent(
                        "the server wants a page to be opened once more after the user has opened it",
                        "Ask the user whether they have finished there before you call it again.",
                    )));
                }
            }
        };
        let outputs = context.shell.tasks().outputs();
        let bounds = ResultBounds { tokens: limits.output_tokens, outputs, call: &context.call_id };
        match *result {
            ServerResult::CallToolResult(result) => {
                result::output(&names::shown(&self.server_name, &self.tool), result, &bounds)
            }
            _ => Err(self.failed(&McpFailure::permanent(
                "the server answered with something that is no result of a tool",
                "Go on without it.",
            ))),
        }
    }

    /// The answer of the server, within its time limit.
    async fn answered(
        &self,
        way: &ServerChannel,
        ongoing: &Arc<OngoingCall>,
        idle: Duration,
        context: &CallContext,
    ) -> Result<CallReply, ToolError> {
        let params = CallToolRequestParams::new(self.tool.clone()).with_arguments(self.arguments.clone());
        let request = ClientRequest::CallToolRequest(CallToolRequest::new(params));
        let sent = way.peer.send_cancellable_request(request, PeerRequestOptions::no_options()).await;
        let mut handle =
            sent.map_err(|error| self.failed(&failure::of_request(&self.server_name, &error)))?;
        let _following = way.handler.follow(handle.progress_token.clone(), Arc::clone(ongoing));
        let total = self.total.unwrap_or(CALL_TOTAL);
        // A limit in the entry wins.
        let idle = self.total.unwrap_or(idle);
        let stopped = loop {
            let deadline = ongoing.deadline(idle, total);
            let over = async {
                match deadline {
                    Some(deadline) => sleep_until(deadline).await,
                    // It waits for the user; checked again soon.
                    None => tokio::time::sleep(WAITING_LOOK).await,
                }
            };
            tokio::select! {
                biased;
                answer = &mut handle.rx => {
                    let answer = answer.map_err(|_| self.lost())?;
                    return self.reply(answer);
                }
                () = context.cancel.cancelled() => break self.cancelled(),
                () = over => match ongoing.deadline(idle, total) {
                    Some(deadline) if deadline <= tokio::time::Instant::now() => break self.timed_out(idle),
                    Some(_) | None => {}
                },
            }
        };
        if let Err(error) = handle.cancel(Some(stopped.message.clone())).await {
            tracing::debug!(%error, server = self.server_name, "the server could not be told that a call is over");
        }
        Err(stopped)
    }

    fn reply(&self, answer: Result<ServerResult, ServiceError>) -> Result<CallReply, ToolError> {
        match answer {
            Ok(result) => Ok(CallReply::Result(Box::new(result))),
            Err(error) => match &error {
                ServiceError::McpError(said) => PageRequest::required(said).map(CallReply::Pages),
                _ => None,
            }
            .ok_or_else(|| self.failed(&failure::of_request(&self.server_name, &error))),
        }
    }

    /// Has the user open the pages that the call needs, and waits until the server or the user says that they are done.
    async fn open(
        &self,
        pages: &[PageRequest],
        way: &ServerChannel,
        ongoing: &OngoingCall,
        context: &CallContext,
    ) -> Result<(), ToolError> {
        let table = &way.handler.pages;
        ongoing.begin_waiting();
        let opened = tokio::select! {
            opened = self.open_all(pages, table, context) => opened,
            () = context.cancel.cancelled() => Err(self.cancelled()),
        };
        ongoing.end_waiting();
        pages.iter().for_each(|page| table.end(&page.id));
        opened
    }

    async fn open_all(
        &self,
        pages: &[PageRequest],
        table: &PageTable,
        context: &CallContext,
    ) -> Result<(), ToolError> {
        let ask = context.ask.as_ref().ok_or_else(|| self.unopened("no user can be asked"))?;
        let mut completions = Vec::new();
        for page in pages {
            let completion = table.begin(&page.id);
            let draft = page.draft(&self.server_name, completion.clone());
            let draft = draft.map_err(|reason| self.unopened(&reason))?;
            let reply = ask(draft.clone()).await;
            if reply.as_ref().and_then(|reply| draft.opened(reply)).is_none() {
                return Err(self.unopened("the user did not open it"));
            }
            completions.push(completion);
        }
        let all_reported = async {
            for mut completion in completions {
                if !completion.reported().await {
                    std::future::pending().await
                }
            }
        };
        (context.progress)("waits until the page in the browser is done".to_owned());
        tokio::select! {
            biased;
            () = all_reported => Ok(()),
            reply = ask(pages::finished_draft(&self.server_name)) => match reply {
                Some(reply) if pages::is_finished(&reply) => Ok(()),
                _ => Err(self.unopened("the user did not finish there")),
            },
        }
    }

    fn unopened(&self, why: &str) -> ToolError {
        self.failed(&McpFailure::permanent(
            format!("the server needs a page to be opened in a browser first, and {why}"),
            "Go on without it, or ask the user.",
        ))
    }

    fn failed(&self, failure: &McpFailure) -> ToolError {
        let shown = names::shown(&self.server_name, &self.tool);
        let mut message = format!("{shown}: {}.", failure.message);
        if !failure.stderr.is_empty() {
            message.push_str("\nThe last it wrote to its standard error:\n");
            message.push_str(&failure.stderr);
        }
        ToolError::new(ToolErrorKind::Failed, message, failure.hint.clone())
    }

    fn lost(&self) -> ToolError {
        self.failed(&McpFailure::transient(
            "the connection to the server ended while the call ran; whether it has done anything is not known",
            "The server is reconnected automatically. Check the effects of the call before you repeat it.",
        ))
    }

    fn cancelled(&self) -> ToolError {
        ToolError::new(
            ToolErrorKind::Cancelled,
            format!("The user cancelled the call of {}.", self.name),
            "Do not repeat it unless the user asks.",
        )
    }

    fn timed_out(&self, idle: Duration) -> ToolError {
        ToolError::new(
            ToolErrorKind::Timeout,
            format!("{} gave no answer and no sign of progress within {} s.", self.name, idle.as_secs_f32()),
            "Ask for less in one call. `timeout` in the server's entry, or MCP_TOOL_TIMEOUT, gives it more time.",
        )
    }
}

/// How often it is looked whether the user has answered a question of a call.
const WAITING_LOOK: Duration = Duration::from_millis(500);
