//! Changes to the table of mounts.
//!
//! Rule: a table that cannot be asked counts as changed: another disk may lie over any path.

use std::fs::File;
use std::io;

use rustix::event::{PollFd, PollFlags, Timespec, poll};

/// The table of mounts of this process.
#[derive(Debug)]
pub struct MountTable(File);

impl MountTable {
    /// The table as it is now.
    ///
    /// # Errors
    /// When the system does not show it.
    pub fn open() -> io::Result<Self> {
        Ok(Self(File::open("/proc/self/mountinfo")?))
    }

    /// Whether it has changed since this was asked before, or since it was opened.
    #[must_use]
    pub fn has_changed(&self) -> bool {
        // It is ready with an exception after each change.
        let mut asked = [PollFd::new(&self.0, PollFlags::PRI)];
        match poll(&mut asked, Some(&Timespec::default())) {
            Ok(_) => asked[0].revents().intersects(PollFlags::PRI | PollFlags::ERR),
            Err(_) => true,
        }
    }
}
