//! Which skills and commands are found, what they are called, and which of two of a name wins.

use std::fs;

use super::template::TemplateSegment;
use super::*;
use kode_base::paths::real_path;

struct Folders {
    _folder: tempfile::TempDir,
    project: AbsPath,
    home: AbsPath,
}

fn folders(files: &[(&str, &str)]) -> Folders {
    let folder = tempfile::tempdir().unwrap();
    let root = AbsPath::new(real_path(folder.path()).unwrap()).unwrap();
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
    let text = |name: &str| filled(catalog.find(ExtensionKind::Skill, name).unwrap(), "");
    assert_eq!((text("one"), text("two")), ("User.".to_owned(), "Ours.".to_owned()));
    let shadowed: Vec<_> =
        catalog.shadowed.iter().map(|one| (one.extension.scope, one.by.to_string())).collect();
    let (skill, command) = ("home/.claude/skills/one/SKILL.md", "project/.kode-ls/commands/two.md");
    let root = folders.home.parent().unwrap();
    let by = |path: &str| root.join(path).to_string();
    assert_eq!(
        shadowed,
        [
            (ExtensionScope::Project, by(skill)),
            (ExtensionScope::Project, by(command)),
            (ExtensionScope::User, by(command))
        ]
    );
}

fn filled(extension: &Extension, arguments: &str) -> String {
    let (extension, template) = extension.read().unwrap();
    let folder = extension.folder.to_string();
    let variables = |name: &str| (name == "CLAUDE_SKILL_DIR").then(|| folder.clone());
    let segments = template.fill(&extension, arguments, &variables);
    let text = |segment| match segment {
        TemplateSegment::Text(text) => text,
        TemplateSegment::Command(command) => format!("<{command}>"),
    };
    segments.into_iter().map(text).collect()
}

#[test]
fn a_text_is_filled_by_the_rules_of_its_dialect_and_arguments_are_no_commands() {
    let folders = folders(&[
        (
            "project/.claude/skills/zero/SKILL.md",
            "---\narguments: what\n---\n$0 $1 $what ${CLAUDE_SKILL_DIR}",
        ),
        ("project/.claude/commands/one.md", "$1 $2"),
        ("project/.claude/commands/shown.md", "$0 $1"),
        ("project/.claude/commands/forced.md", "---\nargument-base: 0\n---\n$1"),
        ("project/.claude/commands/shell.md", "State: !`git log $1`"),
    ]);
    let catalog = load(&folders);
    let text =
        |name: &str, arguments: &str| filled(catalog.find(ExtensionKind::Command, name).unwrap(), arguments);
    let zero = format!("a b a {}/.claude/skills/zero", folders.project);
    for (name, expected) in [
        ("zero", zero.as_str()),
        ("one", "a b"),
        ("shown", "a b"),
        ("forced", "b"),
        ("shell", "State: <git log a>"),
    ] {
        assert_eq!(text(name, "a b"), expected, "{name}");
    }
    assert_eq!(text("one", "'!`rm -rf .`'"), "!`rm -rf .` ");
}

#[test]
fn a_head_says_all_that_counts_in_the_turn() {
    let folders = folders(&[
        (
            "project/.claude/commands/all.md",
            "---\nallowed-tools: Bash(git log:*), Read Bash(echo a b)\ndisallowed-tools: [WebFetch]\nmodel: opus\n\
             effort: max\ncontext: fork\nuser-invocable: true\nargument-hint: [issue] [level]\nversion: 1\n\
             maxThinkingTokens: 4000\nhooks: {Stop: []}\n---\nRun !`./check.sh` and !`true`.",
        ),
        ("project/check.sh", "one"),
        (
            "project/.claude/skills/mine/SKILL.md",
            "---\nuser-invocable: false\ncontext: inherit\nbackground: true\n---\nMine.",
        ),
    ]);
    let catalog = load(&folders);
    let all = catalog.typed("all").unwrap();
    assert_eq!(all.allowed_tools, ["Bash(git log:*)", "Read", "Bash(echo a b)"]);
    assert_eq!(
        (all.disallowed_tools.as_slice(), all.model.as_deref()),
        (&["WebFetch".to_owned()][..], Some("opus"))
    );
    assert_eq!((all.effort, all.agent.as_deref()), (Some(Effort::High), Some("general-purpose")));
    assert_eq!((all.argument_hint.as_str(), all.notes.len()), ("[issue] [level]", 0));
    assert!(all.hooks.is_some());
    assert_eq!(catalog.typed("mine"), None, "it is for the model alone");
    let mine = catalog.find(ExtensionKind::Skill, "mine").unwrap();
    assert!(!mine.background && mine.notes[0].contains("only beside `context: fork`"), "{:?}", mine.notes);
    assert!(catalog.listing(ExtensionKind::Skill).unwrap().contains("mine"));
    let keys = |extension: &Extension| {
        extension.trust_requests.iter().map(|trust_request| trust_request.key.clone()).collect::<Vec<_>>()
    };
    assert_eq!(keys(all), ["shell", "allowedTools", "model"]);
    assert_eq!(all.trust_requests[2].text, "effort: high", "`opus` is what the user has given a model to");
    // Another script is another wish.
    let before = all.read().unwrap().0.trust_requests;
    fs::write(folders.project.join("check.sh").as_path(), "two").unwrap();
    let after = all.read().unwrap().0.trust_requests;
    assert!(
        before[0] != after[0] && before[0].text.starts_with("./check.sh\ntrue\ncheck.sh sha256:"),
        "{after:?}"
    );
    assert_eq!(before[1], after[1]);
}

#[test]
fn folders_above_and_below_count_and_some_skills_wait_for_their_files() {
    let folders = folders(&[
        ("project/.git/HEAD", "x"),
        ("project/.claude/skills/top/SKILL.md", "Top."),
        ("project/app/.claude/skills/app/SKILL.md", "App."),
        ("project/app/ui/.claude/skills/ui/SKILL.md", "Ui."),
        ("project/app/.claude/skills/rust/SKILL.md", "---\npaths: \"*.rs, src/**/*.{toml,md}\"\n---\nRust."),
    ]);
    let roots = [folders.project.join("app")];
    let listed = |catalog: &Catalog| {
        let listing = catalog.listing(ExtensionKind::Skill).unwrap();
        listing.lines().map(|line| line[2..].split(':').next().unwrap().to_owned()).collect::<Vec<_>>()
    };
    let catalog = Catalog::load(&roots, Some(&folders.home));
    assert_eq!(listed(&catalog), ["app", "top"]);
    assert_eq!(catalog.find(ExtensionKind::Skill, "top").unwrap().scope, ExtensionScope::Above);
    assert!(catalog.typed("rust").is_some(), "the user may always call it");
    let touched = catalog.clone().having_touched(&roots, &[roots[0].join("ui/a.ts")]);
    assert_eq!(listed(&touched), ["app", "top", "ui"]);
    assert_eq!(touched.find(ExtensionKind::Skill, "ui").unwrap().scope, ExtensionScope::Below);
    for (file, is_meant) in [("deep/b.rs", true), ("src/a/b.md", true), ("src/b.txt", false)] {
        let touched = catalog.clone().having_touched(&roots, &[roots[0].join(file)]);
        assert_eq!(listed(&touched).contains(&"rust".to_owned()), is_meant, "{file}");
    }
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

#[test]
fn the_users_files_lie_where_the_environment_says_and_may_be_links() {
    let folders = folders(&[
        ("project/.claude/skills/ours/SKILL.md", "Ours."),
        ("conf/skills/mine/SKILL.md", "Mine."),
        ("conf/commands/do.md", "Do."),
        ("home/.claude/skills/unseen/SKILL.md", "Unseen."),
        ("elsewhere/linked.md", "Linked."),
    ]);
    let root = folders.project.parent().unwrap();
    let link = root.join("conf/commands/linked.md");
    std::os::unix::fs::symlink(root.join("elsewhere/linked.md").as_path(), link.as_path()).unwrap();
    let places = places::ExtensionFolders {
        roots: vec![folders.project.clone()],
        home: Some(folders.home.clone()),
        user: vec![root.join("conf")],
        managed: None,
        plugins: Vec::new(),
    };
    let catalog = Catalog::found_in(&places);
    let names: Vec<_> = catalog.all().map(|one| (one.name.as_str(), one.scope)).collect();
    let expected = [
        ("mine", ExtensionScope::User),
        ("ours", ExtensionScope::Project),
        ("do", ExtensionScope::User),
        ("linked", ExtensionScope::User),
    ];
    assert_eq!(names, expected, "{:?}", catalog.problems);
    let mine = catalog.typed("mine").unwrap();
    assert!(mine.read().is_ok() && mine.trust_requests.is_empty());

    // A folder of the workspace that is the user's is not the project's as well.
    let places = places::ExtensionFolders { user: vec![folders.project.join(".claude")], ..places };
    let catalog = Catalog::found_in(&places);
    assert_eq!(catalog.all().map(|one| one.scope).collect::<Vec<_>>(), [ExtensionScope::User]);
}

#[test]
fn a_file_that_has_become_a_pipe_is_reported_and_not_waited_for() {
    let folders = folders(&[("project/.claude/commands/do.md", "Do.")]);
    let known = load(&folders).typed("do").unwrap().clone();
    fs::remove_file(known.path.as_path()).unwrap();
    let made = std::process::Command::new("mkfifo").arg(known.path.as_path()).status().unwrap();
    assert!(made.success());
    let reason = known.read().unwrap_err();
    assert!(reason.contains("no regular file"), "{reason}");
}

#[test]
fn skills_lie_in_subfolders_and_the_upper_of_a_name_wins() {
    let folders = folders(&[
        ("project/.claude/skills/docs/SKILL.md", "---\ndescription: upper\n---\nx"),
        ("project/.claude/skills/docs/inner/SKILL.md", "Inside of a skill."),
        ("project/.claude/skills/a/docs/SKILL.md", "---\ndescription: lower\n---\nx"),
        ("project/.claude/skills/a/b/c/d/deep/SKILL.md", "---\ndescription: deep\n---\nx"),
        ("project/.claude/skills/a/b/c/d/e/deeper/SKILL.md", "x"),
        ("project/.claude/skills/node_modules/pack/SKILL.md", "x"),
        ("project/.claude/skills/.git/hidden/SKILL.md", "x"),
    ]);
    let catalog = load(&folders);
    assert_eq!(catalog.listing(ExtensionKind::Skill).unwrap(), "- deep: deep\n- docs: upper\n");
    assert_eq!(catalog.shadowed.len(), 1, "{:?}", catalog.shadowed);
}

#[test]
fn prompts_of_copilot_are_commands_that_those_of_ours_come_before() {
    let folders = folders(&[
        (
            "project/.github/prompts/form.prompt.md",
            "---\nmode: agent\nmodel: [GPT-5, o3]\ntools: ['search']\ndescription: Makes a form\n---\nMake ${input:name}.",
        ),
        ("project/.github/prompts/plain.prompt.md", "No head at all."),
        ("project/.github/prompts/README.md", "No prompt."),
        ("project/.github/prompts/other.prompt.md", "Of Copilot."),
        ("project/.claude/commands/other.md", "Of the project."),
    ]);
    let catalog = load(&folders);
    let commands = catalog.listing(ExtensionKind::Command).unwrap();
    assert_eq!(commands, "- form: Makes a form\n- other: Of the project.\n- plain: No head at all.\n");
    let form = catalog.find(ExtensionKind::Command, "form").unwrap();
    assert_eq!(
        (form.model.as_deref(), form.notes.len(), form.trust_requests.len()),
        (None, 3, 0),
        "{form:?}"
    );
    assert!(catalog.problems.is_empty(), "{:?}", catalog.problems);
}
