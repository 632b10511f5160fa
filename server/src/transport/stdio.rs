//! Standard input and output without buffers.
//!
//! Rule: one system call for each read or write. Pipes and sockets wait in the runtime, everything else on a thread for each call.
//! Both ends stay blocking for the other processes that have them open.

use std::fs::File;
use std::io;
#[cfg(unix)]
use std::os::fd::{AsFd, OwnedFd};
#[cfg(windows)]
use std::os::windows::io::{AsHandle, OwnedHandle as OwnedFd};

use tokio::io::{AsyncRead, AsyncWrite};

/// Standard input.
pub type InputStream = Box<dyn AsyncRead + Send + Unpin>;
/// Standard output.
pub type OutputStream = Box<dyn AsyncWrite + Send + Unpin>;

/// Standard input and standard output. Must be called in a runtime.
///
/// # Errors
/// When one of them is closed, or the process has no descriptor left.
pub fn open() -> io::Result<(InputStream, OutputStream)> {
    #[cfg(unix)]
    let (input, output) =
        (io::stdin().as_fd().try_clone_to_owned()?, io::stdout().as_fd().try_clone_to_owned()?);
    #[cfg(windows)]
    let (input, output) =
        (io::stdin().as_handle().try_clone_to_owned()?, io::stdout().as_handle().try_clone_to_owned()?);
    Ok((input_of(input), output_of(output)))
}

fn input_of(input: OwnedFd) -> InputStream {
    #[cfg(target_os = "linux")]
    if let Some(path) = reopened(&input)
        && let Ok(pipe) = tokio::net::unix::pipe::OpenOptions::new().open_receiver(path)
    {
        return Box::new(pipe);
    }
    unless_pipe(input)
}

fn output_of(output: OwnedFd) -> OutputStream {
    #[cfg(target_os = "linux")]
    if let Some(path) = reopened(&output)
        && let Ok(pipe) = tokio::net::unix::pipe::OpenOptions::new().open_sender(path)
    {
        return Box::new(pipe);
    }
    unless_pipe(output)
}

/// A stream in both directions.
trait DuplexStream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> DuplexStream for T {}

/// The stream of a socket, a file, or a pipe that cannot be opened again.
fn unless_pipe(file: OwnedFd) -> Box<dyn DuplexStream> {
    #[cfg(unix)]
    let file = match socket::SharedSocket::new(file) {
        Ok(socket) => return Box::new(socket),
        Err(file) => file,
    };
    Box::new(tokio::fs::File::from_std(File::from(file)))
}

/// The path by which a pipe is opened again, for a state of its own. Not every system lets it, such as one without `/proc`.
#[cfg(target_os = "linux")]
fn reopened(file: &OwnedFd) -> Option<std::path::PathBuf> {
    let found = rustix::fs::fstat(file).ok()?;
    let is_pipe = rustix::fs::FileType::from_raw_mode(found.st_mode) == rustix::fs::FileType::Fifo;
    is_pipe.then(|| kode_engine::base::beneath::by_descriptor(file))
}

#[cfg(unix)]
mod socket {
    //! Sockets that stay blocking for others: editors with libuv, such as VS Code and Neovim, use them as standard streams.

    use std::io;
    use std::os::fd::OwnedFd;
    use std::pin::Pin;
    use std::task::{Context, Poll, ready};

    use rustix::fs::{FileType, fstat};
    use rustix::net::{RecvFlags, SendFlags, recv, send};
    use tokio::io::unix::AsyncFd;
    use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

    /// A stream socket each of whose calls says itself that it does not wait.
    #[derive(Debug)]
    pub(super) struct SharedSocket(AsyncFd<OwnedFd>);

    impl SharedSocket {
        /// The socket; a descriptor of another kind, or one that cannot be waited for, is given back.
        #[expect(deprecated, reason = "the descriptor is owned by it, and closed by nothing else")]
        pub(super) fn new(file: OwnedFd) -> Result<Self, OwnedFd> {
            let kind = fstat(&file).map(|found| FileType::from_raw_mode(found.st_mode));
            match kind {
                Ok(FileType::Socket) => {
                    AsyncFd::try_new(file).map(Self).map_err(|error| error.into_parts().0)
                }
                Ok(_) | Err(_) => Err(file),
            }
        }
    }

    impl AsyncRead for SharedSocket {
        fn poll_read(
            self: Pin<&mut Self>,
            context: &mut Context<'_>,
            buffer: &mut ReadBuf<'_>,
        ) -> Poll<io::Result<()>> {
            loop {
                let mut ready = ready!(self.0.poll_read_ready(context))?;
                let unfilled = buffer.initialize_unfilled();
                let received = ready.try_io(|socket| Ok(recv(socket, unfilled, RecvFlags::DONTWAIT)?.0));
                match received {
                    Ok(Ok(length)) => {
                        buffer.advance(length);
                        return Poll::Ready(Ok(()));
                    }
                    Ok(Err(error)) if error.kind() == io::ErrorKind::Interrupted => {}
                    Ok(Err(error)) => return Poll::Ready(Err(error)),
                    Err(_would_block) => {}
                }
            }
        }
    }

    impl AsyncWrite for SharedSocket {
        fn poll_write(
            self: Pin<&mut Self>,
            context: &mut Context<'_>,
            bytes: &[u8],
        ) -> Poll<io::Result<usize>> {
            loop {
                let mut ready = ready!(self.0.poll_write_ready(context))?;
                let sent = ready.try_io(|socket| Ok(send(socket, bytes, SendFlags::DONTWAIT)?));
                match sent {
                    Ok(Err(error)) if error.kind() == io::ErrorKind::Interrupted => {}
                    Ok(sent) => return Poll::Ready(sent),
                    Err(_would_block) => {}
                }
            }
        }

        fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Ok(()))
        }

        fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Ok(()))
        }
    }
}

#[cfg(test)]
#[cfg(unix)]
mod tests {
    use std::io::{Read, Write};
    use std::os::unix::net::UnixStream;
    use std::thread;

    use rustix::fs::{OFlags, fcntl_getfl};
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    use super::*;

    /// More than a pipe or a socket takes at once.
    const BYTES: usize = 4 << 20;

    fn file() -> (OwnedFd, OwnedFd) {
        let file = tempfile::tempfile().unwrap();
        (file.try_clone().unwrap().into(), file.into())
    }

    #[tokio::test]
    async fn what_is_written_arrives_whole_however_slowly_it_is_read() {
        let pipe = || {
            let (reader, writer) = io::pipe().unwrap();
            (OwnedFd::from(reader), OwnedFd::from(writer))
        };
        let socket = || {
            let (reader, writer) = UnixStream::pair().unwrap();
            (OwnedFd::from(reader), OwnedFd::from(writer))
        };
        for (reader, writer) in [pipe(), socket()] {
            let mut output = output_of(writer);
            let reading = thread::spawn(move || {
                let mut read = Vec::new();
                File::from(reader).read_to_end(&mut read).unwrap();
                read
            });
            let bytes: Vec<u8> = (0..BYTES).map(|at| (at % 251) as u8).collect();
            output.write_all(&bytes).await.unwrap();
            output.flush().await.unwrap();
            drop(output);
            assert!(reading.join().unwrap() == bytes);
        }
        for (reader, writer) in [pipe(), socket()] {
            let mut input = input_of(reader);
            let writing = thread::spawn(move || File::from(writer).write_all(&[7; BYTES]).unwrap());
            let mut read = Vec::new();
            input.read_to_end(&mut read).await.unwrap();
            writing.join().unwrap();
            assert_eq!(read.len(), BYTES);
        }
    }

    #[tokio::test]
    async fn a_file_is_written_and_read_as_well() {
        let (reader, writer) = file();
        let mut output = output_of(writer);
        output.write_all(b"text").await.unwrap();
        output.flush().await.unwrap();
        let mut read = String::new();
        // Both share one position.
        rustix::fs::seek(&reader, rustix::fs::SeekFrom::Start(0)).unwrap();
        input_of(reader).read_to_string(&mut read).await.unwrap();
        assert_eq!(read, "text");
    }

    #[tokio::test]
    async fn nothing_becomes_non_blocking_for_others_who_have_it() {
        let (reader, writer) = io::pipe().unwrap();
        let (one, other) = UnixStream::pair().unwrap();
        let shared = [OwnedFd::from(reader), writer.into(), one.into(), other.into()];
        let copy = |file: &OwnedFd| file.try_clone().unwrap();
        let _inputs = [input_of(copy(&shared[0])), input_of(copy(&shared[2]))];
        let _outputs = [output_of(copy(&shared[1])), output_of(copy(&shared[3]))];
        for file in &shared {
            assert!(!fcntl_getfl(file).unwrap().contains(OFlags::NONBLOCK));
        }
    }

    #[tokio::test]
    async fn a_reader_that_is_gone_is_an_error() {
        let (reader, writer) = io::pipe().unwrap();
        let (one, other) = UnixStream::pair().unwrap();
        for (reader, writer) in
            [(OwnedFd::from(reader), OwnedFd::from(writer)), (OwnedFd::from(one), other.into())]
        {
            let mut output = output_of(writer);
            drop(reader);
            assert_eq!(output.write_all(b"x").await.unwrap_err().kind(), io::ErrorKind::BrokenPipe);
        }
    }
}
