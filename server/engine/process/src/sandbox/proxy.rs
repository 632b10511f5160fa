//! The proxy that commands reach listed hosts through: outside of the sandbox, on a socket in the session's own folder, or on
//! loopback where commands have no network of their own.
//!
//! Rule: a name is read once and looked up once, and the connection goes to an address that was checked. Every
//! connection, wait and header is bounded, and a refusal says why in one line. On loopback every program of the machine
//! connects: a request without the token of the proxy is refused before anything of it is read.

mod watched;

use std::convert::Infallible;
use std::fs::{self, Permissions};
use std::hint::black_box;
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener as StdTcpListener};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixListener as StdUnixListener;
use std::sync::Arc;
use std::time::Duration;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
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
use sha2::{Digest, Sha256};
use tokio::io::{AsyncRead, AsyncWrite, copy_bidirectional};
use tokio::net::{TcpListener, TcpStream, UnixListener, UnixStream};
use tokio::runtime::Handle;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};
use tokio_util::task::AbortOnDropHandle;

use super::hosts::{self, HostEntry, HostRefusal, HostTarget, ProxyHost};
use super::policy::{ProxyAddress, ProxyToken};
use kode_base::paths::AbsPath;
use kode_base::task;
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
/// The name before the token in the address of a proxy.
const USER: &str = "kode-ls";
/// How clients name the token.
const SCHEME: &str = "Basic ";
/// The demand of a proxy to a client without the token.
const CHALLENGE: HeaderValue = HeaderValue::from_static("Basic realm=\"kode-ls\"");
/// The variables that programs look for a proxy in.
const VARIABLES: [&str; 6] =
    ["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy"];
/// The variables for hosts that are reached without one: none are.
const EXCEPTIONS: [&str; 2] = ["NO_PROXY", "no_proxy"];
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
    address: ProxyAddress,
    _task: AbortOnDropHandle<()>,
}

impl SandboxProxy {
    /// Starts a proxy that listens on `socket`, which must not be there yet, in the runtime this is called in.
    ///
    /// # Errors
    /// When there is no runtime, or nothing can be listened on there.
    pub fn on_socket(socket: AbsPath, rules: ProxyRules) -> io::Result<Self> {
        let runtime = Handle::try_current().map_err(io::Error::other)?;
        let listener = StdUnixListener::bind(socket.as_path())?;
        fs::set_permissions(socket.as_path(), Permissions::from_mode(PRIVATE))?;
        listener.set_nonblocking(true)?;
        let listener = UnixListener::from_std(listener)?;
        let task = runtime.spawn(listen(listener, Arc::new(GuardedRules { rules, credentials: None })));
        Ok(Self { address: ProxyAddress::Socket(socket), _task: AbortOnDropHandle::new(task) })
    }

    /// Starts a proxy that listens on a free port of loopback and answers requests that name its token, which is new, in the runtime
    /// this is called in.
    ///
    /// # Errors
    /// When there is no runtime, or nothing can be listened on there.
    pub fn on_loopback(rules: ProxyRules) -> io::Result<Self> {
        let runtime = Handle::try_current().map_err(io::Error::other)?;
        let listener = StdTcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        listener.set_nonblocking(true)?;
        let listener = TcpListener::from_std(listener)?;
        let (port, token) = (listener.local_addr()?.port(), ProxyToken::random());
        let credentials = Some(ProxyCredentials::of(&token));
        let task = runtime.spawn(listen(listener, Arc::new(GuardedRules { rules, credentials })));
        Ok(Self { address: ProxyAddress::Loopback { port, token }, _task: AbortOnDropHandle::new(task) })
    }

    /// Where it listens.
    #[must_use]
    pub fn address(&self) -> &ProxyAddress {
        &self.address
    }
}

/// The address of a proxy on loopback as programs take it, with the token.
#[must_use]
pub fn url(port: u16, token: Option<&ProxyToken>) -> String {
    let user = token.map(|token| format!("{USER}:{}@", token.expose())).unwrap_or_default();
    format!("http://{user}{}:{port}", Ipv4Addr::LOCALHOST)
}

/// The variables that lead programs to the proxy of that address.
pub fn variables(url: &str) -> impl Iterator<Item = (&'static str, String)> + use<> {
    let empty = EXCEPTIONS.map(|name| (name, String::new()));
    VARIABLES.map(|name| (name, url.to_owned())).into_iter().chain(empty)
}

/// The rules of a proxy, and the credentials that its clients have to name.
struct GuardedRules {
    rules: ProxyRules,
    credentials: Option<ProxyCredentials>,
}

impl GuardedRules {
    /// Whether a request may be read.
    fn admits(&self, headers: &HeaderMap) -> bool {
        self.credentials.as_ref().is_none_or(|credentials| credentials.are_in(headers))
    }
}

/// The credentials of a proxy, as a digest: comparing digests takes the same time for every answer.
struct ProxyCredentials([u8; 32]);

impl ProxyCredentials {
    fn of(token: &ProxyToken) -> Self {
        let named = BASE64_STANDARD.encode(format!("{USER}:{}", token.expose()));
        Self(Sha256::digest(named).into())
    }

    fn are_in(&self, headers: &HeaderMap) -> bool {
        let mut values = headers.get_all(PROXY_AUTHORIZATION).iter();
        let (Some(value), None) = (values.next(), values.next()) else { return false };
        let Some((scheme, named)) = value.as_bytes().split_at_checked(SCHEME.len()) else { return false };
        let named: [u8; 32] = Sha256::digest(named.trim_ascii()).into();
        let different = self.0.iter().zip(named).fold(0, |all, (own, other)| black_box(all | (own ^ other)));
        scheme.eq_ignore_ascii_case(SCHEME.as_bytes()) && different == 0
    }
}

/// The socket that a proxy listens on.
trait ProxyListener: Send + Sync + 'static {
    type Stream: AsyncRead + AsyncWrite + Unpin + Send + 'static;

    /// Waits for a connection.
    fn connection(&self) -> impl Future<Output = io::Result<Self::Stream>> + Send;
}

impl ProxyListener for UnixListener {
    type Stream = UnixStream;

    async fn connection(&self) -> io::Result<UnixStream> {
        self.accept().await.map(|(stream, _)| stream)
    }
}

impl ProxyListener for TcpListener {
    type Stream = TcpStream;

    async fn connection(&self) -> io::Result<TcpStream> {
        self.accept().await.map(|(stream, _)| stream)
    }
}

async fn listen(listener: impl ProxyListener, rules: Arc<GuardedRules>) {
    let slots = Arc::new(Semaphore::new(MAX_CONNECTIONS));
    let mut connections = JoinSet::new();
    while let Ok(slot) = Arc::clone(&slots).acquire_owned().await {
        match listener.connection().await {
            Ok(stream) => {
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

async fn connection(stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static, rules: Arc<GuardedRules>) {
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

async fn serve<S>(stream: WatchedStream<S>, rules: Arc<GuardedRules>)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
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
    #[error("this proxy is for the commands of one sandbox of kode-ls: the request does not name its token")]
    Stranger,
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
            Self::Stranger => StatusCode::PROXY_AUTHENTICATION_REQUIRED,
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
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
        if matches!(self, Self::Stranger) {
            headers.insert(PROXY_AUTHENTICATE, CHALLENGE);
            // The body of the request is not read.
            headers.insert(CONNECTION, HeaderValue::from_static("close"));
        }
        response
    }
}

async fn answer(
    request: Request<Incoming>,
    rules: &GuardedRules,
    behind: &Mutex<ProxyConnection>,
) -> Response<ProxyBody> {
    let answered = if !rules.admits(request.headers()) {
        Err(ProxyFailure::Stranger)
    } else if request.method() == Method::CONNECT {
        tunnel(request, &rules.rules, behind).await
    } else {
        forward(request, &rules.rules, behind).await
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
    let connection = task::spawn(async move {
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
