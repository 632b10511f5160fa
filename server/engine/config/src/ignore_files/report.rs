//! The ignore files of a workspace with what they keep from the agent, for people.
//!
//! Rule: everything is looked up at that moment, and the number of entries that are read is bounded.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use super::IgnoreLook;
use super::parsed::ParsedIgnoreFile;
use kode_base::paths::AbsPath;
use kode_base::steering::{IGNORE_FILES, is_ignore_file, is_repository};

/// How many entries of folders are read: half a second with a warm cache.
const MAX_ENTRIES: usize = 300_000;

/// The ignore files that count in a folder.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct IgnoreReport {
    /// Those above the folder and beneath it, by path.
    pub files: Vec<FoundIgnoreFile>,
    /// Whether all of the folder was read.
    pub is_complete: bool,
}

/// An ignore file, and its effect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FoundIgnoreFile {
    /// The file.
    pub file: AbsPath,
    /// How many of its lines are patterns.
    pub patterns: u64,
    /// How many files and folders of the workspace it keeps from the agent; a folder counts once, with all beneath.
    pub paths: usize,
    /// Why it cannot be read, if so. All beneath its folder is kept from the agent then.
    pub problem: Option<String>,
    /// The lines that are no patterns.
    pub faults: Vec<LineFault>,
}

/// A line of an ignore file that is no pattern.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LineFault {
    /// Its number, from 1.
    pub line: u32,
    /// Its text.
    pub text: String,
    /// The fault.
    pub message: String,
}

impl IgnoreReport {
    /// The ignore files that count in this folder, but those of the disabled names. Walks through it, and blocks on the disk.
    #[must_use]
    pub fn of(folder: &AbsPath, disabled: &[String]) -> Self {
        let look = IgnoreLook::without(disabled);
        let mut walk = ReportWalk { look, disabled, files: BTreeMap::new(), left: MAX_ENTRIES };
        for above in folder.as_path().ancestors().skip(1) {
            IGNORE_FILES.iter().for_each(|name| walk.note(&above.join(name)));
        }
        walk.run(folder.as_path());
        let files = walk.files.into_values().collect();
        Self { files, is_complete: walk.left > 0 }
    }
}

struct ReportWalk<'a> {
    look: IgnoreLook,
    disabled: &'a [String],
    files: BTreeMap<PathBuf, FoundIgnoreFile>,
    left: usize,
}

impl ReportWalk<'_> {
    fn run(&mut self, root: &Path) {
        let mut folders = vec![root.to_path_buf()];
        while let Some(folder) = folders.pop() {
            // A folder that cannot be listed is kept from the agent by the system.
            let Ok(entries) = fs::read_dir(&folder) else { continue };
            for entry in entries.flatten() {
                if self.left == 0 {
                    return;
                }
                self.left -= 1;
                let path = entry.path();
                let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
                if let Some(denied) = self.look.denies_entry(&path, &|| is_folder) {
                    self.note(denied.file.as_path());
                    if let Some(file) = self.files.get_mut(denied.file.as_path()) {
                        file.paths += 1;
                    }
                } else if is_folder && !is_repository(&entry.file_name()) {
                    folders.push(path);
                } else if is_ignore_file(&entry.file_name()) {
                    self.note(&path);
                }
            }
        }
    }

    /// Enters an ignore file, if one is there.
    fn note(&mut self, path: &Path) {
        let is_disabled = self.disabled.iter().any(|name| path.ends_with(name));
        if is_disabled || self.files.contains_key(path) {
            return;
        }
        let (Some(parsed), Ok(file)) = (ParsedIgnoreFile::at(path), AbsPath::new(path)) else { return };
        let faults = parsed.faults.iter().cloned();
        let faults = faults.map(|(line, text, message)| LineFault { line, text, message }).collect();
        let problem = parsed.matcher.as_ref().err().cloned();
        let found = FoundIgnoreFile { file, patterns: parsed.patterns(), paths: 0, problem, faults };
        self.files.insert(path.to_path_buf(), found);
    }
}
