//! A real folder, real changes, and what the shadow says about them.
//!
//! Rule: the expected state is computed from the disk itself, never from the code under test.

mod property;
#[cfg(target_os = "linux")]
mod watched;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;

use tempfile::TempDir;

use super::*;
use kode_base::paths::real_path;

struct Fixture {
    shadow: Shadow,
    root: AbsPath,
    folder: TempDir,
}

/// The entry of a file or link in a snapshot.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Entry {
    File(Vec<u8>, u32),
    Link(PathBuf),
}

impl Fixture {
    fn new() -> Self {
        Self::with(ShadowLimits::default())
    }

    fn with(limits: ShadowLimits) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let root = AbsPath::new(real_path(folder.path()).unwrap()).unwrap().join("ws");
        fs::create_dir(&root).unwrap();
        let blobs = Blobs::new(folder.path().join("session/blobs"));
        Self { shadow: Shadow::new(vec![root.clone()], blobs, limits), root, folder }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.root.join(name).into()
    }

    fn write(&self, name: &str, bytes: impl AsRef<[u8]>) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, bytes).unwrap();
    }

    fn changes(&self, command: impl FnOnce()) -> Vec<ShellChange> {
        let scan = self.shadow.before();
        command();
        self.shadow.after(&scan).changes
    }

    /// The changes as `name: before -> after`.
    fn reported(&self, command: impl FnOnce()) -> Vec<String> {
        let word = |image: &FileImage| match image {
            FileImage::Absent => "absent".to_owned(),
            FileImage::Kept { blob, mode } => {
                let bytes = self.shadow.blobs.get(blob).unwrap();
                format!("{:?} {mode:o}", String::from_utf8_lossy(&bytes))
            }
            FileImage::Symlink { target } => format!("link {}", target.display()),
            FileImage::NotKept { reason } => format!("{reason:?}"),
        };
        let name =
            |path: &AbsPath| path.as_path().strip_prefix(&self.root).unwrap().to_string_lossy().into_owned();
        let changes = self.changes(command).into_iter();
        changes
            .map(|change| {
                format!("{}: {} -> {}", name(&change.path), word(&change.before), word(&change.after))
            })
            .collect()
    }

    fn snapshot(&self) -> BTreeMap<PathBuf, Entry> {
        let mut entries = BTreeMap::new();
        collect(self.root.as_path(), &mut entries);
        entries
    }

    fn undo(&self, change: &ShellChange) -> Result<(), RestoreError> {
        self.shadow.restore_file(&change.path, &change.after, &change.before)
    }
}

fn collect(folder: &Path, entries: &mut BTreeMap<PathBuf, Entry>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let metadata = path.symlink_metadata().unwrap();
        if metadata.is_dir() {
            collect(&path, entries);
        } else if metadata.is_symlink() {
            let target = fs::read_link(&path).unwrap();
            entries.insert(path, Entry::Link(target));
        } else {
            let content = Entry::File(fs::read(&path).unwrap(), metadata.permissions().mode());
            entries.insert(path, content);
        }
    }
}

#[test]
fn an_image_is_of_what_lies_in_the_workspace_and_not_of_where_a_link_leads() {
    let fixture = Fixture::new();
    fs::create_dir(fixture.folder.path().join("outside")).unwrap();
    fs::write(fixture.folder.path().join("outside/file"), "outside").unwrap();
    fixture.write("folder/file", "inside");
    symlink("../outside", fixture.path("linked")).unwrap();
    symlink("../outside/file", fixture.path("link")).unwrap();
    let image = |name: &str| fixture.shadow.image(&fixture.root.join(name));
    let mode = fixture.path("folder/file").metadata().unwrap().permissions().mode() & MODE_BITS;
    assert_eq!(image("folder/file"), FileImage::Kept { blob: BlobId::of(b"inside"), mode });
    assert_eq!(image("link"), FileImage::Symlink { target: "../outside/file".into() });
    assert!(matches!(image("linked/file"), FileImage::NotKept { .. }), "{:?}", image("linked/file"));
    assert!(fixture.shadow.blobs.get(&BlobId::of(b"outside")).is_err(), "its bytes are not kept");
    for absent in ["folder", "folder/none", "none/file", "folder/file/none"] {
        assert_eq!(image(absent), FileImage::Absent, "{absent}");
    }
}

#[test]
fn a_file_that_was_only_touched_is_no_change_and_ignored_and_version_control_files_are_not_inspected() {
    let fixture = Fixture::new();
    fixture.write(".gitignore", "*.log\n");
    fixture.write("a", "same");
    let reported = fixture.reported(|| {
        fixture.write("a", "same");
        fixture.write("x.log", "ignored");
        fixture.write(".git/index", "git's");
        fs::create_dir(fixture.path("empty")).unwrap();
        fixture.write(".env", "new");
    });
    assert_eq!(reported, [".env: absent -> \"new\" 644"]);
}

#[test]
fn a_write_so_soon_that_no_stat_shows_it_is_reported() {
    let fixture = Fixture::new();
    fixture.write("a", "old");
    let scan = fixture.shadow.before();
    fixture.write("a", "new");
    // As on a file system whose clock has not moved on between the two.
    let mut tree = FileTree::clone(&scan.tree);
    let now = walk::Stat::of(&fixture.path("a").symlink_metadata().unwrap());
    tree.files.get_mut(fixture.path("a").as_os_str()).unwrap().stat = now;
    let reported = fixture.shadow.after(&Scan { tree: Arc::new(tree.clone()), ..scan.clone() });
    assert_eq!(reported.changes.len(), 1);
    // Had the file been old enough when it was read, the stat would have been believed.
    tree.settle();
    assert_eq!(fixture.shadow.after(&Scan { tree: Arc::new(tree), ..scan }).changes, []);
}

#[test]
fn what_had_no_time_is_read_later_and_what_is_unchanged_is_not_read_again() {
    let mut fixture = Fixture::new();
    for number in 0..600 {
        fixture.write(&format!("{}/{number}", number % 7), format!("{number}"));
    }
    fixture.shadow.limits.read_time = Duration::ZERO;
    assert_eq!(fixture.shadow.before().coverage(), Coverage { files: 600, kept: 0, gaps: vec![] });
    assert_eq!(fixture.reported(|| fixture.write("0/0", "new")), ["0/0: OutOfTime -> OutOfTime"]);

    fixture.shadow.limits.read_time = MAX_READ_TIME;
    assert_eq!(fixture.shadow.before().coverage().kept, 600);

    // Without time to read, known state was not read.
    let mut settled = FileTree::clone(&fixture.shadow.tree.lock());
    settled.settle();
    *fixture.shadow.tree.lock() = Arc::new(settled);
    fixture.shadow.limits.read_time = Duration::ZERO;
    fixture.write("1/1", "changed since");
    assert_eq!(fixture.shadow.before().coverage().kept, 599);
}

#[test]
fn a_walk_without_time_says_so_and_claims_nothing() {
    let mut fixture = Fixture::new();
    fixture.write("a", "1");
    let known = fixture.shadow.before();
    fs::create_dir(fixture.path("made")).unwrap();
    fixture.shadow.limits.walk_time = Duration::ZERO;
    let scan = fixture.shadow.before();
    assert_eq!(scan.coverage().gaps, [CoverageGap::OutOfTime]);
    fixture.shadow.limits.walk_time = MAX_WALK_TIME;
    fs::remove_file(fixture.path("a")).unwrap();
    fixture.write("b", "1");
    let reported = fixture.shadow.after(&scan);
    assert_eq!(reported.coverage.gaps, [CoverageGap::OutOfTime]);
    let created = reported.changes.iter().find(|change| change.path == fixture.root.join("b")).unwrap();
    assert_eq!(created.before, FileImage::NotKept { reason: NotKeptReason::NotCovered });
    assert!(matches!(fixture.undo(created), Err(RestoreError::NotKept { .. })));
    assert!(fixture.path("b").exists());
    assert_eq!(fixture.shadow.after(&known).changes.len(), 2);
}

#[test]
fn what_is_too_large_or_too_much_is_reported_and_not_restored() {
    let limits = ShadowLimits { file_bytes: 10, total_bytes: 25, ..ShadowLimits::default() };
    let fixture = Fixture::with(limits);
    fixture.write("large", "0123456789+");
    fixture.write("small", "1");
    for name in ["x", "y", "z"] {
        fixture.write(name, "0123456789");
    }
    assert_eq!(fixture.shadow.before().coverage().kept, 3);
    let reported = fixture.reported(|| {
        fixture.write("large", "0123456789*");
        fixture.write("small", "0123456789+");
    });
    assert_eq!(
        reported,
        [
            "large: TooLarge { size: 11 } -> TooLarge { size: 11 }",
            "small: \"1\" 644 -> TooLarge { size: 11 }"
        ]
    );
    assert_eq!(fixture.reported(|| ()), [""; 0]);
    // New files, small as they are, take no room from those that are covered.
    (0..9).for_each(|number| fixture.write(&format!("new{number}"), "1"));
    assert_eq!(fixture.shadow.before().coverage().kept, 3 + 4);
    (0..9).for_each(|number| fs::remove_file(fixture.path(&format!("new{number}"))).unwrap());
    let reported = fixture.reported(|| ["x", "y", "z"].iter().for_each(|name| fixture.write(name, name)));
    assert_eq!(reported.iter().filter(|line| line.contains("NoRoom -> ")).count(), 1, "{reported:?}");
}

#[test]
fn contents_that_are_gone_do_not_pile_up() {
    let fixture = Fixture::with(ShadowLimits { total_bytes: 100, ..ShadowLimits::default() });
    for round in 0..50 {
        let reported = fixture.reported(|| fixture.write("a", format!("{round:050}")));
        assert_eq!(reported.len(), 1);
        assert!(fixture.shadow.tree.lock().pack.length() <= 300);
    }
}

#[test]
fn beyond_the_limit_known_files_stay_covered_and_absence_is_not_claimed() {
    let mut fixture = Fixture::new();
    for number in 0..20 {
        fixture.write(&format!("{number:02}"), "old");
    }
    fixture.shadow.limits.files = 20;
    assert_eq!(fixture.shadow.before().coverage().kept, 20);
    for number in 20..900 {
        fixture.write(&format!("new/{number}"), "");
    }
    let scan = fixture.shadow.before();
    assert_eq!(
        (scan.coverage().files, scan.coverage().gaps),
        (20, vec![CoverageGap::TooManyFiles { limit: 20 }])
    );
    (0..20).for_each(|number| fixture.write(&format!("{number:02}"), "new"));
    fs::remove_dir_all(fixture.path("new")).unwrap();
    fixture.write("another", "");
    let reported = fixture.shadow.after(&scan);
    assert_eq!(reported.changes.len(), 20);
    assert!(reported.changes.iter().all(|change| fixture.undo(change).is_ok()));
}

#[test]
fn files_that_come_into_or_out_of_sight_are_neither_created_nor_deleted() {
    let fixture = Fixture::new();
    fixture.write(".gitignore", "hidden\n");
    fixture.write("hidden", "precious");
    fixture.write("sub/seen", "1");
    let reported = fixture.reported(|| {
        fixture.write(".gitignore", "sub\n");
        fixture.write("sub/seen", "2");
        fixture.write("hidden", "precious!");
    });
    let ignore = "\"hidden\\n\" 644 -> \"sub\\n\" 644";
    assert_eq!(
        reported,
        [
            format!(".gitignore: {ignore}"),
            "hidden: NotCovered -> \"precious!\" 644".to_owned(),
            "sub/seen: \"1\" 644 -> \"2\" 644".to_owned(),
        ]
    );
    assert_eq!(fixture.shadow.before().coverage().files, 2);
}

#[test]
fn rules_that_only_ignore_more_leave_no_doubt_about_created_files() {
    let fixture = Fixture::new();
    fixture.write(".gitignore", "hidden\n");
    fixture.write("hidden", "precious");
    let created = |line: &str| {
        let rules = fs::read_to_string(fixture.path(".gitignore")).unwrap();
        let reported = fixture.reported(|| {
            fixture.write(".gitignore", rules + line);
            fixture.write("new", "");
            fixture.write("made/.gitignore", "x\n");
        });
        fs::remove_file(fixture.path("new")).unwrap();
        fs::remove_dir_all(fixture.path("made")).unwrap();
        reported.into_iter().filter(|line| !line.starts_with(".gitignore")).collect::<Vec<_>>()
    };
    assert_eq!(created("more\n"), ["made/.gitignore: absent -> \"x\\n\" 644", "new: absent -> \"\" 644"]);
    assert_eq!(created("!other")[1], "new: NotCovered -> \"\" 644");
    assert_eq!(created("wise")[1], "new: NotCovered -> \"\" 644");
}

#[test]
fn no_link_is_followed_and_nothing_is_written_beyond_one() {
    let fixture = Fixture::new();
    let outside = fixture.folder.path().join("outside");
    fs::create_dir(&outside).unwrap();
    fs::write(outside.join("a"), "secret").unwrap();
    fixture.write("d/a", "mine");
    let changes = fixture.changes(|| {
        fs::remove_dir_all(fixture.path("d")).unwrap();
        symlink(&outside, fixture.path("d")).unwrap();
    });
    let [deleted, linked] = changes.as_slice() else { panic!("{changes:?}") };
    assert_eq!((&deleted.after, &linked.before), (&FileImage::Absent, &FileImage::Absent));
    assert_eq!(linked.after, FileImage::Symlink { target: outside.clone() });
    assert!(matches!(fixture.undo(deleted), Err(RestoreError::InTheWay { .. })));
    assert_eq!(fs::read(outside.join("a")).unwrap(), b"secret");
    fixture.undo(linked).unwrap();
    fixture.undo(deleted).unwrap();
    assert_eq!(fs::read(fixture.path("d/a")).unwrap(), b"mine");
    assert_eq!(fs::read(outside.join("a")).unwrap(), b"secret");
}

#[test]
fn what_has_changed_since_and_what_is_not_ours_is_left_alone() {
    let fixture = Fixture::new();
    fixture.write("a", "old");
    let changes = fixture.changes(|| {
        fixture.write("a", "new");
        fixture.write("b", "new");
    });
    let [modified, created] = changes.as_slice() else { panic!("{changes:?}") };
    fixture.write("a", "typed since");
    fs::set_permissions(fixture.path("b"), fs::Permissions::from_mode(0o755)).unwrap();
    let before = fixture.snapshot();
    assert!(matches!(fixture.undo(modified), Err(RestoreError::Changed(_))));
    assert!(matches!(fixture.undo(created), Err(RestoreError::Changed(_))));
    for path in ["../b", "", ".git/config", "sub/.git/hooks/x"] {
        let path = fixture.root.join(path);
        let result = fixture.shadow.restore_file(&path, &FileImage::Absent, &modified.before);
        assert!(matches!(result, Err(RestoreError::Outside(_))), "{path}");
    }
    fs::remove_file(fixture.path("a")).unwrap();
    fixture.write("a/of/somebody", "else");
    let result = fixture.shadow.restore_file(&modified.path, &FileImage::Absent, &modified.before);
    assert!(matches!(result, Err(RestoreError::InTheWay { .. })), "{result:?}");
    fs::remove_dir_all(fixture.path("a")).unwrap();
    fixture.write("a", "typed since");
    assert_eq!(fixture.snapshot(), before);

    fixture.write("a", "old");
    fixture.undo(modified).unwrap();
}

#[test]
fn a_damaged_blob_restores_nothing() {
    let fixture = Fixture::new();
    fixture.write("a", "old");
    let changes = fixture.changes(|| fixture.write("a", "new"));
    let FileImage::Kept { blob, .. } = &changes[0].before else { panic!("{changes:?}") };
    fs::write(fixture.shadow.blobs.folder().join(blob.to_string()), "damaged").unwrap();
    let error = fixture.undo(&changes[0]).unwrap_err();
    assert!(
        matches!(&error, RestoreError::Io { source, .. } if source.kind() == std::io::ErrorKind::InvalidData)
    );
    assert_eq!(fs::read(fixture.path("a")).unwrap(), b"new");
}

#[test]
fn without_a_place_for_contents_changes_are_reported_and_nothing_else_fails() {
    let fixture = Fixture::new();
    fs::write(fixture.folder.path().join("session"), "in the way").unwrap();
    fixture.write("a", "old");
    fixture.write("b", "old");
    let scan = fixture.shadow.before();
    assert!(matches!(scan.coverage().gaps.as_slice(), [CoverageGap::Storage { .. }]));
    fixture.write("a", "newer");
    fixture.write("created", "");
    let reported = fixture.shadow.after(&scan);
    assert!(matches!(reported.coverage.gaps.as_slice(), [CoverageGap::Storage { .. }]));
    let [change, created] = reported.changes.as_slice() else { panic!("{reported:?}") };
    assert_eq!(created.before, FileImage::Absent);
    assert!(matches!(&change.before, FileImage::NotKept { reason: NotKeptReason::Failed { .. } }));
    assert!(matches!(fixture.undo(change), Err(RestoreError::NotKept { .. })));

    fs::remove_file(fixture.folder.path().join("session")).unwrap();
    let changes = fixture.changes(|| fixture.write("a", "again"));
    fixture.undo(&changes[0]).unwrap();
    assert_eq!(fs::read(fixture.path("a")).unwrap(), b"newer");
}

#[test]
fn blobs_that_cannot_be_written_after_the_command_leave_no_image_that_promises_them() {
    let fixture = Fixture::new();
    fixture.write("a", "old");
    let scan = fixture.shadow.before();
    fs::remove_dir_all(fixture.folder.path().join("session")).unwrap();
    fixture.write("a", "newer");
    let reported = fixture.shadow.after(&scan);
    assert!(matches!(reported.coverage.gaps.as_slice(), [CoverageGap::Storage { .. }]), "{reported:?}");
    assert!(matches!(
        &reported.changes[0].before,
        FileImage::NotKept { reason: NotKeptReason::Failed { .. } }
    ));
}

#[test]
fn pipes_are_skipped_and_a_file_replaced_by_one_is_reported() {
    let fixture = Fixture::new();
    let pipe = |name: &str| {
        let mode = rustix::fs::Mode::from_raw_mode(0o600);
        rustix::fs::mknodat(rustix::fs::CWD, fixture.path(name), rustix::fs::FileType::Fifo, mode, 0)
            .unwrap();
    };
    fixture.write("a", "old");
    pipe("first");
    let reported = fixture.reported(|| {
        pipe("second");
        fs::remove_file(fixture.path("first")).unwrap();
        fs::remove_file(fixture.path("a")).unwrap();
        pipe("a");
    });
    assert_eq!(reported, ["a: \"old\" 644 -> NotAFile"]);
}

#[test]
fn names_that_are_not_unicode_are_restored_from_a_journal_too() {
    let fixture = Fixture::new();
    let name = OsString::from_vec(b"\xff\xfe".to_vec());
    let path = fixture.root.as_path().join(&name);
    fs::write(&path, "old").unwrap();
    let before = fixture.snapshot();
    let changes = fixture.changes(|| {
        fs::remove_file(&path).unwrap();
        symlink(&name, &path).unwrap();
    });
    let json = serde_json::to_string(&changes).unwrap();
    let changes: Vec<ShellChange> = serde_json::from_str(&json).unwrap();
    fixture.undo(&changes[0]).unwrap();
    assert_eq!(fixture.snapshot(), before);
}

#[test]
fn what_may_not_be_read_is_reported_as_such() {
    let fixture = Fixture::new();
    fixture.write("a", "secret");
    fixture.write("closed/b", "secret");
    let mode =
        |name: &str, mode| fs::set_permissions(fixture.path(name), fs::Permissions::from_mode(mode)).unwrap();
    mode("a", 0);
    mode("closed", 0);
    if fs::read(fixture.path("a")).is_ok() {
        // The superuser may read everything; what the system would say can still be understood.
        let denied = std::io::Error::from(std::io::ErrorKind::PermissionDenied);
        assert_eq!(NotKeptReason::unreadable(&denied), NotKeptReason::PermissionDenied);
        return;
    }
    let scan = fixture.shadow.before();
    assert!(matches!(scan.coverage().gaps.as_slice(), [CoverageGap::Unreadable { .. }]));
    mode("closed", 0o755);
    mode("a", 0o644);
    let reported = fixture.shadow.after(&scan).changes;
    assert_eq!(reported[0].before, FileImage::NotKept { reason: NotKeptReason::PermissionDenied });
    assert!(reported.iter().all(|change| change.before != FileImage::Absent), "{reported:?}");
}

#[test]
fn files_that_come_and_go_during_a_look_harm_nothing() {
    let fixture = Fixture::new();
    for number in 0..300 {
        fixture.write(&format!("still/{number}"), "1");
    }
    let is_over = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(std::sync::atomic::Ordering::Relaxed) {
                (0..50).for_each(|number| fixture.write(&format!("moving/{number}"), "2"));
                fs::remove_dir_all(fixture.path("moving")).unwrap();
            }
        });
        for round in 0..30 {
            let scan = fixture.shadow.before();
            fixture.write("still/7", format!("{round}"));
            let reported = fixture.shadow.after(&scan);
            assert_eq!(reported.coverage.gaps, []);
            let still: Vec<_> = reported
                .changes
                .iter()
                .filter(|change| change.path.is_within(&fixture.root.join("still")))
                .collect();
            assert_eq!(still.len(), 1);
        }
        is_over.store(true, std::sync::atomic::Ordering::Relaxed);
    });
}

#[test]
fn commands_at_the_same_time_each_report_what_has_changed_since_they_began() {
    let fixture = Fixture::new();
    fixture.write("a", "1");
    let first = fixture.shadow.before();
    fixture.write("a", "2");
    let second = fixture.shadow.before();
    fixture.write("b", "1");
    let names = |scan: &Scan| -> Vec<_> {
        fixture.shadow.after(scan).changes.iter().map(|change| change.path.file_name()).collect()
    };
    assert_eq!(names(&first), ["a", "b"]);
    assert_eq!(names(&second), ["b"]);
}
