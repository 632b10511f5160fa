//! Tests of finding and putting back guarded files.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use super::{GuardSnapshot, GuardSurvey, GuardedPath};

struct Fixture {
    _folder: TempDir,
    root: PathBuf,
    aside: PathBuf,
}

fn fixture(files: &[&str]) -> Fixture {
    let folder = tempfile::tempdir().unwrap();
    let base = folder.path().canonicalize().unwrap();
    let root = base.join("root");
    fs::create_dir(&root).unwrap();
    for file in files {
        let path = root.join(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, *file).unwrap();
    }
    Fixture { _folder: folder, root, aside: base.join("aside") }
}

impl Fixture {
    fn survey(&self) -> GuardSurvey {
        GuardSurvey::of(std::slice::from_ref(&self.root), None)
    }

    fn names(&self, paths: impl IntoIterator<Item = impl AsRef<Path>>) -> Vec<String> {
        let name = |path: &Path| path.strip_prefix(&self.root).unwrap().to_str().unwrap().to_owned();
        paths.into_iter().map(|path| name(path.as_ref())).collect()
    }

    fn found(&self) -> Vec<String> {
        self.names(self.survey().found.keys())
    }

    fn read(&self, file: &str) -> String {
        fs::read_to_string(self.root.join(file)).unwrap()
    }
}

#[test]
fn repositories_editors_and_agents_are_guarded_three_levels_deep() {
    let fixture = fixture(&[
        ".git/hooks/a.sample",
        ".git/config",
        ".git/HEAD",
        ".mcp.json",
        "src/main.rs",
        "a/.vscode/tasks.json",
        "a/b/.git/config",
        "a/b/c/.envrc",
        "node_modules/x/.vscode/tasks.json",
        ".git/modules/lib/x/HEAD",
        ".git/modules/lib/x/config",
        ".git/modules/lib/x/hooks/h",
    ]);
    assert_eq!(
        fixture.found(),
        [
            ".git/config",
            ".git/hooks",
            ".git/modules/lib/x/config",
            ".git/modules/lib/x/hooks",
            ".mcp.json",
            "a/.vscode",
            "a/b/.git/config",
        ]
    );
}

#[test]
fn the_folder_a_git_file_points_to_is_guarded_where_it_can_be_written() {
    let fixture = fixture(&["main/.git/worktrees/w/HEAD", "main/.git/config", "main/.git/hooks/h", "w/a"]);
    fs::write(fixture.root.join("w/.git"), "gitdir: ../main/.git/worktrees/w\n").unwrap();
    fs::write(fixture.root.join("main/.git/worktrees/w/commondir"), "../..\n").unwrap();
    let only_worktree = GuardSurvey::of(&[fixture.root.join("w")], None);
    assert_eq!(fixture.names(only_worktree.found.keys()), ["w/.git"]);
    let found = fixture.found();
    for guarded in ["main/.git/config", "main/.git/hooks", "w/.git", "main/.git/worktrees/w/commondir"] {
        assert!(found.iter().any(|found| found == guarded), "{guarded} in {found:?}");
    }
}

#[test]
fn a_folder_that_is_a_bare_repository_is_guarded_as_one() {
    let fixture = fixture(&["HEAD", "objects/a", "refs/a", "config"]);
    assert_eq!(fixture.found(), ["config"]);
}

#[test]
fn start_files_are_guarded_in_a_home_folder_that_can_be_written() {
    let fixture = fixture(&[".bashrc", ".config/fish/config.fish", "notes"]);
    let survey = GuardSurvey::of(std::slice::from_ref(&fixture.root), Some(&fixture.root));
    assert_eq!(fixture.names(survey.found.keys()), [".bashrc", ".config/fish"]);
    assert!(fixture.found().is_empty());
}

#[test]
fn changed_files_are_put_back_with_their_mode_and_what_was_there_goes_aside() {
    let fixture = fixture(&[".git/config", ".git/hooks/pre-commit", ".vscode/tasks.json"]);
    let hook = fixture.root.join(".git/hooks/pre-commit");
    fs::set_permissions(&hook, fs::Permissions::from_mode(0o755)).unwrap();
    symlink("elsewhere", fixture.root.join(".envrc")).unwrap();
    let kept = GuardSnapshot::contents(fixture.survey());

    fs::write(fixture.root.join(".git/config"), "evil").unwrap();
    fs::set_permissions(&hook, fs::Permissions::from_mode(0o644)).unwrap();
    fs::write(fixture.root.join(".git/hooks/post-commit"), "evil").unwrap();
    fs::remove_dir_all(fixture.root.join(".vscode")).unwrap();
    fs::remove_file(fixture.root.join(".envrc")).unwrap();
    fs::write(fixture.root.join(".envrc"), "evil").unwrap();
    fs::write(fixture.root.join(".mcp.json"), "new").unwrap();

    let report = kept.restore(&fixture.survey(), &fixture.aside);
    assert_eq!(fixture.names(&report.created), [".mcp.json"]);
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
    assert_eq!(kept.restore(&fixture.survey(), &fixture.aside).restored, []);
}

#[test]
fn links_are_known_by_where_they_point() {
    let fixture = fixture(&["x"]);
    symlink("x", fixture.root.join(".vscode")).unwrap();
    let survey = fixture.survey();
    assert_eq!(survey.found[&fixture.root.join(".vscode")], GuardedPath::Link("x".into()));
    let kept = GuardSnapshot::links(survey);
    fs::remove_file(fixture.root.join(".vscode")).unwrap();
    assert_eq!(kept.restore(&fixture.survey(), &fixture.aside).restored.len(), 1);
    assert_eq!(fs::read_link(fixture.root.join(".vscode")).unwrap(), Path::new("x"));
}

#[test]
fn nothing_is_put_back_through_a_link_that_was_put_above() {
    let fixture = fixture(&[".git/config", "elsewhere/other"]);
    let kept = GuardSnapshot::contents(fixture.survey());
    fs::rename(fixture.root.join(".git"), fixture.root.join("moved")).unwrap();
    symlink("elsewhere", fixture.root.join(".git")).unwrap();
    let report = kept.restore(&fixture.survey(), &fixture.aside);
    assert_eq!(fixture.names(report.restored.iter().map(|restored| &restored.path)), [".git/config"]);
    assert_eq!(fixture.read(".git/config"), ".git/config");
    assert!(!fixture.root.join("elsewhere/config").exists());
}
