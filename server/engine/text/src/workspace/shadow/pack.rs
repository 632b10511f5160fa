//! The contents a shadow holds, in one file without a name that is gone with the last handle to it.
//!
//! Rule: contents are only added and found by their hash, so that the owner of a pack finds its contents there.
//! Of all these contents few are ever needed: those that a command changes. Only they become blobs.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::sync::Arc;

use kode_journal::{BlobId, Blobs};
use parking_lot::Mutex;

/// Contents, each kept once. Clones are the same pack.
#[derive(Clone, Debug, Default)]
pub(super) struct Pack {
    inner: Arc<Mutex<PackFile>>,
}

#[derive(Debug, Default)]
struct PackFile {
    /// Made with the first content.
    file: Option<File>,
    length: u64,
    places: HashMap<BlobId, PackRange>,
}

#[derive(Clone, Copy, Debug)]
struct PackRange {
    offset: u64,
    length: usize,
}

impl Pack {
    /// Keeps a content, in a scratch file of `blobs`.
    pub(super) fn put(&self, bytes: &[u8], blobs: &Blobs) -> io::Result<BlobId> {
        let id = BlobId::of(bytes);
        let mut inner = self.inner.lock();
        let PackFile { file, length, places } = &mut *inner;
        if places.contains_key(&id) {
            return Ok(id);
        }
        let file = match file {
            Some(file) => file,
            None => file.insert(blobs.scratch()?),
        };
        let place = PackRange { offset: *length, length: bytes.len() };
        // After a failed write the next one begins at the same place.
        file.seek(SeekFrom::Start(place.offset))?;
        file.write_all(bytes)?;
        *length += bytes.len() as u64;
        places.insert(id, place);
        Ok(id)
    }

    /// Reads a content that was put into this pack.
    pub(super) fn get(&self, id: &BlobId) -> io::Result<Vec<u8>> {
        let mut inner = self.inner.lock();
        let place = inner.places.get(id).copied();
        let (Some(place), Some(file)) = (place, &mut inner.file) else {
            return Err(io::Error::new(io::ErrorKind::NotFound, "its bytes are not kept"));
        };
        let mut bytes = vec![0; place.length];
        file.seek(SeekFrom::Start(place.offset))?;
        file.read_exact(&mut bytes)?;
        Ok(bytes)
    }

    /// Length of its file in bytes, unneeded contents included.
    pub(super) fn length(&self) -> u64 {
        self.inner.lock().length
    }
}
