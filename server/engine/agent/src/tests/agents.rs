//! Sub-agents: side by side, refused, cancelled, asked about, resumed, killed.

use serde_json::Value;

use super::course::{asked_or_done, reply};
use super::*;
use kode_base::ids::AgentId;
use kode_base::question::LIMIT_GO_ON;
use kode_config::budget::Budget;
use kode_config::policy::{Policy, PolicySource};
use kode_config::settings::TrustRequest;
use kode_record::options::TurnOptions;
use kode_tools::built_in::built_in;

/// A tool with effects: it notes how many of it run at once.
#[derive(Clone, Default)]
struct Act(Probe);

#[async_trait]
impl Tool for Act {
    type Input = ProbeInput;

    fn facts(&self) -> ToolFacts {
        ToolFacts { name: "Act", kind: ToolKind::Execute, ..self.0.facts() }
    }

    async fn plan(&self, input: ProbeInput, context: &CallContext) -> Result<CallPlan, ToolError> {
        self.0.plan(input, context).await
    }
}

/// Settings of a user who has approved whatever files ask for.
#[derive(Clone, Default)]
pub(super) struct Trusting(Arc<Policy>);

impl PolicyProvider for Trusting {
    fn of(&self, _roots: &[AbsPath]) -> Arc<dyn PolicySource> {
        Arc::new(self.clone())
    }
}

impl PolicySource for Trusting {
    fn current(&self) -> Arc<Policy> {
        Arc::clone(&self.0)
    }

    fn is_approved(&self, _trust_request: &TrustRequest) -> bool {
        true
    }
}

struct Team {
    bench: Bench,
    act: Act,
}

impl Team {
    /// The texts of the session's own conversation, and of those that begin with certain tasks.
    fn new(main: Vec<Say>, tasks: Vec<(&str, Vec<Say>)>) -> Self {
        Self::in_home(tempfile::tempdir().unwrap(), main, tasks)
    }

    fn in_home(home: tempfile::TempDir, main: Vec<Say>, tasks: Vec<(&str, Vec<Say>)>) -> Self {
        Self::with_policies(home, main, tasks, Arc::new(NoPolicyProvider))
    }

    fn with_policies(
        home: tempfile::TempDir,
        main: Vec<Say>,
        tasks: Vec<(&str, Vec<Say>)>,
        policies: Arc<dyn PolicyProvider>,
    ) -> Self {
        let (safe, act) = (Probe { safe: true, ..Probe::default() }, Act::default());
        let mut tools = Registry::default();
        tools.add(Probe::default());
        tools.add(safe.clone());
        tools.add(act.clone());
        tools.add(kode_tools::task::Task);
        let bench = Bench { safe, ..Bench::with_policies(home, main, tools, policies) };
        let tasks = tasks.into_iter().map(|(task, script)| (task.to_owned(), script.into()));
        *bench.model.tasks.lock().unwrap() = tasks.collect();
        Self { bench, act }
    }

    /// A type of the project.
    fn with_type(self, name: &str, head: &str) -> Self {
        let folder = self.bench.home.path().join(".claude/agents");
        std::fs::create_dir_all(&folder).unwrap();
        let text = format!("---\nname: {name}\ndescription: Does things.\n{head}---\nYou are {name}.\n");
        std::fs::write(folder.join(format!("{name}.md")), text).unwrap();
        self
    }

    /// The results in the last request of the session's own conversation.
    fn results(&self) -> Vec<(String, String, bool)> {
        let is_main = |request: &&ModelRequest| request.messages[0].content == [text("go")];
        results(self.bench.requests().iter().rfind(is_main).unwrap())
    }

    /// The requests of the conversation that began with a task.
    fn asked(&self, task: &str) -> Vec<ModelRequest> {
        let is_it = |request: &ModelRequest| request.messages[0].content == [text(task)];
        self.bench.requests().into_iter().filter(is_it).collect()
    }
}

fn task(id: &str, input: Value) -> Block {
    let mut whole = json!({ "description": "look at it" });
    whole.as_object_mut().unwrap().extend(input.as_object().unwrap().clone());
    Block::ToolUse { id: id.into(), name: "Task".into(), input: whole, input_error: None }
}

fn agent_of(seen: &[EventRecord]) -> AgentId {
    let begun = |record: &EventRecord| match &record.event {
        Event::SubagentStarted { agent, .. } => Some(agent.clone()),
        _ => None,
    };
    seen.iter().find_map(begun).unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_sub_agent_works_apart_and_its_call_gets_its_last_words() {
    let team = Team::new(
        vec![Say::Answer(vec![task("t0", json!({ "prompt": "find it" }))])],
        vec![(
            "find it",
            vec![
                Say::Answer(vec![text("hm"), call("c0", "SafeProbe", "return")]),
                Say::Answer(vec![text("it is here")]),
            ],
        )],
    );
    let session = team.bench.session();
    let mut events = session.events().subscribe(0, vec![]);
    session.prompts().submit(prompt("go")).unwrap();
    let seen = until(&mut events, is_done).await;
    let agent = agent_of(&seen);
    let results = team.results();
    let [(id, content, false)] = results.as_slice() else { panic!("{results:?}") };
    assert_eq!(id, "t0");
    assert!(content.starts_with(&format!("it is here\n\n[{agent}: 1 tool call, 2 tokens.")), "{content}");
    let asked = team.asked("find it");
    assert_eq!(asked.len(), 2);
    assert!(asked[0].system[0].contains("You are a sub-agent") && asked[0].system[0].contains("is data"));
    let tools: Vec<_> = asked[0].tools.iter().map(|tool| tool.name.as_str()).collect();
    assert_eq!(tools, ["Act", "Probe", "SafeProbe"]);
    let main = &team.bench.requests()[0];
    let described = &main.tools.iter().find(|tool| tool.name == "Task").unwrap().description;
    assert!(described.contains("\n- Explore: "), "{described}");
    // The session's transcript has the call and nothing of the work, and its turn paid for both.
    let items = session.snapshot(usize::MAX).items;
    assert_eq!(items.len(), 3);
    assert!(items.iter().all(|item| item.agent.is_none()));
    let shown = session.history().sub_agent(&agent, usize::MAX).unwrap();
    assert_eq!((shown.kind.as_str(), shown.items.len()), ("general-purpose", 4));
    assert!(shown.items.iter().all(|item| item.agent.as_ref() == Some(&agent)));
    assert_eq!((shown.usage.input_tokens, session.snapshot(0).usage.input_tokens), (2, 4));
    assert!(seen.iter().any(|record| matches!(&record.event, Event::SubagentEnded { ok: true, usage, .. } if usage.input_tokens == 2)));
    assert!(seen.iter().any(
        |record| matches!(&record.event, Event::ToolProgress { text, .. } if text == "1 tool · return")
    ));
    assert!(
        seen.iter().any(|record| matches!(record.event, Event::Done { model_calls: 4, tool_calls: 2, .. }))
    );
}

#[tokio::test(start_paused = true)]
async fn tasks_of_one_answer_overlap_but_what_has_effects_runs_alone() {
    let (names, mut tasks) = (["one", "two", "three"], Vec::new());
    for name in names {
        let acts = vec![call(&format!("a-{name}"), "Act", "return")];
        let waits = vec![call(&format!("w-{name}"), "SafeProbe", "wait")];
        tasks.push((name, vec![Say::Answer(acts), Say::Answer(waits), Say::Answer(vec![text(name)])]));
    }
    let calls = names.map(|name| task(name, json!({ "prompt": name }))).to_vec();
    let team = Team::new(vec![Say::Answer(calls)], tasks);
    let session = team.bench.session();
    session.set_mode(Mode::BypassPermissions);
    let mut events = session.events().subscribe(0, vec![]);
    session.prompts().submit(prompt("go")).unwrap();
    let mut waiting = 0;
    until(&mut events, |event| {
        let is_wait =
            |item: &Item| matches!(&item.body, ItemBody::ToolCall(call) if call.name == "SafeProbe");
        waiting += usize::from(matches!(event, Event::ToolStart { item } if is_wait(item)));
        waiting == 3
    })
    .await;
    while team.bench.safe.running.load(Ordering::SeqCst) < 3 {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    tokio::time::sleep(Duration::from_millis(50)).await;
    team.bench.safe.go.notify_waiters();
    until(&mut events, is_done).await;
    assert_eq!(team.bench.safe.most.load(Ordering::SeqCst), 3);
    assert_eq!(team.act.0.most.load(Ordering::SeqCst), 1);
    let results = team.results();
    for ((id, content, is_error), name) in results.iter().zip(names) {
        assert!(id == name && content.starts_with(name) && !is_error, "{content}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_type_has_its_own_tools_mode_and_limit_and_the_call_must_be_right() {
    let bad = [
        json!({ "prompt": "x", "subagent_type": "nobody" }),
        json!({ "prompt": "x", "resume": "agent_0" }),
        json!({ "prompt": "x", "model": "nothing" }),
        json!({ "prompt": "x", "subagent_type": "lost" }),
    ];
    let mut calls: Vec<_> =
        bad.into_iter().enumerate().map(|(at, input)| task(&format!("b{at}"), input)).collect();
    calls.push(task("c0", json!({ "prompt": "careful work", "subagent_type": "careful" })));
    calls.push(task("s0", json!({ "prompt": "short work", "subagent_type": "short" })));
    let team = Team::new(
        vec![Say::Answer(calls)],
        vec![
            (
                "careful work",
                vec![Say::Answer(vec![
                    call("p0", "Probe", "return"),
                    call("p1", "Act", "return"),
                    task("p2", json!({ "prompt": "deeper" })),
                    call("p3", "SafeProbe", "return"),
                ])],
            ),
            ("short work", vec![Say::Answer(vec![text("so far"), call("q0", "SafeProbe", "return")])]),
        ],
    )
    .with_type("careful", "tools: SafeProbe, Act\npermissionMode: plan\n")
    .with_type("short", "tools: '*'\nmaxTurns: 1\n")
    .with_type("lost", "tools: Nothing\n");
    let session = team.bench.session();
    session.set_mode(Mode::BypassPermissions);
    let mut events = session.events().subscribe(0, vec![]);
    session.prompts().submit(prompt("go")).unwrap();
    until(&mut events, is_done).await;
    let answers = team.results();
    for ((id, content, is_error), expected) in answers.iter().zip([
        "Use one of: careful, Explore, general-purpose, lost, Plan, review, short.",
        "There is no sub-agent `agent_0`",
        "`nothing`",
        "names no tool that is there: Nothing",
    ]) {
        assert!(*is_error && content.contains(expected), "{id}: {content}");
    }
    let (_, short, is_error) = &answers[5];
    assert!(*is_error && short.contains("stopped after 1 model call.\nIts last output:\nso far"), "{short}");
    let inner: Vec<_> = results(&team.asked("careful work")[1]);
    let outcomes: Vec<_> = inner.iter().map(|(id, _, is_error)| (id.as_str(), *is_error)).collect();
    assert_eq!(outcomes, [("p0", true), ("p1", true), ("p2", true), ("p3", false)], "{inner:?}");
    assert!(inner[0].1.contains("There is no tool `Probe`") && inner[1].1.contains("mode Plan"), "{inner:?}");
    assert!(team.asked("careful work")[0].system[0].contains("You are careful."));
    assert!(team.asked("deeper").is_empty());
}

#[tokio::test(start_paused = true)]
async fn cancelling_the_call_ends_its_sub_agent_and_nothing_else() {
    let calls = vec![task("t0", json!({ "prompt": "long" })), task("t1", json!({ "prompt": "thinking" }))];
    let team = Team::new(
        vec![Say::Answer(calls)],
        vec![
            ("long", vec![Say::Answer(vec![text("begun"), call("c0", "SafeProbe", "wait")])]),
            ("thinking", vec![Say::Hang("half a")]),
        ],
    );
    let session = team.bench.session();
    let mut events = session.events().subscribe(0, vec![]);
    session.prompts().submit(prompt("go")).unwrap();
    // Both are in the midst of it: one in its tool, the other in its answer, in whichever event its words come.
    let (mut works, mut speaks) = (false, false);
    until(&mut events, |event| {
        works |= matches!(event, Event::ToolStart { item } if item.agent.is_some());
        speaks |= format!("{event:?}").contains("half a");
        works && speaks
    })
    .await;
    for call in ["t0", "t1"] {
        assert!(session.turns().cancel_call(&CallId::from_external(call)));
    }
    let seen = until(&mut events, is_done).await;
    assert!(seen.iter().any(|record| matches!(record.event, Event::Done { reason: TurnEnd::EndTurn, .. })));
    let results = team.results();
    for ((_, content, is_error), words) in results.iter().zip(["begun", "half a"]) {
        assert!(*is_error && content.contains("was cancelled") && content.contains(words), "{content}");
    }
    let state = session.core().state();
    assert_eq!(state.agents.len(), 2);
    assert!(state.agents.values().all(|agent| agent.thread.unanswered().is_empty()));
}

#[tokio::test(start_paused = true)]
async fn what_a_sub_agent_asks_for_reaches_the_user_under_its_name() {
    let team = Team::new(
        vec![Say::Answer(vec![task("t0", json!({ "prompt": "act" }))])],
        vec![("act", vec![Say::Answer(vec![call("c0", "Act", "return")])])],
    );
    let session = team.bench.session();
    let mut events = session.events().subscribe(0, vec![]);
    session.prompts().submit(prompt("go")).unwrap();
    let seen = until(&mut events, |event| matches!(event, Event::PermissionRequired { .. })).await;
    let asked = session.requests().permissions().remove(0);
    assert_eq!(asked.agent, Some(agent_of(&seen)));
    assert!(asked.reason.ends_with("(asked by the sub-agent `general-purpose`)"), "{}", asked.reason);
    let no = PromptAnswer {
        allow: false,
        scope: kode_permission::Scope::Once,
        feedback: Some("not now".into()),
        updated_input: None,
        rules: None,
        hunks: None,
        mode: None,
        by: "test".into(),
    };
    session.requests().respond(&asked.id, no).unwrap();
    until(&mut events, is_done).await;
    let inner = results(&team.asked("act")[1]);
    assert!(inner[0].2 && inner[0].1.contains("not now"), "{inner:?}");
    assert!(!team.results()[0].2);
}

#[tokio::test(start_paused = true)]
async fn a_sub_agent_continues_with_all_it_knows_also_after_the_server_has_ended() {
    let team = Team::new(
        vec![Say::Answer(vec![task("t0", json!({ "prompt": "first", "subagent_type": "explore" }))])],
        vec![("first", vec![Say::Answer(vec![text("I saw it")])])],
    )
    .with_type("explore", "tools: SafeProbe\n");
    let session = team.bench.session();
    let mut events = session.events().subscribe(0, vec![]);
    session.prompts().submit(prompt("go")).unwrap();
    let agent = agent_of(&until(&mut events, is_done).await);
    let id = session.id().clone();
    team.bench.engine.shutdown().await;
    let again = task("t1", json!({ "prompt": "second", "resume": agent.as_str() }));
    let other = task("t2", json!({ "prompt": "third", "resume": agent.as_str(), "subagent_type": "review" }));
    let team = Team::in_home(
        team.bench.home,
        vec![Say::Answer(vec![again, other])],
        vec![("first", vec![Say::Answer(vec![text("and again")])])],
    );
    let session = team.bench.engine.load_session(&[team.bench.root()], &id).await.unwrap();
    let mut events = session.events().subscribe(session.events().newest(), vec![]);
    let turn = match session.prompts().submit(prompt("go on")).unwrap() {
        SubmitOutcome::Started(turn) => turn,
        SubmitOutcome::Queued(_) | SubmitOutcome::Steering { .. } | SubmitOutcome::Answered { .. } => {
            panic!("nothing runs")
        }
    };
    until(&mut events, is_done).await;
    let request = team.asked("first").remove(0);
    let said: Vec<_> = request.messages.iter().map(|message| message.content[0].clone()).collect();
    assert_eq!(said, [text("first"), text("I saw it"), text("second")]);
    assert_eq!(request.tools.len(), 1);
    let answers = team.results();
    assert!(answers[1].1.starts_with("and again\n"), "{answers:?}");
    assert!(answers[2].2 && answers[2].1.contains("is of type `explore`"), "{answers:?}");
    // Its acts in a turn go and come back with the turn.
    let shown = || session.history().sub_agent(&agent, usize::MAX).unwrap().items.len();
    assert_eq!(shown(), 4);
    let resolution = session.edits().restore(
        &CheckpointId::before(&turn),
        review::RestoreWhat::Conversation,
        review::UserEdits::Keep,
    );
    let resolution = resolution.unwrap();
    until(&mut events, |event| matches!(event, Event::EditsResolved { .. })).await;
    assert_eq!(shown(), 2);
    session.edits().revert(Some(&resolution)).unwrap();
    until(&mut events, |event| matches!(event, Event::EditsResolved { .. })).await;
    assert_eq!(shown(), 4);
}

#[tokio::test(start_paused = true)]
async fn a_session_killed_anywhere_in_a_task_continues_and_so_does_its_sub_agent() {
    let script =
        || vec![Say::Answer(vec![task("t0", json!({ "prompt": "work" })), call("m0", "Probe", "return")])];
    let work = || {
        let calls = vec![call("c0", "SafeProbe", "return"), call("c1", "Probe", "return")];
        vec![Say::Answer(calls), Say::Answer(vec![text("worked")])]
    };
    let team = Team::new(script(), vec![("work", work())]);
    let session = team.bench.session();
    let mut events = session.events().subscribe(0, vec![]);
    session.prompts().submit(prompt("go")).unwrap();
    let agent = agent_of(&until(&mut events, is_done).await);
    let id = session.id().clone();
    team.bench.engine.shutdown().await;
    let journal = journal_of(team.bench.home.path());
    let lines: Vec<String> = std::fs::read_to_string(&journal).unwrap().lines().map(str::to_owned).collect();
    assert!(lines.len() > 15, "{}", lines.len());
    let mut home = team.bench.home;
    for kept in 1..=lines.len() {
        std::fs::write(&journal, lines[..kept].join("\n") + "\n").unwrap();
        let again =
            vec![Say::Answer(vec![task("t9", json!({ "prompt": "more", "resume": agent.as_str() }))])];
        let team = Team::in_home(home, again, vec![("work", vec![Say::Answer(vec![text("resumed")])])]);
        let session = team.bench.engine.load_session(&[team.bench.root()], &id).await.unwrap();
        let begun = {
            let state = session.core().state();
            let threads = state.agents.values().map(|agent| &agent.thread).chain([&state.main]);
            for item in threads.flat_map(|thread| thread.items.newest()) {
                if let ItemBody::ToolCall(call) = &item.body {
                    assert!(call.state.is_final(), "after {kept} records: {call:?}");
                }
            }
            state.agents.get(&agent).is_some_and(|agent| !agent.thread.messages.is_empty())
        };
        let mut events = session.events().subscribe(session.events().newest(), vec![]);
        session.prompts().submit(prompt("and now")).unwrap();
        until(&mut events, is_done).await;
        let last = results(team.bench.requests().last().unwrap());
        let resumed = last.iter().find(|(id, ..)| id == "t9").unwrap();
        assert_eq!(!resumed.2, begun, "after {kept} records: {resumed:?}");
        team.bench.engine.shutdown().await;
        home = team.bench.home;
    }
}

#[tokio::test]
async fn a_sub_agent_that_changes_the_folder_moves_nobody_else() {
    let bash = |id: &str, command: &str| {
        let input = json!({ "command": command });
        Block::ToolUse { id: id.into(), name: "Bash".into(), input, input_error: None }
    };
    let main = vec![
        Say::Answer(vec![task("t0", json!({ "prompt": "find it" }))]),
        Say::Answer(vec![bash("b1", "touch main")]),
    ];
    let bench = Bench::with_tools(tempfile::tempdir().unwrap(), main, built_in());
    let script = vec![
        Say::Answer(vec![bash("b2", "mkdir sub; cd sub")]),
        Say::Answer(vec![bash("b3", "touch agent")]),
    ];
    bench.model.tasks.lock().unwrap().insert("find it".to_owned(), script.into());
    let session = bench.session();
    session.set_mode(Mode::BypassPermissions);
    let mut events = session.events().subscribe(0, vec![]);
    session.prompts().submit(prompt("go")).unwrap();
    until(&mut events, is_done).await;
    assert!(bench.root().join("sub/agent").as_path().exists());
    assert!(bench.root().join("main").as_path().exists());
}

#[tokio::test(start_paused = true)]
async fn the_effort_of_a_type_is_that_of_its_agents_and_of_those_they_call() {
    let calls = vec![
        task("t1", json!({ "subagent_type": "quick", "prompt": "quick work" })),
        task("t2", json!({ "subagent_type": "plain", "prompt": "plain work" })),
    ];
    let deeper = task("p0", json!({ "subagent_type": "plain", "prompt": "deeper work" }));
    // A project's file about it counts once the user has approved it.
    let policies: [(Arc<dyn PolicyProvider>, Effort); 2] =
        [(Arc::new(Trusting::default()), Effort::Low), (Arc::new(NoPolicyProvider), Effort::High)];
    for (policies, expected) in policies {
        let home = tempfile::tempdir().unwrap();
        let tasks = vec![("quick work", vec![Say::Answer(vec![deeper.clone()])])];
        let team = Team::with_policies(home, vec![Say::Answer(calls.clone())], tasks, policies)
            .with_type("quick", "tools: Task\neffort: low\n")
            .with_type("plain", "");
        let session = team.bench.session();
        let effort = Some(Some(Effort::High));
        session.configure(ConfigChange { effort, ..ConfigChange::default() });
        let mut events = session.events().subscribe(0, vec![]);
        session.prompts().submit(prompt("go")).unwrap();
        until(&mut events, is_done).await;
        let effort = |task: &str| team.asked(task).first().unwrap().effort;
        assert_eq!(effort("go"), Some(Effort::High));
        assert_eq!(effort("plain work"), Some(Effort::High));
        assert_eq!((effort("quick work"), effort("deeper work")), (Some(expected), Some(expected)));
    }
}

#[tokio::test(start_paused = true)]
async fn a_sub_agent_ends_with_the_budget_of_its_turn() {
    let slow = |number: usize| {
        Say::After(
            Duration::from_secs(40),
            vec![call(&format!("c{number}"), "SafeProbe", &format!("{number}"))],
        )
    };
    let work = Say::Answer(vec![task("t1", json!({ "prompt": "long work" }))]);
    let team = Team::new(vec![work], vec![("long work", (0..9).map(slow).collect())]);
    let session = team.bench.session();
    let mut events = session.events().subscribe(0, vec![]);
    let budget = Budget { max_minutes: Some(1.0), max_cost_usd: None };
    let options = TurnOptions { budget, ..TurnOptions::default() };
    session.prompts().submit(prompt("go").with_options(options)).unwrap();
    assert_eq!(asked_or_done(&mut events).await, None);
    assert_eq!(team.asked("long work").len(), 2);
    session.requests().reply(&session.requests().questions()[0].id, reply(Some(LIMIT_GO_ON))).unwrap();
    assert_eq!(asked_or_done(&mut events).await, Some(TurnEnd::EndTurn));
    let (_, result, is_error) = team.results().remove(0);
    assert!(is_error && result.contains("because the budget of the turn is used up"), "{result}");
}
