//! Pairs: a process of `kode-ls acp` works on the documents of the language server that the same editor runs.
//!
//! Rule: only a process of the same user and below the same editor is let in, and only with the token from a file that this user
//! alone can read. Whatever goes wrong ends the pair, and both sides continue alone.

mod join;
mod place;
mod serve;
mod wire;

pub(crate) use join::PairedEditor;
pub(crate) use serve::begin;
pub(crate) use wire::MAX_HUNK_FILES;
