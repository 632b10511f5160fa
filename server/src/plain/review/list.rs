//! `kode.listEdits`: what waits, as data and as lines to read.
//!
//! Rule: a list is bounded and says what it leaves out.

use kode_engine::ids::SessionId;
use kode_engine::session::review::{FileReview, HunkView};
use serde::Deserialize;
use serde_json::{Value, json};

use super::place::{Place, line_count};
use super::resolve::sessions;
use super::words::{counts, does, path, several, state};
use super::{SHOWN_HUNKS, Waiting, waits};
use crate::agent::Agent;
use crate::client::WorkspaceRoot;
use crate::convert;
use crate::handlers::error::Failure;

/// The argument of `kode.listEdits`.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub(crate) struct ListEdits {
    session_id: Option<SessionId>,
}

/// Lists what waits: `{text, edits: [{sessionId, hunkId, turnId, uri, path, line, state, added, removed}], more}`.
pub(crate) fn list(agent: &Agent, list: &ListEdits) -> Result<Value, Failure> {
    let sessions = sessions(agent, list.session_id.as_ref())?;
    let reviews: Vec<_> = sessions.iter().map(|session| (session.id().clone(), session.review())).collect();
    Ok(listed(&reviews, &agent.shared.workspace_roots()))
}

fn listed(reviews: &[(SessionId, Vec<FileReview>)], roots: &[WorkspaceRoot]) -> Value {
    let total = Waiting::of(reviews.iter().flat_map(|(_, files)| files)).total();
    let mut lines = vec![match total {
        0 => "No change waits for a decision.".to_owned(),
        total => format!("{}:", several(total, "change")),
    }];
    let mut edits = Vec::new();
    let all = reviews.iter().flat_map(|(session, files)| files.iter().map(move |file| (session, file)));
    let all = all.flat_map(|(session, file)| file.hunks.iter().map(move |hunk| (session, file, hunk)));
    for (session, file, hunk) in all.filter(|(_, _, hunk)| waits(hunk)).take(SHOWN_HUNKS) {
        let line = Place::of(&file.text, hunk).lines.start + 1;
        let path = path(&file.target, roots);
        lines.push(format!("{path}:{line}: {} ({}). {}", does(hunk), counts(hunk), state(hunk)));
        edits.push(edit(session, file, hunk, &path, line));
    }
    let more = total - edits.len();
    if more > 0 {
        lines.push(format!("and {}", several(more, "more change")));
    }
    json!({ "text": lines.join("\n"), "edits": edits, "more": more })
}

fn edit(session: &SessionId, file: &FileReview, hunk: &HunkView, path: &str, line: usize) -> Value {
    json!({
        "sessionId": session,
        "hunkId": hunk.id,
        "turnId": hunk.turn,
        "uri": convert::uri(&file.target).as_str(),
        "path": path,
        "line": line,
        "state": hunk.state,
        "added": line_count(&hunk.new_text),
        "removed": line_count(&hunk.old_text),
    })
}

#[cfg(test)]
mod tests {
    use kode_engine::paths::AbsPath;

    use super::*;
    use crate::plain::review::testing::{PATH, WithHunks, file};

    #[test]
    fn what_waits_is_listed_with_its_place() {
        let roots = [WorkspaceRoot { path: AbsPath::new("/w").unwrap(), name: "w".to_owned() }];
        let review = file("a\nnew\n").applied("new\n", "old\n", 1..2).proposed("a\n", "", 0);
        let session = SessionId::generate();
        let listed = listed(&[(session.clone(), vec![review.clone()])], &roots);
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
        let listed = listed(&[(SessionId::generate(), vec![review])], &[]);
        assert_eq!(listed["edits"].as_array().unwrap().len(), SHOWN_HUNKS);
        assert_eq!(listed["more"], 1);
        assert!(listed["text"].as_str().unwrap().ends_with("\nand 1 more change"));
        let nothing = super::listed(&[], &[]);
        assert_eq!(nothing, json!({ "text": "No change waits for a decision.", "edits": [], "more": 0 }));
    }
}
