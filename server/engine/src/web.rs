//! The web as tools see it: pages as text, and searches.
//!
//! Rule: what comes from the web is data of bounded size, and no page reaches what lies behind this machine's
//! network: only checked addresses are connected to.

pub mod address;
mod body;
mod cache;
pub mod client;
mod convert;
mod error;
mod markdown;
pub mod search;
#[cfg(test)]
pub(crate) mod testing;

pub use client::{Fetched, Page, WebClient, WebOptions};
pub use error::WebError;
