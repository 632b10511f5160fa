//! `kode-ls run` in scripts: piped input, output for programs, refusals, and stored sessions.

use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;

use kode_e2e::{Output, Project, Script, call, say};
use serde_json::{Value, json};

fn project() -> Project {
    let edit = json!({ "file_path": "{{cwd}}/a.txt", "old_string": "old", "new_string": "new" });
    let read = call("Read", json!({ "file_path": "{{cwd}}/a.txt" }));
    let script = Script::default()
        .when("^edit", [read, call("Edit", edit), say("Tried.")])
        .when(
            "^commands",
            [
                call("Bash", json!({ "command": "echo one > one.txt" })),
                call("Bash", json!({ "command": "echo two > two.txt" })),
                say("Tried both."),
            ],
        )
        .when("^count", [say("Three.")])
        .when("does not match", [say("```json\n{\"count\": 3}\n```")])
        .otherwise([say("Seen.")]);
    let project = Project::new(&script);
    project.write("a.txt", "old\n");
    project
}

fn lines(output: &Output) -> Vec<Value> {
    let parse = |line: &str| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line:?}"));
    output.stdout.lines().map(parse).collect()
}

/// The last request to the model.
fn prompt(project: &Project) -> String {
    project.model.last_request()["messages"].to_string()
}

/// The result of a run in JSON.
fn result(project: &Project, arguments: &[&str]) -> (i32, Value) {
    let output = project.run(&[&["run", "--output-format", "json"], arguments].concat(), "");
    let [result] = lines(&output).try_into().unwrap_or_else(|_| panic!("one line: {output:?}"));
    (output.code, result)
}

/// How many sessions are stored.
fn sessions(project: &Project) -> usize {
    let output = project.run(&["sessions", "--json"], "");
    serde_json::from_str::<Value>(&output.stdout).unwrap()["sessions"].as_array().unwrap().len()
}

#[test]
fn what_is_piped_in_goes_along_as_context_and_is_the_order_where_there_is_none() {
    let project = project();
    let output = project.run(&["run", "review this"], "+a line\n");
    assert_eq!((output.code, output.stdout.as_str()), (0, "Seen.\n"), "{output:?}");
    let sent = prompt(&project);
    assert!(sent.contains("review this") && sent.contains("+a line"), "{sent}");
    for arguments in [&["run"][..], &["run", "-"]] {
        let output = project.run(arguments, "look at that\n");
        assert_eq!(output.code, 0, "{output:?}");
        assert!(prompt(&project).contains("look at that"));
    }
}

#[test]
fn several_messages_are_carried_out_one_after_the_other() {
    let project = project();
    let message = |text: &str| json!({ "type": "user", "message": { "role": "user", "content": text } });
    let stream = [
        "run",
        "--input-format",
        "stream-json",
        "--output-format",
        "stream-json",
        "--include-partial-messages",
    ];
    let output = project.run(&stream, &format!("{}\n\n{}\n", message("first"), message("second")));
    assert_eq!(output.code, 0, "{output:?}");
    let lines = lines(&output);
    let of = |kind: &str| lines.iter().filter(|line| line["type"] == kind).cloned().collect::<Vec<_>>();
    assert_eq!(of("result").len(), 2, "{}", output.stdout);
    let pieces: Vec<_> = of("stream_event");
    let pieces: String =
        pieces.iter().map(|piece| piece["event"]["delta"]["text"].as_str().unwrap()).collect();
    assert_eq!(pieces, "Seen.Seen.");
    let wrong = project.run(&stream, "second\n");
    assert_eq!(wrong.code, 1, "{wrong:?}");
    assert!(wrong.stderr.contains("\"type\":\"user\""), "{wrong:?}");
}

#[test]
fn what_was_refused_is_listed_and_is_an_exit_code_on_request() {
    let project = project();
    let (code, reported) = result(&project, &["commands please"]);
    assert_eq!((code, &reported["subtype"]), (0, &json!("success")), "{reported}");
    let denials = reported["permission_denials"].as_array().unwrap();
    let commands: Vec<_> = denials.iter().map(|denial| denial["tool_input"]["command"].clone()).collect();
    assert_eq!(commands, ["echo one > one.txt", "echo two > two.txt"], "{reported}");
    assert_eq!(denials[0]["tool_name"], "Bash");
    let texts = project.model.last_results();
    assert!(texts.iter().all(|(text, _)| text.contains("No user can be asked")), "{texts:?}");
    assert!(texts.iter().all(|(text, _)| !text.contains("The user refused")), "{texts:?}");
    let (code, _) = result(&project, &["--fail-on-denial", "commands please"]);
    assert_eq!(code, 3);
    let output = project.run(&["run", "commands please"], "");
    assert!(output.stderr.contains("2 calls were denied"), "{output:?}");
}

#[test]
fn rules_of_the_command_line_allow_and_refuse() {
    let project = project();
    let (code, reported) = result(&project, &["--allowed-tools", "Edit, Bash(nothing:*)", "edit it"]);
    assert_eq!((code, project.read("a.txt").as_str()), (0, "new\n"), "{reported}");
    let allowed = ["--mode", "bypassPermissions", "--disallowed-tools", "Bash(echo two:*)", "commands"];
    let (_, reported) = result(&project, &allowed);
    assert!(project.path("one.txt").exists() && !project.path("two.txt").exists(), "{reported}");
    let refuse = ["run", "--allowed-tools", "Bash(git:*)", "--disallowed-tools", "Bash", "x"];
    for (arguments, said) in [
        (&refuse[..], "has no effect"),
        (&["run", "--allowed-tools", "Bash(", "x"], "invalid permission rule"),
    ] {
        let output = project.run(arguments, "");
        assert_eq!(output.code, 2, "{output:?}");
        assert!(output.stderr.contains(said), "{output:?}");
    }
}

#[test]
fn text_behind_the_instructions_and_further_folders_count_for_one_run() {
    let project = project();
    let other = tempfile::tempdir().unwrap();
    let folder = other.path().canonicalize().unwrap();
    let arguments =
        ["--append-system-prompt", "Answer in verse.", "--add-dir", folder.to_str().unwrap(), "look around"];
    let (code, reported) = result(&project, &arguments);
    assert_eq!(code, 0, "{reported}");
    let request = project.model.last_request();
    let system = request["system"].to_string();
    assert!(system.contains("Answer in verse."), "{system}");
    let missing = project.run(&["run", "--add-dir", "/no/such/folder", "x"], "");
    assert!(missing.code != 0 && missing.stderr.contains("/no/such/folder"), "{missing:?}");
}

#[test]
fn an_answer_has_to_fit_its_schema_and_gets_a_second_chance() {
    let project = project();
    project.write(
        "schema.json",
        r#"{"type":"object","required":["count"],"properties":{"count":{"type":"integer"}}}"#,
    );
    let schema = project.path("schema.json");
    let schema = schema.to_str().unwrap();
    let (code, reported) = result(&project, &["--output-schema", schema, "count the files"]);
    assert_eq!((code, &reported["structured_output"]), (0, &json!({ "count": 3 })), "{reported}");
    let output = project.run(&["run", "--output-schema", schema, "count the files"], "");
    assert_eq!((output.code, output.stdout.as_str()), (0, "{\"count\":3}\n"), "{output:?}");
    project.write("list.json", r#"{"type":"array"}"#);
    let list = project.path("list.json");
    let (code, reported) = result(&project, &["--output-schema", list.to_str().unwrap(), "anything"]);
    assert_eq!((code, &reported["is_error"]), (1, &json!(true)), "{reported}");
    assert!(reported["schema_error"].as_str().unwrap().contains("array"), "{reported}");
    let broken = project.run(&["run", "--output-schema", project.path("a.txt").to_str().unwrap(), "x"], "");
    assert!(broken.code == 1 && broken.stderr.contains("not a valid JSON Schema"), "{broken:?}");
}

#[test]
fn nothing_is_kept_of_an_ephemeral_run_and_of_one_that_nothing_came_of() {
    let project = project();
    assert_eq!(project.run(&["run", "--ephemeral", "look"], "").code, 0);
    assert_eq!(project.run(&["run", "/help"], "").code, 0);
    assert_ne!(project.run(&["run", "--profile", "nosuch", "look"], "").code, 0);
    assert_eq!(sessions(&project), 0);
    assert_eq!(project.run(&["run", "look"], "").code, 0);
    assert_eq!(project.run(&["run", "/help"], "").code, 0);
    assert_eq!(sessions(&project), 1);
    assert_eq!(project.run(&["run", "-c", "and there"], "").code, 0);
    assert!(prompt(&project).contains("look"), "it goes on with the work");
    assert_eq!(sessions(&project), 1);
}

#[test]
fn an_error_is_one_line_without_a_log_before_it() {
    let output = project().run(&["run", "--profile", "nosuch", "x"], "");
    assert_eq!(output.code, 1, "{output:?}");
    assert!(output.stderr.starts_with("error: ") && output.stderr.lines().count() == 1, "{output:?}");
}

/// A web server of this machine, as developers have one; its address.
fn development_server() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut request = BufReader::new(&stream).lines();
            while request.next().is_some_and(|line| !line.unwrap().is_empty()) {}
            let answer = "HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ncontent-length: 16\r\nconnection: close\r\n\r\nThe local page.\n";
            stream.write_all(answer.as_bytes()).unwrap();
        }
    });
    url
}

#[test]
fn a_local_development_server_is_fetched_from_where_a_rule_names_it() {
    let url = development_server();
    let fetch = call("WebFetch", json!({ "url": url }));
    let project = Project::new(&Script::default().when("^fetch", [fetch, say("Fetched.")]));
    for rules in [&["--allowed-tools", "WebFetch"][..], &["--allowed-tools", "WebFetch(domain:localhost)"]] {
        let (_, reported) = result(&project, &[rules, &["fetch it"]].concat());
        let prompt = prompt(&project);
        assert!(prompt.contains("not public") && !prompt.contains("The local page"), "{prompt}\n{reported}");
    }
    project.write(".kode/settings.json", r#"{ "permissions": { "allow": ["WebFetch(domain:127.0.0.1)"] } }"#);
    assert_eq!(project.run(&["trust", "approve", "--yes"], "").code, 0);
    let (_, reported) = result(&project, &["fetch it"]);
    assert!(prompt(&project).contains("not public"), "a project does not open the network: {reported}");
    let (_, reported) = result(&project, &["--allowed-tools", "WebFetch(domain:127.0.0.1)", "fetch it"]);
    assert!(prompt(&project).contains("The local page."), "{reported}");
}
