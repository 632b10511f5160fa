//! The proxy that commands reach listed hosts through: outside of the sandbox, on a socket in the session's own folder.
//!
//! Rule: a name is read once and looked up once, and the connection goes to an address that was checked. Every
//! connection, wait and header is bounded, and a refusal says why in one line.

mod watched;

use std::convert::Infallible;
use std::fs::{self, Permissions};
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixListener as StdUnixListener;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt, Empty, Full};
use hyper::body::Incoming;
use hyper::header::{
    CONNECTION, CONTENT_TYPE, HOST, HeaderName, HeaderValue, PROXY_AUTHENTICATE, PROXY_AUTHORIZATION, TE,
    TRAILER, TRANSFER_ENCODING, UPGRADE,
};
use hyper::service::service_fn;
use hyper::upgrade::OnUpgrade;
use hyper::{HeaderMap, Method, Request, Response, StatusCode, Uri};
use hyper_util::rt::{TokioIo, TokioTimer};
use parking_lot::Mutex;
use tokio::io::copy_bidirectional;
use tokio::net::{TcpStream, UnixListener, UnixStream};
use tokio::runtime::Handle;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};
use tokio_util::task::AbortOnDropHandle;

use super::hosts::{self, HostEntry, HostRefusal, HostTarget, ProxyHost};
use kode_base::paths::AbsPath;
use kode_net::address::is_global;
use kode_net::client::Lookup;
use watched::WatchedStream;

/// Connections at a time; more wait until one of them has ended.
pub const MAX_CONNECTIONS: usize = 64;
/// The largest head of a request or of its answer, in bytes.
const MAX_HEAD: usize = 16 * 1024;
/// How long the head of a request may take.
const HEAD_LIMIT: Duration = Duration::from_secs(10);
/// How long looking up a name and connecting may take together.
const CONNECT_LIMIT: Duration = Duration::from_secs(30);
/// How long a connection may be silent.
const IDLE_LIMIT: Duration = Duration::from_secs(120);
/// How long is waited when no connection can be taken, for instance because too many files are open.
const PAUSE: Duration = Duration::from_millis(100);
/// The port of `http` URLs.
const HTTP_PORT: u16 = 80;
/// The socket is its user's alone.
const PRIVATE: u32 = 0o600;
/// Headers that are for the proxy and not for the server; `Connection` names more of them.
const FOR_THE_PROXY: [HeaderName; 9] = [
    CONNECTION,
    HeaderName::from_static("proxy-connection"),
    HeaderName::from_static("keep-alive"),
    PROXY_AUTHENTICATE,
    PROXY_AUTHORIZATION,
    TE,
    TRAILER,
    TRANSFER_ENCODING,
    UPGRADE,
];

/// The hosts that a proxy lets through.
pub struct ProxyRules {
    /// The hosts that may be reached. Empty means no host is allowed.
    pub allowed: Vec<HostEntry>,
    /// Hosts that may not, whatever is allowed.
    pub denied: Vec<HostEntry>,
    /// Whether names may stand for addresses that are not public. An address that is listed itself may be private.
    pub local: bool,
    /// How names are looked up.
    pub lookup: Arc<dyn Lookup>,
}

/// A proxy. Dropping it ends it with all its connections.
#[derive(Debug)]
pub struct SandboxProxy {
    socket: AbsPath,
    _task: AbortOnDropHandle<()>,
}

impl SandboxProxy {
    /// Starts a proxy that listens on `socket`, which must not be there yet, in the runtime this is called in.
    ///
    /// # Errors
    /// When there is no runtime, or nothing can be listened on there.
    pub fn start(socket: AbsPath, rules: ProxyRules) -> io::Result<Self> {
        let runtime = Handle::try_current().map_err(io::Error::other)?;
        let listener = StdUnixListener::bind(socket.as_path())?;
        fs::set_permissions(socket.as_path(), Permissions::from_mode(PRIVATE))?;
        listener.set_nonblocking(true)?;
        let listener = UnixListener::from_std(listener)?;
        let task = runtime.spawn(listen(listener, Arc::new(rules)));
        Ok(Self { socket, _task: AbortOnDropHandle::new(task) })
    }

    /// The socket it listens on.
    #[must_use]
    pub fn socket(&self) -> &AbsPath {
        &self.socket
    }
}

async fn listen(listener: UnixListener, rules: Arc<ProxyRules>) {
    let slots = Arc::new(Semaphore::new(MAX_CONNECTIONS));
    let mut connections = JoinSet::new();
    while let Ok(slot) = Arc::clone(&slots).acquire_owned().await {
        match listener.accept().await {
            Ok((stream, _)) => {
                let rules = Arc::clone(&rules);
                connections.spawn(async move {
                    connection(stream, rules).await;
                    drop(slot);
                });
            }
            Err(error) => {
                tracing::warn!(%error, "the proxy of a sandbox could not take a connection");
                sleep(PAUSE).await;
            }
        }
        while connections.try_join_next().is_some() {}
    }
}

async fn connection(stream: UnixStream, rules: Arc<ProxyRules>) {
    let (stream, activity) = WatchedStream::new(stream);
    tokio::select! {
        () = serve(stream, rules) => {}
        () = activity.idle_for(IDLE_LIMIT) => tracing::debug!("a connection through the proxy was idle and is closed"),
    }
}

/// The peer of a connection.
#[derive(Default)]
struct ProxyConnection {
    /// A tunnel that was granted.
    tunnel: Option<(OnUpgrade, TcpStream)>,
    /// The connection of the request that is being answered.
    request: Option<AbortOnDropHandle<()>>,
}

async fn serve(stream: WatchedStream<UnixStream>, rules: Arc<ProxyRules>) {
    let behind = Arc::new(Mutex::new(ProxyConnection::default()));
    let service = service_fn(|request| {
        let (rules, behind) = (Arc::clone(&rules), Arc::clone(&behind));
        async move { Ok::<_, Infallible>(answer(request, &rules, &behind).await) }
    });
    let mut server = hyper::server::conn::http1::Builder::new();
    server.timer(TokioTimer::new()).header_read_timeout(HEAD_LIMIT).max_buf_size(MAX_HEAD);
    if let Err(error) = server.serve_connection(TokioIo::new(stream), service).with_upgrades().await {
        tracing::debug!(%error, "a connection through the proxy has ended");
    }
    let tunnel = behind.lock().tunnel.take();
    let Some((upgrade, mut upstream)) = tunnel else { return };
    let ended = match upgrade.await {
        Ok(upgraded) => copy_bidirectional(&mut TokioIo::new(upgraded), &mut upstream).await.map(drop),
        Err(error) => Err(io::Error::other(error)),
    };
    if let Err(error) = ended {
        tracing::debug!(%error, "a tunnel through the proxy has ended");
    }
}

type ProxyBody = BoxBody<Bytes, hyper::Error>;

/// Why a request is not carried out.
#[derive(Debug, thiserror::Error)]
enum ProxyFailure {
    #[error("{0}")]
    Request(&'static str),
    #[error("the host cannot be taken: {0}")]
    Host(#[from] hosts::HostError),
    #[error("{0}")]
    Refused(#[from] HostRefusal),
    #[error(
        "host {0} has no address that may be connected to; private ones need sandbox.network.allowLocalBinding"
    )]
    Private(ProxyHost),
    #[error("host {0} could not be reached: {1}")]
    Unreachable(ProxyHost, String),
    #[error("host {0} could not be reached within {limit} seconds", limit = CONNECT_LIMIT.as_secs())]
    Slow(ProxyHost),
}

impl ProxyFailure {
    fn status(&self) -> StatusCode {
        match self {
            Self::Request(_) | Self::Host(_) => StatusCode::BAD_REQUEST,
            Self::Refused(_) | Self::Private(_) => StatusCode::FORBIDDEN,
            Self::Unreachable(..) => StatusCode::BAD_GATEWAY,
            Self::Slow(_) => StatusCode::GATEWAY_TIMEOUT,
        }
    }

    fn response(&self) -> Response<ProxyBody> {
        let line = Full::new(Bytes::from(format!("{self}\n")));
        let mut response = Response::new(line.map_err(|never| match never {}).boxed());
        *response.status_mut() = self.status();
        response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
        response
    }
}

async fn answer(
    request: Request<Incoming>,
    rules: &ProxyRules,
    behind: &Mutex<ProxyConnection>,
) -> Response<ProxyBody> {
    let answered = if request.method() == Method::CONNECT {
        tunnel(request, rules, behind).await
    } else {
        forward(request, rules, behind).await
    };
    answered.unwrap_or_else(|failed| {
        tracing::debug!(%failed, "the proxy of a sandbox refused a request");
        failed.response()
    })
}

/// Grants a tunnel, which begins after the answer.
async fn tunnel(
    mut request: Request<Incoming>,
    rules: &ProxyRules,
    behind: &Mutex<ProxyConnection>,
) -> Result<Response<ProxyBody>, ProxyFailure> {
    let HostTarget { host, port } = target(request.uri())?;
    let port = port.ok_or(ProxyFailure::Request("CONNECT needs a port, as in example.com:443"))?;
    let upstream = rules.connect(&host, port).await?;
    behind.lock().tunnel = Some((hyper::upgrade::on(&mut request), upstream));
    Ok(Response::new(Empty::new().map_err(|never| match never {}).boxed()))
}

/// Carries out one request. Both heads are written again, so that the server reads the checked request.
async fn forward(
    mut request: Request<Incoming>,
    rules: &ProxyRules,
    behind: &Mutex<ProxyConnection>,
) -> Result<Response<ProxyBody>, ProxyFailure> {
    match request.uri().scheme_str() {
        Some("http") => {}
        Some(_) => return Err(ProxyFailure::Request("only http goes without a tunnel; use CONNECT")),
        None => return Err(ProxyFailure::Request("this is a proxy: the request must name a whole URL")),
    }
    let HostTarget { host, port } = target(request.uri())?;
    let authority = port.map_or_else(|| host.to_string(), |port| format!("{host}:{port}"));
    let authority =
        HeaderValue::try_from(authority).map_err(|_| ProxyFailure::Request("the host is not valid"))?;
    let path = request.uri().path_and_query().cloned();
    let upstream = rules.connect(&host, port.unwrap_or(HTTP_PORT)).await?;
    *request.uri_mut() = path.map_or_else(|| Uri::from_static("/"), Uri::from);
    strip(request.headers_mut());
    request.headers_mut().insert(HOST, authority);
    let failed = |error: hyper::Error| ProxyFailure::Unreachable(host.clone(), error.to_string());
    let mut client = hyper::client::conn::http1::Builder::new();
    let (mut sender, connection) =
        client.max_buf_size(MAX_HEAD).handshake(TokioIo::new(upstream)).await.map_err(failed)?;
    let connection = tokio::spawn(async move {
        if let Err(error) = connection.await {
            tracing::debug!(%error, "a connection behind the proxy has ended");
        }
    });
    behind.lock().request = Some(AbortOnDropHandle::new(connection));
    let mut response = sender.send_request(request).await.map_err(failed)?;
    strip(response.headers_mut());
    Ok(response.map(BodyExt::boxed))
}

/// Where a request is to go, from the one place where it says so.
fn target(uri: &Uri) -> Result<HostTarget, ProxyFailure> {
    let authority = uri.authority().ok_or(ProxyFailure::Request("the request names no host"))?;
    Ok(authority.as_str().parse()?)
}

/// Removes headers for the proxy alone.
fn strip(headers: &mut HeaderMap) {
    let named = headers.get_all(CONNECTION).iter().filter_map(|value| value.to_str().ok());
    let named = named.flat_map(|value| value.split(',')).filter_map(|name| name.trim().parse().ok());
    let named: Vec<HeaderName> = named.collect();
    for name in named.iter().chain(&FOR_THE_PROXY) {
        headers.remove(name);
    }
}

impl ProxyRules {
    /// Connects to a port of a host that may be reached.
    async fn connect(&self, host: &ProxyHost, port: u16) -> Result<TcpStream, ProxyFailure> {
        hosts::check(&self.allowed, &self.denied, host, port)?;
        let connected = timeout(CONNECT_LIMIT, async {
            let unreachable = |error: io::Error| ProxyFailure::Unreachable(host.clone(), error.to_string());
            let addresses = match host {
                ProxyHost::Address(address) => vec![*address],
                ProxyHost::Name(name) => self.lookup.addresses(name).await.map_err(unreachable)?,
            };
            let is_listed = matches!(host, ProxyHost::Address(_));
            let may_be_local = is_listed || self.local;
            let checked: Vec<_> = addresses
                .into_iter()
                .filter(|address| self.may_connect(*address, port, may_be_local))
                .map(|address| SocketAddr::new(address, port))
                .collect();
            if checked.is_empty() {
                return Err(ProxyFailure::Private(host.clone()));
            }
            TcpStream::connect(&checked[..]).await.map_err(unreachable)
        });
        connected.await.unwrap_or_else(|_| Err(ProxyFailure::Slow(host.clone())))
    }

    fn may_connect(&self, address: IpAddr, port: u16, may_be_local: bool) -> bool {
        let is_host = !(address.is_unspecified() || address.is_multicast());
        // A name does not lead to an address that is denied.
        let is_denied = hosts::is_denied(&self.denied, &ProxyHost::Address(address), port);
        is_host && !is_denied && (is_global(address) || may_be_local)
    }
}

#[cfg(test)]
mod tests;
