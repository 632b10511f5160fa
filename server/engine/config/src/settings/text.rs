//! A settings file as text: JSON with comments, and where in it things stand.
//!
//! Rule: reading here equals reading for edits: one set of options for both, and nothing but comments and trailing commas
//! beyond JSON.

use std::io;

use jsonc_parser::ParseOptions;
use jsonc_parser::common::Range;

use kode_base::paths::AbsPath;
use kode_base::regular;
use kode_permission::rules::FileRange;

/// How large a settings file may be, in bytes.
const MAX_BYTES: u64 = 1 << 20;
const BOM: char = '\u{feff}';

/// The syntax of a settings file.
pub(crate) const OPTIONS: ParseOptions = ParseOptions {
    allow_comments: true,
    allow_loose_object_property_names: false,
    allow_trailing_commas: true,
    allow_missing_commas: false,
    allow_single_quoted_strings: false,
    allow_hexadecimal_numbers: false,
    allow_unary_plus_numbers: false,
    allow_bare_decimal_point_numbers: false,
    allow_non_finite_numbers: false,
    allow_extended_string_escapes: false,
};

/// A settings file's text without byte order mark.
pub(crate) struct SettingsText {
    pub(crate) text: String,
    pub(super) has_bom: bool,
    line_starts: Vec<usize>,
}

impl SettingsText {
    /// Reads a file; `None` if absent. An irregular file, a too large one and invalid UTF-8 are errors in words
    /// for people.
    pub(super) fn read(file: &AbsPath) -> Result<Option<Self>, String> {
        Self::read_at_most(file, MAX_BYTES)
    }

    /// Reads a file of at most this many bytes, as [`Self::read`] does.
    pub(crate) fn read_at_most(file: &AbsPath, max_bytes: u64) -> Result<Option<Self>, String> {
        let reported = |error: &io::Error| format!("it cannot be read ({error})");
        let bytes = match regular::read(file.as_path(), max_bytes) {
            Ok(bytes) => bytes,
            Err(error) if is_absence(&error) => return Ok(None),
            // These say all there is to say.
            Err(error) if is_unfit(&error) => return Err(error.to_string()),
            Err(error) => return Err(reported(&error)),
        };
        let text = String::from_utf8(bytes).map_err(|_| "it is not in UTF-8; save it so".to_owned())?;
        Ok(Some(Self::new(text)))
    }

    pub(super) fn new(mut text: String) -> Self {
        let has_bom = text.starts_with(BOM);
        if has_bom {
            text.remove(0);
        }
        let bytes = text.as_bytes();
        let ends_line = |at: &usize| match bytes[*at] {
            b'\n' => true,
            b'\r' => bytes.get(at + 1) != Some(&b'\n'),
            _ => false,
        };
        let line_starts =
            std::iter::once(0).chain((0..bytes.len()).filter(ends_line).map(|at| at + 1)).collect();
        Self { text, has_bom, line_starts }
    }

    /// The whole text again, with the byte order mark it had.
    pub(super) fn with_bom(&self, text: &str) -> String {
        if self.has_bom { format!("{BOM}{text}") } else { text.to_owned() }
    }

    /// The place of a range of bytes, for people and editors.
    pub(crate) fn place(&self, range: Range) -> FileRange {
        let (line, column) = self.position(range.start);
        let (end_line, end_column) = self.position(range.end);
        FileRange { line, column, end_line, end_column }
    }

    fn position(&self, at: usize) -> (u32, u32) {
        let mut at = at.min(self.text.len());
        while !self.text.is_char_boundary(at) {
            at -= 1;
        }
        let line = self.line_starts.partition_point(|start| *start <= at).saturating_sub(1);
        let column = self.text[self.line_starts[line]..at].encode_utf16().count();
        (narrow(line), narrow(column))
    }
}

/// Whether there is nothing there. A file where a folder was expected is nothing, too.
pub(super) fn is_absence(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

/// Whether the entry is no file of settings, by its kind or its size.
fn is_unfit(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::InvalidInput | io::ErrorKind::FileTooLarge)
}

fn narrow(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_count_lines_of_all_kinds_and_utf_16() {
        let text = SettingsText::new("\u{feff}{\r\n\r \"😀é\"x\n".to_owned());
        assert!(text.has_bom);
        let start = text.text.find('x').unwrap();
        let place = text.place(Range::new(start, start + 1));
        assert_eq!(place, FileRange { line: 2, column: 6, end_line: 2, end_column: 7 });
        assert_eq!(text.with_bom(&text.text).chars().next(), Some(BOM));
    }
}
