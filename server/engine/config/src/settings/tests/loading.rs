//! The merged files, and the reports about broken ones.

use serde_json::json;

use super::*;
use crate::budget::Budget;
use crate::preferences::{IncompleteIntent, Preferences};
use crate::settings::effective::effective;
use kode_base::effort::Effort;
use kode_base::mode::Mode;
use kode_permission::Sensitivity;

#[test]
fn layers_and_folders_add_up_from_the_strongest_to_the_weakest() {
    let fixture = Fixture::new();
    let files = [
        "managed.json",
        "work/.kode-ls/settings.local.json",
        "work/.kode/settings.local.json",
        "work/.claude/settings.local.json",
        "work/.blade/settings.local.json",
        "work/.kode-ls/settings.json",
        "work/.claude/settings.json",
        "home/.kode-ls/settings.json",
        "home/.kode/settings.json",
        "home/.claude/settings.json",
        "home/.blade/settings.json",
    ];
    for (number, file) in files.iter().enumerate().rev() {
        fixture.write(
            file,
            &json!({ "permissions": { "deny": [format!("Read(x{number})"), "Bash"] } }).to_string(),
        );
    }
    let settings = fixture.load();
    assert_eq!(settings.files, files.map(|file| fixture.path(file)));
    let numbered: Vec<_> = reported(&settings.rules).into_iter().filter(|rule| rule.contains('x')).collect();
    assert_eq!(numbered, (0..files.len()).map(|number| format!("deny Read(x{number})")).collect::<Vec<_>>());
    let layers: Vec<_> = settings.rules.iter().step_by(2).map(|rule| rule.source.layer).collect();
    use SettingsLayer::{Local, Managed, Project, User};
    assert_eq!(layers, [Managed, Local, Local, Local, Local, Project, Project, User, User, User, User]);
    assert_eq!(settings.problems, []);
    assert!(!settings.has_lost_protection());
    let roots: Vec<_> = settings.rules.iter().map(|rule| rule.root.clone().unwrap()).collect();
    assert_eq!(roots[0].as_path().parent(), None, "a managed rule is relative to the file system");
    assert_eq!(roots[2], fixture.path("work"));
    assert_eq!(roots.last(), Some(&fixture.path("home/.blade")));
}

#[test]
fn the_command_line_stands_between_the_administrator_and_the_files() {
    let mut fixture = Fixture::new();
    fixture.write("managed.json", r#"{"permissions":{"ask":["Bash"]}}"#);
    fixture.write("work/.kode/settings.json", r#"{"permissions":{"ask":["Write"]}}"#);
    fixture.sources.command_line = vec![
        (Behavior::Allow, "Edit".to_owned()),
        (Behavior::Deny, "Edit(".to_owned()),
        (Behavior::Allow, "*".to_owned()),
    ];
    let settings = fixture.load();
    assert_eq!(reported(&settings.rules), ["ask Bash", "allow Edit", "ask Write"]);
    let severities: Vec<_> = settings.problems.iter().map(|problem| problem.severity).collect();
    assert_eq!(severities, [ProblemSeverity::Error, ProblemSeverity::Warning]);
    assert!(settings.has_lost_protection());
}

#[test]
fn scalars_are_the_strongest_and_lists_and_objects_add_up() {
    let fixture = Fixture::new();
    fixture.write(
        "home/.kode/settings.json",
        r#"{
          // The user's own word needs no approval.
          "permissions": { "defaultMode": "acceptEdits", "additionalDirectories": ["~/notes", "/data", "~root/x"],
            "disableBypassPermissionsMode": "disable", },
          "sandbox": { "enabled": true, "excludedCommands": ["docker *"], "allowUnsandboxedCommands": false,
            "network": { "allowedDomains": ["a.example", "b.example"], "allowLocalBinding": true },
            "filesystem": { "denyRead": ["~/x"] } },
          "sensitiveFiles": [{ "pattern": "*.log", "level": "none" }, { "pattern": "*.key", "level": "high" }],
          "tools": { "maxConcurrency": 3, "other": 1 },
          "webSearch": { "provider": "one", "more": { "a": 1 } },
          "unknown": { "permissions": { "deny": ["Read"] } }
        }"#,
    );
    fixture.write(
        "home/.claude/settings.json",
        r#"{ "permissions": { "defaultMode": "plan", "additionalDirectories": ["/data", "/more"] },
          "sandbox": { "enabled": false, "excludedCommands": ["docker *", "podman *"], "network": { "deniedDomains": ["c"] } },
          "tools": { "maxConcurrency": 9 }, "language": "German", "maxTurns": -1, "maxCostUsd": 2.5, "maxMinutes": 0, "projectOverview": false,
          "claudeMdExcludes": ["a/**"],
          "autoCompactThreshold": 0.5, "incompleteIntent": "stop", "effortLevel": "high", "model": "opus",
          "webSearch": { "provider": "two", "endpoint": "x", "more": { "a": 2, "b": 3 } } }"#,
    );
    let settings = fixture.load();
    let values = &settings.values;
    assert_eq!(values.default_mode.as_ref().unwrap().value, Mode::AcceptEdits);
    let directories: Vec<_> = values.additional_directories.iter().map(|item| item.value.clone()).collect();
    assert_eq!(directories[0], fixture.path("home/notes"));
    assert_eq!(directories[1..], ["/data", "/more"].map(|path| AbsPath::new(path).unwrap()));
    assert!(values.is_bypass_disabled);
    let sandbox = &values.sandbox;
    assert_eq!((sandbox.enabled, sandbox.auto_allow_bash), (Some(true), None));
    assert_eq!((sandbox.allow_unsandboxed, sandbox.allow_local_binding), (Some(false), Some(true)));
    let texts = |list: &[SourcedValue<String>]| {
        list.iter().map(|item| item.value.clone()).collect::<Vec<_>>().join(" | ")
    };
    assert_eq!(texts(&sandbox.allowed_domains), "a.example | b.example");
    assert_eq!(texts(&sandbox.denied_domains), "c");
    assert_eq!(texts(&sandbox.deny_read), "~/x");
    // Texts that are relative to different folders are not the same.
    assert_eq!(texts(&sandbox.excluded_commands), "docker * | docker * | podman *");
    let levels: Vec<_> = values.sensitive_files.iter().map(|item| item.value.level).collect();
    assert_eq!(levels, [Sensitivity::None, Sensitivity::High]);
    assert_eq!(values.max_concurrency, Some(3));
    let expected = json!({ "provider": "one", "more": { "a": 1, "b": 3 }, "endpoint": "x" });
    assert_eq!(values.web_search, Some(expected));
    let expected = Preferences {
        model: Some("opus".to_owned()),
        effort: Some(Effort::High),
        language: Some("German".to_owned()),
        memory_excludes: vec!["a/**".to_owned()],
        compact_threshold: 0.5,
        max_turns: Some(-1),
        project_overview: false,
        budget: Budget { max_cost_usd: Some(2.5), max_minutes: None },
        incomplete_intent: IncompleteIntent::Stop,
        ..Preferences::default()
    };
    assert_eq!(values.stated.preferences(), expected);
    let problems: Vec<_> = settings.problems.iter().map(|problem| problem.message.as_str()).collect();
    assert_eq!(problems.len(), 2, "the home of somebody else, and a budget of nothing: {problems:?}");
    assert!(problems.iter().any(|problem| problem.contains("`maxMinutes` is ignored")), "{problems:?}");
    assert_eq!((settings.rules, settings.untrusted), (vec![], vec![]));
}

#[test]
fn a_broken_file_costs_itself_alone_and_is_reported_where_it_breaks() {
    for (text, place) in [
        ("{\n  \"permissions\": { \"deny\" [\"Read\"] }\n}", Some((1, 26))),
        ("[1]", Some((0, 0))),
        ("{ 'permissions': {} }", Some((0, 2))),
    ] {
        let fixture = Fixture::new();
        let broken = fixture.write("work/.kode/settings.json", text);
        fixture.write("work/.claude/settings.json", r#"{"permissions":{"deny":["Bash"]}}"#);
        let settings = fixture.load();
        assert_eq!(reported(&settings.rules), ["deny Bash"], "{text}");
        let [problem] = settings.problems.as_slice() else { panic!("{:?}", settings.problems) };
        assert_eq!((problem.file.as_ref(), problem.severity), (Some(&broken), ProblemSeverity::Error));
        assert_eq!(problem.place.map(|place| (place.line, place.column)), place, "{text}");
        assert!(settings.has_lost_protection());
    }
}

#[test]
fn a_slip_in_the_users_settings_deletes_no_session() {
    let days = |text: &str| {
        let fixture = Fixture::new();
        fixture.write("home/.kode/settings.json", text);
        fixture.load().cleanup_days()
    };
    assert_eq!(days("{}"), Preferences::default().cleanup_days);
    assert_eq!(days(r#"{ "cleanupPeriodDays": 7 }"#), Some(7));
    for slip in [
        r#"{ "cleanupPeriodDays": 0 }"#,
        r#"{ "cleanupPeriodDays": "never" }"#,
        r#"{ "cleanupPeriodDays": 365.5 }"#,
        r#"{ "cleanupPeriodDays": 0"#,
    ] {
        assert_eq!(days(slip), None, "{slip}");
    }
}

#[test]
fn what_is_no_text_file_is_reported_and_never_waited_for() {
    let fixture = Fixture::new();
    let folder = fixture.path("work/.kode/settings.json");
    fs::create_dir_all(folder.as_path()).unwrap();
    fs::create_dir_all(fixture.path("work/.claude").as_path()).unwrap();
    fs::write(fixture.path("work/.claude/settings.json").as_path(), b"{\xff}").unwrap();
    fs::write(fixture.path("work/.blade").as_path(), "no folder").unwrap();
    fixture.write("home/.kode/settings.json", &format!("{{}}{}", " ".repeat(1 << 20)));
    fixture.write("home/.claude/settings.json", "");
    let settings = fixture.load();
    assert_eq!(settings.problems.len(), 3, "{:?}", settings.problems);
    assert!(settings.problems.iter().all(|problem| problem.severity == ProblemSeverity::Error));
}

#[test]
fn a_bad_rule_is_reported_at_its_very_place_and_the_others_stay() {
    let fixture = Fixture::new();
    fixture.write(
        "home/.kode/settings.json",
        "\u{feff}{ \"permissions\": {\r\n  \"deny\": [\"Bash\", \"é😀\", 7, \"Bash(\"],\r\n  \"allow\": [\"*\", \"LS\", \"Write(x)\"],\r\n  \"ask\": {}\r\n} }",
    );
    let settings = fixture.load();
    assert_eq!(reported(&settings.rules), ["deny Bash", "allow LS", "allow Edit(x)"]);
    let reported: Vec<_> = settings
        .problems
        .iter()
        .map(|problem| {
            let place = problem.place.unwrap();
            (problem.severity, place.line, place.column, place.end_line, place.end_column)
        })
        .collect();
    use ProblemSeverity::{Error, Warning};
    let expected = [
        (Error, 1, 19, 1, 24),
        (Error, 1, 26, 1, 27),
        (Error, 1, 29, 1, 36),
        (Warning, 2, 12, 2, 15),
        (Warning, 2, 23, 2, 33),
        (Error, 3, 9, 3, 11),
    ];
    assert_eq!(reported, expected, "{:#?}", settings.problems);
    assert_eq!(settings.rules[0].source.place.map(|place| (place.line, place.column)), Some((1, 11)));
}

#[test]
fn nothing_that_denies_hides_behind_a_key_that_stands_there_twice() {
    let fixture = Fixture::new();
    fixture.write(
        "home/.kode/settings.json",
        r#"{"permissions":{"deny":["Bash"],"deny":["Read"]},"permissions":{"deny":["Write"]}}"#,
    );
    let settings = fixture.load();
    assert_eq!(reported(&settings.rules), ["deny Bash", "deny Read", "deny Write"]);
    assert_eq!(settings.problems.len(), 2);
}

const LOOSENING: &str = r#"{
  "permissions": { "allow": ["Bash(ls)"], "deny": ["Read(x)"], "ask": ["Write"], "defaultMode": "acceptEdits",
    "additionalDirectories": ["../other"] },
  "sandbox": { "enabled": false, "autoAllowBashIfSandboxed": true, "allowUnsandboxedCommands": true,
    "excludedCommands": ["a"], "network": { "allowedDomains": ["b"], "allowLocalBinding": true },
    "filesystem": { "allowWrite": ["c"], "denyWrite": ["d"] } },
  "sensitiveFiles": [{ "pattern": ".env", "level": "none" }, { "pattern": "x", "level": "high" }],
  "tools": { "maxConcurrency": 2 },
  "webSearch": { "endpoint": "http://x" }
}"#;

#[test]
fn what_a_workspace_loosens_waits_for_the_user_and_what_it_narrows_does_not() {
    for name in ["settings.json", "settings.local.json"] {
        let fixture = Fixture::new();
        let file = fixture.write(&format!("work/.kode/{name}"), LOOSENING);
        let settings = fixture.load();
        assert_eq!(reported(&settings.rules), ["deny Read(x)", "ask Write"]);
        assert_eq!(reported(&settings.untrusted), ["allow Bash(ls)"]);
        let expected = SettingsValues {
            sandbox: SandboxSettings {
                deny_write: settings.values.sandbox.deny_write.clone(),
                ..SandboxSettings::default()
            },
            sensitive_files: settings.values.sensitive_files.clone(),
            ..SettingsValues::default()
        };
        assert_eq!(settings.values, expected);
        assert_eq!((expected.sandbox.deny_write.len(), expected.sensitive_files.len()), (1, 1));
        assert_eq!(settings.withheld.len(), 13, "{:#?}", settings.withheld);

        assert_eq!(fixture.approve(&settings, &file).unwrap(), 13);
        assert!(fixture.sources.is_stale(&settings));
        let settings = fixture.load();
        assert_eq!((settings.withheld.as_slice(), settings.untrusted.as_slice()), (&[][..], &[][..]));
        assert_eq!(reported(&settings.rules), ["allow Bash(ls)", "deny Read(x)", "ask Write"]);
        assert_eq!(settings.values.sandbox.enabled, Some(false));
        assert_eq!(settings.values.additional_directories[0].value, fixture.path("other"));
    }
}

#[test]
fn what_costs_more_in_a_workspace_waits_and_what_costs_less_does_not() {
    let fixture = Fixture::new();
    let text = r#"{ "effortLevel": "high", "autoCompactThreshold": 0.3, "incompleteIntent": "fallback",
        "todoReminderRounds": 4 }"#;
    let file = fixture.write("work/.kode/settings.json", text);
    let settings = fixture.load();
    let expected = Preferences { todo_reminder_rounds: 4, ..Preferences::default() };
    assert_eq!(settings.values.stated.preferences(), expected);
    assert_eq!(fixture.approve(&settings, &file).unwrap(), 3);
    let expected = Preferences {
        effort: Some(Effort::High),
        compact_threshold: 0.3,
        incomplete_intent: IncompleteIntent::Fallback,
        ..expected
    };
    assert_eq!(fixture.load().values.stated.preferences(), expected);

    fixture.write("work/.kode/settings.json", r#"{ "incompleteIntent": "stop" }"#);
    let settings = fixture.load();
    let preferences = settings.values.stated.preferences();
    assert_eq!((preferences.incomplete_intent, settings.withheld.len()), (IncompleteIntent::Stop, 0));
}

#[test]
fn a_threshold_that_would_always_be_reached_is_reported() {
    for (share, counts) in [("0.19", false), ("0.2", true), ("1", true), ("1.1", false), ("\"0.5\"", false)] {
        let fixture = Fixture::new();
        fixture.write("home/.kode/settings.json", &format!("{{ \"autoCompactThreshold\": {share} }}"));
        let settings = fixture.load();
        assert_eq!(settings.values.stated.compact_threshold.is_some(), counts, "{share}");
        let reported = settings.problems.iter().any(|problem| problem.message.contains("from 0.2 to 1"));
        assert_eq!(reported, !counts, "{share}: {:?}", settings.problems);
    }
}

#[test]
fn an_approval_is_for_that_text_in_that_file_of_that_workspace() {
    let fixture = Fixture::new();
    let allow = |rule: &str| json!({ "permissions": { "allow": [rule] } }).to_string();
    let file = fixture.write("work/.kode/settings.json", &allow("Bash(ls)"));
    fixture.approve(&fixture.load(), &file).unwrap();
    assert_eq!(reported(&fixture.load().rules), ["allow Bash(ls)"]);

    fixture.write("work/.kode/settings.json", &allow("Bash(ls -l)"));
    assert_eq!(reported(&fixture.load().untrusted), ["allow Bash(ls -l)"], "another text");
    fixture.write("work/.kode/settings.json", &allow("Bash(ls)"));
    fixture.write("work/.claude/settings.json", &allow("Bash(ls)"));
    let settings = fixture.load();
    assert_eq!((settings.rules.len(), settings.untrusted.len()), (1, 1), "another file");

    let mut elsewhere = fixture.sources.clone();
    elsewhere.roots = vec![fixture.path("elsewhere")];
    fixture.write("elsewhere/.kode/settings.json", &allow("Bash(ls)"));
    assert_eq!(reported(&elsewhere.load().untrusted), ["allow Bash(ls)"], "another workspace");

    std::os::unix::fs::symlink("work", fixture.path("link").as_path()).unwrap();
    elsewhere.roots = vec![fixture.path("link")];
    assert_eq!(elsewhere.load().rules.len(), 1, "the same workspace by another name");
}

#[test]
fn what_was_not_shown_is_not_approved() {
    let fixture = Fixture::new();
    let allow = |rules: &[&str]| json!({ "permissions": { "allow": rules } }).to_string();
    let file = fixture.write("work/.kode/settings.json", &allow(&["Bash(ls)", "Bash(pwd)"]));
    let shown: Vec<_> =
        fixture.load().withheld.iter().map(|withheld| withheld.trust_request.digest()).collect();
    assert!(fixture.load().withheld.iter().all(|withheld| withheld.trust_request.file == file));
    fixture.write("work/.kode/settings.json", &allow(&["Bash(ls)", "Bash(rm:*)"]));
    assert_eq!(fixture.sources.trust().approve_digests(&fixture.load(), &shown).unwrap(), 1);
    assert_eq!(reported(&fixture.load().rules), ["allow Bash(ls)"]);
    assert_eq!(reported(&fixture.load().untrusted), ["allow Bash(rm:*)"]);
}

#[test]
fn approvals_that_cannot_be_read_approve_nothing_and_are_left_alone() {
    let fixture = Fixture::new();
    let file = fixture.write("work/.kode/settings.json", r#"{"permissions":{"allow":["Bash"]}}"#);
    fixture.approve(&fixture.load(), &file).unwrap();
    use std::os::unix::fs::PermissionsExt;
    let mode = fixture.sources.trust().file().as_path().metadata().unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    fixture.write("state/approvals.json", "{");
    let settings = fixture.load();
    assert_eq!((settings.untrusted.len(), settings.problems.len()), (1, 1));
    assert!(matches!(fixture.approve(&settings, &file), Err(SettingsError::Broken { .. })));
    assert_eq!(fixture.text("state/approvals.json"), "{");
}

#[test]
fn no_file_in_the_workspace_switches_permissions_off() {
    let fixture = Fixture::new();
    for name in ["settings.json", "settings.local.json"] {
        fixture
            .write(&format!("work/.kode/{name}"), r#"{"permissions":{"defaultMode":"bypassPermissions"}}"#);
    }
    let settings = fixture.load();
    assert_eq!((settings.values.default_mode, settings.withheld.as_slice()), (None, &[][..]));
    assert_eq!(settings.problems.len(), 2);
    fixture.write("home/.kode/settings.json", r#"{"permissions":{"defaultMode":"bypassPermissions"}}"#);
    assert_eq!(fixture.load().values.default_mode.unwrap().value, Mode::BypassPermissions);
}

#[test]
fn settings_are_stale_once_a_file_comes_changes_or_goes() {
    let fixture = Fixture::new();
    let mut settings = fixture.load();
    assert!(!fixture.sources.is_stale(&settings));
    for (what, text) in [("comes", Some("{}")), ("changes", Some("{\"permissions\":{}}")), ("goes", None)] {
        match text {
            Some(text) => drop(fixture.write("work/.claude/settings.local.json", text)),
            None => fs::remove_file(fixture.path("work/.claude/settings.local.json").as_path()).unwrap(),
        }
        assert!(fixture.sources.is_stale(&settings), "{what}");
        settings = fixture.load();
        assert!(!fixture.sources.is_stale(&settings), "{what}");
    }
}

#[test]
fn the_environment_names_other_folders_of_the_user() {
    let fixture = Fixture::new();
    let elsewhere = fixture.path("elsewhere");
    let environment = |name: &str| match name {
        "KODE_CONFIG_DIR" => Some(elsewhere.as_path().as_os_str().to_owned()),
        "CLAUDE_CONFIG_DIR" => Some("relative".into()),
        _ => None,
    };
    let home = fixture.path("home");
    let sources = SettingsSources::new(vec![], Some(home.clone()), fixture.path("state"), &environment);
    let expected = [home.join(".kode-ls"), elsewhere.clone(), home.join(".claude"), home.join(".blade")];
    assert_eq!(sources.user_folders, expected);
    assert_eq!(sources.file(SettingsScope::User).unwrap(), elsewhere.join("settings.json"));
    assert!(matches!(sources.file(SettingsScope::Local), Err(SettingsError::NoPlace("local"))));
}

#[test]
fn the_xdg_folder_wins_over_that_beneath_home_where_it_is_there_and_the_hidden_one_is_reported() {
    let mut fixture = Fixture::new();
    let (home, xdg) = (fixture.path("home"), fixture.path("xdg"));
    let first = |variables: &[(&str, &AbsPath)]| {
        let environment = |name: &str| {
            let named = variables.iter().find(|(variable, _)| *variable == name);
            named.map(|(_, place)| place.as_path().as_os_str().to_owned())
        };
        SettingsSources::new(vec![], Some(home.clone()), fixture.path("state"), &environment)
    };
    assert_eq!(first(&[]).user_folders[0], home.join(".kode-ls"), "neither is there");
    fs::create_dir_all(home.join(".config/kode-ls").as_path()).unwrap();
    assert_eq!(first(&[]).user_folders[0], home.join(".config/kode-ls"));
    assert_eq!(first(&[("XDG_CONFIG_HOME", &xdg)]).user_folders[0], home.join(".kode-ls"), "it is not there");
    fs::create_dir_all(xdg.join("kode-ls").as_path()).unwrap();
    let sources = first(&[("XDG_CONFIG_HOME", &xdg)]);
    assert_eq!(sources.user_folders[0], xdg.join("kode-ls"));
    assert_eq!(sources.file(SettingsScope::User).unwrap(), xdg.join("kode-ls/settings.json"));
    let own = fixture.path("own");
    let both = [("XDG_CONFIG_HOME", &xdg), ("KODE_LS_CONFIG_DIR", &own)];
    assert_eq!(first(&both).user_folders[0], own, "the variable of kode-ls itself wins");
    fixture.write("home/.kode-ls/settings.json", "{}");
    fixture.sources = sources;
    let problems = fixture.load().problems;
    assert!(problems.iter().any(|problem| problem.message.contains("is not read, because")), "{problems:?}");
}

#[test]
fn in_the_home_folder_the_users_files_are_the_users() {
    let mut fixture = Fixture::new();
    fixture.sources.roots = vec![fixture.path("home")];
    fixture.write("home/.kode/settings.json", r#"{"permissions":{"allow":["Bash(ls)"]}}"#);
    let settings = fixture.load();
    assert_eq!(
        settings.rules.iter().map(|rule| rule.source.layer).collect::<Vec<_>>(),
        [SettingsLayer::User]
    );
    assert_eq!(settings.untrusted, []);
}

#[test]
fn variables_are_put_into_what_the_user_says_and_not_into_what_a_workspace_says_at_once() {
    let mut fixture = Fixture::new();
    fixture.sources.variable = |name| (name == "SECRET").then(|| "s3".to_owned());
    let user = r#"{ "language": "${LANGUAGE_NOT_SET:-German}", "outputStyle": "${NOT_SET_AT_ALL}",
        "permissions": { "deny": ["Bash(echo ${SECRET})"] } }"#;
    fixture.write("home/.kode/settings.json", user);
    let settings = fixture.load();
    assert_eq!(settings.values.stated.language.as_deref(), Some("German"));
    assert_eq!(settings.values.stated.output_style.as_deref(), Some("${NOT_SET_AT_ALL}"));
    assert_eq!(reported(&settings.rules), ["deny Bash(echo ${SECRET})"], "a rule means what it says");
    assert!(settings.problems.iter().any(|problem| problem.message.contains("`NOT_SET_AT_ALL` is not set")));
    fixture.write("work/.kode/settings.json", r#"{ "language": "${SECRET}" }"#);
    assert_eq!(fixture.load().values.stated.language.as_deref(), Some("${SECRET}"), "it reaches the model");
}

#[test]
fn a_config_file_is_behind_the_settings_of_its_layer_and_speaks_blades_names() {
    let fixture = Fixture::new();
    fixture.write(
        "home/.blade/config.json",
        r#"{ "permissionMode": "autoEdit", "maxTurns": 7, "language": "Welsh" }"#,
    );
    fixture.write("home/.kode-ls/config.json", r#"{ "language": "German" }"#);
    fixture.write("home/.claude/settings.json", r#"{ "language": "French" }"#);
    fixture.write("home/.claude/config.json", r#"{ "maxTurns": 1 }"#);
    let settings = fixture.load();
    let stated = &settings.values.stated;
    assert_eq!((stated.language.as_deref(), stated.max_turns), (Some("French"), Some(7)));
    assert_eq!(settings.values.default_mode.as_ref().map(|mode| mode.value), Some(Mode::AcceptEdits));
    let all = effective(&settings);
    let listed = all.iter().find(|one| one.path() == "permissions.defaultMode").unwrap();
    assert_eq!(listed.value, Some("acceptEdits".into()), "the other name of the key counts");
    assert!(listed.source.as_ref().unwrap().to_string().contains(".blade"));
}

#[test]
fn slips_are_reported_what_means_nothing_here_is_said_and_what_is_unknown_is_left_alone() {
    let fixture = Fixture::new();
    fixture.write(
        "home/.kode/settings.json",
        r#"{ "permissions": { "alow": [] }, "theme": "dark", "agent": "x", "somethingOfMine": {}, "defaultShell": "powershell" }"#,
    );
    let reported: Vec<_> =
        fixture.load().problems.into_iter().map(|problem| (problem.severity, problem.message)).collect();
    assert_eq!(reported.len(), 3, "{reported:?}");
    let said =
        |severity, text: &str| reported.iter().any(|(of, message)| *of == severity && message.contains(text));
    assert!(said(ProblemSeverity::Warning, "did you mean `permissions.allow`"), "{reported:?}");
    assert!(said(ProblemSeverity::Information, "`agent` does nothing"), "{reported:?}");
    assert!(said(ProblemSeverity::Warning, "`defaultShell` is ignored"), "{reported:?}");
}

#[test]
fn blades_order_of_rules_is_the_users_to_choose_and_reported_where_it_differs() {
    use kode_permission::rules::Order;
    let fixture = Fixture::new();
    fixture.write(
        "home/.blade/settings.json",
        r#"{ "permissions": { "allow": ["Bash(git:*)"], "ask": ["Bash(git push:*)", "WebFetch"] } }"#,
    );
    let settings = fixture.load();
    let [reported] = settings.problems.as_slice() else { panic!("{:?}", settings.problems) };
    assert!(
        reported.severity == ProblemSeverity::Information && reported.message.contains("In Blade"),
        "{reported:?}"
    );
    let blade = r#"{ "permissions": { "order": "blade" } }"#;
    fixture.write("work/.kode/settings.json", blade);
    assert_eq!(fixture.load().values.order, None, "it loosens");
    assert_eq!(fixture.load().withheld[0].trust_request.key, "permissions.order");
    fixture.write("home/.kode/settings.json", blade);
    assert_eq!(fixture.load().values.order, Some(Order::AllowFirst));
}

#[test]
fn the_reader_takes_what_fits_a_key_of_the_table_and_reports_what_does_not() {
    use crate::settings::keys::{KEYS, KeyShape};
    for key in KEYS.iter().filter(|key| key.is_in_use()) {
        let (good, bad) = match key.shape {
            KeyShape::Switch => (json!(true), json!("x")),
            KeyShape::Whole { .. } => (json!(3), json!("x")),
            KeyShape::Number { .. } => (json!(0.5), json!("x")),
            KeyShape::Choice(names) => (json!(names[0]), json!(7)),
            // Lists have tests of their own, and what else a text may not be is for its caller.
            _ => continue,
        };
        for (value, is_taken) in [(good, true), (bad, false)] {
            let fixture = Fixture::new();
            let nested = key.path.split('.').rev().fold(value.clone(), |inner, name| json!({ name: inner }));
            fixture.write("home/.kode/settings.json", &nested.to_string());
            let settings = fixture.load();
            let standing = settings.statements[0].standing;
            let expected = if is_taken { StatementStanding::InForce } else { StatementStanding::Ignored };
            assert_eq!(standing, expected, "{} = {value}: {:?}", key.path, settings.problems);
        }
    }
}
