//! A disk that counts its calls and fails at the one that a test names.
//!
//! Rule: a call that fails does nothing, but for a short write, which writes a part, and a failed sync, after which the
//! bytes it should have written are not written by the next one either.

use std::ffi::OsString;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use kode_journal::disk::{Disk, DiskFile, OpenMode};
use parking_lot::Mutex;

/// The failing operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// No room: whatever needs some is refused.
    NoSpace,
    /// The disk does not answer.
    Io,
    /// A signal came.
    Interrupted,
    /// Only a part is written.
    ShortWrite,
    /// The process is gone: nothing happens any more. Always for ever.
    Crash,
}

/// Which calls fail.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    /// The failing operation.
    pub fault: Fault,
    /// The number of the first call that fails, counted from 1.
    pub at: u64,
    /// Whether all later ones fail as well.
    pub for_ever: bool,
}

/// A disk that fails by plan. Clones are the same disk.
#[derive(Clone, Debug)]
pub struct Faulty {
    inner: Arc<dyn Disk>,
    faults: Arc<Faults>,
}

#[derive(Debug, Default)]
struct Faults {
    plan: Mutex<Option<Plan>>,
    calls: AtomicU64,
    failures: AtomicU64,
    syncs: AtomicU64,
}

impl Faulty {
    /// A disk that works until `plan` says otherwise.
    pub fn new(inner: Arc<dyn Disk>, plan: Option<Plan>) -> Self {
        let faults = Faults { plan: Mutex::new(plan), ..Faults::default() };
        Self { inner, faults: Arc::new(faults) }
    }

    /// From the next call on all fail, or none does.
    pub fn fail_from_now_on(&self, fault: Option<Fault>) {
        let mut plan = self.faults.plan.lock();
        let at = self.calls() + 1;
        *plan = fault.map(|fault| Plan { fault, at, for_ever: true });
    }

    /// How many calls the plan has made fail.
    pub fn failures(&self) -> u64 {
        self.faults.failures.load(Ordering::SeqCst)
    }

    /// How many calls there were.
    pub fn calls(&self) -> u64 {
        self.faults.calls.load(Ordering::SeqCst)
    }

    /// How many syncs of files there were.
    pub fn syncs(&self) -> u64 {
        self.faults.syncs.load(Ordering::SeqCst)
    }
}

impl Faults {
    /// Counts a call and says how it fails. `applies` tells the faults that concern the call. The count and the plan are
    /// read under one lock, so a plan that is replaced has failed exactly the calls before.
    fn next(&self, applies: impl FnOnce(Fault) -> bool) -> Option<Fault> {
        let plan = self.plan.lock();
        let call = self.calls.fetch_add(1, Ordering::SeqCst) + 1;
        let plan = (*plan)?;
        let is_due = call == plan.at || call > plan.at && (plan.for_ever || plan.fault == Fault::Crash);
        let fails = is_due && applies(plan.fault);
        self.failures.fetch_add(u64::from(fails), Ordering::SeqCst);
        fails.then_some(plan.fault)
    }

    /// A call that takes room, or none.
    fn call(&self, takes_room: bool) -> io::Result<()> {
        let applies = |fault| match fault {
            Fault::NoSpace => takes_room,
            Fault::ShortWrite => false,
            Fault::Io | Fault::Interrupted | Fault::Crash => true,
        };
        match self.next(applies) {
            Some(Fault::NoSpace) => Err(io::ErrorKind::StorageFull.into()),
            Some(Fault::Io) => Err(io::Error::other("input/output error")),
            Some(Fault::Interrupted) => Err(io::ErrorKind::Interrupted.into()),
            Some(Fault::Crash) => Err(io::Error::other("the process is gone")),
            Some(Fault::ShortWrite) | None => Ok(()),
        }
    }
}

impl Disk for Faulty {
    fn open(&self, path: &Path, how: OpenMode) -> io::Result<Arc<dyn DiskFile>> {
        self.faults.call(matches!(how, OpenMode::Create | OpenMode::New))?;
        let inner = self.inner.open(path, how)?;
        Ok(Arc::new(FaultyFile { inner, faults: Arc::clone(&self.faults) }))
    }

    fn make_folder(&self, path: &Path) -> io::Result<bool> {
        self.faults.call(true)?;
        self.inner.make_folder(path)
    }

    fn list(&self, folder: &Path) -> io::Result<Vec<OsString>> {
        self.faults.call(false)?;
        self.inner.list(folder)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.faults.call(true)?;
        self.inner.rename(from, to)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        self.faults.call(false)?;
        self.inner.remove(path)
    }

    fn sync_folder(&self, folder: &Path) -> io::Result<()> {
        self.faults.call(true)?;
        self.inner.sync_folder(folder)
    }
}

#[derive(Debug)]
struct FaultyFile {
    inner: Arc<dyn DiskFile>,
    faults: Arc<Faults>,
}

impl DiskFile for FaultyFile {
    fn try_lock(&self) -> io::Result<bool> {
        self.faults.call(false)?;
        self.inner.try_lock()
    }

    fn unlock(&self) -> io::Result<()> {
        self.inner.unlock()
    }

    fn size(&self) -> io::Result<u64> {
        self.faults.call(false)?;
        self.inner.size()
    }

    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        self.faults.call(false)?;
        self.inner.read_at(buffer, offset)
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<usize> {
        let half = &bytes[..bytes.len().div_ceil(2)];
        match self.faults.next(|_| true) {
            // A disk that fills up takes what still fits.
            Some(Fault::NoSpace) => {
                self.inner.write_at(&bytes[..bytes.len() / 3], offset)?;
                Err(io::ErrorKind::StorageFull.into())
            }
            Some(Fault::ShortWrite) => self.inner.write_at(half, offset),
            Some(Fault::Io) => Err(io::Error::other("input/output error")),
            Some(Fault::Interrupted) => Err(io::ErrorKind::Interrupted.into()),
            Some(Fault::Crash) => Err(io::Error::other("the process is gone")),
            None => self.inner.write_at(bytes, offset),
        }
    }

    fn truncate(&self, length: u64) -> io::Result<()> {
        self.faults.call(false)?;
        self.inner.truncate(length)
    }

    fn sync(&self) -> io::Result<()> {
        self.faults.syncs.fetch_add(1, Ordering::SeqCst);
        self.faults.call(true).inspect_err(|_| self.inner.fail_sync())?;
        self.inner.sync()
    }
}
