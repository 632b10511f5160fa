//! The verdict on one command line, part by part.
//!
//! Rule: a line runs unasked only when every command in it is covered, by a rule or because it only looks, and every file
//! it touches may be touched so. Unparsed text asks, and a deny rule that may concern it refuses it.

use std::cell::RefCell;
use std::collections::HashMap;

use crate::gate::file::{self, TargetAccess};
use crate::gate::guess::{self, Guess};
use crate::gate::{Circumstances, Confinement};
use crate::rules::{Behavior, Commands, Order, PlacedRule};
use crate::{GateDecision, Grant, Verdict};
use kode_base::call::CommandLanguage;
use kode_base::command_shell::CommandShell;
use kode_base::mask::masked_text;
use kode_base::mode::{ActionClass, Mode, Stance};
use kode_base::path_style::PathStyle;
use kode_base::paths::{AbsPath, Target};
use kode_command::{
    Analysis, CommandPattern, Effect, FileAccess, FileTouch, PrintedContents, SimpleCommand, TouchedPath,
    analyse_in,
};

/// Maximum characters of a command in a reason.
const QUOTE_LIMIT: usize = 60;

/// The shell's own work.
const BUILTINS: [&str; 14] = [
    "[", "break", "cd", "command", "continue", "echo", "exit", "false", "printf", "pwd", "set", "test",
    "true", "type",
];
/// Programs that show names of what lies beneath a folder and no contents.
const NAME_READERS: [&str; 10] =
    ["ls", "find", "fd", "du", "tree", "stat", "Get-ChildItem", "Get-Item", "Test-Path", "Resolve-Path"];

/// A command line to judge.
#[derive(Clone, Copy)]
pub(super) struct GateLine<'a> {
    pub(super) command: &'a str,
    pub(super) directory: &'a AbsPath,
    pub(super) outside_sandbox: bool,
    pub(super) language: &'a CommandLanguage,
}

/// Judges a command line. `allowed` is a rule that allows all commands.
pub(super) fn judge(
    line: &GateLine<'_>,
    allowed: Option<&PlacedRule>,
    circumstances: &Circumstances<'_>,
) -> Verdict {
    let analysis = analyse_in(line.language, line.command, line.directory);
    let allowed = allowed.filter(|_| circumstances.may_be_allowed(ActionClass::Command));
    let folded = match line.language.shell() {
        CommandShell::Bash => None,
        CommandShell::PowerShell => Some(analysis.folded()),
    };
    let judge = LineJudge {
        line,
        allowed,
        circumstances,
        analysis: &analysis,
        folded: folded.as_ref(),
        known: RefCell::default(),
    };
    let held_back = judge.held_back();
    let is_free = held_back.decision == GateDecision::Allow;
    if held_back.decision == GateDecision::Deny {
        return held_back;
    }
    let verdict = held_back.and(judge.covered()).and(judge.redirections());
    // Modes that ask for everything, or refuse edits, mean that of commands too.
    let may_run_unasked =
        matches!(circumstances.mode, Mode::Default | Mode::AcceptEdits | Mode::BypassPermissions);
    let runs_unasked = matches!(circumstances.confinement, Confinement::Sandbox { runs_unasked: true, .. })
        && may_run_unasked
        && !line.outside_sandbox
        && !circumstances.confinement.excludes(&analysis);
    let asked_by_mode = verdict.decision == GateDecision::Ask && verdict.rule.is_none();
    if runs_unasked && asked_by_mode && is_free {
        return Verdict::allowed("it runs in the sandbox");
    }
    verdict.and(judge.confined())
}

struct LineJudge<'a> {
    line: &'a GateLine<'a>,
    allowed: Option<&'a PlacedRule>,
    circumstances: &'a Circumstances<'a>,
    analysis: &'a Analysis,
    /// The same for rules that deny or ask, in a shell that ignores letter case.
    folded: Option<&'a Analysis>,
    /// The verdicts on files that were judged already: many parts of a line touch the same ones.
    known: RefCell<HashMap<TouchKey, Verdict>>,
}

/// The action on a file, and how much beneath it is checked.
type TouchKey = (FileAccess, AbsPath, TouchReach);

/// How much of a file or folder a touch is about.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum TouchReach {
    Itself,
    Beneath { visible_only: bool },
}

impl LineJudge<'_> {
    /// The objections of rules, the floor, secrets and guarded places.
    fn held_back(&self) -> Verdict {
        if let Some(excess) = &self.analysis.excess {
            return Verdict::deny(format!(
                "`{}` is too much to be judged: {excess}; run less in one call",
                quote(self.line.command)
            ));
        }
        if let Some(danger) = self.analysis.dangers.first() {
            return Verdict::deny(format!("`{}` {}, which no mode runs", quote(&danger.text), danger.what));
        }
        let rules = |behavior| self.rules(behavior);
        let surely = rules(Behavior::Deny).find(|(commands, _)| match commands {
            Commands::All => true,
            Commands::Pattern(pattern) => {
                pattern.surely_forbids(self.analysis)
                    || self.folded.is_some_and(|folded| pattern.folded().surely_forbids(folded))
            }
        });
        if let Some((_, rule)) = surely {
            return Verdict::by_rule(GateDecision::Deny, rule);
        }
        let mut concerned = rules(Behavior::Ask).filter(|(commands, _)| match commands {
            Commands::All => true,
            Commands::Pattern(pattern) => self.first_forbidden(pattern).is_some(),
        });
        let asked = concerned.next().filter(|_| !self.allow_beats_ask());
        let asked = asked.map(|(_, rule)| Verdict::by_rule(GateDecision::Ask, rule));
        let asked = asked.into_iter().chain(self.may_be_denied());
        let files = self.touches().flat_map(|(command, touch)| {
            let paths = match &touch.path {
                TouchedPath::Known(path) => vec![path.clone()],
                // It may mean these, and what may be forbidden is not run.
                TouchedPath::Unknown(operand) => self.guess(command, operand).paths,
            };
            let beneath =
                paths.iter().map(|path| self.beneath_held_back(command, touch, path)).collect::<Vec<_>>();
            paths
                .into_iter()
                .map(|path| self.file_held_back(touch.access, path))
                .chain(beneath)
                .collect::<Vec<_>>()
        });
        asked
            .chain(files)
            .chain(self.may_print_ignored())
            .fold(Verdict::allowed("nothing speaks against it"), Verdict::and)
    }

    /// The rules for commands of this shell.
    fn rules(&self, behavior: Behavior) -> impl Iterator<Item = (Commands<'_>, &PlacedRule)> {
        self.circumstances.rules.command_patterns(behavior, self.line.language.shell())
    }

    /// The part of the line that a rule which denies or asks is about.
    fn first_forbidden(&self, pattern: &CommandPattern) -> Option<&str> {
        let found = pattern.first_forbidden(self.analysis);
        found.or_else(|| pattern.folded().first_forbidden(self.folded?))
    }

    /// A deny rule that may refer to a part that cannot be judged: the user decides, for it may be harmless.
    fn may_be_denied(&self) -> Option<Verdict> {
        let mut rules = self.rules(Behavior::Deny);
        let (part, rule) = rules.find_map(|(commands, rule)| match commands {
            Commands::All => None,
            Commands::Pattern(pattern) => Some((self.first_forbidden(pattern)?, rule)),
        })?;
        let reason = format!(
            "the program that `{}` runs is known only when it runs, and may be one that the rule {} denies",
            quote(part),
            masked_text(&rule.rule.to_string())
        );
        (!self.is_granted()).then(|| Verdict::ask(reason).within_session())
    }

    /// A call of git that prints what commits hold of a file that is kept from the agent: it prints it in the sandbox too.
    fn may_print_ignored(&self) -> Option<Verdict> {
        let mut tracked = HashMap::new();
        let printed = self.analysis.commands.iter().find_map(|command| {
            let prints = command.prints();
            if prints == PrintedContents::Nothing {
                return None;
            }
            let directory = command.directory.as_ref().unwrap_or(self.line.directory);
            let tracked =
                tracked.entry(directory).or_insert_with(|| (self.circumstances.tracked_ignored)(directory));
            let is_printed = |file: &AbsPath| prints == PrintedContents::Any || may_name(command, file);
            let (file, by) = tracked.iter().find(|(file, _)| is_printed(file))?;
            Some((command, file.clone(), by.clone()))
        });
        let (command, file, by) = printed?;
        let reason = format!(
            "`{}` may print {file} from commits, which is kept from the agent by {by}; with paths of other files \
             behind `--` it does not",
            quote(&command.text)
        );
        (!self.is_granted()).then(|| Verdict::ask(reason).within_session())
    }

    /// The objections to one file; files allowed for the session do not ask again.
    fn file_held_back(&self, with: FileAccess, path: AbsPath) -> Verdict {
        let key = (with, path, TouchReach::Itself);
        if let Some(known) = self.known.borrow().get(&key) {
            return known.clone();
        }
        let verdict = self.file_judged(with, key.1.clone());
        self.known.borrow_mut().insert(key, verdict.clone());
        verdict
    }

    fn file_judged(&self, with: FileAccess, path: AbsPath) -> Verdict {
        let given = Target::File(path);
        let real = (self.circumstances.real)(&given);
        let access = access(with);
        let verdict = file::held_back(access, &given, &real, self.circumstances);
        let covers = |grant: &Grant| match access {
            TargetAccess::Read => grant.covers_read(&real),
            TargetAccess::Write => grant.covers_write(&real),
        };
        let granted = || self.is_granted() || self.circumstances.grants.iter().any(covers);
        if verdict.decision == GateDecision::Ask && verdict.rule.is_none() && granted() {
            return Verdict::allowed("the user has allowed it for this session");
        }
        verdict
    }

    /// The objections to the files beneath a folder that is read, changed or deleted as a whole.
    fn beneath_held_back(&self, command: &SimpleCommand, touch: &FileTouch, folder: &AbsPath) -> Verdict {
        let nothing = Verdict::allowed("nothing beneath speaks against it");
        let program = command.argv.first().map(|word| PathStyle::HERE.program_name(&word.text));
        let names_alone = program.is_some_and(|program| NAME_READERS.contains(&program));
        if !touch.recursive || names_alone || self.is_granted() || !folder.as_path().is_dir() {
            return nothing;
        }
        let visible_only = program == Some("rg") && !shows_hidden(command);
        let key = (touch.access, folder.clone(), TouchReach::Beneath { visible_only });
        if let Some(known) = self.known.borrow().get(&key) {
            return known.clone();
        }
        let verdict = self.beneath_judged(touch.access, folder, visible_only);
        self.known.borrow_mut().insert(key, verdict.clone());
        verdict
    }

    fn beneath_judged(&self, access: FileAccess, folder: &AbsPath, visible_only: bool) -> Verdict {
        let (paths, is_all) = guess::beneath(folder, visible_only);
        let mut verdict = Verdict::allowed("nothing beneath speaks against it");
        let is_hidden =
            |path: &AbsPath| access == FileAccess::Read && self.is_confined() && self.is_ignored(path);
        for path in paths.into_iter().filter(|path| path != folder && !is_hidden(path)) {
            let held_back = self.file_judged(access, path);
            // A rule means what it says; a secret among many files is left to the user.
            verdict = verdict.and(match (held_back.decision, &held_back.rule) {
                (GateDecision::Deny, None) => Verdict::ask(held_back.reason).within_session(),
                _ => held_back,
            });
            if verdict.decision == GateDecision::Deny {
                return verdict;
            }
        }
        if is_all {
            verdict
        } else {
            verdict.and(Verdict::ask(format!("{folder} has too many files to check")))
        }
    }

    /// Whether the command runs in the sandbox, where it does not see what ignore files keep from the agent.
    fn is_confined(&self) -> bool {
        matches!(self.circumstances.confinement, Confinement::Sandbox { .. })
            && !self.line.outside_sandbox
            && !self.circumstances.confinement.excludes(self.analysis)
    }

    fn is_ignored(&self, path: &AbsPath) -> bool {
        (self.circumstances.ignored_by)(path).is_some()
    }

    /// The files an operand can mean, wherever its command may run.
    fn guess(&self, command: &SimpleCommand, operand: &str) -> Guess {
        let places = match &command.directory {
            Some(directory) => vec![directory.clone()],
            None => {
                let entered = self.analysis.commands.iter().filter_map(|command| match &command.effect {
                    Effect::ChangeDirectory(Some(folder)) => Some(folder.clone()),
                    _ => None,
                });
                std::iter::once(self.line.directory.clone()).chain(entered).collect()
            }
        };
        guess::files(operand, &places, self.circumstances.home)
    }

    /// Whether rules, standing answers or the mode cover every command of the line.
    fn covered(&self) -> Verdict {
        if self.is_granted() && self.circumstances.mode.stance(ActionClass::Command) != Stance::Refuse {
            return Verdict::allowed("the user has allowed it for this session");
        }
        let by_mode = Verdict::by_mode(self.circumstances.mode, ActionClass::Command);
        let verdict = match (self.open_end(), by_mode.decision) {
            (None, _) => match self
                .allowed
                .or_else(|| self.analysis.commands.iter().find_map(|command| self.rule_for(command)))
            {
                Some(rule) => Verdict::by_rule(GateDecision::Allow, rule),
                None => Verdict::allowed("it only looks, or changes what the mode lets it change"),
            },
            (Some(_), GateDecision::Allow) => by_mode,
            (Some(what), GateDecision::Ask | GateDecision::Deny) => {
                Verdict { reason: format!("{what}, and {}", by_mode.reason), ..by_mode }
            }
        };
        // Rules and modes let a command run, not leave; `sandbox.excludedCommands` does.
        if self.leaves() && verdict.decision == GateDecision::Allow {
            return Verdict::ask("it would run outside the sandbox").within_session();
        }
        verdict
    }

    /// Whether the call wants to leave the sandbox there is.
    fn leaves(&self) -> bool {
        self.line.outside_sandbox
            && matches!(self.circumstances.confinement, Confinement::Sandbox { .. })
            && !self.circumstances.confinement.excludes(self.analysis)
    }

    /// The uncovered parts of the line, for people; `None` when all is covered.
    fn open_end(&self) -> Option<String> {
        if self.allowed.is_some() {
            return None;
        }
        if let Some(unknown) = self.analysis.unknowns.first() {
            return Some(format!("`{}` cannot be judged: {}", quote(&unknown.text), unknown.reason));
        }
        let left = self
            .analysis
            .uncovered(&|command| self.runs_unasked(command), &|command| self.rule_for(command).is_some());
        if let Some(command) = left.first() {
            return Some(self.why_not(command));
        }
        let unreported = self.touches().find_map(|(command, touch)| match &touch.path {
            TouchedPath::Unknown(path) if !self.guess(command, path).is_complete => Some((command, path)),
            TouchedPath::Unknown(_) | TouchedPath::Known(_) => None,
        });
        unreported.map(|(command, path)| {
            format!("it is not known which files `{}` means in `{}`", quote(path), quote(&command.text))
        })
    }

    /// Why a command is not covered, for people.
    fn why_not(&self, command: &SimpleCommand) -> String {
        let elsewhere = match &command.effect {
            Effect::ReadOnly | Effect::ReadOnlyGit | Effect::FileEdit => {
                let touches = command.touches.iter().filter(|touch| !touch.redirected);
                let mut verdicts = touches.map(|touch| self.judge_touch(command, touch));
                verdicts.find(|verdict| verdict.decision != GateDecision::Allow)
            }
            Effect::ChangeDirectory(_) | Effect::Other => None,
        };
        match elsewhere {
            Some(verdict) => format!("`{}`: {}", quote(&command.text), verdict.reason),
            None if command.argv.first().is_some_and(|name| !self.is_trusted(&name.text)) => {
                format!(
                    "`{}` would run a program from a folder that the agent may write in",
                    quote(&command.text)
                )
            }
            None => format!("no rule covers `{}`", quote(&command.text)),
        }
    }

    /// Reads and writes of the shell itself are judged like a tool's.
    fn redirections(&self) -> Verdict {
        let nothing = Verdict::allowed("nothing is redirected");
        if self.allowed.is_some() || self.is_granted() {
            return nothing;
        }
        let redirected = self.touches().filter(|(_, touch)| touch.redirected);
        redirected.map(|(command, touch)| self.judge_touch(command, touch)).fold(nothing, Verdict::and)
    }

    /// Whether there is what has to hold the command back.
    fn confined(&self) -> Verdict {
        match self.circumstances.confinement {
            Confinement::Missing(why) if !self.only_looks() && !self.is_granted() => {
                Verdict::ask(format!("there is no sandbox to run it in: {why}"))
            }
            Confinement::Sandbox { may_leave: false, .. } if self.line.outside_sandbox => {
                Verdict::deny("settings let no command run outside the sandbox")
            }
            // A rule says what may run, not what it may reach; permissions to leave the sandbox are stored with the sandbox.
            Confinement::Missing(_) | Confinement::Off | Confinement::Sandbox { .. } => {
                Verdict::allowed("it is confined, or need not be")
            }
        }
    }

    fn only_looks(&self) -> bool {
        self.analysis.unknowns.is_empty()
            && self
                .analysis
                .commands
                .iter()
                .all(|command| !matches!(command.effect, Effect::Other | Effect::FileEdit))
    }

    fn is_granted(&self) -> bool {
        let GateLine { command, directory, outside_sandbox, language } = *self.line;
        let shell = language.shell();
        self.circumstances
            .grants
            .iter()
            .any(|grant| grant.covers_command(shell, command, directory, outside_sandbox))
    }

    /// Whether rules allow every command of the line, in an order in which they win over those that ask.
    fn allow_beats_ask(&self) -> bool {
        let commands = &self.analysis.commands;
        self.circumstances.rules.order() == Order::AllowFirst
            && self.analysis.unknowns.is_empty()
            && !commands.is_empty()
            && commands.iter().all(|command| self.rule_for(command).is_some())
    }

    /// The first rule that allows a command.
    fn rule_for(&self, command: &SimpleCommand) -> Option<&PlacedRule> {
        if !self.circumstances.may_be_allowed(ActionClass::Command) {
            return None;
        }
        let mut patterns = self.rules(Behavior::Allow);
        let covering = patterns.find(|(commands, _)| match commands {
            Commands::All => true,
            Commands::Pattern(pattern) => pattern.allows(command),
        });
        covering.map(|(_, rule)| rule)
    }

    fn runs_unasked(&self, command: &SimpleCommand) -> bool {
        let mode = self.circumstances.mode;
        let files_may = || {
            let mut own = command.touches.iter().filter(|touch| !touch.redirected);
            own.all(|touch| self.judge_touch(command, touch).decision == GateDecision::Allow)
        };
        // A program that the agent may have put there does whatever it likes.
        let is_trusted = || command.argv.first().is_none_or(|name| self.is_trusted(&name.text));
        let looks = || mode.stance(ActionClass::Look) == Stance::Allow && files_may() && is_trusted();
        match &command.effect {
            Effect::ReadOnly => looks() && !self.follows_links_away(command),
            Effect::ReadOnlyGit => {
                let plain = |folder| (self.circumstances.is_plain_git)(folder);
                command.directory.as_ref().is_some_and(plain) && looks()
            }
            Effect::FileEdit => {
                mode == Mode::AcceptEdits
                    && mode.stance(ActionClass::Edit) == Stance::Allow
                    && files_may()
                    && is_trusted()
            }
            Effect::ChangeDirectory(Some(folder)) => {
                mode.stance(ActionClass::Look) == Stance::Allow
                    && (self.circumstances.contains)(&Target::File(folder.clone()))
            }
            Effect::ChangeDirectory(None) | Effect::Other => false,
        }
    }

    fn is_trusted(&self, program: &str) -> bool {
        BUILTINS.contains(&program) || (self.circumstances.is_program_from_outside)(program)
    }

    /// Whether a command follows links beneath a folder, and one of them leads to another folder or to a file that is
    /// not read unasked.
    fn follows_links_away(&self, command: &SimpleCommand) -> bool {
        let leads_away = |path: &AbsPath| {
            let verdict =
                file::judge(TargetAccess::Read, &Target::File(path.clone()), None, self.circumstances);
            path.as_path().is_dir() || verdict.decision != GateDecision::Allow
        };
        let away = |touch: &FileTouch| match &touch.path {
            TouchedPath::Known(folder) if touch.recursive => {
                let (paths, is_all) = guess::beneath(folder, false);
                !is_all
                    || paths
                        .iter()
                        .any(|path| path != folder && path.as_path().is_symlink() && leads_away(path))
            }
            TouchedPath::Known(_) => false,
            TouchedPath::Unknown(_) => touch.recursive,
        };
        follows_links(command) && command.touches.iter().any(away)
    }

    fn judge_touch(&self, command: &SimpleCommand, touch: &FileTouch) -> Verdict {
        let judge = |path: &AbsPath| {
            file::judge(access(touch.access), &Target::File(path.clone()), None, self.circumstances)
        };
        match &touch.path {
            TouchedPath::Known(path) => judge(path),
            TouchedPath::Unknown(operand) => match self.guess(command, operand) {
                Guess { paths, is_complete: true } => {
                    let verdicts = paths.iter().map(judge);
                    verdicts
                        .fold(Verdict::allowed("it matches no file that may not be touched"), Verdict::and)
                }
                Guess { .. } => {
                    Verdict::ask(format!("it is not known which file `{}` means", quote(operand)))
                }
            },
        }
    }

    fn touches(&self) -> impl Iterator<Item = (&SimpleCommand, &FileTouch)> {
        let commands = self.analysis.commands.iter();
        commands.flat_map(|command| command.touches.iter().map(move |touch| (command, touch)))
    }
}

/// Whether `rg` searches hidden or ignored files.
fn shows_hidden(command: &SimpleCommand) -> bool {
    command.argv.iter().skip(1).any(|word| {
        let text = word.text.as_str();
        let is_cluster = text.starts_with('-') && !text.starts_with("--");
        text.starts_with("--hid")
            || text.starts_with("--no-ig")
            || text.starts_with("--unr")
            || is_cluster && text.contains(['u', '.'])
    })
}

/// Whether `grep` follows the links it finds beneath a folder.
fn follows_links(command: &SimpleCommand) -> bool {
    let name = command.argv.first().map(|word| PathStyle::HERE.program_name(&word.text));
    let follows = |text: &str| {
        text.starts_with("--dereference-r")
            || text.starts_with('-') && !text.starts_with("--") && text.contains('R')
    };
    matches!(name, Some("grep" | "egrep" | "fgrep"))
        && command.argv.iter().skip(1).any(|word| follows(&word.text))
}

fn access(access: FileAccess) -> TargetAccess {
    match access {
        FileAccess::Read => TargetAccess::Read,
        FileAccess::Write => TargetAccess::Write,
    }
}

/// Whether a command names a file, or a folder around it.
fn may_name(command: &SimpleCommand, file: &AbsPath) -> bool {
    command.touches.iter().any(|touch| match &touch.path {
        TouchedPath::Known(path) => file.is_within(path),
        TouchedPath::Unknown(_) => true,
    })
}

/// A piece of a command line, short enough for a reason.
fn quote(text: &str) -> String {
    let line = text.trim().replace(['\n', '\r'], " ");
    match line.char_indices().nth(QUOTE_LIMIT) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line,
    }
}
