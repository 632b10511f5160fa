//! The spelling of a path on its disk: on a disk that folds names, `README.md` and `readme.md` are one file, which has one name.
//!
//! Rule: the disk is asked, folder by folder, and never the system's kind. A path that exists is spelled as its folders list it,
//! so that each spelling of one file gives one path, and maps by path need no other rule. A name that does not exist keeps the
//! spelling it was given; to compare two such names, [`folded`] is used where their folder folds. A folder that does not fold
//! is asked once: from then on a path in it costs one lookup in memory.

use std::collections::{HashMap, HashSet};
use std::ffi::{OsStr, OsString};
use std::fmt::Debug;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock};
use std::time::{Duration, SystemTime};

pub use file_id::FileId;
use parking_lot::{Mutex, RwLock};
use unicode_normalization::UnicodeNormalization;

use crate::paths::{AbsPath, Target};

/// The most folders whose answers are kept.
const MAX_FOLDERS: usize = 8_192;
/// The most names of folders that fold which are kept.
const MAX_NAMES: usize = 200_000;
/// The names of a folder among which one is searched that shows whether it folds.
const MAX_ASKED: usize = 256;
/// The most names of a folder that are compared by identity, where none is like the asked one.
const MAX_COMPARED: usize = 10_000;
/// A list of names is not kept when its folder changed so shortly before: disks count time in steps of up to 2 s.
const TICK: Duration = Duration::from_secs(2);

/// The disk's word on names.
pub trait NameDisk: Debug + Send + Sync {
    /// The names in a folder, at most `limit`.
    ///
    /// # Errors
    /// The system's: it is no folder, or may not be read.
    fn names(&self, folder: &Path, limit: usize) -> io::Result<Vec<OsString>>;

    /// The identity of the entry that a path names, a link not followed; `None` for a missing entry.
    fn identity(&self, path: &Path) -> Option<FileId>;

    /// A stamp that changes with the names of a folder; `None` where it is no folder.
    fn stamp(&self, folder: &Path) -> Option<FolderStamp>;

    /// Whether folders fold that nothing is known of.
    fn folds_by_default(&self) -> bool;
}

/// The state of a folder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FolderStamp {
    /// The disk it is on.
    pub disk: u64,
    /// When its names changed last.
    pub changed: SystemTime,
}

/// The disks of this machine.
#[derive(Clone, Copy, Debug)]
pub struct MountedDisks;

impl NameDisk for MountedDisks {
    fn names(&self, folder: &Path, limit: usize) -> io::Result<Vec<OsString>> {
        std::fs::read_dir(folder)?.take(limit).map(|entry| Ok(entry?.file_name())).collect()
    }

    fn identity(&self, path: &Path) -> Option<FileId> {
        #[cfg(unix)]
        {
            use std::os::unix::fs::MetadataExt;
            let metadata = path.symlink_metadata().ok()?;
            Some(FileId::new_inode(metadata.dev(), metadata.ino()))
        }
        // Links are followed here; two that lead to one file differ by their names.
        #[cfg(not(unix))]
        file_id::get_file_id(path).ok()
    }

    fn stamp(&self, folder: &Path) -> Option<FolderStamp> {
        let metadata = folder.metadata().ok().filter(std::fs::Metadata::is_dir)?;
        #[cfg(unix)]
        let disk = std::os::unix::fs::MetadataExt::dev(&metadata);
        #[cfg(not(unix))]
        let disk = match file_id::get_file_id(folder).ok()? {
            FileId::LowRes { volume_serial_number, .. } => u64::from(volume_serial_number),
            FileId::HighRes { volume_serial_number, .. } => volume_serial_number,
            FileId::Inode { device_id, .. } => device_id,
        };
        Some(FolderStamp { disk, changed: metadata.modified().ok()? })
    }

    fn folds_by_default(&self) -> bool {
        cfg!(any(windows, target_os = "macos"))
    }
}

/// A name as it is compared where it does not exist and its folder folds: composed (NFC), each letter with one small letter in
/// its place. Letters whose small form is longer stay, `ß` among them: a disk that folds those shows it once the file exists.
/// A name that is no Unicode is compared as it is.
#[must_use]
pub fn folded(name: &OsStr) -> OsString {
    let Some(text) = name.to_str() else { return name.to_os_string() };
    let small = |letter: char| {
        let mut small = letter.to_lowercase();
        match (small.next(), small.next()) {
            (Some(small), None) => small,
            _ => letter,
        }
    };
    text.nfc().map(small).nfc().collect::<String>().into()
}

fn composed(name: &OsStr) -> OsString {
    name.to_str().map_or_else(|| name.to_os_string(), |text| text.nfc().collect::<String>().into())
}

/// The other Unicode form of a name; `None` where it has one form.
fn other_form(name: &OsStr) -> Option<OsString> {
    let text = name.to_str().filter(|text| !text.is_ascii())?;
    let (composed, split) = (text.nfc().collect::<String>(), text.nfd().collect::<String>());
    (composed != split).then(|| if text == composed { split.into() } else { composed.into() })
}

/// The name with each letter of ASCII in the other case; `None` where it has none.
fn other_case(name: &OsStr) -> Option<OsString> {
    let text = name.to_str().filter(|text| text.bytes().any(|byte| byte.is_ascii_alphabetic()))?;
    let swap = |letter: char| match letter.is_ascii_lowercase() {
        true => letter.to_ascii_uppercase(),
        false => letter.to_ascii_lowercase(),
    };
    Some(text.chars().map(swap).collect::<String>().into())
}

/// The spellings of the paths of some disks.
#[derive(Debug)]
pub struct Spellings {
    disk: Box<dyn NameDisk>,
    /// Folders that do not fold letters, nor does any above them, with whether both Unicode forms of a name are known to be two.
    plain: RwLock<HashMap<PathBuf, bool>>,
    asked: Mutex<AskedFolders>,
}

#[derive(Debug, Default)]
struct AskedFolders {
    folders: HashMap<PathBuf, FolderAnswer>,
    /// The names of folders that fold.
    lists: HashMap<PathBuf, NameList>,
    names: usize,
}

/// Whether a folder folds.
#[derive(Clone, Copy, Debug, Default)]
struct FolderAnswer {
    letters: Option<LetterAnswer>,
    /// Whether both Unicode forms of a name are one.
    forms: Option<bool>,
}

#[derive(Clone, Copy, Debug)]
struct LetterAnswer {
    folds: bool,
    /// `None` for a folder whose own names have shown it; one without such names is taken to be as the folder it is in is,
    /// until it changes.
    inherited: Option<FolderStamp>,
}

/// The names of a folder by their folded form.
#[derive(Clone, Debug)]
struct NameList {
    stamp: FolderStamp,
    names: Arc<HashMap<OsString, Vec<OsString>>>,
    count: usize,
}

/// A path as its disk spells it.
#[derive(Clone, Debug, PartialEq, Eq)]
struct SpelledPath {
    path: AbsPath,
    /// The same for comparisons: the names that do not exist are folded where their folder folds.
    compared: AbsPath,
    /// Whether letters fold in the nearest folder above it that exists.
    folds: bool,
    /// Whether it is known to exist; nothing is known where nothing had to be asked.
    is_missing: bool,
}

impl Spellings {
    /// Those of the disks of this machine, shared by the whole process.
    #[must_use]
    pub fn here() -> Arc<Self> {
        static HERE: LazyLock<Arc<Spellings>> = LazyLock::new(|| Arc::new(Spellings::new(MountedDisks)));
        Arc::clone(&HERE)
    }

    /// Those of a disk that was asked nothing yet.
    #[must_use]
    pub fn new(disk: impl NameDisk + 'static) -> Self {
        Self { disk: Box::new(disk), plain: RwLock::default(), asked: Mutex::default() }
    }

    /// A path as its disk spells it: one path for each file that exists. Names that do not exist stay as they are given.
    /// Links are not followed. Asks the disk where a folder folds or is seen for the first time.
    #[must_use]
    pub fn spelled(&self, path: &AbsPath) -> AbsPath {
        if self.is_plain(path) { path.clone() } else { self.follow(path).path }
    }

    /// As [`Self::spelled`], of a target.
    #[must_use]
    pub fn target(&self, target: Target) -> Target {
        match target {
            Target::File(path) if !self.is_plain(&path) => Target::File(self.follow(&path).path),
            target => target,
        }
    }

    /// The form in which two paths are equal that name one file, or would name one if it existed. To be compared alone: nothing
    /// may be there under it.
    #[must_use]
    pub fn compared(&self, path: &AbsPath) -> AbsPath {
        if self.is_plain(path) { path.clone() } else { self.follow(path).compared }
    }

    /// Whether the name of a path is known to have one spelling, without a question to the disk.
    #[must_use]
    pub fn is_plain(&self, path: &AbsPath) -> bool {
        let (Some(folder), Some(name)) = (path.as_path().parent(), path.as_path().file_name()) else {
            return true;
        };
        let plain = self.plain.read();
        plain.get(folder).is_some_and(|forms_are_two| *forms_are_two || other_form(name).is_none())
    }

    /// Whether the names in a folder are the same in either letter case; for one that does not exist, in the nearest folder
    /// above it.
    #[must_use]
    pub fn folds(&self, folder: &AbsPath) -> bool {
        let spelled = self.follow(folder);
        match self.disk.stamp(spelled.path.as_path()) {
            Some(stamp) => self.letters(&spelled.path, stamp),
            None => spelled.folds,
        }
    }

    fn follow(&self, path: &AbsPath) -> SpelledPath {
        let as_given = |path: &AbsPath| SpelledPath {
            path: path.clone(),
            compared: path.clone(),
            folds: false,
            is_missing: false,
        };
        if self.is_plain(path) {
            return as_given(path);
        }
        let (Some(parent), Some(name)) = (path.parent(), path.as_path().file_name()) else {
            return as_given(path);
        };
        let folder = self.follow(&parent);
        let stamp = match folder.is_missing {
            true => None,
            false => self.disk.stamp(folder.path.as_path()),
        };
        // Below what does not exist, names fold as they do in the nearest folder that does.
        let folds = stamp.map_or(folder.folds, |stamp| self.letters(&folder.path, stamp));
        let forms = stamp.is_some() && self.forms(&folder.path, name);
        let joined = |name: &OsStr| SpelledPath {
            path: folder.path.join(name),
            compared: folder.compared.join(name),
            folds,
            is_missing: false,
        };
        if !folds && stamp.is_some() && folder.path == parent {
            self.note_plain(&parent);
        }
        let Some(stamp) = stamp.filter(|_| folds || forms) else {
            let compared = folder.compared.join(if folds { folded(name) } else { name.to_os_string() });
            return SpelledPath { compared, is_missing: stamp.is_none(), ..joined(name) };
        };
        match self.listed(&folder.path, stamp, name) {
            Some(listed) => joined(&listed),
            None => {
                let compared = if folds { folded(name) } else { composed(name) };
                SpelledPath { compared: folder.compared.join(compared), is_missing: true, ..joined(name) }
            }
        }
    }

    /// Notes a folder that does not fold letters, when none above it does.
    fn note_plain(&self, folder: &AbsPath) {
        let answer = self.asked.lock().folders.get(folder.as_path()).copied().unwrap_or_default();
        // A folder's own answer is final; an inherited one is asked again when it changes.
        let is_final = answer.letters.is_some_and(|letters| letters.inherited.is_none());
        if !is_final || !self.is_plain(folder) {
            return;
        }
        let mut plain = self.plain.write();
        if plain.len() >= MAX_FOLDERS {
            plain.clear();
        }
        plain.insert(folder.as_path().to_path_buf(), answer.forms == Some(false));
    }

    /// Whether a folder that exists folds letters.
    fn letters(&self, folder: &AbsPath, stamp: FolderStamp) -> bool {
        let known = self.asked.lock().folders.get(folder.as_path()).and_then(|answer| answer.letters);
        if let Some(known) = known.filter(|known| known.inherited.is_none_or(|then| then == stamp)) {
            return known.folds;
        }
        let answer = match self.shown_by_names(folder.as_path()) {
            Some(folds) => LetterAnswer { folds, inherited: None },
            None => LetterAnswer { folds: self.inherited(folder, stamp), inherited: Some(stamp) },
        };
        self.note_answer(folder, |known| known.letters = Some(answer));
        answer.folds
    }

    /// Whether a folder folds by the word of its own names; `None` where none has letters.
    fn shown_by_names(&self, folder: &Path) -> Option<bool> {
        let names = self.disk.names(folder, MAX_ASKED).ok()?;
        let listed: HashSet<&OsString> = names.iter().collect();
        // Where both spellings are listed, they are two files, perhaps with one content.
        names.iter().find_map(|name| {
            let other = other_case(name)?;
            if listed.contains(&other) {
                return Some(false);
            }
            let identity = self.disk.identity(&folder.join(name))?;
            Some(self.disk.identity(&folder.join(other)) == Some(identity))
        })
    }

    /// The answer for a folder without names of its own: that of the folder it is in, on the same disk.
    fn inherited(&self, folder: &AbsPath, stamp: FolderStamp) -> bool {
        let parent = folder.parent();
        let above = parent.as_ref().and_then(|parent| Some((parent, self.disk.stamp(parent.as_path())?)));
        match above.filter(|(_, above)| above.disk == stamp.disk) {
            Some((parent, above)) => self.letters(parent, above),
            None => self.disk.folds_by_default(),
        }
    }

    /// Whether both Unicode forms of a name are one in a folder.
    fn forms(&self, folder: &AbsPath, name: &OsStr) -> bool {
        let Some(other) = other_form(name) else { return false };
        let known = self.asked.lock().folders.get(folder.as_path()).and_then(|answer| answer.forms);
        if let Some(known) = known {
            return known;
        }
        let Some(identity) = self.disk.identity(&folder.as_path().join(name)) else { return false };
        let is_one = self.disk.identity(&folder.as_path().join(other)) == Some(identity);
        self.note_answer(folder, |known| known.forms = Some(is_one));
        is_one
    }

    fn note_answer(&self, folder: &AbsPath, note: impl FnOnce(&mut FolderAnswer)) {
        let mut asked = self.asked.lock();
        if asked.folders.len() >= MAX_FOLDERS {
            asked.folders.clear();
        }
        note(asked.folders.entry(folder.as_path().to_path_buf()).or_default());
    }

    /// The name of an entry as its folder lists it; `None` where nothing is.
    fn listed(&self, folder: &AbsPath, stamp: FolderStamp, name: &OsStr) -> Option<OsString> {
        let list = self.list(folder, stamp)?;
        let alike = list.get(&folded(name)).map(Vec::as_slice).unwrap_or_default();
        if alike.iter().any(|listed| listed == name) {
            return Some(name.to_os_string());
        }
        let identity = self.disk.identity(&folder.as_path().join(name))?;
        let is_it = |listed: &&OsString| self.disk.identity(&folder.as_path().join(listed)) == Some(identity);
        // Letters that fold in another way, and short names of Windows, are not alike.
        let others = || list.values().flatten().take(MAX_COMPARED).find(is_it);
        let found = alike.iter().find(is_it).or_else(others);
        Some(found.map_or_else(|| name.to_os_string(), Clone::clone))
    }

    fn list(&self, folder: &AbsPath, stamp: FolderStamp) -> Option<Arc<HashMap<OsString, Vec<OsString>>>> {
        let known = self.asked.lock().lists.get(folder.as_path()).cloned();
        if let Some(known) = known.filter(|known| known.stamp == stamp) {
            return Some(known.names);
        }
        let read = SystemTime::now();
        let listed = self.disk.names(folder.as_path(), MAX_NAMES).ok()?;
        let count = listed.len();
        let mut names: HashMap<OsString, Vec<OsString>> = HashMap::with_capacity(count);
        for name in listed {
            names.entry(folded(&name)).or_default().push(name);
        }
        let names = Arc::new(names);
        if read.duration_since(stamp.changed).is_ok_and(|age| age > TICK) {
            let mut asked = self.asked.lock();
            if asked.names + count > MAX_NAMES {
                asked.lists.clear();
                asked.names = 0;
            }
            let list = NameList { stamp, names: Arc::clone(&names), count };
            let before = asked.lists.insert(folder.as_path().to_path_buf(), list);
            asked.names = (asked.names + count).saturating_sub(before.map_or(0, |before| before.count));
        }
        Some(names)
    }
}

#[cfg(test)]
mod tests;
