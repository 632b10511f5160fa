//! The attachments of a prompt, and the system prompt, as a model gets it.

use super::waiting::Settings;
use super::*;
use kode_base::paths::{Target, real_path};
use kode_config::policy::Policy;
use kode_config::preferences::Preferences;
use kode_permission::rules::{Behavior, PlacedRule, RuleSource, SettingsLayer};
use kode_record::prompt::{Attachment, EditorContext, LineSpan, PromptPart};
use kode_tools::built_in::built_in;

pub(super) fn bench(script: Vec<Say>) -> Bench {
    Bench::with_tools(tempfile::tempdir().unwrap(), script, built_in())
}

impl Bench {
    pub(crate) fn write(&self, path: &str, text: &str) {
        let path = self.root().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
}

pub(super) async fn ask(session: &Arc<Session>, prompt: Prompt) -> Vec<EventRecord> {
    let mut events = session.events().subscribe(session.events().newest(), vec![]);
    session.prompts().submit(prompt).unwrap();
    until(&mut events, |event| matches!(event, Event::StateChanged { state: RunState::Ready })).await
}

/// All text of the user in the newest request.
pub(super) fn said(bench: &Bench) -> String {
    let requests = bench.requests();
    let messages = requests.last().unwrap().messages.iter().filter(|message| message.role == Role::User);
    let texts = messages.flat_map(|message| &message.content).filter_map(|block| match block {
        Block::Text { text } => Some(text.clone()),
        _ => None,
    });
    texts.collect::<Vec<_>>().join("\n")
}

pub(super) fn attached(session: &Session) -> Vec<Attachment> {
    let state = session.core().state();
    let mut prompts = state.main.items.newest().iter().filter_map(|item| match &item.body {
        ItemBody::UserMessage { attachments, .. } => Some(attachments.clone()),
        _ => None,
    });
    prompts.next_back().unwrap()
}

pub(super) fn notices(session: &Session) -> Vec<String> {
    let state = session.core().state();
    let notices = state.main.items.newest().iter().filter_map(|item| match &item.body {
        ItemBody::Notice { text, .. } => Some(text.clone()),
        _ => None,
    });
    notices.collect()
}

#[tokio::test]
async fn what_a_prompt_names_is_attached_and_what_may_not_be_is_said() {
    let bench = bench(vec![]);
    bench.write("a.rs", "one\ntwo\nthree\n");
    bench.write("lib/b.rs", "");
    bench.write(".env", "KEY=hunter2\n");
    bench.write("big.txt", &"a line\n".repeat(5_000));
    let session = bench.session();
    let text = "compare @a.rs#L2-3 with @lib/, @.env, @big.txt, @missing.rs and @\"not here\"; mail a@a.rs";
    ask(&session, prompt(text)).await;
    let said = said(&bench);
    assert!(said.contains("<file path=\"a.rs\" lines=\"2-3\">\n     2\ttwo\n     3\tthree"), "{said}");
    assert!(said.contains("<folder path=\"lib\">") && said.contains("b.rs"), "{said}");
    assert!(!said.contains("hunter2"));
    let shown: Vec<_> = attached(&session)
        .into_iter()
        .map(|one| (one.label, one.lines, one.cut, one.problem.is_some()))
        .collect();
    assert_eq!(shown[0], ("@\"not here\"".to_owned(), None, false, true));
    assert_eq!(shown[1], ("a.rs#L2-3".to_owned(), Some(2), false, false));
    assert_eq!((shown[2].0.as_str(), shown[2].3), ("lib", false));
    assert_eq!((shown[3].0.as_str(), shown[3].3), (".env", true));
    assert_eq!(shown[4], ("big.txt".to_owned(), Some(2_000), true, false));
    assert_eq!(shown.len(), 5);
    assert!(notices(&session)[0].contains(".env: ") && notices(&session)[0].contains("not here"));
    // A file attached as a whole may be edited; otherwise the model has to read the rest.
    ask(&session, prompt("and @a.rs")).await;
    assert!(
        session.services().environment.workspace.has_read_whole(&Target::File(bench.root().join("a.rs")))
    );
    assert!(
        !session.services().environment.workspace.has_read_whole(&Target::File(bench.root().join("big.txt")))
    );
}

#[cfg(unix)]
#[tokio::test]
async fn a_link_out_of_the_workspace_is_judged_as_a_read_is_and_what_is_named_outside_is_attached() {
    let outside = tempfile::tempdir().unwrap();
    let path = real_path(outside.path()).unwrap().join("plain.txt");
    std::fs::write(&path, "from outside\n").unwrap();
    let bench = bench(vec![]);
    bench.write("inside.txt", "from inside\n");
    std::os::unix::fs::symlink("inside.txt", bench.root().join("in.txt")).unwrap();
    std::os::unix::fs::symlink(&path, bench.root().join("out.txt")).unwrap();
    std::os::unix::fs::symlink(outside.path(), bench.root().join("folder")).unwrap();
    let session = bench.session();
    ask(&session, prompt("see @in.txt, @out.txt, @folder/plain.txt and @folder/")).await;
    assert!(said(&bench).contains("from inside") && !said(&bench).contains("from outside"));
    let problems: Vec<_> = attached(&session).into_iter().filter_map(|one| one.problem).collect();
    assert_eq!(problems.len(), 3, "{problems:?}");
    assert!(problems[0].contains("is a link out of the workspace"), "{problems:?}");
    ask(&session, prompt(&format!("see @{}", path.display()))).await;
    assert!(said(&bench).contains("from outside"));
}

#[tokio::test]
async fn a_picture_and_pasted_text_reach_the_model_and_survive_in_the_journal() {
    let bench = bench(vec![]);
    let session = bench.session();
    let image = kode_model::Image::of_bytes(b"\x89PNG\r\n\x1a\nrest").unwrap();
    let pasted = PromptPart::Pasted { text: "a log\n".repeat(3) };
    let parts = vec![PromptPart::Image(image.clone()), pasted];
    ask(&session, Prompt::new("see", parts)).await;
    let content = bench.requests()[0].messages[0].content.clone();
    assert!(content.contains(&Block::Image(image)));
    assert!(said(&bench).contains("<pasted-text>\na log\n"));
    let (id, before) = (session.id().clone(), session.history().messages_from(0));
    session.close();
    session.closed().await;
    let session = bench.engine.load_session(&[bench.root()], &id).await.unwrap();
    assert_eq!(session.history().messages_from(0), before);
    assert_eq!(attached(&session).len(), 2);
}

#[tokio::test]
async fn what_the_editor_shows_is_reported_when_it_has_changed() {
    let bench = bench(vec![]);
    bench.write(".env", "");
    let session = bench.session();
    let context = |file: &str| {
        let active = Some(Target::File(bench.root().join(file)));
        let selection = Some(LineSpan { first: 3, last: 4 });
        PromptPart::Editor(EditorContext {
            active,
            selection,
            selected: "chosen".into(),
            ..EditorContext::default()
        })
    };
    let mut reported = Vec::new();
    for file in ["a.rs", "a.rs", ".env"] {
        ask(&session, Prompt::new("go on", vec![context(file)])).await;
        reported.push(said(&bench).matches("<editor-context>").count());
    }
    assert_eq!(reported, [1, 1, 2]);
    let said = said(&bench);
    assert!(said.contains("Active file: a.rs\nSelected lines: L3-4\nchosen"), "{said}");
    assert_eq!(said.matches("chosen").count(), 1, "what is selected in a secret is not told");
}

#[tokio::test(start_paused = true)]
async fn what_the_editor_shows_is_reported_again_when_it_was_summarized_or_taken_back() {
    let bench = bench(vec![]);
    let session = bench.session();
    let shows = |text: &str| {
        let active = Some(Target::File(bench.root().join("a.rs")));
        let part = PromptPart::Editor(EditorContext { active, ..EditorContext::default() });
        Prompt::new(format!("{text} {}", "lorem ipsum ".repeat(200)), vec![part])
    };
    let reported = || said(&bench).lines().filter(|line| *line == "Active file: a.rs").count();
    for round in 0..6 {
        ask(&session, shows(&format!("round {round}"))).await;
    }
    assert_eq!(reported(), 1);
    ask(&session, prompt("/compact")).await;
    // The attachments of the newest prompt stay; only a summary of the others is left.
    ask(&session, prompt("go on")).await;
    assert_eq!(reported(), 0);
    ask(&session, shows("again")).await;
    assert_eq!(reported(), 1);
    let checkpoint = session.edits().checkpoints().last().unwrap().id.clone();
    let mut events = session.events().subscribe(session.events().newest(), vec![]);
    session.edits().restore(&checkpoint, review::RestoreWhat::Conversation, review::UserEdits::Keep).unwrap();
    until(&mut events, |event| matches!(event, Event::EditsResolved { .. })).await;
    ask(&session, shows("once more")).await;
    assert_eq!(reported(), 1);
}

#[tokio::test]
async fn a_note_goes_into_the_instructions_and_asks_no_model() {
    let bench = bench(vec![]);
    bench.write(".git/HEAD", "ref: refs/heads/main\n");
    bench.write("CLAUDE.md", "be kind");
    let session = bench.session();
    ask(&session, prompt("# use tabs")).await;
    assert_eq!(bench.requests().len(), 0);
    let read = |name: &str| std::fs::read_to_string(bench.root().join(name)).unwrap();
    assert_eq!(read("AGENTS.md"), "- use tabs\n");
    assert_eq!(read("CLAUDE.md"), "be kind\n- use tabs\n");
    assert!(notices(&session)[0].contains("AGENTS.md and CLAUDE.md"));
    ask(&session, prompt("hello")).await;
    let system = bench.requests()[0].system.join("");
    assert!(system.contains("<instructions path=\"AGENTS.md\">\n- use tabs"), "{system}");
    assert!(system.contains("Git branch when the session began: main"));
}

#[cfg(unix)]
#[tokio::test]
async fn a_note_follows_no_link_out_of_the_repository() {
    let outside = tempfile::tempdir().unwrap();
    std::fs::write(outside.path().join("profile"), "theirs\n").unwrap();
    let bench = bench(vec![]);
    bench.write(".git/HEAD", "ref: refs/heads/main\n");
    bench.write("app/a.rs", "");
    std::os::unix::fs::symlink(outside.path().join("profile"), bench.root().join("AGENTS.md")).unwrap();
    let new = NewSession { roots: vec![bench.root().join("app")], mode: Some(Mode::Default), model: None };
    let session = bench.engine.new_session(new).unwrap();
    ask(&session, prompt("# use tabs")).await;
    assert_eq!(std::fs::read_to_string(outside.path().join("profile")).unwrap(), "theirs\n");
    let reported = notices(&session).join("\n");
    assert!(reported.contains("AGENTS.md: it leads out of the project"), "{reported}");
    std::fs::remove_file(bench.root().join("AGENTS.md")).unwrap();
    ask(&session, prompt("# use tabs")).await;
    assert_eq!(std::fs::read_to_string(bench.root().join("AGENTS.md")).unwrap(), "- use tabs\n");
}

#[tokio::test]
async fn a_note_is_refused_where_writing_is() {
    let bench = bench(vec![]);
    bench.write(".git/HEAD", "ref: refs/heads/main\n");
    let session = bench.session();
    session.set_mode(Mode::Readonly);
    ask(&session, prompt("# use tabs")).await;
    assert!(!bench.root().join("AGENTS.md").as_path().exists());
    assert!(notices(&session)[0].contains("Not noted in AGENTS.md"), "{:?}", notices(&session));
}

#[tokio::test(start_paused = true)]
async fn what_needed_no_look_up_does_not_count_as_lost_after_a_crash() {
    let bench = bench(vec![Say::Answer(vec![text("so")]), Say::Hang("thinking")]);
    let session = bench.session();
    let shown =
        EditorContext { open: vec![Target::File(bench.root().join("a.rs"))], ..EditorContext::default() };
    let prompt = || Prompt::new("go on", vec![PromptPart::Editor(shown.clone())]);
    ask(&session, prompt()).await;
    session.prompts().submit(prompt()).unwrap();
    while bench.requests().len() < 2 {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    let (id, path) = (session.id().clone(), session.core().journal().path().to_path_buf());
    let journal = std::fs::read(&path).unwrap();
    bench.engine.shutdown().await;
    std::fs::write(&path, journal).unwrap();
    let bench = Bench::with_tools(bench.home, vec![], built_in());
    let session = bench.engine.load_session(&[bench.root()], &id).await.unwrap();
    let state = session.core().state();
    let hint = state.main.items.newest().iter().rev().find_map(|item| match &item.body {
        ItemBody::Notice { hint, kind: Some(NoticeKind::Interrupted), .. } => hint.clone(),
        _ => None,
    });
    assert_eq!(hint.unwrap(), "Send `continue` to resume from here.");
}

#[tokio::test]
async fn the_system_prompt_stays_the_same_until_the_instructions_change() {
    let bench = bench(vec![]);
    bench.write("AGENTS.md", "use tabs");
    let session = bench.session();
    ask(&session, prompt("one")).await;
    ask(&session, prompt("two")).await;
    assert_eq!(notices(&session), [""; 0]);
    bench.write("AGENTS.md", "use blanks");
    ask(&session, prompt("three")).await;
    let systems: Vec<_> = bench.requests().into_iter().map(|request| request.system).collect();
    assert_eq!(systems[0], systems[1]);
    assert!(systems[2].join("").contains("use blanks"));
    assert!(notices(&session)[0].contains("have changed"));
}

#[tokio::test]
async fn a_session_begins_with_an_overview_of_its_folder_unless_settings_say_no() {
    for is_wanted in [true, false] {
        let settings = Settings::default();
        let preferences = Preferences { project_overview: is_wanted, ..Preferences::default() };
        settings.set(Policy { preferences, ..Policy::default() });
        let home = tempfile::tempdir().unwrap();
        let bench = Bench::with_policies(home, vec![], Registry::default(), Arc::new(settings));
        bench.write("src/parser.rs", "");
        bench.write("src/.env", "");
        bench.write("src/id_rsa", "");
        bench.write(".gitignore", "build\n");
        bench.write("build/out.bin", "");
        let session = bench.session();
        ask(&session, prompt("one")).await;
        bench.write("src/later.rs", "");
        ask(&session, prompt("two")).await;
        let systems: Vec<_> = bench.requests().into_iter().map(|request| request.system.join("")).collect();
        assert_eq!(systems[0].contains("\nsrc/\n  parser.rs\n"), is_wanted, "{}", systems[0]);
        assert_eq!(systems[0], systems[1], "it stays as it was, for the cache of the provider");
        for left_out in ["out.bin", ".env", "id_rsa"] {
            assert!(!systems[0].contains(left_out), "{left_out}");
        }
    }
}

#[tokio::test]
async fn the_overview_is_of_when_the_session_began_and_reports_nothing_that_rules_forbid_by_the_first_prompt()
{
    let source = RuleSource { layer: SettingsLayer::User, file: None, place: None };
    let rule = "Read(secret/**)".parse().unwrap();
    let deny = PlacedRule { behavior: Behavior::Deny, rule, source, root: None };
    for rules in [vec![], vec![deny]] {
        let settings = Settings::default();
        let home = tempfile::tempdir().unwrap();
        let bench = Bench::with_policies(home, vec![], Registry::default(), Arc::new(settings.clone()));
        bench.write("kept.rs", "");
        bench.write("secret/plan.md", "");
        let session = bench.session();
        while !session.instructions().has_looked() {
            tokio::task::yield_now().await;
        }
        bench.write("later.rs", "");
        let is_same = rules.is_empty();
        if !is_same {
            settings.set(Policy { rules, ..Policy::default() });
        }
        ask(&session, prompt("one")).await;
        let system = bench.requests()[0].system.join("");
        assert!(system.contains("kept.rs"), "{system}");
        assert_eq!(system.contains("plan.md"), is_same, "{system}");
        assert_eq!(
            system.contains("later.rs"),
            !is_same,
            "it is looked at again only where rules have changed"
        );
    }
}

fn read(id: &str) -> Say {
    let (name, input) = ("Read".to_owned(), json!({ "file_path": "api/a.rs" }));
    Say::Answer(vec![Block::ToolUse { id: id.into(), name, input, input_error: None }])
}

/// Whether the model has the instructions of the folder, by the calls it has made.
fn given(bench: &Bench) -> Vec<bool> {
    let results = results(bench.requests().last().unwrap());
    results.into_iter().map(|(_, result, _)| result.contains("of the api")).collect()
}

#[tokio::test]
async fn instructions_of_a_deeper_folder_come_with_the_first_file_read_there() {
    let bench = bench(vec![read("c1"), read("c2"), Say::Answer(vec![text("done")]), read("c3")]);
    bench.write("api/a.rs", "one\n");
    bench.write("api/AGENTS.md", "of the api");
    let session = bench.session();
    ask(&session, prompt("go")).await;
    assert_eq!(given(&bench), [true, false]);
    assert!(!bench.requests()[0].system.join("").contains("of the api"));
    // A session that is resumed knows what the model was given.
    let id = session.id().clone();
    session.close();
    session.closed().await;
    let session = bench.engine.load_session(&[bench.root()], &id).await.unwrap();
    ask(&session, prompt("and @api/a.rs")).await;
    assert_eq!(given(&bench), [true, false, false]);
    assert!(!said(&bench).contains("of the api"));
}

#[tokio::test]
async fn instructions_of_a_deeper_folder_are_given_again_when_a_rewind_took_them() {
    let done = || Say::Answer(vec![text("done")]);
    let bench = bench(vec![done(), read("c1"), done(), read("c2"), done(), read("c3")]);
    bench.write("api/a.rs", "one\n");
    bench.write("api/AGENTS.md", "of the api");
    let session = bench.session();
    let back_to = async |at: usize| {
        let checkpoint = session.edits().checkpoints()[at].id.clone();
        let mut events = session.events().subscribe(session.events().newest(), vec![]);
        session
            .edits()
            .restore(&checkpoint, review::RestoreWhat::Conversation, review::UserEdits::Keep)
            .unwrap();
        until(&mut events, |event| matches!(event, Event::EditsResolved { .. })).await;
    };
    ask(&session, prompt("hello")).await;
    ask(&session, prompt("look")).await;
    assert_eq!(given(&bench), [true]);
    back_to(1).await;
    ask(&session, prompt("look again")).await;
    assert_eq!(given(&bench), [true]);
    back_to(1).await;
    ask(&session, prompt("look at @api/a.rs")).await;
    assert_eq!(said(&bench).matches("of the api").count(), 1);
    assert_eq!(given(&bench), [false]);
}

#[tokio::test]
async fn instruction_files_are_counted_apart_from_the_rest_of_the_system_prompt() {
    let bench = bench(vec![]);
    let session = bench.session();
    ask(&session, prompt("one")).await;
    let before = session.context_use().unwrap().parts;
    bench.write("AGENTS.md", &"use tabs, and nothing else\n".repeat(100));
    ask(&session, prompt("two")).await;
    let after = session.context_use().unwrap().parts;
    // The machine's own instruction files are there before and after.
    assert!(after.memory > before.memory + 300, "{before:?} {after:?}");
    assert!(after.system.abs_diff(before.system) < 20, "{before:?} {after:?}");
    assert_eq!(after.tools, before.tools);
}
