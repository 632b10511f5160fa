//! Alerts by a fake clock, and their texts.

use kode_engine::config::preferences::{AlertKind, AlertSettings};
use tokio::sync::mpsc;
use tokio::time::sleep;

use super::deliver::{AlertText, desktop_program};
use super::*;

/// Passes the reasons of alerts on.
struct Recorder(mpsc::UnboundedSender<AlertReason>);

#[async_trait]
impl AlertSink for Recorder {
    async fn alert(&self, _session: &SessionId, reason: AlertReason, _settings: &AlertSettings) {
        self.0.send(reason).unwrap();
    }
}

struct Rig {
    alerts: Arc<SessionAlerts>,
    sent: mpsc::UnboundedReceiver<AlertReason>,
}

impl Rig {
    fn new(by: AlertKind) -> Self {
        let (service, _socket) = crate::server::service();
        let connection = Arc::clone(service.inner().connection());
        let (sender, sent) = mpsc::unbounded_channel();
        let settings = AlertSettings { by, command: None, after: Duration::from_secs(10) };
        let alerts = SessionAlerts {
            connection,
            settings: Arc::new(move || settings.clone()),
            sink: Box::new(Recorder(sender)),
            waiting: Mutex::default(),
        };
        Self { alerts: Arc::new(alerts), sent }
    }

    fn wait_for(&self, id: &str) {
        self.alerts.wait_for(&SessionId::generate(), id);
    }

    fn ended(&self, took: Duration) {
        self.alerts.ended(&SessionId::generate(), took);
    }

    /// All alerts within this many seconds of the fake clock.
    async fn within(&mut self, seconds: u64) -> Vec<AlertReason> {
        sleep(Duration::from_secs(seconds)).await;
        let mut sent = Vec::new();
        while let Ok(reason) = self.sent.try_recv() {
            sent.push(reason);
        }
        sent
    }
}

#[tokio::test(start_paused = true)]
async fn prompts_that_wait_are_one_alert_until_all_are_answered() {
    let mut rig = Rig::new(AlertKind::Bell);
    rig.alerts.connection.focus.set(false);
    rig.wait_for("a");
    rig.wait_for("b");
    assert_eq!(rig.within(60).await, [AlertReason::Waiting]);
    rig.alerts.settle("a");
    rig.wait_for("c");
    assert_eq!(rig.within(60).await, []);
    rig.alerts.settle("b");
    rig.alerts.settle("c");
    rig.wait_for("d");
    assert_eq!(rig.within(60).await, [AlertReason::Waiting]);
}

#[tokio::test(start_paused = true)]
async fn a_prompt_that_is_answered_at_once_alerts_of_nothing() {
    let mut rig = Rig::new(AlertKind::Bell);
    rig.alerts.connection.focus.set(false);
    rig.wait_for("a");
    rig.alerts.settle("a");
    assert_eq!(rig.within(60).await, []);
}

#[tokio::test(start_paused = true)]
async fn an_editor_in_front_alerts_of_nothing() {
    let mut rig = Rig::new(AlertKind::Bell);
    rig.alerts.connection.focus.set(true);
    rig.wait_for("a");
    rig.ended(Duration::from_secs(600));
    assert_eq!(rig.within(60).await, []);
    // The user came back before the alert was due.
    rig.alerts.settle("a");
    rig.alerts.connection.focus.set(false);
    rig.wait_for("b");
    rig.alerts.connection.focus.set(true);
    assert_eq!(rig.within(60).await, []);
}

#[tokio::test(start_paused = true)]
async fn without_reports_of_the_focus_a_prompt_waits_longer() {
    let mut rig = Rig::new(AlertKind::Bell);
    rig.wait_for("a");
    assert_eq!(rig.within(9).await, []);
    assert_eq!(rig.within(2).await, [AlertReason::Waiting]);
}

#[tokio::test(start_paused = true)]
async fn only_turns_that_took_a_while_are_reported() {
    let mut rig = Rig::new(AlertKind::Desktop);
    rig.alerts.connection.focus.set(false);
    rig.ended(Duration::from_millis(9_999));
    assert_eq!(rig.within(1).await, []);
    rig.ended(Duration::from_secs(10));
    assert_eq!(rig.within(1).await, [AlertReason::Ended]);
}

#[tokio::test(start_paused = true)]
async fn alerts_are_off_unless_they_are_set() {
    let mut rig = Rig::new(AlertSettings::default().by);
    rig.alerts.connection.focus.set(false);
    rig.wait_for("a");
    rig.ended(Duration::from_secs(600));
    assert_eq!(rig.within(600).await, []);
}

#[test]
fn the_text_of_an_alert_is_one_masked_line() {
    let session = format!("call https://me:{}@host/\nnow \u{1b}[31m{}", "s3cret-word", "x".repeat(500));
    let text = AlertText::of(AlertReason::Ended, &session);
    assert!(!text.body.contains("s3cret") && text.body.contains("now [31mxxx"), "{}", text.body);
    assert_eq!(text.body.chars().count(), 120);
}

#[test]
fn the_desktop_shows_the_title_as_text() {
    let text = AlertText::of(AlertReason::Waiting, "--urgency <b>& $(id)</b>");
    let (program, arguments) = desktop_program(&text);
    let place = arguments.iter().position(|argument| argument == "Kode waits for you").unwrap();
    let body = &arguments[place + 1];
    match program {
        "notify-send" => {
            assert_eq!(arguments[place - 1], "--");
            assert_eq!(body, "--urgency &lt;b&gt;&amp; $(id)&lt;/b&gt;");
        }
        _ => assert_eq!(body, "--urgency <b>& $(id)</b>"),
    }
}
