//! Hooks in the heads of agents' and skills' files: when they count, who has to approve them, and where they are listed.

use super::*;

/// A file's head with these hooks, and a text.
fn file(head: &str, hooks: &Value) -> String {
    format!("---\n{head}\nhooks: {hooks}\n---\nYou tidy up.\n")
}

fn agent(hooks: &Value) -> String {
    file("name: tidy\ndescription: Tidies up.", hooks)
}

fn task(prompt: &str) -> Step {
    call("Task", json!({ "description": "tidy", "prompt": prompt, "subagent_type": "tidy" }))
}

fn tools(noted: &[Value]) -> Vec<(&str, &str)> {
    let text = |value: &Value, name: &str| value[name].as_str().unwrap_or("the session").to_owned();
    let all = noted.iter().map(|reported| (text(reported, "tool_name"), text(reported, "agent_type")));
    all.map(|(tool, agent)| (&*tool.leak(), &*agent.leak())).collect()
}

#[test]
fn an_agent_s_hooks_run_while_it_works_and_its_stop_is_the_sub_agent_s() {
    let script = Script::default()
        .when("^tidy up$", [bash("echo sub"), call("Glob", json!({ "pattern": "*" })), say("Tidied.")])
        .otherwise([bash("echo before"), task("tidy up"), bash("echo after"), say("Done.")]);
    let desk = Desk::new(&script);
    let mut bash_only = group(&desk.note("pre"));
    bash_only["matcher"] = json!("Bash");
    let hooks = json!({ "PreToolUse": [bash_only], "Stop": [group(&desk.note("stop"))] });
    fs::create_dir_all(desk.home().join(".claude/agents")).unwrap();
    fs::write(desk.home().join(".claude/agents/tidy.md"), agent(&hooks)).unwrap();
    let client = desk.open();
    let session = free(&client);
    session.run("go");
    assert_eq!(tools(&desk.noted("pre")), [("Bash", "tidy")], "in the sub-agent alone, by its matcher");
    let stops = desk.noted("stop");
    assert_eq!(stops.len(), 1, "the session's own end is not meant: {stops:?}");
    assert_eq!(
        (&stops[0]["hook_event_name"], &stops[0]["last_assistant_message"]),
        (&json!("SubagentStop"), &json!("Tidied."))
    );

    let listed = session.call("agent/hooks/list", json!({}));
    let of_agent = json!({ "kind": "agent", "name": "tidy" });
    let events: Vec<_> = listed["hooks"].as_array().unwrap().iter().map(|hook| &hook["event"]).collect();
    assert_eq!(events, ["PreToolUse", "SubagentStop"], "{listed:#}");
    for hook in listed["hooks"].as_array().unwrap() {
        assert_eq!(
            (&hook["bringer"], &hook["line"], &hook["approval"]),
            (&of_agent, &json!(4), &json!("notNeeded")),
            "{listed:#}"
        );
    }
    session.run("/hooks");
    let shown = session.items().pop().unwrap().to_string();
    assert!(shown.contains("while the agent `tidy` works"), "{shown}");

    let of_folder = client.call("agent/hooks/list", json!({}));
    assert_eq!(of_folder["hooks"].as_array().unwrap().len(), 2, "also without a session: {of_folder:#}");
}

#[test]
fn a_skill_s_hooks_count_from_its_use_to_the_end_of_the_session_and_once_is_once() {
    let script = Script::default()
        .when(
            "^use it$",
            [bash("echo one"), call("Skill", json!({ "skill": "guard" })), bash("echo two"), say("ok")],
        )
        .when("^delegate$", [task("tidy up"), say("ok")])
        .when("^tidy up$", [bash("echo three"), say("ok")])
        .otherwise([bash("echo four"), say("ok")]);
    let desk = Desk::new(&script);
    let mut once = group(&desk.note("once"));
    once["hooks"][0]["once"] = json!(true);
    let hooks = json!({ "PreToolUse": [group(&desk.note("each")), once] });
    fs::create_dir_all(desk.home().join(".claude/skills/guard")).unwrap();
    fs::create_dir_all(desk.home().join(".claude/agents")).unwrap();
    fs::write(desk.home().join(".claude/skills/guard/SKILL.md"), file("description: Guards.", &hooks))
        .unwrap();
    fs::write(desk.home().join(".claude/agents/tidy.md"), agent(&json!({}))).unwrap();
    let client = desk.open();
    let session = free(&client);
    session.run("use it");
    assert_eq!(tools(&desk.noted("each")), [("Bash", "the session")], "not before its use");
    session.run("delegate");
    let expected = [("Bash", "the session"), ("Task", "the session"), ("Bash", "tidy")];
    assert_eq!(tools(&desk.noted("each")), expected, "in later turns and in sub-agents");
    assert_eq!(desk.noted("once").len(), 1);
    client.kill();

    let client = desk.open();
    let session = Session::new(&client, &session.id);
    session.call("agent/session/load", json!({}));
    session.run("go on");
    assert_eq!(desk.noted("each").len(), 4, "a server that was started anew goes by them as well");
    let other = free(&client);
    other.run("go on");
    assert_eq!(desk.noted("each").len(), 4, "another session has not used the skill");

    let off = json!({ "disableAllHooks": true }).to_string();
    fs::write(desk.home().join(".claude/settings.json"), off).unwrap();
    session.run("go on");
    assert_eq!(desk.noted("each").len(), 4, "they are switched off with all others");
}

#[test]
fn a_project_s_hooks_wait_for_approval_and_a_swapped_script_asks_again() {
    let script = Script::default()
        .when("^tidy up$", [bash("echo sub"), say("ok")])
        .otherwise([task("tidy up"), say("ok")]);
    let desk = Desk::new(&script);
    let guard = |mark: &str| format!("echo {mark} >> \"$CLAUDE_PROJECT_DIR/ran\"\n");
    desk.project.write("guard.sh", guard("first"));
    let hooks = json!({ "PreToolUse": [group("sh \"$CLAUDE_PROJECT_DIR/guard.sh\"")] });
    desk.project.write(".claude/agents/tidy.md", agent(&hooks));
    let client = desk.open();
    let session = free(&client);
    session.run("one");
    assert!(!desk.project.path("ran").exists(), "it ran without approval");
    assert!(notices(&session).contains("Hooks of the agent `tidy` wait for your approval"));
    let waiting = || client.call("agent/trust/list", json!({ "sessionId": session.id }))["waiting"].clone();
    let approve = || {
        let waiting = waiting();
        assert_eq!(waiting[0]["key"], "hooks.PreToolUse", "{waiting:#}");
        let digests: Vec<_> = waiting.as_array().unwrap().iter().map(|one| one["digest"].clone()).collect();
        session.call("agent/trust/approve", json!({ "digests": digests }));
    };
    approve();
    session.run("two");
    assert_eq!(desk.project.read("ran"), "first\n");
    desk.project.write("guard.sh", guard("swapped"));
    session.run("three");
    assert_eq!(desk.project.read("ran"), "first\n", "a swapped script ran");
    approve();
    session.run("four");
    assert_eq!(desk.project.read("ran"), "first\nswapped\n");
    assert_eq!(waiting(), json!([]));
}

#[test]
fn broken_hooks_of_a_file_are_reported_on_their_line_and_cost_themselves_alone() {
    let desk = Desk::new(&Script::default());
    desk.project.write(
        ".claude/agents/tidy.md",
        "---\nname: tidy\ndescription: Tidies up.\nhooks:\n  Stop:\n    - hooks: [{ type: dance }]\n---\nText.\n",
    );
    desk.project
        .write(".claude/skills/guard/SKILL.md", "---\nhooks:\n  Nonsense:\n    - hooks: []\n---\nText.\n");
    desk.project.write(".claude/skills/text/SKILL.md", "---\nhooks: check.sh\n---\nText.\n");
    let client = desk.open();
    let listed = client.call("agent/hooks/list", json!({}));
    let mut reported: Vec<_> = listed["problems"]
        .as_array()
        .unwrap()
        .iter()
        .map(|problem| {
            let file = problem["file"].as_str().unwrap().rsplit('/').next().unwrap().to_owned();
            (file, problem["line"].clone(), problem["message"].as_str().unwrap().to_owned())
        })
        .collect();
    reported.sort_by(|one, other| one.0.cmp(&other.0));
    assert_eq!(reported.len(), 2, "{reported:?}");
    assert_eq!((&*reported[0].0, &reported[0].1), ("SKILL.md", &json!(4)), "{reported:?}");
    assert_eq!((&*reported[1].0, &reported[1].1), ("tidy.md", &json!(6)), "{reported:?}");
    assert!(reported[1].2.contains("dance") && reported[0].2.contains("Nonsense"), "{reported:?}");
    let agents = client.call("agent/agents/list", json!({}));
    assert!(names(&agents).contains(&"tidy".to_owned()), "the agent is there: {agents:#}");
    assert!(agents["problems"].to_string().contains("dance"), "{agents:#}");
}

fn names(listed: &Value) -> Vec<String> {
    listed["agents"].as_array().unwrap().iter().map(|one| one["name"].as_str().unwrap().to_owned()).collect()
}
