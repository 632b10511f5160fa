//! The weave by examples and against random histories.

use proptest::prelude::*;

use super::*;
use crate::edit::change::apply_edits;

/// A weave with the text that an editor would show.
struct Page {
    weave: Weave,
    text: Rope,
}

impl Page {
    fn new(text: &str) -> Self {
        Self { weave: Weave::new(text.len()), text: Rope::from_str(text) }
    }

    fn shown(&self) -> String {
        self.text.to_string()
    }

    fn agent(&mut self, edits: &[(Range<usize>, &str)]) -> LayerId {
        let edits = own(edits);
        let layer = self.weave.add_layer(&self.text, &edits, true);
        self.text = Rope::from_str(&apply_edits(&self.shown(), &edits));
        self.check();
        layer
    }

    fn user(&mut self, edits: &[(Range<usize>, &str)]) -> Vec<(LayerId, bool)> {
        let edits = own(edits);
        let after = apply_edits(&self.shown(), &edits);
        let (typed, switched) = self.weave.distinguish(&self.text, &edits, &|_| true);
        self.weave.type_in(&self.text, &typed);
        self.text = Rope::from_str(&apply_edits(&self.shown(), &typed));
        self.switch(&switched);
        assert_eq!(self.shown(), after);
        switched
    }

    /// The user types `new` in the place of the first `old`.
    fn types(&mut self, old: &str, new: &str) -> Vec<(LayerId, bool)> {
        let at = self.shown().find(old).unwrap();
        self.user(&[(at..at + old.len(), new)])
    }

    fn switch(&mut self, layers: &[(LayerId, bool)]) -> String {
        let edits = self.weave.edits_to_switch(layers);
        self.weave.switch(&self.text, layers);
        self.text = Rope::from_str(&apply_edits(&self.shown(), &edits));
        self.check();
        self.shown()
    }

    /// The weave and the text are of one mind.
    fn check(&self) {
        assert_eq!(self.weave.project(&self.text, &[]), self.shown(), "{:?}", self.weave);
    }
}

fn own(edits: &[(Range<usize>, &str)]) -> Vec<TextEdit> {
    edits
        .iter()
        .map(|(range, text)| TextEdit { range: range.clone(), new_text: (*text).to_owned() })
        .collect()
}

#[test]
fn any_change_can_be_taken_out_and_put_back_in_any_order() {
    let mut page = Page::new("one two three\n");
    let first = page.agent(&[(0..3, "1")]);
    let second = page.agent(&[(6..11, "3")]);
    assert_eq!(page.shown(), "1 two 3\n");
    assert_eq!(page.switch(&[(first, false)]), "one two 3\n");
    assert_eq!(page.switch(&[(second, false)]), "one two three\n");
    assert_eq!(page.switch(&[(first, true)]), "1 two three\n");
    assert_eq!(page.switch(&[(second, true)]), "1 two 3\n");
}

#[test]
fn what_the_user_types_beside_a_change_stays_when_it_goes() {
    let mut page = Page::new("a\nb\nc\n");
    let layer = page.agent(&[(2..4, "B1\nB2\n")]);
    page.types("B1", "before B1");
    page.types("c\n", "after c\n");
    page.types("a\n", "a!\n");
    assert_eq!(page.shown(), "a!\nbefore B1\nB2\nafter c\n");
    assert!(!page.weave.survey().is_amended(layer));
    assert_eq!(page.switch(&[(layer, false)]), "a!\nbefore b\nafter c\n");
}

#[test]
fn typing_within_a_change_amends_it_and_survives_its_undo() {
    let mut page = Page::new("x\n");
    let layer = page.agent(&[(2..2, "hello world\n")]);
    page.types("hello world", "hello dear world");
    assert!(page.weave.survey().is_amended(layer));
    assert_eq!(page.switch(&[(layer, false)]), "x\ndear ");
}

#[test]
fn deleting_a_part_of_a_change_amends_it_until_the_deletion_is_undone() {
    let mut page = Page::new("x\n");
    let layer = page.agent(&[(2..2, "hello world\n")]);
    page.types("hello ", "");
    assert!(page.weave.survey().is_amended(layer));
    let place = page.weave.survey().place(&page.text, layer);
    assert_eq!((place.with.as_str(), place.without.as_str()), ("world\n", ""));
    page.types("world", "hello world");
    assert!(!page.weave.survey().is_amended(layer));
    assert_eq!(page.switch(&[(layer, false)]), "x\n");
}

#[test]
fn an_undo_in_the_editor_is_recognised_and_so_is_its_redo() {
    let mut page = Page::new("fn a() {}\nfn b() {}\n");
    let layer = page.agent(&[(3..4, "first"), (13..14, "second")]);
    assert_eq!(page.shown(), "fn first() {}\nfn second() {}\n");
    // As editors send it: both places in one notification, and not trimmed.
    assert_eq!(page.user(&[(0..10, "fn a()"), (17..23, "b")]), [(layer, false)]);
    assert_eq!(page.user(&[(3..4, "first"), (13..14, "second")]), [(layer, true)]);
}

#[test]
fn an_undo_that_is_said_to_be_elsewhere_in_repeating_text_is_recognised() {
    let mut page = Page::new("a\nb\nc\n");
    // Taken out with the break before it, put back with the break behind it.
    let layer = page.agent(&[(1..3, "")]);
    assert_eq!(page.user(&[(2..2, "b\n")]), [(layer, false)]);
    let mut page = Page::new("x\n\n\n\ny");
    let layer = page.agent(&[(1..1, "\n\n")]);
    assert_eq!(page.user(&[(5..7, "")]), [(layer, false)]);
    assert_eq!(page.user(&[(3..3, "\n\n")]), [(layer, true)]);
}

#[test]
fn an_undo_of_the_newer_of_two_changes_at_one_place_leaves_the_older() {
    let mut page = Page::new("one\n");
    let first = page.agent(&[(0..3, "two")]);
    let second = page.agent(&[(0..3, "three")]);
    assert_eq!(page.weave.survey().dependents(first), [second]);
    assert_eq!(page.types("three", "two"), [(second, false)]);
    assert_eq!(page.types("two", "one"), [(first, false)]);
    assert_eq!(page.weave.survey().supports(second), [first]);
    assert_eq!(page.user(&[(0..3, "three")]), [(first, true), (second, true)]);
}

#[test]
fn a_proposal_is_not_in_the_text_and_is_recognised_when_the_user_makes_it() {
    let mut page = Page::new("a b c\n");
    let layer = page.weave.add_layer(&page.text, &own(&[(2..3, "B")]), false);
    page.types("a ", "aa ");
    assert_eq!(page.shown(), "aa b c\n");
    let place = page.weave.survey().place(&page.text, layer);
    assert_eq!((place.range, place.with.as_str(), place.without.as_str()), (3..4, "aa B c\n", "aa b c\n"));
    assert_eq!(page.types("b", "B"), [(layer, true)]);
    page.check();
}

#[test]
fn whole_lines_taken_out_have_a_place_without_lines() {
    let mut page = Page::new("a\nb\nc");
    let layer = page.agent(&[(2..4, "")]);
    let place = page.weave.survey().place(&page.text, layer);
    assert_eq!((place.lines, place.without.as_str(), place.with.as_str()), (2..2, "b\n", ""));
    // Typed at the start of the line below: it stays there.
    page.user(&[(2..2, "Z")]);
    assert_eq!(page.switch(&[(layer, false)]), "a\nb\nZc");
}

#[test]
fn what_is_kept_for_good_leaves_no_trace() {
    let mut page = Page::new("a b c\n");
    let first = page.agent(&[(0..1, "A")]);
    let second = page.agent(&[(4..5, "C")]);
    page.switch(&[(second, false)]);
    page.weave.retire(&[first, second]);
    page.check();
    assert_eq!(page.weave.spans.len(), 1);
}

/// Something that happens to a text. Places are taken modulo what there is.
#[derive(Clone, Debug)]
enum Happening {
    Agent(Vec<(usize, usize, usize)>),
    Propose(Vec<(usize, usize, usize)>),
    User(usize, usize, usize),
    Switch(usize, bool),
    UndoInEditor(usize),
    Retire(usize),
}

fn happening() -> impl Strategy<Value = Happening> {
    let edit = || (0..200usize, 0..6usize, 0..5usize);
    let edits = move || proptest::collection::vec(edit(), 1..4);
    prop_oneof![
        3 => edits().prop_map(Happening::Agent),
        1 => edits().prop_map(Happening::Propose),
        5 => edit().prop_map(|(at, removed, typed)| Happening::User(at, removed, typed)),
        3 => (0..20usize, any::<bool>()).prop_map(|(layer, active)| Happening::Switch(layer, active)),
        1 => (0..20usize).prop_map(Happening::UndoInEditor),
        1 => (0..20usize).prop_map(Happening::Retire),
    ]
}

/// Characters that tell where they come from: original text, the agent's, the user's. None comes twice.
struct Alphabet {
    next: u32,
}

impl Alphabet {
    const AGENT: u32 = 0x4000;
    const USER: u32 = 0x8000;

    fn take(&mut self, from: u32, count: usize) -> String {
        (0..count)
            .map(|_| {
                self.next += 1;
                char::from_u32(from + self.next).unwrap()
            })
            .collect()
    }
}

fn random_edits(page: &Page, places: &[(usize, usize, usize)], alphabet: &mut Alphabet) -> Vec<TextEdit> {
    let text = page.shown();
    let chars: Vec<usize> = text.char_indices().map(|(at, _)| at).chain([text.len()]).collect();
    let mut edits: Vec<TextEdit> = Vec::new();
    let mut places = places.to_vec();
    places.sort_by_key(|(at, _, _)| at % chars.len());
    for (at, removed, inserted) in places {
        let start = at % chars.len();
        let end = (start + removed).min(chars.len() - 1);
        let range = chars[start]..chars[end];
        if edits.last().is_some_and(|last| range.start <= last.range.end) || (removed == 0 && inserted == 0) {
            continue;
        }
        edits.push(TextEdit { range, new_text: alphabet.take(Alphabet::AGENT, inserted) });
    }
    edits
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    /// The model knows only characters: which the user has typed, which the user has deleted, and which layer each of
    /// the agent's is of. Whatever happens, the weave shows the text as it is, no character of the user's goes with a
    /// layer, and without any layers there is the original text and the user's, less what the user deleted.
    #[test]
    fn no_history_loses_what_the_user_wrote(
        length in 0..60usize,
        happenings in proptest::collection::vec(happening(), 1..40),
    ) {
        let mut alphabet = Alphabet { next: 0 };
        let original: String = alphabet.take(0x3000, length);
        let mut page = Page::new(&original);
        let mut layers: Vec<LayerId> = Vec::new();
        // The user's characters and the original ones that the user has not deleted, each in its order.
        let mut typed: Vec<char> = Vec::new();
        let mut deleted: Vec<char> = Vec::new();
        let mut for_good: Vec<char> = Vec::new();
        for happening in happenings {
            match happening {
                Happening::Agent(places) => {
                    let edits = random_edits(&page, &places, &mut alphabet);
                    let edits: Vec<_> = edits.iter().map(|edit| (edit.range.clone(), edit.new_text.as_str())).collect();
                    layers.push(page.agent(&edits));
                }
                Happening::Propose(places) => {
                    let edits = random_edits(&page, &places, &mut alphabet);
                    layers.push(page.weave.add_layer(&page.text, &edits, false));
                    page.check();
                }
                Happening::User(at, removed, inserted) => {
                    let mut edits = random_edits(&page, &[(at, removed, 0)], &mut alphabet);
                    let new_text = alphabet.take(Alphabet::USER, inserted);
                    let range = match edits.pop() {
                        Some(edit) => edit.range,
                        None => {
                            let text = page.shown();
                            let count = text.chars().count() + 1;
                            let place = text.char_indices().map(|(at, _)| at).nth(at % count).unwrap_or(text.len());
                            place..place
                        }
                    };
                    let before = page.shown();
                    let switched = page.user(&[(range.clone(), &new_text)]);
                    if switched.is_empty() {
                        deleted.extend(before[range].chars());
                        typed.extend(new_text.chars());
                    }
                }
                Happening::Switch(layer, active) if !layers.is_empty() => {
                    page.switch(&[(layers[layer % layers.len()], active)]);
                }
                Happening::UndoInEditor(layer) if !layers.is_empty() => {
                    let layer = layers[layer % layers.len()];
                    let active = page.weave.is_active(layer);
                    let edits = page.weave.edits_to_switch(&[(layer, !active)]);
                    let edits: Vec<_> = edits.iter().map(|edit| (edit.range.clone(), edit.new_text.as_str())).collect();
                    let before = page.shown();
                    let switched = page.user(&edits);
                    // Where it was not recognised (other layers are in it), it counts as typing.
                    if switched.is_empty() {
                        deleted.extend(before.chars().filter(|char| !page.shown().contains(*char)));
                        deleted.retain(|char| !page.shown().contains(*char));
                    } else if switched.len() < edits.len() {
                        return Ok(());
                    }
                }
                Happening::Retire(layer) if !layers.is_empty() => {
                    let retired = layers.remove(layer % layers.len());
                    let others: Vec<_> = layers.iter().map(|layer| (*layer, false)).collect();
                    let before = page.weave.project(&page.text, &others);
                    page.weave.retire(&[retired]);
                    page.check();
                    let after = page.weave.project(&page.text, &others);
                    prop_assert_eq!(&before, &after);
                    // From here on the layer's text has no owner.
                    deleted.extend(original.chars().chain(typed.iter().copied()).filter(|char| !after.contains(*char)));
                    for_good.extend(after.chars());
                }
                Happening::Switch(..) | Happening::UndoInEditor(_) | Happening::Retire(_) => {}
            }
            for layer in &layers {
                let place = page.weave.survey().place(&page.text, *layer);
                prop_assert!(place.lines.start <= place.range.start && place.range.end <= place.lines.end);
                prop_assert!(place.lines.end <= page.text.len_bytes());
            }
        }
        let all: Vec<_> = layers.iter().map(|layer| (*layer, false)).collect();
        let left = page.switch(&all);
        let is_agents = |char: &char| (Alphabet::AGENT..Alphabet::USER).contains(&u32::from(*char));
        let is_original = |char: &char| u32::from(*char) < Alphabet::AGENT;
        prop_assert!(left.chars().filter(is_agents).all(|char| for_good.contains(&char)), "left: {:?}", left);
        let kept: Vec<char> = original.chars().filter(|char| !deleted.contains(char)).collect();
        prop_assert_eq!(left.chars().filter(is_original).collect::<Vec<_>>(), kept);
        let mut users: Vec<char> = left.chars().filter(|char| !is_original(char) && !is_agents(char)).collect();
        users.sort_unstable();
        let mut expected: Vec<char> = typed.iter().copied().filter(|char| !deleted.contains(char)).collect();
        expected.sort_unstable();
        prop_assert_eq!(users, expected);
    }
}

#[test]
fn a_text_that_was_deleted_and_comes_back_is_the_same_text() {
    let mut page = Page::new("alpha\r\nbeta\r\ngamma\r\n");
    page.agent(&[(0..5, "ALPHA")]);
    let second = page.agent(&[(13..18, "GAMMA")]);
    let whole = page.shown();
    page.user(&[(0..whole.len(), "")]);
    let other = page.agent(&[(0..0, "another\n")]);
    assert_eq!(page.switch(&[(other, false)]), "");
    // That layers nearby become part of the text makes no difference.
    page.weave.retire(&[other]);
    assert_eq!(page.user(&[(0..0, &whole)]), []);
    assert_eq!(page.switch(&[(second, false)]), "ALPHA\r\nbeta\r\ngamma\r\n");
}
