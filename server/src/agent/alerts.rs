//! Alerts of a user who is not at the editor: a turn ended, or a prompt waits.
//!
//! Rule: nothing while the editor is in front. One alert for a turn, and one for prompts until all of them are answered. An
//! alert never delays the events of its session.

mod deliver;
#[cfg(test)]
mod tests;

use std::collections::HashSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use async_trait::async_trait;
use kode_engine::base::ids::SessionId;
use kode_engine::base::task;
use kode_engine::config::preferences::{AlertKind, AlertSettings};
use kode_engine::record::event::{Event, EventLog, TurnEnd};
use kode_engine::record::observer::{ObserverEnd, SessionObserver};
use kode_protocol::AlertReason;
use tokio::task::AbortHandle;

use super::Agent;
use crate::connection::{ClientConnection, FocusReport};
use deliver::Delivery;

/// The time in which a prompt may be answered elsewhere, or another may follow, before the user is alerted.
const GRACE: Duration = Duration::from_secs(1);

/// Reads the settings, which may change at any time. Blocks on the disk.
type AlertSource = Arc<dyn Fn() -> AlertSettings + Send + Sync>;

/// Receives the alerts of a session.
#[async_trait]
trait AlertSink: Send + Sync {
    /// Alerts the user. Failures go to the log.
    async fn alert(&self, session: &SessionId, reason: AlertReason, settings: &AlertSettings);
}

/// Decides about the alerts of one session.
struct SessionAlerts {
    connection: Arc<ClientConnection>,
    settings: AlertSource,
    sink: Box<dyn AlertSink>,
    waiting: Mutex<WaitingPrompts>,
}

/// The prompts that wait for the user.
#[derive(Default)]
struct WaitingPrompts {
    ids: HashSet<String>,
    /// The alert of them that is due later.
    due: Option<AbortHandle>,
}

impl SessionAlerts {
    fn observe(self: &Arc<Self>, session: &SessionId, event: &Event) {
        match event {
            Event::PermissionRequired { prompt } => self.wait_for(session, prompt.id.as_str()),
            Event::QuestionAsked { question } => self.wait_for(session, question.id.as_str()),
            Event::PermissionDecided { decision } => self.settle(decision.id.as_str()),
            Event::QuestionAnswered { resolved } => self.settle(resolved.id.as_str()),
            Event::Done { reason, duration_ms, .. } if *reason != TurnEnd::Cancelled => {
                self.ended(session, Duration::from_millis(*duration_ms));
            }
            _ => {}
        }
    }

    /// Alerts of the end of a turn that took this long.
    fn ended(self: &Arc<Self>, session: &SessionId, took: Duration) {
        if self.is_in_front() {
            return;
        }
        let (alerts, session) = (Arc::clone(self), session.clone());
        task::spawn(async move {
            if let Some(settings) = alerts.settings().await
                && took >= settings.after
            {
                alerts.sink.alert(&session, AlertReason::Ended, &settings).await;
            }
        });
    }

    /// Alerts of a prompt that is still open after a while.
    fn wait_for(self: &Arc<Self>, session: &SessionId, id: &str) {
        let mut waiting = self.lock();
        waiting.ids.insert(id.to_owned());
        if waiting.due.is_some() {
            return;
        }
        let (alerts, session) = (Arc::clone(self), session.clone());
        let due = task::spawn(async move {
            let Some(settings) = alerts.settings().await else { return };
            // Without reports of the focus the user may well be reading the prompt.
            let is_known = alerts.connection.focus.get() != FocusReport::Unknown;
            tokio::time::sleep(if is_known { GRACE } else { settings.after.max(GRACE) }).await;
            if !alerts.is_in_front() {
                alerts.sink.alert(&session, AlertReason::Waiting, &settings).await;
            }
        });
        waiting.due = Some(due.abort_handle());
    }

    /// Forgets a prompt that was answered.
    fn settle(&self, id: &str) {
        let mut waiting = self.lock();
        waiting.ids.remove(id);
        if waiting.ids.is_empty() {
            waiting.forget();
        }
    }

    /// The settings, unless they switch alerts off.
    async fn settings(&self) -> Option<AlertSettings> {
        let source = Arc::clone(&self.settings);
        let settings = kode_engine::base::blocking(move || source()).await;
        (settings.by != AlertKind::Off).then_some(settings)
    }

    fn is_in_front(&self) -> bool {
        self.connection.focus.get() == FocusReport::InFront
    }

    fn lock(&self) -> MutexGuard<'_, WaitingPrompts> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl WaitingPrompts {
    fn forget(&mut self) {
        self.ids.clear();
        if let Some(due) = self.due.take() {
            due.abort();
        }
    }
}

/// Follows the sessions that this process writes; those of another process are alerts of that process.
pub(super) struct Alerts(Weak<Agent>);

impl Alerts {
    /// Alerts of the sessions of an agent.
    pub(super) fn new(agent: &Arc<Agent>) -> Self {
        Self(Arc::downgrade(agent))
    }
}

impl SessionObserver for Alerts {
    fn begin(&self, events: &Arc<EventLog>) {
        let Some(agent) = self.0.upgrade() else { return };
        let policies = Arc::clone(&agent.policies);
        let alerts = Arc::new(SessionAlerts {
            connection: Arc::clone(&agent.connection),
            settings: Arc::new(move || policies.values().stated.preferences().alerts),
            sink: Box::new(Delivery::new(Weak::clone(&self.0))),
            waiting: Mutex::default(),
        });
        let mut events = events.subscribe_urgent();
        task::spawn(async move {
            loop {
                match events.next().await {
                    Ok(Some(records)) => {
                        records.iter().for_each(|record| alerts.observe(&record.session, &record.event));
                    }
                    Ok(None) => break,
                    // Answers may be among the lost events.
                    Err(_) => alerts.lock().forget(),
                }
            }
            alerts.lock().forget();
        });
    }

    fn end(&self) -> ObserverEnd {
        Box::pin(async {})
    }
}
