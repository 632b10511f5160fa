//! The names and the bounds of a team: a session's own conversation and its sub-agents in the background.
//!
//! Rule: one table of bounds for the tools, the loop and the clients' messages; a name is plain ASCII, so that two names that
//! look alike are the same.

/// The name of the session's own conversation.
pub const MAIN: &str = "main";

/// The name of the user as a sender.
pub const USER: &str = "user";

/// The recipient that means all others in a team.
pub const EVERYONE: &str = "*";

/// The most bytes of a name.
pub const MAX_NAME: usize = 32;

/// The most bytes of a message.
pub const MAX_MESSAGE: usize = 8 * 1024;

/// The most messages in a mailbox that its owner has not read.
pub const MAX_UNREAD: usize = 32;

/// The most tasks of the shared list.
pub const MAX_TASKS: usize = 200;

/// The most bytes of a task's title.
pub const MAX_TASK_TITLE: usize = 300;

/// The most seconds that one call waits for a message.
pub const MAX_WAIT_SECONDS: u64 = 600;

/// The seconds that a call waits for a message where it does not say.
pub const WAIT_SECONDS: u64 = 300;

/// Why a text is no name of a sub-agent.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TeamNameError {
    /// It has other characters, no character, or too many.
    #[error(
        "`{0}` is no name of a sub-agent: a name has 1 to {MAX_NAME} lowercase letters, digits and single hyphens, and begins \
         with a letter"
    )]
    Form(String),
    /// It has a meaning of its own.
    #[error("the name `{0}` is taken: it means the main conversation or the user")]
    Reserved(String),
}

/// Checks a name for a sub-agent.
///
/// # Errors
/// [`TeamNameError`].
pub fn check_name(name: &str) -> Result<(), TeamNameError> {
    if [MAIN, USER].contains(&name) {
        return Err(TeamNameError::Reserved(name.to_owned()));
    }
    let is_plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    let begins = name.bytes().next().is_some_and(|first| first.is_ascii_lowercase());
    let has_form = begins && name.bytes().all(is_plain) && !name.ends_with('-') && !name.contains("--");
    if has_form && name.len() <= MAX_NAME {
        return Ok(());
    }
    Err(TeamNameError::Form(name.chars().take(2 * MAX_NAME).collect()))
}

/// The first name that is made of the type of a sub-agent and a number, and that is not taken.
#[must_use]
pub fn derived_name(kind: &str, is_taken: impl Fn(&str) -> bool) -> String {
    // Room for a hyphen and a number.
    const STEM: usize = MAX_NAME - 11;
    let mut stem = String::new();
    for byte in kind.bytes().map(|byte| byte.to_ascii_lowercase()) {
        let plain = if byte.is_ascii_lowercase() || byte.is_ascii_digit() { char::from(byte) } else { '-' };
        let is_doubled = plain == '-' && stem.ends_with('-');
        let has_place = plain.is_ascii_lowercase() || !(stem.is_empty() || is_doubled);
        if has_place && stem.len() < STEM {
            stem.push(plain);
        }
    }
    let stem = match stem.trim_end_matches('-') {
        "" => "agent",
        stem => stem,
    };
    let mut number = 1_u32;
    loop {
        let name = format!("{stem}-{number}");
        // A session starts far fewer sub-agents than there are numbers.
        if !is_taken(&name) || number == u32::MAX {
            return name;
        }
        number += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_plain_and_reserved_ones_are_refused() {
        for name in ["a", "explore-1", "api-tests", "x2", &"a".repeat(MAX_NAME)] {
            assert_eq!(check_name(name), Ok(()), "{name}");
        }
        for name in ["", "A", "a b", "1a", "-a", "a-", "a--b", "ä", "*", "a\n", &"a".repeat(MAX_NAME + 1)] {
            assert!(matches!(check_name(name), Err(TeamNameError::Form(_))), "{name}");
        }
        for name in [MAIN, USER] {
            assert!(matches!(check_name(name), Err(TeamNameError::Reserved(_))), "{name}");
        }
    }

    #[test]
    fn derived_names_are_names_that_are_free() {
        let taken = ["explore-1", "explore-2"];
        assert_eq!(derived_name("Explore", |name| taken.contains(&name)), "explore-3");
        for (kind, expected) in [
            ("general-purpose", "general-purpose-1"),
            ("My Plugin: Reviewer", "my-plugin-reviewer-1"),
            ("3d--Model-", "d-model-1"),
            ("Prüfer", "pr-fer-1"),
            ("查", "agent-1"),
        ] {
            let name = derived_name(kind, |_| false);
            assert_eq!((name.as_str(), check_name(&name)), (expected, Ok(())));
        }
        let long = derived_name(&"very-long".repeat(9), |_| false);
        assert_eq!(check_name(&long), Ok(()), "{long}");
    }
}
