//! Models of servers, and first contact: choosing a provider, a key and a model where none is usable yet.
//!
//! Rule: a key travels from client to server alone. No answer, error or event repeats it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::catalogue::ModelProblem;

/// Selects the servers to list.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct DiscoverModelsParams {
    /// The profile whose server is queried. Without it only the usual ports of model servers on this machine are
    /// queried.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub profile: Option<String>,
    /// Whether servers are queried again that answered in the last five minutes.
    #[serde(default)]
    pub fresh: bool,
}

/// The servers and their models.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DiscoverModelsResult {
    /// The servers. On this machine only those that answered.
    pub servers: Vec<ModelServer>,
}

/// A server and its models.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ModelServer {
    /// The provider, as settings and `agent/setup/*` name it.
    pub provider: String,
    /// Its name for people.
    pub label: String,
    /// Its address.
    pub base_url: String,
    /// The profile that names it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub profile: Option<String>,
    /// Its models.
    pub models: Vec<ServedModel>,
    /// The reason for an empty list.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<ModelProblem>,
}

/// A model as its server lists it. Facts that the server does not report are absent.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ServedModel {
    /// Its name in requests.
    pub name: String,
    /// Tokens that it reads as it is served.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context_window: Option<u64>,
    /// Tokens that one answer may have.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_tokens: Option<u64>,
    /// Whether it calls tools.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tools: Option<bool>,
    /// Whether it reads images.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub images: Option<bool>,
    /// Whether it reasons before it answers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thinking: Option<bool>,
    /// Whether it is in memory, on servers that load models on demand.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub loaded: Option<bool>,
    /// The usable profile of this model at this server, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub profile: Option<String>,
}

/// Nothing to choose.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ListProvidersParams {}

/// The providers that can be set up.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ListProvidersResult {
    /// The providers, those that most people use first.
    pub providers: Vec<SetupProvider>,
}

/// A provider that can be set up.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SetupProvider {
    /// Its name in settings, and `provider` of a choice.
    pub id: String,
    /// Its name for people.
    pub label: String,
    /// Its usual address. Absent if the user enters one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base_url: Option<String>,
    /// Whether it needs a key.
    pub needs_key: bool,
    /// The environment variable that usually holds its key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key_variable: Option<String>,
    /// Whether that variable is set for the server process.
    #[serde(default)]
    pub key_is_set: bool,
    /// Whether a usable profile sends requests to it.
    #[serde(default)]
    pub in_use: bool,
    /// The page on which users make a key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key_page: Option<String>,
    /// The model to suggest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Further fields to fill in.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub fields: Vec<SetupField>,
}

/// A field of a provider's form.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SetupField {
    /// Its name in the options of a choice and in profiles.
    pub name: String,
    /// Its name for people.
    pub label: String,
    /// An example, or the value that the environment gives.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub example: Option<String>,
    /// Whether it must be filled in.
    pub required: bool,
}

/// The source of a key.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "camelCase", deny_unknown_fields)]
pub enum SetupKey {
    /// The provider's usual variable, or no key where the provider needs none.
    None {},
    /// The key itself. It is kept in a file that the user alone can read.
    Value {
        /// The key.
        value: String,
    },
    /// The name of an environment variable that holds it.
    Variable {
        /// The name.
        name: String,
    },
    /// A command that prints it.
    Command {
        /// The command line.
        command: String,
    },
}

impl std::fmt::Debug for SetupKey {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::None {} => formatter.write_str("None"),
            Self::Value { .. } => formatter.write_str("Value(…)"),
            Self::Variable { name } => formatter.debug_tuple("Variable").field(name).finish(),
            Self::Command { command } => formatter.debug_tuple("Command").field(command).finish(),
        }
    }
}

/// The user's choice.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SetupChoice {
    /// The provider's id.
    pub provider: String,
    /// The model; the suggested one, or the first that the server lists, if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The key.
    #[serde(default = "no_key")]
    pub key: SetupKey,
    /// Further options of the profile, an object by their names in settings: `baseUrl`, `region`, `project`, `location`,
    /// `apiVersion`, `awsProfile`, `contextWindow`.
    #[serde(default, skip_serializing_if = "serde_json::Value::is_null")]
    pub options: serde_json::Value,
}

fn no_key() -> SetupKey {
    SetupKey::None {}
}

/// The result of a trial: the server's list of models, then one short request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SetupTrialResult {
    /// Whether the model answered.
    pub ok: bool,
    /// The model that answered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The time from the request to the end of the answer, in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duration_ms: Option<u64>,
    /// The models of the server, where it lists them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub models: Vec<ServedModel>,
    /// Why it did not answer, with the next step.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<ModelProblem>,
}

/// A choice to store.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SaveSetupParams {
    /// The choice.
    pub choice: SetupChoice,
    /// The name of the profile; that of the provider if absent. A profile of that name is replaced.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Whether new sessions use it.
    #[serde(default = "yes")]
    pub main: bool,
}

fn yes() -> bool {
    true
}

/// Where the choice is kept.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SaveSetupResult {
    /// The name of the profile.
    pub profile: String,
    /// The path of the settings file.
    pub file: String,
    /// The path of the file that holds the key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key_file: Option<String>,
}
