//! SKELETON
use crate::model::ModelError;
use std::time::Duration;
#[derive(Clone, Default)]
pub struct RetryPolicy {
    pub max_attempts: u32,
    pub x: u32,
}
pub enum Retry {
    After(Duration),
    Never,
}
pub fn decide(_e: &ModelError, _a: u32, _p: &RetryPolicy, _j: f64) -> Retry {
    unimplemented!()
}
