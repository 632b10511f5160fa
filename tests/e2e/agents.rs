//! Sub-agents over the wire: side by side, with changes and prompts of their own, and through a kill.

use std::fs;

use kode_e2e::{Project, Script, Session, call, conforms, say, step};
use serde_json::{Value, json};

fn task(prompt: &str) -> Value {
    json!({ "description": prompt, "prompt": format!("do {prompt}") })
}

#[test]
fn three_sub_agents_overlap_and_what_they_change_and_ask_is_the_sessions() {
    let tasks = ["one", "two", "three"].into_iter().fold(step(), |step, name| step.call("Task", task(name)));
    let write = json!({ "file_path": "{{cwd}}/new.txt", "content": "made\n" });
    let script = Script::default()
        .when("^do one$", [say("One is done.").gate("one", 0)])
        .when("^do two$", [say("Two is done.").gate("two", 0)])
        .when("^do three$", [call("Write", write), say("Three is done.").gate("three", 0)])
        .otherwise([tasks, say("All done.")]);
    let project = Project::new(&script);
    let client = project.open();
    let session = client.session();
    let turn = session.prompt("go");
    let prompt = session.allow(0);
    for gate in ["one", "two", "three"] {
        project.model.wait_until_held(gate);
    }
    let now = session.snapshot();
    let mut working: Vec<_> =
        now["subagents"].as_array().unwrap().iter().map(|agent| agent["description"].to_string()).collect();
    working.sort();
    assert_eq!(working, ["\"one\"", "\"three\"", "\"two\""], "who is at work stands in the snapshot");
    for gate in ["one", "two", "three"] {
        project.model.release(gate);
    }
    session.wait_done(&turn);
    let results = project.model.last_results();
    for ((text, is_error), name) in results.iter().zip(["One", "Two", "Three"]) {
        assert!(text.starts_with(&format!("{name} is done.")) && !is_error, "{text}");
    }
    assert_eq!(project.read("new.txt"), "made\n");
    assert_eq!(session.hunks().len(), 1);
    assert_eq!(session.items().len(), 5, "the work of sub-agents is not in the session's transcript");
    let agent = session.call("agent/subagent/load", json!({ "agentId": prompt["agentId"] }));
    assert_eq!(agent["bookmark"]["seq"], session.snapshot()["bookmark"]["seq"], "{agent}");
    assert_eq!(session.snapshot()["subagents"], json!([]));
    let kinds: Vec<_> =
        agent["items"].as_array().unwrap().iter().map(|item| item["body"]["type"].clone()).collect();
    assert_eq!(kinds, ["userMessage", "toolCall", "agentMessage"], "{agent}");
    assert_eq!((&agent["agentType"], &agent["description"]), (&json!("general-purpose"), &json!("three")));
    let ended = session.events().iter().filter(|event| event["type"] == "subagent_ended").count();
    assert_eq!(ended, 3);
    assert!(session.request("agent/subagent/load", json!({ "agentId": "agent_0" })).is_err());
}

#[test]
fn a_server_killed_while_a_sub_agent_works_seals_its_calls_and_continues() {
    let script = Script::default()
        .when("^do it$", [call("Bash", json!({ "command": "echo begun; sleep 5" }))])
        .when("go on$", [say("Going on.")])
        .otherwise([call("Task", task("it"))]);
    let project = Project::new(&script);
    let client = project.open();
    let session = client.session_with(json!({ "mode": "bypassPermissions" }));
    session.prompt("go");
    session.wait_event("output of the command", |event| {
        event["type"] == "tool:progress" && event["text"].as_str().is_some_and(|text| text.contains("begun"))
    });
    let begun = session.wait_event("the sub-agent", |event| event["type"] == "subagent_started");
    client.kill();
    let client = project.open();
    let session = Session::new(&client, &session.id);
    session.call("agent/session/load", json!({}));
    assert_eq!(session.calls()[0]["state"], "SEALED");
    let agent = session.call("agent/subagent/load", json!({ "agentId": begun["agentId"] }));
    assert_eq!(agent["items"][1]["body"]["state"], "SEALED", "{agent}");
    assert_eq!(session.run("go on")["stopReason"], "end_turn");
}

#[test]
fn sub_agents_are_listed_with_the_files_that_are_left_out() {
    let project = Project::new(&Script::default());
    let agent =
        "---\nname: tidy\ndescription: Tidies\n  up.\nmodel: quick\ntools: Read, Edit\n---\nYou tidy up.\n";
    project.write(".claude/agents/tidy.md", agent);
    project.write(".claude/agents/broken.md", "---\nname: [\n---\n");
    project.write(".claude/skills/Bad Name/SKILL.md", "Do it.\n");
    project.write(".claude/commands/broken.md", [0xff, 0xfe, 0x00]);
    let client = project.open();
    let listed = client.call("agent/agents/list", json!({}));
    let agents = listed["agents"].as_array().unwrap();
    let names: Vec<_> = agents.iter().map(|agent| agent["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["Explore", "general-purpose", "Plan", "review", "tidy"]);
    let file = project.path(".claude/agents/tidy.md");
    let expected = json!({ "name": "tidy", "description": "Tidies up.", "source": "project", "file": file,
        "model": "quick", "tools": ["Read", "Edit"] });
    assert_eq!(agents[4], expected);
    assert_eq!((agents[0].get("file"), agents[1].get("tools")), (None, None), "{listed:#}");
    let files =
        [".claude/agents/broken.md", ".claude/skills/Bad Name/SKILL.md", ".claude/commands/broken.md"];
    let problems = listed["problems"].as_array().unwrap();
    let left_out: Vec<_> = problems.iter().map(|problem| problem["file"].as_str().unwrap()).collect();
    assert_eq!(left_out.len(), files.len(), "{listed:#}");
    for file in files {
        assert!(left_out.contains(&project.path(file).to_str().unwrap()), "{file} is not in {left_out:?}");
    }
    let of_session = client.session().call("agent/agents/list", json!({}));
    assert_eq!(of_session, listed);
    let error = client.request("agent/agents/list", json!({ "sessionId": "ses_none" })).unwrap_err();
    assert_eq!(error.kind(), "unknownSession");
}

fn names(listed: &Value, list: &str) -> Vec<String> {
    listed[list].as_array().unwrap().iter().map(|one| one["name"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn an_agent_file_that_is_written_broken_and_mended_is_notified_of_each_time() {
    let project = Project::new(&Script::default().otherwise([say("Hello.")]));
    let client = project.open();
    let session = client.session();
    session.run("hello");
    let reported = |what: &str, agents: u64, problems: usize| {
        session.wait_event(what, |event| {
            event["type"] == "extensions_changed"
                && event["agents"] == agents
                && event["problems"].as_array().is_some_and(|reported| reported.len() == problems)
        })
    };
    let whole = "---\nname: tidy\ndescription: Tidies.\ncolor: green\n---\nTidy up.\n";
    project.write(".claude/agents/tidy.md", whole);
    reported("the agent", 5, 0);
    let listed = client.call("agent/agents/list", json!({ "sessionId": session.id }));
    assert_eq!(
        (listed["agents"][4]["name"].as_str(), listed["agents"][4]["color"].as_str()),
        (Some("tidy"), Some("green"))
    );
    project.write(".claude/agents/tidy.md", "---\nname: tidy\n---\nTidy up.\n");
    let broken = reported("the broken agent", 4, 1);
    let problem = &broken["problems"][0];
    assert_eq!(problem["file"].as_str(), project.path(".claude/agents/tidy.md").to_str());
    assert_eq!((&problem["severe"], &problem["line"]), (&json!(true), &json!(1)), "{problem}");
    assert!(problem["message"].as_str().unwrap().contains("`description`"), "{problem}");
    project.write(".claude/agents/tidy.md", whole);
    reported("the mended agent", 5, 0);
    fs::remove_file(project.path(".claude/agents/tidy.md")).unwrap();
    reported("the agent to go", 4, 0);
    assert!(!project.path(".kode").exists(), "nothing is made in the project");
}

#[test]
fn styles_are_listed_and_the_doctor_says_what_is_in_use_and_what_hides_what() {
    let project = Project::new(&Script::default().otherwise([say("Hello.")]));
    project.write(".kode/output-styles/pirate.md", "---\nname: Pirate\ndescription: arr\n---\nArr.\n");
    project.write(".claude/output-styles/pirate.md", "---\nname: pirate\n---\nArr!\n");
    project.write(".kode/settings.json", r#"{ "outputStyle": "pirate" }"#);
    project.write(".claude/agents/explore.md", "---\nname: explore\ndescription: Looks.\n---\nLook.\n");
    project.write(".claude/skills/tidy/SKILL.md", "---\ndescription: Tidies.\n---\nTidy.\n");
    project.write("AGENTS.md", "Be kind.\n");
    let client = project.open();
    let session = client.session();
    let styles = session.call("agent/styles/list", json!({}));
    conforms::<kode_protocol::ListStylesResult>(&styles).unwrap();
    assert_eq!(
        names(&styles, "styles"),
        ["Pirate", "Default", "Explanatory", "Learning", "Proactive", "Concise"]
    );
    assert_eq!(names(&styles, "shadowed"), ["pirate"]);
    assert_eq!(
        (&styles["styles"][0]["active"], &styles["styles"][1]["active"]),
        (&json!(true), &json!(false))
    );
    let report = session.call("agent/doctor", json!({}));
    conforms::<kode_protocol::DoctorResult>(&report).unwrap();
    let fate = |kind: &str, name: &str, source: &str| {
        let findings = report["findings"].as_array().unwrap();
        let found =
            findings.iter().find(|one| one["kind"] == kind && one["name"] == name && one["source"] == source);
        found.unwrap_or_else(|| panic!("{kind} {name} of {source} is not in {report:#}"))["fate"]
            .as_str()
            .unwrap()
            .to_owned()
    };
    assert_eq!(fate("agent", "explore", "project"), "loaded");
    assert_eq!(fate("agent", "Explore", "built-in"), "shadowed");
    assert_eq!(fate("style", "pirate", "project"), "shadowed");
    assert_eq!(fate("instructions", "AGENTS.md", "project"), "loaded");
    let text = report["text"].as_str().unwrap();
    assert!(text.contains("## Skills\n- tidy (") && text.contains("hidden by"), "{text}");
}

#[test]
fn a_sub_agent_that_forks_begins_with_what_was_said_before_its_call() {
    let call_of = |prompt: &str| json!({ "description": "it", "prompt": prompt, "subagent_type": "forker" });
    let (one, two) = (call_of("count the words"), call_of("count the letters"));
    let script = Script::default()
        .when("count the (words|letters)", [say("Three.")])
        .when(
            "^call them$",
            [
                call("Glob", json!({ "pattern": "*" })),
                step().call("Task", one).call("Task", two),
                say("Done."),
            ],
        )
        .otherwise([say("The secret is plum.")]);
    let project = Project::new(&script);
    let head = "name: forker\ndescription: Knows what was said.\nforkContext: true";
    project.write(".kode/agents/forker.md", format!("---\n{head}\n---\nYou count.\n"));
    let client = project.open();
    let session = client.session();
    session.run("what is the secret?");
    assert_eq!(session.run("call them")["stopReason"], "end_turn");
    let requests = project.model.requests();
    let of_agents: Vec<_> =
        requests.iter().filter(|request| request["system"].to_string().contains("You count.")).collect();
    assert_eq!(of_agents.len(), 2, "{requests:#?}");
    // The request of the caller when it called them.
    let caller = requests.iter().rfind(|request| {
        !request["system"].to_string().contains("You count.")
            && !request.to_string().contains("count the words")
    });
    let said = caller.unwrap()["messages"].as_array().unwrap().clone();
    for request in of_agents {
        let messages = request["messages"].as_array().unwrap();
        assert_eq!(messages.len(), said.len(), "{messages:#?}");
        let (last, before) = messages.split_last().unwrap();
        assert_eq!(words(before), words(&said[..said.len() - 1]), "the beginning is the caller's own");
        assert!(before.iter().any(|message| message.to_string().contains("The secret is plum.")));
        assert!(last.to_string().contains("tool_result"), "the results of finished calls are there: {last}");
        assert!(
            last.to_string().contains("count the") && !request["messages"].to_string().contains("\"Task\"")
        );
    }
    let begun = session.wait_event("a sub-agent", |event| event["type"] == "subagent_started");
    let agent = session.call("agent/subagent/load", json!({ "agentId": begun["agentId"] }));
    assert_eq!(
        agent["items"].as_array().unwrap().len(),
        2,
        "its own transcript is its task and its answer: {agent}"
    );
}

/// Messages without what marks places in the cache.
fn words(messages: &[Value]) -> String {
    messages
        .iter()
        .map(|message| format!("{} {}\n", message["role"], kode_e2e::text_of(&message["content"])))
        .collect()
}
