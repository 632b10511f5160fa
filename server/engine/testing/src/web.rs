//! A small HTTP server on loopback for the tests of what uses the web.
//!
//! Rule: loopback only; nothing of it outlives its handle.

use std::convert::Infallible;
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;

use bytes::Bytes;
use futures::future::BoxFuture;
use futures::{FutureExt, StreamExt, stream};
use http_body_util::StreamBody;
use hyper::body::{Frame, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::client::proxy::matcher::Matcher;
use hyper_util::rt::TokioIo;
use parking_lot::Mutex;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio_util::sync::{CancellationToken, DropGuard};

use kode_net::address::AddressPolicy;
use kode_net::client::{Lookup, WebClient, WebOptions};

/// An answer: its status, its headers and the pieces of its body.
pub struct Answer {
    /// The HTTP status.
    pub status: u16,
    /// The headers.
    pub headers: Vec<(&'static str, String)>,
    /// The pieces of the body.
    pub body: Vec<Bytes>,
    /// Whether the body continues for ever after these pieces, without any more of it.
    pub is_endless: bool,
}

type Pieces = stream::BoxStream<'static, Result<Frame<Bytes>, Infallible>>;

/// The requests to the server: method, target and headers.
pub type Asked = Request<()>;

impl Answer {
    /// An answer with status 200.
    pub fn new(content_type: &str, body: impl Into<Bytes>) -> Self {
        let headers = vec![("content-type", content_type.to_owned())];
        Self { status: 200, headers, body: vec![body.into()], is_endless: false }
    }

    /// A redirect.
    pub fn redirect(status: u16, location: &str) -> Self {
        Self { headers: vec![("location", location.to_owned())], status, body: Vec::new(), is_endless: false }
    }

    /// An answer without a body.
    pub fn status(status: u16) -> Self {
        Self { status, headers: Vec::new(), body: Vec::new(), is_endless: false }
    }

    /// The same with another header.
    pub fn header(mut self, name: &'static str, value: &str) -> Self {
        self.headers.push((name, value.to_owned()));
        self
    }
}

/// A running server. Dropping it stops it.
pub struct Server {
    /// Where it listens.
    pub addr: SocketAddr,
    asked: Arc<Mutex<Vec<Asked>>>,
    _stop: DropGuard,
}

impl Server {
    /// Starts it on a free port of loopback.
    pub async fn start(answer: impl Fn(&Asked) -> Answer + Send + Sync + 'static) -> Self {
        Self::start_on(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)), answer).await.unwrap()
    }

    /// Starts it on this address.
    ///
    /// # Errors
    /// The system's error for the address.
    pub async fn start_on(
        addr: SocketAddr,
        answer: impl Fn(&Asked) -> Answer + Send + Sync + 'static,
    ) -> io::Result<Self> {
        let listener = TcpListener::bind(addr).await?;
        let addr = listener.local_addr()?;
        let (asked, stop, answer) = (Arc::default(), CancellationToken::new(), Arc::new(answer));
        let serve = {
            let asked = Arc::clone(&asked);
            async move {
                let mut connections = JoinSet::new();
                while let Ok((stream, _)) = listener.accept().await {
                    connections.spawn(serve(stream, Arc::clone(&asked), Arc::clone(&answer)));
                }
            }
        };
        let stopped = stop.clone();
        tokio::spawn(async move { stopped.run_until_cancelled(serve).await });
        Ok(Self { addr, asked, _stop: stop.drop_guard() })
    }

    /// The URL of a path on this server.
    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.addr)
    }

    /// The targets of all requests so far.
    pub fn asked(&self) -> Vec<String> {
        self.asked.lock().iter().map(|request| request.uri().to_string()).collect()
    }

    /// A header of the last request.
    pub fn last_header(&self, name: &str) -> Option<String> {
        let asked = self.asked.lock();
        Some(asked.last()?.headers().get(name)?.to_str().unwrap().to_owned())
    }
}

async fn serve(
    stream: TcpStream,
    asked: Arc<Mutex<Vec<Asked>>>,
    answer: Arc<impl Fn(&Asked) -> Answer + Send + Sync + 'static>,
) {
    let service = service_fn(move |request: Request<Incoming>| {
        let request = request.map(|_| ());
        let response = respond(answer(&request));
        asked.lock().push(request);
        async move { Ok::<_, Infallible>(response) }
    });
    // Clients that leave early end here as errors.
    let _ = http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
}

fn respond(answer: Answer) -> Response<StreamBody<Pieces>> {
    let pieces = stream::iter(answer.body).map(|piece| Ok(Frame::data(piece)));
    let body = if answer.is_endless { pieces.chain(stream::pending()).boxed() } else { pieces.boxed() };
    let mut response = Response::builder().status(answer.status);
    for (name, value) in answer.headers {
        response = response.header(name, value);
    }
    response.body(StreamBody::new(body)).unwrap()
}

/// Options for servers on 127.0.0.1, without proxies.
pub fn loopback() -> WebOptions {
    WebOptions {
        policy: AddressPolicy::Also(vec![IpAddr::V4(Ipv4Addr::LOCALHOST)]),
        proxies: Some(Matcher::builder().build()),
        ..WebOptions::default()
    }
}

/// A client for servers on 127.0.0.1.
pub fn loopback_client() -> Arc<WebClient> {
    Arc::new(WebClient::new(loopback()))
}

/// Answers from a list, one answer for each question, and keeps the questions.
#[derive(Default)]
pub struct ListedLookup {
    answers: Mutex<Vec<Vec<IpAddr>>>,
    asked: Mutex<Vec<String>>,
}

impl ListedLookup {
    /// Answers for each question in turn.
    pub fn new(answers: &[&[&str]]) -> Arc<Self> {
        let parse = |answer: &&[&str]| answer.iter().map(|address| address.parse().unwrap()).collect();
        let answers = answers.iter().rev().map(parse).collect();
        Arc::new(Self { answers: Mutex::new(answers), asked: Mutex::default() })
    }

    /// The names that were asked for.
    pub fn asked(&self) -> Vec<String> {
        self.asked.lock().clone()
    }
}

impl Lookup for ListedLookup {
    fn addresses(&self, host: &str) -> BoxFuture<'static, io::Result<Vec<IpAddr>>> {
        self.asked.lock().push(host.to_owned());
        let answer = self.answers.lock().pop();
        async move { answer.ok_or_else(|| io::Error::other("no such host")) }.boxed()
    }
}
