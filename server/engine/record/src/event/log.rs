//! The events of one session in memory, numbered, and the readers that follow them.
//!
//! Rule: a writer never waits for a reader. At [`MEMORY_LIMIT`] events the oldest are dropped down to
//! [`MEMORY_KEPT`]; a reader whose place is gone gets the [`Gap`] and takes a snapshot. Numbers only grow: where they
//! jump nothing is lost but what no record tells: progress, retries, errors. A reader of urgent events is woken by them
//! alone, and one for a client at most every [`PACE`], unless an event is urgent.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use parking_lot::Mutex;
use tokio::sync::watch;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::event::{Bookmark, Channel, Event, EventRecord};
use kode_base::ids::SessionId;

/// Above this many events the oldest are dropped.
pub const MEMORY_LIMIT: usize = 10_000;
/// Number of events that are left after dropping.
pub const MEMORY_KEPT: usize = 5_000;
/// So far above the newest number that is written begins the next life of a session: what the life before has told
/// without writing it down is numbered below that, however much it was.
pub const LIFE_JUMP: u64 = 1_000_000_000;
/// The buffer of events grows by this many.
const GROWTH: usize = 256;
/// The most events one read hands over.
const READ_LIMIT: usize = 512;
/// Half a frame of a screen at 60 Hz. Events of this time are sent together: each wake of a client takes the processor from the
/// round that makes the next events.
const PACE: Duration = Duration::from_millis(8);

/// The numbered events of one session.
#[derive(Debug)]
pub struct EventLog {
    session: SessionId,
    kept: Mutex<RecentEvents>,
    /// How many events there ever were.
    grown: watch::Sender<u64>,
    /// How many events there were with the newest urgent one.
    urgent: watch::Sender<u64>,
    closed: CancellationToken,
}

/// The newest events of a session, as its records tell them.
#[derive(Debug, Default)]
pub struct RecentEvents {
    /// All events there were after this number are here.
    floor: u64,
    /// The number of the newest.
    newest: u64,
    /// Events that are not here any more.
    dropped: u64,
    /// How many of them there were with the newest urgent one.
    dropped_urgent: u64,
    events: VecDeque<RecentEvent>,
    /// Whether the events of lines are only counted.
    is_counting: bool,
}

/// An event with its place, in the log of its session.
#[derive(Debug)]
struct RecentEvent {
    bookmark: Bookmark,
    event: Event,
}

/// The events after a bookmark are not in memory: no longer, or the bookmark is of an earlier life of the session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "the events after {since} are no longer kept (the oldest is {oldest}); take a snapshot of the session"
)]
pub struct Gap {
    /// The bookmark asked for.
    pub since: u64,
    /// The oldest event there is.
    pub oldest: u64,
}

/// A reader that follows a log from its own place.
#[derive(Debug)]
pub struct Subscription {
    log: Arc<EventLog>,
    /// The number after which it begins.
    since: u64,
    /// How many events there were up to its place; `None` before it has read anything.
    place: Option<u64>,
    selection: EventSelection,
    /// How many events there were with the newest that it is woken for.
    news: watch::Receiver<u64>,
    urgent: watch::Receiver<u64>,
    /// Until when [`Subscription::next_paced`] gathers events.
    gathers_until: Option<Instant>,
}

/// The events that a reader gets.
#[derive(Debug)]
enum EventSelection {
    /// Those of the channels; all of them when there are none.
    Channels(Vec<Channel>),
    /// Those that are urgent.
    Urgent,
}

impl EventSelection {
    fn contains(&self, event: &Event) -> bool {
        match self {
            Self::Channels(channels) => channels.is_empty() || channels.contains(&event.channel()),
            Self::Urgent => event.is_urgent(),
        }
    }
}

impl EventLog {
    /// An empty log whose first event will be number `after + 1`.
    #[must_use]
    pub fn new(session: SessionId, after: u64) -> Arc<Self> {
        Self::with(session, RecentEvents { floor: after, newest: after, ..RecentEvents::default() })
    }

    /// The log of a new run of a session, with the kept events of earlier runs. Its own events are numbered above all that
    /// anybody can have seen of them.
    #[must_use]
    pub fn next_life(session: SessionId, mut kept: RecentEvents) -> Arc<Self> {
        kept.newest += LIFE_JUMP;
        kept.floor = kept.floor.min(kept.newest);
        Self::with(session, kept)
    }

    /// The log of a session that another process writes, with its kept events.
    #[must_use]
    pub fn with(session: SessionId, mut kept: RecentEvents) -> Arc<Self> {
        kept.floor = kept.floor.min(kept.newest);
        let (grown, urgent) = (watch::Sender::new(kept.total()), watch::Sender::new(kept.total()));
        Arc::new(Self { session, kept: Mutex::new(kept), grown, urgent, closed: CancellationToken::new() })
    }

    /// Adds an event that no record tells, and wakes the readers. Never waits.
    pub fn publish(&self, event: Event) {
        self.report(Timestamp::now(), vec![event], |_| {});
    }

    /// Adds the events that a record tells, and wakes the readers. `write` is given the number of the newest event before
    /// them, and no event comes between; it must not come back to this log.
    pub fn report(&self, at: Timestamp, events: Vec<Event>, write: impl FnOnce(u64)) {
        let mut kept = self.kept.lock();
        write(kept.newest);
        let newest = kept.newest;
        let is_urgent = events.iter().any(Event::is_urgent);
        kept.add(newest, at, events, MEMORY_LIMIT);
        self.wake(&kept, is_urgent);
    }

    /// Wakes the readers. Called under the lock, so that a woken reader finds the events.
    fn wake(&self, kept: &RecentEvents, is_urgent: bool) {
        if is_urgent {
            self.urgent.send_replace(kept.total());
        }
        self.grown.send_replace(kept.total());
    }

    /// Adds an event that is no part of what the session tells: it has the number of the event before it.
    pub fn report_aside(&self, event: Event) {
        let mut kept = self.kept.lock();
        let bookmark = Bookmark { seq: kept.newest, timestamp: Timestamp::now() };
        let is_urgent = event.is_urgent();
        kept.push(RecentEvent { bookmark, event });
        kept.bound(MEMORY_LIMIT);
        self.wake(&kept, is_urgent);
    }

    /// Begins a new life of the session, whose events are numbered above all that anybody can have seen before.
    pub fn begin_life(&self) {
        self.kept.lock().newest += LIFE_JUMP;
    }

    /// Notes that something is missing here: no reader can continue from before it.
    pub fn lose(&self) {
        let mut kept = self.kept.lock();
        kept.forget();
        kept.floor = kept.newest;
        // Readers are to notice: they are woken though nothing came.
        kept.dropped += 1;
        kept.dropped_urgent = kept.dropped;
        self.wake(&kept, true);
    }

    /// Continues from this number where the newest event is an older one: others have sent that many.
    pub fn reach(&self, newest: u64) {
        let mut kept = self.kept.lock();
        kept.newest = kept.newest.max(newest);
    }

    /// Adds the events that a record of another process tells, under the numbers they have there.
    pub fn follow(&self, seq: u64, at: Timestamp, events: Vec<Event>) {
        let mut kept = self.kept.lock();
        let seq = seq.max(kept.newest);
        let is_urgent = events.iter().any(Event::is_urgent);
        kept.add(seq, at, events, MEMORY_LIMIT);
        self.wake(&kept, is_urgent);
    }

    /// Tells the readers that nothing more will come; they still get the existing events.
    pub fn close(&self) {
        self.closed.cancel();
    }

    /// Number of the newest event; 0 or the starting number if absent.
    #[must_use]
    pub fn newest(&self) -> u64 {
        self.kept.lock().newest
    }

    /// Follows the log from the event after `since`, on the given channels; all of them when the list is empty.
    #[must_use]
    pub fn subscribe(self: &Arc<Self>, since: u64, channels: Vec<Channel>) -> Subscription {
        Subscription {
            log: Arc::clone(self),
            since,
            place: None,
            selection: EventSelection::Channels(channels),
            news: self.grown.subscribe(),
            urgent: self.urgent.subscribe(),
            gathers_until: None,
        }
    }

    /// Follows the urgent events from now on, and is woken by no others.
    #[must_use]
    pub fn subscribe_urgent(self: &Arc<Self>) -> Subscription {
        let kept = self.kept.lock();
        Subscription {
            log: Arc::clone(self),
            since: kept.newest,
            place: Some(kept.total()),
            selection: EventSelection::Urgent,
            news: self.urgent.subscribe(),
            urgent: self.urgent.subscribe(),
            gathers_until: None,
        }
    }

    /// The next events from a place on, and the place behind them.
    fn read(
        &self,
        since: u64,
        place: Option<u64>,
        selection: &EventSelection,
    ) -> Result<(Vec<EventRecord>, u64), Gap> {
        let kept = self.kept.lock();
        let skip = kept.skip(since, place, selection)?;
        let mut read = Vec::new();
        let mut taken = 0;
        for record in kept.events.iter().skip(skip) {
            if read.len() == READ_LIMIT {
                break;
            }
            taken += 1;
            if selection.contains(&record.event) {
                let RecentEvent { bookmark, event } = record;
                let (session, event) = (self.session.clone(), event.clone());
                read.push(EventRecord { session, bookmark: *bookmark, event });
            }
        }
        Ok((read, kept.dropped + (skip + taken) as u64))
    }
}

impl RecentEvents {
    /// Nothing but that this was the number of the newest event.
    #[must_use]
    pub fn after(newest: u64) -> Self {
        Self { floor: newest, newest, ..Self::default() }
    }

    /// As [`Self::after`], for a session of which no reader knows an earlier event: those of lines are counted and not kept.
    #[must_use]
    pub fn counted_after(newest: u64) -> Self {
        Self { is_counting: true, ..Self::after(newest) }
    }

    /// The number of the newest event.
    pub fn newest(&self) -> u64 {
        self.newest
    }

    /// Adds what a record of a journal tells: `seq` is the number of the newest event before, as its line says. A line that
    /// has no such number, or a wrong one, makes all before it unfit to continue from.
    pub fn add_line(&mut self, seq: u64, at: Timestamp, events: Vec<Event>) {
        if seq < self.newest {
            self.forget();
            return;
        }
        if self.floor == u64::MAX {
            self.floor = seq;
        }
        if self.is_counting {
            self.newest = seq + events.len() as u64;
            self.floor = self.newest;
            return;
        }
        self.add(seq, at, events, MEMORY_KEPT);
    }

    /// Notes that something is missing here: no reader can continue from before it.
    pub fn forget(&mut self) {
        self.floor = u64::MAX;
        self.dropped += self.events.len() as u64;
        self.dropped_urgent = self.dropped;
        self.events.clear();
    }

    /// How many events there ever were.
    fn total(&self) -> u64 {
        self.dropped + self.events.len() as u64
    }

    /// How many of the events that are here a reader has behind it.
    fn skip(&self, since: u64, place: Option<u64>, selection: &EventSelection) -> Result<usize, Gap> {
        let gap = |since| Gap { since, oldest: self.floor + 1 };
        match place {
            // It has missed none of those that are gone.
            Some(place) if matches!(selection, EventSelection::Urgent) && place >= self.dropped_urgent => {
                Ok(usize::try_from(place.saturating_sub(self.dropped)).unwrap_or(usize::MAX))
            }
            Some(place) => {
                let skip = place.checked_sub(self.dropped).ok_or_else(|| gap(since))?;
                Ok(usize::try_from(skip).unwrap_or(usize::MAX))
            }
            None if since > self.newest || since < self.floor => Err(gap(since)),
            None => Ok(self.events.partition_point(|record| record.bookmark.seq <= since)),
        }
    }

    fn add(&mut self, seq: u64, timestamp: Timestamp, events: Vec<Event>, limit: usize) {
        self.newest = seq;
        for event in events {
            self.newest += 1;
            let bookmark = Bookmark { seq: self.newest, timestamp };
            self.push(RecentEvent { bookmark, event });
        }
        self.bound(limit);
    }

    /// Grows by a fixed step: to double the buffer would leave up to half of it unused in every session.
    fn push(&mut self, event: RecentEvent) {
        if self.events.len() == self.events.capacity() {
            self.events.reserve_exact(GROWTH);
        }
        self.events.push_back(event);
    }

    /// Drops the oldest where there are more than that many.
    fn bound(&mut self, limit: usize) {
        if self.events.len() > limit {
            let dropped = self.events.len() - MEMORY_KEPT;
            let urgent = self.events.range(..dropped).rposition(|dropped| dropped.event.is_urgent());
            if let Some(urgent) = urgent {
                self.dropped_urgent = self.dropped + urgent as u64 + 1;
            }
            self.dropped += dropped as u64;
            if let Some(last) = self.events.drain(..dropped).next_back() {
                self.floor = last.bookmark.seq;
            }
        }
    }
}

impl Subscription {
    /// Waits for events and hands them over in order, at least one; `None` once the log is closed and read.
    ///
    /// # Errors
    /// [`Gap`] when the reader was too slow; it then is at the newest event.
    pub async fn next(&mut self) -> Result<Option<Vec<EventRecord>>, Gap> {
        loop {
            let ready = self.ready()?;
            if !ready.is_empty() {
                return Ok(Some(ready));
            }
            let closed = self.log.closed.is_cancelled();
            let place = self.place.unwrap_or_default();
            if closed && *self.news.borrow() <= place {
                return Ok(None);
            }
            tokio::select! {
                newer = self.news.wait_for(|newest| *newest > place) => {
                    if newer.is_err() {
                        return Ok(None);
                    }
                }
                () = self.log.closed.cancelled(), if !closed => {}
            }
        }
    }

    /// As [`Subscription::next`] for a client: the events of [`PACE`] are handed over together, and at once when one of them is
    /// urgent or more of them are waiting than one read hands over.
    ///
    /// # Errors
    /// [`Gap`] as for [`Subscription::next`].
    pub async fn next_paced(&mut self) -> Result<Option<Vec<EventRecord>>, Gap> {
        if let Some(until) = self.gathers_until {
            let place = self.place.unwrap_or_default();
            tokio::select! {
                biased;
                _ = self.urgent.wait_for(|urgent| *urgent > place) => {}
                () = self.log.closed.cancelled() => {}
                () = tokio::time::sleep_until(until) => {}
            }
        }
        let next = self.next().await?;
        let is_behind = next.as_ref().is_some_and(|events| events.len() == READ_LIMIT);
        self.gathers_until = (!is_behind).then(|| Instant::now() + PACE);
        Ok(next)
    }

    /// The events that can be read now, without waiting.
    ///
    /// # Errors
    /// [`Gap`] as for [`Subscription::next`].
    pub fn ready(&mut self) -> Result<Vec<EventRecord>, Gap> {
        match self.log.read(self.since, self.place, &self.selection) {
            Ok((events, place)) => {
                self.place = Some(place);
                self.since = events.last().map_or(self.since, |record| record.bookmark.seq);
                Ok(events)
            }
            Err(gap) => {
                let kept = self.log.kept.lock();
                (self.place, self.since) = (Some(kept.total()), kept.newest);
                Err(gap)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::RunState;
    use kode_base::ids::{ItemId, TurnId};

    fn log() -> Arc<EventLog> {
        EventLog::new(SessionId::generate(), 0)
    }

    fn monitor() -> Event {
        Event::StateChanged { state: RunState::Ready }
    }

    fn seqs(events: &[EventRecord]) -> Vec<u64> {
        events.iter().map(|record| record.bookmark.seq).collect()
    }

    #[test]
    fn a_reader_from_any_bookmark_sees_the_rest_once_and_in_order() {
        let log = log();
        for _ in 0..40 {
            log.publish(monitor());
        }
        for since in 0..=40 {
            let mut reader = log.subscribe(since, vec![]);
            assert_eq!(seqs(&reader.ready().unwrap()), (since + 1..=40).collect::<Vec<_>>());
            assert_eq!(reader.ready().unwrap(), vec![]);
        }
    }

    #[test]
    fn a_next_life_replays_what_is_kept_and_is_numbered_above_all_that_was_reported() {
        let id = SessionId::generate();
        let mut kept = RecentEvents::default();
        kept.add_line(0, Timestamp::UNIX_EPOCH, vec![monitor(), monitor()]);
        // Three that no record tells came between.
        kept.add_line(5, Timestamp::UNIX_EPOCH, vec![monitor()]);
        let log = EventLog::next_life(id, kept);
        log.publish(monitor());
        let replayed = |since| log.subscribe(since, vec![]).ready().map(|events| seqs(&events));
        let first = 6 + LIFE_JUMP + 1;
        assert_eq!(replayed(0).unwrap(), [1, 2, 6, first]);
        assert_eq!(replayed(4).unwrap(), [6, first]);
        assert_eq!(replayed(1_000).unwrap(), [first], "told and not written");
        assert_eq!(replayed(first + 1).unwrap_err(), Gap { since: first + 1, oldest: 1 });
    }

    #[test]
    fn nobody_continues_from_before_a_line_that_is_damaged_or_has_no_number() {
        let id = SessionId::generate();
        let reported = || vec![monitor(), monitor()];
        let kept = |lines: &[u64]| {
            let mut kept = RecentEvents::default();
            lines.iter().for_each(|seq| kept.add_line(*seq, Timestamp::UNIX_EPOCH, reported()));
            EventLog::next_life(id.clone(), kept)
        };
        let old = kept(&[0, 0, 0]);
        let newest = old.newest();
        assert_eq!(old.subscribe(2, vec![]).ready().unwrap_err(), Gap { since: 2, oldest: newest + 1 });
        let mixed = kept(&[0, 0, 0, 2 + LIFE_JUMP, 4 + LIFE_JUMP]);
        assert!(mixed.subscribe(2, vec![]).ready().is_err());
        let seen = mixed.subscribe(2 + LIFE_JUMP, vec![]).ready().unwrap();
        assert_eq!(seqs(&seen), (3..=6).map(|number| number + LIFE_JUMP).collect::<Vec<_>>());
    }

    #[test]
    fn channels_are_read_apart_and_filtered_events_do_not_come_back() {
        let log = log();
        log.publish(monitor());
        log.publish(Event::TurnStarted { turn: TurnId::generate() });
        let mut progress = log.subscribe(0, vec![Channel::Progress]);
        assert_eq!(seqs(&progress.ready().unwrap()), [2]);
        log.publish(monitor());
        assert_eq!(progress.ready().unwrap(), vec![]);
    }

    #[test]
    fn memory_is_cut_to_the_newest_and_a_reader_left_behind_is_reported() {
        let log = log();
        let mut slow = log.subscribe(0, vec![]);
        for _ in 0..=MEMORY_LIMIT {
            log.publish(monitor());
        }
        assert_eq!(log.kept.lock().events.len(), MEMORY_KEPT);
        let gap = slow.ready().unwrap_err();
        assert_eq!(gap, Gap { since: 0, oldest: (MEMORY_LIMIT + 1 - MEMORY_KEPT + 1) as u64 });
        log.publish(monitor());
        assert_eq!(seqs(&slow.ready().unwrap()), [MEMORY_LIMIT as u64 + 2]);
    }

    fn chunk() -> Event {
        Event::TextChunk { item: ItemId::generate(), text: "a".to_owned() }
    }

    #[tokio::test]
    async fn a_reader_of_urgent_events_misses_none_behind_many_others_and_is_woken_by_none_of_them() {
        let log = log();
        log.publish(monitor());
        let mut reader = log.subscribe_urgent();
        for _ in 0..2 * MEMORY_LIMIT {
            log.publish(chunk());
        }
        assert!(!reader.news.has_changed().unwrap());
        log.publish(monitor());
        let newest = 2 * MEMORY_LIMIT as u64 + 2;
        assert_eq!(seqs(&reader.next().await.unwrap().unwrap()), [newest]);
        for _ in 0..=MEMORY_LIMIT {
            log.publish(monitor());
        }
        let gap = reader.next().await.unwrap_err();
        assert_eq!(gap.since, newest, "urgent events were dropped");
        log.publish(chunk());
        log.publish(monitor());
        assert_eq!(reader.next().await.unwrap().unwrap().len(), 1);
        log.lose();
        assert!(reader.next().await.is_err());
        log.close();
        assert_eq!(reader.next().await.unwrap(), None);
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_gets_the_events_of_a_pace_together_and_urgent_ones_at_once() {
        let log = log();
        let mut reader = log.subscribe(0, vec![]);
        log.publish(chunk());
        let start = Instant::now();
        assert_eq!(seqs(&reader.next_paced().await.unwrap().unwrap()), [1]);
        assert_eq!(start.elapsed(), Duration::ZERO, "the first waits for nothing");
        log.publish(chunk());
        let writer = Arc::clone(&log);
        let later = tokio::spawn(async move {
            tokio::time::sleep(PACE / 2).await;
            writer.publish(chunk());
            tokio::time::sleep(PACE).await;
            writer.publish(monitor());
        });
        assert_eq!(seqs(&reader.next_paced().await.unwrap().unwrap()), [2, 3]);
        assert!((PACE..PACE + Duration::from_millis(2)).contains(&start.elapsed()), "{:?}", start.elapsed());
        assert_eq!(seqs(&reader.next_paced().await.unwrap().unwrap()), [4]);
        let took = start.elapsed();
        assert!((PACE * 3 / 2..PACE * 2).contains(&took), "the urgent one did not wait: {took:?}");
        later.await.unwrap();
        log.publish(chunk());
        log.close();
        assert_eq!(seqs(&reader.next_paced().await.unwrap().unwrap()), [5]);
        assert_eq!(reader.next_paced().await.unwrap(), None);
        assert_eq!(start.elapsed(), took, "nothing follows the end");
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_that_is_behind_catches_up_without_a_pause() {
        let log = log();
        for _ in 0..3 * READ_LIMIT {
            log.publish(chunk());
        }
        let mut reader = log.subscribe(0, vec![]);
        let start = Instant::now();
        for _ in 0..3 {
            assert_eq!(reader.next_paced().await.unwrap().unwrap().len(), READ_LIMIT);
        }
        assert_eq!(start.elapsed(), Duration::ZERO);
    }

    #[tokio::test]
    async fn a_closed_log_is_read_to_its_end_and_no_further() {
        let log = log();
        let mut reader = log.subscribe(0, vec![]);
        log.publish(monitor());
        log.close();
        assert_eq!(seqs(&reader.next().await.unwrap().unwrap()), [1]);
        assert_eq!(reader.next().await.unwrap(), None);
    }

    #[tokio::test]
    async fn replay_turns_into_live_without_gap_or_duplicate() {
        let log = log();
        log.publish(monitor());
        let mut reader = log.subscribe(0, vec![]);
        let writer = Arc::clone(&log);
        let live = tokio::spawn(async move {
            for _ in 0..2_000 {
                writer.publish(monitor());
                tokio::task::yield_now().await;
            }
        });
        let mut seen = Vec::new();
        while seen.len() < 2_001 {
            seen.extend(seqs(&reader.next().await.unwrap().unwrap()));
        }
        live.await.unwrap();
        assert_eq!(seen, (1..=2_001).collect::<Vec<_>>());
    }
}
