//! One conversation with the model: the session's own, or that of a sub-agent, as a fold over its records.
//!
//! Rule: [`Thread::apply`] is the only way a record changes it; the history it builds can be sent as it is: roles
//! alternate and every call is answered exactly once, in the order of the calls. Adding costs the size of the addition.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::sync::Arc;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::prompt::{PASTED_TAG, PromptKind};
use crate::state::events;
use crate::state::images;
use crate::state::thread::open::UnansweredPrompt;
use crate::state::titles::title_from;
use crate::state::transcript::{self, Transcript};
use kode_base::capacity;
use kode_base::ids::{ItemId, TurnId, WindowId};
use kode_base::paths::AbsPath;
use kode_config::command::CommandUse;
use kode_journal::Shelf;
use kode_model::normalise::{append, normalise};
use kode_model::{Block, History, Message, Role, Usage};
use kode_record::compaction::{CompactedWindow, Compaction, StoredMessages};
use kode_record::event::{CallOutcome, CallState, Event, Item, ItemBody, ToolCallItem};
use kode_record::record::Record;

/// A conversation, folded from its records.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Thread {
    /// The messages for the model, oldest first. They can be sent whenever no call is open.
    pub messages: History,
    /// The transcript.
    pub items: Transcript,
    /// Calls of the newest answer, in order, with their results as they come in; empty when all are answered.
    calls: Vec<(String, Option<Block>)>,
    /// Calls of a guest that have not ended. They are in no message: a guest's history is its own.
    #[serde(default)]
    of_guest: Vec<ItemId>,
    /// Where the turns begin: items and messages before each of them.
    turns: Vec<TurnStart>,
    /// Whether the user has said something to the running turn since the model answered last.
    is_steered: bool,
    /// Whether the model has not answered since it was last asked something new.
    is_fresh: bool,
    /// Its messages before each compaction, oldest first.
    windows: Vec<CompactedWindow>,
    /// The number of the first message: messages are counted on when the conversation is compacted.
    first: usize,
    /// Grows whenever messages change in another way than by being added.
    rewrites: u64,
    reported: Option<ReportedUsage>,
    /// The folders whose instructions the model was given, oldest first.
    instructed: Vec<InstructedFolders>,
    /// The items that stream: the answer they are of has not come.
    streaming: Vec<ItemId>,
    /// The permission prompts that were not answered, by the items of their calls.
    asked: BTreeMap<ItemId, UnansweredPrompt>,
}

/// A folder whose instructions the model was given.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct InstructedFolders {
    folder: AbsPath,
    /// Turns that had started then.
    turns: usize,
    /// How often the conversation had been compacted then.
    window: usize,
}

/// A provider's report of a request's size.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ReportedUsage {
    /// The tokens of the whole request.
    pub(crate) tokens: u64,
    /// The messages that were in it.
    pub(crate) messages: usize,
    /// The model, as the provider knows it.
    pub(crate) model: String,
}

/// Where a turn begins. A sub-agent that is called more than once in a turn has as many beginnings in it.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct TurnStart {
    prompt: PromptFacts,
    items: usize,
    place: PromptPlace,
    /// The number of its blocks that the user typed; attachments follow them.
    words: usize,
    /// The user's messages to the running turn: their places, and the number of blocks that the user typed.
    steered: Vec<(PromptPlace, usize)>,
}

/// The facts of a prompt that outlive its item.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PromptFacts {
    /// Its turn.
    pub turn: TurnId,
    /// Its item.
    pub item: ItemId,
    /// Its first line.
    pub title: String,
    /// When it was submitted.
    pub timestamp: Timestamp,
    /// Whether it is a word to the model, and no command.
    pub is_said: bool,
}

/// Something the user said to the model.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct SentPrompt {
    /// The index of its message, while that exists.
    pub(crate) at: Option<usize>,
    /// Its blocks, with the attachments.
    pub(crate) blocks: Vec<Block>,
    /// How many of the first blocks the user typed.
    pub(crate) words: usize,
}

/// A place in the messages of a conversation.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct PromptPlace {
    /// How often it had been compacted.
    window: usize,
    /// Messages before it.
    messages: usize,
    /// Blocks before it in the last of them, where what follows may be added to that message; else 0.
    blocks: usize,
}

/// The end of a conversation that went back.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct ThreadCut {
    items: transcript::NewestItems,
    turns: Vec<TurnStart>,
    /// All messages as they were.
    messages: History,
    /// The windows that the conversation went back before.
    windows: Vec<CompactedWindow>,
    first: usize,
    instructed: Vec<InstructedFolders>,
}

impl Thread {
    /// Folds one record of this conversation into it, and answers the item events of the record. Records of the
    /// whole session are ignored.
    pub fn apply(&mut self, record: Record) -> Vec<Event> {
        match record {
            Record::Prompt { turn, queued: _, item, content, parts: _, options: _ } => {
                self.close_calls();
                let (items, place) = (self.items.count(), self.place());
                let prompt = PromptFacts::of(turn, &item);
                (self.is_steered, self.is_fresh) = (false, true);
                let item = self.put(item);
                append(&mut self.messages, Message::user(content));
                let words = self.blocks_since(place);
                capacity::push(
                    &mut self.turns,
                    TurnStart { prompt, items, place, words, steered: Vec::new() },
                );
                vec![Event::ItemAdded { item }]
            }
            Record::Attached { .. } => self.attach_to_prompt(record).into_iter().collect(),
            Record::Commanded { turn, item, command, content } => {
                self.take_command(&turn, &item, command, content).into_iter().collect()
            }
            Record::Steered { turn: _, queued: _, item, content, parts: _ } => {
                self.close_calls();
                let place = self.place();
                let item = self.put(item);
                append(&mut self.messages, Message::user(content));
                let words = self.blocks_since(place);
                if let Some(start) = self.turns.last_mut() {
                    start.steered.push((place, words));
                }
                self.is_steered = true;
                vec![Event::ItemAdded { item }]
            }
            Record::Answer { turn: _, message, items, usage, streamed, duration_ms: _, mode: _ } => {
                self.close_calls();
                self.streaming.clear();
                (self.is_steered, self.is_fresh) = (false, false);
                self.note_reported(&message, &usage);
                // An answer to a question that is lost cannot be sent, and neither can the results of its calls.
                if !self.messages.is_empty() {
                    self.calls = calls(&message);
                    append(&mut self.messages, message);
                }
                let reported = |item: Item| self.put_and_report(streamed.contains(&item.id), item);
                items.into_iter().map(reported).collect()
            }
            Record::Streamed { item } => vec![self.begin_to_show(item)],
            Record::Grown { item, text } => self.grow(item, text).into_iter().collect(),
            Record::Item { item, streamed } => vec![self.take_item(item, streamed)],
            Record::CallMoved { item, at, state, title, permission, known } => {
                self.note_asked(&item, permission, known);
                self.move_call(&item, at, state, title)
            }
            Record::CallEnded { .. } => self.end_call(record),
            Record::Remark { turn: _, text } => self.remark(text),
            Record::PromptRefused { turn, reason: _ } => self.refuse_prompt(&turn),
            Record::PicturesRefused { turn: _, newest, reason } => self.leave_out_refused(newest, &reason),
            Record::Compacted { compaction } => {
                self.compact(*compaction);
                Vec::new()
            }
            Record::Opened { .. }
            | Record::Queued { .. }
            | Record::QueueChanged { .. }
            | Record::Drafted { .. }
            | Record::Asked { .. }
            | Record::Replied { .. }
            | Record::Todos { .. }
            | Record::GoalSet { .. }
            | Record::Team { .. }
            | Record::FileReviewed { .. }
            | Record::Decided { .. }
            | Record::Granted { .. }
            | Record::Equipped { .. }
            | Record::HooksBrought { .. }
            | Record::Begun { .. }
            | Record::TurnEnded { .. }
            | Record::Charged { .. }
            | Record::Configured { .. }
            | Record::Titled { .. }
            | Record::Archived { .. }
            | Record::Edits { .. }
            | Record::Writing { .. }
            | Record::Delivering { .. }
            | Record::Background { .. }
            | Record::Rewound { .. }
            | Record::Restored { .. }
            | Record::Unwound { .. }
            | Record::Delegated { .. }
            | Record::Resumed { .. }
            | Record::InAgent { .. } => Vec::new(),
        }
    }

    /// Takes an item of its own record: the rest of a streamed one, or one of a guest.
    fn take_item(&mut self, item: Item, streamed: bool) -> Event {
        self.streaming.retain(|streaming| *streaming != item.id);
        if matches!(&item.body, ItemBody::ToolCall(call) if !streamed && !call.state.is_final()) {
            self.of_guest.push(item.id.clone());
        }
        self.put_and_report(streamed, item)
    }

    /// Adds a text for the model that the user did not type; no item shows it.
    fn remark(&mut self, text: String) -> Vec<Event> {
        self.close_calls();
        append(&mut self.messages, Message::user(vec![Block::Text { text }]));
        Vec::new()
    }

    /// The messages before the running calls, as the beginning of another conversation.
    pub(crate) fn said_so_far(&self) -> Self {
        let mut messages = self.messages.clone();
        // Calls without results cannot be sent.
        if !self.calls.is_empty() {
            messages = messages.iter().take(messages.len() - 1).cloned().collect();
        }
        let given = |given: &InstructedFolders| InstructedFolders {
            folder: given.folder.clone(),
            turns: 0,
            window: 0,
        };
        Self { messages, instructed: self.instructed.iter().map(given).collect(), ..Self::default() }
    }

    /// Begins with the messages of another conversation, where this one has none.
    pub(crate) fn begin_with(&mut self, said: Self) {
        if self.messages.is_empty() {
            (self.messages, self.instructed) = (said.messages, said.instructed);
            self.rewrite();
        }
    }

    /// Adds the attachments of a prompt behind it.
    fn attach_to_prompt(&mut self, record: Record) -> Option<Event> {
        let Record::Attached { turn: _, item, content, shown, instructed } = record else { return None };
        self.note_instructed(instructed);
        append(&mut self.messages, Message::user(content));
        let prompt = self.items.change(&item, |item| {
            if let ItemBody::UserMessage { attachments, .. } = &mut item.body {
                *attachments = shown;
            }
        });
        prompt.map(|item| Event::ItemUpdated { item })
    }

    /// Replaces the prompt by the text of its command for the model.
    fn take_command(
        &mut self,
        turn: &TurnId,
        item: &ItemId,
        command: Option<CommandUse>,
        content: Vec<Block>,
    ) -> Option<Event> {
        let (place, is_said) = (self.place(), !content.is_empty());
        append(&mut self.messages, Message::user(content));
        let words = self.blocks_since(place);
        let start = self.turns.iter_mut().rfind(|start| start.prompt.turn == *turn);
        if let Some(start) = start.filter(|start| start.prompt.item == *item) {
            (start.words, start.prompt.is_said) = (words, is_said);
        }
        let prompt = self.items.change(item, |item| {
            if let ItemBody::UserMessage { command: known, .. } = &mut item.body {
                *known = command;
            }
        });
        prompt.map(|item| Event::ItemUpdated { item })
    }

    /// Stores the provider's report of the request's size.
    fn note_reported(&mut self, answer: &Message, usage: &Usage) {
        if let (Some(origin), true) = (&answer.origin, usage.prompt_tokens() > 0) {
            let (tokens, messages) = (usage.prompt_tokens(), self.messages.len());
            self.reported = Some(ReportedUsage { tokens, messages, model: origin.model.clone() });
        }
    }

    /// Attaches the shelf that old items and messages leave memory for; it already has those that left before.
    pub(crate) fn attach(&mut self, shelf: &Arc<Shelf>) {
        self.items.attach(shelf);
    }

    /// The items from the prompt of a turn on, as far as they are in memory.
    #[must_use]
    pub fn newest_since(&self, turn: &TurnId) -> &[Arc<Item>] {
        self.start(turn).map(|start| self.items.newest_from(start.items)).unwrap_or_default()
    }

    /// How many items there are from the prompt of a turn on.
    #[must_use]
    pub fn count_since(&self, turn: &TurnId) -> usize {
        self.start(turn).map_or(0, |start| self.items.count().saturating_sub(start.items))
    }

    /// The prompt of a turn.
    #[must_use]
    pub fn prompt(&self, turn: &TurnId) -> Option<&PromptFacts> {
        self.start(turn).map(|start| &start.prompt)
    }

    /// The prompts that are in it, oldest first.
    pub fn prompts(&self) -> impl Iterator<Item = &PromptFacts> {
        self.turns.iter().map(|start| &start.prompt)
    }

    /// Whether the user has said something to the running turn since the model answered last.
    #[must_use]
    pub fn is_steered(&self) -> bool {
        self.is_steered
    }

    /// Whether the model has not answered since it was last asked something new.
    #[must_use]
    pub fn is_fresh(&self) -> bool {
        self.is_fresh
    }

    /// The turns that are in it, oldest first.
    pub fn turns(&self) -> impl Iterator<Item = &TurnId> {
        self.turns.iter().map(|start| &start.prompt.turn)
    }

    /// The last text the model said; empty when it said none.
    #[must_use]
    pub fn answer(&self) -> String {
        last_text(self.items.backwards())
    }

    /// The last text the model said since it was last asked; empty when it said none.
    #[must_use]
    pub fn turn_answer(&self) -> String {
        let start = self.turns.last().map_or(0, |start| start.items);
        last_text(self.items.backwards().take(self.items.count().saturating_sub(start)))
    }

    /// The messages as they were before the compaction of that id; they may have left memory.
    #[must_use]
    pub fn window(&self, id: &WindowId) -> Option<&StoredMessages> {
        let window = self.windows.iter().find(|window| window.compaction.window == *id)?;
        Some(&window.messages)
    }

    /// The newest compaction that the first message describes.
    #[must_use]
    pub fn compacted(&self) -> Option<&Compaction> {
        self.windows.iter().rev().find(|window| window.reports()).map(|window| &window.compaction)
    }

    /// The newest summary of messages that were compacted.
    pub(crate) fn summary(&self) -> Option<&str> {
        self.windows.iter().rev().find_map(|window| window.compaction.summary.as_deref())
    }

    /// The number of blocks of the first message that describe a compaction.
    pub(crate) fn head_blocks(&self) -> usize {
        self.compacted().map_or(0, |compaction| compaction.head.len())
    }

    /// The first prompt of the user, pasted text included; for a sub-agent its task.
    pub(crate) fn first_instruction(&self) -> Option<String> {
        let start = self.turns.iter().find(|start| start.prompt.is_said)?;
        if let Some(sent) = self.saying(start.place, start.words, None) {
            // Attachments follow the text; pasted text is a part of it.
            let is_pasted =
                |text: &str| text.strip_prefix('<').is_some_and(|tag| tag.starts_with(PASTED_TAG));
            let texts = sent.blocks.iter().enumerate().filter_map(|(at, block)| match block {
                Block::Text { text } if at < sent.words || is_pasted(text) => Some(text.as_str()),
                _ => None,
            });
            return Some(texts.collect::<Vec<_>>().join("\n"));
        }
        match &self.items.at(start.items)?.body {
            ItemBody::UserMessage { text, .. } => Some(text.clone()),
            _ => None,
        }
    }

    /// The messages from number `from` on, with their numbers. A number stays with a message when the conversation is
    /// compacted; those that were not kept are passed over.
    pub fn messages_from(&self, from: usize) -> impl Iterator<Item = (usize, &Message)> {
        let first = self.first;
        let numbered = self.messages.iter().enumerate().map(move |(at, message)| (first + at, message));
        numbered.skip(from.saturating_sub(first))
    }

    /// A number that changes whenever messages change in another way than by an addition.
    pub(crate) fn rewrites(&self) -> u64 {
        self.rewrites
    }

    /// The last report of a request's size, as long as it applies to the current messages.
    pub(crate) fn reported(&self) -> Option<&ReportedUsage> {
        self.reported.as_ref()
    }

    /// The folders whose instructions the model was given since the conversation was last compacted.
    pub(crate) fn instructed(&self) -> impl Iterator<Item = &AbsPath> {
        let window = self.windows.len();
        let newest = self.instructed.iter().rev().take_while(move |instructed| instructed.window == window);
        newest.map(|instructed| &instructed.folder)
    }

    /// The newest prompt.
    pub(crate) fn newest_prompt(&self) -> Option<SentPrompt> {
        self.newest_asked().map(|(_, prompt)| prompt)
    }

    /// The user's messages to the running turn, oldest first.
    pub(crate) fn steered(&self) -> Vec<SentPrompt> {
        let Some((turn, _)) = self.newest_asked() else { return Vec::new() };
        let starts = &self.turns[turn..];
        let steered: Vec<_> = starts.iter().flat_map(|start| start.steered.iter().copied()).collect();
        let next = |at: usize| steered.get(at + 1).map(|(place, _)| *place);
        let sayings = steered.iter().enumerate();
        sayings.filter_map(|(at, (place, words))| self.saying(*place, *words, next(at))).collect()
    }

    /// The newest turn that began with a prompt to the model, and that prompt.
    fn newest_asked(&self) -> Option<(usize, SentPrompt)> {
        self.turns.iter().enumerate().rev().find_map(|(turn, start)| {
            let next = start.steered.first().map(|(place, _)| *place);
            // A silent turn has no prompt here, but the answer of another turn.
            Some((turn, self.saying(start.place, start.words, next)?))
        })
    }

    /// The user's message at a place, up to the next one in the same message.
    fn saying(&self, place: PromptPlace, words: usize, next: Option<PromptPlace>) -> Option<SentPrompt> {
        let at = place.message()?;
        let (then, now) = match self.windows.get(place.window) {
            Some(window) => {
                let now = (window.first + at).checked_sub(self.first);
                // The first message describes the compaction; the messages behind it were kept.
                let is_reported = self.windows[place.window..].iter().any(CompactedWindow::reports);
                (self.messages_of(window).ok()?, now.filter(|at| *at > 0 || !is_reported))
            }
            None => (Cow::Borrowed(&*self.messages), Some(at)),
        };
        let message = then.get(at).filter(|message| message.role == Role::User)?;
        let is_here = |next: &PromptPlace| next.window == place.window && next.message() == Some(at);
        let end = next.filter(is_here).map_or(message.content.len(), |next| next.blocks);
        let blocks = message.content.get(place.blocks..end).filter(|blocks| !blocks.is_empty())?;
        Some(SentPrompt { at: now, blocks: blocks.to_vec(), words })
    }

    /// Whether everything needed to go back before these turns can be read.
    pub(crate) fn can_rewind(&self, gone: &BTreeSet<TurnId>) -> bool {
        let first = self.turns.iter().find(|start| gone.contains(&start.prompt.turn));
        first.is_none_or(|start| {
            let window = self.windows.get(start.place.window);
            window.is_none_or(|window| self.messages_of(window).is_ok()) && self.items.can_split(start.items)
        })
    }

    /// Goes back before the first of these turns; returns the part that is cut off, if it has any of them.
    pub(crate) fn rewind(&mut self, gone: &BTreeSet<TurnId>) -> Option<ThreadCut> {
        let at = self.turns.iter().position(|start| gone.contains(&start.prompt.turn))?;
        self.close_calls();
        self.streaming.clear();
        self.asked.clear();
        let turns = self.turns.split_off(at);
        let TurnStart { items, place, .. } = turns[0];
        let items = self.items.split_off(items);
        let (before, first) = match self.windows.get(place.window) {
            // The shelf is marked as damaged: the conversation is folded again.
            Some(window) => (place.before(&self.messages_of(window).unwrap_or_default()), window.first),
            None => (place.before(&self.messages), self.first),
        };
        let messages = std::mem::replace(&mut self.messages, before);
        let first = std::mem::replace(&mut self.first, first);
        let windows = self.windows.split_off(place.window.min(self.windows.len()));
        let kept = self.instructed.partition_point(|instructed| instructed.turns <= at);
        let instructed = self.instructed.split_off(kept);
        self.rewrite();
        Some(ThreadCut { items, turns, messages, windows, first, instructed })
    }

    /// Goes forward again to where it was before it was cut.
    pub(crate) fn unwind(&mut self, cut: ThreadCut) {
        self.calls.clear();
        self.messages = cut.messages;
        self.windows.extend(cut.windows);
        self.first = cut.first;
        self.rewrite();
        self.turns.extend(cut.turns);
        self.instructed.extend(cut.instructed);
        self.items.append(cut.items);
    }

    /// The calls that have no result yet, as their items are now.
    #[must_use]
    pub fn unanswered(&self) -> Vec<Arc<Item>> {
        // Most often none is open, and then a long turn is not walked through.
        if self.calls.is_empty() && self.of_guest.is_empty() {
            return Vec::new();
        }
        let open = |id: &str| self.calls.iter().any(|(call, result)| call == id && result.is_none());
        self.items
            .newest()
            .iter()
            .rev()
            .take_while(|item| !matches!(item.body, ItemBody::UserMessage { .. }))
            .filter(|item| match &item.body {
                ItemBody::ToolCall(call) => {
                    (open(call.call.as_str()) || self.of_guest.contains(&item.id)) && !call.state.is_final()
                }
                _ => false,
            })
            .cloned()
            .collect::<Vec<_>>()
            .into_iter()
            .rev()
            .collect()
    }

    fn end_call(&mut self, record: Record) -> Vec<Event> {
        let Record::CallEnded { item, at, outcome, result, instructed, executed } = record else {
            return Vec::new();
        };
        self.note_instructed(instructed);
        self.asked.remove(&item);
        self.of_guest.retain(|open| *open != item);
        let (refused, executed) = events::execution(&outcome, &result, executed);
        let ended = self.change_call(&item, |call| call.end(outcome, at));
        let ended = ended.map(|item| Event::ToolEnd { item });
        self.take_result(result);
        refused.into_iter().chain(ended).chain(executed).collect()
    }

    fn move_call(&mut self, item: &ItemId, at: Timestamp, state: CallState, title: String) -> Vec<Event> {
        let moved = self.change_call(item, |call| {
            call.title = title;
            call.enter(state, at);
        });
        let event = |item| match state {
            CallState::Executing => Event::ToolStart { item },
            CallState::Pending
            | CallState::ApprovalRequired
            | CallState::Completed
            | CallState::Failed
            | CallState::Denied
            | CallState::Sealed => Event::ItemUpdated { item },
        };
        moved.map(event).into_iter().collect()
    }

    /// Adds an item, or replaces the one of its id, and reports it. One that was shown while it grew is known to clients that
    /// followed that. It shares the id of the turn with the item before it.
    fn put_and_report(&mut self, streamed: bool, mut item: Item) -> Event {
        if let Some(last) = self.items.newest().last().filter(|last| last.turn == item.turn) {
            item.turn = last.turn.clone();
        }
        let item = self.put(item);
        if streamed { Event::ItemUpdated { item } } else { Event::ItemAdded { item } }
    }

    /// Adds an item, or replaces the one of its id, and returns it as the transcript keeps it.
    pub fn put(&mut self, item: impl Into<Arc<Item>>) -> Arc<Item> {
        let item = item.into();
        self.items.put(Arc::clone(&item));
        item
    }

    /// The item of that id, if it is in memory.
    #[must_use]
    pub fn item(&self, id: &ItemId) -> Option<&Arc<Item>> {
        self.items.get(id)
    }

    /// The number of items before the one of that id.
    pub(crate) fn place_of(&self, id: &ItemId) -> Option<usize> {
        self.items.place_of(id)
    }

    /// Takes over the unrecorded parts of an otherwise equal conversation.
    pub(crate) fn take_over(&mut self, live: &Self) {
        // Counted messages have to be counted again.
        self.rewrites = live.rewrites + 1;
        live.items.unfinished().for_each(|item| self.items.put(Arc::clone(item)));
    }

    fn note_instructed(&mut self, folders: Vec<AbsPath>) {
        let (turns, window) = (self.turns.len(), self.windows.len());
        let given = folders.into_iter().map(|folder| InstructedFolders { folder, turns, window });
        self.instructed.extend(given);
    }

    fn start(&self, turn: &TurnId) -> Option<&TurnStart> {
        // Most often the newest is meant.
        self.turns.iter().rev().find(|start| start.prompt.turn == *turn)
    }

    /// The messages of a window, read back if they have left memory.
    fn messages_of<'a>(&self, window: &'a CompactedWindow) -> io::Result<Cow<'a, [Message]>> {
        window.messages.read(self.items.shelf().map(Arc::as_ref))
    }

    /// Changes a call, wherever its item is, and answers the item as it is then.
    fn change_call(&mut self, id: &ItemId, change: impl FnOnce(&mut ToolCallItem)) -> Option<Arc<Item>> {
        let changed = self.items.change(id, |item| {
            if let ItemBody::ToolCall(call) = &mut item.body {
                change(call);
            }
        });
        changed.filter(|item| item.is_call())
    }

    /// Answers the calls whose results the journal has lost, so that the history stays one that can be sent.
    fn close_calls(&mut self) {
        for item in self.unanswered() {
            let lost = "The result was lost with a damaged line of the journal.".to_owned();
            let outcome =
                CallOutcome { state: CallState::Sealed, display: lost, structured: None, error: None };
            self.change_call(&item.id, |call| call.end(outcome, item.timestamp));
        }
        let lost = |id: &str| {
            Block::result(
                id,
                "The result of this call was lost; check what it did before you repeat it.",
                true,
            )
        };
        let open: Vec<_> =
            self.calls.iter().filter(|(_, known)| known.is_none()).map(|(id, _)| lost(id)).collect();
        open.into_iter().for_each(|result| self.take_result(result));
    }

    fn take_result(&mut self, result: Block) {
        let Block::ToolResult { tool_use_id, .. } = &result else { return };
        let open = self.calls.iter_mut().find(|(call, known)| call == tool_use_id && known.is_none());
        match open {
            Some((_, place)) => *place = Some(result),
            None => return,
        }
        if self.calls.iter().all(|(_, result)| result.is_some()) {
            let mut content: Vec<_> = self.calls.drain(..).filter_map(|(_, result)| result).collect();
            content.shrink_to_fit();
            append(&mut self.messages, Message::user(content));
        }
    }

    /// Replaces the messages that a compaction did not keep by its head.
    fn compact(&mut self, compaction: Compaction) {
        self.close_calls();
        let kept = self.messages.get(compaction.kept_from..).unwrap_or_default();
        let head = Message::user(compaction.head.clone());
        let mut kept = kept.to_vec();
        images::leave_out(&mut kept, compaction.pictures_left_out);
        let messages: History = normalise(&std::iter::once(head).chain(kept).collect::<Vec<_>>()).into();
        let first = (self.first + self.messages.len()).saturating_sub(messages.len());
        let messages = std::mem::replace(&mut self.messages, messages);
        let first = std::mem::replace(&mut self.first, first);
        let messages = StoredMessages::put(messages, self.items.shelf().map(Arc::as_ref));
        self.windows.push(CompactedWindow { messages, first, compaction });
        self.rewrite();
    }

    /// Replaces the newest pictures, which the provider refused, without an event. No message and no block changes its place.
    fn leave_out_refused(&mut self, newest: usize, reason: &str) -> Vec<Event> {
        let mut messages = self.messages.to_vec();
        images::leave_out_newest(&mut messages, newest, reason);
        self.messages = messages.into();
        self.rewrite();
        Vec::new()
    }

    /// As [`Self::take_out`], without an event.
    fn refuse_prompt(&mut self, turn: &TurnId) -> Vec<Event> {
        self.take_out(turn);
        Vec::new()
    }

    /// Removes the text of a turn's prompt from the messages for the model. News before it stay.
    fn take_out(&mut self, turn: &TurnId) {
        let Some(start) = self.turns.iter_mut().rev().find(|start| start.prompt.turn == *turn) else {
            return;
        };
        let words = std::mem::take(&mut start.words);
        start.prompt.is_said = false;
        let place = start.place;
        // Nothing follows it yet; a journal with later items is left as it is.
        if words == 0 || place.window != self.windows.len() {
            return;
        }
        let (Some(at), word) = (place.message(), place.blocks + words - 1) else { return };
        let mut messages = self.messages.to_vec();
        let Some(message) = messages.get_mut(at).filter(|message| word < message.content.len()) else {
            return;
        };
        message.content.remove(word);
        if message.content.is_empty() {
            messages.remove(at);
        }
        self.messages = messages.into();
        self.rewrite();
    }

    /// The place of the user's next prompt.
    fn place(&self) -> PromptPlace {
        let last = self.messages.last().filter(|last| last.role == Role::User);
        let blocks = last.map_or(0, |last| last.content.len());
        PromptPlace { window: self.windows.len(), messages: self.messages.len(), blocks }
    }

    /// How many blocks were added to the message of a place since.
    fn blocks_since(&self, place: PromptPlace) -> usize {
        let message = place.message().and_then(|at| self.messages.get(at));
        message.map_or(0, |message| message.content.len().saturating_sub(place.blocks))
    }

    /// Notes that messages are others now.
    fn rewrite(&mut self) {
        self.rewrites += 1;
        self.reported = None;
    }
}

impl PromptFacts {
    fn of(turn: TurnId, item: &Item) -> Self {
        let text = match &item.body {
            ItemBody::UserMessage { text, .. } => text.as_str(),
            _ => "",
        };
        let (title, is_said) = (title_from(text), !PromptKind::of(text, &[]).is_silent());
        Self { turn, item: item.id.clone(), title, timestamp: item.timestamp, is_said }
    }
}

impl PromptPlace {
    /// The index of the message at this place.
    fn message(&self) -> Option<usize> {
        if self.blocks > 0 { self.messages.checked_sub(1) } else { Some(self.messages) }
    }

    /// The messages before it.
    fn before(&self, messages: &[Message]) -> History {
        let mut before: Vec<Message> = messages.iter().take(self.messages).cloned().collect();
        if let (Some(last), 1..) = (before.last_mut(), self.blocks) {
            last.content.truncate(self.blocks);
        }
        before.into()
    }
}

/// The calls of an answer, without results.
fn calls(message: &Message) -> Vec<(String, Option<Block>)> {
    let call = |block: &Block| match block {
        Block::ToolUse { id, .. } => Some((id.clone(), None)),
        _ => None,
    };
    message.content.iter().filter_map(call).collect()
}

/// The last text the model said in some items, newest first.
fn last_text(mut items: impl Iterator<Item = Arc<Item>>) -> String {
    let text = |item: Arc<Item>| match &item.body {
        ItemBody::AgentMessage { text, .. } => Some(text.clone()),
        _ => None,
    };
    items.find_map(text).unwrap_or_default()
}

pub(crate) mod open;
mod streaming;
#[cfg(test)]
pub(crate) mod tests;
