//! Signing in to a server in the network, with the browser's part played by the test.
//!
//! Rule: the server here is as closed as a real one: without the token that it has given out itself it answers nothing.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;

use kode_e2e::{Project, Script, call, say};
use serde_json::{Value, json};

use super::{listed, open};

/// The token that the server gives out.
const TOKEN: &str = "the-token-of-the-test";

/// A request, as far as it counts.
struct Request {
    path: String,
    token: bool,
    body: String,
}

fn read(stream: &TcpStream) -> Option<Request> {
    let mut reader = BufReader::new(stream);
    let mut line = String::new();
    reader.read_line(&mut line).ok()?;
    let path = line.split(' ').nth(1)?.to_owned();
    let (mut length, mut token) = (0, false);
    loop {
        let mut header = String::new();
        reader.read_line(&mut header).ok()?;
        let header = header.trim_end().to_lowercase();
        if header.is_empty() {
            break;
        }
        if let Some(value) = header.strip_prefix("content-length:") {
            length = value.trim().parse().ok()?;
        }
        token |= header == format!("authorization: bearer {TOKEN}");
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    Some(Request { path, token, body: String::from_utf8(body).ok()? })
}

/// Status, further headers and body of the answer to a request.
fn answer(base: &str, request: &Request) -> (&'static str, String, Value) {
    let ok = |body: Value| ("200 OK", String::new(), body);
    match request.path.split('?').next().unwrap_or_default() {
        "/mcp" if !request.token => {
            let challenge = format!(
                "WWW-Authenticate: Bearer resource_metadata=\"{base}/.well-known/oauth-protected-resource\"\r\n"
            );
            ("401 Unauthorized", challenge, json!({}))
        }
        "/mcp" => {
            let message: Value = serde_json::from_str(&request.body).unwrap_or_default();
            let result = match message["method"].as_str().unwrap_or_default() {
                "initialize" => json!({
                    "protocolVersion": message["params"]["protocolVersion"], "capabilities": { "tools": {} },
                    "serverInfo": { "name": "closed", "version": "1" },
                }),
                "tools/list" => json!({ "tools": [{ "name": "open", "inputSchema": { "type": "object" } }] }),
                "tools/call" => json!({ "content": [{ "type": "text", "text": "it is open" }] }),
                "ping" => json!({}),
                _ => return ("202 Accepted", String::new(), Value::Null),
            };
            ok(json!({ "jsonrpc": "2.0", "id": message["id"], "result": result }))
        }
        path if path.starts_with("/.well-known/oauth-protected-resource") => {
            ok(json!({ "resource": format!("{base}/mcp"), "authorization_servers": [base] }))
        }
        path if path.starts_with("/.well-known/oauth-authorization-server") => ok(json!({
            "issuer": base, "authorization_endpoint": format!("{base}/authorize"),
            "token_endpoint": format!("{base}/token"), "registration_endpoint": format!("{base}/register"),
            "response_types_supported": ["code"], "code_challenge_methods_supported": ["S256"],
        })),
        "/register" => {
            let wanted: Value = serde_json::from_str(&request.body).unwrap_or_default();
            let client = json!({ "client_id": "client", "redirect_uris": wanted["redirect_uris"] });
            ("201 Created", String::new(), client)
        }
        "/token" if request.body.contains("code=the-code") && request.body.contains("code_verifier=") => {
            ok(json!({ "access_token": TOKEN, "token_type": "Bearer", "expires_in": 3600 }))
        }
        _ => ("404 Not Found", String::new(), json!({})),
    }
}

/// Starts the server, and gives its address.
pub(crate) fn serve() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let base = format!("http://{}", listener.local_addr().unwrap());
    let of = base.clone();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let base = of.clone();
            std::thread::spawn(move || {
                let Some(request) = read(&stream) else { return };
                let (status, headers, body) = answer(&base, &request);
                let body = if body.is_null() { String::new() } else { body.to_string() };
                let head = format!(
                    "HTTP/1.1 {status}\r\nContent-Type: application/json\r\n{headers}Content-Length: {}\r\nConnection: \
                     close\r\n\r\n",
                    body.len()
                );
                // A client that does not wait for the answer has gone.
                let _ = (&stream).write_all(format!("{head}{body}").as_bytes());
            });
        }
    });
    base
}

/// The browser after the user's consent: it goes where the page sends it.
pub(crate) fn say_yes(page: &str) -> String {
    let page = url::Url::parse(page).unwrap();
    let value = |name: &str| {
        page.query_pairs().find(|(known, _)| known == name).unwrap_or_else(|| panic!("{page}")).1.into_owned()
    };
    let back = url::Url::parse(&value("redirect_uri")).unwrap();
    let mut stream = TcpStream::connect((back.host_str().unwrap(), back.port().unwrap())).unwrap();
    let path = format!("{}?code=the-code&state={}", back.path(), value("state"));
    write!(stream, "GET {path} HTTP/1.1\r\nHost: x\r\n\r\n").unwrap();
    let mut said = String::new();
    stream.read_to_string(&mut said).unwrap();
    said
}

#[cfg(unix)]
#[test]
fn who_signs_in_in_the_browser_has_the_tools_and_the_token_is_kept_for_them_alone() {
    let base = serve();
    let project = Project::new(
        &Script::default()
            .when("^first$", [say("Hello.")])
            .when("^second$", [call("mcp__closed__open", json!({})), say("Done.")]),
    );
    let servers = json!({ "closed": { "type": "http", "url": format!("{base}/mcp") } });
    let client = open(&project, &servers, &[]);
    let session = client.session_with(json!({ "mode": "bypassPermissions" }));
    session.run("first");
    assert_eq!(listed(&client, "closed")["state"], "needsAuth");
    let page = session.call("agent/mcp/authenticate", json!({ "server": "closed" }));
    let said = say_yes(page["url"].as_str().unwrap());
    assert!(said.starts_with("HTTP/1.1 200") && said.contains("close this page"), "{said}");
    session.wait_event("the connection", |event| {
        event["type"] == "mcp_changed" && event["servers"][0]["state"] == "connected"
    });
    session.run("second");
    assert_eq!(project.model.last_results(), [("it is open".to_owned(), false)]);
    let tokens = project.home().join("mcp/tokens");
    let file = std::fs::read_dir(&tokens).unwrap().next().unwrap().unwrap().path();
    assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    client.shut_down();
    let again = open(&project, &servers, &[]);
    let session = again.session();
    session.run("first");
    assert_eq!(listed(&again, "closed")["state"], "connected", "the token is still there");
}
