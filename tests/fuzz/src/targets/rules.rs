//! Permission rules as users write them.
//!
//! Rule: a rule that is read and written down again is the same rule.

use kode_engine::permission::rules::Rule;

use crate::input::Input;

pub(crate) fn run(bytes: &[u8]) {
    let text = Input::new(bytes).text();
    if let Ok((rule, _)) = Rule::parse(&text) {
        let written = rule.to_string();
        let (again, _) =
            Rule::parse(&written).unwrap_or_else(|error| panic!("{text:?} -> {written:?}: {error}"));
        assert_eq!(again, rule, "{text:?} -> {written:?}");
    }
}
