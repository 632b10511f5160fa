//! Signing in to servers in the network: OAuth 2 with the browser of the user.
//!
//! Rule: tokens are in files of the state folder that are their user's alone, one for each address, and go to that address and
//! to where it says tokens are got, nowhere else; nothing of them is logged.

use std::io;
use std::net::Ipv4Addr;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use hyper::http;
use rmcp::transport::auth::{
    AuthError, AuthorizationManager, AuthorizationRequest, AuthorizationSession, CredentialStore,
    OAuthHttpClient, OAuthHttpClientFuture, OAuthHttpRequest, StoredCredentials,
};
use sha2::{Digest, Sha256};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::timeout;
use url::Url;

use kode_base::paths::AbsPath;
use kode_base::{atomic, blocking, file_moves, private};
use kode_config::mcp::config::{RemoteServer, ServerDefinition};
use kode_config::mcp::fault::McpFailure;
use kode_net::http::{causes, client, is_loopback};

/// How long the user may take to sign in where no caller waits for it.
pub(crate) const SIGN_IN_LIMIT: Duration = Duration::from_secs(600);
/// How long the browser may take to say what it wants.
const BROWSER_LIMIT: Duration = Duration::from_secs(10);
/// The most bytes of the line in which it does.
const MAX_LINE: u64 = 16 << 10;
/// The most bytes of an answer on the way to a token.
const MAX_ANSWER: usize = 1 << 20;
/// The path the browser is sent back to.
const CALLBACK: &str = "/callback";
/// The folder of the tokens in the state folder.
const FOLDER: &str = "mcp/tokens";
/// The modes of what holds tokens.
const PRIVATE_FILE: u32 = 0o600;
/// The client name of kode-ls in a registration.
const CLIENT_NAME: &str = "kode-ls";

/// A sign-in that waits for the user.
pub(crate) struct SignIn {
    /// The page to open in a browser.
    pub(crate) url: Url,
    session: AuthorizationSession,
    listener: TcpListener,
}

/// The tokens for one address.
#[derive(Clone, Debug)]
struct Tokens {
    file: AbsPath,
}

impl Tokens {
    fn of(state: &AbsPath, url: &Url) -> Self {
        let digest = Sha256::digest(url.as_str().as_bytes());
        let name: String = digest.iter().take(16).map(|byte| format!("{byte:02x}")).collect();
        Self { file: state.join(FOLDER).join(format!("{name}.json")) }
    }

    fn write(&self, credentials: &StoredCredentials) -> io::Result<()> {
        if let Some(folder) = self.file.parent() {
            private::create_folders(folder.as_path())?;
        }
        let json = serde_json::to_vec(credentials)?;
        match file_moves::remove_file(self.file.as_path()) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            Err(_) | Ok(()) => {}
        }
        atomic::create_as(self.file.as_path(), &json, PRIVATE_FILE)
    }

    fn read(&self) -> io::Result<Option<StoredCredentials>> {
        match std::fs::read(&self.file) {
            Ok(json) => Ok(Some(serde_json::from_slice(&json)?)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }
}

#[async_trait]
impl CredentialStore for Tokens {
    async fn load(&self) -> Result<Option<StoredCredentials>, AuthError> {
        let tokens = self.clone();
        blocking(move || tokens.read()).await.map_err(stored)
    }

    async fn save(&self, credentials: StoredCredentials) -> Result<(), AuthError> {
        let tokens = self.clone();
        blocking(move || tokens.write(&credentials)).await.map_err(stored)
    }

    async fn clear(&self) -> Result<(), AuthError> {
        let file = self.file.clone();
        match blocking(move || file_moves::remove_file(file.as_path())).await {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(stored(error)),
            Err(_) | Ok(()) => Ok(()),
        }
    }
}

fn stored(error: io::Error) -> AuthError {
    AuthError::CredentialStoreError(error.to_string())
}

/// Asks servers on this machine, whose certificates and proxy are other than those of the rest of the world.
struct LoopbackOAuthClient;

impl OAuthHttpClient for LoopbackOAuthClient {
    fn execute(&self, request: OAuthHttpRequest) -> OAuthHttpClientFuture<'_> {
        Box::pin(async move {
            let limit = request.timeout;
            let mut asked = reqwest::Request::try_from(request.request)?;
            *asked.timeout_mut() = limit;
            let mut answer = client(asked.url())?.execute(asked).await?;
            let mut response = http::Response::builder().status(answer.status());
            if let Some(headers) = response.headers_mut() {
                headers.clone_from(answer.headers());
            }
            let mut body = Vec::new();
            while let Some(piece) = answer.chunk().await? {
                body.extend_from_slice(&piece);
                if body.len() > MAX_ANSWER {
                    return Err(format!("the answer is larger than {MAX_ANSWER} bytes").into());
                }
            }
            Ok(response.body(body)?)
        })
    }
}

/// The store of tokens for an address.
///
/// # Errors
/// When nothing can be asked, or the tokens cannot be read.
pub(crate) async fn manager(
    definition: &ServerDefinition,
    address: &RemoteServer,
    state: &AbsPath,
) -> Result<AuthorizationManager, McpFailure> {
    let url = address.url.clone();
    let made = match is_loopback(&url) {
        true => {
            AuthorizationManager::new_with_oauth_http_client(url.as_str(), Arc::new(LoopbackOAuthClient))
                .await
        }
        false => {
            // The cryptography is installed with the first client.
            let _ = client(&url);
            AuthorizationManager::new(url.as_str()).await
        }
    };
    let mut manager = made.map_err(|error| failed(definition, &error))?;
    let tokens = Tokens::of(state, &url);
    let has_tokens = blocking({
        let tokens = tokens.clone();
        move || tokens.file.as_path().exists()
    })
    .await;
    manager.set_credential_store(tokens);
    if has_tokens && let Err(error) = manager.initialize_from_store().await {
        // Without them the server says itself that the user has to sign in.
        tracing::warn!(server = definition.name, %error, "the tokens for a server cannot be used");
    }
    Ok(manager)
}

/// The token for an address, if there is one.
///
/// # Errors
/// When the user has to sign in again.
pub(crate) async fn token(
    definition: &ServerDefinition,
    address: &RemoteServer,
    state: &AbsPath,
) -> Result<Option<String>, McpFailure> {
    let manager = manager(definition, address, state).await?;
    match manager.get_access_token().await {
        Ok(token) => Ok(Some(token)),
        Err(AuthError::AuthorizationRequired) => Ok(None),
        Err(error) => Err(failed(definition, &error)),
    }
}

/// Begins to sign in.
///
/// # Errors
/// Why that cannot be done with this server.
pub(crate) async fn begin(
    definition: &ServerDefinition,
    address: &RemoteServer,
    state: &AbsPath,
    challenge: &str,
) -> Result<SignIn, McpFailure> {
    let failed = |error: AuthError| failed(definition, &error);
    let port = definition.oauth.callback_port.unwrap_or(0);
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).await;
    let listener = listener.and_then(|listener| Ok((listener.local_addr()?, listener)));
    let (at, listener) = listener.map_err(|error| {
        McpFailure::permanent(
            format!("nothing can be listened to on this machine for the browser's answer: {error}"),
            "Set `oauth.callbackPort` in the server's entry to a port that is free.",
        )
    })?;
    let mut manager = manager(definition, address, state).await?;
    let resolution = match challenge {
        "" => manager.resolve_metadata().await,
        challenge => manager.resolve_metadata_from_challenge(Some(challenge)).await,
    };
    manager.set_metadata(resolution.map_err(failed)?.metadata);
    let mut request = AuthorizationRequest::new(format!("http://127.0.0.1:{}{CALLBACK}", at.port()))
        .with_client_name(CLIENT_NAME)
        .with_scopes(definition.oauth.scopes.clone());
    if let Some(id) = &definition.oauth.client_id {
        request = request.with_preregistered_client(id);
    }
    if !challenge.is_empty() {
        request = request.with_challenge(challenge);
    }
    let session = AuthorizationSession::new(manager, request).await.map_err(|(_, error)| failed(error))?;
    let url = Url::parse(session.get_authorization_url());
    let url = url.ok().filter(|url| matches!(url.scheme(), "https" | "http"));
    let url = url.ok_or_else(|| {
        McpFailure::permanent(
            "the server names no page to sign in at",
            "Put a token into its `headers` instead.",
        )
    })?;
    Ok(SignIn { url, session, listener })
}

impl SignIn {
    /// Waits for the user to sign in, and keeps the tokens.
    ///
    /// # Errors
    /// The reason why they are missing.
    pub(crate) async fn complete(self, definition: &ServerDefinition) -> Result<(), McpFailure> {
        loop {
            let (stream, _) = self.listener.accept().await.map_err(|error| {
                McpFailure::transient(format!("the browser's answer was lost: {error}"), "Sign in again.")
            })?;
            // Others may knock as well; only what comes back to the right place counts.
            if let Some(url) = answer(stream).await {
                return self
                    .session
                    .handle_callback_url(&url)
                    .await
                    .map(drop)
                    .map_err(|error| failed(definition, &error));
            }
        }
    }
}

/// Reads where the browser was sent back to, and tells the user to close the page.
async fn answer(stream: TcpStream) -> Option<String> {
    let mut stream = BufReader::new(stream);
    let mut line = String::new();
    let mut begin = (&mut stream).take(MAX_LINE);
    timeout(BROWSER_LIMIT, begin.read_line(&mut line)).await.ok()?.ok()?;
    let path = line.strip_prefix("GET ")?.split(' ').next()?.to_owned();
    let is_answer = path.split('?').next() == Some(CALLBACK) && path.contains("state=");
    let (status, text) = match is_answer {
        true => ("200 OK", "kode-ls has the answer. You can close this page."),
        false => ("404 Not Found", "There is nothing here."),
    };
    let response = format!(
        "HTTP/1.1 {status}\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{text}",
        text.len(),
    );
    let mut stream = stream.into_inner();
    if let Err(error) = stream.write_all(response.as_bytes()).await {
        tracing::debug!(%error, "the browser did not wait for its answer");
    }
    is_answer.then(|| format!("http://127.0.0.1{path}"))
}

fn failed(definition: &ServerDefinition, error: &AuthError) -> McpFailure {
    match error {
        AuthError::AuthorizationRequired | AuthError::TokenRefreshRejected(_) | AuthError::TokenExpired => {
            McpFailure::auth(&definition.name, "")
        }
        _ => McpFailure::permanent(
            format!("signing in did not work: {}", causes(error)),
            "Try it again, or put a token into the `headers` of the server's entry.",
        ),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[tokio::test]
    async fn tokens_are_their_users_alone_and_go_with_their_address() {
        let folder = tempfile::tempdir().unwrap();
        let state = AbsPath::new(folder.path()).unwrap();
        let tokens = Tokens::of(&state, &Url::parse("https://a.example/mcp").unwrap());
        let other = Tokens::of(&state, &Url::parse("https://b.example/mcp").unwrap());
        let credentials = StoredCredentials::new("client".into(), None, vec![], None);
        for _ in 0..2 {
            tokens.save(credentials.clone()).await.unwrap();
        }
        assert_eq!(tokens.load().await.unwrap().unwrap().client_id, "client");
        assert!(other.load().await.unwrap().is_none());
        let mode = std::fs::metadata(&tokens.file).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        tokens.clear().await.unwrap();
        assert!(tokens.load().await.unwrap().is_none());
    }

    #[tokio::test]
    async fn only_the_place_the_browser_is_sent_back_to_is_an_answer() {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let address = listener.local_addr().unwrap();
        for (asked, expected) in [
            ("GET /favicon.ico HTTP/1.1\r\n", None),
            ("POST /callback?state=1 HTTP/1.1\r\n", None),
            ("GET /callback?code=2&state=1 HTTP/1.1\r\n", Some("http://127.0.0.1/callback?code=2&state=1")),
        ] {
            let mut browser = TcpStream::connect(address).await.unwrap();
            let (stream, _) = listener.accept().await.unwrap();
            browser.write_all(asked.as_bytes()).await.unwrap();
            assert_eq!(answer(stream).await.as_deref(), expected, "{asked}");
        }
    }
}
