//! The meaning of a policy, without patterns, and that policies of Seatbelt have it.
//!
//! Rule: it is written by names and places of the product alone: nothing of how Seatbelt's policies are made is used.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use kode_base::steering::{AT_HOME, holds_dependencies, is_repository, is_steering};
use proptest::prelude::*;
use proptest::sample::{select, subsequence};

use super::cases::{Case, base};
use crate::sandbox::guard::{GuardedPath, is_data_of_git};
use crate::sandbox::seatbelt::{SeatbeltAccess, SeatbeltNetwork};

/// Whether a path may be read: of the places around it, the innermost decides.
fn reads(case: &Case, path: &Path) -> bool {
    let places = case.places().unwrap();
    let roots: BTreeSet<_> = places.writable.iter().chain([&places.scratch]).collect();
    for folder in path.ancestors().map(Path::to_path_buf) {
        if roots.contains(&folder) {
            return true;
        }
        if places.hidden.contains(&folder) || case.survey.hidden.contains(&folder) {
            return false;
        }
        if places.shown.contains(&folder) {
            return true;
        }
    }
    true
}

/// Whether a path may be made and written.
fn writes(case: &Case, path: &Path) -> bool {
    let places = case.places().unwrap();
    let is_root = |folder: &PathBuf| places.writable.contains(folder);
    let is_hidden = |folder: &PathBuf| {
        (places.hidden.contains(folder) || case.survey.hidden.contains(folder))
            && !is_root(folder)
            && *folder != places.scratch
    };
    let is_closed = |folder: &PathBuf| {
        let is_awaited = case.survey.absent.contains(folder)
            || places.home.iter().any(|home| AT_HOME.iter().any(|name| home.join(name) == *folder));
        is_hidden(folder)
            || places.read_only.contains(folder) && places.is_in_a_root(folder)
            || case.survey.found.contains_key(folder)
            || case.access.refuses_names && is_awaited
    };
    let mut opened: Option<PathBuf> = None;
    for folder in path.ancestors().map(Path::to_path_buf) {
        if is_closed(&folder) {
            break;
        }
        if is_root(&folder) || folder == places.scratch {
            opened = Some(folder);
        }
    }
    let Some(root) = opened else { return false };
    if !case.access.refuses_names || root == places.scratch {
        return true;
    }
    !is_guarded_by_name(path.strip_prefix(&root).unwrap())
}

/// Whether a path below a writable folder is guarded by the names in it.
fn is_guarded_by_name(below: &Path) -> bool {
    let names: Vec<_> = below.iter().collect();
    let mut repositories = names.iter().enumerate().filter(|(_, name)| is_repository(name)).peekable();
    let has_repository = repositories.peek().is_some();
    if has_repository && !repositories.any(|(at, _)| is_data_of_git(&names[at + 1..])) {
        return true;
    }
    let steers = names.iter().any(|name| !is_repository(name) && is_steering(name));
    let depends = names.iter().rev().skip(1).any(|name| holds_dependencies(name));
    steers && !depends
}

const NAMES: [&str; 22] = [
    "a",
    "b",
    ".git",
    ".GIT",
    "hooks",
    "config",
    "objects",
    "HEAD",
    "index.lock",
    "HEAD.lock",
    "modules",
    "worktrees",
    "refs",
    ".vscode",
    ".Kode",
    "x.code-workspace",
    "node_modules",
    "target",
    ".env",
    "BISECT_LOG",
    "äö",
    "new\nline",
];

fn path() -> impl Strategy<Value = String> {
    let below = prop::collection::vec(select(&NAMES[..]), 0..6).prop_map(|names| names.join("/"));
    let top =
        select(&["/Users/ada", "/Users/ada/app", "/Users/ada/.kode/w", "/private/tmp/kode/tmp", "/opt"][..]);
    (top, below).prop_map(|(top, below)| format!("{top}/{below}").trim_end_matches('/').to_owned())
}

fn paths(count: usize) -> impl Strategy<Value = Vec<String>> {
    prop::collection::vec(path(), 0..count)
}

fn policy() -> impl Strategy<Value = Case> {
    let roots =
        vec!["/Users/ada/app", "/Users/ada/app/a", "/Users/ada/.kode/w", "/Users/ada/app/.git/modules/a"];
    let roots = subsequence(roots, 0..4).prop_map(|roots| roots.into_iter().map(str::to_owned).collect());
    let lists = (paths(4), paths(4), paths(3), paths(3), paths(3), paths(2));
    (roots, lists, any::<bool>(), any::<bool>()).prop_map(|(writable, lists, refuses_names, has_home)| {
        let (hidden, shown, read_only, found, kept, absent): (
            Vec<_>,
            Vec<_>,
            Vec<_>,
            Vec<_>,
            Vec<_>,
            Vec<_>,
        ) = lists;
        let access = SeatbeltAccess { network: SeatbeltNetwork::Off, refuses_names };
        let home = has_home.then(|| "/Users/ada".to_owned());
        let mut case = Case { writable, hidden, shown, read_only, home, access, ..base() };
        let places = case.places().unwrap();
        // A survey finds nothing elsewhere.
        let within = |path: &PathBuf| places.is_in_a_root(path);
        let of = |paths: Vec<String>| paths.into_iter().map(PathBuf::from).filter(within).collect::<Vec<_>>();
        case.survey.found = of(found).into_iter().map(|path| (path, GuardedPath::Folder)).collect();
        case.survey.hidden = of(kept).into_iter().collect();
        case.survey.absent = of(absent).into_iter().collect();
        case
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn a_policy_of_seatbelt_answers_as_the_policy_it_was_made_of(case in policy(), asked in paths(40)) {
        let policy = case.read();
        for path in asked.iter().map(Path::new) {
            prop_assert_eq!(policy.reads(path), reads(&case, path), "reading {:?}", path);
            prop_assert_eq!(policy.writes(path), writes(&case, path), "writing {:?}", path);
        }
        // A closed path in a folder to write in is neither removed, nor moved with a folder around it.
        for closed in case.survey.found.keys() {
            for folder in closed.ancestors() {
                prop_assert!(!policy.removes(folder), "removing {:?}", folder);
            }
        }
    }
}
