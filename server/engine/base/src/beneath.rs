//! Opening files beneath a folder that is already open, so that no link leads out of it.
//!
//! Rule: a path is never checked by name and then opened by name: it is opened first, and the descriptor says where it is.

use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::path::{Component, Path, PathBuf};

use rustix::fs::{AtFlags, CWD, Mode, OFlags, openat, statat};
use rustix::io::Errno;

/// Where the kernel shows what a descriptor is open on.
#[cfg(target_os = "linux")]
const DESCRIPTORS: &str = "/proc/self/fd";
#[cfg(not(target_os = "linux"))]
const DESCRIPTORS: &str = "/dev/fd";

/// How a folder is opened that is only passed through: without the right to list it where the system knows of that.
#[cfg(target_os = "linux")]
const PASSED: OFlags = OFlags::PATH.union(OFlags::DIRECTORY);
#[cfg(not(target_os = "linux"))]
const PASSED: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY);

/// Opens a folder, no component of whose path is a link.
///
/// # Errors
/// As [`open_in`].
pub fn open_folder(path: &Path) -> io::Result<OwnedFd> {
    open_whole(path, OFlags::RDONLY | OFlags::DIRECTORY)
}

/// Opens a folder without the right to list it, no component of whose path is a link.
///
/// # Errors
/// As [`open_in`].
pub fn pass_folder(path: &Path) -> io::Result<OwnedFd> {
    open_whole(path, PASSED)
}

/// As [`pass_folder`], of a path beneath an open folder.
///
/// # Errors
/// As [`open_in`].
pub fn pass_folder_in(folder: impl AsFd, path: &Path) -> io::Result<OwnedFd> {
    open_in(folder, path, PASSED, Mode::empty())
}

/// Opens something by its whole path, no component of which is a link.
fn open_whole(path: &Path, flags: OFlags) -> io::Result<OwnedFd> {
    let below = path.strip_prefix("/").map_err(|_| io::Error::from(io::ErrorKind::InvalidInput))?;
    if below.as_os_str().is_empty() {
        return Ok(openat(CWD, "/", flags | OFlags::CLOEXEC, Mode::empty())?);
    }
    let root = openat(CWD, "/", PASSED | OFlags::CLOEXEC, Mode::empty())?;
    open_in(&root, below, flags, Mode::empty())
}

/// Whether something lies at a path beneath an open folder, no folder on the way to which is a link.
pub fn exists(folder: impl AsFd, path: &Path) -> bool {
    let place = |path: &Path| pass_folder_in(folder.as_fd(), path).ok();
    let holder = match path.parent().filter(|parent| !parent.as_os_str().is_empty()) {
        Some(parent) => place(parent),
        None => folder.as_fd().try_clone_to_owned().ok(),
    };
    let name = path.file_name();
    holder.zip(name).is_some_and(|(holder, name)| statat(&holder, name, AtFlags::SYMLINK_NOFOLLOW).is_ok())
}

/// Opens a file for reading by its whole path, no component of which is a link; a pipe is not waited for.
///
/// # Errors
/// As [`open_in`].
pub fn open_file(path: &Path) -> io::Result<File> {
    Ok(File::from(open_whole(path, OFlags::RDONLY | OFlags::NONBLOCK)?))
}

/// Whether an error says that a link is in a path, or that it leads out of its folder.
#[must_use]
pub fn is_link(error: &io::Error) -> bool {
    let code = error.raw_os_error();
    [Errno::LOOP, Errno::XDEV].iter().any(|link| Some(link.raw_os_error()) == code)
}

/// Whether an error says that a path does not lead to anything without a link: nothing is there, or a link is.
#[must_use]
pub fn is_gone(error: &io::Error) -> bool {
    let code = error.raw_os_error();
    [Errno::NOENT, Errno::NOTDIR, Errno::LOOP].iter().any(|gone| Some(gone.raw_os_error()) == code)
}

/// Opens a path relative to an open folder. Links and `..` are refused, wherever they are in the path.
///
/// # Errors
/// `FilesystemLoop` for a link, `CrossesDevices` for a path that leads out of the folder, else what the system says.
pub fn open_in(folder: impl AsFd, path: &Path, flags: OFlags, mode: Mode) -> io::Result<OwnedFd> {
    let flags = flags | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    if !path.components().all(|part| matches!(part, Component::Normal(_) | Component::CurDir)) {
        return Err(Errno::XDEV.into());
    }
    #[cfg(target_os = "linux")]
    {
        use rustix::fs::{ResolveFlags, openat2};
        let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
        match openat2(folder.as_fd(), path, flags, mode, resolve) {
            // Kernels before 5.6, and containers whose filter does not know the call.
            Err(Errno::NOSYS | Errno::PERM) => {}
            opened => return Ok(opened?),
        }
    }
    step_by_step(folder, path, flags, mode)
}

/// As [`open_in`], one component after the other.
fn step_by_step(folder: impl AsFd, path: &Path, flags: OFlags, mode: Mode) -> io::Result<OwnedFd> {
    let mut names: Vec<&OsStr> = path.iter().filter(|name| *name != ".").collect();
    let last = names.pop().unwrap_or(OsStr::new("."));
    let mut at = folder.as_fd().try_clone_to_owned()?;
    for name in names {
        at = openat(&at, name, PASSED | OFlags::NOFOLLOW | OFlags::CLOEXEC, Mode::empty())?;
    }
    Ok(openat(&at, last, flags, mode)?)
}

/// Where an open file is now, links resolved.
///
/// # Errors
/// When the system does not say, or the file has been removed.
#[cfg(not(target_vendor = "apple"))]
pub fn location(file: impl AsFd) -> io::Result<PathBuf> {
    let shown = format!("{DESCRIPTORS}/{}", file.as_fd().as_raw_fd());
    let path = std::fs::read_link(shown)?;
    let is_removed = path.as_os_str().as_encoded_bytes().ends_with(b" (deleted)") && !path.exists();
    if !path.is_absolute() || is_removed {
        return Err(io::ErrorKind::NotFound.into());
    }
    Ok(path)
}

/// Where an open file is now, links resolved.
///
/// # Errors
/// When the system does not say.
#[cfg(target_vendor = "apple")]
pub fn location(file: impl AsFd) -> io::Result<PathBuf> {
    use std::os::unix::ffi::OsStringExt;
    let path = rustix::fs::getpath(file)?;
    Ok(PathBuf::from(std::ffi::OsString::from_vec(path.into_bytes())))
}

/// A path by which an open file can be named to calls that take no descriptor.
#[must_use]
pub fn by_descriptor(file: impl AsFd) -> PathBuf {
    Path::new(DESCRIPTORS).join(file.as_fd().as_raw_fd().to_string())
}

/// Opens a regular file for reading beneath an open folder, without waiting for the other end of a pipe.
///
/// # Errors
/// As [`open_in`], and `InvalidInput` when it is no regular file.
pub fn open_regular(folder: impl AsFd, path: &Path) -> io::Result<File> {
    let file = File::from(open_in(folder, path, OFlags::RDONLY | OFlags::NONBLOCK, Mode::empty())?);
    if file.metadata()?.is_file() {
        Ok(file)
    } else {
        Err(io::Error::new(io::ErrorKind::InvalidInput, "it is no regular file"))
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::io::Read;
    use std::os::unix::fs::symlink;

    use super::*;

    fn fixture() -> (tempfile::TempDir, PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let base = crate::paths::real_path(folder.path()).unwrap();
        fs::create_dir_all(base.join("in/sub")).unwrap();
        fs::write(base.join("in/sub/file"), "inside").unwrap();
        fs::write(base.join("secret"), "outside").unwrap();
        symlink("../../secret", base.join("in/sub/link")).unwrap();
        symlink("sub", base.join("in/folder")).unwrap();
        symlink("..", base.join("in/up")).unwrap();
        (folder, base)
    }

    #[test]
    fn only_what_lies_beneath_is_opened_whichever_way_the_kernel_goes() {
        let (_keep, base) = fixture();
        let root = open_folder(&base.join("in")).unwrap();
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let open = |path: &str, by_steps: bool| match by_steps {
            true => step_by_step(&root, Path::new(path), flags, Mode::empty()),
            false => open_in(&root, Path::new(path), flags, Mode::empty()),
        };
        for by_steps in [false, true] {
            let mut text = String::new();
            File::from(open("sub/file", by_steps).unwrap()).read_to_string(&mut text).unwrap();
            assert_eq!(text, "inside");
            for path in ["sub/link", "folder/file", "up/secret"] {
                assert!(open(path, by_steps).is_err(), "{path}");
            }
        }
        assert!(open_in(&root, Path::new("../secret"), flags, Mode::empty()).is_err());
        assert!(open_folder(&base.join("in/folder")).is_err());
    }

    #[test]
    fn a_descriptor_says_where_its_file_is_now() {
        let (_keep, base) = fixture();
        let root = open_folder(&base).unwrap();
        let file = open_regular(&root, Path::new("in/sub/file")).unwrap();
        assert_eq!(location(&file).unwrap(), base.join("in/sub/file"));
        fs::rename(base.join("in/sub"), base.join("moved")).unwrap();
        assert_eq!(location(&file).unwrap(), base.join("moved/file"));
        fs::remove_file(base.join("moved/file")).unwrap();
        assert!(location(&file).is_err());
        assert!(open_regular(&root, Path::new("in")).is_err());
    }
}
