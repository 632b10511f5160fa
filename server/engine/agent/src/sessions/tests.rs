//! The catalogue over journals as they lie on a disk: whole, damaged, growing, large, locked.

use std::fs::{self, OpenOptions};
use std::io::Write as _;

use jiff::{SignedDuration, Timestamp};
use serde_json::json;
use tokio_util::sync::CancellationToken;

use super::*;
use crate::sessions::BLOBS;
use kode_base::ids::{ItemId, ResolutionId, TurnId};
use kode_base::mode::Mode;
use kode_journal::Blobs;
use kode_model::{Block, Image, Message, Usage};
use kode_record::context::Pace;
use kode_record::event::{Item, ItemBody};

struct Home {
    folder: tempfile::TempDir,
}

impl Home {
    fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap() }
    }

    fn catalogue(&self) -> Catalogue {
        Catalogue::new(&AbsPath::new(self.folder.path()).unwrap())
    }

    fn workspace(&self) -> AbsPath {
        AbsPath::new(self.folder.path().join("work")).unwrap()
    }

    fn here(&self) -> WorkspaceFilter {
        WorkspaceFilter::These(vec![self.workspace()])
    }

    /// Where the journal of a session is.
    fn journal(&self, name: &str) -> PathBuf {
        self.catalogue().folder(&self.workspace()).join(name).join(JOURNAL)
    }

    /// A stored session whose first and only turn was about some words.
    fn store(&self, name: &str, prompt: &str, answer: &str) -> PathBuf {
        let path = self.journal(name);
        let journal = Journal::open(&path).unwrap();
        let (roots, cwd) = (vec![self.workspace()], self.workspace());
        let session = SessionId::from_external(name);
        let model = "main".to_owned();
        journal
            .append(&Record::Opened {
                session,
                roots,
                cwd,
                mode: Mode::Default.into(),
                model,
                forked_from: None,
                worktree: None,
            })
            .unwrap();
        turn(prompt, answer).iter().for_each(|record| journal.append(record).unwrap());
        path
    }

    fn list(&self, catalogue: &Catalogue, query: &ListSessions) -> SessionPage {
        catalogue.list(query, &|_| None).unwrap()
    }

    fn ids(&self) -> Vec<String> {
        let page = self.list(&self.catalogue(), &ListSessions::newest(self.here(), 100));
        page.sessions.into_iter().map(|session| session.id.to_string()).collect()
    }

    fn one(&self, catalogue: &Catalogue) -> SessionSummary {
        let query =
            ListSessions { archived: ArchiveFilter::Include, ..ListSessions::newest(self.here(), 100) };
        self.list(catalogue, &query).sessions.remove(0)
    }

    fn search(&self, text: &str) -> Vec<Hit> {
        let (workspaces, text) = (self.here(), text.to_owned());
        let query = SearchSessions { workspaces, text, limit: 100, cursor: None };
        self.catalogue().search(&query, &CancellationToken::new()).unwrap().hits
    }
}

fn item(turn: &TurnId, body: ItemBody) -> Item {
    let (id, timestamp) = (ItemId::generate(), Timestamp::now());
    Item { id, turn: turn.clone(), agent: None, timestamp, body }
}

fn turn(prompt: &str, answer: &str) -> Vec<Record> {
    let turn = TurnId::generate();
    let said = ItemBody::AgentMessage {
        text: answer.to_owned(),
        complete: true,
        interrupted: false,
        model: None,
        duration_ms: None,
    };
    let usage = Usage { input_tokens: 10, ..Usage::default() };
    vec![
        Record::Prompt {
            turn: turn.clone(),
            queued: None,
            item: item(&turn, ItemBody::user_message(prompt)),
            content: vec![Block::Text { text: prompt.to_owned() }],
            parts: vec![],
            options: kode_record::options::TurnOptions::default(),
        },
        Record::Answer {
            turn: turn.clone(),
            message: Message::assistant(vec![Block::Text { text: answer.to_owned() }]),
            items: vec![item(&turn, said)],
            streamed: vec![],
            duration_ms: None,
            mode: None,
            usage,
        },
        charged(&turn, Some(0.25)),
    ]
}

fn charged(turn: &TurnId, cost: Option<f64>) -> Record {
    let usage = Usage { input_tokens: 10, ..Usage::default() };
    Record::Charged {
        turn: turn.clone(),
        model: "m".to_owned(),
        usage,
        cost,
        context: None,
        pace: Pace::default(),
        provider: String::new(),
        aside: false,
    }
}

fn append(path: &Path, records: &[Record]) {
    let journal = Journal::open(path).unwrap();
    records.iter().for_each(|record| journal.append(record).unwrap());
}

#[test]
fn the_list_says_what_a_journal_says_and_keeps_up_with_it() {
    let home = Home::new();
    let path = home.store("ses_1", "fix the cache\nplease", "Done,\n  it is fixed.");
    let catalogue = home.catalogue();
    let first = home.one(&catalogue);
    assert_eq!((first.title.as_str(), first.titled, first.turns), ("fix the cache", None, Some(1)));
    assert_eq!((first.answer.as_str(), first.cost), ("Done, it is fixed.", Some(0.25)));
    assert_eq!(
        (first.mode, first.model.as_str(), first.folder.as_ref()),
        (Some(Mode::Default), "main", Some(&home.workspace()))
    );
    assert_eq!(first.size.journal, path.metadata().unwrap().len());
    append(&path, &[Record::Drafted { draft: None }]);
    assert_eq!(home.one(&catalogue).updated, first.updated, "whoever leaves a session writes this");
    assert!(first.created.unwrap() <= first.updated && first.presence == SessionPresence::Stored);
    let (more, by) = (turn("next", "More."), TitledBy::Model);
    append(&path, &more);
    append(&path, &[Record::Titled { title: "Cache".to_owned(), by }, charged(&TurnId::generate(), None)]);
    let next = home.one(&catalogue);
    assert_eq!((next.title.as_str(), next.titled, next.turns), ("Cache", Some(by), Some(2)));
    assert_eq!((next.answer.as_str(), next.cost), ("More.", None), "a part of the cost is unknown");
    assert_eq!(home.one(&home.catalogue()), next, "without anything known before");
}

#[test]
fn going_back_before_the_first_prompt_takes_its_title_along() {
    let home = Home::new();
    let path = home.store("ses_1", "first", "answer");
    let catalogue = home.catalogue();
    let read = kode_journal::read(&path).unwrap();
    let Record::Prompt { turn: first, .. } = &read.records[1] else { panic!("{read:?}") };
    let resolution = ResolutionId::generate();
    append(&path, &[Record::Rewound { turn: first.clone(), resolution: resolution.clone(), files: false }]);
    assert_eq!(home.one(&catalogue).title, "");
    append(&path, &[Record::Unwound { resolution }]);
    assert_eq!(home.one(&catalogue).title, "first");
}

#[test]
fn damaged_sessions_are_listed_with_the_reason_and_hide_none() {
    let home = Home::new();
    for number in 0..50 {
        home.store(&format!("ses_{number:02}"), "prompt", "answer");
    }
    fs::write(home.journal("ses_07"), "no JSON at all\n{\"half\":").unwrap();
    fs::write(home.journal("ses_21"), "").unwrap();
    fs::remove_file(home.journal("ses_33")).unwrap();
    let page = home.list(&home.catalogue(), &ListSessions::newest(home.here(), 100));
    let problem = |session: &SessionSummary| match &session.presence {
        SessionPresence::Unreadable(problem) => Some((session.id.to_string(), problem.clone())),
        _ => None,
    };
    let mut problems: Vec<_> = page.sessions.iter().filter_map(problem).collect();
    problems.sort();
    assert_eq!(page.sessions.len(), 50);
    let expected = [("ses_07", "damaged"), ("ses_21", "empty"), ("ses_33", "cannot be read")];
    assert_eq!(problems.len(), expected.len(), "{problems:?}");
    for ((id, problem), (name, word)) in problems.iter().zip(expected) {
        assert!(id == name && problem.contains(word), "{problems:?}");
    }
}

#[test]
fn pages_proceed_while_sessions_come_go_and_change() {
    let home = Home::new();
    let mut names: Vec<String> = (0..9).map(|number| format!("ses_{number}")).collect();
    for name in &names {
        home.store(name, name, "answer");
    }
    names.reverse();
    let catalogue = home.catalogue();
    let mut query = ListSessions::newest(home.here(), 3);
    let mut seen = Vec::new();
    loop {
        let page = home.list(&catalogue, &query);
        seen.extend(page.sessions.iter().map(|session| session.id.to_string()));
        let Some(next) = page.next else { break };
        if query.cursor.is_none() {
            // The one that the next page begins after goes, one is used, and one comes.
            catalogue.delete(&home.here(), &SessionId::from_external("ses_6")).unwrap();
            append(&home.journal("ses_7"), &[Record::Delivering { rules: vec![] }]);
            home.store("ses_new", "new", "answer");
        }
        query.cursor = Some(next);
    }
    assert_eq!(seen, names, "each once, in the order there was");
    query.cursor = Some("nonsense".to_owned());
    assert_eq!(catalogue.list(&query, &|_| None), Err(BadCursor));
}

#[test]
fn caches_cost_nothing_when_they_are_lost_damaged_or_of_another_journal() {
    let home = Home::new();
    let path = home.store("ses_1", "first", "answer");
    let expected = home.one(&home.catalogue());
    let summary = path.with_file_name("summary.json");
    refresh(&path);
    let good = fs::read_to_string(&summary).unwrap();
    let mut later: serde_json::Value = serde_json::from_str(&good).unwrap();
    later["version"] = json!(99);
    for bad in ["", "{}", "[1,", &later.to_string()] {
        fs::write(&summary, bad).unwrap();
        assert_eq!(home.one(&home.catalogue()).title, expected.title, "{bad}");
    }
    // Another journal under the same name, as long as the one before.
    let text = fs::read_to_string(&path).unwrap();
    fs::write(&path, text.replace("first", "other")).unwrap();
    fs::write(&summary, good).unwrap();
    let journal = OpenOptions::new().append(true).open(&path).unwrap();
    journal.set_modified(std::time::SystemTime::now() + std::time::Duration::from_secs(9)).unwrap();
    assert_eq!(home.one(&home.catalogue()).title, "other");
}

#[test]
fn an_index_answers_for_sessions_whose_journals_are_as_they_were() {
    let home = Home::new();
    for number in 0..40 {
        home.store(&format!("ses_{number:02}"), "prompt", "answer");
    }
    let whole = home.list(&home.catalogue(), &ListSessions::newest(home.here(), 100));
    let index = home.catalogue().folder(&home.workspace()).join("index.jsonl");
    let text = fs::read_to_string(&index).unwrap();
    assert_eq!(home.list(&home.catalogue(), &ListSessions::newest(home.here(), 100)), whole);
    // The list has the stated values: nothing was opened.
    fs::write(&index, text.replace("\"title\":\"prompt\"", "\"title\":\"kept\"")).unwrap();
    let again = home.list(&home.catalogue(), &ListSessions::newest(home.here(), 100));
    assert!(again.sessions.iter().all(|session| session.title == "kept"), "{again:?}");
    // An entry that says nothing to go by costs a read of its journal.
    fs::write(&index, text.replace("\"title\":\"prompt\"", "\"title\":7")).unwrap();
    assert_eq!(home.list(&home.catalogue(), &ListSessions::newest(home.here(), 100)), whole);
    fs::write(&index, "damaged").unwrap();
    let without = home.list(&home.catalogue(), &ListSessions::newest(home.here(), 100));
    assert!(without.sessions.iter().all(|session| session.title == "prompt"));
}

#[test]
fn of_a_large_journal_head_and_tail_are_enough_until_it_is_read_as_a_whole() {
    let home = Home::new();
    let path = home.store("ses_1", "first", "answer");
    let journal = Journal::open(&path).unwrap();
    let filling = "x".repeat(100_000);
    journal.append(&Record::Archived { archived: true }).unwrap();
    for number in 0..20 {
        turn(&filling, &format!("answer {number}")).iter().for_each(|record| journal.append(record).unwrap());
    }
    journal.append(&Record::Archived { archived: false }).unwrap();
    drop(journal);
    let catalogue = home.catalogue();
    let quick = home.one(&catalogue);
    assert_eq!((quick.title.as_str(), quick.turns, quick.cost), ("first", None, None));
    catalogue.close_gaps(&home.here());
    let whole = home.one(&catalogue);
    assert_eq!((whole.turns, whole.answer.as_str(), whole.cost), (Some(21), "answer 19", Some(5.25)));
    assert!(!whole.archived);
}

#[test]
fn what_is_put_away_is_listed_only_where_that_is_asked_for() {
    let home = Home::new();
    home.store("ses_a", "a", "answer");
    home.store("ses_b", "b", "answer");
    let catalogue = home.catalogue();
    let order = home.ids();
    catalogue.archive(&home.here(), &SessionId::from_external("ses_a"), true).unwrap();
    let ids = |archived| {
        let query = ListSessions { archived, ..ListSessions::newest(home.here(), 9) };
        let sessions = home.list(&catalogue, &query).sessions;
        sessions.into_iter().map(|session| session.id.to_string()).collect::<Vec<_>>()
    };
    assert_eq!(ids(ArchiveFilter::Hide), ["ses_b"]);
    assert_eq!(ids(ArchiveFilter::Only), ["ses_a"]);
    assert_eq!(ids(ArchiveFilter::Include), order, "to be put away is nothing that happens in it");
}

#[test]
fn zeros_that_a_power_cut_left_before_a_line_take_nothing_out_again() {
    let home = Home::new();
    let path = home.store("ses_1", "first", "answer");
    append(&path, &[Record::Archived { archived: true }]);
    let text = fs::read_to_string(&path).unwrap();
    let last = text.trim_end().rfind('\n').unwrap() + 1;
    fs::write(&path, format!("{}\0\0\0\0{}", &text[..last], &text[last..])).unwrap();
    assert!(home.one(&home.catalogue()).archived);
}

#[test]
fn what_somebody_has_open_is_reported_and_neither_changed_nor_deleted() {
    let home = Home::new();
    let path = home.store("ses_1", "first", "answer");
    let held = Journal::open(&path).unwrap();
    let (catalogue, id) = (home.catalogue(), SessionId::from_external("ses_1"));
    assert_eq!(home.one(&catalogue).presence, SessionPresence::Elsewhere);
    let busy = |result: Result<(), SessionError>| match result {
        Err(SessionError::Storage { source, .. }) => assert_eq!(source.kind(), io::ErrorKind::ResourceBusy),
        other => panic!("{other:?}"),
    };
    busy(catalogue.delete(&home.here(), &id));
    busy(catalogue.rename(&home.here(), &id, "title"));
    busy(catalogue.archive(&home.here(), &id, true));
    assert_eq!(home.search("first").len(), 1, "it is searched all the same");
    held.release();
    catalogue.rename(&home.here(), &id, "title").unwrap();
    assert_eq!(home.one(&catalogue).title, "title");
    catalogue.delete(&home.here(), &id).unwrap();
    assert!(!path.parent().unwrap().exists() && home.ids().is_empty());
    assert!(matches!(catalogue.delete(&home.here(), &id), Err(SessionError::Unknown(_))));
}

#[test]
fn a_delete_that_was_broken_off_leaves_nothing_in_the_list_and_no_room_taken() {
    let home = Home::new();
    let path = home.store("ses_1", "first", "answer");
    let folder = path.parent().unwrap();
    let trash = folder.with_file_name(".trash-ses_1-0");
    fs::rename(folder, &trash).unwrap();
    assert!(home.ids().is_empty());
    let options = CleanupOptions { now: Timestamp::now(), days: None, announces: true };
    home.catalogue().clean_up(options).unwrap().unwrap();
    assert!(!trash.exists());
}

#[test]
fn ids_are_completed_by_their_beginning_and_lead_nowhere_else() {
    let home = Home::new();
    home.store("ses_0a1", "a", "answer");
    home.store("ses_0b2", "b", "answer");
    let catalogue = home.catalogue();
    let complete = |wanted: &str| catalogue.complete(&home.here(), wanted).map(|id| id.to_string());
    assert_eq!(complete("0a"), Ok("ses_0a1".to_owned()));
    assert_eq!(complete("ses_0b2"), Ok("ses_0b2".to_owned()));
    assert!(matches!(complete("ses_0"), Err(FindError::Several { found, .. }) if found.len() == 2));
    assert_eq!(complete("x"), Err(FindError::None("x".to_owned())));
    for id in ["", "..", "../ses_0a1", "ses_0a1/blobs"] {
        let found = catalogue.find(&WorkspaceFilter::All, &SessionId::from_external(id));
        assert!(matches!(found, Err(SessionError::Unknown(_))), "{id}");
    }
}

#[test]
fn words_are_found_however_json_writes_them_and_capitals_do_not_matter() {
    let home = Home::new();
    let path = home.store("ses_1", "Say \"héllo\" to C:\\dir", "ÄNDERUNG in größe\n😀 tab\there");
    // As other writers of JSON escape what need not be escaped.
    let text = fs::read_to_string(&path).unwrap();
    let escaped = text.replace('é', "\\u00e9").replace("😀", "\\uD83D\\uDE00");
    assert_ne!(text, escaped);
    for text in [text, escaped] {
        fs::write(&path, text).unwrap();
        for (words, kind) in [
            ("\"HÉLLO\" to", HitKind::Prompt),
            ("c:\\DIR", HitKind::Prompt),
            ("änderung", HitKind::Answer),
            ("GRÖSSE", HitKind::Answer),
            ("😀", HitKind::Answer),
        ] {
            let hits = home.search(words);
            if words == "GRÖSSE" {
                assert!(hits.is_empty(), "letters are compared one by one");
                continue;
            }
            assert_eq!(hits.len(), 1, "{words}: {hits:?}");
            assert_eq!(hits[0].kind, kind);
            let found = &hits[0].snippet[hits[0].range.clone()];
            assert_eq!(found.to_lowercase(), words.to_lowercase());
            assert!(!hits[0].snippet.contains(['\n', '\t']));
        }
    }
}

#[test]
fn pictures_thoughts_and_keys_of_json_are_not_searched() {
    let home = Home::new();
    let path = home.store("ses_1", "look", "answer");
    let turn = TurnId::generate();
    let picture =
        Block::Image(Image { media_type: "image/png".to_owned(), data: "needle".repeat(100), text: None });
    let (queued, parts) = (None, vec![]);
    let thought = ItemBody::Thinking { text: "needle".to_owned(), complete: true };
    append(
        &path,
        &[
            Record::Prompt {
                turn: turn.clone(),
                queued,
                item: item(&turn, ItemBody::user_message("a picture")),
                content: vec![picture],
                parts,
                options: kode_record::options::TurnOptions::default(),
            },
            Record::Item { item: item(&turn, thought), streamed: false },
        ],
    );
    assert_eq!(home.search("needle"), []);
    assert_eq!(home.search("timestamp"), []);
    assert_eq!(home.search("a picture").len(), 1);
}

#[test]
fn titles_and_tool_calls_are_found_once_with_their_items_and_damaged_lines_are_passed_over() {
    let home = Home::new();
    let path = home.store("ses_1", "go", "answer");
    let mut file = OpenOptions::new().append(true).open(&path).unwrap();
    let title = "cargo test needle";
    for line in [
        json!({ "v": 1, "written": Timestamp::now(), "type": "callMoved", "item": "item_1", "at": Timestamp::now(), "state": "APPROVAL_REQUIRED", "title": title }),
        json!({ "v": 1, "written": Timestamp::now(), "type": "callMoved", "item": "item_1", "at": Timestamp::now(), "state": "EXECUTING", "title": title }),
        json!("needle"),
        json!({ "v": 1, "written": Timestamp::now(), "type": "inAgent", "agent": "agent_1", "record": {
            "type": "callEnded", "item": "item_2", "at": Timestamp::now(),
            "outcome": { "state": "COMPLETED", "display": "1 needle" },
            "result": { "type": "tool_result", "tool_use_id": "c", "content": "found the needle in the hay", "is_error": false },
        }}),
    ] {
        writeln!(file, "{line}").unwrap();
    }
    writeln!(file, "{{\"broken needle").unwrap();
    append(&path, &[Record::Titled { title: "My needle".to_owned(), by: TitledBy::User }]);
    let hits = home.search("NEEDLE");
    let found: Vec<_> = hits
        .iter()
        .map(|hit| (hit.kind, hit.item.as_ref().map(ItemId::as_str), hit.snippet.as_str()))
        .collect();
    assert_eq!(
        found,
        [
            (HitKind::Title, None, "My needle"),
            (HitKind::ToolOutput, Some("item_2"), "found the needle in the hay"),
            (HitKind::ToolTitle, Some("item_1"), title),
        ]
    );
}

#[test]
fn hits_come_in_pages_the_newest_first_each_once() {
    let home = Home::new();
    for name in ["ses_1", "ses_2", "ses_3"] {
        let path = home.store(name, "needle 0", "needle 1");
        let journal = Journal::open(&path).unwrap();
        for number in 1..4 {
            let (prompt, answer) = (format!("needle {}", 2 * number), format!("needle {}", 2 * number + 1));
            turn(&prompt, &answer).iter().for_each(|record| journal.append(record).unwrap());
        }
    }
    let catalogue = home.catalogue();
    let mut query =
        SearchSessions { workspaces: home.here(), text: "needle".to_owned(), limit: 5, cursor: None };
    let mut seen = Vec::new();
    loop {
        let page = catalogue.search(&query, &CancellationToken::new()).unwrap();
        assert!(page.hits.len() <= 5);
        seen.extend(page.hits.iter().map(|hit| (hit.session.to_string(), hit.snippet.clone())));
        match page.next {
            Some(next) => query.cursor = Some(next),
            None => break,
        }
    }
    let expected: Vec<_> = ["ses_3", "ses_2", "ses_1"]
        .iter()
        .flat_map(|name| (0..8).rev().map(move |number| ((*name).to_owned(), format!("needle {number}"))))
        .collect();
    assert_eq!(seen, expected);
    let cancel = CancellationToken::new();
    cancel.cancel();
    query.cursor = None;
    assert_eq!(catalogue.search(&query, &cancel).unwrap().hits, []);
    for (text, bad) in [(" ", BadQuery::Empty), (&*"x".repeat(201), BadQuery::TooLong)] {
        query.text = text.to_owned();
        assert_eq!(catalogue.search(&query, &cancel), Err(bad));
    }
}

/// This many days from now.
fn in_days(days: i64) -> Timestamp {
    Timestamp::now().checked_add(SignedDuration::from_hours(24 * days)).unwrap()
}

#[test]
fn only_old_sessions_go_and_none_that_is_open_put_away_or_damaged() {
    let home = Home::new();
    for name in ["ses_old", "ses_open", "ses_away", "ses_damaged"] {
        home.store(name, "prompt", "answer");
    }
    fs::write(home.journal("ses_damaged"), "nonsense\n").unwrap();
    let catalogue = home.catalogue();
    catalogue.archive(&home.here(), &SessionId::from_external("ses_away"), true).unwrap();
    let _open = Journal::open(&home.journal("ses_open")).unwrap();
    let clean = |days, period| {
        catalogue.clean_up(CleanupOptions { now: in_days(days), days: period, announces: true }).unwrap()
    };
    assert_eq!(clean(29, Some(30)).unwrap(), CleanupReport::default());
    assert_eq!(clean(29, Some(30)), None, "once a day");
    #[cfg(unix)]
    {
        let mark = fs::metadata(catalogue.root.join(".cleaned")).unwrap();
        assert_eq!(std::os::unix::fs::PermissionsExt::mode(&mark.permissions()) & 0o777, 0o600);
    }
    assert_eq!(clean(31, None).unwrap().sessions, 0, "never");
    let announced = clean(33, Some(30)).unwrap();
    assert_eq!((announced.sessions, announced.due), (0, 1), "it is announced first");
    assert!(announced.due_bytes > 0);
    let unseen = CleanupOptions { now: in_days(34), days: Some(20), announces: false };
    let unseen = catalogue.clean_up(unseen).unwrap().unwrap();
    assert_eq!((unseen.sessions, unseen.due), (0, 0), "a shorter period was not announced");
    let cleaned = clean(35, Some(30)).unwrap();
    assert_eq!((cleaned.sessions, cleaned.due), (1, 0));
    assert!(cleaned.bytes > 0);
    let mut left: Vec<_> = session_names(&catalogue.folder(&home.workspace())).collect();
    left.sort();
    assert_eq!(left, ["ses_away", "ses_damaged", "ses_open"]);
    assert!(clean(1, Some(30)).is_some(), "a clock that was set back cleans again");
}

#[test]
fn only_contents_that_no_line_names_go_when_they_are_old_and_nobody_has_the_session_open() {
    let home = Home::new();
    let path = home.store("ses_1", "prompt", "answer");
    let folder = path.parent().unwrap();
    let blobs = Blobs::new(folder.join(BLOBS));
    let [named, damaged, lost] = [b"named", &b"damaged"[..], b"lost"].map(|bytes| blobs.put(bytes).unwrap());
    let mut file = OpenOptions::new().append(true).open(&path).unwrap();
    writeln!(file, "{}", json!({ "type": "edits", "entry": { "base": named } })).unwrap();
    writeln!(file, "{{\"entry\":{{\"base\":\"{damaged}\"").unwrap();
    fs::create_dir(folder.join("output")).unwrap();
    fs::write(folder.join("output/call.txt"), "put out").unwrap();
    let catalogue = home.catalogue();
    let clean = |now| {
        let options = CleanupOptions { now, days: Some(30), announces: true };
        catalogue.clean_up(options).unwrap().unwrap()
    };
    assert_eq!(clean(Timestamp::now()).files, 0, "all of it is young");
    let held = Journal::open(&path).unwrap();
    assert_eq!(clean(in_days(2)).files, 0, "it is open");
    held.release();
    drop(held);
    let touch = |days| {
        let file = OpenOptions::new().append(true).open(&path).unwrap();
        file.set_modified(in_days(days).into()).unwrap();
    };
    fs::write(folder.join(".tmp-half"), "half").unwrap();
    touch(3);
    assert_eq!(clean(in_days(4)).files, 2);
    assert!(blobs.get(&named).is_ok() && blobs.get(&damaged).is_ok() && blobs.get(&lost).is_err());
    assert!(!folder.join(".tmp-half").exists() && folder.join("output/call.txt").exists());
    // Used again since, so that its output alone is old.
    touch(39);
    let announced = clean(in_days(40));
    assert_eq!((announced.files, announced.due_files), (0, 1), "it is announced first");
    assert_eq!(clean(in_days(41)).files, 1);
    assert!(path.exists() && !folder.join("output/call.txt").exists());
}
