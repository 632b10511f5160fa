//! Reads the files of a crate and collects modules, items, imports and paths.
//!
//! Rule: `#[cfg(test)]` marks everything below it as test code, files of test modules included.

use std::fs;
use std::ops::Range;
use std::path::{Path, PathBuf};

use proc_macro2::{Ident, TokenStream, TokenTree};
use syn::visit::{self, Visit};
use syn::{Attribute, Block, Item as Syntax, ItemMod, ItemUse, Meta, Stmt, UseTree};

use super::{Import, Item, ItemKind, Module, ModuleId, PathUse, Segment, Target, Workspace};

/// The keys of `#[serde(…)]` whose strings are paths.
const SERDE_PATHS: [&str; 8] = [
    "default",
    "deserialize_with",
    "from",
    "into",
    "remote",
    "serialize_with",
    "skip_serializing_if",
    "try_from",
];

/// Reads a crate from its root on.
pub(crate) fn target(workspace: &mut Workspace, root: &Path, mut target: Target) {
    let file = target.root.clone();
    let index = workspace.targets.len();
    let is_test = !target.is_product;
    target.module = workspace.modules.len();
    workspace.targets.push(target);
    let module = empty(index, Vec::new(), None, is_test);
    let directory = file.parent().expect("a file is in a folder").to_owned();
    read(workspace, root, module, &file, directory);
}

fn empty(target: usize, path: Vec<String>, parent: Option<ModuleId>, is_test: bool) -> Module {
    Module {
        target,
        path,
        parent,
        file: 0,
        is_test,
        children: Default::default(),
        items: Vec::new(),
        imports: Vec::new(),
        uses: Vec::new(),
    }
}

/// Reads the file of a module, and the modules that it declares. `directory` is where those are looked for.
fn read(
    workspace: &mut Workspace,
    root: &Path,
    mut module: Module,
    file: &Path,
    directory: PathBuf,
) -> ModuleId {
    let text =
        fs::read_to_string(root.join(file)).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    let syntax = syn::parse_file(&text).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    module.file = workspace.files.iter().position(|known| known == file).unwrap_or_else(|| {
        workspace.files.push(file.to_owned());
        workspace.files.len() - 1
    });
    let is_test = module.is_test;
    let id = workspace.modules.len();
    workspace.modules.push(module);
    let parent = file.parent().expect("a file is in a folder").to_owned();
    let mut collector =
        Collector { workspace, root, module: id, blocks: Vec::new(), is_test, parent, directory };
    collector.attributes(&syntax.attrs);
    for item in &syntax.items {
        collector.visit_item(item);
    }
    id
}

struct Collector<'a> {
    workspace: &'a mut Workspace,
    root: &'a Path,
    module: ModuleId,
    blocks: Vec<Range<usize>>,
    is_test: bool,
    /// The folder of the file, or of the inline module, for `#[path]`.
    parent: PathBuf,
    /// The folder of declared modules.
    directory: PathBuf,
}

impl Collector<'_> {
    fn module(&mut self) -> &mut Module {
        &mut self.workspace.modules[self.module]
    }

    fn add_path(&mut self, segments: Vec<Segment>, is_global: bool) {
        let path = PathUse { segments, blocks: self.blocks.clone(), is_global, is_test: self.is_test };
        self.module().uses.push(path);
    }

    fn item(&mut self, ident: &Ident, kind: ItemKind, variants: Vec<Segment>) {
        let item = Item {
            name: ident.to_string(),
            kind,
            line: ident.span().start().line,
            block: self.blocks.last().cloned(),
            variants,
            is_test: self.is_test,
        };
        self.module().items.push(item);
    }

    /// Adds the item that a piece of syntax defines.
    fn define(&mut self, item: &Syntax) {
        use ItemKind::{Macro, Type, Value};
        let (ident, kind) = match item {
            Syntax::Struct(item) => (&item.ident, Type),
            Syntax::Enum(item) => {
                let variants = item.variants.iter().map(|one| segment(&one.ident)).collect();
                return self.item(&item.ident, Type, variants);
            }
            Syntax::Union(item) => (&item.ident, Type),
            Syntax::Trait(item) => (&item.ident, Type),
            Syntax::TraitAlias(item) => (&item.ident, Type),
            Syntax::Type(item) => (&item.ident, Type),
            Syntax::Fn(item) => (&item.sig.ident, Value),
            Syntax::Const(item) => (&item.ident, Value),
            Syntax::Static(item) => (&item.ident, Value),
            Syntax::Macro(item) => match &item.ident {
                Some(ident) => (ident, Macro),
                None => return,
            },
            _ => return,
        };
        self.item(ident, kind, Vec::new());
    }

    /// Collects the paths of a `use` tree.
    fn tree(&mut self, tree: &UseTree, prefix: &[Segment], of: &ItemUse) {
        let mut path = prefix.to_vec();
        match tree {
            UseTree::Path(tree) => {
                path.push(segment(&tree.ident));
                self.tree(&tree.tree, &path, of);
            }
            UseTree::Group(group) => group.items.iter().for_each(|tree| self.tree(tree, prefix, of)),
            UseTree::Name(name) if name.ident == "self" => {
                let bound = path.last().map(|last| last.name.clone());
                self.import(bound, path, of);
            }
            UseTree::Name(name) => {
                path.push(segment(&name.ident));
                self.import(Some(name.ident.to_string()), path, of);
            }
            UseTree::Rename(rename) => {
                if rename.ident != "self" {
                    path.push(segment(&rename.ident));
                }
                self.import(Some(rename.rename.to_string()), path, of);
            }
            UseTree::Glob(_) => self.import(None, path, of),
        }
    }

    fn import(&mut self, name: Option<String>, segments: Vec<Segment>, of: &ItemUse) {
        let is_global = of.leading_colon.is_some();
        let path = PathUse { segments, blocks: self.blocks.clone(), is_global, is_test: self.is_test };
        self.module().imports.push(Import { name, path });
    }

    fn attributes(&mut self, attributes: &[Attribute]) {
        attributes.iter().for_each(|attribute| self.visit_attribute(attribute));
    }

    /// Collects the paths among the tokens of a macro.
    fn tokens(&mut self, tokens: TokenStream) {
        let tokens: Vec<TokenTree> = tokens.into_iter().collect();
        let is = |index: usize, mark: char| matches!(tokens.get(index), Some(TokenTree::Punct(p)) if p.as_char() == mark);
        let mut at = 0;
        while at < tokens.len() {
            match &tokens[at] {
                TokenTree::Group(group) => self.tokens(group.stream()),
                TokenTree::Ident(first) if at == 0 || !is(at - 1, '.') || at > 1 && is(at - 2, '.') => {
                    let is_global = at > 1 && is(at - 1, ':') && is(at - 2, ':');
                    let mut segments = vec![segment(first)];
                    while is(at + 1, ':') && is(at + 2, ':') {
                        let Some(TokenTree::Ident(next)) = tokens.get(at + 3) else { break };
                        segments.push(segment(next));
                        at += 3;
                    }
                    if !(at > 0 && is(at - 1, '$')) {
                        self.add_path(segments, is_global);
                    }
                }
                _ => {}
            }
            at += 1;
        }
    }

    /// Collects the paths that strings of `#[serde(…)]` name.
    fn serde(&mut self, tokens: TokenStream) {
        let tokens: Vec<TokenTree> = tokens.into_iter().collect();
        for window in tokens.windows(3) {
            let [TokenTree::Ident(key), TokenTree::Punct(_), TokenTree::Literal(value)] = window else {
                continue;
            };
            let text = value.to_string();
            let text = text.trim_matches('"');
            let is_path = SERDE_PATHS.contains(&key.to_string().as_str()) || key == "with";
            if !is_path || text.contains(['<', ' ']) {
                continue;
            }
            let line = value.span().start().line;
            let segments = text.split("::").map(|name| Segment { name: name.to_owned(), line });
            self.add_path(segments.collect(), false);
        }
    }

    fn child(&mut self, item: &ItemMod) {
        let name = item.ident.to_string();
        let parent = &self.workspace.modules[self.module];
        let (target, mut path) = (parent.target, parent.path.clone());
        path.push(name.clone());
        let mut module = empty(target, path, Some(self.module), self.is_test);
        let elsewhere = item.attrs.iter().find_map(path_attribute);
        let id = if let Some((_, items)) = &item.content {
            module.file = parent.file;
            let id = self.workspace.modules.len();
            self.workspace.modules.push(module);
            let directory = match elsewhere {
                Some(path) => self.parent.join(path),
                None => self.directory.join(&name),
            };
            let mut inside = Collector {
                workspace: self.workspace,
                root: self.root,
                module: id,
                blocks: Vec::new(),
                is_test: self.is_test,
                parent: directory.clone(),
                directory,
            };
            items.iter().for_each(|item| inside.visit_item(item));
            id
        } else if let Some(path) = elsewhere {
            let file = plain(&self.parent.join(path));
            let directory = file.parent().expect("a file is in a folder").to_owned();
            read(self.workspace, self.root, module, &file, directory)
        } else {
            let file = self.directory.join(format!("{name}.rs"));
            read(self.workspace, self.root, module, &file, self.directory.join(&name))
        };
        self.module().children.insert(name, id);
    }
}

impl<'ast> Visit<'ast> for Collector<'_> {
    fn visit_item(&mut self, item: &'ast Syntax) {
        let before = self.is_test;
        self.is_test |= attributes_of(item).iter().any(is_test_only);
        self.define(item);
        match item {
            Syntax::Mod(module) => {
                self.attributes(&module.attrs);
                self.child(module);
            }
            Syntax::Use(import) => self.tree(&import.tree, &[], import),
            item => visit::visit_item(self, item),
        }
        self.is_test = before;
    }

    fn visit_block(&mut self, block: &'ast Block) {
        let scoped = block.stmts.iter().any(|statement| matches!(statement, Stmt::Item(_)));
        if scoped {
            let braces = block.brace_token.span;
            self.blocks.push(braces.open().byte_range().start..braces.close().byte_range().end);
        }
        visit::visit_block(self, block);
        if scoped {
            self.blocks.pop();
        }
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        let segments = path.segments.iter().map(|one| segment(&one.ident)).collect();
        self.add_path(segments, path.leading_colon.is_some());
        visit::visit_path(self, path);
    }

    fn visit_pat_ident(&mut self, pattern: &'ast syn::PatIdent) {
        if pattern.ident.to_string().starts_with(char::is_uppercase) {
            self.add_path(vec![segment(&pattern.ident)], false);
        }
        visit::visit_pat_ident(self, pattern);
    }

    fn visit_impl_item_fn(&mut self, item: &'ast syn::ImplItemFn) {
        let before = self.is_test;
        self.is_test |= item.attrs.iter().any(is_test_only);
        visit::visit_impl_item_fn(self, item);
        self.is_test = before;
    }

    fn visit_macro(&mut self, invoked: &'ast syn::Macro) {
        self.visit_path(&invoked.path);
        self.tokens(invoked.tokens.clone());
    }

    fn visit_attribute(&mut self, attribute: &'ast Attribute) {
        if let Meta::List(list) = &attribute.meta {
            if list.path.is_ident("serde") {
                self.serde(list.tokens.clone());
            } else {
                self.tokens(list.tokens.clone());
            }
        } else {
            visit::visit_attribute(self, attribute);
        }
    }
}

fn segment(ident: &Ident) -> Segment {
    let name = ident.to_string();
    let name = name.strip_prefix("r#").unwrap_or(&name).to_owned();
    Segment { name, line: ident.span().start().line }
}

/// Whether an attribute keeps an item out of the product.
fn is_test_only(attribute: &Attribute) -> bool {
    let Meta::List(list) = &attribute.meta else { return attribute.path().is_ident("test") };
    let condition = list.tokens.to_string().replace(' ', "");
    list.path.is_ident("cfg") && (condition == "test" || condition.starts_with("all(test,"))
}

/// The text of `#[path = "…"]`.
fn path_attribute(attribute: &Attribute) -> Option<String> {
    let Meta::NameValue(pair) = &attribute.meta else { return None };
    let syn::Expr::Lit(syn::ExprLit { lit: syn::Lit::Str(text), .. }) = &pair.value else { return None };
    pair.path.is_ident("path").then(|| text.value())
}

/// A path without `.` and `..`.
fn plain(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            std::path::Component::CurDir => {}
            std::path::Component::ParentDir => {
                plain.pop();
            }
            part => plain.push(part),
        }
    }
    plain
}

fn attributes_of(item: &Syntax) -> &[Attribute] {
    match item {
        Syntax::Const(item) => &item.attrs,
        Syntax::Enum(item) => &item.attrs,
        Syntax::ExternCrate(item) => &item.attrs,
        Syntax::Fn(item) => &item.attrs,
        Syntax::Impl(item) => &item.attrs,
        Syntax::Macro(item) => &item.attrs,
        Syntax::Mod(item) => &item.attrs,
        Syntax::Static(item) => &item.attrs,
        Syntax::Struct(item) => &item.attrs,
        Syntax::Trait(item) => &item.attrs,
        Syntax::Type(item) => &item.attrs,
        Syntax::Use(item) => &item.attrs,
        _ => &[],
    }
}
