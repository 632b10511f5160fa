//! Looks without a walk, where the kernel tells that nothing has changed.
//!
//! Rule: a walk without time leaves a gap, which tells whether there was one; every kind of change is seen.

use std::fs::{File, OpenOptions};
use std::os::unix::fs::PermissionsExt;

use super::*;
use crate::workspace::shadow::watch::TreeWatch;

/// Something that happens in or around the workspace.
type Act = (&'static str, fn(&Fixture));

/// A repository with files in two folders, one of which is ignored.
fn fixture() -> Fixture {
    let fixture = Fixture::new();
    fixture.write("a", "1");
    fixture.write("sub/deep/b", "1");
    fixture.write(".gitignore", "ignored\n");
    fixture.write("ignored/c", "1");
    fixture.write(".git/info/exclude", "");
    fixture.write(".git/index", "1");
    fixture
}

/// Whether a check of the fixture walks.
fn walks(fixture: &mut Fixture) -> bool {
    fixture.shadow.limits.walk_time = Duration::ZERO;
    let gaps = fixture.shadow.before().coverage().gaps;
    fixture.shadow.limits.walk_time = MAX_WALK_TIME;
    !gaps.is_empty()
}

#[test]
fn where_nothing_has_changed_nothing_is_walked() {
    let mut fixture = fixture();
    let scan = fixture.shadow.before();
    assert!(!walks(&mut fixture));
    fixture.write("ignored/new/c", "2");
    fixture.write(".git/index", "2");
    fs::read(fixture.path("a")).unwrap();
    assert!(!walks(&mut fixture), "what is not covered costs nothing");
    assert_eq!(fixture.shadow.after(&scan), ShellChanges { changes: vec![], coverage: scan.coverage() });
    // A session in the same folders has the same watch.
    let other =
        Shadow::new(vec![fixture.root.clone()], fixture.shadow.blobs.clone(), ShadowLimits::default());
    let others = other.before();
    fixture.write("a", "2");
    assert_eq!((fixture.shadow.after(&scan).changes.len(), other.after(&others).changes.len()), (1, 1));
    assert!(!walks(&mut fixture), "the look after a command is that before the next");
}

#[test]
fn every_kind_of_change_is_seen_and_new_folders_are_watched() {
    let acts: [Act; 17] = [
        ("a write in place", |fixture| fixture.write("a", "2")),
        ("a write further down", |fixture| fixture.write("sub/deep/b", "2")),
        ("a file cut short", |fixture| {
            File::options().write(true).open(fixture.path("a")).unwrap().set_len(0).unwrap()
        }),
        ("a mode", |fixture| {
            fs::set_permissions(fixture.path("a"), fs::Permissions::from_mode(0o600)).unwrap();
        }),
        ("a new file", |fixture| fixture.write("new", "1")),
        ("a removed file", |fixture| fs::remove_file(fixture.path("sub/deep/b")).unwrap()),
        ("a new name", |fixture| fs::rename(fixture.path("a"), fixture.path("z")).unwrap()),
        ("a file that takes another's place", |fixture| {
            fs::write(fixture.folder.path().join("x"), "2").unwrap();
            fs::rename(fixture.folder.path().join("x"), fixture.path("a")).unwrap();
        }),
        ("a file in a new folder", |fixture| fixture.write("made/for/it", "1")),
        ("a folder moved away", |fixture| {
            fs::rename(fixture.path("sub"), fixture.folder.path().join("sub")).unwrap();
        }),
        ("a folder moved in", |fixture| {
            fs::create_dir(fixture.folder.path().join("other")).unwrap();
            fs::write(fixture.folder.path().join("other/file"), "1").unwrap();
            fs::rename(fixture.folder.path().join("other"), fixture.path("other")).unwrap();
        }),
        ("a folder with another name", |fixture| {
            fs::rename(fixture.path("sub"), fixture.path("bus")).unwrap()
        }),
        ("a link", |fixture| symlink("a", fixture.path("link")).unwrap()),
        ("a write under another name", |fixture| {
            fs::write(fixture.folder.path().join("second"), "2").unwrap();
        }),
        ("a folder in the place of the root", |fixture| {
            fs::rename(&fixture.root, fixture.folder.path().join("old")).unwrap();
            fixture.write("a", "2");
        }),
        ("no longer ignored by the repository", |fixture| fixture.write(".git/info/exclude", "!ignored\n")),
        ("no longer ignored from above", |fixture| {
            fs::write(fixture.folder.path().join(".ignore"), "a\n").unwrap();
        }),
    ];
    for (what, act) in acts {
        let mut fixture = fixture();
        fs::hard_link(fixture.path(".gitignore"), fixture.folder.path().join("second")).unwrap();
        let scan = fixture.shadow.before();
        assert!(!walks(&mut fixture), "{what}");
        act(&fixture);
        if what.starts_with("no longer") {
            assert!(walks(&mut fixture), "{what}");
        } else {
            assert_ne!(fixture.shadow.after(&scan).changes, [], "{what}");
        }
        let scan = fixture.shadow.before();
        assert!(!walks(&mut fixture), "{what}: afterwards");
        act_again(&fixture);
        assert_ne!(fixture.shadow.after(&scan).changes, [], "{what}: afterwards");
    }
}

/// Writes in each folder that is there.
fn act_again(fixture: &Fixture) {
    for name in ["made/for", "other", "bus/deep", "sub/deep", ""] {
        let path = fixture.path(name);
        if path.is_dir() {
            fs::write(path.join("later"), "1").unwrap();
        }
    }
}

#[test]
fn where_files_of_a_folder_have_changed_that_folder_alone_is_read() {
    let mut fixture = fixture();
    fixture.write(".gitignore", "ignored\n*.log\n");
    let scan = fixture.shadow.before();
    fixture.write("sub/deep/b", "2");
    fixture.write("sub/deep/new", "1");
    fixture.write("sub/deep/x.log", "1");
    symlink("b", fixture.path("sub/deep/link")).unwrap();
    fixture.shadow.limits.walk_time = Duration::ZERO;
    let (changes, scan) = fixture.shadow.since(&scan);
    let names: Vec<_> = changes.changes.iter().map(|change| change.path.file_name()).collect();
    assert_eq!((names.join(" "), changes.coverage.gaps), ("b link new".to_owned(), vec![]));
    fixture.write("a", "2");
    let (changes, scan) = fixture.shadow.since(&scan);
    assert_eq!((changes.changes.len(), changes.coverage.gaps), (1, vec![]));
    // A removed file is searched for, which takes time.
    fixture.shadow.limits.walk_time = MAX_WALK_TIME;
    fs::remove_file(fixture.path("a")).unwrap();
    let changes = fixture.shadow.after(&scan).changes;
    assert_eq!((changes.len(), &changes[0].after), (1, &FileImage::Absent));
}

#[test]
fn a_folder_that_is_ignored_by_now_is_no_longer_compared() {
    let fixture = fixture();
    drop(fixture.shadow.before());
    fixture.write(".gitignore", "ignored\nsub\n");
    let scan = fixture.shadow.before();
    assert_eq!(scan.coverage().files, 2);
    fixture.write("sub/deep/b", "2");
    fixture.write("a", "2");
    assert_eq!(fixture.shadow.after(&scan).changes.len(), 1);
    assert_eq!(fixture.shadow.before().coverage().files, 2);
}

#[test]
fn a_covered_file_that_is_ignored_by_now_is_watched_in_a_folder_made_for_it() {
    let fixture = fixture();
    let scan = fixture.shadow.before();
    fixture.write(".gitignore", "ignored\nsub\n");
    fs::remove_dir_all(fixture.path("sub")).unwrap();
    fixture.write("sub/deep/b", "2");
    let (changes, scan) = fixture.shadow.since(&scan);
    assert_eq!(changes.changes.len(), 2);
    fixture.write("sub/deep/b", "3");
    assert_eq!(fixture.shadow.after(&scan).changes.len(), 1);
}

#[test]
fn a_workspace_behind_a_link_is_walked() {
    let mut fixture = fixture();
    let link = fixture.folder.path().join("link");
    symlink(&fixture.root, &link).unwrap();
    let root = AbsPath::new(link).unwrap();
    fixture.shadow = Shadow::new(vec![root], fixture.shadow.blobs.clone(), ShadowLimits::default());
    let scan = fixture.shadow.before();
    fixture.write("a", "2");
    assert_eq!(fixture.shadow.after(&scan).changes.len(), 1);
    assert!(walks(&mut fixture));
}

#[test]
fn a_write_by_a_program_that_keeps_the_file_open_is_seen() {
    let fixture = fixture();
    let mut open = OpenOptions::new().append(true).open(fixture.path("a")).unwrap();
    let scan = fixture.shadow.before();
    std::io::Write::write_all(&mut open, b"more").unwrap();
    assert_eq!(fixture.shadow.after(&scan).changes.len(), 1);
}

#[test]
fn where_there_are_too_many_files_those_that_are_compared_are_watched() {
    let mut fixture = Fixture::with(ShadowLimits { files: 20, ..ShadowLimits::default() });
    for number in 0..60 {
        fixture.write(&format!("{}/{number}", number % 6), "1");
    }
    let gap = CoverageGap::TooManyFiles { limit: 20 };
    let scan = fixture.shadow.before();
    assert!(scan.coverage().gaps.contains(&gap));
    fixture.shadow.limits.walk_time = Duration::ZERO;
    assert!(!fixture.shadow.before().coverage().gaps.contains(&CoverageGap::OutOfTime));
    fixture.shadow.limits.walk_time = MAX_WALK_TIME;
    let known = scan.tree.files.keys().next().unwrap();
    fs::write(known, "2").unwrap();
    let (changes, scan) = fixture.shadow.since(&scan);
    assert_eq!(changes.changes.len(), 1);
    fixture.shadow.limits.walk_time = Duration::ZERO;
    assert!(!fixture.shadow.before().coverage().gaps.contains(&CoverageGap::OutOfTime));
    assert_eq!(fixture.shadow.after(&scan).changes, []);
}

#[test]
fn a_new_folder_is_a_change_of_the_folder_above_and_one_that_goes_may_be_any() {
    let acts: [(Act, Option<&str>); 7] = [
        (("made", |fixture| fs::create_dir(fixture.path("new")).unwrap()), Some("")),
        (("made further down", |fixture| fixture.write("sub/deep/new/x", "1")), Some("sub/deep")),
        (("made, with files in it", |fixture| fixture.write("new/deep/x", "1")), Some("")),
        (("removed", |fixture| fs::remove_dir_all(fixture.path("sub")).unwrap()), None),
        (("moved", |fixture| fs::rename(fixture.path("sub"), fixture.path("new")).unwrap()), None),
        (("made again", made_again), None),
        (("made for a repository", |fixture| fs::create_dir(fixture.path("sub/.git")).unwrap()), None),
    ];
    for ((what, act), expected) in acts {
        let fixture = fixture();
        drop(fixture.shadow.before());
        let moment = TreeWatch::over(std::slice::from_ref(&fixture.root)).unwrap().moment().unwrap();
        act(&fixture);
        let expected = expected.map(|name| [fixture.path(name)].into());
        assert_eq!(moment.changed_folders(), expected, "{what}");
    }
}

fn made_again(fixture: &Fixture) {
    fs::remove_dir_all(fixture.path("sub")).unwrap();
    fs::create_dir(fixture.path("sub")).unwrap();
}
