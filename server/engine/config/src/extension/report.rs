//! The state of users' files: in use, with their origin, hidden by others, or left out with the reason.
//!
//! Rule: it reports the results of reading and judging, and judges nothing itself; every file that was found is in it once
//! for each thing that it describes.

use crate::agents::ShadowedAgent;
use crate::extension::live::LoadedExtensions;
use crate::extension::places::ExtensionOrigin;
use crate::extension::{Catalog, ExtensionKind};
use crate::memory::{self, Memory};
use crate::plugin::{PluginListing, PluginState};
use crate::policy::Policy;
use crate::settings::declared::Declaration;
use kode_base::paths::AbsPath;
use kode_permission::rules::{ProblemSeverity, SettingsProblem};

/// A kind of thing that files describe.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum FindingSubject {
    /// A type of sub-agent.
    Agent,
    /// A skill.
    Skill,
    /// A command.
    Command,
    /// An output style.
    Style,
    /// An instruction file.
    Instructions,
    /// A plugin.
    Plugin,
    /// A group of hooks.
    Hook,
    /// An MCP server.
    Server,
    /// A language server.
    LanguageServer,
    /// A variable for what the agent starts.
    Variable,
    /// A command that prints something for the agent.
    Helper,
}

impl FindingSubject {
    /// All of them, in the order of a report.
    pub const ALL: [Self; 11] = [
        Self::Agent,
        Self::Skill,
        Self::Command,
        Self::Style,
        Self::Instructions,
        Self::Plugin,
        Self::Hook,
        Self::Server,
        Self::LanguageServer,
        Self::Variable,
        Self::Helper,
    ];

    /// The common name.
    #[must_use]
    pub fn title(self) -> &'static str {
        match self {
            Self::Agent => "Agents",
            Self::Skill => "Skills",
            Self::Command => "Commands",
            Self::Style => "Output styles",
            Self::Instructions => "Instruction files",
            Self::Plugin => "Plugins",
            Self::Hook => "Hooks",
            Self::Server => "MCP servers",
            Self::LanguageServer => "Language servers",
            Self::Variable => "Variables",
            Self::Helper => "Helper commands",
        }
    }
}

/// The outcome of a finding.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FindingFate {
    /// It is in use.
    Loaded,
    /// Another of the same name is used: that of this file, or a built-in one.
    Shadowed(Option<AbsPath>),
    /// It waits for the user's approval.
    Waiting,
    /// It is not used, for this reason.
    LeftOut(String),
}

/// Something that was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// Its kind.
    pub subject: FindingSubject,
    /// Its name.
    pub name: String,
    /// Its owner, for people.
    pub origin: String,
    /// Its file; `None` when it is built in.
    pub file: Option<AbsPath>,
    /// Its outcome.
    pub fate: FindingFate,
}

/// All that was found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ExtensionReport {
    /// The findings, by kind, then by name.
    pub findings: Vec<Finding>,
    /// The problems of files, settings included.
    pub problems: Vec<SettingsProblem>,
}

impl ExtensionReport {
    /// The report on these files and settings.
    #[must_use]
    pub fn of(loaded: &LoadedExtensions, memory: &Memory, policy: &Policy) -> Self {
        let mut findings = Vec::new();
        for agent in loaded.agents.iter() {
            findings.push(Finding {
                subject: FindingSubject::Agent,
                name: agent.name.clone(),
                origin: agent.origin.name().to_owned(),
                file: agent.file.clone(),
                fate: FindingFate::Loaded,
            });
        }
        findings.extend(loaded.agents.shadowed.iter().map(|hidden| shadowed(FindingSubject::Agent, hidden)));
        of_catalog(&loaded.catalog, &mut findings);
        findings.extend(loaded.styles.iter().map(|style| Finding {
            subject: FindingSubject::Style,
            name: style.name.clone(),
            origin: style.origin.name().to_owned(),
            file: style.file.clone(),
            fate: FindingFate::Loaded,
        }));
        findings.extend(loaded.styles.shadowed.iter().map(|hidden| shadowed(FindingSubject::Style, hidden)));
        findings.extend(memory.loaded().iter().map(of_instructions));
        let declared = &policy.declared;
        for (subject, entries) in [
            (FindingSubject::Hook, &declared.hooks),
            (FindingSubject::Server, &declared.servers),
            (FindingSubject::LanguageServer, &declared.language_servers),
            (FindingSubject::Variable, &declared.env),
        ] {
            findings.extend(entries.iter().map(|entry| of_entry(subject, entry)));
        }
        let unused = || FindingFate::LeftOut("kode-ls has no use for it".to_owned());
        let helpers = declared.helpers.iter();
        findings.extend(
            helpers.map(|entry| Finding { fate: unused(), ..of_entry(FindingSubject::Helper, entry) }),
        );
        findings.extend(declared.plugins.iter().map(of_plugin));
        let mut problems = loaded.problems();
        findings.extend(problems.iter().filter_map(left_out));
        // Instructions keep their own order: it is the one in which the model gets them.
        findings.sort_by_key(|finding| {
            let name = (finding.subject != FindingSubject::Instructions).then(|| finding.name.to_lowercase());
            (finding.subject, name)
        });
        problems.extend(policy.problems.iter().cloned());
        Self { findings, problems }
    }

    /// The report as Markdown, for people.
    #[must_use]
    pub fn to_text(&self) -> String {
        let mut text = String::new();
        for subject in FindingSubject::ALL {
            let mut findings = self.findings.iter().filter(|finding| finding.subject == subject).peekable();
            if findings.peek().is_none() {
                continue;
            }
            text.push_str(&format!("## {}\n", subject.title()));
            for finding in findings {
                let file = finding.file.as_ref().map(|file| format!(", {file}")).unwrap_or_default();
                let fate = match &finding.fate {
                    FindingFate::Loaded => String::new(),
                    FindingFate::Shadowed(Some(by)) => format!(": hidden by {by}"),
                    FindingFate::Shadowed(None) => ": hidden by the built-in one".to_owned(),
                    FindingFate::Waiting => ": waits for your approval".to_owned(),
                    FindingFate::LeftOut(reason) => format!(": left out, {reason}"),
                };
                text.push_str(&format!("- {} ({}{file}){fate}\n", finding.name, finding.origin));
            }
            text.push('\n');
        }
        if !self.problems.is_empty() {
            text.push_str("## Problems\n");
            for problem in &self.problems {
                let place = match (&problem.file, problem.place) {
                    (Some(file), Some(place)) => format!("{file}:{}: ", place.line + 1),
                    (Some(file), None) => format!("{file}: "),
                    (None, _) => String::new(),
                };
                text.push_str(&format!("- {place}{}\n", problem.message));
            }
        }
        text
    }
}

fn of_catalog(catalog: &Catalog, findings: &mut Vec<Finding>) {
    findings.extend(catalog.all().map(|extension| Finding {
        subject: match extension.kind {
            ExtensionKind::Skill => FindingSubject::Skill,
            ExtensionKind::Command => FindingSubject::Command,
        },
        name: extension.name.clone(),
        origin: if extension.plugin.is_some() { ExtensionOrigin::Plugin.name() } else { "files" }.to_owned(),
        file: Some(extension.path.clone()),
        fate: FindingFate::Loaded,
    }));
}

fn of_instructions(loaded: &memory::InstructionFile) -> Finding {
    Finding {
        subject: FindingSubject::Instructions,
        name: loaded.path.file_name(),
        origin: match loaded.scope {
            memory::InstructionScope::Managed => ExtensionOrigin::Managed,
            memory::InstructionScope::User => ExtensionOrigin::User,
            memory::InstructionScope::Project => ExtensionOrigin::Project,
        }
        .name()
        .to_owned(),
        file: Some(loaded.path.clone()),
        fate: match &loaded.fate {
            memory::InstructionFate::Given | memory::InstructionFate::Cut => FindingFate::Loaded,
            memory::InstructionFate::LeftOut(reason) => FindingFate::LeftOut(reason.clone()),
        },
    }
}

fn of_entry(subject: FindingSubject, entry: &Declaration) -> Finding {
    Finding {
        subject,
        name: entry.name.clone(),
        origin: entry.source.layer.name().to_owned(),
        file: entry.source.file.clone(),
        fate: if entry.is_in_force() { FindingFate::Loaded } else { FindingFate::Waiting },
    }
}

fn of_plugin(plugin: &PluginListing) -> Finding {
    Finding {
        subject: FindingSubject::Plugin,
        name: plugin.id.clone(),
        origin: plugin.source.as_ref().map_or("not enabled", |source| source.layer.name()).to_owned(),
        file: plugin.root.clone(),
        fate: match &plugin.state {
            PluginState::On(_) => FindingFate::Loaded,
            PluginState::Off => FindingFate::LeftOut("it is off".to_owned()),
            PluginState::Waiting => FindingFate::Waiting,
            PluginState::LeftOut(reason) => FindingFate::LeftOut(reason.clone()),
        },
    }
}

fn shadowed(subject: FindingSubject, hidden: &ShadowedAgent) -> Finding {
    Finding {
        subject,
        name: hidden.name.clone(),
        origin: hidden.origin.name().to_owned(),
        file: hidden.file.clone(),
        fate: FindingFate::Shadowed(hidden.by.clone()),
    }
}

/// A file that is left out; a file that is used in part is among the problems alone.
fn left_out(problem: &SettingsProblem) -> Option<Finding> {
    let file = problem.file.clone().filter(|_| problem.severity == ProblemSeverity::Error)?;
    let is_beneath = |folder: &str| file.as_path().components().any(|part| part.as_os_str() == folder);
    let subject = match () {
        () if file.file_name() == "SKILL.md" => FindingSubject::Skill,
        () if is_beneath("agents") => FindingSubject::Agent,
        () if is_beneath("output-styles") => FindingSubject::Style,
        () => FindingSubject::Command,
    };
    Some(Finding {
        subject,
        name: file.file_name(),
        origin: "files".to_owned(),
        fate: FindingFate::LeftOut(problem.message.clone()),
        file: Some(file),
    })
}
