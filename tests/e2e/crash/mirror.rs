//! A session as a client shows it: a fold over a snapshot and the events that follow it.
//!
//! Rule: it knows what the protocol says and nothing of the program; what it holds is what a person was shown.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

/// The display of a session in a client.
#[derive(Clone, Debug, Default)]
pub(super) struct Mirror {
    /// The number of the newest event that is in it.
    pub(super) seq: u64,
    /// The state of the session.
    pub(super) state: String,
    /// The open prompts for the user, by id.
    pub(super) waiting: BTreeMap<String, Value>,
    /// The turns that have ended.
    pub(super) ended: BTreeSet<String>,
    items: Vec<Value>,
    queue: Value,
    steering: Value,
    paused: Value,
    draft: Value,
    todos: Value,
    mode: Value,
}

/// Whether a call is in one of some states.
pub(super) fn is_of(call: &Value, states: &[&str]) -> bool {
    call["state"].as_str().is_some_and(|state| states.contains(&state))
}

fn id_of(waiting: &Value) -> String {
    let id = waiting.get("permissionId").unwrap_or(&waiting["questionId"]);
    id.as_str().expect("an id").to_owned()
}

impl Mirror {
    /// The display of a snapshot.
    pub(super) fn of(snapshot: &Value) -> Self {
        let list = |name: &str| snapshot[name].as_array().cloned().unwrap_or_default();
        assert_eq!(snapshot["moreItems"], false, "all items are in the snapshot");
        let waiting = [list("pendingPermissions"), list("questions")].concat();
        Self {
            seq: snapshot["bookmark"]["seq"].as_u64().expect("a number"),
            state: snapshot["state"].as_str().expect("a state").to_owned(),
            waiting: waiting.into_iter().map(|waiting| (id_of(&waiting), waiting)).collect(),
            ended: BTreeSet::new(),
            items: list("items"),
            queue: snapshot["queue"].clone(),
            steering: snapshot["steering"].clone(),
            paused: snapshot["queuePaused"].clone(),
            draft: snapshot["draft"].clone(),
            todos: snapshot["todos"].clone(),
            mode: snapshot["mode"].clone(),
        }
    }

    /// Takes in an event.
    pub(super) fn take(&mut self, record: &Value) {
        let event = &record["event"];
        match event["type"].as_str().expect("a type") {
            "item_added" | "item_updated" | "tool:start" | "tool:end" => self.put(&event["item"]),
            "text_chunk" | "think_chunk" => {
                let found = self.items.iter_mut().find(|item| item["itemId"] == event["itemId"]);
                if let Some(item) = found {
                    let text = item["body"]["text"].as_str().expect("a text").to_owned();
                    item["body"]["text"] = json!(text + event["text"].as_str().expect("a text"));
                }
            }
            "rewound" => {
                let at = self.items.iter().position(|item| item["itemId"] == event["itemId"]);
                self.items.truncate(at.unwrap_or(self.items.len()));
            }
            "permission_required" => self.wait(&event["prompt"]),
            "question_asked" => self.wait(&event["question"]),
            "permission_decided" | "question_answered" => drop(self.waiting.remove(&id_of(event))),
            "agent_resumed" => self.waiting.clear(),
            "queue_changed" => {
                self.queue = event["queue"].clone();
                self.steering = event["steering"].clone();
                self.paused = event["paused"].clone();
            }
            "draft_changed" => self.draft = event["draft"].clone(),
            "todo_changed" => self.todos = event["todos"].clone(),
            "mode_changed" => self.mode = event["mode"].clone(),
            "state_changed" => self.state = event["state"].as_str().expect("a state").to_owned(),
            "done" => drop(self.ended.insert(event["turnId"].as_str().expect("a turn").to_owned())),
            "gap" | "storage_failure" => panic!("{record}"),
            _ => {}
        }
        self.seq = record["bookmark"]["seq"].as_u64().expect("a number");
    }

    /// The tool calls.
    pub(super) fn calls(&self) -> impl Iterator<Item = &Value> {
        self.items.iter().map(|item| &item["body"]).filter(|body| body["type"] == "toolCall")
    }

    /// Whether they wait for a person.
    pub(super) fn is_queue_paused(&self) -> bool {
        self.paused == true
    }

    /// Sees that the model was never asked what it refuses.
    pub(super) fn assert_every_request_was_valid(&self) {
        let refused = self.items.iter().find(|item| item["body"]["kind"] == "apiError");
        assert!(refused.is_none(), "{refused:?}");
    }

    /// Whether a text was asked, or waits to be.
    pub(super) fn has_asked(&self, text: &str) -> bool {
        let waits =
            |list: &Value| list.as_array().is_some_and(|list| list.iter().any(|one| one["text"] == text));
        let mut items = self.items.iter().map(|item| &item["body"]);
        items.any(|body| body["type"] == "userMessage" && body["text"] == text)
            || waits(&self.queue)
            || waits(&self.steering)
    }

    /// Whether prompts wait.
    pub(super) fn has_queue(&self) -> bool {
        self.queue.as_array().is_some_and(|queue| !queue.is_empty())
    }

    /// Whether all that this shows is in the other one too.
    pub(super) fn is_kept_in(&self, other: &Self) -> bool {
        self.lost_in(other).is_none()
    }

    /// Sees that all that this shows is in the other one too: every item, with at least its text, and finished ones as it
    /// was.
    pub(super) fn assert_kept_in(&self, other: &Self) {
        if let Some(lost) = self.lost_in(other) {
            panic!("shown and lost: {lost}");
        }
    }

    fn lost_in(&self, other: &Self) -> Option<String> {
        self.items.iter().find_map(|item| {
            let Some(kept) = other.items.iter().find(|kept| kept["itemId"] == item["itemId"]) else {
                return Some(item.to_string());
            };
            let (was, is) = (&item["body"], &kept["body"]);
            let has_text = match (was["text"].as_str(), is["text"].as_str()) {
                (Some(was), Some(is)) => is.starts_with(was),
                (was, _) => was.is_none(),
            };
            let is_over = is_of(was, &["COMPLETED", "FAILED", "DENIED", "SEALED"]);
            (!has_text || is_over && was != is).then(|| format!("{item} is now {kept}"))
        })
    }

    /// Sees that this shows the same as the other one.
    pub(super) fn assert_shows(&self, other: &Self) {
        for (one, two) in self.items.iter().zip(&other.items) {
            assert_eq!(one, two);
        }
        assert_eq!(self.items.len(), other.items.len());
        let of = |mirror: &Self| {
            let waiting: Vec<String> = mirror.waiting.keys().cloned().collect();
            json!({
                "state": mirror.state, "waiting": waiting, "queue": mirror.queue, "steering": mirror.steering,
                "paused": mirror.paused, "draft": mirror.draft, "todos": mirror.todos, "mode": mirror.mode,
            })
        };
        assert_eq!(of(self), of(other));
    }

    fn put(&mut self, item: &Value) {
        if item.get("agentId").is_some_and(|agent| !agent.is_null()) {
            return;
        }
        match self.items.iter_mut().find(|known| known["itemId"] == item["itemId"]) {
            Some(known) => known.clone_from(item),
            None => self.items.push(item.clone()),
        }
    }

    fn wait(&mut self, waiting: &Value) {
        self.waiting.insert(id_of(waiting), waiting.clone());
    }
}
