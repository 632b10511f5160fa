//! The kinds of things that a name in a folder stands for.
//!
//! Rule: links are not followed.

/// The kinds of things that a name stands for.
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
