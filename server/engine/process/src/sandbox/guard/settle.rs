//! Changes of guarded files while commands ran, and their handling.
//!
//! Rule: a new file that steers a program is set aside; an existing one that was changed is restored. It is
//! judged again as long as a command may still change it.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use kode_base::steering;

use super::aside::Quarantine;
use super::repository::{is_harmless, is_passing, worktree_of};
use super::restore::put_link_back;
use super::survey::{GuardSurvey, GuardedPath};
use crate::git_obeys::folders::pointed_to;
use crate::sandbox::{QuarantinedFile, RestoredPath};

/// The actions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct GuardOutcome {
    /// New files that were set aside.
    pub set_aside: Vec<QuarantinedFile>,
    /// Links that lead again where they led.
    pub restored: Vec<PathBuf>,
    /// Files that could neither be set aside nor be restored, with the reason.
    pub failed: Vec<(PathBuf, String)>,
}

/// New files since commands began, which the commands may still change.
#[derive(Debug, Default)]
pub(super) struct NewEntries {
    paths: BTreeSet<PathBuf>,
    /// New entries that were seen once while a command ran, and may be half made.
    seen: BTreeSet<PathBuf>,
    /// Entries that were there before commands began and are gone.
    missing: BTreeMap<PathBuf, GuardedPath>,
}

/// When it is checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SettlePoint {
    /// Whether a command has ended just now; otherwise some continue.
    pub(super) is_end: bool,
    /// Whether the user waits for a command that continues.
    pub(super) is_attended: bool,
}

impl NewEntries {
    /// Whether something has to be checked again soon.
    pub(super) fn is_waiting(&self) -> bool {
        !self.seen.is_empty()
    }

    /// Whether nothing is new.
    pub(super) fn is_empty(&self) -> bool {
        self.paths.is_empty() && self.seen.is_empty()
    }

    /// The accepted state from now on: the existing files, without new and unjudged ones.
    pub(super) fn accepted(&self, now: &GuardSurvey, before: &GuardSurvey) -> GuardSurvey {
        let mut accepted = now.clone();
        let is_known = |path: &PathBuf| before.found.contains_key(path) || self.paths.contains(path);
        accepted.found.retain(|path, _| is_known(path));
        // A link that a command has put on the way to a script is not on it.
        accepted.scripts.clone_from(&before.scripts);
        // An awaited file that is there now was judged by that.
        accepted
            .absent
            .extend(before.absent.iter().filter(|path| !accepted.found.contains_key(*path)).cloned());
        for (path, guarded) in &before.found {
            // A link is put back as often as it is changed.
            if let (GuardedPath::Link(_), Some(known)) = (guarded, accepted.found.get_mut(path)) {
                known.clone_from(guarded);
            }
        }
        accepted
    }

    /// Forgets the new files: no command runs that could change it.
    pub(super) fn clear(&mut self) {
        self.paths.clear();
        self.seen.clear();
        self.missing.clear();
    }

    /// Accepts entries again that were gone and that the helper has put back; `None` represents all of them.
    pub(super) fn accept_restored(&mut self, restored: Option<&[RestoredPath]>, accepted: &mut GuardSurvey) {
        match restored {
            None => accepted.found.append(&mut self.missing),
            Some(restored) => {
                let back = restored.iter().filter_map(|restored| self.missing.remove_entry(&restored.path));
                accepted.found.extend(back);
            }
        }
    }

    /// The folders that became unreadable since commands began.
    pub(super) fn new_unreadable(&self, now: &GuardSurvey, before: &GuardSurvey) -> Vec<PathBuf> {
        let mut unreadable = now.unreadable();
        unreadable.retain(|path| self.is_new(path, before));
        unreadable
    }

    fn is_new(&self, path: &Path, before: &GuardSurvey) -> bool {
        !before.found.contains_key(path) || self.paths.contains(path)
    }

    /// Handles all differences from the former state.
    pub(super) fn settle(
        &mut self,
        before: &GuardSurvey,
        now: &GuardSurvey,
        (store, home): (&Quarantine, Option<&Path>),
        moment: SettlePoint,
    ) -> GuardOutcome {
        let mut settled = GuardOutcome::default();
        let suspects: Vec<_> = now.found.iter().filter(|(path, _)| self.is_new(path, before)).collect();
        let mut still = BTreeSet::new();
        let mut taken: Option<PathBuf> = None;
        for (path, guarded) in suspects {
            if taken.as_ref().is_some_and(|taken| path.starts_with(taken)) {
                continue;
            }
            // The helper of another command may have put it back, and reports that when it ends.
            if !moment.is_end && self.missing.contains_key(path) {
                continue;
            }
            if is_acceptable(path, guarded, before, now, home) {
                self.paths.insert(path.clone());
                continue;
            }
            // Half made, it may become an accepted file; and a command may need it for a moment.
            if moment.is_attended && is_passing(path) {
                continue;
            }
            if !moment.is_end && !self.seen.contains(path) {
                still.insert(path.clone());
                continue;
            }
            match store.take(path, obeyed_by(path, now)) {
                Ok(Some(set_aside)) => {
                    settled.set_aside.push(set_aside);
                    taken = Some(path.clone());
                }
                Ok(None) => {}
                Err(error) => settled.failed.push((path.clone(), error.to_string())),
            }
        }
        self.seen = still;
        let gone = before
            .found
            .iter()
            .filter(|(path, _)| !now.found.contains_key(*path) && !self.paths.contains(*path));
        self.missing.extend(gone.map(|(path, guarded)| (path.clone(), guarded.clone())));
        self.paths.retain(|path| now.found.contains_key(path));
        for (path, guarded) in &before.found {
            let GuardedPath::Link(target) = guarded else { continue };
            match put_link_back(path, target, store) {
                Ok(false) => {}
                Ok(true) => settled.restored.push(path.clone()),
                Err(error) => settled.failed.push((path.clone(), error.to_string())),
            }
        }
        settled
    }
}

/// Whether a new guarded entry may stay: it is one of git's own that names no program, or nothing obeys it.
fn is_acceptable(
    path: &Path,
    guarded: &GuardedPath,
    before: &GuardSurvey,
    now: &GuardSurvey,
    home: Option<&Path>,
) -> bool {
    let leads_elsewhere = || {
        matches!(guarded, GuardedPath::Link(_))
            && now.scripts.contains(path)
            && !before.scripts.contains(path)
    };
    if before.absent.contains(path) || leads_elsewhere() {
        return false;
    }
    if *guarded == GuardedPath::Unreadable {
        // No program reads it. It is held from now on, and opened when the command has ended.
        return true;
    }
    let Some(folder) = path.parent() else { return false };
    let name = path.file_name().unwrap_or_default();
    if steering::is_repository(name) {
        // A file that names a git folder: that one is judged by itself, where commands can write in it.
        return *guarded == GuardedPath::File
            && pointed_to(path).is_some_and(|folder| now.repositories.contains(&folder));
    }
    if now.repositories.contains(folder) {
        return is_harmless(path, folder, worktree_of(folder));
    }
    let is_in_git =
        |folder: &Path| now.repositories.contains(folder) && folder.join("HEAD").symlink_metadata().is_ok();
    let lies_in_git = folder.ancestors().any(|folder| is_in_git(folder) && worktree_of(folder).is_some());
    let is_at_home = home.is_some_and(|home| steering::place_at_home(path, home).is_some());
    // The rest is guarded because settings name it, and was there before they did.
    !lies_in_git && !steering::is_steering(name) && !is_at_home
}

/// The program that obeys a guarded file, for people.
fn obeyed_by(path: &Path, survey: &GuardSurvey) -> &'static str {
    if survey.scripts.contains(path) {
        return "a hook of your settings";
    }
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default().to_ascii_lowercase();
    let is_of_git = path.ancestors().any(|folder| survey.repositories.contains(folder))
        || survey.absent.contains(path)
        || name.starts_with(".git")
        || name == ".husky"
        || name.contains("lefthook")
        || name.starts_with(".pre-commit");
    if is_of_git {
        return "git";
    }
    if steering::is_ignore_file(name.as_ref()) {
        return "this agent and others";
    }
    match &*name {
        ".vscode" | ".idea" | ".zed" | ".fleet" | ".devcontainer" | ".devcontainer.json" | ".exrc"
        | ".nvimrc" | ".nvim.lua" | ".vimrc" | ".dir-locals.el" => "an editor",
        ".envrc" => "direnv",
        ".npmrc" | ".yarnrc" | ".yarnrc.yml" | ".pnpmfile.cjs" => "a package manager",
        _ if name.ends_with(".code-workspace") => "an editor",
        _ if fs::symlink_metadata(path).is_ok_and(|found| found.is_file()) && name.ends_with("rc") => {
            "a shell"
        }
        _ => "other programs",
    }
}
