//! The common parts of the tests of every wire format: recorded streams, and servers that send scripted bytes.
//!
//! Rule: a recording goes through the very code that answers of servers go through; servers are on loopback, and their
//! tasks end with the test.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

use super::StreamedAnswer;
use kode_model::{ModelError, ModelResponse};

pub(crate) use super::framing::Framing;

/// Checks that a recorded stream of server-sent events means the same wherever it is cut in two, and byte by byte; gives
/// what it means.
pub(crate) fn replay_every_cut<A: StreamedAnswer>(
    answer: impl Fn() -> A,
    recorded: &[u8],
) -> Result<ModelResponse, ModelError> {
    replay_every_cut_of(Framing::events, answer, recorded)
}

/// As [`replay_every_cut`], of a stream of any framing.
pub(crate) fn replay_every_cut_of<A: StreamedAnswer>(
    framing: impl Fn() -> Framing,
    answer: impl Fn() -> A,
    recorded: &[u8],
) -> Result<ModelResponse, ModelError> {
    let replay = |pieces: Vec<&[u8]>| super::replay_framed(framing(), answer(), pieces, &mut |_| {});
    let whole = replay(vec![recorded]);
    for cut in 0..=recorded.len() {
        let (head, tail) = recorded.split_at(cut);
        assert_eq!(replay(vec![head, tail]), whole, "cut at byte {cut}");
    }
    assert_eq!(replay(recorded.chunks(1).collect()), whole, "byte by byte");
    whole
}

/// A connection, whatever it is over.
trait Connection: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Connection for T {}

/// A server that answers one connection after the other, each with the next of its answers, the last one for ever.
pub(crate) struct RawServer {
    /// Its address, without a path.
    pub(crate) base_url: String,
    requests: Arc<Mutex<Vec<String>>>,
}

impl RawServer {
    /// Starts it with these answers, heads and bodies as they go over the wire.
    pub(crate) async fn start(answers: Vec<Vec<u8>>) -> Self {
        Self::serve(answers, None).await
    }

    /// As [`RawServer::start`], by TLS.
    pub(crate) async fn start_tls(answers: Vec<Vec<u8>>, tls: TlsAcceptor) -> Self {
        Self::serve(answers, Some(tls)).await
    }

    async fn serve(answers: Vec<Vec<u8>>, tls: Option<TlsAcceptor>) -> Self {
        let listener = TcpListener::bind(SocketAddr::from((Ipv4Addr::LOCALHOST, 0))).await.unwrap();
        let scheme = if tls.is_some() { "https" } else { "http" };
        let base_url = format!("{scheme}://{}", listener.local_addr().unwrap());
        let requests = Arc::new(Mutex::new(Vec::new()));
        let received = Arc::clone(&requests);
        tokio::spawn(async move {
            let mut number = 0;
            while let Ok((stream, _)) = listener.accept().await {
                let mut stream: Box<dyn Connection> = match &tls {
                    None => Box::new(stream),
                    Some(tls) => match tls.accept(stream).await {
                        Ok(stream) => Box::new(stream),
                        // A client that does not trust the server sends it nothing.
                        Err(_) => continue,
                    },
                };
                let request = read_request(&mut stream).await;
                received.lock().push(request);
                let answer = answers.get(number).or(answers.last()).cloned().unwrap_or_default();
                number += 1;
                let _ = stream.write_all(&answer).await;
                let _ = stream.shutdown().await;
            }
        });
        Self { base_url, requests }
    }

    /// The requests so far, heads and bodies.
    pub(crate) fn requests(&self) -> Vec<String> {
        self.requests.lock().clone()
    }
}

/// An answer that ends with its connection. `head` is the status line without the version, and further headers.
pub(crate) fn answer(head: &str, body: &str) -> Vec<u8> {
    format!("HTTP/1.1 {head}\r\nconnection: close\r\n\r\n{body}").into_bytes()
}

async fn read_request(stream: &mut (impl AsyncRead + Unpin)) -> String {
    let mut request = String::new();
    let mut buffer = [0; 4096];
    loop {
        if let Some((head, body)) = request.split_once("\r\n\r\n") {
            let length = head
                .to_lowercase()
                .lines()
                .find_map(|line| line.strip_prefix("content-length: ")?.parse().ok());
            if body.len() >= length.unwrap_or(0) {
                return request;
            }
        }
        match stream.read(&mut buffer).await {
            Ok(length) if length > 0 => request.push_str(&String::from_utf8_lossy(&buffer[..length])),
            _ => return request,
        }
    }
}
