//! One permission rule: `Tool` or `Tool(specifier)`.
//!
//! Rule: printing a rule and reading it again gives the same rule. What a rule means is settled when it is read; a text
//! that means nothing is an error that says what to write instead, because an unreadable rule protects nothing.

use std::fmt;
use std::str::FromStr;

use super::Behavior;
use super::host::{BadHost, HostPattern};
use super::names::{self, MCP_PREFIX, SpecifierKind};
use super::path::{BadPath, PathPattern};
use kode_base::command_shell::CommandShell;
use kode_command::{BadPattern, CommandPattern};

/// How long a rule may be, in bytes.
const MAX_LENGTH: usize = 16 << 10;

/// A rule: a tool, or some of what a tool can do.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Rule {
    tool: String,
    specifier: Option<Specifier>,
}

/// The calls of a tool that a rule refers to: the text in its parentheses.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Specifier {
    /// Commands.
    Command(CommandPattern),
    /// Paths.
    Path(PathPattern),
    /// Hosts that are fetched from.
    Domain(HostPattern),
    /// An agent, a skill or a command.
    Name(NamePattern),
    /// Calls with such an argument; in deny and ask only.
    Parameter {
        /// The parameter's name.
        name: String,
        /// Its value; a `*` represents any text.
        value: String,
    },
}

/// The name of an agent, a skill or a command.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum NamePattern {
    /// `*`: all of them.
    All,
    /// This one, without arguments.
    Exactly(String),
    /// `name *`: this one, whatever its arguments.
    WithArguments(String),
}

/// Something about a rule that holds, but not quite as it is written.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RuleNote {
    /// Path rules are written for `Read` or `Edit`.
    #[error("paths are judged by the operation, so this is treated as `{0}`; write that")]
    TakenFor(Rule),
    /// No tool of that name is known.
    #[error("no tool is called `{name}`{}", .similar.map(|known| format!("; did you mean `{known}`?")).unwrap_or_default())]
    UnknownTool {
        /// The name.
        name: String,
        /// A tool that may have been meant.
        similar: Option<&'static str>,
    },
}

/// Why a text is no rule, or not one of this behavior.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RuleError {
    /// There is nothing in it.
    #[error("the rule is empty; write a tool's name, as in `Read` or `Bash(git status)`")]
    Empty,
    /// It is longer than any rule.
    #[error("the rule is longer than {MAX_LENGTH} bytes; write several")]
    TooLong,
    /// The text before the parentheses is no name.
    #[error("`{0}` is no tool name; write a name of letters, digits, `_` and `-` right before the `(`")]
    Name(String),
    /// No `)` at the end.
    #[error("the `(` is not closed; write `)` as the last character of the rule")]
    Unclosed,
    /// A `)` without `(`.
    #[error("there is a `)` but no `(`; write `Tool(…)` or the tool's name alone")]
    Unopened,
    /// Nothing in the parentheses.
    #[error("there is nothing in the parentheses; write `{0}` alone for everything it does")]
    EmptySpecifier(String),
    /// The tool takes no text in parentheses.
    #[error(
        "`{tool}` takes nothing in parentheses but `parameter:value`; write `{tool}` alone, or one of those"
    )]
    NoSpecifier {
        /// The tool.
        tool: String,
    },
    /// MCP tools are named in full.
    #[error(
        "MCP tools take nothing in parentheses but `parameter:value`; write `{0}`, or `mcp__server__*` for all of a server"
    )]
    McpSpecifier(String),
    /// Fetches are judged by host.
    #[error("`{0}` is not understood; write `WebFetch(domain:example.com)`")]
    NoDomain(String),
    /// Some arguments of a skill or a command.
    #[error("`{name}` has a blank in it; write `{tool}({first} *)` for all arguments")]
    Arguments {
        /// The tool.
        tool: String,
        /// The text in the parentheses.
        name: String,
        /// The text before the blank.
        first: String,
    },
    /// An unknown tool, with a text of unknown meaning.
    #[error("no tool is called `{name}`, so this rule does nothing{}", .similar.map(|known| format!("; did you mean `{known}`?")).unwrap_or_default())]
    UnknownTool {
        /// The name.
        name: String,
        /// A tool that may have been meant.
        similar: Option<&'static str>,
    },
    /// The command is invalid.
    #[error(transparent)]
    Command(#[from] BadPattern),
    /// The path is invalid.
    #[error(transparent)]
    Path(#[from] BadPath),
    /// The host is invalid.
    #[error(transparent)]
    Host(#[from] BadHost),
    /// A `*` in a tool's name with parentheses behind it.
    #[error("a name with `*` takes nothing in parentheses; write `{0}` alone")]
    WildcardSpecifier(String),
    /// An allow rule for unnamed tools.
    #[error(
        "a `*` in a tool's name may only allow tools of one MCP server; write `mcp__server__*`, or name the tools"
    )]
    WildcardAllow,
    /// A yes by argument.
    #[error(
        "`{0}` can only deny or ask, because a call may do more than one argument says; allow the tool, a path or a command"
    )]
    ParameterAllow(String),
}

impl RuleError {
    /// Whether the rule refers to a tool that is not there, so that nothing is left unprotected by ignoring it.
    #[must_use]
    pub fn is_about_unknown_tool(&self) -> bool {
        matches!(self, Self::UnknownTool { .. })
    }
}

impl Rule {
    /// Reads a rule, and tells what about it is not quite as it is written.
    ///
    /// # Errors
    /// [`RuleError`], which says what to write instead.
    pub fn parse(text: &str) -> Result<(Self, Option<RuleNote>), RuleError> {
        let text = text.trim();
        if text.is_empty() {
            return Err(RuleError::Empty);
        }
        if text.len() > MAX_LENGTH {
            return Err(RuleError::TooLong);
        }
        let Some((written, rest)) = text.split_once('(') else {
            return if text.contains(')') { Err(RuleError::Unopened) } else { bare(text) };
        };
        check_name(written)?;
        let Some(inside) = rest.strip_suffix(')') else { return Err(RuleError::Unclosed) };
        let tool = names::canonical(written);
        if inside.trim().is_empty() {
            return Err(RuleError::EmptySpecifier(tool.to_owned()));
        }
        if tool.contains('*') {
            return Err(RuleError::WildcardSpecifier(tool.to_owned()));
        }
        specified(tool, &unescape(inside))
    }

    /// The rule of everything a tool does.
    #[must_use]
    pub fn tool_alone(tool: &str) -> Self {
        Self { tool: names::canonical(tool).to_owned(), specifier: None }
    }

    /// The rule of some commands.
    #[must_use]
    pub fn command(pattern: CommandPattern) -> Self {
        Self { tool: "Bash".to_owned(), specifier: Some(Specifier::Command(pattern)) }
    }

    /// The rule of reading some paths.
    #[must_use]
    pub fn read(pattern: PathPattern) -> Self {
        Self { tool: "Read".to_owned(), specifier: Some(Specifier::Path(pattern)) }
    }

    /// The rule of changing some paths.
    #[must_use]
    pub fn edit(pattern: PathPattern) -> Self {
        Self { tool: "Edit".to_owned(), specifier: Some(Specifier::Path(pattern)) }
    }

    /// The rule of fetching from some hosts.
    #[must_use]
    pub fn fetch(pattern: HostPattern) -> Self {
        Self { tool: "WebFetch".to_owned(), specifier: Some(Specifier::Domain(pattern)) }
    }

    /// The tool's canonical name, which may hold `*`.
    #[must_use]
    pub fn tool(&self) -> &str {
        &self.tool
    }

    /// The calls of the tool that it refers to; `None` for all.
    #[must_use]
    pub fn specifier(&self) -> Option<&Specifier> {
        self.specifier.as_ref()
    }

    /// Whether a rule may have this behavior.
    ///
    /// # Errors
    /// [`RuleError`] for one that may deny and ask, but not allow.
    pub fn check(&self, behavior: Behavior) -> Result<(), RuleError> {
        if behavior != Behavior::Allow {
            return Ok(());
        }
        if let Some(Specifier::Parameter { .. }) = self.specifier {
            return Err(RuleError::ParameterAllow(self.to_string()));
        }
        let server = self.tool.strip_prefix(MCP_PREFIX).and_then(|rest| rest.split_once("__"));
        let is_of_one_server = server.is_some_and(|(server, _)| !server.is_empty() && !server.contains('*'));
        if self.tool.contains('*') && !is_of_one_server { Err(RuleError::WildcardAllow) } else { Ok(()) }
    }
}

impl FromStr for Rule {
    type Err = RuleError;

    fn from_str(text: &str) -> Result<Self, RuleError> {
        Self::parse(text).map(|(rule, _)| rule)
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.specifier {
            None => formatter.write_str(&self.tool),
            Some(specifier) => write!(formatter, "{}({})", self.tool, escape(&specifier.to_string())),
        }
    }
}

impl fmt::Display for Specifier {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Command(pattern) => pattern.fmt(formatter),
            Self::Path(pattern) => pattern.fmt(formatter),
            Self::Domain(pattern) => write!(formatter, "domain:{pattern}"),
            Self::Name(pattern) => pattern.fmt(formatter),
            Self::Parameter { name, value } => write!(formatter, "{name}:{value}"),
        }
    }
}

impl fmt::Display for NamePattern {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::All => formatter.write_str("*"),
            Self::Exactly(name) => formatter.write_str(name),
            Self::WithArguments(name) => write!(formatter, "{name} *"),
        }
    }
}

fn bare(text: &str) -> Result<(Rule, Option<RuleNote>), RuleError> {
    // An old form of such keys: `SlashCommand:/name`, and `SlashCommand:/name:*` for any arguments.
    if let Some(name) = text.strip_prefix("SlashCommand:") {
        let name = match name.strip_suffix(":*") {
            Some(name) => format!("{name} *"),
            None => name.to_owned(),
        };
        return specified("SlashCommand", &name);
    }
    check_name(text)?;
    let tool = names::canonical(text);
    let is_known = names::is_built_in(tool) || names::is_mcp(tool) || tool.contains('*');
    let note =
        (!is_known).then(|| RuleNote::UnknownTool { name: tool.to_owned(), similar: names::similar(tool) });
    Ok((Rule { tool: tool.to_owned(), specifier: None }, note))
}

fn specified(tool: &str, text: &str) -> Result<(Rule, Option<RuleNote>), RuleError> {
    let rule = |tool: &str, specifier| Rule { tool: tool.to_owned(), specifier: Some(specifier) };
    if let Some(parameter) = parameter(tool, text) {
        let is_known = names::is_built_in(tool) || names::is_mcp(tool);
        let note = (!is_known)
            .then(|| RuleNote::UnknownTool { name: tool.to_owned(), similar: names::similar(tool) });
        return Ok((rule(tool, parameter), note));
    }
    let Some(takes) = names::takes(tool) else {
        return Err(if names::is_mcp(tool) {
            RuleError::McpSpecifier(tool.to_owned())
        } else {
            RuleError::UnknownTool { name: tool.to_owned(), similar: names::similar(tool) }
        });
    };
    let path = |judged_as: &str| {
        let made = rule(judged_as, Specifier::Path(text.parse()?));
        let note = (tool != judged_as).then(|| RuleNote::TakenFor(made.clone()));
        Ok((made, note))
    };
    match takes {
        SpecifierKind::Nothing => Err(RuleError::NoSpecifier { tool: tool.to_owned() }),
        SpecifierKind::Command => {
            let pattern = match CommandShell::of_tool(tool) {
                Some(CommandShell::PowerShell) => CommandPattern::of_powershell(text)?,
                Some(CommandShell::Bash) | None => text.parse()?,
            };
            Ok((rule(tool, Specifier::Command(pattern)), None))
        }
        SpecifierKind::ReadPath => path("Read"),
        SpecifierKind::WritePath => path("Edit"),
        SpecifierKind::Domain => match text.strip_prefix("domain:") {
            Some(host) => Ok((rule(tool, Specifier::Domain(host.trim().parse()?)), None)),
            None => Err(RuleError::NoDomain(text.to_owned())),
        },
        SpecifierKind::Name => Ok((rule(tool, Specifier::Name(name_pattern(tool, text)?)), None)),
    }
}

/// `parameter:value`, where the tool has a parameter of that name. Of `Bash`, only those count that no program is
/// called by, so that `Bash(timeout:*)` stays the command; a file called `limit:5` is `./limit:5`.
fn parameter(tool: &str, text: &str) -> Option<Specifier> {
    let (name, value) = text.split_once(':')?;
    let is_letter = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '_' | '-');
    let is_name = !name.is_empty() && name.chars().all(is_letter);
    (is_name && names::has_parameter(tool, name))
        .then(|| Specifier::Parameter { name: name.to_owned(), value: value.to_owned() })
}

fn name_pattern(tool: &str, text: &str) -> Result<NamePattern, RuleError> {
    let text = text.trim();
    if text == "*" {
        return Ok(NamePattern::All);
    }
    let (name, has_arguments) = match text.strip_suffix(" *").or_else(|| text.strip_suffix(":*")) {
        Some(name) => (name.trim_end(), true),
        None => (text, false),
    };
    let name = name.trim_start_matches('/');
    if name.is_empty() || name.contains(char::is_control) {
        return Err(RuleError::EmptySpecifier(tool.to_owned()));
    }
    // The used item is known by its name up to the first blank; names of agents are whole.
    if tool != "Task"
        && let Some((first, _)) = name.split_once(char::is_whitespace)
    {
        let [tool, name, first] = [tool, name, first].map(str::to_owned);
        return Err(RuleError::Arguments { tool, name, first });
    }
    let name = name.to_owned();
    Ok(if has_arguments { NamePattern::WithArguments(name) } else { NamePattern::Exactly(name) })
}

fn check_name(name: &str) -> Result<(), RuleError> {
    let is_letter =
        |letter: char| letter.is_alphanumeric() || matches!(letter, '_' | '-' | '.' | ':' | '/' | '*');
    if !name.is_empty() && name.chars().all(is_letter) {
        Ok(())
    } else {
        Err(RuleError::Name(name.to_owned()))
    }
}

/// Takes the backslash from before parentheses.
fn unescape(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut letters = text.chars().peekable();
    while let Some(letter) = letters.next() {
        if letter != '\\' || !matches!(letters.peek(), Some('(' | ')')) {
            plain.push(letter);
        }
    }
    plain
}

/// Puts one there only where reading would take another away: the last `)` closes anyway.
fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for letter in text.chars() {
        if matches!(letter, '(' | ')') && escaped.ends_with('\\') {
            escaped.push('\\');
        }
        escaped.push(letter);
    }
    escaped
}
