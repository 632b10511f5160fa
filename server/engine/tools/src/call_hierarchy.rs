//! CallHierarchy: the functions that call a function, or that it calls, up to three levels deep.
//!
//! Rule: a function that is on the way already is not followed again, so that recursion ends.

use std::fmt::Write as _;
use std::time::Duration;

use async_trait::async_trait;
use futures::FutureExt;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::symbol;
use crate::symbols::TIMEOUT;
use kode_base::call::{Exposure, ToolError, ToolKind};
use kode_text::workspace::language::{CallDirection, CallNode};
use kode_tool::{CallAction, CallContext, CallPlan, OfferContext, Tool, ToolFacts, ToolOutput};

/// The most levels.
const MAX_LEVELS: usize = 3;
/// The levels of a call that names none.
const LEVELS: usize = 1;
/// The most lines of calls that are shown for one function.
const MAX_LINES: usize = 10;

/// The arguments of CallHierarchy.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CallHierarchyInput {
    /// The name of the function as it stands in the file, such as `parse` or `Parser::parse`.
    pub symbol: String,
    /// A file that uses or declares it.
    pub file_path: String,
    /// A line of that file with the function, from 1. Its declaration in the file, or its first use, if left out.
    #[serde(default)]
    pub line: Option<u32>,
    /// Whether its callers are wanted (incoming) or the functions that it calls (outgoing).
    pub direction: DirectionInput,
    /// How many levels, 1 to 3. One if left out.
    #[serde(default)]
    pub levels: Option<usize>,
}

/// A direction of calls.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum DirectionInput {
    /// The callers.
    Incoming,
    /// The called.
    Outgoing,
}

/// Follows calls.
#[derive(Clone, Copy, Debug)]
pub struct CallHierarchy;

#[async_trait]
impl Tool for CallHierarchy {
    type Input = CallHierarchyInput;

    fn facts(&self) -> ToolFacts {
        ToolFacts {
            name: "CallHierarchy",
            kind: ToolKind::ReadOnly,
            concurrency_safe: true,
            description: "Lists the functions that call a function, or that it calls, up to three levels deep, as the \
                language server knows them. Use it to see what a change of a function affects.",
        }
    }

    fn describe(&self, offer: &OfferContext<'_>) -> Option<String> {
        offer.has_languages.then(|| self.facts().description.to_owned())
    }

    fn timeout(&self) -> Option<Duration> {
        Some(TIMEOUT)
    }

    async fn plan(&self, input: CallHierarchyInput, context: &CallContext) -> Result<CallPlan, ToolError> {
        let servers = symbol::servers(&context.workspace)?;
        let (target, touches) = symbol::target(&input.file_path, context)?;
        let (direction, what) = match input.direction {
            DirectionInput::Incoming => (CallDirection::Incoming, "Callers"),
            DirectionInput::Outgoing => (CallDirection::Outgoing, "Calls"),
        };
        let title = format!("{what} of {}", input.symbol);
        let levels = input.levels.unwrap_or(LEVELS).clamp(1, MAX_LEVELS);
        let run = move |context: CallContext| {
            async move {
                let found = symbol::find(&input.symbol, &target, input.line, &context).await?;
                let calls = servers.calls(&context.workspace, found.position(), direction, levels).await;
                let answer = calls.map_err(|error| symbol::failure(&error))?;
                Ok(output(&answer.value, symbol::note(&answer), &context))
            }
            .boxed()
        };
        Ok(CallPlan { title, touches, action: CallAction::Run(Box::new(run)) })
    }
}

/// The result for nodes of a hierarchy.
pub(crate) fn output(nodes: &[CallNode], note: String, context: &CallContext) -> ToolOutput {
    let mut text = String::new();
    let count = describe(&mut text, nodes, 0, context);
    if nodes.is_empty() {
        text.push_str("The language server knows no function there.");
    } else if count == nodes.len() {
        text.push_str("No calls are known.");
    }
    ToolOutput {
        model_text: format!("{}{note}", text.trim_end()),
        display: format!("{} functions", count.saturating_sub(nodes.len())),
        structured: Some(value(nodes)),
        ..ToolOutput::default()
    }
}

/// Appends the nodes, and returns how many there are.
fn describe(text: &mut String, nodes: &[CallNode], depth: usize, context: &CallContext) -> usize {
    let mut count = 0;
    for node in nodes {
        if !(context.may_read)(&node.place.target, Exposure::Name) {
            continue;
        }
        count += 1;
        let path = context.workspace.display(&node.place.target);
        let lines: Vec<_> = node.lines.iter().take(MAX_LINES).map(u32::to_string).collect();
        let lines = if lines.is_empty() { String::new() } else { format!(", calls at {}", lines.join(", ")) };
        let CallNode { name, kind, place, .. } = node;
        let _ = writeln!(text, "{:width$}{kind} {name} {path}:{}{lines}", "", place.line, width = depth * 2);
        count += describe(text, &node.calls, depth + 1, context);
    }
    count
}

fn value(nodes: &[CallNode]) -> Value {
    let value = |node: &CallNode| {
        json!({
            "name": node.name, "path": node.place.target.to_string(), "line": node.place.line,
            "lines": node.lines, "calls": value(&node.calls),
        })
    };
    nodes.iter().map(value).collect()
}
