//! A command as the Bash tool runs it: plain, and in either kind of sandbox under the policy of a workspace without settings.
//!
//! Rule: the shell prepares, runs and concludes it, guarded files included; the floors are the same command without a sandbox and
//! bubblewrap alone. Linux alone.

use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use kode_engine::base::command_shell::CommandShell;
use kode_engine::base::paths::{AbsPath, real_path};
use kode_engine::config::policies::PolicyProvider;
use kode_engine::config::settings::{EditorSettings, PolicyOptions, SettingsPolicies};
use kode_engine::process::outcome::Exit;
use kode_engine::process::sandbox::{
    HelperProgram, Network, ResourceLimits, Sandbox, SandboxKind, SandboxOptions, detect,
};
use kode_engine::process::shell::{CommandSpec, Shell};
use tokio::runtime::Runtime;
use tokio_util::sync::CancellationToken;

use crate::measure::{Spread, by_turns, figure, heading, row, time};

/// Runs that are not counted.
const WARM_UP: usize = 5;
/// Runs of each that are counted, by turns.
const RUNS: usize = 60;
/// Source files of the workspace, of which twenty are in each folder.
const FILES: usize = 1_000;
/// How long a command may take.
const LIMIT: Duration = Duration::from_secs(60);
/// The namespaces of the sandbox, and nothing more.
const ALONE: [&str; 14] = [
    "--unshare-user",
    "--unshare-pid",
    "--unshare-net",
    "--unshare-ipc",
    "--unshare-uts",
    "--die-with-parent",
    "--ro-bind",
    "/",
    "/",
    "--proc",
    "/proc",
    "--dev",
    "/dev",
    "true",
];

pub(crate) fn run() {
    // Not among temporary files, which may be thousands: each file beside the hidden state is a rule of Landlock.
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a temporary folder");
    let root = AbsPath::new(real_path(folder.path()).expect("it is there")).expect("it is absolute");
    let workspace = root.join("ws");
    lay_out(workspace.as_path());
    let Ok(SandboxKind::Bubblewrap { program }) = detect().best() else {
        heading("`true` as the Bash tool runs it: not measured, because bubblewrap does not work here");
        return;
    };
    let runtime = Runtime::new().expect("a runtime");
    let kinds = [SandboxKind::Bubblewrap { program: program.clone() }, SandboxKind::Landlock];
    let [bubblewrap, landlock] = kinds.map(|kind| Some(Arc::new(sandbox(&root, &workspace, kind))));
    let shell = Shell::new(workspace.clone());
    let command = |sandbox: &Option<Arc<Sandbox>>| {
        let spec = CommandSpec {
            command: "true".to_owned(),
            shell: CommandShell::Bash,
            directory: workspace.clone(),
            timeout: LIMIT,
            sandbox: sandbox.clone(),
            call: None,
        };
        time(|| {
            let outcome = runtime.block_on(shell.run(spec, |_| {}, &CancellationToken::new()));
            assert_eq!(outcome.expect("it is run").exit, Exit::Code(0));
        })
    };
    let alone = || {
        let mut command = Command::new(program.as_path());
        command.args(ALONE).stdin(Stdio::null());
        time(|| assert!(command.status().expect("it is started").success()))
    };
    let times = by_turns(
        WARM_UP,
        RUNS,
        [&mut || command(&None), &mut || alone(), &mut || command(&bubblewrap), &mut || command(&landlock)],
    );
    let [plain, alone, bubblewrap, landlock] = times.map(|times| Spread::of(times, 1));
    heading(&format!("`true` as the Bash tool runs it, {RUNS} runs"));
    row("without a sandbox", &plain, "");
    row("`true` in bubblewrap alone", &alone, "");
    row("in bubblewrap", &bubblewrap, "");
    row("in Landlock", &landlock, "");
    let over = |spread: &Spread, floor: f64| (spread.median - floor) * 1e3;
    figure(
        "bubblewrap over plain and bubblewrap alone",
        over(&bubblewrap, plain.median + alone.median),
        " ms",
        "8 ms",
    );
    figure("Landlock over plain", over(&landlock, plain.median), " ms", "4 ms");
}

/// The sandbox of a workspace without settings of its own, of this kind.
fn sandbox(root: &AbsPath, workspace: &AbsPath, kind: SandboxKind) -> Sandbox {
    let program = std::env::var_os("KODE_LS_BIN").unwrap_or_else(|| env!("CARGO_BIN_EXE_kode-ls").into());
    let helper = HelperProgram::beside(program.into());
    let policies = SettingsPolicies::new(PolicyOptions {
        home: etcetera::home_dir().ok().and_then(|home| AbsPath::new(home).ok()),
        state: root.join("state"),
        helper: helper.clone(),
        command_line: Vec::new(),
        editor: EditorSettings::default(),
    });
    let policy = policies.of(std::slice::from_ref(workspace)).current();
    let common = policy.sandbox.as_ref().expect("there is a sandbox").policy();
    let made = Sandbox::new(SandboxOptions {
        helper,
        kind,
        writable: common.writable.clone(),
        read_only: common.read_only.clone(),
        scripts: Vec::new(),
        hidden: common.hidden.clone(),
        hides: None,
        home: common.home.clone(),
        state: root.join("state"),
        network: Network::Off,
        limits: ResourceLimits::default(),
        remote: None,
    });
    made.expect("a sandbox")
}

/// A workspace of a size that is common, with a repository.
fn lay_out(workspace: &Path) {
    let write = |name: String| {
        let path = workspace.join(name);
        std::fs::create_dir_all(path.parent().expect("a file has a folder")).expect("it is ours");
        std::fs::write(path, "text\n").expect("it is ours");
    };
    for name in [
        ".git/config",
        ".git/HEAD",
        ".git/hooks/pre-commit",
        ".git/refs/heads/x",
        ".git/objects/x",
        ".vscode/tasks.json",
    ] {
        write(name.to_owned());
    }
    (0..FILES).for_each(|file| write(format!("src/{}/{file}.rs", file / 20)));
}
