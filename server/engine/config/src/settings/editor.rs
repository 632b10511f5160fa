//! The editor's settings: settings of its own, and whether it trusts the workspace.
//!
//! Rule: an editor's settings may be the repository's (`.vscode/settings.json`), so they only narrow; what loosens counts from
//! what the client says is the user's own. Where the editor distrusts the workspace, no approval counts.

use std::sync::Arc;

use parking_lot::Mutex;
use serde_json::Value;

/// The last settings of the editor. Clones are the same one.
#[derive(Clone, Debug, Default)]
pub struct EditorSettings(Arc<Mutex<LatestUpdate>>);

#[derive(Debug, Default)]
struct LatestUpdate {
    number: u64,
    word: Arc<EditorUpdate>,
}

/// The settings of an editor. `Null` is nothing.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct EditorUpdate {
    /// Settings of unknown origin: an object as a settings file holds it.
    pub settings: Value,
    /// Settings that the client says are the user's own.
    pub user_settings: Value,
    /// Whether the editor holds the workspace for untrustworthy.
    pub is_distrusted: bool,
}

impl EditorSettings {
    /// Puts another word in the place of the last one, and says whether it is another.
    pub fn say(&self, word: EditorUpdate) -> bool {
        self.change(|known| *known = word)
    }

    /// Changes the statement, and returns whether it differs now.
    pub fn change(&self, change: impl FnOnce(&mut EditorUpdate)) -> bool {
        let mut latest = self.0.lock();
        let mut word = EditorUpdate::clone(&latest.word);
        change(&mut word);
        if word == *latest.word {
            return false;
        }
        *latest = LatestUpdate { number: latest.number + 1, word: Arc::new(word) };
        true
    }

    /// The last statement.
    #[must_use]
    pub fn word(&self) -> Arc<EditorUpdate> {
        Arc::clone(&self.0.lock().word)
    }

    /// Whether the editor holds the workspace for untrustworthy.
    #[must_use]
    pub fn is_distrusted(&self) -> bool {
        self.word().is_distrusted
    }

    /// Number of changed statements.
    pub(super) fn number(&self) -> u64 {
        self.0.lock().number
    }
}
