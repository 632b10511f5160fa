//! Well-known language servers, used without an entry in settings where their program is on the `PATH`.
//!
//! Rule: of several servers for a language the first that is installed is used. A program in a folder of the workspace is never one
//! of them: the workspace's own programs need an entry and its approval.

use std::collections::BTreeMap;
use std::env;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use kode_base::paths::{AbsPath, real_path};
use kode_config::language_servers::{
    LanguageServerDefinition, MAX_RESTARTS, SHUTDOWN_TIMEOUT, STARTUP_TIMEOUT,
};

/// A server that is known without settings.
pub(crate) struct KnownServer {
    /// Its name, the same as that of its program.
    pub(crate) command: &'static str,
    arguments: &'static [&'static str],
    /// Its extensions, each with its language id.
    pub(crate) languages: &'static [(&'static str, &'static str)],
    /// Files that mark the root of a project.
    pub(crate) markers: &'static [&'static str],
}

const PYTHON: &[(&str, &str)] = &[("py", "python"), ("pyi", "python")];
const PYTHON_MARKERS: &[&str] =
    &["pyproject.toml", "setup.py", "setup.cfg", "requirements.txt", "pyrightconfig.json", "Pipfile"];
const JAVASCRIPT: &[(&str, &str)] = &[
    ("ts", "typescript"),
    ("mts", "typescript"),
    ("cts", "typescript"),
    ("tsx", "typescriptreact"),
    ("js", "javascript"),
    ("mjs", "javascript"),
    ("cjs", "javascript"),
    ("jsx", "javascriptreact"),
];
const C: &[(&str, &str)] = &[
    ("c", "c"),
    ("h", "c"),
    ("cc", "cpp"),
    ("cpp", "cpp"),
    ("cxx", "cpp"),
    ("hh", "cpp"),
    ("hpp", "cpp"),
    ("hxx", "cpp"),
    ("m", "objective-c"),
    ("mm", "objective-cpp"),
];

const fn known(
    command: &'static str,
    arguments: &'static [&'static str],
    languages: &'static [(&'static str, &'static str)],
    markers: &'static [&'static str],
) -> KnownServer {
    KnownServer { command, arguments, languages, markers }
}

/// The table. The order among servers for one language is the order of preference.
pub(crate) const SERVERS: &[KnownServer] = &[
    known("rust-analyzer", &[], &[("rs", "rust")], &["Cargo.toml", "rust-project.json"]),
    known("basedpyright-langserver", &["--stdio"], PYTHON, PYTHON_MARKERS),
    known("pyright-langserver", &["--stdio"], PYTHON, PYTHON_MARKERS),
    known("ty", &["server"], PYTHON, PYTHON_MARKERS),
    known("pylsp", &[], PYTHON, PYTHON_MARKERS),
    known("jedi-language-server", &[], PYTHON, PYTHON_MARKERS),
    known(
        "typescript-language-server",
        &["--stdio"],
        JAVASCRIPT,
        &["tsconfig.json", "jsconfig.json", "package.json"],
    ),
    known(
        "clangd",
        &[],
        C,
        &["compile_commands.json", "compile_flags.txt", ".clangd", "CMakeLists.txt", "meson.build"],
    ),
    known("gopls", &[], &[("go", "go"), ("mod", "go.mod")], &["go.work", "go.mod"]),
    known("bash-language-server", &["start"], &[("sh", "shellscript"), ("bash", "shellscript")], &[]),
    known("zls", &[], &[("zig", "zig")], &["build.zig"]),
    known("lua-language-server", &[], &[("lua", "lua")], &[".luarc.json", ".luarc.jsonc"]),
    known("jdtls", &[], &[("java", "java")], &["pom.xml", "build.gradle", "build.gradle.kts"]),
    known(
        "kotlin-language-server",
        &[],
        &[("kt", "kotlin"), ("kts", "kotlin")],
        &["build.gradle.kts", "build.gradle"],
    ),
    known("csharp-ls", &[], &[("cs", "csharp")], &["global.json", "Directory.Build.props"]),
    known("ruby-lsp", &[], &[("rb", "ruby")], &["Gemfile"]),
    known("solargraph", &["stdio"], &[("rb", "ruby")], &["Gemfile"]),
    known("intelephense", &["--stdio"], &[("php", "php")], &["composer.json"]),
    known("phpactor", &["language-server"], &[("php", "php")], &["composer.json"]),
    known("elixir-ls", &[], &[("ex", "elixir"), ("exs", "elixir")], &["mix.exs"]),
    known(
        "haskell-language-server-wrapper",
        &["--lsp"],
        &[("hs", "haskell")],
        &["cabal.project", "stack.yaml", "package.yaml"],
    ),
    known("ocamllsp", &[], &[("ml", "ocaml"), ("mli", "ocaml.interface")], &["dune-project"]),
    known("sourcekit-lsp", &[], &[("swift", "swift")], &["Package.swift"]),
    known("dart", &["language-server"], &[("dart", "dart")], &["pubspec.yaml"]),
    known("gleam", &["lsp"], &[("gleam", "gleam")], &["gleam.toml"]),
    known(
        "terraform-ls",
        &["serve"],
        &[("tf", "terraform"), ("tfvars", "terraform-vars")],
        &[".terraform.lock.hcl"],
    ),
    known("nil", &[], &[("nix", "nix")], &["flake.nix"]),
    known("texlab", &[], &[("tex", "latex"), ("bib", "bibtex")], &[".latexmkrc"]),
    known("svelteserver", &["--stdio"], &[("svelte", "svelte")], &["svelte.config.js"]),
];

/// The id of the language that a well-known server serves under this extension. `program` is its path or name.
#[must_use]
pub fn known_language(program: &Path, extension: &str) -> Option<&'static str> {
    let name = program.file_stem()?.to_str()?;
    let server = SERVERS.iter().find(|server| server.command == name)?;
    server.languages.iter().find(|(known, _)| *known == extension).map(|(_, language)| *language)
}

/// The id of the language of files with this extension, which is in lower case.
#[must_use]
pub fn language_of_extension(extension: &str) -> Option<&'static str> {
    let mut all = SERVERS.iter().flat_map(|server| server.languages);
    all.find(|(known, _)| *known == extension).map(|(_, language)| *language)
}

/// The extensions of files in a language with this id; none of a language that no well-known server serves.
#[must_use]
pub fn extensions_of_language(language: &str) -> Vec<&'static str> {
    let all = SERVERS.iter().flat_map(|server| server.languages);
    let mut extensions: Vec<_> =
        all.filter(|(_, known)| *known == language).map(|(extension, _)| *extension).collect();
    extensions.sort_unstable();
    extensions.dedup();
    extensions
}

impl KnownServer {
    /// Whether it serves files with this extension.
    pub(crate) fn serves(&self, extension: &str) -> bool {
        self.languages.iter().any(|(known, _)| *known == extension)
    }

    /// Its definition, where its program is this.
    pub(crate) fn definition(&self, program: &Path) -> LanguageServerDefinition {
        let text = |text: &&str| (*text).to_owned();
        let languages: BTreeMap<_, _> = self
            .languages
            .iter()
            .map(|(extension, language)| ((*extension).to_owned(), (*language).to_owned()))
            .collect();
        LanguageServerDefinition {
            name: self.command.to_owned(),
            command: program.to_string_lossy().into_owned(),
            arguments: self.arguments.iter().map(text).collect(),
            variables: Vec::new(),
            languages,
            initialization_options: options(self.command),
            settings: Value::Null,
            folder: None,
            root_markers: self.markers.iter().map(text).collect(),
            startup_timeout: STARTUP_TIMEOUT,
            shutdown_timeout: SHUTDOWN_TIMEOUT,
            max_restarts: MAX_RESTARTS,
            sandboxed: true,
            network: false,
            needs_sandbox: true,
            plugin: None,
            digest: format!("known-{}", self.command),
        }
    }
}

/// The options that a server needs to work beside another of its kind.
fn options(command: &str) -> Value {
    match command {
        // Its builds must not wait for those of the editor's own server, nor these for them.
        "rust-analyzer" => json!({ "cargo": { "targetDir": true } }),
        // It would fetch types of packages from the network, which it does not have.
        "typescript-language-server" => json!({ "disableAutomaticTypingAcquisition": true }),
        _ => Value::Null,
    }
}

/// Whether a server answers before it has found the files of its project, reports no progress meanwhile, and logs the end of its
/// search. Its first references and renames would miss the files that are not open.
pub(crate) fn logs_search(command: &str) -> bool {
    let name = Path::new(command).file_stem().and_then(|name| name.to_str());
    matches!(name, Some("pyright-langserver" | "basedpyright-langserver"))
}

/// Whether a server starts a program of its own before it reports that it loads a project. Until then its answers are those of one
/// file alone.
pub(crate) fn reports_late(command: &str) -> bool {
    let name = Path::new(command).file_stem().and_then(|name| name.to_str());
    matches!(name, Some("typescript-language-server"))
}

/// Whether a log message ends the search of a server that [`logs_search`].
pub(crate) fn ends_search(message: &str) -> bool {
    let is_found = message.starts_with("Found ") && message.contains(" source file");
    is_found || message.starts_with("No source files found")
}

/// The program of a name on the `PATH`, outside of `roots`. Blocks on the disk.
pub(crate) fn find_program(name: &str, path: &str, roots: &[AbsPath]) -> Option<PathBuf> {
    let is_foreign = |folder: &PathBuf| {
        let real = real_path(folder).unwrap_or_else(|_| folder.clone());
        folder.is_absolute()
            && !roots
                .iter()
                .any(|root| real.starts_with(root.as_path()) || folder.starts_with(root.as_path()))
    };
    let folders = env::split_paths(path).filter(is_foreign);
    folders.map(|folder| folder.join(name)).find(|program| is_executable(program))
}

#[cfg(unix)]
fn is_executable(program: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    let metadata = std::fs::metadata(program);
    metadata.is_ok_and(|metadata| metadata.is_file() && metadata.permissions().mode() & 0o111 != 0)
}

#[cfg(not(unix))]
fn is_executable(program: &Path) -> bool {
    program.is_file()
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn every_language_has_one_id_for_each_extension_of_a_server() {
        for server in SERVERS {
            let mut extensions: Vec<_> = server.languages.iter().map(|(extension, _)| extension).collect();
            extensions.sort();
            extensions.dedup();
            assert_eq!(extensions.len(), server.languages.len(), "{}", server.command);
            assert!(extensions.iter().all(|extension| !extension.starts_with('.')));
        }
    }

    #[cfg(unix)]
    #[test]
    fn a_program_of_the_workspace_is_not_used() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let place = real_path(folder.path()).unwrap();
        for name in ["workspace/node_modules/.bin", "bin"] {
            let program = place.join(name).join("gopls");
            fs::create_dir_all(program.parent().unwrap()).unwrap();
            fs::write(&program, "#!/bin/sh\n").unwrap();
            fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
        }
        fs::write(place.join("bin/pylsp"), "no program").unwrap();
        let root = AbsPath::new(place.join("workspace")).unwrap();
        let path = format!("{root}/node_modules/.bin:relative:{}", place.join("bin").display());
        let found = find_program("gopls", &path, std::slice::from_ref(&root));
        assert_eq!(found, Some(place.join("bin/gopls")));
        assert_eq!(find_program("pylsp", &path, &[root]), None, "a file that is not executable");
    }
}
