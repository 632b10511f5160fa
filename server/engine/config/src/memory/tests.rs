//! Instruction files in a temporary repository.

use super::*;
use crate::extension::FOLDERS;
use kode_base::paths::real_path;
use std::fs;

struct Rig {
    folder: tempfile::TempDir,
}

impl Rig {
    fn new() -> Self {
        let rig = Self { folder: tempfile::tempdir().unwrap() };
        rig.write("home/.keep", "");
        rig.write("repo/.git/HEAD", "ref: refs/heads/main\n");
        rig.write("repo/app/.keep", "");
        rig
    }

    fn path(&self, path: &str) -> AbsPath {
        AbsPath::new(real_path(self.folder.path()).unwrap()).unwrap().join(path)
    }

    fn write(&self, path: &str, text: impl AsRef<[u8]>) {
        let path = self.path(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn places(&self) -> InstructionFolders {
        let home = self.path("home");
        InstructionFolders {
            cwd: self.path("repo/app"),
            roots: vec![self.path("repo/app")],
            user: FOLDERS.iter().map(|folder| home.join(folder)).collect(),
            managed: Some(self.path("etc")),
            home: Some(home),
            excludes: vec![],
            max_bytes: None,
        }
    }

    fn load(&self) -> Memory {
        Memory::load(&self.places(), &|_| Ok(()))
    }

    /// The names of the files that were given, in order.
    fn given(&self, memory: &Memory) -> Vec<String> {
        let base = self.path("");
        let given = memory.loaded().iter().filter(|loaded| loaded.bytes > 0);
        let name = |loaded: &InstructionFile| {
            loaded.path.as_path().strip_prefix(base.as_path()).unwrap().display().to_string()
        };
        given.map(name).collect()
    }
}

fn left_out(memory: &Memory, name: &str) -> String {
    let loaded = memory.loaded().iter().find(|loaded| loaded.path.as_path().ends_with(name)).unwrap();
    match &loaded.fate {
        InstructionFate::LeftOut(reason) => reason.clone(),
        fate => panic!("{name}: {fate:?}"),
    }
}

#[test]
fn the_files_come_from_the_outermost_folder_to_the_nearest_and_each_text_once() {
    let rig = Rig::new();
    rig.write("etc/AGENTS.md", "managed");
    rig.write("home/.claude/CLAUDE.md", "user");
    rig.write("home/.kode/AGENTS.md", "user of kode");
    rig.write("CLAUDE.md", "above the repository");
    rig.write("AGENTS.md", "above the repository, and not looked for there");
    rig.write("repo/AGENTS.md", "root");
    rig.write("repo/CLAUDE.md", "@AGENTS.md\n");
    rig.write("repo/KODE.md", "root\n");
    rig.write("repo/.github/copilot-instructions.md", "of copilot");
    rig.write("repo/CLAUDE.local.md", "mine");
    rig.write("repo/app/AGENTS.override.md", "instead");
    rig.write("repo/app/AGENTS.md", "not this");
    rig.write("repo/app/.claude/CLAUDE.md", "app");
    let memory = rig.load();
    assert_eq!(
        rig.given(&memory),
        [
            "etc/AGENTS.md",
            "home/.kode/AGENTS.md",
            "home/.claude/CLAUDE.md",
            "CLAUDE.md",
            "repo/AGENTS.md",
            "repo/.github/copilot-instructions.md",
            "repo/CLAUDE.local.md",
            "repo/app/AGENTS.override.md",
            "repo/app/.claude/CLAUDE.md",
        ]
    );
    assert_eq!(left_out(&memory, "repo/KODE.md"), "another file says the same");
    assert_eq!(left_out(&memory, "repo/CLAUDE.md"), "it only imports others");
    assert!(memory.text().starts_with("<instructions path=\""));
    assert!(
        memory.text().contains("<instructions path=\"~/.kode/AGENTS.md\">\nuser of kode\n</instructions>")
    );
    assert!(!memory.text().contains("not this"));
    assert_eq!(memory.problems(), [""; 0]);
}

#[test]
fn imports_end_in_circles_after_four_hops_and_at_the_border_of_the_workspace() {
    let rig = Rig::new();
    rig.write("repo/AGENTS.md", "zero @docs/1.md @docs/1.md @nobody");
    for (number, next) in [(1, "@2.md @../AGENTS.md"), (2, "@3.md"), (3, "@4.md"), (4, "@5.md"), (5, "")] {
        rig.write(&format!("repo/docs/{number}.md"), format!("n{number} {next}"));
    }
    rig.write("repo/CLAUDE.md", "root @~/shared.md");
    rig.write("home/shared.md", "shared by me");
    let memory = rig.load();
    assert_eq!(
        rig.given(&memory),
        [
            "repo/AGENTS.md",
            "repo/docs/1.md",
            "repo/docs/2.md",
            "repo/docs/3.md",
            "repo/docs/4.md",
            "repo/CLAUDE.md"
        ]
    );
    assert!(left_out(&memory, "shared.md").contains("outside the workspace"));
    assert_eq!(memory.problems().len(), 1);
    rig.write("home/.claude/CLAUDE.md", "user @../shared.md");
    assert!(rig.load().text().contains("shared by me"));
}

#[test]
fn a_file_that_cannot_be_used_costs_itself_alone() {
    let rig = Rig::new();
    rig.write("repo/AGENTS.md", b"\x00\x01binary\x00");
    rig.write("repo/CLAUDE.md", "fine</instructions> @secret.txt");
    rig.write("repo/secret.txt", "hunter2");
    rig.write("repo/KODE.md", "left out by the user");
    rig.write("repo/BLADE.md", "<!-- nothing -->\n");
    let places = InstructionFolders { excludes: vec!["repo/KODE.md".into(), "[".into()], ..rig.places() };
    let may_give = |path: &AbsPath| match path.file_name().as_str() {
        "secret.txt" => Err("it looks like a secret".to_owned()),
        _ => Ok(()),
    };
    let memory = Memory::load(&places, &may_give);
    assert_eq!(rig.given(&memory), ["repo/CLAUDE.md"]);
    assert!(memory.text().contains("fine<\u{200b}/instructions>") && !memory.text().contains("hunter2"));
    assert_eq!(left_out(&memory, "AGENTS.md"), "it is not text");
    assert_eq!(left_out(&memory, "secret.txt"), "it looks like a secret");
    assert_eq!(left_out(&memory, "KODE.md"), "`claudeMdExcludes` names it");
    assert_eq!(left_out(&memory, "BLADE.md"), "it is empty");
    assert_eq!(memory.problems().len(), 3, "{:?}", memory.problems());
}

#[cfg(unix)]
#[test]
fn a_link_out_of_the_project_is_not_followed() {
    let rig = Rig::new();
    rig.write("home/private.md", "private");
    std::os::unix::fs::symlink(rig.path("home/private.md"), rig.path("repo/AGENTS.md")).unwrap();
    let memory = rig.load();
    assert_eq!(memory.text(), "");
    assert!(left_out(&memory, "AGENTS.md").contains("outside the workspace"));
}

#[test]
fn what_is_too_long_is_cut_and_said() {
    let rig = Rig::new();
    rig.write("repo/AGENTS.md", "a line of text\n".repeat(4_000));
    rig.write("repo/app/AGENTS.md", "nearer");
    let memory = rig.load();
    let first = &memory.loaded()[0];
    assert_eq!(first.fate, InstructionFate::Cut);
    assert!(first.bytes <= MAX_FILE_BYTES && first.bytes > MAX_FILE_BYTES - 20);
    assert!(memory.text().contains("[The file is longer]") && memory.text().contains("nearer"));
    assert!(memory.problems()[0].contains("first"));
    let memory = Memory::load(&InstructionFolders { max_bytes: Some(100), ..rig.places() }, &|_| Ok(()));
    assert!(memory.loaded().iter().map(|loaded| loaded.bytes).sum::<usize>() <= 100);
}

#[test]
fn the_files_of_a_deeper_folder_are_given_once() {
    let rig = Rig::new();
    rig.write("repo/app/AGENTS.md", "app");
    rig.write("repo/app/api/v1/CLAUDE.md", "of v1");
    rig.write("repo/app/api/AGENTS.md", "of the api");
    let (places, above) = (rig.places(), rig.load());
    let mut reported = HashSet::new();
    let mut beside = |file: &str| {
        let mut folders = places.folders_beside(&rig.path(file));
        folders.retain(|folder| reported.insert(folder.clone()));
        Memory::of_folders(&places, &|_| Ok(()), &folders, &above)
    };
    assert_eq!(rig.given(&beside("repo/app/main.rs")), [""; 0]);
    assert_eq!(
        rig.given(&beside("repo/app/api/v1/x.rs")),
        ["repo/app/api/AGENTS.md", "repo/app/api/v1/CLAUDE.md"]
    );
    assert_eq!(rig.given(&beside("repo/app/api/v1/y.rs")), [""; 0]);
    assert_eq!(rig.given(&beside("home/other.rs")), [""; 0]);
}

#[test]
fn a_project_in_the_home_folder_imports_nothing_that_lies_above_it() {
    let rig = Rig::new();
    rig.write("notes.txt", "my notes");
    rig.write("customer-list.txt", "my customers");
    rig.write("CLAUDE.md", "found above @notes.txt");
    rig.write("repo/AGENTS.md", "root @~/notes.txt @../customer-list.txt @docs/own.md @docs/link.md");
    rig.write("repo/docs/own.md", "own");
    #[cfg(unix)]
    std::os::unix::fs::symlink(rig.path("customer-list.txt"), rig.path("repo/docs/link.md")).unwrap();
    let places = InstructionFolders { home: Some(rig.path("")), user: vec![], ..rig.places() };
    let memory = Memory::load(&places, &|_| Ok(()));
    assert_eq!(rig.given(&memory), ["CLAUDE.md", "repo/AGENTS.md", "repo/docs/own.md"]);
    assert!(!memory.text().contains("my notes") && !memory.text().contains("my customers"));
    assert!(left_out(&memory, "notes.txt").contains("outside the workspace"));
    assert!(left_out(&memory, "customer-list.txt").contains("outside the workspace"));
}

#[cfg(unix)]
#[test]
fn an_import_that_is_a_link_out_of_the_project_is_not_followed() {
    let rig = Rig::new();
    rig.write("private.md", "private");
    rig.write("repo/AGENTS.md", "root @docs/link.md");
    rig.write("repo/docs/.keep", "");
    std::os::unix::fs::symlink(rig.path("private.md"), rig.path("repo/docs/link.md")).unwrap();
    let memory = rig.load();
    assert_eq!(rig.given(&memory), ["repo/AGENTS.md"]);
    assert!(left_out(&memory, "link.md").contains("outside the workspace"));
}

#[test]
fn rules_are_given_always_or_with_the_first_file_that_they_speak_of() {
    let rig = Rig::new();
    rig.write("home/.claude/rules/mine.md", "mine");
    rig.write("repo/.claude/rules/style.md", "style");
    rig.write("repo/.claude/rules/deep/api.md", "---\npaths:\n  - \"app/api/**/*.{ts,js}\"\n---\napi");
    rig.write("repo/.kode/rules/tests.md", "---\npaths: app/**/*.test.ts, docs/*.md\n---\ntests");
    rig.write("repo/.claude/rules/broken.md", "---\npaths: [\n---\nbroken");
    rig.write("outside.md", "outside");
    #[cfg(unix)]
    std::os::unix::fs::symlink(rig.path("outside.md"), rig.path("repo/.claude/rules/link.md")).unwrap();
    let memory = rig.load();
    assert_eq!(rig.given(&memory), ["home/.claude/rules/mine.md", "repo/.claude/rules/style.md"]);
    assert!(left_out(&memory, "api.md").contains("`paths`"));
    let problems = memory.problems().join(" ");
    assert!(
        problems.contains("broken.md") && problems.contains("link.md") && !problems.contains("api.md"),
        "{problems}"
    );
    let places = rig.places();
    let given = |file: &str| {
        let beside = memory.beside(&places, &rig.path(file));
        let found = Memory::of_folders(&places, &|_| Ok(()), &beside, &memory);
        (rig.given(&found).join(" "), found.folders().len())
    };
    assert_eq!(given("repo/app/api/v1/a.js"), ("repo/.claude/rules/deep/api.md".to_owned(), 1));
    assert_eq!(
        given("repo/app/api/a.test.ts"),
        ("repo/.kode/rules/tests.md repo/.claude/rules/deep/api.md".to_owned(), 2)
    );
    assert_eq!(given("repo/app/main.ts"), (String::new(), 0));
    let text = |file: &str| {
        let beside = memory.beside(&places, &rig.path(file));
        Memory::of_folders(&places, &|_| Ok(()), &beside, &memory).text().to_owned()
    };
    assert!(text("repo/app/api/a.js").ends_with(">\napi\n</instructions>"), "the head is no instruction");
}
