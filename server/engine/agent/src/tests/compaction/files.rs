//! The files beside a summary: which, in which order, and how much of them.

use ropey::Rope;

use super::super::waiting::Settings;
use super::*;
use crate::context::tokens::Counter;
use kode_base::paths::Target;
use kode_config::policy::Policy;
use kode_model::profile::DEMO_MODEL;
use kode_permission::rules::{Behavior, PlacedRule, RuleSource, SettingsLayer};
use kode_record::compaction::RecoveredFile;
use kode_testing::text::FakeEditor;
use kode_text::document::DocumentSnapshot;
use kode_tools::built_in::built_in;

/// An office with the built-in tools, whose model makes these calls in one turn, one after the other.
struct Archive {
    office: Office,
    editor: Arc<FakeEditor>,
    settings: Settings,
}

impl Archive {
    fn new(window: u64, calls: &[(&str, &str)]) -> Self {
        let script = calls.iter().enumerate().map(|(at, (tool, file))| {
            let input = match *tool {
                "Write" => json!({ "file_path": file, "content": "new\n" }),
                _ => json!({ "file_path": file }),
            };
            let call =
                Block::ToolUse { id: format!("c{at}"), name: (*tool).into(), input, input_error: None };
            (vec![text("looking"), call], 0)
        });
        let (editor, settings) = (Arc::new(FakeEditor::default()), Settings::default());
        let office = Office::with(
            window,
            Copyist::saying(script.collect()),
            built_in(),
            Arc::clone(&editor) as Arc<dyn kode_text::host::Host>,
            Arc::new(settings.clone()),
            |models, _| models,
        );
        Self { office, editor, settings }
    }

    fn write(&self, name: &str, text: &str) {
        std::fs::write(self.office.home.path().join(name), text).unwrap();
    }

    fn root(&self) -> AbsPath {
        AbsPath::new(self.office.home.path()).unwrap()
    }
}

/// Compacts and gives the files that stand beside the summary, and what the model reads of them.
async fn compacted(session: &Session) -> (Vec<RecoveredFile>, String) {
    let done = turn(session, "/compact").await;
    let Some(CompressionStep::Done { compaction }) = steps(&done).pop() else { panic!("{:?}", steps(&done)) };
    let reported = compaction.head.iter().find_map(|block| match block {
        Block::Text { text } if text.starts_with("Files as they are now") => Some(text.clone()),
        _ => None,
    });
    (compaction.files, reported.unwrap_or_default())
}

/// A prompt that is worth compacting.
fn wordy(about: &str) -> String {
    format!("{about}: {}", "lorem ipsum dolor sit amet ".repeat(3_000))
}

fn names(files: &[RecoveredFile]) -> Vec<String> {
    let name = |file: &RecoveredFile| match &file.target {
        Target::File(path) => path.as_path().file_name().unwrap().to_string_lossy().into_owned(),
        other => format!("{other:?}"),
    };
    files.iter().map(name).collect()
}

#[tokio::test]
async fn changed_files_come_before_those_named_often_and_those_before_the_latest() {
    let archive = Archive::new(
        200_000,
        &[
            ("Write", "changed.rs"),
            ("Read", "early.rs"),
            ("Read", "twice.rs"),
            ("Read", "twice.rs"),
            ("Read", "thrice.rs"),
            ("Read", "thrice.rs"),
            ("Read", "thrice.rs"),
            ("Read", "gone.rs"),
            ("Read", "gone.rs"),
            ("Read", "gone.rs"),
            ("Read", "gone.rs"),
            ("Read", "later.rs"),
            ("Read", "latest.rs"),
        ],
    );
    for name in ["early.rs", "twice.rs", "thrice.rs", "gone.rs", "later.rs", "latest.rs"] {
        archive.write(name, &format!("text of {name}\n"));
    }
    let session = archive.office.session();
    session.gate().deliver(
        Deliveries::new(vec![EditDeliveryRule { glob: "**".into(), delivery: EditDelivery::Apply }]).unwrap(),
    );
    turn(&session, &wordy("go")).await;
    turn(&session, "more").await;
    std::fs::remove_file(archive.office.home.path().join("gone.rs")).unwrap();
    archive.editor.open(DocumentSnapshot {
        uri: format!("file://{}", archive.root().join("twice.rs")),
        path: Some(archive.root().join("twice.rs")),
        language_id: "rust".into(),
        version: 1,
        text: Rope::from_str("UNSAVED words\n"),
    });
    let (files, reported) = compacted(&session).await;
    assert_eq!(names(&files), ["changed.rs", "gone.rs", "thrice.rs", "twice.rs", "latest.rs"]);
    let reason = files[1].problem.as_deref().unwrap();
    assert!(reported.contains(&format!("is not shown: {reason}")) && !reason.is_empty(), "{reported}");
    assert!(reported.contains("UNSAVED words") && !reported.contains("text of twice.rs"), "{reported}");
    let has_read = |name: &str| {
        session.services().environment.workspace.has_read_whole(&Target::File(archive.root().join(name)))
    };
    assert!(has_read("latest.rs") && has_read("twice.rs") && !has_read("later.rs") && !has_read("gone.rs"));
}

#[tokio::test]
async fn a_change_that_failed_changes_no_rank() {
    let archive = Archive::new(200_000, &[("Write", "refused.rs"), ("Read", "a.rs"), ("Read", "a.rs")]);
    archive.write("refused.rs", "not read before\n");
    archive.write("a.rs", "a\n");
    let session = archive.office.session();
    turn(&session, &wordy("go")).await;
    turn(&session, "more").await;
    assert_eq!(names(&compacted(&session).await.0), ["a.rs", "refused.rs"]);
}

#[tokio::test]
async fn what_may_not_be_read_is_not_shown_however_often_it_was_named() {
    let archive = Archive::new(
        200_000,
        &[("Read", "denied.rs"), ("Read", "denied.rs"), ("Read", ".env"), ("Read", ".env"), ("Read", "a.rs")],
    );
    archive.write("denied.rs", "hunter1\n");
    archive.write(".env", "KEY=hunter2\n");
    archive.write("a.rs", "plain\n");
    let session = archive.office.session();
    let deny = PlacedRule {
        behavior: Behavior::Deny,
        rule: "Read(denied.rs)".parse().unwrap(),
        source: RuleSource { layer: SettingsLayer::User, file: None, place: None },
        root: None,
    };
    archive.settings.set(Policy { rules: vec![deny], ..Policy::default() });
    let mut events = session.events().subscribe(0, vec![]);
    session.prompts().submit(prompt(&wordy("go"))).unwrap();
    loop {
        until(&mut events, |event| matches!(event, Event::PermissionRequired { .. }) || is_done(event)).await;
        let Some(asked) = session.requests().permissions().pop() else { break };
        let no = kode_permission::PromptAnswer {
            allow: false,
            scope: kode_permission::Scope::Once,
            feedback: None,
            updated_input: None,
            rules: None,
            hunks: None,
            mode: None,
            by: "test".into(),
        };
        session.requests().respond(&asked.id, no).unwrap();
    }
    turn(&session, "more").await;
    let (files, reported) = compacted(&session).await;
    assert_eq!(names(&files), ["a.rs"]);
    assert!(reported.contains("plain") && !reported.contains("hunter"), "{reported}");
}

#[tokio::test]
async fn files_are_cut_at_lines_and_tokens_and_say_so() {
    let wide = ["w0.rs", "w1.rs", "w2.rs", "w3.rs"];
    let mut calls = vec![("Read", "long.rs")];
    calls.extend(wide.iter().map(|name| ("Read", *name)));
    let archive = Archive::new(1_000_000, &calls);
    archive.write("long.rs", &"x\n".repeat(1_200));
    for name in wide {
        archive.write(name, &format!("{}\n", "let it = be;".repeat(10)).repeat(900));
    }
    let session = archive.office.session();
    turn(&session, &"lorem ipsum dolor sit amet ".repeat(20_000)).await;
    turn(&session, "more").await;
    let (files, reported) = compacted(&session).await;
    let long_one = files.iter().find(|file| file.lines == 1_200).unwrap();
    assert_eq!(long_one.shown, 1_000);
    assert!(reported.contains("[lines 1 to 1000 of 1200; read the rest where it counts]"));
    let parts: Vec<_> = reported.split("\n\n").skip(1).collect();
    assert_eq!(parts.len(), 5);
    for (part, file) in parts.iter().zip(&files).filter(|(_, file)| file.lines == 900) {
        let tokens = Counter::of(DEMO_MODEL).text(part);
        assert!((9_800..=10_000).contains(&tokens), "{tokens}");
        assert!(
            part.ends_with(&format!("[lines 1 to {} of 900; read the rest where it counts]", file.shown))
        );
        assert!(!session.services().environment.workspace.has_read_whole(&file.target));
    }
}

#[tokio::test]
async fn all_files_together_have_at_most_their_share() {
    let wide = ["w0.rs", "w1.rs", "w2.rs", "w3.rs", "w4.rs", "w5.rs"];
    let calls: Vec<_> = wide.iter().map(|name| ("Read", *name)).collect();
    for (window, most) in [(1_000_000, 50_000), (100_000, 25_000)] {
        let archive = Archive::new(window, &calls);
        for name in wide {
            archive.write(name, &format!("{}\n", "let it = be;".repeat(10)).repeat(900));
        }
        let session = archive.office.session();
        turn(&session, &"lorem ipsum dolor sit amet ".repeat(if window > 100_000 { 20_000 } else { 100 }))
            .await;
        turn(&session, "more").await;
        let (files, reported) = compacted(&session).await;
        let tokens = Counter::of(DEMO_MODEL).text(&reported);
        assert!(files.len() <= 5 && tokens <= most && tokens > most / 5, "{tokens} of {most}");
    }
}
