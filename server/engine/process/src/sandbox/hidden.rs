//! A filter of paths that commands are not to see.
//!
//! Rule: a filter is asked again for each walk, so that it is as current as the files that it reads.

#[cfg(any(target_os = "linux", target_os = "macos"))]
use std::ffi::OsStr;
use std::fmt;
use std::path::Path;
use std::sync::Arc;

/// Which paths are not to be seen, besides those of the policy: by a rule of the user, say.
#[derive(Clone)]
#[cfg_attr(
    not(any(target_os = "linux", target_os = "macos")),
    expect(dead_code, reason = "no walk asks it without a sandbox")
)]
pub struct HiddenFilter {
    key: String,
    deciding: &'static [&'static str],
    look: Arc<dyn Fn() -> PathTest + Send + Sync>,
}

/// Asked with a path and whether it is a folder.
pub type PathTest = Box<dyn Fn(&Path, bool) -> bool>;

impl HiddenFilter {
    /// A filter that differs from others by `key`. Each walk takes one `look`, which is asked with a path and whether it is a
    /// folder. Files of the names `deciding` hide paths beneath their folders: they are guarded, and a change of one
    /// repeats the whole walk.
    pub fn new(
        key: String,
        deciding: &'static [&'static str],
        look: impl Fn() -> PathTest + Send + Sync + 'static,
    ) -> Self {
        Self { key, deciding, look: Arc::new(look) }
    }

    /// The test of one walk.
    #[cfg(any(target_os = "linux", target_os = "macos"))]
    pub(super) fn look(&self) -> PathTest {
        (self.look)()
    }

    /// The names of files that hide others.
    #[cfg(target_os = "linux")]
    pub(super) fn deciding(&self) -> &'static [&'static str] {
        self.deciding
    }

    /// Whether files of that name hide others.
    #[cfg(any(target_os = "linux", target_os = "macos"))]
    pub(super) fn is_deciding(&self, name: &OsStr) -> bool {
        self.deciding.iter().any(|other| name.eq_ignore_ascii_case(other))
    }
}

impl fmt::Debug for HiddenFilter {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_tuple("HiddenFilter").field(&self.key).finish()
    }
}

impl PartialEq for HiddenFilter {
    fn eq(&self, other: &Self) -> bool {
        self.key == other.key
    }
}
