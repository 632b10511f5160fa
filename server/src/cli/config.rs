//! `kode-ls config`: what counts of all settings and where it comes from, changing one, and their JSON Schema.
//!
//! Rule: keys and tokens are masked; a write changes one key of a file of ours, and everything else in it stays.

use std::fmt::Write as _;
use std::process::ExitCode;

use anyhow::Context;
use clap::{Args, Subcommand, ValueEnum};
use kode_engine::config::settings::effective::EffectiveSetting;
use kode_engine::config::settings::keys;
use kode_engine::config::settings::keys::{KeyShape, key_of, schema};
use kode_engine::config::settings::{SetError, SettingsScope};
use serde_json::{Value, json};

use crate::cli::{FolderArgs, terminal};
use crate::display::printable;
use crate::handlers::config::setting;
use crate::policies;

/// The arguments of `kode-ls config`.
#[derive(Debug, Args)]
pub struct ConfigArgs {
    #[command(subcommand)]
    command: Option<ConfigCommand>,

    #[command(flatten)]
    at: FolderArgs,
}

#[derive(Debug, Subcommand)]
enum ConfigCommand {
    /// List the settings in effect with their sources (the default)
    List,
    /// Print the value of one setting in effect, and its value in each file
    Get {
        /// The setting, such as `permissions.allow`
        key: String,
    },
    /// Write a setting into a file, or remove it with `--unset`
    Set {
        /// The setting, such as `language` or `env.PATH`
        key: String,
        /// The value: JSON, or plain text for a text setting
        #[arg(required_unless_present = "unset")]
        value: Option<String>,
        /// The scope to write it to
        #[arg(long, value_enum, default_value_t = ScopeName::User)]
        scope: ScopeName,
        /// Remove the setting
        #[arg(long, conflicts_with = "value")]
        unset: bool,
    },
    /// Print the JSON Schema of settings files
    Schema,
}

/// Where a setting is to count.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum ScopeName {
    /// For this user in this project
    Local,
    /// For everybody in this project
    Project,
    /// For this user everywhere
    User,
}

impl From<ScopeName> for SettingsScope {
    fn from(name: ScopeName) -> Self {
        match name {
            ScopeName::Local => Self::Local,
            ScopeName::Project => Self::Project,
            ScopeName::User => Self::User,
        }
    }
}

/// Runs the command.
///
/// # Errors
/// Unreadable and unwritable files, and invalid keys and values.
pub fn run(args: ConfigArgs) -> anyhow::Result<ExitCode> {
    let policy = policies::of(&args.at.folder()?)?;
    let text = match args.command.unwrap_or(ConfigCommand::List) {
        ConfigCommand::Schema => format!("{:#}\n", schema()),
        ConfigCommand::List => {
            let all = policy.effective();
            let said = all.iter().filter(|one| one.source.is_some() || !one.stated.is_empty());
            if args.at.json { listed(all.iter()) } else { lines(said, false) }
        }
        ConfigCommand::Get { key } => {
            let inside = format!("{key}.");
            let all = policy.effective();
            let meant: Vec<_> =
                all.iter().filter(|one| one.path() == key || one.path().starts_with(&inside)).collect();
            if meant.is_empty() && key_of(&key).is_none() {
                return Err(SetError::Unknown { near: keys::near(&key), path: key }.into());
            }
            if args.at.json { listed(meant.into_iter()) } else { lines(meant.into_iter(), true) }
        }
        ConfigCommand::Set { key, value, scope, unset: _ } => {
            let value = value.map(|text| parsed(&key, text)).transpose()?;
            let change = policy.set(scope.into(), &key, value.as_ref())?;
            match (args.at.json, change.is_changed) {
                (true, changed) => format!("{}\n", json!({ "file": change.file, "changed": changed })),
                (false, true) => format!("written to {}\n", printable(&change.file.to_string())),
                (false, false) => format!("{} has this value already\n", printable(&change.file.to_string())),
            }
        }
    };
    terminal::output(&text)?;
    Ok(ExitCode::SUCCESS)
}

/// A value from the command line: a text where the key holds texts, else JSON.
fn parsed(key: &str, text: String) -> anyhow::Result<Value> {
    let shape = key_of(key).map(|(key, name)| match (key.shape, name) {
        (KeyShape::TextsByName, Some(_)) => KeyShape::Text,
        (shape, _) => shape,
    });
    match shape {
        // Values of unknown keys are not checked.
        Some(KeyShape::Text | KeyShape::Choice(_)) | None => Ok(Value::String(text)),
        Some(_) => serde_json::from_str(&text)
            .with_context(|| format!("`{}` is not valid JSON. Put strings in quotes", printable(&text))),
    }
}

fn listed<'e>(all: impl Iterator<Item = &'e EffectiveSetting>) -> String {
    format!("{}\n", json!({ "settings": all.map(setting).collect::<Vec<_>>() }))
}

fn lines<'e>(all: impl Iterator<Item = &'e EffectiveSetting>, reports_all: bool) -> String {
    let mut text = String::new();
    for one in all {
        let value = one.value.as_ref().map_or_else(|| "nothing".to_owned(), Value::to_string);
        let source = one.source.as_ref().map_or_else(|| "default".to_owned(), ToString::to_string);
        let _ = writeln!(text, "{}", printable(&format!("{} = {value}  ({source})", one.path())));
        for stated in one.stated.iter().filter(|_| reports_all) {
            let standing = match stated.standing {
                kode_engine::config::settings::StatementStanding::InForce => "stated",
                kode_engine::config::settings::StatementStanding::Waiting => "waits for `kode-ls trust`",
                kode_engine::config::settings::StatementStanding::Ignored => "ignored",
            };
            let line = format!("  {standing}: {}  ({})", stated.value, stated.source);
            let _ = writeln!(text, "{}", printable(&line));
        }
    }
    if text.is_empty() {
        text.push_str("all settings are the defaults\n");
    }
    text
}
