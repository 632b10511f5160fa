//! Hooks before and after a compaction.
//!
//! Rule: a hook that blocks leaves the conversation as it is. The event before has two names, and hooks of both run.

use serde_json::{Map, Value, json};
use tokio_util::sync::CancellationToken;

use super::HookRunner;
use super::fire::HookTrigger;
use super::lifecycle::StartSource;
use crate::conversation::Conversation;
use kode_base::ids::TurnId;
use kode_config::hooks::event::HookEvent;
use kode_record::compaction::{Cause, Compaction};

fn trigger(cause: Cause) -> &'static str {
    match cause {
        Cause::Asked => "manual",
        Cause::Threshold | Cause::TooLong | Cause::TurnLimit => "auto",
    }
}

impl HookRunner {
    /// Runs the hooks before a compaction. Returns the reason of a hook that blocks it.
    pub(crate) async fn before_compaction(
        &self,
        conversation: &Conversation,
        turn: &TurnId,
        (cause, focus): (Cause, Option<&str>),
        (messages, tokens): (u64, u64),
        cancel: &CancellationToken,
    ) -> Option<String> {
        let mut reasons = Vec::new();
        for event in [HookEvent::PreCompact, HookEvent::Compaction] {
            if !self.has_hooks(conversation, event) {
                continue;
            }
            let mut fields = Map::new();
            fields.insert("trigger".to_owned(), json!(trigger(cause)));
            fields.insert("custom_instructions".to_owned(), json!(focus.unwrap_or_default()));
            if event == HookEvent::Compaction {
                fields.insert("messages_before".to_owned(), json!(messages));
                fields.insert("tokens_before".to_owned(), json!(tokens));
            }
            let mut input = HookTrigger::new(event, Some(turn), Value::Object(fields));
            input.value = Some(trigger(cause));
            let reply = self.fire(conversation, input, cancel).await;
            reasons.extend(reply.block);
            if self.note_stop(turn, reply.stop) && reasons.is_empty() {
                reasons.push("a hook stopped the turn".to_owned());
            }
        }
        (!reasons.is_empty()).then(|| reasons.join("\n"))
    }

    /// Runs the hooks after a compaction, and those of the session's new beginning.
    pub(crate) async fn after_compaction(
        &self,
        conversation: &Conversation,
        turn: &TurnId,
        done: &Compaction,
        cancel: &CancellationToken,
    ) {
        if self.has_hooks(conversation, HookEvent::PostCompact) {
            let trigger = trigger(done.cause);
            let fields = json!({ "trigger": trigger, "compact_summary": done.summary });
            let mut input = HookTrigger::new(HookEvent::PostCompact, Some(turn), fields);
            input.value = Some(trigger);
            let reply = self.fire(conversation, input, cancel).await;
            self.note_stop(turn, reply.stop);
        }
        if conversation.is_main() {
            self.start_of(conversation, StartSource::Compact, turn, cancel).await;
        }
    }
}
