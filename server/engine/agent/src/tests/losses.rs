//! Sessions of which something is gone when they are opened: why they cannot be had, or what they do without.

use super::charges::{profile, two};
use super::waiting::Settings;
use super::*;
use crate::engine::SessionError;
use kode_base::paths::Target;
use kode_config::policy::Policy;
use kode_testing::text::{FakeEditor, Meanwhile};
use kode_text::document::DocumentSnapshot;
use kode_tools::built_in::built_in;
use ropey::Rope;

/// A session with one turn that has ended; its id, its journal and the bench it was in.
async fn ended(bench: Bench, new: NewSession) -> (SessionId, std::path::PathBuf, Bench) {
    let session = bench.engine.new_session(new).unwrap();
    let mut events = session.events().subscribe(0, vec![]);
    session.prompts().submit(prompt("go")).unwrap();
    until(&mut events, is_done).await;
    let (id, path) = (session.id().clone(), session.core().journal().path().to_path_buf());
    bench.engine.shutdown().await;
    (id, path, bench)
}

fn new(bench: &Bench) -> NewSession {
    NewSession { roots: vec![bench.root()], mode: Some(Mode::AcceptEdits), model: None }
}

/// The warnings of the transcript.
fn warnings(session: &Session) -> Vec<String> {
    let text = |item: Arc<Item>| match item.body.clone() {
        ItemBody::Notice { text, level: NoticeLevel::Warning, .. } => Some(text),
        _ => None,
    };
    session.snapshot(usize::MAX).items.into_iter().filter_map(text).collect()
}

async fn asks(session: &Arc<Session>) -> Option<TurnEnd> {
    let mut events = session.events().subscribe(session.events().newest(), vec![]);
    session.prompts().submit(prompt("and now")).unwrap();
    let seen = until(&mut events, is_done).await;
    seen.into_iter().find_map(|record| match record.event {
        Event::Done { reason, .. } => Some(reason),
        _ => None,
    })
}

#[tokio::test(start_paused = true)]
async fn what_is_no_file_in_the_place_of_a_journal_is_said_in_the_words_of_the_system() {
    let bench = Bench::new(vec![]);
    let wanted = new(&bench);
    let (id, path, bench) = ended(bench, wanted).await;
    let roots = [bench.root()];
    let bench = Bench::in_home(bench.home, vec![]);
    let refused = async || match bench.engine.load_session(&roots, &id).await {
        Err(SessionError::Storage { path: named, source }) if named == path => source.to_string(),
        Err(other) => panic!("{other}"),
        Ok(_) => panic!("it was opened"),
    };
    std::fs::remove_file(&path).unwrap();
    std::fs::create_dir(&path).unwrap();
    assert_eq!(refused().await, "it is no file");
    std::fs::remove_dir(&path).unwrap();
    #[cfg(unix)]
    {
        let target = bench.home.path().join("nowhere");
        std::os::unix::fs::symlink(&target, &path).unwrap();
        let nothing = std::fs::metadata(&target).unwrap_err();
        assert_eq!(refused().await, nothing.to_string());
        assert!(!target.exists(), "it is not made");
        std::fs::remove_file(&path).unwrap();
    }
    let gone = bench.engine.load_session(&roots, &id).await.err().unwrap();
    assert!(matches!(gone, SessionError::Unknown(_)), "{gone}");
}

#[tokio::test(start_paused = true)]
async fn a_session_whose_model_is_gone_is_answered_by_the_main_one_and_says_so_once() {
    let (bench, _other) =
        two((profile("demo"), vec![]), (profile("other"), vec![]), Arc::new(NoPolicyProvider));
    let wanted = NewSession { model: Some("other".to_owned()), ..new(&bench) };
    let (id, _, bench) = ended(bench, wanted).await;
    let mut home = bench.home;
    for _ in 0..2 {
        let bench = Bench::in_home(home, vec![]);
        let session = bench.engine.load_session(&[bench.root()], &id).await.unwrap();
        let reported = "The model profile `other` of this session is gone; `demo` answers from now on.";
        assert_eq!(warnings(&session), [reported]);
        assert_eq!(session.snapshot(0).model, "demo");
        assert_eq!(asks(&session).await, Some(TurnEnd::EndTurn));
        assert_eq!(bench.requests().len(), 1);
        bench.engine.shutdown().await;
        home = bench.home;
    }
}

/// A newer build may have modes of which this one knows nothing; what else its records say counts.
#[tokio::test(start_paused = true)]
async fn a_session_in_a_mode_of_a_newer_build_opens_in_the_default_mode_and_says_so_once() {
    for at_the_start in [true, false] {
        let bench = Bench::new(vec![]);
        let wanted = new(&bench);
        let (id, path, bench) = ended(bench, wanted).await;
        let mut journal = std::fs::read_to_string(&path).unwrap();
        if at_the_start {
            journal = journal.replacen("\"mode\":\"acceptEdits\"", "\"mode\":\"turbo\"", 1);
        } else {
            let line = json!({
                "v": 1, "seq": 100, "written": "2030-01-01T00:00:00Z", "type": "configured", "mode": "turbo",
                "model": "demo", "effort": "high", "outputStyle": "Concise",
            });
            journal = format!("{journal}{line}\n");
        }
        std::fs::write(&path, journal).unwrap();
        let mut home = bench.home;
        for _ in 0..2 {
            let bench = Bench::in_home(home, vec![]);
            let session = bench.engine.load_session(&[bench.root()], &id).await.unwrap();
            let reported = "This version of kode-ls does not know the mode `turbo` of this session.";
            assert_eq!(warnings(&session), [reported]);
            let now = session.snapshot(0);
            assert_eq!(now.mode, Mode::Default);
            assert_eq!(now.output_style.is_some(), !at_the_start);
            assert_eq!(asks(&session).await, Some(TurnEnd::EndTurn));
            bench.engine.shutdown().await;
            home = bench.home;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_session_in_a_mode_that_was_switched_off_opens_in_the_default_mode_and_says_so() {
    let bench = Bench::new(vec![]);
    let wanted = NewSession { mode: Some(Mode::BypassPermissions), ..new(&bench) };
    let (id, _, bench) = ended(bench, wanted).await;
    let settings = Settings::default();
    settings.set(Policy { is_bypass_disabled: true, ..Policy::default() });
    let bench = Bench::with_policies(bench.home, vec![], Registry::default(), Arc::new(settings));
    let session = bench.engine.load_session(&[bench.root()], &id).await.unwrap();
    assert_eq!(session.mode(), Mode::Default);
    let reported = warnings(&session);
    assert!(
        reported.len() == 1
            && reported[0].contains("bypassPermissions")
            && reported[0].contains("switched off"),
        "{reported:?}"
    );
}

/// An editor that is killed ends its pipes first, so that an edit fails before the session is closed.
#[tokio::test(start_paused = true)]
async fn a_restore_whose_editor_goes_away_is_finished_at_the_next_start() {
    let home = tempfile::tempdir().unwrap();
    let file = AbsPath::new(home.path().join("open.txt")).unwrap();
    let editor = |text: &str| {
        let editor = Arc::new(FakeEditor::default());
        editor.open(DocumentSnapshot {
            uri: format!("file://{file}"),
            path: Some(file.clone()),
            language_id: "text".into(),
            version: 1,
            text: Rope::from_str(text),
        });
        editor
    };
    let block = |id: &str, name: &str, input: serde_json::Value| {
        Say::Answer(vec![Block::ToolUse { id: id.into(), name: name.into(), input, input_error: None }])
    };
    let bench_of = |home, script, editor: &Arc<FakeEditor>| {
        let host = Arc::clone(editor) as Arc<dyn Host>;
        Bench::with_host(home, script, built_in(), Arc::new(NoPolicyProvider), host)
    };
    let edit = json!({ "file_path": "open.txt", "old_string": "two", "new_string": "TWO" });
    let script = vec![block("c0", "Read", json!({ "file_path": "open.txt" })), block("c1", "Edit", edit)];
    let first = editor("one two\n");
    let bench = bench_of(home, script, &first);
    let wanted = NewSession { mode: Some(Mode::BypassPermissions), ..new(&bench) };
    let session = bench.engine.new_session(wanted).unwrap();
    assert_eq!(asks(&session).await, Some(TurnEnd::EndTurn));
    let target = Target::File(file.clone());
    assert_eq!(first.document(&target).unwrap().text.to_string(), "one TWO\n");

    first.meanwhile(Meanwhile::RefusedLate(Duration::from_secs(1)));
    let checkpoint = session.edits().checkpoints().remove(0).id;
    session.edits().restore(&checkpoint, review::RestoreWhat::Both, review::UserEdits::Keep).unwrap();
    while first.is_expecting() {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    bench.engine.shutdown().await;

    let second = editor("one TWO\n");
    let bench = bench_of(bench.home, vec![], &second);
    bench.engine.load_session(&[bench.root()], session.id()).await.unwrap();
    assert_eq!(second.document(&target).unwrap().text.to_string(), "one two\n");
}

#[tokio::test]
async fn a_session_whose_folder_is_gone_opens_and_says_so_once_and_its_tools_say_why_they_fail() {
    let home = tempfile::tempdir().unwrap();
    let root = AbsPath::new(home.path().join("work")).unwrap();
    std::fs::create_dir(&root).unwrap();
    let bench = Bench::in_home(home, vec![]);
    let wanted = NewSession { roots: vec![root.clone()], ..new(&bench) };
    let (id, _, bench) = ended(bench, wanted).await;
    std::fs::remove_dir_all(&root).unwrap();
    let mut home = bench.home;
    for _ in 0..2 {
        let input = json!({ "command": "pwd" });
        let pwd = Block::ToolUse { id: "c0".into(), name: "Bash".into(), input, input_error: None };
        let bench = Bench::with_tools(home, vec![Say::Answer(vec![pwd])], built_in());
        let session = bench.engine.load_session(std::slice::from_ref(&root), &id).await.unwrap();
        assert_eq!(warnings(&session), [format!("The folder `{root}` that this session works in is gone.")]);
        assert_eq!(asks(&session).await, Some(TurnEnd::EndTurn));
        let (_, said, is_error) = results(&bench.requests()[1]).remove(0);
        assert!(is_error && said.contains("is gone"), "{said}");
        bench.engine.shutdown().await;
        home = bench.home;
    }
}

#[tokio::test(start_paused = true)]
async fn records_of_newer_builds_are_passed_over_counted_and_reported() {
    let bench = Bench::new(vec![]);
    let wanted = new(&bench);
    let (id, path, bench) = ended(bench, wanted).await;
    let mut journal = std::fs::read_to_string(&path).unwrap();
    for (v, kind) in [(1, "dreamed"), (2, "drafted")] {
        let line = json!({ "v": v, "written": "2030-01-01T00:00:00Z", "type": kind, "draft": null });
        journal = format!("{journal}{line}\n");
    }
    std::fs::write(&path, &journal).unwrap();
    let bench = Bench::in_home(bench.home, vec![]);
    let roots = [bench.root()];
    let session = bench.engine.load_session_reporting(&roots, &id, Some(0), |_| {}).await.unwrap();
    let mut events = session.events().subscribe(0, vec![]);
    let is_resumed = |event: &Event| matches!(event, Event::AgentResumed { skipped_records: 2, .. });
    until(&mut events, is_resumed).await;
    assert_eq!(warnings(&session), ["2 records of this session could not be read."]);
    assert_eq!(asks(&session).await, Some(TurnEnd::EndTurn));
    bench.engine.shutdown().await;
    assert!(std::fs::read_to_string(&path).unwrap().starts_with(&journal), "they are kept for newer builds");
}

#[tokio::test(start_paused = true)]
async fn a_journal_without_a_readable_record_is_said_to_be_one_and_is_left_as_it_is() {
    let bench = Bench::new(vec![]);
    let wanted = new(&bench);
    let (id, path, bench) = ended(bench, wanted).await;
    let bench = Bench::in_home(bench.home, vec![]);
    for (bytes, lines) in [(&b""[..], 0), (b"nothing\nof ours\n", 2), (b"{\"v\":1,\"half a li", 0)] {
        std::fs::write(&path, bytes).unwrap();
        match bench.engine.load_session(&[bench.root()], &id).await {
            Err(SessionError::Corrupted { path: named, skipped }) => {
                assert_eq!((named, skipped), (path.clone(), lines))
            }
            Err(other) => panic!("{other}"),
            Ok(_) => panic!("it was opened"),
        }
        assert_eq!(std::fs::read(&path).unwrap(), bytes);
    }
}
