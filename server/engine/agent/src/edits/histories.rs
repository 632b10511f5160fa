//! Random histories of a session against a model that knows only whose each character is.
//!
//! Rule: whatever agent, user, editor, disk and restarts do, no character of the user's is lost, the ledger is what the
//! documents are, and without the agent's changes there is just what the user wrote.

use std::collections::BTreeSet;

use proptest::prelude::*;

use super::*;
use crate::edits::review::AmendedPolicy;
use crate::edits::tests::{EditBench, edit};
use kode_journal as journal;
use kode_testing::text::Meanwhile;
use kode_text::edit::ledger::review::Selection;

const NAMES: [&str; 3] = ["one.txt", "two.txt", "closed.txt"];

/// Something that happens. Numbers are places, taken modulo what there is.
#[derive(Clone, Debug)]
enum Happening {
    Agent { file: usize, places: Vec<(usize, usize, usize)>, meanwhile: Option<(usize, usize)> },
    Typing { file: usize, place: usize, removed: usize, typed: usize, exactly: bool },
    EditorUndo { file: usize },
    Save { file: usize, by_user: bool },
    CloseAndOpen { file: usize },
    Outside { place: usize, typed: usize },
    Resolve { hunk: usize, how_many: usize, action: ReviewAction, force: bool },
    Revert,
    Restart,
}

fn happening() -> impl Strategy<Value = Happening> {
    let edit = || (0..200usize, 0..8usize, 0..6usize);
    let action = prop_oneof![
        Just(ReviewAction::Accept),
        Just(ReviewAction::Reject),
        Just(ReviewAction::Keep),
        Just(ReviewAction::Undo)
    ];
    let meanwhile = proptest::option::weighted(0.3, (0..200usize, 1..4usize));
    prop_oneof![
        4 => (0..3usize, proptest::collection::vec(edit(), 1..4), meanwhile)
            .prop_map(|(file, places, meanwhile)| Happening::Agent { file, places, meanwhile }),
        6 => (0..2usize, edit(), any::<bool>()).prop_map(|(file, (place, removed, typed), exactly)| {
            Happening::Typing { file, place, removed, typed, exactly }
        }),
        2 => (0..2usize).prop_map(|file| Happening::EditorUndo { file }),
        1 => (0..2usize, any::<bool>()).prop_map(|(file, by_user)| Happening::Save { file, by_user }),
        1 => (0..2usize).prop_map(|file| Happening::CloseAndOpen { file }),
        1 => (0..200usize, 1..5usize).prop_map(|(place, typed)| Happening::Outside { place, typed }),
        4 => (0..20usize, 1..4usize, action, any::<bool>()).prop_map(|(hunk, how_many, action, force)| {
            Happening::Resolve { hunk, how_many, action, force }
        }),
        1 => Just(Happening::Revert),
        1 => Just(Happening::Restart),
    ]
}

/// The model's knowledge: each character comes once, and its code identifies its owner.
#[derive(Default)]
struct Model {
    next: u32,
    /// Characters of the files as they were, and of the user's, that the user has not deleted.
    kept: BTreeSet<char>,
    /// The agent's characters that the user has put in the text with an editor's own means.
    adopted: BTreeSet<char>,
    /// Characters that the user deleted by doing just what a hunk does: they come back with the undo of that.
    either: BTreeSet<char>,
    /// For each document the texts an editor would go back to.
    undo: [Vec<String>; 2],
}

// Of the private use area: each is a word of its own to a comparison of words.
const ORIGINAL: u32 = 0xe000;
const AGENT: u32 = 0xe800;
const USER: u32 = 0xf000;

fn is_agents(char: char) -> bool {
    (AGENT..USER).contains(&u32::from(char))
}

impl Model {
    fn take(&mut self, from: u32, count: usize) -> String {
        // A line break now and then, so that there are lines; it has no owner.
        let mut text = String::new();
        for _ in 0..count {
            self.next += 1;
            text.extend(char::from_u32(from + self.next));
            if self.next.is_multiple_of(5) {
                text.push('\n');
            }
        }
        text
    }

    /// The user has made `after` of `before`.
    fn note_users(&mut self, before: &str, after: &str) {
        for char in before.chars().filter(|char| !after.contains(*char)) {
            self.kept.remove(&char);
        }
        for char in after.chars().filter(|char| !before.contains(*char)) {
            if is_agents(char) {
                self.adopted.insert(char);
            } else if char != '\n' {
                self.kept.insert(char);
            }
        }
    }
}

fn place_in(text: &str, place: usize) -> usize {
    let count = text.chars().count() + 1;
    text.char_indices().map(|(at, _)| at).nth(place % count).unwrap_or(text.len())
}

fn end_in(text: &str, start: usize, chars: usize) -> usize {
    text[start..].char_indices().map(|(at, _)| start + at).nth(chars).unwrap_or(text.len())
}

async fn agent_edits(
    bench: &mut EditBench,
    model: &mut Model,
    file: usize,
    mut places: Vec<(usize, usize, usize)>,
    meanwhile: Option<(usize, usize)>,
) {
    let name = NAMES[file];
    let target = bench.target(name);
    let base = bench.session.edits().workspace.text(&target).await.unwrap();
    let text = base.text.to_string();
    places.sort_by_key(|(place, _, _)| place_in(&text, *place));
    let mut edits: Vec<TextEdit> = Vec::new();
    for (place, removed, typed) in places {
        let start = place_in(&text, place);
        if edits.last().is_none_or(|last| start > last.range.end) && removed + typed > 0 {
            edits.push(edit(start..end_in(&text, start, removed), &model.take(AGENT, typed)));
        }
    }
    if edits.is_empty() {
        return;
    }
    if let (Some((place, typed)), true) = (meanwhile, file < 2) {
        let at = place_in(&text, place);
        let typed = model.take(USER, typed);
        let after = format!("{}{typed}{}", &text[..at], &text[at..]);
        model.note_users(&text, &after);
        model.undo[file].clear();
        bench.rig.meanwhile(Meanwhile::Typed(after));
    } else if file < 2 {
        model.undo[file].push(text);
    }
    // An overlap is refused, and then nothing has happened.
    drop(bench.agent(name, edits).await);
}

async fn happen(bench: &mut EditBench, model: &mut Model, happening: Happening) {
    match happening {
        Happening::Agent { file, places, meanwhile } => {
            agent_edits(bench, model, file, places, meanwhile).await;
        }
        Happening::Typing { file, place, removed, typed, exactly } => {
            let name = NAMES[file];
            let before = bench.rig.shown(name);
            let start = place_in(&before, place);
            let change = edit(start..end_in(&before, start, removed), &model.take(USER, typed));
            let after = kode_text::edit::change::apply_edits(&before, std::slice::from_ref(&change));
            model.note_users(&before, &after);
            let states = bench.states();
            match exactly {
                true => bench.rig.editor.edit(&bench.target(name), vec![change]),
                false => bench.rig.type_text(name, &after),
            }
            if bench.states() != states {
                model.either.extend(before.chars().filter(|char| !after.contains(*char)));
            }
            model.undo[file].push(before);
        }
        Happening::EditorUndo { file } => {
            let name = NAMES[file];
            if let Some(earlier) = model.undo[file].pop() {
                let before = bench.rig.shown(name);
                model.note_users(&before, &earlier);
                let states = bench.states();
                bench.rig.type_text(name, &earlier);
                if bench.states() != states {
                    model.either.extend(before.chars().filter(|char| !earlier.contains(*char)));
                }
            }
        }
        Happening::Save { file, by_user: true } => bench.rig.save(NAMES[file]),
        Happening::Save { file, by_user: false } => bench.rig.save_by_itself(NAMES[file]),
        Happening::CloseAndOpen { file } => {
            let text = bench.rig.shown(NAMES[file]);
            bench.rig.save_by_itself(NAMES[file]);
            bench.rig.close(NAMES[file]);
            bench.rig.open(NAMES[file], &text);
        }
        Happening::Outside { place, typed } => {
            let before = bench.rig.text(NAMES[2]);
            let at = place_in(&before, place);
            let after = format!("{}{}{}", &before[..at], model.take(USER, typed), &before[at..]);
            model.note_users(&before, &after);
            bench.rig.write(NAMES[2], after);
        }
        Happening::Resolve { hunk, how_many, action, force } => {
            let mut hunks: Vec<HunkId> = bench.session.edits().synced().ledger.every_hunk();
            if hunks.is_empty() {
                return;
            }
            let at = hunk % hunks.len();
            hunks.rotate_left(at);
            hunks.truncate(how_many);
            let amended = if force { AmendedPolicy::Undo } else { AmendedPolicy::Ask };
            if let Ok(id) = bench.session.edits().resolve(&Selection::Hunks(hunks), action, amended) {
                let outcome = bench.settled(&id).await;
                assert!(outcome.failed.is_empty(), "{outcome:?}");
                model.undo.iter_mut().for_each(Vec::clear);
            }
        }
        Happening::Revert => {
            if let Ok(id) = bench.session.edits().revert(None) {
                let outcome = bench.settled(&id).await;
                assert!(outcome.failed.is_empty(), "{outcome:?}");
                model.undo.iter_mut().for_each(Vec::clear);
            }
        }
        Happening::Restart => bench.restart().await,
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, max_shrink_iters: 500, ..ProptestConfig::default() })]

    #[test]
    fn no_random_history_loses_what_the_user_wrote_and_undoing_all_leaves_just_that(
        happenings in proptest::collection::vec(happening(), 1..25),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let (mut bench, mut model) = (EditBench::new(), Model::default());
            for name in NAMES {
                let text = model.take(ORIGINAL, 30);
                bench.rig.write(name, &text);
                model.kept.extend(text.chars().filter(|char| *char != '\n'));
            }
            for name in &NAMES[..2] {
                let text = bench.rig.text(name);
                bench.rig.open(name, &text);
            }
            for happening in happenings {
                happen(&mut bench, &mut model, happening).await;
                bench.check(&NAMES).await;
            }
            let all = bench.all_hunks();
            if !all.is_empty() {
                let outcome = bench.resolve(Selection::Hunks(all), ReviewAction::Undo, AmendedPolicy::Undo).await;
                assert!(outcome.failed.is_empty() && outcome.conflicts.is_empty(), "{outcome:?}");
            }
            bench.check(&NAMES).await;
            let left: BTreeSet<char> =
                [bench.rig.shown(NAMES[0]), bench.rig.shown(NAMES[1]), bench.rig.text(NAMES[2])]
                    .concat()
                    .chars()
                    .filter(|char| *char != '\n' && !model.adopted.contains(char))
                    .collect();
            let lost: Vec<&char> = model.kept.difference(&left).collect();
            let too_much: Vec<&char> = left.difference(&model.kept).collect();
            let too_much: Vec<&&char> = too_much.iter().filter(|char| !model.either.contains(char)).collect();
            assert!(lost.is_empty() && too_much.is_empty(), "lost {lost:?}, too much {too_much:?}");
            let live = format!("{:?}", bench.session.edits().synced().ledger);
            bench.session.edits().flush();
            bench.session.core().sync().await;
            let read = journal::read(bench.session.core().journal().path()).unwrap();
            let entries = read.records.into_iter().filter_map(|record| match record {
                Record::Edits { entry } => Some(entry),
                _ => None,
            });
            let (folded, problems) = Ledger::fold(entries.collect(), &bench.session.edits().blobs);
            assert!(problems.is_empty(), "{problems:?}");
            assert_eq!(format!("{folded:?}"), live, "the journal tells another story");
        });
    }
}
