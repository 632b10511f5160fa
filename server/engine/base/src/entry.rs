//! The kinds of things that a name in a folder represents.
//!
//! Rule: links are not followed.

/// The kinds of things that a name represents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EntryType {
    /// A regular file.
    File,
    /// A folder.
    Folder,
    /// A symbolic link.
    Link,
    /// A device, a pipe or a socket.
    Other,
}
