//! What several hooks say at one moment, made into one.
//!
//! Rule: it does not matter which hook ended first. A refusal wins over a deferral, that over a question, that over a yes;
//! of several that write the same thing the first in the order of the sources wins, and that there were several is told.

use super::fire::Fired;
use super::output::{Choice, Said};

/// What one hook said, with what matters of where it stands.
#[derive(Clone, Debug, Default)]
pub(super) struct One {
    pub(super) said: Said,
    /// What was run, in one line.
    pub(super) head: String,
    pub(super) is_of_workspace: bool,
}

/// Makes one of what hooks said, in the order of their sources.
pub(super) fn combine(all: Vec<One>) -> Fired {
    let mut fired = Fired { ran: all.len(), ..Fired::default() };
    let mut blocks = Vec::new();
    let mut writers = Vec::new();
    for One { said, head, is_of_workspace } in all {
        if let Some((choice, reason)) = said.choice {
            let is_stronger = fired.choice.as_ref().is_none_or(|known| known.0 < choice);
            if is_stronger {
                let reason = if reason.is_empty() { format!("the hook `{head}` says so") } else { reason };
                fired.choice = Some((choice, reason));
            }
        }
        blocks.extend(said.block);
        fired.context.extend(said.context);
        fired.messages.extend(said.system_message);
        fired.stop = fired.stop.or(said.stop);
        fired.session_title = fired.session_title.or(said.session_title);
        fired.initial_message = fired.initial_message.or(said.initial_message);
        fired.updated_output = fired.updated_output.or(said.updated_output);
        if let Some(input) = said.updated_input {
            writers.push(head.clone());
            fired.updated_input.get_or_insert(input);
        }
        if let Some(answer) = said.permission {
            // The first answer counts, but a no wins over any yes.
            if fired.permission.as_ref().is_none_or(|known| known.allow && !answer.allow) {
                fired.permission = Some(answer);
                fired.permission_is_of_workspace = is_of_workspace;
            }
        }
        let notes = said.notes.into_iter().map(|note| format!("`{head}`: {note}"));
        fired.problems.extend(said.error.into_iter().chain(notes));
    }
    if writers.len() > 1 {
        let first = writers.remove(0);
        fired.problems.push(format!(
            "several hooks change the arguments; those of `{first}` count, and not those of `{}`",
            writers.join("`, `")
        ));
    }
    if let Some((Choice::Deny, _)) = fired.choice {
        fired.updated_input = None;
    }
    fired.block = (!blocks.is_empty()).then(|| blocks.join("\n"));
    fired
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::output::PermissionAnswer;
    use super::*;

    fn one(head: &str, said: Said) -> One {
        One { said, head: head.to_owned(), is_of_workspace: false }
    }

    fn chooses(choice: Choice) -> Said {
        Said { choice: Some((choice, format!("{choice:?}"))), ..Said::default() }
    }

    #[test]
    fn the_strictest_choice_wins_in_whichever_order_they_stand() {
        use Choice::{Allow, Ask, Defer, Deny};
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
        assert_eq!(combine(vec![one("x", Said::default())]).choice, None);
    }

    #[test]
    fn the_first_of_several_writers_counts_and_the_others_are_named() {
        let writes = |value: i32| Said { updated_input: Some(json!({ "v": value })), ..Said::default() };
        let fired = combine(vec![one("a", writes(1)), one("b", Said::default()), one("c", writes(2))]);
        assert_eq!(fired.updated_input, Some(json!({ "v": 1 })));
        assert!(
            fired.problems[0].contains("`a`") && fired.problems[0].contains("`c`"),
            "{:?}",
            fired.problems
        );
        let denied = combine(vec![one("a", writes(1)), one("b", chooses(Choice::Deny))]);
        assert_eq!(denied.updated_input, None, "what is refused is not changed");
    }

    #[test]
    fn a_no_to_a_permission_prompt_wins_and_all_context_and_reasons_are_kept() {
        let answers = |allow| Said {
            permission: Some(PermissionAnswer { allow, ..PermissionAnswer::default() }),
            context: Some(format!("context {allow}")),
            block: Some(format!("reason {allow}")),
            ..Said::default()
        };
        for order in [[true, false], [false, true]] {
            let fired = combine(order.into_iter().map(|allow| one("x", answers(allow))).collect());
            assert!(!fired.permission.unwrap().allow);
            assert_eq!(fired.context.len(), 2);
            assert_eq!(fired.block, Some(format!("reason {}\nreason {}", order[0], order[1])));
        }
    }
}
