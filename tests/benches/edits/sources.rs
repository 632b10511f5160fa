//! The files that cases are taken from: eight languages, from this repository and from packages.
//!
//! Rule: packages come from the folder that the installer names, and from the crates that the lock file pins.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use ignore::WalkBuilder;
use serde_json::Value;

/// Lines of a file: shorter ones have hardly a passage, longer ones cost the other agents minutes.
const LINES: std::ops::RangeInclusive<usize> = 20..=600;
/// Bytes of the longest line: no code that was made by a program.
const MAX_LINE: usize = 300;
/// Crates with the sources of two languages.
const CRATES: [&str; 4] = ["regex-automata", "ring", "tokio", "tree-sitter"];

/// The languages, by the endings of their files.
const LANGUAGES: [(&str, &[&str]); 8] = [
    ("Rust", &["rs"]),
    ("TypeScript", &["ts", "tsx"]),
    ("JavaScript", &["js", "mjs"]),
    ("Python", &["py"]),
    ("Go", &["go"]),
    ("C", &["c"]),
    ("C++", &["h", "hpp"]),
    ("Lua", &["lua"]),
];

/// The files of each language, in the order of their paths.
pub(crate) fn read() -> Vec<(&'static str, Vec<String>)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let mut folders = vec![root.join("server"), root.join("editors"), root.join("tests")];
    folders.extend(installed());
    let crates = crates(root);
    LANGUAGES
        .into_iter()
        .map(|(language, endings)| {
            // Headers of C are left to the packages of C++.
            let own = folders.iter().chain(crates.iter().filter(|_| matches!(language, "Rust" | "C")));
            let mut files: Vec<PathBuf> = own.flat_map(|folder| files(folder, endings)).collect();
            files.sort();
            files.dedup();
            let texts: Vec<String> = files
                .iter()
                .filter_map(|file| fs::read_to_string(file).ok())
                .filter(|text| is_usual(text))
                .collect();
            assert!(
                texts.len() >= 5,
                "{language}: {} files; install the packages with tests/tools/install-matchers.sh",
                texts.len()
            );
            (language, texts)
        })
        .collect()
}

fn is_usual(text: &str) -> bool {
    LINES.contains(&text.lines().count()) && text.lines().all(|line| line.len() <= MAX_LINE)
}

/// The folder of the packages that the installer brought, where the script that runs the benchmark names it.
fn installed() -> Option<PathBuf> {
    std::env::var_os("KODE_MATCHERS").map(|folder| PathBuf::from(folder).join("sources"))
}

fn crates(root: &Path) -> Vec<PathBuf> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let output = Command::new(cargo)
        .args(["metadata", "--locked", "--format-version", "1"])
        .current_dir(root)
        .output()
        .unwrap();
    let metadata: Value = serde_json::from_slice(&output.stdout).expect("cargo describes the workspace");
    let packages = metadata["packages"].as_array().unwrap().iter();
    let named = packages.filter(|package| CRATES.contains(&package["name"].as_str().unwrap()));
    named
        .map(|package| Path::new(package["manifest_path"].as_str().unwrap()).parent().unwrap().to_owned())
        .collect()
}

fn files(folder: &Path, endings: &[&str]) -> Vec<PathBuf> {
    let walk = WalkBuilder::new(folder).require_git(false).build();
    let files = walk.filter_map(Result::ok).map(ignore::DirEntry::into_path);
    let fits = |file: &PathBuf| {
        file.extension().and_then(|ending| ending.to_str()).is_some_and(|ending| endings.contains(&ending))
    };
    files.filter(fits).collect()
}
