//! The first descriptions of a server's tools.
//!
//! Rule: a server that describes its tools otherwise than when the user let it in is reported, until the user says that it is
//! fine; the memory is bounded.

use std::collections::BTreeMap;
use std::io;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use kode_base::atomic;
use kode_base::paths::AbsPath;

/// The file in the state folder.
const FILE: &str = "mcp/tools.json";
/// Maximum number of servers that are remembered; the first by name go first.
const MAX_SERVERS: usize = 500;
/// The file is its user's alone.
const PRIVATE: u32 = 0o600;

/// The description of every tool, by its name.
pub(crate) type ToolDescriptions = BTreeMap<String, String>;

#[derive(Debug, Default, Serialize, Deserialize)]
struct StoredDescriptions {
    #[serde(default)]
    servers: BTreeMap<String, ToolDescriptions>,
}

/// Represents all that a tool says of itself.
pub(crate) fn description(tool: &rmcp::model::Tool) -> String {
    let text = serde_json::to_string(&(&tool.description, &tool.input_schema, &tool.annotations));
    let digest = Sha256::digest(text.unwrap_or_default().as_bytes());
    digest.iter().take(16).map(|byte| format!("{byte:02x}")).collect()
}

/// The tools that say something else than they did, and those that were not there; a first description is
/// remembered. Reads and writes a file.
///
/// # Errors
/// When it cannot.
pub(crate) fn compare(state: &AbsPath, server: &str, now: &ToolDescriptions) -> io::Result<Vec<String>> {
    let mut remembered = read(state)?;
    match remembered.servers.get(server) {
        None => {
            remembered.servers.insert(server.to_owned(), now.clone());
            write(state, remembered)?;
            Ok(Vec::new())
        }
        Some(before) => {
            let differs = |(name, said): &(&String, &String)| before.get(*name) != Some(*said);
            Ok(now.iter().filter(differs).map(|(name, _)| name.clone()).collect())
        }
    }
}

/// Takes what tools say now for what they said first.
///
/// # Errors
/// When it cannot be written.
pub(crate) fn accept(state: &AbsPath, server: &str, now: ToolDescriptions) -> io::Result<()> {
    let mut remembered = read(state)?;
    remembered.servers.insert(server.to_owned(), now);
    write(state, remembered)
}

fn read(state: &AbsPath) -> io::Result<StoredDescriptions> {
    match std::fs::read(state.join(FILE)) {
        Ok(json) => Ok(serde_json::from_slice(&json).unwrap_or_else(|error| {
            tracing::warn!(%error, "the stored descriptions of MCP tools cannot be read and are dropped");
            StoredDescriptions::default()
        })),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(StoredDescriptions::default()),
        Err(error) => Err(error),
    }
}

fn write(state: &AbsPath, mut remembered: StoredDescriptions) -> io::Result<()> {
    while remembered.servers.len() > MAX_SERVERS {
        remembered.servers.pop_first();
    }
    let file = state.join(FILE);
    if let Some(folder) = file.parent() {
        std::fs::create_dir_all(folder)?;
    }
    let json = serde_json::to_vec(&remembered)?;
    match std::fs::metadata(&file) {
        Ok(metadata) => atomic::replace_as(file.as_path(), &json, &metadata, PRIVATE, || true).map(drop),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            atomic::create_as(file.as_path(), &json, PRIVATE)
        }
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(tools: &[(&str, &str)]) -> ToolDescriptions {
        tools.iter().map(|(name, said)| ((*name).to_owned(), (*said).to_owned())).collect()
    }

    #[test]
    fn what_a_tool_says_otherwise_than_first_is_reported_until_it_is_accepted() {
        let folder = tempfile::tempdir().unwrap();
        let state = AbsPath::new(folder.path()).unwrap();
        let none: [&str; 0] = [];
        let first = said(&[("read", "a"), ("write", "b")]);
        assert_eq!(compare(&state, "s", &first).unwrap(), none);
        assert_eq!(compare(&state, "s", &first).unwrap(), none);
        let later = said(&[("read", "a"), ("write", "evil"), ("new", "c")]);
        for _ in 0..2 {
            assert_eq!(compare(&state, "s", &later).unwrap(), ["new", "write"]);
        }
        assert_eq!(compare(&state, "other", &later).unwrap(), none, "another definition is another server");
        accept(&state, "s", later.clone()).unwrap();
        assert_eq!(compare(&state, "s", &later).unwrap(), none);
        assert_eq!(compare(&state, "s", &first).unwrap(), ["write"]);
    }
}
