//! The kinds of providers, by the wire format they speak.
//!
//! Rule: the set is closed; a profile names one of them.

use serde::Deserialize;

use crate::Wire;

/// Who serves a model.
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
    /// The built-in scripted model; needs neither key nor network.
    Demo,
}

impl Provider {
    /// The wire format its models are asked in.
    #[must_use]
    pub fn wire(self) -> Wire {
        match self {
            Self::Anthropic | Self::Demo => Wire::AnthropicMessages,
            Self::OpenAi => Wire::ChatCompletions,
            Self::OpenAiResponses => Wire::Responses,
        }
    }

    /// The format that a name means: its own, or what other agents call it.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        match name {
            "anthropic" | "anthropic-messages" | "claude" | "custom-anthropic" => Some(Self::Anthropic),
            "openai" | "openai-compatible" | "openai-completions" | "openai-chat" | "custom-openai"
            | "custom" | "azure" => Some(Self::OpenAi),
            "openai-responses" | "responses" => Some(Self::OpenAiResponses),
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
            Self::Demo => "demo",
        }
    }
}
