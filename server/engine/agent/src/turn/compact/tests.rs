//! Plans, transcripts and headings.

use super::*;
use kode_config::command::compact::asked;
use kode_model::Message;

#[test]
fn only_a_prompt_that_is_the_command_asks_to_compact() {
    assert_eq!(asked("/compact"), Some(""));
    assert_eq!(asked("  /compact\tthe parser \n"), Some("the parser"));
    assert_eq!(asked("/compaction"), None);
    assert_eq!(asked("please /compact"), None);
}

#[test]
fn the_prompt_names_the_headings_in_their_order() {
    let prompt = include_str!("../../prompts/compact.md");
    let places: Vec<_> =
        summary::HEADINGS.iter().map(|heading| prompt.find(&format!("\n# {heading}\n")).unwrap()).collect();
    assert!(places.is_sorted());
    assert_eq!(summary::missing(prompt), Vec::<&str>::new());
}

fn text(text: &str) -> Block {
    Block::Text { text: text.to_owned() }
}

fn call(id: &str, path: &str) -> Block {
    let input = serde_json::json!({ "file_path": path });
    Block::ToolUse { id: id.into(), name: "Read".into(), input, input_error: None }
}

/// A prompt, then rounds of one call each.
fn rounds(count: usize) -> Vec<Message> {
    let mut messages = vec![Message::user(vec![text("go")])];
    for round in 0..count {
        messages.push(Message::assistant(vec![call(&format!("c{round}"), "a.rs")]));
        messages.push(Message::user(vec![Block::result(format!("c{round}"), "line\n".repeat(2_000), false)]));
    }
    messages
}

#[test]
fn the_threshold_is_a_share_of_the_window_or_what_leaves_room_for_an_answer() {
    use crate::context::meter::trigger;
    assert_eq!(trigger(128_000, 0.8, 16_000), 102_400);
    assert_eq!(trigger(128_000, 0.8, 32_000), 96_000);
    // An answer that is allowed to be as long as the window leaves half of it.
    assert_eq!(trigger(8_000, 0.8, 16_000), 4_000);
}

#[test]
fn a_fifth_is_kept_less_where_it_is_long_and_no_call_is_parted_from_its_result() {
    let messages = rounds(20);
    let sizes = vec![10; messages.len()];
    // 41 messages: nine are kept; the first of them would be an answer with its call.
    assert_eq!(plan::kept_from(&messages, &sizes, 0.2, 1_000, Some(0)), 31);
    assert_eq!(plan::kept_from(&messages, &sizes, 0.2, 45, Some(0)), 37);
    assert_eq!(plan::kept_from(&messages, &sizes, 0.2, 5, Some(0)), 41);
    for share in 0..=100 {
        for limit in [0, 15, 100, 1_000] {
            let from = plan::kept_from(&messages, &sizes, f64::from(share) / 100.0, limit, None);
            assert!(from == 0 || from == 41 || messages[from].role == kode_model::Role::Assistant);
        }
    }
    // The prompt that has just come is kept however long it is.
    let mut asked = messages;
    asked.push(Message::assistant(vec![text("done")]));
    asked.push(Message::user(vec![text("next")]));
    assert_eq!(plan::kept_from(&asked, &vec![10; asked.len()], 0.2, 5, Some(42)), 42);
}

#[test]
fn a_transcript_fits_and_leaves_out_repeated_reads_first() {
    let counter = Counter::of("test");
    let messages = rounds(10);
    let whole = transcript::transcript(&messages, 0, None, 1_000_000, counter);
    assert_eq!(whole.matches("left out: the file was read again later").count(), 9);
    assert_eq!(whole.matches("bytes left out").count(), 1, "the last read is cut to its ends");
    for tokens in [50, 200, 500] {
        let cut = transcript::transcript(&messages, 0, Some("what came before"), tokens, counter);
        assert!(counter.text(&cut) <= tokens * 5 / 4, "{} of {tokens}", counter.text(&cut));
        assert!(cut.contains("An older summary"), "{cut}");
    }
}

#[test]
fn headings_are_found_however_they_are_written() {
    let summary = "1. **Primary Request and Intent:**\nx\n## 2. technical concepts\n";
    let missing = summary::missing(summary);
    assert_eq!(missing.len(), 7);
    assert!(!missing.contains(&"Primary request and intent") && !missing.contains(&"Technical concepts"));
}

fn profile(context_window: u64) -> Profile {
    Profile { context_window, max_tokens: 1_000, ..Profile::demo() }
}

/// A conversation as it is before it is compacted, by an estimate.
fn before<'a>(
    profile: &'a Profile,
    messages: Vec<Message>,
    prompt: SentPrompt,
    steered: Vec<SentPrompt>,
) -> CompactionInput<'a> {
    use crate::context::meter::trigger;
    use kode_record::context::{ContextParts, ContextUse};
    let counter = Counter::of("test");
    let sizes: Vec<_> = messages.iter().map(|message| counter.blocks(&message.content)).collect();
    let window = profile.context_window;
    let usage = ContextUse {
        tokens: sizes.iter().sum(),
        source: kode_record::tokens::CountSource::Estimated,
        window,
        trigger: Some(trigger(window, 0.8, profile.max_tokens)),
        reserved: 1_000,
        parts: ContextParts::default(),
    };
    CompactionInput {
        profile,
        messages: messages.into(),
        sizes,
        counter,
        measured: Measurement { usage, fixed: 0, correction: 1.0 },
        prompt: Some(prompt),
        steered,
        first_instruction: None,
        summary: None,
        head_blocks: 0,
    }
}

/// A prompt with five attached files of some eight thousand tokens each.
fn with_files(at: Option<usize>) -> SentPrompt {
    let mut blocks = vec![text("PLEASE fix the parser")];
    blocks.extend((0..5).map(|file| text(&format!("<file {file}>\n{}", "some line\n".repeat(3_000)))));
    SentPrompt { at, blocks, words: 1 }
}

#[test]
fn what_is_attached_to_a_prompt_shares_what_the_words_of_the_user_leave() {
    let profile = profile(32_000);
    let said = |words: &str| SentPrompt { at: None, blocks: vec![text(words)], words: 1 };
    let steered = vec![said("NO, the lexer"), said("and USE tabs")];
    let before = before(&profile, rounds(2), with_files(None), steered);
    let blocks = HistoryHead::of(&before, 5, 1).with_summary("a summary").into_blocks();
    let reported: Vec<_> = blocks
        .iter()
        .map(|block| match block {
            Block::Text { text } => text.as_str(),
            other => panic!("{other:?}"),
        })
        .collect();
    assert!(before.counter.blocks(&blocks) < 32_000 / 4 + 500, "{}", before.counter.blocks(&blocks));
    for words in ["PLEASE fix the parser", "NO, the lexer", "and USE tabs"] {
        assert_eq!(reported.iter().filter(|text| **text == words).count(), 1, "{words}");
    }
    for file in 0..5 {
        assert!(reported.iter().any(|text| text.starts_with(&format!("<file {file}>"))), "{file}");
    }
    let place = |words: &str| reported.iter().position(|text| *text == words).unwrap();
    assert!(place("PLEASE fix the parser") < place("NO, the lexer"));
    assert!(place("NO, the lexer") < place("and USE tabs"));
}

#[test]
fn what_stands_where_it_was_is_not_reported_again() {
    let profile = profile(32_000);
    let kept = SentPrompt { at: Some(3), blocks: vec![text("kept")], words: 1 };
    let before = before(&profile, rounds(2), with_files(None), vec![kept]);
    let reported = format!("{:?}", HistoryHead::of(&before, 3, 1).with_summary("a summary").into_blocks());
    assert!(reported.contains("PLEASE fix the parser") && !reported.contains("kept"));
}

#[test]
fn without_a_summary_the_head_becomes_shorter_until_there_is_room() {
    let profile = profile(32_000);
    let mut messages = rounds(2);
    messages.push(Message::assistant(vec![text("done")]));
    let prompt = with_files(Some(messages.len()));
    messages.push(Message::user(prompt.blocks.clone()));
    // The prompt alone is longer than the window.
    let mut before = before(&profile, messages, prompt, vec![]);
    let after = without_summary(&before, "none".to_owned());
    assert!(after.tokens < before.limit(), "{} of {}", after.tokens, before.limit());
    assert!(format!("{:?}", after.head).contains("PLEASE fix the parser"));
    // The fixed text of each request leaves hardly any room.
    before.measured.fixed = before.limit() - 3_000;
    let after = without_summary(&before, "none".to_owned());
    assert!(after.tokens < before.limit(), "{} of {}", after.tokens, before.limit());
    // Nothing has room: the search ends.
    before.measured.fixed = before.limit();
    assert_eq!(without_summary(&before, "none".to_owned()).kept_from, before.messages.len());
}

#[test]
fn the_oldest_pictures_go_until_the_rest_fits() {
    let picture = |bytes: usize| kode_model::Image {
        media_type: "image/png".into(),
        data: "x".repeat(bytes),
        text: None,
    };
    let mut result = Block::result("c", "seen", false);
    if let Block::ToolResult { images, .. } = &mut result {
        images.extend([picture(5), picture(6)]);
    }
    let mut messages = vec![Message::user(vec![Block::Image(picture(4)), result, Block::Image(picture(7))])];
    let left_out = |limit| images::over(&messages, limit);
    assert_eq!([22, 21, 17, 13, 7, 6].map(left_out), [0, 1, 2, 2, 3, 4]);
    images::leave_out(&mut messages, 2);
    assert_eq!(images::bytes(&messages[0].content), 13);
    assert_eq!(messages[0].content[0], text(images::NOTE));
    let Block::ToolResult { content, images, .. } = &messages[0].content[1] else { panic!("no result") };
    assert_eq!((content.as_str(), images.len()), (format!("seen\n{}", images::NOTE).as_str(), 1));
}
