//! The helper as the server starts it: a policy on standard input, and its end when the server is gone.
//!
//! Rule: whatever is wrong with the request, nothing is run.

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};

use kode_e2e::{Project, Script, binary, call, say};
use serde_json::{Value, json};

use super::KINDS;
use super::fixture::{Fixture, User, collect, send, wait_until_gone};

fn request(fixture: &Fixture, kind: &str) -> Value {
    for folder in ["session/tmp", "session/command"] {
        fs::create_dir_all(fixture.path(folder)).unwrap();
    }
    let kind = match kind {
        "bubblewrap" => json!({ "name": "bubblewrap", "program": "/usr/bin/bwrap" }),
        other => json!({ "name": other }),
    };
    json!({
        "policy": {
            "kind": kind,
            "writable": [fixture.path("ws")],
            "scratch": fixture.path("session/tmp"),
            "readOnly": [],
            "hidden": [fixture.path("home/.ssh")],
            "home": fixture.path("home"),
            "network": { "name": "off" },
            "limits": { "processes": 1000, "openFiles": 1000, "fileSize": 1_000_000 },
            "input": "none",
        },
        "control": fixture.path("session/command"),
    })
}

fn start(fixture: &Fixture, command: &[&str]) -> Child {
    let mut prepared = fixture.program(&small_program(), &["__sandbox", "--"]);
    prepared.args(command).stdin(Stdio::piped()).spawn().unwrap()
}

/// The program that is nothing but the helper.
fn small_program() -> PathBuf {
    let small = binary().with_file_name("kode-ls-helper");
    assert!(small.is_file(), "{} is not there: run `cargo build` first", small.display());
    small
}

fn report(fixture: &Fixture) -> Value {
    let path = fixture.path("session/command/report.json");
    serde_json::from_slice(&fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display())))
        .unwrap()
}

#[test]
fn a_command_runs_under_the_policy_it_comes_with_and_is_reported() {
    for kind in KINDS {
        let fixture = Fixture::new(User::Own);
        let mut helper = start(
            &fixture,
            &["bash", "-c", "cat; head -c 2000000 /dev/zero > big; ls -l big | cut -d' ' -f5"],
        );
        let stdin = helper.stdin.take().unwrap();
        send(&stdin, &request(&fixture, kind));
        let output = collect(helper);
        assert_eq!((output.code, &*output.stdout), (0, "1000000\n"), "{kind}: {output:?}");
        let report = report(&fixture);
        assert_eq!(report["enforced"]["kind"], kind, "{report}");
        assert_eq!(report["enforced"]["seccomp"], true, "{report}");
        assert_ne!(report["enforced"]["landlock"], "none", "{report}");
        assert_eq!(report["failure"], Value::Null, "{report}");
        assert_eq!(
            report["enforced"]["weaker"].as_array().unwrap().is_empty(),
            kind == "bubblewrap",
            "{report}"
        );
    }
}

#[test]
fn the_small_program_becomes_the_one_that_started_it_where_that_is_of_another_build() {
    let program = binary();
    for (first, runs) in
        [(vec!["__sandbox"], "kode-ls-helper\n"), (vec!["build-0", program.to_str().unwrap()], "kode-ls\n")]
    {
        let fixture = Fixture::new(User::Own);
        let mut command = fixture.program(&small_program(), &first);
        command.args(["--", "bash", "-c", "cat /proc/$PPID/comm"]).stdin(Stdio::piped());
        let mut helper = command.spawn().unwrap();
        let stdin = helper.stdin.take().unwrap();
        send(&stdin, &request(&fixture, "landlock"));
        let output = collect(helper);
        assert_eq!((output.code, &*output.stdout), (0, runs), "{output:?}");
        assert_eq!(report(&fixture)["enforced"]["kind"], "landlock");
    }
    let output = collect(Fixture::new(User::Own).program(&small_program(), &["--version"]).spawn().unwrap());
    assert_eq!(output.code, 125);
    assert!(output.stderr.contains("this is no command for people"), "{output:?}");
}

#[test]
fn a_program_in_the_workspace_is_replaced_by_no_command() {
    let fixture = Fixture::new(User::Own);
    let program = fixture.path("ws/bin/kode-ls");
    fs::create_dir(fixture.path("ws/bin")).unwrap();
    fs::copy(binary(), &program).unwrap();
    let run = |kind: &str, script: &str| {
        let arguments = ["sandbox", "--kind", kind, "--", "sh", "-c", script];
        collect(fixture.program(&program, &arguments).spawn().unwrap())
    };
    for script in
        ["cp /bin/true t && mv t bin/kode-ls", "mv bin b", "echo x >> bin/kode-ls", "rm bin/kode-ls"]
    {
        let output = run("bubblewrap", script);
        assert_ne!(output.code, 0, "{script}: {output:?}");
    }
    // The helper is not there yet.
    let output = run("bubblewrap", "cp /bin/true bin/kode-ls-helper && ls bin");
    assert_eq!(output.stdout, "kode-ls\nkode-ls-helper\n", "{output:?}");
    assert!(!fixture.path("ws/bin/kode-ls-helper").exists(), "it is set aside: {output:?}");
    let output = run("landlock", "true");
    assert_ne!(output.code, 0);
    assert!(output.stderr.contains("landlock alone cannot hold it there"), "{output:?}");
}

#[test]
fn the_server_starts_the_small_program_for_a_command() {
    let command = "stat -Lc %s /run/kode-ls/helper";
    let script = Script::default().otherwise([call("Bash", json!({ "command": command })), say("Ran.")]);
    let project = Project::new(&script);
    project.open().session_with(json!({ "mode": "bypassPermissions" })).run("Run it.");
    let size = fs::metadata(small_program()).unwrap().len();
    assert_eq!(project.model.last_results(), [(size.to_string(), false)]);
}

#[test]
fn a_sandbox_that_cannot_be_made_runs_nothing_and_says_so() {
    let fixture = Fixture::new(User::Own);
    let good = request(&fixture, "bubblewrap");
    let changed = |change: fn(&mut Value)| {
        let mut request = good.clone();
        change(&mut request["policy"]);
        request
    };
    for (what, request) in [
        ("no bubblewrap", changed(|policy| policy["kind"]["program"] = json!("/no/bwrap"))),
        ("a bubblewrap that fails", changed(|policy| policy["kind"]["program"] = json!("/bin/false"))),
        ("a bubblewrap that does nothing", changed(|policy| policy["kind"]["program"] = json!("/bin/true"))),
        ("no such folder", changed(|policy| policy["writable"] = json!(["/no/such/folder"]))),
        ("all of the disk", changed(|policy| policy["writable"] = json!(["/"]))),
    ] {
        let mut helper = start(&fixture, &["touch", "ran"]);
        let stdin = helper.stdin.take().unwrap();
        send(&stdin, &request);
        let output = collect(helper);
        assert_eq!(output.code, 125, "{what}: {output:?}");
        let report = report(&fixture);
        assert_eq!(report["failure"]["name"], "sandbox", "{what}: {report}");
        assert!(
            report["failure"]["reason"].as_str().is_some_and(|reason| !reason.is_empty()),
            "{what}: {report}"
        );
        assert!(!fixture.path("ws/ran").exists(), "{what}");
    }
}

#[test]
fn a_request_that_is_not_understood_runs_nothing() {
    let fixture = Fixture::new(User::Own);
    let good = request(&fixture, "bubblewrap");
    let mut unknown = good.clone();
    unknown["policy"]["everything"] = json!(true);
    let mut missing = good.clone();
    missing["policy"].as_object_mut().unwrap().remove("hidden");
    let mut kind = good;
    kind["policy"]["kind"] = json!({ "name": "none" });
    for request in [unknown, missing, kind, json!(null), json!("x".repeat(100_000))] {
        let mut helper = start(&fixture, &["touch", "ran"]);
        let stdin = helper.stdin.take().unwrap();
        let (writer, request) = (stdin, request.clone());
        // It may stop reading before all is written.
        let sender = std::thread::spawn(move || {
            let result = std::panic::catch_unwind(|| send(&writer, &request));
            drop(result);
            drop(writer);
        });
        let output = collect(helper);
        sender.join().unwrap();
        assert_eq!(output.code, 125, "{output:?}");
        assert!(output.stderr.contains("could not be set up"), "{output:?}");
        assert!(!fixture.path("ws/ran").exists());
    }
    let output = collect(start(&fixture, &["touch", "ran"]));
    assert_eq!(output.code, 125, "nothing at all was sent: {output:?}");
}

#[test]
fn a_command_ends_with_whoever_started_it_or_is_asked_to() {
    for (index, kind) in KINDS.into_iter().enumerate() {
        for how in ["stdin", "term", "kill"] {
            let fixture = Fixture::new(User::Own);
            let mark = format!("kode-ends-{}-{index}-{how}", std::process::id());
            let script = format!(
                "trap 'echo cleaned; exit 0' TERM; setsid bash -c 'exec -a {mark} sleep 600' & echo ready; wait; wait"
            );
            let mut helper = start(&fixture, &["bash", "-c", &script]);
            let mut stdin = helper.stdin.take();
            send(stdin.as_mut().unwrap(), &request(&fixture, kind));
            let mut stdout = BufReader::new(helper.stdout.take().unwrap());
            let mut line = String::new();
            stdout.read_line(&mut line).unwrap();
            assert_eq!(line, "ready\n", "{kind} {how}");
            let id = rustix::process::Pid::from_child(&helper);
            match how {
                "stdin" => drop(stdin.take()),
                "term" => rustix::process::kill_process_group(id, rustix::process::Signal::TERM).unwrap(),
                _ => rustix::process::kill_process_group(id, rustix::process::Signal::KILL).unwrap(),
            }
            let mut rest = String::new();
            stdout.read_to_string(&mut rest).unwrap();
            let output = collect(helper);
            assert_eq!(rest.contains("cleaned"), how == "term", "{kind} {how}: {rest:?} {output:?}");
            wait_until_gone(&mark);
        }
    }
}

#[test]
fn nothing_of_a_command_is_left_in_the_folder_for_the_helper() {
    for kind in KINDS {
        let fixture = Fixture::new(User::Own);
        let script =
            "echo x > \"${TMPDIR%/tmp}/command/report.json\"; echo x > \"${TMPDIR%/tmp}/command/new\"; true";
        let mut helper = start(&fixture, &["bash", "-c", script]);
        let stdin = helper.stdin.take().unwrap();
        send(&stdin, &request(&fixture, kind));
        let output = collect(helper);
        assert_eq!(output.code, 0, "{kind}: {output:?}");
        assert_eq!(report(&fixture)["enforced"]["kind"], kind);
        assert!(!Path::new(&fixture.path("session/command/new")).exists(), "{kind}");
    }
}
