//! Names, places and small values that every layer speaks, and how a file is written safely.
//!
//! Layer: knows nothing of models, tools, sessions, settings, editors. Used by everything.

pub mod atomic;
pub mod blocking;
pub mod broker;
pub mod call;
pub mod effort;
pub mod encoding;
pub mod folder_watch;
pub mod ids;
pub mod mask;
pub mod mode;
pub mod paths;
pub mod question;
pub mod regular;
pub mod reminder;
pub mod secret;
pub mod secret_places;
pub mod todo;
pub mod variables;
pub mod vcs;
pub mod watch;

pub use blocking::blocking;
pub use reminder::reminder;
