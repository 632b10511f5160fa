//! The trial of the sandbox of macOS.
//!
//! Rule: see the module above.

use std::path::Path;

use super::SandboxSupport;
use crate::sandbox::helper::{NOTHING, SANDBOX_EXEC};
use crate::sandbox::trial::said;

/// The policy of the trial.
const ALL: &str = "(version 1)(allow default)";

pub(super) fn try_all() -> SandboxSupport {
    let tried = said(Path::new(SANDBOX_EXEC), &["-p", ALL, NOTHING]).map(drop);
    SandboxSupport {
        absent: None,
        bubblewrap: Err("bubblewrap is a program of Linux".to_owned()),
        landlock: None,
        seccomp: false,
        seatbelt: Some(tried.map_err(|error| format!("`{SANDBOX_EXEC}` does not work here: {error}"))),
    }
}
