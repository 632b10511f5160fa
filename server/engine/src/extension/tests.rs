//! Which skills and commands are found, what they are called, and which of two of a name wins.

use super::*;

struct Folders {
    _folder: tempfile::TempDir,
    project: AbsPath,
    home: AbsPath,
}

fn folders(files: &[(&str, &str)]) -> Folders {
    let folder = tempfile::tempdir().unwrap();
    let root = AbsPath::new(folder.path().canonicalize().unwrap()).unwrap();
    for (path, text) in files {
        let path = root.join(path);
        fs::create_dir_all(path.parent().unwrap().as_path()).unwrap();
        fs::write(path.as_path(), text).unwrap();
    }
    for folder in ["project", "home"] {
        fs::create_dir_all(root.join(folder).as_path()).unwrap();
    }
    Folders { project: root.join("project"), home: root.join("home"), _folder: folder }
}

fn load(folders: &Folders) -> Catalog {
    Catalog::load(std::slice::from_ref(&folders.project), Some(&folders.home))
}

#[test]
fn skills_and_commands_are_found_in_all_dialects_and_named_as_these_name_them() {
    let folders = folders(&[
        (
            "project/.claude/skills/release/SKILL.md",
            "---\nname: release\ndescription: |\n  Makes a release.\n  Slowly.\nwhen_to_use: When asked.\nextra: {a: 1}\n---\nDo it.",
        ),
        ("project/.claude/skills/Bad_Name/SKILL.md", "x"),
        ("project/.claude/skills/broken/SKILL.md", "---\ndescription: [\n---\nx"),
        (
            "project/.kode/commands/git/commit.md",
            "---\nargument-hint: [message]\n---\n# Title\n\nCommits\nall.\n\nMore.",
        ),
        ("project/.blade/commands/team/review.md", "Reviews."),
        ("home/.claude/commands/secret.md", "---\ndisable-model-invocation: true\n---\nSecret."),
    ]);
    let catalog = load(&folders);
    let skills = catalog.listing(ExtensionKind::Skill).unwrap();
    assert_eq!(skills, "- release: Makes a release. Slowly. When asked.\n");
    let commands = catalog.listing(ExtensionKind::Command).unwrap();
    assert_eq!(commands, "- git:commit [message]: Commits all.\n- review: Reviews.\n");
    assert!(!catalog.find(ExtensionKind::Skill, "secret").unwrap().model_may_call);
    assert_eq!(catalog.nearest("reviews")[0], "review");
    let problems: Vec<_> = catalog.problems.iter().map(|(path, _)| path.to_str().unwrap()).collect();
    assert!(
        problems.len() == 2 && problems[0].contains("Bad_Name") && problems[1].contains("broken"),
        "{problems:?}"
    );
}

#[test]
fn a_skill_of_the_user_wins_and_a_command_of_the_project() {
    let folders = folders(&[
        ("project/.claude/skills/one/SKILL.md", "Project."),
        ("home/.claude/skills/one/SKILL.md", "User."),
        ("project/.claude/commands/two.md", "Project."),
        ("home/.claude/commands/two.md", "User."),
        ("project/.kode-ls/commands/two.md", "Ours."),
    ]);
    let catalog = load(&folders);
    let text =
        |name: &str| catalog.find(ExtensionKind::Skill, name).unwrap().text("", &folders.project).unwrap();
    assert_eq!((text("one"), text("two")), ("User.".to_owned(), "Ours.".to_owned()));
}

#[test]
fn a_text_is_filled_by_the_rules_of_its_dialect_and_runs_nothing() {
    let folders = folders(&[
        (
            "project/.claude/skills/zero/SKILL.md",
            "---\narguments: what\n---\n$0 $1 $what ${CLAUDE_SKILL_DIR}",
        ),
        ("project/.claude/commands/one.md", "$1 $2"),
        ("project/.claude/commands/shown.md", "$0 $1"),
        ("project/.claude/commands/forced.md", "---\nargument-base: 0\n---\n$1"),
        ("project/.claude/commands/shell.md", "State: !`git status`"),
    ]);
    let catalog = load(&folders);
    let text = |name: &str| catalog.find(ExtensionKind::Command, name).unwrap().text("a b", &folders.project);
    let zero = format!("a b a {}/.claude/skills/zero", folders.project);
    for (name, expected) in [("zero", zero.as_str()), ("one", "a b"), ("shown", "a b"), ("forced", "b")] {
        assert_eq!(text(name).unwrap(), expected, "{name}");
    }
    assert!(text("shell").unwrap_err().contains("git status"));
}

#[test]
fn a_link_out_of_the_project_and_an_enormous_file_are_left_out() {
    let folders = folders(&[
        ("outside/secret.md", "Secret."),
        ("project/.claude/commands/large.md", &"x".repeat(300 * 1024)),
    ]);
    let link = folders.project.join(".claude/commands/link.md");
    let outside = folders.project.parent().unwrap().join("outside/secret.md");
    std::os::unix::fs::symlink(outside.as_path(), link.as_path()).unwrap();
    let catalog = load(&folders);
    assert!(catalog.is_empty(), "{catalog:?}");
    assert_eq!(catalog.problems.len(), 2);
}

#[test]
fn a_list_that_grows_too_long_names_the_rest() {
    let files: Vec<(String, String)> = (0..30)
        .map(|number| (format!("project/.claude/skills/s{number:02}/SKILL.md"), "word ".repeat(400)))
        .collect();
    let files: Vec<(&str, &str)> = files.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect();
    let listing = load(&folders(&files)).listing(ExtensionKind::Skill).unwrap();
    assert!(listing.contains("s29") && listing.chars().count() < 17_000, "{}", listing.len());
    assert!(listing.lines().all(|line| line.chars().count() < 1_600));
}
