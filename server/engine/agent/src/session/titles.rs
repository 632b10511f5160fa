//! The title that a model gives a session.
//!
//! Rule: a title of the user's is never replaced by a model's. A model is called at most once in a session, in the
//! background: no turn waits for it, its tokens are charged like those of every other call, and without an answer the title
//! stays as it is.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::core::thread::ThreadHandle;
use crate::core::{Core, lock};
use crate::gate::Gatekeeper;
use crate::models::SessionModels;
use crate::state::SessionState;
use crate::state::titles::{tidy, title_from};
use kode_base::ids::TurnId;
use kode_base::task;
use kode_model::models::Pointer;
use kode_model::profile::Profile;
use kode_model::{Block, Message, ModelError, ModelErrorKind, ModelRequest, ModelResponse, Usage};
use kode_record::record::Record;
use kode_record::title::TitledBy;

/// The instructions for a title.
const PROMPT: &str = include_str!("../prompts/title.md");

/// The most time of a model for a title.
const ASK_LIMIT: Duration = Duration::from_secs(30);

/// The most tokens of an answer: a title has a dozen, and some models think before it.
const MAX_TOKENS: u32 = 500;

/// The most characters of the prompt and of the answer that the model gets.
const MAX_SHOWN: usize = 2_000;

/// Has a model name the session.
pub(super) struct TitleWriter {
    core: Arc<Core>,
    gate: Arc<Gatekeeper>,
    models: Arc<SessionModels>,
    /// The running call of the model.
    asking: Mutex<Option<JoinHandle<()>>>,
}

impl TitleWriter {
    pub(super) fn new(core: &Arc<Core>, gate: &Arc<Gatekeeper>, models: &Arc<SessionModels>) -> Arc<Self> {
        let (core, gate, models) = (Arc::clone(core), Arc::clone(gate), Arc::clone(models));
        Arc::new(Self { core, gate, models, asking: Mutex::default() })
    }

    /// Begins to ask a model for a title after the first completed turn, where the user wants that.
    pub(super) fn begin(self: &Arc<Self>, turn: &TurnId) {
        let is_due = |state: &SessionState| state.counts.turns_done == 1 && state.title.by.is_none();
        if !is_due(&self.core.state()) {
            return;
        }
        let name = self.models.pointer(Pointer::Quick);
        let preferences = &self.gate.in_force().policy.preferences;
        let main = self.models.now().pointer_with(Pointer::Main, &preferences.pointers);
        // Without a quick model of its own a title would cost more than the user means to spend.
        let is_own = name != main && name != self.core.state().config.model;
        if !preferences.session_titles.unwrap_or(is_own) {
            return;
        }
        let (titles, turn) = (Arc::clone(self), turn.clone());
        let asking = task::spawn(async move {
            if let Err(error) = titles.title_by_model(&turn, &name).await {
                tracing::info!(%error, "no model gave the session a title");
            }
        });
        *lock(&self.asking) = Some(asking);
    }

    /// Waits until no model is called for a title any more.
    pub(super) async fn end(&self) {
        let asking = lock(&self.asking).take();
        if let Some(asking) = asking
            && let Err(error) = asking.await
        {
            tracing::error!(%error, "asking for a title broke off");
        }
    }

    async fn title_by_model(&self, turn: &TurnId, name: &str) -> Result<(), ModelError> {
        let models = self.models.now();
        let profile = models.profile(name)?;
        let cancel = self.core.cancel_token();
        let asking = self.ask_for_title(profile, &cancel);
        tokio::pin!(asking);
        let answered = tokio::select! {
            answered = &mut asking => answered,
            () = tokio::time::sleep(ASK_LIMIT) => {
                cancel.cancel();
                asking.await
            }
        };
        let usage = match &answered {
            Ok(response) => response.usage,
            Err(error) => error.partial.as_ref().map(|partial| partial.usage).unwrap_or_default(),
        };
        if usage != Usage::default() {
            ThreadHandle::main(&self.core).charge(turn, profile, usage, None);
        }
        let Some(title) = title_in(&answered?.content) else {
            return Err(ModelError::new(ModelErrorKind::Protocol, "the answer holds no title".to_owned()));
        };
        let mut state = self.core.state();
        // Meanwhile the user may have named it, gone back to before its first prompt, or closed it.
        if state.title.by.is_none() && state.main.items.count() > 0 && !self.core.is_closing() {
            self.core.commit_to(&mut state, Record::Titled { title, by: TitledBy::Model });
        }
        Ok(())
    }

    async fn ask_for_title(
        &self,
        profile: &Profile,
        cancel: &CancellationToken,
    ) -> Result<ModelResponse, ModelError> {
        let cancelled = || ModelError::new(ModelErrorKind::Cancelled, "it was cancelled".to_owned());
        let models = self.models.now();
        let model = tokio::select! {
            biased;
            () = cancel.cancelled() => return Err(cancelled()),
            model = models.connect(&profile.name) => model?,
        };
        let request = ModelRequest {
            system: vec![PROMPT.to_owned()],
            messages: vec![Message::user(vec![Block::Text { text: self.question() }])].into(),
            max_tokens: MAX_TOKENS.min(profile.max_tokens),
            temperature: profile.temperature,
            top_p: profile.top_p,
            ..ModelRequest::default()
        };
        if model.capabilities().streaming {
            model.stream(&request, &mut |_| {}, cancel).await
        } else {
            model.complete(&request, cancel).await
        }
    }

    /// The part of the conversation that the model gets.
    fn question(&self) -> String {
        let state = self.core.state();
        let prompt = state.main.first_instruction();
        let shown = |text: &str| text.chars().take(MAX_SHOWN).collect::<String>();
        let (prompt, answer) = (shown(&prompt.unwrap_or_default()), shown(&state.main.answer()));
        format!("<user>\n{prompt}\n</user>\n<agent>\n{answer}\n</agent>\n\nThe title:")
    }
}

/// The title in a model's answer: its first line with text, without quotes and marks around it.
fn title_in(content: &[Block]) -> Option<String> {
    let said = content.iter().filter_map(|block| match block {
        Block::Text { text } => Some(text.as_str()),
        Block::Thinking { .. }
        | Block::RedactedThinking { .. }
        | Block::Image(_)
        | Block::ToolUse { .. }
        | Block::ToolResult { .. } => None,
    });
    let around = |char: char| char.is_whitespace() || "\"'`“”„«»*#".contains(char);
    let mut lines = said.flat_map(str::lines).map(|line| line.trim_matches(around).trim_end_matches('.'));
    let line = lines.find(|line| !line.is_empty())?;
    tidy(&title_from(line)).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_an_answer_the_first_line_that_says_something_is_the_title() {
        let answer = |text: &str| [Block::Text { text: text.to_owned() }];
        assert_eq!(title_in(&answer("\n \"Fix the cache.\"\nIt is…")).as_deref(), Some("Fix the cache"));
        assert_eq!(title_in(&answer("**")), None);
    }
}
