//! Files of users and projects that are read whole: settings, instructions, notes, skills and the like.
//!
//! Rule: whatever lies at a path, reading it neither blocks nor takes more memory than its bound: a pipe, a device
//! or a folder is no file, and a file that is too large is not read.

use std::fs::{File, OpenOptions};
use std::io::{self, Read};
use std::path::Path;

/// `FILE_FLAG_OPEN_REPARSE_POINT`: a link itself is opened.
#[cfg(windows)]
const OPEN_REPARSE_POINT: u32 = 0x0020_0000;

/// Opens a regular file for reading. Blocks on the disk.
///
/// # Errors
/// When it is not there, cannot be opened or is no regular file.
pub(crate) fn open(path: &Path) -> io::Result<File> {
    let no_file = || Err(io::Error::new(io::ErrorKind::InvalidInput, "it is no regular file"));
    // Asked for before it is opened: opening some devices does something.
    if !path.metadata()?.is_file() {
        return no_file();
    }
    let mut options = OpenOptions::new();
    options.read(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt;
        // A pipe that took the file's place since would wait for its other end.
        options.custom_flags(rustix::fs::OFlags::NONBLOCK.bits().cast_signed());
    }
    let file = options.open(path)?;
    if file.metadata()?.is_file() { Ok(file) } else { no_file() }
}

/// As [`read_start`], of a path whose links were followed when it was judged: a link that is in it now is not followed.
///
/// # Errors
/// As [`read_start`], and when the path has a link in it.
pub fn read_start_resolved(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    #[cfg(unix)]
    {
        let file =
            crate::beneath::open_file(path).map_err(|error| match crate::beneath::is_link(&error) {
                true => io::Error::other("a link took its place"),
                false => error,
            })?;
        if !file.metadata()?.is_file() {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is no regular file"));
        }
        start_of(file, most)
    }
    #[cfg(not(unix))]
    read_start(path, most)
}

/// Opens a file to write at its end. A link in its place is not followed, and a pipe is not waited for. Blocks on the disk.
///
/// # Errors
/// When it is not there, is a link, or cannot be opened.
pub fn append(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.append(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt;
        let flags = rustix::fs::OFlags::NOFOLLOW | rustix::fs::OFlags::NONBLOCK;
        options.custom_flags(flags.bits().cast_signed());
    }
    #[cfg(windows)]
    std::os::windows::fs::OpenOptionsExt::custom_flags(&mut options, OPEN_REPARSE_POINT);
    let file = options.open(path)?;
    // Elsewhere than on Unix a link itself was opened.
    if cfg!(unix) || !path.is_symlink() { Ok(file) } else { Err(io::Error::other("a link took its place")) }
}

/// The first bytes of a regular file, `most` of them at most. Blocks on the disk.
///
/// # Errors
/// As [`open`], and when it cannot be read.
pub fn read_start(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    start_of(open(path)?, most)
}

fn start_of(file: File, most: u64) -> io::Result<Vec<u8>> {
    // Room for all of it and one more byte, in which its end is seen: otherwise it is read in small pieces.
    let room = file.metadata()?.len().min(most).saturating_add(1);
    let mut bytes = Vec::with_capacity(usize::try_from(room).unwrap_or_default());
    file.take(most).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// A regular file of `most` bytes at most. Blocks on the disk.
///
/// # Errors
/// As [`open`], when it cannot be read, and when it is larger.
pub fn read(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    let bytes = read_start(path, most.saturating_add(1))?;
    if bytes.len() as u64 > most {
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, format!("it is larger than {most} bytes")));
    }
    Ok(bytes)
}

/// As [`read`], as text without byte order mark.
///
/// # Errors
/// As [`read`], and when it is not in UTF-8.
pub fn read_text(path: &Path, most: u64) -> io::Result<String> {
    let no_text = |_| io::Error::new(io::ErrorKind::InvalidData, "it is not in UTF-8; save it so");
    let text = String::from_utf8(read(path, most)?).map_err(no_text)?;
    Ok(text.strip_prefix('\u{feff}').map(str::to_owned).unwrap_or(text))
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    #[test]
    fn a_file_is_read_whole_or_not_at_all() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("text");
        std::fs::write(&path, "\u{feff}text").unwrap();
        assert_eq!(read_text(&path, 7).unwrap(), "text");
        assert_eq!(read_start(&path, 3).unwrap(), "\u{feff}".as_bytes());
        assert!(read_text(&path, 6).unwrap_err().to_string().contains("larger than 6 bytes"));
        std::fs::write(&path, [0xff]).unwrap();
        assert!(read_text(&path, 6).unwrap_err().to_string().contains("UTF-8"));
        assert_eq!(read(&folder.path().join("none"), 1).unwrap_err().kind(), io::ErrorKind::NotFound);
    }

    #[test]
    fn what_is_no_file_is_neither_waited_for_nor_read() {
        let folder = tempfile::tempdir().unwrap();
        let (pipe, endless) = (folder.path().join("pipe"), folder.path().join("endless"));
        assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        std::os::unix::fs::symlink("/dev/zero", &endless).unwrap();
        for path in [&pipe, &endless, &folder.path().to_path_buf()] {
            let error = read(path, 1 << 40).unwrap_err();
            assert!(error.to_string().contains("no regular file"), "{}: {error}", path.display());
        }
    }
}
