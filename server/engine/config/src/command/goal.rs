//! The command that sets the goal of a session.
//!
//! Rule: options come first; the first word that is none begins the goal. A bound has to be a positive number.

/// The most checks where the command does not say.
pub const DEFAULT_ROUNDS: u32 = 20;

/// The most checks that the command can ask for.
const MAX_ROUNDS: u32 = 1_000;

/// The longest goal, in characters.
const MAX_TEXT: usize = 10_000;

/// A command on the goal.
#[derive(Clone, Debug, PartialEq)]
pub enum GoalCommand {
    /// Shows the goal.
    Show,
    /// Removes it.
    Clear,
    /// Sets another one.
    Set(GoalRequest),
}

/// A goal that is to be set.
#[derive(Clone, Debug, PartialEq)]
pub struct GoalRequest {
    /// The goal, for the model and for people.
    pub text: String,
    /// The command that checks it; without one a model does.
    pub check: Option<String>,
    /// The most checks.
    pub rounds: u32,
    /// The most money, in US dollars.
    pub cost_usd: Option<f64>,
    /// The most minutes of turns.
    pub minutes: Option<u32>,
}

/// Whether the arguments only show or remove the goal.
pub(super) fn is_at_once(arguments: &str) -> bool {
    matches!(arguments, "" | "clear")
}

/// Reads the arguments of the command.
///
/// # Errors
/// The option that cannot be read, and its form.
pub fn read(arguments: &str) -> Result<GoalCommand, String> {
    match arguments.trim() {
        "" => return Ok(GoalCommand::Show),
        "clear" => return Ok(GoalCommand::Clear),
        _ => {}
    }
    let mut request = GoalRequest {
        text: String::new(),
        check: None,
        rounds: DEFAULT_ROUNDS,
        cost_usd: None,
        minutes: None,
    };
    let mut rest = arguments.trim();
    while let Some(option) = rest.strip_prefix("--") {
        let (name, after) = option.split_once(char::is_whitespace).unwrap_or((option, ""));
        let (value, after) = value(after.trim_start())?;
        match name {
            "check" if !value.trim().is_empty() => request.check = Some(value.trim().to_owned()),
            "check" => return Err("`--check` needs a command: `--check \"cargo test\"`".to_owned()),
            "rounds" => request.rounds = whole(name, value, MAX_ROUNDS)?,
            "minutes" => request.minutes = Some(whole(name, value, u32::MAX / 60_000)?),
            "cost" => {
                let cost: f64 = value.trim_start_matches('$').parse().unwrap_or(f64::NAN);
                if !(cost.is_finite() && cost > 0.0) {
                    return Err(format!(
                        "`--cost` needs an amount in US dollars such as `2.50`, not `{value}`"
                    ));
                }
                request.cost_usd = Some(cost);
            }
            _ => {
                return Err(format!(
                    "`/goal` has no option `--{name}`; it has `--check`, `--rounds`, `--cost` and `--minutes`"
                ));
            }
        }
        rest = after.trim_start();
    }
    request.text = match (rest, &request.check) {
        ("", Some(check)) => format!("Make `{check}` succeed."),
        ("", None) => return Err("write the goal behind its options".to_owned()),
        (text, _) if text.chars().nth(MAX_TEXT).is_some() => {
            return Err(format!("the goal is longer than {MAX_TEXT} characters"));
        }
        (text, _) => text.to_owned(),
    };
    Ok(GoalCommand::Set(request))
}

/// A value in quotes of any kind, or one word, and the text behind it.
fn value(text: &str) -> Result<(&str, &str), String> {
    match text.chars().next().filter(|first| "\"'`".contains(*first)) {
        Some(quote) => text[1..]
            .split_once(quote)
            .ok_or_else(|| format!("a value that begins with {quote} has no {quote} at its end")),
        None => Ok(text.split_once(char::is_whitespace).unwrap_or((text, ""))),
    }
}

fn whole(name: &str, value: &str, most: u32) -> Result<u32, String> {
    let number = value.parse::<u32>().ok().filter(|number| (1..=most).contains(number));
    number.ok_or_else(|| format!("`--{name}` needs a whole number from 1 to {most}, not `{value}`"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_come_before_the_goal_and_a_check_may_be_quoted() {
        let read = |text: &str| match read(text) {
            Ok(GoalCommand::Set(request)) => request,
            other => panic!("{text}: {other:?}"),
        };
        let all =
            read("--check 'cargo test -q' --rounds 5 --cost $1.5 --minutes 30 All tests pass\nand --more");
        assert_eq!(all.check.as_deref(), Some("cargo test -q"));
        assert_eq!((all.rounds, all.cost_usd, all.minutes), (5, Some(1.5), Some(30)));
        assert_eq!(all.text, "All tests pass\nand --more");
        let alone = read("--check make");
        assert_eq!((alone.text.as_str(), alone.rounds), ("Make `make` succeed.", DEFAULT_ROUNDS));
        let plain = read("the docs are complete");
        assert_eq!((plain.check, plain.text.as_str()), (None, "the docs are complete"));
    }

    #[test]
    fn what_cannot_be_read_is_named_with_its_form() {
        for (text, part) in [
            ("--rounds 0 x", "whole number from 1 to 1000, not `0`"),
            ("--minutes soon x", "not `soon`"),
            ("--cost -1 x", "not `-1`"),
            ("--cost nan x", "not `nan`"),
            ("--check '' x", "needs a command"),
            ("--check 'make x", "has no ' at its end"),
            ("--until x", "no option `--until`"),
            ("--rounds 3", "write the goal"),
        ] {
            let error = read(text).unwrap_err();
            assert!(error.contains(part), "{text}: {error}");
        }
    }

    #[test]
    fn the_goal_is_shown_and_removed_by_no_other_words() {
        assert_eq!(read(" "), Ok(GoalCommand::Show));
        assert_eq!(read("clear"), Ok(GoalCommand::Clear));
        assert!(matches!(read("clear the cache"), Ok(GoalCommand::Set(_))));
    }
}
