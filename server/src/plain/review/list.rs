//! `kode.listEdits`: what waits, as data and as lines to read.
//!
//! Rule: a list is bounded and says what it leaves out.

use kode_engine::base::ids::SessionId;
use kode_engine::text::edit::ledger::review::FileReview;
use serde::Deserialize;
use serde_json::{Value, json};

use super::place::{HunkLocation, line_count};
use super::resolve::sessions;
use super::words::{counts, does, path, several, state};
use super::{PendingHunks, SHOWN_HUNKS, waits};
use crate::agent::Agent;
use crate::convert::UriNames;
use crate::convert::error::RequestError;

/// The argument of `kode.listEdits`.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub(crate) struct ListEditsArgument {
    session_id: Option<SessionId>,
}

/// Lists what waits: `{text, edits: [{sessionId, hunkId, turnId, uri, path, line, state, added, removed}], more}`.
pub(crate) fn list(agent: &Agent, list: &ListEditsArgument) -> Result<Value, RequestError> {
    let sessions = sessions(agent, list.session_id.as_ref())?;
    let mut files = Vec::new();
    for session in sessions {
        let of_session = session.edits().review().into_iter();
        files.extend(of_session.map(|file| (session.id().clone(), path(&session, &file.target), file)));
    }
    Ok(listed(&files, UriNames::of(&agent.connection.documents)))
}

/// The files with the sessions they are of and what these call them.
fn listed(files: &[(SessionId, String, FileReview)], names: UriNames<'_>) -> Value {
    let total = PendingHunks::of(files.iter().map(|(_, _, file)| file)).total();
    let mut lines = vec![match total {
        0 => "No change waits for a decision.".to_owned(),
        total => format!("{}:", several(total, "change")),
    }];
    let mut edits = Vec::new();
    let all = files.iter().flat_map(|listed| listed.2.hunks.iter().map(move |hunk| (listed, hunk)));
    for ((session, path, file), hunk) in all.filter(|(_, hunk)| waits(hunk)).take(SHOWN_HUNKS) {
        let line = HunkLocation::of(&file.text, hunk).lines.start + 1;
        lines.push(format!("{path}:{line}: {} ({}). {}", does(hunk), counts(hunk), state(hunk)));
        edits.push(json!({
            "sessionId": session,
            "hunkId": hunk.id,
            "turnId": hunk.turn,
            "uri": names.uri(&file.target).as_str(),
            "path": path,
            "line": line,
            "state": hunk.state,
            "added": line_count(&hunk.new_text),
            "removed": line_count(&hunk.old_text),
        }));
    }
    let more = total - edits.len();
    if more > 0 {
        lines.push(format!("and {}", several(more, "more change")));
    }
    json!({ "text": lines.join("\n"), "edits": edits, "more": more })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plain::review::testing::{PATH, WithHunks, file};

    #[test]
    fn what_waits_is_listed_with_its_place() {
        let review = file("a\nnew\n").applied("new\n", "old\n", 1..2).proposed("a\n", "", 0);
        let session = SessionId::generate();
        let listed =
            listed(&[(session.clone(), "src/a.rs".to_owned(), review.clone())], UriNames::standard());
        assert_eq!(
            listed["text"],
            "2 changes:\n\
             src/a.rs:2: changed 1 line (+1 -1). In the text, not reviewed yet.\n\
             src/a.rs:1: would remove 1 line (+0 -1). Not in the text yet: it waits for your answer."
        );
        assert_eq!(
            listed["edits"][0],
            json!({
                "sessionId": session, "hunkId": review.hunks[0].id, "turnId": review.hunks[0].turn,
                "uri": format!("file://{PATH}"), "path": "src/a.rs", "line": 2, "state": "applied",
                "added": 1, "removed": 1,
            })
        );
    }

    #[test]
    fn a_long_list_says_what_it_leaves_out() {
        let mut review = file("a\n");
        for _ in 0..=SHOWN_HUNKS {
            review = review.applied("a\n", "", 0..1);
        }
        let listed = listed(&[(SessionId::generate(), "src/a.rs".to_owned(), review)], UriNames::standard());
        assert_eq!(listed["edits"].as_array().unwrap().len(), SHOWN_HUNKS);
        assert_eq!(listed["more"], 1);
        assert!(listed["text"].as_str().unwrap().ends_with("\nand 1 more change"));
        let nothing = super::listed(&[], UriNames::standard());
        assert_eq!(nothing, json!({ "text": "No change waits for a decision.", "edits": [], "more": 0 }));
    }
}
