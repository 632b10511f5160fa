//! `kode-ls permissions`: list, explain, add and remove permission rules without an editor.
//!
//! Rule: an explanation runs nothing and asks no user; standard output carries the answer, one JSON object a line where
//! JSON is asked for or questions come on standard input.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::io::{self, BufRead, IsTerminal as _, Read as _};
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context;
use clap::{Args, Subcommand, ValueEnum};
use kode_engine::agent::explain::{Explanation, ExplanationContext, PermissionQuery, explain};
use kode_engine::base::mask::masked_text;
use kode_engine::base::paths::AbsPath;
use kode_engine::config::policy::PolicySource;
use kode_engine::config::settings::SettingsPolicy;
use kode_engine::permission::Scope;
use kode_engine::permission::rules::{Behavior, PathBases, Rule, RuleSet};
use kode_engine::tools::web_search::CurrentSearch;
use serde_json::{Value, json};

use crate::cli::{FolderArgs, terminal};
use crate::display::{json_text, printable};
use crate::policies;

/// Maximum bytes of a question on standard input.
const MAX_QUESTION: u64 = 1024 * 1024;

/// The arguments of `kode-ls permissions`.
#[derive(Debug, Args)]
pub struct PermissionsArgs {
    #[command(subcommand)]
    command: Option<PermissionsCommand>,

    #[command(flatten)]
    at: FolderArgs,
}

#[derive(Debug, Subcommand)]
enum PermissionsCommand {
    /// List the rules in force, what waits for approval, and what cannot be used (the default)
    List,
    /// Show whether a call would run, ask or be denied
    ///
    /// With questions on standard input, one JSON object a line, each is answered by one.
    Explain(ExplainArgs),
    /// Write a rule into the settings
    Add {
        /// The behavior of the rule
        behavior: BehaviorName,
        /// The rule, for example `Bash(npm test:*)`
        rule: String,
        /// Into the user's settings for all projects instead of this project's local settings
        #[arg(long)]
        user: bool,
    },
    /// Remove a rule from its settings file
    Remove {
        /// The behavior of the rule
        behavior: BehaviorName,
        /// The rule, as listed
        rule: String,
        /// The file of the rule [default: the only one of yours]
        #[arg(long, value_name = "FILE")]
        file: Option<PathBuf>,
    },
}

/// The arguments of `kode-ls permissions explain`.
#[derive(Debug, Args)]
struct ExplainArgs {
    /// The call as a rule names it, such as `Bash(git push)`, `Edit(src/main.rs)` or `WebFetch(https://example.com)`
    call: Option<String>,
    /// The tool, in place of a call; without either, questions are read from standard input, as
    /// {mode, rules: {allow, ask, deny}, cwd, workspace, tool, input}
    #[arg(long, requires = "input", conflicts_with = "call")]
    tool: Option<String>,
    /// The arguments of the call as a JSON object
    #[arg(long, value_name = "JSON", requires = "tool")]
    input: Option<String>,
    /// The permission mode to assume
    #[arg(long)]
    mode: Option<String>,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum BehaviorName {
    Allow,
    Ask,
    Deny,
}

impl From<BehaviorName> for Behavior {
    fn from(name: BehaviorName) -> Self {
        match name {
            BehaviorName::Allow => Self::Allow,
            BehaviorName::Ask => Self::Ask,
            BehaviorName::Deny => Self::Deny,
        }
    }
}

/// Runs the command. The exit code of `explain` is 0 when there is an answer, whatever it is.
///
/// # Errors
/// What cannot be read or written.
pub fn run(args: PermissionsArgs) -> anyhow::Result<ExitCode> {
    let (folder, as_json) = (args.at.folder()?, args.at.json);
    let policy = policies::of(&folder)?;
    match args.command.unwrap_or(PermissionsCommand::List) {
        PermissionsCommand::List => list(&policy, &folder, as_json)?,
        PermissionsCommand::Explain(args) => return explain_calls(&policy, &folder, args, as_json),
        PermissionsCommand::Add { behavior, rule, user } => {
            let scope = if user { Scope::User } else { Scope::Project };
            let file = policy.keep(scope, behavior.into(), &parsed(&rule)?)?;
            terminal::output(&format!("written to {}\n", printable(&file.to_string())))?;
        }
        PermissionsCommand::Remove { behavior, rule, file } => {
            let (behavior, rule) = (behavior.into(), parsed(&rule)?);
            let file = match file {
                Some(file) => folder.join(file),
                None => file_of(&policy, behavior, &rule)?,
            };
            let removed = policy.remove(&file, behavior, &rule)?;
            anyhow::ensure!(removed, "the rule is not in that file; `kode-ls permissions` lists the rules");
            terminal::output(&format!("removed from {}\n", printable(&file.to_string())))?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// The file that a rule is in, where it is one alone.
fn file_of(policy: &SettingsPolicy, behavior: Behavior, rule: &Rule) -> anyhow::Result<AbsPath> {
    let current = policy.current();
    let standing = current.rules.iter().filter(|placed| placed.behavior == behavior && placed.rule == *rule);
    let files: BTreeSet<AbsPath> = standing.filter_map(|placed| placed.source.file.clone()).collect();
    let mut files = files.into_iter();
    match (files.next(), files.next()) {
        (Some(file), None) => Ok(file),
        (None, _) => anyhow::bail!("no file has this rule; `kode-ls permissions` lists the rules"),
        (Some(_), Some(_)) => {
            anyhow::bail!(
                "several files have this rule; `kode-ls permissions` lists them, and `--file` names one"
            )
        }
    }
}

fn parsed(rule: &str) -> anyhow::Result<Rule> {
    rule.parse().with_context(|| format!("`{}` is not a rule", printable(rule)))
}

fn list(policy: &SettingsPolicy, folder: &AbsPath, as_json: bool) -> anyhow::Result<()> {
    let current = policy.current();
    let home = etcetera::home_dir().ok().and_then(|home| AbsPath::new(home).ok());
    let (rules, unusable) = RuleSet::new(current.rules.clone(), &PathBases::on_disk(folder, home.as_ref()));
    let problems: Vec<_> = current.problems.iter().chain(&unusable).collect();
    if as_json {
        let rules = rules.iter().map(|placed| {
            json!({
                "behavior": placed.behavior.name(),
                "rule": masked_text(&placed.rule.to_string()),
                "layer": placed.source.layer.name(),
                "file": placed.source.file,
                "line": placed.source.place.map(|place| place.line + 1),
            })
        });
        let withheld = current.withheld.iter().map(|withheld| {
            json!({ "key": withheld.trust_request.key, "value": withheld.trust_request.shown(), "file": withheld.trust_request.file })
        });
        let listed = json!({
            "rules": rules.collect::<Vec<_>>(),
            "withheld": withheld.collect::<Vec<_>>(),
            "problems": problems.iter().map(|problem| &problem.message).collect::<Vec<_>>(),
        });
        return Ok(terminal::output(&format!("{}\n", json_text(&listed.to_string())))?);
    }
    let mut text = String::new();
    for placed in rules.iter() {
        let line = format!("{:<6} {}  ({})", placed.behavior.name(), placed.rule, placed.source);
        let _ = writeln!(text, "{}", printable(&line));
    }
    for withheld in &current.withheld {
        let line = format!(
            "waits  {} {}  ({}): `kode-ls trust approve` approves it",
            withheld.trust_request.key,
            withheld.trust_request.shown(),
            withheld.source
        );
        let _ = writeln!(text, "{}", printable(&line));
    }
    for problem in problems {
        let _ = writeln!(text, "! {}", printable(&problem.message));
    }
    if text.is_empty() {
        text.push_str("no rules\n");
    }
    Ok(terminal::output(&text)?)
}

/// The argument that a rule of a tool refers to.
fn main_argument(tool: &str) -> anyhow::Result<&'static str> {
    Ok(match tool {
        "Bash" | "PowerShell" => "command",
        "Read" | "Edit" | "Write" => "file_path",
        "Glob" | "Grep" => "path",
        "WebFetch" => "url",
        "WebSearch" => "query",
        "Skill" => "skill",
        _ => anyhow::bail!("name the arguments of `{}` with --tool and --input", printable(tool)),
    })
}

/// A call as a rule names it, as a tool and its arguments.
fn named_call(text: &str) -> anyhow::Result<(String, Value)> {
    let Some((tool, argument)) = text.strip_suffix(')').and_then(|text| text.split_once('(')) else {
        return Ok((text.to_owned(), json!({})));
    };
    Ok((tool.to_owned(), json!({ (main_argument(tool)?): argument })))
}

/// An explanation in words.
fn words(call: &str, explained: &Value) -> String {
    let said = |name: &str| explained[name].as_str().map(printable);
    let becomes = match explained["decision"].as_str() {
        Some("allow") => "runs unasked",
        Some("ask") => "is asked for",
        Some("deny") => "is refused",
        _ => "cannot be judged",
    };
    let mut text = format!("{} {becomes}\n", printable(call));
    for name in ["reason", "rule", "source"] {
        text.extend(said(name).map(|value| format!("  {name:<9}{value}\n")));
    }
    let proposed = explained["proposed"].as_array().into_iter().flatten().filter_map(Value::as_str);
    let proposed: Vec<_> = proposed.map(printable).collect();
    if !proposed.is_empty() {
        text.push_str(&format!("  {:<9}{}\n", "to allow", proposed.join(", ")));
    }
    let problems = explained["problems"].as_array().into_iter().flatten().filter_map(Value::as_str);
    text.extend(problems.map(|problem| format!("  ! {}\n", printable(problem))));
    text
}

fn explain_calls(
    policy: &SettingsPolicy,
    folder: &AbsPath,
    args: ExplainArgs,
    as_json: bool,
) -> anyhow::Result<ExitCode> {
    let tools = policies::tools(&CurrentSearch::default());
    let current = policy.current();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let answer = |question: &PermissionQuery| -> anyhow::Result<Explanation> {
        let context = ExplanationContext { folder, policy: &current, tools: &tools };
        Ok(runtime.block_on(explain(question, &context))?)
    };
    let call = match (args.tool, args.input, args.call) {
        (Some(tool), Some(input), _) => {
            let value = serde_json::from_str(&input).context("--input is not valid JSON")?;
            Some((format!("{tool}({input})"), (tool, value), false))
        }
        (.., Some(call)) => {
            let named = named_call(&call)?;
            Some((call, named, true))
        }
        _ => None,
    };
    if let Some((call, (tool, input), is_partial)) = call {
        let question = PermissionQuery {
            mode: args.mode,
            rules: None,
            cwd: None,
            workspace: None,
            tool,
            input,
            is_partial,
        };
        let explained = serde_json::to_value(answer(&question)?)?;
        let text = if as_json {
            format!("{}\n", json_text(&explained.to_string()))
        } else {
            words(&call, &explained)
        };
        terminal::output(&text)?;
        return Ok(ExitCode::SUCCESS);
    }
    if io::stdin().is_terminal() {
        return Ok(super::wrong("name a call: kode-ls permissions explain \"Bash(git push)\""));
    }
    let mut stdin = io::stdin().lock();
    let mut failed = false;
    loop {
        let mut line = String::new();
        let length =
            stdin.by_ref().take(MAX_QUESTION).read_line(&mut line).context("could not read the questions")?;
        if length == 0 {
            break;
        }
        anyhow::ensure!(
            (length as u64) < MAX_QUESTION || line.ends_with('\n'),
            "a question is longer than {MAX_QUESTION} bytes"
        );
        if line.trim().is_empty() {
            continue;
        }
        let answered = serde_json::from_str(&line)
            .context("the line is not a question")
            .and_then(|mut question: PermissionQuery| {
                question.mode = question.mode.or_else(|| args.mode.clone());
                answer(&question)
            })
            .and_then(|answer| Ok(serde_json::to_value(answer)?));
        let answered = answered.unwrap_or_else(|error| {
            failed = true;
            json!({ "error": format!("{error:#}") })
        });
        terminal::output(&format!("{}\n", json_text(&answered.to_string())))?;
    }
    Ok(if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}
