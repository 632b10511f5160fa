//! Commands in terminals of a client that is played here.
//!
//! Rule: time is the runtime's own and moves only where all tasks wait.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use kode_base::command_shell::CommandShell;
use kode_base::ids::CallId;
use kode_base::paths::AbsPath;
use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::{ClientTerminal, ClientTerminals, TerminalCommand, TerminalError, TerminalOutput, news};
use crate::outcome::Exit;
use crate::shell::{CommandOutcome, CommandSpec, ForegroundEnd, Shell, ShellError};

/// A client whose terminals show these texts, one a look, and end then; without an exit they end by a kill alone.
#[derive(Debug, Default)]
struct PlayedClient {
    is_chosen: bool,
    texts: Vec<TerminalOutput>,
    exit: Option<Exit>,
    /// Whether it refuses to end commands.
    is_stubborn: bool,
    calls: Arc<Mutex<Vec<String>>>,
    commands: Mutex<Vec<TerminalCommand>>,
}

struct PlayedTerminal {
    texts: Mutex<Vec<TerminalOutput>>,
    exit: Option<Exit>,
    is_stubborn: bool,
    killed: Notify,
    calls: Arc<Mutex<Vec<String>>>,
}

#[async_trait]
impl ClientTerminals for PlayedClient {
    async fn are_chosen(&self) -> bool {
        self.is_chosen
    }

    async fn create(&self, command: TerminalCommand) -> Result<Box<dyn ClientTerminal>, TerminalError> {
        self.commands.lock().push(command);
        if self.texts.is_empty() {
            return Err(TerminalError("no terminal is free".to_owned()));
        }
        let texts = Mutex::new(self.texts.iter().rev().cloned().collect());
        let (calls, is_stubborn) = (Arc::clone(&self.calls), self.is_stubborn);
        Ok(Box::new(PlayedTerminal { texts, exit: self.exit, is_stubborn, killed: Notify::new(), calls }))
    }
}

#[async_trait]
impl ClientTerminal for PlayedTerminal {
    async fn output(&self) -> Result<TerminalOutput, TerminalError> {
        let mut texts = self.texts.lock();
        let last = texts.len() == 1;
        let shown = if last { texts.first().cloned() } else { texts.pop() };
        let shown = shown.unwrap_or_default();
        Ok(TerminalOutput { exit: self.exit.filter(|_| last), ..shown })
    }

    async fn ended(&self) -> Result<Exit, TerminalError> {
        self.killed.notified().await;
        Ok(Exit::Signal(9))
    }

    async fn kill(&self) -> Result<(), TerminalError> {
        self.calls.lock().push("kill".to_owned());
        if self.is_stubborn {
            return Err(TerminalError("there is no such terminal".to_owned()));
        }
        self.killed.notify_one();
        Ok(())
    }
}

impl Drop for PlayedTerminal {
    fn drop(&mut self) {
        self.calls.lock().push("release".to_owned());
    }
}

fn shown(text: &str) -> TerminalOutput {
    TerminalOutput { text: text.to_owned(), ..TerminalOutput::default() }
}

fn spec(timeout: u64) -> CommandSpec {
    CommandSpec {
        command: "make".to_owned(),
        shell: CommandShell::Bash,
        directory: AbsPath::new(std::env::temp_dir()).unwrap(),
        timeout: Duration::from_secs(timeout),
        sandbox: None,
        call: Some(CallId::from_external("call_1")),
    }
}

async fn run(client: &Arc<PlayedClient>, spec: CommandSpec) -> Result<CommandOutcome, ShellError> {
    let terminals = Arc::clone(client) as Arc<dyn ClientTerminals>;
    let shell = Arc::new(Shell::new(spec.directory.clone()).with_terminals(Some(terminals)));
    let cancel = CancellationToken::new();
    match shell.run_movable(spec, "make".to_owned(), |_| {}, &cancel).await? {
        ForegroundEnd::Ended(outcome) => Ok(*outcome),
        ForegroundEnd::Moved(task) => panic!("{task} was not moved"),
    }
}

#[tokio::test(start_paused = true)]
async fn a_command_of_a_call_runs_in_a_terminal_of_the_client_and_gives_what_it_shows() {
    let texts = ["a\r\n", "a\r\nb 10%", "a\r\nb 90%", "a\r\nb done\r\nc"].map(shown).to_vec();
    let client = Arc::new(PlayedClient {
        is_chosen: true,
        texts,
        exit: Some(Exit::Code(3)),
        ..PlayedClient::default()
    });
    let outcome = run(&client, spec(60)).await.unwrap();
    assert_eq!((outcome.exit, outcome.output.text.as_str()), (Exit::Code(3), "a\nb done\nc"));
    let commands = client.commands.lock();
    assert!(
        commands[0].program.ends_with("bash") && commands[0].arguments.contains(&"make".to_owned()),
        "{commands:?}"
    );
    assert_eq!(commands[0].variables.get("GIT_TERMINAL_PROMPT").map(String::as_str), Some("0"));
    assert_eq!(*client.calls.lock(), ["release"]);
}

#[tokio::test(start_paused = true)]
async fn a_command_that_takes_too_long_is_killed_in_its_terminal_and_keeps_its_text() {
    let client = Arc::new(PlayedClient {
        is_chosen: true,
        texts: vec![shown("begun\nhalf")],
        ..PlayedClient::default()
    });
    let before = Instant::now();
    let outcome = run(&client, spec(60)).await.unwrap();
    assert_eq!((outcome.exit, outcome.output.text.as_str()), (Exit::TimedOut, "begun\nhalf"));
    assert_eq!(before.elapsed().as_secs(), 60);
    assert_eq!(*client.calls.lock(), ["kill", "release"]);
}

#[tokio::test(start_paused = true)]
async fn a_command_that_its_client_does_not_end_is_stopped_all_the_same() {
    let texts = vec![shown("begun\n")];
    let client =
        Arc::new(PlayedClient { is_chosen: true, texts, is_stubborn: true, ..PlayedClient::default() });
    let outcome = run(&client, spec(60)).await.unwrap();
    assert_eq!((outcome.exit, outcome.output.text.as_str()), (Exit::TimedOut, "begun\n"));
    assert_eq!(*client.calls.lock(), ["kill", "release"]);
}

#[tokio::test(start_paused = true)]
async fn a_client_that_gives_no_terminal_is_named_with_its_reason() {
    let client = Arc::new(PlayedClient { is_chosen: true, ..PlayedClient::default() });
    let error = run(&client, spec(60)).await.unwrap_err();
    assert_eq!(error.to_string(), "the terminal of the client failed: no terminal is free");
}

#[test]
fn each_part_of_a_text_is_taken_in_once() {
    let long = "x".repeat(400);
    for (taken, now, is_cut, expected) in [
        ("", "a\n", false, "a\n"),
        ("a\n", "a\nb\n", false, "b\n"),
        ("a\n", "a\n", false, ""),
        ("one\ntwo\n", "two\nthree\n", true, "two\nthree\n"),
        (&format!("{long}\nend\n"), "xx\nend\nnew\n", true, "xx\nend\nnew\n"),
        (&format!("{long}{long}\nend\n"), &format!("{long}\nend\nnew\n"), true, "new\n"),
        ("name 10%\n", "name 20%\n", false, "20%\n"),
        ("ü\n", "ö\n", false, "ö\n"),
        ("a\nb\n", "a\n", false, ""),
    ] {
        let lost = if is_cut && expected == now { super::LOST } else { "" };
        assert_eq!(news(taken, now, is_cut), format!("{lost}{expected}"), "{taken:?} {now:?}");
    }
}
