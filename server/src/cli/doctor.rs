//! `kode-ls doctor`: what keeps commands in check on this machine, and what is missing for more.
//!
//! Rule: everything it says was tried just now; nothing is changed.

use std::process::ExitCode;

use anyhow::Context;
use clap::Args;
use kode_engine::paths::AbsPath;
use kode_engine::sandbox::{Support, detect, secrets};
use serde_json::{Value, json};

use crate::cli::terminal;
use crate::display::printable;
use crate::home;

/// Programs that the agent uses where they are there.
const TOOLS: [&str; 3] = ["bash", "sh", "git"];

/// The arguments of `kode-ls doctor`.
#[derive(Debug, Args)]
pub struct DoctorArgs {
    /// One JSON object
    #[arg(long)]
    json: bool,
}

/// Says how things are.
///
/// # Errors
/// When it cannot be written.
pub fn run(args: &DoctorArgs) -> anyhow::Result<ExitCode> {
    let findings = findings(detect())?;
    let text = if args.json { format!("{findings:#}\n") } else { text(&findings) };
    terminal::output(&text).context("could not write")?;
    Ok(ExitCode::SUCCESS)
}

fn findings(support: &Support) -> anyhow::Result<Value> {
    let best = support.best();
    let is_full = best.as_ref().is_ok_and(|kind| kind.name() == "bubblewrap");
    let bubblewrap = match &support.bubblewrap {
        Ok(found) => json!({ "path": found.program, "version": found.version }),
        Err(reason) => json!({ "missing": reason }),
    };
    let home = etcetera::home_dir().ok().and_then(|home| AbsPath::new(home).ok());
    let hidden = secrets::places(home.as_ref(), &home::folder()?);
    let hidden: Vec<_> = hidden.into_iter().filter(|place| place.as_path().exists()).collect();
    let tools = TOOLS.map(|tool| (tool.to_owned(), json!(path_of(tool)))).into_iter();
    Ok(json!({
        "version": env!("CARGO_PKG_VERSION"),
        "sandbox": {
            "kind": best.as_ref().map_or("none", |kind| kind.name()),
            "why": match &best {
                Ok(_) if is_full => Value::Null,
                Ok(_) => json!(support.bubblewrap.as_ref().err()),
                Err(reason) => json!(reason),
            },
            "bubblewrap": bubblewrap,
            "landlock": support.landlock,
            "seccomp": support.seccomp,
            "namespaces": if is_full { json!(["user", "mount", "pid", "net", "ipc", "uts"]) } else { json!([]) },
            "network": if is_full { "off, but for hosts that are listed" } else { "off" },
            "guarded": match &best {
                Ok(_) if is_full => "cannot be changed",
                Ok(_) => "put back after each command",
                Err(_) => "not guarded",
            },
            "hidden": hidden,
        },
        "tools": tools.collect::<serde_json::Map<_, _>>(),
    }))
}

fn text(findings: &Value) -> String {
    let sandbox = &findings["sandbox"];
    let said = |value: &Value| match value {
        Value::Null => "none".to_owned(),
        Value::String(text) => printable(text),
        Value::Array(values) if values.is_empty() => "none".to_owned(),
        Value::Array(values) => values.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(", "),
        other => other.to_string(),
    };
    let mut lines = vec![format!("kode-ls {}", said(&findings["version"])), String::new()];
    let mut line = |name: &str, value: String| lines.push(format!("{name:<18}{value}"));
    line("sandbox", said(&sandbox["kind"]));
    if !sandbox["why"].is_null() {
        line("  not better", said(&sandbox["why"]));
    }
    match &sandbox["bubblewrap"]["path"] {
        Value::String(path) => {
            line("  bubblewrap", format!("{path} {}", said(&sandbox["bubblewrap"]["version"])));
        }
        _ => line("  bubblewrap", said(&sandbox["bubblewrap"]["missing"])),
    }
    for name in ["landlock", "seccomp", "namespaces", "network", "guarded", "hidden"] {
        let label = if name == "guarded" { "guarded files" } else { name };
        line(&format!("  {label}"), said(&sandbox[name]));
    }
    lines.push(String::new());
    let tools = findings["tools"].as_object().into_iter().flatten();
    lines.extend(tools.map(|(tool, path)| match path.as_str() {
        Some(path) => format!("{tool:<18}{}", printable(path)),
        None => format!("{tool:<18}not found"),
    }));
    lines.join("\n") + "\n"
}

fn path_of(tool: &str) -> Option<String> {
    let folders = std::env::var_os("PATH")?;
    let found =
        std::env::split_paths(&folders).map(|folder| folder.join(tool)).find(|path| path.is_file())?;
    Some(found.to_string_lossy().into_owned())
}
