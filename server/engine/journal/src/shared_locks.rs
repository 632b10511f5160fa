//! Whether the file system of a folder shares locks between hosts.
//!
//! Rule: only file systems that are known not to share them are named. Two hosts that both get the lock of one journal overwrite each other's
//! records.

use std::fs;
use std::path::Path;

use kode_base::paths::real_path;

/// The mounts of this process, on Linux.
const MOUNTS: &str = "/proc/self/mountinfo";

/// Why hosts that share a folder do not share locks in it: the type of its file system, or the option it is mounted with.
/// `None` where they do, where the folder is on a local disk, and where the system does not tell.
pub fn unshared_locks(folder: &Path) -> Option<String> {
    let folder = real_path(folder).ok()?;
    unshared(&fs::read_to_string(MOUNTS).ok()?, &folder)
}

fn unshared(mounts: &str, folder: &Path) -> Option<String> {
    let mounts = mounts.lines().filter_map(Mount::parse);
    // Of two mounts at one place the later one is seen.
    let mount = mounts
        .filter(|mount| folder.starts_with(&mount.place))
        .max_by_key(|mount| Path::new(&mount.place).components().count())?;
    match mount.kind {
        "fuse.sshfs" => Some("sshfs".to_owned()),
        "nfs" | "nfs4" => {
            let is_local =
                |option: &&str| matches!(*option, "nolock" | "local_lock=all" | "local_lock=flock");
            mount.options.split(',').find(is_local).map(|option| format!("NFS mounted with {option}"))
        }
        _ => None,
    }
}

/// A line of `mountinfo`.
struct Mount<'a> {
    place: String,
    kind: &'a str,
    options: &'a str,
}

impl<'a> Mount<'a> {
    fn parse(line: &'a str) -> Option<Self> {
        let (own, of_the_system) = line.split_once(" - ")?;
        let mut words = of_the_system.split(' ');
        let place = own.split(' ').nth(4)?;
        // The kernel writes these characters as octal numbers.
        let escapes = [("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\134", "\\")];
        let place = escapes.iter().fold(place.to_owned(), |place, (code, plain)| place.replace(code, plain));
        Some(Self { place, kind: words.next()?, options: words.nth(1)? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: &str = "\
21 1 254:1 / / rw,relatime shared:1 - ext4 /dev/vda1 rw
40 21 0:40 / /home/me rw shared:2 master:3 - nfs4 server:/home rw,vers=4.2,local_lock=none,addr=10.0.0.1
41 21 0:41 / /home/old rw - nfs server:/old rw,vers=3,nolock,local_lock=all
42 21 0:42 / /mnt/dev\\040box rw - fuse.sshfs devbox:/srv rw,user_id=0
43 42 0:43 / /mnt/dev\\040box/disk rw - ext4 /dev/vdb rw
44 21 0:44 / /mnt/twice rw - ext4 /dev/vdc rw
45 44 0:45 / /mnt/twice rw - fuse.sshfs devbox:/srv rw
half a line";

    #[test]
    fn file_systems_without_common_locks_are_named() {
        for (folder, expected) in [
            ("/var/lib", None),
            ("/home/me/.local/state", None),
            ("/home/old/state", Some("NFS mounted with nolock")),
            ("/home/older", None),
            ("/mnt/dev box/state", Some("sshfs")),
            ("/mnt/dev box/disk/state", None),
            ("/mnt/twice", Some("sshfs")),
        ] {
            assert_eq!(unshared(TABLE, Path::new(folder)).as_deref(), expected, "{folder}");
        }
    }

    #[test]
    fn a_folder_that_does_not_exist_has_no_file_system() {
        assert_eq!(unshared_locks(Path::new("/nonexistent")), None);
    }
}
