//! The names of the `kode.*` commands, and what people are notified of them.
//!
//! Rule: the one list. The capabilities in `initialize` and the reference come from it.

/// A command of `workspace/executeCommand`.
#[derive(Clone, Copy, Debug)]
pub struct EditorCommand {
    /// As it is announced.
    pub name: &'static str,
    /// The form of its argument, as Markdown; empty where it takes none.
    pub argument: &'static str,
    /// Its effect, as Markdown, with links from the reference's folder.
    pub does: &'static str,
}

const fn command(name: &'static str, argument: &'static str, does: &'static str) -> EditorCommand {
    EditorCommand { name, argument, does }
}

/// All of them, in the order in which they are announced.
pub const COMMANDS: [EditorCommand; 29] = [
    command(
        "kode.ask",
        r#"`{"text": "…", "uri": "file:///…", "range": {…}, "message": "…"}`, all but `text` optional"#,
        "Starts a turn, or queues it behind the running one; a document, a part of it or a diagnostic can go along",
    ),
    command(
        "kode.send",
        r#"`{"uri": "file:///…", "position": {…}, "fresh": false}`, all optional"#,
        "Sends the text below the last heading of a [chat document](../chat-documents.md), the only open \
             one when none is named",
    ),
    command(
        "kode.btw",
        r#"`{"text": "…"}`"#,
        "Asks a [side question](../turns.md#side-questions), also while a turn runs; the answer is a message",
    ),
    command(
        "kode.steer",
        r#"`{"text": "…"}`"#,
        "Sends a message to the running turn before its next step, or starts a turn",
    ),
    command(
        "kode.queue",
        r#"`{"op": "promote", "queueId": "…", "text": "…", "before": "…"}`, all optional"#,
        "Lists the queued prompts, or changes one: `edit`, `remove`, `move`, `promote`; the next one when \
             none is named",
    ),
    command(
        "kode.cancel",
        r#"`{"sessionId": "…"}`, optional"#,
        "Cancels the running turns and side questions, in that conversation alone when it is named; queued prompts then wait \
             until you send or promote one",
    ),
    command(
        "kode.allow",
        r#"`{"permissionId": "…", "feedback": "…", "scope": "session"}`, all optional"#,
        "Allows a permission prompt, which needs no name when it is the only one; `scope` sets how far the \
             permission reaches: `once`, `session`, `project`, `user`",
    ),
    command(
        "kode.deny",
        r#"`{"permissionId": "…", "feedback": "…"}`, both optional"#,
        "Denies a permission prompt; the model receives the feedback",
    ),
    command(
        "kode.answer",
        r#"`{"questionId": "…", "answers": ["…"], "refuse": false, "feedback": "…", "skipPermissionAsks": false, "plan": "…", "mode": "…"}`, all optional"#,
        "Answers a question, a plan, the turn limit or a choice of two answers: for each question an \
             option, a list of options or your own text; an accepted plan can be changed, and carried out \
             in another mode",
    ),
    command("kode.setMode", r#"`{"mode": "plan"}`"#, "Changes what the agent may do unasked"),
    command(
        "kode.model",
        r#"`{"model": "quick", "sessionId": "…"}`, both optional"#,
        "Switches the model from the next call on: a profile, `main`, `task`, `compact`, `quick`, or a \
             part of a model's name; without `model` you pick one",
    ),
    command("kode.newSession", "", "Starts a new conversation with the next prompt"),
    command(
        "kode.takeOver",
        r#"`{"sessionId": "…", "force": false}`"#,
        "Continues a session that is open in another editor ([how](../sessions.md))",
    ),
    command(
        "kode.sessions",
        r#"`{"sessionId": "…"}`, optional"#,
        "Continues another conversation with the next prompt; without `sessionId` you pick one of the \
             newest ([sessions](../sessions.md))",
    ),
    command(
        "kode.renameSession",
        r#"`{"title": "…", "sessionId": "…"}`"#,
        "Gives a conversation a title, the current one when none is named",
    ),
    command(
        "kode.archiveSession",
        r#"`{"sessionId": "…", "archived": true}`, `archived` optional"#,
        "Archives a conversation, or restores it from the archive",
    ),
    command("kode.deleteSession", r#"`{"sessionId": "…"}`"#, "Deletes a conversation"),
    command("kode.searchSessions", r#"`{"query": "…"}`"#, "Searches all conversations: `{text, hits, more}`"),
    command(
        "kode.compact",
        r#"`{"focus": "…"}`, optional"#,
        "Makes room in the context window: a summary replaces older messages ([how](../context.md))",
    ),
    command("kode.acceptEdits", "which changes", "Applies proposed changes"),
    command("kode.rejectEdits", "which changes", "Rejects proposed changes"),
    command("kode.keepEdits", "which changes", "Keeps applied changes"),
    command("kode.undoEdits", "which changes", "Undoes applied changes"),
    command(
        "kode.revertEdits",
        r#"`{"resolutionId": "…", "sessionId": "…"}`, both optional"#,
        "Undoes one of these decisions, the newest when none is named",
    ),
    command(
        "kode.listEdits",
        r#"`{"sessionId": "…"}`, optional"#,
        "Lists the changes to review: `{text, edits, more}`",
    ),
    command(
        "kode.checkpoints",
        r#"`{"sessionId": "…"}`, optional"#,
        "Lists the states before each prompt: `{text, checkpoints}`",
    ),
    command(
        "kode.restore",
        r#"`{"checkpointId": "…", "what": "both", "userEdits": "keep", "dryRun": false, "sessionId": "…"}`, all optional"#,
        "Restores such a state; without `checkpointId` you pick one of the newest",
    ),
    command(
        "kode.trust",
        r#"`{"op": "approve", "digests": ["…"], "file": "…"}`, all optional"#,
        "Lists the trust requests of files of the workspace, approves (`approve`) or revokes (`revoke`) \
             them ([trust](../configuration.md#trust))",
    ),
    command(
        "kode.permissionRules",
        r#"`{"sessionId": "…"}`, optional"#,
        "Lists the permission rules in force: `{text, mode, rules, withheld, problems}`",
    ),
];

/// Their names.
#[must_use]
pub fn names() -> Vec<String> {
    COMMANDS.iter().map(|command| command.name.to_owned()).collect()
}
