//! Systems without a sandbox.
//!
//! Rule: the types have no values, so that code for a sandbox compiles everywhere and cannot run where none exists.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use tokio::process::Command;

use super::{
    CommandLauncher, GuardReport, Network, PreparedCommand, PreparedService, QuarantinedFile, SandboxOptions,
    SandboxPolicy, ServiceAccess, StartFailure,
};
use crate::outcome::{CapturedOutput, Exit};
use kode_base::paths::AbsPath;

/// The type without values.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Never {}

/// The sandbox that this system lacks.
#[derive(Debug)]
pub struct Sandbox {
    never: Never,
}

/// A command in such a sandbox.
#[derive(Debug)]
pub struct SandboxRun {
    never: Never,
}

#[expect(clippy::missing_errors_doc, reason = "nothing of it is ever called")]
impl Sandbox {
    /// Refuses: this system has no sandbox.
    pub fn new(_options: SandboxOptions) -> io::Result<Self> {
        Err(io::Error::new(io::ErrorKind::Unsupported, super::detect::NONE))
    }

    /// Whether it holds commands as another one does.
    #[must_use]
    pub fn is_like(&self, _other: &Self) -> bool {
        match self.never {}
    }

    /// The limits of its commands.
    #[must_use]
    pub fn policy(&self) -> &SandboxPolicy {
        match self.never {}
    }

    /// The program that starts its commands elsewhere.
    #[must_use]
    pub fn remote(&self) -> Option<&CommandLauncher> {
        match self.never {}
    }

    /// The folder for temporary files.
    #[must_use]
    pub fn scratch(&self) -> &AbsPath {
        match self.never {}
    }

    /// The same sandbox for commands that may write in these folders.
    pub fn writing_in(&self, _writable: Vec<AbsPath>, _readable: &[AbsPath]) -> io::Result<Self> {
        match self.never {}
    }

    /// The same sandbox, whose commands have this network.
    #[must_use]
    pub fn reaching(self, _network: Network) -> Self {
        match self.never {}
    }

    /// The same sandbox, whose commands get these variables.
    #[must_use]
    pub fn giving<'v>(self, _variables: impl Iterator<Item = (&'v str, &'v str)>) -> Self {
        match self.never {}
    }

    /// The same sandbox for git as the server runs it.
    #[must_use]
    pub(crate) fn for_checkouts(self) -> Self {
        match self.never {}
    }

    /// The walk through the workspace ahead of the first command.
    pub fn walk_ahead(self: &Arc<Self>) -> impl FnOnce() + Send + 'static {
        match self.never {}
        #[expect(unreachable_code, reason = "names the type")]
        || ()
    }

    /// Files of commands that steer other programs.
    #[must_use]
    pub fn undecided(&self) -> Vec<QuarantinedFile> {
        match self.never {}
    }

    /// Prepares a command.
    pub fn prepare(
        self: &Arc<Self>,
        _command: &Command,
        _variables: BTreeMap<String, String>,
        _is_attended: bool,
    ) -> io::Result<PreparedCommand> {
        match self.never {}
    }

    /// Prepares a program that runs on beside the user.
    pub async fn prepare_lasting(
        self: &Arc<Self>,
        _command: &Command,
        _needs: ServiceAccess,
    ) -> io::Result<PreparedService> {
        match self.never {}
    }

    /// Prepares a command that is given something to read.
    pub async fn prepare_fed(
        self: &Arc<Self>,
        _command: &Command,
        _variables: BTreeMap<String, String>,
    ) -> io::Result<PreparedService> {
        match self.never {}
    }
}

#[expect(clippy::missing_errors_doc, reason = "nothing of it is ever called")]
impl SandboxRun {
    /// How the command ended.
    pub async fn conclude(
        self,
        _exit: Exit,
        _output: &CapturedOutput,
    ) -> Result<(Exit, GuardReport), StartFailure> {
        match self.never {}
    }
}

#[expect(clippy::missing_errors_doc, reason = "nothing of it is ever called")]
impl QuarantinedFile {
    /// Puts it back.
    pub fn put_back(&self) -> io::Result<()> {
        match self.never {}
    }

    /// The beginning of its content.
    #[must_use]
    pub fn excerpt(&self) -> String {
        match self.never {}
    }
}
