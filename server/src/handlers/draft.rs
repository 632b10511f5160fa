//! `agent/draft/set`.

use kode_engine::record::draft::PromptDraft;
use kode_protocol as wire;
use serde_json::Value;

use crate::backend::Backend;
use crate::convert::error::{self, RequestError};
use crate::handlers::params::Params;

/// Keeps the unsent prompt.
pub(crate) async fn set(backend: &Backend, params: Params) -> Result<(), RequestError> {
    let params: wire::SetDraftParams = params.read()?;
    let session = backend.session(&params.session_id)?;
    let parts = match params.parts.is_empty() {
        true => Value::Null,
        false => serde_json::to_value(params.parts)
            .map_err(|reason| error::invalid_params("parts", &reason.to_string()))?,
    };
    let draft = PromptDraft { text: params.text, parts };
    let is_empty = draft.text.is_empty() && draft.parts.is_null();
    session.drafts().set((!is_empty).then_some(draft)).map_err(error::draft)
}
