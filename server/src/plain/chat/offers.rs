//! The offers of a chat document at their place: code actions and lenses to send and to stop.
//!
//! Rule: lenses and actions run the same commands, which can be run by name as well; an action that sends is of no kind
//! that an editor carries out by itself.

use kode_engine::text::document::DocumentSnapshot;
use lsp_types::{
    CodeAction, CodeActionKind, CodeActionOrCommand, CodeActionParams, CodeLens, Command, Position, Range,
    Url,
};
use serde_json::{Value, json};

use super::layout::ChatLayout;
use super::{SEND, is_chat};
use crate::lsp::PositionEncoding;
use crate::plain::PlainFrontEnd;
use crate::plain::review::actions::contains;

/// The kind of actions in a chat document.
pub(crate) const CHAT: CodeActionKind = CodeActionKind::new("refactor.kode.chat");

/// Something that can be done, and where it belongs.
struct ChatOffer {
    title: String,
    command: &'static str,
    argument: Value,
    at: Position,
}

/// The actions of a chat document.
pub(crate) fn actions(
    front_end: &PlainFrontEnd,
    params: &CodeActionParams,
    document: Option<&DocumentSnapshot>,
) -> Vec<CodeActionOrCommand> {
    let is_wanted = |only: &Vec<CodeActionKind>| only.iter().any(|wanted| contains(wanted, &CHAT));
    if !params.context.only.as_ref().is_none_or(is_wanted) {
        return Vec::new();
    }
    let uri = &params.text_document.uri;
    let offers = offers(front_end, uri, document, true);
    let literals = front_end.connection.facts.get().is_some_and(|facts| facts.code_action_literals);
    offers
        .into_iter()
        .map(|offer| {
            let command = command(&offer);
            let title = command.title.clone();
            if !literals {
                return CodeActionOrCommand::Command(command);
            }
            let (kind, command) = (Some(CHAT), Some(command));
            CodeActionOrCommand::CodeAction(CodeAction { title, kind, command, ..CodeAction::default() })
        })
        .collect()
}

/// The lenses of a chat document.
pub(crate) fn lenses(front_end: &PlainFrontEnd, uri: &Url) -> Vec<CodeLens> {
    let document = front_end.connection.documents.snapshot(uri);
    let offers = offers(front_end, uri, document.as_ref(), false);
    let lens = |offer: &ChatOffer| {
        let range = Range::new(offer.at, offer.at);
        CodeLens { range, command: Some(command(offer)), data: None }
    };
    offers.iter().map(lens).collect()
}

fn command(offer: &ChatOffer) -> Command {
    let title = format!("Kode: {}", offer.title);
    Command { title, command: offer.command.to_owned(), arguments: Some(vec![offer.argument.clone()]) }
}

/// The actions of a chat document; with `all` also rare actions.
fn offers(
    front_end: &PlainFrontEnd,
    uri: &Url,
    document: Option<&DocumentSnapshot>,
    all: bool,
) -> Vec<ChatOffer> {
    let Some(document) = document.filter(|document| is_chat(document)) else { return Vec::new() };
    let text = document.text.to_string();
    let layout = ChatLayout::of(&text);
    let at = |byte: usize| PositionEncoding::Utf16.position(&document.text, byte);
    if let Some(session) = front_end.chats.writing(uri) {
        let byte = layout.answering.map_or(layout.begin, |place| place.line.start);
        let argument = json!({ "sessionId": session });
        return vec![offer("Stop the answer", "kode.cancel", argument, line(at(byte)))];
    }
    if let Some(place) = &layout.answering {
        let place = line(at(place.line.start));
        return vec![offer("Write the whole answer here", SEND, json!({ "uri": uri }), place)];
    }
    if layout.prompt.is_empty() {
        return Vec::new();
    }
    // The heading is above the prompt; without one the first line of the document is the place.
    let above = line(at(layout.begin.saturating_sub(1)));
    let mut offers = vec![offer("Send", SEND, json!({ "uri": uri }), above)];
    if all && layout.session.is_some() {
        let fresh = json!({ "uri": uri, "fresh": true });
        offers.push(offer("Send as a new conversation", SEND, fresh, above));
    }
    offers
}

fn offer(title: &str, command: &'static str, argument: Value, at: Position) -> ChatOffer {
    ChatOffer { title: title.to_owned(), command, argument, at }
}

fn line(at: Position) -> Position {
    Position::new(at.line, 0)
}
