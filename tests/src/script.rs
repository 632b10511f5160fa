//! Scripts of the scripted model, built from Rust.
//!
//! Rule: only a nicer way to write the JSON that `kode-ls scripted-model` reads; what it means is decided there.

use serde_json::{Value, json};

/// The answers of a scripted model.
#[derive(Clone, Debug, Default)]
pub struct Script {
    programs: Vec<Value>,
    quirks: serde_json::Map<String, Value>,
}

/// One answer of the model.
#[derive(Clone, Debug, Default)]
pub struct Step {
    content: Vec<Value>,
    fields: serde_json::Map<String, Value>,
}

/// A step that answers with a summary as a compaction wants it: its nine parts, each with `text`.
pub fn summarize(text: &str) -> Step {
    const HEADINGS: [&str; 9] = [
        "Primary request and intent",
        "Technical concepts",
        "Files and code",
        "Errors and fixes",
        "Problem solving",
        "All user messages",
        "Pending tasks",
        "Current work",
        "Next step",
    ];
    say(&HEADINGS.map(|heading| format!("# {heading}\n{text}\n")).concat())
}

/// An answer of one text.
#[must_use]
pub fn say(text: &str) -> Step {
    step().text(text)
}

/// An answer of one tool call.
#[must_use]
pub fn call(name: &str, input: Value) -> Step {
    step().call(name, input)
}

/// An answer without content so far.
#[must_use]
pub fn step() -> Step {
    Step::default()
}

impl Script {
    /// The answers to prompts that no other program is for.
    #[must_use]
    pub fn new(steps: impl IntoIterator<Item = Step>) -> Self {
        Self::default().otherwise(steps)
    }

    /// Adds the answers to prompts that match a regular expression.
    #[must_use]
    pub fn when(mut self, prompt: &str, steps: impl IntoIterator<Item = Step>) -> Self {
        let steps: Vec<Value> = steps.into_iter().map(Step::json).collect();
        self.programs.push(json!({ "when": prompt, "steps": steps }));
        self
    }

    /// Adds the answers to prompts that no other program is for.
    #[must_use]
    pub fn otherwise(mut self, steps: impl IntoIterator<Item = Step>) -> Self {
        let steps: Vec<Value> = steps.into_iter().map(Step::json).collect();
        self.programs.push(json!({ "steps": steps }));
        self
    }

    /// Lets the server do something otherwise than the API it imitates.
    #[must_use]
    pub fn quirk(mut self, name: &str, value: Value) -> Self {
        self.quirks.insert(name.to_owned(), value);
        self
    }

    /// The script as the program reads it.
    #[must_use]
    pub fn json(&self) -> Value {
        json!({ "programs": self.programs, "quirks": self.quirks })
    }
}

impl Step {
    /// Adds text.
    #[must_use]
    pub fn text(self, text: &str) -> Self {
        self.content(json!({ "type": "text", "text": text }))
    }

    /// Adds signed thinking.
    #[must_use]
    pub fn thinking(self, thinking: &str) -> Self {
        self.content(json!({ "type": "thinking", "thinking": thinking, "signature": "signed" }))
    }

    /// Adds a tool call.
    #[must_use]
    pub fn call(self, name: &str, input: Value) -> Self {
        self.content(json!({ "type": "tool_use", "name": name, "input": input }))
    }

    /// Adds a tool call whose arguments are this text, valid or not.
    #[must_use]
    pub fn raw_call(self, name: &str, arguments: &str) -> Self {
        self.content(json!({ "type": "tool_use", "name": name, "raw_input": arguments }))
    }

    /// Holds the answer back after this many of its events, until the gate is released.
    #[must_use]
    pub fn gate(self, name: &str, after_events: usize) -> Self {
        self.field("gate", json!(name)).field("gate_after_events", json!(after_events))
    }

    /// Sends this many characters with each event.
    #[must_use]
    pub fn chunk(self, characters: usize) -> Self {
        self.field("chunk", json!(characters))
    }

    /// Lets requests for this step fail first, one fault each.
    #[must_use]
    pub fn faults(self, faults: impl IntoIterator<Item = Value>) -> Self {
        let faults: Vec<Value> = faults.into_iter().collect();
        self.field("faults", Value::Array(faults))
    }

    /// Says why the model stops, in the wire's words.
    #[must_use]
    pub fn stop_reason(self, reason: &str) -> Self {
        self.field("stop_reason", json!(reason))
    }

    /// Says what the answer costs, in the words of the Messages format.
    #[must_use]
    pub fn usage(self, usage: Value) -> Self {
        self.field("usage", usage)
    }

    /// Answers this many requests in a row.
    #[must_use]
    pub fn repeat(self, times: usize) -> Self {
        self.field("repeat", json!(times))
    }

    fn content(mut self, content: Value) -> Self {
        self.content.push(content);
        self
    }

    fn field(mut self, name: &str, value: Value) -> Self {
        self.fields.insert(name.to_owned(), value);
        self
    }

    fn json(self) -> Value {
        let mut fields = self.fields;
        fields.insert("content".to_owned(), Value::Array(self.content));
        Value::Object(fields)
    }
}
