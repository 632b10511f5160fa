//! The entry that is submitted to the registry of the Agent Client Protocol.
//!
//! Rule: the rules are those of the registry's contribution guide: id, version, distribution, icon and authentication.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::project;

const PLATFORMS: [&str; 6] =
    ["darwin-aarch64", "darwin-x86_64", "linux-aarch64", "linux-x86_64", "windows-aarch64", "windows-x86_64"];
const ARCHIVES: [&str; 5] = [".zip", ".tar.gz", ".tgz", ".tar.bz2", ".tbz2"];

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../editors/packaging/acp-registry/kode-ls")
}

/// The values of an attribute in an SVG.
fn attributes<'a>(svg: &'a str, name: &str) -> Vec<&'a str> {
    let begin = format!(" {name}=\"");
    svg.split(&begin).skip(1).filter_map(|rest| rest.split('"').next()).collect()
}

#[test]
fn the_entry_has_the_fields_and_the_version_of_the_program() {
    let entry: Value =
        serde_json::from_str(&fs::read_to_string(folder().join("agent.json")).unwrap()).unwrap();
    let id = entry["id"].as_str().unwrap();
    assert_eq!(
        Some(id),
        folder().file_name().and_then(|name| name.to_str()),
        "the folder is named by the id"
    );
    assert!(id.starts_with(|char: char| char.is_ascii_lowercase()));
    assert!(id.chars().all(|char| char.is_ascii_lowercase() || char.is_ascii_digit() || char == '-'), "{id}");
    let version = env!("CARGO_PKG_VERSION");
    assert_eq!(entry["version"], version);
    for field in ["name", "description", "repository", "license"] {
        assert!(entry[field].as_str().is_some_and(|text| !text.is_empty()), "{field}");
    }
    let binaries = entry["distribution"]["binary"].as_object().unwrap();
    assert!(!binaries.is_empty());
    for (platform, binary) in binaries {
        assert!(PLATFORMS.contains(&platform.as_str()), "{platform}");
        let archive = binary["archive"].as_str().unwrap();
        assert!(
            ARCHIVES.iter().any(|end| archive.ends_with(end)) && !archive.contains("/latest/"),
            "{archive}"
        );
        assert!(archive.contains(&format!("/download/v{version}/kode-ls-{version}-")), "{archive}");
        let name = archive.rsplit('/').next().unwrap();
        let ending = if platform.starts_with("windows-") { ".zip" } else { ".tar.gz" };
        let program = if platform.starts_with("windows-") { "kode-ls.exe" } else { "kode-ls" };
        let unpacked = name.strip_suffix(ending).unwrap_or_else(|| panic!("{name} does not end in {ending}"));
        assert_eq!(
            binary["cmd"],
            format!("./{unpacked}/{program}"),
            "the archive holds a folder of its name"
        );
        assert_eq!(binary["args"], json!(["acp"]));
    }
}

#[test]
fn the_icon_is_16_pixels_square_and_has_the_color_of_the_text() {
    let icon = fs::read_to_string(folder().join("icon.svg")).unwrap();
    assert_eq!((attributes(&icon, "width"), attributes(&icon, "height")), (vec!["16"], vec!["16"]));
    for color in attributes(&icon, "fill").into_iter().chain(attributes(&icon, "stroke")) {
        assert!(["currentColor", "none", "inherit"].contains(&color), "{color}");
    }
}

#[test]
fn a_method_of_signing_in_is_of_the_agent_or_in_a_terminal() {
    let project = project();
    let client = project.acp_as(&[]);
    let answer = client.initialize(json!({ "auth": { "terminal": true } }));
    let methods = answer["authMethods"].as_array().unwrap();
    // A method without a type is one of the agent.
    let kinds: Vec<&str> = methods.iter().map(|method| method["type"].as_str().unwrap_or("agent")).collect();
    assert_eq!(kinds, ["agent", "terminal"], "{methods:?}");
}
