//! A server that is killed, at any point: what was shown is there again, and the session goes on.

use kode_e2e::{Client, Project, Script, Session, call, say, step};
use serde_json::{Value, json};

/// Where the server is killed.
#[derive(Clone, Copy, Debug)]
enum Point {
    Streaming,
    Asking,
    Running,
    Done,
}

fn script() -> Script {
    let command = |command: &str| call("Bash", json!({ "command": command }));
    Script::default()
        .when("go on$", [say("Going on.")])
        .when("^Streaming$", [say("one two three four five six").chunk(4).gate("middle", 6)])
        .when(
            "^Asking$",
            [step().text("May I?").call("Bash", json!({ "command": "expr asked" })), say("Thanks.")],
        )
        .when(
            "^Running$",
            [
                command("expr first"),
                // Nobody is left to end it when the server is killed, so it ends soon by itself.
                command("expr begun; sleep 5"),
                say("Never."),
            ],
        )
        .when("^Done$", [command("expr first"), say("All done.")])
}

/// Brings a session to a point and kills the server there; gives its id and the items that were shown.
fn killed_at(project: &Project, point: Point) -> (String, Vec<Value>) {
    let client = project.open();
    let mode = if matches!(point, Point::Asking) { "default" } else { "bypassPermissions" };
    let session = client.session_with(json!({ "mode": mode }));
    let turn = session.prompt(&format!("{point:?}"));
    match point {
        Point::Streaming => {
            project.model.wait_until_held("middle");
            session.wait_event("the first words", |event| event["item"]["body"]["type"] == "agentMessage");
        }
        Point::Asking => {
            session.wait_permission(0);
        }
        Point::Running => {
            session.wait_event("output of the command", |event| {
                event["type"] == "tool:progress"
                    && event["text"].as_str().is_some_and(|text| text.contains("begun"))
            });
        }
        Point::Done => {
            session.wait_done(&turn);
        }
    }
    let items = session.items();
    client.kill();
    (session.id.clone(), items)
}

fn loaded<'a>(client: &'a Client, id: &str) -> Session<'a> {
    let session = Session::new(client, id);
    session.call("agent/session/load", json!({}));
    session
}

#[test]
fn a_killed_server_goes_on_where_it_was() {
    for point in [Point::Streaming, Point::Asking, Point::Running, Point::Done] {
        let project = Project::new(&script());
        let (id, shown) = killed_at(&project, point);
        let client = project.open();

        let list = client.call("agent/session/list", json!({}));
        let listed =
            list["sessions"].as_array().unwrap().iter().find(|session| session["sessionId"] == id.as_str());
        let listed = listed.unwrap_or_else(|| panic!("{point:?}: {list} has no {id}"));
        assert_eq!(listed["title"], format!("{point:?}"), "{listed}");

        let session = loaded(&client, &id);
        let snapshot = session.snapshot();
        assert_eq!(snapshot["state"], "READY", "{point:?}");
        assert_eq!(snapshot["pendingPermissions"], json!([]), "{point:?}");
        let items = session.items();
        for item in &shown {
            let streaming = item["body"]["complete"] == false;
            let found = items.iter().find(|loaded| loaded["itemId"] == item["itemId"]);
            // Half a message is not a fact yet; everything else that was shown is.
            if streaming {
                continue;
            }
            let found = found.unwrap_or_else(|| panic!("{point:?}: {item} is gone"));
            let state = item["body"]["state"].as_str();
            if state.is_none_or(|state| ["COMPLETED", "FAILED", "DENIED"].contains(&state)) {
                assert_eq!(found, item, "{point:?}");
            } else {
                assert_eq!(found["body"]["state"], "SEALED", "{point:?}: {found}");
            }
        }
        let unfinished = session.calls().into_iter().filter(|call| call["state"] == "SEALED").count();
        assert_eq!(unfinished, usize::from(matches!(point, Point::Asking | Point::Running)), "{point:?}");

        assert_eq!(session.run("go on")["stopReason"], "end_turn", "{point:?}: {:?}", session.notices());
        let last = session.items().pop().unwrap();
        assert_eq!(last["body"]["text"], "Going on.", "{point:?}");
    }
}

#[test]
fn a_sealed_call_tells_the_model_whether_it_had_begun() {
    for (point, says) in [(Point::Asking, "had not begun"), (Point::Running, "had begun")] {
        let project = Project::new(&script());
        let (id, _) = killed_at(&project, point);
        let client = project.open();
        loaded(&client, &id).run("go on");
        let request = project.model.last_request().to_string();
        assert!(request.contains(says), "{point:?}: {request}");
    }
}

#[test]
fn a_session_survives_kill_after_kill() {
    let project = Project::new(&script());
    let (id, _) = killed_at(&project, Point::Asking);
    for round in 1..=3 {
        let client = project.open();
        let session = loaded(&client, &id);
        assert_eq!(session.run("go on")["stopReason"], "end_turn", "round {round}");
        session.prompt("Asking");
        session.wait_permission(0);
        let asked = session.items().iter().filter(|item| item["body"]["text"] == "Asking").count();
        assert_eq!(asked, 1 + round, "every prompt of every round is there");
        client.kill();
    }
}

#[test]
fn half_a_line_at_the_end_of_a_journal_costs_that_line_alone() {
    use std::io::Write;
    let project = Project::new(&script());
    let (id, shown) = killed_at(&project, Point::Done);
    let journal = crate::turn::files(&project.home())
        .into_iter()
        .find(|path| path.ends_with("journal.jsonl"))
        .expect("a journal");
    let mut file = std::fs::OpenOptions::new().append(true).open(journal).unwrap();
    file.write_all(b"{\"type\":\"item\",\"half a rec").unwrap();
    drop(file);
    let client = project.open();
    let session = loaded(&client, &id);
    assert_eq!(session.items(), shown);
    assert_eq!(session.run("go on")["stopReason"], "end_turn");
    drop(client);
    let client = project.open();
    let again = loaded(&client, &id);
    assert_eq!(
        again.items().last().unwrap()["body"]["text"],
        "Going on.",
        "nothing was appended to half a line"
    );
}
