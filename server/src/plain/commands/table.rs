//! The names of the `kode.*` commands, and what people are told of them.
//!
//! Rule: the one list. What is announced in `initialize` and what the reference says are made of it.

/// A command of `workspace/executeCommand`.
#[derive(Clone, Copy, Debug)]
pub struct EditorCommand {
    /// As it is announced.
    pub name: &'static str,
    /// The form of its argument, as Markdown; empty where it takes none.
    pub argument: &'static str,
    /// What it does, as Markdown, with links from the reference's folder.
    pub does: &'static str,
}

const fn command(name: &'static str, argument: &'static str, does: &'static str) -> EditorCommand {
    EditorCommand { name, argument, does }
}

/// All of them, in the order in which they are announced.
pub const COMMANDS: [EditorCommand; 28] = [
    command(
        "kode.ask",
        r#"`{"text": "…", "uri": "file:///…", "range": {…}, "message": "…"}`, all but `text` optional"#,
        "Starts a turn, or queues it behind the running one; with it goes the document, the part of it that is meant, or what a language server says there",
    ),
    command(
        "kode.send",
        r#"`{"uri": "file:///…", "position": {…}, "fresh": false}`, all optional"#,
        "Sends what stands below the last heading of a [chat document](../chat-documents.md), the only open one when none is named",
    ),
    command(
        "kode.steer",
        r#"`{"text": "…"}`"#,
        "Tells the running turn something before its next step, or starts one",
    ),
    command(
        "kode.queue",
        r#"`{"op": "promote", "queueId": "…", "text": "…", "before": "…"}`, all optional"#,
        "Lists what waits, or changes it: `edit`, `remove`, `move`, `promote`; the next prompt when none is named",
    ),
    command(
        "kode.cancel",
        r#"`{"sessionId": "…"}`, optional"#,
        "Cancels what runs, in that conversation alone when it is named; prompts that wait begin no more by themselves until you write something or promote one",
    ),
    command(
        "kode.allow",
        r#"`{"permissionId": "…", "feedback": "…", "scope": "session"}`, all optional"#,
        "Says yes to a permission prompt; which one need not be said when only one waits, and `scope` says how far it reaches: `once`, `session`, `project`, `user`",
    ),
    command(
        "kode.deny",
        r#"`{"permissionId": "…", "feedback": "…"}`, both optional"#,
        "Says no to a permission prompt; the model hears the words",
    ),
    command(
        "kode.answer",
        r#"`{"questionId": "…", "answers": ["…"], "refuse": false, "feedback": "…", "skipPermissionAsks": false, "plan": "…", "mode": "…"}`, all optional"#,
        "Answers what you are asked, a plan, the turn limit and the choice of two answers too: for each question an option, a list of options or words of your own; who accepts a plan may change it and choose the mode it is carried out in",
    ),
    command("kode.setMode", r#"`{"mode": "plan"}`"#, "Changes what the agent may do unasked"),
    command(
        "kode.model",
        r#"`{"model": "quick", "sessionId": "…"}`, both optional"#,
        "Lets another model answer from its next call on: a profile, `main`, `task`, `compact`, `quick`, or a part of a model's name; without `model` you pick one",
    ),
    command("kode.newSession", "", "Lets the next prompt begin a new conversation"),
    command(
        "kode.takeOver",
        r#"`{"sessionId": "…", "force": false}`"#,
        "Goes on with a session that is open in another editor ([how](../sessions.md))",
    ),
    command(
        "kode.sessions",
        r#"`{"sessionId": "…"}`, optional"#,
        "Lets the next prompt go on with another conversation; without `sessionId` you pick one of the newest ([sessions](../sessions.md))",
    ),
    command(
        "kode.renameSession",
        r#"`{"title": "…", "sessionId": "…"}`"#,
        "Gives a conversation a title, the current one when none is named",
    ),
    command(
        "kode.archiveSession",
        r#"`{"sessionId": "…", "archived": true}`, `archived` optional"#,
        "Puts a conversation away, or takes it out again",
    ),
    command("kode.deleteSession", r#"`{"sessionId": "…"}`"#, "Deletes a conversation"),
    command(
        "kode.searchSessions",
        r#"`{"query": "…"}`"#,
        "Finds words in all conversations: `{text, hits, more}`",
    ),
    command(
        "kode.compact",
        r#"`{"focus": "…"}`, optional"#,
        "Makes room in the context window: a summary takes the place of older messages ([how](../context.md))",
    ),
    command("kode.acceptEdits", "which changes", "Puts proposed changes into the text"),
    command("kode.rejectEdits", "which changes", "Drops proposed changes"),
    command("kode.keepEdits", "which changes", "Leaves changes that are in the text for good"),
    command("kode.undoEdits", "which changes", "Takes changes out of the text"),
    command(
        "kode.revertEdits",
        r#"`{"resolutionId": "…", "sessionId": "…"}`, both optional"#,
        "Takes one of these decisions back, the newest when none is named",
    ),
    command(
        "kode.listEdits",
        r#"`{"sessionId": "…"}`, optional"#,
        "Lists the changes that wait: `{text, edits, more}`",
    ),
    command(
        "kode.checkpoints",
        r#"`{"sessionId": "…"}`, optional"#,
        "Lists the states before each prompt: `{text, checkpoints}`",
    ),
    command(
        "kode.restore",
        r#"`{"checkpointId": "…", "what": "both", "userEdits": "keep", "dryRun": false, "sessionId": "…"}`, all optional"#,
        "Goes back to such a state; without `checkpointId` you pick one of the newest",
    ),
    command(
        "kode.trust",
        r#"`{"op": "approve", "digests": ["…"], "file": "…"}`, all optional"#,
        "Lists what files of the workspace ask for, lets what was shown count (`approve`) or count no more (`revoke`) ([trust](../configuration.md#trust))",
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
