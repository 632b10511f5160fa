//! The system prompt.
//!
//! Rule: it is the same for all requests of a session as long as the user does not change mode, style or instructions: a
//! date that moves on or a list in another order would make every cached prompt worthless. Its parts always come in one
//! order.

use std::sync::Arc;

use super::needs;
use crate::conversation::{Assignment, WorktreeIsolation};
use crate::instructions::Instructions;
use crate::state::SessionState;
use kode_base::command_shell::CommandShell;
use kode_base::mode::Mode;
use kode_base::paths::AbsPath;
use kode_process::programs;
use kode_process::worktree::Worktree;

const BASE_PROMPT: &str = include_str!("../prompts/base.md");
const CODING_PROMPT: &str = include_str!("../prompts/coding.md");
const PLAN_PROMPT: &str = include_str!("../prompts/plan.md");

/// The text for all sub-agents, whatever their prompt.
const AGENT_RULES: &str = include_str!("../prompts/agent-rules.md");

/// Between the parts of the system prompt.
const RULE_LINE: &str = "\n\n---\n\n";

/// The heading of the instruction files.
const MEMORY_HEAD: &str =
    "# Instructions of the user and the project\nOf two that contradict each other the later one counts.";

/// The system prompt in its parts, as they come. A part that says nothing is empty.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct SystemPrompt {
    /// The environment, the role and the manner of work.
    pub(super) base: String,
    /// Instructions from files of the user and the project.
    pub(super) memory: String,
    /// The output style, and text that settings append.
    pub(super) added: String,
}

impl SystemPrompt {
    /// All of it, as the model gets it.
    pub(super) fn text(&self) -> String {
        joined([self.base.as_str(), &self.memory, &self.added])
    }
}

/// The system prompt of a session's own conversation, or of a sub-agent with an assignment. `servers` is what MCP servers say
/// of themselves, `of_session` the worktree that the session works in, `further` the tools that can be asked for, `overview` the most tokens of the project's
/// overview.
pub(super) fn system_prompt(
    state: &SessionState,
    (assignment, of_session): (Option<&Assignment>, Option<&Arc<WorktreeIsolation>>),
    instructions: &Instructions,
    (servers, further): (&str, &str),
    overview: Option<u64>,
) -> SystemPrompt {
    let overview =
        overview.map(|tokens| needs::cut(&instructions.overview, tokens, "List folders for the rest."));
    let isolation = assignment.and_then(|assignment| assignment.isolation.as_ref()).or(of_session);
    let elsewhere = isolation.map(|isolation| isolation.workspace.cwd());
    let mut facts = SystemFacts {
        cwd: &state.cwd,
        roots: &state.roots,
        date: started(state),
        branch: instructions.branch.as_deref(),
        overview: overview.as_deref().unwrap_or(&instructions.overview),
        worktree: None,
    };
    if let (Some(isolation), Some(cwd)) = (isolation, &elsewhere) {
        // Files of the workspace may be missing in a worktree.
        let (branch, overview) = (Some(isolation.worktree.branch.as_str()), "");
        // A sub-agent with one of its own reads about it in its task.
        let worktree = assignment.is_none().then_some(&isolation.worktree);
        facts = SystemFacts { cwd, roots: isolation.workspace.roots(), branch, overview, worktree, ..facts };
    }
    let prompt = compose(
        &facts,
        state.config.mode,
        assignment.map(|assignment| assignment.prompt.as_str()),
        instructions,
    );
    // Last: servers come and go, and the text before them stays the same.
    SystemPrompt { added: joined([prompt.added.as_str(), servers, further]), ..prompt }
}

/// The facts of the environment.
struct SystemFacts<'a> {
    cwd: &'a AbsPath,
    roots: &'a [AbsPath],
    date: jiff::civil::Date,
    branch: Option<&'a str>,
    overview: &'a str,
    /// The worktree of the session's own conversation.
    worktree: Option<&'a Worktree>,
}

fn compose(
    facts: &SystemFacts<'_>,
    mode: Mode,
    agent: Option<&str>,
    instructions: &Instructions,
) -> SystemPrompt {
    let memory = match instructions.memory.text() {
        "" => String::new(),
        memory => format!("{MEMORY_HEAD}\n\n{memory}"),
    };
    let environment = environment(facts);
    let (base, added) = match agent {
        Some(prompt) => (joined([environment.as_str(), prompt, AGENT_RULES]), String::new()),
        None => {
            let style = style(mode, instructions).unwrap_or_default();
            let appended = instructions.appended.as_deref().unwrap_or_default();
            let base = joined([environment.as_str(), &base(mode, instructions)]);
            (base, joined([style.as_str(), &language(instructions), appended]))
        }
    };
    SystemPrompt { base, memory: memory.trim().to_owned(), added }
}

/// The shells there are, where that is not bash alone.
fn shells() -> &'static str {
    let has = |shell| programs::shell(shell).is_some();
    match (has(CommandShell::Bash), has(CommandShell::PowerShell)) {
        (true, true) => "; commands run in bash (Bash) or in PowerShell (PowerShell)",
        (false, true) => "; there is no bash, and commands run in PowerShell",
        (true, false) if cfg!(windows) => "; commands run in Git Bash",
        (true, false) => "",
        (false, false) => "; there is no shell to run commands in",
    }
}

/// Parts with a line between them; those that say nothing are left out.
fn joined<const N: usize>(parts: [&str; N]) -> String {
    let said = parts.into_iter().map(str::trim).filter(|part| !part.is_empty());
    said.collect::<Vec<_>>().join(RULE_LINE)
}

fn base(mode: Mode, instructions: &Instructions) -> String {
    match mode {
        Mode::Plan => PLAN_PROMPT.to_owned(),
        Mode::Default
        | Mode::AcceptEdits
        | Mode::DontAsk
        | Mode::BypassPermissions
        | Mode::Approval
        | Mode::Readonly => match instructions.style.keeps_coding {
            true => format!("{}\n\n{}", BASE_PROMPT.trim(), CODING_PROMPT.trim()),
            false => BASE_PROMPT.to_owned(),
        },
    }
}

/// The form of answers. A plan has a form of its own, which only a chosen style extends.
fn style(mode: Mode, instructions: &Instructions) -> Option<String> {
    let is_wanted = mode != Mode::Plan || !instructions.style.is_default();
    is_wanted.then(|| instructions.style.text.clone())
}

fn language(instructions: &Instructions) -> String {
    match &instructions.language {
        // A name is one line: text of a settings file must not be able to begin another.
        Some(language) => format!("Answer in {}.", language.split_whitespace().collect::<Vec<_>>().join(" ")),
        None => match &instructions.locale {
            Some(locale) => format!(
                "Answer in the language of the user's message; where that does not tell one, in that of the user's editor \
                 ({locale})."
            ),
            None => "Answer in the language of the user's message.".to_owned(),
        },
    }
}

/// The day the session began: a date that moved on during a session would make every cached prompt worthless.
fn started(state: &SessionState) -> jiff::civil::Date {
    let first = state.main.items.began().unwrap_or_else(jiff::Timestamp::now);
    first.to_zoned(jiff::tz::TimeZone::system()).date()
}

fn environment(facts: &SystemFacts<'_>) -> String {
    let mut lines = vec![
        format!("Date: {}", facts.date),
        format!("System: {} {}{}", std::env::consts::OS, std::env::consts::ARCH, shells()),
        format!("Working directory: {}", facts.cwd),
    ];
    if facts.roots.len() > 1 {
        let others: Vec<_> = facts.roots.iter().skip(1).map(ToString::to_string).collect();
        lines.push(format!("Further workspace folders: {}", others.join(", ")));
    }
    if let Some(branch) = facts.branch {
        lines.push(format!("Git branch when the session began: {branch}"));
    }
    if let Some(worktree) = facts.worktree {
        lines.push(format!("\n{}", worktree.note_of_session()));
    }
    if !facts.overview.is_empty() {
        lines.push(format!("\n{}", facts.overview));
    }
    lines.join("\n")
}

#[cfg(test)]
mod tests;
