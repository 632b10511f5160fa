//! Parts that a compaction must not harm: the boundary, steering, attachments, calls, other models, sub-agents.

use super::*;
use crate::tests::agents::Trusting;
use kode_model::profile::Profile;
use kode_testing::validity;
use kode_tools::built_in::built_in;

/// The probe tools, of which one waits until it is let go.
fn probes() -> (Probe, Registry) {
    let probe = Probe { safe: true, ..Probe::default() };
    let mut tools = Registry::default();
    tools.add(probe.clone());
    (probe, tools)
}

fn office(window: u64, model: Copyist, tools: Registry) -> Office {
    Office::with(window, model, tools, Arc::new(NoEditor), Arc::new(NoPolicyProvider), |models, _| models)
}

/// Runs a turn whose first request of a 128,000 window is reported to have this many tokens, and whose second one is
/// measured: the tokens it began to compact at, if it did.
async fn second_call(reported: u64) -> Option<u64> {
    let script = vec![
        (vec![text("noted")], 0),
        (vec![text("looking"), call("c0", "SafeProbe", "return")], reported),
        (vec![text("done")], 0),
    ];
    let office = office(128_000, Copyist::saying(script), probes().1);
    let session = office.session();
    turn(&session, &"lorem ipsum dolor sit amet ".repeat(7_000)).await;
    let steps = steps(&turn(&session, "go").await);
    assert_eq!(office.model.requests.lock().unwrap().len(), 3);
    steps.into_iter().find_map(|step| match step {
        CompressionStep::Started { cause: Cause::Threshold, tokens, .. } => Some(tokens),
        _ => None,
    })
}

#[tokio::test(start_paused = true)]
async fn within_a_turn_the_last_token_before_the_threshold_is_still_sent_as_it_is() {
    let at = second_call(102_400).await.unwrap();
    let added = at - 102_400;
    assert!((1..200).contains(&added), "the call and its result are counted: {added}");
    // Additions are scaled by the error of the estimate, so that the count may come out as one token more or less.
    let mut seen = Vec::new();
    for reported in 102_398 - added..=102_402 - added {
        seen.push(second_call(reported).await);
    }
    assert_eq!((seen[0], seen[4].is_some()), (None, true), "{seen:?}");
    let first = seen.iter().flatten().next().unwrap();
    assert!((102_400..=102_401).contains(first), "{seen:?}");
}

#[tokio::test(start_paused = true)]
async fn one_turn_tries_three_times_to_no_use_and_warns_once() {
    let mut script: Vec<_> =
        (0..12).map(|round| (vec![call(&format!("c{round}"), "SafeProbe", "return")], 0)).collect();
    script.push((vec![text("done")], 0));
    // The tools and the system prompt alone are more than the window takes.
    let office = office(400, Copyist::saying(script), probes().1);
    let session = office.session();
    let is_begun = |step: &&CompressionStep| matches!(step, CompressionStep::Started { .. });
    let seen = turn(&session, "go").await;
    assert_eq!(steps(&seen).iter().filter(is_begun).count(), 3);
    let warned = |session: &Session| {
        notices(session).iter().filter(|(_, text)| text.contains("cannot be made short enough")).count()
    };
    assert_eq!((warned(&session), office.model.requests.lock().unwrap().len()), (1, 13));
    let seen = turn(&session, "again").await;
    assert!((1..=3).contains(&steps(&seen).iter().filter(is_begun).count()), "another prompt is another try");
}

#[tokio::test(start_paused = true)]
async fn what_was_said_to_a_running_turn_is_kept_or_summarized() {
    let mut script =
        vec![(vec![text("looking"), call("c0", "SafeProbe", "wait")], 0), (vec![text("as you say")], 0)];
    script.extend((0..8).map(|_| (vec![text("done")], 0)));
    script.push((vec![text("looking"), call("c1", "SafeProbe", "wait")], 0));
    let (probe, tools) = probes();
    let office = office(200_000, Copyist::saying(script), tools);
    let session = office.session();
    for (prompt_text, steer) in
        [("build it", "STEER leave the lexer"), ("now test it", "STEER skip the slow ones")]
    {
        let mut events = session.events().subscribe(session.events().newest(), vec![]);
        session.prompts().submit(prompt(prompt_text)).unwrap();
        until(&mut events, |event| matches!(event, Event::ToolStart { .. })).await;
        session.prompts().steer(prompt(steer)).unwrap();
        tokio::time::sleep(Duration::from_millis(50)).await;
        probe.go.notify_waiters();
        until(&mut events, is_done).await;
        for round in 0..8 * usize::from(prompt_text == "build it") {
            turn(&session, &long(&format!("prompt {round}"))).await;
        }
    }
    turn(&session, "/compact").await;
    let asked = office.model.asked.lock().unwrap()[0].clone();
    assert!(asked.contains("STEER leave the lexer"), "{asked}");
    turn(&session, "go on").await;
    assert!(
        office.last_request().contains("STEER skip the slow ones"),
        "the newest words stand as they were"
    );
}

#[tokio::test(start_paused = true)]
async fn what_was_said_to_a_running_turn_survives_where_no_summary_can_be_written() {
    let mut script = vec![(vec![text("looking"), call("c0", "SafeProbe", "wait")], 0)];
    script
        .extend((1..12).map(|round| {
            (vec![text(&long("looked")), call(&format!("c{round}"), "SafeProbe", "return")], 0)
        }));
    script.push((vec![text("done")], 0));
    let (probe, tools) = probes();
    let model = Copyist { fails: true, ..Copyist::saying(script) };
    let office = office(200_000, model, tools);
    let session = office.session();
    let mut events = session.events().subscribe(session.events().newest(), vec![]);
    session.prompts().submit(prompt("PROMPT build it")).unwrap();
    until(&mut events, |event| matches!(event, Event::ToolStart { .. })).await;
    session.prompts().steer(prompt("STEER leave the lexer")).unwrap();
    probe.go.notify_waiters();
    until(&mut events, is_done).await;
    // Twice, so that what the first head quotes has to be found again.
    for round in 0..2 {
        turn(&session, "/compact").await;
        let reported: Vec<_> = history(&session).iter().flat_map(|message| message.content.clone()).collect();
        for said in ["PROMPT build it", "STEER leave the lexer"] {
            assert!(reported.contains(&text(said)), "{said} is gone after compaction {round}");
        }
    }
    let Block::Text { text: warning } = &history(&session)[0].content[0] else { panic!("no warning") };
    assert!(warning.contains("no summary of it could"), "{warning}");
}

#[tokio::test(start_paused = true)]
async fn steering_that_comes_while_a_summary_is_written_is_reported_afterwards() {
    let model = Copyist { hangs: true, ..Copyist::default() };
    let office = office(200_000, model, probes().1);
    let session = office.session();
    for round in 0..5 {
        turn(&session, &long(&format!("prompt {round}"))).await;
    }
    let mut events = session.events().subscribe(session.events().newest(), vec![]);
    session.prompts().submit(prompt("/compact")).unwrap();
    until(&mut events, |event| matches!(event, Event::ContextCompression { .. })).await;
    session.prompts().steer(prompt("STEER left")).unwrap();
    session.turns().cancel();
    until(&mut events, is_done).await;
    let mut reported = session.snapshot(usize::MAX).queue.into_iter().map(|waiting| waiting.text);
    let heard = reported.any(|text| text == "STEER left")
        || format!("{:?}", history(&session)).contains("STEER left");
    assert!(heard, "neither waiting nor said");
}

#[tokio::test]
async fn what_a_prompt_named_is_in_the_summary_or_with_the_prompt() {
    let office = office(200_000, Copyist::default(), built_in());
    std::fs::write(office.home.path().join("a.txt"), "OLD-ATTACHED\n").unwrap();
    std::fs::write(office.home.path().join("b.txt"), "NEW-ATTACHED\n").unwrap();
    let session = office.session();
    turn(&session, "look at @a.txt").await;
    for round in 0..8 {
        turn(&session, &long(&format!("prompt {round}"))).await;
    }
    turn(&session, "and at @b.txt").await;
    turn(&session, "/compact").await;
    assert!(office.model.asked.lock().unwrap()[0].contains("OLD-ATTACHED"));
    turn(&session, "go on").await;
    assert!(office.last_request().contains("NEW-ATTACHED"));
}

#[tokio::test(start_paused = true)]
async fn a_call_without_its_result_does_not_hinder_a_compaction() {
    let script = vec![
        (vec![text("one")], 0),
        (vec![text("two")], 0),
        (vec![text("looking"), call("c0", "SafeProbe", "wait"), call("c1", "SafeProbe", "wait")], 0),
    ];
    let office = office(200_000, Copyist::saying(script), probes().1);
    let session = office.session();
    turn(&session, &long("first").repeat(10)).await;
    turn(&session, &long("second").repeat(10)).await;
    let mut events = session.events().subscribe(session.events().newest(), vec![]);
    session.prompts().submit(prompt("third")).unwrap();
    until(&mut events, |event| matches!(event, Event::ToolStart { .. })).await;
    session.turns().cancel();
    until(&mut events, is_done).await;
    let done = turn(&session, "/compact").await;
    assert!(matches!(steps(&done).last(), Some(CompressionStep::Done { .. })), "{:?}", steps(&done));
    turn(&session, "go on").await;
    assert_sendable(&history(&session)[..history(&session).len() - 1]);
}

#[tokio::test(start_paused = true)]
async fn a_model_of_another_wire_format_takes_what_a_compaction_left() {
    let foreign = Copyist { name: "foreign", wire: Wire::Responses, ..Copyist::default() };
    let foreign = Arc::new(foreign);
    let thinks = |round: usize| {
        let thinking = Block::Thinking { thinking: "hm".into(), signature: format!("s{round}") };
        let sealed = Block::RedactedThinking { data: "sealed".into() };
        (vec![thinking, sealed, text("so"), call(&format!("c{round}"), "SafeProbe", "return")], 0)
    };
    let own = Copyist::saying((0..40).map(thinks).flat_map(|one| [one, (vec![text("done")], 0)]).collect());
    let reasoning = |round: usize| {
        let data = json!({ "type": "reasoning", "id": format!("rs_{round}"), "summary": [], "encrypted_content": "g" });
        let sealed = Block::RedactedThinking { data: data.to_string() };
        (vec![sealed, call(&format!("f{round}"), "SafeProbe", "return")], 0)
    };
    foreign
        .script
        .lock()
        .unwrap()
        .extend((0..40).map(reasoning).flat_map(|one| [one, (vec![text("done")], 0)]));
    let profile = Profile {
        name: "foreign".into(),
        model: "foreign".into(),
        context_window: 200_000,
        max_tokens: 1_000,
        ..Profile::demo()
    };
    let second = Arc::clone(&foreign) as Arc<dyn Model>;
    let office = Office::with(
        200_000,
        own,
        probes().1,
        Arc::new(NoEditor),
        Arc::new(NoPolicyProvider),
        |models, _| models.with_in_process(profile, second),
    );
    let session = office.session();
    let own = session.snapshot(0).model;
    for window in 0..6 {
        for round in 0..4 {
            turn(&session, &long(&format!("prompt {window} {round}"))).await;
            let name = if (window + round) % 2 == 0 { "foreign".to_owned() } else { own.clone() };
            session.configure(ConfigChange { model: Some(name), ..ConfigChange::default() });
        }
        let done = turn(&session, "/compact").await;
        assert!(matches!(steps(&done).last(), Some(CompressionStep::Done { .. })), "{:?}", steps(&done));
        let request =
            ModelRequest { messages: history(&session), max_tokens: 8_000, ..ModelRequest::default() };
        validity::everywhere(&request).unwrap();
    }
    assert!(!foreign.requests.lock().unwrap().is_empty());
}

#[tokio::test(start_paused = true)]
async fn the_conversation_of_a_sub_agent_is_compacted_by_its_own_window() {
    let round = |at: usize| {
        (
            vec![
                text(&"lorem ipsum dolor sit amet ".repeat(500)),
                call(&format!("c{at}"), "SafeProbe", "return"),
            ],
            0,
        )
    };
    let input = json!({ "description": "look", "prompt": "TASK read it all", "subagent_type": "reader" });
    let task = Block::ToolUse { id: "t0".into(), name: "Task".into(), input, input_error: None };
    let mut script = vec![(vec![text("noted")], 0), (vec![task], 0)];
    script.extend((0..9).map(round));
    script.extend([(vec![text("it is here")], 0), (vec![text("done")], 0)]);
    let mut tools = probes().1;
    tools.add(kode_tools::task::Task);
    let small =
        Profile { name: "small".into(), context_window: 20_000, max_tokens: 1_000, ..Profile::demo() };
    let model = Copyist::saying(script);
    // The user has approved the model that the file names.
    let policies = Arc::new(Trusting::default());
    let office = Office::with(200_000, model, tools, Arc::new(NoEditor), policies, |models, own| {
        models.with_in_process(small, Arc::clone(own) as Arc<dyn Model>)
    });
    let folder = office.home.path().join(".claude/agents");
    std::fs::create_dir_all(&folder).unwrap();
    let kind = "---\nname: reader\ndescription: Reads.\nmodel: small\n---\nYou read.\n";
    std::fs::write(folder.join("reader.md"), kind).unwrap();
    let session = office.session();
    turn(&session, &long("first")).await;
    let seen = turn(&session, "go").await;
    let reported: Vec<_> = seen
        .iter()
        .filter_map(|record| match &record.event {
            Event::ContextCompression { agent, step, .. } => Some((agent.clone(), step.clone())),
            _ => None,
        })
        .collect();
    assert!(!reported.is_empty() && reported.iter().all(|(agent, _)| agent.is_some()), "{reported:?}");
    assert!(
        matches!(reported[0].1, CompressionStep::Started { window: 20_000, cause: Cause::Threshold, .. }),
        "{reported:?}"
    );
    let Some(CompressionStep::Done { compaction }) = reported.last().map(|(_, step)| step) else {
        panic!("{reported:?}")
    };
    let window = session.history().window(reported[0].0.as_ref(), &compaction.window).await.unwrap();
    assert_eq!(window[0].content, [text("TASK read it all")]);
    assert!(
        session.history().window(None, &compaction.window).await.is_err(),
        "it is no window of the session's own"
    );
    let requests = office.model.requests.lock().unwrap();
    let last = format!("{:?}", requests[requests.len() - 2]);
    assert!(last.contains("conversation-summary") && last.contains("TASK read it all"));
    assert_eq!(requests.last().unwrap().len(), 5, "the session's own history is as it was");
}
