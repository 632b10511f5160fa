//! Where a token count comes from.
//!
//! Rule: plain data.

use serde::{Deserialize, Serialize};

/// How a count came about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum CountSource {
    /// The provider has reported it, except for later additions.
    Reported,
    /// By the kinds of text. `counted` is the name in older journals.
    #[serde(alias = "counted")]
    Estimated,
}
