//! The packages of the workspace as `cargo metadata` prints them.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

/// A package of the workspace.
pub(crate) struct Package {
    pub(crate) name: String,
    /// Packages of the workspace that its library and programs need; dev-dependencies are left out.
    pub(crate) dependencies: Vec<String>,
    /// The manifest, from the root of the repository.
    pub(crate) manifest: PathBuf,
}

/// A crate that cargo compiles.
pub(crate) struct Target {
    /// The index of its package.
    pub(crate) package: usize,
    /// The name of the crate in paths, with underscores.
    pub(crate) name: String,
    /// The file of the crate's root, from the root of the repository.
    pub(crate) root: PathBuf,
    /// Whether other crates can name its items.
    pub(crate) is_library: bool,
    /// Whether it is in the product: a library or a program, neither a test nor a benchmark.
    pub(crate) is_product: bool,
    /// The module of the crate's root.
    pub(crate) module: usize,
}

/// Reads packages and targets; a package's targets refer to it by index.
pub(crate) fn read(root: &Path) -> (Vec<Package>, Vec<Target>) {
    let arguments = ["metadata", "--no-deps", "--offline", "--format-version", "1"];
    let output = Command::new(env!("CARGO")).args(arguments).current_dir(root).output().expect("cargo");
    assert!(output.status.success(), "cargo metadata: {}", String::from_utf8_lossy(&output.stderr));
    let metadata: Value = serde_json::from_slice(&output.stdout).expect("cargo metadata prints JSON");
    let list = metadata["packages"].as_array().expect("a list of packages");
    let names: Vec<&str> = list.iter().map(|package| text(&package["name"])).collect();
    let mut targets = Vec::new();
    let mut packages = Vec::new();
    for (index, package) in list.iter().enumerate() {
        let all = package["dependencies"].as_array().into_iter().flatten();
        let normal = all.filter(|dependency| dependency["kind"].is_null());
        let mut dependencies: Vec<String> =
            normal.map(|dependency| text(&dependency["name"]).to_owned()).collect();
        dependencies.retain(|name| names.contains(&name.as_str()));
        let manifest = relative(root, text(&package["manifest_path"]));
        packages.push(Package { name: text(&package["name"]).to_owned(), dependencies, manifest });
        let all = package["targets"].as_array().into_iter().flatten();
        targets.extend(all.filter_map(|target| target_of(root, index, target)));
    }
    (packages, targets)
}

fn target_of(root: &Path, package: usize, target: &Value) -> Option<Target> {
    let is = |kind: &str| target["kind"].as_array().is_some_and(|kinds| kinds.iter().any(|one| one == kind));
    (!is("custom-build")).then(|| Target {
        package,
        name: text(&target["name"]).replace('-', "_"),
        root: relative(root, text(&target["src_path"])),
        is_library: is("lib"),
        is_product: is("lib") || is("bin"),
        module: 0,
    })
}

fn relative(root: &Path, path: &str) -> PathBuf {
    Path::new(path)
        .strip_prefix(root)
        .unwrap_or_else(|_| panic!("{path} is outside the repository"))
        .to_owned()
}

fn text(value: &Value) -> &str {
    value.as_str().expect("a string")
}
