//! Goals over the wire: a check decides whether a turn may end, and bounds end the work.

use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use kode_e2e::{Client, Project, Script, Session, call, say};
use serde_json::{Value, json};

/// The goals of the events of a session, oldest first.
fn goals(session: &Session<'_>) -> Vec<Value> {
    let events = session.events().into_iter().filter(|event| event["type"] == "goal_changed");
    events.map(|event| event["goal"].clone()).collect()
}

/// The texts of the checks in the transcript.
fn checks(session: &Session<'_>) -> Vec<String> {
    let bodies = session.items().into_iter().map(|item| item["body"].clone());
    let checks = bodies.filter(|body| body["type"] == "command" && body["name"] == "goal");
    checks.filter_map(|body| Some(body["text"].as_str()?.to_owned())).collect()
}

fn write(name: &str) -> Value {
    json!({ "file_path": format!("{{{{cwd}}}}/{name}"), "content": "done\n" })
}

/// A session that makes files without a question.
fn session(client: &Client) -> Session<'_> {
    client.session_with(json!({ "mode": "acceptEdits" }))
}

/// Waits for a file that a command makes: nothing reports it.
fn wait_for_file(path: &Path) {
    let limit = Instant::now() + Duration::from_secs(60);
    while !path.exists() {
        assert!(Instant::now() < limit, "{} was never made", path.display());
        thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn a_goal_ends_by_its_check_and_the_model_gets_what_the_check_wrote() {
    let script = Script::default().when("thanks", [say("Gladly.")]).otherwise([
        say("It is done."),
        call("Write", write("made.txt")),
        say("Now it is done."),
    ]);
    let project = Project::new(&script);
    let client = project.open();
    let session = session(&client);
    let done = session.run("/goal --check 'cat made.txt' Make the file made.txt");
    assert_eq!(done["stopReason"], "end_turn", "{done}");
    let goals = goals(&session);
    let (first, last) = (goals.first().unwrap(), goals.last().unwrap());
    assert_eq!((&first["state"], &first["rounds"]), (&json!("active"), &json!(0)), "{first}");
    assert_eq!((&last["state"], &last["rounds"]), (&json!("met"), &json!(2)), "{last}");
    assert_eq!((&last["text"], &last["check"]), (&json!("Make the file made.txt"), &json!("cat made.txt")));
    assert!(
        goals.iter().any(|goal| goal["finding"].as_str().is_some_and(|text| text.contains("exit code 1")))
    );
    let requests = project.model.requests();
    assert_eq!(requests.len(), 3, "two answers and a round with a call");
    assert!(!requests[0].to_string().contains("not met yet"), "nothing was checked yet");
    let second = requests[1]["messages"].to_string();
    assert!(second.contains("not met yet") && second.contains("No such file"), "{second}");
    let checks = checks(&session);
    assert!(
        checks.iter().any(|text| text.contains("Check 1 of at most 20") && text.contains("No such file"))
    );
    assert!(checks.last().unwrap().contains("is met, by check 2"), "{checks:?}");
    assert_eq!(session.snapshot()["goal"]["state"], "met");
    // A later prompt ends as it always did.
    assert_eq!(session.run("thanks")["stopReason"], "end_turn");
    assert_eq!(project.model.requests().len(), 4);
}

#[test]
fn a_goal_ends_by_its_bound_and_says_so() {
    let script = Script::default().otherwise([say("Done."), say("Really done."), say("Never asked for.")]);
    let project = Project::new(&script);
    let client = project.open();
    let session = session(&client);
    let done = session.run("/goal --check false --rounds 2 Do it");
    assert_eq!(done["stopReason"], "budget", "{done}");
    assert_eq!(project.model.requests().len(), 2);
    let goal = session.snapshot()["goal"].clone();
    assert_eq!(
        (&goal["state"], &goal["rounds"], &goal["maxRounds"]),
        (&json!("outOfRounds"), &json!(2), &json!(2))
    );
    let notices = session.notices();
    let notice = notices.last().unwrap();
    assert!(notice["text"].as_str().unwrap().contains("took 2 checks"), "{notice}");
    assert!(notice["hint"].as_str().unwrap().contains("wider bounds"), "{notice}");
}

#[test]
fn a_goal_ends_when_its_money_is_used_up() {
    let project = Project::new(&Script::default().otherwise([say("Done.")]));
    let client = project.open();
    let session = session(&client);
    assert_eq!(session.run("/goal --check false --cost 0.0001 Do it")["stopReason"], "budget");
    assert_eq!(project.model.requests().len(), 1);
    let goal = session.snapshot()["goal"].clone();
    assert_eq!((&goal["state"], &goal["rounds"]), (&json!("outOfMoney"), &json!(1)), "{goal}");
}

#[test]
fn a_model_checks_a_goal_without_a_command() {
    let script = Script::default()
        .when("I have run it: it", [say("{\"ok\": true}")])
        .when("^<goal>", [say("{\"ok\": false, \"reason\": \"No test was run.\"}"), say("{\"ok\": true}")])
        .otherwise([say("I believe it works."), say("I have run it: it works.")]);
    let project = Project::new(&script);
    let client = project.open();
    let session = session(&client);
    let done = session.run("/goal The parser works");
    assert_eq!(done["stopReason"], "end_turn", "{:?}", checks(&session));
    let requests = project.model.requests();
    let judged: Vec<_> =
        requests.iter().filter(|request| request["messages"].to_string().contains("<goal>")).collect();
    assert_eq!(judged.len(), requests.len() - 2);
    let asked = judged[0]["messages"].to_string();
    assert!(asked.contains("The parser works") && asked.contains("I believe it works."), "{asked}");
    assert!(judged[0]["tools"].as_array().is_none_or(Vec::is_empty), "it has no tools");
    assert_eq!(session.snapshot()["goal"]["state"], "met");
    assert!(checks(&session).iter().any(|text| text.contains("No test was run.")));
}

#[test]
fn a_goal_is_active_after_a_restart_and_is_checked_with_the_next_prompt() {
    let script = Script::default()
        .when("carry on", [call("Write", write("made.txt")), say("Done.")])
        .otherwise([say("Done?"), say("One moment.").gate("never", 1)]);
    let project = Project::new(&script);
    let id = {
        let client = project.open();
        let session = session(&client);
        let turn = session.prompt("/goal --check 'cat made.txt' --minutes 60 Make it");
        session.wait_event("the first check", |event| {
            event["type"] == "goal_changed" && event["goal"]["rounds"] == 1
        });
        session.call("agent/turn/cancel", json!({}));
        assert_eq!(session.wait_done(&turn)["stopReason"], "cancelled");
        session.id.clone()
    };
    let client = project.open();
    let session = Session::new(&client, &id);
    let goal = session.snapshot()["goal"].clone();
    assert_eq!(
        (&goal["state"], &goal["rounds"], &goal["maxMinutes"]),
        (&json!("active"), &json!(1), &json!(60))
    );
    assert_eq!(session.run("carry on")["stopReason"], "end_turn");
    let goal = session.snapshot()["goal"].clone();
    assert_eq!((&goal["state"], &goal["rounds"]), (&json!("met"), &json!(2)), "{goal}");
}

#[test]
fn a_check_that_rules_deny_ends_the_turn_and_says_why() {
    let script = Script::default().otherwise([say("Done.")]);
    let project = Project::new(&script);
    project.write(".kode/settings.json", r#"{ "permissions": { "deny": ["Bash(touch:*)"] } }"#);
    let client = project.open();
    let session = session(&client);
    assert_eq!(session.run("/goal --check 'touch x' Do it")["stopReason"], "end_turn");
    assert_eq!(project.model.requests().len(), 1);
    assert!(!project.path("x").exists(), "the check did not run");
    let checks = checks(&session);
    assert!(checks.last().unwrap().contains("could not be checked"), "{checks:?}");
    assert_eq!(session.snapshot()["goal"]["state"], "active");
}

#[test]
fn a_goal_is_shown_and_removed_while_its_turn_runs() {
    let script = Script::default().otherwise([say("Working.").gate("hold", 1)]);
    let project = Project::new(&script);
    let client = project.open();
    let session = session(&client);
    let turn = session.prompt("/goal --check false Do it");
    project.model.wait_until_held("hold");
    session.submit("/goal");
    session.wait_event("the goal as an answer", |event| {
        event["type"] == "item_added"
            && event["item"]["body"]["arguments"] == ""
            && event["item"]["body"]["text"].as_str().is_some_and(|text| text.contains("- State: active"))
    });
    session.submit("/goal clear");
    session.wait_event("no goal", |event| event["type"] == "goal_changed" && event["goal"].is_null());
    project.model.release("hold");
    assert_eq!(session.wait_done(&turn)["stopReason"], "end_turn");
    assert!(session.snapshot()["goal"].is_null());
    assert!(!checks(&session).iter().any(|text| text.contains("Check 1")), "nothing was checked");
}

#[test]
fn a_goal_goes_with_its_prompt_when_the_session_goes_back_and_a_fork_has_none() {
    let project = Project::new(&Script::default().otherwise([say("Done.")]));
    let client = project.open();
    let session = session(&client);
    session.run("hello");
    session.run("/goal --check false --rounds 1 Do it");
    let forked = session.call("agent/session/fork", json!({}));
    assert!(forked["snapshot"]["goal"].is_null(), "{forked}");
    assert_eq!(session.snapshot()["goal"]["state"], "outOfRounds");
    let listed = session.call("agent/checkpoint/list", json!({}))["checkpoints"].clone();
    let newest = listed.as_array().unwrap().last().unwrap()["checkpointId"].clone();
    let params = json!({ "checkpointId": newest, "what": "conversation", "userEdits": "keep" });
    let started = session.call("agent/checkpoint/restore", params);
    session.wait_resolved(started["resolutionId"].as_str().unwrap());
    assert!(session.snapshot()["goal"].is_null());
    assert!(goals(&session).last().unwrap().is_null());
}

#[test]
fn no_check_runs_in_plan_mode_and_no_goal_is_set_there() {
    let project = Project::new(&Script::default().otherwise([say("Planned.")]));
    // The check is refused, so the goal stays active.
    project.write(".kode/settings.json", r#"{ "permissions": { "deny": ["Bash(touch:*)"] } }"#);
    let client = project.open();
    let session = session(&client);
    session.run("/goal --check 'touch x' Do it");
    let before = checks(&session).len();
    session.call("agent/session/configure", json!({ "mode": "plan" }));
    session.run("more");
    assert_eq!(checks(&session).len(), before, "nothing was checked");
    assert_eq!(session.snapshot()["goal"]["state"], "active");
    session.run("/goal --check false Another");
    assert!(
        checks(&session).last().unwrap().contains("changes nothing in this mode"),
        "{:?}",
        checks(&session)
    );
    assert_eq!(session.snapshot()["goal"]["text"], "Do it", "the earlier goal stays");
    assert_eq!(project.model.requests().len(), 2);
}

#[test]
fn a_server_that_is_killed_during_a_check_leaves_the_goal_active() {
    let project = Project::new(&Script::default().otherwise([say("Done.")]));
    let id = {
        let client = project.open();
        let session = session(&client);
        session.prompt("/goal --check 'test -f began || { touch began; sleep 600; }' Do it");
        wait_for_file(&project.path("began"));
        let id = session.id.clone();
        client.kill();
        id
    };
    let client = project.open();
    let session = Session::new(&client, &id);
    let goal = session.snapshot()["goal"].clone();
    assert_eq!((&goal["state"], &goal["rounds"]), (&json!("active"), &json!(0)), "{goal}");
    assert_eq!(session.run("carry on")["stopReason"], "end_turn");
    assert_eq!(session.snapshot()["goal"]["state"], "met");
}

#[test]
fn a_check_that_the_user_stops_counts_as_none_and_is_made_again() {
    let project = Project::new(&Script::default().otherwise([say("Done.")]));
    let client = project.open();
    let session = session(&client);
    let turn = session.prompt("/goal --check 'test -f began || { touch began; sleep 600; }' Do it");
    wait_for_file(&project.path("began"));
    session.call("agent/turn/cancel", json!({}));
    assert_eq!(session.wait_done(&turn)["stopReason"], "cancelled");
    let goal = session.snapshot()["goal"].clone();
    assert_eq!((&goal["state"], &goal["rounds"]), (&json!("active"), &json!(0)), "{goal}");
    assert_eq!(session.run("carry on")["stopReason"], "end_turn");
    let goal = session.snapshot()["goal"].clone();
    assert_eq!((&goal["state"], &goal["rounds"]), (&json!("met"), &json!(1)), "{goal}");
}
