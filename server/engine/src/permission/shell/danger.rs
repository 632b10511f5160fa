//! The floor: commands that no mode runs.
//!
//! Rule: judged by the program a command really names, never by text; a word in a message is only a word.

use super::lexer::RawWord;
use super::reader::{Node, RawCommand, read};
use super::walk::Place;
use super::wrappers::{is_shell, program};
use super::{Access, FileTouch, SimpleCommand, TouchedPath, Word};

const FETCHERS: [&str; 2] = ["curl", "wget"];
const DISKS: [&str; 14] = [
    "sd", "hd", "vd", "xvd", "nvme", "mmcblk", "disk", "rdisk", "dm-", "mapper/", "md", "loop", "nbd", "mem",
];

/// Whether a path names a disk.
pub(super) fn is_disk(path: &str) -> bool {
    let Ok(path) = crate::paths::AbsPath::new(path) else { return false };
    let path = path.to_string();
    path.strip_prefix("/dev/").is_some_and(|device| DISKS.iter().any(|disk| device.starts_with(disk)))
}

/// What no mode lets this command do.
pub(super) fn of_command(argv: &[Word], touches: &[FileTouch], place: &Place) -> Vec<String> {
    let mut found = Vec::new();
    let Some((name, arguments)) = argv.split_first() else { return found };
    let name = program(name);
    let has = |wanted: &[&str]| arguments.iter().any(|word| wanted.contains(&word.text.as_str()));
    match name {
        "sudo" | "doas" | "su" => found.push(format!("`{name}` runs commands as another user")),
        "shutdown" | "reboot" | "halt" | "poweroff" => found.push(format!("`{name}` stops the machine")),
        "init" | "telinit" if has(&["0", "6"]) => found.push(format!("`{name}` stops the machine")),
        "systemctl" if has(&["reboot", "poweroff", "halt", "kexec"]) => {
            found.push("stops the machine".to_owned())
        }
        "mkswap" | "swapon" | "mke2fs" => found.push(format!("`{name}` changes a disk")),
        _ if name == "mkfs" || name.starts_with("mkfs.") => found.push(format!("`{name}` formats a disk")),
        "dd" => {
            let output = arguments.iter().filter_map(|word| word.text.strip_prefix("of="));
            found.extend(
                output
                    .filter(|file| !matches!(*file, "/dev/null" | "/dev/stdout"))
                    .map(|file| format!("`dd` overwrites {file}")),
            );
        }
        "rm" if is_recursive(arguments) && arguments.iter().any(|word| is_root_or_home(word, place)) => {
            found.push("deletes the root or a home folder with all that is in it".to_owned());
        }
        "chmod"
            if has(&["777", "0777", "a+rwx", "ugo+rwx", "+rwx", "a=rwx"])
                && arguments.iter().any(|word| is_root(word, place)) =>
        {
            found.push("opens the root folder to everyone".to_owned());
        }
        _ => {}
    }
    for touch in touches {
        match (&touch.access, &touch.path) {
            (Access::Write, TouchedPath::Known(path)) if is_disk(&path.to_string()) => {
                found.push(format!("writes onto the disk device {path}"));
            }
            _ => {}
        }
    }
    found
}

fn is_recursive(arguments: &[Word]) -> bool {
    arguments.iter().any(|word| {
        let text = word.text.as_str();
        text == "--no-preserve-root"
            || (text.len() > 3 && "--recursive".starts_with(text))
            || (text.starts_with('-') && !text.starts_with("--") && text.contains(['r', 'R']))
    })
}

fn is_root(word: &Word, place: &Place) -> bool {
    let text = word.text.trim_matches('"');
    let text = text.strip_suffix("{,.}*").unwrap_or(text).trim_end_matches(['*', '.']);
    let text = if text.is_empty() { word.text.trim_end_matches('*') } else { text };
    if word.text.starts_with('-') {
        return false;
    }
    if text.starts_with('/') {
        return crate::paths::AbsPath::new(text).is_ok_and(|path| path.parent().is_none());
    }
    // `*`, `.` and `../..` mean the root where the command runs in it or near it.
    let around = word.text.chars().all(|c| matches!(c, '.' | '/' | '*'));
    let folder = word.text.trim_end_matches('*');
    around && place.directory.as_ref().is_some_and(|directory| directory.join(folder).parent().is_none())
}

fn is_root_or_home(word: &Word, place: &Place) -> bool {
    let text = word.text.replace('"', "");
    let text = text.trim_end_matches('*').trim_end_matches(['/', '.']);
    let named = matches!(text, "~" | "$HOME" | "${HOME}");
    let parts: Vec<&str> = match text.starts_with('/') {
        true => text.split('/').filter(|part| !part.is_empty() && *part != ".").collect(),
        false => Vec::new(),
    };
    let folder = matches!(parts.as_slice(), ["root" | "home" | "Users"] | ["home" | "Users", _]);
    named || folder || is_root(word, place)
}

/// Whether the command added last runs, as a shell, what one before it in the pipeline fetched.
pub(super) fn feeds_a_shell(commands: &[SimpleCommand], first: usize, begin: usize) -> bool {
    let named = |command: &SimpleCommand| {
        command.argv.first().map(|word| program(word).to_owned()).unwrap_or_default()
    };
    let fetched = commands[first..begin].iter().any(|command| FETCHERS.contains(&named(command).as_str()));
    let script =
        |command: &SimpleCommand| {
            command.argv.iter().skip(1).any(|word| {
                word.text.starts_with('-') && !word.text.starts_with("--") && word.text.contains('c')
            })
        };
    fetched && commands[begin..].iter().any(|command| is_shell(&named(command)) && !script(command))
}

/// Whether a shell or `eval` is given what a substitution fetches.
pub(super) fn fetches_a_script(command: &RawCommand) -> bool {
    let runs = |word: &RawWord| {
        let name = word.text.rsplit('/').next().unwrap_or_default();
        is_shell(name) || matches!(name, "eval" | "source" | ".")
    };
    command.words.iter().take(3).any(runs)
        && command
            .words
            .iter()
            .flat_map(|word| &word.scripts)
            .any(|script| read(script).body.iter().any(|(node, _)| starts_with_fetcher(node)))
}

fn starts_with_fetcher(node: &Node) -> bool {
    match node {
        Node::Command(command) => command
            .words
            .iter()
            .take(3)
            .any(|word| FETCHERS.contains(&word.text.rsplit('/').next().unwrap_or_default())),
        Node::Pipeline { elements, .. } => elements.iter().any(starts_with_fetcher),
        Node::Compound { body, .. } => body.iter().any(|(node, _)| starts_with_fetcher(node)),
    }
}
