//! Hooks as settings and front matter declare them.
//!
//! Rule: parsing only; what runs a hook is the loop.

pub mod config;
pub mod declared;
pub mod event;
pub mod matcher;
