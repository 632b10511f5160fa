//! The text of a skill or command before it is used: words, and commands that run first.
//!
//! Rule: what runs is found in the file's own text, before any argument is put in, so that an argument can never become a
//! command of its own; the approval is for this exact text, with the scripts that its commands name.

use std::fmt::Write;

use super::arguments::Filler;
use super::{Extension, ExtensionKind};
use crate::hooks::declared::FileHooks;
use crate::settings::{TrustRequest, contents_of_named};
use kode_base::effort::Effort;
use kode_base::paths::AbsPath;
use kode_model::models::Pointer;

/// The key of an approval of embedded commands.
pub const SHELL_KEY: &str = "shell";

/// The key of an approval of tools that run unasked.
pub const TOOLS_KEY: &str = "allowedTools";

/// The key of an approval of a model, and of how hard it thinks,.
pub const MODEL_KEY: &str = "model";

/// How a block of commands begins.
const FENCE: &str = "```!";

/// A part of a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TemplateSegment {
    /// Words.
    Text(String),
    /// A command whose output takes its place.
    Command(String),
}

/// The text of a skill or command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Template {
    segments: Vec<TemplateSegment>,
}

impl Template {
    /// Reads a text.
    pub(super) fn of(body: &str) -> Self {
        let (mut segments, mut text, mut block) = (Vec::new(), String::new(), None::<String>);
        for line in body.split_inclusive('\n') {
            let trimmed = line.trim();
            match &mut block {
                None if trimmed.starts_with(FENCE) && !trimmed[FENCE.len()..].contains('`') => {
                    block = Some(String::new());
                }
                None => inline(line, &mut text, &mut segments),
                Some(commands) if trimmed == "```" => {
                    let command = std::mem::take(commands).trim().to_owned();
                    block = None;
                    if !command.is_empty() {
                        segments.push(TemplateSegment::Text(std::mem::take(&mut text)));
                        segments.push(TemplateSegment::Command(command));
                        text.push('\n');
                    }
                }
                Some(commands) => commands.push_str(line),
            }
        }
        // A block that is never closed is no block.
        if let Some(open) = block {
            let _ = write!(text, "{FENCE}\n{open}");
        }
        segments.push(TemplateSegment::Text(text));
        Self { segments }
    }

    /// The text with arguments and variables in it, in its parts.
    pub fn fill(
        &self,
        extension: &Extension,
        arguments: &str,
        variables: &dyn Fn(&str) -> Option<String>,
    ) -> Vec<TemplateSegment> {
        let base = extension.argument_base.unwrap_or_else(|| self.usual_base(extension.kind));
        let mut filler = Filler::new(arguments, base, &extension.argument_names, variables);
        let mut filled: Vec<_> = self
            .segments
            .iter()
            .map(|segment| match segment {
                TemplateSegment::Text(text) => TemplateSegment::Text(filler.part(text)),
                TemplateSegment::Command(command) => TemplateSegment::Command(filler.part(command)),
            })
            .collect();
        filled.extend(filler.rest().map(TemplateSegment::Text));
        filled
    }

    /// The trust requests of a workspace file with this text.
    pub(super) fn trust_requests(&self, extension: &Extension) -> Vec<TrustRequest> {
        let trust_request = |key: &str, text: String| TrustRequest {
            root: extension.root.clone(),
            file: extension.path.clone(),
            key: key.to_owned(),
            text,
        };
        let commands: Vec<&str> = self.commands().collect();
        let shell = (!commands.is_empty()).then(|| {
            let text = commands.join("\n");
            let contents = contents_of_named(&extension.root, &text);
            trust_request(SHELL_KEY, text + &contents)
        });
        let tools = &extension.allowed_tools;
        let tools = (!tools.is_empty()).then(|| trust_request(TOOLS_KEY, tools.join(", ")));
        let model = model_trust_request(
            &extension.root,
            &extension.path,
            extension.model.as_deref(),
            extension.effort,
        );
        let hooks = extension.hooks.iter().flat_map(FileHooks::trust_requests);
        shell.into_iter().chain(tools).chain(model).chain(hooks).collect()
    }

    fn commands(&self) -> impl Iterator<Item = &str> {
        self.segments.iter().filter_map(|segment| match segment {
            TemplateSegment::Command(command) => Some(command.as_str()),
            TemplateSegment::Text(_) => None,
        })
    }

    /// Files that count from 0 show it; else skills count from 0 and commands from 1.
    fn usual_base(&self, kind: ExtensionKind) -> usize {
        let shows_zero = self.segments.iter().any(|segment| {
            let (TemplateSegment::Text(text) | TemplateSegment::Command(text)) = segment;
            text.contains("$0") || text.contains("$ARGUMENTS[")
        });
        match kind {
            ExtensionKind::Command if !shows_zero => 1,
            ExtensionKind::Command | ExtensionKind::Skill => 0,
        }
    }
}

/// The trust requests of a workspace file that names a model or how hard it thinks: both cost money, and a model may be of
/// another provider. The roles that the user has given models to are no wish.
pub(crate) fn model_trust_request(
    root: &AbsPath,
    file: &AbsPath,
    model: Option<&str>,
    effort: Option<Effort>,
) -> Option<TrustRequest> {
    let model = model.filter(|name| Pointer::parse(name).is_none());
    let model = model.map(|name| format!("model: {name}"));
    let effort = effort.map(|effort| format!("effort: {}", effort.name()));
    let text = model.into_iter().chain(effort).collect::<Vec<_>>().join("\n");
    let (root, file) = (root.clone(), file.clone());
    (!text.is_empty()).then(|| TrustRequest { root, file, key: MODEL_KEY.to_owned(), text })
}

/// Takes a line in: `` !`command` `` at its start or after a blank is a command.
fn inline(line: &str, text: &mut String, segments: &mut Vec<TemplateSegment>) {
    const MARK: &str = "!`";
    let mut rest = line;
    let mut from = 0;
    while let Some(at) = rest[from..].find(MARK).map(|at| from + at) {
        let is_alone = rest[..at].chars().next_back().is_none_or(char::is_whitespace);
        let command = &rest[at + MARK.len()..];
        match command.find('`').filter(|end| *end > 0 && is_alone) {
            Some(end) => {
                text.push_str(&rest[..at]);
                segments.push(TemplateSegment::Text(std::mem::take(text)));
                segments.push(TemplateSegment::Command(command[..end].to_owned()));
                (rest, from) = (&command[end + 1..], 0);
                // Text directly after it follows a command, and not a blank.
                if let Some(behind) = rest.strip_prefix(MARK) {
                    text.push_str(MARK);
                    rest = behind;
                }
            }
            None => from = at + MARK.len(),
        }
    }
    text.push_str(rest);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(body: &str) -> Vec<TemplateSegment> {
        Template::of(body).segments
    }

    fn commands(body: &str) -> Vec<String> {
        Template::of(body).commands().map(str::to_owned).collect()
    }

    #[test]
    fn commands_are_found_where_they_stand_alone_and_in_blocks() {
        for (body, expected) in [
            ("Status: !`git status`", vec!["git status"]),
            ("!`ls`", vec!["ls"]),
            ("!`a` and !`b`!`c`", vec!["a", "b"]),
            ("x\n```!\ngit log\ngit diff\n```\ny", vec!["git log\ngit diff"]),
            ("use `cmd!` here", vec![]),
            ("wow!`code`", vec![]),
            ("!`open\n`", vec![]),
            ("!``", vec![]),
            ("```!\nnever closed", vec![]),
            ("```sh\nplain\n```", vec![]),
        ] {
            assert_eq!(commands(body), expected, "{body}");
        }
        let text = |text: &str| TemplateSegment::Text(text.to_owned());
        assert_eq!(parts("a !`b` c"), [text("a "), TemplateSegment::Command("b".into()), text(" c")]);
    }

    #[test]
    fn what_is_around_commands_is_kept() {
        let whole = |body: &str| {
            let text = |segment: &TemplateSegment| match segment {
                TemplateSegment::Text(text) => text.clone(),
                TemplateSegment::Command(command) => format!("<{command}>"),
            };
            parts(body).iter().map(text).collect::<String>()
        };
        assert_eq!(whole("a\n```!\nb\n```\nc\n"), "a\n<b>\nc\n");
        assert_eq!(whole("!`a`!`b`"), "<a>!`b`");
        assert_eq!(whole("```!\nnever closed"), "```!\nnever closed");
    }
}
