//! A repository with a home folder, the commands of a person around it, and the file that shows that a plant ran.
//!
//! Rule: an attack is judged by its effect alone: what the person runs afterwards is run for real, outside the sandbox.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;

use kode_e2e::{Output, copy_folder};
use tempfile::TempDir;

use super::Attack;
use crate::sandbox::fixture::{User, become_user, collect, contained, give, parent_of, program};

/// The person's commands afterwards.
pub(super) const NEXT: &str = include_str!("next.sh");
/// How the repository of every scene was made.
const TEMPLATE: &str = "
mkdir -p home ws outside marker state
printf '[user]\\nname = Person\\nemail = person@example.com\\n[init]\\ndefaultBranch = main\\n' > home/.gitconfig
echo true > home/.bashrc
cd ws
git init -q
mkdir .vscode src
echo '{}' > .vscode/tasks.json
echo one > file.txt
echo text > src/main.txt
git add -A
git commit -qm one
";

/// A repository and its surroundings.
pub(super) struct Scene {
    _folder: TempDir,
    base: PathBuf,
    user: User,
}

impl Scene {
    /// A scene that is the same for every attack.
    pub(super) fn new(user: User) -> Self {
        let folder = tempfile::Builder::new().prefix("kode-attack-").tempdir_in(parent_of(user)).unwrap();
        let base = folder.path().canonicalize().unwrap();
        fs::set_permissions(&base, Permissions::from_mode(0o755)).unwrap();
        copy_folder(template(), &base);
        if user == User::Nobody {
            give(&base);
        }
        Self { _folder: folder, base, user }
    }

    /// A path of the scene.
    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.base.join(name)
    }

    /// Prepares a command of the user in the workspace.
    fn prepare(&self, mut command: Command, arguments: &[&str]) -> Command {
        command.args(arguments).current_dir(self.path("ws")).env_clear();
        command.envs([("PATH", "/usr/local/bin:/usr/bin:/bin"), ("LANG", "C.UTF-8"), ("TERM", "dumb")]);
        command.env("HOME", self.path("home")).env("KODE_LS_HOME", self.path("state"));
        command.env("P", self.path("marker/ran")).env("OUT", self.path("outside"));
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).process_group(0);
        become_user(&mut command, self.user);
        command
    }

    /// Runs a script of the person, outside the sandbox. Its processes end with it.
    pub(super) fn by_hand(&self, script: &str) -> Output {
        self.run_bash(&["-c", script])
    }

    fn run_bash(&self, arguments: &[&str]) -> Output {
        let bash = contained(Path::new("bash"), self.user);
        collect(self.prepare(bash, arguments).spawn().unwrap())
    }

    /// Runs an attack outside the sandbox, then the commands of the person. Processes of the attack run on in between.
    pub(super) fn attack_by_hand(&self, attack: &Attack) {
        let folder = self.path("ws");
        let npm = if attack.npm { "npm" } else { "" };
        let script = r#"bash -c "$1" >/dev/null 2>&1 </dev/null; bash -c "$2" next "$3" "$4""#;
        self.run_bash(&["-c", script, "attack", attack.script, NEXT, folder.to_str().unwrap(), npm]);
    }

    /// Runs a script of the agent in the sandbox; it knows `$P` and `$OUT`.
    pub(super) fn in_sandbox(&self, kind: &str, script: &str) -> Output {
        self.in_sandbox_with(kind, std::iter::empty(), script)
    }

    /// As [`Self::in_sandbox`], with further folders to write in.
    pub(super) fn in_sandbox_with(
        &self,
        kind: &str,
        folders: impl Iterator<Item = PathBuf>,
        script: &str,
    ) -> Output {
        let names = format!("P={} OUT={}", self.path("marker/ran").display(), self.path("outside").display());
        let script = format!("{names}\nexport P OUT\n{script}");
        let mut command = Command::new(program(self.user));
        command.args(["sandbox", "--kind", kind]);
        for folder in folders {
            command.arg("--write").arg(folder);
        }
        collect(self.prepare(command, &["--", "bash", "-c", &script]).spawn().unwrap())
    }

    /// As [`Self::in_sandbox`], with a search path of the person's.
    pub(super) fn in_sandbox_by_path(&self, kind: &str, path: &str, script: &str) -> Output {
        let command = Command::new(program(self.user));
        let mut command = self.prepare(command, &["sandbox", "--kind", kind, "--", "bash", "-c", script]);
        collect(command.env("PATH", path).spawn().unwrap())
    }

    /// Does what the person does afterwards in a folder of the scene.
    pub(super) fn proceed(&self, folder: &str, attack: &Attack) {
        let folder = self.path(folder);
        let npm = if attack.npm { "npm" } else { "" };
        let arguments = ["-c", NEXT, "next", folder.to_str().unwrap(), npm];
        self.run_bash(&arguments);
    }

    /// Whether something that the agent planted ran.
    pub(super) fn is_taken(&self) -> bool {
        self.path("marker/ran").exists()
    }

    /// The changes around the workspace.
    pub(super) fn changes_outside(&self) -> Vec<String> {
        let mut changes = Vec::new();
        for (file, content) in [("home/.bashrc", "true\n"), ("home/.gitconfig", SETTINGS)] {
            if fs::read_to_string(self.path(file)).ok().as_deref() != Some(content) {
                changes.push(format!("{file} is another"));
            }
        }
        changes
    }
}

/// The settings of git that [`TEMPLATE`] writes.
const SETTINGS: &str = "[user]\nname = Person\nemail = person@example.com\n[init]\ndefaultBranch = main\n";

/// The folder that every scene is a copy of.
fn template() -> &'static Path {
    static MADE: OnceLock<TempDir> = OnceLock::new();
    let folder = MADE.get_or_init(|| {
        let folder = tempfile::tempdir().unwrap();
        let mut command = Command::new("bash");
        command.args(["-ec", TEMPLATE]).current_dir(folder.path()).env_clear();
        command.env("PATH", "/usr/local/bin:/usr/bin:/bin").env("HOME", folder.path().join("home"));
        let output = command.output().unwrap();
        assert!(output.status.success(), "{output:?}");
        folder
    });
    folder.path()
}
