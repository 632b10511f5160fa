//! One type of agent as a Markdown file: what it is in the head between two lines of `---`, its prompt below.
//!
//! Rule: unknown keys are left alone, and a key of ours with a value that makes no sense is an error that names it.

use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};

use serde::Deserialize;

use crate::agents::AgentType;
use crate::extension::front_matter;
use crate::model::Effort;
use crate::permission::Mode;

/// The most bytes of a file.
const MAX_BYTES: u64 = 256 * 1024;

/// The most files of a folder.
const MAX_FILES: usize = 200;

/// So many folders deep files are looked for.
const MAX_DEPTH: usize = 6;

/// The most characters of a name.
const MAX_NAME: usize = 64;

/// As it is written.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Written {
    name: Option<String>,
    description: Option<String>,
    #[serde(default, deserialize_with = "given")]
    tools: Option<Names>,
    #[serde(default, alias = "disallowed-tools")]
    disallowed_tools: Option<Names>,
    model: Option<String>,
    #[serde(rename = "model_name")]
    model_name: Option<String>,
    permission_mode: Option<String>,
    effort: Option<String>,
    #[serde(alias = "max-turns")]
    max_turns: Option<u32>,
}

/// Names as a list or as one text.
#[derive(Deserialize)]
#[serde(untagged)]
enum Names {
    Many(Vec<String>),
    One(String),
}

/// Reads the files of a folder and the folders in it, in the order of their paths.
pub(super) fn read_all(folder: &Path, within: Option<&Path>) -> Vec<(PathBuf, Result<AgentType, String>)> {
    let mut paths = Vec::new();
    collect(folder, 0, &mut paths);
    paths.sort();
    let within = within.map(|folder| folder.canonicalize().unwrap_or_else(|_| folder.to_owned()));
    let read = |path: PathBuf| {
        let agent = read(&path, within.as_deref());
        (path, agent)
    };
    paths.into_iter().map(read).collect()
}

fn collect(folder: &Path, depth: usize, paths: &mut Vec<PathBuf>) {
    // Mostly there is no such folder.
    let Ok(entries) = fs::read_dir(folder) else { return };
    for entry in entries.flatten() {
        let path = entry.path();
        let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
        if is_folder && depth < MAX_DEPTH {
            collect(&path, depth + 1, paths);
        } else if !is_folder && path.extension().is_some_and(|extension| extension == "md") {
            if paths.len() == MAX_FILES {
                tracing::warn!(folder = %folder.display(), "only {MAX_FILES} agent files of a folder are read");
                return;
            }
            paths.push(path);
        }
    }
}

fn read(path: &Path, within: Option<&Path>) -> Result<AgentType, String> {
    let unreadable = |error: std::io::Error| format!("it cannot be read: {error}");
    let real = path.canonicalize().map_err(unreadable)?;
    if within.is_some_and(|folder| !real.starts_with(folder)) {
        return Err(format!("it is a link that leads out of the project, to {}", real.display()));
    }
    if !real.is_file() {
        return Err("it is no file".to_owned());
    }
    let mut text = String::new();
    let read = File::open(&real).and_then(|file| file.take(MAX_BYTES + 1).read_to_string(&mut text));
    let read = read.map_err(unreadable)?;
    if read as u64 > MAX_BYTES {
        return Err(format!("it is longer than {MAX_BYTES} bytes"));
    }
    parse(&text, path)
}

pub(super) fn parse(text: &str, path: &Path) -> Result<AgentType, String> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let (head, body) = front_matter::split(text);
    let head = head.ok_or("it does not begin with a head between two lines of `---`")?;
    let written: Written =
        serde_saphyr::from_str(head).map_err(|error| format!("its head cannot be read: {error}"))?;
    let name = written.name.map(|name| name.trim().to_owned()).filter(|name| !name.is_empty());
    let name = name.ok_or("its head has no `name`")?;
    if name.chars().count() > MAX_NAME
        || name.contains(|char: char| char.is_control() || char.is_whitespace())
    {
        return Err(format!("its `name` has blanks or more than {MAX_NAME} characters"));
    }
    let description = written.description.map(|text| text.replace("\\n", "\n")).unwrap_or_default();
    if description.trim().is_empty() {
        return Err("its head has no `description`".to_owned());
    }
    let tools = written.tools.map(Names::tools);
    let is_all = |tools: &Vec<String>| tools.iter().any(|tool| tool == "*");
    let model = written.model_name.or(written.model).map(|model| model.trim().to_owned());
    Ok(AgentType {
        name,
        description: description.trim().to_owned(),
        prompt: body.trim().to_owned(),
        tools: tools.filter(|tools| !is_all(tools)),
        disallowed_tools: written.disallowed_tools.map(Names::tools).unwrap_or_default(),
        model: model.filter(|model| !model.is_empty() && model != "inherit"),
        mode: written.permission_mode.as_deref().map(mode).transpose()?,
        effort: match &written.effort {
            Some(name) => effort(name.trim())?,
            None => None,
        },
        max_turns: written.max_turns.map(|turns| turns.max(1)),
        file: Some(path.to_owned()),
    })
}

/// A key that stands there with nothing after it is an empty list, not a key left out.
fn given<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Option<Names>, D::Error> {
    let names: Option<Names> = Option::deserialize(deserializer)?;
    Ok(Some(names.unwrap_or(Names::Many(Vec::new()))))
}

fn mode(name: &str) -> Result<Mode, String> {
    match name {
        "delegate" => Ok(Mode::Default),
        name => Mode::parse(name).ok_or_else(|| {
            let known: Vec<_> = Mode::ALL.iter().map(|mode| mode.name()).collect();
            format!("its `permissionMode` is `{name}` and not one of {}", known.join(", "))
        }),
    }
}

/// Other agents know levels above `high`; it is the highest there is here.
fn effort(name: &str) -> Result<Option<Effort>, String> {
    match name.to_lowercase().as_str() {
        "low" => Ok(Some(Effort::Low)),
        "medium" => Ok(Some(Effort::Medium)),
        "high" | "xhigh" | "max" => Ok(Some(Effort::High)),
        "" | "auto" | "inherit" => Ok(None),
        _ => Err(format!("its `effort` is `{name}` and not one of low, medium, high")),
    }
}

impl Names {
    /// The names of tools. What a rule adds in parentheses limits nothing here: the gate judges every call anyway.
    fn tools(self) -> Vec<String> {
        let written = match self {
            Self::Many(names) => names,
            Self::One(text) => separate(&text),
        };
        let name = |written: String| match written.trim().split_once('(') {
            Some((name, _)) => name.trim().to_owned(),
            None => written.trim().to_owned(),
        };
        let mut names: Vec<String> = Vec::new();
        for name in written.into_iter().map(name).filter(|name| !name.is_empty()) {
            if !names.contains(&name) {
                names.push(name);
            }
        }
        names
    }
}

/// Splits at commas and blanks that are in no parentheses.
fn separate(text: &str) -> Vec<String> {
    let mut depth = 0_usize;
    let parts = text.split(|char: char| {
        match char {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            _ => {}
        }
        depth == 0 && (char == ',' || char.is_whitespace())
    });
    parts.map(str::to_owned).collect()
}
