//! The scripted model as a process of its own.
//!
//! Rule: it is controlled over HTTP as any client could, and ends with its handle.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;

use serde_json::Value;

use crate::LIMIT;
use crate::process::{Process, in_background};
use crate::script::Script;

/// A running scripted model.
#[derive(Debug)]
pub struct ScriptedModel {
    base_url: String,
    /// Its standard input is open as long as this lives.
    _process: Process,
}

impl ScriptedModel {
    /// Serves a script, which is written to `file`.
    ///
    /// # Panics
    /// When it cannot be started or says something else than where it listens.
    #[must_use]
    pub fn start(script: &Script, file: &Path) -> Self {
        std::fs::write(file, script.json().to_string()).expect("the script can be written");
        let file = file.to_str().expect("paths of tests are text");
        let mut process = Process::start(&["scripted-model", "--script", file], None, &[]);
        let mut stdout = BufReader::new(process.child().stdout.take().expect("stdout is a pipe"));
        let hello = in_background(move || {
            let mut line = String::new();
            stdout.read_line(&mut line).expect("a pipe can be read");
            (line, stdout)
        });
        let (line, stdout) = hello.recv_timeout(LIMIT).expect("the scripted model says where it listens");
        // Open as long as the model lives.
        process.child().stdout = Some(stdout.into_inner());
        let Ok(hello) = serde_json::from_str::<Value>(&line) else {
            let mut stderr = String::new();
            let pipe = process.child().stderr.as_mut().expect("stderr is a pipe");
            pipe.read_to_string(&mut stderr).expect("a pipe can be read");
            panic!("the scripted model said {line:?} instead of where it listens; {stderr}");
        };
        let base_url = hello["listening"].as_str().expect("an address").to_owned();
        Self { base_url, _process: process }
    }

    /// Where it listens.
    #[must_use]
    pub fn base_url(&self) -> &str {
        &self.base_url
    }

    /// The bodies of the requests for an answer so far, refused ones included.
    #[must_use]
    pub fn requests(&self) -> Vec<Value> {
        self.recorded().into_iter().map(|mut request| request["body"].take()).collect()
    }

    /// The requests for an answer so far, refused ones included: each `{wire, path, bytes, receivedNs, sentNs, body}`.
    #[must_use]
    pub fn recorded(&self) -> Vec<Value> {
        list(self.control("GET", "requests"))
    }

    /// As [`ScriptedModel::recorded`] without the bodies. The times are nanoseconds of the model's clock: when the
    /// request had arrived as a whole, and when the last byte of its answer was written.
    #[must_use]
    pub fn exchanges(&self) -> Vec<Value> {
        list(self.control("GET", "exchanges"))
    }

    /// Why requests were refused as invalid so far, oldest first.
    #[must_use]
    pub fn refusals(&self) -> Vec<Value> {
        list(self.control("GET", "refusals"))
    }

    /// Lets the model forget every response that could be continued from.
    pub fn forget(&self) {
        self.control("POST", "forget");
    }

    /// The newest request for an answer.
    ///
    /// # Panics
    /// If absent.
    #[must_use]
    pub fn last_request(&self) -> Value {
        let mut newest = self.control("GET", "newest");
        assert!(!newest.is_null(), "the model was asked");
        newest["body"].take()
    }

    /// The results in the newest request's last message: text and whether it is an error, in order.
    #[must_use]
    pub fn last_results(&self) -> Vec<(String, bool)> {
        let request = self.last_request();
        let messages = request["messages"].as_array().expect("messages");
        results_of(messages.last().expect("a message"))
    }

    /// Opens a gate for good.
    pub fn release(&self, gate: &str) {
        self.control("POST", &format!("release/{gate}"));
    }

    /// Waits until an answer is held at a gate.
    pub fn wait_until_held(&self, gate: &str) {
        self.control("GET", &format!("waiting/{gate}"));
    }

    fn control(&self, method: &str, path: &str) -> Value {
        let host = self.base_url.strip_prefix("http://").expect("an http address");
        let mut stream = TcpStream::connect(host).expect("the scripted model listens");
        stream.set_read_timeout(Some(LIMIT)).expect("a limit can be set");
        write!(stream, "{method} /scripted/{path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n")
            .expect("the scripted model reads");
        let mut response = String::new();
        stream.read_to_string(&mut response).expect("the scripted model answers");
        let (head, body) = response.split_once("\r\n\r\n").expect("a response");
        assert!(head.starts_with("HTTP/1.1 200"), "{method} /scripted/{path}: {response}");
        serde_json::from_str(body).unwrap_or_else(|error| panic!("{path}: {error} in {response}"))
    }
}

fn list(answer: Value) -> Vec<Value> {
    match answer {
        Value::Array(list) => list,
        other => panic!("{other} is no list of requests"),
    }
}

/// The tool results in a message: text and whether it is an error, in order.
///
/// # Panics
/// When the message has no list of blocks.
#[must_use]
pub fn results_of(message: &Value) -> Vec<(String, bool)> {
    let blocks = message["content"].as_array().unwrap_or_else(|| panic!("{message} has no blocks"));
    blocks
        .iter()
        .filter(|block| block["type"] == "tool_result")
        .map(|block| (text_of(&block["content"]), block["is_error"] == true))
        .collect()
}

/// The text of a content, which is a string or a list of blocks.
#[must_use]
pub fn text_of(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        Value::Array(blocks) => blocks.iter().filter_map(|block| block["text"].as_str()).collect(),
        _ => String::new(),
    }
}
