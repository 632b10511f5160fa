//! Types of sub-agents, and files that are left out, as clients see them.
//!
//! Rule: values only, no decisions; system prompts stay here.

use std::path::PathBuf;

use kode_engine::agents::{AgentType, AgentTypes};
use kode_engine::extension::Catalog;
use kode_protocol as wire;

/// All types, and what is wrong with the files of sub-agents, skills and commands.
#[must_use]
pub fn list(types: &AgentTypes, catalog: &Catalog) -> wire::ListAgentsResult {
    wire::ListAgentsResult {
        agents: types.iter().map(info).collect(),
        problems: types.problems.iter().chain(&catalog.problems).map(problem).collect(),
    }
}

fn info(one: &AgentType) -> wire::AgentInfo {
    wire::AgentInfo {
        name: one.name.clone(),
        description: one.listed(),
        file: one.file.as_ref().map(|file| file.display().to_string()),
        model: one.model.clone(),
        tools: one.tools.clone(),
        disallowed_tools: one.disallowed_tools.clone(),
    }
}

pub(super) fn problem((file, reason): &(PathBuf, String)) -> wire::FileProblem {
    wire::FileProblem { file: file.display().to_string(), message: reason.clone() }
}
