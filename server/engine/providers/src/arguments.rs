//! The arguments of a call, read from the text a model wrote.
//!
//! Rule: valid JSON objects come out as they are. A repair only adds or takes off marks at places where nothing else
//! can be meant, and never a key or a value; what stays unclear is distinguished from arguments, with the reason.

use serde_json::{Map, Value, json};

use kode_model::StopReason;

/// How often arguments may be wrapped in JSON strings.
const MAX_WRAPS: usize = 2;

/// Whether an answer that stopped so said all it wanted: only then may an end that is missing be added.
pub(super) fn may_close(stop: &StopReason) -> bool {
    match stop {
        StopReason::EndTurn | StopReason::ToolUse => true,
        StopReason::MaxTokens
        | StopReason::StopSequence
        | StopReason::Refusal
        | StopReason::PauseTurn
        | StopReason::Other(_) => false,
    }
}

/// The input of a call, and why its arguments cannot be read if they cannot; in that case the input keeps them as they
/// were.
pub(super) fn input(raw: String, may_close: bool) -> (Value, Option<String>) {
    match read(&raw, may_close) {
        Ok(object) => (Value::Object(object), None),
        Err(reason) => (json!({ "invalid_arguments": raw }), Some(reason)),
    }
}

/// The object that the text of arguments means; empty text is an empty object. `may_close` says whether an end that is
/// missing may be added.
///
/// # Errors
/// Why it means none, as a sentence.
pub(super) fn read(raw: &str, may_close: bool) -> Result<Map<String, Value>, String> {
    if raw.trim().is_empty() {
        return Ok(Map::new());
    }
    let mut parsed = parse(raw, may_close);
    for _ in 0..MAX_WRAPS {
        match parsed {
            // A single text that is no JSON again is reported as what it is.
            Ok(Value::String(inner)) => match parse(&inner, may_close) {
                Ok(unwrapped) => parsed = Ok(unwrapped),
                Err(_) => return Err(SINGLE.to_owned()),
            },
            other => {
                parsed = other;
                break;
            }
        }
    }
    match parsed {
        Ok(Value::Object(object)) => Ok(object),
        Ok(Value::Array(_)) => Err("The arguments are a JSON array, not an object.".to_owned()),
        Ok(Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_)) => Err(SINGLE.to_owned()),
        Err(error) => Err(format!("The arguments are not valid JSON: {error}.")),
    }
}

const SINGLE: &str = "The arguments are a single JSON value, not an object.";

/// The value of a text: as it is, or else repaired. The error is that of the text as it is.
fn parse(text: &str, may_close: bool) -> Result<Value, serde_json::Error> {
    let error = match serde_json::from_str(text) {
        Ok(value) => return Ok(value),
        Err(error) => error,
    };
    let bare = without_fence(text);
    let repaired = mended(bare, may_close).and_then(|text| serde_json::from_str(&text).ok());
    match repaired.or_else(|| with_double_quotes(bare)) {
        // Only objects are worth a guess.
        Some(value @ Value::Object(_)) => {
            tracing::debug!(%error, "arguments of a call were repaired");
            Ok(value)
        }
        Some(_) | None => Err(error),
    }
}

/// The text inside a code fence, or the text itself.
fn without_fence(text: &str) -> &str {
    let text = text.trim();
    let inner = text.strip_prefix("```").and_then(|rest| rest.strip_suffix("```"));
    let inner = inner.and_then(|inner| {
        let (language, body) = inner.split_once('\n')?;
        language.trim().chars().all(char::is_alphanumeric).then_some(body)
    });
    inner.map_or(text, str::trim)
}

/// The text with line breaks and the like inside strings escaped, commas before closing brackets taken off, and, if
/// allowed, brackets that are open at its end closed. None where that cannot make it whole.
fn mended(text: &str, may_close: bool) -> Option<String> {
    let mut mended = String::with_capacity(text.len() + 8);
    let mut open = Vec::new();
    let mut in_string = false;
    let mut escaped = false;
    // A comma is written when it is known what follows it.
    let mut comma = false;
    for char in text.chars() {
        if in_string {
            match char {
                _ if escaped => escaped = false,
                '\\' => escaped = true,
                '"' => in_string = false,
                _ => {}
            }
            match char {
                '\n' => mended.push_str("\\n"),
                '\r' => mended.push_str("\\r"),
                '\t' => mended.push_str("\\t"),
                control if control.is_ascii_control() && control != '\x7f' => {
                    mended.push_str(&format!("\\u{:04x}", u32::from(control)));
                }
                other => mended.push(other),
            }
            continue;
        }
        if char.is_whitespace() {
            mended.push(char);
            continue;
        }
        let closes = matches!(char, '}' | ']');
        if std::mem::take(&mut comma) && !closes {
            mended.push(',');
        }
        match char {
            ',' => {
                comma = true;
                continue;
            }
            '"' => in_string = true,
            '{' => open.push('}'),
            '[' => open.push(']'),
            '}' | ']' if open.pop() != Some(char) => return None,
            _ => {}
        }
        mended.push(char);
    }
    if in_string || !open.is_empty() {
        // A text or a number at the end may have been longer, and half a path is another path; after a comma something
        // was to come.
        let may_proceed =
            in_string || comma || mended.trim_end().ends_with(|last: char| last.is_ascii_digit());
        if !may_close || may_proceed {
            return None;
        }
        mended.extend(open.into_iter().rev());
    }
    Some(mended)
}

/// The value of a text in single quotes, where it has no other quotes and no escapes.
fn with_double_quotes(text: &str) -> Option<Value> {
    if text.contains(['"', '\\']) {
        return None;
    }
    serde_json::from_str(&text.replace('\'', "\"")).ok()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn whole(raw: &str) -> Result<Value, String> {
        read(raw, true).map(Value::Object)
    }

    #[test]
    fn clear_faults_are_repaired() {
        for (raw, expected) in [
            ("", json!({})),
            (" \n", json!({})),
            ("{}", json!({})),
            (r#"{"a": 1,}"#, json!({"a": 1})),
            (r#"{"a": [1, 2 , ] , }"#, json!({"a": [1, 2]})),
            (r#"{"a": {"b": [1, {"c": "d""#, json!({"a": {"b": [1, {"c": "d"}]}})),
            (r#"{"a": true"#, json!({"a": true})),
            (r#"{"a": "}]""#, json!({"a": "}]"})),
            (r#""{\"a\": 1}""#, json!({"a": 1})),
            (r#""\"{\\\"a\\\": 1}\"""#, json!({"a": 1})),
            ("```json\n{\"a\": 1}\n```", json!({"a": 1})),
            ("```\n{\"a\": 1,}\n```\n", json!({"a": 1})),
            ("{\"a\": \"x\ny\t\u{1}\"}", json!({"a": "x\ny\t\u{1}"})),
            ("{'a': 'b', 'c': [1]}", json!({"a": "b", "c": [1]})),
        ] {
            assert_eq!(whole(raw), Ok(expected), "{raw}");
        }
    }

    #[test]
    fn what_could_mean_several_things_is_not_repaired() {
        for raw in [
            r#"{"a":"#,
            r#"{"a"#,
            r#"{"a": tr"#,
            r#"{"a": 1.}"#,
            r#"{"a": 1"#,
            r#"{"a": "b"#,
            r#"{"a": true, "#,
            r#"{"a": "\"#,
            r#"{"a": "\u00"#,
            r#"{"a": 1,, "b": 2}"#,
            r#"{"a": 1 "b": 2}"#,
            r#"{"a": 1]}"#,
            r#"{"a": "\d"}"#,
            r#"{"a": 1}}"#,
            r#"{} {"a": 1}"#,
            "{'a': 'don't'}",
            "{'a': \"b\"}",
            "{a: 1}",
            "see file /a",
        ] {
            let reason = whole(raw).unwrap_err();
            assert!(reason.contains("not valid JSON"), "{raw}: {reason}");
        }
        for (raw, words) in [("[1]", "array"), ("7", "single"), ("null", "single"), (r#""text""#, "single")] {
            assert!(whole(raw).unwrap_err().contains(words), "{raw}");
        }
    }

    #[test]
    fn an_answer_that_was_cut_is_not_closed() {
        for raw in [r#"{"a": true"#, r#"{"a": "b""#, r#"{"a": [1]"#] {
            assert!(read(raw, true).is_ok(), "{raw}");
            assert!(read(raw, false).is_err(), "{raw}");
        }
        assert_eq!(read(r#"{"a": 1,}"#, false).map(|object| object.len()), Ok(1));
        assert!(may_close(&StopReason::ToolUse) && !may_close(&StopReason::MaxTokens));
    }

    #[test]
    fn arguments_that_cannot_be_read_are_kept() {
        let (input, error) = input("{\"a\": ".to_owned(), true);
        assert_eq!(input, json!({"invalid_arguments": "{\"a\": "}));
        assert!(error.unwrap().contains("line 1 column 6"));
    }

    /// Whether `part` says nothing that `all` does not: the same keys and values, as far as they go.
    fn is_beginning(part: &Value, all: &Value) -> bool {
        match (part, all) {
            (Value::Object(part), Value::Object(all)) => {
                let found = |(key, value): (&String, &Value)| {
                    all.get(key).is_some_and(|whole| is_beginning(value, whole))
                };
                part.iter().all(found)
            }
            (Value::Array(part), Value::Array(all)) => {
                part.len() <= all.len() && part.iter().zip(all).all(|(part, all)| is_beginning(part, all))
            }
            (part, all) => part == all,
        }
    }

    fn object() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i32>().prop_map(Value::from),
            "[a-z{}\\[\\],:'\"\\\\\n☃ ]{0,8}".prop_map(Value::from),
        ];
        let value = leaf.prop_recursive(3, 24, 4, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                prop::collection::btree_map("[a-c'\"☃]{0,3}", inner, 0..4)
                    .prop_map(|map| Value::Object(map.into_iter().collect())),
            ]
        });
        prop::collection::btree_map("[a-c'\"☃]{0,3}", value, 0..4)
            .prop_map(|map| Value::Object(map.into_iter().collect()))
    }

    proptest! {
        #[test]
        fn valid_objects_come_out_unchanged(value in object(), closing in any::<bool>()) {
            let texts = [value.to_string(), serde_json::to_string_pretty(&value).unwrap()];
            for text in texts {
                prop_assert_eq!(read(&text, closing).map(Value::Object), Ok(value.clone()));
            }
        }

        #[test]
        fn a_beginning_never_says_more_than_the_whole(value in object(), cut in any::<prop::sample::Index>()) {
            let text = value.to_string();
            let ends: Vec<usize> = text.char_indices().map(|(at, _)| at).filter(|at| *at > 0).collect();
            let beginning = &text[..ends[cut.index(ends.len())]];
            prop_assert!(read(beginning, false).is_err(), "{} is not whole", beginning);
            if let Ok(repaired) = read(beginning, true) {
                prop_assert!(is_beginning(&Value::Object(repaired), &value), "{}", beginning);
            }
        }

        #[test]
        fn any_text_is_survived(text in "[{}\\[\\],:'\"\\\\`a1 \n]{0,24}", closing in any::<bool>()) {
            let _ = read(&text, closing);
        }
    }
}
