//! Commands in the background within the sandbox: this program is the helper, so it has to be built.
//!
//! Rule: a process is known by its arguments, because within the sandbox ids are others; a test waits for what a
//! command writes or for a process to be gone, never for a time.

#![cfg(target_os = "linux")]
#![allow(clippy::disallowed_methods, clippy::unwrap_used, reason = "tests write files and fail by panicking")]

use std::sync::Arc;
use std::time::Duration;

use kode_engine::base::command_shell::CommandShell;
use kode_engine::base::ids::CallId;
use kode_engine::base::paths::{AbsPath, real_path};
use kode_engine::process::sandbox::{
    HelperProgram, HiddenFilter, Network, ResourceLimits, Sandbox, SandboxKind, SandboxOptions, detect,
};
use kode_engine::process::shell::{CommandSpec, Shell, ShellTask, TaskEnd, TaskState};
use tokio_util::sync::CancellationToken;

/// No test needs nearly so long.
const LIMIT: Duration = Duration::from_secs(60);

struct Rig {
    _folder: tempfile::TempDir,
    workspace: AbsPath,
    shell: Arc<Shell>,
    sandbox: Arc<Sandbox>,
    /// A number of seconds to sleep that no other process uses.
    marker: String,
}

fn rig() -> Rig {
    rig_of(detect().best().unwrap(), None)
}

fn rig_of(kind: SandboxKind, hides: Option<HiddenFilter>) -> Rig {
    let folder = tempfile::tempdir().unwrap();
    let root = AbsPath::new(real_path(folder.path()).unwrap()).unwrap();
    let (workspace, state) = (root.join("work"), root.join("state"));
    std::fs::create_dir(&workspace).unwrap();
    std::fs::create_dir(&state).unwrap();
    let sandbox = Sandbox::new(SandboxOptions {
        helper: HelperProgram::beside(env!("CARGO_BIN_EXE_kode-ls").into()),
        kind,
        writable: vec![workspace.clone()],
        read_only: Vec::new(),
        scripts: Vec::new(),
        hidden: Vec::new(),
        hides,
        home: Some(workspace.join("home")),
        state,
        network: Network::Off,
        limits: ResourceLimits::default(),
        remote: None,
    });
    let sandbox = Arc::new(sandbox.unwrap());
    let shell = Shell::new(workspace.clone());
    let marker = format!("600.{}", root.file_name().bytes().map(|byte| byte.to_string()).collect::<String>());
    Rig { _folder: folder, workspace, shell: Arc::new(shell), sandbox, marker }
}

impl Rig {
    async fn start(&self, command: &str) -> Arc<ShellTask> {
        let command = command.replace("MARKER", &self.marker);
        let call = Some(CallId::generate());
        let (directory, sandbox) = (self.workspace.clone(), Some(Arc::clone(&self.sandbox)));
        let spec =
            CommandSpec { command, shell: CommandShell::Bash, directory, timeout: LIMIT, sandbox, call };
        self.shell.start(spec, "test".to_owned()).await.unwrap()
    }

    /// Runs a command to its end, and returns its output.
    async fn run(&self, command: &str) -> String {
        let (directory, sandbox) = (self.workspace.clone(), Some(Arc::clone(&self.sandbox)));
        let (command, shell) = (command.to_owned(), CommandShell::Bash);
        let spec = CommandSpec { shell, command, directory, timeout: LIMIT, sandbox, call: None };
        self.shell.run(spec, |_| (), &CancellationToken::new()).await.unwrap().output.text
    }

    /// How many processes sleep for the rig's own time.
    fn sleepers(&self) -> usize {
        let processes = std::fs::read_dir("/proc").unwrap().flatten();
        let lines = processes.filter_map(|process| std::fs::read(process.path().join("cmdline")).ok());
        let arguments = format!("sleep\0{}\0", self.marker);
        lines.filter(|line| *line == arguments.as_bytes()).count()
    }

    /// Waits until this many of them run. Nothing reports processes of others, so they are looked for.
    async fn wait_for_sleepers(&self, count: usize) {
        let wait = async {
            while self.sleepers() != count {
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(LIMIT, wait).await.unwrap();
    }
}

#[tokio::test]
async fn what_left_the_group_ends_with_a_background_command_too() {
    let rig = rig();
    let task = rig.start("setsid sleep MARKER & sleep MARKER & wait").await;
    rig.wait_for_sleepers(2).await;
    assert!(task.kill().await);
    assert_eq!(rig.shell.tasks().look(&task).state, TaskState::Ended(TaskEnd::Killed));
    rig.wait_for_sleepers(0).await;

    rig.start("setsid sleep MARKER & wait").await;
    rig.wait_for_sleepers(1).await;
    rig.shell.tasks().close();
    rig.shell.tasks().closed().await;
    rig.wait_for_sleepers(0).await;
}

#[tokio::test]
async fn a_background_command_is_held_and_what_it_did_to_guarded_files_is_reported_at_its_end() {
    let rig = rig();
    let outside = rig.workspace.parent().unwrap().join("outside");
    let task =
        rig.start(&format!("echo x > '{outside}'; mkdir .vscode; echo x > .vscode/tasks.json; true")).await;
    task.until_ended().await;
    let seen = rig.shell.tasks().look(&task);
    assert_eq!(seen.state, TaskState::Ended(TaskEnd::Exited { code: 0 }), "{seen:?}");
    assert!(!outside.as_path().exists(), "{seen:?}");
    assert!(!seen.guarded.set_aside.is_empty(), "{seen:?}");
    assert!(!rig.workspace.join(".vscode").as_path().exists(), "{seen:?}");
}

#[tokio::test]
async fn what_a_rule_hides_in_the_workspace_is_hidden_by_every_kind_of_sandbox() {
    for kind in [detect().bubblewrap().unwrap(), detect().landlock_alone().unwrap()] {
        let name = kind.name();
        let hides =
            HiddenFilter::new("rule".to_owned(), &[], || Box::new(|path, _| path.ends_with("private/key")));
        let rig = rig_of(kind, Some(hides));
        std::fs::create_dir(rig.workspace.join("private")).unwrap();
        for file in ["private/key", "private/other", "plain"] {
            std::fs::write(rig.workspace.join(file), format!("{file}\n")).unwrap();
        }
        let text = rig.run("cat plain private/other; cat private/key").await;
        assert!(text.starts_with("plain\nprivate/other\n"), "{name}: {text}");
        assert!(!text.lines().any(|line| line == "private/key"), "{name}: {text}");
    }
}

#[tokio::test]
async fn a_secret_that_appears_between_two_commands_is_hidden_from_the_second() {
    for kind in [detect().bubblewrap().unwrap(), detect().landlock_alone().unwrap()] {
        let name = kind.name();
        let rig = rig_of(kind, None);
        let home = rig.workspace.join("home");
        std::fs::create_dir_all(home.join("away")).unwrap();
        std::fs::write(home.join("plain"), "plain\n").unwrap();
        let read = format!("cd '{home}' && cat plain .netrc .ssh/id_rsa .aws/credentials");
        let text = rig.run(&read).await;
        assert!(text.starts_with("plain\n"), "{name}: {text}");
        // A file, one in a folder that is new as well, and one behind a link.
        std::fs::write(home.join(".netrc"), "secret\n").unwrap();
        std::fs::create_dir(home.join(".ssh")).unwrap();
        std::fs::write(home.join(".ssh/id_rsa"), "secret\n").unwrap();
        std::fs::write(home.join("away/credentials"), "secret\n").unwrap();
        std::os::unix::fs::symlink("away", home.join(".aws")).unwrap();
        let text = rig.run(&read).await;
        assert!(text.starts_with("plain\n"), "{name}: {text}");
        assert!(!text.contains("secret"), "{name}: {text}");
    }
}
