//! Types of sub-agents, output styles and what became of files, as clients see them.
//!
//! Rule: values only, no decisions; system prompts stay here. Lines are counted from 1, as people count them.

use kode_engine::config::agents::guest::GuestProgram;
use kode_engine::config::agents::{AgentType, ShadowedAgent};
use kode_engine::config::extension::live::{ExtensionCounts, LoadedExtensions};
use kode_engine::config::extension::places::ExtensionOrigin;
use kode_engine::config::extension::report;
use kode_engine::config::extension::report::{ExtensionReport, FindingFate, FindingSubject};
use kode_engine::config::style::{Style, Styles};
use kode_engine::permission::rules::{ProblemSeverity, SettingsProblem};
use kode_protocol as wire;

use crate::convert;

/// All types, and the problems of files.
#[must_use]
pub fn list(loaded: &LoadedExtensions) -> wire::ListAgentsResult {
    wire::ListAgentsResult {
        agents: loaded.agents.iter().map(info).collect(),
        shadowed: loaded.agents.shadowed.iter().map(shadowed).collect(),
        problems: loaded.problems().iter().filter_map(problem).collect(),
    }
}

/// All output styles; the one of that name is in use.
#[must_use]
pub fn styles(styles: &Styles, active: Option<&str>) -> wire::ListStylesResult {
    let info = |style: &Style| wire::StyleInfo {
        name: style.name.clone(),
        description: style.description.clone(),
        source: source(style.origin),
        file: style.file.as_ref().map(ToString::to_string),
        keeps_coding_instructions: style.keeps_coding,
        active: active.is_some_and(|active| active == style.name),
    };
    wire::ListStylesResult {
        styles: styles.iter().map(info).collect(),
        shadowed: styles.shadowed.iter().map(shadowed).collect(),
        problems: styles.problems.iter().filter_map(problem).collect(),
    }
}

/// The outcome of the files of users.
#[must_use]
pub fn report(report: &ExtensionReport) -> wire::DoctorResult {
    wire::DoctorResult {
        findings: report.findings.iter().map(finding).collect(),
        problems: report.problems.iter().filter_map(problem).collect(),
        text: report.to_text(),
    }
}

/// How many there are of each kind now, and the problems of files.
#[must_use]
pub fn changed(counts: ExtensionCounts, problems: &[SettingsProblem]) -> wire::Event {
    let ExtensionCounts { agents, skills, commands, styles } = counts;
    let problems = problems.iter().filter_map(problem).collect();
    wire::Event::ExtensionsChanged(wire::ExtensionsChanged { agents, skills, commands, styles, problems })
}

/// The problems of a file; `None` for an entry from no file.
#[must_use]
pub fn problem(problem: &SettingsProblem) -> Option<wire::FileProblem> {
    Some(wire::FileProblem {
        file: problem.file.as_ref()?.to_string(),
        message: problem.message.clone(),
        severe: problem.severity == ProblemSeverity::Error,
        line: problem.place.map(|place| place.line + 1),
    })
}

fn info(one: &AgentType) -> wire::AgentInfo {
    wire::AgentInfo {
        name: one.name.clone(),
        description: one.description.clone(),
        source: source(one.origin),
        file: one.file.as_ref().map(ToString::to_string),
        runs: one.runs.as_ref().map(GuestProgram::command_line),
        model: one.model.clone(),
        tools: one.tools.clone(),
        disallowed_tools: one.disallowed_tools.clone(),
        color: one.color.clone(),
        mode: one.mode.map(convert::mode),
        max_turns: one.max_turns,
        skills: one.skills.clone(),
        mcp_servers: one.servers.clone(),
    }
}

fn source(origin: ExtensionOrigin) -> wire::FileSource {
    match origin {
        ExtensionOrigin::Managed => wire::FileSource::Managed,
        ExtensionOrigin::Project => wire::FileSource::Project,
        ExtensionOrigin::User => wire::FileSource::User,
        ExtensionOrigin::Plugin => wire::FileSource::Plugin,
        ExtensionOrigin::BuiltIn => wire::FileSource::BuiltIn,
    }
}

fn shadowed(hidden: &ShadowedAgent) -> wire::ShadowedFile {
    wire::ShadowedFile {
        name: hidden.name.clone(),
        source: source(hidden.origin),
        file: hidden.file.as_ref().map(ToString::to_string),
        by: hidden.by.as_ref().map(ToString::to_string),
    }
}

fn finding(finding: &report::Finding) -> wire::Finding {
    let (fate, by, reason) = match &finding.fate {
        FindingFate::Loaded => (wire::FindingFate::Loaded, None, None),
        FindingFate::Shadowed(by) => {
            (wire::FindingFate::Shadowed, by.as_ref().map(ToString::to_string), None)
        }
        FindingFate::Waiting => (wire::FindingFate::Waiting, None, None),
        FindingFate::LeftOut(reason) => (wire::FindingFate::LeftOut, None, Some(reason.clone())),
    };
    wire::Finding {
        kind: match finding.subject {
            FindingSubject::Agent => wire::FindingKind::Agent,
            FindingSubject::Skill => wire::FindingKind::Skill,
            FindingSubject::Command => wire::FindingKind::Command,
            FindingSubject::Style => wire::FindingKind::Style,
            FindingSubject::Instructions => wire::FindingKind::Instructions,
            FindingSubject::Plugin => wire::FindingKind::Plugin,
            FindingSubject::Hook => wire::FindingKind::Hook,
            FindingSubject::Server => wire::FindingKind::Server,
            FindingSubject::LanguageServer => wire::FindingKind::LanguageServer,
            FindingSubject::Variable => wire::FindingKind::Variable,
            FindingSubject::Helper => wire::FindingKind::Helper,
        },
        name: finding.name.clone(),
        source: finding.origin.clone(),
        file: finding.file.as_ref().map(ToString::to_string),
        fate,
        by,
        reason,
    }
}
