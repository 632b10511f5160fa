//! Pipes on Unix.
//!
//! Rule: see the module above. The end of the server never blocks, and the program's end does.

use std::io;

pub use std::io::{PipeReader as ProgramReader, PipeWriter as ProgramWriter};
pub use tokio::net::unix::pipe::{Receiver, Sender};

pub(super) fn from_program() -> io::Result<(Receiver, ProgramWriter)> {
    let (reader, writer) = io::pipe()?;
    Ok((Receiver::from_owned_fd(reader.into())?, writer))
}

pub(super) fn to_program() -> io::Result<(ProgramReader, Sender)> {
    let (reader, writer) = io::pipe()?;
    Ok((reader, Sender::from_owned_fd(writer.into())?))
}
