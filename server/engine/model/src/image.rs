//! Pictures and PDF documents in prompts and tool results: which ones there can be.
//!
//! Rule: the first bytes decide what a file is, not its name or the media type that a client states.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use kode_net::pdf;

use crate::Image;

/// The largest picture, in bytes.
pub const MAX_IMAGE_BYTES: usize = 5 << 20;

/// The largest PDF document, in bytes. Providers take requests up to 20 MB, base64 included.
pub const MAX_PDF_BYTES: usize = 14 << 20;

/// The media type of PDF documents.
pub const PDF: &str = "application/pdf";

/// The line before each page in the text of a document begins so.
const PAGE: &str = "[Page ";

/// Maximum number of images in one prompt.
pub const MAX_IMAGES: usize = 20;

/// The most bytes of all pictures that go with one prompt.
pub const MAX_ALL_IMAGES_BYTES: u64 = 20 << 20;

/// Why something is not sent as a picture.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadImage {
    /// It is no picture of a known kind.
    #[error("it is no PNG, JPEG, GIF or WebP picture and no PDF document")]
    NotAnImage,
    /// Its declared kind is wrong.
    #[error("declared as `{said}` but is `{found}`")]
    OtherType {
        /// The declared kind.
        said: String,
        /// The kind by its first bytes.
        found: &'static str,
    },
    /// It is not base64.
    #[error("its data is not base64")]
    NotBase64,
    /// It is too large.
    #[error("it has {0} bytes, and a picture may have {MAX_IMAGE_BYTES}")]
    TooLarge(u64),
    /// It is too large.
    #[error("it has {0} bytes, and a PDF document may have {MAX_PDF_BYTES}")]
    PdfTooLarge(u64),
}

/// The media type of a picture or PDF document, by its first bytes; `None` for everything else.
#[must_use]
pub fn media_type(bytes: &[u8]) -> Option<&'static str> {
    match bytes {
        [0x89, b'P', b'N', b'G', b'\r', b'\n', 0x1a, b'\n', ..] => Some("image/png"),
        [0xff, 0xd8, 0xff, ..] => Some("image/jpeg"),
        [b'G', b'I', b'F', b'8', b'7' | b'9', b'a', ..] => Some("image/gif"),
        [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'E', b'B', b'P', ..] => Some("image/webp"),
        bytes if pdf::is_pdf(bytes) => Some(PDF),
        _ => None,
    }
}

impl Image {
    /// A picture or document from its bytes. A document has no text yet, see [`Image::readable`].
    ///
    /// # Errors
    /// [`BadImage`]: too large, or neither.
    pub fn of_bytes(bytes: &[u8]) -> Result<Self, BadImage> {
        match media_type(bytes) {
            Some(PDF) if bytes.len() > MAX_PDF_BYTES => Err(BadImage::PdfTooLarge(bytes.len() as u64)),
            Some(PDF) => Ok(Self { media_type: PDF.to_owned(), data: STANDARD.encode(bytes), text: None }),
            _ if bytes.len() > MAX_IMAGE_BYTES => Err(BadImage::TooLarge(bytes.len() as u64)),
            Some(kind) => Ok(Self { media_type: kind.to_owned(), data: STANDARD.encode(bytes), text: None }),
            None => Err(BadImage::NotAnImage),
        }
    }

    /// Whether it is a PDF document.
    #[must_use]
    pub fn is_pdf(&self) -> bool {
        self.media_type == PDF
    }

    /// The same with the text of a document, for models that take none; a picture unchanged. Blocks for as long as the
    /// document takes to parse.
    #[must_use]
    pub fn readable(mut self) -> Self {
        if self.is_pdf() && self.text.is_none() {
            let read = STANDARD.decode(&self.data).map_err(|_| BadImage::NotBase64.to_string());
            let read = read.and_then(|bytes| pdf::text(&bytes).map_err(|error| error.to_string()));
            self.text =
                Some(read.unwrap_or_else(|reason| format!("[The document has no text here: {reason}]")));
        }
        self
    }

    /// The number of pages whose text is known.
    #[must_use]
    pub fn pages(&self) -> usize {
        self.text.as_ref().map_or(0, |text| text.lines().filter(|line| line.starts_with(PAGE)).count())
    }

    /// A picture or document as a client sends it: its type as stated, and its bytes in base64.
    ///
    /// # Errors
    /// [`BadImage`]: too large, not base64, no picture, or one of another type.
    pub fn of_base64(said: &str, data: &str) -> Result<Self, BadImage> {
        // Four characters of base64 are three bytes: longer data is not even decoded.
        let length = data.len() / 4 * 3;
        match said {
            PDF if length > MAX_PDF_BYTES + 2 => return Err(BadImage::PdfTooLarge(length as u64)),
            said if said != PDF && length > MAX_IMAGE_BYTES + 2 => {
                return Err(BadImage::TooLarge(length as u64));
            }
            _ => {}
        }
        let bytes = STANDARD.decode(data).map_err(|_| BadImage::NotBase64)?;
        let image = Self::of_bytes(&bytes)?;
        let found = media_type(&bytes).ok_or(BadImage::NotAnImage)?;
        match said {
            "image/jpg" if found == "image/jpeg" => Ok(image),
            said if said == found => Ok(image),
            said => Err(BadImage::OtherType { said: said.to_owned(), found }),
        }
    }

    /// How many bytes it has.
    #[must_use]
    pub fn size(&self) -> u64 {
        let padding = self.data.bytes().rev().take_while(|byte| *byte == b'=').count();
        (self.data.len() / 4 * 3).saturating_sub(padding) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PNG: &[u8] = b"\x89PNG\r\n\x1a\nrest";

    #[test]
    fn a_picture_is_known_by_its_first_bytes() {
        let jpeg = b"\xff\xd8\xff\xe0rest".as_slice();
        for (bytes, expected) in [
            (PNG, Some("image/png")),
            (jpeg, Some("image/jpeg")),
            (b"GIF89a..".as_slice(), Some("image/gif")),
            (b"RIFF\x01\x02\x03\x04WEBPVP8 ".as_slice(), Some("image/webp")),
            (b"RIFF\x01\x02\x03\x04WAVEfmt ".as_slice(), None),
            (b"%PDF-1.7\n".as_slice(), Some(PDF)),
            (b"BM6\0".as_slice(), None),
            (b"".as_slice(), None),
        ] {
            assert_eq!(media_type(bytes), expected, "{bytes:?}");
        }
    }

    #[test]
    fn what_a_client_hands_in_is_checked_before_it_is_believed() {
        let data = STANDARD.encode(PNG);
        let image = Image::of_base64("image/png", &data).unwrap();
        assert_eq!((image.media_type.as_str(), image.size()), ("image/png", PNG.len() as u64));
        let wrong = |said: &str, data: &str| Image::of_base64(said, data).unwrap_err();
        assert_eq!(
            wrong("image/gif", &data),
            BadImage::OtherType { said: "image/gif".into(), found: "image/png" }
        );
        assert_eq!(wrong("image/png", "no base64!"), BadImage::NotBase64);
        assert_eq!(wrong("image/png", &STANDARD.encode("text")), BadImage::NotAnImage);
        let mut large = PNG.to_vec();
        large.resize(MAX_IMAGE_BYTES + 1, 0);
        assert!(matches!(wrong("image/png", &STANDARD.encode(&large)), BadImage::TooLarge(_)));
        large.truncate(MAX_IMAGE_BYTES);
        assert!(Image::of_bytes(&large).is_ok());
    }

    #[test]
    fn documents_have_a_limit_of_their_own() {
        let mut bytes = b"%PDF-1.7\n".to_vec();
        bytes.resize(MAX_IMAGE_BYTES + 1, b' ');
        let document = Image::of_base64(PDF, &STANDARD.encode(&bytes)).unwrap();
        assert!(document.is_pdf() && document.text.is_none());
        bytes.resize(MAX_PDF_BYTES + 1, b' ');
        let data = STANDARD.encode(&bytes);
        assert!(matches!(Image::of_base64(PDF, &data), Err(BadImage::PdfTooLarge(_))));
        assert!(matches!(Image::of_base64("image/png", &data), Err(BadImage::TooLarge(_))));
    }

    #[test]
    fn a_document_without_text_states_the_reason_in_its_place() {
        let document = Image::of_bytes(b"%PDF-1.7\nnothing").unwrap().readable();
        let text = document.text.clone().unwrap();
        assert!(text.starts_with("[The document has no text here: it cannot be read: "), "{text}");
        assert_eq!(document.pages(), 0);
    }
}
