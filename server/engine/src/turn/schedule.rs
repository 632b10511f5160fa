//! When the calls of one answer run.
//!
//! Rule: in the order of the calls; neighbours that are safe beside each other run together, at most
//! [`CONCURRENCY`] at once, and any other call waits for all before it and holds back all after it. Unknown tools
//! count as unsafe. Results join the history in the order of the calls, whatever order they come in.

use futures::StreamExt;
use futures::stream;
use tokio_util::sync::CancellationToken;

use crate::event::Event;
use crate::session::conversation::Conversation;
use crate::turn::pipeline;
use crate::turn::sample::Call;

/// The most calls that run at once.
const CONCURRENCY: usize = 10;

/// Runs all calls; every one of them has a result afterwards, or the turn was cancelled and they are sealed.
pub(super) async fn run(conversation: &Conversation<'_>, calls: Vec<Call>, cancel: &CancellationToken) {
    let session = conversation.session;
    for (waiting, call) in calls.iter().enumerate() {
        let (call, name) = (call.id.clone(), call.name.clone());
        session.publish(Event::ToolQueued { call, name, queue_length: waiting + 1 });
    }
    // All of them at once: a call that waits can be cancelled as well as one that runs.
    let calls = calls.into_iter().map(|call| (session.register_call(&call.id, cancel), call)).collect();
    for group in groups(calls, |(_, call)| is_safe(conversation, call)) {
        if cancel.is_cancelled() {
            return;
        }
        stream::iter(group)
            .for_each_concurrent(CONCURRENCY, |(cancel, call)| pipeline::run(conversation, call, cancel))
            .await;
    }
}

fn is_safe(conversation: &Conversation<'_>, call: &Call) -> bool {
    conversation.tools.find(&call.name).is_some_and(|tool| tool.facts().concurrency_safe)
}

/// Splits calls into groups that run one after another; only safe calls share a group.
fn groups<T>(calls: Vec<T>, is_safe: impl Fn(&T) -> bool) -> Vec<Vec<T>> {
    let mut groups: Vec<Vec<T>> = Vec::new();
    let mut open = false;
    for call in calls {
        let safe = is_safe(&call);
        match groups.last_mut() {
            Some(group) if open && safe => group.push(call),
            _ => groups.push(vec![call]),
        }
        open = safe;
    }
    groups
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn safe_neighbours_share_a_group_and_unsafe_calls_are_barriers() {
        let split = |calls: &str| {
            groups(calls.chars().collect(), |call| call.is_lowercase())
                .into_iter()
                .map(|group| group.into_iter().collect::<String>())
                .collect::<Vec<_>>()
        };
        assert_eq!(split("abWcdXYe"), ["ab", "W", "cd", "X", "Y", "e"]);
        assert_eq!(split("W"), ["W"]);
        assert_eq!(split(""), Vec::<String>::new());
    }
}
