//! Repositories that name programs in every place git looks for them.
//!
//! Rule: what makes git run something makes the repository not plain; an ordinary one stays plain.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::process::Command;

use super::*;

const ORDINARY: &str = "[core]\n\trepositoryformatversion = 0\n\tbare = false\n[remote \"origin\"]\n\turl = x\n\tfetch = \
                        +refs/heads/*:refs/remotes/origin/*\n[branch \"main\"]\n\tremote = origin\n";
const HOSTILE: &str = "[core]\n\tfsmonitor = ./evil\n";

/// A git folder as `git init` leaves it.
fn init(folder: &Path, config: &str) {
    fs::create_dir_all(folder.join("objects")).unwrap();
    fs::create_dir_all(folder.join("refs")).unwrap();
    fs::write(folder.join("HEAD"), "ref: refs/heads/main\n").unwrap();
    fs::write(folder.join("config"), config).unwrap();
}

fn repository(config: &str) -> (tempfile::TempDir, AbsPath) {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir_all(folder.path().join("src")).unwrap();
    init(&folder.path().join(".git"), config);
    let inside = AbsPath::new(folder.path().join("src")).unwrap();
    (folder, inside)
}

fn program(path: &Path) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, "#!/bin/sh\n").unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
}

fn run_git(folder: &Path, arguments: &[&str]) {
    let mut git = Command::new("git");
    git.env("GIT_CONFIG_GLOBAL", "/dev/null").env("GIT_CONFIG_NOSYSTEM", "1").current_dir(folder);
    assert!(git.args(arguments).status().unwrap().success(), "{arguments:?}");
}

#[test]
fn an_ordinary_repository_is_plain_and_one_that_names_programs_is_not() {
    assert!(is_plain(&repository(ORDINARY).1));
    for hostile in [
        HOSTILE,
        "[core]\n\tHooksPath = x",
        "[core] pager = x",
        "[core] fsmonitor = [x]",
        "[core]\n\tworktree = ../..",
        "[diff \"x\"]\n\ttextconv = evil",
        "[filter \"x\"]\n\tclean = evil",
        "[include]\n\tpath = evil",
        "[alias]\n\tst = !evil",
        "[remote \"o\"]\n\tuploadpack = evil",
        "[extensions]\n\tpartialClone = o",
        "fsmonitor = evil",
        "\u{feff}[core]\n\tfsmonitor = evil",
        "[user]\n\tname = a\\\n[core]\n\tbare = false",
        "[user]\n\tname = \"a",
        "[user]\r[core]\r\tfsmonitor = evil",
        "[user]\n\u{a0}name = a",
        "[user \"a\\\"]\n\tname = b",
        "[user.x]\n\tname = b",
        "[core]\n\tfilemode\0 = true",
    ] {
        let (_folder, inside) = repository(hostile);
        assert!(!is_plain(&inside), "{hostile:?}");
    }
    let none = tempfile::tempdir().unwrap();
    assert!(is_plain(&AbsPath::new(none.path()).unwrap()));
    assert!(!is_plain(&AbsPath::new(none.path().join("gone")).unwrap()));
}

#[test]
fn a_hook_that_looking_sets_off_is_a_program() {
    let (folder, inside) = repository(ORDINARY);
    let hooks = folder.path().join(".git/hooks");
    program(&hooks.join("pre-commit"));
    program(&hooks.join("post-index-change.sample"));
    fs::write(hooks.join("post-index-change"), "not executable").unwrap();
    assert!(is_plain(&inside));
    program(&hooks.join("post-index-change"));
    assert!(!is_plain(&inside));
    fs::remove_dir_all(&hooks).unwrap();
    program(&folder.path().join("elsewhere/post-index-change"));
    symlink("../elsewhere", &hooks).unwrap();
    assert!(!is_plain(&inside));
}

#[test]
fn a_git_file_and_shared_settings_are_followed() {
    let (folder, _) = repository(ORDINARY);
    let main = folder.path().join(".git");
    fs::create_dir_all(main.join("worktrees/w")).unwrap();
    fs::write(main.join("worktrees/w/commondir"), "../..\n").unwrap();
    let worktree = tempfile::tempdir().unwrap();
    let pointer = format!("gitdir: {}/worktrees/w\n", main.display());
    fs::write(worktree.path().join(".git"), &pointer).unwrap();
    let inside = AbsPath::new(worktree.path()).unwrap();
    assert!(is_plain(&inside));
    fs::write(worktree.path().join(".git"), pointer + "x").unwrap();
    assert!(!is_plain(&inside));
    fs::write(worktree.path().join(".git"), format!("gitdir: {}/worktrees/w\n", main.display())).unwrap();
    fs::write(main.join("config"), HOSTILE).unwrap();
    assert!(!is_plain(&inside));
}

#[test]
fn a_folder_that_is_a_bare_repository_by_its_content_is_one() {
    let folder = tempfile::tempdir().unwrap();
    init(folder.path(), HOSTILE);
    assert!(!is_plain(&AbsPath::new(folder.path()).unwrap()));
    // A link that leads nowhere names a branch as well, and the objects may lie elsewhere.
    fs::remove_file(folder.path().join("HEAD")).unwrap();
    symlink("refs/heads/none", folder.path().join("HEAD")).unwrap();
    fs::remove_dir_all(folder.path().join("objects")).unwrap();
    assert!(!is_plain(&AbsPath::new(folder.path()).unwrap()));
}

#[test]
fn what_git_passes_by_hides_nothing_further_up() {
    let (folder, inside) = repository(HOSTILE);
    let decoy = folder.path().join("src/.git");
    fs::create_dir(&decoy).unwrap();
    assert!(!is_plain(&inside), "an empty folder is no repository");
    fs::write(decoy.join("HEAD"), "ref: refs/heads/main\n").unwrap();
    fs::create_dir(decoy.join("objects")).unwrap();
    assert!(!is_plain(&inside), "half a repository is none");
    init(&decoy, ORDINARY);
    assert!(is_plain(&inside));
    fs::remove_dir_all(&decoy).unwrap();
    symlink("nowhere", &decoy).unwrap();
    assert!(!is_plain(&inside), "a link that leads nowhere is passed by");
    let link = tempfile::tempdir().unwrap();
    symlink(folder.path(), link.path().join("link")).unwrap();
    assert!(!is_plain(&AbsPath::new(link.path().join("link")).unwrap()));
}

#[test]
fn repositories_in_a_repository_are_judged_with_it() {
    for version in ["2", "3", "4"] {
        let folder = tempfile::tempdir().unwrap();
        let top = AbsPath::new(folder.path()).unwrap();
        run_git(folder.path(), &["init", "-q"]);
        for name in ["a", "lib/one", "lib/sub2", "z"] {
            fs::create_dir_all(folder.path().join(name).parent().unwrap()).unwrap();
            fs::write(folder.path().join(name), name).unwrap();
        }
        run_git(folder.path(), &["add", "."]);
        let link = "160000,4b825dc642cb6eb9a060e54bf8d69288fbee4904,lib/sub";
        run_git(folder.path(), &["update-index", "--add", "--cacheinfo", link]);
        // An entry with more flags than the oldest version has room for.
        run_git(folder.path(), &["rm", "-q", "--cached", "z"]);
        run_git(folder.path(), &["add", "--intent-to-add", "z"]);
        run_git(folder.path(), &["update-index", "--index-version", version]);
        let index = folder.path().join(".git/index");
        assert_eq!(index::submodules(&index), Some(vec!["lib/sub".into()]), "{version}");
        assert!(is_plain(&top), "it is not there");

        // The usual layout: the repository lies among the modules and names its folder.
        let sub = folder.path().join("lib/sub");
        let module = folder.path().join(".git/modules/lib/sub");
        fs::create_dir_all(&sub).unwrap();
        let home = "[core]\n\tworktree = ../../../../lib/sub\n";
        init(&module, home);
        fs::write(sub.join(".git"), "gitdir: ../../.git/modules/lib/sub\n").unwrap();
        assert!(is_plain(&top));
        fs::write(module.join("config"), "[core]\n\tworktree = ../../../../lib\n").unwrap();
        assert!(!is_plain(&top));
        fs::write(module.join("config"), format!("{home}{HOSTILE}")).unwrap();
        assert!(!is_plain(&top));
        fs::write(module.join("config"), home).unwrap();
        program(&module.join("hooks/post-index-change"));
        assert!(!is_plain(&top));
    }
}

#[test]
fn an_index_that_is_not_understood_is_not_plain() {
    let (folder, inside) = repository(ORDINARY);
    let index = folder.path().join(".git/index");
    let mut empty = b"DIRC\0\0\0\x02\0\0\0\0".to_vec();
    empty.extend_from_slice(&[0; 20]);
    fs::write(&index, &empty).unwrap();
    assert!(is_plain(&inside));
    let mut split = b"DIRC\0\0\0\x02\0\0\0\0link\0\0\0\0".to_vec();
    split.extend_from_slice(&[0; 20]);
    for broken in [&split[..], &empty[..31], b"DIRC", b"", b"DIRC\0\0\0\x02\0\0\0\x01"] {
        fs::write(&index, broken).unwrap();
        assert!(!is_plain(&inside), "{broken:?}");
    }
}
