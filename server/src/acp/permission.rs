//! Permission prompts as `session/request_permission`.
//!
//! Rule: the client shows exactly what will happen, and each lasting answer names the rule that it keeps. A request has no
//! time limit, and anything but a clear yes is a no.

use std::sync::Arc;

use agent_client_protocol_schema::v1::{
    ContentBlock, CreateElicitationRequest, CreateElicitationResponse, ElicitationAction,
    ElicitationContentValue, ElicitationFormMode, ElicitationSchema, ElicitationSessionScope,
    PermissionOption, PermissionOptionKind, RequestPermissionOutcome, RequestPermissionRequest,
    RequestPermissionResponse, SessionId, StringPropertySchema, ToolCallContent, ToolCallStatus,
    ToolCallUpdate, ToolCallUpdateFields,
};
use kode_engine::agent::engine::AttachedSession;
use kode_engine::base::ids::PermissionId;
use kode_engine::permission::{PermissionPrompt, Preview, PromptAnswer, Scope};

use super::diff::diffs;
use super::initialize::AcpClient;
use super::session::AcpSession;
use super::tool_call::{self, SessionPlaces};
use super::updates::meta;
use crate::answers::{Choice, choices};
use crate::display::{both_ends, printable};
use kode_engine::acp::peer::PeerCallError;

/// The method that asks for a permission.
pub(super) const REQUEST_PERMISSION: &str = "session/request_permission";

/// The method that shows a form.
pub(super) const ELICITATION: &str = "elicitation/create";

/// The answer that denies.
const REJECT: &str = "reject";

/// The answer that denies with a reason.
const REJECT_BECAUSE: &str = "reject-because";

/// The field of the reason.
const REASON: &str = "reason";

/// The most characters of a text beside a prompt.
const MAX_TEXT: usize = 30_000;

/// Asks the client for a permission and hands its answer to the session.
pub(super) async fn ask(session: &Arc<AcpSession>, prompt: PermissionPrompt) {
    let request = request(session, &prompt);
    let id = prompt.id.clone();
    match session.peer.request::<_, RequestPermissionResponse>(REQUEST_PERMISSION, request, None).await {
        Ok(response) => match response.outcome {
            RequestPermissionOutcome::Selected(selected) => {
                let answer = chosen(session, &prompt, &selected.option_id.0).await;
                respond(session, &id, answer).await;
            }
            // A client cancels its requests when it cancels the turn, and in no other case.
            _ => drop(session.live().map(|live| live.turns().cancel())),
        },
        // The prompt waits for the next client that loads the session.
        Err(PeerCallError::Gone) => {}
        Err(error) => {
            tracing::warn!(%error, "a permission could not be asked for");
            let feedback = Some(format!("The client could not ask the user: {error}."));
            respond(session, &id, PromptAnswer { feedback, ..denial(session) }).await;
        }
    }
}

fn request(session: &AcpSession, prompt: &PermissionPrompt) -> RequestPermissionRequest {
    let fields = ToolCallUpdateFields::new()
        .title(title(prompt))
        .name(prompt.tool.clone())
        .kind(tool_call::kind(&prompt.tool, &prompt.input))
        .status(ToolCallStatus::Pending)
        .content(content(prompt, &session.places))
        .raw_input(prompt.input.clone());
    let kode = serde_json::json!({
        "permissionId": prompt.id.as_str(), "reason": prompt.reason, "risks": prompt.risks, "notes": prompt.notes,
    });
    let id = SessionId::new(session.id.as_str());
    let call = ToolCallUpdate::new(tool_call::id(&prompt.item), fields);
    RequestPermissionRequest::new(id, call, options(prompt, &session.client)).meta(meta(kode))
}

/// The command itself, or the title of the call.
fn title(prompt: &PermissionPrompt) -> String {
    match &prompt.preview {
        Preview::Command { command, .. } => printable(command),
        Preview::Diff { .. } | Preview::Paths { .. } => printable(&prompt.title),
    }
}

fn content(prompt: &PermissionPrompt, places: &SessionPlaces) -> Vec<ToolCallContent> {
    let mut content: Vec<ToolCallContent> = Vec::new();
    let mut text = Vec::new();
    text.extend(prompt.risks.iter().map(|risk| format!("Risk: {risk}")));
    match &prompt.preview {
        Preview::Command { cwd, .. } => text.push(format!("Runs in {cwd}.")),
        Preview::Diff { unified, .. } => {
            let shown = diffs(unified, &|path| places.file(path));
            match shown.is_empty() {
                true => text.push(unified.clone()),
                false => content.extend(shown.into_iter().map(ToolCallContent::from)),
            }
        }
        Preview::Paths { paths } => text.extend(paths.iter().cloned()),
    }
    text.push(format!("Reason: {}", prompt.reason));
    text.extend(prompt.notes.iter().cloned());
    let text = text.iter().map(|line| printable(line)).collect::<Vec<_>>().join("\n");
    content.push(ContentBlock::from(both_ends(&text, MAX_TEXT)).into());
    content
}

/// The answers: those that allow from the narrowest on, and then those that deny. Clients that show one answer of a kind get
/// the narrowest of each, because their users do not see which one they give.
fn options(prompt: &PermissionPrompt, client: &AcpClient) -> Vec<PermissionOption> {
    let choices = choices(prompt);
    let option = |choice: &Choice| {
        let kind = match (choice.allow, choice.scope, choice.mode) {
            (true, Scope::Once, None) => PermissionOptionKind::AllowOnce,
            (true, ..) => PermissionOptionKind::AllowAlways,
            (false, ..) => PermissionOptionKind::RejectOnce,
        };
        PermissionOption::new(option_id(choice), choice.text(), kind)
    };
    let allowing = choices.iter().filter(|choice| choice.allow);
    let denying = choices.iter().filter(|choice| !choice.allow);
    let mut options: Vec<_> = allowing.chain(denying).map(option).collect();
    if client.has_forms() {
        options.push(PermissionOption::new(
            REJECT_BECAUSE,
            "Deny with a reason",
            PermissionOptionKind::RejectOnce,
        ));
    }
    if !client.has_all_answers() {
        let mut seen = Vec::new();
        options.retain(|option| {
            let is_first = !seen.contains(&option.kind);
            seen.push(option.kind);
            is_first
        });
    }
    options
}

fn option_id(choice: &Choice) -> &'static str {
    match (choice.allow, choice.scope, choice.mode) {
        (false, ..) => REJECT,
        (true, Scope::Once, None) => "allow",
        (true, Scope::Once, Some(_)) => "allow-edits",
        (true, Scope::Session, _) => "allow-session",
        (true, Scope::Project, _) => "allow-project",
        (true, Scope::User, _) => "allow-everywhere",
    }
}

/// The answer behind an option. One that was not offered denies.
async fn chosen(session: &Arc<AcpSession>, prompt: &PermissionPrompt, option: &str) -> PromptAnswer {
    if option == REJECT_BECAUSE {
        return PromptAnswer { feedback: reason(session, prompt).await, ..denial(session) };
    }
    let choices = choices(prompt);
    let choice = choices.iter().find(|choice| option_id(choice) == option);
    choice.map_or_else(|| denial(session), |choice| choice.answer(session.client.label()))
}

/// The reason for a denial, from a form.
async fn reason(session: &Arc<AcpSession>, prompt: &PermissionPrompt) -> Option<String> {
    let field = StringPropertySchema::new().title("Reason for the agent".to_owned());
    let schema = ElicitationSchema::new().property(REASON, field, false);
    let scope = ElicitationSessionScope::new(SessionId::new(session.id.as_str()))
        .tool_call_id(tool_call::id(&prompt.item));
    let message = format!("Why should {} not run?", prompt.tool);
    let request = CreateElicitationRequest::new(ElicitationFormMode::new(scope, schema), message);
    let response =
        session.peer.request::<_, CreateElicitationResponse>(ELICITATION, request, None).await.ok()?;
    let ElicitationAction::Accept(accepted) = response.action else { return None };
    match accepted.content?.remove(REASON)? {
        ElicitationContentValue::String(reason) => Some(reason).filter(|reason| !reason.trim().is_empty()),
        _ => None,
    }
}

fn denial(session: &AcpSession) -> PromptAnswer {
    PromptAnswer { by: session.client.label().to_owned(), ..PromptAnswer::default() }
}

async fn respond(session: &AcpSession, id: &PermissionId, answer: PromptAnswer) {
    let answered = match session.attached() {
        Ok(AttachedSession::Live(live)) => {
            live.requests().respond(id, answer).map_err(|error| error.to_string())
        }
        Ok(AttachedSession::Following(following)) => {
            following.respond(id, answer).await.map_err(|error| error.to_string())
        }
        Err(error) => Err(error.to_string()),
    };
    if let Err(error) = answered {
        tracing::info!(error, "an answer to a permission prompt was not accepted");
    }
}

/// A form's values by field.
pub(super) type FormValues = std::collections::BTreeMap<String, ElicitationContentValue>;

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use kode_engine::base::ids::{CallId, ItemId};
    use kode_engine::base::mode::Mode;
    use kode_engine::base::paths::AbsPath;
    use kode_engine::permission::Offer;
    use serde_json::json;

    use super::*;

    fn prompt(preview: Preview) -> PermissionPrompt {
        let scopes = vec![Scope::Once, Scope::Session, Scope::Project, Scope::User];
        let offer = |scope| Offer { scope, rules: vec!["Bash(ls:*)".into()], spared: None };
        PermissionPrompt {
            id: PermissionId::generate(),
            call: CallId::generate(),
            item: ItemId::generate(),
            agent: None,
            tool: "Bash".into(),
            title: "Run ls".into(),
            reason: "no rule allows it".into(),
            preview,
            risks: vec!["It reads.".into()],
            notes: Vec::new(),
            diagnostics: None,
            offers: scopes[1..].iter().copied().map(offer).collect(),
            scopes,
            mode: Some(Mode::AcceptEdits),
            input: json!({ "command": "ls" }),
            timestamp: Timestamp::now(),
        }
    }

    fn client(name: Option<&str>, capabilities: serde_json::Value) -> AcpClient {
        let capabilities = serde_json::from_value(capabilities).unwrap();
        AcpClient { name: name.map(str::to_owned), title: None, capabilities }
    }

    #[test]
    fn lasting_answers_name_their_rule_and_the_narrowest_comes_first() {
        let command = Preview::Command { command: "ls\u{202e}".into(), cwd: "/w".into(), sandboxed: true };
        let prompt = prompt(command);
        let forms = json!({ "elicitation": { "form": {} } });
        let shown: Vec<_> = options(&prompt, &client(Some("zed"), forms))
            .iter()
            .map(|option| {
                let value = serde_json::to_value(option).unwrap();
                let text = |key: &str| value[key].as_str().unwrap().to_owned();
                (text("optionId"), text("kind"), text("name"))
            })
            .collect();
        let row = |id: &str, kind: &str, name: &str| (id.to_owned(), kind.to_owned(), name.to_owned());
        assert_eq!(
            shown,
            [
                row("allow", "allow_once", "Allow once"),
                row("allow-session", "allow_always", "Allow for this session: Bash(ls:*)"),
                row("allow-edits", "allow_always", "Allow all edits for this session: mode acceptEdits"),
                row("allow-project", "allow_always", "Always allow in this project: Bash(ls:*)"),
                row("allow-everywhere", "allow_always", "Always allow everywhere: Bash(ls:*)"),
                row("reject", "reject_once", "Deny"),
                row("reject-because", "reject_once", "Deny with a reason"),
            ]
        );
        assert_eq!(title(&prompt), "ls\\u{202e}");
    }

    #[test]
    fn a_client_that_shows_one_answer_of_a_kind_gets_the_narrowest() {
        let prompt = prompt(Preview::Command { command: "ls".into(), cwd: "/w".into(), sandboxed: true });
        for name in [Some("CodeCompanion.nvim"), None] {
            let offered = options(&prompt, &client(name, json!({})));
            let ids: Vec<_> = offered.iter().map(|option| &*option.option_id.0).collect();
            assert_eq!(ids, ["allow", "allow-session", "reject"], "{name:?}");
        }
    }

    #[test]
    fn an_edit_is_shown_as_its_diff_and_the_reason_below_it() {
        let unified = "--- a/a.rs\n+++ b/a.rs\n@@ -1,1 +1,1 @@\n-x\n+y\n".to_owned();
        let root = AbsPath::new("/w").unwrap();
        let places = SessionPlaces { roots: vec![root.clone()], cwd: root };
        let shown = content(&prompt(Preview::Diff { paths: vec!["a.rs".into()], unified }), &places);
        let shown = serde_json::to_value(shown).unwrap();
        assert_eq!((&shown[0]["type"], &shown[0]["path"]), (&json!("diff"), &json!("/w/a.rs")));
        assert_eq!(shown[1]["content"]["text"], "Risk: It reads.\nReason: no rule allows it");
    }
}
