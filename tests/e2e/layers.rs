//! The layers of the workspace: which package may use which, and no circle among the modules of a crate.
//!
//! Rule: [`LAYERS`] is the one table, and no package is excepted. An arrow that it does not allow fails here with its
//! line. Crates in [`CIRCLES`] have circles among their own modules; the list may only shrink.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fs;
use std::path::Path;

use crate::source::{Entity, ModuleId, Package, PathUse, Workspace, root};

/// The packages from the ground up, each with the packages that it may use. Dev-dependencies are free.
const LAYERS: &[(&str, &[&str])] = &[
    ("kode-protocol", &[]),
    ("kode-base", &[]),
    ("kode-net", &["kode-base"]),
    ("kode-command", &["kode-base"]),
    ("kode-journal", &["kode-base"]),
    ("kode-process", &["kode-base", "kode-net"]),
    ("kode-model", &["kode-base", "kode-net"]),
    ("kode-text", &["kode-base", "kode-journal"]),
    ("kode-permission", &["kode-base", "kode-command"]),
    ("kode-providers", &["kode-base", "kode-net", "kode-process", "kode-model"]),
    (
        "kode-config",
        &[
            "kode-base",
            "kode-net",
            "kode-command",
            "kode-process",
            "kode-model",
            "kode-text",
            "kode-permission",
        ],
    ),
    (
        "kode-tool",
        &["kode-base", "kode-process", "kode-model", "kode-text", "kode-permission", "kode-config"],
    ),
    (
        "kode-record",
        &[
            "kode-base",
            "kode-journal",
            "kode-process",
            "kode-model",
            "kode-text",
            "kode-permission",
            "kode-config",
            "kode-tool",
        ],
    ),
    ("kode-telemetry", &["kode-base", "kode-net", "kode-record"]),
    (
        "kode-tools",
        &[
            "kode-base",
            "kode-net",
            "kode-process",
            "kode-model",
            "kode-text",
            "kode-permission",
            "kode-config",
            "kode-tool",
        ],
    ),
    (
        "kode-mcp",
        &[
            "kode-base",
            "kode-net",
            "kode-process",
            "kode-model",
            "kode-text",
            "kode-permission",
            "kode-config",
            "kode-tool",
        ],
    ),
    ("kode-languages", &["kode-base", "kode-process", "kode-text", "kode-config", "kode-tool"]),
    ("kode-acp", &["kode-base", "kode-process", "kode-tool"]),
    (
        "kode-agent",
        &[
            "kode-base",
            "kode-net",
            "kode-command",
            "kode-journal",
            "kode-process",
            "kode-model",
            "kode-text",
            "kode-permission",
            "kode-config",
            "kode-tool",
            "kode-record",
        ],
    ),
    (
        "kode-engine",
        &[
            "kode-base",
            "kode-net",
            "kode-command",
            "kode-journal",
            "kode-process",
            "kode-model",
            "kode-text",
            "kode-permission",
            "kode-providers",
            "kode-config",
            "kode-tool",
            "kode-record",
            "kode-telemetry",
            "kode-tools",
            "kode-mcp",
            "kode-languages",
            "kode-acp",
            "kode-agent",
        ],
    ),
    ("kode-ls", &["kode-protocol", "kode-engine"]),
    ("kode-testing", &["kode-base", "kode-net", "kode-journal", "kode-model", "kode-text", "kode-providers"]),
    ("kode-e2e", &["kode-protocol", "kode-engine"]),
    ("kode-fuzz", &["kode-engine", "kode-ls"]),
];

/// Packages of tests: they may use what they test.
const RIGS: &[&str] = &["kode-testing", "kode-e2e", "kode-fuzz"];

/// Crates whose top modules form a circle. The list may only shrink.
const CIRCLES: &[&str] = &["kode_command", "kode_config", "kode_model", "kode_permission"];

/// The arrows of a crate between its top modules, each with the first place that draws it.
type Arrows = BTreeMap<(String, String), String>;

#[test]
fn every_package_uses_only_the_layers_below() {
    let workspace = Workspace::product();
    let mut wrong = Vec::new();
    for package in &workspace.packages {
        let Some((_, allowed)) = LAYERS.iter().find(|(name, _)| *name == package.name) else {
            wrong.push(format!(
                "{}: the table of layers does not have {}. Add it to LAYERS in tests/e2e/layers.rs.",
                package.manifest.display(),
                package.name,
            ));
            continue;
        };
        for used in package.dependencies.iter().filter(|used| !allowed.contains(&used.as_str())) {
            wrong.push(format!(
                "{}:{}: {} uses {used}, which the table of layers does not allow. Move what it needs to a lower \
                 crate, or have the caller hand it in.",
                package.manifest.display(),
                line_of(&package.manifest, used),
                package.name,
            ));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn the_table_of_layers_has_no_circle() {
    for (place, (name, allowed)) in LAYERS.iter().enumerate() {
        let is_below = |used: &str| LAYERS[..place].iter().any(|(below, _)| *below == used);
        let above: Vec<_> = allowed.iter().filter(|used| !is_below(used)).collect();
        assert!(above.is_empty(), "{name} may use {above:?}, which are not above it in the table");
    }
}

#[test]
fn the_top_modules_of_a_crate_form_no_circle() {
    let workspace = Workspace::product();
    let mut wrong = Vec::new();
    for (index, target) in workspace.targets.iter().enumerate() {
        let is_listed = CIRCLES.contains(&target.name.as_str());
        match circle(&target.name, &arrows_of(workspace, index)) {
            Some(circle) if !is_listed => wrong.push(circle),
            None if is_listed => {
                wrong.push(format!("{} has no circle: take it out of CIRCLES.", target.name))
            }
            _ => {}
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn every_library_names_its_users() {
    let workspace = Workspace::product();
    let mut wrong = Vec::new();
    for target in workspace.targets.iter().filter(|target| target.is_library) {
        let name = &workspace.packages[target.package].name;
        if RIGS.contains(&name.as_str()) {
            continue;
        }
        let header = header_of(&target.root);
        let file = target.root.display();
        if !header.contains("Must not know: ") {
            wrong.push(format!("{file}: the header lacks a line `//! Must not know: …`."));
        }
        let is_user = |package: &&Package| {
            package.dependencies.contains(name) && !RIGS.contains(&package.name.as_str())
        };
        let users: BTreeSet<_> =
            workspace.packages.iter().filter(is_user).map(|package| short(&package.name)).collect();
        let said =
            header.split("Used by: ").nth(1).and_then(|rest| rest.split('.').next()).unwrap_or_default();
        let said: BTreeSet<_> =
            said.split(", ").filter(|name| !name.is_empty() && !name.contains(' ')).collect();
        if said != users {
            let users: Vec<_> = users.into_iter().collect();
            wrong.push(format!(
                "{file}: the header says who uses it, and it should say `//! Used by: {}.`",
                users.join(", ")
            ));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// The words of a file's header, one blank between them.
fn header_of(file: &Path) -> String {
    let text = fs::read_to_string(root().join(file)).expect("a library");
    let lines = text.lines().map_while(|line| line.strip_prefix("//!")).map(str::trim);
    lines.collect::<Vec<_>>().join(" ")
}

/// The name of a package in headers: its folder.
fn short(package: &str) -> &str {
    match package {
        "kode-ls" => "server",
        name => name.strip_prefix("kode-").unwrap_or(name),
    }
}

/// The arrows of the non-test code of a crate.
fn arrows_of(workspace: &Workspace, target: usize) -> Arrows {
    let mut arrows = Arrows::new();
    for (id, module) in workspace.modules.iter().enumerate() {
        if module.is_test || module.target != target {
            continue;
        }
        let imports = module.imports.iter().enumerate();
        let imports = imports.map(|(index, import)| (&import.path, workspace.resolve_import(id, index)));
        let uses = module.uses.iter().map(|path| (path, last(workspace, id, path)));
        for (path, entities) in imports.chain(uses).filter(|(path, _)| !path.is_test) {
            let others = entities.into_iter().filter_map(|entity| owner(workspace, path, entity));
            for other in others.filter(|other| workspace.modules[*other].target == target) {
                let arrow = (workspace.top(id).to_owned(), workspace.top(other).to_owned());
                let place = workspace.show(id, path.segments[0].line);
                if arrow.0 != arrow.1 {
                    arrows.entry(arrow).or_insert_with(|| format!("{place}: {}", path.text()));
                }
            }
        }
    }
    arrows
}

fn last(workspace: &Workspace, module: ModuleId, path: &PathUse) -> Vec<Entity> {
    workspace.resolve(module, path).pop().unwrap_or_default()
}

/// The module that an arrow leads to. A bare name is never a module, and naming the root of a crate uses nothing of it.
fn owner(workspace: &Workspace, path: &PathUse, entity: Entity) -> Option<ModuleId> {
    match entity {
        Entity::Module(module) => {
            (path.segments.len() > 1 && !workspace.modules[module].path.is_empty()).then_some(module)
        }
        Entity::Item(module, _) | Entity::Variant(module, ..) => Some(module),
    }
}

/// The shortest circle among the arrows, for people.
fn circle(name: &str, arrows: &Arrows) -> Option<String> {
    let closed = arrows.keys().filter_map(|(from, to)| {
        let mut modules = way(arrows, to, from)?;
        modules.insert(0, from.clone());
        Some(modules)
    });
    let shortest = closed.min_by_key(Vec::len)?;
    let mut text = format!("{name}: these modules form a circle:\n");
    for pair in shortest.windows(2) {
        let arrow = (pair[0].clone(), pair[1].clone());
        text.push_str(&format!("  {} → {}   {}\n", arrow.0, arrow.1, arrows[&arrow]));
    }
    text.push_str("Move what is shared to the module below both, or have the caller hand it in.");
    Some(text)
}

/// The modules on the shortest way from one to another, both included.
fn way(arrows: &Arrows, from: &str, to: &str) -> Option<Vec<String>> {
    let mut before: BTreeMap<&str, &str> = BTreeMap::new();
    let mut seen = BTreeSet::from([from]);
    let mut queue = VecDeque::from([from]);
    while let Some(at) = queue.pop_front() {
        if at == to {
            let mut modules = vec![to.to_owned()];
            let mut at = to;
            while let Some(previous) = before.get(at) {
                at = previous;
                modules.insert(0, at.to_owned());
            }
            return Some(modules);
        }
        let next = arrows.keys().filter(|(from, _)| from == at).map(|(_, to)| to.as_str());
        for next in next {
            if seen.insert(next) {
                before.insert(next, at);
                queue.push_back(next);
            }
        }
    }
    None
}

/// The line of a dependency in a manifest.
fn line_of(manifest: &Path, dependency: &str) -> usize {
    let text = fs::read_to_string(root().join(manifest)).expect("a manifest");
    text.lines().position(|line| line.starts_with(dependency)).map_or(1, |index| index + 1)
}
