//! A reader of Seatbelt's language, as far as policies of ours use it, and the answers of a policy.
//!
//! Rule: it knows the language from its tables and nothing of how policies are written. Whatever is in none of them is a
//! fault: an operation, a filter, a parameter without a value, a value without a use.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use regex::bytes::Regex;

/// Operations on files that are no part of others, by their whole names.
const FILE_READS: [&str; 3] = ["file-read-data", "file-read-metadata", "file-read-xattr"];
const FILE_WRITES: [&str; 10] = [
    "file-write-create",
    "file-write-data",
    "file-write-flags",
    "file-write-mode",
    "file-write-mount",
    "file-write-owner",
    "file-write-setugid",
    "file-write-times",
    "file-write-unlink",
    "file-write-xattr",
];
/// Further operations.
const OTHERS: [&str; 24] = [
    "file-clone",
    "file-ioctl",
    "file-link",
    "ipc-posix-sem",
    "ipc-posix-shm-read-data",
    "ipc-posix-shm-read-metadata",
    "ipc-posix-shm-write-create",
    "ipc-posix-shm-write-data",
    "ipc-posix-shm-write-unlink",
    "mach-lookup",
    "mach-register",
    "network-bind",
    "network-inbound",
    "network-outbound",
    "process-exec",
    "process-exec-interpreter",
    "process-fork",
    "process-info-pidinfo",
    "pseudo-tty",
    "signal",
    "sysctl-read",
    "sysctl-write",
    "system-socket",
    "user-preference-read",
];

/// An expression.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Expression {
    Symbol(String),
    Text(String),
    Pattern(String),
    List(Vec<Expression>),
}

/// Reads all expressions of a text.
fn read(text: &str) -> Result<Vec<Expression>, String> {
    let mut open: Vec<Vec<Expression>> = vec![Vec::new()];
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let done = match first {
            ';' => {
                rest = rest.split_once('\n').map_or("", |(_, rest)| rest);
                continue;
            }
            '(' => {
                open.push(Vec::new());
                rest = &rest[1..];
                continue;
            }
            ')' => {
                rest = &rest[1..];
                let list = open.pop().filter(|_| !open.is_empty()).ok_or("a parenthesis too many")?;
                Expression::List(list)
            }
            '"' => {
                let (text, after) = string(&rest[1..])?;
                rest = after;
                Expression::Text(text)
            }
            '#' => {
                let pattern = rest.strip_prefix("#\"").ok_or("a # without a pattern")?;
                let (pattern, after) = pattern.split_once('"').ok_or("a pattern without an end")?;
                rest = after;
                Expression::Pattern(pattern.to_owned())
            }
            space if space.is_ascii_whitespace() => {
                rest = &rest[1..];
                continue;
            }
            _ => {
                let end = rest.find(|letter: char| letter.is_ascii_whitespace() || "();\"#".contains(letter));
                let (symbol, after) = rest.split_at(end.unwrap_or(rest.len()));
                rest = after;
                Expression::Symbol(symbol.to_owned())
            }
        };
        open.last_mut().ok_or("nothing is open")?.push(done);
    }
    match <[_; 1]>::try_from(open) {
        Ok([all]) => Ok(all),
        Err(open) => Err(format!("{} lists without an end", open.len() - 1)),
    }
}

/// The text up to the quotation mark that ends it, and what follows.
fn string(text: &str) -> Result<(String, &str), String> {
    let mut read = String::new();
    let mut letters = text.char_indices();
    while let Some((at, letter)) = letters.next() {
        match letter {
            '"' => return Ok((read, &text[at + 1..])),
            '\\' => read.push(letters.next().ok_or("a text ends in a backslash")?.1),
            other => read.push(other),
        }
    }
    Err("a text without an end".to_owned())
}

/// A filter.
#[derive(Debug)]
enum Filter {
    Literal(PathBuf),
    Subpath(PathBuf),
    Regex(Regex),
    Any(Vec<Filter>),
    All(Vec<Filter>),
    Not(Box<Filter>),
    /// One that no file has to do with, as it is written.
    Other(String),
}

impl Filter {
    fn matches(&self, subject: &Subject<'_>) -> bool {
        match (self, subject) {
            (Self::Any(filters), _) => filters.iter().any(|filter| filter.matches(subject)),
            (Self::All(filters), _) => filters.iter().all(|filter| filter.matches(subject)),
            (Self::Not(filter), _) => !filter.matches(subject),
            (Self::Literal(literal), Subject::File(path)) => literal == path,
            (Self::Subpath(folder), Subject::File(path)) => path.starts_with(folder),
            (Self::Regex(pattern), Subject::File(path)) => {
                pattern.is_match(path.as_os_str().as_encoded_bytes())
            }
            (Self::Other(written), Subject::Other(name)) => written == name,
            (Self::Other(_), Subject::File(_))
            | (Self::Literal(_) | Self::Subpath(_) | Self::Regex(_), Subject::Other(_)) => false,
        }
    }
}

/// The subject of an operation.
pub(super) enum Subject<'a> {
    /// A file, by its resolved path.
    File(&'a Path),
    /// Something else, as a filter for it is written.
    Other(&'a str),
}

#[derive(Debug)]
struct Rule {
    allows: bool,
    operations: BTreeSet<&'static str>,
    /// Nothing is everything.
    filters: Vec<Filter>,
}

/// A policy that was read.
#[derive(Debug)]
pub(super) struct ReadPolicy {
    rules: Vec<Rule>,
    /// Texts and patterns in it that begin like a path.
    pub(super) paths: Vec<String>,
}

impl ReadPolicy {
    /// Reads a policy with these parameters.
    pub(super) fn read(text: &str, parameters: &[(String, PathBuf)]) -> Result<Self, String> {
        let values: BTreeMap<_, _> =
            parameters.iter().map(|(name, value)| (name.as_str(), value.as_path())).collect();
        if values.len() != parameters.len() {
            return Err("a parameter has two values".to_owned());
        }
        let mut reader = PolicyReader { values, used: BTreeSet::new(), paths: Vec::new() };
        let expressions = read(text)?;
        let [version, rest @ ..] = expressions.as_slice() else { return Err("an empty policy".to_owned()) };
        let is_call = |expression: &Expression, name: &str, value: &str| {
            matches!(expression, Expression::List(list) if matches!(list.as_slice(),
                [Expression::Symbol(first), Expression::Symbol(second)] if first == name && second == value))
        };
        if !is_call(version, "version", "1")
            || !rest.first().is_some_and(|rule| is_call(rule, "deny", "default"))
        {
            return Err("it does not begin with its version and a denial of everything".to_owned());
        }
        let rules = rest[1..].iter().map(|rule| reader.rule(rule)).collect::<Result<_, _>>()?;
        let unused: Vec<_> = reader.values.keys().filter(|name| !reader.used.contains(**name)).collect();
        if !unused.is_empty() {
            return Err(format!("values without a use: {unused:?}"));
        }
        Ok(Self { rules, paths: reader.paths })
    }

    /// Whether an operation is allowed: the last rule that applies decides.
    pub(super) fn allows(&self, operation: &str, subject: &Subject<'_>) -> bool {
        let applies = |rule: &&Rule| {
            rule.operations.contains(operation)
                && (rule.filters.is_empty() || rule.filters.iter().any(|filter| filter.matches(subject)))
        };
        self.rules.iter().rev().find(applies).is_some_and(|rule| rule.allows)
    }

    /// Whether a file may be read.
    pub(super) fn reads(&self, path: &Path) -> bool {
        self.allows("file-read-data", &Subject::File(path))
    }

    /// Whether a file may be made and written.
    pub(super) fn writes(&self, path: &Path) -> bool {
        ["file-write-create", "file-write-data"]
            .iter()
            .all(|operation| self.allows(operation, &Subject::File(path)))
    }

    /// Whether a path may be removed or renamed.
    pub(super) fn removes(&self, path: &Path) -> bool {
        self.allows("file-write-unlink", &Subject::File(path))
    }
}

struct PolicyReader<'v> {
    values: BTreeMap<&'v str, &'v Path>,
    used: BTreeSet<String>,
    paths: Vec<String>,
}

impl PolicyReader<'_> {
    fn rule(&mut self, rule: &Expression) -> Result<Rule, String> {
        let Expression::List(parts) = rule else { return Err(format!("no rule: {rule:?}")) };
        let allows = match parts.first() {
            Some(Expression::Symbol(verb)) if verb == "allow" => true,
            Some(Expression::Symbol(verb)) if verb == "deny" => false,
            _ => return Err(format!("no rule: {rule:?}")),
        };
        let mut operations = BTreeSet::new();
        let mut filters = Vec::new();
        for part in &parts[1..] {
            match part {
                Expression::Symbol(name) if filters.is_empty() => operations.extend(meant(name)?),
                Expression::List(_) => filters.push(self.filter(part)?),
                other => return Err(format!("neither an operation nor a filter: {other:?}")),
            }
        }
        if operations.is_empty() {
            return Err(format!("a rule for nothing: {rule:?}"));
        }
        Ok(Rule { allows, operations, filters })
    }

    fn filter(&mut self, filter: &Expression) -> Result<Filter, String> {
        let Expression::List(parts) = filter else { return Err(format!("no filter: {filter:?}")) };
        let Some((Expression::Symbol(name), arguments)) = parts.split_first() else {
            return Err(format!("no filter: {filter:?}"));
        };
        match (name.as_str(), arguments) {
            ("require-any" | "require-all", [_, ..]) => {
                let filters = arguments.iter().map(|part| self.filter(part)).collect::<Result<_, _>>()?;
                Ok(if name == "require-any" { Filter::Any(filters) } else { Filter::All(filters) })
            }
            ("require-not", [inner]) => Ok(Filter::Not(Box::new(self.filter(inner)?))),
            ("literal", [path]) => Ok(Filter::Literal(self.path(path)?)),
            ("subpath", [path]) => Ok(Filter::Subpath(self.path(path)?)),
            ("regex", [Expression::Pattern(pattern)]) => {
                self.paths.push(pattern.clone());
                Regex::new(&format!("(?-u){pattern}")).map(Filter::Regex).map_err(|error| error.to_string())
            }
            ("target", [Expression::Symbol(target)]) if target == "same-sandbox" => other(filter),
            ("ipc-posix-name-regex", [Expression::Pattern(_)])
            | (
                "global-name" | "sysctl-name" | "sysctl-name-prefix" | "ipc-posix-name-prefix" | "extension",
                [Expression::Text(_)],
            ) => other(filter),
            ("remote" | "local", [Expression::Symbol(kind), Expression::Text(place)])
                if kind == "ip" && is_place(place) =>
            {
                other(filter)
            }
            _ => Err(format!("no filter of the language: {filter:?}")),
        }
    }

    fn path(&mut self, path: &Expression) -> Result<PathBuf, String> {
        match path {
            Expression::Text(text) => {
                self.paths.push(text.clone());
                Ok(PathBuf::from(text))
            }
            Expression::List(parts) => match parts.as_slice() {
                [Expression::Symbol(param), Expression::Text(name)] if param == "param" => {
                    self.used.insert(name.clone());
                    let value = self.values.get(name.as_str());
                    value.map(|value| value.to_path_buf()).ok_or(format!("{name} has no value"))
                }
                _ => Err(format!("no path: {parts:?}")),
            },
            other => Err(format!("no path: {other:?}")),
        }
    }
}

/// The operations that a name means: a star means all that begin like it.
fn meant(name: &str) -> Result<Vec<&'static str>, String> {
    let all = FILE_READS.iter().chain(&FILE_WRITES).chain(&OTHERS).copied();
    let meant: Vec<_> = match name.strip_suffix('*') {
        Some(beginning) => all.filter(|operation| operation.starts_with(beginning)).collect(),
        None => all.filter(|operation| *operation == name).collect(),
    };
    if meant.is_empty() { Err(format!("no operation of the language: {name}")) } else { Ok(meant) }
}

/// Whether a place of the network is one that the language has: all hosts or this one, and all ports or one.
fn is_place(place: &str) -> bool {
    let Some((host, port)) = place.split_once(':') else { return false };
    matches!(host, "*" | "localhost") && (port == "*" || port.parse::<u16>().is_ok_and(|port| port > 0))
}

fn other(filter: &Expression) -> Result<Filter, String> {
    Ok(Filter::Other(written(filter)))
}

fn written(expression: &Expression) -> String {
    match expression {
        Expression::Symbol(symbol) => symbol.clone(),
        Expression::Text(text) => format!("{text:?}"),
        Expression::Pattern(pattern) => format!("#\"{pattern}\""),
        Expression::List(parts) => format!("({})", parts.iter().map(written).collect::<Vec<_>>().join(" ")),
    }
}

#[test]
fn what_is_no_policy_is_refused() {
    let head = "(version 1)(deny default)";
    let value = [("A".to_owned(), PathBuf::from("/a"))];
    for (text, values, fault) in [
        ("", &[][..], "an empty policy"),
        ("(version 1)(allow default)", &[], "does not begin"),
        ("(deny default)", &[], "does not begin"),
        (&format!("{head}(allow file-fly)"), &[], "no operation"),
        (&format!("{head}(allow)"), &[], "for nothing"),
        (&format!("{head}(permit signal)"), &[], "no rule"),
        (&format!("{head}(allow signal (target any))"), &[], "no filter"),
        (&format!("{head}(allow signal"), &[], "without an end"),
        (&format!("{head}(allow signal))"), &[], "too many"),
        (&format!("{head}(allow file-read* (literal \"/a"), &[], "without an end"),
        (&format!("{head}(allow file-read* (regex #\"(\"))"), &[], "regex"),
        (&format!("{head}(allow file-read* (literal (param \"A\")))"), &[], "A has no value"),
        (&format!("{head}(allow file-read*)"), &value, "without a use"),
        (&format!("{head}(allow file-read* (require-any))"), &[], "no filter"),
        (&format!("{head}(allow network-outbound (remote ip \"example.com:443\"))"), &[], "no filter"),
        (&format!("{head}(allow network-outbound (remote ip \"localhost:0\"))"), &[], "no filter"),
    ] {
        let refused = ReadPolicy::read(text, values).unwrap_err();
        assert!(refused.contains(fault), "{text}: {refused}");
    }
}

#[test]
fn the_last_rule_that_applies_decides() {
    let text = "(version 1)(deny default) ; comment (\n(allow file-read* file-write-data (subpath (param \"A\")))\
                (deny file-read-data (require-all (regex #\"/[^/]*\\.key$\") (require-not (literal \"/a/\\\"x.key\"))))";
    let policy = ReadPolicy::read(text, &[("A".to_owned(), PathBuf::from("/a"))]).unwrap();
    for (path, is_read) in
        [("/a/b", true), ("/a", true), ("/ab", false), ("/a/b.key", false), ("/a/\"x.key", true)]
    {
        assert_eq!(policy.reads(Path::new(path)), is_read, "{path}");
    }
    assert!(policy.allows("file-read-metadata", &Subject::File(Path::new("/a/b.key"))));
    assert!(!policy.writes(Path::new("/a/b")), "creation was not allowed");
}
