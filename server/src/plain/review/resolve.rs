//! The commands that decide about hunks: `kode.acceptEdits`, `rejectEdits`, `keepEdits`, `undoEdits`, `revertEdits`.
//!
//! Rule: a command that names no hunk means those that wait, so that it never takes back earlier decisions; it
//! answers when the decision has started, and how it went is reported by an event.

use std::sync::Arc;

use kode_engine::agent::edits::review::{AmendedPolicy, ResolveError};
use kode_engine::agent::session::Session;
use kode_engine::base::ids::{HunkId, ResolutionId, SessionId, TurnId};
use kode_engine::text::edit::ledger::review::{FileReview, HunkState, HunkView, ReviewAction, Selection};
use lsp_types::{Command, Url};
use serde::Deserialize;
use serde_json::{Value, json};

use super::waits_for;
use crate::agent::Agent;
use crate::convert::error::{self, RequestError};
use crate::documents;
use crate::plain::PlainFrontEnd;

/// The command that takes a decision back.
pub(crate) const REVERT: &str = "kode.revertEdits";

/// Which hunks are meant, and how: the argument of the four commands that decide.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub(crate) struct EditsArgument {
    hunk_ids: Option<Vec<HunkId>>,
    uri: Option<Url>,
    turn_id: Option<TurnId>,
    all: bool,
    session_id: Option<SessionId>,
    amended: AmendedPolicy,
}

/// The argument of [`REVERT`].
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub(crate) struct RevertArgument {
    resolution_id: Option<ResolutionId>,
    session_id: Option<SessionId>,
}

/// The command for an action, with its argument.
pub(super) fn command(title: &str, action: ReviewAction, argument: Value) -> Command {
    let name = match action {
        ReviewAction::Accept => "kode.acceptEdits",
        ReviewAction::Reject => "kode.rejectEdits",
        ReviewAction::Keep => "kode.keepEdits",
        ReviewAction::Undo => "kode.undoEdits",
    };
    Command { title: title.to_owned(), command: name.to_owned(), arguments: Some(vec![argument]) }
}

/// Begins to decide about hunks, in every session that has some of those that are meant.
pub(crate) fn resolve(
    agent: &Agent,
    action: ReviewAction,
    edits: &EditsArgument,
) -> Result<Value, RequestError> {
    let sessions = sessions(agent, edits.session_id.as_ref())?;
    let reviews: Vec<_> = sessions.iter().map(|session| session.edits().review()).collect();
    let (mut begun, mut refused) = (Vec::new(), Vec::new());
    for (place, selection) in selections(&reviews, action, edits)? {
        let session = &sessions[place];
        match session.edits().resolve(&selection, action, edits.amended) {
            Ok(id) => begun.push(json!({ "sessionId": session.id(), "resolutionId": id })),
            Err(error) => refused.push(error),
        }
    }
    if begun.is_empty() {
        let nothing = ResolveError::Nothing { action: action.verb() };
        // A conflict is more useful than the report that another session has nothing to do.
        let reporting = refused.iter().position(|error| *error != nothing).unwrap_or_default();
        return Err(error::resolve(if refused.is_empty() {
            nothing
        } else {
            refused.swap_remove(reporting)
        }));
    }
    refused.retain(|error| !matches!(error, ResolveError::Nothing { .. }));
    let problems: Vec<_> = refused.iter().map(ToString::to_string).collect();
    Ok(json!({ "resolutions": begun, "problems": problems }))
}

/// Begins to take a decision back: the one that is named, or the newest.
pub(crate) fn revert(
    front_end: &PlainFrontEnd,
    agent: &Agent,
    revert: &RevertArgument,
) -> Result<Value, RequestError> {
    let mut sessions = sessions(agent, revert.session_id.as_ref())?;
    // The newest decision of all is in the session that was decided about last.
    let last = front_end.publisher.decided_last();
    sessions.sort_by_key(|session| last.as_ref() != Some(session.id()));
    let mut refused = ResolveError::UnknownResolution;
    for session in sessions {
        match session.edits().revert(revert.resolution_id.as_ref()) {
            Ok(id) => return Ok(json!({ "sessionId": session.id(), "resolutionId": id })),
            Err(ResolveError::UnknownResolution) => {}
            Err(error) => refused = error,
        }
    }
    Err(error::resolve(refused))
}

/// The session that is named, or all live ones, the newest first.
pub(super) fn sessions(agent: &Agent, named: Option<&SessionId>) -> Result<Vec<Arc<Session>>, RequestError> {
    if let Some(id) = named {
        return Ok(vec![agent.engine.session(id).map_err(error::session)?]);
    }
    let mut sessions = agent.engine.live_sessions();
    sessions.sort_by(|a, b| b.id().cmp(a.id()));
    Ok(sessions)
}

/// The selection in each of the sessions, by the sessions' places in `reviews`.
fn selections(
    reviews: &[Vec<FileReview>],
    action: ReviewAction,
    edits: &EditsArgument,
) -> Result<Vec<(usize, Selection)>, RequestError> {
    let named = [edits.hunk_ids.is_some(), edits.uri.is_some(), edits.turn_id.is_some(), edits.all];
    if named.into_iter().filter(|named| *named).count() > 1 {
        let message = "only one of `hunkIds`, `uri`, `turnId` and `all` can say which changes are meant";
        return Err(error::invalid_params("arguments[0]", message));
    }
    let target = edits.uri.as_ref().map(documents::target);
    let meant: Vec<Vec<HunkId>> = match &edits.hunk_ids {
        Some(ids) => by_session(reviews, ids)?,
        None => {
            let in_file = |file: &&FileReview| target.as_ref().is_none_or(|target| file.target == *target);
            let in_turn = |hunk: &&HunkView| edits.turn_id.as_ref().is_none_or(|turn| hunk.turn == *turn);
            let waits = |hunk: &&HunkView| {
                let conflict = hunk.state == HunkState::Conflict && edits.amended == AmendedPolicy::Undo;
                waits_for(action, hunk) || (conflict && action == ReviewAction::Undo)
            };
            let ids = |files: &Vec<FileReview>| {
                let hunks = files.iter().filter(in_file).flat_map(|file| file.hunks.iter());
                hunks.filter(in_turn).filter(waits).map(|hunk| hunk.id.clone()).collect()
            };
            reviews.iter().map(ids).collect()
        }
    };
    let meant = meant.into_iter().enumerate().filter(|(_, ids)| !ids.is_empty());
    Ok(meant.map(|(place, ids)| (place, Selection::Hunks(ids))).collect())
}

/// The hunks by the sessions they are of. A hunk that no longer waits is known to its session alone, which must then
/// be the only one.
fn by_session(reviews: &[Vec<FileReview>], ids: &[HunkId]) -> Result<Vec<Vec<HunkId>>, RequestError> {
    let mut meant = vec![Vec::new(); reviews.len()];
    for id in ids {
        let has =
            |files: &Vec<FileReview>| files.iter().any(|file| file.hunks.iter().any(|hunk| hunk.id == *id));
        let place = match reviews {
            [_] => Some(0),
            _ => reviews.iter().position(has),
        };
        let unknown = || {
            let message =
                format!("no change `{id}` waits; name the `sessionId` of one that was decided about");
            error::invalid_params("hunkIds", &message)
        };
        meant[place.ok_or_else(unknown)?].push(id.clone());
    }
    Ok(meant)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plain::review::testing::{PATH, WithHunks, file};

    fn edits(argument: Value) -> EditsArgument {
        serde_json::from_value(argument).unwrap()
    }

    /// The numbers of the selected hunks, session by session.
    fn selected(
        reviews: &[Vec<FileReview>],
        action: ReviewAction,
        argument: Value,
    ) -> Vec<(usize, Vec<usize>)> {
        let hunks = |place: usize| reviews[place].iter().flat_map(|file| &file.hunks);
        selections(reviews, action, &edits(argument))
            .unwrap()
            .into_iter()
            .map(|(place, selection)| {
                let Selection::Hunks(ids) = selection else { panic!("no hunks: {selection:?}") };
                let number = |id| hunks(place).position(|hunk| hunk.id == id).unwrap();
                (place, ids.into_iter().map(number).collect())
            })
            .collect()
    }

    /// One session with a proposed, an applied, a kept and a conflict hunk in one file and an applied one in another,
    /// and a second session with an applied hunk in the same file.
    fn reviews() -> Vec<Vec<FileReview>> {
        let mut first = file("a\nb\nc\nd\n")
            .proposed("a\n", "", 0)
            .applied("b\n", "", 1..2)
            .applied("c\n", "", 2..3)
            .applied("d\n", "", 3..4)
            .in_conflict();
        first.hunks[2].state = HunkState::Kept;
        let other = FileReview {
            target: kode_engine::base::paths::Target::Untitled("untitled:1".to_owned()),
            ..file("x\n").applied("x\n", "", 0..1)
        };
        vec![vec![first, other], vec![file("b\n").applied("b\n", "", 0..1)]]
    }

    #[test]
    fn without_names_the_changes_that_wait_are_meant_and_no_others() {
        let reviews = reviews();
        let all = |action, argument| selected(&reviews, action, argument);
        for argument in [json!({}), json!({ "all": true })] {
            assert_eq!(all(ReviewAction::Accept, argument.clone()), [(0, vec![0])]);
            assert_eq!(all(ReviewAction::Reject, argument.clone()), [(0, vec![0])]);
            assert_eq!(all(ReviewAction::Keep, argument.clone()), [(0, vec![1, 3, 4]), (1, vec![0])]);
            assert_eq!(all(ReviewAction::Undo, argument), [(0, vec![1, 4]), (1, vec![0])]);
        }
        let amended = json!({ "amended": "undo" });
        assert_eq!(all(ReviewAction::Undo, amended), [(0, vec![1, 3, 4]), (1, vec![0])]);
        let uri = format!("file://{PATH}");
        assert_eq!(all(ReviewAction::Keep, json!({ "uri": uri })), [(0, vec![1, 3]), (1, vec![0])]);
        assert_eq!(all(ReviewAction::Keep, json!({ "uri": "untitled:1" })), [(0, vec![4])]);
        assert_eq!(all(ReviewAction::Keep, json!({ "uri": "untitled:2" })), []);
        let turn = json!({ "turnId": reviews[0][0].hunks[3].turn });
        assert_eq!(all(ReviewAction::Keep, turn.clone()), [(0, vec![3])]);
        assert_eq!(all(ReviewAction::Undo, turn), [], "a conflict is undone only when that is said");
    }

    #[test]
    fn named_changes_are_meant_in_whatever_state_they_are() {
        let reviews = reviews();
        let (kept, other) = (&reviews[0][0].hunks[2].id, &reviews[1][0].hunks[0].id);
        let both = json!({ "hunkIds": [other, kept] });
        assert_eq!(selected(&reviews, ReviewAction::Undo, both), [(0, vec![2]), (1, vec![0])]);
        let decided = json!({ "hunkIds": ["hunk_decided"] });
        let failure = selections(&reviews, ReviewAction::Undo, &edits(decided.clone())).unwrap_err();
        assert!(failure.message.contains("hunk_decided"), "{failure:?}");
        let alone = selections(&reviews[..1], ReviewAction::Undo, &edits(decided)).unwrap();
        assert_eq!(alone, [(0, Selection::Hunks(vec![HunkId::from_external("hunk_decided")]))]);
    }

    #[test]
    fn an_argument_that_could_mean_too_much_is_refused() {
        let both = edits(json!({ "uri": "file:///a", "all": true }));
        let failure = selections(&[], ReviewAction::Undo, &both).unwrap_err();
        assert!(failure.message.contains("only one of"), "{failure:?}");
        let misspelt = serde_json::from_value::<EditsArgument>(json!({ "hunkId": "hunk_1" })).unwrap_err();
        assert!(misspelt.to_string().contains("hunkIds"), "{misspelt}");
    }
}
