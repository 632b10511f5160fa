//! The schedule of the calls of one answer.
//!
//! Rule: a call begins when all earlier ones have ended that touch what it touches ([`super::order`]); those that may
//! touch anything, unknown tools among them, run alone. A call that waits for the user holds back no other call: places to
//! run are taken by running calls only. Results join the history in the order of the calls, whatever order they come in.

use std::sync::Arc;

use futures::future::join_all;
use tokio_util::sync::CancellationToken;

use crate::conversation::Conversation;
use crate::turn::order::{CallReach, waits};
use crate::turn::resume::is_call_left_open;
use crate::turn::sample::ModelToolCall;
use crate::turn::services::TurnContext;
use crate::turn::{delegate, pipeline};
use kode_base::call::ToolKind;
use kode_config::ignore_files::IgnoreLook;
use kode_record::event::Event;
use kode_tool::ToolFacts;
use kode_tool::declared::declared;

/// Runs all calls; every one of them has a result afterwards, or the turn was cancelled and they are sealed.
pub(super) async fn run(turn: TurnContext<'_>, calls: Vec<ModelToolCall>, cancel: &CancellationToken) {
    let services = turn.services;
    for (waiting, call) in calls.iter().enumerate() {
        let (call, name) = (call.id.clone(), call.name.clone());
        services.core.publish(Event::ToolQueued { call, name, queue_length: waiting + 1 });
    }
    let ignored = ignore_look(turn, &calls);
    let asked: Vec<usize> =
        calls.iter().enumerate().filter(|(_, call)| call.pending.is_some()).map(|(place, _)| place).collect();
    let waits = waits(&calls.iter().map(|call| reach(turn.conversation, call)).collect::<Vec<_>>());
    let ended: Vec<_> = calls.iter().map(|_| CancellationToken::new()).collect();
    // All of them at once: a call that waits can be cancelled as well as one that runs.
    let calls: Vec<_> =
        calls.into_iter().map(|call| (services.turns.register_call(&call.id, cancel), call)).collect();
    join_all(calls.into_iter().enumerate().map(|(place, (token, call))| {
        let (waits, asked, ended, ignored) = (&waits[place], &asked, &ended, ignored.as_ref());
        async move {
            let all_earlier = join_all(waits.iter().map(|earlier| ended[*earlier].cancelled()));
            tokio::select! {
                biased;
                _ = all_earlier => {}
                () = token.cancelled() => {}
            }
            let is_asked = call.pending.is_some();
            if !is_asked {
                // In a resumed turn nothing runs before the user has answered.
                let nobody_answered = join_all(asked.iter().map(|asked| ended[*asked].cancelled()));
                tokio::select! {
                    biased;
                    () = services.requests.attended() => {}
                    () = token.cancelled() => {}
                    _ = nobody_answered => {}
                }
            }
            let may_begin = is_asked || services.requests.is_attended() || token.is_cancelled();
            // Calls that are left when the turn ends are sealed with it.
            if may_begin && !cancel.is_cancelled() {
                pipeline::run(turn, call, token, ignored).await;
            } else if !is_call_left_open(turn, &call) {
                delegate::give_up(&services.core, &call);
            }
            ended[place].cancel();
        }
    }))
    .await;
}

/// The view of ignore files that the calls of an answer share, where all of them only read: none of them waits for another or
/// changes such a file, and they are judged at once.
fn ignore_look(turn: TurnContext<'_>, calls: &[ModelToolCall]) -> Option<Arc<IgnoreLook>> {
    let only_reads = |call: &ModelToolCall| {
        let tool = turn.conversation.tools.find(&call.name);
        let is_read = |facts: &ToolFacts| facts.kind == ToolKind::ReadOnly && facts.concurrency_safe;
        call.pending.is_none() && tool.is_some_and(|tool| is_read(&tool.facts()))
    };
    let is_shared = calls.len() > 1 && calls.iter().all(only_reads);
    is_shared.then(|| Arc::new(turn.services.gate.in_force_for(turn.conversation).ignore_look()))
}

/// The reach of a call, for its order.
fn reach(conversation: &Conversation, call: &ModelToolCall) -> CallReach {
    let workspace = conversation.workspace();
    let Some(tool) = conversation.tools.find(&call.name) else { return CallReach::Anything };
    let resolve =
        |path: &str| workspace.resolve(path).ok().map(|target| workspace.compared(&workspace.real(&target)));
    let declared = declared(&call.name, &call.input, &workspace.cwd(), &resolve);
    match (tool.facts().kind, tool.facts().concurrency_safe, declared) {
        (_, true, declared) => CallReach::Only(declared.unwrap_or_default()),
        (ToolKind::Write, false, Some(declared)) => CallReach::Only(declared),
        (ToolKind::ReadOnly | ToolKind::Write | ToolKind::Execute, false, _) => CallReach::Anything,
    }
}
