//! Writes the JSON Schema of the wire types, the types for TypeScript and Lua, and the reference of methods and events.
//!
//! Rule: the files are committed and a test compares them with the generated text; nothing but the schema document
//! feeds the printers, so that all languages say the same.

#![expect(clippy::disallowed_methods, reason = "it writes the generated files")]

mod lua;
mod markdown;
mod outline;
mod schema;
mod stamp;
mod typescript;

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context;
use kode_protocol::PROTOCOL_VERSION;
use sha2::{Digest, Sha256};

use crate::outline::Outline;
use crate::stamp::Stamp;

/// The version and hash that the Neovim client loads. The plugin is installed alone, so its files are in its folder.
const LUA_WIRE: &str = "../../editors/neovim/lua/kode/wire.lua";

/// The types for language servers and type checkers; Neovim never loads them.
const LUA_TYPES: &str = "../../editors/neovim/lua/kode/types.lua";

/// The page for people.
const REFERENCE: &str = "../../server/docs/reference/events.md";

fn main() -> anyhow::Result<()> {
    for file in files()? {
        let path = folder().join(file.name);
        fs::write(&path, file.text).with_context(|| format!("cannot write {}", path.display()))?;
    }
    Ok(())
}

/// A generated file.
struct File {
    name: &'static str,
    text: String,
}

fn files() -> anyhow::Result<Vec<File>> {
    let schema = schema::document();
    let outline = Outline::read(&schema)?;
    let schema = format!("{}\n", serde_json::to_string_pretty(&schema)?);
    let digest = Sha256::digest(schema.as_bytes());
    let schema_hash: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
    let hash = format!("{schema_hash}\n");
    let stamp = Stamp { protocol_version: PROTOCOL_VERSION, schema_hash };
    Ok(vec![
        File { name: REFERENCE, text: markdown::print(&outline) },
        File { name: "schema.json", text: schema },
        File { name: "schema.hash", text: hash },
        File { name: "kode.ts", text: typescript::print(&outline, &stamp) },
        File { name: LUA_WIRE, text: lua::print_constants(&stamp) },
        File { name: LUA_TYPES, text: lua::print_types(&outline) },
    ])
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("generated")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stamp::COMMAND;

    #[test]
    fn generated_files_are_fresh() {
        for file in files().unwrap() {
            let path = folder().join(file.name);
            let committed = fs::read_to_string(&path).unwrap_or_default();
            assert!(committed == file.text, "{} is stale; run `{COMMAND}` and commit it", path.display());
        }
    }

    #[test]
    fn nothing_of_rust_shows_in_the_bindings() {
        for file in files().unwrap() {
            for mark in ["[`", "::", "Option<", "serde"] {
                assert!(!file.text.contains(mark), "{} contains `{mark}`", file.name);
            }
        }
    }
}
