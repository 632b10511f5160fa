//! A user types in bursts while the agent edits the same document, in editors that apply edits late, in part, twice or not at all,
//! or that close or rename the document meanwhile.
//!
//! Rule: at every rest the server has the text of the editor, and each character that the user has typed and not deleted is in it.
//! What happens follows from the seed; only which of two acts at the same time comes first does not.

use std::collections::BTreeSet;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use kode_e2e::{
    Client, Encoding, Offer, Policy, Project, SaveReason, Script, Session, Step, Typing, call, say, step,
};
use serde_json::{Value, json};

use crate::schedules::{DEFAULT_SEED, Dice, Pen, Replay, SEED, chars, number};

/// Steps, unless the variable [`STEPS`] says otherwise: keys, saves, and edits of the agent that arrive.
const DEFAULT_STEPS: u64 = 4_000;

/// Number of steps when this variable holds a number.
const STEPS: &str = "KODE_LS_STEPS";

/// Documents of one server.
const DOCUMENTS: u64 = 24;

/// Turns in which a document is edited.
const TURNS: u64 = 3;

/// Maximum number of keys before the state of the agent is checked.
const BURST: u64 = 100;

/// Number of servers at once. Most of the time is spent on waiting for editors with a fault.
const PLAYERS: usize = 4;

/// Lines of a document, and characters of a line without its end.
const LINES: u32 = 24;
const LINE: u32 = 12;

/// The first characters of each writer. The user has two ranges, one of them beyond 16 bits.
const ORIGINAL: u32 = 0x4E00;
const AGENT: u32 = 0xAC00;
const USER: [u32; 2] = [0xE000, 0xF_0000];

/// The first lines of a document begin with it: it takes two units of UTF-16.
const WIDE: char = '🙂';

fn original() -> Vec<String> {
    let line =
        |line: u32| (0..LINE).map(move |at| char::from_u32(ORIGINAL + line * LINE + at).unwrap()).collect();
    (0..LINES).map(line).collect()
}

/// The places of the call in a turn, each in a line of its own that no other turn edits.
fn edits(dice: &mut Dice, pen: &mut Pen, turn: u64) -> Value {
    let lines: Vec<String> = original()
        .into_iter()
        .skip(usize::try_from(turn).unwrap())
        .step_by(usize::try_from(TURNS).unwrap())
        .collect();
    let count = 1 + usize::try_from(dice.below(4)).unwrap();
    let first = usize::try_from(dice.below(lines.len() as u64)).unwrap();
    let edit = |at: usize| {
        let line: Vec<char> = lines[(first + at) % lines.len()].chars().collect();
        let start = usize::try_from(dice.below(u64::from(LINE) - 4)).unwrap();
        let old: String = line[start..start + 4].iter().collect();
        let length = 1 + dice.below(8);
        json!({ "old_string": old, "new_string": pen.write(&mut *dice, length) })
    };
    (0..count).map(edit).collect()
}

fn steps(dice: &mut Dice, pen: &mut Pen, document: u64, turn: u64) -> Vec<Step> {
    let path = format!("{{{{cwd}}}}/{document}.txt");
    let edits = edits(dice, pen, turn);
    vec![
        step().call("Read", json!({ "file_path": path })),
        call("MultiEdit", json!({ "file_path": path, "edits": edits })),
        say("Done."),
    ]
}

fn script(seed: u64) -> Script {
    let mut script = Script::default();
    for document in 0..DOCUMENTS {
        let (mut dice, mut pen) = (Dice(seed ^ document.wrapping_mul(0xD134_2543_DE82_EF95)), Pen(AGENT));
        for turn in 0..TURNS {
            let steps = steps(&mut dice, &mut pen, document, turn);
            script = script.when(&format!("^edit {document} {turn}\\.$"), steps);
        }
    }
    script
}

fn is_of_user(char: char) -> bool {
    let code = u32::from(char);
    (USER[0]..0xF900).contains(&code) || code >= USER[1]
}

/// The characters of two texts without their common ends.
fn changed(before: &str, after: &str) -> (BTreeSet<char>, BTreeSet<char>) {
    let start = before
        .chars()
        .zip(after.chars())
        .take_while(|(a, b)| a == b)
        .map(|(a, _)| a.len_utf8())
        .sum::<usize>();
    let (before, after) = (&before[start..], &after[start..]);
    let end = before.chars().rev().zip(after.chars().rev()).take_while(|(a, b)| a == b);
    let end = end.map(|(a, _)| a.len_utf8()).sum::<usize>();
    (chars(&before[..before.len() - end]), chars(&after[..after.len() - end]))
}

/// The handling of an edit in a turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Handling {
    /// The editor does what the protocol says, late or early.
    Proper,
    /// It applies a part, or a place twice, or answers wrongly.
    Faulty,
    /// The user has closed the document before the edit arrives.
    Closed,
    /// The user has renamed the file before the edit arrives.
    Renamed,
}

/// The totals of all documents.
#[derive(Debug, Default)]
struct Figures {
    documents: u64,
    keys: u64,
    edits: u64,
    completed: usize,
    failed: usize,
    faulty: usize,
    closed: usize,
    renamed: usize,
}

impl Figures {
    fn steps(&self) -> u64 {
        self.keys + self.edits
    }

    fn add(&mut self, other: &Self) {
        let Self { documents, keys, edits, completed, failed, faulty, closed, renamed } = other;
        self.documents += documents;
        self.keys += keys;
        self.edits += edits;
        self.completed += completed;
        self.failed += failed;
        self.faulty += faulty;
        self.closed += closed;
        self.renamed += renamed;
    }
}

/// One document with its two writers.
struct Desk<'a> {
    project: &'a Project,
    client: &'a Client,
    session: Session<'a>,
    number: u64,
    uri: String,
    pens: [Pen; 2],
    /// Where the user types, as a share of the text.
    cursor: u16,
    /// The typed characters.
    typed: BTreeSet<char>,
    /// Characters that the user or a faulty editor deleted.
    gone: BTreeSet<char>,
    prompts: usize,
    calls: usize,
}

impl Desk<'_> {
    fn character(&mut self, dice: &mut Dice) -> String {
        self.pens[usize::try_from(dice.below(2)).unwrap()].next().to_string()
    }

    /// One key, with the cursor where the last one was, most of the time.
    fn key(&mut self, dice: &mut Dice) {
        if dice.below(16) == 0 {
            self.cursor = dice.share();
        }
        let editor = &self.client.editor;
        match dice.below(32) {
            0..=2 => editor.type_text(&self.uri, &Typing::delete(self.cursor)),
            3 => drop(editor.undo(&self.uri)),
            4 => drop(editor.redo(&self.uri)),
            5 => {
                let reason = dice.pick(&[None, Some(SaveReason::Manual), Some(SaveReason::AfterDelay)]);
                editor.save(&self.uri, reason);
            }
            6 => {
                let pasted: String = (0..8).map(|_| self.character(dice)).collect();
                self.client.editor.type_text(&self.uri, &Typing::at(self.cursor, &pasted));
            }
            7 => {
                let line = format!("{}\n", self.character(dice));
                self.client.editor.type_text(&self.uri, &Typing::at(self.cursor, &line));
            }
            _ => {
                let character = self.character(dice);
                self.client.editor.type_text(&self.uri, &Typing::at(self.cursor, &character));
            }
        }
    }

    fn burst(&mut self, dice: &mut Dice, figures: &mut Figures) {
        let count = dice.below(BURST);
        (0..count).for_each(|_| self.key(dice));
        figures.keys += count;
    }

    /// Keys that the user presses when the edit arrives.
    fn arriving(&mut self, dice: &mut Dice) -> Vec<Typing> {
        let count = 1 + dice.below(3);
        (0..count).map(|_| Typing::at(dice.share(), &self.character(dice))).collect()
    }

    /// How the editor handles the edits of a turn. Only in the last one it may lose the document.
    fn choose(&mut self, dice: &mut Dice, turn: u64) -> (Handling, Policy) {
        use Handling::{Closed, Faulty, Proper, Renamed};
        let end = if turn + 1 == TURNS { 32 } else { 26 };
        match dice.below(end) {
            0..=3 => (Proper, Policy::Apply),
            4..=6 => (Proper, Policy::AnswerFirst),
            7..=9 => (Proper, Policy::AnswerLate),
            10..=12 => (Proper, Policy::TypeFirst(self.arriving(dice))),
            13..=14 => (Proper, Policy::TypeInBatch(self.arriving(dice))),
            15..=16 => (Proper, Policy::TypeInWhole(self.arriving(dice))),
            17..=18 => (Proper, Policy::TypeThenAnswer(self.arriving(dice))),
            19 => (Proper, Policy::NeverAnswer),
            20 => (Proper, Policy::InPieces),
            21 => (Proper, Policy::Reject("not now".to_owned())),
            22 => (Faulty, Policy::Lie),
            23 => (Faulty, Policy::Twice),
            24..=25 => (Faulty, Policy::Partly),
            26..=28 => (Closed, Policy::CloseFirst),
            _ => (Renamed, Policy::RenameFirst(self.project.uri(&format!("{}-renamed.txt", self.number)))),
        }
    }

    /// One turn of the agent with the user at the keys, and the rest behind it.
    fn turn(&mut self, turn: u64, dice: &mut Dice, figures: &mut Figures) {
        let (handling, policy) = self.choose(dice, turn);
        let keeps_open = !matches!(handling, Handling::Closed | Handling::Renamed);
        let asks = !keeps_open || dice.below(2) == 0;
        let mode = if asks { "default" } else { "acceptEdits" };
        self.session.call("agent/session/configure", json!({ "mode": mode }));
        self.burst(dice, figures);
        self.client.editor.next(policy.clone());
        let id = self.session.prompt(&format!("edit {} {turn}.", self.number));
        if asks && let Some(prompt) = self.session.permission_or_end(&id, self.prompts) {
            self.prompts += 1;
            self.burst(dice, figures);
            self.take_acts();
            if handling == Handling::Closed {
                self.save_or_discard(dice);
            }
            self.session.respond(&prompt, json!({ "decision": "allow", "scope": "once" })).unwrap();
        }
        if keeps_open {
            self.burst(dice, figures);
        }
        self.session.wait_done(&id);
        self.client.editor.answer_late();
        self.take_acts();
        let is_open = self.client.editor.is_open(&self.uri);
        if !is_open && handling == Handling::Renamed {
            self.uri = self.project.uri(&format!("{}-renamed.txt", self.number));
        }
        if keeps_open {
            self.burst(dice, figures);
            self.take_acts();
        }
        let calls = self.session.calls().split_off(self.calls);
        self.calls += calls.len();
        figures.edits += self.client.editor.edits().len() as u64;
        figures.faulty += usize::from(handling == Handling::Faulty);
        figures.closed += usize::from(!is_open && handling == Handling::Closed);
        figures.renamed += usize::from(!is_open && handling == Handling::Renamed);
        for call in calls.iter().filter(|call| call["name"] == "MultiEdit") {
            figures.completed += usize::from(call["state"] == "COMPLETED");
            figures.failed += usize::from(call["state"] == "FAILED");
            if handling == Handling::Proper {
                self.check_call(call, &policy);
            }
        }
        self.check_text(&format!("{handling:?} {policy:?}"));
        self.client.editor.forget();
    }

    /// The user saves the document before it is closed, or discards the changes.
    fn save_or_discard(&mut self, dice: &mut Dice) {
        if dice.below(2) == 0 {
            self.client.editor.save(&self.uri, Some(SaveReason::Manual));
            return;
        }
        let saved = chars(&self.project.read(&format!("{}.txt", self.number)));
        self.gone.extend(self.typed.difference(&saved));
    }

    /// Takes in what the user has done since the last time.
    fn take_acts(&mut self) {
        for act in self.client.editor.take_acts() {
            let (before, after) = changed(&act.before, &act.after);
            self.gone.extend(before.difference(&after));
            for char in after.difference(&before) {
                self.gone.remove(char);
                if is_of_user(*char) {
                    self.typed.insert(*char);
                }
            }
        }
    }

    fn text(&self) -> String {
        if self.client.editor.is_open(&self.uri) {
            return self.client.editor.text(&self.uri);
        }
        self.project.read(&format!("{}.txt", self.number))
    }

    /// An edit that is reported as made is in the text, as far as the user has left it; one that has failed is not.
    fn check_call(&self, call: &Value, policy: &Policy) {
        let (text, news) = (chars(&self.text()), call["input"]["edits"].as_array().unwrap().iter());
        let news: BTreeSet<char> =
            news.flat_map(|edit| chars(edit["new_string"].as_str().unwrap())).collect();
        let here = || news.intersection(&text).count();
        let kept = || news.iter().filter(|char| text.contains(char) || self.gone.contains(char)).count();
        match call["state"].as_str().unwrap() {
            "COMPLETED" => {
                assert_eq!(kept(), news.len(), "reported as made, {policy:?}: {call}\n{}", self.text())
            }
            "FAILED" => assert_eq!(here(), 0, "reported as failed, {policy:?}: {call}\n{}", self.text()),
            other => panic!("{other} is no end of an edit"),
        }
    }

    fn check_text(&self, handling: &str) {
        let text = self.text();
        let here = chars(&text);
        let lost: Vec<&char> =
            self.typed.iter().filter(|char| !self.gone.contains(char) && !here.contains(char)).collect();
        assert!(lost.is_empty(), "{} of {}, {handling}: lost {lost:?} in {text:?}", self.uri, self.number);
        if self.client.editor.is_open(&self.uri) {
            let params = json!({ "uri": self.uri, "sessionId": self.session.id });
            let known = self.client.call("agent/document/proposed", params)["text"].clone();
            assert_eq!(known, text, "{handling}: the server has another text than the editor");
        }
    }
}

/// The editors in turn: in each encoding, one of them with whole texts.
fn connect(project: &Project, number: u64) -> Client {
    let encodings = [Encoding::Utf16, Encoding::Utf8, Encoding::Utf32, Encoding::Utf16];
    let at = usize::try_from(number).unwrap() % encodings.len();
    let client = project.connect(&Offer::kode().encodings(&encodings[at..=at]));
    client.editor.set_whole_texts(at == 3);
    client
}

fn play(project: &Project, client: &Client, seed: u64, number: u64) -> Figures {
    let mut figures = Figures::default();
    let mut dice = Dice(!seed ^ number.wrapping_mul(0xD134_2543_DE82_EF95));
    let text: String = original().iter().map(|line| format!("{WIDE}{line}\n")).collect();
    let name = format!("{number}.txt");
    project.write(&name, &text);
    let uri = project.uri(&name);
    client.editor.forget();
    client.editor.open(&uri, &text);
    let mut desk = Desk {
        project,
        client,
        session: client.session(),
        number,
        uri,
        pens: USER.map(Pen),
        cursor: dice.share(),
        typed: BTreeSet::new(),
        gone: BTreeSet::new(),
        prompts: 0,
        calls: 0,
    };
    for turn in 0..TURNS {
        desk.turn(turn, &mut dice, &mut figures);
    }
    if client.editor.is_open(&desk.uri) {
        client.editor.close(&desk.uri);
    }
    desk.session.call("agent/session/close", json!({}));
    figures.documents = 1;
    figures
}

#[allow(clippy::print_stdout, reason = "the figures are what the test is for")]
#[test]
fn editor_and_server_have_the_same_text_at_every_rest_whatever_the_editor_does_with_edits() {
    let (seed, wanted) = (number(SEED, DEFAULT_SEED), number(STEPS, DEFAULT_STEPS));
    let (next, totals) = (AtomicU64::new(0), Mutex::new(Figures::default()));
    let play_all = || {
        while totals.lock().unwrap().steps() < wanted {
            let desks = next.fetch_add(1, Ordering::SeqCst);
            let seed_of_desks = seed.wrapping_add(desks);
            let project = Project::new(&script(seed_of_desks));
            let client = connect(&project, seed_of_desks);
            for document in 0..DOCUMENTS {
                let _replay = Replay("document", document, seed_of_desks);
                let figures = play(&project, &client, seed_of_desks, document);
                let mut totals = totals.lock().unwrap();
                totals.add(&figures);
                if totals.steps() >= wanted {
                    break;
                }
            }
            println!("{:?}", totals.lock().unwrap());
        }
    };
    thread::scope(|scope| (0..PLAYERS).for_each(|_| drop(scope.spawn(play_all))));
}
