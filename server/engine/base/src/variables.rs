//! Variables of the environment in the files users bring: `${NAME}` and `${NAME:-default}`.
//!
//! Rule: nothing else is replaced. A variable that is not set and has no default stays as it is written and is named,
//! so that nothing is ever sent or started with an empty text in its place.

/// A text with variables put in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExpandedText {
    /// The text.
    pub text: String,
    /// The variables that are not set and have no default, in their order; each is in the text as it was written.
    pub missing: Vec<String>,
}

impl ExpandedText {
    /// The text, if nothing is missing.
    ///
    /// # Errors
    /// The name of the first variable that is not set.
    pub fn complete(self) -> Result<String, String> {
        match self.missing.into_iter().next() {
            None => Ok(self.text),
            Some(name) => Err(name),
        }
    }
}

/// Puts variables into a text. An empty variable counts as not set.
#[must_use]
pub fn expand(text: &str, variable: &dyn Fn(&str) -> Option<String>) -> ExpandedText {
    let mut expanded = String::with_capacity(text.len());
    let mut missing = Vec::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("${") {
        expanded.push_str(before);
        let Some((inside, following)) = after.split_once('}') else {
            expanded.push_str("${");
            rest = after;
            break;
        };
        let (name, default) = match inside.split_once(":-") {
            Some((name, default)) => (name, Some(default)),
            None => (inside, None),
        };
        let value =
            Some(name).filter(|name| is_name(name)).and_then(variable).filter(|value| !value.is_empty());
        match (value, default) {
            (Some(value), _) => expanded.push_str(&value),
            (None, Some(default)) if is_name(name) => expanded.push_str(default),
            (None, _) => {
                if is_name(name) {
                    missing.push(name.to_owned());
                }
                expanded.push_str("${");
                expanded.push_str(inside);
                expanded.push('}');
            }
        }
        rest = following;
    }
    expanded.push_str(rest);
    ExpandedText { text: expanded, missing }
}

fn is_name(name: &str) -> bool {
    let mut chars = name.chars();
    chars.next().is_some_and(|first| first.is_ascii_alphabetic() || first == '_')
        && chars.all(|char| char.is_ascii_alphanumeric() || char == '_')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_and_defaults_are_put_in_and_what_is_missing_stays() {
        let variable = |name: &str| match name {
            "HOST" => Some("h.example".to_owned()),
            "EMPTY" => Some(String::new()),
            _ => None,
        };
        for (text, expected, missing) in [
            ("https://${HOST}/v1", "https://h.example/v1", &[][..]),
            ("${HOST}${HOST}", "h.exampleh.example", &[]),
            ("${NOT_SET:-a:-b}", "a:-b", &[]),
            ("${EMPTY:-x}", "x", &[]),
            ("${HOST:-x}", "h.example", &[]),
            ("${NOT_SET:-}", "", &[]),
            ("$HOST {HOST} $", "$HOST {HOST} $", &[]),
            ("${1x} ${} ${a b} ${a b:-c}", "${1x} ${} ${a b} ${a b:-c}", &[]),
            ("open ${HOST", "open ${HOST", &[]),
            ("a ${NOT_SET} ${EMPTY}", "a ${NOT_SET} ${EMPTY}", &["NOT_SET", "EMPTY"]),
        ] {
            let found = expand(text, &variable);
            assert_eq!(
                (found.text.as_str(), &found.missing[..]),
                (expected, missing.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>().as_slice()),
                "{text}"
            );
        }
        assert_eq!(expand("${NOT_SET}", &variable).complete(), Err("NOT_SET".to_owned()));
    }
}
