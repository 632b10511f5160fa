//! Whatever leaves memory, the transcript is the one sequence it would be if nothing did.

use proptest::prelude::*;

use super::*;
use crate::state::new_item;
use kode_base::ids::TurnId;
use kode_journal::SHELF;
use kode_record::event::ItemBody;

#[derive(Clone, Debug)]
enum Step {
    Add(usize),
    /// Puts the item at about this part of the whole again, as something else.
    Replace(f64),
    Change(f64),
    Cut(f64),
    Append,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => (1..60_usize).prop_map(Step::Add),
        1 => (0.0..1.0).prop_map(Step::Replace),
        1 => (0.0..1.0).prop_map(Step::Change),
        2 => (0.0..1.0).prop_map(Step::Cut),
        1 => Just(Step::Append),
    ]
}

fn item(text: String) -> Arc<Item> {
    new_item(&TurnId::from_external("turn_1"), ItemBody::user_message(text)).into()
}

fn place(part: f64, count: usize) -> usize {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, clippy::cast_precision_loss)]
    let place = (part * count as f64) as usize;
    place
}

fn whole(transcript: &Transcript) -> Vec<Arc<Item>> {
    transcript.part(0..transcript.count()).read().unwrap()
}

fn check(transcript: &Transcript, expected: &[Arc<Item>]) {
    assert_eq!(whole(transcript), expected);
    assert_eq!(transcript.count(), expected.len());
    assert!(transcript.newest().len() >= expected.len().min(PAGE), "what is looked at is in memory");
    assert!(transcript.newest().len() < KEPT + 2 * PAGE + 60, "{} are in memory", transcript.newest().len());
    let backwards: Vec<_> = transcript.backwards().collect();
    assert!(backwards.iter().rev().eq(expected));
    assert_eq!(transcript.began(), expected.first().map(|item| item.timestamp));
    for (at, item) in expected.iter().enumerate().step_by(7) {
        let page = match transcript.before(&item.id, 9) {
            Ok(part) => part,
            Err(older) => older.before(&item.id, 9).unwrap().unwrap(),
        };
        let from = at.saturating_sub(9);
        assert_eq!(page.more, from > 0);
        assert_eq!(page.read().unwrap(), expected[from..at]);
        assert_eq!(transcript.at(at).as_ref(), Some(item));
    }
    let unknown = ItemId::generate();
    assert!(transcript.before(&unknown, 9).unwrap_err().before(&unknown, 9).unwrap().is_none());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn a_transcript_is_what_was_put_into_it(steps in proptest::collection::vec(step(), 1..14)) {
        let folder = tempfile::tempdir().unwrap();
        let shelf = Arc::new(Shelf::create(&folder.path().join(SHELF)).unwrap());
        let (mut transcript, mut expected) = (Transcript::default(), Vec::new());
        transcript.attach(&shelf);
        let mut cut: Option<(NewestItems, Vec<Arc<Item>>)> = None;
        for (number, step) in steps.iter().enumerate() {
            match step {
                Step::Add(count) => for at in 0..*count {
                    let item = item(format!("{number} {at}"));
                    expected.push(item.clone());
                    transcript.put(item);
                },
                Step::Replace(part) | Step::Change(part) => {
                    let at = place(*part, expected.len());
                    let Some(known) = expected.get_mut(at) else { continue };
                    Arc::make_mut(known).body = ItemBody::user_message(format!("again {number}"));
                    if matches!(step, Step::Replace(_)) {
                        transcript.put(Arc::clone(known));
                    } else {
                        let changed = transcript.change(&known.id, |item| item.body.clone_from(&known.body));
                        assert_eq!(changed.as_ref(), Some(&*known));
                    }
                }
                Step::Cut(part) => {
                    let at = place(*part, expected.len());
                    assert!(transcript.can_split(at));
                    cut = Some((transcript.split_off(at), expected.split_off(at)));
                }
                Step::Append => if let Some((tail, items)) = cut.take() {
                    transcript.append(tail);
                    expected.extend(items);
                },
            }
            check(&transcript, &expected);
        }
        // Reading the written form gives the same.
        let written = serde_json::to_string(&transcript).unwrap();
        let mut read: Transcript = serde_json::from_str(&written).unwrap();
        read.attach(&shelf);
        check(&read, &expected);
    }
}

#[test]
fn a_transcript_that_is_cut_whole_begins_when_it_did_once_it_is_appended() {
    let folder = tempfile::tempdir().unwrap();
    let mut transcript = Transcript::default();
    transcript.attach(&Arc::new(Shelf::create(&folder.path().join(SHELF)).unwrap()));
    let items: Vec<_> = (0..2 * KEPT).map(|number| item(number.to_string())).collect();
    items.iter().cloned().for_each(|item| transcript.put(item));
    let tail = transcript.split_off(0);
    transcript.append(tail);
    check(&transcript, &items);
}

#[test]
fn what_is_unfinished_stays_in_memory_and_without_a_shelf_everything_does() {
    let folder = tempfile::tempdir().unwrap();
    let mut transcript = Transcript::default();
    transcript.attach(&Arc::new(Shelf::create(&folder.path().join(SHELF)).unwrap()));
    let growing = ItemBody::Thinking { text: String::new(), complete: false };
    let growing = Arc::new(new_item(&TurnId::generate(), growing));
    transcript.put(Arc::clone(&growing));
    for number in 0..2 * KEPT {
        transcript.put(item(number.to_string()));
    }
    assert_eq!(transcript.newest().len(), 2 * KEPT + 1);
    assert_eq!(transcript.unfinished().collect::<Vec<_>>(), [&growing]);
    transcript.change(&growing.id, |item| item.body = ItemBody::user_message("whole"));
    transcript.put(item("one more".to_owned()));
    assert!(transcript.newest().len() < KEPT + PAGE);
    let mut unshelved = Transcript::default();
    (0..4 * KEPT).for_each(|number| unshelved.put(item(number.to_string())));
    assert_eq!(unshelved.newest().len(), 4 * KEPT);
}

#[test]
fn items_that_cannot_be_read_back_are_reported_and_not_made_up() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(SHELF);
    let shelf = Arc::new(Shelf::create(&path).unwrap());
    let mut transcript = Transcript::default();
    transcript.attach(&shelf);
    (0..4 * KEPT).for_each(|number| transcript.put(item(number.to_string())));
    let mut bytes = std::fs::read(&path).unwrap();
    bytes[10] ^= 1;
    std::fs::write(&path, bytes).unwrap();
    assert!(transcript.part(0..transcript.count()).read().is_err());
    assert!(shelf.is_damaged());
    assert!(!transcript.can_split(1));
}
