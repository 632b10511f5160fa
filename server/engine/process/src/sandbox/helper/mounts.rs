//! The mounts of a sandbox besides its root: writable, read-only and hidden places.
//!
//! Rule: mounts are made from the outside in, so that what lies deeper wins; every folder between a writable one and a held or
//! hidden path in it is a mount of its own, because a mount cannot be renamed. They are made inside, one call of the system
//! each; where the system does not let that, bubblewrap makes them, which reads its list of mounts again for each.

#![expect(
    clippy::disallowed_methods,
    reason = "it writes files of its own, or those that a call was allowed"
)]

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::fs::{self, Permissions};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, FileType, Mode, OFlags, StatVfsMountFlags, fstat, fstatvfs, openat};
use rustix::io::Errno;
use rustix::mount::{MountFlags, mount, mount_bind, mount_remount};
use rustix::thread::UnshareFlags;
use serde::{Deserialize, Serialize};

use super::places::PolicyPaths;
use super::{EMPTY, LOCKED, SHUT, VOID};
use crate::sandbox::guard::{GuardSurvey, GuardedPath};
use kode_base::beneath;

/// How a path is mounted. Where several apply to one path, the last counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) enum MountKind {
    /// A link onto itself, so that it cannot be renamed or removed. Where the system refuses, it is put back afterwards.
    PinnedLink,
    /// Onto itself, to be a mount.
    Pinned,
    /// Onto itself, where something else would cover it.
    Writable,
    ReadOnly,
    HiddenFile,
    HiddenFolder,
    /// As hidden, and cannot be opened: a file that seems to be empty, or gone, would count as a change of it.
    ClosedFile,
    ClosedFolder,
}

/// The mounts, by path: a path sorts after the folders it lies in.
pub(super) type Mounts = BTreeMap<PathBuf, MountKind>;

/// The placeholders for hidden files and folders: empty ones, and those that cannot be opened.
#[derive(Clone, Debug)]
pub(super) struct MountStandIns {
    file: PathBuf,
    folder: PathBuf,
    closed_file: PathBuf,
    closed_folder: PathBuf,
}

impl MountStandIns {
    /// Those in the control folder.
    pub(super) fn in_folder(control: &Path) -> Self {
        let [file, folder, closed_file, closed_folder] =
            [EMPTY, VOID, SHUT, LOCKED].map(|name| control.join(name));
        Self { file, folder, closed_file, closed_folder }
    }

    /// The empty file.
    pub(super) fn file(&self) -> &Path {
        &self.file
    }

    /// The empty folder.
    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }

    /// The file that cannot be opened.
    pub(super) fn closed_file(&self) -> &Path {
        &self.closed_file
    }

    /// The folder in which nothing can be looked up.
    pub(super) fn closed_folder(&self) -> &Path {
        &self.closed_folder
    }

    /// Creates those that these mounts need.
    pub(super) fn create(&self, mounts: &Mounts) -> io::Result<()> {
        let is_needed = |kind: MountKind| mounts.values().any(|needed| *needed == kind);
        if is_needed(MountKind::HiddenFile) {
            fs::write(&self.file, "")?;
        }
        if is_needed(MountKind::HiddenFolder) {
            fs::create_dir_all(&self.folder)?;
        }
        if is_needed(MountKind::ClosedFile) {
            fs::write(&self.closed_file, "")?;
            fs::set_permissions(&self.closed_file, Permissions::from_mode(0o000))?;
        }
        if is_needed(MountKind::ClosedFolder) {
            fs::create_dir_all(&self.closed_folder)?;
            // It can be listed, to be removed, and nothing in it can be looked up.
            fs::set_permissions(&self.closed_folder, Permissions::from_mode(0o400))?;
        }
        Ok(())
    }
}

/// Why the mounts could not be made.
#[derive(Debug, thiserror::Error)]
pub(super) enum MountError {
    /// The system refuses to make them here.
    #[error("the system does not let it make mounts inside: {0}")]
    NotPermitted(Errno),
    /// A path is another one than it was when the sandbox was made.
    #[error("{0} was replaced while the sandbox was set up; run the command again")]
    Replaced(PathBuf),
    /// It failed.
    #[error("{path} could not be mounted: {source}")]
    Failed { path: PathBuf, source: io::Error },
}

/// The mounts for a policy and the guarded files.
pub(super) fn of(places: &PolicyPaths, survey: &GuardSurvey) -> Mounts {
    let mut mounts = Mounts::new();
    let mut add = |path: &Path, mount: MountKind| {
        let entry = mounts.entry(path.to_path_buf()).or_insert(mount);
        *entry = (*entry).max(mount);
    };
    let held = places.held(survey);
    let hidden = places.hidden.iter().chain(&survey.hidden);
    // The folder that the user opened as a workspace stays visible.
    let hidden = hidden.filter(|path| !places.writable.contains(*path) && places.is_seen(path));
    let hidden: BTreeSet<_> = hidden.cloned().collect();
    for path in &hidden {
        // Programs look for files at home and do without them; those of the workspace are known to git.
        add(
            path,
            match (path.is_dir(), places.is_writable(path)) {
                (true, false) => MountKind::HiddenFolder,
                (false, false) => MountKind::HiddenFile,
                (true, true) => MountKind::ClosedFolder,
                (false, true) => MountKind::ClosedFile,
            },
        );
    }
    for path in held.iter().chain(places.shown.iter().filter(|path| places.is_seen(path))) {
        add(path, MountKind::ReadOnly);
    }
    let covers = |folder: &Path| held.contains(folder) || hidden.contains(folder);
    for root in places.writable.iter().filter(|root| root.ancestors().skip(1).any(covers)) {
        add(root, MountKind::Writable);
    }
    // Of the places around it, the innermost decides: a folder to write in may lie in a hidden one.
    let is_open_at = |path: &Path| {
        let mut around = path.ancestors();
        let nearest =
            around.find(|folder| covers(folder) || places.writable.iter().any(|root| root == folder));
        places.is_writable(path) && !nearest.is_some_and(covers)
    };
    let links = survey.found.iter().filter(|(_, guarded)| matches!(guarded, GuardedPath::Link(_)));
    let is_open = |path: &&PathBuf| is_open_at(path);
    let links: Vec<_> = links.map(|(path, _)| path).filter(is_open).collect();
    links.iter().for_each(|path| add(path, MountKind::PinnedLink));
    for path in held.iter().chain(&hidden).chain(links).chain(&survey.repositories) {
        let above = path.ancestors().skip(usize::from(!survey.repositories.contains(path)));
        for folder in above.take_while(|folder| places.is_writable(folder)) {
            if is_open_at(folder) {
                add(folder, MountKind::Pinned);
            }
        }
    }
    mounts
}

/// The mounts as arguments of bubblewrap.
pub(super) fn arguments(mounts: &Mounts, stand_ins: &MountStandIns) -> Vec<OsString> {
    let (mut arguments, mut filled) = (Vec::new(), Vec::new());
    let mut option = |name: &str, paths: &[&Path]| {
        arguments.push(name.into());
        arguments.extend(paths.iter().map(|path| path.as_os_str().to_owned()));
    };
    for (path, kind) in mounts {
        match kind {
            // It would follow the link.
            MountKind::PinnedLink => {}
            MountKind::Pinned | MountKind::Writable => option("--bind", &[path, path]),
            MountKind::ReadOnly => option("--ro-bind", &[path, path]),
            MountKind::HiddenFile => option("--ro-bind", &[&stand_ins.file, path]),
            MountKind::ClosedFile => option("--ro-bind", &[&stand_ins.closed_file, path]),
            MountKind::ClosedFolder if beneath_of(mounts, path).next().is_none() => {
                option("--ro-bind", &[&stand_ins.closed_folder, path]);
            }
            MountKind::HiddenFolder | MountKind::ClosedFolder => {
                option("--tmpfs", &[path]);
                filled.push(path);
            }
        }
    }
    for path in filled {
        option("--remount-ro", &[path]);
    }
    arguments
}

/// Makes the mounts in a namespace of this process's own.
pub(super) fn make(mounts: &Mounts, stand_ins: &MountStandIns) -> Result<(), MountError> {
    if mounts.is_empty() {
        return Ok(());
    }
    unshare().map_err(MountError::NotPermitted)?;
    // Opened before anything covers it.
    let sources = mounts.iter().map(|(path, kind)| match kind {
        MountKind::HiddenFile => open(&stand_ins.file),
        MountKind::HiddenFolder => open(&stand_ins.folder),
        MountKind::ClosedFile => open(&stand_ins.closed_file),
        MountKind::ClosedFolder => open(&stand_ins.closed_folder),
        MountKind::PinnedLink | MountKind::Pinned | MountKind::Writable | MountKind::ReadOnly => open(path),
    });
    let sources: Vec<_> = sources.collect::<Result<_, _>>()?;
    let is_folder = |source: &OwnedFd| {
        fstat(source).is_ok_and(|found| FileType::from_raw_mode(found.st_mode) == FileType::Directory)
    };
    let places: BTreeSet<&Path> = mounts
        .keys()
        .zip(&sources)
        .filter(|(_, source)| is_folder(source))
        .map(|(path, _)| path.as_path())
        .collect();
    let mut folders = Vec::new();
    for ((path, kind), source) in mounts.iter().zip(&sources) {
        let failed = |source: Errno| match source {
            // The last: other file systems are mounted below it, which bubblewrap takes along.
            Errno::PERM | Errno::ACCESS | Errno::INVAL => MountError::NotPermitted(source),
            other => MountError::Failed { path: path.clone(), source: other.into() },
        };
        let is_folder_away = matches!(kind, MountKind::HiddenFolder | MountKind::ClosedFolder);
        let holds_more = is_folder_away && beneath_of(mounts, path).next().is_some();
        if holds_more {
            let flags = MountFlags::NOSUID | MountFlags::NODEV;
            mount("tmpfs", by_descriptor(&open(path)?), "tmpfs", flags, Some(c"mode=755")).map_err(failed)?;
            for (inner, _) in beneath_of(mounts, path) {
                let made = place_for(inner, places.contains(inner.as_path()));
                made.map_err(|source| MountError::Failed { path: inner.clone(), source })?;
            }
            folders.push(path);
            continue;
        }
        let target = open(path)?;
        let is_itself = matches!(kind, MountKind::PinnedLink | MountKind::Pinned | MountKind::ReadOnly);
        if is_itself && !is_same(source, &target) && !folders.iter().any(|folder| path.starts_with(folder)) {
            return Err(MountError::Replaced(path.clone()));
        }
        let mounted = mount_bind(by_descriptor(source), by_descriptor(&target));
        match kind {
            // Kernels may let no link be mounted on.
            MountKind::PinnedLink => continue,
            MountKind::Pinned | MountKind::Writable => mounted.map_err(failed)?,
            MountKind::ReadOnly
            | MountKind::HiddenFile
            | MountKind::HiddenFolder
            | MountKind::ClosedFile
            | MountKind::ClosedFolder => {
                mounted.and_then(|()| make_read_only(path)).map_err(failed)?;
            }
        }
    }
    for folder in folders {
        make_read_only(folder)
            .map_err(|source| MountError::Failed { path: folder.clone(), source: source.into() })?;
    }
    Ok(())
}

#[expect(deprecated, reason = "only sharing no files any more is a matter of safety, and those are shared")]
fn unshare() -> Result<(), Errno> {
    rustix::thread::unshare(UnshareFlags::NEWNS)
}

fn beneath_of<'m>(
    mounts: &'m Mounts,
    folder: &'m Path,
) -> impl Iterator<Item = (&'m PathBuf, &'m MountKind)> {
    let after = mounts.range(folder.to_path_buf()..).skip(1);
    after.take_while(move |(path, _)| path.starts_with(folder))
}

/// Makes something to be mounted over, in a folder that is empty.
fn place_for(path: &Path, is_folder: bool) -> io::Result<()> {
    if is_folder {
        return fs::create_dir_all(path);
    }
    fs::create_dir_all(path.parent().unwrap_or(path))?;
    fs::write(path, "")
}

/// Opens a path as a place, no component of it a link.
fn open(path: &Path) -> Result<OwnedFd, MountError> {
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let opened = match path.strip_prefix("/") {
        Ok(below) if !below.as_os_str().is_empty() => openat(CWD, "/", flags, Mode::empty())
            .map_err(io::Error::from)
            .and_then(|root| beneath::open_in(&root, below, OFlags::PATH, Mode::empty())),
        _ => openat(CWD, path, flags, Mode::empty()).map_err(io::Error::from),
    };
    opened.map_err(|source| match beneath::is_gone(&source) {
        true => MountError::Replaced(path.to_path_buf()),
        false => MountError::Failed { path: path.to_path_buf(), source },
    })
}

fn is_same(one: &OwnedFd, other: &OwnedFd) -> bool {
    let of = |file: &OwnedFd| fstat(file).map(|found| (found.st_dev, found.st_ino));
    matches!((of(one), of(other)), (Ok(one), Ok(other)) if one == other)
}

fn by_descriptor(file: impl AsFd) -> PathBuf {
    beneath::by_descriptor(file)
}

/// Makes the mount on a path read-only; what else it forbids it continues to forbid.
fn make_read_only(path: &Path) -> Result<(), Errno> {
    let mounted = open(path).map_err(|_| Errno::NOENT)?;
    let found = fstatvfs(&mounted)?.f_flag;
    let mut flags = MountFlags::BIND | MountFlags::RDONLY;
    for (has, keeps) in [
        (StatVfsMountFlags::NOSUID, MountFlags::NOSUID),
        (StatVfsMountFlags::NODEV, MountFlags::NODEV),
        (StatVfsMountFlags::NOEXEC, MountFlags::NOEXEC),
        (StatVfsMountFlags::NOATIME, MountFlags::NOATIME),
        (StatVfsMountFlags::NODIRATIME, MountFlags::NODIRATIME),
        (StatVfsMountFlags::RELATIME, MountFlags::RELATIME),
    ] {
        if found.contains(has) {
            flags |= keeps;
        }
    }
    mount_remount(by_descriptor(&mounted), flags, c"")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn places(writable: &[&str], hidden: &[&str]) -> PolicyPaths {
        let paths = |paths: &[&str]| paths.iter().map(PathBuf::from).collect();
        PolicyPaths {
            writable: paths(writable),
            scratch: "/var/scratch".into(),
            hidden: paths(hidden),
            shown: Vec::new(),
            read_only: Vec::new(),
            home: None,
        }
    }

    #[test]
    fn what_lies_around_guarded_files_is_pinned_also_in_a_worktree_in_a_hidden_folder() {
        let root = "/home/u/.local/state/kode-ls/worktrees/w";
        let mut survey = GuardSurvey::default();
        survey.found.insert(Path::new(root).join("lib/.git/config"), GuardedPath::File);
        survey.repositories.insert(Path::new(root).join("lib/.git"));
        let mounts = of(&places(&[root], &["/home/u/.local/state/kode-ls"]), &survey);
        assert_eq!(mounts.get(Path::new(root)), Some(&MountKind::Writable));
        for path in ["lib", "lib/.git"] {
            assert_eq!(mounts.get(&Path::new(root).join(path)), Some(&MountKind::Pinned), "{path}");
        }
        let held = places(&[root, "/w"], &["/w/secret"]);
        let mounts = of(&held, &GuardSurvey::default());
        assert_eq!(mounts.get(Path::new("/w")), Some(&MountKind::Pinned));
    }
}
