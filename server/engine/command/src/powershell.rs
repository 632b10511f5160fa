//! From the syntax of a PowerShell command to the commands that it runs and the files that they touch.
//!
//! Rule: PowerShell's own parser gives the tree; lists of harmless nodes and commands decide here. A node that is not listed, and a
//! command without a syntax, is an unknown. Commands in blocks, strings and sub-expressions are listed like
//! all others.

mod cmdlets;
#[cfg(test)]
mod tests;

use kode_base::path_style::PathStyle;
use kode_base::paths::AbsPath;
use kode_base::powershell::{SyntaxNode, SyntaxReading};

use crate::place::WorkingFolder;
use crate::wrappers::WrapperUse;
use crate::{
    Analysis, CommandWord, Danger, Effect, FileAccess, FileTouch, SimpleCommand, TouchedPath, Unknown,
    danger, effects, risks, touches,
};
use cmdlets::{ArgumentUse, COMMON, Cmdlet, CmdletEffect, PipelineUse, SHORT};

/// Programs whose arguments are commands: a rule for a prefix does not cover them.
const RUNNERS: [&str; 16] = [
    "cmd",
    "powershell",
    "pwsh",
    "wsl",
    "bash",
    "sh",
    "start",
    "rundll32",
    "regsvr32",
    "mshta",
    "wscript",
    "cscript",
    "msiexec",
    "schtasks",
    "wmic",
    "forfiles",
];
/// Programs that the facts about bash hold for on every system.
const EVERYWHERE: [&str; 24] = [
    "git", "rg", "jq", "cargo", "rustc", "rustup", "node", "npm", "npx", "yarn", "pnpm", "bun", "deno",
    "tsc", "python", "python3", "pip", "pip3", "uv", "go", "java", "javac", "docker", "kubectl",
];
/// Programs of Unix that only look, and are commands of neither shell there.
const ON_UNIX: [&str; 15] = [
    "ls", "cat", "head", "tail", "wc", "grep", "find", "stat", "du", "df", "cut", "uniq", "basename",
    "dirname", "realpath",
];
/// Operators in front of a value that change nothing.
const HARMLESS_OPERATORS: [&str; 8] = ["Not", "Exclaim", "Minus", "Plus", "Csplit", "Isplit", "Join", "Bnot"];
/// Name spaces of variables that hold no files, functions or settings of the machine.
const NAME_SPACES: [&str; 5] = ["env", "global", "local", "script", "private"];

/// Says what a command would do that starts in `directory` (links resolved). `reading` is how PowerShell's parser reads it.
#[must_use]
pub fn analyse(line: &str, directory: &AbsPath, reading: &SyntaxReading) -> Analysis {
    analyse_in(line, directory, reading, PathStyle::HERE)
}

fn analyse_in(line: &str, directory: &AbsPath, reading: &SyntaxReading, style: PathStyle) -> Analysis {
    let place = WorkingFolder { directory: Some(directory.clone()), by_name: false };
    let mut analysis = Analysis::default();
    // A name that PowerShell's tree does not show, such as one in a text that is run later, is found by text alone.
    for what in danger::of_powershell(line) {
        analysis.dangers.push(Danger { text: line.to_owned(), what });
    }
    let nodes = match &reading.nodes {
        Ok(nodes) => nodes,
        Err(reason) => {
            let unknown = Unknown { text: line.to_owned(), reason: reason.clone(), opaque: true };
            analysis.unknowns.push(unknown);
            return analysis;
        }
    };
    let mut children = vec![Vec::new(); nodes.len()];
    for (at, node) in nodes.iter().enumerate() {
        if let Some(of_parent) = node.parent.and_then(|parent| children.get_mut(parent)) {
            of_parent.push(at);
        }
    }
    let mut walker = TreeWalker { line, nodes, children, style, place, flow: Flow::Nothing, analysis };
    walker.visit(0);
    if walker.analysis.commands.is_empty() && walker.analysis.unknowns.is_empty() {
        walker.analysis.commands.push(SimpleCommand {
            argv: vec![CommandWord::literal("Write-Output")],
            text: line.trim().to_owned(),
            effect: Effect::ReadOnly,
            ..walker.empty()
        });
    }
    walker.analysis
}

/// The input that a command gets through a pipeline.
#[derive(Clone)]
enum Flow {
    /// There is no command before.
    Nothing,
    /// Files that are listed.
    Files(Vec<TouchedPath>),
    /// Text, which a command that takes paths would take for paths.
    Text,
    /// Anything.
    Unknown,
}

/// An argument of a command.
struct Argument<'a> {
    /// The parameter in front of it, if there is one.
    parameter: Option<&'a str>,
    /// Its node, which a parameter alone does not have.
    value: Option<usize>,
}

struct TreeWalker<'a> {
    line: &'a str,
    nodes: &'a [SyntaxNode],
    children: Vec<Vec<usize>>,
    style: PathStyle,
    place: WorkingFolder,
    flow: Flow,
    analysis: Analysis,
}

impl<'a> TreeWalker<'a> {
    fn node(&self, at: usize) -> &'a SyntaxNode {
        &self.nodes[at]
    }

    fn kind(&self, at: usize) -> &'a str {
        self.node(at).kind.as_str()
    }

    fn text(&self, at: usize) -> &'a str {
        let node = self.node(at);
        self.line.get(node.start..node.end).unwrap_or(self.line)
    }

    fn unknown(&mut self, at: usize, reason: impl Into<String>, opaque: bool) {
        let unknown = Unknown { text: self.text(at).to_owned(), reason: reason.into(), opaque };
        if self.analysis.unknowns.last() != Some(&unknown) {
            self.analysis.unknowns.push(unknown);
        }
    }

    fn visit_children(&mut self, at: usize) {
        for child in self.children[at].clone() {
            self.visit(child);
        }
    }

    fn visit(&mut self, at: usize) {
        let node = self.node(at);
        match node.kind.as_str() {
            "PipelineAst" if node.form.is_empty() => return self.pipeline(at),
            "CommandAst" => return self.command(at),
            "FileRedirectionAst" => return self.bare_redirection(at),
            "NamedBlockAst" | "PipelineChainAst" if node.form.is_empty() => {}
            "ScriptBlockAst"
            | "StatementBlockAst"
            | "CommandExpressionAst"
            | "ParenExpressionAst"
            | "SubExpressionAst"
            | "ArrayExpressionAst"
            | "ArrayLiteralAst"
            | "ExpandableStringExpressionAst"
            | "BinaryExpressionAst"
            | "IndexExpressionAst"
            | "ScriptBlockExpressionAst"
            | "StringConstantExpressionAst"
            | "ConstantExpressionAst"
            | "MergingRedirectionAst" => {}
            "UnaryExpressionAst" if HARMLESS_OPERATORS.contains(&node.form.as_str()) => {}
            "MemberExpressionAst" if node.form.is_empty() => {}
            "VariableExpressionAst" => {
                let space = node.value.split_once(':').map(|(space, _)| space);
                if space
                    .is_some_and(|space| !NAME_SPACES.iter().any(|known| space.eq_ignore_ascii_case(known)))
                {
                    self.unknown(at, "the variable is a file, a function or a setting", false);
                } else if node.value.contains(['/', '\\']) {
                    self.unknown(at, "the variable may be a file", false);
                } else if !node.form.is_empty() {
                    self.unknown(at, "its arguments are in a variable", false);
                }
            }
            "InvokeMemberExpressionAst" | "BaseCtorInvokeMemberExpressionAst" => {
                self.unknown(at, "it calls a method", true);
            }
            "MemberExpressionAst"
            | "TypeExpressionAst"
            | "ConvertExpressionAst"
            | "AttributedExpressionAst" => {
                self.unknown(at, "it uses a type of .NET", true);
            }
            "AssignmentStatementAst" => self.unknown(at, "it sets a variable", true),
            "FunctionDefinitionAst" => self.unknown(at, "it defines a function", true),
            "PipelineAst" | "PipelineChainAst" => self.unknown(at, "it runs in the background", false),
            kind => {
                let kind = kind.strip_suffix("Ast").unwrap_or(kind);
                self.unknown(at, format!("it holds what is not judged ({kind})"), true);
            }
        }
        self.visit_children(at);
    }

    fn pipeline(&mut self, at: usize) {
        let outer = std::mem::replace(&mut self.flow, Flow::Nothing);
        for element in self.children[at].clone() {
            self.visit(element);
            if self.kind(element) != "CommandAst" {
                self.flow = Flow::Text;
            }
        }
        self.flow = outer;
    }

    /// A redirection of a value, which no command carries.
    fn bare_redirection(&mut self, at: usize) {
        let touches: Vec<_> = self.redirection(at).into_iter().collect();
        if !touches.is_empty() {
            let argv = vec![CommandWord::literal("Write-Output")];
            let text = self.text(at).to_owned();
            let command = SimpleCommand { argv, text, touches, effect: Effect::ReadOnly, ..self.empty() };
            self.analysis.commands.push(command);
        }
        self.visit_children(at);
    }

    fn redirection(&self, at: usize) -> Option<FileTouch> {
        let target = *self.children[at].first()?;
        let is_null = self.kind(target) == "VariableExpressionAst"
            && self.node(target).value.eq_ignore_ascii_case("null");
        let path = match self.constants(target).as_deref() {
            _ if is_null => return None,
            Some([path]) => self.locate(path, true),
            _ => TouchedPath::Unknown(self.text(target).to_owned()),
        };
        Some(FileTouch { access: FileAccess::Write, path, redirected: true, recursive: false })
    }

    /// A command without anything.
    fn empty(&self) -> SimpleCommand {
        SimpleCommand {
            argv: Vec::new(),
            assignments: Vec::new(),
            text: String::new(),
            directory: self.place.directory.clone(),
            touches: Vec::new(),
            effect: Effect::Other,
            wrapped: false,
            inside: None,
            prefix_covered: true,
        }
    }

    fn command(&mut self, at: usize) {
        let node = self.node(at);
        let is_redirection = |child: &usize| self.kind(*child).ends_with("RedirectionAst");
        let (redirections, elements): (Vec<usize>, Vec<usize>) =
            self.children[at].iter().partition(|child| is_redirection(child));
        let redirected: Vec<FileTouch> = redirections
            .iter()
            .filter(|child| self.kind(**child) == "FileRedirectionAst")
            .filter_map(|child| self.redirection(*child))
            .collect();
        let Some((name, rest)) = elements.split_first() else {
            self.unknown(at, "it has no name", true);
            return;
        };
        // Commands in arguments run before the command itself, and take nothing from its pipeline.
        let flow = std::mem::replace(&mut self.flow, Flow::Nothing);
        for child in elements.iter().chain(&redirections) {
            match self.kind(*child) {
                "FileRedirectionAst" | "CommandParameterAst" => self.visit_children(*child),
                _ => self.visit(*child),
            }
        }
        let mut command = SimpleCommand { text: self.text(at).to_owned(), ..self.empty() };
        let names_program = self.kind(*name) == "StringConstantExpressionAst";
        if !names_program {
            self.unknown(at, "the name of the command is not plain text", true);
        }
        if node.form == "Dot" {
            self.unknown(at, "it runs a script in this shell", false);
        }
        let written = if names_program { self.node(*name).value.as_str() } else { self.text(*name) };
        let cmdlet =
            cmdlets::find(unqualified(written), self.style == PathStyle::Windows).filter(|_| names_program);
        let is_qualified = unqualified(written) != written;
        let shown = cmdlet.map_or(written, |cmdlet| cmdlet.name);
        command.argv.push(CommandWord { text: shown.to_owned(), literal: names_program, open: false });
        command.argv.extend(rest.iter().flat_map(|element| self.words(*element)));
        if is_qualified && cmdlet.is_some() {
            // It may be a script of that name in a folder, which a rule that allows the command does not mean.
            self.analysis.commands.push(command.clone());
            command.argv[0].text = written.to_owned();
        }
        let arguments = self.arguments(rest);
        let (effect, flow) = match cmdlet {
            Some(cmdlet) => {
                let (mut effect, flow) = self.cmdlet(cmdlet, &arguments, flow, &mut command.touches);
                if is_qualified && effect != Effect::Other {
                    effect = Effect::Other;
                }
                command.prefix_covered = cmdlet.effect != CmdletEffect::Runs;
                (effect, flow)
            }
            None => (self.program(at, &mut command), Flow::Text),
        };
        command.prefix_covered &= node.form != "Dot" && names_program;
        for what in self.dangers(&command) {
            self.analysis.dangers.push(Danger { text: command.text.clone(), what });
        }
        if let Effect::ChangeDirectory(_) = effect {
            // Whether it succeeds is not known, and so neither where the commands after it run.
            self.place = WorkingFolder::NOWHERE;
        }
        if cmdlet.is_some_and(|cmdlet| cmdlet.name == "Invoke-Expression") {
            self.unknown(at, "it runs a text", true);
        }
        command.effect = effect;
        command.touches.extend(redirected);
        self.analysis.commands.push(command);
        self.flow = flow;
    }

    fn dangers(&self, command: &SimpleCommand) -> Vec<String> {
        let around = danger::LineContext { strays: false, values: &[] };
        let mut found = danger::of_command(&command.argv, &command.touches, &self.place, &around);
        if found.is_empty() && command.argv.first().is_some_and(|name| name.text == "Remove-Item") {
            // The same in the words of the program of Unix.
            let is_recursive = command.argv.iter().any(|word| is_parameter(&word.text, "recurse", 1));
            let operands = command.argv.iter().skip(1).filter(|word| !word.text.starts_with('-'));
            let mut argv = vec![CommandWord::literal("rm"), CommandWord::literal("-rf")];
            argv.extend(operands.cloned());
            if is_recursive {
                found = danger::of_command(&argv, &[], &self.place, &around);
            }
        }
        found
    }

    /// The words of an element, as rules see them.
    fn words(&self, at: usize) -> Vec<CommandWord> {
        let node = self.node(at);
        let is_glob = |text: &str| self.style == PathStyle::Unix && text.contains(['*', '?', '[', '~']);
        match node.kind.as_str() {
            "CommandParameterAst" => {
                let mut words = vec![CommandWord::literal(format!("-{}", node.value))];
                words.extend(self.children[at].iter().flat_map(|value| self.words(*value)));
                words
            }
            "StringConstantExpressionAst" if node.form != "BareWord" || !is_glob(&node.value) => {
                vec![CommandWord::literal(node.value.clone())]
            }
            "ConstantExpressionAst" => vec![CommandWord::literal(self.text(at))],
            _ => vec![CommandWord { text: self.text(at).to_owned(), literal: false, open: true }],
        }
    }

    fn arguments(&self, elements: &[usize]) -> Vec<Argument<'a>> {
        let mut arguments: Vec<Argument<'a>> = Vec::new();
        for element in elements {
            if self.kind(*element) == "CommandParameterAst" {
                let value = self.children[*element].first().copied();
                arguments.push(Argument { parameter: Some(self.node(*element).value.as_str()), value });
            } else {
                arguments.push(Argument { parameter: None, value: Some(*element) });
            }
        }
        arguments
    }

    /// The effect and the touches of a command that is known, and what it gives to the next one.
    fn cmdlet(
        &self,
        cmdlet: &Cmdlet,
        arguments: &[Argument<'_>],
        flow: Flow,
        touches: &mut Vec<FileTouch>,
    ) -> (Effect, Flow) {
        let mut is_understood = true;
        let mut positional = cmdlet.positional.iter();
        let mut last = None;
        let mut recursive = false;
        let mut destination = WorkingFolder::NOWHERE;
        let mut at = 0;
        while let Some(argument) = arguments.get(at) {
            at += 1;
            let (usage, value) = match argument.parameter {
                Some(name) => {
                    let Some((parameter, usage)) = parameter(cmdlet, name) else {
                        is_understood = false;
                        continue;
                    };
                    recursive |= parameter == "Recurse";
                    if usage == ArgumentUse::Switch {
                        continue;
                    }
                    let next = || arguments.get(at).filter(|next| next.parameter.is_none());
                    let value = argument.value.or_else(|| next().and_then(|next| next.value));
                    at += usize::from(argument.value.is_none() && value.is_some());
                    (usage, value)
                }
                None => {
                    let next = positional.next().or(if cmdlet.repeats { last } else { None });
                    last = next;
                    let Some(usage) = next else {
                        is_understood = false;
                        continue;
                    };
                    (*usage, argument.value)
                }
            };
            let Some(value) = value else {
                is_understood = false;
                continue;
            };
            if usage == ArgumentUse::Block {
                is_understood &= self.kind(value) == "ScriptBlockExpressionAst";
            }
            let found = self.touched(value, usage);
            if let (CmdletEffect::Moves, [FileTouch { path: TouchedPath::Known(path), .. }]) =
                (cmdlet.effect, found.as_slice())
            {
                destination = WorkingFolder { directory: Some(path.clone()), by_name: true };
            }
            touches.extend(found);
        }
        let flow = self.piped(cmdlet, flow, recursive, touches);
        for touch in &mut *touches {
            touch.recursive |= recursive;
        }
        if cmdlet.effect == CmdletEffect::Moves {
            touches.clear();
        }
        let effect = match cmdlet.effect {
            _ if !is_understood => Effect::Other,
            CmdletEffect::Looks => Effect::ReadOnly,
            CmdletEffect::Edits => Effect::FileEdit,
            CmdletEffect::Moves => Effect::ChangeDirectory(destination.directory),
            CmdletEffect::Other | CmdletEffect::Runs => Effect::Other,
        };
        (effect, flow)
    }

    /// Adds the touches of the command's piped input, and gives the input of the next command.
    fn piped(&self, cmdlet: &Cmdlet, flow: Flow, recursive: bool, touches: &mut Vec<FileTouch>) -> Flow {
        let has_paths = !touches.is_empty();
        let unknown = || TouchedPath::Unknown("$input".to_owned());
        let (paths, is_listed) = match (cmdlet.pipeline, flow) {
            (PipelineUse::Values, _) => return Flow::Unknown,
            (PipelineUse::Passes, flow) => return flow,
            (_, Flow::Nothing) if has_paths => (Vec::new(), false),
            (PipelineUse::Lists, Flow::Nothing) if !has_paths && cmdlet.effect == CmdletEffect::Looks => {
                (vec![self.locate(".", true)], false)
            }
            (_, Flow::Nothing) => (Vec::new(), false),
            (PipelineUse::Searches, Flow::Text) => (Vec::new(), false),
            (_, Flow::Files(files)) => (files, true),
            (_, Flow::Text | Flow::Unknown) => (vec![unknown()], false),
        };
        let access =
            if cmdlet.pipeline == PipelineUse::Writes { FileAccess::Write } else { FileAccess::Read };
        let recursive = recursive || is_listed && cmdlet.pipeline != PipelineUse::Lists;
        touches.extend(paths.into_iter().map(|path| FileTouch {
            access,
            path,
            redirected: false,
            recursive,
        }));
        match cmdlet.pipeline {
            PipelineUse::Lists => Flow::Files(touches.iter().map(|touch| touch.path.clone()).collect()),
            PipelineUse::Reads | PipelineUse::Searches => Flow::Text,
            PipelineUse::Writes | PipelineUse::Values | PipelineUse::Passes => Flow::Unknown,
        }
    }

    /// The files that an argument names.
    fn touched(&self, value: usize, usage: ArgumentUse) -> Vec<FileTouch> {
        let (access, is_literal) = match usage {
            ArgumentUse::Read => (FileAccess::Read, false),
            ArgumentUse::ReadLiteral => (FileAccess::Read, true),
            ArgumentUse::Write => (FileAccess::Write, false),
            ArgumentUse::WriteLiteral => (FileAccess::Write, true),
            ArgumentUse::Text | ArgumentUse::Block | ArgumentUse::Switch => return Vec::new(),
        };
        let touch = |path| FileTouch { access, path, redirected: false, recursive: false };
        match self.constants(value) {
            Some(paths) => paths.iter().map(|path| touch(self.locate(path, is_literal))).collect(),
            None => vec![touch(TouchedPath::Unknown(self.text(value).to_owned()))],
        }
    }

    /// The texts of a constant, or of a list of them.
    fn constants(&self, at: usize) -> Option<Vec<&'a str>> {
        match self.kind(at) {
            "StringConstantExpressionAst" => Some(vec![self.node(at).value.as_str()]),
            "ConstantExpressionAst" => Some(vec![self.text(at)]),
            "ArrayLiteralAst" => {
                let texts = self.children[at].iter().map(|child| match self.kind(*child) {
                    "ArrayLiteralAst" => None,
                    _ => self.constants(*child),
                });
                texts.collect::<Option<Vec<_>>>().map(|texts| texts.concat())
            }
            _ => None,
        }
    }

    /// The file that a path of PowerShell means: both slashes separate on every system, and a name before a colon is a drive, which
    /// can be that of the registry or of variables.
    fn locate(&self, path: &str, is_literal: bool) -> TouchedPath {
        let unknown = || TouchedPath::Unknown(path.to_owned());
        let is_windows = self.style == PathStyle::Windows;
        let (drive, rest) = match path.split_once(':') {
            Some((drive, rest)) if is_windows && drive.len() == 1 && !rest.contains(':') => {
                (Some(drive), rest)
            }
            Some(_) => return unknown(),
            None => (None, path),
        };
        let text = rest.replace('\\', "/");
        let is_open = !is_literal && text.contains(['*', '?', '[']) || text.contains(['`', '\0']);
        // Windows opens `a` by the name `a.` too.
        let has_end = |name: &str| name.ends_with(['.', ' ']) && !matches!(name, "." | "..");
        if is_open
            || text.is_empty()
            || text.starts_with(['~', '-', '+'])
            || is_windows && text.split('/').any(has_end)
        {
            return unknown();
        }
        let is_rooted = text.starts_with('/');
        let absolute = match drive {
            Some(drive) if is_rooted => format!("{drive}:{text}"),
            // It depends on the folder of that drive.
            Some(_) => return unknown(),
            None if is_rooted && is_windows || text.starts_with("//") => return unknown(),
            None => text,
        };
        if is_rooted && AbsPath::new(&absolute).is_err() {
            return unknown();
        }
        let word = CommandWord::literal(absolute);
        crate::place::known(&word, &self.place).unwrap_or_else(unknown)
    }

    /// The effect and the touches of a program that does not belong to PowerShell.
    fn program(&mut self, at: usize, command: &mut SimpleCommand) -> Effect {
        let (name, arguments) = match command.argv.split_first() {
            Some((name, arguments)) if name.literal => (name.text.clone(), arguments),
            _ => return Effect::Other,
        };
        if arguments.iter().any(|word| word.text == "--%") {
            self.unknown(at, "what follows `--%` is not PowerShell", true);
        }
        let program = self.style.program_name(&name).to_ascii_lowercase();
        let lists: [&[&str]; 2] = [&EVERYWHERE, if self.style == PathStyle::Unix { &ON_UNIX } else { &[] }];
        let is_known = lists.iter().any(|list| list.contains(&program.as_str()));
        command.prefix_covered = !RUNNERS.contains(&program.as_str()) && !risks::is_risky(&command.argv);
        // Windows PowerShell hands an argument with a quote in it over as several.
        let is_split = command.argv.iter().any(|word| word.text.contains('"'));
        if !is_known || is_split || name.contains(['/', '\\']) {
            return Effect::Other;
        }
        let mut argv = command.argv.clone();
        argv[0].text = program;
        command.touches.extend(touches::by_operands(&argv, &self.place));
        command.directory = crate::git::directory(&argv, &self.place);
        let alone = WrapperUse::nothing();
        let judged = effects::judge(&argv, &[], &self.place, &alone);
        command.prefix_covered &= judged.prefix_covered;
        judged.effect
    }
}

/// The parameter of a command that a name means, whole or in its beginning, and the use of its argument.
fn parameter(cmdlet: &Cmdlet, name: &str) -> Option<(&'static str, ArgumentUse)> {
    let all = || cmdlet.parameters.iter().chain(&COMMON);
    let exactly = |name: &str| all().find(|(known, _)| known.eq_ignore_ascii_case(name)).copied();
    let short = || SHORT.iter().find(|(short, _)| short.eq_ignore_ascii_case(name));
    if let Some(found) = exactly(name).or_else(|| short().and_then(|(_, full)| exactly(full))) {
        return Some(found);
    }
    let mut begun = all().filter(|(known, _)| is_parameter(&format!("-{name}"), known, 1));
    let found = begun.next().copied();
    found.filter(|_| begun.next().is_none())
}

/// Whether a word is a parameter, shortened to this many letters or more.
fn is_parameter(word: &str, parameter: &str, least: usize) -> bool {
    word.strip_prefix('-').is_some_and(|name| {
        name.len() >= least
            && parameter.get(..name.len()).is_some_and(|start| start.eq_ignore_ascii_case(name))
    })
}

/// The name of a command without the module in front of it.
fn unqualified(name: &str) -> &str {
    match name.rsplit_once('\\') {
        Some((module, name)) if !module.contains(['\\', '/', ':']) && name.contains('-') => name,
        _ => name,
    }
}

/// The name that a rule for a command means: an alias means its command, in its usual letter case.
pub(crate) fn canonical(name: &str) -> Option<&'static str> {
    cmdlets::find(name, PathStyle::HERE == PathStyle::Windows).map(|cmdlet| cmdlet.name)
}
