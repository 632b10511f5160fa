//! Notes about a command, for the results of Bash and of the tools that look after its background commands.
//!
//! Rule: a note names at most [`MAX_NAMED`] files, and counts the others.

use std::path::PathBuf;

use kode_process::outcome::OutputFile;
use kode_process::sandbox::GuardReport;

/// How many files a note names.
pub(crate) const MAX_NAMED: usize = 5;

/// Where all of an output is.
pub(crate) fn kept_note(file: &OutputFile) -> String {
    match &file.missing {
        None => format!("Note: the whole output is in `{}`; Read shows it part by part.", file.path),
        Some(why) => format!("Note: the output is in `{}`, but not all of it: {why}.", file.path),
    }
}

/// The outcome of guarded files, as notes.
pub(crate) fn guard_notes(guarded: &GuardReport) -> Vec<String> {
    let GuardReport { set_aside, restored, changed } = guarded;
    let paths = |paths: Vec<&PathBuf>| {
        named(&paths.iter().map(|path| path.display().to_string()).collect::<Vec<_>>())
    };
    let mut notes = Vec::new();
    if !set_aside.is_empty() {
        let files = paths(set_aside.iter().map(|file| &file.path).collect());
        notes.push(format!(
            "Note: commands may not make {files}: other programs obey such files. They were set aside, and the user \
             decides whether to keep them."
        ));
    }
    if !restored.is_empty() {
        let files = paths(restored.iter().map(|restored| &restored.path).collect());
        notes.push(format!("Note: commands may not change {files}; what the command did there was undone."));
    }
    if !changed.is_empty() {
        let files = paths(changed.iter().map(|(path, _)| path).collect());
        notes.push(format!(
            "Note: the command changed {files}, which could neither be put back nor set aside; tell the user."
        ));
    }
    notes
}

/// Files by their names; the others are counted.
pub(crate) fn named(files: &[String]) -> String {
    let names = files.iter().take(MAX_NAMED).map(|file| format!("`{file}`"));
    let names = names.collect::<Vec<_>>().join(", ");
    match files.len().saturating_sub(MAX_NAMED) {
        0 => names,
        more => format!("{names} and {more} more"),
    }
}
