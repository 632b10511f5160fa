//! Everything a session got is there again after a crash, whatever it is opened from.
//!
//! Rule: the server is not asked to end: what lies on the disk at some moment is all that the next one has.

use serde_json::Value;

use super::charges::profile;
use super::*;
use crate::history::base::BaseDue;
use kode_config::budget::Budget;
use kode_journal::base::BASE;
use kode_permission::{PromptAnswer, Scope};
use kode_record::draft::PromptDraft;
use kode_record::options::TurnOptions;
use kode_tools::built_in::built_in;

/// When a base is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Base {
    Never,
    /// Before anything but the first turn.
    Early,
    /// Before the turn in which the server ends.
    Late,
}

/// A bench with two models, built-in tools and one that waits.
fn bench(home: tempfile::TempDir, script: Vec<Say>) -> Bench {
    let (model, other) = (FakeModel::new(script), FakeModel::new(vec![]));
    let own = Arc::clone(&model);
    let models = Models::in_process(profile("demo"), own).with_in_process(profile("other"), other);
    let mut tools = built_in();
    tools.add(Probe { safe: true, ..Probe::default() });
    Bench::with_models(home, (model, models), tools, Arc::new(NoPolicyProvider), Arc::new(NoEditor))
}

fn tool(id: &str, name: &str, input: Value) -> Block {
    Block::ToolUse { id: id.into(), name: name.into(), input, input_error: None }
}

/// All that is compared, with its name. What waits for the running turn waits for one of its own after a crash.
fn reported(session: &Session) -> Vec<(&'static str, String)> {
    let hunks = format!("{:?}", session.edits().synced().ledger.review());
    let state = session.core().state();
    let waiting: Vec<_> = state.queue.steering().into_iter().chain(state.queue.prompts()).collect();
    let models: Vec<_> = state.spending.models().collect();
    vec![
        ("queue", format!("{waiting:?}")),
        ("draft", format!("{:?}", state.draft)),
        ("todos", format!("{:?}", state.todos.list())),
        ("mode", format!("{:?}", state.config.mode)),
        ("model", state.config.model.clone()),
        ("effort", format!("{:?}", state.config.effort)),
        ("output style", format!("{:?}", state.config.output_style)),
        ("grants", format!("{:?}", state.grants)),
        ("hunks", hunks),
        ("title", format!("{:?} {:?}", state.title.text, state.title.by)),
        ("archived", state.archived.to_string()),
        ("spending", format!("{models:?} {:?}", state.spending.total())),
        ("delivery", format!("{:?} {:?}", state.config.deliveries, session.gate().deliveries().rules())),
        ("options", format!("{:?}", state.running.options)),
    ]
}

/// A turn that changes a file, writes todos and is granted something.
async fn work(session: &Arc<Session>, events: &mut Subscription) {
    session.prompts().submit(prompt("work")).unwrap();
    until(events, |event| matches!(event, Event::PermissionRequired { .. }) || is_done(event)).await;
    let by = "test".to_owned();
    let yes = PromptAnswer {
        allow: true,
        scope: Scope::Session,
        feedback: None,
        updated_input: None,
        rules: None,
        hunks: None,
        mode: None,
        by,
    };
    session.requests().respond(&session.requests().permissions()[0].id, yes).unwrap();
    until(events, is_done).await;
}

fn settle(session: &Session) {
    session.configure(ConfigChange {
        mode: Some(Mode::Approval),
        model: Some("demo".to_owned()),
        effort: Some(Some(Effort::High)),
        output_style: Some(Some("Concise".to_owned())),
        sandbox: Some(Some("offline".to_owned())),
    });
    let rule = EditDeliveryRule { glob: "docs/**".to_owned(), delivery: EditDelivery::Apply };
    session.gate().deliver(Deliveries::new(vec![rule]).unwrap());
    session.rename("called so").unwrap();
    assert!(session.archive(true));
}

/// A turn in which the server ends, with all messages meanwhile.
async fn begin(session: &Arc<Session>, events: &mut Subscription) {
    let budget = Budget { max_cost_usd: Some(2.5), max_minutes: Some(30.0) };
    let options = TurnOptions { max_turns: Some(7), candidate_answers: None, sandbox: None, budget };
    session.prompts().submit(prompt("more").with_options(options)).unwrap();
    let text = |item: &Item| matches!(item.body, ItemBody::AgentMessage { .. });
    until(events, |event| matches!(event, Event::ItemAdded { item } if text(item))).await;
    session.prompts().submit(prompt("waits")).unwrap();
    session.prompts().steer(prompt("steers")).unwrap();
    session.prompts().submit(prompt("waits as well")).unwrap();
    session
        .drafts()
        .set(Some(PromptDraft { text: "not yet".to_owned(), parts: json!([{ "x": 1 }]) }))
        .unwrap();
}

async fn keep_base(session: &Arc<Session>) {
    session.history().write_base_if_due(BaseDue::End).await;
    session.history().base_written().await;
    assert!(session.core().journal().path().with_file_name(BASE).exists());
}

fn copy(from: &std::path::Path, to: &std::path::Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap().map(Result::unwrap) {
        let to = to.join(entry.file_name());
        match entry.file_type().unwrap().is_dir() {
            true => copy(&entry.path(), &to),
            false => drop(std::fs::copy(entry.path(), to).unwrap()),
        }
    }
}

#[tokio::test]
async fn whatever_a_session_was_reported_is_there_after_a_crash() {
    for base in [Base::Never, Base::Early, Base::Late] {
        let todos = json!({ "todos": [{ "content": "x", "status": "in_progress", "activeForm": "x-ing" }] });
        // Long enough for a base.
        let long = "a line\n".repeat(5_500);
        let script = vec![
            Say::Answer(vec![
                tool("c0", "Write", json!({ "file_path": "a.txt", "content": long })),
                tool("c1", "TodoWrite", todos),
                tool("c2", "Bash", json!({ "command": "sh missing.sh" })),
            ]),
            Say::Answer(vec![text("done")]),
            Say::Hang("half a thou"),
        ];
        let bench = bench(tempfile::tempdir().unwrap(), script);
        let (roots, model) = (vec![bench.root()], Some("demo".to_owned()));
        let new = NewSession { roots: roots.clone(), mode: Some(Mode::AcceptEdits), model };
        let session = bench.engine.new_session(new).unwrap();
        let before = reported(&session);
        let mut events = session.events().subscribe(0, vec![]);
        work(&session, &mut events).await;
        if base == Base::Early {
            keep_base(&session).await;
        }
        settle(&session);
        if base == Base::Late {
            keep_base(&session).await;
        }
        begin(&session, &mut events).await;
        let live = reported(&session);
        let home = tempfile::tempdir().unwrap();
        copy(&bench.home.path().join("state"), &home.path().join("state"));

        let again = self::bench(home, vec![]);
        let opened = again.engine.load_session(&roots, session.id()).await.unwrap();
        let used = opened.core().journal().path().with_file_name(BASE).exists();
        assert_eq!(used, base != Base::Never, "one that is not used is removed");
        for ((name, said), ((_, live), (_, before))) in
            reported(&opened).into_iter().zip(live.into_iter().zip(before))
        {
            assert_eq!(said, live, "{base:?}: {name}");
            assert!(name == "model" || said != before, "{name} was not set: {said}");
        }
        session.turns().cancel();
        again.engine.shutdown().await;
        bench.engine.shutdown().await;
    }
}
