//! Hides the user's local settings from git.
//!
//! Rule: only the repository's own exclude list is changed, which git never commits. A failure costs nothing but the entry.

use std::fs;
use std::io::{self, Write};
use std::path::Path;

use kode_base::paths::{AbsPath, slashed};

/// The exclude list of a repository, below its `.git` folder.
const LIST: &str = "info/exclude";

/// Adds a new file to the exclude list of its repository. Worktrees and submodules, whose `.git` is a file, are left alone.
pub(super) fn exclude(file: &AbsPath) {
    let path = file.as_path();
    let Some(root) = path.ancestors().skip(1).find(|folder| folder.join(".git").exists()) else { return };
    let git = root.join(".git");
    let name = path.strip_prefix(root).ok().filter(|name| name.to_str().is_some());
    let Some(name) = name.map(slashed).filter(|_| git.is_dir()) else {
        return;
    };
    if let Err(error) = add(&git.join(LIST), &format!("/{name}")) {
        tracing::info!(%error, "local settings could not be excluded from git");
    }
}

fn add(list: &Path, pattern: &str) -> io::Result<()> {
    let text = match fs::read_to_string(list) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => String::new(),
        read => read?,
    };
    if text.lines().any(|line| line.trim_end() == pattern) {
        return Ok(());
    }
    if let Some(folder) = list.parent() {
        fs::create_dir_all(folder)?;
    }
    let begin = if text.is_empty() || text.ends_with('\n') { "" } else { "\n" };
    fs::OpenOptions::new()
        .append(true)
        .create(true)
        .open(list)?
        .write_all(format!("{begin}{pattern}\n").as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_listed_once_by_its_path_in_the_repository() {
        let folder = tempfile::tempdir().unwrap();
        let list = folder.path().join(".git").join(LIST);
        fs::create_dir_all(list.parent().unwrap()).unwrap();
        fs::write(&list, "*.o").unwrap();
        let file = AbsPath::new(folder.path().join("sub/.kode/settings.local.json")).unwrap();
        exclude(&file);
        exclude(&file);
        assert_eq!(fs::read_to_string(&list).unwrap(), "*.o\n/sub/.kode/settings.local.json\n");
        exclude(&AbsPath::new("/no-such-folder/x").unwrap());
    }
}
