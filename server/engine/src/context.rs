//! What the model is sent: system prompt, history, tools.
//!
//! Rule: a request is a byte prefix of the turn's next one but for what was added, so that provider caches hold;
//! nothing that changes from call to call stands before the history.

use crate::model::profile::Profile;
use crate::model::{Block, Message, ModelRequest, Role};
use crate::paths::AbsPath;
use crate::permission::Mode;
use crate::session::{Session, SessionState};

const BASE_PROMPT: &str = include_str!("prompts/base.md");
const PLAN_PROMPT: &str = include_str!("prompts/plan.md");

/// Between the parts of the system prompt.
const RULE_LINE: &str = "\n\n---\n\n";

/// The request for a session's next model call.
pub(crate) fn request(session: &Session, profile: &Profile) -> ModelRequest {
    let state = session.state();
    ModelRequest {
        system: vec![system_prompt(&state)],
        messages: normalise(&state.messages),
        tools: session.tools.declarations(),
        max_tokens: profile.max_tokens,
        temperature: profile.temperature,
        top_p: profile.top_p,
        effort: profile.effort,
    }
}

fn system_prompt(state: &SessionState) -> String {
    let base = match state.mode {
        Mode::Plan => PLAN_PROMPT,
        Mode::Default | Mode::AcceptEdits | Mode::BypassPermissions => BASE_PROMPT,
    };
    [environment(&state.cwd, &state.roots, started(state)), base.trim().to_owned()].join(RULE_LINE)
}

/// The day the session began: a date that moved on during a session would make every cached prompt worthless.
fn started(state: &SessionState) -> jiff::civil::Date {
    let first = state.items.first().map_or_else(jiff::Timestamp::now, |item| item.timestamp);
    first.to_zoned(jiff::tz::TimeZone::system()).date()
}

fn environment(cwd: &AbsPath, roots: &[AbsPath], date: jiff::civil::Date) -> String {
    let mut lines = vec![
        format!("Date: {date}"),
        format!("System: {} {}", std::env::consts::OS, std::env::consts::ARCH),
        format!("Working directory: {cwd}"),
    ];
    if roots.len() > 1 {
        let others: Vec<_> = roots.iter().skip(1).map(ToString::to_string).collect();
        lines.push(format!("Further workspace folders: {}", others.join(", ")));
    }
    lines.join("\n")
}

/// Makes a history valid for sending: no empty blocks or messages, roles alternating from the user on.
fn normalise(messages: &[Message]) -> Vec<Message> {
    let mut normal: Vec<Message> = Vec::with_capacity(messages.len());
    for message in messages {
        let content: Vec<_> = message.content.iter().filter(|block| !is_empty(block)).cloned().collect();
        if content.is_empty() || (normal.is_empty() && message.role == Role::Assistant) {
            continue;
        }
        match normal.last_mut() {
            Some(last) if last.role == message.role => last.content.extend(content),
            _ => normal.push(Message { role: message.role, content }),
        }
    }
    normal
}

fn is_empty(block: &Block) -> bool {
    match block {
        Block::Text { text } => text.trim().is_empty(),
        Block::Thinking { thinking, signature } => thinking.is_empty() && signature.is_empty(),
        Block::RedactedThinking { .. } | Block::ToolUse { .. } | Block::ToolResult { .. } => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(role: Role, text: &str) -> Message {
        Message { role, content: vec![Block::Text { text: text.into() }] }
    }

    #[test]
    fn an_interrupted_history_becomes_one_that_can_be_sent() {
        let history = [
            text(Role::Assistant, "left over"),
            text(Role::User, "one"),
            text(Role::User, "[interrupted]"),
            text(Role::Assistant, " \n"),
            text(Role::User, "two"),
            text(Role::Assistant, "three"),
        ];
        let normal = normalise(&history);
        let shape: Vec<_> = normal.iter().map(|message| (message.role, message.content.len())).collect();
        assert_eq!(shape, [(Role::User, 3), (Role::Assistant, 1)]);
    }

    #[test]
    fn the_environment_names_the_working_directory_on_a_line_of_its_own() {
        let root = |path| AbsPath::new(path).unwrap();
        let date = jiff::civil::date(2026, 1, 2);
        let text = environment(&root("/w/app"), &[root("/w/app"), root("/w/lib")], date);
        assert!(text.starts_with("Date: 2026-01-02\n"));
        assert!(text.contains("\nWorking directory: /w/app\n"));
        assert!(text.ends_with("Further workspace folders: /w/lib"));
    }
}
