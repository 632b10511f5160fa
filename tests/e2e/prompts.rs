//! Many open questions at once: a call that waits for the user holds up no other.

use kode_e2e::{Project, Script, Typing, call, say};
use serde_json::{Value, json};

const SESSIONS: usize = 64;
const CHANGES: usize = 10_000;

#[test]
fn sixty_four_open_prompts_hold_up_neither_typing_nor_requests() {
    let script = Script::default()
        .when("^ask", [call("Bash", json!({ "command": "expr answered" })), say("Thanks.")])
        .when("^read", [call("Read", json!({ "file_path": "{{cwd}}/typed.txt" })), say("Read.")]);
    let project = Project::new(&script);
    project.write("typed.txt", "on disk\n");
    let client = project.open();
    let uri = project.uri("typed.txt");
    client.editor.open(&uri, "");

    let asking: Vec<_> = (0..SESSIONS).map(|_| client.session()).collect();
    let turns: Vec<String> = asking.iter().map(|session| session.prompt("ask")).collect();
    for session in &asking {
        session.wait_permission(0);
    }

    // The user types all over the text, so that a change out of order shows.
    let mut requests = Vec::new();
    for change in 0..CHANGES {
        let key = char::from(b'a' + u8::try_from(change % 26).unwrap());
        let text = if change % 20 == 19 { format!("{key}\n") } else { key.to_string() };
        let share = u16::try_from(change * 7919 % usize::from(u16::MAX)).unwrap();
        client.editor.type_text(&uri, &Typing::at(share, &text));
        if change % 500 == 0 {
            let session = &asking[change / 500 % SESSIONS];
            let load = json!({ "sessionId": session.id });
            requests.push(client.send_request("agent/session/load", load));
            requests.push(client.send_request("agent/permission/list", json!({ "sessionId": session.id })));
        }
    }
    for request in requests {
        client.await_answer(request).expect("requests are answered while prompts are open");
    }
    for session in &asking {
        assert_eq!(session.snapshot()["pendingPermissions"].as_array().unwrap().len(), 1);
    }

    // The typed text is what a session reads, to the last character.
    let reading = client.session();
    reading.run("read");
    let [(text, is_error)] = project.model.last_results().try_into().unwrap();
    assert!(!is_error, "{text}");
    for (number, line) in client.editor.text(&uri).lines().enumerate() {
        assert!(text.contains(line), "line {number} is not what was typed: {line:?}");
    }

    for session in &asking {
        let prompt = session.wait_permission(0);
        session.respond(&prompt, json!({ "decision": "allow", "scope": "once" })).unwrap();
    }
    for (session, turn) in asking.iter().zip(&turns) {
        assert_eq!(session.wait_done(turn)["stopReason"], "end_turn");
        let states: Vec<Value> = session.calls().iter().map(|call| call["state"].clone()).collect();
        assert_eq!(states, ["COMPLETED"]);
    }
}
