//! `kode-ls permissions` and `kode-ls doctor`.
//!
//! Rule: the same verdicts as in a session, by the same files.

use super::*;

fn json_of(output: &Output) -> Value {
    serde_json::from_str(&output.stdout).unwrap_or_else(|error| panic!("{error}: {output:?}"))
}

#[test]
fn one_call_is_explained_with_the_rule_that_decides_and_its_place() {
    let desk = Desk::new(&Script::default());
    desk.write_user("{\n \"permissions\": {\n  \"deny\": [\"Bash(curl:*)\"]\n }\n}");
    let explain = |command: &str, mode: &str| {
        let input = json!({ "command": command }).to_string();
        json_of(&desk.cli(
            &["permissions", "explain", "--json", "--tool", "Bash", "--input", &input, "--mode", mode],
            "",
        ))
    };
    let denied = explain("echo a && curl http://example.org", "bypassPermissions");
    assert_eq!((&denied["decision"], &denied["rule"]), (&json!("deny"), &json!("Bash(curl:*)")), "{denied}");
    assert!(denied["source"].as_str().unwrap().contains("settings.json:3"), "{denied}");
    assert_eq!(explain("ls", "default")["decision"], "allow");
    let asked = explain("git tag one", "default");
    assert_eq!(
        (&asked["decision"], &asked["proposed"]),
        (&json!("ask"), &json!(["Bash(git tag:*)"])),
        "{asked}"
    );
    assert_eq!(explain("rm -rf /", "bypassPermissions")["decision"], "deny");
}

#[test]
fn questions_on_standard_input_are_answered_line_by_line_and_bad_ones_do_not_end_it() {
    let desk = Desk::new(&Script::default());
    let ask = |rules: Value| {
        json!({ "tool": "Read", "input": { "file_path": "/w/a" }, "workspace": "/w", "rules": rules })
            .to_string()
    };
    let lines = [
        ask(json!({})),
        "{ this is no json".to_owned(),
        ask(json!({ "deny": ["Read(/a)"] })),
        json!({ "input": {} }).to_string(),
        json!({ "tool": "Read", "input": { "file_path": "/w/a" }, "workspace": "w" }).to_string(),
        String::new(),
        ask(json!({ "deny": ["Read("] })),
    ];
    let output = desk.cli(&["permissions", "explain"], &(lines.join("\n") + "\n"));
    assert_eq!(output.code, 1, "{output:?}");
    let answers: Vec<Value> = output.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let decisions: Vec<_> = answers.iter().map(|answer| answer["decision"].as_str()).collect();
    assert_eq!(decisions, [Some("allow"), None, Some("deny"), None, None, Some("allow")], "{answers:?}");
    assert!(
        answers[1]["error"].is_string() && answers[3]["error"].as_str().unwrap().contains("tool"),
        "{answers:?}"
    );
    assert!(answers[4]["error"].as_str().unwrap().contains("absolute"), "{answers:?}");
    assert!(answers[5]["problems"].to_string().contains("Read("), "{answers:?}");
}

#[test]
fn rules_are_added_listed_and_removed() {
    let desk = Desk::new(&Script::default());
    let ok = |arguments: &[&str]| {
        let output = desk.cli(arguments, "");
        assert_eq!(output.code, 0, "{arguments:?}: {output:?}");
        output.stdout
    };
    let local = desk.project.path(".kode/settings.local.json");
    assert!(ok(&["permissions", "add", "deny", "Bash(git tag:*)"]).contains(local.to_str().unwrap()));
    assert!(
        ok(&["permissions", "add", "allow", "WebFetch(domain:example.org)", "--user"]).contains("user/.kode")
    );
    let listed: Value = serde_json::from_str(&ok(&["permissions", "list", "--json"])).unwrap();
    let rules: Vec<_> = listed["rules"].as_array().unwrap().iter().map(|rule| rule["rule"].clone()).collect();
    assert_eq!(rules.len(), 2, "{listed}");
    assert!(
        rules.contains(&json!("Bash(git tag:*)")) && rules.contains(&json!("WebFetch(domain:example.org)"))
    );
    assert!(ok(&["permissions", "list"]).contains("Bash(git tag:*)"));
    ok(&["permissions", "remove", "deny", "Bash(git tag:*)", "--file", local.to_str().unwrap()]);
    assert!(!ok(&["permissions", "list"]).contains("Bash(git tag:*)"));

    let twice = desk
        .cli(&["permissions", "remove", "deny", "Bash(git tag:*)", "--file", local.to_str().unwrap()], "");
    assert_ne!(twice.code, 0, "{twice:?}");
    let bad = desk.cli(&["permissions", "add", "deny", "Bash("], "");
    assert!(bad.code != 0 && bad.stderr.contains("Bash("), "{bad:?}");
}

#[test]
fn what_a_project_asks_for_waits_until_it_is_approved() {
    let desk = Desk::new(&Script::default());
    desk.project.write(".kode/settings.json", r#"{ "permissions": { "allow": ["Bash(git tag:*)"] } }"#);
    let decision = || {
        let input = json!({ "command": "git tag a" }).to_string();
        json_of(&desk.cli(&["permissions", "explain", "--json", "--tool", "Bash", "--input", &input], ""))["decision"]
            .clone()
    };
    assert_eq!(decision(), "ask");
    let listed = json_of(&desk.cli(&["permissions", "list", "--json"], ""));
    assert_eq!(
        (listed["rules"].as_array().unwrap().len(), &listed["withheld"][0]["value"]),
        (0, &json!("Bash(git tag:*)"))
    );
    let approved = desk.cli(&["trust", "approve", "--yes", ".kode/settings.json"], "");
    assert_eq!(approved.code, 0, "{approved:?}");
    assert_eq!(decision(), "allow");
    // The approval is for that text: another is asked for again.
    desk.project.write(".kode/settings.json", r#"{ "permissions": { "allow": ["Bash(git:*)"] } }"#);
    assert_eq!(decision(), "ask");
    let again = desk.cli(&["trust", "approve", "--yes", ".kode/settings.local.json"], "");
    assert_ne!(again.code, 0, "{again:?}");
}

#[test]
fn doctor_says_what_the_settings_are_and_what_they_make_of_commands() {
    let desk = Desk::new(&Script::default());
    desk.user(&json!({ "sandbox": { "enabled": false }, "webSearch": { "provider": "brave", "apiKeyEnv": "NO_SUCH" } }));
    desk.project
        .write(".kode/settings.json", r#"{ "permissions": { "deny": ["Read("], "allow": ["Bash(a)"] } }"#);
    desk.project.write(".claude/skills/Bad Name/SKILL.md", "Do it.\n");
    let found = json_of(&desk.cli(&["doctor", "--json"], ""));
    let settings = &found["settings"];
    assert_eq!(settings["files"].as_array().unwrap().len(), 2, "{found:#}");
    assert_eq!(settings["problems"][0]["severe"], true, "{found:#}");
    assert_eq!(settings["withheld"][0]["value"], "Bash(a)", "{found:#}");
    assert!(settings["commands"].as_str().unwrap().contains("sandbox.enabled"), "{found:#}");
    assert!(found["webSearch"]["problem"].as_str().unwrap().contains("NO_SUCH"), "{found:#}");
    let text = desk.cli(&["doctor"], "");
    for expected in [
        "settings.json",
        "Bash(a)",
        "NO_SUCH",
        "sandbox.enabled",
        "Bad Name/SKILL.md: This skill is left out: its folder's name",
    ] {
        assert!(text.stdout.contains(expected), "{expected} is not in {}", text.stdout);
    }

    desk.user(&json!({ "webSearch": { "provider": "searxng", "endpoint": "http://127.0.0.1:9" } }));
    let found = json_of(&desk.cli(&["doctor", "--json"], ""));
    assert_eq!(found["webSearch"]["on"], true, "{found:#}");
    assert!(found["settings"]["commands"].as_str().unwrap().contains("in the sandbox"), "{found:#}");
    std::fs::remove_file(desk.user_file()).unwrap();
    let found = json_of(&desk.cli(&["doctor", "--json"], ""));
    assert!(found["webSearch"]["how"].as_str().unwrap().contains("webSearch"), "{found:#}");
}
