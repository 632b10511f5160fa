//! The folder that a command runs in, as far as the text tells, and the files that its operands mean there.
//!
//! Rule: a path is known only when no link on the way could make its text lie.

use std::path::{Component, Path};

use crate::{CommandWord, TouchedPath};
use kode_base::path_style::PathStyle;
use kode_base::paths::AbsPath;

/// A folder that commands run in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct WorkingFolder {
    /// The folder; `None` when it is not known.
    pub directory: Option<AbsPath>,
    /// Whether a `cd` led there by a name that could be a link, so that its `..` is not what the text says.
    pub by_name: bool,
}

impl WorkingFolder {
    pub(crate) const NOWHERE: Self = Self { directory: None, by_name: true };

    pub(crate) fn or(&self, other: &Self) -> Self {
        if self == other { self.clone() } else { Self::NOWHERE }
    }
}

/// Where a `cd` or `pushd` leads; where a `popd` does is not known here.
pub(crate) fn destination(argv: &[CommandWord], place: &WorkingFolder) -> WorkingFolder {
    if argv.first().is_some_and(|name| name.text == "popd") {
        return WorkingFolder::NOWHERE;
    }
    let operands: Vec<&CommandWord> = argv.iter().skip(1).filter(|word| word.text != "--").collect();
    let [operand] = operands.as_slice() else { return WorkingFolder::NOWHERE };
    let text = operand.text.as_str();
    if !operand.literal || text.is_empty() || text.starts_with(['-', '+']) {
        return WorkingFolder::NOWHERE;
    }
    let only_up = std::path::Path::new(text)
        .components()
        .all(|part| matches!(part, std::path::Component::ParentDir | std::path::Component::CurDir));
    let Some(path) = PathStyle::HERE.path_of_bash(text) else { return WorkingFolder::NOWHERE };
    let absolute = AbsPath::new(path.as_ref()).ok();
    let directory =
        absolute.or_else(|| place.directory.as_ref().map(|directory| directory.join(path.as_ref())));
    WorkingFolder { directory, by_name: place.by_name || !only_up }
}

/// Files that stand for the command's own input and output.
pub(crate) fn is_harmless(path: &str) -> bool {
    matches!(path, "/dev/null" | "/dev/stdin" | "/dev/stdout" | "/dev/stderr")
}

/// The file an operand means to a command that runs in `place`.
pub(crate) fn locate(word: &CommandWord, place: &WorkingFolder) -> TouchedPath {
    known(word, place).unwrap_or_else(|| TouchedPath::Unknown(word.text.clone()))
}

pub(crate) fn known(word: &CommandWord, place: &WorkingFolder) -> Option<TouchedPath> {
    if !word.literal || word.text.is_empty() {
        return None;
    }
    let path = PathStyle::HERE.path_of_bash(&word.text)?;
    let path = Path::new(path.as_ref());
    // `link/..` is the parent of what the link leads to, and not what the text says.
    let mut by_name = !path.is_absolute() && place.by_name;
    for component in path.components() {
        match component {
            Component::Normal(_) => by_name = true,
            Component::ParentDir if by_name => return None,
            Component::ParentDir | Component::CurDir | Component::RootDir | Component::Prefix(_) => {}
        }
    }
    let absolute = AbsPath::new(path).ok();
    absolute.or_else(|| Some(place.directory.as_ref()?.join(path))).map(TouchedPath::Known)
}
