//! Hooks on the wire.
//!
//! Rule: values only, no decisions; lines are counted from 1, as people count them.

use kode_engine::agent::hooks::{HookInfo, HookList, HookOwner, HookOwnerKind};
use kode_engine::config::settings::declared::Approval;
use kode_engine::record::hook::HookOutcome;
use kode_protocol as wire;

use crate::convert::{rules, timestamp};

/// The hooks there are, and their problems.
#[must_use]
pub fn list(list: HookList) -> wire::ListHooksResult {
    wire::ListHooksResult {
        disabled: list.is_disabled,
        hooks: list.hooks.into_iter().map(info).collect(),
        problems: list.problems.into_iter().map(rules::problem).collect(),
    }
}

fn info(hook: HookInfo) -> wire::HookInfo {
    let bringer = |of: HookOwner| wire::HookOwner {
        kind: match of.kind {
            HookOwnerKind::Agent => wire::HookOwnerKind::Agent,
            HookOwnerKind::Skill => wire::HookOwnerKind::Skill,
            HookOwnerKind::Command => wire::HookOwnerKind::Command,
        },
        name: of.name,
    };
    wire::HookInfo {
        bringer: hook.owner.map(bringer),
        source: hook.source.to_string(),
        line: hook.source.place.map(|place| place.line + 1),
        file: hook.source.file.map(|file| file.to_string()),
        event: hook.event,
        fired: hook.is_fired,
        matcher: hook.matcher,
        kind: hook.kind,
        name: hook.head,
        approval: match hook.approval {
            Approval::NotNeeded => wire::HookApproval::NotNeeded,
            Approval::Approved => wire::HookApproval::Approved,
            Approval::Waiting(_) => wire::HookApproval::Waiting,
        },
        problem: hook.problem,
        last: hook.last.map(|last| wire::HookLastRun {
            at: timestamp(last.at),
            outcome: outcome(last.outcome),
            duration_ms: last.duration_ms,
            message: last.message,
        }),
    }
}

/// The run of a hook, as an event.
pub(super) fn ran(
    event: String,
    name: String,
    duration_ms: u64,
    outcome: HookOutcome,
    message: Option<String>,
) -> wire::Event {
    wire::Event::HookRan(wire::HookRan { event, name, duration_ms, outcome: self::outcome(outcome), message })
}

/// How a run ended.
#[must_use]
pub fn outcome(outcome: HookOutcome) -> wire::HookOutcome {
    match outcome {
        HookOutcome::Ok => wire::HookOutcome::Ok,
        HookOutcome::Blocked => wire::HookOutcome::Blocked,
        HookOutcome::Asked => wire::HookOutcome::Asked,
        HookOutcome::Changed => wire::HookOutcome::Changed,
        HookOutcome::Stopped => wire::HookOutcome::Stopped,
        HookOutcome::Failed => wire::HookOutcome::Failed,
        HookOutcome::NotSetUp => wire::HookOutcome::NotSetUp,
        HookOutcome::TimedOut => wire::HookOutcome::TimedOut,
        HookOutcome::Cancelled => wire::HookOutcome::Cancelled,
        HookOutcome::InBackground => wire::HookOutcome::InBackground,
    }
}
