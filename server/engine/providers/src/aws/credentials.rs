//! Where an AWS identity comes from: the environment, the shared files, or a command that these name.
//!
//! Rule: the order is that of AWS' own tools; what would need a request over the network (single sign-on, roles, instance
//! metadata) is left to `credential_process`, and the error says so. No error holds a secret.

#![expect(clippy::disallowed_methods, reason = "credentials of AWS are in variables")]

use std::collections::HashMap;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::Duration;

use jiff::Timestamp;
use serde::Deserialize;

use kode_base::secret::Secret;
use kode_net::aws::sign::AwsCredentials;
use kode_process::shell::helper;

/// How long a command may take.
const TIME_LIMIT: Duration = Duration::from_secs(30);

/// The most bytes that a command prints.
const MAX_PRINTED: usize = 64 * 1024;

/// The largest shared file that is read.
const MAX_FILE: u64 = 1024 * 1024;

/// Settings of a section that need a request to AWS, and are not followed here.
const NEEDS_NETWORK: [&str; 4] = ["sso_session", "sso_start_url", "role_arn", "login_session"];

/// An identity, and when it ends.
#[derive(Debug, PartialEq)]
pub(super) struct ExpiringIdentity {
    pub(super) credentials: AwsCredentials,
    pub(super) ends: Option<Timestamp>,
}

/// The places where an identity is looked up.
pub(super) struct CredentialPlaces<'a> {
    /// The value of a variable of the environment.
    variable: &'a (dyn Fn(&str) -> Option<String> + Sync),
    home: Option<PathBuf>,
}

/// The output of `credential_process`.
#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct ProcessOutput {
    version: u32,
    access_key_id: String,
    secret_access_key: Secret,
    #[serde(default)]
    session_token: Option<Secret>,
    #[serde(default)]
    expiration: Option<Timestamp>,
}

type Section = HashMap<String, String>;

impl CredentialPlaces<'_> {
    /// The places of this process.
    pub(super) fn of_process() -> CredentialPlaces<'static> {
        CredentialPlaces { variable: &|name| std::env::var(name).ok(), home: std::env::home_dir() }
    }

    /// The identity of `profile`, or that of the environment where none is named.
    ///
    /// # Errors
    /// Saying where was looked and what to do.
    pub(super) async fn identity(&self, profile: Option<&str>) -> Result<ExpiringIdentity, String> {
        if profile.is_none()
            && let (Some(id), Some(key)) = (self.set("AWS_ACCESS_KEY_ID"), self.set("AWS_SECRET_ACCESS_KEY"))
        {
            let session_token = self.set("AWS_SESSION_TOKEN").map(Secret::new);
            let credentials =
                AwsCredentials { access_key_id: id, secret_access_key: Secret::new(key), session_token };
            return Ok(ExpiringIdentity { credentials, ends: None });
        }
        let name = profile.map(str::to_owned).or_else(|| self.set("AWS_PROFILE"));
        let name = name.unwrap_or_else(|| "default".to_owned());
        let secrets = self.section("AWS_SHARED_CREDENTIALS_FILE", "credentials", &name).await?;
        let config = match name.as_str() {
            "default" => self.section("AWS_CONFIG_FILE", "config", "default").await?,
            _ => self.section("AWS_CONFIG_FILE", "config", &format!("profile {name}")).await?,
        };
        for section in [&secrets, &config].into_iter().flatten() {
            if let Some(credentials) = of_section(section) {
                return Ok(ExpiringIdentity { credentials, ends: None });
            }
            if let Some(command) = section.get("credential_process") {
                return printed(&name, command).await;
            }
        }
        let sections = || [&secrets, &config].into_iter().flatten();
        let export = format!(
            "credential_process = aws configure export-credentials --profile {name} --format process"
        );
        if sections().any(|section| NEEDS_NETWORK.iter().any(|key| section.contains_key(*key))) {
            return Err(format!(
                "The AWS profile `{name}` signs in over the network, which kode-ls leaves to the AWS CLI. Add a profile \
                 with `{export}` to ~/.aws/config, and name it in `awsProfile`."
            ));
        }
        Err(format!(
            "There are no AWS credentials: AWS_BEARER_TOKEN_BEDROCK and AWS_ACCESS_KEY_ID are not set, and \
             ~/.aws/credentials and ~/.aws/config have none for the profile `{name}`. Set one of them, or `awsProfile`."
        ))
    }

    /// A section of a shared file; `None` if there is no such file or section.
    async fn section(&self, variable: &str, file: &str, name: &str) -> Result<Option<Section>, String> {
        let path = match (self.set(variable), &self.home) {
            (Some(path), _) => PathBuf::from(path),
            (None, Some(home)) => home.join(".aws").join(file),
            (None, None) => return Ok(None),
        };
        Ok(read(&path).await?.and_then(|text| sections(&text).remove(name)))
    }

    /// A variable; an empty one counts as not set.
    fn set(&self, name: &str) -> Option<String> {
        (self.variable)(name).filter(|value| !value.trim().is_empty())
    }
}

async fn read(path: &Path) -> Result<Option<String>, String> {
    let unreadable = |why: &dyn std::fmt::Display| format!("{} cannot be read: {why}.", path.display());
    match tokio::fs::metadata(path).await {
        Ok(facts) if facts.len() > MAX_FILE => return Err(unreadable(&"it is larger than 1 MiB")),
        Ok(_) => {}
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(unreadable(&error)),
    }
    tokio::fs::read_to_string(path).await.map(Some).map_err(|error| unreadable(&error))
}

/// The sections of a shared file. Indented lines belong to the setting before them and are skipped.
fn sections(text: &str) -> HashMap<String, Section> {
    let mut sections: HashMap<String, Section> = HashMap::new();
    let mut current = None;
    for line in text.lines() {
        let is_comment = line.trim_start().starts_with(['#', ';']);
        if is_comment || line.trim().is_empty() || line.starts_with([' ', '\t']) {
            continue;
        }
        if let Some(name) = line.trim().strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
            let name = name.split_whitespace().collect::<Vec<_>>().join(" ").replace(['"', '\''], "");
            sections.entry(name.clone()).or_default();
            current = Some(name);
        } else if let (Some(section), Some((key, value))) =
            (current.as_ref().and_then(|name| sections.get_mut(name)), line.split_once('='))
        {
            section.insert(key.trim().to_lowercase(), value.trim().to_owned());
        }
    }
    sections
}

fn of_section(section: &Section) -> Option<AwsCredentials> {
    Some(AwsCredentials {
        access_key_id: section.get("aws_access_key_id")?.clone(),
        secret_access_key: Secret::new(section.get("aws_secret_access_key")?.clone()),
        session_token: section.get("aws_session_token").cloned().map(Secret::new),
    })
}

/// The identity that a command prints.
async fn printed(profile: &str, command: &str) -> Result<ExpiringIdentity, String> {
    let failed = |why: &str| format!("The `credential_process` of the AWS profile `{profile}` {why}.");
    let text = helper::output_of(command, TIME_LIMIT, MAX_PRINTED)
        .await
        .map_err(|error| failed(&error.to_string()))?;
    // Its output may hold a secret, so an error says only that it cannot be read.
    let printed: ProcessOutput = serde_json::from_str(&text)
        .map_err(|_| failed("did not print the JSON object that the AWS CLI documents"))?;
    if printed.version != 1 {
        return Err(failed(&format!("printed version {}, and only 1 is known", printed.version)));
    }
    Ok(ExpiringIdentity {
        credentials: AwsCredentials {
            access_key_id: printed.access_key_id,
            secret_access_key: printed.secret_access_key,
            session_token: printed.session_token,
        },
        ends: printed.expiration,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn identity(
        variables: &[(&str, &str)],
        files: &[(&str, &str)],
        profile: Option<&str>,
    ) -> Result<ExpiringIdentity, String> {
        let home = tempfile::tempdir().unwrap();
        std::fs::create_dir(home.path().join(".aws")).unwrap();
        for (name, text) in files {
            std::fs::write(home.path().join(".aws").join(name), text).unwrap();
        }
        let variable = |name: &str| {
            let found = variables.iter().find(|(known, _)| *known == name);
            found.map(|(_, value)| (*value).to_owned())
        };
        CredentialPlaces { variable: &variable, home: Some(home.path().to_owned()) }.identity(profile).await
    }

    fn id(found: Result<ExpiringIdentity, String>) -> String {
        found.map_or_else(|error| error, |identity| identity.credentials.access_key_id)
    }

    const KEYS: &str = "aws_access_key_id = FILE\naws_secret_access_key=file-secret\n";

    #[tokio::test]
    async fn identities_are_looked_up_in_the_order_of_the_aws_tools() {
        let environment = [("AWS_ACCESS_KEY_ID", "ENV"), ("AWS_SECRET_ACCESS_KEY", "env-secret")];
        let credentials = format!(
            "# mine\n[default]\n{KEYS}\n[work]\naws_access_key_id=WORK\naws_secret_access_key=s\n  nested = 1\n"
        );
        let files = [("credentials", credentials.as_str())];
        assert_eq!(id(identity(&environment, &files, None).await), "ENV");
        assert_eq!(id(identity(&environment, &files, Some("work")).await), "WORK", "a named profile wins");
        assert_eq!(id(identity(&[], &files, None).await), "FILE");
        assert_eq!(id(identity(&[("AWS_PROFILE", "work")], &files, None).await), "WORK");
        let config = format!("[profile \"team\"]\nregion = eu-west-1\n{KEYS}");
        assert_eq!(id(identity(&[], &[("config", &config)], Some("team")).await), "FILE");
    }

    #[tokio::test]
    async fn a_command_gives_an_identity_that_ends() {
        let printed = r#"{"Version": 1, "AccessKeyId": "CMD", "SecretAccessKey": "s", "SessionToken": "t", "Expiration": "2030-01-01T00:00:00Z"}"#;
        let config = format!("[default]\ncredential_process = echo '{printed}'\n");
        let found = identity(&[], &[("config", &config)], None).await.unwrap();
        assert_eq!(found.credentials.access_key_id, "CMD");
        assert_eq!(found.ends, Some("2030-01-01T00:00:00Z".parse().unwrap()));
        let config = "[default]\ncredential_process = echo secret-1\n";
        let error = id(identity(&[], &[("config", config)], None).await);
        assert!(error.contains("did not print") && !error.contains("secret-1"), "{error}");
    }

    #[tokio::test]
    async fn what_is_missing_is_said() {
        let error = id(identity(&[], &[], None).await);
        assert!(error.contains("AWS_ACCESS_KEY_ID") && error.contains("`default`"), "{error}");
        let sso = "[profile work]\nsso_session = corp\n";
        let error = id(identity(&[], &[("config", sso)], Some("work")).await);
        assert!(error.contains("export-credentials --profile work"), "{error}");
    }
}
