//! Tests of the shell: what commands get, how they end, and the rest of them.
//!
//! Rule: a test waits for what a command writes or for a process to be gone, never for a time.

use std::sync::Arc;

use rustix::process::{Pid, Signal};
use tokio::sync::{Semaphore, mpsc};

use super::*;
use kode_base::ids::TaskId;
use kode_base::paths::real_path;

const LONG: Duration = Duration::from_secs(60);

fn shell() -> (tempfile::TempDir, Shell) {
    let folder = tempfile::tempdir().unwrap();
    let cwd = AbsPath::new(real_path(folder.path()).unwrap()).unwrap();
    (folder, Shell::new(cwd))
}

fn spec(shell: &Shell, command: &str, timeout: Duration) -> CommandSpec {
    let (command, directory) = (command.to_owned(), shell.directory());
    CommandSpec { command, shell: CommandShell::Bash, directory, timeout, sandbox: None, call: None }
}

async fn run(shell: &Shell, command: &str) -> CommandOutcome {
    shell.run(spec(shell, command, LONG), |_| (), &CancellationToken::new()).await.unwrap()
}

async fn text(shell: &Shell, command: &str) -> String {
    run(shell, command).await.output.text
}

/// Runs a command that prints the ids of processes, cancels it when the line `ready` has come, and gives the
/// outcome.
async fn cancelled_when_ready(shell: &Shell, command: &str) -> CommandOutcome {
    let cancel = CancellationToken::new();
    let mut seen = String::new();
    let on_output = |text: &str| {
        seen.push_str(text);
        if seen.contains("ready\n") {
            cancel.cancel();
        }
    };
    shell.run(spec(shell, command, LONG), on_output, &cancel).await.unwrap()
}

/// Whether a process runs; one that is dead and not yet collected does not.
fn runs(id: &str) -> bool {
    let Ok(stat) = std::fs::read_to_string(format!("/proc/{id}/stat")) else { return false };
    let state = stat.rsplit(')').next().unwrap().trim_start();
    !state.starts_with(['Z', 'X'])
}

/// A signal is sent before the result is given, but the system may take a moment to carry it out.
async fn assert_gone(id: &str) {
    for _ in 0..500 {
        if !runs(id) {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("process {id} is still running");
}

fn id_after<'a>(text: &'a str, label: &str) -> &'a str {
    let rest = text.split_once(label).unwrap().1;
    rest.split_once('\n').unwrap().0
}

#[tokio::test]
async fn both_streams_come_in_the_order_they_were_written() {
    let (_folder, shell) = shell();
    let command = "for i in 1 2 3 4 5; do echo out $i; echo err $i >&2; done";
    let expected: String = (1..=5).map(|i| format!("out {i}\nerr {i}\n")).collect();
    assert_eq!(text(&shell, command).await, expected);
}

#[tokio::test]
async fn exit_codes_and_signals_are_distinguished() {
    let (_folder, shell) = shell();
    assert_eq!(run(&shell, "exit 3").await.exit, Exit::Code(3));
    assert_eq!(run(&shell, "kill -9 $$").await.exit, Exit::Signal(9));
}

#[tokio::test]
async fn output_is_handed_on_while_the_command_runs() {
    let (folder, shell) = shell();
    let proceed = folder.path().join("go-on");
    let on_output = |text: &str| {
        if text.contains("first") {
            std::fs::write(&proceed, "").unwrap();
        }
    };
    let command = "echo first; until [ -e go-on ]; do sleep 0.01; done; echo second";
    let outcome = shell.run(spec(&shell, command, LONG), on_output, &CancellationToken::new()).await.unwrap();
    assert_eq!(outcome.output.text, "first\nsecond\n");
}

#[tokio::test]
async fn there_is_no_standard_input() {
    let (_folder, shell) = shell();
    assert_eq!(text(&shell, "cat; echo done").await, "done\n");
}

#[tokio::test]
async fn cancelling_ends_the_command_with_its_children_and_keeps_the_output() {
    let (_folder, shell) = shell();
    let command = "sleep 600 & echo child $!; echo shell $$; echo ready; wait";
    let outcome = cancelled_when_ready(&shell, command).await;
    assert_eq!(outcome.exit, Exit::Cancelled);
    assert!(outcome.output.text.ends_with("ready\n"), "{}", outcome.output.text);
    assert_gone(id_after(&outcome.output.text, "child ")).await;
    assert_gone(id_after(&outcome.output.text, "shell ")).await;
}

#[tokio::test]
async fn a_command_may_clean_up_when_it_is_asked_to_end() {
    let (_folder, shell) = shell();
    let command = "trap 'echo cleaned; exit 0' TERM; echo ready; while :; do :; done";
    let outcome = cancelled_when_ready(&shell, command).await;
    assert_eq!((outcome.exit, &*outcome.output.text), (Exit::Cancelled, "ready\ncleaned\n"));
}

#[tokio::test]
async fn a_command_that_ignores_the_request_to_end_is_killed() {
    let (_folder, shell) = shell();
    let command = "trap '' TERM; echo shell $$; echo ready; while :; do sleep 0.01; done";
    let outcome = cancelled_when_ready(&shell, command).await;
    assert_eq!(outcome.exit, Exit::Cancelled);
    assert_gone(id_after(&outcome.output.text, "shell ")).await;
}

#[tokio::test]
async fn a_command_that_takes_too_long_is_stopped_and_its_output_kept() {
    let (_folder, shell) = shell();
    let command = "echo child $$; sleep 600";
    let limit = Duration::from_millis(300);
    let outcome = shell.run(spec(&shell, command, limit), |_| (), &CancellationToken::new()).await.unwrap();
    assert_eq!(outcome.exit, Exit::TimedOut);
    assert_gone(id_after(&outcome.output.text, "child ")).await;
}

#[tokio::test]
async fn background_jobs_do_not_outlive_the_command() {
    let (_folder, shell) = shell();
    let outcome = run(&shell, "sleep 600 & echo child $!").await;
    assert_eq!(outcome.exit, Exit::Code(0));
    assert_gone(id_after(&outcome.output.text, "child ")).await;
}

#[tokio::test]
async fn a_process_that_left_the_group_with_the_pipe_does_not_hold_up_the_result() {
    let (_folder, shell) = shell();
    let command = "setsid sh -c 'echo child $$; echo > started; exec sleep 600' & until [ -e started ]; do sleep 0.01; done";
    let outcome = tokio::time::timeout(LONG, run(&shell, command)).await.unwrap();
    assert_eq!(outcome.exit, Exit::Code(0));
    let child = id_after(&outcome.output.text, "child ").parse().unwrap();
    rustix::process::kill_process(Pid::from_raw(child).unwrap(), Signal::KILL).unwrap();
}

#[tokio::test]
async fn what_a_process_substitution_still_writes_is_kept() {
    let (_folder, shell) = shell();
    assert_eq!(text(&shell, "echo seen > >(sed s/seen/changed/)").await, "changed\n");
}

#[tokio::test]
async fn dropping_the_future_kills_the_group() {
    let (_folder, shell) = shell();
    let shell = Arc::new(shell);
    let (sender, mut output) = mpsc::unbounded_channel();
    let task = tokio::spawn({
        let shell = Arc::clone(&shell);
        async move {
            let on_output = move |text: &str| sender.send(text.to_owned()).unwrap();
            let command = "sleep 600 & echo child $!; echo shell $$; wait";
            shell.run(spec(&shell, command, LONG), on_output, &CancellationToken::new()).await
        }
    });
    let mut seen = String::new();
    while !(seen.contains("shell ") && seen.ends_with('\n')) {
        seen.push_str(&output.recv().await.unwrap());
    }
    task.abort();
    assert!(task.await.unwrap_err().is_cancelled());
    assert_gone(id_after(&seen, "child ")).await;
    assert_gone(id_after(&seen, "shell ")).await;
}

#[tokio::test]
async fn the_folder_is_carried_over_and_the_environment_is_not() {
    let (_folder, shell) = shell();
    let home = shell.directory();
    let outcome = run(&shell, "mkdir -p \"it's a\"; cd \"it's a\"; export LEFT=1; false").await;
    assert_eq!(outcome.directory, home.join("it's a"));
    assert_eq!(text(&shell, "pwd; echo ${LEFT-unset}").await, format!("{home}/it's a\nunset\n"));
    run(&shell, "cd ..; exit 4").await;
    assert_eq!(shell.directory(), home);
    run(&shell, "(cd /); set -eux -o noclobber; cd /; false").await;
    assert_eq!(shell.directory().as_path(), Path::new("/"));
    assert_eq!(shell.return_home(), home);
    assert_eq!(text(&shell, "pwd").await, format!("{home}\n"));
}

#[tokio::test]
async fn nothing_of_how_commands_are_run_shows_in_their_output() {
    let (_folder, shell) = shell();
    let cases = [
        ("nosuch-program", "bash: line 1: nosuch-program: command not found\n"),
        ("echo $# $0", "0 bash\n"),
        ("set -x; cd .", "++ cd .\n"),
        (
            "echo a\nif then",
            "a\nbash: eval: line 2: syntax error near unexpected token `then'\nbash: eval: line 2: `if then'\n",
        ),
    ];
    for (command, expected) in cases {
        assert_eq!(text(&shell, command).await, expected, "{command}");
    }
}

#[tokio::test]
async fn a_folder_that_is_gone_is_said_so_and_left() {
    let (folder, shell) = shell();
    run(&shell, "mkdir sub; cd sub").await;
    std::fs::remove_dir(folder.path().join("sub")).unwrap();
    let error = shell.run(spec(&shell, "pwd", LONG), |_| (), &CancellationToken::new()).await.unwrap_err();
    assert!(matches!(&error, ShellError::NoDirectory { gone, .. } if gone.file_name() == "sub"), "{error}");
    assert_eq!(run(&shell, "true").await.exit, Exit::Code(0));
}

#[tokio::test]
async fn commands_know_that_nobody_is_at_a_terminal() {
    let (_folder, shell) = shell();
    assert_eq!(text(&shell, "echo $TERM $PAGER $GIT_TERMINAL_PROMPT").await, "dumb cat 0\n");
}

#[test]
fn a_shell_elsewhere_withholds_the_same() {
    let (folder, shell) = shell();
    let place = AbsPath::new(folder.path()).unwrap().join("sub");
    let shell = shell.withholding(Secrets::new(vec![Secret::new("sk-1")])).elsewhere(place.clone());
    let all = shell.secrets.all();
    let withheld: Vec<_> = all.iter().map(Secret::expose).collect();
    assert_eq!((shell.directory(), withheld.as_slice()), (place, ["sk-1"].as_slice()));
}

#[test]
fn keys_are_withheld_from_commands() {
    let inherited =
        ["PATH", "ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "OPENAI_API_KEY", "KODE_LS_HOME", "TERM"];
    let inherited = inherited.map(|name| (OsString::from(name), OsString::from("value")));
    let inherited = inherited.into_iter().chain([("MY_KEY".into(), "sk-1".into())]);
    let given: Vec<_> = environment(inherited, &[Secret::new("sk-1")]).map(|(name, _)| name).collect();
    assert_eq!(given, ["PATH", "TERM", "GIT_TERMINAL_PROMPT", "PAGER", "TERM"]);
}

#[tokio::test]
async fn a_command_runs_in_the_folder_it_was_settled_for() {
    let (_folder, shell) = shell();
    let home = shell.directory();
    let settled = spec(&shell, "pwd", LONG);
    run(&shell, "mkdir sub; cd sub").await;
    let outcome = shell.run(settled, |_| (), &CancellationToken::new()).await.unwrap();
    assert_eq!(outcome.output.text, format!("{home}\n"));
}

/// A shell in the folder, for background commands, whose output is kept in `output` beside it.
fn shell_with_outputs() -> (tempfile::TempDir, Arc<Shell>) {
    let (folder, shell) = shell();
    std::fs::create_dir(folder.path().join("work")).unwrap();
    let outputs = Outputs::new(shell.directory().join("output"));
    let tasks = Tasks::new(Some(Arc::new(outputs)), Arc::new(Semaphore::new(MAX_TASKS_OVERALL)));
    let shell = Shell::new(shell.directory().join("work")).with_tasks(Arc::new(tasks));
    (folder, Arc::new(shell))
}

async fn start(shell: &Arc<Shell>, command: &str) -> Result<Arc<ShellTask>, StartError> {
    let call = Some(CallId::generate());
    shell.start(CommandSpec { call, ..spec(shell, command, LONG) }, command.to_owned()).await
}

/// Waits until the output holds `wanted`; gives all of it.
async fn written(shell: &Shell, task: &ShellTask, wanted: &str) -> String {
    let mut text = String::new();
    loop {
        tokio::time::timeout(LONG, task.news()).await.unwrap();
        let seen = shell.tasks().look(task);
        text.push_str(&seen.output.text);
        if text.contains(wanted) {
            return text;
        }
        assert_eq!(seen.state, TaskState::Running, "it ended with {text:?}");
    }
}

#[tokio::test]
async fn a_background_command_runs_on_beside_others_and_moves_nothing() {
    let (_folder, shell) = shell_with_outputs();
    let task = start(
        &shell,
        "cd /; echo begun; until [ -e \"$OLDPWD/go-on\" ]; do sleep 0.01; done; echo over; exit 3",
    )
    .await
    .unwrap();
    assert_eq!(written(&shell, &task, "begun\n").await, "begun\n");
    assert!(!task.has_ended());
    assert_eq!(run(&shell, "touch go-on").await.exit, Exit::Code(0));
    assert_eq!(written(&shell, &task, "over\n").await, "over\n");
    task.until_ended().await;
    let seen = shell.tasks().look(&task);
    assert_eq!((seen.state, seen.output.text.as_str()), (TaskState::Ended(TaskEnd::Exited { code: 3 }), ""));
    let kept = std::fs::read_to_string(shell.tasks().outputs().unwrap().path(task.call())).unwrap();
    assert_eq!(kept, "begun\nover\n");
    assert!(shell.directory().file_name() == "work" && shell.tasks().running().is_empty());
}

#[tokio::test]
async fn killing_ends_a_background_command_with_its_children() {
    let (_folder, shell) = shell_with_outputs();
    let task = start(&shell, "trap '' TERM; sleep 600 & echo child $!; echo shell $$; wait; sleep 600")
        .await
        .unwrap();
    let text = written(&shell, &task, "shell ").await;
    assert!(task.kill().await);
    assert_eq!(shell.tasks().look(&task).state, TaskState::Ended(TaskEnd::Killed));
    assert_gone(id_after(&text, "child ")).await;
    assert_gone(id_after(&text, "shell ")).await;
    assert!(!task.kill().await, "it had ended before");
}

#[tokio::test]
async fn background_commands_end_with_their_session_and_none_is_started_after() {
    let (_folder, shell) = shell_with_outputs();
    let task = start(&shell, "echo shell $$; sleep 600").await.unwrap();
    let text = written(&shell, &task, "shell ").await;
    shell.tasks().close();
    shell.tasks().closed().await;
    assert_eq!(shell.tasks().look(&task).state, TaskState::Ended(TaskEnd::WithSession));
    assert_gone(id_after(&text, "shell ")).await;
    assert!(matches!(start(&shell, "true").await, Err(StartError::Closed)));
}

#[tokio::test]
async fn there_are_never_too_many_background_commands() {
    let overall = Arc::new(Semaphore::new(MAX_TASKS + 1));
    let shells: Vec<_> = (0..2)
        .map(|_| {
            let (folder, shell) = shell();
            (folder, Arc::new(shell.with_tasks(Arc::new(Tasks::new(None, Arc::clone(&overall))))))
        })
        .collect();
    let (one, other) = (&shells[0].1, &shells[1].1);
    let mut tasks = Vec::new();
    for _ in 0..MAX_TASKS {
        tasks.push(start(one, "sleep 600").await.unwrap());
    }
    let error = start(one, "true").await.unwrap_err().to_string();
    assert!(error.contains("bash_1 (`sleep 600`)") && error.contains("bash_4 (`sleep 600`)"), "{error}");
    tasks.push(start(other, "sleep 600").await.unwrap());
    let error = start(other, "true").await.unwrap_err();
    assert!(matches!(&error, StartError::TooManyOverall { running } if running.len() == 1), "{error}");
    tasks[0].kill().await;
    let fifth = start(other, "sleep 600").await.unwrap();
    assert_eq!(fifth.id().as_str(), "bash_2", "what was refused takes no number");
    for (_, shell) in &shells {
        shell.tasks().close();
        shell.tasks().closed().await;
    }
}

#[tokio::test]
async fn what_could_not_be_started_is_said_and_leaves_nothing() {
    let (folder, shell) = shell_with_outputs();
    std::fs::remove_dir(folder.path().join("work")).unwrap();
    let error = start(&shell, "true").await.unwrap_err();
    assert!(matches!(error, StartError::Shell(ShellError::NoDirectory { .. })), "{error}");
    assert!(shell.tasks().find("bash_1").is_none());
}

#[tokio::test]
async fn what_happens_to_background_commands_is_reported_in_order_and_once() {
    let (_folder, shell) = shell_with_outputs();
    let (sender, mut reports) = mpsc::unbounded_channel();
    shell.tasks().observe(move |report| sender.send(report).unwrap());
    shell.tasks().count_from(6);
    let task = start(&shell, "exit 1").await.unwrap();
    task.until_ended().await;
    let (id, end) = (TaskId::numbered(7), TaskEnd::Exited { code: 1 });
    let started = TaskReport::Started { task: id.clone(), call: task.call().clone(), title: "exit 1".into() };
    assert_eq!(reports.recv().await, Some(started));
    assert_eq!(reports.recv().await, Some(TaskReport::Ended { task: id.clone(), end }));
    for _ in 0..2 {
        drop(shell.tasks().look(&task));
    }
    assert_eq!(reports.recv().await, Some(TaskReport::Seen { task: id }));
    assert!(reports.try_recv().is_err());
}

/// Begins a command that a caller waits for; `seen` gets what it writes.
fn begin_movable(
    shell: &Arc<Shell>,
    (command, call, limit): (&str, &str, Duration),
    cancel: &CancellationToken,
) -> (tokio::task::JoinHandle<Result<ForegroundEnd, ShellError>>, mpsc::UnboundedReceiver<String>) {
    let spec = CommandSpec { call: Some(CallId::from_external(call)), ..spec(shell, command, limit) };
    let (sender, seen) = mpsc::unbounded_channel();
    let (shell, cancel, title) = (Arc::clone(shell), cancel.clone(), command.to_owned());
    let on_output = move |text: &str| drop(sender.send(text.to_owned()));
    (tokio::spawn(async move { shell.run_movable(spec, title, on_output, &cancel).await }), seen)
}

async fn until_seen(seen: &mut mpsc::UnboundedReceiver<String>, text: &str) {
    let mut all = String::new();
    while !all.contains(text) {
        all.push_str(&seen.recv().await.unwrap());
    }
}

#[tokio::test]
async fn a_moved_command_is_the_same_process_without_a_limit_and_its_caller_s_cancel() {
    let (_folder, shell) = shell_with_outputs();
    let cancel = CancellationToken::new();
    let command = "cd /; echo begun $$; until [ -e \"$OLDPWD/go-on\" ]; do sleep 0.01; done; echo over $$";
    let (running, mut seen) = begin_movable(&shell, (command, "call_1", Duration::from_millis(400)), &cancel);
    until_seen(&mut seen, "begun").await;
    let task = shell.tasks().move_to_background(&CallId::from_external("call_1")).unwrap();
    let ForegroundEnd::Moved(moved) = running.await.unwrap().unwrap() else { panic!("it was moved") };
    assert!(Arc::ptr_eq(&task, &moved));
    cancel.cancel();
    let first = shell.tasks().look(&task).output.text;
    let process = id_after(&first, "begun ").to_owned();
    // It outlives the time that it was given: another command takes longer than that.
    run(&shell, "sleep 0.6").await;
    assert!(!task.has_ended() && runs(&process));
    run(&shell, "touch go-on").await;
    task.until_ended().await;
    let last = shell.tasks().look(&task);
    assert_eq!(last.state, TaskState::Ended(TaskEnd::Exited { code: 0 }));
    assert_eq!(last.output.text, format!("over {process}\n"));
    let kept = std::fs::read_to_string(shell.tasks().outputs().unwrap().path(task.call())).unwrap();
    assert_eq!(kept, format!("{first}over {process}\n"));
    assert_eq!(shell.directory().file_name(), "work", "it moves nothing");
}

#[tokio::test]
async fn a_command_that_is_not_moved_ends_as_before_and_cannot_be_moved_then() {
    let (_folder, shell) = shell_with_outputs();
    let call = CallId::from_external("call_1");
    let cancel = CancellationToken::new();
    let (running, _seen) =
        begin_movable(&shell, ("mkdir sub; cd sub; printf a; exit 4", "call_1", LONG), &cancel);
    let ForegroundEnd::Ended(outcome) = running.await.unwrap().unwrap() else { panic!("nothing moved it") };
    assert_eq!((outcome.exit, outcome.output.text.as_str()), (Exit::Code(4), "a"));
    assert_eq!(outcome.directory.file_name(), "sub");
    assert_eq!(shell.directory(), outcome.directory);
    assert!(matches!(shell.tasks().move_to_background(&call), Err(MoveError::NotRunning(_))));
    assert!(!shell.tasks().outputs().unwrap().path(&call).as_path().exists(), "short output is in no file");

    let (running, mut seen) = begin_movable(&shell, ("echo ready; sleep 600", "call_2", LONG), &cancel);
    until_seen(&mut seen, "ready").await;
    cancel.cancel();
    let ForegroundEnd::Ended(outcome) = running.await.unwrap().unwrap() else { panic!("it was cancelled") };
    assert_eq!(outcome.exit, Exit::Cancelled);
    // The shell names the signal where its child has ended before it got its own.
    assert!(outcome.output.text.starts_with("ready\n"), "{:?}", outcome.output.text);

    let never = CancellationToken::new();
    let (running, mut seen) = begin_movable(&shell, ("echo shell $$; sleep 600", "call_3", LONG), &never);
    let mut text = String::new();
    while !text.contains('\n') {
        text.push_str(&seen.recv().await.unwrap());
    }
    running.abort();
    assert_gone(id_after(&text, "shell ")).await;
    let call = CallId::from_external("call_3");
    assert!(matches!(shell.tasks().move_to_background(&call), Err(MoveError::NotRunning(_))));
}

#[tokio::test]
async fn long_output_of_a_moved_command_is_in_the_file_from_its_first_character() {
    let (_folder, shell) = shell_with_outputs();
    let command =
        "seq 1 20000; printf half; until [ -e go-on ]; do sleep 0.01; done; echo whole; printf '\\360'";
    let (running, mut seen) = begin_movable(&shell, (command, "call_1", LONG), &CancellationToken::new());
    until_seen(&mut seen, "half").await;
    let task = shell.tasks().move_to_background(&CallId::from_external("call_1")).unwrap();
    drop(running.await.unwrap().unwrap());
    assert!(shell.tasks().look(&task).output.cut > 0);
    run(&shell, "touch go-on").await;
    task.until_ended().await;
    let kept = std::fs::read_to_string(shell.tasks().outputs().unwrap().path(task.call())).unwrap();
    let numbers: String = (1..=20_000).map(|number| format!("{number}\n")).collect();
    assert!(kept == format!("{numbers}halfwhole\n\u{fffd}"), "{} bytes", kept.len());
}

#[tokio::test]
async fn where_there_is_no_place_in_the_background_a_command_runs_on_in_the_foreground() {
    let (_folder, shell) = shell_with_outputs();
    for _ in 0..MAX_TASKS {
        start(&shell, "sleep 600").await.unwrap();
    }
    let (running, mut seen) =
        begin_movable(&shell, ("echo up; sleep 0.2; echo over", "call_1", LONG), &CancellationToken::new());
    until_seen(&mut seen, "up").await;
    let error = shell.tasks().move_to_background(&CallId::from_external("call_1")).unwrap_err();
    assert!(
        matches!(&error, MoveError::NoPlace(StartError::TooMany { running }) if running.len() == MAX_TASKS),
        "{error}"
    );
    let ForegroundEnd::Ended(outcome) = running.await.unwrap().unwrap() else { panic!("nothing moved it") };
    assert_eq!((outcome.exit, outcome.output.text.as_str()), (Exit::Code(0), "up\nover\n"));
    shell.tasks().close();
    shell.tasks().closed().await;
}
