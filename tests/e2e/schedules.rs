//! Random schedules: the user types, saves, undoes and reviews while the agent edits the same files.
//!
//! Rule: every character has one writer, so that lost and extra text is seen character by character.
//! A schedule follows from the seed and its number alone; only who comes first when both act at once does not.

use std::collections::BTreeSet;
use std::env;
use std::fs;
use std::ops::Range;

use kode_e2e::{
    Client, Offer, Policy, Project, SaveReason, Script, Session, Step, Typing, Writer, call, say,
};
use serde_json::{Value, json};

/// Number of schedules that are played, on two servers. Under wine each takes some seconds.
const SCHEDULES: u64 = if cfg!(windows) { 20 } else { 200 };

/// Number of edits that must have met a change of the user's. Among few schedules they are chance.
const LEAST_MERGED: usize = if cfg!(windows) { 0 } else { 11 };

/// The seed of all random tests, unless the variable [`SEED`] says otherwise.
pub(super) const DEFAULT_SEED: u64 = 20_260_101;

/// The seed when this variable holds a number.
pub(super) const SEED: &str = "KODE_E2E_SEED";

/// The texts of the files, the agent and the user.
const ORIGINAL: u32 = 0x4E00;
const AGENTS: u32 = 0xAC00;
const USERS: u32 = 0xE000;

/// Lines of a file, and characters of a line without its end.
const LINES: u32 = 10;
const LINE: u32 = 6;

/// Files of a schedule: two are open, one is closed.
const FILES: [&str; 3] = ["a", "b", "c"];

/// Turns of a schedule.
const TURNS: usize = 2;

/// A small generator, the same everywhere.
pub(super) struct Dice(pub(super) u64);

impl Dice {
    pub(super) fn roll(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    pub(super) fn below(&mut self, end: u64) -> u64 {
        self.roll() % end
    }

    pub(super) fn share(&mut self) -> u16 {
        u16::try_from(self.below(1 << 16)).unwrap()
    }

    pub(super) fn pick<T: Clone>(&mut self, of: &[T]) -> T {
        of[usize::try_from(self.below(of.len() as u64)).unwrap()].clone()
    }
}

/// Characters with no other writer.
pub(super) struct Pen(pub(super) u32);

impl Pen {
    pub(super) fn next(&mut self) -> char {
        let char = char::from_u32(self.0).unwrap();
        self.0 += 1;
        char
    }

    pub(super) fn write(&mut self, dice: &mut Dice, count: u64) -> String {
        let mut text = String::new();
        for _ in 0..count {
            text.push(self.next());
            if dice.below(6) == 0 {
                text.push('\n');
            }
        }
        text
    }
}

/// The acts of the user.
#[derive(Clone, Debug)]
enum Act {
    Type { file: usize, share: u16 },
    TypeLine { file: usize, share: u16 },
    Delete { file: usize, share: u16 },
    Undo { file: usize },
    Redo { file: usize },
    Save { file: usize, reason: Option<SaveReason> },
    Resolve { nth: u64, action: &'static str, amended: &'static str },
}

/// How one turn goes.
#[derive(Clone, Debug)]
struct Turn {
    asks: bool,
    acts: Vec<Act>,
    policies: Vec<&'static str>,
    /// Of each prompt: which of its hunks are accepted.
    answers: Vec<u64>,
}

fn original(file: usize) -> String {
    let first = ORIGINAL + u32::try_from(file).unwrap() * LINES * LINE;
    let line = |line: u32| (0..LINE).map(move |at| char::from_u32(first + line * LINE + at).unwrap());
    (0..LINES).flat_map(|at| line(at).chain(['\n'])).collect()
}

/// A piece of the text that a file began with.
fn piece(text: &str, dice: &mut Dice) -> Range<usize> {
    let places: Vec<usize> = text.char_indices().map(|(place, _)| place).chain([text.len()]).collect();
    if dice.below(3) == 0 {
        let starts: Vec<usize> = places.iter().copied().step_by(LINE as usize + 1).collect();
        let lines = starts.len() - 1;
        let first = usize::try_from(dice.below(lines as u64)).unwrap();
        let last = (first + 1 + usize::try_from(dice.below(2)).unwrap()).min(lines);
        return starts[first]..starts[last];
    }
    let first = usize::try_from(dice.below(places.len() as u64 - 1)).unwrap();
    let last = (first + 1 + usize::try_from(dice.below(8)).unwrap()).min(places.len() - 1);
    places[first]..places[last]
}

/// The agent's calls in a turn.
fn steps(dice: &mut Dice, pen: &mut Pen, schedule: u64) -> Vec<Step> {
    let path = |file: usize| format!("{{{{cwd}}}}/{schedule}/{}.txt", FILES[file]);
    let mut reads = kode_e2e::step();
    for file in 0..FILES.len() {
        reads = reads.call("Read", json!({ "file_path": path(file) }));
    }
    let mut steps = vec![reads];
    for _ in 0..1 + dice.below(3) {
        let file = dice.pick(&[0, 0, 0, 1, 1, 2]);
        let text = original(file);
        let edit = |place: Range<usize>, dice: &mut Dice, pen: &mut Pen| {
            let count = dice.below(5);
            let mut new = pen.write(dice, count);
            if text[place.clone()].ends_with('\n') && !new.is_empty() {
                new.push('\n');
            }
            json!({ "old_string": text[place], "new_string": new })
        };
        steps.push(match dice.below(8) {
            0 => {
                let place = piece(&text, dice);
                let mut content = text.clone();
                content.replace_range(place, &pen.write(dice, 3));
                call("Write", json!({ "file_path": path(file), "content": content }))
            }
            1..=3 => {
                let half = text.char_indices().nth(text.chars().count() / 2).unwrap().0;
                let first = piece(&text[..half], dice);
                let second = piece(&text[half..], dice);
                let second = second.start + half..second.end + half;
                let edits = [edit(first, dice, pen), edit(second, dice, pen)];
                call("MultiEdit", json!({ "file_path": path(file), "edits": edits }))
            }
            _ => {
                let mut input = edit(piece(&text, dice), dice, pen);
                input["file_path"] = json!(path(file));
                call("Edit", input)
            }
        });
    }
    steps.push(say("Done."));
    steps
}

fn turn(dice: &mut Dice, is_versioned: bool, is_slow: bool) -> Turn {
    let act = |dice: &mut Dice| {
        let (file, share) = (usize::try_from(dice.below(2)).unwrap(), dice.share());
        match dice.below(16) {
            0..=5 => Act::Type { file, share },
            6 => Act::TypeLine { file, share },
            7..=8 => Act::Delete { file, share },
            9 => Act::Undo { file },
            10 => Act::Redo { file },
            11 => {
                let reasons = [None, Some(SaveReason::Manual), Some(SaveReason::AfterDelay)];
                Act::Save { file, reason: dice.pick(&reasons) }
            }
            _ => Act::Resolve {
                nth: dice.roll(),
                action: dice.pick(&["keep", "undo", "undo", "accept", "reject"]),
                amended: dice.pick(&["ask", "undo"]),
            },
        }
    };
    let acts = (0..dice.below(10)).map(|_| act(dice)).collect();
    // An editor that cannot tell versions applies an edit to whatever is there by then.
    let mut policies = vec!["apply", "batch", "whole", "answer first", "late"];
    if is_versioned {
        policies.extend(["first", "first", "then"]);
    } else {
        policies.push("never");
    }
    let mut policies: Vec<&str> = (0..4).map(|_| dice.pick(&policies)).collect();
    if is_slow {
        // The server waits a moment for what may explain a refusal.
        policies[0] = "reject";
    }
    let answers = (0..4).map(|_| dice.roll()).collect();
    Turn { asks: dice.below(2) == 0, acts, policies, answers }
}

/// The totals of all schedules.
#[derive(Debug, Default)]
struct Figures {
    schedules: u64,
    user_acts: usize,
    completed: usize,
    merged: usize,
    conflicts: usize,
    refused: usize,
    undone: usize,
    lost: usize,
}

/// One schedule as it is played.
struct Play<'a> {
    project: &'a Project,
    client: &'a Client,
    session: Session<'a>,
    is_versioned: bool,
    number: u64,
    users: Pen,
    /// Text that the user or others removed.
    gone: BTreeSet<char>,
    /// Text of all writers but the agent.
    owned: BTreeSet<char>,
    hunks: BTreeSet<String>,
    begun: Vec<String>,
    seen_acts: usize,
}

impl Play<'_> {
    fn name(&self, file: usize) -> String {
        format!("{}/{}.txt", self.number, FILES[file])
    }

    fn uri(&self, file: usize) -> String {
        self.project.uri(&self.name(file))
    }

    fn text(&self, file: usize) -> String {
        if file < 2 { self.client.editor.text(&self.uri(file)) } else { self.project.read(&self.name(file)) }
    }

    fn typed(&mut self, dice: &mut Dice) -> Vec<Typing> {
        let count = 1 + dice.below(2);
        (0..count).map(|_| Typing::at(dice.share(), &self.new_char())).collect()
    }

    fn new_char(&mut self) -> String {
        self.users.next().to_string()
    }

    fn set_policy(&mut self, name: &str, dice: &mut Dice) {
        let typed = if ["first", "batch", "then"].contains(&name) { self.typed(dice) } else { vec![] };
        self.client.editor.next(match name {
            "first" => Policy::TypeFirst(typed),
            "batch" => Policy::TypeInBatch(typed),
            "then" => Policy::TypeThenAnswer(typed),
            "whole" => Policy::TypeInWhole(typed),
            "answer first" => Policy::AnswerFirst,
            "late" => Policy::AnswerLate,
            "never" => Policy::NeverAnswer,
            "reject" => Policy::Reject("not now".to_owned()),
            _ => Policy::Apply,
        });
    }

    fn act(&mut self, act: &Act) {
        let editor = &self.client.editor;
        match *act {
            Act::Type { file, share } => {
                let char = self.new_char();
                self.client.editor.type_text(&self.uri(file), &Typing::at(share, &char));
            }
            Act::TypeLine { file, share } => {
                let line = format!("{}\n", self.new_char());
                self.client.editor.type_text(&self.uri(file), &Typing::at(share, &line));
            }
            Act::Delete { file, share } => editor.type_text(&self.uri(file), &Typing::delete(share)),
            Act::Undo { file } => {
                editor.undo(&self.uri(file));
            }
            Act::Redo { file } => {
                editor.redo(&self.uri(file));
            }
            Act::Save { file, reason } => editor.save(&self.uri(file), reason),
            Act::Resolve { nth, action, amended } => {
                self.resolve(nth, action, amended);
                // Only edits that name their version may cross the typed text.
                if !self.is_versioned {
                    self.settle();
                }
            }
        }
    }

    /// Begins an act on some of the hunks, if it makes sense for them.
    fn resolve(&mut self, nth: u64, action: &str, amended: &str) {
        let hunks = self.listed();
        if hunks.is_empty() {
            return;
        }
        let first = usize::try_from(nth % hunks.len() as u64).unwrap();
        let last = (first + 1 + usize::try_from(nth >> 60).unwrap() % 3).min(hunks.len());
        let some: Vec<&Value> = hunks[first..last].iter().collect();
        match self.session.try_resolve(&some, action, amended) {
            Ok(id) => self.begun.push(id),
            Err(error) => {
                assert!(["nothingToDo", "unknownHunk"].contains(&error.kind()), "{action}: {error:?}");
            }
        }
    }

    /// The hunks on the list, which are remembered.
    fn listed(&mut self) -> Vec<Value> {
        let hunks = self.session.hunks();
        self.hunks.extend(hunks.iter().map(|hunk| hunk["hunkId"].as_str().unwrap().to_owned()));
        hunks
    }

    /// Another writer changes the closed file.
    fn write_outside(&mut self, dice: &mut Dice) {
        let mut text = self.text(2);
        let places: Vec<usize> = text.char_indices().map(|(place, _)| place).chain([text.len()]).collect();
        let place = dice.pick(&places);
        let char = self.new_char();
        text.insert_str(place, &char);
        self.owned.extend(char.chars());
        let place = dice.pick(&text.char_indices().map(|(place, _)| place).collect::<Vec<_>>());
        let char = text[place..].chars().next().unwrap();
        if dice.below(2) == 0 && char != '\n' {
            text.remove(place);
            self.gone.insert(char);
        }
        let (new, path) = (self.project.path("new"), self.project.path(&self.name(2)));
        fs::write(&new, text).unwrap();
        fs::rename(new, path).unwrap();
    }

    /// Plays one turn to its end and waits until all that was started is done.
    fn turn(&mut self, number: usize, turn: &Turn, dice: &mut Dice) {
        self.session.call(
            "agent/session/configure",
            json!({
                "mode": if turn.asks { "default" } else { "acceptEdits" }
            }),
        );
        for policy in &turn.policies {
            self.set_policy(policy, dice);
        }
        let asked = |session: &Session<'_>| {
            let events = session.events();
            events.into_iter().filter(|event| event["type"] == "permission_required").collect::<Vec<_>>()
        };
        let mut answered = asked(&self.session).len();
        let mut answers = turn.answers.iter();
        let mut acts = turn.acts.iter();
        if !self.is_versioned {
            acts.by_ref().take(turn.acts.len() / 2).for_each(|act| self.act(act));
            self.settle();
        }
        let id = self.session.prompt(&format!("play {} {number}.", self.number));
        loop {
            if self.is_versioned
                && let Some(act) = acts.next()
            {
                self.act(act);
            }
            let is_over = |event: &Value| event["type"] == "done" && event["turnId"] == id.as_str();
            let has_more = self.is_versioned && acts.len() > 0;
            let (session, client) = (&self.session, self.client);
            let event = client.wait_for("a prompt or the end of the turn", |received| {
                let events: Vec<&Value> =
                    received.events(&session.id).iter().map(|record| &record["event"]).collect();
                let prompts = events.iter().filter(|event| event["type"] == "permission_required");
                let next = prompts.skip(answered).chain(events.iter().filter(|event| is_over(event))).next();
                next.map(|event| (*event).clone()).or_else(|| has_more.then_some(Value::Null))
            });
            if event["type"] == "done" {
                break;
            }
            if event["type"] == "permission_required" {
                answered += 1;
                self.answer(&event["prompt"], *answers.next().unwrap_or(&0));
            }
        }
        acts.for_each(|act| self.act(act));
        self.settle();
    }

    /// Answers a prompt in one of the ways it can be answered; it may have been answered already.
    fn answer(&mut self, prompt: &Value, how: u64) {
        let hunks: Vec<Value> =
            self.listed().into_iter().filter(|hunk| hunk["permissionId"] == prompt["permissionId"]).collect();
        let chosen = |bit: usize| how >> (bit % 60) & 1 == 0;
        let part: Vec<&Value> =
            hunks.iter().enumerate().filter(|(at, _)| chosen(*at)).map(|(_, hunk)| &hunk["hunkId"]).collect();
        let answer = match how >> 62 {
            0 => json!({ "decision": "allow", "scope": "once" }),
            1 => json!({ "decision": "deny", "scope": "once" }),
            _ => json!({ "decision": "allow", "scope": "once", "hunks": part }),
        };
        if let Err(error) = self.session.respond(prompt, answer) {
            assert_eq!(error.kind(), "alreadyResolved", "{error:?}");
        }
    }

    /// Waits until everything that was started is done, and takes in what the user has done.
    fn settle(&mut self) {
        for id in std::mem::take(&mut self.begun) {
            self.client.editor.answer_late();
            self.session.wait_resolved(&id);
        }
        self.client.editor.answer_late();
        let acts = self.client.editor.acts();
        // Taking the agent's steps back, or bringing them back, is reviewing and not writing.
        let written = acts[self.seen_acts..].iter().filter(|act| act.step_by == Writer::User);
        for act in written {
            let (before, after) = (chars(&act.before), chars(&act.after));
            self.gone.extend(before.difference(&after));
            for char in after.difference(&before) {
                self.gone.remove(char);
                // An undo of the user's brings back the agent's text, too, and that stays the agent's.
                if u32::from(*char) >= USERS {
                    self.owned.insert(*char);
                }
            }
        }
        self.seen_acts = acts.len();
        for event in self.session.events().iter().filter(|event| event["type"] == "edits_resolved") {
            let resolved = event["resolved"].as_array().unwrap().iter();
            self.hunks.extend(resolved.map(|hunk| hunk.as_str().unwrap().to_owned()));
        }
    }

    /// Listed hunks are at their stated place, and the server has the text of the screen.
    fn check(&mut self) {
        self.listed();
        for file in self.session.edited_files() {
            let name = (0..FILES.len()).find(|file_at| file["uri"] == self.uri(*file_at)).unwrap();
            let text = self.text(name);
            // Changes of others in a closed file are taken in when the agent or the user acts on it.
            if name == 2 {
                continue;
            }
            assert_eq!(file["version"], self.client.editor.version(&self.uri(name)), "{file}");
            let lines: Vec<&str> = text.split_inclusive('\n').collect();
            for hunk in file["hunks"].as_array().unwrap() {
                assert!(["applied", "conflict"].contains(&hunk["state"].as_str().unwrap()), "{hunk}");
                let line = |end: &str| usize::try_from(hunk["lineRange"][end].as_u64().unwrap()).unwrap();
                let shown: String =
                    lines.get(line("start")..line("end")).map(<[_]>::concat).unwrap_or_default();
                assert_eq!(shown, hunk["newText"].as_str().unwrap(), "{hunk} in {text:?}");
                let place = |end: &str| self.client.editor.offset(&self.uri(name), &hunk["range"][end]);
                assert!(text.get(place("start")..place("end")).is_some(), "{hunk} in {text:?}");
            }
        }
        for file in 0..2 {
            let params = json!({ "uri": self.uri(file), "sessionId": self.session.id });
            let known = self.client.call("agent/document/proposed", params)["text"].clone();
            assert_eq!(known, self.text(file), "the server has another text than the screen");
        }
    }

    /// Takes out all that the agent has ever done; the rest belongs to others.
    fn undo_all(&mut self, figures: &mut Figures) {
        // Acts for edits that never came does not happen now.
        self.client.editor.forget();
        self.seen_acts = 0;
        let before: Vec<String> = (0..FILES.len()).map(|file| self.text(file)).collect();
        let ids: Vec<Value> = self.hunks.iter().map(|id| json!({ "hunkId": id })).collect();
        let mut known: Vec<&Value> = ids.iter().collect();
        let begun = loop {
            if known.is_empty() {
                break None;
            }
            match self.session.try_resolve(&known, "undo", "undo") {
                Ok(id) => break Some(id),
                Err(error) if error.kind() == "nothingToDo" => break None,
                // A proposal that was never made is forgotten.
                Err(error) => {
                    assert_eq!(error.kind(), "unknownHunk", "{error:?}");
                    let count = known.len();
                    known.retain(|hunk| !error.message.contains(hunk["hunkId"].as_str().unwrap()));
                    assert!(known.len() < count, "{error:?} names none of those asked for");
                }
            }
        };
        if let Some(id) = &begun {
            let outcome = self.session.wait_resolved(id);
            assert_eq!((&outcome["conflicts"], &outcome["failed"]), (&json!([]), &json!([])), "{outcome}");
            figures.undone += outcome["resolved"].as_array().unwrap().len();
        }
        // A hunk that a save has kept may never have been listed.
        let checkpoints = self.session.call("agent/checkpoint/list", json!({}));
        let first = &checkpoints["checkpoints"][0]["checkpointId"];
        let params = json!({ "checkpointId": first, "what": "files" });
        let restore = self.session.call("agent/checkpoint/restore", params);
        let outcome = self.session.wait_resolved(restore["resolutionId"].as_str().unwrap());
        assert_eq!((&outcome["conflicts"], &outcome["failed"]), (&json!([]), &json!([])), "{outcome}");
        figures.undone += outcome["resolved"].as_array().unwrap().len();
        let restored = (outcome["resolved"] != json!([])).then(|| outcome["resolutionId"].clone());
        assert_eq!(self.session.hunks(), [] as [Value; 0]);
        let texts: Vec<String> = (0..FILES.len()).map(|file| self.text(file)).collect();
        let left = chars(&texts.concat());
        let expected: BTreeSet<char> = self.owned.difference(&self.gone).copied().collect();
        let lost: Vec<char> = expected.difference(&left).copied().collect();
        // Text that the user has deleted in the agent's copy is in the original all the same.
        let copies = self.session.calls().iter().any(|call| call["name"] == "Write");
        let may_stay = |char: &char| copies && u32::from(*char) < AGENTS;
        let too_much: Vec<char> =
            left.difference(&expected).copied().filter(|char| !may_stay(char)).collect();
        figures.lost += lost.len();
        assert!(
            lost.is_empty() && too_much.is_empty(),
            "lost {lost:?}, too much {too_much:?}\nbefore: {before:?}\nafter: {texts:?}"
        );
        for (file, text) in texts.iter().enumerate() {
            let order = |text: &str| -> Vec<char> {
                let is_original = |char: &char| (ORIGINAL..AGENTS).contains(&u32::from(*char));
                text.chars().filter(is_original).collect()
            };
            let mut expected = order(&original(file));
            expected.retain(|char| left.contains(char));
            assert_eq!(order(text), expected, "the order of what was there has changed: {text:?}");
        }
        if let Some(id) = &restored {
            self.session.revert(id.as_str());
        }
        if begun.is_some() {
            self.session.revert(begun.as_deref());
        }
        if restored.is_some() || begun.is_some() {
            let again: Vec<String> = (0..FILES.len()).map(|file| self.text(file)).collect();
            assert_eq!(again, before, "taking the undo back gives another text");
        }
    }
}

pub(super) fn chars(text: &str) -> BTreeSet<char> {
    text.chars().filter(|char| *char != '\n').collect()
}

fn dice(seed: u64, schedule: u64) -> Dice {
    Dice(seed ^ schedule.wrapping_mul(0xD134_2543_DE82_EF95))
}

fn script(seed: u64) -> Script {
    let mut script = Script::default();
    for schedule in 0..SCHEDULES {
        let (mut dice, mut pen) = (dice(seed, schedule), Pen(AGENTS));
        for turn in 0..TURNS {
            let steps = steps(&mut dice, &mut pen, schedule);
            script = script.when(&format!("^play {schedule} {turn}\\.$"), steps);
        }
    }
    script
}

fn play(project: &Project, client: &Client, seed: u64, number: u64, figures: &mut Figures) {
    // The other half of the generator's numbers: the script has used the first.
    let mut dice = dice(!seed, number);
    let is_versioned = number.is_multiple_of(2);
    client.editor.forget();
    let session = client.session();
    let mut play = Play {
        project,
        client,
        session,
        is_versioned,
        number,
        users: Pen(USERS),
        gone: BTreeSet::new(),
        owned: BTreeSet::new(),
        hunks: BTreeSet::new(),
        begun: Vec::new(),
        seen_acts: 0,
    };
    for file in 0..FILES.len() {
        let text = original(file);
        play.owned.extend(chars(&text));
        project.write(&play.name(file), &text);
        if file < 2 {
            client.editor.open(&play.uri(file), &text);
        }
    }
    for at in 0..TURNS {
        let turn = turn(&mut dice, is_versioned, number.is_multiple_of(50) && at == 0);
        play.turn(at, &turn, &mut dice);
        play.check();
        play.write_outside(&mut dice);
    }
    let calls = play.session.calls();
    let edits = || calls.iter().filter(|call| call["name"] != "Read");
    figures.schedules += 1;
    figures.user_acts += client.editor.acts().len();
    figures.completed += edits().filter(|call| call["state"] == "COMPLETED").count();
    figures.conflicts += edits().filter(|call| call["error"] == "conflict").count();
    figures.merged += edits().filter(|call| call["structured"]["rebased"].as_u64() > Some(0)).count();
    figures.refused += edits().filter(|call| call["state"] == "DENIED").count();
    play.undo_all(figures);
    for file in 0..2 {
        client.editor.close(&play.uri(file));
    }
    play.session.call("agent/session/close", json!({}));
}

/// Prints what was played, its number and its seed when a test fails in it.
pub(super) struct Replay(pub(super) &'static str, pub(super) u64, pub(super) u64);

#[allow(clippy::print_stdout, reason = "the harness shows it with the failure")]
impl Drop for Replay {
    fn drop(&mut self) {
        if std::thread::panicking() {
            println!("in {} {} of {SEED}={}", self.0, self.1, self.2);
        }
    }
}

/// A number from the environment.
pub(super) fn number(variable: &str, default: u64) -> u64 {
    let Ok(value) = env::var(variable) else { return default };
    value.parse().unwrap_or_else(|_| panic!("{variable} is no number: {value}"))
}

#[allow(clippy::print_stdout, reason = "the figures are what the test is for")]
#[test]
fn whoever_comes_first_nothing_of_the_users_is_lost_and_all_of_the_agents_can_be_taken_out() {
    let seed = number(SEED, DEFAULT_SEED);
    let project = Project::new(&script(seed));
    let versioned = project.connect(&Offer::kode());
    let plain =
        project.connect(&Offer::kode().with("/workspace/workspaceEdit/documentChanges", json!(false)));
    let mut figures = Figures::default();
    for number in 0..SCHEDULES {
        let _replay = Replay("schedule", number, seed);
        let client = if number.is_multiple_of(2) { &versioned } else { &plain };
        play(&project, client, seed, number, &mut figures);
    }
    println!("{figures:?}");
    // Else the tested case has not happened.
    assert!(2 * figures.completed as u64 > 3 * SCHEDULES, "{figures:?}");
    assert!(figures.merged >= LEAST_MERGED, "{figures:?}");
}
