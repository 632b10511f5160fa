//! Plugins: from adding a marketplace to all that they bring, and what never counts.
//!
//! Rule: what runs differs from what it leaves behind. A marketplace is a folder, a repository or a server on this machine,
//! and nothing of it is changed but in a copy.

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use kode_e2e::{
    Client, Offer, Output, Project, Script, Session, call, copy_folder, run, run_program, say, text_of,
};
use serde_json::{Value, json};

const ID: &str = "house@street";

struct Street {
    project: Project,
}

impl Street {
    fn new() -> Self {
        let ticket = call("mcp__plugin_house_tickets__lookup", json!({ "number": 100 }));
        let script = Script::default().when("^ticket", [ticket, say("Looked up.")]);
        Self::with(script.otherwise((0..20).map(|_| say("So it is."))))
    }

    fn with(script: Script) -> Self {
        let street = Self { project: Project::new(&script) };
        let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures");
        copy_folder(&fixtures.join("plugins/market"), &street.market());
        fs::copy(fixtures.join("dialects/tickets.py"), street.house().join("tickets.py")).unwrap();
        fs::create_dir_all(street.home()).unwrap();
        street
    }

    fn home(&self) -> PathBuf {
        self.project.outside().join("user")
    }

    fn market(&self) -> PathBuf {
        self.project.outside().join("market")
    }

    /// The plugin in the marketplace.
    fn house(&self) -> PathBuf {
        self.market().join("plugins/house")
    }

    /// The marketplace as a repository.
    fn repository(&self) -> String {
        let commit =
            "git init -q . && git add . && git -c user.name=A -c user.email=a@example.com commit -q -m Begin";
        let output = run_program(Path::new("bash"), &["-c", commit], Some(&self.market()), &[], "");
        assert_eq!(output.code, 0, "{output:?}");
        format!("file://{}", self.market().display())
    }

    fn cli(&self, arguments: &[&str]) -> Output {
        let (state, home) = (self.project.home(), self.home());
        let path = std::env::var("PATH").unwrap();
        let environment = [
            ("KODE_LS_HOME", state.to_str().unwrap()),
            ("HOME", home.to_str().unwrap()),
            ("PATH", path.as_str()),
        ];
        run(arguments, Some(&self.project.workspace()), &environment, "")
    }

    /// The same, which has to work.
    fn done(&self, arguments: &[&str]) -> String {
        let output = self.cli(arguments);
        assert_eq!(output.code, 0, "{arguments:?}: {output:?}");
        output.stdout
    }

    fn install(&self) {
        self.done(&["plugin", "marketplace", "add", self.market().to_str().unwrap()]);
        self.done(&["plugin", "install", "house", "--yes"]);
    }

    fn open(&self) -> Client {
        let variables =
            [("HOME", self.home().to_str().unwrap().to_owned()), ("KODE_LS_MCP_WAIT", "20000".to_owned())];
        let variables: Vec<(&str, &str)> =
            variables.iter().map(|(name, value)| (*name, value.as_str())).collect();
        let client = self.project.start_as(&[], &variables);
        client.initialize(Offer::kode().params(&self.project.workspace()));
        client
    }

    /// How often the plugin's hook has run since the last look.
    fn noted(&self) -> usize {
        let path = self.project.path("hook-log.txt");
        let count = fs::read_to_string(&path).unwrap_or_default().lines().count();
        let _absent = fs::remove_file(path);
        count
    }

    /// The one folder in which the plugin is installed.
    fn installed(&self) -> PathBuf {
        let listed: Value = serde_json::from_str(&self.done(&["plugin", "list", "--json"])).unwrap();
        let found = listed["plugins"].as_array().unwrap().iter().find(|plugin| plugin["id"] == ID).unwrap();
        found["folder"].as_str().unwrap().into()
    }
}

fn names(client: &Client, session: &Session<'_>, kind: &str) -> Vec<String> {
    let listed = client.call(&format!("agent/{kind}/list"), json!({ "sessionId": session.id }));
    let all = listed[kind].as_array().unwrap_or_else(|| panic!("{listed}")).iter();
    all.map(|one| one["name"].as_str().unwrap().to_owned()).collect()
}

fn prompt_sent(street: &Street) -> String {
    let request = street.project.model.last_request();
    let messages = request["messages"].as_array().unwrap();
    let last = messages.iter().rev().find(|message| message["role"] == "user").unwrap();
    text_of(&last["content"])
}

fn trust_all(session: &Session<'_>) -> Vec<String> {
    let listed = session.client().call("agent/trust/list", json!({ "sessionId": session.id }));
    let waiting = listed["waiting"].as_array().unwrap();
    let digests: Vec<&Value> = waiting.iter().map(|waiting| &waiting["digest"]).collect();
    session.call("agent/trust/approve", json!({ "digests": digests }));
    waiting.iter().map(|waiting| waiting["key"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn a_plugin_works_from_the_adding_of_its_marketplace_on() {
    for is_repository in [false, true] {
        let street = Street::new();
        let source =
            if is_repository { street.repository() } else { street.market().to_str().unwrap().to_owned() };
        let added = street.done(&["plugin", "marketplace", "add", &source]);
        assert!(added.contains("house@street: All about the house"), "{added}");
        assert!(
            added.contains("elsewhere@street: cannot be installed, for sources of the kind `teleport`"),
            "{added}"
        );

        let refused = street.cli(&["plugin", "install", ID]);
        assert_ne!(refused.code, 0);
        for shown in [
            "commands: house:greet, house:knock, house:team:clean",
            "skills: house:oil",
            "agents: house:keeper",
            "output styles: house:Polite",
            "hook UserPromptSubmit: sh \"${CLAUDE_PLUGIN_ROOT}/hooks/note.sh\"",
            "MCP server plugin:house:tickets: python3 ${CLAUDE_PLUGIN_ROOT}/tickets.py",
            "language server plugin:house:words: ${CLAUDE_PLUGIN_ROOT}/words",
            "there is no terminal to ask in",
        ] {
            assert!(refused.stderr.contains(shown), "{shown} in {}", refused.stderr);
        }
        assert_eq!(street.done(&["plugin", "list"]), "no plugin is installed\n");

        street.done(&["plugin", "install", ID, "--yes"]);
        assert_eq!(street.noted(), 0, "nothing runs because it is installed");
        assert!(street.done(&["plugin"]).starts_with("on       house@street 1.0.0"));
        // Changes of its source do not affect the installed one.
        fs::remove_dir_all(street.market()).unwrap();

        let client = street.open();
        let session = client.session();
        session.run("/house:greet Ada");
        let sent = prompt_sent(&street);
        assert!(sent.contains(&format!("Greet Ada from {}.", street.installed().display())), "{sent}");
        assert_eq!(street.noted(), 1);
        let kept = street.project.home().join("plugins/house@street/kept.txt");
        assert_eq!(fs::read_to_string(&kept).unwrap(), "kept\n");
        session.run("/house:team:clean all of it");
        assert!(prompt_sent(&street).contains("Clean with the team: all of it"));
        session.run("/house:oil");
        assert!(prompt_sent(&street).contains("Oil the hinges"));
        assert!(names(&client, &session, "agents").contains(&"house:keeper".to_owned()));
        assert!(names(&client, &session, "styles").contains(&"house:Polite".to_owned()));

        let turn = session.prompt("ticket 100");
        let asked = session.wait_permission(0);
        session.respond(&asked, json!({ "decision": "allow", "scope": "once" })).unwrap();
        session.wait_done(&turn);
        let (result, failed) = street.project.model.last_results().remove(0);
        assert!(!failed && result.contains("the door squeaks"), "{result}");

        let completed = session.call("agent/complete", json!({ "text": "/house:g", "cursor": 8 }));
        assert_eq!(completed["items"][0]["label"], "/house:greet", "{completed}");
        let doctor = client.call("agent/doctor", json!({ "sessionId": session.id }));
        let text = doctor["text"].as_str().unwrap();
        assert!(
            text.contains("- house@street (user")
                && text.contains("house:greet (plugin")
                && text.contains("- plugin:house:words (plugin"),
            "{text}"
        );
        let problems = doctor["problems"].to_string();
        assert!(
            problems.contains("`userConfig` is not in use")
                && problems.contains("`hooks` of an agent that a plugin brings"),
            "{problems}"
        );
        assert_eq!(client.shut_down(), 0);

        let gone = street.done(&["plugin", "uninstall", "house"]);
        assert!(gone.contains("its data is still in"), "{gone}");
        assert_eq!(street.done(&["plugin", "list"]), "no plugin is installed\n");
    }
}

#[test]
fn switching_a_plugin_counts_in_a_session_that_runs() {
    let street = Street::new();
    street.install();
    let client = street.open();
    let session = client.session();
    session.run("hello");
    assert_eq!(street.noted(), 1);
    street.done(&["plugin", "disable", "house"]);
    session.run("hello");
    assert_eq!(street.noted(), 0);
    assert!(!names(&client, &session, "commands").contains(&"house:greet".to_owned()));
    session.run("/plugin");
    let listed = session.items().pop().unwrap();
    assert!(listed.to_string().contains("**house@street** 1.0.0: off"), "{listed}");
    street.done(&["plugin", "enable", ID]);
    session.run("hello");
    assert_eq!(street.noted(), 1);
    assert!(names(&client, &session, "commands").contains(&"house:greet".to_owned()));
}

/// The output of a command, and whether it failed.
fn answered(session: &Session<'_>, command: &str) -> (String, bool) {
    session.run(command);
    let answer = session.items().pop().unwrap()["body"].clone();
    (
        answer["text"].as_str().unwrap_or_else(|| panic!("{answer}")).to_owned(),
        answer["failed"] == json!(true),
    )
}

#[test]
fn the_user_switches_a_plugin_in_a_conversation_and_is_reported_what_counts() {
    let street = Street::new();
    street.install();
    let client = street.open();
    let session = client.session();
    let (reported, failed) = answered(&session, "/plugin disable house");
    assert!(!failed && reported.contains("**house@street** is off"), "{reported}");
    let settings = street.home().join(".kode/settings.json");
    assert!(fs::read_to_string(&settings).unwrap().contains("\"house@street\": false"));
    session.run("hello");
    assert_eq!(street.noted(), 0);
    assert!(!names(&client, &session, "commands").contains(&"house:greet".to_owned()));

    // A second word of the user's own counts at once, without another turn.
    let (reported, failed) = answered(&session, "/plugin enable house@street");
    assert!(!failed && reported.contains("**house@street** is on"), "{reported}");
    for brought in ["commands: house:greet", "hook UserPromptSubmit", "MCP server plugin:house:tickets"] {
        assert!(reported.contains(brought), "{brought} in {reported}");
    }
    assert!(names(&client, &session, "commands").contains(&"house:greet".to_owned()));
    session.run("hello");
    assert_eq!(street.noted(), 1);

    // A file that goes before the user's own is named, and left alone.
    let local = json!({ "enabledPlugins": { ID: false } }).to_string();
    street.project.write(".claude/settings.json", local.clone());
    let (reported, failed) = answered(&session, "/plugin enable house");
    assert!(
        failed && reported.contains("is off, because") && reported.contains(".claude/settings.json"),
        "{reported}"
    );
    assert_eq!(fs::read_to_string(street.project.path(".claude/settings.json")).unwrap(), local);
    for (command, expected) in [
        ("/plugin enable bare", "No plugin `bare` is installed"),
        ("/plugin enable", "Say `/plugin`"),
        ("/plugin remove house", "Say `/plugin`"),
    ] {
        let (reported, failed) = answered(&session, command);
        assert!(failed && reported.contains(expected), "{command}: {reported}");
    }
}

#[test]
fn no_model_switches_a_plugin() {
    let switch = |command: &str| call("SlashCommand", json!({ "command": command }));
    let asked = [switch("/plugin enable house@street"), switch("/plugins enable house"), say("No.")];
    let street = Street::with(Script::new(asked));
    street.install();
    street.done(&["plugin", "disable", "house"]);
    let before = fs::read_to_string(street.home().join(".kode/settings.json")).unwrap();
    let client = street.open();
    let session = client.session_with(json!({ "mode": "bypassPermissions" }));
    session.run("please");
    let request = street.project.model.last_request();
    let results: Vec<_> =
        request["messages"].as_array().unwrap().iter().flat_map(kode_e2e::results_of).collect();
    assert_eq!(results.len(), 2, "{results:?}");
    for (result, failed) in results {
        assert!(failed && result.contains("the built-in ones are for the user alone"), "{result}");
    }
    assert_eq!(fs::read_to_string(street.home().join(".kode/settings.json")).unwrap(), before);
    assert_eq!(street.noted(), 0);
}

#[test]
fn a_project_switches_a_plugin_on_only_as_far_as_it_is_installed_and_approved() {
    let street = Street::new();
    let market = street.market();
    let settings = json!({
        "enabledPlugins": { ID: true },
        "extraKnownMarketplaces": { "street": { "source": { "source": "directory", "path": market } } },
    });
    street.project.write(".claude/settings.json", settings.to_string());
    // The exit code refers to the model, which is missing.
    let reported = street.cli(&["doctor"]).stdout;
    assert!(reported.contains("`kode-ls plugin install house@street` installs it"), "{reported}");
    let add = format!("`kode-ls plugin marketplace add {}` adds it", market.display());
    assert!(reported.contains(&add), "{reported}");

    street.install();
    street.done(&["config", "set", "enabledPlugins.house@street", "--unset"]);
    let client = street.open();
    let session = client.session();
    session.run("hello");
    assert_eq!(street.noted(), 0, "it waits");
    assert!(!names(&client, &session, "commands").contains(&"house:greet".to_owned()));
    assert_eq!(trust_all(&session), ["enabledPlugins.house@street"]);
    session.run("hello");
    assert_eq!(street.noted(), 1);

    // Another version of it is another one to approve.
    fs::write(street.house().join("hooks/note.sh"), "echo evil >> \"$CLAUDE_PROJECT_DIR/hook-log.txt\"\n")
        .unwrap();
    street.done(&["plugin", "update", "house", "--yes"]);
    session.run("hello");
    assert_eq!(street.noted(), 0);
    assert_eq!(trust_all(&session), ["enabledPlugins.house@street"]);
    session.run("hello");
    assert_eq!(street.noted(), 1);
}

#[test]
fn a_plugin_that_is_no_longer_what_was_installed_is_switched_off_until_it_is_installed_again() {
    let street = Street::new();
    street.install();
    let client = street.open();
    let session = client.session();
    session.run("hello");
    assert_eq!(street.noted(), 1);
    fs::write(
        street.installed().join("hooks/note.sh"),
        "echo evil >> \"$CLAUDE_PROJECT_DIR/hook-log.txt\"\n",
    )
    .unwrap();
    session.run("hello");
    assert_eq!(street.noted(), 0);
    assert!(!names(&client, &session, "commands").contains(&"house:greet".to_owned()));
    let reported = street.done(&["plugin", "list"]);
    assert!(
        reported.contains("left out house@street")
            && reported.contains("`kode-ls plugin update house@street`"),
        "{reported}"
    );
    street.done(&["plugin", "update", "house", "--yes"]);
    session.run("hello");
    assert_eq!(street.noted(), 1);
}

#[cfg(unix)]
#[test]
fn an_update_that_fails_leaves_what_is_installed() {
    let street = Street::new();
    street.install();
    for (name, spoil) in [
        ("../", "{ \"name\": \"house\", \"commands\": [\"./../../../secret.md\"] }"),
        ("name", "{ \"description\": \"nobody\" }"),
    ] {
        fs::write(street.house().join(".claude-plugin/plugin.json"), spoil).unwrap();
        let output = street.cli(&["plugin", "update", "house", "--yes"]);
        if name == "name" {
            assert!(output.code != 0 && output.stderr.contains("no `name`"), "{output:?}");
        } else {
            assert!(output.stderr.contains("leads out of the plugin"), "{output:?}");
        }
    }
    std::os::unix::fs::symlink("/etc/passwd", street.house().join("link.md")).unwrap();
    let output = street.cli(&["plugin", "update", "house", "--yes"]);
    assert!(output.code != 0 && output.stderr.contains("link that leads out"), "{output:?}");
    assert!(street.done(&["plugin", "list"]).starts_with("on       house@street"));
    let leftovers = fs::read_dir(street.home().join(".kode-ls/plugins")).unwrap();
    let names: Vec<_> = leftovers.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    assert!(names.iter().all(|name| !name.starts_with(".new-")), "{names:?}");
}

#[test]
fn plugins_that_another_agent_has_installed_are_used_as_they_are() {
    for is_first_form in [true, false] {
        let street = Street::new();
        let entry = json!({ "version": "1.0.0", "installPath": street.house(), "isLocal": true });
        let entry = if is_first_form { entry } else { json!([entry]) };
        let record = json!({ "version": if is_first_form { 1 } else { 2 }, "plugins": { ID: entry } });
        let folder = street.home().join(".claude");
        fs::create_dir_all(folder.join("plugins")).unwrap();
        fs::write(folder.join("plugins/installed_plugins.json"), record.to_string()).unwrap();
        fs::write(folder.join("settings.json"), json!({ "enabledPlugins": { ID: true } }).to_string())
            .unwrap();
        let client = street.open();
        let session = client.session();
        session.run("/house:knock");
        assert!(prompt_sent(&street).contains("Knock at the door."));
        assert_eq!(street.noted(), 1);
        let refused = street.cli(&["plugin", "uninstall", ID]);
        assert!(refused.stderr.contains("another agent has installed it"), "{refused:?}");
    }
}

#[test]
fn what_is_wrong_in_a_plugin_is_reported_with_its_line() {
    let street = Street::new();
    let house = street.house();
    let manifest =
        "{\n  \"name\": \"house\",\n  \"agents\": \"agents/keeper.md\",\n  \"skills\": [\"./none\"]\n}";
    fs::write(house.join(".claude-plugin/plugin.json"), manifest).unwrap();
    let output = street.cli(&["plugin", "validate", house.to_str().unwrap()]);
    assert_eq!(output.code, 0, "{output:?}");
    for reported in [
        "plugin.json:3: `agents/keeper.md` is ignored",
        "plugin.json:4: There is no folder `./none`",
        "house:greet",
    ] {
        assert!(output.stdout.contains(reported), "{reported} in {}", output.stdout);
    }
    fs::write(house.join(".claude-plugin/plugin.json"), "{").unwrap();
    assert_ne!(street.cli(&["plugin", "validate", house.to_str().unwrap()]).code, 0);
    let market = street.cli(&["plugin", "validate", street.market().to_str().unwrap()]);
    assert!(market.code == 0 && market.stdout.starts_with("marketplace street, 3 plugins"), "{market:?}");
}

#[test]
fn a_plugin_without_a_manifest_is_what_its_marketplace_says() {
    let street = Street::new();
    street.done(&["plugin", "marketplace", "add", street.market().to_str().unwrap()]);
    street.done(&["plugin", "install", "bare", "--yes"]);
    let client = street.open();
    let session = client.session();
    session.run("/bare:extra");
    assert!(prompt_sent(&street).contains("Extra work."));
}

#[cfg(unix)]
#[test]
fn a_marketplace_from_elsewhere_has_no_say_about_this_machine() {
    let street = Street::new();
    let market = street.project.outside().join("hostile");
    let secret = street.project.outside().join("secret");
    fs::create_dir_all(&secret).unwrap();
    fs::write(secret.join("key.md"), "secret").unwrap();
    fs::create_dir_all(market.join(".claude-plugin")).unwrap();
    std::os::unix::fs::symlink(&secret, market.join("link")).unwrap();
    let list = json!({ "name": "hostile", "plugins": [
        { "name": "folder", "source": { "source": "directory", "path": secret } },
        { "name": "dots", "source": "./../secret" },
        { "name": "absolute", "source": secret },
        { "name": "link", "source": "./link" },
        { "name": "helper", "source": { "source": "url", "url": "ext::sh -c 'touch evil'" } },
    ] });
    fs::write(market.join(".claude-plugin/marketplace.json"), list.to_string()).unwrap();
    let commit =
        "git init -q . && git add . && git -c user.name=A -c user.email=a@example.com commit -q -m Begin";
    let output = run_program(Path::new("bash"), &["-c", commit], Some(&market), &[], "");
    assert_eq!(output.code, 0, "{output:?}");
    let added = street.cli(&["plugin", "marketplace", "add", &format!("file://{}", market.display())]);
    assert!(added.code != 0 && added.stderr.contains("link that leads out"), "{added:?}");
    fs::remove_file(market.join("link")).unwrap();
    let output = run_program(
        Path::new("bash"),
        &["-c", "git -c user.name=A -c user.email=a@example.com commit -q -a -m Less"],
        Some(&market),
        &[],
        "",
    );
    assert_eq!(output.code, 0, "{output:?}");
    street.done(&["plugin", "marketplace", "add", &format!("file://{}", market.display())]);
    for name in ["folder", "dots", "absolute", "link", "helper"] {
        let output = street.cli(&["plugin", "install", name, "--yes"]);
        assert!(output.code != 0 && output.stderr.contains("cannot be used"), "{name}: {output:?}");
    }
    assert_eq!(street.done(&["plugin", "list"]), "no plugin is installed\n");
    assert!(!street.project.path("evil").exists());
}

/// A server of files, by their paths.
struct Files {
    address: String,
    files: Arc<Mutex<BTreeMap<String, Vec<u8>>>>,
}

impl Files {
    fn serve() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let files: Arc<Mutex<BTreeMap<String, Vec<u8>>>> = Arc::default();
        let served = Arc::clone(&files);
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let Ok(mut stream) = stream else { return };
                let mut lines = BufReader::new(stream.try_clone().unwrap()).lines();
                let Some(Ok(first)) = lines.next() else { continue };
                let _head: Vec<_> = lines.map_while(Result::ok).take_while(|line| !line.is_empty()).collect();
                let path = first.split(' ').nth(1).unwrap_or_default();
                let file = served.lock().unwrap().get(path).cloned();
                let status = if file.is_some() { "200 OK" } else { "404 Not Found" };
                let body = file.unwrap_or_default();
                let head = format!(
                    "HTTP/1.1 {status}\r\nconnection: close\r\ncontent-length: {}\r\n\r\n",
                    body.len()
                );
                // Early exits are announced.
                let _ = stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(&body));
            }
        });
        Self { address, files }
    }

    fn put(&self, path: &str, content: impl Into<Vec<u8>>) -> String {
        self.files.lock().unwrap().insert(path.to_owned(), content.into());
        format!("{}{path}", self.address)
    }
}

impl Street {
    /// A registry whose one package is the plugin, packed by this command in its folder; and a list at an address that names it.
    fn packed(&self, files: &Files, command: &str) -> String {
        let output = run_program(Path::new("bash"), &["-c", command], Some(&self.house()), &[], "");
        assert_eq!(output.code, 0, "{output:?}");
        let archive = self.house().join("../house.tgz");
        let sum = run_program(Path::new("sha1sum"), &[archive.to_str().unwrap()], None, &[], "");
        let tarball = files.put("/house.tgz", fs::read(&archive).unwrap());
        let dist = json!({ "tarball": tarball, "shasum": sum.stdout.split(' ').next() });
        let document =
            json!({ "dist-tags": { "latest": "2.0.0" }, "versions": { "2.0.0": { "dist": dist } } });
        files.put("/npm/@neighbours%2fhouse", document.to_string());
        let npm = json!({ "source": "npm", "package": "@neighbours/house", "version": "^2" });
        let plugins =
            json!([{ "name": "house", "source": npm }, { "name": "bare", "source": "./plugins/bare" }]);
        files.put("/lists/marketplace.json", json!({ "name": "street", "plugins": plugins }).to_string())
    }
}

const PACK: &str = "tar -czf ../house.tgz --transform 's,^[.],package,' .";

#[test]
fn a_plugin_comes_from_npm_by_a_list_at_a_web_address() {
    let street = Street::new();
    let files = Files::serve();
    // The scripts of a package are not run.
    fs::write(street.house().join("package.json"), r#"{ "scripts": { "install": "touch evil" } }"#).unwrap();
    let list = street.packed(&files, PACK);
    let registry = format!("registry={}/npm\n", files.address);
    // A project has no say about where packages come from.
    street.project.write(".npmrc", "registry=http://127.0.0.1:9/evil\n");
    let added = street.done(&["plugin", "marketplace", "add", &list]);
    assert!(
        added.contains(
            "bare@street: cannot be installed, for a list at a web address has no folder `./plugins/bare`"
        ),
        "{added}"
    );
    let refused = street.cli(&["plugin", "install", "bare", "--yes"]);
    assert!(refused.code != 0 && refused.stderr.contains("add its repository instead"), "{refused:?}");
    assert!(street.done(&["plugin", "marketplace", "list"]).contains(&format!("street  ({list})")));

    fs::write(street.home().join(".npmrc"), &registry).unwrap();
    street.done(&["plugin", "install", "house", "--yes"]);
    let client = street.open();
    let session = client.session();
    session.run("/house:greet Ada");
    assert!(prompt_sent(&street).contains("Greet Ada from"));
    assert_eq!(street.noted(), 1);
    assert_eq!(client.shut_down(), 0);
    assert!(!street.installed().join("evil").exists());

    // An update asks the list and the registry again, and a failure leaves the installed one.
    assert_eq!(street.done(&["plugin", "update"]), "house@street is up to date\n");
    let spoiled = |command: &str| {
        street.packed(&files, command);
        let output = street.cli(&["plugin", "update", "house", "--yes"]);
        assert_ne!(output.code, 0, "{output:?}");
        assert!(street.done(&["plugin", "list"]).starts_with("on       house@street"));
        output.stderr
    };
    let reported = spoiled(
        "ln -s /etc/passwd link.md; tar -czf ../house.tgz --transform 's,^[.],package,' .; rm link.md",
    );
    assert!(reported.contains("link.md` in it is neither a file nor a folder"), "{reported}");
    let reported = spoiled("tar -P -czf ../house.tgz --transform 's,^[.],/tmp/package,' .");
    assert!(reported.contains("leads out of it"), "{reported}");
    let reported =
        spoiled("truncate -s 70M large; tar -czf ../house.tgz --transform 's,^[.],package,' .; rm large");
    assert!(reported.contains("larger than 67108864 bytes"), "{reported}");
    street.packed(&files, PACK);
    files.put("/house.tgz", "other bytes");
    let output = street.cli(&["plugin", "update", "house", "--yes"]);
    assert!(output.code != 0 && output.stderr.contains("does not match the registry's digest"), "{output:?}");
    files.put("/lists/marketplace.json", "{ \"name\": \"other\", \"plugins\": [] }");
    let output = street.cli(&["plugin", "marketplace", "update", "street"]);
    assert!(output.code != 0 && output.stderr.contains("its name is now `other`"), "{output:?}");
    assert!(street.done(&["plugin", "marketplace", "list"]).contains("house@street"));
}
