//! The running turn as its records add up.

use serde::{Deserialize, Serialize};

use crate::prompt::Prompt;
use kode_base::ids::{ItemId, TurnId};
use kode_base::question::{Question, QuestionKind, QuestionResolution};
use kode_permission::equipment::Equipment;
use kode_record::event::{Item, ItemBody};
use kode_record::options::TurnOptions;
use kode_record::prompt::PromptPart;

/// A prompt whose attachments are still to be read.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct PendingPrompt {
    /// Its item.
    pub item: ItemId,
    /// The prompt.
    pub prompt: Prompt,
}

/// The running turn; its fields are those of the last turn where none runs.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct RunningTurn {
    /// The turn that has started and not ended.
    pub id: Option<TurnId>,
    /// The options of its prompt.
    pub options: TurnOptions,
    /// Answers of the model in it since the user last let it continue.
    pub rounds: u32,
    /// Its prompt, until its attachments are read.
    pub prompt: Option<PendingPrompt>,
    /// The equipment of the skills and commands it has used.
    pub equipment: Equipment,
    /// Its questions that are not answered.
    pub questions: Vec<Question>,
}

impl RunningTurn {
    /// Begins a turn.
    pub(super) fn begin(&mut self, id: &TurnId, options: TurnOptions) {
        let questions = std::mem::take(&mut self.questions);
        *self = Self { id: Some(id.clone()), options, questions, ..Self::default() };
    }

    /// Ends the turn. Options and rounds stay for a turn that is resumed.
    pub(super) fn end(&mut self) {
        self.id = None;
        self.equipment = Equipment::default();
        self.prompt = None;
        self.questions.clear();
    }

    /// Notes the prompt whose attachments are to be read next.
    pub(super) fn attach(&mut self, item: &Item, parts: &[PromptPart]) {
        if let ItemBody::UserMessage { text, .. } = &item.body {
            let prompt = Prompt::new(text.as_str(), parts.to_vec());
            self.prompt = Some(PendingPrompt { item: item.id.clone(), prompt });
        }
    }

    /// Notes a question to the user.
    pub(super) fn ask(&mut self, question: Question) {
        self.questions.retain(|asked| asked.id != question.id);
        self.questions.push(question);
    }

    /// Removes an answered question. An answered turn limit lets the turn make as many calls again.
    pub(super) fn reply(&mut self, resolved: &QuestionResolution) {
        let answered = self.questions.extract_if(.., |asked| asked.id == resolved.id);
        if answered.filter(|asked| asked.draft.kind == QuestionKind::TurnLimit).count() > 0 {
            self.rounds = 0;
        }
    }
}
