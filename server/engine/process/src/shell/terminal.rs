//! Commands in terminals of the client, instead of processes of our own.
//!
//! Rule: only commands of calls that run outside of the sandbox run there, where the user has chosen it. The output is the
//! text that the terminal holds at the end; on every way out the terminal is released, which ends what still runs in it.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use tokio::process::Command;
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;

use super::output::Capture;
use super::process::{RunObserver, TimeLimit};
use crate::outcome::{CapturedOutput, Exit};
use kode_base::ids::{CallId, SessionId};
use kode_base::paths::AbsPath;

/// The most bytes of output that a terminal is asked to keep: its end.
pub const MAX_OUTPUT: u64 = 1 << 20;
/// The time between two requests for the text of a terminal that has changed.
const LOOK_INTERVAL: Duration = Duration::from_millis(200);
/// The time between two requests where a terminal is quiet or holds much text: each answer has all of it.
const MAX_LOOK_INTERVAL: Duration = Duration::from_secs(1);
/// The bytes of text that are much.
const LONG_TEXT: usize = 64 << 10;
/// The line in place of output that the terminal has dropped before it was read.
const LOST: &str = "[... output is missing here: the terminal has dropped it ...]\n";
/// How long a command that was killed may take to end.
const KILL_GRACE: Duration = Duration::from_secs(2);
/// The end of a text by which it is found again in a later one, in bytes.
const OVERLAP: usize = 256;

/// The terminals of a client, by session.
pub trait TerminalProvider: Debug + Send + Sync {
    /// The terminals of one session; `None` where the client has none.
    fn of_session(&self, session: &SessionId) -> Option<Arc<dyn ClientTerminals>>;
}

/// The terminals of a client for one session.
#[async_trait]
pub trait ClientTerminals: Debug + Send + Sync {
    /// Whether the user's settings have commands run in them.
    async fn are_chosen(&self) -> bool;

    /// Starts a command in a new terminal.
    ///
    /// # Errors
    /// The client refused, is gone, or took too long.
    async fn create(&self, command: TerminalCommand) -> Result<Box<dyn ClientTerminal>, TerminalError>;
}

/// A terminal of a client. Dropping it has the client end the command and forget the terminal.
#[async_trait]
pub trait ClientTerminal: Send + Sync {
    /// The text that the terminal holds.
    ///
    /// # Errors
    /// As for [`ClientTerminals::create`].
    async fn output(&self) -> Result<TerminalOutput, TerminalError>;

    /// Waits until the command has ended, without a limit.
    ///
    /// # Errors
    /// As for [`ClientTerminals::create`].
    async fn ended(&self) -> Result<Exit, TerminalError>;

    /// Ends the command, and keeps the terminal.
    ///
    /// # Errors
    /// As for [`ClientTerminals::create`].
    async fn kill(&self) -> Result<(), TerminalError>;
}

/// A command for a terminal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TerminalCommand {
    /// The call that it belongs to.
    pub call: CallId,
    /// The program.
    pub program: String,
    /// Its arguments.
    pub arguments: Vec<String>,
    /// The variables that differ from the environment of this process; those that commands do not get are empty.
    pub variables: BTreeMap<String, String>,
    /// The folder it runs in.
    pub directory: AbsPath,
}

/// The text of a terminal.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TerminalOutput {
    /// The text.
    pub text: String,
    /// Whether its beginning is missing.
    pub is_cut: bool,
    /// How the command ended, if it has.
    pub exit: Option<Exit>,
}

/// The reason why a terminal of the client failed, for people.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct TerminalError(pub String);

impl TerminalCommand {
    /// A prepared command in the words of a terminal, whose environment is that of the client.
    pub(super) fn of(prepared: &Command, call: &CallId, directory: &AbsPath) -> Self {
        let prepared = prepared.as_std();
        let text = |text: &std::ffi::OsStr| text.to_string_lossy().into_owned();
        let given: BTreeMap<_, _> =
            prepared.get_envs().filter_map(|(name, value)| Some((name.to_os_string(), value?))).collect();
        let inherited: BTreeMap<_, _> = std::env::vars_os().collect();
        let withheld = inherited.keys().filter(|name| !given.contains_key(*name));
        let withheld = withheld.map(|name| (text(name), String::new()));
        let changed = given.iter().filter(|(name, value)| {
            inherited.get(*name).is_none_or(|inherited| inherited.as_os_str() != **value)
        });
        Self {
            call: call.clone(),
            program: text(prepared.get_program()),
            arguments: prepared.get_args().map(text).collect(),
            variables: withheld.chain(changed.map(|(name, value)| (text(name), text(value)))).collect(),
            directory: directory.clone(),
        }
    }
}

/// Runs a command in a terminal to its end, without `limit` for as long as it likes, handing on its text while it comes.
///
/// # Errors
/// [`TerminalError`]; the command may have begun then.
pub(super) async fn run(
    terminals: &dyn ClientTerminals,
    command: TerminalCommand,
    limit: Option<&TimeLimit>,
    capture: Capture,
    watch: &mut impl RunObserver,
    cancel: &CancellationToken,
) -> Result<(Exit, CapturedOutput), TerminalError> {
    let Some(terminal) = cancel.run_until_cancelled(terminals.create(command)).await else {
        return Ok((Exit::Cancelled, capture.finish(|_| {})));
    };
    let terminal = terminal?;
    watch.started();
    // Clients show the terminal from now on, before its command has written anything.
    watch.output("");
    let mut text = TerminalText { taken: String::new(), capture, watch };
    let exit = match text.take_in_until_end(&*terminal, limit, cancel).await? {
        Ok(exit) => exit,
        Err(stopped) => {
            // It may have ended by itself; what is left of it ends with the release.
            if let Err(error) = terminal.kill().await {
                tracing::info!(%error, "the client did not end a command in its terminal");
            }
            let _ = timeout(KILL_GRACE, terminal.ended()).await;
            stopped
        }
    };
    match terminal.output().await {
        Ok(output) => drop(text.take_in(&output, true)),
        Err(error) => text.push(&format!("[... the rest of the output could not be read: {error} ...]\n")),
    }
    let TerminalText { capture, watch, .. } = text;
    Ok((exit, capture.finish(|rest| watch.output(rest))))
}

/// The text of a terminal, read line by line: terminals mostly draw over the last line, so that one is read at the end.
struct TerminalText<'a, W> {
    /// The part of the terminal's text that was taken in.
    taken: String,
    capture: Capture,
    watch: &'a mut W,
}

impl<W: RunObserver> TerminalText<'_, W> {
    /// Takes in the text until the command has ended, or until it has to be stopped.
    async fn take_in_until_end(
        &mut self,
        terminal: &dyn ClientTerminal,
        limit: Option<&TimeLimit>,
        cancel: &CancellationToken,
    ) -> Result<Result<Exit, Exit>, TerminalError> {
        let mut ended = pin!(terminal.ended());
        let mut over = pin!(async {
            match limit {
                Some(limit) => limit.over().await,
                None => std::future::pending().await,
            }
        });
        let mut interval = LOOK_INTERVAL / 2;
        loop {
            let look = async {
                sleep(interval).await;
                terminal.output().await
            };
            let output = tokio::select! {
                biased;
                exit = &mut ended => return Ok(Ok(exit?)),
                () = cancel.cancelled() => return Ok(Err(Exit::Cancelled)),
                () = &mut over => return Ok(Err(Exit::TimedOut)),
                output = look => output?,
            };
            let is_new = self.take_in(&output, false);
            interval = match is_new {
                _ if output.text.len() > LONG_TEXT => MAX_LOOK_INTERVAL,
                true => LOOK_INTERVAL,
                false => (interval * 2).min(MAX_LOOK_INTERVAL),
            };
            if let Some(exit) = output.exit {
                return Ok(Ok(exit));
            }
        }
    }

    /// Takes in the new part of a text, without its last line unless this is the last text. Answers whether there is a new part.
    fn take_in(&mut self, output: &TerminalOutput, is_last: bool) -> bool {
        // The line ends of a terminal have a carriage return each.
        let mut now = output.text.replace("\r\n", "\n");
        if !is_last {
            now.truncate(now.rfind('\n').map_or(0, |end| end + 1));
        }
        let news = news(&self.taken, &now, output.is_cut);
        if news.is_empty() {
            return false;
        }
        self.push(&news);
        self.taken = now;
        true
    }

    fn push(&mut self, text: &str) {
        let text = self.capture.push(text.as_bytes());
        self.watch.output(&text);
    }
}

/// The part of a text that was not taken in before. Where a terminal has drawn over its text, it begins at the first difference.
fn news(taken: &str, now: &str, is_cut: bool) -> String {
    if let Some(rest) = now.strip_prefix(taken) {
        return rest.to_owned();
    }
    let start = taken.len().saturating_sub(OVERLAP);
    let end = (start..=taken.len()).find_map(|at| taken.get(at..)).unwrap_or_default();
    match now.rfind(end) {
        Some(at) => now[at + end.len()..].to_owned(),
        None if is_cut => format!("{LOST}{now}"),
        None => {
            let mut pairs = now.char_indices().zip(taken.chars());
            let difference = pairs.find(|((_, new), old)| new != old);
            difference.map_or_else(String::new, |((at, _), _)| now[at..].to_owned())
        }
    }
}

#[cfg(test)]
mod tests;
