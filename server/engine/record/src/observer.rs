//! A follower of all sessions of an engine.
//!
//! Rule: a follower reads the events of sessions and never holds one up.

use std::pin::Pin;
use std::sync::Arc;

use crate::event::EventLog;

/// The end of an observer's work.
pub type ObserverEnd = Pin<Box<dyn Future<Output = ()> + Send>>;

/// A follower of all sessions of an engine.
pub trait SessionObserver: Send + Sync {
    /// A session is live from now on; its events come to this log. Must not wait, and is called in a runtime.
    fn begin(&self, events: &Arc<EventLog>);

    /// All sessions have ended. Finishes the observer's own work, in a time that it bounds itself.
    fn end(&self) -> ObserverEnd;
}
