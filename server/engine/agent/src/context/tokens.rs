//! Estimates the tokens of messages and tools.
//!
//! Rule: an estimate by the kinds of text, at the prices of the model's family of tokenizers. The meter corrects it by the
//! ratio of reported to estimated tokens, so that its error ends with the provider's first report.

mod estimate;

use kode_model::{Block, Image, Message, ToolDeclaration};

use estimate::{TokenizerFamily, estimate};

/// The tokens of a message besides its content: its role, its beginning and its end.
const MESSAGE_TOKENS: u64 = 4;

/// The tokens of a call or a result besides its content: its id, its kind.
const CALL_TOKENS: u64 = 12;

/// The tokens of a tool besides its texts.
const TOOL_TOKENS: u64 = 10;

/// The tokens of an image: providers scale larger ones down to about this.
const IMAGE_TOKENS: u64 = 1_600;

/// Bytes of encrypted reasoning to a token.
const HIDDEN_BYTES: u64 = 4;

/// Estimates tokens for one model.
#[derive(Clone, Copy)]
pub(crate) struct Counter {
    family: TokenizerFamily,
}

/// The tokens of the parts of messages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct TokenParts {
    pub(crate) user: u64,
    pub(crate) assistant: u64,
    pub(crate) results: u64,
    pub(crate) images: u64,
    pub(crate) summary: u64,
}

impl TokenParts {
    pub(crate) fn total(&self) -> u64 {
        self.user + self.assistant + self.results + self.images + self.summary
    }
}

impl std::ops::AddAssign for TokenParts {
    fn add_assign(&mut self, other: Self) {
        self.user += other.user;
        self.assistant += other.assistant;
        self.results += other.results;
        self.images += other.images;
        self.summary += other.summary;
    }
}

impl std::ops::SubAssign for TokenParts {
    fn sub_assign(&mut self, other: Self) {
        self.user -= other.user;
        self.assistant -= other.assistant;
        self.results -= other.results;
        self.images -= other.images;
        self.summary -= other.summary;
    }
}

impl Counter {
    /// The counter for a model, by its name.
    pub(crate) fn of(model: &str) -> Self {
        Self { family: TokenizerFamily::of(model) }
    }

    /// The tokens of a text.
    pub(crate) fn text(self, text: &str) -> u64 {
        estimate(text, self.family)
    }

    /// The tokens of a message. Its first `summary` blocks are counted as a summary.
    pub(crate) fn message(self, message: &Message, summary: usize) -> TokenParts {
        let mut parts = TokenParts::default();
        for (at, block) in message.content.iter().enumerate() {
            let mut counted = self.block(block, message.role == kode_model::Role::Assistant);
            if at < summary {
                counted = TokenParts { summary: counted.total(), ..TokenParts::default() };
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
    pub(crate) fn blocks(self, blocks: &[Block]) -> u64 {
        blocks.iter().map(|block| self.block(block, false).total()).sum()
    }

    /// The tokens of a tool's declaration.
    pub(crate) fn tool(self, tool: &ToolDeclaration) -> u64 {
        let texts = self.text(&tool.name) + self.text(&tool.description);
        texts + self.text(tool.input_schema.json()) + TOOL_TOKENS
    }

    /// The tokens of an image or a document: providers count its text, and each page as an image.
    fn image(self, image: &Image) -> u64 {
        let text = image.text.as_deref().map_or(0, |text| self.text(text));
        let pages = u64::try_from(image.pages()).unwrap_or(u64::MAX).max(1);
        text.saturating_add(pages.saturating_mul(IMAGE_TOKENS))
    }

    fn block(self, block: &Block, is_assistant: bool) -> TokenParts {
        let said = |tokens| match is_assistant {
            true => TokenParts { assistant: tokens, ..TokenParts::default() },
            false => TokenParts { user: tokens, ..TokenParts::default() },
        };
        match block {
            Block::Text { text } | Block::Thinking { thinking: text, .. } => said(self.text(text)),
            Block::RedactedThinking { data } => {
                said(u64::try_from(data.len()).unwrap_or(u64::MAX).div_ceil(HIDDEN_BYTES))
            }
            Block::Image(image) => TokenParts { images: self.image(image), ..TokenParts::default() },
            Block::ToolUse { name, input, .. } => {
                said(self.text(name) + self.text(&input.to_string()) + CALL_TOKENS)
            }
            Block::ToolResult { content, images, .. } => TokenParts {
                results: self.text(content) + CALL_TOKENS,
                images: images.iter().map(|image| self.image(image)).sum(),
                ..TokenParts::default()
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn roles_calls_and_pictures_count_beside_their_texts() {
        let counter = Counter::of("gpt-4o");
        let message = Message::user(vec![Block::Text { text: "abcd".into() }]);
        assert_eq!(counter.message(&message, 0).user, MESSAGE_TOKENS + 1);
        let call = Block::ToolUse {
            id: "c".into(),
            name: "Read".into(),
            input: serde_json::json!({}),
            input_error: None,
        };
        let parts = counter.message(&Message::assistant(vec![call]), 0);
        assert_eq!(parts.assistant, MESSAGE_TOKENS + CALL_TOKENS + 2);
        let image =
            kode_model::Image { media_type: "image/png".into(), data: "x".repeat(100_000), text: None };
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
