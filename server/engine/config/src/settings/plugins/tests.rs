//! The plugins of settings, on the disk of a temporary folder.

use super::super::tests::Fixture;
use super::*;
use crate::settings::declared::Declaration;

const ID: &str = "house@street";

/// Files with a plugin that another agent has installed.
fn with_plugin() -> Fixture {
    let files = Fixture::new();
    let hooks = r#"{"Stop": [{"hooks": [{"type": "command", "command": "true"}]}]}"#;
    files.write("house/hooks/hooks.json", hooks);
    let root = files.write("house/commands/greet.md", "Hello.").parent().unwrap().parent().unwrap();
    let record = serde_json::json!({ "plugins": { ID: [{ "installPath": root, "version": "1" }] } });
    files.write("home/.claude/plugins/installed_plugins.json", &record.to_string());
    files
}

/// The statement of a settings file: on or off.
fn switch(files: &Fixture, file: &str, is_on: bool) {
    files.write(file, &serde_json::json!({ "enabledPlugins": { ID: is_on } }).to_string());
}

fn state(settings: &Settings) -> (&'static str, usize) {
    (
        settings.declared.plugins[0].state.name(),
        settings.declared.hooks.iter().filter(|hook| hook.is_in_force()).count(),
    )
}

#[test]
fn the_strongest_word_counts_and_one_that_waits_says_nothing_yet() {
    let files = with_plugin();
    assert_eq!(state(&files.load()), ("off", 0), "nobody says anything");
    switch(&files, "home/.kode/settings.json", true);
    let settings = files.load();
    assert_eq!(state(&settings), ("on", 1));
    let hook: &Declaration = &settings.declared.hooks[0];
    assert_eq!(
        (hook.source.layer, &hook.approval),
        (kode_permission::rules::SettingsLayer::Plugin, &Approval::NotNeeded)
    );
    switch(&files, "work/.claude/settings.json", false);
    assert_eq!(state(&files.load()), ("off", 0), "a project switches off at once");
    switch(&files, "work/.claude/settings.local.json", true);
    let settings = files.load();
    assert_eq!((state(&settings), settings.withheld.len()), (("waiting", 0), 1));
    files.approve(&settings, &files.path("work/.claude/settings.local.json")).unwrap();
    let settings = files.load();
    assert_eq!(state(&settings), ("on", 1));
    assert_eq!(settings.declared.hooks[0].approval, Approval::Approved);
    files.write("house/commands/greet.md", "Something else.");
    assert!(files.sources.is_stale(&settings));
    assert_eq!(state(&files.load()), ("waiting", 0), "an approval is for the very files");
}

#[test]
fn what_waits_leaves_the_users_own_word_in_force() {
    let files = with_plugin();
    switch(&files, "home/.kode/settings.json", true);
    switch(&files, "work/.kode/settings.json", true);
    let settings = files.load();
    assert_eq!((state(&settings), settings.withheld.len()), (("on", 1), 1));
}

#[test]
fn what_cannot_be_switched_is_reported_and_asks_for_nothing() {
    let files = with_plugin();
    let said = r#"{"enabledPlugins": {"none@street": true, "house": true, "house@street": "yes"}}"#;
    files.write("work/.claude/settings.json", said);
    let settings = files.load();
    let reported: Vec<&str> = settings.problems.iter().map(|problem| problem.message.as_str()).collect();
    assert_eq!(reported.len(), 3, "{reported:?}");
    assert!(reported[0].contains("`kode-ls plugin install none@street`"), "{reported:?}");
    assert!(reported[1].contains("not of the form `plugin@marketplace`"), "{reported:?}");
    assert!(reported[2].contains("Write true or false"), "{reported:?}");
    assert!(settings.withheld.is_empty());
    assert_eq!(state(&settings), ("off", 0));
    // The same of the user's own is reported where it is set.
    files.write("work/.claude/settings.json", "{}");
    files.write("home/.claude/settings.json", r#"{"enabledPlugins": {"none@street": true}}"#);
    let settings = files.load();
    assert!(settings.problems[0].message.contains("it is not installed"), "{:?}", settings.problems);
}
