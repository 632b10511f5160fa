//! Tests of how a shell runs its commands through the helper, with helpers made of a few lines of shell.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tempfile::TempDir;
use tokio_util::sync::CancellationToken;

use super::policy::HelperRequest;
use super::*;
use crate::outcome::Exit;
use crate::shell::{CommandOutcome, CommandSpec, Shell, ShellError};
use kode_base::paths::real_path;

/// Finds the folder to report in, and runs what follows the separator.
const OPENING: &str = r#"#!/bin/bash
head -c 4 >/dev/null
control=$(dd bs=65536 count=1 2>/dev/null | sed 's/.*"control":"\([^"]*\)".*/\1/')
report() { echo "$1" > "$control/report.json"; }
shift 2
"#;
const ENFORCED: &str =
    r#"'{"enforced":{"kind":"x","landlock":"full","seccomp":true,"network":"off","weaker":[]}"#;

struct Fixture {
    _folder: TempDir,
    shell: Confined,
}

/// A shell, and the sandbox for all its commands.
struct Confined {
    shell: Shell,
    sandbox: Arc<Sandbox>,
}

/// A shell whose sandbox has a helper that ends with these lines.
fn fixture(lines: &str) -> Fixture {
    let folder = tempfile::tempdir().unwrap();
    let root = AbsPath::new(real_path(folder.path()).unwrap()).unwrap();
    let (helper, workspace) = (root.join("helper"), root.join("workspace"));
    fs::write(&helper, format!("{OPENING}{lines}\n")).unwrap();
    fs::set_permissions(&helper, fs::Permissions::from_mode(0o755)).unwrap();
    fs::create_dir(&workspace).unwrap();
    Fixture { _folder: folder, shell: shell(&workspace, &helper) }
}

fn shell(root: &AbsPath, helper: &AbsPath) -> Confined {
    let sandbox = Sandbox::new(SandboxOptions {
        helper: HelperProgram::itself(helper.clone().into()),
        kind: SandboxKind::Landlock,
        writable: vec![root.clone()],
        read_only: vec![],
        scripts: Vec::new(),
        hidden: vec![root.join("mine")],
        hides: None,
        home: Some(root.join("home")),
        state: root.join("state"),
        network: Network::Off,
        limits: ResourceLimits::default(),
        remote: None,
    });
    Confined { shell: Shell::new(root.clone()), sandbox: Arc::new(sandbox.unwrap()) }
}

async fn run(confined: &Confined, command: &str) -> Result<CommandOutcome, ShellError> {
    run_until(confined, command, &CancellationToken::new()).await
}

async fn run_until(
    Confined { shell, sandbox }: &Confined,
    command: &str,
    cancel: &CancellationToken,
) -> Result<CommandOutcome, ShellError> {
    let spec = CommandSpec {
        shell: kode_base::command_shell::CommandShell::Bash,
        command: command.to_owned(),
        directory: shell.directory(),
        timeout: Duration::from_secs(60),
        sandbox: Some(Arc::clone(sandbox)),
        call: None,
    };
    shell.run(spec, |_| (), cancel).await
}

async fn refusal(shell: &Confined, command: &str) -> String {
    match run(shell, command).await {
        Err(ShellError::Sandbox { reason }) => reason,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn commands_go_through_the_helper_and_their_folder_is_carried_over() {
    let fixture = fixture(&format!(
        "export HELD=yes; \"$@\"; code=$?; report {ENFORCED},\"guarded\":{{\"changed\":[[\"/w/.idea\",\"why\"]]}}}}'; exit $code"
    ));
    let outcome =
        run(&fixture.shell, "echo $HELD ${KODE_LS_HOME-unset}; mkdir sub; cd sub; exit 3").await.unwrap();
    assert_eq!((&*outcome.output.text, outcome.exit), ("yes unset\n", Exit::Code(3)));
    assert_eq!(outcome.directory.file_name(), "sub");
    assert_eq!(outcome.guarded.changed, [(PathBuf::from("/w/.idea"), "why".to_owned())]);
}

#[tokio::test]
async fn a_signal_is_what_the_helper_says_it_was() {
    let fixture = fixture(&format!("report {ENFORCED},\"signal\":9}}'; exit 137"));
    assert_eq!(run(&fixture.shell, "true").await.unwrap().exit, Exit::Signal(9));
}

#[tokio::test]
async fn without_a_sandbox_that_is_known_to_stand_there_is_no_command() {
    let ran = "touch ran";
    let said = fixture(
        "echo broken pipes >&2; report '{\"failure\":{\"name\":\"sandbox\",\"reason\":\"no walls\"}}'; exit 125",
    );
    assert_eq!(refusal(&said.shell, ran).await, "no walls: broken pipes");
    let silent = fixture("exit 0");
    assert!(refusal(&silent.shell, ran).await.contains("no report"));
    let nothing = fixture("report '{}'; exit 0");
    assert_eq!(refusal(&nothing.shell, ran).await, "nothing was enforced");
    let root = said.shell.shell.directory();
    let missing = shell(&root, &root.join("no-helper"));
    assert!(!refusal(&missing, ran).await.is_empty());
    assert!(!root.join("ran").as_path().exists());
}

#[tokio::test]
async fn a_helper_whose_request_cannot_be_made_gets_none_and_the_reason_is_reported() {
    let fixture = fixture(&format!("[ -z \"$control\" ] || {{ \"$@\"; report {ENFORCED}}}'; }}"));
    let Confined { shell, sandbox } = fixture.shell;
    let gone = shell.directory().join("gone");
    let sandbox = Arc::into_inner(sandbox).unwrap().writing_in(vec![gone.clone()], &[]).unwrap();
    let confined = Confined { shell, sandbox: Arc::new(sandbox) };
    let reason = refusal(&confined, "touch ran").await;
    assert!(reason.contains(&gone.to_string()), "{reason}");
    let cancelled = CancellationToken::new();
    cancelled.cancel();
    assert_eq!(run_until(&confined, "touch ran", &cancelled).await.unwrap().exit, Exit::Cancelled);
    assert!(!confined.shell.directory().join("ran").as_path().exists());
}

#[tokio::test]
async fn a_shell_that_is_not_there_is_replaced_by_the_next() {
    let lines = format!(
        "[ ${{1##*/}} = sh ] || {{ report '{{\"failure\":{{\"name\":\"notFound\",\"reason\":\"bash\"}}}}'; exit 127; }}
         \"$@\"; report {ENFORCED}}}'"
    );
    let fixture = fixture(&lines);
    assert_eq!(run(&fixture.shell, "echo ran").await.unwrap().output.text, "ran\n");
}

#[test]
fn what_is_hidden_everywhere_is_hidden_besides_what_is_asked_for() {
    let root = AbsPath::new("/w").unwrap();
    let sandbox = Sandbox::new(SandboxOptions {
        helper: HelperProgram::itself("/helper".into()),
        kind: SandboxKind::Landlock,
        writable: vec![],
        read_only: vec![],
        scripts: Vec::new(),
        hidden: vec![root.join("mine")],
        hides: None,
        home: Some(root.join("home")),
        state: root.join("state"),
        network: Network::Off,
        limits: ResourceLimits::default(),
        remote: None,
    });
    let hidden = sandbox.unwrap().policy().hidden.clone();
    for place in ["mine", "state", "home/.ssh", "home/.aws", "home/.netrc"] {
        assert!(hidden.contains(&root.join(place)), "{place}");
    }
}

#[test]
fn a_request_is_read_as_it_was_sent_and_no_further() {
    let control = AbsPath::new("/control").unwrap();
    let sandbox = Sandbox::new(SandboxOptions {
        helper: HelperProgram::itself("/helper".into()),
        kind: SandboxKind::Bubblewrap { program: AbsPath::new("/usr/bin/bwrap").unwrap() },
        writable: vec![control.clone()],
        read_only: vec![],
        scripts: Vec::new(),
        hidden: vec![],
        hides: None,
        home: None,
        state: control.clone(),
        network: Network::Allowed {
            hosts: vec!["*.example.com:8080".parse().unwrap()],
            denied: vec!["a.example.com".parse().unwrap()],
            local: false,
        },
        limits: ResourceLimits::default(),
        remote: None,
    });
    let request = HelperRequest {
        policy: sandbox.unwrap().policy().clone(),
        control,
        proxy: None,
        guard: None,
        launcher: None,
        is_checkout: false,
    };
    let mut bytes = Vec::new();
    request.send(&mut bytes).unwrap();
    bytes.extend(b"rest");
    let mut reader = &bytes[..];
    assert_eq!(HelperRequest::receive(&mut reader).unwrap().policy, request.policy);
    assert_eq!(reader, b"rest");
    assert!(HelperRequest::receive(&b"\xff\xff\xff\xff{}"[..]).is_err());
    assert!(HelperRequest::receive(&b"\0\0"[..]).is_err());
}
