//! The command line: which front end to start, and the ones that need no editor.
//!
//! Rule: standard output carries the requested output and nothing else: frames for the language server, the answer or
//! JSON for `run`; everything for people to watch goes to standard error.

pub mod acp;
mod aside;
pub mod chat;
pub mod config;
pub mod demo;
pub mod doctor;
pub mod mcp;
pub mod models;
mod pages;
pub mod permissions;
pub mod plugin;
mod questions;
pub mod reference;
pub mod run;
pub mod sandbox;
mod screen;
pub mod scripted;
pub mod sessions;
pub mod setup;
mod terminal;
pub mod trust;
mod watch;
pub mod wrap;

use std::collections::BTreeMap;
use std::io::IsTerminal as _;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context;
use clap::{Args, Parser, Subcommand};
use kode_engine::base::paths::{AbsPath, real_path};
use kode_engine::base::spelling::Spellings;
use kode_engine::config::settings::SettingsPolicies;
use kode_engine::model::models::{Models, Pointer, ProfileLayer};
use kode_engine::model::profile::ProfileOptions;
use kode_engine::process::sandbox::{ARGUMENT, HelperProgram, tied};

/// A coding agent that is a language server.
///
/// Without a command it speaks the Language Server Protocol on standard input and output; editors start it so. In a terminal
/// it starts a conversation.
#[derive(Debug, Parser)]
#[command(name = "kode-ls", version)]
pub struct Cli {
    #[command(subcommand)]
    command: Option<Command>,

    /// Speak the Language Server Protocol on standard input and output, also in a terminal
    #[arg(long)]
    stdio: bool,

    /// When to use color
    #[arg(long, value_enum, global = true, value_name = "WHEN", hide_short_help = true)]
    color: Option<terminal::Color>,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Speak the Language Server Protocol on standard input and output
    Lsp {
        /// Accepted because many editors add it; standard input and output are always used
        #[arg(long)]
        stdio: bool,
    },
    /// Speak the Agent Client Protocol on standard input and output
    Acp(acp::AcpArgs),
    /// Serve an editor together with another language server
    Wrap(wrap::WrapArgs),
    /// Start a conversation in the terminal
    Chat(chat::ChatArgs),
    /// Run a prompt without an editor
    Run(run::RunArgs),
    /// Show one complete turn in a temporary project with the built-in scripted model
    Demo(demo::DemoArgs),
    /// Run a command in the sandbox that the agent's commands get
    Sandbox(sandbox::SandboxArgs),
    /// List, explain, add and remove permission rules
    Permissions(permissions::PermissionsArgs),
    /// Print the settings in effect with their sources, change one, or print their schema
    Config(config::ConfigArgs),
    /// List, approve and revoke hooks, servers and settings of this workspace
    Trust(trust::TrustArgs),
    /// List, add, remove and test MCP servers, and sign in to them
    Mcp(mcp::McpArgs),
    /// Add marketplaces; install, switch and inspect plugins
    Plugin(plugin::PluginArgs),
    /// List the model profiles, with the reason if one cannot be used
    Models(models::ModelsArgs),
    /// Choose a provider, enter a key, test it, and save a profile
    Setup(setup::SetupArgs),
    /// List, show, rename, archive, delete, search and export the stored sessions
    Sessions(sessions::SessionsArgs),
    /// Check the model, the sandbox, the settings and missing parts
    Doctor(doctor::DoctorArgs),
    /// Print the reference of settings, commands or tools as Markdown
    Reference(reference::ReferenceArgs),
    /// Print shell completions
    Completions(pages::CompletionsArgs),
    /// Print the manual page, or write all pages into a folder
    Man(pages::ManArgs),
    /// Serve a scripted model on loopback, for tests of clients
    ScriptedModel(scripted::ScriptedArgs),
}

/// Which model to use, and where it is.
#[derive(Debug, Default, Args)]
#[command(next_help_heading = "Model")]
pub struct ModelArgs {
    /// Model profile, as `kode-ls models` lists them; `demo` is built in, scripted, and needs no key
    #[arg(long, value_name = "NAME")]
    profile: Option<String>,
    /// A profile, a pointer, or the model's name at its provider
    #[arg(long, value_name = "NAME")]
    model: Option<String>,
    /// Where the model is served
    #[arg(long, value_name = "URL")]
    base_url: Option<String>,
}

impl ModelArgs {
    /// The models as the arguments, the settings and the environment give them, and the profile that was asked for.
    fn models(&self, policies: &SettingsPolicies) -> (Models, Option<String>) {
        let layer = |profiles| ProfileLayer {
            source: "the command line".to_owned(),
            profiles,
            ..ProfileLayer::default()
        };
        if self.base_url.is_none() {
            let models = crate::policies::models(policies, layer(BTreeMap::new()));
            let named = self.model.as_deref().map(|name| models.resolve(name));
            match named {
                None => return (models, self.profile.clone()),
                Some(Ok(profile)) => return (models, self.profile.clone().or(Some(profile))),
                // A model that no profile has yet.
                Some(Err(_)) => {}
            }
        }
        let options = ProfileOptions {
            model: self.model.clone(),
            base_url: self.base_url.clone(),
            ..ProfileOptions::default()
        };
        let main = BTreeMap::from([(Pointer::Main.name().to_owned(), Ok(options))]);
        (crate::policies::models(policies, layer(main)), self.profile.clone())
    }
}

/// Parses the arguments and runs what they ask for. Help and wrong arguments end the process here, as clap does.
#[must_use]
pub fn main() -> ExitCode {
    let mut arguments = std::env::args_os().skip(1);
    // The helper is started for every command; it needs none of what follows.
    if arguments.next().is_some_and(|first| first == ARGUMENT) {
        return sandbox::helper_main(arguments);
    }
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => return refuse(&error),
    };
    cli.color.unwrap_or_default().set();
    // An editor that is opened from the Dock passes on the folders of the system alone.
    #[cfg(target_os = "macos")]
    if let Err(error) = kode_engine::process::login_path::adopt() {
        terminal::error_line(&format!("kode-ls: the PATH of your login shell is not used: {error}"));
    }
    // Without its own path, programs that hang outlive a killed process, and nothing else changes.
    if let Ok(program) = std::env::current_exe() {
        tied::start_by(HelperProgram::beside(program));
    }
    let outcome = match cli.command {
        None if !cli.stdio && std::io::stdin().is_terminal() => bare(),
        None | Some(Command::Lsp { .. }) => crate::server::main(),
        Some(Command::Acp(args)) => acp::run(args),
        Some(Command::Wrap(args)) => wrap::run(args),
        Some(Command::Chat(args)) => block_on(chat::run(args)),
        Some(Command::Run(args)) => block_on(run::run(args)),
        Some(Command::Demo(args)) => block_on(demo::run(args)),
        Some(Command::Sandbox(args)) => sandbox::run(args),
        Some(Command::Permissions(args)) => permissions::run(args),
        Some(Command::Config(args)) => config::run(args),
        Some(Command::Trust(args)) => trust::run(args),
        Some(Command::Mcp(args)) => block_on(mcp::run(args)),
        Some(Command::Plugin(args)) => block_on(plugin::run(args)),
        Some(Command::Models(args)) => block_on(models::run(args)),
        Some(Command::Setup(args)) => block_on(setup::run(args)),
        Some(Command::Sessions(args)) => sessions::run(args),
        Some(Command::Doctor(args)) => block_on(doctor::run(args)),
        Some(Command::Reference(args)) => reference::run(args),
        Some(Command::Completions(args)) => pages::completions(args),
        Some(Command::Man(args)) => pages::man(args),
        Some(Command::ScriptedModel(args)) => block_on(scripted::run(args)),
    };
    outcome.unwrap_or_else(|error| {
        // The error can quote names of files, sessions and addresses that others chose.
        terminal::error_line(&crate::display::printable(&format!("error: {error:#}")));
        ExitCode::FAILURE
    })
}

/// Runs without a command in a terminal: starts a conversation, or prints two lines.
fn bare() -> anyhow::Result<ExitCode> {
    let problem = match (chat::can_talk(), models::problem_of_main(None)?) {
        (true, None) => return block_on(chat::run(chat::ChatArgs::default())),
        (true, Some(problem)) => problem,
        (false, _) => "`kode-ls run \"…\"` runs a prompt.".to_owned(),
    };
    terminal::output(&chat::introduction(&problem))?;
    Ok(ExitCode::from(WRONG))
}

/// The exit code of invalid arguments, that of clap.
const WRONG: u8 = 2;

/// Reports arguments that do not go together.
fn wrong(what: &str) -> ExitCode {
    terminal::error_line(&format!("error: {what}\n\nFor more information, try '--help'."));
    ExitCode::from(WRONG)
}

/// Prints why the arguments cannot be used, or the help. Arguments can be names that others wrote, so that characters that
/// steer a terminal are escaped.
fn refuse(error: &clap::Error) -> ExitCode {
    let text = error.render().to_string();
    let safe = crate::display::printable(&text);
    if safe == text {
        // Writing to a closed stream is no error.
        drop(error.print());
    } else {
        terminal::error_line(safe.trim_end());
    }
    u8::try_from(error.exit_code()).map_or(ExitCode::FAILURE, ExitCode::from)
}

/// Runs a front end that needs no editor.
fn block_on(front: impl Future<Output = anyhow::Result<ExitCode>>) -> anyhow::Result<ExitCode> {
    let logging = crate::logging::init_for_people();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .context("could not start the runtime")?;
    let outcome = runtime.block_on(front);
    crate::runtime::end(runtime);
    drop(logging);
    outcome
}

/// The common part of commands about the files of a workspace.
#[derive(Debug, Args)]
struct FolderArgs {
    /// JSON instead of text, at least for lists
    #[arg(long, global = true)]
    json: bool,

    /// The workspace folder instead of the current one
    #[arg(long, global = true, value_name = "FOLDER")]
    cwd: Option<PathBuf>,
}

impl FolderArgs {
    /// The workspace folder.
    fn folder(&self) -> anyhow::Result<AbsPath> {
        working_directory(self.cwd.as_ref())
    }
}

/// The folder given, or the current one.
fn working_directory(given: Option<&PathBuf>) -> anyhow::Result<AbsPath> {
    let current = std::env::current_dir().context("the current folder is not there any more")?;
    let folder = given.map_or_else(|| current.clone(), |given| current.join(given));
    anyhow::ensure!(folder.is_dir(), "{} is not a folder", folder.display());
    let folder = real_path(&folder).with_context(|| format!("could not resolve {}", folder.display()))?;
    Ok(Spellings::here().spelled(&AbsPath::new(folder)?))
}
