//! Requests to AWS: the identity that signs them, and the signature.
//!
//! Rule: the identity is looked up when a request needs it, in the places where AWS' own tools look that need no network.
//! It is kept for [`KEPT`], or until it ends.

mod credentials;

use std::time::Duration;

use jiff::Timestamp;
use reqwest::header::{AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use tokio::time::Instant;
use url::Url;

use self::credentials::{CredentialPlaces, ExpiringIdentity};
use kode_model::profile::Credentials;
use kode_model::{ModelError, ModelErrorKind};
use kode_net::aws::sign::{AwsCredentials, CredentialScope};

/// How long an identity is used before the files are read again.
const KEPT: Duration = Duration::from_secs(60);

/// So long before its end an identity is looked up again.
const MARGIN: Duration = Duration::from_secs(60);

/// The name of Bedrock in signatures.
const SERVICE: &str = "bedrock";

/// Signs the requests of one profile.
pub(super) struct Signer {
    region: String,
    profile: Option<String>,
    known: tokio::sync::Mutex<Option<(ExpiringIdentity, Instant)>>,
}

impl Signer {
    /// The signer for credentials that are AWS'; `None` for all others.
    pub(super) fn of(credentials: &Credentials) -> Option<Self> {
        match credentials {
            Credentials::Aws { region, profile } => Some(Self {
                region: region.clone(),
                profile: profile.clone(),
                known: tokio::sync::Mutex::default(),
            }),
            Credentials::None | Credentials::ApiKey(_) | Credentials::Bearer(_) => None,
        }
    }

    /// Adds the signature of a POST of `body` to `url` to its headers.
    ///
    /// # Errors
    /// [`ModelErrorKind::Configuration`] when there is no identity.
    pub(super) async fn sign(
        &self,
        url: &Url,
        body: &[u8],
        headers: &mut HeaderMap,
    ) -> Result<(), ModelError> {
        let credentials = self.credentials().await?;
        let time = Timestamp::now().strftime("%Y%m%dT%H%M%SZ").to_string();
        let scope = CredentialScope { region: &self.region, service: SERVICE, time: &time };
        let content_type =
            headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
        let signed = credentials.sign(scope, "POST", url, &[("content-type", content_type)], body);
        for header in signed {
            let unusable = |_| configuration("The AWS credentials hold characters that no header can have.");
            let mut value = HeaderValue::try_from(header.value.expose()).map_err(unusable)?;
            value.set_sensitive(true);
            let name = match header.name {
                "authorization" => AUTHORIZATION,
                other => HeaderName::from_static(other),
            };
            headers.insert(name, value);
        }
        Ok(())
    }

    async fn credentials(&self) -> Result<AwsCredentials, ModelError> {
        let mut known = self.known.lock().await;
        if let Some((identity, since)) = &*known {
            let is_fresh = match identity.ends {
                None => since.elapsed() < KEPT,
                Some(ends) => Timestamp::now() + MARGIN < ends,
            };
            if is_fresh {
                return Ok(identity.credentials.clone());
            }
        }
        let identity =
            CredentialPlaces::of_process().identity(self.profile.as_deref()).await.map_err(configuration)?;
        let credentials = identity.credentials.clone();
        *known = Some((identity, Instant::now()));
        Ok(credentials)
    }
}

fn configuration(message: impl Into<String>) -> ModelError {
    ModelError::new(ModelErrorKind::Configuration, message)
}
