//! `kode-ls plugin`: marketplaces and plugins, fetched, installed, switched on and off, and checked.
//!
//! Rule: before a plugin is installed all that it would have run is shown and asked about, and nothing of it runs here. Without a
//! person only `--yes` is a yes.

use std::fmt::Write as _;
use std::io::{self, BufRead, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context;
use clap::{Args, Subcommand};
use kode_engine::base::paths::AbsPath;
use kode_engine::config::plugin::marketplace::{Marketplace, PluginSource};
use kode_engine::config::plugin::store::{StagedPlugin, Store};
use kode_engine::config::plugin::{Plugin, PluginId, PluginState};
use kode_engine::config::policy::PolicySource;
use kode_engine::permission::rules::{ProblemSeverity, SettingsProblem};
use serde_json::{Value, json};

use crate::cli::config::ScopeName;
use crate::cli::{FolderArgs, terminal};
use crate::display::printable;
use crate::policies;

/// The arguments of `kode-ls plugin`.
#[derive(Debug, Args)]
pub struct PluginArgs {
    #[command(subcommand)]
    command: Option<PluginCommand>,

    #[command(flatten)]
    at: FolderArgs,
}

#[derive(Debug, Subcommand)]
enum PluginCommand {
    /// List installed and configured plugins with their state (the default)
    List,
    /// Add, list, update and remove marketplaces
    Marketplace {
        #[command(subcommand)]
        command: MarketplaceCommand,
    },
    /// Download a plugin, show its contents, and install and enable it after you confirm
    Install {
        /// `plugin@marketplace`, or the plugin alone where that says enough
        plugin: String,
        /// Do not ask
        #[arg(long)]
        yes: bool,
    },
    /// Update one plugin or all, after you approve the changes
    Update {
        /// `plugin@marketplace`, or the plugin alone where that says enough
        plugin: Option<String>,
        /// Install it unasked
        #[arg(long)]
        yes: bool,
    },
    /// Uninstall a plugin
    Uninstall {
        /// `plugin@marketplace`, or the plugin alone where that says enough
        plugin: String,
    },
    /// Enable an installed plugin
    Enable {
        /// `plugin@marketplace`, or the plugin alone where that says enough
        plugin: String,
        /// The scope to enable it in
        #[arg(long, value_enum, default_value_t = ScopeName::User)]
        scope: ScopeName,
    },
    /// Disable a plugin
    Disable {
        /// `plugin@marketplace`, or the plugin alone where that says enough
        plugin: String,
        /// The scope to disable it in
        #[arg(long, value_enum, default_value_t = ScopeName::User)]
        scope: ScopeName,
    },
    /// List the contents and the problems of a plugin or marketplace in a folder
    Validate {
        /// The folder
        folder: PathBuf,
    },
}

#[derive(Debug, Subcommand)]
enum MarketplaceCommand {
    /// Add a marketplace: a folder, a file, `owner/repository`, or the address of a git repository or of a list (`….json`)
    Add {
        /// Its address; a branch, a tag or a commit may follow a `#`
        source: String,
    },
    /// List the marketplaces that were added and the plugins they offer
    List,
    /// Update one marketplace or all
    Update {
        /// Its name
        name: Option<String>,
    },
    /// Remove a marketplace; its installed plugins stay
    Remove {
        /// Its name
        name: String,
    },
}

/// Runs the command.
///
/// # Errors
/// What cannot be fetched, read or written; nothing is changed then.
pub async fn run(args: PluginArgs) -> anyhow::Result<ExitCode> {
    let folder = args.at.folder()?;
    let store = Store::new(policies::all()?.plugins())?;
    let text = match args.command.unwrap_or(PluginCommand::List) {
        PluginCommand::List => list(&folder, args.at.json)?,
        PluginCommand::Marketplace { command } => marketplace(&store, &folder, command, args.at.json).await?,
        PluginCommand::Install { plugin, yes } => {
            let id = store.meant(&plugin)?;
            install(&store, &folder, &id, yes).await?
        }
        PluginCommand::Update { plugin, yes } => update(&store, plugin.as_deref(), yes).await?,
        PluginCommand::Uninstall { plugin } => uninstall(&store, &folder, &plugin)?,
        PluginCommand::Enable { plugin, scope } => {
            let id = store.meant(&plugin)?;
            let is_installed = store.installed().find(&id).is_some();
            anyhow::ensure!(
                is_installed,
                "`{id}` is not installed; `kode-ls plugin install {id}` installs it"
            );
            switch(&folder, &id, scope, Some(true))?
        }
        PluginCommand::Disable { plugin, scope } => {
            switch(&folder, &store.meant(&plugin)?, scope, Some(false))?
        }
        PluginCommand::Validate { folder: named } => return validate(&folder.join(named)),
    };
    terminal::output(&printable(&text))?;
    Ok(ExitCode::SUCCESS)
}

fn list(folder: &AbsPath, as_json: bool) -> anyhow::Result<String> {
    let policy = policies::of(folder)?.current();
    let plugins = &policy.declared.plugins;
    if as_json {
        let one = |plugin: &kode_engine::config::plugin::PluginListing| {
            let reason = match &plugin.state {
                PluginState::LeftOut(reason) => Some(reason),
                PluginState::On(_) | PluginState::Off | PluginState::Waiting => None,
            };
            json!({
                "id": plugin.id,
                "version": plugin.version,
                "folder": plugin.root,
                "state": plugin.state.name(),
                "reason": reason,
            })
        };
        return Ok(format!("{}\n", json!({ "plugins": plugins.iter().map(one).collect::<Vec<Value>>() })));
    }
    let mut text = String::new();
    for plugin in plugins {
        let version = plugin.version.as_deref().map(|version| format!(" {version}")).unwrap_or_default();
        let place = plugin.root.as_ref().map(|root| format!("  ({root})")).unwrap_or_default();
        let _ = writeln!(text, "{:<9}{}{version}{place}", plugin.state.name(), plugin.id);
        match &plugin.state {
            PluginState::LeftOut(reason) => text.push_str(&format!("         {reason}\n")),
            PluginState::Waiting => text.push_str("         `kode-ls trust` shows what waits\n"),
            PluginState::On(_) | PluginState::Off => {}
        }
    }
    if text.is_empty() {
        text.push_str("no plugin is installed\n");
    }
    Ok(text)
}

async fn marketplace(
    store: &Store,
    folder: &AbsPath,
    command: MarketplaceCommand,
    as_json: bool,
) -> anyhow::Result<String> {
    match command {
        MarketplaceCommand::Add { source } => {
            let source = PluginSource::parse(&source, folder).map_err(anyhow::Error::msg)?;
            let list = store.add(source).await?;
            Ok(format!("added {}\n{}", list.name, offers(&list)))
        }
        MarketplaceCommand::List => {
            let (mut text, mut values) = (String::new(), Vec::new());
            for added in store.marketplaces()? {
                let list = store.marketplace(&added.name);
                let names = list
                    .as_ref()
                    .map(|(list, _)| list.plugins.iter().map(|offer| offer.name.clone()).collect::<Vec<_>>());
                values.push(json!({
                    "name": added.name,
                    "source": added.source.shown(),
                    "plugins": names.unwrap_or_default(),
                    "problem": list.as_ref().err().map(ToString::to_string),
                }));
                let _ = writeln!(text, "{}  ({})", added.name, added.source.shown());
                match &list {
                    Ok((list, problems)) => {
                        text.push_str(&offers(list));
                        text.push_str(&problem_lines(problems));
                    }
                    Err(error) => text.push_str(&format!("  ! {error}\n")),
                }
            }
            if as_json {
                return Ok(format!("{}\n", json!({ "marketplaces": values })));
            }
            Ok(if text.is_empty() { "no marketplace was added\n".to_owned() } else { text })
        }
        MarketplaceCommand::Update { name } => {
            let names = match name {
                Some(name) => vec![name],
                None => store.marketplaces()?.into_iter().map(|added| added.name).collect(),
            };
            let mut text = String::new();
            for name in names {
                let list = store.update_marketplace(&name).await?;
                let _ = writeln!(text, "updated {}", list.name);
            }
            Ok(text)
        }
        MarketplaceCommand::Remove { name } => {
            store.remove_marketplace(&name)?;
            Ok(format!("removed {name}; plugins installed from it stay\n"))
        }
    }
}

fn offers(list: &Marketplace) -> String {
    let line = |offer: &kode_engine::config::plugin::marketplace::PluginOffer| {
        let said = match (&offer.source, offer.description.as_str()) {
            (Err(reason), _) => format!(": cannot be installed, for {reason}"),
            (Ok(_), "") => String::new(),
            (Ok(_), description) => format!(": {description}"),
        };
        format!("  {}@{}{said}\n", offer.name, list.name)
    };
    list.plugins.iter().map(line).collect()
}

async fn install(store: &Store, folder: &AbsPath, id: &PluginId, yes: bool) -> anyhow::Result<String> {
    let staged = store.stage(id).await?;
    if !staged.is_installed {
        agree(id, &staged, yes)?;
        store.install(staged)?;
    }
    let switched = switch(folder, id, ScopeName::User, Some(true))?;
    Ok(format!("installed {id}\n{switched}"))
}

async fn update(store: &Store, plugin: Option<&str>, yes: bool) -> anyhow::Result<String> {
    let ids = match plugin {
        Some(plugin) => vec![store.meant(plugin)?],
        None => {
            let installed = store.installed();
            let ours = installed.iter().filter(|(_, plugin)| plugin.digest.is_some());
            ours.map(|(id, _)| id.clone()).collect()
        }
    };
    let mut text = String::new();
    for id in ids {
        store.update_marketplace(&id.marketplace).await?;
        let staged = store.stage(&id).await?;
        if staged.is_installed {
            let _ = writeln!(text, "{id} is up to date");
            continue;
        }
        agree(&id, &staged, yes)?;
        store.install(staged)?;
        let _ = writeln!(text, "updated {id}");
    }
    Ok(text)
}

/// Shows what a plugin brings, and has the person say yes to it.
fn agree(id: &PluginId, staged: &StagedPlugin, yes: bool) -> anyhow::Result<()> {
    let (lines, problems) = staged.plugin.contents();
    let version = staged.plugin.version.as_deref().unwrap_or("of no version");
    let mut text = format!("{id} {version}: {}\n", staged.plugin.description);
    text.extend(lines.iter().map(|line| format!("  {line}\n")));
    text.push_str(&problem_lines(&problems));
    terminal::error_line(printable(&text).trim_end());
    if yes {
        return Ok(());
    }
    anyhow::ensure!(
        terminal::is_interactive(),
        "not installed: there is no terminal to ask in; review the plugin, then install it with `--yes`"
    );
    let mut stderr = io::stderr().lock();
    write!(stderr, "Install it, and let all of this run? [y/N] ").and_then(|()| stderr.flush())?;
    drop(stderr);
    let mut line = String::new();
    io::stdin().lock().read_line(&mut line).context("no answer could be read")?;
    anyhow::ensure!(matches!(line.trim(), "y" | "Y" | "yes"), "not installed");
    Ok(())
}

fn uninstall(store: &Store, folder: &AbsPath, plugin: &str) -> anyhow::Result<String> {
    let id = store.meant(plugin)?;
    let data = store.uninstall(&id)?;
    switch(folder, &id, ScopeName::User, None)?;
    let kept = match data.as_path().is_dir() {
        true => format!("; its data is still in {data}"),
        false => String::new(),
    };
    Ok(format!("uninstalled {id}{kept}\n"))
}

/// Writes that a plugin is on or off, or takes that out.
fn switch(folder: &AbsPath, id: &PluginId, scope: ScopeName, value: Option<bool>) -> anyhow::Result<String> {
    let policy = policies::of(folder)?;
    let change =
        policy.set(scope.into(), &format!("enabledPlugins.{id}"), value.map(Value::Bool).as_ref())?;
    let word = if value == Some(true) { "enabled" } else { "disabled" };
    Ok(format!("{word} {id} in {}\n", change.file))
}

fn validate(folder: &AbsPath) -> anyhow::Result<ExitCode> {
    let mut problems = Vec::new();
    let list = Marketplace::read(folder, &mut problems);
    let mut text = String::new();
    if let Some(list) = &list {
        let _ = writeln!(text, "marketplace {}, {} plugins", list.name, list.plugins.len());
        text.push_str(&offers(list));
    }
    let plugin = std::sync::Arc::new(Plugin::open(folder, folder, None));
    let is_plugin = plugin.manifest.is_some();
    if is_plugin {
        let (lines, found) = plugin.contents();
        let _ = writeln!(text, "plugin {}", plugin.folders.name);
        text.extend(lines.iter().map(|line| format!("  {line}\n")));
        problems.extend(found);
    }
    anyhow::ensure!(
        is_plugin || list.is_some() || !problems.is_empty(),
        "there is neither `.claude-plugin/plugin.json` nor `.claude-plugin/marketplace.json` in {folder}"
    );
    text.push_str(&problem_lines(&problems));
    terminal::output(&printable(&text))?;
    let is_bad = problems.iter().any(|problem| problem.severity == ProblemSeverity::Error);
    Ok(if is_bad { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

fn problem_lines(problems: &[SettingsProblem]) -> String {
    let line = |problem: &SettingsProblem| {
        let place = match (&problem.file, problem.place) {
            (Some(file), Some(place)) => format!("{file}:{}: ", place.line + 1),
            (Some(file), None) => format!("{file}: "),
            (None, _) => String::new(),
        };
        format!("  ! {place}{}\n", problem.message)
    };
    problems.iter().map(line).collect()
}
