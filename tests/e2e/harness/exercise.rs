//! An exercise: a stub, the passages that solve it, the places where the user types, and its tests.
//!
//! Rule: `tests/fixtures/harness/README.md` has the format. What it demands is checked here, so that a slip in a fixture names its
//! file and never looks like a fault of the program.

use std::fs;
use std::path::Path;

use crate::harness::language::Language;
use crate::source::root;

/// Where the exercises are.
const FOLDER: &str = "tests/fixtures/harness";

/// Lines of a fixture that are no line of the stub.
const OLD: &str = "<<<<";
const NEW: &str = "====";
const END: &str = ">>>>";
const TYPE_HERE: &str = "++++";
const TESTS: &str = "---- tests";

/// An exercise. Texts have line feeds; [`Exercise::on_disk`] gives them as the file has them.
#[derive(Debug)]
pub(super) struct Exercise {
    pub(super) language: Language,
    /// The name of its fixture and, with the language's ending, of its file.
    pub(super) name: String,
    /// The text with nothing solved.
    pub(super) stub: String,
    /// In the order of the stub.
    pub(super) passages: Vec<Passage>,
    /// The line behind which the user types in the middle of the file; the only line of the stub and of the solution that has
    /// this text.
    pub(super) anchor: String,
    /// A program, or a module of the Rust crate, that fails on the stub.
    pub(super) tests: String,
    has_crlf: bool,
}

/// A passage of the stub, and what solves it.
#[derive(Debug, Default)]
pub(super) struct Passage {
    pub(super) old: Vec<String>,
    pub(super) new: Vec<String>,
    /// Where it begins in the stub.
    pub(super) at: usize,
}

impl Exercise {
    /// Every exercise of a language, by name.
    pub(super) fn all(language: Language) -> Vec<Self> {
        let folder = root().join(FOLDER).join(language.folder());
        let files = fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
        let mut files: Vec<_> = files.map(|entry| entry.unwrap().path()).collect();
        files.sort();
        files.iter().map(|file| Self::read(language, file)).collect()
    }

    fn read(language: Language, file: &Path) -> Self {
        let name = file.file_stem().unwrap().to_str().unwrap().to_owned();
        let fixture = fs::read_to_string(file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
        let (head, body) = fixture.split_once("\n----\n").unwrap_or_else(|| panic!("{name}: no line `----`"));
        let form = head.strip_prefix("form:").unwrap_or_else(|| panic!("{name}: no line `form:`"));
        let (source, tests) =
            body.split_once(&format!("\n{TESTS}\n")).unwrap_or_else(|| panic!("{name}: no line `{TESTS}`"));
        let has = |word: &str| form.split_whitespace().any(|known| known == word);
        for word in form.split_whitespace() {
            assert!(["lf", "crlf", "tabs", "open"].contains(&word), "{name}: `{word}` is no form");
        }
        let mut exercise = Self {
            language,
            name,
            stub: String::new(),
            passages: Vec::new(),
            anchor: String::new(),
            tests: tests.to_owned(),
            has_crlf: has("crlf"),
        };
        exercise.add(source, has("tabs"));
        if has("open") {
            exercise.stub.pop();
        }
        exercise.check();
        exercise
    }

    fn add(&mut self, source: &str, has_tabs: bool) {
        let (mut passage, mut is_new): (Option<Passage>, bool) = (None, false);
        let mut last = String::new();
        for line in source.lines() {
            let line = if has_tabs { tabbed(line) } else { line.to_owned() };
            match (line.as_str(), &mut passage) {
                (OLD, None) => passage = Some(Passage { at: self.stub.len(), ..Passage::default() }),
                (NEW, Some(_)) if !is_new => is_new = true,
                (END, Some(_)) if is_new => {
                    self.passages.extend(passage.take());
                    is_new = false;
                }
                (TYPE_HERE, None) => self.anchor.clone_from(&last),
                (OLD | NEW | END | TYPE_HERE, _) => panic!("{}: `{line}` out of order", self.name),
                (_, Some(passage)) if is_new => passage.new.push(line),
                (_, open) => {
                    self.stub.push_str(&line);
                    self.stub.push('\n');
                    last.clone_from(&line);
                    if let Some(passage) = open {
                        passage.old.push(line);
                    }
                }
            }
        }
        assert!(passage.is_none(), "{}: a passage without `{END}`", self.name);
    }

    fn check(&self) {
        let Self { name, stub, .. } = self;
        let solution = self.solved(|passage| passage.new.clone());
        assert!(self.passages.len() >= 2, "{name}: fewer than two passages");
        for passage in &self.passages {
            let old = passage.old.join("\n");
            assert!(
                !old.is_empty() && stub.matches(&old).count() == 1,
                "{name}: not once in the stub: {old}"
            );
            assert!(passage.old != passage.new, "{name}: nothing changes: {old}");
            assert!(passage.at + old.len() + 1 < stub.len(), "{name}: the file ends with a passage: {old}");
        }
        for anchor in [self.first_line(), &self.anchor] {
            let is_one = |text: &str| text.lines().filter(|line| line.contains(anchor)).count() == 1;
            assert!(
                !anchor.is_empty() && is_one(stub) && is_one(&solution),
                "{name}: no place to type: {anchor:?}"
            );
        }
    }

    /// The first line, behind which the user types too.
    pub(super) fn first_line(&self) -> &str {
        self.stub.lines().next().unwrap_or_default()
    }

    /// The text with each passage as `lines` gives it.
    pub(super) fn solved(&self, lines: impl Fn(&Passage) -> Vec<String>) -> String {
        let (mut text, mut end) = (String::new(), 0);
        for passage in &self.passages {
            text.push_str(&self.stub[end..passage.at]);
            text.push_str(&lines(passage).join("\n"));
            end = passage.at + passage.old.join("\n").len();
        }
        text + &self.stub[end..]
    }

    /// The name of its file.
    pub(super) fn file(&self) -> String {
        format!("{}.{}", self.name, self.language.ending())
    }

    /// A text of it with the file's line breaks.
    pub(super) fn on_disk(&self, text: &str) -> String {
        if self.has_crlf { text.replace('\n', "\r\n") } else { text.to_owned() }
    }
}

/// A line with a tab for each four spaces it begins with.
fn tabbed(line: &str) -> String {
    let body = line.trim_start_matches(' ');
    let blanks = line.len() - body.len();
    "\t".repeat(blanks / 4) + &" ".repeat(blanks % 4) + body
}
