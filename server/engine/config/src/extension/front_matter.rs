//! The front matter of a Markdown file: the text between two lines of `---`.
//!
//! Rule: unknown keys are left alone, and a key of ours with a value that makes no sense is an error that names it.

use serde::Deserialize;
use serde_json::Value;

use crate::agents::DEFAULT_TYPE;
use kode_base::command_shell::CommandShell;
use kode_base::effort::Effort;

/// The front matter of skills and commands.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct FrontMatter {
    pub(super) description: Option<String>,
    pub(super) when_to_use: Option<String>,
    pub(super) argument_hint: Option<String>,
    pub(super) arguments: Vec<String>,
    pub(super) argument_base: Option<usize>,
    pub(super) disable_model_invocation: bool,
    pub(super) user_invocable: bool,
    pub(super) allowed_tools: Vec<String>,
    pub(super) disallowed_tools: Vec<String>,
    pub(super) model: Option<String>,
    pub(super) effort: Option<Effort>,
    /// The type of sub-agent that carries it out, where one does.
    pub(super) agent: Option<String>,
    /// Whether that one is not waited for.
    pub(super) background: bool,
    pub(super) paths: Vec<String>,
    pub(super) shell: CommandShell,
    /// The hooks, as they are written.
    pub(super) hooks: Option<Value>,
    /// The unsupported parts, for people.
    pub(super) notes: Vec<String>,
}

impl Default for FrontMatter {
    fn default() -> Self {
        Self {
            description: None,
            when_to_use: None,
            argument_hint: None,
            arguments: Vec::new(),
            argument_base: None,
            disable_model_invocation: false,
            user_invocable: true,
            allowed_tools: Vec::new(),
            disallowed_tools: Vec::new(),
            model: None,
            effort: None,
            agent: None,
            background: false,
            paths: Vec::new(),
            shell: CommandShell::default(),
            hooks: None,
            notes: Vec::new(),
        }
    }
}

/// The unsupported keys of a skill's or command's front matter, for people.
///
/// # Errors
/// Why the file is left out, for people, as it continues after the file's name.
pub fn notes(head: &str) -> Result<Vec<String>, String> {
    FrontMatter::parse(head).map(|front| front.notes)
}

/// As it is written.
#[derive(Default, Deserialize)]
#[serde(rename_all = "kebab-case", default)]
struct RawFrontMatter {
    description: Option<TextOrList>,
    #[serde(alias = "when_to_use")]
    when_to_use: Option<TextOrList>,
    argument_hint: Option<TextOrList>,
    arguments: Option<TextOrList>,
    argument_base: Option<u8>,
    disable_model_invocation: Option<bool>,
    user_invocable: Option<bool>,
    #[serde(alias = "allowed_tools", alias = "allowedTools")]
    allowed_tools: Option<TextOrList>,
    #[serde(alias = "disallowed_tools", alias = "disallowedTools")]
    disallowed_tools: Option<TextOrList>,
    model: Option<String>,
    effort: Option<String>,
    context: Option<String>,
    agent: Option<String>,
    background: Option<bool>,
    hooks: Option<Value>,
    paths: Option<TextOrList>,
    shell: Option<String>,
}

/// A text, or a list that others write where a text would do.
#[derive(Deserialize)]
#[serde(untagged)]
enum TextOrList {
    One(String),
    Many(Vec<String>),
}

impl TextOrList {
    /// The text; a list is what its notation means to people, `[issue] [priority]`.
    fn shown(self) -> String {
        match self {
            Self::One(text) => text,
            Self::Many(texts) => texts.iter().map(|text| format!("[{text}]")).collect::<Vec<_>>().join(" "),
        }
    }

    fn names(self) -> Vec<String> {
        match self {
            Self::One(text) => text.split_whitespace().map(str::to_owned).collect(),
            Self::Many(texts) => texts,
        }
    }

    /// Rules for tools: a text is split at blanks and commas outside of parentheses.
    fn rules(self) -> Vec<String> {
        match self {
            Self::One(text) => split_rules(&text),
            Self::Many(texts) => texts.into_iter().map(|text| text.trim().to_owned()).collect(),
        }
    }

    /// Patterns of files; a text is split at commas outside of braces.
    fn patterns(self) -> Vec<String> {
        match self {
            Self::One(text) => split_outside(&text, ('{', '}'), |char| char == ','),
            Self::Many(texts) => texts,
        }
    }
}

impl FrontMatter {
    /// Reads a head.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        if text.trim().is_empty() {
            return Ok(Self::default());
        }
        let written: RawFrontMatter = match serde_saphyr::from_str(text) {
            Ok(written) => written,
            // Many files are written by people who know the notation from examples alone.
            Err(error) => serde_saphyr::from_str(&with_quotes(text))
                .map_err(|_| format!("its front matter cannot be read: {error}"))?,
        };
        if written.argument_base.is_some_and(|base| base > 1) {
            return Err("its front matter has an `argument-base` that is neither 0 nor 1".to_owned());
        }
        let mut notes = Vec::new();
        let effort = written.effort.as_deref().and_then(|name| effort(name, &mut notes));
        let agent = agent(&written, &mut notes);
        if agent.is_none() && written.background == Some(true) {
            notes.push("`background` has an effect only beside `context: fork`".to_owned());
        }
        let shell = match written.shell.as_deref().map(str::trim) {
            None | Some("bash") => CommandShell::Bash,
            Some("powershell") => CommandShell::PowerShell,
            Some(other) => {
                return Err(format!("its front matter has a `shell` that is not known: `{other}`"));
            }
        };
        let names = |text: Option<TextOrList>| text.map(TextOrList::names).unwrap_or_default();
        let rules = |text: Option<TextOrList>| text.map(TextOrList::rules).unwrap_or_default();
        Ok(Self {
            description: written.description.map(TextOrList::shown),
            when_to_use: written.when_to_use.map(TextOrList::shown),
            argument_hint: written.argument_hint.map(TextOrList::shown),
            arguments: names(written.arguments),
            argument_base: written.argument_base.map(usize::from),
            disable_model_invocation: written.disable_model_invocation.unwrap_or_default(),
            user_invocable: written.user_invocable.unwrap_or(true),
            allowed_tools: rules(written.allowed_tools),
            disallowed_tools: rules(written.disallowed_tools),
            model: written.model.filter(|model| !matches!(model.trim(), "" | "inherit")),
            effort,
            background: agent.is_some() && written.background == Some(true),
            agent,
            paths: written.paths.map(TextOrList::patterns).unwrap_or_default(),
            shell,
            hooks: written.hooks,
            notes,
        })
    }
}

/// The type of sub-agent that a file wants to be carried out by.
fn agent(written: &RawFrontMatter, notes: &mut Vec<String>) -> Option<String> {
    match written.context.as_deref().map(str::trim) {
        Some("fork") => Some(written.agent.clone().unwrap_or_else(|| DEFAULT_TYPE.to_owned())),
        None | Some("" | "inherit" | "main") => None,
        Some(other) => {
            notes.push(format!("`context` is `{other}`, which means nothing; `fork` is known"));
            None
        }
    }
}

fn effort(name: &str, notes: &mut Vec<String>) -> Option<Effort> {
    match name.trim().to_lowercase().as_str() {
        "low" => Some(Effort::Low),
        "medium" => Some(Effort::Medium),
        "high" | "xhigh" | "max" => Some(Effort::High),
        "" | "inherit" | "auto" => None,
        other => {
            notes.push(format!("`effort` is `{other}`, which is not known; low, medium and high are"));
            None
        }
    }
}

/// Rules for tools in one text: split at blanks and commas outside of parentheses.
pub(crate) fn split_rules(text: &str) -> Vec<String> {
    split_outside(text, ('(', ')'), |char| char == ',' || char.is_whitespace())
}

/// The parts of a text between separators that stand outside of brackets.
fn split_outside(text: &str, (open, close): (char, char), separates: impl Fn(char) -> bool) -> Vec<String> {
    let (mut parts, mut part, mut depth) = (Vec::new(), String::new(), 0_usize);
    for char in text.chars() {
        if char == open {
            depth += 1;
        } else if char == close {
            depth = depth.saturating_sub(1);
        }
        if depth == 0 && char != close && separates(char) {
            parts.push(std::mem::take(&mut part));
        } else {
            part.push(char);
        }
    }
    parts.push(part);
    parts.iter().map(|part| part.trim().to_owned()).filter(|part| !part.is_empty()).collect()
}

/// A head in which plain values are in quotes that mean more to the notation than they do to people:
/// `argument-hint: [issue] [level]`, `description: Fix: all of it`.
fn with_quotes(text: &str) -> String {
    let quoted = |line: &str| {
        let (key, value) = line.split_once(':')?;
        let value = value.trim();
        let is_key =
            !key.is_empty() && key.chars().all(|char| char.is_ascii_alphanumeric() || "-_".contains(char));
        let is_plain = !value.is_empty() && !value.starts_with(['"', '\'', '|', '>', '&', '{']);
        let balanced = value.matches('[').count() == value.matches(']').count();
        let is_one_list = value.starts_with('[') && value.ends_with(']') && value.matches('[').count() == 1;
        let escaped = value.replace('\\', "\\\\").replace('"', "\\\"");
        (is_key && is_plain && balanced && !is_one_list).then(|| format!("{key}: \"{escaped}\""))
    };
    let is_flag = |line: &str| {
        line.ends_with(": true") || line.ends_with(": false") || line.ends_with(char::is_numeric)
    };
    let line = |line: &str| match quoted(line) {
        Some(quoted) if !is_flag(line.trim_end()) => quoted,
        Some(_) | None => line.to_owned(),
    };
    text.lines().map(line).collect::<Vec<_>>().join("\n")
}

/// The head of a file, if it has one, and the rest.
#[must_use]
pub fn split(text: &str) -> (Option<&str>, &str) {
    let first_line = |text: &str| text.split_inclusive('\n').next().map(str::len).unwrap_or_default();
    let begin = first_line(text);
    if text[..begin].trim_end() != "---" {
        return (None, text);
    }
    let mut at = begin;
    while at < text.len() {
        let end = at + first_line(&text[at..]);
        if text[at..end].trim_end() == "---" {
            return (Some(&text[begin..at]), &text[end..]);
        }
        at = end;
    }
    (None, text)
}
