//! The pictures of prompts in a journal: each is written once, and by its hash wherever it comes again.
//!
//! Rule: memory has pictures, never their hashes: a record that was read has what it had when it was written, or says that
//! a damaged line has cost it. What stands in a journal whole stays readable.

use std::collections::{HashMap, HashSet};

use sha2::{Digest, Sha256};

use crate::input::Part;
use crate::journal::record::Record;
use crate::model::{Block, Image};
use crate::session::queue::QueueChange;

/// What stands before the hash, in the place of the data. No base64 has a colon.
const REFERENCE: &str = "sha256:";

/// What the model gets in the place of a picture that is lost.
const LOST: &str = "[A picture that was here is lost: a line of the session's journal was damaged.]";

/// Puts the hash in the place of every picture that is `known`. Answers the hashes of the others.
pub(super) fn refer(record: &mut Record, known: impl FnOnce() -> HashSet<String>) -> Vec<String> {
    let images = images(record);
    if images.is_empty() {
        return Vec::new();
    }
    let (known, mut new) = (known(), Vec::new());
    for image in images {
        let reference = reference(image);
        if known.contains(&reference) {
            image.data = reference;
        } else {
            new.push(reference);
        }
    }
    new
}

/// Puts the picture in the place of every hash. `seen` says where the pictures of the records before are, `at` where this
/// one is, and `again` reads a record anew: pictures are too large to be kept.
pub(super) fn restore(
    record: &mut Record,
    at: u64,
    seen: &mut HashMap<String, u64>,
    again: impl Fn(u64) -> Option<Record>,
) {
    let mut lost = false;
    for image in images(record) {
        if !is_reference(image) {
            seen.entry(reference(image)).or_insert(at);
            continue;
        }
        let known = seen.get(&image.data).and_then(|at| again(*at));
        match known.and_then(|mut known| picture(&mut known, &image.data)) {
            Some(data) => image.data = data,
            None => lost = true,
        }
    }
    if lost {
        let (parts, content) = lists(record);
        if let Some(parts) = parts {
            parts.retain(|part| !matches!(part, Part::Image(image) if is_reference(image)));
        }
        for block in content.into_iter().flatten() {
            if matches!(block, Block::Image(image) if is_reference(image)) {
                *block = Block::Text { text: LOST.to_owned() };
            }
        }
    }
}

/// The picture with this hash in a record that has it whole.
fn picture(record: &mut Record, wanted: &str) -> Option<String> {
    let mut whole = images(record).into_iter().filter(|image| !is_reference(image));
    whole.find(|image| reference(image) == wanted).map(|image| std::mem::take(&mut image.data))
}

fn reference(image: &Image) -> String {
    let hash: String = Sha256::digest(&image.data).iter().map(|byte| format!("{byte:02x}")).collect();
    format!("{REFERENCE}{hash}")
}

fn is_reference(image: &Image) -> bool {
    image.data.starts_with(REFERENCE)
}

fn images(record: &mut Record) -> Vec<&mut Image> {
    let (parts, content) = lists(record);
    let of_parts = parts.into_iter().flatten().filter_map(|part| match part {
        Part::Image(image) => Some(image),
        Part::Mention { .. }
        | Part::Symbol { .. }
        | Part::Diagnostics { .. }
        | Part::Diff { .. }
        | Part::Session { .. }
        | Part::Resource { .. }
        | Part::Selection { .. }
        | Part::Pasted { .. }
        | Part::Editor(_) => None,
    });
    let of_content = content.into_iter().flatten().filter_map(|block| match block {
        Block::Image(image) => Some(image),
        Block::Text { .. }
        | Block::Thinking { .. }
        | Block::RedactedThinking { .. }
        | Block::ToolUse { .. }
        | Block::ToolResult { .. } => None,
    });
    of_parts.chain(of_content).collect()
}

/// What a record has of a prompt.
fn lists(record: &mut Record) -> (Option<&mut Vec<Part>>, Option<&mut Vec<Block>>) {
    match record {
        Record::Queued { parts, content, .. }
        | Record::Prompt { parts, content, .. }
        | Record::Steered { parts, content, .. }
        | Record::QueueChanged { change: QueueChange::Edited { parts, content, .. } } => {
            (Some(parts), Some(content))
        }
        Record::Attached { content, .. } | Record::Commanded { content, .. } => (None, Some(content)),
        Record::QueueChanged {
            change: QueueChange::Removed { .. } | QueueChange::Moved { .. } | QueueChange::Promoted { .. },
        }
        | Record::Opened { .. }
        | Record::Drafted { .. }
        | Record::Titled { .. }
        | Record::Archived { .. }
        | Record::Answer { .. }
        | Record::Streamed { .. }
        | Record::Grown { .. }
        | Record::Item { .. }
        | Record::CallMoved { .. }
        | Record::CallEnded { .. }
        | Record::Remark { .. }
        | Record::PromptRefused { .. }
        | Record::Compacted { .. }
        | Record::Decided { .. }
        | Record::Granted { .. }
        | Record::Equipped { .. }
        | Record::HooksBrought { .. }
        | Record::Begun { .. }
        | Record::Asked { .. }
        | Record::Replied { .. }
        | Record::Todos { .. }
        | Record::TurnEnded { .. }
        | Record::Charged { .. }
        | Record::Configured { .. }
        | Record::Edits { .. }
        | Record::Writing { .. }
        | Record::Delivering { .. }
        | Record::Rewound { .. }
        | Record::Restored { .. }
        | Record::Unwound { .. }
        | Record::Delegated { .. }
        | Record::Background { .. }
        | Record::Resumed { .. }
        | Record::InAgent { .. } => (None, None),
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;
    use crate::event::ItemBody;
    use crate::ids::TurnId;
    use crate::journal::{Journal, read};
    use crate::session::new_item;
    use crate::turn::limit::TurnOptions;

    fn records(image: &Image) -> [Record; 2] {
        let turn = TurnId::from_external("turn_1");
        let item = new_item(&turn, ItemBody::user_message("see".to_owned()));
        let id = item.id.clone();
        let parts = vec![Part::Image(image.clone())];
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
        let image = Image { media_type: "image/png".into(), data: "QUJD".repeat(1_000) };
        let records = records(&image);
        let journal = Journal::open(&path).unwrap();
        records.iter().for_each(|record| journal.append(record).unwrap());
        let text = std::fs::read_to_string(&path).unwrap();
        assert_eq!(text.matches(&image.data).count(), 1);
        assert_eq!(read(&path).unwrap().records, records);
        // The next process knows nothing of what this one wrote.
        journal.release();
        Journal::open(&path).unwrap().append(&records[1]).unwrap();
        let all = [records.to_vec(), vec![records[1].clone()]].concat();
        assert_eq!(read(&path).unwrap().records, all);
        // Without the line that has it, the picture is lost, and that is said.
        let last: Vec<_> = text.lines().skip(1).collect();
        std::fs::File::create(&path).unwrap().write_all(format!("{}\n", last.join("\n")).as_bytes()).unwrap();
        let Record::Attached { content, .. } = &read(&path).unwrap().records[0] else { panic!("attached") };
        assert_eq!(content, &[Block::Text { text: LOST.to_owned() }]);
    }

    #[test]
    fn older_journals_with_the_same_picture_in_every_record_are_read() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("journal.jsonl");
        let image = Image { media_type: "image/png".into(), data: "QUJD".into() };
        let records = records(&image);
        for record in &records {
            // A writer of its own for each line writes each picture whole.
            Journal::open(&path).unwrap().append(record).unwrap();
        }
        assert_eq!(std::fs::read_to_string(&path).unwrap().matches("QUJD").count(), 2);
        assert_eq!(read(&path).unwrap().records, records);
    }
}
