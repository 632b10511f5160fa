//! How full the context window of a conversation is.
//!
//! Rule: what a provider has reported is the truth for everything up to there; only what came after is counted, and
//! the count corrected by what the last report showed. A round counts what it added, never the whole history.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use crate::context::ContextBuilder;
use crate::context::cut_prompts::CutPrompts;
use crate::context::needs::{self, ContextRoom};
use crate::context::tokens::{Counter, TokenParts};
use crate::conversation::Conversation;
use crate::core::lock;
use crate::instructions::Instructions;
use crate::state::thread::ReportedUsage;
use kode_base::ids::AgentId;
use kode_base::mode::Mode;
use kode_base::paths::AbsPath;
use kode_config::agents::AgentTypes;
use kode_config::extension::Catalog;
use kode_config::in_force::EffectivePolicy;
use kode_model::profile::Profile;
use kode_model::{Block, Message};
use kode_record::context::{ContextParts, ContextUse};
use kode_record::tokens::CountSource;
use kode_tool::Registry;
use kode_tool::names::TOOL_SEARCH;

/// A count is corrected by at most this factor, either way: a report that differs by more is about something else.
const MAX_CORRECTION: f64 = 4.0;

/// Smaller requests say little about how the count differs from the truth.
const MIN_CORRECTING_TOKENS: u64 = 1_000;

/// The share of the window that is left for the parts of every request where they were not counted. If they have more, a
/// compaction does not help.
const MOST_FIXED_SHARE: u64 = 4;

/// The most tokens of a block and its message besides its texts.
const MOST_BESIDE: u64 = 32;

/// The share of the window that is kept free for an answer at most, however long answers may be.
const MAX_RESERVED_SHARE: u64 = 2;

/// The meters of a session's conversations.
#[derive(Default)]
pub(crate) struct Meters {
    meters: Mutex<HashMap<Option<AgentId>, Meter>>,
    /// How much longer requests are than counted, by model.
    corrections: Mutex<HashMap<String, f64>>,
    /// The last measurement of the session's own conversation.
    last: Mutex<Option<ContextUse>>,
    /// The models whose servers cut prompts.
    cuts: CutPrompts,
}

/// The counts of one conversation.
struct Meter {
    model: String,
    counter: Counter,
    /// As [`crate::state::thread::Thread::rewrites`] when it was counted.
    rewrites: u64,
    /// The tokens of each message.
    sizes: Vec<u64>,
    parts: TokenParts,
    /// The size of the last message, which is counted again when it has grown.
    last: TokenParts,
    fixed: Option<(FixedKey, FixedSize)>,
    /// The report that there was when it was counted last.
    seen: Option<ReportedUsage>,
    /// The same where it counts, and the size of the parts of every request at that time.
    noted: Option<(ReportedUsage, u64)>,
}

/// The inputs of the parts of every request.
struct FixedKey {
    modes: (Mode, Mode),
    cwd: AbsPath,
    can_diagnose: bool,
    has_languages: bool,
    catalog: Arc<Catalog>,
    in_force: Arc<EffectivePolicy>,
    agents: Arc<AgentTypes>,
    instructions: Arc<Instructions>,
    tools: Arc<Registry>,
    room: ContextRoom,
    takes_patches: bool,
}

impl FixedKey {
    fn is_same(&self, other: &Self) -> bool {
        self.modes == other.modes
            && self.cwd == other.cwd
            && (self.can_diagnose, self.has_languages) == (other.can_diagnose, other.has_languages)
            && Arc::ptr_eq(&self.catalog, &other.catalog)
            && Arc::ptr_eq(&self.in_force, &other.in_force)
            && Arc::ptr_eq(&self.agents, &other.agents)
            && Arc::ptr_eq(&self.instructions, &other.instructions)
            && Arc::ptr_eq(&self.tools, &other.tools)
            && (self.room, self.takes_patches) == (other.room, other.takes_patches)
    }
}

/// The size of the parts of every request, in tokens.
#[derive(Clone, Copy, Default)]
struct FixedSize {
    system: u64,
    tools: u64,
    memory: u64,
    /// How much the model has asked for, where it gets tools by need; more changes the tools.
    needed: Option<usize>,
}

impl FixedSize {
    fn total(self) -> u64 {
        self.system + self.tools + self.memory
    }
}

/// The messages that were added to a conversation since it was last counted.
struct NewMessages {
    rewrites: u64,
    from: usize,
    messages: Vec<Message>,
    /// Blocks of the first message that report a compaction.
    summary: usize,
    reported: Option<ReportedUsage>,
}

/// The size of a conversation when it was last counted.
struct KnownSize {
    rewrites: u64,
    reported: Option<ReportedUsage>,
    /// Its tokens, corrected.
    tokens: u64,
    /// The last message that was counted, which may have grown.
    from: usize,
}

/// The size of a conversation.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Measurement {
    pub(crate) usage: ContextUse,
    /// The tokens of the parts of every request.
    pub(crate) fixed: u64,
    /// How much longer requests of this model are than counted.
    pub(crate) correction: f64,
}

/// The size of a conversation, message by message.
pub(crate) struct MessageSizes {
    pub(crate) measured: Measurement,
    /// The tokens of each message, counted and not corrected.
    pub(crate) sizes: Vec<u64>,
    pub(crate) counter: Counter,
}

/// The number of tokens from which on a conversation is compacted: a share of the window, and less where an answer of
/// `max_tokens` would not fit beside it.
#[must_use]
pub fn trigger(window: u64, share: f64, max_tokens: u32) -> u64 {
    scaled(window, share.clamp(0.0, 1.0)).min(window.saturating_sub(reserved(window, max_tokens)))
}

fn reserved(window: u64, max_tokens: u32) -> u64 {
    u64::from(max_tokens).min(window / MAX_RESERVED_SHARE)
}

/// A number of tokens times a factor.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::cast_precision_loss,
    reason = "numbers of tokens are far below what a float holds exactly"
)]
pub(crate) fn scaled(tokens: u64, factor: f64) -> u64 {
    (tokens as f64 * factor).round() as u64
}

#[expect(clippy::cast_precision_loss, reason = "numbers of tokens are far below what a float holds exactly")]
fn ratio(tokens: u64, to: u64) -> f64 {
    tokens as f64 / to.max(1) as f64
}

impl ContextBuilder {
    /// Measures a conversation.
    pub(crate) fn measure(&self, conversation: &Conversation, profile: &Profile) -> Measurement {
        self.measure_by(conversation, profile, |_, measured| measured)
    }

    /// Measures a conversation, with the tokens of each message.
    pub(crate) fn measure_whole(&self, conversation: &Conversation, profile: &Profile) -> MessageSizes {
        // Taken while measuring: another task may measure the conversation at any time.
        self.measure_by(conversation, profile, |meter, measured| MessageSizes {
            measured,
            sizes: meter.sizes.clone(),
            counter: meter.counter,
        })
    }

    /// Whether a conversation is so far below the limit from which on it is compacted that it can be sent before it is counted.
    /// Each byte that was added since the last count counts as a token: tokenizers make no more of a text, and mostly one of
    /// three or four bytes. `false` where only a count can tell.
    pub(crate) fn is_far_from_limit(&self, conversation: &Conversation, profile: &Profile) -> bool {
        let (window, trigger, _) = self.limits(profile);
        let Some(trigger) = trigger else { return true };
        let key = self.fixed_key(conversation, profile);
        if matches!(key.room, ContextRoom::Small(_)) {
            return false;
        }
        let most_fixed = window / MOST_FIXED_SHARE;
        let needed = needs::of(conversation).len();
        let known = self.known_size(conversation, profile, (&key, needed), most_fixed);
        let tokens = conversation.thread.read(|thread| {
            let is_same = |known: &KnownSize| {
                known.rewrites == thread.rewrites() && known.reported.as_ref() == thread.reported()
            };
            let known = known.filter(is_same);
            let (from, counted) = known.map_or((0, most_fixed), |known| (known.from, known.tokens));
            let added = thread.messages.get(from..)?.iter().flat_map(|message| &message.content);
            Some(counted.saturating_add(added.map(most_tokens).sum::<Option<u64>>()?))
        });
        tokens.is_some_and(|tokens| tokens < trigger)
    }

    /// The size of a conversation up to the last count. The parts of every request have `most_fixed` tokens where they are not
    /// those with this key any more.
    fn known_size(
        &self,
        conversation: &Conversation,
        profile: &Profile,
        (key, needed): (&FixedKey, usize),
        most_fixed: u64,
    ) -> Option<KnownSize> {
        let meters = lock(&self.meters.meters);
        let meter = meters.get(&conversation.thread.agent).filter(|meter| meter.model == profile.model)?;
        let fixed = match &meter.fixed {
            Some((known, fixed)) if known.is_same(key) && fixed.needed.is_none_or(|then| then == needed) => {
                fixed.total()
            }
            Some(_) | None => most_fixed,
        };
        let correction = self.meters.correction(&meter.model);
        let (reported, counted, fixed_then) = match &meter.noted {
            Some((noted, fixed_then)) => (noted.tokens, meter.sizes.get(noted.messages..)?, *fixed_then),
            None => (0, meter.sizes.as_slice(), 0),
        };
        let more = scaled(fixed + counted.iter().sum::<u64>(), correction);
        Some(KnownSize {
            rewrites: meter.rewrites,
            reported: meter.seen.clone(),
            tokens: (reported + more).saturating_sub(scaled(fixed_then, correction)),
            from: meter.sizes.len().saturating_sub(1),
        })
    }

    /// The fill of the session's own context window, as measured last; `None` before it was measured.
    pub(crate) fn last_use(&self) -> Option<ContextUse> {
        *lock(&self.meters.last)
    }

    /// The tokens of the next request, counted and not corrected.
    pub(crate) fn counted(&self, conversation: &Conversation, profile: &Profile) -> u64 {
        self.measure_by(conversation, profile, |meter, measured| {
            measured.fixed + meter.sizes.iter().sum::<u64>()
        })
    }

    /// Notes the reported size of a prompt. Returns the window that the server cut the prompt to, the first time that it
    /// cuts one for this model; reports of the model are ignored from then on.
    pub(crate) fn note_prompt(
        &self,
        conversation: &Conversation,
        profile: &Profile,
        reported: u64,
    ) -> Option<u64> {
        let counted = self.counted(conversation, profile);
        let window = self.meters.cuts.note(conversation.agent(), &profile.model, (reported, counted))?;
        self.meters.forget_correction(&profile.model);
        Some(window)
    }

    fn measure_by<T>(
        &self,
        conversation: &Conversation,
        profile: &Profile,
        look: impl FnOnce(&Meter, Measurement) -> T,
    ) -> T {
        let (meters, thread) = (&self.meters, &conversation.thread);
        let known = lock(&meters.meters).remove(&thread.agent);
        let mut meter = known.filter(|meter| meter.model == profile.model).unwrap_or_else(|| Meter {
            model: profile.model.clone(),
            counter: Counter::of(&profile.model),
            rewrites: 0,
            sizes: Vec::new(),
            parts: TokenParts::default(),
            last: TokenParts::default(),
            fixed: None,
            seen: None,
            noted: None,
        });
        let added = thread.read(|thread| {
            let is_same = meter.rewrites == thread.rewrites() && meter.sizes.len() <= thread.messages.len();
            let from = if is_same { meter.sizes.len().saturating_sub(1) } else { 0 };
            NewMessages {
                rewrites: thread.rewrites(),
                from,
                messages: thread.messages.get(from..).unwrap_or_default().to_vec(),
                summary: thread.head_blocks(),
                reported: thread.reported().cloned(),
            }
        });
        let reported = meter.take_in(added).filter(|reported| !meters.cuts.is_cut(&reported.model));
        let fixed = self.fixed_size(&mut meter, conversation, profile);
        let measured = meters.read(&mut meter, fixed, reported, self.limits(profile));
        if conversation.is_main() {
            *lock(&meters.last) = Some(measured.usage);
        }
        let seen = look(&meter, measured);
        lock(&meters.meters).insert(thread.agent.clone(), meter);
        seen
    }

    /// The size of the parts of every request, counted again when they may have changed.
    fn fixed_size(&self, meter: &mut Meter, conversation: &Conversation, profile: &Profile) -> FixedSize {
        let key = self.fixed_key(conversation, profile);
        let is_current =
            |fixed: &FixedSize| fixed.needed.is_none_or(|needed| needed == needs::of(conversation).len());
        match &meter.fixed {
            Some((known, fixed)) if known.is_same(&key) && is_current(fixed) => *fixed,
            Some(_) | None => {
                let fixed = self.count_fixed(conversation, (key.room, key.takes_patches), meter.counter);
                meter.fixed = Some((key, fixed));
                fixed
            }
        }
    }

    fn fixed_key(&self, conversation: &Conversation, profile: &Profile) -> FixedKey {
        let room = ContextRoom::of(profile);
        let mode = self.core.state().config.mode;
        let workspace = &self.environment.workspace;
        FixedKey {
            modes: (mode, conversation.mode(mode)),
            cwd: workspace.cwd(),
            can_diagnose: workspace.can_diagnose(),
            has_languages: workspace.languages().is_some(),
            catalog: self.extensions.catalog(),
            in_force: self.gate.in_force(),
            agents: self.extensions.agent_types(),
            instructions: self.instructions.current(),
            tools: Arc::clone(&conversation.tools),
            room,
            takes_patches: profile.capabilities.patches,
        }
    }

    fn count_fixed(
        &self,
        conversation: &Conversation,
        (room, takes_patches): (ContextRoom, bool),
        counter: Counter,
    ) -> FixedSize {
        let (system, tools) = self.fixed(conversation, room, takes_patches);
        // The whole is counted as it is sent, so that the parts add up to it.
        let (all, memory) = (counter.text(&system.text()), counter.text(&system.memory));
        FixedSize {
            system: all.saturating_sub(memory),
            tools: tools.iter().map(|tool| counter.tool(tool)).sum(),
            memory: memory.min(all),
            // The tool that asks for others is declared only then.
            needed: tools.iter().any(|tool| tool.name == TOOL_SEARCH).then(|| needs::of(conversation).len()),
        }
    }

    fn limits(&self, profile: &Profile) -> (u64, Option<u64>, u64) {
        let preferences = &self.gate.in_force().policy.preferences;
        let window = profile.context_window;
        let trigger = trigger(window, preferences.compact_threshold, profile.max_tokens);
        (window, preferences.auto_compact.then_some(trigger), reserved(window, profile.max_tokens))
    }
}

/// Counts messages, of which the first blocks of number 0 report a compaction.
fn count(messages: &[Message], from: usize, summary: usize, counter: Counter) -> Vec<TokenParts> {
    let of = |(at, message)| counter.message(message, if from + at == 0 { summary } else { 0 });
    messages.iter().enumerate().map(of).collect()
}

/// The tokens of a block, one for each byte of its texts; `None` for pictures, whose pages have to be counted.
fn most_tokens(block: &Block) -> Option<u64> {
    let bytes = match block {
        Block::Text { text } | Block::Thinking { thinking: text, .. } => text.len(),
        Block::RedactedThinking { data } => data.len(),
        Block::ToolUse { name, input, .. } => name.len() + input.to_string().len(),
        Block::ToolResult { content, images, .. } if images.is_empty() => content.len(),
        Block::Image(_) | Block::ToolResult { .. } => return None,
    };
    Some(u64::try_from(bytes).unwrap_or(u64::MAX).saturating_add(MOST_BESIDE))
}

impl Meter {
    fn forget(&mut self) {
        (self.sizes, self.parts, self.last) = (Vec::new(), TokenParts::default(), TokenParts::default());
        (self.fixed, self.noted) = (None, None);
    }

    fn add(&mut self, parts: TokenParts) {
        self.sizes.push(parts.total());
        self.parts += parts;
        self.last = parts;
    }

    fn take_in(&mut self, added: NewMessages) -> Option<ReportedUsage> {
        let NewMessages { rewrites, from, messages, summary, reported } = added;
        if from == 0 {
            let (fixed, noted) = (self.fixed.take(), self.noted.take());
            self.forget();
            // The parts of every request are counted again when the history was rewritten.
            if rewrites == self.rewrites {
                (self.fixed, self.noted) = (fixed, noted);
            }
        } else if self.sizes.pop().is_some() {
            self.parts -= self.last;
        }
        self.rewrites = rewrites;
        self.seen.clone_from(&reported);
        count(&messages, from, summary, self.counter).into_iter().for_each(|parts| self.add(parts));
        reported.filter(|reported| reported.model == self.model && reported.messages <= self.sizes.len())
    }
}

impl Meters {
    /// How much longer requests of a model are than counted.
    fn correction(&self, model: &str) -> f64 {
        lock(&self.corrections).get(model).copied().unwrap_or(1.0)
    }

    /// Forgets how much longer requests of a model are than counted.
    fn forget_correction(&self, model: &str) {
        lock(&self.corrections).remove(model);
    }

    fn read(
        &self,
        meter: &mut Meter,
        fixed: FixedSize,
        reported: Option<ReportedUsage>,
        (window, trigger, reserved): (u64, Option<u64>, u64),
    ) -> Measurement {
        let (before, after) = match &reported {
            Some(reported) => meter.sizes.split_at(reported.messages),
            None => (&[][..], meter.sizes.as_slice()),
        };
        let (before, after): (u64, u64) = (before.iter().sum(), after.iter().sum());
        let known = meter.noted.as_ref().filter(|(noted, _)| Some(noted) == reported.as_ref());
        let (is_known, fixed_then) =
            known.map_or((false, fixed.total()), |(_, fixed_then)| (true, *fixed_then));
        let counted_then = fixed_then + before;
        // A report that is far from the count is about something else, such as uncached tokens.
        let reported = reported.filter(|reported| {
            let ratio = ratio(reported.tokens, counted_then);
            (MAX_CORRECTION.recip()..=MAX_CORRECTION).contains(&ratio)
        });
        let mut corrections = lock(&self.corrections);
        if let Some(reported) = &reported
            && !is_known
            && counted_then >= MIN_CORRECTING_TOKENS
        {
            corrections.insert(meter.model.clone(), ratio(reported.tokens, counted_then));
        }
        let correction = corrections.get(&meter.model).copied().unwrap_or(1.0);
        drop(corrections);
        let (tokens, source) = match &reported {
            Some(reported) => {
                let more = scaled(fixed.total() + after, correction);
                let less = scaled(fixed_then, correction);
                ((reported.tokens + more).saturating_sub(less), CountSource::Reported)
            }
            None => (scaled(fixed.total() + before + after, correction), CountSource::Estimated),
        };
        meter.noted = reported.map(|reported| (reported, fixed_then));
        let part = |tokens| scaled(tokens, correction);
        let TokenParts { user, assistant, results, images, summary } = meter.parts;
        let parts = ContextParts {
            system: part(fixed.system),
            tools: part(fixed.tools),
            memory: part(fixed.memory),
            user: part(user),
            assistant: part(assistant),
            results: part(results),
            images: part(images),
            summary: part(summary),
        };
        let usage = ContextUse { tokens, source, window, trigger, reserved, parts };
        Measurement { usage, fixed: fixed.total(), correction }
    }
}
