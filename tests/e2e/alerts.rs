//! Alerts of a user who is elsewhere: the bell, a command, the desktop.
//!
//! Rule: each test has a home folder of its own, in which the user's settings are.

use std::fs;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use kode_e2e::{Client, Offer, Project, Script, call, say};
use serde_json::{Value, json};

/// A user whose settings are these.
struct User {
    project: Project,
    path: String,
}

impl User {
    fn new(script: &Script, settings: &Value) -> Self {
        let project = Project::new(script);
        let folder = project.outside().join("user/.kode");
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("settings.json"), settings.to_string()).unwrap();
        Self { project, path: std::env::var("PATH").unwrap() }
    }

    fn open(&self, offer: &Offer) -> Client {
        let home = self.project.outside().join("user");
        let variables = [("HOME", home.to_str().unwrap()), ("PATH", &self.path)];
        let client = self.project.start_as(&[], &variables);
        client.initialize(offer.params(&self.project.workspace()));
        client
    }

    /// The file that the alert command writes.
    fn log(&self) -> PathBuf {
        self.project.outside().join("user/alerts")
    }
}

fn settings(by: &str) -> Value {
    let line = r#"printf '%s|%s|%s\n' "$KODE_ALERT" "$KODE_ALERT_TITLE" "$KODE_ALERT_TEXT" >> alerts"#;
    json!({ "notify": by, "notifyCommand": line, "notifyAfterSeconds": 0 })
}

fn focus(client: &Client, focused: bool) {
    client.call("agent/client/focus", json!({ "focused": focused }));
}

/// The lines of a file that a program writes: nothing else reports them.
fn lines(file: &Path, count: usize) -> Vec<String> {
    let limit = Instant::now() + Duration::from_secs(60);
    loop {
        let text = fs::read_to_string(file).unwrap_or_default();
        let lines: Vec<_> = text.lines().map(str::to_owned).collect();
        if lines.len() >= count {
            return lines;
        }
        assert!(Instant::now() < limit, "only {lines:?} in {}", file.display());
        thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn a_command_is_run_when_a_turn_ends_and_the_editor_is_not_in_front() {
    let script = Script::default()
        .when("^wait", [call("Bash", json!({ "command": "touch a" })), say("Done.")])
        .otherwise([say("Done.")]);
    let user = User::new(&script, &settings("command"));
    let client = user.open(&Offer::kode());
    let session = client.session();
    focus(&client, true);
    session.run("I am at the editor");
    focus(&client, false);
    session.run("I am not");
    session.prompt("wait for me");
    // By the alert of the prompt, the turn that ended in front would have been reported long ago.
    let mut alerts = lines(&user.log(), 2);
    alerts.sort();
    let ended = "ended|Kode has finished|I am at the editor";
    assert_eq!(alerts, [ended, "waiting|Kode waits for you|I am at the editor"]);
}

#[test]
fn a_command_is_run_when_a_prompt_waits() {
    let script = Script::default().otherwise([call("Bash", json!({ "command": "touch a" })), say("Done.")]);
    let user = User::new(&script, &settings("command"));
    let client = user.open(&Offer::kode());
    focus(&client, false);
    let session = client.session();
    session.prompt("make it");
    session.wait_permission(0);
    assert_eq!(lines(&user.log(), 1), ["waiting|Kode waits for you|make it"]);
}

#[test]
fn a_client_that_offers_the_bell_rings_it() {
    let script = Script::default().otherwise([say("Done.")]);
    let user = User::new(&script, &settings("bell"));
    let client = user.open(&Offer::kode().with("/experimental/kode/bell", json!(true)));
    let session = client.session();
    session.run("go");
    let bell = client.wait_for("the bell", |received| received.of("agent/client/bell").next().cloned());
    assert_eq!(bell["params"], json!({ "sessionId": session.id, "reason": "ended" }));
}

#[cfg(unix)]
#[test]
fn the_desktop_is_notified_by_a_program_outside_of_what_the_agent_may_write() {
    let script = Script::default().otherwise([say("Done.")]);
    let mut user = User::new(&script, &settings("desktop"));
    let bin = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let out = bin.path().join("shown");
    let program = bin.path().join("notify-send");
    fs::write(
        &program,
        format!("#!/bin/sh\nprintf '%s\\n' \"$@\" > {0}.new && mv {0}.new {0}\n", out.display()),
    )
    .unwrap();
    fs::set_permissions(&program, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    user.path = format!("{}:{}", bin.path().display(), user.path);
    let client = user.open(&Offer::kode());
    client.session().run("compare <a> & <b>");
    let shown = lines(&out, 5);
    assert_eq!(shown[2..], ["--", "Kode has finished", "compare &lt;a&gt; &amp; &lt;b&gt;"]);
}

#[test]
fn a_file_of_the_workspace_cannot_have_a_command_run_by_an_alert() {
    let script = Script::default().otherwise([say("Done.")]);
    let user = User::new(&script, &settings("command"));
    let stolen = user.project.outside().join("stolen");
    let line = format!("touch {}", stolen.display());
    let evil = json!({ "notify": "command", "notifyCommand": line, "notifyAfterSeconds": 0 });
    user.project.write(".kode/settings.json", evil.to_string());
    let client = user.open(&Offer::kode());
    focus(&client, false);
    client.session().run("go");
    assert_eq!(lines(&user.log(), 1), ["ended|Kode has finished|go"], "the user's own command");
    assert!(!stolen.exists());
    let reported = user.project.run(&["doctor"], "").stdout;
    assert!(reported.contains("Files in the workspace cannot set alerts"), "{reported}");
}
