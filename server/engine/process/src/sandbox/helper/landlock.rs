//! The file permissions of a command, by Landlock: the only wall of the weaker kind, the second one of the other.
//!
//! Rule: what the kernel offers is used to the full; without what the weaker kind cannot do without it is refused.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{CStr, CString, OsStr};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::{fs, io};

use landlock::{
    ABI, Access, AccessFs, BitFlags, CompatLevel, Compatible, PathBeneath, Ruleset, RulesetAttr,
    RulesetCreated, RulesetCreatedAttr, RulesetError, RulesetStatus, Scope,
};
use rustix::fs::{
    Access as AccessMode, AtFlags, CWD, Dir, DirEntry, FileType, Mode, OFlags, accessat, open, openat, statat,
};
use rustix::io::Errno;
use rustix::process::geteuid;

/// The newest rules this knows.
const NEWEST: ABI = ABI::V7;
/// The needs of a sandbox made of Landlock alone: rules for cutting files too.
const LEAST: ABI = ABI::V3;
/// Versions that can be told apart from outside, the newest first.
const VERSIONS: [(ABI, u32); 6] =
    [(ABI::V6, 6), (ABI::V5, 5), (ABI::V4, 4), (ABI::V3, 3), (ABI::V2, 2), (ABI::V1, 1)];
/// Devices that may be written.
const DEVICES: [&str; 5] = ["/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom"];
/// More of them, where they are the command's own and not shared with everybody.
const OWN_DEVICES: [&str; 4] = ["/dev/tty", "/dev/ptmx", "/dev/pts", "/dev/shm"];
/// How many rules may be needed to leave out hidden files.
const MAX_RULES: usize = 20_000;

/// The version of Landlock there is, as far as it can be told; 6 represents all since.
pub(crate) fn version() -> Option<u32> {
    let offers = |abi| {
        let rules = Ruleset::default()
            .set_compatibility(CompatLevel::HardRequirement)
            .handle_access(AccessFs::from_all(abi))?;
        match Scope::from_all(abi) {
            scopes if scopes.is_empty() => rules.create(),
            scopes => rules.scope(scopes)?.create(),
        }
    };
    VERSIONS
        .into_iter()
        .find(|(abi, _)| offers(*abi).is_ok_and(|_: RulesetCreated| true))
        .map(|(_, name)| name)
}

/// Which files a command may use.
#[derive(Debug)]
pub(super) struct FileRules<'a> {
    /// Folders with all rights.
    pub(super) writable: &'a [PathBuf],
    /// Paths that are left out of what may be read. In a writable folder, the folders on the way to one lose reading, removing
    /// and renaming: files beside it that exist when the command starts can be read, files that the command makes there
    /// cannot, and nothing there takes another name, by which a later command would see it.
    pub(super) hidden: &'a [PathBuf],
    /// Paths in hidden ones that may be read nevertheless.
    pub(super) shown: &'a [PathBuf],
    /// Whether nothing else holds the command.
    pub(super) alone: bool,
}

impl FileRules<'_> {
    /// Whether Landlock alone hides something in a writable folder.
    pub(super) fn hides_in_writable(&self) -> bool {
        self.writable.iter().any(|folder| self.hides_in(folder))
    }

    fn hides_in(&self, folder: &Path) -> bool {
        self.hidden.iter().any(|path| path != folder && path.starts_with(folder))
    }

    fn is_writable(&self, path: &Path) -> bool {
        self.writable.iter().any(|folder| path.starts_with(folder))
    }
}

/// The rights in a writable folder with hidden files, but for what lies beside them.
fn among_hidden() -> BitFlags<AccessFs> {
    let taken = AccessFs::ReadFile | AccessFs::Execute | AccessFs::RemoveFile | AccessFs::RemoveDir;
    AccessFs::from_all(NEWEST) & !taken
}

/// Whether the mode of another user's path keeps this process and its children from reading or entering it. The owner of a path
/// could change its mode. The process must have given its privileges up before.
pub(super) fn is_shut(path: &Path) -> bool {
    let refuses = |access| accessat(CWD, path, access, AtFlags::EACCESS) == Err(Errno::ACCESS);
    let is_of_another = fs::metadata(path).is_ok_and(|metadata| metadata.uid() != geteuid().as_raw());
    is_of_another && refuses(AccessMode::READ_OK) && refuses(AccessMode::EXEC_OK)
}

/// Holds this process and all it will start to `files`, and says how completely the kernel does.
pub(super) fn apply(files: &FileRules<'_>) -> Result<RulesetStatus, String> {
    restrict(files).map_err(|error| error.to_string())
}

fn restrict(files: &FileRules<'_>) -> Result<RulesetStatus, LandlockError> {
    let mut rules = Ruleset::default();
    if files.alone {
        rules = rules
            .set_compatibility(CompatLevel::HardRequirement)
            .handle_access(AccessFs::from_all(LEAST))?
            .set_compatibility(CompatLevel::BestEffort);
    }
    let rules = rules.handle_access(AccessFs::from_all(NEWEST))?.scope(Scope::from_all(NEWEST))?;
    let mut rules = rules.create()?;
    let reading = AccessFs::from_read(NEWEST);
    if files.hidden.is_empty() {
        rules = allow(rules, Path::new("/"), reading)?;
    } else {
        rules = allow(rules, Path::new("/"), AccessFs::ReadDir.into())?;
        rules = allow_beside(rules, files)?;
        for path in files.shown {
            rules = allow(rules, path, reading)?;
        }
    }
    for folder in files.writable {
        let rights = if files.hides_in(folder) { among_hidden() } else { AccessFs::from_all(NEWEST) };
        rules = allow(rules, folder, rights)?;
    }
    let own = if files.alone { &[][..] } else { &OWN_DEVICES };
    for device in DEVICES.iter().chain(own) {
        rules = allow(rules, Path::new(device), reading | AccessFs::from_write(NEWEST) | AccessFs::IoctlDev)?;
    }
    Ok(rules.restrict_self()?.ruleset)
}

#[derive(Debug, thiserror::Error)]
enum LandlockError {
    #[error("Landlock: {0}")]
    Ruleset(#[from] RulesetError),
    #[error("the files to hide could not be read: {0}")]
    Hidden(#[from] io::Error),
}

/// Adds a rule. That the path is not there needs none; a file gets those rights that files have.
fn allow(
    rules: RulesetCreated,
    path: &Path,
    rights: BitFlags<AccessFs>,
) -> Result<RulesetCreated, LandlockError> {
    let (Ok(metadata), Ok(name)) = (fs::metadata(path), CString::new(path.as_os_str().as_bytes())) else {
        return Ok(rules);
    };
    allow_entry(rules, CWD, &name, metadata.is_dir(), rights)
}

/// As [`allow`], for an entry of an open folder whose kind is known.
fn allow_entry(
    rules: RulesetCreated,
    folder: BorrowedFd<'_>,
    name: &CStr,
    is_folder: bool,
    rights: BitFlags<AccessFs>,
) -> Result<RulesetCreated, LandlockError> {
    let rights = if is_folder { rights } else { rights & AccessFs::from_file(NEWEST) };
    // Not by the standard library, which takes `O_PATH` for a mode of access with musl and leaves it out: a pipe would then be
    // waited for.
    let Ok(file) = openat(folder, name, OFlags::PATH | OFlags::CLOEXEC, Mode::empty()) else {
        return Ok(rules);
    };
    Ok(rules.add_rule(PathBeneath::new(file, rights))?)
}

/// Allows everything on the disk except hidden files, in as few rules as that takes. Some 200 are normal, and each command waits
/// for them: the folder's own list says of what kind an entry is, and its name is compared and not its path.
fn allow_beside(mut rules: RulesetCreated, files: &FileRules<'_>) -> Result<RulesetCreated, LandlockError> {
    let reading = AccessFs::from_read(NEWEST);
    let mut count = 0;
    for (folder, without) in folders_with_hidden(files) {
        // One that we may not read, the command may not either.
        let options = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let Ok(open) = open(folder, options, Mode::empty()) else { continue };
        // A folder to write in that lies here has a rule of its own.
        let rights = if files.is_writable(folder) { AccessFs::from_all(NEWEST) } else { reading };
        for entry in Dir::read_from(&open).map_err(io::Error::from)? {
            let entry = entry.map_err(io::Error::from)?;
            let name = entry.file_name();
            if matches!(name.to_bytes(), b"." | b"..") || without.contains(OsStr::from_bytes(name.to_bytes()))
            {
                continue;
            }
            // The target of a link has a rule of its own, or none. An entry that is gone since needs none.
            let Some(kind) = kind_of(&open, &entry).filter(|kind| *kind != FileType::Symlink) else {
                continue;
            };
            count += 1;
            if count > MAX_RULES {
                let message = format!(
                    "more than {MAX_RULES} files lie beside those that it must not see, and Landlock alone can hide no more; install bubblewrap, or let this command run outside"
                );
                return Err(io::Error::other(message).into());
            }
            rules = allow_entry(rules, open.as_fd(), name, kind == FileType::Directory, rights)?;
        }
    }
    Ok(rules)
}

/// The visible folders with hidden files, and of each the names that get no rule of their own: hidden ones, and those of folders with
/// hidden files.
fn folders_with_hidden<'a>(files: &FileRules<'a>) -> BTreeMap<&'a Path, BTreeSet<&'a OsStr>> {
    let hidden: BTreeSet<_> = files.hidden.iter().map(PathBuf::as_path).collect();
    let mut folders: BTreeMap<_, BTreeSet<_>> = BTreeMap::new();
    for path in &hidden {
        let parts = path.ancestors().filter_map(|part| Some((part.parent()?, part.file_name()?)));
        for (folder, name) in parts {
            folders.entry(folder).or_default().insert(name);
        }
    }
    // A folder to write in that lies in a hidden one is seen.
    let is_shown = |folder: &Path, hidden: &Path| {
        files.writable.iter().any(|root| root.starts_with(hidden) && folder.starts_with(root))
    };
    folders.retain(|folder, _| {
        !folder.ancestors().any(|above| hidden.contains(above) && !is_shown(folder, above))
    });
    folders
}

/// The kind of an entry, by the folder's list where that says it; `None` where the entry is gone.
fn kind_of(folder: &OwnedFd, entry: &DirEntry) -> Option<FileType> {
    match entry.file_type() {
        FileType::Unknown => {
            let stat = statat(folder, entry.file_name(), AtFlags::SYMLINK_NOFOLLOW).ok()?;
            Some(FileType::from_raw_mode(stat.st_mode))
        }
        kind => Some(kind),
    }
}
