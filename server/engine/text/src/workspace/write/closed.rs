//! Writing and removing closed files.
//!
//! Rule: a path is followed once, and judged by where it led; then its folder is opened there without a link, and every step
//! goes through that folder. Whatever replaces the folder or the file meanwhile, nothing lands elsewhere.

use std::io;

use super::{ApplyError, Attempt, MergedEdits, WriteJob};
use crate::edit::AppliedFile;
use crate::edit::change::apply_edits;
use crate::workspace::ReadError;
use crate::workspace::error::BytesError;
use crate::workspace::overlay::{Roots, bytes_of, real_path, regular};
use crate::workspace::shadow::mode_at;
use kode_base::anchor::{Anchor, EntryType};
use kode_base::encoding::{self, TextFormat};
use kode_base::file_turn::FileTurn;
use kode_base::paths::AbsPath;

impl WriteJob {
    pub(super) fn write(self, roots: &Roots, place: &AbsPath) -> Result<Attempt, ApplyError> {
        let real = self.followed(roots, place)?;
        match self.file.base {
            Some(_) => self.replace(place, &real),
            None => self.create(&real),
        }
    }

    /// Makes the folder of a file that is to be created. False when something is in its place already.
    pub(super) fn make_folder(&self, roots: &Roots, place: &AbsPath) -> Result<bool, ApplyError> {
        let is_inside = roots.name(place) && real_path(place).is_ok_and(|real| roots.reach(&real));
        if !is_inside || place.as_path().symlink_metadata().is_ok() {
            return Ok(false);
        }
        let real = self.followed(roots, place)?;
        Anchor::open_or_make(real.as_path()).map_err(|error| self.io_error(error))?;
        Ok(true)
    }

    /// Where the file is, links followed: inside the workspace if it is named so, and where it was when the call was judged.
    fn followed(&self, roots: &Roots, place: &AbsPath) -> Result<AbsPath, ApplyError> {
        let real = real_path(place);
        if roots.name(place) && !real.as_ref().is_ok_and(|real| roots.reach(real)) {
            return Err(self.forbidden("it leads out of the workspace, or nowhere, through a symbolic link"));
        }
        let real = real.map_err(|error| self.io_error(error))?;
        match &self.judged {
            Some(judged) if *judged != real => Err(ApplyError::Replaced { path: self.path.clone() }),
            _ => Ok(real),
        }
    }

    fn replace(&self, place: &AbsPath, real: &AbsPath) -> Result<Attempt, ApplyError> {
        let _turn = FileTurn::take(real.as_path());
        let anchor = Anchor::open(real.as_path()).map_err(|error| self.io_error(error))?;
        let bytes = read(&anchor).map_err(|error| match error {
            BytesError::Replaced => ApplyError::Replaced { path: self.path.clone() },
            error => ApplyError::from_read(error.into_read_error(&self.path)),
        })?;
        let facts = anchor.facts().map_err(|error| self.io_error(error))?;
        if !anchor.is_writable() {
            return Err(self.forbidden("it is read-only"));
        }
        let decoded = encoding::decode(&bytes)
            .map_err(|not_text| ApplyError::Unreadable(ReadError::of_bytes(not_text, &self.path)))?;
        let MergedEdits { edits, rebased } = self.merge(&decoded.text)?;
        let new_text = apply_edits(&decoded.text, &edits);
        let format = decoded.format;
        let done = |edits| {
            let done = self.done(decoded.text.clone(), new_text.clone(), edits, rebased);
            let bytes = Some(bytes.as_slice().into());
            Attempt::Done(Box::new(AppliedFile { format: Some(format), bytes, ..done }))
        };
        if new_text == decoded.text {
            return Ok(done(Vec::new()));
        }
        let encode_error = |source| ApplyError::Encode { path: self.path.clone(), source };
        decoded.format.check_faithful(&decoded.text, &bytes).map_err(encode_error)?;
        let new_bytes = decoded.format.encode(&new_text).map_err(encode_error)?;
        let is_unchanged = || {
            real_path(place).is_ok_and(|now| now == *real)
                && anchor.is_in_place()
                && read(&anchor).is_ok_and(|now| now == bytes)
        };
        match anchor.replace(&new_bytes, &facts, facts.mode, is_unchanged) {
            Ok(true) => Ok(done(edits)),
            Ok(false) => Ok(Attempt::Again { rebased }),
            Err(error) => Err(self.io_error(error)),
        }
    }

    fn create(&self, real: &AbsPath) -> Result<Attempt, ApplyError> {
        let new_text = self.file.new_text();
        let encode_error = |source| ApplyError::Encode { path: self.path.clone(), source };
        let format = self.moved.as_ref().map_or(TextFormat::UTF_8, |moved| moved.base.format);
        let bytes = format.encode(&new_text).map_err(encode_error)?;
        let anchor = Anchor::open_or_make(real.as_path()).map_err(|error| self.io_error(error))?;
        let mode =
            self.moved.as_ref().and_then(|moved| moved.target.file()).and_then(|old| mode_at(old.as_path()));
        match anchor.create(&bytes, mode) {
            Ok(()) => {
                let done = self.done(String::new(), new_text, self.file.edits.clone(), self.rebased);
                Ok(Attempt::Done(Box::new(AppliedFile { created: true, format: Some(format), ..done })))
            }
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                Err(ApplyError::Exists { path: self.path.clone() })
            }
            Err(error) => Err(self.io_error(error)),
        }
    }
}

/// Removes a file because all of its text was undone, or only says whether it may be removed.
///
/// # Errors
/// Why it stays; `NotFound` when it is gone.
pub(super) fn remove_undone(
    place: &AbsPath,
    roots: &Roots,
    undone: &str,
    is_removed: bool,
) -> io::Result<()> {
    let forbidden = |reason| io::Error::new(io::ErrorKind::InvalidInput, reason);
    // Of a link the file it leads to would be read, and the link itself removed.
    let metadata = std::fs::symlink_metadata(place)?;
    if !metadata.is_file() {
        return Err(forbidden("it is a link, or no file"));
    }
    let real = real_path(place)?;
    if roots.name(place) && !roots.reach(&real) {
        return Err(forbidden("it leads out of the workspace"));
    }
    let anchor = Anchor::open(real.as_path())?;
    let facts = anchor.facts()?;
    if facts.kind != EntryType::File {
        return Err(forbidden("it is a link, or no file"));
    }
    // An editor that has not saved the empty text has left what the agent wrote. No encoding takes more than four bytes for one.
    let busy = || io::Error::new(io::ErrorKind::ResourceBusy, "there is other text in it");
    if facts.size > 0 {
        if facts.size > undone.len() as u64 * 4 + 4 {
            return Err(busy());
        }
        let bytes = read(&anchor).map_err(|_| busy())?;
        if !encoding::decode(&bytes).is_ok_and(|decoded| decoded.text == undone) {
            return Err(busy());
        }
    }
    if is_removed { anchor.remove() } else { Ok(()) }
}

/// The bytes of the file that an anchor names.
fn read(anchor: &Anchor) -> Result<Vec<u8>, BytesError> {
    match anchor.open_file() {
        Ok(file) => Ok(bytes_of(regular(file)?)?.bytes),
        Err(error) if is_link(&error) => Err(BytesError::Replaced),
        Err(error) => Err(error.into()),
    }
}

/// Whether an error says that a link is where none may be.
pub(super) fn is_link(error: &io::Error) -> bool {
    #[cfg(unix)]
    return kode_base::beneath::is_link(error);
    #[cfg(not(unix))]
    {
        let _ = error;
        false
    }
}
