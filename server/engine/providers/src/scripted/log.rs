//! The requests of a scripted model, and the gates at which it holds answers.
//!
//! Rule: everything is bounded; of requests the oldest bodies go first, their times stay longer.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use bytes::Bytes;
use serde_json::json;
use tokio::sync::watch;

use super::playback::{Numbers, call_number};
use super::question::RequestView;
use super::scenes::ScriptPosition;
use super::script::{ScriptFault, ScriptStep};
use super::timed::Times;
use kode_model::Wire;

/// How many requests are kept for looking at.
const MAX_RECORDED: usize = 4_096;

/// How many bytes of their bodies are kept.
const MAX_RECORDED_BYTES: usize = 256 * 1024 * 1024;

/// A request for an answer.
#[derive(Debug)]
pub(super) struct LoggedExchange {
    /// The wire it came over.
    pub(super) wire: Wire,
    /// Where it went.
    pub(super) path: String,
    /// Its body, valid JSON, as long as it is kept.
    pub(super) body: Option<Bytes>,
    /// How many bytes the body has.
    pub(super) bytes: usize,
    /// When it came and was answered.
    pub(super) times: Arc<Times>,
}

impl LoggedExchange {
    fn head(&self) -> String {
        let head = json!({
            "wire": self.wire,
            "path": self.path,
            "bytes": self.bytes,
            "receivedNs": self.times.received,
            "sentNs": self.times.sent.load(Ordering::Relaxed),
        });
        head.to_string()
    }

    /// With the body, if it is kept.
    fn whole(&self) -> Option<String> {
        let body = std::str::from_utf8(self.body.as_ref()?).ok()?;
        Some(format!("{},\"body\":{body}}}", self.head().strip_suffix('}')?))
    }
}

/// The requests so far.
#[derive(Debug, Default)]
pub(super) struct Log {
    exchanges: VecDeque<LoggedExchange>,
    bytes: usize,
    /// Answers given so far.
    messages: usize,
    /// The highest number that the id of a call has had, in this server or in a history it was shown.
    calls: usize,
    faults_taken: HashMap<ScriptPosition, usize>,
    /// The problems of the requests that were refused, oldest first.
    refusals: Vec<String>,
}

impl Log {
    /// Adds a request.
    pub(super) fn record(&mut self, exchange: LoggedExchange) {
        if self.exchanges.len() == MAX_RECORDED
            && let Some(oldest) = self.exchanges.pop_front()
        {
            self.bytes -= oldest.body.map_or(0, |body| body.len());
        }
        self.bytes += exchange.bytes;
        self.exchanges.push_back(exchange);
        let newest = self.exchanges.len() - 1;
        for exchange in self.exchanges.range_mut(..newest) {
            if self.bytes <= MAX_RECORDED_BYTES {
                break;
            }
            self.bytes -= exchange.body.take().map_or(0, |body| body.len());
        }
    }

    /// Notes why a request was refused.
    pub(super) fn note_refusal(&mut self, message: &str) {
        if self.refusals.len() < MAX_RECORDED {
            self.refusals.push(message.to_owned());
        }
    }

    /// Why requests were refused, oldest first.
    pub(super) fn refusals(&self) -> &[String] {
        &self.refusals
    }

    /// The bodies that are kept, oldest first.
    pub(super) fn bodies(&self) -> Vec<Bytes> {
        self.exchanges.iter().filter_map(|exchange| exchange.body.clone()).collect()
    }

    /// The requests as JSON, oldest first: each `{wire, path, bytes, receivedNs, sentNs}`, and with its `body` if
    /// those are wanted; then only the requests whose bodies are kept.
    pub(super) fn reported(&self, with_bodies: bool) -> String {
        let report =
            |exchange: &LoggedExchange| if with_bodies { exchange.whole() } else { Some(exchange.head()) };
        let reported: Vec<String> = self.exchanges.iter().filter_map(report).collect();
        format!("[{}]", reported.join(","))
    }

    /// The newest request with its body, as JSON; `null` without one.
    pub(super) fn newest(&self) -> String {
        self.exchanges.back().and_then(LoggedExchange::whole).unwrap_or_else(|| "null".to_owned())
    }

    /// Numbers for an answer with this many calls. A history that outlived another server continues with numbers it has
    /// not had.
    pub(super) fn number(&mut self, question: &RequestView<'_>, calls: usize, server: u64) -> Numbers {
        let highest = question.call_ids().iter().filter_map(|id| call_number(id)).max().unwrap_or_default();
        self.messages = self.messages.saturating_add(1);
        let first_call = self.calls.max(highest).saturating_add(1);
        self.calls = first_call.saturating_add(calls).saturating_sub(1);
        Numbers { message: self.messages, first_call, server }
    }

    /// The next fault of the step that no request has taken yet.
    pub(super) fn take_fault(&mut self, position: ScriptPosition, step: &ScriptStep) -> Option<ScriptFault> {
        let taken = self.faults_taken.entry(position).or_default();
        let fault = step.faults.get(*taken).cloned();
        *taken += usize::from(fault.is_some());
        fault
    }
}

/// The gates that are open, and how many answers each holds.
#[derive(Debug, Default)]
struct OpenGates {
    open: HashSet<String>,
    held: HashMap<String, usize>,
}

/// The gates at which answers are held until they are released.
#[derive(Debug)]
pub(super) struct Gates(watch::Sender<OpenGates>);

impl Gates {
    /// All of them, shut.
    pub(super) fn new() -> Self {
        Self(watch::Sender::new(OpenGates::default()))
    }

    /// Opens a gate for good.
    pub(super) fn release(&self, name: &str) {
        self.0.send_modify(|doors| {
            doors.open.insert(name.to_owned());
        });
    }

    /// Waits until an answer is held at a gate.
    pub(super) async fn waiting(&self, name: &str) {
        let is_held = |doors: &OpenGates| doors.held.get(name).is_some_and(|held| *held > 0);
        // The sender lives as long as `self`.
        let _ = self.0.subscribe().wait_for(is_held).await;
    }

    /// Waits at a gate until it is open; being dropped there counts as leaving.
    pub(super) async fn hold(&self, name: &str) {
        let _held = GateHold::new(self, name);
        let _ = self.0.subscribe().wait_for(|doors| doors.open.contains(name)).await;
    }
}

struct GateHold<'a> {
    gates: &'a Gates,
    name: &'a str,
}

impl<'a> GateHold<'a> {
    fn new(gates: &'a Gates, name: &'a str) -> Self {
        gates.0.send_modify(|doors| *doors.held.entry(name.to_owned()).or_default() += 1);
        Self { gates, name }
    }
}

impl Drop for GateHold<'_> {
    fn drop(&mut self) {
        self.gates.0.send_modify(|doors| {
            if let Some(held) = doors.held.get_mut(self.name) {
                *held -= 1;
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    #[test]
    fn bodies_go_before_their_times() {
        let mut log = Log::default();
        let half = Bytes::from(vec![b'1'; MAX_RECORDED_BYTES / 2 + 1]);
        for _ in 0..2 {
            log.record(LoggedExchange {
                wire: Wire::Responses,
                path: "/v1/responses".into(),
                bytes: half.len(),
                body: Some(half.clone()),
                times: Arc::default(),
            });
        }
        assert_eq!(log.bodies().len(), 1);
        let reported: Value = serde_json::from_str(&log.reported(false)).unwrap();
        assert_eq!(reported.as_array().map(Vec::len), Some(2));
        assert_eq!(reported[0]["path"], "/v1/responses");
    }
}
