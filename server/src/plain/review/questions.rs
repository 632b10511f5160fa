//! Pending questions as code actions, for editors without message requests.
//!
//! Rule: an action answers a whole question, so only a question with a single choice has actions. The option that declines
//! comes first.

use kode_engine::base::question::{LIMIT_STOP, PAGE_REFUSE, PLAN_REJECT, Question};
use lsp_types::{
    CodeAction, CodeActionKind, CodeActionOrCommand, CodeActionParams, CodeActionTriggerKind, Command,
};
use serde_json::json;

use super::actions::{contains, fitting};
use super::words::short;
use crate::agent::Agent;
use crate::client::ClientFacts;
use crate::plain::questions::ANSWER;

/// The kind of actions that answer a question.
const KIND: CodeActionKind = CodeActionKind::new("quickfix.kode.question");

/// The maximum number of questions with actions.
const SHOWN_QUESTIONS: usize = 4;

/// Whether code actions can answer a question.
pub(crate) fn has_actions(question: &Question) -> bool {
    matches!(question.draft.questions.as_slice(), [inquiry] if !inquiry.multi_select)
}

/// The actions for all pending questions, wherever the cursor is.
pub(crate) fn actions(
    agent: &Agent,
    facts: &ClientFacts,
    request: &CodeActionParams,
) -> Vec<CodeActionOrCommand> {
    if facts.kode.events && facts.kode.permission_ui {
        return Vec::new();
    }
    let sessions = agent.engine.live_sessions();
    let waiting: Vec<Question> = sessions.iter().flat_map(|session| session.requests().questions()).collect();
    of_questions(&waiting, request, facts.code_action_literals)
}

fn of_questions(
    questions: &[Question],
    request: &CodeActionParams,
    literals: bool,
) -> Vec<CodeActionOrCommand> {
    let context = &request.context;
    let is_wanted =
        context.only.as_ref().is_none_or(|only| only.iter().any(|wanted| contains(wanted, &KIND)));
    if context.trigger_kind == Some(CodeActionTriggerKind::AUTOMATIC) || !is_wanted {
        return Vec::new();
    }
    let answerable = questions.iter().filter(|question| has_actions(question)).take(SHOWN_QUESTIONS);
    answerable.flat_map(of_question).filter_map(|action| fitting(action, literals)).collect()
}

fn of_question(question: &Question) -> Vec<CodeAction> {
    let Some(inquiry) = question.draft.questions.first() else { return Vec::new() };
    let (mut labels, others): (Vec<&str>, Vec<&str>) = inquiry
        .options
        .iter()
        .map(|option| option.label.as_str())
        .partition(|label| [PLAN_REJECT, LIMIT_STOP, PAGE_REFUSE].contains(label));
    labels.extend(others);
    // An address that is cut could pass for another one; the message has all of it.
    let subject = question.draft.page.as_ref().map_or(&inquiry.question, |page| &page.host);
    let action = |label: &str| {
        let title = format!("Kode: {}: {}", short(label), short(subject));
        let argument = json!({ "questionId": question.id, "answers": [label] });
        let command =
            Command { title: title.clone(), command: ANSWER.to_owned(), arguments: Some(vec![argument]) };
        CodeAction { title, kind: Some(KIND), command: Some(command), ..CodeAction::default() }
    };
    labels.into_iter().map(action).collect()
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use kode_engine::base::ids::QuestionId;
    use kode_engine::base::question::{Inquiry, QuestionDraft, QuestionKind, QuestionOption};

    use super::*;

    fn question(labels: &[&str], multi_select: bool) -> Question {
        let option = |label: &&str| QuestionOption { label: (*label).into(), description: String::new() };
        let inquiry = Inquiry {
            question: "Which?".into(),
            header: "Kind".into(),
            options: labels.iter().map(option).collect(),
            multi_select,
        };
        let draft = QuestionDraft::new(QuestionKind::Choice, vec![inquiry]);
        Question { id: QuestionId::generate(), call: None, item: None, draft, timestamp: Timestamp::now() }
    }

    fn titles(questions: &[Question], kind: &str) -> Vec<String> {
        let request = json!({
            "textDocument": { "uri": "file:///a" },
            "range": { "start": { "line": 0, "character": 0 }, "end": { "line": 0, "character": 0 } },
            "context": { "diagnostics": [], "only": [kind] },
        });
        let request: CodeActionParams = serde_json::from_value(request).unwrap();
        let title = |action| match action {
            CodeActionOrCommand::CodeAction(action) => action.title,
            CodeActionOrCommand::Command(command) => command.title,
        };
        of_questions(questions, &request, true).into_iter().map(title).collect()
    }

    #[test]
    fn a_single_choice_is_answered_by_an_action_and_the_option_that_declines_comes_first() {
        let questions = [question(&["Go on", LIMIT_STOP], false), question(&["red"], true)];
        let expected = ["Kode: Stop here: Which?", "Kode: Go on: Which?"];
        assert_eq!(titles(&questions, "quickfix"), expected);
        assert_eq!(titles(&questions, "source"), Vec::<String>::new());
    }
}
