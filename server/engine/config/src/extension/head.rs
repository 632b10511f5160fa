//! Something that the head of a file declares in the form that it has in settings: its place, and whether it counts.
//!
//! Rule: what a file of the project declares needs the user's approval of that very text and of the contents of the
//! workspace's files that it names, as in settings.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::extension::places::ExtensionOrigin;
use crate::settings::declared::Approval;
use crate::settings::{TrustRequest, text_with_contents};
use kode_base::paths::AbsPath;
use kode_permission::rules::{FileRange, RuleSource, SettingsLayer};

/// A file with a head.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct FrontMatterFile {
    /// The file.
    pub file: AbsPath,
    /// The folder that its relative paths are relative to.
    pub root: AbsPath,
    /// Its owner.
    pub origin: ExtensionOrigin,
}

impl FrontMatterFile {
    /// The place of a line, from zero, in the form of settings.
    pub(crate) fn source(&self, line: u32) -> RuleSource {
        let layer = match self.origin {
            ExtensionOrigin::Managed => SettingsLayer::Managed,
            ExtensionOrigin::Project => SettingsLayer::Project,
            ExtensionOrigin::User => SettingsLayer::User,
            ExtensionOrigin::Plugin => SettingsLayer::Plugin,
            ExtensionOrigin::BuiltIn => SettingsLayer::Default,
        };
        let place = Some(FileRange { line, column: 0, end_line: line + 1, end_column: 0 });
        RuleSource { layer, file: Some(self.file.clone()), place }
    }

    /// Its trust request; nothing where it is not the project's. Blocks on the disk.
    pub(crate) fn trust_request(&self, key: String, value: &Value) -> Option<TrustRequest> {
        (self.origin == ExtensionOrigin::Project).then(|| {
            let (root, file) = (self.root.clone(), self.file.clone());
            TrustRequest { text: text_with_contents(&root, value), root, file, key }
        })
    }

    /// Whether this counts. Blocks on the disk.
    pub(crate) fn approval(
        &self,
        key: String,
        value: &Value,
        is_approved: &dyn Fn(&TrustRequest) -> bool,
    ) -> Approval {
        match self.trust_request(key, value) {
            None => Approval::NotNeeded,
            Some(trust_request) if is_approved(&trust_request) => Approval::Approved,
            Some(trust_request) => Approval::Waiting(trust_request),
        }
    }
}

/// The line of the file of a key in a section of its front matter, or the nearest above it that can be told.
pub(crate) fn line_of(head: &str, section: &str, key: &str) -> u32 {
    let lines: Vec<&str> = head.lines().collect();
    in_file(key_at(&lines, section, key))
}

/// The line of the file on which an item of the list behind such a key begins, or the nearest above it that can be told.
pub(crate) fn line_of_item(head: &str, section: &str, key: &str, nth: usize) -> u32 {
    let lines: Vec<&str> = head.lines().collect();
    let at = key_at(&lines, section, key);
    let below = lines.iter().enumerate().skip(at + 1).filter(|(_, line)| !line.trim().is_empty());
    let depth = below.clone().next().map_or(0, |(_, line)| indent(line));
    let inside = below.take_while(|(_, line)| indent(line) >= depth);
    let mut items = inside.filter(|(_, line)| indent(line) == depth && line.trim_start().starts_with('-'));
    in_file(items.nth(nth).map_or(at, |(line, _)| line))
}

/// The line of a key in the front matter.
fn key_at(lines: &[&str], section: &str, key: &str) -> usize {
    let is_key = |line: &str, key: &str| {
        let bare = line.trim_start().trim_start_matches("- ").trim_start_matches([' ', '"', '\'']);
        let rest = bare.strip_prefix(key);
        rest.is_some_and(|rest| rest.trim_start_matches(['"', '\'']).trim_start().starts_with(':'))
    };
    let top = lines.iter().position(|line| indent(line) == 0 && is_key(line, section)).unwrap_or_default();
    lines.iter().skip(top).position(|line| is_key(line, key)).map_or(top, |at| top + at)
}

fn indent(line: &str) -> usize {
    line.len() - line.trim_start().len()
}

/// The first line of the file is the one of dashes.
fn in_file(line: usize) -> u32 {
    u32::try_from(line + 1).unwrap_or(u32::MAX)
}
