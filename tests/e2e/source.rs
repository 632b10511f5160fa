//! The sources of the workspace as data: modules, the items that they define, and the paths that they use.
//!
//! Rule: code that only tests compile is left out, and a macro's tokens count as code. The parser is `syn`; nothing is
//! expanded, so names that a derive or a macro generates are unknown here.

mod collect;
mod manifest;
mod resolve;

use std::collections::HashMap;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

pub(crate) use manifest::{Package, Target};
pub(crate) use resolve::Entity;

/// The index of a module in [`Workspace::modules`].
pub(crate) type ModuleId = usize;

/// All packages of the repository with their modules.
#[derive(Default)]
pub(crate) struct Workspace {
    pub(crate) packages: Vec<Package>,
    pub(crate) targets: Vec<Target>,
    pub(crate) modules: Vec<Module>,
    /// Paths from the root of the repository.
    pub(crate) files: Vec<PathBuf>,
}

/// A module, in a file of its own or inline.
pub(crate) struct Module {
    pub(crate) target: usize,
    /// Segments from the root of the crate; empty for the root itself.
    pub(crate) path: Vec<String>,
    pub(crate) parent: Option<ModuleId>,
    pub(crate) file: usize,
    /// Whether only tests compile it.
    pub(crate) is_test: bool,
    pub(crate) children: HashMap<String, ModuleId>,
    pub(crate) items: Vec<Item>,
    pub(crate) imports: Vec<Import>,
    pub(crate) uses: Vec<PathUse>,
}

/// An item that other modules can name.
pub(crate) struct Item {
    pub(crate) name: String,
    pub(crate) kind: ItemKind,
    /// Counted from 1.
    pub(crate) line: usize,
    /// The block that holds it, in bytes of the file; `None` for items of the module.
    pub(crate) block: Option<Range<usize>>,
    /// The variants of an enum.
    pub(crate) variants: Vec<Segment>,
    pub(crate) is_test: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ItemKind {
    Type,
    Value,
    Macro,
}

/// One leaf of a `use` tree.
pub(crate) struct Import {
    /// The name that it binds; `None` for a glob.
    pub(crate) name: Option<String>,
    pub(crate) path: PathUse,
}

/// A path as it is in the source.
#[derive(Clone)]
pub(crate) struct PathUse {
    pub(crate) segments: Vec<Segment>,
    /// The blocks around it that hold items or imports, innermost last, in bytes of the file.
    pub(crate) blocks: Vec<Range<usize>>,
    /// Whether it begins with `::`.
    pub(crate) is_global: bool,
    pub(crate) is_test: bool,
}

/// A name in a path, or of a variant.
#[derive(Clone)]
pub(crate) struct Segment {
    pub(crate) name: String,
    /// Counted from 1.
    pub(crate) line: usize,
}

impl Workspace {
    /// The libraries and programs of the product, read once for all tests.
    pub(crate) fn product() -> &'static Self {
        static PRODUCT: OnceLock<Workspace> = OnceLock::new();
        PRODUCT.get_or_init(|| {
            let is_product = |target: &Target| target.is_product && !target.root.starts_with("tests");
            Self::load(root(), is_product)
        })
    }

    /// Reads the packages of the repository at `root` with the targets that `wanted` selects.
    pub(crate) fn load(root: &Path, wanted: impl Fn(&Target) -> bool) -> Self {
        let (packages, targets) = manifest::read(root);
        let mut workspace = Self { packages, ..Self::default() };
        for target in targets.into_iter().filter(|target| wanted(target)) {
            collect::target(&mut workspace, root, target);
        }
        workspace
    }

    /// The first segment of a module's path; `lib` or `main` for the root of a crate.
    pub(crate) fn top(&self, module: ModuleId) -> &str {
        let module = &self.modules[module];
        match module.path.first() {
            Some(first) => first,
            None if self.targets[module.target].is_library => "lib",
            None => "main",
        }
    }

    /// `file:line` of a line in the file of a module.
    pub(crate) fn show(&self, module: ModuleId, line: usize) -> String {
        format!("{}:{line}", self.files[self.modules[module].file].display())
    }
}

/// The root of the repository.
pub(crate) fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the tests are in a folder of the repository")
}

impl PathUse {
    /// The path as it is written, its prefix included.
    pub(crate) fn text(&self) -> String {
        let names: Vec<&str> = self.segments.iter().map(|segment| segment.name.as_str()).collect();
        names.join("::")
    }
}
