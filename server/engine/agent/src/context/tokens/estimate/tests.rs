//! How near the estimates are to the counts of real tokenizers.
//!
//! Rule: `samples.json` has texts of several kinds with the counts of OpenAI's `o200k` table and of Claude, before and
//! since version 4.7.

use serde::Deserialize;

use super::*;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Sample {
    kind: String,
    text: String,
    open: u64,
    claude: u64,
    newer_claude: u64,
}

fn samples() -> Vec<Sample> {
    serde_json::from_str(include_str!("../samples.json")).unwrap()
}

impl Sample {
    fn counted(&self, family: TokenizerFamily) -> u64 {
        match family {
            TokenizerFamily::Open => self.open,
            TokenizerFamily::Claude => self.claude,
            TokenizerFamily::NewerClaude => self.newer_claude,
        }
    }
}

const FAMILIES: [TokenizerFamily; 3] =
    [TokenizerFamily::Open, TokenizerFamily::Claude, TokenizerFamily::NewerClaude];

/// How far an estimate is off, in percent.
fn error(estimated: u64, counted: u64) -> u64 {
    estimated.abs_diff(counted) * 100 / counted
}

#[test]
fn each_kind_of_text_is_estimated_within_a_sixth() {
    for (sample, family) in samples().iter().flat_map(|sample| FAMILIES.map(|family| (sample, family))) {
        let (estimated, counted) = (estimate(&sample.text, family), sample.counted(family));
        assert!(
            error(estimated, counted) <= 16,
            "{} for {family:?}: {estimated} instead of {counted}",
            sample.kind
        );
    }
}

#[test]
fn texts_of_several_kinds_together_are_estimated_within_a_twentieth() {
    let samples = samples();
    for family in FAMILIES {
        let estimated: u64 = samples.iter().map(|sample| estimate(&sample.text, family)).sum();
        let counted: u64 = samples.iter().map(|sample| sample.counted(family)).sum();
        assert!(error(estimated, counted) <= 5, "{family:?}: {estimated} instead of {counted}");
    }
}

#[test]
fn the_name_of_a_model_says_its_family() {
    for (model, family) in [
        ("gpt-4o-mini", TokenizerFamily::Open),
        ("qwen3", TokenizerFamily::Open),
        ("claude-3-5-haiku-20241022", TokenizerFamily::Claude),
        ("claude-sonnet-4-20250514", TokenizerFamily::Claude),
        ("anthropic/claude-sonnet-4.5", TokenizerFamily::Claude),
        ("claude-opus-4-6", TokenizerFamily::Claude),
        ("claude-opus-4-7", TokenizerFamily::NewerClaude),
        ("eu.anthropic.claude-opus-4-8-v1:0", TokenizerFamily::NewerClaude),
        ("claude-sonnet-5", TokenizerFamily::NewerClaude),
        ("claude", TokenizerFamily::NewerClaude),
    ] {
        assert_eq!(TokenizerFamily::of(model), family, "{model}");
    }
}

#[test]
fn any_text_is_cut_to_its_end() {
    for text in ["", "\u{0}\u{7f}", "é", "Ééé9\t \r\n😀", "a\u{301}", "\u{fffd}---===", "HTTPServer2"] {
        let estimated = estimate(text, TokenizerFamily::Open);
        assert_eq!(estimated == 0, text.is_empty(), "{text:?}: {estimated}");
    }
    let twice = "one two ".repeat(2_000);
    assert_eq!(estimate(&twice, TokenizerFamily::Open), 4_000 * 98 / 100);
}
