//! The bridge: a process inside the sandbox that takes connections on loopback and carries their bytes to the proxy
//! outside, because commands may not open sockets of the kind the proxy listens on.
//!
//! Rule: it knows one socket and takes no orders from a connection. It is there before the command, with filters of
//! its own, out of reach of a debugger, and it ends when the process that started it does.

#![expect(
    clippy::disallowed_methods,
    reason = "it starts programs that were found outside of writable folders"
)]

use std::fmt::Display;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, TcpListener as StdTcpListener};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, Stdio};
use std::sync::Arc;
use std::time::Duration;

use kode_base::task;
use rustix::process::{DumpableBehavior, Pid, set_dumpable_behavior};
use tokio::io::{AsyncReadExt, AsyncWriteExt, copy, sink};
use tokio::net::unix::pipe;
use tokio::net::{TcpListener, TcpStream, UnixStream};
use tokio::sync::Semaphore;
use tokio::time::sleep;

use super::landlock::{self, FileRules};
use super::seccomp::{self, Sockets};
use super::{BRIDGE, bubblewrap};
use crate::sandbox::ARGUMENT;
use crate::sandbox::proxy::{self, MAX_CONNECTIONS};

/// The socket of the proxy, by its name inside.
pub(super) const SOCKET: &str = "proxy";
/// The longest answer of a bridge, in bytes.
const MAX_ANSWER: u64 = 1024;
/// How long is waited when no connection can be taken.
const PAUSE: Duration = Duration::from_millis(100);

/// A bridge that has been started. It ends when this is dropped.
#[derive(Debug)]
pub(super) struct Bridge {
    /// Holds the other end of its standard input.
    process: Child,
    port: u16,
}

impl Bridge {
    /// Starts one and waits until it listens.
    pub(super) fn start() -> Result<Self, String> {
        let failed = |error: io::Error| format!("the bridge to the proxy: {error}");
        let mut bridge = Command::new(bubblewrap::inside("helper"));
        bridge.args([ARGUMENT, BRIDGE]).arg(bubblewrap::inside(SOCKET)).env_clear();
        bridge.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut process = bridge.spawn().map_err(failed)?;
        let mut answer = String::new();
        if let Some(output) = process.stdout.take() {
            BufReader::new(output.take(MAX_ANSWER)).read_line(&mut answer).map_err(failed)?;
        }
        let port =
            answer.trim().parse().map_err(|_| format!("the bridge to the proxy: {}", answer.trim()))?;
        Ok(Self { process, port })
    }

    /// Its process.
    pub(super) fn id(&self) -> Pid {
        Pid::from_child(&self.process)
    }

    /// The variables that lead programs to it.
    pub(super) fn variables(&self) -> impl Iterator<Item = (&'static str, String)> {
        proxy::variables(&proxy::url(self.port, None))
    }
}

/// Is the bridge to the proxy that listens on `socket`.
pub(super) fn main(socket: PathBuf) -> ExitCode {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let started = runtime.map_err(said).and_then(|runtime| {
        let listener = prepare()?;
        Ok((runtime, listener))
    });
    match started {
        Ok((runtime, listener)) => match runtime.block_on(run(listener, socket)) {
            Ok(()) => ExitCode::SUCCESS,
            // The listener is gone; the command sees that its connections fail.
            Err(_) => ExitCode::FAILURE,
        },
        Err(reason) => {
            // Its end without a word says as much.
            let _ = say(reason);
            ExitCode::FAILURE
        }
    }
}

/// Listens, and gives up everything that is not needed from then on.
fn prepare() -> Result<StdTcpListener, String> {
    set_dumpable_behavior(DumpableBehavior::NotDumpable).map_err(said)?;
    let listener = StdTcpListener::bind((Ipv4Addr::LOCALHOST, 0)).map_err(said)?;
    listener.set_nonblocking(true).map_err(said)?;
    landlock::apply(&FileRules { writable: &[], hidden: &[], shown: &[], alone: false })?;
    seccomp::apply(Sockets::Unix, false, false)?;
    Ok(listener)
}

fn said(error: impl Display) -> String {
    error.to_string()
}

async fn run(listener: StdTcpListener, socket: PathBuf) -> io::Result<()> {
    let listener = TcpListener::from_std(listener)?;
    let port = listener.local_addr()?.port();
    let starter = pipe::Receiver::from_owned_fd(io::stdin().as_fd().try_clone_to_owned()?)?;
    say(port)?;
    tokio::select! {
        () = listen(listener, socket.into()) => {}
        () = is_gone(starter) => {}
    }
    Ok(())
}

/// Answers the process that started this, in one line.
fn say(answer: impl Display) -> io::Result<()> {
    let mut output = io::stdout();
    writeln!(output, "{answer}")?;
    output.flush()
}

async fn is_gone(mut starter: pipe::Receiver) {
    let mut byte = [0];
    while starter.read(&mut byte).await.is_ok_and(|length| length > 0) {}
}

async fn listen(listener: TcpListener, socket: Arc<Path>) {
    let slots = Arc::new(Semaphore::new(MAX_CONNECTIONS));
    while let Ok(slot) = Arc::clone(&slots).acquire_owned().await {
        match listener.accept().await {
            Ok((stream, _)) => {
                let socket = Arc::clone(&socket);
                task::spawn(async move {
                    // Either end may go at any time, and no peer is left to notify.
                    let _ = carry(stream, &socket).await;
                    drop(slot);
                });
            }
            Err(_) => sleep(PAUSE).await,
        }
    }
}

async fn carry(mut stream: TcpStream, socket: &Path) -> io::Result<()> {
    let mut proxy = UnixStream::connect(socket).await?;
    let (mut from_command, mut to_command) = stream.split();
    let (mut from_proxy, mut to_proxy) = proxy.split();
    let there = async {
        if copy(&mut from_command, &mut to_proxy).await.is_ok() {
            return to_proxy.shutdown().await;
        }
        // The proxy takes no more. Its output must not be lost because of input that is still on its way.
        copy(&mut from_command, &mut sink()).await.map(drop)
    };
    let back = async {
        // A proxy that closes with unread bytes resets the connection; the command must see the end all the same.
        let copied = copy(&mut from_proxy, &mut to_command).await.map(drop);
        to_command.shutdown().await.and(copied)
    };
    let (there, back) = tokio::join!(there, back);
    there.and(back)
}
