//! What the model is sent: system prompt, history, tools.
//!
//! Rule: a request is a byte prefix of the turn's next one but for what was added, so that provider caches hold;
//! nothing that changes from call to call stands before the history.

use crate::model::profile::Profile;
use crate::model::{Block, Message, ModelRequest, Role};
use crate::paths::AbsPath;
use crate::permission::Mode;
use crate::session::SessionState;
use crate::session::conversation::{Assignment, Conversation};
use crate::tools::Offering;

const BASE_PROMPT: &str = include_str!("prompts/base.md");
const PLAN_PROMPT: &str = include_str!("prompts/plan.md");

/// What all sub-agents are told, whoever has written their prompt.
const AGENT_RULES: &str = include_str!("agents/prompts/rules.md");

/// Between the parts of the system prompt.
const RULE_LINE: &str = "\n\n---\n\n";

/// The request for the next model call of a conversation.
pub(crate) fn request(conversation: &Conversation<'_>, profile: &Profile) -> ModelRequest {
    let session = conversation.session;
    let catalog = session.catalog();
    let in_force = session.in_force();
    let can_diagnose = session.workspace.can_diagnose();
    let mut messages = conversation.read(|thread| normalise(&thread.messages));
    let agents = session.agents.types();
    let state = session.state();
    let is_denied = |tool: &str| in_force.rules.removes(tool).is_some();
    let offering = Offering {
        mode: conversation.mode(state.mode),
        can_diagnose,
        catalog: &catalog,
        is_denied: &is_denied,
        agents: &agents,
    };
    let tools = conversation.tools.declarations_for(&offering);
    let reminder = conversation.agent.is_none().then(|| session.reminder_for(&state, &tools)).flatten();
    // Last, and with this request alone: what stands before it stays the prefix of the next request.
    if let (Some(text), Some(last)) = (reminder, messages.last_mut().filter(|last| last.role == Role::User)) {
        last.content.push(Block::Text { text });
    }
    ModelRequest {
        system: vec![system_prompt(&state, conversation.assignment.as_ref())],
        messages,
        tools,
        max_tokens: profile.max_tokens,
        temperature: profile.temperature,
        top_p: profile.top_p,
        effort: profile.effort,
    }
}

fn system_prompt(state: &SessionState, assignment: Option<&Assignment>) -> String {
    let environment = environment(&state.cwd, &state.roots, started(state));
    if let Some(assignment) = assignment {
        return [environment.as_str(), &assignment.prompt, AGENT_RULES.trim()].join(RULE_LINE);
    }
    let base = match state.mode {
        Mode::Plan => PLAN_PROMPT,
        Mode::Default
        | Mode::AcceptEdits
        | Mode::DontAsk
        | Mode::BypassPermissions
        | Mode::Approval
        | Mode::Readonly => BASE_PROMPT,
    };
    [environment.as_str(), base.trim()].join(RULE_LINE)
}

/// The day the session began: a date that moved on during a session would make every cached prompt worthless.
fn started(state: &SessionState) -> jiff::civil::Date {
    let first = state.main.items.first().map_or_else(jiff::Timestamp::now, |item| item.timestamp);
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

/// Makes a history valid for sending: no empty blocks or messages, roles alternating from the user on, every call
/// answered once and right after it, no result without its call. A whole history comes out as it went in; a damaged
/// one loses what cannot be sent.
fn normalise(messages: &[Message]) -> Vec<Message> {
    let mut normal: Vec<Message> = Vec::with_capacity(messages.len());
    for message in merge(messages) {
        match message.role {
            Role::Assistant if normal.is_empty() => {}
            Role::Assistant => push(&mut normal, message),
            Role::User => {
                let calls = normal.last().map(calls).unwrap_or_default();
                let content = answer(&calls, message.content);
                push(&mut normal, Message { role: Role::User, content });
            }
        }
    }
    let open = normal.last().map(calls).unwrap_or_default();
    push(&mut normal, Message { role: Role::User, content: answer(&open, Vec::new()) });
    normal
}

/// Leaves out what is empty, and makes neighbors of one role one message.
fn merge(messages: &[Message]) -> Vec<Message> {
    let mut merged = Vec::with_capacity(messages.len());
    for message in messages {
        let mut content: Vec<_> = message.content.iter().filter(|block| !is_empty(block)).cloned().collect();
        // An answer that was cut before its call leaves thinking at its end, which providers do not take back.
        while message.role == Role::Assistant
            && matches!(content.last(), Some(Block::Thinking { .. } | Block::RedactedThinking { .. }))
        {
            content.pop();
        }
        push(&mut merged, Message { role: message.role, content });
    }
    merged
}

fn push(messages: &mut Vec<Message>, message: Message) {
    match messages.last_mut() {
        _ if message.content.is_empty() => {}
        Some(last) if last.role == message.role => last.content.extend(message.content),
        _ => messages.push(message),
    }
}

/// The calls of an answer.
fn calls(message: &Message) -> Vec<String> {
    let id = |block: &Block| match block {
        Block::ToolUse { id, .. } => Some(id.clone()),
        _ => None,
    };
    message.content.iter().filter_map(id).collect()
}

/// The results of these calls in their order, then the rest; results of other calls are left out.
fn answer(calls: &[String], content: Vec<Block>) -> Vec<Block> {
    let (results, rest): (Vec<_>, Vec<_>) =
        content.into_iter().partition(|block| matches!(block, Block::ToolResult { .. }));
    let result_of = |call: &String| {
        let of =
            |block: &&Block| matches!(block, Block::ToolResult { tool_use_id, .. } if tool_use_id == call);
        results.iter().find(of).cloned().unwrap_or_else(|| Block::ToolResult {
            tool_use_id: call.clone(),
            content: "The result of this call was lost; check what it did before you repeat it.".to_owned(),
            is_error: true,
        })
    };
    calls.iter().map(result_of).chain(rest).collect()
}

fn is_empty(block: &Block) -> bool {
    match block {
        Block::Text { text } => text.trim().is_empty(),
        Block::Thinking { thinking, signature } => thinking.is_empty() && signature.is_empty(),
        Block::RedactedThinking { .. } | Block::ToolUse { .. } | Block::ToolResult { .. } => false,
    }
}

/// Something the model is told with a prompt that the user did not type. What it quotes cannot end it early.
#[must_use]
pub fn reminder(text: &str) -> String {
    let text = text.replace("</system-reminder", "<\u{200b}/system-reminder");
    format!("<system-reminder>\n{text}\n</system-reminder>")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

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
    fn calls_and_results_are_paired_whatever_is_missing() {
        let call = |id: &str| Block::ToolUse {
            id: id.into(),
            name: "Read".into(),
            input: json!({}),
            input_error: None,
        };
        let result =
            |id: &str| Block::ToolResult { tool_use_id: id.into(), content: id.into(), is_error: false };
        let assistant = |content| Message { role: Role::Assistant, content };
        let user = |content| Message { role: Role::User, content };
        let whole = [
            text(Role::User, "one"),
            assistant(vec![call("a"), call("b")]),
            user(vec![result("a"), result("b")]),
            assistant(vec![call("c")]),
            user(vec![result("c"), Block::Text { text: "and".into() }]),
            text(Role::Assistant, "done"),
            text(Role::User, "two"),
        ];
        assert_eq!(normalise(&whole), whole);
        for missing in 0..whole.len() {
            let mut damaged = whole.to_vec();
            damaged.remove(missing);
            damaged.reverse();
            for history in [damaged.clone(), damaged.into_iter().rev().collect()] {
                let normal = normalise(&history);
                for (at, message) in normal.iter().enumerate() {
                    assert_eq!(message.role, if at % 2 == 0 { Role::User } else { Role::Assistant });
                    let answered = normal.get(at + 1).map(|next| {
                        let id = |block: &Block| match block {
                            Block::ToolResult { tool_use_id, .. } => Some(tool_use_id.clone()),
                            _ => None,
                        };
                        next.content.iter().filter_map(id).collect::<Vec<_>>()
                    });
                    assert_eq!(
                        answered.unwrap_or_default(),
                        calls(message),
                        "without {missing}: {normal:#?}"
                    );
                }
            }
        }
    }

    #[test]
    fn thinking_at_the_end_of_a_cut_answer_is_not_sent_back() {
        let thinking = Block::Thinking { thinking: "hm".into(), signature: "signed".into() };
        let cut = Message { role: Role::Assistant, content: vec![thinking.clone()] };
        let whole =
            Message { role: Role::Assistant, content: vec![thinking, Block::Text { text: "so".into() }] };
        let history = [text(Role::User, "one"), cut, text(Role::User, "two"), whole.clone()];
        let normal = normalise(&history);
        assert_eq!(normal.len(), 2);
        assert_eq!(normal[1], whole);
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
