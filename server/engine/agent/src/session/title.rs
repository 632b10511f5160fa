//! What a session is called: by the first line of its first prompt, by a model that was asked, or by the user.
//!
//! Rule: a title of the user's is never replaced by a model's. A model is asked at most once in a session, beside
//! everything else: no turn waits for it, what it takes is charged like every other call, and without an answer the title
//! stays as it is.

use std::sync::{Arc, PoisonError};
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use crate::session::conversation::Conversation;
use crate::session::{Session, SessionState, title_from};
use kode_base::ids::TurnId;
use kode_model::models::Pointer;
use kode_model::profile::Profile;
use kode_model::{Block, Message, ModelError, ModelErrorKind, ModelRequest, ModelResponse, Usage};
use kode_record::event::Event;
use kode_record::record::Record;
use kode_record::title::TitledBy;

/// How a title is to be made.
const PROMPT: &str = include_str!("../prompts/title.md");

/// The longest title a user can give, in characters.
pub const MAX_TITLE: usize = 200;

/// How long a model may take over a title.
const ASK_LIMIT: Duration = Duration::from_secs(30);

/// The most tokens of an answer: a title takes a dozen, and some models think before it.
const MAX_TOKENS: u32 = 500;

/// So much of the prompt and of the answer is shown to the model, in characters each.
const MAX_SHOWN: usize = 2_000;

/// Why a session was not given a title.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TitleError {
    /// There is nothing in it.
    #[error("a title needs at least one character that can be seen")]
    Empty,
    /// It is too long.
    #[error("a title has at most {MAX_TITLE} characters")]
    TooLong,
    /// The session was closed.
    #[error("the session is closed; load it again to go on")]
    Closed,
}

/// A title as it is kept: one line without needless space.
///
/// # Errors
/// [`TitleError::Empty`] and [`TitleError::TooLong`].
pub fn tidy(title: &str) -> Result<String, TitleError> {
    let seen: String = title.chars().map(|char| if char.is_control() { ' ' } else { char }).collect();
    let title = seen.split_whitespace().collect::<Vec<_>>().join(" ");
    match title.chars().count() {
        0 => Err(TitleError::Empty),
        count if count > MAX_TITLE => Err(TitleError::TooLong),
        _ => Ok(title),
    }
}

impl Session {
    /// Gives the session a title of the user's.
    ///
    /// # Errors
    /// [`TitleError`]; the one before stays then.
    pub fn rename(&self, title: &str) -> Result<(), TitleError> {
        let title = tidy(title)?;
        let mut state = self.state();
        if self.cancel.is_cancelled() {
            return Err(TitleError::Closed);
        }
        if state.title != title || state.titled != Some(TitledBy::User) {
            self.commit_title(&mut state, title, TitledBy::User);
        }
        Ok(())
    }

    /// Puts the session away, or takes it out again. False when it was closed meanwhile.
    pub fn archive(&self, archived: bool) -> bool {
        let mut state = self.state();
        if self.cancel.is_cancelled() {
            return false;
        }
        if state.archived != archived {
            self.commit_locked(&mut state, Record::Archived { archived });
        }
        true
    }

    /// Begins to ask a model for a title after the first turn that worked, where that is wanted.
    pub(super) fn begin_titling(self: &Arc<Self>, turn: &TurnId) {
        let is_due = |state: &SessionState| state.worked == 1 && state.titled.is_none();
        if !is_due(&self.state()) {
            return;
        }
        let name = self.pointer(Pointer::Quick);
        let preferences = &self.in_force().policy.preferences;
        let main = self.models().pointer_with(Pointer::Main, &preferences.pointers);
        // Where nothing is set apart for what is quick, asking would cost what the user did not mean to spend.
        let is_own = name != main && name != self.state().model;
        if !preferences.session_titles.unwrap_or(is_own) {
            return;
        }
        let (session, turn) = (Arc::clone(self), turn.clone());
        let asking = tokio::spawn(async move {
            if let Err(error) = session.title_by_model(&turn, &name).await {
                tracing::info!(%error, "no model gave the session a title");
            }
        });
        *self.titling.lock().unwrap_or_else(PoisonError::into_inner) = Some(asking);
    }

    /// Waits until no model is asked for a title any more.
    pub(super) async fn end_titling(&self) {
        let asking = self.titling.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(asking) = asking
            && let Err(error) = asking.await
        {
            tracing::error!(%error, "asking for a title broke off");
        }
    }

    async fn title_by_model(&self, turn: &TurnId, name: &str) -> Result<(), ModelError> {
        let models = self.models();
        let profile = models.profile(name)?;
        let cancel = self.cancel.child_token();
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
            Conversation::main(self).charge(turn, profile, usage, None);
        }
        let Some(title) = title_in(&answered?.content) else {
            return Err(ModelError::new(ModelErrorKind::Protocol, "the answer holds no title".to_owned()));
        };
        let mut state = self.state();
        // Meanwhile the user may have named it, gone back to before its first prompt, or closed it.
        if state.titled.is_none() && state.main.items.count() > 0 && !self.cancel.is_cancelled() {
            self.commit_title(&mut state, title, TitledBy::Model);
        }
        Ok(())
    }

    async fn ask_for_title(
        &self,
        profile: &Profile,
        cancel: &CancellationToken,
    ) -> Result<ModelResponse, ModelError> {
        let cancelled = || ModelError::new(ModelErrorKind::Cancelled, "it was cancelled".to_owned());
        let models = self.models();
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

    /// What the model sees of the conversation.
    fn question(&self) -> String {
        let state = self.state();
        let prompt = state.main.first_instruction();
        let shown = |text: &str| text.chars().take(MAX_SHOWN).collect::<String>();
        let (prompt, answer) = (shown(&prompt.unwrap_or_default()), shown(&state.main.answer()));
        format!("<user>\n{prompt}\n</user>\n<agent>\n{answer}\n</agent>\n\nThe title:")
    }

    /// Gives the session the title that a hook wants, unless the user has named it.
    ///
    /// # Errors
    /// [`TitleError`]; the one before stays then.
    pub(crate) fn title_by_hook(&self, title: &str) -> Result<(), TitleError> {
        let title = tidy(title)?;
        let mut state = self.state();
        if state.titled != Some(TitledBy::User) && state.title != title {
            self.commit_title(&mut state, title, TitledBy::Model);
        }
        Ok(())
    }

    fn commit_title(&self, state: &mut SessionState, title: String, by: TitledBy) {
        self.commit_locked(state, Record::Titled { title, by });
    }
}

impl SessionState {
    /// Tells what the session is called.
    pub(super) fn title_event(&self) -> Event {
        Event::TitleChanged { title: self.title.clone(), by: self.titled }
    }
}

/// The title in a model's answer: its first line that says something, without what models like to put around it.
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
    fn a_title_is_one_line_of_bounded_length() {
        assert_eq!(tidy("  two\n words\u{7} "), Ok("two words".to_owned()));
        assert_eq!(tidy(" \n\t"), Err(TitleError::Empty));
        assert_eq!(tidy(&"é".repeat(MAX_TITLE)).map(|title| title.chars().count()), Ok(MAX_TITLE));
        assert_eq!(tidy(&"é".repeat(MAX_TITLE + 1)), Err(TitleError::TooLong));
    }

    #[test]
    fn of_an_answer_the_first_line_that_says_something_is_the_title() {
        let answer = |text: &str| [Block::Text { text: text.to_owned() }];
        assert_eq!(title_in(&answer("\n \"Fix the cache.\"\nIt is…")).as_deref(), Some("Fix the cache"));
        assert_eq!(title_in(&answer("**")), None);
    }
}
