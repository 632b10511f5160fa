//! The container engine of this machine, which two variables name for tests and benchmarks.
//!
//! Rule: a benchmark without an engine prints that it did not measure one.

use serde_json::{Value, json};

/// The arguments of an engine and an image at the end, separated by spaces: `podman --runtime runc localhost/image:1`.
pub const ENGINE: &str = "KODE_LS_ENGINE";

/// Options of its `run`, separated by spaces.
pub const OPTIONS: &str = "KODE_LS_ENGINE_OPTIONS";

/// The value of `sandbox.remote` for the engine that the variables name; nothing where they name none.
///
/// # Panics
/// When there is no image.
#[must_use]
pub fn named() -> Option<Value> {
    let words = |name: &str| -> Vec<String> {
        std::env::var(name).unwrap_or_default().split_whitespace().map(str::to_owned).collect()
    };
    let mut engine = words(ENGINE);
    let image = engine.pop()?;
    assert!(!engine.is_empty(), "{ENGINE} names an image and no engine");
    Some(json!({ "engine": engine, "image": image, "options": words(OPTIONS) }))
}
