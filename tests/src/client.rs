//! A language server process with an editor on the other end.
//!
//! Rule: dropping a client closes the server's input and waits for its end, as an editor that is closed would; a
//! server that then does not end is killed.

use std::ops::Deref;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde_json::{Value, json};

use crate::binary;
use crate::connection::Connection;
use crate::editor::Editor;
use crate::position::Encoding;
use crate::process::Process;
use crate::session::Session;
use crate::system::proportional_set_size;

/// The client's data in `initialize`.
#[derive(Clone, Debug)]
pub struct Offer {
    capabilities: Value,
    options: Value,
    process: Option<u32>,
}

impl Offer {
    /// A client with a panel of its own: all of `agent/*`.
    #[must_use]
    pub fn kode() -> Self {
        Self::bare()
            .with("/workspace/applyEdit", json!(true))
            .with("/workspace/workspaceEdit/documentChanges", json!(true))
            .panel()
    }

    /// Adds a panel: the client shows events and asks for permissions itself.
    #[must_use]
    pub fn panel(self) -> Self {
        let kode = json!({
            "protocolVersion": 1, "events": true, "permissionUi": true,
            "saveDocuments": false, "diagnostics": false, "diffUi": false,
        });
        self.with("/experimental/kode", kode)
    }

    /// An ordinary editor without a plugin, with message requests and progress.
    #[must_use]
    pub fn plain() -> Self {
        Self::kode()
            .with("/experimental", Value::Null)
            .with("/window/showMessage/messageActionItem/additionalPropertiesSupport", json!(false))
            .with("/window/workDoneProgress", json!(true))
    }

    /// A client that offers nothing.
    #[must_use]
    pub fn bare() -> Self {
        Self { capabilities: json!({}), options: Value::Null, process: None }
    }

    /// Exactly these capabilities.
    #[must_use]
    pub fn capabilities(capabilities: Value) -> Self {
        Self { capabilities, ..Self::bare() }
    }

    /// Sets one capability, named by the path to it.
    #[must_use]
    pub fn with(mut self, path: &str, value: Value) -> Self {
        let mut place = &mut self.capabilities;
        for name in path.split('/').skip(1) {
            if !place.is_object() {
                *place = json!({});
            }
            place = &mut place[name];
        }
        *place = value;
        self
    }

    /// Offers position encodings, best first.
    #[must_use]
    pub fn encodings(self, encodings: &[Encoding]) -> Self {
        let names: Vec<&str> = encodings.iter().map(|encoding| encoding.name()).collect();
        self.with("/general/positionEncodings", json!(names))
    }

    /// Sets the user's options.
    #[must_use]
    pub fn options(mut self, options: Value) -> Self {
        self.options = options;
        self
    }

    /// Names the process whose end is the server's.
    #[must_use]
    pub fn process(mut self, process: u32) -> Self {
        self.process = Some(process);
        self
    }

    /// The parameters of `initialize` for a workspace of one folder.
    ///
    /// # Panics
    /// When the folder has no URI.
    #[must_use]
    pub fn params(&self, folder: &Path) -> Value {
        let uri = url::Url::from_directory_path(folder).expect("an absolute path").to_string();
        json!({
            "processId": self.process, "clientInfo": { "name": "kode-e2e" }, "rootUri": uri,
            "workspaceFolders": [{ "uri": uri, "name": "workspace" }],
            "capabilities": self.capabilities, "initializationOptions": self.options,
        })
    }
}

/// A server and the editor it serves.
pub struct Client {
    connection: Arc<Connection>,
    process: Mutex<Process>,
    /// The editor.
    pub editor: Editor,
}

impl Client {
    /// Starts a server; nothing is sent yet.
    #[must_use]
    pub fn start(arguments: &[&str], environment: &[(&str, &str)], cwd: &Path) -> Self {
        Self::of(Process::start(arguments, Some(cwd), environment))
    }

    fn of(mut process: Process) -> Self {
        let connection = Connection::new(&mut process);
        let editor = Editor::new(Arc::clone(&connection));
        Self { connection, process: Mutex::new(process), editor }
    }

    /// Starts a server below a process that acts as the editor, a shell that does nothing else. [`Client::kill`] and
    /// [`Client::process_id`] mean that process.
    #[must_use]
    pub fn start_below_editor(environment: &[(&str, &str)], cwd: &Path) -> Self {
        // The input is the server's alone, and the shell waits.
        let script = r#"exec 3<&0 </dev/null; "$0" <&3 3<&- & exec 3<&-; wait $!"#;
        let program = binary();
        let arguments = ["-c", script, program.to_str().expect("paths of tests are text")];
        Self::of(Process::start_program("sh".as_ref(), &arguments, Some(cwd), environment))
    }

    /// Does the handshake and gives the server's capabilities.
    ///
    /// # Panics
    /// When the server refuses.
    pub fn initialize(&self, params: Value) -> Value {
        let result = self.request("initialize", params).expect("initialize works");
        let capabilities = result["capabilities"].clone();
        let encoding = capabilities["positionEncoding"].as_str().map(Encoding::of).unwrap_or_default();
        self.editor.set_encoding(encoding);
        self.editor.set_whole_texts(capabilities["textDocumentSync"]["change"] == 1);
        self.notify("initialized", json!({}));
        capabilities
    }

    /// Sends a request that must work.
    ///
    /// # Panics
    /// When the server answers with an error.
    pub fn call(&self, method: &str, params: Value) -> Value {
        self.request(method, params.clone()).unwrap_or_else(|error| panic!("{method} {params}: {error:?}"))
    }

    /// Begins a session.
    pub fn session(&self) -> Session<'_> {
        self.session_with(json!({}))
    }

    /// Begins a session with parameters of `agent/session/new`.
    ///
    /// # Panics
    /// When the server refuses or the answer names no session.
    pub fn session_with(&self, params: Value) -> Session<'_> {
        let answer = self.call("agent/session/new", params);
        Session::new(
            self,
            answer["sessionId"].as_str().unwrap_or_else(|| panic!("{answer} names no session")),
        )
    }

    /// Says `shutdown` and `exit` and gives the exit code.
    pub fn shut_down(&self) -> i32 {
        self.call("shutdown", Value::Null);
        self.notify("exit", Value::Null);
        self.wait_for_exit()
    }

    /// Waits for the end of the process and gives its exit code.
    pub fn wait_for_exit(&self) -> i32 {
        self.wait_for_end();
        self.wait_for_process()
    }

    /// Waits for the end of the process, whether or not its output is read, and gives its exit code.
    pub fn wait_for_process(&self) -> i32 {
        self.lock().wait("kode-ls")
    }

    /// Kills the server at once, as a crash would.
    pub fn kill(&self) {
        self.lock().kill();
    }

    /// The id of the server's process.
    #[must_use]
    pub fn process_id(&self) -> u32 {
        self.lock().child().id()
    }

    /// The memory of the server, shared pages by their share, in bytes.
    ///
    /// # Panics
    /// Where the system does not tell it.
    #[must_use]
    pub fn proportional_set_size(&self) -> f64 {
        proportional_set_size(self.process_id())
    }

    /// The time that the threads of the server have run on a processor; without threads that have ended.
    ///
    /// # Panics
    /// Where the system does not tell it.
    #[must_use]
    pub fn processor_time(&self) -> Duration {
        let path = format!("/proc/{}/task", self.process_id());
        let tasks = std::fs::read_dir(&path).unwrap_or_else(|error| panic!("{path}: {error}")).flatten();
        let texts = tasks.filter_map(|task| std::fs::read_to_string(task.path().join("schedstat")).ok());
        let nanoseconds = |text: String| text.split_whitespace().next()?.parse::<u64>().ok();
        Duration::from_nanos(texts.filter_map(nanoseconds).sum())
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Process> {
        self.process.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Deref for Client {
    type Target = Connection;

    fn deref(&self) -> &Connection {
        &self.connection
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        self.connection.close_input();
        // A test that fails already must not fail for a second reason.
        if !std::thread::panicking() && !self.connection.look(|received| received.ended) {
            self.wait_for_exit();
        }
    }
}
