//! Positions of documents, counted as an editor counts them.
//!
//! Rule: written from the specification and independent of the program's own code, so that the two check each other.

use serde_json::{Value, json};

/// The unit of `character` in a position.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Encoding {
    /// Bytes.
    Utf8,
    /// UTF-16 code units, the protocol's default.
    #[default]
    Utf16,
    /// Code points.
    Utf32,
}

impl Encoding {
    /// The name in the protocol.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Utf8 => "utf-8",
            Self::Utf16 => "utf-16",
            Self::Utf32 => "utf-32",
        }
    }

    /// The encoding of that name.
    ///
    /// # Panics
    /// If absent.
    #[must_use]
    pub fn of(name: &str) -> Self {
        [Self::Utf8, Self::Utf16, Self::Utf32]
            .into_iter()
            .find(|encoding| encoding.name() == name)
            .unwrap_or_else(|| panic!("`{name}` is no position encoding"))
    }

    fn width(self, char: char) -> usize {
        match self {
            Self::Utf8 => char.len_utf8(),
            Self::Utf16 => char.len_utf16(),
            Self::Utf32 => 1,
        }
    }
}

/// The byte offset of an LSP position.
///
/// # Panics
/// When the position is beyond the document or within a character: the program must not send such.
#[must_use]
pub fn offset_of(text: &str, position: &Value, encoding: Encoding) -> usize {
    let number = |name: &str| {
        let value = position[name].as_u64().unwrap_or_else(|| panic!("{position} is no position"));
        usize::try_from(value).expect("positions are small")
    };
    let (line, character) = (number("line"), number("character"));
    let start = *line_starts(text).get(line).unwrap_or_else(|| panic!("{position}: there is no such line"));
    let mut units = 0;
    for (offset, char) in text[start..].char_indices() {
        if units == character {
            return start + offset;
        }
        assert!(units < character && !matches!(char, '\n' | '\r'), "{position} is no place in its line");
        units += encoding.width(char);
    }
    assert_eq!(units, character, "{position} is beyond the document");
    text.len()
}

/// The LSP position of a byte offset.
#[must_use]
pub fn position_of(text: &str, offset: usize, encoding: Encoding) -> Value {
    let starts = line_starts(text);
    let line = starts.partition_point(|start| *start <= offset) - 1;
    let character: usize = text[starts[line]..offset].chars().map(|char| encoding.width(char)).sum();
    json!({ "line": line, "character": character })
}

fn line_starts(text: &str) -> Vec<usize> {
    let bytes = text.as_bytes();
    let ends_line = |index: usize| match bytes[index] {
        b'\n' => true,
        b'\r' => bytes.get(index + 1) != Some(&b'\n'),
        _ => false,
    };
    std::iter::once(0)
        .chain((0..bytes.len()).filter(|index| ends_line(*index)).map(|index| index + 1))
        .collect()
}
