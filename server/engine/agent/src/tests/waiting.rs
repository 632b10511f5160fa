//! Changes while a call waits for the user, and the reach of the answer.

use super::*;
use kode_config::policy::{KeepRuleError, Policy, PolicySource};
use kode_permission::gate::Confinement;
use kode_permission::rules::{Behavior, PlacedRule, Rule, RuleSource, SettingsLayer};
use kode_permission::{PermissionPrompt, Preview, PromptAnswer, Scope};
use kode_process::sandbox::{HelperProgram, Network, ResourceLimits, Sandbox, SandboxKind, SandboxOptions};
use kode_tools::built_in::built_in;

/// A policy that changes when the test says so, and the rules that were kept.
#[derive(Clone, Default)]
pub(super) struct Settings {
    now: Arc<Mutex<Arc<Policy>>>,
    kept: Arc<Mutex<Vec<String>>>,
}

impl PolicyProvider for Settings {
    fn of(&self, _roots: &[AbsPath]) -> Arc<dyn PolicySource> {
        Arc::new(self.clone())
    }
}

impl PolicySource for Settings {
    fn current(&self) -> Arc<Policy> {
        Arc::clone(&self.now.lock().unwrap())
    }

    fn can_keep(&self) -> bool {
        true
    }

    fn keep(&self, _scope: Scope, _behavior: Behavior, rule: &Rule) -> Result<AbsPath, KeepRuleError> {
        self.kept.lock().unwrap().push(rule.to_string());
        Err(KeepRuleError::NoSettings)
    }
}

impl Settings {
    pub(super) fn set(&self, policy: Policy) {
        *self.now.lock().unwrap() = Arc::new(policy);
    }
}

fn tool(name: &str, input: serde_json::Value) -> Block {
    Block::ToolUse { id: "c0".into(), name: name.into(), input, input_error: None }
}

fn answer(scope: Scope, updated_input: Option<serde_json::Value>) -> PromptAnswer {
    let by = "test".to_owned();
    PromptAnswer {
        allow: true,
        scope,
        feedback: None,
        updated_input,
        rules: None,
        hunks: None,
        mode: None,
        by,
    }
}

/// Has the model make one call, does something while the user is asked, and answers; gives the prompt and the result.
async fn answered(
    settings: &Settings,
    home: tempfile::TempDir,
    block: Block,
    answer: PromptAnswer,
    meanwhile: impl FnOnce(&Session),
) -> (PermissionPrompt, String, tempfile::TempDir) {
    let (script, policies) = (vec![Say::Answer(vec![block])], Arc::new(settings.clone()));
    let bench = Bench::with_policies(home, script, built_in(), policies);
    let session = bench.session();
    let mut events = session.events().subscribe(0, vec![]);
    session.prompts().submit(super::prompt("go")).unwrap();
    until(&mut events, |event| matches!(event, Event::PermissionRequired { .. }) || is_done(event)).await;
    let prompt = session.requests().permissions().remove(0);
    meanwhile(&session);
    session.requests().respond(&prompt.id, answer).unwrap();
    until(&mut events, is_done).await;
    let hunks = session.edits().synced().ledger.review().into_iter().flat_map(|file| file.hunks);
    assert_eq!(
        hunks.filter(|hunk| hunk.state == kode_text::edit::ledger::review::HunkState::Proposed).count(),
        0
    );
    let (_, content, _) = results(&bench.requests()[1]).remove(0);
    (prompt, content, bench.home)
}

#[tokio::test]
async fn what_is_refused_by_the_time_of_the_yes_does_not_run() {
    let settings = Settings::default();
    let deny = PlacedRule {
        behavior: Behavior::Deny,
        rule: "Bash(touch:*)".parse().unwrap(),
        source: RuleSource { layer: SettingsLayer::User, file: None, place: None },
        root: None,
    };
    let call = || tool("Bash", json!({ "command": "touch ran" }));
    let forbid = |_: &Session| settings.set(Policy { rules: vec![deny], ..Policy::default() });
    let home = tempfile::tempdir().unwrap();
    let (_, content, home) = answered(&settings, home, call(), answer(Scope::Once, None), forbid).await;
    assert!(content.contains("was refused: the rule Bash(touch:*)"), "{content}");
    settings.set(Policy::default());
    let plan = |session: &Session| session.set_mode(Mode::Plan);
    let (_, content, home) = answered(&settings, home, call(), answer(Scope::Session, None), plan).await;
    assert!(content.contains("was refused: "), "{content}");
    assert!(!home.path().join("ran").exists());
}

#[tokio::test]
async fn a_change_that_is_refused_by_the_time_of_the_yes_is_no_proposal_any_more() {
    let call = tool("Write", json!({ "file_path": "new.txt", "content": "x\n" }));
    let home = tempfile::tempdir().unwrap();
    let plan = |session: &Session| session.set_mode(Mode::Plan);
    let answer = answer(Scope::Once, None);
    let (_, content, home) = answered(&Settings::default(), home, call, answer, plan).await;
    assert!(content.contains("was refused: "), "{content}");
    assert!(!home.path().join("new.txt").exists());
}

#[tokio::test]
async fn a_command_shown_as_confined_does_not_run_unconfined() {
    let settings = Settings::default();
    let home = tempfile::tempdir().unwrap();
    let root = AbsPath::new(home.path()).unwrap();
    let sandbox = Sandbox::new(SandboxOptions {
        helper: HelperProgram::itself(root.join("no-helper").into()),
        kind: SandboxKind::Landlock,
        writable: vec![root.clone()],
        read_only: vec![],
        scripts: Vec::new(),
        hidden: vec![],
        hides: None,
        home: None,
        state: root.join("state"),
        network: Network::Off,
        limits: ResourceLimits::default(),
        remote: None,
    });
    let confinement = Confinement::Sandbox { runs_unasked: false, may_leave: true, excluded: vec![] };
    settings.set(Policy { confinement, sandbox: Some(Arc::new(sandbox.unwrap())), ..Policy::default() });
    let call = tool("Bash", json!({ "command": "touch ran" }));
    let loosen = |_: &Session| settings.set(Policy::default());
    let (prompt, content, home) = answered(&settings, home, call, answer(Scope::Once, None), loosen).await;
    assert!(matches!(prompt.preview, Preview::Command { sandboxed: true, .. }), "{:?}", prompt.preview);
    assert!(prompt.notes[0].contains("in the sandbox"), "{:?}", prompt.notes);
    assert_eq!(prompt.risks, Vec::<String>::new(), "the sandbox is no risk");
    assert!(content.contains("sandbox could not be set up"), "{content}");
    assert!(!home.path().join("ran").exists());
}

#[tokio::test]
async fn a_standing_yes_to_changed_arguments_is_kept_for_those() {
    let settings = Settings::default();
    let call = tool("Bash", json!({ "command": "npm test" }));
    let changed = answer(Scope::Project, Some(json!({ "command": "yarn test" })));
    answered(&settings, tempfile::tempdir().unwrap(), call, changed, |_| ()).await;
    let kept = settings.kept.lock().unwrap().clone();
    assert!(!kept.is_empty() && kept.iter().all(|rule| rule.starts_with("Bash(yarn test")), "{kept:?}");
}

#[tokio::test]
async fn a_yes_to_all_edits_sets_the_mode_in_which_they_run_unasked() {
    let change = || tool("Write", json!({ "file_path": "new.txt", "content": "x\n" }));
    let yes = || PromptAnswer { mode: Some(Mode::AcceptEdits), ..answer(Scope::Once, None) };
    let script = vec![Say::Answer(vec![change()]), Say::Answer(vec![change()])];
    let bench =
        Bench::with_policies(tempfile::tempdir().unwrap(), script, built_in(), Arc::new(Settings::default()));
    let session = bench.session();
    let mut events = session.events().subscribe(0, vec![]);
    session.prompts().submit(super::prompt("go")).unwrap();
    until(&mut events, |event| matches!(event, Event::PermissionRequired { .. }) || is_done(event)).await;
    let prompt = session.requests().permissions().remove(0);
    assert_eq!(prompt.mode, Some(Mode::AcceptEdits));
    session.requests().respond(&prompt.id, yes()).unwrap();
    let rest = until(&mut events, is_done).await;
    assert!(
        !rest.iter().any(|record| matches!(record.event, Event::PermissionRequired { .. })),
        "asked again"
    );
    assert_eq!(session.mode(), Mode::AcceptEdits);
    // A command is no edit.
    let call = tool("Bash", json!({ "command": "npm test" }));
    let no = PromptAnswer { allow: false, ..answer(Scope::Once, None) };
    let home = tempfile::tempdir().unwrap();
    let (prompt, ..) = answered(&Settings::default(), home, call, no, |_| ()).await;
    assert_eq!(prompt.mode, None);
}

#[tokio::test]
async fn what_is_offered_covers_the_whole_call() {
    let offered = async |command: &str| {
        let call = tool("Bash", json!({ "command": command }));
        let no = PromptAnswer { allow: false, ..answer(Scope::Once, None) };
        let home = tempfile::tempdir().unwrap();
        let (prompt, _, _home) = answered(&Settings::default(), home, call, no, |_| ()).await;
        let rules =
            |scope| prompt.offers.iter().find(|offer| offer.scope == scope).map(|offer| offer.rules.clone());
        assert!(rules(Scope::Session).is_some());
        rules(Scope::Project)
    };
    let some = |rules: &[&str]| Some(rules.iter().map(|rule| (*rule).to_owned()).collect::<Vec<_>>());
    assert_eq!(offered("npm test").await, some(&["Bash(npm test:*)"]));
    assert_eq!(offered("npm test > x").await, some(&["Bash(npm test:*)", "Edit(/x)"]));
    let both = offered("npm ci && cat /etc/hosts").await;
    assert_eq!(both, some(&["Bash(npm ci:*)", "Read(//etc/hosts)"]));
    // Files that steer programs ask each time, under any rule.
    assert_eq!(offered("npm test > .git/hooks/x").await, None);
}

#[tokio::test(start_paused = true)]
async fn a_permission_prompt_and_a_question_wait_for_a_day_and_more_without_an_answer_of_their_own() {
    let questions = json!([{
        "question": "Which one?", "header": "Choice", "multiSelect": false,
        "options": [{ "label": "one", "description": "the first" }, { "label": "two", "description": "the second" }],
    }]);
    for call in [
        tool("Bash", json!({ "command": "touch ran" })),
        tool("AskUserQuestion", json!({ "questions": questions })),
    ] {
        let bench =
            Bench::with_tools(tempfile::tempdir().unwrap(), vec![Say::Answer(vec![call])], built_in());
        let session = bench.session();
        let mut events = session.events().subscribe(0, vec![]);
        session.prompts().submit(super::prompt("go")).unwrap();
        let is_asked =
            |event: &Event| matches!(event, Event::PermissionRequired { .. } | Event::QuestionAsked { .. });
        until(&mut events, |event| is_asked(event) || is_done(event)).await;
        tokio::time::sleep(Duration::from_secs(25 * 60 * 60)).await;
        let requests = session.requests();
        assert_eq!(requests.permissions().len() + requests.questions().len(), 1, "it still waits");
        assert_eq!(bench.requests().len(), 1, "the model was not asked meanwhile");
        session.turns().cancel();
        until(&mut events, is_done).await;
    }
}
