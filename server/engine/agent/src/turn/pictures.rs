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
const WORDS: [&str; 13] = [
    "image",
    "picture",
    "photo",
    "media",
    "mime",
    "pdf",
    "document",
    "base64",
    "vision",
    "multimodal",
    "modalit",
    "inline_data",
    "inlinedata",
];

/// The status of a request whose content has a type that the server does not take.
const UNSUPPORTED_TYPE: u16 = 415;

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
        && (error.status == Some(UNSUPPORTED_TYPE) || WORDS.iter().any(|word| words.contains(word)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_refusals_that_name_a_picture_or_document_are_about_pictures() {
        use ModelErrorKind::{BadRequest, RateLimited};
        let cases = [
            (BadRequest, "messages.0.content.1.image.source.base64: invalid base64 data", true),
            (BadRequest, "Could not process image", true),
            (BadRequest, "The PDF specified was not valid.", true),
            (BadRequest, "Unable to process input image. Please retry", true),
            (BadRequest, "Unsupported MIME type: image/tiff", true),
            (BadRequest, "tools.0: Extra inputs are not permitted", false),
            (RateLimited, "too many image tokens a minute", false),
        ];
        for (kind, message, expected) in cases {
            assert_eq!(is_about_pictures(&ModelError::new(kind, message)), expected, "{message}");
        }
    }
}
