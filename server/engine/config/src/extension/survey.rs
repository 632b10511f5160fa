//! The stamps of users' files: their names and times.
//!
//! Rule: looking opens no file, and a file that comes, goes or changes makes the survey stale; bounded, whatever lies in
//! the folders.

use std::fs;

use crate::extension::find::{MAX_SKILL_DEPTH, may_hold_skills};
use crate::extension::places::{ExtensionFolders, ExtensionPart};
use crate::settings::SettingsStamp;
use kode_base::paths::AbsPath;

/// Maximum number of files and folders that are checked.
const MAX_STAMPS: usize = 5_000;

/// Maximum depth of folders that are searched for files.
const MAX_DEPTH: usize = 6;

/// The state at the last survey.
#[derive(Clone, Debug, Default)]
pub(crate) struct StampSurvey {
    stamps: Vec<(AbsPath, Option<SettingsStamp>)>,
    folders: Vec<AbsPath>,
}

impl StampSurvey {
    /// Checks what there is in these places. Blocks on the disk.
    pub(crate) fn of(places: &ExtensionFolders) -> Self {
        let mut survey = Self::default();
        for part in ExtensionPart::ALL {
            for place in places.of(part) {
                survey.look_into(&place.folder, part, 0);
            }
        }
        survey
    }

    /// Whether anything has come, gone or changed since. Opens no file. Blocks on the disk.
    pub(crate) fn is_stale(&self) -> bool {
        self.stamps.iter().any(|(path, stamp)| SettingsStamp::of(path) != *stamp)
    }

    /// The folders that are there.
    pub(crate) fn folders(&self) -> &[AbsPath] {
        &self.folders
    }

    /// Takes a file in, whether it is there or not.
    pub(crate) fn inspect(&mut self, path: &AbsPath) {
        if self.stamps.len() < MAX_STAMPS {
            self.stamps.push((path.clone(), SettingsStamp::of(path)));
        }
    }

    fn look_into(&mut self, folder: &AbsPath, part: ExtensionPart, depth: usize) {
        self.inspect(folder);
        let Ok(entries) = fs::read_dir(folder.as_path()) else { return };
        self.folders.push(folder.clone());
        for entry in entries.flatten() {
            if self.stamps.len() >= MAX_STAMPS {
                tracing::warn!(folder = %folder.as_path().display(), "only {MAX_STAMPS} files are checked");
                return;
            }
            let path = folder.join(entry.file_name());
            let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
            match part {
                // Of a skill one file counts; what else lies beside it is only read by its caller.
                ExtensionPart::Skills => {
                    let skill = path.join("SKILL.md");
                    self.inspect(&skill);
                    if depth < MAX_SKILL_DEPTH && !skill.as_path().is_file() && may_hold_skills(&path) {
                        self.look_into(&path, part, depth + 1);
                        continue;
                    }
                    self.inspect(&path);
                    if path.as_path().is_dir() {
                        self.folders.push(path);
                    }
                }
                ExtensionPart::Agents | ExtensionPart::Commands | ExtensionPart::Styles
                    if is_folder && depth < MAX_DEPTH =>
                {
                    self.look_into(&path, part, depth + 1);
                }
                ExtensionPart::Agents | ExtensionPart::Commands | ExtensionPart::Styles => {
                    if path.as_path().extension().is_some_and(|extension| extension == "md") {
                        self.inspect(&path);
                    }
                }
            }
        }
    }
}
