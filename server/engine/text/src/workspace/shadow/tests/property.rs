//! Commands made by chance: their changes are reported, and can be undone and done again.
//!
//! Rule: what a command did is read from the disk before and after it, and compared with what the shadow says.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;

use proptest::prelude::*;

use super::*;

/// Something a command may do. Many fail, as in life.
#[derive(Clone, Debug)]
enum Operation {
    Write(String, Vec<u8>),
    Append(String, Vec<u8>),
    Truncate(String, u64),
    Delete(String),
    Rename(String, String),
    Mode(String, u32),
    Link(String, String),
    FileToFolder(String, String),
    FolderToFile(String, Vec<u8>),
    Touch(String),
    Copy(String, String),
}

impl Operation {
    fn run(&self, root: &Path) -> std::io::Result<()> {
        let at = |name: &String| root.join(name);
        let is_link = |name: &String| at(name).symlink_metadata().is_ok_and(|metadata| metadata.is_symlink());
        match self {
            Self::Write(name, bytes) => {
                fs::create_dir_all(at(name).parent().unwrap())?;
                fs::write(at(name), bytes)
            }
            Self::Append(name, bytes) => {
                let mut file = fs::OpenOptions::new().append(true).open(at(name))?;
                std::io::Write::write_all(&mut file, bytes)
            }
            Self::Truncate(name, length) => {
                fs::OpenOptions::new().write(true).open(at(name))?.set_len(*length)
            }
            Self::Delete(name) => fs::remove_file(at(name)).or_else(|_| fs::remove_dir_all(at(name))),
            Self::Rename(from, to) => fs::rename(at(from), at(to)),
            Self::Mode(name, _) if at(name).is_dir() || is_link(name) => Ok(()),
            Self::Mode(name, mode) => fs::set_permissions(at(name), fs::Permissions::from_mode(*mode)),
            Self::Link(name, target) => symlink(target, at(name)),
            Self::FileToFolder(name, inner) => {
                fs::remove_file(at(name))?;
                fs::create_dir(at(name))?;
                fs::write(at(name).join(inner), "inner")
            }
            Self::FolderToFile(name, bytes) => {
                fs::remove_dir_all(at(name))?;
                fs::write(at(name), bytes)
            }
            Self::Touch(name) => {
                let file = fs::OpenOptions::new().append(true).open(at(name))?;
                file.set_modified(std::time::SystemTime::UNIX_EPOCH)
            }
            Self::Copy(from, to) => fs::copy(at(from), at(to)).map(drop),
        }
    }
}

fn operations(range: std::ops::Range<usize>) -> impl Strategy<Value = Vec<Operation>> {
    // Names that are files here and folders there, and links that lead everywhere but out.
    let name = || {
        prop::sample::select(vec!["a", "b", ".c", "d", "d/a", "d/b", "d/e", "d/e/a", "f/a", "f/g/a", "d-a"])
    };
    let name = || name().prop_map(str::to_owned);
    let bytes = || prop::collection::vec(0_u8..3, 0..4);
    let mode = prop::sample::select(vec![0o644, 0o600, 0o755, 0o444, 0o640, 0o4755]);
    let target = prop::sample::select(vec!["a", "d", "nowhere", "../a"]).prop_map(str::to_owned);
    let operation = prop_oneof![
        5 => (name(), bytes()).prop_map(|(name, bytes)| Operation::Write(name, bytes)),
        1 => (name(), bytes()).prop_map(|(name, bytes)| Operation::Append(name, bytes)),
        1 => (name(), 0..6_u64).prop_map(|(name, length)| Operation::Truncate(name, length)),
        2 => name().prop_map(Operation::Delete),
        3 => (name(), name()).prop_map(|(from, to)| Operation::Rename(from, to)),
        2 => (name(), mode).prop_map(|(name, mode)| Operation::Mode(name, mode)),
        2 => (name(), target).prop_map(|(name, target)| Operation::Link(name, target)),
        2 => (name(), prop::sample::select(vec!["a", "e", "x"]))
            .prop_map(|(name, inner)| Operation::FileToFolder(name, inner.to_owned())),
        2 => (name(), bytes()).prop_map(|(name, bytes)| Operation::FolderToFile(name, bytes)),
        1 => name().prop_map(Operation::Touch),
        1 => (name(), name()).prop_map(|(from, to)| Operation::Copy(from, to)),
    ];
    prop::collection::vec(operation, range)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn exactly_the_changed_paths_are_reported_and_restoring_them_brings_the_tree_back_and_forth(
        commands in prop::collection::vec(operations(1..10), 2..4),
    ) {
        let fixture = Fixture::new();
        for command in commands {
            let before = fixture.snapshot();
            let changes = fixture.changes(|| {
                for operation in &command {
                    drop(operation.run(fixture.root.as_path()));
                }
            });
            let after = fixture.snapshot();
            let mut reported: Vec<_> = changes.iter().map(|change| change.path.as_path().to_path_buf()).collect();
            reported.sort();
            let mut changed: Vec<_> = before.keys().chain(after.keys()).cloned().collect();
            changed.retain(|path| before.get(path) != after.get(path));
            changed.sort();
            changed.dedup();
            prop_assert_eq!(reported, changed);

            let json = serde_json::to_string(&changes).unwrap();
            prop_assert_eq!(&serde_json::from_str::<Vec<ShellChange>>(&json).unwrap(), &changes);
            for change in changes.iter().rev() {
                fixture.undo(change).unwrap();
            }
            prop_assert_eq!(&fixture.snapshot(), &before);
            for change in &changes {
                fixture.shadow.restore_file(&change.path, &change.before, &change.after).unwrap();
            }
            prop_assert_eq!(&fixture.snapshot(), &after);
        }
    }
}
