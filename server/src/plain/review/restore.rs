//! `kode.checkpoints` and `kode.restore`: going back to the state before a prompt.
//!
//! Rule: going back needs a checkpoint that was named or picked; the first choice of the picker changes nothing, and
//! the command answers before anything is picked.

use std::sync::Arc;

use jiff::tz::TimeZone;
use kode_engine::agent::edits::review::{
    CheckpointView, ResolveError, RestorePreview, RestoreWhat, UserEdits,
};
use kode_engine::agent::session::Session;
use kode_engine::base::ids::{CheckpointId, SessionId};
use kode_engine::base::paths::Target;
use kode_engine::base::task;
use lsp_types::request::ShowMessageRequest;
use lsp_types::{MessageActionItem, MessageType, ShowMessageRequestParams};
use serde::Deserialize;
use serde_json::{Value, json};

use super::resolve::sessions;
use super::words::{path, several, short};
use crate::agent::Agent;
use crate::connection::ClientConnection;
use crate::convert::error::{self, RequestError};
use crate::display::{both_ends, printable};

/// Maximum number of checkpoints to pick from, and in an error, the newest.
const OFFERED: usize = 9;

/// Maximum number of listed checkpoints, the newest.
const LISTED: usize = 200;

/// Maximum characters of a preview.
const PREVIEW_LIMIT: usize = 4_000;

/// The choice that changes nothing; first, because a stray key takes the first.
const CANCEL: &str = "Cancel";

/// The argument of `kode.checkpoints`.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub(crate) struct CheckpointsArgument {
    session_id: Option<SessionId>,
}

/// The argument of `kode.restore`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub(crate) struct RestoreArgument {
    checkpoint_id: Option<CheckpointId>,
    session_id: Option<SessionId>,
    what: Option<RestoreWhat>,
    user_edits: UserEdits,
    dry_run: bool,
}

type SessionCheckpoint = (Arc<Session>, CheckpointView);

/// Lists the checkpoints, newest first:
/// `{text, checkpoints: [{checkpointId, sessionId, turnId, title, timestamp, files, uncovered}]}`.
pub(crate) fn checkpoints(agent: &Agent, wanted: &CheckpointsArgument) -> Result<Value, RequestError> {
    let known = known(agent, wanted.session_id.as_ref())?;
    let lines: Vec<_> = known.iter().take(LISTED).map(|(_, checkpoint)| line(checkpoint)).collect();
    let text = if lines.is_empty() { "There is no checkpoint yet.".to_owned() } else { lines.join("\n") };
    let listed = known.iter().take(LISTED);
    let listed: Vec<_> = listed.map(|(session, checkpoint)| listed_one(session, checkpoint)).collect();
    Ok(json!({ "text": text, "checkpoints": listed }))
}

/// Begins to restore, tells what that would do, or asks which checkpoint is meant.
pub(crate) async fn restore(agent: &Agent, restore: RestoreArgument) -> Result<Value, RequestError> {
    let known = known(agent, restore.session_id.as_ref())?;
    let Some(id) = &restore.checkpoint_id else { return pick(&agent.connection, known, restore) };
    let session = known.iter().find(|(_, checkpoint)| checkpoint.id == *id).map(|(session, _)| session);
    let Some(session) = session else {
        return Err(error::resolve(ResolveError::UnknownCheckpoint(id.clone())));
    };
    carry_out(&agent.connection, session, id, &restore).await.map_err(error::resolve)
}

/// Asks which checkpoint is meant; the answer is carried out by a task of its own.
fn pick(
    connection: &Arc<ClientConnection>,
    known: Vec<SessionCheckpoint>,
    restore: RestoreArgument,
) -> Result<Value, RequestError> {
    if known.is_empty() {
        return Err(error::invalid_params("checkpointId", "there is no checkpoint yet"));
    }
    if !connection.facts.get().is_some_and(|facts| facts.show_message_request) {
        let named = known.iter().take(OFFERED);
        let named: Vec<_> = named
            .map(|(_, checkpoint)| format!("{} ({})", checkpoint.id, short(&checkpoint.title)))
            .collect();
        let message = format!("name a checkpoint, the newest are: {}", named.join(", "));
        return Err(error::invalid_params("checkpointId", &message));
    }
    let connection = Arc::clone(connection);
    let asked = known.len().min(OFFERED);
    task::spawn(async move {
        let titles = titles(known.iter().map(|(_, checkpoint)| checkpoint));
        let request = ShowMessageRequestParams {
            typ: MessageType::INFO,
            message: question(&restore),
            actions: Some(
                titles
                    .iter()
                    .map(|title| MessageActionItem { title: title.clone(), properties: Default::default() })
                    .collect(),
            ),
        };
        let chosen = match connection.client.send_request::<ShowMessageRequest>(request).await {
            Ok(chosen) => chosen.map(|chosen| chosen.title),
            Err(error) => {
                tracing::warn!(%error, "the message request failed");
                None
            }
        };
        // A choice is a checkpoint only behind the choice that changes nothing.
        let place = titles.iter().position(|title| Some(title) == chosen.as_ref()).unwrap_or_default();
        let Some((session, checkpoint)) = place.checked_sub(1).and_then(|place| known.get(place)) else {
            return;
        };
        if let Err(error) = carry_out(&connection, session, &checkpoint.id, &restore).await {
            connection.client.show_message(MessageType::ERROR, format!("Kode: {error}")).await;
        }
    });
    Ok(json!({ "asked": asked }))
}

async fn carry_out(
    connection: &Arc<ClientConnection>,
    session: &Arc<Session>,
    checkpoint: &CheckpointId,
    restore: &RestoreArgument,
) -> Result<Value, ResolveError> {
    let what = restore.what.unwrap_or(RestoreWhat::Both);
    if restore.dry_run {
        let preview = session.edits().preview_restore(checkpoint, what, restore.user_edits).await?;
        let answer = previewed(&preview, |target| path(session, target));
        super::publish::report(connection, answer["text"].as_str().unwrap_or_default());
        return Ok(answer);
    }
    let id = session.edits().restore(checkpoint, what, restore.user_edits)?;
    Ok(json!({ "sessionId": session.id(), "resolutionId": id }))
}

/// The checkpoints of a session or of all, newest first.
fn known(agent: &Agent, session: Option<&SessionId>) -> Result<Vec<SessionCheckpoint>, RequestError> {
    let sessions = sessions(agent, session)?;
    let mut known: Vec<_> = sessions
        .iter()
        .flat_map(|session| {
            session.edits().checkpoints().into_iter().map(|checkpoint| (Arc::clone(session), checkpoint))
        })
        .collect();
    known.sort_by(|(_, a), (_, b)| (b.timestamp, &b.id).cmp(&(a.timestamp, &a.id)));
    Ok(known)
}

fn question(restore: &RestoreArgument) -> String {
    let what = match restore.what.unwrap_or(RestoreWhat::Both) {
        RestoreWhat::Conversation => "the conversation",
        RestoreWhat::Files => "the files",
        RestoreWhat::Both => "conversation and files",
    };
    let own = match (restore.what, restore.user_edits) {
        (Some(RestoreWhat::Conversation), _) => "",
        (_, UserEdits::Keep) => " Your own changes stay.",
        (_, UserEdits::Discard) => " Your own changes since then are undone as well.",
    };
    let verb = if restore.dry_run { "show what would change to bring" } else { "bring" };
    format!("Kode: {verb} {what} back to the state before which prompt?{own}")
}

/// The choices: none of them twice, the one that changes nothing first.
fn titles<'a>(checkpoints: impl Iterator<Item = &'a CheckpointView>) -> Vec<String> {
    let numbered = checkpoints.take(OFFERED).enumerate();
    let numbered = numbered.map(|(place, checkpoint)| format!("{}: {}", place + 1, line(checkpoint)));
    std::iter::once(CANCEL.to_owned()).chain(numbered).collect()
}

fn line(checkpoint: &CheckpointView) -> String {
    let time = checkpoint.timestamp.to_zoned(TimeZone::system()).strftime("%Y-%m-%d %H:%M");
    let files = several(checkpoint.targets.len(), "file");
    format!("{} ({time}, {files})", short(&checkpoint.title))
}

fn listed_one(session: &Session, checkpoint: &CheckpointView) -> Value {
    let paths =
        |targets: &[Target]| -> Vec<String> { targets.iter().map(|target| path(session, target)).collect() };
    json!({
        "checkpointId": checkpoint.id,
        "sessionId": session.id(),
        "turnId": checkpoint.turn,
        "title": checkpoint.title,
        "timestamp": checkpoint.timestamp.to_string(),
        "files": paths(&checkpoint.targets),
        "uncovered": paths(&checkpoint.uncovered),
    })
}

/// The effect of a restore: `{text, files: [{path, unified, userEdits, problem}], items}`.
fn previewed(preview: &RestorePreview, path: impl Fn(&Target) -> String) -> Value {
    let mut lines = vec![format!(
        "{} would change, {} of the transcript would go.",
        several(preview.files.len(), "file"),
        several(preview.items, "item")
    )];
    for file in &preview.files {
        let path = path(&file.target);
        match &file.problem {
            Some(problem) => lines.push(format!("{path} cannot be restored: {}", printable(problem))),
            None if file.user_edits.is_empty() => lines.push(path),
            None => lines.push(format!("{path} (you have changed it yourself since)")),
        }
        lines.push(printable(&file.unified));
    }
    let files: Vec<_> = preview
        .files
        .iter()
        .map(|file| {
            json!({
                "path": path(&file.target),
                "unified": file.unified,
                "userEdits": file.user_edits,
                "problem": file.problem,
            })
        })
        .collect();
    json!({ "text": both_ends(&lines.join("\n"), PREVIEW_LIMIT), "files": files, "items": preview.items })
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use kode_engine::agent::edits::review::RestoreFile;
    use kode_engine::base::ids::{ItemId, TurnId};
    use kode_engine::base::paths::AbsPath;

    use super::*;

    fn checkpoint(title: &str) -> CheckpointView {
        CheckpointView {
            id: CheckpointId::generate(),
            turn: TurnId::generate(),
            item: ItemId::generate(),
            title: title.to_owned(),
            timestamp: Timestamp::UNIX_EPOCH,
            targets: vec![Target::File(AbsPath::new("/w/a.rs").unwrap())],
            uncovered: vec![],
        }
    }

    #[test]
    fn the_first_choice_changes_nothing_and_no_two_are_the_same() {
        let checkpoints: Vec<_> = (0..20).map(|_| checkpoint("Fix\nthe typo")).collect();
        let titles = titles(checkpoints.iter());
        assert_eq!((titles.len(), titles[0].as_str()), (1 + OFFERED, CANCEL));
        assert!(titles[1].starts_with("1: Fix the typo (") && titles[1].ends_with(", 1 file)"), "{titles:?}");
        let mut different = titles.clone();
        different.sort();
        different.dedup();
        assert_eq!(different.len(), titles.len());
    }

    #[test]
    fn the_question_says_what_becomes_of_the_users_own_changes() {
        let ask = |argument| question(&serde_json::from_value(argument).unwrap());
        let both = ask(json!({}));
        assert!(both.contains("conversation and files") && both.contains("stay"), "{both}");
        assert!(ask(json!({ "userEdits": "discard" })).contains("are undone as well"));
        assert!(!ask(json!({ "what": "conversation", "userEdits": "discard" })).contains("Your own changes"));
    }

    #[test]
    fn a_preview_names_files_own_changes_and_problems() {
        let file = |name: &str, user_edits: &str, problem: Option<&str>| RestoreFile {
            target: Target::File(AbsPath::new(format!("/w/{name}")).unwrap()),
            unified: "-new\n+old\n".to_owned(),
            user_edits: user_edits.to_owned(),
            problem: problem.map(str::to_owned),
        };
        let preview = RestorePreview {
            files: vec![
                file("a", "", None),
                file("b", "+mine\n", None),
                file("c", "", Some("it is too large")),
            ],
            items: 4,
        };
        let answer = previewed(&preview, |target| target.to_string().replace("/w/", ""));
        let text = answer["text"].as_str().unwrap();
        for expected in [
            "3 files would change, 4 items",
            "\na\n-new\n+old",
            "b (you have changed",
            "c cannot be restored: it is too",
        ] {
            assert!(text.contains(expected), "no {expected:?} in {text}");
        }
        assert_eq!(answer["files"][1]["userEdits"], "+mine\n");
        assert_eq!(answer["files"][2]["problem"], "it is too large");
    }
}
