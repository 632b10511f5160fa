//! Questions to the user: a form or a page where the client has them, and otherwise a permission request for each question.
//!
//! Rule: a question has no time limit, and a page is opened by the client alone, after the user's yes. A plan is always a
//! permission request, each answer of which names the mode that follows.

use std::sync::Arc;

use agent_client_protocol_schema::v1::{
    CompleteElicitationNotification, ContentBlock, CreateElicitationRequest, CreateElicitationResponse,
    ElicitationAction, ElicitationContentValue, ElicitationFormMode, ElicitationSchema,
    ElicitationSessionScope, ElicitationUrlMode, EnumOption, MultiSelectPropertySchema, PermissionOption,
    PermissionOptionKind, RequestPermissionOutcome, RequestPermissionRequest, RequestPermissionResponse,
    SessionId, StringPropertySchema, ToolCallContent, ToolCallId, ToolCallStatus, ToolCallUpdate,
    ToolCallUpdateFields, ToolKind,
};
use kode_engine::agent::engine::AttachedSession;
use kode_engine::base::mode::Mode;
use kode_engine::base::page::PageOffer;
use kode_engine::base::question::{
    Inquiry, InquiryAnswer, PAGE_OPEN, PLAN_ACCEPT, PLAN_ACCEPT_EDITS, Question, QuestionKind, Reply,
};
use kode_engine::base::task;

use super::permission::{ELICITATION, FormValues, REQUEST_PERMISSION};
use super::session::AcpSession;
use super::tool_call;
use crate::display::{printable, question_lines};
use kode_engine::acp::peer::PeerCallError;

/// The notification that a page is done.
const ELICITATION_COMPLETE: &str = "elicitation/complete";

/// The option that refuses to answer.
const REFUSE: &str = "refuse";

/// How the user answered.
enum UserReply {
    /// One answer for each question.
    Answers(Vec<InquiryAnswer>),
    /// The user does not want to answer.
    Refusal,
    /// The turn was cancelled.
    Cancel,
}

/// Asks the client a question and hands the answer to the session.
pub(super) async fn ask(session: &Arc<AcpSession>, question: Question) {
    let has_form = session.client.has_forms() && question.draft.kind != QuestionKind::Plan;
    let reply = match &question.draft.page {
        Some(page) if session.client.has_pages() => by_page(session, &question, page).await,
        None if has_form => by_form(session, &question).await,
        Some(_) | None => by_permissions(session, &question).await,
    };
    let by = session.client.label().to_owned();
    let reply = match reply {
        Ok(UserReply::Answers(answers)) => Reply { answers: Some(answers), by, ..Reply::default() },
        Ok(UserReply::Refusal) => Reply { by, ..Reply::default() },
        Ok(UserReply::Cancel) => return drop(session.live().map(|live| live.turns().cancel())),
        // The question waits for the next client that loads the session.
        Err(PeerCallError::Gone) => return,
        Err(error) => {
            tracing::warn!(%error, "a question could not be asked");
            let feedback = Some(format!("The client could not ask the user: {error}."));
            Reply { feedback, by, ..Reply::default() }
        }
    };
    let answered = match session.attached() {
        Ok(AttachedSession::Live(live)) => {
            live.requests().reply(&question.id, reply).map_err(|error| error.to_string())
        }
        Ok(AttachedSession::Following(following)) => {
            following.reply(&question.id, reply).await.map_err(|error| error.to_string())
        }
        Err(error) => Err(error.to_string()),
    };
    if let Err(error) = answered {
        tracing::info!(error, "an answer to a question was not accepted");
    }
}

/// Has the client show a page, and notifies it when the page is done, also after its answer.
async fn by_page(
    session: &AcpSession,
    question: &Question,
    page: &PageOffer,
) -> Result<UserReply, PeerCallError> {
    let id = question.id.as_str().to_owned();
    let (peer, mut completion) = (Arc::clone(&session.peer), page.completion.clone());
    let notice = CompleteElicitationNotification::new(id.clone());
    task::spawn(async move {
        if completion.reported().await {
            peer.notify(ELICITATION_COMPLETE, notice).await;
        }
    });
    let message = question.draft.questions.iter().map(|inquiry| printable(&inquiry.question));
    let message = message.collect::<Vec<_>>().join("\n");
    let mode = ElicitationUrlMode::new(scope(session, question), id, page.address.as_str());
    let request = CreateElicitationRequest::new(mode, message);
    let response: CreateElicitationResponse = session.peer.request(ELICITATION, request, None).await?;
    Ok(match response.action {
        ElicitationAction::Accept(_) => {
            UserReply::Answers(vec![InquiryAnswer { labels: vec![PAGE_OPEN.to_owned()], text: None }])
        }
        _ => UserReply::Refusal,
    })
}

fn scope(session: &AcpSession, question: &Question) -> ElicitationSessionScope {
    let scope = ElicitationSessionScope::new(SessionId::new(session.id.as_str()));
    match &question.item {
        Some(item) => scope.tool_call_id(tool_call::id(item)),
        None => scope,
    }
}

async fn by_form(session: &AcpSession, question: &Question) -> Result<UserReply, PeerCallError> {
    let questions = &question.draft.questions;
    let takes_words = question.draft.kind == QuestionKind::Choice;
    let mut schema = ElicitationSchema::new();
    for (at, inquiry) in questions.iter().enumerate() {
        let title = printable(&inquiry.question);
        let options: Vec<_> = inquiry.options.iter().map(option).collect();
        schema = match inquiry.multi_select {
            true => {
                schema.property(field(at), MultiSelectPropertySchema::titled(options).title(title), false)
            }
            false => {
                let choice = StringPropertySchema::new().title(title).one_of(options);
                schema.property(field(at), choice, !takes_words)
            }
        };
        if takes_words {
            let words = StringPropertySchema::new().title(format!("{}: another answer", inquiry.header));
            schema = schema.property(words_field(at), words, false);
        }
    }
    let message = questions.iter().flat_map(|inquiry| question_lines(question, inquiry)).collect::<Vec<_>>();
    let mode = ElicitationFormMode::new(scope(session, question), schema);
    let request = CreateElicitationRequest::new(mode, message.join("\n"));
    let response: CreateElicitationResponse = session.peer.request(ELICITATION, request, None).await?;
    Ok(match response.action {
        ElicitationAction::Accept(accepted) => answers(questions, &accepted.content.unwrap_or_default())
            .map_or(UserReply::Refusal, UserReply::Answers),
        _ => UserReply::Refusal,
    })
}

fn field(at: usize) -> String {
    format!("answer{}", at + 1)
}

fn words_field(at: usize) -> String {
    format!("other{}", at + 1)
}

fn option(option: &kode_engine::base::question::QuestionOption) -> EnumOption {
    let description = Some(option.description.clone()).filter(|text| !text.is_empty());
    EnumOption::new(option.label.clone(), printable(&option.label)).description(description)
}

/// The answers of a form; `None` when one is missing.
fn answers(questions: &[Inquiry], values: &FormValues) -> Option<Vec<InquiryAnswer>> {
    let answer = |at: usize| {
        let labels = match values.get(&field(at)) {
            Some(ElicitationContentValue::String(label)) if !label.is_empty() => vec![label.clone()],
            Some(ElicitationContentValue::StringArray(labels)) => labels.clone(),
            _ => Vec::new(),
        };
        let text = match values.get(&words_field(at)) {
            Some(ElicitationContentValue::String(text)) => Some(text.clone()),
            _ => None,
        };
        let text = text.filter(|text| !text.trim().is_empty());
        (!labels.is_empty() || text.is_some()).then_some(InquiryAnswer { labels, text })
    };
    (0..questions.len()).map(answer).collect()
}

async fn by_permissions(session: &AcpSession, question: &Question) -> Result<UserReply, PeerCallError> {
    let mut answers = Vec::new();
    for (at, inquiry) in question.draft.questions.iter().enumerate() {
        let request = permission_request(session, question, inquiry, at);
        let response: RequestPermissionResponse =
            session.peer.request(REQUEST_PERMISSION, request, None).await?;
        let RequestPermissionOutcome::Selected(selected) = response.outcome else {
            return Ok(UserReply::Cancel);
        };
        let chosen = selected.option_id.0.parse::<usize>().ok();
        let Some(option) = chosen.and_then(|at| inquiry.options.get(at)) else {
            return Ok(UserReply::Refusal);
        };
        answers.push(InquiryAnswer { labels: vec![option.label.clone()], text: None });
    }
    Ok(UserReply::Answers(answers))
}

fn permission_request(
    session: &AcpSession,
    question: &Question,
    inquiry: &Inquiry,
    at: usize,
) -> RequestPermissionRequest {
    let is_plan = question.draft.kind == QuestionKind::Plan;
    let content: ToolCallContent = match (&question.draft.plan, is_plan) {
        (Some(plan), true) => ContentBlock::from(plan.clone()).into(),
        _ => ContentBlock::from(question_lines(question, inquiry).join("\n")).into(),
    };
    let fields = ToolCallUpdateFields::new()
        .title(printable(&inquiry.question))
        .kind(if is_plan { ToolKind::SwitchMode } else { ToolKind::Other })
        .status(ToolCallStatus::Pending)
        .content(vec![content]);
    let call = match &question.item {
        Some(item) => tool_call::id(item),
        None => ToolCallId::new(question.id.as_str()),
    };
    let options = match (is_plan, &question.draft.page) {
        (true, _) => plan_options(inquiry),
        (false, Some(_)) => page_options(inquiry),
        (false, None) => choice_options(inquiry),
    };
    let kode = serde_json::json!({ "questionId": question.id.as_str(), "question": at });
    RequestPermissionRequest::new(
        SessionId::new(session.id.as_str()),
        ToolCallUpdate::new(call, fields),
        options,
    )
    .meta(super::updates::meta(kode))
}

/// The answers to a plan, each with the mode that follows; the first accepts.
fn plan_options(inquiry: &Inquiry) -> Vec<PermissionOption> {
    let option = |(at, option): (usize, &kode_engine::base::question::QuestionOption)| {
        let (kind, mode) = match option.label.as_str() {
            PLAN_ACCEPT => (PermissionOptionKind::AllowOnce, "the mode before plan mode".to_owned()),
            PLAN_ACCEPT_EDITS => {
                (PermissionOptionKind::AllowAlways, format!("mode {}", Mode::AcceptEdits.name()))
            }
            _ => (PermissionOptionKind::RejectOnce, format!("mode {}", Mode::Plan.name())),
        };
        PermissionOption::new(at.to_string(), format!("{}: {mode}", option.label), kind)
    };
    let mut options: Vec<_> = inquiry.options.iter().enumerate().map(option).collect();
    options.sort_by_key(|option| option.kind == PermissionOptionKind::RejectOnce);
    options
}

/// The answers to a page in a client that opens none: the user does it.
fn page_options(inquiry: &Inquiry) -> Vec<PermissionOption> {
    let option = |(at, option): (usize, &kode_engine::base::question::QuestionOption)| {
        let (name, kind) = match option.label == PAGE_OPEN {
            true => ("I open the address in a browser", PermissionOptionKind::AllowOnce),
            false => (option.label.as_str(), PermissionOptionKind::RejectOnce),
        };
        PermissionOption::new(at.to_string(), name, kind)
    };
    inquiry.options.iter().enumerate().map(option).collect()
}

fn choice_options(inquiry: &Inquiry) -> Vec<PermissionOption> {
    let option = |(at, option): (usize, &kode_engine::base::question::QuestionOption)| {
        let label = printable(&option.label);
        let name = match option.description.as_str() {
            "" => label,
            description => format!("{label}: {}", printable(description)),
        };
        PermissionOption::new(at.to_string(), name, PermissionOptionKind::AllowOnce)
    };
    let refusal = PermissionOption::new(REFUSE, "Do not answer", PermissionOptionKind::RejectOnce);
    inquiry.options.iter().enumerate().map(option).chain([refusal]).collect()
}
