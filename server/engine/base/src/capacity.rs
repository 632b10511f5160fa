//! Values that are kept for long, without room for more.
//!
//! Rule: a value is equal to what it was made of. The parser of JSON reserves room for three or seven entries in each small
//! object, of 104 bytes each, and a growing list doubles; a session keeps thousands of both.

use std::sync::Arc;

use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value};

/// A growing list reserves this part of its length.
const GROWTH: usize = 8;

/// The same value, each of its objects, lists and texts as large as its content.
#[must_use]
pub fn exact(value: Value) -> Value {
    match value {
        Value::Object(entries) => {
            let mut object = Map::with_capacity(entries.len());
            for (mut key, entry) in entries {
                key.shrink_to_fit();
                object.insert(key, exact(entry));
            }
            Value::Object(object)
        }
        Value::Array(entries) => {
            let mut list: Vec<_> = entries.into_iter().map(exact).collect();
            list.shrink_to_fit();
            Value::Array(list)
        }
        Value::String(mut text) => {
            text.shrink_to_fit();
            Value::String(text)
        }
        other @ (Value::Null | Value::Bool(_) | Value::Number(_)) => other,
    }
}

/// Adds to the end of a list that is kept, which has at most an eighth of its length as room for more.
pub fn push<T>(list: &mut Vec<T>, entry: T) {
    if list.len() == list.capacity() {
        list.reserve_exact(list.len() / GROWTH + 1);
    }
    list.push(entry);
}

/// Reads a value that is kept.
///
/// # Errors
/// When it is no JSON value.
pub fn read<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Value, D::Error> {
    Value::deserialize(deserializer).map(exact)
}

/// As [`read`], for one that is shared.
///
/// # Errors
/// As [`read`].
pub fn read_shared<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Arc<Value>, D::Error> {
    read(deserializer).map(Arc::new)
}

/// As [`read`], for one that may be absent.
///
/// # Errors
/// As [`read`].
pub fn read_option<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Value>, D::Error> {
    Ok(Option::deserialize(deserializer)?.map(exact))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_value_keeps_its_content_and_the_order_of_its_keys() {
        let long = json!({ "z": 1, "a": [{ "y": "text", "b": null }, [], {}], "m": { "k": 1.5 }, "n": true });
        assert_eq!(exact(long.clone()).to_string(), long.to_string());
    }

    #[test]
    fn texts_and_lists_have_no_room_for_more() {
        let mut text = String::with_capacity(1_000);
        text.push_str("some");
        let mut list = Vec::with_capacity(1_000);
        list.push(Value::String(text));
        let Value::Array(list) = exact(Value::Array(list)) else { panic!("a list stays a list") };
        assert_eq!(list.capacity(), 1);
        let [Value::String(text)] = list.as_slice() else { panic!("its entry stays a text") };
        assert_eq!(text.capacity(), 4);
    }

    #[test]
    fn a_list_that_is_kept_grows_by_an_eighth() {
        let mut list = Vec::new();
        for entry in 0..10_000_usize {
            push(&mut list, entry);
            assert!(list.capacity() <= list.len() + list.len() / GROWTH + 1, "{}", list.len());
        }
        assert!(list.iter().copied().eq(0..10_000));
    }

    #[test]
    fn an_absent_value_stays_absent() {
        #[derive(Debug, PartialEq, Deserialize)]
        struct Held {
            #[serde(default, deserialize_with = "read_option")]
            data: Option<Value>,
        }
        let read = |text: &str| serde_json::from_str::<Held>(text).unwrap().data;
        assert_eq!(read("{}"), None);
        assert_eq!(read(r#"{"data":null}"#), None);
        assert_eq!(read(r#"{"data":{"a":1}}"#), Some(json!({ "a": 1 })));
    }
}
