//! A session as a text for people.
//!
//! Rule: everything that was shown is in it, in its order. Answers are in it as they are, in Markdown; prompts are
//! quoted, and what tools put out is in fences longer than any in it. Nothing leaves the machine by it.

use std::sync::Arc;

use crate::state::SessionState;
use kode_base::ids::AgentId;
use kode_base::todo::TodoStatus;
use kode_record::event::{CallState, Item, ItemBody, NoticeLevel};

/// A session as it was when it was exported.
#[derive(Debug)]
pub struct SessionExport {
    /// Its state.
    pub state: SessionState,
    /// Lines of its journal that could not be read.
    pub skipped: u64,
}

impl SessionExport {
    /// The session as a Markdown document.
    #[must_use]
    pub fn markdown(&self) -> String {
        let state = &self.state;
        let mut document = MarkdownDocument::default();
        let title =
            if state.title.text.is_empty() { "A session without a prompt" } else { &state.title.text };
        document.line(&format!("# {}", escaped(title)));
        document.line("");
        document.line(&format!("- Session: `{}`", state.id));
        if let Some(origin) = &state.forked_from {
            document.line(&format!("- Forked from: `{origin}`"));
        }
        document.line(&format!("- Folder: {}", code(&state.cwd.to_string())));
        document.line(&format!("- Mode: {}, model: {}", state.config.mode.name(), code(&state.config.model)));
        let usage = state.spending.usage();
        document.line(&format!("- Tokens: {} in, {} out", usage.prompt_tokens(), usage.output_tokens));
        if let Some(cost) = state.spending.total().total() {
            document.line(&format!("- Cost: {cost:.4} USD"));
        }
        if self.skipped > 0 {
            let skipped = self.skipped;
            document
                .line(&format!("- {skipped} lines of its journal could not be read and are missing here"));
        }
        document.items(state.main.items.newest());
        for (id, agent) in &state.agents {
            document.agent(id, &agent.kind, &agent.description, agent.thread.items.newest());
        }
        document.todos(state);
        document.text
    }
}

#[derive(Default)]
struct MarkdownDocument {
    text: String,
}

impl MarkdownDocument {
    fn line(&mut self, line: &str) {
        self.text.push_str(line);
        self.text.push('\n');
    }

    fn items(&mut self, items: &[Arc<Item>]) {
        for item in items {
            self.text.push('\n');
            self.item(item);
        }
    }

    fn item(&mut self, item: &Item) {
        match &item.body {
            ItemBody::UserMessage { text, attachments, steered, command: _ } => {
                let who = if *steered { "You, while it worked" } else { "You" };
                self.line(&format!("## {who} ({})\n", item.timestamp.strftime("%Y-%m-%d %H:%M:%S UTC")));
                for line in text.lines() {
                    self.line(format!("> {line}").trim_end());
                }
                for attachment in attachments {
                    self.line(&format!("\nAttached: {}", code(&attachment.label)));
                }
            }
            ItemBody::AgentMessage { text, complete, interrupted, model, duration_ms: _ } => {
                let who = model.as_deref().unwrap_or("The agent");
                self.line(&format!("### {}\n", escaped(who)));
                self.line(text.trim_end());
                if *interrupted || !complete {
                    self.line("\n*It was interrupted here.*");
                }
            }
            ItemBody::Thinking { text, .. } => {
                self.line("<details><summary>Thinking</summary>\n");
                self.fence("text", text);
                self.line("\n</details>");
            }
            ItemBody::ToolCall(call) => {
                let title = if call.title.is_empty() { &call.name } else { &call.title };
                let state = match call.state {
                    CallState::Pending => "not begun",
                    CallState::ApprovalRequired => "waits for you",
                    CallState::Executing => "runs",
                    CallState::Completed => "done",
                    CallState::Failed => "failed",
                    CallState::Denied => "refused",
                    CallState::Sealed => "not finished",
                };
                self.line(&format!("**{}** {} — {state}", escaped(&call.name), code(title)));
                self.line("\n<details><summary>Details</summary>\n");
                let input = serde_json::to_string_pretty(&call.input).unwrap_or_default();
                self.fence("json", &input);
                if !call.display.is_empty() {
                    self.text.push('\n');
                    self.fence("text", &call.display);
                }
                let patch = call.structured.as_ref().and_then(|value| value["unified"].as_str());
                if let Some(patch) = patch {
                    self.text.push('\n');
                    self.fence("diff", patch);
                }
                self.line("\n</details>");
            }
            ItemBody::Command { name, arguments, text, data: _, failed: _, go_to: _ } => {
                let typed = format!("/{name} {arguments}");
                self.line(&format!("{}\n\n{text}", code(typed.trim_end())));
            }
            ItemBody::Notice { level, text, hint, kind: _ } => {
                let mark = match level {
                    NoticeLevel::Info => "Note",
                    NoticeLevel::Warning => "Warning",
                    NoticeLevel::Error => "Error",
                };
                let hint = hint.as_deref().map(|hint| format!(" {}", escaped(hint))).unwrap_or_default();
                self.line(&format!("*{mark}: {}*{hint}", escaped(text)));
            }
        }
    }

    fn agent(&mut self, id: &AgentId, kind: &str, description: &str, items: &[Arc<Item>]) {
        self.line(&format!("\n---\n\n# Sub-agent {}: {}\n", code(kind), escaped(description)));
        self.line(&format!("- Sub-agent: `{id}`"));
        self.items(items);
    }

    fn todos(&mut self, state: &SessionState) {
        if state.todos.list().is_empty() {
            return;
        }
        self.line("\n---\n\n# To do\n");
        for todo in state.todos.list() {
            let mark = match todo.status {
                TodoStatus::Completed => "x",
                TodoStatus::InProgress | TodoStatus::Pending => " ",
            };
            self.line(&format!("- [{mark}] {}", escaped(&todo.content)));
        }
    }

    fn fence(&mut self, language: &str, text: &str) {
        self.text.push_str(&fenced(language, text));
        self.text.push('\n');
    }
}

/// A text in a Markdown fence that is longer than all runs of backticks in it.
pub(crate) fn fenced(language: &str, text: &str) -> String {
    let fence = "`".repeat(longest_run(text).max(2) + 1);
    format!("{fence}{language}\n{}\n{fence}", text.trim_end_matches('\n'))
}

/// The length of the longest run of backticks.
fn longest_run(text: &str) -> usize {
    text.split(|char| char != '`').map(str::len).max().unwrap_or_default()
}

/// A short text as code within a line.
fn code(text: &str) -> String {
    let text = one_line(text);
    let ticks = "`".repeat(longest_run(&text) + 1);
    let space = if text.starts_with('`') || text.ends_with('`') { " " } else { "" };
    format!("{ticks}{space}{text}{space}{ticks}")
}

/// A short text within a line, in which nothing is markup.
fn escaped(text: &str) -> String {
    let mut escaped = String::new();
    for char in one_line(text).chars() {
        if matches!(char, '\\' | '`' | '*' | '_' | '[' | ']' | '<' | '>' | '#' | '|' | '~' | '&' | '!') {
            escaped.push('\\');
        }
        escaped.push(char);
    }
    escaped
}

fn one_line(text: &str) -> String {
    text.split(char::is_control).filter(|part| !part.is_empty()).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_tools_put_out_cannot_end_its_fence_and_titles_are_no_markup() {
        let mut document = MarkdownDocument::default();
        document.fence("text", "a\n````\n# no heading\n");
        assert_eq!(document.text, "`````text\na\n````\n# no heading\n`````\n");
        assert_eq!(escaped("a *b*\n<i>[x]"), r"a \*b\* \<i\>\[x\]");
        assert_eq!(code("`ls` it"), "`` `ls` it ``");
        assert_eq!(code("plain"), "`plain`");
    }
}
