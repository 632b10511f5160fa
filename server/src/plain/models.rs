//! The command `kode.model`: which model answers, named or picked.
//!
//! Rule: the first choice of the picker changes nothing, and only models that can be used are offered; the command
//! answers before anything is picked.

use std::sync::Arc;

use kode_engine::agent::session::Session;
use kode_engine::base::ids::SessionId;
use kode_engine::model::profile::Profile;
use lsp_types::request::ShowMessageRequest;
use lsp_types::{MessageActionItem, MessageType, ShowMessageRequestParams};
use serde::Deserialize;
use serde_json::{Value, json};

use super::review::publish::tell;
use crate::agent::Agent;
use crate::connection::ClientConnection;
use crate::convert::error::{self, RequestError};
use crate::display::printable;

/// The command that chooses the model.
pub(super) const MODEL: &str = "kode.model";

/// So many models are offered to pick from; the others can be named.
const OFFERED: usize = 20;

/// The choice that changes nothing; first, because a stray key takes the first.
const CANCEL: &str = "Cancel";

/// The argument of `kode.model`.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub(super) struct ChooseModel {
    /// The name of a profile, or what else means one; picked when it is not said.
    model: Option<String>,
    session_id: Option<SessionId>,
}

/// A model to pick: the name of its profile, and what is shown.
struct ModelChoice {
    name: String,
    title: String,
}

/// Chooses the named model: `{model}`. Without a name the user picks, `{asked, model, models}`; a client that cannot
/// ask shows the list, `{text, model, models}`.
pub(super) fn choose(agent: &Agent, choose: &ChooseModel) -> Result<Value, RequestError> {
    let session = match &choose.session_id {
        Some(id) => agent.engine.session(id),
        None => agent.plain_session(),
    };
    let session = session.map_err(error::session)?;
    if let Some(name) = &choose.model {
        let name = session.model_named(name).map_err(|reason| error::model(&reason))?;
        session.configure(None, Some(name.clone()));
        return Ok(json!({ "model": name }));
    }
    let now = session.snapshot(0).model;
    let models = agent.engine.models();
    let all: Vec<_> = models.profiles().map(|profile| offered(profile, &now)).collect();
    let names: Vec<_> = all.iter().map(|offered| &offered.name).collect();
    let mut answer = json!({ "model": now, "models": names });
    if agent.connection.facts.get().is_some_and(|facts| facts.show_message_request) {
        let offered: Vec<_> = all.into_iter().take(OFFERED).collect();
        answer["asked"] = json!(offered.len());
        pick(&agent.connection, session, offered);
    } else {
        let lines = all.iter().map(|offered| offered.title.clone());
        let how = format!("Choose one by {MODEL} with {{\"model\": \"NAME\"}}.");
        let text = lines.chain([how]).collect::<Vec<_>>().join("\n");
        tell(&agent.connection, &text);
        answer["text"] = json!(text);
    }
    Ok(answer)
}

/// Asks which model is meant; the answer is carried out by a task of its own.
fn pick(connection: &Arc<ClientConnection>, session: Arc<Session>, offered: Vec<ModelChoice>) {
    let connection = Arc::clone(connection);
    // Waits as long as the user does, and keeps no session alive meanwhile.
    let waiting = Arc::downgrade(&session);
    drop(session);
    tokio::spawn(async move {
        let titles = [CANCEL].into_iter().chain(offered.iter().map(|offered| offered.title.as_str()));
        let actions =
            titles.map(|title| MessageActionItem { title: title.to_owned(), properties: Default::default() });
        let request = ShowMessageRequestParams {
            typ: MessageType::INFO,
            message: "Kode: which model is to answer from the next call on?".to_owned(),
            actions: Some(actions.collect()),
        };
        let chosen = match connection.client.send_request::<ShowMessageRequest>(request).await {
            Ok(chosen) => chosen.map(|chosen| chosen.title),
            Err(error) => {
                tracing::warn!(%error, "the message request failed");
                None
            }
        };
        let chosen = offered.into_iter().find(|offered| Some(&offered.title) == chosen.as_ref());
        let (Some(chosen), Some(session)) = (chosen, waiting.upgrade()) else { return };
        session.configure(None, Some(chosen.name));
        tell(&connection, &format!("Kode: from the next call on answers {}.", chosen.title));
    });
}

/// Profiles have different names, and so the titles differ.
fn offered(profile: &Profile, now: &str) -> ModelChoice {
    let mark = if profile.name == now { ", now" } else { "" };
    let title = printable(&format!("{} ({}, {}{mark})", profile.name, profile.model, profile.host()));
    ModelChoice { name: profile.name.clone(), title }
}
