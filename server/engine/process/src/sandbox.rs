//! The sandbox for commands: the kernel as the wall, whatever the text of a command says.
//!
//! Rule: a command is run exactly as its policy says or not at all. What a policy is made of is data; each system has its own
//! way to set it up, and where none is known no sandbox exists.

#[cfg(not(any(target_os = "linux", target_os = "macos")))]
mod absent;
#[cfg(any(target_os = "linux", target_os = "macos"))]
mod backend;
pub mod detect;
mod environment;
#[cfg(any(target_os = "linux", target_os = "macos"))]
mod guard;
#[cfg(any(target_os = "linux", target_os = "macos"))]
pub mod helper;
mod hidden;
pub mod hosts;
#[cfg(any(target_os = "linux", target_os = "macos"))]
mod known;
pub mod policy;
mod program;
#[cfg(any(target_os = "linux", target_os = "macos"))]
pub mod proxy;
#[cfg(any(target_os = "macos", all(test, target_os = "linux")))]
pub(crate) mod seatbelt;
#[cfg(test)]
#[cfg(target_os = "linux")]
mod tests;
pub mod tied;
#[cfg(any(target_os = "linux", target_os = "macos"))]
mod trial;

use std::collections::BTreeMap;
use std::process::Stdio;

use tokio::process::Command;

use crate::pipes::Sender;
use kode_base::paths::AbsPath;

#[cfg(not(any(target_os = "linux", target_os = "macos")))]
pub use absent::{Sandbox, SandboxRun};
#[cfg(any(target_os = "linux", target_os = "macos"))]
pub use backend::{Sandbox, SandboxRun};
pub use detect::{SandboxSupport, detect};
pub(crate) use environment::inherits;
pub use environment::keeps;
#[cfg(any(target_os = "linux", target_os = "macos"))]
pub use guard::GuardLease;
pub use hidden::{HiddenFilter, PathTest};
pub use hosts::HostEntry;
pub use policy::{
    CommandLauncher, Enforcement, GuardReport, HelperReport, InputMode, Network, QuarantinedFile,
    ResourceLimits, RestoredPath, SandboxKind, SandboxPolicy, StartFailure,
};
pub use program::HelperProgram;

/// The argument that makes the program the helper.
pub const ARGUMENT: &str = "__sandbox";
/// The file the helper leaves its report in.
#[cfg(any(target_os = "linux", target_os = "macos"))]
const REPORT: &str = "report.json";

/// The parts of a sandbox.
#[derive(Clone, Debug)]
pub struct SandboxOptions {
    /// The program that the helper is started from.
    pub helper: HelperProgram,
    /// The sandbox of the commands, as [`SandboxSupport::best`] gives it.
    pub kind: SandboxKind,
    /// The folders commands may write in: the workspace's, and others the user has allowed.
    pub writable: Vec<AbsPath>,
    /// Files they may not change, besides those that are guarded everywhere.
    pub read_only: Vec<AbsPath>,
    /// Scripts that run outside of the sandbox: commands may neither change nor create them.
    pub scripts: Vec<AbsPath>,
    /// Files they may not see, besides those that are hidden everywhere.
    pub hidden: Vec<AbsPath>,
    /// Further parts of the writable folders they may not see.
    pub hides: Option<HiddenFilter>,
    /// The user's home folder.
    pub home: Option<AbsPath>,
    /// The product's folder for its state.
    pub state: AbsPath,
    /// Which network they get.
    pub network: Network,
    /// How much they may use.
    pub limits: ResourceLimits,
    /// The program that starts commands elsewhere; without it they run on this machine.
    pub remote: Option<CommandLauncher>,
}

/// A command that is ready to be started in the sandbox.
#[derive(Debug)]
pub struct PreparedCommand {
    /// The helper, with the command in its arguments.
    pub command: Command,
    /// Its standard input, where its policy is.
    pub input: Stdio,
    /// The resources that live until it has ended, and then give the report.
    pub pending: SandboxRun,
}

/// The sandbox of a program that runs on beside the user and is spoken to over its standard input.
#[derive(Clone, Debug, Default)]
pub struct ServiceAccess {
    /// Variables it gets besides those that commands keep.
    pub variables: BTreeMap<String, String>,
    /// Whether it has the network to itself; otherwise it has that of commands.
    pub network: bool,
    /// Folders it may write in besides those of commands; they have to be there.
    pub writable: Vec<AbsPath>,
    /// Folders it sees wherever they lie, also where it has temporary files of its own; they have to be there.
    pub readable: Vec<AbsPath>,
}

/// A program that is ready to be started in the sandbox and to be spoken to.
#[derive(Debug)]
pub struct PreparedService {
    /// The helper, the program's standard input, and what has to be kept until it has ended.
    pub prepared: PreparedCommand,
    /// The standard input of the program.
    pub input: Sender,
}
