//! The context window that a model's server really serves.
//!
//! Rule: a server that cuts prompts in silence is found out by the tokens that it reports, and what it serves is known from
//! then on: no request is sent that is longer, and the user reads which switch to set. Only servers that are known to cut are
//! suspected.

use url::Url;

use crate::context::meter::scaled;
use crate::turn::sample::ModelCaller;
use crate::turn::services::TurnContext;
use kode_model::profile::{Profile, WindowSource};
use kode_model::provider::Provider;
use kode_model::{ModelError, ModelErrorKind, Usage, Wire};
use kode_record::event::NoticeLevel;

/// The least room beside the system prompt and the tools in which work is possible, in tokens.
const MIN_ROOM: u64 = 1_000;

/// Whether the next request fits the window that is served.
pub(super) enum WindowFit {
    Fits,
    /// It does once the conversation is compacted.
    TooLong,
    /// Not even a new conversation does.
    Never(ModelError),
}

/// Checks the next request of a conversation against a window that the server told or was found to serve.
pub(super) fn fit(turn: TurnContext<'_>, profile: &Profile) -> WindowFit {
    if profile.window_source != WindowSource::Served {
        return WindowFit::Fits;
    }
    let measured = turn.services.context.measure(turn.conversation, profile);
    let window = profile.context_window;
    let fixed = scaled(measured.fixed, measured.correction);
    if fixed.saturating_add(MIN_ROOM) > window {
        let message = format!(
            "{} at {} reads {window} tokens, and the system prompt and the tools alone have about {fixed}. {}",
            profile.model,
            profile.host(),
            switch(profile)
        );
        return WindowFit::Never(ModelError::new(ModelErrorKind::ContextTooLong, message));
    }
    if measured.usage.tokens > window { WindowFit::TooLong } else { WindowFit::Fits }
}

/// The error of a conversation that stays too long for the window.
pub(super) fn too_long(profile: &Profile) -> ModelError {
    let message = format!(
        "The conversation is longer than the {} tokens that {} at {} reads.",
        profile.context_window,
        profile.model,
        profile.host()
    );
    ModelError::new(ModelErrorKind::ContextTooLong, message)
}

impl ModelCaller<'_> {
    /// Compares the tokens that an answer reports with those that were sent. A cut prompt is reported, with the switch
    /// that prevents it. Called before the answer is recorded.
    pub(super) async fn check_prompt(&self, usage: Usage) {
        let reported = usage.prompt_tokens();
        if reported == 0 || !matches!(self.profile.wire(), Wire::ChatCompletions | Wire::Ollama) {
            return;
        }
        let TurnContext { services, conversation, .. } = self.turn;
        let Some(window) = services.context.note_prompt(conversation, &self.profile, reported) else {
            return;
        };
        let counted = services.context.counted(conversation, &self.profile);
        self.learn_window(window).await;
        let text = format!(
            "{} at {} read {reported} of about {} tokens: the server serves a context window of {window} and cuts off the \
             beginning of the prompt, with the system prompt and the tools.",
            self.profile.model,
            self.profile.host(),
            counted
        );
        self.turn.notice(NoticeLevel::Warning, text, Some(switch(&self.profile)));
    }

    /// Takes in the window that an error named.
    pub(super) async fn learn_window(&self, window: u64) {
        self.turn.services.models.learn_window(&self.profile, window).await;
    }
}

/// The switch that has the server of a profile serve a larger window.
fn switch(profile: &Profile) -> String {
    let port = Url::parse(&profile.base_url).ok().and_then(|url| url.port());
    let text = match (profile.provider, port) {
        (Provider::Ollama, _) => {
            "Set `contextWindow` of the profile to what your memory holds, and update Ollama."
        }
        (_, Some(11_434)) => {
            "Use the provider `ollama`, which sets the window itself, or start Ollama with \
             OLLAMA_CONTEXT_LENGTH=32768."
        }
        (_, Some(1_234)) => "Load the model with a larger window: `lms load MODEL --context-length 32768`.",
        (_, Some(8_080)) => "Start llama-server with `-c 32768`.",
        (_, Some(8_000)) => "Start vLLM with `--max-model-len 32768`.",
        _ => {
            "Start the server with a larger window: OLLAMA_CONTEXT_LENGTH=32768 for Ollama, `-c 32768` for llama-server, \
             `--max-model-len 32768` for vLLM, the context length of LM Studio."
        }
    };
    text.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_switch_is_that_of_the_program() {
        let at = |base_url: &str| switch(&Profile { base_url: base_url.into(), ..Profile::demo() });
        assert!(at("http://localhost:11434/v1").contains("OLLAMA_CONTEXT_LENGTH"));
        assert!(at("http://localhost:1234/v1").contains("lms load"));
        assert!(at("http://localhost:8080/v1").contains("llama-server with `-c"));
        assert!(at("http://localhost:8000/v1").contains("--max-model-len"));
        assert!(at("http://10.0.0.7:9999/v1").contains("for vLLM"));
    }
}
