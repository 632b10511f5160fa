//! What the user has approved of what a workspace's own settings files ask for.
//!
//! Rule: an approval is for one text in one file of one workspace. Any other text, file or workspace needs its own, and
//! what cannot be read approves nothing.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::sync::Mutex;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::lock::Lock;
use super::text::is_absence;
use super::{Settings, SettingsError};
use crate::paths::AbsPath;
use crate::workspace::atomic;

/// The file's name in the state folder.
const FILE: &str = "approvals.json";
/// The file's mode: nobody else has to know what the user trusts.
const MODE: u32 = 0o600;

/// The user's approvals, in a file of the state folder.
#[derive(Debug)]
pub struct Trust {
    file: AbsPath,
    state: AbsPath,
    approved: Mutex<BTreeSet<String>>,
}

/// Something a settings file in a workspace asks for, to be approved.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Wish {
    /// The workspace folder.
    pub root: AbsPath,
    /// The file.
    pub file: AbsPath,
    /// What is asked for: the setting's key, such as `permissions.allow`.
    pub key: String,
    /// The value, as text.
    pub text: String,
}

/// What the user was shown of a wish: what they say yes to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shown {
    /// The setting's key.
    pub key: String,
    /// The value, as text.
    pub text: String,
}

impl From<&Wish> for Shown {
    fn from(wish: &Wish) -> Self {
        Self { key: wish.key.clone(), text: wish.text.clone() }
    }
}

#[derive(Default, Serialize, Deserialize)]
struct Stored {
    approved: BTreeSet<String>,
}

impl Wish {
    /// What stands for the wish in the file: the length of each part goes in with it, so that no two wishes look alike.
    fn digest(&self) -> String {
        let root = crate::permission::rules::places::real_on_disk(&self.root);
        let relative = self.file.as_path().strip_prefix(self.root.as_path()).unwrap_or(self.file.as_path());
        let parts = [
            root.as_path().as_os_str().as_encoded_bytes(),
            relative.as_os_str().as_encoded_bytes(),
            self.key.as_bytes(),
            self.text.as_bytes(),
        ];
        let mut digest = Sha256::new();
        for part in parts {
            digest.update((part.len() as u64).to_be_bytes());
            digest.update(part);
        }
        digest.finalize().iter().fold(String::new(), |mut text, byte| {
            // Writing to a string cannot fail.
            let _ = write!(text, "{byte:02x}");
            text
        })
    }
}

impl Trust {
    /// The approvals kept in a state folder. Nothing is read yet.
    #[must_use]
    pub fn new(state: &AbsPath) -> Self {
        Self { file: state.join(FILE), state: state.clone(), approved: Mutex::default() }
    }

    /// The file they are kept in.
    #[must_use]
    pub fn file(&self) -> &AbsPath {
        &self.file
    }

    /// Reads the file anew; where it cannot be read, nothing is approved.
    ///
    /// # Errors
    /// When there is a file that cannot be read.
    pub fn refresh(&self) -> Result<(), SettingsError> {
        let read = self.read();
        *self.lock() = read.as_ref().map(|stored| stored.approved.clone()).unwrap_or_default();
        read.map(|_| ())
    }

    /// Whether the user has approved exactly this, as far as was read last.
    #[must_use]
    pub fn is_approved(&self, wish: &Wish) -> bool {
        let approved = self.lock();
        !approved.is_empty() && approved.contains(&wish.digest())
    }

    /// Approves these. Blocks until the file is written.
    ///
    /// # Errors
    /// When the file cannot be read or written; nothing is approved then.
    pub fn approve<'a>(&self, wishes: impl IntoIterator<Item = &'a Wish>) -> Result<(), SettingsError> {
        let digests: Vec<String> = wishes.into_iter().map(Wish::digest).collect();
        self.change(|approved| approved.extend(digests))
    }

    /// Approves of what a file asks for by these settings what the user has been shown, and nothing that has come into
    /// the file since. Tells how much that is. Blocks until the file of approvals is written.
    ///
    /// # Errors
    /// When the file of approvals cannot be read or written; nothing is approved then.
    pub fn approve_shown(
        &self,
        settings: &Settings,
        file: &AbsPath,
        shown: &[Shown],
    ) -> Result<usize, SettingsError> {
        let is_meant = |wish: &&Wish| {
            let is_shown = |shown: &Shown| shown.key == wish.key && shown.text == wish.text;
            wish.file == *file && shown.iter().any(is_shown)
        };
        let wishes: Vec<&Wish> =
            settings.withheld.iter().map(|withheld| &withheld.wish).filter(is_meant).collect();
        if !wishes.is_empty() {
            self.approve(wishes.iter().copied())?;
        }
        Ok(wishes.len())
    }

    /// Takes approvals back. Blocks until the file is written.
    ///
    /// # Errors
    /// When the file cannot be read or written; the approvals stay then.
    pub fn revoke<'a>(&self, wishes: impl IntoIterator<Item = &'a Wish>) -> Result<(), SettingsError> {
        let digests: Vec<String> = wishes.into_iter().map(Wish::digest).collect();
        self.change(|approved| approved.retain(|known| !digests.contains(known)))
    }

    fn change(&self, change: impl FnOnce(&mut BTreeSet<String>)) -> Result<(), SettingsError> {
        let _lock = Lock::take(&self.state, &self.file)?;
        let mut stored = self.read()?;
        let before = stored.approved.clone();
        change(&mut stored.approved);
        if stored.approved != before {
            let failed = |source| SettingsError::Io { file: self.file.clone(), source };
            let bytes = serde_json::to_vec_pretty(&stored).map_err(|error| failed(error.into()))?;
            match self.file.as_path().symlink_metadata() {
                Ok(metadata) => atomic::replace_as(self.file.as_path(), &bytes, &metadata, MODE, || true)
                    .map(|_| ())
                    .map_err(failed)?,
                Err(error) if is_absence(&error) => {
                    atomic::create_as(self.file.as_path(), &bytes, MODE).map_err(failed)?;
                }
                Err(error) => return Err(failed(error)),
            }
        }
        *self.lock() = stored.approved;
        Ok(())
    }

    fn read(&self) -> Result<Stored, SettingsError> {
        match std::fs::read(self.file.as_path()) {
            Ok(bytes) => serde_json::from_slice(&bytes).map_err(|error| SettingsError::Broken {
                file: self.file.clone(),
                reason: error.to_string(),
            }),
            Err(error) if is_absence(&error) => Ok(Stored::default()),
            Err(source) => Err(SettingsError::Io { file: self.file.clone(), source }),
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, BTreeSet<String>> {
        self.approved.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}
