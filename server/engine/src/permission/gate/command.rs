//! The verdict on one command line, part by part.
//!
//! Rule: a line runs unasked only when every command in it is covered, by a rule or because it only looks, and every file
//! it touches may be touched so. What is not understood is asked for, and a deny rule that may concern it refuses it.

use crate::paths::{AbsPath, Target};
use crate::permission::gate::file::{self, Access as FileAccess};
use crate::permission::gate::{Circumstances, Confinement, Decision, Verdict};
use crate::permission::mode::{Act, Mode, Stance};
use crate::permission::rules::{Behavior, Commands, PlacedRule};
use crate::permission::shell::{Access, Analysis, Effect, FileTouch, SimpleCommand, TouchedPath, analyse};

/// So many characters of a command stand in a reason.
const QUOTE_LIMIT: usize = 60;

/// A command line to judge.
pub(super) struct Line<'a> {
    pub(super) command: &'a str,
    pub(super) directory: &'a AbsPath,
    pub(super) outside_sandbox: bool,
}

/// Judges a command line. `allowed` is a rule that allows all commands.
pub(super) fn judge(
    line: &Line<'_>,
    allowed: Option<&PlacedRule>,
    circumstances: &Circumstances<'_>,
) -> Verdict {
    let analysis = analyse(line.command, line.directory);
    let judge = Judge { line, allowed, circumstances, analysis: &analysis };
    let held_back = judge.held_back();
    if held_back.decision == Decision::Deny {
        return held_back;
    }
    let verdict = held_back.and(judge.covered()).and(judge.redirections());
    let runs_unasked = matches!(circumstances.confinement, Confinement::Sandbox { runs_unasked: true, .. })
        && !line.outside_sandbox
        && !circumstances.confinement.excludes(&analysis);
    let asked_by_mode = verdict.decision == Decision::Ask && verdict.rule.is_none();
    if runs_unasked && asked_by_mode && judge.held_back().decision == Decision::Allow {
        return Verdict::allowed("it runs in the sandbox");
    }
    verdict.and(judge.confined())
}

struct Judge<'a> {
    line: &'a Line<'a>,
    allowed: Option<&'a PlacedRule>,
    circumstances: &'a Circumstances<'a>,
    analysis: &'a Analysis,
}

impl Judge<'_> {
    /// What rules, the floor, secrets and guarded places say against it.
    fn held_back(&self) -> Verdict {
        if let Some(danger) = self.analysis.dangers.first() {
            return Verdict::deny(format!("`{}` {}, which no mode runs", quote(&danger.text), danger.what));
        }
        let concerns = |behavior| {
            let mut patterns = self.circumstances.rules.command_patterns(behavior);
            let found = patterns.find(|(commands, _)| match commands {
                Commands::All => true,
                Commands::Pattern(pattern) => pattern.forbids(self.analysis),
            });
            found.map(|(_, rule)| rule)
        };
        if let Some(rule) = concerns(Behavior::Deny) {
            return Verdict::by_rule(Decision::Deny, rule);
        }
        let asked = concerns(Behavior::Ask).map(|rule| Verdict::by_rule(Decision::Ask, rule));
        let files = self.touches().filter_map(|(_, touch)| match &touch.path {
            TouchedPath::Known(path) => {
                let given = Target::File(path.clone());
                let real = (self.circumstances.real)(&given);
                let access = access(touch.access);
                let verdict = file::held_back(access, &given, &real, self.circumstances);
                let granted = verdict.rule.is_none()
                    && verdict.decision == Decision::Ask
                    && (self.is_granted()
                        || self.circumstances.grants.iter().any(|grant| match access {
                            FileAccess::Read => grant.covers_read(&real),
                            FileAccess::Write => grant.covers_write(&real),
                        }));
                (!granted).then_some(verdict)
            }
            TouchedPath::Unknown(_) => None,
        });
        asked.into_iter().chain(files).fold(Verdict::allowed("nothing speaks against it"), Verdict::and)
    }

    /// Whether rules, standing answers or the mode cover every command of the line.
    fn covered(&self) -> Verdict {
        if self.is_granted() && self.circumstances.mode.stance(Act::Command) != Stance::Refuse {
            return Verdict::allowed("the user has allowed it for this session");
        }
        let what = match self.open_end() {
            None => return Verdict::allowed("rules cover it, or it only looks"),
            Some(what) => what,
        };
        let verdict = Verdict::by_mode(self.circumstances.mode, Act::Command);
        match verdict.decision {
            Decision::Allow if self.line.outside_sandbox && self.is_confined() => {
                Verdict::ask("it would run outside the sandbox")
            }
            Decision::Allow => verdict,
            Decision::Ask | Decision::Deny => {
                Verdict { reason: format!("{what}, and {}", verdict.reason), ..verdict }
            }
        }
    }

    /// What of the line nothing covers, for people; `None` when all is covered.
    fn open_end(&self) -> Option<String> {
        if self.allowed.is_some() {
            return None;
        }
        if let Some(unknown) = self.analysis.unknowns.first() {
            return Some(format!("`{}` cannot be judged: {}", quote(&unknown.text), unknown.reason));
        }
        let left =
            self.analysis.uncovered(&|command| self.runs_unasked(command), &|command| self.is_ruled(command));
        if let Some(command) = left.first() {
            return Some(format!("no rule covers `{}`", quote(&command.text)));
        }
        let untold = self.touches().find_map(|(command, touch)| match &touch.path {
            TouchedPath::Unknown(path) => Some((command, path)),
            TouchedPath::Known(_) => None,
        });
        untold.map(|(command, path)| {
            format!("it is not known which files `{}` means in `{}`", quote(path), quote(&command.text))
        })
    }

    /// What the shell itself writes and reads for the line is judged like a tool's work.
    fn redirections(&self) -> Verdict {
        let nothing = Verdict::allowed("nothing is redirected");
        if self.allowed.is_some() || self.is_granted() {
            return nothing;
        }
        let redirected = self.touches().filter(|(_, touch)| touch.redirected);
        redirected.map(|(_, touch)| self.judge_touch(touch)).fold(nothing, Verdict::and)
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
            // A rule says what may run, not what it may reach; what may always leave stands with the sandbox.
            Confinement::Sandbox { .. }
                if self.line.outside_sandbox
                    && !self.only_looks()
                    && !self.circumstances.confinement.excludes(self.analysis) =>
            {
                Verdict::ask("it would run outside the sandbox")
            }
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

    fn is_confined(&self) -> bool {
        matches!(self.circumstances.confinement, Confinement::Sandbox { .. })
    }

    fn is_granted(&self) -> bool {
        !self.line.outside_sandbox
            && self
                .circumstances
                .grants
                .iter()
                .any(|grant| grant.covers_command(self.line.command, self.line.directory))
    }

    fn is_ruled(&self, command: &SimpleCommand) -> bool {
        let mut patterns = self.circumstances.rules.command_patterns(Behavior::Allow);
        patterns.any(|(commands, _)| match commands {
            Commands::All => true,
            Commands::Pattern(pattern) => pattern.allows(command),
        })
    }

    fn runs_unasked(&self, command: &SimpleCommand) -> bool {
        let mode = self.circumstances.mode;
        let files_may = || {
            let mut own = command.touches.iter().filter(|touch| !touch.redirected);
            own.all(|touch| self.judge_touch(touch).decision == Decision::Allow)
        };
        let looks = || mode.stance(Act::Look) == Stance::Allow && files_may();
        match &command.effect {
            Effect::ReadOnly => looks(),
            Effect::ReadOnlyGit => {
                let plain = |folder| (self.circumstances.is_plain_git)(folder);
                command.directory.as_ref().is_some_and(plain) && looks()
            }
            Effect::FileEdit => {
                mode == Mode::AcceptEdits && mode.stance(Act::Edit) == Stance::Allow && files_may()
            }
            Effect::ChangeDirectory(Some(folder)) => {
                mode.stance(Act::Look) == Stance::Allow
                    && (self.circumstances.contains)(&Target::File(folder.clone()))
            }
            Effect::ChangeDirectory(None) | Effect::Other => false,
        }
    }

    fn judge_touch(&self, touch: &FileTouch) -> Verdict {
        match &touch.path {
            TouchedPath::Known(path) => {
                file::judge(access(touch.access), &Target::File(path.clone()), None, self.circumstances)
            }
            TouchedPath::Unknown(path) => {
                Verdict::ask(format!("it is not known which file `{}` means", quote(path)))
            }
        }
    }

    fn touches(&self) -> impl Iterator<Item = (&SimpleCommand, &FileTouch)> {
        let commands = self.analysis.commands.iter();
        commands.flat_map(|command| command.touches.iter().map(move |touch| (command, touch)))
    }
}

fn access(access: Access) -> FileAccess {
    match access {
        Access::Read => FileAccess::Read,
        Access::Write => FileAccess::Write,
    }
}

/// A piece of a command line, short enough for a reason.
fn quote(text: &str) -> String {
    let line = text.trim().replace(['\n', '\r'], " ");
    match line.char_indices().nth(QUOTE_LIMIT) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line,
    }
}
