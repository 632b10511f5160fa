//! Combining the outputs of several hooks of one event.
//!
//! Rule: the order in which hooks end does not matter. A refusal wins over a deferral, a deferral over a question, a
//! question over a yes. Of several outputs for one field the first in the order of the sources wins, and the user is
//! notified of the others.

use super::fire::HookReply;
use super::output::{HandlerOutput, HookChoice};

/// The output of one hook, and where it comes from.
#[derive(Clone, Debug, Default)]
pub(super) struct HandlerReply {
    pub(super) output: HandlerOutput,
    /// Its command, in one line.
    pub(super) head: String,
    pub(super) is_of_workspace: bool,
}

/// Combines the outputs of hooks, in the order of their sources.
pub(super) fn combine(all: Vec<HandlerReply>) -> HookReply {
    let mut reply = HookReply { ran: all.len(), ..HookReply::default() };
    let mut blocks = Vec::new();
    let mut writers = Vec::new();
    for HandlerReply { output, head, is_of_workspace } in all {
        if let Some((choice, reason)) = output.choice {
            let is_stronger = reply.choice.as_ref().is_none_or(|known| known.0 < choice);
            if is_stronger {
                let reason = if reason.is_empty() { format!("the hook `{head}` says so") } else { reason };
                reply.choice = Some((choice, reason));
            }
        }
        blocks.extend(output.block);
        reply.context.extend(output.context);
        reply.messages.extend(output.system_message);
        reply.stop = reply.stop.or(output.stop);
        reply.session_title = reply.session_title.or(output.session_title);
        reply.initial_message = reply.initial_message.or(output.initial_message);
        reply.updated_output = reply.updated_output.or(output.updated_output);
        if let Some(input) = output.updated_input {
            writers.push(head.clone());
            reply.updated_input.get_or_insert(input);
        }
        if let Some(answer) = output.permission {
            // The first answer applies, but a denial wins over any permission.
            if reply.permission.as_ref().is_none_or(|known| known.allow && !answer.allow) {
                reply.permission = Some(answer);
                reply.permission_is_of_workspace = is_of_workspace;
            }
        }
        let notes = output.notes.into_iter().map(|note| format!("`{head}`: {note}"));
        reply.problems.extend(output.error.into_iter().chain(notes));
    }
    if writers.len() > 1 {
        let first = writers.remove(0);
        reply.problems.push(format!(
            "several hooks change the arguments; those of `{first}` count, and not those of `{}`",
            writers.join("`, `")
        ));
    }
    if let Some((HookChoice::Deny, _)) = reply.choice {
        reply.updated_input = None;
    }
    reply.block = (!blocks.is_empty()).then(|| blocks.join("\n"));
    reply
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::output::PermissionAnswer;
    use super::*;

    fn one(head: &str, output: HandlerOutput) -> HandlerReply {
        HandlerReply { output, head: head.to_owned(), is_of_workspace: false }
    }

    fn chooses(choice: HookChoice) -> HandlerOutput {
        HandlerOutput { choice: Some((choice, format!("{choice:?}"))), ..HandlerOutput::default() }
    }

    #[test]
    fn the_strictest_choice_wins_in_whichever_order_they_stand() {
        use HookChoice::{Allow, Ask, Defer, Deny};
        for (choices, expected) in [
            (&[Allow, Deny, Ask][..], Deny),
            (&[Deny, Allow], Deny),
            (&[Ask, Defer, Allow], Defer),
            (&[Allow, Ask], Ask),
            (&[Allow, Allow], Allow),
        ] {
            let all = choices.iter().map(|choice| one("x", chooses(*choice))).collect();
            assert_eq!(combine(all).choice, Some((expected, format!("{expected:?}"))), "{choices:?}");
        }
        assert_eq!(combine(vec![one("x", HandlerOutput::default())]).choice, None);
    }

    #[test]
    fn the_first_of_several_writers_counts_and_the_others_are_named() {
        let writes = |value: i32| HandlerOutput {
            updated_input: Some(json!({ "v": value })),
            ..HandlerOutput::default()
        };
        let reply =
            combine(vec![one("a", writes(1)), one("b", HandlerOutput::default()), one("c", writes(2))]);
        assert_eq!(reply.updated_input, Some(json!({ "v": 1 })));
        assert!(
            reply.problems[0].contains("`a`") && reply.problems[0].contains("`c`"),
            "{:?}",
            reply.problems
        );
        let denied = combine(vec![one("a", writes(1)), one("b", chooses(HookChoice::Deny))]);
        assert_eq!(denied.updated_input, None, "what is refused is not changed");
    }

    #[test]
    fn a_no_to_a_permission_prompt_wins_and_all_context_and_reasons_are_kept() {
        let answers = |allow| HandlerOutput {
            permission: Some(PermissionAnswer { allow, ..PermissionAnswer::default() }),
            context: Some(format!("context {allow}")),
            block: Some(format!("reason {allow}")),
            ..HandlerOutput::default()
        };
        for order in [[true, false], [false, true]] {
            let reply = combine(order.into_iter().map(|allow| one("x", answers(allow))).collect());
            assert!(!reply.permission.unwrap().allow);
            assert_eq!(reply.context.len(), 2);
            assert_eq!(reply.block, Some(format!("reason {}\nreason {}", order[0], order[1])));
        }
    }
}
