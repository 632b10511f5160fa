//! Titles: who gives them, when a model is asked, and what it may cost.

use super::*;
use crate::sessions::WorkspaceFilter;
use kode_config::policy::{Policy, PolicySource};
use kode_config::preferences::Preferences;
use kode_model::price::Prices;
use kode_model::profile::Profile;
use kode_record::title::TitledBy;

/// Settings that say whether models are asked for titles.
struct Titles(Option<bool>);

impl PolicyProvider for Titles {
    fn of(&self, _: &[AbsPath]) -> Arc<dyn PolicySource> {
        let preferences = Preferences { session_titles: self.0, ..Preferences::default() };
        Arc::new(Arc::new(Policy { preferences, ..Policy::default() }))
    }
}

/// A bench whose pointer `quick` has a model of its own, unless it is that of the conversation.
fn bench(setting: Option<bool>, script: Vec<Say>, quick: Option<Arc<FakeModel>>) -> Bench {
    let model = FakeModel::new(script);
    let models = Models::in_process(Profile::demo(), Arc::clone(&model) as Arc<dyn Model>);
    let models = match quick {
        Some(quick) => {
            let prices = Some(Prices {
                input: 1_000_000.0,
                output: 0.0,
                cache_read: None,
                cache_write: None,
                above: None,
            });
            let profile = Profile { name: "small".to_owned(), prices, ..Profile::demo() };
            models.with_in_process(profile, quick as Arc<dyn Model>).pointing(Pointer::Quick, "small")
        }
        None => models,
    };
    let home = tempfile::tempdir().unwrap();
    Bench::with_models(
        home,
        (model, models),
        Registry::default(),
        Arc::new(Titles(setting)),
        Arc::new(NoEditor),
    )
}

async fn run(session: &Arc<Session>, words: &str) -> Subscription {
    let mut events = session.events().subscribe(session.events().newest(), vec![]);
    session.prompts().submit(prompt(words)).unwrap();
    until(&mut events, is_done).await;
    events
}

fn title_of(session: &Session) -> (String, Option<TitledBy>) {
    let state = session.core().state();
    (state.title.text.clone(), state.title.by)
}

#[tokio::test(start_paused = true)]
async fn after_the_first_turn_that_worked_the_quick_model_names_the_session_and_is_paid_openly() {
    let quick = FakeModel::new(vec![Say::Answer(vec![text("\"A good name.\"")])]);
    let bench =
        bench(None, vec![Say::Hang("…"), Say::Answer(vec![text("the answer")])], Some(Arc::clone(&quick)));
    let session = bench.session();
    let mut events = session.events().subscribe(0, vec![]);
    session.prompts().submit(prompt("first words")).unwrap();
    until(&mut events, |event| {
        let is_text = |item: &Item| matches!(item.body, ItemBody::AgentMessage { .. });
        matches!(event, Event::TextChunk { .. })
            || matches!(event, Event::ItemAdded { item } if is_text(item))
    })
    .await;
    session.turns().cancel();
    until(&mut events, is_done).await;
    assert_eq!(quick.requests.lock().unwrap().len(), 0, "the turn did not work");
    run(&session, "second words").await;
    session.titles_written().await;
    assert_eq!(title_of(&session), ("A good name".to_owned(), Some(TitledBy::Model)));
    let asked = format!("{:?}", quick.requests.lock().unwrap()[0].messages);
    assert!(asked.contains("first words") && asked.contains("the answer"), "{asked}");
    assert_eq!(session.spending().total().usd, 1.0);
    run(&session, "third words").await;
    assert_eq!(quick.requests.lock().unwrap().len(), 1, "it is asked once");
}

#[tokio::test(start_paused = true)]
async fn the_model_of_the_conversation_is_asked_for_no_title_unless_the_settings_say_so() {
    for (setting, requests) in [(None, 1), (Some(false), 1), (Some(true), 2)] {
        let bench = bench(setting, vec![], None);
        let session = bench.session();
        run(&session, "go").await;
        session.close();
        session.closed().await;
        assert_eq!(bench.requests().len(), requests, "{setting:?}");
    }
    let quick = FakeModel::new(vec![]);
    let bench = bench(Some(false), vec![], Some(Arc::clone(&quick)));
    run(&bench.session(), "go").await;
    assert_eq!(quick.requests.lock().unwrap().len(), 0, "the user wants none");
}

#[tokio::test(start_paused = true)]
async fn a_title_that_takes_too_long_or_fails_changes_nothing_and_holds_up_nobody() {
    let quick = FakeModel::new(vec![Say::Hang("A na")]);
    let bench = bench(None, vec![], Some(Arc::clone(&quick)));
    let session = bench.session();
    run(&session, "first words").await;
    let began = tokio::time::Instant::now();
    run(&session, "second words").await;
    assert!(began.elapsed() < Duration::from_secs(1), "nobody waits for a title");
    session.titles_written().await;
    assert_eq!(began.elapsed().as_secs(), 30);
    assert_eq!(title_of(&session), ("first words".to_owned(), None));
}

#[tokio::test(start_paused = true)]
async fn a_title_of_the_users_stays_whatever_a_model_says_and_wherever_the_conversation_goes() {
    let quick = FakeModel::new(vec![Say::Hang("A na")]);
    let bench = bench(None, vec![], Some(quick));
    let session = bench.session();
    let mut events = run(&session, "go").await;
    session.rename("  Mine \n alone ").unwrap();
    let seen = until(&mut events, |event| matches!(event, Event::TitleChanged { .. })).await;
    let reported = Event::TitleChanged { title: "Mine alone".to_owned(), by: Some(TitledBy::User) };
    assert_eq!(seen.last().unwrap().event, reported);
    let mut state = session.core().state().clone();
    let by = TitledBy::Model;
    assert_eq!(state.apply(Record::Titled { title: "Its".to_owned(), by }), []);
    let turn = state.main.turns().next().unwrap().clone();
    let resolution = kode_base::ids::ResolutionId::generate();
    state.apply(Record::Rewound { turn, resolution: resolution.clone(), files: false });
    assert_eq!(state.title.text, "Mine alone");
    state.apply(Record::Unwound { resolution });
    assert_eq!((state.title.text.as_str(), state.title.by), ("Mine alone", Some(TitledBy::User)));
}

#[tokio::test(start_paused = true)]
async fn a_models_title_goes_with_its_conversation_and_comes_back_with_it() {
    let bench = Bench::new(vec![]);
    let session = bench.session();
    run(&session, "first words").await;
    let mut state = session.core().state().clone();
    let by = TitledBy::Model;
    state.apply(Record::Titled { title: "Its".to_owned(), by });
    let turn = state.main.turns().next().unwrap().clone();
    let resolution = kode_base::ids::ResolutionId::generate();
    let reported =
        |events: Vec<Event>| events.into_iter().find(|event| matches!(event, Event::TitleChanged { .. }));
    let gone = reported(state.apply(Record::Rewound { turn, resolution: resolution.clone(), files: false }));
    assert_eq!(gone, Some(Event::TitleChanged { title: String::new(), by: None }));
    let back = reported(state.apply(Record::Unwound { resolution }));
    assert_eq!(back, Some(Event::TitleChanged { title: "Its".to_owned(), by: Some(by) }));
}

#[tokio::test(start_paused = true)]
async fn a_stored_session_is_renamed_and_continues_with_events_above_all_that_were_reported() {
    let bench = Bench::new(vec![]);
    let session = bench.session();
    run(&session, "go").await;
    let (id, newest) = (session.id().clone(), session.events().newest());
    session.close();
    session.closed().await;
    let here = WorkspaceFilter::These(vec![bench.root()]);
    bench.engine.rename_session(&here, &id, "Stored").await.unwrap();
    bench.engine.archive_session(&here, &id, true).await.unwrap();
    let roots = [bench.root()];
    let session = bench.engine.load_session_reporting(&roots, &id, Some(newest), |_| {}).await.unwrap();
    assert_eq!(title_of(&session), ("Stored".to_owned(), Some(TitledBy::User)));
    assert!(session.core().state().archived && session.events().newest() > newest);
    // All later events come again, with nothing missing.
    let mut events = session.events().subscribe(newest, vec![]);
    until(&mut events, |event| matches!(event, Event::ArchivedChanged { archived: true })).await;
}
