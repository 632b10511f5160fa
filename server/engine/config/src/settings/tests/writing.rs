//! Rules written into files, and what stays around them.

use std::os::unix::fs::symlink;

use super::*;

fn rule(text: &str) -> Rule {
    text.parse().unwrap()
}

#[test]
fn a_rule_is_written_where_its_scope_is_and_is_in_force_at_once() {
    let fixture = Fixture::new();
    for (scope, file) in [
        (SettingsScope::Local, "work/.kode/settings.local.json"),
        (SettingsScope::Project, "work/.kode/settings.json"),
        (SettingsScope::User, "home/.kode/settings.json"),
    ] {
        let change = fixture.sources.add_rule(scope, Behavior::Allow, &rule("Bash(ls *)")).unwrap();
        assert_eq!(change, WriteOutcome { file: fixture.path(file), is_changed: true });
        let expected = "{\n  \"permissions\": {\n    \"allow\": [\n      \"Bash(ls *)\"\n    ]\n  }\n}\n";
        assert_eq!(fixture.text(file), expected);
        let again = fixture.sources.add_rule(scope, Behavior::Allow, &rule("Bash(ls *)")).unwrap();
        assert!(!again.is_changed);
    }
    let settings = fixture.load();
    assert_eq!(reported(&settings.rules), ["allow Bash(ls *)"; 3]);
    assert_eq!((settings.untrusted, settings.problems), (vec![], vec![]));
}

#[test]
fn our_own_folder_is_written_to_where_it_has_the_file() {
    let fixture = Fixture::new();
    let file = fixture.write("work/.kode-ls/settings.json", "{}");
    let change = fixture.sources.add_rule(SettingsScope::Project, Behavior::Deny, &rule("Read(x)")).unwrap();
    assert_eq!(change.file, file);
    assert!(
        fixture.sources.file(SettingsScope::Local).unwrap().as_path().ends_with(".kode/settings.local.json")
    );
}

#[test]
fn everything_around_a_rule_stays_as_it_is() {
    let fixture = Fixture::new();
    let name = "work/.kode/settings.json";
    let before = "\u{feff}// Mine.\r\n{\r\n\t\"zebra\": [1,  2], /* odd */\r\n\t\"permissions\": {\r\n\t\t\"deny\": [\r\n\t\t\t// Never.\r\n\t\t\t\"Read(.env)\", // secret\r\n\t\t],\r\n\t\t\"mine\": null\r\n\t},\r\n\t\"apple\": \"é\"\r\n}\r\n";
    fixture.write(name, before);
    fixture.sources.add_rule(SettingsScope::Project, Behavior::Deny, &rule("Read(\"q\")")).unwrap();
    let after = "\u{feff}// Mine.\r\n{\r\n\t\"zebra\": [1,  2], /* odd */\r\n\t\"permissions\": {\r\n\t\t\"deny\": [\r\n\t\t\t// Never.\r\n\t\t\t\"Read(.env)\", // secret\r\n\t\t\t\"Read(\\\"q\\\")\",\r\n\t\t],\r\n\t\t\"mine\": null\r\n\t},\r\n\t\"apple\": \"é\"\r\n}\r\n";
    assert_eq!(fixture.text(name), after);
    assert_eq!(reported(&fixture.load().rules), ["deny Read(.env)", "deny Read(\"q\")"]);
    let file = fixture.path(name);
    fixture.sources.remove_rule(&file, Behavior::Deny, &rule("Read(\"q\")")).unwrap();
    assert_eq!(fixture.text(name), before);
}

#[test]
fn the_mode_of_a_file_stays() {
    use std::os::unix::fs::PermissionsExt;
    let fixture = Fixture::new();
    let file = fixture.write("home/.kode/settings.json", "{}");
    fs::set_permissions(file.as_path(), fs::Permissions::from_mode(0o640)).unwrap();
    fixture.sources.add_rule(SettingsScope::User, Behavior::Ask, &rule("Bash")).unwrap();
    assert_eq!(file.as_path().metadata().unwrap().permissions().mode() & 0o777, 0o640);
}

#[test]
fn rules_are_removed_however_they_are_spelled_and_approved_again_when_they_come_back() {
    let fixture = Fixture::new();
    let text = r#"{"permissions":{"allow":["fs_read(//x)","Read(//x)","LS"]}}"#;
    let file = fixture.write("work/.kode/settings.json", text);
    fixture.approve(&fixture.load(), &file).unwrap();
    assert_eq!(fixture.load().rules.len(), 3);
    let change = fixture.sources.remove_rule(&file, Behavior::Allow, &rule("Read(//x)")).unwrap();
    assert!(change.is_changed);
    assert_eq!(reported(&fixture.load().rules), ["allow LS"]);
    assert!(!fixture.sources.remove_rule(&file, Behavior::Allow, &rule("Read(//x)")).unwrap().is_changed);
    fixture.write("work/.kode/settings.json", text);
    assert_eq!(reported(&fixture.load().untrusted), ["allow Read(//x)"; 2]);
}

#[test]
fn adding_a_rule_that_is_there_unapproved_approves_it_as_it_is() {
    let fixture = Fixture::new();
    fixture.write("work/.kode/settings.json", r#"{"permissions":{"allow":["fs_read(//x)"]}}"#);
    assert_eq!(fixture.load().rules, []);
    let change =
        fixture.sources.add_rule(SettingsScope::Project, Behavior::Allow, &rule("Read(//x)")).unwrap();
    assert!(!change.is_changed);
    assert_eq!(reported(&fixture.load().rules), ["allow Read(//x)"]);
}

#[test]
fn approvals_follow_a_workspace_folder_that_lies_in_another() {
    let mut fixture = Fixture::new();
    fixture.sources.roots = vec![fixture.path("work"), fixture.path("work/inner")];
    let file = fixture.write("work/inner/.kode/settings.json", r#"{"permissions":{"allow":["LS"]}}"#);
    fixture.approve(&fixture.load(), &file).unwrap();
    assert_eq!(reported(&fixture.load().rules), ["allow LS"]);
    fixture.sources.remove_rule(&file, Behavior::Allow, &rule("LS")).unwrap();
    fixture.write("work/inner/.kode/settings.json", r#"{"permissions":{"allow":["LS"]}}"#);
    assert_eq!(reported(&fixture.load().untrusted), ["allow LS"]);
}

#[test]
fn what_is_broken_or_not_ours_is_never_written() {
    let fixture = Fixture::new();
    for text in ["{ \"permissions\": ", "[]", "{\"permissions\":[]}", "{\"permissions\":{\"deny\":\"x\"}}"] {
        fixture.write("work/.kode/settings.json", text);
        let failed = fixture.sources.add_rule(SettingsScope::Project, Behavior::Deny, &rule("Bash"));
        assert!(matches!(failed, Err(SettingsError::Broken { .. })), "{text} {failed:?}");
        assert_eq!(fixture.text("work/.kode/settings.json"), text);
    }
    for name in ["work/.claude/settings.json", "elsewhere/.kode/settings.json", "home/.blade/settings.json"] {
        let file = fixture.write(name, r#"{"permissions":{"deny":["Bash"]}}"#);
        let failed = fixture.sources.remove_rule(&file, Behavior::Deny, &rule("Bash"));
        assert!(matches!(failed, Err(SettingsError::NotOurs { .. })), "{name} {failed:?}");
    }
    let failed = fixture.sources.add_rule(SettingsScope::User, Behavior::Allow, &rule("Write*"));
    assert!(matches!(failed, Err(SettingsError::Rule { .. })), "{failed:?}");
}

#[test]
fn no_link_leads_a_write_out_of_the_workspace() {
    let outside = r#"{"permissions":{}}"#;
    let links: [(&str, &str); 4] = [
        ("work/.kode", "../elsewhere"),
        ("work/.kode", "../nowhere"),
        ("work/.kode/settings.json", "../../elsewhere/settings.json"),
        ("work/.kode/settings.json", "../../elsewhere/missing.json"),
    ];
    for (link, target) in links {
        let fixture = Fixture::new();
        fixture.write("elsewhere/settings.json", outside);
        let link = fixture.path(link);
        fs::create_dir_all(link.parent().unwrap().as_path()).unwrap();
        symlink(target, link.as_path()).unwrap();
        let failed = fixture.sources.add_rule(SettingsScope::Project, Behavior::Deny, &rule("Bash"));
        assert!(
            matches!(failed, Err(SettingsError::Outside { .. } | SettingsError::Io { .. })),
            "{target} {failed:?}"
        );
        assert_eq!(fixture.text("elsewhere/settings.json"), outside);
        assert_eq!(fs::read_dir(fixture.path("elsewhere").as_path()).unwrap().count(), 1);
    }
}

#[test]
fn a_link_inside_is_followed_and_stays_a_link() {
    let fixture = Fixture::new();
    fixture.write("work/shared.json", "{}");
    fs::create_dir(fixture.path("work/.kode").as_path()).unwrap();
    symlink("../shared.json", fixture.path("work/.kode/settings.json").as_path()).unwrap();
    fixture.write("home/dotfiles/kode.json", "{}");
    fs::create_dir(fixture.path("home/.kode").as_path()).unwrap();
    symlink("../dotfiles/kode.json", fixture.path("home/.kode/settings.json").as_path()).unwrap();
    for (scope, link) in [
        (SettingsScope::Project, "work/.kode/settings.json"),
        (SettingsScope::User, "home/.kode/settings.json"),
    ] {
        fixture.sources.add_rule(scope, Behavior::Deny, &rule("Bash")).unwrap();
        assert!(fixture.path(link).as_path().is_symlink());
        assert!(fixture.text(link).contains("Bash"));
    }
    assert_eq!(reported(&fixture.load().rules), ["deny Bash"; 2]);
}

#[test]
fn writers_at_the_same_time_lose_nothing() {
    const RULES: usize = 50;
    let fixture = Fixture::new();
    std::thread::scope(|scope| {
        for writer in 0..2 {
            // Each as another process would: with approvals of its own.
            let mut sources = fixture.sources.clone();
            sources.trust = Arc::new(Trust::new(&sources.state, EditorSettings::default()));
            scope.spawn(move || {
                for number in 0..RULES {
                    let rule = rule(&format!("Bash(w{writer} n{number})"));
                    sources.add_rule(SettingsScope::Local, Behavior::Allow, &rule).unwrap();
                }
            });
        }
    });
    let settings = fixture.load();
    assert_eq!(settings.rules.len(), 2 * RULES, "{:?}", settings.untrusted);
    let left: Vec<_> = fs::read_dir(fixture.path("work/.kode").as_path()).unwrap().collect();
    assert_eq!(left.len(), 1);
}
