//! Which types are found, which of two of a name wins, and what a file can and cannot say.

use std::fs;

use super::*;

fn agent(name: &str, more: &str) -> String {
    format!("---\nname: {name}\ndescription: Does things.\n{more}---\nYou do things.\n")
}

fn parsed(more: &str) -> Result<AgentType, String> {
    file::parse(&agent("one", more), Path::new("one.md"))
}

#[test]
fn the_nearest_project_wins_over_the_user_and_both_over_what_is_built_in() {
    let folder = tempfile::tempdir().unwrap();
    let place = AbsPath::new(folder.path().canonicalize().unwrap()).unwrap();
    for (path, name) in [
        ("home/.claude/agents/a.md", "a"),
        ("home/.claude/agents/deep/er/b.md", "b"),
        ("home/.claude/agents/x.md", "Explore"),
        ("home/repo/.claude/agents/b.md", "b"),
        ("home/repo/.claude/agents/c.md", "c"),
        ("home/repo/.kode/agents/c.md", "c"),
        ("home/repo/app/.blade/agents/d.md", "d"),
        ("home/repo/.kode-ls/agents/d.md", "d"),
    ] {
        let path = place.join(path);
        fs::create_dir_all(path.parent().unwrap().as_path()).unwrap();
        fs::write(path.as_path(), agent(name, "")).unwrap();
    }
    fs::create_dir(place.join("home/repo/.git").as_path()).unwrap();
    fs::write(place.join("home/repo/.claude/agents/bad.md").as_path(), "---\nname: [\n---\n").unwrap();
    fs::write(place.join("outside.md").as_path(), agent("secret", "")).unwrap();
    #[cfg(unix)]
    std::os::unix::fs::symlink(
        place.join("outside.md").as_path(),
        place.join("home/repo/.claude/agents/link.md").as_path(),
    )
    .unwrap();
    let types = AgentTypes::load(&[place.join("home/repo/app")], Some(&place.join("home")));
    let from = |name: &str| {
        let file = types.find(name).unwrap().file.clone().unwrap();
        file.strip_prefix(place.join("home").as_path()).unwrap().to_str().unwrap().to_owned()
    };
    assert_eq!(from("a"), ".claude/agents/a.md");
    assert_eq!(from("b"), "repo/.claude/agents/b.md");
    assert_eq!(from("c"), "repo/.kode/agents/c.md");
    assert_eq!(from("d"), "repo/app/.blade/agents/d.md");
    assert_eq!(from("explore"), ".claude/agents/x.md");
    let error = types.find("nobody").unwrap_err();
    assert_eq!(error.hint, "Use one of: Explore, a, b, c, d, general-purpose, plan, review.");
    let mut problems: Vec<_> = types.problems.iter().map(|(path, _)| path.file_name().unwrap()).collect();
    problems.sort();
    assert_eq!(problems, if cfg!(unix) { vec!["bad.md", "link.md"] } else { vec!["bad.md"] });
}

#[test]
fn a_file_says_tools_model_mode_and_limit_in_any_dialect() {
    let tools = |more: &str| parsed(more).unwrap().tools;
    let named = |names: &[&str]| Some(names.iter().map(ToString::to_string).collect::<Vec<_>>());
    assert_eq!(tools(""), None);
    assert_eq!(tools("tools: '*'\n"), None);
    assert_eq!(tools("tools: []\n"), named(&[]));
    assert_eq!(tools("tools:\n"), named(&[]));
    assert_eq!(tools("tools: Read, Bash(git log:*, x) Grep\n"), named(&["Read", "Bash", "Grep"]));
    assert_eq!(tools("tools: [Read, \"Bash(ls)\"]\n"), named(&["Read", "Bash"]));
    let all =
        parsed("model: opus\nmodel_name: quick\npermissionMode: acceptEdits\nmaxTurns: 7\ncolor: red\n");
    let all = all.unwrap();
    assert_eq!(
        (all.model.as_deref(), all.mode, all.max_turns),
        (Some("quick"), Some(Mode::AcceptEdits), Some(7))
    );
    assert_eq!(parsed("model: inherit\n").unwrap().model, None);
    for (written, expected) in [
        ("low", Some(Effort::Low)),
        ("Medium", Some(Effort::Medium)),
        ("high", Some(Effort::High)),
        ("max", Some(Effort::High)),
        ("auto", None),
    ] {
        assert_eq!(parsed(&format!("effort: {written}\n")).unwrap().effort, expected, "{written}");
    }
    let wrong = parsed("effort: heroic\n").unwrap_err();
    assert!(wrong.contains("`effort` is `heroic`") && wrong.contains("low, medium, high"), "{wrong}");
    let broken = file::parse("---\nname: n\ndescription: One.\\nTwo.\n---\nx", Path::new("n.md")).unwrap();
    assert_eq!(broken.description, "One.\nTwo.");
    for (text, expected) in [
        ("You do things.", "head"),
        ("---\ndescription: d\n---\n", "`name`"),
        ("---\nname: n\n---\n", "`description`"),
        ("---\nname: two words\ndescription: d\n---\n", "blanks"),
        ("---\nname: n\ndescription: d\npermissionMode: never\n---\n", "`never`"),
    ] {
        let reason = file::parse(text, Path::new("n.md")).unwrap_err();
        assert!(reason.contains(expected), "{reason}");
    }
}

#[test]
fn a_type_has_the_tools_it_names_and_never_more_than_it_was_offered() {
    let offered = Registry::built_in();
    let names = |more: &str, offered: &Registry, may_delegate| -> Vec<&str> {
        let tools = parsed(more).unwrap().registry(offered, may_delegate).unwrap();
        tools.iter().map(|tool| tool.facts().name).collect()
    };
    let all = names("", &offered, true);
    assert!(all.contains(&"Bash") && !all.contains(&TASK), "{all:?}");
    assert_eq!(names("tools: fs_read, Nothing, Task\n", &offered, true), ["Read", "Task"]);
    assert_eq!(names("tools: Read, Task\n", &offered, false), ["Read"]);
    assert_eq!(names("tools: []\n", &offered, true), [""; 0]);
    assert_eq!(names("tools: Read, Bash\ndisallowedTools: Bash(rm *)\n", &offered, true), ["Read"]);
    let few = offered.only(|name| name == "Read");
    assert_eq!(names("", &few, true), ["Read"]);
    let error = parsed("tools: Nothing\n").unwrap().registry(&offered, true).err().unwrap();
    assert!(error.message.contains("`one`") && error.message.contains("Nothing"), "{error}");
}
