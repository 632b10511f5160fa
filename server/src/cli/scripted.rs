//! `kode-ls scripted-model`: the scripted model for tests of clients, in all wire formats.
//!
//! Rule: it says where it listens in one JSON line on standard output and then serves until standard input ends, so
//! that it never outlives the test that started it.

use std::io::Read;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context;
use clap::Args;
use kode_engine::base::task;
use kode_engine::providers::scripted::{Script, ScriptedServer};
use serde_json::json;

use crate::cli::terminal;

/// The arguments of `kode-ls scripted-model`.
#[derive(Debug, Args)]
pub struct ScriptedArgs {
    /// The script, as JSON [default: the built-in demo]
    #[arg(long, value_name = "FILE")]
    script: Option<PathBuf>,
    /// Port on 127.0.0.1; 0 takes a free one
    #[arg(long, default_value_t = 0)]
    port: u16,
}

/// Serves the script until standard input ends.
///
/// # Errors
/// A script that cannot be read, a port that is taken.
pub async fn run(args: ScriptedArgs) -> anyhow::Result<ExitCode> {
    let script = match &args.script {
        None => Script::demo()?,
        Some(path) => {
            let text = std::fs::read_to_string(path)
                .with_context(|| format!("could not read {}", path.display()))?;
            Script::from_json(&text).with_context(|| format!("{} is not a script", path.display()))?
        }
    };
    let server = ScriptedServer::serve(script, SocketAddr::from((Ipv4Addr::LOCALHOST, args.port)))
        .await
        .context("could not serve the script")?;
    terminal::output(&format!("{}\n", json!({ "listening": server.base_url() })))?;
    let end = task::spawn_blocking(|| std::io::stdin().read_to_end(&mut Vec::new()));
    end.await.context("standard input")?.context("standard input")?;
    Ok(ExitCode::SUCCESS)
}
