//! Data that only its provider reads comes back to that provider, whatever becomes of the conversation in between.
//!
//! Rule: the server refuses as the real ones document: Gemini 3 calls without signatures, over its own format and over the
//! one that is compatible with OpenAI's, OpenRouter's providers reasoning details that are incomplete or in another order.
//! Every test ends without a refusal.

use kode_e2e::{Client, Offer, Project, Script, Session, say, step, summarize};
use serde_json::{Value, json};

use super::{Wire, answer, read, taken_up};

const PLACEHOLDER: &str = "skip_thought_signature_validator";

/// Prompts with calls side by side, in rounds, in a sub-agent and without any, as often as they are asked.
fn script() -> Script {
    let look = || step().thinking("I look at both.").call("Read", read("a.txt")).call("Read", read("b.txt"));
    let task =
        json!({ "description": "count", "prompt": "count the words", "subagent_type": "general-purpose" });
    Script::default()
        .when("^The conversation:", [summarize("as it was")])
        .when("^count the words", [look(), say("Three.")])
        .when("^delegate", [step().thinking("Not I.").call("Task", task), say("Done.")])
        .when("^plain", [step().thinking("Easy.").text("Plain.")])
        .otherwise([
            look(),
            step().thinking("Once more.").text("Again.").call("Glob", json!({ "pattern": "*" })),
            say("Seen."),
        ])
}

/// One strict server and a lenient one of another wire format, both as profiles.
struct Pair {
    strict: Project,
    other: Project,
    wire: Wire,
    models: [&'static str; 2],
}

impl Pair {
    fn new(quirk: &str) -> Self {
        let (script, wire) = match quirk {
            // The server of Gemini's own format is strict by itself.
            NATIVE => (script(), Wire::Gemini),
            quirk => (script().quirk(quirk, json!(true)), Wire::Chat),
        };
        let strict = Project::new(&script);
        strict.write("a.txt", "the first\n").write("b.txt", "the second\n");
        let models = match quirk {
            "reasoning_details" => ["qwen3-max", "glm-5"],
            _ => ["gemini-3-pro-preview", "gemini-3-flash-preview"],
        };
        Self { strict, other: Project::new(&self::script()), wire, models }
    }

    fn connect(&self) -> Client {
        let mut main = self.wire.profile(self.strict.model.base_url());
        main["model"] = json!(self.models[0]);
        let mut sibling = main.clone();
        sibling["model"] = json!(self.models[1]);
        let models = json!({
            "sibling": sibling,
            "messages": Wire::Messages.profile(self.other.model.base_url()),
            "responses": Wire::Responses.profile(self.other.model.base_url()),
        });
        self.strict.connect(&Offer::kode().options(json!({ "model": main, "models": models })))
    }

    fn is_content(&self) {
        for project in [&self.strict, &self.other] {
            assert_eq!(project.model.refusals(), Vec::<Value>::new());
        }
    }

    /// The answers with calls that the strict server was sent last, each as it was sent.
    fn sent_back(&self) -> Vec<Value> {
        let request = self.strict.model.last_request();
        let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
        let calls = |answer: &Value| {
            let calls = list(&answer["tool_calls"]).len();
            calls + list(&answer["parts"]).iter().filter(|part| part["functionCall"].is_object()).count()
        };
        let answers = list(&request["messages"]).into_iter().chain(list(&request["contents"]));
        answers.filter(|answer| calls(answer) > 0).collect()
    }
}

/// Gemini's own format.
const NATIVE: &str = "native";

const STRICT: [&str; 3] = ["signed_calls", "reasoning_details", NATIVE];

fn switch(session: &Session<'_>, profile: &str) {
    session.call("agent/session/configure", json!({ "model": profile }));
}

/// The signature of an answer's first call, in either format.
fn signature(answer: &Value) -> &str {
    let parts = answer["parts"].as_array().map(Vec::as_slice).unwrap_or_default();
    let native =
        parts.iter().find(|part| part["functionCall"].is_object()).map(|part| &part["thoughtSignature"]);
    let compatible = &answer["tool_calls"][0]["extra_content"]["google"]["thought_signature"];
    native.unwrap_or(compatible).as_str().unwrap_or_default()
}

#[test]
fn signatures_come_back_with_the_first_call_of_each_step() {
    for quirk in ["signed_calls", NATIVE] {
        let pair = Pair::new(quirk);
        let client = pair.connect();
        assert_eq!(answer(&client.session(), "go", Wire::Chat), "Seen.");
        let sent = pair.sent_back();
        assert_eq!(sent.len(), 2, "{sent:?}");
        assert!(sent.iter().all(|message| signature(message).starts_with("seal_")), "{sent:?}");
        let signatures = sent[0].to_string().matches("seal_").count();
        assert_eq!(signatures, 1, "the second call had none: {}", sent[0]);
        pair.is_content();
    }
}

#[test]
fn the_signature_of_a_text_comes_back_with_it() {
    let pair = Pair::new(NATIVE);
    let client = pair.connect();
    let session = client.session();
    answer(&session, "plain", Wire::Gemini);
    answer(&session, "plain", Wire::Gemini);
    let request = pair.strict.model.last_request();
    let parts = &request["contents"][1]["parts"];
    assert_eq!(parts[0], json!({ "text": "Plain." }), "{parts}");
    assert!(parts[1]["text"] == "" && parts[1]["thoughtSignature"].is_string(), "a part of its own: {parts}");
    pair.is_content();
}

#[test]
fn reasoning_details_come_back_whole_and_in_order() {
    let pair = Pair::new("reasoning_details");
    let client = pair.connect();
    let session = client.session();
    answer(&session, "plain", Wire::Chat);
    answer(&session, "go", Wire::Chat);
    let request = pair.strict.model.last_request();
    let messages = request["messages"].as_array().unwrap();
    let details: Vec<&Value> = messages.iter().map(|message| &message["reasoning_details"]).collect();
    let texts: Vec<&Value> =
        details.iter().filter(|list| list.is_array()).map(|list| &list[0]["text"]).collect();
    assert_eq!(texts, ["Easy.", "I look at both.", "Once more."], "{request}");
    pair.is_content();
}

#[test]
fn a_conversation_switches_between_providers_in_both_directions() {
    for quirk in STRICT {
        let pair = Pair::new(quirk);
        let client = pair.connect();
        let session = client.session();
        for profile in ["messages", "main", "responses", "main", "sibling", "main"] {
            switch(&session, profile);
            assert_eq!(answer(&session, "go", Wire::Chat), "Seen.", "{quirk}: {profile}");
        }
        pair.is_content();
        if quirk != "reasoning_details" {
            let signatures: Vec<bool> =
                pair.sent_back().iter().map(|message| signature(message) == PLACEHOLDER).collect();
            let foreign = [true, true, false, false];
            assert_eq!(signatures, [&foreign[..], &foreign, &foreign].concat(), "by profile, two steps each");
        } else {
            let other = pair.other.model.requests();
            assert!(other.iter().all(|request| !request.to_string().contains("reasoning_details")));
        }
    }
}

#[test]
fn a_session_is_resumed_with_its_sealed_data() {
    for quirk in STRICT {
        let pair = Pair::new(quirk);
        let id = {
            let client = pair.connect();
            let session = client.session();
            answer(&session, "go", Wire::Chat);
            session.id.clone()
        };
        let client = pair.connect();
        let session = taken_up(&client, &id);
        assert_eq!(answer(&session, "go on", Wire::Chat), "Seen.");
        assert_eq!(pair.sent_back().len(), 4, "{quirk}");
        assert!(
            quirk == "reasoning_details" || pair.sent_back().iter().all(|one| signature(one) != PLACEHOLDER)
        );
        pair.is_content();
    }
}

#[test]
fn a_conversation_continues_after_a_compaction_and_in_a_fork() {
    for quirk in STRICT {
        let pair = Pair::new(quirk);
        let client = pair.connect();
        let session = client.session();
        for _ in 0..3 {
            answer(&session, "go", Wire::Chat);
        }
        let items = session.items();
        for item in items.iter().rev().step_by(3) {
            let forked = session.call("agent/session/fork", json!({ "afterItemId": item["itemId"] }));
            let fork = Session::new(&client, forked["sessionId"].as_str().unwrap());
            assert_eq!(answer(&fork, "go", Wire::Chat), "Seen.", "{quirk}: after {item}");
        }
        let turn = session.prompt("/compact");
        session.wait_done(&turn);
        let done = session.wait_event("the compaction", |event| event["step"]["type"] == "done");
        assert!(done["step"]["failure"].is_null(), "{done}");
        assert_eq!(answer(&session, "go", Wire::Chat), "Seen.", "{quirk}: after the compaction");
        pair.is_content();
    }
}

#[test]
fn sub_agents_have_sealed_data_of_their_own() {
    for quirk in STRICT {
        let pair = Pair::new(quirk);
        let client = pair.connect();
        let session = client.session();
        assert_eq!(answer(&session, "delegate", Wire::Chat), "Done.");
        assert_eq!(answer(&session, "delegate", Wire::Chat), "Done.");
        pair.is_content();
    }
}

#[test]
fn calls_of_a_journal_without_signatures_get_the_placeholder() {
    let pair = Pair::new("signed_calls");
    let skill = "---\ndescription: Counts.\ncontext: fork\n---\ncount the words\n";
    pair.strict.write(".claude/skills/survey/SKILL.md", skill);
    let client = pair.connect();
    let session = client.session();
    // The call is the user's, so no model has signed it.
    assert_eq!(answer(&session, "/survey", Wire::Chat), "Seen.");
    let sent = pair.sent_back();
    assert_eq!(signature(&sent[0]), PLACEHOLDER, "{sent:?}");
    pair.is_content();
}
