//! `sandbox.remote`: commands in containers of an engine, and by a launcher of the user's.
//!
//! Rule: the engine is a script with the command line of one, which bubblewrap does the work of. `KODE_LS_ENGINE` names a real one
//! besides, as its arguments and an image at the end, separated by spaces; all of them show the same.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use kode_e2e::{Client, Offer, Project, Script, Session, call, engine, say};
use serde_json::{Value, json};

/// An engine: `run` with the options that kode-ls gives, and `kill`. Containers are processes with a file of their number.
const ENGINE: &str = r#"#!/usr/bin/env bash
set -eu
containers=$(dirname "$0")/containers
mkdir -p "$containers"
verb=$1
shift
case $verb in
  kill) kill -KILL -- "-$(cat "$containers/${*: -1}")"; exit ;;
  rm) rm -f "$containers/${*: -1}"; exit ;;
esac
sandbox=(--unshare-user --unshare-pid --die-with-parent --proc /proc --dev /dev --tmpfs /run)
for folder in /usr /bin /lib /lib64; do
  [ -e "$folder" ] && sandbox+=(--ro-bind "$folder" "$folder")
done
name=none
image=
variables=()
while [ $# -gt 0 ]; do
  case $1 in
    --name) name=$2; shift ;;
    --network) [ "$2" = host ] || sandbox+=(--unshare-net); shift ;;
    --workdir) directory=$2; shift ;;
    --env-file) mapfile -t lines <"$2"; variables+=("${lines[@]}"); shift ;;
    --env) case $2 in *=*) variables+=("$2") ;; *) variables+=("$2=${!2}") ;; esac; shift ;;
    --mount)
      case $2 in
        type=tmpfs,*) sandbox+=(--tmpfs "${2#type=tmpfs,target=}") ;;
        *,readonly) mount=${2#type=bind,source=}; mount=${mount%,readonly}; sandbox+=(--ro-bind "${mount%%,target=*}" "${mount##*,target=}") ;;
        *) mount=${2#type=bind,source=}; sandbox+=(--bind "${mount%%,target=*}" "${mount##*,target=}") ;;
      esac
      shift
      ;;
    --rm) ;;
    --entrypoint) entry=$2; shift ;;
    --*) shift ;;
    *) image=$1; shift; break ;;
  esac
  shift
done
if [ "$image" != debian ]; then
  echo "engine: no such image: $image" >&2
  exit 125
fi
set -m
env -i PATH=/usr/bin:/bin "${variables[@]}" bwrap "${sandbox[@]}" --chdir "$directory" -- "$entry" "$@" &
echo $! >"$containers/$name"
trap 'kill -TERM "$(pgrep -P $! 2>/dev/null)" 2>/dev/null || true' TERM
status=0
wait $! || status=$?
rm -f "$containers/$name"
exit $status
"#;

/// A launcher: it writes what it was asked for, and runs the command where it is.
const LAUNCHER: &str = r#"#!/usr/bin/env bash
printf '%s' "$KODE_LS_SANDBOX" >"$(dirname "$0")/request.json"
case "${*: -1}" in *'not here'*) echo 'no room' >&2; exit 125 ;; esac
unset KODE_LS_SANDBOX
exec "$@"
"#;

/// The setting for each engine.
fn engines(project: &Project) -> Vec<Value> {
    let script = program(project, "engine", ENGINE);
    let mut engines = vec![json!({ "engine": [script], "image": "debian" })];
    engines.extend(engine::named());
    engines
}

fn program(project: &Project, name: &str, text: &str) -> PathBuf {
    let path = project.outside().join(name);
    std::fs::write(&path, text).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    path
}

/// A client whose user has this setting.
fn client_of(project: &Project, remote: &Value) -> Client {
    let home = project.outside().join("user");
    std::fs::create_dir_all(home.join(".kode")).unwrap();
    let settings = json!({ "sandbox": { "remote": remote }, "env": { "OF_SETTINGS": "a = b" } });
    std::fs::write(home.join(".kode/settings.json"), settings.to_string()).unwrap();
    let client = project.start_as(&[], &[("HOME", home.to_str().unwrap())]);
    client.initialize(Offer::kode().params(&project.workspace()));
    client
}

fn session_of(client: &Client) -> Session<'_> {
    client.session_with(json!({ "mode": "bypassPermissions" }))
}

/// A model that runs a command.
fn running(command: &str) -> Script {
    Script::default().otherwise([call("Bash", json!({ "command": command })), say("done")])
}

/// The last result that the model was given, and whether it is an error.
fn result(project: &Project) -> (String, bool) {
    project.model.last_results().remove(0)
}

/// Has each engine run a command once, in a project of its own.
fn with_each(command: &str, check: impl Fn(&Project, &Value)) {
    for at in 0..1 + usize::from(engine::named().is_some()) {
        let project = Project::new(&running(command));
        let engine = engines(&project).remove(at);
        check(&project, &engine);
    }
}

#[test]
fn a_command_runs_in_a_container_that_has_the_workspace_and_nothing_else_of_this_machine() {
    let command = "pwd; echo \"[$OF_SETTINGS]\"; cat here.txt; echo made >made.txt; cd sub; cat ../../outside/secret.txt; readlink /proc/self/ns/net; exit 7";
    with_each(command, |project, engine| {
        project.write("here.txt", "of the workspace\n");
        project.write("sub/x.txt", "");
        std::fs::write(project.outside().join("secret.txt"), "a secret\n").unwrap();
        let client = client_of(project, engine);
        let session = session_of(&client);
        session.run("go");
        let (text, is_error) = result(project);
        assert!(is_error, "the exit code is that of the command: {text}");
        let workspace = project.workspace();
        assert!(text.contains(workspace.to_str().unwrap()) && text.contains("of the workspace"), "{text}");
        assert!(text.contains("[a = b]"), "{text}");
        assert!(text.contains("exit code 7") || text.contains("code 7"), "{text}");
        assert!(!text.contains("a secret"), "{text}");
        assert!(
            text.contains("net:[") && !text.contains(&network()),
            "it has no network of this machine: {text}"
        );
        assert_eq!(std::fs::read_to_string(workspace.join("made.txt")).unwrap(), "made\n", "{engine}");
        session.run("again");
        assert!(result(project).0.contains(workspace.join("sub").to_str().unwrap()), "the folder is kept");
    });
}

#[test]
fn options_of_the_engine_open_its_network() {
    with_each("readlink /proc/self/ns/net", |project, engine| {
        let mut engine = engine.clone();
        let mut options = engine["options"].as_array().cloned().unwrap_or_default();
        options.extend([json!("--network"), json!("host")]);
        engine["options"] = json!(options);
        let client = client_of(project, &engine);
        session_of(&client).run("go");
        assert!(result(project).0.contains(&network()), "{:?}", result(project));
    });
}

#[test]
fn guarded_and_hidden_files_are_so_in_a_container_too() {
    let command = "sh peek.sh; echo ended: $?";
    with_each(command, |project, engine| {
        let rules = json!({ "permissions": { "deny": ["Read(./hidden/**)"] } }).to_string();
        project.write(".kode/settings.json", rules.clone());
        project.write("hidden/key.txt", "the key\n");
        // The permission gate reads the command, and not what a script does.
        project.write("peek.sh", "cat hidden/key.txt; mv .kode elsewhere; echo x >.kode/settings.json\n");
        let client = client_of(project, engine);
        session_of(&client).run("go");
        let (text, _) = result(project);
        assert!(text.contains("ended: 1") || text.contains("ended: 2"), "{text}");
        assert!(!text.contains("the key"), "{text}");
        let settings = project.workspace().join(".kode/settings.json");
        assert_eq!(std::fs::read_to_string(settings).unwrap(), rules);
    });
}

#[test]
fn a_read_only_profile_shows_the_workspace_and_has_nothing_of_it_written() {
    let command = "sh peek.sh";
    with_each(command, |project, engine| {
        project.write(
            ".kode/settings.json",
            json!({ "permissions": { "deny": ["Read(./hidden/**)"] } }).to_string(),
        );
        project.write("hidden/key.txt", "the key\n");
        project.write("here.txt", "of the workspace\n");
        project.write(
            "peek.sh",
            "cat here.txt hidden/key.txt; echo x >made.txt; echo x >$TMPDIR/made.txt && echo end: $?\n",
        );
        let client = client_of(project, engine);
        let session = session_of(&client);
        session.call("agent/session/configure", json!({ "sandbox": "read-only" }));
        session.run("go");
        let (text, _) = result(project);
        assert!(text.contains("of the workspace") && text.contains("end: 0"), "{text}");
        assert!(!text.contains("the key"), "{text}");
        assert!(!project.workspace().join("made.txt").exists(), "{text}");
    });
}

#[test]
fn a_container_ends_with_its_turn_and_with_the_server() {
    with_each("echo $$ >running.txt; trap '' TERM; while :; do sleep 1; done", |project, engine| {
        let client = client_of(project, engine);
        let session = session_of(&client);
        let marker = project.workspace().join("running.txt");
        let turn = session.prompt("go");
        wait_until("the command runs", || marker.exists());
        session.call("agent/turn/cancel", json!({}));
        session.wait_done(&turn);
        wait_until("no container is left", || containers(engine).is_empty());

        std::fs::remove_file(&marker).unwrap();
        session.prompt("go");
        wait_until("the command runs again", || marker.exists());
        client.kill();
        wait_until("no container is left after the server", || containers(engine).is_empty());
    });
}

#[test]
fn without_its_image_a_command_is_not_run_and_the_reason_is_given() {
    with_each("echo made >made.txt", |project, engine| {
        let mut engine = engine.clone();
        engine["image"] = json!("localhost/no-such-image:1");
        let client = client_of(project, &engine);
        session_of(&client).run("go");
        let (text, is_error) = result(project);
        assert!(is_error && text.contains("sandbox.remote") && text.contains("image"), "{text}");
        assert!(!project.workspace().join("made.txt").exists());
    });
}

#[test]
fn a_launcher_gets_the_policy_and_says_when_it_ran_nothing() {
    let project = Project::new(
        &Script::default()
            .when("^refuse", [call("Bash", json!({ "command": "echo not here" })), say("done")])
            .otherwise([call("Bash", json!({ "command": "echo \"here $SHELL_OF\"; exit 3" })), say("done")]),
    );
    let launcher = program(&project, "launcher", LAUNCHER);
    let client = client_of(&project, &json!({ "command": [launcher] }));
    let session = session_of(&client);
    session.run("go");
    let (text, is_error) = result(&project);
    assert!(is_error && text.contains("here") && text.contains("code 3"), "{text}");
    let request = std::fs::read_to_string(launcher.with_file_name("request.json")).unwrap();
    let request: Value = serde_json::from_str(&request).unwrap();
    let workspace = std::fs::canonicalize(project.workspace()).unwrap();
    assert_eq!(request["version"], 1);
    assert_eq!(request["directory"], json!(workspace));
    assert_eq!(request["writable"], json!([workspace]));
    assert_eq!(request["network"], "off");
    assert!(Path::new(request["temporary"].as_str().unwrap()).is_absolute(), "{request}");
    session.run("/status");
    let status = session.snapshot().to_string();
    assert!(
        status.contains("Sandbox for commands: on, where") && status.contains("launcher starts it"),
        "{status}"
    );
    session.run("refuse");
    let (text, is_error) = result(&project);
    assert!(is_error && text.contains("no room") && text.contains("sandbox.remote"), "{text}");
}

#[test]
fn files_of_a_workspace_do_not_say_where_commands_run() {
    let project = Project::new(&running("echo local >local.txt"));
    let launcher = program(&project, "launcher", LAUNCHER);
    project.write(
        ".kode/settings.json",
        json!({ "sandbox": { "remote": { "command": [launcher] } } }).to_string(),
    );
    let client = project.open();
    let session = session_of(&client);
    session.run("go");
    assert!(project.workspace().join("local.txt").exists(), "{:?}", result(&project));
    assert!(!launcher.with_file_name("request.json").exists(), "the launcher was not started");
    session.run("/doctor");
    assert!(session.snapshot().to_string().contains("cannot say where commands run"));
}

/// The network namespace of this machine.
fn network() -> String {
    std::fs::read_link("/proc/self/ns/net").unwrap().to_str().unwrap().to_owned()
}

fn wait_until(what: &str, is_so: impl Fn() -> bool) {
    let limit = Instant::now() + Duration::from_secs(60);
    while !is_so() {
        assert!(Instant::now() < limit, "{what}: it is not so");
        thread::sleep(Duration::from_millis(10));
    }
}

/// The containers of an engine that run now.
fn containers(engine: &Value) -> Vec<String> {
    let words: Vec<&str> = engine["engine"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
    if engine["image"] == "debian" {
        let folder = Path::new(words[0]).with_file_name("containers");
        let entries = std::fs::read_dir(folder).into_iter().flatten();
        let alive = entries.filter_map(|entry| {
            let entry = entry.ok()?;
            let number = std::fs::read_to_string(entry.path()).ok()?;
            Path::new("/proc").join(number.trim()).exists().then(|| entry.file_name().into_string().unwrap())
        });
        return alive.collect();
    }
    let listed = std::process::Command::new(words[0])
        .args(&words[1..])
        .args(["ps", "--all", "--quiet", "--filter", "label=kode-ls"])
        .output()
        .unwrap();
    String::from_utf8(listed.stdout).unwrap().lines().map(str::to_owned).collect()
}
