//! The user's approvals of a workspace's own settings files.
//!
//! Rule: an approval is for one text in one file of one workspace. Any other text, file or workspace needs its own, and
//! what cannot be read approves nothing. Where the editor distrusts the workspace, no approval counts.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::editor::EditorSettings;
use super::lock::Lock;
use super::text::is_absence;
use super::{Settings, SettingsError, WithheldSetting};
use kode_base::atomic;
use kode_base::mask::masked_trust_request;
use kode_base::paths::AbsPath;
use kode_permission::rules::{RuleSource, places};

/// The file's name in the state folder.
const FILE: &str = "approvals.json";
/// The file's mode: other users must not see the approvals.
const MODE: u32 = 0o600;
/// Maximum bytes of an approved text that are kept, to be shown when it has changed.
const MAX_KEPT: usize = 4_096;
/// Maximum number of "not now" answers that are kept.
const MAX_DISMISSED: usize = 4_096;

/// The user's approvals, in a file of the state folder.
#[derive(Debug)]
pub struct Trust {
    file: AbsPath,
    state: AbsPath,
    editor: EditorSettings,
    stored: Mutex<TrustFile>,
}

/// Something a settings file in a workspace asks for, to be approved.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct TrustRequest {
    /// The workspace folder.
    pub root: AbsPath,
    /// The file.
    pub file: AbsPath,
    /// The subject of the request: the setting's key, such as `permissions.allow`.
    pub key: String,
    /// The value, as text, with whatever secrets are in it; [`TrustRequest::shown`] is for people.
    pub text: String,
}

/// The user's decision about all trust requests of a workspace.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TrustState {
    /// Whether the editor distrusts the workspace: then all of it waits, whatever was approved.
    pub is_distrusted: bool,
    /// The waiting requests, the strongest first.
    pub waiting: Vec<PendingTrust>,
    /// Entries in effect by approval.
    pub approved: Vec<ApprovedTrust>,
}

/// How much waits for the user's word, and where.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TrustSummary {
    /// How many settings.
    pub count: usize,
    /// The files they are in.
    pub files: Vec<AbsPath>,
    /// How many of what, in words for people: `2 hooks, 1 MCP server`.
    pub summary: String,
}

impl TrustSummary {
    /// How much of this waits.
    #[must_use]
    pub fn of<'w>(withheld: impl IntoIterator<Item = &'w WithheldSetting>) -> Self {
        let trust_requests: Vec<&TrustRequest> =
            withheld.into_iter().map(|withheld| &withheld.trust_request).collect();
        let files: BTreeSet<_> =
            trust_requests.iter().map(|trust_request| trust_request.file.clone()).collect();
        let summary = summary(trust_requests.iter().map(|trust_request| trust_request.key.as_str()));
        Self { count: trust_requests.len(), files: files.into_iter().collect(), summary }
    }
}

/// How many settings of what there are among these keys, in words for people.
#[must_use]
pub fn summary<'k>(keys: impl Iterator<Item = &'k str>) -> String {
    let mut counts: Vec<(&str, &str, usize)> = Vec::new();
    for key in keys {
        let section = key.split('.').next().unwrap_or(key);
        let (one, many) = match (section, key) {
            ("hooks", _) => ("hook", "hooks"),
            ("mcpServers", _) => ("MCP server", "MCP servers"),
            ("lspServers", _) => ("language server", "language servers"),
            ("env", _) => ("variable", "variables"),
            ("runs", _) => ("agent's program", "agents' programs"),
            ("enabledPlugins", _) => ("plugin", "plugins"),
            (_, "permissions.allow") => ("allow rule", "allow rules"),
            (_, "permissions.additionalDirectories") => ("further folder", "further folders"),
            ("shell", _) => ("file with commands in it", "files with commands in them"),
            ("allowedTools", _) => ("list of tools that run unasked", "lists of tools that run unasked"),
            ("model" | "effortLevel", _) => ("choice of a model", "choices of models"),
            _ => ("other setting", "other settings"),
        };
        match counts.iter_mut().find(|known| known.0 == one) {
            Some(known) => known.2 += 1,
            None => counts.push((one, many, 1)),
        }
    }
    let counts = counts.into_iter().map(|(one, many, count)| match count {
        1 => format!("1 {one}"),
        count => format!("{count} {many}"),
    });
    counts.collect::<Vec<_>>().join(", ")
}

/// Something that is not in force.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PendingTrust {
    /// Its digest, for [`Trust::approve_digests`].
    pub digest: String,
    /// The request.
    pub trust_request: TrustRequest,
    /// Its place.
    pub source: RuleSource,
    /// The earlier approved text, without secrets; perhaps only its beginning.
    pub earlier: Option<String>,
    /// Whether the user has said "not now".
    pub is_dismissed: bool,
}

/// Something that is in force because the user has approved it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ApprovedTrust {
    /// Its digest, for [`Trust::revoke_digests`].
    pub digest: String,
    /// The request.
    pub trust_request: TrustRequest,
    /// Its place.
    pub source: RuleSource,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct TrustFile {
    approved: BTreeSet<String>,
    /// The beginning of an approved text, to show it again beside its change.
    #[serde(default)]
    texts: BTreeMap<String, ApprovedText>,
    /// Requests that the user has dismissed.
    #[serde(default)]
    dismissed: BTreeSet<String>,
}

/// An approved text, or its beginning.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct ApprovedText {
    root: AbsPath,
    file: AbsPath,
    key: String,
    text: String,
}

impl TrustRequest {
    /// The digest of the trust request, in the file of approvals and in what clients are notified: the length of each part
    /// goes in with it, so that no two wishes look alike.
    #[must_use]
    pub fn digest(&self) -> String {
        let root = places::real_on_disk(&self.root);
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

    /// The request, as it may be shown: without secrets.
    #[must_use]
    pub fn shown(&self) -> String {
        masked_trust_request(&self.key, &self.text)
    }

    fn kept(&self) -> ApprovedText {
        let mut end = self.text.len().min(MAX_KEPT);
        while !self.text.is_char_boundary(end) {
            end -= 1;
        }
        let (root, file) = (self.root.clone(), self.file.clone());
        ApprovedText { root, file, key: self.key.clone(), text: self.text[..end].to_owned() }
    }
}

impl Trust {
    /// The approvals kept in a state folder, as far as the editor lets them count. Nothing is read yet.
    #[must_use]
    pub fn new(state: &AbsPath, editor: EditorSettings) -> Self {
        Self { file: state.join(FILE), state: state.clone(), editor, stored: Mutex::default() }
    }

    /// The file they are kept in.
    #[must_use]
    pub fn file(&self) -> &AbsPath {
        &self.file
    }

    /// Reads the file again; where it cannot be read, nothing is approved.
    ///
    /// # Errors
    /// When there is a file that cannot be read.
    pub fn refresh(&self) -> Result<(), SettingsError> {
        match self.read() {
            Ok(stored) => {
                *self.stored.lock() = stored;
                Ok(())
            }
            Err(error) => {
                *self.stored.lock() = TrustFile::default();
                Err(error)
            }
        }
    }

    /// Whether the user has approved exactly this, as far as was read last.
    #[must_use]
    pub fn is_approved(&self, trust_request: &TrustRequest) -> bool {
        if self.editor.is_distrusted() {
            return false;
        }
        if self.stored.lock().approved.is_empty() {
            return false;
        }
        // Made before the lock is taken: it checks the disk.
        let digest = trust_request.digest();
        self.stored.lock().approved.contains(&digest)
    }

    /// Whether the user does not want to be asked about this again, as far as was read last.
    #[must_use]
    pub fn is_dismissed(&self, trust_request: &TrustRequest) -> bool {
        self.stored.lock().dismissed.contains(&trust_request.digest())
    }

    /// Whether the editor distrusts the workspace.
    #[must_use]
    pub fn is_distrusted(&self) -> bool {
        self.editor.is_distrusted()
    }

    /// The waiting and the approved requests of these settings.
    #[must_use]
    pub fn state(&self, settings: &Settings) -> TrustState {
        let stored = self.stored.lock().clone();
        let waiting = settings.withheld.iter().map(|WithheldSetting { trust_request, source }| {
            let digest = trust_request.digest();
            // An entry that is still in the file is not the former one.
            let stands = |kept: &ApprovedText| {
                settings
                    .approved
                    .iter()
                    .any(|known| known.trust_request.key == kept.key && known.trust_request.kept() == *kept)
            };
            let is_earlier = |kept: &&ApprovedText| {
                (&kept.root, &kept.file, &kept.key)
                    == (&trust_request.root, &trust_request.file, &trust_request.key)
                    && kept.text != trust_request.kept().text
                    && !stands(kept)
            };
            PendingTrust {
                is_dismissed: stored.dismissed.contains(&digest),
                earlier: stored
                    .texts
                    .values()
                    .find(is_earlier)
                    .map(|kept| masked_trust_request(&kept.key, &kept.text)),
                digest,
                trust_request: trust_request.clone(),
                source: source.clone(),
            }
        });
        let approved =
            settings.approved.iter().map(|WithheldSetting { trust_request, source }| ApprovedTrust {
                digest: trust_request.digest(),
                trust_request: trust_request.clone(),
                source: source.clone(),
            });
        TrustState {
            is_distrusted: self.editor.is_distrusted(),
            waiting: waiting.collect(),
            approved: approved.collect(),
        }
    }

    /// Waiting requests that the user has not dismissed.
    #[must_use]
    pub fn to_ask(&self, settings: &Settings) -> Vec<String> {
        let digests: Vec<_> =
            settings.withheld.iter().map(|withheld| withheld.trust_request.digest()).collect();
        let stored = self.stored.lock();
        digests.into_iter().filter(|digest| !stored.dismissed.contains(digest)).collect()
    }

    /// Approves these. Blocks until the file is written.
    ///
    /// # Errors
    /// When the file cannot be read or written; nothing is approved then.
    pub fn approve<'a>(
        &self,
        trust_requests: impl IntoIterator<Item = &'a TrustRequest>,
    ) -> Result<(), SettingsError> {
        let trust_requests: Vec<&TrustRequest> = trust_requests.into_iter().collect();
        self.change(|stored| {
            for trust_request in &trust_requests {
                let digest = trust_request.digest();
                stored.dismissed.remove(&digest);
                stored.texts.insert(digest.clone(), trust_request.kept());
                stored.approved.insert(digest);
            }
        })
    }

    /// Approves of what waits by these settings what the user was shown, and nothing that has come since. Tells how much that
    /// is. Blocks until the file is written.
    ///
    /// # Errors
    /// When the file of approvals cannot be read or written; nothing is approved then.
    pub fn approve_digests(&self, settings: &Settings, digests: &[String]) -> Result<usize, SettingsError> {
        let trust_requests = of(&settings.withheld, digests);
        if !trust_requests.is_empty() {
            self.approve(trust_requests.iter().copied())?;
        }
        Ok(trust_requests.len())
    }

    /// Takes approvals back. Blocks until the file is written.
    ///
    /// # Errors
    /// When the file cannot be read or written; the approvals stay then.
    pub fn revoke<'a>(
        &self,
        trust_requests: impl IntoIterator<Item = &'a TrustRequest>,
    ) -> Result<(), SettingsError> {
        let digests: Vec<String> = trust_requests.into_iter().map(TrustRequest::digest).collect();
        self.change(|stored| {
            stored.approved.retain(|known| !digests.contains(known));
            stored.texts.retain(|known, _| !digests.contains(known));
        })
    }

    /// Takes those of these approvals back that count by these settings, and returns their number. A revoked one is asked
    /// for no more until it changes. Blocks until the file is written.
    ///
    /// # Errors
    /// When the file cannot be read or written; the approvals stay then.
    pub fn revoke_digests(&self, settings: &Settings, digests: &[String]) -> Result<usize, SettingsError> {
        let trust_requests = of(&settings.approved, digests);
        if !trust_requests.is_empty() {
            self.revoke(trust_requests.iter().copied())?;
            self.dismiss(
                &trust_requests.iter().map(|trust_request| trust_request.digest()).collect::<Vec<_>>(),
            )?;
        }
        Ok(trust_requests.len())
    }

    /// Remembers that the user does not want to be asked about these again. Blocks until the file is written.
    ///
    /// # Errors
    /// When the file cannot be read or written.
    pub fn dismiss(&self, digests: &[String]) -> Result<(), SettingsError> {
        self.change(|stored| {
            stored.dismissed.extend(digests.iter().cloned());
            while stored.dismissed.len() > MAX_DISMISSED {
                stored.dismissed.pop_first();
            }
        })
    }

    fn change(&self, change: impl FnOnce(&mut TrustFile)) -> Result<(), SettingsError> {
        let _lock = Lock::take(&self.state, &self.file)?;
        let mut stored = self.read()?;
        let failed = |source| SettingsError::Io { file: self.file.clone(), source };
        let bytes =
            |stored: &TrustFile| serde_json::to_vec_pretty(stored).map_err(|error| failed(error.into()));
        let before = bytes(&stored)?;
        change(&mut stored);
        let bytes = bytes(&stored)?;
        if bytes != before {
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
        *self.stored.lock() = stored;
        Ok(())
    }

    fn read(&self) -> Result<TrustFile, SettingsError> {
        match std::fs::read(self.file.as_path()) {
            Ok(bytes) => serde_json::from_slice(&bytes).map_err(|error| SettingsError::Broken {
                file: self.file.clone(),
                reason: error.to_string(),
            }),
            Err(error) if is_absence(&error) => Ok(TrustFile::default()),
            Err(source) => Err(SettingsError::Io { file: self.file.clone(), source }),
        }
    }
}

/// The wishes that some of these digests stand for.
fn of<'w>(withheld: &'w [WithheldSetting], digests: &[String]) -> Vec<&'w TrustRequest> {
    let trust_requests = withheld.iter().map(|withheld| &withheld.trust_request);
    trust_requests.filter(|trust_request| digests.contains(&trust_request.digest())).collect()
}
