//! Every wire format does the same for the user: one set of behaviors, tried over each of them with the same scripts.
//!
//! Rule: a test says what the user sees and what the server of that format is sent; the scripted model refuses what the
//! real one would.

mod aimock;
mod clouds;
mod matrix;
mod quirks;
mod sealed;

use base64::Engine as _;
use kode_e2e::{Client, Offer, Project, Script, Session, call, say, step};
use serde_json::{Value, json};

/// A picture of one pixel.
const PICTURE: &str =
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";

/// A wire format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wire {
    Messages,
    Chat,
    Responses,
    Gemini,
    Ollama,
}

const WIRES: [Wire; 5] = [Wire::Messages, Wire::Chat, Wire::Responses, Wire::Gemini, Wire::Ollama];

impl Wire {
    /// The profile that asks a server of this format, as an editor sets it.
    fn profile(self, server: &str) -> Value {
        let (provider, base_url, model) = match self {
            Self::Messages => ("anthropic", server.to_owned(), "claude-test"),
            Self::Chat => ("openai", format!("{server}/v1"), "gpt-test"),
            Self::Responses => ("openai-responses", format!("{server}/v1"), "gpt-test"),
            Self::Gemini => ("gemini", format!("{server}/v1beta"), "gemini-3-test"),
            Self::Ollama => ("ollama", server.to_owned(), "gemma-test"),
        };
        let mut profile =
            json!({ "provider": provider, "baseUrl": base_url, "model": model, "apiKey": "test-key" });
        if self == Self::Ollama {
            // Of the models of a local server nothing is known.
            profile["capabilities"] = json!({ "images": true });
            profile["contextWindow"] = json!(100_000);
        }
        profile
    }

    /// Its name at the scripted model.
    fn name(self) -> &'static str {
        match self {
            Self::Messages => "anthropic_messages",
            Self::Chat => "chat_completions",
            Self::Responses => "responses",
            Self::Gemini => "gemini",
            Self::Ollama => "ollama",
        }
    }

    fn path(self) -> &'static str {
        match self {
            Self::Messages => "/v1/messages",
            Self::Chat => "/v1/chat/completions",
            Self::Responses => "/v1/responses",
            Self::Gemini => "/v1beta/models/gemini-3-test:streamGenerateContent",
            Self::Ollama => "/api/chat",
        }
    }

    /// The results of tools in a request, in order.
    fn results(self, request: &Value) -> Vec<String> {
        let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
        match self {
            Self::Messages => list(&request["messages"])
                .iter()
                .flat_map(|message| list(&message["content"]))
                .filter(|block| block["type"] == "tool_result")
                .map(|block| kode_e2e::text_of(&block["content"]))
                .collect(),
            Self::Gemini => list(&request["contents"])
                .iter()
                .flat_map(|content| list(&content["parts"]))
                .filter(|part| !part["functionResponse"].is_null())
                .map(|part| {
                    let response = &part["functionResponse"]["response"];
                    response["output"].as_str().or(response["error"].as_str()).unwrap_or_default().to_owned()
                })
                .collect(),
            Self::Chat | Self::Ollama => list(&request["messages"])
                .iter()
                .filter(|message| message["role"] == "tool")
                .map(|message| kode_e2e::text_of(&message["content"]))
                .collect(),
            Self::Responses => list(&request["input"])
                .iter()
                .filter(|item| item["type"] == "function_call_output")
                .map(|item| kode_e2e::text_of(&item["output"]))
                .collect(),
        }
    }
}

/// Starts a server whose main model is asked in a wire format, with more said of its profile.
fn open_with(project: &Project, wire: Wire, more: Value) -> Client {
    let mut profile = wire.profile(project.model.base_url());
    for (name, value) in more.as_object().into_iter().flatten() {
        profile[name] = value.clone();
    }
    project.connect(&Offer::kode().options(json!({ "model": profile })))
}

fn open(project: &Project, wire: Wire) -> Client {
    open_with(project, wire, json!({}))
}

/// Resumes a session of another process.
fn taken_up<'a>(client: &'a Client, id: &str) -> Session<'a> {
    let session = Session::new(client, id);
    session.call("agent/session/load", json!({}));
    session
}

/// Runs a prompt that must work, and gives the last thing the model said.
fn answer(session: &Session<'_>, prompt: &str, wire: Wire) -> String {
    let done = session.run(prompt);
    assert_eq!(done["stopReason"], "end_turn", "{wire:?}: {:?}", session.notices());
    last_text(session)
}

fn last_text(session: &Session<'_>) -> String {
    let items = session.items();
    let said = items.iter().rev().find(|item| item["body"]["type"] == "agentMessage");
    said.and_then(|item| item["body"]["text"].as_str()).unwrap_or_default().to_owned()
}

fn read(name: &str) -> Value {
    json!({ "file_path": format!("{{{{cwd}}}}/{name}") })
}

/// The reasoning that is shown, item by item.
fn thoughts(session: &Session<'_>) -> Vec<String> {
    let items = session.items();
    let thoughts = items.iter().filter(|item| item["body"]["type"] == "thinking");
    thoughts.filter_map(|item| item["body"]["text"].as_str().map(str::to_owned)).collect()
}

#[test]
fn a_turn_thinks_calls_tools_side_by_side_and_answers() {
    for wire in WIRES {
        let script = Script::new([
            step()
                .thinking("First I look.")
                .text("I look.")
                .call("Read", read("a.txt"))
                .call("Read", read("b.txt")),
            step().thinking("Now I know.").text("It says: {{last_result}}").chunk(3),
        ]);
        let project = Project::new(&script);
        project.write("a.txt", "the first file\n").write("b.txt", "häh? 🙂\n");
        let client = open_with(&project, wire, json!({ "effort": "medium" }));
        let session = client.session();
        let text = answer(&session, "read both", wire);
        assert!(text.contains("häh? 🙂"), "{wire:?}: {text}");

        let asked = project.model.recorded();
        let reported: Vec<_> = asked.iter().map(|one| (one["wire"].clone(), one["path"].clone())).collect();
        assert_eq!(reported, vec![(json!(wire.name()), json!(wire.path())); 2], "{wire:?}");
        let results = wire.results(&asked[1]["body"]);
        assert_eq!(results.len(), 2, "{wire:?}: {results:?}");
        assert!(
            results[0].contains("the first file") && results[1].contains("häh?"),
            "{wire:?}: {results:?}"
        );
        let calls = session.calls();
        assert!(
            calls.len() == 2 && calls.iter().all(|call| call["state"] == "COMPLETED"),
            "{wire:?}: {calls:?}"
        );

        let thought = thoughts(&session);
        assert_eq!(thought, ["First I look.", "Now I know."], "{wire:?}");
    }
}

#[test]
fn what_an_answer_costs_is_reported() {
    for wire in WIRES {
        let usage = json!({
            "input_tokens": 200, "output_tokens": 34, "cache_read_input_tokens": 1000, "reasoning_tokens": 20,
        });
        let project = Project::new(&Script::new([say("Yes.").usage(usage)]));
        let client = open(&project, wire);
        let done = client.session().run("hello");
        let reported = &done["usage"];
        // Ollama does not say what it had in its cache.
        let (input, cached) = if wire == Wire::Ollama { (1200, 0) } else { (200, 1000) };
        assert_eq!(reported["inputTokens"], input, "{wire:?}: {reported}");
        assert_eq!(reported["cacheReadTokens"], cached, "{wire:?}: {reported}");
        assert_eq!(reported["outputTokens"], 34, "{wire:?}: {reported}");
        // These formats do not say how much of it is reasoning.
        let reasoning = if matches!(wire, Wire::Messages | Wire::Ollama) { 0 } else { 20 };
        assert_eq!(reported["thinkingTokens"], reasoning, "{wire:?}: {reported}");
    }
}

#[test]
fn a_server_that_says_when_to_come_back_is_asked_again_then() {
    for wire in WIRES {
        let limit = json!({ "status": 429, "headers": { "retry-after": "1" } });
        let project = Project::new(&Script::new([say("Here I am.").faults([limit])]));
        let client = open(&project, wire);
        let session = client.session();
        assert_eq!(answer(&session, "hello", wire), "Here I am.");
        let retries: Vec<Value> =
            session.events().into_iter().filter(|event| event["type"] == "model_retry").collect();
        assert_eq!(retries.len(), 1, "{wire:?}: {retries:?}");
        // A second, and a quarter of it at most.
        let delay = retries[0]["delayMs"].as_u64().unwrap();
        assert!((1_000..=1_250).contains(&delay), "{wire:?}: {retries:?}");
        assert_eq!(project.model.exchanges().len(), 2, "{wire:?}");
    }
}

#[test]
fn an_answer_that_breaks_off_is_asked_for_again_and_its_calls_run_once() {
    for wire in WIRES {
        let command = call("Bash", json!({ "command": "echo run >> runs.txt" }));
        let script = Script::new([command.chunk(4).faults([json!({ "cut_after_events": 6 })]), say("Done.")]);
        let project = Project::new(&script);
        let client = open(&project, wire);
        let session = client.session_with(json!({ "mode": "bypassPermissions" }));
        assert_eq!(answer(&session, "go", wire), "Done.");
        assert_eq!(project.read("runs.txt"), "run\n", "{wire:?}");
    }
}

#[test]
fn a_refused_request_is_reported_and_the_next_prompt_works() {
    for wire in WIRES {
        let refused = json!({ "status": 401 });
        let script =
            Script::default().when("again$", [say("Going on.")]).otherwise([say("Never.").faults([refused])]);
        let project = Project::new(&script);
        let client = open(&project, wire);
        let session = client.session();
        assert_eq!(session.run("hello")["stopReason"], "error", "{wire:?}");
        let notice = session.notices().pop().unwrap();
        assert_eq!(notice["level"], "error", "{wire:?}: {notice}");
        assert_eq!(notice["kind"], "apiKey", "{wire:?}: {notice}");
        assert!(notice["text"].as_str().unwrap().contains("401"), "{wire:?}: {notice}");
        assert!(!notice.to_string().contains("test-key"), "{wire:?}: {notice}");
        assert_eq!(answer(&session, "again", wire), "Going on.");
    }
}

#[test]
fn cancelling_in_the_middle_of_an_answer_keeps_what_was_said() {
    for wire in WIRES {
        let script = Script::default().when("go on$", [say("Going on.")]).otherwise([say(
            "one two three four five six seven eight nine ten",
        )
        .chunk(4)
        .gate("middle", 8)]);
        let project = Project::new(&script);
        let client = open(&project, wire);
        let session = client.session();
        let turn = session.prompt("count");
        project.model.wait_until_held("middle");
        session.wait_event("the first words", |event| event["item"]["body"]["type"] == "agentMessage");
        session.call("agent/turn/cancel", json!({ "turnId": turn }));
        assert_eq!(session.wait_done(&turn)["stopReason"], "cancelled", "{wire:?}");
        assert_eq!(answer(&session, "go on", wire), "Going on.");
    }
}

#[test]
fn a_picture_in_the_prompt_reaches_the_model() {
    for wire in WIRES {
        let project = Project::new(&Script::new([say("A pixel.")]));
        let client = open(&project, wire);
        let session = client.session();
        let input = json!([
            { "type": "text", "text": "what is it?" },
            { "type": "image", "mediaType": "image/png", "data": PICTURE },
        ]);
        let turn = session.call("agent/turn/start", json!({ "input": input }));
        let done = session.wait_done(turn["turnId"].as_str().unwrap());
        assert_eq!(done["stopReason"], "end_turn", "{wire:?}: {:?}", session.notices());
        let request = project.model.last_request();
        let content = match wire {
            Wire::Messages | Wire::Chat | Wire::Ollama => &request["messages"],
            Wire::Responses => &request["input"],
            Wire::Gemini => &request["contents"],
        };
        assert!(content.to_string().contains(PICTURE), "{wire:?}: {content}");
    }
}

/// A document of one page.
const DOCUMENT: &str = "%PDF-1.4\n1 0 obj <</Type /Catalog /Pages 2 0 R>> endobj\n\
    2 0 obj <</Type /Pages /Kids [3 0 R] /Count 1>> endobj\n\
    3 0 obj <</Type /Page /Parent 2 0 R /Contents 4 0 R /MediaBox [0 0 300 300] \
    /Resources <</Font <</F1 5 0 R>>>>>> endobj\n\
    4 0 obj <</Length 43>> stream\nBT /F1 12 Tf 20 200 Td (Invoice 4711) Tj ET\nendstream endobj\n\
    5 0 obj <</Type /Font /Subtype /Type1 /BaseFont /Courier /Encoding /WinAnsiEncoding>> endobj\n\
    trailer <</Root 1 0 R /Size 6>>\n%%EOF\n";

/// Sends a document as a part of the prompt, then has the model read it; gives the last request as text.
fn shows_a_document(wire: Wire, takes: bool) -> String {
    let reads = [step().call("Read", read("a.pdf")), say("Read.")];
    let script = Script::default().when("^read it", reads).otherwise([say("Seen.")]);
    let project = Project::new(&script);
    project.write("a.pdf", DOCUMENT);
    let capabilities = json!({ "capabilities": { "images": true, "pdf": takes } });
    let client = open_with(&project, wire, capabilities);
    let session = client.session();
    let data = base64::engine::general_purpose::STANDARD.encode(DOCUMENT);
    let input = json!([
        { "type": "text", "text": "what is it?" },
        { "type": "image", "mediaType": "application/pdf", "data": data },
    ]);
    let turn = session.call("agent/turn/start", json!({ "input": input }));
    let done = session.wait_done(turn["turnId"].as_str().unwrap());
    assert_eq!(done["stopReason"], "end_turn", "{wire:?}: {:?}", session.notices());
    assert_eq!(answer(&session, "read it", wire), "Read.");
    assert_eq!(project.model.refusals(), Vec::<Value>::new(), "{wire:?}");
    project.model.last_request().to_string()
}

#[test]
fn a_pdf_document_goes_to_providers_that_take_it() {
    for (wire, mark) in [
        (Wire::Messages, r#""type":"document""#),
        (Wire::Chat, r#""type":"file""#),
        (Wire::Responses, r#""type":"input_file""#),
        (Wire::Gemini, r#""mimeType":"application/pdf""#),
    ] {
        let request = shows_a_document(wire, true);
        // Content that the Responses API has stored is not sent again.
        let expected = if wire == Wire::Responses { 1..=2 } else { 2..=2 };
        assert!(expected.contains(&request.matches(mark).count()), "{wire:?}: {request}");
        assert!(!request.contains("Invoice 4711"), "{wire:?}: {request}");
    }
}

#[test]
fn a_pdf_document_is_text_by_page_for_models_that_take_none() {
    for wire in WIRES {
        let request = shows_a_document(wire, false);
        let pages = request.matches("[Page 1 of 1]\\nInvoice 4711").count();
        let expected = if wire == Wire::Responses { 1..=2 } else { 2..=2 };
        assert!(expected.contains(&pages), "{wire:?}: {request}");
    }
}

/// A conversation of two turns with reasoning and calls, each prompt of which can be asked for again.
fn conversation() -> Script {
    Script::default()
        .when("^more", [say("More.")])
        .when(
            "^first",
            [
                step().thinking("I look.").call("Read", read("a.txt")),
                step().thinking("I have seen it.").text("First."),
            ],
        )
        .when("^second", [step().thinking("Again.").call("Read", read("a.txt")), say("Second.")])
}

#[test]
fn a_session_continues_after_a_restart() {
    for wire in WIRES {
        let project = Project::new(&conversation());
        project.write("a.txt", "text\n");
        let id = {
            let client = open_with(&project, wire, json!({ "effort": "low" }));
            let session = client.session();
            assert_eq!(answer(&session, "first", wire), "First.");
            session.id.clone()
        };
        let client = open_with(&project, wire, json!({ "effort": "low" }));
        let session = taken_up(&client, &id);
        assert_eq!(answer(&session, "second", wire), "Second.");
        if wire == Wire::Responses {
            let asked = project.model.requests();
            let continues = |request: &Value| request["previous_response_id"].is_string();
            // The messages before the restart are continued or sent again, and never lost.
            assert!(continues(&asked[2]) || wire.results(&asked[2]).len() == 1, "{}", asked[2]);
            assert!(continues(&asked[3]), "{}", asked[3]);
            assert_eq!(wire.results(&asked[3]).len(), 1, "only what is new is sent: {}", asked[3]);
        }
    }
}

#[test]
fn a_conversation_the_server_has_forgotten_is_sent_again() {
    let wire = Wire::Responses;
    let project = Project::new(&conversation());
    project.write("a.txt", "text\n");
    let client = open_with(&project, wire, json!({ "effort": "low" }));
    let session = client.session();
    assert_eq!(answer(&session, "first", wire), "First.");
    project.model.forget();
    assert_eq!(answer(&session, "second", wire), "Second.");
    let asked = project.model.requests();
    // The third continues a forgotten answer, and the fourth sends everything.
    assert!(asked[2]["previous_response_id"].is_string(), "{}", asked[2]);
    assert!(asked[3]["previous_response_id"].is_null(), "{}", asked[3]);
    assert_eq!(wire.results(&asked[3]).len(), 1, "{}", asked[3]);
    assert!(asked[4]["previous_response_id"].is_string(), "the chain begins anew: {}", asked[4]);
}

#[test]
fn a_conversation_can_proceed_with_a_model_of_any_other_format() {
    for from in WIRES {
        for to in WIRES {
            let project = Project::new(&conversation());
            project.write("a.txt", "text\n");
            let id = {
                let client = open_with(&project, from, json!({ "effort": "low" }));
                let session = client.session();
                assert_eq!(answer(&session, "first", from), "First.");
                session.id.clone()
            };
            // Whether calls want signatures is known by the name.
            let model = if to == Wire::Gemini { "gemini-3-another" } else { "another-test" };
            let other = json!({ "effort": "low", "model": model });
            let client = open_with(&project, to, other.clone());
            let session = taken_up(&client, &id);
            assert_eq!(answer(&session, "second", to), "Second.", "{from:?} to {to:?}");
            let asked = project.model.recorded();
            assert_eq!(asked[2]["wire"], to.name(), "{from:?} to {to:?}");
            assert_eq!(to.results(&asked[2]["body"]).len(), 1, "{from:?} to {to:?}: the history is sent");
            assert!(asked[2]["body"]["previous_response_id"].is_null(), "{from:?} to {to:?}");
            drop(client);

            // And back, with the reasoning of both in the history.
            let client = open_with(&project, from, json!({ "effort": "low" }));
            let session = taken_up(&client, &id);
            assert_eq!(answer(&session, "more", from), "More.", "{to:?} back to {from:?}");
        }
    }
}
