//! Trials of the sandboxes of Linux.
//!
//! Rule: see the module above.

use std::path::Path;

use super::{Bubblewrap, SandboxSupport};
use crate::sandbox::helper::{landlock, namespaces, seccomp};
use crate::sandbox::policy::Network;
use crate::sandbox::trial::said;
use kode_base::paths::AbsPath;

/// Where bubblewrap may be.
const FOLDERS: [&str; 3] = ["/usr/bin", "/bin", "/usr/local/bin"];

pub(super) fn try_all() -> SandboxSupport {
    SandboxSupport {
        absent: None,
        bubblewrap: bubblewrap(),
        landlock: landlock::version(),
        seccomp: seccomp::is_supported(),
        seatbelt: None,
    }
}

fn bubblewrap() -> Result<Bubblewrap, String> {
    let program =
        FOLDERS.iter().map(|folder| Path::new(folder).join("bwrap")).find(|program| program.is_file());
    let program = program.ok_or("bubblewrap is not installed (the program `bwrap`)")?;
    let program = AbsPath::new(program).map_err(|error| error.to_string())?;
    let mut arguments = namespaces(&Network::Off);
    arguments.extend(["--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc", "--tmpfs", "/run", "--"]);
    arguments.extend([program.as_path().to_str().unwrap_or_default(), "--version"]);
    // Its content is itself again: so the trial reports the version as well.
    let version = said(program.as_path(), &arguments)
        .map_err(|error| format!("bubblewrap does not work here: {error}"))?;
    let version = version.trim().trim_start_matches("bubblewrap ").to_owned();
    Ok(Bubblewrap { program, version })
}
