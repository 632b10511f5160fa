//! Scripts of hooks: what a command of the agent leaves where a hook of the user looks for its script.
//!
//! Rule: hooks of the user run outside of the sandbox. After each attack the next prompt fires them, and nothing that the agent
//! wrote may run in them.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use kode_e2e::{Client, Offer, Project, Script, call, say};
use serde_json::{Value, json};

use super::model::run;

/// The scripts that hooks name, each with what runs it: a plain file, one by a link, and one that is not there.
const HOOKS: [&str; 3] = [
    "sh \"$CLAUDE_PROJECT_DIR/hooks/check.sh\"",
    "sh \"$CLAUDE_PROJECT_DIR/linked/check\"",
    "[ -x \"$CLAUDE_PROJECT_DIR/tools/later\" ] && \"$CLAUDE_PROJECT_DIR/tools/later\"; true",
];

/// Commands of the agent. `other/check` is a script that shows that it ran.
const ATTACKS: [(&str, &str); 8] = [
    ("a script that is written over", "cat other/check > hooks/check.sh"),
    ("a script that is replaced", "cp other/check new; mv -f new hooks/check.sh"),
    ("its folder replaced", "mv hooks moved; mkdir hooks; cp other/check hooks/check.sh"),
    ("a link turned", "ln -sfn other linked"),
    ("a link replaced by a folder", "rm linked; mkdir linked; cp other/check linked/check"),
    ("what a link leads to replaced", "cat other/check > real/check; mv real moved; cp -r other real"),
    ("a script that was not there", "mkdir -p tools; cp other/check tools/later"),
    ("one that was not there, by a link", "cp other/check other/later; ln -sfn other tools"),
];

/// Prompts while a command swaps, and how long that may go on after them.
const PROMPTS: usize = 100;
const LIMIT: Duration = Duration::from_secs(60);

/// A project whose user has hooks, and the files that show which scripts ran.
struct Desk {
    project: Project,
}

impl Desk {
    fn new(script: &Script) -> Self {
        let project = Project::new(script);
        let desk = Self { project };
        fs::create_dir_all(desk.home().join(".kode")).unwrap();
        fs::create_dir(desk.project.outside().join("log")).unwrap();
        let hooks = HOOKS.map(|command| json!({ "hooks": [{ "type": "command", "command": command }] }));
        let settings = json!({
            "hooks": { "UserPromptSubmit": hooks }, "sandbox": { "autoAllowBashIfSandboxed": true },
        });
        fs::write(desk.home().join(".kode/settings.json"), settings.to_string()).unwrap();
        for name in ["hooks/check.sh", "real/check"] {
            desk.project.write(name, format!("echo ran >> '{}'\n", desk.log("good").display()));
        }
        desk.project
            .write("other/check", format!("#!/bin/sh\necho ran >> '{}'\n", desk.log("evil").display()));
        let planted = desk.project.path("other/check");
        fs::set_permissions(&planted, fs::Permissions::from_mode(0o755)).unwrap();
        symlink("real", desk.project.path("linked")).unwrap();
        desk
    }

    fn home(&self) -> PathBuf {
        self.project.outside().join("user")
    }

    fn log(&self, name: &str) -> PathBuf {
        self.project.outside().join("log").join(name)
    }

    fn open(&self) -> Client {
        let client = self.project.start_as(&[], &[("HOME", self.home().to_str().unwrap())]);
        client.initialize(Offer::kode().params(&self.project.workspace()));
        client
    }

    /// How often scripts of the user ran.
    fn good(&self) -> usize {
        fs::read_to_string(self.log("good")).unwrap_or_default().lines().count()
    }
}

#[test]
fn no_script_that_a_command_left_is_run_by_a_hook_of_the_user() {
    let mut wrong = Vec::new();
    for (name, command) in ATTACKS {
        let attack = [call("Bash", json!({ "command": command })), say("done")];
        let desk = Desk::new(&Script::default().when("^attack$", attack).otherwise([say("done")]));
        let client = desk.open();
        let session = client.session_with(json!({ "mode": "bypassPermissions" }));
        let shown = run(&session, "attack");
        let before = desk.good();
        run(&session, "on");
        let (good, is_taken) = (desk.good() - before, desk.log("evil").exists());
        if is_taken || good != 2 {
            let shown: Vec<_> = shown.iter().map(Value::to_string).collect();
            wrong.push(format!("{name}: taken: {is_taken}; the user's own scripts ran: {good}; {shown:?}"));
        }
    }
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), ATTACKS.len(), wrong.join("\n"));
}

/// Swaps the scripts of hooks as fast as it can, for a number of times and until it is stopped. It counts in a file.
const SWAPS: &str = r#"python3 - <<'END'
import os
def attempt(call, *names):
    try: call(*names)
    except OSError: pass
def write(name):
    with open('other/check') as evil, open(name, 'w') as file: file.write(evil.read())
tried = 0
while tried < 10000 or not os.path.exists('stop'):
    for one, other in (('hooks', 'moved'), ('other', 'hooks'), ('hooks', 'other'), ('moved', 'hooks'),
                       ('linked', 'kept'), ('turned', 'linked'), ('linked', 'turned'), ('kept', 'linked'),
                       ('real', 'moved'), ('other', 'real'), ('real', 'other'), ('moved', 'real'),
                       ('planted', 'hooks/check.sh'), ('planted', 'real/check')):
        attempt(os.rename, one, other)
    attempt(os.symlink, 'other', 'turned')
    for name in ('hooks/check.sh', 'real/check', 'planted'):
        attempt(write, name)
    tried += 1
with open('counted', 'w') as file: file.write(str(tried))
os.rename('counted', 'tried')
END"#;

#[test]
fn ten_thousand_swaps_by_a_command_while_hooks_of_the_user_run_have_none_run_another_script() {
    let swap = call("Bash", json!({ "command": SWAPS, "run_in_background": true }));
    let script = Script::default().when("^swap$", [swap, say("done")]).otherwise([say("done")]);
    let desk = Desk::new(&script);
    let client = desk.open();
    let session = client.session_with(json!({ "mode": "bypassPermissions" }));
    run(&session, "swap");
    let before = desk.good();
    for _ in 0..PROMPTS {
        run(&session, "on");
    }
    desk.project.write("stop", "");
    let deadline = Instant::now() + LIMIT;
    while !desk.project.path("tried").exists() {
        assert!(Instant::now() < deadline, "the command still swaps");
        std::thread::yield_now();
    }
    assert!(desk.project.read("tried").parse::<usize>().unwrap() >= 10_000);
    assert!(!desk.log("evil").exists(), "a script ran that was swapped in");
    assert_eq!(desk.good(), before + 2 * PROMPTS, "the user's own scripts ran each time");
}
