//! Permission rules: what a user or a project has settled beforehand, and finding the rule that refers to a call.
//!
//! Rule: deny, then ask, then allow (allow before ask where the user has chosen that), then the mode; how specific a rule is
//! does not matter, and adding a deny never allows more. Where a rule can be read in two ways, deny and ask mean both, and
//! allow means the narrower one.

mod glob;
pub mod host;
mod index;
pub mod names;
pub mod path;
pub mod places;
pub mod rule;
#[cfg(test)]
mod tests;
mod tree;

use std::fmt;
use std::sync::Arc;

use serde_json::Value;

use index::RuleIndex;
use kode_base::command_shell::CommandShell;
use kode_base::paths::{AbsPath, Target};
use kode_command::CommandPattern;

pub use host::HostPattern;
pub use path::PathPattern;
pub use places::PathBases;
pub use rule::{NamePattern, Rule, RuleError, RuleNote, Specifier};

/// A name that no pattern but one for all names matches.
const ANY_NAME: &str = ".\u{1}kode-ls\u{1}";

/// The verdict of a rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Behavior {
    /// It is refused.
    Deny,
    /// The user decides each time.
    Ask,
    /// It runs unasked.
    Allow,
}

impl Behavior {
    /// All of them, in the order in which they are applied.
    pub const ALL: [Self; 3] = [Self::Deny, Self::Ask, Self::Allow];

    /// The name used in settings.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Deny => "deny",
            Self::Ask => "ask",
            Self::Allow => "allow",
        }
    }
}

/// Which of two rules wins that do not deny.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Order {
    /// The one that asks.
    #[default]
    AskFirst,
    /// The one that allows, as in Blade.
    AllowFirst,
}

/// Where a setting comes from, the strongest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SettingsLayer {
    /// The administrator's file.
    Managed,
    /// The command line.
    CommandLine,
    /// An answer to a prompt, for this session.
    Session,
    /// The editor's settings.
    Editor,
    /// The user's own file in the workspace.
    Local,
    /// The project's file.
    Project,
    /// The user's file for all workspaces.
    User,
    /// A plugin that is on.
    Plugin,
    /// A file such as `.aiignore`, which keeps others from the agent.
    IgnoreFile,
    /// Built in.
    Default,
}

impl SettingsLayer {
    /// The name shown to people.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Managed => "managed",
            Self::CommandLine => "command line",
            Self::Session => "session",
            Self::Editor => "editor",
            Self::Local => "local",
            Self::Project => "project",
            Self::User => "user",
            Self::Plugin => "plugin",
            Self::IgnoreFile => "ignore file",
            Self::Default => "default",
        }
    }
}

/// A range in a file: lines and UTF-16 columns from zero, the end not included.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FileRange {
    /// The first line.
    pub line: u32,
    /// Where on it.
    pub column: u32,
    /// The last line.
    pub end_line: u32,
    /// Where on that one.
    pub end_column: u32,
}

/// Where a rule comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RuleSource {
    /// The layer.
    pub layer: SettingsLayer,
    /// The file, if it is from one.
    pub file: Option<AbsPath>,
    /// The rule's text in that file.
    pub place: Option<FileRange>,
}

impl fmt::Display for RuleSource {
    /// As people are notified, for example `project settings, /w/.kode/settings.json:3`.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.layer {
            SettingsLayer::CommandLine | SettingsLayer::Session | SettingsLayer::IgnoreFile => {
                formatter.write_str(self.layer.name())?
            }
            SettingsLayer::Managed
            | SettingsLayer::Editor
            | SettingsLayer::Local
            | SettingsLayer::Project
            | SettingsLayer::User
            | SettingsLayer::Plugin
            | SettingsLayer::Default => {
                write!(formatter, "{} settings", self.layer.name())?;
            }
        }
        if let Some(file) = &self.file {
            write!(formatter, ", {file}")?;
            if let Some(place) = self.place {
                write!(formatter, ":{}", place.line + 1)?;
            }
        }
        Ok(())
    }
}

/// A rule in force.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlacedRule {
    /// Its text.
    pub behavior: Behavior,
    /// Its subject.
    pub rule: Rule,
    /// Where it comes from.
    pub source: RuleSource,
    /// The folder that `/x` in it is relative to; the working directory when `None`.
    pub root: Option<AbsPath>,
}

/// How bad a problem is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ProblemSeverity {
    /// Something the user relies on is not in force.
    Error,
    /// Something is ignored or treated as something else.
    Warning,
    /// Good to know.
    Information,
}

/// Something wrong with settings or rules.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SettingsProblem {
    /// The file it is in; `None` for a rule from no file.
    pub file: Option<AbsPath>,
    /// Where in that file; the whole file when `None`.
    pub place: Option<FileRange>,
    /// How bad it is.
    pub severity: ProblemSeverity,
    /// The problem and the next step, for people.
    pub message: String,
}

/// The subjects of rules.
#[derive(Clone, Copy, Debug)]
pub enum RuleSubject<'a> {
    /// A call of a tool: for rules on the tool as a whole or on its arguments.
    Tool {
        /// The tool's name.
        name: &'a str,
        /// The arguments.
        input: &'a Value,
    },
    /// Something that is read, by whichever tool.
    Read {
        /// As it is named.
        given: &'a Target,
        /// With links followed.
        real: &'a Target,
    },
    /// Something that is changed, by whichever tool.
    Write {
        /// As it is named.
        given: &'a Target,
        /// With links followed.
        real: &'a Target,
    },
    /// A host that is fetched from.
    Fetch {
        /// The host of the address, without port.
        host: &'a str,
    },
    /// An agent, a skill or a command that is run.
    Named {
        /// `Task`, `Skill` or `SlashCommand`.
        tool: &'a str,
        /// Its name, and its arguments behind a blank if it has any.
        name: &'a str,
    },
}

/// The commands a rule refers to.
#[derive(Clone, Copy, Debug)]
pub enum Commands<'a> {
    /// All of them.
    All,
    /// The subjects of a pattern.
    Pattern(&'a CommandPattern),
}

/// Rules ready for use. Cheap to clone.
#[derive(Clone, Debug)]
pub struct RuleSet(Arc<CompiledRules>, Order);

#[derive(Debug)]
struct CompiledRules {
    /// The strongest layer first, and within one as given.
    rules: Vec<PlacedRule>,
    deny: RuleIndex,
    ask: RuleIndex,
    allow: RuleIndex,
    own_hosts: Arc<[String]>,
}

/// The host that a rule of [`RuleSet::own_hosts`] names.
fn own_host(rule: &PlacedRule) -> Option<String> {
    use SettingsLayer::{CommandLine, Editor, Local, Managed, User};
    // Of what an editor sends, only the user's own settings can allow.
    let is_own = matches!(rule.source.layer, Managed | CommandLine | Editor | Local | User);
    match rule.rule.specifier() {
        Some(Specifier::Domain(HostPattern::Exactly(host)))
            if is_own && rule.behavior == Behavior::Allow && rule.rule.tool() == "WebFetch" =>
        {
            Some(host.clone())
        }
        _ => None,
    }
}

impl RuleSet {
    /// Makes rules ready for use. Those that cannot have their behavior are left out and told.
    #[must_use]
    pub fn new(rules: Vec<PlacedRule>, places: &PathBases<'_>) -> (Self, Vec<SettingsProblem>) {
        let mut problems = Vec::new();
        let check = |rule: &PlacedRule| match rule.rule.check(rule.behavior) {
            Ok(()) if rule.needs_home() && places.home.is_none() => {
                let severity = match rule.behavior {
                    Behavior::Deny | Behavior::Ask => ProblemSeverity::Error,
                    Behavior::Allow => ProblemSeverity::Warning,
                };
                let reason = "there is no home folder; write the whole path after `//`".to_owned();
                problems.push(rule.problem(severity, reason));
                false
            }
            Ok(()) => true,
            Err(error) => {
                problems.push(rule.problem(ProblemSeverity::Warning, error.to_string()));
                false
            }
        };
        let mut rules: Vec<_> = rules.into_iter().filter(check).collect();
        rules.sort_by_key(|rule| rule.source.layer);
        let [deny, ask, allow] = Behavior::ALL.map(|behavior| RuleIndex::new(behavior, &rules, places));
        let own_hosts = rules.iter().filter_map(own_host).collect();
        (Self(Arc::new(CompiledRules { rules, deny, ask, allow, own_hosts }), Order::default()), problems)
    }

    /// The same rules in another order.
    #[must_use]
    pub fn in_order(self, order: Order) -> Self {
        Self(self.0, order)
    }

    /// Which of two rules wins that do not deny.
    #[must_use]
    pub fn order(&self) -> Order {
        self.1
    }

    /// The first rule of this behavior, the strongest layer first, that refers to the subject. With an allow on a
    /// path that leads elsewhere, both ends are allowed, and the weaker of the two rules is reported.
    #[must_use]
    pub fn find(&self, behavior: Behavior, subject: &RuleSubject<'_>) -> Option<&PlacedRule> {
        let is_beaten =
            behavior == Behavior::Ask && self.1 == Order::AllowFirst && self.0.allow.find(subject).is_some();
        if is_beaten {
            return None;
        }
        self.index(behavior).find(subject).map(|number| &self.0.rules[number])
    }

    /// The rules of this behavior that refer to commands of a shell, the strongest layer first.
    pub fn command_patterns(
        &self,
        behavior: Behavior,
        shell: CommandShell,
    ) -> impl Iterator<Item = (Commands<'_>, &PlacedRule)> {
        self.index(behavior).commands(&self.0.rules, shell)
    }

    /// The rule that takes a tool from the model's list: a deny of the tool's name, of one with `*` that covers it, or
    /// of `Read` or `Edit` for the tools that do the same.
    #[must_use]
    pub fn removes(&self, tool: &str) -> Option<&PlacedRule> {
        self.0.deny.find_tool(tool).map(|number| &self.0.rules[number])
    }

    /// The rules that hide files, made ready for use.
    #[must_use]
    pub fn against_reading(rules: &[PlacedRule], places: &PathBases<'_>) -> Option<Unreadable> {
        let is_one = |rule: &&PlacedRule| {
            let is_path = matches!(rule.rule.specifier(), Some(Specifier::Path(_)));
            rule.behavior == Behavior::Deny && rule.rule.tool() == "Read" && is_path
        };
        let rules: Vec<_> = rules.iter().filter(is_one).cloned().collect();
        let fixed = rules.iter().filter_map(|rule| match rule.rule.specifier() {
            Some(Specifier::Path(pattern)) => Some(index::fixed(pattern, rule.root.as_ref(), places)),
            _ => None,
        });
        let fixed = fixed.flatten().collect();
        let named = |rule: &PlacedRule| format!("{} {:?}", rule.rule, rule.root);
        let key = rules.iter().map(named).chain([places.cwd.to_string()]).collect::<Vec<_>>().join("\n");
        (!rules.is_empty()).then(|| Unreadable { rules: Self::new(rules, places).0, fixed, key })
    }

    /// The hosts that allow rules of the user or the administrator name exactly, as `WebFetch(domain:host)`. Rules of projects,
    /// plugins and skills are left out: a repository must not open the network of its user.
    #[must_use]
    pub fn own_hosts(&self) -> Arc<[String]> {
        Arc::clone(&self.0.own_hosts)
    }

    /// All rules, the strongest layer first.
    pub fn iter(&self) -> impl Iterator<Item = &PlacedRule> {
        self.0.rules.iter()
    }

    fn index(&self, behavior: Behavior) -> &RuleIndex {
        match behavior {
            Behavior::Deny => &self.0.deny,
            Behavior::Ask => &self.0.ask,
            Behavior::Allow => &self.0.allow,
        }
    }
}

/// The files that rules hide from every tool and program.
#[derive(Clone, Debug)]
pub struct Unreadable {
    rules: RuleSet,
    /// The files and folders that they name outright.
    pub fixed: Vec<AbsPath>,
    /// The rules as a text: two of the same text hide the same.
    pub key: String,
}

impl Unreadable {
    /// Whether a file, or all that is in a folder, may not be read.
    #[must_use]
    pub fn covers(&self, path: &AbsPath, is_folder: bool) -> bool {
        let is_denied = |path: AbsPath| {
            let target = Target::File(path);
            let subject = RuleSubject::Read { given: &target, real: &target };
            self.rules.find(Behavior::Deny, &subject).is_some()
        };
        is_denied(path.clone()) || is_folder && is_denied(path.join(ANY_NAME))
    }
}

impl PlacedRule {
    fn needs_home(&self) -> bool {
        match self.rule.specifier() {
            Some(Specifier::Path(pattern)) => pattern.anchor() == path::PathAnchor::Home,
            Some(
                Specifier::Command(_)
                | Specifier::Domain(_)
                | Specifier::Name(_)
                | Specifier::Parameter { .. },
            )
            | None => false,
        }
    }

    fn problem(&self, severity: ProblemSeverity, message: String) -> SettingsProblem {
        let message = format!("The rule `{}` in {} is ignored: {message}.", self.rule, self.behavior.name());
        SettingsProblem { file: self.source.file.clone(), place: self.source.place, severity, message }
    }
}
