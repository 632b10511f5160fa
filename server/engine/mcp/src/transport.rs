//! The ways messages go to servers and come back.
//!
//! Rule: a message is bounded in size on every way, and nothing of a message or a header is logged.

pub(super) mod any;
pub(super) mod http;
pub(super) mod sse;
pub(super) mod stdio;

/// The most bytes of one message of a server.
pub(crate) const MAX_MESSAGE_BYTES: usize = 16 << 20;
