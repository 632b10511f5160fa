//! Journals with any bytes in them.
//!
//! Rule: reading ends; read and skipped lines are complete; reading from the end line by line finds the same
//! last line.

use kode_engine::journal::{JournalLines, read};
use kode_engine::record::record::Record;

pub(crate) fn run(bytes: &[u8]) {
    let path = std::env::temp_dir().join(format!("kode-fuzz-{}.jsonl", std::process::id()));
    std::fs::write(&path, bytes).expect("a temporary file");
    let whole = read::<Record>(&path).expect("a regular file");
    let mut lines = JournalLines::<Record>::open(&path, 0).expect("a regular file");
    let counted = lines.by_ref().inspect(|line| assert!(line.is_ok(), "it is a regular file")).count();
    assert_eq!(counted, whole.records.len());
    assert!(lines.at() <= bytes.len() as u64);
}
