//! Worktrees of a real repository.

use std::fs;

use tempfile::TempDir;

use super::*;
use kode_base::paths::real_path;

struct Rig {
    _folder: TempDir,
    top: AbsPath,
    folder: AbsPath,
    shell: Shell,
}

impl Rig {
    /// A repository with one commit, in a folder whose name has to be quoted.
    async fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let root = AbsPath::new(real_path(folder.path()).unwrap()).unwrap();
        let (top, worktrees) = (root.join("it's"), root.join("worktrees"));
        fs::create_dir(top.as_path()).unwrap();
        fs::write(top.join("a.txt").as_path(), "a\n").unwrap();
        fs::write(top.join(".gitignore").as_path(), "built\n").unwrap();
        let rig = Self { _folder: folder, shell: Shell::new(top.clone()), top, folder: worktrees };
        rig.git(&rig.top, "init --quiet . && git add . && git commit --quiet -m begin").await;
        rig
    }

    async fn git(&self, directory: &AbsPath, line: &str) -> String {
        let names =
            "export GIT_AUTHOR_NAME=t GIT_AUTHOR_EMAIL=t@e GIT_COMMITTER_NAME=t GIT_COMMITTER_EMAIL=t@e";
        let runner = GitRunner { shell: &self.shell, sandbox: None, limit: LIMIT };
        let line = format!("{names}; git {line}");
        runner.run(directory, &line, &CancellationToken::new()).await.unwrap()
    }

    async fn make(&self, cancel: &CancellationToken) -> Result<Worktree, WorktreeError> {
        let making = WorktreeSpec {
            shell: &self.shell,
            sandbox: None,
            may_run_foreign: false,
            folder: &self.folder,
            cwd: &self.top,
        };
        Worktree::make(making, AgentId::generate().as_str(), cancel).await
    }

    async fn made(&self) -> Worktree {
        self.make(&CancellationToken::new()).await.unwrap()
    }

    async fn finish(&self, worktree: &Worktree) -> WorktreeEnd {
        worktree.finish(&self.shell, None).await
    }

    async fn branches(&self) -> String {
        self.git(&self.top, "branch --list 'kode-ls/*' --format='%(refname:short)'").await
    }
}

#[tokio::test]
async fn places_of_the_repository_are_in_the_worktree_and_others_are_not() {
    let rig = Rig::new().await;
    let worktree = rig.made().await;
    assert_eq!(worktree.place_of(&rig.top.join("src/a.rs")), Some(worktree.path.join("src/a.rs")));
    assert_eq!(worktree.place_of(&rig.top), Some(worktree.path.clone()));
    assert_eq!(worktree.place_of(&rig.folder), None);
    assert!(worktree.is_there().await && worktree.path.join("a.txt").as_path().exists());
}

#[tokio::test]
async fn what_git_ignores_keeps_no_worktree_and_anything_else_does() {
    let rig = Rig::new().await;
    let worktree = rig.made().await;
    fs::write(worktree.path.join("built").as_path(), "x").unwrap();
    assert_eq!(rig.finish(&worktree).await, WorktreeEnd::Removed);
    assert!(!worktree.is_there().await && rig.branches().await.is_empty());

    let worktree = rig.made().await;
    fs::write(worktree.path.join("made").as_path(), "x").unwrap();
    let branch = worktree.branch.clone();
    assert_eq!(
        rig.finish(&worktree).await,
        WorktreeEnd::Kept { branch, commits: 0, files: 1, size: String::new() }
    );
    assert!(worktree.path.join("made").as_path().exists());
}

#[tokio::test]
async fn commits_on_its_branch_are_kept_also_when_another_commit_is_checked_out() {
    let rig = Rig::new().await;
    let worktree = rig.made().await;
    rig.git(&worktree.path, "commit --quiet --allow-empty -m more").await;
    rig.git(&worktree.path, &format!("checkout --quiet --detach {}", worktree.base)).await;
    let left = rig.finish(&worktree).await;
    assert_eq!(left, WorktreeEnd::Kept { branch: "HEAD".into(), commits: 1, files: 0, size: String::new() });
    assert_eq!(rig.branches().await.trim(), worktree.branch);
}

#[tokio::test]
async fn a_repository_that_names_programs_gets_no_worktree_where_nothing_holds_them() {
    let rig = Rig::new().await;
    let canary = rig.folder.join("../canary");
    rig.git(&rig.top, &format!("config filter.trap.smudge 'touch {canary}; cat'")).await;
    let error = rig.make(&CancellationToken::new()).await.unwrap_err();
    assert_eq!(error, WorktreeError::NotPlain { folder: rig.top.clone() });
    assert!(!canary.as_path().exists() && !rig.folder.as_path().exists());
}

#[tokio::test]
async fn one_whose_making_is_cancelled_leaves_nothing() {
    let rig = Rig::new().await;
    let cancel = CancellationToken::new();
    cancel.cancel();
    assert!(rig.make(&cancel).await.is_err());
    assert!(rig.branches().await.is_empty());
    assert_eq!(rig.git(&rig.top, "worktree list").await.lines().count(), 1);
}

#[tokio::test]
async fn a_worktree_that_cannot_be_inspected_is_left_and_notified_of() {
    let rig = Rig::new().await;
    let worktree = rig.made().await;
    fs::write(worktree.path.join(".git").as_path(), "gitdir: /nowhere\n").unwrap();
    let left = rig.finish(&worktree).await;
    assert!(matches!(left, WorktreeEnd::Unknown { .. }), "{left:?}");
    assert!(worktree.path.join("a.txt").as_path().exists());
    let (text, data) = worktree.report(&left);
    assert!(text.contains(&worktree.path.to_string()) && data["kept"] == true, "{text} {data}");
}
