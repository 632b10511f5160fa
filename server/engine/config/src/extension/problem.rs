//! The problems of a user's file, and on which line.
//!
//! Rule: a line is one of the whole file, from zero; a file whose head cannot be read says so on the line where reading
//! stopped.

use kode_base::paths::AbsPath;
use kode_permission::rules::{FileRange, ProblemSeverity, SettingsProblem};

/// A fault of a file, before it is known which file it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FileFault {
    pub(crate) severity: ProblemSeverity,
    pub(crate) message: String,
    /// The line it is on; `None` for the whole file.
    pub(crate) line: Option<u32>,
}

impl FileFault {
    /// The file is left out.
    pub(crate) fn error(message: impl Into<String>) -> Self {
        Self { severity: ProblemSeverity::Error, message: message.into(), line: None }
    }

    /// The file is used, and something of it is not.
    pub(crate) fn warning(message: impl Into<String>) -> Self {
        Self { severity: ProblemSeverity::Warning, message: message.into(), line: None }
    }

    /// The same on the line of the head of this key.
    pub(crate) fn at_key(self, head: &str, key: &str) -> Self {
        let stands =
            |line: &str| line.strip_prefix(key).is_some_and(|rest| rest.trim_start().starts_with(':'));
        let line = head.lines().position(stands).and_then(|line| u32::try_from(line + 1).ok());
        Self { line: line.or(Some(0)), ..self }
    }

    /// The head of a file cannot be read.
    pub(crate) fn of_head(error: &serde_saphyr::Error) -> Self {
        let text = error.to_string();
        let reason = text.lines().find(|line| !line.trim().is_empty()).unwrap_or_default().trim();
        let reason = reason.strip_prefix("error: ").unwrap_or(reason);
        // The first line of the file is the one of dashes.
        let line = error.location().and_then(|at| u32::try_from(at.line()).ok());
        Self { line: line.or(Some(0)), ..Self::error(format!("its head cannot be read: {reason}")) }
    }

    /// The fault as one of this file, whose text shows how long its line is.
    pub(crate) fn of(self, file: &AbsPath, text: &str) -> SettingsProblem {
        let place = self.line.map(|line| {
            let length = text.lines().nth(line as usize).map_or(0, |text| text.encode_utf16().count());
            let end_column = u32::try_from(length).unwrap_or(u32::MAX);
            FileRange { line, column: 0, end_line: line, end_column }
        });
        SettingsProblem { file: Some(file.clone()), place, severity: self.severity, message: self.message }
    }
}
