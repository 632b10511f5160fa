//! The start of the program of a language server.
//!
//! Rule: a program runs in the sandbox unless its own entry says otherwise, gets no secret that its entry does not name, and is
//! killed with its whole process group on every way out.

#![expect(clippy::disallowed_methods, reason = "language servers get a cache folder")]

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;

use async_trait::async_trait;
use tokio::io::{AsyncRead, AsyncWrite};

use kode_base::paths::AbsPath;
use kode_base::secret::Secret;
use kode_base::task;
use kode_config::language_servers::LanguageServerDefinition;
use kode_process::outcome::Exit;
use kode_process::sandbox::Sandbox;
use kode_process::shell::error_output::ErrorOutput;
use kode_process::shell::served::{self, ServedProcess, ServedSpec, ServiceEnd};

/// The variables that name the folders of caches, with the folder of each in the cache of a server.
const CACHES: [(&str, &str); 2] = [("npm_config_cache", "npm"), ("XDG_CACHE_HOME", "")];

/// A program that was started.
pub(crate) struct LaunchedProgram {
    /// Its standard input.
    pub(crate) input: Box<dyn AsyncWrite + Send + Unpin>,
    /// Its standard output.
    pub(crate) output: Box<dyn AsyncRead + Send + Unpin>,
    /// The end of its standard error output.
    pub(crate) errors: ErrorOutput,
    /// Its process; `None` where a test plays the server.
    pub(crate) process: Option<ServedProcess>,
}

/// Starts programs of language servers.
#[async_trait]
pub(crate) trait Launcher: Send + Sync {
    /// Starts the program of a server in a folder.
    ///
    /// # Errors
    /// Why it could not be started, without a period.
    async fn launch(
        &self,
        definition: &LanguageServerDefinition,
        root: &AbsPath,
    ) -> Result<LaunchedProgram, String>;
}

/// The surroundings of the programs of a workspace.
pub(crate) struct ProcessLauncher {
    /// The secrets that no program gets.
    pub(crate) secrets: Vec<Secret>,
    /// Variables of the environment that settings give to all programs.
    pub(crate) variables: Vec<(String, String)>,
    /// The sandbox, where there is one.
    pub(crate) sandbox: Option<Arc<Sandbox>>,
}

#[async_trait]
impl Launcher for ProcessLauncher {
    async fn launch(
        &self,
        definition: &LanguageServerDefinition,
        root: &AbsPath,
    ) -> Result<LaunchedProgram, String> {
        let sandbox = self.sandbox.clone().filter(|_| definition.sandboxed);
        if definition.needs_sandbox && sandbox.is_none() {
            return Err(format!(
                "there is no sandbox to run it in. Add `{}` to `lspServers` in your own settings to run it without one",
                definition.name
            ));
        }
        let mut variables: BTreeMap<String, String> = self.variables.iter().cloned().collect();
        let (mut writable, mut readable) = (Vec::new(), Vec::new());
        if let Some(plugin) = &definition.plugin {
            plugin.make_data();
            writable.extend(plugin.data.as_path().is_dir().then(|| plugin.data.clone()));
            readable.push(plugin.root.clone());
            variables.extend(plugin.variables());
        }
        if sandbox.is_some() {
            match cache_of(definition) {
                Ok(cache) => {
                    let folders =
                        CACHES.map(|(name, folder)| (name.to_owned(), cache.join(folder).to_string()));
                    variables.extend(folders);
                    writable.push(cache);
                }
                Err(error) => tracing::warn!(%error, server = definition.name, "it has no cache folder"),
            }
        }
        variables.extend(definition.variables.iter().cloned());
        let spec = ServedSpec {
            program: definition.command.clone(),
            arguments: definition.arguments.clone(),
            directory: root.clone(),
            variables,
            secrets: self.secrets.clone(),
            sandbox,
            network: definition.network,
            writable,
            readable,
            holds: false,
        };
        let started = served::start(spec).await.map_err(|end| describe(&end))?;
        let errors = ErrorOutput::default();
        task::spawn(errors.clone().read_from(started.errors));
        Ok(LaunchedProgram {
            input: Box::new(started.input),
            output: Box::new(started.output),
            errors,
            process: Some(started.process),
        })
    }
}

/// The end of a program, in words.
pub(crate) fn describe(end: &ServiceEnd) -> String {
    match end {
        ServiceEnd::NotFound(why) => format!("its program was not found: {why}"),
        ServiceEnd::NotStarted(why) => format!("its program could not be started: {why}"),
        ServiceEnd::NoSandbox(why) => format!("the sandbox could not be set up: {why}"),
        ServiceEnd::Ran(Exit::Code(code)) => format!("it ended with exit code {code}"),
        ServiceEnd::Ran(Exit::Signal(signal)) => format!("signal {signal} ended it"),
        ServiceEnd::Ran(Exit::TimedOut | Exit::Cancelled) => "it was stopped".to_owned(),
    }
}

/// The folder for the caches of a server, made if need be.
fn cache_of(definition: &LanguageServerDefinition) -> io::Result<AbsPath> {
    let cache = std::env::var_os("XDG_CACHE_HOME").map(std::path::PathBuf::from);
    let cache = cache.filter(|path| path.is_absolute());
    let cache = cache.or_else(|| std::env::home_dir().map(|home| home.join(".cache")));
    let cache = cache.ok_or_else(|| io::Error::other("there is no folder for caches"))?;
    let folder = cache.join("kode-ls").join("languages").join(&definition.digest);
    std::fs::create_dir_all(&folder)?;
    AbsPath::new(folder).map_err(io::Error::other)
}
