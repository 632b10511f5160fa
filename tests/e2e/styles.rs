//! The style of a session's answers, over the wire.

use kode_e2e::{Project, Script, Session, say};
use serde_json::{Value, json};

/// The system prompt of the newest request.
fn system(project: &Project) -> String {
    project.model.requests().last().expect("a request")["system"].to_string()
}

#[test]
fn the_style_of_one_session_counts_from_its_next_turn_on_and_after_a_restart() {
    let project = Project::new(&Script::new([say("Done.").repeat(9)]));
    project.write(".kode/output-styles/pirate.md", "---\nname: Pirate\n---\nTalk like a pirate.\n");
    let client = project.open();
    let (session, other) = (client.session(), client.session());
    let configure = |style: &str| session.request("agent/session/configure", json!({ "outputStyle": style }));
    session.run("one");
    assert!(!system(&project).contains("pirate"));
    assert_eq!(configure("pirate").unwrap()["outputStyle"], "Pirate");
    session
        .wait_event("the style", |event| event["type"] == "mode_changed" && event["outputStyle"] == "Pirate");
    assert_eq!(session.snapshot()["outputStyle"], "Pirate");
    session.run("two");
    assert!(system(&project).contains("Talk like a pirate."));
    other.run("three");
    assert!(!system(&project).contains("pirate"), "it is the style of one session");

    let error = configure("gangster").expect_err("no such style");
    assert_eq!(error.code, -32602);
    for known in ["gangster", "Pirate", "Default", "Explanatory", "Learning", "Concise"] {
        assert!(error.message.contains(known), "{error:?}");
    }
    assert_eq!(session.snapshot()["outputStyle"], "Pirate", "what is wrong changes nothing");

    client.kill();
    client.wait_for_end();
    let client = project.open();
    let session = Session::new(&client, &session.id);
    assert_eq!(session.snapshot()["outputStyle"], "Pirate");
    session.run("four");
    assert!(system(&project).contains("Talk like a pirate."));
    let back = session.call("agent/session/configure", json!({ "outputStyle": "" }));
    assert_eq!(back["outputStyle"], Value::Null);
    session.run("five");
    assert!(!system(&project).contains("pirate"));
}
