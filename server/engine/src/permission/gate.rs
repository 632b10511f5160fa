//! The verdict on one call: run, ask, or refuse.
//!
//! Rule: a pure function; modes decide by what the tool does and where, a standing yes only ever turns an ask
//! into a run, and nothing here turns a refusal into anything else.

use std::path::Component;

use url::Url;

use crate::agents::TASK;
use crate::paths::{AbsPath, Target};
use crate::permission::{Delivery, Mode};
use crate::tools::{ToolKind, Touch};

/// Folders and files whose content decides what programs or agents do later: never changed unasked, save in
/// bypass mode.
const GUARDED: [&str; 17] = [
    ".git",
    ".vscode",
    ".idea",
    ".husky",
    ".claude",
    ".kode",
    ".blade",
    ".kode-ls",
    ".mcp.json",
    ".mcprc",
    ".gitconfig",
    ".gitmodules",
    ".envrc",
    ".bashrc",
    ".bash_profile",
    ".profile",
    ".zshrc",
];

/// What is to happen with a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It runs.
    Allow,
    /// The user decides; the text says why.
    Ask(String),
    /// It is refused; the text says why, for the model and the user.
    Deny(String),
}

/// A standing yes of this session: the very command, or the very file, for one kind of tool.
#[derive(Clone, Debug, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Grant {
    /// This command line in this folder.
    #[serde(rename_all = "camelCase")]
    Command {
        /// The command line, exactly.
        command: String,
        /// The folder it starts in.
        directory: AbsPath,
    },
    /// Changes to this file or document, links followed, by whichever tool.
    Write(Target),
    /// Reading this file, document or folder, links followed.
    Read(Target),
}

impl Grant {
    /// What a standing yes to a call would be: one grant for each thing it touches that there can be a standing yes
    /// to. Nothing on the web is such a thing.
    #[must_use]
    pub fn for_touches(touches: &[Touch], real: &dyn Fn(&Target) -> Target) -> Vec<Self> {
        touches
            .iter()
            .filter_map(|touch| match touch {
                Touch::Read(target) => Some(Self::Read(real(target))),
                Touch::Write(target) => Some(Self::Write(real(target))),
                Touch::Command { command, directory } => {
                    Some(Self::Command { command: command.clone(), directory: directory.clone() })
                }
                Touch::Fetch { .. } | Touch::Named { .. } => None,
            })
            .collect()
    }

    /// The grant as a rule, in the form people write rules.
    #[must_use]
    pub fn rule(&self) -> String {
        match self {
            Self::Command { command, directory } => format!("Bash({command}) in {directory}"),
            Self::Write(target) => format!("Edit({target})"),
            Self::Read(target) => format!("Read({target})"),
        }
    }

    fn covers(&self, touch: &Touch, real: &dyn Fn(&Target) -> Target) -> bool {
        match (self, touch) {
            (Self::Command { command: granted, directory: place }, Touch::Command { command, directory }) => {
                granted == command && place == directory
            }
            (Self::Write(granted), Touch::Write(target)) => *granted == real(target),
            // Who may change a file may read it.
            (Self::Read(granted) | Self::Write(granted), Touch::Read(target)) => *granted == real(target),
            _ => false,
        }
    }
}

/// What the gate knows besides the call.
pub struct Circumstances<'a> {
    /// The session's mode.
    pub mode: Mode,
    /// The session's standing answers.
    pub grants: &'a [Grant],
    /// Whether a target lies in the workspace, links followed.
    pub contains: &'a dyn Fn(&Target) -> bool,
    /// Where a target leads, links followed.
    pub real: &'a dyn Fn(&Target) -> Target,
    /// How changes reach a target, where a rule says so.
    pub delivery: &'a dyn Fn(&Target) -> Option<Delivery>,
}

/// Judges a call by what it touches. A tool that touches nothing is judged by its kind.
#[must_use]
pub fn judge(kind: ToolKind, touches: &[Touch], circumstances: &Circumstances<'_>) -> Verdict {
    let mut asked = None;
    let judged: Vec<Option<&Touch>> =
        if touches.is_empty() { vec![None] } else { touches.iter().map(Some).collect() };
    for touch in judged {
        match judge_touch(kind, touch, circumstances) {
            Verdict::Allow => {}
            Verdict::Ask(reason) => {
                let granted = touch.is_some_and(|touch| {
                    circumstances.grants.iter().any(|grant| grant.covers(touch, circumstances.real))
                });
                if !granted {
                    asked.get_or_insert(reason);
                }
            }
            denied @ Verdict::Deny(_) => return denied,
        }
    }
    asked.map_or(Verdict::Allow, Verdict::Ask)
}

fn judge_touch(kind: ToolKind, touch: Option<&Touch>, circumstances: &Circumstances<'_>) -> Verdict {
    let kind = match touch {
        Some(Touch::Read(_)) => ToolKind::ReadOnly,
        Some(Touch::Write(_)) => ToolKind::Write,
        Some(Touch::Command { .. }) => ToolKind::Execute,
        Some(Touch::Fetch { url }) => return unless_bypassed(circumstances.mode, fetch_reason(url)),
        // A sub-agent does nothing by being called: its own calls are judged.
        Some(Touch::Named { tool: TASK, .. }) => return Verdict::Allow,
        Some(Touch::Named { tool, name }) => {
            return unless_bypassed(circumstances.mode, format!("{tool} asks before it uses `{name}`"));
        }
        None => kind,
    };
    let target = match touch {
        Some(Touch::Read(target) | Touch::Write(target)) => Some(target),
        Some(Touch::Command { .. } | Touch::Fetch { .. } | Touch::Named { .. }) | None => None,
    };
    let outside = target.filter(|target| !(circumstances.contains)(target));
    // A link must not lead past the guard under another name.
    let guarded_place = |target: &Target| guarded(target).or_else(|| guarded(&(circumstances.real)(target)));
    let place = |target: &Target| match (circumstances.real)(target) {
        real if real == *target => format!("{target} is outside the workspace"),
        real => format!("{target} leads to {real}, which is outside the workspace"),
    };
    let delivery = target.and_then(|target| (circumstances.delivery)(target));
    let guard = || match (outside, target.and_then(guarded_place)) {
        (Some(target), _) => Some(place(target)),
        (None, Some(name)) => {
            Some(format!("`{name}` steers other programs or agents, so changes to it are always asked for"))
        }
        (None, None) => None,
    };
    match (circumstances.mode, kind) {
        (Mode::BypassPermissions | Mode::AcceptEdits, ToolKind::Write)
            if delivery == Some(Delivery::Propose) =>
        {
            Verdict::Ask(
                guard().unwrap_or_else(|| "changes to this file are to be proposed first".to_owned()),
            )
        }
        (Mode::BypassPermissions, _) => Verdict::Allow,
        (_, ToolKind::ReadOnly) => match outside {
            Some(target) => Verdict::Ask(place(target)),
            None => Verdict::Allow,
        },
        (Mode::Plan, ToolKind::Write) => {
            Verdict::Deny("plan mode allows no changes to files; present the plan instead".to_owned())
        }
        (Mode::Plan, ToolKind::Execute) => {
            Verdict::Deny("plan mode runs no commands; present the plan instead".to_owned())
        }
        (Mode::AcceptEdits, ToolKind::Write) => guard().map_or(Verdict::Allow, Verdict::Ask),
        (Mode::Default, ToolKind::Write) => match (guard(), delivery) {
            (Some(reason), _) => Verdict::Ask(reason),
            (None, Some(Delivery::Apply)) => Verdict::Allow,
            (None, Some(Delivery::Propose) | None) => {
                Verdict::Ask("mode default asks before files are changed".to_owned())
            }
        },
        (Mode::Default | Mode::AcceptEdits, ToolKind::Execute) => {
            Verdict::Ask(format!("mode {} asks before commands run", circumstances.mode.name()))
        }
    }
}

/// What changes nothing here but tells others something: asked for in every mode but bypass.
fn unless_bypassed(mode: Mode, reason: String) -> Verdict {
    match mode {
        Mode::BypassPermissions => Verdict::Allow,
        Mode::Default | Mode::AcceptEdits | Mode::Plan => Verdict::Ask(reason),
    }
}

fn fetch_reason(url: &Url) -> String {
    format!("{} learns of the request, and its page reaches the model", url.host_str().unwrap_or_default())
}

fn guarded(target: &Target) -> Option<String> {
    target.file()?.as_path().components().find_map(|component| match component {
        Component::Normal(name) => {
            // Letter case is ignored: on some file systems `.GIT` is `.git`.
            let name = name.to_string_lossy();
            GUARDED.iter().any(|guarded| name.eq_ignore_ascii_case(guarded)).then(|| name.into_owned())
        }
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(path: &str) -> Target {
        Target::File(AbsPath::new(path).unwrap())
    }

    fn command(text: &str) -> Touch {
        Touch::Command { command: text.to_owned(), directory: AbsPath::new("/w").unwrap() }
    }

    /// `/w/docs` is a link to `/w/.git`.
    fn real(target: &Target) -> Target {
        match target.file().and_then(|path| path.as_path().strip_prefix("/w/docs").ok()) {
            Some(rest) => file(&format!("/w/.git/{}", rest.display())),
            None => target.clone(),
        }
    }

    fn verdict(mode: Mode, touches: &[Touch], grants: &[Grant]) -> Verdict {
        delivered(mode, touches, grants, None)
    }

    fn delivered(mode: Mode, touches: &[Touch], grants: &[Grant], delivery: Option<Delivery>) -> Verdict {
        let contains = |target: &Target| target.file().is_none_or(|path| path.as_path().starts_with("/w"));
        let (contains, delivery) = (&contains, &|_: &Target| delivery);
        judge(ToolKind::Execute, touches, &Circumstances { mode, grants, contains, real: &real, delivery })
    }

    #[test]
    fn a_delivery_asks_or_spares_the_question_but_not_where_it_is_always_asked() {
        let of = |mode, path, delivery| delivered(mode, &[Touch::Write(file(path))], &[], Some(delivery));
        assert_eq!(of(Mode::Default, "/w/a", Delivery::Apply), Verdict::Allow);
        for mode in [Mode::Default, Mode::AcceptEdits, Mode::BypassPermissions] {
            assert!(matches!(of(mode, "/w/a", Delivery::Propose), Verdict::Ask(_)), "{mode:?}");
        }
        for path in ["/etc/hosts", "/w/.git/config", "/w/docs/config"] {
            assert!(matches!(of(Mode::Default, path, Delivery::Apply), Verdict::Ask(_)), "{path}");
        }
        assert!(matches!(of(Mode::Plan, "/w/a", Delivery::Apply), Verdict::Deny(_)));
    }

    #[test]
    fn the_mode_decides_by_what_a_call_does() {
        let calls = [
            Touch::Read(file("/w/a")),
            Touch::Write(file("/w/a")),
            command("ls"),
            Touch::Fetch { url: Url::parse("https://example.com/").unwrap() },
            Touch::Named { tool: "WebSearch", name: "words".to_owned() },
        ];
        let expected = [
            (Mode::Default, ["allow", "ask", "ask", "ask", "ask"]),
            (Mode::AcceptEdits, ["allow", "allow", "ask", "ask", "ask"]),
            (Mode::Plan, ["allow", "deny", "deny", "ask", "ask"]),
            (Mode::BypassPermissions, ["allow", "allow", "allow", "allow", "allow"]),
        ];
        for (mode, row) in expected {
            for (touch, expected) in calls.iter().zip(row) {
                let got = match verdict(mode, std::slice::from_ref(touch), &[]) {
                    Verdict::Allow => "allow",
                    Verdict::Ask(_) => "ask",
                    Verdict::Deny(_) => "deny",
                };
                assert_eq!(got, expected, "{mode:?} {touch:?}");
            }
        }
    }

    #[test]
    fn outside_the_workspace_even_reading_asks() {
        for mode in [Mode::Default, Mode::AcceptEdits, Mode::Plan] {
            assert!(
                matches!(verdict(mode, &[Touch::Read(file("/etc/passwd"))], &[]), Verdict::Ask(_)),
                "{mode:?}"
            );
        }
        assert!(matches!(
            verdict(Mode::AcceptEdits, &[Touch::Write(file("/etc/hosts"))], &[]),
            Verdict::Ask(_)
        ));
    }

    #[test]
    fn what_steers_other_programs_is_asked_for_even_when_edits_are_accepted() {
        for path in [
            "/w/.git/hooks/pre-commit",
            "/w/sub/.GIT/config",
            "/w/.mcp.json",
            "/w/.kode/settings.json",
            "/w/docs/config",
        ] {
            assert!(
                matches!(verdict(Mode::AcceptEdits, &[Touch::Write(file(path))], &[]), Verdict::Ask(_)),
                "{path}"
            );
        }
        assert_eq!(verdict(Mode::AcceptEdits, &[Touch::Write(file("/w/.gitignore"))], &[]), Verdict::Allow);
    }

    #[test]
    fn a_standing_yes_covers_the_very_thing_and_nothing_else() {
        let grants = Grant::for_touches(&[command("cargo test"), Touch::Write(file("/w/a"))], &real);
        assert_eq!(verdict(Mode::Default, &[command("cargo test")], &grants), Verdict::Allow);
        assert_eq!(verdict(Mode::Default, &[Touch::Write(file("/w/a"))], &grants), Verdict::Allow);
        assert!(matches!(verdict(Mode::Default, &[command("cargo test; rm x")], &grants), Verdict::Ask(_)));
        assert!(matches!(verdict(Mode::Default, &[Touch::Write(file("/w/b"))], &grants), Verdict::Ask(_)));
        let elsewhere =
            Touch::Command { command: "cargo test".into(), directory: AbsPath::new("/w/sub").unwrap() };
        assert!(matches!(verdict(Mode::Default, &[elsewhere], &grants), Verdict::Ask(_)));
        let both = [Touch::Write(file("/w/a")), Touch::Write(file("/w/b"))];
        assert!(matches!(verdict(Mode::Default, &both, &grants), Verdict::Ask(_)));
    }

    #[test]
    fn a_standing_yes_never_lifts_a_refusal() {
        let grants = Grant::for_touches(&[command("ls")], &real);
        assert!(matches!(verdict(Mode::Plan, &[command("ls")], &grants), Verdict::Deny(_)));
    }
}
