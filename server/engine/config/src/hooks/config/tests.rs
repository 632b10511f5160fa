//! Hooks as settings files declare them, and the reports about wrong ones.

use serde_json::json;

use super::*;
use crate::settings::TrustRequest;
use crate::settings::declared::Switches;

fn root() -> AbsPath {
    AbsPath::new("/w").unwrap()
}

fn entry_in(folder: &str, event: &str, value: Value, approval: Approval) -> Declaration {
    let file = Some(root().join(folder).join("settings.json"));
    let source = RuleSource { layer: SettingsLayer::Project, file, place: None };
    Declaration { name: event.to_owned(), value, source, root: root(), approval, plugin: None }
}

fn entry(event: &str, value: Value) -> Declaration {
    entry_in(".claude", event, value, Approval::Approved)
}

fn compiled(entries: Vec<Declaration>) -> Hooks {
    Hooks::of(&Declarations { hooks: entries, ..Declarations::default() }, &root())
}

fn one(handler: Value) -> Hooks {
    compiled(vec![entry("PreToolUse", json!({ "hooks": [handler] }))])
}

fn messages(hooks: &Hooks) -> String {
    hooks.problems.iter().map(|problem| problem.message.as_str()).collect::<Vec<_>>().join("\n")
}

#[test]
fn handlers_of_each_kind_are_read_with_their_fields() {
    let hooks = compiled(vec![entry(
        "PreToolUse",
        json!({ "matcher": "Bash", "hooks": [
            { "type": "command", "command": "a.sh", "timeout": 1.5, "statusMessage": "Looking", "once": true },
            { "type": "command", "command": "b", "args": ["x y"], "shell": "sh" },
            { "type": "http", "url": "http://127.0.0.1/", "headers": { "k": "$K" }, "allowedEnvVars": ["K"] },
            { "type": "prompt", "prompt": "Fine? $ARGUMENTS", "model": "haiku" },
            { "command": "c", "async": true },
        ] }),
    )]);
    assert_eq!(messages(&hooks), "");
    let handlers = hooks.of_event(HookEvent::PreToolUse);
    let kinds: Vec<_> =
        handlers.iter().map(|handler| (handler.action.kind(), handler.timeout.as_secs_f64())).collect();
    assert_eq!(
        kinds,
        [("command", 1.5), ("command", 600.0), ("http", 600.0), ("prompt", 30.0), ("command", 600.0)]
    );
    assert!(handlers[0].once && handlers[4].is_async);
    assert_eq!(handlers[0].status_message.as_deref(), Some("Looking"));
    let headers = vec![("k".to_owned(), "$K".to_owned())];
    let http =
        HookAction::Http { url: "http://127.0.0.1/".to_owned(), headers, allowed: vec!["K".to_owned()] };
    assert_eq!(handlers[2].action, http);
}

#[test]
fn what_is_wrong_costs_the_handler_alone_and_is_reported() {
    for (handler, reported) in [
        (json!({ "type": "agent", "prompt": "x" }), "not run here"),
        (json!({ "type": "mcp_tool", "server": "x" }), "not run here"),
        (json!({ "type": "magic" }), "no handlers of type `magic`"),
        (json!({ "type": "command" }), "no `command`"),
        (json!({ "command": "x", "shell": "powershell" }), "no shell `powershell`"),
        (json!({ "command": "x", "timeout": -1 }), "above 0"),
        (json!({ "command": "x", "if": "Bash(" }), "no permission rule"),
        (json!({ "command": "x", "if": 3 }), "one permission rule"),
        (json!("x"), "is an object"),
    ] {
        let hooks = compiled(vec![entry("PreToolUse", json!({ "hooks": [handler, { "command": "good" }] }))]);
        assert!(messages(&hooks).contains(reported), "{handler}: {}", messages(&hooks));
        assert_eq!(hooks.of_event(HookEvent::PreToolUse).len(), 1, "{handler}");
        assert!(hooks.listed[0].problem.is_some());
    }
    let elsewhere = compiled(vec![entry("Stop", json!({ "hooks": [{ "command": "x", "if": "Bash" }] }))]);
    assert!(messages(&elsewhere).contains("events about calls"));
}

#[test]
fn a_time_limit_that_looks_like_milliseconds_and_fields_nobody_knows_are_warned_of() {
    let hooks = one(json!({ "command": "x", "timeout": 5000, "colour": "red" }));
    let reported = messages(&hooks);
    assert!(
        reported.contains("in seconds")
            && reported.contains("5 may be meant")
            && reported.contains("`colour`"),
        "{reported}"
    );
    assert_eq!(hooks.of_event(HookEvent::PreToolUse)[0].timeout, Duration::from_secs(5000));
}

#[test]
fn events_that_never_come_are_accepted_and_listed_as_such() {
    let group = json!({ "hooks": [{ "command": "x" }] });
    let hooks = compiled(vec![entry("ConfigChange", group.clone()), entry("Nonsense", group)]);
    let listed = &hooks.listed;
    assert_eq!(listed.len(), 2);
    assert!(
        listed.iter().all(|hook| HookEvent::of_name(&hook.event).is_none() && hook.problem.is_some()),
        "{listed:?}"
    );
    let severities: Vec<_> = hooks.problems.iter().map(|problem| problem.severity).collect();
    assert_eq!(severities, [ProblemSeverity::Information, ProblemSeverity::Warning]);
}

#[test]
fn time_limits_are_those_of_the_agent_whose_file_it_is() {
    let of = |folder: &str, event: &str| {
        let group = json!({ "hooks": [{ "command": "x" }] });
        let hooks = compiled(vec![entry_in(folder, event, group, Approval::Approved)]);
        hooks.of_event(HookEvent::of_name(event).unwrap())[0].timeout.as_secs()
    };
    assert_eq!(of(".claude", "Stop"), 600);
    assert_eq!(of(".kode", "Stop"), 60);
    assert_eq!(of(".blade", "Stop"), 60);
    assert_eq!(of(".claude", "UserPromptSubmit"), 30);
}

#[test]
fn what_waits_and_what_is_switched_off_is_listed_and_has_no_handler_to_run() {
    let group = json!({ "hooks": [{ "command": "x" }] });
    let trust_request = TrustRequest {
        root: root(),
        file: root().join("f"),
        key: "hooks.Stop".into(),
        text: group.to_string(),
    };
    let waiting = entry_in(".claude", "Stop", group.clone(), Approval::Waiting(trust_request));
    let hooks = compiled(vec![waiting]);
    assert!(hooks.has_none(HookEvent::Stop));
    assert_eq!((hooks.listed.len(), hooks.waiting.len()), (1, 1));
    let switches = Switches { disable_all_hooks: Some(true), ..Switches::default() };
    let declared = Declarations { hooks: vec![entry("Stop", group)], switches, ..Declarations::default() };
    let off = Hooks::of(&declared, &root());
    assert!(off.has_none(HookEvent::Stop) && off.listed.len() == 1 && off.is_disabled);
}

#[test]
fn identical_handlers_run_once() {
    let workspace = Workspace::new(std::sync::Arc::new(kode_text::host::NoEditor), vec![root()], root());
    let group =
        || entry("Stop", json!({ "hooks": [{ "command": "x" }, { "command": "y" }, { "command": "x" }] }));
    let hooks = compiled(vec![group(), group()]);
    let subject = MatchSubject { value: None, call: None, workspace: &workspace };
    let heads: Vec<_> =
        hooks.at(HookEvent::Stop, subject, Vec::new()).iter().map(|handler| handler.action.head()).collect();
    assert_eq!(heads, ["x", "y"]);
    let found = hooks.at(HookEvent::Stop, subject, Vec::new());
    assert_eq!(
        compiled(vec![group()]).at(HookEvent::Stop, subject, found).len(),
        2,
        "also those of other files"
    );
}
