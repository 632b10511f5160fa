//! The harness of the end-to-end tests: the built program, scripted editors and a scripted model.
//!
//! Rule: nothing here knows the insides of the program; the tests check the wire. Every wait is for
//! something that happens, with one generous limit, and never for a time; whatever is started is ended by its handle.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a harness fails a test by panicking")]

mod acp;
mod aimock;
pub mod behaviors;
mod binary;
mod client;
mod connection;
pub mod distortion;
mod editor;
pub mod engine;
pub mod history;
pub mod keyboard;
pub mod measure;
mod model;
mod position;
mod process;
mod project;
mod rotel;
mod script;
mod session;
pub mod strings;
pub mod system;
pub mod trend;

pub use acp::{AcpClient, updates_of};
pub use aimock::Aimock;
pub use binary::binary;
pub use client::{Client, Offer};
pub use connection::{Connection, Framing, Received, Reply, RpcError, conforms, frame};
pub use editor::{Act, Editor, Policy, ReceivedEdit, SaveReason, Typing, Writer};
pub use model::{ScriptedModel, results_of, text_of};
pub use position::{Encoding, offset_of, position_of};
pub use process::{Output, Process, run, run_program};
pub use project::{Project, copy_folder, git};
pub use rotel::Rotel;
pub use script::{Script, Step, call, say, step, summarize};
pub use session::Session;

use std::time::Duration;

/// The one limit of all waits. No test needs nearly so long on a machine that works.
pub const LIMIT: Duration = Duration::from_secs(60);
