//! The MCP servers that a client gives with a session.
//!
//! Rule: they are the user's own, as if they stood in the user's settings: no approval is asked for them, and a server of the
//! settings with the same name gives way. They belong to the sessions they are given with.

use std::collections::HashMap;
use std::sync::{Arc, PoisonError};

use agent_client_protocol_schema::v1::McpServer;
use async_trait::async_trait;
use futures::future::join_all;
use kode_engine::base::paths::AbsPath;
use kode_engine::config::policy::{Policy, PolicySource};
use kode_engine::config::settings::declared::{Approval, Declaration};
use kode_engine::mcp::Mcp;
use kode_engine::permission::rules::{RuleSource, SettingsLayer};
use kode_engine::process::shell::Secrets;
use kode_engine::tool::servers::{McpServers, ServerPool};
use serde_json::{Value, json};

/// Makes the servers of an engine.
type PoolFactory = Box<dyn Fn() -> Mcp + Send + Sync>;

/// The servers of all workspaces, with those that the client gives.
pub(super) struct ClientServerPool {
    make: PoolFactory,
    state: std::sync::Mutex<PoolState>,
}

#[derive(Default)]
struct PoolState {
    /// The pools by the servers that the client gives: sessions with the same list share their servers.
    pools: HashMap<String, Arc<Mcp>>,
    /// The list that the next session of a folder is opened with.
    given: HashMap<AbsPath, Vec<McpServer>>,
}

impl ClientServerPool {
    pub(super) fn new(make: impl Fn() -> Mcp + Send + Sync + 'static) -> Arc<Self> {
        Arc::new(Self { make: Box::new(make), state: std::sync::Mutex::default() })
    }

    /// Sets the servers of the sessions that are opened in a folder from now on.
    pub(super) fn give(&self, cwd: &AbsPath, servers: Vec<McpServer>) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        match servers.is_empty() {
            true => drop(state.given.remove(cwd)),
            false => drop(state.given.insert(cwd.clone(), servers)),
        }
    }
}

#[async_trait]
impl ServerPool for ClientServerPool {
    fn of(
        &self,
        roots: &[AbsPath],
        secrets: &Secrets,
        policy: &dyn Fn() -> Arc<dyn PolicySource>,
    ) -> Arc<dyn McpServers> {
        let (pool, given) = {
            let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
            let given = roots.first().and_then(|cwd| state.given.get(cwd)).cloned().unwrap_or_default();
            let key = serde_json::to_string(&given).unwrap_or_default();
            let pool = state.pools.entry(key).or_insert_with(|| Arc::new((self.make)()));
            (Arc::clone(pool), given)
        };
        if given.is_empty() {
            return pool.of(roots, secrets, policy);
        }
        let root = roots[0].clone();
        pool.of(roots, secrets, &|| Arc::new(GivenServers::new(policy(), &given, &root)))
    }

    async fn end(&self) {
        let pools: Vec<_> = {
            let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
            state.pools.values().cloned().collect()
        };
        join_all(pools.iter().map(|pool| pool.end())).await;
    }
}

/// The policy of a workspace with the servers of the client before its own.
struct GivenServers {
    policy: Arc<dyn PolicySource>,
    given: Vec<Declaration>,
    /// The last policy of the workspace, and its result.
    last: std::sync::Mutex<Option<(Arc<Policy>, Arc<Policy>)>>,
}

impl GivenServers {
    fn new(policy: Arc<dyn PolicySource>, given: &[McpServer], root: &AbsPath) -> Self {
        let given = given.iter().filter_map(|server| declaration(server, root)).collect();
        Self { policy, given, last: std::sync::Mutex::default() }
    }
}

impl PolicySource for GivenServers {
    fn current(&self) -> Arc<Policy> {
        let now = self.policy.current();
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((of, made)) = last.as_ref()
            && Arc::ptr_eq(of, &now)
        {
            return Arc::clone(made);
        }
        let mut policy = Policy::clone(&now);
        let mut declared = (*policy.declared).clone();
        declared.servers.splice(0..0, self.given.iter().cloned());
        policy.declared = Arc::new(declared);
        let made = Arc::new(policy);
        *last = Some((now, Arc::clone(&made)));
        made
    }
}

/// A server as settings declare it.
fn declaration(server: &McpServer, root: &AbsPath) -> Option<Declaration> {
    let (name, value) = entry(server)?;
    Some(Declaration {
        name,
        value,
        source: RuleSource { layer: SettingsLayer::Session, file: None, place: None },
        root: root.clone(),
        approval: Approval::NotNeeded,
        plugin: None,
    })
}

/// The name and the settings of a server; `None` for a kind that is not announced.
fn entry(server: &McpServer) -> Option<(String, Value)> {
    let headers = |headers: &[agent_client_protocol_schema::v1::HttpHeader]| -> Value {
        headers.iter().map(|header| (header.name.clone(), json!(header.value))).collect()
    };
    match server {
        McpServer::Stdio(stdio) => {
            let env: Value = stdio.env.iter().map(|one| (one.name.clone(), json!(one.value))).collect();
            let value = json!({ "command": stdio.command, "args": stdio.args, "env": env });
            Some((stdio.name.clone(), value))
        }
        McpServer::Http(http) => {
            let value = json!({ "type": "http", "url": http.url, "headers": headers(&http.headers) });
            Some((http.name.clone(), value))
        }
        McpServer::Sse(sse) => {
            let value = json!({ "type": "sse", "url": sse.url, "headers": headers(&sse.headers) });
            Some((sse.name.clone(), value))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_of_server_is_declared_as_settings_declare_it() {
        let given: Vec<McpServer> = serde_json::from_value(json!([
            { "name": "own", "command": "/bin/x", "args": ["-a"], "env": [{ "name": "K", "value": "v" }] },
            { "type": "http", "name": "far", "url": "http://h/", "headers": [{ "name": "A", "value": "b" }] },
            { "type": "sse", "name": "old", "url": "http://o/", "headers": [] },
        ]))
        .unwrap();
        let entries: Vec<_> = given.iter().filter_map(entry).collect();
        assert_eq!(
            entries,
            [
                ("own".into(), json!({ "command": "/bin/x", "args": ["-a"], "env": { "K": "v" } })),
                ("far".into(), json!({ "type": "http", "url": "http://h/", "headers": { "A": "b" } })),
                ("old".into(), json!({ "type": "sse", "url": "http://o/", "headers": {} })),
            ]
        );
    }

    #[test]
    fn the_policy_is_the_same_one_until_the_workspace_s_changes() {
        let root = AbsPath::new("/w").unwrap();
        let given: Vec<McpServer> =
            serde_json::from_value(json!([{ "name": "own", "command": "x", "args": [], "env": [] }]))
                .unwrap();
        let source = GivenServers::new(Arc::new(Arc::new(Policy::default())), &given, &root);
        let first = source.current();
        assert_eq!(first.declared.servers[0].name, "own");
        assert!(Arc::ptr_eq(&first, &source.current()));
    }
}
