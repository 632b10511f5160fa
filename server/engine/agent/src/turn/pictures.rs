//! Pictures and documents that the provider refused for their content.
//!
//! Rule: a refused picture goes into no later request. The pictures that no answer follows go first; all others go when the
//! provider refuses the request again. The transcript keeps every picture and says that the model does not see it.

use crate::state::images;
use crate::turn::services::TurnContext;
use kode_model::{ModelError, ModelErrorKind};
use kode_record::event::{NoticeKind, NoticeLevel};
use kode_record::record::Record;

/// Words of errors about pictures or documents, in lower case.
const WORDS: [&str; 11] = [
    "image",
    "picture",
    "photo",
    "media type",
    "media_type",
    "mime",
    "pdf",
    "document",
    "base64",
    "multimodal",
    "inline_data",
];

/// The statuses of requests whose content is refused. Another one is about the model, the address or the account.
const STATUSES: [u16; 4] = [400, 413, 415, 422];

/// Leaves out the pictures that the provider refused, and notifies the user. False where the error is about something
/// else, or the conversation has no picture.
pub(super) fn leave_out_refused(turn: TurnContext<'_>, error: &ModelError) -> bool {
    if !is_about_pictures(error) {
        return false;
    }
    let (unanswered, all) =
        turn.read(|thread| (images::count_unanswered(&thread.messages), images::count(&thread.messages)));
    let newest = if unanswered > 0 { unanswered } else { all };
    if newest == 0 {
        return false;
    }
    let record = Record::PicturesRefused { turn: turn.id.clone(), newest, reason: error.to_string() };
    turn.commit(record);
    let text = match newest {
        1 => "Left out a picture or document: the provider refused it.".to_owned(),
        _ => format!("Left out {newest} pictures and documents: the provider refused one of them."),
    };
    let hint = format!("{error}. Attach it again in another format or size.");
    turn.notice_of(NoticeKind::ApiError, (NoticeLevel::Warning, &text, &hint));
    true
}

fn is_about_pictures(error: &ModelError) -> bool {
    let words = error.message.to_lowercase();
    error.kind == ModelErrorKind::BadRequest
        && error.status.is_none_or(|status| STATUSES.contains(&status))
        && WORDS.iter().any(|word| words.contains(word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_refusals_that_name_a_picture_or_document_are_about_pictures() {
        use ModelErrorKind::{BadRequest, RateLimited};
        let cases = [
            (BadRequest, Some(400), "messages.0.content.1.image.source.base64: invalid base64 data", true),
            (BadRequest, Some(400), "Could not process image", true),
            (BadRequest, Some(400), "The PDF specified was not valid.", true),
            (BadRequest, None, "Unable to process input image. Please retry", true),
            (BadRequest, Some(415), "Unsupported MIME type: image/tiff", true),
            (BadRequest, Some(404), "The model `gpt-image-1` does not exist", false),
            (BadRequest, Some(400), "tools.0: Extra inputs are not permitted", false),
            (RateLimited, Some(429), "too many image tokens a minute", false),
        ];
        for (kind, status, message, expected) in cases {
            let error = ModelError { status, ..ModelError::new(kind, message) };
            assert_eq!(is_about_pictures(&error), expected, "{message}");
        }
    }
}
