//! Hooks before and after a conversation is compacted.
//!
//! Rule: a hook that blocks leaves the conversation as it is; the same moment has two names, and hooks of both run.

use serde_json::{Map, Value, json};
use tokio_util::sync::CancellationToken;

use super::fire::Moment;
use super::state::StartSource;
use crate::session::conversation::Conversation;
use kode_base::ids::TurnId;
use kode_config::hooks::event::HookEvent;
use kode_record::compaction::{Cause, Compaction};

fn trigger(cause: Cause) -> &'static str {
    match cause {
        Cause::Asked => "manual",
        Cause::Threshold | Cause::TooLong | Cause::TurnLimit => "auto",
    }
}

impl Conversation<'_> {
    /// Has hooks look at a compaction that is about to begin. Why one holds it back, if one does.
    pub(crate) async fn before_compaction(
        &self,
        turn: &TurnId,
        (cause, focus): (Cause, Option<&str>),
        (messages, tokens): (u64, u64),
        cancel: &CancellationToken,
    ) -> Option<String> {
        let mut reasons = Vec::new();
        for event in [HookEvent::PreCompact, HookEvent::Compaction] {
            if !self.has_hooks(event) {
                continue;
            }
            let mut fields = Map::new();
            fields.insert("trigger".to_owned(), json!(trigger(cause)));
            fields.insert("custom_instructions".to_owned(), json!(focus.unwrap_or_default()));
            if event == HookEvent::Compaction {
                fields.insert("messages_before".to_owned(), json!(messages));
                fields.insert("tokens_before".to_owned(), json!(tokens));
            }
            let mut moment = Moment::new(event, Some(turn), Value::Object(fields));
            moment.value = Some(trigger(cause));
            let fired = self.fire(moment, cancel).await;
            reasons.extend(fired.block);
            if self.note_stop(turn, fired.stop) && reasons.is_empty() {
                reasons.push("a hook stopped the turn".to_owned());
            }
        }
        (!reasons.is_empty()).then(|| reasons.join("\n"))
    }

    /// Tells hooks of a compaction, and that the session begins anew in a way.
    pub(crate) async fn after_compaction(
        &self,
        turn: &TurnId,
        done: &Compaction,
        cancel: &CancellationToken,
    ) {
        if self.has_hooks(HookEvent::PostCompact) {
            let trigger = trigger(done.cause);
            let fields = json!({ "trigger": trigger, "compact_summary": done.summary });
            let mut moment = Moment::new(HookEvent::PostCompact, Some(turn), fields);
            moment.value = Some(trigger);
            let fired = self.fire(moment, cancel).await;
            self.note_stop(turn, fired.stop);
        }
        if self.agent.is_none() {
            self.fire_start_of(StartSource::Compact, turn, cancel).await;
        }
    }
}
