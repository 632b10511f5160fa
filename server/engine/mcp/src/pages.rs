//! Pages that a server has the user open in a browser: those it asks for itself, and those that an error of a call names.
//!
//! Rule: the user says yes to each page, and nothing is opened here. The server learns whether they said yes, and
//! nothing of their actions there. It reports the end of a page by the id it gave; other ids are ignored.

use std::collections::VecDeque;
use std::sync::Arc;

use parking_lot::Mutex;
use rmcp::model::{ElicitResult, ElicitationAction, ErrorData};
use serde::Deserialize;
use serde_json::Value;

use kode_base::page::{PageCompletion, PageOffer, PageReporter};
use kode_base::question::{Inquiry, QuestionDraft, QuestionKind, QuestionOption, Reply};
use kode_config::mcp::fault::bounded;

/// The notification by which a server reports that a page is done.
pub(crate) const COMPLETE: &str = "notifications/elicitation/complete";
/// The error of a call that needs pages to be opened first.
const PAGES_REQUIRED: i32 = -32_042;
/// Maximum number of pages of a server whose report is waited for; the oldest is forgotten.
const MAX_OPEN: usize = 32;
/// The most pages that one call may need.
const MAX_REQUIRED: usize = 4;
/// The answer by which a call is made again before the server reports.
const FINISHED: &str = "I have finished";
/// The answer by which it is not.
const GIVE_UP: &str = "Give up";

/// A page as a server names it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct PageRequest {
    /// The server's id of it; empty when it reports nothing.
    #[serde(rename = "elicitationId")]
    pub(crate) id: String,
    pub(crate) url: String,
    pub(crate) message: String,
}

/// The pages of a server whose report is waited for.
#[derive(Clone, Debug, Default)]
pub(crate) struct PageTable(Arc<Mutex<VecDeque<(String, PageReporter)>>>);

impl PageRequest {
    /// The question whether the page is to be opened.
    ///
    /// # Errors
    /// Why the user cannot be asked.
    pub(crate) fn draft(&self, server: &str, completion: PageCompletion) -> Result<QuestionDraft, String> {
        let offer = PageOffer::of(&self.url, completion)?;
        let why = format!("The MCP server `{server}` asks you to open a page.");
        Ok(QuestionDraft::page(&why, &bounded(&self.message), offer))
    }

    /// The pages that an error of a call names; `None` for any other error.
    pub(crate) fn required(error: &ErrorData) -> Option<Vec<Self>> {
        if error.code.0 != PAGES_REQUIRED {
            return None;
        }
        let named = error.data.as_ref()?.get("elicitations")?.as_array()?;
        let pages: Vec<Self> = named
            .iter()
            .filter(|page| page["mode"] == "url")
            .take(MAX_REQUIRED)
            .filter_map(|page| Self::deserialize(page).ok())
            .collect();
        (!pages.is_empty()).then_some(pages)
    }
}

/// The answer to a server that asked for a page.
pub(crate) fn result(draft: &QuestionDraft, reply: Option<&Reply>) -> ElicitResult {
    ElicitResult::new(match reply {
        None => ElicitationAction::Cancel,
        Some(reply) if draft.opened(reply).is_some() => ElicitationAction::Accept,
        Some(_) => ElicitationAction::Decline,
    })
}

/// Asks whether a call is made again, for servers that report nothing.
pub(crate) fn finished_draft(server: &str) -> QuestionDraft {
    let option = QuestionOption::new;
    let options = vec![
        option(FINISHED, "The call is made again."),
        option(GIVE_UP, "The agent continues without the call."),
    ];
    let question = format!(
        "Have you finished in the browser? The MCP server `{server}` continues by itself if it reports that."
    );
    let inquiry = Inquiry { question, header: "Page".to_owned(), options, multi_select: false };
    QuestionDraft::new(QuestionKind::Choice, vec![inquiry])
}

/// Whether the user says that they have finished.
pub(crate) fn is_finished(reply: &Reply) -> bool {
    let picked = reply.answers.as_ref().and_then(|answers| answers.first());
    picked.is_some_and(|picked| picked.labels.iter().any(|label| label == FINISHED))
}

impl PageTable {
    /// Waits from now on for the report of a page.
    pub(crate) fn begin(&self, id: &str) -> PageCompletion {
        if id.is_empty() {
            return PageCompletion::default();
        }
        let (reporter, completion) = PageCompletion::new();
        let mut open = self.0.lock();
        open.retain(|(known, _)| known != id);
        if open.len() >= MAX_OPEN {
            open.pop_front();
        }
        open.push_back((id.to_owned(), reporter));
        completion
    }

    /// Waits no more for a page.
    pub(crate) fn end(&self, id: &str) {
        self.0.lock().retain(|(known, _)| known != id);
    }

    /// Takes the report of the server.
    pub(crate) fn report(&self, params: Option<&Value>) {
        let Some(id) = params.and_then(|params| params["elicitationId"].as_str()) else { return };
        let mut open = self.0.lock();
        if let Some(at) = open.iter().position(|(known, _)| known == id)
            && let Some((_, reporter)) = open.remove(at)
        {
            reporter.report();
        }
    }
}

#[cfg(test)]
mod tests {
    use kode_base::question::{InquiryAnswer, PAGE_OPEN, PAGE_REFUSE};
    use rmcp::model::ErrorCode;
    use serde_json::json;

    use super::*;

    fn page() -> PageRequest {
        PageRequest { id: "1".into(), url: "https://a.example/x".into(), message: "Pay.".into() }
    }

    #[test]
    fn a_server_learns_of_a_clear_yes_a_no_and_a_cancel() {
        let draft = page().draft("shop", PageCompletion::default()).unwrap();
        assert!(draft.questions[0].question.starts_with("The MCP server `shop` asks you to open a page.\n"));
        let action = |label: &str| {
            let picked = InquiryAnswer { labels: vec![label.to_owned()], text: None };
            result(&draft, Some(&Reply { answers: Some(vec![picked]), ..Reply::default() })).action
        };
        assert_eq!(action(PAGE_OPEN), ElicitationAction::Accept);
        assert_eq!(action(PAGE_REFUSE), ElicitationAction::Decline);
        assert_eq!(result(&draft, Some(&Reply::default())).action, ElicitationAction::Decline);
        assert_eq!(result(&draft, None).action, ElicitationAction::Cancel);
        let file = PageRequest { url: "file:///etc/passwd".into(), ..page() };
        assert!(file.draft("shop", PageCompletion::default()).unwrap_err().contains("only http and https"));
    }

    #[test]
    fn an_error_names_a_bounded_number_of_pages() {
        let error = |code: i32, count: usize| {
            let one = json!({ "mode": "url", "elicitationId": "1", "url": "https://a.example/x", "message": "Pay." });
            let pages = [vec![json!({ "mode": "form" })], vec![one; count]].concat();
            ErrorData::new(ErrorCode(code), "wanted", Some(json!({ "elicitations": pages })))
        };
        assert_eq!(PageRequest::required(&error(PAGES_REQUIRED, 1)), Some(vec![page()]));
        assert_eq!(
            PageRequest::required(&error(PAGES_REQUIRED, 9)).map(|pages| pages.len()),
            Some(MAX_REQUIRED)
        );
        assert_eq!(PageRequest::required(&error(PAGES_REQUIRED, 0)), None);
        assert_eq!(PageRequest::required(&error(-32_602, 1)), None);
    }

    #[tokio::test]
    async fn a_report_ends_its_own_page_and_old_ones_are_forgotten() {
        let table = PageTable::default();
        let report = |id: &str| table.report(Some(&json!({ "elicitationId": id })));
        let (mut first, mut second) = (table.begin("first"), table.begin("second"));
        report("unknown");
        report("second");
        assert!(second.reported().await);
        table.end("first");
        report("first");
        assert!(!first.reported().await);
        let mut oldest = table.begin("oldest");
        let all: Vec<_> = (0..MAX_OPEN).map(|at| table.begin(&at.to_string())).collect();
        assert!(!oldest.reported().await);
        assert_eq!(table.0.lock().len(), all.len());
        table.begin("");
        assert_eq!(table.0.lock().len(), all.len(), "one without an id reports nothing");
    }
}
