//! Two answers to one prompt, for the user to choose from.
//!
//! Rule: nothing of either answer runs, streams or is recorded before the choice; what is not chosen leaves no trace in
//! history and transcript, and its tokens count all the same.

use crate::session::conversation::Conversation;
use crate::turn::sample::{Asker, Display, Fault, Given, Outcome, Shown, canonical};
use kode_base::question::{CANDIDATES, Candidate, CandidateCall, QuestionDraft, Reply};
use kode_model::profile::Profile;
use kode_model::{Block, ModelErrorKind, ModelRequest, ModelResponse};
use kode_record::event::NoticeLevel;

/// The temperature of the second answer, where the first has the provider's own or a lower one.
const HIGH_TEMPERATURE: f32 = 1.0;

/// The temperature of the second answer, where the first has a high one.
const LOW_TEMPERATURE: f32 = 0.3;

/// Asks for two answers at the same time and lets the user choose. Where only one comes, it is the answer.
pub(super) async fn ask(asker: &Asker<'_>, request: &ModelRequest) -> Result<Outcome, Fault> {
    let other = varied(request, &asker.profile);
    let (first, second) =
        tokio::join!(asker.ask(request, Display::Hidden), asker.ask(&other, Display::Hidden));
    drop(other);
    match (first, second) {
        (Ok(first), Ok(second)) => Ok(choose(asker, [first, second]).await),
        (Ok((response, shown)), Err(fault)) | (Err(fault), Ok((response, shown)))
            if fault.error.kind != ModelErrorKind::Cancelled =>
        {
            let text = "Only one of two answers came.".to_owned();
            asker.conversation.notice(asker.turn, NoticeLevel::Info, text, Some(fault.error.to_string()));
            Ok(Outcome::given(response, shown))
        }
        (Ok((response, _)), Err(fault)) | (Err(fault), Ok((response, _))) => {
            asker.charge_beside(response.usage);
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
        // What providers do by themselves is close to the highest.
        None => Some(LOW_TEMPERATURE),
    };
    ModelRequest { temperature, ..request.clone() }
}

async fn choose(asker: &Asker<'_>, answers: [(ModelResponse, Shown); 2]) -> Outcome {
    let [(first, first_shown), (second, second_shown)] = answers;
    let draft =
        QuestionDraft::candidates([&first, &second].map(|answer| candidate(asker.conversation, answer)));
    let reply = asker.conversation.ask_for_turn(draft, None, asker.cancel).await;
    let chosen = reply.as_ref().and_then(|reply| reply.answers.as_ref()?.first()?.labels.first().cloned());
    let (response, shown, other) = match chosen {
        Some(label) if label == CANDIDATES[0] => (first, first_shown, second.usage),
        Some(label) if label == CANDIDATES[1] => (second, second_shown, first.usage),
        Some(_) | None => {
            let mut usage = first.usage;
            usage += second.usage;
            asker.tell_usage(first.usage);
            asker.tell_usage(second.usage);
            return Outcome::NotChosen(usage);
        }
    };
    asker.tell_usage(other);
    let spared_by = reply.filter(|reply| reply.skip_asks).map(|Reply { by, .. }| by);
    Outcome::Given(Box::new(Given { response, shown, other, spared_by }))
}

/// An answer as the user sees it before the choice.
fn candidate(conversation: &Conversation<'_>, answer: &ModelResponse) -> Candidate {
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
