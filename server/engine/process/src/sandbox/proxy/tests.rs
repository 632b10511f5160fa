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
        let proxy = Some(SandboxProxy::on_socket(socket, rules).unwrap());
        Self { folder, proxy, server, port, names }
    }

    /// As [`Self::new`], with a proxy on loopback.
    async fn on_loopback() -> Self {
        let mut fixture = Self::new(&[], &[], true).await;
        let allowed = vec![format!("home.example:{}", fixture.port).parse().unwrap()];
        let lookup = Arc::clone(&fixture.names) as Arc<dyn Lookup>;
        let rules = ProxyRules { allowed, denied: Vec::new(), local: true, lookup };
        fixture.proxy = Some(SandboxProxy::on_loopback(rules).unwrap());
        fixture
    }

    /// The port and the token of a proxy on loopback.
    fn loopback(&self) -> (u16, ProxyToken) {
        match self.proxy.as_ref().unwrap().address() {
            ProxyAddress::Loopback { port, token } => (*port, token.clone()),
            ProxyAddress::Socket(socket) => panic!("{socket:?}"),
        }
    }

    /// Sends a request to a proxy on loopback, with these lines in its head.
    async fn knock(&self, line: &str, headers: &str) -> TcpStream {
        let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, self.loopback().0)).await.unwrap();
        let line = line.replace("PORT", &self.port.to_string());
        stream.write_all(format!("{line} HTTP/1.1\r\n{headers}\r\n").as_bytes()).await.unwrap();
        stream
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

/// The header of a client that names a user and a token.
fn named(user: &str, token: &str) -> String {
    format!("Proxy-Authorization: Basic {}\r\n", BASE64_STANDARD.encode(format!("{user}:{token}")))
}

#[tokio::test]
async fn on_loopback_a_request_without_the_token_is_refused_before_anything_of_it_is_done() {
    let fixture = Fixture::on_loopback().await;
    let (_, token) = fixture.loopback();
    let right = named("kode-ls", token.expose());
    let short = &token.expose()[..token.expose().len() - 1];
    for headers in [
        String::new(),
        named("kode-ls", ""),
        named("kode-ls", short),
        named("kode-ls", &format!("{}0", token.expose())),
        named("kode-ls", ProxyToken::random().expose()),
        named("other", token.expose()),
        named("", token.expose()),
        right.replace("Basic", "Bearer"),
        format!("Proxy-Authorization: {}\r\n", token.expose()),
        right.replace("Proxy-Authorization", "Authorization"),
        // Which of two would count is no question.
        format!("{right}{}", named("kode-ls", short)),
        format!("{right}{right}"),
    ] {
        for line in
            ["CONNECT home.example:PORT", "GET http://home.example:PORT/", "GET /", "POST http://x:1/"]
        {
            let mut client = fixture.knock(line, &headers).await;
            let mut answer = head(&mut client).await;
            assert!(answer.starts_with("HTTP/1.1 407 "), "{line} {headers}: {answer}");
            assert!(answer.to_ascii_lowercase().contains("\r\nconnection: close\r\n"), "{answer}");
            client.read_to_string(&mut answer).await.unwrap();
            assert!(answer.to_ascii_lowercase().contains("proxy-authenticate: basic realm="), "{answer}");
            assert!(
                answer.contains("does not name its token") && !answer.contains(token.expose()),
                "{answer}"
            );
        }
    }
    assert_eq!(fixture.names.asked.load(Ordering::Relaxed), 0, "no name is looked up for a stranger");
    let mut client = fixture.knock("CONNECT home.example:PORT", &right).await;
    // The first connection there is: none of the refused requests made one.
    let (mut server, _) = fixture.server.accept().await.unwrap();
    assert!(head(&mut client).await.starts_with("HTTP/1.1 200 "));
    client.write_all(b"up").await.unwrap();
    let mut bytes = [0; 2];
    server.read_exact(&mut bytes).await.unwrap();
    assert_eq!(&bytes, b"up");
}

#[tokio::test]
async fn on_loopback_each_request_names_the_token_and_no_server_sees_it() {
    let fixture = Fixture::on_loopback().await;
    let (_, token) = fixture.loopback();
    let right = named("kode-ls", token.expose()).replace("Basic", "bASIC");
    let mut client = fixture.knock("GET http://home.example:PORT/a", &right).await;
    let (mut server, _) = fixture.server.accept().await.unwrap();
    let sent = head(&mut server).await.to_ascii_lowercase();
    assert!(sent.starts_with("get /a http/1.1\r\n") && !sent.contains("proxy-"), "{sent}");
    server.write_all(b"HTTP/1.1 204 None\r\n\r\n").await.unwrap();
    assert!(head(&mut client).await.starts_with("HTTP/1.1 204 "));
    let again = format!("GET http://home.example:{}/b HTTP/1.1\r\n\r\n", fixture.port);
    client.write_all(again.as_bytes()).await.unwrap();
    let answer = head(&mut client).await;
    assert!(answer.starts_with("HTTP/1.1 407 "), "{answer}");
    // The host list applies to clients with the token as well.
    let mut other = fixture.knock("CONNECT other.example:443", &right).await;
    assert!(head(&mut other).await.starts_with("HTTP/1.1 403 "));
}

#[tokio::test]
async fn on_loopback_each_proxy_has_a_token_of_its_own_that_is_shown_nowhere_else() {
    let (one, other) = (Fixture::on_loopback().await, Fixture::on_loopback().await);
    let (port, token) = one.loopback();
    assert!(token != other.loopback().1 && token.expose().len() == 64);
    assert_eq!(url(port, Some(&token)), format!("http://kode-ls:{}@127.0.0.1:{port}", token.expose()));
    assert_eq!(url(port, None), format!("http://127.0.0.1:{port}"));
    assert!(!format!("{:?}", one.proxy).contains(token.expose()));
    let address = serde_json::to_value(one.proxy.as_ref().unwrap().address()).unwrap();
    assert_eq!(address, serde_json::json!({ "loopback": { "port": port, "token": token.expose() } }));
    let mut stranger = other.knock("CONNECT home.example:PORT", &named("kode-ls", token.expose())).await;
    assert!(head(&mut stranger).await.starts_with("HTTP/1.1 407 "));
    drop(one);
    // Its port is closed with it; the runtime ends its task at the next occasion.
    while TcpStream::connect((Ipv4Addr::LOCALHOST, port)).await.is_ok() {
        tokio::task::yield_now().await;
    }
}
