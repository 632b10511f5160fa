//! Whatever models answer and whenever users cancel: the history can be sent, and no call runs twice.

use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};

use super::*;

/// Counts how often each call ran.
#[derive(Clone, Default)]
pub(super) struct Counting {
    ran: Arc<Mutex<Vec<String>>>,
}

#[async_trait]
impl Tool for Counting {
    type Input = ProbeInput;

    fn facts(&self) -> ToolFacts {
        ToolFacts { name: "Count", kind: ToolKind::ReadOnly, concurrency_safe: true, description: "" }
    }

    async fn plan(&self, input: ProbeInput, _context: &CallContext) -> Result<CallPlan, ToolError> {
        let ran = Arc::clone(&self.ran);
        Ok(CallPlan {
            title: input.what.clone(),
            touches: vec![],
            action: CallAction::Run(Box::new(move |_| {
                Box::pin(async move {
                    ran.lock().unwrap().push(input.what.clone());
                    tokio::time::sleep(Duration::from_millis(30)).await;
                    Ok(ToolOutput { model_text: input.what, ..ToolOutput::default() })
                })
            })),
        })
    }
}

#[derive(Clone, Debug)]
pub(super) enum Piece {
    Text,
    Announcement,
    Blank,
    Thinking,
    Call,
    Unknown,
    Broken,
}

#[derive(Clone, Debug)]
pub(super) enum Turn {
    Answer(Vec<Piece>, StopReason),
    Fault(ModelErrorKind, bool),
    Hang,
}

pub(super) fn turns() -> impl Strategy<Value = Vec<Turn>> {
    let piece = prop_oneof![
        1 => Just(Piece::Text),
        1 => Just(Piece::Announcement),
        1 => Just(Piece::Blank),
        1 => Just(Piece::Thinking),
        3 => Just(Piece::Call),
        1 => Just(Piece::Unknown),
        1 => Just(Piece::Broken),
    ];
    let reason = prop_oneof![
        1 => Just(StopReason::EndTurn),
        3 => Just(StopReason::ToolUse),
        2 => Just(StopReason::MaxTokens),
        1 => Just(StopReason::Refusal),
        1 => Just(StopReason::PauseTurn),
        1 => Just(StopReason::StopSequence),
    ];
    let fault = prop_oneof![
        Just(ModelErrorKind::Network),
        Just(ModelErrorKind::Interrupted),
        Just(ModelErrorKind::Server),
        Just(ModelErrorKind::BadRequest),
        Just(ModelErrorKind::ContextTooLong),
    ];
    let turn = prop_oneof![
        5 => (prop::collection::vec(piece, 0..4), reason).prop_map(|(pieces, reason)| Turn::Answer(pieces, reason)),
        1 => (fault, any::<bool>()).prop_map(|(kind, partial)| Turn::Fault(kind, partial)),
        1 => Just(Turn::Hang),
    ];
    prop::collection::vec(turn, 1..8)
}

/// The behavior of the model, with calls of ids of their own.
pub(super) fn script(turns: &[Turn]) -> Vec<Say> {
    let mut number = 0;
    let mut block = |piece: &Piece| {
        number += 1;
        let id = format!("c{number}");
        match piece {
            Piece::Text => text("so it is"),
            Piece::Announcement => text("Let me check:"),
            Piece::Blank => text(" \n"),
            Piece::Thinking => Block::Thinking { thinking: "hm".into(), signature: "signed".into() },
            Piece::Call => call(&id, "Count", &id),
            Piece::Unknown => call(&id, "Nothing", &id),
            Piece::Broken => Block::ToolUse {
                id,
                name: "Count".into(),
                input: json!({}),
                input_error: Some("broken".into()),
            },
        }
    };
    let say = |turn: &Turn| match turn {
        Turn::Answer(pieces, reason) => Say::Ended(pieces.iter().map(&mut block).collect(), reason.clone()),
        Turn::Fault(kind, partial) => {
            let partial = partial.then(|| {
                Box::new(ModelResponse {
                    id: None,
                    content: vec![text("half")],
                    stop_reason: StopReason::Other("interrupted".into()),
                    usage: Usage::default(),
                })
            });
            Say::Fail(ModelError { partial, ..ModelError::new(*kind, "it failed") })
        }
        Turn::Hang => Say::Hang("and then"),
    };
    turns.iter().map(say).collect()
}

/// Runs a script with users who cancel after this many milliseconds, prompt after prompt.
async fn run(turns: &[Turn], cancels: &[u64]) {
    let counting = Counting::default();
    let mut tools = Registry::default();
    tools.add(counting.clone());
    let bench = Bench::with_tools(tempfile::tempdir().unwrap(), script(turns), tools);
    let session = bench.session();
    let mut events = session.events().subscribe(0, vec![]);
    for (number, after) in cancels.iter().enumerate() {
        session.prompts().submit(prompt(&format!("p{number}"))).unwrap();
        tokio::time::sleep(Duration::from_millis(*after)).await;
        session.turns().cancel();
        until(&mut events, is_done).await;
    }
    // The rest of the script ends somehow, and then the model is there again.
    bench.model.script.lock().unwrap().clear();
    session.prompts().submit(prompt("last")).unwrap();
    let seen = until(&mut events, is_done).await;
    assert!(seen.iter().any(|record| matches!(record.event, Event::Done { reason: TurnEnd::EndTurn, .. })));
    assert_sendable(&bench.requests().pop().unwrap().messages);
    for item in session.snapshot(usize::MAX).items {
        if let ItemBody::ToolCall(call) = &item.body {
            assert!(call.state.is_final(), "{call:?}");
        }
    }
    let mut ran = counting.ran.lock().unwrap().clone();
    let all = ran.len();
    ran.sort();
    ran.dedup();
    assert_eq!(ran.len(), all, "a call ran twice");
    bench.engine.shutdown().await;
}

#[test]
fn any_answers_and_cancels_leave_a_history_that_can_be_sent() {
    let mut runner = TestRunner::new(Config { cases: 60, failure_persistence: None, ..Config::default() });
    let cancels = prop::collection::vec(0_u64..3_000, 1..4);
    let ran = runner.run(&(turns(), cancels), |(turns, cancels)| {
        let runtime =
            tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap();
        runtime.block_on(run(&turns, &cancels));
        Ok(())
    });
    ran.unwrap();
}
