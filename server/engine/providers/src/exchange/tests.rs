//! Which server a request reaches by the options of its profile, over connections of this machine.
//!
//! Rule: nothing leaves the machine. `0.0.0.0` is reached by loopback and counts as an address elsewhere.

use std::net::Ipv4Addr;
use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::server::conn::http2;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::{TokioExecutor, TokioIo};
use parking_lot::Mutex;
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, ExtendedKeyUsagePurpose, IsCa, KeyPair};
use rustls::ServerConfig;
use rustls::pki_types::PrivatePkcs8KeyDer;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;

use crate::anthropic::Anthropic;
use crate::exchange::testing::{RawServer, answer};
use kode_model::catalog::ModelCatalog;
use kode_model::profile::{Profile, ProfileContext};
use kode_model::{Block, History, Message, Model, ModelError, ModelErrorKind, ModelRequest};

const KEY: &str = "key-of-the-test";

/// A whole answer of a model, as JSON.
fn hello_body() -> String {
    let body = json!({"type": "message", "id": "a", "role": "assistant", "stop_reason": "end_turn",
        "content": [{"type": "text", "text": "hello"}], "usage": {"input_tokens": 1, "output_tokens": 1}});
    body.to_string()
}

/// A whole answer of a model.
fn hello() -> Vec<u8> {
    answer("200 OK\r\ncontent-type: application/json", &hello_body())
}

/// The model at `base_url` with these further options of its profile.
fn model(base_url: &str, mut options: Value) -> Result<Anthropic, ModelError> {
    options["baseUrl"] = json!(base_url);
    options["model"] = json!("m");
    options["apiKey"] = json!(KEY);
    let around = ProfileContext { variable: &|_| None, catalog: ModelCatalog::built_in(), helper: None };
    Anthropic::new(&Profile::resolve("main", serde_json::from_value(options).unwrap(), &around)?)
}

/// Asks the model at `base_url` with these further options of its profile.
async fn ask(base_url: &str, options: Value) -> Result<(), ModelError> {
    let messages = vec![said("hi")].into();
    let request = ModelRequest { messages, max_tokens: 10, ..ModelRequest::default() };
    model(base_url, options)?.complete(&request, &CancellationToken::new()).await.map(drop)
}

fn said(text: &str) -> Message {
    Message::user(vec![Block::Text { text: text.to_owned() }])
}

/// An authority of its own: its certificate in PEM, and TLS for this machine by a certificate it has signed.
fn authority() -> (String, TlsAcceptor) {
    let mut own = CertificateParams::default();
    own.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let authority = CertifiedIssuer::self_signed(own, KeyPair::generate().unwrap()).unwrap();
    let mut params = CertificateParams::new(vec![Ipv4Addr::LOCALHOST.to_string()]).unwrap();
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    let key = KeyPair::generate().unwrap();
    let certificate = params.signed_by(&key, &authority).unwrap();
    let key = PrivatePkcs8KeyDer::from(key.serialize_der());
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certificate.der().clone()], key.into())
        .unwrap();
    (authority.pem(), TlsAcceptor::from(Arc::new(config)))
}

/// The address of a server on this machine that does not count as loopback.
fn elsewhere(server: &RawServer) -> String {
    server.base_url.replace("127.0.0.1", "0.0.0.0")
}

#[tokio::test]
async fn a_server_is_trusted_by_the_authority_that_the_profile_names() {
    let (own, tls) = authority();
    let (other, _) = authority();
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        json!({ "caCertificates": [path] })
    };
    let server = RawServer::start_tls(vec![hello()], tls).await;
    for untrusted in [json!({}), file("other.pem", &other)] {
        let error = ask(&server.base_url, untrusted).await.unwrap_err();
        assert!(error.message.contains("certificate"), "{error}");
        assert_eq!(error.kind, ModelErrorKind::Configuration, "no retry makes it trusted: {error}");
    }
    assert_eq!(server.requests().len(), 0, "who is not trusted is sent nothing");
    ask(&server.base_url, file("both.pem", &format!("{other}{own}"))).await.unwrap();
    assert!(server.requests()[0].contains(KEY));
}

#[tokio::test]
async fn certificates_that_cannot_be_read_are_named_before_anything_is_sent() {
    let server = RawServer::start_tls(vec![hello()], authority().1).await;
    let folder = tempfile::tempdir().unwrap();
    let empty = folder.path().join("empty.pem");
    std::fs::write(&empty, "no certificate").unwrap();
    for file in [empty, folder.path().join("missing.pem")] {
        let error = ask(&server.base_url, json!({ "caCertificates": [file] })).await.unwrap_err();
        assert_eq!(error.kind, ModelErrorKind::Configuration, "{error}");
        assert!(error.message.contains(&*file.to_string_lossy()), "{error}");
    }
    assert_eq!(server.requests().len(), 0);
}

#[tokio::test]
async fn a_server_elsewhere_is_reached_through_the_proxy_of_the_profile() {
    let proxy = RawServer::start(vec![hello()]).await;
    let through = json!({ "proxy": proxy.base_url.replace("http://", "http://me:hush-hush@") });
    ask("http://model.example", through.clone()).await.unwrap();
    let direct = RawServer::start(vec![hello()]).await;
    ask(&elsewhere(&direct), through.clone()).await.unwrap();
    let requests = proxy.requests();
    assert!(requests[0].starts_with("POST http://model.example/v1/messages HTTP/1.1\r\n"), "{requests:?}");
    // `me:hush-hush` in Base64.
    assert!(
        requests[0].to_lowercase().contains("proxy-authorization: basic bwu6ahvzac1odxno"),
        "{requests:?}"
    );
    assert_eq!((requests.len(), direct.requests().len()), (2, 0));

    ask(&direct.base_url, through).await.unwrap();
    ask(&elsewhere(&direct), json!({ "proxy": "none" })).await.unwrap();
    let requests = direct.requests();
    assert_eq!((proxy.requests().len(), requests.len()), (2, 2), "neither loopback nor `none` uses it");
    assert!(requests.iter().all(|request| request.starts_with("POST /v1/messages")), "{requests:?}");
    assert!(!requests.concat().to_lowercase().contains("proxy-auth"), "{requests:?}");
}

#[tokio::test]
async fn a_proxy_hears_nothing_of_what_goes_by_tls_and_its_password_is_not_reported() {
    let proxy = RawServer::start(vec![answer("403 Forbidden", "")]).await;
    let through = json!({ "proxy": proxy.base_url.replace("http://", "http://me:hush-hush@") });
    let error = ask("https://model.example", through.clone()).await.unwrap_err();
    assert_eq!(error.kind, ModelErrorKind::Network, "{error}");
    let requests = proxy.requests();
    assert!(requests[0].starts_with("CONNECT model.example:443 "), "{requests:?}");
    assert!(!requests.concat().contains(KEY), "{requests:?}");
    assert!(!error.to_string().contains("hush-hush"), "{error}");
}

#[tokio::test]
async fn a_redirect_is_not_followed_and_its_target_gets_no_key() {
    let target = RawServer::start(vec![hello()]).await;
    for status in ["301 Moved Permanently", "302 Found", "307 Temporary Redirect", "308 Permanent Redirect"] {
        let head = format!("{status}\r\nlocation: {}/v1/messages", target.base_url);
        let server = RawServer::start(vec![answer(&head, "")]).await;
        let error = ask(&server.base_url, json!({})).await.unwrap_err();
        assert_eq!(error.status, status[..3].parse().ok(), "{error}");
        assert!(server.requests()[0].contains(KEY));
        assert_eq!((server.requests().len(), target.requests().len()), (1, 0), "{status}");
    }
}

/// Serves whole answers by HTTP/2, and keeps the requests: their lengths, an empty line, their bodies.
async fn serve_http2(tls: &TlsAcceptor) -> (String, Arc<Mutex<Vec<String>>>) {
    let mut config = ServerConfig::clone(tls.config());
    config.alpn_protocols = vec![b"h2".to_vec()];
    let tls = TlsAcceptor::from(Arc::new(config));
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let base_url = format!("https://{}", listener.local_addr().unwrap());
    let requests = Arc::new(Mutex::new(Vec::new()));
    let received = Arc::clone(&requests);
    let answer = move |request: Request<Incoming>| {
        let received = Arc::clone(&received);
        async move {
            let length = request.headers()["content-length"].to_str().unwrap().to_owned();
            let body = request.into_body().collect().await?.to_bytes();
            let body = String::from_utf8_lossy(&body);
            received.lock().push(format!("content-length: {length}\r\n\r\n{body}"));
            let answer = Response::builder().header("content-type", "application/json");
            Ok::<_, hyper::Error>(answer.body(Full::<Bytes>::from(hello_body())).unwrap())
        }
    };
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let stream = TokioIo::new(tls.accept(stream).await.unwrap());
            let connection = http2::Builder::new(TokioExecutor::new());
            drop(connection.serve_connection(stream, service_fn(answer.clone())).await);
        }
    });
    (base_url, requests)
}

/// Asks a model three times, each time with a longer history, and checks what it got.
async fn ask_of_a_growing_history(base_url: &str, authority: &Path, requests: impl Fn() -> Vec<String>) {
    let model = model(base_url, json!({ "caCertificates": [authority] })).unwrap();
    let texts: Vec<String> = (0..9).map(|number| format!("{number}").repeat(50_000)).collect();
    let mut history = History::default();
    for round in texts.chunks(3) {
        for (at, text) in round.iter().enumerate() {
            let block = Block::Text { text: text.clone() };
            history.push(if at == 1 { Message::assistant(vec![block]) } else { said(text) });
        }
        let request = ModelRequest { messages: history.clone(), max_tokens: 10, ..ModelRequest::default() };
        model.complete(&request, &CancellationToken::new()).await.unwrap();
    }
    let requests = requests();
    for (number, request) in requests.iter().enumerate() {
        let (head, body) = request.split_once("\r\n\r\n").unwrap();
        assert!(head.to_lowercase().contains(&format!("content-length: {}", body.len())), "{head}");
        let body: Value = serde_json::from_str(body).unwrap();
        let sent = body["messages"].to_string();
        for (at, text) in texts.iter().enumerate() {
            assert_eq!(sent.contains(text), at < 3 * (number + 1), "text {at} in request {number}");
        }
    }
    assert_eq!(requests.len(), 3);
}

#[tokio::test]
async fn a_request_whose_older_messages_were_sent_before_arrives_whole() {
    let (own, tls) = authority();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("own.pem");
    std::fs::write(&file, own).unwrap();
    let open = RawServer::start(vec![hello()]).await;
    ask_of_a_growing_history(&open.base_url, &file, || open.requests()).await;
    let encrypted = RawServer::start_tls(vec![hello()], tls.clone()).await;
    ask_of_a_growing_history(&encrypted.base_url, &file, || encrypted.requests()).await;
    let (base_url, requests) = serve_http2(&tls).await;
    ask_of_a_growing_history(&base_url, &file, || requests.lock().clone()).await;
}
