//! Sends a client the events of a session.
//!
//! Rule: a client gets the forms that it announced: `agent/event` notifications, plain LSP messages, or both for a plugin
//! without prompts of its own. A client that reads slowly delays its own follower and nothing else.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use kode_engine::agent::engine::AttachedSession;
use kode_engine::base::ids::SessionId;
use kode_engine::base::task;
use kode_engine::record::event::{Channel, Event, EventLog, EventRecord};
use kode_protocol::AgentEvent;
use tokio::task::JoinHandle;

use super::front_end::SessionView;
use crate::connection::ClientConnection;
use crate::convert::{self, UriNames};

/// The events of a session that a client receives.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct EventFilter {
    /// The channels; all when empty.
    pub(crate) channels: Vec<Channel>,
    /// The types by their names on the wire; all when empty.
    pub(crate) kinds: Vec<String>,
}

/// A task that follows a session, until it is dropped.
pub(crate) struct SessionFollower {
    task: Option<JoinHandle<()>>,
    filter: EventFilter,
    /// The number of the newest event that was sent or filtered out.
    sent: Arc<AtomicU64>,
}

impl EventFilter {
    fn passes(&self, channel: Channel, event: &kode_protocol::Event) -> bool {
        let is_wanted = self.channels.is_empty() || self.channels.contains(&channel);
        is_wanted && (self.kinds.is_empty() || kind(event).is_some_and(|kind| self.kinds.contains(&kind)))
    }
}

impl SessionFollower {
    /// Whether the session has ended, and the task with it.
    pub(crate) fn is_finished(&self) -> bool {
        self.task.as_ref().is_none_or(JoinHandle::is_finished)
    }

    /// The filter of the events.
    pub(crate) fn filter(&self) -> &EventFilter {
        &self.filter
    }

    /// The number of the newest event that was sent.
    pub(crate) fn sent(&self) -> u64 {
        self.sent.load(Ordering::Relaxed)
    }

    /// Keeps the task running until the session has ended.
    pub(crate) fn follow_to_the_end(mut self) {
        self.task = None;
    }
}

impl Drop for SessionFollower {
    fn drop(&mut self) {
        if let Some(task) = &self.task {
            task.abort();
        }
    }
}

/// Starts to follow a session after event number `since`, until the session ends. `view` gets every event; a client that
/// receives `agent/event` gets those that pass the filter.
pub(super) fn start(
    connection: Arc<ClientConnection>,
    view: Box<dyn SessionView>,
    attached: &AttachedSession,
    since: u64,
    filter: EventFilter,
) -> SessionFollower {
    let (id, log) = match attached {
        AttachedSession::Live(session) => (session.id(), session.events()),
        AttachedSession::Following(following) => (following.id(), following.events()),
    };
    follow(connection, id.clone(), log, view, since, filter)
}

fn follow(
    connection: Arc<ClientConnection>,
    id: SessionId,
    log: &Arc<EventLog>,
    mut view: Box<dyn SessionView>,
    since: u64,
    filter: EventFilter,
) -> SessionFollower {
    let mut events = log.subscribe(since, vec![]);
    let sends = connection.facts.get().is_some_and(|facts| facts.kode.events);
    let (wanted, sent) = (filter.clone(), Arc::new(AtomicU64::new(since)));
    let newest = Arc::clone(&sent);
    let task = task::spawn(async move {
        loop {
            let batch = match events.next_paced().await {
                Ok(Some(batch)) => batch,
                Ok(None) => break,
                Err(gap) => {
                    tracing::warn!(%gap, "the client reads too slowly");
                    if sends {
                        connection.client.send_notification::<AgentEvent>(convert::gap(&id, gap)).await;
                    }
                    view.catch_up().await;
                    continue;
                }
            };
            for record in merge(batch) {
                view.show(&record.event).await;
                let (seq, channel) = (record.bookmark.seq, record.event.channel());
                if sends {
                    let event = convert::event(record, UriNames::of(&connection.documents));
                    if wanted.passes(channel, &event.event) {
                        connection.client.send_notification::<AgentEvent>(event).await;
                    }
                }
                newest.store(seq, Ordering::Relaxed);
            }
        }
        view.close();
    });
    SessionFollower { task: Some(task), filter, sent }
}

/// The name of an event's type on the wire.
fn kind(event: &kode_protocol::Event) -> Option<String> {
    let value = serde_json::to_value(event).ok()?;
    value.get("type").and_then(|kind| kind.as_str()).map(str::to_owned)
}

/// Joins neighboring pieces of one text that are read at once: a client that lags behind gets one piece.
pub(crate) fn merge(batch: Vec<EventRecord>) -> Vec<EventRecord> {
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
    use async_trait::async_trait;
    use kode_engine::base::ids::{ItemId, TurnId};
    use kode_engine::record::event::RunState;
    use kode_engine::record::event::log::{MEMORY_KEPT, MEMORY_LIMIT};
    use serde_json::{Value, json};

    use super::*;
    use crate::testing::TestClient;

    /// A view that shows nothing.
    struct NoView;

    #[async_trait]
    impl SessionView for NoView {
        async fn show(&mut self, _event: &Event) {}

        async fn catch_up(&mut self) {}

        fn close(&self) {}
    }

    async fn connected() -> (TestClient, Arc<ClientConnection>, Arc<EventLog>) {
        let (service, socket) = crate::server::service();
        let connection = Arc::clone(service.inner().connection());
        let mut client = TestClient::connect((service, socket), Arc::clone(&connection.lifecycle));
        let kode = json!({ "protocolVersion": kode_protocol::PROTOCOL_VERSION, "events": true });
        client.initialize(json!({ "experimental": { "kode": kode } })).await;
        (client, connection, EventLog::new(SessionId::generate(), 0))
    }

    async fn event(client: &mut TestClient) -> (u64, String) {
        let message = client.receive().await;
        let params: &Value = &message["params"];
        (
            params["bookmark"]["seq"].as_u64().unwrap_or(0),
            params["event"]["type"].as_str().unwrap().to_owned(),
        )
    }

    #[tokio::test]
    async fn a_client_that_does_not_read_is_notified_of_the_gap_and_continues_with_the_newest() {
        let (mut client, connection, log) = connected().await;
        let id = SessionId::generate();
        let _follower = follow(connection, id, &log, Box::new(NoView), 0, EventFilter::default());
        // Far more than all buffers between here and there hold.
        let text = "x".repeat(500);
        for _ in 0..3 * MEMORY_LIMIT {
            let item = ItemId::generate();
            log.publish(Event::TextChunk { item, text: text.clone() });
            tokio::task::yield_now().await;
        }
        let (mut read, mut gaps) = (0, 0);
        loop {
            let (_, kind) = event(&mut client).await;
            read += 1;
            if kind == "gap" {
                gaps += 1;
                // Events before the gap was noticed are in the snapshot that the client takes now.
                log.publish(Event::StateChanged { state: RunState::Ready });
            }
            if kind == "state_changed" {
                break;
            }
        }
        assert!(gaps > 0 && read < 3 * MEMORY_LIMIT - MEMORY_KEPT, "{read} with {gaps} gaps");
    }

    #[tokio::test]
    async fn a_client_is_sent_the_channels_and_types_it_wants() {
        let (mut client, connection, log) = connected().await;
        let filter = |channels: &[Channel], kinds: &[&str]| EventFilter {
            channels: channels.to_vec(),
            kinds: kinds.iter().map(ToString::to_string).collect(),
        };
        for _ in 0..2 {
            log.publish(Event::TurnStarted { turn: TurnId::generate() });
            log.publish(Event::StateChanged { state: RunState::Ready });
            log.publish(Event::DraftChanged { draft: None });
        }
        for (filter, wanted) in [
            (filter(&[Channel::Progress], &[]), vec![1, 4]),
            (filter(&[], &["draft_changed", "turn_started"]), vec![1, 3, 4, 6]),
            (filter(&[Channel::Monitor], &["draft_changed", "turn_started"]), vec![3, 6]),
        ] {
            let _follower =
                follow(Arc::clone(&connection), SessionId::generate(), &log, Box::new(NoView), 0, filter);
            for seq in wanted {
                assert_eq!(event(&mut client).await.0, seq);
            }
        }
    }

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
