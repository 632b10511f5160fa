//! A change of the prompt queue, as it is recorded.
//!
//! Rule: plain data.

use serde::{Deserialize, Serialize};

use crate::prompt::PromptPart;
use kode_base::ids::QueueId;
use kode_model::Block;

/// A change of what waits.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "op", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum QueueChange {
    /// It says something else.
    Edited {
        /// What waits.
        id: QueueId,
        /// The new words.
        text: String,
        /// What it will say to the model.
        content: Vec<Block>,
        /// What goes with it.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        parts: Vec<PromptPart>,
    },
    /// It was dropped.
    Removed {
        /// What waited.
        id: QueueId,
    },
    /// It waits in another place of the queue.
    Moved {
        /// The prompt.
        id: QueueId,
        /// The one that comes after it; `None` for the end.
        before: Option<QueueId>,
    },
    /// It waits for the running turn instead of one of its own.
    Promoted {
        /// The prompt.
        id: QueueId,
    },
}
