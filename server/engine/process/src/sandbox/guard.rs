//! Guarded files: those that steer other programs, so that who writes them runs code outside the sandbox later.
//!
//! Rule: what is there is found anew for each command, three levels deep; what is not there gets no stand-in, it is
//! looked for afterwards. Putting back never destroys what it replaces: that is set aside first.

mod restore;
mod survey;

pub(crate) use restore::GuardSnapshot;
pub(crate) use survey::{GuardSurvey, GuardedPath};

#[cfg(test)]
mod tests;
