//! `kode-ls mcp`: lists, adds, removes and tests the MCP servers of a folder.
//!
//! Rule: listing starts no server, and testing starts none that awaits approval.

use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use clap::{Args, Subcommand, ValueEnum};
use kode_engine::config::settings::SettingsPolicy;
use kode_engine::mcp::{Mcp, Servers};
use kode_engine::model::models::ProfileLayer;
use kode_engine::process::shell::Secrets;
use kode_engine::tool::status::{ServerInfo, ServerState};
use kode_protocol::ListMcpResult;
use serde_json::{Value, json};
use url::Url;

use crate::cli::config::ScopeName;
use crate::cli::{FolderArgs, terminal};
use crate::display::printable;
use crate::{convert, home, policies};

/// How often it is looked how far a server is.
const LOOK: Duration = Duration::from_millis(50);

/// The arguments of `kode-ls mcp`.
#[derive(Debug, Args)]
pub struct McpArgs {
    #[command(subcommand)]
    command: Option<McpCommand>,

    #[command(flatten)]
    at: FolderArgs,
}

#[derive(Debug, Subcommand)]
enum McpCommand {
    /// List the servers with their files and states, without starting any (the default)
    List,
    /// Add a server to the settings
    Add(AddArgs),
    /// Remove a server from the settings
    Remove {
        /// The server's name
        name: String,
        /// The settings to remove it from [default: all of yours]
        #[arg(long, value_enum)]
        scope: Option<ScopeName>,
    },
    /// Sign in to a server with the browser
    Login {
        /// The server's name
        name: String,
    },
    /// Start or reach one server, print its tools or its error, and end it
    Test {
        /// The server's name
        name: String,
    },
}

/// The arguments of `kode-ls mcp add`.
#[derive(Debug, Args)]
#[command(after_help = "\
kode-ls mcp add files -- npx -y @modelcontextprotocol/server-filesystem .
kode-ls mcp add hub --url https://mcp.example.com/mcp --header 'Authorization: Bearer ${HUB_TOKEN}'")]
struct AddArgs {
    /// The server's name
    name: String,
    /// The program and its arguments
    #[arg(last = true, required_unless_present = "url", conflicts_with = "url", value_name = "COMMAND")]
    command: Vec<String>,
    /// URL of a remote server
    #[arg(long, value_name = "URL")]
    url: Option<Url>,
    /// Transport of a remote server [default: detected]
    #[arg(long, value_enum, requires = "url")]
    transport: Option<TransportName>,
    /// Header of every request
    #[arg(long, value_name = "NAME: VALUE", requires = "url", value_parser = header)]
    header: Vec<(String, String)>,
    /// Environment variable of the program
    #[arg(short, long, value_name = "NAME=VALUE", conflicts_with = "url", value_parser = variable)]
    env: Vec<(String, String)>,
    /// The settings to write to
    #[arg(long, value_enum, default_value_t = ScopeName::Local)]
    scope: ScopeName,
}

/// The transport of a remote server.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum TransportName {
    /// Streamable HTTP
    Http,
    /// Server-sent events
    Sse,
}

fn header(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once(':').ok_or("write it as `NAME: VALUE`")?;
    Ok((name.trim().to_owned(), value.trim().to_owned()))
}

fn variable(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once('=').ok_or("write it as NAME=VALUE")?;
    Ok((name.to_owned(), value.to_owned()))
}

impl AddArgs {
    /// The entry for the settings.
    fn entry(&self) -> Value {
        let texts = |pairs: &[(String, String)]| {
            Value::Object(pairs.iter().map(|(name, value)| (name.clone(), json!(value))).collect())
        };
        let mut entry = json!({});
        if let Some((program, arguments)) = self.command.split_first() {
            entry["command"] = json!(program);
            if !arguments.is_empty() {
                entry["args"] = json!(arguments);
            }
        }
        if let Some(url) = &self.url {
            entry["url"] = json!(url);
        }
        match self.transport {
            Some(TransportName::Http) => entry["type"] = json!("http"),
            Some(TransportName::Sse) => entry["type"] = json!("sse"),
            None => {}
        }
        if !self.header.is_empty() {
            entry["headers"] = texts(&self.header);
        }
        if !self.env.is_empty() {
            entry["env"] = texts(&self.env);
        }
        entry
    }
}

/// Carries the command out.
///
/// # Errors
/// When there is no place for the user's state, or the answer cannot be written.
pub async fn run(args: McpArgs) -> anyhow::Result<ExitCode> {
    let (folder, as_json) = (args.at.folder()?, args.at.json);
    let policies = policies::all()?;
    let command = args.command.unwrap_or(McpCommand::List);
    match &command {
        McpCommand::Add(added) => return add(&policies::of(&folder)?, added),
        McpCommand::Remove { name, scope } => return remove(&policies::of(&folder)?, name, *scope),
        McpCommand::List | McpCommand::Login { .. } | McpCommand::Test { .. } => {}
    }
    let secrets = policies::models(&policies, ProfileLayer::default()).secrets();
    let mcp = Mcp::new(home::folder()?);
    let policy = Arc::new(policies.of_workspace(std::slice::from_ref(&folder)));
    let servers = mcp.servers(&[folder], &Secrets::new(secrets), || policy);
    servers.refresh().await;
    let code = match command {
        McpCommand::Test { name } => test(&servers, &name).await,
        McpCommand::Login { name } => login(&servers, &name).await,
        McpCommand::List | McpCommand::Add(_) | McpCommand::Remove { .. } => list(&servers, as_json),
    };
    servers.end().await;
    code
}

/// The settings key of a server.
fn key(name: &str) -> String {
    format!("mcpServers.{name}")
}

fn add(policy: &SettingsPolicy, args: &AddArgs) -> anyhow::Result<ExitCode> {
    let is_named = !args.name.is_empty()
        && args.name.chars().all(|letter| letter.is_ascii_alphanumeric() || "-_".contains(letter));
    anyhow::ensure!(is_named, "a server name may contain letters, digits, `-` and `_`");
    let change = policy.set(args.scope.into(), &key(&args.name), Some(&args.entry()))?;
    let file = printable(&change.file.to_string());
    let name = &args.name;
    terminal::output(&format!("written to {file}; `kode-ls mcp test {name}` tries it\n"))?;
    Ok(ExitCode::SUCCESS)
}

fn remove(policy: &SettingsPolicy, name: &str, scope: Option<ScopeName>) -> anyhow::Result<ExitCode> {
    let all = [ScopeName::Local, ScopeName::Project, ScopeName::User];
    let mut text = String::new();
    for scope in all.into_iter().filter(|one| scope.is_none_or(|wanted| wanted == *one)) {
        let change = policy.set(scope.into(), &key(name), None)?;
        if change.is_changed {
            text.push_str(&format!("removed from {}\n", printable(&change.file.to_string())));
        }
    }
    anyhow::ensure!(
        !text.is_empty(),
        "`{}` is not in your settings files. `kode-ls mcp` lists the file of each server",
        printable(name)
    );
    terminal::output(&text)?;
    Ok(ExitCode::SUCCESS)
}

/// Signs in, and waits for the result.
async fn login(servers: &Servers, name: &str) -> anyhow::Result<ExitCode> {
    let page = servers.authenticate(name).await;
    let page = page.map_err(|failure| anyhow::anyhow!("{failure}. {}", failure.hint))?;
    terminal::error_line("Open this page in a browser on this machine to sign in:");
    terminal::output(&format!("{}\n", printable(page.url.as_str())))?;
    let info = loop {
        let listed = servers.list();
        let info = listed.into_iter().find(|info| info.name == name).context("the server is gone")?;
        match info.state {
            ServerState::NeedsAuth | ServerState::Starting | ServerState::Stopped => {}
            _ => break info,
        }
        tokio::time::sleep(LOOK).await;
    };
    terminal::output(&described(&info)).context("could not write")?;
    Ok(if info.state == ServerState::Connected { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn list(servers: &Servers, json: bool) -> anyhow::Result<ExitCode> {
    let text = if json {
        let listed =
            ListMcpResult { servers: convert::mcp::servers(servers.list()), left_out: servers.left_out() };
        serde_json::to_string_pretty(&listed).context("could not write the list")? + "\n"
    } else {
        let listed = servers.list();
        let mut text = String::new();
        if listed.is_empty() {
            text.push_str("There are no MCP servers for this folder.\n");
        }
        for info in &listed {
            text.push_str(&described(info));
        }
        text.extend(servers.left_out().map(|left_out| format!("! {left_out}\n")));
        text
    };
    terminal::output(&text).context("could not write")?;
    Ok(ExitCode::SUCCESS)
}

async fn test(servers: &Servers, name: &str) -> anyhow::Result<ExitCode> {
    servers.reconnect(name).await.map_err(|failure| anyhow::anyhow!("{failure}. {}", failure.hint))?;
    let info = loop {
        let listed = servers.list();
        let info = listed.into_iter().find(|info| info.name == name).context("the server is gone")?;
        // The first failure is what a test is to show.
        if info.state != ServerState::Starting || info.attempts > 0 {
            break info;
        }
        tokio::time::sleep(LOOK).await;
    };
    let mut text = described(&info);
    for tool in servers.tool_list(Some(name)) {
        let line = tool.description.lines().next().unwrap_or_default();
        text.push_str(&format!("  {}  {}\n", printable(&tool.name), printable(line)));
    }
    for prompt in servers.prompts().iter().filter(|prompt| prompt.server == name) {
        text.push_str(&format!("  /{}  {}\n", printable(&prompt.command), printable(&prompt.description)));
    }
    terminal::output(&text).context("could not write")?;
    Ok(if info.state == ServerState::Connected { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn described(info: &ServerInfo) -> String {
    let state = match info.state {
        ServerState::Disabled => "switched off",
        ServerState::WaitingForApproval => "waits for your approval",
        ServerState::Stopped => "not started",
        ServerState::Starting => "starting",
        ServerState::Connected => "connected",
        ServerState::NeedsAuth => "wants you to sign in",
        ServerState::Failed => "cannot be used",
    };
    let mut text =
        format!("{}  {state}  {}  {}\n", printable(&info.name), info.kind, printable(&info.target));
    text.push_str(&format!("  in {}\n", info.source));
    if let Some(title) = &info.title {
        let counts = format!("{} tools, {} prompts, {} resources", info.tools, info.prompts, info.resources);
        text.push_str(&format!("  {}: {counts}\n", printable(title)));
    }
    if let Some(failure) = &info.failure {
        text.push_str(&format!("  ! {}. {}\n", printable(&failure.message), failure.hint));
        text.extend(failure.stderr.lines().map(|line| format!("  | {}\n", printable(line))));
    }
    if !info.changed_tools.is_empty() {
        let names = info.changed_tools.iter().map(|name| printable(name)).collect::<Vec<_>>().join(", ");
        text.push_str(&format!("  ! it describes these tools differently than at first use: {names}\n"));
    }
    text.extend(info.notes.iter().map(|note| format!("  ! {}\n", printable(note))));
    text
}
