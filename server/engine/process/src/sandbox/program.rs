//! The program that sandbox helpers are started from: a small one beside this program, or this program itself.
//!
//! Rule: a helper is of the same source as the program that starts it. The small program compares the builds and becomes the
//! other one where they differ, so that a file that is left from an earlier build or version changes nothing but time.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use super::ARGUMENT;

/// The file name of the small program. It starts in a third of the time: the kernel and the loader touch 1 MB of it, and
/// 5 MB of the other.
#[cfg(any(target_os = "linux", target_os = "macos"))]
const FILE: &str = "kode-ls-helper";
/// The text in front of a build.
#[cfg(any(target_os = "linux", target_os = "macos"))]
pub(super) const BUILD_PREFIX: &str = "build-";
/// The build of this source, as an argument.
#[cfg(any(target_os = "linux", target_os = "macos"))]
pub(super) const BUILD: &str = concat!("build-", env!("KODE_SANDBOX_BUILD"));

/// The program that sandbox helpers are started from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HelperProgram {
    file: PathBuf,
    /// Where `file` is the small program: the other one, for another build.
    other: Option<PathBuf>,
}

impl HelperProgram {
    /// The program at this path, which is the helper when it is started with [`ARGUMENT`].
    #[must_use]
    pub fn itself(program: PathBuf) -> Self {
        Self { file: program, other: None }
    }

    /// The small program beside this program, or this program where there is none that may be run, and on systems without a
    /// sandbox.
    #[must_use]
    pub fn beside(program: PathBuf) -> Self {
        #[cfg(any(target_os = "linux", target_os = "macos"))]
        {
            use rustix::fs::{Access, access};

            let small = program.with_file_name(FILE);
            if small.is_file() && access(&small, Access::EXEC_OK).is_ok() {
                return Self { file: small, other: Some(program) };
            }
        }
        Self::itself(program)
    }

    /// The file to start.
    #[must_use]
    pub fn file(&self) -> &Path {
        &self.file
    }

    /// Its first arguments, which come before those of the helper.
    #[must_use]
    pub fn arguments(&self) -> Vec<OsString> {
        match &self.other {
            #[cfg(any(target_os = "linux", target_os = "macos"))]
            Some(other) => vec![BUILD.into(), other.into()],
            _ => vec![ARGUMENT.into()],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg(unix)]
    fn the_small_program_is_taken_where_it_lies_beside_and_may_be_run() {
        use std::os::unix::fs::PermissionsExt;

        let folder = tempfile::tempdir().unwrap();
        let own = folder.path().join("kode-ls");
        assert_eq!(HelperProgram::beside(own.clone()), HelperProgram::itself(own.clone()));
        let small = folder.path().join(FILE);
        std::fs::write(&small, "").unwrap();
        std::fs::set_permissions(&small, std::fs::Permissions::from_mode(0o644)).unwrap();
        assert_eq!(HelperProgram::beside(own.clone()), HelperProgram::itself(own.clone()));
        std::fs::set_permissions(&small, std::fs::Permissions::from_mode(0o755)).unwrap();
        let helper = HelperProgram::beside(own.clone());
        assert_eq!(helper.file(), small);
        assert_eq!(helper.arguments(), [BUILD.into(), own.into_os_string()]);
    }
}
