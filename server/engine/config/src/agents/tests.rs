//! Which types are found, which of two of a name wins, and what a file can and cannot say.

use std::fs;

use super::*;
use crate::extension::head::FrontMatterFile;
use kode_base::paths::real_path;

fn agent(name: &str, more: &str) -> String {
    format!("---\nname: {name}\ndescription: Does things.\n{more}---\nYou do things.\n")
}

fn parse(text: &str) -> Result<(AgentType, Vec<FileFault>), FileFault> {
    let root = AbsPath::new("/w").unwrap();
    let file = root.join(".claude/agents/one.md");
    file::parse(text, &FrontMatterFile { file, root, origin: ExtensionOrigin::Project })
}

fn parsed(more: &str) -> Result<AgentType, String> {
    parse(&agent("one", more)).map(|(agent, _)| agent).map_err(|fault| fault.message)
}

#[test]
fn the_nearest_project_wins_over_the_user_and_both_over_what_is_built_in() {
    let folder = tempfile::tempdir().unwrap();
    let place = AbsPath::new(real_path(folder.path()).unwrap()).unwrap();
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
    let types = AgentTypes::load(&ExtensionFolders::at_home(
        &[place.join("home/repo/app")],
        Some(&place.join("home")),
    ));
    let from = |name: &str| {
        let file = types.find(name).unwrap().file.clone().unwrap();
        file.as_path().strip_prefix(place.join("home").as_path()).unwrap().to_str().unwrap().to_owned()
    };
    assert_eq!(from("a"), ".claude/agents/a.md");
    assert_eq!(from("b"), "repo/.claude/agents/b.md");
    assert_eq!(from("c"), "repo/.kode/agents/c.md");
    assert_eq!(from("d"), "repo/app/.blade/agents/d.md");
    assert_eq!(from("explore"), ".claude/agents/x.md");
    let error = types.find("nobody").unwrap_err();
    assert_eq!(error.hint, "Use one of: a, b, c, d, Explore, general-purpose, Plan, review.");
    let hidden: Vec<_> =
        types.shadowed.iter().map(|hidden| (hidden.name.as_str(), hidden.origin.name())).collect();
    assert_eq!(hidden, [("d", "project"), ("c", "project"), ("b", "user"), ("Explore", "built-in")]);
    let mut problems: Vec<_> =
        types.problems.iter().map(|problem| problem.file.clone().unwrap().file_name()).collect();
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
    let broken = parse("---\nname: n\ndescription: One.\\nTwo.\n---\nx").unwrap();
    assert_eq!(broken.0.description, "One.\nTwo.");
    for (text, expected, line) in [
        ("You do things.", "head", 0),
        ("---\ndescription: d\n---\n", "`name`", 0),
        ("---\nname: n\n---\n", "`description`", 0),
        ("---\ndescription: d\nname: two words\n---\n", "blanks", 2),
        ("---\nname: n\ndescription: d\npermissionMode: never\n---\n", "`never`", 3),
        ("---\nname: n\ndescription: d\nmemory: all\n---\n", "`all`", 3),
        ("---\nname: n\ndescription: d\ncolor: \"\\e[31m\"\n---\n", "`color`", 3),
        ("---\nname: n\ndescription: d\nmaxTurns: many\n---\n", "cannot be read", 3),
    ] {
        let fault = parse(text).unwrap_err();
        assert!(fault.message.contains(expected), "{fault:?}");
        assert_eq!(fault.line, Some(line), "{text}: {fault:?}");
    }
}

#[test]
fn what_a_file_says_beside_is_kept_and_what_does_not_count_is_reported_on_its_line() {
    let all = parsed(
        "color: cyan\nskills: tidy, test\nmcpServers:\n  - hub\n  - own: {command: x}\nmemory: project\nhooks: {Stop: []}\n",
    );
    let all = all.unwrap();
    assert_eq!(
        (all.color.as_deref(), all.skills.join(" "), all.servers.join(" ")),
        (Some("cyan"), "tidy test".to_owned(), "hub own".to_owned())
    );
    assert_eq!((all.memory, all.hooks.is_some()), (Some(AgentMemory::Project), true));
    for (line, key) in [
        ("hooks: check.sh", "`hooks`"),
        ("isolation: remote", "`isolation: remote`"),
        ("initialPrompt: go", "`initialPrompt`"),
        ("tools: []", "`tools` is empty"),
        ("mcpServers: [{own: {args: [x]}}]", "`mcpServers`"),
    ] {
        let (_, faults) = parse(&agent("one", &format!("{line}\n"))).unwrap();
        assert_eq!(faults.len(), 1, "{line}: {faults:?}");
        assert!(faults[0].message.contains(key) && faults[0].line == Some(3), "{faults:?}");
        assert_eq!(faults[0].severity, kode_permission::rules::ProblemSeverity::Warning);
    }
    assert!(parsed("isolation: worktree\n").unwrap().is_isolated && !all.is_isolated);
    for nothing in ["background: false", "isolation: none", "isolation: worktree", "forkContext: false"] {
        assert_eq!(parse(&agent("one", &format!("{nothing}\n"))).unwrap().1, [], "{nothing}");
    }
}

#[test]
fn agents_of_copilot_have_the_name_of_their_file_and_tools_that_do_the_same() {
    let folder = tempfile::tempdir().unwrap();
    let place = AbsPath::new(real_path(folder.path()).unwrap()).unwrap();
    for (path, text) in [
        (
            ".github/agents/tester.agent.md",
            "---\ndescription: Tests\nmodel: GPT-5 (copilot)\ntools: ['edit', 'github/*', 'vscodeAPI']\n---\nYou test.\n",
        ),
        (".github/agents/planner.md", "---\nname: Big Planner\n---\nYou plan.\n"),
        (".claude/agents/tester2.md", &agent("big-planner", "")),
    ] {
        let path = place.join(path);
        fs::create_dir_all(path.parent().unwrap().as_path()).unwrap();
        fs::write(path.as_path(), text).unwrap();
    }
    let types = AgentTypes::load(&ExtensionFolders::at_home(std::slice::from_ref(&place), None));
    let tester = types.find("tester").unwrap();
    assert_eq!(tester.tools.as_ref().unwrap(), &["Edit", "MultiEdit", "Write", "NotebookEdit"]);
    assert_eq!(
        (tester.model.as_deref(), &*tester.prompt, &*tester.servers),
        (None, "You test.", &["github".to_owned()][..])
    );
    assert!(tester.trust_requests.is_empty());
    let messages: Vec<_> = types.problems.iter().map(|problem| problem.message.as_str()).collect();
    assert!(
        messages.len() == 2 && messages[0].contains("`model`") && messages[1].contains("vscodeAPI"),
        "{messages:?}"
    );
    let planner = types.find("big-planner").unwrap();
    assert_eq!(planner.file, Some(place.join(".claude/agents/tester2.md")), "one of ours comes before");
    assert_eq!(types.shadowed[0].name, "Big-Planner");
}

#[test]
fn a_guest_has_tools_and_a_model_of_its_own_and_its_program_waits_for_approval() {
    let (guest, faults) =
        parse(&agent("one", "runs: agent --acp\ntools: Read\nmodel: quick\nskills: a\n")).unwrap();
    assert_eq!(guest.runs.as_ref().unwrap().command_line(), "agent --acp");
    assert_eq!((guest.tools, guest.model, guest.skills), (None, None, vec!["a".to_owned()]));
    let lines: Vec<_> = faults.iter().map(|fault| (fault.line, fault.message.as_str())).collect();
    let ignored = |key: &str| format!("`{key}` is ignored beside `runs`: that agent has its own.");
    assert_eq!(lines, [(Some(4), ignored("tools").as_str()), (Some(5), ignored("model").as_str())]);
    assert!(parsed("runs: agent | sh\n").unwrap_err().contains("`command` and `args`"));
    let listing = |agent: AgentType| {
        let mut types = AgentTypes::default();
        types.add(agent);
        types.listing()
    };
    let (guest, _) = parse(&agent("one", "runs: agent --acp\n")).unwrap();
    assert!(listing(guest).contains("- one: Does things. (Tools: another agent with tools of its own)"));
}
