//! The command that signs in to an MCP server.
//!
//! Rule: the user sees the whole address before anything is opened, and it is in no journal and in no log. The sign-in lasts as long
//! as the turn of the command.

use std::pin::pin;

use jiff::Timestamp;

use super::CommandContext;
use kode_base::ids::QuestionId;
use kode_base::page::{PageCompletion, PageOffer};
use kode_base::question::{Question, QuestionDraft};
use kode_config::command::CommandReport;
use kode_config::mcp::fault::McpFailure;

impl CommandContext<'_> {
    pub(super) async fn login(&self, server: &str) -> CommandReport {
        if server.is_empty() {
            return CommandReport::failure("Say which server: `/mcp login NAME`. `/mcp` lists them.");
        }
        let begun = tokio::select! {
            begun = self.session.servers().authenticate(server) => begun,
            () = self.cancel.cancelled() => return cancelled(server),
        };
        let (page, mut outcome) = match begun {
            Ok(page) => (page.url, page.outcome),
            Err(failure) => return ended(server, Err(failure)),
        };
        let (reporter, completion) = PageCompletion::new();
        let offer = match PageOffer::of(page.as_str(), completion) {
            Ok(offer) => offer,
            Err(reason) => {
                let text =
                    format!("You cannot sign in to `{server}`: {reason}. Put a token into its `headers`.");
                return CommandReport::failure(text);
            }
        };
        let draft = QuestionDraft::page(&format!("Sign in to the MCP server `{server}`?"), "", offer);
        let question = Question {
            id: QuestionId::generate(),
            call: None,
            item: None,
            draft: draft.clone(),
            timestamp: Timestamp::now(),
        };
        let taken_back = self.cancel.child_token();
        let mut asked = pin!(self.session.requests().ask_question(question, &taken_back));
        let reply = tokio::select! {
            biased;
            reply = &mut asked => reply,
            // The user may open the page without an answer to the question.
            signed_in = &mut outcome => {
                if signed_in.is_ok() {
                    reporter.report();
                }
                taken_back.cancel();
                drop(asked.await);
                return ended(server, signed_in);
            }
        };
        let Some(reply) = reply else { return cancelled(server) };
        if draft.opened(&reply).is_none() {
            return CommandReport::failure(format!(
                "You are not signed in to `{server}`: the page was not opened."
            ));
        }
        tokio::select! {
            signed_in = &mut outcome => {
                if signed_in.is_ok() {
                    reporter.report();
                }
                ended(server, signed_in)
            }
            () = self.cancel.cancelled() => cancelled(server),
        }
    }
}

fn ended(server: &str, outcome: Result<(), McpFailure>) -> CommandReport {
    match outcome {
        Ok(()) => CommandReport::text(format!("You are signed in to `{server}`. It is connected to now.")),
        Err(failure) => {
            let text = format!("You are not signed in to `{server}`: {}. {}", failure.message, failure.hint);
            CommandReport::failure(text)
        }
    }
}

fn cancelled(server: &str) -> CommandReport {
    CommandReport::failure(format!("The sign-in to `{server}` was cancelled."))
}
