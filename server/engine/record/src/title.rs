//! The author of a session's title.
//!
//! Rule: plain data.

use serde::{Deserialize, Serialize};

/// The author of a session's title.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum TitledBy {
    /// The user.
    User,
    /// A model.
    Model,
}
