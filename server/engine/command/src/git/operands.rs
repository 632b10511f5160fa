//! Which files git's operands mean, for commands that show something of them.
//!
//! Rule: whatever git could take for a path counts as one that is read, also behind a revision (`HEAD:path`); a value is
//! passed over only where git itself would take no path. What git expands on its own is not known.

use super::{GLOBS, Invocation};
use crate::options::OptionTable;
use crate::place::{self, WorkingFolder};
use crate::{CommandWord, FileAccess, FileTouch, TouchedPath};

/// Commands that show the content of files.
const SHOWING: [&str; 14] = [
    "diff",
    "log",
    "show",
    "blame",
    "annotate",
    "grep",
    "cat-file",
    "whatchanged",
    "diff-tree",
    "diff-index",
    "diff-files",
    "range-diff",
    "reflog",
    "stash",
];

/// Commands that show names of files, or what became of them.
const NAMING: [&str; 12] = [
    "status",
    "ls-files",
    "ls-tree",
    "rev-parse",
    "rev-list",
    "shortlog",
    "merge-base",
    "name-rev",
    "check-ignore",
    "check-attr",
    "show-branch",
    "cherry",
];

/// The output of a command about its files.
#[derive(Clone, Copy, PartialEq, Eq)]
enum OutputDetail {
    Content,
    Names,
}

/// Collects the files of one command.
struct FileCollector<'a> {
    shown: OutputDetail,
    place: &'a WorkingFolder,
    found: Vec<FileTouch>,
}

/// The files that a git command reads by its operands.
pub(super) fn touches(git: &Invocation<'_>, place: &WorkingFolder) -> Vec<FileTouch> {
    let mut operands = FileCollector { shown: OutputDetail::Names, place, found: Vec::new() };
    for folder in &git.folders {
        operands.add(place::locate(folder, place));
    }
    let place = git.place(place);
    operands.place = &place;
    operands.shown = match git.verb.map(|verb| verb.text.as_str()) {
        Some(verb) if SHOWING.contains(&verb) => OutputDetail::Content,
        Some(verb) if NAMING.contains(&verb) => OutputDetail::Names,
        Some(_) | None => return operands.found,
    };
    let stashes =
        git.is("stash") && !git.arguments.first().is_some_and(|word| matches!(&*word.text, "list" | "show"));
    if !stashes {
        operands.of_command(git);
    }
    operands.found
}

impl FileCollector<'_> {
    fn of_command(&mut self, git: &Invocation<'_>) {
        let verb = git.verb.map_or("", |verb| verb.text.as_str());
        let arguments = git.arguments;
        // The first `--` ends what could be an option, even where it represents a value.
        let end = arguments.iter().position(|word| word.text == "--").unwrap_or(arguments.len());
        let (head, paths) = arguments.split_at(end);
        let understood = git.known().is_some_and(|known| is_understood(known, head));
        let before = self.found.len();
        let operands = match verb {
            "grep" if understood => behind_pattern(head),
            _ if understood => behind_values(verb, head),
            _ => head.to_vec(),
        };
        for word in &operands {
            match word.text.strip_prefix('-') {
                // `-L1,5:file`, and the values of options that are not known.
                Some(option) => {
                    self.behind_colons(word);
                    let value = option.split_once('=').filter(|_| !understood);
                    value.into_iter().for_each(|(_, value)| self.operand(&with(word, value)));
                }
                None => self.operand(word),
            }
        }
        paths.iter().skip(1).for_each(|word| self.operand(word));
        if verb == "grep" && self.found.len() == before {
            self.operand(&CommandWord::literal("."));
        }
        let reports_little = || head.iter().any(|word| matches!(word.text.as_str(), "-t" | "-s" | "-e"));
        if verb == "cat-file" && !reports_little() {
            // The name of an object does not tell which file it is the content of.
            let named = head.iter().filter(|word| is_object(&word.text));
            named.for_each(|word| self.add(TouchedPath::Unknown(word.text.clone())));
        }
    }

    fn operand(&mut self, word: &CommandWord) {
        let text = word.text.as_str();
        if text.is_empty() || place::is_harmless(text) || text == "-" {
            return;
        }
        if !word.literal || text.starts_with(':') {
            self.add(TouchedPath::Unknown(text.to_owned()));
        } else {
            self.path(word);
        }
        self.behind_colons(word);
    }

    /// The paths in `revision:path`, wherever the revision ends.
    fn behind_colons(&mut self, word: &CommandWord) {
        for (at, _) in word.text.match_indices(':') {
            let path = &word.text[at + 1..];
            if path.is_empty() || place::is_harmless(path) {
                continue;
            }
            self.path(&with(word, path));
            // Such a path begins where the repository does, and after a `cd` that is somewhere above.
            if self.place.by_name && !path.starts_with("./") && !path.starts_with("../") {
                self.add(TouchedPath::Unknown(word.text.clone()));
            }
        }
    }

    /// A path in which git itself expands patterns.
    fn path(&mut self, word: &CommandWord) {
        let Some(glob) = word.text.find(GLOBS) else {
            return self.add(place::locate(word, self.place));
        };
        match self.shown {
            OutputDetail::Content => self.add(TouchedPath::Unknown(word.text.clone())),
            OutputDetail::Names => {
                let folder = word.text[..glob].rfind('/').map_or(".", |end| &word.text[..=end]);
                self.add(place::locate(&with(word, folder), self.place));
            }
        }
    }

    fn add(&mut self, path: TouchedPath) {
        self.found.push(FileTouch { access: FileAccess::Read, path, redirected: false, recursive: false });
    }
}

fn with(word: &CommandWord, text: &str) -> CommandWord {
    CommandWord { text: text.to_owned(), ..word.clone() }
}

/// Whether every option is listed, also those that stand where a value could.
pub(super) fn is_understood(known: OptionTable, arguments: &[CommandWord]) -> bool {
    let end = arguments.iter().position(|word| word.text == "--").unwrap_or(arguments.len());
    let mut options = arguments[..end].iter().filter(|word| word.open || word.text.starts_with('-'));
    known.split(arguments).known && options.all(|word| known.split(std::slice::from_ref(word)).known)
}

/// The words but the values of options that always take one and are no files.
fn behind_values(verb: &str, head: &[CommandWord]) -> Vec<CommandWord> {
    let takes_value = |option: &str| match verb {
        "log" | "show" | "whatchanged" | "reflog" | "rev-list" | "shortlog" => {
            matches!(option, "-G" | "-S" | "--grep" | "--author" | "--since" | "--until" | "--after")
                || option == "--before"
        }
        "diff" => matches!(option, "-G" | "-S"),
        "blame" => option == "-L",
        _ => false,
    };
    let mut words = head.iter();
    let mut operands = Vec::new();
    while let Some(word) = words.next() {
        if verb == "log" && word.text == "-L" {
            // The file follows a colon.
            operands.extend(words.next().map(|value| with(value, &format!("-L{}", value.text))));
        } else if takes_value(&word.text) {
            let _ = words.next();
        } else {
            operands.push(word.clone());
        }
    }
    operands
}

/// The words of `git grep` but its patterns and numbers.
fn behind_pattern(head: &[CommandWord]) -> Vec<CommandWord> {
    let mut words = head.iter();
    let mut operands = Vec::new();
    let mut has_pattern = false;
    while let Some(word) = words.next() {
        let cluster = word.text.strip_prefix('-').filter(|cluster| !cluster.starts_with('-'));
        let option = cluster.and_then(|cluster| cluster.find(['e', 'A', 'B', 'C']).map(|at| (cluster, at)));
        if let Some((cluster, at)) = option {
            has_pattern |= cluster[at..].starts_with('e');
            if at + 1 == cluster.len() {
                let _ = words.next();
            }
        } else if !word.text.starts_with('-') {
            operands.push(word.clone());
        }
    }
    operands.into_iter().skip(usize::from(!has_pattern)).collect()
}

/// Whether a word names an object by its hash, whatever follows (`1234^{blob}`).
fn is_object(text: &str) -> bool {
    const SHORTEST: usize = 4;
    let hash = text.split(['^', '~']).next().unwrap_or(text);
    hash.len() >= SHORTEST && hash.bytes().all(|byte| byte.is_ascii_hexdigit())
}
