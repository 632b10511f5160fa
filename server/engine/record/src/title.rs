//! Who named a session.
//!
//! Rule: plain data.

use serde::{Deserialize, Serialize};

/// Who gave a session its title.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum TitledBy {
    /// The user.
    User,
    /// A model.
    Model,
}
