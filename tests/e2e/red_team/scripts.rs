//! Scripts of hooks: what a command of the agent leaves where a hook of the user looks for its script.
//!
//! Rule: hooks of the user run outside of the sandbox. After each attack the next prompt fires them, and nothing that the agent
//! wrote may run in them.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use kode_e2e::{Client, Offer, Project, Script, Session, call, say};
use serde_json::{Value, json};

use super::model::run;
use super::tries;

/// The scripts that hooks name, each with what runs it: a plain file, one by a link, and one that is not there.
const HOOKS: [&str; 3] = [
    "sh \"$CLAUDE_PROJECT_DIR/hooks/check.sh\"",
    "sh \"$CLAUDE_PROJECT_DIR/linked/check\"",
    "[ -x \"$CLAUDE_PROJECT_DIR/tools/later\" ] && \"$CLAUDE_PROJECT_DIR/tools/later\"; true",
];

/// Commands of the agent. `other/check` is a script that shows that it ran.
const ATTACKS: [(&str, &str); 9] = [
    ("a script that is written over", "cat other/check > hooks/check.sh"),
    ("a script that is replaced", "cp other/check new; mv -f new hooks/check.sh"),
    ("its folder replaced", "mv hooks moved; mkdir hooks; cp other/check hooks/check.sh"),
    ("a link turned", "ln -sfn other linked"),
    ("a link replaced by a folder", "rm linked; mkdir linked; cp other/check linked/check"),
    ("what a link leads to replaced", "cat other/check > real/check; mv real moved; cp -r other real"),
    ("a script in a further folder", "cp other/check new; mv -f new ../user/further/check.sh"),
    ("a script that was not there", "mkdir -p tools; cp other/check tools/later"),
    ("one that was not there, by a link", "cp other/check other/later; ln -sfn other tools"),
];

/// Prompts while a command swaps, all tries, and how long that may go on after them.
const PROMPTS: usize = 100;
const LIMIT: Duration = Duration::from_secs(60);

/// The file that has the hooks.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Owner {
    User,
    Workspace,
}

/// A project whose user has hooks or has approved those of the workspace, and the files that show which scripts ran.
struct Desk {
    project: Project,
    owner: Owner,
}

impl Desk {
    fn new(script: &Script, owner: Owner) -> Self {
        let project = Project::new(script);
        let desk = Self { project, owner };
        for name in ["user/.kode", "user/further", "log"] {
            fs::create_dir_all(desk.project.outside().join(name)).unwrap();
        }
        let commands = HOOKS.into_iter().chain((owner == Owner::User).then_some("sh ~/further/check.sh"));
        let hooks: Vec<_> = commands.map(group).collect();
        let hooks = json!({ "UserPromptSubmit": hooks });
        let mut settings = json!({
            "sandbox": { "autoAllowBashIfSandboxed": true },
            "permissions": { "additionalDirectories": ["~/further"] },
        });
        match owner {
            Owner::User => settings["hooks"] = hooks,
            Owner::Workspace => {
                desk.project.write(".claude/settings.json", json!({ "hooks": hooks }).to_string());
            }
        }
        fs::write(desk.home().join(".kode/settings.json"), settings.to_string()).unwrap();
        let good = format!("echo ran >> '{}'\n", desk.log("good").display());
        for name in ["hooks/check.sh", "real/check"] {
            desk.project.write(name, &good);
        }
        fs::write(desk.further(), &good).unwrap();
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

    /// A log outside, where hooks of the user write, or inside, where those of the workspace do.
    fn log(&self, name: &str) -> PathBuf {
        match self.owner {
            Owner::User => self.project.outside().join("log").join(name),
            Owner::Workspace => self.project.path(name),
        }
    }

    /// A script in a further folder that commands may write in.
    fn further(&self) -> PathBuf {
        self.home().join("further/check.sh")
    }

    fn open(&self) -> Client {
        let client = self.project.start_as(&[], &[("HOME", self.home().to_str().unwrap())]);
        client.initialize(Offer::kode().params(&self.project.workspace()));
        client
    }

    /// How often the true scripts ran.
    fn good(&self) -> usize {
        fs::read_to_string(self.log("good")).unwrap_or_default().lines().count()
    }
}

#[test]
fn no_script_that_a_command_left_is_run_by_a_hook_of_the_user() {
    let mut wrong = Vec::new();
    for (name, command) in ATTACKS {
        let attack = [call("Bash", json!({ "command": command })), say("done")];
        let script = Script::default().when("^attack$", attack).otherwise([say("done")]);
        let desk = Desk::new(&script, Owner::User);
        let client = desk.open();
        let session = client.session_with(json!({ "mode": "bypassPermissions" }));
        let shown = run(&session, "attack");
        let before = desk.good();
        run(&session, "on");
        let (good, is_taken) = (desk.good() - before, desk.log("evil").exists());
        if is_taken || good != 3 {
            let shown: Vec<_> = shown.iter().map(Value::to_string).collect();
            wrong.push(format!("{name}: taken: {is_taken}; the user's own scripts ran: {good}; {shown:?}"));
        }
    }
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), ATTACKS.len(), wrong.join("\n"));
}

/// Swaps the scripts of hooks as fast as it can, `LEAST` times and until it is stopped. It counts in a file.
const SWAPS: &str = r#"python3 - <<'END'
import os
def attempt(call, *names):
    try: call(*names)
    except OSError: pass
def write(name):
    with open('other/check') as evil, open(name, 'w') as file: file.write(evil.read())
tried = 0
while tried < LEAST or not os.path.exists('stop'):
    for one, other in (('hooks', 'moved'), ('other', 'hooks'), ('hooks', 'other'), ('moved', 'hooks'),
                       ('linked', 'kept'), ('turned', 'linked'), ('linked', 'turned'), ('kept', 'linked'),
                       ('real', 'moved'), ('other', 'real'), ('real', 'other'), ('moved', 'real'),
                       ('planted', 'hooks/check.sh'), ('planted', 'real/check')):
        attempt(os.rename, one, other)
    attempt(os.symlink, 'other', 'turned')
    for name in ('hooks/check.sh', 'real/check', 'planted', '../user/further/check.sh'):
        attempt(write, name)
    tried += 1
with open('counted', 'w') as file: file.write(str(tried))
os.rename('counted', 'tried')
END"#;

/// Has a command swap scripts while hooks run, and counts which scripts ran.
fn race(owner: Owner, each: usize) {
    let (least, prompts) = (tries(10_000), tries(PROMPTS));
    let command = SWAPS.replace("LEAST", &least.to_string());
    let swap = call("Bash", json!({ "command": command, "run_in_background": true }));
    let script = Script::default().when("^swap$", [swap, say("done")]).otherwise([say("done")]);
    let desk = Desk::new(&script, owner);
    let client = desk.open();
    let session = client.session_with(json!({ "mode": "bypassPermissions" }));
    if owner == Owner::Workspace {
        approve(&client, &session);
    }
    run(&session, "swap");
    let before = desk.good();
    for _ in 0..prompts {
        run(&session, "on");
    }
    desk.project.write("stop", "");
    let deadline = Instant::now() + LIMIT;
    while !desk.project.path("tried").exists() {
        assert!(Instant::now() < deadline, "the command still swaps");
        std::thread::yield_now();
    }
    assert!(desk.project.read("tried").parse::<usize>().unwrap() >= least);
    let evil = fs::read_to_string(desk.log("evil")).unwrap_or_default().lines().count();
    assert_eq!(evil, 0, "scripts ran that were swapped in, of {prompts} prompts");
    assert_eq!(desk.good(), before + each * prompts, "the true scripts ran each time");
}

#[test]
fn swaps_by_a_command_while_hooks_of_the_user_run_have_none_run_another_script() {
    race(Owner::User, 3);
}

#[test]
fn swaps_by_a_command_while_approved_hooks_run_have_none_run_a_script_that_was_not_approved() {
    race(Owner::Workspace, 2);
}

/// Approves everything that waits.
fn approve(client: &Client, session: &Session<'_>) {
    let waiting = client.call("agent/trust/list", json!({ "sessionId": session.id }))["waiting"].clone();
    let digests: Vec<_> = waiting.as_array().unwrap().iter().map(|one| one["digest"].clone()).collect();
    session.call("agent/trust/approve", json!({ "digests": digests }));
}

fn group(command: &str) -> Value {
    json!({ "hooks": [{ "type": "command", "command": command }] })
}

#[test]
fn a_hook_of_a_skill_of_the_user_runs_what_a_command_left_in_the_sandbox_alone() {
    let attack = call("Bash", json!({ "command": "cat other/check > skill.sh" }));
    let script = Script::default()
        .when("^use$", [call("Skill", json!({ "skill": "guard" })), say("done")])
        .when("^attack$", [attack, say("done")])
        .otherwise([say("done")]);
    let desk = Desk::new(&script, Owner::User);
    let mark = "echo ran >> \"$CLAUDE_PROJECT_DIR/inside\"\n";
    let evil = desk.project.read("other/check");
    desk.project.write("other/check", format!("{evil}{mark}")).write("skill.sh", "true\n");
    let hooks = json!({ "UserPromptSubmit": [group("sh \"$CLAUDE_PROJECT_DIR/skill.sh\"")] });
    let skill = desk.home().join(".claude/skills/guard");
    fs::create_dir_all(&skill).unwrap();
    let head = format!("---\ndescription: Guards.\nhooks: {hooks}\n---\nGuard.\n");
    fs::write(skill.join("SKILL.md"), head).unwrap();
    let client = desk.open();
    let session = client.session_with(json!({ "mode": "bypassPermissions" }));
    for prompt in ["use", "attack", "on"] {
        run(&session, prompt);
    }
    assert!(!desk.log("evil").exists(), "it ran with the rights of the user");
    assert_eq!(desk.project.read("inside"), "ran\n", "it ran in the sandbox");
}
