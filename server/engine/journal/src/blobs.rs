//! Blobs: byte strings beside a session's journal, each named by the SHA-256 of its content.
//!
//! Rule: a blob is on the disk before a record names it, and a read returns the named content or an error. Blobs
//! are only ever added. They are not compressed: they are few and small, and a damaged one must cost itself alone. While
//! the disk refuses, contents wait in memory, and the journal takes no record for safe before they are kept.

use std::collections::{BTreeMap, HashSet};
use std::fs::File;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::{Arc, OnceLock};
use std::{fmt, io};

use parking_lot::{Mutex, MutexGuard};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::disk::{self, Disk};

/// Maximum bytes of contents that wait in memory while the disk refuses them; a single one may be longer.
const WAITING_BYTES: usize = 64 << 20;

/// The name of a blob: the SHA-256 of its content, written as 64 lower-case hexadecimal digits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct BlobId([u8; 32]);

/// A text that names no blob.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not the name of a blob; that is 64 lower-case hexadecimal digits")]
pub struct NotABlobId(pub String);

impl BlobId {
    /// The name of a content.
    #[must_use]
    pub fn of(bytes: &[u8]) -> Self {
        Self(Sha256::digest(bytes).into())
    }
}

impl fmt::Display for BlobId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(formatter, "{byte:02x}"))
    }
}

impl fmt::Debug for BlobId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "BlobId({self})")
    }
}

impl FromStr for BlobId {
    type Err = NotABlobId;

    fn from_str(text: &str) -> Result<Self, NotABlobId> {
        let mut hash = [0; 32];
        let (pairs, rest) = text.as_bytes().as_chunks::<2>();
        if pairs.len() != hash.len() || !rest.is_empty() {
            return Err(NotABlobId(text.to_owned()));
        }
        for (byte, [high, low]) in hash.iter_mut().zip(pairs) {
            match (digit(*high), digit(*low)) {
                (Some(high), Some(low)) => *byte = high << 4 | low,
                (None, _) | (_, None) => return Err(NotABlobId(text.to_owned())),
            }
        }
        Ok(Self(hash))
    }
}

impl TryFrom<String> for BlobId {
    type Error = NotABlobId;

    fn try_from(text: String) -> Result<Self, NotABlobId> {
        text.parse()
    }
}

impl From<BlobId> for String {
    fn from(id: BlobId) -> Self {
        id.to_string()
    }
}

/// Upper-case digits are refused: a blob has one name.
fn digit(byte: u8) -> Option<u8> {
    match byte {
        b'0'..=b'9' => Some(byte - b'0'),
        b'a'..=b'f' => Some(byte - b'a' + 10),
        _ => None,
    }
}

/// The blobs of one session. Clones are the same store.
#[derive(Clone, Debug)]
pub struct Blobs {
    disk: Arc<dyn Disk>,
    folder: PathBuf,
    /// Set once the folder is there and what a crash has left in it is gone.
    ready: Arc<OnceLock<()>>,
    unkept: Arc<Mutex<PendingBlobs>>,
}

/// Data that is not, or may not be, on the disk.
#[derive(Debug, Default)]
struct PendingBlobs {
    /// Contents that wait to be kept.
    waiting: BTreeMap<BlobId, Arc<[u8]>>,
    bytes: usize,
    /// How many contents could not even wait.
    dropped: u64,
    /// Blobs that a sync has failed for: they may read well now and be gone after a power cut.
    suspect: HashSet<BlobId>,
    /// Folders whose names the disk may not have.
    folders: Vec<PathBuf>,
}

impl Blobs {
    /// The blobs in `folder`, which is made with the first of them. Nothing is read or written yet. As with the
    /// journal, only one process at a time may put blobs into a folder.
    #[must_use]
    pub fn new(folder: PathBuf) -> Self {
        Self::on(disk::real(), folder)
    }

    /// The same on another disk.
    pub fn on(disk: Arc<dyn Disk>, folder: PathBuf) -> Self {
        Self { disk, folder, ready: Arc::default(), unkept: Arc::default() }
    }

    /// Where the blobs are.
    #[must_use]
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Keeps a content, unless it is kept already. When this returns it survives a power cut.
    ///
    /// # Errors
    /// The error of the system about the folder or the file. The content waits in memory then and is kept by
    /// [`Blobs::retry`], if not too much waits: until then it can be read, and does not survive this process.
    pub fn put(&self, bytes: &[u8]) -> io::Result<BlobId> {
        let kept = self.put_synced(bytes);
        if kept.is_err() {
            let mut unkept = self.unkept();
            let id = BlobId::of(bytes);
            let has_room = unkept.waiting.is_empty() || unkept.bytes + bytes.len() <= WAITING_BYTES;
            if !has_room {
                unkept.dropped += 1;
            } else if unkept.waiting.insert(id, bytes.into()).is_none() {
                unkept.bytes += bytes.len();
            }
        }
        kept
    }

    /// Keeps the contents that the disk has refused before.
    ///
    /// # Errors
    /// The error of the system; unwritten contents keep waiting.
    pub fn retry(&self) -> io::Result<()> {
        loop {
            let Some((id, bytes)) =
                self.unkept().waiting.first_key_value().map(|(id, bytes)| (*id, Arc::clone(bytes)))
            else {
                return Ok(());
            };
            self.put_synced(&bytes)?;
            let mut unkept = self.unkept();
            if unkept.waiting.remove(&id).is_some() {
                unkept.bytes -= bytes.len();
            }
        }
    }

    /// Whether contents wait to be kept.
    #[must_use]
    pub fn has_waiting(&self) -> bool {
        !self.unkept().waiting.is_empty()
    }

    /// How many contents are lost if nothing more is kept: those that wait, and those for which there was no room.
    #[must_use]
    pub fn unkept_count(&self) -> u64 {
        let unkept = self.unkept();
        unkept.waiting.len() as u64 + unkept.dropped
    }

    /// How many contents there was no room for since this was asked last.
    #[must_use]
    pub fn take_dropped(&self) -> u64 {
        std::mem::take(&mut self.unkept().dropped)
    }

    /// Keeps a content in the operating system's memory: it survives the end of this process. No record may name it
    /// before [`Blobs::sync`] has returned.
    ///
    /// # Errors
    /// The error of the system about the folder or the file.
    pub fn put_unsynced(&self, bytes: &[u8]) -> io::Result<BlobId> {
        let id = BlobId::of(bytes);
        let path = self.path(&id);
        // Compared as a whole: a power cut may have left a damaged blob, and here is its content again.
        let is_suspect = self.unkept().suspect.contains(&id);
        if !is_suspect && disk::read_all(&*self.disk, &path).is_ok_and(|kept| kept == bytes) {
            return Ok(id);
        }
        self.prepare()?;
        disk::put_in_place(&*self.disk, &self.folder, &path, &[bytes], false)?;
        self.unkept().suspect.remove(&id);
        Ok(id)
    }

    /// Makes blobs survive a power cut.
    ///
    /// # Errors
    /// The error of the system. How many of them are safe is not known then, and all are written again when their contents
    /// come again.
    pub fn sync(&self, ids: &[BlobId]) -> io::Result<()> {
        if ids.is_empty() {
            return Ok(());
        }
        let names: Vec<String> = ids.iter().map(BlobId::to_string).collect();
        let folders = self.unkept().folders.clone();
        let synced = self
            .disk
            .sync_files(&self.folder, &names)
            .and_then(|()| folders.iter().try_for_each(|folder| self.disk.sync_folder(folder)));
        let mut unkept = self.unkept();
        match &synced {
            Ok(()) => unkept.folders.retain(|folder| !folders.contains(folder)),
            Err(_) => unkept.suspect.extend(ids),
        }
        synced
    }

    /// Reads a blob.
    ///
    /// # Errors
    /// The error of the system; of kind [`io::ErrorKind::InvalidData`], naming the blob, when it is damaged.
    pub fn get(&self, id: &BlobId) -> io::Result<Vec<u8>> {
        if let Some(bytes) = self.unkept().waiting.get(id) {
            return Ok(bytes.to_vec());
        }
        let path = self.path(id);
        let bytes = disk::read_all(&*self.disk, &path).map_err(|error| {
            io::Error::new(
                error.kind(),
                format!("the kept content {} cannot be read: {error}", path.display()),
            )
        })?;
        if BlobId::of(&bytes) == *id {
            return Ok(bytes);
        }
        let damaged = format!("the kept content {} is damaged and cannot be used", path.display());
        Err(io::Error::new(io::ErrorKind::InvalidData, damaged))
    }

    /// Makes an empty file without a name beside the blobs, readable by this user alone and gone with its handle.
    ///
    /// # Errors
    /// The error of the system about the folder or the file.
    pub fn scratch(&self) -> io::Result<File> {
        self.prepare()?;
        tempfile::tempfile_in(&self.folder)
    }

    fn put_synced(&self, bytes: &[u8]) -> io::Result<BlobId> {
        let id = self.put_unsynced(bytes)?;
        self.sync(&[id])?;
        Ok(id)
    }

    fn path(&self, id: &BlobId) -> PathBuf {
        self.folder.join(id.to_string())
    }

    /// Makes the folder, and removes what a crash has left in it.
    fn prepare(&self) -> io::Result<()> {
        if self.ready.get().is_some() {
            return Ok(());
        }
        let mut folders = disk::make_folders(&*self.disk, &self.folder)?;
        // Its creator may have ended before the disk knew its name.
        folders.extend(self.folder.parent().map(Path::to_path_buf));
        self.unkept().folders.extend(folders);
        disk::remove_unfinished(&*self.disk, &self.folder)?;
        self.ready.get_or_init(|| ());
        Ok(())
    }

    fn unkept(&self) -> MutexGuard<'_, PendingBlobs> {
        self.unkept.lock()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::disk::{TEMPORARY_PREFIX, own_prefix};

    fn names(folder: &Path) -> Vec<String> {
        let entries = std::fs::read_dir(folder).unwrap();
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
    }

    #[test]
    fn a_content_is_kept_once_under_its_hash_and_privately() {
        let session = tempfile::tempdir().unwrap();
        let blobs = Blobs::new(session.path().join("a/blobs"));
        assert!(!session.path().join("a").exists());
        let id = blobs.put(b"abc").unwrap();
        assert_eq!(id.to_string(), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
        #[cfg(unix)]
        {
            use std::os::unix::fs::{MetadataExt, PermissionsExt};
            let mode = |path: &Path| path.metadata().unwrap().permissions().mode() & 0o777;
            assert_eq!((mode(blobs.folder()), mode(&blobs.path(&id))), (0o700, 0o600));
            let inode = blobs.path(&id).metadata().unwrap().ino();
            assert_eq!(blobs.put(b"abc").unwrap(), id);
            assert_eq!(blobs.path(&id).metadata().unwrap().ino(), inode);
        }
        assert_eq!(names(blobs.folder()), [id.to_string()]);
        assert_eq!(blobs.clone().get(&id).unwrap(), b"abc");
    }

    #[test]
    fn a_damaged_blob_is_an_error_that_names_it_until_its_content_comes_again() {
        let session = tempfile::tempdir().unwrap();
        let blobs = Blobs::new(session.path().join("blobs"));
        let id = blobs.put(b"content").unwrap();
        for damage in ["", "Content", "content and more"] {
            std::fs::write(blobs.path(&id), damage).unwrap();
            let error = blobs.get(&id).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::InvalidData);
            assert!(error.to_string().contains(&id.to_string()), "{error}");
            blobs.put(b"content").unwrap();
            assert_eq!(blobs.get(&id).unwrap(), b"content");
        }
        assert_eq!(blobs.get(&BlobId::of(b"other")).unwrap_err().kind(), io::ErrorKind::NotFound);
    }

    #[test]
    fn what_a_crash_has_left_is_removed_and_what_is_being_written_stays() {
        let session = tempfile::tempdir().unwrap();
        let blobs = Blobs::new(session.path().to_path_buf());
        let own = format!("{}x", own_prefix());
        std::fs::write(session.path().join(format!("{TEMPORARY_PREFIX}0-x")), "half").unwrap();
        std::fs::write(session.path().join(&own), "half").unwrap();
        let id = blobs.put(b"whole").unwrap().to_string();
        let mut names = names(session.path());
        names.sort();
        assert_eq!(names, [own, id]);
    }

    #[test]
    fn a_folder_that_cannot_be_made_is_an_error_and_not_the_end() {
        let session = tempfile::tempdir().unwrap();
        let folder = session.path().join("blobs");
        std::fs::write(&folder, "in the way").unwrap();
        let blobs = Blobs::new(folder.clone());
        assert!(blobs.put(b"a").is_err() && blobs.scratch().is_err());
        std::fs::remove_file(folder).unwrap();
        blobs.put(b"a").unwrap();
    }

    #[test]
    fn many_blobs_are_synced_together_and_a_few_one_by_one() {
        let session = tempfile::tempdir().unwrap();
        let blobs = Blobs::new(session.path().join("blobs"));
        let ids: Vec<_> = (0..40_u8).map(|byte| blobs.put_unsynced(&[byte]).unwrap()).collect();
        blobs.sync(&ids).unwrap();
        blobs.sync(&[]).unwrap();
        assert!(blobs.sync(&[BlobId::of(b"never put")]).is_err());
        assert_eq!(names(blobs.folder()).len(), 40);
    }

    proptest! {
        #[test]
        fn whatever_is_put_comes_back(bytes in proptest::collection::vec(any::<u8>(), 0..2000)) {
            let session = tempfile::tempdir().unwrap();
            let blobs = Blobs::new(session.path().to_path_buf());
            let id = blobs.put(&bytes).unwrap();
            prop_assert_eq!(blobs.get(&id).unwrap(), bytes);
            let json = serde_json::to_string(&id).unwrap();
            prop_assert_eq!(json.len(), 66);
            prop_assert_eq!(serde_json::from_str::<BlobId>(&json).unwrap(), id);
        }

        #[test]
        fn nothing_but_a_hash_is_a_name(text in "[0-9a-fA-F./é]{0,70}") {
            let is_name = text.len() == 64 && text.bytes().all(|byte| digit(byte).is_some());
            prop_assert_eq!(text.parse::<BlobId>().is_ok(), is_name);
        }
    }

    #[test]
    fn names_that_lead_elsewhere_are_refused() {
        let hash = BlobId::of(b"").to_string();
        let dots = format!("../{}", &hash[3..]);
        for name in ["", "..", "/etc/passwd", &hash[1..], &format!("{hash}0"), &hash.to_uppercase(), &dots] {
            let json = serde_json::to_string(name).unwrap();
            assert!(serde_json::from_str::<BlobId>(&json).is_err(), "{name}");
        }
    }
}
