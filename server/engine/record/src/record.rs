//! The records of a journal.
//!
//! Rule: a record is a fact that happened, never a command; fields are only ever added, with a default, so that
//! older and newer builds read each other's journals.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::background::TaskEntry;
use crate::compaction::Compaction;
use crate::context::{ContextUse, Pace};
use crate::draft::PromptDraft;
use crate::event::{Breakpoint, CallOutcome, CallState, Item, QueuedPrompt, ResumeStrategy, TurnEnd};
use crate::goal::Goal;
use crate::intent::Intent;
use crate::options::TurnOptions;
use crate::phases::PhaseTimes;
use crate::prompt::{Attachment, PromptPart};
use crate::queue::QueueChange;
use crate::team::TeamEntry;
use crate::title::TitledBy;
use kode_base::effort::Effort;
use kode_base::ids::{AgentId, CallId, ItemId, PermissionId, QueueId, ResolutionId, SessionId, TurnId};
use kode_base::mode::{Mode, StoredMode};
use kode_base::paths::{AbsPath, Target};
use kode_base::question::{Question, QuestionResolution};
use kode_base::todo::Todo;
use kode_config::command::CommandUse;
use kode_config::hooks::declared::TurnHooks;
use kode_journal::{BlobId, JournalEntry};
use kode_model::{Block, Message, Usage};
use kode_permission::equipment::Equipment;
use kode_permission::{EditDeliveryRule, Grant, PermissionResolution};
use kode_process::worktree::Worktree;
use kode_text::edit::ledger::LedgerEntry;
use kode_text::workspace::KnownText;

/// A fact about a session.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum Record {
    /// The session began.
    Opened {
        /// Its id.
        session: SessionId,
        /// The workspace folders.
        roots: Vec<AbsPath>,
        /// Where relative paths and commands start.
        cwd: AbsPath,
        /// The mode at the start.
        mode: StoredMode,
        /// The name of the model profile at the start.
        model: String,
        /// The session it was forked from.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        forked_from: Option<SessionId>,
        /// The worktree it works in, where that is not the workspace itself.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        worktree: Option<Worktree>,
    },
    /// A prompt waits behind a running turn.
    Queued {
        /// The prompt.
        prompt: QueuedPrompt,
        /// Its words as the model will get them; in older journals, with what went with them.
        content: Vec<Block>,
        /// Its attachments; looked up when its turn begins.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        parts: Vec<PromptPart>,
        /// Whether it waits for the running turn, and not for one of its own.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        steering: bool,
    },
    /// A queued prompt was changed.
    QueueChanged {
        /// How.
        change: QueueChange,
    },
    /// The unsent prompt is another one.
    Drafted {
        /// Its kind; `None` once it is gone.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        draft: Option<PromptDraft>,
    },
    /// A turn began with a prompt.
    Prompt {
        /// The turn.
        turn: TurnId,
        /// The place in the queue it came from, if it had to wait.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        queued: Option<QueueId>,
        /// The prompt as shown.
        item: Item,
        /// The prompt as the model gets it; in older journals, with what went with it.
        content: Vec<Block>,
        /// Its attachments; [`Record::Attached`] says what became of it.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        parts: Vec<PromptPart>,
        /// The options of the turn.
        #[serde(default, skip_serializing_if = "TurnOptions::is_default")]
        options: TurnOptions,
    },
    /// The attachments of a prompt were looked up.
    Attached {
        /// The turn.
        turn: TurnId,
        /// The item of the prompt.
        item: ItemId,
        /// The text for the model behind the prompt.
        content: Vec<Block>,
        /// The attachments, as users see them.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        shown: Vec<Attachment>,
        /// The folders whose instructions are in `content`.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        instructed: Vec<AbsPath>,
    },
    /// A prompt was found to be a command, or none after all.
    Commanded {
        /// The turn.
        turn: TurnId,
        /// The item of the prompt.
        item: ItemId,
        /// The command; absent for words that only looked like one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        command: Option<CommandUse>,
        /// The text for the model in the prompt's place; empty without a request.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        content: Vec<Block>,
    },
    /// A skill or command brings something along that counts until the turn ends.
    Equipped {
        /// The turn.
        turn: TurnId,
        /// The subject.
        equipment: Equipment,
    },
    /// A skill or command brings hooks along that count from now on.
    HooksBrought {
        /// Which.
        used: Box<TurnHooks>,
    },
    /// A sub-agent begins with a copy of the calling conversation.
    Begun {
        /// The sub-agent whose conversation that is; `None` for the main conversation.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        copies: Option<AgentId>,
    },
    /// The user has allowed something for the rest of the session, without being asked.
    Granted {
        /// The subject.
        grants: Vec<Grant>,
    },
    /// Something the user said while a turn ran reached it.
    Steered {
        /// The turn.
        turn: TurnId,
        /// Its id while it waited.
        queued: QueueId,
        /// The message, as shown.
        item: Item,
        /// The message, as the model gets it.
        content: Vec<Block>,
        /// Its attachments; [`Record::Attached`] says what became of it.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        parts: Vec<PromptPart>,
    },
    /// The model answered; also a part of an answer that broke off.
    Answer {
        /// The turn.
        turn: TurnId,
        /// The answer as the model gets it back.
        message: Message,
        /// The answer as shown: text, thinking, and the calls that are now pending.
        items: Vec<Item>,
        /// The usage that the provider reported.
        #[serde(default)]
        usage: Usage,
        /// The items that were shown while they grew.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        streamed: Vec<ItemId>,
        /// Milliseconds from the request that was answered to the end of the answer.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        duration_ms: Option<u64>,
        /// The mode in the request, where the user changed the mode before the answer.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        mode: Option<Mode>,
    },
    /// Something the model says began to show, while the rest of it is still to come. The answer it is of says in the end
    /// what it is; without one it broke off.
    Streamed {
        /// The item as it was shown first.
        item: Item,
    },
    /// An item that streams grew.
    Grown {
        /// The item.
        item: ItemId,
        /// The ended item.
        text: String,
    },
    /// An item outside the message flow, or the state of an item after an interrupted answer; the last record of an item
    /// counts.
    Item {
        /// The item.
        item: Item,
        /// Whether it was shown while it grew.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        streamed: bool,
    },
    /// A call waits for the user, or begins to run.
    CallMoved {
        /// The call's item.
        item: ItemId,
        /// When.
        at: Timestamp,
        /// The state it is in now.
        state: CallState,
        /// Its effect, in one line for people.
        title: String,
        /// The permission prompt it waits for; absent where it waits for something else, and in older journals.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        permission: Option<PermissionId>,
        /// The state then of the texts that it changes.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        known: Vec<KnownText>,
    },
    /// A call ended.
    CallEnded {
        /// The call's item.
        item: ItemId,
        /// When.
        at: Timestamp,
        /// How, as shown.
        outcome: CallOutcome,
        /// The result as the model gets it.
        result: Block,
        /// The folders whose instructions are in `result`.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        instructed: Vec<AbsPath>,
        /// The call as it was carried out; absent where a call was sealed.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        executed: Option<ExecutedCall>,
    },
    /// A text for the model that the user did not type, such as an interruption.
    Remark {
        /// The turn.
        turn: TurnId,
        /// The text.
        text: String,
    },
    /// A hook refused the prompt of a turn: the model is not told it.
    PromptRefused {
        /// The turn.
        turn: TurnId,
        /// Why.
        reason: String,
    },
    /// The provider refused pictures or documents of the request: a note replaces them in later requests.
    PicturesRefused {
        /// The turn.
        turn: TurnId,
        /// How many pictures the note replaces: the newest of the conversation.
        newest: usize,
        /// The provider's error, for the note.
        reason: String,
    },
    /// The conversation was compacted: the model is sent a summary in the place of older messages.
    Compacted {
        /// The action.
        compaction: Box<Compaction>,
    },
    /// The user decided about a call.
    Decided {
        /// The decision.
        decision: PermissionResolution,
        /// The calls that it allows from now on without asking.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        grants: Vec<Grant>,
    },
    /// The model asked the user something.
    Asked {
        /// The question.
        question: Box<Question>,
    },
    /// A question was answered or withdrawn.
    Replied {
        /// Its outcome.
        resolved: QuestionResolution,
    },
    /// The todo list was written.
    Todos {
        /// The list from now on.
        todos: Vec<Todo>,
    },
    /// The goal of the session was set, checked or removed.
    GoalSet {
        /// The goal from now on; `None` without one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        goal: Option<Box<Goal>>,
    },
    /// The user marked the changes of a file as reviewed, or removed the mark.
    FileReviewed {
        /// The file or document.
        target: Target,
        /// The digests of the reviewed hunks; empty where the mark was removed.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        hunks: Vec<BlobId>,
    },
    /// A turn ended.
    TurnEnded {
        /// The turn.
        turn: TurnId,
        /// Why.
        reason: TurnEnd,
        /// Tokens of all its model calls.
        usage: Usage,
        /// Further details.
        #[serde(default)]
        figures: TurnFigures,
    },
    /// A model was asked, and answered or broke off.
    Charged {
        /// The turn.
        turn: TurnId,
        /// The model, as its provider calls it.
        model: String,
        /// The tokens, as the provider reported them.
        usage: Usage,
        /// Their cost by the prices of the day, in US dollars; absent where the price was unknown.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cost: Option<f64>,
        /// How full the context window was then, where that was measured.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        context: Option<ContextUse>,
        /// How fast the answer came.
        #[serde(default, skip_serializing_if = "Pace::is_empty")]
        pace: Pace,
        /// The provider of the model, as settings call it; empty in older journals.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        provider: String,
        /// Whether it answered a side question: the id is of no turn then.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        aside: bool,
    },
    /// The mode, the model, the effort or the style of the answers changed.
    Configured {
        /// The mode now.
        mode: StoredMode,
        /// The name of the model profile now.
        model: String,
        /// How hard models think in this session now, instead of as their profiles say.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        effort: Option<Effort>,
        /// The name of the style of the answers in this session now, instead of that of the settings.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        output_style: Option<String>,
        /// The profile of the sandbox in this session now, instead of what the settings say.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        sandbox: Option<String>,
    },
    /// Something became of the agent's changes. Folded by the ledger.
    Edits {
        /// The subject.
        entry: LedgerEntry,
    },
    /// Texts are about to be changed, or may have been: an edit without an entry was not made, or is not entered any more.
    /// Replaces the earlier record.
    Writing {
        /// The changes, text by text, with earlier ones of unknown outcome; none when all is known about them.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        intents: Vec<Intent>,
    },
    /// The session was given a title.
    Titled {
        /// Its new title.
        title: String,
        /// The author of the title.
        by: TitledBy,
    },
    /// The session was archived, or taken out again.
    Archived {
        /// Whether it is archived now.
        archived: bool,
    },
    /// How changes reach the files in this session, instead of as the user has set for all.
    Delivering {
        /// The rules, the first that matches decides.
        rules: Vec<EditDeliveryRule>,
    },
    /// The conversation went back to before a prompt.
    Rewound {
        /// The turn of the prompt: it and all later ones are gone.
        turn: TurnId,
        /// The act of the user's, by which it can be taken back.
        resolution: ResolutionId,
        /// Whether files are brought back with it; [`Record::Restored`] says that they were.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        files: bool,
    },
    /// Files were brought back with the conversation, as far as they could be.
    Restored {
        /// The act of the user's.
        resolution: ResolutionId,
    },
    /// The conversation went forward again to where it was before it went back.
    Unwound {
        /// The act that is taken back.
        resolution: ResolutionId,
    },
    /// A call of the session, or of a sub-agent, gave a sub-agent a task: a new one, or one that continues.
    Delegated {
        /// The sub-agent.
        agent: AgentId,
        /// The turn.
        turn: TurnId,
        /// The call.
        call: CallId,
        /// The name of its type.
        kind: String,
        /// Its topic, in a few words.
        description: String,
        /// The name of its model profile, where it is not that of the session.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        model: Option<String>,
        /// The worktree it works in, where that is not the workspace itself.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        worktree: Option<Worktree>,
    },
    /// The team of the main conversation and the sub-agents in the background changed.
    Team {
        /// The change.
        entry: TeamEntry,
    },
    /// Something became of a background command.
    Background {
        /// The subject.
        entry: TaskEntry,
    },
    /// The session was resumed from its journal.
    Resumed {
        /// Calls that were unfinished and are sealed now.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        sealed: Vec<CallId>,
        /// Journal lines that could not be read and were skipped.
        #[serde(default)]
        skipped_records: u64,
        /// The states that the sealed calls were in, in their order; empty in older journals.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        states: Vec<CallState>,
        /// Whether anything was unfinished.
        #[serde(default)]
        strategy: ResumeStrategy,
        /// The step that the turn had reached; older journals do not name it.
        #[serde(default)]
        breakpoint: Breakpoint,
    },
    /// Something happened in the conversation of a sub-agent.
    InAgent {
        /// The sub-agent.
        agent: AgentId,
        /// The value, as recorded in the session's own conversation.
        record: Box<Record>,
    },
}

/// The text for the model in the place of a lost image.
const LOST: &str = "[A picture that was here is lost: a line of the session's journal was damaged.]";

impl JournalEntry for Record {
    fn is_transient(&self) -> bool {
        match self {
            Self::Grown { .. } => true,
            Self::InAgent { record, .. } => record.is_transient(),
            _ => false,
        }
    }

    fn may_have_payloads(&self) -> bool {
        matches!(
            self,
            Self::Queued { .. }
                | Self::Prompt { .. }
                | Self::Steered { .. }
                | Self::QueueChanged { .. }
                | Self::Attached { .. }
                | Self::Commanded { .. }
        )
    }

    /// The images of prompts.
    fn payloads(&mut self) -> Vec<&mut String> {
        let (parts, content) = prompt_of(self);
        let of_parts = parts.into_iter().flatten().filter_map(|part| match part {
            PromptPart::Image(image) => Some(&mut image.data),
            _ => None,
        });
        let of_content = content.into_iter().flatten().filter_map(|block| match block {
            Block::Image(image) => Some(&mut image.data),
            _ => None,
        });
        of_parts.chain(of_content).collect()
    }

    fn replace_lost(&mut self, is_lost: &dyn Fn(&str) -> bool) {
        let (parts, content) = prompt_of(self);
        if let Some(parts) = parts {
            parts.retain(|part| !matches!(part, PromptPart::Image(image) if is_lost(&image.data)));
        }
        for block in content.into_iter().flatten() {
            if matches!(block, Block::Image(image) if is_lost(&image.data)) {
                *block = Block::Text { text: LOST.to_owned() };
            }
        }
    }
}

/// The parts and the content of the prompt that a record has.
fn prompt_of(record: &mut Record) -> (Option<&mut Vec<PromptPart>>, Option<&mut Vec<Block>>) {
    match record {
        Record::Queued { parts, content, .. }
        | Record::Prompt { parts, content, .. }
        | Record::Steered { parts, content, .. }
        | Record::QueueChanged { change: QueueChange::Edited { parts, content, .. } } => {
            (Some(parts), Some(content))
        }
        Record::Attached { content, .. } | Record::Commanded { content, .. } => (None, Some(content)),
        _ => (None, None),
    }
}

/// A call as it was carried out.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ExecutedCall {
    /// The tool.
    pub name: String,
    /// Milliseconds of the run.
    pub duration_ms: u64,
}

/// The usage of a turn, beside tokens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct TurnFigures {
    /// Milliseconds from its start.
    pub duration_ms: u64,
    /// Model calls made.
    pub model_calls: u32,
    /// Tool calls made.
    pub tool_calls: u32,
    /// How long each part of it took.
    pub phases: PhaseTimes,
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;
    use crate::event::ItemBody;
    use kode_base::ids::TurnId;
    use kode_journal::{Journal, read};
    use kode_model::Image;

    fn records(image: &Image) -> [Record; 2] {
        let turn = TurnId::from_external("turn_1");
        let body = ItemBody::user_message("see".to_owned());
        let item = Item {
            id: ItemId::generate(),
            turn: turn.clone(),
            agent: None,
            timestamp: Timestamp::now(),
            body,
        };
        let id = item.id.clone();
        let parts = vec![PromptPart::Image(image.clone())];
        let prompt = Record::Prompt {
            turn: turn.clone(),
            queued: None,
            item,
            content: vec![],
            parts,
            options: TurnOptions::default(),
        };
        let content = vec![Block::Image(image.clone())];
        [prompt, Record::Attached { turn, item: id, content, shown: vec![], instructed: vec![] }]
    }

    #[test]
    fn a_picture_is_written_once_and_comes_back_everywhere() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("journal.jsonl");
        let image = Image { media_type: "image/png".into(), data: "QUJD".repeat(1_000), text: None };
        let records = records(&image);
        let journal = Journal::open(&path).unwrap();
        records.iter().for_each(|record| journal.append(record).unwrap());
        let text = std::fs::read_to_string(&path).unwrap();
        assert_eq!(text.matches(&image.data).count(), 1);
        assert_eq!(read::<Record>(&path).unwrap().records, records);
        // The next process knows nothing of what this one wrote.
        journal.release();
        Journal::open(&path).unwrap().append(&records[1]).unwrap();
        let all = [records.to_vec(), vec![records[1].clone()]].concat();
        assert_eq!(read::<Record>(&path).unwrap().records, all);
        // Without the line that has it, the image is lost, and a notice says so.
        let last: Vec<_> = text.lines().skip(1).collect();
        std::fs::File::create(&path).unwrap().write_all(format!("{}\n", last.join("\n")).as_bytes()).unwrap();
        let Record::Attached { content, .. } = &read(&path).unwrap().records[0] else { panic!("attached") };
        assert_eq!(content, &[Block::Text { text: LOST.to_owned() }]);
    }

    #[test]
    fn older_journals_with_the_same_picture_in_every_record_are_read() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("journal.jsonl");
        let image = Image { media_type: "image/png".into(), data: "QUJD".into(), text: None };
        let records = records(&image);
        for record in &records {
            // A writer of its own for each line writes each picture whole.
            Journal::open(&path).unwrap().append(record).unwrap();
        }
        assert_eq!(std::fs::read_to_string(&path).unwrap().matches("QUJD").count(), 2);
        assert_eq!(read::<Record>(&path).unwrap().records, records);
    }
}
