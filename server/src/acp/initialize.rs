//! The handshake: capabilities of both sides, and the ways to authenticate.
//!
//! Rule: only served methods are announced. A client that asks for another version of the protocol gets version 1.

use agent_client_protocol_schema::ProtocolVersion;
use agent_client_protocol_schema::v1::{
    AgentAuthCapabilities, AgentCapabilities, AuthMethod, AuthMethodAgent, AuthMethodTerminal,
    ClientCapabilities, Implementation, InitializeRequest, InitializeResponse, LogoutCapabilities,
    McpCapabilities, PromptCapabilities, SessionAdditionalDirectoriesCapabilities, SessionCapabilities,
    SessionCloseCapabilities, SessionDeleteCapabilities, SessionListCapabilities, SessionResumeCapabilities,
};

use super::kode;
use super::updates::meta;

/// The authentication that reads the models of settings and environment again.
pub(super) const MODELS: &str = "models";

/// The authentication in a terminal: `kode-ls setup`.
pub(super) const SETUP: &str = "setup";

/// Clients that show one answer of a kind, and give the last of those that were offered.
const ONE_ANSWER_OF_A_KIND: [&str; 2] = ["codecompanion", "codecompanion.nvim"];

/// The client as it described itself.
#[derive(Clone, Debug, Default)]
pub(super) struct AcpClient {
    /// Its name, as `clientInfo` gives it.
    pub(super) name: Option<String>,
    /// Its name for people.
    pub(super) title: Option<String>,
    /// Its abilities.
    pub(super) capabilities: ClientCapabilities,
}

impl AcpClient {
    pub(super) fn of(request: InitializeRequest) -> Self {
        let (name, title) = request.client_info.map(|info| (info.name, info.title)).unzip();
        Self { name, title: title.flatten(), capabilities: request.client_capabilities }
    }

    /// The name for reports to other clients.
    pub(super) fn label(&self) -> &str {
        self.title.as_deref().or(self.name.as_deref()).unwrap_or("the client")
    }

    /// Its name as lists of clients have it. Avante, for one, has none.
    pub(super) fn plain_name(&self) -> Option<String> {
        self.name.as_deref().map(str::to_lowercase)
    }

    /// Whether it shows all answers of a permission request. A client without a name may not.
    pub(super) fn has_all_answers(&self) -> bool {
        self.plain_name().is_some_and(|name| !ONE_ANSWER_OF_A_KIND.contains(&name.as_str()))
    }

    /// Whether it shows notices.
    pub(super) fn has_notices(&self) -> bool {
        self.capabilities.session.as_ref().is_some_and(|session| session.notices.is_some())
    }

    /// Whether it shows compactions.
    pub(super) fn has_compactions(&self) -> bool {
        self.capabilities.session.as_ref().is_some_and(|session| session.compaction.is_some())
    }

    /// Whether it shows forms.
    pub(super) fn has_forms(&self) -> bool {
        self.capabilities.elicitation.as_ref().is_some_and(|elicitation| elicitation.form.is_some())
    }

    /// Whether it opens pages.
    pub(super) fn has_pages(&self) -> bool {
        self.capabilities.elicitation.as_ref().is_some_and(|elicitation| elicitation.url.is_some())
    }
}

/// The answer to `initialize`.
pub(super) fn response(client: &AcpClient) -> InitializeResponse {
    let sessions = SessionCapabilities::new()
        .list(SessionListCapabilities::new())
        .resume(SessionResumeCapabilities::new())
        .close(SessionCloseCapabilities::new())
        .delete(SessionDeleteCapabilities::new())
        .additional_directories(SessionAdditionalDirectoriesCapabilities::new());
    let capabilities = AgentCapabilities::new()
        .load_session(true)
        .prompt_capabilities(PromptCapabilities::new().image(true).embedded_context(true))
        .mcp_capabilities(McpCapabilities::new().http(true).sse(true))
        .session_capabilities(sessions)
        .auth(AgentAuthCapabilities::new().logout(LogoutCapabilities::new()))
        .meta(meta(kode::announcement()));
    InitializeResponse::new(ProtocolVersion::V1)
        .agent_info(Implementation::new("kode-ls", env!("CARGO_PKG_VERSION")).title("Kode".to_owned()))
        .agent_capabilities(capabilities)
        .auth_methods(auth_methods(client))
}

fn auth_methods(client: &AcpClient) -> Vec<AuthMethod> {
    let models = AuthMethodAgent::new(MODELS, "Models and keys of your settings")
        .description("Reads your settings and environment again.".to_owned());
    let mut methods = vec![AuthMethod::Agent(models)];
    if client.capabilities.auth.terminal {
        let setup = AuthMethodTerminal::new(SETUP, "Set up a model")
            .description("Choose a provider, enter a key, and try it.".to_owned())
            .args(vec!["setup".to_owned()]);
        methods.push(AuthMethod::Terminal(setup));
    }
    methods
}
