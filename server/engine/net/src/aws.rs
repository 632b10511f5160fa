//! The two parts of AWS' protocols that models behind Bedrock need: signed requests and event streams.
//!
//! Rule: both are small and fixed by public specifications, so they are our own: the AWS crates bring some dozens of
//! crates for them. Independent implementations judge both in the tests.

pub mod event_stream;
pub mod sign;
