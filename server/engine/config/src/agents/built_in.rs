//! The types of sub-agents that are built in.
//!
//! Rule: what only looks works in the mode in which nothing is changed, whatever its tools could do.

use crate::agents::{AgentType, DEFAULT_TYPE};
use crate::extension::places::ExtensionOrigin;
use kode_base::mode::Mode;

/// The read-only tools.
const LOOKING: [&str; 4] = ["Read", "Glob", "Grep", "LS"];

/// All of them.
pub(super) fn all() -> [AgentType; 4] {
    let looks = |tools: &[&'static str]| Some((tools.to_vec(), Some(Mode::Plan)));
    [
        built_in(
            DEFAULT_TYPE,
            "Does a task of several steps by itself: research, changes and commands.",
            include_str!("prompts/general.md"),
            None,
        ),
        built_in(
            "Explore",
            "Finds out where and how something is done in the code, without changing anything. Use it for broad \
             searches whose details you do not need to see.",
            include_str!("prompts/explore.md"),
            looks(&LOOKING),
        ),
        built_in(
            "Plan",
            "Works out step by step how a change should be made, without making it.",
            include_str!("prompts/plan.md"),
            looks(&LOOKING),
        ),
        built_in(
            "review",
            "Reviews changes and reports their defects, without changing anything.",
            include_str!("prompts/review.md"),
            looks(&[&LOOKING[..], &["Bash", "PowerShell"]].concat()),
        ),
    ]
}

fn built_in(
    name: &str,
    description: &str,
    prompt: &str,
    limits: Option<(Vec<&str>, Option<Mode>)>,
) -> AgentType {
    let (tools, mode) = limits.map_or((None, None), |(tools, mode)| (Some(tools), mode));
    AgentType {
        name: name.to_owned(),
        description: description.to_owned(),
        prompt: prompt.trim().to_owned(),
        mode,
        tools: tools.map(|tools| tools.into_iter().map(str::to_owned).collect()),
        disallowed_tools: Vec::new(),
        model: None,
        effort: None,
        max_turns: None,
        color: None,
        skills: Vec::new(),
        servers: Vec::new(),
        own_servers: None,
        hooks: None,
        fork_context: false,
        background: false,
        is_isolated: false,
        runs: None,
        memory: None,
        origin: ExtensionOrigin::BuiltIn,
        file: None,
        trust_requests: Vec::new(),
    }
}
