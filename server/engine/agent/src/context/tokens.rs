//! How many tokens a text takes.
//!
//! Rule: three ways, the first that can be had: the model's own encoding where it is public, that of OpenAI's newer models
//! for all others, and an estimate by script. Tables are loaded when a conversation comes near a limit and not before;
//! until then, and for texts that are too long or that a table is slow at, the estimate counts.

use std::sync::OnceLock;

use tiktoken_rs::CoreBPE;

use kode_base::blocking;
use kode_model::{Block, Message, ToolDeclaration};

/// Longer texts are estimated.
const MAX_COUNTED_BYTES: usize = 1 << 20;

/// A text with more bytes than this between two spaces is estimated: a table takes very long for such a word.
const MAX_WORD_BYTES: usize = 1_024;

/// What a message takes beside its content: its role, its beginning and its end.
const MESSAGE_TOKENS: u64 = 4;

/// What a call or a result takes beside its content: its id, its kind.
const CALL_TOKENS: u64 = 12;

/// What a tool takes beside its texts.
const TOOL_TOKENS: u64 = 10;

/// What a picture takes: providers scale larger ones down to about this.
const IMAGE_TOKENS: u64 = 1_600;

/// Bytes of ASCII text to a token, in tenths.
const ASCII_TENTHS: u64 = 38;

/// Characters of two bytes (Latin with accents, Greek, Cyrillic, Hebrew, Arabic) to a token, in tenths.
const TWO_BYTE_TENTHS: u64 = 25;

/// Characters of three bytes (Chinese, Japanese, Korean, Indic) to a token, in tenths.
const THREE_BYTE_TENTHS: u64 = 10;

/// Characters of four bytes (pictures, rare letters) to a token, in tenths.
const FOUR_BYTE_TENTHS: u64 = 5;

/// A public encoding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Encoding {
    /// That of GPT-4 and GPT-3.5.
    Cl100k,
    /// That of GPT-4o and what came after it.
    O200k,
}

/// Counts tokens for one model.
#[derive(Clone, Copy)]
pub(crate) struct Counter {
    table: Option<&'static CoreBPE>,
}

/// What parts of messages take.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Parts {
    pub(crate) user: u64,
    pub(crate) assistant: u64,
    pub(crate) results: u64,
    pub(crate) images: u64,
    pub(crate) summary: u64,
}

impl Parts {
    pub(crate) fn total(&self) -> u64 {
        self.user + self.assistant + self.results + self.images + self.summary
    }
}

impl std::ops::AddAssign for Parts {
    fn add_assign(&mut self, other: Self) {
        self.user += other.user;
        self.assistant += other.assistant;
        self.results += other.results;
        self.images += other.images;
        self.summary += other.summary;
    }
}

impl std::ops::SubAssign for Parts {
    fn sub_assign(&mut self, other: Self) {
        self.user -= other.user;
        self.assistant -= other.assistant;
        self.results -= other.results;
        self.images -= other.images;
        self.summary -= other.summary;
    }
}

/// How many tables this process has loaded.
#[cfg(test)]
static LOADED: std::sync::atomic::AtomicUsize = std::sync::atomic::AtomicUsize::new(0);

impl Encoding {
    /// The encoding of a model; for those whose own is not public that of OpenAI's newer models.
    pub(crate) fn of(model: &str) -> Self {
        let name = model.rsplit('/').next().unwrap_or(model);
        let is_newer = ["gpt-4o", "gpt-4.1", "gpt-4.5"].iter().any(|newer| name.starts_with(newer));
        let is_older = ["gpt-4", "gpt-3.5", "text-embedding"].iter().any(|older| name.starts_with(older));
        if is_older && !is_newer { Self::Cl100k } else { Self::O200k }
    }

    /// The table; loading it takes a tenth of a second and some 45 MB for good. `None` when it cannot be read.
    fn table(self) -> Option<&'static CoreBPE> {
        static CL100K: OnceLock<Option<CoreBPE>> = OnceLock::new();
        static O200K: OnceLock<Option<CoreBPE>> = OnceLock::new();
        let (table, load): (&OnceLock<_>, fn() -> _) = match self {
            Self::Cl100k => (&CL100K, tiktoken_rs::cl100k_base),
            Self::O200k => (&O200K, tiktoken_rs::o200k_base),
        };
        let load = || {
            #[cfg(test)]
            LOADED.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
            load()
        };
        let load = || load().inspect_err(|error| tracing::warn!(%error, "tokens can only be estimated")).ok();
        table.get_or_init(load).as_ref()
    }
}

impl Counter {
    /// One that loads nothing.
    pub(crate) fn estimating() -> Self {
        Self { table: None }
    }

    /// One for a model, by a table if there is one.
    pub(crate) async fn of(model: &str) -> Self {
        let encoding = Encoding::of(model);
        Self { table: blocking(move || encoding.table()).await }
    }

    /// Whether it goes by a table.
    pub(crate) fn is_exact(&self) -> bool {
        self.table.is_some()
    }

    /// The tokens of a text.
    pub(crate) fn text(&self, text: &str) -> u64 {
        match self.table {
            Some(table) if is_countable(text) => {
                u64::try_from(table.count_ordinary(text)).unwrap_or(u64::MAX)
            }
            Some(_) | None => estimate(text),
        }
    }

    /// The tokens of a message. Its first `summary` blocks are counted as a summary.
    pub(crate) fn message(&self, message: &Message, summary: usize) -> Parts {
        let mut parts = Parts::default();
        for (at, block) in message.content.iter().enumerate() {
            let mut counted = self.block(block, message.role == kode_model::Role::Assistant);
            if at < summary {
                counted = Parts { summary: counted.total(), ..Parts::default() };
            }
            parts += counted;
        }
        let role = match message.role {
            kode_model::Role::User => &mut parts.user,
            kode_model::Role::Assistant => &mut parts.assistant,
        };
        *role += MESSAGE_TOKENS;
        parts
    }

    /// The tokens of blocks.
    pub(crate) fn blocks(&self, blocks: &[Block]) -> u64 {
        blocks.iter().map(|block| self.block(block, false).total()).sum()
    }

    /// The tokens of a tool's declaration.
    pub(crate) fn tool(&self, tool: &ToolDeclaration) -> u64 {
        let texts = self.text(&tool.name) + self.text(&tool.description);
        texts + self.text(&tool.input_schema.to_string()) + TOOL_TOKENS
    }

    fn block(&self, block: &Block, is_assistant: bool) -> Parts {
        let said = |tokens| match is_assistant {
            true => Parts { assistant: tokens, ..Parts::default() },
            false => Parts { user: tokens, ..Parts::default() },
        };
        match block {
            Block::Text { text } | Block::Thinking { thinking: text, .. } => said(self.text(text)),
            Block::RedactedThinking { data } => said(estimate(data)),
            Block::Image(_) => Parts { images: IMAGE_TOKENS, ..Parts::default() },
            Block::ToolUse { name, input, .. } => {
                said(self.text(name) + self.text(&input.to_string()) + CALL_TOKENS)
            }
            Block::ToolResult { content, images, .. } => Parts {
                results: self.text(content) + CALL_TOKENS,
                images: u64::try_from(images.len()).unwrap_or(u64::MAX).saturating_mul(IMAGE_TOKENS),
                ..Parts::default()
            },
        }
    }
}

fn is_countable(text: &str) -> bool {
    text.len() <= MAX_COUNTED_BYTES && text.split_ascii_whitespace().all(|word| word.len() <= MAX_WORD_BYTES)
}

/// The tokens of a text by its length: of each script as many bytes or characters to a token as is usual in source code
/// and prose.
pub(crate) fn estimate(text: &str) -> u64 {
    let (mut ascii, mut two, mut three, mut four) = (0_u64, 0_u64, 0_u64, 0_u64);
    for byte in text.bytes() {
        match byte {
            0..=0x7f => ascii += 1,
            0xc0..=0xdf => two += 1,
            0xe0..=0xef => three += 1,
            0xf0..=0xff => four += 1,
            // Bytes that go on a character.
            0x80..=0xbf => {}
        }
    }
    let tokens = |count: u64, tenths: u64| (count * 10).div_ceil(tenths);
    tokens(ascii, ASCII_TENTHS)
        + tokens(two, TWO_BYTE_TENTHS)
        + tokens(three, THREE_BYTE_TENTHS)
        + tokens(four, FOUR_BYTE_TENTHS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn models_are_counted_by_their_encoding_else_by_the_newer_one_else_estimated() {
        for (model, encoding) in [
            ("gpt-4-turbo", Encoding::Cl100k),
            ("openai/gpt-3.5-turbo", Encoding::Cl100k),
            ("gpt-4o-mini", Encoding::O200k),
            ("gpt-4.1", Encoding::O200k),
            ("o3", Encoding::O200k),
            ("claude-sonnet-5", Encoding::O200k),
            ("qwen3", Encoding::O200k),
        ] {
            assert_eq!(Encoding::of(model), encoding, "{model}");
        }
        // The published counts of this sentence.
        let sentence = "お誕生日おめでとう";
        assert_eq!(Counter::of("gpt-4").await.text(sentence), 9);
        assert_eq!(Counter::of("gpt-4o").await.text(sentence), 8);
        assert!(!Counter::estimating().is_exact());
        assert_eq!(Counter::estimating().text(sentence), 9);
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn each_table_is_loaded_once_for_all_who_count() {
        let models = ["gpt-4", "gpt-4o", "claude", "gpt-3.5-turbo"];
        let asked = models.into_iter().cycle().take(16).map(|model| tokio::spawn(Counter::of(model)));
        for counter in futures::future::join_all(asked).await {
            assert!(counter.unwrap().is_exact());
        }
        assert_eq!(LOADED.load(std::sync::atomic::Ordering::SeqCst), 2);
    }

    #[tokio::test]
    async fn long_texts_and_long_words_are_estimated() {
        let counter = Counter::of("gpt-4o").await;
        for text in ["a ".repeat(MAX_COUNTED_BYTES), "ab".repeat(MAX_WORD_BYTES)] {
            assert_eq!(counter.text(&text), estimate(&text));
        }
    }

    #[tokio::test]
    async fn estimates_are_near_the_count_for_code_and_for_prose() {
        let counter = Counter::of("gpt-4o").await;
        let chinese = "模型的上下文窗口有限，因此必须在对话过长之前将其压缩。".repeat(20);
        let russian = "Окно контекста модели ограничено, поэтому разговор надо сжимать. ".repeat(20);
        for text in [include_str!("tokens.rs"), include_str!("../prompts/base.md"), &chinese, &russian] {
            let (counted, estimated) = (counter.text(text), estimate(text));
            assert!(
                estimated * 10 >= counted * 7 && estimated * 10 <= counted * 18,
                "{estimated} for {counted}"
            );
        }
    }

    #[test]
    fn roles_calls_and_pictures_count_beside_their_texts() {
        let counter = Counter::estimating();
        let message = Message::user(vec![Block::Text { text: "abcd".into() }]);
        assert_eq!(counter.message(&message, 0).user, MESSAGE_TOKENS + 2);
        let call = Block::ToolUse {
            id: "c".into(),
            name: "Read".into(),
            input: serde_json::json!({}),
            input_error: None,
        };
        let parts = counter.message(&Message::assistant(vec![call]), 0);
        assert_eq!(parts.assistant, MESSAGE_TOKENS + CALL_TOKENS + 3);
        let image = kode_model::Image { media_type: "image/png".into(), data: "x".repeat(100_000) };
        let result = Block::ToolResult {
            tool_use_id: "c".into(),
            content: String::new(),
            images: vec![image],
            is_error: false,
        };
        let parts = counter.message(&Message::user(vec![result]), 0);
        assert_eq!((parts.results, parts.images), (CALL_TOKENS, IMAGE_TOKENS));
    }
}
