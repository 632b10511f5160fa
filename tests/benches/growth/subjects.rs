//! The costs whose growth is measured, each with how a project of a size is made.
//!
//! Rule: a subject differs between two sizes in that size alone, and everything else is as small as it can be.

use std::fmt::Write as _;
use std::fs;
use std::time::{Duration, Instant};

use kode_e2e::history::{History, Length};
use kode_e2e::keyboard::{KEYSTROKES, Keyboard, open_large};
use kode_e2e::measure::{by_turns, time};
use kode_e2e::{Client, Project, Script, Session, call, say};
use serde_json::{Value, json};

use crate::Subject;
use crate::curve::Growth::{Flat, Linear};

/// Runs that are not counted, and that are.
const WARM_UP: usize = 2;
const RUNS: usize = 15;
/// Runs that start a server each.
const STARTS: usize = 7;
/// Files of one folder.
const IN_A_FOLDER: usize = 100;
/// A line of a large document, with its line break.
const LINE_BYTES: usize = 100;

const DECADES: &[usize] = &[1, 10, 100, 1_000, 10_000];
/// A file keeps 2,000 hunks at most; older ones become part of its text.
const HUNKS: &[usize] = &[1, 10, 100, 1_000, 2_000];

/// All of them.
pub(crate) fn all() -> Vec<Subject> {
    let subject = |name, of, cost, sizes, growth, measure| Subject { name, of, cost, sizes, growth, measure };
    vec![
        subject("list", "stored sessions", "the list of sessions, again", DECADES, Linear, listed_again),
        subject("first-list", "stored sessions", "the first list of a server", DECADES, Linear, listed_first),
        subject(
            "live",
            "open sessions",
            "a turn of one session",
            &[1, 10, 100, 1_000],
            Flat,
            turn_beside_sessions,
        ),
        subject("at-once", "sessions at work", "a turn in each, at once", &[1, 8, 64], Linear, turns_at_once),
        subject(
            "items",
            "turns in the session",
            "opening a session at its end",
            DECADES,
            Flat,
            opened_at_its_end,
        ),
        subject("hunks", "hunks in the file", "a keystroke, taken in", HUNKS, Flat, keystroke_among_hunks),
        subject("review", "hunks in the file", "the list of hunks", HUNKS, Linear, listed_hunks),
        subject(
            "documents",
            "open documents",
            "a keystroke in one of them",
            DECADES,
            Flat,
            keystroke_among_documents,
        ),
        subject(
            "bytes",
            "lines in the document",
            "a keystroke in the middle",
            &[100, 1_000, 10_000, 100_000, 1_000_000],
            Flat,
            keystroke_in_lines,
        ),
        subject("rules", "rules", "one call judged", DECADES, Linear, judged_by_rules),
        subject(
            "skills",
            "skills of the user",
            "a new session, from the start",
            DECADES,
            Linear,
            started_with_skills,
        ),
        subject(
            "prompt",
            "files in the workspace",
            "a session's first turn",
            &[10, 100, 1_000, 10_000, 100_000],
            Linear,
            turn_in_files,
        ),
        subject(
            "glob",
            "files in the workspace",
            "Glob of all files",
            &[10, 100, 1_000, 10_000, 100_000],
            Linear,
            globbed,
        ),
        subject(
            "windows",
            "windows on the session",
            "a turn, shown in each",
            &[1, 2, 4, 8, 16],
            Linear,
            turn_in_windows,
        ),
    ]
}

fn repeated(mut measure: impl FnMut() -> Duration) -> Vec<Duration> {
    let [times] = by_turns(WARM_UP, RUNS, [&mut measure]);
    times
}

fn started(mut measure: impl FnMut() -> Duration) -> Vec<Duration> {
    let [times] = by_turns(1, STARTS, [&mut measure]);
    times
}

fn plain() -> Project {
    Project::new(&Script::default().otherwise([say("Hello.")]))
}

fn run(session: &Session<'_>, text: &str) {
    let done = session.run(text);
    assert_eq!(done["stopReason"], "end_turn", "{done}");
}

// -- sessions --------------------------------------------------------------------------------------------------------

/// A project with this many stored sessions of one turn.
fn stored(count: usize) -> Project {
    let project = plain();
    let client = project.open();
    let session = client.session();
    run(&session, "hello");
    let id = session.id.clone();
    client.shut_down();
    let journal = History::of(&project, &id).path;
    let (text, folder) = (fs::read_to_string(&journal).unwrap(), journal.parent().unwrap().to_owned());
    for number in 0..count {
        let name = format!("ses_{number}");
        let copy = folder.with_file_name(&name);
        fs::create_dir(&copy).unwrap();
        fs::write(copy.join("journal.jsonl"), text.replace(&id, &name)).unwrap();
    }
    fs::remove_dir_all(folder).unwrap();
    project
}

fn list(client: &Client) -> Duration {
    time(|| {
        let page = client.call("agent/session/list", json!({ "limit": 50 }));
        assert!(page["sessions"].as_array().is_some_and(|sessions| !sessions.is_empty()), "{page}");
    })
}

fn listed_again(count: usize) -> Vec<Duration> {
    let project = stored(count);
    let client = project.open();
    repeated(|| list(&client))
}

fn listed_first(count: usize) -> Vec<Duration> {
    let project = stored(count);
    started(|| {
        let client = project.open();
        client.call("agent/models/list", json!({}));
        let time = list(&client);
        client.shut_down();
        time
    })
}

fn turn_beside_sessions(count: usize) -> Vec<Duration> {
    let project = plain();
    let client = project.open();
    let others: Vec<Session<'_>> = (1..count).map(|_| client.session()).collect();
    let session = client.session();
    let times = repeated(|| time(|| run(&session, "hello")));
    drop(others);
    times
}

fn turns_at_once(count: usize) -> Vec<Duration> {
    let project = plain();
    let client = project.open();
    let sessions: Vec<Session<'_>> = (0..count).map(|_| client.session()).collect();
    repeated(|| {
        time(|| {
            let turns: Vec<String> = sessions.iter().map(|session| session.prompt("hello")).collect();
            for (session, turn) in sessions.iter().zip(&turns) {
                session.wait_done(turn);
            }
        })
    })
}

fn opened_at_its_end(turns: usize) -> Vec<Duration> {
    let project = plain();
    let client = project.open();
    let session = client.session();
    run(&session, "hello");
    let id = session.id.clone();
    client.shut_down();
    History::of(&project, &id).write(Length { turns, bytes: 0, compact_every: 100 });
    started(|| {
        let client = project.open();
        let time = time(|| {
            let snapshot = client.call("agent/session/load", json!({ "sessionId": id, "items": 2 }));
            assert_eq!(snapshot["items"].as_array().map(Vec::len), Some(2));
        });
        client.shut_down();
        time
    })
}

// -- documents -------------------------------------------------------------------------------------------------------

/// A keystroke of many: each run without the time of the wait itself.
fn typed(keyboard: &Keyboard<'_>, wait: &dyn Fn()) -> Vec<Duration> {
    repeated(|| {
        let waiting = time(wait);
        let all = keyboard.type_and(wait);
        (all.saturating_sub(waiting) / KEYSTROKES).max(Duration::from_nanos(1))
    })
}

/// A file with a hunk in every tenth line, in the review of a session.
fn with_hunks(
    count: usize,
    measure: impl FnOnce(&Client, &Session<'_>, &str) -> Vec<Duration>,
) -> Vec<Duration> {
    let edit = json!({
        "file_path": "{{cwd}}/many.txt", "old_string": "needle", "new_string": "pin", "replace_all": true,
    });
    let script = Script::new([
        call("Read", json!({ "file_path": "{{cwd}}/many.txt", "limit": 10 })),
        call("Edit", edit),
        say("Edited."),
    ]);
    let project = Project::new(&script);
    let mut text = String::new();
    for line in 0..count * 10 {
        let word = if line % 10 == 0 { "needle" } else { "hay" };
        let _ = writeln!(text, "    let value_{line} = {word}(argument);");
    }
    let client = project.open();
    let session = client.session_with(json!({ "mode": "acceptEdits" }));
    let uri = project.uri("many.txt");
    client.editor.open(&uri, &text);
    run(&session, "edit it");
    assert_eq!(session.hunks().len(), count, "{:?}", session.calls());
    measure(&client, &session, &uri)
}

fn edits(session: &Session<'_>) -> Value {
    session.call("agent/edits/list", json!({}))
}

fn keystroke_among_hunks(count: usize) -> Vec<Duration> {
    with_hunks(count, |client, session, uri| {
        typed(&Keyboard::new(client, uri, count * 10), &|| drop(edits(session)))
    })
}

fn listed_hunks(count: usize) -> Vec<Duration> {
    with_hunks(count, |_, session, _| repeated(|| time(|| edits(session))))
}

fn keystroke_among_documents(count: usize) -> Vec<Duration> {
    let project = plain();
    let client = project.open();
    for number in 0..count {
        client.editor.open(&project.uri(&format!("{number}.txt")), "first\nsecond\nthird\n");
    }
    keys(&Keyboard::new(&client, &project.uri("0.txt"), 3))
}

/// A keystroke of many, until the document has it.
fn keys(keyboard: &Keyboard<'_>) -> Vec<Duration> {
    repeated(|| keyboard.type_some() / KEYSTROKES)
}

fn keystroke_in_lines(lines: usize) -> Vec<Duration> {
    let project = plain();
    let client = project.open();
    let uri = project.uri("large.txt");
    let text = format!("{}\n", "x".repeat(LINE_BYTES - 1)).repeat(lines);
    open_large(&client, &uri, &text);
    keys(&Keyboard::new(&client, &uri, lines))
}

// -- rules and extensions --------------------------------------------------------------------------------------------

fn judged_by_rules(count: usize) -> Vec<Duration> {
    let project = plain();
    let rules: Vec<String> = (0..count).map(|number| format!("Edit(/folder{number}/**)")).collect();
    fs::create_dir_all(project.home()).unwrap();
    fs::write(project.home().join("settings.json"), json!({ "permissions": { "deny": rules } }).to_string())
        .unwrap();
    let client = project.open();
    let session = client.session();
    let mut number = 0;
    repeated(|| {
        number += 1;
        let input = json!({ "file_path": project.path(&format!("src/{number}.txt")), "content": "a" });
        time(|| session.call("agent/permission/explain", json!({ "tool": "Write", "input": input })))
    })
}

fn started_with_skills(count: usize) -> Vec<Duration> {
    let project = plain();
    let home = project.outside().join("user");
    for number in 0..count {
        let folder = home.join(format!(".claude/skills/skill-{number}"));
        fs::create_dir_all(&folder).unwrap();
        let head = format!(
            "---\nname: skill-{number}\ndescription: The skill of number {number}.\n---\nDo it well.\n"
        );
        fs::write(folder.join("SKILL.md"), head).unwrap();
    }
    started(|| {
        let begun = Instant::now();
        let client = project.start_as(&[], &[("HOME", home.to_str().unwrap())]);
        client.initialize(kode_e2e::Offer::kode().params(&project.workspace()));
        let session = client.session();
        run(&session, "hello");
        let time = begun.elapsed();
        client.shut_down();
        time
    })
}

// -- files -----------------------------------------------------------------------------------------------------------

fn fill(project: &Project, count: usize) {
    for number in 0..count {
        project.write(&format!("src/{}/{number}.rs", number / IN_A_FOLDER), "fn a() {}\n");
    }
}

fn turn_in_files(count: usize) -> Vec<Duration> {
    let project = plain();
    fill(&project, count);
    let client = project.open();
    repeated(|| {
        let session = client.session();
        time(|| run(&session, "hello"))
    })
}

fn globbed(count: usize) -> Vec<Duration> {
    let project = Project::new(
        &Script::default().otherwise([call("Glob", json!({ "pattern": "**/*.rs" })), say("Found.")]),
    );
    fill(&project, count);
    let client = project.open();
    let session = client.session();
    repeated(|| time(|| run(&session, "find them")))
}

// -- windows ---------------------------------------------------------------------------------------------------------

fn turn_in_windows(count: usize) -> Vec<Duration> {
    let project = plain();
    let client = project.open();
    let session = client.session();
    run(&session, "hello");
    let others: Vec<Client> = (1..count).map(|_| project.open()).collect();
    let followers: Vec<Session<'_>> = others.iter().map(|other| Session::new(other, &session.id)).collect();
    for follower in &followers {
        follower.call("agent/session/load", json!({}));
    }
    repeated(|| {
        time(|| {
            let turn = session.prompt("hello");
            session.wait_done(&turn);
            for follower in &followers {
                follower.wait_done(&turn);
            }
        })
    })
}
