//! Pipes between the server and the programs that it starts.
//!
//! Rule: the server's end is asynchronous, so that a wait for it can be cancelled; the program's end is an ordinary blocking
//! one. The reading end is at its end once no process holds the writing end any more.

#[cfg(unix)]
#[path = "pipes/unix.rs"]
mod system;
#[cfg(windows)]
#[path = "pipes/windows.rs"]
mod system;

use std::io;

pub use system::{ProgramReader, ProgramWriter, Receiver, Sender};

/// A pipe that a program writes to.
///
/// # Errors
/// When the system has no more of them.
pub fn from_program() -> io::Result<(Receiver, ProgramWriter)> {
    system::from_program()
}

/// A pipe that a program reads from.
///
/// # Errors
/// When the system has no more of them.
pub fn to_program() -> io::Result<(ProgramReader, Sender)> {
    system::to_program()
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};

    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    use super::*;

    #[tokio::test]
    async fn both_ends_of_a_pipe_carry_bytes_to_the_end() {
        let (mut receiver, mut writer) = from_program().unwrap();
        let second = writer.try_clone().unwrap();
        writer.write_all(b"one ").unwrap();
        drop(writer);
        let mut second = second;
        second.write_all(b"two").unwrap();
        drop(second);
        let mut read = String::new();
        receiver.read_to_string(&mut read).await.unwrap();
        assert_eq!(read, "one two");

        let (mut reader, mut sender) = to_program().unwrap();
        sender.write_all(b"three").await.unwrap();
        drop(sender);
        let mut read = String::new();
        reader.read_to_string(&mut read).unwrap();
        assert_eq!(read, "three");
    }

    #[tokio::test]
    async fn a_read_can_be_dropped_and_nothing_is_lost() {
        let (mut receiver, mut writer) = from_program().unwrap();
        let mut byte = [0];
        {
            let mut read = std::pin::pin!(receiver.read(&mut byte));
            assert!(futures::poll!(&mut read).is_pending());
        }
        writer.write_all(b"x").unwrap();
        receiver.read_exact(&mut byte).await.unwrap();
        assert_eq!(&byte, b"x");
    }
}
