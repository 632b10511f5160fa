//! Every provider by every ability: the cells of the table in server/docs/models.md.
//!
//! Rule: one conversation for each provider, and one test for each ability that checks it. The table names all of these
//! tests and no other.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::OnceLock;

use base64::Engine as _;
use kode_e2e::{Offer, Project, Script, say, step};
use serde_json::{Value, json};

use super::{DOCUMENT, PICTURE, Wire, last_text, read};

/// The names of the abilities in the table, in its order, and the tests of them.
const ABILITIES: [(&str, &str); 8] = [
    ("streaming", "streaming"),
    ("tools", "tools"),
    ("thinking kept", "thinking"),
    ("images", "images"),
    ("PDF", "pdf"),
    ("caching", "caching"),
    ("usage", "usage"),
    ("discovery", "discovery"),
];

/// The form of a sent document.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Documents {
    /// The document itself.
    Native,
    /// Its text, page by page.
    Text,
}

/// A provider as the tests know it.
struct Provider {
    wire: Wire,
    /// The profile, with `{}` for the address of the server.
    profile: fn() -> Value,
    variables: &'static [(&'static str, &'static str)],
    documents: Documents,
    /// The list of models at this path, or none where the provider has no list.
    list: Option<ModelList>,
}

/// The path of a list, and the list.
type ModelList = (&'static str, fn() -> Value);

/// The results of one conversation.
struct Run {
    /// The requests, in order: the call, its result, picture and document, the streamed answer.
    requests: Vec<Value>,
    /// The usage of the first turn.
    usage: Value,
    /// The result of the call in the second request of the first turn.
    results: Vec<String>,
    /// The screen while the answer was held in its middle.
    in_the_middle: String,
    /// The whole of it.
    whole: String,
    discovered: Value,
}

impl Provider {
    fn run(&self) -> Run {
        let usage = json!({ "input_tokens": 200, "output_tokens": 34 });
        let reads = [
            step().thinking("First I look.").call("Read", read("a.txt")).usage(usage.clone()),
            say("It says: {{last_result}}").usage(usage),
        ];
        let counts = [say("one two three four five six seven eight").chunk(4).gate("middle", 9)];
        let script =
            Script::default().when("^read it", reads).when("^count", counts).otherwise([say("Seen.")]);
        let pages = self.list.map(|(path, list)| json!({ path: list() })).unwrap_or_default();
        let script = if self.list.is_some() { script.quirk("pages", pages) } else { script };
        let project = Project::new(&script);
        project.write("a.txt", "the text\n");
        let profile = (self.profile)().to_string().replace("{}", project.model.base_url());
        let client = project.start_as(&[], self.variables);
        let options = json!({ "model": serde_json::from_str::<Value>(&profile).unwrap() });
        client.initialize(Offer::kode().options(options).params(&project.workspace()));
        let session = client.session();
        let done = session.run("read it");
        assert_eq!(done["stopReason"], "end_turn", "{profile}: {:?}", session.notices());
        let input = json!([
            { "type": "text", "text": "what is it?" },
            { "type": "image", "mediaType": "image/png", "data": PICTURE },
            { "type": "image", "mediaType": "application/pdf",
              "data": base64::engine::general_purpose::STANDARD.encode(DOCUMENT) },
        ]);
        let turn = session.call("agent/turn/start", json!({ "input": input }));
        session.wait_done(turn["turnId"].as_str().unwrap());
        let turn = session.prompt("count");
        project.model.wait_until_held("middle");
        session.wait_event("the first words", |event| {
            event["type"] == "text_chunk"
                || (event["item"]["body"]["type"] == "agentMessage"
                    && event["item"]["body"]["complete"] == false)
        });
        let in_the_middle = last_text(&session);
        project.model.release("middle");
        session.wait_done(&turn);
        let requests = project.model.requests();
        assert_eq!(project.model.refusals(), Vec::<Value>::new(), "{profile}");
        Run {
            usage: done["usage"].clone(),
            results: self.wire.results(&requests[1]),
            in_the_middle,
            whole: last_text(&session),
            discovered: client.call("agent/models/discover", json!({ "profile": "main" }))["servers"][0]
                .clone(),
            requests,
        }
    }

    fn streaming(&self, run: &Run) {
        assert!(
            !run.in_the_middle.is_empty() && run.in_the_middle.len() < run.whole.len(),
            "{}",
            run.in_the_middle
        );
        assert_eq!(run.whole, "one two three four five six seven eight");
    }

    fn tools(&self, run: &Run) {
        assert_eq!(run.results.len(), 1, "{:?}", run.results);
        assert!(run.results[0].contains("the text"), "{:?}", run.results);
    }

    fn thinking(&self, run: &Run) {
        let request = run.requests[1].to_string();
        let kept = match self.wire {
            Wire::Messages => {
                request.contains(r#""type":"thinking""#) && request.contains(r#""signature":""#)
            }
            Wire::Chat => request.contains(r#""reasoning_content":"First I look.""#),
            Wire::Responses => {
                run.requests[1]["previous_response_id"].is_string()
                    || request.contains(r#""type":"reasoning""#)
            }
            Wire::Gemini => request.contains("thoughtSignature"),
            Wire::Ollama => request.contains(r#""thinking":"First I look.""#),
        };
        assert!(kept, "{request}");
    }

    fn images(&self, run: &Run) {
        assert!(run.requests[2].to_string().contains(PICTURE), "{}", run.requests[2]);
    }

    fn pdf(&self, run: &Run) {
        let request = run.requests[2].to_string();
        let is_text = request.contains("[Page 1 of 1]\\nInvoice 4711");
        let is_native = request.contains("JVBERi0xLjQ");
        let expected = (self.documents == Documents::Native, self.documents == Documents::Text);
        assert_eq!((is_native, is_text), expected, "{request}");
    }

    /// The caches of providers can be used again: the next request begins as the one before, and marks or keys are sent
    /// where the provider wants them.
    fn caching(&self, run: &Run) {
        if self.wire == Wire::Messages {
            assert!(run.requests[1].to_string().contains("cache_control"), "{}", run.requests[1]);
            return;
        }
        // Content that the provider has stored is not sent again.
        if run.requests[1..3].iter().any(|request| request["previous_response_id"].is_string()) {
            return;
        }
        let history = |request: &Value| {
            let field = match self.wire {
                Wire::Gemini => "contents",
                Wire::Responses => "input",
                Wire::Messages | Wire::Chat | Wire::Ollama => "messages",
            };
            request[field].as_array().cloned().unwrap_or_default()
        };
        let (before, now) = (history(&run.requests[1]), history(&run.requests[2]));
        // The newest messages carry texts for a single request.
        let same = before.len() - 1;
        assert_eq!(before[..same], now[..same]);
        for field in ["tools", "systemInstruction", "instructions", "system"] {
            assert_eq!(run.requests[1][field], run.requests[2][field], "{field}");
        }
    }

    fn usage(&self, run: &Run) {
        assert_eq!(
            (&run.usage["inputTokens"], &run.usage["outputTokens"]),
            (&json!(400), &json!(68)),
            "{}",
            run.usage
        );
    }

    fn discovery(&self, run: &Run) {
        let models: Vec<&Value> = run.discovered["models"].as_array().unwrap().iter().collect();
        match self.list {
            Some(_) => assert!(models.iter().any(|model| model["name"].is_string()), "{}", run.discovered),
            // It is reported that there is no list.
            None => {
                assert!(run.discovered["problem"]["message"].as_str().unwrap().contains("lists no models"))
            }
        }
    }
}

fn openai_list() -> Value {
    json!({ "object": "list", "data": [{ "id": "gpt-test", "object": "model", "owned_by": "test" }] })
}

fn gemini_list() -> Value {
    json!({ "models": [{ "name": "models/gemini-3-test", "inputTokenLimit": 1_048_576, "outputTokenLimit": 65_536,
        "supportedGenerationMethods": ["generateContent"] }] })
}

fn ollama_list() -> Value {
    json!({ "models": [{ "name": "gemma-test", "model": "gemma-test" }] })
}

/// Abilities of a chat model of which nothing is known.
fn able() -> Value {
    json!({ "images": true, "thinking": true, "sendsReasoningBack": true })
}

const AWS: &[(&str, &str)] = &[
    ("AWS_ACCESS_KEY_ID", "AKIDEXAMPLE"),
    ("AWS_SECRET_ACCESS_KEY", "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"),
];

macro_rules! providers {
    ($($name:ident: $provider:expr;)*) => {
        /// The providers, as the table calls them.
        const PROVIDERS: &[&str] = &[$(stringify!($name)),*];

        $(mod $name {
            use super::*;

            const PROVIDER: Provider = $provider;

            fn run() -> &'static Run {
                static RUN: OnceLock<Run> = OnceLock::new();
                RUN.get_or_init(|| PROVIDER.run())
            }

            providers!(@tests streaming tools thinking images pdf caching usage discovery);
        })*
    };
    (@tests $($ability:ident)*) => {
        $(#[test]
        fn $ability() {
            PROVIDER.$ability(run());
        })*
    };
}

providers! {
    anthropic: Provider {
        wire: Wire::Messages,
        profile: || json!({ "provider": "anthropic", "baseUrl": "{}", "model": "claude-test", "apiKey": "test-key",
            "effort": "low" }),
        variables: &[],
        documents: Documents::Native,
        list: Some(("/v1/models", openai_list)),
    };
    openai: Provider {
        wire: Wire::Responses,
        profile: || json!({ "provider": "openai-responses", "baseUrl": "{}/v1", "model": "gpt-test",
            "apiKey": "test-key", "effort": "low" }),
        variables: &[],
        documents: Documents::Native,
        list: Some(("/v1/models", openai_list)),
    };
    openai_compatible: Provider {
        wire: Wire::Chat,
        profile: || json!({ "provider": "openai", "baseUrl": "{}/v1", "model": "gpt-test", "apiKey": "test-key",
            "effort": "low", "capabilities": able() }),
        variables: &[],
        documents: Documents::Text,
        list: Some(("/v1/models", openai_list)),
    };
    gemini: Provider {
        wire: Wire::Gemini,
        profile: || json!({ "provider": "gemini", "baseUrl": "{}/v1beta", "model": "gemini-3-test",
            "apiKey": "test-key", "effort": "low" }),
        variables: &[],
        documents: Documents::Native,
        list: Some(("/v1beta/models", gemini_list)),
    };
    bedrock: Provider {
        wire: Wire::Messages,
        profile: || json!({ "provider": "bedrock", "baseUrl": "{}", "model": "us.anthropic.claude-sonnet-5-v1:0",
            "region": "us-east-1", "effort": "low" }),
        variables: AWS,
        documents: Documents::Native,
        list: None,
    };
    vertex: Provider {
        wire: Wire::Messages,
        profile: || json!({ "provider": "vertex", "baseUrl": "{}", "model": "claude-sonnet-5", "project": "p",
            "apiKey": "test-token", "effort": "low" }),
        variables: &[],
        documents: Documents::Native,
        list: None,
    };
    vertex_gemini: Provider {
        wire: Wire::Gemini,
        profile: || json!({ "provider": "vertex", "baseUrl": "{}", "model": "gemini-3-test", "project": "p",
            "apiKey": "test-token", "effort": "low" }),
        variables: &[],
        documents: Documents::Native,
        list: None,
    };
    azure: Provider {
        wire: Wire::Responses,
        profile: || json!({ "provider": "azure", "baseUrl": "{}/openai", "model": "gpt-test", "apiKey": "test-key",
            "effort": "low" }),
        variables: &[],
        documents: Documents::Native,
        list: None,
    };
    azure_deployments: Provider {
        wire: Wire::Chat,
        profile: || json!({ "provider": "azure", "baseUrl": "{}/openai", "model": "gpt-test", "apiKey": "test-key",
            "apiVersion": "2024-10-21", "effort": "low", "capabilities": able() }),
        variables: &[],
        documents: Documents::Text,
        list: None,
    };
    ollama: Provider {
        wire: Wire::Ollama,
        profile: || json!({ "provider": "ollama", "baseUrl": "{}", "model": "gemma-test", "contextWindow": 100_000,
            "effort": "low", "capabilities": able() }),
        variables: &[],
        documents: Documents::Text,
        list: Some(("/api/tags", ollama_list)),
    };
    llamacpp: Provider {
        wire: Wire::Chat,
        profile: || json!({ "provider": "llamacpp", "baseUrl": "{}/v1", "model": "gpt-test", "contextWindow": 100_000,
            "apiKey": "test-key", "effort": "low", "capabilities": able() }),
        variables: &[],
        documents: Documents::Text,
        list: Some(("/v1/models", openai_list)),
    };
}

#[test]
fn the_table_of_the_documentation_names_these_tests_and_no_other() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../server/docs/models.md");
    let page = std::fs::read_to_string(page).unwrap();
    let heads: Vec<&str> = ABILITIES.iter().map(|(title, _)| *title).collect();
    let head = format!("| provider | {} |", heads.join(" | "));
    let rows =
        page.split(&head).nth(1).expect("the table").lines().skip(2).take_while(|line| line.starts_with('|'));
    let mut listed = BTreeSet::new();
    for row in rows {
        let cells: Vec<&str> = row.trim_matches('|').split('|').map(str::trim).collect();
        assert_eq!(cells.len(), ABILITIES.len() + 1, "{row}");
        for (cell, (title, _)) in cells[1..].iter().zip(ABILITIES) {
            let test = cell.split('`').nth(1).unwrap_or_else(|| panic!("{title} names no test: {row}"));
            assert!(listed.insert(test.to_owned()), "{test} stands twice");
        }
    }
    let tests: BTreeSet<String> = PROVIDERS
        .iter()
        .flat_map(|provider| ABILITIES.map(|(_, test)| format!("{provider}::{test}")))
        .collect();
    assert_eq!(listed, tests);
}
