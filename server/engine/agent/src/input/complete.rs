//! The completions of the word at the cursor of a prompt: files and folders after `@`, commands and skills after `/`,
//! those that are built in among them.
//!
//! Rule: the list of files is made beside everything else, is bounded, and is at most some seconds old; a question is
//! answered from the list there is.

use std::cmp::Reverse;
use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use ignore::WalkBuilder;
use tokio::time::Instant;

use kode_base::blocking;
use kode_base::paths::{AbsPath, slashed};
use kode_base::vcs::is_vcs_folder;
use kode_config::command::{BUILT_INS, BuiltInCommand, CommandEffect};
use kode_config::extension::{Catalog, Extension, ExtensionKind};
use kode_config::ignore_files::IgnoreLook;

/// The most answers.
pub const MAX_ITEMS: usize = 50;

/// The most answers that are resources of MCP servers.
const MAX_RESOURCES: usize = 10;

/// The most files that are known of one workspace.
const MAX_FILES: usize = 200_000;

/// The most age of a list of files.
const MAX_AGE: Duration = Duration::from_secs(10);

/// The most workspaces with a list.
const MAX_LISTS: usize = 8;

/// The kinds of completions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CompletionKind {
    /// A file.
    File,
    /// A folder.
    Folder,
    /// Diagnostics.
    Diagnostics,
    /// A diff of the repository.
    Diff,
    /// Another conversation.
    Session,
    /// A command.
    Command,
    /// A skill.
    Skill,
}

/// Something that can be meant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Completion {
    /// The kind.
    pub kind: CompletionKind,
    /// As it is shown.
    pub label: String,
    /// The inserted text, its `@` or `/` included.
    pub insert: String,
    /// More about it; may be empty.
    pub detail: String,
}

/// The word at a cursor, where it is one to complete.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CursorWord<'a> {
    /// The byte of the text it begins at, its `@` or `/` included.
    pub start: usize,
    /// `@` or `/`.
    pub sign: char,
    /// The typed part of it.
    pub typed: &'a str,
}

/// The sources of completions other than files.
#[derive(Clone, Debug, Default)]
pub struct CompletionSources {
    /// The workspace folders; paths are relative to the first.
    pub roots: Vec<AbsPath>,
    /// The files that are open.
    pub open: Vec<AbsPath>,
    /// Titles and ids of other conversations, newest first.
    pub sessions: Vec<(String, String)>,
    /// The resources of MCP servers: server, address and name.
    pub resources: Vec<(String, String)>,
    /// Skills and commands of files.
    pub catalog: Arc<Catalog>,
    /// Prompts of MCP servers: the command and its description.
    pub prompts: Vec<(String, String)>,
    /// Whether the editor publishes diagnostics.
    pub can_diagnose: bool,
    /// Whether files that git ignores are offered too.
    pub shows_ignored: bool,
    /// Names of ignore files that do not count.
    pub disabled_ignore_files: Vec<String>,
}

/// The lists of files of workspaces.
#[derive(Debug, Default)]
pub struct Completer {
    lists: Mutex<FileLists>,
}

/// When a list of files was made, and the list, by the first folder of the workspace and whether ignored files are in it.
type FileLists = HashMap<(AbsPath, bool), (Instant, Arc<Vec<String>>)>;

/// The word before the cursor, the byte `cursor` of a text; `None` when there is nothing to complete.
#[must_use]
pub fn word_at(text: &str, cursor: usize) -> Option<CursorWord<'_>> {
    let before = text.get(..cursor)?;
    let start = before
        .rfind(char::is_whitespace)
        .map_or(0, |at| at + before[at..].chars().next().map_or(1, char::len_utf8));
    let word = &before[start..];
    if let Some(typed) = word.strip_prefix('/').filter(|_| before[..start].trim().is_empty()) {
        return Some(CursorWord { start, sign: '/', typed });
    }
    let at = word.rfind('@')?;
    let is_begin = word[..at].chars().next_back().is_none_or(|char| "([{\"'`,;:<".contains(char));
    is_begin.then(|| CursorWord { start: start + at, sign: '@', typed: &word[at + 1..] })
}

impl Completer {
    /// The completions of a word, best first.
    pub async fn complete(&self, word: CursorWord<'_>, known: &CompletionSources) -> Vec<Completion> {
        match word.sign {
            '/' => commands(word.typed, known),
            _ => self.mentions(word.typed, known).await,
        }
    }

    async fn mentions(&self, typed: &str, known: &CompletionSources) -> Vec<Completion> {
        let mut found = Vec::new();
        let fixed = [
            (
                CompletionKind::Diagnostics,
                "diagnostics",
                "problems that language servers report",
                known.can_diagnose,
            ),
            (CompletionKind::Diff, "diff", "changes since the last commit", true),
            (CompletionKind::Diff, "diff:staged", "the staged changes", true),
        ];
        for (kind, label, detail, is_there) in fixed {
            if is_there && label.starts_with(typed) {
                let (label, insert, detail) = (label.to_owned(), format!("@{label}"), detail.to_owned());
                found.push(Completion { kind, label, insert, detail });
            }
        }
        let lower = typed.to_lowercase();
        let fits = |(address, name): &&(String, String)| {
            !lower.is_empty()
                && (address.to_lowercase().contains(&lower) || name.to_lowercase().contains(&lower))
        };
        found.extend(known.resources.iter().filter(fits).take(MAX_RESOURCES).map(|(address, name)| {
            Completion {
                kind: CompletionKind::File,
                label: address.clone(),
                insert: format!("@{address}"),
                detail: name.clone(),
            }
        }));
        if let Some(wanted) = typed.strip_prefix("session:") {
            let wanted = wanted.trim_start_matches('"').to_lowercase();
            let fits = |title: &str| title.to_lowercase().contains(&wanted);
            let sessions = known.sessions.iter().filter(|(title, id)| fits(title) || id.starts_with(&wanted));
            found.extend(sessions.map(|(title, id)| Completion {
                kind: CompletionKind::Session,
                label: title.clone(),
                insert: format!("@session:{id}"),
                detail: id.clone(),
            }));
        } else {
            let (open, disabled) = (known.open.clone(), known.disabled_ignore_files.clone());
            let open = blocking(move || {
                let ignored = IgnoreLook::without(&disabled);
                open.into_iter().filter(|path| ignored.denies(path.as_path()).is_none()).collect::<Vec<_>>()
            });
            let open = open.await;
            let open: BTreeSet<String> = open.iter().filter_map(|path| shown(path, &known.roots)).collect();
            let files = self.files(known).await;
            let typed = typed.trim_start_matches('"').to_owned();
            let room = MAX_ITEMS.saturating_sub(found.len());
            found.extend(blocking(move || best(&typed, &open, &files, room)).await);
        }
        found.truncate(MAX_ITEMS);
        found
    }

    /// The files and folders of a workspace, the latter with a slash at their end.
    async fn files(&self, known: &CompletionSources) -> Arc<Vec<String>> {
        let (roots, shows_ignored) = (&known.roots, known.shows_ignored);
        let disabled = known.disabled_ignore_files.clone();
        let Some(first) = roots.first() else { return Arc::default() };
        let first = (first.clone(), shows_ignored);
        let known = self.lists().get(&first).cloned();
        if let Some((at, files)) = &known
            && at.elapsed() < MAX_AGE
        {
            return Arc::clone(files);
        }
        let of = roots.to_vec();
        let files = Arc::new(blocking(move || list(&of, shows_ignored, &disabled)).await);
        let mut lists = self.lists();
        if lists.len() >= MAX_LISTS && !lists.contains_key(&first) {
            lists.clear();
        }
        lists.insert(first, (Instant::now(), Arc::clone(&files)));
        files
    }

    fn lists(&self) -> MutexGuard<'_, FileLists> {
        self.lists.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn commands(typed: &str, known: &CompletionSources) -> Vec<Completion> {
    let catalog = &known.catalog;
    let offered = BUILT_INS.iter().filter(|built_in| built_in.effect != CommandEffect::Elsewhere);
    let built_in = offered.map(|built_in| Completion {
        kind: CompletionKind::Command,
        label: format!("/{}", built_in.name),
        insert: format!("/{} ", built_in.name),
        detail: built_in.description.to_owned(),
    });
    let reached = |one: &&Extension| catalog.typed(&one.name).is_some_and(|typed| typed.path == one.path);
    let of_files = catalog.all().filter(reached).filter(|one| BuiltInCommand::find(&one.name).is_none());
    let of_files = of_files.map(|extension| Completion {
        kind: match extension.kind {
            ExtensionKind::Skill => CompletionKind::Skill,
            ExtensionKind::Command => CompletionKind::Command,
        },
        label: format!("/{}", extension.name),
        insert: format!("/{} ", extension.name),
        detail: extension.listing.chars().take(200).collect(),
    });
    let typed = typed.to_lowercase();
    let of_servers = known.prompts.iter().map(|(command, description)| Completion {
        kind: CompletionKind::Command,
        label: format!("/{command}"),
        insert: format!("/{command} "),
        detail: description.chars().take(200).collect(),
    });
    let fitting = built_in.chain(of_files).chain(of_servers).filter_map(|found| {
        let score = score(&typed, found.label.trim_start_matches('/'))?;
        Some((Reverse(score), found))
    });
    let mut found: Vec<_> = fitting.collect();
    found.sort_by(|a, b| (a.0, &a.1.label).cmp(&(b.0, &b.1.label)));
    found.into_iter().map(|(_, completion)| completion).take(MAX_ITEMS).collect()
}

/// The files and folders beneath the roots, as mentions name them.
fn list(roots: &[AbsPath], shows_ignored: bool, disabled: &[String]) -> Vec<String> {
    let (mut found, mut folders) = (Vec::new(), BTreeSet::new());
    let ignored = Arc::new(IgnoreLook::without(disabled));
    for root in roots {
        let ignored = Arc::clone(&ignored);
        let walk = WalkBuilder::new(root)
            .hidden(false)
            .require_git(false)
            .git_ignore(!shows_ignored)
            .git_exclude(!shows_ignored)
            .git_global(!shows_ignored)
            .filter_entry(move |entry| {
                let is_folder = || entry.file_type().is_some_and(|kind| kind.is_dir());
                let is_denied = || ignored.denies_entry(entry.path(), &is_folder).is_some();
                entry.depth() == 0 || !is_vcs_folder(entry.path()) && !is_denied()
            })
            .build();
        for entry in walk.flatten().filter(|entry| entry.depth() > 0) {
            if found.len() + folders.len() >= MAX_FILES {
                break;
            }
            let Some(path) = AbsPath::new(entry.path()).ok().and_then(|path| shown(&path, roots)) else {
                continue;
            };
            match entry.file_type().is_some_and(|kind| kind.is_dir()) {
                true => drop(folders.insert(format!("{path}/"))),
                false => found.push(path),
            }
        }
    }
    found.extend(folders);
    found
}

/// How a mention names a file: relative to the first folder, else whole.
fn shown(path: &AbsPath, roots: &[AbsPath]) -> Option<String> {
    let relative = roots.first().and_then(|root| path.as_path().strip_prefix(root.as_path()).ok());
    let whole = path.as_path().to_str()?;
    let text = relative.map_or_else(|| whole.to_owned(), slashed);
    (!text.contains(|char: char| char.is_control() || char == '"')).then_some(text)
}

/// The best files and folders for the typed text, open ones first.
fn best(typed: &str, open: &BTreeSet<String>, files: &[String], room: usize) -> Vec<Completion> {
    let lower = typed.to_lowercase();
    let unlisted = open.iter().filter(|path| !files.contains(path));
    let mut scored: Vec<_> = files
        .iter()
        .chain(unlisted)
        .filter_map(|path| {
            Some((Reverse(open.contains(path)), Reverse(score(&lower, path)?), path.len(), path))
        })
        .collect();
    scored.sort_unstable();
    scored.truncate(room);
    let completion = |path: &String| Completion {
        kind: if path.ends_with('/') { CompletionKind::Folder } else { CompletionKind::File },
        label: path.clone(),
        insert: match path.contains(char::is_whitespace) {
            true => format!("@\"{path}\""),
            false => format!("@{path}"),
        },
        detail: if open.contains(path) { "open".to_owned() } else { String::new() },
    };
    scored.into_iter().map(|(.., path)| completion(path)).collect()
}

/// How well the typed text, in lower case, fits a name in which its characters come in the same order; `None` when they
/// do not. Runs, beginnings of words and the last part of a path count for more.
fn score(typed: &str, name: &str) -> Option<u32> {
    let trimmed = name.trim_end_matches('/');
    let last = trimmed.rfind('/').map_or(0, |at| at + 1);
    let in_last = fit(typed, &name[last..]).map(|score| score * 2 + 10);
    in_last.or_else(|| fit(typed, name))
}

fn fit(typed: &str, name: &str) -> Option<u32> {
    let mut wanted = typed.chars().peekable();
    let (mut score, mut run, mut before) = (0, 0, '/');
    for char in name.chars() {
        let Some(next) = wanted.peek() else { break };
        if char.to_lowercase().eq(std::iter::once(*next)) {
            let begins = !before.is_alphanumeric() || (before.is_lowercase() && char.is_uppercase());
            run += 1;
            score += run + if begins { 4 } else { 0 };
            wanted.next();
        } else {
            run = 0;
        }
        before = char;
    }
    wanted.peek().is_none().then_some(score)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_word_at_the_cursor_is_found() {
        let word =
            |text: &'static str| word_at(text, text.len()).map(|word| (word.start, word.sign, word.typed));
        assert_eq!(word("see @src/m"), Some((4, '@', "src/m")));
        assert_eq!(word("/rev"), Some((0, '/', "rev")));
        assert_eq!(word("见 @"), Some((4, '@', "")));
        for none in ["a@b.c", "see /x", "@a b", ""] {
            assert_eq!(word(none), None, "{none}");
        }
        assert_eq!(word_at("ä", 1), None);
    }

    #[tokio::test]
    async fn files_come_by_how_well_they_fit_and_open_ones_first() {
        let folder = tempfile::tempdir().unwrap();
        let root = AbsPath::new(kode_base::paths::real_path(folder.path()).unwrap()).unwrap();
        for file in ["src/main.rs", "src/domain/plan.rs", "target/main.o", "my notes.md", ".git/main"] {
            let path = root.join(file);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, "").unwrap();
        }
        std::fs::write(root.join(".gitignore"), "target\n").unwrap();
        let completer = Completer::default();
        let mut known = CompletionSources { roots: vec![root.clone()], ..CompletionSources::default() };
        let ask = async |typed: &str, known: &CompletionSources| {
            let word = CursorWord { start: 0, sign: '@', typed };
            let found = completer.complete(word, known).await;
            found.into_iter().map(|found| found.insert).collect::<Vec<_>>()
        };
        assert_eq!(ask("main", &known).await, ["@src/main.rs", "@src/domain/", "@src/domain/plan.rs"]);
        assert_eq!(ask("notes", &known).await, ["@\"my notes.md\""]);
        assert_eq!(ask("dif", &known).await[..2], ["@diff", "@diff:staged"]);
        known.open.push(root.join("src/domain/plan.rs"));
        assert_eq!(ask("main", &known).await[0], "@src/domain/plan.rs");
    }

    #[tokio::test]
    async fn built_in_commands_come_with_those_of_files_and_cannot_be_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let root = AbsPath::new(kode_base::paths::real_path(folder.path()).unwrap()).unwrap();
        std::fs::create_dir_all(root.join(".kode/commands")).unwrap();
        for (name, text) in [("compact", "Something else"), ("compare", "Compare two files")] {
            std::fs::write(root.join(format!(".kode/commands/{name}.md")), text).unwrap();
        }
        let catalog = Arc::new(Catalog::load(std::slice::from_ref(&root), None));
        let known = CompletionSources { roots: vec![root], catalog, ..CompletionSources::default() };
        let word = CursorWord { start: 0, sign: '/', typed: "comp" };
        let found = Completer::default().complete(word, &known).await;
        let shown: Vec<_> = found.iter().map(|found| (found.kind, found.insert.as_str())).collect();
        let command = CompletionKind::Command;
        assert_eq!(shown, [(command, "/compact "), (command, "/compare ")]);
        assert!(found[0].detail.contains("summary"), "{}", found[0].detail);
        let word = CursorWord { start: 0, sign: '/', typed: "zz" };
        assert_eq!(Completer::default().complete(word, &known).await, []);
    }
}
