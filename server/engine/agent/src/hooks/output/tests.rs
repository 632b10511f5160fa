//! The decisions by the output and exit code of a hook, event by event.

use serde_json::json;

use super::*;
use kode_permission::rules::Behavior;

fn run(code: i32, stdout: &str, stderr: &str) -> HandlerRun {
    HandlerRun {
        exit: HandlerExit::Exit(Exit::Code(code)),
        stdout: stdout.to_owned(),
        stderr: stderr.to_owned(),
        head: "hook.sh".to_owned(),
        missing: None,
    }
}

fn said(event: HookEvent, code: i32, stdout: &str, stderr: &str) -> HandlerOutput {
    read(event, &run(code, stdout, stderr))
}

fn specific(event: &str, fields: Value) -> String {
    let mut output = json!({ "hookEventName": event });
    output.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
    json!({ "hookSpecificOutput": output }).to_string()
}

#[test]
fn exit_code_2_blocks_where_the_event_can_block_whatever_the_json_says() {
    use HookEvent::*;
    let allow =
        specific("PreToolUse", json!({ "permissionDecision": "allow", "permissionDecisionReason": "why" }));
    assert_eq!(said(PreToolUse, 2, "", "not here\n").choice, Some((HookChoice::Deny, "not here".into())));
    assert_eq!(said(PreToolUse, 2, &allow, "stderr").choice, Some((HookChoice::Deny, "why".into())));
    assert_eq!(said(PreToolUse, 2, "", "").choice, Some((HookChoice::Deny, NO_REASON.into())));
    for event in
        [UserPromptSubmit, PreCompact, Compaction, Stop, SubagentStop, PostToolUse, PostToolUseFailure]
    {
        assert_eq!(said(event, 2, "", "no").block.as_deref(), Some("no"), "{event:?}");
    }
    for event in [SessionStart, SessionEnd, SubagentStart, PostCompact] {
        let said = said(event, 2, "", "no");
        assert_eq!((said.block, said.system_message.as_deref()), (None, Some("no")), "{event:?}");
    }
    for event in [PermissionRequest, Notification] {
        assert_eq!(said(event, 2, "", "no"), HandlerOutput::default(), "{event:?}");
    }
}

#[test]
fn other_codes_block_nothing_but_their_json_still_decides() {
    let failed = said(HookEvent::PreToolUse, 1, "", "boom\nmore");
    assert_eq!(failed.choice, None);
    assert!(failed.error.as_ref().unwrap().contains("exit code 1: boom"), "{failed:?}");
    let deny =
        specific("PreToolUse", json!({ "permissionDecision": "deny", "permissionDecisionReason": "r" }));
    assert_eq!(said(HookEvent::PreToolUse, 1, &deny, "").choice, Some((HookChoice::Deny, "r".into())));
    let guard = HandlerRun { head: "guard-main.sh".into(), ..run(1, "", "") };
    assert!(read(HookEvent::PreToolUse, &guard).notes[0].contains("exits with 2"));
}

#[test]
fn what_is_not_there_is_a_fault_of_the_set_up_and_no_refusal() {
    for code in [126, 127] {
        let said = said(HookEvent::PreToolUse, code, "", "bash: x: not found");
        assert_eq!((said.choice.clone(), said.outcome()), (None, HookOutcome::NotSetUp), "{code}");
    }
    let python =
        HandlerRun { missing: Some("there is no `x.py`".into()), ..run(2, "", "can't open file 'x.py'") };
    let said = read(HookEvent::PreToolUse, &python);
    assert_eq!((said.choice.clone(), said.outcome()), (None, HookOutcome::NotSetUp));
    let never = HandlerRun { exit: HandlerExit::NotStarted("no sandbox".into()), ..run(0, "", "") };
    assert_eq!(read(HookEvent::PreToolUse, &never).outcome(), HookOutcome::NotSetUp);
}

#[test]
fn a_time_limit_a_signal_and_a_cancel_decide_nothing() {
    for (exit, outcome) in [
        (Exit::TimedOut, HookOutcome::TimedOut),
        (Exit::Cancelled, HookOutcome::Cancelled),
        (Exit::Signal(9), HookOutcome::Failed),
    ] {
        let deny = json!({ "decision": "block" }).to_string();
        let said =
            read(HookEvent::PreToolUse, &HandlerRun { exit: HandlerExit::Exit(exit), ..run(0, &deny, "") });
        assert_eq!((said.choice.clone(), said.block.clone(), said.outcome()), (None, None, outcome));
    }
}

#[test]
fn decisions_about_calls_are_read_in_the_new_form_and_the_old() {
    let new = |decision: &str| specific("PreToolUse", json!({ "permissionDecision": decision }));
    let old = |decision: &str| json!({ "decision": decision, "reason": "r" }).to_string();
    for (stdout, expected) in [
        (new("allow"), Some(HookChoice::Allow)),
        (new("deny"), Some(HookChoice::Deny)),
        (new("ask"), Some(HookChoice::Ask)),
        (new("defer"), Some(HookChoice::Defer)),
        (new("passthrough"), None),
        (old("approve"), Some(HookChoice::Allow)),
        (old("block"), Some(HookChoice::Deny)),
        (old("continue"), None),
        ("{}".to_owned(), None),
    ] {
        let said = said(HookEvent::PreToolUse, 0, &stdout, "");
        assert_eq!(said.choice.map(|(choice, _)| choice), expected, "{stdout}");
        assert_eq!(said.notes, Vec::<String>::new(), "{stdout}");
    }
    let unknown = said(HookEvent::PreToolUse, 0, &new("yes"), "");
    assert!(unknown.choice.is_none() && unknown.notes[0].contains("`yes`"));
    let beside = said(HookEvent::PreToolUse, 0, r#"{"permissionDecision":"deny"}"#, "");
    assert!(beside.choice.is_some() && beside.notes[0].contains("belongs into"));
}

#[test]
fn json_is_read_alone_and_elsewhere_only_with_a_word_about_it() {
    let event = HookEvent::UserPromptSubmit;
    let object = json!({ "decision": "block", "reason": "no" }).to_string();
    assert_eq!(said(event, 0, &format!("\n {object}\n"), "").notes, Vec::<String>::new());
    let mixed = said(event, 0, &format!("loading…\n{object}\nbye"), "");
    assert_eq!(mixed.block.as_deref(), Some("no"));
    assert!(mixed.notes[0].contains("stand alone"));
    let broken = said(event, 0, "{\"decision\": \"block\"", "");
    assert_eq!((broken.block, broken.context.as_deref()), (None, Some("{\"decision\": \"block\"")));
    assert!(broken.notes[0].contains("is invalid"));
    let data = said(event, 0, "the config is {\"a\": 1}", "");
    assert_eq!((data.context.as_deref(), data.notes.len()), (Some("the config is {\"a\": 1}"), 0));
}

#[test]
fn plain_text_is_context_where_it_is_and_nothing_elsewhere() {
    for (event, expected) in [
        (HookEvent::UserPromptSubmit, Some("today")),
        (HookEvent::SessionStart, Some("today")),
        (HookEvent::PreToolUse, None),
        (HookEvent::Stop, None),
    ] {
        assert_eq!(said(event, 0, "today\n", "").context.as_deref(), expected, "{event:?}");
        assert_eq!(said(event, 1, "today\n", "").context, None, "{event:?}");
    }
}

#[test]
fn what_all_events_can_say_is_read_at_all_of_them() {
    let stdout = json!({
        "continue": false, "stopReason": "enough", "systemMessage": "look", "suppressOutput": true,
        "hookSpecificOutput": { "additionalContext": "more" },
    })
    .to_string();
    for event in HookEvent::ALL {
        let said = said(event, 0, &stdout, "");
        assert_eq!((said.stop.as_deref(), said.system_message.as_deref()), (Some("enough"), Some("look")));
        assert_eq!(said.outcome(), HookOutcome::Stopped, "{event:?}");
        let takes = event != HookEvent::PermissionRequest;
        assert_eq!(said.context.is_some(), takes, "{event:?}");
    }
}

#[test]
fn inputs_outputs_and_permissions_are_taken_over_and_nonsense_is_reported() {
    let changed =
        said(HookEvent::PreToolUse, 0, &specific("PreToolUse", json!({ "updatedInput": { "a": 1 } })), "");
    assert_eq!(changed.updated_input, Some(json!({ "a": 1 })));
    assert_eq!(changed.outcome(), HookOutcome::Changed);
    let wrong = said(HookEvent::PreToolUse, 0, &specific("PreToolUse", json!({ "updatedInput": "a" })), "");
    assert!(wrong.updated_input.is_none() && wrong.notes[0].contains("no object"));
    let output = specific("PostToolUse", json!({ "updatedToolOutput": { "stdout": "x" } }));
    assert_eq!(said(HookEvent::PostToolUse, 0, &output, "").updated_output, Some(json!({ "stdout": "x" })));
    let decision = json!({ "behavior": "allow", "updatedInput": { "a": 1 }, "updatedPermissions": [
        { "type": "addRules", "behavior": "allow", "destination": "session",
          "rules": [{ "toolName": "Bash", "ruleContent": "ls *" }] },
        { "type": "setMode", "mode": "acceptEdits", "destination": "session" },
        { "type": "fly" },
    ] });
    let request = said(
        HookEvent::PermissionRequest,
        0,
        &specific("PermissionRequest", json!({ "decision": decision })),
        "",
    );
    let answer = request.permission.unwrap();
    assert!(answer.allow && answer.updated_input.is_some());
    let PermissionUpdate::Add { behavior, rules, .. } = &answer.updates[0] else { panic!("{answer:?}") };
    assert_eq!((*behavior, rules[0].to_string()), (Behavior::Allow, "Bash(ls *)".to_owned()));
    assert_eq!(answer.updates.len(), 2);
    assert!(request.notes[0].contains("`fly`"));
    let deny = json!({ "decision": { "behavior": "deny", "message": "no", "interrupt": true } });
    let answer =
        said(HookEvent::PermissionRequest, 0, &specific("PermissionRequest", deny), "").permission.unwrap();
    assert!(!answer.allow && answer.interrupt);
    let blocked = said(HookEvent::Compaction, 0, r#"{"blockCompaction":true,"blockReason":"later"}"#, "");
    assert_eq!(blocked.block.as_deref(), Some("later"));
}
