//! The notes that sub-agents of a type keep from one task to the next: a folder with `MEMORY.md` in it.
//!
//! Rule: notes are read when a task begins and are data of their writers; writing them goes the way of every
//! other change to a file, and no folder is made before.

use std::io;

use crate::agents::{AgentMemory, AgentType};
use crate::extension::places::user_folders;
use kode_base::paths::AbsPath;
use kode_base::regular;

/// The file that is read.
const FILE: &str = "MEMORY.md";

/// Number of lines of it that are read.
const MAX_LINES: usize = 200;

/// Number of bytes of it that are read.
const MAX_BYTES: u64 = 25 << 10;

/// Where the user's own notes lie among their folders, strongest first: those of the agent that has such notes.
const USER_FOLDER: usize = 2;

/// The text about its notes for a sub-agent; `None` when its type keeps none. Blocks on the disk.
pub fn reported(kind: &AgentType, project: &AbsPath) -> Option<String> {
    let home = std::env::home_dir().and_then(|home| AbsPath::new(home).ok());
    let folder = folder(kind, project, &user_folders(home.as_ref()))?;
    let file = folder.join(FILE);
    let notes = match read(&file) {
        Ok(notes) if notes.trim().is_empty() => "The folder is empty.".to_owned(),
        Ok(notes) => {
            let notes = notes.trim().replace("</notes", "<\u{200b}/notes");
            format!("They say so far:\n<notes path=\"{file}\">\n{notes}\n</notes>")
        }
        Err(error) => {
            tracing::warn!(%file, %error, "the notes of an agent cannot be read");
            format!("They cannot be read: {error}. Tell the user so.")
        }
    };
    Some(format!(
        "You keep notes from one task to the next in {folder}. {notes}\nAdd what will help with later tasks to {file}: \
         short, one thing a line; longer texts go into files beside it that it names. Remove entries that are no longer true. \
         Only its first {MAX_LINES} lines are shown to you."
    ))
}

/// The folder of the notes. The name of a type of a file has no blanks; what else would lead elsewhere is replaced.
fn folder(kind: &AgentType, project: &AbsPath, user: &[AbsPath]) -> Option<AbsPath> {
    let fits = |char: char| if char.is_alphanumeric() || matches!(char, '-' | '_') { char } else { '-' };
    let name: String = kind.name.chars().map(fits).collect();
    match kind.memory? {
        AgentMemory::User => user.get(USER_FOLDER).map(|folder| folder.join("agent-memory").join(name)),
        AgentMemory::Project => Some(project.join(".claude/agent-memory").join(name)),
        AgentMemory::Local => Some(project.join(".claude/agent-memory-local").join(name)),
    }
}

/// The beginning of the notes; empty if none exist.
fn read(file: &AbsPath) -> io::Result<String> {
    let bytes = match regular::read_start(file.as_path(), MAX_BYTES) {
        Ok(bytes) => bytes,
        Err(error) if is_absence(&error) => return Ok(String::new()),
        Err(error) => return Err(error),
    };
    let text = String::from_utf8_lossy(&bytes);
    Ok(text.lines().take(MAX_LINES).collect::<Vec<_>>().join("\n"))
}

/// A file where a folder was expected is nothing, too.
fn is_absence(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agents::AgentTypes;

    #[test]
    fn notes_are_given_from_the_folder_that_the_type_names_and_bounded() {
        let folder = tempfile::tempdir().unwrap();
        let project = AbsPath::new(folder.path()).unwrap();
        let general = AgentTypes::default().find("general-purpose").unwrap().clone();
        assert_eq!(reported(&general, &project), None);
        let mut kind = AgentType { name: "a/../b".to_owned(), memory: Some(AgentMemory::Project), ..general };
        let notes = project.join(".claude/agent-memory/a----b");
        assert!(reported(&kind, &project).unwrap().contains("The folder is empty"));
        std::fs::create_dir_all(notes.as_path()).unwrap();
        let text = format!("first </notes>\n{}last", "x\n".repeat(MAX_LINES));
        std::fs::write(notes.join(FILE).as_path(), text).unwrap();
        let given = reported(&kind, &project).unwrap();
        assert!(given.contains("first <\u{200b}/notes>") && !given.contains("last"), "{given}");
        kind.memory = Some(AgentMemory::Local);
        assert!(reported(&kind, &project).unwrap().contains("agent-memory-local"));
    }

    #[test]
    fn notes_that_are_no_file_are_reported_and_not_waited_for() {
        let folder = tempfile::tempdir().unwrap();
        let project = AbsPath::new(folder.path()).unwrap();
        let general = AgentTypes::default().find("general-purpose").unwrap().clone();
        let kind = AgentType { name: "a".to_owned(), memory: Some(AgentMemory::Project), ..general };
        let notes = project.join(".claude/agent-memory/a");
        std::fs::create_dir_all(notes.as_path()).unwrap();
        let made = std::process::Command::new("mkfifo").arg(notes.join(FILE).as_path()).status();
        assert!(made.unwrap().success());
        let given = reported(&kind, &project).unwrap();
        assert!(given.contains("cannot be read: it is no regular file"), "{given}");
    }
}
