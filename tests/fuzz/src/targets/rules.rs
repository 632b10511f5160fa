//! Permission rules as users write them.
//!
//! Rule: a rule that is read and written down again is the same rule.
#![no_main]

use kode_engine::permission::rules::Rule;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    if let Ok((rule, _)) = Rule::parse(text) {
        let written = rule.to_string();
        let (again, _) =
            Rule::parse(&written).unwrap_or_else(|error| panic!("{text:?} -> {written:?}: {error}"));
        assert_eq!(again, rule, "{text:?} -> {written:?}");
    }
});
