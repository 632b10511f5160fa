//! The cost of commands, documents, the ledger of changes, comparisons, searches and permission rules, measured without the
//! wire around them.
//!
//! Rule: only the public interfaces of the two crates are driven, the way a session drives them. Nothing here passes or
//! fails.
//!
//! Run it with `cargo bench -p kode-ls --bench inside`; `-- commands`, `-- typing`, `-- review`, `-- diff`,
//! `-- search` or `-- rules` runs a part.

#![allow(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a benchmark that cannot measure ends by panicking"
)]

#[cfg(target_os = "linux")]
mod commands;
mod diff;
#[allow(unreachable_pub, reason = "the benchmarks of the program share it, and there it is public")]
#[path = "../../../tests/src/measure.rs"]
mod measure;
mod review;
mod rules;
mod search;
mod typing;

fn main() {
    let wanted: Vec<String> =
        std::env::args().skip(1).filter(|argument| !argument.starts_with('-')).collect();
    let parts: &[(&str, fn())] = &[
        #[cfg(target_os = "linux")]
        ("commands", commands::run),
        ("typing", typing::run),
        ("review", review::run),
        ("diff", diff::run),
        ("search", search::run),
        ("rules", rules::run),
    ];
    for (name, run) in parts {
        if wanted.is_empty() || wanted.iter().any(|wanted| wanted == name) {
            run();
        }
    }
}
