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
        /// The queued prompts.
        id: QueueId,
        /// The new words.
        text: String,
        /// Its text for the model.
        content: Vec<Block>,
        /// Its attachments.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        parts: Vec<PromptPart>,
    },
    /// It was dropped.
    Removed {
        /// The queued prompts.
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
