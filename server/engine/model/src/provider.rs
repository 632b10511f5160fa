//! The kinds of providers, by the wire format they speak and by how their servers are asked.
//!
//! Rule: the set is closed; a profile names one of them.

use serde::Deserialize;

use crate::Wire;

/// The provider of a model.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Provider {
    /// A server that speaks the Anthropic Messages format.
    #[default]
    Anthropic,
    /// A server that speaks OpenAI Chat Completions.
    #[serde(rename = "openai")]
    OpenAi,
    /// A server that speaks OpenAI Responses.
    #[serde(rename = "openai-responses")]
    OpenAiResponses,
    /// A server that speaks Gemini's own format.
    Gemini,
    /// Ollama, by its own chat format.
    Ollama,
    /// Claude models on Amazon Bedrock.
    Bedrock,
    /// Claude models on Google's Vertex AI.
    Vertex,
    /// Google's models on Vertex AI.
    VertexGemini,
    /// Deployments on Azure, by Chat Completions.
    Azure,
    /// Deployments on Azure, by Responses.
    AzureResponses,
    /// The built-in scripted model; needs neither key nor network.
    Demo,
}

impl Provider {
    /// The wire format its models are asked in.
    #[must_use]
    pub fn wire(self) -> Wire {
        match self {
            Self::Anthropic | Self::Demo | Self::Bedrock | Self::Vertex => Wire::AnthropicMessages,
            Self::OpenAi | Self::Azure => Wire::ChatCompletions,
            Self::OpenAiResponses | Self::AzureResponses => Wire::Responses,
            Self::Gemini | Self::VertexGemini => Wire::Gemini,
            Self::Ollama => Wire::Ollama,
        }
    }

    /// The provider that a name means: its own, or what other agents call it. Which of a cloud's formats is meant is
    /// decided by model and address.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        match name {
            "anthropic" | "anthropic-messages" | "claude" | "custom-anthropic" => Some(Self::Anthropic),
            "openai" | "openai-compatible" | "openai-completions" | "openai-chat" | "custom-openai"
            | "custom" => Some(Self::OpenAi),
            "openai-responses" | "responses" => Some(Self::OpenAiResponses),
            "gemini" | "google" => Some(Self::Gemini),
            "ollama" => Some(Self::Ollama),
            "bedrock" | "amazon-bedrock" => Some(Self::Bedrock),
            "vertex" | "vertex-ai" | "google-vertex" => Some(Self::Vertex),
            "azure" | "azure-openai" => Some(Self::Azure),
            "demo" => Some(Self::Demo),
            _ => None,
        }
    }

    /// Its name in settings and lists.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Anthropic => "anthropic",
            Self::OpenAi => "openai",
            Self::OpenAiResponses => "openai-responses",
            Self::Gemini => "gemini",
            Self::Ollama => "ollama",
            Self::Bedrock => "bedrock",
            Self::Vertex | Self::VertexGemini => "vertex",
            Self::Azure | Self::AzureResponses => "azure",
            Self::Demo => "demo",
        }
    }
}
