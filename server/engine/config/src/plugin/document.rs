//! A JSON file of a plugin or a marketplace, and its problems.
//!
//! Rule: a file is read once, bounded, and never written; every complaint has its place.

use jsonc_parser::ast::{Object, ObjectProp, Value as Node};
use jsonc_parser::common::{Range, Ranged};
use jsonc_parser::{CollectOptions, parse_to_ast};

use crate::extension::places::check_within;
use crate::settings::{OPTIONS, SettingsText};
use kode_base::paths::AbsPath;
use kode_permission::rules::{FileRange, ProblemSeverity, SettingsProblem};

/// The most bytes of such a file.
pub(super) const MAX_BYTES: u64 = 1 << 20;

/// A file while it is read.
pub(super) struct PluginDocument<'a> {
    /// The file.
    pub(super) file: &'a AbsPath,
    text: &'a SettingsText,
    /// The problems in it.
    pub(super) problems: &'a mut Vec<SettingsProblem>,
}

/// Has the object in a file read; `None` where there is no file. What hinders that is reported.
pub(super) fn read<T>(
    file: &AbsPath,
    within: &AbsPath,
    problems: &mut Vec<SettingsProblem>,
    take: impl FnOnce(&mut PluginDocument<'_>, &Object<'_>) -> T,
) -> Option<T> {
    let broken = |place: Option<FileRange>, reason: String| SettingsProblem {
        file: Some(file.clone()),
        place,
        severity: ProblemSeverity::Error,
        message: format!("Nothing of this file is used: {reason}."),
    };
    if file.as_path().symlink_metadata().is_err() {
        return None;
    }
    let text =
        check_within(file.as_path(), Some(within)).and_then(|()| SettingsText::read_at_most(file, MAX_BYTES));
    let text = match text {
        Ok(text) => text?,
        Err(reason) => {
            problems.push(broken(None, reason));
            return None;
        }
    };
    match parse_to_ast(&text.text, &CollectOptions::default(), &OPTIONS).map(|parsed| parsed.value) {
        Ok(Some(Node::Object(object))) => {
            Some(take(&mut PluginDocument { file, text: &text, problems }, &object))
        }
        Ok(other) => {
            let place = other.map(|other| text.place(other.range()));
            problems.push(broken(place, "it holds something else than an object".to_owned()));
            None
        }
        Err(error) => {
            let place = Some(text.place(error.range()));
            problems.push(broken(place, format!("{} here", error.kind())));
            None
        }
    }
}

impl PluginDocument<'_> {
    /// Reports a problem at a place.
    pub(super) fn report(&mut self, severity: ProblemSeverity, range: Range, message: impl Into<String>) {
        let place = Some(self.place(range));
        self.problems.push(SettingsProblem {
            file: Some(self.file.clone()),
            place,
            severity,
            message: message.into(),
        });
    }

    /// The place of a value.
    pub(super) fn place(&self, range: Range) -> FileRange {
        self.text.place(range)
    }

    /// A text; other types are reported.
    pub(super) fn text(&mut self, property: &ObjectProp<'_>) -> Option<String> {
        if let Node::StringLit(text) = &property.value {
            return Some(text.value.to_string());
        }
        let message = format!("`{}` has to be a text in quotes; it is ignored.", property.name.as_str());
        self.report(ProblemSeverity::Warning, property.value.range(), message);
        None
    }

    /// One text or a list of them, each with its place; other types are reported.
    pub(super) fn texts(&mut self, name: &str, node: &Node<'_>) -> Vec<(String, FileRange)> {
        match node {
            Node::StringLit(text) => vec![(text.value.to_string(), self.place(node.range()))],
            Node::Array(list) => list.elements.iter().flat_map(|item| self.texts(name, item)).collect(),
            other => {
                let message = format!("`{name}` has to be a path or a list of paths; this is ignored.");
                self.report(ProblemSeverity::Warning, other.range(), message);
                Vec::new()
            }
        }
    }
}
