//! The attachments of a prompt: mentions, pictures, the editor's state, instruction files, completion.

use kode_e2e::{Project, Script, say};
use serde_json::{Value, json};

/// The texts of the newest message of the user in a request.
fn said(request: &Value) -> String {
    let message = request["messages"].as_array().unwrap().last().unwrap();
    let texts = message["content"].as_array().unwrap().iter().filter_map(|block| block["text"].as_str());
    texts.collect::<Vec<_>>().join("\n")
}

#[test]
fn parts_of_a_prompt_reach_the_model_as_the_editor_has_them() {
    let project = Project::new(&Script::new([say("seen")]));
    project.write("src/a.txt", "on the disk\n");
    project.write("AGENTS.md", "Use tabs.\n");
    let client = project.open();
    let uri = project.uri("src/a.txt");
    client.editor.open(&uri, "not saved\nsecond\n");
    let session = client.session();
    let range = json!({ "start": { "line": 1, "character": 0 }, "end": { "line": 1, "character": 6 } });
    let started = session.call(
        "agent/turn/start",
        json!({
            "input": [
                { "type": "text", "text": "what is @src/a.txt about? mail me@src/a.txt" },
                { "type": "image", "mediaType": "image/png", "data": "iVBORw0KGgo=" },
                { "type": "selection", "uri": uri, "range": range, "text": "second" },
            ],
            "context": { "activeUri": uri, "selection": range, "openUris": [uri] },
        }),
    );
    session.wait_done(started["turnId"].as_str().unwrap());
    let requests = project.model.requests();
    let request = &requests[0];
    let said = said(request);
    assert!(said.contains("<file path=\"src/a.txt\" lines=\"1-2\">\n     1\tnot saved"), "{said}");
    assert!(said.contains("<selection path=\"src/a.txt\" lines=\"L2\">\nsecond"), "{said}");
    assert!(said.contains("Active file: src/a.txt") && !said.contains("on the disk"), "{said}");
    let content = request["messages"][0]["content"].as_array().unwrap();
    assert!(content.iter().any(|block| block["type"] == "image"), "{content:?}");
    assert!(request["system"].to_string().contains("Use tabs."), "{}", request["system"]);
    let prompt = session.items().into_iter().find(|item| item["body"]["type"] == "userMessage").unwrap();
    let kinds: Vec<_> =
        prompt["body"]["attachments"].as_array().unwrap().iter().map(|one| &one["kind"]).collect();
    assert_eq!(kinds, ["image", "selection", "editor", "file"]);
}

#[test]
fn an_image_that_went_with_a_prompt_is_read_again_from_the_journal() {
    let project = Project::new(&Script::new([say("seen"), say("seen")]));
    let client = project.open();
    let session = client.session();
    let images = ["iVBORw0KGgo=", "iVBORw0KGgoA"];
    let part = |data: &str| json!({ "type": "image", "mediaType": "image/png", "data": data });
    let text = json!({ "type": "text", "text": "what are these?" });
    let input = json!({ "input": [text, part(images[0]), part(images[1])] });
    session.wait_done(session.call("agent/turn/start", input)["turnId"].as_str().unwrap());
    session.run("and now?");
    let prompt = session.items().into_iter().find(|item| item["body"]["type"] == "userMessage").unwrap();
    let read = |index: usize| {
        let params = json!({ "itemId": prompt["itemId"], "index": index });
        session.request("agent/attachment/read", params)
    };
    for (index, data) in images.iter().enumerate() {
        assert_eq!(read(index).unwrap(), json!({ "mediaType": "image/png", "data": data }));
    }
    assert_eq!(read(2).unwrap_err().kind(), "invalidParams");
}

#[test]
fn a_part_that_is_none_is_refused_with_its_place() {
    let project = Project::new(&Script::new([]));
    let client = project.open();
    let session = client.session();
    let wrong = json!({ "input": [{ "type": "image", "mediaType": "image/png", "data": "AAAA" }] });
    let error = session.request("agent/turn/start", wrong).unwrap_err();
    assert_eq!((error.kind(), &error.data["path"]), ("invalidParams", &json!("input[0].data")));
}

#[test]
fn names_are_completed_in_the_units_of_the_client() {
    let project = Project::new(&Script::new([]));
    project.write("src/main.rs", "");
    project.write(".claude/commands/review.md", "Review it.");
    let client = project.open();
    let session = client.session();
    let complete =
        |text: &str, cursor: usize| session.call("agent/complete", json!({ "text": text, "cursor": cursor }));
    let found = complete("😀 see @main", 12);
    assert_eq!((&found["start"], &found["items"][0]["insertText"]), (&json!(7), &json!("@src/main.rs")));
    let found = complete("/rev", 4);
    let item = &found["items"][0];
    assert_eq!((&item["kind"], &item["insertText"]), (&json!("command"), &json!("/review ")));
    assert_eq!(complete("nothing", 7)["items"], json!([]));
}

#[test]
fn a_headless_prompt_names_files_too() {
    let project = Project::new(&Script::new([say("seen")]));
    project.write("a.txt", "the text\n");
    let ran = project.run(&["run", "what is in @a.txt?"], "");
    assert_eq!(ran.code, 0, "{ran:?}");
    assert!(said(&project.model.requests()[0]).contains("     1\tthe text"));
}
