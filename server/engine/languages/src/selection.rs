//! The servers of a workspace: those that settings and plugins declare, and well-known ones that are installed.
//!
//! Rule: a declared server comes before a well-known one of the same language, and neither is looked for before a file of its
//! language is there.

#![expect(clippy::disallowed_methods, reason = "declared servers name variables")]

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::Mutex;

use crate::known::{SERVERS, find_program};
use crate::launch::Launcher;
use kode_base::paths::AbsPath;
use kode_config::language_servers::{LanguageServerDefinition, in_force};
use kode_config::policy::Policy;
use kode_text::workspace::language::LanguageError;

/// The most entries of folders that are read to find the languages of a workspace.
const MAX_ENTRIES: usize = 2_000;
/// Folders that hold no files of the project itself.
const FOREIGN_FOLDERS: [&str; 4] = ["node_modules", "target", "vendor", "dist"];

/// The servers of a workspace under one policy.
pub(crate) struct ServerSelection {
    /// The policy that they are from.
    pub(crate) policy: Arc<Policy>,
    /// Starts their programs.
    pub(crate) launcher: Arc<dyn Launcher>,
    declared: Vec<Arc<LanguageServerDefinition>>,
    /// Entries that are not in use, by name and reason.
    problems: Vec<(String, String)>,
    /// Where programs are looked for; empty where well-known servers are not in use.
    path: String,
    roots: Vec<AbsPath>,
    known: Mutex<HashMap<&'static str, Option<Arc<LanguageServerDefinition>>>>,
}

impl ServerSelection {
    /// The servers under a policy. `path` is the `PATH`.
    pub(crate) fn of(
        policy: Arc<Policy>,
        launcher: Arc<dyn Launcher>,
        path: String,
        roots: Vec<AbsPath>,
    ) -> Self {
        let given: Vec<(String, String)> =
            policy.declared.variables().map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
        let variable = |name: &str| {
            let given = given.iter().find(|(known, _)| known == name).map(|(_, value)| value.clone());
            given.or_else(|| std::env::var(name).ok())
        };
        let (declared, problems) = in_force(&policy.declared.language_servers, &variable);
        let declared = declared.into_iter().map(Arc::new).collect();
        let problems = problems.into_iter().map(|(name, reason)| (name.to_owned(), reason)).collect();
        let path = if policy.preferences.language_servers_on_path { path } else { String::new() };
        Self { policy, launcher, declared, problems, path, roots, known: Mutex::default() }
    }

    /// The server of a file. Blocks on the disk.
    ///
    /// # Errors
    /// [`LanguageError::NoServer`], with the reason why a declared server is not in use.
    pub(crate) fn server_of(&self, path: &AbsPath) -> Result<Arc<LanguageServerDefinition>, LanguageError> {
        if let Some(declared) = self.declared.iter().find(|server| server.language_of(path).is_some()) {
            return Ok(Arc::clone(declared));
        }
        let extension = path.as_path().extension().and_then(|extension| extension.to_str());
        let extension = extension.map(str::to_lowercase).unwrap_or_default();
        if let Some(known) = self.known_for(&extension) {
            return Ok(known);
        }
        if let Some((server, reason)) = self.problems.first() {
            return Err(LanguageError::Unavailable { server: server.clone(), reason: reason.clone() });
        }
        Err(LanguageError::NoServer(path.file_name()))
    }

    /// All servers that serve a language of the workspace, and a file for each extension of its files. Blocks on the disk.
    pub(crate) fn survey(
        &self,
        open: &[AbsPath],
    ) -> (Vec<Arc<LanguageServerDefinition>>, BTreeMap<String, AbsPath>) {
        let traces = Traces::of(&self.roots, open);
        let declared = self.declared.iter().filter(|server| {
            let mut extensions = server.languages.keys();
            !traces.is_complete || extensions.any(|extension| traces.extensions.contains_key(extension))
        });
        let mut servers: Vec<_> = declared.cloned().collect();
        for server in SERVERS {
            let is_used =
                server.languages.iter().any(|(extension, _)| traces.extensions.contains_key(*extension))
                    || server.markers.iter().any(|marker| traces.names.contains(*marker));
            let is_served = |(extension, _): &(&str, &str)| {
                servers.iter().any(|known| known.languages.contains_key(*extension))
            };
            if !is_used || server.languages.iter().any(is_served) {
                continue;
            }
            let found = server.languages.first().and_then(|(extension, _)| self.known_for(extension));
            servers.extend(found);
        }
        (servers, traces.extensions)
    }

    /// Whether there is a server for a language, installed or not.
    pub(crate) fn knows(&self, path: &AbsPath) -> bool {
        let extension = path.as_path().extension().and_then(|extension| extension.to_str());
        let extension = extension.map(str::to_lowercase).unwrap_or_default();
        self.declared.iter().any(|server| server.language_of(path).is_some())
            || SERVERS.iter().any(|server| server.serves(&extension))
    }

    /// Whether a server is one of these.
    pub(crate) fn has(&self, definition: &LanguageServerDefinition) -> bool {
        let is_same = |known: &Arc<LanguageServerDefinition>| **known == *definition;
        self.declared.iter().any(is_same) || self.known.lock().values().flatten().any(is_same)
    }

    /// The first installed one of the well-known servers of an extension.
    fn known_for(&self, extension: &str) -> Option<Arc<LanguageServerDefinition>> {
        SERVERS.iter().filter(|server| server.serves(extension)).find_map(|server| {
            if let Some(known) = self.known.lock().get(server.command) {
                return known.clone();
            }
            let program = find_program(server.command, &self.path, &self.roots);
            let found = program.map(|program| Arc::new(server.definition(&program)));
            self.known.lock().insert(server.command, found.clone());
            found
        })
    }
}

/// The names in the folders of a workspace, the upper ones first, as traces of its languages.
struct Traces {
    names: BTreeSet<String>,
    /// The first file of each extension.
    extensions: BTreeMap<String, AbsPath>,
    /// Whether all folders were read.
    is_complete: bool,
}

impl Traces {
    fn of(roots: &[AbsPath], open: &[AbsPath]) -> Self {
        let mut traces = Self { names: BTreeSet::new(), extensions: BTreeMap::new(), is_complete: true };
        for path in open {
            traces.take(path.as_path());
        }
        let mut room = MAX_ENTRIES;
        // The upper folders of all roots come first: marks of projects are in them.
        let mut folders: VecDeque<PathBuf> = roots.iter().map(|root| root.as_path().to_owned()).collect();
        while let Some(folder) = folders.pop_front() {
            folders.extend(traces.read(&folder, &mut room));
        }
        traces.is_complete = room > 0;
        traces
    }

    fn take(&mut self, path: &Path) {
        let extension = path.extension().and_then(|extension| extension.to_str());
        if let (Some(extension), Ok(path)) = (extension, AbsPath::new(path)) {
            self.extensions.entry(extension.to_lowercase()).or_insert(path);
        }
        if let Some(name) = path.file_name().and_then(|name| name.to_str()) {
            self.names.insert(name.to_owned());
        }
    }

    /// Reads a folder and returns those in it.
    fn read(&mut self, folder: &Path, room: &mut usize) -> Vec<PathBuf> {
        let mut folders = Vec::new();
        // A folder that cannot be read says nothing of its languages.
        for entry in fs::read_dir(folder).into_iter().flatten().flatten().take(*room) {
            *room -= 1;
            let path = entry.path();
            let name = entry.file_name();
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                let name = name.to_string_lossy();
                if !name.starts_with('.') && !FOREIGN_FOLDERS.contains(&&*name) {
                    folders.push(path);
                }
            } else {
                self.take(&path);
            }
        }
        folders
    }
}

/// The folder that a server serves for a file: the outermost one with a marker in the workspace folder, else that. Blocks on the
/// disk.
pub(crate) fn root_of(
    definition: &LanguageServerDefinition,
    path: &AbsPath,
    roots: &[AbsPath],
) -> Option<AbsPath> {
    if let Some(folder) = &definition.folder {
        return Some(folder.clone());
    }
    let within = roots.iter().filter(|root| path.is_within(root));
    let root = within.max_by_key(|root| root.as_path().components().count());
    let Some(root) = root else { return roots.first().cloned() };
    let mut folders: Vec<AbsPath> = Vec::new();
    let mut folder = path.parent();
    while let Some(current) = folder.filter(|current| current.is_within(root)) {
        folder = current.parent();
        folders.push(current);
    }
    let has_marker = |folder: &AbsPath| {
        definition.root_markers.iter().any(|marker| folder.join(marker).as_path().is_file())
    };
    Some(folders.into_iter().rev().find(has_marker).unwrap_or_else(|| root.clone()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::launch::LaunchedProgram;
    use kode_base::paths::AbsPath;

    struct Nowhere;

    #[async_trait::async_trait]
    impl Launcher for Nowhere {
        async fn launch(&self, _: &LanguageServerDefinition, _: &AbsPath) -> Result<LaunchedProgram, String> {
            Err("nothing is started here".to_owned())
        }
    }

    #[cfg(unix)]
    #[test]
    fn the_servers_of_a_workspace_are_those_of_its_languages_that_are_installed() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let place = AbsPath::new(kode_base::paths::real_path(folder.path()).unwrap()).unwrap();
        let root = place.join("workspace");
        for (file, is_program) in [
            ("workspace/go.mod", false),
            ("workspace/src/deep/er/main.py", false),
            ("workspace/.hidden/main.c", false),
            ("bin/gopls", true),
            ("bin/pylsp", true),
            ("bin/ty", true),
            ("bin/clangd", true),
        ] {
            let path = place.join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(&path, "").unwrap();
            let mode = if is_program { 0o755 } else { 0o644 };
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        }
        let select = |path: String| {
            ServerSelection::of(Arc::new(Policy::default()), Arc::new(Nowhere), path, vec![root.clone()])
        };
        let names = |selection: &ServerSelection, open: &[AbsPath]| -> Vec<String> {
            selection.survey(open).0.iter().map(|server| server.name.clone()).collect()
        };
        let selection = select(place.join("bin").to_string());
        assert_eq!(names(&selection, &[]), ["ty", "gopls"]);
        assert_eq!(names(&selection, &[root.join("main.c")]), ["ty", "clangd", "gopls"]);
        assert_eq!(selection.server_of(&root.join("deep/main.c")).unwrap().name, "clangd");
        assert!(matches!(selection.server_of(&root.join("a.rs")), Err(LanguageError::NoServer(_))));
        assert_eq!(names(&select(String::new()), &[]), [""; 0]);
    }

    #[test]
    fn the_root_is_the_outermost_folder_with_a_marker_in_the_workspace_folder() {
        let folder = tempfile::tempdir().unwrap();
        let place = AbsPath::new(kode_base::paths::real_path(folder.path()).unwrap()).unwrap();
        fs::create_dir_all(place.join("w/a/b/src")).unwrap();
        for file in ["Cargo.toml", "w/a/Cargo.toml", "w/a/b/Cargo.toml"] {
            fs::write(place.join(file), "").unwrap();
        }
        let server = SERVERS.iter().find(|server| server.command == "rust-analyzer").unwrap();
        let definition = server.definition(Path::new("/bin/rust-analyzer"));
        let root = place.join("w");
        let of = |file: &str| root_of(&definition, &place.join(file), std::slice::from_ref(&root)).unwrap();
        assert_eq!(of("w/a/b/src/main.rs"), place.join("w/a"));
        assert_eq!(of("w/main.rs"), root);
        assert_eq!(of("elsewhere.rs"), root);
        let definition = LanguageServerDefinition { folder: Some(place.join("x")), ..definition };
        assert_eq!(root_of(&definition, &root.join("main.rs"), &[root]), Some(place.join("x")));
    }
}
