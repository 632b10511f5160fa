//! The context window that a model's server really serves.
//!
//! Rule: a server that cuts prompts in silence is found out by the tokens that it reports, and what it serves is known from
//! then on: no request is sent that is longer, and the user reads which switch to set. Only servers that are known to cut are
//! suspected.

use std::collections::{HashMap, HashSet};
use std::sync::Mutex;

use url::Url;

use crate::context::meter::scaled;
use crate::core::lock;
use crate::turn::sample::ModelCaller;
use crate::turn::services::TurnContext;
use kode_base::ids::AgentId;
use kode_model::profile::{Profile, WindowSource};
use kode_model::provider::Provider;
use kode_model::{ModelError, ModelErrorKind, Usage, Wire};
use kode_record::event::NoticeLevel;

/// The least room beside the system prompt and the tools in which work is possible, in tokens.
const MIN_ROOM: u64 = 1_000;

/// The smallest window that is suspected.
const MIN_WINDOW: u64 = 1_024;

/// A prompt that was cut to a window fills at least this share of it.
const FILLED: f64 = 0.9;

/// A first report says that a prompt was cut if the prompt was counted at this multiple of it or more.
const CUT_AT_ONCE: f64 = 2.0;

/// Two reports say so if the prompt was counted at this multiple of them and grew by [`GROWN`], and they did not.
const CUT_AGAIN: f64 = 1.25;
const GROWN: f64 = 1.05;
const SAME: f64 = 0.02;

/// The tokens of a prompt, as the provider reported and as they were counted here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct PromptReport {
    reported: u64,
    counted: u64,
}

/// The newest reports, and the models whose reports tell of cut prompts.
#[derive(Default)]
pub(crate) struct CutPrompts {
    reports: Mutex<HashMap<(Option<AgentId>, String), PromptReport>>,
    models: Mutex<HashSet<String>>,
}

impl CutPrompts {
    /// Whether the reports of a model are those of cut prompts, by which nothing can be measured.
    pub(crate) fn is_cut(&self, model: &str) -> bool {
        lock(&self.models).contains(model)
    }

    /// Notes the reported and the counted tokens of a prompt. Returns the window that the prompt was cut to, the first time
    /// for each model.
    pub(crate) fn note(
        &self,
        agent: Option<&AgentId>,
        model: &str,
        (reported, counted): (u64, u64),
    ) -> Option<u64> {
        let report = PromptReport { reported, counted };
        let key = (agent.cloned(), model.to_owned());
        let before = lock(&self.reports).insert(key, report);
        let window = cut_to(before, report)?;
        lock(&self.models).insert(model.to_owned()).then_some(window)
    }
}

/// The window that a prompt was cut to, if it was.
#[expect(clippy::cast_precision_loss, reason = "numbers of tokens are far below what a float holds exactly")]
fn cut_to(before: Option<PromptReport>, now: PromptReport) -> Option<u64> {
    let (reported, counted) = (now.reported as f64, now.counted as f64);
    let power = now.reported.checked_next_power_of_two()?;
    let fills_power = reported >= power as f64 * FILLED;
    let Some(before) = before else {
        let is_cut = fills_power && power >= MIN_WINDOW && counted >= reported * CUT_AT_ONCE;
        return is_cut.then_some(power);
    };
    let stands_still = (reported - before.reported as f64).abs() <= reported * SAME;
    let has_grown = counted >= before.counted as f64 * GROWN;
    let is_cut = stands_still && has_grown && counted >= reported * CUT_AGAIN && now.reported >= MIN_WINDOW;
    // Windows are mostly powers of two; any other is what was read.
    is_cut.then_some(if fills_power { power } else { now.reported })
}

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
    /// Compares the tokens that an answer reports with those that were sent. A prompt that was cut is told, with the switch
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

    fn report(reported: u64, counted: u64) -> PromptReport {
        PromptReport { reported, counted }
    }

    #[test]
    fn a_first_prompt_that_fills_a_window_and_was_twice_as_long_was_cut() {
        for (reported, counted, window) in [
            (4_096, 12_000, Some(4_096)),
            (4_000, 12_000, Some(4_096)),
            (2_048, 9_000, Some(2_048)),
            (4_096, 8_000, None),
            (12_000, 12_500, None),
            (3_000, 12_000, None),
            (37, 12_000, None),
            (512, 12_000, None),
            (u64::MAX, u64::MAX, None),
        ] {
            assert_eq!(cut_to(None, report(reported, counted)), window, "{reported} of {counted}");
        }
    }

    #[test]
    fn prompts_that_grow_while_their_reports_stand_still_were_cut() {
        for (before, now, window) in [
            (report(16_384, 20_000), report(16_384, 22_000), Some(16_384)),
            (report(16_000, 20_000), report(16_200, 22_000), Some(16_384)),
            (report(12_000, 16_000), report(12_000, 18_000), Some(12_000)),
            // The same request again, a prompt that is counted well, and one that became shorter.
            (report(16_384, 22_000), report(16_384, 22_000), None),
            (report(16_000, 16_500), report(16_200, 17_500), None),
            (report(9_000, 22_000), report(16_384, 23_000), None),
            (report(16_384, 30_000), report(16_384, 20_000), None),
        ] {
            assert_eq!(cut_to(Some(before), now), window, "{before:?} {now:?}");
        }
    }

    #[test]
    fn a_cut_is_new_once() {
        let cuts = CutPrompts::default();
        assert_eq!(cuts.note(None, "m", (4_096, 12_000)), Some(4_096));
        assert_eq!(cuts.note(None, "m", (4_096, 14_000)), None);
        assert!(cuts.is_cut("m") && !cuts.is_cut("other"));
    }

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
