//! The rules of one behavior, sorted by what they refer to.
//!
//! Rule: deny and ask cover every reading of a rule, in any letter case, on the name that is given or the one it leads
//! to; allow covers the one reading that is documented, on both names.

use std::collections::HashMap;

use serde_json::Value;

use super::glob::NameGlob;
use super::host::{self, HostPattern};
use super::path::{PathAnchor, PathPattern, PathSegment, PatternVariant};
use super::places::PathBases;
use super::rule::{NamePattern, Specifier};
use super::tree::{PathQuery, PathTree};
use super::{Behavior, Commands, PlacedRule, RuleSubject, names};
use kode_base::command_shell::CommandShell;
use kode_base::path_style::PathStyle;
use kode_base::paths::{AbsPath, Target};
use kode_command::CommandPattern;

/// The rules of one behavior. A rule is known by its number in the whole list, where the lowest wins.
#[derive(Debug)]
pub(super) struct RuleIndex {
    behavior: Behavior,
    /// Tools by exact name: rules without parentheses.
    tools: HashMap<String, usize>,
    /// The same with `*` in the name.
    wildcards: Vec<(NameGlob, usize)>,
    parameters: HashMap<String, Vec<(String, NameGlob, usize)>>,
    reads: Paths,
    writes: Paths,
    hosts: Hosts,
    names: HashMap<(&'static str, String), NameRules>,
    all_names: HashMap<&'static str, usize>,
    commands: HashMap<CommandShell, Vec<CommandRule>>,
}

/// A rule about commands of a shell.
#[derive(Debug)]
struct CommandRule {
    number: usize,
    /// The commands, in the language of that shell; `None` for all.
    pattern: Option<CommandPattern>,
}

#[derive(Debug)]
struct Paths {
    all: Option<usize>,
    exact: PathTree,
    folded: PathTree,
}

#[derive(Debug, Default)]
struct Hosts {
    all: Option<usize>,
    exactly: HashMap<String, usize>,
    below: HashMap<String, usize>,
}

#[derive(Debug, Default)]
struct NameRules {
    exactly: Option<usize>,
    with_arguments: Option<usize>,
}

impl RuleIndex {
    pub(super) fn new(behavior: Behavior, rules: &[PlacedRule], places: &PathBases<'_>) -> Self {
        let mut index = Self {
            behavior,
            tools: HashMap::new(),
            wildcards: Vec::new(),
            parameters: HashMap::new(),
            reads: Paths::new(),
            writes: Paths::new(),
            hosts: Hosts::default(),
            names: HashMap::new(),
            all_names: HashMap::new(),
            commands: HashMap::new(),
        };
        for (number, rule) in rules.iter().enumerate().filter(|(_, rule)| rule.behavior == behavior) {
            index.add(number, rule, places);
        }
        index
    }

    fn add(&mut self, number: usize, placed: &PlacedRule, places: &PathBases<'_>) {
        let tool = placed.rule.tool();
        match placed.rule.specifier() {
            None => self.add_tool(number, tool),
            Some(Specifier::Command(pattern)) => self.add_commands(number, tool, Some(pattern)),
            Some(Specifier::Path(pattern)) => self.add_path(number, tool, pattern, placed, places),
            Some(Specifier::Domain(pattern)) => self.hosts.add(number, pattern),
            Some(Specifier::Name(pattern)) => self.add_name(number, tool, pattern),
            Some(Specifier::Parameter { name, value }) => {
                self.parameters.entry(tool.to_owned()).or_default().push((
                    name.clone(),
                    NameGlob::with_stars(value),
                    number,
                ));
            }
        }
    }

    fn add_tool(&mut self, number: usize, tool: &str) {
        if tool.contains('*') {
            let wildcard = NameGlob::with_stars(tool);
            // A wildcard that covers a tool covers what the tool's name alone covers.
            for name in names::built_in().filter(|name| wildcard.matches(name, false)) {
                self.add_doings(number, name);
            }
            self.wildcards.push((wildcard, number));
            return;
        }
        lowest(self.tools.entry(tool.to_owned()).or_insert(number), number);
        for name in names::family(tool) {
            lowest(self.tools.entry((*name).to_owned()).or_insert(number), number);
        }
        if self.behavior == Behavior::Deny && CommandShell::of_tool(tool) == Some(CommandShell::Bash) {
            let of_powershell = CommandShell::PowerShell.tool().to_owned();
            lowest(self.tools.entry(of_powershell).or_insert(number), number);
        }
        self.add_doings(number, tool);
    }

    /// The commands of a shell. A denial or question for commands of bash is one for those of PowerShell, too: it may have been
    /// written when there was no other shell. A permission is for its own shell alone.
    fn add_commands(&mut self, number: usize, tool: &str, pattern: Option<&CommandPattern>) {
        let Some(shell) = CommandShell::of_tool(tool) else { return };
        self.commands.entry(shell).or_default().push(CommandRule { number, pattern: pattern.cloned() });
        if shell == CommandShell::Bash && self.behavior != Behavior::Allow {
            let read = |pattern: &CommandPattern| {
                CommandPattern::of_powershell(&pattern.to_string()).unwrap_or_else(|_| pattern.clone())
            };
            let pattern = pattern.map(read);
            let of_powershell = self.commands.entry(CommandShell::PowerShell).or_default();
            of_powershell.push(CommandRule { number, pattern });
        }
    }

    /// The action of a tool.
    fn add_doings(&mut self, number: usize, tool: &str) {
        match tool {
            "Read" => {
                lowest(self.reads.all.get_or_insert(number), number);
                if self.behavior == Behavior::Deny {
                    lowest(self.writes.all.get_or_insert(number), number);
                }
            }
            "Edit" => lowest(self.writes.all.get_or_insert(number), number),
            "Bash" | "PowerShell" => self.add_commands(number, tool, None),
            "WebFetch" => lowest(self.hosts.all.get_or_insert(number), number),
            "Task" | "Skill" | "SlashCommand" => {
                for kind in self.kinds(tool) {
                    lowest(self.all_names.entry(kind).or_insert(number), number);
                }
            }
            _ => {}
        }
    }

    fn add_path(
        &mut self,
        number: usize,
        tool: &str,
        pattern: &PathPattern,
        placed: &PlacedRule,
        places: &PathBases<'_>,
    ) {
        // A permission to change a file includes reading it, and a denial to read it includes changes.
        let (reads, writes) = match (tool, self.behavior) {
            ("Read", Behavior::Deny) | ("Edit", Behavior::Allow) => (true, true),
            ("Read", Behavior::Ask | Behavior::Allow) => (true, false),
            _ => (false, true),
        };
        let is_allow = self.behavior == Behavior::Allow;
        let literally = pattern.literally().filter(|_| !is_allow);
        for base in bases(pattern, self.behavior, placed.root.as_ref(), places) {
            let is_folded = !is_allow || base.as_ref().is_some_and(|base| (places.is_case_insensitive)(base));
            let of_base = base.as_ref().map(super::path::names).unwrap_or_default();
            let variants = pattern.variants().iter().chain(literally).flat_map(|variant| {
                let names = &of_base[..of_base.len().saturating_sub(variant.up)];
                let as_given = (names.to_vec(), variant.segments.as_slice());
                let linked = linked_at_root(names, &variant.segments, places);
                std::iter::once(as_given).chain(linked).map(|named| (named, variant.cover))
            });
            for ((names, segments), cover) in variants {
                for (_, paths) in [(reads, &mut self.reads), (writes, &mut self.writes)]
                    .into_iter()
                    .filter(|(is_wanted, _)| *is_wanted)
                {
                    let tree = if is_folded { &mut paths.folded } else { &mut paths.exact };
                    tree.add(number, &names, segments, cover);
                }
            }
        }
    }

    fn add_name(&mut self, number: usize, tool: &str, pattern: &NamePattern) {
        for kind in self.kinds(tool) {
            match pattern {
                NamePattern::All => lowest(self.all_names.entry(kind).or_insert(number), number),
                NamePattern::Exactly(name) => {
                    let named = self.names.entry((kind, self.fold(name))).or_default();
                    lowest(named.exactly.get_or_insert(number), number);
                    if self.behavior != Behavior::Allow {
                        lowest(named.with_arguments.get_or_insert(number), number);
                    }
                }
                NamePattern::WithArguments(name) => {
                    let named = self.names.entry((kind, self.fold(name))).or_default();
                    lowest(named.exactly.get_or_insert(number), number);
                    lowest(named.with_arguments.get_or_insert(number), number);
                }
            }
        }
    }

    /// The lookup key of a tool's names. One text file may be run as a command or used as a skill, so text that is
    /// denied or asked for as one is so as the other.
    fn kinds(&self, tool: &str) -> Vec<&'static str> {
        match (tool, self.behavior) {
            ("Task", _) => vec!["Task"],
            ("Skill" | "SlashCommand", Behavior::Deny | Behavior::Ask) => vec!["Skill", "SlashCommand"],
            ("Skill", Behavior::Allow) => vec!["Skill"],
            ("SlashCommand", Behavior::Allow) => vec!["SlashCommand"],
            _ => Vec::new(),
        }
    }

    fn fold(&self, name: &str) -> String {
        if self.behavior == Behavior::Allow { name.to_owned() } else { super::glob::fold(name) }
    }

    pub(super) fn find(&self, subject: &RuleSubject<'_>) -> Option<usize> {
        match subject {
            RuleSubject::Tool { name, input } => {
                first([self.find_tool(name), self.find_parameter(names::canonical(name), input)])
            }
            RuleSubject::Read { given, real } => self.find_path(&self.reads, given, real, true),
            RuleSubject::Write { given, real } => {
                // A file is no folder, so its content is separate. Who denies need not care.
                self.find_path(&self.writes, given, real, self.behavior != Behavior::Allow)
            }
            RuleSubject::Fetch { host } => self.hosts.find(host),
            RuleSubject::Named { tool, name } => self.find_name(names::canonical(tool), name),
        }
    }

    /// A rule that refers to the whole tool.
    pub(super) fn find_tool(&self, name: &str) -> Option<usize> {
        let name = names::canonical(name);
        let forms = names::mcp_forms(name);
        let all = std::iter::once(name).chain(forms.iter().flatten().map(String::as_str));
        let found = all.filter_map(|name| {
            let wildcards = self.wildcards.iter().filter(|(wildcard, _)| wildcard.matches(name, false));
            first([self.tools.get(name).copied(), wildcards.map(|(_, number)| *number).min()])
        });
        found.min()
    }

    fn find_parameter(&self, tool: &str, input: &Value) -> Option<usize> {
        let forms = names::mcp_forms(tool);
        let all = std::iter::once(tool).chain(forms.iter().flatten().map(String::as_str));
        let rules = all.filter_map(|tool| self.parameters.get(tool)).flatten();
        let holds = |(name, pattern, _): &&(String, NameGlob, usize)| {
            input.get(name).is_some_and(|value| any_text(value, &|text| pattern.matches(text, false)))
        };
        rules.filter(holds).map(|(_, _, number)| *number).min()
    }

    fn find_path(&self, paths: &Paths, given: &Target, real: &Target, has_contents: bool) -> Option<usize> {
        let of_given = paths.find(given, has_contents, self.behavior);
        if given == real {
            return of_given;
        }
        let of_real = paths.find(real, has_contents, self.behavior);
        match self.behavior {
            Behavior::Deny | Behavior::Ask => first([of_given, of_real]),
            // Both have to be allowed; the weaker of the two rules is the one that decides.
            Behavior::Allow => of_given.zip(of_real).map(|(given, real)| given.max(real)),
        }
    }

    fn find_name(&self, tool: &str, name: &str) -> Option<usize> {
        let kind = ["Task", "Skill", "SlashCommand"].into_iter().find(|kind| *kind == tool)?;
        let name = name.trim();
        let name = name.strip_prefix('/').unwrap_or(name);
        let (name, has_arguments) = match name.split_once(char::is_whitespace) {
            Some((name, _)) if kind != "Task" => (name, true),
            Some(_) | None => (name, false),
        };
        let named = self.names.get(&(kind, self.fold(name)));
        let of_name =
            named.and_then(|named| if has_arguments { named.with_arguments } else { named.exactly });
        first([self.all_names.get(kind).copied(), of_name])
    }

    /// The rules that refer to commands of a shell, in order, and what of them.
    pub(super) fn commands<'a>(
        &'a self,
        rules: &'a [PlacedRule],
        shell: CommandShell,
    ) -> impl Iterator<Item = (Commands<'a>, &'a PlacedRule)> {
        self.commands.get(&shell).into_iter().flatten().map(|rule| {
            let commands = rule.pattern.as_ref().map_or(Commands::All, Commands::Pattern);
            (commands, &rules[rule.number])
        })
    }
}

impl Paths {
    fn new() -> Self {
        Self { all: None, exact: PathTree::new(false), folded: PathTree::new(true) }
    }

    fn find(&self, target: &Target, has_contents: bool, behavior: Behavior) -> Option<usize> {
        let Target::File(path) = target else { return self.all };
        let text = path.as_path().to_string_lossy();
        let names = PathStyle::HERE.names(&text);
        let is_text = path.as_path().to_str().is_some();
        // A name that is no text looks like others once it is made one, which must not allow it.
        if behavior == Behavior::Allow && !is_text {
            return self.all;
        }
        let looked = PathQuery::new(names.iter().map(AsRef::as_ref).collect(), has_contents);
        first([self.all, self.exact.find(&looked), self.folded.find(&looked)])
    }
}

impl Hosts {
    fn add(&mut self, number: usize, pattern: &HostPattern) {
        let place = match pattern {
            HostPattern::All => self.all.get_or_insert(number),
            HostPattern::Exactly(name) => self.exactly.entry(name.clone()).or_insert(number),
            HostPattern::Below(name) => self.below.entry(name.clone()).or_insert(number),
        };
        lowest(place, number);
    }

    fn find(&self, host: &str) -> Option<usize> {
        let Some(host) = host::canonical(host) else { return self.all };
        let mut found = first([self.all, self.exactly.get(&host).copied()]);
        let mut rest = host.as_str();
        while let Some((_, parent)) = rest.split_once('.') {
            found = first([found, self.below.get(parent).copied()]);
            rest = parent;
        }
        found
    }
}

/// The folders a pattern is relative to; `None` is the root of the file system.
fn bases(
    pattern: &PathPattern,
    behavior: Behavior,
    settings: Option<&AbsPath>,
    places: &PathBases<'_>,
) -> Vec<Option<AbsPath>> {
    let settings = settings.unwrap_or(places.cwd);
    let folders: Vec<Option<&AbsPath>> = match (pattern.anchor(), behavior) {
        (PathAnchor::Root, _) => vec![None],
        (PathAnchor::Home, _) => places.home.map(Some).into_iter().collect(),
        (PathAnchor::Settings, Behavior::Allow) => vec![Some(settings)],
        (PathAnchor::Settings, Behavior::Deny | Behavior::Ask) => vec![Some(settings), None],
        (PathAnchor::Directory, Behavior::Allow) => vec![Some(places.cwd)],
        (PathAnchor::Directory, Behavior::Deny | Behavior::Ask) if pattern.is_anywhere() => vec![None],
        // The working directory moves; what the rule was written for stays denied.
        (PathAnchor::Directory, Behavior::Deny | Behavior::Ask) => vec![Some(places.cwd), Some(settings)],
    };
    let mut bases = Vec::new();
    for folder in folders {
        let real = folder.map(places.real);
        for base in [folder.cloned(), real] {
            if !bases.contains(&base) {
                bases.push(base);
            }
        }
    }
    bases
}

/// Another name of the paths that a pattern names from the root on, where its first folder is a link there: `/etc` leads to `/private/etc`
/// on macOS, and `/bin` to `/usr/bin` on Linux. A rule for the one holds for the other.
fn linked_at_root<'s>(
    base: &[String],
    segments: &'s [PathSegment],
    places: &PathBases<'_>,
) -> Option<(Vec<String>, &'s [PathSegment])> {
    if !base.is_empty() {
        return None;
    }
    let at_root = |name: &str| AbsPath::new(format!("/{name}")).ok();
    // Where a link at the root leads; nothing for a folder that is no link.
    let target = |name: &str| {
        let path = at_root(name)?;
        Some((places.real)(&path)).filter(|real| *real != path)
    };
    if let [PathSegment::Name(parent), PathSegment::Name(name), below @ ..] = segments
        && target(name).is_some_and(|real| at_root(parent).is_some_and(|parent| real == parent.join(name)))
    {
        return Some((vec![name.clone()], below));
    }
    let [PathSegment::Name(name), below @ ..] = segments else { return None };
    target(name).map(|real| (super::path::names(&real), below))
}

/// The files and folders that a deny rule for reading names outright, without any pattern.
pub(super) fn fixed(pattern: &PathPattern, root: Option<&AbsPath>, places: &PathBases<'_>) -> Vec<AbsPath> {
    let mut found = Vec::new();
    for base in bases(pattern, Behavior::Deny, root, places) {
        let names = base.as_ref().map(super::path::names).unwrap_or_default();
        for PatternVariant { up, segments, cover: _ } in pattern.variants() {
            let path = segments.iter().map(|segment| match segment {
                PathSegment::Name(name) => Some(name.as_str()),
                PathSegment::Deep | PathSegment::Glob(_) => None,
            });
            let above = names[..names.len().saturating_sub(*up)].iter().map(String::as_str).map(Some);
            let path = above.chain(path).collect::<Option<Vec<_>>>();
            let path = path.filter(|path| !path.is_empty()).map(|path| path.join("/"));
            // A drive is the root of its own path.
            let paths = path.map(|path| [format!("/{path}"), path]);
            found.extend(paths.into_iter().flatten().find_map(|path| AbsPath::new(path).ok()));
        }
    }
    found
}

/// Whether any text in a value holds: the value itself, or one in its lists and objects.
fn any_text(value: &Value, holds: &dyn Fn(&str) -> bool) -> bool {
    match value {
        Value::String(text) => holds(text),
        Value::Null => holds("null"),
        Value::Bool(_) | Value::Number(_) => holds(&value.to_string()),
        Value::Array(values) => values.iter().any(|value| any_text(value, holds)),
        Value::Object(values) => values.values().any(|value| any_text(value, holds)),
    }
}

fn first<const N: usize>(found: [Option<usize>; N]) -> Option<usize> {
    found.into_iter().flatten().min()
}

fn lowest(place: &mut usize, number: usize) {
    *place = (*place).min(number);
}
