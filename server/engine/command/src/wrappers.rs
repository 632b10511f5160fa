//! Programs that run other programs: what they run.
//!
//! Rule: an option that is not known is read both ways, with and without a value, so that no reading hides a
//! command; what cannot be found in the text is `Anything`.

use super::lexer::word;
use super::reader::{is_assignment, is_variable};
use super::{CommandWord, VariableAssignment};
use kode_base::path_style::PathStyle;

/// The command of a wrapper.
#[derive(Debug)]
pub(super) enum InnerCommand {
    Command {
        assignments: Vec<VariableAssignment>,
        argv: Vec<CommandWord>,
    },
    Script(String),
    /// The unknown parts.
    Anything(&'static str),
}

/// The known facts about a command as a wrapper.
#[derive(Debug)]
pub(super) struct WrapperUse {
    pub inner: Vec<InnerCommand>,
    /// Whether it is a wrapper at all.
    pub wraps: bool,
    /// Whether it does nothing but run the inner command.
    pub transparent: bool,
    /// Whether it is a shell that does nothing but run one script of plain text.
    pub runs_script: bool,
    /// Whether the inner command runs in the same folder.
    pub keeps_directory: bool,
}

impl WrapperUse {
    /// That of a command that is no wrapper.
    pub(super) fn nothing() -> Self {
        Self {
            inner: Vec::new(),
            wraps: false,
            transparent: false,
            runs_script: false,
            keeps_directory: true,
        }
    }
}

struct WrapperSyntax {
    name: &'static str,
    /// Options that take a value.
    values: &'static [&'static str],
    /// Options without one.
    flags: &'static [&'static str],
    /// How many operands stand before the command.
    operands: usize,
    transparent: bool,
}

const fn plain(
    name: &'static str,
    values: &'static [&'static str],
    flags: &'static [&'static str],
    operands: usize,
) -> WrapperSyntax {
    WrapperSyntax { name, values, flags, operands, transparent: true }
}

const fn other(
    name: &'static str,
    values: &'static [&'static str],
    flags: &'static [&'static str],
    operands: usize,
) -> WrapperSyntax {
    WrapperSyntax { name, values, flags, operands, transparent: false }
}

const WRAPPERS: [WrapperSyntax; 46] = [
    plain(
        "timeout",
        &["-k", "--kill-after", "-s", "--signal"],
        &["--foreground", "--preserve-status", "-v", "--verbose"],
        1,
    ),
    plain("time", &[], &["-p"], 0),
    plain("nice", &["-n", "--adjustment"], &[], 0),
    plain("nohup", &[], &[], 0),
    plain("stdbuf", &["-i", "-o", "-e", "--input", "--output", "--error"], &[], 0),
    plain("command", &[], &["-p"], 0),
    plain("builtin", &[], &[], 0),
    plain("noglob", &[], &[], 0),
    plain(
        "xargs",
        &["-n", "-I", "-L", "-P", "-s", "-d", "--max-args", "--max-lines", "--max-procs", "--delimiter"],
        &["-0", "-r", "-x", "-0r", "-r0", "--null", "--no-run-if-empty"],
        0,
    ),
    other("env", &["-u", "--unset", "-C", "--chdir"], &["-i", "-", "-0", "--ignore-environment", "-v"], 0),
    other(
        "sudo",
        &["-u", "-g", "-h", "-p", "-C", "-D", "-R", "-T", "-U", "-r", "-t"],
        &["-n", "-E", "-H", "-S", "-k", "-i", "-s", "-b", "-A"],
        0,
    ),
    other("doas", &["-u", "-C", "-a"], &["-n", "-s", "-L"], 0),
    other("pkexec", &["--user"], &[], 0),
    other("setsid", &[], &["-c", "-f", "-w", "--fork", "--wait", "--ctty"], 0),
    other("ionice", &["-c", "-n", "-p", "--class", "--classdata"], &["-t"], 0),
    other("chrt", &["-T", "-P", "-D"], &["-f", "-r", "-o", "-b", "-i"], 1),
    other("taskset", &[], &["-c", "-a"], 1),
    other("flock", &["-w", "--timeout", "-E"], &["-n", "-x", "-s", "-e", "-u", "-o", "-F", "--nonblock"], 1),
    other("watch", &["-n", "--interval"], &["-d", "-t", "-b", "-e", "-g", "-c", "-x", "-p"], 0),
    other(
        "strace",
        &["-e", "-o", "-p", "-s", "-u", "-E", "-a", "-P"],
        &["-f", "-ff", "-c", "-tt", "-y", "-v"],
        0,
    ),
    other("ltrace", &["-e", "-o", "-p", "-s", "-u", "-a"], &["-f", "-c", "-S"], 0),
    other("unshare", &[], &["-r", "-n", "-m", "-p", "-f", "-U"], 0),
    other("chroot", &["--userspec", "--groups"], &[], 1),
    other("nsenter", &["-t", "--target"], &["-a", "-m", "-n", "-p", "-u", "-i"], 0),
    other(
        "systemd-run",
        &["-p", "--property", "--unit", "-u"],
        &["--user", "--scope", "-t", "--pty", "--wait", "-q"],
        0,
    ),
    other("exec", &["-a"], &["-c", "-l"], 0),
    other("busybox", &[], &[], 0),
    other("toybox", &[], &[], 0),
    other("unbuffer", &[], &["-p"], 0),
    other("caffeinate", &["-t", "-w"], &["-d", "-i", "-m", "-s", "-u"], 0),
    other("xvfb-run", &["-n", "-s", "-e", "-f"], &["-a"], 0),
    other("proxychains", &["-f"], &["-q"], 0),
    other("coproc", &[], &[], 0),
    other("prlimit", &[], &[], 0),
    other("setpriv", &["--reuid", "--regid", "--groups"], &["--no-new-privs", "--clear-groups"], 0),
    other("linux32", &[], &["-R", "-3"], 0),
    other("linux64", &[], &["-R", "-3"], 0),
    other("numactl", &["-m", "-N", "-C", "-i", "-p"], &["-l", "-a"], 0),
    other("fakeroot", &["-l", "-s", "-i", "-b", "--lib", "--faked"], &["-u"], 0),
    other("dbus-run-session", &["--config-file", "--dbus-daemon"], &[], 0),
    other("systemd-inhibit", &["--what", "--who", "--why", "--mode"], &[], 0),
    other("firejail", &[], &["--quiet"], 0),
    other("cross-env", &[], &[], 0),
    other("cross-env-shell", &[], &[], 0),
    other("dotenv", &["-e", "-f", "-c"], &["-o", "-q"], 0),
    other("parallel", &["-j", "-P", "--jobs"], &["-k", "--dry-run"], 0),
];

const SHELLS: [&str; 10] = ["sh", "bash", "zsh", "dash", "ksh", "ash", "mksh", "fish", "rbash", "busybox-sh"];
const JOINING: [&str; 4] = ["watch", "parallel", "coproc", "cross-env-shell"];
/// Programs of a project's package manager that run another program: with a subcommand, or by themselves.
const LAUNCHERS: [(&str, &[&str]); 12] = [
    ("npx", &[]),
    ("bunx", &[]),
    ("pnpx", &[]),
    ("uvx", &[]),
    ("npm", &["exec", "x"]),
    ("pnpm", &["exec", "dlx"]),
    ("yarn", &["exec", "dlx"]),
    ("bun", &["x"]),
    ("bundle", &["exec"]),
    ("uv", &["run"]),
    ("poetry", &["run"]),
    ("pipenv", &["run"]),
];
/// Wrappers with options of such different kinds that the command may begin at any of their arguments.
const LOOSE: [&str; 2] = ["bwrap", "setarch"];
/// Variables whose value is a command.
const PROGRAM_VARIABLES: [&str; 13] = [
    "GIT_EDITOR",
    "GIT_SEQUENCE_EDITOR",
    "GIT_SSH_COMMAND",
    "GIT_SSH",
    "GIT_PAGER",
    "GIT_EXTERNAL_DIFF",
    "GIT_ASKPASS",
    "PAGER",
    "MANPAGER",
    "EDITOR",
    "VISUAL",
    "BROWSER",
    "PROMPT_COMMAND",
];

/// The program's name without its folder, and without its end on Windows.
pub(super) fn program(word: &CommandWord) -> &str {
    PathStyle::HERE.program_name(&word.text)
}

/// Whether this is the name of a shell.
pub(super) fn is_shell(name: &str) -> bool {
    SHELLS.contains(&name)
}

/// Finds what a command runs in its turn; here-documents are what it reads.
pub(super) fn look_through(
    argv: &[CommandWord],
    assignments: &[VariableAssignment],
    documents: &[String],
) -> WrapperUse {
    let mut found = by_name(argv, documents);
    let programs = assignments.iter().filter(|set| PROGRAM_VARIABLES.contains(&set.name.as_str()));
    found.inner.extend(programs.map(|set| InnerCommand::Script(set.value.text.clone())));
    found
}

fn by_name(argv: &[CommandWord], documents: &[String]) -> WrapperUse {
    let mut found = WrapperUse {
        inner: Vec::new(),
        wraps: false,
        transparent: false,
        runs_script: false,
        keeps_directory: true,
    };
    let Some((name, arguments)) = argv.split_first() else { return found };
    let name = program(name);
    match name {
        _ if is_shell(name) => {
            found.inner = shell(arguments, documents);
            found.wraps = found.inner.iter().any(|inner| !matches!(inner, InnerCommand::Anything(_)))
                || found.inner.len() == 1;
            found.runs_script = documents.is_empty() && runs_one_script(argv);
        }
        "eval" => found.inner = vec![InnerCommand::Script(join(arguments))],
        "trap" => {
            found.inner = arguments
                .first()
                .map(|script| InnerCommand::Script(script.text.clone()))
                .into_iter()
                .collect()
        }
        "find" => found.inner = blocks(arguments, &["-exec", "-execdir", "-ok", "-okdir"], &[";", "+"]),
        "fd" | "fdfind" => found.inner = blocks(arguments, &["-x", "-X", "--exec", "--exec-batch"], &[";"]),
        "su" | "runuser" | "script" => {
            found.inner = after_option(arguments, &["-c", "--command", "--session-command"]);
            found.inner.append(&mut after_cluster(arguments));
            if name == "runuser" {
                found.inner.append(&mut from_each(arguments));
            }
        }
        "start-stop-daemon" => found.inner = daemon(arguments),
        "direnv" => {
            found.inner = match arguments {
                [exec, _, rest @ ..] if exec.text == "exec" => command(rest).into_iter().collect(),
                _ => Vec::new(),
            }
        }
        "kode-ls" => {
            let mark = arguments.iter().position(|word| word.text == "--");
            let sandbox = arguments.first().is_some_and(|word| word.text == "sandbox");
            let rest = mark.filter(|_| sandbox).and_then(|mark| arguments.get(mark + 1..));
            found.inner = rest.and_then(command).into_iter().collect();
        }
        _ if LOOSE.contains(&name) || name.starts_with("ld-linux") || name.starts_with("ld-musl") => {
            found.inner = from_each(arguments);
        }
        _ if let Some(inner) = launched(name, arguments) => {
            // A rule for a prefix of it covers what it runs, as a rule for `npm run` does.
            found.inner = inner;
            return found;
        }
        "ssh" | "rsh" => {
            found.keeps_directory = false;
            found.inner = remote(arguments);
        }
        "docker" | "podman" | "nerdctl" | "kubectl" => {
            found.keeps_directory = false;
            found.inner = contained(arguments);
        }
        "git" => found.inner = git(arguments),
        "command" if matches!(arguments.first(), Some(flag) if flag.text == "-v" || flag.text == "-V") => {}
        _ => {
            if let Some(wrapper) = WRAPPERS.iter().find(|wrapper| wrapper.name == name) {
                found.wraps = true;
                through(wrapper, arguments, &mut found);
            }
        }
    }
    found.wraps |= !found.inner.is_empty();
    found
}

fn through(wrapper: &WrapperSyntax, arguments: &[CommandWord], found: &mut WrapperUse) {
    let mut at = 0;
    let mut uncertain = false;
    while let Some(word) = arguments.get(at).filter(|word| word.text.starts_with('-')) {
        at += 1;
        let (name, attached) = match word.text.split_once('=') {
            Some((name, _)) if name.starts_with("--") => (name, true),
            _ => (word.text.as_str(), false),
        };
        if name == "--" {
            break;
        }
        if matches!(name, "-C" | "--chdir" | "-D" | "-R" | "-i" | "--login") || name.starts_with("--chdir") {
            found.keeps_directory = wrapper.transparent;
        }
        if matches!(name, "-S" | "-c" | "--split-string" | "--command")
            && matches!(wrapper.name, "env" | "flock")
        {
            let value = word.text.split_once('=').map(|(_, value)| value.to_owned());
            found.inner.push(InnerCommand::Script(value.unwrap_or_else(|| join(&arguments[at..]))));
            return;
        }
        if wrapper.values.contains(&name) {
            at += usize::from(!attached);
        } else if !wrapper.flags.contains(&name) && !attached {
            let short_value = wrapper.values.iter().any(|value| value.len() == 2 && name.starts_with(value));
            let number = name[1..].bytes().all(|byte| byte.is_ascii_digit()) && wrapper.name == "nice";
            uncertain |= !short_value && !number;
        }
    }
    found.transparent = wrapper.transparent && !uncertain;
    let mut starts = vec![at + wrapper.operands];
    if uncertain {
        starts.push(at + wrapper.operands + 1);
    }
    if wrapper.name == "env" && arguments.iter().any(|word| word.text.starts_with("-S")) {
        found.inner.push(InnerCommand::Script(join(arguments).replacen("-S", "", 1)));
    }
    for start in starts {
        let rest = arguments.get(start..).unwrap_or_default();
        let mut inner = command(rest);
        if wrapper.name == "xargs"
            && let Some(InnerCommand::Command { argv, .. }) = &mut inner
        {
            let mark = replaced(&arguments[..start.min(arguments.len())]);
            for word in argv.iter_mut().filter(|word| mark.is_some_and(|mark| word.text.contains(mark))) {
                (word.literal, word.open) = (false, true);
            }
            argv.push(CommandWord { text: "...".to_owned(), literal: false, open: true });
        }
        if JOINING.contains(&wrapper.name) && !rest.is_empty() {
            found.inner.push(InnerCommand::Script(join(rest)));
        }
        if wrapper.name == "flock" && rest.first().is_some_and(|word| word.text == "-c") {
            found.inner.push(InnerCommand::Script(join(&rest[1..])));
        }
        if inner.as_ref().is_some_and(is_reserved) {
            found.inner.push(InnerCommand::Anything("a reserved word is in the place of a program"));
        }
        found.inner.extend(inner);
    }
}

/// The placeholder of `xargs -I`.
fn replaced(options: &[CommandWord]) -> Option<&str> {
    options.iter().enumerate().find_map(|(at, word)| match word.text.strip_prefix("-I")? {
        "" => options.get(at + 1).map(|mark| mark.text.as_str()),
        mark => Some(mark),
    })
}

/// Whether a reserved word is where a program is named, so that the shell reads something else.
fn is_reserved(inner: &InnerCommand) -> bool {
    const WORDS: [&str; 19] = [
        "if", "then", "else", "elif", "fi", "for", "in", "do", "done", "while", "until", "case", "esac",
        "select", "function", "{", "}", "!", "[[",
    ];
    match inner {
        InnerCommand::Command { argv, .. } => {
            argv.first().is_some_and(|name| WORDS.contains(&name.text.as_str()))
        }
        InnerCommand::Script(_) | InnerCommand::Anything(_) => false,
    }
}

/// A command with the assignments before it.
fn command(words: &[CommandWord]) -> Option<InnerCommand> {
    let set = words.iter().take_while(|word| is_assignment(&self::word(&word.text, 0))).count();
    let assignments = words[..set]
        .iter()
        .filter_map(|word| {
            let (name, value) = word.text.split_once('=')?;
            let value = CommandWord { text: value.to_owned(), literal: word.literal, open: false };
            is_variable(name).then(|| VariableAssignment { name: name.to_owned(), value })
        })
        .collect();
    let argv = words[set..].to_vec();
    (!argv.is_empty()).then_some(InnerCommand::Command { assignments, argv })
}

fn join(words: &[CommandWord]) -> String {
    words.iter().map(|word| word.text.as_str()).collect::<Vec<_>>().join(" ")
}

fn shell(arguments: &[CommandWord], documents: &[String]) -> Vec<InnerCommand> {
    let mut inner: Vec<InnerCommand> = documents.iter().cloned().map(InnerCommand::Script).collect();
    let mut at = 0;
    while let Some(word) = arguments.get(at) {
        if word.open {
            inner.push(InnerCommand::Anything("the shell may be told to run anything"));
            return inner;
        }
        let text = word.text.as_str();
        let letters = text.starts_with(['-', '+']) && !text.starts_with("--") && text.len() > 1;
        if letters && text.starts_with('-') && text.contains('c') {
            // The script is the first argument that is no option.
            let script = arguments[at + 1..].iter().find(|word| !word.text.starts_with(['-', '+']));
            match script {
                Some(script) if script.literal => inner.push(InnerCommand::Script(script.text.clone())),
                Some(script) => {
                    inner.push(InnerCommand::Script(script.text.clone()));
                    inner.push(InnerCommand::Anything("the script is not plain text"));
                }
                None => {}
            }
            return inner;
        }
        if letters && text.ends_with(['o', 'O']) || matches!(text, "--rcfile" | "--init-file") {
            inner.push(InnerCommand::Anything("the shell is started with options that change what it runs"));
            at += 1;
        } else if text.starts_with("--") && matches!(text, "--version" | "--help") {
            return inner;
        } else if letters && text.contains('s') || text == "-" {
            break;
        } else if !text.starts_with('-') {
            // A script file: what it holds is not checked, like any program's.
            return inner;
        }
        at += 1;
    }
    if inner.is_empty() {
        inner.push(InnerCommand::Anything("a shell runs whatever it reads"));
    }
    inner
}

/// Whether a shell does nothing but run a script that is plain text and that the reader reads as this shell does.
fn runs_one_script(argv: &[CommandWord]) -> bool {
    // A file in the working folder may bear the name of a shell.
    matches!(argv, [name, flag, script] if matches!(name.text.as_str(), "sh" | "bash" | "dash")
        && matches!(flag.text.as_str(), "-c" | "-lc")
        && script.literal)
}

/// The commands between an option and its end mark.
fn blocks(arguments: &[CommandWord], openers: &[&str], ends: &[&str]) -> Vec<InnerCommand> {
    let mut inner = Vec::new();
    for (at, word) in arguments.iter().enumerate() {
        if openers.contains(&word.text.as_str()) {
            let rest = &arguments[at + 1..];
            let length =
                rest.iter().position(|word| ends.contains(&word.text.as_str())).unwrap_or(rest.len());
            let argv: Vec<CommandWord> = rest[..length].iter().map(placeholder).collect();
            inner.extend(command(&argv));
        }
    }
    inner
}

fn placeholder(word: &CommandWord) -> CommandWord {
    if word.text.contains("{}") {
        CommandWord { text: word.text.clone(), literal: false, open: true }
    } else {
        word.clone()
    }
}

fn after_option(arguments: &[CommandWord], options: &[&str]) -> Vec<InnerCommand> {
    let mut inner = Vec::new();
    for (at, word) in arguments.iter().enumerate() {
        if options.contains(&word.text.as_str()) {
            inner.extend(arguments.get(at + 1).map(|script| InnerCommand::Script(script.text.clone())));
        } else if let Some((name, script)) = word.text.split_once('=')
            && options.contains(&name)
        {
            inner.push(InnerCommand::Script(script.to_owned()));
        }
    }
    inner
}

/// The script after an option cluster that ends in `c`: `script -qc 'x'`.
fn after_cluster(arguments: &[CommandWord]) -> Vec<InnerCommand> {
    let cluster = |text: &str| text.starts_with('-') && !text.starts_with("--") && text.contains('c');
    let mut inner = Vec::new();
    for (at, word) in arguments.iter().enumerate().filter(|(_, word)| cluster(&word.text)) {
        let attached = word.text.split_once('c').map_or("", |(_, script)| script);
        if !attached.is_empty() {
            inner.push(InnerCommand::Script(attached.to_owned()));
        }
        inner.extend(arguments.get(at + 1).map(|script| InnerCommand::Script(script.text.clone())));
    }
    inner
}

/// The commands that could begin at each of the first arguments; the last of these readings takes the rest flat.
fn from_each(arguments: &[CommandWord]) -> Vec<InnerCommand> {
    const MOST: usize = 48;
    let operands = (0..arguments.len()).filter(|at| !arguments[*at].text.starts_with('-'));
    let mut inner: Vec<InnerCommand> =
        operands.take(MOST).filter_map(|at| arguments.get(at..).and_then(command)).collect();
    if arguments.len() > MOST {
        inner.push(InnerCommand::Anything("it has too many arguments to tell which of them are the command"));
    }
    inner
}

/// `start-stop-daemon --start -x PROGRAM -- ARGUMENTS`.
fn daemon(arguments: &[CommandWord]) -> Vec<InnerCommand> {
    let mark = arguments.iter().position(|word| word.text == "--").unwrap_or(arguments.len());
    let rest = arguments.get(mark + 1..).unwrap_or_default();
    let mut inner = Vec::new();
    for (at, word) in arguments[..mark].iter().enumerate() {
        let (option, attached) = match word.text.split_once('=') {
            Some((option, value)) => (option, Some(CommandWord { text: value.to_owned(), ..word.clone() })),
            None => (word.text.as_str(), arguments.get(at + 1).cloned()),
        };
        if matches!(option, "-x" | "--exec" | "-a" | "--startas")
            && let Some(program) = attached
        {
            let argv: Vec<CommandWord> = std::iter::once(program).chain(rest.iter().cloned()).collect();
            inner.extend(command(&argv));
        }
    }
    inner
}

/// The commands of a package manager's launcher, in every reading of its options; `None` for any other command.
fn launched(name: &str, arguments: &[CommandWord]) -> Option<Vec<InnerCommand>> {
    const MOST: usize = 16;
    let (_, verbs) = LAUNCHERS.iter().find(|(launcher, _)| *launcher == name)?;
    let start = match verbs {
        [] => 0,
        verbs => arguments.iter().position(|word| verbs.contains(&word.text.as_str()))? + 1,
    };
    let rest = arguments.get(start..).unwrap_or_default();
    let mut inner = after_option(rest, &["-c", "--call"]);
    let mut starts = vec![0];
    let mut at = 0;
    while let Some(word) = rest.get(at).filter(|word| word.text.starts_with('-') && at < MOST) {
        starts.push(at + 1);
        if word.text == "--" {
            starts = vec![at + 1];
            break;
        }
        // An option may take the next argument for its value.
        let valued =
            !word.text.contains('=') && rest.get(at + 1).is_some_and(|next| !next.text.starts_with('-'));
        if valued {
            starts.push(at + 2);
            at += usize::from(rest.get(at + 2).is_some_and(|next| next.text.starts_with('-')));
        }
        at += 1;
    }
    let begins = |at: &usize| rest.get(*at).is_some_and(|word| !word.text.starts_with('-'));
    inner.extend(starts.iter().filter(|at| begins(at)).filter_map(|at| command(&rest[*at..])));
    Some(inner)
}

fn remote(arguments: &[CommandWord]) -> Vec<InnerCommand> {
    const VALUES: &str = "bcDEeFIiJLlmOopQRSWw";
    let mut at = 0;
    while let Some(word) = arguments.get(at).filter(|word| word.text.starts_with('-')) {
        let takes = word.text.len() == 2 && VALUES.contains(&word.text[1..]);
        at += if takes { 2 } else { 1 };
    }
    let rest = arguments.get(at + 1..).unwrap_or_default();
    if rest.is_empty() { Vec::new() } else { vec![InnerCommand::Script(join(rest))] }
}

/// `docker run IMAGE COMMAND`, `docker exec NAME COMMAND`, `kubectl exec NAME -- COMMAND`: each reading.
fn contained(arguments: &[CommandWord]) -> Vec<InnerCommand> {
    let Some(verb) = arguments.iter().position(|word| matches!(word.text.as_str(), "run" | "exec")) else {
        return Vec::new();
    };
    let rest = &arguments[verb + 1..];
    if let Some(mark) = rest.iter().position(|word| word.text == "--") {
        return command(&rest[mark + 1..]).into_iter().collect();
    }
    // Which options take a value differs too much: the command begins after the first or second operand.
    let operands: Vec<usize> = (0..rest.len()).filter(|at| !rest[*at].text.starts_with('-')).collect();
    operands.iter().skip(1).take(2).filter_map(|start| command(&rest[*start..])).collect()
}

fn git(arguments: &[CommandWord]) -> Vec<InnerCommand> {
    let has = |name: &str| arguments.iter().any(|word| word.text == name);
    if has("bisect") && has("run") {
        let at = arguments.iter().position(|word| word.text == "run").unwrap_or_default();
        return command(&arguments[at + 1..]).into_iter().collect();
    }
    if has("foreach") {
        let at = arguments.iter().position(|word| word.text == "foreach").unwrap_or_default();
        return vec![InnerCommand::Script(join(&arguments[at + 1..]))];
    }
    let mut inner = aliases(arguments);
    if has("rebase") {
        inner.append(&mut after_option(arguments, &["-x", "--exec"]));
    }
    inner
}

/// The aliases of `git -c alias.x=...`.
fn aliases(arguments: &[CommandWord]) -> Vec<InnerCommand> {
    let settings = arguments.iter().filter_map(|word| {
        let text = word.text.strip_prefix("-c").unwrap_or(&word.text);
        let value = text.strip_prefix("alias.")?.split_once('=')?.1;
        Some(match value.strip_prefix('!') {
            Some(script) => script.to_owned(),
            None => format!("git {value}"),
        })
    });
    settings.map(InnerCommand::Script).collect()
}
