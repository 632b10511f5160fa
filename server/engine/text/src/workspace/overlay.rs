//! The content of a path as the user sees it.
//!
//! Rule: an open document wins over the disk, saved or not and under whatever name the file is reached; a path is
//! inside the workspace only if both its name and what it leads to are. Past [`Workspace::resolve`], a file has the name by which
//! its disk lists it.

use std::fs::{File, Metadata, OpenOptions};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use url::Url;

use crate::document::DocumentSnapshot;
use crate::file_text::{FileStamp, FileText, TextStamp};
use crate::host::{DiagnosticsError, DocumentObserver, FileDiagnostics, Host};
use crate::workspace::changes::Tracker;
use crate::workspace::error::BytesError;
use crate::workspace::language::{DiagnosticsRequest, LanguageServers, ServerStart};
use crate::workspace::watch::MAX_WATCHED_FOLDERS;
use crate::workspace::{PathError, ReadError, RealPaths};
use kode_base::path_style::PathStyle;
use kode_base::paths::{self, AbsPath, Target};
use kode_base::spelling::Spellings;
use kode_base::{blocking, encoding, file_uri, windows_names};

/// The largest file that is read as a whole.
pub const MAX_FILE_BYTES: u64 = 64 << 20;

/// How long complete diagnostics of a language server are waited for, where the request is for them.
const DIAGNOSTICS_LIMIT: Duration = Duration::from_secs(15);

/// Folder entries looked through for a name like the one that is missing.
const MAX_SUGGESTION_ENTRIES: usize = 5_000;

/// How alike two file names must be, from 0 to 1, to suggest one for the other.
const SUGGESTION_LIKENESS: f32 = 0.75;

/// A session's view of the user's files.
pub struct Workspace {
    pub(super) host: Arc<dyn Host>,
    pub(super) roots: Arc<Roots>,
    pub(super) tracker: Arc<Tracker>,
    pub(super) saves_before_commands: bool,
    /// Whether documents outside its folders are ignored.
    pub(super) is_apart: bool,
    languages: Option<Arc<dyn LanguageServers>>,
    spellings: Arc<Spellings>,
    cwd: Mutex<AbsPath>,
}

/// The folders of the workspace.
pub(super) struct Roots {
    named: Vec<AbsPath>,
    /// The same with links followed, once: a link that is turned round later must not move the border.
    real: Vec<AbsPath>,
}

/// The content of a target on disk, whatever the editor shows.
pub struct FileOnDisk {
    /// Where it is, links followed.
    pub real: AbsPath,
    /// Its bytes; `None` when there is no file.
    pub bytes: Option<Vec<u8>>,
    /// The same as text, if it is.
    pub text: Option<String>,
}

/// Bytes read from a file, with what the descriptor said of it.
pub(super) struct FileBytes {
    pub(super) bytes: Vec<u8>,
    pub(super) metadata: Metadata,
}

impl Workspace {
    /// A view of the workspace folders `roots`; relative paths are taken from `cwd`.
    pub fn new(host: Arc<dyn Host>, roots: Vec<AbsPath>, cwd: AbsPath) -> Self {
        let roots = Roots::of(roots);
        let tracker = Tracker::start(Arc::clone(&host), MAX_WATCHED_FOLDERS);
        Self {
            host,
            roots,
            tracker,
            saves_before_commands: true,
            is_apart: false,
            languages: None,
            spellings: Spellings::here(),
            cwd: Mutex::new(cwd),
        }
    }

    /// The same editor and the same texts as seen from other folders. Nothing is saved for commands that run there: they see
    /// other files than those that are open.
    pub fn elsewhere(&self, roots: Vec<AbsPath>, cwd: AbsPath) -> Self {
        let (host, tracker) = (Arc::clone(&self.host), Arc::clone(&self.tracker));
        let (roots, cwd) = (Roots::of(roots), Mutex::new(cwd));
        let (languages, spellings) = (self.languages.clone(), Arc::clone(&self.spellings));
        Self { host, roots, tracker, saves_before_commands: false, is_apart: true, languages, spellings, cwd }
    }

    /// The same with language servers of its own.
    #[must_use]
    pub fn with_languages(mut self, languages: Option<Arc<dyn LanguageServers>>) -> Self {
        self.languages = languages;
        self
    }

    /// The same on another disk.
    #[cfg(test)]
    #[must_use]
    fn with_spellings(mut self, spellings: Spellings) -> Self {
        self.spellings = Arc::new(spellings);
        self
    }

    /// The language servers, where one serves a language of the workspace.
    #[must_use]
    pub fn languages(&self) -> Option<&Arc<dyn LanguageServers>> {
        self.languages.as_ref().filter(|languages| languages.is_available())
    }

    /// Finds the language servers that the settings and the files of the workspace want. Starts none.
    pub async fn refresh_languages(&self) {
        if let Some(languages) = &self.languages {
            languages.refresh(self).await;
        }
    }

    /// The folders of the workspace.
    pub fn roots(&self) -> &[AbsPath] {
        &self.roots.named
    }

    /// The workspace folders as they were when the workspace was made, links followed.
    pub fn real_roots(&self) -> &[AbsPath] {
        &self.roots.real
    }

    /// Where relative paths start.
    pub fn cwd(&self) -> AbsPath {
        self.cwd.lock().clone()
    }

    /// The language of the editor's own texts, if it names one.
    #[must_use]
    pub fn locale(&self) -> Option<String> {
        self.host.locale()
    }

    /// Whether there are diagnostics: of the editor, or of language servers of its own.
    #[must_use]
    pub fn can_diagnose(&self) -> bool {
        self.host.can_diagnose() || self.languages().is_some()
    }

    /// The diagnostics of these files; of all known ones when none is named. Those of the editor where it has them.
    ///
    /// # Errors
    /// [`DiagnosticsError`].
    pub async fn diagnostics(&self, targets: &[Target]) -> Result<Vec<FileDiagnostics>, DiagnosticsError> {
        match self.languages() {
            Some(languages) if !self.host.can_diagnose() => {
                let start = ServerStart::All;
                let request = DiagnosticsRequest { targets, limit: DIAGNOSTICS_LIMIT, start };
                languages.diagnostics(self, request).await
            }
            _ => self.host.diagnostics(targets).await,
        }
    }

    /// The diagnostics that the editor has of those of the files that are open in it, when its servers have published or the limit
    /// is over; `None` where it has no diagnostics.
    pub async fn editor_diagnostics(
        &self,
        targets: &[Target],
        limit: Duration,
    ) -> Option<Result<Vec<FileDiagnostics>, DiagnosticsError>> {
        if !self.host.can_diagnose() {
            return None;
        }
        let open: Vec<Target> =
            targets.iter().filter(|target| self.host.document(target).is_some()).cloned().collect();
        if open.is_empty() {
            return Some(Ok(Vec::new()));
        }
        Some(self.host.settled_diagnostics(&open, limit).await)
    }

    /// Makes relative paths start at `cwd`.
    pub fn set_cwd(&self, cwd: AbsPath) {
        *self.cwd.lock() = self.spellings.spelled(&cwd);
    }

    /// Turns what the model wrote (absolute, relative, `~/`, `file:` or `untitled:` URI) into a target.
    ///
    /// # Errors
    /// [`PathError`] for an empty path, one with a NUL, and URIs that name neither a file nor an open document.
    pub fn resolve(&self, path: &str) -> Result<Target, PathError> {
        let target = self.resolve_text(path)?;
        if target.file().is_none_or(|file| self.spellings.is_plain(file)) {
            return Ok(target);
        }
        let target = self.spellings.target(target);
        // A document that is not saved yet has a name by which no folder lists it.
        Ok(self.host.document(&target).map_or(target, |document| document.target()))
    }

    /// A target in the form in which two are equal that name one file, or would name one if it existed.
    #[must_use]
    pub fn compared(&self, target: &Target) -> Target {
        match target {
            Target::File(path) => Target::File(self.spellings.compared(path)),
            Target::Untitled(_) => target.clone(),
        }
    }

    fn resolve_text(&self, path: &str) -> Result<Target, PathError> {
        if path.is_empty() {
            return Err(PathError("the path is empty".to_owned()));
        }
        if path.contains('\0') {
            return Err(PathError(format!("the path {path:?} contains a NUL character")));
        }
        if path.starts_with("file:") {
            let file = file_of_uri(path)?;
            return match PathStyle::HERE {
                PathStyle::Unix => Ok(Target::File(file)),
                PathStyle::Windows => self.file_in(&self.cwd(), &file.to_string()),
            };
        }
        let is_uri = path.starts_with("untitled:") || path.contains("://");
        let is_open = || self.host.document(&Target::Untitled(path.to_owned())).is_some();
        if path.starts_with("untitled:") || (path.contains(':') && is_open()) {
            return Ok(Target::Untitled(path.to_owned()));
        }
        if is_uri {
            return Err(PathError(format!("`{path}` is neither a file nor an open document")));
        }
        if path == "~" || path.starts_with("~/") {
            let home = std::env::home_dir().and_then(|home| AbsPath::new(home).ok());
            let home = home.ok_or_else(|| PathError(format!("`{path}`: the home folder is not known")))?;
            return self.file_in(&home, path[1..].trim_start_matches('/'));
        }
        self.file_in(&self.cwd(), path)
    }

    /// The file that a text names, seen from a folder.
    fn file_in(&self, folder: &AbsPath, path: &str) -> Result<Target, PathError> {
        match PathStyle::HERE {
            PathStyle::Unix => Ok(Target::File(folder.join(path))),
            PathStyle::Windows => {
                let refused = |refusal: String| PathError(refusal);
                let path = windows_names::resolve(&folder.to_string(), path);
                let path = path.map_err(|refusal| refused(refusal.to_string()))?;
                AbsPath::new(path).map(Target::File).map_err(|error| refused(error.to_string()))
            }
        }
    }

    /// Whether the target, and what it links to, lies in a folder of the workspace. Of documents without a file:
    /// whether they are open. Checks the disk.
    pub fn contains(&self, target: &Target) -> bool {
        self.contains_by(target, &RealPaths::default())
    }

    /// As [`Workspace::contains`], where places may have been followed already.
    pub fn contains_by(&self, target: &Target, real_paths: &RealPaths) -> bool {
        match target {
            Target::File(path) => {
                self.roots.name(path) && real_paths.file(path).is_some_and(|real| self.roots.reach(&real))
            }
            Target::Untitled(_) => self.host.document(target).is_some(),
        }
    }

    /// Where a target leads, links followed; the target itself when it is no link or cannot be followed. Checks
    /// the disk.
    pub fn real(&self, target: &Target) -> Target {
        match target {
            Target::File(path) => Target::File(real_path(path).unwrap_or_else(|_| path.clone())),
            Target::Untitled(_) => target.clone(),
        }
    }

    /// The short form of a target for people: relative to the workspace where possible.
    pub fn display(&self, target: &Target) -> String {
        let Target::File(path) = target else { return target.to_string() };
        let relative = self.roots.all().find_map(|root| path.as_path().strip_prefix(root.as_path()).ok());
        match relative {
            Some(relative) if relative.as_os_str().is_empty() => ".".to_owned(),
            Some(relative) => paths::slashed(relative),
            None => path.to_string(),
        }
    }

    /// Tells the observer what happens to open documents.
    pub fn observe_documents<T: DocumentObserver + 'static>(&self, observer: &Arc<T>) {
        let observer: Arc<dyn DocumentObserver> = Arc::clone(observer) as Arc<_>;
        self.host.observe_documents(Arc::downgrade(&observer));
    }

    /// All open documents.
    pub fn documents(&self) -> Vec<DocumentSnapshot> {
        self.host.documents()
    }

    /// The text as the user sees it: open document, else disk.
    ///
    /// # Errors
    /// [`ReadError`], each with a hint.
    pub async fn text(&self, target: &Target) -> Result<FileText, ReadError> {
        match self.document_text(target).await {
            Some(text) => Ok(text),
            None => self.on_disk(target, read_file).await,
        }
    }

    /// The text of a file on the disk, whatever the editor shows; `None` without a file to read.
    pub async fn saved_text(&self, target: &Target) -> Option<Arc<str>> {
        Some(self.saved_file(target).await?.text)
    }

    /// As [`Self::saved_text`], with what shows whether it is still the same.
    pub async fn saved_file(&self, target: &Target) -> Option<FileText> {
        let (target, path) = (target.clone(), target.file()?.clone());
        blocking(move || read_file(target, path.as_path(), &path.to_string())).await.ok()
    }

    /// The bytes of a file that led to `real` when it was judged; `None` when they cannot be read there.
    pub async fn bytes_judged(&self, target: &Target, real: Option<&AbsPath>) -> Option<Vec<u8>> {
        let path = target.file()?.clone();
        let real = real.cloned();
        blocking(move || {
            let opened = match &real {
                Some(real) => open_resolved(real.as_path()),
                None => open_regular(path.as_path()),
            };
            bytes_of(opened.ok()?).ok().map(|file| file.bytes)
        })
        .await
    }

    /// The text of a target that is open in the editor.
    pub(super) async fn document_text(&self, target: &Target) -> Option<FileText> {
        let document = self.open_document(target).await?;
        Some(FileText::of_document(target.clone(), document))
    }

    /// Has `read` read a target's file, given its path and its name for people; says what a missing one may be.
    pub(super) async fn on_disk<T: Send + 'static>(
        &self,
        target: &Target,
        read: impl FnOnce(Target, &Path, &str) -> Result<T, ReadError> + Send + 'static,
    ) -> Result<T, ReadError> {
        let Target::File(path) = target else {
            return Err(ReadError::NotOpen { uri: target.to_string() });
        };
        if let Some(size) = self.host.too_large(target) {
            return Err(ReadError::NotFollowed { path: self.display(target), size });
        }
        let (file, shown, target) = (path.clone(), self.display(target), target.clone());
        match blocking(move || read(target, file.as_path(), &shown)).await {
            Err(ReadError::NotFound { path: missing, .. }) => {
                Err(ReadError::NotFound { path: missing, suggestion: self.similar_file(path).await })
            }
            result => result,
        }
    }

    /// The content of a target on disk; `None` when it is unknown.
    pub async fn file_on_disk(&self, target: &Target) -> Option<FileOnDisk> {
        let path = target.file()?.clone();
        blocking(move || {
            let real = real_path(&path).ok()?;
            let bytes = match read_bytes(real.as_path()) {
                Ok(file) => Some(file.bytes),
                Err(BytesError::Io(error)) if error.kind() == io::ErrorKind::NotFound => None,
                Err(_) => return None,
            };
            let text = bytes.as_ref().and_then(|bytes| Some(encoding::decode(bytes).ok()?.text));
            Some(FileOnDisk { real, bytes, text })
        })
        .await
    }

    /// The open document of a target, also when the editor opened the file under another name (a link).
    pub async fn open_document(&self, target: &Target) -> Option<DocumentSnapshot> {
        self.host.refresh_document(target).await;
        if let Some(document) = self.host.document(target) {
            return Some(document);
        }
        let path = target.file()?.clone();
        let documents = self.host.documents();
        if documents.is_empty() {
            return None;
        }
        blocking(move || {
            let real = followed(&path).ok()?;
            documents.into_iter().find(|document| {
                let opened = document.path.as_ref().and_then(|path| followed(path).ok());
                opened.is_some_and(|opened| opened == real)
            })
        })
        .await
    }

    /// A file or open document whose name is like that of a missing file. Nothing outside the workspace is named:
    /// what lies there is not the model's to learn from a slip.
    async fn similar_file(&self, missing: &AbsPath) -> Option<String> {
        if !self.contains(&Target::File(missing.clone())) {
            return None;
        }
        let name = missing.file_name();
        let elsewhere = self.host.documents().into_iter().filter_map(|document| document.path);
        let open = elsewhere.into_iter().find(|path| path.file_name() == name && self.roots.name(path));
        let folder = missing.parent()?;
        let neighbor = blocking(move || similar_name(&folder, &name).map(|found| folder.join(found))).await;
        neighbor.or(open).map(|path| self.display(&Target::File(path)))
    }
}

impl Roots {
    fn of(named: Vec<AbsPath>) -> Arc<Self> {
        let real = named.iter().map(|root| real_path(root).unwrap_or_else(|_| root.clone())).collect();
        Arc::new(Self { named, real })
    }

    /// Whether the path's text lies in a workspace folder.
    pub(super) fn name(&self, path: &AbsPath) -> bool {
        self.all().any(|root| path.is_within(root))
    }

    /// Whether a place, links followed, lies in a workspace folder.
    pub(super) fn reach(&self, real: &AbsPath) -> bool {
        self.real.iter().any(|root| real.is_within(root))
    }

    fn all(&self) -> impl Iterator<Item = &AbsPath> {
        self.named.iter().chain(&self.real)
    }
}

/// Reads a whole file as text.
pub(super) fn read_file(target: Target, path: &Path, shown: &str) -> Result<FileText, ReadError> {
    let file = open_regular(path).map_err(|error| error.into_read_error(shown))?;
    read_opened(target, file, shown)
}

/// Reads a whole regular file through one descriptor.
pub(super) fn read_bytes(path: &Path) -> Result<FileBytes, BytesError> {
    bytes_of(open_regular(path)?)
}

pub(super) fn bytes_of((file, metadata): (File, Metadata)) -> Result<FileBytes, BytesError> {
    if metadata.len() > MAX_FILE_BYTES {
        return Err(BytesError::TooLarge(metadata.len()));
    }
    let mut bytes = Vec::with_capacity(usize::try_from(metadata.len()).unwrap_or_default());
    file.take(MAX_FILE_BYTES + 1).read_to_end(&mut bytes)?;
    match bytes.len() as u64 {
        size if size > MAX_FILE_BYTES => Err(BytesError::TooLarge(size)),
        _ => Ok(FileBytes { bytes, metadata }),
    }
}

/// Opens a regular file for reading. Opening a pipe would wait for its writer, so nothing is waited for.
pub(super) fn open_regular(path: &Path) -> Result<(File, Metadata), BytesError> {
    let mut options = OpenOptions::new();
    options.read(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt;
        options.custom_flags(rustix::fs::OFlags::NONBLOCK.bits().cast_signed());
    }
    if std::fs::metadata(path)?.is_dir() {
        return Err(BytesError::Directory);
    }
    regular(options.open(path)?)
}

/// As [`open_regular`], of a path whose links were followed when it was judged: a link that is on the way by now is not.
#[cfg(unix)]
pub(super) fn open_resolved(path: &Path) -> Result<(File, Metadata), BytesError> {
    match kode_base::beneath::open_file(path) {
        Ok(file) => regular(file),
        Err(error) if kode_base::beneath::is_link(&error) => Err(BytesError::Replaced),
        Err(error) => Err(error.into()),
    }
}

#[cfg(not(unix))]
pub(super) fn open_resolved(path: &Path) -> Result<(File, Metadata), BytesError> {
    open_regular(path)
}

pub(super) fn regular(file: File) -> Result<(File, Metadata), BytesError> {
    let metadata = file.metadata()?;
    if metadata.is_dir() {
        Err(BytesError::Directory)
    } else if metadata.is_file() {
        Ok((file, metadata))
    } else {
        Err(BytesError::NotRegular)
    }
}

/// Reads a whole file that was opened already.
pub(super) fn read_opened(
    target: Target,
    file: (File, Metadata),
    shown: &str,
) -> Result<FileText, ReadError> {
    let file = bytes_of(file).map_err(|error| error.into_read_error(shown))?;
    let stamp = TextStamp::File(FileStamp::of(&file.metadata));
    FileText::of_bytes(target, &file.bytes, stamp).map_err(|not_text| ReadError::of_bytes(not_text, shown))
}

/// The path with all links followed. Of a path that does not exist: its nearest existing folder with links
/// followed, and the rest as it is.
///
/// # Errors
/// When the path cannot be followed: no permission, a link to nothing (a write there would make a file at
/// an unexamined place), links that go in circles.
pub(super) fn real_path(path: &AbsPath) -> io::Result<AbsPath> {
    let error = match followed(path) {
        Ok(real) => return Ok(real),
        Err(error) => error,
    };
    let is_missing = matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory);
    let is_dangling = path.as_path().symlink_metadata().is_ok_and(|metadata| metadata.is_symlink());
    match path.parent() {
        Some(parent) if is_missing && !is_dangling => {
            Ok(real_path(&parent)?.join(path.as_path().file_name().unwrap_or_default()))
        }
        _ => Err(error),
    }
}

/// The path with all links followed, as its disk spells it: a link may spell its end in another way.
fn followed(path: &AbsPath) -> io::Result<AbsPath> {
    let real = AbsPath::new(paths::real_path(path)?).map_err(io::Error::other)?;
    Ok(Spellings::here().spelled(&real))
}

fn file_of_uri(uri: &str) -> Result<AbsPath, PathError> {
    let path = Url::parse(uri).ok().and_then(|uri| file_uri::path_here(&uri));
    path.filter(|path| !path.as_path().as_os_str().as_encoded_bytes().contains(&0))
        .ok_or_else(|| PathError(format!("the URI `{uri}` names no file of this machine")))
}

/// The same stem with another extension, else the name most alike.
fn similar_name(folder: &AbsPath, name: &str) -> Option<PathBuf> {
    let entries = std::fs::read_dir(folder).ok()?.take(MAX_SUGGESTION_ENTRIES);
    let names: Vec<String> = entries
        .filter_map(|entry| {
            let entry = entry.ok()?;
            entry.file_type().is_ok_and(|kind| !kind.is_dir()).then_some(())?;
            entry.file_name().into_string().ok()
        })
        .collect();
    let stem = Path::new(name).file_stem();
    let same_stem = names.iter().filter(|other| Path::new(other).file_stem() == stem).min();
    let candidates: Vec<&str> = names.iter().map(String::as_str).collect();
    let alike = || similar::get_close_matches(name, &candidates, 1, SUGGESTION_LIKENESS).first().copied();
    same_stem.map(String::as_str).or_else(alike).map(PathBuf::from)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::folding::{FoldingDisk, NameFolding};
    use crate::testing::Rig;

    #[test]
    fn paths_in_every_form_name_the_same_file() {
        let rig = Rig::new();
        let root = rig.workspace().cwd();
        let file = rig.target("a b.txt");
        for path in
            ["a b.txt", "./x/../a b.txt", &format!("{root}/a b.txt"), &format!("file://{root}/a%20b.txt")]
        {
            assert_eq!(rig.workspace().resolve(path).unwrap(), file, "{path}");
        }
        let home = AbsPath::new(std::env::home_dir().unwrap()).unwrap();
        assert_eq!(rig.workspace().resolve("~/x").unwrap(), Target::File(home.join("x")));
        rig.workspace().set_cwd(root.join("sub"));
        assert_eq!(rig.workspace().resolve("../a b.txt").unwrap(), file);
    }

    #[test]
    fn each_spelling_of_a_file_is_one_target_on_a_disk_that_folds() {
        let rig = Rig::new();
        let disk = FoldingDisk::new(NameFolding::LettersAndForms);
        let root = rig.workspace().cwd().to_string();
        for file in ["Src/README.md", "Src/u\u{308}.rs"] {
            disk.write(&format!("{root}/{file}"));
        }
        let workspace =
            Workspace::new(rig.editor.clone(), vec![rig.workspace().cwd()], rig.workspace().cwd());
        let workspace = workspace.with_spellings(Spellings::new(disk));
        let (read_me, umlaut) = (rig.target("Src/README.md"), rig.target("Src/u\u{308}.rs"));
        for (path, target) in [
            ("Src/README.md", &read_me),
            ("src/readme.MD", &read_me),
            (&*format!("file://{}/SRC/Readme.md", root.to_uppercase()), &read_me),
            ("src/\u{fc}.rs", &umlaut),
            ("src/U\u{308}.RS", &umlaut),
            ("src/New.txt", &rig.target("Src/New.txt")),
        ] {
            assert_eq!(workspace.resolve(path).unwrap(), *target, "{path}");
        }
        let new = |path: &str| workspace.compared(&workspace.resolve(path).unwrap());
        assert_eq!(new("src/New.txt"), new("SRC/nEW.TXT"));
        assert_ne!(new("src/New.txt"), new("src/Newer.txt"));
        assert_eq!(new("src/readme.md"), read_me);
    }

    #[test]
    fn what_is_no_path_is_refused_and_what_only_looks_odd_is_not() {
        let rig = Rig::new();
        for path in ["", "a\0b", "file://other-host/a", "file:///a%00b", "https://example.com/a"] {
            assert!(rig.workspace().resolve(path).is_err(), "{path:?}");
        }
        assert_eq!(rig.workspace().resolve("a:b").unwrap(), rig.target("a:b"));
        let untitled = Target::Untitled("untitled:U1".to_owned());
        assert_eq!(rig.workspace().resolve("untitled:U1").unwrap(), untitled);
    }

    #[cfg(unix)]
    #[test]
    fn only_what_leads_into_the_workspace_is_contained() {
        use std::os::unix::fs::symlink;

        let rig = Rig::new();
        rig.write("in.txt", "");
        rig.write("../out/secret", "");
        symlink(rig.path("../out"), rig.path("folder-out")).unwrap();
        symlink(rig.path("../out/secret"), rig.path("file-out")).unwrap();
        symlink(rig.path("../out/missing"), rig.path("dangling")).unwrap();
        symlink("in.txt", rig.path("file-in")).unwrap();
        symlink("circle", rig.path("circle")).unwrap();
        symlink(rig.path(""), rig.path("../way-in")).unwrap();
        for (path, expected) in [
            ("in.txt", true),
            ("new/deep/file", true),
            ("file-in", true),
            ("in.txt/below-a-file", true),
            ("../out/secret", false),
            ("/etc/passwd", false),
            ("../ws-other/x", false),
            ("folder-out/secret", false),
            ("folder-out/new", false),
            ("file-out", false),
            ("dangling", false),
            ("dangling/new", false),
            ("circle", false),
            ("../way-in/in.txt", false),
        ] {
            let target = rig.workspace().resolve(path).unwrap();
            assert_eq!(rig.workspace().contains(&target), expected, "{path}");
        }
    }

    #[cfg(unix)]
    #[test]
    fn a_workspace_reached_through_a_link_is_the_same_by_both_names() {
        let rig = Rig::new();
        rig.write("in.txt", "");
        let link = rig.workspace().cwd().join("../link");
        std::os::unix::fs::symlink(rig.path(""), &link).unwrap();
        let workspace = Workspace::new(rig.editor.clone(), vec![link.clone()], link.clone());
        for path in [link.join("in.txt"), rig.workspace().cwd().join("in.txt")] {
            let target = Target::File(path);
            assert!(workspace.contains(&target));
            assert_eq!(workspace.display(&target), "in.txt");
        }
    }

    #[test]
    fn an_open_untitled_document_is_contained_and_a_closed_one_is_not() {
        let rig = Rig::new();
        rig.open("untitled:U1", "");
        for (uri, expected) in [("untitled:U1", true), ("untitled:U2", false)] {
            assert_eq!(rig.workspace().contains(&Target::Untitled(uri.to_owned())), expected);
        }
    }

    #[tokio::test]
    async fn unsaved_text_wins_over_the_disk_under_every_name_of_the_file() {
        let rig = Rig::new();
        rig.write("a.txt", "saved");
        #[cfg(unix)]
        std::os::unix::fs::symlink("a.txt", rig.path("link.txt")).unwrap();
        assert_eq!(&*rig.workspace().text(&rig.target("a.txt")).await.unwrap().text, "saved");
        rig.open("a.txt", "unsaved");
        rig.open("new.txt", "never saved");
        rig.open("untitled:U1", "untitled");
        let targets = [
            (rig.target("a.txt"), "unsaved"),
            #[cfg(unix)]
            (rig.target("link.txt"), "unsaved"),
            (rig.target("new.txt"), "never saved"),
            (Target::Untitled("untitled:U1".to_owned()), "untitled"),
        ];
        for (target, expected) in targets {
            assert_eq!(&*rig.workspace().text(&target).await.unwrap().text, expected, "{target}");
        }
    }

    #[tokio::test]
    async fn what_cannot_be_read_is_reported_by_kind() {
        let rig = Rig::new();
        rig.write("dir/x", "");
        rig.write("image.png", b"\x89PNG\r\n\x1a\n");
        rig.write("data.bin", b"ab\0\x01\x02");
        File::create(rig.path("large")).unwrap().set_len(MAX_FILE_BYTES + 1).unwrap();
        let error = async |name: &str| rig.workspace().text(&rig.target(name)).await.unwrap_err();
        assert!(matches!(error("dir").await, ReadError::Directory { .. }));
        assert!(matches!(error("image.png").await, ReadError::Image { format: "PNG", .. }));
        assert!(matches!(error("data.bin").await, ReadError::Binary { .. }));
        assert!(matches!(error("large").await, ReadError::TooLarge { .. }));
        assert!(matches!(error("none").await, ReadError::NotFound { suggestion: None, .. }));
        assert!(matches!(error("dir/x/below").await, ReadError::NotFound { .. }));
        let closed = rig.workspace().text(&Target::Untitled("untitled:U1".to_owned())).await;
        assert!(matches!(closed, Err(ReadError::NotOpen { .. })));
    }

    #[cfg(unix)]
    #[tokio::test]
    async fn a_pipe_is_refused_and_not_waited_for() {
        let rig = Rig::new();
        let mode = rustix::fs::Mode::from_raw_mode(0o600);
        let device = rustix::fs::makedev(0, 0);
        rustix::fs::mknodat(rustix::fs::CWD, rig.path("pipe"), rustix::fs::FileType::Fifo, mode, device)
            .unwrap();
        let error = rig.workspace().text(&rig.target("pipe")).await.unwrap_err();
        assert!(matches!(error, ReadError::NotRegular { .. }), "{error:?}");
    }

    #[tokio::test]
    async fn a_similar_name_is_suggested_for_a_missing_file() {
        let rig = Rig::new();
        rig.write("src/view.tsx", "");
        rig.write("src/controller.rs", "");
        rig.write("../outside.txt", "");
        rig.open("lib/opened.rs", "");
        for (missing, expected) in [
            ("src/view.ts", Some("src/view.tsx")),
            ("src/contrller.rs", Some("src/controller.rs")),
            ("src/opened.rs", Some("lib/opened.rs")),
            ("src/unrelated.py", None),
            ("../outsid.txt", None),
        ] {
            let target = rig.workspace().resolve(missing).unwrap();
            let error = rig.workspace().text(&target).await.unwrap_err();
            let ReadError::NotFound { suggestion, .. } = &error else { panic!("{error:?}") };
            assert_eq!(suggestion.as_deref(), expected, "{missing}");
            assert_eq!(error.hint().contains("Did you mean"), expected.is_some());
        }
    }
}
