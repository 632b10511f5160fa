//! Opens a page that the user has said yes to, by the editor.
//!
//! Rule: only an answer to the question about exactly this page opens it, once. An editor that opens none shows the address.

use std::sync::Arc;

use kode_engine::agent::session::Session;
use kode_engine::base::ids::QuestionId;
use kode_engine::base::page::PageOffer;
use kode_engine::base::question::Reply;
use kode_engine::base::task;
use lsp_types::{MessageType, ShowDocumentParams, Url};

use crate::connection::ClientConnection;

/// The page that an answer to a question that waits has opened.
pub(crate) fn chosen(session: &Session, question: &QuestionId, reply: &Reply) -> Option<PageOffer> {
    let waiting = session.requests().questions();
    let asked = waiting.iter().find(|asked| asked.id == *question)?;
    asked.draft.opened(reply).cloned()
}

/// Opens a page in a task of its own.
pub(crate) fn open(connection: &Arc<ClientConnection>, page: Option<PageOffer>) {
    let Some(page) = page else { return };
    let connection = Arc::clone(connection);
    task::spawn(async move {
        let shows = connection.facts.get().is_some_and(|facts| facts.show_document);
        if let (true, Ok(uri)) = (shows, Url::parse(&page.address)) {
            let params =
                ShowDocumentParams { uri, external: Some(true), take_focus: Some(true), selection: None };
            match connection.client.show_document(params).await {
                Ok(true) => return,
                Ok(false) => tracing::info!("the editor opens no page"),
                Err(error) => tracing::warn!(%error, "the editor could not be asked to open a page"),
            }
        }
        let text = format!("Open this page in a browser: {}", page.address);
        connection.client.show_message(MessageType::INFO, text).await;
    });
}
