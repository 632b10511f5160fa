//! Scripts: what the scripted model answers, as data.
//!
//! Rule: a script states the content and not the form of a wire, so that one script serves them all; what only one
//! kind of server does is a quirk.

use std::collections::BTreeMap;
use std::io;
use std::num::NonZeroU32;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// Characters per delta unless a step says otherwise.
const DEFAULT_CHUNK: usize = 12;

/// Everything a scripted model says.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Script {
    /// The programs. The first whose `when` matches the prompt answers it, else the first without `when`.
    pub programs: Vec<ScriptProgram>,
    /// The differences of this server from the API it imitates.
    #[serde(default, skip_serializing_if = "Quirks::is_none")]
    pub quirks: Quirks,
}

/// The differences of a server from the API whose wire it speaks, as in many compatible ones.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Quirks {
    /// Requests need no key.
    pub keyless: bool,
    /// The most bytes of a request's body; longer ones are refused (413).
    pub max_request_bytes: Option<usize>,
    /// Fields at the top of a request that are refused (400).
    pub refused_fields: Vec<String>,
    /// Streaming is refused (400).
    pub no_streaming: bool,
    /// Tools, and calls and results in the history, are refused (400).
    pub no_tools: bool,
    /// Chat: messages with the role `system` or `developer` are refused (400).
    pub no_system_role: bool,
    /// Chat: no usage is sent, even where it is asked for.
    pub no_usage: bool,
    /// Chat: each call comes in one piece and without its index.
    pub whole_calls: bool,
    /// Chat: calls have no ids.
    pub no_call_ids: bool,
    /// Chat: the name of the field that reasoning comes in; `reasoning_content` if absent.
    pub reasoning_field: Option<String>,
    /// Chat: the first call of each answer has a signature, and histories without signatures are refused (400).
    pub signed_calls: bool,
    /// Chat: reasoning comes as `reasoning_details`, and histories that lack a part of it are refused (400).
    pub reasoning_details: bool,
    /// The context window in tokens, from which on prompts lose their beginning in silence: no more are reported.
    pub cuts_above: Option<u64>,
    /// The context window in tokens, from which on requests are refused (400).
    pub refuses_above: Option<u64>,
    /// Further parts the server answers, by path: the lists of models that local servers have.
    pub pages: BTreeMap<String, Value>,
    /// Responses: no response is kept, so none can be continued from.
    pub forgetful: bool,
    /// Requests are answered unchecked: the programs of others send fields that no page of the API names.
    pub unchecked: bool,
}

impl Quirks {
    fn is_none(&self) -> bool {
        *self == Self::default()
    }
}

/// The answers to one prompt.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ScriptProgram {
    /// A regular expression for the text of the user's last prompt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub when: Option<String>,
    /// The answers, one per request since the prompt.
    pub steps: Vec<ScriptStep>,
}

/// One answer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ScriptStep {
    /// The content of the answer.
    pub content: Vec<ScriptContent>,
    /// The content instead, once a call of this prompt was denied.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub after_refusal: Vec<ScriptContent>,
    /// Why it stops, in the words of the Messages format, which the other wires put into their own; if absent,
    /// `tool_use` after a call and `end_turn` after anything else.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stop_reason: Option<String>,
    /// The usage of the answer; estimated if absent.
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
    /// How many events of a stream go out in a second, as a model writes them; as fast as they can be sent without it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate: Option<NonZeroU32>,
    /// Further headers of the response, for example the provider's rate limits.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, String>,
    /// How many requests in a row the step answers, at least 1.
    #[serde(default = "once")]
    pub repeat: usize,
    /// The first faults: each request for this step takes one, then the step is served.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub faults: Vec<ScriptFault>,
}

impl ScriptStep {
    /// The content of the step, before or after a call of the prompt was denied.
    pub(super) fn said(&self, was_refused: bool) -> &[ScriptContent] {
        if was_refused && !self.after_refusal.is_empty() { &self.after_refusal } else { &self.content }
    }

    /// How many tools the answer calls.
    pub(super) fn calls(&self, was_refused: bool) -> usize {
        self.said(was_refused)
            .iter()
            .filter(|content| matches!(content, ScriptContent::ToolUse { .. }))
            .count()
    }
}

impl Default for ScriptStep {
    fn default() -> Self {
        Self {
            content: Vec::new(),
            after_refusal: Vec::new(),
            stop_reason: None,
            usage: None,
            chunk: DEFAULT_CHUNK,
            gate: None,
            gate_after_events: 0,
            rate: None,
            headers: BTreeMap::new(),
            repeat: 1,
            faults: Vec::new(),
        }
    }
}

/// A piece of an answer. Texts, and the strings within the input of a call, may hold `{{cwd}}`, `{{prompt}}`,
/// `{{last_result}}` and `{{round}}`, which counts the answers since the prompt from 0.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case", deny_unknown_fields)]
pub enum ScriptContent {
    /// Text.
    Text {
        /// The text.
        text: String,
    },
    /// A refusal to answer; the Messages format has no form of its own for it and says it as text.
    Refusal {
        /// The text.
        text: String,
    },
    /// Reasoning. Responses show it where a summary was asked for, and seal it where that was.
    Thinking {
        /// The reasoning as shown.
        thinking: String,
        /// The proof that it is unchanged.
        #[serde(default)]
        signature: String,
    },
    /// Sealed reasoning, of which Chat Completions knows nothing.
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
        /// The arguments as raw text instead, to send invalid JSON.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        raw_input: Option<String>,
        /// The id of the call; a unique one if absent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        id: Option<String>,
    },
}

/// The cost of an answer, in the words of the Messages format.
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
    /// The part of the output that is reasoning, which the OpenAI formats tell.
    pub reasoning_tokens: u64,
}

/// Something that goes wrong with a request.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged, deny_unknown_fields)]
pub enum ScriptFault {
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
    /// Every response kept so far is forgotten before this request is checked, if `true`.
    Forget {
        /// Whether to forget.
        forget: bool,
    },
}

fn default_chunk() -> usize {
    DEFAULT_CHUNK
}

fn once() -> usize {
    1
}

impl Script {
    /// Reads a script from JSON.
    ///
    /// # Errors
    /// The problem and its place.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scripts_are_read_strictly() {
        let script = Script::from_json(
            r#"{"programs": [{"steps": [{"content": [{"type": "tool_use", "name": "Read"}], "faults": [
                {"status": 429, "headers": {"retry-after": "1"}}, {"cut_after_events": 3}, {"raw": "x"},
                {"hang": true}, {"forget": true}], "repeat": 2}]}], "quirks": {"no_usage": true}}"#,
        )
        .unwrap();
        let faults = &script.programs[0].steps[0].faults;
        assert!(matches!(
            faults[..],
            [
                ScriptFault::Status { status: 429, .. },
                ScriptFault::Cut { cut_after_events: 3 },
                ScriptFault::Raw { .. },
                ScriptFault::Hang { hang: true },
                ScriptFault::Forget { forget: true }
            ]
        ));
        for wrong in [
            r#"{"programs": [], "extra": 1}"#,
            r#"{"programs": [], "quirks": {"no_manners": true}}"#,
            r#"{"programs": [{"steps": [{"content": [], "chunks": 1}]}]}"#,
            r#"{"programs": [{"steps": [{"content": [], "faults": [{"explode": 1}]}]}]}"#,
        ] {
            assert!(Script::from_json(wrong).is_err(), "{wrong}");
        }
    }
}
