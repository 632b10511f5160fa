//! Notes for models that take no pictures, and text for those that take no documents.
//!
//! Rule: no picture or document is lost in silence; its note or text is in its place, the same in every wire format.

use std::borrow::Cow;

use kode_model::{Capabilities, Image};

/// The separator of a text and the notes on its images.
const BLANK_LINE: &str = "\n\n";

/// The name of documents, where a provider wants one.
pub(super) const FILE_NAME: &str = "document.pdf";

/// The text for a model in place of an image or document that it does not accept.
pub(super) fn note(image: &Image) -> String {
    match &image.text {
        Some(text) if image.is_pdf() => format!("[The text of a PDF document]\n{}", text.trim_end()),
        None if image.is_pdf() => "[A PDF document is here, which this model cannot read.]".to_owned(),
        _ => format!("[A picture ({}) is here, which this model cannot see.]", image.media_type),
    }
}

/// A text with a note on each of its pictures and documents that the model does not take.
pub(super) fn noted<'a>(text: &'a str, images: &[Image], capabilities: Capabilities) -> Cow<'a, str> {
    let mut notes = images.iter().filter(|image| !capabilities.takes(image)).map(note).peekable();
    if notes.peek().is_none() {
        return Cow::Borrowed(text);
    }
    let said = (!text.trim().is_empty()).then(|| text.to_owned());
    Cow::Owned(said.into_iter().chain(notes).collect::<Vec<_>>().join(BLANK_LINE))
}

/// The pictures and documents that go to the model as they are.
pub(super) fn taken(images: &[Image], capabilities: Capabilities) -> impl Iterator<Item = &Image> {
    images.iter().filter(move |image| capabilities.takes(image))
}
