//! From a path in a module to what it names.
//!
//! Rule: a name is searched as rustc does: blocks from the inside out, the module's items and imports, its globs, then the
//! crates. Re-exports are followed to the definition, so that an arrow leads to the module that really defines a name.

use std::collections::HashSet;

use super::{Import, ItemKind, ModuleId, PathUse, Segment, Workspace};

/// The meaning of a path's segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Entity {
    Module(ModuleId),
    /// The item at an index of the module.
    Item(ModuleId, usize),
    /// The variant at an index of an enum.
    Variant(ModuleId, usize, usize),
}

/// The imports that are being followed, against circles among re-exports.
type Trail = HashSet<(ModuleId, usize)>;

impl Workspace {
    /// The meaning of each segment of a path; empty for names outside the workspace. A name can be in several namespaces.
    pub(crate) fn resolve(&self, module: ModuleId, path: &PathUse) -> Vec<Vec<Entity>> {
        self.walk(module, path, &mut Trail::new())
    }

    /// The name that an import binds.
    pub(crate) fn resolve_import(&self, module: ModuleId, import: usize) -> Vec<Entity> {
        let mut trail = Trail::from([(module, import)]);
        self.walk(module, &self.modules[module].imports[import].path, &mut trail).pop().unwrap_or_default()
    }

    fn walk(&self, module: ModuleId, path: &PathUse, trail: &mut Trail) -> Vec<Vec<Entity>> {
        let mut found: Vec<Vec<Entity>> = Vec::new();
        for (index, segment) in path.segments.iter().enumerate() {
            let here = match found.last() {
                None => self.first(module, path, segment, trail),
                Some(before) => self.next(before, &path.segments[index - 1], segment, trail),
            };
            found.push(here);
        }
        found
    }

    fn first(&self, module: ModuleId, path: &PathUse, segment: &Segment, trail: &mut Trail) -> Vec<Entity> {
        match segment.name.as_str() {
            "crate" => return vec![Entity::Module(self.targets[self.modules[module].target].module)],
            "self" => return vec![Entity::Module(module)],
            "super" => return self.modules[module].parent.map(Entity::Module).into_iter().collect(),
            _ => {}
        }
        if path.is_global {
            return self.krate(&segment.name);
        }
        for block in path.blocks.iter().rev() {
            let found = self.lookup(module, &segment.name, Some(block), trail);
            if !found.is_empty() {
                return found;
            }
        }
        let found = self.lookup(module, &segment.name, None, trail);
        if found.is_empty() { self.krate(&segment.name) } else { found }
    }

    fn next(&self, before: &[Entity], last: &Segment, segment: &Segment, trail: &mut Trail) -> Vec<Entity> {
        let mut found = Vec::new();
        for entity in before {
            match *entity {
                Entity::Module(module)
                    if segment.name == "super" && matches!(&*last.name, "super" | "self") =>
                {
                    found.extend(self.modules[module].parent.map(Entity::Module));
                }
                Entity::Module(module) => found.extend(self.lookup(module, &segment.name, None, trail)),
                Entity::Item(module, item) => {
                    let variants = self.modules[module].items[item].variants.iter();
                    let at = variants.map(|variant| &variant.name).position(|name| *name == segment.name);
                    found.extend(at.map(|at| Entity::Variant(module, item, at)));
                }
                Entity::Variant(..) => {}
            }
        }
        found
    }

    /// The crate of a name.
    fn krate(&self, name: &str) -> Vec<Entity> {
        let target = self.targets.iter().find(|target| target.is_library && target.name == name);
        target.map(|target| Entity::Module(target.module)).into_iter().collect()
    }

    /// The meaning of a name in a module, or in one block of it.
    fn lookup(
        &self,
        module: ModuleId,
        name: &str,
        block: Option<&std::ops::Range<usize>>,
        trail: &mut Trail,
    ) -> Vec<Entity> {
        let inside = &self.modules[module];
        let mut found = Vec::new();
        if block.is_none() {
            found.extend(inside.children.get(name).map(|child| Entity::Module(*child)));
        }
        let items = inside.items.iter().enumerate();
        let own = items.filter(|(_, item)| item.name == name && item.block.as_ref() == block);
        found.extend(own.map(|(index, _)| Entity::Item(module, index)));
        let is_here = |import: &Import| import.path.blocks.last() == block;
        let imports = inside.imports.iter().enumerate().filter(|(_, import)| is_here(import));
        for (index, _) in imports.clone().filter(|(_, import)| import.name.as_deref() == Some(name)) {
            found.extend(self.follow(module, index, trail, None));
        }
        if found.is_empty() {
            for (index, _) in imports.filter(|(_, import)| import.name.is_none()) {
                found.extend(self.follow(module, index, trail, Some(name)));
            }
        }
        found.dedup();
        found
    }

    /// The target of an import: itself, or a name inside of it when it is a glob.
    fn follow(&self, module: ModuleId, index: usize, trail: &mut Trail, inside: Option<&str>) -> Vec<Entity> {
        if !trail.insert((module, index)) {
            return Vec::new();
        }
        let path = &self.modules[module].imports[index].path;
        let mut found = self.walk(module, path, trail).pop().unwrap_or_default();
        if let (Some(name), Some(last)) = (inside, path.segments.last()) {
            let segment = Segment { name: name.to_owned(), ..last.clone() };
            found = self.next(&found, last, &segment, trail);
        }
        trail.remove(&(module, index));
        found
    }

    /// Whether something is a type: a struct, enum, union, trait or alias.
    pub(crate) fn is_type(&self, entity: Entity) -> bool {
        matches!(entity, Entity::Item(module, item) if self.modules[module].items[item].kind == ItemKind::Type)
    }
}
