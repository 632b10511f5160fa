//! Hunks as diagnostics: the list of what waits, for editors that have no other.
//!
//! Rule: never louder than a hint, but for a conflict, about which the user must do something.

use kode_engine::base::ids::CallId;
use kode_engine::text::edit::ledger::review::{FileReview, HunkState, HunkView};
use lsp_types::{Diagnostic, DiagnosticSeverity, NumberOrString};
use ropey::Rope;
use serde_json::json;

use super::place::HunkLocation;
use super::words::{counts, does, verdict};
use super::{SHOWN_HUNKS, waits};
use crate::display::printable;
use crate::lsp::PositionEncoding;

/// The source of all our diagnostics.
pub(crate) const SOURCE: &str = "kode";

/// The diagnostics of a file. `tool` names the tool of a call.
pub(crate) fn diagnostics(
    file: &FileReview,
    encoding: PositionEncoding,
    tool: impl Fn(&CallId) -> Option<String>,
) -> Vec<Diagnostic> {
    let shown = file.hunks.iter().filter(|hunk| waits(hunk)).take(SHOWN_HUNKS);
    shown
        .map(|hunk| {
            let tool = tool(&hunk.call).map(|tool| format!("{}, ", printable(&tool))).unwrap_or_default();
            let since = match (hunk.state, hunk.amended) {
                (HunkState::Conflict, _) => "; you have changed it since: keep it or undo it",
                (HunkState::Applied, true) => "; you have changed it since",
                (HunkState::Proposed | HunkState::Applied | HunkState::Kept | HunkState::Undone, _) => "",
            };
            let verdict = verdict(hunk.diagnostics.as_ref());
            Diagnostic {
                range: HunkLocation::of(&file.text, hunk).range(&file.text, encoding),
                severity: Some(severity(hunk)),
                code: Some(NumberOrString::String(code(hunk).to_owned())),
                source: Some(SOURCE.to_owned()),
                message: format!("Kode {} ({tool}{}){since}{verdict}", does(hunk), counts(hunk)),
                data: Some(json!({ "hunkId": hunk.id })),
                ..Diagnostic::default()
            }
        })
        .collect()
}

/// Whether a diagnostic that the editor sends back is the one of this hunk.
pub(super) fn is_of(diagnostic: &Diagnostic, hunk: &HunkView, place: &HunkLocation, text: &Rope) -> bool {
    if diagnostic.source.as_deref() != Some(SOURCE) {
        return false;
    }
    match diagnostic.data.as_ref().and_then(|data| data.get("hunkId")) {
        Some(id) => id.as_str() == Some(hunk.id.as_str()),
        None => {
            let same_code =
                matches!(&diagnostic.code, Some(NumberOrString::String(shown)) if shown == code(hunk));
            same_code && place.touches(text, diagnostic.range)
        }
    }
}

fn severity(hunk: &HunkView) -> DiagnosticSeverity {
    match hunk.state {
        HunkState::Conflict => DiagnosticSeverity::INFORMATION,
        HunkState::Proposed | HunkState::Applied | HunkState::Kept | HunkState::Undone => {
            DiagnosticSeverity::HINT
        }
    }
}

fn code(hunk: &HunkView) -> &'static str {
    match hunk.state {
        HunkState::Proposed => "kode.proposed",
        HunkState::Applied => "kode.applied",
        HunkState::Conflict => "kode.conflict",
        HunkState::Kept => "kode.kept",
        HunkState::Undone => "kode.undone",
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;
    use crate::plain::review::testing::{WithHunks, file};

    #[test]
    fn each_hunk_that_waits_is_a_quiet_diagnostic() {
        let mut file = file("🙂 x\r\nnew\r\nmine")
            .applied("x", "y", 0..1)
            .proposed("new\r\n", "", 1)
            .applied("mine", "", 2..3)
            .in_conflict()
            .applied("new", "", 1..2);
        file.hunks[3].state = HunkState::Kept;
        let tool = |_: &CallId| Some("Edit".to_owned());
        let shown = serde_json::to_value(diagnostics(&file, PositionEncoding::Utf16, tool)).unwrap();
        let seen: Vec<_> = shown
            .as_array()
            .unwrap()
            .iter()
            .map(|diagnostic| {
                let at =
                    |end: &str| (&diagnostic["range"][end]["line"], &diagnostic["range"][end]["character"]);
                let at = [at("start"), at("end")]
                    .map(|(line, character)| (line.as_u64().unwrap(), character.as_u64().unwrap()));
                (
                    at,
                    diagnostic["severity"].as_u64().unwrap(),
                    diagnostic["code"].as_str().unwrap(),
                    diagnostic["message"].as_str().unwrap(),
                )
            })
            .collect();
        assert_eq!(
            seen,
            [
                ([(0, 3), (0, 4)], 4, "kode.applied", "Kode changed 1 line (Edit, +1 -1)"),
                ([(1, 0), (1, 3)], 4, "kode.proposed", "Kode would remove 1 line (Edit, +0 -1)"),
                (
                    [(2, 0), (2, 4)],
                    3,
                    "kode.conflict",
                    "Kode added 1 line (Edit, +1 -0); you have changed it since: keep it or undo it"
                ),
            ]
        );
        assert_eq!(shown[0]["source"], "kode");
        assert_eq!(shown[0]["data"], json!({ "hunkId": file.hunks[0].id }));
        assert_eq!(shown[0].get("tags"), None::<&Value>);
    }
}
