//! A line of a journal, and what its writer and its readers need to know of the record in it.
//!
//! Rule: fields of the line and of the record stand beside each other in one JSON object, so their names differ.

use std::fmt;

use jiff::Timestamp;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

/// Version of the line form, written on every line.
pub const VERSION: u32 = 1;

/// A record that a journal keeps, one a line.
pub trait JournalEntry: Clone + fmt::Debug + Serialize + DeserializeOwned + Send + 'static {
    /// Whether a later record repeats it, so that it goes first where there is no room for all.
    fn is_transient(&self) -> bool;

    /// Whether [`JournalEntry::payloads`] may name any: only then is it copied before it is written.
    fn may_have_payloads(&self) -> bool;

    /// The large texts in it that come again in other records. The journal writes each of them once.
    fn payloads(&mut self) -> Vec<&mut String>;

    /// Replaces the payloads that are lost because the line that had them is damaged.
    fn replace_lost(&mut self, is_lost: &dyn Fn(&str) -> bool);
}

/// A line of the journal.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct JournalLine<E> {
    /// Version of the line form.
    pub v: u32,
    /// The number of the newest event before those of the record: they have the numbers that follow. 0 in older journals.
    #[serde(default)]
    pub seq: u64,
    /// When the record was written.
    pub written: Timestamp,
    /// The record.
    #[serde(flatten)]
    pub record: E,
}
