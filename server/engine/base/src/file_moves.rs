//! Renaming and removing files that another program may hold for a moment.
//!
//! Rule: on Windows a file that another program has open is neither replaced nor removed, and virus scanners, indexers and editors
//! open files for moments. Such a step is tried again with growing pauses for [`LONGEST_WAIT`] at most, and the error then
//! names the file. Errors with another reason (read-only, a folder in the way, nothing there) are not tried again.
//! On Unix a step is tried once. The system is a value.

#![expect(clippy::disallowed_methods, reason = "the one place that renames and removes by name")]

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::Duration;

use tempfile::NamedTempFile;

use crate::path_style::PathStyle;

/// The sum of all pauses.
pub const LONGEST_WAIT: Duration = Duration::from_secs(1);

/// The pauses, in milliseconds: most holders let go within the first ones.
const PAUSES: [u64; 7] = [10, 20, 40, 80, 160, 320, 370];

/// `ERROR_ACCESS_DENIED`: also the error of replacing a file that another program has open.
const ACCESS_DENIED: i32 = 5;
/// `ERROR_SHARING_VIOLATION`.
const SHARING_VIOLATION: i32 = 32;
/// `ERROR_DIR_NOT_EMPTY`: removed entries stay until their holders close them.
const FOLDER_NOT_EMPTY: i32 = 145;

/// A step that is refused while others hold its file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MoveStep {
    /// A file or folder gets another name, in the place of the file that had it.
    Rename,
    /// A file or an empty folder is removed.
    Remove,
    /// A folder is removed with all that is in it.
    RemoveAll,
}

/// A file that others still held after the last try.
#[derive(Debug, thiserror::Error)]
#[error(
    "`{}` is held by another program, which did not let go of it within {} s; close it there and try again ({source})",
    .path.display(),
    LONGEST_WAIT.as_secs()
)]
pub struct HeldFile {
    /// The file or folder.
    pub path: PathBuf,
    /// The error of the last try.
    pub source: io::Error,
}

/// Whether an error of a step may mean that another program holds the file, by its number in the given system.
#[must_use]
pub fn may_be_held(style: PathStyle, step: MoveStep, error: &io::Error) -> bool {
    let held = |code| match code {
        ACCESS_DENIED | SHARING_VIOLATION => true,
        FOLDER_NOT_EMPTY => step == MoveStep::RemoveAll,
        _ => false,
    };
    style == PathStyle::Windows && error.raw_os_error().is_some_and(held)
}

/// Takes a step, and takes it again while others hold the file. `is_refused` says whether the file itself is the reason: then the
/// first error is the answer. `pause` waits.
///
/// # Errors
/// The system's; [`HeldFile`] within it after the last try.
pub fn retry<T>(
    (style, step, path): (PathStyle, MoveStep, &Path),
    mut take: impl FnMut() -> io::Result<T>,
    is_refused: impl Fn() -> bool,
    mut pause: impl FnMut(Duration),
) -> io::Result<T> {
    let mut error = match take() {
        Err(error) if may_be_held(style, step, &error) && !is_refused() => error,
        taken => return taken,
    };
    for milliseconds in PAUSES {
        pause(Duration::from_millis(milliseconds));
        error = match take() {
            Err(error) if may_be_held(style, step, &error) => error,
            taken => return taken,
        };
    }
    Err(io::Error::new(error.kind(), HeldFile { path: path.to_path_buf(), source: error }))
}

/// Gives a file or folder another name, in place of the file that had it. Blocks.
///
/// # Errors
/// The system's, and [`HeldFile`] within it.
pub fn rename(from: &Path, to: &Path) -> io::Result<()> {
    here(MoveStep::Rename, held_of(from, to), || fs::rename(from, to), || is_in_the_way(from, to))
}

/// Removes a file. Blocks.
///
/// # Errors
/// As [`rename`].
pub fn remove_file(path: &Path) -> io::Result<()> {
    here(MoveStep::Remove, path, || fs::remove_file(path), || is_read_only(path) || path.is_dir())
}

/// Removes a folder, which must be empty. Blocks.
///
/// # Errors
/// As [`rename`].
pub fn remove_folder(path: &Path) -> io::Result<()> {
    here(MoveStep::Remove, path, || fs::remove_dir(path), || is_read_only(path))
}

/// Removes a folder with all that is in it. Blocks.
///
/// # Errors
/// As [`rename`]; a part of it may be gone then.
pub fn remove_all(path: &Path) -> io::Result<()> {
    let mut is_begun = false;
    let take = || match fs::remove_dir_all(path) {
        // The last of the holders has removed it.
        Err(error) if is_begun && error.kind() == io::ErrorKind::NotFound => Ok(()),
        removed => {
            is_begun = true;
            removed
        }
    };
    here(MoveStep::RemoveAll, path, take, || false)
}

/// Gives a temporary file its name, in place of the file that had it. Blocks.
///
/// # Errors
/// As [`rename`]; the temporary file is removed then.
pub fn persist(file: NamedTempFile, path: &Path) -> io::Result<()> {
    persist_by(file, path, NamedTempFile::persist)
}

/// Gives a temporary file a name that must be free. Blocks.
///
/// # Errors
/// As [`persist`]; of kind [`io::ErrorKind::AlreadyExists`] where it is not.
pub fn persist_new(file: NamedTempFile, path: &Path) -> io::Result<()> {
    persist_by(file, path, NamedTempFile::persist_noclobber)
}

fn persist_by(
    file: NamedTempFile,
    path: &Path,
    name: impl Fn(NamedTempFile, PathBuf) -> Result<fs::File, tempfile::PersistError>,
) -> io::Result<()> {
    let own = file.path().to_path_buf();
    let mut left = Some(file);
    let take = || {
        let Some(file) = left.take() else { return Err(io::ErrorKind::NotFound.into()) };
        name(file, path.to_path_buf()).map(drop).map_err(|error| {
            left = Some(error.file);
            error.error
        })
    };
    here(MoveStep::Rename, path, take, || is_in_the_way(&own, path))
}

fn here<T>(
    step: MoveStep,
    path: &Path,
    take: impl FnMut() -> io::Result<T>,
    is_refused: impl Fn() -> bool,
) -> io::Result<T> {
    retry((PathStyle::HERE, step, path), take, is_refused, sleep)
}

/// The one of two names that others may hold: the file that is replaced, else the one that is moved.
fn held_of<'a>(from: &'a Path, to: &'a Path) -> &'a Path {
    if to.symlink_metadata().is_ok() { to } else { from }
}

/// Whether the entry of this name cannot be replaced, held or not.
fn is_in_the_way(from: &Path, to: &Path) -> bool {
    to.symlink_metadata().is_ok_and(|there| there.is_dir() || there.permissions().readonly())
        || from.symlink_metadata().is_err()
}

fn is_read_only(path: &Path) -> bool {
    path.symlink_metadata().is_ok_and(|metadata| metadata.permissions().readonly())
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use proptest::prelude::*;

    use super::*;

    const PATH: &str = "C:/w/a.txt";

    /// Takes a step that fails `failures` times with this number; gives how it ended, how often it was taken and how long it
    /// paused.
    fn tried(
        style: PathStyle,
        step: MoveStep,
        code: i32,
        failures: usize,
    ) -> (io::Result<()>, usize, Duration) {
        let (tries, paused) = (Cell::new(0), Cell::new(Duration::ZERO));
        let take = || {
            tries.set(tries.get() + 1);
            if tries.get() > failures { Ok(()) } else { Err(io::Error::from_raw_os_error(code)) }
        };
        let pause = |time| paused.set(paused.get() + time);
        let ended = retry((style, step, Path::new(PATH)), take, || false, pause);
        (ended, tries.get(), paused.get())
    }

    #[test]
    fn a_step_is_taken_again_for_the_errors_of_held_files_alone() {
        use MoveStep::{Remove, RemoveAll, Rename};
        for (style, step, code, is_again) in [
            (PathStyle::Windows, Rename, 5, true),
            (PathStyle::Windows, Rename, 32, true),
            (PathStyle::Windows, Rename, 145, false),
            (PathStyle::Windows, Remove, 5, true),
            (PathStyle::Windows, Remove, 32, true),
            (PathStyle::Windows, Remove, 145, false),
            (PathStyle::Windows, RemoveAll, 145, true),
            (PathStyle::Windows, RemoveAll, 32, true),
            // Nothing there, a name that is taken, a full disk, another drive.
            (PathStyle::Windows, Rename, 2, false),
            (PathStyle::Windows, Rename, 183, false),
            (PathStyle::Windows, Rename, 112, false),
            (PathStyle::Windows, Rename, 17, false),
            // The same numbers mean something else there.
            (PathStyle::Unix, Rename, 5, false),
            (PathStyle::Unix, RemoveAll, 32, false),
        ] {
            let (ended, tries, _) = tried(style, step, code, 2);
            assert_eq!(
                (ended.is_ok(), tries),
                (is_again, if is_again { 3 } else { 1 }),
                "{style:?} {step:?} {code}"
            );
        }
    }

    #[test]
    fn the_pauses_grow_and_end_after_a_second_with_the_name_of_the_file() {
        assert!(PAUSES.is_sorted());
        let (ended, tries, paused) = tried(PathStyle::Windows, MoveStep::Rename, 32, usize::MAX);
        assert_eq!((tries, paused), (PAUSES.len() + 1, LONGEST_WAIT));
        let error = ended.unwrap_err();
        let text = error.to_string();
        assert!(
            text.starts_with("`C:/w/a.txt` is held by another program") && text.contains("within 1 s"),
            "{text}"
        );
        assert_eq!(error.kind(), io::Error::from_raw_os_error(32).kind());
    }

    #[test]
    fn a_file_that_is_refused_for_itself_is_not_taken_for_held() {
        let tries = Cell::new(0);
        let take = || {
            tries.set(tries.get() + 1);
            Err::<(), _>(io::Error::from_raw_os_error(ACCESS_DENIED))
        };
        let pause = |_| panic!("it waits for what nobody holds");
        let step = (PathStyle::Windows, MoveStep::Remove, Path::new(PATH));
        let error = retry(step, take, || true, pause).unwrap_err();
        assert_eq!((error.raw_os_error(), tries.get()), (Some(ACCESS_DENIED), 1));
    }

    #[test]
    fn a_read_only_file_and_a_folder_are_in_the_way_and_a_file_is_not() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        for name in ["from", "to", "fixed"] {
            fs::write(path(name), "").unwrap();
        }
        fs::create_dir(path("sub")).unwrap();
        let mut permissions = path("fixed").metadata().unwrap().permissions();
        permissions.set_readonly(true);
        fs::set_permissions(path("fixed"), permissions).unwrap();
        for (to, expected) in [("to", false), ("new", false), ("fixed", true), ("sub", true)] {
            assert_eq!(is_in_the_way(&path("from"), &path(to)), expected, "{to}");
        }
        assert!(is_in_the_way(&path("gone"), &path("to")) && is_read_only(&path("fixed")));
        assert_eq!(held_of(&path("from"), &path("to")), path("to"));
        assert_eq!(held_of(&path("from"), &path("new")), path("from"));
    }

    #[test]
    fn files_are_moved_and_removed() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        fs::write(path("a"), "a").unwrap();
        fs::write(path("b"), "b").unwrap();
        rename(&path("a"), &path("b")).unwrap();
        assert_eq!(fs::read(path("b")).unwrap(), b"a");
        let temporary = || NamedTempFile::new_in(folder.path()).unwrap();
        persist(temporary(), &path("b")).unwrap();
        assert_eq!(fs::read(path("b")).unwrap(), b"");
        let taken = persist_new(temporary(), &path("b")).unwrap_err();
        assert_eq!(taken.kind(), io::ErrorKind::AlreadyExists);
        remove_file(&path("b")).unwrap();
        fs::create_dir_all(path("c/d")).unwrap();
        assert!(remove_folder(&path("c")).is_err());
        remove_all(&path("c")).unwrap();
        assert_eq!(remove_all(&path("c")).unwrap_err().kind(), io::ErrorKind::NotFound);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    }

    proptest! {
        /// However often the file is held, the step is taken until it is free, and never beyond the limit.
        #[test]
        fn a_step_is_bounded(failures in 0_usize..20, code in prop::sample::select(vec![5, 32])) {
            let (ended, tries, paused) = tried(PathStyle::Windows, MoveStep::Remove, code, failures);
            prop_assert_eq!(ended.is_ok(), failures <= PAUSES.len());
            prop_assert_eq!(tries, failures.min(PAUSES.len()) + 1);
            prop_assert!(paused <= LONGEST_WAIT);
        }
    }
}
