//! How full the context window of a conversation is.
//!
//! Rule: what a provider has reported is the truth for everything up to there; only what came after is counted, and
//! the count corrected by what the last report showed. A round counts what it added, never the whole history.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use crate::context::tokens::{Counter, Parts};
use crate::session::conversation::Conversation;
use crate::session::standing::Standing;
use crate::session::thread::Reported;
use crate::session::{Session, lock};
use kode_base::ids::AgentId;
use kode_base::mode::Mode;
use kode_base::paths::AbsPath;
use kode_config::agents::AgentTypes;
use kode_config::extension::Catalog;
use kode_config::in_force::EffectivePolicy;
use kode_model::profile::Profile;
use kode_model::{Message, ModelError};
use kode_record::context::{ContextParts, ContextUse};
use kode_record::tokens::CountSource;
use kode_tool::Registry;

/// A count is corrected by at most this factor, either way: a report that differs by more is about something else.
const MAX_CORRECTION: f64 = 4.0;

/// Smaller requests say little about how the count differs from the truth.
const MIN_CORRECTING_TOKENS: u64 = 1_000;

/// The share of the window that is kept free for an answer at most, however long answers may be.
const MAX_RESERVED_SHARE: u64 = 2;

/// The meters of a session's conversations.
#[derive(Default)]
pub(crate) struct Meters {
    meters: Mutex<HashMap<Option<AgentId>, Meter>>,
    /// How much longer requests are than counted, by model.
    corrections: Mutex<HashMap<String, f64>>,
    /// What the session's own conversation measured last.
    last: Mutex<Option<ContextUse>>,
}

/// What is counted of one conversation.
struct Meter {
    model: String,
    counter: Counter,
    /// As [`crate::session::thread::Thread::rewrites`] when it was counted.
    rewrites: u64,
    /// The tokens of each message.
    sizes: Vec<u64>,
    parts: Parts,
    /// What the last message added: it is counted again when it has grown.
    last: Parts,
    fixed: Option<(FixedOf, Fixed)>,
    /// The last report, and what stood in every request when it came.
    noted: Option<(Reported, u64)>,
}

/// What decides what stands in every request.
struct FixedOf {
    modes: (Mode, Mode),
    cwd: AbsPath,
    can_diagnose: bool,
    catalog: Arc<Catalog>,
    in_force: Arc<EffectivePolicy>,
    agents: Arc<AgentTypes>,
    standing: Arc<Standing>,
    tools: Arc<Registry>,
}

impl FixedOf {
    fn of(conversation: &Conversation<'_>) -> Self {
        let session = conversation.session;
        let mode = session.mode();
        Self {
            modes: (mode, conversation.mode(mode)),
            cwd: session.cwd(),
            can_diagnose: session.can_diagnose(),
            catalog: session.catalog(),
            in_force: session.in_force(),
            agents: session.agents.types(),
            standing: session.standing(),
            tools: Arc::clone(&conversation.tools),
        }
    }

    fn is_same(&self, other: &Self) -> bool {
        self.modes == other.modes
            && self.cwd == other.cwd
            && self.can_diagnose == other.can_diagnose
            && Arc::ptr_eq(&self.catalog, &other.catalog)
            && Arc::ptr_eq(&self.in_force, &other.in_force)
            && Arc::ptr_eq(&self.agents, &other.agents)
            && Arc::ptr_eq(&self.standing, &other.standing)
            && Arc::ptr_eq(&self.tools, &other.tools)
    }
}

/// What stands in every request, in tokens.
#[derive(Clone, Copy, Default)]
struct Fixed {
    system: u64,
    tools: u64,
    memory: u64,
}

impl Fixed {
    fn total(self) -> u64 {
        self.system + self.tools + self.memory
    }
}

/// What was added to a conversation since it was last counted.
struct Added {
    rewrites: u64,
    from: usize,
    messages: Vec<Message>,
    /// Blocks of the first message that tell of a compaction.
    summary: usize,
    reported: Option<Reported>,
}

/// What a conversation takes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Measured {
    pub(crate) usage: ContextUse,
    /// What stands in every request.
    pub(crate) fixed: u64,
    /// How much longer requests of this model are than counted.
    pub(crate) correction: f64,
}

/// What a conversation takes, message by message.
pub(crate) struct Whole {
    pub(crate) measured: Measured,
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

impl Conversation<'_> {
    /// What the conversation takes.
    pub(crate) fn measure(&self, profile: &Profile) -> Measured {
        self.measure_by(profile, |_, measured| measured)
    }

    /// What the conversation takes, with the tokens of each message.
    pub(crate) fn measure_whole(&self, profile: &Profile) -> Whole {
        // Taken while measuring: somebody else may measure the conversation at any time.
        self.measure_by(profile, |meter, measured| Whole {
            measured,
            sizes: meter.sizes.clone(),
            counter: meter.counter,
        })
    }

    fn measure_by<T>(&self, profile: &Profile, look: impl FnOnce(&Meter, Measured) -> T) -> T {
        let meters = &self.session.meters;
        let known = lock(&meters.meters).remove(&self.agent);
        let mut meter = known.filter(|meter| meter.model == profile.model).unwrap_or_else(|| Meter {
            model: profile.model.clone(),
            counter: Counter::of(&profile.model),
            rewrites: 0,
            sizes: Vec::new(),
            parts: Parts::default(),
            last: Parts::default(),
            fixed: None,
            noted: None,
        });
        let added = self.read(|thread| {
            let is_same = meter.rewrites == thread.rewrites() && meter.sizes.len() <= thread.messages.len();
            let from = if is_same { meter.sizes.len().saturating_sub(1) } else { 0 };
            Added {
                rewrites: thread.rewrites(),
                from,
                messages: thread.messages.get(from..).unwrap_or_default().to_vec(),
                summary: thread.head_blocks(),
                reported: thread.reported().cloned(),
            }
        });
        let reported = meter.take_in(added);
        let fixed = meter.fixed(self);
        let measured = meters.read(&mut meter, fixed, reported, self.limits(profile));
        if self.agent.is_none() {
            *lock(&meters.last) = Some(measured.usage);
        }
        let seen = look(&meter, measured);
        lock(&meters.meters).insert(self.agent.clone(), meter);
        seen
    }

    fn limits(&self, profile: &Profile) -> (u64, Option<u64>, u64) {
        let preferences = &self.session.in_force().policy.preferences;
        let window = profile.context_window;
        let trigger = trigger(window, preferences.compact_threshold, profile.max_tokens);
        (window, preferences.auto_compact.then_some(trigger), reserved(window, profile.max_tokens))
    }
}

fn fixed(conversation: &Conversation<'_>, counter: Counter) -> Fixed {
    let (system, tools) = crate::context::fixed(conversation);
    // The whole is counted as it is sent, so that the parts add up to it.
    let (all, memory) = (counter.text(&system.text()), counter.text(&system.memory));
    Fixed {
        system: all.saturating_sub(memory),
        tools: tools.iter().map(|tool| counter.tool(tool)).sum(),
        memory: memory.min(all),
    }
}

/// Counts messages, of which the first blocks of number 0 tell of a compaction.
fn count(messages: &[Message], from: usize, summary: usize, counter: Counter) -> Vec<Parts> {
    let of = |(at, message)| counter.message(message, if from + at == 0 { summary } else { 0 });
    messages.iter().enumerate().map(of).collect()
}

impl Meter {
    fn forget(&mut self) {
        (self.sizes, self.parts, self.last) = (Vec::new(), Parts::default(), Parts::default());
        (self.fixed, self.noted) = (None, None);
    }

    /// What stands in every request, counted again when it may have become something else.
    fn fixed(&mut self, conversation: &Conversation<'_>) -> Fixed {
        let of = FixedOf::of(conversation);
        match &self.fixed {
            Some((known, fixed)) if known.is_same(&of) => *fixed,
            Some(_) | None => {
                let fixed = fixed(conversation, self.counter);
                self.fixed = Some((of, fixed));
                fixed
            }
        }
    }

    fn add(&mut self, parts: Parts) {
        self.sizes.push(parts.total());
        self.parts += parts;
        self.last = parts;
    }

    fn take_in(&mut self, added: Added) -> Option<Reported> {
        let Added { rewrites, from, messages, summary, reported } = added;
        if from == 0 {
            let (fixed, noted) = (self.fixed.take(), self.noted.take());
            self.forget();
            // What stands in every request is counted again when the history has become another one.
            if rewrites == self.rewrites {
                (self.fixed, self.noted) = (fixed, noted);
            }
        } else if self.sizes.pop().is_some() {
            self.parts -= self.last;
        }
        self.rewrites = rewrites;
        count(&messages, from, summary, self.counter).into_iter().for_each(|parts| self.add(parts));
        reported.filter(|reported| reported.model == self.model && reported.messages <= self.sizes.len())
    }
}

impl Meters {
    /// What the session's own conversation measured last; `None` before it was measured.
    pub(crate) fn last(&self) -> Option<ContextUse> {
        *lock(&self.last)
    }

    fn read(
        &self,
        meter: &mut Meter,
        fixed: Fixed,
        reported: Option<Reported>,
        (window, trigger, reserved): (u64, Option<u64>, u64),
    ) -> Measured {
        let (before, after) = match &reported {
            Some(reported) => meter.sizes.split_at(reported.messages),
            None => (&[][..], meter.sizes.as_slice()),
        };
        let (before, after): (u64, u64) = (before.iter().sum(), after.iter().sum());
        let known = meter.noted.as_ref().filter(|(noted, _)| Some(noted) == reported.as_ref());
        let (is_known, fixed_then) =
            known.map_or((false, fixed.total()), |(_, fixed_then)| (true, *fixed_then));
        let counted_then = fixed_then + before;
        // A report that is far from the count tells of something else, such as what was not cached.
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
        let Parts { user, assistant, results, images, summary } = meter.parts;
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
        Measured { usage, fixed: fixed.total(), correction }
    }
}

impl Session {
    /// How full the context window of the session's own conversation is now.
    ///
    /// # Errors
    /// When its model profile cannot be used.
    pub fn context_use(&self) -> Result<ContextUse, ModelError> {
        let conversation = Conversation::main(self);
        let models = self.models();
        let profile = models.profile(&conversation.model())?;
        Ok(conversation.measure(profile).usage)
    }
}
