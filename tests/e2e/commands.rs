//! Slash commands over the protocol, in editors without a plugin and without an editor.

use std::fs;
use std::path::Path;

use kode_e2e::{Client, Offer, Project, Script, Session, call, say};
use serde_json::{Value, json};

/// The newest thing a command has said.
fn answer(session: &Session<'_>) -> Value {
    let mut items = session.items().into_iter().map(|item| item["body"].clone());
    items.rfind(|body| body["type"] == "command").expect("a command has said something")
}

fn run(session: &Session<'_>, text: &str) -> Value {
    let reported = session.submit(text);
    match reported["type"].as_str() {
        Some("answered") => drop(session.wait_event("the answer", |event| {
            event["type"] == "item_added" && event["item"]["itemId"] == reported["itemId"]
        })),
        _ => drop(session.wait_done(reported["turnId"].as_str().expect("a turn"))),
    }
    answer(session)
}

fn commands(client: &Client) -> Vec<Value> {
    let listed = client.call("agent/commands/list", json!({}));
    listed["commands"].as_array().unwrap().clone()
}

#[test]
fn every_built_in_command_answers_over_the_protocol() {
    let project = Project::new(&Script::new([]));
    let client = project.open();
    let built_in: Vec<Value> = commands(&client).into_iter().filter(|one| one["kind"] == "builtIn").collect();
    assert!(built_in.len() > 30, "{}", built_in.len());
    let session = client.session();
    for one in built_in.iter().filter(|one| one["effect"] != "prompt" && one["name"] != "compact") {
        let name = one["name"].as_str().unwrap();
        let said = run(&session, &format!("/{name}"));
        assert_eq!(said["name"], *name);
        assert!(!said["text"].as_str().unwrap().is_empty(), "{said}");
        assert_eq!(said["failed"] == true, ["add-dir", "rename"].contains(&name), "{said}");
    }
    // A side question is no prompt, and `/git` is one with a further word.
    let is_prompt = |one: &&Value| one["effect"] == "prompt" && one["name"] != "git" && one["name"] != "btw";
    for one in built_in.iter().filter(is_prompt) {
        let name = one["name"].as_str().unwrap();
        session.run(&format!("/{name} with care"));
        let prompt = session.items().into_iter().rfind(|item| item["body"]["type"] == "userMessage").unwrap();
        assert_eq!(prompt["body"]["command"]["name"], *name, "{prompt}");
        let sent = project.model.requests().pop().unwrap()["messages"].to_string();
        assert!(sent.contains("with care"), "{name}: {sent}");
    }
    let sent = project.model.requests();
    assert!(
        sent.iter().all(|request| !request["messages"].to_string().contains("/cost")),
        "no model hears of it"
    );
}

#[test]
fn what_is_no_command_is_answered_and_wrong_arguments_too() {
    let project = Project::new(&Script::new([say("hello")]));
    project.write("a.txt", "there already");
    let client = project.open();
    let session = client.session();
    for (text, expected) in [
        ("/hepl", "Did you mean `/help`"),
        ("/zzzzzz", "`/help` lists them"),
        ("/effort 11", "no effort"),
        ("/rewind 99", "lists them"),
        ("/rewind x files", "lists them"),
        ("/resume nobody", "lists them"),
        ("/permissions lax", "no mode"),
        ("/trust nothing.md", "Nothing of"),
        ("/git push", "what to do"),
        ("/export a.txt", "not written"),
    ] {
        let said = run(&session, text);
        assert_eq!(said["failed"], true, "{text}: {said}");
        assert!(said["text"].as_str().unwrap().contains(expected), "{text}: {said}");
    }
    assert!(project.model.requests().is_empty());
    let wrong = client.request("agent/commands/list", json!({ "sessionId": "ses_0" }));
    assert_eq!(wrong.unwrap_err().kind(), "unknownSession");
}

#[test]
fn files_are_listed_with_what_hides_them_and_completed() {
    let project = Project::new(&Script::new([]));
    project.write(
        ".claude/skills/deploy/SKILL.md",
        "---\ndescription: Deploys.\nargument-hint: \"[where]\"\n---\nx",
    );
    project.write(".claude/commands/deploy.md", "Hidden by the skill.");
    project.write(".kode/commands/help.md", "Hidden by the built-in one.");
    project.write(".claude/commands/git/log.md", "---\nallowed-tools: Bash(git log:*)\n---\n!`git log`");
    project.write(".claude/commands/broken.md", "---\ndescription: [\n---\nx");
    let client = project.open();
    let session = client.session();
    let listed = session.call("agent/commands/list", json!({}));
    let find = |file: &str| {
        let mut all = listed["commands"].as_array().unwrap().iter();
        all.find(|one| one["file"].as_str().is_some_and(|path| Path::new(path).ends_with(file)))
            .unwrap()
            .clone()
    };
    let skill = find("deploy/SKILL.md");
    assert_eq!((&skill["kind"], &skill["scope"]), (&json!("skill"), &json!("project")));
    assert_eq!((&skill["argumentHint"], &skill["shadowedBy"]), (&json!("[where]"), &Value::Null));
    assert!(find("commands/deploy.md")["shadowedBy"].as_str().unwrap().ends_with("SKILL.md"));
    assert_eq!(find("commands/help.md")["shadowedBy"], "built-in");
    assert_eq!(find("git/log.md")["waiting"], json!(["shell", "allowedTools"]));
    assert!(listed["problems"][0]["file"].as_str().unwrap().ends_with("broken.md"), "{listed}");
    let points = listed["extensionPoints"].as_array().unwrap().iter();
    let points: Vec<_> = points
        .map(|one| json!([one["kind"], one["automatic"], one["manual"], one["modelCallable"]]))
        .collect();
    let expected = [
        json!(["hooks", true, false, false]),
        json!(["commands", false, true, true]),
        json!(["agents", true, true, true]),
        json!(["skills", true, true, true]),
    ];
    assert_eq!(points, expected);
    let completed = session.call("agent/complete", json!({ "text": "/dep", "cursor": 4 }));
    let labels: Vec<_> = completed["items"].as_array().unwrap().iter().map(|item| &item["label"]).collect();
    assert_eq!(labels[0], "/deploy");
    assert_eq!(completed["items"][0]["kind"], "skill");
}

#[test]
fn a_file_runs_nothing_until_its_words_are_approved() {
    let project = Project::new(&Script::new([say("seen")]));
    let file = ".claude/commands/state.md";
    project.write("a.txt", "inside");
    project.write(file, "State of $1: !`cat a.txt`");
    let client = project.open();
    let session = client.session();
    assert_eq!(run(&session, "/state it")["failed"], true);
    let shown = run(&session, "/trust");
    assert!(shown["text"].as_str().unwrap().contains("cat a.txt"), "{shown}");
    assert_eq!(shown["data"]["wishes"][0]["key"], "shell");
    assert_eq!(run(&session, &format!("/trust {file}"))["data"]["approved"], 1);
    session.run("/state it");
    let sent = project.model.requests().pop().unwrap()["messages"].to_string();
    assert!(sent.contains("State of it: inside"), "{sent}");
    project.write(file, "State of $1: !`cat a.txt; id`");
    assert_eq!(run(&session, "/state it")["failed"], true, "another text is another wish");
    assert_eq!(project.model.requests().len(), 1);
}

#[test]
fn a_command_is_answered_while_a_turn_runs_and_in_a_second_look() {
    let project = Project::new(&Script::default().when("^hold", [say("Never said.").gate("hold", 0)]));
    let client = project.open();
    let session = client.session();
    let turn = session.prompt("hold");
    session.wait_event("the turn", |event| event["type"] == "turn_started");
    let reported = session.submit("/status");
    assert_eq!((&reported["type"], &reported["turnId"]), (&json!("answered"), &json!(turn)));
    assert_eq!(run(&session, "/cost")["name"], "cost");
    assert_eq!(session.submit("/rename Later")["type"], "queued");
    session.call("agent/turn/cancel", json!({}));
    session.wait_done(&turn);
    assert!(session.items().iter().any(|item| item["itemId"] == reported["itemId"]));
}

#[test]
fn without_a_plugin_commands_are_messages_and_clear_leads_on() {
    let project = Project::new(&Script::new([say("one"), say("two")]));
    let client = project.connect(&Offer::plain());
    let ask = |text: &str| {
        client.call(
            "workspace/executeCommand",
            json!({ "command": "kode.ask", "arguments": [{ "text": text }] }),
        )
    };
    let shown = |text: &str| {
        client.wait_for(&format!("the message {text:?}"), |received| {
            let mut shown = received.of("window/showMessage");
            shown
                .find(|message| {
                    message["params"]["message"].as_str().is_some_and(|message| message.contains(text))
                })
                .map(drop)
        });
    };
    let first = ask("hello");
    shown("one");
    ask("/clear");
    shown("A new session starts");
    // Its output is shown once prompts continue there.
    assert_ne!(ask("/status")["sessionId"], first["sessionId"]);
}

#[test]
fn without_an_editor_a_command_is_the_answer() {
    let project = Project::new(&Script::new([say("hello")]));
    let output = project.run(&["run", "/cost"], "");
    assert_eq!(output.code, 0, "{output:?}");
    assert!(output.stdout.contains("This session has cost"), "{output:?}");
    let output = project.run(&["run", "/no-such-thing"], "");
    assert_eq!(output.code, 1, "{output:?}");
    assert!(output.stdout.contains("There is no command"), "{output:?}");
    assert_eq!(project.run(&["run", "hello"], "").code, 0);
    let output = project.run(&["run", "--continue", "--output-format", "json", "/fork A copy"], "");
    let result: Value = serde_json::from_str(output.stdout.trim()).unwrap();
    assert_eq!(
        (output.code, &result["is_error"], &result["num_turns"]),
        (0, &json!(false), &json!(0)),
        "{output:?}"
    );
}

#[test]
fn the_model_never_calls_a_control_command() {
    let project =
        Project::new(&Script::new([call("SlashCommand", json!({ "command": "/clear" })), say("refused")]));
    let client = project.open();
    let session = client.session();
    session.run("go");
    assert_eq!(session.calls()[0]["error"], "notFound", "{:?}", session.calls());
}

#[test]
fn the_documentation_lists_every_command() {
    let project = Project::new(&Script::new([]));
    let client = project.open();
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../server/docs/commands.md");
    let document = fs::read_to_string(path).unwrap();
    for one in commands(&client) {
        let (name, hint) = (one["name"].as_str().unwrap(), one["argumentHint"].as_str().unwrap());
        if one["effect"] == "elsewhere" {
            assert!(document.contains(&format!("`/{name}`")), "{name}");
            continue;
        }
        let shown = format!("`{}`", format!("/{name} {hint}").trim_end().replace('|', "\\|"));
        let aliases = one["aliases"].as_array().cloned().unwrap_or_default();
        let aliases: String =
            aliases.iter().map(|alias| format!(", `/{}`", alias.as_str().unwrap())).collect();
        let (description, effect) = (one["description"].as_str().unwrap(), one["effect"].as_str().unwrap());
        let row = format!("| {shown}{aliases} | {description} | {effect} |\n");
        assert!(document.contains(&row), "no {row}");
    }
}

#[test]
fn help_model_and_mcp_show_what_there_is_and_model_switches() {
    let project = Project::new(&Script::new([]));
    project.write(
        ".claude/commands/review.md",
        "---\ndescription: Reviews it.\nargument-hint: \"[file]\"\n---\nReview $1.",
    );
    let client = project.open();
    let session = client.session();
    let text = |command: &str| run(&session, command)["text"].as_str().unwrap().to_owned();
    let help = text("/help");
    assert!(help.contains("`/compact [FOCUS]`"), "{help}");
    assert!(help.contains("- `/review [file]`: Reviews it. (project, .claude/commands/review.md)"), "{help}");
    assert!(text("/model").contains("demo"));
    assert!(text("/model demo").contains("demo"));
    assert_eq!(session.snapshot()["model"]["name"], "demo");
    assert!(text("/mcp tools").contains("no MCP server is connected"));
}
