//! Glob: files by the pattern of their names.
//!
//! Rule: newest first and never more than [`MAX_FILES`], with the number of all that matched; memory does not
//! grow with that number.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::path::Path;
use std::time::SystemTime;

use async_trait::async_trait;
use futures::FutureExt;
use globset::{GlobBuilder, GlobSet};
use ignore::{DirEntry, WalkState};
use parking_lot::Mutex;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use crate::walk::{
    OpenFiles, SearchAnchor, SearchWatch, no_such_place, result_name, run_search, untitled_name, walk,
    workspace_roots,
};
use kode_base::call::{Exposure, ToolError, ToolErrorKind, ToolKind, Touch};
use kode_base::paths::{AbsPath, Target};
use kode_text::document::DocumentSnapshot;
use kode_text::workspace::Workspace;
use kode_tool::{CallAction, CallContext, CallPlan, Tool, ToolFacts, ToolOutput};

/// How many files are listed at most.
const MAX_FILES: usize = 100;
/// The characters that make a part of a path a pattern.
const WILDCARDS: [char; 5] = ['*', '?', '[', '{', '\\'];

/// The arguments of Glob.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GlobInput {
    /// The glob pattern, for example `**/*.rs`, `src/**/*.{ts,tsx}` or `Cargo.toml`. `*` does not cross `/`, `**`
    /// does. A pattern without `/` matches file names in every folder.
    pub pattern: String,
    /// The folder the pattern starts from. The workspace if left out.
    #[serde(default)]
    pub path: Option<String>,
}

/// Finds files by name.
#[derive(Clone, Copy, Debug)]
pub struct Glob;

#[async_trait]
impl Tool for Glob {
    type Input = GlobInput;

    fn facts(&self) -> ToolFacts {
        ToolFacts {
            name: "Glob",
            kind: ToolKind::ReadOnly,
            concurrency_safe: true,
            description: "Finds files by a glob pattern of their names, most recently modified first, at most 100. \
                Hidden files are found; files that ignore files exclude are not. Files that are open in the editor \
                but not saved yet are found too. Use Grep to find files by what they contain.",
        }
    }

    async fn plan(&self, input: GlobInput, context: &CallContext) -> Result<CallPlan, ToolError> {
        let workspace = &context.workspace;
        let pattern = GlobPattern::parse(&input.pattern)?;
        let bases = bases(&pattern, input.path.as_deref(), workspace)?;
        let everywhere = input.path.is_none() && pattern.folder.is_empty();
        let touches = bases.iter().map(|base| Touch::Read(Target::File(base.clone()))).collect();
        let title = match &input.path {
            Some(path) => format!("Find `{}` in {path}", input.pattern),
            None => format!("Find `{}`", input.pattern),
        };
        let run = move |context: CallContext| {
            async move {
                let (documents, resolved) = (context.workspace.documents(), context.resolved.clone());
                let search = move |watch: &SearchWatch| {
                    let bases = bases.iter().map(|base| SearchAnchor::new(base, &resolved));
                    find(&bases.collect::<Vec<_>>(), &pattern, &documents, everywhere, watch)
                };
                let found = run_search(&context, search).await?;
                Ok(report(found, &context))
            }
            .boxed()
        };
        Ok(CallPlan { title, touches, action: CallAction::Run(Box::new(run)) })
    }
}

/// A pattern, taken apart into the folder it begins with and the pattern beneath it.
#[derive(Clone, Debug)]
struct GlobPattern {
    folder: String,
    matcher: GlobSet,
    by_name: bool,
}

impl GlobPattern {
    fn parse(pattern: &str) -> Result<Self, ToolError> {
        let trimmed = pattern.trim().trim_start_matches("./");
        if trimmed.is_empty() {
            return Err(ToolError::new(
                ToolErrorKind::InvalidInput,
                "The pattern is empty",
                "Give a glob pattern, for example `**/*.rs`.",
            ));
        }
        let (folder, rest) = split(trimmed);
        let rest = if rest.is_empty() { "**" } else { rest };
        let glob = GlobBuilder::new(rest).literal_separator(true).empty_alternates(true).build();
        // One glob alone is compiled in a way that panics where it is too large.
        let matcher = glob.and_then(|glob| GlobSet::builder().add(glob).build()).map_err(|error| {
            ToolError::new(
                ToolErrorKind::InvalidInput,
                format!("`{pattern}` is not a glob pattern: {}", error.kind()),
                "Put `[` and `]`, `{` and `}` in pairs, or write a backslash before one that is meant literally.",
            )
        })?;
        Ok(Self { folder: folder.to_owned(), matcher, by_name: !trimmed.contains('/') })
    }

    /// Whether the pattern says itself where it starts.
    fn is_absolute(&self) -> bool {
        self.folder.starts_with(['/', '~'])
    }

    /// Whether a path beneath `base` matches.
    fn matches(&self, base: &Path, path: &Path) -> bool {
        if self.by_name {
            path.file_name().is_some_and(|name| self.matcher.is_match(name))
        } else {
            path.strip_prefix(base).is_ok_and(|beneath| self.matcher.is_match(beneath))
        }
    }
}

/// Splits a pattern after the last folder before its first wildcard, so that only that folder is walked.
fn split(pattern: &str) -> (&str, &str) {
    let literal = pattern.find(WILDCARDS).map_or(pattern, |wildcard| &pattern[..wildcard]);
    match literal.rfind('/') {
        Some(slash) => pattern.split_at(slash + 1),
        None => ("", pattern),
    }
}

/// The folders the pattern starts from.
fn bases(
    pattern: &GlobPattern,
    path: Option<&str>,
    workspace: &Workspace,
) -> Result<Vec<AbsPath>, ToolError> {
    let file = |path: &str| match workspace.resolve(path) {
        Ok(Target::File(path)) => Ok(path),
        Ok(Target::Untitled(uri)) => Err(not_a_folder(&uri)),
        Err(error) => Err(ToolError::new(
            ToolErrorKind::InvalidInput,
            error.to_string(),
            "Give a folder, absolute or relative to the working directory.",
        )),
    };
    if pattern.is_absolute() {
        return Ok(vec![file(&pattern.folder)?]);
    }
    let Some(path) = path else {
        return Ok(workspace_roots(workspace).iter().map(|root| root.join(&pattern.folder)).collect());
    };
    let folder = file(path)?;
    if folder.as_path().is_file() {
        return Err(not_a_folder(path));
    }
    let holds_documents = || {
        let documents = workspace.documents();
        documents.iter().filter_map(|document| document.path.as_ref()).any(|file| file.is_within(&folder))
    };
    if !folder.as_path().exists() && !holds_documents() {
        return Err(no_such_place(path));
    }
    Ok(vec![folder.join(&pattern.folder)])
}

fn not_a_folder(path: &str) -> ToolError {
    ToolError::new(
        ToolErrorKind::InvalidInput,
        format!("`{path}` is not a folder"),
        "Give the folder to search as `path` and the names to find as `pattern`.",
    )
}

/// The files found: the newest of them, and how many there were.
#[derive(Debug, Default)]
struct GlobMatches {
    /// A heap whose top is the oldest.
    newest: BinaryHeap<Reverse<FoundFile>>,
    total: usize,
}

/// Ordered by time of modification, newest last, and where that is the same by name, last name first.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct FoundFile {
    modified: SystemTime,
    target: Reverse<Target>,
}

impl GlobMatches {
    /// Counts a file, and asks what it is called if it is one of the newest so far.
    fn add(&mut self, modified: SystemTime, target: impl FnOnce() -> Target) {
        self.total += 1;
        let oldest = self.newest.peek().filter(|_| self.newest.len() == MAX_FILES);
        if oldest.is_some_and(|Reverse(oldest)| modified < oldest.modified) {
            return;
        }
        let target = target();
        self.newest.push(Reverse(FoundFile { modified, target: Reverse(target) }));
        if self.newest.len() > MAX_FILES {
            self.newest.pop();
        }
    }
}

fn find(
    anchors: &[SearchAnchor],
    pattern: &GlobPattern,
    documents: &[DocumentSnapshot],
    with_untitled: bool,
    watch: &SearchWatch,
) -> GlobMatches {
    let found = Mutex::new(GlobMatches::default());
    for base in anchors.iter().map(SearchAnchor::root) {
        let add = |path: &Path, modified| {
            let mut found = found.lock();
            found.add(modified, || Target::File(base.join(path)));
        };
        let is_match = |path: &Path| pattern.matches(base.as_path(), path);
        walk(
            base,
            |_, _| false,
            watch,
            || {
                |entry| {
                    let Ok(entry) = entry else { return WalkState::Continue };
                    if is_match(entry.path())
                        && let Some(modified) = file_modified(&entry)
                    {
                        add(entry.path(), modified);
                    }
                    WalkState::Continue
                }
            },
        );
    }
    let mut found = found.into_inner();
    let before = found.newest.len();
    // A link that stood on the way for a moment leads to names elsewhere.
    found.newest.retain(|Reverse(FoundFile { target: Reverse(target), .. })| {
        target.file().is_none_or(|path| anchors.iter().all(|anchor| anchor.holds(path.as_path())))
    });
    found.total -= before - found.newest.len();
    for base in anchors.iter().map(SearchAnchor::root) {
        for (path, _) in OpenFiles::beneath(base, documents).never_saved() {
            if pattern.matches(base.as_path(), path) {
                found.add(SystemTime::now(), || Target::File(base.join(path)));
            }
        }
    }
    if with_untitled {
        for document in documents.iter().filter(|document| document.path.is_none()) {
            if pattern.matches(Path::new(""), Path::new(untitled_name(&document.uri))) {
                found.add(SystemTime::now(), || document.target());
            }
        }
    }
    found
}

/// When a file, or the file a link leads to, was modified; `None` for anything but files.
fn file_modified(entry: &DirEntry) -> Option<SystemTime> {
    let kind = entry.file_type()?;
    if kind.is_dir() {
        return None;
    }
    let metadata = if kind.is_symlink() { entry.path().metadata().ok()? } else { entry.metadata().ok()? };
    metadata.is_file().then(|| metadata.modified().unwrap_or(SystemTime::UNIX_EPOCH))
}

fn report(found: GlobMatches, context: &CallContext) -> ToolOutput {
    let GlobMatches { newest, mut total } = found;
    let workspace = &context.workspace;
    let mut newest = newest.into_sorted_vec();
    let listed = newest.len();
    newest.retain(|Reverse(FoundFile { target: Reverse(target), .. })| {
        (context.may_read)(target, Exposure::Name)
    });
    total -= listed - newest.len();
    let files: Vec<String> = newest
        .into_iter()
        .map(|Reverse(FoundFile { target: Reverse(target), .. })| result_name(workspace, &target))
        .collect();
    let truncated = files.len() < total;
    let mut model_text = files.join("\n");
    if files.is_empty() {
        model_text.push_str("No files found");
    } else if truncated {
        model_text.push_str(&format!(
            "\n\n[These are the {} most recently modified of {total} files. Narrow the pattern or the path to see others.]",
            files.len(),
        ));
    }
    let display = match total {
        0 => "No files found".to_owned(),
        1 => "1 file".to_owned(),
        _ => format!("{total} files"),
    };
    ToolOutput {
        model_text,
        display,
        structured: Some(json!({ "files": files, "totalFiles": total, "truncated": truncated })),
        ..ToolOutput::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Fixture;

    fn fixture(files: &[&str]) -> Fixture {
        let fixture = Fixture::new();
        for (age, path) in files.iter().enumerate() {
            fixture.write(path, "");
            fixture.set_modified(path, 1_000_000 - age as u64);
        }
        fixture
    }

    #[tokio::test]
    async fn patterns_match_names_or_paths() {
        let files = ["main.rs", "src/lib.rs", "src/a/b.rs", "src/a/c.ts", ".github/ci.yml", "[x]/d.md"];
        let fixture = fixture(&files);
        let outside = fixture.root().join("src/a");
        let cases = [
            ("*.rs", None, "main.rs\nsrc/lib.rs\nsrc/a/b.rs"),
            ("./**/*.rs", None, "main.rs\nsrc/lib.rs\nsrc/a/b.rs"),
            ("src/*.rs", None, "src/lib.rs"),
            ("src/**/*.{rs,ts}", None, "src/lib.rs\nsrc/a/b.rs\nsrc/a/c.ts"),
            ("src/lib.rs", None, "src/lib.rs"),
            ("src/", None, "src/lib.rs\nsrc/a/b.rs\nsrc/a/c.ts"),
            ("lib.rs", Some("src"), "src/lib.rs"),
            ("a/../a/?.ts", Some("src"), "src/a/c.ts"),
            ("../*.rs", Some("src"), "main.rs"),
            (&format!("{outside}/*.ts"), Some("nowhere"), "src/a/c.ts"),
            ("*.yml", None, ".github/ci.yml"),
            ("\\[x\\]/*", None, "[x]/d.md"),
            ("*.py", None, "No files found"),
            ("nowhere/*", None, "No files found"),
        ];
        for (pattern, path, expected) in cases {
            let found = fixture.text(Glob, json!({ "pattern": pattern, "path": path })).await;
            assert_eq!(found, expected, "{pattern} in {path:?}");
        }
    }

    #[tokio::test]
    async fn the_newest_come_first_and_what_is_left_out_is_counted() {
        let files: Vec<String> = (0..MAX_FILES + 5).map(|number| format!("{number:03}.txt")).collect();
        let fixture = fixture(&files.iter().map(String::as_str).collect::<Vec<_>>());
        let found = fixture.run(Glob, json!({ "pattern": "*.txt" })).await.unwrap();
        let lines: Vec<&str> = found.model_text.lines().collect();
        assert_eq!(lines[..MAX_FILES], files[..MAX_FILES]);
        assert!(lines.last().unwrap().contains("100 most recently modified of 105 files"), "{lines:?}");
        let structured = found.structured.unwrap();
        assert_eq!((&structured["totalFiles"], &structured["truncated"]), (&json!(105), &json!(true)));
    }

    #[tokio::test]
    async fn ignored_files_and_version_control_folders_are_left_out() {
        let fixture = fixture(&["kept.rs", "target/made.rs", ".git/hook.rs"]);
        fixture.write(".gitignore", "target\n");
        assert_eq!(fixture.text(Glob, json!({ "pattern": "*.rs" })).await, "kept.rs");
        assert_eq!(fixture.text(Glob, json!({ "pattern": "target/*.rs" })).await, "target/made.rs");
    }

    #[tokio::test]
    async fn links_to_files_are_listed_and_links_to_folders_and_nowhere_are_not() {
        let fixture = fixture(&["folder/file"]);
        for (link, leads_to) in [("to-file", "folder/file"), ("to-folder", "folder"), ("to-nowhere", "gone")]
        {
            std::os::unix::fs::symlink(leads_to, fixture.root().join(link)).unwrap();
        }
        fixture.set_modified("folder/file", 1);
        assert_eq!(fixture.text(Glob, json!({ "pattern": "**" })).await, "folder/file\nto-file");
    }

    #[tokio::test]
    async fn documents_that_were_never_saved_are_found() {
        let mut fixture = fixture(&["src/old.rs"]);
        fixture.open("src/old.rs", "changed");
        fixture.open("src/new.rs", "typed");
        fixture.open(".git/new.rs", "typed");
        fixture.open_untitled("scratch.rs", "typed");
        let found = fixture.text(Glob, json!({ "pattern": "*.rs" })).await;
        let mut found: Vec<&str> = found.lines().collect();
        assert_eq!(found.pop(), Some("src/old.rs"));
        found.sort_unstable();
        assert_eq!(found, ["src/new.rs", "untitled:scratch.rs"]);
        assert_eq!(fixture.text(Glob, json!({ "pattern": "src/n*" })).await, "src/new.rs");
    }

    #[tokio::test]
    async fn arguments_that_cannot_work_are_refused_with_the_reason() {
        let fixture = fixture(&["file"]);
        let cases = [
            (json!({ "pattern": "a[b" }), ToolErrorKind::InvalidInput, "`a[b` is not a glob pattern"),
            (json!({ "pattern": " " }), ToolErrorKind::InvalidInput, "empty"),
            (json!({ "pattern": "*", "path": "gone" }), ToolErrorKind::NotFound, "`gone` does not exist"),
            (
                json!({ "pattern": "*", "path": "file" }),
                ToolErrorKind::InvalidInput,
                "`file` is not a folder",
            ),
            (json!({ "pattern": "*", "path": "untitled:1" }), ToolErrorKind::InvalidInput, "not a folder"),
        ];
        for (input, kind, message) in cases {
            let error = fixture.plan(Glob, input).await.unwrap_err();
            assert_eq!(error.kind, kind);
            assert!(error.message.contains(message) && !error.hint.is_empty(), "{error:?}");
        }
    }

    #[tokio::test]
    async fn the_folder_that_is_walked_is_declared() {
        let fixture = fixture(&[]);
        let plan = fixture.plan(Glob, json!({ "pattern": "src/**/*.rs" })).await.unwrap();
        assert_eq!(plan.touches, [Touch::Read(Target::File(fixture.root().join("src")))]);
        let plan = fixture.plan(Glob, json!({ "pattern": "/etc/*.conf" })).await.unwrap();
        assert_eq!(plan.touches, [Touch::Read(Target::File(AbsPath::new("/etc").unwrap()))]);
    }

    #[tokio::test]
    async fn a_cancelled_call_ends_with_an_error() {
        let fixture = fixture(&["file"]);
        let context = fixture.context();
        context.cancel.cancel();
        let error = fixture.run_in(context, Glob, json!({ "pattern": "*" })).await.unwrap_err();
        assert_eq!(error.kind, ToolErrorKind::Cancelled);
    }
}
