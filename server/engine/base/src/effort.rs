//! How much effort a model puts into thinking.
//!
//! Rule: a provider maps these levels to what its wire format knows.

use serde::{Deserialize, Serialize};

/// How hard the model should think.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Effort {
    /// Little.
    Low,
    /// As usual.
    Medium,
    /// Much.
    High,
}

impl Effort {
    /// All of them, the least first.
    pub const ALL: [Self; 3] = [Self::Low, Self::Medium, Self::High];

    /// Its name in settings.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Low => "low",
            Self::Medium => "medium",
            Self::High => "high",
        }
    }
}
