//! MCP servers: those that others wrote, in all forms of the wire, and one that misbehaves in every way there is.

#[cfg(unix)]
pub(crate) mod auth;
mod changes;
mod faults;
mod many;
mod of_agents;
pub(crate) mod pages;
mod real;

use std::path::{Path, PathBuf};

use kode_e2e::{Client, Project, binary};
use serde_json::{Value, json};

/// Our own server that misbehaves.
pub(crate) fn faulty() -> PathBuf {
    binary().with_file_name(format!("fault-mcp-server{}", std::env::consts::EXE_SUFFIX))
}

/// Starts a server of ours whose user has these MCP servers in their own settings, outside the sandbox.
fn open(project: &Project, servers: &Value, variables: &[(&str, &str)]) -> Client {
    let home = user_home(project);
    std::fs::create_dir_all(home.join(".kode-ls")).unwrap();
    let settings = json!({ "mcpServers": servers, "sandbox": { "enabled": false } });
    std::fs::write(home.join(".kode-ls/settings.json"), settings.to_string()).unwrap();
    start(project, variables)
}

/// Starts a server of ours with a home folder of its own.
fn start(project: &Project, variables: &[(&str, &str)]) -> Client {
    let home = user_home(project);
    std::fs::create_dir_all(&home).unwrap();
    // Other tests may keep the machine busy: tests that must not wait say so.
    let mut variables = [&[("KODE_LS_MCP_WAIT", "30000")], variables].concat();
    let home = home.to_str().unwrap().to_owned();
    let cache = format!("{home}/cache");
    variables.extend([("HOME", home.as_str()), ("XDG_CACHE_HOME", cache.as_str())]);
    let client = project.start_as(&[], &variables);
    client.initialize(kode_e2e::Offer::kode().params(&project.workspace()));
    client
}

fn user_home(project: &Project) -> PathBuf {
    project.outside().join("user")
}

/// One entry for a program.
fn program(command: &Path, arguments: &[&str]) -> Value {
    json!({ "command": command, "args": arguments })
}

/// The server of that name as it is listed now.
fn listed(client: &Client, name: &str) -> Value {
    let listed = client.call("agent/mcp/list", json!({}));
    let servers = listed["servers"].as_array().unwrap();
    servers.iter().find(|server| server["name"] == name).unwrap_or_else(|| panic!("{listed}")).clone()
}
