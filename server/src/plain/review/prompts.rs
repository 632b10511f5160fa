//! Permission prompts that wait, as code actions and as diagnostics: for editors that cannot ask, and for users who closed
//! the question.
//!
//! Rule: only waiting prompts are offered, the no before the yes, and only if the user asked for actions.

use std::collections::BTreeMap;

use kode_engine::agent::session::Session;
use kode_engine::permission::PermissionPrompt;
use lsp_types::{
    CodeAction, CodeActionKind, CodeActionOrCommand, CodeActionParams, CodeActionTriggerKind, Command,
    Diagnostic, DiagnosticSeverity, NumberOrString, Position, Range, Url,
};
use serde_json::json;

use super::actions::{contains, fitting};
use super::diagnostics::SOURCE;
use super::place::HunkLocation;
use super::words::short;
use crate::agent::Agent;
use crate::answers::{Choice, choices};
use crate::client::ClientFacts;
use crate::connection::ClientConnection;
use crate::plain::PlainFrontEnd;

/// The kind of actions that answer a prompt.
const KIND: CodeActionKind = CodeActionKind::new("quickfix.kode.permission");
/// The code of diagnostics that report a prompt.
const CODE: &str = "kode.permission";
/// Maximum number of prompts on offer; commands reach all of them.
const SHOWN_PROMPTS: usize = 8;

/// The prompts that wait and are ours to ask, the oldest session first.
pub(crate) fn waiting(agent: &Agent, facts: &ClientFacts) -> Vec<PermissionPrompt> {
    if facts.kode.events && facts.kode.permission_ui {
        return Vec::new();
    }
    let mut sessions = agent.engine.live_sessions();
    sessions.sort_by(|a, b| a.id().cmp(b.id()));
    sessions.iter().flat_map(|session| session.requests().permissions()).take(SHOWN_PROMPTS).collect()
}

/// The actions that answer prompts, wherever the cursor is.
pub(crate) fn actions(
    prompts: &[PermissionPrompt],
    request: &CodeActionParams,
    literals: bool,
) -> Vec<CodeActionOrCommand> {
    let context = &request.context;
    let is_wanted =
        context.only.as_ref().is_none_or(|only| only.iter().any(|wanted| contains(wanted, &KIND)));
    if context.trigger_kind == Some(CodeActionTriggerKind::AUTOMATIC) || !is_wanted {
        return Vec::new();
    }
    let offered = prompts.iter().flat_map(|prompt| {
        let answers = choices(prompt).into_iter().filter(Choice::ends_with_session);
        answers.map(|choice| action(prompt, &choice, &context.diagnostics))
    });
    offered.filter_map(|action| fitting(action, literals)).collect()
}

fn action(prompt: &PermissionPrompt, choice: &Choice, diagnostics: &[Diagnostic]) -> CodeAction {
    let mut argument = json!({ "permissionId": prompt.id });
    if choice.allow {
        argument["scope"] = json!(choice.scope);
    }
    if let Some(mode) = choice.mode {
        argument["mode"] = json!(mode);
    }
    let name = if choice.allow { "kode.allow" } else { "kode.deny" };
    let title = format!("Kode: {}: {}", choice.label, short(&prompt.title));
    let reported: Vec<_> = diagnostics.iter().filter(|reported| is_of(reported, prompt)).cloned().collect();
    CodeAction {
        title: title.clone(),
        kind: Some(KIND),
        diagnostics: (!reported.is_empty()).then_some(reported),
        command: Some(Command { title, command: name.to_owned(), arguments: Some(vec![argument]) }),
        ..CodeAction::default()
    }
}

/// Whether a diagnostic that the editor sends back is the one of this prompt.
fn is_of(diagnostic: &Diagnostic, prompt: &PermissionPrompt) -> bool {
    let is_ours = matches!(&diagnostic.code, Some(NumberOrString::String(code)) if code == CODE);
    let named = diagnostic.data.as_ref().and_then(|data| data.get("permissionId"));
    // Editors that keep no `data` send the rest back.
    is_ours && named.is_none_or(|id| id.as_str() == Some(prompt.id.as_str()))
}

/// The diagnostics that report prompts, where the client cannot be asked by a message: at the change that is asked about,
/// and at the top of every open document where it is about none.
pub(super) fn current(front_end: &PlainFrontEnd) -> BTreeMap<Url, Vec<Diagnostic>> {
    let mut files: BTreeMap<Url, Vec<Diagnostic>> = BTreeMap::new();
    let connection = &front_end.connection;
    let (Some(agent), Some(facts)) = (front_end.live_agent(), connection.facts.get()) else { return files };
    if facts.show_message_request {
        return files;
    }
    let prompts = waiting(agent, facts);
    if prompts.is_empty() {
        return files;
    }
    let sessions = agent.engine.live_sessions();
    for prompt in &prompts {
        let mut places: Vec<_> =
            sessions.iter().filter_map(|session| place(connection, session, prompt)).collect();
        if places.is_empty() {
            let open = connection.documents.all().into_iter();
            let top = |uri: String| Some((Url::parse(&uri).ok()?, Range::default()));
            places.extend(open.filter_map(|document| top(document.uri)));
        }
        for (uri, range) in places {
            files.entry(uri).or_default().push(diagnostic(prompt, range));
        }
    }
    files
}

/// Where the first change that a prompt is about would be.
fn place(
    connection: &ClientConnection,
    session: &Session,
    prompt: &PermissionPrompt,
) -> Option<(Url, Range)> {
    session.edits().review().into_iter().find_map(|file| {
        let hunk = file.hunks.iter().find(|hunk| hunk.permission.as_ref() == Some(&prompt.id))?;
        let start: Position = HunkLocation::of(&file.text, hunk).start();
        let uri = connection.documents.uri_of(&file.target);
        Some((Url::parse(&uri).ok()?, Range::new(start, start)))
    })
}

fn diagnostic(prompt: &PermissionPrompt, range: Range) -> Diagnostic {
    Diagnostic {
        range,
        severity: Some(DiagnosticSeverity::INFORMATION),
        code: Some(NumberOrString::String(CODE.to_owned())),
        source: Some(SOURCE.to_owned()),
        message: format!("Kode asks: {}. Allow or deny it with a code action.", short(&prompt.title)),
        data: Some(json!({ "permissionId": prompt.id })),
        ..Diagnostic::default()
    }
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use kode_engine::base::ids::{CallId, ItemId, PermissionId};
    use kode_engine::permission::{Preview, Scope};
    use serde_json::Value;

    use super::*;

    fn prompt(title: &str, scopes: &[Scope]) -> PermissionPrompt {
        PermissionPrompt {
            id: PermissionId::generate(),
            call: CallId::from_external("call_1"),
            item: ItemId::generate(),
            agent: None,
            tool: "Bash".to_owned(),
            title: title.to_owned(),
            reason: "mode default asks".to_owned(),
            preview: Preview::Paths { paths: Vec::new() },
            risks: Vec::new(),
            notes: Vec::new(),
            diagnostics: None,
            mode: None,
            scopes: scopes.to_vec(),
            offers: Vec::new(),
            input: Value::Null,
            timestamp: Timestamp::now(),
        }
    }

    fn request(context: &Value) -> CodeActionParams {
        let mut whole = json!({ "diagnostics": [] });
        whole.as_object_mut().unwrap().extend(context.as_object().unwrap().clone());
        let nowhere = json!({ "line": 0, "character": 0 });
        serde_json::from_value(json!({
            "textDocument": { "uri": "file:///w/a.rs" },
            "range": { "start": nowhere, "end": nowhere },
            "context": whole,
        }))
        .unwrap()
    }

    fn given(prompts: &[PermissionPrompt], context: &Value) -> Vec<Value> {
        let given = actions(prompts, &request(context), true).into_iter();
        given.map(|action| serde_json::to_value(action).unwrap()).collect()
    }

    #[test]
    fn each_prompt_is_answered_by_actions_the_no_first() {
        let waiting =
            [prompt("Bash make\nall", &[Scope::Once, Scope::Session]), prompt("Read x", &[Scope::Once])];
        let given = given(&waiting, &json!({}));
        let titles: Vec<_> = given.iter().map(|action| action["title"].as_str().unwrap()).collect();
        assert_eq!(
            titles,
            [
                "Kode: Deny: Bash make all",
                "Kode: Allow once: Bash make all",
                "Kode: Allow for this session: Bash make all",
                "Kode: Deny: Read x",
                "Kode: Allow once: Read x",
            ]
        );
        let deny = json!([{ "permissionId": waiting[0].id }]);
        assert_eq!(
            (&given[0]["command"]["command"], &given[0]["command"]["arguments"]),
            (&json!("kode.deny"), &deny)
        );
        let session = json!([{ "permissionId": waiting[0].id, "scope": "session" }]);
        assert_eq!(given[2]["command"]["arguments"], session);
        let commands = actions(&waiting[1..], &request(&json!({})), false);
        assert_eq!(serde_json::to_value(&commands[0]).unwrap()["command"], "kode.deny");
    }

    #[test]
    fn they_are_for_those_who_asked_and_belong_to_their_diagnostic() {
        let waiting = [prompt("One", &[Scope::Once]), prompt("Two", &[Scope::Once])];
        assert_eq!(given(&waiting, &json!({ "triggerKind": 2 })).len(), 0);
        assert_eq!(given(&waiting, &json!({ "only": ["source"] })).len(), 0);
        let reported = serde_json::to_value(diagnostic(&waiting[0], Range::default())).unwrap();
        let given = given(&waiting, &json!({ "only": ["quickfix"], "diagnostics": [reported] }));
        assert_eq!(given[0]["diagnostics"], json!([reported]));
        assert_eq!(given[2].get("diagnostics"), None);
    }
}
