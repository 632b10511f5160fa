//! Whether git can be run in a folder without running what the repository's own settings name.
//!
//! Rule: git is an interpreter of its settings. Only settings that name no program are plain, and what cannot be read in
//! full is not plain.

use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};

use crate::paths::AbsPath;

/// More of a settings file is not looked at.
const MAX_CONFIG: u64 = 256 * 1024;

/// The sections whose settings name no programs.
const PLAIN_SECTIONS: [&str; 8] = ["user", "branch", "remote", "push", "pull", "init", "color", "advice"];

/// Settings of the section `core` that name no programs.
const PLAIN_CORE: [&str; 12] = [
    "repositoryformatversion",
    "filemode",
    "bare",
    "logallrefupdates",
    "ignorecase",
    "precomposeunicode",
    "symlinks",
    "autocrlf",
    "eol",
    "quotepath",
    "abbrev",
    "untrackedcache",
];

/// Whether the settings of the repository that a folder lies in name no program that git would run; true as well where
/// there is no repository.
#[must_use]
pub fn is_plain(folder: &AbsPath) -> bool {
    match git_folders(folder.as_path()) {
        None => true,
        Some(folders) => folders
            .iter()
            .all(|folder| ["config", "config.worktree"].iter().all(|name| is_plain_file(&folder.join(name)))),
    }
}

/// The folders with the settings of the repository around a folder: its git folder and the one it shares.
fn git_folders(folder: &Path) -> Option<Vec<PathBuf>> {
    let found = folder.ancestors().find_map(|ancestor| {
        let inside = ancestor.join(".git");
        if inside.symlink_metadata().is_ok() {
            return Some(inside);
        }
        // A bare repository is one by its content.
        let is_bare = ancestor.join("HEAD").is_file() && ancestor.join("objects").is_dir();
        is_bare.then(|| ancestor.to_path_buf())
    })?;
    let own = match fs::read_to_string(&found) {
        Ok(text) => {
            let elsewhere = text.strip_prefix("gitdir:").map(str::trim).unwrap_or_default();
            found.parent().unwrap_or(&found).join(elsewhere)
        }
        Err(_) => found,
    };
    let shared = fs::read_to_string(own.join("commondir")).ok().map(|text| own.join(text.trim()));
    Some([Some(own), shared].into_iter().flatten().collect())
}

fn is_plain_file(path: &Path) -> bool {
    let Ok(file) = fs::File::open(path) else {
        // A file that is there and cannot be opened may say anything.
        return path.symlink_metadata().is_err();
    };
    let mut text = String::new();
    match file.take(MAX_CONFIG + 1).read_to_string(&mut text) {
        Ok(length) if (length as u64) <= MAX_CONFIG => is_plain_text(&text),
        Ok(_) | Err(_) => false,
    }
}

fn is_plain_text(text: &str) -> bool {
    let mut section = String::new();
    text.lines().map(str::trim).all(|line| {
        if line.is_empty() || line.starts_with(['#', ';']) {
            return true;
        }
        if let Some(rest) = line.strip_prefix('[') {
            // Settings behind the header on its own line are rare and not looked into.
            let Some(header) = rest.strip_suffix(']') else { return false };
            section = header.split([' ', '"', '.']).next().unwrap_or_default().to_ascii_lowercase();
            return section == "core" || section == "submodule" || PLAIN_SECTIONS.contains(&&*section);
        }
        let name = line.split('=').next().unwrap_or_default().trim().to_ascii_lowercase();
        match &*section {
            "core" => PLAIN_CORE.contains(&&*name),
            "remote" => matches!(&*name, "url" | "fetch" | "pushurl" | "push" | "tagopt" | "prune"),
            "submodule" => matches!(&*name, "url" | "active" | "branch"),
            _ => true,
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn repository(config: &str) -> (tempfile::TempDir, AbsPath) {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir_all(folder.path().join(".git")).unwrap();
        fs::create_dir_all(folder.path().join("src")).unwrap();
        fs::write(folder.path().join(".git/config"), config).unwrap();
        let inside = AbsPath::new(folder.path().join("src")).unwrap();
        (folder, inside)
    }

    #[test]
    fn an_ordinary_repository_is_plain_and_one_that_names_programs_is_not() {
        let ordinary = "[core]\n\trepositoryformatversion = 0\n\tbare = false\n[remote \"origin\"]\n\turl = x\n\tfetch = \
                        +refs/heads/*:refs/remotes/origin/*\n[branch \"main\"]\n\tremote = origin\n";
        assert!(is_plain(&repository(ordinary).1));
        for hostile in [
            "[core]\n\tfsmonitor = ./evil",
            "[core]\n\tHooksPath = x",
            "[core] pager = x",
            "[diff \"x\"]\n\ttextconv = evil",
            "[filter \"x\"]\n\tclean = evil",
            "[include]\n\tpath = evil",
            "[alias]\n\tst = !evil",
            "[remote \"o\"]\n\tuploadpack = evil",
        ] {
            let (_folder, inside) = repository(hostile);
            assert!(!is_plain(&inside), "{hostile}");
        }
        let none = tempfile::tempdir().unwrap();
        assert!(is_plain(&AbsPath::new(none.path()).unwrap()));
    }

    #[test]
    fn a_git_file_and_shared_settings_are_followed() {
        let (folder, _) = repository("[core]\n\tbare = false\n");
        let main = folder.path().join(".git");
        fs::create_dir_all(main.join("worktrees/w")).unwrap();
        fs::write(main.join("worktrees/w/commondir"), "../..\n").unwrap();
        let worktree = tempfile::tempdir().unwrap();
        fs::write(worktree.path().join(".git"), format!("gitdir: {}/worktrees/w\n", main.display())).unwrap();
        let inside = AbsPath::new(worktree.path()).unwrap();
        assert!(is_plain(&inside));
        fs::write(main.join("config"), "[core]\n\tfsmonitor = evil\n").unwrap();
        assert!(!is_plain(&inside));
    }

    #[test]
    fn a_folder_that_is_a_bare_repository_by_its_content_is_one() {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir_all(folder.path().join("objects")).unwrap();
        fs::write(folder.path().join("HEAD"), "ref: refs/heads/main\n").unwrap();
        fs::write(folder.path().join("config"), "[core]\n\tfsmonitor = evil\n").unwrap();
        assert!(!is_plain(&AbsPath::new(folder.path()).unwrap()));
    }
}
