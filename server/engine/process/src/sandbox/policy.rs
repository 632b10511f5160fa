//! The policy of a command, as a value for the helper, and the helper's report.
//!
//! Rule: a policy says everything; the helper adds what the machine needs and never takes a permission from anywhere
//! else. Absent and empty mean no.

use std::collections::BTreeMap;
use std::fmt;
use std::io::{self, Read, Write};
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::hosts::HostEntry;
use kode_base::paths::AbsPath;

/// The largest policy that is sent or read, in bytes. It has to fit into a pipe without a reader yet.
pub const MAX_POLICY: usize = 60 * 1024;

/// The policy of a command.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SandboxPolicy {
    /// The sandbox of the commands.
    pub kind: SandboxKind,
    /// The folders it may write in, with all beneath except guarded files.
    pub writable: Vec<AbsPath>,
    /// The folder for temporary files, writable too; where the kind can, it is in for `/tmp`.
    pub scratch: AbsPath,
    /// Files and folders it may read and not change, besides those guarded everywhere.
    pub read_only: Vec<AbsPath>,
    /// Files and folders whose contents it may not see.
    pub hidden: Vec<AbsPath>,
    /// The paths in hidden folders that stay visible.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub shown: Vec<AbsPath>,
    /// The user's home folder, where the start files of shells are guarded.
    pub home: Option<AbsPath>,
    /// Which network it gets.
    pub network: Network,
    /// How much it may use.
    pub limits: ResourceLimits,
    /// Its standard input.
    pub input: InputMode,
    /// Variables it gets besides those that commands keep.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub variables: BTreeMap<String, String>,
    /// Whether it runs on beside the user, as a server does: guarded files are held where possible, and nothing is restored
    /// when it ends, for by then the user may have changed it. It ends when its standard error has no reader.
    #[serde(default)]
    pub lasting: bool,
}

/// The sandbox of the commands.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", tag = "name", deny_unknown_fields)]
pub enum SandboxKind {
    /// Namespaces made by bubblewrap, with Landlock and seccomp inside.
    Bubblewrap {
        /// The program.
        program: AbsPath,
    },
    /// Landlock and seccomp alone, the weaker kind.
    Landlock,
    /// The policies of macOS.
    Seatbelt,
}

/// The program that starts commands of the remote sandbox, as `sandbox.remote` names it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", tag = "name", deny_unknown_fields)]
pub enum CommandLauncher {
    /// A container engine with the command line of Docker. Each command is a container of its own.
    Engine {
        /// The program of the engine, found, and its first arguments.
        program: Vec<String>,
        /// The image.
        image: String,
        /// Options of `run` besides ours, which they come after.
        options: Vec<String>,
    },
    /// A program that takes the command as its last arguments, and [`RemoteRequest`] in a variable.
    Program {
        /// The program, found, and its first arguments.
        program: Vec<String>,
    },
}

impl fmt::Display for CommandLauncher {
    /// Where a command runs: "in a container of debian:13".
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Engine { image, .. } => write!(formatter, "in a container of {image}"),
            Self::Program { program } => {
                write!(formatter, "where {} starts it", program.first().map_or("nothing", String::as_str))
            }
        }
    }
}

/// The variable in which a launcher finds [`RemoteRequest`].
pub const REMOTE_REQUEST: &str = "KODE_LS_SANDBOX";

/// The version of [`RemoteRequest`]. Another one is a change that a launcher must know of.
pub const REMOTE_VERSION: u32 = 1;

/// The policy of one command for a launcher, as JSON. Paths are absolute, with all links followed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RemoteRequest<'a> {
    /// [`REMOTE_VERSION`].
    pub version: u32,
    /// A name for the command that no other has.
    pub id: &'a str,
    /// The working directory.
    pub directory: PathBuf,
    /// Folders that the command may write in, under these paths.
    pub writable: &'a [PathBuf],
    /// The folder for temporary files, under this path, writable too.
    pub temporary: &'a PathBuf,
    /// Files and folders in them that it may read and not change.
    pub read_only: Vec<PathBuf>,
    /// Files and folders in them whose contents it may not see.
    pub hidden: Vec<PathBuf>,
    /// The network: `off`, `hosts` for those of `hosts` alone, or `on`.
    pub network: &'static str,
    /// The hosts, as in `sandbox.network.allowedDomains`.
    pub hosts: Vec<String>,
    /// Variables of the command.
    pub variables: &'a BTreeMap<String, String>,
    /// How much it may use.
    pub limits: ResourceLimits,
}

impl SandboxKind {
    /// The name people see.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::Bubblewrap { .. } => "bubblewrap",
            Self::Landlock => "landlock",
            Self::Seatbelt => "seatbelt",
        }
    }
}

/// Which network a command gets.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", tag = "name", deny_unknown_fields)]
pub enum Network {
    /// None.
    #[default]
    Off,
    /// These hosts, through a proxy of ours. No host is no network.
    Allowed {
        /// The hosts.
        hosts: Vec<HostEntry>,
        /// Hosts that are not reached although they are among the others.
        denied: Vec<HostEntry>,
        /// Whether names may stand for addresses that are not public. An address that is listed itself may be private.
        local: bool,
    },
    /// All of it.
    On,
}

impl Network {
    /// Whether there are hosts that take a proxy to be reached.
    #[must_use]
    pub fn needs_proxy(&self) -> bool {
        match self {
            Self::Allowed { hosts, .. } => !hosts.is_empty(),
            Self::Off | Self::On => false,
        }
    }
}

/// How much a command may use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ResourceLimits {
    /// Processes and threads at a time.
    pub processes: u64,
    /// Open files of each process.
    pub open_files: u64,
    /// The size of a file it writes, in bytes.
    pub file_size: u64,
}

impl Default for ResourceLimits {
    fn default() -> Self {
        Self { processes: 4096, open_files: 65_536, file_size: 16 << 30 }
    }
}

/// The standard input of a command.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum InputMode {
    /// Nothing. The helper watches its own: when that ends, its parent is gone, and so the command goes.
    #[default]
    None,
    /// The text after the request on the helper's.
    Rest,
}

/// The first message to the helper; the command is in its arguments.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct HelperRequest {
    /// The policy of the command.
    pub policy: SandboxPolicy,
    /// A folder of this command alone, out of its reach, for the helper's files.
    pub control: AbsPath,
    /// Where the proxy for the network listens; without it no host is let through.
    pub proxy: Option<ProxyAddress>,
    /// The list of guarded files; without it the helper searches itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub guard: Option<AbsPath>,
    /// The program that starts the command elsewhere; without it the command runs on this machine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub launcher: Option<CommandLauncher>,
    /// Whether git as the server runs it checks out commits: files that steer programs are made then.
    #[serde(default)]
    pub is_checkout: bool,
}

/// Where a proxy for the network listens.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub enum ProxyAddress {
    /// On a socket, which its folder keeps to its user.
    Socket(AbsPath),
    /// On loopback, where every program of the machine reaches it.
    #[serde(rename_all = "camelCase")]
    Loopback {
        /// The port.
        port: u16,
        /// The secret that each request names.
        token: ProxyToken,
    },
}

/// The secret of a proxy. Only its commands see it, in their variables.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ProxyToken(String);

impl ProxyToken {
    /// A new one: 244 random bits.
    #[must_use]
    pub fn random() -> Self {
        let half = || uuid::Uuid::new_v4().simple().to_string();
        Self(half() + &half())
    }

    /// The secret.
    #[must_use]
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for ProxyToken {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("ProxyToken(…)")
    }
}

impl HelperRequest {
    /// Writes the request, its length first.
    ///
    /// # Errors
    /// When it is larger than [`MAX_POLICY`], or cannot be written.
    pub fn send(&self, mut to: impl Write) -> io::Result<()> {
        let json = serde_json::to_vec(self)?;
        let length = u32::try_from(json.len()).ok().filter(|length| *length as usize <= MAX_POLICY);
        let length = length.ok_or_else(|| {
            io::Error::other(format!("the policy takes {} bytes, more than {MAX_POLICY}", json.len()))
        })?;
        to.write_all(&length.to_be_bytes())?;
        to.write_all(&json)
    }

    /// Reads one request and not a byte more.
    ///
    /// # Errors
    /// When it is too large, is no request, or ends too early.
    pub fn receive(mut from: impl Read) -> io::Result<Self> {
        let mut length = [0; 4];
        from.read_exact(&mut length)?;
        let length = u32::from_be_bytes(length) as usize;
        if length > MAX_POLICY {
            return Err(io::Error::other(format!("the policy takes {length} bytes, more than {MAX_POLICY}")));
        }
        let mut json = vec![0; length];
        from.read_exact(&mut json)?;
        Ok(serde_json::from_slice(&json)?)
    }
}

/// The sandbox that held a command in the end.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Enforcement {
    /// The name of the kind.
    pub kind: String,
    /// The Landlock rules in force: `full`, `partial`, `none`.
    pub landlock: String,
    /// Whether calls of the system are filtered.
    pub seccomp: bool,
    /// The network, in words.
    pub network: String,
    /// Where this is less than it could be.
    pub weaker: Vec<String>,
}

/// Why a command was not run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", tag = "name", content = "reason")]
pub enum StartFailure {
    /// The sandbox could not be set up.
    Sandbox(String),
    /// The sandbox stood and the program is not there.
    NotFound(String),
    /// The sandbox stood and the program could not be started.
    NotStarted(String),
}

/// A guarded file that a command had changed and that was put back.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RestoredPath {
    /// The file.
    pub path: PathBuf,
    /// Where what the command had put there is now, if it had.
    pub set_aside: Option<PathBuf>,
}

/// A file or folder that was set aside.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct QuarantinedFile {
    /// Where it was.
    pub path: PathBuf,
    /// Where it is now.
    pub kept: PathBuf,
    /// The program that obeys it, for people: "git", "the editor".
    pub obeyed_by: String,
    /// Whether it is complete and can be put back.
    pub is_complete: bool,
    /// Without a sandbox no file is set aside.
    #[cfg(not(any(target_os = "linux", target_os = "macos")))]
    pub(super) never: super::absent::Never,
}

/// The outcome of guarded files.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct GuardReport {
    /// Files and folders that steer other programs, were not there before the command, and were set aside.
    pub set_aside: Vec<QuarantinedFile>,
    /// Guarded files that it changed, as they were again.
    pub restored: Vec<RestoredPath>,
    /// Guarded files that it changed and that could neither be put back nor set aside, with the reason.
    pub changed: Vec<(PathBuf, String)>,
}

impl GuardReport {
    /// Both reports of one command.
    #[must_use]
    pub fn and(mut self, other: Self) -> Self {
        self.set_aside.extend(other.set_aside);
        self.restored.extend(
            other
                .restored
                .into_iter()
                .filter(|restored| !self.restored.contains(restored))
                .collect::<Vec<_>>(),
        );
        self.changed.extend(other.changed);
        self
    }
}

/// The helper's report about an ended command.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct HelperReport {
    /// The sandbox that held the command; nothing when it was not run.
    pub enforced: Option<Enforcement>,
    /// Why it was not run.
    pub failure: Option<StartFailure>,
    /// The signal that ended it.
    pub signal: Option<i32>,
    /// The outcome of guarded files.
    pub guarded: GuardReport,
}
