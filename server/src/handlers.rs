//! The handlers of the `agent/*` methods, one file for each group.
//!
//! Rule: a handler converts, calls, converts. It never waits for the editor, a model or a tool; what takes time is reported
//! by events.

/// A table of methods with their handlers. The scope of a table has an `answer`, which turns the outcome of any of them into that
/// of the table.
macro_rules! method_table {
    ($($name:literal => $handler:path,)*) => {
        &[$(($name, |source, params| Box::pin(async move { answer($handler(source, params).await) }))),*]
    };
}
pub(crate) use method_table;

pub mod ask;
pub mod catalogue;
pub mod checkpoint;
pub mod complete;
pub mod config;
pub mod context;
pub mod document;
pub mod draft;
pub mod edits;
pub mod focus;
pub mod mcp;
pub mod models;
pub mod params;
pub mod permission;
pub mod progress;
pub mod question;
pub mod queue;
pub mod session;
pub mod sessions;
pub mod source;
pub mod task;
pub mod tools;
pub mod transfer;
pub mod turn;
