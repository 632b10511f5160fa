//! From a script's structure to its commands: what runs where, and what wrappers run in their turn.
//!
//! Rule: a folder is called known only where every way that leads to a command leaves it so; what a `cd` might or
//! might not have done makes it unknown.

use std::time::{Duration, Instant};

use super::lexer::RawWord;
use super::reader::{
    Compound, Continuation, RawCommand, Redirect, ScriptNode, ShellScript, is_variable, read,
};
use super::wrappers::{self, InnerCommand};
use super::{
    Analysis, CommandWord, Danger, Effect, FileAccess, FileTouch, MAX_LINE, SimpleCommand, Unknown,
    VariableAssignment, braces, builtins, danger, effects, grammar, touches,
};
use crate::place::WorkingFolder;
use kode_base::paths::AbsPath;

/// How deep scripts may stand inside scripts; deeper ones are read flat.
const MAX_SCRIPTS: usize = 24;
/// How many commands a line may hold.
const MAX_COMMANDS: usize = 1_000;
/// How many parts of a line may be unknown, and how much text they may be together, in bytes.
const MAX_UNKNOWNS: usize = 1_000;
const MAX_UNKNOWN: usize = 1 << 20;
/// How long a line is checked.
const TIME_LIMIT: Duration = Duration::from_secs(1);
/// How many here-documents the second reader is shown.
const MAX_DOCUMENTS: usize = 16;
/// How much text of scripts inside scripts is read, in bytes.
const MAX_INNER: usize = 512 * 1024;

/// Where the shell is after a command that succeeded, and after one that failed.
struct FolderAfter {
    success: WorkingFolder,
    failure: WorkingFolder,
}

impl FolderAfter {
    fn unmoved(place: &WorkingFolder) -> Self {
        Self { success: place.clone(), failure: place.clone() }
    }

    fn either(&self) -> WorkingFolder {
        self.success.or(&self.failure)
    }
}

/// Collects what a line does.
pub(super) struct LineWalker {
    pub analysis: Analysis,
    depth: usize,
    inner: usize,
    /// How much text is unknown, in bytes.
    unknown: usize,
    /// When the check the line began.
    begun: Instant,
    /// Plain values that bare assignments gave to variables, for naming programs.
    variables: Vec<(String, String)>,
    /// The here-documents of the script in hand.
    documents: Vec<String>,
    /// The values of loops in the line.
    values: Vec<String>,
    /// Whether a substitution in the script in hand fetches something.
    fetching: bool,
    /// Whether a `cd` may have led to the root or a home folder.
    strays: bool,
}

/// The wrapper a script or command is in.
#[derive(Clone, Copy)]
struct OuterWrapper {
    wrapped: bool,
    inside: Option<usize>,
}

/// Checks a whole line.
pub(super) fn judge(line: &str, directory: &AbsPath) -> Analysis {
    let mut judge = LineWalker {
        analysis: Analysis::default(),
        depth: 0,
        inner: 0,
        unknown: 0,
        begun: Instant::now(),
        variables: Vec::new(),
        documents: Vec::new(),
        values: Vec::new(),
        fetching: false,
        strays: false,
    };
    let place = WorkingFolder { directory: Some(directory.clone()), by_name: false };
    judge.script(line, &place, OuterWrapper { wrapped: false, inside: None });
    judge.analysis
}

impl LineWalker {
    /// Whether the line is past a bound, so that nothing more is checked: it is refused whole.
    fn is_past_bound(&mut self) -> bool {
        let excess = match &self.analysis {
            Analysis { excess: Some(_), .. } => return true,
            Analysis { commands, .. } if commands.len() > MAX_COMMANDS => {
                format!("it holds more than {MAX_COMMANDS} commands")
            }
            Analysis { unknowns, .. } if unknowns.len() > MAX_UNKNOWNS || self.unknown > MAX_UNKNOWN => {
                "too much of it is not plain shell language".to_owned()
            }
            Analysis { .. } if self.begun.elapsed() > TIME_LIMIT => {
                format!("looking at it takes longer than {} s", TIME_LIMIT.as_secs())
            }
            Analysis { .. } => return false,
        };
        self.analysis.excess = Some(excess);
        true
    }

    fn unknown(&mut self, text: &str, reason: impl Into<String>, opaque: bool) {
        self.unknown += text.len();
        if self.is_past_bound() {
            return;
        }
        let unknown = Unknown { text: text.to_owned(), reason: reason.into(), opaque };
        // The same complaint about the same text says nothing new.
        if self.analysis.unknowns.last() != Some(&unknown) {
            self.analysis.unknowns.push(unknown);
        }
    }

    fn danger(&mut self, text: &str, what: impl Into<String>) {
        self.analysis.dangers.push(Danger { text: text.to_owned(), what: what.into() });
    }

    fn script(&mut self, text: &str, place: &WorkingFolder, outer: OuterWrapper) {
        if self.is_past_bound() {
            return;
        }
        self.inner += text.len();
        let flat;
        let text = if self.depth >= MAX_SCRIPTS || self.inner > MAX_INNER + MAX_LINE {
            self.unknown(text, "the line nests too deep", true);
            if self.depth > MAX_SCRIPTS {
                return;
            }
            flat = text.replace(['`', '(', ')', '"', '\''], ";");
            &flat
        } else {
            text
        };
        self.depth += 1;
        let script = read(text);
        self.problems(text, &script);
        let shadowed = std::mem::replace(&mut self.documents, script.documents.clone());
        self.values.extend(danger::loop_values(text, &script));
        let fetching = std::mem::replace(&mut self.fetching, danger::fetches(&script.scripts));
        self.sequence(text, &script.body, place, outer);
        self.documents = shadowed;
        self.fetching = fetching;
        // Substitutions run where the script does, as long as nothing in it leaves.
        let moves = script.body.iter().any(|(node, _)| changes_directory(node));
        let inner_place = if moves { &WorkingFolder::NOWHERE } else { place };
        for inner in &script.scripts {
            self.script(inner, inner_place, OuterWrapper { wrapped: true, inside: None });
        }
        self.depth -= 1;
    }

    fn problems(&mut self, text: &str, script: &ShellScript) {
        if let Some(bad) = text.chars().find(|c| is_unreadable(*c)) {
            self.unknown(text, format!("it contains the character U+{:04X}", u32::from(bad)), false);
        }
        for problem in &script.problems {
            let part = text.get(problem.start..problem.end).unwrap_or(text);
            self.unknown(part, problem.reason, problem.opaque);
        }
        if text.len() > MAX_LINE || self.inner > MAX_INNER + MAX_LINE {
            self.unknown(text, "the line is too long", true);
            return;
        }
        if self.is_past_bound() {
            return;
        }
        let compared = script.for_comparison(text);
        // The other reader's own code for here-documents is not safe with odd ones: it sees only plain ones.
        let documents = compared.contains("<<");
        if documents
            && (!script.problems.is_empty() || script.documents.len() > MAX_DOCUMENTS || text.contains('\0'))
        {
            self.unknown(text, "here-documents are in a line that cannot be parsed", false);
            return;
        }
        let opinion = grammar::opinion(&compared);
        for (start, end) in &opinion.bombs {
            self.danger(text.get(*start..*end).unwrap_or_default(), "calls itself without end (a fork bomb)");
        }
        if let Some(objection) = opinion.objection {
            self.unknown(text, objection, false);
        } else if !opinion.agrees(&script.spans) {
            self.unknown(text, "two readers of the shell language do not agree on it", false);
        } else {
            return;
        }
        // Commands that only the other reader finds are judged too.
        for (start, end) in opinion.commands {
            if self.is_past_bound() {
                return;
            }
            let seen =
                script.spans.iter().any(|span| span.start <= start && end <= span.end || span.start == start);
            if let (false, Some(part)) = (seen, text.get(start..end))
                && part.len() < text.len()
            {
                self.script(part, &WorkingFolder::NOWHERE, OuterWrapper { wrapped: true, inside: None });
            }
        }
    }

    fn sequence(
        &mut self,
        text: &str,
        body: &[(ScriptNode, Continuation)],
        place: &WorkingFolder,
        outer: OuterWrapper,
    ) -> FolderAfter {
        let mut start = place.clone();
        let mut after = FolderAfter::unmoved(place);
        // Where the next command of an and-or list begins; `None` at the begin of a list.
        let mut chain: Option<Continuation> = None;
        for (node, next) in body {
            let done = match chain {
                None => self.node(text, node, &start, outer),
                Some(Continuation::OnSuccess) => {
                    let done = self.node(text, node, &after.success, outer);
                    FolderAfter { failure: after.failure.or(&done.failure), success: done.success }
                }
                Some(_) => {
                    let done = self.node(text, node, &after.failure, outer);
                    FolderAfter { success: after.success.or(&done.success), failure: done.failure }
                }
            };
            match next {
                Continuation::OnSuccess | Continuation::OnFailure => {
                    chain = Some(*next);
                    after = done;
                    continue;
                }
                Continuation::Background => after = FolderAfter::unmoved(&start),
                Continuation::Always => after = done,
            }
            chain = None;
            start = after.either();
        }
        after
    }

    fn node(
        &mut self,
        text: &str,
        node: &ScriptNode,
        place: &WorkingFolder,
        outer: OuterWrapper,
    ) -> FolderAfter {
        if self.is_past_bound() {
            return FolderAfter::unmoved(place);
        }
        match node {
            ScriptNode::Command(command) => self.command(text, command, place, outer),
            ScriptNode::Pipeline { negated, elements } => {
                let first = self.analysis.commands.len();
                let piped = elements.len() > 1;
                let mut after = FolderAfter::unmoved(place);
                for element in elements {
                    let begin = self.analysis.commands.len();
                    let done = self.node(text, element, place, outer);
                    if !piped {
                        after = done;
                        continue;
                    }
                    for script in danger::echoed(&self.analysis.commands, first, begin) {
                        self.script(
                            &script,
                            &WorkingFolder::NOWHERE,
                            OuterWrapper { wrapped: true, inside: None },
                        );
                    }
                    if begin > first && danger::feeds_a_shell(&self.analysis.commands, first, begin) {
                        let whole = self.analysis.commands[first..].iter().map(|c| c.text.as_str());
                        let whole = whole.collect::<Vec<_>>().join(" | ");
                        self.danger(&whole, "runs what it fetches from the network");
                    }
                }
                if *negated { FolderAfter { success: after.failure, failure: after.success } } else { after }
            }
            ScriptNode::Compound { kind, body, redirects } => {
                let first = self.analysis.commands.len();
                let moving = *kind == Compound::Maybe && body.iter().any(|(node, _)| changes_directory(node));
                let begin = if moving { &WorkingFolder::NOWHERE } else { place };
                let after = self.sequence(text, body, begin, outer);
                let touches = self.redirections(redirects, place);
                match self.analysis.commands.get_mut(first) {
                    Some(command) => command.touches.extend(touches),
                    None if touches.is_empty() => {}
                    None => {
                        self.unknown(text, "a redirection has no command", false);
                        self.redirected(text, touches, place, outer);
                    }
                }
                match kind {
                    Compound::Subshell => FolderAfter::unmoved(place),
                    Compound::Group => after,
                    Compound::Maybe if moving => FolderAfter::unmoved(&WorkingFolder::NOWHERE),
                    Compound::Maybe => FolderAfter::unmoved(place),
                }
            }
        }
    }

    fn redirections(&mut self, redirects: &[Redirect], place: &WorkingFolder) -> Vec<FileTouch> {
        let mut found = Vec::new();
        for redirect in redirects {
            let (access, file) = match redirect {
                Redirect::Read(file) => (FileAccess::Read, file),
                Redirect::Write(file) => (FileAccess::Write, file),
                Redirect::Text | Redirect::Document(_) => continue,
            };
            if crate::place::is_harmless(&file.text) {
                continue;
            }
            if access == FileAccess::Write && danger::is_disk(&file.text) {
                self.danger(&file.source, "writes onto a disk device");
            }
            let path = crate::place::locate(&to_word(file), place);
            found.push(FileTouch { access, path, redirected: true, recursive: false });
        }
        found
    }

    fn command(
        &mut self,
        text: &str,
        raw: &RawCommand,
        place: &WorkingFolder,
        outer: OuterWrapper,
    ) -> FolderAfter {
        let found = self.redirections(&raw.redirects, place);
        let slice = text.get(raw.start..raw.end).unwrap_or_default();
        if raw.words.is_empty() {
            self.bare(slice, raw);
            self.redirected(slice, found, place, outer);
            return FolderAfter::unmoved(place);
        }
        let name = &raw.words[0];
        if name.expands || !name.problems.is_empty() {
            self.unknown(slice, "the name of the program is not plain text", true);
        }
        if raw.words.iter().any(|word| braces::words(&word.source) > braces::MAX_WORDS) {
            let reason = format!("its braces stand for more than {} words", braces::MAX_WORDS);
            self.unknown(slice, reason, false);
        }
        let reported = raw.redirects.iter().any(|redirect| matches!(redirect, Redirect::Text));
        let reads_text = reported && raw.words.iter().any(|word| wrappers::is_shell(&word.text));
        if danger::fetches_a_script(raw) || reads_text && self.fetching {
            self.danger(slice, "runs what it fetches from the network");
        }
        let mut assignments = Vec::new();
        for word in &raw.assignments {
            let Some(assignment) = to_assignment(word) else {
                self.unknown(slice, "the element of an array is set", false);
                continue;
            };
            assignments.push(assignment);
        }
        let documents: Vec<String> = raw
            .redirects
            .iter()
            .filter_map(|redirect| match redirect {
                Redirect::Document(document) => self.documents.get(*document).cloned(),
                Redirect::Read(_) | Redirect::Write(_) | Redirect::Text => None,
            })
            .collect();
        for word in raw.words.iter().skip(1) {
            self.substitutions(word, place);
        }
        let mut argv: Vec<CommandWord> = raw.words.iter().map(to_word).collect();
        self.resolve_name(name, &mut argv, slice, place);
        let simple = PendingCommand { argv, assignments, text: slice.to_owned(), touches: found, documents };
        self.simple(simple, place, outer)
    }

    /// Judges what the plain substitutions in an argument run: only commands that look are no matter.
    fn substitutions(&mut self, word: &RawWord, place: &WorkingFolder) {
        if word.plain.len() != word.scripts.len() {
            return;
        }
        for plain in &word.plain {
            let first = self.analysis.commands.len();
            self.script(&plain.script, place, OuterWrapper { wrapped: true, inside: None });
            let found = self.analysis.commands.get(first..);
            if !found.is_some_and(|found| found.iter().all(only_looks)) {
                self.unknown(&word.source, super::lexer::SUBSTITUTION, false);
            }
        }
    }

    /// The value of a variable set earlier in the line is judged as well.
    fn resolve_name(&mut self, name: &RawWord, argv: &mut [CommandWord], slice: &str, place: &WorkingFolder) {
        let variable = name.text.trim_start_matches('$').trim_matches(['{', '}', '"']);
        let value = self.variables.iter().rev().find(|(set, _)| name.expands && set == variable);
        if let Some((_, value)) = value.cloned() {
            let rest: Vec<&str> = argv.iter().skip(1).map(|word| word.text.as_str()).collect();
            let line = format!("{value} {}", rest.join(" "));
            self.unknown(slice, "the name of the program is not plain text", true);
            if self.depth < MAX_SCRIPTS {
                self.script(&line, place, OuterWrapper { wrapped: true, inside: None });
            }
        }
    }

    /// Redirections and assignments without a command.
    fn bare(&mut self, slice: &str, raw: &RawCommand) {
        if !raw.redirects.is_empty() {
            self.unknown(slice, "a redirection has no command", false);
        }
        if !raw.assignments.is_empty() {
            self.unknown(slice, "a variable is set for later commands", false);
        }
        for word in &raw.assignments {
            if let Some(assignment) = to_assignment(word) {
                self.values.push(assignment.value.text.clone());
                self.variables.push((assignment.name, assignment.value.text));
            }
        }
    }

    /// The effect of redirections without a command, as of `:`.
    fn redirected(
        &mut self,
        text: &str,
        touches: Vec<FileTouch>,
        place: &WorkingFolder,
        outer: OuterWrapper,
    ) {
        if touches.is_empty() {
            return;
        }
        self.analysis.commands.push(SimpleCommand {
            argv: vec![CommandWord::literal(":")],
            assignments: Vec::new(),
            text: if text.is_empty() { ":".to_owned() } else { text.to_owned() },
            directory: place.directory.clone(),
            touches,
            effect: Effect::ReadOnly,
            wrapped: outer.wrapped,
            inside: outer.inside,
            prefix_covered: false,
        });
    }

    fn simple(&mut self, pending: PendingCommand, place: &WorkingFolder, outer: OuterWrapper) -> FolderAfter {
        let PendingCommand { argv, assignments, text, touches: mut found, documents } = pending;
        if let Some(reason) = builtins::objection(&argv) {
            self.unknown(&text, reason, builtins::is_opaque(&argv));
        }
        found.extend(touches::by_operands(&argv, place));
        let wrapped = wrappers::look_through(&argv, &assignments, &documents);
        let judged = effects::judge(&argv, &assignments, place, &wrapped);
        self.strays |= danger::strays(&argv, place);
        let around = danger::LineContext { strays: self.strays, values: &self.values };
        for what in danger::of_command(&argv, &found, place, &around) {
            self.danger(&text, what);
        }
        let place_in_list = self.analysis.commands.len();
        let after = match &judged.effect {
            Effect::ChangeDirectory(_) if outer.wrapped => {
                self.unknown(&text, "a wrapper changes the folder", false);
                FolderAfter::unmoved(&WorkingFolder::NOWHERE)
            }
            Effect::ChangeDirectory(_) => {
                FolderAfter { success: crate::place::destination(&argv, place), failure: place.clone() }
            }
            Effect::ReadOnly | Effect::ReadOnlyGit | Effect::FileEdit | Effect::Other => {
                FolderAfter::unmoved(place)
            }
        };
        let directory = super::git::directory(&argv, place);
        self.analysis.commands.push(SimpleCommand {
            argv,
            assignments,
            text: text.clone(),
            directory,
            touches: found,
            effect: judged.effect,
            wrapped: outer.wrapped,
            inside: outer.inside,
            prefix_covered: judged.prefix_covered,
        });
        let inner_place = if wrapped.keeps_directory { place } else { &WorkingFolder::NOWHERE };
        let outer = OuterWrapper { wrapped: true, inside: Some(place_in_list) };
        let mut moved = false;
        for inner in wrapped.inner {
            match inner {
                InnerCommand::Command { assignments, argv } => {
                    moved |= argv
                        .first()
                        .is_some_and(|name| matches!(name.text.as_str(), "cd" | "pushd" | "popd"));
                    self.inner_command(assignments, argv, inner_place, outer);
                }
                InnerCommand::Script(script) => self.script(&script, inner_place, outer),
                InnerCommand::Anything(reason) => self.unknown(&text, reason, true),
            }
        }
        let inner = self.analysis.commands.get(place_in_list + 1..).unwrap_or_default();
        if wrapped.runs_script && !inner.is_empty() && inner.iter().all(only_looks) {
            self.analysis.commands[place_in_list].effect = Effect::ReadOnly;
        }
        if moved { FolderAfter::unmoved(&WorkingFolder::NOWHERE) } else { after }
    }

    fn inner_command(
        &mut self,
        assignments: Vec<VariableAssignment>,
        argv: Vec<CommandWord>,
        place: &WorkingFolder,
        outer: OuterWrapper,
    ) {
        let text = argv.iter().map(|word| word.text.as_str()).collect::<Vec<_>>().join(" ");
        if self.depth >= MAX_SCRIPTS {
            self.unknown(&text, "the line nests too deep", true);
            return;
        }
        let Some(name) = argv.first() else { return };
        if !name.literal {
            self.unknown(&text, "the name of the program is not plain text", true);
        }
        self.depth += 1;
        let pending = PendingCommand { argv, assignments, text, touches: Vec::new(), documents: Vec::new() };
        let _ = self.simple(pending, place, outer);
        self.depth -= 1;
    }
}

/// A command before it is judged.
struct PendingCommand {
    argv: Vec<CommandWord>,
    assignments: Vec<VariableAssignment>,
    text: String,
    touches: Vec<FileTouch>,
    documents: Vec<String>,
}

fn only_looks(command: &SimpleCommand) -> bool {
    match command.effect {
        Effect::ReadOnly | Effect::ReadOnlyGit => true,
        Effect::FileEdit | Effect::ChangeDirectory(_) | Effect::Other => false,
    }
}

fn to_word(raw: &RawWord) -> CommandWord {
    let literal = !raw.expands && raw.problems.is_empty();
    let text = if literal { &raw.text } else { &raw.source };
    // Words that cannot be judged keep their known part, for the rules that refuse.
    let text = if raw.problems.is_empty() || raw.text.is_empty() { text } else { &raw.text };
    CommandWord { text: text.clone(), literal, open: !literal && (raw.open || !raw.problems.is_empty()) }
}

fn to_assignment(raw: &RawWord) -> Option<VariableAssignment> {
    let (name, value) = raw.text.split_once('=')?;
    let name = name.strip_suffix('+').unwrap_or(name);
    let literal = !raw.expands && raw.problems.is_empty();
    let value = CommandWord { text: value.to_owned(), literal, open: false };
    is_variable(name).then(|| VariableAssignment { name: name.to_owned(), value })
}

fn changes_directory(node: &ScriptNode) -> bool {
    match node {
        ScriptNode::Command(command) => {
            command.words.iter().any(|word| matches!(word.text.as_str(), "cd" | "pushd" | "popd"))
        }
        ScriptNode::Pipeline { elements, .. } => elements.iter().any(changes_directory),
        ScriptNode::Compound { body, .. } => body.iter().any(|(node, _)| changes_directory(node)),
    }
}

/// Characters that a shell, a terminal or a person could take for something else.
fn is_unreadable(c: char) -> bool {
    (c.is_control() && c != '\n' && c != '\t')
        || (!c.is_ascii() && c.is_whitespace())
        || matches!(c, '\u{ad}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}')
}
