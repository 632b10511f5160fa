//! What users add to the agent with files: skills and commands, found in the folders of this agent and of others.
//!
//! Rule: a broken file is reported and left out alone; only the head of a file is kept, its text is read when it is
//! used; nothing of it runs.

pub mod arguments;
pub(crate) mod front_matter;
pub mod live;
pub mod places;
pub(crate) mod problem;
pub mod report;
mod survey;
mod watch;

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use crate::paths::AbsPath;
use crate::workspace::blocking;
use front_matter::FrontMatter;

/// The folders, beside the workspace's files and in the user's home, that are looked into; the first wins.
pub(crate) const FOLDERS: [&str; 4] = [".kode-ls", ".kode", ".claude", ".blade"];

/// The most bytes of a skill or command.
const MAX_BYTES: u64 = 256 * 1024;

/// The most skills and the most commands of one folder.
const MAX_ENTRIES: usize = 200;

/// So many folders deep commands are looked for.
const MAX_DEPTH: usize = 6;

/// The most characters of one entry in the list that the model reads.
const MAX_LISTED: usize = 1536;

/// The most characters of the whole list that the model reads.
const MAX_LIST: usize = 16_000;

/// The most characters of a skill's name.
const MAX_NAME: usize = 64;

/// Whether an addition is used by the model when it fits, or written for the user to call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ExtensionKind {
    /// `skills/<name>/SKILL.md`.
    Skill,
    /// `commands/**/*.md`.
    Command,
}

/// A skill or command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Extension {
    /// Which of them it is.
    pub kind: ExtensionKind,
    /// What it is called by.
    pub name: String,
    /// What it does and when to use it, for the model; one text, bounded.
    pub listing: String,
    /// What it takes, for people; may be empty.
    pub argument_hint: String,
    /// The names of its arguments by position.
    pub argument_names: Vec<String>,
    /// The number of the first argument where `$0` and `$1` count.
    argument_base: Option<usize>,
    /// Whether the model may use it by itself.
    pub model_may_call: bool,
    /// The file.
    pub path: AbsPath,
    /// The folder that its relative paths mean.
    pub folder: AbsPath,
}

/// The skills and commands of a workspace and its user.
#[derive(Clone, Debug, Default)]
pub struct Catalog {
    skills: BTreeMap<String, Extension>,
    commands: BTreeMap<String, Extension>,
    /// What was left out and why: file and reason.
    pub problems: Vec<(PathBuf, String)>,
}

impl Catalog {
    /// Looks for what there is in these workspace folders and in the user's home.
    pub async fn of(roots: Vec<AbsPath>) -> Self {
        blocking(move || {
            let home = std::env::home_dir().and_then(|home| AbsPath::new(home).ok());
            Self::load(&roots, home.as_ref())
        })
        .await
    }

    /// Looks for what there is in these workspace folders and this home. A skill of the user wins over one of the
    /// project, a command of the project over one of the user.
    #[must_use]
    pub fn load(roots: &[AbsPath], home: Option<&AbsPath>) -> Self {
        let mut catalog = Self::default();
        let home: Vec<_> = home.cloned().into_iter().collect();
        for root in home.iter().chain(roots) {
            for folder in FOLDERS {
                catalog.find_skills(root, &root.join(folder).join("skills"));
            }
        }
        for root in roots.iter().chain(&home) {
            for folder in FOLDERS {
                // There the folders are a name space for people, and the name is that of the file.
                let by_file_name = folder == ".blade";
                let top = root.join(folder).join("commands");
                catalog.find_commands(root, &top, &mut Vec::new(), by_file_name);
            }
        }
        for (path, reason) in &catalog.problems {
            tracing::warn!(path = %path.display(), %reason, "a skill or command is left out");
        }
        catalog
    }

    /// The skill or command of that name; what is looked for first wins.
    #[must_use]
    pub fn find(&self, first: ExtensionKind, name: &str) -> Option<&Extension> {
        let (skill, command) = (self.skills.get(name), self.commands.get(name));
        match first {
            ExtensionKind::Skill => skill.or(command),
            ExtensionKind::Command => command.or(skill),
        }
    }

    /// The names nearest to one that there is not, best first.
    #[must_use]
    pub fn nearest(&self, name: &str) -> Vec<&str> {
        const MOST: usize = 3;
        const LIKENESS: f32 = 0.5;
        let names: Vec<&str> = self.callable().map(|extension| extension.name.as_str()).collect();
        similar::get_close_matches(name, &names, MOST, LIKENESS)
    }

    /// The list that the model reads of one kind; `None` when there is nothing it may use.
    #[must_use]
    pub fn listing(&self, kind: ExtensionKind) -> Option<String> {
        let of_kind: Vec<_> = self.callable().filter(|extension| extension.kind == kind).collect();
        let (mut text, mut listed) = (String::new(), 0);
        for extension in &of_kind {
            let hint = match extension.argument_hint.as_str() {
                "" => String::new(),
                hint => format!(" {hint}"),
            };
            let line = format!("- {}{hint}: {}\n", extension.name, extension.listing);
            if text.chars().count() + line.chars().count() > MAX_LIST {
                break;
            }
            text.push_str(&line);
            listed += 1;
        }
        if listed < of_kind.len() {
            let more: Vec<_> = of_kind[listed..].iter().map(|extension| extension.name.as_str()).collect();
            text.push_str(&format!("- and, without room to describe them: {}\n", more.join(", ")));
        }
        (!of_kind.is_empty()).then_some(text)
    }

    /// Whether there is nothing the model may use.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.callable().next().is_none()
    }

    /// All of them, for the user.
    pub fn all(&self) -> impl Iterator<Item = &Extension> {
        self.skills.values().chain(self.commands.values())
    }

    fn callable(&self) -> impl Iterator<Item = &Extension> {
        self.skills.values().chain(self.commands.values()).filter(|extension| extension.model_may_call)
    }

    fn find_skills(&mut self, root: &AbsPath, top: &AbsPath) {
        for name in entries(top).into_iter().take(MAX_ENTRIES) {
            let folder = top.join(&name);
            let path = folder.join("SKILL.md");
            if !path.as_path().is_file() {
                continue;
            }
            if !is_skill_name(&name) {
                let reason = "its folder's name is not 1 to 64 lower-case letters, digits and hyphens";
                self.problems.push((path.as_path().to_path_buf(), reason.to_owned()));
                continue;
            }
            self.add(root, ExtensionKind::Skill, name, path, folder);
        }
    }

    fn find_commands(
        &mut self,
        root: &AbsPath,
        folder: &AbsPath,
        above: &mut Vec<String>,
        by_file_name: bool,
    ) {
        if above.len() > MAX_DEPTH {
            return;
        }
        for name in entries(folder).into_iter().take(MAX_ENTRIES) {
            let path = folder.join(&name);
            if let Some(stem) = name.strip_suffix(".md").filter(|_| path.as_path().is_file()) {
                let mut parts = if by_file_name { Vec::new() } else { above.clone() };
                parts.push(stem.to_owned());
                let folder = folder.clone();
                self.add(root, ExtensionKind::Command, parts.join(":"), path, folder);
            } else if fs::symlink_metadata(path.as_path()).is_ok_and(|metadata| metadata.is_dir()) {
                above.push(name);
                self.find_commands(root, &path, above, by_file_name);
                above.pop();
            }
        }
    }

    fn add(&mut self, root: &AbsPath, kind: ExtensionKind, name: String, path: AbsPath, folder: AbsPath) {
        let known = match kind {
            ExtensionKind::Skill => &mut self.skills,
            ExtensionKind::Command => &mut self.commands,
        };
        if known.contains_key(&name) || known.len() >= MAX_ENTRIES {
            return;
        }
        match read_within(root, &path).and_then(|text| head(kind, &name, &text, &path, &folder)) {
            Ok(extension) => drop(known.insert(name, extension)),
            Err(reason) => self.problems.push((path.as_path().to_path_buf(), reason)),
        }
    }
}

impl Extension {
    /// The text for the model, with the arguments in it.
    ///
    /// # Errors
    /// Why there is none: the file is gone or too large, or has commands that would have to run first.
    pub fn text(&self, arguments: &str, project: &AbsPath) -> Result<String, String> {
        let whole = read(&self.path)?;
        let (_, body) = front_matter::split(&whole);
        if let Some(command) = arguments::embedded_command(body) {
            return Err(format!(
                "{} has a command that would have to run first (`!` and `{command}`); this version runs none",
                self.path
            ));
        }
        let folders = [
            ("${CLAUDE_SKILL_DIR}", self.folder.to_string()),
            ("${CLAUDE_PROJECT_DIR}", project.to_string()),
        ];
        let body = folders.iter().fold(body.to_owned(), |body, (name, value)| body.replace(name, value));
        let base = self.argument_base.unwrap_or_else(|| self.usual_base(&body));
        Ok(arguments::fill(body.trim(), arguments, base, &self.argument_names))
    }

    /// Files that count from 0 show it; else skills count from 0 and commands from 1.
    fn usual_base(&self, body: &str) -> usize {
        let shows_zero = body.contains("$0") || body.contains("$ARGUMENTS[");
        match self.kind {
            ExtensionKind::Command if !shows_zero => 1,
            ExtensionKind::Command | ExtensionKind::Skill => 0,
        }
    }
}

/// The names in a folder, sorted; none when it cannot be read.
fn entries(folder: &AbsPath) -> Vec<String> {
    let Ok(read) = fs::read_dir(folder.as_path()) else { return Vec::new() };
    let mut names: Vec<String> =
        read.flatten().filter_map(|entry| entry.file_name().into_string().ok()).collect();
    names.sort();
    names
}

fn is_skill_name(name: &str) -> bool {
    let fits = |char: char| char.is_ascii_lowercase() || char.is_ascii_digit() || char == '-';
    (1..=MAX_NAME).contains(&name.len()) && name.chars().all(fits)
}

/// A file of a project must not lead out of it: its text reaches the model.
fn read_within(root: &AbsPath, path: &AbsPath) -> Result<String, String> {
    let real = |path: &Path| fs::canonicalize(path).map_err(|error| error.to_string());
    if !real(path.as_path())?.starts_with(real(root.as_path())?) {
        return Err(format!("it leads out of {root}"));
    }
    read(path)
}

fn read(path: &AbsPath) -> Result<String, String> {
    let read = || -> io::Result<String> {
        let mut text = String::new();
        File::open(path.as_path())?.take(MAX_BYTES + 1).read_to_string(&mut text)?;
        Ok(text)
    };
    match read() {
        Ok(text) if text.len() as u64 > MAX_BYTES => Err(format!("it is larger than {MAX_BYTES} bytes")),
        Ok(text) => Ok(text.strip_prefix('\u{feff}').map(str::to_owned).unwrap_or(text)),
        Err(error) => Err(format!("{path} cannot be read: {error}")),
    }
}

fn head(
    kind: ExtensionKind,
    name: &str,
    text: &str,
    path: &AbsPath,
    folder: &AbsPath,
) -> Result<Extension, String> {
    let (front, body) = front_matter::split(text);
    let front = front.map(FrontMatter::parse).transpose()?.unwrap_or_default();
    let described = front.description.filter(|text| !text.trim().is_empty());
    let description = described.unwrap_or_else(|| first_paragraph(body));
    let listing = match front.when_to_use {
        Some(when) => format!("{} {}", description.trim(), when.trim()),
        None => description.trim().to_owned(),
    };
    // A list of one line each: what stands in a file must not be able to begin a line of its own.
    let listing: String = listing.split_whitespace().collect::<Vec<_>>().join(" ");
    Ok(Extension {
        kind,
        name: name.to_owned(),
        listing: listing.chars().take(MAX_LISTED).collect(),
        argument_hint: front.argument_hint.unwrap_or_default().replace(char::is_control, " "),
        argument_names: front.arguments,
        argument_base: front.argument_base,
        model_may_call: !front.disable_model_invocation,
        path: path.clone(),
        folder: folder.clone(),
    })
}

fn first_paragraph(body: &str) -> String {
    let lines = body.trim().lines().skip_while(|line| line.starts_with('#') || line.trim().is_empty());
    lines.take_while(|line| !line.trim().is_empty()).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests;
