//! One writer at a time for a file that several processes and threads write.
//!
//! Rule: the lock ends with its holder, however that ends, and waiting for it has an end.

use std::fs::{File, OpenOptions, TryLockError};
use std::time::{Duration, Instant};

use sha2::{Digest, Sha256};

use super::SettingsError;
use kode_base::paths::AbsPath;

/// The folder of lock files in the state folder.
const FOLDER: &str = "locks";
/// How long a writer waits for another.
const PATIENCE: Duration = Duration::from_secs(10);
/// How often it looks.
const INTERVAL: Duration = Duration::from_millis(5);

/// The right to write a file. Blocks other holders until it is dropped.
pub(crate) struct Lock {
    _file: File,
}

impl Lock {
    /// Waits for the right to write a file, which is given with all links followed.
    pub(crate) fn take(state: &AbsPath, file: &AbsPath) -> Result<Self, SettingsError> {
        let folder = state.join(FOLDER);
        let failed = |source| SettingsError::Io { file: folder.clone(), source };
        std::fs::create_dir_all(folder.as_path()).map_err(failed)?;
        let digest = Sha256::digest(file.as_path().as_os_str().as_encoded_bytes());
        let number = digest.iter().take(8).fold(0_u64, |number, byte| number << 8 | u64::from(*byte));
        let lock = folder.join(format!("{number:016x}.lock"));
        let opened = OpenOptions::new().create(true).truncate(false).write(true).open(lock.as_path());
        let opened = opened.map_err(failed)?;
        let end = Instant::now() + PATIENCE;
        loop {
            match opened.try_lock() {
                Ok(()) => return Ok(Self { _file: opened }),
                Err(TryLockError::WouldBlock) if Instant::now() < end => std::thread::sleep(INTERVAL),
                Err(TryLockError::WouldBlock) => return Err(SettingsError::Busy { file: file.clone() }),
                Err(TryLockError::Error(source)) => return Err(failed(source)),
            }
        }
    }
}
