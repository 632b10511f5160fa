//! Tests of the proxy with servers on loopback and names of our own.

use std::collections::HashMap;
use std::net::Ipv4Addr;
use std::sync::atomic::{AtomicUsize, Ordering};

use futures::FutureExt;
use futures::future::BoxFuture;
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

use super::*;

/// Addresses of names, and the number of lookups.
#[derive(Default)]
struct Names {
    addresses: HashMap<&'static str, Vec<IpAddr>>,
    asked: AtomicUsize,
}

impl Lookup for Names {
    fn addresses(&self, host: &str) -> BoxFuture<'static, io::Result<Vec<IpAddr>>> {
        self.asked.fetch_add(1, Ordering::Relaxed);
        let found = self.addresses.get(host).cloned();
        async move { found.ok_or_else(|| io::Error::other("no such name")) }.boxed()
    }
}

struct Fixture {
    folder: TempDir,
    proxy: Option<SandboxProxy>,
    server: TcpListener,
    port: u16,
    names: Arc<Names>,
}

impl Fixture {
    /// A proxy for these hosts, where `PORT` represents that of a server on loopback; `home.example` and
    /// `other.example` are there.
    async fn new(allowed: &[&str], denied: &[&str], local: bool) -> Self {
        let server = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let port = server.local_addr().unwrap().port();
        let loopback = vec![IpAddr::V4(Ipv4Addr::LOCALHOST)];
        let names = Arc::new(Names {
            addresses: [
                ("home.example", loopback.clone()),
                ("other.example", loopback),
                ("nowhere.example", vec!["0.0.0.0".parse().unwrap(), "224.0.0.1".parse().unwrap()]),
            ]
            .into(),
            asked: AtomicUsize::new(0),
        });
        let read = |texts: &[&str]| {
            let texts = texts.iter().map(|text| text.replace("PORT", &port.to_string()));
            texts.map(|text| text.parse().unwrap()).collect::<Vec<_>>()
        };
        let folder = tempfile::tempdir().unwrap();
        let socket = AbsPath::new(folder.path().join("proxy")).unwrap();
        let lookup = Arc::clone(&names) as Arc<dyn Lookup>;
        let rules = ProxyRules { allowed: read(allowed), denied: read(denied), local, lookup };
        let proxy = Some(SandboxProxy::start(socket, rules).unwrap());
        Self { folder, proxy, server, port, names }
    }

    async fn connect(&self) -> UnixStream {
        UnixStream::connect(self.folder.path().join("proxy")).await.unwrap()
    }

    /// Sends the head of a request, where `PORT` represents the server's.
    async fn send(&self, head: &str) -> UnixStream {
        let mut stream = self.connect().await;
        stream.write_all(head.replace("PORT", &self.port.to_string()).as_bytes()).await.unwrap();
        stream
    }

    /// The status and the last line of the answer to a request that is not carried out.
    async fn refusal(&self, line: &str) -> (u16, String) {
        let mut stream =
            self.send(&format!("{line} HTTP/1.1\r\nHost: home.example\r\nConnection: close\r\n\r\n")).await;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        let status = answer.split(' ').nth(1).unwrap_or_default().parse().unwrap_or_default();
        (status, answer.lines().last().unwrap_or_default().to_owned())
    }

    /// A tunnel, with the end at the server.
    async fn tunnel(&self) -> (UnixStream, TcpStream) {
        let mut client = self.send("CONNECT home.example:PORT HTTP/1.1\r\n\r\n").await;
        let (server, _) = self.server.accept().await.unwrap();
        assert!(head(&mut client).await.starts_with("HTTP/1.1 200 "));
        (client, server)
    }
}

/// Reads a head, and not a byte more.
async fn head(stream: &mut (impl AsyncReadExt + Unpin)) -> String {
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        head.push(char::from(stream.read_u8().await.unwrap()));
    }
    head
}

#[tokio::test]
async fn a_request_is_written_again_for_the_host_it_was_checked_for() {
    let fixture = Fixture::new(&["home.example:PORT"], &[], true).await;
    let mut client = fixture
        .send(
            "POST http://HOME.example.:PORT/path?a=b HTTP/1.1\r\nHost: evil.example\r\nProxy-Authorization: x\r\n\
             Connection: keep-alive, X-Secret\r\nX-Secret: y\r\nX-Kept: z\r\nContent-Length: 4\r\n\r\nbody",
        )
        .await;
    let (mut server, _) = fixture.server.accept().await.unwrap();
    let sent = head(&mut server).await.to_ascii_lowercase();
    assert!(sent.starts_with("post /path?a=b http/1.1\r\n"), "{sent}");
    assert!(sent.contains(&format!("\r\nhost: home.example:{}\r\n", fixture.port)), "{sent}");
    assert!(sent.contains("x-kept: z") && sent.matches("host:").count() == 1, "{sent}");
    assert!(!sent.contains("proxy-") && !sent.contains("x-secret") && !sent.contains("evil"), "{sent}");
    let mut body = [0; 4];
    server.read_exact(&mut body).await.unwrap();
    server.write_all(b"HTTP/1.1 201 Made\r\nContent-Length: 2\r\n\r\nok").await.unwrap();
    assert!(head(&mut client).await.starts_with("HTTP/1.1 201 "));
    client.read_exact(&mut body[..2]).await.unwrap();
    assert_eq!((&body, fixture.names.asked.load(Ordering::Relaxed)), (b"okdy", 1));
    // Each request of a connection is checked.
    client.write_all(b"GET http://other.example/ HTTP/1.1\r\n\r\n").await.unwrap();
    assert!(head(&mut client).await.starts_with("HTTP/1.1 403 "));
}

#[tokio::test]
async fn a_tunnel_carries_bytes_both_ways_and_ends_with_either_end() {
    let fixture = Fixture::new(&["home.example:PORT"], &[], true).await;
    let (mut client, mut server) = fixture.tunnel().await;
    client.write_all(b"\0\xffup").await.unwrap();
    server.write_all(b"down").await.unwrap();
    let mut bytes = [0; 4];
    server.read_exact(&mut bytes).await.unwrap();
    assert_eq!(&bytes, b"\0\xffup");
    client.read_exact(&mut bytes).await.unwrap();
    assert_eq!(&bytes, b"down");
    drop(server);
    assert_eq!(client.read(&mut bytes).await.unwrap(), 0);
}

#[tokio::test]
async fn what_is_not_carried_out_says_why() {
    let allowed = ["home.example", "home.example:PORT", "gone.example", "nowhere.example", "127.0.0.1:1"];
    let fixture = Fixture::new(&allowed, &["bad.home.example"], false).await;
    let port = fixture.port;
    for (line, status, reason) in [
        ("GET http://other.example/", 403, "host other.example is not in sandbox.network.allowedDomains"),
        ("CONNECT other.example:443", 403, "host other.example is not in sandbox.network.allowedDomains"),
        ("CONNECT home.example:22", 403, "port 22 of host home.example is not in"),
        ("GET http://bad.home.example/", 403, "host bad.home.example is in sandbox.network.deniedDomains"),
        (&format!("CONNECT home.example:{port}"), 403, "has no address that may be connected to"),
        ("CONNECT nowhere.example:443", 403, "has no address that may be connected to"),
        ("CONNECT gone.example:443", 502, "no such name"),
        // Listed itself, so that it is tried although it is private.
        ("CONNECT 127.0.0.1:1", 502, "could not be reached"),
        ("CONNECT home.example", 400, "CONNECT needs a port"),
        ("GET https://home.example/", 400, "use CONNECT"),
        ("GET /path", 400, "this is a proxy"),
        ("GET http://evil.example@home.example/", 400, "no host name"),
        ("GET http://home.example@evil.example/", 400, "no host name"),
        ("CONNECT home.example\0.evil.example:443", 400, ""),
        ("CONNECT evil.example\0.home.example:443", 400, ""),
        ("CONNECT 0x7f.1:443", 400, "an address in a form that is not taken"),
        ("CONNECT [::1]:443", 403, "host [::1] is not in"),
        ("CONNECT [::ffff:127.0.0.1]:1", 403, "is not in"),
    ] {
        let (found, said) = fixture.refusal(line).await;
        assert!(found == status && said.contains(reason), "{line:?}: {found} {said}");
    }
    let denied = Fixture::new(&["home.example:PORT"], &["127.0.0.1"], true).await;
    let (status, said) = denied.refusal("CONNECT home.example:PORT").await;
    assert!(status == 403 && said.contains("no address"), "a name for a denied address: {said}");
    let none = Fixture::new(&[], &[], true).await;
    assert_eq!(none.refusal("CONNECT home.example:443").await.0, 403);
    assert_eq!(none.names.asked.load(Ordering::Relaxed), 0, "nobody is asked about what is not listed");
}

#[tokio::test]
async fn connections_beyond_the_limit_wait_for_their_turn() {
    const ALL: usize = 100;
    let fixture = Fixture::new(&["home.example:PORT"], &[], true).await;
    let mut clients = Vec::new();
    for _ in 0..ALL {
        clients.push(fixture.send("CONNECT home.example:PORT HTTP/1.1\r\n\r\n").await);
    }
    let mut servers = Vec::new();
    for _ in 0..MAX_CONNECTIONS {
        servers.push(fixture.server.accept().await.unwrap().0);
    }
    // Time continues only when all tasks are idle.
    tokio::time::pause();
    assert!(timeout(Duration::from_secs(1), fixture.server.accept()).await.is_err(), "one more got through");
    for _ in MAX_CONNECTIONS..ALL {
        drop(servers.pop());
        drop(clients.remove(servers.len()));
        servers.push(fixture.server.accept().await.unwrap().0);
    }
}

#[tokio::test]
async fn silence_and_heads_without_end_are_not_waited_for() {
    let fixture = Fixture::new(&["home.example:PORT"], &[], true).await;
    let (mut client, mut server) = fixture.tunnel().await;
    let mut slow = fixture.send("CONNECT home.example:PORT HTTP/1.1\r\nX: ").await;
    let large = format!("GET http://home.example/ HTTP/1.1\r\nX: {}\r\n\r\n", "x".repeat(MAX_HEAD));
    let mut large = fixture.send(&large).await;
    assert!(head(&mut large).await.starts_with("HTTP/1.1 431 "));
    tokio::time::pause();
    let mut bytes = Vec::new();
    let begin = tokio::time::Instant::now();
    slow.read_to_end(&mut bytes).await.unwrap();
    assert!(begin.elapsed() >= HEAD_LIMIT && begin.elapsed() < IDLE_LIMIT, "{:?}", begin.elapsed());
    server.write_all(b"x").await.unwrap();
    client.read_u8().await.unwrap();
    let begin = tokio::time::Instant::now();
    assert_eq!(client.read_to_end(&mut bytes).await.unwrap(), 0);
    assert!(begin.elapsed() >= IDLE_LIMIT, "{:?}", begin.elapsed());
}

#[tokio::test]
async fn it_is_its_users_alone_and_ends_with_its_connections() {
    let mut fixture = Fixture::new(&["home.example:PORT"], &[], true).await;
    let mode = fs::metadata(fixture.folder.path().join("proxy")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, PRIVATE);
    let (mut client, mut server) = fixture.tunnel().await;
    fixture.proxy = None;
    let mut bytes = Vec::new();
    assert_eq!(client.read_to_end(&mut bytes).await.unwrap_or_default(), 0);
    assert_eq!(server.read_to_end(&mut bytes).await.unwrap_or_default(), 0);
    assert!(UnixStream::connect(fixture.folder.path().join("proxy")).await.is_err());
}
