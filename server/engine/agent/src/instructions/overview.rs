//! An overview of the working directory for the system prompt.
//!
//! Rule: it is bounded in lines, in bytes and in checked files; ignored and hidden files are left out, and so are files
//! that the model may not know. Omitted files are counted, and the levels come one after the other: a large folder cannot
//! hide its neighbors.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use ignore::{WalkBuilder, WalkState};

use kode_base::paths::AbsPath;

/// The most lines.
const MAX_LINES: usize = 150;

/// The most names of one folder.
const MAX_NAMES: usize = 25;

/// The most entries of one folder that are read; the rest is skipped.
const MAX_LOOKED_AT: usize = 1_000;

/// The most levels.
const MAX_DEPTH: usize = 3;

/// The most bytes.
const MAX_BYTES: usize = 6 << 10;

/// The heading.
const HEAD: &str =
    "Files in the working directory when the session began (without ignored and hidden files):";

/// The names in one folder.
#[derive(Debug, Default)]
struct OverviewListing {
    /// Names in order, and whether each is a folder.
    names: Vec<(String, bool)>,
    /// How many more there are.
    more: usize,
    /// Whether there may be still more.
    is_cut: bool,
}

/// The entries of a folder: names, each with whether it is a folder.
#[derive(Debug, Default)]
struct FolderEntries {
    names: Vec<(String, bool)>,
    inspected: usize,
    /// Whether there may be more.
    is_cut: bool,
}

/// The content of the folders of an overview, read before it is known which files may be listed: a name that may not makes room
/// for another, whose folder is read later.
#[derive(Debug, Default)]
pub(crate) struct FolderContents(HashMap<AbsPath, FolderEntries>);

impl FolderContents {
    /// Reads the folders that an overview of this one lists where all files may be listed. Blocks on the disk.
    #[must_use]
    pub(crate) fn read(folder: &AbsPath) -> Self {
        let mut contents = Self::default();
        contents.listings(folder, &|_| true);
        contents
    }

    /// The names of the folders that an overview lists. Reads the folders that are missing.
    fn listings(
        &mut self,
        folder: &AbsPath,
        may_report: &dyn Fn(&AbsPath) -> bool,
    ) -> BTreeMap<AbsPath, OverviewListing> {
        let mut listings = BTreeMap::new();
        let mut level = vec![folder.clone()];
        let mut left = MAX_LINES;
        for depth in 0..MAX_DEPTH {
            let mut below = Vec::new();
            let missing: Vec<_> =
                level.iter().filter(|folder| !self.0.contains_key(*folder)).cloned().collect();
            if !missing.is_empty() {
                self.0.extend(look(folder, &missing, depth));
            }
            for folder in level {
                // An empty one is read once.
                let found = self.0.entry(folder.clone()).or_default();
                let listing = list(&folder, found, may_report, left.min(MAX_NAMES));
                left -= listing.names.len();
                if depth + 1 < MAX_DEPTH {
                    let folders = listing.names.iter().filter(|(_, is_folder)| *is_folder);
                    below.extend(folders.map(|(name, _)| folder.join(name)));
                }
                listings.insert(folder, listing);
                if left == 0 {
                    break;
                }
            }
            level = if left == 0 { Vec::new() } else { below };
        }
        listings
    }
}

/// An overview of a folder; `None` where it would be empty. `may_report` decides which files are listed; folders that `contents`
/// does not have are read. Blocks on the disk.
#[must_use]
pub(crate) fn of(
    folder: &AbsPath,
    mut contents: FolderContents,
    may_report: &dyn Fn(&AbsPath) -> bool,
) -> Option<String> {
    let listings = contents.listings(folder, may_report);
    let mut lines = Vec::new();
    render(folder, &listings, 0, &mut lines);
    if lines.is_empty() {
        return None;
    }
    let mut text = HEAD.to_owned();
    for line in lines {
        if text.len() + line.len() >= MAX_BYTES {
            text.push_str("\n…");
            break;
        }
        text.push('\n');
        text.push_str(&line);
    }
    Some(text)
}

/// The names in a folder that may be listed, at most `most`.
fn list(
    folder: &AbsPath,
    found: &FolderEntries,
    may_report: &dyn Fn(&AbsPath) -> bool,
    most: usize,
) -> OverviewListing {
    let mut listing = OverviewListing { is_cut: found.is_cut, ..OverviewListing::default() };
    let mut names = found.names.iter();
    for (name, is_folder) in names.by_ref() {
        if may_report(&folder.join(name)) {
            listing.names.push((name.clone(), *is_folder));
        }
        if listing.names.len() >= most {
            break;
        }
    }
    listing.more = names.count();
    listing
}

/// The content of folders in the order of names, without ignored files, this many levels below `top`. It is walked from there,
/// because an ignore rule above a folder is looked for in all that lie above where a walk begins.
fn look(top: &AbsPath, folders: &[AbsPath], level: usize) -> HashMap<AbsPath, FolderEntries> {
    let found = Arc::<Mutex<Vec<(PathBuf, FolderEntries)>>>::default();
    let into = Arc::clone(&found);
    let above = folders.iter().flat_map(|folder| folder.as_path().ancestors().take(level));
    let way: HashSet<OsString> = above.map(|folder| folder.as_os_str().to_owned()).collect();
    let mut walk = WalkBuilder::new(top);
    // The content of the folders is read here and not walked: the walk would read ignore files in each.
    walk.max_depth(Some(level + 1)).require_git(false).filter_entry(move |entry| {
        if entry.depth() <= level {
            return entry.depth() == 0 || way.contains(entry.path().as_os_str());
        }
        let Some(folder) = entry.path().parent() else { return false };
        let mut found = lock(&into);
        // One thread walks, and reads a folder to its end before the next. A comparison of paths would read their parts.
        if found.last().is_none_or(|(last, _)| last.as_os_str() != folder.as_os_str()) {
            found.push((folder.to_path_buf(), FolderEntries::default()));
        }
        let Some((_, found)) = found.last_mut() else { return false };
        found.is_cut = found.inspected >= MAX_LOOKED_AT;
        found.inspected += 1;
        if !found.is_cut
            && let Some(name) = entry.file_name().to_str().filter(|name| !name.contains(char::is_control))
        {
            found.names.push((name.to_owned(), entry.file_type().is_some_and(|kind| kind.is_dir())));
        }
        false
    });
    // The walker for several threads opens no folder that is not walked into, as the other one does.
    walk.threads(1).build_parallel().run(|| Box::new(|_| WalkState::Continue));
    let found = std::mem::take(&mut *lock(&found));
    let in_order = |(folder, mut entries): (PathBuf, FolderEntries)| {
        entries.names.sort();
        Some((AbsPath::new(folder).ok()?, entries))
    };
    found.into_iter().filter_map(in_order).collect()
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn render(
    folder: &AbsPath,
    listings: &BTreeMap<AbsPath, OverviewListing>,
    depth: usize,
    lines: &mut Vec<String>,
) {
    let Some(listing) = listings.get(folder) else { return };
    let indent = "  ".repeat(depth);
    for (name, is_folder) in &listing.names {
        if *is_folder {
            lines.push(format!("{indent}{name}/"));
            render(&folder.join(name), listings, depth + 1, lines);
        } else {
            lines.push(format!("{indent}{name}"));
        }
    }
    if listing.more > 0 {
        let at_least = if listing.is_cut { "at least " } else { "" };
        lines.push(format!("{indent}… {at_least}{} more", listing.more));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder(files: &[&str]) -> (tempfile::TempDir, AbsPath) {
        let folder = tempfile::tempdir().unwrap();
        let place = AbsPath::new(kode_base::paths::real_path(folder.path()).unwrap()).unwrap();
        for file in files {
            let path = place.join(file);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(&path, "").unwrap();
        }
        (folder, place)
    }

    #[test]
    fn what_is_ignored_hidden_or_secret_is_left_out() {
        let (_kept, place) =
            folder(&["src/main.rs", "src/deep/er/still/x.rs", "target/out", ".env", "key.pem", "b.txt"]);
        std::fs::write(place.join(".gitignore"), "target\n").unwrap();
        let text =
            of(&place, FolderContents::default(), &|path| !path.as_path().ends_with("key.pem")).unwrap();
        let expected = ["b.txt", "src/", "  deep/", "    er/", "  main.rs"];
        assert_eq!(text.lines().skip(1).collect::<Vec<_>>(), expected);
        let (_kept, empty) = folder(&[]);
        assert_eq!(of(&empty, FolderContents::default(), &|_| true), None);
    }

    #[test]
    fn folders_read_ahead_give_the_same_whatever_may_be_listed() {
        let names: Vec<String> =
            (0..40).flat_map(|at| (0..5).map(move |file| format!("b{at:02}/c{file}/{file}.rs"))).collect();
        let files: Vec<&str> = names.iter().map(String::as_str).collect();
        let (_kept, place) = folder(&files);
        let is_odd = |path: &AbsPath| path.as_path().to_str().is_some_and(|path| !path.contains("b0"));
        let any = |_: &AbsPath| true;
        for may_list in [&any as &dyn Fn(&AbsPath) -> bool, &is_odd] {
            let ahead = of(&place, FolderContents::read(&place), may_list).unwrap();
            assert_eq!(ahead, of(&place, FolderContents::default(), may_list).unwrap());
            assert!(ahead.contains("b30/") != ahead.contains("b00/"), "{ahead}");
        }
    }

    #[test]
    fn a_large_folder_hides_no_neighbor_and_all_is_bounded() {
        let names: Vec<String> = (0..1_200).map(|at| format!("a/{at:04}.txt")).collect();
        let more: Vec<String> =
            (0..20).flat_map(|at| (0..20).map(move |file| format!("b{at:02}/{file}.rs"))).collect();
        let mut files: Vec<&str> = names.iter().chain(&more).map(String::as_str).collect();
        files.push("z/last.rs");
        let (_kept, place) = folder(&files);
        let text = of(&place, FolderContents::default(), &|_| true).unwrap();
        let lines: Vec<_> = text.lines().collect();
        assert!(lines.contains(&"z/") && lines.contains(&"b19/"), "{text}");
        assert!(lines.contains(&"  … at least 975 more"), "{text}");
        assert!(
            lines.contains(&"  19.rs"),
            "what comes behind a folder that is too large is looked at: {text}"
        );
        assert!(lines.len() <= 1 + MAX_LINES + 30 && text.len() <= MAX_BYTES + 10, "{}", lines.len());
    }
}
