//! Tools that a client registers at run time, such as those of other extensions of its editor.
//!
//! Rule: a tool of a client is judged as one of an MCP server is: its effects are not known, and no hint of it gives a permission.
//! Its schema reaches the model unchanged. The tools end with the connection of their client.

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures::future::BoxFuture;
use parking_lot::Mutex;
use rmcp::model::CallToolResult;
use serde_json::Value;
use tokio::time::timeout;

use crate::arguments;
use crate::result::{self, ResultBounds};
use crate::schema::JsonSchema;
use kode_base::call::{ToolError, ToolErrorKind, ToolKind, Touch};
use kode_base::ids::CallId;
use kode_config::mcp::config::OUTPUT_TOKENS;
use kode_config::mcp::names;
use kode_model::InputSchema;
use kode_tool::{
    CallAction, CallContext, CallPlan, ErasedTool, OfferContext, ToolFacts, ToolOutput, ToolSource,
};

/// The most providers of a client.
const MAX_PROVIDERS: usize = 64;
/// The most tools of a provider.
const MAX_TOOLS: usize = 128;
/// The longest name of a provider or a tool, in bytes.
const MAX_NAME: usize = 128;
/// The longest description that the model gets, in characters.
const MAX_DESCRIPTION: usize = 4_096;
/// The largest schema, in bytes of JSON.
const MAX_SCHEMA: usize = 65_536;
/// How long a client may take for a call.
const LIMIT: Duration = Duration::from_secs(600);

/// A tool as its client describes it.
#[derive(Clone, Debug, PartialEq)]
pub struct ClientToolSpec {
    /// Its name at the client.
    pub name: String,
    /// The text for the model.
    pub description: String,
    /// The JSON Schema of its arguments, which are an object.
    pub schema: InputSchema,
}

/// A call that a client carries out.
#[derive(Clone, Debug, PartialEq)]
pub struct ClientToolCall {
    /// The call.
    pub call: CallId,
    /// The provider of the tool.
    pub provider: String,
    /// The tool's name at the client.
    pub tool: String,
    /// The arguments; they fit the schema.
    pub arguments: Value,
}

/// Carries out the calls of a client's tools.
pub trait ToolClient: Send + Sync {
    /// The result, in the form of an MCP server's; or the reason why it has no result. Dropping the future cancels the call.
    fn call(&self, call: ClientToolCall) -> BoxFuture<'static, Result<Value, String>>;
}

/// Why tools are not registered. Nothing of a refused list is.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ClientToolFault {
    /// A name is empty or too long.
    #[error("`{0}` is no name of a provider or a tool: it has 1 to {MAX_NAME} bytes")]
    Name(String),
    /// Two tools have one name.
    #[error("two tools are called `{0}`")]
    Twice(String),
    /// There are too many.
    #[error("a client has at most {MAX_PROVIDERS} providers with {MAX_TOOLS} tools each")]
    TooMany,
    /// A schema cannot be used.
    #[error("the schema of `{tool}` cannot be used: {reason}")]
    Schema {
        /// The tool.
        tool: String,
        /// Why.
        reason: String,
    },
}

/// The tools of one client.
pub struct ClientTools {
    client: Arc<dyn ToolClient>,
    providers: Mutex<BTreeMap<String, Vec<Arc<ClientTool>>>>,
}

impl ClientTools {
    /// None yet, of that client.
    #[must_use]
    pub fn new(client: Arc<dyn ToolClient>) -> Self {
        Self { client, providers: Mutex::default() }
    }

    /// Replaces the tools of a provider; without tools it is gone. Returns the names that the model gets, in the order of the
    /// tools.
    ///
    /// # Errors
    /// [`ClientToolFault`]; the earlier tools stay then.
    pub fn register(
        &self,
        provider: &str,
        specs: Vec<ClientToolSpec>,
    ) -> Result<Vec<&'static str>, ClientToolFault> {
        check_name(provider)?;
        if specs.len() > MAX_TOOLS {
            return Err(ClientToolFault::TooMany);
        }
        let mut providers = self.providers.lock();
        if !providers.contains_key(provider) && providers.len() >= MAX_PROVIDERS {
            return Err(ClientToolFault::TooMany);
        }
        let part = names::server_part(provider, &BTreeSet::new());
        let others = providers.iter().filter(|(other, _)| *other != provider);
        let mut taken: BTreeSet<String> =
            others.flat_map(|(_, tools)| tools.iter().map(|tool| tool.name.to_owned())).collect();
        let (mut own, mut tools) = (BTreeSet::new(), Vec::with_capacity(specs.len()));
        for spec in specs {
            check_name(&spec.name)?;
            if !own.insert(spec.name.clone()) {
                return Err(ClientToolFault::Twice(spec.name));
            }
            let name = names::tool_name(&part, &spec.name, &taken);
            let name = names::kept(&name).ok_or(ClientToolFault::TooMany)?;
            taken.insert(name.to_owned());
            tools.push(Arc::new(ClientTool::new(Arc::clone(&self.client), provider, name, spec)?));
        }
        let named = tools.iter().map(|tool| tool.name).collect();
        match tools.is_empty() {
            true => providers.remove(provider),
            false => providers.insert(provider.to_owned(), tools),
        };
        Ok(named)
    }
}

fn check_name(name: &str) -> Result<(), ClientToolFault> {
    let is_name = !name.is_empty() && name.len() <= MAX_NAME && !name.chars().any(char::is_control);
    if is_name { Ok(()) } else { Err(ClientToolFault::Name(name.chars().take(MAX_NAME).collect())) }
}

impl ToolSource for ClientTools {
    fn tools(&self) -> Arc<Vec<Arc<dyn ErasedTool>>> {
        let providers = self.providers.lock();
        let tools = providers.values().flatten().map(|tool| Arc::clone(tool) as Arc<dyn ErasedTool>);
        let mut tools: Vec<_> = tools.collect();
        tools.sort_by_key(|tool| tool.facts().name);
        Arc::new(tools)
    }

    fn find(&self, name: &str) -> Option<Arc<dyn ErasedTool>> {
        let providers = self.providers.lock();
        let found = providers.values().flatten().find(|tool| names::covers(name, tool.name))?;
        // A name that means several tools means none.
        let is_one = providers.values().flatten().filter(|tool| names::covers(name, tool.name)).count() == 1;
        is_one.then(|| Arc::clone(found) as Arc<dyn ErasedTool>)
    }
}

/// A tool of a client.
struct ClientTool {
    client: Arc<dyn ToolClient>,
    provider: String,
    name: &'static str,
    spec: ClientToolSpec,
    schema: JsonSchema,
}

impl ClientTool {
    fn new(
        client: Arc<dyn ToolClient>,
        provider: &str,
        name: &'static str,
        mut spec: ClientToolSpec,
    ) -> Result<Self, ClientToolFault> {
        let fault = |reason: String| ClientToolFault::Schema { tool: spec.name.clone(), reason };
        let size = spec.schema.to_string().len();
        if size > MAX_SCHEMA {
            return Err(fault(format!("it has {size} bytes, and {MAX_SCHEMA} are the most")));
        }
        if spec.schema.get("type").and_then(Value::as_str) != Some("object") {
            return Err(fault("its `type` is not \"object\"".to_owned()));
        }
        let schema = JsonSchema::compile(&spec.schema).map_err(|error| fault(error.to_string()))?;
        let said: String = spec.description.trim().chars().take(MAX_DESCRIPTION).collect();
        spec.description = match said.is_empty() {
            true => format!("The tool `{}` of `{provider}` in the user's editor.", spec.name),
            false => said,
        };
        Ok(Self { client, provider: provider.to_owned(), name, spec, schema })
    }
}

#[async_trait]
impl ErasedTool for ClientTool {
    fn facts(&self) -> ToolFacts {
        ToolFacts {
            name: self.name,
            kind: ToolKind::Execute,
            concurrency_safe: false,
            description: "A tool of the editor.",
        }
    }

    fn describe(&self, _offer: &OfferContext<'_>) -> Option<String> {
        Some(self.spec.description.clone())
    }

    fn timeout(&self) -> Option<Duration> {
        None
    }

    fn input_schema(&self) -> InputSchema {
        self.spec.schema.clone()
    }

    async fn plan(&self, input: Value, _context: &CallContext) -> Result<CallPlan, ToolError> {
        arguments::check(self.name, Some(&self.schema), &input)?;
        let shown = names::shown(&self.provider, &self.spec.name);
        let title = arguments::title(&shown, &input);
        let touch = Touch::Foreign {
            tool: self.name.to_owned(),
            shown: format!("{shown} {input}"),
            only_looks: false,
        };
        let (client, provider, tool) =
            (Arc::clone(&self.client), self.provider.clone(), self.spec.name.clone());
        let run = move |context: CallContext| -> BoxFuture<'static, _> {
            let call = ClientToolCall { call: context.call_id.clone(), provider, tool, arguments: input };
            Box::pin(run(client, call, shown, context))
        };
        Ok(CallPlan { title, touches: vec![touch], action: CallAction::Run(Box::new(run)) })
    }
}

async fn run(
    client: Arc<dyn ToolClient>,
    call: ClientToolCall,
    shown: String,
    context: CallContext,
) -> Result<ToolOutput, ToolError> {
    let answer = tokio::select! {
        answer = timeout(LIMIT, client.call(call)) => answer,
        () = context.cancel.cancelled() => {
            return Err(ToolError::new(
                ToolErrorKind::Cancelled,
                format!("The user cancelled the call of {shown}."),
                "Do not repeat it unless the user asks.",
            ));
        }
    };
    let failed = |kind, message: String| {
        ToolError::new(kind, message, "Check the arguments, or go on without the tool.")
    };
    let result = match answer {
        Ok(Ok(result)) => result,
        Ok(Err(reason)) => return Err(failed(ToolErrorKind::Failed, format!("{shown}: {reason}."))),
        Err(_) => {
            let message = format!("{shown} gave no answer within {} s.", LIMIT.as_secs());
            return Err(failed(ToolErrorKind::Timeout, message));
        }
    };
    let result: CallToolResult = serde_json::from_value(result).map_err(|error| {
        failed(ToolErrorKind::Failed, format!("{shown} answered with something that is no result: {error}."))
    })?;
    let outputs = context.shell.tasks().outputs();
    let bounds = ResultBounds { tokens: OUTPUT_TOKENS, outputs, call: &context.call_id };
    result::output(&shown, result, &bounds)
}
