//! The names of types: unique where they are imported, and nouns.
//!
//! Rule: a wire type of the protocol and the engine type that it mirrors share their name, and so do the forms of a type on
//! different systems; no other types do.

use std::collections::BTreeMap;

use crate::source::{Entity, ItemKind, ModuleId, Workspace};

/// How many names may be those of types in several files. Types that only their own file uses may share one.
const BUDGET: usize = 20;

/// Files with the forms of types for other systems, beside those for Linux.
const OTHER_FORMS: [&str; 2] = ["/windows.rs:", "/absent.rs:"];

/// Words that are no name of a type: they describe a moment, and a search for them finds everything.
const NO_NAMES: &[&str] = &[
    "Beside", "Brought", "Found", "Held", "Kept", "Known", "Left", "Rush", "Shown", "Told", "Wish", "Words",
];

/// A type that a module defines.
struct Type {
    module: ModuleId,
    /// `file:line` of the definition.
    place: String,
    /// The first path that names it in another file.
    import: Option<String>,
    is_of_protocol: bool,
}

#[test]
fn few_names_are_those_of_several_types() {
    let types = types(Workspace::product());
    let is_repeated = |types: &&Vec<Type>| {
        let wire = types.iter().filter(|one| one.is_of_protocol).count();
        wire > 1 || types.len() - wire > 1
    };
    let repeated: Vec<_> =
        types.iter().filter(|(_, types)| is_repeated(types)).map(|(name, _)| name).collect();
    assert!(
        repeated.len() <= BUDGET,
        "{} names are those of several types, and {BUDGET} may be. Name a type by what it holds: {repeated:?}",
        repeated.len(),
    );
}

#[test]
fn a_type_that_is_imported_has_its_name_alone() {
    let types = types(Workspace::product());
    let mut twins = Vec::new();
    for (name, types) in &types {
        let imported = types.iter().filter_map(|one| Some((one, one.import.as_ref()?))).next();
        let (wire, engine): (Vec<_>, Vec<_>) = types.iter().partition(|one| one.is_of_protocol);
        let is_alone = wire.len() <= 1 && engine.len() <= 1;
        if let (Some((one, import)), false) = (imported, is_alone) {
            twins.push((name, one, import, types));
        }
    }
    let wrong: Vec<_> = twins
        .iter()
        .map(|(name, one, import, types)| {
            let others =
                types.iter().filter(|other| other.module != one.module).map(|other| other.place.as_str());
            let others = others.collect::<Vec<_>>().join(", ");
            format!("{}: {name} is imported at {import}, and there is another at {others}.", one.place)
        })
        .collect();
    assert!(wrong.is_empty(), "{}\nName a type by what it holds.", wrong.join("\n"));
}

#[test]
fn a_type_is_named_by_a_noun() {
    let types = types(Workspace::product());
    // `Exceeded`, but not `ExceededLimit`; names of the wire are as clients know them.
    let is_participle = |name: &str| name.ends_with("ed") && !name[1..].contains(char::is_uppercase);
    let is_wrong = |name: &str| NO_NAMES.contains(&name) || is_participle(name) && name != "Feed";
    let engine = types.iter().flat_map(|(name, types)| types.iter().map(move |one| (name, one)));
    let engine = engine.filter(|(_, one)| !one.is_of_protocol);
    let wrong = engine.filter(|(name, _)| is_wrong(name));
    let wrong: Vec<_> = wrong.map(|(name, one)| format!("{}: {name} names no thing.", one.place)).collect();
    assert!(wrong.is_empty(), "{}\nName a type by what it holds.", wrong.join("\n"));
}

/// The types of non-test code by name, those within functions left out.
fn types(workspace: &Workspace) -> BTreeMap<String, Vec<Type>> {
    let imports = imports(workspace);
    let mut types: BTreeMap<String, Vec<Type>> = BTreeMap::new();
    for (id, module) in workspace.modules.iter().enumerate().filter(|(_, module)| !module.is_test) {
        let package = workspace.packages[workspace.targets[module.target].package].name.as_str();
        if package == "kode-testing" || is_other_form(&workspace.show(id, 0)) {
            continue;
        }
        for (index, item) in module.items.iter().enumerate() {
            if item.kind != ItemKind::Type || item.is_test || item.block.is_some() {
                continue;
            }
            types.entry(item.name.clone()).or_default().push(Type {
                module: id,
                place: workspace.show(id, item.line),
                import: imports.get(&Entity::Item(id, index)).cloned(),
                is_of_protocol: package == "kode-protocol",
            });
        }
    }
    types
}

/// Whether a file has the form of another file's types for a system that the tests do not run on.
fn is_other_form(place: &str) -> bool {
    OTHER_FORMS.iter().any(|form| place.contains(form))
}

/// Types that other files name, each with the first place.
fn imports(workspace: &Workspace) -> BTreeMap<Entity, String> {
    let mut imports = BTreeMap::new();
    for (id, module) in workspace.modules.iter().enumerate().filter(|(_, module)| !module.is_test) {
        let paths = module.uses.iter().chain(module.imports.iter().map(|import| &import.path));
        for path in paths.filter(|path| !path.is_test) {
            for (segment, entities) in path.segments.iter().zip(workspace.resolve(id, path)) {
                for entity in entities.into_iter().filter(|entity| workspace.is_type(*entity)) {
                    let Entity::Item(owner, _) = entity else { continue };
                    if workspace.modules[owner].file != module.file {
                        imports.entry(entity).or_insert_with(|| workspace.show(id, segment.line));
                    }
                }
            }
        }
    }
    imports
}
