//! The ways in which an alert reaches the user: the bell, the desktop, a command.
//!
//! Rule: texts are masked, go to programs as arguments or variables and never through a shell, and a program has ten seconds.
//! A bell that nothing rings becomes a notification of the desktop.

use std::io::{IsTerminal, Write};
use std::sync::Weak;
use std::time::Duration;

use async_trait::async_trait;
use kode_engine::agent::session::Session;
use kode_engine::base::ids::SessionId;
use kode_engine::base::{blocking, mask};
use kode_engine::config::preferences::{AlertKind, AlertSettings};
use kode_engine::process::shell::helper::{self, HelperFailure};
use kode_protocol as wire;
use kode_protocol::AlertReason;

use super::AlertSink;
use crate::agent::Agent;
use crate::connection::ClientConnection;
use crate::convert;

/// The time that a program of an alert has.
const LIMIT: Duration = Duration::from_secs(10);

/// The most bytes that the command may print; they are dropped.
const MAX_OUTPUT: usize = 65_536;

/// The longest title of a session in an alert, in characters.
const MAX_TITLE: usize = 120;

/// Delivers the alerts of an agent's sessions.
pub(super) struct Delivery(Weak<Agent>);

impl Delivery {
    /// Delivers alerts of that agent's sessions.
    pub(super) fn new(agent: Weak<Agent>) -> Self {
        Self(agent)
    }
}

#[async_trait]
impl AlertSink for Delivery {
    async fn alert(&self, session: &SessionId, reason: AlertReason, settings: &AlertSettings) {
        let Some(agent) = self.0.upgrade() else { return };
        let Ok(session) = agent.engine.session(session) else { return };
        let text = AlertText::of(reason, &session.snapshot(0).title);
        let delivered = match settings.by {
            AlertKind::Off => Ok(()),
            AlertKind::Bell if ring(&agent.connection, &session, reason).await => Ok(()),
            AlertKind::Bell | AlertKind::Desktop => notify_desktop(&text).await,
            AlertKind::Command => match &settings.command {
                Some(command) => run_command(command, &text, &session).await,
                None => Err("`notify` is \"command\", and there is no `notifyCommand`".to_owned()),
            },
        };
        if let Err(reason) = delivered {
            tracing::warn!("the alert of the setting `notify` did not go out: {reason}");
        }
    }
}

/// The words of an alert.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct AlertText {
    pub(super) kind: &'static str,
    pub(super) title: &'static str,
    /// The title of the session.
    pub(super) body: String,
}

impl AlertText {
    pub(super) fn of(reason: AlertReason, session: &str) -> Self {
        let (kind, title) = match reason {
            AlertReason::Ended => ("ended", "Kode has finished"),
            AlertReason::Waiting => ("waiting", "Kode waits for you"),
        };
        let line: String = mask::masked_text(session).chars().filter(|one| !one.is_control()).collect();
        let body = line.chars().take(MAX_TITLE).collect();
        Self { kind, title, body }
    }
}

/// Rings the bell. Whether there is one.
async fn ring(connection: &ClientConnection, session: &Session, reason: AlertReason) -> bool {
    if connection.facts.get().is_some_and(|facts| facts.kode.bell) {
        let params = wire::RingBellParams { session_id: convert::session_id(session.id()), reason };
        connection.client.send_notification::<wire::RingBell>(params).await;
        return true;
    }
    blocking(ring_terminal).await
}

/// Rings the terminal that the server was started in, where the editor has left it one.
fn ring_terminal() -> bool {
    let terminal = std::fs::File::options().write(true).open("/dev/tty");
    terminal.is_ok_and(|mut terminal| terminal.is_terminal() && terminal.write_all(b"\x07").is_ok())
}

async fn notify_desktop(text: &AlertText) -> Result<(), String> {
    let (program, arguments) = desktop_program(text);
    let arguments: Vec<_> = arguments.iter().map(String::as_str).collect();
    helper::run(program, &arguments, LIMIT).await.map_err(|error| failed(program, &error))
}

/// The program that notifies the desktop, and its arguments.
pub(super) fn desktop_program(text: &AlertText) -> (&'static str, Vec<String>) {
    if cfg!(target_os = "macos") {
        let script =
            "on run argv\ndisplay notification (item 2 of argv) with title (item 1 of argv)\nend run";
        return (
            "osascript",
            vec!["-e".to_owned(), script.to_owned(), text.title.to_owned(), text.body.clone()],
        );
    }
    let options = ["--app-name=kode-ls", "--category=im.received", "--"].map(str::to_owned);
    // The body may have markup.
    let body = text.body.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    ("notify-send", options.into_iter().chain([text.title.to_owned(), body]).collect())
}

async fn run_command(command: &str, text: &AlertText, session: &Session) -> Result<(), String> {
    let folder = session.roots().first().map(ToString::to_string).unwrap_or_default();
    let variables = [
        ("KODE_ALERT", text.kind),
        ("KODE_ALERT_TITLE", text.title),
        ("KODE_ALERT_TEXT", &text.body),
        ("KODE_SESSION_ID", session.id().as_str()),
        ("KODE_FOLDER", &folder),
    ];
    let ran = helper::output_with(command, &variables, LIMIT, MAX_OUTPUT).await;
    ran.map(drop).map_err(|error| failed("notifyCommand", &error))
}

fn failed(program: &str, error: &HelperFailure) -> String {
    format!("`{program}` {error}")
}
