//! Requests as the Messages format wants them.
//!
//! Rule: the same request always gives the same bytes, so that the provider's prompt cache finds it again. What
//! the API would refuse (empty text, reasoning without its signature) is left out here and stays in the log.

use std::borrow::Cow;

use serde::Serialize;
use serde_json::Value;

use crate::exchange::body::BodyContent;
use crate::unseen;
use crate::written::{MessageFacts, MessageList};
use kode_base::effort::Effort;
use kode_model::{
    Block, Capabilities, History, Image, InputSchema, Message, ModelRequest, Role, Wire, WrittenMessage,
};

/// The smallest reasoning budget the API accepts.
const MIN_THINKING_BUDGET: u32 = 1024;

/// Name parts of the models that take a reasoning budget; all later ones set their own by effort.
const BUDGET_MODELS: [&str; 5] = ["claude-3", "-4-0", "-4-1", "-4-5", "-4-2025"];

/// Number of user messages that are marked as ends of the provider's cache.
const CACHED_ENDS: usize = 2;

/// The body of a request.
#[derive(Serialize)]
pub(super) struct MessagesBody<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    anthropic_version: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    model: Option<&'a str>,
    max_tokens: u32,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    system: Vec<RequestBlock<'a>>,
    messages: MessageList<RequestMessage<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<MessagesTool<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    stream: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    temperature: Option<f32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    top_p: Option<f32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    thinking: Option<ThinkingOptions>,
    #[serde(skip_serializing_if = "Option::is_none")]
    output_config: Option<OutputConfig>,
}

impl BodyContent for MessagesBody<'_> {
    fn written(&self) -> &[WrittenMessage] {
        &self.messages.written
    }
}

#[derive(Serialize)]
struct RequestMessage<'a> {
    role: Role,
    content: Vec<RequestBlock<'a>>,
}

#[derive(Serialize)]
struct MessagesTool<'a> {
    name: &'a str,
    description: &'a str,
    input_schema: &'a InputSchema,
}

#[derive(Serialize)]
struct RequestBlock<'a> {
    #[serde(flatten)]
    content: RequestContent<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cache_control: Option<CacheControl>,
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum RequestContent<'a> {
    Text { text: Cow<'a, str> },
    Image { source: ImageSource<'a> },
    Document { source: ImageSource<'a> },
    Thinking { thinking: &'a str, signature: &'a str },
    RedactedThinking { data: &'a str },
    ToolUse { id: &'a str, name: &'a str, input: &'a Value },
    ToolResult { tool_use_id: &'a str, content: ResultContent<'a>, is_error: bool },
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum ImageSource<'a> {
    Base64 { media_type: &'a str, data: &'a str },
}

/// A result: text alone, or text and pictures.
#[derive(Serialize)]
#[serde(untagged)]
enum ResultContent<'a> {
    Text(Cow<'a, str>),
    Parts(Vec<RequestContent<'a>>),
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum CacheControl {
    Ephemeral,
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum ThinkingOptions {
    Enabled { budget_tokens: u32 },
    Adaptive { display: &'static str },
}

#[derive(Serialize)]
struct OutputConfig {
    effort: Effort,
}

/// The body that asks `model` at `host` for the answer to `request`.
pub(super) fn body<'a>(
    model: &'a str,
    host: &str,
    capabilities: Capabilities,
    request: &'a ModelRequest,
) -> MessagesBody<'a> {
    let mut system: Vec<_> =
        request.system.iter().filter_map(|text| text_content(text)).map(RequestBlock::from).collect();
    if let Some(last) = system.last_mut() {
        last.cache_control = Some(CacheControl::Ephemeral);
    }
    let mut messages = messages(model, host, capabilities, &request.messages);
    // The end of this request, and that of the one before: a round of many calls goes further than the API looks back.
    let of_user = messages
        .new
        .iter_mut()
        .rev()
        .map(|(message, _)| message)
        .filter(|message| message.role == Role::User);
    for last in of_user.take(CACHED_ENDS).filter_map(|message| last_cacheable(&mut message.content)) {
        last.cache_control = Some(CacheControl::Ephemeral);
    }
    let reminders = request.reminders.iter().filter_map(|text| text_content(text)).map(RequestBlock::from);
    match messages.new.last_mut().filter(|(message, _)| message.role == Role::User) {
        Some((last, _)) => last.content.extend(reminders),
        None => {
            let content: Vec<_> = reminders.collect();
            if !content.is_empty() {
                messages.new.push((RequestMessage { role: Role::User, content }, request.messages.len()));
            }
        }
    }
    let (thinking, output_config) = match request.effort.filter(|_| capabilities.thinking) {
        Some(effort) => reasoning(model, effort, request.max_tokens, &messages),
        None => (None, None),
    };
    // The API takes no sampling settings together with reasoning.
    let may_sample = thinking.is_none() && capabilities.temperature;
    MessagesBody {
        anthropic_version: None,
        model: Some(model),
        max_tokens: request.max_tokens,
        system,
        messages,
        // No `tool_choice`: another one than before makes the API read none of the cached messages.
        tools: request
            .tools
            .iter()
            .filter(|_| capabilities.tool_use)
            .map(|tool| MessagesTool {
                name: &tool.name,
                description: &tool.description,
                input_schema: &tool.input_schema,
            })
            .collect(),
        stream: Some(capabilities.streaming),
        temperature: request.temperature.filter(|_| may_sample),
        top_p: request.top_p.filter(|_| may_sample),
        thinking,
        output_config,
    }
}

impl MessagesBody<'_> {
    /// The body for a cloud, where the model is in the path and the version in the body.
    pub(super) fn versioned(self, version: &'static str, says_stream: bool) -> Self {
        let stream = self.stream.filter(|_| says_stream);
        Self { anthropic_version: Some(version), model: None, stream, ..self }
    }
}

impl<'a> From<RequestContent<'a>> for RequestBlock<'a> {
    fn from(content: RequestContent<'a>) -> Self {
        Self { content, cache_control: None }
    }
}

/// The messages with something in them, those of one role in a row made one. Those before the ones that are marked are kept for the
/// next request.
fn messages<'a>(
    model: &str,
    host: &str,
    capabilities: Capabilities,
    history: &'a History,
) -> MessageList<RequestMessage<'a>> {
    let mut list = MessageList::of(history, Wire::AnthropicMessages, (model, host), capabilities);
    list.new = new_messages(model, host, capabilities, (history, list.start()));
    let mut marked = marked_from(&list.new);
    if marked.is_none() && !list.written.is_empty() {
        list.written.clear();
        list.new = new_messages(model, host, capabilities, (history, 0));
        marked = marked_from(&list.new);
    }
    list.keep(history, marked.unwrap_or_default(), RequestMessage::facts);
    list
}

/// The first message that is marked as an end of the provider's cache; `None` where there are fewer than are marked.
fn marked_from(messages: &[(RequestMessage<'_>, usize)]) -> Option<usize> {
    let mut of_user = (0..messages.len()).rev().filter(|at| messages[*at].0.role == Role::User);
    of_user.nth(CACHED_ENDS - 1)
}

/// The messages from `start` on.
fn new_messages<'a>(
    model: &str,
    host: &str,
    capabilities: Capabilities,
    (history, start): (&'a [Message], usize),
) -> Vec<(RequestMessage<'a>, usize)> {
    let mut messages: Vec<(RequestMessage<'_>, usize)> = Vec::new();
    for (at, message) in history.iter().enumerate().skip(start) {
        let keeps_reasoning = is_own(model, host, message);
        let blocks = message.content.iter();
        let content =
            blocks.filter_map(|block| content(block, capabilities, keeps_reasoning)).map(RequestBlock::from);
        match messages.last_mut() {
            Some((last, end)) if last.role == message.role => {
                last.content.extend(content);
                *end = at + 1;
            }
            _ => {
                let content: Vec<_> = content.collect();
                if !content.is_empty() {
                    messages.push((RequestMessage { role: message.role, content }, at + 1));
                }
            }
        }
    }
    for (message, _) in &mut messages {
        // The API wants results before anything else the user says; the sort is stable.
        message.content.sort_by_key(|block| {
            message.role == Role::User && !matches!(block.content, RequestContent::ToolResult { .. })
        });
    }
    messages
}

impl RequestMessage<'_> {
    /// Notes of an answer whether it begins with reasoning, and of the user's words whether results are in them.
    fn facts(&self) -> MessageFacts {
        let note = match self.role {
            Role::Assistant => matches!(
                self.content.first().map(|block| &block.content),
                Some(RequestContent::Thinking { .. } | RequestContent::RedactedThinking { .. })
            ),
            Role::User => {
                self.content.iter().any(|block| matches!(block.content, RequestContent::ToolResult { .. }))
            }
        };
        MessageFacts { role: self.role, note }
    }
}

/// Whether a message is this model's own: another one's reasoning is signed for another one.
fn is_own(model: &str, host: &str, message: &Message) -> bool {
    message.origin.as_ref().is_none_or(|origin| origin.is(Wire::AnthropicMessages, model, host))
}

fn content(block: &Block, capabilities: Capabilities, keeps_reasoning: bool) -> Option<RequestContent<'_>> {
    match block {
        Block::Text { text } => text_content(text),
        Block::Image(image) if capabilities.takes(image) => Some(picture(image)),
        Block::Image(image) => Some(RequestContent::Text { text: unseen::note(image).into() }),
        // Reasoning that was cut off has no signature and would be refused.
        Block::Thinking { signature, .. } if signature.is_empty() || !keeps_reasoning => None,
        Block::Thinking { thinking, signature } => Some(RequestContent::Thinking { thinking, signature }),
        // Other wire formats seal whole items as JSON, and an answer made of two does not say any more whose it is.
        Block::RedactedThinking { data } => {
            (keeps_reasoning && !data.starts_with('{')).then_some(RequestContent::RedactedThinking { data })
        }
        Block::ToolUse { id, name, input, input_error: _ } => {
            Some(RequestContent::ToolUse { id, name, input })
        }
        Block::ToolResult { tool_use_id, content, images, is_error } => {
            let text = unseen::noted(content, images, capabilities);
            let mut taken = unseen::taken(images, capabilities).map(picture).peekable();
            let content = if taken.peek().is_none() {
                ResultContent::Text(text)
            } else {
                let text = (!text.trim().is_empty()).then_some(RequestContent::Text { text });
                ResultContent::Parts(text.into_iter().chain(taken).collect())
            };
            Some(RequestContent::ToolResult { tool_use_id, content, is_error: *is_error })
        }
    }
}

fn picture(image: &Image) -> RequestContent<'_> {
    let source = ImageSource::Base64 { media_type: &image.media_type, data: &image.data };
    if image.is_pdf() { RequestContent::Document { source } } else { RequestContent::Image { source } }
}

fn text_content(text: &str) -> Option<RequestContent<'_>> {
    (!text.trim().is_empty()).then_some(RequestContent::Text { text: text.into() })
}

fn last_cacheable<'a, 'b>(content: &'b mut [RequestBlock<'a>]) -> Option<&'b mut RequestBlock<'a>> {
    content.iter_mut().rev().find(|block| {
        !matches!(block.content, RequestContent::Thinking { .. } | RequestContent::RedactedThinking { .. })
    })
}

fn reasoning(
    model: &str,
    effort: Effort,
    max_tokens: u32,
    messages: &MessageList<RequestMessage<'_>>,
) -> (Option<ThinkingOptions>, Option<OutputConfig>) {
    if !BUDGET_MODELS.iter().any(|part| model.contains(part)) {
        return (Some(ThinkingOptions::Adaptive { display: "summarized" }), Some(OutputConfig { effort }));
    }
    let quarters = match effort {
        Effort::Low => 1,
        Effort::Medium => 2,
        Effort::High => 3,
    };
    let budget_tokens = max_tokens / 4 * quarters;
    let allowed = budget_tokens >= MIN_THINKING_BUDGET && may_begin_reasoning(messages);
    (allowed.then_some(ThinkingOptions::Enabled { budget_tokens }), None)
}

/// With a budget the API wants every answer since the user last spoke to begin with reasoning, so a round of tool calls
/// in which one is sent without continues without. Words that come with results are part of the round.
fn may_begin_reasoning(sent: &MessageList<RequestMessage<'_>>) -> bool {
    let new = sent.new.iter().rev().map(|(message, _)| message.facts());
    let written = sent.written.iter().rev();
    let written = written.map(|message| MessageFacts { role: message.role, note: message.note });
    let mut round = new.chain(written).take_while(|message| message.role == Role::Assistant || message.note);
    round.all(|message| message.role == Role::User || message.note)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use kode_model::{AnswerOrigin, ToolChoice, ToolDeclaration};

    fn text(text: &str) -> Block {
        Block::Text { text: text.into() }
    }

    fn user(content: Vec<Block>) -> Message {
        Message::user(content)
    }

    fn assistant(content: Vec<Block>) -> Message {
        Message::assistant(content)
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
        Block::result(id, "", false)
    }

    fn request(messages: Vec<Message>) -> ModelRequest {
        ModelRequest { messages: messages.into(), max_tokens: 8000, ..ModelRequest::default() }
    }

    fn sent(model: &str, request: &ModelRequest) -> Value {
        serde_json::to_value(body(model, "", Capabilities::ALL, request)).unwrap()
    }

    #[test]
    fn a_request_that_wants_no_call_is_the_same_for_the_cache() {
        let tool = ToolDeclaration {
            name: "Read".into(),
            description: String::new(),
            input_schema: json!({}).into(),
            grammar: None,
        };
        let free = ModelRequest { tools: vec![tool], ..request(vec![user(vec![text("hi")])]) };
        let bound = ModelRequest { tool_choice: ToolChoice::None, ..free.clone() };
        assert_eq!(sent("m", &bound), sent("m", &free));
    }

    #[test]
    fn a_model_that_can_do_little_is_asked_for_little() {
        let little = Capabilities {
            streaming: false,
            tool_use: false,
            thinking: false,
            temperature: false,
            ..Capabilities::ALL
        };
        let tool = ToolDeclaration {
            name: "Read".into(),
            description: String::new(),
            input_schema: json!({}).into(),
            grammar: None,
        };
        let request = ModelRequest {
            tools: vec![tool],
            temperature: Some(0.5),
            top_p: Some(0.5),
            effort: Some(Effort::High),
            ..request(vec![user(vec![text("hi")])])
        };
        let cached = json!({"type": "text", "text": "hi", "cache_control": {"type": "ephemeral"}});
        assert_eq!(
            serde_json::to_value(body("m", "", little, &request)).unwrap(),
            json!({"model": "m", "max_tokens": 8000, "stream": false,
                "messages": [{"role": "user", "content": [cached]}]})
        );
    }

    #[test]
    fn a_model_that_sees_no_pictures_is_notified_of_them() {
        let image = Image { media_type: "image/png".into(), data: "cA==".into(), text: None };
        let pictured = |id: &str, content: &str| Block::ToolResult {
            tool_use_id: id.into(),
            content: content.into(),
            images: vec![image.clone()],
            is_error: false,
        };
        let request = request(vec![
            user(vec![text("see"), Block::Image(image.clone())]),
            assistant(vec![call("1"), call("2")]),
            user(vec![pictured("1", "seen"), pictured("2", "")]),
        ]);
        let blind = Capabilities { images: false, ..Capabilities::ALL };
        let sent = serde_json::to_value(body("m", "", blind, &request)).unwrap();
        let note = "[A picture (image/png) is here, which this model cannot see.]";
        assert_eq!(sent["messages"][0]["content"][1]["text"], note);
        assert_eq!(sent["messages"][2]["content"][0]["content"], format!("seen\n\n{note}"));
        assert_eq!(sent["messages"][2]["content"][1]["content"], note);
        assert!(!sent.to_string().contains("cA=="), "{sent}");
    }

    #[test]
    fn a_request_on_the_wire() {
        let thinking = Block::Thinking { thinking: "hm".into(), signature: "sig".into() };
        let request = ModelRequest {
            system: vec!["You are an agent.".into(), String::new(), "Working directory: /w".into()],
            tools: vec![ToolDeclaration {
                name: "Read".into(),
                description: "Reads a file.".into(),
                input_schema: json!({"type": "object", "properties": {"file_path": {"type": "string"}}})
                    .into(),
                grammar: None,
            }],
            temperature: Some(0.5),
            reminders: vec!["<system-reminder>x</system-reminder>".into()],
            ..request(vec![
                user(vec![text("read /a")]),
                assistant(vec![thinking, text("Reading."), call("toolu_1")]),
                user(vec![result("toolu_1"), text("and")]),
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
          {"role":"user","content":[{"type":"text","text":"read /a","cache_control":{"type":"ephemeral"}}]}
          {"role":"assistant","content":[{"type":"thinking","thinking":"hm","signature":"sig"},{"type":"text","text":"Reading."},{"type":"tool_use","id":"toolu_1","name":"Read","input":{"file_path":"/a"}}]}
          {"role":"user","content":[{"type":"tool_result","tool_use_id":"toolu_1","content":"","is_error":false},{"type":"text","text":"and","cache_control":{"type":"ephemeral"}},{"type":"text","text":"<system-reminder>x</system-reminder>"}]}
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
    fn the_ends_of_this_request_and_of_the_one_before_are_marked_and_no_other() {
        let sealed = Block::RedactedThinking { data: "x".into() };
        let request = request(vec![
            user(vec![text("a")]),
            assistant(vec![text("b")]),
            user(vec![text("c")]),
            assistant(vec![text("d")]),
            user(vec![text("e"), text("f"), sealed]),
        ]);
        let sent = sent("m", &request);
        for (message, block) in [(2, 0), (4, 1)] {
            let mark = &sent["messages"][message]["content"][block]["cache_control"];
            assert_eq!(*mark, json!({"type": "ephemeral"}), "{message}");
        }
        assert_eq!(sent.to_string().matches("cache_control").count(), 2);
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
    fn a_round_begun_without_reasoning_continues_without() {
        let signed = |signature: &str| Block::Thinking { thinking: "hm".into(), signature: signature.into() };
        let thinking = || signed("sig");
        let foreign = |content| {
            let origin = AnswerOrigin {
                wire: Wire::AnthropicMessages,
                model: "claude-opus-4-1".into(),
                host: None,
                response_id: None,
            };
            Message { origin: Some(origin), ..assistant(content) }
        };
        let round = |id: &str, thoughts: Option<Block>| {
            let content = thoughts.into_iter().chain([call(id)]).collect();
            vec![assistant(content), user(vec![result(id)])]
        };
        let sealed = Block::RedactedThinking { data: "x".into() };
        let rounds = [
            (round("1", None), false),
            (round("1", Some(thinking())), true),
            (round("1", Some(sealed)), true),
            ([round("1", Some(thinking())), round("2", Some(thinking()))].concat(), true),
            (vec![assistant(vec![text("done")]), user(vec![text("more")])], true),
            (
                [round("1", None), vec![assistant(vec![text("done")]), user(vec![text("more")])]].concat(),
                true,
            ),
            // An earlier answer of the round counts as the last one does.
            ([round("1", None), round("2", Some(thinking()))].concat(), false),
            // Unsent content begins nothing: another model's reasoning, and one that was cut off.
            (vec![foreign(vec![thinking(), call("1")]), user(vec![result("1")])], false),
            (round("1", Some(signed(""))), false),
            // Omitted content is never before the beginning of an answer.
            (
                vec![assistant(vec![text(" "), thinking(), call("1")]), user(vec![result("1"), text("and")])],
                true,
            ),
        ];
        for (round, expected) in rounds {
            let messages = [vec![user(vec![text("hello")])], round].concat();
            let request = ModelRequest { effort: Some(Effort::Medium), ..request(messages) };
            let sent = sent("claude-sonnet-4-5", &request);
            assert_eq!(sent.get("thinking").is_some(), expected, "{}", sent["messages"]);
        }
    }
}
