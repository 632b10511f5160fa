//! Guests over pipes in memory, with a desk that notes what reaches it.

use std::path::PathBuf;

use async_trait::async_trait;
use futures::future::BoxFuture;
use serde_json::{Value, json};
use tokio::io::{
    AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream, ReadHalf, WriteHalf, duplex, split,
};
use tokio_util::sync::CancellationToken;

use super::talk::{GuestTalk, MAX_INVALID, MAX_PENDING, SILENCE_LIMIT, TalkEnd};
use kode_base::call::{ToolError, ToolErrorKind};
use kode_base::paths::AbsPath;
use kode_tool::guest::{GuestAction, GuestAnswer, GuestDesk, GuestEnd, GuestReport};

/// Shows one text, permits nothing, and lets requests for other files wait for ever.
struct Desk;

#[async_trait]
impl GuestDesk for Desk {
    async fn read(&self, path: PathBuf, _: Option<u32>, _: Option<u32>) -> Result<String, ToolError> {
        match path.ends_with("a.txt") {
            true => Ok("unsaved".to_owned()),
            false => std::future::pending().await,
        }
    }

    async fn write(&self, _: PathBuf, _: String) -> Result<(), ToolError> {
        Err(ToolError::new(ToolErrorKind::Denied, "A rule forbids it.", "Leave it."))
    }

    async fn permit(&self, _: GuestAction) -> GuestAnswer {
        GuestAnswer::Denied
    }

    fn report(&self, _: GuestReport) -> Option<BoxFuture<'_, ()>> {
        None
    }
}

/// The guest's side of the pipes.
struct Guest {
    input: BufReader<ReadHalf<DuplexStream>>,
    output: WriteHalf<DuplexStream>,
}

impl Guest {
    async fn next(&mut self) -> Value {
        let mut line = String::new();
        self.input.read_line(&mut line).await.unwrap();
        serde_json::from_str(&line).unwrap()
    }

    async fn say(&mut self, message: Value) {
        self.output.write_all(format!("{message}\n").as_bytes()).await.unwrap();
    }

    async fn answer(&mut self, request: &Value, result: Value) {
        self.say(json!({ "jsonrpc": "2.0", "id": request["id"], "result": result })).await;
    }

    async fn ask(&mut self, id: i64, method: &str, params: Value) {
        self.say(json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params })).await;
    }

    /// Answers up to the prompt, which it gives.
    async fn begin(&mut self) -> Value {
        let request = self.next().await;
        assert_eq!(request["params"]["clientCapabilities"]["fs"]["writeTextFile"], true);
        assert_eq!(request["params"]["clientCapabilities"]["terminal"], json!(false));
        self.answer(&request, json!({ "protocolVersion": 1 })).await;
        let request = self.next().await;
        assert_eq!((&request["method"], &request["params"]["cwd"]), (&json!("session/new"), &json!("/w")));
        self.answer(&request, json!({ "sessionId": "s" })).await;
        self.next().await
    }
}

/// Runs a guest beside this side.
async fn run<F>(cancel: &CancellationToken, guest: impl FnOnce(Guest) -> F) -> Result<GuestEnd, TalkEnd>
where
    F: Future<Output = Guest>,
{
    let (ours, theirs) = duplex(1 << 16);
    let (output, input) = split(ours);
    let (reading, writing) = split(theirs);
    let guest = guest(Guest { input: BufReader::new(reading), output: writing });
    let mut talk = GuestTalk::new(output, input, &Desk);
    let cwd = AbsPath::new("/w").unwrap();
    let (ended, _guest) = tokio::join!(talk.run(&cwd, (None, "Do it.".to_owned()), cancel), guest);
    ended
}

#[tokio::test]
async fn a_guest_gets_its_task_and_answers_to_its_requests() {
    let cancel = CancellationToken::new();
    let ended = run(&cancel, async |mut guest: Guest| {
        let prompt = guest.begin().await;
        assert_eq!(prompt["params"]["prompt"][0]["text"], "Do it.");
        guest.ask(1, "fs/read_text_file", json!({ "sessionId": "s", "path": "/w/a.txt" })).await;
        assert_eq!(guest.next().await["result"]["content"], "unsaved");
        let write = json!({ "sessionId": "s", "path": "/w/a.txt", "content": "" });
        guest.ask(2, "fs/write_text_file", write).await;
        let refused = guest.next().await;
        assert_eq!(refused["error"]["message"], "A rule forbids it. Leave it.");
        let option = json!([{ "optionId": "no", "name": "No", "kind": "reject_once" }]);
        let wish = json!({ "sessionId": "s", "toolCall": { "toolCallId": "1" }, "options": option });
        guest.ask(3, "session/request_permission", wish).await;
        let answer = guest.next().await;
        assert_eq!(answer["result"]["outcome"], json!({ "outcome": "selected", "optionId": "no" }));
        for (id, method, params, code) in [
            (4, "terminal/create", json!({ "sessionId": "s", "command": "sh" }), -32_601),
            (5, "fs/read_text_file", json!({ "sessionId": "another", "path": "/w/a.txt" }), -32_602),
            (6, "fs/read_text_file", json!({ "sessionId": "s" }), -32_602),
        ] {
            guest.ask(id, method, params).await;
            let answer = guest.next().await;
            assert_eq!((&answer["id"], &answer["error"]["code"]), (&json!(id), &json!(code)), "{answer}");
        }
        guest.answer(&prompt, json!({ "stopReason": "max_tokens" })).await;
        guest
    });
    assert_eq!(ended.await, Ok(GuestEnd::MaxTokens));
}

#[tokio::test]
async fn a_cancelled_guest_is_told_so_and_its_open_requests_are_dropped() {
    let cancel = CancellationToken::new();
    let ended = run(&cancel, async |mut guest: Guest| {
        let prompt = guest.begin().await;
        guest.ask(1, "fs/read_text_file", json!({ "sessionId": "s", "path": "/w/never" })).await;
        cancel.cancel();
        assert_eq!(guest.next().await["method"], "session/cancel");
        guest.answer(&prompt, json!({ "stopReason": "cancelled" })).await;
        guest
    });
    assert_eq!(ended.await, Ok(GuestEnd::Cancelled));
}

#[tokio::test(start_paused = true)]
async fn a_guest_that_ignores_the_cancel_is_left() {
    let cancel = CancellationToken::new();
    let ended = run(&cancel, async |mut guest: Guest| {
        guest.begin().await;
        cancel.cancel();
        guest
    });
    assert_eq!(ended.await, Ok(GuestEnd::Cancelled));
}

#[tokio::test(start_paused = true)]
async fn silence_ends_a_guest_unless_it_waits_for_an_answer_itself() {
    let failed = |ended: Result<GuestEnd, TalkEnd>| match ended {
        Err(TalkEnd::Failed { what, .. }) => what,
        other => panic!("{other:?}"),
    };
    let cancel = CancellationToken::new();
    let ended = run(&cancel, async |mut guest: Guest| {
        guest.begin().await;
        guest
    });
    assert_eq!(failed(ended.await), "said nothing for 30 minutes and was ended");
    let ended = run(&cancel, async |mut guest: Guest| {
        let prompt = guest.begin().await;
        guest.ask(1, "fs/read_text_file", json!({ "sessionId": "s", "path": "/w/never" })).await;
        tokio::time::sleep(3 * SILENCE_LIMIT).await;
        guest.answer(&prompt, json!({ "stopReason": "end_turn" })).await;
        guest
    });
    assert_eq!(ended.await, Ok(GuestEnd::Finished));
    // The handshake has a limit of its own.
    let ended = run(&cancel, async |guest: Guest| guest);
    assert_eq!(failed(ended.await), "did not answer `initialize` within 120 s");
}

#[tokio::test]
async fn what_is_no_message_is_forgiven_a_few_times() {
    let cancel = CancellationToken::new();
    let ended = run(&cancel, async |mut guest: Guest| {
        guest.output.write_all(b"Welcome!\n[]\n{\"jsonrpc\":\"1.0\"}\n").await.unwrap();
        let prompt = guest.begin().await;
        guest
            .say(json!({ "jsonrpc": "2.0", "method": "session/update", "params": { "sessionId": 7 } }))
            .await;
        guest.answer(&prompt, json!({ "stopReason": "end_turn" })).await;
        guest
    });
    assert_eq!(ended.await, Ok(GuestEnd::Finished));
    let ended = run(&cancel, async |mut guest: Guest| {
        for _ in 0..=MAX_INVALID {
            guest.output.write_all(b"\x1b[31mno json\n").await.unwrap();
        }
        guest
    });
    let Err(TalkEnd::Failed { what, hint }) = ended.await else { panic!("it is ended") };
    assert!(what.starts_with("sends lines that are no messages") && hint.contains("`runs`"), "{what} {hint}");
}

#[tokio::test]
async fn requests_beyond_the_limit_are_answered_at_once() {
    let cancel = CancellationToken::new();
    let ended = run(&cancel, async |mut guest: Guest| {
        let prompt = guest.begin().await;
        for id in 0..=i64::try_from(MAX_PENDING).unwrap() {
            guest.ask(id, "fs/read_text_file", json!({ "sessionId": "s", "path": "/w/never" })).await;
        }
        let refused = guest.next().await;
        assert_eq!((&refused["id"], &refused["error"]["code"]), (&json!(MAX_PENDING), &json!(-32_600)));
        let cancel = json!({ "jsonrpc": "2.0", "method": "$/cancel_request", "params": { "requestId": 3 } });
        guest.say(cancel).await;
        let cancelled = guest.next().await;
        assert_eq!((&cancelled["id"], &cancelled["error"]["code"]), (&json!(3), &json!(-32_800)));
        guest.answer(&prompt, json!({ "stopReason": "end_turn" })).await;
        guest
    });
    assert_eq!(ended.await, Ok(GuestEnd::Finished));
}

#[tokio::test]
async fn what_the_handshake_fails_with_is_told_apart() {
    let cancel = CancellationToken::new();
    let ended = run(&cancel, async |mut guest: Guest| {
        let request = guest.next().await;
        guest.answer(&request, json!({ "protocolVersion": 2 })).await;
        guest
    });
    let Err(TalkEnd::Failed { what, .. }) = ended.await else { panic!("it is ended") };
    assert_eq!(what, "speaks version 2 of the protocol alone");
    let ended = run(&cancel, async |mut guest: Guest| {
        let request = guest.next().await;
        guest.answer(&request, json!({ "protocolVersion": 1 })).await;
        let request = guest.next().await;
        let error = json!({ "code": -32_000, "message": "log in\nfirst" });
        guest.say(json!({ "jsonrpc": "2.0", "id": request["id"], "error": error })).await;
        guest
    });
    let Err(TalkEnd::Failed { what, hint }) = ended.await else { panic!("it is ended") };
    assert!(what == "is not signed in: log in first" && hint.contains("sign in"), "{what} {hint}");
    let ended = run(&cancel, async |mut guest: Guest| {
        guest.begin().await;
        guest.output.shutdown().await.unwrap();
        guest
    });
    assert_eq!(ended.await, Err(TalkEnd::Gone));
}
