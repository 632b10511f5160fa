//! The servers of clouds: Amazon Bedrock, Google Vertex AI, Azure.
//!
//! Rule: region, project and version go into the address, so that requests need no more than it. A token of the environment
//! goes only to hosts of its cloud.

use url::Url;

use super::address::{ServerAddress, wire_of};
use super::configuration;
use super::keys::{Credentials, HELPER_TTL, KeyHelper};
use super::options::{ModelServer, OwnKey, ProfileContext, ProfileOptions};
use crate::provider::Provider;
use crate::{ModelError, Wire};

/// The domain of AWS.
const AWS: &str = "amazonaws.com";

/// The variable that holds a token for Bedrock.
const BEDROCK_TOKEN: &str = "AWS_BEARER_TOKEN_BEDROCK";

/// The domain of Google's clouds.
const GOOGLE: &str = "googleapis.com";

/// The command that prints a token for Vertex.
const GCLOUD: &str = "gcloud auth print-access-token";

/// The location where Vertex chooses the region by itself.
const GLOBAL: &str = "global";

/// The domain of Azure.
const AZURE: &str = "azure.com";

/// The variable that holds a key of Azure.
const AZURE_KEY: &str = "AZURE_OPENAI_API_KEY";

/// Claude models on Bedrock: a token, or signed requests.
pub(super) fn bedrock(
    options: &ProfileOptions,
    written: Option<&str>,
    around: &ProfileContext<'_>,
) -> Result<ModelServer, ModelError> {
    let region = first(options.region.as_deref(), &["AWS_REGION", "AWS_DEFAULT_REGION"], around);
    let region = region.ok_or_else(|| missing("region", "AWS_REGION"))?;
    let usual = format!("https://bedrock-runtime.{region}.{AWS}");
    let address = ServerAddress::read(written.unwrap_or(&usual), Wire::AnthropicMessages)?;
    let is_there = is_at(&address.base, AWS);
    let credentials = Credentials::Aws { region, profile: options.aws_profile.clone() };
    Ok(ModelServer {
        provider: Provider::Bedrock,
        address,
        known: Some(OwnKey { variable: Some(BEDROCK_TOKEN.to_owned()), base_url: usual, is_there }),
        is_of_environment: false,
        is_named: true,
        is_local: false,
        usual: Some((credentials, None)),
    })
}

/// Claude's and Google's models on Vertex AI: a token that a command prints.
pub(super) fn vertex(
    options: &ProfileOptions,
    written: Option<&str>,
    around: &ProfileContext<'_>,
) -> Result<ModelServer, ModelError> {
    let projects = ["ANTHROPIC_VERTEX_PROJECT_ID", "GOOGLE_CLOUD_PROJECT"];
    let project = first(options.project.as_deref(), &projects, around);
    let project = project.ok_or_else(|| missing("project", "GOOGLE_CLOUD_PROJECT"))?;
    let location = first(options.region.as_deref(), &["CLOUD_ML_REGION", "GOOGLE_CLOUD_LOCATION"], around);
    let location = location.unwrap_or_else(|| GLOBAL.to_owned());
    let usual = match location.as_str() {
        GLOBAL => format!("https://aiplatform.{GOOGLE}"),
        location => format!("https://{location}-aiplatform.{GOOGLE}"),
    };
    let model = options.model.as_deref().map(|model| around.expand(model, "model")).transpose()?;
    let (provider, publisher) = match model {
        Some(model) if model.starts_with("gemini") => (Provider::VertexGemini, "google"),
        Some(_) | None => (Provider::Vertex, "anthropic"),
    };
    let server = ServerAddress::read(written.unwrap_or(&usual), Wire::AnthropicMessages)?.base;
    let place = format!("v1/projects/{project}/locations/{location}/publishers/{publisher}/models");
    let address = ServerAddress { base: format!("{server}/{place}"), query: None };
    let helper = KeyHelper { command: GCLOUD.to_owned(), ttl: HELPER_TTL };
    // The token opens all of the user's cloud: no other host gets it.
    let is_there = is_at(&address.base, GOOGLE);
    Ok(ModelServer {
        provider,
        known: Some(OwnKey { variable: None, is_there, base_url: usual }),
        address,
        is_of_environment: false,
        is_named: true,
        is_local: false,
        usual: is_there.then_some((Credentials::None, Some(helper))),
    })
}

/// Deployments on Azure: by Responses, or by Chat Completions where the address names a deployment or a version is set.
pub(super) fn azure(
    options: &ProfileOptions,
    written: Option<&str>,
    around: &ProfileContext<'_>,
) -> Result<ModelServer, ModelError> {
    let endpoint = around.set("AZURE_OPENAI_ENDPOINT");
    let written = written.or(endpoint.as_deref()).ok_or_else(|| {
        configuration(
            "There is no address: write `baseUrl`, like `https://RESOURCE.openai.azure.com`, or set \
             AZURE_OPENAI_ENDPOINT.",
        )
    })?;
    let url = Url::parse(written.trim()).ok();
    let path = url.as_ref().map(|url| url.path().trim_end_matches('/').to_owned()).unwrap_or_default();
    let version = first(options.api_version.as_deref(), &["AZURE_OPENAI_API_VERSION"], around);
    let dated = version.filter(|version| version.starts_with(|char: char| char.is_ascii_digit()));
    let is_chat = path.contains("/deployments/") || wire_of(written) == Some(Wire::ChatCompletions);
    let (provider, address) = if is_chat || dated.is_some() {
        let mut address = ServerAddress::read(written, Wire::ChatCompletions)?;
        if !is_chat {
            let model = options.model.as_deref().ok_or_else(missing_model)?;
            let deployment = around.expand(model, "model")?;
            let server = address.base.trim_end_matches("/v1").trim_end_matches("/openai").to_owned();
            address.base = format!("{server}/openai/deployments/{deployment}");
        }
        let query = dated.map(|version| format!("api-version={version}"));
        (Provider::Azure, ServerAddress { query: address.query.or(query), ..address })
    } else {
        let mut address = ServerAddress::read(written, Wire::Responses)?;
        if path.is_empty() || path == "/openai" {
            let server = address.base.trim_end_matches("/v1").trim_end_matches("/openai").to_owned();
            address.base = format!("{server}/openai/v1");
        }
        (Provider::AzureResponses, address)
    };
    let is_there =
        is_at(&address.base, AZURE) || endpoint.is_some_and(|own| is_same_origin(&own, &address.base));
    Ok(ModelServer {
        provider,
        known: Some(OwnKey {
            variable: Some(AZURE_KEY.to_owned()),
            base_url: "hosts of azure.com and to AZURE_OPENAI_ENDPOINT".to_owned(),
            is_there,
        }),
        address,
        is_of_environment: false,
        is_named: true,
        is_local: false,
        usual: None,
    })
}

/// An option, or the first of these variables that is set.
fn first(option: Option<&str>, variables: &[&str], around: &ProfileContext<'_>) -> Option<String> {
    let option = option.filter(|text| !text.trim().is_empty()).map(str::to_owned);
    option.or_else(|| variables.iter().find_map(|name| around.set(name)))
}

fn missing(option: &str, variable: &str) -> ModelError {
    configuration(format!("There is no {option}: write the option `{option}`, or set {variable}."))
}

fn missing_model() -> ModelError {
    configuration("No model is named: write the name of the deployment as the option `model`.")
}

fn is_at(address: &str, domain: &str) -> bool {
    let host = Url::parse(address).ok().and_then(|url| url.host_str().map(str::to_owned));
    host.is_some_and(|host| host.strip_suffix(domain).is_some_and(|rest| rest.ends_with('.')))
}

fn is_same_origin(one: &str, other: &str) -> bool {
    let origin = |address: &str| Url::parse(address.trim()).ok().map(|url| url.origin());
    origin(one).is_some() && origin(one) == origin(other)
}
