//! The sandbox of macOS: a policy in the language of Seatbelt, made of the policy that every kind of sandbox is given.
//!
//! Rule: text and paths are apart. The text holds rules, and names of the system; each path of the user is the value of a
//! parameter, so that no path is ever read as a rule. It is data on every system: only macOS applies it.

mod filter;
mod layers;
mod names;
mod profile;
#[cfg(test)]
mod tests;

pub(crate) use profile::{SeatbeltAccess, SeatbeltNetwork, SeatbeltProfile};
