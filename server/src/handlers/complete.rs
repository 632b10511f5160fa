//! `agent/complete`: what can stand at the cursor of a prompt. `textDocument/completion` answers the same.
//!
//! Rule: answered from lists that are made beside everything else; nothing else waits for it.

use std::sync::Arc;

use kode_engine::agent::input::complete::{Completion, CompletionKind, Known, Word, word_at};
use kode_engine::agent::session::Session;
use kode_engine::agent::sessions::{ListSessions, Workspaces};
use kode_engine::base::paths::AbsPath;
use kode_protocol as wire;

use crate::agent::Agent;
use crate::backend::Backend;
use crate::handlers::error::{self, Failure};
use crate::handlers::params::Params;
use crate::lsp::PositionEncoding;

/// So many of the newest conversations can be meant.
const MAX_SESSIONS: usize = 50;

/// Says what can stand at the cursor.
pub(crate) async fn complete(backend: &Backend, params: Params) -> Result<wire::CompleteResult, Failure> {
    let wire::CompleteParams { session_id, text, cursor } = params.read()?;
    let agent = Arc::clone(backend.agent()?);
    let session = session_id.map(|id| backend.session(&id)).transpose()?;
    let encoding = backend.shared().documents.encoding();
    let Some(word) = word_at(&text, byte_at(encoding, &text, cursor)) else {
        return Ok(wire::CompleteResult { start: cursor, items: Vec::new() });
    };
    let found = candidates(&agent, session.as_deref(), word).await?;
    let items = found.into_iter().map(|found| wire::CompletionItem {
        kind: kind(found.kind),
        label: found.label,
        insert_text: found.insert,
        detail: found.detail,
    });
    Ok(wire::CompleteResult { start: encoding.units(&text[..word.start]), items: items.collect() })
}

/// What can be meant by a word of a prompt, best first: of a session, or of one that is still to begin.
pub(crate) async fn candidates(
    agent: &Arc<Agent>,
    session: Option<&Session>,
    word: Word<'_>,
) -> Result<Vec<Completion>, Failure> {
    let roots: Vec<AbsPath> = match session {
        Some(session) => session.roots(),
        None => agent.folders(),
    };
    let own = session.map(|session| session.id().clone());
    let lister = Arc::clone(agent);
    let sessions = if word.typed.starts_with("session:") {
        let query = ListSessions::newest(Workspaces::These(agent.folders()), MAX_SESSIONS + 1);
        let listed = tokio::task::spawn_blocking(move || lister.engine.list_sessions(&query)).await;
        let listed = listed.map_err(|_| error::internal("the list of sessions could not be made"))?;
        let listed = listed.map_err(|bad| error::internal(&bad.to_string()))?.sessions;
        let others = listed.into_iter().filter(|session| Some(&session.id) != own.as_ref());
        others.take(MAX_SESSIONS).map(|session| (session.title, session.id.to_string())).collect()
    } else {
        Vec::new()
    };
    let open = agent.shared.documents.all().into_iter().filter_map(|document| document.path).collect();
    let servers = agent.engine.servers(&roots);
    let resources = servers.resources(None).into_iter().filter(|resource| !resource.uri.contains(['{', ' ']));
    let resources =
        resources.map(|resource| (format!("{}:{}", resource.server, resource.uri), resource.name)).collect();
    let prompts = servers.prompts().into_iter().map(|prompt| (prompt.command, prompt.description)).collect();
    let catalog = Arc::clone(&agent.engine.extensions(&roots).now().await.catalog);
    let can_diagnose = session.is_some_and(Session::can_diagnose);
    let shows_ignored = session.is_some_and(Session::shows_ignored_files);
    let known = Known { roots, open, sessions, resources, catalog, prompts, can_diagnose, shows_ignored };
    Ok(agent.completer.complete(word, &known).await)
}

fn kind(kind: CompletionKind) -> wire::CompletionKind {
    match kind {
        CompletionKind::File => wire::CompletionKind::File,
        CompletionKind::Folder => wire::CompletionKind::Folder,
        CompletionKind::Diagnostics => wire::CompletionKind::Diagnostics,
        CompletionKind::Diff => wire::CompletionKind::Diff,
        CompletionKind::Session => wire::CompletionKind::Session,
        CompletionKind::Command => wire::CompletionKind::Command,
        CompletionKind::Skill => wire::CompletionKind::Skill,
    }
}

/// The byte that a place counted in the client's encoding means: the end when it is past it, the beginning of a
/// character when it is inside.
fn byte_at(encoding: PositionEncoding, text: &str, place: u32) -> usize {
    let mut before = 0;
    for (at, char) in text.char_indices() {
        let length = match encoding {
            PositionEncoding::Utf8 => char.len_utf8(),
            PositionEncoding::Utf16 => char.len_utf16(),
            PositionEncoding::Utf32 => 1,
        };
        if before + length > place as usize {
            return at;
        }
        before += length;
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_in_the_text_is_counted_as_the_client_counts() {
        for (encoding, place) in
            [(PositionEncoding::Utf8, 5), (PositionEncoding::Utf16, 3), (PositionEncoding::Utf32, 2)]
        {
            assert_eq!(byte_at(encoding, "😀a@b", place), 5, "{encoding:?}");
            assert_eq!(encoding.units("😀a"), place);
        }
        assert_eq!(byte_at(PositionEncoding::Utf16, "😀", 1), 0);
        assert_eq!(byte_at(PositionEncoding::Utf16, "a", 9), 1);
    }
}
