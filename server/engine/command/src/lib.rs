//! Static analysis of shell command lines: the programs they run and the files they touch.
//!
//! Rule: only fully understood commands are called known; everything else is an unknown with its
//! reason, and an unknown never makes a call more permissive. A line past a bound is refused whole, so that no bound makes
//! a rule or the floor see less.
//!
//! Must not know: permission rules, decisions, the files on the disk.
//! Used by: permission, config, agent, engine.

#![cfg_attr(test, allow(clippy::disallowed_methods, reason = "tests write files and start programs"))]

pub mod pattern;
pub mod powershell;
pub mod propose;

mod braces;
mod builtins;
mod danger;
mod effects;
mod git;
mod grammar;
mod lexer;
mod options;
mod programs;
mod reader;
mod risks;
mod script;
mod touches;
mod walk;
mod warnings;
mod wrappers;

use kode_base::call::CommandLanguage;
use kode_base::paths::AbsPath;

pub use git::PrintedContents;
pub use pattern::{BadPattern, CommandPattern};
pub use propose::propose;
pub use warnings::warnings;

/// The longest line, in bytes, that can count as understood.
pub const MAX_LINE: usize = 64 * 1024;

/// The effects of a command line.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Analysis {
    /// Every simple command that can run, in source order; a wrapper precedes what it runs.
    pub commands: Vec<SimpleCommand>,
    /// Why more could happen than `commands` tells; empty when the line is literal through and through.
    pub unknowns: Vec<Unknown>,
    /// Commands no mode runs.
    pub dangers: Vec<Danger>,
    /// Why the line is too much to be judged, if it is; the list is incomplete then. For people; without a final
    /// period.
    pub excess: Option<String>,
}

/// A part of the line that cannot be judged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unknown {
    /// The part unchanged in the line.
    pub text: String,
    /// The problem, for people; without a final period.
    pub reason: String,
    /// Whether the text does not even name what could run, so that every deny rule may concern it.
    pub opaque: bool,
}

/// A command that no mode runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Danger {
    /// The command unchanged in the line.
    pub text: String,
    /// Its effect, for people; without a final period.
    pub what: String,
}

/// One program or builtin with its arguments.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SimpleCommand {
    /// The program and its arguments; never empty.
    pub argv: Vec<CommandWord>,
    /// Variables set for this command alone, in order.
    pub assignments: Vec<VariableAssignment>,
    /// The command unchanged in the line, with its assignments and without redirections.
    pub text: String,
    /// Where it runs, after what `cd`s did before it; `None` when that is not known.
    pub directory: Option<AbsPath>,
    /// The files it touches by its redirections, and by its operands where the program is well known.
    pub touches: Vec<FileTouch>,
    /// Its effects beyond its touches.
    pub effect: Effect,
    /// Whether it was found inside a wrapper, a `-c` script, `find -exec`, `xargs` and the like.
    pub wrapped: bool,
    /// The place in [`Analysis::commands`] of the wrapper that runs it.
    pub inside: Option<usize>,
    /// Whether a rule for a prefix of the command may cover it. Not so for wrappers and for options that
    /// run programs or write files; only a rule for the exact command covers those.
    pub prefix_covered: bool,
}

impl SimpleCommand {
    /// The contents of commits that it prints as a call of git; nothing for other programs.
    #[must_use]
    pub fn prints(&self) -> PrintedContents {
        match self.argv.split_first() {
            Some((name, arguments)) if wrappers::program(name) == "git" => git::prints(arguments),
            _ => PrintedContents::Nothing,
        }
    }
}

/// One argument.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommandWord {
    /// The argument of the program when `literal`; otherwise the argument unchanged in the line.
    pub text: String,
    /// Whether no variable, pattern or tilde is in it.
    pub literal: bool,
    /// Whether it could turn into several arguments, or into one that begins with `-`; never when `literal`.
    pub open: bool,
}

/// A variable set for one command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VariableAssignment {
    /// The variable.
    pub name: String,
    /// Its value.
    pub value: CommandWord,
}

/// A file that a command reads or changes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileTouch {
    /// The action on it.
    pub access: FileAccess,
    /// Which file or folder. A folder represents all that lies in it.
    pub path: TouchedPath,
    /// Whether a redirection of the shell touches it, and not the program.
    pub redirected: bool,
    /// Whether a folder is gone through with all that lies in it, so that every file beneath is touched alike.
    pub recursive: bool,
}

/// The action on a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FileAccess {
    /// Its content, or that it exists, becomes known.
    Read,
    /// It is made, changed, moved or deleted.
    Write,
}

/// Which file is touched, as far as the line tells.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TouchedPath {
    /// This one; links are not followed.
    Known(AbsPath),
    /// One that the text alone does not tell; the operand unchanged in the line. `~/x` is one of these: the
    /// home is not known here.
    Unknown(String),
}

/// The effects of a command beyond its files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Effect {
    /// Nothing: it only looks, or it is a wrapper that does nothing but run what follows it in the list.
    ReadOnly,
    /// It only looks, but by way of git, which runs programs that the repository's own settings name.
    ReadOnlyGit,
    /// It changes files the way an editing tool could, all of them among its touches.
    FileEdit,
    /// It changes the folder of the commands after it; `None` when the place is not known.
    ChangeDirectory(Option<AbsPath>),
    /// Anything else.
    Other,
}

impl Analysis {
    /// Whether the line is understood and every command in it is one of these.
    #[must_use]
    pub fn is_all_of(&self, patterns: &[CommandPattern]) -> bool {
        let is_one =
            |command| self.is_launched(command) || patterns.iter().any(|pattern| pattern.allows(command));
        self.unknowns.is_empty()
            && self.excess.is_none()
            && !self.commands.is_empty()
            && self.commands.iter().all(is_one)
    }

    /// Whether a launcher such as `npx` runs the command, so that the launcher's facts apply to it.
    fn is_launched(&self, command: &SimpleCommand) -> bool {
        command.inside.and_then(|outer| self.commands.get(outer)).is_some_and(|outer| outer.prefix_covered)
    }

    /// The same with arguments and unknown parts in small letters, for rules of a shell that ignores letter case.
    #[must_use]
    pub fn folded(&self) -> Self {
        let mut folded = self.clone();
        for word in folded.commands.iter_mut().flat_map(|command| &mut command.argv) {
            word.text = word.text.to_lowercase();
        }
        for unknown in &mut folded.unknowns {
            unknown.text = unknown.text.to_lowercase();
        }
        folded
    }

    /// The commands left over when rules and the mode have had their say: those that neither run `unasked`
    /// nor are `ruled` in, nor are in a wrapper that is ruled in (which takes a rule for the exact command).
    #[must_use]
    pub fn uncovered(
        &self,
        unasked: &dyn Fn(&SimpleCommand) -> bool,
        ruled: &dyn Fn(&SimpleCommand) -> bool,
    ) -> Vec<&SimpleCommand> {
        let mut in_rules = Vec::with_capacity(self.commands.len());
        let mut left = Vec::new();
        for command in &self.commands {
            let by_wrapper = command.inside.and_then(|outer| in_rules.get(outer).copied()).unwrap_or(false);
            let by_rule = by_wrapper || ruled(command);
            in_rules.push(by_rule);
            if !by_rule && !unasked(command) {
                left.push(command);
            }
        }
        left
    }
}

impl CommandWord {
    /// A literal argument.
    #[must_use]
    pub fn literal(text: impl Into<String>) -> Self {
        Self { text: text.into(), literal: true, open: false }
    }
}

/// Says what a command line of a language would do, as [`analyse`] does for bash.
#[must_use]
pub fn analyse_in(language: &CommandLanguage, line: &str, directory: &AbsPath) -> Analysis {
    match language {
        CommandLanguage::Bash => analyse(line, directory),
        CommandLanguage::PowerShell(reading) => powershell::analyse(line, directory, reading),
    }
}

/// Says what a command line would do that starts in `directory` (links resolved). Nothing is run or looked up;
/// time and memory are bounded.
#[must_use]
pub fn analyse(line: &str, directory: &AbsPath) -> Analysis {
    walk::judge(line, directory)
}

pub mod place;
pub mod sed;
#[cfg(test)]
mod tests;
