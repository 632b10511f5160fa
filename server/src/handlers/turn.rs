//! `agent/turn/*` and `agent/tool/cancel`.

use kode_engine::agent::session::prompts::SubmitOutcome;
use kode_engine::base::ids::CallId;
use kode_engine::config::budget::Budget;
use kode_engine::record::options::TurnOptions;
use kode_protocol as wire;

use crate::backend::Backend;
use crate::convert;
use crate::convert::error::{self, RequestError};
use crate::handlers::params::Params;

/// Submits a prompt.
pub(crate) async fn start(backend: &Backend, params: Params) -> Result<wire::StartTurnResult, RequestError> {
    let params: wire::StartTurnParams = params.read()?;
    let session = backend.session_for_prompt(&params.session_id).await?;
    for (name, amount) in [("maxCostUsd", params.max_cost_usd), ("maxMinutes", params.max_minutes)] {
        if amount.is_some_and(|amount| !Budget::is_amount(amount)) {
            return Err(error::invalid_params(name, "a budget is a number above 0"));
        }
    }
    if let Some(profile) = &params.sandbox {
        session.gate().profile_named(profile).map_err(|bad| error::invalid_params("sandbox", &bad))?;
    }
    let options = TurnOptions {
        max_turns: params.max_turns,
        sandbox: params.sandbox,
        candidate_answers: params.candidate_answers,
        budget: Budget { max_cost_usd: params.max_cost_usd, max_minutes: params.max_minutes },
    };
    let prompt = convert::input::prompt(params.input, params.context)
        .map_err(|bad| error::invalid_params(&bad.path, &bad.message))?;
    let prompt = prompt.with_options(options);
    let submitted = match params.delivery {
        wire::Delivery::Queue => session.prompts().submit(prompt),
        wire::Delivery::Steer => session.prompts().steer(prompt),
    };
    Ok(reported(submitted.map_err(error::submit)?))
}

/// The outcome of a prompt.
pub(crate) fn reported(submitted: SubmitOutcome) -> wire::StartTurnResult {
    match submitted {
        SubmitOutcome::Started(turn) => {
            wire::StartTurnResult::Started(wire::StartedTurn { turn_id: convert::turn_id(&turn) })
        }
        SubmitOutcome::Queued(queue) => {
            wire::StartTurnResult::Queued(wire::QueuedTurn { queue_id: convert::queue_id(&queue) })
        }
        SubmitOutcome::Answered { turn, item } => wire::StartTurnResult::Answered(wire::AnsweredTurn {
            turn_id: convert::turn_id(&turn),
            item_id: convert::item_id(&item),
        }),
        SubmitOutcome::Steering { turn, queue } => wire::StartTurnResult::Steering(wire::SteeredTurn {
            turn_id: convert::turn_id(&turn),
            queue_id: convert::queue_id(&queue),
        }),
    }
}

/// Cancels the running turn.
pub(crate) async fn cancel(backend: &Backend, params: Params) -> Result<wire::CancelResult, RequestError> {
    let params: wire::CancelTurnParams = params.read()?;
    Ok(wire::CancelResult { cancelled: backend.session(&params.session_id)?.turns().cancel() })
}

/// Ends the wait before the model is asked again.
pub(crate) async fn retry(backend: &Backend, params: Params) -> Result<wire::RetryTurnResult, RequestError> {
    let params: wire::RetryTurnParams = params.read()?;
    Ok(wire::RetryTurnResult { running: backend.session(&params.session_id)?.turns().retry_now() })
}

/// Cancels one call.
pub(crate) async fn cancel_call(
    backend: &Backend,
    params: Params,
) -> Result<wire::CancelResult, RequestError> {
    let params: wire::CancelToolParams = params.read()?;
    let session = backend.session(&params.session_id)?;
    if session.turns().cancel_call(&CallId::from_external(params.call_id.as_str())) {
        Ok(wire::CancelResult { cancelled: true })
    } else {
        Err(error::unknown_call(params.call_id.as_str()))
    }
}
