//! Keys: what must not be shown, and where it comes from.
//!
//! Rule: no debug output shows a secret; it is exposed to the one place that sends it.

use std::path::PathBuf;
use std::time::Duration;

use serde::Deserialize;

use kode_base::secret::Secret;

/// How long the key of a helper is used, unless the user says otherwise.
pub const HELPER_TTL: Duration = Duration::from_secs(300);

/// How requests prove who they are from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Credentials {
    /// Not at all, as servers on the user's own machine take them; also as long as a helper has not given its key.
    None,
    /// A key, sent as the wire format wants keys sent: `x-api-key`, or `authorization: Bearer`.
    ApiKey(Secret),
    /// A token, sent as `authorization: Bearer`.
    Bearer(Secret),
    /// Signed requests to AWS. The identity is looked up when a request needs it.
    Aws {
        /// The region that signatures are for.
        region: String,
        /// The profile in the shared files; that of the environment if not said.
        profile: Option<String>,
    },
}

impl Credentials {
    /// The key or token, if there is one.
    #[must_use]
    pub fn secret(&self) -> Option<&Secret> {
        match self {
            Self::None | Self::Aws { .. } => None,
            Self::ApiKey(secret) | Self::Bearer(secret) => Some(secret),
        }
    }
}

/// A command of the user's that prints a key when one is needed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyHelper {
    /// The command line, in the shell's language.
    pub command: String,
    /// How long its key is used before it is asked again.
    pub ttl: Duration,
}

/// A key as settings give it: itself, or by the name of the variable that holds it.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(untagged)]
pub enum KeyOption {
    /// The key itself, or a text with `${NAME}` in it.
    Text(Secret),
    /// The variable that holds it.
    #[serde(rename_all = "camelCase")]
    Variable {
        /// Its name.
        from_env: String,
    },
    /// The file that holds it, and nothing else.
    #[serde(rename_all = "camelCase")]
    File {
        /// Its path, absolute or from `~`.
        from_file: PathBuf,
    },
    /// The key, in an object as exports of profiles have it.
    Value {
        /// The key itself.
        value: Secret,
    },
}
