//! Plugins and marketplaces on the disk of a temporary folder, those that mean ill among them.

use std::fs;
use std::os::unix::fs::symlink;

use serde_json::json;

use super::installed::{InstalledPlugins, PluginPaths};
use super::marketplace::{Marketplace, PluginSource};
use super::*;
use kode_base::paths::real_path;

struct Desk(tempfile::TempDir);

impl Desk {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn path(&self, name: &str) -> AbsPath {
        AbsPath::new(real_path(self.0.path()).unwrap()).unwrap().join(name)
    }

    fn write(&self, name: &str, text: &str) -> &Self {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
        self
    }

    fn open(&self) -> Plugin {
        Plugin::open(&self.path("plugin"), &self.path("data"), Some("house"))
    }
}

/// The reports, with the number of the line.
fn reported(problems: &[SettingsProblem]) -> Vec<String> {
    let line = |problem: &SettingsProblem| problem.place.map_or(0, |place| place.line + 1);
    problems.iter().map(|problem| format!("{}: {}", line(problem), problem.message)).collect()
}

#[test]
fn a_manifest_adds_to_the_usual_places_and_what_leads_out_does_not_count() {
    let desk = Desk::new();
    desk.write("secret.md", "secret").write("plugin/more/extra.md", "x").write("plugin/agent.md", "x");
    symlink(desk.path("secret.md"), desk.path("plugin/link.md")).unwrap();
    let manifest = "{\n\"name\": \"house\",\n\"commands\": [\"./more/extra.md\",\n\"./../secret.md\",\n\"more/extra.md\",\n\
         \"/etc/passwd\",\n\"./link.md\",\n\"./none.md\"],\n\"agents\": \"./agent.md\",\n\"dependencies\": [],\n\"theirs\": 1 }";
    desk.write("plugin/.claude-plugin/plugin.json", manifest);
    let plugin = desk.open();
    let added = |part: ExtensionPart| {
        let of_part = plugin.parts.iter().filter(|(of, _)| *of == part).map(|(_, path)| path.file_name());
        of_part.collect::<Vec<_>>()
    };
    assert_eq!(added(ExtensionPart::Commands), ["commands", "extra.md"]);
    assert_eq!(added(ExtensionPart::Agents), ["agents", "agent.md"]);
    let reported = reported(&plugin.problems).join("\n");
    for expected in [
        "4: `./../secret.md` is ignored: it leads out of the plugin",
        "5: `more/extra.md` is ignored: a path in a plugin begins with `./`",
        "6: `/etc/passwd` is ignored",
        "7: `./link.md` is ignored: it is a link that leads out",
        "8: There is no folder or `.md` file `./none.md`",
        "10: `dependencies` is not in use",
    ] {
        assert!(reported.contains(expected), "{expected} in {reported}");
    }
    assert!(!reported.contains("theirs"), "keys of others are left alone: {reported}");
    assert_eq!(plugin.fault(), None);
}

#[test]
fn hooks_and_servers_are_read_from_files_and_from_the_manifest_and_carry_the_name_of_the_plugin() {
    let desk = Desk::new();
    let group = json!({ "hooks": [{ "type": "command", "command": "true" }] });
    desk.write(
        "plugin/hooks/hooks.json",
        &json!({ "description": "x", "hooks": { "Stop": [group] } }).to_string(),
    );
    desk.write("plugin/.mcp.json", &json!({ "one": { "command": "a" } }).to_string());
    desk.write("plugin/two.json", &json!({ "mcpServers": { "two": { "command": "b" } } }).to_string());
    let manifest = json!({
        "name": "called otherwise",
        "hooks": { "SessionStart": [group], "Stop": "nonsense" },
        "mcpServers": ["./two.json"],
    });
    desk.write("plugin/.kode-plugin/plugin.json", &manifest.to_string());
    let plugin = desk.open();
    let named = |entries: &[Declaration]| entries.iter().map(|entry| entry.name.clone()).collect::<Vec<_>>();
    assert_eq!(named(&plugin.hooks), ["Stop", "SessionStart"]);
    assert_eq!(named(&plugin.servers), ["plugin:house:one", "plugin:house:two"]);
    assert!(
        reported(&plugin.problems).iter().any(|reported| reported.contains("`Stop` has to be a list")),
        "{plugin:?}"
    );
    assert!(plugin.fault().unwrap().contains("`called otherwise` is no name"));
    assert_eq!(plugin.folders.variable("CLAUDE_PLUGIN_ROOT"), Some(desk.path("plugin").to_string()));
    assert_eq!(plugin.folders.variable("KODE_PLUGIN_DATA"), Some(desk.path("data").to_string()));
    assert_eq!(plugin.folders.variable("HOME"), None);
}

#[test]
fn what_stands_for_all_files_changes_with_any_of_them() {
    let desk = Desk::new();
    desk.write("plugin/a", "one").write("plugin/b/c", "two");
    let digest = || FolderTree::of(&desk.path("plugin")).map(|tree| tree.digest);
    let mut seen = vec![digest().unwrap()];
    desk.write("plugin/a", "other");
    seen.push(digest().unwrap());
    desk.write("plugin/d", "");
    seen.push(digest().unwrap());
    fs::rename(desk.path("plugin/d"), desk.path("plugin/e")).unwrap();
    seen.push(digest().unwrap());
    fs::set_permissions(desk.path("plugin/a"), std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    seen.push(digest().unwrap());
    symlink("a", desk.path("plugin/f")).unwrap();
    seen.push(digest().unwrap());
    let count = seen.len();
    seen.sort();
    seen.dedup();
    assert_eq!(seen.len(), count);
    symlink("/etc/passwd", desk.path("plugin/g")).unwrap();
    assert!(digest().unwrap_err().contains("leads out of it"));
}

#[test]
fn a_copy_holds_plain_files_alone_and_no_more_than_there_is_room_for() {
    let desk = Desk::new();
    desk.write("from/.git/config", "x").write("from/a/run", "run");
    fs::set_permissions(desk.path("from/a/run"), std::os::unix::fs::PermissionsExt::from_mode(0o700))
        .unwrap();
    symlink("a/run", desk.path("from/link")).unwrap();
    tree::copy(desk.path("from").as_path(), desk.path("to").as_path()).unwrap();
    let metadata = fs::symlink_metadata(desk.path("to/link")).unwrap();
    assert!(
        metadata.is_file() && std::os::unix::fs::PermissionsExt::mode(&metadata.permissions()) & 0o100 != 0
    );
    assert!(!desk.path("to/.git").as_path().exists());

    // A folder that leads to itself is as many folders as there may be.
    symlink(".", desk.path("from/again")).unwrap();
    let failed = tree::copy(desk.path("from").as_path(), desk.path("round").as_path()).unwrap_err();
    assert!(failed.contains("folders deep"), "{failed}");
    fs::remove_file(desk.path("from/again")).unwrap();
    let large = fs::File::create(desk.path("from/large")).unwrap();
    large.set_len(tree::MAX_BYTES + 1).unwrap();
    let failed = tree::copy(desk.path("from").as_path(), desk.path("large").as_path()).unwrap_err();
    assert!(failed.contains("larger than"), "{failed}");
    fs::remove_file(desk.path("from/large")).unwrap();
    symlink("/etc/passwd", desk.path("from/out")).unwrap();
    let failed = tree::copy(desk.path("from").as_path(), desk.path("out").as_path()).unwrap_err();
    assert!(failed.contains("leads out of it") && !desk.path("out/out").as_path().exists(), "{failed}");
}

#[test]
fn every_form_of_an_address_is_read_and_no_other() {
    let desk = Desk::new();
    let here = desk.path("");
    desk.write("list.json", "{}");
    let git = |address: &str, reference: Option<&str>| PluginSource::Git {
        address: address.to_owned(),
        reference: reference.map(str::to_owned),
        folder: None,
    };
    for (text, expected) in [
        ("./list.json", PluginSource::File(desk.path("list.json"))),
        (".", PluginSource::Directory(here.clone())),
        ("owner/repository", git("https://github.com/owner/repository.git", None)),
        ("owner/repository#v1", git("https://github.com/owner/repository.git", Some("v1"))),
        ("https://h.example/x.git#main", git("https://h.example/x.git", Some("main"))),
        ("git@h.example:x/y.git", git("git@h.example:x/y.git", None)),
        ("file:///srv/x", git("file:///srv/x", None)),
        ("https://h.example/list.json", PluginSource::Web("https://h.example/list.json".to_owned())),
        ("http://127.0.0.1:1/list.json?x", PluginSource::Web("http://127.0.0.1:1/list.json?x".to_owned())),
    ] {
        let read = PluginSource::parse(text, &here).unwrap();
        assert_eq!(read, expected, "{text}");
        assert_eq!(PluginSource::read(&read.to_value()).unwrap(), read, "{text}");
        assert_eq!(PluginSource::parse(&read.shown(), &here).unwrap(), read, "{text}");
    }
    for text in [
        "ext::sh -c true",
        "--upload-pack=x",
        "http://h.example/x",
        "owner/repository#-x",
        "none",
        "a b/c",
        "http://h.example/list.json",
        "https://me@h.example/list.json",
    ] {
        assert!(PluginSource::parse(text, &here).is_err(), "{text}");
    }
    for value in [
        json!({ "source": "github" }),
        json!({ "source": "url", "url": "ext::sh" }),
        json!({ "source": "directory", "path": "relative" }),
        json!({ "source": "npm" }),
        json!({ "source": "npm", "package": "../x" }),
        json!({ "source": "npm", "package": "x", "registry": "http://h.example" }),
        json!(3),
    ] {
        assert!(PluginSource::read(&value).is_err(), "{value}");
    }
}

#[test]
fn one_bad_entry_of_a_marketplace_costs_itself_alone() {
    let desk = Desk::new();
    let plugins = json!([
        { "name": "good", "source": "one", "description": "x" },
        { "name": "../bad", "source": "./two" },
        { "name": "good", "source": "./three" },
        { "name": "far", "source": { "source": "github", "repo": "o/r", "ref": "v1", "sha": "abc" } },
        { "name": "packed", "source": { "source": "npm", "package": "@acme/x", "version": "^1" } },
        { "name": "list", "source": { "source": "url", "url": "https://h.example/list.json" } },
        7,
    ]);
    let list = json!({ "name": "street", "metadata": { "pluginRoot": "./plugins" }, "plugins": plugins });
    desk.write(".claude-plugin/marketplace.json", &list.to_string());
    let mut problems = Vec::new();
    let list = Marketplace::read(&desk.path(""), &mut problems).unwrap();
    let names: Vec<_> = list.plugins.iter().map(|offer| offer.name.as_str()).collect();
    assert_eq!(
        (names.as_slice(), problems.len()),
        (["good", "far", "packed", "list"].as_slice(), 3),
        "{problems:?}"
    );
    assert_eq!(list.plugins[0].source, Ok(PluginSource::Inside("./plugins/one".to_owned())));
    assert_eq!(list.plugins[1].source.as_ref().unwrap().shown(), "o/r#abc", "a commit before its branch");
    let packed = list.plugins[2].source.clone().unwrap();
    assert_eq!(packed.shown(), "@acme/x@^1");
    assert_eq!(PluginSource::read(&packed.to_value()), Ok(packed.clone()));
    assert!(packed.of_marketplace().is_err(), "a package is no marketplace");
    assert!(list.plugins[3].source.is_err(), "a list is no plugin");
}

#[test]
fn records_of_both_agents_are_read_and_a_folder_that_is_none_of_plugins_is_not_believed() {
    let desk = Desk::new();
    let places = PluginPaths {
        ours: Some(desk.path("ours")),
        theirs: Some(desk.path("theirs")),
        state: Some(desk.path("state")),
    };
    let ours = |folder: &str| json!({ "version": "1", "source": "./x", "digest": "d", "folder": folder });
    let record = json!({ "plugins": { "a@m": ours("store/m/d/a"), "evil@m": ours("../../etc"), "bad": ours("store/x") } });
    desk.write("ours/installed.json", &record.to_string());
    let path = desk.path("theirs/b");
    let theirs = json!({ "version": 2, "plugins": {
        "a@m": [{ "installPath": path, "version": "2" }],
        "b@m": [{ "installPath": "/other", "projectPath": "/elsewhere" }, { "installPath": path, "version": "3" }],
        "c@m": { "installPath": path },
        "d@m": [{ "installPath": path, "projectPath": "/elsewhere" }],
    } });
    desk.write("theirs/installed_plugins.json", &theirs.to_string());
    let installed = InstalledPlugins::load(&places, &[desk.path("work")]);
    let names: Vec<String> = installed.iter().map(|(id, _)| id.to_string()).collect();
    assert_eq!(names, ["a@m", "b@m", "c@m"]);
    let version = |id: &str| installed.find(&PluginId::parse(id).unwrap()).unwrap().version.clone();
    assert_eq!((version("a@m").as_deref(), version("b@m").as_deref()), (Some("1"), Some("3")));
    assert_eq!(installed.problems.len(), 2, "{:?}", installed.problems);
}
