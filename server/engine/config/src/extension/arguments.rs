//! Arguments in the text of a skill or command: `$ARGUMENTS`, `$1`, names, and literal text.
//!
//! Rule: arguments are put in once and never read again for placeholders; other text stays unchanged.

/// Puts arguments and variables into the parts of one text, in their order.
pub struct Filler<'a> {
    arguments: &'a str,
    words: Vec<String>,
    base: usize,
    names: &'a [String],
    variables: &'a dyn Fn(&str) -> Option<String>,
    has_place: bool,
}

impl<'a> Filler<'a> {
    /// For these arguments, of which the first has the number `base`; `variables` says what `${NAME}` represents.
    #[must_use]
    pub fn new(
        arguments: &'a str,
        base: usize,
        names: &'a [String],
        variables: &'a dyn Fn(&str) -> Option<String>,
    ) -> Self {
        let arguments = arguments.trim();
        Self { arguments, words: split(arguments), base, names, variables, has_place: false }
    }

    /// A part of the text with its placeholders filled.
    pub fn part(&mut self, part: &str) -> String {
        let (mut text, mut rest) = (String::with_capacity(part.len()), part);
        while let Some(at) = rest.find(['$', '\\']) {
            text.push_str(&rest[..at]);
            rest = &rest[at..];
            if let Some(literal) = rest.strip_prefix("\\$") {
                text.push('$');
                rest = literal;
                continue;
            }
            if let Some((value, length)) = variable(rest, self.variables) {
                text.push_str(&value);
                rest = &rest[length..];
                continue;
            }
            match placeholder(rest, self.base, self.names) {
                Some((Placeholder::All, length)) => {
                    text.push_str(self.arguments);
                    (rest, self.has_place) = (&rest[length..], true);
                }
                Some((Placeholder::Number(number), length)) => {
                    text.push_str(self.words.get(number).map(String::as_str).unwrap_or_default());
                    (rest, self.has_place) = (&rest[length..], true);
                }
                None => {
                    text.push_str(&rest[..1]);
                    rest = &rest[1..];
                }
            }
        }
        text.push_str(rest);
        text
    }

    /// The text to add at the end of the whole text: arguments for which no part of it had a place.
    #[must_use]
    pub fn rest(&self) -> Option<String> {
        let is_lost = !self.has_place && !self.arguments.is_empty();
        is_lost.then(|| format!("\n\nARGUMENTS: {}", self.arguments))
    }
}

/// The value of the variable at the start of `text`, and the length of its name there.
fn variable(text: &str, variables: &dyn Fn(&str) -> Option<String>) -> Option<(String, usize)> {
    let (name, _) = text.strip_prefix("${")?.split_once('}')?;
    Some((variables(name)?, "${}".len() + name.len()))
}

enum Placeholder {
    /// All arguments.
    All,
    /// One of them, counted from 0.
    Number(usize),
}

/// The placeholder at the start of `text`, and its length.
fn placeholder(text: &str, base: usize, names: &[String]) -> Option<(Placeholder, usize)> {
    let after = text.strip_prefix('$')?;
    if let Some(rest) = after.strip_prefix("ARGUMENTS") {
        let indexed = rest.strip_prefix('[').and_then(|rest| rest.split_once(']'));
        if let Some((number, _)) = indexed.filter(|(number, _)| number.len() < 4)
            && let Ok(at) = number.parse()
        {
            return Some((Placeholder::Number(at), "$ARGUMENTS[]".len() + number.len()));
        }
        return is_end(rest).then_some((Placeholder::All, "$ARGUMENTS".len()));
    }
    let mut chars = after.chars();
    if let Some(digit) = chars.next().and_then(|char| char.to_digit(10)) {
        let at = usize::try_from(digit).ok()?.checked_sub(base)?;
        // A sum of money is no argument.
        let is_single = chars.next().is_none_or(|next| !next.is_ascii_digit());
        return is_single.then_some((Placeholder::Number(at), 2));
    }
    let found = names.iter().position(|name| after.strip_prefix(name.as_str()).is_some_and(is_end))?;
    Some((Placeholder::Number(found), 1 + names[found].len()))
}

fn is_end(rest: &str) -> bool {
    rest.chars().next().is_none_or(|next| !next.is_alphanumeric() && next != '_')
}

/// The words of the arguments; quotes keep blanks in one.
pub fn split(arguments: &str) -> Vec<String> {
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

    fn fill(body: &str, arguments: &str, base: usize, names: &[String]) -> String {
        let mut filler = Filler::new(arguments, base, names, &|_| None);
        filler.part(body) + &filler.rest().unwrap_or_default()
    }

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
    fn variables_are_filled_and_never_read_again() {
        let variables = |name: &str| (name == "CLAUDE_SKILL_DIR").then(|| "/a/$1".to_owned());
        let mut filler = Filler::new("x", 1, &[], &variables);
        assert_eq!(filler.part("${CLAUDE_SKILL_DIR} ${OTHER} ${ $1"), "/a/$1 ${OTHER} ${ x");
        assert_eq!(filler.rest(), None);
    }
}
