//! The user types while the agent edits: nothing that was typed is lost, and an edit is in, or said not to be.

use std::cell::Cell;
use std::hash::{BuildHasher, Hasher, RandomState};

use kode_e2e::{Client, Policy, Project, Script, Typing, call, say};
use proptest::prelude::*;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
use serde_json::json;

const TEXT: &str = "first line\nsecond line\nthird line\nfourth line\nfifth line\n";

/// A model that replaces `third line`.
fn script() -> Script {
    Script::new([
        call("Read", json!({ "file_path": "{{cwd}}/a.txt" })),
        call(
            "Edit",
            json!({
                "file_path": "{{cwd}}/a.txt", "old_string": "third line", "new_string": "THIRD LINE (agent)",
            }),
        ),
        say("Tried."),
    ])
}

/// Runs the edit against an editor with this policy; gives the final text, the state of the call and its result.
fn edited(policy: Policy) -> (String, String, (String, bool)) {
    let project = Project::new(&script());
    project.write("a.txt", TEXT);
    let client = project.open();
    let uri = project.uri("a.txt");
    client.editor.open(&uri, TEXT);
    client.editor.next(policy);
    let session = client.session_with(json!({ "mode": "acceptEdits" }));
    assert_eq!(session.run("edit")["stopReason"], "end_turn");
    let state = session.calls()[1]["state"].as_str().unwrap().to_owned();
    (client.editor.text(&uri), state, project.model.last_results().remove(0))
}

#[test]
fn typing_elsewhere_during_an_edit_loses_nothing() {
    let typing = || vec![Typing::after("first", " TYPED"), Typing::before("fifth", "TYPED\n")];
    let expected = TEXT
        .replace("first", "first TYPED")
        .replace("fifth", "TYPED\nfifth")
        .replace("third line", "THIRD LINE (agent)");
    for policy in [
        Policy::TypeFirst(typing()),
        Policy::TypeInBatch(typing()),
        Policy::TypeThenAnswer(typing()),
        Policy::TypeInWhole(typing()),
    ] {
        let (text, state, result) = edited(policy.clone());
        assert_eq!(text, expected, "{policy:?}: {result:?}");
        assert_eq!(state, "COMPLETED", "{policy:?}: {result:?}");
    }
}

#[test]
fn typing_in_the_same_place_is_a_conflict_and_stays_as_typed() {
    let typing = Typing::after("thi", "TYPED");
    let (text, state, (result, is_error)) = edited(Policy::TypeFirst(vec![typing]));
    assert_eq!(text, TEXT.replace("third", "thiTYPEDrd"));
    assert_eq!(state, "FAILED");
    assert!(is_error && result.contains("a.txt"), "{result}");
}

#[test]
fn a_conflict_is_reported_as_one() {
    let project = Project::new(&script());
    project.write("a.txt", TEXT);
    let client = project.open();
    client.editor.open(&project.uri("a.txt"), TEXT);
    client.editor.next(Policy::TypeFirst(vec![Typing::after("thi", "TYPED")]));
    let session = client.session_with(json!({ "mode": "acceptEdits" }));
    session.run("edit");
    let edit = &session.calls()[1];
    assert_eq!((&edit["state"], &edit["error"]), (&json!("FAILED"), &json!("conflict")), "{edit}");
}

#[test]
fn what_the_editor_says_counts_less_than_what_it_shows() {
    let edited_text = TEXT.replace("third line", "THIRD LINE (agent)");
    for (policy, state, text) in [
        (Policy::Apply, "COMPLETED", edited_text.as_str()),
        (Policy::AnswerFirst, "COMPLETED", edited_text.as_str()),
        (Policy::NeverAnswer, "COMPLETED", edited_text.as_str()),
        (Policy::Lie, "FAILED", TEXT),
        (Policy::Reject("the buffer is read-only".to_owned()), "FAILED", TEXT),
    ] {
        let (shown, got, (result, is_error)) = edited(policy.clone());
        assert_eq!((shown.as_str(), got.as_str()), (text, state), "{policy:?}: {result}");
        assert_eq!(is_error, state == "FAILED", "{policy:?}: {result}");
        if let Policy::Reject(reason) = policy {
            assert!(result.contains(&reason), "{result}");
        }
    }
}

#[test]
fn an_edit_of_a_document_that_is_closed_meanwhile_goes_to_the_file() {
    let project = Project::new(&script());
    project.write("a.txt", TEXT);
    let client = project.open();
    let uri = project.uri("a.txt");
    client.editor.open(&uri, TEXT);
    let session = client.session();
    let turn = session.prompt("edit");
    let prompt = session.wait_permission(0);
    client.editor.close(&uri);
    session.respond(&prompt, json!({ "decision": "allow", "scope": "once" })).unwrap();
    session.wait_done(&turn);
    assert_eq!(project.read("a.txt"), TEXT.replace("third line", "THIRD LINE (agent)"));
}

#[test]
fn typing_while_the_user_is_asked_is_merged_when_the_answer_comes() {
    let project = Project::new(&script());
    project.write("a.txt", TEXT);
    let client = project.open();
    let uri = project.uri("a.txt");
    client.editor.open(&uri, TEXT);
    let session = client.session();
    let turn = session.prompt("edit");
    let prompt = session.wait_permission(0);
    client.editor.type_text(&uri, &Typing::before("second", "TYPED "));
    session.respond(&prompt, json!({ "decision": "allow", "scope": "once" })).unwrap();
    session.wait_done(&turn);
    let expected = TEXT.replace("second", "TYPED second").replace("third line", "THIRD LINE (agent)");
    assert_eq!(client.editor.text(&uri), expected, "{:?}", session.calls());
}

// -- random schedules -----------------------------------------------------------------------------------------------

/// How many schedules are played, all on one server.
const SCHEDULES: u32 = 40;

/// A schedule is found again with the seed of its run in this variable.
const SEED: &str = "KODE_E2E_SEED";

/// Something the user does: type a marker, or delete a letter, at this share of the text.
#[derive(Clone, Copy, Debug)]
enum Key {
    Marker(u16),
    Delete(u16),
}

/// The user's typing at each moment of the agent's edit.
#[derive(Clone, Debug)]
struct Schedule {
    while_asked: Vec<Key>,
    while_arriving: Vec<Key>,
    afterwards: Vec<Key>,
    moment: Moment,
}

#[derive(Clone, Copy, Debug)]
enum Moment {
    First,
    InBatch,
    ThenAnswer,
}

fn keys() -> impl Strategy<Value = Vec<Key>> {
    let key = prop_oneof![3 => any::<u16>().prop_map(Key::Marker), 1 => any::<u16>().prop_map(Key::Delete)];
    prop::collection::vec(key, 0..4)
}

fn schedules() -> impl Strategy<Value = Schedule> {
    let moment = prop::sample::select(vec![Moment::First, Moment::InBatch, Moment::ThenAnswer]);
    (keys(), keys(), keys(), moment).prop_map(|(while_asked, while_arriving, afterwards, moment)| Schedule {
        while_asked,
        while_arriving,
        afterwards,
        moment,
    })
}

/// Markers are private-use characters: no other text has them.
fn typings(keys: &[Key], markers: &mut std::ops::RangeInclusive<char>) -> Vec<Typing> {
    keys.iter()
        .map(|key| match key {
            Key::Marker(share) => Typing::at(*share, &markers.next().unwrap().to_string()),
            Key::Delete(share) => Typing::delete_lowercase(*share),
        })
        .collect()
}

fn play(client: &Client, project: &Project, name: &str, schedule: &Schedule) -> Result<(), TestCaseError> {
    let uri = project.uri(name);
    project.write(name, TEXT);
    client.editor.forget();
    client.editor.open(&uri, TEXT);
    let session = client.session();
    let turn = session.prompt(name);
    let prompt = session.wait_permission(0);

    let mut markers = '\u{E000}'..='\u{F8FF}';
    for typing in typings(&schedule.while_asked, &mut markers) {
        client.editor.type_text(&uri, &typing);
    }
    let arriving = typings(&schedule.while_arriving, &mut markers);
    client.editor.next(match schedule.moment {
        Moment::First => Policy::TypeFirst(arriving),
        Moment::InBatch => Policy::TypeInBatch(arriving),
        Moment::ThenAnswer => Policy::TypeThenAnswer(arriving),
    });
    session.respond(&prompt, json!({ "decision": "allow", "scope": "once" })).unwrap();
    for typing in typings(&schedule.afterwards, &mut markers) {
        client.editor.type_text(&uri, &typing);
    }
    session.wait_done(&turn);

    let text = client.editor.text(&uri);
    for typed in client.editor.typed() {
        prop_assert!(text.contains(&typed), "{typed:?} was lost: {text:?}");
    }
    let edit = session.calls().remove(1);
    let plain: String = text.chars().filter(|char| !('\u{E000}'..='\u{F8FF}').contains(char)).collect();
    match edit["state"].as_str().unwrap() {
        // No step deletes capitals.
        "COMPLETED" => prop_assert!(plain.contains("AGENT WAS HERE"), "said to be done: {text:?}"),
        "FAILED" => prop_assert!(!plain.contains("AGENT"), "said to have failed: {text:?} {edit}"),
        other => prop_assert!(false, "{other} is no end of an edit"),
    }
    client.editor.close(&uri);
    Ok(())
}

#[test]
fn whatever_the_user_types_whenever_nothing_typed_is_lost() {
    let path = "{{cwd}}/{{prompt}}";
    let script = Script::new([
        call("Read", json!({ "file_path": path })),
        call(
            "Edit",
            json!({ "file_path": path, "old_string": "third line", "new_string": "AGENT WAS HERE" }),
        ),
        say("Tried."),
    ]);
    let project = Project::new(&script);
    let client = project.open();
    let seed = match std::env::var(SEED) {
        Ok(seed) => seed.parse().unwrap_or_else(|_| panic!("{SEED} must be a number")),
        Err(_) => RandomState::new().build_hasher().finish(),
    };
    let mut bytes = [0; 32];
    bytes[..8].copy_from_slice(&seed.to_le_bytes());
    let config = Config { cases: SCHEDULES, failure_persistence: None, ..Config::default() };
    let mut runner = TestRunner::new_with_rng(config, TestRng::from_seed(RngAlgorithm::ChaCha, &bytes));
    let played = Cell::new(0);
    let outcome = runner.run(&schedules(), |schedule| {
        played.set(played.get() + 1);
        play(&client, &project, &format!("{}.txt", played.get()), &schedule)
    });
    if let Err(error) = outcome {
        panic!("{error}\nplay it again with {SEED}={seed}");
    }
}
