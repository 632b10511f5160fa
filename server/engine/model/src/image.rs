//! Pictures in prompts and tool results: which ones there can be.
//!
//! Rule: what is sent to a model as a picture is one by its first bytes, whatever its name or sender says.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use crate::Image;

/// The largest picture, in bytes.
pub const MAX_IMAGE_BYTES: usize = 5 << 20;

/// So many pictures may go with one prompt.
pub const MAX_IMAGES: usize = 20;

/// The most bytes of all pictures that go with one prompt.
pub const MAX_ALL_IMAGES_BYTES: u64 = 20 << 20;

/// Why something is not sent as a picture.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadImage {
    /// It is no picture of a known kind.
    #[error("it is no PNG, JPEG, GIF or WebP picture")]
    NotAnImage,
    /// It is said to be of another kind than it is.
    #[error("it is said to be `{said}` and is `{found}`")]
    OtherType {
        /// What was said.
        said: String,
        /// What its first bytes say.
        found: &'static str,
    },
    /// It is not base64.
    #[error("its data is not base64")]
    NotBase64,
    /// It is too large.
    #[error("it has {0} bytes, and a picture may have {MAX_IMAGE_BYTES}")]
    TooLarge(u64),
}

/// The media type of a picture, by its first bytes; `None` when they are those of no picture that models take.
#[must_use]
pub fn media_type(bytes: &[u8]) -> Option<&'static str> {
    match bytes {
        [0x89, b'P', b'N', b'G', b'\r', b'\n', 0x1a, b'\n', ..] => Some("image/png"),
        [0xff, 0xd8, 0xff, ..] => Some("image/jpeg"),
        [b'G', b'I', b'F', b'8', b'7' | b'9', b'a', ..] => Some("image/gif"),
        [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'E', b'B', b'P', ..] => Some("image/webp"),
        _ => None,
    }
}

impl Image {
    /// A picture from its bytes.
    ///
    /// # Errors
    /// [`BadImage`]: too large, or no picture.
    pub fn of_bytes(bytes: &[u8]) -> Result<Self, BadImage> {
        if bytes.len() > MAX_IMAGE_BYTES {
            return Err(BadImage::TooLarge(bytes.len() as u64));
        }
        let media_type = media_type(bytes).ok_or(BadImage::NotAnImage)?.to_owned();
        Ok(Self { media_type, data: STANDARD.encode(bytes) })
    }

    /// A picture as a client hands it in: its type as said, and its bytes in base64.
    ///
    /// # Errors
    /// [`BadImage`]: too large, not base64, no picture, or one of another type.
    pub fn of_base64(said: &str, data: &str) -> Result<Self, BadImage> {
        // Four characters of base64 are three bytes: what is longer is not even decoded.
        if data.len() / 4 * 3 > MAX_IMAGE_BYTES + 2 {
            return Err(BadImage::TooLarge((data.len() / 4 * 3) as u64));
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
}
