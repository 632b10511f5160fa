//! The end-to-end tests: one binary, one module for each side of the program.
//!
//! Rule: every test has its own project, server and model, so that all may run side by side; a test waits for what
//! the program says, never for a time.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests fail by panicking")]

mod acp;
mod agents;
mod alerts;
mod asides;
mod background;
mod behaviors;
mod catalogue;
mod chat;
mod checkpoints;
mod client_tools;
mod coediting;
mod command_line;
mod commands;
mod config;
mod context;
mod crash;
mod dialects;
mod documentation;
mod faults;
mod gate;
mod goals;
mod guests;
mod harness;
mod headers;
mod headless;
mod hooks;
mod hostile;
mod hunks;
mod input;
mod languages;
mod layers;
mod local;
mod mcp;
mod models;
mod names;
mod newcomer;
mod paging;
mod panel;
mod patches;
mod permissions;
mod pipes;
mod plain;
mod plugins;
mod prompts;
mod providers;
mod questions;
mod queue;
mod red_team;
mod repository;
mod resume;
mod review;
mod sandbox;
mod sandbox_profiles;
mod schedules;
mod session_worktrees;
mod sessions;
mod source;
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
mod voice;
mod worktrees;
