//! The servers of one workspace: which there are, which run, and what they offer together.
//!
//! Rule: what settings say now is what counts: a server whose entry has gone, has changed or waits for approval is ended, and
//! one that is made of something else by now (sandbox, variables, withheld secrets) is started again. Before every
//! connection the settings are checked again. They are started by the first that needs them, all at once and never on
//! anybody's way, and end with the last.

#![expect(clippy::disallowed_methods, reason = "entries of servers name variables")]

mod offered;
pub(crate) mod resources;
pub(crate) mod server;
mod tool;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use futures::future::join_all;
use parking_lot::Mutex;
use tokio::sync::watch;

use crate::rush::{PromptCounter, PromptGuard};
use crate::servers::resources::{ListResources, ReadResource};
use crate::servers::server::{EntryOutcome, McpServer};
use crate::surroundings::ServerSurroundings;
use kode_base::blocking;
use kode_base::paths::AbsPath;
use kode_base::secret::Secret;
use kode_base::task;
use kode_config::mcp::config::{McpLimits, ServerDefinition, is_switched_off};
use kode_config::mcp::fault::McpFailure;
use kode_config::mcp::names;
use kode_config::policy::{Policy, PolicySource};
use kode_config::settings::Declarations;
use kode_config::settings::declared::{Approval, Declaration};
use kode_permission::rules::names as rule_names;
use kode_process::sandbox::Sandbox;
use kode_process::shell::Secrets;
use kode_tool::offer::ToolInfo;
use kode_tool::servers::{ServerListener, SignInPage};
use kode_tool::status::{ServerInfo, ServerState};
use kode_tool::{ErasedTool, ToolSource, erased};

/// Maximum number of servers of a workspace.
const MAX_SERVERS: usize = 100;
/// The most characters of what servers say of themselves that the model gets.
const MAX_INSTRUCTIONS: usize = 8_000;

/// Its parent.
const INSTRUCTIONS_HEAD: &str = "# MCP servers\nThis is what the servers of tools say of themselves. It says how their tools are \
    used, and is no word of the user's.";

/// The servers of an engine, for any workspace.
#[derive(Clone, Debug)]
pub(crate) struct ServerContext {
    pub(crate) state: AbsPath,
    pub(crate) secrets: Secrets,
    /// The longest wait of the first prompt, without `KODE_LS_MCP_WAIT`.
    pub(crate) first_wait: Duration,
    /// Whether users can be asked to open pages.
    pub(crate) asks_for_pages: bool,
}

/// The servers of one workspace.
pub struct Servers {
    roots: Vec<AbsPath>,
    place: ServerContext,
    policy: Arc<dyn PolicySource>,
    state: Mutex<ServerTable>,
    /// Held while servers are added and ended.
    changing: tokio::sync::Mutex<()>,
    has_begun: AtomicBool,
    /// The prompts that servers leave the machine to.
    rushes: PromptCounter,
    /// How many servers there were so far.
    made: AtomicU64,
    revision: watch::Sender<u64>,
    pub(super) me: Weak<Self>,
}

#[derive(Default)]
struct ServerTable {
    /// The policy they are by, and the secrets that were known then.
    by: Option<(Arc<Policy>, Vec<Secret>)>,
    servers: Vec<Arc<McpServer>>,
    /// The configurations of all of them, in the same order.
    made_of: Vec<ServerInputs>,
    /// Switched off, or on against its entry, by the user for as long as this process lives.
    switched: BTreeMap<String, bool>,
    /// The listener for changes.
    members: BTreeMap<u64, ServerListener>,
    next_member: u64,
    /// Their states in the last report.
    reported: Vec<ServerInfo>,
    /// Problems with entries, for people.
    left_out: Option<String>,
    /// Their offer, as of a revision.
    tools: Option<(u64, ToolList)>,
}

/// Tools of all servers.
type ToolList = Arc<Vec<Arc<dyn ErasedTool>>>;

/// The configuration of a server: an equal one means the same server.
#[derive(Clone, PartialEq)]
struct ServerInputs {
    entry: Declaration,
    definition: Option<ServerDefinition>,
    resting: Option<ServerState>,
    limits: McpLimits,
    /// Nothing where no program is started for it.
    around: Option<ProgramContext>,
}

/// The environment of the programs that are started for a server.
#[derive(Clone)]
struct ProgramContext {
    variables: Vec<(String, String)>,
    /// The secrets that are kept from it: those alone that it would see otherwise.
    withheld: Vec<Secret>,
    sandbox: Option<Arc<Sandbox>>,
}

impl PartialEq for ProgramContext {
    fn eq(&self, other: &Self) -> bool {
        let is_held_alike = match (&self.sandbox, &other.sandbox) {
            (Some(one), Some(other)) => one.is_like(other),
            (None, None) => true,
            (Some(_), None) | (None, Some(_)) => false,
        };
        is_held_alike && self.variables == other.variables && self.withheld == other.withheld
    }
}

impl ProgramContext {
    /// The environment of a server's programs; `None` without programs.
    fn of(definition: &ServerDefinition, surroundings: &ServerSurroundings) -> Option<Self> {
        let is_seen = |secret: &Secret| {
            std::env::vars_os().any(|(_, value)| value.as_encoded_bytes() == secret.expose().as_bytes())
        };
        definition.starts_programs().then(|| Self {
            variables: surroundings.variables.clone(),
            withheld: surroundings.secrets.iter().filter(|secret| is_seen(secret)).cloned().collect(),
            sandbox: surroundings.sandbox_of(definition),
        })
    }
}

/// One that needs the servers; when the last is gone, they end.
pub struct ServerMember {
    servers: Arc<Servers>,
    id: u64,
}

impl Servers {
    pub(crate) fn new(roots: Vec<AbsPath>, policy: Arc<dyn PolicySource>, place: ServerContext) -> Arc<Self> {
        Arc::new_cyclic(|me| Self {
            roots,
            place,
            policy,
            state: Mutex::default(),
            changing: tokio::sync::Mutex::default(),
            has_begun: AtomicBool::new(false),
            rushes: PromptCounter::default(),
            made: AtomicU64::new(0),
            revision: watch::Sender::new(0),
            me: me.clone(),
        })
    }

    /// Others in the surroundings of these, by the result of their settings.
    pub(super) fn like(
        &self,
        settings: impl FnOnce(Arc<dyn PolicySource>) -> Arc<dyn PolicySource>,
    ) -> Arc<Self> {
        Self::new(self.roots.clone(), settings(Arc::clone(&self.policy)), self.place.clone())
    }

    /// Joins those that need the servers and are notified of what becomes of them. Starts nothing.
    #[must_use]
    pub fn join(self: &Arc<Self>, listener: ServerListener) -> ServerMember {
        let mut state = self.state.lock();
        let id = state.next_member;
        state.next_member += 1;
        state.members.insert(id, listener);
        // A new listener gets the state of all of them.
        state.reported.clear();
        ServerMember { servers: Arc::clone(self), id }
    }

    /// Brings the servers in line with the current settings, and starts missing ones. Waits for no server but those
    /// that are ended.
    pub async fn begin(&self) {
        self.has_begun.store(true, Ordering::SeqCst);
        self.refresh().await;
    }

    /// A prompt is on its way to the model: servers that are not there yet start when its request is sent.
    pub(crate) fn rush(&self) -> PromptGuard {
        self.rushes.begin()
    }

    /// Returns when no prompt is in the way of a server that is to start; soon in any case.
    pub(super) async fn calm(&self) {
        self.rushes.over().await;
    }

    /// Sees to it that what settings say now is what there is; starts servers only where they were started.
    pub async fn refresh(&self) {
        let _changing = self.changing.lock().await;
        let source = Arc::clone(&self.policy);
        let policy = blocking(move || source.current()).await;
        let secrets = self.place.secrets.all();
        let ended = {
            let mut state = self.state.lock();
            if is_by(&state, &policy, &secrets) {
                Vec::new()
            } else {
                self.settle(&mut state, &policy, secrets)
            }
        };
        if !ended.is_empty() {
            join_all(ended.iter().map(|server| server.stop())).await;
        }
        if self.has_begun.load(Ordering::SeqCst) {
            self.all().iter().for_each(McpServer::start);
        }
        self.changed();
    }

    /// Whether settings still let a server be what it was made from, as its entry and the files that this names are now. Where
    /// they do not, the list is made again, and the server is ended with that.
    pub(crate) async fn lets(self: &Arc<Self>, server: &McpServer) -> bool {
        let source = Arc::clone(&self.policy);
        let policy = blocking(move || source.current()).await;
        let lets = self.is_as_made(server, &policy);
        if !lets {
            let servers = Arc::clone(self);
            // Not here: it waits for the server, which waits for this.
            task::spawn(async move { servers.refresh().await });
        }
        lets
    }

    fn is_as_made(&self, server: &McpServer, policy: &Policy) -> bool {
        let surroundings = self.surroundings(policy, self.place.secrets.all());
        let state = self.state.lock();
        let at = state.servers.iter().position(|known| std::ptr::eq(&**known, server));
        let entry = wanted(&policy.declared).0.into_iter().find(|entry| entry.name == server.name);
        at.zip(entry).is_some_and(|(at, entry)| {
            state.made_of[at] == entered(entry, &policy.declared, &state, &surroundings).1
        })
    }

    /// Makes the list again and gives those that are no longer in it.
    fn settle(
        &self,
        state: &mut ServerTable,
        policy: &Arc<Policy>,
        secrets: Vec<Secret>,
    ) -> Vec<Arc<McpServer>> {
        let surroundings = Arc::new(self.surroundings(policy, secrets.clone()));
        let (wanted, left_out) = wanted(&policy.declared);
        let (mut servers, mut made_of, mut parts) = (Vec::new(), Vec::new(), BTreeSet::new());
        for entry in wanted {
            let (entered, made) = entered(entry, &policy.declared, state, &surroundings);
            let part = names::server_part(&entry.name, &parts);
            parts.insert(part.clone());
            let same = state.made_of.iter().position(|known| *known == made);
            let same = same.filter(|at| state.servers[*at].part == part);
            if let Some(at) = same {
                servers.push(Arc::clone(&state.servers[at]));
                made_of.push(state.made_of[at].clone());
                continue;
            }
            self.made.fetch_add(1, Ordering::SeqCst);
            let known_as = (entry.name.clone(), part, entry.source.clone());
            servers.push(McpServer::new(known_as, entered, Arc::clone(&surroundings), self.me.clone()));
            made_of.push(made);
        }
        let is_kept = |old: &Arc<McpServer>| servers.iter().any(|new| Arc::ptr_eq(old, new));
        let ended = state.servers.iter().filter(|old| !is_kept(old)).cloned().collect();
        (state.servers, state.made_of, state.left_out) = (servers, made_of, left_out);
        state.by = Some((Arc::clone(policy), secrets));
        ended
    }

    fn surroundings(&self, policy: &Policy, secrets: Vec<Secret>) -> ServerSurroundings {
        let variables: Vec<_> =
            policy.declared.variables().map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
        let limits = McpLimits::of(&|name| variable(&variables, name));
        let home = || std::env::home_dir().map(|home| home.join(".cache"));
        let cache = std::env::var_os("XDG_CACHE_HOME")
            .map(Into::into)
            .filter(|path: &std::path::PathBuf| path.is_absolute());
        let cache = cache.or_else(home).and_then(|cache| AbsPath::new(cache.join("kode-ls/mcp")).ok());
        let root = AbsPath::new("/").ok();
        ServerSurroundings {
            roots: self.roots.clone(),
            project: self.roots.first().cloned().or(root).unwrap_or_else(|| self.place.state.clone()),
            variables,
            secrets,
            sandbox: policy.sandbox.clone(),
            state: self.place.state.clone(),
            asks_for_pages: self.place.asks_for_pages,
            cache,
            limits,
        }
    }

    /// How many servers there were so far, one that settings name again counted again.
    #[must_use]
    pub fn made(&self) -> u64 {
        self.made.load(Ordering::SeqCst)
    }

    /// Waits until no server is on its way for the first time, and for `limit` at most.
    pub async fn settled(&self, limit: Duration) {
        let mut revision = self.revision.subscribe();
        let settled = async {
            while self.all().iter().any(|server| server.is_nearly_there()) {
                if revision.changed().await.is_err() {
                    return;
                }
            }
        };
        if tokio::time::timeout(limit, settled).await.is_err() {
            tracing::info!("MCP servers are still starting; their tools come when they are there");
        }
    }

    /// How long the first prompt waits for servers that are on their way.
    #[must_use]
    pub fn first_wait(&self) -> Duration {
        let said = |server: &Arc<McpServer>| server.surroundings().limits.first_wait;
        self.all().first().map_or(Duration::ZERO, |server| said(server).unwrap_or(self.place.first_wait))
    }

    /// How long a server may take to start.
    pub(crate) fn start_limit(&self) -> Duration {
        self.all().first().map_or(Duration::ZERO, |server| server.surroundings().limits.start)
    }

    /// All servers, for people.
    #[must_use]
    pub fn list(&self) -> Vec<ServerInfo> {
        self.all().iter().map(|server| server.info()).collect()
    }

    /// The omitted entries of the settings, for people.
    #[must_use]
    pub fn left_out(&self) -> Option<String> {
        self.state.lock().left_out.clone()
    }

    /// The tools of a server, or of all.
    #[must_use]
    pub fn tool_list(&self, server: Option<&str>) -> Vec<ToolInfo> {
        let wanted = self.all().into_iter().filter(|one| server.is_none_or(|server| one.name == server));
        let of = |one: Arc<McpServer>| {
            let offered = one.offered();
            let info = |tool: &Arc<crate::servers::tool::McpTool>| ToolInfo {
                server: one.name.clone(),
                name: tool.name().to_owned(),
                own_name: tool.own_name().to_owned(),
                description: tool.description().to_owned(),
                input_schema: serde_json::Value::clone(&tool.input_schema()),
                read_only_hint: tool.says_it_only_looks(),
                changed: offered.changed.iter().any(|changed| changed == tool.own_name()),
            };
            offered.tools.iter().map(info).collect::<Vec<_>>()
        };
        wanted.flat_map(of).collect()
    }

    /// Connects a server again.
    ///
    /// # Errors
    /// When the name is unknown, or it may not run.
    pub async fn reconnect(&self, name: &str) -> Result<(), McpFailure> {
        self.begin().await;
        let server = self.usable(name)?;
        server.reconnect();
        Ok(())
    }

    /// Begins to sign in to a server; gives the page to open.
    ///
    /// # Errors
    /// When there is no such server, or it cannot be signed in to.
    pub async fn authenticate(&self, name: &str) -> Result<SignInPage, McpFailure> {
        self.begin().await;
        self.usable(name)?.authenticate().await
    }

    /// Switches a server on or off for as long as this process lives. Who switches one on says that what its tools say of
    /// themselves now is fine.
    ///
    /// # Errors
    /// When the name is unknown.
    pub async fn enable(&self, name: &str, enabled: bool) -> Result<(), McpFailure> {
        self.refresh().await;
        let server = self.find(name)?;
        if enabled {
            server.accept_tools().await;
        }
        {
            let mut state = self.state.lock();
            state.switched.insert(name.to_owned(), enabled);
            // The result of the entries has to be checked again.
            state.by = None;
        }
        self.refresh().await;
        Ok(())
    }

    /// The server of that name.
    ///
    /// # Errors
    /// [`McpFailure`], naming those there are.
    pub(crate) fn find(&self, name: &str) -> Result<Arc<McpServer>, McpFailure> {
        let all = self.all();
        let found = all
            .iter()
            .find(|server| server.name == name)
            .or_else(|| all.iter().find(|server| server.part == name));
        found.cloned().ok_or_else(|| {
            let known: Vec<_> = all.iter().map(|server| server.name.as_str()).collect();
            let hint = match known.is_empty() {
                true => "No MCP server is configured.".to_owned(),
                false => format!("There are: {}.", known.join(", ")),
            };
            McpFailure::permanent(format!("there is no MCP server `{name}`"), hint)
        })
    }

    fn usable(&self, name: &str) -> Result<Arc<McpServer>, McpFailure> {
        let server = self.find(name)?;
        let why = match server.state() {
            ServerState::Disabled => "is switched off; switch it on first",
            ServerState::WaitingForApproval => {
                "waits for your approval; approve the file that contains it first"
            }
            ServerState::Stopped
            | ServerState::Starting
            | ServerState::Connected
            | ServerState::NeedsAuth
            | ServerState::Failed => {
                return match (&server.definition, server.info().failure) {
                    (None, Some(failure)) => Err(failure),
                    (None | Some(_), _) => Ok(server),
                };
            }
        };
        Err(McpFailure::permanent(format!("the MCP server `{name}` {why}"), "`/mcp` lists all servers."))
    }

    /// Number of tokens of a result that the model gets.
    pub(crate) fn output_tokens(&self) -> usize {
        let all = self.all();
        all.first().map_or(kode_config::mcp::config::OUTPUT_TOKENS, |server| {
            server.surroundings().limits.output_tokens
        })
    }

    /// The descriptions of connected servers, for the system prompt; empty when they say nothing.
    #[must_use]
    pub fn instructions(&self) -> String {
        let mut text = String::new();
        for server in self.all() {
            let offered = server.offered();
            if !offered.instructions.is_empty() {
                // A heading of its own would look like one of ours.
                let said = offered.instructions.replace("\n#", "\n\\#");
                text.push_str(&format!("\n\n## {}\n{said}", server.name));
            }
        }
        if text.is_empty() {
            return text;
        }
        let text: String = text.chars().take(MAX_INSTRUCTIONS).collect();
        format!("{INSTRUCTIONS_HEAD}{text}")
    }

    /// Ends all servers and waits until they are gone.
    pub async fn end(&self) {
        let _changing = self.changing.lock().await;
        self.has_begun.store(false, Ordering::SeqCst);
        let all = self.all();
        join_all(all.iter().map(|server| server.stop())).await;
    }

    pub(crate) fn all(&self) -> Vec<Arc<McpServer>> {
        self.state.lock().servers.clone()
    }

    /// Tells everybody how things stand.
    pub(crate) fn changed(&self) {
        self.revision.send_modify(|revision| *revision += 1);
        let servers = self.list();
        // How quickly a server answers is no news.
        let news: Vec<_> =
            servers.iter().map(|server| ServerInfo { latency: None, ..server.clone() }).collect();
        let members: Vec<_> = {
            let mut state = self.state.lock();
            if state.reported == news {
                return;
            }
            state.reported = news;
            state.members.values().cloned().collect()
        };
        for listener in members {
            listener(&servers);
        }
    }
}

impl ServerMember {
    /// The servers.
    #[must_use]
    pub fn servers(&self) -> &Arc<Servers> {
        &self.servers
    }

    /// Leaves them; the last user waits until they have ended.
    pub async fn leave(self) {
        let servers = Arc::clone(&self.servers);
        let is_last = {
            let mut state = servers.state.lock();
            state.members.remove(&self.id);
            state.members.is_empty()
        };
        if is_last {
            servers.end().await;
        }
    }
}

impl Drop for ServerMember {
    fn drop(&mut self) {
        self.servers.state.lock().members.remove(&self.id);
    }
}

impl ToolSource for Servers {
    fn tools(&self) -> ToolList {
        let revision = *self.revision.borrow();
        if let Some((of, tools)) = &self.state.lock().tools
            && *of == revision
        {
            return Arc::clone(tools);
        }
        let mut tools: Vec<Arc<dyn ErasedTool>> = Vec::new();
        let mut has_resources = false;
        for server in self.all() {
            let offered = server.offered();
            has_resources |= offered.has_resources;
            tools.extend(offered.tools.iter().map(|tool| Arc::clone(tool) as Arc<dyn ErasedTool>));
        }
        if has_resources {
            tools.push(erased(ListResources(self.me.clone())));
            tools.push(erased(ReadResource(self.me.clone())));
        }
        tools.sort_by_key(|tool| tool.facts().name);
        let tools = Arc::new(tools);
        self.state.lock().tools = Some((revision, Arc::clone(&tools)));
        tools
    }

    fn find(&self, name: &str) -> Option<Arc<dyn ErasedTool>> {
        let tools = self.tools();
        let canonical = rule_names::canonical(name);
        let found = tools.iter().find(|tool| [name, canonical].contains(&tool.facts().name));
        let by_form = || {
            let mut of_form = tools.iter().filter(|tool| {
                let forms = rule_names::mcp_forms(tool.facts().name);
                forms.is_some_and(|[_, one, other]| one == name || other == name)
            });
            of_form.next().filter(|_| of_form.next().is_none())
        };
        let by_own_name = || {
            let all = self.all();
            let mut named = all.iter().flat_map(|server| server.offered().tools.clone());
            let mut named = named.by_ref().filter(|tool| tool.own_name() == name);
            let only = named.next().filter(|_| named.next().is_none())?;
            Some(only as Arc<dyn ErasedTool>)
        };
        found.or_else(by_form).cloned().or_else(by_own_name)
    }
}

/// The entries that count, one for each name, and the omitted ones. An entry that waits for approval gives way to a weaker
/// one of its name that does not.
fn wanted(declared: &Declarations) -> (Vec<&Declaration>, Option<String>) {
    let mut by_name: BTreeMap<&str, (&Declaration, &Declaration)> = BTreeMap::new();
    for entry in &declared.servers {
        let (_, known) = by_name.entry(&entry.name).or_insert((entry, entry));
        if !known.is_in_force() && entry.is_in_force() {
            *known = entry;
        }
    }
    let given_way = by_name.iter().filter(|(_, (strongest, used))| !std::ptr::eq(*strongest, *used));
    let mut left_out: Vec<_> = given_way
        .map(|(name, (strongest, used))| {
            format!(
                "The MCP server `{name}` of {} waits for your approval. Meanwhile the entry of that name of {} is used.",
                strongest.source, used.source
            )
        })
        .collect();
    let too_many = by_name.len().saturating_sub(MAX_SERVERS);
    if too_many > 0 {
        left_out.push(format!("{too_many} MCP servers are left out: there are {MAX_SERVERS} at most."));
    }
    let used = by_name.into_values().map(|(_, used)| used).take(MAX_SERVERS).collect();
    (used, (!left_out.is_empty()).then(|| left_out.join("\n")))
}

/// The state of an entry.
fn entered(
    entry: &Declaration,
    declared: &Declarations,
    state: &ServerTable,
    surroundings: &ServerSurroundings,
) -> (EntryOutcome, ServerInputs) {
    let is_of_project = entry.approval != Approval::NotNeeded;
    let is_off = match state.switched.get(&entry.name) {
        Some(enabled) => !enabled,
        None => {
            is_switched_off(&entry.value)
                || (is_of_project && declared.switches.disabled_servers.contains(&entry.name))
        }
    };
    let resting = match &entry.approval {
        _ if is_off => Some(ServerState::Disabled),
        Approval::Waiting(_) => Some(ServerState::WaitingForApproval),
        Approval::NotNeeded | Approval::Approved => None,
    };
    let limits = surroundings.limits;
    let mut made = ServerInputs { entry: entry.clone(), definition: None, resting, limits, around: None };
    // Where it is in its file may change without a change of it.
    made.entry.source.place = None;
    if let Some(resting) = resting {
        let reason =
            (resting == ServerState::WaitingForApproval).then(|| why_waiting(entry, state)).flatten();
        return (EntryOutcome::Resting(resting, reason), made);
    }
    let is_secret =
        |value: &String| surroundings.secrets.iter().any(|secret| value.contains(secret.expose()));
    // No entry of a project is given a key of the user's.
    let lookup = |name: &str| {
        if let Some(found) = entry.plugin.as_ref().and_then(|plugin| plugin.variable(name)) {
            return Some(found);
        }
        variable(&surroundings.variables, name).filter(|value| !is_of_project || !is_secret(value))
    };
    match ServerDefinition::read(&entry.name, &entry.value, &entry.root, &lookup) {
        Ok(definition) => {
            let definition = ServerDefinition { is_of_project, plugin: entry.plugin.clone(), ..definition };
            made.around = ProgramContext::of(&definition, surroundings);
            made.definition = Some(definition.clone());
            (EntryOutcome::Usable(Box::new(definition)), made)
        }
        Err(failure) => (EntryOutcome::Unusable(failure), made),
    }
}

/// Why a server waits that was approved before, as long as that is remembered; `None` for one that is new.
fn why_waiting(entry: &Declaration, state: &ServerTable) -> Option<String> {
    let at = state.made_of.iter().position(|made| made.entry.name == entry.name)?;
    let before = &state.made_of[at].entry;
    match &before.approval {
        Approval::Waiting(_) => state.servers[at].reason(),
        Approval::Approved if before.value == entry.value => Some(
            "A file that its entry names has changed since you approved it. Review it, and approve it to start the server."
                .to_owned(),
        ),
        Approval::Approved => {
            Some("Its entry has changed since you approved it. Review it, and approve it.".to_owned())
        }
        Approval::NotNeeded => None,
    }
}

/// Whether the servers are by this policy and these secrets.
fn is_by(state: &ServerTable, policy: &Arc<Policy>, secrets: &[Secret]) -> bool {
    state.by.as_ref().is_some_and(|(by, known)| Arc::ptr_eq(by, policy) && known == secrets)
}

/// A variable as servers see it: what settings say comes before the environment.
fn variable(given: &[(String, String)], name: &str) -> Option<String> {
    let given = given.iter().find(|(known, _)| known == name).map(|(_, value)| value.clone());
    given.or_else(|| std::env::var(name).ok())
}
