//! Rules of a project: Markdown files in a folder `rules`, given always or with the first file that they refer to.
//!
//! Rule: a file says by `paths` in its head what it refers to; without that it is given like any instruction file. One with
//! a head that cannot be read is left out and told.

use std::fs;
use std::path::Path;

use globset::{GlobBuilder, GlobSet, GlobSetBuilder};
use serde::Deserialize;

use super::InstructionScope;
use crate::extension::front_matter;
use crate::extension::problem::FileFault;
use kode_base::paths::AbsPath;

/// Maximum number of rules of one folder.
const MAX_FILES: usize = 100;

/// Maximum depth of folders that are searched for rules.
const MAX_DEPTH: usize = 4;

/// A rule that waits for a file that it refers to.
#[derive(Clone, Debug)]
pub(super) struct InstructionRule {
    pub(super) path: AbsPath,
    pub(super) scope: InstructionScope,
    patterns: Vec<String>,
    /// The base of the patterns.
    base: AbsPath,
    set: GlobSet,
}

/// The header of a rule.
#[derive(Default, Deserialize)]
struct RuleFrontMatter {
    paths: Option<Patterns>,
}

/// Patterns as a list or as one text.
#[derive(Deserialize)]
#[serde(untagged)]
enum Patterns {
    Many(Vec<String>),
    One(String),
}

impl PartialEq for InstructionRule {
    fn eq(&self, other: &Self) -> bool {
        (&self.path, self.scope, &self.patterns, &self.base)
            == (&other.path, other.scope, &other.patterns, &other.base)
    }
}

impl Eq for InstructionRule {}

impl InstructionRule {
    /// The rule of a file that refers to some files alone; `None` for one that is always given.
    ///
    /// # Errors
    /// Why the file cannot be used.
    pub(super) fn of(
        path: &AbsPath,
        scope: InstructionScope,
        base: &AbsPath,
        head: Option<&str>,
    ) -> Result<Option<Self>, String> {
        let Some(head) = head.filter(|head| !head.trim().is_empty()) else { return Ok(None) };
        let head: RuleFrontMatter =
            serde_saphyr::from_str(head).map_err(|error| FileFault::of_head(&error).message)?;
        let patterns = match head.paths {
            None => return Ok(None),
            Some(Patterns::Many(patterns)) => patterns,
            Some(Patterns::One(text)) => separate(&text),
        };
        if patterns.is_empty() {
            return Ok(None);
        }
        let mut set = GlobSetBuilder::new();
        for pattern in &patterns {
            let glob =
                GlobBuilder::new(pattern.trim().trim_start_matches("./")).literal_separator(true).build();
            set.add(glob.map_err(|error| format!("its `paths` cannot be read: {error}"))?);
        }
        let set = set.build().map_err(|error| format!("its `paths` cannot be used: {error}"))?;
        Ok(Some(Self { path: path.clone(), scope, patterns, base: base.clone(), set }))
    }

    /// Whether it refers to a file.
    pub(super) fn speaks_of(&self, file: &AbsPath) -> bool {
        file.as_path().strip_prefix(self.base.as_path()).is_ok_and(|path| self.set.is_match(path))
    }
}

/// The head of a rule and what it says.
pub(super) fn split(text: &str) -> (Option<&str>, &str) {
    front_matter::split(text)
}

/// The Markdown files in a folder and those in it, by their paths.
pub(super) fn files(folder: &AbsPath) -> Vec<AbsPath> {
    let mut files = Vec::new();
    collect(folder.as_path(), 0, &mut files);
    files.sort();
    files
}

fn collect(folder: &Path, depth: usize, files: &mut Vec<AbsPath>) {
    // Mostly there is no such folder.
    let Ok(entries) = fs::read_dir(folder) else { return };
    for entry in entries.flatten() {
        let path = entry.path();
        let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
        if is_folder && depth < MAX_DEPTH {
            collect(&path, depth + 1, files);
        } else if !is_folder && path.extension().is_some_and(|extension| extension == "md") {
            if files.len() == MAX_FILES {
                tracing::warn!(folder = %folder.display(), "only {MAX_FILES} rules of a folder are read");
                return;
            }
            files.extend(AbsPath::new(path));
        }
    }
}

/// Splits at commas that are in no braces.
fn separate(text: &str) -> Vec<String> {
    let mut depth = 0_usize;
    let parts = text.split(|char: char| {
        match char {
            '{' => depth += 1,
            '}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        depth == 0 && char == ','
    });
    parts.map(|part| part.trim().to_owned()).filter(|part| !part.is_empty()).collect()
}
