//! Hooks from outside: real scripts, their input, and the effect of their output.
//!
//! Rule: every test has a home folder of its own with the hooks of its user; a hook's input is in files that it
//! wrote itself.

mod brought;

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use kode_e2e::{Client, Offer, Project, Script, Session, Step, call, say, step, summarize};
use serde_json::{Value, json};

/// All events that are fired here.
const EVENTS: [&str; 14] = [
    "PreToolUse",
    "PermissionRequest",
    "PostToolUse",
    "PostToolUseFailure",
    "UserPromptSubmit",
    "SessionStart",
    "SessionEnd",
    "Stop",
    "SubagentStart",
    "SubagentStop",
    "Notification",
    "PreCompact",
    "PostCompact",
    "Compaction",
];

/// How long hooks may take to begin.
const LIMIT: Duration = Duration::from_secs(60);

/// A project, the home folder of its user, and what hooks have noted.
struct Desk {
    project: Project,
}

impl Desk {
    fn new(script: &Script) -> Self {
        let project = Project::new(script);
        fs::create_dir_all(project.outside().join("user/.claude")).unwrap();
        fs::create_dir(project.outside().join("log")).unwrap();
        Self { project }
    }

    fn home(&self) -> PathBuf {
        self.project.outside().join("user")
    }

    /// Writes the user's hooks: events and groups.
    fn hooks(&self, hooks: &Value) -> &Self {
        let settings = json!({ "hooks": hooks }).to_string();
        fs::write(self.home().join(".claude/settings.json"), settings).unwrap();
        self
    }

    /// Writes one hook of the user's for one event.
    fn hook(&self, event: &str, command: &str) -> &Self {
        self.hooks(&json!({ event: [group(command)] }))
    }

    /// Writes a script that can be run, and gives its path.
    fn script(&self, name: &str, text: &str) -> String {
        let path = self.home().join(name);
        fs::write(&path, text).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        path.to_str().unwrap().to_owned()
    }

    /// A command that records its input under a name.
    fn note(&self, name: &str) -> String {
        format!("{{ cat; echo; }} >> '{}'", self.log(name).display())
    }

    fn log(&self, name: &str) -> PathBuf {
        self.project.outside().join("log").join(name)
    }

    /// The records under a name, one value for each run.
    fn noted(&self, name: &str) -> Vec<Value> {
        let text = fs::read_to_string(self.log(name)).unwrap_or_default();
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    fn open(&self) -> Client {
        let client = self.project.start_as(&[], &[("HOME", self.home().to_str().unwrap())]);
        client.initialize(Offer::kode().params(&self.project.workspace()));
        client
    }
}

fn group(command: &str) -> Value {
    json!({ "hooks": [{ "type": "command", "command": command }] })
}

fn bash(command: &str) -> Step {
    call("Bash", json!({ "command": command }))
}

/// A session in which nothing is asked.
fn free(client: &Client) -> Session<'_> {
    client.session_with(json!({ "mode": "bypassPermissions" }))
}

fn ran(session: &Session<'_>) -> Vec<Value> {
    session.events().into_iter().filter(|event| event["type"] == "hook_ran").collect()
}

fn notices(session: &Session<'_>) -> String {
    session.notices().iter().map(|notice| notice.to_string()).collect::<Vec<_>>().join("\n")
}

fn lines(path: &Path) -> Vec<Value> {
    fs::read_to_string(path).unwrap().lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn every_event_comes_once_in_its_situation_and_reports_what_scripts_know() {
    let task = json!({ "description": "it", "prompt": "do it" });
    let script = Script::default()
        .when("^do it$", [say("It is done.")])
        .when(
            "^go$",
            [bash("expr 40 + 2"), bash("exit 3"), call("Task", task), say(&"All done. ".repeat(400))],
        )
        .when("^more$", [say(&"More. ".repeat(400))])
        .otherwise([summarize("Everything there was to be said about it, in more than a few words.")]);
    let desk = Desk::new(&script);
    let groups = EVENTS.map(|event| (event.to_owned(), json!([group(&desk.note(event))])));
    desk.hooks(&groups.into_iter().collect());
    let client = desk.open();
    let session = client.session();
    let turn = session.prompt("go");
    session.allow(0);
    session.wait_done(&turn);
    session.run("more");
    session.wait_event("the hook that nobody waits for", |event| {
        event["type"] == "hook_ran" && event["event"] == "Notification"
    });
    let transcript = PathBuf::from(desk.noted("PreToolUse")[0]["transcript_path"].as_str().unwrap());
    let said = lines(&transcript);
    session.run("/compact");
    assert_eq!(client.shut_down(), 0);
    let counts: Vec<_> = EVENTS.map(|event| (event, desk.noted(event).len())).into_iter().collect();
    let compactions = desk.noted("PreCompact").len();
    assert_eq!(
        counts[..11],
        [
            ("PreToolUse", 3),
            ("PermissionRequest", 1),
            ("PostToolUse", 2),
            ("PostToolUseFailure", 1),
            ("UserPromptSubmit", 2),
            ("SessionStart", 1 + compactions),
            ("SessionEnd", 1),
            ("Stop", 2),
            ("SubagentStart", 1),
            ("SubagentStop", 1),
            ("Notification", 1),
        ],
        "{:?}",
        desk.noted("SessionStart")
    );
    assert_eq!((compactions, desk.noted("Compaction").len(), desk.noted("PostCompact").len()), (1, 1, 1));

    let before = &desk.noted("PreToolUse")[0];
    assert_eq!(
        (&before["tool_name"], &before["tool_input"]["command"]),
        (&json!("Bash"), &json!("expr 40 + 2"))
    );
    for field in ["session_id", "prompt_id", "cwd", "tool_use_id", "timestamp", "project_dir"] {
        assert!(before[field].as_str().is_some_and(|text| !text.is_empty()), "{field}: {before}");
    }
    assert_eq!(
        (&before["hook_event_name"], &before["permission_mode"]),
        (&json!("PreToolUse"), &json!("default"))
    );
    assert_eq!(fs::metadata(&transcript).unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!((&said[0]["type"], &said[0]["message"]["role"]), (&json!("user"), &json!("user")));
    assert!(said.iter().any(|line| line["message"]["content"][0]["type"] == "tool_use"), "{said:#?}");

    let after = &desk.noted("PostToolUse")[0];
    assert_eq!(after["tool_response"]["stdout"], "42");
    assert!(after["duration_ms"].is_u64() && after["tool_use_id"] == before["tool_use_id"]);
    let failed = &desk.noted("PostToolUseFailure")[0];
    assert!(failed["error"].as_str().unwrap().contains("Exit code 3") && failed["is_interrupt"] == false);
    assert!(desk.noted("PermissionRequest")[0]["permission_suggestions"].is_array());
    let prompt = &desk.noted("UserPromptSubmit")[0];
    assert_eq!((&prompt["prompt"], &prompt["user_prompt"]), (&json!("go"), &json!("go")));
    let stop = &desk.noted("Stop")[0];
    assert_eq!(
        (&stop["stop_hook_active"], &stop["last_assistant_message"]),
        (&json!(false), &json!("All done. ".repeat(400)))
    );
    let sub = &desk.noted("SubagentStop")[0];
    assert_eq!(
        (&sub["agent_type"], &sub["last_assistant_message"]),
        (&json!("general-purpose"), &json!("It is done."))
    );
    assert!(!lines(Path::new(sub["agent_transcript_path"].as_str().unwrap())).is_empty());
    assert_eq!(desk.noted("SubagentStart")[0]["agent_id"], sub["agent_id"]);
    assert_eq!(desk.noted("Notification")[0]["notification_type"], "permission_prompt");
    let starts: Vec<_> = desk.noted("SessionStart").iter().map(|start| start["source"].clone()).collect();
    assert_eq!(starts, ["startup", "compact"]);
    assert_eq!(desk.noted("PreCompact")[0]["trigger"], "manual");
    assert!(desk.noted("Compaction")[0]["messages_before"].as_u64().unwrap() > 2);
    assert!(desk.noted("PostCompact")[0]["compact_summary"].as_str().unwrap().len() > 10);
    assert_eq!(desk.noted("SessionEnd")[0]["reason"], "prompt_input_exit");
}

#[test]
fn a_session_that_is_taken_up_begins_as_such_and_one_that_is_only_opened_begins_not() {
    let desk = Desk::new(&Script::new([say("One."), say("Two.")]));
    desk.hooks(&json!({
        "SessionStart": [group(&desk.note("start"))], "SessionEnd": [group(&desk.note("end"))],
    }));
    let client = desk.open();
    let opened = client.session();
    assert_eq!(ran(&opened), Vec::<Value>::new());
    let session = client.session();
    session.run("one");
    client.shut_down();
    assert_eq!(desk.noted("end").len(), 1, "the session in which nothing was said has not begun");
    let client = desk.open();
    let session = Session::new(&client, &session.id);
    session.call("agent/session/load", json!({}));
    session.run("two");
    let sources: Vec<_> = desk.noted("start").iter().map(|start| start["source"].clone()).collect();
    assert_eq!(sources, ["startup", "resume"]);
}

#[test]
fn hooks_are_reported_why_a_session_ends_and_how_another_begins() {
    let desk = Desk::new(&Script::new([say("One."), say("Two."), say("Three."), say("Four.")]));
    desk.hooks(&json!({
        "SessionStart": [group(&desk.note("start"))], "SessionEnd": [group(&desk.note("end"))],
    }));
    let reported = |name: &str, field: &str| -> Vec<String> {
        desk.noted(name).iter().map(|one| one[field].as_str().unwrap().to_owned()).collect()
    };
    let client = desk.open();
    let first = client.session();
    first.run("one");
    let answer = |session: &Session<'_>, text: &str| {
        session.run(text);
        let items = session.items();
        let of = items.iter().rev().find(|item| item["body"]["type"] == "command").unwrap();
        of["body"]["goTo"].as_str().unwrap().to_owned()
    };
    let cleared = Session::new(&client, &answer(&first, "/clear"));
    assert_eq!(reported("end", "reason"), ["clear"], "at once, although the session stays");
    cleared.run("two");
    assert_eq!(reported("start", "source"), ["startup", "clear"]);
    // A rewind restarts the first one, and leaves the second.
    assert_eq!(answer(&cleared, &format!("/resume {}", first.id)), first.id);
    assert_eq!(reported("end", "reason"), ["clear", "resume"]);
    first.run("three");
    assert_eq!(reported("start", "source"), ["startup", "clear", "resume"]);
    first.call("agent/session/close", json!({}));
    client.shut_down();
    assert_eq!(reported("end", "reason"), ["clear", "resume", "prompt_input_exit"]);
}

/// The outcome of a call that a hook has checked: whether it ran, and the texts for the model and the user.
fn outcome(hook: impl FnOnce(&Desk) -> Value) -> (bool, String, String, Value) {
    let desk = Desk::new(&Script::new([bash("expr 40 + 2"), say("Done.")]));
    let handler = hook(&desk);
    desk.hooks(&json!({ "PreToolUse": [{ "matcher": "Bash", "hooks": [handler] }] }));
    let client = desk.open();
    let session = free(&client);
    session.run("go");
    let [(text, is_error)] = desk.project.model.last_results().try_into().unwrap();
    assert_eq!(text.lines().any(|line| line.trim() == "42"), !is_error, "{text}");
    let ran = ran(&session).remove(0);
    (!is_error, text, notices(&session), ran["outcome"].clone())
}

fn command(text: &str) -> Value {
    json!({ "type": "command", "command": text })
}

#[test]
fn each_kind_of_exit_has_its_meaning() {
    let (is_run, text, _, outcome_of) =
        outcome(|_| command("cat >/dev/null; echo 'not on my watch' >&2; exit 2"));
    assert!(!is_run && text.contains("not on my watch"), "{text}");
    assert_eq!(outcome_of, "blocked");

    let (is_run, text, _, _) = outcome(|desk| {
        let python = "import json, sys\ncall = json.load(sys.stdin)\nprint(json.dumps({'hookSpecificOutput': {\n\
            'hookEventName': 'PreToolUse', 'permissionDecision': 'deny',\n\
            'permissionDecisionReason': 'no ' + call['tool_input']['command']}}))\n";
        command(&format!("python3 '{}'", desk.script("deny.py", python)))
    });
    assert!(!is_run && text.contains("no expr 40 + 2"), "{text}");

    let (is_run, _, reported, outcome_of) = outcome(|_| command("echo broken >&2; exit 1"));
    assert!(is_run && reported.contains("exit code 1: broken"), "{reported}");
    assert_eq!(outcome_of, "failed");

    for missing in ["python3 /nowhere/guard.py", "sh /nowhere/guard.sh", "/nowhere/guard.sh"] {
        let (is_run, _, reported, outcome_of) = outcome(|_| command(missing));
        assert!(is_run && reported.contains("guard"), "{missing}: {reported}");
        assert_eq!(outcome_of, "notSetUp", "{missing}: {reported}");
    }
}

#[test]
fn a_hook_that_hangs_forks_or_floods_holds_nothing_up() {
    let (is_run, _, reported, outcome_of) =
        outcome(|_| json!({ "type": "command", "command": "sleep 1000", "timeout": 0.2 }));
    assert!(is_run && reported.contains("took too long"), "{reported}");
    assert_eq!(outcome_of, "timedOut");

    // Its leftovers hold its outputs open.
    let (is_run, _, reported, outcome_of) = outcome(|_| command("sleep 1000 & echo started"));
    assert!(is_run && reported.is_empty(), "{reported}");
    assert_eq!(outcome_of, "ok");

    let (is_run, _, reported, _) = outcome(|_| command("head -c 1000000 /dev/urandom; exit 0"));
    assert!(is_run && !reported.contains("failed"), "{reported}");

    let (is_run, text, _, _) = outcome(|_| command("yes no | head -c 1000000 >&2; exit 2"));
    assert!(!is_run && text.len() < 30_000, "{}", text.len());
}

#[test]
fn what_a_hook_makes_of_the_arguments_runs_and_is_judged_again() {
    let changed = |command: &str| {
        let output = json!({ "hookSpecificOutput": {
            "hookEventName": "PreToolUse", "updatedInput": { "command": command },
        } });
        format!("echo '{output}'")
    };
    let desk = Desk::new(&Script::new([bash("expr from-the-model"), say("Done.")]));
    desk.hook("PreToolUse", &changed("expr from-the-hook"));
    let client = desk.open();
    let session = free(&client);
    session.run("go");
    let [(text, is_error)] = desk.project.model.last_results().try_into().unwrap();
    assert!(!is_error && text.contains("from-the-hook"), "{text}");
    assert!(text.contains("A hook changed the arguments"), "{text}");

    let desk = Desk::new(&Script::new([bash("expr from-the-model"), say("Done.")]));
    let settings = json!({
        "permissions": { "deny": ["Bash(rm *)"] },
        "hooks": { "PreToolUse": [group(&changed("rm -r x"))] },
    });
    fs::write(desk.home().join(".claude/settings.json"), settings.to_string()).unwrap();
    let client = desk.open();
    let session = free(&client);
    session.run("go");
    let [(text, is_error)] = desk.project.model.last_results().try_into().unwrap();
    assert!(is_error && text.contains("Bash(rm *)"), "{text}");
}

#[test]
fn a_question_of_a_hook_is_asked_and_a_yes_spares_only_what_nothing_speaks_against() {
    let decides = |decision: &str| {
        let output = json!({ "hookSpecificOutput": {
            "hookEventName": "PreToolUse", "permissionDecision": decision, "permissionDecisionReason": "look twice",
        } });
        format!("echo '{output}'")
    };
    let desk = Desk::new(&Script::new([bash("expr 1"), say("Done.")]));
    desk.hook("PreToolUse", &decides("ask"));
    let client = desk.open();
    let session = free(&client);
    let turn = session.prompt("go");
    let prompt = session.allow(0);
    assert!(prompt["reason"].as_str().unwrap().contains("look twice"), "{prompt}");
    session.wait_done(&turn);

    let desk = Desk::new(&Script::new([bash("touch spared"), bash("touch asked"), say("Done.")]));
    let settings = json!({
        "permissions": { "ask": ["Bash(touch asked)"] },
        "hooks": { "PreToolUse": [group(&decides("allow"))] },
    });
    fs::write(desk.home().join(".claude/settings.json"), settings.to_string()).unwrap();
    let client = desk.open();
    let session = client.session();
    let turn = session.prompt("go");
    let prompt = session.allow(0);
    assert_eq!(prompt["preview"]["command"], "touch asked");
    session.wait_done(&turn);
    assert!(desk.project.path("spared").exists());
}

#[test]
fn a_hook_answers_for_the_user_and_adds_rules_for_the_session() {
    let output = json!({ "hookSpecificOutput": { "hookEventName": "PermissionRequest", "decision": {
        "behavior": "allow",
        "updatedPermissions": [{ "type": "addRules", "behavior": "allow", "destination": "session",
            "rules": [{ "toolName": "Bash", "ruleContent": "touch *" }] }],
    } } });
    let desk = Desk::new(&Script::new([bash("touch one"), bash("touch two"), say("Done.")]));
    desk.hook("PermissionRequest", &format!("{}; echo '{output}'", desk.note("asked")));
    let client = desk.open();
    let session = client.session();
    session.run("go");
    assert!(desk.project.path("one").exists() && desk.project.path("two").exists());
    assert_eq!(desk.noted("asked").len(), 1, "the second is allowed by the rule");

    let output = json!({ "hookSpecificOutput": { "hookEventName": "PermissionRequest", "decision": {
        "behavior": "deny", "message": "not today",
    } } });
    let desk = Desk::new(&Script::new([bash("touch one"), say("Done.")]));
    desk.hook("PermissionRequest", &format!("echo '{output}'"));
    let client = desk.open();
    let session = client.session();
    session.run("go");
    let [(text, is_error)] = desk.project.model.last_results().try_into().unwrap();
    assert!(is_error && text.contains("A hook refused") && text.contains("not today"), "{text}");
}

#[test]
fn what_a_hook_answers_in_the_users_place_is_decided_again_and_guarded_places_are_the_users() {
    let answers = |input: Value| {
        let mut decision = json!({ "behavior": "allow" });
        if !input.is_null() {
            decision["updatedInput"] = input;
        }
        let output =
            json!({ "hookSpecificOutput": { "hookEventName": "PermissionRequest", "decision": decision } });
        format!("echo '{output}'")
    };
    let write = |path: &str| json!({ "file_path": format!("{{{{cwd}}}}/{path}"), "content": "x\n" });
    // The hook leads a harmless call to a guarded place, to what an ask rule refers to, and says yes to a guarded place.
    let asked = json!({ "permissions": { "ask": ["Bash(touch asked)"] } });
    for (call_of_model, output, shown, settings) in [
        (
            bash("touch one"),
            json!({ "command": "touch .git/hooks/pre-commit" }),
            "touch .git/hooks/pre-commit",
            json!({}),
        ),
        (bash("touch one"), json!({ "command": "touch asked" }), "touch asked", asked.clone()),
        (bash("touch asked"), Value::Null, "touch asked", asked),
        (call("Write", write(".vscode/tasks.json")), Value::Null, ".vscode/tasks.json", json!({})),
    ] {
        let desk = Desk::new(&Script::new([call_of_model, say("Done.")]));
        let mut settings = settings;
        settings["hooks"] = json!({ "PermissionRequest": [group(&answers(output.clone()))] });
        fs::write(desk.home().join(".claude/settings.json"), settings.to_string()).unwrap();
        let client = desk.open();
        let session = client.session();
        let turn = session.prompt("go");
        let prompt = session.wait_permission(0);
        assert!(prompt.to_string().contains(shown), "{prompt}");
        session.respond(&prompt, json!({ "decision": "deny" })).unwrap();
        session.wait_done(&turn);
        let [(text, is_error)] = desk.project.model.last_results().try_into().unwrap();
        assert!(is_error && text.contains("The user refused"), "{text}");
        for path in ["one", "asked", ".git/hooks/pre-commit", ".vscode/tasks.json"] {
            assert!(!desk.project.path(path).exists(), "{path}");
        }
    }
    // A call without objections runs with the hook's arguments.
    let desk = Desk::new(&Script::new([bash("touch one"), say("Done.")]));
    desk.hook("PermissionRequest", &answers(json!({ "command": "touch two" })));
    let client = desk.open();
    client.session().run("go");
    assert!(desk.project.path("two").exists() && !desk.project.path("one").exists());
}

#[test]
fn a_command_in_the_text_of_a_file_goes_through_hooks_and_the_users_answer() {
    let desk = Desk::new(&Script::new([say("seen")]));
    fs::create_dir_all(desk.home().join(".claude/commands")).unwrap();
    let file = desk.home().join(".claude/commands/make.md");
    fs::write(file, "Made: !`touch made; echo of-the-command`").unwrap();
    let refuse = desk.script("guard.sh", "#!/bin/sh\ncat >> \"$0.log\"\necho 'no touching' >&2\nexit 2\n");
    let command = |session: &Session<'_>| {
        let items = session.items();
        items.iter().rev().find(|item| item["body"]["type"] == "command").unwrap()["body"].clone()
    };
    desk.hook("PreToolUse", &format!("'{refuse}'"));
    {
        let client = desk.open();
        let session = free(&client);
        session.run("/make");
        let reported = command(&session);
        assert!(
            reported["failed"] == true && reported["text"].as_str().unwrap().contains("no touching"),
            "{reported}"
        );
        assert!(!desk.project.path("made").exists() && desk.project.model.requests().is_empty());
    }
    let noted = lines(Path::new(&format!("{refuse}.log")));
    assert_eq!(noted[0]["tool_name"], "Bash");
    assert_eq!(noted[0]["tool_input"]["command"], "touch made; echo of-the-command");

    desk.hooks(&json!({ "PostToolUse": [group(&desk.note("after"))] }));
    let client = desk.open();
    let session = client.session();
    let turn = session.prompt("/make");
    let prompt = session.allow(0);
    assert_eq!(prompt["preview"]["command"], "touch made; echo of-the-command", "{prompt}");
    session.wait_done(&turn);
    assert!(desk.project.path("made").exists());
    let sent = desk.project.model.requests().pop().unwrap()["messages"].to_string();
    assert!(sent.contains("Made: of-the-command"), "{sent}");
    assert_eq!(desk.noted("after").len(), 1);
}

#[test]
fn a_refused_prompt_never_reaches_the_model_also_after_the_server_ends() {
    let desk = Desk::new(&Script::new([say("Hello."), say("Again.")]));
    let guard = "import json, sys\np = json.load(sys.stdin)['prompt']\n\
        if 'secret' in p:\n    print('no secrets', file=sys.stderr)\n    sys.exit(2)\n";
    desk.hook("UserPromptSubmit", &format!("python3 '{}'", desk.script("guard.py", guard)));
    let client = desk.open();
    let session = client.session();
    let done = session.run("my secret is 1234");
    assert_eq!(done["stopReason"], "hook");
    assert!(notices(&session).contains("no secrets"), "{}", notices(&session));
    let aside = session.request("agent/session/ask", json!({ "question": "what is my secret 1234?" }));
    assert!(aside.unwrap_err().message.contains("no secrets"), "a side question is a prompt to hooks");
    assert!(desk.project.model.requests().is_empty());
    session.run("hello");
    assert!(!desk.project.model.last_request().to_string().contains("1234"));
    client.kill();
    let client = desk.open();
    let session = Session::new(&client, &session.id);
    session.call("agent/session/load", json!({}));
    session.run("again");
    let request = desk.project.model.last_request().to_string();
    assert!(!request.contains("1234") && request.contains("hello"), "{request}");
}

#[test]
fn what_hooks_add_reaches_the_model_and_is_there_after_the_server_ends() {
    let desk = Desk::new(&Script::new([bash("expr 1"), say("Hello."), say("Again.")]));
    let more = json!({ "hookSpecificOutput": { "hookEventName": "PostToolUse", "additionalContext": "it was odd" } });
    let long = "i=0; while [ $i -lt 3000 ]; do printf 'word '; i=$((i+1)); done";
    desk.hooks(&json!({
        "SessionStart": [group("echo 'the build is red'")],
        "UserPromptSubmit": [group(long)],
        "PostToolUse": [group(&format!("echo '{more}'"))],
    }));
    let client = desk.open();
    let session = free(&client);
    session.run("hello");
    let request = desk.project.model.last_request().to_string();
    for said in ["the build is red", "word word", "it was odd", "characters more; all of it is in"] {
        assert!(request.contains(said), "{said}");
    }
    assert!(request.matches("word ").count() < 2_100, "what is longer goes on in a file");
    client.kill();
    let client = desk.open();
    let session = Session::new(&client, &session.id);
    session.call("agent/session/load", json!({}));
    session.run("again");
    let request = desk.project.model.last_request().to_string();
    assert!(request.contains("it was odd") && request.matches("the build is red").count() == 2);
}

#[test]
fn a_stop_hook_has_the_agent_proceed_so_often_and_no_more() {
    let steps: Vec<Step> = (0..10).map(|n| say(&format!("Answer {n}."))).collect();
    let desk = Desk::new(&Script::new(steps));
    desk.hook("Stop", &format!("{}; echo 'run the tests' >&2; exit 2", desk.note("stop")));
    let client = desk.open();
    let session = client.session();
    let done = session.run("go");
    assert_eq!(done["stopReason"], "end_turn");
    assert_eq!(desk.project.model.requests().len(), 6);
    let active: Vec<_> = desk.noted("stop").iter().map(|stop| stop["stop_hook_active"] == true).collect();
    assert_eq!(active, [false, true, true, true, true, true]);
    assert!(desk.project.model.last_request().to_string().contains("run the tests"));
    assert!(notices(&session).contains("asks for it again"), "{}", notices(&session));
}

#[test]
fn a_hook_can_stop_the_whole_turn() {
    let both = step()
        .call("Bash", json!({ "command": "touch first" }))
        .call("Bash", json!({ "command": "touch second" }));
    let desk = Desk::new(&Script::new([both, say("Never said.")]));
    let output = json!({ "continue": false, "stopReason": "the disk is full" });
    desk.hook("PostToolUse", &format!("echo '{output}'"));
    let client = desk.open();
    let session = free(&client);
    let done = session.run("go");
    assert_eq!(done["stopReason"], "hook");
    assert!(desk.project.path("first").exists() && !desk.project.path("second").exists());
    assert!(notices(&session).contains("the disk is full"));
    assert_eq!(desk.project.model.requests().len(), 1);
}

#[test]
fn a_hook_holds_a_compaction_back() {
    let desk = Desk::new(&Script::new([say("One."), say("Two."), summarize("Never asked for, as it is.")]));
    desk.hook("PreCompact", "echo 'not before the release' >&2; exit 2");
    let client = desk.open();
    let session = client.session();
    session.run("one");
    session.run("two");
    session.run("/compact");
    assert!(notices(&session).contains("not before the release"), "{}", notices(&session));
    assert_eq!(desk.project.model.requests().len(), 2);
}

#[test]
fn what_a_hook_exports_is_the_environment_of_later_commands() {
    let desk = Desk::new(&Script::new([bash("echo \"$GREETING|$PATH\""), say("Done.")]));
    let export = "echo \"export GREETING='good day'\" >> \"$CLAUDE_ENV_FILE\"; echo 'export PATH=\"$PATH:/extra\"' >> \"$CLAUDE_ENV_FILE\"";
    desk.hook("SessionStart", export);
    let client = desk.open();
    let session = free(&client);
    session.run("go");
    let [(text, is_error)] = desk.project.model.last_results().try_into().unwrap();
    assert!(!is_error && text.contains("good day|") && text.trim_end().ends_with(":/extra"), "{text}");
}

#[test]
fn hooks_of_a_workspace_wait_for_approval_of_their_very_contents() {
    let steps: Vec<Step> = (0..6).map(|n| say(&format!("Answer {n}."))).collect();
    let desk = Desk::new(&Script::new(steps));
    let script = |mark: &str| format!("echo {mark} >> \"$CLAUDE_PROJECT_DIR/ran\"\n");
    desk.project.write("hooks/start.sh", script("first"));
    let settings =
        json!({ "hooks": { "UserPromptSubmit": [group("sh \"$CLAUDE_PROJECT_DIR/hooks/start.sh\"")] } });
    desk.project.write(".claude/settings.json", settings.to_string());
    let client = desk.open();
    let session = client.session();
    session.run("one");
    session.run("two");
    assert!(!desk.project.path("ran").exists(), "it ran without approval");
    assert_eq!(notices(&session).matches("waits for your approval").count(), 1, "it is said once");
    let listed = client.call("agent/hooks/list", json!({ "sessionId": session.id }));
    assert_eq!(
        (&listed["hooks"][0]["approval"], &listed["hooks"][0]["event"]),
        (&json!("waiting"), &json!("UserPromptSubmit"))
    );

    let waiting = client.call("agent/trust/list", json!({ "sessionId": session.id }))["waiting"].clone();
    let digests: Vec<_> = waiting.as_array().unwrap().iter().map(|waits| waits["digest"].clone()).collect();
    session.call("agent/trust/approve", json!({ "digests": digests }));
    session.run("three");
    assert_eq!(desk.project.read("ran"), "first\n");
    let listed = client.call("agent/hooks/list", json!({ "sessionId": session.id }));
    assert_eq!(
        (&listed["hooks"][0]["approval"], &listed["hooks"][0]["last"]["outcome"]),
        (&json!("approved"), &json!("ok"))
    );

    desk.project.write("hooks/start.sh", script("swapped"));
    session.run("four");
    assert_eq!(desk.project.read("ran"), "first\n", "a swapped script ran");
}

#[test]
fn a_script_that_is_changed_while_its_hook_waits_for_others_is_not_run() {
    const AT_ONCE: usize = 5;
    let desk = Desk::new(&Script::default().otherwise([say("Done.")]));
    let mark = |mark: &str| format!("echo {mark} >> \"$CLAUDE_PROJECT_DIR/ran\"\n");
    desk.project.write("hooks/last.sh", mark("first"));
    let blocks = (0..AT_ONCE).map(|number| {
        group(&format!("cd \"$CLAUDE_PROJECT_DIR\"; touch begun-{number}; until [ -e go ]; do :; done"))
    });
    let last = group("sh \"$CLAUDE_PROJECT_DIR/hooks/last.sh\"");
    let groups: Vec<_> = blocks.chain([last]).collect();
    desk.project.write(".claude/settings.json", json!({ "hooks": { "Stop": groups } }).to_string());
    let client = desk.open();
    let session = client.session();
    let waiting = client.call("agent/trust/list", json!({ "sessionId": session.id }))["waiting"].clone();
    let digests: Vec<_> = waiting.as_array().unwrap().iter().map(|waits| waits["digest"].clone()).collect();
    session.call("agent/trust/approve", json!({ "digests": digests }));
    let turn = session.prompt("go");
    let have_begun = || (0..AT_ONCE).all(|number| desk.project.path(&format!("begun-{number}")).exists());
    let deadline = Instant::now() + LIMIT;
    while !have_begun() {
        assert!(Instant::now() < deadline, "not all hooks have begun");
        std::thread::yield_now();
    }
    desk.project.write("hooks/last.sh", mark("swapped"));
    desk.project.write("go", "");
    session.wait_done(&turn);
    assert!(
        !desk.project.path("ran").exists(),
        "it ran as nobody has approved it: {}",
        desk.project.read("ran")
    );
    assert!(notices(&session).contains("waits for your approval"), "{}", notices(&session));
}

#[test]
fn hooks_are_listed_with_what_is_wrong_and_none_is_run_by_that() {
    let desk = Desk::new(&Script::default());
    desk.hooks(&json!({
        "PreToolUse": [{ "matcher": "Bash|Edit", "hooks": [command("touch /nowhere/x"), { "type": "agent", "prompt": "x" }] }],
        "Setup": [group("true")],
    }));
    let client = desk.open();
    let listed = client.call("agent/hooks/list", json!({}));
    kode_e2e::conforms::<kode_protocol::ListHooksResult>(&listed).unwrap();
    let hooks = listed["hooks"].as_array().unwrap();
    assert_eq!(hooks.len(), 3, "{listed:#}");
    assert_eq!(
        (&hooks[0]["matcher"], &hooks[0]["approval"], hooks[0].get("problem")),
        (&json!("Bash|Edit"), &json!("notNeeded"), None)
    );
    assert!(hooks[1]["problem"].as_str().unwrap().contains("not run here"));
    assert!(hooks[2]["fired"] == false && listed["problems"].as_array().unwrap().len() == 2, "{listed:#}");
}

#[test]
fn a_hook_can_be_a_request() {
    let server = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = server.local_addr().unwrap();
    let answering = std::thread::spawn(move || {
        let (mut stream, _) = server.accept().unwrap();
        let mut request = Vec::new();
        let mut buffer = [0; 4096];
        // The payload is the last line of the request, and ends with a brace.
        while !request.ends_with(b"}") {
            let read = stream.read(&mut buffer).unwrap();
            request.extend_from_slice(&buffer[..read]);
        }
        let body = json!({ "decision": "block", "reason": "the server says no" }).to_string();
        let head = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nconnection: close";
        write!(stream, "{head}\r\ncontent-length: {}\r\n\r\n{body}", body.len()).unwrap();
        String::from_utf8(request).unwrap()
    });
    let (is_run, text, _, _) = outcome(|_| {
        json!({ "type": "http", "url": format!("http://{address}/hook"), "headers": { "x-home": "in ${HOME}" },
            "allowedEnvVars": ["HOME"] })
    });
    assert!(!is_run && text.contains("the server says no"), "{text}");
    let request = answering.join().unwrap();
    assert!(request.contains("/user\r\n") && request.contains("\"tool_name\":\"Bash\""), "{request}");
}

#[test]
fn a_call_goes_through_its_stages_in_their_order() {
    let desk = Desk::new(&Script::new([bash("expr 40 + 2"), say("Done.")]));
    desk.hooks(&json!({ "PreToolUse": [group("true")], "PostToolUse": [group("true")] }));
    let client = desk.open();
    let session = client.session();
    let turn = session.prompt("go");
    session.allow(0);
    session.wait_done(&turn);
    let wanted = [
        "tool:queued",
        "permission_required",
        "permission_decided",
        "tool:start",
        "tool:progress",
        "tool:end",
    ];
    let mut stages: Vec<String> = Vec::new();
    for event in session.events() {
        let name = event["type"].as_str().unwrap();
        let stage = match name {
            "hook_ran" => event["event"].as_str().unwrap(),
            name if wanted.contains(&name) => name,
            _ => continue,
        };
        if stages.last().is_none_or(|last| last != stage) {
            stages.push(stage.to_owned());
        }
    }
    let expected = [
        "tool:queued",
        "PreToolUse",
        "permission_required",
        "permission_decided",
        "tool:start",
        "tool:progress",
        "PostToolUse",
        "tool:end",
    ];
    assert_eq!(stages, expected);
    assert_eq!(desk.project.model.last_results(), [("42".to_owned(), false)]);
}
