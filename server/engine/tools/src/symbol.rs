//! The common part of the tools of language servers: the place of a symbol by its name and line, and the text of results.
//!
//! Rule: a model knows names and lines, and guesses columns. A name that represents several declarations is an error that
//! lists their lines; a line that has moved a little is found again.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use kode_base::call::{Exposure, ToolError, ToolErrorKind, Touch};
use kode_base::paths::Target;
use kode_text::edit::{Author, ChangeSet, FileChange};
use kode_text::file_text::FileText;
use kode_text::workspace::Workspace;
use kode_text::workspace::language::{Answer, LanguageError, LanguageServers, Place, Symbol, TextPosition};
use kode_tool::{CallAction, CallContext, CallPlan};

/// How far a line may be from the one that the model named.
const NEAR: usize = 5;
/// The most lines that an error lists.
const MAX_LISTED: usize = 10;

/// The most characters of a line of a result.
pub(crate) const MAX_LINE: usize = 300;

/// A symbol in a text.
pub(crate) struct FoundSymbol {
    file: FileText,
    range: Range<usize>,
}

impl FoundSymbol {
    /// Its position for a language server.
    pub(crate) fn position(&self) -> TextPosition<'_> {
        TextPosition { file: &self.file, offset: self.range.start }
    }
}

/// The language servers of a call.
///
/// # Errors
/// Where none serves a language of the workspace.
pub(crate) fn servers(workspace: &Workspace) -> Result<Arc<dyn LanguageServers>, ToolError> {
    workspace.languages().cloned().ok_or_else(|| {
        ToolError::new(
            ToolErrorKind::Failed,
            "No language server serves this workspace.",
            "Use Grep and Read instead. The user can install a language server, or configure one under `lspServers`.",
        )
    })
}

/// The file of a call.
pub(crate) fn target(path: &str, context: &CallContext) -> Result<(Target, Vec<Touch>), ToolError> {
    let target = context.workspace.resolve(path)?;
    let touches = vec![Touch::Read(target.clone())];
    Ok((target, touches))
}

/// The failure of a language server as the result of a call.
pub(crate) fn failure(error: &LanguageError) -> ToolError {
    let (kind, hint) = match error {
        LanguageError::NoServer(_)
        | LanguageError::Unavailable { .. }
        | LanguageError::Unsupported { .. } => (ToolErrorKind::Failed, "Use Grep, Read and Edit instead."),
        LanguageError::Timeout { .. } => (
            ToolErrorKind::Timeout,
            "It may still be indexing. Try once more later, or use Grep and Read instead.",
        ),
        LanguageError::Failed { .. } => {
            (ToolErrorKind::Failed, "Check the arguments and try once more, or use Grep and Read instead.")
        }
        LanguageError::Unreadable(_) => {
            (ToolErrorKind::NotFound, "Give the path of a text file that exists.")
        }
        LanguageError::Moved(..) => (ToolErrorKind::Conflict, "Call the tool once more."),
    };
    let message = error.to_string();
    let mut letters = message.chars();
    let message = letters.next().map(|first| first.to_uppercase().chain(letters).collect::<String>());
    ToolError::new(kind, format!("{}.", message.unwrap_or_default()), hint)
}

/// Finds a symbol by its name, and its line where the model names one.
///
/// # Errors
/// Where it is not there, or represents several declarations.
pub(crate) async fn find(
    name: &str,
    target: &Target,
    line: Option<u32>,
    context: &CallContext,
) -> Result<FoundSymbol, ToolError> {
    let workspace = &context.workspace;
    let file = workspace.text(target).await?;
    let path = workspace.display(target);
    let (around, name) = parts(name);
    if name.is_empty() {
        return Err(ToolError::new(
            ToolErrorKind::InvalidInput,
            "`symbol` is empty.",
            "Give the name of a function, type, variable or another symbol as written in the file.",
        ));
    }
    let lines: Vec<Range<usize>> = line_ranges(&file.text);
    if let Some(line) = line {
        let range = on_line(&file.text, &lines, name, line as usize);
        return match range {
            Some(range) => Ok(FoundSymbol { file, range }),
            None => Err(not_on_line(&file.text, &lines, (name, &path), line)),
        };
    }
    let outline = servers(workspace)?.outline(workspace, target).await;
    let symbols = match outline {
        Ok(answer) => answer.value,
        // Without an outline the first use in the text does.
        Err(LanguageError::Unsupported { .. } | LanguageError::Failed { .. }) => Vec::new(),
        Err(error) => return Err(failure(&error)),
    };
    let declared = declarations(&symbols, around, name);
    let mut places: Vec<Range<usize>> = declared
        .iter()
        .filter_map(|symbol| {
            let line = lines.get((symbol.name_line as usize).checked_sub(1)?)?;
            word_in(&file.text, line.clone(), name)
        })
        .collect();
    places.dedup();
    match places.len() {
        1 => Ok(FoundSymbol { file, range: places.remove(0) }),
        0 => match word_in(&file.text, 0..file.text.len(), name) {
            Some(range) => Ok(FoundSymbol { file, range }),
            None => Err(ToolError::new(
                ToolErrorKind::NotFound,
                format!("`{name}` does not occur in `{path}`."),
                "Search for it with Symbols and a `query`, or with Grep, and give the file that has it.",
            )),
        },
        count => Err(ToolError::new(
            ToolErrorKind::Mismatch,
            format!("`{name}` is declared {count} times in `{path}`: {}.", listed(&file.text, &places)),
            "Give the `line` of the one that is meant.",
        )),
    }
}

/// The name of a symbol, and that of the declaration around it: `Parser::next()` is `next` in `Parser`.
fn parts(name: &str) -> (Option<&str>, &str) {
    let name = name.trim();
    let name = name.strip_suffix("()").unwrap_or(name);
    let cut = name.rfind(['.', ':', '#']).filter(|at| at + 1 < name.len());
    match cut {
        Some(at) => {
            let around = name[..at].trim_end_matches(':');
            let around = around.rsplit(['.', ':', '#']).next().filter(|around| !around.is_empty());
            (around, &name[at + 1..])
        }
        None => (None, name),
    }
}

/// The declarations of a name, in the declaration around it where that is named and there.
fn declarations<'s>(symbols: &'s [Symbol], around: Option<&str>, name: &str) -> Vec<&'s Symbol> {
    let named: Vec<&Symbol> = symbols.iter().filter(|symbol| bare(&symbol.name) == name).collect();
    let within: Vec<&Symbol> = match around {
        Some(around) => named
            .iter()
            .copied()
            .filter(|symbol| mentions(&symbol.container, around) || mentions(&symbol.name, around))
            .collect(),
        None => Vec::new(),
    };
    if within.is_empty() { named } else { within }
}

/// The name that a symbol has in the text: servers add parameters, or the type around it.
fn bare(name: &str) -> &str {
    let end = name.find(['(', '<', ' ']).filter(|end| *end > 0).unwrap_or(name.len());
    // Go's `(*T).Method`.
    let name = if name.starts_with('(') { name } else { &name[..end] };
    name.rsplit(['.', ':']).next().unwrap_or(name)
}

fn mentions(text: &str, word: &str) -> bool {
    word_in(text, 0..text.len(), word).is_some()
}

/// The word on a line from 1, or on the nearest line close to it.
fn on_line(text: &str, lines: &[Range<usize>], name: &str, line: usize) -> Option<Range<usize>> {
    let at = line.saturating_sub(1);
    let first = at.saturating_sub(NEAR);
    let mut near: Vec<usize> = (first..=at + NEAR).collect();
    near.sort_by_key(|other| other.abs_diff(at));
    near.into_iter().find_map(|line| word_in(text, lines.get(line)?.clone(), name))
}

fn not_on_line(text: &str, lines: &[Range<usize>], (name, path): (&str, &str), line: u32) -> ToolError {
    let places: Vec<Range<usize>> =
        lines.iter().filter_map(|line| word_in(text, line.clone(), name)).collect();
    if places.is_empty() {
        return ToolError::new(
            ToolErrorKind::NotFound,
            format!("`{name}` does not occur in `{path}`."),
            "Search for it with Symbols and a `query`, or with Grep, and give the file that has it.",
        );
    }
    ToolError::new(
        ToolErrorKind::Mismatch,
        format!("`{name}` does not stand near line {line} of `{path}`, but at {}.", listed(text, &places)),
        "Give the `line` of the one that is meant.",
    )
}

fn listed(text: &str, places: &[Range<usize>]) -> String {
    let number = |place: &Range<usize>| (text[..place.start].matches('\n').count() + 1).to_string();
    let lines: Vec<_> = places.iter().take(MAX_LISTED).map(number).collect();
    let more = places.len().saturating_sub(MAX_LISTED);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    format!("lines {}{more}", lines.join(", "))
}

/// The first place of a whole word in a part of a text.
fn word_in(text: &str, within: Range<usize>, word: &str) -> Option<Range<usize>> {
    let is_word = |char: char| char.is_alphanumeric() || char == '_' || char == '$';
    let (starts, ends) = (word.starts_with(is_word), word.ends_with(is_word));
    let part = text.get(within.clone())?;
    part.match_indices(word).find_map(|(at, _)| {
        let (before, after) = (&part[..at], &part[at + word.len()..]);
        let continues = (starts && before.ends_with(is_word)) || (ends && after.starts_with(is_word));
        (!continues).then(|| within.start + at..within.start + at + word.len())
    })
}

fn line_ranges(text: &str) -> Vec<Range<usize>> {
    let mut start = 0;
    text.split_inclusive('\n')
        .map(|line| {
            let range = start..start + line.len();
            start = range.end;
            range
        })
        .collect()
}

/// The plan of a change that a language server has computed.
///
/// # Errors
/// A change of nothing.
pub(crate) fn change_plan(
    title: String,
    summary: String,
    mut touches: Vec<Touch>,
    files: Vec<FileChange>,
) -> Result<CallPlan, ToolError> {
    if files.is_empty() {
        return Err(ToolError::new(
            ToolErrorKind::Failed,
            "The language server changes nothing for this.",
            "Check the name, the line and the new text.",
        ));
    }
    touches.extend(files.iter().map(|file| Touch::Write(file.target.clone())));
    let label = format!("Kode: {title}");
    let change = ChangeSet { label, summary, files, removals: Vec::new(), author: Author::Agent };
    Ok(CallPlan { title, touches, action: CallAction::Change(change) })
}

/// The texts of places, read once each; only what the rules and the workspace let the model read.
pub(crate) struct Texts<'c> {
    context: &'c CallContext,
    known: HashMap<Target, Option<Arc<str>>>,
}

impl<'c> Texts<'c> {
    /// Nothing is read yet.
    pub(crate) fn new(context: &'c CallContext) -> Self {
        Self { context, known: HashMap::new() }
    }

    /// The text of a file; `None` for one outside of the workspace, and for one that rules hide.
    pub(crate) async fn of(&mut self, target: &Target) -> Option<Arc<str>> {
        if let Some(known) = self.known.get(target) {
            return known.clone();
        }
        let workspace = &self.context.workspace;
        let may_read = workspace.contains(target) && (self.context.may_read)(target, Exposure::Content);
        let text = match may_read {
            true => workspace.text(target).await.ok().map(|file| file.text),
            false => None,
        };
        self.known.insert(target.clone(), text.clone());
        text
    }
}

/// The places whose file the rules show to the model.
pub(crate) fn visible(mut places: Vec<Place>, context: &CallContext) -> Vec<Place> {
    places.retain(|place| (context.may_read)(&place.target, Exposure::Name));
    places
}

/// A line of a text, from 1, without indentation and not too long.
pub(crate) fn line_of(text: &str, line: u32) -> String {
    let line = text.lines().nth((line as usize).saturating_sub(1)).unwrap_or_default().trim();
    match line.char_indices().nth(MAX_LINE) {
        Some((cut, _)) => format!("{}…", &line[..cut]),
        None => line.to_owned(),
    }
}

/// The note under a result of a server that has not finished its work; empty where it has.
pub(crate) fn note<T>(answer: &Answer<T>) -> String {
    match &answer.unfinished {
        Some(work) => {
            format!(
                "\n\nThe language server has not finished its work ({work}); the result may be incomplete."
            )
        }
        None => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn symbol(name: &str, container: &str, line: u32) -> Symbol {
        Symbol {
            name: name.to_owned(),
            kind: "method",
            detail: String::new(),
            container: container.to_owned(),
            target: Target::Untitled("untitled:1".to_owned()),
            line,
            last_line: line,
            name_line: line,
            depth: 0,
        }
    }

    #[test]
    fn names_are_taken_in_the_forms_that_models_write() {
        for (written, expected) in [
            ("next", (None, "next")),
            ("next()", (None, "next")),
            ("Parser::next", (Some("Parser"), "next")),
            ("crate::parse::Parser::next()", (Some("Parser"), "next")),
            ("parser.Parser.next", (Some("Parser"), "next")),
            ("Parser#next", (Some("Parser"), "next")),
            (" ", (None, "")),
        ] {
            assert_eq!(parts(written), expected, "{written}");
        }
        for (server, name) in
            [("next(int)", "next"), ("(*Parser).Next", "Next"), ("Parser::next", "next"), ("f<T>", "f")]
        {
            assert_eq!(bare(server), name);
        }
    }

    #[test]
    fn a_declaration_is_chosen_by_the_one_around_it() {
        let symbols =
            [symbol("next", "Lexer", 1), symbol("next", "impl Parser<'a>", 5), symbol("new", "", 9)];
        let lines = |around, name| -> Vec<u32> {
            declarations(&symbols, around, name).iter().map(|symbol| symbol.line).collect()
        };
        assert_eq!(lines(Some("Parser"), "next"), [5]);
        assert_eq!(lines(None, "next"), [1, 5]);
        assert_eq!(lines(Some("Elsewhere"), "new"), [9]);
    }

    #[test]
    fn a_word_is_whole_and_a_line_that_moved_is_found() {
        let text = "let id_x = idx;\nid(id2);\n\nid;\n";
        let lines = line_ranges(text);
        assert_eq!(word_in(text, 0..text.len(), "id"), Some(16..18));
        assert_eq!(word_in(text, 0..text.len(), "=="), None);
        assert_eq!(on_line(text, &lines, "id", 4), Some(26..28));
        assert_eq!(on_line(text, &lines, "id", 3), Some(16..18));
        assert_eq!(on_line(text, &lines, "id", 40), None);
        let error = not_on_line(text, &lines, ("id", "a.rs"), 40);
        assert_eq!(error.message, "`id` does not stand near line 40 of `a.rs`, but at lines 2, 4.");
    }
}
