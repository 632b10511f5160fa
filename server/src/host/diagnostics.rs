//! Diagnostics of the editor's language servers: the one that `kode-ls wrap` runs, or those of a client that offers them.
//!
//! Rule: waited for at most [`LIMIT`], bounded before anything is made of it, and said to be out of date when the
//! document has another version by now.

use std::sync::Arc;
use std::time::Duration;

use kode_engine::base::paths::Target;
use kode_engine::base::task;
use kode_engine::text::host::{Diagnostic, DiagnosticSeverity, DiagnosticsError, FileDiagnostics};
use kode_protocol as wire;
use lsp_types::Url;
use tokio::sync::oneshot;
use tokio::time::timeout;

use crate::connection::ClientConnection;
use crate::documents::target;
use crate::lsp::PositionEncoding;

/// How long the editor may take.
pub(super) const LIMIT: Duration = Duration::from_secs(5);

/// Maximum number of diagnostics of an answer that are checked.
const MOST: usize = 10_000;

/// Asks about these files, or about all; the client waits for `settle` at most until servers have published.
pub(super) async fn ask(
    connection: &Arc<ClientConnection>,
    targets: &[Target],
    settle: Option<Duration>,
) -> Result<Vec<FileDiagnostics>, DiagnosticsError> {
    if let Some(wrapped) = connection.wrapped.as_ref().filter(|wrapped| wrapped.is_ready()) {
        let of = |asked: &Target| match connection.documents.snapshot_of(asked) {
            Some(document) => (wire::Uri::new(document.uri.as_str()), Some(document.version)),
            None => (wire::Uri::new(connection.documents.uri_of(asked)), None),
        };
        let uris: Vec<_> = targets.iter().map(of).collect();
        return Ok(read(connection, wrapped.diagnostics(&uris, settle).await));
    }
    let uri = |asked: &Target| wire::Uri::new(connection.documents.uri_of(asked));
    let params = wire::EditorDiagnosticsParams {
        uris: targets.iter().map(uri).collect(),
        settle_ms: settle.map(|settle| u32::try_from(settle.as_millis()).unwrap_or(u32::MAX)),
    };
    let (sender, answer) = oneshot::channel();
    let client = connection.client.clone();
    // The request is owned by a task of its own: the service cannot bear an answer no caller waits for.
    task::spawn(async move {
        let _ = sender.send(client.send_request::<wire::EditorDiagnostics>(params).await);
    });
    let failed = |reason: &str| DiagnosticsError::Failed(reason.to_owned());
    match timeout(LIMIT + settle.unwrap_or_default(), answer).await {
        Ok(Ok(Ok(result))) => Ok(read(connection, result)),
        Ok(Ok(Err(error))) => Err(failed(&error.message)),
        Ok(Err(_)) => Err(failed("the connection ended")),
        Err(_) => Err(failed("it did not answer within 5 s")),
    }
}

fn read(connection: &ClientConnection, result: wire::EditorDiagnosticsResult) -> Vec<FileDiagnostics> {
    let encoding = connection.facts.get().map(|facts| facts.encoding).unwrap_or_default();
    let mut room = MOST;
    let mut files = Vec::new();
    for file in result.files {
        let Ok(uri) = Url::parse(file.uri.as_str()) else { continue };
        let target = target(&uri);
        let document = connection.documents.snapshot_of(&target);
        let now = document.as_ref().map(|document| document.version);
        let is_outdated = file.version.is_some_and(|version| now.is_some_and(|now| now != version));
        let text = document.filter(|_| !is_outdated).map(|document| document.text);
        let diagnostics: Vec<Diagnostic> = file
            .diagnostics
            .into_iter()
            .take(room)
            .map(|diagnostic| convert_one(diagnostic, text.as_ref(), encoding))
            .collect();
        room -= diagnostics.len();
        files.push(FileDiagnostics { target, is_outdated, diagnostics });
    }
    files
}

fn convert_one(
    diagnostic: wire::EditorDiagnostic,
    text: Option<&ropey::Rope>,
    encoding: PositionEncoding,
) -> Diagnostic {
    let start = diagnostic.range.start;
    let column = match text.filter(|text| (start.line as usize) < text.len_lines()) {
        Some(text) => {
            let column = encoding.char_index(text, start) - text.line_to_char(start.line as usize);
            u32::try_from(column).unwrap_or(u32::MAX)
        }
        None => start.character,
    };
    Diagnostic {
        line: start.line.saturating_add(1),
        column: column.saturating_add(1),
        severity: match diagnostic.severity {
            Some(4) => DiagnosticSeverity::Hint,
            Some(3) => DiagnosticSeverity::Information,
            Some(2) => DiagnosticSeverity::Warning,
            _ => DiagnosticSeverity::Error,
        },
        message: diagnostic.message,
        source: diagnostic.source.unwrap_or_default(),
        code: diagnostic.code.unwrap_or_default(),
    }
}
