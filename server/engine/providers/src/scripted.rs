//! The scripted model: a server on loopback that speaks all wire formats and plays a script, for the demo and for
//! tests.
//!
//! Rule: to its clients it is a real API: it streams, refuses histories the API would refuse, and fails in the
//! ways its script says. It serves this machine only and stops when its handle is dropped.

mod log;
mod memory;
mod playback;
mod question;
mod refusal;
mod route;
mod scenes;
mod script;
mod sealed;
mod server;
mod timed;
mod validate;

pub use script::{Quirks, Script, ScriptContent, ScriptFault, ScriptProgram, ScriptStep, StepUsage};
pub use server::ScriptedServer;
