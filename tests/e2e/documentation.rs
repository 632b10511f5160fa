//! Commands in the documentation work: every shell block of every page is run, line by line. Links lead to
//! files and headings that exist.
//!
//! Rule: a block of commands is a block of `sh`. A command that cannot be run here is in a table with what runs it
//! instead; one that is neither run nor in the table fails the test, and so does an entry that no page has.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use kode_e2e::{Output, Project, Script, binary, run_program, say};
use serde_json::json;

use crate::headers::sources;

/// Commands that this test does not run, and what does.
const ELSEWHERE: &[(&str, &str)] = &[
    ("tests/run", "this test is a part of it"),
    ("tests/run --no-editors", "this test is a part of it"),
    ("tests/run --quick", "it would start the end-to-end tests again"),
    ("tests/run e2e -- permissions::", "this test is in the same part"),
    ("tests/run --list", "a test of its own, below"),
    ("cargo build", "tests/run"),
    (
        "tests/fuzz/run",
        "nothing: it builds the program with instruments; its seeds are replayed in every run",
    ),
    ("tests/soak/run 10", "tests/run, for a minute"),
    ("tests/soak/run --kills", "the part e2e, with a tenth of the kills"),
    ("tests/soak/run --steps", "the part e2e, with fewer steps"),
    ("tests/supply", "nothing: it builds the tools it asks"),
    ("tests/site/run", "the part site collects the pages; mdBook takes minutes to build"),
    ("tests/pictures/run", "nothing: it writes the pictures of the README"),
    ("target/debug/strings", "tests/e2e/voice.rs reads the same strings"),
    ("kode-ls setup --provider ollama --model gemma-test:4b", "tests/e2e/newcomer.rs"),
    ("kode-ls trust approve --yes", "tests/e2e/newcomer.rs"),
    ("kode-ls run -c \"/rewind 1 files\"", "tests/e2e/newcomer.rs"),
    ("tests/bench", "nothing: it takes a quiet machine"),
    ("tests/build-times", "nothing: it builds everything twice"),
    ("server/release", "it tests itself: the demo of the packed program is run"),
    ("kode-ls plugin marketplace add acme/plugins", "tests/e2e/plugins.rs, with one on this machine"),
    ("kode-ls plugin install tidy@acme", "tests/e2e/plugins.rs"),
    ("cargo run -p kode-protocol --bin generate-bindings", "a test of kode-protocol compares what it makes"),
    ("cargo install --path server --locked --profile dist", "server/release builds the same"),
    ("cargo run --release -- demo", "it asks in a terminal; the same with --yes is run here"),
    ("nvim -u editors/neovim/demo.lua", "tests/neovim/run"),
    ("npm ci", "tests/vscode/run"),
    ("npm run build", "tests/vscode/run"),
    ("npm run check && npm run lint && npm test", "tests/vscode/run"),
    ("node package.mjs --vsce vsce", "tests/vscode/run"),
    (
        "node package.mjs --vsce vsce --server ../../target/release/kode-ls --target linux-x64",
        "server/release",
    ),
];

/// The page of behaviors, which has a test of its own.
const BEHAVIORS: &str = "server/docs/reference/behaviors.md";

/// The folder of the generated pages.
const GENERATED: &str = "server/docs/reference/";

/// The most lines of a paragraph.
const MAX_PARAGRAPH: usize = 5;

/// The names of shell blocks other than `sh`.
const OTHER_SHELLS: [&str; 5] = ["bash", "console", "shell", "zsh", "fish"];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the repository").to_owned()
}

/// The pages, by their paths from the root.
fn pages() -> Vec<String> {
    let mut pages: Vec<String> =
        ["README.md", "CHANGELOG.md", "protocol/README.md", "editors/README.md"].map(str::to_owned).into();
    for folder in [".github", "server/docs", "server/docs/decisions", "server/docs/reference"] {
        let files = fs::read_dir(root().join(folder)).unwrap().map(|file| file.unwrap().file_name());
        let files = files.map(|name| format!("{folder}/{}", name.into_string().unwrap()));
        pages.extend(files.filter(|name| name.ends_with(".md")));
    }
    pages.extend(["emacs", "neovim", "vscode"].map(|editor| format!("editors/{editor}/README.md")));
    pages.sort();
    pages
}

pub(crate) fn text_of(page: &str) -> String {
    fs::read_to_string(root().join(page)).unwrap_or_else(|error| panic!("{page}: {error}"))
}

/// The fenced blocks of a page: their language, and their text.
pub(crate) fn blocks(text: &str) -> Vec<(String, String)> {
    let mut blocks = Vec::new();
    let mut open: Option<(String, String)> = None;
    for line in text.lines() {
        match (line.trim_start().strip_prefix("```"), &mut open) {
            (Some(kind), None) => open = Some((kind.trim().to_owned(), String::new())),
            (Some(_), Some(_)) => blocks.extend(open.take()),
            (None, Some((_, text))) => text.extend([line, "\n"]),
            (None, None) => {}
        }
    }
    assert!(open.is_none(), "a block is not closed");
    blocks
}

/// The commands of a block, without their remarks.
pub(crate) fn commands(block: &str) -> Vec<String> {
    let mut commands = Vec::new();
    let mut begun = String::new();
    for line in block.lines() {
        let command = line.split("  #").next().unwrap_or_default().trim();
        if command.is_empty() || command.starts_with('#') {
            continue;
        }
        begun.push_str(command);
        if begun.ends_with('|') || begun.ends_with("&&") {
            begun.push(' ');
        } else if begun.ends_with('\\') {
            begun.pop();
        } else {
            commands.push(std::mem::take(&mut begun));
        }
    }
    assert!(begun.is_empty(), "a command has no end: {begun}");
    commands
}

/// The commands of all pages, with the page they are on.
fn documented() -> Vec<(String, Vec<String>)> {
    let of_page = |page: String| {
        let blocks = blocks(&text_of(&page)).into_iter();
        let commands = blocks.filter(|(kind, _)| kind == "sh").flat_map(|(_, text)| commands(&text));
        let commands = commands.collect();
        (page, commands)
    };
    pages().into_iter().map(of_page).collect()
}

/// A place in which documented commands mean something: a repository with a change, a server of the Model Context Protocol
/// that is called `files`, and a session whose id begins with what the pages write.
struct World {
    project: Project,
    session: String,
}

impl World {
    fn new() -> Self {
        let project = Project::new(&Script::new([say("Because of a typo.")]));
        let home = project.outside().join("user");
        fs::create_dir_all(home.join(".kode-ls")).unwrap();
        let server = env!("CARGO_BIN_EXE_fault-mcp-server");
        let files = json!({ "command": server, "args": [""], "sandbox": false });
        let settings = json!({ "mcpServers": { "files": files } });
        fs::write(home.join(".kode-ls/settings.json"), settings.to_string()).unwrap();
        project.write("src/cache.rs", "fn cache() {}\n");
        let mut world = Self { project, session: String::new() };
        for command in [
            "git init -q . && git add . && git -c user.name=A -c user.email=a@example.com commit -q -m Begin",
            "echo '// connection reset' >> src/cache.rs",
            "kode-ls run 'what is a connection reset?'",
        ] {
            let output = world.run(command);
            assert_eq!(output.code, 0, "{command}: {output:?}");
        }
        let listed = world.run("kode-ls sessions list --json");
        let at = listed.stdout.find("ses_").unwrap_or_else(|| panic!("no session: {listed:?}"));
        world.session = listed.stdout[at..].chars().take_while(|char| *char != '"').collect();
        world
    }

    fn run(&self, command: &str) -> Output {
        let home = self.project.outside().join("user");
        let folder = binary().parent().unwrap().to_owned();
        // `KODE_LS_BIN` may be called anything; what people type is `kode-ls`.
        let links = self.project.outside().join("bin");
        if !links.exists() {
            fs::create_dir(&links).unwrap();
            std::os::unix::fs::symlink(binary(), links.join("kode-ls")).unwrap();
        }
        let system = std::env::var("PATH").unwrap_or_default();
        let path = format!("{}:{}:{system}", links.display(), folder.display());
        let state = self.project.home();
        let environment = [
            ("HOME", home.to_str().unwrap()),
            ("PATH", &path),
            ("KODE_LS_HOME", state.to_str().unwrap()),
            ("ANTHROPIC_BASE_URL", self.project.model.base_url()),
            ("ANTHROPIC_API_KEY", "test-key"),
        ];
        let command = format!("set -o pipefail; {command}");
        let workspace = self.project.workspace();
        run_program(Path::new("bash"), &["-c", &command], Some(&workspace), &environment, "")
    }

    /// The command as it has to be typed here.
    fn here(&self, command: &str) -> String {
        let command = command.replace("cargo run --release --", "kode-ls").replace("cargo run --", "kode-ls");
        // Output for a file of the repository goes to the screen instead.
        let command = command.split(" > server/docs/").next().unwrap_or_default().to_owned();
        command.replace("019a", &self.session)
    }
}

#[test]
fn every_documented_command_works() {
    let is_elsewhere = |command: &String| ELSEWHERE.iter().any(|(known, _)| known == command);
    let mut failed = Vec::new();
    for (page, commands) in documented() {
        let commands: Vec<&String> = commands.iter().filter(|command| !is_elsewhere(command)).collect();
        if commands.is_empty() {
            continue;
        }
        let world = World::new();
        for command in commands {
            let output = world.run(&world.here(command));
            if output.code != 0 {
                failed.push(format!("{page} says to type `{command}`: {output:?}"));
            }
        }
    }
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}

#[test]
fn commands_stand_in_blocks_that_are_run() {
    for page in pages() {
        for (kind, text) in blocks(&text_of(&page)) {
            let first = kind.split([' ', ',']).next().unwrap_or_default();
            assert!(!OTHER_SHELLS.contains(&first), "{page}: a block is `{kind}` and not `sh`:\n{text}");
            let is_command = |line: &str| {
                ["$ ", "kode-ls ", "cargo ", "tests/"].iter().any(|start| line.starts_with(start))
            };
            let found = text.lines().find(|line| kind.is_empty() && is_command(line));
            assert_eq!(found, None, "{page}: a command in a block that is not `sh`");
        }
    }
}

#[test]
fn what_is_said_to_be_run_elsewhere_is_documented_somewhere() {
    let all: BTreeSet<String> = documented().into_iter().flat_map(|(_, commands)| commands).collect();
    for (command, by) in ELSEWHERE {
        assert!(all.contains(*command), "no page has `{command}` (run by {by})");
    }
}

#[test]
fn every_command_line_that_is_named_in_a_sentence_is_there() {
    let project = Project::new(&Script::new([say("Hello.")]));
    let mut known = BTreeSet::new();
    for page in pages() {
        let text = text_of(&page);
        for (at, _) in text.match_indices("`kode-ls ") {
            let line: String = text[at + 1..].chars().take_while(|char| *char != '`').collect();
            let words = line.split_whitespace().skip(1);
            let is_name = |word: &&str| word.chars().all(|char| char.is_ascii_lowercase() || char == '-');
            let names: Vec<&str> =
                words.take_while(|word| is_name(word) && !word.starts_with('-')).take(1).collect();
            if names.is_empty() || !known.insert(names.concat()) {
                continue;
            }
            let output = project.run(&[&["help"], &names[..]].concat(), "");
            assert_eq!(output.code, 0, "{page} names `{line}`: {output:?}");
        }
    }
}

/// A heading as a link names it: lower case, words joined by hyphens, without punctuation.
fn anchor(heading: &str) -> String {
    let kept = heading.to_lowercase();
    let kept = kept.chars().filter(|char| char.is_alphanumeric() || [' ', '-', '_'].contains(char));
    kept.collect::<String>().replace(' ', "-")
}

fn anchors(text: &str) -> BTreeSet<String> {
    let mut in_block = false;
    let mut anchors = BTreeSet::new();
    for line in text.lines() {
        in_block ^= line.trim_start().starts_with("```");
        let level = line.chars().take_while(|char| *char == '#').count();
        if !in_block && level > 0 && line[level..].starts_with(' ') {
            anchors.insert(anchor(line[level..].trim()));
        }
    }
    anchors
}

/// The targets of the links of a page, but for those that lead to other hosts.
fn links(text: &str) -> Vec<String> {
    let after = text.match_indices("](").map(|(at, _)| &text[at + 2..]);
    let targets = after.filter_map(|rest| Some(rest[..rest.find(')')?].to_owned()));
    targets.filter(|target| !target.contains("://") && !target.contains([' ', '\n'])).collect()
}

#[test]
fn links_lead_to_files_and_headings_that_exist() {
    let mut broken = Vec::new();
    for page in pages() {
        let text = text_of(&page);
        let folder = root().join(&page).parent().expect("a page is in a folder").to_owned();
        for target in links(&text) {
            let (file, heading) = target.split_once('#').unwrap_or((&target, ""));
            let path = if file.is_empty() { root().join(&page) } else { folder.join(file) };
            let is_there = path.exists()
                && (heading.is_empty()
                    || anchors(&fs::read_to_string(&path).unwrap_or_default()).contains(heading));
            if !is_there {
                broken.push(format!("{page}: ({target})"));
            }
        }
    }
    assert!(broken.is_empty(), "links that lead nowhere:\n{}", broken.join("\n"));
}

#[test]
fn tests_that_pages_name_exist() {
    let mut missing = Vec::new();
    for page in pages().into_iter().filter(|page| page.as_str() != BEHAVIORS) {
        let text = text_of(&page);
        let named = text.match_indices("`tests/e2e/").map(|(at, _)| &text[at + 1..]);
        let named = named.filter_map(|rest| rest[..rest.find('`')?].split_once("::"));
        for (file, name) in named {
            let source = fs::read_to_string(root().join(file)).unwrap_or_default();
            if !source.contains(&format!("#[test]\nfn {name}()")) {
                missing.push(format!("{page}: {file}::{name}"));
            }
        }
    }
    assert!(missing.is_empty(), "tests that do not exist:\n{}", missing.join("\n"));
}

/// The page whose tables name tests by their modules.
const SANDBOX: &str = "server/docs/sandbox.md";

/// The page whose tables name tests of every kind.
const FLOWS: &str = "server/docs/flows.md";

/// The names between backquotes in the tables of a text.
fn in_tables(text: &str) -> impl Iterator<Item = &str> {
    let rows = text.lines().filter(|line| line.starts_with("| "));
    rows.flat_map(|line| line.split('`').skip(1).step_by(2))
}

#[test]
fn tests_that_pages_name_by_their_modules_exist() {
    let text = [SANDBOX, FLOWS].map(text_of).concat();
    let named: Vec<_> = in_tables(&text)
        .filter(|name| !name.contains(['/', '.', ' ']) && name.contains("::"))
        .filter_map(|name| name.rsplit("::").next())
        .collect();
    assert!(named.len() > 40, "{named:?}");
    let is_code = |file: &String| Path::new(file).extension().is_some_and(|extension| extension == "rs");
    let code: String = sources().iter().filter(|file| is_code(file)).map(|file| text_of(file)).collect();
    let is_missing = |name: &&&str| {
        let is_there = |line: &str| code.contains(&format!("{line}fn {name}()"));
        !["]\n", "]\n    ", "]\nasync ", "]\n    async "].into_iter().any(is_there)
    };
    let missing: Vec<_> = named.iter().filter(is_missing).collect();
    assert!(missing.is_empty(), "tests that do not exist: {missing:?}");
}

/// Whether a source has a test of this title, in the form of its language; a title may end before the part that is computed.
fn has_titled(source: &str, title: &str) -> bool {
    let is_quoted = |quote: char| {
        let begin = format!("{quote}{title}");
        let ends = |at: usize| source[at + begin.len()..].starts_with(['\'', '"', ':', ',', ' ']);
        source.match_indices(&begin).any(|(at, _)| ends(at))
    };
    source.contains(&format!("def {}(", title.replace(' ', "_"))) || is_quoted('\'') || is_quoted('"')
}

#[test]
fn tests_that_the_page_of_flows_names_by_file_and_title_exist() {
    let text = text_of(FLOWS);
    let named: Vec<_> = in_tables(&text).filter_map(|name| name.split_once(": ")).collect();
    assert!(named.len() > 90, "{named:?}");
    let files: Vec<_> = sources().into_iter().filter(|path| path.starts_with("tests/")).collect();
    let is_missing = |(file, title): &&(&str, &str)| {
        let mut found = files.iter().filter(|path| path.ends_with(&format!("/{file}")));
        let source = found.next().map(|path| text_of(path)).unwrap_or_default();
        found.next().is_some() || !has_titled(&source, title)
    };
    let missing: Vec<_> = named.iter().filter(is_missing).collect();
    assert!(missing.is_empty(), "tests that do not exist: {missing:#?}");
}

#[test]
fn paragraphs_are_short() {
    let mut long = Vec::new();
    let is_written = |page: &String| !page.ends_with("CHANGELOG.md") && !page.starts_with(GENERATED);
    for page in pages().into_iter().filter(is_written) {
        let (mut lines, mut in_block) = (0, false);
        for (at, line) in text_of(&page).lines().map(str::trim).enumerate() {
            let is_fence = line.starts_with("```");
            in_block ^= is_fence;
            let is_text = !in_block && !is_fence && !line.is_empty() && !line.starts_with(['#', '|', '<']);
            let is_item = line.starts_with("- ")
                || line.split_once(". ").is_some_and(|(number, _)| number.parse::<u8>().is_ok());
            lines = match (is_text, is_item) {
                (false, _) => 0,
                (true, true) => 1,
                (true, false) => lines + 1,
            };
            if lines == MAX_PARAGRAPH + 1 {
                long.push(format!("{page}:{}", at + 1));
            }
        }
    }
    assert!(long.is_empty(), "paragraphs of more than {MAX_PARAGRAPH} lines: {}", long.join(", "));
}

#[test]
fn the_parts_of_a_test_run_are_those_of_the_contributors_page() {
    let listed = run_program(Path::new("bash"), &["tests/run", "--list"], Some(&root()), &[], "");
    assert_eq!(listed.code, 0, "{listed:?}");
    let parts: Vec<(String, String)> = listed
        .stdout
        .lines()
        .map(|line| line.split_once(' ').expect("a name and what it runs"))
        .map(|(name, runs)| (name.to_owned(), runs.trim().to_owned()))
        .collect();
    let page = text_of("server/docs/contributing.md");
    let rows = page.lines().filter_map(|line| line.strip_prefix("| `")?.split_once("` | "));
    let rows: Vec<(String, String)> = rows
        .filter_map(|(name, rest)| Some((name.to_owned(), rest.split_once(" | ")?)))
        .filter(|(_, (_, minutes))| minutes.trim_end_matches(" |").parse::<f64>().is_ok())
        .map(|(name, (runs, _))| (name, runs.replace('`', "")))
        .collect();
    assert_eq!(rows, parts, "server/docs/contributing.md has another table of parts than tests/run --list");
}
