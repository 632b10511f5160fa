//! Sealed data of servers that speak Chat Completions: Google's signatures of calls, OpenRouter's reasoning details.
//!
//! Rule: a seal names its server and what it covers, so it is checked without memory. A call of this server whose own
//! seal is missing is refused, which is stricter than the servers are.

use std::hash::{DefaultHasher, Hash, Hasher};

use serde_json::{Value, json};

use super::playback::ID_MARK;
use super::refusal::Refusal;

/// The signature that Google documents for calls which no Gemini model made.
const PLACEHOLDER: &str = "skip_thought_signature_validator";

/// Where a call has its signature.
const SIGNATURE: &str = "/extra_content/google/thought_signature";

/// The part of an id that names its server.
pub(super) fn id_part(server: u64) -> String {
    format!("_{server:x}")
}

/// The seal of a server on `covered`.
pub(super) fn seal(server: u64, covered: &str) -> String {
    let mut hasher = DefaultHasher::new();
    (server, covered).hash(&mut hasher);
    format!("seal_{server:x}_{:x}", hasher.finish())
}

/// The form of an answer's reasoning: shown text, or data that is not shown.
pub(super) enum Reasoning<'a> {
    Text(&'a str),
    Data(&'a str),
}

/// The reasoning of an answer as `reasoning_details`. `answer` is its number.
pub(super) fn details(server: u64, answer: usize, reasoning: &[Reasoning<'_>]) -> Vec<Value> {
    let detail = |(index, one): (usize, &Reasoning<'_>)| {
        let id = detail_id(server, answer, (index, reasoning.len()), one.text().len());
        match one {
            Reasoning::Text(text) => json!({
                "type": "reasoning.text", "text": text, "id": id, "format": "anthropic-claude-v1", "index": index,
                "signature": seal(server, &format!("{id}{text}")),
            }),
            Reasoning::Data(data) => json!({
                "type": "reasoning.encrypted", "data": data, "id": id, "format": "openai-responses-v1",
                "index": index,
            }),
        }
    };
    reasoning.iter().enumerate().map(detail).collect()
}

/// An id that tells server, answer, place, number and length of a detail.
fn detail_id(server: u64, answer: usize, (index, count): (usize, usize), length: usize) -> String {
    format!("rd{}_{answer}_{index}_{count}_{length}", id_part(server))
}

impl Reasoning<'_> {
    fn text(&self) -> &str {
        match self {
            Self::Text(text) | Self::Data(text) => text,
        }
    }
}

/// Refuses, as Google's servers do, a history in which an answer's first call has no signature, or a call has one that
/// this server did not give it.
///
/// # Errors
/// In the words of the API.
pub(super) fn check_signatures(messages: &[Value], server: u64) -> Result<(), Refusal> {
    for (position, message) in messages.iter().enumerate() {
        let calls = message["tool_calls"].as_array().map(Vec::as_slice).unwrap_or_default();
        for (index, call) in calls.iter().enumerate() {
            let id = call["id"].as_str().unwrap_or_default();
            let name = call["function"]["name"].as_str().unwrap_or_default();
            match call.pointer(SIGNATURE).and_then(Value::as_str) {
                None if index > 0 => {}
                None => {
                    return Err(Refusal::invalid(format!(
                        "Function call is missing a thought_signature in functionCall parts. This is required for tools to work correctly, and missing thought_signature may lead to degraded model performance. Additional data, function call `default_api:{name}` , position {position}."
                    )));
                }
                Some(PLACEHOLDER) if !id.contains(&id_part(server)) => {}
                Some(signature) if signature == seal(server, id) => {}
                Some(_) => {
                    return Err(Refusal::invalid(format!(
                        "Thought signature is not valid: call `{id}` of `{name}`, position {position}."
                    )));
                }
            }
        }
    }
    Ok(())
}

/// Refuses a history in which an answer of this server has lost a part of its reasoning details, or has them in another
/// order, or an answer of another server has any.
///
/// # Errors
/// Naming the message.
pub(super) fn check_details(messages: &[Value], server: u64) -> Result<(), Refusal> {
    for (position, message) in
        messages.iter().enumerate().filter(|(_, message)| message["role"] == "assistant")
    {
        let details = message["reasoning_details"].as_array().map(Vec::as_slice).unwrap_or_default();
        let wrong = |what: &str| {
            Err(Refusal::invalid(format!("messages.{position}: reasoning_details {what}"))
                .param("reasoning_details"))
        };
        let call = message.pointer("/tool_calls/0/id").and_then(Value::as_str).unwrap_or_default();
        if details.is_empty() && call.contains(&format!("{}{ID_MARK}", id_part(server))) {
            return wrong("of this call are missing");
        }
        for (index, detail) in details.iter().enumerate() {
            let id = detail["id"].as_str().unwrap_or_default();
            let (text, data) = (detail["text"].as_str(), detail["data"].as_str());
            let length = text.or(data).map_or(0, str::len);
            let place = format!("_{index}_{}_{length}", details.len());
            if !id.starts_with(&format!("rd{}_", id_part(server))) || !id.ends_with(&place) {
                return wrong("are not those of this server, or not in their order");
            }
            let covered = text.map(|text| seal(server, &format!("{id}{text}")));
            if covered.is_some_and(|seal| detail["signature"] != seal) {
                return wrong("were changed");
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const SERVER: u64 = 7;

    fn answer(calls: &[(&str, Option<&str>)]) -> Value {
        let call = |(id, signature): &(&str, Option<&str>)| {
            let mut call =
                json!({"id": id, "type": "function", "function": {"name": "Read", "arguments": "{}"}});
            if let Some(signature) = signature {
                call["extra_content"] = json!({"google": {"thought_signature": signature}});
            }
            call
        };
        json!({"role": "assistant", "tool_calls": calls.iter().map(call).collect::<Vec<_>>()})
    }

    #[test]
    fn signatures_are_checked_as_google_does() {
        let (own, good) = ("call_7_scripted_1", seal(SERVER, "call_7_scripted_1"));
        for (calls, refused) in [
            (vec![(own, Some(good.as_str()))], None),
            (vec![(own, Some(good.as_str())), ("call_7_scripted_2", None)], None),
            (vec![("foreign", Some(PLACEHOLDER))], None),
            (vec![("foreign", None)], Some("is missing a thought_signature")),
            (vec![(own, None)], Some("is missing a thought_signature")),
            (vec![(own, Some(PLACEHOLDER))], Some("not valid")),
            (vec![(own, Some("seal_7_0"))], Some("not valid")),
            (vec![("foreign", Some(good.as_str()))], Some("not valid")),
        ] {
            let checked = check_signatures(&[json!({"role": "user"}), answer(&calls)], SERVER);
            let message = checked.err().map(|refusal| refusal.message);
            let fits = message.as_deref().zip(refused).map(|(message, part)| message.contains(part));
            assert_eq!(message.is_some(), refused.is_some(), "{calls:?}: {message:?}");
            assert_ne!(fits, Some(false), "{calls:?}: {message:?}");
        }
    }

    #[test]
    fn details_come_back_whole_in_order_and_unchanged() {
        let whole = details(SERVER, 3, &[Reasoning::Text("I think."), Reasoning::Data("sealed")]);
        let check = |details: Vec<Value>, id: &str| {
            let mut message = answer(&[(id, None)]);
            message["reasoning_details"] = details.into();
            check_details(&[message], SERVER).is_ok()
        };
        let own = "call_7_scripted_1";
        assert!(check(whole.clone(), own));
        assert!(check(Vec::new(), "call_scripted_1"), "a call of another server owes nothing");
        assert!(!check(Vec::new(), own));
        assert!(!check(whole[..1].to_vec(), own), "a part is missing");
        assert!(!check(whole.iter().rev().cloned().collect(), own), "the order is another one");
        let mut changed = whole.clone();
        changed[0]["text"] = json!("I thunk.");
        assert!(!check(changed, own));
        assert!(!check(details(8, 3, &[Reasoning::Data("sealed")]), own), "of another server");
    }
}
