//! Guarded names as patterns of Seatbelt.
//!
//! Rule: a pattern says how many folders the writable one lies deep and never names it. Names count from there on, because the
//! writable folder may itself lie in a folder of such a name. Letter case does not matter: the disk of macOS ignores it.

use kode_base::steering;

use crate::sandbox::guard::{DATA_NAMES, DataNames};

/// How many names one pattern holds: the kernel's automaton of each stays small.
const NAMES_PER_PATTERN: usize = 8;
/// Any name.
const ANY: &str = "/[^/]+";
/// The end of a name, where the path may go on.
const END: &str = "($|/)";

/// Patterns for the entries of a folder at this depth, the number of names in its path.
#[derive(Clone, Copy, Debug)]
pub(super) struct NamePatterns {
    depth: usize,
}

impl NamePatterns {
    /// Those for a folder at this depth.
    pub(super) fn at(depth: usize) -> Self {
        Self { depth }
    }

    /// Files and folders that steer programs, with all that is in them, but for `.git`.
    pub(super) fn steering(self) -> Vec<String> {
        let names: Vec<_> = steering::names().map(letters).collect();
        let ends = steering::suffixes().map(|suffix| format!("[^/]*{}", letters(suffix)));
        let whole = names.chunks(NAMES_PER_PATTERN).map(|names| names.join("|"));
        whole.chain(ends).map(|names| format!("{}/({names}){END}", self.folders())).collect()
    }

    /// The entries of folders of dependencies and build results.
    pub(super) fn dependencies(self) -> String {
        let names: Vec<_> = steering::dependencies().map(exact).collect();
        format!("{}/({})/", self.folders(), names.join("|"))
    }

    /// A `.git`, with all that is in it.
    pub(super) fn git(self) -> String {
        format!("{}/{}{END}", self.folders(), letters(steering::GIT))
    }

    /// The entries that commits write in one.
    pub(super) fn git_data(self) -> String {
        let DataNames { folders, files, prefixes, lock, containers } = DATA_NAMES;
        let any_of = |names: &[&str]| names.iter().map(|name| exact(name)).collect::<Vec<_>>().join("|");
        let (folders, files) = (any_of(folders), any_of(files));
        let (prefixes, containers) = (any_of(prefixes), any_of(containers));
        let (beginning, git, lock) = (self.folders(), letters(steering::GIT), exact(lock));
        format!(
            "{beginning}/{git}/(({containers})/([^/]+/)*)?(({folders}){END}|({files})({lock})?$|({prefixes})[^/]*$)"
        )
    }

    /// The folder itself and those in it.
    fn folders(self) -> String {
        format!("^{}({ANY})*", ANY.repeat(self.depth))
    }
}

/// A name in either letter case.
fn letters(name: &str) -> String {
    let either = |letter: char| match letter {
        'a'..='z' | 'A'..='Z' => {
            format!("[{}{}]", letter.to_ascii_lowercase(), letter.to_ascii_uppercase())
        }
        other => exact(other.encode_utf8(&mut [0; 4])),
    };
    name.chars().map(either).collect()
}

/// A name as it is: all of them are letters, digits, `-`, `_` and dots.
fn exact(name: &str) -> String {
    name.replace('.', "\\.")
}
