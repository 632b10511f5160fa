//! Tests of finding guarded files, of keeping that current, and of what becomes of new ones.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tempfile::TempDir;

use super::index::GuardIndex;
use super::{FileGuard, GuardScope, GuardSnapshot, GuardSurvey, GuardedPath, LeaseKind, Quarantine};
use crate::sandbox::{GuardReport, RestoredPath};
use kode_base::paths::{AbsPath, real_path};

struct Fixture {
    _folder: TempDir,
    base: PathBuf,
    root: PathBuf,
}

fn fixture(files: &[&str]) -> Fixture {
    let folder = tempfile::tempdir().unwrap();
    let base = real_path(folder.path()).unwrap();
    let root = base.join("root");
    fs::create_dir(&root).unwrap();
    let fixture = Fixture { _folder: folder, base, root };
    files.iter().for_each(|file| fixture.write(file, file));
    fixture
}

impl Fixture {
    fn write(&self, file: &str, text: &str) {
        let path = self.root.join(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn ground(&self) -> GuardScope {
        GuardScope {
            roots: vec![self.root.clone()],
            home: None,
            unseen: BTreeSet::new(),
            hides: None,
            scripts: Vec::new(),
        }
    }

    fn survey(&self) -> GuardSurvey {
        GuardSurvey::of(&self.ground()).unwrap()
    }

    fn store(&self) -> Quarantine {
        Quarantine::of(&self.base.join("state"))
    }

    fn guard(&self) -> Arc<FileGuard> {
        FileGuard::over(self.ground(), self.store())
    }

    /// The handling of files that `work` leaves, as a command's doing.
    fn after(&self, work: impl FnOnce()) -> GuardReport {
        let watched = self.guard().begin(LeaseKind::Attended).unwrap();
        work();
        watched.end(&[])
    }

    fn names(&self, paths: impl IntoIterator<Item = impl AsRef<Path>>) -> Vec<String> {
        let name = |path: &Path| path.strip_prefix(&self.root).unwrap().to_str().unwrap().to_owned();
        paths.into_iter().map(|path| name(path.as_ref())).collect()
    }

    fn found(&self) -> Vec<String> {
        self.names(self.survey().found.keys())
    }

    fn set_aside(&self, report: &GuardReport) -> Vec<String> {
        let mut names = self.names(report.set_aside.iter().map(|aside| &aside.path));
        names.sort();
        names
    }

    fn read(&self, file: &str) -> String {
        fs::read_to_string(self.root.join(file)).unwrap()
    }

    /// A repository as `git init` makes it, in a folder.
    fn repository(&self, folder: &str) {
        let inside = |name: &str| Path::new(folder).join(".git").join(name).display().to_string();
        self.write(&inside("HEAD"), "ref: refs/heads/main\n");
        self.write(&inside("config"), "[core]\n\trepositoryformatversion = 0\n\tbare = false\n");
        self.write(&inside("description"), "unnamed");
        self.write(&inside("hooks/pre-commit.sample"), "#!/bin/sh");
        self.write(&inside("info/exclude"), "");
        self.write(&inside("objects/aa/bb"), "object");
        self.write(&inside("refs/heads/main"), "0".repeat(40).as_str());
        self.write(&inside("logs/HEAD"), "log");
        self.write(&inside("index"), "index");
    }
}

#[test]
fn all_of_a_repository_is_guarded_but_what_commits_write() {
    let fixture = fixture(&[]);
    fixture.repository(".");
    for name in
        ["COMMIT_EDITMSG", "packed-refs", "index.lock", "rebase-merge/git-rebase-todo", "commondir", "x"]
    {
        fixture.write(&format!(".git/{name}"), "");
    }
    let expected = ["commondir", "config", "description", "hooks", "info", "rebase-merge", "x"];
    assert_eq!(fixture.found(), expected.map(|name| format!(".git/{name}")));
}

#[test]
fn repositories_are_found_at_any_depth_and_in_dependencies() {
    let fixture = fixture(&["a/b/c/d/e/.vscode/x", "node_modules/x/.vscode/tasks.json", "README.md"]);
    for folder in ["a/b/c/d", "node_modules/x", "target/debug/y", ".venv/z"] {
        fixture.repository(folder);
    }
    let found = fixture.found();
    for folder in ["a/b/c/d", "node_modules/x", "target/debug/y", ".venv/z"] {
        let config = format!("{folder}/.git/config");
        assert!(found.contains(&config), "{config} in {found:?}");
    }
    assert!(found.contains(&"a/b/c/d/e/.vscode".to_owned()), "{found:?}");
    assert!(!found.contains(&"node_modules/x/.vscode".to_owned()), "nothing is opened there: {found:?}");
}

#[test]
fn many_files_hide_nothing() {
    let fixture = fixture(&[]);
    for number in 0..25_000 {
        fs::write(fixture.root.join(format!("f{number}")), "").unwrap();
    }
    fixture.repository("zzz");
    assert!(fixture.found().contains(&"zzz/.git/config".to_owned()));
}

#[test]
fn submodules_and_worktrees_are_repositories_of_their_own() {
    let fixture = fixture(&[
        ".git/modules/lib/x/HEAD",
        ".git/modules/lib/x/config",
        ".git/modules/lib/x/hooks/h",
        ".git/modules/lib/x/index",
        ".git/worktrees/w/HEAD",
        ".git/worktrees/w/commondir",
        ".git/worktrees/w/gitdir",
        ".git/worktrees/w/index",
        ".git/worktrees/loose",
        ".git/config",
    ]);
    let expected = ["config", "modules/lib/x/config", "modules/lib/x/hooks", "worktrees/loose"];
    let mut expected: Vec<_> = expected.iter().map(|name| format!(".git/{name}")).collect();
    expected.extend(["worktrees/w/commondir", "worktrees/w/gitdir"].map(|name| format!(".git/{name}")));
    assert_eq!(fixture.found(), expected);
}

#[test]
fn the_folder_a_git_file_points_to_is_guarded_where_it_can_be_written() {
    let fixture = fixture(&["main/.git/worktrees/w/HEAD", "main/.git/config", "main/.git/hooks/h", "w/a"]);
    fixture.write("w/.git", "gitdir: ../main/.git/worktrees/w\n");
    fixture.write("main/.git/worktrees/w/commondir", "../..\n");
    let ground = GuardScope { roots: vec![fixture.root.join("w")], ..fixture.ground() };
    assert_eq!(fixture.names(GuardSurvey::of(&ground).unwrap().found.keys()), ["w/.git"]);
    let found = fixture.found();
    for guarded in ["main/.git/config", "main/.git/hooks", "w/.git", "main/.git/worktrees/w/commondir"] {
        assert!(found.iter().any(|found| found == guarded), "{guarded} in {found:?}");
    }
}

#[test]
fn a_folder_that_is_a_repository_by_its_content_is_guarded_as_one() {
    assert_eq!(fixture(&["HEAD", "objects/a", "refs/a", "config", "src"]).found(), ["config"]);
    assert_eq!(fixture(&["x/HEAD", "x/commondir", "x/notes"]).found(), ["x/commondir"]);
    assert!(fixture(&["x/HEAD", "x/config"]).found().is_empty());
}

#[test]
fn a_file_that_makes_a_folder_a_repository_or_steers_one_is_obeyed_by_git() {
    let fixture = fixture(&["d/HEAD", "d/objects/x", "e/config", "e/objects/x", "e/refs/x", "plain/config"]);
    let is_obeyed = |file: &str| {
        crate::git_obeys::obeyed_by_git(&AbsPath::new(fixture.root.join(file)).unwrap()).is_some()
    };
    assert!(is_obeyed("d/refs/x") && is_obeyed("e/HEAD") && is_obeyed("e/head"));
    assert!(!is_obeyed("d/config") && !is_obeyed("plain/HEAD") && !is_obeyed("e/readme"));
    fixture.write("d/refs/x", "");
    assert!(is_obeyed("d/config") && is_obeyed("d/hooks/pre-commit") && !is_obeyed("d/readme"));
}

#[test]
fn a_file_that_settings_include_is_obeyed_by_git_before_it_is_there() {
    let fixture = fixture(&["w/file"]);
    fixture.write("w/.git/config", "[include]\n\tpath = ../shared\n[core]\n\thooksPath = .githooks\n");
    let is_obeyed = |file: &str| {
        crate::git_obeys::obeyed_by_git(&AbsPath::new(fixture.root.join(file)).unwrap()).is_some()
    };
    assert!(is_obeyed("w/shared") && is_obeyed("w/.githooks/pre-commit"));
    assert!(!is_obeyed("w/file") && !is_obeyed("shared"));
}

#[test]
fn start_files_are_guarded_in_a_home_folder_that_can_be_written() {
    let fixture = fixture(&[".bashrc", ".config/fish/config.fish", "notes"]);
    let ground = GuardScope { home: Some(fixture.root.clone()), ..fixture.ground() };
    let survey = GuardSurvey::of(&ground).unwrap();
    assert_eq!(fixture.names(survey.found.keys()), [".bashrc", ".config/fish"]);
    assert_eq!(fixture.found(), [".bashrc"]);
}

#[test]
fn what_the_settings_of_a_repository_name_is_guarded_like_them() {
    let fixture =
        fixture(&["shared.gitconfig", ".githooks/pre-commit", "tools/clean.py", "tools/other.py", "clean"]);
    fixture.repository(".");
    fixture.write(
        ".git/config",
        "[core]\n hooksPath = .githooks\n[include]\n path = ../shared.gitconfig\n\
         [filter \"x\"]\n clean = python3 tools/clean.py\n smudge = tools/smudge.sh\n",
    );
    let survey = fixture.survey();
    let found = fixture.names(survey.found.keys());
    for named in ["shared.gitconfig", ".githooks", "tools/clean.py"] {
        assert!(found.contains(&named.to_owned()), "{named} in {found:?}");
    }
    assert!(!found.contains(&"tools/other.py".to_owned()), "{found:?}");
    assert_eq!(fixture.names(&survey.absent), ["tools/smudge.sh"]);
    let report = fixture.after(|| fixture.write("tools/smudge.sh", "evil"));
    assert_eq!(fixture.set_aside(&report), ["tools/smudge.sh"]);
}

#[test]
fn the_script_of_a_hook_is_guarded_with_the_links_that_lead_to_it_and_before_it_is_there() {
    let fixture = fixture(&["real/check", "other/check", "plain.sh"]);
    std::os::unix::fs::symlink("real", fixture.root.join("by")).unwrap();
    std::os::unix::fs::symlink("../by/check", fixture.root.join("real/again")).unwrap();
    let scripts = ["real/again", "plain.sh", "by/later", "none/deep/check"]
        .map(|script| fixture.root.join(script))
        .to_vec();
    let ground = GuardScope { scripts, ..fixture.ground() };
    let survey = GuardSurvey::of(&ground).unwrap();
    assert_eq!(fixture.names(survey.found.keys()), ["by", "plain.sh", "real/again", "real/check"]);
    assert_eq!(fixture.names(&survey.absent), ["none/deep/check", "real/later"]);
    let guard = FileGuard::over(ground, fixture.store());
    let after = |work: &dyn Fn()| {
        let watched = guard.begin(LeaseKind::Attended).unwrap();
        work();
        watched.end(&[])
    };
    let link =
        |target: &str, name: &str| std::os::unix::fs::symlink(target, fixture.root.join(name)).unwrap();
    let report = after(&|| {
        fs::remove_file(fixture.root.join("by")).unwrap();
        link("other", "by");
        fixture.write("real/later", "evil");
    });
    assert_eq!(fixture.set_aside(&report), ["real/later"]);
    assert_eq!(fs::read_link(fixture.root.join("by")).unwrap(), Path::new("real"));
    let report = after(&|| {
        link("../other/check", "real/later");
        fixture.write("other/deep/check", "evil");
        link("other", "none");
    });
    assert_eq!(fixture.set_aside(&report), ["none", "real/later"]);
}

#[test]
fn hooks_among_the_files_of_the_workspace_do_not_hold_all_of_it() {
    let fixture = fixture(&["pre-commit", "README.md"]);
    fixture.repository(".");
    fixture.write(".git/config", "[core]\n hooksPath = .\n");
    let survey = fixture.survey();
    assert!(survey.found.contains_key(&fixture.root.join("pre-commit")));
    assert!(!survey.found.contains_key(&fixture.root));
    assert!(survey.absent.contains(&fixture.root.join("post-commit")));
}

#[test]
fn a_folder_that_cannot_be_read_is_guarded_whole() {
    let fixture = fixture(&["closed/.git/config"]);
    let closed = fixture.root.join("closed");
    fs::set_permissions(&closed, fs::Permissions::from_mode(0o000)).unwrap();
    let survey = fixture.survey();
    fs::set_permissions(&closed, fs::Permissions::from_mode(0o755)).unwrap();
    // Root reads everything.
    let is_root = rustix::process::geteuid().is_root();
    assert_eq!(survey.found.get(&closed), (!is_root).then_some(&GuardedPath::Unreadable));
}

#[test]
fn new_steering_files_are_set_aside_and_harmless_ones_stay() {
    let fixture = fixture(&[]);
    fixture.repository(".");
    let guard = fixture.guard();
    let report = fixture.after(|| {
        for file in [
            ".vscode/tasks.json",
            ".envrc",
            "deep/er/and/deeper/.husky/pre-commit",
            ".git/commondir",
            ".git/rebase-merge/git-rebase-todo",
            ".git/hooks-of-mine",
            "App.code-workspace",
            "src/main.rs",
            ".git/index.lock",
            ".git/MERGE_MSG",
        ] {
            fixture.write(file, "x");
        }
    });
    let expected = [
        ".envrc",
        ".git/commondir",
        ".git/hooks-of-mine",
        ".git/rebase-merge",
        ".vscode",
        "App.code-workspace",
        "deep/er/and/deeper/.husky",
    ];
    assert_eq!(fixture.set_aside(&report), expected);
    for kept in ["src/main.rs", ".git/index.lock", ".git/MERGE_MSG", ".git/config"] {
        assert!(fixture.root.join(kept).exists(), "{kept}");
    }
    for gone in expected {
        assert!(!fixture.root.join(gone).exists(), "{gone}");
    }
    assert_eq!(
        (guard.undecided().len(), guard.undecided().len()),
        (expected.len(), 0),
        "they are asked about once"
    );
}

#[test]
fn a_new_repository_stays_where_it_names_no_program() {
    let fixture = fixture(&[]);
    let report = fixture.after(|| {
        fixture.repository("plain");
        fixture.repository("hook");
        fixture.write("hook/.git/hooks/post-checkout", "#!/bin/sh");
        fixture.repository("settings");
        fixture.write("settings/.git/config", "[core]\n fsmonitor = touch x\n");
        fixture.write("bare/HEAD", "");
        fixture.write("bare/objects/x", "");
        fixture.write("bare/refs/x", "");
        fixture.write("bare/config", "[core]\n pager = x\n");
        fixture.write("pointer/.git", "gitdir: /usr\n");
    });
    let expected = ["bare/config", "hook/.git/hooks", "pointer/.git", "settings/.git/config"];
    assert_eq!(fixture.set_aside(&report), expected);
    assert!(fixture.root.join("plain/.git/config").exists());
}

#[test]
fn what_may_stay_is_judged_again_as_long_as_its_command_can_change_it() {
    let fixture = fixture(&[]);
    let guard = fixture.guard();
    let (first, second) =
        (guard.begin(LeaseKind::Attended).unwrap(), guard.begin(LeaseKind::Attended).unwrap());
    fixture.repository("new");
    assert_eq!(first.end(&[]).set_aside, []);
    fixture.write("new/.git/config", "[core]\n fsmonitor = touch x\n");
    assert_eq!(fixture.set_aside(&second.end(&[])), ["new/.git/config"]);
}

#[test]
fn what_the_helper_puts_back_stays_and_what_a_command_puts_there_does_not() {
    for is_restored in [true, false] {
        let fixture = fixture(&[]);
        let lay_out = || {
            fixture.repository("x");
            fixture.write("x/.git/config", "[core]\n pager = mine\n");
        };
        lay_out();
        let guard = fixture.guard();
        let watched = guard.begin(LeaseKind::Attended).unwrap();
        let (git, moved) = (fixture.root.join("x/.git"), fixture.root.join("x/moved"));
        fs::rename(&git, &moved).unwrap();
        symlink("/usr", &git).unwrap();
        // The watch notices that before the command ends, and once more when the files are back.
        let settle = || guard.settle(&mut guard.state(), false).unwrap();
        settle();
        let _ = fs::remove_file(&git);
        lay_out();
        settle();
        let path = git.join("config");
        assert!(path.exists());
        let restored = is_restored.then(|| RestoredPath { path: path.clone(), set_aside: None });
        let report = watched.end(restored.as_slice());
        assert_eq!(path.exists(), is_restored, "{report:?}");
    }
}

#[test]
fn what_the_user_makes_while_no_command_runs_is_left_alone() {
    let fixture = fixture(&[]);
    let guard = fixture.guard();
    assert_eq!(guard.begin(LeaseKind::Attended).unwrap().end(&[]), GuardReport::default());
    fixture.write(".vscode/tasks.json", "mine");
    let watched = guard.begin(LeaseKind::Attended).unwrap();
    assert!(watched.survey.found.contains_key(&fixture.root.join(".vscode")));
    assert_eq!(watched.end(&[]), GuardReport::default());
    assert_eq!(fixture.read(".vscode/tasks.json"), "mine");
}

#[test]
fn entries_made_while_only_services_run_stay() {
    let fixture = fixture(&[]);
    let guard = fixture.guard();
    let service = guard.begin(LeaseKind::Exempt).unwrap();
    fixture.write(".vscode/tasks.json", "mine");
    assert_eq!(guard.begin(LeaseKind::Attended).unwrap().end(&[]), GuardReport::default());
    assert_eq!(service.end(&[]), GuardReport::default());
    assert_eq!(fixture.read(".vscode/tasks.json"), "mine");
}

#[test]
fn a_walk_ahead_of_commands_sets_nothing_aside() {
    let fixture = fixture(&[]);
    let guard = fixture.guard();
    guard.survey().unwrap();
    fixture.write(".envrc", "mine");
    guard.survey().unwrap();
    assert_eq!(guard.begin(LeaseKind::Attended).unwrap().end(&[]), GuardReport::default());
    assert_eq!(fixture.read(".envrc"), "mine");
}

#[test]
fn links_in_the_data_of_git_are_set_aside() {
    let fixture = fixture(&["victim"]);
    fixture.repository(".");
    let report = fixture.after(|| {
        let link = |name: &str| {
            let path = fixture.root.join(".git").join(name);
            let _ = fs::remove_file(&path);
            symlink(fixture.root.join("victim"), path).unwrap();
        };
        ["logs/HEAD", "COMMIT_EDITMSG", "index"].iter().for_each(|name| link(name));
        fs::create_dir_all(fixture.root.join(".git/logs/refs/heads")).unwrap();
        link("logs/refs/heads/main");
    });
    let expected = ["COMMIT_EDITMSG", "index", "logs/HEAD", "logs/refs/heads/main"];
    assert_eq!(fixture.set_aside(&report), expected.map(|name| format!(".git/{name}")));
}

#[test]
fn a_guarded_link_leads_again_where_it_led() {
    let fixture = fixture(&["x"]);
    let link = fixture.root.join(".vscode");
    symlink("x", &link).unwrap();
    assert_eq!(fixture.survey().found[&link], GuardedPath::Link("x".into()));
    let report = fixture.after(|| {
        fs::remove_file(&link).unwrap();
        fixture.write(".vscode/tasks.json", "evil");
    });
    assert_eq!(fixture.names(report.restored.iter().map(|restored| &restored.path)), [".vscode"]);
    assert_eq!(fs::read_link(&link).unwrap(), Path::new("x"));
}

#[test]
fn a_guarded_file_with_another_name_is_put_back() {
    let fixture = fixture(&[".mcp.json"]);
    fs::hard_link(fixture.root.join(".mcp.json"), fixture.root.join("other")).unwrap();
    let report = fixture.after(|| fixture.write("other", "evil"));
    assert_eq!(fixture.names(report.restored.iter().map(|restored| &restored.path)), [".mcp.json"]);
    assert_eq!(fixture.read(".mcp.json"), ".mcp.json");
}

#[test]
fn changed_files_are_put_back_with_their_mode_and_what_was_there_goes_aside() {
    let fixture = fixture(&[".git/config", ".git/hooks/pre-commit", ".vscode/tasks.json"]);
    let hook = fixture.root.join(".git/hooks/pre-commit");
    fs::set_permissions(&hook, fs::Permissions::from_mode(0o755)).unwrap();
    symlink("elsewhere", fixture.root.join(".envrc")).unwrap();
    let kept = GuardSnapshot::contents(&fixture.survey(), &[]).unwrap();

    fixture.write(".git/config", "evil");
    fs::set_permissions(&hook, fs::Permissions::from_mode(0o644)).unwrap();
    fixture.write(".git/hooks/post-commit", "evil");
    fs::remove_dir_all(fixture.root.join(".vscode")).unwrap();
    fs::remove_file(fixture.root.join(".envrc")).unwrap();
    fixture.write(".envrc", "evil");

    let report = kept.restore(&fixture.store());
    assert_eq!(
        fixture.names(report.restored.iter().map(|restored| &restored.path)),
        [
            ".envrc",
            ".git/config",
            ".git/hooks/pre-commit",
            ".vscode",
            ".vscode/tasks.json",
            ".git/hooks/post-commit"
        ]
    );
    assert!(report.changed.is_empty(), "{report:?}");
    assert_eq!(fixture.read(".git/config"), ".git/config");
    assert_eq!(fixture.read(".vscode/tasks.json"), ".vscode/tasks.json");
    assert_eq!(fs::metadata(&hook).unwrap().permissions().mode() & 0o777, 0o755);
    assert_eq!(fs::read_link(fixture.root.join(".envrc")).unwrap(), Path::new("elsewhere"));
    assert!(!fixture.root.join(".git/hooks/post-commit").exists());
    let aside = report.restored.iter().filter_map(|restored| restored.set_aside.as_ref());
    let aside: Vec<_> = aside.map(|path| fs::read_to_string(path).unwrap()).collect();
    assert_eq!(aside, ["evil", "evil", ".git/hooks/pre-commit", "evil"].map(str::to_owned));
    assert_eq!(kept.restore(&fixture.store()).restored, []);
}

#[test]
fn nothing_is_put_back_through_a_link_that_was_put_above() {
    let fixture = fixture(&[".git/config", "elsewhere/other"]);
    let kept = GuardSnapshot::contents(&fixture.survey(), &[]).unwrap();
    fs::rename(fixture.root.join(".git"), fixture.root.join("moved")).unwrap();
    symlink("elsewhere", fixture.root.join(".git")).unwrap();
    let report = kept.restore(&fixture.store());
    assert_eq!(fixture.names(report.restored.iter().map(|restored| &restored.path)), [".git/config"]);
    assert_eq!(fixture.read(".git/config"), ".git/config");
    assert!(!fixture.root.join("elsewhere/config").exists());
}

#[test]
fn without_room_for_what_would_be_put_back_there_is_no_command() {
    let fixture = fixture(&[]);
    fixture.write(".git/hooks/large", &"x".repeat(5 << 20));
    assert!(GuardSnapshot::contents(&fixture.survey(), &[]).unwrap_err().to_string().contains("too large"));
}

#[test]
fn an_index_finds_what_a_walk_finds_whatever_has_happened() {
    let fixture = fixture(&["src/a/b/x", "lib/.vscode/x"]);
    fixture.repository(".");
    fixture.repository("lib/deep/nested");
    let mut index = GuardIndex::new(fixture.ground());
    let steps: [&dyn Fn(); 12] = [
        &|| {},
        &|| fixture.repository("new/er"),
        &|| fs::rename(fixture.root.join("new"), fixture.root.join("moved")).unwrap(),
        &|| fixture.write("moved/er/.git/hooks/pre-commit", "x"),
        &|| fs::rename(fixture.root.join("lib"), fixture.base.join("away")).unwrap(),
        &|| fixture.write("lib/.envrc", "again"),
        &|| fs::rename(fixture.base.join("away"), fixture.root.join("src/back")).unwrap(),
        &|| fs::remove_dir_all(fixture.root.join("src/back/deep")).unwrap(),
        &|| symlink("refs", fixture.root.join(".git/shallow")).unwrap(),
        &|| {
            ["HEAD", "objects/x", "refs/x", "config"]
                .iter()
                .for_each(|name| fixture.write(&format!("src/a/{name}"), "x"))
        },
        &|| fs::remove_file(fixture.root.join("src/a/HEAD")).unwrap(),
        &|| fixture.write(".git/config", "[core]\n hooksPath = src/hooks\n"),
    ];
    for (number, step) in steps.into_iter().enumerate() {
        step();
        let kept = index.refresh().unwrap().clone();
        assert_eq!(kept, fixture.survey(), "after step {number}");
    }
}

#[test]
fn another_folder_in_the_place_of_a_root_is_walked() {
    let fixture = fixture(&[".vscode/x"]);
    let mut index = GuardIndex::new(fixture.ground());
    index.refresh().unwrap();
    fs::rename(&fixture.root, fixture.base.join("old")).unwrap();
    fs::create_dir(&fixture.root).unwrap();
    fixture.write("sub/.envrc", "x");
    assert_eq!(fixture.names(index.refresh().unwrap().found.keys()), ["sub/.envrc"]);
}
