//! SKELETON
/// How a text is written on disk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TextFormat {}
