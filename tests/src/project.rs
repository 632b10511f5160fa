//! A workspace in a temporary folder, a state folder, and the scripted model that works on it.
//!
//! Rule: nothing outside the temporary folder is read or written, so that any number of projects live side by side.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;
use tempfile::TempDir;

use crate::acp::AcpClient;
use crate::client::{Client, Offer};
use crate::model::ScriptedModel;
use crate::process::{Output, run};
use crate::script::Script;

/// The folder with all links followed, as editors name it: on Windows without the prefix for long paths.
fn real(folder: &Path) -> PathBuf {
    let real = folder.canonicalize().expect("it exists");
    let short = real.to_str().and_then(|text| text.strip_prefix(r"\\?\"));
    short.map_or_else(|| real.clone(), PathBuf::from)
}

/// Keeps the folders of projects, with workspace, state folder and journals, and prints their paths.
const KEEP_VARIABLE: &str = "KODE_E2E_KEEP";

/// A temporary project with its model.
pub struct Project {
    /// The model.
    pub model: ScriptedModel,
    root: PathBuf,
    _folder: TempDir,
}

impl Project {
    /// Makes an empty workspace and serves the script.
    ///
    /// # Panics
    /// When there is no place for it.
    #[must_use]
    pub fn new(script: &Script) -> Self {
        let mut folder = tempfile::Builder::new().prefix("kode-e2e-").tempdir().expect("a temporary folder");
        if std::env::var_os(KEEP_VARIABLE).is_some() {
            folder.disable_cleanup(true);
            show_kept(folder.path());
        }
        let root = real(folder.path());
        fs::create_dir(root.join("workspace")).expect("it is ours");
        let model = ScriptedModel::start(script, &root.join("script.json"));
        Self { model, root, _folder: folder }
    }

    /// The folder of the workspace.
    #[must_use]
    pub fn workspace(&self) -> PathBuf {
        self.root.join("workspace")
    }

    /// A folder outside the workspace, for what the agent must not reach unasked.
    #[must_use]
    pub fn outside(&self) -> &Path {
        &self.root
    }

    /// The folder of the program's state.
    #[must_use]
    pub fn home(&self) -> PathBuf {
        self.root.join("home")
    }

    /// The path of a file of the workspace.
    #[must_use]
    pub fn path(&self, name: &str) -> PathBuf {
        // By its components, so that it is spelled as the system spells it.
        self.workspace().join(name).components().collect()
    }

    /// The URI of a file of the workspace.
    ///
    /// # Panics
    /// Never: the path is absolute.
    #[must_use]
    pub fn uri(&self, name: &str) -> String {
        url::Url::from_file_path(self.path(name)).expect("an absolute path").to_string()
    }

    /// Writes a file of the workspace.
    ///
    /// # Panics
    /// When that does not work.
    pub fn write(&self, name: &str, content: impl AsRef<[u8]>) -> &Self {
        let path = self.path(name);
        fs::create_dir_all(path.parent().expect("a file has a folder")).expect("it is ours");
        fs::write(path, content).expect("it is ours");
        self
    }

    /// Reads a file of the workspace.
    ///
    /// # Panics
    /// When it is not there or no text.
    #[must_use]
    pub fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
    }

    /// Starts a server that asks the scripted model; nothing is sent to it yet.
    #[must_use]
    pub fn start(&self) -> Client {
        self.start_as(&[], &[])
    }

    /// As [`Project::start`], with arguments and with further variables in the environment.
    #[must_use]
    pub fn start_as(&self, arguments: &[&str], variables: &[(&str, &str)]) -> Client {
        let home = self.home();
        let mut environment = self.environment(&home);
        environment.extend_from_slice(variables);
        Client::start(arguments, &environment, &self.workspace())
    }

    /// Starts a server and does the handshake.
    #[must_use]
    pub fn connect(&self, offer: &Offer) -> Client {
        let client = self.start();
        client.initialize(offer.params(&self.workspace()));
        client
    }

    /// Starts a server below a process that acts as the editor, and does the handshake with the id of that process.
    #[must_use]
    pub fn connect_below_editor(&self, folder: &Path) -> Client {
        let home = self.home();
        let client = Client::start_below_editor(&self.environment(&home), &self.workspace());
        client.initialize(Offer::kode().process(client.process_id()).params(folder));
        client
    }

    /// Starts a server for a client with a panel of its own.
    #[must_use]
    pub fn open(&self) -> Client {
        self.connect(&Offer::kode())
    }

    /// Starts `kode-ls acp` and does the handshake for a client with these capabilities.
    #[must_use]
    pub fn acp(&self, capabilities: Value) -> AcpClient {
        let client = self.acp_as(&[]);
        client.initialize(capabilities);
        client
    }

    /// Starts `kode-ls acp` with further variables in the environment; nothing is sent to it yet.
    #[must_use]
    pub fn acp_as(&self, variables: &[(&str, &str)]) -> AcpClient {
        let home = self.home();
        let mut environment = self.environment(&home);
        environment.extend_from_slice(variables);
        AcpClient::start(&environment, &self.workspace())
    }

    /// Runs `kode-ls` with the scripted model in the workspace to its end.
    #[must_use]
    pub fn run(&self, arguments: &[&str], input: &str) -> Output {
        self.run_as(arguments, input, &[])
    }

    /// As [`Project::run`], with further variables in the environment.
    #[must_use]
    pub fn run_as(&self, arguments: &[&str], input: &str, variables: &[(&str, &str)]) -> Output {
        let home = self.home();
        let mut environment = self.environment(&home);
        environment.extend_from_slice(variables);
        run(arguments, Some(&self.workspace()), &environment, input)
    }

    fn environment<'a>(&'a self, home: &'a Path) -> Vec<(&'a str, &'a str)> {
        vec![
            ("KODE_LS_HOME", home.to_str().expect("paths of tests are text")),
            ("ANTHROPIC_BASE_URL", self.model.base_url()),
            ("ANTHROPIC_API_KEY", "test-key"),
        ]
    }
}

/// Copies a folder with all that is in it.
///
/// # Panics
/// When that does not work.
pub fn copy_folder(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap_or_else(|error| panic!("{}: {error}", from.display())) {
        let entry = entry.unwrap();
        let (path, target) = (entry.path(), to.join(entry.file_name()));
        if path.is_dir() {
            copy_folder(&path, &target);
        } else {
            fs::copy(&path, &target).unwrap();
        }
    }
}

/// Prints where a project stays, among the output of the test.
#[expect(clippy::print_stderr, reason = "asked for by the person who debugs a test")]
fn show_kept(folder: &Path) {
    eprintln!("the project stays in {}", folder.display());
}

/// The output of git in a folder, with a name for commits.
///
/// # Panics
/// When git fails.
pub fn git(folder: &Path, arguments: &[&str]) -> String {
    let output = std::process::Command::new("git")
        .args(["-c", "user.name=t", "-c", "user.email=t@example.com", "-c", "init.defaultBranch=main"])
        .args(arguments)
        .current_dir(folder)
        .output()
        .expect("git is there");
    assert!(output.status.success(), "git {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("git writes text")
}
