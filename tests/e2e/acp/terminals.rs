//! Commands outside of the sandbox in the client's terminals, where the user's settings say so.
//!
//! Rule: the client's terminals are real processes. Its answers about a terminal's text never tell the end of the command,
//! which `terminal/wait_for_exit` is for.

use std::collections::HashMap;
use std::io::Read;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};

use kode_e2e::{AcpClient, Connection, LIMIT, Project, Reply, Script, call, results_of, say};
use serde_json::{Value, json};

use super::of_kind;

/// The terminals of a client, by their ids.
#[derive(Clone, Default)]
struct Terminals(Arc<Table>);

#[derive(Default)]
struct Table {
    terminals: Mutex<HashMap<String, ProcessTerminal>>,
    released: Condvar,
}

struct ProcessTerminal {
    process: Child,
    reader: Option<JoinHandle<()>>,
    text: Arc<Mutex<String>>,
    /// The request that waits for the end.
    waiting: Option<Value>,
}

impl Terminals {
    fn all(&self) -> MutexGuard<'_, HashMap<String, ProcessTerminal>> {
        self.0.terminals.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn release(&self, id: &str) {
        assert!(self.all().remove(id).is_some(), "{id} was released before");
        self.0.released.notify_all();
    }

    /// Waits until the server has released all: a request counts as received before it is carried out.
    fn wait_released(&self) {
        let (left, _) = self
            .0
            .released
            .wait_timeout_while(self.all(), LIMIT, |terminals| !terminals.is_empty())
            .unwrap_or_else(PoisonError::into_inner);
        assert!(left.is_empty(), "{} terminals were never released", left.len());
    }

    fn create(&self, params: &Value) -> Value {
        let words = |value: &Value| value.as_str().unwrap().to_owned();
        let mut command = Command::new(words(&params["command"]));
        command.args(params["args"].as_array().unwrap().iter().map(words));
        // The client's own environment has what no command is to see.
        command.env("ANTHROPIC_API_KEY", "test-key");
        command.current_dir(words(&params["cwd"])).stdin(Stdio::null());
        for variable in params["env"].as_array().unwrap() {
            command.env(words(&variable["name"]), words(&variable["value"]));
        }
        let (mut output, writer) = std::io::pipe().unwrap();
        command.stdout(writer.try_clone().unwrap()).stderr(writer);
        let process = command.spawn().unwrap();
        // It holds the writing end of the pipe.
        drop(command);
        let text = Arc::<Mutex<String>>::default();
        let shown = Arc::clone(&text);
        let reader = thread::spawn(move || {
            let mut bytes = [0; 4096];
            while let Ok(length @ 1..) = output.read(&mut bytes) {
                let piece = String::from_utf8_lossy(&bytes[..length]).replace('\n', "\r\n");
                shown.lock().unwrap().push_str(&piece);
            }
        });
        let id = format!("terminal-{}", process.id());
        let terminal = ProcessTerminal { process, reader: Some(reader), text, waiting: None };
        self.all().insert(id.clone(), terminal);
        json!({ "terminalId": id })
    }
}

impl ProcessTerminal {
    /// Answers the request that waits for the end, if the command has ended.
    fn report_end(&mut self, connection: &Connection) {
        let Some(status) = self.process.try_wait().unwrap() else { return };
        let signal = std::os::unix::process::ExitStatusExt::signal(&status).map(|number| number.to_string());
        if let Some(reader) = self.reader.take() {
            reader.join().unwrap();
        }
        if let Some(request) = self.waiting.take() {
            connection.answer(&request, json!({ "exitCode": status.code(), "signal": signal }));
        }
    }
}

impl Drop for ProcessTerminal {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// The user's settings, and a client of theirs with a session in the mode that allows everything.
fn opened(project: &Project, sandbox: &Value, has_terminals: bool) -> (AcpClient, String, Terminals) {
    let user = project.outside().join("user");
    std::fs::create_dir_all(user.join(".kode")).unwrap();
    std::fs::write(user.join(".kode/settings.json"), json!({ "sandbox": sandbox }).to_string()).unwrap();
    let client = project.acp_as(&[("HOME", user.to_str().unwrap())]);
    client.initialize(json!({ "terminal": has_terminals }));
    let terminals = Terminals::default();
    let creating = terminals.clone();
    client
        .on_request("terminal/create", move |_, request| Reply::Result(creating.create(&request["params"])));
    type Action = fn(&mut ProcessTerminal, &Connection, &Value) -> Reply;
    let methods: [(&str, Action); 3] = [
        ("terminal/output", |terminal, connection, _| {
            terminal.report_end(connection);
            Reply::Result(json!({ "output": *terminal.text.lock().unwrap(), "truncated": false }))
        }),
        ("terminal/wait_for_exit", |terminal, connection, request| {
            terminal.waiting = Some(request.clone());
            terminal.report_end(connection);
            Reply::Silence
        }),
        ("terminal/kill", |terminal, _, _| {
            terminal.process.kill().unwrap();
            Reply::Result(json!({}))
        }),
    ];
    for (method, action) in methods {
        let terminals = terminals.clone();
        client.on_request(method, move |connection, request| {
            let id = request["params"]["terminalId"].as_str().unwrap();
            action(terminals.all().get_mut(id).unwrap(), connection, request)
        });
    }
    let releasing = terminals.clone();
    client.on_request("terminal/release", move |_, request| {
        releasing.release(request["params"]["terminalId"].as_str().unwrap());
        Reply::Result(Value::Null)
    });
    let session = client.new_session();
    client.set_mode(&session, "bypassPermissions");
    (client, session, terminals)
}

fn running(command: &str) -> Script {
    let then = json!({ "command": "echo at ${PWD##*/}" });
    Script::default().otherwise([
        call("Bash", json!({ "command": command })),
        call("Bash", then),
        say("Ran."),
    ])
}

/// The settings with which nothing is sandboxed and commands run in terminals.
fn in_terminals() -> Value {
    json!({ "enabled": false, "clientTerminal": true })
}

/// The result of the first call, and whether it is an error.
fn first_result(project: &Project) -> (String, bool) {
    let request = project.model.requests().swap_remove(1);
    results_of(request["messages"].as_array().unwrap().last().unwrap()).swap_remove(0)
}

fn count(client: &AcpClient, method: &str) -> usize {
    client.look(|received| received.of(method).count())
}

#[test]
fn a_command_outside_of_the_sandbox_runs_in_a_terminal_that_its_call_shows() {
    // Each command ends once its terminal was shown.
    let project = Project::new(&Script::default().otherwise([
        call("Bash", json!({ "command": "mkdir sub; bash show.sh; read -r < pipe; cd sub; echo err >&2" })),
        call("Bash", json!({ "command": "read -r < ../pipe; echo at ${PWD##*/}" })),
        say("Ran."),
    ]));
    let pipe = project.path("pipe");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    project.write("show.sh", "echo \"key: [$ANTHROPIC_API_KEY]\"\n");
    let (client, session, terminals) = opened(&project, &in_terminals(), true);
    let updates = thread::scope(|scope| {
        let run = scope.spawn(|| client.run(&session, "run"));
        let mut shown = Vec::new();
        for _ in 0..2 {
            let update = client.wait_update(&session, "a terminal of a running command", |update| {
                update["status"] == "in_progress"
                    && update["content"][0]["type"] == "terminal"
                    && !shown.contains(&update["toolCallId"])
            });
            shown.push(update["toolCallId"].clone());
            std::fs::write(&pipe, "\n").unwrap();
        }
        run.join().unwrap()
    });
    let created = client.wait_request("terminal/create", 0);
    assert_eq!(created["params"]["cwd"], project.workspace().to_str().unwrap());
    assert_eq!(first_result(&project), ("key: []\nerr".to_owned(), false), "keys are empty there, too");
    assert_eq!(project.model.last_results(), [("at sub".to_owned(), false)], "the folder is carried over");

    let shown = of_kind(&updates, "tool_call_update");
    let completed: Vec<_> = shown
        .iter()
        .filter(|update| update["status"] == "completed")
        .map(|update| &update["content"])
        .filter(|content| content[0]["type"] == "terminal")
        .collect();
    assert_eq!((completed.len(), completed[0].as_array().unwrap().len()), (2, 1), "{updates:#?}");
    terminals.wait_released();
}

#[test]
fn a_command_in_the_background_runs_in_a_terminal_until_it_is_killed() {
    let start = json!({ "command": "echo begun; exec sleep 1000", "run_in_background": true });
    let script = Script::default().otherwise([
        call("Bash", start),
        call("KillShell", json!({ "task_id": "bash_1" })),
        say("Ended."),
    ]);
    let project = Project::new(&script);
    let (client, session, terminals) = opened(&project, &in_terminals(), true);
    client.run(&session, "run");
    let results = project.model.last_results();
    assert!(!results[0].1, "{results:?}");
    let _ = client.wait_request("terminal/kill", 0);
    terminals.wait_released();
}

#[test]
fn a_cancel_ends_the_command_in_its_terminal() {
    let project = Project::new(&running("echo begun; exec sleep 1000"));
    let (client, session, terminals) = opened(&project, &in_terminals(), true);
    let id = client.send_prompt(&session, "run");
    let _ = client.wait_request("terminal/output", 1);
    client.notify("session/cancel", json!({ "sessionId": session }));
    assert_eq!(client.await_answer(id).unwrap()["stopReason"], "cancelled");
    terminals.wait_released();
    assert_eq!(count(&client, "terminal/kill"), 1);
}

#[test]
fn a_terminal_that_comes_after_the_cancel_is_released() {
    let project = Project::new(&running("echo begun; exec sleep 1000"));
    let (client, session, terminals) = opened(&project, &in_terminals(), true);
    client.on_request("terminal/create", |_, _| Reply::Silence);
    let id = client.send_prompt(&session, "run");
    let request = client.wait_request("terminal/create", 0);
    client.notify("session/cancel", json!({ "sessionId": session }));
    assert_eq!(client.await_answer(id).unwrap()["stopReason"], "cancelled");
    client.answer(&request, terminals.create(&request["params"]));
    terminals.wait_released();
}

#[test]
fn an_excluded_command_runs_in_a_terminal_while_others_are_sandboxed() {
    let project = Project::new(&running("printf excluded"));
    let sandbox = json!({ "excludedCommands": ["printf:*"], "clientTerminal": true });
    let (client, session, _) = opened(&project, &sandbox, true);
    client.run(&session, "run");
    assert_eq!(first_result(&project), ("excluded".to_owned(), false));
    assert_eq!(count(&client, "terminal/create"), 1);
}

#[test]
fn a_client_that_refuses_a_terminal_is_named_to_the_model() {
    let project = Project::new(&running("echo from here"));
    let (client, session, _) = opened(&project, &in_terminals(), true);
    client.on_request("terminal/create", |_, _| Reply::Error(-32_000, "no terminal is free".to_owned()));
    client.run(&session, "run");
    let (text, is_error) = first_result(&project);
    assert!(is_error && text.contains("the client answered: no terminal is free"), "{text}");
    assert!(text.contains("sandbox.clientTerminal"), "{text}");
}

#[test]
fn nothing_runs_in_a_terminal_that_is_sandboxed_or_not_chosen_or_has_no_terminal() {
    for (sandbox, has_terminals) in [
        (json!({ "clientTerminal": true }), true),
        (json!({ "enabled": false }), true),
        (in_terminals(), false),
    ] {
        let project = Project::new(&running("echo from here"));
        let (client, session, _) = opened(&project, &sandbox, has_terminals);
        client.run(&session, "run");
        assert_eq!(first_result(&project), ("from here".to_owned(), false), "{sandbox}");
        assert_eq!(count(&client, "terminal/create"), 0, "{sandbox}");
    }
}
