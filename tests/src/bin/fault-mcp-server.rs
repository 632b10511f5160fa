//! An MCP server that misbehaves as it is reported: its first argument says how it starts, the tools that are called what
//! it does.
//!
//! Rule: it speaks the protocol by hand, so that what it says wrong is wrong on purpose.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a server for tests fails a test by panicking")]
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "its streams are what it spoils")]

use std::fs::OpenOptions;
use std::io::{self, BufRead, Write};
use std::net::TcpListener;
use std::process::exit;
use std::time::Duration;

use serde_json::{Value, json};

/// How it starts.
fn begin(how: &str) {
    match how {
        "exit" => {
            eprintln!("fault: the token is missing");
            exit(3);
        }
        "hang" => loop {
            std::thread::sleep(Duration::from_secs(3600));
        },
        "slow" => std::thread::sleep(Duration::from_millis(500)),
        "garbage" => println!("Welcome to the server!\n{{ this is no JSON\n\u{1b}[31mred"),
        "flood" => {
            let line = "x".repeat(1023);
            (0..4096).for_each(|_| eprintln!("{line}"));
            eprintln!("the end of the flood");
        }
        _ => {}
    }
}

/// Enters what happens in the file that `FAULT_LOG` names.
fn note(line: &str) {
    if let Ok(path) = std::env::var("FAULT_LOG") {
        let mut file = OpenOptions::new().create(true).append(true).open(path).unwrap();
        writeln!(file, "{line}").unwrap();
    }
}

fn send(message: &Value) {
    let mut out = io::stdout().lock();
    writeln!(out, "{message}").unwrap();
    out.flush().unwrap();
}

fn answer(id: &Value, result: Value) {
    send(&json!({ "jsonrpc": "2.0", "id": id, "result": result }));
}

fn text(text: &str) -> Value {
    json!({ "content": [{ "type": "text", "text": text }] })
}

fn tools(version: u32) -> Value {
    let tool = |name: &str, properties: Value| {
        json!({
            "name": name, "description": format!("Does {name}, version {version}."),
            "inputSchema": { "type": "object", "properties": properties },
        })
    };
    let mut echo = tool("echo", json!({ "text": { "type": "string", "minLength": 2 } }));
    echo["inputSchema"]["required"] = json!(["text"]);
    echo["annotations"] = json!({ "readOnlyHint": true });
    let mut tools = vec![echo];
    for name in ["hang", "crash", "progress", "ask", "roots", "change", "fail", "environment"] {
        tools.push(tool(name, json!({})));
    }
    tools.push(tool("huge", json!({ "size": { "type": "integer" } })));
    tools.push(tool("page", json!({ "url": { "type": "string" } })));
    tools.push(tool("toll", json!({})));
    tools.push(tool("write", json!({ "path": { "type": "string" } })));
    if version > 1 {
        tools.push(tool("new one", json!({})));
    }
    json!({ "tools": tools })
}

/// The number of further tools of a server that has many.
const MANY: usize = 100;

fn one_of_many(number: usize) -> Value {
    let description =
        format!("Does the work of number {number}. {}", "It has much to say about that. ".repeat(30));
    json!({ "name": format!("many_{number}"), "description": description, "inputSchema": { "type": "object" } })
}

/// The request to the client, and which call waits for the answer.
struct Server {
    how: String,
    version: u32,
    waiting: Option<(Value, Value)>,
    /// Whether the page that `toll` needs was named.
    named: bool,
}

/// A page that is done as soon as a browser asks for it, and reported then.
fn page(id: &str) -> Value {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/pay?id={id}", listener.local_addr().unwrap());
    let complete = json!({
        "jsonrpc": "2.0", "method": "notifications/elicitation/complete", "params": { "elicitationId": id },
    });
    std::thread::spawn(move || {
        let (mut browser, _) = listener.accept().unwrap();
        // A connection that is closed with a request in it is reset.
        let asked = io::BufReader::new(&browser).lines().map_while(Result::ok).find(String::is_empty);
        assert_eq!(asked.as_deref(), Some(""));
        send(&complete);
        browser.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\nConnection: close\r\n\r\nPaid").unwrap();
    });
    json!({ "mode": "url", "elicitationId": id, "url": url, "message": "Pay the toll." })
}

impl Server {
    fn handle(&mut self, message: &Value) {
        let id = &message["id"];
        match message["method"].as_str() {
            Some("initialize") => {
                note(&format!("client {}", message["params"]["clientInfo"]));
                note(&format!("elicitation {}", message["params"]["capabilities"]["elicitation"]));
                answer(
                    id,
                    json!({
                        "protocolVersion": message["params"]["protocolVersion"],
                        "capabilities": { "tools": { "listChanged": true } },
                        "serverInfo": { "name": "fault", "version": "1" },
                        "instructions": "Call echo before anything else.",
                    }),
                );
            }
            Some("tools/list") => {
                let mut listed = tools(self.version);
                if self.how == "many" {
                    listed["tools"].as_array_mut().unwrap().extend((0..MANY).map(one_of_many));
                }
                if self.how == "undescribed" {
                    listed["tools"][0].as_object_mut().unwrap().remove("description");
                }
                answer(id, listed);
            }
            Some("ping") => answer(id, json!({})),
            Some("tools/call") => self.call(id, &message["params"]),
            Some("notifications/cancelled") => note(&format!("cancelled {}", message["params"]["requestId"])),
            Some("notifications/initialized") => note(&format!("pid {}", std::process::id())),
            Some(_) if !id.is_null() => {
                let error = json!({ "code": -32601, "message": "not known" });
                send(&json!({ "jsonrpc": "2.0", "id": id, "error": error }));
            }
            Some(_) => {}
            None => {
                if let Some((asked, call)) = self.waiting.take().filter(|(asked, _)| asked == id) {
                    let _ = asked;
                    answer(&call, text(&message["result"].to_string()));
                }
            }
        }
    }

    fn ask(&mut self, call: &Value, method: &str, params: Value) {
        let id = json!("asked");
        send(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }));
        self.waiting = Some((id, call.clone()));
    }

    fn call(&mut self, id: &Value, params: &Value) {
        let arguments = &params["arguments"];
        note(&format!("call {}", params["name"].as_str().unwrap_or_default()));
        match params["name"].as_str().unwrap_or_default() {
            "echo" => {
                if self.how == "wrong-id" {
                    answer(&json!(987_654), text("not yours"));
                }
                if self.how == "garbage" {
                    println!("[debug] echo was called");
                }
                answer(id, text(arguments["text"].as_str().unwrap_or_default()));
            }
            "hang" => {}
            "crash" => {
                eprintln!("fault: out of luck");
                if let (Some(path), Some(text)) = (arguments["path"].as_str(), arguments["text"].as_str()) {
                    std::fs::write(path, text).unwrap();
                }
                exit(9);
            }
            "fail" => {
                let mut result = text("the disk is on fire");
                result["isError"] = json!(true);
                answer(id, result);
            }
            "environment" => {
                let names = ["GIVEN", "ANTHROPIC_API_KEY", "CLAUDE_PROJECT_DIR"];
                let reported =
                    names.map(|name| format!("{name}={}", std::env::var(name).unwrap_or_default()));
                answer(id, text(&reported.join("\n")));
            }
            "huge" => {
                let size = usize::try_from(arguments["size"].as_u64().unwrap_or(1)).unwrap();
                answer(id, text(&"y".repeat(size)));
            }
            "write" => {
                let written = std::fs::write(arguments["path"].as_str().unwrap_or_default(), "written\n");
                answer(id, text(&format!("{:?}", written.is_ok())));
            }
            "progress" => {
                let token = &params["_meta"]["progressToken"];
                for step in 1..=3 {
                    let params =
                        json!({ "progressToken": token, "progress": step, "total": 3, "message": "working" });
                    send(&json!({ "jsonrpc": "2.0", "method": "notifications/progress", "params": params }));
                }
                // The answer waits until the client has had to read all of it.
                self.ask(id, "roots/list", json!({}));
            }
            "ask" => self.ask(
                id,
                "elicitation/create",
                json!({
                    "message": "Which color?",
                    "requestedSchema": {
                        "type": "object", "required": ["color"],
                        "properties": { "color": { "type": "string", "enum": ["red", "blue"] } },
                    },
                }),
            ),
            "page" => {
                let mut page = page("page-1");
                if let Some(url) = arguments["url"].as_str() {
                    page["url"] = json!(url);
                }
                self.ask(id, "elicitation/create", page);
            }
            "toll" if self.named => answer(id, text("the toll is paid")),
            "toll" => {
                self.named = true;
                let data = json!({ "elicitations": [page("toll-1")] });
                let error = json!({ "code": -32042, "message": "pay first", "data": data });
                send(&json!({ "jsonrpc": "2.0", "id": id, "error": error }));
            }
            "roots" => self.ask(id, "roots/list", json!({})),
            "change" => {
                self.version += 1;
                send(&json!({ "jsonrpc": "2.0", "method": "notifications/tools/list_changed" }));
                answer(id, text("changed"));
            }
            other if other.starts_with("many_") => answer(id, text(&format!("{other} was called"))),
            other => answer(id, text(&format!("there is no {other}"))),
        }
    }
}

fn main() {
    let how = std::env::args().nth(1).unwrap_or_default();
    begin(&how);
    let version = std::env::var("FAULT_VERSION").ok().and_then(|version| version.parse().ok()).unwrap_or(1);
    let mut server = Server { how, version, waiting: None, named: false };
    for line in io::stdin().lock().lines() {
        let Ok(line) = line else { break };
        if let Ok(message) = serde_json::from_str::<Value>(&line) {
            server.handle(&message);
        }
    }
    note("end");
}
