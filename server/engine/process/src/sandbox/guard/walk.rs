//! The survey of the folders that commands may write in, where the system names no folders in which something has changed.
//!
//! Rule: a walk is good until something may have happened: a command that begins or ends, and a file that was set aside.

use std::io;
use std::os::fd::BorrowedFd;

use super::survey::{GuardScope, GuardSurvey};

/// A survey, made again when it may be outdated.
#[derive(Debug)]
pub(super) struct SurveyCache {
    ground: GuardScope,
    survey: GuardSurvey,
    is_stale: bool,
}

impl SurveyCache {
    /// Knows nothing yet.
    pub(super) fn new(ground: GuardScope) -> Self {
        Self { ground, survey: GuardSurvey::default(), is_stale: true }
    }

    /// The survey as of the last moment at which something may have happened.
    ///
    /// # Errors
    /// Why a folder could not be walked; the next call walks again.
    pub(super) fn refresh(&mut self) -> io::Result<&GuardSurvey> {
        if self.is_stale {
            self.survey = GuardSurvey::of(&self.ground)?;
            self.is_stale = false;
        }
        Ok(&self.survey)
    }

    /// Has the next refresh walk through everything.
    pub(super) fn invalidate(&mut self) {
        self.is_stale = true;
    }

    /// Says that something may have happened.
    pub(super) fn expire(&mut self) {
        self.is_stale = true;
    }

    /// The queue of changes, which this system lacks.
    pub(super) fn queue(&self) -> Option<BorrowedFd<'_>> {
        None
    }
}
