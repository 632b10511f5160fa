//! Questions: what the user is asked while the agent works, and how any surface answers.
//!
//! Rule: as for permissions: a question is an event and an entry of the snapshot, its answer a request of the client;
//! the first answer wins, the others fail with `alreadyResolved`, and nothing waits on the transport.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::permission::Mode;
use crate::text::{CallId, ItemId, QuestionId, SessionId, Timestamp};

/// A question to the user; the call or the turn behind it waits, and nothing else.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Question {
    /// The session.
    pub session_id: SessionId,
    /// Names the question in the answer.
    pub question_id: QuestionId,
    /// Its topic.
    #[serde(default)]
    pub kind: QuestionKind,
    /// The call that waits; absent when the turn does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call_id: Option<CallId>,
    /// The call's item in the transcript.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub item_id: Option<ItemId>,
    /// One to four questions; all of them are answered at once.
    pub questions: Vec<Inquiry>,
    /// The whole plan as Markdown, when the question is whether to carry it out. Its options are then to keep planning,
    /// to accept the plan, and to accept it and edit without asking, in this order. Who does not accept it and
    /// says nothing ends the turn, to write next.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plan: Option<String>,
    /// The answers to choose from, in the order of the options, when the question is which of them counts. Nothing of
    /// them has run, and only the chosen one becomes part of the conversation.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub candidates: Vec<Candidate>,
    /// With `rest`: when the turn continues by itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<Timestamp>,
    /// When it was asked.
    pub timestamp: Timestamp,
}

/// The topic of a question.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum QuestionKind {
    /// The model needs the user's choice to continue.
    #[default]
    Choice,
    /// The model presents a plan, and asks whether to carry it out.
    Plan,
    /// A turn has come to its limit: `Stop here` or `Go on`, and no words of one's own. Not to answer ends the turn.
    TurnLimit,
    /// There are two answers to a prompt, `Answer A` and `Answer B`. Not to answer ends the turn without any.
    Candidates,
    /// The model's provider takes no requests until `until`. The turn continues by itself then; before, `Stop here` ends it
    /// and `Try again now` asks the model at once. Not to answer ends the turn.
    Rest,
}

/// An answer of the model that the user may choose.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Candidate {
    /// Its text; Markdown.
    pub text: String,
    /// The calls it makes.
    pub calls: Vec<CandidateCall>,
}

/// A call of a candidate.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CandidateCall {
    /// The tool.
    pub name: String,
    /// The arguments, exactly.
    pub input: Value,
}

/// One thing that is asked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Inquiry {
    /// The question, for people.
    pub question: String,
    /// Its topic in at most twelve characters.
    pub header: String,
    /// The answers on offer; the user may always say something else.
    pub options: Vec<QuestionOption>,
    /// Whether several of them may be chosen.
    pub multi_select: bool,
}

/// An answer on offer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct QuestionOption {
    /// The option; no two of a question are the same.
    pub label: String,
    /// The meaning of the option; may be empty.
    pub description: String,
}

/// The answer to one thing that was asked: options, or words, or both.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct QuestionAnswer {
    /// The labels of the chosen options.
    #[serde(default)]
    pub labels: Vec<String>,
    /// The user's own text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
}

/// An answer to a question.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RespondQuestionParams {
    /// The session.
    pub session_id: SessionId,
    /// The question.
    pub question_id: QuestionId,
    /// One answer for each thing asked, in order; absent when the user does not want to answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answers: Option<Vec<QuestionAnswer>>,
    /// Words for the model besides.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub feedback: Option<String>,
    /// The plan as the user has changed it; only with an answer that accepts one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plan: Option<String>,
    /// The mode in which the accepted plan is carried out, instead of the one that the option names; not `plan`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<Mode>,
    /// With the choice of a candidate: whether exactly its calls run without a prompt of their own. It applies to calls
    /// that are asked only because nothing allows it; deny rules, ask rules and guarded places count as ever.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub skip_permission_asks: bool,
}

/// How a question ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum QuestionOutcome {
    /// It was answered.
    Answered,
    /// The user did not want to answer.
    Refused,
    /// The call, the turn or the session was cancelled before anyone answered.
    Cancelled,
}
