//! Pictures for models that see none.
//!
//! Rule: no picture is lost in silence; a note stands in its place, the same in every wire format.

use std::borrow::Cow;

use kode_model::Image;

/// What stands between a text and the notes on its pictures.
const BLANK_LINE: &str = "\n\n";

/// What a model reads in place of a picture that it cannot see.
pub(super) fn note(image: &Image) -> String {
    format!("[A picture ({}) is here, which this model cannot see.]", image.media_type)
}

/// A text with a note on each of its pictures.
pub(super) fn noted<'a>(text: &'a str, images: &[Image]) -> Cow<'a, str> {
    if images.is_empty() {
        return Cow::Borrowed(text);
    }
    let said = (!text.trim().is_empty()).then(|| text.to_owned());
    Cow::Owned(said.into_iter().chain(images.iter().map(note)).collect::<Vec<_>>().join(BLANK_LINE))
}
