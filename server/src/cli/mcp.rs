//! `kode-ls mcp`: which MCP servers there are for a folder, and whether one of them works.
//!
//! Rule: listing starts nothing; what waits for approval is not started by testing it either.

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use clap::{Args, Subcommand};
use kode_engine::mcp::{Mcp, Servers};
use kode_engine::model::models::ProfileLayer;
use kode_engine::process::shell::Secrets;
use kode_engine::tool::status::{ServerInfo, ServerState};
use kode_protocol::ListMcpResult;

use crate::cli::{terminal, working_directory};
use crate::display::printable;
use crate::{convert, home, policies};

/// How often it is looked how far a server is.
const LOOK: Duration = Duration::from_millis(50);

/// The arguments of `kode-ls mcp`.
#[derive(Debug, Args)]
pub struct McpArgs {
    #[command(subcommand)]
    command: McpCommand,
    /// The workspace folder; the current one when left out
    #[arg(long, value_name = "FOLDER", global = true)]
    cwd: Option<PathBuf>,
}

#[derive(Debug, Subcommand)]
enum McpCommand {
    /// List the servers, where their entries stand and what becomes of them; starts none
    List {
        /// One JSON object
        #[arg(long)]
        json: bool,
    },
    /// Start or reach one server, say what it offers or what is wrong, and end it
    Test {
        /// The server's name
        name: String,
    },
}

/// Carries the command out.
///
/// # Errors
/// When there is no place for the user's state, or the answer cannot be written.
pub async fn run(args: McpArgs) -> anyhow::Result<ExitCode> {
    let folder = working_directory(args.cwd.as_ref())?;
    let policies = policies::all()?;
    let secrets = policies::models(&policies, ProfileLayer::default()).secrets();
    let mcp = Mcp::new(home::folder()?);
    let policy = Arc::new(policies.of_workspace(std::slice::from_ref(&folder)));
    let servers = mcp.servers(&[folder], &Secrets::new(secrets), || policy);
    servers.refresh().await;
    let code = match args.command {
        McpCommand::List { json } => list(&servers, json),
        McpCommand::Test { name } => test(&servers, &name).await,
    };
    servers.end().await;
    code
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
        text.push_str(&format!(
            "  ! it describes these tools otherwise than when it was first used: {names}\n"
        ));
    }
    text.extend(info.notes.iter().map(|note| format!("  ! {}\n", printable(note))));
    text
}
