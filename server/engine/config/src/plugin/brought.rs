//! The content of a plugin's folder: the usual folders and files, and those its manifest names besides.
//!
//! Rule: a path begins with `./` and stays in the plugin, links followed; any other path is reported and left out alone.
//! Names are made here, so that no plugin takes the name of anything that is not its own.

use std::path::Path;
use std::sync::Arc;

use jsonc_parser::ast::Value as Node;
use serde_json::Value;

use super::document::{self, PluginDocument};
use super::manifest::{self, Manifest, PathOrInline};
use super::{Folders, Plugin};
use crate::extension::ExtensionKind;
use crate::extension::live::LoadedExtensions;
use crate::extension::places::{ExtensionFolders, ExtensionOrigin, ExtensionPart, check_within};
use crate::hooks::config::Hooks;
use crate::settings::Declarations;
use crate::settings::declared::{Approval, Declaration};
use kode_base::paths::AbsPath;
use kode_permission::rules::{FileRange, ProblemSeverity, RuleSource, SettingsLayer, SettingsProblem};

/// The default place of hooks.
const HOOKS: &str = "hooks/hooks.json";

/// The default place of servers.
const SERVERS: &str = ".mcp.json";

/// The file of language servers without a path in the manifest.
const LANGUAGE_SERVERS: &str = ".lsp.json";

/// The wrapper of a file of hooks or of servers.
const AROUND_HOOKS: &str = "hooks";
const AROUND_SERVERS: &str = "mcpServers";
const AROUND_LANGUAGE_SERVERS: &str = "lspServers";

/// The most hooks and the most servers of a plugin.
const MAX_ENTRIES: usize = 200;

impl Plugin {
    /// Reads what a folder brings. It is called by `name`, the one it is installed by, and as its manifest says if absent.
    /// Blocks on the disk.
    #[must_use]
    pub fn open(root: &AbsPath, data: &AbsPath, name: Option<&str>) -> Self {
        let mut problems = Vec::new();
        let found = manifest::read(root, &mut problems);
        let (file, manifest) = match found {
            Some((file, manifest)) => (Some(file), manifest.unwrap_or_default()),
            None => (None, Manifest::default()),
        };
        let named = name.map(str::to_owned).or(manifest.name.clone()).unwrap_or_else(|| root.file_name());
        let folders = Arc::new(Folders { name: named, root: root.clone(), data: data.clone() });
        let mut opening = PluginReader { folders, problems, files: Vec::new(), file };
        let parts = opening.parts(&manifest);
        let hooks = opening.hooks(&manifest.hooks);
        let servers = opening.servers(&manifest.servers, (SERVERS, AROUND_SERVERS));
        let language_servers =
            opening.servers(&manifest.language_servers, (LANGUAGE_SERVERS, AROUND_LANGUAGE_SERVERS));
        let PluginReader { folders, problems, files, file } = opening;
        let (version, description) = (manifest.version, manifest.description);
        Self {
            folders,
            version,
            description,
            manifest: file,
            parts,
            hooks,
            servers,
            language_servers,
            problems,
            files,
        }
    }

    /// Its content, line by line, for people who decide about it: names, and whatever it has run. With it comes the
    /// problems of any of its files. Blocks on the disk.
    #[must_use]
    pub fn contents(self: &Arc<Self>) -> (Vec<String>, Vec<SettingsProblem>) {
        let loaded = LoadedExtensions::read(
            &ExtensionFolders::default().with_plugins(vec![Arc::clone(self)]),
            &|_| true,
        );
        let of_kind = |kind: ExtensionKind| {
            let found = loaded.catalog.all().filter(move |extension| extension.kind == kind);
            found.map(|extension| extension.name.clone()).collect::<Vec<_>>()
        };
        let agents = loaded.agents.iter().filter(|agent| agent.origin == ExtensionOrigin::Plugin);
        let styles = loaded.styles.iter().filter(|style| style.origin == ExtensionOrigin::Plugin);
        let named = [
            ("commands", of_kind(ExtensionKind::Command)),
            ("skills", of_kind(ExtensionKind::Skill)),
            ("agents", agents.map(|agent| agent.name.clone()).collect()),
            ("output styles", styles.map(|style| style.name.clone()).collect()),
        ];
        let named = named.into_iter().filter(|(_, names)| !names.is_empty());
        let hooks = self.hooks.iter().flat_map(|entry| {
            let handlers = entry.value.get("hooks").and_then(Value::as_array).into_iter().flatten();
            handlers.map(|handler| format!("hook {}: {}", entry.name, words(handler)))
        });
        let servers =
            self.servers.iter().map(|entry| format!("MCP server {}: {}", entry.name, words(&entry.value)));
        let language_servers = self
            .language_servers
            .iter()
            .map(|entry| format!("language server {}: {}", entry.name, words(&entry.value)));
        let named = named.map(|(what, names)| format!("{what}: {}", names.join(", ")));
        let lines = named.chain(hooks).chain(servers).chain(language_servers);
        let declared = Declarations { hooks: self.hooks.clone(), ..Declarations::default() };
        let of_hooks = Hooks::of(&declared, &self.folders.root).problems;
        let problems = self.problems.iter().cloned().chain(loaded.problems()).chain(of_hooks);
        (lines.collect(), problems.collect())
    }
}

/// The program or address of a handler or a server.
fn words(value: &Value) -> String {
    let text = |name: &str| value.get(name).and_then(Value::as_str);
    let first = ["command", "url", "prompt"].iter().find_map(|name| text(name));
    let arguments = value.get("args").and_then(Value::as_array).into_iter().flatten();
    let words = first.into_iter().chain(arguments.filter_map(Value::as_str));
    words.collect::<Vec<_>>().join(" ")
}

/// A plugin while it is read.
struct PluginReader {
    folders: Arc<Folders>,
    problems: Vec<SettingsProblem>,
    files: Vec<AbsPath>,
    file: Option<AbsPath>,
}

impl PluginReader {
    fn parts(&mut self, manifest: &Manifest) -> Vec<(ExtensionPart, AbsPath)> {
        let root = self.folders.root.clone();
        let mut parts: Vec<(ExtensionPart, AbsPath)> =
            ExtensionPart::ALL.into_iter().map(|part| (part, root.join(part.folder()))).collect();
        for (part, path, place) in &manifest.paths {
            let Some(found) = self.path(path, *place) else { continue };
            let is_fit =
                found.as_path().is_dir() || (*part != ExtensionPart::Skills && is_markdown(found.as_path()));
            if !is_fit {
                let what = if *part == ExtensionPart::Skills { "folder" } else { "folder or `.md` file" };
                self.report(*place, format!("There is no {what} `{path}` in this plugin."));
                continue;
            }
            if !parts.contains(&(*part, found.clone())) {
                parts.push((*part, found));
            }
        }
        parts
    }

    fn hooks(&mut self, given: &[PathOrInline]) -> Vec<Declaration> {
        let read = self.given(given, HOOKS, AROUND_HOOKS);
        let mut entries = Vec::new();
        // A file may say what its hooks are for, beside them.
        for (event, groups, place, file) in read.into_iter().filter(|(event, ..)| event != "description") {
            let Value::Array(groups) = groups else {
                self.problems.push(SettingsProblem {
                    file: Some(file),
                    place: Some(place),
                    severity: ProblemSeverity::Warning,
                    message: format!("`{event}` has to be a list of groups of hooks; none of it runs."),
                });
                continue;
            };
            entries.extend(groups.into_iter().map(|group| self.entry(event.clone(), group, place, &file)));
        }
        entries.truncate(MAX_ENTRIES);
        entries
    }

    fn servers(&mut self, given: &[PathOrInline], (usual, around): (&str, &str)) -> Vec<Declaration> {
        let read = self.given(given, usual, around);
        let of = |name: &str| format!("plugin:{}:{name}", self.folders.name);
        let servers =
            read.into_iter().map(|(name, value, place, file)| self.entry(of(&name), value, place, &file));
        servers.take(MAX_ENTRIES).collect()
    }

    fn entry(&self, name: String, value: Value, place: FileRange, file: &AbsPath) -> Declaration {
        Declaration {
            name,
            value,
            source: RuleSource { layer: SettingsLayer::Plugin, file: Some(file.clone()), place: Some(place) },
            root: self.folders.root.clone(),
            approval: Approval::NotNeeded,
            plugin: Some(Arc::clone(&self.folders)),
        }
    }

    /// The entries of the usual file, of the files that the manifest names, and of the manifest itself.
    fn given(
        &mut self,
        given: &[PathOrInline],
        usual: &str,
        around: &str,
    ) -> Vec<(String, Value, FileRange, AbsPath)> {
        let usual = self.folders.root.join(usual);
        let mut all = self.entries_of(&usual, around).unwrap_or_default();
        let mut read = vec![usual];
        for one in given {
            match one {
                PathOrInline::Inline(entries) => {
                    let Some(file) = self.file.clone() else { continue };
                    let entries = entries.iter().cloned();
                    all.extend(entries.map(|(name, value, place)| (name, value, place, file.clone())));
                }
                PathOrInline::Path(path, place) => {
                    let file = self.path(path, *place).filter(|file| !read.contains(file));
                    let Some(file) = file else { continue };
                    match self.entries_of(&file, around) {
                        Some(entries) => all.extend(entries),
                        None if file.as_path().is_file() => {}
                        None => self.report(*place, format!("There is no file `{path}` in this plugin.")),
                    }
                    read.push(file);
                }
            }
        }
        all
    }

    /// The entries of a file; `None` where it is not there or cannot be read, which is reported.
    fn entries_of(
        &mut self,
        file: &AbsPath,
        around: &str,
    ) -> Option<Vec<(String, Value, FileRange, AbsPath)>> {
        self.files.push(file.clone());
        let root = self.folders.root.clone();
        let take = |document: &mut PluginDocument<'_>, object: &jsonc_parser::ast::Object<'_>| {
            let inner = object.properties.iter().find(|property| property.name.as_str() == around);
            match inner.map(|property| &property.value) {
                Some(Node::Object(inner)) => manifest::entries(document, inner),
                Some(_) | None => manifest::entries(document, object),
            }
        };
        let entries = document::read(file, &root, &mut self.problems, take)?;
        Some(entries.into_iter().map(|(name, value, place)| (name, value, place, file.clone())).collect())
    }

    /// A path of the manifest, if it may be used.
    fn path(&mut self, path: &str, place: FileRange) -> Option<AbsPath> {
        let root = self.folders.root.clone();
        let is_dot = path == "." || path == "./";
        let found = root.join(path);
        let wrong = match () {
            () if !is_dot && !path.starts_with("./") => {
                Some("a path in a plugin begins with `./`".to_owned())
            }
            () if !found.is_within(&root) => Some("it leads out of the plugin".to_owned()),
            () if found.as_path().exists() => check_within(found.as_path(), Some(&root)).err(),
            () => None,
        };
        match wrong {
            None => Some(found),
            Some(reason) => {
                self.report(place, format!("`{path}` is ignored: {reason}."));
                None
            }
        }
    }

    /// Reports a problem at a place of the manifest.
    fn report(&mut self, place: FileRange, message: String) {
        let (file, place) = (self.file.clone(), Some(place));
        self.problems.push(SettingsProblem { file, place, severity: ProblemSeverity::Warning, message });
    }
}

fn is_markdown(path: &Path) -> bool {
    path.is_file() && path.extension().is_some_and(|extension| extension == "md")
}
