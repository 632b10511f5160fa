//! A server that is killed again and again, or its client, or both, at random moments: nothing that was shown is lost, nothing
//! runs twice, and the session continues.
//!
//! Rule: what a session does follows from the seed and its number alone; only at which of its moments the kill comes
//! does not. Every life of the server is checked as the next one begins.

mod mirror;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use kode_e2e::{Client, Offer, Project, Script, Session, call, say, step, summarize};
use serde_json::{Value, json};

use crate::schedules::{DEFAULT_SEED, Dice, SEED, number};
use mirror::{Mirror, is_of};

/// How many kills there are, unless the variable [`KILLS`] says otherwise.
const DEFAULT_KILLS: u64 = 500;

/// Number of kills when this variable holds a number.
const KILLS: &str = "KODE_LS_KILLS";

/// So often a session is killed before it is looked through as a whole.
const KILLS_OF_SESSION: u64 = 25;

/// Number of sessions that are played at once.
const PLAYERS: u64 = 3;

/// Maximum number of events before the kill.
const MOST_EVENTS: u64 = 90;

/// The most milliseconds between the event that was waited for and the kill.
const MOST_DELAY_MS: u64 = 4;

/// The most items a snapshot has.
const ITEMS: u32 = 2_000;

/// The ends of lives, drawn with the same chance each.
const ENDS: [End; 4] = [End::Server, End::Server, End::Client, End::Both];

/// The files that are edited: one is open in the editor, one is not.
const FILES: [&str; 2] = ["open.txt", "closed.txt"];

const ORIGINAL: &str = "one\ntwo MARK\nthree\n";

/// The user's prompt; each is followed by a number of its own, so that everything it leads to can be told apart.
const ASKED: [&str; 8] = ["talk", "run", "both", "open", "closed", "agent", "which", "list"];

fn log(suffix: &str) -> Value {
    json!({ "command": format!("cat >> log <<'END'\n{{{{prompt}}}} /{{{{round}}}}{suffix}\nEND") })
}

fn script() -> Script {
    let words = "some words that come piece by piece, ".repeat(8);
    let file = |name: &str| json!(format!("{{{{cwd}}}}/{name}"));
    let edit = |name: &str| {
        let input = json!({ "file_path": file(name), "old_string": "MARK", "new_string": "MARK." });
        [
            step().text("Reading.").call("Read", json!({ "file_path": file(name) })),
            call("Edit", input),
            say("Edited."),
        ]
    };
    let todos = json!([
        { "content": "First", "activeForm": "Doing it", "status": "completed" },
        { "content": "Then", "activeForm": "Doing that", "status": "pending" },
    ]);
    let options =
        json!([{ "label": "red", "description": "Warm." }, { "label": "blue", "description": "Cold." }]);
    let inquiry = json!({ "question": "Which color?", "header": "Color", "options": options });
    let task = json!({ "description": "work", "prompt": "{{prompt}} work" });
    Script::default()
        .when("^The conversation:", [summarize("as it was").repeat(9)])
        .when(r"talk \d+$", [step().thinking(&words).text(&words).chunk(3)])
        .when(
            r"run \d+$",
            [step().text("I run it.").call("Bash", log("")), call("Bash", log("")), say("It ran.")],
        )
        .when(r"both \d+$", [step().call("Bash", log("a")).call("Bash", log("b")), say("Both ran.")])
        .when(r"open \d+$", edit(FILES[0]))
        .when(r"closed \d+$", edit(FILES[1]))
        .when(r"agent \d+ work$", [step().text("I work.").call("Bash", log("")), say("Worked.")])
        .when(r"agent \d+$", [step().call("Task", task).call("Bash", log("")), say("All worked.")])
        .when(r"which \d+$", [call("AskUserQuestion", json!({ "questions": [inquiry] })), say("Well.")])
        .when(r"list \d+$", [call("TodoWrite", json!({ "todos": todos })), say("Listed.").chunk(2)])
        .otherwise([say("Yes.").repeat(9)])
}

/// The processes to kill.
#[derive(Clone, Copy, Debug)]
enum End {
    /// The server, with the client there to see it.
    Server,
    /// The client; the server ends by itself.
    Client,
    /// The client, and the server soon after.
    Both,
}

/// A session that is killed and resumed.
struct Player {
    project: Project,
    dice: Dice,
    id: String,
    /// The text before the user's eyes.
    mirror: Mirror,
    /// The text of the document that is open.
    text: String,
    /// The accepted prompts.
    accepted: BTreeSet<String>,
    asked: u64,
    /// Whether the conversation may have gone back without anybody having been told.
    is_going_back: bool,
}

/// The acts in a run of the server.
struct Life<'a> {
    session: Session<'a>,
    /// Events that were checked.
    seen: usize,
    /// Turns that have started and must end.
    begun: Vec<String>,
    /// Prompts and questions that were answered.
    answered: BTreeSet<String>,
}

impl Player {
    fn new(dice: Dice) -> Self {
        let project = Project::new(&script());
        for name in FILES {
            project.write(name, ORIGINAL);
        }
        // Ignored files are not restored when the conversation goes back.
        project.write(".gitignore", "log\n");
        let (text, accepted) = (ORIGINAL.to_owned(), BTreeSet::new());
        let mirror = Mirror::default();
        Self { project, dice, id: String::new(), mirror, text, accepted, asked: 0, is_going_back: false }
    }

    fn play(&mut self, kills: u64) {
        {
            let client = self.connect();
            let mode = self.dice.pick(&["default", "acceptEdits", "bypassPermissions"]);
            let session = client.session_with(json!({ "mode": mode }));
            self.id.clone_from(&session.id);
            self.mirror = Mirror::of(&session.snapshot());
            let mut life = Life::of(session);
            self.live(&mut life);
            self.kill(&client, life);
        }
        for _ in 1..kills {
            let client = self.connect();
            let mut life = self.take_up(&client);
            self.live(&mut life);
            self.kill(&client, life);
        }
        let client = self.connect();
        let life = self.take_up(&client);
        self.finish(&client, life);
    }

    fn connect(&self) -> Client {
        let client = self.project.connect(&Offer::kode());
        client.editor.open(&self.project.uri(FILES[0]), &self.text);
        client
    }

    /// Loads the session as a client that was there before, and compares it with what a new one is shown.
    fn take_up<'a>(&mut self, client: &'a Client) -> Life<'a> {
        let session = Session::new(client, &self.id);
        let params = json!({ "since": self.mirror.seq, "items": ITEMS });
        let snapshot = session.call("agent/session/load", params);
        let shown = Mirror::of(&snapshot);
        let went_back = std::mem::take(&mut self.is_going_back);
        if went_back {
            self.accepted.retain(|text| shown.has_asked(text));
        }
        if !went_back || self.mirror.is_kept_in(&shown) {
            self.mirror.assert_kept_in(&shown);
        }
        for text in &self.accepted {
            assert!(shown.has_asked(text), "`{text}` was taken and is gone: {shown:#?}");
        }
        let newest = snapshot["bookmark"]["seq"].as_u64().expect("a number");
        let mut life = Life::of(session);
        while self.mirror.seq < newest {
            self.follow(&mut life, newest);
        }
        self.mirror.assert_shows(&shown);
        self.assert_nothing_ran_twice();
        shown.assert_every_request_was_valid();
        life
    }

    /// Waits for events and takes them in, up to one of that number.
    fn follow(&mut self, life: &mut Life<'_>, newest: u64) {
        let (id, seen) = (self.id.clone(), life.seen);
        let records = life.client().wait_for("an event", |received| {
            let events = received.events(&id);
            (events.len() > seen).then(|| events[seen..].to_vec())
        });
        for record in records {
            if record["bookmark"]["seq"].as_u64() > Some(newest) {
                break;
            }
            life.seen += 1;
            self.mirror.take(&record);
        }
    }

    /// Does what users do, until it is time for the kill.
    fn live(&mut self, life: &mut Life<'_>) {
        let answers = self.dice.below(4) > 0;
        if self.mirror.state == "READY" && self.dice.below(10) == 0 {
            self.go_back(life);
        }
        for _ in 0..=self.dice.below(2) {
            self.ask(life);
        }
        if self.dice.below(5) == 0 {
            let text = format!("unsent {}", self.asked);
            life.session.call("agent/draft/set", json!({ "text": text }));
        }
        let until = usize::try_from(self.dice.below(MOST_EVENTS)).unwrap();
        let from = life.seen;
        while life.seen < from + until && !self.is_idle(life, answers) {
            self.follow(life, u64::MAX);
            if answers {
                self.answer(life);
            }
        }
        thread::sleep(Duration::from_millis(self.dice.below(MOST_DELAY_MS)));
    }

    /// Submits a prompt, or says something to the running turn.
    fn ask(&mut self, life: &mut Life<'_>) {
        self.asked += 1;
        let steers = self.dice.below(5) == 0;
        let compacts = !steers && self.asked > 8 && self.dice.below(10) == 0;
        let text = match (steers, compacts) {
            (true, _) => format!("besides {}", self.asked),
            (_, true) => "/compact".to_owned(),
            _ => format!("{} {}", self.dice.pick(&ASKED), self.asked),
        };
        let delivery = if steers { "steer" } else { "queue" };
        let input = json!([{ "type": "text", "text": text }]);
        let Ok(taken) =
            life.session.request("agent/turn/start", json!({ "input": input, "delivery": delivery }))
        else {
            // The number of waiting prompts.
            return;
        };
        self.accepted.insert(text);
        if taken["type"] == "started" {
            life.begun.push(taken["turnId"].as_str().expect("a turn").to_owned());
        }
    }

    /// Goes back to before one of the newest prompts, without waiting for it.
    fn go_back(&mut self, life: &Life<'_>) {
        let listed = life.session.call("agent/checkpoint/list", json!({}));
        let checkpoints = listed["checkpoints"].as_array().expect("checkpoints");
        let Some(newest) = checkpoints.len().checked_sub(1) else { return };
        let at = newest.saturating_sub(usize::try_from(self.dice.below(3)).unwrap());
        let params = json!({
            "checkpointId": checkpoints[at]["checkpointId"], "what": "both", "userEdits": "keep",
        });
        if let Ok(answer) = life.session.request("agent/checkpoint/restore", params) {
            self.is_going_back = true;
            if self.dice.below(2) == 0 {
                life.session.wait_resolved(answer["resolutionId"].as_str().expect("an act"));
            }
        }
    }

    /// Answers what waits and was not answered.
    fn answer(&mut self, life: &mut Life<'_>) {
        for (id, waiting) in self.mirror.waiting.clone() {
            if !life.answered.insert(id) {
                continue;
            }
            let (method, params) = match waiting.get("permissionId") {
                Some(id) => {
                    let decision = if self.dice.below(4) == 0 { "deny" } else { "allow" };
                    let params = json!({ "permissionId": id, "decision": decision, "scope": "once" });
                    ("agent/permission/respond", params)
                }
                None => {
                    let answers = json!([{ "labels": ["red"] }]);
                    let params = json!({ "questionId": waiting["questionId"], "answers": answers });
                    ("agent/question/respond", params)
                }
            };
            let mut params = params;
            params["sessionId"] = json!(self.id);
            life.client().send_request(method, params);
        }
    }

    /// Whether nothing happens any more by itself.
    fn is_idle(&self, life: &Life<'_>, answers: bool) -> bool {
        match self.mirror.state.as_str() {
            "READY" => {
                let continues = self.mirror.has_queue() && !self.mirror.is_queue_paused();
                !continues && life.begun.iter().all(|turn| self.mirror.ended.contains(turn))
            }
            "PAUSED" => !answers && !self.mirror.waiting.is_empty(),
            _ => false,
        }
    }

    fn kill(&mut self, client: &Client, mut life: Life<'_>) {
        match self.dice.pick(&ENDS) {
            End::Server => client.kill(),
            End::Client => {
                client.hang_up();
                client.wait_for_process();
            }
            End::Both => {
                client.hang_up();
                thread::sleep(Duration::from_millis(self.dice.below(MOST_DELAY_MS)));
                client.kill();
            }
        }
        client.wait_for_end();
        // Earlier text was shown.
        let records = life.session.records();
        for record in &records[life.seen..] {
            life.seen += 1;
            self.mirror.take(record);
        }
        self.text = client.editor.text(&self.project.uri(FILES[0]));
    }

    /// The lines that commands have written, with how often they did.
    fn lines(&self) -> BTreeMap<String, usize> {
        let written = std::fs::read_to_string(self.project.path("log")).unwrap_or_default();
        let mut lines = BTreeMap::new();
        for line in written.lines().filter(|line| line.contains(" /")) {
            *lines.entry(line.to_owned()).or_default() += 1;
        }
        lines
    }

    fn assert_nothing_ran_twice(&self) {
        let lines = self.lines();
        let twice: Vec<_> = lines.iter().filter(|(_, count)| **count > 1).collect();
        assert!(twice.is_empty(), "ran twice: {twice:?}");
        for call in self.mirror.calls().filter(|call| call["name"] == "Bash") {
            let command = call["input"]["command"].as_str().unwrap_or_default();
            let line = command.lines().rev().nth(1).unwrap_or_default();
            let ran = lines.get(line).copied().unwrap_or_default();
            let began = !call["startedAt"].is_null() || is_of(call, &["COMPLETED"]);
            match call["state"].as_str() {
                Some("COMPLETED") => assert_eq!(ran, 1, "{call}"),
                _ if !began => assert_eq!(ran, 0, "it had not begun: {call}"),
                _ => {}
            }
        }
    }

    /// Lets the session come to its end, asks once more, and takes all changes back.
    fn finish(&mut self, client: &Client, mut life: Life<'_>) {
        while !self.is_idle(&life, true) {
            self.answer(&mut life);
            self.follow(&mut life, u64::MAX);
        }
        let turn = life.session.prompt("last");
        // The queue continues after it.
        while !self.mirror.ended.contains(&turn) || self.mirror.state != "READY" || self.mirror.has_queue() {
            self.follow(&mut life, u64::MAX);
            self.answer(&mut life);
        }
        let snapshot = life.session.call("agent/session/load", json!({ "items": ITEMS }));
        let shown = Mirror::of(&snapshot);
        shown.assert_every_request_was_valid();
        self.assert_nothing_ran_twice();
        for (name, text) in [
            (FILES[0], client.editor.text(&self.project.uri(FILES[0]))),
            (FILES[1], self.project.read(FILES[1])),
        ] {
            let edits = |states: &[&str]| {
                let edits = shown.calls().filter(|call| call["name"] == "Edit" && is_of(call, states));
                edits.filter(|call| call["input"]["file_path"].to_string().contains(name)).count()
            };
            let made = text.matches('.').count();
            let (least, most) = (edits(&["COMPLETED"]), edits(&["COMPLETED", "SEALED", "FAILED"]));
            assert!((least..=most).contains(&made), "{name}: {made} of {least} to {most} edits: {text}");
        }
        let hunks = life.session.hunks();
        if !hunks.is_empty() {
            let outcome = life.session.resolve(&hunks.iter().collect::<Vec<_>>(), "undo");
            assert_eq!((&outcome["failed"], &outcome["conflicts"]), (&json!([]), &json!([])), "{outcome}");
        }
        assert_eq!(client.editor.text(&self.project.uri(FILES[0])), ORIGINAL, "{}", FILES[0]);
        assert_eq!(self.project.read(FILES[1]), ORIGINAL, "{}", FILES[1]);
    }
}

impl<'a> Life<'a> {
    fn of(session: Session<'a>) -> Self {
        Self { session, seen: 0, begun: Vec::new(), answered: BTreeSet::new() }
    }

    fn client(&self) -> &'a Client {
        self.session.client()
    }
}

#[test]
fn a_session_that_is_killed_at_any_moment_continues_with_all_that_was_shown() {
    let (seed, kills) = (number(SEED, DEFAULT_SEED), number(KILLS, DEFAULT_KILLS));
    let sessions = kills.div_ceil(KILLS_OF_SESSION);
    let next = AtomicU64::new(0);
    let play = || loop {
        let number = next.fetch_add(1, Ordering::SeqCst);
        if number >= sessions {
            break;
        }
        let of_it = KILLS_OF_SESSION.min(kills - number * KILLS_OF_SESSION);
        let dice = Dice(seed.wrapping_add(number.wrapping_mul(0x9E37_79B9)));
        let played = std::panic::catch_unwind(|| Player::new(dice).play(of_it));
        if let Err(panic) = played {
            next.store(sessions, Ordering::SeqCst);
            eprintln!("session {number} failed; {SEED}={seed} {KILLS}={kills} plays it again");
            std::panic::resume_unwind(panic);
        }
    };
    thread::scope(|scope| (0..PLAYERS).for_each(|_| drop(scope.spawn(play))));
}
