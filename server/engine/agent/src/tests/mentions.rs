//! References in prompts beside plain files: definitions, diagnostics, changes, other conversations, and items that are not
//! files to be read.

use std::process::Command;
use std::sync::Weak;

use super::input::{ask, attached, bench, notices, said};
use super::waiting::Settings;
use super::*;
use kode_base::paths::Target;
use kode_config::policy::Policy;
use kode_config::preferences::Preferences;
use kode_record::prompt::AttachmentKind;
use kode_text::document::DocumentSnapshot;
use kode_text::host::{
    Diagnostic, DiagnosticSeverity, DiagnosticsError, DocumentEdit, DocumentEditOutcome, DocumentObserver,
    FileDiagnostics, SaveOutcome,
};
use kode_tools::built_in::built_in;

/// An editor without documents whose language servers have found one fault in each of these files.
struct Linter(Vec<Target>);

#[async_trait]
impl Host for Linter {
    fn document(&self, _target: &Target) -> Option<DocumentSnapshot> {
        None
    }

    fn documents(&self) -> Vec<DocumentSnapshot> {
        Vec::new()
    }

    async fn edit_document(&self, _edit: DocumentEdit) -> DocumentEditOutcome {
        DocumentEditOutcome::Closed
    }

    fn observe_documents(&self, _observer: Weak<dyn DocumentObserver>) {}

    fn locale(&self) -> Option<String> {
        Some("pt-BR".to_owned())
    }

    fn can_save(&self) -> bool {
        false
    }

    async fn save_document(&self, _target: &Target) -> SaveOutcome {
        SaveOutcome::NotOpen
    }

    fn can_diagnose(&self) -> bool {
        true
    }

    async fn diagnostics(&self, targets: &[Target]) -> Result<Vec<FileDiagnostics>, DiagnosticsError> {
        let wanted = self.0.iter().filter(|target| targets.is_empty() || targets.contains(target));
        let fault = |target: &Target| FileDiagnostics {
            target: target.clone(),
            is_outdated: false,
            diagnostics: vec![Diagnostic {
                line: 3,
                column: 1,
                severity: DiagnosticSeverity::Error,
                message: format!("fault of {}", target.file().unwrap().file_name()),
                source: "rustc".into(),
                code: "E0308".into(),
            }],
        };
        Ok(wanted.map(fault).collect())
    }
}

/// Runs git in a folder, without what the machine has set for it.
fn git(bench: &Bench, arguments: &[&str]) {
    let identity = ["-c", "user.name=a", "-c", "user.email=a@example.com"];
    let mut command = Command::new("git");
    command.env("GIT_CONFIG_GLOBAL", "/dev/null").env("GIT_CONFIG_SYSTEM", "/dev/null");
    let output = command.args(identity).args(arguments).current_dir(bench.home.path()).output().unwrap();
    assert!(output.status.success(), "{output:?}");
}

/// The report of each attachment: its name, its kind, and the problem with it.
fn shown(session: &Session) -> Vec<(String, AttachmentKind, Option<String>)> {
    attached(session).into_iter().map(|one| (one.label, one.kind, one.problem)).collect()
}

#[tokio::test]
async fn the_language_of_the_editor_counts_where_neither_settings_nor_message_say_one() {
    let settings = Settings::default();
    let bench = Bench::with_host(
        tempfile::tempdir().unwrap(),
        vec![],
        Registry::default(),
        Arc::new(settings.clone()),
        Arc::new(Linter(vec![])),
    );
    let session = bench.session();
    ask(&session, prompt("ok")).await;
    let preferences = Preferences { language: Some("Deutsch".into()), ..Preferences::default() };
    settings.set(Policy { preferences, ..Policy::default() });
    ask(&session, prompt("ok")).await;
    let systems: Vec<_> = bench.requests().into_iter().map(|request| request.system.join("")).collect();
    assert!(
        systems[0].contains("the user's message; where that does not tell one")
            && systems[0].contains("(pt-BR)")
    );
    assert!(systems[1].contains("Answer in Deutsch.") && !systems[1].contains("pt-BR"));
}

#[tokio::test]
async fn a_definition_is_attached_and_a_name_that_nothing_has_stays_text() {
    let bench = bench(vec![]);
    bench.write("src/parse.rs", "// calls parse_all\npub fn parse_all(text: &str) {\n    inner(text)\n}\n");
    bench.write("src/other.rs", "fn main() { parse_all(\"\") }\n");
    bench.write(".env", "fn parse_all() { hunter2 }\n");
    let session = bench.session();
    ask(&session, prompt("why is @#parse::parse_all slow? not @#nobody")).await;
    let said = said(&bench);
    assert!(said.contains("<symbol name=\"parse::parse_all\">"), "{said}");
    assert!(said.contains("pub fn parse_all(text: &str)") && said.contains("inner(text)"), "{said}");
    assert!(!said.contains("fn main()") && !said.contains("hunter2"), "{said}");
    assert_eq!(shown(&session), [("parse::parse_all".to_owned(), AttachmentKind::Symbol, None)]);
}

#[tokio::test]
async fn diagnostics_are_of_one_file_or_of_all_and_need_an_editor() {
    let home = tempfile::tempdir().unwrap();
    let files = ["a.rs", "b.rs"].map(|name| Target::File(AbsPath::new(home.path().join(name)).unwrap()));
    let host = Arc::new(Linter(files.to_vec()));
    let with = Bench::with_host(home, vec![], built_in(), Arc::new(NoPolicyProvider), host);
    with.write("a.rs", "");
    let session = with.session();
    ask(&session, prompt("mend @diagnostics:a.rs")).await;
    let said_of_one = said(&with);
    assert!(
        said_of_one.contains("<diagnostics of=\"a.rs\">\na.rs\n  3:1 error: fault of a.rs [rustc E0308]")
    );
    assert!(!said_of_one.contains("b.rs"), "{said_of_one}");
    ask(&session, prompt("mend @diagnostics")).await;
    assert!(said(&with).contains("<diagnostics of=\"all files\">") && said(&with).contains("fault of b.rs"));
    assert_eq!(shown(&session), [("diagnostics".to_owned(), AttachmentKind::Diagnostics, None)]);
    let without = bench(vec![]);
    let session = without.session();
    ask(&session, prompt("mend @diagnostics")).await;
    assert!(notices(&session)[0].contains("there is no editor"), "{:?}", notices(&session));
}

#[tokio::test]
async fn changes_are_those_since_the_last_commit_or_those_that_are_staged() {
    let bench = bench(vec![]);
    bench.write(".gitignore", "state\n");
    bench.write("a.txt", "a1\n");
    bench.write("b.txt", "b1\n");
    git(&bench, &["init", "-q"]);
    git(&bench, &["add", "."]);
    git(&bench, &["commit", "-q", "-m", "one"]);
    bench.write("a.txt", "a2\n");
    bench.write("b.txt", "b2\n");
    git(&bench, &["add", "a.txt"]);
    let session = bench.session();
    ask(&session, prompt("review @diff:staged")).await;
    let staged = said(&bench);
    assert!(staged.contains("<diff of=\"staged\">") && staged.contains("+a2"), "{staged}");
    assert!(!staged.contains("+b2"), "{staged}");
    ask(&session, prompt("review @diff, and @diff:nowhere")).await;
    let all = said(&bench);
    assert!(all.contains("<diff of=\"HEAD\">") && all.contains("+b2"), "{all}");
    let shown = shown(&session);
    assert_eq!(shown[0], ("diff".to_owned(), AttachmentKind::Diff, None));
    assert!(shown[1].2.as_ref().unwrap().starts_with("git: "), "{shown:?}");
}

#[tokio::test]
async fn another_conversation_reports_its_title_and_its_answer() {
    let bench = bench(vec![Say::Answer(vec![text("The parser is mended.")])]);
    let first = bench.session();
    ask(&first, prompt("Fix the parser")).await;
    let id = first.id().clone();
    first.close();
    first.closed().await;
    let session = bench.session();
    ask(&session, prompt("as in @session:\"the PARSER\" and @session:nobody")).await;
    let reported = said(&bench);
    assert!(reported.contains(&format!("<session id=\"{id}\">\nTitle: Fix the parser")), "{reported}");
    assert!(reported.contains("Its last answer:\nThe parser is mended."), "{reported}");
    let shown = shown(&session);
    assert_eq!(shown[0], ("Fix the parser".to_owned(), AttachmentKind::Session, None));
    assert!(shown[1].2.is_some());
    let session = bench.session();
    ask(&session, prompt(&format!("as in @session:{id}"))).await;
    assert!(said(&bench).contains("The parser is mended."));
}

#[tokio::test]
async fn a_prompt_that_waited_has_its_files_as_they_are_when_its_turn_begins() {
    let script = vec![Say::Answer(vec![call("c0", "SafeProbe", "wait")])];
    let bench = Bench::with_probes(tempfile::tempdir().unwrap(), script, built_in());
    bench.write("a.txt", "as it was\n");
    let session = bench.session();
    session.prompts().submit(prompt("go")).unwrap();
    while bench.safe.running.load(Ordering::SeqCst) == 0 {
        tokio::task::yield_now().await;
    }
    assert!(matches!(session.prompts().submit(prompt("see @a.txt")), Ok(SubmitOutcome::Queued(_))));
    bench.write("a.txt", "as it is now\n");
    let mut events = session.events().subscribe(session.events().newest(), vec![]);
    // A later listener finds it.
    bench.safe.go.notify_one();
    let mut ended = 0;
    let mut both_ended = |event: &Event| {
        ended += usize::from(matches!(event, Event::StateChanged { state: RunState::Ready }));
        ended == 2
    };
    until(&mut events, &mut both_ended).await;
    let said = said(&bench);
    assert!(said.contains("as it is now") && !said.contains("as it was"), "{said}");
}

#[cfg(unix)]
#[tokio::test]
async fn what_is_no_plain_file_or_far_too_large_is_named_and_holds_nothing_up() {
    let bench = bench(vec![]);
    let path = |name: &str| bench.home.path().join(name);
    assert!(Command::new("mkfifo").arg(path("pipe")).status().unwrap().success());
    std::fs::create_dir(path("ring")).unwrap();
    std::os::unix::fs::symlink("..", path("ring/up")).unwrap();
    std::os::unix::fs::symlink("self", path("self")).unwrap();
    std::fs::File::create(path("huge")).unwrap().set_len(1 << 30).unwrap();
    bench.write("ring/inside.txt", "");
    let secret = tempfile::tempdir().unwrap();
    std::fs::write(secret.path().join(".env"), "KEY=hunter2\n").unwrap();
    std::os::unix::fs::symlink(secret.path().join(".env"), path("notes.txt")).unwrap();
    let session = bench.session();
    ask(&session, prompt("see @pipe, @/dev/zero, @ring/, @self, @huge and @notes.txt")).await;
    let said = said(&bench);
    assert!(said.contains("<folder path=\"ring\">") && said.matches("inside.txt").count() == 1, "{said}");
    assert!(!said.contains("hunter2"), "{said}");
    let shown = shown(&session);
    let labels: Vec<_> = shown.iter().map(|(label, ..)| label.as_str()).collect();
    assert_eq!(labels, ["pipe", "/dev/zero", "ring", "huge", "notes.txt"]);
    for (label, _, problem) in shown.into_iter().filter(|(label, ..)| label != "ring") {
        let problem = problem.expect(&label);
        assert!(!problem.contains("too long"), "{label}: {problem}");
    }
}

#[tokio::test]
async fn instructions_import_nothing_from_outside_the_workspace_and_go_round_no_circle() {
    let bench = bench(vec![]);
    let outside = tempfile::tempdir().unwrap();
    let private = outside.path().join("private.md");
    std::fs::write(&private, "my own").unwrap();
    bench.write("AGENTS.md", &format!("first @b.md @{}", private.display()));
    bench.write("b.md", "second @AGENTS.md @b.md");
    let session = bench.session();
    ask(&session, prompt("one")).await;
    ask(&session, prompt("two")).await;
    let system = bench.requests()[1].system.join("");
    assert_eq!((system.matches("first @b.md").count(), system.matches("second @AGENTS.md").count()), (1, 1));
    assert!(!system.contains("my own"), "{system}");
    let reported = notices(&session);
    assert_eq!(reported.len(), 1, "{reported:?}");
    assert!(
        reported[0].contains("private.md") && reported[0].contains("outside the workspace"),
        "{reported:?}"
    );
}
