//! Which calls and moments a group of hooks is for.
//!
//! Rule: a matcher is compiled once, when the settings are read, and matching never takes longer than its limit of steps.
//! Where it cannot be said whether one matches, it does: a guard that runs in vain is better than one that does not run.

use fancy_regex::{Regex, RegexBuilder};
use globset::{Glob, GlobSet};
use serde_json::Value;

use crate::hooks::config::{HookCondition, PatternBase};
use kode_permission::gate::GateCase;
use kode_permission::rules::names;
use kode_text::workspace::Workspace;

/// Maximum backtracking steps of a regular expression.
const MAX_STEPS: usize = 100_000;

/// The longest matcher, in bytes.
const MAX_LENGTH: usize = 4_096;

/// The arguments that name what a call works on.
const PATHS: [&str; 3] = ["file_path", "notebook_path", "path"];

/// Which values of an event are meant.
#[derive(Debug)]
pub(super) enum Matcher {
    /// All of them.
    Always,
    /// These, exactly.
    Names(Vec<String>),
    /// The texts in which this is found; `is_negative` when it looks for a missing text.
    Regex { regex: Box<Regex>, is_negative: bool },
    /// The texts that this covers from end to end.
    Glob(GlobSet),
    /// Calls that a permission rule refers to.
    Call(Box<HookCondition>),
    /// Calls of tools, on paths and with commands; an absent part matches any.
    Parts { tools: Vec<Matcher>, paths: Vec<PathGlob>, commands: Vec<Matcher> },
}

/// The matched value.
#[derive(Clone, Copy)]
pub struct MatchSubject<'a> {
    /// The value of the event: the name of a tool, a source, a reason, a type. Events without one match always.
    pub value: Option<&'a str>,
    /// The call, for events about one.
    pub call: Option<&'a GateCase<'a>>,
    /// The workspace that paths are relative to.
    pub workspace: &'a Workspace,
}

impl Matcher {
    /// Reads a matcher. `is_glob_dialect`: in files of an agent that writes globs, a `*` after a name is one.
    ///
    /// # Errors
    /// Its problems, for people.
    pub(super) fn parse(
        value: Option<&Value>,
        is_glob_dialect: bool,
        anchor: PatternBase<'_>,
    ) -> Result<Self, String> {
        match value {
            None | Some(Value::Null) => Ok(Self::Always),
            Some(Value::String(text)) => Self::of_text(text.trim(), is_glob_dialect, anchor),
            Some(Value::Object(parts)) => {
                if let Some(unknown) =
                    parts.keys().find(|key| !["tools", "paths", "commands"].contains(&key.as_str()))
                {
                    return Err(format!(
                        "`{unknown}` is no part of a matcher; write tools, paths or commands"
                    ));
                }
                let list = |name: &str| texts(parts.get(name), name);
                let matchers = |texts: Vec<String>| {
                    texts.iter().map(|text| Self::of_text(text, true, anchor)).collect::<Result<Vec<_>, _>>()
                };
                let paths =
                    list("paths")?.iter().map(|text| PathGlob::new(text)).collect::<Result<_, _>>()?;
                Ok(Self::Parts {
                    tools: matchers(list("tools")?)?,
                    paths,
                    commands: matchers(list("commands")?)?,
                })
            }
            Some(_) => Err("a matcher is a text, or an object of tools, paths and commands".to_owned()),
        }
    }

    fn of_text(text: &str, is_glob_dialect: bool, anchor: PatternBase<'_>) -> Result<Self, String> {
        if text.len() > MAX_LENGTH {
            return Err(format!("a matcher has at most {MAX_LENGTH} bytes"));
        }
        if matches!(text, "" | "*" | "all") {
            return Ok(Self::Always);
        }
        let is_plain = |char: char| char.is_ascii_alphanumeric() || "_- ,|".contains(char);
        if text.chars().all(is_plain) {
            let names = text.split([',', '|']).map(str::trim).filter(|name| !name.is_empty());
            return Ok(Self::Names(names.map(str::to_owned).collect()));
        }
        if let Some((tool, _)) = text.split_once('(')
            && text.ends_with(')')
            && names::is_built_in(tool)
        {
            return Ok(Self::Call(Box::new(HookCondition::parse(text, anchor)?)));
        }
        if is_glob_dialect && has_bare_star(text) {
            return Ok(Self::Glob(glob(text)?));
        }
        match RegexBuilder::new(text).backtrack_limit(MAX_STEPS).build() {
            Ok(regex) => Ok(Self::Regex {
                regex: Box::new(regex),
                is_negative: text.contains("(?!") || text.contains("(?<!"),
            }),
            Err(_) if has_bare_star(text) => Ok(Self::Glob(glob(text)?)),
            Err(error) => Err(format!("`{text}` is no regular expression: {error}")),
        }
    }

    /// Whether it means this.
    pub(super) fn matches(&self, subject: MatchSubject<'_>) -> bool {
        let Some(value) = subject.value else { return true };
        match self {
            Self::Call(condition) => subject.call.is_none_or(|call| condition.holds(call, subject.workspace)),
            Self::Parts { tools, paths, commands } => {
                let is_tool = tools.is_empty() || tools.iter().any(|tool| tool.matches(subject));
                let Some(call) = subject.call else { return is_tool };
                let path = PATHS.iter().find_map(|name| call.input.get(name)?.as_str());
                let is_path = paths.is_empty()
                    || path.is_some_and(|path| paths.iter().any(|glob| glob.covers(path, subject.workspace)));
                let command = call.input.get("command").and_then(Value::as_str);
                let is_command = commands.is_empty()
                    || command
                        .is_some_and(|command| commands.iter().any(|wanted| wanted.is_of_text(command)));
                is_tool && is_path && is_command
            }
            Self::Always | Self::Names(_) | Self::Regex { .. } | Self::Glob(_) => {
                self.is_of_names(value, subject.call.is_some())
            }
        }
    }

    /// Whether it means a value, by whichever of its names; only tools have several.
    fn is_of_names(&self, value: &str, is_tool: bool) -> bool {
        let aliases = || names::all_names(value).filter(|_| is_tool);
        match self {
            Self::Names(wanted) if is_tool => {
                wanted.iter().any(|wanted| names::canonical(wanted) == names::canonical(value))
            }
            // A tool that one of its names leaves out is left out.
            Self::Regex { is_negative: true, .. } => {
                self.is_of_text(value) && aliases().all(|name| self.is_of_text(name))
            }
            _ => self.is_of_text(value) || aliases().any(|name| self.is_of_text(name)),
        }
    }

    fn is_of_text(&self, text: &str) -> bool {
        match self {
            Self::Always => true,
            Self::Names(names) => names.iter().any(|name| name == text),
            Self::Regex { regex, .. } => regex.is_match(text).unwrap_or_else(|error| {
                tracing::warn!(regex = regex.as_str(), %error, "the matcher of a hook was given up; the hook runs");
                true
            }),
            Self::Glob(glob) => glob.is_match(text),
            Self::Call(_) | Self::Parts { .. } => false,
        }
    }
}

/// Whether a `*` is where a regular expression would have nothing, or one character, to repeat.
fn has_bare_star(text: &str) -> bool {
    let mut before = None;
    text.chars().any(|char| {
        let is_bare = char == '*' && !matches!(before, Some('.' | ')' | ']' | '}' | '\\'));
        before = Some(char);
        is_bare
    })
}

fn glob(text: &str) -> Result<GlobSet, String> {
    // One glob alone is compiled in a way that panics where it is too large.
    Glob::new(text)
        .and_then(|glob| GlobSet::builder().add(glob).build())
        .map_err(|error| format!("`{text}` is no glob: {error}"))
}

/// A glob for paths.
#[derive(Clone, Debug)]
pub(super) struct PathGlob {
    glob: GlobSet,
    /// Whether it can cover a path by its last part alone.
    is_name: bool,
}

impl PathGlob {
    fn new(text: &str) -> Result<Self, String> {
        Ok(Self { glob: glob(text)?, is_name: !text.contains('/') })
    }

    /// Whether it covers a path as it is named, as it is in the workspace, or by its name alone.
    fn covers(&self, path: &str, workspace: &Workspace) -> bool {
        let shown = workspace.resolve(path).ok().map(|target| workspace.display(&target));
        self.glob.is_match(path)
            || shown.is_some_and(|shown| self.glob.is_match(&shown))
            || (self.is_name && path.rsplit('/').next().is_some_and(|name| self.glob.is_match(name)))
    }
}

fn texts(value: Option<&Value>, name: &str) -> Result<Vec<String>, String> {
    let wrong = || format!("`{name}` of a matcher is a text or a list of texts");
    match value {
        None | Some(Value::Null) => Ok(Vec::new()),
        Some(Value::String(text)) => Ok(vec![text.clone()]),
        Some(Value::Array(list)) => {
            list.iter().map(|text| text.as_str().map(str::to_owned).ok_or_else(wrong)).collect()
        }
        Some(_) => Err(wrong()),
    }
}

#[cfg(test)]
mod tests;
