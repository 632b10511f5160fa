//! The face of the agent towards the user: what follows a session is handed its events to show.
//!
//! Rule: the agent starts and ends views and knows no more of them; drawing is the front end's alone.

use std::sync::Arc;

use async_trait::async_trait;
use kode_engine::agent::engine::AttachedSession;
use kode_engine::record::event::Event;

/// Shows sessions and settings to the user of one client.
pub(crate) trait FrontEnd: Send + Sync {
    /// Starts to show a session. The follower of the session passes the events.
    fn view(self: Arc<Self>, attached: &AttachedSession) -> Box<dyn SessionView>;

    /// Settings files, or what they ask for, have changed.
    fn settings_changed(self: Arc<Self>);
}

/// One session as the user sees it.
#[async_trait]
pub(crate) trait SessionView: Send {
    /// Shows one event.
    async fn show(&mut self, event: &Event);

    /// Shows the present state after a gap in the events.
    async fn catch_up(&mut self);

    /// Removes the display of a session that has ended.
    fn close(&self);
}
