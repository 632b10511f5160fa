//! The behavior of an anchor while folders and links are swapped around it.

use std::fs;
use std::io::Read;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};

use super::*;
use crate::paths::real_path;

/// A folder `in` with a file, and a folder `out` with one of the same name.
fn fixture() -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let base = real_path(folder.path()).unwrap();
    for name in ["in", "out"] {
        fs::create_dir(base.join(name)).unwrap();
        fs::write(base.join(name).join("file"), name).unwrap();
    }
    (folder, base)
}

/// Puts a link to `out` in the place of `in`, which is moved to `moved`.
fn swap(base: &Path) {
    fs::rename(base.join("in"), base.join("moved")).unwrap();
    symlink("out", base.join("in")).unwrap();
}

fn text(anchor: &Anchor) -> String {
    let mut text = String::new();
    anchor.open_file().unwrap().read_to_string(&mut text).unwrap();
    text
}

#[test]
fn no_step_leaves_the_folder_that_was_opened_whatever_takes_its_name() {
    let (_keep, base) = fixture();
    let path = base.join("in/file");
    let (file, new) = (Anchor::open(&path).unwrap(), Anchor::open(&base.join("in/new")).unwrap());
    assert!(file.is_in_place());
    swap(&base);
    assert!(!file.is_in_place());
    assert!(beneath::is_link(&Anchor::open(&path).unwrap_err()));
    assert!(beneath::is_link(&Anchor::open_or_make(&base.join("in/deep/new")).unwrap_err()));
    assert_eq!(text(&file), "in");
    let facts = file.facts().unwrap();
    assert!(file.replace(b"written", &facts, facts.mode, || true).unwrap());
    new.create(b"made", None).unwrap();
    assert_eq!(fs::read(base.join("moved/file")).unwrap(), b"written");
    assert_eq!(fs::read(base.join("moved/new")).unwrap(), b"made");
    file.remove().unwrap();
    assert_eq!(fs::read_dir(base.join("moved")).unwrap().count(), 1);
    assert_eq!(fs::read(base.join("out/file")).unwrap(), b"out");
    assert_eq!(fs::read_dir(base.join("out")).unwrap().count(), 1);
}

#[test]
fn a_link_at_the_name_is_not_followed_and_only_replaced_itself() {
    let (_keep, base) = fixture();
    symlink("../out/file", base.join("in/link")).unwrap();
    let anchor = Anchor::open(&base.join("in/link")).unwrap();
    assert!(beneath::is_link(&anchor.open_file().unwrap_err()));
    let facts = anchor.facts().unwrap();
    assert_eq!((facts.kind, anchor.read_link().unwrap()), (EntryType::Link, "../out/file".into()));
    assert_eq!(anchor.create(b"new", None).unwrap_err().kind(), io::ErrorKind::AlreadyExists);
    assert!(anchor.replace(b"new", &facts, 0o640, || true).unwrap());
    assert_eq!((text(&anchor).as_str(), anchor.facts().unwrap().mode), ("new", 0o640));
    assert!(anchor.link(Path::new("../out/file"), || true).unwrap());
    assert!(!anchor.link(Path::new("elsewhere"), || false).unwrap());
    assert_eq!(anchor.read_link().unwrap(), Path::new("../out/file"));
    anchor.remove().unwrap();
    assert_eq!(fs::read(base.join("out/file")).unwrap(), b"out");
    assert_eq!(fs::read_dir(base.join("in")).unwrap().count(), 1);
}

#[test]
fn mode_and_owner_stay_and_new_files_get_what_the_umask_gives() {
    let (_keep, base) = fixture();
    let path = base.join("in/file");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o750)).unwrap();
    let before = path.metadata().unwrap();
    let anchor = Anchor::open(&path).unwrap();
    let facts = anchor.facts().unwrap();
    assert!(!anchor.replace(b"new", &facts, facts.mode, || false).unwrap());
    assert_eq!((text(&anchor).as_str(), path.metadata().unwrap().ino()), ("in", before.ino()));
    assert!(anchor.replace(b"new", &facts, facts.mode, || true).unwrap());
    let after = path.metadata().unwrap();
    assert_eq!((after.mode(), after.uid(), after.gid()), (before.mode(), before.uid(), before.gid()));
    assert!(anchor.is_writable());
    fs::set_permissions(&path, fs::Permissions::from_mode(0o440)).unwrap();
    assert!(!anchor.is_writable());
    fs::write(base.join("in/usual"), "").unwrap();
    let made = Anchor::open_or_make(&base.join("in/deep/er/new")).unwrap();
    made.create(b"made", None).unwrap();
    let usual = base.join("in/usual").metadata().unwrap().mode();
    assert_eq!(base.join("in/deep/er/new").metadata().unwrap().mode(), usual);
    let own = Anchor::open(&base.join("in/own")).unwrap();
    own.create(b"own", Some(0o700)).unwrap();
    assert_eq!(own.facts().unwrap().mode, 0o700);
    assert_eq!(own.create(b"again", Some(0o700)).unwrap_err().kind(), io::ErrorKind::AlreadyExists);
    assert_eq!(fs::read_dir(base.join("in")).unwrap().count(), 4, "no temporary file is left");
}
