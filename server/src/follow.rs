//! Sends the client what happens in a session.
//!
//! Rule: a client gets what it has said it understands: `agent/event` notifications, plain LSP messages, or both for
//! a plugin that leaves the prompts to us. A client that reads slowly holds up its own follower and nothing else.

use std::sync::Arc;

use kode_engine::event::{Event, EventRecord};
use kode_engine::session::Session;
use kode_protocol::AgentEvent;
use tokio::task::JoinHandle;

use crate::backend::Shared;
use crate::convert;
use crate::plain::PlainSurface;

/// A task that follows a session. Dropping it ends the following.
pub(crate) struct Follower(Option<JoinHandle<()>>);

impl Follower {
    /// Whether the session, and so the following, has ended.
    pub(crate) fn is_finished(&self) -> bool {
        self.0.as_ref().is_none_or(JoinHandle::is_finished)
    }

    /// Lets the following go on until the session has ended.
    pub(crate) fn follow_to_the_end(mut self) {
        self.0 = None;
    }
}

impl Drop for Follower {
    fn drop(&mut self) {
        if let Some(task) = &self.0 {
            task.abort();
        }
    }
}

/// Starts following a session after event number `since`; ends with the session.
pub(crate) fn start(shared: Arc<Shared>, session: Arc<Session>, since: u64) -> Follower {
    let mut events = session.events().subscribe(since, vec![]);
    let kode = shared.facts.get().map(|facts| facts.kode.clone()).unwrap_or_default();
    let mut plain = PlainSurface::new(Arc::clone(&shared), Arc::clone(&session), &kode);
    let id = session.id().clone();
    drop(session);
    Follower(Some(tokio::spawn(async move {
        loop {
            let batch = match events.next().await {
                Ok(Some(batch)) => batch,
                Ok(None) => break,
                Err(gap) => {
                    tracing::warn!(%gap, "the client reads too slowly");
                    if kode.events {
                        shared.client.send_notification::<AgentEvent>(convert::gap(&id, gap)).await;
                    }
                    plain.catch_up().await;
                    continue;
                }
            };
            for record in merge(batch) {
                plain.show(&record.event).await;
                if kode.events {
                    shared.client.send_notification::<AgentEvent>(convert::event(record)).await;
                }
            }
        }
        plain.close();
    })))
}

/// Joins neighboring pieces of one text that are read at once: for a client that lags behind they are one piece.
fn merge(batch: Vec<EventRecord>) -> Vec<EventRecord> {
    let mut merged: Vec<EventRecord> = Vec::with_capacity(batch.len());
    for record in batch {
        let last = merged.last_mut();
        match (last, &record.event) {
            (
                Some(EventRecord { bookmark, event: Event::TextChunk { item: last, text }, .. }),
                Event::TextChunk { item, text: more },
            )
            | (
                Some(EventRecord { bookmark, event: Event::ThinkChunk { item: last, text }, .. }),
                Event::ThinkChunk { item, text: more },
            ) if last == item => {
                text.push_str(more);
                *bookmark = record.bookmark;
            }
            _ => merged.push(record),
        }
    }
    merged
}

#[cfg(test)]
mod tests {
    use kode_engine::event::EventLog;
    use kode_engine::ids::{ItemId, SessionId, TurnId};

    use super::*;

    #[test]
    fn neighboring_pieces_of_one_text_become_one_and_others_stay() {
        let log = EventLog::new(SessionId::generate(), 0);
        let mut reader = log.subscribe(0, vec![]);
        let (one, two) = (ItemId::generate(), ItemId::generate());
        let chunk = |item: &ItemId, text: &str| Event::TextChunk { item: item.clone(), text: text.into() };
        for event in [
            chunk(&one, "a"),
            chunk(&one, "b"),
            Event::TurnStarted { turn: TurnId::generate() },
            chunk(&one, "c"),
            chunk(&two, "d"),
            Event::ThinkChunk { item: two.clone(), text: "e".into() },
        ] {
            log.publish(event);
        }
        let merged = merge(reader.ready().unwrap());
        let seqs: Vec<_> = merged.iter().map(|record| record.bookmark.seq).collect();
        assert_eq!(seqs, [2, 3, 4, 5, 6]);
        assert_eq!(merged[0].event, chunk(&one, "ab"));
    }
}
