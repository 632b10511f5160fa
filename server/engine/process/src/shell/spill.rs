//! Where the whole output of commands is kept: a file for each command, in a folder of the session's own.
//!
//! Rule: a file is its user's alone and bounded, and so are all files of a session together: of those, the oldest go
//! first. A remark at the end of a file reports missing parts. A disk that refuses costs the file and not the command.

#![expect(
    clippy::disallowed_methods,
    reason = "it writes files of its own, or those that a call was allowed"
)]

use std::collections::VecDeque;
use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::sync::Arc;

use parking_lot::{Mutex, MutexGuard};
use sha2::{Digest, Sha256};

use crate::outcome::OutputFile;
use kode_base::ids::CallId;
use kode_base::paths::AbsPath;
use kode_base::private;

/// How many bytes of one command's output are kept.
const MAX_FILE_BYTES: u64 = 64 << 20;
/// How many bytes of output are kept of all commands of a session.
const MAX_SESSION_BYTES: u64 = 256 << 20;
/// The most bytes of one page.
pub const MAX_PAGE_BYTES: usize = 64 << 10;
/// The fewest bytes of a page: room for any character.
const MIN_PAGE_BYTES: usize = 4;
/// How much is gathered before it is written.
const BUFFER_BYTES: usize = 64 << 10;
/// How files of output end.
const EXTENSION: &str = "txt";
/// The longest call id that is a file name as it is.
const MAX_NAME: usize = 100;

/// The kept output of a session's commands.
#[derive(Debug)]
pub struct Outputs {
    folder: AbsPath,
    file_bytes: u64,
    session_bytes: u64,
    /// Nothing until the folder is first needed.
    shelf: Mutex<Option<SpillShelf>>,
}

/// The files there are, oldest first.
#[derive(Debug, Default)]
struct SpillShelf {
    files: VecDeque<SpilledFile>,
    bytes: u64,
}

#[derive(Debug)]
struct SpilledFile {
    name: String,
    bytes: u64,
    /// Whether it still grows; then it is not removed.
    grows: bool,
}

/// A part of an output.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutputPage {
    /// The text, whole characters.
    pub text: String,
    /// Where it begins, in bytes.
    pub offset: u64,
    /// Where the next page begins, in bytes.
    pub next: u64,
    /// How many bytes there are by now.
    pub total: u64,
}

impl Outputs {
    /// The outputs in `folder`, which is made with the first of them.
    #[must_use]
    pub fn new(folder: AbsPath) -> Self {
        Self { folder, file_bytes: MAX_FILE_BYTES, session_bytes: MAX_SESSION_BYTES, shelf: Mutex::default() }
    }

    /// The same, with other bounds.
    #[cfg(test)]
    pub(crate) fn bounded(self, file_bytes: u64, session_bytes: u64) -> Self {
        Self { file_bytes, session_bytes, ..self }
    }

    /// Where the files are.
    #[must_use]
    pub fn folder(&self) -> &AbsPath {
        &self.folder
    }

    /// Where the output of a call is, or would be.
    #[must_use]
    pub fn path(&self, call: &CallId) -> AbsPath {
        self.folder.join(file_name(call))
    }

    /// A page of the output of a call; `None` when none is kept. A character that begins before `offset` is left out.
    ///
    /// # Errors
    /// The system's error for the file.
    pub fn read(&self, call: &CallId, offset: u64, limit: usize) -> io::Result<Option<OutputPage>> {
        let mut file = match File::open(self.path(call)) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        let total = file.metadata()?.len();
        file.seek(SeekFrom::Start(offset.min(total)))?;
        let mut bytes = Vec::new();
        file.take(clamped(limit) as u64).read_to_end(&mut bytes)?;
        Ok(Some(page_at(&bytes, offset.min(total), total)))
    }

    /// Keeps a text as the output of a call, and says where; `None` when it could not be written.
    pub fn keep(self: &Arc<Self>, call: &CallId, text: &str) -> Option<OutputFile> {
        let mut spill = self.spill(call);
        spill.push(text);
        spill.flush();
        spill.file()
    }

    /// A file for the output of a call. It is made when something is written.
    pub(super) fn spill(self: &Arc<Self>, call: &CallId) -> Spill {
        let (outputs, name) = (Arc::clone(self), file_name(call));
        Spill { outputs, name, file: None, buffer: String::new(), written: 0, missing: None }
    }

    /// Makes a file, in place of one of the same name.
    fn open(&self, name: &str) -> io::Result<File> {
        let mut shelf = self.shelf();
        let shelf = match shelf.as_mut() {
            Some(shelf) => shelf,
            None => {
                private::create_folders(self.folder.as_path())?;
                shelf.insert(SpillShelf::find(&self.folder)?)
            }
        };
        shelf.forget(name);
        let path = self.folder.join(name);
        match fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            Err(_) | Ok(()) => {}
        }
        let file = private::file_options().write(true).create_new(true).open(&path)?;
        shelf.files.push_back(SpilledFile { name: name.to_owned(), bytes: 0, grows: true });
        Ok(file)
    }

    /// Makes room for more bytes of a file, if need be by removing the oldest others. False if absent.
    fn reserve(&self, name: &str, bytes: u64) -> bool {
        let mut shelf = self.shelf();
        let Some(shelf) = shelf.as_mut() else { return false };
        while shelf.bytes + bytes > self.session_bytes {
            let Some(oldest) = shelf.files.iter().position(|file| !file.grows) else { return false };
            let Some(gone) = shelf.files.remove(oldest) else { return false };
            shelf.bytes -= gone.bytes;
            if let Err(error) = fs::remove_file(self.folder.join(&gone.name)) {
                tracing::warn!(%error, file = gone.name, "an old output could not be removed");
            }
        }
        shelf.bytes += bytes;
        if let Some(file) = shelf.files.iter_mut().find(|file| file.name == name) {
            file.bytes += bytes;
        }
        true
    }

    fn close(&self, name: &str) {
        let mut shelf = self.shelf();
        let files = shelf.iter_mut().flat_map(|shelf| &mut shelf.files);
        files.filter(|file| file.name == name).for_each(|file| file.grows = false);
    }

    fn shelf(&self) -> MutexGuard<'_, Option<SpillShelf>> {
        self.shelf.lock()
    }
}

impl SpillShelf {
    /// The leftovers of an earlier process.
    fn find(folder: &AbsPath) -> io::Result<Self> {
        let mut found = Vec::new();
        for entry in fs::read_dir(folder)? {
            let entry = entry?;
            let metadata = entry.metadata()?;
            if let (true, Ok(name)) = (metadata.is_file(), entry.file_name().into_string()) {
                found.push((metadata.modified()?, SpilledFile { name, bytes: metadata.len(), grows: false }));
            }
        }
        found.sort_by_key(|(modified, _)| *modified);
        let files: VecDeque<_> = found.into_iter().map(|(_, file)| file).collect();
        Ok(Self { bytes: files.iter().map(|file| file.bytes).sum(), files })
    }

    fn forget(&mut self, name: &str) {
        if let Some(place) = self.files.iter().position(|file| file.name == name) {
            self.bytes -= self.files.remove(place).map_or(0, |file| file.bytes);
        }
    }
}

/// A page of a text that is in memory.
#[must_use]
pub fn page_of(text: &str, offset: u64, limit: usize) -> OutputPage {
    let total = text.len() as u64;
    let start = usize::try_from(offset.min(total)).unwrap_or(text.len());
    let end = text.len().min(start.saturating_add(clamped(limit)));
    page_at(&text.as_bytes()[start..end], offset.min(total), total)
}

fn clamped(limit: usize) -> usize {
    limit.clamp(MIN_PAGE_BYTES, MAX_PAGE_BYTES)
}

/// The whole characters of some bytes of a UTF-8 text that lie at `offset` in it.
fn page_at(bytes: &[u8], offset: u64, total: u64) -> OutputPage {
    let skipped = bytes.iter().take_while(|byte| **byte & 0xC0 == 0x80).count();
    let whole = &bytes[skipped..];
    // The kept part is text; only the last character can be incomplete.
    let length = std::str::from_utf8(whole).map_or_else(|error| error.valid_up_to(), str::len);
    let text = String::from_utf8_lossy(&whole[..length]).into_owned();
    let offset = offset + skipped as u64;
    OutputPage { text, offset, next: offset + length as u64, total }
}

/// A file name for a call. The model chooses ids of calls, so they may be anything.
fn file_name(call: &CallId) -> String {
    let id = call.as_str();
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
    if !id.is_empty() && id.len() <= MAX_NAME && id.bytes().all(is_plain) {
        return format!("{id}.{EXTENSION}");
    }
    let hash: String = Sha256::digest(id).iter().map(|byte| format!("{byte:02x}")).collect();
    format!("{hash}.{EXTENSION}")
}

/// The file a command's output goes to.
#[derive(Debug)]
pub(super) struct Spill {
    outputs: Arc<Outputs>,
    name: String,
    file: Option<File>,
    buffer: String,
    written: u64,
    missing: Option<String>,
}

impl Spill {
    /// Takes more output.
    pub(super) fn push(&mut self, text: &str) {
        if self.missing.is_some() {
            return;
        }
        self.buffer.push_str(text);
        if self.buffer.len() >= BUFFER_BYTES {
            self.flush();
        }
    }

    /// Writes the gathered bytes.
    pub(super) fn flush(&mut self) {
        let gathered = std::mem::take(&mut self.buffer);
        if gathered.is_empty() || self.missing.is_some() {
            return;
        }
        if let Err(error) = self.write(&gathered) {
            tracing::warn!(%error, file = self.name, "output of a command is not kept");
            self.missing = Some(format!("it could not be written: {error}"));
        }
    }

    /// Where the output is, once anything is.
    pub(super) fn file(&self) -> Option<OutputFile> {
        let path = self.outputs.folder.join(&self.name);
        self.file.is_some().then(|| OutputFile { path, missing: self.missing.clone() })
    }

    fn write(&mut self, text: &str) -> io::Result<()> {
        let mut file = match self.file.take() {
            Some(file) => file,
            None => self.outputs.open(&self.name)?,
        };
        let room = usize::try_from(self.outputs.file_bytes - self.written).unwrap_or(usize::MAX);
        let fits = &text[..boundary(text, room)];
        let has_room = self.outputs.reserve(&self.name, fits.len() as u64);
        let written = if has_room { file.write_all(fits.as_bytes()) } else { Ok(()) };
        if has_room {
            self.written += fits.len() as u64;
        }
        let bound = match has_room {
            true if fits.len() < text.len() => Some(self.outputs.file_bytes),
            true => None,
            false => Some(self.outputs.session_bytes),
        };
        if let Some(bound) = bound {
            let reason = format!("only {} MiB are kept", bound >> 20);
            file.write_all(format!("\n[... {reason}; the output went on ...]\n").as_bytes())?;
            self.missing = Some(reason);
        }
        self.file = Some(file);
        written
    }
}

/// The last place up to `limit` between two characters of a text.
fn boundary(text: &str, limit: usize) -> usize {
    let mut at = limit.min(text.len());
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    at
}

impl Drop for Spill {
    fn drop(&mut self) {
        self.flush();
        self.outputs.close(&self.name);
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn call(id: &str) -> CallId {
        CallId::from_external(id)
    }

    fn outputs() -> (tempfile::TempDir, Outputs) {
        let home = tempfile::tempdir().unwrap();
        let folder = AbsPath::new(home.path().join("session/output")).unwrap();
        (home, Outputs::new(folder))
    }

    fn names(outputs: &Outputs) -> Vec<String> {
        let entries = fs::read_dir(outputs.folder()).unwrap();
        let mut names: Vec<_> =
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    #[test]
    fn output_is_kept_privately_and_only_once_there_is_some() {
        let (_home, outputs) = outputs();
        let outputs = Arc::new(outputs);
        let mut spill = outputs.spill(&call("call_1"));
        assert_eq!((spill.file(), outputs.folder().as_path().exists()), (None, false));
        spill.push("text\n");
        spill.flush();
        let file = spill.file().unwrap();
        assert_eq!(file, OutputFile { path: outputs.path(&call("call_1")), missing: None });
        let mode = |path: &AbsPath| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(outputs.folder()), mode(&file.path)), (0o700, 0o600));
        assert_eq!(fs::read_to_string(&file.path).unwrap(), "text\n");
    }

    #[test]
    fn an_id_that_names_a_place_elsewhere_is_only_a_name() {
        let (_home, outputs) = outputs();
        for id in ["../x", "", "a/b", &"x".repeat(101)] {
            let path = outputs.path(&call(id));
            assert_eq!(path.parent().as_ref(), Some(outputs.folder()), "{id}");
            assert_eq!(path.file_name().len(), 64 + ".txt".len(), "{id}");
        }
    }

    #[test]
    fn a_file_is_bounded_at_a_character_and_says_so_at_its_end() {
        let (_home, outputs) = outputs();
        let outputs = Arc::new(outputs.bounded(5, 1 << 20));
        let mut spill = outputs.spill(&call("a"));
        spill.push("ééé");
        spill.flush();
        spill.push("more");
        spill.flush();
        let file = spill.file().unwrap();
        assert!(file.missing.as_deref().is_some_and(|why| why.contains("are kept")), "{file:?}");
        let text = fs::read_to_string(file.path).unwrap();
        assert!(text.starts_with("éé\n[... only ") && !text.contains("more"), "{text}");
    }

    #[test]
    fn when_a_session_has_too_much_the_oldest_output_goes_and_what_grows_stays() {
        let (_home, outputs) = outputs();
        let outputs = Arc::new(outputs.bounded(1 << 20, 10));
        let mut growing = outputs.spill(&call("growing"));
        growing.push("1234");
        growing.flush();
        for name in ["old", "older", "new"] {
            let mut spill = outputs.spill(&call(name));
            spill.push("123");
        }
        assert_eq!(names(&outputs), ["growing.txt", "new.txt", "older.txt"]);
        // Another process counts what it finds.
        drop(growing);
        let again = Arc::new(Outputs::new(outputs.folder().clone()).bounded(1 << 20, 10));
        let mut spill = again.spill(&call("later"));
        spill.push("123456789");
        spill.flush();
        assert_eq!(names(&again), ["later.txt"]);
        spill.push("too much");
        spill.flush();
        assert!(spill.file().unwrap().missing.is_some());
    }

    #[test]
    fn pages_have_whole_characters_and_lead_to_the_end() {
        let (_home, outputs) = outputs();
        let outputs = Arc::new(outputs);
        let text = "aé😀\n".repeat(20);
        outputs.spill(&call("a")).push(&text);
        for limit in [1, 4, 7, 1000] {
            let (mut read, mut at) = (String::new(), 0);
            while at < text.len() as u64 {
                let page = outputs.read(&call("a"), at, limit).unwrap().unwrap();
                assert_eq!(page, page_of(&text, at, limit));
                assert_eq!((page.offset, page.total), (at, text.len() as u64));
                read.push_str(&page.text);
                at = page.next;
            }
            assert_eq!(read, text);
        }
        let inside = outputs.read(&call("a"), 2, 4).unwrap().unwrap();
        assert_eq!((inside.offset, inside.text.as_str()), (3, ""), "{inside:?}");
        assert_eq!(page_of(&text, 9999, 10).text, "");
        assert_eq!(outputs.read(&call("b"), 0, 10).unwrap(), None);
    }
}
