//! The standing rules to offer with a prompt.
//!
//! Rule: never wider than a person would read into the command shown; none at all where the text does not say
//! what runs.

use super::effects::is_safe;
use super::wrappers::{is_shell, program};
use super::{Analysis, CommandPattern, Effect, SimpleCommand};

/// The most rules that are offered at once.
const MAX_RULES: usize = 4;

/// Programs whose first argument says what they do.
const VERBS: [&str; 24] = [
    "npm",
    "pnpm",
    "yarn",
    "bun",
    "cargo",
    "go",
    "git",
    "pip",
    "pip3",
    "uv",
    "poetry",
    "rustup",
    "dotnet",
    "gradle",
    "mvn",
    "bundle",
    "composer",
    "gh",
    "terraform",
    "brew",
    "apt",
    "apt-get",
    "mix",
    "deno",
];
/// Programs for which any arguments are of one kind.
const TOOLS: [&str; 17] = [
    "jest",
    "vitest",
    "pytest",
    "eslint",
    "prettier",
    "tsc",
    "mypy",
    "ruff",
    "black",
    "rustfmt",
    "gofmt",
    "golangci-lint",
    "ctest",
    "shellcheck",
    "phpunit",
    "rspec",
    "rubocop",
];
/// First arguments that publish, delete or run what follows them: the rule is for the very command.
const GRAVE: [&str; 12] = [
    "push", "publish", "exec", "x", "dlx", "reset", "clean", "rebase", "config", "login", "release",
    "destroy",
];

/// The narrowest useful standing rules for a line: one for each command that does more than look; empty when
/// none can be offered.
#[must_use]
pub fn propose(analysis: &Analysis) -> Vec<CommandPattern> {
    if !analysis.unknowns.is_empty() || !analysis.dangers.is_empty() || analysis.excess.is_some() {
        return Vec::new();
    }
    let mut rules: Vec<CommandPattern> = Vec::new();
    for command in &analysis.commands {
        if analysis.is_launched(command) {
            continue;
        }
        match command.effect {
            Effect::ReadOnly | Effect::ReadOnlyGit | Effect::ChangeDirectory(_) => continue,
            Effect::FileEdit | Effect::Other => {}
        }
        let Some(rule) = rule(command).filter(|rule| rule.allows(command)) else { return Vec::new() };
        if !rules.contains(&rule) {
            rules.push(rule);
        }
    }
    if rules.len() > MAX_RULES { Vec::new() } else { rules }
}

fn rule(command: &SimpleCommand) -> Option<CommandPattern> {
    if !command.prefix_covered
        || command.argv.iter().any(|word| !word.literal)
        || !command.assignments.iter().all(is_safe)
    {
        return None;
    }
    let argv: Vec<String> = command.argv.iter().map(|word| word.text.clone()).collect();
    let name = program(command.argv.first()?);
    if is_interpreter(name) {
        return None;
    }
    let verb = argv.get(1).filter(|verb| {
        verb.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'-') && !verb.starts_with('-')
    });
    match verb {
        Some(verb) if VERBS.contains(&argv[0].as_str()) && !GRAVE.contains(&verb.as_str()) => {
            // `npm run` says nothing without the script's name.
            let words = if verb == "run" { 3 } else { 2 };
            CommandPattern::prefix(argv.get(..words)?)
        }
        _ if TOOLS.contains(&argv[0].as_str()) => CommandPattern::prefix(&argv[..1]),
        _ => CommandPattern::exact(&argv),
    }
}

fn is_interpreter(name: &str) -> bool {
    is_shell(name)
        || name.starts_with("python")
        || matches!(
            name,
            "node" | "perl" | "ruby" | "php" | "lua" | "awk" | "deno" | "bun" | "npx" | "bunx" | "osascript"
        )
}
