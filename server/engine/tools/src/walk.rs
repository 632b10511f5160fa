//! The common part of Glob and Grep: where to look, the walk over the files there, and running it beside everything else.
//!
//! Rule: ignore files are obeyed, hidden files are seen, version control folders never are, links are not
//! followed; a walk stops soon after its call is cancelled or forgotten.

use std::collections::HashMap;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use ignore::{DirEntry, WalkBuilder, WalkState};
use tokio::time::Instant;

#[cfg(unix)]
use kode_base::beneath;
use kode_base::call::{ToolError, ToolErrorKind};
use kode_base::paths::{self, AbsPath, ResolvedPaths, Target};
use kode_base::task;
use kode_base::vcs::is_vcs_folder;
use kode_text::document::DocumentSnapshot;
use kode_text::workspace::Workspace;
use kode_tool::CallContext;

/// How often a search that continues says how far it is.
const PROGRESS_INTERVAL: Duration = Duration::from_millis(100);

/// The shared state of a search and the call that waits for it.
#[derive(Debug, Default)]
pub(super) struct SearchWatch {
    stopped: AtomicBool,
    files: AtomicUsize,
}

impl SearchWatch {
    /// Whether no caller waits for the search any more.
    pub(super) fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::Relaxed)
    }

    /// Has the search end soon.
    pub(super) fn stop(&self) {
        self.stopped.store(true, Ordering::Relaxed);
    }

    /// How many files have been checked so far.
    pub(super) fn files(&self) -> usize {
        self.files.load(Ordering::Relaxed)
    }
}

struct StopOnDrop(Arc<SearchWatch>);

impl Drop for StopOnDrop {
    fn drop(&mut self) {
        self.0.stop();
    }
}

/// Runs a search on a thread of its own and reports how far it is. Cancelling the call, or dropping the future,
/// stops the search.
pub(super) async fn run_search<T: Send + 'static>(
    context: &CallContext,
    search: impl FnOnce(&SearchWatch) -> T + Send + 'static,
) -> Result<T, ToolError> {
    let watch = Arc::new(SearchWatch::default());
    let _stop = StopOnDrop(Arc::clone(&watch));
    let mut search = task::spawn_blocking({
        let watch = Arc::clone(&watch);
        move || search(&watch)
    });
    let mut ticks = tokio::time::interval_at(Instant::now() + PROGRESS_INTERVAL, PROGRESS_INTERVAL);
    // A late tick delays the next one, so that two reports are never closer than the interval.
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            biased;
            () = context.cancel.cancelled() => return Err(ToolError::new(
                ToolErrorKind::Cancelled,
                "The search was cancelled before it ended",
                "Do not repeat it unless the user asks for it.",
            )),
            found = &mut search => return found.map_err(|error| ToolError::new(
                ToolErrorKind::Failed,
                format!("The search broke off: {error}"),
                "Try a simpler pattern or a smaller folder.",
            )),
            _ = ticks.tick() => (context.progress)(format!("{} files searched", watch.files())),
        }
    }
}

/// The folders a search without a path goes through: those of the workspace, none twice.
pub(super) fn workspace_roots(workspace: &Workspace) -> Vec<AbsPath> {
    let roots = workspace.roots();
    if roots.is_empty() {
        return vec![workspace.cwd()];
    }
    let is_nested = |root: &AbsPath| roots.iter().any(|other| other != root && root.is_within(other));
    roots.iter().filter(|root| !is_nested(root)).cloned().collect()
}

/// Visits what lies beneath `root`, or `root` itself if it is a file, on several threads in no particular order.
/// `skips` is asked for everything beneath `root` whether to leave it out, folders with all that is in them.
pub(super) fn walk<'v, V>(
    root: &AbsPath,
    skips: impl Fn(&Path, FolderFlag) -> bool + Send + Sync + 'static,
    watch: &'v SearchWatch,
    mut visitor: impl FnMut() -> V,
) where
    V: FnMut(Result<DirEntry, ignore::Error>) -> WalkState + Send + 'v,
{
    let keeps = move |entry: &DirEntry| {
        let is_folder = FolderFlag(entry.file_type().is_some_and(|kind| kind.is_dir()));
        entry.depth() == 0 || !(is_vcs_folder(entry.path()) || skips(entry.path(), is_folder))
    };
    WalkBuilder::new(root).hidden(false).require_git(false).filter_entry(keeps).build_parallel().run(|| {
        let mut visit = visitor();
        Box::new(move |entry| {
            if watch.is_stopped() {
                return WalkState::Quit;
            }
            if entry.as_ref().is_ok_and(|entry| entry.file_type().is_some_and(|kind| !kind.is_dir())) {
                watch.files.fetch_add(1, Ordering::Relaxed);
            }
            visit(entry)
        })
    });
}

/// The place that a search begins at, opened: what it finds is opened from there, and no link leads out of it.
#[derive(Debug)]
pub(super) struct SearchAnchor {
    /// The name that results begin with.
    root: AbsPath,
    /// Where it led when the call was judged.
    real: PathBuf,
    #[cfg(unix)]
    folder: Option<std::os::fd::OwnedFd>,
}

impl SearchAnchor {
    /// Opens a place. `resolved` says where it led when the call was judged.
    pub(super) fn new(root: &AbsPath, resolved: &ResolvedPaths) -> Self {
        let real = match resolved.get(root) {
            Some(real) => real.as_path().to_path_buf(),
            None => paths::real_path(root.as_path()).unwrap_or_else(|_| root.as_path().to_path_buf()),
        };
        #[cfg(unix)]
        let folder = beneath::open_folder(&real).ok();
        Self {
            root: root.clone(),
            real,
            #[cfg(unix)]
            folder,
        }
    }

    /// The name that results begin with.
    pub(super) fn root(&self) -> &AbsPath {
        &self.root
    }

    /// Opens a file that the search has found, by the path it was found at.
    #[cfg(unix)]
    pub(super) fn open(&self, path: &Path) -> io::Result<File> {
        match (&self.folder, path.strip_prefix(&self.root)) {
            (Some(folder), Ok(below)) if !below.as_os_str().is_empty() => {
                beneath::open_regular(folder, below)
            }
            (_, Ok(_)) => beneath::open_file(&self.real),
            (_, Err(_)) => Err(io::ErrorKind::NotFound.into()),
        }
    }

    /// Whether the file at a path lies beneath the place.
    #[cfg(unix)]
    pub(super) fn holds(&self, path: &Path) -> bool {
        match (&self.folder, path.strip_prefix(&self.root)) {
            (folder, Ok(below)) if !below.as_os_str().is_empty() => {
                folder.as_ref().is_some_and(|folder| beneath::exists(folder, below))
            }
            _ => true,
        }
    }

    /// Where a path that the search has found lies, links followed.
    pub(super) fn real(&self, path: &Path) -> Option<AbsPath> {
        let below = path.strip_prefix(&self.root).ok()?;
        AbsPath::new(self.real.join(below)).ok()
    }

    #[cfg(not(unix))]
    pub(super) fn open(&self, path: &Path) -> io::Result<File> {
        File::open(path)
    }

    #[cfg(not(unix))]
    pub(super) fn holds(&self, _path: &Path) -> bool {
        true
    }
}

/// Whether the entry is a folder.
#[derive(Clone, Copy, Debug)]
pub(super) struct FolderFlag(pub(super) bool);

/// The open documents of files beneath a root, by the path that a walk from the root finds the file at.
#[derive(Debug, Default)]
pub(super) struct OpenFiles {
    by_path: HashMap<PathBuf, OpenFile>,
}

#[derive(Debug)]
struct OpenFile {
    document: DocumentSnapshot,
    on_disk: bool,
}

impl OpenFiles {
    /// Picks the documents out whose files lie beneath `root`, links resolved: the editor and the walk may have
    /// come to the same file by different ways.
    pub(super) fn beneath(root: &AbsPath, documents: &[DocumentSnapshot]) -> Self {
        let mut by_path = HashMap::new();
        let (real_root, _) = real_path(root.as_path());
        for document in documents {
            let Some(path) = &document.path else { continue };
            let (real, on_disk) = real_path(path.as_path());
            let Ok(beneath) = real.strip_prefix(&real_root) else { continue };
            if beneath.ancestors().any(is_vcs_folder) {
                continue;
            }
            let file = OpenFile { document: document.clone(), on_disk };
            by_path.insert(root.as_path().join(beneath), file);
        }
        Self { by_path }
    }

    /// The document of the file that a walk has found.
    pub(super) fn get(&self, path: &Path) -> Option<&DocumentSnapshot> {
        self.by_path.get(path).map(|file| &file.document)
    }

    /// The documents whose files no walk can find, because they have not been saved for the first time.
    pub(super) fn never_saved(&self) -> impl Iterator<Item = (&Path, &DocumentSnapshot)> {
        self.by_path
            .iter()
            .filter(|(_, file)| !file.on_disk)
            .map(|(path, file)| (path.as_path(), &file.document))
    }
}

/// The path with links resolved as far as it exists, and whether all of it exists.
fn real_path(path: &Path) -> (PathBuf, bool) {
    if let Ok(real) = paths::real_path(path) {
        return (real, true);
    }
    match (path.parent(), path.file_name()) {
        (Some(parent), Some(name)) => (real_path(parent).0.join(name), false),
        _ => (path.to_path_buf(), false),
    }
}

/// The name of a text in results: the short form where a later call finds the same text by it, else the full path. The
/// short form is ambiguous where the workspace has several folders or relative paths start beneath its folder.
pub(super) fn result_name(workspace: &Workspace, target: &Target) -> String {
    let short = workspace.display(target);
    let is_found = workspace.resolve(&short).is_ok_and(|found| found == *target);
    if is_found { short } else { target.to_string() }
}

/// The name of an untitled document for people: the end of its URI.
pub(super) fn untitled_name(uri: &str) -> &str {
    uri.rsplit(['/', ':']).next().unwrap_or(uri)
}

/// An error for a path argument that does not name a place to search.
pub(super) fn no_such_place(path: &str) -> ToolError {
    ToolError::new(
        ToolErrorKind::NotFound,
        format!("`{path}` does not exist"),
        "Give an existing path, absolute or relative to the working directory, or leave `path` out to search the workspace.",
    )
}

#[cfg(test)]
mod tests {

    use super::*;
    use crate::testing::Fixture;
    use kode_text::host::NoEditor;
    use parking_lot::Mutex;

    fn walked(root: &AbsPath) -> Vec<String> {
        let found = Mutex::new(Vec::new());
        let watch = SearchWatch::default();
        walk(
            root,
            |_, _| false,
            &watch,
            || {
                |entry| {
                    let path = entry.unwrap().into_path();
                    let relative = path.strip_prefix(root).unwrap().to_string_lossy().into_owned();
                    found.lock().push(relative);
                    WalkState::Continue
                }
            },
        );
        let mut found = found.into_inner();
        found.sort();
        found
    }

    #[test]
    fn ignored_files_and_version_control_folders_are_not_visited_hidden_files_are() {
        let fixture = Fixture::new();
        for path in
            [".gitignore", ".env", "a.rs", "a.log", "target/x", ".git/config", "sub/.hg/store", "sub/b"]
        {
            fixture.write(path, "target/\n*.log\n");
        }
        assert_eq!(walked(&fixture.root()), ["", ".env", ".gitignore", "a.rs", "sub", "sub/b"]);
    }

    #[test]
    fn links_are_not_followed_so_loops_end_but_a_root_may_be_one() {
        let fixture = Fixture::new();
        fixture.write("real/a", "");
        std::os::unix::fs::symlink(fixture.root(), fixture.root().join("real/loop")).unwrap();
        std::os::unix::fs::symlink("real", fixture.root().join("link")).unwrap();
        assert_eq!(walked(&fixture.root().join("link")), ["", "a", "loop"]);
    }

    #[test]
    fn a_stopped_walk_visits_nothing() {
        let fixture = Fixture::new();
        fixture.write("a", "");
        let watch = SearchWatch::default();
        watch.stop();
        walk(&fixture.root(), |_, _| false, &watch, || |_| panic!("visited"));
    }

    #[test]
    fn documents_are_found_where_the_walk_comes_by_whatever_links_the_editor_took() {
        let mut fixture = Fixture::new();
        fixture.write("real/a", "");
        std::os::unix::fs::symlink("real", fixture.root().join("link")).unwrap();
        fixture.open("link/a", "typed");
        fixture.open("link/new", "typed");
        let documents = fixture.workspace().documents();
        let files = OpenFiles::beneath(&fixture.root().join("real"), &documents);
        assert!(files.get(fixture.root().join("real/a").as_path()).is_some());
        let never_saved: Vec<_> = files.never_saved().map(|(path, _)| path.to_path_buf()).collect();
        assert_eq!(never_saved, [fixture.root().join("real/new").as_path()]);
    }

    #[test]
    fn results_have_names_that_later_calls_find_them_by() {
        let roots = ["/one", "/two"].map(|root| AbsPath::new(root).unwrap());
        let workspace = Workspace::new(Arc::new(NoEditor), roots.to_vec(), roots[0].clone());
        for (path, name) in [("/one/a", "a"), ("/two/a", "/two/a"), ("/three/a", "/three/a")] {
            let target = Target::File(AbsPath::new(path).unwrap());
            assert_eq!(result_name(&workspace, &target), name);
        }
    }

    #[tokio::test]
    async fn cancelling_and_dropping_a_call_both_stop_its_search() {
        let fixture = Fixture::new();
        let context = fixture.context();
        let (sender, ended) = std::sync::mpsc::channel();
        let until_stopped = move |sender: std::sync::mpsc::Sender<()>| {
            move |watch: &SearchWatch| {
                while !watch.is_stopped() {
                    std::thread::yield_now();
                }
                sender.send(()).unwrap();
            }
        };
        let search = run_search(&context, until_stopped(sender.clone()));
        assert!(tokio::time::timeout(Duration::ZERO, search).await.is_err());
        ended.recv().unwrap();

        context.cancel.cancel();
        let error = run_search(&context, until_stopped(sender)).await.unwrap_err();
        assert_eq!(error.kind, ToolErrorKind::Cancelled);
        ended.recv().unwrap();
    }

    #[tokio::test(start_paused = true)]
    async fn a_search_that_continues_reports_at_most_every_interval() {
        let fixture = Fixture::new();
        let context = fixture.context();
        let (begin, begun) = tokio::sync::oneshot::channel();
        let (end, ended) = std::sync::mpsc::channel::<()>();
        let search = tokio::spawn(async move {
            run_search(&context, move |watch| {
                watch.files.store(7, Ordering::Relaxed);
                begin.send(()).unwrap();
                ended.recv().unwrap();
            })
            .await
        });
        begun.await.unwrap();
        assert_eq!(fixture.progress(), [""; 0]);
        for _ in 0..4 {
            tokio::time::advance(PROGRESS_INTERVAL / 2).await;
            tokio::task::yield_now().await;
        }
        assert_eq!(fixture.progress(), ["7 files searched", "7 files searched"]);
        end.send(()).unwrap();
        search.await.unwrap().unwrap();
    }
}
