//! The payloads of records in a journal: each is written once, and by its hash in every later record.
//!
//! Rule: a record that was read has the payloads it had when it was written, or says that a damaged line has cost them.
//! A journal that has payloads in every record stays readable.

use std::collections::{HashMap, HashSet};

use sha2::{Digest, Sha256};

use crate::JournalEntry;

/// The text before the hash, in the place of the payload. No base64 has a colon.
const REFERENCE: &str = "sha256:";

/// Replaces every `known` payload by its hash. Returns the hashes of the others.
pub(super) fn refer<E: JournalEntry>(record: &mut E, known: impl FnOnce() -> HashSet<String>) -> Vec<String> {
    let payloads = record.payloads();
    if payloads.is_empty() {
        return Vec::new();
    }
    let (known, mut new) = (known(), Vec::new());
    for payload in payloads {
        let reference = reference(payload);
        if known.contains(&reference) {
            *payload = reference;
        } else {
            new.push(reference);
        }
    }
    new
}

/// Replaces every hash by its payload. `seen` has the line of each payload of earlier records, `at` is the line of this
/// record, and `again` reads an earlier record again: payloads are too large to be kept.
pub(super) fn restore<E: JournalEntry>(
    record: &mut E,
    at: u64,
    seen: &mut HashMap<String, u64>,
    again: impl Fn(u64) -> Option<E>,
) {
    let mut lost = false;
    for payload in record.payloads() {
        if !is_reference(payload) {
            seen.entry(reference(payload)).or_insert(at);
            continue;
        }
        let known = seen.get(payload.as_str()).and_then(|at| again(*at));
        match known.and_then(|mut known| whole(&mut known, payload)) {
            Some(data) => *payload = data,
            None => lost = true,
        }
    }
    if lost {
        record.replace_lost(&is_reference);
    }
}

/// The payload with this hash in a record that has it whole.
fn whole(record: &mut impl JournalEntry, wanted: &str) -> Option<String> {
    let mut whole = record.payloads().into_iter().filter(|payload| !is_reference(payload));
    whole.find(|payload| reference(payload) == wanted).map(std::mem::take)
}

fn reference(payload: &str) -> String {
    let hash: String = Sha256::digest(payload).iter().map(|byte| format!("{byte:02x}")).collect();
    format!("{REFERENCE}{hash}")
}

fn is_reference(payload: &str) -> bool {
    payload.starts_with(REFERENCE)
}
