//! The hooks in front matter, and their scope.

use serde_json::json;

use super::*;
use crate::extension::front_matter;
use crate::extension::places::ExtensionOrigin;
use kode_base::paths::{AbsPath, real_path};
use kode_permission::rules::ProblemSeverity;

const FILE: &str = "\
---
name: tidy
hooks:
  PreToolUse:
    - matcher: Bash
      hooks:
        - command: ./guard.sh
    - matcher: Edit
      hooks: []
  Stop:
  - hooks: [{ command: \"true\" }]
  Stopp: [{ hooks: [] }]
---
Text.
";

fn read(text: &str, origin: ExtensionOrigin, root: &AbsPath) -> Result<FileHooks, String> {
    let (head, _) = front_matter::split(text);
    let head = head.unwrap();
    let written: Value = serde_saphyr::from_str(head).unwrap();
    FileHooks::read(&written["hooks"], head, at(".kode/agents/tidy.md", root, origin))
}

fn at(file: &str, root: &AbsPath, origin: ExtensionOrigin) -> FrontMatterFile {
    FrontMatterFile { file: root.join(file), root: root.clone(), origin }
}

fn root() -> AbsPath {
    AbsPath::new("/w").unwrap()
}

#[test]
fn every_group_is_reported_with_its_line_and_what_is_wrong_with_it() {
    let hooks = read(FILE, ExtensionOrigin::User, &root()).unwrap();
    let mut lines: Vec<_> = hooks.groups.iter().map(|group| (group.event.as_str(), group.line)).collect();
    lines.sort_unstable();
    assert_eq!(lines, [("PreToolUse", 4), ("PreToolUse", 7), ("Stop", 10), ("Stopp", 11)]);
    let problems = hooks.problems();
    assert_eq!(problems.len(), 1, "{problems:?}");
    assert_eq!(problems[0].severity, ProblemSeverity::Warning);
    assert_eq!(problems[0].place.map(|place| place.line), Some(11));
    assert!(problems[0].message.contains("Stopp"), "{}", problems[0].message);
}

#[test]
fn what_is_no_object_of_events_or_too_long_is_reported_and_never_runs() {
    let head = |hooks: &str| format!("---\nhooks: {hooks}\n---\n");
    let error = read(&head("check.sh"), ExtensionOrigin::User, &root()).unwrap_err();
    assert!(error.contains("no object"), "{error}");
    let long = format!("{{ Stop: [{{ hooks: [{{ command: {} }}] }}] }}", "x".repeat(MAX_BYTES));
    let error = read(&head(&long), ExtensionOrigin::User, &root()).unwrap_err();
    assert!(error.contains("more than"), "{error}");
}

#[test]
fn a_project_s_hooks_need_approval_of_their_text_and_of_the_scripts_they_name() {
    let folder = tempfile::tempdir().unwrap();
    let root = AbsPath::new(real_path(folder.path()).unwrap()).unwrap();
    assert_eq!(read(FILE, ExtensionOrigin::User, &root).unwrap().trust_requests(), []);
    let hooks = read(FILE, ExtensionOrigin::Project, &root).unwrap();
    let trust_request = || {
        hooks
            .trust_requests()
            .into_iter()
            .find(|trust_request| trust_request.text.contains("guard.sh"))
            .unwrap()
    };
    assert_eq!(trust_request().key, "hooks.PreToolUse");
    let without = trust_request();
    std::fs::write(root.join("guard.sh").as_path(), "exit 0").unwrap();
    let before = trust_request();
    assert_ne!(before, without);
    std::fs::write(root.join("guard.sh").as_path(), "exit 2").unwrap();
    assert_ne!(trust_request(), before, "a swapped script is another wish");
    let approved =
        hooks.settled(false, &|known| *known == trust_request()).filter(Declaration::is_in_force).count();
    assert_eq!(approved, 1, "nothing counts but what was approved");
}

#[test]
fn the_end_that_a_file_of_an_agent_means_is_that_of_the_sub_agent() {
    let hooks = read(FILE, ExtensionOrigin::User, &root()).unwrap();
    for (is_of_agent, event) in [(true, HookEvent::SubagentStop), (false, HookEvent::Stop)] {
        assert!(hooks.has(event, is_of_agent), "{event:?}");
        assert!(!hooks.has(event, !is_of_agent), "{event:?}");
        let settled = Hooks::of_entries(hooks.settled(is_of_agent, &|_| false), false, &root());
        assert_eq!(settled.of_event(event).len(), 1);
    }
}

#[test]
fn a_hook_that_runs_a_script_where_commands_write_is_confined_and_no_other_is() {
    let hooks = read(FILE, ExtensionOrigin::User, &root()).unwrap();
    let confined = |folders: &[&str]| {
        let folders = folders.iter().map(|folder| AbsPath::new(*folder).unwrap()).collect();
        let settled = Hooks::of_files(hooks.settled(false, &|_| false), false, &root(), folders);
        [HookEvent::PreToolUse, HookEvent::Stop].map(|event| settled.of_event(event)[0].is_confined)
    };
    // `./guard.sh` may come any time; `true` is no file of a folder.
    assert_eq!(confined(&["/elsewhere", "/w"]), [true, false]);
    assert_eq!(confined(&[]), [false, false]);
}

#[test]
fn what_a_file_brought_along_before_gives_way_to_what_it_brings_now() {
    let used = |name: usize, command: &str| TurnHooks {
        turn: TurnId::generate(),
        hooks: FileHooks {
            at: at(&format!("{name}.md"), &root(), ExtensionOrigin::User),
            groups: vec![HookGroup { event: "Stop".to_owned(), value: json!(command), line: 0 }],
        },
    };
    let mut known = Vec::new();
    take_in(&mut known, used(0, "one"));
    take_in(&mut known, used(0, "two"));
    assert_eq!(known.iter().map(|used| &used.hooks.groups[0].value).collect::<Vec<_>>(), [&json!("two")]);
    (1..=MAX_FILES).for_each(|name| take_in(&mut known, used(name, "x")));
    assert_eq!(known.len(), MAX_FILES);
    assert!(known.iter().all(|used| used.hooks.groups[0].value != json!("two")), "the oldest gives way");
}
