//! The end-to-end tests: one binary, one module for each side of the program.
//!
//! Rule: every test has its own project, server and model, so that all may run side by side; a test waits for what
//! the program says, never for a time. Modules that need Unix itself (its shell, links, modes, signals) or read only the sources
//! of this project are left out on Windows.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests fail by panicking")]

mod acp;
mod agents;
mod alerts;
mod asides;
#[cfg(unix)]
mod background;
mod behaviors;
mod catalogue;
mod chat;
#[cfg(unix)]
mod checkpoints;
mod client_tools;
mod coediting;
mod command_line;
mod commands;
mod config;
mod context;
mod crash;
mod dialects;
#[cfg(unix)]
mod documentation;
mod faults;
mod gate;
mod goals;
mod guests;
#[cfg(unix)]
mod harness;
#[cfg(unix)]
mod headers;
mod headless;
#[cfg(unix)]
mod hooks;
#[cfg(unix)]
mod hostile;
mod hunks;
mod input;
mod languages;
#[cfg(unix)]
mod layers;
mod local;
mod mcp;
mod models;
#[cfg(unix)]
mod names;
#[cfg(unix)]
mod newcomer;
#[cfg(unix)]
mod outliving;
mod paging;
mod panel;
mod patches;
mod permissions;
mod pipes;
mod plain;
mod plugins;
#[cfg(unix)]
mod powershell;
mod prompts;
mod providers;
mod questions;
mod queue;
#[cfg(unix)]
mod red_team;
#[cfg(target_os = "linux")]
mod remote_sandbox;
#[cfg(unix)]
mod repository;
mod resume;
mod review;
#[cfg(unix)]
mod sandbox;
#[cfg(unix)]
mod sandbox_profiles;
mod schedules;
mod session_worktrees;
mod sessions;
#[cfg(unix)]
mod source;
mod spellings;
mod steering;
mod styles;
mod survival;
mod teams;
mod telemetry;
mod transfer;
mod transport;
mod trend;
mod trust;
mod turn;
mod two_servers;
mod typing;
#[cfg(unix)]
mod voice;
#[cfg(unix)]
mod worktrees;
