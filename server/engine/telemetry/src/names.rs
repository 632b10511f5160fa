//! The names of spans, attributes and metrics.
//!
//! Rule: names of the GenAI semantic conventions where those have one, and `kode.…` for the rest; documentation and dashboard
//! use these names and no others.

/// The scope of all spans and metrics.
pub(crate) const SCOPE: &str = "kode-ls";
/// The name of the service, where the environment names no other.
pub(crate) const SERVICE: &str = "kode-ls";

/// Tokens of a model call.
pub const TOKEN_USAGE: &str = "gen_ai.client.token.usage";
/// Seconds of a model call.
pub const OPERATION_DURATION: &str = "gen_ai.client.operation.duration";
/// US dollars of model calls.
pub const COST: &str = "kode.cost";
/// Hunks that the user has decided about.
pub const EDITS: &str = "kode.edits";
/// Seconds that a permission prompt waited.
pub const PERMISSION_WAIT: &str = "kode.permission.wait";

/// The metrics, each with its name in Prometheus, without the suffix of its kind.
pub const METRICS: [(&str, &str); 5] = [
    (TOKEN_USAGE, "gen_ai_client_token_usage"),
    (OPERATION_DURATION, "gen_ai_client_operation_duration_seconds"),
    (COST, "kode_cost"),
    (EDITS, "kode_edits"),
    (PERMISSION_WAIT, "kode_permission_wait_seconds"),
];

/// The span of a turn, and the first word of the span of a sub-agent.
pub(crate) const INVOKE_AGENT: &str = "invoke_agent";
/// The first word of the span of a model call.
pub(crate) const CHAT: &str = "chat";
/// The first word of the span of a tool call.
pub(crate) const EXECUTE_TOOL: &str = "execute_tool";
/// The span of a permission prompt.
pub(crate) const WAIT_FOR_PERMISSION: &str = "wait_for_permission";
/// The span of a question to the user.
pub(crate) const WAIT_FOR_ANSWER: &str = "wait_for_answer";
/// The event of a model call that is tried again.
pub(crate) const MODEL_RETRY: &str = "kode.model.retry";

pub(crate) const OPERATION: &str = "gen_ai.operation.name";
pub(crate) const AGENT_NAME: &str = "gen_ai.agent.name";
pub(crate) const AGENT_ID: &str = "gen_ai.agent.id";
pub(crate) const CONVERSATION: &str = "gen_ai.conversation.id";
pub(crate) const PROVIDER: &str = "gen_ai.provider.name";
pub(crate) const MODEL: &str = "gen_ai.request.model";
pub(crate) const INPUT_TOKENS: &str = "gen_ai.usage.input_tokens";
pub(crate) const OUTPUT_TOKENS: &str = "gen_ai.usage.output_tokens";
pub(crate) const CACHE_READ_TOKENS: &str = "gen_ai.usage.cache_read.input_tokens";
pub(crate) const CACHE_WRITE_TOKENS: &str = "gen_ai.usage.cache_creation.input_tokens";
pub(crate) const REASONING_TOKENS: &str = "gen_ai.usage.reasoning.output_tokens";
pub(crate) const TOKEN_TYPE: &str = "gen_ai.token.type";
pub(crate) const TOOL_NAME: &str = "gen_ai.tool.name";
pub(crate) const TOOL_CALL: &str = "gen_ai.tool.call.id";
pub(crate) const TOOL_TYPE: &str = "gen_ai.tool.type";
pub(crate) const ERROR_TYPE: &str = "error.type";
pub(crate) const TOOL_OUTCOME: &str = "kode.tool.outcome";
pub(crate) const STOP_REASON: &str = "kode.turn.stop_reason";
pub(crate) const MODEL_CALLS: &str = "kode.turn.model_calls";
pub(crate) const TOOL_CALLS: &str = "kode.turn.tool_calls";
pub(crate) const COST_USD: &str = "kode.cost.usd";
pub(crate) const PERMISSION_OUTCOME: &str = "kode.permission.outcome";
pub(crate) const PERMISSION_SCOPE: &str = "kode.permission.scope";
pub(crate) const QUESTION_KIND: &str = "kode.question.kind";
pub(crate) const QUESTION_OUTCOME: &str = "kode.question.outcome";
pub(crate) const RETRY_ATTEMPT: &str = "kode.model.attempt";
pub(crate) const DECISION: &str = "decision";

// Content, exported only where the user's settings ask for it.
pub(crate) const INPUT_MESSAGES: &str = "gen_ai.input.messages";
pub(crate) const OUTPUT_MESSAGES: &str = "gen_ai.output.messages";
pub(crate) const TOOL_ARGUMENTS: &str = "gen_ai.tool.call.arguments";
pub(crate) const TOOL_RESULT: &str = "gen_ai.tool.call.result";

#[cfg(test)]
mod tests;
