//! Fetching from servers on loopback.

use super::*;
use crate::testing::{Answer, ListedLookup, Server, loopback, loopback_client};

async fn fetch(client: &WebClient, url: &str) -> Result<FetchOutcome, WebError> {
    client.fetch(&Url::parse(url).unwrap(), &[], &CancellationToken::new()).await
}

#[track_caller]
fn page(fetched: Result<FetchOutcome, WebError>) -> Arc<WebPage> {
    match fetched {
        Ok(FetchOutcome::Page { page, .. }) => page,
        other => panic!("no page: {other:?}"),
    }
}

fn text(text: &str) -> Answer {
    Answer::new("text/plain", text.to_owned())
}

#[tokio::test]
async fn a_page_is_fetched_once_and_then_served_from_the_cache() {
    static START: std::sync::LazyLock<Instant> = std::sync::LazyLock::new(Instant::now);
    static MINUTES: std::sync::atomic::AtomicU64 = std::sync::atomic::AtomicU64::new(0);
    fn clock() -> Instant {
        *START + Duration::from_secs(60 * MINUTES.load(std::sync::atomic::Ordering::Relaxed))
    }
    let server = Server::start(|_| Answer::new("text/html", "<title>T</title><p>Hi <b>there</b>")).await;
    let client = WebClient::new(WebOptions { clock, ..loopback() });
    let first = page(fetch(&client, &server.url("/a?b#c")).await);
    assert_eq!((first.text.as_str(), first.title.as_deref()), ("Hi **there**", Some("T")));
    MINUTES.store(14, std::sync::atomic::Ordering::Relaxed);
    let again = fetch(&client, &server.url("/a?b#d")).await;
    assert_eq!(again, Ok(FetchOutcome::Page { page: Arc::clone(&first), from_cache: true }));
    assert_eq!(server.asked(), ["/a?b"]);
    MINUTES.store(15, std::sync::atomic::Ordering::Relaxed);
    assert_eq!(page(fetch(&client, &server.url("/a?b")).await), first);
    assert_eq!(server.asked(), ["/a?b", "/a?b"]);
}

#[tokio::test]
async fn redirects_are_followed_on_the_same_host_only() {
    let server = Server::start(|asked| match asked.uri().path() {
        "/elsewhere" => Answer::redirect(302, "https://other.example/x?y#z"),
        "/port" => Answer::redirect(301, "http://127.0.0.1:1/"),
        "/tls" => Answer::redirect(301, "https://127.0.0.1/"),
        "/file" => Answer::redirect(301, "file:///etc/passwd"),
        "/login" => Answer::redirect(307, "//u:p@127.0.0.1/"),
        "/private" => Answer::redirect(307, "http://169.254.169.254/latest"),
        "/lost" => Answer::status(302),
        "/loop" => Answer::redirect(303, "loop"),
        "/5" => text("end"),
        path => Answer::redirect(308, &format!("/{}", path[1..].parse::<u8>().unwrap() + 1)),
    })
    .await;
    let client = loopback_client();
    let end = page(fetch(&client, &server.url("/0")).await);
    assert_eq!((end.text.as_str(), end.url.path()), ("end", "/5"));
    for (path, expected) in [
        ("/elsewhere", "https://other.example/x?y"),
        ("/port", "http://127.0.0.1:1/"),
        ("/tls", "https://127.0.0.1/"),
        ("/private", "http://169.254.169.254/latest"),
    ] {
        let expected = FetchOutcome::Elsewhere { url: Url::parse(expected).unwrap() };
        assert_eq!(fetch(&client, &server.url(path)).await, Ok(expected), "{path}");
    }
    for path in ["/file", "/lost"] {
        let fetched = fetch(&client, &server.url(path)).await;
        assert!(matches!(fetched, Err(WebError::BadRedirect { .. })), "{path}");
    }
    let before = server.asked().len();
    let looped = fetch(&client, &server.url("/loop")).await;
    assert!(matches!(looped, Err(WebError::TooManyRedirects { .. })), "{looped:?}");
    assert_eq!(server.asked().len() - before, MAX_REDIRECTS + 1);
}

#[test]
fn a_redirect_stays_only_where_nothing_but_the_path_or_the_security_changes() {
    for (from, to, expected) in [
        ("http://a.example/", "http://a.example/x", true),
        ("http://a.example/", "https://a.example/x", true),
        ("http://a.example:80/", "https://a.example:443/x", true),
        ("https://a.example/", "http://a.example/", false),
        ("http://a.example:8080/", "https://a.example/", false),
        ("http://a.example/", "http://a.example:8080/", false),
        ("http://a.example/", "http://www.a.example/", false),
        ("http://a.example/", "http://a.example./", false),
    ] {
        let [from, to] = [from, to].map(|url| Url::parse(url).unwrap());
        assert_eq!(is_same_place(&from, &to), expected, "{from} {to}");
    }
}

/// A name that has a permitted address when it is checked first, and a private one later.
#[tokio::test]
async fn a_connection_goes_to_the_address_that_was_checked() {
    let public = Server::start(|_| text("public")).await;
    let mut private_addr = public.addr;
    private_addr.set_ip("127.0.0.2".parse().unwrap());
    let private = Server::start_on(private_addr, |_| text("private")).await.unwrap();
    let lookup = ListedLookup::new(&[&["127.0.0.1"], &["127.0.0.2"], &["127.0.0.2", "127.0.0.1", "::1"]]);
    let client = WebClient::new(WebOptions { lookup: lookup.clone(), ..loopback() });
    let url = |path: &str| format!("http://rebound.example:{}{path}", public.addr.port());

    assert_eq!(page(fetch(&client, &url("/1")).await).text, "public");
    assert_eq!(lookup.asked(), ["rebound.example"]);
    let refused = fetch(&client, &url("/2")).await;
    assert_eq!(refused, Err(WebError::Private { host: "rebound.example".to_owned() }));
    assert_eq!(page(fetch(&client, &url("/3")).await).text, "public");
    assert!(matches!(fetch(&client, &url("/4")).await, Err(WebError::Unreachable { .. })));
    assert_eq!((public.asked().len(), private.asked().len(), lookup.asked().len()), (2, 0, 4));
}

#[tokio::test]
async fn private_addresses_are_reached_on_hosts_that_were_allowed_and_on_no_other() {
    let server = Server::start(|_| text("inside")).await;
    let lookup = ListedLookup::new(&[&["127.0.0.1"], &["127.0.0.1"]]);
    let client = WebClient::new(WebOptions {
        policy: AddressPolicy::GlobalOnly,
        allowed_hosts: vec!["wiki.corp".to_owned()],
        lookup,
        ..loopback()
    });
    let url = |host: &str| format!("http://{host}:{}/", server.addr.port());
    assert_eq!(page(fetch(&client, &url("wiki.corp")).await).text, "inside");
    for host in ["other.corp", "127.0.0.1", "localhost"] {
        assert!(matches!(fetch(&client, &url(host)).await, Err(WebError::Private { .. })), "{host}");
    }
    assert_eq!(server.asked().len(), 1);
}

#[tokio::test]
async fn with_a_proxy_the_proxy_resolves_names_but_private_hosts_are_not_asked_of_it() {
    let proxy = Server::start(|_| text("by proxy")).await;
    let lookup = ListedLookup::new(&[]);
    let proxies =
        Matcher::builder().http(format!("http://me:secret@{}", proxy.addr)).no("direct.example").build();
    let client = WebClient::new(WebOptions {
        policy: AddressPolicy::GlobalOnly,
        proxies: Some(proxies),
        lookup: lookup.clone(),
        ..loopback()
    });
    assert_eq!(page(fetch(&client, "http://page.example/a").await).text, "by proxy");
    assert_eq!(proxy.asked(), ["http://page.example/a"]);
    assert_eq!(proxy.last_header("proxy-authorization").as_deref(), Some("Basic bWU6c2VjcmV0"));
    for url in [
        "http://169.254.169.254/",
        "http://[::1]/",
        "http://localhost/",
        "http://2130706433/",
        "http://metadata.google.internal/",
        "http://internal.example.internal./",
        "http://router.local/",
        "http://intranet/",
        "http://nas.home.arpa/",
    ] {
        assert!(matches!(fetch(&client, url).await, Err(WebError::Private { .. })), "{url}");
    }
    assert!(lookup.asked().is_empty());
    assert!(fetch(&client, "http://direct.example/").await.is_err());
    assert_eq!((lookup.asked().len(), proxy.asked().len()), (1, 1));
}

#[tokio::test]
async fn a_body_is_read_up_to_its_bound_however_it_is_packed() {
    let piece = bytes::Bytes::from(vec![b'x'; 1 << 20]);
    let bomb = bytes::Bytes::from_static(include_bytes!("tests/bomb.gz"));
    let server = Server::start(move |asked| match asked.uri().path() {
        "/endless" => {
            let mut answer = text("");
            answer.body = vec![piece.clone(); 6];
            answer.is_endless = true;
            answer
        }
        _ => Answer::new("text/plain", bomb.clone()).header("content-encoding", "gzip"),
    })
    .await;
    let client = loopback_client();
    for path in ["/endless", "/bomb"] {
        let page = page(fetch(&client, &server.url(path)).await);
        assert!(page.is_cut, "{path}");
        assert_eq!(page.text.len(), body::MAX_TEXT_CHARS, "{path}");
    }
}

#[tokio::test]
async fn what_is_no_text_or_no_success_is_an_error() {
    let server = Server::start(|asked| match asked.uri().path() {
        "/png" => Answer::new("image/png", "12345").header("content-length", "5"),
        "/login" => Answer::status(401),
        _ => Answer::status(404),
    })
    .await;
    let client = loopback_client();
    let message = async |path: &str| fetch(&client, &server.url(path)).await.unwrap_err().to_string();
    assert_eq!(message("/png").await, "the page is not text but image/png, 5 bytes");
    assert_eq!(message("/").await, "the server answered 404 Not Found");
    assert_eq!(message("/login").await, "the server answered 401 Unauthorized");
    assert_eq!(server.asked().len(), 3);
}

#[tokio::test]
async fn a_request_that_is_cancelled_ends() {
    let server = Server::start(|_| Answer { is_endless: true, ..text("x") }).await;
    let (client, cancel) = (loopback_client(), CancellationToken::new());
    let url = Url::parse(&server.url("/")).unwrap();
    let request = tokio::spawn({
        let cancel = cancel.clone();
        async move { client.fetch(&url, &[], &cancel).await }
    });
    while server.asked().is_empty() {
        tokio::task::yield_now().await;
    }
    cancel.cancel();
    assert_eq!(request.await.unwrap(), Err(WebError::Cancelled));
}

#[tokio::test(start_paused = true)]
async fn a_request_that_takes_too_long_ends() {
    let started = tokio::time::Instant::now();
    let fetched = within_limits(futures::future::pending(), &CancellationToken::new()).await;
    assert_eq!(fetched, Err(WebError::TimedOut { limit: TIME_LIMIT }));
    assert_eq!(started.elapsed(), TIME_LIMIT);
}

#[tokio::test]
async fn a_private_host_that_is_named_is_reached_each_time_again_and_no_other() {
    let server = Server::start(|asked| match asked.uri().path() {
        "/away" => Answer::redirect(302, "http://169.254.169.254/latest"),
        _ => text("dev"),
    })
    .await;
    let proxies = Some(Matcher::builder().http("http://127.0.0.1:1").build());
    let client = WebClient::new(WebOptions { proxies, ..WebOptions::default() });
    let fetch = async |url: &str, hosts: &[&str]| {
        let hosts: Vec<String> = hosts.iter().map(|host| (*host).to_owned()).collect();
        client.fetch(&Url::parse(url).unwrap(), &hosts, &CancellationToken::new()).await
    };
    let url = server.url("/");
    for _ in 0..2 {
        assert_eq!(page(fetch(&url, &["127.0.0.1"]).await).text, "dev");
    }
    assert_eq!(server.asked(), ["/", "/"]);
    assert!(matches!(fetch(&url, &["localhost", "127.0.0.2"]).await, Err(WebError::Private { .. })));
    assert!(matches!(fetch(&url, &[]).await, Err(WebError::Private { .. })));
    let away = fetch(&server.url("/away"), &["127.0.0.1"]).await;
    assert!(matches!(away, Ok(FetchOutcome::Elsewhere { .. })), "{away:?}");
}
