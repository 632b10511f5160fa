//! The files of a workspace that a declared command names.
//!
//! Rule: what the user approves is the command together with the contents of these files: a script that is swapped
//! afterwards is another one. Data that a program writes is no script: an option or a variable names it as data, it is the
//! output of a command, or it is an SQLite database. Everything here is bounded; omissions are reported in the text that is
//! approved.

use std::io;

use serde_json::Value;
use sha2::{Digest, Sha256};

use super::text::is_absence;
use kode_base::paths::AbsPath;
use kode_base::regular;

/// The most files of one declaration that are checked.
const MAX_FILES: usize = 16;
/// The most words of one declaration that are tried as names of files.
const MAX_WORDS: usize = 256;
/// The largest file whose contents are checked, in bytes.
const MAX_BYTES: u64 = 4 << 20;
/// The ends of names of scripts that an interpreter runs.
const SCRIPTS: [&str; 13] =
    ["sh", "bash", "zsh", "fish", "py", "js", "mjs", "cjs", "ts", "rb", "pl", "php", "lua"];
/// Words of a command line that run the file named behind them, or ask for it.
const RUNNERS: [&str; 27] = [
    "sh", "bash", "zsh", "fish", "dash", "ksh", "python", "python3", "node", "deno", "bun", "ruby", "perl",
    "php", "lua", "source", ".", "exec", "env", "command", "time", "then", "do", "else", "if", "while", "!",
];
/// How a shell names the home folder of the user in front of a file's name.
const HOMES: [&str; 3] = ["~/", "$HOME/", "${HOME}/"];
/// The placeholder of the workspace in front of a file's name.
const PREFIXES: [&str; 6] =
    ["${CLAUDE_PROJECT_DIR}/", "$CLAUDE_PROJECT_DIR/", "${KODE_PROJECT_DIR}/", "${PWD}/", "$PWD/", "./"];

/// Parts of the names of options and variables that name a file of data.
const DATA_PARTS: [&str; 12] = [
    "db", "database", "sqlite", "data", "memory", "store", "storage", "state", "cache", "log", "logs",
    "history",
];
/// Parts of such names that name a file which a program obeys.
const PROGRAM_PARTS: [&str; 9] =
    ["config", "conf", "script", "init", "plugin", "module", "import", "require", "load"];
/// Extensions of files that programs run, wherever they are named.
const PROGRAM_EXTENSIONS: [&str; 27] = [
    "sh", "bash", "zsh", "fish", "py", "pyw", "js", "mjs", "cjs", "ts", "tsx", "rb", "pl", "lua", "php",
    "ps1", "bat", "cmd", "exe", "jar", "wasm", "so", "dll", "dylib", "node", "sql", "env",
];
/// Extensions of SQLite databases.
const DATABASE_EXTENSIONS: [&str; 4] = ["db", "db3", "sqlite", "sqlite3"];
/// How an SQLite database begins.
const SQLITE: &[u8] = b"SQLite format 3\0";

/// A word of a declaration that may name a file.
struct Word {
    text: String,
    /// Whether an option or a variable names it as data.
    is_data: bool,
    /// Whether a command line runs it.
    is_run: bool,
}

/// A file that a declaration names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ReferencedFile {
    /// The file; it need not be there yet.
    pub(super) path: AbsPath,
    name: String,
    is_run: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum ReferencedContent {
    Absent,
    Database,
    Digest(String),
    TooLarge,
    Unreadable(io::ErrorKind),
}

impl ReferencedFile {
    /// Whether it can be a script: what a command line runs, a file that may be run, or one that is named like the scripts of an
    /// interpreter. `is_awaited` says whether that counts of a file that is not there.
    pub(super) fn is_script(&self, is_awaited: bool) -> bool {
        let path = self.path.as_path();
        let extension = path.extension().and_then(|extension| extension.to_str());
        let is_named = self.is_run || extension.is_some_and(|extension| SCRIPTS.contains(&extension));
        let Ok(metadata) = path.metadata() else { return is_awaited && is_named };
        #[cfg(unix)]
        let may_run = {
            use std::os::unix::fs::PermissionsExt;
            metadata.permissions().mode() & 0o111 != 0
        };
        #[cfg(not(unix))]
        let may_run = false;
        metadata.is_file() && (may_run || is_named)
    }

    /// The line that represents the file and its current content in the approved text; empty while there is no such
    /// file. Blocks on the disk.
    pub(super) fn line(&self) -> String {
        if self.name.is_empty() {
            return "\n(it names more files than are watched: any of the others may be swapped unnoticed)"
                .to_owned();
        }
        match contents(&self.path) {
            ReferencedContent::Absent | ReferencedContent::Database => String::new(),
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
    collect(value, (false, true), &mut words);
    let home = home();
    let inside = |folder: &str, word: &str| inside(workspace, home.as_deref(), folder, word);
    // A program may be started in a folder of the workspace and name its files from there.
    let folder = value.get("cwd").and_then(Value::as_str).and_then(|cwd| inside("", cwd));
    let is_more = words.len() > MAX_WORDS;
    let mut names: Vec<(String, bool, bool)> = words
        .iter()
        .take(MAX_WORDS)
        .flat_map(|Word { text: word, is_data, is_run }| {
            let from_folder = folder.as_ref().and_then(|folder| inside(folder, word));
            let names = [inside("", word), from_folder].into_iter().flatten();
            names.map(|name| (name, *is_data, *is_run))
        })
        .collect();
    // A name that is elsewhere, too, is no data there: that one comes first, and stays.
    names.sort_unstable();
    names.dedup_by(|next, kept| {
        let is_same = next.0 == kept.0;
        kept.2 |= is_same && next.2;
        is_same
    });
    let is_script = |(name, is_data, _): &(String, bool, bool)| !is_data || is_program(&workspace.join(name));
    // Text that looks like a path may exist only after the approval.
    let is_path = |name: &str| name.contains(['/', '.']) && !name.contains(char::is_whitespace);
    let names = names.into_iter().filter(is_script);
    let files = names.map(|(name, _, is_run)| ReferencedFile { path: workspace.join(&name), name, is_run });
    let (there, absent): (Vec<_>, Vec<_>) = files.partition(|file| file.path.as_path().is_file());
    // Missing entries push out no existing ones.
    let absent = absent.into_iter().filter(|file| is_path(&file.name));
    let mut files: Vec<ReferencedFile> = there.into_iter().chain(absent).collect();
    if files.len() > MAX_FILES || is_more {
        files.truncate(MAX_FILES);
        files.push(ReferencedFile { path: workspace.clone(), name: String::new(), is_run: false });
    }
    files
}

/// The home folder of the shells that commands run in: the one of this process.
fn home() -> Option<String> {
    std::env::home_dir()?.into_os_string().into_string().ok()
}

/// Whether a text has the whole path of a folder, as it is or from the home folder on.
pub(super) fn names_folder(text: &str, folder: &AbsPath) -> bool {
    let below_home =
        home().and_then(|home| Some(folder.as_path().strip_prefix(home).ok()?.to_str()?.to_owned()));
    let is_below_home = |rest: String| {
        HOMES.iter().any(|prefix| text.contains(format!("{prefix}{rest}").trim_end_matches('/')))
    };
    text.contains(&folder.to_string()) || below_home.is_some_and(is_below_home)
}

/// Whether a value runs a script in a folder, or may: one that is not there yet counts, and so does a value that names more files
/// than are watched. Blocks on the disk.
pub(super) fn runs_script_in(folder: &AbsPath, value: &Value) -> bool {
    named_files(folder, value).iter().any(|file| file.name.is_empty() || file.is_script(true))
}

fn collect(value: &Value, (is_data, is_run): (bool, bool), words: &mut Vec<Word>) {
    match value {
        Value::String(text) => {
            // A name with blanks in it is a word, too.
            words.push(Word { text: text.clone(), is_data, is_run });
            // Quotes may stand around a part of a path.
            let bare = text.replace(['"', '\''], "");
            let is_between = |char: char| "<>=,".contains(char);
            let mut names_data = is_data;
            for command in bare.split(['`', ';', '|', '&', '(', ')', '\n']) {
                let (mut runs, mut is_output) = (is_run, false);
                for token in command.split_whitespace() {
                    let output = token.rfind('>').map_or(token.len(), |at| at + 1);
                    for word in token.split(is_between).filter(|word| !word.is_empty()) {
                        let is_behind = word.as_ptr() as usize >= token.as_ptr() as usize + output;
                        let is_data_word = names_data || is_output || is_behind;
                        words.push(Word { text: word.to_owned(), is_data: is_data_word, is_run: runs });
                        names_data = is_data || (word.starts_with('-') && is_name_of_data(word));
                    }
                    is_output = token.ends_with('>');
                    // A variable may be set in front of the command.
                    runs &= token.starts_with('-') || token.contains('=') || RUNNERS.contains(&token);
                }
            }
        }
        Value::Array(list) => {
            let (mut names_data, mut runs) = (false, is_run);
            for value in list {
                collect(value, (names_data, runs), words);
                let option = value.as_str().filter(|text| text.starts_with('-') && !text.contains('='));
                names_data = option.is_some_and(is_name_of_data);
                runs &= value.as_str().is_none_or(|text| text.starts_with('-'));
            }
        }
        Value::Object(object) => {
            for (name, value) in object {
                // Only variables are written in capitals: keys of a declaration are not.
                let is_variable = !name.chars().any(char::is_lowercase);
                let is_data = value.is_string() && is_variable && is_name_of_data(name);
                collect(value, (is_data, !is_variable), words);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// Whether an option or a variable of this name takes a file of data.
fn is_name_of_data(name: &str) -> bool {
    let name = name.to_lowercase();
    let has = |parts: &[&str]| name.split(['-', '_', '.']).any(|part| parts.contains(&part));
    has(&DATA_PARTS) && !has(&PROGRAM_PARTS)
}

/// Whether a file is a program by its extension, or because it may be executed.
fn is_program(path: &AbsPath) -> bool {
    #[cfg(unix)]
    let is_executable = path.as_path().metadata().is_ok_and(|metadata| {
        metadata.is_file() && std::os::unix::fs::PermissionsExt::mode(&metadata.permissions()) & 0o111 != 0
    });
    #[cfg(not(unix))]
    let is_executable = false;
    is_executable || has_extension(&path.file_name(), &PROGRAM_EXTENSIONS)
}

fn has_extension(name: &str, extensions: &[&str]) -> bool {
    let extension = name.rsplit_once('.').map(|(_, extension)| extension.to_lowercase());
    extension.is_some_and(|extension| extensions.contains(&extension.as_str()))
}

/// The name of a file inside the workspace that a word may mean in one of its folders, relative to the workspace and without
/// detours.
fn inside(workspace: &AbsPath, home: Option<&str>, folder: &str, word: &str) -> Option<String> {
    let below_home = HOMES.iter().find_map(|prefix| word.strip_prefix(prefix));
    let expanded = below_home.zip(home).map(|(rest, home)| format!("{}/{rest}", home.trim_end_matches('/')));
    let word = expanded.as_deref().unwrap_or(word);
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
        let bytes = match regular::read_start(path.as_path(), MAX_BYTES + 1) {
            Err(error) if error.kind() == io::ErrorKind::InvalidInput => {
                return Ok(ReferencedContent::Absent);
            }
            read => read?,
        };
        // A shell may run the lines behind such a beginning, so the name has to be one of a database, too.
        if bytes.starts_with(SQLITE) && has_extension(&path.file_name(), &DATABASE_EXTENSIONS) {
            return Ok(ReferencedContent::Database);
        }
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
        let root = AbsPath::new(kode_base::paths::real_path(folder.path()).unwrap()).unwrap();
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
    fn a_file_below_the_home_folder_is_found_however_the_shell_names_that() {
        let workspace = AbsPath::new("/home/me/src/project").unwrap();
        let name = |word| inside(&workspace, Some("/home/me"), "", word);
        for word in ["~/src/project/check.sh", "$HOME/src/project/check.sh", "${HOME}/src/project/./check.sh"]
        {
            assert_eq!(name(word).as_deref(), Some("check.sh"), "{word}");
        }
        for word in
            ["~/src/other/check.sh", "~other/src/project/check.sh", "$HOMES/src/project/check.sh", "~/"]
        {
            assert!(name(word).is_none_or(|name| name.contains('$')), "{word}");
        }
        assert_eq!(inside(&workspace, None, "", "~/src/project/check.sh"), None, "no home folder is known");
    }

    #[test]
    fn data_that_a_server_writes_is_no_script() {
        let folder = tempfile::tempdir().unwrap();
        let root = AbsPath::new(folder.path()).unwrap();
        let text =
            |value: &Value| named_files(&root, value).iter().map(ReferencedFile::line).collect::<String>();
        let data = [
            json!({ "command": "uvx", "args": ["mcp-server-sqlite", "--db-path", "data.db"] }),
            json!({ "command": "npx", "args": ["server-memory"], "env": { "MEMORY_FILE_PATH": "data.db" } }),
            json!({ "command": "sh", "args": ["-c", "serve --log-file data.db"] }),
            json!({ "command": "serve", "args": ["--data=data.db"] }),
            json!({ "command": "sh", "args": ["-c", "serve >> data.db"] }),
            json!({ "command": "sh", "args": ["-c", "serve 2>data.db"] }),
        ];
        let scripts = [
            json!({ "command": "python", "args": ["data.db"] }),
            json!({ "command": "./data.db" }),
            json!({ "command": "serve", "args": ["--data-script", "data.db"] }),
            json!({ "command": "serve", "args": ["--config", "data.db"] }),
            json!({ "command": "sh", "args": ["-c", "serve --log-file out.txt data.db"] }),
            json!({ "command": "sh", "args": ["-c", "make > data.db && . data.db"] }),
            json!({ "command": "sh", "args": ["-c", "serve > out.txt data.db"] }),
            json!({ "command": "sh", "args": ["-c", "serve < data.db"] }),
        ];
        let before: Vec<_> = data.iter().map(text).collect();
        fs::write(root.join("data.db").as_path(), "{}").unwrap();
        assert_eq!(data.iter().map(text).collect::<Vec<_>>(), before);
        for script in &scripts {
            assert!(text(script).contains("data.db sha256:"), "{script}");
        }
        let run = json!({ "command": "serve", "env": { "DATA_FILE": "run.py" } });
        fs::write(root.join("run.py").as_path(), "pass").unwrap();
        assert!(text(&run).contains("run.py sha256:"), "a program is one whatever names it");
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            let tool = json!({ "command": "serve", "env": { "STATE": "tool" } });
            fs::write(root.join("tool").as_path(), "text").unwrap();
            assert_eq!(text(&tool), "");
            fs::set_permissions(root.join("tool").as_path(), fs::Permissions::from_mode(0o755)).unwrap();
            assert!(text(&tool).contains("tool sha256:"), "what may be executed is a program");
        }
        fs::write(root.join("data.db").as_path(), [SQLITE, b"rest"].concat()).unwrap();
        assert_eq!(text(&scripts[0]), "", "no interpreter runs a database");
    }

    #[test]
    fn what_a_command_line_runs_is_a_script_also_before_it_is_there() {
        let folder = tempfile::tempdir().unwrap();
        let root = AbsPath::new(folder.path()).unwrap();
        let line = "[ -x .hooks/check ] && FOO=1 .hooks/check notes.txt; bash -e tools/lint > lint.log; test -f package.json";
        let value = json!({ "hooks": [{ "type": "command", "command": line }] });
        let scripts = |is_awaited| {
            let files = named_files(&root, &value);
            let scripts = files.into_iter().filter(|file| file.is_script(is_awaited)).map(|file| file.name);
            scripts.collect::<Vec<_>>()
        };
        assert_eq!(scripts(true), [".hooks/check", "tools/lint"]);
        assert_eq!(scripts(false), [""; 0]);
        for folder in [".hooks", "tools"] {
            fs::create_dir(root.join(folder).as_path()).unwrap();
        }
        for name in [".hooks/check", "tools/lint", "notes.txt", "lint.log", "package.json"] {
            fs::write(root.join(name).as_path(), "").unwrap();
        }
        assert_eq!(scripts(false), [".hooks/check", "tools/lint"]);
        let value = json!({ "command": "python3", "args": ["-u", "tools/lint", "notes.txt"] });
        let files = named_files(&root, &value);
        let scripts: Vec<_> =
            files.iter().filter(|file| file.is_script(false)).map(|file| &file.name).collect();
        assert_eq!(scripts, ["tools/lint"]);
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
