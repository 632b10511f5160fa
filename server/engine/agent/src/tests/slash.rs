//! Commands that the user types: answered without the model, or handed to it as their files say.

use super::input::{ask, bench, notices, said};
use super::*;
use kode_base::paths::Target;
use kode_config::command::CommandUse;
use kode_config::policy::{KeepRuleError, Policy, PolicySource};
use kode_config::settings::declared::Switches;
use kode_config::settings::{Declarations, TrustRequest};
use kode_permission::equipment::Equipment;
use kode_text::workspace::real_paths::RealPaths;
use kode_tools::built_in::built_in;

/// Settings in which the user approves what they are shown.
#[derive(Clone, Default)]
struct Approving {
    policy: Arc<Policy>,
    approved: Arc<Mutex<Vec<TrustRequest>>>,
}

impl PolicyProvider for Approving {
    fn of(&self, _roots: &[AbsPath]) -> Arc<dyn PolicySource> {
        Arc::new(self.clone())
    }
}

impl PolicySource for Approving {
    fn current(&self) -> Arc<Policy> {
        Arc::clone(&self.policy)
    }

    fn is_approved(&self, trust_request: &TrustRequest) -> bool {
        self.approved.lock().unwrap().contains(trust_request)
    }

    fn approve_trust_requests(&self, trust_requests: &[TrustRequest]) -> Result<(), KeepRuleError> {
        self.approved.lock().unwrap().extend_from_slice(trust_requests);
        Ok(())
    }
}

fn approving(script: Vec<Say>, policy: Policy) -> Bench {
    let policies = Approving { policy: Arc::new(policy), ..Approving::default() };
    Bench::with_policies(tempfile::tempdir().unwrap(), script, built_in(), Arc::new(policies))
}

struct Said {
    name: String,
    text: String,
    failed: bool,
    go_to: Option<SessionId>,
}

/// The output of commands, oldest first.
fn answers(session: &Session) -> Vec<Said> {
    let state = session.core().state();
    let answers = state.main.items.newest().iter().filter_map(|item| match &item.body {
        ItemBody::Command { name, text, failed, go_to, .. } => {
            Some(Said { name: name.clone(), text: text.clone(), failed: *failed, go_to: go_to.clone() })
        }
        _ => None,
    });
    answers.collect()
}

async fn run(session: &Arc<Session>, text: &str) -> Said {
    ask(session, prompt(text)).await;
    answers(session).pop().unwrap()
}

/// Submits a command that begins no turn, and waits for its answer.
async fn run_beside(session: &Arc<Session>, text: &str) -> Said {
    let mut events = session.events().subscribe(session.events().newest(), vec![]);
    let SubmitOutcome::Answered { item, .. } = session.prompts().submit(prompt(text)).unwrap() else {
        panic!("{text}: at once")
    };
    until(&mut events, |event| matches!(event, Event::ItemAdded { item: added } if added.id == item)).await;
    answers(session).pop().unwrap()
}

fn uses(session: &Session) -> Vec<Option<CommandUse>> {
    let state = session.core().state();
    let uses = state.main.items.newest().iter().filter_map(|item| match &item.body {
        ItemBody::UserMessage { command, .. } => Some(command.clone()),
        _ => None,
    });
    uses.collect()
}

fn bash(id: &str, command: &str) -> Say {
    let input = json!({ "command": command });
    Say::Answer(vec![Block::ToolUse { id: id.into(), name: "Bash".into(), input, input_error: None }])
}

#[tokio::test]
async fn every_command_that_needs_no_model_is_answered_without_one() {
    let bench = bench(vec![]);
    let session = bench.session();
    for built_in in kode_config::command::BUILT_INS {
        let waits = matches!(built_in.name, "compact" | "fork" | "rewind");
        if built_in.asks_model("") || waits {
            continue;
        }
        let said = run(&session, &format!("/{}", built_in.name)).await;
        let wants_more = matches!(built_in.name, "add-dir" | "rename");
        assert_eq!((said.name.as_str(), said.failed), (built_in.name, wants_more), "{}", said.text);
        assert!(!said.text.is_empty(), "{}", built_in.name);
    }
    assert!(bench.requests().is_empty());
    assert_eq!(session.core().state().title.text, "", "no command names a session");
}

#[tokio::test]
async fn what_a_command_says_survives_and_is_reported_to_no_model() {
    let bench = bench(vec![]);
    let session = bench.session();
    let unknown = run(&session, "/complact now").await;
    assert!(unknown.failed && unknown.text.contains("Did you mean `/compact`"), "{}", unknown.text);
    let renamed = run(&session, "/rename My work").await;
    assert!(!renamed.failed && session.core().state().title.text == "My work");
    ask(&session, prompt("hello")).await;
    assert_eq!(bench.requests().len(), 1);
    assert_eq!(said(&bench), "hello");
    let (id, items) = (session.id().clone(), session.snapshot(100).items);
    session.close();
    session.closed().await;
    let session = bench.engine.load_session(&[bench.root()], &id).await.unwrap();
    assert_eq!(session.snapshot(100).items, items);
    assert_eq!(answers(&session)[1].name, "rename");
    let used = uses(&session)[1].clone().unwrap();
    assert_eq!((used.name.as_str(), used.arguments.as_str()), ("rename", "My work"));
    assert_eq!(uses(&session)[2], None);
}

#[tokio::test]
async fn control_commands_do_what_their_methods_do() {
    let bench = bench(vec![]);
    let outside = tempfile::tempdir().unwrap();
    let session = bench.session();
    run(&session, "/effort high").await;
    run(&session, "/permissions acceptEdits").await;
    run(&session, "/output-style concise").await;
    run(&session, &format!("/add-dir {}", outside.path().display())).await;
    {
        let state = session.core().state();
        assert_eq!((state.config.effort, state.config.mode), (Some(Effort::High), Mode::AcceptEdits));
        assert_eq!(state.config.output_style.as_deref(), Some("Concise"));
    }
    let file = Target::File(AbsPath::new(outside.path().join("a")).unwrap());
    assert!(session.gate().mentionable()(&file, &RealPaths::default()).is_ok());
    for bad in
        ["/effort gigantic", "/permissions lax", "/output-style none", "/model none", "/add-dir /none/at/all"]
    {
        let said = run(&session, bad).await;
        assert!(said.failed, "{bad}: {}", said.text);
    }
    let written = run(&session, "/export session.md").await;
    assert!(!written.failed, "{}", written.text);
    let document = std::fs::read_to_string(bench.root().join("session.md")).unwrap();
    assert!(document.contains("/effort high"), "{document}");
    assert!(run(&session, "/export session.md").await.failed, "nothing is written over");
    run(&session, "/plan").await;
    assert_eq!(session.mode(), Mode::Plan);
    assert!(bench.requests().is_empty());
    ask(&session, prompt("/plan the move")).await;
    assert_eq!(said(&bench), "the move");
}

#[tokio::test]
async fn clear_and_fork_lead_to_other_sessions_and_resume_leads_back() {
    let bench = bench(vec![]);
    let session = bench.session();
    ask(&session, prompt("first of all")).await;
    run(&session, "/effort low").await;
    let cleared = run(&session, "/clear").await.go_to.unwrap();
    let new = bench.engine.session(&cleared).unwrap();
    let begun = new.snapshot(10);
    assert_eq!((begun.effort, begun.items.len()), (Some(Effort::Low), 0));
    let back = run(&new, "/resume first of").await;
    assert_eq!(back.go_to.as_ref(), Some(session.id()), "{}", back.text);
    assert!(run(&new, "/resume nowhere").await.failed);
    let forked = run_beside(&session, "/fork A copy").await.go_to.unwrap();
    let fork = bench.engine.session(&forked).unwrap();
    assert_eq!(fork.core().state().title.text, "A copy");
    assert_eq!(fork.history().messages_from(0), session.history().messages_from(0));
}

#[tokio::test]
async fn what_only_shows_is_answered_while_a_turn_runs_and_the_rest_waits_its_turn() {
    let bench = bench(vec![Say::Hang("thinking")]);
    let session = bench.session();
    let mut events = session.events().subscribe(session.events().newest(), vec![]);
    session.prompts().submit(prompt("go")).unwrap();
    until(&mut events, |event| matches!(event, Event::ItemAdded { item } if matches!(item.body, ItemBody::AgentMessage { .. }))).await;
    assert_eq!(run_beside(&session, "/cost").await.name, "cost");
    assert!(run_beside(&session, "/rewind 1").await.failed, "a turn runs");
    assert!(matches!(session.prompts().submit(prompt("/effort low")), Ok(SubmitOutcome::Queued(_))));
    assert!(
        matches!(session.prompts().steer(prompt("/effort high")), Ok(SubmitOutcome::Queued(_))),
        "it is no word to the model"
    );
    assert_eq!(session.core().state().config.effort, None);
    session.turns().cancel();
    until(&mut events, is_done).await;
    let rewound = run_beside(&session, "/rewind 1 conversation").await;
    assert!(!rewound.failed, "{}", rewound.text);
    assert_eq!(session.history().messages_from(0), []);
}

#[tokio::test]
async fn a_command_of_a_file_is_filled_runs_its_own_commands_and_names_files() {
    let bench = bench(vec![]);
    bench.write("a.txt", "inside\n");
    bench.write(
        ".claude/skills/look/SKILL.md",
        "---\ndisable-model-invocation: true\n---\nSee @a.txt and $1: !`cat a.txt` in ${CLAUDE_PROJECT_DIR} $ARGUMENTS",
    );
    let session = bench.session();
    let waits = run(&session, "/look now").await;
    assert!(waits.failed && waits.text.contains("/trust"), "{}", waits.text);
    assert!(bench.requests().is_empty(), "nothing is sent");
    let bench = approving(vec![], Policy::default());
    bench.write("a.txt", "inside\n");
    bench.write(".claude/commands/look.md", "See @a.txt and $1: !`cat a.txt` and @b.txt.");
    let session = bench.session();
    assert!(run(&session, "/look 'my place'").await.failed);
    let unseen = run(&session, "/trust all").await;
    assert!(unseen.text.contains("cat a.txt"), "it is shown before it can be approved: {}", unseen.text);
    assert!(!run(&session, "/trust all").await.failed);
    ask(&session, prompt("/look 'my place'")).await;
    let said = said(&bench);
    assert!(said.contains("See @a.txt and my place: inside and @b.txt."), "{said}");
    assert!(said.contains("<file path=\"a.txt\""), "{said}");
    let used = uses(&session).pop().unwrap().unwrap();
    assert_eq!((used.name.as_str(), used.arguments.as_str()), ("look", "'my place'"));
    // Another text is another wish.
    bench.write(".claude/commands/look.md", "!`cat a.txt; cat b.txt`");
    assert!(run(&session, "/look").await.failed);
}

#[tokio::test]
async fn what_a_command_may_not_run_breaks_it_off_and_what_it_may_changes_files_as_the_agent() {
    let policy = Policy::default();
    let bench = approving(vec![], policy);
    bench.write("a.txt", "a line\n");
    bench.write(".claude/commands/make.md", "!`cp a.txt made.txt`");
    bench.write(".claude/commands/may.md", "---\nallowed-tools: Bash(cp:*)\n---\nMade. !`cp a.txt made.txt`");
    bench.write(".claude/commands/fails.md", "!`cat nowhere.txt`");
    let session = bench.session();
    run(&session, "/trust").await;
    run(&session, "/trust all").await;
    let asks = refused(&session, "/make").await;
    assert!(asks.failed && asks.text.contains("The user refused"), "{}", asks.text);
    session.set_mode(Mode::DontAsk);
    assert!(run(&session, "/make").await.failed, "nobody is asked");
    // In plan mode no rule lets a command change anything.
    session.set_mode(Mode::Plan);
    let plans = run(&session, "/may").await;
    assert!(plans.failed && plans.text.contains("mode Plan does not allow"), "{}", plans.text);
    session.set_mode(Mode::Default);
    let fails = run(&session, "/fails").await;
    assert!(fails.failed && fails.text.contains("nowhere.txt"), "{}", fails.text);
    assert!(bench.requests().is_empty() && !bench.root().join("made.txt").as_path().exists());
    ask(&session, prompt("/may")).await;
    assert!(bench.root().join("made.txt").as_path().exists());
    assert!(
        session.edits().review().iter().any(|file| session.display(&file.target) == "made.txt"),
        "it can be undone"
    );
}

/// Submits a prompt, refuses what it asks for, and gives what it says then.
async fn refused(session: &Arc<Session>, text: &str) -> Said {
    let mut events = session.events().subscribe(session.events().newest(), vec![]);
    session.prompts().submit(prompt(text)).unwrap();
    until(&mut events, |event| matches!(event, Event::PermissionRequired { .. })).await;
    let asked = session.requests().permissions().remove(0);
    assert_eq!((asked.tool.as_str(), asked.input["command"].as_str()), ("Bash", Some("cp a.txt made.txt")));
    let no = PromptAnswer {
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
    until(&mut events, is_done).await;
    answers(session).pop().unwrap()
}

#[tokio::test]
async fn what_a_skill_brings_along_counts_in_the_sub_agent_that_uses_it_alone() {
    let skill = json!({ "skill": "maker" });
    let skill = Block::ToolUse { id: "s0".into(), name: "Skill".into(), input: skill, input_error: None };
    let work = json!({ "description": "make it", "prompt": "make one" });
    let work = Block::ToolUse { id: "t0".into(), name: "Task".into(), input: work, input_error: None };
    let script = vec![Say::Answer(vec![work]), bash("c1", "touch two.txt")];
    let bench = approving(script, Policy::default());
    let make =
        vec![Say::Answer(vec![skill]), bash("c0", "touch one.txt"), bash("c2", "cp one.txt three.txt")];
    *bench.model.tasks.lock().unwrap() = HashMap::from([("make one".to_owned(), make.into())]);
    let head = "---\nallowed-tools: Bash(touch:*)\ndisallowed-tools: WebFetch\n---\nMake.";
    bench.write(".claude/skills/maker/SKILL.md", head);
    let session = bench.session();
    run(&session, "/trust").await;
    run(&session, "/trust all").await;
    let mut events = session.events().subscribe(session.events().newest(), vec![]);
    session.prompts().submit(prompt("go")).unwrap();
    until(&mut events, |event| matches!(event, Event::PermissionRequired { .. })).await;
    assert!(bench.root().join("one.txt").as_path().exists(), "{:?}", notices(&session));
    let asked = session.requests().permissions().remove(0);
    assert_eq!(asked.input["command"], "cp one.txt three.txt");
    let agent = asked.agent.unwrap();
    let brought = |session: &Session| {
        let state = session.core().state();
        let of_agent = state.agents[&agent].equipment.clone();
        (state.running.equipment.clone(), of_agent.allow, of_agent.deny)
    };
    let expected = (Equipment::default(), vec!["Bash(touch:*)".to_owned()], vec!["WebFetch".to_owned()]);
    assert_eq!(brought(&session), expected);
    let offers = |request: &ModelRequest| request.tools.iter().any(|tool| tool.name == "WebFetch");
    let offered: Vec<_> = bench.requests().iter().map(offers).collect();
    assert_eq!(offered, [true, true, false, false]);
    // A process that resumes the session finds it unchanged.
    let id = session.id().clone();
    bench.engine.shutdown().await;
    let policies = Arc::new(NoPolicyProvider);
    let again = Bench::with_policies(bench.home, vec![], built_in(), policies);
    let session = again.engine.load_session(&[again.root()], &id).await.unwrap();
    assert_eq!(brought(&session), expected);
}

#[tokio::test]
async fn a_model_and_an_effort_of_the_project_wait_for_the_users_word() {
    let bench = approving(vec![], Policy::default());
    bench.write(".claude/commands/think.md", "---\neffort: high\nmodel: nowhere-9\n---\nThink.");
    let session = bench.session();
    ask(&session, prompt("/think")).await;
    assert_eq!(bench.requests()[0].effort, None);
    let reported = format!("{:?}", notices(&session));
    assert!(reported.contains("wait for your approval") && !reported.contains("nowhere-9"), "{reported}");
    let shown = run(&session, "/trust").await;
    assert!(shown.text.contains("model: nowhere-9\neffort: high"), "{}", shown.text);
    run(&session, "/trust all").await;
    ask(&session, prompt("/think")).await;
    assert_eq!(bench.requests()[1].effort, Some(Effort::High));
    assert!(format!("{:?}", notices(&session)).contains("nowhere-9"), "there is no such model");
}

#[tokio::test]
async fn what_a_skill_asks_for_is_reported_once_for_each_change() {
    let bench = approving(vec![], Policy::default());
    bench.write(".claude/skills/maker/SKILL.md", "---\nallowed-tools: Bash(touch:*)\n---\nMake.");
    let session = bench.session();
    let mut events = session.events().subscribe(0, vec![]);
    let mut seen = Vec::new();
    for text in ["one", "two"] {
        session.prompts().submit(prompt(text)).unwrap();
        seen.extend(until(&mut events, is_done).await);
    }
    bench.write(".claude/skills/maker/SKILL.md", "---\nallowed-tools: Bash(touch:*), Read\n---\nMake.");
    session.prompts().submit(prompt("three")).unwrap();
    seen.extend(until(&mut events, is_done).await);
    // The session reads changed files beside its turns.
    let is_asked = |event: &Event| matches!(event, Event::TrustRequired { .. });
    if seen.iter().filter(|record| is_asked(&record.event)).count() < 2 {
        seen.extend(until(&mut events, is_asked).await);
    }
    let asked = seen.iter().filter_map(|record| match &record.event {
        Event::TrustRequired { waiting } => Some((waiting.count, waiting.summary.as_str())),
        _ => None,
    });
    assert_eq!(asked.collect::<Vec<_>>(), [(1, "1 list of tools that run unasked"); 2]);
    assert_eq!(session.gate().trust_waiting().unwrap().count, 1);
    run(&session, "/trust").await;
    run(&session, "/trust all").await;
}

#[tokio::test]
async fn commands_in_files_can_be_switched_off() {
    let switches = Switches { disable_shell_embeds: Some(true), ..Switches::default() };
    let declared = Arc::new(Declarations { switches, ..Declarations::default() });
    let bench = approving(vec![], Policy { declared, ..Policy::default() });
    bench.write(".claude/commands/look.md", "State: !`cat a.txt`");
    let session = bench.session();
    ask(&session, prompt("/look")).await;
    assert!(said(&bench).contains("State: [not run: disableSkillShellExecution is set]"));
}

#[tokio::test]
async fn what_a_skill_allows_counts_for_its_turn_alone() {
    let skill = |id: &str| {
        let input = json!({ "skill": "maker" });
        Say::Answer(vec![Block::ToolUse { id: id.into(), name: "Skill".into(), input, input_error: None }])
    };
    let script = vec![
        skill("s0"),
        bash("c0", "touch one.txt"),
        Say::Answer(vec![text("made")]),
        bash("c1", "touch two.txt"),
    ];
    let bench = approving(script, Policy::default());
    let head = "---\nallowed-tools: Bash(touch:*)\ndisallowed-tools: WebFetch\neffort: high\n---\nMake.";
    bench.write(".claude/skills/maker/SKILL.md", head);
    let session = bench.session();
    run(&session, "/trust").await;
    run(&session, "/trust all").await;
    ask(&session, prompt("make one")).await;
    assert!(bench.root().join("one.txt").as_path().exists(), "{:?}", notices(&session));
    let requests = bench.requests();
    let offers = |at: usize| requests[at].tools.iter().any(|tool| tool.name == "WebFetch");
    assert_eq!((offers(0), offers(1)), (true, false));
    assert_eq!((requests[0].effort, requests[1].effort), (None, Some(Effort::High)));
    let mut events = session.events().subscribe(session.events().newest(), vec![]);
    session.prompts().submit(prompt("make two")).unwrap();
    until(&mut events, |event| matches!(event, Event::PermissionRequired { .. })).await;
    assert!(!bench.root().join("two.txt").as_path().exists());
    session.turns().cancel();
    until(&mut events, is_done).await;
}

#[tokio::test]
async fn a_skill_can_be_carried_out_by_a_sub_agent_whoever_calls_it() {
    let bench = bench(vec![Say::Answer(vec![text("by the agent")]), Say::Answer(vec![text("all told")])]);
    bench.write(
        ".claude/skills/apart/SKILL.md",
        "---\ncontext: fork\nagent: explore\n---\nLook at $ARGUMENTS.",
    );
    let session = bench.session();
    ask(&session, prompt("/apart the rest")).await;
    let requests = bench.requests();
    let Some(Block::Text { text: task }) = requests[0].messages[0].content.first() else { panic!("a task") };
    assert!(task.ends_with("Look at the rest."), "{task}");
    let results =
        requests[1].messages.iter().flat_map(|message| &message.content).find_map(|block| match block {
            Block::ToolResult { content, .. } => Some(content.clone()),
            _ => None,
        });
    assert!(results.unwrap().starts_with("by the agent"));
    assert_eq!(session.answer(), "all told");
    assert_eq!(session.core().state().agents.values().next().unwrap().kind, "Explore");
}

#[tokio::test]
async fn a_commit_is_confirmed_in_every_mode() {
    let bench = bench(vec![bash("c0", "git commit -m x")]);
    let new = NewSession { roots: vec![bench.root()], mode: Some(Mode::BypassPermissions), model: None };
    let session = bench.engine.new_session(new).unwrap();
    let mut events = session.events().subscribe(session.events().newest(), vec![]);
    session.prompts().submit(prompt("/git commit only the docs")).unwrap();
    until(&mut events, |event| matches!(event, Event::PermissionRequired { .. })).await;
    assert!(said(&bench).contains("only the docs"));
    session.turns().cancel();
    until(&mut events, is_done).await;
    assert!(run(&session, "/git").await.failed, "it is not said what to do");
}

#[tokio::test]
async fn a_path_is_no_command() {
    let bench = bench(vec![]);
    let session = bench.session();
    ask(&session, prompt("/tmp is full")).await;
    assert_eq!(said(&bench), "/tmp is full");
    assert_eq!(uses(&session), [None]);
}
