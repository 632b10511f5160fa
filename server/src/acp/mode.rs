//! Permission modes in the words of the protocol.

use agent_client_protocol_schema::v1::{SessionMode, SessionModeState};
use kode_engine::base::mode::Mode;

/// The modes, with the current one.
pub(super) fn state(current: Mode) -> SessionModeState {
    let mode =
        |mode: &Mode| SessionMode::new(mode.name(), mode.label()).description(description(*mode).to_owned());
    SessionModeState::new(current.name(), Mode::ALL.iter().map(mode).collect())
}

/// The effect of a mode, on one line.
pub(super) fn description(mode: Mode) -> &'static str {
    match mode {
        Mode::Default => "Reads run. Edits and commands ask.",
        Mode::AcceptEdits => "Reads run, and edits in the workspace. Commands ask.",
        Mode::Plan => "Reads run. Edits and commands are denied until you accept a plan.",
        Mode::DontAsk => "Reads run, and calls that a rule allows. Other calls are denied.",
        Mode::BypassPermissions => "All calls run unless a rule or a guard denies them.",
        Mode::Approval => "All calls ask, reads included.",
        Mode::Readonly => "Reads run. Edits are denied. Commands ask.",
    }
}
