//! Two answers to one prompt, for the user to choose from.
//!
//! Rule: nothing of either answer runs, streams or is recorded before the choice; the other answer leaves no trace in
//! history and transcript, and its tokens count all the same.

use crate::conversation::Conversation;
use crate::turn::questions::ask_for_turn;
use crate::turn::sample::{
    AnswerDisplay, ModelCaller, ReceivedAnswer, SampleFault, SampleOutcome, StreamedItems, canonical,
};
use kode_base::question::{CANDIDATES, Candidate, CandidateCall, QuestionDraft, Reply};
use kode_model::profile::Profile;
use kode_model::{Block, ModelErrorKind, ModelRequest, ModelResponse};
use kode_record::context::Pace;
use kode_record::event::NoticeLevel;

/// The temperature of the second answer, where the first has the provider's own or a lower one.
const HIGH_TEMPERATURE: f32 = 1.0;

/// The temperature of the second answer, where the first has a high one.
const LOW_TEMPERATURE: f32 = 0.3;

/// Asks for two answers at the same time and lets the user choose. Where only one comes, it is the answer.
pub(super) async fn ask(
    caller: &ModelCaller<'_>,
    request: &ModelRequest,
) -> Result<SampleOutcome, SampleFault> {
    let other = varied(request, &caller.profile);
    let (first, second) =
        tokio::join!(caller.ask(request, AnswerDisplay::Hidden), caller.ask(&other, AnswerDisplay::Hidden));
    drop(other);
    match (first, second) {
        (Ok(first), Ok(second)) => Ok(choose(caller, [first, second]).await),
        (Ok((response, shown)), Err(fault)) | (Err(fault), Ok((response, shown)))
            if fault.error.kind != ModelErrorKind::Cancelled =>
        {
            let text = "Only one of two answers came.".to_owned();
            caller.turn.notice(NoticeLevel::Info, text, Some(fault.error.to_string()));
            Ok(SampleOutcome::of(response, shown))
        }
        (Ok((response, _)), Err(fault)) | (Err(fault), Ok((response, _))) => {
            caller.charge_apart(response.usage);
            Err(fault)
        }
        (Err(fault), Err(_)) => Err(fault),
    }
}

/// The request for the second answer: at another temperature, where the model lets that be chosen.
fn varied(request: &ModelRequest, profile: &Profile) -> ModelRequest {
    let temperature = match request.temperature {
        _ if !profile.capabilities.temperature || request.effort.is_some() => request.temperature,
        Some(high) if high > f32::midpoint(LOW_TEMPERATURE, HIGH_TEMPERATURE) => Some(LOW_TEMPERATURE),
        Some(_) => Some(HIGH_TEMPERATURE),
        // The default of providers is close to the highest.
        None => Some(LOW_TEMPERATURE),
    };
    ModelRequest { temperature, ..request.clone() }
}

async fn choose(caller: &ModelCaller<'_>, answers: [(ModelResponse, StreamedItems); 2]) -> SampleOutcome {
    let [(first, first_shown), (second, second_shown)] = answers;
    let draft = QuestionDraft::candidates(
        [&first, &second].map(|answer| candidate(caller.turn.conversation, answer)),
    );
    let reply = ask_for_turn(caller.turn, draft, None, caller.cancel).await;
    let chosen = reply.as_ref().and_then(|reply| reply.answers.as_ref()?.first()?.labels.first().cloned());
    let (response, shown, other) = match chosen {
        Some(label) if label == CANDIDATES[0] => (first, first_shown, second.usage),
        Some(label) if label == CANDIDATES[1] => (second, second_shown, first.usage),
        Some(_) | None => {
            let mut usage = first.usage;
            usage += second.usage;
            caller.charge(first.usage, Pace::default());
            caller.charge(second.usage, Pace::default());
            return SampleOutcome::NotChosen(usage);
        }
    };
    caller.charge(other, Pace::default());
    let spared_by = reply.filter(|reply| reply.skip_asks).map(|Reply { by, .. }| by);
    SampleOutcome::Answer(Box::new(ReceivedAnswer { response, shown, other, spared_by }))
}

/// An answer as the user sees it before the choice.
fn candidate(conversation: &Conversation, answer: &ModelResponse) -> Candidate {
    let (mut texts, mut calls) = (Vec::new(), Vec::new());
    for block in &answer.content {
        match block {
            Block::Text { text } => texts.push(text.as_str()),
            Block::ToolUse { name, input, .. } => {
                calls.push(CandidateCall { name: canonical(conversation, name), input: input.clone() });
            }
            Block::Image(_)
            | Block::Thinking { .. }
            | Block::RedactedThinking { .. }
            | Block::ToolResult { .. } => {}
        }
    }
    Candidate { text: texts.join("\n"), calls }
}
