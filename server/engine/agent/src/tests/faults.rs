//! Faulty answers over real HTTP, one after the other in one session, and after each of them a prompt that the server
//! takes; and who is asked instead.

use std::net::{Ipv4Addr, SocketAddr};

use serde_json::Value;

use super::course::asked_or_done;
use super::*;
use kode_mcp::Mcp;
use kode_model::fallback::{Fallback, Trigger};
use kode_model::profile::Profile;
use kode_model::provider::Provider;
use kode_providers::connector::Providers;
use kode_providers::scripted::{Script, ScriptedServer};
use kode_tool::languages::NoLanguages;

/// How long a server may be silent here.
const SILENCE: Duration = Duration::from_millis(300);

fn event(data: Value) -> String {
    format!("event: {}\ndata: {data}\n\n", data["type"].as_str().unwrap())
}

fn start() -> String {
    event(json!({ "type": "message_start", "message": {
        "id": "m", "type": "message", "role": "assistant", "content": [],
        "usage": { "input_tokens": 5, "output_tokens": 1 },
    } }))
}

fn block(index: usize, content: Value) -> String {
    event(json!({ "type": "content_block_start", "index": index, "content_block": content }))
}

fn delta(index: usize, delta: Value) -> String {
    event(json!({ "type": "content_block_delta", "index": index, "delta": delta }))
}

fn stop(index: usize) -> String {
    event(json!({ "type": "content_block_stop", "index": index }))
}

fn end(reason: &str) -> String {
    let delta = json!({ "type": "message_delta", "delta": { "stop_reason": reason }, "usage": { "output_tokens": 3 } });
    event(delta) + &event(json!({ "type": "message_stop" }))
}

fn text_block(index: usize, text: &str) -> String {
    block(index, json!({ "type": "text", "text": "" }))
        + &delta(index, json!({ "type": "text_delta", "text": text }))
}

fn thinking(index: usize, signature: &str) -> String {
    block(index, json!({ "type": "thinking", "thinking": "", "signature": "" }))
        + &delta(index, json!({ "type": "thinking_delta", "thinking": "hm" }))
        + &delta(index, json!({ "type": "signature_delta", "signature": signature }))
}

fn tool(index: usize, id: &str, json: &str) -> String {
    block(index, json!({ "type": "tool_use", "id": id, "name": "SafeProbe", "input": {} }))
        + &delta(index, json!({ "type": "input_json_delta", "partial_json": json }))
}

fn error(kind: &str) -> String {
    event(json!({ "type": "error", "error": { "type": kind, "message": kind } }))
}

const WORK: &str = r#"{"what": "return"}"#;

/// Faults, and the ends that their turns may have.
fn table() -> Vec<(&'static str, Value, TurnEnd)> {
    use TurnEnd::{EndTurn, Error, MaxTokens, Refusal};
    let raw = |parts: &[String]| json!({ "raw": parts.concat() });
    let status = |status: u16| json!({ "status": status });
    let said = || text_block(0, "half a th");
    let hidden = || block(0, json!({ "type": "redacted_thinking", "data": "sealed" }));
    let odd = || event(json!({ "type": "from_the_future", "x": 1 }));
    vec![
        ("nothing at all", raw(&[]), Error),
        ("no answer", json!({ "hang": true }), Error),
        ("cut at once", json!({ "cut_after_events": 0 }), Error),
        ("cut after the start", json!({ "cut_after_events": 1 }), Error),
        ("cut in the text", json!({ "cut_after_events": 3 }), Error),
        ("cut before the end", json!({ "cut_after_events": 5 }), Error),
        ("only a start", raw(&[start()]), Error),
        ("only pings", raw(&[event(json!({ "type": "ping" })).repeat(50)]), Error),
        ("text without an end", raw(&[start(), said()]), Error),
        ("text without a reason", raw(&[start(), said(), stop(0)]), Error),
        ("a stop without a reason", raw(&[start(), said(), event(json!({ "type": "message_stop" }))]), Error),
        ("an end at once", raw(&[start(), end("end_turn")]), EndTurn),
        ("an end without a start", raw(&[end("end_turn")]), EndTurn),
        ("an empty text", raw(&[start(), text_block(0, ""), stop(0), end("end_turn")]), EndTurn),
        ("a blank text", raw(&[start(), text_block(0, " \n"), stop(0), end("end_turn")]), EndTurn),
        ("thinking alone", raw(&[start(), thinking(0, "signed"), stop(0), end("end_turn")]), EndTurn),
        ("unsigned thinking", raw(&[start(), thinking(0, ""), stop(0), end("end_turn")]), EndTurn),
        ("thinking that breaks off", raw(&[start(), thinking(0, "sig")]), Error),
        ("thinking that is cut", raw(&[start(), thinking(0, "signed"), stop(0), end("max_tokens")]), EndTurn),
        ("sealed thinking alone", raw(&[start(), hidden(), stop(0), end("end_turn")]), EndTurn),
        ("text that is cut", raw(&[start(), said(), stop(0), end("max_tokens")]), EndTurn),
        ("nothing, cut", raw(&[start(), end("max_tokens")]), EndTurn),
        ("a call that is cut", raw(&[start(), tool(0, "f1", r#"{"wh"#), end("max_tokens")]), EndTurn),
        (
            "a whole call that is cut",
            raw(&[start(), tool(0, "f2", WORK), stop(0), end("max_tokens")]),
            EndTurn,
        ),
        ("a call that breaks off", raw(&[start(), said(), stop(0), tool(1, "f3", r#"{"wh"#)]), Error),
        ("a call without an end", raw(&[start(), tool(0, "f4", WORK), stop(0)]), Error),
        (
            "a call that ends the turn",
            raw(&[start(), tool(0, "f5", WORK), stop(0), end("end_turn")]),
            EndTurn,
        ),
        (
            "a call with broken arguments",
            raw(&[start(), tool(0, "f6", "{{"), stop(0), end("tool_use")]),
            EndTurn,
        ),
        ("a call with a list", raw(&[start(), tool(0, "f7", "[1]"), stop(0), end("tool_use")]), EndTurn),
        ("a call without arguments", raw(&[start(), tool(0, "f8", ""), stop(0), end("tool_use")]), EndTurn),
        (
            "two calls of one id",
            raw(&[start(), tool(0, "f9", WORK), stop(0), tool(1, "f9", WORK), stop(1), end("tool_use")]),
            EndTurn,
        ),
        ("a call of an old id", raw(&[start(), tool(0, "f5", WORK), stop(0), end("tool_use")]), EndTurn),
        ("a call of no id", raw(&[start(), tool(0, "", WORK), stop(0), end("tool_use")]), EndTurn),
        ("tools without a call", raw(&[start(), said(), stop(0), end("tool_use")]), EndTurn),
        ("a refusal", raw(&[start(), said(), stop(0), end("refusal")]), Refusal),
        ("a refusal with a call", raw(&[start(), tool(0, "f10", WORK), stop(0), end("refusal")]), Refusal),
        ("an empty refusal", raw(&[start(), end("refusal")]), Refusal),
        ("a pause", raw(&[start(), said(), stop(0), end("pause_turn")]), EndTurn),
        ("an unknown reason", raw(&[start(), said(), stop(0), end("from_the_future")]), EndTurn),
        ("unknown events", raw(&[odd(), start(), odd(), said(), stop(0), odd(), end("end_turn")]), EndTurn),
        (
            "an unknown block",
            raw(&[start(), block(0, json!({ "type": "new" })), stop(0), end("end_turn")]),
            EndTurn,
        ),
        ("overload at once", raw(&[error("overloaded_error")]), Error),
        ("overload in the text", raw(&[start(), said(), error("overloaded_error")]), Error),
        ("a fault in a call", raw(&[start(), tool(0, "f11", r#"{"w"#), error("api_error")]), Error),
        ("no JSON", raw(&["event: message_start\ndata: {\n\n".to_owned()]), Error),
        ("no stream", json!({ "status": 200, "body": "<html>hello</html>" }), Error),
        ("a bad request", status(400), Error),
        ("a refused key", status(401), Error),
        // It is compacted, and then the server takes it.
        ("a request too long", status(413), EndTurn),
        ("too many requests", status(429), Error),
        ("a fault of the server", status(500), Error),
        ("an overload", status(529), Error),
        ("a redirect", json!({ "status": 307, "headers": { "location": "http://127.0.0.1:9/" } }), Error),
        ("the limit reached again and again", Value::Null, MaxTokens),
    ]
}

pub(super) struct Served {
    server: ScriptedServer,
    engine: Engine,
    session: Arc<Session>,
    _home: tempfile::TempDir,
}

impl Served {
    async fn new(programs: Vec<Value>, fallback: Option<Fallback>) -> Self {
        let script: Script = serde_json::from_value(json!({ "programs": programs })).unwrap();
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        let server = ScriptedServer::serve(script, address).await.unwrap();
        let profile = Profile {
            name: "main".to_owned(),
            model: "served".to_owned(),
            provider: Provider::Anthropic,
            base_url: server.base_url(),
            max_retries: 0,
            idle_timeout: SILENCE,
            fallback,
            ..Profile::demo()
        };
        let home = tempfile::tempdir().unwrap();
        let options = EngineOptions {
            home: AbsPath::new(home.path().join("state")).unwrap(),
            tools: Registry::default(),
            servers: Arc::new(Mcp::new(AbsPath::new(home.path().join("state")).unwrap())),
            languages: Arc::new(NoLanguages),
            host: Arc::new(NoEditor),
            models: Models::new(Ok(profile), Arc::new(Providers)),
            policies: Arc::new(NoPolicyProvider),
            concurrency: CONCURRENCY,
            save_before_commands: true,
            deliveries: Deliveries::default(),
        };
        let mut tools = Registry::default();
        tools.add(Probe { safe: true, ..Probe::default() });
        let engine = Engine::new(EngineOptions { tools, ..options });
        let root = AbsPath::new(home.path()).unwrap();
        let session = engine
            .new_session(NewSession { roots: vec![root], mode: Some(Mode::Default), model: None })
            .unwrap();
        Self { server, engine, session, _home: home }
    }

    fn notice(&self, wanted: NoticeKind) -> Option<String> {
        self.session.snapshot(usize::MAX).items.into_iter().rev().find_map(|item| match item.body.clone() {
            ItemBody::Notice { kind: Some(kind), text, .. } if kind == wanted => Some(text),
            _ => None,
        })
    }
}

fn say(text: &str) -> Value {
    json!({ "content": [{ "type": "text", "text": text }] })
}

fn many(step: Value) -> Vec<Value> {
    vec![step; 4]
}

/// Whatever a server sends, the turn ends, and the next prompt is one that it takes.
#[tokio::test]
async fn after_every_fault_the_session_continues() {
    let table = table();
    let program = |(number, (_, fault, end)): (usize, &(&str, Value, TurnEnd))| {
        let mut step = say("Done.");
        if *end == TurnEnd::MaxTokens {
            step["stop_reason"] = json!("max_tokens");
        } else {
            step["faults"] = json!([fault]);
        }
        let when = if *end == TurnEnd::MaxTokens {
            "^fault|cut off by its token limit$|repeat nothing".to_owned()
        } else {
            format!("^fault {number}$")
        };
        json!({ "when": when, "steps": [step, say("Done."), say("Done.")] })
    };
    let mut programs: Vec<Value> = table.iter().enumerate().map(program).collect();
    // The other cut answers end well after their continuation; the last one does not.
    let endless = programs.pop().unwrap();
    programs.push(json!({ "steps": many(say("All is well.")) }));
    let served = Served::new(programs, None).await;
    let mut events = served.session.events().subscribe(0, vec![]);
    for (number, (name, fault, end)) in table.iter().enumerate().filter(|(_, (_, fault, _))| !fault.is_null())
    {
        served.session.prompts().submit(prompt(&format!("fault {number}"))).unwrap();
        let ended = asked_or_done(&mut events).await;
        assert_eq!(ended, Some(*end), "{name}: {fault}; {:?}", served.notice(NoticeKind::ApiError));
        served.session.prompts().submit(prompt("next")).unwrap();
        let ended = asked_or_done(&mut events).await;
        assert_eq!(ended, Some(TurnEnd::EndTurn), "after {name}: {:?}", served.notice(NoticeKind::ApiError));
        assert_eq!(served.session.answer(), "All is well.", "after {name}");
        for item in served.session.snapshot(usize::MAX).items {
            if let ItemBody::ToolCall(call) = &item.body {
                assert!(call.state.is_final(), "{name}: {call:?}");
            }
        }
    }
    let reported = format!("{:?}", served.server.requests().pop().unwrap());
    assert!(!reported.contains("overloaded_error"), "no error is in what the model is sent");
    served.engine.shutdown().await;

    let served = Served::new(vec![endless, json!({ "steps": many(say("All is well.")) })], None).await;
    let mut events = served.session.events().subscribe(0, vec![]);
    for (text, end) in [("fault", TurnEnd::MaxTokens), ("next", TurnEnd::EndTurn)] {
        served.session.prompts().submit(prompt(text)).unwrap();
        assert_eq!(asked_or_done(&mut events).await, Some(end));
    }
    served.engine.shutdown().await;
}

#[tokio::test]
async fn the_fallback_is_asked_for_what_it_is_named_for_and_said() {
    let refusing =
        json!({ "stop_reason": "refusal", "content": [{ "type": "text", "text": "I will not." }] });
    let overloaded =
        json!({ "content": [{ "type": "text", "text": "never" }], "faults": [{ "status": 529 }] });
    let bad = json!({ "content": [{ "type": "text", "text": "never" }], "faults": [{ "status": 400 }] });
    let programs = || {
        vec![
            json!({ "when": "refuse$", "steps": [refusing] }),
            json!({ "when": "overload$", "steps": [overloaded] }),
            json!({ "when": "bad$", "steps": [bad] }),
            json!({ "steps": [say("from main")] }),
        ]
    };
    let fallback = |triggers| Some(Fallback { profile: "demo".to_owned(), triggers });
    let served = Served::new(programs(), fallback(vec![Trigger::Refusal, Trigger::Overloaded])).await;
    let mut events = served.session.events().subscribe(0, vec![]);
    let mut ask = async |text: &str| {
        served.session.prompts().submit(prompt(text)).unwrap();
        let seen = until(&mut events, is_done).await;
        let mut by: Vec<String> = seen
            .iter()
            .filter_map(|record| match &record.event {
                Event::TokenUsage { call, .. } => Some(call.model.clone()),
                _ => None,
            })
            .collect();
        by.dedup();
        let end = seen.iter().find_map(|record| match &record.event {
            Event::Done { reason, .. } => Some(*reason),
            _ => None,
        });
        (end.unwrap(), by.join(", "))
    };
    let demo = || kode_model::profile::DEMO_MODEL.to_owned();
    // No fallback replaces a model that got an invalid request.
    assert_eq!(ask("bad").await, (TurnEnd::Error, String::new()));
    // A refusal is of one answer: the results of its calls go to the own model again.
    assert_eq!(ask("refuse").await, (TurnEnd::EndTurn, format!("served, {}, served", demo())));
    let said = served.notice(NoticeKind::Fallback).unwrap();
    assert!(said.contains("served declined to answer, asking"), "{said}");
    assert_eq!(ask("hello").await, (TurnEnd::EndTurn, "served".to_owned()));
    assert_eq!(ask("overload").await, (TurnEnd::EndTurn, demo()));
    assert!(served.notice(NoticeKind::Fallback).unwrap().contains("is overloaded"));
    let asked = served.server.requests().len();
    // It rests now, and is asked again when it has rested.
    assert_eq!(ask("hello").await, (TurnEnd::EndTurn, demo()));
    assert_eq!(served.server.requests().len(), asked);
    let last = served.session.snapshot(usize::MAX).items.pop().unwrap();
    let of_demo = |model: &Option<String>| model.as_ref() == Some(&demo());
    assert!(matches!(&last.body, ItemBody::AgentMessage { model, .. } if of_demo(model)), "{last:?}");
    tokio::time::pause();
    tokio::time::advance(crate::turn::route::REST).await;
    tokio::time::resume();
    assert_eq!(ask("hello").await, (TurnEnd::EndTurn, "served".to_owned()));
    served.engine.shutdown().await;
}
