//! An entry of a settings file for a server, made ready for use.
//!
//! Rule: an entry that cannot be used costs its own server alone and says what to put right; a variable that is not set is
//! never sent or started with an empty text in its place.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use reqwest::header::{HeaderName, HeaderValue};
use serde::Deserialize;
use serde_json::Value;
use sha2::{Digest, Sha256};
use url::Url;

use crate::mcp::fault::McpFailure;
use crate::mcp::names;
use crate::plugin::Folders;
use kode_base::paths::AbsPath;
use kode_base::variables;

/// How long a server may take to start, by default.
pub const START_LIMIT: Duration = Duration::from_secs(30);

/// How long a call may go without an answer or a sign of progress, by default.
pub const CALL_LIMIT: Duration = Duration::from_secs(300);

/// How long a call may take in all, whatever progress it reports, where its entry does not say.
pub const CALL_TOTAL: Duration = Duration::from_secs(3_600);

/// How often a connected server is asked whether it is there, by default.
pub const HEALTH_INTERVAL: Duration = Duration::from_secs(60);

/// How long it may take to say so.
pub const HEALTH_LIMIT: Duration = Duration::from_secs(15);

/// So often in a row it is tried to connect.
const ATTEMPTS: u32 = 5;

/// The first wait between two attempts, and the longest.
const FIRST_DELAY: Duration = Duration::from_secs(1);
const MAX_DELAY: Duration = Duration::from_secs(60);

/// No time in an entry is shorter or longer.
const MIN_TIME: Duration = Duration::from_millis(10);
const MAX_TIME: Duration = Duration::from_secs(24 * 3_600);

/// The longest name of a server.
const MAX_SERVER_NAME: usize = 100;

/// A server as it is started or reached.
#[derive(Clone, Debug, PartialEq)]
pub struct ServerDefinition {
    /// Its name in the settings.
    pub name: String,
    /// How it is reached.
    pub link: ServerLink,
    /// How long one call may take in all; a hard limit.
    pub timeout: Option<Duration>,
    /// How often it is asked whether it is there; `None` for never.
    pub health: Option<Duration>,
    /// How it is connected to again.
    pub recovery: Recovery,
    /// Whether it runs in the sandbox where there is one.
    pub sandboxed: bool,
    /// Whether it has the network to itself there; otherwise it has that of commands.
    pub network: bool,
    /// Whether what it says of its tools is believed: that one only looks.
    pub trusts_hints: bool,
    /// Which of its tools are on.
    pub tools: ToolSwitches,
    /// How the user signs in.
    pub oauth: OAuth,
    /// Things about the entry that the user should know.
    pub notes: Vec<String>,
    /// Represents all of the entry, before variables were put in.
    pub digest: String,
    /// Whether it is in a file of the workspace: what it has run for it then runs as programs of the workspace do.
    pub is_of_project: bool,
    /// The plugin that brings it, if one does.
    pub plugin: Option<Arc<Folders>>,
}

/// The tools of a server that are on: by the names that it gives them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ToolSwitches {
    /// `enabledTools`: these alone; all without it.
    pub enabled: Option<Vec<String>>,
    /// `disabledTools`: none of these.
    pub disabled: Vec<String>,
}

impl ToolSwitches {
    /// Whether a tool is on.
    #[must_use]
    pub fn has(&self, tool: &str) -> bool {
        let is_enabled = self.enabled.as_ref().is_none_or(|enabled| enabled.iter().any(|name| name == tool));
        is_enabled && !self.disabled.iter().any(|name| name == tool)
    }

    /// The named tools that a server does not have.
    #[must_use]
    pub fn unknown<'a>(&'a self, has: &dyn Fn(&str) -> bool) -> Vec<&'a str> {
        let named = self.enabled.iter().flatten().chain(&self.disabled);
        named.map(String::as_str).filter(|name| !has(name)).collect()
    }
}

/// How a server is reached.
#[derive(Clone, Debug, PartialEq)]
pub enum ServerLink {
    /// It is a program that is started and spoken to over its standard input and output.
    Stdio(ServerProgram),
    /// It is somewhere in the network.
    Network(RemoteServer),
}

/// A program that is a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerProgram {
    /// The program.
    pub command: String,
    /// Its arguments.
    pub arguments: Vec<String>,
    /// Program and arguments as they are written, for people.
    pub written: String,
    /// Variables it gets besides the usual ones.
    pub variables: Vec<(String, String)>,
    /// The folder it runs in; the workspace's first when `None`.
    pub directory: Option<AbsPath>,
}

/// A server in the network.
#[derive(Clone, Debug, PartialEq)]
pub struct RemoteServer {
    /// Where it is.
    pub url: Url,
    /// The headers of every request.
    pub headers: Vec<(HeaderName, HeaderValue)>,
    /// A command that prints more of that, as JSON.
    pub headers_helper: Option<String>,
    /// The transport.
    pub form: RemoteTransport,
}

/// The form in which a server in the network is spoken to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RemoteTransport {
    /// Streamable HTTP.
    Http,
    /// Server-sent events, the older form.
    Sse,
    /// The entry does not say: the first, and if that is not understood the second.
    Either,
}

/// How a server is connected to again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Recovery {
    /// Whether it is at all.
    pub enabled: bool,
    /// How often in a row.
    pub attempts: u32,
    /// The wait before the second attempt; each one after is twice as long.
    pub first_delay: Duration,
    /// The longest wait.
    pub max_delay: Duration,
}

impl Default for Recovery {
    fn default() -> Self {
        Self { enabled: true, attempts: ATTEMPTS, first_delay: FIRST_DELAY, max_delay: MAX_DELAY }
    }
}

/// How the user signs in to a server.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct OAuth {
    /// The id the server knows kode-ls by, where it takes no new ones.
    pub client_id: Option<String>,
    /// The scopes; empty for the server's own.
    pub scopes: Vec<String>,
    /// The port on this machine that the browser is sent back to; any when `None`.
    pub callback_port: Option<u16>,
}

/// An entry, as far as it is read.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct RawServer {
    #[serde(rename = "type")]
    kind: Option<String>,
    transport: Option<String>,
    command: Option<String>,
    args: Vec<String>,
    env: BTreeMap<String, Value>,
    cwd: Option<String>,
    url: Option<String>,
    #[serde(alias = "httpUrl", alias = "serverUrl")]
    other_url: Option<String>,
    headers: BTreeMap<String, Value>,
    headers_helper: Option<String>,
    timeout: Option<f64>,
    enabled: Option<bool>,
    disabled: Option<bool>,
    health_check: Option<RawHealth>,
    recovery: Option<RawRecovery>,
    oauth: Option<OAuth>,
    sandbox: Option<bool>,
    network: Option<bool>,
    trust_annotations: Option<bool>,
    #[serde(alias = "includeTools")]
    enabled_tools: Option<Vec<String>>,
    #[serde(alias = "excludeTools")]
    disabled_tools: Vec<String>,
}

#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum RawHealth {
    Switch(bool),
    Full {
        #[serde(default)]
        enabled: Option<bool>,
        #[serde(default)]
        interval: Option<f64>,
    },
}

#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum RawRecovery {
    Switch(bool),
    #[serde(rename_all = "camelCase")]
    Full {
        #[serde(default)]
        enabled: Option<bool>,
        #[serde(default, alias = "maxRetries")]
        max_attempts: Option<u32>,
        #[serde(default, alias = "delay")]
        initial_delay: Option<f64>,
        #[serde(default)]
        max_delay: Option<f64>,
    },
}

/// Whether an entry switches its own server off.
#[must_use]
pub fn is_switched_off(value: &Value) -> bool {
    value.get("enabled") == Some(&Value::Bool(false)) || value.get("disabled") == Some(&Value::Bool(true))
}

/// Represents an entry: the same for the same text, and for no other.
#[must_use]
pub fn digest(name: &str, value: &Value) -> String {
    let mut digest = Sha256::new();
    digest.update((name.len() as u64).to_be_bytes());
    digest.update(name.as_bytes());
    digest.update(value.to_string().as_bytes());
    digest.finalize().iter().take(16).map(|byte| format!("{byte:02x}")).collect()
}

impl ServerDefinition {
    /// Reads an entry. Relative folders are relative to `root`; `variable` gives those of the environment.
    ///
    /// # Errors
    /// The problems of the entry and what to do about it.
    pub fn read(
        name: &str,
        value: &Value,
        root: &AbsPath,
        variable: &dyn Fn(&str) -> Option<String>,
    ) -> Result<Self, McpFailure> {
        let wrong = |what: String| {
            McpFailure::permanent(
                format!("the entry `{name}` cannot be used: {what}"),
                "Put the entry right; the server is started again by itself.",
            )
        };
        if name.is_empty() || name.chars().count() > MAX_SERVER_NAME || name.chars().any(char::is_control) {
            return Err(wrong(format!("a server's name has 1 to {MAX_SERVER_NAME} characters")));
        }
        if names::is_reserved(name) {
            return Err(wrong(format!("`{name}` is a name that means something else; choose another")));
        }
        let written: RawServer = serde_path_to_error::deserialize(value)
            .map_err(|error| wrong(format!("at `{}`: {}", error.path(), error.inner())))?;
        let expand = |field: &str, text: &str| {
            variables::expand(text, variable).complete().map_err(|missing| {
                McpFailure::permanent(
                    format!("the variable `{missing}` in `{field}` of the entry `{name}` is not set"),
                    format!(
                        "Set it where your editor is started, write it under `env` in the settings, or give a default: \
                         ${{{missing}:-…}}."
                    ),
                )
            })
        };
        let mut notes = Vec::new();
        let link = link(&written, root, &mut notes, &expand, &wrong)?;
        let time = |field: &str, milliseconds: Option<f64>| {
            milliseconds.map(|milliseconds| {
                time(milliseconds).ok_or_else(|| {
                    wrong(format!("`{field}` is a time in milliseconds, and {milliseconds} is not valid"))
                })
            })
        };
        Ok(Self {
            name: name.to_owned(),
            link,
            timeout: time("timeout", written.timeout).transpose()?,
            health: match &written.health_check {
                None | Some(RawHealth::Switch(true)) => Some(HEALTH_INTERVAL),
                Some(RawHealth::Switch(false) | RawHealth::Full { enabled: Some(false), .. }) => None,
                Some(RawHealth::Full { interval, .. }) => {
                    Some(time("healthCheck.interval", *interval).transpose()?.unwrap_or(HEALTH_INTERVAL))
                }
            },
            recovery: match &written.recovery {
                None | Some(RawRecovery::Switch(true)) => Recovery::default(),
                Some(RawRecovery::Switch(false)) => Recovery { enabled: false, ..Recovery::default() },
                Some(RawRecovery::Full { enabled, max_attempts, initial_delay, max_delay }) => Recovery {
                    enabled: enabled.unwrap_or(true),
                    attempts: max_attempts.unwrap_or(ATTEMPTS).min(100),
                    first_delay: time("recovery.initialDelay", *initial_delay)
                        .transpose()?
                        .unwrap_or(FIRST_DELAY),
                    max_delay: time("recovery.maxDelay", *max_delay).transpose()?.unwrap_or(MAX_DELAY),
                },
            },
            sandboxed: written.sandbox.unwrap_or(true),
            network: written.network.unwrap_or(true),
            trusts_hints: written.trust_annotations.unwrap_or(false),
            tools: ToolSwitches { enabled: written.enabled_tools, disabled: written.disabled_tools },
            oauth: written.oauth.unwrap_or_default(),
            notes,
            digest: digest(name, value),
            // Only an entry that says so acts as the user.
            is_of_project: true,
            plugin: None,
        })
    }

    /// Whether programs are started for it that the sandbox, variables and withheld secrets matter to.
    #[must_use]
    pub fn starts_programs(&self) -> bool {
        match &self.link {
            ServerLink::Stdio(_) => true,
            // That of the user runs with all that the user has.
            ServerLink::Network(address) => address.headers_helper.is_some() && self.is_of_project,
        }
    }

    /// The kind of its link, as settings name it.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        match &self.link {
            ServerLink::Stdio(_) => "stdio",
            ServerLink::Network(RemoteServer { form: RemoteTransport::Sse, .. }) => "sse",
            ServerLink::Network(RemoteServer {
                form: RemoteTransport::Http | RemoteTransport::Either,
                ..
            }) => "http",
        }
    }

    /// The program or address, for people; no variable's value and no header is in it.
    #[must_use]
    pub fn shown(&self) -> String {
        match &self.link {
            ServerLink::Stdio(program) => program.written.clone(),
            ServerLink::Network(address) => {
                let mut url = address.url.clone();
                url.set_query(None);
                // Nothing else can refuse it: an address without a host has no password either.
                let _ = url.set_password(None);
                let _ = url.set_username("");
                url.to_string()
            }
        }
    }
}

type VariableExpander<'a> = dyn Fn(&str, &str) -> Result<String, McpFailure> + 'a;

fn link(
    written: &RawServer,
    root: &AbsPath,
    notes: &mut Vec<String>,
    expand: &VariableExpander<'_>,
    wrong: &dyn Fn(String) -> McpFailure,
) -> Result<ServerLink, McpFailure> {
    let kind = written.kind.as_deref().or(written.transport.as_deref());
    let url = written.url.as_deref().or(written.other_url.as_deref());
    let form = match (kind, &written.command, url) {
        (Some("stdio"), Some(_), _) | (None, Some(_), _) => None,
        (Some("stdio"), None, _) => return Err(wrong("it has no `command`".to_owned())),
        (Some("http" | "streamable-http" | "streamableHttp"), _, Some(url)) => {
            Some((RemoteTransport::Http, url))
        }
        (Some("sse"), _, Some(url)) => Some((RemoteTransport::Sse, url)),
        (Some("http" | "streamable-http" | "streamableHttp" | "sse"), _, None) => {
            return Err(wrong("it has no `url`".to_owned()));
        }
        (Some("ws" | "websocket"), ..) => {
            return Err(wrong(
                "servers over WebSocket are not supported; most offer `http` as well".to_owned(),
            ));
        }
        (Some(other), ..) => {
            return Err(wrong(format!("there is no type `{other}`; there are `stdio`, `http` and `sse`")));
        }
        (None, None, Some(url)) => {
            notes.push(
                "The entry has a `url` and no `type`: `http` is tried and then `sse`. Add `\"type\": \"http\"` or \
                 `\"type\": \"sse\"`."
                    .to_owned(),
            );
            Some((RemoteTransport::Either, url))
        }
        (None, None, None) => return Err(wrong("it has neither a `command` nor a `url`".to_owned())),
    };
    match form {
        None => program(written, root, expand, wrong).map(ServerLink::Stdio),
        Some((form, url)) => address(written, form, url, expand, wrong).map(ServerLink::Network),
    }
}

fn program(
    written: &RawServer,
    root: &AbsPath,
    expand: &VariableExpander<'_>,
    wrong: &dyn Fn(String) -> McpFailure,
) -> Result<ServerProgram, McpFailure> {
    let command = expand("command", written.command.as_deref().unwrap_or_default())?;
    if command.trim().is_empty() || command.contains('\0') {
        return Err(wrong("its `command` is empty".to_owned()));
    }
    let arguments =
        written.args.iter().map(|argument| expand("args", argument)).collect::<Result<Vec<_>, _>>()?;
    let mut variables = Vec::new();
    for (name, value) in &written.env {
        if name.is_empty() || name.contains(['=', '\0']) {
            return Err(wrong(format!("`{name}` cannot be the name of a variable")));
        }
        variables.push((name.clone(), expand(&format!("env.{name}"), &text_of(value))?));
    }
    let directory = match &written.cwd {
        None => None,
        Some(cwd) => Some(root.join(expand("cwd", cwd)?)),
    };
    let words = written.command.iter().chain(&written.args);
    let written = words.map(String::as_str).collect::<Vec<_>>().join(" ");
    Ok(ServerProgram { command, arguments, written, variables, directory })
}

fn address(
    written: &RawServer,
    form: RemoteTransport,
    url: &str,
    expand: &VariableExpander<'_>,
    wrong: &dyn Fn(String) -> McpFailure,
) -> Result<RemoteServer, McpFailure> {
    let url = expand("url", url)?;
    let url = Url::parse(&url).map_err(|error| wrong(format!("its `url` is no address: {error}")))?;
    if !matches!(url.scheme(), "http" | "https") || url.host().is_none() {
        return Err(wrong("its `url` has to begin with `https://` or `http://`".to_owned()));
    }
    let mut headers = Vec::new();
    for (name, value) in &written.headers {
        let value = expand(&format!("headers.{name}"), &text_of(value))?;
        headers.push(header(name, &value).map_err(wrong)?);
    }
    Ok(RemoteServer { url, headers, headers_helper: written.headers_helper.clone(), form })
}

/// A header of a request.
///
/// # Errors
/// Why it cannot be one; its value is not in it.
pub fn header(name: &str, value: &str) -> Result<(HeaderName, HeaderValue), String> {
    let parsed =
        name.parse::<HeaderName>().map_err(|_| format!("`{name}` cannot be the name of a header"))?;
    let mut value = HeaderValue::from_str(value)
        .map_err(|_| format!("the value of the header `{name}` has characters that cannot be sent"))?;
    value.set_sensitive(true);
    Ok((parsed, value))
}

/// Numbers and switches are written without quotes now and then.
fn text_of(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

fn time(milliseconds: f64) -> Option<Duration> {
    let time = Duration::try_from_secs_f64(milliseconds / 1_000.0).ok()?;
    Some(time.clamp(MIN_TIME, MAX_TIME))
}

/// The times and sizes of the environment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct McpLimits {
    /// How long a server may take to start: `MCP_TIMEOUT`, in milliseconds.
    pub start: Duration,
    /// How long a call may go without a sign: `MCP_TOOL_TIMEOUT`, in milliseconds.
    pub call: Duration,
    /// Number of tokens of a result that the model gets: `MAX_MCP_OUTPUT_TOKENS`.
    pub output_tokens: usize,
    /// The longest wait of the first prompt for servers that are starting: `KODE_LS_MCP_WAIT`, in milliseconds; 0 is no wait.
    /// `None` without the variable.
    pub first_wait: Option<Duration>,
}

/// Number of tokens of a result that the model gets, by default.
pub const OUTPUT_TOKENS: usize = 25_000;

impl McpLimits {
    /// The values of an environment. A number that cannot be read counts as not set.
    #[must_use]
    pub fn of(variable: &dyn Fn(&str) -> Option<String>) -> Self {
        let number = |name: &str| {
            let written = variable(name)?;
            let read = written.trim().parse::<f64>().ok().filter(|number| *number > 0.0);
            if read.is_none() {
                tracing::warn!(name, written, "the variable is no number above 0 and is not followed");
            }
            read
        };
        let limit = |name: &str, default| number(name).and_then(time).unwrap_or(default);
        Self {
            start: limit("MCP_TIMEOUT", START_LIMIT),
            call: limit("MCP_TOOL_TIMEOUT", CALL_LIMIT),
            first_wait: match variable("KODE_LS_MCP_WAIT").as_deref().map(str::trim) {
                Some("0") => Some(Duration::ZERO),
                _ => number("KODE_LS_MCP_WAIT").and_then(time),
            },
            output_tokens: variable("MAX_MCP_OUTPUT_TOKENS")
                .and_then(|written| written.trim().parse().ok())
                .filter(|tokens| *tokens > 0)
                .unwrap_or(OUTPUT_TOKENS),
        }
    }
}

impl Default for McpLimits {
    fn default() -> Self {
        Self::of(&|_| None)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::mcp::fault::McpFailureClass;

    fn read(value: Value) -> Result<ServerDefinition, McpFailure> {
        let variable = |name: &str| match name {
            "TOKEN" => Some("t0ken".to_owned()),
            "EMPTY" => Some(String::new()),
            _ => None,
        };
        ServerDefinition::read("server", &value, &AbsPath::new("/w").unwrap(), &variable)
    }

    #[test]
    fn every_kind_of_entry_is_read() {
        let stdio = read(json!({
            "command": "node", "args": ["a.js", "${TOKEN}"], "env": { "KEY": "${EMPTY:-none}", "N": 1 }, "cwd": "sub",
        }))
        .unwrap();
        assert_eq!(
            stdio.link,
            ServerLink::Stdio(ServerProgram {
                command: "node".into(),
                arguments: vec!["a.js".into(), "t0ken".into()],
                written: "node a.js ${TOKEN}".into(),
                variables: vec![("KEY".into(), "none".into()), ("N".into(), "1".into())],
                directory: Some(AbsPath::new("/w/sub").unwrap()),
            })
        );
        let url = "https://u:p@h.example/mcp?key=1";
        for (kind, form) in [
            (Some("http"), RemoteTransport::Http),
            (Some("streamable-http"), RemoteTransport::Http),
            (Some("sse"), RemoteTransport::Sse),
            (None, RemoteTransport::Either),
        ] {
            let mut entry = json!({ "url": url, "headers": { "Authorization": "Bearer ${TOKEN}" } });
            if let Some(kind) = kind {
                entry["type"] = kind.into();
            }
            let read = read(entry).unwrap();
            let ServerLink::Network(address) = &read.link else { panic!("{read:?}") };
            assert_eq!((address.form, address.headers[0].1.as_bytes()), (form, b"Bearer t0ken".as_slice()));
            assert_eq!(read.notes.is_empty(), kind.is_some());
            assert!(!read.shown().contains("key=1") && !read.shown().contains(":p@"), "{}", read.shown());
            assert!(!format!("{read:?}").contains("t0ken"), "a header's value is not for logs");
        }
    }

    #[test]
    fn what_cannot_be_used_says_what_to_put_right() {
        for (entry, said) in [
            (json!({}), "neither a `command` nor a `url`"),
            (json!({ "type": "stdio" }), "no `command`"),
            (json!({ "type": "http" }), "no `url`"),
            (json!({ "type": "ws", "url": "ws://x" }), "WebSocket"),
            (json!({ "type": "carrier pigeon" }), "no type"),
            (json!({ "url": "file:///etc/passwd" }), "https://"),
            (json!({ "url": "https://x", "headers": { "a b": "c" } }), "name of a header"),
            (json!({ "command": "x", "args": "y" }), "args"),
            (json!({ "command": "x", "timeout": -1 }), "timeout"),
            (json!({ "command": "x", "args": ["${MISSING}"] }), "`MISSING`"),
            (json!("x"), "invalid type"),
        ] {
            let failure = read(entry.clone()).unwrap_err();
            assert_eq!(failure.class, McpFailureClass::Permanent);
            assert!(failure.message.contains(said), "{entry}: {}", failure.message);
        }
        let reserved =
            ServerDefinition::read("ide", &json!({ "command": "x" }), &AbsPath::new("/w").unwrap(), &|_| {
                None
            });
        assert!(reserved.is_err());
    }

    #[test]
    fn times_health_and_recovery_are_read_in_both_forms() {
        let plain = read(json!({ "command": "x" })).unwrap();
        assert_eq!(
            (plain.health, plain.timeout, plain.recovery.attempts),
            (Some(HEALTH_INTERVAL), None, ATTEMPTS)
        );
        let full = read(json!({
            "command": "x", "timeout": 1500, "healthCheck": { "enabled": true, "interval": 2000 },
            "recovery": { "enabled": true, "maxAttempts": 9, "initialDelay": 100 },
        }))
        .unwrap();
        assert_eq!(full.timeout, Some(Duration::from_millis(1500)));
        assert_eq!(full.health, Some(Duration::from_secs(2)));
        assert_eq!((full.recovery.attempts, full.recovery.first_delay), (9, Duration::from_millis(100)));
        let off = read(json!({ "command": "x", "healthCheck": false, "recovery": false })).unwrap();
        assert_eq!((off.health, off.recovery.enabled), (None, false));
    }

    #[test]
    fn limits_come_from_the_environment_and_nonsense_does_not_count() {
        let limits = McpLimits::of(&|name| match name {
            "MCP_TIMEOUT" => Some("1000".to_owned()),
            "MCP_TOOL_TIMEOUT" => Some("soon".to_owned()),
            "MAX_MCP_OUTPUT_TOKENS" => Some("7".to_owned()),
            _ => None,
        });
        let expected = McpLimits { start: Duration::from_secs(1), output_tokens: 7, ..McpLimits::default() };
        assert_eq!(limits, expected);
    }
}
