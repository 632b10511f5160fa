//! Requests as the Messages format wants them.
//!
//! Rule: the same request always gives the same bytes, so that the provider's prompt cache finds it again. What
//! the API would refuse (empty text, reasoning without its signature) is left out here and stays in the log.

use serde::Serialize;
use serde_json::Value;

use crate::model::{Block, Effort, Message, ModelRequest, Role};

/// The smallest reasoning budget the API accepts.
const MIN_THINKING_BUDGET: u32 = 1024;

/// Name parts of the models that take a reasoning budget; all later ones set their own by effort.
const BUDGET_MODELS: [&str; 5] = ["claude-3", "-4-0", "-4-1", "-4-5", "-4-2025"];

/// The body of a request.
#[derive(Serialize)]
pub(super) struct Body<'a> {
    model: &'a str,
    max_tokens: u32,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    system: Vec<WireBlock<'a>>,
    messages: Vec<WireMessage<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<WireTool<'a>>,
    stream: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    temperature: Option<f32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    top_p: Option<f32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    thinking: Option<Thinking>,
    #[serde(skip_serializing_if = "Option::is_none")]
    output_config: Option<OutputConfig>,
}

#[derive(Serialize)]
struct WireMessage<'a> {
    role: Role,
    content: Vec<WireBlock<'a>>,
}

#[derive(Serialize)]
struct WireTool<'a> {
    name: &'a str,
    description: &'a str,
    input_schema: &'a Value,
}

#[derive(Serialize)]
struct WireBlock<'a> {
    #[serde(flatten)]
    content: Content<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cache_control: Option<CacheControl>,
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Content<'a> {
    Text { text: &'a str },
    Thinking { thinking: &'a str, signature: &'a str },
    RedactedThinking { data: &'a str },
    ToolUse { id: &'a str, name: &'a str, input: &'a Value },
    ToolResult { tool_use_id: &'a str, content: &'a str, is_error: bool },
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum CacheControl {
    Ephemeral,
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Thinking {
    Enabled { budget_tokens: u32 },
    Adaptive { display: &'static str },
}

#[derive(Serialize)]
struct OutputConfig {
    effort: Effort,
}

/// The body that asks `model` for the answer to `request`.
pub(super) fn body<'a>(model: &'a str, request: &'a ModelRequest) -> Body<'a> {
    let mut system: Vec<_> =
        request.system.iter().filter_map(|text| text_content(text)).map(WireBlock::from).collect();
    if let Some(last) = system.last_mut() {
        last.cache_control = Some(CacheControl::Ephemeral);
    }
    let mut messages = messages(&request.messages);
    if let Some(last) = messages.last_mut().and_then(|message| last_cacheable(&mut message.content)) {
        last.cache_control = Some(CacheControl::Ephemeral);
    }
    let (thinking, output_config) = match request.effort {
        Some(effort) => reasoning(model, effort, request),
        None => (None, None),
    };
    // The API takes no sampling settings together with reasoning.
    let sampling = if thinking.is_none() { (request.temperature, request.top_p) } else { (None, None) };
    Body {
        model,
        max_tokens: request.max_tokens,
        system,
        messages,
        tools: request
            .tools
            .iter()
            .map(|tool| WireTool {
                name: &tool.name,
                description: &tool.description,
                input_schema: &tool.input_schema,
            })
            .collect(),
        stream: true,
        temperature: sampling.0,
        top_p: sampling.1,
        thinking,
        output_config,
    }
}

impl<'a> From<Content<'a>> for WireBlock<'a> {
    fn from(content: Content<'a>) -> Self {
        Self { content, cache_control: None }
    }
}

/// The messages with something in them, those of one role in a row made one.
fn messages(history: &[Message]) -> Vec<WireMessage<'_>> {
    let mut messages: Vec<WireMessage<'_>> = Vec::with_capacity(history.len());
    for message in history {
        let content = message.content.iter().filter_map(content).map(WireBlock::from);
        match messages.last_mut() {
            Some(last) if last.role == message.role => last.content.extend(content),
            _ => {
                let content: Vec<_> = content.collect();
                if !content.is_empty() {
                    messages.push(WireMessage { role: message.role, content });
                }
            }
        }
    }
    for message in &mut messages {
        // The API wants results before anything else the user says; the sort is stable.
        message.content.sort_by_key(|block| {
            message.role == Role::User && !matches!(block.content, Content::ToolResult { .. })
        });
    }
    messages
}

fn content(block: &Block) -> Option<Content<'_>> {
    match block {
        Block::Text { text } => text_content(text),
        // Reasoning that was cut off has no signature and would be refused.
        Block::Thinking { signature, .. } if signature.is_empty() => None,
        Block::Thinking { thinking, signature } => Some(Content::Thinking { thinking, signature }),
        Block::RedactedThinking { data } => Some(Content::RedactedThinking { data }),
        Block::ToolUse { id, name, input, input_error: _ } => Some(Content::ToolUse { id, name, input }),
        Block::ToolResult { tool_use_id, content, is_error } => {
            Some(Content::ToolResult { tool_use_id, content, is_error: *is_error })
        }
    }
}

fn text_content(text: &str) -> Option<Content<'_>> {
    (!text.trim().is_empty()).then_some(Content::Text { text })
}

fn last_cacheable<'a, 'b>(content: &'b mut [WireBlock<'a>]) -> Option<&'b mut WireBlock<'a>> {
    content
        .iter_mut()
        .rev()
        .find(|block| !matches!(block.content, Content::Thinking { .. } | Content::RedactedThinking { .. }))
}

fn reasoning(
    model: &str,
    effort: Effort,
    request: &ModelRequest,
) -> (Option<Thinking>, Option<OutputConfig>) {
    if !BUDGET_MODELS.iter().any(|part| model.contains(part)) {
        return (Some(Thinking::Adaptive { display: "summarized" }), Some(OutputConfig { effort }));
    }
    let quarters = match effort {
        Effort::Low => 1,
        Effort::Medium => 2,
        Effort::High => 3,
    };
    let budget_tokens = request.max_tokens / 4 * quarters;
    let allowed = budget_tokens >= MIN_THINKING_BUDGET && may_begin_reasoning(&request.messages);
    (allowed.then_some(Thinking::Enabled { budget_tokens }), None)
}

/// With a budget the API wants every answer since the user last spoke to begin with reasoning, so a round of tool
/// calls that began without goes on without.
fn may_begin_reasoning(history: &[Message]) -> bool {
    let answers_results = history
        .last()
        .is_some_and(|message| message.content.iter().any(|block| matches!(block, Block::ToolResult { .. })));
    let last_answer = history.iter().rev().find(|message| message.role == Role::Assistant);
    match last_answer.filter(|_| answers_results).and_then(|message| message.content.first()) {
        None | Some(Block::RedactedThinking { .. }) => true,
        Some(Block::Thinking { signature, .. }) => !signature.is_empty(),
        Some(Block::Text { .. } | Block::ToolUse { .. } | Block::ToolResult { .. }) => false,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::model::ToolDeclaration;

    fn text(text: &str) -> Block {
        Block::Text { text: text.into() }
    }

    fn user(content: Vec<Block>) -> Message {
        Message { role: Role::User, content }
    }

    fn assistant(content: Vec<Block>) -> Message {
        Message { role: Role::Assistant, content }
    }

    fn call(id: &str) -> Block {
        Block::ToolUse {
            id: id.into(),
            name: "Read".into(),
            input: json!({"file_path": "/a"}),
            input_error: Some("never sent".into()),
        }
    }

    fn result(id: &str) -> Block {
        Block::ToolResult { tool_use_id: id.into(), content: String::new(), is_error: false }
    }

    fn request(messages: Vec<Message>) -> ModelRequest {
        ModelRequest {
            system: vec![],
            messages,
            tools: vec![],
            max_tokens: 8000,
            temperature: None,
            top_p: None,
            effort: None,
        }
    }

    fn sent(model: &str, request: &ModelRequest) -> Value {
        serde_json::to_value(body(model, request)).unwrap()
    }

    #[test]
    fn a_request_on_the_wire() {
        let thinking = Block::Thinking { thinking: "hm".into(), signature: "sig".into() };
        let request = ModelRequest {
            system: vec!["You are an agent.".into(), String::new(), "Working directory: /w".into()],
            tools: vec![ToolDeclaration {
                name: "Read".into(),
                description: "Reads a file.".into(),
                input_schema: json!({"type": "object", "properties": {"file_path": {"type": "string"}}}),
            }],
            temperature: Some(0.5),
            ..request(vec![
                user(vec![text("read /a")]),
                assistant(vec![thinking, text("Reading."), call("toolu_1")]),
                user(vec![result("toolu_1"), text("<system-reminder>x</system-reminder>")]),
            ])
        };
        let sent = sent("some-model", &request);
        let line = |(field, value): (&String, &Value)| match value {
            Value::Array(items) => {
                let items: Vec<String> = items.iter().map(|item| format!("\n  {item}")).collect();
                format!("{field}:{}", items.concat())
            }
            value => format!("{field}: {value}"),
        };
        let lines: Vec<String> = sent.as_object().unwrap().iter().map(line).collect();
        insta::assert_snapshot!(lines.join("\n"), @r#"
        model: "some-model"
        max_tokens: 8000
        system:
          {"type":"text","text":"You are an agent."}
          {"type":"text","text":"Working directory: /w","cache_control":{"type":"ephemeral"}}
        messages:
          {"role":"user","content":[{"type":"text","text":"read /a"}]}
          {"role":"assistant","content":[{"type":"thinking","thinking":"hm","signature":"sig"},{"type":"text","text":"Reading."},{"type":"tool_use","id":"toolu_1","name":"Read","input":{"file_path":"/a"}}]}
          {"role":"user","content":[{"type":"tool_result","tool_use_id":"toolu_1","content":"","is_error":false},{"type":"text","text":"<system-reminder>x</system-reminder>","cache_control":{"type":"ephemeral"}}]}
        tools:
          {"name":"Read","description":"Reads a file.","input_schema":{"type":"object","properties":{"file_path":{"type":"string"}}}}
        stream: true
        temperature: 0.5
        "#);
    }

    #[test]
    fn what_the_api_would_refuse_is_left_out() {
        let unsigned = Block::Thinking { thinking: "cut".into(), signature: String::new() };
        let sealed = Block::RedactedThinking { data: "x".into() };
        let request = request(vec![
            user(vec![text("a"), text(" \n")]),
            assistant(vec![unsigned, text("")]),
            user(vec![text("b")]),
            user(vec![text("c")]),
            assistant(vec![sealed, call("toolu_1")]),
            user(vec![text("reminder")]),
            user(vec![result("toolu_1")]),
        ]);
        let messages = &sent("m", &request)["messages"];
        let shape: Vec<(&str, Vec<&str>)> = messages
            .as_array()
            .unwrap()
            .iter()
            .map(|message| {
                let types = message["content"].as_array().unwrap().iter();
                (message["role"].as_str().unwrap(), types.map(|b| b["type"].as_str().unwrap()).collect())
            })
            .collect();
        assert_eq!(
            shape,
            [
                ("user", vec!["text", "text", "text"]),
                ("assistant", vec!["redacted_thinking", "tool_use"]),
                ("user", vec!["tool_result", "text"]),
            ]
        );
    }

    #[test]
    fn the_last_block_that_can_be_cached_is_marked_and_no_other() {
        let sealed = Block::RedactedThinking { data: "x".into() };
        let request = request(vec![
            user(vec![text("a")]),
            assistant(vec![text("b")]),
            user(vec![text("c"), text("d"), sealed]),
        ]);
        let sent = sent("m", &request);
        assert_eq!(sent["messages"][2]["content"][1]["cache_control"], json!({"type": "ephemeral"}));
        assert_eq!(sent.to_string().matches("cache_control").count(), 1);
    }

    #[test]
    fn effort_becomes_what_the_model_understands() {
        let hello = || vec![user(vec![text("hello")])];
        let adaptive = json!({"type": "adaptive", "display": "summarized"});
        let table = [
            ("claude-sonnet-5", Effort::Low, 8000, Some(adaptive.clone()), Some("low")),
            ("another-model", Effort::High, 100, Some(adaptive), Some("high")),
            (
                "claude-haiku-4-5",
                Effort::Low,
                8000,
                Some(json!({"type": "enabled", "budget_tokens": 2000})),
                None,
            ),
            (
                "claude-opus-4-1",
                Effort::High,
                8000,
                Some(json!({"type": "enabled", "budget_tokens": 6000})),
                None,
            ),
            ("claude-haiku-4-5", Effort::Low, 4000, None, None),
        ];
        for (model, effort, max_tokens, thinking, sent_effort) in table {
            let request = ModelRequest {
                effort: Some(effort),
                max_tokens,
                temperature: Some(0.25),
                top_p: Some(0.5),
                ..request(hello())
            };
            let sent = sent(model, &request);
            assert_eq!(sent.get("thinking"), thinking.as_ref(), "{model}");
            assert_eq!(sent["output_config"]["effort"].as_str(), sent_effort, "{model}");
            assert_eq!(sent.get("temperature").is_some(), thinking.is_none(), "{model}");
            assert_eq!(sent.get("top_p").is_some(), thinking.is_none(), "{model}");
        }
    }

    #[test]
    fn a_round_begun_without_reasoning_goes_on_without() {
        let thinking = || Block::Thinking { thinking: "hm".into(), signature: "sig".into() };
        let rounds = [
            (vec![assistant(vec![call("1")]), user(vec![result("1")])], false),
            (vec![assistant(vec![thinking(), call("1")]), user(vec![result("1")])], true),
            (vec![assistant(vec![text("done")]), user(vec![text("more")])], true),
        ];
        for (round, expected) in rounds {
            let messages = [vec![user(vec![text("hello")])], round].concat();
            let request = ModelRequest { effort: Some(Effort::Medium), ..request(messages) };
            let sent = sent("claude-sonnet-4-5", &request);
            assert_eq!(sent.get("thinking").is_some(), expected, "{}", sent["messages"]);
        }
    }
}
