//! AskUserQuestion: a choice that only the user can make.
//!
//! Rule: what reaches the user is short, complete and answerable: every question has options that differ.

use std::collections::BTreeSet;

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::Deserialize;

use kode_base::call::{ToolError, ToolErrorKind, ToolKind};
use kode_base::question::{Inquiry, QuestionDraft, QuestionKind, QuestionOption};
use kode_tool::{CallAction, CallContext, CallPlan, Tool, ToolFacts};

/// The most questions of one call.
const MAX_QUESTIONS: usize = 4;
/// The fewest and the most options of one question.
const OPTIONS: std::ops::RangeInclusive<usize> = 2..=4;
/// The most characters of a header.
const MAX_HEADER: usize = 12;

/// The arguments of AskUserQuestion.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AskUserQuestionInput {
    /// The questions, 1 to 4; the user answers all of them.
    pub questions: Vec<QuestionInput>,
}

/// One question.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct QuestionInput {
    /// The question in full, ending with a question mark.
    pub question: String,
    /// What it is about in at most 12 characters, for example `Library`.
    pub header: String,
    /// The answers on offer, 2 to 4, each different. Do not offer `Other`: the user can always say something else.
    pub options: Vec<OptionInput>,
    /// Whether several options can be chosen.
    #[serde(default, rename = "multiSelect")]
    pub multi_select: bool,
}

/// An answer on offer.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct OptionInput {
    /// The answer in 1 to 5 words.
    pub label: String,
    /// What choosing it means.
    #[serde(default)]
    pub description: String,
}

/// Asks the user.
#[derive(Clone, Copy, Debug)]
pub struct AskUserQuestion;

#[async_trait]
impl Tool for AskUserQuestion {
    type Input = AskUserQuestionInput;

    fn facts(&self) -> ToolFacts {
        ToolFacts {
            name: "AskUserQuestion",
            kind: ToolKind::ReadOnly,
            concurrency_safe: true,
            description: "Asks the user 1 to 4 questions with options to choose from, and waits for the answers. Use \
                it when the work depends on a choice that only the user can make and the code does not tell; put the \
                option you recommend first. Do not ask for what you can find out, nor whether a plan is good: \
                ExitPlanMode does that.",
        }
    }

    async fn plan(&self, input: AskUserQuestionInput, _context: &CallContext) -> Result<CallPlan, ToolError> {
        let asked = input.questions.len();
        if !(1..=MAX_QUESTIONS).contains(&asked) {
            return Err(wrong(format!(
                "`questions` has {asked} entries; there must be 1 to {MAX_QUESTIONS}"
            )));
        }
        let questions = input.questions.into_iter().enumerate();
        let questions =
            questions.map(|(at, question)| inquiry(at, question)).collect::<Result<Vec<_>, _>>()?;
        let headers: Vec<_> = questions.iter().map(|inquiry| inquiry.header.as_str()).collect();
        let title = format!("Ask: {}", headers.join(", "));
        let draft = QuestionDraft::new(QuestionKind::Choice, questions);
        Ok(CallPlan { title, touches: Vec::new(), action: CallAction::Ask(Box::new(draft)) })
    }
}

fn inquiry(at: usize, input: QuestionInput) -> Result<Inquiry, ToolError> {
    let at = format!("questions[{at}]");
    if input.question.trim().is_empty() {
        return Err(wrong(format!("`{at}.question` is empty")));
    }
    let header = input.header.trim().to_owned();
    let length = header.chars().count();
    if length == 0 || length > MAX_HEADER {
        return Err(wrong(format!("`{at}.header` has {length} characters; there must be 1 to {MAX_HEADER}")));
    }
    let offered = input.options.len();
    if !OPTIONS.contains(&offered) {
        let (least, most) = (OPTIONS.start(), OPTIONS.end());
        return Err(wrong(format!("`{at}.options` has {offered} entries; there must be {least} to {most}")));
    }
    let mut labels = BTreeSet::new();
    for (number, option) in input.options.iter().enumerate() {
        let label = option.label.trim();
        if label.is_empty() || !labels.insert(label) {
            let what = if label.is_empty() { "is empty" } else { "is that of another option" };
            return Err(wrong(format!("`{at}.options[{number}].label` {what}")));
        }
    }
    let options = input.options.into_iter();
    let options = options.map(|option| QuestionOption {
        label: option.label.trim().to_owned(),
        description: option.description,
    });
    Ok(Inquiry {
        question: input.question,
        header,
        options: options.collect(),
        multi_select: input.multi_select,
    })
}

fn wrong(reason: String) -> ToolError {
    let hint = "Correct the questions and ask again.";
    ToolError::new(ToolErrorKind::InvalidInput, format!("AskUserQuestion: {reason}."), hint)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::testing::Fixture;

    fn one(header: &str, labels: &[&str]) -> Value {
        let options: Vec<_> =
            labels.iter().map(|label| json!({ "label": label, "description": "d" })).collect();
        json!({ "questions": [{ "question": "Which?", "header": header, "options": options }] })
    }

    #[tokio::test]
    async fn a_question_that_can_be_answered_is_put() {
        let plan = Fixture::new().plan(AskUserQuestion, one("Library", &["serde", "other"])).await.unwrap();
        let CallAction::Ask(draft) = plan.action else { panic!("it asks") };
        assert_eq!((plan.title.as_str(), draft.questions[0].options.len()), ("Ask: Library", 2));
    }

    #[tokio::test]
    async fn questions_that_cannot_be_answered_well_are_refused_with_place_and_reason() {
        let five = Value::from(vec![one("a", &["b", "c"])["questions"][0].clone(); 5]);
        for (input, expected) in [
            (json!({ "questions": [] }), "`questions` has 0 entries"),
            (json!({ "questions": five }), "`questions` has 5 entries"),
            (one("thirteen chars", &["a", "b"]), "`questions[0].header` has 14 characters"),
            (one("", &["a", "b"]), "`questions[0].header`"),
            (one("a", &["a"]), "`questions[0].options` has 1 entries"),
            (one("a", &["a", "b", "c", "d", "e"]), "`questions[0].options` has 5 entries"),
            (one("a", &["a", " a"]), "`questions[0].options[1].label` is that of another option"),
            (one("a", &["a", " "]), "`questions[0].options[1].label` is empty"),
        ] {
            let error = Fixture::new().plan(AskUserQuestion, input.clone()).await.unwrap_err();
            assert!(error.message.contains(expected), "{input}: {error}");
            assert_eq!(error.kind, ToolErrorKind::InvalidInput);
        }
    }
}
