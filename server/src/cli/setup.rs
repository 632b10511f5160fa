//! `kode-ls setup`: choose a provider, give a key, try it, keep it.
//!
//! Rule: nothing is kept before the model has answered, unless the user wants that. A key is read without echo and is never
//! an argument, which other users of the machine could see.

#![expect(clippy::disallowed_methods, reason = "variables hold keys")]

use std::io::{self, BufRead, IsTerminal};
use std::process::ExitCode;

use anyhow::{Context, bail, ensure};
use clap::Args;
use kode_engine::providers::discovery::{Discovery, LocalServer};
use kode_protocol::{SetupChoice, SetupKey, SetupProvider};
use serde_json::{Value, json};

use crate::cli::terminal;
use crate::display::printable;
use crate::setup::{self, SetupTrial};
use crate::{convert, home, policies};

/// The most models that are listed for a choice.
const MAX_LISTED: usize = 20;

/// The arguments of `kode-ls setup`.
#[derive(Debug, Args)]
pub struct SetupArgs {
    /// The provider, as `--list` names it; without it you are asked
    #[arg(long, value_name = "ID")]
    provider: Option<String>,
    /// The model's name at its provider
    #[arg(long, value_name = "NAME")]
    model: Option<String>,
    /// The environment variable that holds the key
    #[arg(long, value_name = "NAME", conflicts_with_all = ["key_command", "key_stdin"])]
    key_env: Option<String>,
    /// A command that prints the key
    #[arg(long, value_name = "COMMAND", conflicts_with = "key_stdin")]
    key_command: Option<String>,
    /// Read the key from standard input and keep it in a file that only you can read
    #[arg(long)]
    key_stdin: bool,
    /// A further option of the profile, such as `baseUrl=http://localhost:8080/v1`
    #[arg(long = "option", value_name = "NAME=VALUE")]
    options: Vec<String>,
    /// The name of the profile [default: the provider's]
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    /// Do not use it for new sessions
    #[arg(long)]
    not_main: bool,
    /// Save it without a test request
    #[arg(long)]
    no_trial: bool,
    /// List the providers and the servers of this machine, and change nothing
    #[arg(long)]
    list: bool,
    /// One JSON object
    #[arg(long)]
    json: bool,
}

/// Sets up a model.
///
/// # Errors
/// When the choice cannot be used, the model does not answer, or a file cannot be written.
pub async fn run(args: SetupArgs) -> anyhow::Result<ExitCode> {
    let offered = setup::providers(&|name| std::env::var(name).ok());
    if args.list {
        return list(&offered, args.json).await;
    }
    let mut choice = match &args.provider {
        Some(provider) => choice(&args, provider)?,
        None if terminal::is_interactive() => ask(&offered).await?,
        None => bail!(
            "there is no terminal to ask at: name the provider with --provider, and the key with --key-env, --key-command \
             or --key-stdin; `kode-ls setup --list` lists the providers"
        ),
    };
    if !args.no_trial {
        let SetupTrial { outcome, models } = setup::attempt(&choice).await?;
        match outcome {
            Ok((model, took)) => {
                terminal::error_line(&format!("{} answered in {} ms.", printable(&model), took.as_millis()));
                choice.model = Some(model);
            }
            Err(error) => {
                let known: Vec<String> =
                    models.iter().take(MAX_LISTED).map(|model| printable(&model.name)).collect();
                let known = match known.as_slice() {
                    [] => String::new(),
                    known => format!(" The server has: {}.", known.join(", ")),
                };
                bail!("nothing was changed: {} {}{known}", printable(&error.message), error.hint());
            }
        }
    }
    let (policies, state) = (policies::all()?, home::folder()?);
    let saved = setup::save(&policies, &state, &choice, args.name.as_deref(), !args.not_main)?;
    let key_file = saved.key_file.map(|file| file.display().to_string());
    let text = if args.json {
        let kept = json!({ "profile": saved.profile, "file": saved.file.to_string(), "keyFile": key_file });
        format!("{kept}\n")
    } else {
        let key = key_file.map(|file| format!(" The key is in {}.", printable(&file))).unwrap_or_default();
        format!("The model profile `{}` is in {}.{key}\n", saved.profile, printable(&saved.file.to_string()))
    };
    terminal::output(&text)?;
    Ok(ExitCode::SUCCESS)
}

/// The choice that the arguments make.
fn choice(args: &SetupArgs, provider: &str) -> anyhow::Result<SetupChoice> {
    let key = match (&args.key_env, &args.key_command, args.key_stdin) {
        (Some(name), ..) => SetupKey::Variable { name: name.clone() },
        (None, Some(command), _) => SetupKey::Command { command: command.clone() },
        (None, None, true) => SetupKey::Value { value: line("standard input")? },
        (None, None, false) => SetupKey::None {},
    };
    let options = args.options.iter().map(|option| {
        let (name, value) = option.split_once('=').context("write an option as NAME=VALUE")?;
        // Numbers are numbers; everything else is text.
        let value = value.parse::<u64>().map_or_else(|_| json!(value), |number| json!(number));
        Ok((name.to_owned(), value))
    });
    let options = Value::Object(options.collect::<anyhow::Result<_>>()?);
    Ok(SetupChoice { model: args.model.clone(), key, options, ..setup::choice(provider) })
}

async fn list(offered: &[SetupProvider], as_json: bool) -> anyhow::Result<ExitCode> {
    let local = Discovery::shared().local(false).await;
    let text = if as_json {
        let (models, ..) = super::models::in_folder(None)?;
        let servers: Vec<_> = local.iter().map(|server| convert::models::server(server, &models)).collect();
        format!("{}\n", json!({ "providers": offered, "servers": servers }))
    } else {
        let mut lines: Vec<String> = offered.iter().map(offer).collect();
        lines.push(String::new());
        lines.extend(local.iter().map(found));
        lines.join("\n").trim_end().to_owned() + "\n"
    };
    terminal::output(&text)?;
    Ok(ExitCode::SUCCESS)
}

fn offer(provider: &SetupProvider) -> String {
    let key = match (&provider.key_variable, provider.key_is_set, provider.needs_key) {
        (Some(variable), true, _) => format!("{variable} is set"),
        (Some(variable), false, true) => format!("needs a key ({variable})"),
        (Some(variable), false, false) => format!("{variable}, or its own sign-in"),
        (None, _, true) => "needs a key".to_owned(),
        (None, _, false) => "no key".to_owned(),
    };
    format!("{:<18} {:<28} {key}", provider.id, provider.label)
}

fn found(server: &LocalServer) -> String {
    let models = server.models.iter().take(MAX_LISTED).map(|model| match model.context_window {
        Some(window) => format!("{} ({window} tokens)", printable(&model.name)),
        None => printable(&model.name),
    });
    let models = models.collect::<Vec<_>>().join(", ");
    format!("{} runs at {}: {models}", server.label, server.base_url)
}

/// Asks at the terminal: servers of this machine first, because they need no key.
async fn ask(offered: &[SetupProvider]) -> anyhow::Result<SetupChoice> {
    let local = Discovery::shared().local(true).await;
    let mut number = 0;
    for server in &local {
        number += 1;
        terminal::error_line(&format!("{number:>3}  {}", found(server)));
    }
    for provider in offered {
        number += 1;
        terminal::error_line(&format!("{number:>3}  {}", offer(provider)));
    }
    let chosen = answer("Provider (number or id): ")?;
    let by_number = chosen.parse::<usize>().ok().and_then(|number| number.checked_sub(1));
    if let Some(server) = by_number.and_then(|at| local.get(at)) {
        let model = pick_model(server)?;
        return Ok(SetupChoice { model: Some(model), ..setup::choice(&server.provider) });
    }
    let provider = match by_number.and_then(|at| offered.get(at.checked_sub(local.len())?)) {
        Some(provider) => provider,
        None => offered
            .iter()
            .find(|provider| provider.id == chosen)
            .with_context(|| format!("there is no provider `{}`", printable(&chosen)))?,
    };
    let mut choice = setup::choice(&provider.id);
    for field in &provider.fields {
        let example = field.example.as_deref().unwrap_or_default();
        let value = answer(&format!("{} [{example}]: ", field.label))?;
        ensure!(!(value.is_empty() && field.required), "{} is needed", field.label);
        if !value.is_empty() {
            choice.options[&field.name] = Value::String(value);
        }
    }
    choice.key = key_for(provider)?;
    let suggested = provider.model.as_deref().unwrap_or("the first of the server");
    choice.model = Some(answer(&format!("Model [{suggested}]: "))?).filter(|model| !model.is_empty());
    Ok(choice)
}

fn pick_model(server: &LocalServer) -> anyhow::Result<String> {
    ensure!(!server.models.is_empty(), "{} has no model; load or pull one first", server.label);
    for (at, model) in server.models.iter().take(MAX_LISTED).enumerate() {
        terminal::error_line(&format!("{:>3}  {}", at + 1, printable(&model.name)));
    }
    let chosen = answer("Model (number or name) [1]: ")?;
    if chosen.is_empty() {
        return Ok(server.models[0].name.clone());
    }
    let by_number = chosen.parse::<usize>().ok().and_then(|number| server.models.get(number.checked_sub(1)?));
    Ok(by_number.map_or(chosen, |model| model.name.clone()))
}

fn key_for(provider: &SetupProvider) -> anyhow::Result<SetupKey> {
    if provider.key_is_set || !provider.needs_key {
        return Ok(SetupKey::None {});
    }
    if let Some(page) = &provider.key_page {
        terminal::error_line(&format!("Keys are made at {page}"));
    }
    terminal::error_line(
        "Paste the key, or write `$NAME` for an environment variable, or `!command` for a command.",
    );
    let given = secret("Key: ")?;
    ensure!(!given.is_empty(), "{} needs a key", provider.label);
    Ok(match (given.strip_prefix('$'), given.strip_prefix('!')) {
        (Some(name), _) => SetupKey::Variable { name: name.trim().to_owned() },
        (None, Some(command)) => SetupKey::Command { command: command.trim().to_owned() },
        (None, None) => SetupKey::Value { value: given },
    })
}

fn answer(question: &str) -> anyhow::Result<String> {
    terminal::question(question);
    line("the terminal")
}

/// Reads a line without echo, where the terminal can do that.
fn secret(question: &str) -> anyhow::Result<String> {
    terminal::question(question);
    let read = {
        let _quiet = terminal::EchoGuard::begin();
        line("the terminal")
    };
    terminal::error_line("");
    read
}

fn line(from: &str) -> anyhow::Result<String> {
    let mut line = String::new();
    let read = io::stdin().lock().read_line(&mut line).with_context(|| format!("could not read {from}"))?;
    ensure!(read > 0 || !io::stdin().is_terminal(), "nothing was changed");
    Ok(line.trim().to_owned())
}
