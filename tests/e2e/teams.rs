//! Teams over the wire: sub-agents in the background exchange messages, wait for each other and share a list of tasks.
//!
//! Rule: gates of the scripted model order what two sub-agents do; a test waits for the event that a step has happened. The
//! newest request of all can be a sub-agent's, so requests are found by the prompt that their conversation began with.

use kode_e2e::{Client, Project, Script, Session, Step, call, conforms, say, step};
use serde_json::{Value, json};

/// The arguments of a call that starts a sub-agent with this name, whose task is `do NAME`.
fn member(name: &str) -> Value {
    json!({
        "description": name, "prompt": format!("do {name}"), "name": name, "run_in_background": true,
    })
}

fn message(to: &str, text: &str) -> Step {
    call("SendMessage", json!({ "to": to, "text": text }))
}

fn wait_for(from: &str) -> Step {
    call("WaitForMessage", json!({ "from": from }))
}

fn tasks(action: &str, more: Value) -> Step {
    let mut input = json!({ "action": action });
    input.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    call("TeamTasks", input)
}

/// The member of this name in a team.
fn of<'t>(team: &'t Value, name: &str) -> &'t Value {
    let members = team["members"].as_array().unwrap();
    members.iter().find(|member| member["name"] == name).unwrap_or(&Value::Null)
}

/// Waits for the event of a team that is as wanted.
fn wait_team(session: &Session<'_>, what: &str, is_wanted: impl Fn(&Value) -> bool) -> Value {
    let is_it = |event: &Value| event["type"] == "team_changed" && is_wanted(&event["team"]);
    session.wait_event(what, is_it)["team"].clone()
}

/// The requests of the conversation that began with this prompt.
fn requests_of(project: &Project, prompt: &str) -> Vec<Value> {
    let begins = |request: &Value| request["messages"][0].to_string().contains(&json!(prompt).to_string());
    project.model.requests().into_iter().filter(begins).collect()
}

/// The results in the newest request of the conversation that began with this prompt.
fn results_of(project: &Project, prompt: &str) -> Vec<(String, bool)> {
    let requests = requests_of(project, prompt);
    let messages = requests.last().unwrap()["messages"].as_array().unwrap();
    messages.iter().flat_map(kode_e2e::results_of).collect()
}

fn tools(request: &Value) -> Vec<String> {
    let tools = request["tools"].as_array().unwrap().iter();
    tools.map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
}

fn has_ended(name: &'static str) -> impl Fn(&Value) -> bool {
    move |team| of(team, name)["state"] == "ended"
}

fn open(project: &Project) -> Client {
    project.open()
}

#[test]
fn two_sub_agents_wait_for_each_other_share_tasks_and_a_restart_keeps_the_list() {
    let both = step().call("Task", member("one")).call("Task", member("two"));
    let script = Script::default()
        .when(
            "^do one$",
            [
                wait_for("two").gate("one", 0),
                tasks("claim", json!({ "task": 1 })),
                tasks("claim", json!({ "task": 2 })).gate("second", 0),
                say("One is done.").gate("never", 0),
            ],
        )
        .when(
            "^do two$",
            [
                tasks("claim", json!({ "task": 1 })).gate("two", 0),
                message("one", "the port is 8080").gate("send", 0),
                tasks("complete", json!({ "task": 1 })).gate("complete", 0),
                say("Two is done."),
            ],
        )
        .otherwise([
            both,
            tasks("add", json!({ "title": "Find the port" })),
            tasks("add", json!({ "title": "Use the port", "blockedBy": [1] })),
            say("They work."),
        ]);
    let project = Project::new(&script);
    let client = open(&project);
    let session = client.session();
    session.run("go");
    let snapshot = session.snapshot();
    assert_eq!(of(&snapshot["team"], "main")["state"], "idle", "{snapshot}");
    assert_eq!(of(&snapshot["team"], "one")["state"], "working");

    project.model.release("one");
    let team = wait_team(&session, "the wait", |team| of(team, "one")["state"] == "waiting");
    assert_eq!(of(&team, "one")["waitsFor"], "two", "{team}");
    assert_eq!(session.snapshot()["team"], team, "a client that attaches is shown the same");
    project.model.release("two");
    project.model.wait_until_held("send");
    let team = session.snapshot()["team"].clone();
    assert_eq!((&team["tasks"][0]["state"], &team["tasks"][0]["owner"]), (&json!("claimed"), &json!("two")));
    assert_eq!(team["tasks"][1]["blockedBy"], json!([1]));
    project.model.release("send");
    project.model.wait_until_held("second");
    let results = results_of(&project, "do one");
    assert!(results[0].0.contains("message of `two` has come"), "{results:?}");
    assert_eq!(results[1], (results[1].0.clone(), true));
    assert!(results[1].0.contains("Task 1 is claimed by `two`"), "{results:?}");
    let said = requests_of(&project, "do one").last().unwrap().to_string();
    assert_eq!(said.matches("the port is 8080").count(), 1, "{said}");
    assert!(said.contains("<message from=\\\"two\\\"") && said.contains("not from the user"), "{said}");
    project.model.release("complete");
    wait_team(&session, "the end of two", has_ended("two"));
    project.model.release("second");
    project.model.wait_until_held("never");
    let results = results_of(&project, "do one");
    assert!(results[2].0.contains("2. [claimed by `one`] Use the port"), "{results:?}");
    assert!(session.events().iter().all(|event| event["type"] != "permission_required"));
    for event in session.events().iter().filter(|event| event["type"] == "team_changed") {
        conforms::<kode_protocol::Event>(event).unwrap();
    }

    let id = session.id.clone();
    client.kill();
    let client = open(&project);
    let session = Session::new(&client, &id);
    let loaded = session.call("agent/session/load", json!({}));
    let team = &loaded["team"];
    assert_eq!(
        (of(team, "one")["state"].as_str(), of(team, "two")["state"].as_str()),
        (Some("ended"), Some("ended"))
    );
    let (first, second) = (&team["tasks"][0], &team["tasks"][1]);
    assert_eq!((&first["state"], &first["owner"]), (&json!("completed"), &json!("two")), "{team}");
    assert_eq!(
        (&second["state"], &second["owner"]),
        (&json!("open"), &Value::Null),
        "its owner has ended: {team}"
    );
}

#[test]
fn a_cycle_of_waits_is_refused_and_the_end_of_the_awaited_one_ends_a_wait() {
    let both = step().call("Task", member("one")).call("Task", member("two"));
    let script = Script::default()
        .when("^do one$", [wait_for("two").gate("one", 0), say("One is done.")])
        .when("^do two$", [wait_for("one").gate("two", 0), say("Two is done.").gate("end", 0)])
        .otherwise([both, say("They work.")]);
    let project = Project::new(&script);
    let client = open(&project);
    let session = client.session();
    session.run("go");
    project.model.release("one");
    wait_team(&session, "the wait", |team| of(team, "one")["state"] == "waiting");
    project.model.release("two");
    project.model.wait_until_held("end");
    let (text, is_error) = results_of(&project, "do two").remove(0);
    assert!(is_error && text.contains("`two` would wait for `one`, which waits for `two`"), "{text}");
    assert_eq!(of(&session.snapshot()["team"], "two")["state"], "working");
    project.model.release("end");
    wait_team(&session, "the end of one", has_ended("one"));
    let (text, is_error) = results_of(&project, "do one").remove(0);
    assert!(!is_error && text.contains("`two` has ended"), "{text}");
}

#[test]
fn a_full_mailbox_refuses_agents_and_the_user_until_its_owner_reads() {
    let many = (0..33).fold(step(), |step, number| {
        step.call("SendMessage", json!({ "to": "one", "text": format!("number {number}") }))
    });
    let script = Script::default()
        .when(
            "^do one$",
            [tasks("list", json!({})).gate("one", 0), say("Read.").gate("end", 0), say("Heard.")],
        )
        .otherwise([call("Task", member("one")), many, say("Sent.")]);
    let project = Project::new(&script);
    let client = open(&project);
    let session = client.session();
    session.run("go");
    let results = results_of(&project, "go");
    let refused: Vec<_> = results.iter().filter(|(_, is_error)| *is_error).collect();
    assert_eq!(refused.len(), 1, "{results:?}");
    assert!(refused[0].0.contains("mailbox of `one` is full") && refused[0].0.contains("32"), "{refused:?}");
    assert_eq!(of(&session.snapshot()["team"], "one")["unread"], 32);
    let send = |to: &str, text: &str| session.request("agent/team/send", json!({ "to": to, "text": text }));
    let error = send("one", "hello").unwrap_err();
    assert_eq!(error.kind(), "sessionBusy", "{error:?}");
    for (to, text, path) in [("nobody", "hello", "to"), ("main", "hello", "to"), ("one", "", "text")] {
        let error = send(to, text).unwrap_err();
        let kind = if to == "main" { "nothingToDo" } else { "invalidParams" };
        assert_eq!(error.kind(), kind, "{error:?}");
        assert!(kind == "nothingToDo" || error.data["path"] == path, "{error:?}");
        assert!(error.data["hint"].as_str().is_some_and(|hint| !hint.is_empty()), "{error:?}");
    }
    project.model.release("one");
    wait_team(&session, "that it has read", |team| of(team, "one")["unread"] == 0);
    project.model.wait_until_held("end");
    assert_eq!(send("*", "from me").unwrap(), json!({ "to": ["one"] }));
    project.model.release("end");
    wait_team(&session, "the end of one", has_ended("one"));
    let requests = requests_of(&project, "do one");
    let last = requests.last().unwrap().to_string();
    assert_eq!(requests.len(), 3, "a message that came at the end is read as well");
    assert!(last.contains("<message from=\\\"the user\\\"") && last.contains("from me"), "{last}");
    assert_eq!((last.matches("number 31").count(), last.matches("number 32").count()), (1, 0));
}

#[test]
fn a_message_to_the_main_conversation_comes_with_its_next_step_or_turn_in_every_mode() {
    let script = Script::default()
        .when("^do one$", [message("main", "found it").gate("one", 0), say("One is done.")])
        .when("^later$", [say("I see.")])
        .otherwise([call("Task", member("one")), call("WaitForMessage", json!({})), say("Good.")]);
    let project = Project::new(&script);
    let client = open(&project);
    let session = client.session_with(json!({ "mode": "plan" }));
    assert!(
        !tools(&{
            session.run("later");
            project.model.last_request()
        })
        .contains(&"SendMessage".to_owned())
    );
    assert_eq!(session.snapshot()["team"], Value::Null, "there is no team yet");
    let turn = session.prompt("go");
    let team = wait_team(&session, "the wait", |team| of(team, "main")["state"] == "waiting");
    assert_eq!(of(&team, "main")["waitsFor"], Value::Null, "{team}");
    project.model.release("one");
    session.wait_done(&turn);
    let request = requests_of(&project, "later").pop().unwrap();
    assert!(request.to_string().contains("<message from=\\\"one\\\""), "{request}");
    assert!(tools(&request).contains(&"SendMessage".to_owned()), "{request}");
    assert_eq!(results_of(&project, "later").iter().filter(|(_, is_error)| *is_error).count(), 0);
    wait_team(&session, "the end of one", has_ended("one"));
    session.run("later");
    assert_eq!(project.model.last_request().to_string().matches("found it").count(), 1, "it is read once");
    let own = requests_of(&project, "do one")[0].to_string();
    assert!(own.contains("under the name `one`") && own.contains("SendMessage"), "{own}");
}

#[test]
fn a_sub_agent_that_waits_for_the_user_shows_and_a_rule_removes_the_tools() {
    let write = json!({ "file_path": "{{cwd}}/new.txt", "content": "made\n" });
    let script = Script::default().when("^do one$", [call("Write", write), say("One is done.")]).otherwise([
        call("Task", member("one")),
        message("one", "hello"),
        say("Good."),
    ]);
    let project = Project::new(&script);
    project.write(".kode/settings.json", json!({ "permissions": { "deny": ["SendMessage"] } }).to_string());
    let client = open(&project);
    let session = client.session();
    session.run("go");
    let last = results_of(&project, "go").pop().unwrap();
    assert!(last.1, "a rule of the user's refuses the call: {last:?}");
    let request = requests_of(&project, "go").pop().unwrap();
    assert!(!tools(&request).contains(&"SendMessage".to_owned()), "{request}");
    assert!(tools(&request).contains(&"WaitForMessage".to_owned()), "{request}");
    wait_team(&session, "the prompt", |team| of(team, "one")["state"] == "permission");
    session.allow(0);
    wait_team(&session, "the end of one", has_ended("one"));
    assert_eq!(project.read("new.txt"), "made\n");
}

#[test]
fn a_name_is_checked_before_a_sub_agent_starts() {
    let named = |name: &str| {
        call(
            "Task",
            json!({ "description": "it", "prompt": "do it", "name": name, "run_in_background": true }),
        )
    };
    let foreground = call("Task", json!({ "description": "it", "prompt": "do it", "name": "one" }));
    let script = Script::default().when("^do it$", [say("Done.").gate("it", 0)]).otherwise([
        named("Not good"),
        named("main"),
        foreground,
        named("one"),
        named("one"),
        named(""),
        named("two"),
        named("three"),
        named("four"),
        say("Good."),
    ]);
    let project = Project::new(&script);
    let client = open(&project);
    let session = client.session();
    session.run("go");
    let results = results_of(&project, "go");
    for (place, expected) in [
        (0, "`Not good` is no name"),
        (1, "the name `main` is taken"),
        (2, "Only a sub-agent in the background has a name"),
        (4, "the name `one` is taken by another sub-agent"),
    ] {
        assert!(results[place].1 && results[place].0.contains(expected), "{:?}", results[place]);
    }
    assert!(results[3].0.contains("Its name is `one`"), "{results:?}");
    assert!(results[5].0.contains("Its name is `general-purpose-1`"), "{results:?}");
    let team = session.snapshot()["team"].clone();
    assert_eq!(team["members"].as_array().unwrap().len(), 5, "{team}");
    assert!(results[8].1 && results[8].0.contains("No sub-agent was started"), "{:?}", results[8]);
    assert_eq!(of(&team, "four"), &Value::Null, "one that did not start is no member");
}
