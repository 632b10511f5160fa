//! Grep: what files and open documents contain.
//!
//! Rule: an open document is searched in place of its file; the order of results depends on nothing but the texts,
//! not on threads; memory grows with the number of files that match, never with what matches in them.

mod search;

use std::cmp::Reverse;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::SystemTime;

use async_trait::async_trait;
use futures::FutureExt;
use grep_regex::RegexMatcher;
use ignore::overrides::{Override, OverrideBuilder};
use ignore::types::{FileTypeDef, Types, TypesBuilder};
use ignore::{DirEntry, WalkState};
use parking_lot::Mutex;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use self::search::{LinePage, Scanner, SearchExtent, SearchOptions, SearchText, Tally};
use crate::walk::{
    FolderFlag, OpenFiles, SearchAnchor, SearchWatch, no_such_place, result_name, run_search, untitled_name,
    walk, workspace_roots,
};
use kode_base::call::{Exposure, ReadCheck, ToolError, ToolErrorKind, ToolKind, Touch};
use kode_base::paths::{AbsPath, ResolvedPaths, Target};
use kode_text::document::DocumentSnapshot;
use kode_text::workspace::Workspace;
use kode_tool::names::GREP;
use kode_tool::{CallAction, CallContext, CallPlan, Tool, ToolFacts, ToolOutput};

/// How many lines or files are given if the call does not say.
const DEFAULT_HEAD_LIMIT: usize = 250;
/// How many characters of results are given at most.
const MAX_CHARS: usize = 20_000;
/// How many lines of context can be asked for.
const MAX_CONTEXT: usize = 1_000;
/// At how many files that match a search ends.
const MAX_FILES: usize = 100_000;
/// How many names of file types are suggested for an unknown one.
const MAX_SUGGESTIONS: usize = 5;
/// How much of a name has to be the same for it to be suggested.
const SIMILAR: f32 = 0.7;

/// The arguments of Grep.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GrepInput {
    /// The regular expression to search for, in the syntax of ripgrep: escape `(`, `{`, `.` and the like to find
    /// them literally. There is no look-around.
    pub pattern: String,
    /// The file or folder to search, or the URI of an untitled document. The workspace if left out.
    #[serde(default)]
    pub path: Option<String>,
    /// Search only files that match this glob, for example `*.rs`, `src/**/*.{ts,tsx}` or `!*.min.js`.
    #[serde(default)]
    pub glob: Option<String>,
    /// Search only files of this type, for example `rust`, `py`, `ts`, `go` or `java`.
    #[serde(default, rename = "type")]
    pub file_type: Option<String>,
    /// What to give: the matching lines (`content`), the files that match, most recently modified first
    /// (`files_with_matches`, the default), or the number of matches in each file (`count`).
    #[serde(default)]
    pub output_mode: OutputMode,
    /// Lines to show after each match, in content mode.
    #[serde(default, rename = "-A")]
    pub after: Option<usize>,
    /// Lines to show before each match, in content mode.
    #[serde(default, rename = "-B")]
    pub before: Option<usize>,
    /// Lines to show before and after each match, in content mode.
    #[serde(default, rename = "-C")]
    pub context: Option<usize>,
    /// Whether to show line numbers in content mode. Yes if left out.
    #[serde(default, rename = "-n")]
    pub line_numbers: Option<bool>,
    /// Whether to ignore case. No if left out.
    #[serde(default, rename = "-i")]
    pub ignore_case: Option<bool>,
    /// Whether matches may span lines; `.` then matches line breaks too. No if left out.
    #[serde(default)]
    pub multiline: Option<bool>,
    /// How many lines or files to give at most; 250 if left out, 0 for as many as fit.
    #[serde(default)]
    pub head_limit: Option<usize>,
    /// How many lines or files to leave out at the beginning, to go on where an earlier search was cut.
    #[serde(default)]
    pub offset: Option<usize>,
}

/// The result of a search.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum OutputMode {
    /// The matching lines.
    Content,
    /// The files that match.
    #[default]
    FilesWithMatches,
    /// The number of matches in each file.
    Count,
}

impl OutputMode {
    /// The unit of results.
    fn unit(self) -> &'static str {
        match self {
            Self::Content => "lines",
            Self::FilesWithMatches | Self::Count => "files",
        }
    }
}

/// Searches the contents of files.
#[derive(Clone, Copy, Debug)]
pub struct Grep;

#[async_trait]
impl Tool for Grep {
    type Input = GrepInput;

    fn facts(&self) -> ToolFacts {
        ToolFacts {
            name: GREP,
            kind: ToolKind::ReadOnly,
            concurrency_safe: true,
            description: "Searches the contents of files with a regular expression, as fast as ripgrep. Use it instead \
                of running grep or rg: it also sees text in the editor that is not saved yet. Hidden files are \
                searched; binary files and files that ignore files exclude are not, and neither are secrets and files \
                that rules keep from you.",
        }
    }

    async fn plan(&self, input: GrepInput, context: &CallContext) -> Result<CallPlan, ToolError> {
        let title = match &input.path {
            Some(path) => format!("Search `{}` in {path}", input.pattern),
            None => format!("Search `{}`", input.pattern),
        };
        let job = SearchJob::new(&input, &context.workspace)?;
        let touches = job.place.targets().into_iter().map(Touch::Read).collect();
        let run = move |context: CallContext| {
            async move {
                let (workspace, may_read) = (Arc::clone(&context.workspace), Arc::clone(&context.may_read));
                let resolved = context.resolved.clone();
                run_search(&context, move |watch| job.run(&workspace, &resolved, &may_read, watch)).await
            }
            .boxed()
        };
        Ok(CallPlan { title, touches, action: CallAction::Run(Box::new(run)) })
    }
}

/// Where to search.
#[derive(Debug)]
enum SearchPlace {
    /// One document without a file.
    Untitled(DocumentSnapshot),
    /// A file or everything beneath a folder.
    Path(AbsPath),
    /// All folders and all untitled documents.
    Workspace(Vec<AbsPath>),
}

impl SearchPlace {
    fn new(path: Option<&str>, workspace: &Workspace) -> Result<Self, ToolError> {
        let Some(path) = path else { return Ok(Self::Workspace(workspace_roots(workspace))) };
        let target = workspace.resolve(path).map_err(|error| {
            let hint = "Give a file or folder, absolute or relative to the working directory.";
            ToolError::new(ToolErrorKind::InvalidInput, error.to_string(), hint)
        })?;
        let documents = workspace.documents();
        match target {
            Target::Untitled(_) => {
                let document = documents.into_iter().find(|document| document.target() == target);
                document.map(Self::Untitled).ok_or_else(|| no_such_place(path))
            }
            Target::File(file) => {
                let mut open = documents.iter().filter_map(|document| document.path.as_ref());
                if file.as_path().exists() || open.any(|open| open.is_within(&file)) {
                    Ok(Self::Path(file))
                } else {
                    Err(no_such_place(path))
                }
            }
        }
    }

    fn roots(&self) -> &[AbsPath] {
        match self {
            Self::Untitled(_) => &[],
            Self::Path(root) => std::slice::from_ref(root),
            Self::Workspace(roots) => roots,
        }
    }

    fn targets(&self) -> Vec<Target> {
        match self {
            Self::Untitled(document) => vec![document.target()],
            Self::Path(_) | Self::Workspace(_) => self.roots().iter().cloned().map(Target::File).collect(),
        }
    }
}

/// Everything a search needs to know.
#[derive(Debug)]
struct SearchJob {
    place: SearchPlace,
    filters: Vec<Arc<FileFilter>>,
    matcher: RegexMatcher,
    options: SearchOptions,
    mode: OutputMode,
    offset: usize,
    limit: usize,
}

impl SearchJob {
    fn new(input: &GrepInput, workspace: &Workspace) -> Result<Self, ToolError> {
        let context = |lines: Option<usize>| match lines.or(input.context).unwrap_or(0) {
            lines if lines > MAX_CONTEXT => Err(ToolError::new(
                ToolErrorKind::InvalidInput,
                format!("{lines} lines of context are more than the {MAX_CONTEXT} that are allowed"),
                "Ask for fewer lines, or read the file instead.",
            )),
            lines if input.output_mode == OutputMode::Content => Ok(lines),
            _ => Ok(0),
        };
        let options = SearchOptions {
            ignore_case: input.ignore_case.unwrap_or(false),
            multiline: input.multiline.unwrap_or(false),
            before: context(input.before)?,
            after: context(input.after)?,
            line_numbers: input.line_numbers.unwrap_or(true),
        };
        if input.pattern.is_empty() {
            let hint = "Give a regular expression, or use Glob to find files by name.";
            return Err(ToolError::new(ToolErrorKind::InvalidInput, "The pattern is empty", hint));
        }
        let matcher =
            search::matcher(&input.pattern, options).map_err(|error| bad_pattern(&input.pattern, &error))?;
        let place = SearchPlace::new(input.path.as_deref(), workspace)?;
        let mut filters = Vec::new();
        for root in place.roots() {
            filters.push(Arc::new(FileFilter::new(root, input.glob.as_deref(), input.file_type.as_deref())?));
        }
        Ok(Self {
            place,
            filters,
            matcher,
            options,
            mode: input.output_mode,
            offset: input.offset.unwrap_or(0),
            limit: match input.head_limit.unwrap_or(DEFAULT_HEAD_LIMIT) {
                0 => usize::MAX,
                limit => limit,
            },
        })
    }

    fn run(
        &self,
        workspace: &Workspace,
        resolved: &ResolvedPaths,
        may_read: &ReadCheck,
        watch: &SearchWatch,
    ) -> ToolOutput {
        let mut found = self.find(&workspace.documents(), resolved, watch);
        // Asked of what has matched and not of all that is walked over: it takes following links.
        found.hits.retain(|hit| {
            may_read(&hit.target, Exposure::Content)
                && hit.real().is_none_or(|real| may_read(&Target::File(real), Exposure::Content))
        });
        match self.mode {
            OutputMode::FilesWithMatches => {
                found
                    .hits
                    .sort_by(|a, b| (Reverse(a.modified), &a.target).cmp(&(Reverse(b.modified), &b.target)));
            }
            OutputMode::Content | OutputMode::Count => found.hits.sort_by(|a, b| a.target.cmp(&b.target)),
        }
        self.report(&found, workspace, watch)
    }

    /// Finds out which texts match, and how often. What matches in them is read again for those that are shown:
    /// in this way a search needs the same memory whatever it finds.
    fn find(
        &self,
        documents: &[DocumentSnapshot],
        resolved: &ResolvedPaths,
        watch: &SearchWatch,
    ) -> GrepMatches {
        let finder = MatchCollector { job: self, watch, found: Mutex::default() };
        for (root, filter) in self.place.roots().iter().zip(&self.filters) {
            finder.search_root(&Arc::new(SearchAnchor::new(root, resolved)), root, filter, documents);
        }
        let mut scanner = self.counting_scanner(watch);
        match &self.place {
            SearchPlace::Untitled(document) => {
                finder.search_document(&mut scanner, document.target(), document)
            }
            SearchPlace::Path(_) => {}
            SearchPlace::Workspace(_) => {
                let untitled = documents.iter().filter(|document| document.path.is_none());
                for document in
                    untitled.filter(|document| self.filters.iter().all(|filter| filter.takes(document)))
                {
                    finder.search_document(&mut scanner, document.target(), document);
                }
            }
        }
        finder.found.into_inner()
    }

    /// A scanner that only counts, so it need not know which line it is at.
    fn counting_scanner<'w>(&self, watch: &'w SearchWatch) -> Scanner<'w> {
        Scanner::new(&self.matcher, SearchOptions { line_numbers: false, ..self.options }, watch)
    }

    fn report(&self, found: &GrepMatches, workspace: &Workspace, watch: &SearchWatch) -> ToolOutput {
        let (page, shown) = self.page(found, workspace, watch);
        let matches: usize = found.hits.iter().map(|hit| hit.tally.matches).sum();
        let total = match self.mode {
            OutputMode::Content => found.hits.iter().map(|hit| hit.tally.lines).sum(),
            OutputMode::FilesWithMatches | OutputMode::Count => found.hits.len(),
        };
        let files = found.hits.len();
        let summary = match (files, self.mode) {
            (0, _) => "No matches found".to_owned(),
            (_, OutputMode::FilesWithMatches) => counted(files, "file", "files"),
            (_, OutputMode::Content | OutputMode::Count) => {
                format!("{} in {}", counted(matches, "match", "matches"), counted(files, "file", "files"))
            }
        };

        let unit = self.mode.unit();
        let end = self.offset.saturating_add(page.shown);
        let mut notes = Vec::new();
        if total > 0 && self.offset >= total {
            notes.push(format!(
                "There are only {total} {unit}; nothing is left after offset {}.",
                self.offset
            ));
        } else if end < total {
            notes.push(format!(
                "These are the {unit} {} to {end} of {total}. Continue with offset {end}, or narrow the search.",
                self.offset + 1,
            ));
        } else if self.mode == OutputMode::Count && total > 0 {
            notes.push(format!("{summary}."));
        }
        notes.extend(found.notes());

        let mut model_text = if total == 0 { summary.clone() } else { page.text.trim_end().to_owned() };
        for note in notes {
            let gap = if model_text.is_empty() { "" } else { "\n\n" };
            model_text.push_str(&format!("{gap}[{note}]"));
        }
        let structured = json!({
            "files": shown,
            "totalFiles": files,
            "totalMatches": if self.mode == OutputMode::FilesWithMatches { Value::Null } else { json!(matches) },
            "truncated": self.offset > 0 || end < total || found.is_full(),
        });
        ToolOutput { model_text, display: summary, structured: Some(structured), ..ToolOutput::default() }
    }

    /// Writes the part of the results that was asked for, and lists the files in it.
    fn page(
        &self,
        found: &GrepMatches,
        workspace: &Workspace,
        watch: &SearchWatch,
    ) -> (LinePage, Vec<Value>) {
        let mut page = LinePage::new(self.offset, self.limit, MAX_CHARS);
        let mut scanner = Scanner::new(&self.matcher, self.options, watch);
        let with_context = self.options.before + self.options.after > 0;
        let mut shown = Vec::new();
        for hit in &found.hits {
            let name = result_name(workspace, &hit.target);
            let shown_before = page.shown;
            match self.mode {
                OutputMode::FilesWithMatches => page.add(&name),
                OutputMode::Count => page.add(&format!("{name}:{}", hit.tally.matches)),
                OutputMode::Content if page.skips(hit.tally.lines) => true,
                OutputMode::Content => {
                    if with_context {
                        page.separate();
                    }
                    // A file that has changed or gone since it was counted just shows what it shows now.
                    hit.text().is_some_and(|text| scanner.write(text, &name, &mut page).is_ok())
                }
            };
            if page.shown > shown_before {
                let matches = (self.mode != OutputMode::FilesWithMatches).then_some(hit.tally.matches);
                shown.push(json!({ "path": name, "matches": matches }));
            }
            if page.is_full() {
                break;
            }
        }
        (page, shown)
    }
}

/// Which files beneath a root are searched.
#[derive(Debug)]
struct FileFilter {
    globs: Override,
    types: Types,
    type_name: Option<String>,
}

impl FileFilter {
    fn new(root: &AbsPath, globs: Option<&str>, file_type: Option<&str>) -> Result<Self, ToolError> {
        let mut overrides = OverrideBuilder::new(root);
        let globs = split_globs(globs.unwrap_or_default())
            .try_fold(&mut overrides, |builder, glob| builder.add(glob))
            .and_then(|builder| builder.build())
            .map_err(|error| {
                let hint = "Put `[` and `]`, `{` and `}` in pairs, for example `*.{ts,tsx}`.";
                ToolError::new(ToolErrorKind::InvalidInput, format!("The glob cannot be used: {error}"), hint)
            })?;
        let mut types = TypesBuilder::new();
        types.add_defaults();
        if let Some(name) = file_type {
            types.select(name);
        }
        let types =
            types.build().map_err(|_| unknown_type(file_type.unwrap_or_default(), &types.definitions()))?;
        Ok(Self { globs, types, type_name: file_type.map(str::to_owned) })
    }

    fn skips(&self, path: &Path, FolderFlag(is_folder): FolderFlag) -> bool {
        self.globs.matched(path, is_folder).is_ignore() || self.types.matched(path, is_folder).is_ignore()
    }

    /// Whether an untitled document is searched: it has a language where files have an extension.
    fn takes(&self, document: &DocumentSnapshot) -> bool {
        let name = Path::new(untitled_name(&document.uri));
        let has_type = self.type_name.as_ref().is_none_or(|name| *name == document.language_id)
            || !self.types.matched(name, false).is_ignore();
        has_type && !self.globs.matched(name, false).is_ignore()
    }
}

/// Splits at commas outside braces.
fn split_globs(globs: &str) -> impl Iterator<Item = &str> {
    let mut depth = 0usize;
    let at_comma = move |character: char| {
        match character {
            '{' => depth += 1,
            '}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        character == ',' && depth == 0
    };
    globs.split(at_comma).map(str::trim).filter(|glob| !glob.is_empty())
}

/// A text that matches.
#[derive(Debug)]
struct FileHit {
    target: Target,
    /// Where the search began that has found it; `None` for a document.
    anchor: Option<Arc<SearchAnchor>>,
    document: Option<DocumentSnapshot>,
    tally: Tally,
    /// Known only where the order depends on it.
    modified: Option<SystemTime>,
}

impl FileHit {
    fn text(&self) -> Option<SearchText<'_>> {
        let document = self.document.as_ref().map(|document| SearchText::Document(&document.text));
        document.or_else(|| Some(SearchText::File(self.anchor.as_deref()?, self.target.file()?.as_path())))
    }

    /// Where the file lies that is read.
    fn real(&self) -> Option<AbsPath> {
        self.anchor.as_ref()?.real(self.target.file()?.as_path())
    }
}

#[derive(Debug, Default)]
struct GrepMatches {
    hits: Vec<FileHit>,
    problems: usize,
    first_problem: Option<String>,
}

impl GrepMatches {
    fn is_full(&self) -> bool {
        self.hits.len() >= MAX_FILES
    }

    fn add_problem(&mut self, problem: String) {
        self.problems += 1;
        self.first_problem.get_or_insert(problem);
    }

    /// The remarks for the model besides the results.
    fn notes(&self) -> impl Iterator<Item = String> {
        let full = self.is_full().then(|| format!("The search ended at {MAX_FILES} files that match."));
        let unread = self.first_problem.as_ref().map(|first| {
            let unread = counted(self.problems, "file or folder", "files or folders");
            format!("{unread} could not be searched, for example {first}.")
        });
        full.into_iter().chain(unread)
    }
}

/// Collects what threads find.
struct MatchCollector<'a> {
    job: &'a SearchJob,
    watch: &'a SearchWatch,
    found: Mutex<GrepMatches>,
}

impl MatchCollector<'_> {
    fn search_root(
        &self,
        anchor: &Arc<SearchAnchor>,
        root: &AbsPath,
        filter: &Arc<FileFilter>,
        documents: &[DocumentSnapshot],
    ) {
        let open = OpenFiles::beneath(root, documents);
        let skips = {
            let filter = Arc::clone(filter);
            move |path: &Path, is_folder| filter.skips(path, is_folder)
        };
        if root.as_path().exists() {
            walk(root, skips, self.watch, || {
                let mut scanner = self.job.counting_scanner(self.watch);
                let open = &open;
                move |entry| match entry {
                    Ok(entry) if is_searchable(&entry) => {
                        self.search_file(&mut scanner, anchor, entry.path(), open)
                    }
                    Ok(_) => WalkState::Continue,
                    Err(error) => self.note_problem(error.to_string()),
                }
            });
        }
        let mut scanner = self.job.counting_scanner(self.watch);
        for (path, document) in open.never_saved() {
            if path == root.as_path() || !filter.skips(path, FolderFlag(false)) {
                self.search_document(&mut scanner, document.target(), document);
            }
        }
    }

    fn search_file(
        &self,
        scanner: &mut Scanner<'_>,
        anchor: &Arc<SearchAnchor>,
        path: &Path,
        open: &OpenFiles,
    ) -> WalkState {
        let document = open.get(path);
        let text = match document {
            Some(document) => SearchText::Document(&document.text),
            None => SearchText::File(anchor, path),
        };
        match scanner.count(text, self.extent()) {
            Ok(tally) if tally.matches > 0 => match AbsPath::new(path) {
                Ok(file) => self.add(Target::File(file), Some(anchor), document.cloned(), tally),
                Err(_) => WalkState::Continue,
            },
            Ok(_) => WalkState::Continue,
            Err(error) => self.note_problem(format!("{}: {}", path.display(), reason(&error))),
        }
    }

    fn search_document(&self, scanner: &mut Scanner<'_>, target: Target, document: &DocumentSnapshot) {
        match scanner.count(SearchText::Document(&document.text), self.extent()) {
            Ok(tally) if tally.matches > 0 => self.add(target, None, Some(document.clone()), tally),
            Ok(_) => WalkState::Continue,
            Err(error) => self.note_problem(format!("{target}: {}", reason(&error))),
        };
    }

    fn extent(&self) -> SearchExtent {
        match self.job.mode {
            OutputMode::FilesWithMatches => SearchExtent::First,
            OutputMode::Content | OutputMode::Count => SearchExtent::All,
        }
    }

    fn add(
        &self,
        target: Target,
        anchor: Option<&Arc<SearchAnchor>>,
        document: Option<DocumentSnapshot>,
        tally: Tally,
    ) -> WalkState {
        let modified = match (self.job.mode, &target) {
            (OutputMode::FilesWithMatches, Target::File(path)) => Some(modified(path)),
            (OutputMode::FilesWithMatches, Target::Untitled(_)) => Some(SystemTime::now()),
            (OutputMode::Content | OutputMode::Count, _) => None,
        };
        let mut found = self.found.lock();
        found.hits.push(FileHit { target, anchor: anchor.cloned(), document, tally, modified });
        if found.is_full() { WalkState::Quit } else { WalkState::Continue }
    }

    fn note_problem(&self, problem: String) -> WalkState {
        self.found.lock().add_problem(problem);
        WalkState::Continue
    }
}

/// When a file was modified; a document that was never saved is as new as can be.
fn modified(path: &AbsPath) -> SystemTime {
    let metadata = path.as_path().metadata();
    metadata.and_then(|metadata| metadata.modified()).unwrap_or_else(|_| SystemTime::now())
}

/// Whether this is a file; a link only counts as one where the search starts.
fn is_searchable(entry: &DirEntry) -> bool {
    let is_file = entry.file_type().is_some_and(|kind| kind.is_file());
    is_file || (entry.depth() == 0 && entry.path().is_file())
}

fn reason(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::NotFound => "it is gone".to_owned(),
        io::ErrorKind::PermissionDenied => "permission denied".to_owned(),
        _ => error.to_string(),
    }
}

fn counted(count: usize, one: &str, many: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { many })
}

fn bad_pattern(pattern: &str, error: &grep_regex::Error) -> ToolError {
    if let grep_regex::ErrorKind::NotAllowed(_) = error.kind() {
        return ToolError::new(
            ToolErrorKind::InvalidInput,
            format!("`{pattern}` contains a line break, but lines are searched one by one"),
            "Set `multiline` to true to find matches that span lines.",
        );
    }
    // The matcher wraps the pattern before it parses it; only on its own does an error have its true place.
    let (place, reason) = match regex_syntax::parse(pattern) {
        Err(regex_syntax::Error::Parse(error)) => (Some(*error.span()), error.kind().to_string()),
        Err(regex_syntax::Error::Translate(error)) => (Some(*error.span()), error.kind().to_string()),
        Ok(_) | Err(_) => (None, error.to_string()),
    };
    let place = place.map(|span| format!(" at character {}", span.start.column)).unwrap_or_default();
    ToolError::new(
        ToolErrorKind::InvalidInput,
        format!("`{pattern}` is not a valid regular expression{place}: {reason}"),
        format!("To find that text literally, escape it: `{}`", regex_syntax::escape(pattern)),
    )
}

fn unknown_type(name: &str, known: &[FileTypeDef]) -> ToolError {
    let extension = format!("*.{}", name.trim_start_matches('.'));
    let of_extension = known.iter().filter(|kind| kind.globs().contains(&extension)).map(FileTypeDef::name);
    let names: Vec<&str> = known.iter().map(FileTypeDef::name).collect();
    let alike = similar::get_close_matches(name, &names, MAX_SUGGESTIONS, SIMILAR);
    let mut suggestions: Vec<String> = Vec::new();
    for kind in of_extension.chain(alike).map(|name| format!("`{name}`")) {
        if !suggestions.contains(&kind) && suggestions.len() < MAX_SUGGESTIONS {
            suggestions.push(kind);
        }
    }
    let hint = match suggestions.as_slice() {
        [] => "Filter by name instead, for example with `glob` set to `*.ext`.".to_owned(),
        suggestions => format!("Did you mean {}? Or filter by name with `glob`.", suggestions.join(" or ")),
    };
    ToolError::new(ToolErrorKind::InvalidInput, format!("`{name}` is not a known file type"), hint)
}

#[cfg(test)]
mod tests;
