//! SKELETON
use crate::model::*;
use std::sync::Arc;
#[derive(Clone, Debug)]
pub struct Profile {
    pub name: String,
    pub max_attempts: u32,
    pub max_tokens: u32,
    pub temperature: Option<f32>,
    pub top_p: Option<f32>,
    pub effort: Option<Effort>,
    pub context_window: u64,
    pub model: String,
}
impl Profile {
    pub fn demo() -> Self {
        unimplemented!()
    }
}
pub async fn connect(_profile: &Profile) -> Result<Arc<dyn Model>, ModelError> {
    unimplemented!()
}
