//! A session as a client with a panel sees it.
//!
//! Rule: only sugar over `agent/*`; every wait is for the event that reports the change.

use serde_json::{Value, json};

use crate::client::Client;
use crate::connection::RpcError;

/// A session on a client.
#[derive(Clone)]
pub struct Session<'a> {
    client: &'a Client,
    /// Its id.
    pub id: String,
}

impl<'a> Session<'a> {
    /// The session of that id.
    #[must_use]
    pub fn new(client: &'a Client, id: &str) -> Self {
        Self { client, id: id.to_owned() }
    }

    /// The client it is on.
    #[must_use]
    pub fn client(&self) -> &'a Client {
        self.client
    }

    /// Sends a request about this session; `params` gets the session's id.
    ///
    /// # Errors
    /// The error the server answers with.
    pub fn request(&self, method: &str, mut params: Value) -> Result<Value, RpcError> {
        params["sessionId"] = json!(self.id);
        self.client.request(method, params)
    }

    /// Sends a request about this session that must work.
    ///
    /// # Panics
    /// When the server answers with an error.
    pub fn call(&self, method: &str, params: Value) -> Value {
        self.request(method, params).unwrap_or_else(|error| panic!("{method}: {error:?}"))
    }

    /// Submits a prompt; the answer has the id of its turn, or of its place in the queue.
    pub fn submit(&self, text: &str) -> Value {
        self.call("agent/turn/start", json!({ "input": [{ "type": "text", "text": text }] }))
    }

    /// Submits a prompt and gives the id of its turn.
    ///
    /// # Panics
    /// When it was queued.
    pub fn prompt(&self, text: &str) -> String {
        let answer = self.submit(text);
        answer["turnId"].as_str().unwrap_or_else(|| panic!("{answer} begins no turn")).to_owned()
    }

    /// Submits a prompt and waits for the end of its turn; gives the `done` event.
    pub fn run(&self, text: &str) -> Value {
        let turn = self.prompt(text);
        self.wait_done(&turn)
    }

    /// Waits for the end of a turn; gives the `done` event.
    pub fn wait_done(&self, turn: &str) -> Value {
        self.wait_event(&format!("the end of {turn}"), |event| {
            event["type"] == "done" && event["turnId"] == turn
        })
    }

    /// Waits for the first event that fits, from the session's beginning on.
    pub fn wait_event(&self, what: &str, mut fits: impl FnMut(&Value) -> bool) -> Value {
        self.client.wait_for(what, |received| {
            received.events(&self.id).iter().map(|record| &record["event"]).find(|event| fits(event)).cloned()
        })
    }

    /// Waits for the `n`th permission prompt of the session, counted from 0.
    pub fn wait_permission(&self, n: usize) -> Value {
        self.client.wait_for(&format!("permission prompt {n}"), |received| {
            let events = received.events(&self.id).iter().map(|record| &record["event"]);
            events
                .filter(|event| event["type"] == "permission_required")
                .nth(n)
                .map(|event| event["prompt"].clone())
        })
    }

    /// Waits for the `n`th permission prompt of the session, counted from 0; `None` when the turn ends without it.
    pub fn permission_or_end(&self, turn: &str, n: usize) -> Option<Value> {
        let event = self.client.wait_for("a permission prompt or the end of the turn", |received| {
            let events = || received.events(&self.id).iter().map(|record| &record["event"]);
            let mut prompts = events().filter(|event| event["type"] == "permission_required");
            let end = || events().find(|event| event["type"] == "done" && event["turnId"] == turn);
            prompts.nth(n).or_else(end).cloned()
        });
        (event["type"] == "permission_required").then(|| event["prompt"].clone())
    }

    /// Answers a permission prompt.
    ///
    /// # Errors
    /// The error the server answers with.
    pub fn respond(&self, prompt: &Value, mut answer: Value) -> Result<Value, RpcError> {
        answer["permissionId"] = prompt["permissionId"].clone();
        self.request("agent/permission/respond", answer)
    }

    /// Waits for the `n`th permission prompt and allows it once; gives the prompt.
    ///
    /// # Panics
    /// When the answer is refused.
    pub fn allow(&self, n: usize) -> Value {
        let prompt = self.wait_permission(n);
        self.respond(&prompt, json!({ "decision": "allow", "scope": "once" })).expect("the answer is taken");
        prompt
    }

    /// The `agent/event` parameters that came so far.
    #[must_use]
    pub fn records(&self) -> Vec<Value> {
        self.client.look(|received| received.events(&self.id).to_vec())
    }

    /// The events that came so far.
    #[must_use]
    pub fn events(&self) -> Vec<Value> {
        self.records().into_iter().map(|record| record["event"].clone()).collect()
    }

    /// The session as the server tells it now.
    #[must_use]
    pub fn snapshot(&self) -> Value {
        self.call("agent/session/load", json!({}))
    }

    /// The items of the transcript now.
    ///
    /// # Panics
    /// When the snapshot has none.
    #[must_use]
    pub fn items(&self) -> Vec<Value> {
        self.snapshot()["items"].as_array().expect("items").clone()
    }

    /// The tool calls of the transcript now, in order.
    #[must_use]
    pub fn calls(&self) -> Vec<Value> {
        self.items()
            .into_iter()
            .map(|item| item["body"].clone())
            .filter(|body| body["type"] == "toolCall")
            .collect()
    }

    /// The notices of the transcript now, in order.
    #[must_use]
    pub fn notices(&self) -> Vec<Value> {
        self.items()
            .into_iter()
            .map(|item| item["body"].clone())
            .filter(|body| body["type"] == "notice")
            .collect()
    }

    /// The files with hunks that wait for the user.
    ///
    /// # Panics
    /// When the answer has none.
    #[must_use]
    pub fn edited_files(&self) -> Vec<Value> {
        self.call("agent/edits/list", json!({}))["files"].as_array().expect("files").clone()
    }

    /// The hunks that wait for the user, in the order of files and places.
    #[must_use]
    pub fn hunks(&self) -> Vec<Value> {
        let hunks = |file: Value| file["hunks"].as_array().cloned().unwrap_or_default();
        self.edited_files().into_iter().flat_map(hunks).collect()
    }

    /// Begins an act on some hunks.
    ///
    /// # Errors
    /// The error the server answers with.
    pub fn try_resolve(&self, hunks: &[&Value], action: &str, amended: &str) -> Result<String, RpcError> {
        let ids: Vec<&Value> = hunks.iter().map(|hunk| &hunk["hunkId"]).collect();
        let selection = json!({ "type": "hunks", "sessionId": self.id, "hunkIds": ids });
        self.begin_resolution(selection, action, amended)
    }

    /// Acts on some hunks and gives the `edits_resolved` event.
    ///
    /// # Panics
    /// When the server refuses.
    pub fn resolve(&self, hunks: &[&Value], action: &str) -> Value {
        let id = self.try_resolve(hunks, action, "ask").unwrap_or_else(|error| panic!("{action}: {error:?}"));
        self.wait_resolved(&id)
    }

    /// Takes out hunks that the user has changed and leaves what the user typed; gives the `edits_resolved` event.
    ///
    /// # Panics
    /// When the server refuses.
    pub fn undo_amended(&self, hunks: &[&Value]) -> Value {
        let id = self.try_resolve(hunks, "undo", "undo").unwrap_or_else(|error| panic!("undo: {error:?}"));
        self.wait_resolved(&id)
    }

    /// Begins an act on what a selection names.
    ///
    /// # Errors
    /// The error the server answers with.
    ///
    /// # Panics
    /// When the answer names no act.
    pub fn begin_resolution(
        &self,
        selection: Value,
        action: &str,
        amended: &str,
    ) -> Result<String, RpcError> {
        let params = json!({ "selection": selection, "action": action, "amended": amended });
        let answer = self.client.request("agent/edits/resolve", params)?;
        let id = &answer["resolutions"][0]["resolutionId"];
        Ok(id.as_str().unwrap_or_else(|| panic!("{answer} names no act")).to_owned())
    }

    /// Takes an act back, the newest when none is named, and gives the `edits_resolved` event.
    ///
    /// # Panics
    /// When the server refuses.
    pub fn revert(&self, resolution: Option<&str>) -> Value {
        let params = resolution.map_or_else(|| json!({}), |id| json!({ "resolutionId": id }));
        let answer = self.call("agent/edits/revert", params);
        self.wait_resolved(answer["resolutionId"].as_str().unwrap_or_else(|| panic!("{answer} names no act")))
    }

    /// Waits for the end of an act; gives the `edits_resolved` event.
    pub fn wait_resolved(&self, resolution: &str) -> Value {
        self.wait_event(&format!("the end of {resolution}"), |event| {
            event["type"] == "edits_resolved" && event["resolutionId"] == resolution
        })
    }
}
