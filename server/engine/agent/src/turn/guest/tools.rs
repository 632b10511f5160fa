//! The requests of a guest as calls: a read, a write, and an action that the guest carries out itself.
//!
//! Rule: for rules and hooks a call has the name of the tool that would do the same here. An action is judged and never carried
//! out: that is the guest's.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use futures::FutureExt;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value};
use url::Url;

use crate::core::lock;
use kode_base::call::{CommandLanguage, ToolError, ToolErrorKind, ToolKind, Touch};
use kode_base::paths::Target;
use kode_model::InputSchema;
use kode_text::edit::diff::line_changes;
use kode_text::edit::matching::adopt_line_breaks;
use kode_text::edit::{Author, ChangeSet, FileChange, TextEdit};
use kode_text::file_text::FileText;
use kode_text::workspace::write::missing_parents;
use kode_text::workspace::{OpenText, ReadError, Workspace};
use kode_tool::guest::{GuestAction, GuestActionKind, GuestEdit};
use kode_tool::names::{GUEST, READ};
use kode_tool::{CallAction, CallContext, CallPlan, ErasedTool, OfferContext, Tool, ToolFacts, ToolOutput};

/// The arguments of a read.
#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct ReadInput {
    file_path: String,
}

/// The arguments of a write.
#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct WriteInput {
    file_path: String,
    content: String,
}

/// Reads a file for a guest.
pub(super) struct GuestRead {
    /// The text that was read.
    pub(super) found: Arc<Mutex<Option<FileText>>>,
}

/// Writes a file for a guest.
pub(super) struct GuestWrite {
    /// The text that the guest knows; `None` where it has not asked for it.
    pub(super) base: Option<FileText>,
}

/// Something that a guest does itself.
pub(super) struct OwnAction {
    pub(super) action: GuestAction,
    /// The texts of files as the shown changes would leave them.
    pub(super) shown: Arc<Mutex<Vec<(Target, String)>>>,
    pub(super) title: String,
    /// Its arguments in the transcript.
    pub(super) input: Value,
}

#[async_trait]
impl Tool for GuestRead {
    type Input = ReadInput;

    fn facts(&self) -> ToolFacts {
        let description = "Reads a file for a guest.";
        ToolFacts { name: READ, kind: ToolKind::ReadOnly, concurrency_safe: true, description }
    }

    async fn plan(&self, input: ReadInput, context: &CallContext) -> Result<CallPlan, ToolError> {
        let target = context.workspace.resolve(&input.file_path)?;
        let title = format!("Read {}", context.workspace.display(&target));
        let (found, of) = (Arc::clone(&self.found), target.clone());
        let work = move |context: CallContext| {
            async move {
                let real = of.file().and_then(|path| context.resolved.get(path)).cloned();
                let text = match context.workspace.open_judged(&of, real.as_ref()).await? {
                    OpenText::Whole(text) => text,
                    OpenText::Stream(_) => {
                        let message = format!(
                            "`{}` is too long to be given to a guest.",
                            context.workspace.display(&of)
                        );
                        let hint = "Read the part that is needed from the disk.";
                        return Err(ToolError::new(ToolErrorKind::Failed, message, hint));
                    }
                };
                let lines = text.text.lines().count();
                *lock(&found) = Some(text);
                let model_text = format!("{lines} lines, given to the guest");
                Ok(ToolOutput { model_text, ..ToolOutput::default() })
            }
            .boxed()
        };
        let touches = vec![Touch::Read(target)];
        Ok(CallPlan { title, touches, action: CallAction::Run(Box::new(work)) })
    }
}

#[async_trait]
impl Tool for GuestWrite {
    type Input = WriteInput;

    fn facts(&self) -> ToolFacts {
        let description = "Writes a file for a guest.";
        ToolFacts { name: "Write", kind: ToolKind::Write, concurrency_safe: false, description }
    }

    async fn plan(&self, input: WriteInput, context: &CallContext) -> Result<CallPlan, ToolError> {
        let workspace = &context.workspace;
        let target = workspace.resolve(&input.file_path)?;
        let path = workspace.display(&target);
        let mut touches = vec![Touch::Write(target.clone())];
        let content = input.content.trim_start_matches('\u{feff}');
        let base = match &self.base {
            Some(base) => Some(base.clone()),
            // It has looked for itself: at the disk, for it has no other way.
            None => match workspace.saved_file(&target).await {
                Some(saved) => Some(saved),
                None => match workspace.text(&target).await {
                    Ok(text) => Some(text),
                    Err(ReadError::NotFound { .. }) => None,
                    Err(error) => return Err(error.into()),
                },
            },
        };
        let edits = match &base {
            None => {
                touches.extend(missing_parents(&target).into_iter().map(Touch::Write));
                vec![TextEdit { range: 0..0, new_text: content.to_owned() }]
            }
            Some(base) => {
                let content = adopt_line_breaks(&base.text, content);
                base.check_writable_as(&content).map_err(|error| {
                    let hint = "Use characters that the encoding has.";
                    ToolError::new(
                        ToolErrorKind::Mismatch,
                        format!("`{path}` cannot be changed: {error}."),
                        hint,
                    )
                })?;
                // Some guests write the file themselves as well, and may have done so by now.
                match has_text(workspace, &input.file_path, &input.content).await {
                    true => Vec::new(),
                    false => line_changes(&base.text, &content),
                }
            }
        };
        let title = format!("{} {path}", if base.is_some() { "Write" } else { "Create" });
        if edits.is_empty() && base.is_some() {
            let same = |_| async { Ok(unchanged()) }.boxed();
            return Ok(CallPlan { title, touches, action: CallAction::Run(Box::new(same)) });
        }
        let summary = format!("{} {path}", if base.is_some() { "Rewrote" } else { "Created" });
        let files = vec![FileChange { target, base, edits }];
        let (label, removals, author) = (format!("Kode: {title}"), Vec::new(), Author::Agent);
        let change = ChangeSet { label, summary, files, removals, author };
        Ok(CallPlan { title, touches, action: CallAction::Change(change) })
    }
}

/// Whether a file has the text that a guest wants to give it.
pub(super) async fn has_text(workspace: &Workspace, path: &str, content: &str) -> bool {
    let Ok(target) = workspace.resolve(path) else { return false };
    match workspace.text(&target).await {
        Ok(now) => *now.text == *adopt_line_breaks(&now.text, content.trim_start_matches('\u{feff}')),
        Err(_) => false,
    }
}

/// The result of a write of the text that the file has already.
pub(super) fn unchanged() -> ToolOutput {
    ToolOutput { model_text: "It has this text already.".to_owned(), ..ToolOutput::default() }
}

#[async_trait]
impl ErasedTool for OwnAction {
    fn facts(&self) -> ToolFacts {
        let name = match self.action.kind.unwrap_or_default() {
            GuestActionKind::Execute => "Bash",
            GuestActionKind::Edit | GuestActionKind::Delete | GuestActionKind::Move => "Edit",
            GuestActionKind::Read | GuestActionKind::Search => READ,
            GuestActionKind::Fetch => "WebFetch",
            GuestActionKind::Think | GuestActionKind::Other => GUEST,
        };
        let description = "Something that a guest does itself.";
        // Nothing is done here.
        ToolFacts { name, kind: ToolKind::ReadOnly, concurrency_safe: true, description }
    }

    fn describe(&self, _: &OfferContext<'_>) -> Option<String> {
        None
    }

    fn timeout(&self) -> Option<Duration> {
        None
    }

    fn input_schema(&self) -> InputSchema {
        Value::Object(Map::new()).into()
    }

    async fn plan(&self, input: Value, context: &CallContext) -> Result<CallPlan, ToolError> {
        if input != self.input {
            let message =
                format!("{}: a guest carries out what it has asked for, and nothing else.", self.title);
            let hint = "Allow it as it is, or refuse it.";
            return Err(ToolError::new(ToolErrorKind::InvalidInput, message, hint));
        }
        let touches = touches(&self.action, &self.title, &context.workspace);
        let drawn = match self.action.kind {
            Some(GuestActionKind::Edit) => drawn(&self.action.edits, &context.workspace).await,
            _ => None,
        };
        let action = match drawn {
            Some(files) => {
                *lock(&self.shown) =
                    files.iter().map(|file| (file.target.clone(), file.new.clone())).collect();
                let files = files.into_iter().map(DrawnFile::change).collect();
                let (label, author) = (self.title.clone(), Author::Agent);
                let summary = label.clone();
                CallAction::Show(ChangeSet { label, summary, files, removals: Vec::new(), author })
            }
            None => CallAction::Run(Box::new(|_| async { Ok(ToolOutput::default()) }.boxed())),
        };
        Ok(CallPlan { title: self.title.clone(), touches, action })
    }
}

/// A file before and after changes that a guest shows.
struct DrawnFile {
    target: Target,
    /// The text before; `None` for a new file.
    base: Option<FileText>,
    new: String,
}

impl DrawnFile {
    fn change(self) -> FileChange {
        let edits = match &self.base {
            None => vec![TextEdit { range: 0..0, new_text: self.new }],
            Some(base) => line_changes(&base.text, &self.new),
        };
        FileChange { target: self.target, base: self.base, edits }
    }
}

/// The files that a guest shows changes of; `None` where a change is of another text than the user's and the saved one.
async fn drawn(edits: &[GuestEdit], workspace: &Workspace) -> Option<Vec<DrawnFile>> {
    let mut files: Vec<DrawnFile> = Vec::new();
    for edit in edits {
        let target = workspace.resolve(edit.path.to_str()?).ok()?;
        let old = edit.old.as_deref().unwrap_or_default();
        if let Some(file) = files.iter_mut().find(|file| file.target == target) {
            file.new = replaced(&file.new, old, &edit.new)?;
            continue;
        }
        let base = match workspace.text(&target).await {
            Ok(text) => Some(text),
            Err(ReadError::NotFound { .. }) => None,
            Err(_) => return None,
        };
        let file = match base {
            None if old.is_empty() => DrawnFile { target, base: None, new: edit.new.clone() },
            None => return None,
            Some(base) => match replaced(&base.text, old, &edit.new) {
                Some(new) => DrawnFile { target, base: Some(base), new },
                None => {
                    let base = workspace.saved_file(&target).await?;
                    let new = replaced(&base.text, old, &edit.new)?;
                    DrawnFile { target, base: Some(base), new }
                }
            },
        };
        files.push(file);
    }
    (!files.is_empty()).then_some(files)
}

/// A text with a part replaced, which is all of it, or in it once; without a part, all of it.
fn replaced(text: &str, old: &str, new: &str) -> Option<String> {
    if old.is_empty() || text == old {
        return Some(new.to_owned());
    }
    let mut places = text.match_indices(old);
    match (places.next(), places.next()) {
        (Some((at, _)), None) => Some([&text[..at], new, &text[at + old.len()..]].concat()),
        _ => None,
    }
}

/// The touches of an action, as far as its report names them; an unknown effect otherwise.
fn touches(action: &GuestAction, title: &str, workspace: &Workspace) -> Vec<Touch> {
    let kind = action.kind.unwrap_or_default();
    let targets = || action.paths.iter().filter_map(|path| workspace.resolve(path.to_str()?).ok());
    let known: Vec<Touch> = match kind {
        GuestActionKind::Execute => match command(action, workspace) {
            Some(command) => vec![command],
            // A guest that reports no arguments names the command by its title, or says there what it is for. A rule against it
            // counts, and one for it is not enough.
            None => return vec![titled(title, workspace), unknown(action, title)],
        },
        GuestActionKind::Edit | GuestActionKind::Delete | GuestActionKind::Move => {
            targets().map(Touch::Write).collect()
        }
        // A command that the guest takes for a read is a command all the same.
        GuestActionKind::Read | GuestActionKind::Search => {
            let words = action.input.as_ref().and_then(command_words).is_some();
            let command = words.then(|| command(action, workspace)).flatten();
            targets().map(Touch::Read).chain(command).collect()
        }
        GuestActionKind::Fetch => url(action).map(|url| Touch::Fetch { url }).into_iter().collect(),
        GuestActionKind::Think | GuestActionKind::Other => Vec::new(),
    };
    if known.is_empty() { vec![unknown(action, title)] } else { known }
}

/// An action with an effect that its report does not name.
fn unknown(action: &GuestAction, title: &str) -> Touch {
    let shown = match &action.input {
        Some(input) => format!("{title}\n{input}"),
        None => title.to_owned(),
    };
    let only_looks = action.kind.unwrap_or_default().only_looks();
    Touch::Foreign { tool: GUEST.to_owned(), shown, only_looks }
}

/// The command line that is the title of an action.
fn titled(title: &str, workspace: &Workspace) -> Touch {
    Touch::Command {
        command: title.to_owned(),
        directory: workspace.cwd(),
        outside_sandbox: true,
        language: CommandLanguage::Bash,
    }
}

/// The command line that an action runs, where its arguments name it.
fn command(action: &GuestAction, workspace: &Workspace) -> Option<Touch> {
    let input = action.input.as_ref()?;
    let command = match command_words(input) {
        Some(words) => match words[..] {
            // The line is judged, and not that a shell runs it.
            [shell, "-c" | "-lc", line] if is_shell(shell) => line.to_owned(),
            _ => words.into_iter().map(shell_word).collect::<Vec<_>>().join(" "),
        },
        None => input.get("command").or_else(|| input.get("cmd"))?.as_str()?.to_owned(),
    };
    if command.trim().is_empty() {
        return None;
    }
    let named = ["cwd", "workdir", "directory"].iter().find_map(|key| input.get(*key)?.as_str());
    let cwd = workspace.cwd();
    let directory = match named {
        Some(named) => cwd.join(named),
        None => cwd,
    };
    Some(Touch::Command { command, directory, outside_sandbox: true, language: CommandLanguage::Bash })
}

/// The words of a command that is given word by word.
fn command_words(input: &Value) -> Option<Vec<&str>> {
    let words = input.get("command").or_else(|| input.get("cmd"))?.as_array()?;
    words.iter().map(Value::as_str).collect()
}

/// Whether a program is a shell of the system. A file of that name elsewhere may be any program.
fn is_shell(program: &str) -> bool {
    let name = ["/usr/bin/", "/bin/"].iter().find_map(|folder| program.strip_prefix(folder));
    matches!(name.unwrap_or(program), "bash" | "sh")
}

fn shell_word(word: &str) -> String {
    let is_plain = |char: char| char.is_ascii_alphanumeric() || "_-./=:,@%+".contains(char);
    match !word.is_empty() && word.chars().all(is_plain) {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', r"'\''")),
    }
}

fn url(action: &GuestAction) -> Option<Url> {
    Url::parse(action.input.as_ref()?.get("url")?.as_str()?).ok()
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use serde_json::json;

    use super::*;
    use kode_base::paths::AbsPath;
    use kode_text::host::NoEditor;

    fn of(kind: GuestActionKind, input: Value, paths: &[&str]) -> Vec<Touch> {
        let root = AbsPath::new("/w").unwrap();
        let workspace = Workspace::new(Arc::new(NoEditor), vec![root.clone()], root);
        let paths = paths.iter().map(PathBuf::from).collect();
        let action = GuestAction { kind: Some(kind), input: Some(input), paths, ..GuestAction::default() };
        touches(&action, "Do it", &workspace)
    }

    #[test]
    fn a_part_of_a_text_is_replaced_where_its_place_is_known() {
        for (text, old, new, expected) in [
            ("a b", "", "c", Some("c")),
            ("a b", "a b", "c", Some("c")),
            ("a b", "b", "c", Some("a c")),
            ("a a", "a", "c", None),
            ("a b", "d", "c", None),
        ] {
            assert_eq!(replaced(text, old, new).as_deref(), expected, "{text} {old}");
        }
    }

    #[test]
    fn an_action_touches_what_its_report_says_and_otherwise_something_unknown() {
        let file = |path: &str| Target::File(AbsPath::new(path).unwrap());
        let command = |command: &str, directory: &str| Touch::Command {
            command: command.to_owned(),
            directory: AbsPath::new(directory).unwrap(),
            outside_sandbox: true,
            language: CommandLanguage::Bash,
        };
        let unknown = |only_looks, input: Value| Touch::Foreign {
            tool: "Guest".to_owned(),
            shown: format!("Do it\n{input}"),
            only_looks,
        };
        for (kind, input, paths, expected) in [
            (GuestActionKind::Execute, json!({ "command": "ls -a" }), &[][..], command("ls -a", "/w")),
            (
                GuestActionKind::Execute,
                json!({ "command": ["/bin/bash", "-lc", "rm -r x"], "cwd": "sub" }),
                &[],
                command("rm -r x", "/w/sub"),
            ),
            (
                GuestActionKind::Execute,
                json!({ "command": ["./bin/bash", "-c", "ls"] }),
                &[],
                command("./bin/bash -c ls", "/w"),
            ),
            (
                GuestActionKind::Execute,
                json!({ "command": ["rm", "it's"] }),
                &[],
                command(r"rm 'it'\''s'", "/w"),
            ),
            (GuestActionKind::Edit, json!({}), &["/w/a"], Touch::Write(file("/w/a"))),
            (GuestActionKind::Delete, json!({}), &["/etc/x"], Touch::Write(file("/etc/x"))),
            (GuestActionKind::Read, json!({}), &["/w/a"], Touch::Read(file("/w/a"))),
            (GuestActionKind::Read, json!({}), &[], unknown(true, json!({}))),
            (GuestActionKind::Other, json!({ "x": 1 }), &["/w/a"], unknown(false, json!({ "x": 1 }))),
            (
                GuestActionKind::Fetch,
                json!({ "url": "https://h.example/" }),
                &[],
                Touch::Fetch { url: Url::parse("https://h.example/").unwrap() },
            ),
        ] {
            assert_eq!(of(kind, input.clone(), paths), [expected], "{kind:?} {input}");
        }
        let read = json!({ "command": ["/bin/bash", "-lc", "cat a"] });
        let read = of(GuestActionKind::Read, read, &["/w/a"]);
        assert_eq!(read, [Touch::Read(file("/w/a")), command("cat a", "/w")]);
        let titled = of(GuestActionKind::Execute, json!({}), &["/w/a"]);
        assert_eq!(titled, [command("Do it", "/w"), unknown(false, json!({}))]);
    }
}
