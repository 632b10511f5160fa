//! Two answers to one prompt: what the choice leaves, and what may run because of it.

use super::course::{asked_or_done, reply};
use super::waiting::Settings;
use super::*;
use kode_base::question::{CANDIDATES, QuestionKind, Reply};
use kode_config::policy::Policy;
use kode_permission::rules::{Behavior, PlacedRule, RuleSource, SettingsLayer};
use kode_record::options::TurnOptions;
use kode_tools::built_in::built_in;

fn twice(text: &str) -> Prompt {
    let options = TurnOptions { candidate_answers: Some(true), ..TurnOptions::default() };
    prompt(text).with_options(options)
}

fn write(id: &str, path: &str) -> Block {
    let input = json!({ "file_path": path, "content": "new\n" });
    Block::ToolUse { id: id.into(), name: "Write".into(), input, input_error: None }
}

#[tokio::test(start_paused = true)]
async fn only_the_chosen_answer_enters_history_and_transcript_and_both_count() {
    let bench = Bench::new(vec![
        Say::Answer(vec![text("first"), call("a0", "SafeProbe", "return")]),
        Say::Answer(vec![text("second"), call("b0", "SafeProbe", "return")]),
    ]);
    let session = bench.session();
    let mut events = session.events().subscribe(0, vec![]);
    session.prompts().submit(twice("go")).unwrap();
    assert_eq!(asked_or_done(&mut events).await, None);
    let question = session.requests().questions().remove(0);
    assert_eq!(question.draft.kind, QuestionKind::Candidates);
    let shown: Vec<_> = question.draft.candidates.iter().map(|answer| answer.text.as_str()).collect();
    assert_eq!(shown, ["first", "second"]);
    assert_eq!(question.draft.candidates[1].calls[0].input, json!({ "what": "return" }));
    assert_eq!(bench.safe.most.load(Ordering::SeqCst), 0, "nothing runs before the choice");
    assert_eq!(session.snapshot(usize::MAX).items.len(), 1, "and nothing is shown but the prompt");
    session.requests().reply(&question.id, reply(Some(CANDIDATES[1]))).unwrap();
    let seen = until(&mut events, is_done).await;
    let used = seen.iter().find_map(|record| match &record.event {
        Event::Done { usage, model_calls, .. } => Some((usage.input_tokens, *model_calls)),
        _ => None,
    });
    assert_eq!(used, Some((3, 2)));
    let last = bench.requests().pop().unwrap();
    assert_eq!(last.messages[1].content[0], text("second"));
    assert_eq!(results(&last).len(), 1);
    assert!(!format!("{:?}", last.messages).contains("first"));
    let items = format!("{:?}", session.snapshot(usize::MAX).items);
    assert!(items.contains("second") && !items.contains("first"), "{items}");
}

#[tokio::test(start_paused = true)]
async fn choosing_none_ends_the_turn_silently() {
    let answer = |said: &str| Say::Answer(vec![text(said)]);
    let bench = Bench::new(vec![answer("first"), answer("second")]);
    let session = bench.session();
    let mut events = session.events().subscribe(0, vec![]);
    session.prompts().submit(twice("go")).unwrap();
    assert_eq!(asked_or_done(&mut events).await, None);
    session.requests().reply(&session.requests().questions()[0].id, reply(None)).unwrap();
    assert_eq!(asked_or_done(&mut events).await, Some(TurnEnd::NotChosen));
    assert_eq!(session.snapshot(usize::MAX).items.len(), 1);
    // The model is asked twice for the first answer to a prompt, and where one fails the other is the answer.
    bench
        .model
        .script
        .lock()
        .unwrap()
        .extend([Say::Fail(ModelError::new(ModelErrorKind::BadRequest, "no")), answer("the only one")]);
    session.prompts().submit(twice("again")).unwrap();
    assert_eq!(asked_or_done(&mut events).await, Some(TurnEnd::EndTurn));
    assert_eq!(session.answer(), "the only one");
}

/// Chooses the first of two answers that write a file, with its calls let run; answers which calls were asked for, and
/// what came of those of the first answer.
async fn chosen(rule: Option<(Behavior, &str)>, path: &str) -> (Vec<CallId>, String) {
    let settings = Settings::default();
    let source = RuleSource { layer: SettingsLayer::User, file: None, place: None };
    let placed =
        rule.map(|(behavior, rule)| PlacedRule { behavior, rule: rule.parse().unwrap(), source, root: None });
    settings.set(Policy { rules: placed.into_iter().collect(), ..Policy::default() });
    let script = vec![
        Say::Answer(vec![write("a0", path)]),
        Say::Answer(vec![write("b0", path)]),
        Say::Answer(vec![write("c0", "other.txt")]),
    ];
    let home = tempfile::tempdir().unwrap();
    let bench = Bench::with_policies(home, script, built_in(), Arc::new(settings));
    let session = bench.session();
    let mut events = session.events().subscribe(0, vec![]);
    session.prompts().submit(twice("go")).unwrap();
    assert_eq!(asked_or_done(&mut events).await, None);
    let chosen = Reply { skip_asks: true, ..reply(Some(CANDIDATES[0])) };
    session.requests().reply(&session.requests().questions()[0].id, chosen).unwrap();
    let mut asked = Vec::new();
    loop {
        let is_asked = |event: &Event| matches!(event, Event::PermissionRequired { .. });
        let seen = until(&mut events, |event| is_asked(event) || is_done(event)).await;
        if seen.iter().any(|record| is_done(&record.event)) {
            break;
        }
        let waiting = session.requests().permissions().remove(0);
        asked.push(waiting.call);
        let no = kode_permission::PromptAnswer {
            allow: false,
            scope: kode_permission::Scope::Once,
            feedback: None,
            updated_input: None,
            rules: None,
            hunks: None,
            mode: None,
            by: "test".to_owned(),
        };
        session.requests().respond(&waiting.id, no).unwrap();
    }
    let (_, content, _) = results(&bench.requests()[2]).remove(0);
    (asked, content)
}

#[tokio::test]
async fn the_flag_lets_run_what_was_shown_and_lifts_no_rule_and_no_guard() {
    let calls = |ids: &[&str]| ids.iter().map(|id| CallId::from_external(*id)).collect::<Vec<_>>();
    let (asked, content) = chosen(None, "new.txt").await;
    assert_eq!(asked, calls(&["c0"]), "another call is asked for as ever");
    assert!(!content.contains("refused"), "{content}");
    let (asked, content) = chosen(Some((Behavior::Ask, "Write")), "new.txt").await;
    assert_eq!(asked, calls(&["a0", "c0"]));
    assert!(content.contains("refused"), "{content}");
    let (asked, content) = chosen(Some((Behavior::Deny, "Write")), "new.txt").await;
    assert!(asked.is_empty() && content.contains("the rule Write"), "{content}");
    let (asked, _) = chosen(None, ".git/config").await;
    assert_eq!(asked, calls(&["a0", "c0"]), "what steers programs is asked for each time");
}
