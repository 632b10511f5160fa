//! Standing answers: for the session, the project, the user.
//!
//! Rule: the stored text is exactly the shown one, the rest of the file stays as it was, and a rule that is gone
//! is asked for again.

use super::*;

fn tags() -> Script {
    script([
        ("one", bash("git tag one")),
        ("two", bash("git tag two")),
        ("log", bash("git stash drop")),
        ("write", write("notes.txt")),
    ])
}

/// The offer of a prompt for a scope.
fn offer(prompt: &Value, scope: &str) -> Value {
    let offers = prompt["offers"].as_array().unwrap().iter();
    let found = offers.clone().find(|offer| offer["scope"] == scope);
    found.unwrap_or_else(|| panic!("no offer for {scope} in {prompt}")).clone()
}

#[test]
fn always_in_this_project_is_kept_in_its_local_settings_and_holds_here_in_new_sessions_and_after_a_restart() {
    let desk = Desk::new(&tags());
    let before = "{\n  // mine\n  \"permissions\": {\n    \"allow\": [], // none yet\n    \"surprise\": 1\n  },\n  \"x\": [1]\n}\n";
    desk.project.write(".kode/settings.local.json", before);
    {
        let client = desk.open();
        let session = client.session();
        let turn = session.prompt("one");
        let prompt = session.wait_permission(0);
        let offered = offer(&prompt, "project");
        assert_eq!(offered["rules"], json!(["Bash(git tag:*)"]), "{prompt}");
        assert!(prompt["text"].as_str().unwrap().contains("git tag one"), "{prompt}");
        session.respond(&prompt, json!({ "decision": "allow", "scope": "project" })).unwrap();
        session.wait_done(&turn);

        assert_eq!(fate(&session, "two").0, Fate::Ran);
        assert_eq!(fate(&session, "log").0, Fate::Asked, "another command");
        assert_eq!(fate(&client.session(), "two").0, Fate::Ran, "in a new session");
    }
    let client = desk.open();
    let session = client.session();
    assert_eq!(fate(&session, "two").0, Fate::Ran, "after a restart");

    let after = desk.project.read(".kode/settings.local.json");
    for kept in ["// mine", "// none yet", "\"surprise\": 1", "\"x\": [1]", "\"Bash(git tag:*)\""] {
        assert!(after.contains(kept), "{kept} is not in {after}");
    }
    assert!(!desk.user_file().exists());

    // Taken out again, by hand or by request, it is asked for again, in the same session.
    let file = desk.project.path(".kode/settings.local.json");
    let rule = json!({ "file": file, "behavior": "allow", "rule": "Bash(git tag:*)" });
    assert_eq!(session.call("agent/permission/removeRule", rule)["removed"], true);
    assert_eq!(fate(&session, "two").0, Fate::Asked);
    assert!(desk.project.read(".kode/settings.local.json").contains("// none yet"));
}

#[test]
fn always_everywhere_is_kept_in_the_users_settings() {
    let desk = Desk::new(&tags());
    let client = desk.open();
    let session = client.session();
    let turn = session.prompt("one");
    answer(&session, 0, json!({ "scope": "user" }));
    session.wait_done(&turn);
    let kept: Value = serde_json::from_str(&std::fs::read_to_string(desk.user_file()).unwrap()).unwrap();
    assert_eq!(kept["permissions"]["allow"], json!(["Bash(git tag:*)"]), "{kept}");
    assert!(!desk.project.path(".kode").exists());
    assert_eq!(fate(&client.session(), "two").0, Fate::Ran);
}

#[test]
fn the_user_may_keep_a_narrower_rule_than_was_offered() {
    let desk = Desk::new(&tags());
    let client = desk.open();
    let session = client.session();
    let turn = session.prompt("one");
    answer(&session, 0, json!({ "scope": "project", "rules": ["Bash(git tag one)"] }));
    session.wait_done(&turn);
    assert!(desk.project.read(".kode/settings.local.json").contains("Bash(git tag one)"));
    assert_eq!(fate(&session, "one").0, Fate::Ran);
    assert_eq!(fate(&session, "two").0, Fate::Asked);
}

#[test]
fn a_yes_for_the_session_is_written_nowhere_and_ends_with_it() {
    let desk = Desk::new(&tags());
    let client = desk.open();
    let session = client.session();
    let turn = session.prompt("write");
    let prompt = answer(&session, 0, json!({ "scope": "session" }));
    assert!(offer(&prompt, "session")["rules"].to_string().contains("notes.txt"), "{prompt}");
    session.wait_done(&turn);
    let same = fate(&session, "write");
    assert_eq!(same.0, Fate::Ran, "{same:?}");
    std::fs::remove_file(desk.project.path("notes.txt")).unwrap();
    assert_eq!(fate(&client.session(), "write").0, Fate::Asked);
    assert!(!desk.project.path(".kode").exists() && !desk.user_file().exists());
}

#[test]
fn a_rule_that_cannot_be_written_is_reported_and_counts_for_the_session() {
    let desk = Desk::new(&tags());
    desk.project.write(".kode/settings.local.json", "{ broken");
    let client = desk.open();
    let session = client.session();
    let turn = session.prompt("one");
    answer(&session, 0, json!({ "scope": "session" }));
    session.wait_done(&turn);
    assert_eq!(desk.project.read(".kode/settings.local.json"), "{ broken");
}
