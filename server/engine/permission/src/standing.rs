//! The possible permanent permissions: the narrowest useful rules for a call, and what they would have spared.
//!
//! Rule: an offered rule covers the call it is offered for and is shown as the text that will be written; nothing is
//! offered for calls that are not understood.

use url::Url;

use crate::rules::PathPattern;
use kode_base::call::{CommandLanguage, Touch};
use kode_base::paths::{AbsPath, Target};
use kode_command as shell;
use kode_command::{FileAccess, TouchedPath};

/// The rules that would let a call run, relative to the settings of `root` where they can be; empty when none exist
/// worth keeping.
#[must_use]
pub fn rules(touches: &[Touch], root: Option<&AbsPath>) -> Vec<String> {
    let mut rules = Vec::new();
    for touch in touches {
        let of_touch = match touch {
            Touch::Read(target) => path_rule("Read", target, root).into_iter().collect(),
            Touch::Write(target) => path_rule("Edit", target, root).into_iter().collect(),
            // Leaving the sandbox is settled where the sandbox is: under `sandbox.excludedCommands`.
            Touch::Command { outside_sandbox: true, .. } => Vec::new(),
            Touch::Command { command, directory, outside_sandbox: false, language } => {
                command_rules(language, command, directory)
            }
            Touch::Fetch { url } => host_rule(url).into_iter().collect(),
            Touch::Named { tool, name } => vec![named_rule(tool, name)],
            Touch::Foreign { tool, .. } => vec![tool.clone()],
        };
        // A rule for a part of a call spares no question.
        if of_touch.is_empty() {
            return Vec::new();
        }
        rules.extend(of_touch);
    }
    rules.dedup();
    rules
}

/// The files that the command lines of a call are known to read and change, each once.
#[must_use]
pub fn files(touches: &[Touch]) -> Vec<Touch> {
    let mut files = Vec::new();
    for touch in touches {
        let Touch::Command { command, directory, language, .. } = touch else { continue };
        let analysis = shell::analyse_in(language, command, directory);
        for touch in analysis.commands.iter().flat_map(|command| &command.touches) {
            let TouchedPath::Known(path) = &touch.path else { continue };
            let target = Target::File(path.clone());
            let touch = match touch.access {
                FileAccess::Read => Touch::Read(target),
                FileAccess::Write => Touch::Write(target),
            };
            if !files.contains(&touch) {
                files.push(touch);
            }
        }
    }
    files
}

fn command_rules(language: &CommandLanguage, command: &str, directory: &AbsPath) -> Vec<String> {
    let analysis = shell::analyse_in(language, command, directory);
    let tool = language.shell().tool();
    shell::propose(&analysis).iter().map(|pattern| format!("{tool}({pattern})")).collect()
}

/// The rule for all pages of a host.
pub(super) fn host_rule(url: &Url) -> Option<String> {
    url.host_str().map(|host| format!("WebFetch(domain:{host})"))
}

fn path_rule(tool: &str, target: &Target, root: Option<&AbsPath>) -> Option<String> {
    let path = target.file()?;
    // A name that is not text cannot are in a rule.
    path.as_path().to_str()?;
    let pattern = match root {
        Some(root) => PathPattern::exactly_within(path, root),
        None => PathPattern::exactly(path),
    };
    Some(format!("{tool}({pattern})"))
}

/// The rule for an item that is used by its name; its arguments may differ from call to call.
pub(super) fn named_rule(tool: &str, name: &str) -> String {
    match (tool, name.split_once(' ')) {
        ("WebSearch", _) => tool.to_owned(),
        (_, Some((name, _))) => format!("{tool}({name} *)"),
        (_, None) => format!("{tool}({name})"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rule_for_something_named_covers_it_with_other_arguments() {
        assert_eq!(named_rule("SlashCommand", "/fix 12"), "SlashCommand(/fix *)");
        assert_eq!(named_rule("Task", "explore"), "Task(explore)");
        assert_eq!(named_rule("WebSearch", "some words"), "WebSearch");
    }
    use crate::rules::Rule;

    #[test]
    fn the_rule_for_a_file_names_that_file_and_can_be_read_again() {
        let root = AbsPath::new("/w").unwrap();
        let of = |path: &str, root| {
            let found = rules(&[Touch::Write(Target::File(AbsPath::new(path).unwrap()))], root);
            found.iter().for_each(|rule| assert_eq!(rule.parse::<Rule>().unwrap().to_string(), *rule));
            found
        };
        assert_eq!(of("/w/src/main.rs", Some(&root)), ["Edit(/src/main.rs)"]);
        assert_eq!(of("/etc/hosts", Some(&root)), ["Edit(//etc/hosts)"]);
        assert_eq!(of("/w/src/main.rs", None), ["Edit(//w/src/main.rs)"]);
    }

    #[test]
    fn nothing_is_offered_when_a_part_of_the_call_cannot_be_kept() {
        let touches = [
            Touch::Write(Target::File(AbsPath::new("/w/a").unwrap())),
            Touch::Write(Target::Untitled("untitled:1".to_owned())),
        ];
        assert_eq!(rules(&touches, None), [""; 0]);
    }
}
