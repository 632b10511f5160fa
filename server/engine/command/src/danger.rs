//! The floor: commands that no mode runs.
//!
//! Rule: judged by the program a command really names, never by text; a word in a message is only a word.

mod windows;

use std::borrow::Cow;

use super::lexer::RawWord;
use super::reader::{RawCommand, ScriptNode, ShellScript, WordRole, read};
use super::wrappers::{is_shell, program};
use super::{CommandWord, FileAccess, FileTouch, SimpleCommand, TouchedPath};
use crate::place::WorkingFolder;
use kode_base::path_style::{PathStyle, is_drive};

const FETCHERS: [&str; 2] = ["curl", "wget"];
/// Folders right below the root that a system does not live without.
const SYSTEM: [&str; 23] = [
    "bin",
    "boot",
    "dev",
    "etc",
    "home",
    "lib",
    "lib32",
    "lib64",
    "opt",
    "proc",
    "root",
    "sbin",
    "srv",
    "sys",
    "usr",
    "var",
    "Applications",
    "Library",
    "System",
    "Users",
    "Volumes",
    "cores",
    "private",
];
/// Folders that macOS keeps in `/private`; their names at the root are links.
const OF_PRIVATE: [&str; 3] = ["etc", "tmp", "var"];
const DISKS: [&str; 14] = [
    "sd", "hd", "vd", "xvd", "nvme", "mmcblk", "disk", "rdisk", "dm-", "mapper/", "md", "loop", "nbd", "mem",
];

/// Whether a path names a disk.
pub(super) fn is_disk(path: &str) -> bool {
    let names = names_below(Vec::new(), path);
    let Some((folder, device)) = names.split_first() else { return false };
    let device = device.join("/");
    path.starts_with('/') && folder == "dev" && DISKS.iter().any(|disk| device.starts_with(disk))
}

/// The reasons why no mode runs a PowerShell command, by its text alone.
pub(super) fn of_powershell(line: &str) -> Vec<String> {
    windows::of_script(line)
}

/// The part of the line that matters to a command.
pub(super) struct LineContext<'a> {
    /// Whether a `cd` before it may have led to the root or a home folder.
    pub strays: bool,
    /// The possible values of variables.
    pub values: &'a [String],
}

/// Whether a `cd` leads to the root or a home folder.
pub(super) fn strays(argv: &[CommandWord], place: &WorkingFolder) -> bool {
    let operands: Vec<&CommandWord> = argv.iter().skip(1).filter(|word| word.text != "--").collect();
    argv.first().is_some_and(|name| matches!(name.text.as_str(), "cd" | "pushd"))
        && operands.iter().all(|word| is_precious(word, place))
}

/// The reason why no mode runs this command.
pub(super) fn of_command(
    argv: &[CommandWord],
    touches: &[FileTouch],
    place: &WorkingFolder,
    around: &LineContext<'_>,
) -> Vec<String> {
    let mut found = Vec::new();
    let Some((named, arguments)) = argv.split_first() else { return found };
    // A file system can ignore case, and a Linux beside Windows starts its programs: `RM` and `rm.exe` are `rm` there.
    let name = PathStyle::Windows.program_name(&named.text).to_ascii_lowercase();
    let name = name.as_str();
    found.extend(raises_rights(name, arguments));
    let has = |wanted: &[&str]| arguments.iter().any(|word| wanted.contains(&word.text.as_str()));
    match name {
        "sudo" | "doas" | "su" | "pkexec" | "run0" => {
            found.push(format!("`{name}` runs commands as another user"))
        }
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
        "wipefs" | "blkdiscard" | "sfdisk" | "cfdisk" | "gdisk" | "sgdisk" | "parted" => {
            found.push(format!("`{name}` changes a disk"));
        }
        "fdisk" if !has(&["-l", "--list"]) => found.push("`fdisk` changes a disk".to_owned()),
        _ if (name == "rm" || is_forced_delete(named, arguments))
            && is_recursive(arguments)
            && arguments.iter().any(|word| deletes_all(word, place, around)) =>
        {
            found.push("deletes the root or a home folder with all that is in it".to_owned());
        }
        "find" if deletes(arguments) && roots(arguments).any(|word| deletes_all(word, place, around)) => {
            found.push("deletes the root or a home folder with all that is in it".to_owned());
        }
        "chmod" | "chown" | "chgrp"
            if is_recursive(arguments) && arguments.iter().any(|word| is_root(word, place)) =>
        {
            found.push(format!("`{name}` changes who may use all files there are"));
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
            (FileAccess::Write, TouchedPath::Known(path)) if is_disk(&path.to_string()) => {
                found.push(format!("writes onto the disk device {path}"));
            }
            _ => {}
        }
    }
    // Programs of both systems, such as `shutdown`, have one reason.
    if found.is_empty() {
        found.extend(windows::of_command(named, arguments));
    }
    found
}

/// The part of a command that gives programs more rights than their user has, or takes the machine's protection away.
fn raises_rights(name: &str, arguments: &[CommandWord]) -> Option<String> {
    let has = |wanted: &[&str]| arguments.iter().any(|word| wanted.contains(&word.text.as_str()));
    let sets_user = || arguments.iter().any(|word| sets_user_id(&word.text));
    match name {
        "insmod" | "modprobe" | "kmod" => Some(format!("`{name}` loads code into the kernel")),
        "chmod" if sets_user() => Some("lets a program run with its owner's rights".to_owned()),
        "install" if arguments.windows(2).any(|pair| pair[0].text == "-m" && sets_user_id(&pair[1].text)) => {
            Some("installs a program that runs with its owner's rights".to_owned())
        }
        "iptables" | "ip6tables" if has(&["-F", "--flush", "-X", "--delete-chain"]) => {
            Some("deletes the rules of the firewall".to_owned())
        }
        "nft" if has(&["flush"]) => Some("deletes the rules of the firewall".to_owned()),
        "ufw" if has(&["disable", "reset"]) => Some("switches the firewall off".to_owned()),
        _ => None,
    }
}

/// Whether a mode of `chmod` sets the bit with which a program runs as its owner.
fn sets_user_id(mode: &str) -> bool {
    let octal = mode.len() >= 4 && mode.bytes().all(|byte| matches!(byte, b'0'..=b'7'));
    if octal {
        let special = mode.as_bytes()[mode.len() - 4] - b'0';
        return special & 4 != 0;
    }
    mode.split(',').any(|clause| {
        let Some(at) = clause.find(['+', '=']) else { return false };
        let (who, given) = (&clause[..at], &clause[at + 1..]);
        let owner = who.is_empty() || who.contains(['u', 'a']);
        owner
            && who.bytes().all(|byte| b"ugoa".contains(&byte))
            && is_permissions(given)
            && given.contains('s')
    })
}

fn is_permissions(text: &str) -> bool {
    text.bytes().all(|byte| b"rwxXst".contains(&byte))
}

/// Whether a program that a variable names is given the options of a delete without questions.
fn is_forced_delete(name: &CommandWord, arguments: &[CommandWord]) -> bool {
    let forced = |word: &CommandWord| {
        word.text == "--force"
            || word.text.starts_with('-') && !word.text.starts_with("--") && word.text.contains('f')
    };
    !name.literal && name.text.contains('$') && arguments.iter().any(forced)
}

fn is_recursive(arguments: &[CommandWord]) -> bool {
    arguments.iter().any(|word| {
        let text = word.text.as_str();
        text == "--no-preserve-root"
            || (text.len() > 3 && "--recursive".starts_with(text))
            || (text.starts_with('-') && !text.starts_with("--") && text.contains(['r', 'R']))
    })
}

fn is_root(word: &CommandWord, place: &WorkingFolder) -> bool {
    let text = word.text.trim_matches('"');
    let text = text.strip_suffix("{,.}*").unwrap_or(text).trim_end_matches(['*', '.']);
    let text = if text.is_empty() { word.text.trim_end_matches('*') } else { text };
    if word.text.starts_with('-') {
        return false;
    }
    if text.starts_with('/') {
        return names_below(Vec::new(), text).is_empty();
    }
    // `*`, `.` and `../..` mean the root where the command runs in it or near it.
    let around = word.text.chars().all(|c| matches!(c, '.' | '/' | '*'));
    let folder = word.text.trim_end_matches('*');
    let Some(directory) = place.directory.as_ref().map(ToString::to_string).filter(|_| around) else {
        return false;
    };
    let names = names_below(PathStyle::HERE.names(&directory), folder);
    names.len() == depth_of_root(&names)
}

/// The folders a `find` begins with.
fn roots(arguments: &[CommandWord]) -> impl Iterator<Item = &CommandWord> {
    let flags = |word: &&CommandWord| matches!(word.text.as_str(), "-L" | "-P" | "-H");
    arguments.iter().skip_while(flags).take_while(|word| !word.text.starts_with(['-', '(', '!']))
}

/// Whether a `find` deletes what it finds.
fn deletes(arguments: &[CommandWord]) -> bool {
    let runs = |word: &CommandWord| matches!(word.text.as_str(), "-exec" | "-execdir" | "-ok" | "-okdir");
    arguments.iter().any(|word| word.text == "-delete")
        || arguments.windows(2).any(|pair| runs(&pair[0]) && matches!(program(&pair[1]), "rm" | "shred"))
}

/// Whether deleting a word deletes something that must never be deleted.
fn deletes_all(word: &CommandWord, place: &WorkingFolder, around: &LineContext<'_>) -> bool {
    let bare = word.text.replace(['"', '{', '}'], "");
    let variable = bare.strip_prefix('$').filter(|name| super::reader::is_variable(name)).is_some();
    let valued = |value: &String| is_precious(&CommandWord::literal(value.clone()), place);
    let everything = word.text.chars().all(|c| matches!(c, '.' | '/' | '*')) && !word.text.starts_with('/');
    is_precious(word, place)
        || variable && around.values.iter().any(valued)
        || around.strays && place.directory.is_none() && everything && !word.text.is_empty()
}

/// Whether a word names the root, a home or a folder of the system, or all that is in one.
fn is_precious(word: &CommandWord, place: &WorkingFolder) -> bool {
    let text = word.text.replace(['"', '\''], "");
    let text = text.strip_suffix("{,.}*").unwrap_or(&text);
    let text = text.trim_end_matches('*');
    let ends = text.strip_suffix("/.").unwrap_or(text).trim_end_matches('/');
    let user = ends.strip_prefix('~').is_some_and(|user| {
        user.is_empty()
            || user.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'))
                && !user.starts_with('-')
    });
    if user || matches!(ends, "$HOME" | "${HOME}") || is_root(word, place) || windows::is_precious(&word.text)
    {
        return true;
    }
    // `*` and `.` mean the folder the command runs in.
    let around = !text.starts_with('/') && text.chars().all(|c| matches!(c, '.' | '/'));
    let directory = place.directory.as_ref().map(ToString::to_string);
    let names = match &directory {
        _ if text.starts_with('/') => names_below(Vec::new(), text),
        Some(directory) if around && !word.text.is_empty() => {
            names_below(PathStyle::HERE.names(directory), text)
        }
        _ => return false,
    };
    if depth_of_root(&names) > 0 {
        // As below, a home counts only by its name.
        return names.len() < 3 && windows::is_precious(&names.join("/"));
    }
    let parts: Vec<&str> = names.iter().map(AsRef::as_ref).collect();
    match as_at_the_root(&parts) {
        [] => true,
        [top] => SYSTEM.contains(top),
        // A home is given by its name: a session may run in one and delete what it made there.
        ["home" | "Users", _] => text.starts_with('/'),
        _ => false,
    }
}

/// The names of a path of bash from the root down, by its text alone: below `base`, without what `.` and `..` take away.
fn names_below<'t>(base: Vec<Cow<'t, str>>, text: &'t str) -> Vec<Cow<'t, str>> {
    let mut names = base;
    for name in text.split('/') {
        match name {
            "" | "." => {}
            ".." => names.truncate(depth_of_root(&names).max(names.len().saturating_sub(1))),
            name => names.push(Cow::Borrowed(name)),
        }
    }
    names
}

/// The number of names that make the root: one where it is a drive or a share.
fn depth_of_root(names: &[Cow<'_, str>]) -> usize {
    usize::from(names.first().is_some_and(|first| is_drive(first) || first.starts_with('\\')))
}

/// The path at the root that macOS has for one in `/private` and in the volume of the user's data.
fn as_at_the_root<'p, 'w>(parts: &'p [&'w str]) -> &'p [&'w str] {
    let below = match parts {
        ["System", "Volumes", "Data", below @ ..] => below,
        other => other,
    };
    match below {
        ["private", below @ ..] if below.first().is_some_and(|first| OF_PRIVATE.contains(first)) => below,
        other => other,
    }
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
    let runs =
        |command: &SimpleCommand| is_shell(&named(command)) && !script(command) || reads_program(command);
    fetched && commands[begin..].iter().any(runs)
}

/// Whether an interpreter takes its program from its piped input.
fn reads_program(command: &SimpleCommand) -> bool {
    let Some((name, arguments)) = command.argv.split_first() else { return false };
    let name = program(name);
    let interprets = name.starts_with("python")
        || matches!(name, "node" | "perl" | "ruby" | "php" | "deno" | "bun" | "lua");
    let given = |text: &str| {
        text.starts_with("--")
            || text.starts_with('-')
                && text.len() > 1
                && text.contains(['c', 'm', 'e', 'E', 'p', 'n', 'r', 'v', 'V'])
    };
    let first = arguments
        .iter()
        .map(|word| word.text.as_str())
        .find(|text| *text == "-" || !text.starts_with('-') || given(text));
    interprets && matches!(first, None | Some("-"))
}

/// The scripts that `echo` and `printf` write for a shell further on in the pipeline.
pub(super) fn echoed(commands: &[SimpleCommand], first: usize, begin: usize) -> Vec<String> {
    let named = |command: &SimpleCommand| {
        command.argv.first().map(|word| program(word).to_owned()).unwrap_or_default()
    };
    if !commands[begin..].iter().any(|command| is_shell(&named(command))) {
        return Vec::new();
    }
    let writers =
        commands[first..begin].iter().filter(|command| matches!(named(command).as_str(), "echo" | "printf"));
    let flags = |word: &&CommandWord| word.text.starts_with('-');
    writers
        .map(|command| {
            let words = command.argv.iter().skip(1).skip_while(flags).map(|word| word.text.as_str());
            words.collect::<Vec<_>>().join(" ").replace("\\n", "\n")
        })
        .collect()
}

/// Whether one of these scripts begins with a fetch from the network.
pub(super) fn fetches(scripts: &[String]) -> bool {
    scripts.iter().any(|script| read(script).body.iter().any(|(node, _)| starts_with_fetcher(node)))
}

/// The words of a script that belong to no command: the values of its loops.
pub(super) fn loop_values(text: &str, script: &ShellScript) -> Vec<String> {
    fn starts(node: &ScriptNode, found: &mut Vec<usize>) {
        match node {
            ScriptNode::Command(command) => {
                found.extend(command.words.iter().chain(&command.assignments).map(|word| word.start));
            }
            ScriptNode::Pipeline { elements, .. } => elements.iter().for_each(|node| starts(node, found)),
            ScriptNode::Compound { body, .. } => body.iter().for_each(|(node, _)| starts(node, found)),
        }
    }
    let mut taken = Vec::new();
    script.body.iter().for_each(|(node, _)| starts(node, &mut taken));
    taken.sort_unstable();
    let free = script.spans.iter().filter(|span| span.part == WordRole::Argument);
    free.filter(|span| taken.binary_search(&span.start).is_err())
        .filter_map(|span| text.get(span.start..span.end).map(str::to_owned))
        .collect()
}

/// Whether a shell or `eval` is given what a substitution fetches.
pub(super) fn fetches_a_script(command: &RawCommand) -> bool {
    let runs = |word: &RawWord| {
        let name = PathStyle::HERE.program_name(&word.text);
        is_shell(name) || matches!(name, "eval" | "source" | ".")
    };
    command.words.iter().take(3).any(runs) && command.words.iter().any(|word| fetches(&word.scripts))
}

fn starts_with_fetcher(node: &ScriptNode) -> bool {
    match node {
        ScriptNode::Command(command) => command
            .words
            .iter()
            .take(3)
            .any(|word| FETCHERS.contains(&PathStyle::HERE.program_name(&word.text))),
        ScriptNode::Pipeline { elements, .. } => elements.iter().any(starts_with_fetcher),
        ScriptNode::Compound { body, .. } => body.iter().any(|(node, _)| starts_with_fetcher(node)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_of_bash_ends_at_the_root_of_each_system() {
        for (style, folder, text, expected, is_root) in [
            (PathStyle::Unix, "/a/b", "..", &["a"][..], false),
            (PathStyle::Unix, "/a/b", "../../..", &[], true),
            (PathStyle::Unix, "/a", "./x//y/../z", &["a", "x", "z"], false),
            (PathStyle::Windows, r"C:\Users\x", "..", &["C:", "Users"], false),
            (PathStyle::Windows, r"c:\Users\x", "../../..", &["C:"], true),
            (PathStyle::Windows, r"\\server\share\a", "../..", &[r"\\server\share"], true),
        ] {
            let names = names_below(style.names(folder), text);
            assert_eq!(names, expected, "{folder} {text}");
            assert_eq!(names.len() == depth_of_root(&names), is_root, "{folder} {text}");
        }
    }

    #[test]
    fn a_disk_is_named_by_its_device_however_the_path_is_written() {
        for disk in ["/dev/sda", "/dev//nvme0n1", "/etc/../dev/mapper/root", "/./dev/./vda1"] {
            assert!(is_disk(disk), "{disk}");
        }
        for other in ["dev/sda", "/dev", "/dev/null", "/dev/mapper", "/home/dev/sda", "/dev/../sda"] {
            assert!(!is_disk(other), "{other}");
        }
    }
}
