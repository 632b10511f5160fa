//! A workspace with things around it that no command may reach, and the command line that runs probes in it.
//!
//! Rule: the outside is real: files, secrets, listeners and a process of the same user; after every probe they
//! are checked, whatever the probe said.

use std::fs::{self, Permissions};
use std::io::{ErrorKind, Read, Write};
use std::net::{TcpListener, UdpSocket};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown, symlink};
use std::os::unix::net::{SocketAddr, UnixListener};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::time::Instant;

use kode_e2e::{LIMIT, Output, binary};
use rustix::io::Errno;
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, geteuid, kill_process_group, waitid};
use tempfile::TempDir;

/// The content of every secret.
pub(crate) const SECRET: &str = "SECRET";
/// The content of outside and guarded files.
const PRECIOUS: &str = "precious\n";
/// The user that owns nothing.
const NOBODY: u32 = 65534;
/// Where a folder can be made that everybody can reach and that no sandbox puts something else over.
const REACHABLE: &str = "/opt";

/// The user who runs the commands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum User {
    /// The user who runs the tests.
    Own,
    /// A user without any rights; only root can become it.
    Nobody,
}

impl User {
    /// The available users.
    pub(crate) fn all() -> Vec<Self> {
        if geteuid().is_root() { vec![Self::Own, Self::Nobody] } else { vec![Self::Own] }
    }
}

/// The checks after a probe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outside {
    /// Everything is as it was.
    Untouched,
    /// Modes and times may have changed.
    ContentsUntouched,
}

/// A workspace and its surroundings.
pub(crate) struct Fixture {
    _folder: TempDir,
    base: PathBuf,
    user: User,
    tcp: TcpListener,
    udp: UdpSocket,
    unix: UnixListener,
    abstract_name: String,
    marker: tempfile::NamedTempFile,
    posix: tempfile::NamedTempFile,
    system_v: SystemV,
    victim: Child,
}

/// System V objects of a program of the user outside.
struct SystemV {
    user: User,
    segment: String,
    queue: String,
    semaphores: String,
}

impl SystemV {
    fn new(user: User) -> Self {
        let make = |option: &[&str]| {
            let mut command = Command::new("ipcmk");
            command.args(option);
            let output = become_user(&mut command, user).output().unwrap();
            assert!(output.status.success(), "{output:?}");
            let text = String::from_utf8(output.stdout).unwrap();
            text.rsplit(' ').next().unwrap().trim().to_owned()
        };
        Self {
            user,
            segment: make(&["--shmem", "4096", "--mode", "0600"]),
            queue: make(&["--queue", "--mode", "0600"]),
            semaphores: make(&["--semaphore", "1", "--mode", "0600"]),
        }
    }
}

impl Drop for SystemV {
    fn drop(&mut self) {
        let Self { user, segment, queue, semaphores } = self;
        let mut remove = Command::new("ipcrm");
        remove.args(["-m", segment, "-q", queue, "-s", semaphores]);
        let _ = become_user(&mut remove, *user).status();
    }
}

impl Fixture {
    pub(crate) fn new(user: User) -> Self {
        let folder = tempfile::Builder::new().prefix("kode-sandbox-").tempdir_in(parent_of(user)).unwrap();
        let base = folder.path().canonicalize().unwrap();
        fs::set_permissions(&base, Permissions::from_mode(0o755)).unwrap();
        for (path, content) in [
            ("ws/.git/HEAD", "ref: refs/heads/main\n"),
            ("ws/.git/config", PRECIOUS),
            ("ws/.git/hooks/pre-commit", PRECIOUS),
            ("ws/.git/modules/lib/HEAD", PRECIOUS),
            ("ws/.git/modules/lib/config", PRECIOUS),
            ("ws/.vscode/tasks.json", PRECIOUS),
            ("ws/.mcp.json", PRECIOUS),
            ("ws/deep/er/.envrc", PRECIOUS),
            ("ws/src/main.txt", "text\n"),
            ("outside/precious", PRECIOUS),
            ("home/.ssh/id", SECRET),
            ("home/.config/gcloud/key", SECRET),
            ("home/.netrc", SECRET),
            ("home/.bashrc", PRECIOUS),
            ("state/token", SECRET),
        ] {
            let path = base.join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, content).unwrap();
        }
        symlink("../outside", base.join("ws/link-out")).unwrap();
        let unix = UnixListener::bind(base.join("outside/socket")).unwrap();
        let abstract_name = format!("kode-sandbox-{}", base.file_name().unwrap().to_str().unwrap());
        if user == User::Nobody {
            give(&base);
        }
        let tcp = TcpListener::bind("127.0.0.1:0").unwrap();
        let udp = UdpSocket::bind("127.0.0.1:0").unwrap();
        tcp.set_nonblocking(true).unwrap();
        udp.set_nonblocking(true).unwrap();
        unix.set_nonblocking(true).unwrap();
        let mut victim = Command::new("sleep");
        victim.arg("1000").env("SECRET_OF_VICTIM", SECRET);
        let victim = become_user(&mut victim, user).spawn().unwrap();
        let marker = tempfile::Builder::new().prefix("kode-marker-").tempfile_in("/tmp").unwrap();
        let posix = tempfile::Builder::new().prefix("kode-posix-").tempfile_in("/dev/shm").unwrap();
        fs::write(posix.path(), SECRET).unwrap();
        if user == User::Nobody {
            give(posix.path());
        }
        let system_v = SystemV::new(user);
        Self { _folder: folder, base, user, tcp, udp, unix, abstract_name, marker, posix, system_v, victim }
    }

    /// The path of something in or around the workspace.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.base.join(name)
    }

    /// `kode-ls` as the user, in the workspace, with keys in its environment.
    pub(crate) fn kode_ls(&self, arguments: &[&str]) -> Command {
        self.program(&program(self.user), arguments)
    }

    /// As [`Self::kode_ls`], another program.
    pub(crate) fn program(&self, program: &Path, arguments: &[&str]) -> Command {
        let mut command = Command::new(program);
        command.args(arguments).current_dir(self.path("ws")).env_clear();
        command.envs([("PATH", "/usr/local/bin:/usr/bin:/bin"), ("LANG", "C.UTF-8"), ("TERM", "dumb")]);
        command.env("HOME", self.path("home")).env("KODE_LS_HOME", self.path("state"));
        for (name, value) in [
            ("ANTHROPIC_API_KEY", "SECRET-1"),
            ("GITHUB_TOKEN", "SECRET-2"),
            ("LD_PRELOAD_", "SECRET-3"),
            ("SSH_AUTH_SOCK", "SECRET-4"),
        ] {
            command.env(name, value);
        }
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).process_group(0);
        become_user(&mut command, self.user);
        command
    }

    /// Runs a script in the sandbox. It knows `$out`, `$tcp`, `$udp`, `$socket`, `$abstract`, `$victim`, `$marker`,
    /// `$posix`, `$segment`, `$queue`, `$semaphores` and `$state`.
    pub(crate) fn run(&self, options: &[&str], script: &str) -> Output {
        let script = format!("{}\n{script}", self.names());
        let mut arguments = vec!["sandbox"];
        arguments.extend(options);
        arguments.extend(["--", "bash", "-c", &script]);
        collect(self.kode_ls(&arguments).spawn().unwrap())
    }

    fn names(&self) -> String {
        let abstract_address = SocketAddr::from_abstract_name(&self.abstract_name).unwrap();
        assert!(abstract_address.is_unnamed() || abstract_address.as_pathname().is_none());
        let port = |address: std::io::Result<std::net::SocketAddr>| address.unwrap().port();
        format!(
            "out={} tcp={} udp={} socket={} abstract={} victim={} marker={} posix={} segment={} queue={} semaphores={} state={}",
            self.path("outside").display(),
            port(self.tcp.local_addr()),
            port(self.udp.local_addr()),
            self.path("outside/socket").display(),
            self.abstract_name,
            self.victim.id(),
            self.marker.path().display(),
            self.posix.path().display(),
            self.system_v.segment,
            self.system_v.queue,
            self.system_v.semaphores,
            self.path("state").display(),
        )
    }

    /// Listens under a name that is in no folder.
    pub(crate) fn listen_abstract(&self) -> UnixListener {
        let address = SocketAddr::from_abstract_name(&self.abstract_name).unwrap();
        let listener = UnixListener::bind_addr(&address).unwrap();
        listener.set_nonblocking(true).unwrap();
        listener
    }

    /// Fails unless everything outside and guarded is as it was and no connection came.
    pub(crate) fn check(&mut self, outside: Outside, what: &str) {
        for file in [
            "ws/.git/config",
            "ws/.git/hooks/pre-commit",
            "ws/.git/modules/lib/config",
            "ws/.vscode/tasks.json",
            "ws/.mcp.json",
            "ws/deep/er/.envrc",
            "outside/precious",
            "home/.bashrc",
        ] {
            let content =
                fs::read_to_string(self.path(file)).unwrap_or_else(|error| panic!("{what}: {file}: {error}"));
            assert_eq!(content, PRECIOUS, "{what}: {file}");
        }
        let names = |folder: &str| {
            let entries = fs::read_dir(self.path(folder)).unwrap();
            let mut names: Vec<_> =
                entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
            names.sort();
            names
        };
        assert_eq!(names("ws/.git/hooks"), ["pre-commit"], "{what}");
        assert_eq!(names("outside"), ["precious", "socket"], "{what}");
        assert_eq!(names("home"), [".bashrc", ".config", ".netrc", ".ssh"], "{what}");
        let state = names("state");
        assert!(state.iter().all(|name| ["set-aside", "token"].contains(&&**name)), "{what}: {state:?}");
        assert!(state.contains(&"token".to_owned()), "{what}: {state:?}");
        if outside == Outside::Untouched {
            let precious = fs::metadata(self.path("outside/precious")).unwrap();
            assert_eq!((precious.mode() & 0o7777, precious.nlink()), (0o644, 1), "{what}");
        }
        let would_block =
            |error: Option<std::io::Error>| error.is_some_and(|error| error.kind() == ErrorKind::WouldBlock);
        assert!(would_block(self.tcp.accept().err()), "{what}: somebody connected to the listener");
        assert!(would_block(self.udp.recv(&mut [0; 8]).err()), "{what}: somebody sent a datagram");
        assert!(would_block(self.unix.accept().err()), "{what}: somebody connected to the socket");
        assert_eq!(self.victim.try_wait().unwrap(), None, "{what}: the process outside was ended");
    }
}

impl Drop for Fixture {
    fn drop(&mut self) {
        let _ = self.victim.kill();
        let _ = self.victim.wait();
    }
}

/// Where the folders of a user are made. What lies in `/tmp` is not there in the sandbox, and nothing could be tried on
/// it; so folders are made where the checkout is only when the user may write nowhere else.
pub(crate) fn parent_of(user: User) -> &'static Path {
    let parent = match user {
        User::Own if !geteuid().is_root() => Path::new(env!("CARGO_TARGET_TMPDIR")),
        User::Own | User::Nobody => Path::new(REACHABLE),
    };
    fs::create_dir_all(parent).unwrap();
    parent
}

/// Has a command run as a user.
pub(crate) fn become_user(command: &mut Command, user: User) -> &mut Command {
    match user {
        User::Own => command,
        User::Nobody => command.gid(NOBODY).uid(NOBODY),
    }
}

/// Gives a folder to the user that owns nothing.
pub(crate) fn give(folder: &Path) {
    chown_all(folder);
}

fn chown_all(path: &Path) {
    if path.is_symlink() {
        return;
    }
    chown(path, Some(NOBODY), Some(NOBODY)).unwrap();
    if path.is_dir() {
        fs::read_dir(path).unwrap().for_each(|entry| chown_all(&entry.unwrap().path()));
    }
}

/// The program where the user can reach it.
pub(crate) fn program(user: User) -> PathBuf {
    static LINK: OnceLock<PathBuf> = OnceLock::new();
    match user {
        User::Own => binary(),
        User::Nobody => LINK.get_or_init(link_program).clone(),
    }
}

/// Links the program into a folder that bears this process's number. It outlives the process, whose statics are never
/// dropped, so those of processes that are gone are removed.
fn link_program() -> PathBuf {
    const PREFIX: &str = "kode-sandbox-program-";
    for entry in fs::read_dir(REACHABLE).unwrap().flatten() {
        let name = entry.file_name();
        let number = name.to_str().and_then(|name| name.strip_prefix(PREFIX));
        if number.is_some_and(|number| !Path::new("/proc").join(number).exists()) {
            // Another test process may be at it too.
            let _ = fs::remove_dir_all(entry.path());
        }
    }
    let folder = Path::new(REACHABLE).join(format!("{PREFIX}{}", std::process::id()));
    fs::create_dir(&folder).unwrap();
    fs::set_permissions(&folder, Permissions::from_mode(0o755)).unwrap();
    let program = folder.join("kode-ls");
    // A link takes no room.
    if fs::hard_link(binary(), &program).is_err() {
        fs::copy(binary(), &program).unwrap();
    }
    program
}

/// Kills the process group of a program when dropped, also when the test panics.
struct GroupKiller(Pid);

impl Drop for GroupKiller {
    fn drop(&mut self) {
        let _ = kill_process_group(self.0, Signal::KILL);
    }
}

/// A program in a namespace of processes of its own: when it ends, or the thread that starts it, every process below it ends
/// too, in whatever session. An ordinary user takes part in a namespace of users as well.
pub(crate) fn contained(program: &Path, user: User) -> Command {
    let mut command = Command::new("setpriv");
    command.args(["--pdeathsig", "KILL", "unshare"]);
    if user == User::Nobody || !geteuid().is_root() {
        command.args(["--user", "--map-current-user"]);
    }
    command.args(["--pid", "--fork", "--kill-child=KILL", "--mount-proc"]).arg(program);
    command
}

/// Waits for the end of a program, with the one limit of all waits. Processes left in its group are killed.
pub(crate) fn collect(mut child: Child) -> Output {
    let group = Pid::from_child(&child);
    drop(child.stdin.take());
    let killer = GroupKiller(group);
    let read = |stream: Option<Box<dyn Read + Send>>| {
        std::thread::spawn(move || {
            let mut bytes = Vec::new();
            stream.map(|mut stream| stream.read_to_end(&mut bytes));
            String::from_utf8_lossy(&bytes).into_owned()
        })
    };
    let stdout = read(child.stdout.take().map(|stream| Box::new(stream) as _));
    let stderr = read(child.stderr.take().map(|stream| Box::new(stream) as _));
    let (done, ended) = std::sync::mpsc::channel::<()>();
    let watcher = std::thread::spawn(move || {
        if ended.recv_timeout(LIMIT) == Err(std::sync::mpsc::RecvTimeoutError::Timeout) {
            let _ = kill_process_group(group, Signal::KILL);
        }
    });
    // The group is killed while its first process is a zombie: its number belongs to no other group before.
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
    while waitid(WaitId::Pid(group), options).is_err_and(|error| error == Errno::INTR) {}
    drop(killer);
    let status = child.wait().unwrap();
    drop(done);
    watcher.join().unwrap();
    let code = status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or_default());
    Output { code, stdout: stdout.join().unwrap(), stderr: stderr.join().unwrap() }
}

/// Sends what the helper wants first: a length and this many bytes.
pub(crate) fn send(mut to: impl Write, json: &serde_json::Value) {
    let json = json.to_string();
    to.write_all(&u32::try_from(json.len()).unwrap().to_be_bytes()).unwrap();
    to.write_all(json.as_bytes()).unwrap();
}

/// Waits until no process has `mark` in its command line.
pub(crate) fn wait_until_gone(mark: &str) {
    let deadline = Instant::now() + LIMIT;
    while runs(mark) {
        assert!(Instant::now() < deadline, "a process `{mark}` is still there");
        std::thread::yield_now();
    }
}

fn runs(mark: &str) -> bool {
    let entries = fs::read_dir("/proc").unwrap().flatten();
    entries.filter_map(|entry| fs::read(entry.path().join("cmdline")).ok()).any(|line| {
        // The test's own command line names no mark, and a helper's is longer.
        line.starts_with(mark.as_bytes())
    })
}
