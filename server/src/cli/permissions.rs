//! `kode-ls permissions`: list, explain, add and remove permission rules without an editor.
//!
//! Rule: an explanation runs nothing and asks nobody; standard output carries the answer, one JSON object a line where
//! JSON is asked for or questions come on standard input.

use std::fmt::Write as _;
use std::io::{self, BufRead, Read as _};
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
use serde_json::json;

use crate::cli::{terminal, working_directory};
use crate::display::printable;
use crate::policies;

/// A question on standard input may have so many bytes.
const MAX_QUESTION: u64 = 1024 * 1024;

/// The arguments of `kode-ls permissions`.
#[derive(Debug, Args)]
pub struct PermissionsArgs {
    #[command(subcommand)]
    command: PermissionsCommand,

    /// The workspace folder instead of the current one
    #[arg(long, global = true, value_name = "FOLDER")]
    cwd: Option<PathBuf>,
}

#[derive(Debug, Subcommand)]
enum PermissionsCommand {
    /// List the rules in force, what waits for approval, and what cannot be used
    List {
        /// One JSON object
        #[arg(long)]
        json: bool,
    },
    /// Say what would become of a call, or of one call for each line of JSON on standard input
    Explain(ExplainArgs),
    /// Write a rule into the settings
    Add {
        /// What the rule says
        behavior: BehaviorName,
        /// The rule, for example `Bash(npm test:*)`
        rule: String,
        /// Into the user's settings for all projects instead of this project's local settings
        #[arg(long)]
        user: bool,
    },
    /// Remove a rule from the settings file it stands in
    Remove {
        /// What the rule says
        behavior: BehaviorName,
        /// The rule as it is listed
        rule: String,
        /// The file it stands in
        #[arg(long, value_name = "FILE")]
        file: PathBuf,
    },
}

/// The arguments of `kode-ls permissions explain`.
#[derive(Debug, Args)]
struct ExplainArgs {
    /// The tool; without it questions are read from standard input, as
    /// {mode, rules: {allow, ask, deny}, cwd, workspace, tool, input}
    #[arg(long, requires = "input")]
    tool: Option<String>,
    /// The arguments of the call as a JSON object
    #[arg(long, value_name = "JSON", requires = "tool")]
    input: Option<String>,
    /// The mode to suppose
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

/// Does what is asked. The exit code of `explain` is 0 when there is an answer, whatever it is.
///
/// # Errors
/// What cannot be read or written.
pub fn run(args: PermissionsArgs) -> anyhow::Result<ExitCode> {
    let folder = working_directory(args.cwd.as_ref())?;
    let policy = policies::of(&folder)?;
    match args.command {
        PermissionsCommand::List { json } => list(&policy, &folder, json)?,
        PermissionsCommand::Explain(args) => return explain_calls(&policy, &folder, args),
        PermissionsCommand::Add { behavior, rule, user } => {
            let scope = if user { Scope::User } else { Scope::Project };
            let file = policy.keep(scope, behavior.into(), &parsed(&rule)?)?;
            terminal::output(&format!("written to {}\n", printable(&file.to_string())))?;
        }
        PermissionsCommand::Remove { behavior, rule, file } => {
            let removed = policy.remove(&folder.join(file), behavior.into(), &parsed(&rule)?)?;
            anyhow::ensure!(
                removed,
                "the rule does not stand in that file; `kode-ls permissions list` says what does"
            );
            terminal::output("removed\n")?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn parsed(rule: &str) -> anyhow::Result<Rule> {
    rule.parse().with_context(|| format!("`{}` is no rule", printable(rule)))
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
            json!({ "key": withheld.wish.key, "value": withheld.wish.shown(), "file": withheld.wish.file })
        });
        let listed = json!({
            "rules": rules.collect::<Vec<_>>(),
            "withheld": withheld.collect::<Vec<_>>(),
            "problems": problems.iter().map(|problem| &problem.message).collect::<Vec<_>>(),
        });
        return Ok(terminal::output(&format!("{listed}\n"))?);
    }
    let mut text = String::new();
    for placed in rules.iter() {
        let line = format!("{:<6} {}  ({})", placed.behavior.name(), placed.rule, placed.source);
        let _ = writeln!(text, "{}", printable(&line));
    }
    for withheld in &current.withheld {
        let line = format!(
            "waits  {} {}  ({}): `kode-ls trust approve` lets it count",
            withheld.wish.key,
            withheld.wish.shown(),
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

fn explain_calls(policy: &SettingsPolicy, folder: &AbsPath, args: ExplainArgs) -> anyhow::Result<ExitCode> {
    let tools = policies::tools(&CurrentSearch::default());
    let current = policy.current();
    let answer = |question: &PermissionQuery| -> anyhow::Result<Explanation> {
        let setting = ExplanationContext {
            folder,
            rules: current.rules.clone(),
            order: current.order,
            sensitive: &current.sensitive,
            confinement: &current.confinement,
            additional: &current.additional,
            tools: &tools,
        };
        Ok(explain(question, &setting)?)
    };
    if let (Some(tool), Some(input)) = (args.tool, args.input) {
        let input = serde_json::from_str(&input).context("--input is no JSON")?;
        let question =
            PermissionQuery { mode: args.mode, rules: None, cwd: None, workspace: None, tool, input };
        terminal::output(&format!("{}\n", serde_json::to_string(&answer(&question)?)?))?;
        return Ok(ExitCode::SUCCESS);
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
            .context("the line is no question")
            .and_then(|mut question: PermissionQuery| {
                question.mode = question.mode.or_else(|| args.mode.clone());
                answer(&question)
            })
            .and_then(|answer| Ok(serde_json::to_value(answer)?));
        let answered = answered.unwrap_or_else(|error| {
            failed = true;
            json!({ "error": format!("{error:#}") })
        });
        terminal::output(&format!("{answered}\n"))?;
    }
    Ok(if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}
