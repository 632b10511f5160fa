//! A request as a script sees it, whatever wire it came over: prompts, answers and results in order.
//!
//! Rule: only what every wire has is in here, and nothing is judged; that is done before.

use std::sync::Arc;

use serde_json::Value;

use kode_model::Wire;

/// The marks of a denied call in its result.
const REFUSALS: [&str; 3] = ["The user refused: ", "so this was refused: ", "was refused: "];

/// The parts of a request that scripts check.
#[derive(Debug)]
pub(super) struct RequestView<'a> {
    /// The wire it came over.
    pub(super) wire: Wire,
    /// The request itself.
    pub(super) body: &'a Value,
    /// How many bytes it took, with what the server had kept of the conversation.
    pub(super) bytes: usize,
    /// The system prompt, part by part.
    system: Vec<&'a str>,
    entries: Vec<RequestTurn<'a>>,
    /// The ids of all calls.
    call_ids: Vec<&'a str>,
}

#[derive(Debug)]
enum RequestTurn<'a> {
    /// The user's texts, one by one.
    User(Vec<&'a str>),
    /// One answer, of however many parts.
    Answer,
    /// The result of a call.
    Result(Vec<&'a str>),
}

impl<'a> RequestView<'a> {
    /// The question in a request of the Messages format.
    pub(super) fn messages(body: &'a Value, bytes: usize) -> Self {
        let mut question = Self::new(Wire::AnthropicMessages, body, bytes);
        question.system = texts(&body["system"]);
        for message in list(&body["messages"]) {
            let blocks = list(&message["content"]);
            if message["role"] == "system" {
                question.system.extend(texts(&message["content"]));
                continue;
            }
            if message["role"] == "assistant" {
                question.call_ids.extend(blocks.filter_map(|block| block["id"].as_str()));
                question.entries.push(RequestTurn::Answer);
                continue;
            }
            let results = blocks.filter(|block| block["type"] == "tool_result");
            question.entries.extend(results.map(|block| RequestTurn::Result(texts(&block["content"]))));
            question.say(&message["content"]);
        }
        question
    }

    /// The question in a request of the Chat Completions format.
    pub(super) fn chat(body: &'a Value, bytes: usize) -> Self {
        let mut question = Self::new(Wire::ChatCompletions, body, bytes);
        for message in list(&body["messages"]) {
            let content = &message["content"];
            match message["role"].as_str().unwrap_or_default() {
                "system" | "developer" => question.system.extend(texts(content)),
                "assistant" => {
                    let calls = list(&message["tool_calls"]);
                    question.call_ids.extend(calls.filter_map(|call| call["id"].as_str()));
                    question.entries.push(RequestTurn::Answer);
                }
                "tool" => question.entries.push(RequestTurn::Result(texts(content))),
                _ => question.say(content),
            }
        }
        question
    }

    /// The question in a request of the Responses format; `items` are what the server had kept and what came now.
    pub(super) fn responses(body: &'a Value, items: &'a [Arc<Value>], bytes: usize) -> Self {
        let mut question = Self::new(Wire::Responses, body, bytes);
        question.system = texts(&body["instructions"]);
        for item in items {
            match (item["type"].as_str().unwrap_or("message"), item["role"].as_str().unwrap_or_default()) {
                ("message", "system" | "developer") => question.system.extend(texts(&item["content"])),
                ("message", "user") => question.say(&item["content"]),
                ("function_call_output" | "custom_tool_call_output", _) => {
                    question.entries.push(RequestTurn::Result(texts(&item["output"])))
                }
                _ => {
                    question.call_ids.extend(item["call_id"].as_str());
                    if !matches!(question.entries.last(), Some(RequestTurn::Answer)) {
                        question.entries.push(RequestTurn::Answer);
                    }
                }
            }
        }
        question
    }

    /// The question in a request of Gemini's format.
    pub(super) fn gemini(body: &'a Value, bytes: usize) -> Self {
        let mut question = Self::new(Wire::Gemini, body, bytes);
        question.system = part_texts(&body["systemInstruction"]["parts"]);
        for content in list(&body["contents"]) {
            let parts = list(&content["parts"]);
            if content["role"] == "model" {
                question.call_ids.extend(parts.filter_map(|part| part["functionCall"]["id"].as_str()));
                question.entries.push(RequestTurn::Answer);
                continue;
            }
            let results = parts.filter(|part| !part["functionResponse"].is_null());
            question.entries.extend(results.map(|part| {
                let response = &part["functionResponse"]["response"];
                let text = response["output"].as_str().or(response["error"].as_str());
                RequestTurn::Result(text.into_iter().collect())
            }));
            question.say_texts(part_texts(&content["parts"]));
        }
        question
    }

    /// The question in a request of Ollama's format.
    pub(super) fn ollama(body: &'a Value, bytes: usize) -> Self {
        // As far as scripts check it, it is that of Chat Completions.
        Self { wire: Wire::Ollama, ..Self::chat(body, bytes) }
    }

    /// The user's last prompt, and how many answers it has had.
    pub(super) fn prompt(&self) -> (String, usize) {
        let mut answers = 0;
        for entry in self.entries.iter().rev() {
            match entry {
                RequestTurn::User(texts) => return (texts.join("\n"), answers),
                RequestTurn::Answer => answers += 1,
                RequestTurn::Result(_) => {}
            }
        }
        (String::new(), answers)
    }

    /// The text of the user's last prompt, without the blocks that the agent adds.
    pub(super) fn words(&self) -> String {
        let prompt = self.entries.iter().rev().find_map(|entry| match entry {
            RequestTurn::User(texts) => Some(texts),
            RequestTurn::Answer | RequestTurn::Result(_) => None,
        });
        let is_said = |text: &&&str| !text.starts_with('<');
        let said: Vec<&str> = prompt.into_iter().flatten().filter(is_said).copied().collect();
        if said.is_empty() { self.prompt().0 } else { said.join("\n") }
    }

    /// Whether a call since the last prompt was denied.
    pub(super) fn was_refused(&self) -> bool {
        let since = self.entries.iter().rev().take_while(|entry| !matches!(entry, RequestTurn::User(_)));
        let results = since.filter_map(|entry| match entry {
            RequestTurn::Result(texts) => Some(texts),
            RequestTurn::User(_) | RequestTurn::Answer => None,
        });
        results.flatten().any(|text| REFUSALS.iter().any(|words| text.contains(words)))
    }

    /// The text of the newest result; empty without one.
    pub(super) fn last_result(&self) -> String {
        let results = self.entries.iter().rev().find_map(|entry| match entry {
            RequestTurn::Result(texts) => Some(texts.join("\n")),
            RequestTurn::User(_) | RequestTurn::Answer => None,
        });
        results.unwrap_or_default()
    }

    /// The text after `prefix` on the first line that begins with it, in the system prompt, or in what the user says
    /// where a server has no place for one.
    pub(super) fn reported(&self, prefix: &str) -> Option<&'a str> {
        let said = self.entries.iter().flat_map(|entry| match entry {
            RequestTurn::User(texts) => texts.as_slice(),
            RequestTurn::Answer | RequestTurn::Result(_) => &[],
        });
        let mut lines = self.system.iter().chain(said).flat_map(|text| text.lines());
        lines.find_map(|line| line.strip_prefix(prefix))
    }

    /// The ids of all calls in the history.
    pub(super) fn call_ids(&self) -> &[&'a str] {
        &self.call_ids
    }

    fn new(wire: Wire, body: &'a Value, bytes: usize) -> Self {
        Self { wire, body, bytes, system: Vec::new(), entries: Vec::new(), call_ids: Vec::new() }
    }

    /// Adds what the user says, unless it is nothing but reminders.
    fn say(&mut self, content: &'a Value) {
        self.say_texts(texts(content));
    }

    fn say_texts(&mut self, texts: Vec<&'a str>) {
        let said = texts.into_iter().map(without_reminders);
        let said: Vec<&str> = said.filter(|text| !text.is_empty()).collect();
        if !said.is_empty() {
            self.entries.push(RequestTurn::User(said));
        }
    }
}

/// A text without the reminders at its end, which some requests have in one text with the prompt. Empty when there is
/// nothing else.
fn without_reminders(text: &str) -> &str {
    let mut said = text;
    while let Some(rest) = said.trim_end().strip_suffix("</system-reminder>")
        && let Some(start) = rest.rfind("<system-reminder>")
    {
        said = rest[..start].trim_end();
    }
    said
}

/// The texts of Gemini's parts.
fn part_texts(parts: &Value) -> Vec<&str> {
    list(parts).filter_map(|part| part["text"].as_str()).collect()
}

fn list(value: &Value) -> std::slice::Iter<'_, Value> {
    value.as_array().map(Vec::as_slice).unwrap_or_default().iter()
}

/// The texts of a content, which is a string or a list of parts, whatever their wire calls them.
fn texts(content: &Value) -> Vec<&str> {
    match content {
        Value::String(text) => vec![text],
        Value::Array(parts) => parts
            .iter()
            .filter(|part| ["text", "input_text", "output_text"].iter().any(|kind| part["type"] == *kind))
            .filter_map(|part| part["text"].as_str())
            .collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// The same conversation on each wire: a prompt, a round of two calls, their results and a reminder.
    #[test]
    fn every_wire_reports_the_same() {
        let reminder = "<system-reminder>not a prompt</system-reminder>";
        let messages = json!({
            "system": [{"type": "text", "text": "You.\nWorking directory: /w\nMore"}],
            "messages": [
                {"role": "user", "content": "before"},
                {"role": "assistant", "content": [{"type": "text", "text": "yes"}]},
                {"role": "user", "content": [{"type": "text", "text": "fix"}]},
                {"role": "assistant", "content": [
                    {"type": "tool_use", "id": "a", "name": "R", "input": {}},
                    {"type": "tool_use", "id": "b", "name": "R", "input": {}}]},
                {"role": "user", "content": [
                    {"type": "tool_result", "tool_use_id": "a", "content": "first"},
                    {"type": "tool_result", "tool_use_id": "b", "content": [{"type": "text", "text": "last"}]},
                    {"type": "text", "text": reminder}]},
            ],
        });
        let call =
            |id: &str| json!({"id": id, "type": "function", "function": {"name": "R", "arguments": "{}"}});
        let chat = json!({
            "messages": [
                {"role": "system", "content": "You.\nWorking directory: /w\nMore"},
                {"role": "user", "content": "before"},
                {"role": "assistant", "content": "yes"},
                {"role": "user", "content": [{"type": "text", "text": "fix"}]},
                {"role": "assistant", "content": null, "tool_calls": [call("a"), call("b")]},
                {"role": "tool", "tool_call_id": "a", "content": "first"},
                {"role": "tool", "tool_call_id": "b", "content": "last"},
                {"role": "user", "content": reminder},
            ],
        });
        let responses = json!({"instructions": "You.\nWorking directory: /w\nMore"});
        let items: Vec<Arc<Value>> = [
            json!({"role": "user", "content": "before"}),
            json!({"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "yes"}]}),
            json!({"type": "message", "role": "user", "content": [{"type": "input_text", "text": "fix"}]}),
            json!({"type": "reasoning", "id": "rs", "summary": []}),
            json!({"type": "function_call", "call_id": "a", "name": "R", "arguments": "{}"}),
            json!({"type": "function_call", "call_id": "b", "name": "R", "arguments": "{}"}),
            json!({"type": "function_call_output", "call_id": "a", "output": "first"}),
            json!({"type": "function_call_output", "call_id": "b", "output": [{"type": "input_text", "text": "last"}]}),
            json!({"role": "user", "content": [{"type": "input_text", "text": reminder}]}),
        ]
        .into_iter()
        .map(Arc::new)
        .collect();
        let gemini_call = |id: &str| json!({"functionCall": {"id": id, "name": "R", "args": {}}});
        let gemini_result = |id: &str, text: &str| json!({"functionResponse": {"id": id, "name": "R", "response": {"output": text}}});
        let gemini = json!({
            "systemInstruction": {"parts": [{"text": "You.\nWorking directory: /w\nMore"}]},
            "contents": [
                {"role": "user", "parts": [{"text": "before"}]},
                {"role": "model", "parts": [{"text": "yes"}]},
                {"role": "user", "parts": [{"text": "fix"}]},
                {"role": "model", "parts": [gemini_call("a"), gemini_call("b")]},
                {"role": "user", "parts": [
                    gemini_result("a", "first"), gemini_result("b", "last"), {"text": reminder}]},
            ],
        });
        for question in [
            RequestView::gemini(&gemini, 0),
            RequestView::ollama(&chat, 0),
            RequestView::messages(&messages, 0),
            RequestView::chat(&chat, 0),
            RequestView::responses(&responses, &items, 0),
        ] {
            let wire = question.wire;
            assert_eq!(question.prompt(), ("fix".to_owned(), 1), "{wire:?}");
            assert_eq!(question.last_result(), "last", "{wire:?}");
            assert_eq!(question.reported("Working directory: "), Some("/w"), "{wire:?}");
            assert_eq!(question.call_ids(), ["a", "b"], "{wire:?}");
        }
    }

    #[test]
    fn reminders_are_no_part_of_a_prompt() {
        let reminder = "<system-reminder>\nnot a prompt\n</system-reminder>";
        for (text, expected) in [
            (format!("fix\n\n{reminder}\n\n{reminder}\n"), "fix"),
            (format!("{reminder} fix"), &*format!("{reminder} fix")),
            (format!(" {reminder}\n"), ""),
            ("fix\n".to_owned(), "fix\n"),
        ] {
            let body = json!({"messages": [{"role": "user", "content": text}]});
            assert_eq!(RequestView::chat(&body, 0).prompt().0, expected, "{text}");
        }
    }

    #[test]
    fn without_a_system_prompt_the_prompt_is_searched() {
        let body = json!({"messages": [{"role": "user", "content": "You.\nWorking directory: /w\n\nfix"}]});
        assert_eq!(RequestView::chat(&body, 0).reported("Working directory: "), Some("/w"));
    }
}
