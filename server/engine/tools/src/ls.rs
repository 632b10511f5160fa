//! LS: the content of a folder, as a tree.
//!
//! Rule: never more than [`MAX_ENTRIES`], those nearest to the folder first, with the number of all; memory does not
//! grow with that number. Documents that were never saved are listed where they will be.

use std::collections::BTreeSet;
use std::fs::Metadata;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use async_trait::async_trait;
use futures::FutureExt;
use globset::{GlobBuilder, GlobSet, GlobSetBuilder};
use ignore::{DirEntry, WalkState};
use parking_lot::Mutex;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use crate::walk::{OpenFiles, SearchAnchor, SearchWatch, no_such_place, run_search, walk};
use kode_base::call::{Exposure, ReadCheck, ToolError, ToolErrorKind, ToolKind, Touch};
use kode_base::paths::{AbsPath, Target, slashed};
use kode_text::document::DocumentSnapshot;
use kode_text::workspace::Workspace;
use kode_tool::names::LS;
use kode_tool::{CallAction, CallContext, CallPlan, Tool, ToolFacts, ToolOutput};

/// How many entries are listed at most.
const MAX_ENTRIES: usize = 1_000;
/// The mode of entries that are not on disk.
const UNSAVED_MODE: &str = "(unsaved) ";

/// The arguments of LS.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LsInput {
    /// The folder to list. The working directory if left out.
    #[serde(default)]
    pub path: Option<String>,
    /// Glob patterns of what to leave out, folders with all that is in them, for example `["dist", "*.log"]`.
    #[serde(default)]
    pub ignore: Vec<String>,
    /// A glob pattern that files must match, by name, or by path beneath the folder if it has a `/`.
    #[serde(default)]
    pub pattern: Option<String>,
    /// How many levels to list: 1 is the folder alone. All of them if left out.
    #[serde(default)]
    pub depth: Option<usize>,
    /// Whether to list hidden files and folders too.
    #[serde(default)]
    pub all: bool,
}

/// Lists folders.
#[derive(Clone, Copy, Debug)]
pub struct Ls;

#[async_trait]
impl Tool for Ls {
    type Input = LsInput;

    fn facts(&self) -> ToolFacts {
        ToolFacts {
            name: LS,
            kind: ToolKind::ReadOnly,
            concurrency_safe: true,
            description: "Lists a folder and the entries below it as a tree with mode and size in bytes, at most 1000 \
                entries, the nearest first. Ignored files are left out, and hidden files unless `all` is \
                set. Files that are open in the editor but not saved yet are listed too. Use Glob to find files by \
                name in a large tree.",
        }
    }

    async fn plan(&self, input: LsInput, context: &CallContext) -> Result<CallPlan, ToolError> {
        let folder = folder(input.path.as_deref(), &context.workspace)?;
        if input.depth == Some(0) {
            return Err(invalid(
                "`depth` is 0",
                "Give 1 for the folder alone, or leave `depth` out for all levels.",
            ));
        }
        let filter = ListFilter {
            ignored: globs("ignore", &input.ignore)?,
            pattern: input
                .pattern
                .as_ref()
                .map(|one| globs("pattern", std::slice::from_ref(one)))
                .transpose()?,
            depth: input.depth.unwrap_or(usize::MAX),
            all: input.all,
        };
        let title = format!("List {}", context.workspace.display(&Target::File(folder.clone())));
        let touches = vec![Touch::Read(Target::File(folder.clone()))];
        let run = move |context: CallContext| {
            async move {
                let documents = context.workspace.documents();
                let (root, resolved) = (folder.clone(), context.resolved.clone());
                let may_read = Arc::clone(&context.may_read);
                let search = move |watch: &SearchWatch| {
                    let filter = (filter, &may_read);
                    list(&SearchAnchor::new(&root, &resolved), filter, &documents, watch)
                };
                let listing = run_search(&context, search).await?;
                Ok(report(&folder, &listing))
            }
            .boxed()
        };
        Ok(CallPlan { title, touches, action: CallAction::Run(Box::new(run)) })
    }
}

fn folder(path: Option<&str>, workspace: &Workspace) -> Result<AbsPath, ToolError> {
    let Some(path) = path else { return Ok(workspace.cwd()) };
    let not_a_folder =
        || invalid(format!("`path` is `{path}`, which is not a folder"), "Use Read for a file.");
    let folder = match workspace.resolve(path) {
        Ok(Target::File(folder)) => folder,
        Ok(Target::Untitled(_)) => return Err(not_a_folder()),
        Err(error) => {
            return Err(invalid(format!("`path`: {error}"), "Give a folder, absolute or relative."));
        }
    };
    let is_beneath =
        |document: &DocumentSnapshot| document.path.as_ref().is_some_and(|file| file.is_within(&folder));
    match folder.as_path().metadata() {
        Ok(found) if found.is_dir() => Ok(folder),
        Ok(_) => Err(not_a_folder()),
        Err(_) if workspace.documents().iter().any(is_beneath) => Ok(folder),
        Err(_) => Err(no_such_place(path)),
    }
}

fn invalid(message: impl Into<String>, hint: &str) -> ToolError {
    ToolError::new(ToolErrorKind::InvalidInput, format!("LS: {}", message.into()), hint)
}

/// Patterns that match by name, or by path beneath the folder if they have a slash.
fn globs(field: &str, patterns: &[String]) -> Result<GlobSet, ToolError> {
    let wrong = |pattern: &str, error: &globset::Error| {
        invalid(
            format!("`{field}`: `{pattern}` is not a glob pattern: {}", error.kind()),
            "Put `[` and `]`, `{` and `}` in pairs, or write a backslash before one that is meant literally.",
        )
    };
    let mut set = GlobSetBuilder::new();
    for pattern in patterns {
        let plain = pattern.trim().trim_start_matches("./").trim_end_matches('/');
        if plain.is_empty() {
            return Err(invalid(
                format!("`{field}` holds an empty pattern"),
                "Give a glob pattern such as `*.log`.",
            ));
        }
        let anchored = match plain.strip_prefix('/') {
            Some(anchored) => anchored.to_owned(),
            None if plain.contains('/') => plain.to_owned(),
            None => format!("**/{plain}"),
        };
        let glob = GlobBuilder::new(&anchored).literal_separator(true).empty_alternates(true).build();
        set.add(glob.map_err(|error| wrong(pattern, &error))?);
    }
    set.build().map_err(|error| wrong("", &error))
}

/// The listed entries.
#[derive(Clone, Debug)]
struct ListFilter {
    ignored: GlobSet,
    pattern: Option<GlobSet>,
    depth: usize,
    all: bool,
}

impl ListFilter {
    /// Whether to leave something out, with all that is in it, by its path beneath the folder.
    fn skips(&self, beneath: &Path) -> bool {
        let is_hidden = || beneath.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b"."));
        beneath.components().count() > self.depth
            || (!self.all && is_hidden())
            || self.ignored.is_match(beneath)
    }

    /// Whether to list something that is not left out. Who asks for a pattern asks for no folders but those on the
    /// way to what matches.
    fn keeps(&self, entry: &FolderEntry) -> bool {
        let matches = |pattern: &GlobSet| entry.kind != EntryKind::Folder && pattern.is_match(&entry.path);
        self.pattern.as_ref().is_none_or(matches)
    }
}

/// One entry; in the order of these fields it is decided which entries are the nearest.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct FolderEntry {
    depth: usize,
    /// Beneath the folder that is listed.
    path: PathBuf,
    kind: EntryKind,
    mode: String,
    size: Option<u64>,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum EntryKind {
    Folder,
    File,
    /// A link, and where it leads.
    Link(PathBuf),
}

/// The nearest entries, and how many there are.
#[derive(Debug, Default)]
struct FolderListing {
    entries: BTreeSet<FolderEntry>,
    total: usize,
}

impl FolderListing {
    fn add(&mut self, entry: FolderEntry) {
        self.total += 1;
        self.entries.insert(entry);
        if self.entries.len() > MAX_ENTRIES {
            self.entries.pop_last();
        }
    }
}

fn list(
    anchor: &SearchAnchor,
    (filter, may_read): (ListFilter, &ReadCheck),
    documents: &[DocumentSnapshot],
    watch: &SearchWatch,
) -> FolderListing {
    let root = anchor.root();
    let listing = Mutex::new(FolderListing::default());
    let skips = {
        let (filter, root, may_read) = (filter.clone(), root.clone(), Arc::clone(may_read));
        move |path: &Path, _| {
            path.strip_prefix(&root).is_ok_and(|beneath| filter.skips(beneath)) || !may_name(&may_read, path)
        }
    };
    walk(root, skips, watch, || {
        |found| {
            let entry = found
                .ok()
                .filter(|found| found.depth() > 0)
                .and_then(|found| FolderEntry::found(root, &found));
            if let Some(entry) = entry.filter(|entry| filter.keeps(entry)) {
                listing.lock().add(entry);
            }
            WalkState::Continue
        }
    });
    let mut listing = listing.into_inner();
    let before = listing.entries.len();
    // A link that stood on the way for a moment leads to names elsewhere.
    listing.entries.retain(|entry| anchor.holds(&root.as_path().join(&entry.path)));
    listing.total -= before - listing.entries.len();
    for (path, document) in OpenFiles::beneath(root, documents).never_saved() {
        let Ok(beneath) = path.strip_prefix(root) else { continue };
        let is_left_out = beneath.ancestors().any(|part| !part.as_os_str().is_empty() && filter.skips(part));
        let entry = FolderEntry::unsaved(beneath, EntryKind::File, Some(document.text.len_bytes() as u64));
        if !is_left_out && filter.keeps(&entry) && may_name(may_read, path) {
            listing.add(entry);
        }
    }
    listing.add_parents(root);
    listing
}

/// Whether rules let the model see the name of an entry.
fn may_name(may_read: &ReadCheck, path: &Path) -> bool {
    AbsPath::new(path).is_ok_and(|path| may_read(&Target::File(path), Exposure::Name))
}

impl FolderListing {
    /// Adds the folders that lead to an entry and are not listed themselves. They are not counted.
    fn add_parents(&mut self, root: &AbsPath) {
        let listed = |entry: &&FolderEntry| entry.kind == EntryKind::Folder;
        let listed: BTreeSet<PathBuf> =
            self.entries.iter().filter(listed).map(|entry| entry.path.clone()).collect();
        let parents = self.entries.iter().flat_map(|entry| entry.path.ancestors().skip(1));
        let missing: BTreeSet<PathBuf> = parents
            .filter(|folder| !folder.as_os_str().is_empty() && !listed.contains(*folder))
            .map(Path::to_path_buf)
            .collect();
        for folder in missing {
            let entry = match root.join(&folder).as_path().metadata() {
                Ok(metadata) => FolderEntry::of(&folder, EntryKind::Folder, &metadata),
                Err(_) => FolderEntry::unsaved(&folder, EntryKind::Folder, None),
            };
            self.entries.insert(entry);
        }
    }
}

impl FolderEntry {
    /// The findings of a walk from the root; `None` for entries that vanished meanwhile.
    fn found(root: &AbsPath, found: &DirEntry) -> Option<Self> {
        let metadata = found.metadata().ok()?;
        let kind = match found.file_type()? {
            kind if kind.is_dir() => EntryKind::Folder,
            kind if kind.is_symlink() => EntryKind::Link(std::fs::read_link(found.path()).ok()?),
            _ => EntryKind::File,
        };
        Some(Self::of(found.path().strip_prefix(root).ok()?, kind, &metadata))
    }

    fn of(path: &Path, kind: EntryKind, metadata: &Metadata) -> Self {
        let size = (kind == EntryKind::File).then_some(metadata.len());
        Self { depth: path.components().count(), path: path.to_path_buf(), kind, mode: mode(metadata), size }
    }

    fn unsaved(path: &Path, kind: EntryKind, size: Option<u64>) -> Self {
        let depth = path.components().count();
        Self { depth, path: path.to_path_buf(), kind, mode: UNSAVED_MODE.to_owned(), size }
    }
}

/// Type and rights as `ls` shows them.
#[cfg(unix)]
fn mode(metadata: &Metadata) -> String {
    use std::os::unix::fs::{FileTypeExt, PermissionsExt};
    let kind = metadata.file_type();
    let letter = match () {
        () if kind.is_dir() => 'd',
        () if kind.is_symlink() => 'l',
        () if kind.is_fifo() => 'p',
        () if kind.is_socket() => 's',
        () if kind.is_block_device() => 'b',
        () if kind.is_char_device() => 'c',
        () => '-',
    };
    let bits = metadata.permissions().mode();
    let mut mode = String::from(letter);
    for (at, right) in "rwxrwxrwx".chars().enumerate() {
        mode.push(if bits & (0o400 >> at) == 0 { '-' } else { right });
    }
    mode
}

/// Type and whether it may be written to.
#[cfg(not(unix))]
fn mode(metadata: &Metadata) -> String {
    let letter = if metadata.is_dir() { 'd' } else { '-' };
    let write = if metadata.permissions().readonly() { '-' } else { 'w' };
    format!("{letter}r{write}-------")
}

fn report(folder: &AbsPath, listing: &FolderListing) -> ToolOutput {
    let mut entries: Vec<&FolderEntry> = listing.entries.iter().collect();
    entries.sort_by(|left, right| left.path.cmp(&right.path));
    let mut text = format!("{}\n", shown(&folder.as_path().to_string_lossy()));
    for entry in &entries {
        let size = entry.size.map_or_else(|| "-".to_owned(), |size| size.to_string());
        let name = shown(&entry.path.file_name().unwrap_or_default().to_string_lossy());
        let end = match &entry.kind {
            EntryKind::Folder => "/".to_owned(),
            EntryKind::File => String::new(),
            EntryKind::Link(target) => format!(" -> {}", shown(&target.to_string_lossy())),
        };
        let indent = "  ".repeat(entry.depth);
        text.push_str(&format!("{} {size:>9}{indent}{name}{end}\n", entry.mode));
    }
    let truncated = listing.total > MAX_ENTRIES;
    if listing.total == 0 {
        text.push_str(
            "[Nothing is listed: the folder is empty, or all of it is hidden, ignored or filtered out.]",
        );
    } else if truncated {
        text.push_str(&format!(
            "\n[These are the {MAX_ENTRIES} nearest of {} entries. List a folder of them, or give `depth`, `ignore` or \
             `pattern`, to see others.]",
            listing.total,
        ));
    }
    let display = match listing.total {
        0 => "Nothing".to_owned(),
        1 => "1 entry".to_owned(),
        total => format!("{total} entries"),
    };
    let listed: Vec<_> = entries
        .iter()
        .map(|entry| {
            let kind = match entry.kind {
                EntryKind::Folder => "folder",
                EntryKind::File => "file",
                EntryKind::Link(_) => "link",
            };
            json!({ "path": slashed(&entry.path), "kind": kind, "size": entry.size, "mode": entry.mode.trim() })
        })
        .collect();
    ToolOutput {
        model_text: text.trim_end().to_owned(),
        display,
        structured: Some(json!({
            "folder": folder,
            "entries": listed,
            "totalEntries": listing.total,
            "truncated": truncated,
        })),
        ..ToolOutput::default()
    }
}

/// A name on one line.
fn shown(name: &str) -> String {
    match name.contains(char::is_control) {
        true => name.escape_debug().to_string(),
        false => name.to_owned(),
    }
}

#[cfg(test)]
mod tests;
