//! Scripts: what the scripted model answers, as data.
//!
//! Rule: which step answers a request follows from the request alone, so any history can be continued by any
//! server with the same script.

use std::collections::BTreeMap;
use std::io;

use grep_matcher::Matcher;
use grep_regex::RegexMatcher;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// The most characters that `{{last_result}}` puts in.
const MAX_RESULT_CHARS: usize = 2_000;

/// Characters per delta unless a step says otherwise.
const DEFAULT_CHUNK: usize = 12;

/// Everything a scripted model says.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Script {
    /// The programs. The first whose `when` matches the prompt answers it, else the first without `when`.
    pub programs: Vec<Program>,
}

/// The answers to one prompt.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Program {
    /// A regular expression for the text of the user's last prompt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub when: Option<String>,
    /// The answers, one per request since the prompt.
    pub steps: Vec<Step>,
}

/// One answer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Step {
    /// What the model says.
    pub content: Vec<Content>,
    /// Why it stops, in the wire's words; if absent, `tool_use` after a call and `end_turn` after anything else.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stop_reason: Option<String>,
    /// What the answer costs; estimated if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<StepUsage>,
    /// Characters per delta, at least 1.
    #[serde(default = "default_chunk")]
    pub chunk: usize,
    /// The name of a gate at which the answer is held until it is released.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gate: Option<String>,
    /// How many events go out before the gate; with none, not even the response's headers do.
    #[serde(default)]
    pub gate_after_events: usize,
    /// What goes wrong first: each request for this step takes one, then the step is served.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub faults: Vec<Fault>,
}

impl Step {
    /// How many tools the answer calls.
    pub(super) fn calls(&self) -> usize {
        self.content.iter().filter(|content| matches!(content, Content::ToolUse { .. })).count()
    }
}

impl Default for Step {
    fn default() -> Self {
        Self {
            content: Vec::new(),
            stop_reason: None,
            usage: None,
            chunk: DEFAULT_CHUNK,
            gate: None,
            gate_after_events: 0,
            faults: Vec::new(),
        }
    }
}

/// A piece of an answer. Texts, and the strings within the input of a call, may hold `{{cwd}}`, `{{prompt}}` and
/// `{{last_result}}`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case", deny_unknown_fields)]
pub enum Content {
    /// Text.
    Text {
        /// The text.
        text: String,
    },
    /// Reasoning.
    Thinking {
        /// The reasoning as shown.
        thinking: String,
        /// The proof that it is unchanged.
        #[serde(default)]
        signature: String,
    },
    /// Sealed reasoning.
    RedactedThinking {
        /// The sealed data.
        data: String,
    },
    /// A call of a tool.
    ToolUse {
        /// The tool.
        name: String,
        /// The arguments.
        #[serde(default)]
        input: Map<String, Value>,
        /// The arguments as raw text instead, to send what is no valid JSON.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        raw_input: Option<String>,
        /// The id of the call; a unique one if absent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        id: Option<String>,
    },
}

/// The cost of an answer, in the wire's words.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct StepUsage {
    /// Input that was not cached.
    pub input_tokens: u64,
    /// Output, reasoning included.
    pub output_tokens: u64,
    /// Input read from the cache.
    pub cache_read_input_tokens: u64,
    /// Input written to the cache.
    pub cache_creation_input_tokens: u64,
}

/// Something that goes wrong with a request.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged, deny_unknown_fields)]
pub enum Fault {
    /// A response of its own.
    Status {
        /// The HTTP status.
        status: u16,
        /// Headers of the response.
        #[serde(default)]
        headers: BTreeMap<String, String>,
        /// The body: a string as it is, anything else as JSON; an error in the API's shape if absent.
        #[serde(default)]
        body: Option<Value>,
    },
    /// The step's answer, with the connection closed in the middle.
    Cut {
        /// How many events go out before.
        cut_after_events: usize,
    },
    /// A stream of its own.
    Raw {
        /// The body, sent as an event stream.
        raw: String,
    },
    /// Nothing at all, for as long as the client waits, if `true`.
    Hang {
        /// Whether to hang; `false` serves the step.
        hang: bool,
    },
}

fn default_chunk() -> usize {
    DEFAULT_CHUNK
}

impl Script {
    /// Reads a script from JSON.
    ///
    /// # Errors
    /// Saying what is wrong and where.
    pub fn from_json(json: &str) -> io::Result<Self> {
        Ok(serde_json::from_str(json)?)
    }

    /// The script of the built-in demo, which works in any workspace.
    ///
    /// # Errors
    /// None in a build whose tests passed.
    pub fn demo() -> io::Result<Self> {
        Self::from_json(include_str!("demo.json"))
    }
}

/// A script whose patterns have been compiled.
#[derive(Debug)]
pub(super) struct Scenes {
    programs: Vec<(Option<RegexMatcher>, Vec<Step>)>,
}

/// Where in a script a request is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Position {
    /// The program's number.
    pub(super) program: usize,
    /// The step's number within it.
    pub(super) step: usize,
}

impl Scenes {
    /// Compiles a script.
    ///
    /// # Errors
    /// Naming the pattern that is no regular expression.
    pub(super) fn new(script: Script) -> io::Result<Self> {
        let compile = |pattern: String| {
            RegexMatcher::new(&pattern).map_err(|error| {
                io::Error::new(io::ErrorKind::InvalidInput, format!("the pattern `{pattern}`: {error}"))
            })
        };
        let programs = script
            .programs
            .into_iter()
            .map(|Program { when, steps }| Ok((when.map(compile).transpose()?, steps)));
        Ok(Self { programs: programs.collect::<io::Result<_>>()? })
    }

    /// The step that answers a request, and its position; none beyond the end of the program.
    pub(super) fn find(&self, request: &Value) -> Option<(Position, &Step)> {
        let (prompt, step) = prompt(request);
        let matches = |when: &RegexMatcher| when.is_match(prompt.as_bytes()).unwrap_or(false);
        let chosen = self.programs.iter().position(|(when, _)| when.as_ref().is_some_and(matches));
        let program = chosen.or_else(|| self.programs.iter().position(|(when, _)| when.is_none()))?;
        Some((Position { program, step }, self.programs[program].1.get(step)?))
    }
}

/// What the templates of a request stand for.
pub(super) struct Templates {
    values: [(&'static str, String); 3],
}

impl Templates {
    /// The values in `request`.
    pub(super) fn new(request: &Value) -> Self {
        let system = texts(&request["system"]).join("\n");
        let cwd = system.lines().find_map(|line| line.strip_prefix("Working directory: ")).unwrap_or(".");
        let results = blocks(request).filter(|block| block["type"] == "tool_result");
        let last_result = results.last().map(|block| texts(&block["content"]).join("\n")).unwrap_or_default();
        Self {
            values: [
                ("{{cwd}}", cwd.trim().to_owned()),
                ("{{prompt}}", prompt(request).0),
                ("{{last_result}}", last_result.chars().take(MAX_RESULT_CHARS).collect()),
            ],
        }
    }

    /// `text` with the templates in it filled. What is put in is not searched again.
    pub(super) fn fill(&self, text: &str) -> String {
        let mut filled = String::with_capacity(text.len());
        let mut rest = text;
        while let Some(start) = rest.find("{{") {
            filled.push_str(&rest[..start]);
            rest = &rest[start..];
            let known = self.values.iter().find(|(name, _)| rest.starts_with(name));
            let (name, value) = known.map_or(("{{", "{{"), |(name, value)| (name, value.as_str()));
            filled.push_str(value);
            rest = &rest[name.len()..];
        }
        filled.push_str(rest);
        filled
    }

    /// `value` with the templates in all its strings filled.
    pub(super) fn fill_value(&self, value: &Value) -> Value {
        match value {
            Value::String(text) => Value::String(self.fill(text)),
            Value::Array(items) => items.iter().map(|item| self.fill_value(item)).collect(),
            Value::Object(fields) => {
                Value::Object(fields.iter().map(|(key, item)| (key.clone(), self.fill_value(item))).collect())
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => value.clone(),
        }
    }
}

/// The user's last prompt, and how many answers it has had.
fn prompt(request: &Value) -> (String, usize) {
    let mut answers = 0;
    for message in request["messages"].as_array().into_iter().flatten().rev() {
        if message["role"] == "assistant" {
            answers += 1;
            continue;
        }
        let said: Vec<&str> =
            texts(&message["content"]).into_iter().filter(|text| !is_reminder(text)).collect();
        if !said.is_empty() {
            return (said.join("\n"), answers);
        }
    }
    (String::new(), answers)
}

fn is_reminder(text: &str) -> bool {
    let text = text.trim();
    text.starts_with("<system-reminder>") && text.ends_with("</system-reminder>")
}

/// The blocks of the whole history.
pub(super) fn blocks(request: &Value) -> impl Iterator<Item = &Value> {
    let messages = request["messages"].as_array().into_iter().flatten();
    messages.flat_map(|message| message["content"].as_array().into_iter().flatten())
}

/// The texts of a content, which is a string or a list of blocks.
fn texts(content: &Value) -> Vec<&str> {
    match content {
        Value::String(text) => vec![text],
        Value::Array(blocks) => blocks
            .iter()
            .filter(|block| block["type"] == "text")
            .filter_map(|block| block["text"].as_str())
            .collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn say(text: &str) -> Step {
        Step { content: vec![Content::Text { text: text.into() }], ..Step::default() }
    }

    fn scenes() -> Scenes {
        let program = |when: Option<&str>, texts: &[&str]| Program {
            when: when.map(Into::into),
            steps: texts.iter().map(|text| say(text)).collect(),
        };
        let programs = vec![
            program(None, &["default 0"]),
            program(Some("(?i)^fix"), &["fix 0", "fix 1"]),
            program(None, &["never"]),
        ];
        Scenes::new(Script { programs }).unwrap()
    }

    fn found(messages: Value) -> Option<String> {
        let scenes = scenes();
        let (_, step) = scenes.find(&json!({ "messages": messages }))?;
        match &step.content[0] {
            Content::Text { text } => Some(text.clone()),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn prompts_choose_the_program_and_answers_the_step() {
        let user = |text: &str| json!({"role": "user", "content": [{"type": "text", "text": text}]});
        let answer = json!({"role": "assistant", "content": [{"type": "text", "text": "…"}]});
        let result = json!({"role": "user", "content": [
            {"type": "tool_result", "tool_use_id": "x", "content": "r"},
            {"type": "text", "text": "<system-reminder>not a prompt</system-reminder>\n"},
        ]});
        for (messages, expected) in [
            (json!([user("Fix it")]), Some("fix 0")),
            (json!([user("please fix it")]), Some("default 0")),
            (json!([{"role": "user", "content": "fix as a string"}]), Some("fix 0")),
            (json!([user("fix"), answer, result]), Some("fix 1")),
            (json!([user("fix"), answer, result, answer, result]), None),
            (json!([user("fix"), answer, user("hello")]), Some("default 0")),
            (json!([user("hello"), answer, user("fix"), answer, result]), Some("fix 1")),
            (json!([]), Some("default 0")),
        ] {
            assert_eq!(found(messages.clone()).as_deref(), expected, "{messages}");
        }
    }

    #[test]
    fn templates_are_filled_once_and_everywhere() {
        let request = json!({
            "system": [{"type": "text", "text": "You.\nWorking directory: /w/x \nMore"}],
            "messages": [
                {"role": "user", "content": "say {{cwd}}"},
                {"role": "assistant", "content": []},
                {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "x", "content": "first"}]},
                {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "y", "content":
                    [{"type": "text", "text": "last"}]}]},
            ],
        });
        let templates = Templates::new(&request);
        assert_eq!(
            templates.fill("{{cwd}}|{{prompt}}|{{last_result}}|{{x}}|{{"),
            "/w/x|say {{cwd}}|last|{{x}}|{{"
        );
        let value = json!({"a": ["{{cwd}}/f", 1], "{{cwd}}": null});
        assert_eq!(templates.fill_value(&value), json!({"a": ["/w/x/f", 1], "{{cwd}}": null}));
        assert_eq!(Templates::new(&json!({})).fill("{{cwd}}{{prompt}}{{last_result}}"), ".");
    }

    #[test]
    fn scripts_are_read_strictly() {
        let script = Script::from_json(
            r#"{"programs": [{"steps": [{"content": [{"type": "tool_use", "name": "Read"}], "faults": [
                {"status": 429, "headers": {"retry-after": "1"}}, {"cut_after_events": 3}, {"raw": "x"},
                {"hang": true}]}]}]}"#,
        )
        .unwrap();
        let faults = &script.programs[0].steps[0].faults;
        assert!(matches!(
            faults[..],
            [
                Fault::Status { status: 429, .. },
                Fault::Cut { cut_after_events: 3 },
                Fault::Raw { .. },
                Fault::Hang { hang: true }
            ]
        ));
        for wrong in [
            r#"{"programs": [], "extra": 1}"#,
            r#"{"programs": [{"steps": [{"content": [], "chunks": 1}]}]}"#,
            r#"{"programs": [{"steps": [{"content": [], "faults": [{"explode": 1}]}]}]}"#,
        ] {
            assert!(Script::from_json(wrong).is_err(), "{wrong}");
        }
        let pattern = Program { when: Some("(".into()), steps: vec![] };
        assert!(Scenes::new(Script { programs: vec![pattern] }).is_err());
    }

    #[test]
    fn the_demo_has_an_answer_to_anything() {
        let scenes = Scenes::new(Script::demo().unwrap()).unwrap();
        let ask = |text: &str| json!({"messages": [{"role": "user", "content": text}]});
        let (demo, _) = scenes.find(&ask("Fix the greeting of the demo-project.")).unwrap();
        let (other, _) = scenes.find(&ask("anything")).unwrap();
        assert_ne!(demo.program, other.program);
    }
}
