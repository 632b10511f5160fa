//! The command that asks a side question.
//!
//! Rule: its argument is the question, whatever it has in it.

use super::{BuiltInId, TypedCommand};

/// The side question of a prompt, empty when it has none; `None` for any other prompt.
#[must_use]
pub fn asked(prompt: &str) -> Option<&str> {
    let typed = TypedCommand::read(prompt)?;
    let is_side = typed.built_in().is_some_and(|command| command.which == BuiltInId::Btw);
    is_side.then_some(typed.arguments)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_side_question_is_all_that_follows_the_name() {
        for (prompt, question) in [
            ("/btw why /tmp?", Some("why /tmp?")),
            (" /btw\nfirst\nsecond ", Some("first\nsecond")),
            ("/btw", Some("")),
            ("/btws x", None),
            ("tell me /btw x", None),
        ] {
            assert_eq!(asked(prompt), question, "{prompt}");
        }
    }
}
