//! The gate as a whole: modes, rules, secrets, guarded places, standing answers, and commands part by part.

use serde_json::json;
use url::Url;

use super::*;
use crate::IgnoreCause;
use crate::rules::{PathBases, Rule, RuleSource, SettingsLayer};
use kode_base::call::CommandLanguage;
use kode_base::command_shell::CommandShell;

fn file(path: &str) -> Target {
    Target::File(AbsPath::new(path).unwrap())
}

fn command(text: &str) -> Touch {
    Touch::Command {
        command: text.to_owned(),
        directory: AbsPath::new("/w").unwrap(),
        outside_sandbox: false,
        language: CommandLanguage::Bash,
    }
}

/// `/w/docs` is a link to `/w/.git`.
fn real(target: &Target) -> Target {
    match target.file().and_then(|path| path.as_path().strip_prefix("/w/docs").ok()) {
        Some(rest) => file(&format!("/w/.git/{}", rest.display())),
        None => target.clone(),
    }
}

/// `/w/.aiignore` keeps `/w/kept` from the agent.
fn ignored(path: &AbsPath) -> Option<IgnoredBy> {
    let file = AbsPath::new("/w/.aiignore").unwrap();
    let cause = IgnoreCause::Line { number: 3, pattern: "/kept/".to_owned() };
    path.as_path().starts_with("/w/kept").then_some(IgnoredBy { file, cause })
}

fn sandbox(runs_unasked: bool) -> Confinement {
    Confinement::Sandbox { runs_unasked, may_leave: true, excluded: vec!["docker ps".parse().unwrap()] }
}

/// A gate with a workspace `/w` and these rules of the user's.
struct Rig {
    mode: Mode,
    rules: RuleSet,
    grants: Vec<Grant>,
    confinement: Confinement,
    delivery: Option<EditDelivery>,
    plain_git: bool,
    tracks_ignored: bool,
}

impl Rig {
    fn new(mode: Mode, rules: &[(Behavior, &str)]) -> Self {
        let placed = |(behavior, text): &(Behavior, &str)| PlacedRule {
            behavior: *behavior,
            rule: text.parse::<Rule>().unwrap(),
            source: RuleSource { layer: SettingsLayer::User, file: None, place: None },
            root: Some(AbsPath::new("/w").unwrap()),
        };
        let cwd = AbsPath::new("/w").unwrap();
        let places =
            PathBases { cwd: &cwd, home: None, real: &Clone::clone, is_case_insensitive: &|_| false };
        let (rules, problems) = RuleSet::new(rules.iter().map(placed).collect(), &places);
        assert_eq!(problems, []);
        Self {
            mode,
            rules,
            grants: Vec::new(),
            confinement: Confinement::Off,
            delivery: None,
            plain_git: true,
            tracks_ignored: false,
        }
    }

    fn verdict(&self, touches: &[Touch]) -> Verdict {
        self.verdict_of("Tool", touches)
    }

    fn verdict_of(&self, tool: &str, touches: &[Touch]) -> Verdict {
        let contains =
            |target: &Target| real(target).file().is_none_or(|path| path.as_path().starts_with("/w"));
        let roots = [AbsPath::new("/w").unwrap(), AbsPath::new("/home/u/.claude/worktrees/x").unwrap()];
        let circumstances = Circumstances {
            mode: self.mode,
            roots: &roots,
            home: None,
            rules: &self.rules,
            grants: &self.grants,
            sensitive: &Sensitive::default().guarding(
                &["/state/output/kept", "/state/sessions"].map(|path| AbsPath::new(path).unwrap()),
                &[],
            ),
            ignored_by: &ignored,
            tracked_ignored: &|_| {
                let file = AbsPath::new("/w/kept/a").unwrap();
                ignored(&file).filter(|_| self.tracks_ignored).map(|by| (file, by)).into_iter().collect()
            },
            confinement: &self.confinement,
            lost: None,
            contains: &contains,
            is_own: &|target| target.file().is_some_and(|path| path.as_path().starts_with("/state/output")),
            real: &real,
            delivery: &|_| self.delivery,
            is_plain_git: &|_| self.plain_git,
            obeyed_by: &|_| None,
            is_program_from_outside: &|_| true,
        };
        let input = json!({});
        judge(&GateCase { tool, kind: ToolKind::Execute, input: &input, touches }, &circumstances)
    }

    fn decide(&self, touches: &[Touch]) -> GateDecision {
        self.verdict(touches).decision
    }

    fn run(&self, line: &str) -> GateDecision {
        self.decide(&[command(line)])
    }
}

use Behavior::{Allow as ALLOW, Ask as ASK, Deny as DENY};
use GateDecision::{Allow, Ask, Deny};
use kode_base::paths::real_path;

#[test]
fn the_mode_decides_by_what_a_call_does() {
    let calls = [
        Touch::Read(file("/w/a")),
        Touch::Write(file("/w/a")),
        command("make all"),
        command("cat a"),
        Touch::Fetch { url: Url::parse("https://example.com/").unwrap() },
        Touch::Named { tool: "WebSearch", name: "words".to_owned() },
        Touch::Named { tool: "Task", name: "explore".to_owned() },
    ];
    let expected = [
        (Mode::Default, [Allow, Ask, Ask, Allow, Ask, Ask, Allow]),
        (Mode::AcceptEdits, [Allow, Allow, Ask, Allow, Ask, Ask, Allow]),
        (Mode::Plan, [Allow, Deny, Deny, Allow, Ask, Ask, Allow]),
        (Mode::DontAsk, [Allow, Deny, Deny, Allow, Deny, Deny, Allow]),
        (Mode::BypassPermissions, [Allow, Allow, Allow, Allow, Allow, Allow, Allow]),
        (Mode::Approval, [Ask, Ask, Ask, Ask, Ask, Ask, Ask]),
        (Mode::Readonly, [Allow, Deny, Ask, Allow, Ask, Ask, Allow]),
    ];
    for (mode, row) in expected {
        let rig = Rig::new(mode, &[]);
        for (touch, expected) in calls.iter().zip(row) {
            assert_eq!(rig.decide(std::slice::from_ref(touch)), expected, "{mode:?} {touch:?}");
        }
    }
}

#[test]
fn the_sessions_own_files_are_read_unasked_and_nothing_more() {
    let own = || file("/state/output/call_1.txt");
    for mode in [Mode::Default, Mode::AcceptEdits, Mode::Plan] {
        assert_eq!(Rig::new(mode, &[]).decide(&[Touch::Read(own())]), Allow, "{mode:?}");
    }
    assert_eq!(Rig::new(Mode::AcceptEdits, &[]).decide(&[Touch::Write(own())]), Ask);
    assert_eq!(Rig::new(Mode::Default, &[]).decide(&[Touch::Read(file("/state/journal.jsonl"))]), Ask);
}

#[test]
fn outside_the_workspace_even_reading_asks() {
    for mode in [Mode::Default, Mode::AcceptEdits, Mode::Plan] {
        assert_eq!(Rig::new(mode, &[]).decide(&[Touch::Read(file("/etc/passwd"))]), Ask, "{mode:?}");
        assert_ne!(Rig::new(mode, &[]).run("cat /etc/passwd"), Allow, "{mode:?}");
    }
    assert_eq!(Rig::new(Mode::AcceptEdits, &[]).decide(&[Touch::Write(file("/etc/hosts"))]), Ask);
}

#[test]
fn what_steers_other_programs_is_asked_for_in_every_mode() {
    for path in [
        "/w/.git/hooks/pre-commit",
        "/w/sub/.GIT/config",
        "/w/.mcp.json",
        "/w/.kode/settings.json",
        "/w/docs/config",
    ] {
        for mode in [Mode::AcceptEdits, Mode::BypassPermissions] {
            assert_eq!(Rig::new(mode, &[]).decide(&[Touch::Write(file(path))]), Ask, "{mode:?} {path}");
        }
    }
    assert_eq!(Rig::new(Mode::AcceptEdits, &[]).decide(&[Touch::Write(file("/w/.gitignore"))]), Allow);
    let in_a_working_copy = |path: &str| {
        let path = format!("/home/u/.claude/worktrees/x/{path}");
        Rig::new(Mode::BypassPermissions, &[]).decide(&[Touch::Write(file(&path))])
    };
    assert_eq!((in_a_working_copy("src/a"), in_a_working_copy(".claude/a")), (Allow, Ask));
    let everything = [(ALLOW, "Edit(/**)"), (ALLOW, "Bash")];
    let rig = Rig::new(Mode::BypassPermissions, &everything);
    assert_eq!(rig.decide(&[Touch::Write(file("/w/.git/config"))]), Ask);
    assert_eq!(rig.run("echo x > .git/config"), Ask);
    assert_eq!(rig.run("cp x .git/hooks/pre-commit"), Ask);
}

#[test]
fn deny_comes_before_ask_and_ask_before_allow_and_all_before_the_mode() {
    let touch = [Touch::Write(file("/w/src/a"))];
    let of = |rules: &[(Behavior, &str)]| Rig::new(Mode::Default, rules).decide(&touch);
    assert_eq!(of(&[(ALLOW, "Edit(/src/**)")]), Allow);
    assert_eq!(of(&[(ALLOW, "Edit(/src/a)"), (ASK, "Edit(/**)")]), Ask);
    assert_eq!(of(&[(ALLOW, "Edit(/src/a)"), (ASK, "Edit(/src/a)"), (DENY, "Edit(/**)")]), Deny);
    let bypass = |rules: &[(Behavior, &str)]| Rig::new(Mode::BypassPermissions, rules).decide(&touch);
    assert_eq!(bypass(&[(ASK, "Edit(/src/**)")]), Ask);
    assert_eq!(bypass(&[(DENY, "Read(/src/**)")]), Deny, "what must not be read must not be written");
}

#[test]
fn a_verdict_names_the_rule_and_where_it_is() {
    let verdict = Rig::new(Mode::Default, &[(DENY, "Read(secret.txt)")])
        .verdict(&[Touch::Read(file("/w/x/secret.txt"))]);
    assert_eq!(verdict.decision, Deny);
    assert_eq!(verdict.reason, "the rule Read(secret.txt) in user settings denies it");
    assert_eq!(verdict.rule.unwrap().text, "Read(secret.txt)");
}

#[test]
fn secrets_are_refused_in_every_mode_and_by_every_way_of_reading() {
    for mode in Mode::ALL {
        let rig = Rig::new(mode, &[(ALLOW, "Read(/**)"), (ALLOW, "Bash")]);
        assert_eq!(rig.decide(&[Touch::Read(file("/w/.env"))]), Deny, "{mode:?}");
        for line in ["cat .env", "grep x < .env", "cp .env x", "head -n1 -- sub/server.pem"] {
            assert_eq!(rig.run(line), Deny, "{mode:?} {line}");
        }
    }
    let rig = Rig::new(Mode::Default, &[]);
    assert_eq!(rig.decide(&[Touch::Read(file("/w/data.sqlite"))]), Ask);
    assert_eq!(rig.run("cat data.sqlite"), Ask);
    assert_eq!(rig.decide(&[Touch::Read(file("/w/.env.example"))]), Allow);
}

#[test]
fn a_delivery_asks_or_spares_the_question_but_not_where_it_is_always_asked() {
    let of = |mode, path, delivery| {
        let rig = Rig { delivery: Some(delivery), ..Rig::new(mode, &[]) };
        rig.decide(&[Touch::Write(file(path))])
    };
    assert_eq!(of(Mode::Default, "/w/a", EditDelivery::Apply), Allow);
    for mode in [Mode::Default, Mode::AcceptEdits, Mode::BypassPermissions] {
        assert_eq!(of(mode, "/w/a", EditDelivery::Propose), Ask, "{mode:?}");
    }
    for path in ["/etc/hosts", "/w/.git/config", "/w/docs/config"] {
        assert_eq!(of(Mode::Default, path, EditDelivery::Apply), Ask, "{path}");
    }
    assert_eq!(of(Mode::Plan, "/w/a", EditDelivery::Apply), Deny);
    assert_eq!(of(Mode::Approval, "/w/a", EditDelivery::Apply), Ask);
}

#[test]
fn every_part_of_a_line_has_to_be_covered() {
    let rig = Rig::new(Mode::Default, &[(ALLOW, "Bash(npm test:*)"), (ALLOW, "Bash(cargo build)")]);
    for line in
        ["npm test", "npm test -- --watch=false", "cargo build && npm test", "cd src && npm test | head -5"]
    {
        assert_eq!(rig.run(line), Allow, "{line}");
    }
    for line in [
        "npm test; rm -r x",
        "npm testing",
        "cargo build --release",
        "npm test $(cat x)",
        "npm test `id`",
        "npm test > out.txt",
        "cd / && npm test",
        "x=1 npm test; PATH=. npm test",
    ] {
        assert_eq!(rig.run(line), Ask, "{line}");
    }
}

#[test]
fn a_deny_rule_is_found_in_every_part_and_through_wrappers() {
    let rig = Rig::new(Mode::BypassPermissions, &[(DENY, "Bash(curl:*)"), (DENY, "Edit(/generated/**)")]);
    for line in [
        "curl x",
        "true && /usr/bin/curl x",
        "timeout 5 curl x",
        "bash -c 'curl x'",
        "FOO=1 curl x",
        "echo $(curl x)",
        "echo x > generated/a",
        "tee generated/a < b",
        "cp a generated/",
    ] {
        assert_eq!(rig.run(line), Deny, "{line}");
    }
    assert_eq!(rig.run("echo curl"), Allow);
}

#[test]
fn what_no_mode_runs_is_refused_whatever_the_rules_say() {
    for mode in Mode::ALL {
        let rig = Rig::new(mode, &[(ALLOW, "Bash")]);
        for line in ["rm -rf /", "sudo ls", "dd if=x of=/dev/sda", "mkfs.ext4 /dev/sda1", "shutdown now"] {
            assert_eq!(rig.run(line), Deny, "{mode:?} {line}");
        }
    }
    assert_eq!(Rig::new(Mode::BypassPermissions, &[]).run("git commit -m 'sudo reboot'"), Allow);
}

#[test]
fn edits_by_command_run_where_edits_are_accepted() {
    let rig = Rig::new(Mode::AcceptEdits, &[]);
    for line in ["mkdir -p a/b", "touch a", "mv a b", "cp a b", "rm a"] {
        assert_eq!(rig.run(line), Allow, "{line}");
        assert_eq!(Rig::new(Mode::Default, &[]).run(line), Ask, "{line}");
    }
    for line in ["mkdir /x", "cp a /etc/x", "rm .git/config"] {
        assert_eq!(rig.run(line), Ask, "{line}");
    }
}

#[test]
fn git_only_looks_where_its_settings_name_no_programs() {
    let rig = Rig::new(Mode::Default, &[]);
    assert_eq!(rig.run("git status"), Allow);
    assert_eq!(Rig { plain_git: false, ..rig }.run("git status"), Ask);
}

#[test]
fn a_standing_yes_covers_the_very_thing_and_nothing_else() {
    let touches = [command("make all"), Touch::Write(file("/w/a"))];
    let rig = Rig { grants: Grant::for_touches(&touches, &real), ..Rig::new(Mode::Default, &[]) };
    assert_eq!(rig.decide(&touches), Allow);
    assert_eq!(rig.run("make all; rm x"), Ask);
    assert_eq!(rig.decide(&[Touch::Write(file("/w/b"))]), Ask);
    let elsewhere = Touch::Command {
        command: "make all".into(),
        directory: AbsPath::new("/w/sub").unwrap(),
        outside_sandbox: false,
        language: CommandLanguage::Bash,
    };
    assert_eq!(rig.decide(&[elsewhere]), Ask);
    let guarded = [Touch::Write(file("/w/.git/config"))];
    let rig = Rig { grants: Grant::for_touches(&guarded, &real), ..Rig::new(Mode::Default, &[]) };
    assert_eq!(rig.decide(&guarded), Allow, "the user has seen this very file");
}

#[test]
fn a_standing_yes_lifts_neither_a_refusal_nor_an_ask_rule() {
    let touches = [command("make all")];
    let grants = Grant::for_touches(&touches, &real);
    let of = |mode, rules: &[(Behavior, &str)]| {
        Rig { grants: grants.clone(), ..Rig::new(mode, rules) }.decide(&touches)
    };
    assert_eq!(of(Mode::Plan, &[]), Deny);
    assert_eq!(of(Mode::Default, &[(ASK, "Bash(make:*)")]), Ask);
    assert_eq!(of(Mode::Default, &[(DENY, "Bash(make:*)")]), Deny);
}

#[test]
fn without_a_sandbox_commands_ask_and_within_one_they_may_run_unasked() {
    let rules = [(ALLOW, "Bash(make:*)")];
    let with = |confinement| Rig { confinement, ..Rig::new(Mode::Default, &rules) };
    let missing = with(Confinement::Missing("no kernel support".to_owned()));
    assert_eq!((missing.run("make"), missing.run("ls")), (Ask, Allow));
    assert!(missing.verdict(&[command("make")]).reason.contains("no kernel support"));
    let unasked = with(sandbox(true));
    assert_eq!(
        (unasked.run("cc x.c"), unasked.run("rm -rf /"), unasked.run("cat .env")),
        (Allow, Deny, Deny)
    );
    let outside = Touch::Command {
        command: "cc x.c".to_owned(),
        directory: AbsPath::new("/w").unwrap(),
        outside_sandbox: true,
        language: CommandLanguage::Bash,
    };
    assert_eq!(unasked.decide(std::slice::from_ref(&outside)), Ask);
    let ruled = Rig { confinement: sandbox(false), ..Rig::new(Mode::Default, &[(ALLOW, "Bash(cc:*)")]) };
    assert_eq!((ruled.run("cc x.c"), ruled.decide(std::slice::from_ref(&outside))), (Allow, Ask));
    let granted = Rig { grants: Grant::for_touches(std::slice::from_ref(&outside), &real), ..ruled };
    assert_eq!(granted.decide(std::slice::from_ref(&outside)), Allow, "the user has seen that it leaves");
    let excluded = Touch::Command {
        command: "docker ps".to_owned(),
        directory: AbsPath::new("/w").unwrap(),
        outside_sandbox: true,
        language: CommandLanguage::Bash,
    };
    let rules = Rig { confinement: sandbox(false), ..Rig::new(Mode::BypassPermissions, &[]) };
    assert_eq!(rules.decide(&[excluded]), Allow, "the user wants it to run outside");
    let bypass = Rig { confinement: sandbox(false), ..Rig::new(Mode::BypassPermissions, &[]) };
    assert_eq!((bypass.run("cc x.c"), bypass.decide(&[outside])), (Allow, Ask));
    let ruled = Touch::Command {
        command: "make".to_owned(),
        directory: AbsPath::new("/w").unwrap(),
        outside_sandbox: true,
        language: CommandLanguage::Bash,
    };
    let inside = with(sandbox(false));
    assert_eq!(
        (inside.run("make"), inside.decide(&[ruled])),
        (Allow, Ask),
        "a rule does not open the sandbox"
    );
}

#[test]
fn a_bare_rule_speaks_of_the_whole_tool() {
    let fetch = [Touch::Fetch { url: Url::parse("https://docs.rs/x").unwrap() }];
    let of =
        |rules: &[(Behavior, &str)]| Rig::new(Mode::Default, rules).verdict_of("WebFetch", &fetch).decision;
    assert_eq!(of(&[(ALLOW, "WebFetch")]), Allow);
    assert_eq!(of(&[(ALLOW, "WebFetch(domain:docs.rs)")]), Allow);
    assert_eq!(of(&[(ALLOW, "WebFetch(domain:*.docs.rs)")]), Ask);
    assert_eq!(of(&[(ALLOW, "WebFetch"), (DENY, "WebFetch(domain:docs.rs)")]), Deny);
}

/// A gate over a folder on disk, with a secret, a denied file and a repository in it.
fn on_disk(mode: Mode, rules: &[(Behavior, &str)]) -> (tempfile::TempDir, impl Fn(&str) -> GateDecision) {
    let folder = tempfile::tempdir().unwrap();
    let root = AbsPath::new(real_path(folder.path()).unwrap()).unwrap();
    for name in ["src/a.rs", "src/b.rs", "secrets/x", "hidden/.env", ".git/config", "plain/y"] {
        let path = root.join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, "").unwrap();
    }
    let placed = |(behavior, text): &(Behavior, &str)| PlacedRule {
        behavior: *behavior,
        rule: text.parse::<Rule>().unwrap(),
        source: RuleSource { layer: SettingsLayer::User, file: None, place: None },
        root: Some(root.clone()),
    };
    let places = PathBases { cwd: &root, home: None, real: &Clone::clone, is_case_insensitive: &|_| false };
    let rules = RuleSet::new(rules.iter().map(placed).collect(), &places).0;
    let decide = move |line: &str| {
        let real = |target: &Target| match target {
            Target::File(path) => Target::File(crate::rules::places::real_on_disk(path)),
            Target::Untitled(_) => target.clone(),
        };
        let contains = |target: &Target| real(target).file().is_none_or(|path| path.is_within(&root));
        let circumstances = Circumstances {
            mode,
            home: None,
            roots: std::slice::from_ref(&root),
            is_own: &|_| false,
            rules: &rules,
            grants: &[],
            sensitive: &Sensitive::default(),
            ignored_by: &|_| None,
            tracked_ignored: &|_| Vec::new(),
            confinement: &Confinement::Off,
            lost: None,
            contains: &contains,
            real: &real,
            delivery: &|_| None,
            is_plain_git: &|_| true,
            obeyed_by: &|_| None,
            is_program_from_outside: &|_| true,
        };
        let touches = [Touch::Command {
            command: line.to_owned(),
            directory: root.clone(),
            outside_sandbox: false,
            language: CommandLanguage::Bash,
        }];
        let input = json!({});
        judge(
            &GateCase { tool: "Bash", kind: ToolKind::Execute, input: &input, touches: &touches },
            &circumstances,
        )
        .decision
    };
    (folder, decide)
}

#[test]
fn what_a_pattern_means_on_disk_is_judged_file_by_file() {
    let (_keep, run) = on_disk(Mode::Default, &[(DENY, "Read(secrets/**)")]);
    assert_eq!((run("wc -l src/*.rs"), run("cat src/../plain/y")), (Allow, Allow));
    for line in ["cat hidden/.e*", "cat s*/x", "cat src/../secrets/x", "cat hidden/../hidden/.env"] {
        assert_eq!(run(line), Deny, "{line}");
    }
    let (_keep, run) = on_disk(Mode::BypassPermissions, &[(DENY, "Read(secrets/**)")]);
    for line in
        ["cat \"$PWD/secrets/x\"", "cd secrets; cat x", "cat $PWD/hidden/.env", "cp plain/y src/../secrets/x"]
    {
        assert_eq!(run(line), Deny, "{line}");
    }
    assert_eq!(run("cp plain/y src/../.git/config"), Ask);
    assert_eq!(run("cp plain/y \"$X\""), Allow);
}

#[test]
fn a_sandbox_that_lets_commands_run_unasked_changes_no_strict_mode() {
    for (mode, expected) in
        [(Mode::Approval, Ask), (Mode::Readonly, Ask), (Mode::Plan, Deny), (Mode::Default, Allow)]
    {
        let rig = Rig { confinement: sandbox(true), ..Rig::new(mode, &[]) };
        assert_eq!(rig.run("npm run x"), expected, "{mode:?}");
    }
}

#[test]
fn of_the_products_own_state_only_the_output_of_this_session_is_read() {
    let rig = Rig::new(Mode::BypassPermissions, &[]);
    let decision = |touch| rig.verdict(&[touch]).decision;
    assert_eq!(decision(Touch::Read(file("/state/output/kept/x.log"))), GateDecision::Allow);
    assert_eq!(decision(Touch::Read(file("/state/sessions/journal.jsonl"))), GateDecision::Deny);
    assert_eq!(decision(Touch::Write(file("/state/output/kept/x.log"))), GateDecision::Deny);
    assert_eq!(decision(command("cat /state/sessions/a")), GateDecision::Deny);
}

#[test]
fn what_lies_beneath_a_folder_is_inspected_before_it_is_read_or_deleted_as_a_whole() {
    let (_keep, run) = on_disk(Mode::Default, &[]);
    assert_eq!((run("grep -r x src"), run("grep -r x .")), (Allow, Ask), "a secret lies beneath");
    assert_eq!(run("rg x ."), Allow, "what is hidden is not looked into");
    let (_keep, run) = on_disk(Mode::AcceptEdits, &[(DENY, "Read(secrets/**)")]);
    assert_eq!((run("rm -rf plain"), run("rm -rf secrets"), run("grep -r x .")), (Allow, Deny, Deny));
}

#[cfg(unix)]
#[test]
fn links_that_grep_follows_lead_to_no_file_that_is_not_read_unasked() {
    let (keep, run) = on_disk(Mode::Default, &[]);
    let link = |to: &str, from: &str| std::os::unix::fs::symlink(to, keep.path().join(from)).unwrap();
    link("a.rs", "src/c.rs");
    assert_eq!((run("grep -R x src"), run("grep -r x src")), (Allow, Allow));
    link("/etc/hostname", "plain/out");
    assert_eq!((run("grep -nR x plain"), run("grep -r x plain")), (Ask, Allow), "the link leads out");
    link("../secrets", "src/folder");
    assert_eq!(run("grep --dereference-recursive x src"), Ask, "what lies in the folder is not looked at");
}

#[test]
fn what_an_ignore_file_keeps_is_refused_to_every_tool_in_every_mode() {
    for mode in Mode::ALL {
        let rig = Rig::new(mode, &[(ALLOW, "Read(kept/**)"), (ALLOW, "Edit(kept/**)"), (ALLOW, "Bash")]);
        for touch in [
            Touch::Read(file("/w/kept/a")),
            Touch::Write(file("/w/kept/a")),
            command("cat kept/a"),
            command("echo x > kept/a"),
            command("git show HEAD:kept/a"),
            command("git show main:./kept/a | head"),
            command("git cat-file -p HEAD:kept/a"),
            command("git diff -- kept/a"),
            command("git log -p -- kept"),
            command("git blame kept/a"),
            command("python3 < kept/a"),
        ] {
            let verdict = rig.verdict(std::slice::from_ref(&touch));
            assert_eq!(verdict.decision, Deny, "{mode:?} {touch:?}: {verdict:?}");
            assert!(verdict.reason.contains("line 3 (`/kept/`) of /w/.aiignore"), "{verdict:?}");
            let source = verdict.rule.unwrap().source.to_string();
            assert_eq!(source, "ignore file, /w/.aiignore:3");
        }
        assert_ne!(rig.decide(&[Touch::Read(file("/w/other"))]), Deny, "{mode:?}");
    }
}

#[test]
fn an_ignore_file_is_asked_for_before_it_is_changed_in_every_mode_that_asks() {
    for mode in [Mode::Default, Mode::AcceptEdits, Mode::BypassPermissions, Mode::Approval] {
        let rig = Rig::new(mode, &[(ALLOW, "Edit(**)"), (ALLOW, "Bash")]);
        for touch in [
            Touch::Write(file("/w/.aiignore")),
            Touch::Write(file("/w/sub/.CursorIgnore")),
            command("rm .aiignore"),
            command("echo > sub/.codexignore"),
            command("mv .claudeignore x"),
        ] {
            assert_eq!(rig.decide(std::slice::from_ref(&touch)), Ask, "{mode:?} {touch:?}");
        }
        assert_ne!(rig.decide(&[Touch::Read(file("/w/.aiignore"))]), Deny);
    }
}

#[test]
fn git_is_asked_for_before_it_prints_what_an_ignore_file_keeps_from_commits() {
    let mut rig = Rig::new(Mode::BypassPermissions, &[(ALLOW, "Bash")]);
    let printing =
        ["git log -p", "git show", "git diff main", "git diff -- kept/..", "git -C sub stash show -p"];
    for line in printing {
        assert_eq!(rig.run(line), Allow, "{line}");
    }
    rig.tracks_ignored = true;
    for line in printing {
        let verdict = rig.verdict(&[command(line)]);
        assert_eq!(verdict.decision, Ask, "{line}");
        assert!(verdict.reason.contains("line 3 (`/kept/`) of /w/.aiignore"), "{verdict:?}");
    }
    for line in ["git log", "git show --stat", "git diff -- src", "git log -p -- src/main.rs", "git status"] {
        assert_eq!(rig.run(line), Allow, "{line}");
    }
    rig.grants.push(Grant::Command {
        command: "git log -p".to_owned(),
        directory: AbsPath::new("/w").unwrap(),
        shell: CommandShell::Bash,
    });
    assert_eq!(rig.run("git log -p"), Allow);
}
