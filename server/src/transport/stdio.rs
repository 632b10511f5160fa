//! Standard input and output as files.
//!
//! Rule: one system call for each read or write. Those of the standard library go through buffers of their own:
//! input is handed over in small pieces, and output is cut behind its last line break, which a frame has in its middle.

use std::fs::File;
use std::io;
#[cfg(unix)]
use std::os::fd::AsFd;
#[cfg(windows)]
use std::os::windows::io::AsHandle;

/// Standard input and standard output.
///
/// # Errors
/// When one of them is closed, or the process has no descriptor left.
pub fn open() -> io::Result<(tokio::fs::File, tokio::fs::File)> {
    #[cfg(unix)]
    let (input, output) =
        (io::stdin().as_fd().try_clone_to_owned()?, io::stdout().as_fd().try_clone_to_owned()?);
    #[cfg(windows)]
    let (input, output) =
        (io::stdin().as_handle().try_clone_to_owned()?, io::stdout().as_handle().try_clone_to_owned()?);
    Ok((tokio::fs::File::from_std(File::from(input)), tokio::fs::File::from_std(File::from(output))))
}
