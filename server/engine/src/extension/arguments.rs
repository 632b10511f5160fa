//! Arguments in the text of a skill or command: `$ARGUMENTS`, `$1`, names, and what is meant literally.
//!
//! Rule: arguments are put in once and never read again for placeholders; what is no placeholder stays as it is.

/// Puts the arguments into a text. `base` is the number of the first. Arguments for which the text has no place are
/// added at its end.
#[must_use]
pub fn fill(body: &str, arguments: &str, base: usize, names: &[String]) -> String {
    let arguments = arguments.trim();
    let words = split(arguments);
    let (mut text, mut rest, mut has_place) = (String::with_capacity(body.len()), body, false);
    while let Some(at) = rest.find(['$', '\\']) {
        text.push_str(&rest[..at]);
        rest = &rest[at..];
        if let Some(literal) = rest.strip_prefix("\\$") {
            text.push('$');
            rest = literal;
            continue;
        }
        match placeholder(rest, base, names) {
            Some((Place::All, length)) => {
                text.push_str(arguments);
                (rest, has_place) = (&rest[length..], true);
            }
            Some((Place::Number(number), length)) => {
                text.push_str(words.get(number).map(String::as_str).unwrap_or_default());
                (rest, has_place) = (&rest[length..], true);
            }
            None => {
                text.push_str(&rest[..1]);
                rest = &rest[1..];
            }
        }
    }
    text.push_str(rest);
    if !has_place && !arguments.is_empty() {
        text.push_str("\n\nARGUMENTS: ");
        text.push_str(arguments);
    }
    text
}

/// A command that a text wants to have run before it is read: `` !`command` `` at the start of a line or after a
/// blank.
#[must_use]
pub fn embedded_command(body: &str) -> Option<&str> {
    body.match_indices("!`").find_map(|(at, mark)| {
        let stands_alone = body[..at].chars().next_back().is_none_or(char::is_whitespace);
        let command = &body[at + mark.len()..];
        let end = command.find(['`', '\n']).filter(|end| command[*end..].starts_with('`'))?;
        (stands_alone && end > 0).then(|| &command[..end])
    })
}

enum Place {
    /// All arguments.
    All,
    /// One of them, counted from 0.
    Number(usize),
}

/// The placeholder at the start of `text`, and its length.
fn placeholder(text: &str, base: usize, names: &[String]) -> Option<(Place, usize)> {
    let after = text.strip_prefix('$')?;
    if let Some(rest) = after.strip_prefix("ARGUMENTS") {
        let indexed = rest.strip_prefix('[').and_then(|rest| rest.split_once(']'));
        if let Some((number, _)) = indexed.filter(|(number, _)| number.len() < 4)
            && let Ok(at) = number.parse()
        {
            return Some((Place::Number(at), "$ARGUMENTS[]".len() + number.len()));
        }
        return is_end(rest).then_some((Place::All, "$ARGUMENTS".len()));
    }
    let mut chars = after.chars();
    if let Some(digit) = chars.next().and_then(|char| char.to_digit(10)) {
        let at = usize::try_from(digit).ok()?.checked_sub(base)?;
        // A sum of money is no argument.
        let is_single = chars.next().is_none_or(|next| !next.is_ascii_digit());
        return is_single.then_some((Place::Number(at), 2));
    }
    let found = names.iter().position(|name| after.strip_prefix(name.as_str()).is_some_and(is_end))?;
    Some((Place::Number(found), 1 + names[found].len()))
}

fn is_end(rest: &str) -> bool {
    rest.chars().next().is_none_or(|next| !next.is_alphanumeric() && next != '_')
}

/// The words of the arguments; quotes keep blanks in one.
fn split(arguments: &str) -> Vec<String> {
    let (mut words, mut word, mut quote) = (Vec::new(), None::<String>, None);
    for char in arguments.chars() {
        match (quote, char) {
            (Some(open), _) if char == open => quote = None,
            (None, '"' | '\'') => {
                quote = Some(char);
                word.get_or_insert_default();
            }
            (None, _) if char.is_whitespace() => words.extend(word.take()),
            _ => word.get_or_insert_default().push(char),
        }
    }
    words.extend(word);
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_go_where_the_text_has_a_place_for_them() {
        let names = ["issue".to_owned(), "level".to_owned()];
        for (body, base, expected) in [
            ("Fix $ARGUMENTS now", 1, "Fix 12 'very high' now"),
            ("Fix $1 at $2, $3.", 1, "Fix 12 at very high, ."),
            ("Fix $0 at $1", 0, "Fix 12 at very high"),
            ("Fix $ARGUMENTS[1] first", 1, "Fix very high first"),
            ("Fix $issue at $level; $levels", 1, "Fix 12 at very high; $levels"),
            ("It costs \\$1 or $100 for $1", 1, "It costs $1 or $100 for 12"),
            ("No place", 1, "No place\n\nARGUMENTS: 12 'very high'"),
            ("$HOME and $0 stay", 1, "$HOME and $0 stay\n\nARGUMENTS: 12 'very high'"),
        ] {
            assert_eq!(fill(body, " 12 'very high' ", base, &names), expected, "{body}");
        }
        assert_eq!(fill("No place", "", 1, &[]), "No place");
        assert_eq!(fill("$1", "'$2 \\$' x", 1, &[]), "$2 \\$", "arguments are not read again");
    }

    #[test]
    fn only_what_would_run_counts_as_a_command() {
        assert_eq!(embedded_command("Status: !`git status`"), Some("git status"));
        assert_eq!(embedded_command("!`ls`"), Some("ls"));
        for text in ["use `cmd!` here", "wow!`code`", "!`open\n`", "!``"] {
            assert_eq!(embedded_command(text), None, "{text}");
        }
    }
}
