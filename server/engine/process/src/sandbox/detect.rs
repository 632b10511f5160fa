//! Which sandboxes this machine offers, found out by trying.
//!
//! Rule: programs are taken from fixed folders of the system alone, never from `PATH`, which a workspace may have a say
//! in; a trial has a time limit, and its outcome is kept.

#[cfg(target_os = "linux")]
mod linux;
#[cfg(target_os = "macos")]
mod macos;

use std::sync::OnceLock;

use super::policy::SandboxKind;
use kode_base::paths::AbsPath;

/// The oldest Landlock that can hold a command alone.
const LEAST_LANDLOCK: u32 = 3;

/// The support of this machine.
#[derive(Clone, Debug)]
pub struct SandboxSupport {
    /// Bubblewrap, or why it cannot be used.
    pub bubblewrap: Result<Bubblewrap, String>,
    /// The version of Landlock, if there is one; 6 represents all since.
    pub landlock: Option<u32>,
    /// Whether calls of the system can be filtered.
    pub seccomp: bool,
    /// Why this system has no sandbox at all; nothing where one is looked for.
    pub absent: Option<&'static str>,
    /// Whether Seatbelt works, or why it does not; nothing on other systems than macOS.
    pub seatbelt: Option<Result<(), String>>,
}

/// A bubblewrap that works.
#[derive(Clone, Debug)]
pub struct Bubblewrap {
    /// The program.
    pub program: AbsPath,
    /// Its version, as it prints it.
    pub version: String,
}

impl SandboxSupport {
    /// The best kind there is.
    ///
    /// # Errors
    /// The reason why no sandbox exists; every command asks then.
    pub fn best(&self) -> Result<SandboxKind, String> {
        if let Some(reason) = self.absent {
            return Err(reason.to_owned());
        }
        if self.seatbelt.is_some() {
            return self.seatbelt();
        }
        self.bubblewrap().or_else(|bubblewrap| {
            self.landlock_alone().map_err(|landlock| format!("{bubblewrap}; {landlock}"))
        })
    }

    /// The kind made by bubblewrap.
    ///
    /// # Errors
    /// Why it cannot be used.
    pub fn bubblewrap(&self) -> Result<SandboxKind, String> {
        if !self.seccomp {
            return Err("this machine has no filter for calls of the system".to_owned());
        }
        let bubblewrap = self.bubblewrap.as_ref().map_err(Clone::clone)?;
        Ok(SandboxKind::Bubblewrap { program: bubblewrap.program.clone() })
    }

    /// The kind of macOS.
    ///
    /// # Errors
    /// Why it cannot be used.
    pub fn seatbelt(&self) -> Result<SandboxKind, String> {
        match &self.seatbelt {
            Some(tried) => tried.clone().map(|()| SandboxKind::Seatbelt),
            None => Err("Seatbelt is the sandbox of macOS".to_owned()),
        }
    }

    /// The weaker kind.
    ///
    /// # Errors
    /// Why it cannot be used.
    pub fn landlock_alone(&self) -> Result<SandboxKind, String> {
        match self.landlock {
            None => Err("this kernel has no Landlock".to_owned()),
            Some(version) if version < LEAST_LANDLOCK => {
                Err(format!("this kernel's Landlock is version {version}; {LEAST_LANDLOCK} is needed"))
            }
            Some(_) if !self.seccomp => Err("this machine has no filter for calls of the system".to_owned()),
            Some(_) => Ok(SandboxKind::Landlock),
        }
    }
}

/// The kind that this machine offers. The first call tries it, which blocks for up to some seconds.
pub fn detect() -> &'static SandboxSupport {
    static SUPPORT: OnceLock<SandboxSupport> = OnceLock::new();
    SUPPORT.get_or_init(try_all)
}

#[cfg(target_os = "linux")]
use linux::try_all;
#[cfg(target_os = "macos")]
use macos::try_all;

/// Why there is no sandbox on this system.
#[cfg(windows)]
pub(super) const NONE: &str = "Windows has no sandbox for commands; run kode-ls in WSL2 to have one";
/// Why there is no sandbox on this system.
#[cfg(not(any(windows, target_os = "linux", target_os = "macos")))]
pub(super) const NONE: &str = "there is a sandbox for commands on Linux and macOS only";

#[cfg(not(any(target_os = "linux", target_os = "macos")))]
fn try_all() -> SandboxSupport {
    SandboxSupport {
        bubblewrap: Err(NONE.to_owned()),
        landlock: None,
        seccomp: false,
        absent: Some(NONE),
        seatbelt: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_best_kind_is_that_of_the_system_and_otherwise_why_there_is_none() {
        let support = |seatbelt| SandboxSupport {
            bubblewrap: Err("no bwrap".to_owned()),
            landlock: None,
            seccomp: true,
            absent: None,
            seatbelt,
        };
        assert_eq!(support(Some(Ok(()))).best(), Ok(SandboxKind::Seatbelt));
        assert_eq!(support(Some(Err("it is broken".to_owned()))).best(), Err("it is broken".to_owned()));
        let none = support(None);
        assert_eq!(none.best(), Err("no bwrap; this kernel has no Landlock".to_owned()));
        assert_eq!(none.seatbelt(), Err("Seatbelt is the sandbox of macOS".to_owned()));
        let absent = SandboxSupport { absent: Some("none here"), ..none };
        assert_eq!(absent.best(), Err("none here".to_owned()));
    }
}
