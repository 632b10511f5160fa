//! Questions that the user is asked: a choice among options, a plan to be accepted, whether a long turn continues, which of
//! two answers counts.
//!
//! Rule: an answer names only offered options or, where the model asks, says it in the user's own words. There is
//! one answer, from any surface, and refusing to answer is one.

use std::fmt::Write as _;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::broker::{self, UserRequest};
use crate::ids::{CallId, ItemId, QuestionId};
use crate::mode::{self, Mode};
use crate::page::PageOffer;

/// The most characters of a plan.
pub const MAX_PLAN: usize = 60_000;

/// The answer to a plan by which it is carried out as edits were made before.
pub const PLAN_ACCEPT: &str = "Accept the plan";
/// The answer to a plan by which it is carried out and edits are made unasked.
pub const PLAN_ACCEPT_EDITS: &str = "Accept it and edit without asking";
/// The answer to a plan by which planning continues.
pub const PLAN_REJECT: &str = "Keep planning";

/// The answer by which a turn that has come to its limit continues.
pub const LIMIT_GO_ON: &str = "Go on";
/// The answer by which it ends.
pub const LIMIT_STOP: &str = "Stop here";

/// The answer by which a resting turn asks its model before the limit is reset.
pub const REST_RETRY: &str = "Try again now";
/// The answer by which it ends.
pub const REST_STOP: &str = "Stop here";

/// The answer by which the user has a page opened.
pub const PAGE_OPEN: &str = "Open the page";
/// The answer by which it is not opened.
pub const PAGE_REFUSE: &str = "Do not open it";

/// The labels of the two answers to one prompt.
pub const CANDIDATES: [&str; 2] = ["Answer A", "Answer B"];

/// The questions of one session.
pub type QuestionBroker = broker::Broker<Question>;

/// Why an answer to a question was not taken.
pub type ReplyError = broker::RespondError<QuestionId, ReplyMismatch>;

/// Something the user is asked; it waits until an answer comes, or its call or turn is cancelled.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Question {
    /// Names the question in the answer.
    pub id: QuestionId,
    /// The call that waits; `None` when the turn does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call: Option<CallId>,
    /// The call's item in the transcript.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub item: Option<ItemId>,
    /// The question.
    #[serde(flatten)]
    pub draft: QuestionDraft,
    /// When it was asked.
    pub timestamp: Timestamp,
}

/// The question for the user.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct QuestionDraft {
    /// Its topic.
    pub kind: QuestionKind,
    /// The questions, one after the other; never empty.
    pub questions: Vec<Inquiry>,
    /// The whole plan as Markdown, when it is about one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plan: Option<String>,
    /// The answers to choose from, in the order of the options, when it is about them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub candidates: Vec<Candidate>,
    /// When the question needs no answer any more, because a limit is reset then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<Timestamp>,
    /// The page to open, when it is about one. It is in no file, because an address may have secrets.
    #[serde(skip)]
    pub page: Option<PageOffer>,
}

/// An answer of the model that the user may choose; nothing of it runs before.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Candidate {
    /// Its text.
    pub text: String,
    /// The calls it makes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub calls: Vec<CandidateCall>,
}

/// A call of a [`Candidate`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CandidateCall {
    /// The tool.
    pub name: String,
    /// The arguments, exactly.
    pub input: Value,
}

/// The topic of a question.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum QuestionKind {
    /// The model needs the user's choice to continue.
    Choice,
    /// The model presents a plan, and asks whether to carry it out.
    Plan,
    /// A turn has come to a limit, and the user says whether it continues.
    TurnLimit,
    /// There are two answers to a prompt, and the user chooses one.
    Candidates,
    /// The model's provider takes no requests until its limit is reset. The turn waits for that time, or for the user.
    Rest,
}

impl QuestionKind {
    /// Whether one of the options has to be chosen, because words are not read.
    fn wants_an_option(self) -> bool {
        match self {
            Self::Choice | Self::Plan => false,
            Self::TurnLimit | Self::Candidates | Self::Rest => true,
        }
    }
}

/// One thing that is asked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Inquiry {
    /// The question, for people.
    pub question: String,
    /// Its topic in a word or two.
    pub header: String,
    /// The answers on offer; the user may always say something else.
    pub options: Vec<QuestionOption>,
    /// Whether several of them may be chosen.
    pub multi_select: bool,
}

/// An answer on offer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct QuestionOption {
    /// The option; no two of a question are the same.
    pub label: String,
    /// The meaning of the option; may be empty.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub description: String,
}

impl QuestionOption {
    /// An option with its meaning, which may be empty.
    #[must_use]
    pub fn new(label: &str, description: &str) -> Self {
        Self { label: label.to_owned(), description: description.to_owned() }
    }
}

/// The user's answer to one [`Inquiry`].
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct InquiryAnswer {
    /// The labels of the chosen options.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub labels: Vec<String>,
    /// The user's own text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
}

/// The user's answer to a question.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Reply {
    /// One answer for each thing asked, in order; `None` when the user does not want to answer.
    pub answers: Option<Vec<InquiryAnswer>>,
    /// Words for the model besides.
    pub feedback: Option<String>,
    /// The plan as the user has changed it, when they accept one; `None` to take it as it was presented.
    pub plan: Option<String>,
    /// The mode in which an accepted plan is carried out; `None` for the one that the option names.
    pub mode: Option<Mode>,
    /// With the choice of an answer: whether its calls run without a question of their own. No rule and no guard is
    /// lifted by it.
    pub skip_asks: bool,
    /// Which surface or client answered.
    pub by: String,
}

/// The outcome of a question.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct QuestionResolution {
    /// The question.
    pub id: QuestionId,
    /// The call; `None` when the turn waited.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call: Option<CallId>,
    /// How it ended.
    pub outcome: QuestionOutcome,
    /// The answers; empty unless it was answered.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub answers: Vec<InquiryAnswer>,
    /// Words for the model besides.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub feedback: Option<String>,
    /// The plan as the user has changed it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plan: Option<String>,
    /// The mode in which the user wants the plan to be carried out; `None` also for one that this build does not know.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "mode::known_or_none")]
    pub mode: Option<Mode>,
    /// Which surface or client ended it, or `cancel`.
    pub by: String,
}

/// How a question ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum QuestionOutcome {
    /// It was answered.
    Answered,
    /// The user did not want to answer.
    Refused,
    /// The call, the turn or the session was cancelled before anyone answered.
    Cancelled,
}

/// Why an answer does not fit its question.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{reason}")]
pub struct ReplyMismatch {
    /// Which part of the answer, for example `answers[0].labels`.
    pub path: String,
    /// Its problems.
    pub reason: String,
}

impl QuestionDraft {
    /// These questions, with nothing beside them.
    #[must_use]
    pub fn new(kind: QuestionKind, questions: Vec<Inquiry>) -> Self {
        Self { kind, questions, plan: None, candidates: Vec::new(), until: None, page: None }
    }

    /// Asks whether a plan is to be carried out.
    #[must_use]
    pub fn plan(plan: String) -> Self {
        let option = QuestionOption::new;
        let options = vec![
            option(
                PLAN_REJECT,
                "Plan mode continues. Write what should change, or send an empty note and write it next.",
            ),
            option(PLAN_ACCEPT, "The agent carries it out and asks as it did before plan mode."),
            option(
                PLAN_ACCEPT_EDITS,
                "The agent carries it out; edits inside the workspace are made unasked.",
            ),
        ];
        let question = "Shall the agent carry out this plan?".to_owned();
        let inquiry = Inquiry { question, header: "Plan".to_owned(), options, multi_select: false };
        Self { plan: Some(plan), ..Self::new(QuestionKind::Plan, vec![inquiry]) }
    }

    /// Asks whether a turn continues; `question` says what it has come to.
    #[must_use]
    pub fn turn_limit(question: String) -> Self {
        let option = QuestionOption::new;
        let options = vec![
            option(LIMIT_STOP, "The turn ends; finished work is kept."),
            option(LIMIT_GO_ON, "The conversation is compacted and the agent continues."),
        ];
        let inquiry = Inquiry { question, header: "Turn limit".to_owned(), options, multi_select: false };
        Self::new(QuestionKind::TurnLimit, vec![inquiry])
    }

    /// Asks which of two answers counts.
    #[must_use]
    pub fn candidates(candidates: [Candidate; 2]) -> Self {
        let option = |(label, candidate): (&str, &Candidate)| {
            let calls = candidate.calls.iter().map(|call| call.name.as_str()).collect::<Vec<_>>().join(", ");
            let does = if calls.is_empty() { String::new() } else { format!("It calls {calls}.") };
            QuestionOption { label: label.to_owned(), description: does }
        };
        let options = CANDIDATES.into_iter().zip(&candidates).map(option).collect();
        let question = "Which answer do you want to keep? The other is discarded.".to_owned();
        let inquiry = Inquiry { question, header: "Answers".to_owned(), options, multi_select: false };
        Self { candidates: candidates.into(), ..Self::new(QuestionKind::Candidates, vec![inquiry]) }
    }

    /// Says that a turn rests until a limit is reset; `question` names the provider and the time.
    #[must_use]
    pub fn rest(question: String, until: Timestamp) -> Self {
        let option = QuestionOption::new;
        let options = vec![
            option(REST_STOP, "The turn ends; finished work is kept."),
            option(REST_RETRY, "The model is asked at once, another one if you have chosen another."),
        ];
        let inquiry = Inquiry { question, header: "Rate limit".to_owned(), options, multi_select: false };
        let kind = QuestionKind::Rest;
        Self { until: Some(until), ..Self::new(kind, vec![inquiry]) }
    }

    /// Asks whether a page is to be opened. `why` says who asks, and `message` is their own text: it is behind
    /// the address, so that it cannot pass for one.
    #[must_use]
    pub fn page(why: &str, message: &str, offer: PageOffer) -> Self {
        let option = QuestionOption::new;
        let options = vec![
            option(PAGE_REFUSE, ""),
            option(PAGE_OPEN, "In a browser. What you enter there goes to that host."),
        ];
        let mut question = format!("{why}\nAddress: {}\nHost: {}", offer.shown, offer.host);
        let message: Vec<&str> = message.split_whitespace().collect();
        if !message.is_empty() {
            let _ = write!(question, "\nMessage: {}", message.join(" "));
        }
        let inquiry = Inquiry { question, header: "Page".to_owned(), options, multi_select: false };
        Self { page: Some(offer), ..Self::new(QuestionKind::Choice, vec![inquiry]) }
    }

    /// The page that a reply has opened; `None` for anything but a clear yes.
    #[must_use]
    pub fn opened(&self, reply: &Reply) -> Option<&PageOffer> {
        let picked = reply.answers.as_ref()?.first()?;
        let is_yes = picked.labels.iter().any(|label| label == PAGE_OPEN) && picked.words().is_none();
        self.page.as_ref().filter(|_| is_yes)
    }
}

impl Question {
    /// The outcome of the question with this answer; without one it is cancelled.
    #[must_use]
    pub fn resolved(&self, reply: Option<&Reply>) -> QuestionResolution {
        let (id, call) = (self.id.clone(), self.call.clone());
        match reply {
            Some(Reply { answers, feedback, plan, mode, skip_asks: _, by }) => QuestionResolution {
                id,
                call,
                outcome: match answers {
                    Some(_) => QuestionOutcome::Answered,
                    None => QuestionOutcome::Refused,
                },
                answers: answers.clone().unwrap_or_default(),
                feedback: feedback.clone(),
                plan: plan.clone(),
                mode: *mode,
                by: by.clone(),
            },
            None => QuestionResolution {
                id,
                call,
                outcome: QuestionOutcome::Cancelled,
                answers: Vec::new(),
                feedback: None,
                plan: None,
                mode: None,
                by: "cancel".to_owned(),
            },
        }
    }

    /// Whether what an answer says of the plan fits the question.
    fn check_plan(&self, reply: &Reply) -> Result<(), (&'static str, String)> {
        let picked = reply.answers.iter().flatten().flat_map(|picked| &picked.labels);
        let accepts = self.draft.kind == QuestionKind::Plan
            && picked.into_iter().any(|label| label == PLAN_ACCEPT || label == PLAN_ACCEPT_EDITS);
        for (path, is_given) in [("plan", reply.plan.is_some()), ("mode", reply.mode.is_some())] {
            if is_given && !accepts {
                return Err((
                    path,
                    format!("`{path}` goes with the answer that accepts a plan, and no other"),
                ));
            }
        }
        if reply.mode == Some(Mode::Plan) {
            return Err(("mode", "a plan that is accepted is not carried out in plan mode".to_owned()));
        }
        match &reply.plan {
            Some(plan) if plan.trim().is_empty() => Err(("plan", "the plan is empty".to_owned())),
            Some(plan) if plan.chars().count() > MAX_PLAN => {
                Err(("plan", format!("the plan has more than {MAX_PLAN} characters")))
            }
            Some(_) | None => Ok(()),
        }
    }

    /// The answers beside their questions, one a line.
    #[must_use]
    pub fn reported(&self, answers: &[InquiryAnswer]) -> String {
        let mut text = String::new();
        for (inquiry, picked) in self.draft.questions.iter().zip(answers) {
            let said = [picked.labels.join(", "), picked.words().unwrap_or_default().to_owned()];
            let said: Vec<String> = said.into_iter().filter(|part| !part.is_empty()).collect();
            let _ = writeln!(text, "- {} → {}", inquiry.question, said.join("; "));
        }
        text
    }
}

impl InquiryAnswer {
    /// The user's own words, if there are any.
    #[must_use]
    pub fn words(&self) -> Option<&str> {
        self.text.as_deref().map(str::trim).filter(|text| !text.is_empty())
    }
}

impl Inquiry {
    fn check(&self, picked: &InquiryAnswer) -> Result<(), (&'static str, String)> {
        if let Some(unknown) =
            picked.labels.iter().find(|label| self.options.iter().all(|option| option.label != **label))
        {
            let offered: Vec<_> = self.options.iter().map(|option| option.label.as_str()).collect();
            let reason = format!("there is no option `{unknown}`; there are: {}", offered.join(", "));
            return Err(("labels", reason));
        }
        if picked.labels.len() > 1 && !self.multi_select {
            return Err(("labels", "only one option of this question can be chosen".to_owned()));
        }
        if picked.labels.is_empty() && picked.words().is_none() {
            return Err(("", format!("`{}` has no answer: choose an option or give a text", self.question)));
        }
        Ok(())
    }
}

impl UserRequest for Question {
    type Id = QuestionId;
    type Answer = Reply;
    type Unfit = ReplyMismatch;

    fn id(&self) -> &QuestionId {
        &self.id
    }

    fn check(&self, reply: &Reply) -> Result<(), ReplyMismatch> {
        self.check_plan(reply).map_err(|(path, reason)| ReplyMismatch { path: path.to_owned(), reason })?;
        if reply.skip_asks && self.draft.kind != QuestionKind::Candidates {
            let reason = "only the choice of an answer can let its calls run unasked".to_owned();
            return Err(ReplyMismatch { path: "skipPermissionAsks".to_owned(), reason });
        }
        let Some(answers) = &reply.answers else { return Ok(()) };
        let asked = self.draft.questions.len();
        if answers.len() != asked {
            let reason = format!("there are {} answers to {asked} questions", answers.len());
            return Err(ReplyMismatch { path: "answers".to_owned(), reason });
        }
        for (at, (inquiry, picked)) in self.draft.questions.iter().zip(answers).enumerate() {
            inquiry.check(picked).map_err(|(field, reason)| {
                let path = format!("answers[{at}].{field}");
                ReplyMismatch { path: path.trim_end_matches('.').to_owned(), reason }
            })?;
            if self.draft.kind.wants_an_option() && picked.labels.is_empty() {
                let reason = format!("`{}` is answered by one of its options", inquiry.question);
                return Err(ReplyMismatch { path: format!("answers[{at}].labels"), reason });
            }
        }
        Ok(())
    }

    fn closed_by(&self, reply: Option<&Reply>) -> String {
        self.resolved(reply).by
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::page::PageCompletion;

    fn question(multi_select: bool) -> Question {
        let option = |label: &str| QuestionOption { label: label.into(), description: String::new() };
        let inquiry = Inquiry {
            question: "Which?".into(),
            header: "Kind".into(),
            options: vec![option("red"), option("blue")],
            multi_select,
        };
        Question {
            id: QuestionId::generate(),
            call: Some(CallId::generate()),
            item: Some(ItemId::generate()),
            draft: QuestionDraft::new(QuestionKind::Choice, vec![inquiry]),
            timestamp: Timestamp::now(),
        }
    }

    fn reply(labels: &[&str], text: Option<&str>) -> Reply {
        let labels = labels.iter().map(|&label| label.to_owned()).collect();
        let picked = InquiryAnswer { labels, text: text.map(str::to_owned) };
        Reply { answers: Some(vec![picked]), by: "test".into(), ..Reply::default() }
    }

    #[test]
    fn an_answer_names_what_was_offered_or_says_it_in_words() {
        let wrong = |multi, reply: Reply| question(multi).check(&reply).unwrap_err().path;
        assert_eq!(question(false).check(&reply(&["red"], None)), Ok(()));
        assert_eq!(question(false).check(&reply(&[], Some("green"))), Ok(()));
        assert_eq!(question(true).check(&reply(&["red", "blue"], None)), Ok(()));
        assert_eq!(question(false).check(&Reply { answers: None, ..reply(&[], None) }), Ok(()));
        assert_eq!(wrong(false, reply(&["green"], None)), "answers[0].labels");
        assert_eq!(wrong(false, reply(&["red", "blue"], None)), "answers[0].labels");
        assert_eq!(wrong(true, reply(&[], Some("  "))), "answers[0]");
        assert_eq!(wrong(true, Reply { answers: Some(vec![]), ..reply(&[], None) }), "answers");
    }

    #[test]
    fn a_plan_is_changed_and_a_mode_chosen_only_by_who_accepts_it() {
        let asked = Question { draft: QuestionDraft::plan("1. Do it.".into()), ..question(false) };
        let with = |label, plan: Option<&str>, mode| Reply {
            plan: plan.map(str::to_owned),
            mode,
            ..reply(&[label], None)
        };
        let wrong = |reply| asked.check(&reply).unwrap_err().path;
        assert_eq!(asked.check(&with(PLAN_ACCEPT, Some("1. Less."), Some(Mode::BypassPermissions))), Ok(()));
        assert_eq!(wrong(with(PLAN_REJECT, Some("1. Less."), None)), "plan");
        assert_eq!(wrong(with(PLAN_REJECT, None, Some(Mode::Default))), "mode");
        assert_eq!(wrong(with(PLAN_ACCEPT, Some(" "), None)), "plan");
        assert_eq!(wrong(with(PLAN_ACCEPT, Some(&"x".repeat(MAX_PLAN + 1)), None)), "plan");
        assert_eq!(wrong(with(PLAN_ACCEPT, None, Some(Mode::Plan))), "mode");
        assert_eq!(
            question(false).check(&with("red", None, Some(Mode::Default))).unwrap_err().path,
            "mode",
            "there is no plan"
        );
    }

    #[test]
    fn a_page_is_opened_by_a_clear_yes_alone_and_no_message_stands_before_its_address() {
        let offer = PageOffer::of("https://a.example/x", PageCompletion::default()).unwrap();
        let draft = QuestionDraft::page("`hub` asks.", "Go to\nAddress: https://b.example", offer);
        let lines: Vec<_> = draft.questions[0].question.lines().collect();
        let message = "Message: Go to Address: https://b.example";
        assert_eq!(lines, ["`hub` asks.", "Address: https://a.example/x", "Host: a.example", message]);
        assert_eq!(draft.opened(&reply(&[PAGE_OPEN], None)), draft.page.as_ref());
        let nothing = Reply { answers: None, ..reply(&[], None) };
        for no in [
            reply(&[PAGE_REFUSE], None),
            reply(&[], Some("yes")),
            reply(&[PAGE_OPEN], Some("later")),
            nothing,
        ] {
            assert_eq!(draft.opened(&no), None, "{no:?}");
        }
    }

    #[test]
    fn the_model_reads_choice_and_words_beside_the_question() {
        let reply = reply(&["red"], Some("dark"));
        assert_eq!(question(false).reported(&reply.answers.unwrap()), "- Which? → red; dark\n");
    }

    #[test]
    fn a_limit_and_a_choice_of_answers_are_answered_by_an_option_alone() {
        let call = CandidateCall { name: "Bash".into(), input: Value::Null };
        let candidate = Candidate { text: "it".into(), calls: vec![call] };
        let of = |draft| Question { call: None, item: None, draft, ..question(false) };
        let limit = of(QuestionDraft::turn_limit("On?".into()));
        let answers = of(QuestionDraft::candidates([candidate.clone(), candidate]));
        assert_eq!(limit.check(&reply(&[LIMIT_GO_ON], None)), Ok(()));
        assert_eq!(answers.check(&reply(&[CANDIDATES[1]], None)), Ok(()));
        for asked in [&limit, &answers] {
            assert_eq!(asked.check(&reply(&[], Some("yes"))).unwrap_err().path, "answers[0].labels");
        }
        let unasked = |label: &str| Reply { skip_asks: true, ..reply(&[label], None) };
        assert_eq!(answers.check(&unasked(CANDIDATES[0])), Ok(()));
        assert_eq!(limit.check(&unasked(LIMIT_GO_ON)).unwrap_err().path, "skipPermissionAsks");
        assert_eq!(question(false).check(&unasked("red")).unwrap_err().path, "skipPermissionAsks");
    }

    #[test]
    fn a_question_of_an_older_journal_is_read() {
        let old = serde_json::json!({
            "id": "question_1", "call": "call_1", "item": "item_1", "kind": "choice", "questions": [],
            "timestamp": "2026-01-01T00:00:00Z",
        });
        let read: Question = serde_json::from_value(old).unwrap();
        assert_eq!(read.call, Some(CallId::from_external("call_1")));
    }
}
