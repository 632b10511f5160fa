//! The head of a Markdown file: what stands between two lines of `---`.
//!
//! Rule: unknown keys are left alone, and a key of ours with a value that makes no sense is an error that names it.

use serde::Deserialize;

/// What skills and commands say of themselves.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct FrontMatter {
    pub(super) description: Option<String>,
    pub(super) when_to_use: Option<String>,
    pub(super) argument_hint: Option<String>,
    pub(super) arguments: Vec<String>,
    pub(super) argument_base: Option<usize>,
    pub(super) disable_model_invocation: bool,
}

/// As it is written.
#[derive(Default, Deserialize)]
#[serde(rename_all = "kebab-case", default)]
struct Written {
    description: Option<Text>,
    #[serde(alias = "when_to_use")]
    when_to_use: Option<Text>,
    argument_hint: Option<Text>,
    arguments: Option<Text>,
    argument_base: Option<u8>,
    disable_model_invocation: Option<bool>,
}

/// A text, or a list that others write where a text would do.
#[derive(Deserialize)]
#[serde(untagged)]
enum Text {
    One(String),
    Many(Vec<String>),
}

impl Text {
    /// The text; a list is what its notation means to people, `[issue] [priority]`.
    fn shown(self) -> String {
        match self {
            Self::One(text) => text,
            Self::Many(texts) => texts.iter().map(|text| format!("[{text}]")).collect::<Vec<_>>().join(" "),
        }
    }

    fn names(self) -> Vec<String> {
        match self {
            Self::One(text) => text.split_whitespace().map(str::to_owned).collect(),
            Self::Many(texts) => texts,
        }
    }
}

impl FrontMatter {
    /// Reads a head.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        if text.trim().is_empty() {
            return Ok(Self::default());
        }
        let written: Written = serde_saphyr::from_str(text)
            .map_err(|error| format!("its front matter cannot be read: {error}"))?;
        if written.argument_base.is_some_and(|base| base > 1) {
            return Err("its front matter has an `argument-base` that is neither 0 nor 1".to_owned());
        }
        Ok(Self {
            description: written.description.map(Text::shown),
            when_to_use: written.when_to_use.map(Text::shown),
            argument_hint: written.argument_hint.map(Text::shown),
            arguments: written.arguments.map(Text::names).unwrap_or_default(),
            argument_base: written.argument_base.map(usize::from),
            disable_model_invocation: written.disable_model_invocation.unwrap_or_default(),
        })
    }
}

/// The head of a file, if it has one, and the rest.
pub(crate) fn split(text: &str) -> (Option<&str>, &str) {
    let first_line = |text: &str| text.split_inclusive('\n').next().map(str::len).unwrap_or_default();
    let begin = first_line(text);
    if text[..begin].trim_end() != "---" {
        return (None, text);
    }
    let mut at = begin;
    while at < text.len() {
        let end = at + first_line(&text[at..]);
        if text[at..end].trim_end() == "---" {
            return (Some(&text[begin..at]), &text[end..]);
        }
        at = end;
    }
    (None, text)
}
