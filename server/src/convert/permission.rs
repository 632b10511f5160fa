//! Between permission prompts and their answers in the engine and on the wire.
//!
//! Rule: values only, no decisions; matches are exhaustive.

use kode_engine::base::ids::{PermissionId, SessionId};
use kode_engine::base::proposed::ProposedDiagnostics;
use kode_engine::permission::{
    Offer, PermissionOutcome, PermissionPrompt, PermissionResolution, Preview, Scope,
};
use kode_protocol as wire;

use crate::convert::{agent_id, call_id, item_id, mode, permission_id, session_id, timestamp};
use crate::display::{both_ends, prompt_lines};

/// The text of a prompt is cut to this many characters, both ends kept.
const PROMPT_TEXT_LIMIT: usize = 20_000;

/// A permission prompt of a session.
#[must_use]
pub fn prompt(session: &SessionId, prompt: PermissionPrompt) -> wire::PermissionPrompt {
    let text = both_ends(&prompt_lines(&prompt).join("\n"), PROMPT_TEXT_LIMIT);
    wire::PermissionPrompt {
        text,
        session_id: session_id(session),
        permission_id: permission_id(&prompt.id),
        call_id: call_id(&prompt.call),
        item_id: item_id(&prompt.item),
        agent_id: prompt.agent.as_ref().map(agent_id),
        tool: prompt.tool,
        title: prompt.title,
        reason: prompt.reason,
        preview: match prompt.preview {
            Preview::Command { command, cwd, sandboxed } => {
                wire::Preview::Command(wire::CommandPreview { command, cwd, sandboxed })
            }
            Preview::Diff { paths, unified } => wire::Preview::Diff(wire::DiffPreview { paths, unified }),
            Preview::Paths { paths } => wire::Preview::Paths(wire::PathsPreview { paths }),
        },
        risks: prompt.risks,
        notes: prompt.notes,
        diagnostics: prompt.diagnostics.map(proposed_diagnostics),
        scopes: prompt.scopes.into_iter().map(scope).collect(),
        offers: prompt.offers.into_iter().map(offer).collect(),
        mode: prompt.mode.map(mode),
        input: prompt.input,
        timestamp: timestamp(prompt.timestamp),
    }
}

fn offer(offer: Offer) -> wire::Offer {
    wire::Offer {
        scope: scope(offer.scope),
        rules: offer.rules,
        spared: offer.spared.map(|spared| wire::RuleCoverage { matched: spared.matched, of: spared.of }),
    }
}

pub(super) fn scope(scope: Scope) -> wire::Scope {
    match scope {
        Scope::Once => wire::Scope::Once,
        Scope::Session => wire::Scope::Session,
        Scope::Project => wire::Scope::Project,
        Scope::User => wire::Scope::User,
    }
}

/// How far a client wants a yes to reach.
#[must_use]
pub fn scope_from_wire(scope: wire::Scope) -> Scope {
    match scope {
        wire::Scope::Once => Scope::Once,
        wire::Scope::Session => Scope::Session,
        wire::Scope::Project => Scope::Project,
        wire::Scope::User => Scope::User,
    }
}

pub(super) fn proposed_diagnostics(diagnostics: ProposedDiagnostics) -> wire::ProposedDiagnostics {
    wire::ProposedDiagnostics { summary: diagnostics.summary, lines: diagnostics.lines }
}

pub(super) fn updated(id: &PermissionId, diagnostics: ProposedDiagnostics) -> wire::Event {
    let (permission_id, diagnostics) = (permission_id(id), proposed_diagnostics(diagnostics));
    wire::Event::PermissionUpdated(wire::PermissionUpdated { permission_id, diagnostics })
}

pub(super) fn decided(decision: PermissionResolution) -> wire::PermissionDecided {
    wire::PermissionDecided {
        permission_id: permission_id(&decision.id),
        call_id: call_id(&decision.call),
        outcome: match decision.outcome {
            PermissionOutcome::Allow => wire::PermissionOutcome::Allow,
            PermissionOutcome::Deny => wire::PermissionOutcome::Deny,
            PermissionOutcome::Cancelled => wire::PermissionOutcome::Cancelled,
        },
        scope: scope(decision.scope),
        by: decision.by,
        feedback: decision.feedback,
    }
}
