//! The files of a workspace that a declared command names.
//!
//! Rule: what the user approves is the command together with the contents of these files: a script that is swapped
//! afterwards is another one. Everything here is bounded; what lies beyond the bounds is told in the text that is approved.

use std::fs::File;
use std::io::{self, Read};

use serde_json::Value;
use sha2::{Digest, Sha256};

use super::text::is_absence;
use kode_base::paths::AbsPath;

/// The most files of one declaration that are looked at.
const MAX_FILES: usize = 16;
/// The most words of one declaration that are tried as names of files.
const MAX_WORDS: usize = 256;
/// The largest file whose contents are looked at, in bytes.
const MAX_BYTES: u64 = 4 << 20;
/// What stands for the workspace in front of a file's name.
const PREFIXES: [&str; 6] =
    ["${CLAUDE_PROJECT_DIR}/", "$CLAUDE_PROJECT_DIR/", "${KODE_PROJECT_DIR}/", "${PWD}/", "$PWD/", "./"];

/// A file that a declaration names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ReferencedFile {
    /// The file; it need not be there yet.
    pub(super) path: AbsPath,
    name: String,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum ReferencedContent {
    Absent,
    Digest(String),
    TooLarge,
    Unreadable(io::ErrorKind),
}

impl ReferencedFile {
    /// The line that stands for the file and what is in it now in the text that is approved; empty while there is no such
    /// file. Blocks on the disk.
    pub(super) fn line(&self) -> String {
        if self.name.is_empty() {
            return "\n(it names more files than are watched: any of the others may be swapped unnoticed)"
                .to_owned();
        }
        match contents(&self.path) {
            ReferencedContent::Absent => String::new(),
            ReferencedContent::Digest(digest) => format!("\n{} sha256:{digest}", self.name),
            ReferencedContent::TooLarge => {
                format!("\n{} (too large for its contents to be watched)", self.name)
            }
            ReferencedContent::Unreadable(kind) => format!("\n{} (cannot be read: {kind})", self.name),
        }
    }
}

/// The files in a workspace that the texts of a value name, in the order of their names. Blocks on the disk.
pub(super) fn named_files(workspace: &AbsPath, value: &Value) -> Vec<ReferencedFile> {
    let mut words = Vec::new();
    collect(value, &mut words);
    // A program may be started in a folder of the workspace and name its files from there.
    let folder = value.get("cwd").and_then(Value::as_str).and_then(|cwd| inside(workspace, "", cwd));
    let is_more = words.len() > MAX_WORDS;
    let mut names: Vec<String> = words
        .iter()
        .take(MAX_WORDS)
        .flat_map(|word| {
            let from_folder = folder.as_ref().and_then(|folder| inside(workspace, folder, word));
            [inside(workspace, "", word), from_folder].into_iter().flatten()
        })
        .collect();
    names.sort_unstable();
    names.dedup();
    // What looks like a path may come into being after the approval.
    let is_path = |name: &str| name.contains(['/', '.']) && !name.contains(char::is_whitespace);
    let files = names.into_iter().map(|name| ReferencedFile { path: workspace.join(&name), name });
    let (there, absent): (Vec<_>, Vec<_>) = files.partition(|file| file.path.as_path().is_file());
    // Nothing that is there is pushed out by what is not.
    let absent = absent.into_iter().filter(|file| is_path(&file.name));
    let mut files: Vec<ReferencedFile> = there.into_iter().chain(absent).collect();
    if files.len() > MAX_FILES || is_more {
        files.truncate(MAX_FILES);
        files.push(ReferencedFile { path: workspace.clone(), name: String::new() });
    }
    files
}

fn collect(value: &Value, words: &mut Vec<String>) {
    match value {
        Value::String(text) => {
            // A name with blanks in it is a word, too.
            words.push(text.clone());
            // Quotes may stand around a part of a path.
            let bare = text.replace(['"', '\''], "");
            let is_between = |char: char| char.is_whitespace() || "`;|&()<>=,".contains(char);
            words.extend(bare.split(is_between).filter(|word| !word.is_empty()).map(str::to_owned));
        }
        Value::Array(list) => list.iter().for_each(|value| collect(value, words)),
        Value::Object(object) => object.values().for_each(|value| collect(value, words)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// The name of a file inside the workspace that a word may mean in one of its folders, relative to the workspace and without
/// detours.
fn inside(workspace: &AbsPath, folder: &str, word: &str) -> Option<String> {
    let prefixed = PREFIXES.iter().find_map(|prefix| word.strip_prefix(prefix));
    let absolute = workspace.as_path().to_str().and_then(|root| word.strip_prefix(root)?.strip_prefix('/'));
    let (folder, relative) = match prefixed.filter(|_| !word.starts_with("./")).or(absolute) {
        Some(relative) => ("", relative),
        None => (folder, word),
    };
    if relative.is_empty() || relative.starts_with(['/', '~', '-']) || relative.contains('\0') {
        return None;
    }
    let mut parts: Vec<&str> = Vec::new();
    for part in folder.split('/').chain(relative.split('/')) {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()?),
            part => parts.push(part),
        }
    }
    (!parts.is_empty()).then(|| parts.join("/"))
}

fn contents(path: &AbsPath) -> ReferencedContent {
    let digest = || -> io::Result<ReferencedContent> {
        // Asked for before it is opened: opening a pipe would wait for its other end.
        if !path.as_path().metadata()?.is_file() {
            return Ok(ReferencedContent::Absent);
        }
        let mut bytes = Vec::new();
        File::open(path.as_path())?.take(MAX_BYTES + 1).read_to_end(&mut bytes)?;
        if bytes.len() as u64 > MAX_BYTES {
            return Ok(ReferencedContent::TooLarge);
        }
        Ok(ReferencedContent::Digest(
            Sha256::digest(&bytes).iter().map(|byte| format!("{byte:02x}")).collect(),
        ))
    };
    match digest() {
        Ok(contents) => contents,
        Err(error) if is_absence(&error) => ReferencedContent::Absent,
        Err(error) => ReferencedContent::Unreadable(error.kind()),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use serde_json::json;

    use super::*;

    #[test]
    fn scripts_of_the_workspace_are_found_however_they_are_named() {
        let folder = tempfile::tempdir().unwrap();
        let root = AbsPath::new(folder.path().canonicalize().unwrap()).unwrap();
        fs::create_dir_all(root.join(".claude/hooks").as_path()).unwrap();
        fs::create_dir_all(root.join("sub").as_path()).unwrap();
        for name in
            [".claude/hooks/check.sh", "run me.sh", "server.js", "unnamed.sh", "detour.sh", "sub/server.js"]
        {
            fs::write(root.join(name).as_path(), name).unwrap();
        }
        let value = json!({
            "hooks": [{"command": "\"$CLAUDE_PROJECT_DIR\"/.claude/hooks/check.sh --deep; cat ../../etc/passwd /etc/hosts"}],
            "args": ["./server.js", "run me.sh", 3, root.join("server.js").to_string(), "x/../detour.sh", "../../out.sh"],
            "cwd": "sub",
        });
        let names: Vec<String> = named_files(&root, &value)
            .iter()
            .filter(|file| !file.line().is_empty())
            .map(|file| file.name.clone())
            .collect();
        assert_eq!(names, [".claude/hooks/check.sh", "detour.sh", "run me.sh", "server.js", "sub/server.js"]);
        let many: Vec<String> =
            (0..40).map(|at| format!("a./{at}.sh")).chain(["server.js".to_owned()]).collect();
        let text: String = named_files(&root, &json!(many)).iter().map(ReferencedFile::line).collect();
        assert!(text.contains("server.js sha256:") && text.contains("more files than are watched"), "{text}");
    }

    #[test]
    fn another_content_is_another_text() {
        let folder = tempfile::tempdir().unwrap();
        let root = AbsPath::new(folder.path()).unwrap();
        let text =
            || named_files(&root, &json!("sh check.sh")).iter().map(ReferencedFile::line).collect::<String>();
        assert_eq!(text(), "");
        fs::write(root.join("check.sh").as_path(), "one").unwrap();
        let before = text();
        fs::write(root.join("check.sh").as_path(), "two").unwrap();
        assert_ne!(text(), before);
        fs::write(root.join("check.sh").as_path(), vec![b'x'; MAX_BYTES as usize + 1]).unwrap();
        assert!(text().contains("too large"), "{}", text());
    }
}
