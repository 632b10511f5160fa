//! Instruction files: what the user and the project have written down for agents, found and read.
//!
//! Rule: the order is that of the folders, the nearest to the work last; a text is given once, whatever the files are
//! called that have it; a file that cannot be read costs itself alone, and every file that is left out has its reason.

#![expect(clippy::disallowed_methods, reason = "a variable sets the size limit of instruction files")]

mod rules;
mod text;

use std::collections::HashSet;

use globset::{Glob, GlobBuilder, GlobSet, GlobSetBuilder};
use sha2::{Digest, Sha256};

use crate::extension::places::{MANAGED, user_folders};
use kode_base::paths::{AbsPath, real_path, slashed};
use kode_base::{encoding, regular};
use rules::InstructionRule;
use text::{cut_at_line, imports, is_only_imports, without_comments};

/// The most bytes that are given of one file.
pub const MAX_FILE_BYTES: usize = 32 << 10;

/// The most bytes that are given of all files.
pub const MAX_TOTAL_BYTES: usize = 64 << 10;

/// Sets both bounds, in bytes.
pub const MAX_BYTES_VARIABLE: &str = "KODE_PROJECT_DOC_MAX_BYTES";

/// The most bytes of a file that are checked.
const MAX_READ: u64 = 1 << 20;

/// Maximum depth of imports.
const MAX_HOPS: usize = 4;

/// Maximum number of files that are read.
const MAX_FILES: usize = 200;

/// The files of a folder that stand for one another; the first that is there is read.
const AGENTS: [&str; 2] = ["AGENTS.override.md", "AGENTS.md"];

/// The other files of a folder, in order.
const OTHERS: [&str; 5] =
    ["CLAUDE.md", ".claude/CLAUDE.md", "KODE.md", "BLADE.md", ".github/copilot-instructions.md"];

/// The file of a folder that is one user's own.
const LOCAL: &str = "CLAUDE.local.md";

/// The folder of rules, in a folder of settings.
const RULES: &str = "rules";

/// The folders of settings in a project that rules are looked for in.
const WITH_RULES: [&str; 3] = [".kode-ls", ".kode", ".claude"];

/// The owner of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InstructionScope {
    /// The administrator's.
    Managed,
    /// The user's, for all projects.
    User,
    /// The project's.
    Project,
}

/// The outcome of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum InstructionFate {
    /// The model has all of it.
    Given,
    /// The model has the first bytes of it.
    Cut,
    /// The model has nothing of it, for this reason.
    LeftOut(String),
}

/// A file that was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InstructionFile {
    /// The file.
    pub path: AbsPath,
    /// Its owner.
    pub scope: InstructionScope,
    /// How many bytes of it the model has.
    pub bytes: usize,
    /// Its outcome.
    pub fate: InstructionFate,
}

/// Where instruction files are looked for.
#[derive(Clone, Debug)]
pub struct InstructionFolders {
    /// Where the work is done.
    pub cwd: AbsPath,
    /// The workspace folders.
    pub roots: Vec<AbsPath>,
    /// The folders of the user's own files.
    pub user: Vec<AbsPath>,
    /// The folder of the administrator's files.
    pub managed: Option<AbsPath>,
    /// The user's home, for paths that begin with `~`.
    pub home: Option<AbsPath>,
    /// Patterns of files that are left out.
    pub excludes: Vec<String>,
    /// The most bytes of all files, if set.
    pub max_bytes: Option<usize>,
}

/// Says whether a file may be given to the model; if not, why.
pub type FileCheck<'a> = &'a dyn Fn(&AbsPath) -> Result<(), String>;

/// The instructions that were found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Memory {
    text: String,
    loaded: Vec<InstructionFile>,
    problems: Vec<String>,
    folders: Vec<AbsPath>,
    /// Rules that wait for a file that they refer to.
    rules: Vec<InstructionRule>,
}

impl InstructionFolders {
    /// The usual places of a workspace and its user.
    #[must_use]
    pub fn usual(cwd: AbsPath, roots: Vec<AbsPath>, excludes: Vec<String>) -> Self {
        let home = std::env::home_dir().and_then(|home| AbsPath::new(home).ok());
        let user = user_folders(home.as_ref());
        let max_bytes = std::env::var(MAX_BYTES_VARIABLE).ok().and_then(|bytes| bytes.parse().ok());
        Self { cwd, roots, user, managed: AbsPath::new(MANAGED).ok(), home, excludes, max_bytes }
    }

    /// The folders between where the work is done and a file that lies deeper, the nearest to the file last.
    #[must_use]
    pub fn folders_beside(&self, file: &AbsPath) -> Vec<AbsPath> {
        let folder = file.parent().unwrap_or_else(|| file.clone());
        let bases = self.roots.iter().chain([&self.cwd]).filter(|base| folder.is_within(base));
        let Some(base) = bases.max_by_key(|base| base.as_path().components().count()) else {
            return Vec::new();
        };
        let is_deeper = |folder: &AbsPath| folder.is_within(base) && folder != base;
        ancestors(&folder).into_iter().filter(is_deeper).collect()
    }

    /// The repository that the work is done in; else the workspace folder, else the folder itself.
    #[must_use]
    pub fn top(&self) -> AbsPath {
        let has_repository = |folder: &AbsPath| folder.join(".git").as_path().exists();
        let root = || self.roots.iter().find(|root| self.cwd.is_within(root)).cloned();
        ancestors(&self.cwd)
            .into_iter()
            .rev()
            .find(has_repository)
            .or_else(root)
            .unwrap_or_else(|| self.cwd.clone())
    }
}

impl Memory {
    /// Looks for the files and reads them. Blocks on the disk.
    #[must_use]
    pub fn load(places: &InstructionFolders, may_give: FileCheck<'_>) -> Self {
        let mut loader = Loader::new(places, may_give);
        if let Some(managed) = &places.managed {
            loader.folder(managed, InstructionScope::Managed, true);
            loader.rules(&managed.join(RULES), InstructionScope::Managed, &places.top());
        }
        for folder in &places.user {
            loader.folder(folder, InstructionScope::User, true);
            loader.rules(&folder.join(RULES), InstructionScope::User, &places.top());
        }
        let top = places.top();
        for folder in ancestors(&places.cwd) {
            loader.folder(&folder, InstructionScope::Project, folder.is_within(&top));
            if folder.is_within(&top) {
                loader.rules_of_project(&folder);
            }
        }
        for root in places.roots.iter().filter(|root| !places.cwd.is_within(root)) {
            loader.folder(root, InstructionScope::Project, true);
            loader.rules_of_project(root);
        }
        loader.done()
    }

    /// Files that come with the first read of a file: the folders between where the work is done and the file, the
    /// nearest to it last, and the rules that refer to it. Checks no file.
    #[must_use]
    pub fn beside(&self, places: &InstructionFolders, file: &AbsPath) -> Vec<AbsPath> {
        let rules = self.rules.iter().filter(|rule| rule.speaks_of(file)).map(|rule| rule.path.clone());
        places.folders_beside(file).into_iter().chain(rules).collect()
    }

    /// Looks for the files of deeper folders, and reads the named rules, without text that is
    /// `above` already. Blocks on the disk.
    #[must_use]
    pub fn of_folders(
        places: &InstructionFolders,
        may_give: FileCheck<'_>,
        folders: &[AbsPath],
        above: &Self,
    ) -> Self {
        let mut loader = Loader::new(places, may_give);
        let rule = |path: &AbsPath| above.rules.iter().find(|rule| rule.path == *path);
        for loaded in above.loaded.iter().filter(|loaded| rule(&loaded.path).is_none()) {
            loader.paths.insert(loaded.path.clone());
        }
        for folder in folders {
            let before = loader.memory.text.len();
            match rule(folder) {
                Some(rule) => loader.rule(&rule.path, rule.scope, None),
                None => loader.folder(folder, InstructionScope::Project, true),
            }
            if loader.memory.text.len() > before {
                loader.memory.folders.push(folder.clone());
            }
        }
        loader.done()
    }

    /// The text for the model; may be empty.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The files that were found, in the order in which they are given, with what became of each.
    #[must_use]
    pub fn loaded(&self) -> &[InstructionFile] {
        &self.loaded
    }

    /// The deeper folders and the rules that instructions were found for; only those that were looked for beside a file.
    #[must_use]
    pub fn folders(&self) -> &[AbsPath] {
        &self.folders
    }

    /// The remarks for the user.
    #[must_use]
    pub fn problems(&self) -> &[String] {
        &self.problems
    }
}

/// Reads files one after another.
struct Loader<'a> {
    places: &'a InstructionFolders,
    may_give: FileCheck<'a>,
    excludes: GlobSet,
    top: AbsPath,
    /// The files that were come upon, by name and with links followed.
    paths: HashSet<AbsPath>,
    texts: HashSet<[u8; 32]>,
    left: usize,
    memory: Memory,
}

impl<'a> Loader<'a> {
    fn new(places: &'a InstructionFolders, may_give: FileCheck<'a>) -> Self {
        let (excludes, problems) = excludes(&places.excludes);
        Self {
            places,
            may_give,
            excludes,
            top: places.top(),
            paths: HashSet::new(),
            texts: HashSet::new(),
            left: places.max_bytes.unwrap_or(MAX_TOTAL_BYTES),
            memory: Memory { problems, ..Memory::default() },
        }
    }

    fn done(self) -> Memory {
        self.memory
    }

    /// Reads the files of a folder; all that agents know, or those alone that are looked for above a repository.
    fn folder(&mut self, folder: &AbsPath, scope: InstructionScope, all: bool) {
        let is_there = |name: &&str| folder.join(name).as_path().is_file();
        let agents = AGENTS.iter().copied().find(is_there).filter(|_| all);
        let others = OTHERS.iter().copied().filter(|name| all || name.ends_with("CLAUDE.md"));
        for name in agents.into_iter().chain(others).chain([LOCAL]) {
            let path = folder.join(name);
            if path.as_path().is_file() {
                self.file(&path, scope, 0);
            }
        }
    }

    fn rules_of_project(&mut self, folder: &AbsPath) {
        for name in WITH_RULES.map(|name| folder.join(name)) {
            // Where the home folder is open as a workspace, the user's rules are the user's.
            if !self.places.user.contains(&name) {
                self.rules(&name.join(RULES), InstructionScope::Project, folder);
            }
        }
    }

    /// Reads the rules in a folder; those that refer to some files alone are kept for these.
    fn rules(&mut self, folder: &AbsPath, scope: InstructionScope, base: &AbsPath) {
        for path in rules::files(folder) {
            self.rule(&path, scope, Some(base));
        }
    }

    /// Reads a rule; one that refers to some files alone is given only without a `base`.
    fn rule(&mut self, path: &AbsPath, scope: InstructionScope, base: Option<&AbsPath>) {
        let real = real(path);
        if self.memory.loaded.len() >= MAX_FILES || !self.paths.insert(real.clone()) {
            return;
        }
        let read = self.read(path, &real, scope, true).and_then(|text| {
            let (head, body) = rules::split(&text);
            let rule = base.map(|base| InstructionRule::of(path, scope, base, head)).transpose();
            rule.map(|rule| (rule.flatten(), body.to_owned()))
                .map_err(|reason| OmittedFile { reason, is_reported: true })
        });
        match read {
            Ok((Some(rule), _)) => {
                self.memory.rules.push(rule);
                let reason = "it is given with the first file that its `paths` name".to_owned();
                self.note(path, scope, 0, InstructionFate::LeftOut(reason));
            }
            Ok((None, body)) => self.give(path, scope, &body, 0),
            Err(left) => self.leave_out(path, scope, left),
        }
    }

    fn leave_out(
        &mut self,
        path: &AbsPath,
        scope: InstructionScope,
        OmittedFile { reason, is_reported }: OmittedFile,
    ) {
        if is_reported {
            let shown = self.shown(path);
            self.memory.problems.push(format!("The instructions in {shown} are left out: {reason}."));
        }
        self.note(path, scope, 0, InstructionFate::LeftOut(reason));
    }

    fn file(&mut self, path: &AbsPath, scope: InstructionScope, hops: usize) {
        let real = real(path);
        if self.memory.loaded.len() >= MAX_FILES || !self.paths.insert(real.clone()) {
            return;
        }
        match self.read(path, &real, scope, hops == 0) {
            Ok(text) => self.give(path, scope, &text, hops),
            Err(left) => self.leave_out(path, scope, left),
        }
    }

    fn read(
        &self,
        path: &AbsPath,
        real: &AbsPath,
        scope: InstructionScope,
        is_found: bool,
    ) -> Result<String, OmittedFile> {
        let reported = |reason: String| OmittedFile { reason, is_reported: true };
        if self.excludes.is_match(path.as_path()) || self.excludes.is_match(real.as_path()) {
            let reason = "`claudeMdExcludes` names it".to_owned();
            return Err(OmittedFile { reason, is_reported: false });
        }
        (self.may_give)(path).and_then(|()| (self.may_give)(real)).map_err(reported)?;
        let is_of_project = || self.is_of_project(real) || (is_found && self.is_beside(path, real));
        if scope == InstructionScope::Project && !is_of_project() {
            let advice = "import it from a file of your own, such as ~/.kode/AGENTS.md, to allow it";
            return Err(reported(format!("it is outside the workspace; {advice}")));
        }
        let read = regular::read_start_resolved(real.as_path(), MAX_READ);
        let bytes = read.map_err(|error| reported(format!("it cannot be read: {error}")))?;
        if bytes.len() as u64 == MAX_READ {
            return Ok(String::from_utf8_lossy(&bytes).into_owned());
        }
        encoding::decode(&bytes)
            .map(|decoded| decoded.text)
            .map_err(|_| reported("it is not text".to_owned()))
    }

    /// Whether a file lies where a project may point: in the workspace or its repository.
    fn is_of_project(&self, real_path: &AbsPath) -> bool {
        let mut folders = self.places.roots.iter().chain([&self.top, &self.places.cwd]);
        folders.any(|folder| real_path.is_within(folder) || real_path.is_within(&real(folder)))
    }

    /// Whether a file that was found lies, links followed, in the folder it was found in. Not for imports: a project that
    /// names a file of the home folder it lies in has not found it there.
    fn is_beside(&self, path: &AbsPath, real_path: &AbsPath) -> bool {
        let folder = path.parent();
        let folder = folder.and_then(|folder| match folder.file_name().as_str() {
            ".claude" => folder.parent(),
            _ => Some(folder),
        });
        folder.is_some_and(|folder| self.places.cwd.is_within(&folder) && real_path.is_within(&real(&folder)))
    }

    fn give(&mut self, path: &AbsPath, scope: InstructionScope, text: &str, hops: usize) {
        let text = without_comments(text);
        let text = text.trim();
        let imports = imports(text);
        let is_known = !self.texts.insert(Sha256::digest(text.as_bytes()).into());
        if text.is_empty() || is_known {
            let reason = if is_known { "another file says the same" } else { "it is empty" };
            self.note(path, scope, 0, InstructionFate::LeftOut(reason.to_owned()));
        } else if is_only_imports(text) && imports.iter().any(|import| self.import(path, import).is_some()) {
            self.note(path, scope, 0, InstructionFate::LeftOut("it only imports others".to_owned()));
        } else {
            let room = self.places.max_bytes.unwrap_or(MAX_FILE_BYTES).min(self.left);
            let given = cut_at_line(text, room);
            self.left -= given.len();
            let fate = match given.len() {
                0 => InstructionFate::LeftOut("there is no room for more instructions".to_owned()),
                length if length < text.len() => InstructionFate::Cut,
                _ => InstructionFate::Given,
            };
            if fate != InstructionFate::Given {
                let (shown, all) = (self.shown(path), text.len());
                let given = given.len();
                self.memory.problems.push(format!(
                    "Of the instructions in {shown} the first {given} of {all} bytes are used; shorten the files, or set \
                     {MAX_BYTES_VARIABLE}."
                ));
            }
            self.push(path, given, fate == InstructionFate::Cut);
            self.note(path, scope, given.len(), fate);
        }
        if hops >= MAX_HOPS {
            return;
        }
        for import in imports {
            if let Some(found) = self.import(path, &import) {
                self.file(&found, scope, hops + 1);
            }
        }
    }

    /// The file that an import means, if there is one.
    fn import(&self, path: &AbsPath, import: &str) -> Option<AbsPath> {
        let found = match (import.strip_prefix("~/"), &self.places.home) {
            (Some(rest), Some(home)) => home.join(rest),
            (Some(_), None) => return None,
            (None, _) => path.parent()?.join(import),
        };
        found.as_path().is_file().then_some(found)
    }

    fn push(&mut self, path: &AbsPath, text: &str, is_cut: bool) {
        if text.is_empty() {
            return;
        }
        if !self.memory.text.is_empty() {
            self.memory.text.push_str("\n\n");
        }
        // The text of a file must not be able to end its frame.
        let text = text.replace("</instructions", "<\u{200b}/instructions");
        let cut = if is_cut { "\n[The file is longer]" } else { "" };
        let shown = self.shown(path);
        self.memory.text.push_str(&format!("<instructions path=\"{shown}\">\n{text}{cut}\n</instructions>"));
    }

    fn note(&mut self, path: &AbsPath, scope: InstructionScope, bytes: usize, fate: InstructionFate) {
        self.memory.loaded.push(InstructionFile { path: path.clone(), scope, bytes, fate });
    }

    fn shown(&self, path: &AbsPath) -> String {
        let beneath = |folder: &AbsPath| {
            let path = path.as_path().strip_prefix(folder.as_path()).ok()?;
            Some(slashed(path))
        };
        let shown = beneath(&self.places.cwd)
            .or_else(|| self.places.home.as_ref().and_then(beneath).map(|path| format!("~/{path}")))
            .unwrap_or_else(|| path.to_string());
        shown.replace(|char: char| char.is_control() || char == '"', "\u{fffd}")
    }
}

/// Why a file is left out.
pub struct OmittedFile {
    reason: String,
    /// Whether the user is notified, or has asked for it.
    is_reported: bool,
}

/// A folder and those it lies in, the outermost first.
fn ancestors(folder: &AbsPath) -> Vec<AbsPath> {
    let mut folders = vec![folder.clone()];
    while let Some(parent) = folders.last().and_then(AbsPath::parent) {
        folders.push(parent);
    }
    folders.reverse();
    folders
}

/// Where a path leads, links followed.
fn real(path: &AbsPath) -> AbsPath {
    let real = real_path(path).ok().and_then(|real| AbsPath::new(real).ok());
    real.unwrap_or_else(|| path.clone())
}

/// The patterns of files that are left out; invalid ones are reported.
fn excludes(patterns: &[String]) -> (GlobSet, Vec<String>) {
    let (mut set, mut problems) = (GlobSetBuilder::new(), Vec::new());
    for pattern in patterns {
        let anchored = if pattern.starts_with('/') || pattern.starts_with("**/") {
            pattern.clone()
        } else {
            format!("**/{}", pattern.trim_start_matches("./"))
        };
        let glob: Result<Glob, _> = GlobBuilder::new(&anchored).literal_separator(true).build();
        match glob {
            Ok(glob) => drop(set.add(glob)),
            Err(error) => problems.push(format!("`claudeMdExcludes`: {error}.")),
        }
    }
    (set.build().unwrap_or_default(), problems)
}

pub mod spans;
#[cfg(test)]
mod tests;
