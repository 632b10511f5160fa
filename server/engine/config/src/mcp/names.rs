//! The names of MCP tools: for the model, for rules, and for people.
//!
//! Rule: a canonical name is `mcp__server__tool`, at most [`MAX_NAME`] characters that every provider takes; different tools
//! never share one, and the part of the server never holds `__`, so that it can be told from the tool's.

use std::collections::{BTreeSet, HashSet};

use parking_lot::Mutex;
use sha2::{Digest, Sha256};

use kode_permission::rules::names::{MCP_PREFIX, mcp_forms};

/// The most characters of a tool's name that providers take.
pub const MAX_NAME: usize = 64;

/// The most characters of a server's part of a name.
const MAX_SERVER: usize = 28;

/// Number of characters of a hash that distinguish shortened names.
const HASH: usize = 8;

/// Maximum number of names that are kept in the life of the process; tools beyond are left out.
const MAX_KEPT: usize = 20_000;

/// Names that other agents keep for themselves.
const RESERVED: [&str; 3] = ["ide", "workspace", "claude-in-chrome"];

/// The names that tools have had; a name lives as long as the process.
static KEPT: Mutex<Option<HashSet<&'static str>>> = Mutex::new(None);

/// The same text for as long as the process lives; `None` when there are too many.
#[must_use]
pub fn kept(name: &str) -> Option<&'static str> {
    let mut kept = KEPT.lock();
    let kept = kept.get_or_insert_default();
    if let Some(known) = kept.get(name) {
        return Some(known);
    }
    if kept.len() >= MAX_KEPT {
        return None;
    }
    let name: &'static str = Box::leak(name.to_owned().into_boxed_str());
    kept.insert(name);
    Some(name)
}

/// Whether a server cannot be called so, because the name means something else.
#[must_use]
pub fn is_reserved(server: &str) -> bool {
    RESERVED.iter().any(|reserved| reserved.eq_ignore_ascii_case(server))
}

/// The part of a server in the names of its tools; `taken` are those of others.
#[must_use]
pub fn server_part(server: &str, taken: &BTreeSet<String>) -> String {
    let mut cleaned = cleaned(server);
    while cleaned.contains("__") {
        cleaned = cleaned.replace("__", "_");
    }
    let cleaned = cleaned.trim_matches('_');
    let part = if cleaned.is_empty() || cleaned.len() > MAX_SERVER {
        shortened(cleaned, server, MAX_SERVER)
    } else {
        cleaned.to_owned()
    };
    if taken.contains(&part) { shortened(&part, server, MAX_SERVER) } else { part }
}

/// The canonical name of a tool; `taken` are those of other tools of the server.
#[must_use]
pub fn tool_name(server_part: &str, tool: &str, taken: &BTreeSet<String>) -> String {
    let room = MAX_NAME - MCP_PREFIX.len() - server_part.len() - 2;
    let clean = cleaned(tool);
    let part = if clean.is_empty() || clean.len() > room { shortened(&clean, tool, room) } else { clean };
    let name = |part: &str| format!("{MCP_PREFIX}{server_part}__{part}");
    let first = name(&part);
    if taken.contains(&first) { name(&shortened(&part, tool, room)) } else { first }
}

/// How a tool is named to people.
#[must_use]
pub fn shown(server: &str, tool: &str) -> String {
    format!("{server}:{tool}")
}

/// Whether a name, as written, means the tool with this canonical name: that itself, its server, all of
/// its server's tools, or one of the forms of other agents.
#[must_use]
pub fn covers(written: &str, name: &str) -> bool {
    if written == name {
        return true;
    }
    let Some(forms) = mcp_forms(name) else { return false };
    if forms.iter().any(|form| form == written) {
        return true;
    }
    let prefix = written.strip_suffix('*');
    prefix.is_some_and(|prefix| prefix.starts_with(MCP_PREFIX) && name.starts_with(prefix))
}

/// A text in the letters that names may have.
fn cleaned(text: &str) -> String {
    let is_kept = |char: char| char.is_ascii_alphanumeric() || matches!(char, '_' | '-');
    text.chars().map(|char| if is_kept(char) { char } else { '_' }).collect()
}

/// The beginning of a cleaned text with a hash of the original behind it.
fn shortened(cleaned: &str, original: &str, room: usize) -> String {
    let digest = Sha256::digest(original.as_bytes());
    let hash: String = digest.iter().map(|byte| format!("{byte:02x}")).collect::<String>()[..HASH].to_owned();
    let begin: String = cleaned.chars().take(room.saturating_sub(HASH + 1)).collect();
    let begin = begin.trim_end_matches('_');
    if begin.is_empty() { hash } else { format!("{begin}_{hash}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn none() -> BTreeSet<String> {
        BTreeSet::new()
    }

    #[test]
    fn names_are_cleaned_and_the_server_can_be_distinguished_from_the_tool() {
        let server = server_part("my.server__two ", &none());
        assert_eq!(server, "my_server_two");
        let name = tool_name(&server, "read file__all", &none());
        assert_eq!(name, "mcp__my_server_two__read_file__all");
        assert_eq!(mcp_forms(&name).unwrap()[0], "mcp__my_server_two");
    }

    #[test]
    fn no_two_tools_share_a_name_however_long_or_alike() {
        let mut taken = none();
        let long = "x".repeat(200);
        for tool in ["a.b", "a b", "a_b", "语言", "工具", &long, &format!("{long}y")] {
            let name = tool_name("server", tool, &taken);
            assert!(name.len() <= MAX_NAME, "{name}");
            assert!(taken.insert(name.clone()), "{tool} → {name}");
        }
        let mut servers = none();
        for server in ["a.b", "a_b", "ü", "ö", &long] {
            let part = server_part(server, &servers);
            assert!(!part.contains("__") && part.len() <= MAX_SERVER, "{part}");
            assert!(servers.insert(part));
        }
    }

    #[test]
    fn every_form_of_a_name_means_the_tool_and_no_other() {
        let name = "mcp__git_hub__get_me";
        for written in [
            name,
            "mcp__git_hub",
            "mcp__git_hub__*",
            "mcp__git_hub__get*",
            "mcp_git_hub_get_me",
            "git_hub__get_me",
        ] {
            assert!(covers(written, name), "{written}");
        }
        for written in ["mcp__git", "mcp__git_hub__get", "get*", "*", "Read"] {
            assert!(!covers(written, name), "{written}");
        }
    }

    #[test]
    fn a_name_is_kept_once() {
        let first = kept("mcp__x__y").unwrap();
        assert!(std::ptr::eq(first, kept("mcp__x__y").unwrap()));
    }
}
