//! Heads of Markdown files as users write them, for skills and commands.
//!
//! Rule: the head and the body are parts of the text and leave nothing out but the lines around the head; reading a head
//! ends, with notes or with one reason.

use kode_engine::config::extension::front_matter::{notes, split};

use crate::input::Input;

pub(crate) fn run(bytes: &[u8]) {
    let text = Input::new(bytes).text();
    let (head, body) = split(&text);
    assert!(text.ends_with(body));
    match head {
        Some(head) => {
            assert!(head.len() + body.len() < text.len() && text.contains(head));
            if let Err(reason) = notes(head) {
                assert!(!reason.is_empty());
            }
        }
        None => assert_eq!(body, text),
    }
}
