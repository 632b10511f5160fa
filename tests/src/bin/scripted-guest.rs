//! An agent that does what a script says, over the wire of the Agent Client Protocol: its first argument is a file with the steps
//! of its prompt, its second a file for the answers that it gets.
//!
//! Rule: it speaks the protocol by hand, so that what it says wrong is wrong on purpose.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "an agent for tests fails a test by panicking")]
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "its streams are what it is about")]
#![allow(clippy::disallowed_methods, reason = "it does by itself what no agent here may")]
#![allow(clippy::zombie_processes, reason = "what it leaves behind is what it is about")]

use std::fs::{self, OpenOptions};
use std::io::{self, Lines, StdinLock, Write};
use std::process::{Command, Stdio, exit};

use serde_json::{Value, json};

struct Guest {
    lines: Lines<StdinLock<'static>>,
    log: String,
    next: i64,
    is_cancelled: bool,
}

fn send(message: &Value) {
    let mut out = io::stdout().lock();
    // The other side may be gone.
    if writeln!(out, "{message}").and_then(|()| out.flush()).is_err() {
        exit(0);
    }
}

impl Guest {
    /// The next message; the program ends with its input.
    fn message(&mut self) -> Value {
        match self.lines.next() {
            Some(Ok(line)) => serde_json::from_str(&line).expect("a message is JSON"),
            _ => exit(0),
        }
    }

    /// Waits for the answer to a request of its own.
    fn answer(&mut self, id: i64) -> Value {
        loop {
            let message = self.message();
            if message["method"] == "session/cancel" {
                self.is_cancelled = true;
            } else if message["id"] == id {
                return message;
            }
        }
    }

    fn ask(&mut self, method: &str, mut params: Value) -> Value {
        self.next += 1;
        params["sessionId"] = "s".into();
        send(&json!({ "jsonrpc": "2.0", "id": self.next, "method": method, "params": params }));
        let answer = self.answer(self.next);
        self.note(&json!({ "method": method, "result": answer["result"], "error": answer["error"] }));
        answer
    }

    fn note(&self, entry: &Value) {
        let mut file = OpenOptions::new().create(true).append(true).open(&self.log).unwrap();
        writeln!(file, "{entry}").unwrap();
    }

    fn update(&self, update: &Value) {
        let params = json!({ "sessionId": "s", "update": update });
        send(&json!({ "jsonrpc": "2.0", "method": "session/update", "params": params }));
    }

    fn read(&mut self, path: &Value) -> String {
        let answer = self.ask("fs/read_text_file", json!({ "path": path }));
        answer["result"]["content"].as_str().unwrap_or_default().to_owned()
    }

    /// Does one step. The answer is the stop reason where the step ends the turn.
    fn step(&mut self, step: &Value) -> Option<String> {
        let (name, value) = step.as_object().and_then(|step| step.iter().next()).expect("a step has a name");
        let text = || value.as_str().expect("a step of one text");
        match name.as_str() {
            "say" | "think" => {
                let kind = if name == "say" { "agent_message_chunk" } else { "agent_thought_chunk" };
                self.update(&json!({ "sessionUpdate": kind, "content": { "type": "text", "text": text() } }));
            }
            "update" => self.update(value),
            "read" => drop(self.read(value)),
            "ask" => drop(self.ask(value["method"].as_str().unwrap(), value["params"].clone())),
            "write" => {
                self.ask("fs/write_text_file", json!({ "path": value[0], "content": value[1] }));
            }
            "replace" => {
                let known = self.read(&value[0]);
                let new = known.replace(value[1].as_str().unwrap(), value[2].as_str().unwrap());
                self.ask("fs/write_text_file", json!({ "path": value[0], "content": new }));
            }
            "permit" => {
                let options = json!([
                    { "optionId": "always", "name": "Always", "kind": "allow_always" },
                    { "optionId": "once", "name": "Once", "kind": "allow_once" },
                    { "optionId": "no", "name": "No", "kind": "reject_once" },
                ]);
                let wish = json!({ "toolCall": value["toolCall"], "options": options });
                let answer = self.ask("session/request_permission", wish);
                let chosen = &answer["result"]["outcome"]["optionId"];
                let steps = if chosen == "once" { &value["then"] } else { &value["otherwise"] };
                return steps.as_array().into_iter().flatten().find_map(|step| self.step(step));
            }
            "disk" => fs::write(value[0].as_str().unwrap(), value[1].as_str().unwrap()).unwrap(),
            "spawn" => {
                let child = Command::new("sleep").arg(text()).spawn().unwrap();
                self.note(&json!({ "child": child.id(), "own": std::process::id() }));
            }
            "leave" => {
                // In a group of its own, as the shells of many agents are.
                let mut left = Command::new("sleep");
                #[cfg(unix)]
                std::os::unix::process::CommandExt::process_group(&mut left, 0);
                let child = left.arg(text()).stdin(Stdio::null()).spawn().unwrap();
                self.note(&json!({ "child": child.id(), "own": std::process::id() }));
            }
            "environment" => {
                let value = std::env::var(text()).ok();
                self.note(&json!({ "variable": text(), "value": value }));
            }
            "complain" => eprintln!("{}", text()),
            "raw" => {
                println!("{}", text());
            }
            "exit" => exit(i32::try_from(value.as_i64().unwrap()).unwrap()),
            "wait" => {
                while !self.is_cancelled {
                    self.is_cancelled = self.message()["method"] == "session/cancel";
                }
            }
            "stop" => return Some(text().to_owned()),
            other => panic!("there is no step `{other}`"),
        }
        self.is_cancelled.then(|| "cancelled".to_owned())
    }
}

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let script: Value = serde_json::from_str(&fs::read_to_string(&arguments[1]).unwrap()).unwrap();
    let mut guest =
        Guest { lines: io::stdin().lines(), log: arguments[2].clone(), next: 0, is_cancelled: false };
    loop {
        let message = guest.message();
        let (id, params) = (&message["id"], &message["params"]);
        let result = match message["method"].as_str().unwrap_or_default() {
            "initialize" => {
                let name = script["name"].as_str().unwrap_or("scripted-guest");
                let info = json!({ "name": name, "version": "1" });
                json!({ "protocolVersion": script["version"].as_u64().unwrap_or(1), "agentInfo": info })
            }
            "session/new" => match script.get("refuses") {
                Some(error) => {
                    send(&json!({ "jsonrpc": "2.0", "id": id, "error": error }));
                    continue;
                }
                None => {
                    guest.note(&json!({ "cwd": params["cwd"] }));
                    let modes = ["free", "asking"].map(|id| json!({ "id": id, "name": id }));
                    json!({ "sessionId": "s", "modes": { "currentModeId": "free", "availableModes": modes } })
                }
            },
            "session/set_mode" => {
                guest.note(&json!({ "mode": params["modeId"] }));
                json!({})
            }
            "session/prompt" => {
                guest.note(&json!({ "prompt": params["prompt"][0]["text"] }));
                let steps = script["steps"].as_array().expect("steps").clone();
                let stop = steps.iter().find_map(|step| guest.step(step));
                json!({ "stopReason": stop.unwrap_or_else(|| "end_turn".to_owned()) })
            }
            _ => continue,
        };
        send(&json!({ "jsonrpc": "2.0", "id": id, "result": result }));
    }
}
