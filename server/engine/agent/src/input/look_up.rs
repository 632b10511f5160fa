//! Reading single attachments of a prompt.
//!
//! Rule: the tools read them, under the same rules: a read that would be refused or asked for is not attached. A plain file
//! outside the workspace is, because the user has named it; one that a link in the workspace leads to is not.

mod past;

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::input::InputReader;
use crate::input::render::{BoundedText, bounded, element, lines_of};
use crate::prompt::PASTED_TAG;
use kode_base::blocking;
use kode_base::call::{CommandLanguage, ToolError, ToolErrorKind, ToolKind, Touch};
use kode_base::command_shell::CommandShell;
use kode_base::ids::CallId;
use kode_base::paths::{ResolvedPaths, Target};
use kode_model::{Block, Image};
use kode_permission::GateDecision;
use kode_permission::gate::GateCase;
use kode_process::outcome::Exit;
use kode_process::shell::CommandSpec;
use kode_record::prompt::{
    Attachment, AttachmentKind, DiffOf, EditorContext, LineSpan, MAX_OPEN, MAX_SELECTED, PromptPart,
};
use kode_tool::names::{DIAGNOSTICS, GREP, LS, READ};
use kode_tool::{CallAction, CallContext, ToolOutput};

/// The most lines of one file.
const MAX_LINES: usize = 2_000;

/// The most bytes of one file.
const MAX_FILE_BYTES: usize = 96 << 10;

/// The most bytes of a listing, of a diff, and of any other result.
const MAX_OTHER_BYTES: usize = 32 << 10;

/// The most bytes of one pasted text.
const MAX_PASTED_BYTES: usize = 128 << 10;

/// The levels of a folder that are listed.
const LISTED_LEVELS: usize = 2;

/// The most definitions of a symbol.
const MAX_DEFINITIONS: usize = 5;

/// The most lines of each.
const DEFINITION_LINES: usize = 12;

/// The most time of git.
const GIT_TIME: Duration = Duration::from_secs(8);

/// An attachment that was read.
#[derive(Debug)]
pub(super) struct FoundPart {
    /// Its description for people.
    pub(super) shown: Attachment,
    /// The blocks for the model.
    pub(super) blocks: Vec<Block>,
}

impl FoundPart {
    /// An attachment that cannot be read. The model gets the reason as well.
    pub(super) fn problem(shown: Attachment, problem: impl Into<String>) -> Self {
        let problem = problem.into();
        let text = element("not-attached", &[("name", shown.label.clone()), ("reason", problem.clone())], "");
        Self { shown: Attachment { problem: Some(problem), ..shown }, blocks: vec![Block::Text { text }] }
    }

    fn text(shown: Attachment, tag: &str, attributes: &[(&str, String)], body: &BoundedText<'_>) -> Self {
        let said =
            if body.is_cut { format!("{}\n[There is more of it]", body.text) } else { body.text.into() };
        let lines = Some(u32::try_from(body.text.lines().count()).unwrap_or(u32::MAX));
        let shown =
            Attachment { lines, bytes: body.text.len() as u64, cut: body.is_cut || shown.cut, ..shown };
        Self { shown, blocks: vec![Block::Text { text: element(tag, attributes, &said) }] }
    }
}

/// Reads the attachments of one prompt.
pub(super) struct LookUp<'a> {
    input: &'a InputReader,
    context: CallContext,
}

impl<'a> LookUp<'a> {
    pub(super) fn new(input: &'a InputReader, cancel: &CancellationToken) -> Self {
        let mode = input.core.state().config.mode;
        let context = CallContext {
            call_id: CallId::generate(),
            workspace: Arc::clone(&input.environment.workspace),
            shell: Arc::new(input.environment.shell.elsewhere(input.environment.workspace.cwd())),
            sandbox: None,
            resolved: ResolvedPaths::default(),
            agents: Arc::default(),
            catalog: Arc::default(),
            private_hosts: Arc::default(),
            may_read: input.gate.may_read(mode),
            cancel: cancel.child_token(),
            progress: Arc::new(drop),
            text_limit: None,
            ask: None,
        };
        Self { input, context }
    }

    /// The description of an attachment, before it is read.
    pub(super) fn named(&self, part: &PromptPart) -> Attachment {
        let display = |target: &Target| self.input.environment.workspace.display(target);
        let place = |target: &Target, lines: &Option<LineSpan>| match lines {
            Some(lines) => format!("{}#{}", display(target), lines_of(*lines)),
            None => display(target),
        };
        let (kind, label, target) = match part {
            PromptPart::Mention { target, lines } => {
                (AttachmentKind::File, place(target, lines), Some(target))
            }
            PromptPart::Symbol { name, target, .. } => {
                (AttachmentKind::Symbol, name.clone(), target.as_ref())
            }
            PromptPart::Diagnostics { target, lines, .. } => {
                let of = target.as_ref().map(|target| place(target, lines));
                let label = of.map_or("diagnostics".to_owned(), |of| format!("diagnostics of {of}"));
                (AttachmentKind::Diagnostics, label, target.as_ref())
            }
            PromptPart::Diff { of: DiffOf::Head } => (AttachmentKind::Diff, "diff".to_owned(), None),
            PromptPart::Diff { of: DiffOf::Staged } => (AttachmentKind::Diff, "staged diff".to_owned(), None),
            PromptPart::Diff { of: DiffOf::Revision(revision) } => {
                (AttachmentKind::Diff, format!("diff of {revision}"), None)
            }
            PromptPart::Session { session } => (AttachmentKind::Session, session.clone(), None),
            PromptPart::Resource { server, uri } => (AttachmentKind::File, format!("{server}:{uri}"), None),
            PromptPart::Selection { target, lines, .. } => {
                (AttachmentKind::Selection, place(target, &Some(*lines)), Some(target))
            }
            PromptPart::Image(image) => (AttachmentKind::Image, image.media_type.clone(), None),
            PromptPart::Pasted { .. } => (AttachmentKind::Pasted, "pasted text".to_owned(), None),
            PromptPart::Editor(_) => (AttachmentKind::Editor, "editor".to_owned(), None),
        };
        let path = target.and_then(Target::file).cloned();
        Attachment { kind, label, path, lines: None, bytes: 0, cut: false, problem: None }
    }

    /// Reads an attachment; `None` where it has no content. `room` are the most bytes of its text.
    pub(super) async fn find(&self, part: &PromptPart, room: usize) -> Option<FoundPart> {
        let shown = self.named(part);
        match part {
            PromptPart::Mention { target, lines } => Some(self.file(shown, target, *lines, room).await),
            PromptPart::Symbol { target: Some(target), lines, .. } => {
                Some(self.file(shown, target, *lines, room).await)
            }
            PromptPart::Symbol { name, target: None, .. } => self.symbol(shown, name, room).await,
            PromptPart::Diagnostics { message: Some(message), .. } => {
                let attributes = [("of", shown.label.clone())];
                Some(FoundPart::text(shown, "diagnostics", &attributes, &bounded(message, room)))
            }
            PromptPart::Diagnostics { target, .. } => {
                Some(self.diagnostics(shown, target.as_ref(), room).await)
            }
            PromptPart::Diff { of } => Some(self.diff(shown, of, room).await),
            PromptPart::Session { session } => Some(self.past_session(shown, session, room).await),
            PromptPart::Resource { server, uri } => Some(self.resource(shown, server, uri, room).await),
            PromptPart::Selection { target, lines, text } => {
                if let Err(reason) = self.input.gate.may_attach(target) {
                    return Some(FoundPart::problem(shown, reason));
                }
                let path = self.input.environment.workspace.display(target);
                let attributes = [("path", path), ("lines", lines_of(*lines))];
                Some(FoundPart::text(shown, "selection", &attributes, &bounded(text, room.min(MAX_SELECTED))))
            }
            PromptPart::Image(image) => {
                let image = image.clone();
                Some(picture(shown, blocking(move || image.readable()).await))
            }
            PromptPart::Pasted { text } => {
                let body = bounded(text, room.min(MAX_PASTED_BYTES));
                Some(FoundPart::text(shown, PASTED_TAG, &[], &body))
            }
            PromptPart::Editor(context) => self.editor(shown, context, room),
        }
    }

    async fn file(
        &self,
        shown: Attachment,
        target: &Target,
        lines: Option<LineSpan>,
        room: usize,
    ) -> FoundPart {
        let resolved = match self.input.gate.may_attach(target) {
            Ok(resolved) => resolved,
            Err(reason) => return FoundPart::problem(shown, reason),
        };
        let path = self.input.environment.workspace.display(target);
        if let Some(folder) = target.file()
            && tokio::fs::metadata(folder.as_path()).await.is_ok_and(|metadata| metadata.is_dir())
        {
            let shown = Attachment { kind: AttachmentKind::Folder, ..shown };
            let input = json!({ "path": folder.to_string(), "depth": LISTED_LEVELS });
            return match self.call_judged(LS, input, None, resolved).await {
                Ok(output) => {
                    let body = bounded(&output.model_text, room.min(MAX_OTHER_BYTES));
                    FoundPart::text(shown, "folder", &[("path", path)], &body)
                }
                Err(error) => FoundPart::problem(shown, error.message),
            };
        }
        let first = lines.map_or(1, |lines| lines.first as usize);
        let limit = lines.map_or(MAX_LINES, |lines| lines.count().min(MAX_LINES));
        let input = json!({ "file_path": target.to_string(), "offset": first, "limit": limit });
        match self.call_judged(READ, input, Some(room.min(MAX_FILE_BYTES)), resolved).await {
            Ok(ToolOutput { images, .. }) if !images.is_empty() => {
                let mut found = FoundPart { shown, blocks: Vec::new() };
                for image in images {
                    let text = element("image", &[("path", path.clone())], "");
                    found.blocks.push(Block::Text { text });
                    let picture = picture(found.shown, image);
                    found.shown = picture.shown;
                    found.blocks.extend(picture.blocks);
                }
                found
            }
            Ok(output) => text_of_file(shown, path, first, lines, output),
            Err(error) => FoundPart::problem(shown, error.message),
        }
    }

    async fn resource(&self, shown: Attachment, server: &str, uri: &str, room: usize) -> FoundPart {
        match self.input.servers.all().read_resource(server, uri).await {
            Ok(read) => {
                let attributes = [("server", server.to_owned()), ("uri", uri.to_owned())];
                let body = bounded(&read.text, room.min(MAX_FILE_BYTES));
                let mut found = FoundPart::text(shown, "resource", &attributes, &body);
                found.blocks.extend(read.images.into_iter().map(Block::Image));
                found
            }
            Err(failure) => FoundPart::problem(shown, failure.message),
        }
    }

    async fn symbol(&self, shown: Attachment, name: &str, room: usize) -> Option<FoundPart> {
        let last = name.rsplit([':', '.']).next().filter(|last| !last.is_empty())?;
        let keywords = "fn|struct|enum|union|trait|type|const|static|mod|macro_rules!|class|interface|namespace|module|\
                        def|defp|func|function|sub|proc|record|object|protocol|extension|val|var|let|impl|#define";
        let escaped = last.replace('$', "\\$");
        let input: Value = json!({
            "pattern": format!(r"(?:^|[^\w$])(?:{keywords})\s+(?:\([^)]*\)\s*)?{escaped}(?:[^\w$]|$)"),
            "output_mode": "content", "-A": DEFINITION_LINES - 1,
            "head_limit": MAX_DEFINITIONS * (DEFINITION_LINES + 1),
        });
        match self.call(GREP, input, None).await {
            Ok(output) => {
                let is_found = output.structured.as_ref().is_none_or(|found| found["matches"] != json!(0));
                let body = bounded(&output.model_text, room.min(MAX_OTHER_BYTES));
                let says_nothing = output.model_text.starts_with("No ");
                (is_found && !says_nothing)
                    .then(|| FoundPart::text(shown, "symbol", &[("name", name.to_owned())], &body))
            }
            Err(error) => Some(FoundPart::problem(shown, error.message)),
        }
    }

    async fn diagnostics(&self, shown: Attachment, target: Option<&Target>, room: usize) -> FoundPart {
        if !self.input.environment.workspace.can_diagnose() {
            return FoundPart::problem(
                shown,
                "there is no editor and no language server that provides diagnostics",
            );
        }
        if let Some(Err(reason)) = target.map(|target| self.input.gate.may_attach(target)) {
            return FoundPart::problem(shown, reason);
        }
        let of =
            target.map_or("all files".to_owned(), |target| self.input.environment.workspace.display(target));
        let input = target.map_or_else(|| json!({}), |target| json!({ "path": target.to_string() }));
        match self.call(DIAGNOSTICS, input, None).await {
            Ok(output) => {
                let body = bounded(&output.model_text, room.min(MAX_OTHER_BYTES));
                FoundPart::text(shown, "diagnostics", &[("of", of)], &body)
            }
            Err(error) => FoundPart::problem(shown, error.message),
        }
    }

    async fn diff(&self, shown: Attachment, of: &DiffOf, room: usize) -> FoundPart {
        let (against, said) = match of {
            DiffOf::Head => ("HEAD".to_owned(), "HEAD"),
            DiffOf::Staged => ("--staged".to_owned(), "staged"),
            DiffOf::Revision(revision) if is_revision(revision) => {
                (format!("'{revision}'"), revision.as_str())
            }
            DiffOf::Revision(_) => return FoundPart::problem(shown, "that is no revision"),
        };
        let directory = self.input.environment.workspace.cwd();
        let command = format!("git diff --no-color --no-ext-diff --no-textconv {against} --");
        let input = json!({ "command": command });
        let touches = [Touch::Command {
            command: command.clone(),
            directory: directory.clone(),
            outside_sandbox: false,
            language: CommandLanguage::Bash,
        }];
        let case = GateCase { tool: "Bash", kind: ToolKind::Execute, input: &input, touches: &touches };
        let mode = self.input.core.state().config.mode;
        let judged = self.input.gate.judge(&case, mode);
        if judged.verdict.decision != GateDecision::Allow {
            return FoundPart::problem(shown, judged.verdict.reason);
        }
        let spec = CommandSpec {
            command,
            shell: CommandShell::Bash,
            directory,
            timeout: GIT_TIME,
            sandbox: judged.bounds.sandbox,
            call: None,
        };
        match self.context.shell.run(spec, |_| {}, &self.context.cancel).await {
            Ok(outcome) if outcome.exit == Exit::Code(0) => {
                let text = match outcome.output.text.trim_end() {
                    "" => "(no changes)",
                    text => text,
                };
                let body = bounded(text, room.min(MAX_OTHER_BYTES));
                let shown = Attachment { cut: outcome.output.cut > 0, ..shown };
                FoundPart::text(shown, "diff", &[("of", said.to_owned())], &body)
            }
            Ok(outcome) => {
                let line = outcome.output.text.lines().next().unwrap_or("it failed").to_owned();
                FoundPart::problem(shown, format!("git: {line}"))
            }
            Err(error) => FoundPart::problem(shown, error.to_string()),
        }
    }

    /// The content of the editor, if it differs from that of the prompt before.
    fn editor(&self, shown: Attachment, context: &EditorContext, room: usize) -> Option<FoundPart> {
        if !self.input.editor.note(context) {
            return None;
        }
        let display = |target: &Target| {
            self.input.environment.workspace.display(target).replace(char::is_control, "\u{fffd}")
        };
        let mut text = String::new();
        if let Some(active) = &context.active {
            text.push_str(&format!("Active file: {}\n", display(active)));
            if let Some(visible) = context.visible {
                text.push_str(&format!("Visible lines: {}\n", lines_of(visible)));
            }
            let may_show = || self.input.gate.may_attach(active).is_ok();
            match context.selection {
                Some(lines) if context.selected.is_empty() => {
                    text.push_str(&format!("Cursor: line {}\n", lines.first));
                }
                Some(lines) if may_show() => {
                    let body = bounded(&context.selected, MAX_SELECTED.min(room / 2));
                    let cut = if body.is_cut { "\n[The selection is longer]" } else { "" };
                    text.push_str(&format!("Selected lines: {}\n{}{cut}\n", lines_of(lines), body.text));
                }
                Some(lines) => text.push_str(&format!("Selected lines: {}\n", lines_of(lines))),
                None => {}
            }
        }
        if !context.open.is_empty() {
            let open: Vec<_> = context.open.iter().take(MAX_OPEN).map(display).collect();
            let more = if context.open.len() > MAX_OPEN { " and more" } else { "" };
            text.push_str(&format!("Open files: {}{more}\n", open.join(", ")));
        }
        let text = text.trim_end();
        (!text.is_empty()).then(|| FoundPart::text(shown, "editor-context", &[], &bounded(text, room)))
    }

    /// Plans and runs a tool that only reads, whose touches were judged before.
    async fn call(
        &self,
        tool: &'static str,
        input: Value,
        text_limit: Option<usize>,
    ) -> Result<ToolOutput, ToolError> {
        self.call_judged(tool, input, text_limit, ResolvedPaths::default()).await
    }

    /// As [`LookUp::call`], with the real paths that the verdict applies to.
    async fn call_judged(
        &self,
        tool: &'static str,
        input: Value,
        text_limit: Option<usize>,
        resolved: ResolvedPaths,
    ) -> Result<ToolOutput, ToolError> {
        let found = self.input.environment.tools.find(tool).ok_or_else(|| {
            let message = format!("this session has no tool {tool}");
            ToolError::new(ToolErrorKind::UnknownTool, message, "Name another thing to attach.")
        })?;
        let context = CallContext { text_limit, resolved, ..self.context.clone() };
        let plan = found.plan(input, &context).await?;
        match plan.action {
            CallAction::Run(run) => run(context).await,
            CallAction::Change(_)
            | CallAction::Show(_)
            | CallAction::Ask(_)
            | CallAction::SetMode(_)
            | CallAction::SetTodos(_)
            | CallAction::Team(_)
            | CallAction::Delegate(_)
            | CallAction::Use(_) => Ok(ToolOutput::default()),
        }
    }
}

/// The lines of a file as the Read tool shows them.
fn text_of_file(
    shown: Attachment,
    path: String,
    first: usize,
    wanted: Option<LineSpan>,
    output: ToolOutput,
) -> FoundPart {
    let facts = output.structured.unwrap_or_default();
    let count = usize::try_from(facts["lines"].as_u64().unwrap_or_default()).unwrap_or_default();
    let total = facts["totalLines"].as_u64().and_then(|total| usize::try_from(total).ok());
    let last = (first + count).saturating_sub(1);
    let is_cut = match wanted {
        Some(wanted) => last < (wanted.last as usize).min(total.unwrap_or(usize::MAX)),
        None => facts["partial"].as_bool().unwrap_or_default(),
    };
    let attributes = [("path", path), ("lines", format!("{}-{last}", first))];
    let text = element("file", &attributes, &output.model_text);
    let shown = Attachment {
        lines: u32::try_from(count).ok(),
        bytes: output.model_text.len() as u64,
        cut: is_cut,
        ..shown
    };
    FoundPart { shown, blocks: vec![Block::Text { text }] }
}

fn picture(shown: Attachment, image: Image) -> FoundPart {
    let shown = Attachment { kind: AttachmentKind::Image, bytes: image.size(), ..shown };
    FoundPart { shown, blocks: vec![Block::Image(image)] }
}

/// Whether a text can be a revision or a range of two, and nothing else.
fn is_revision(text: &str) -> bool {
    let fits = |char: char| char.is_ascii_alphanumeric() || "_./~^@{}-".contains(char);
    !text.is_empty() && text.len() <= 200 && !text.starts_with('-') && text.chars().all(fits)
}
