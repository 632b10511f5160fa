//! The command `kode.model`: which model answers, named or picked.
//!
//! Rule: the first choice of the picker changes nothing, and only models that can be used are offered; the command
//! answers before anything is picked. Models that run on this machine are offered too, and become a profile when picked.

use std::sync::Arc;

use kode_engine::agent::session::Session;
use kode_engine::agent::state::config::ConfigChange;
use kode_engine::base::ids::SessionId;
use kode_engine::base::task;
use kode_engine::model::profile::Profile;
use kode_engine::providers::discovery::Discovery;
use kode_protocol::{SetupChoice, SetupKey};
use lsp_types::request::ShowMessageRequest;
use lsp_types::{MessageActionItem, MessageType, ShowMessageRequestParams};
use serde::Deserialize;
use serde_json::{Value, json};

use super::review::publish::report;
use crate::agent::Agent;
use crate::convert::error::{self, RequestError};
use crate::display::printable;
use crate::setup;

/// The command that chooses the model.
pub(super) const MODEL: &str = "kode.model";

/// Maximum number of models to pick from; the others can be named.
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

/// A model to pick.
struct ModelChoice {
    target: ChoiceTarget,
    title: String,
}

/// The meaning of a title in the picker.
enum ChoiceTarget {
    /// A profile, by its name.
    Profile(String),
    /// A model that runs on this machine and has no profile yet.
    Running(SetupChoice),
}

/// Chooses the named model: `{model}`. Without a name the user picks, `{asked, model, models}`; a client that cannot
/// ask shows the list, `{text, model, models}`.
pub(super) fn choose(agent: &Arc<Agent>, choose: &ChooseModel) -> Result<Value, RequestError> {
    let session = match &choose.session_id {
        Some(id) => agent.engine.session(id),
        None => agent.plain_session(),
    };
    let session = session.map_err(error::session)?;
    if let Some(name) = &choose.model {
        let name = session.models().named(name).map_err(|reason| error::model(&reason))?;
        session.configure(ConfigChange { model: Some(name.clone()), ..ConfigChange::default() });
        return Ok(json!({ "model": name }));
    }
    let now = session.snapshot(0).model;
    let models = agent.engine.models();
    let all: Vec<_> = models.profiles().map(|profile| offered(profile, &now)).collect();
    let names: Vec<_> = models.profiles().map(|profile| &profile.name).collect();
    let mut answer = json!({ "model": now, "models": names });
    if agent.connection.facts.get().is_some_and(|facts| facts.show_message_request) {
        let offered: Vec<_> = all.into_iter().take(OFFERED).collect();
        answer["asked"] = json!(offered.len());
        pick(agent, session, offered);
    } else {
        let lines = all.iter().map(|offered| offered.title.clone());
        let how = format!("Choose one by {MODEL} with {{\"model\": \"NAME\"}}.");
        let text = lines.chain([how]).collect::<Vec<_>>().join("\n");
        report(&agent.connection, &text);
        answer["text"] = json!(text);
    }
    Ok(answer)
}

/// Asks which model is meant; the answer is carried out by a task of its own.
fn pick(agent: &Arc<Agent>, session: Arc<Session>, mut offered: Vec<ModelChoice>) {
    let agent = Arc::clone(agent);
    // Waits as long as the user does, and keeps no session alive meanwhile.
    let waiting = Arc::downgrade(&session);
    drop(session);
    task::spawn(async move {
        offered.extend(running(&agent, OFFERED.saturating_sub(offered.len())).await);
        let titles = [CANCEL].into_iter().chain(offered.iter().map(|offered| offered.title.as_str()));
        let actions =
            titles.map(|title| MessageActionItem { title: title.to_owned(), properties: Default::default() });
        let request = ShowMessageRequestParams {
            typ: MessageType::INFO,
            message: "Kode: Which model should answer from now on?".to_owned(),
            actions: Some(actions.collect()),
        };
        let chosen = match agent.connection.client.send_request::<ShowMessageRequest>(request).await {
            Ok(chosen) => chosen.map(|chosen| chosen.title),
            Err(error) => {
                tracing::warn!(%error, "the message request failed");
                None
            }
        };
        let chosen = offered.into_iter().find(|offered| Some(&offered.title) == chosen.as_ref());
        let (Some(chosen), Some(session)) = (chosen, waiting.upgrade()) else { return };
        let name = match chosen.target {
            ChoiceTarget::Profile(name) => Ok(name),
            ChoiceTarget::Running(choice) => {
                let name = free_name(&agent, &choice);
                setup::keep(&agent, choice, Some(name), false).await.map(|saved| saved.profile)
            }
        };
        match name {
            Ok(name) => {
                session.configure(ConfigChange { model: Some(name), ..ConfigChange::default() });
                report(&agent.connection, &format!("Kode: {} will answer from now on.", chosen.title));
            }
            Err(error) => report(&agent.connection, &format!("Kode: {error}")),
        }
    });
}

/// Models that run on this machine and have no profile, at most this many.
async fn running(agent: &Agent, most: usize) -> Vec<ModelChoice> {
    let servers = Discovery::shared().local(false).await;
    let models = agent.engine.models();
    let mut offered = Vec::new();
    for server in servers {
        for model in server.models {
            let is_known = models.profile_of(&server.base_url, &model.name).is_some();
            if !is_known && offered.len() < most {
                let title = printable(&format!("{} ({}, on this machine)", model.name, server.label));
                let choice = SetupChoice {
                    provider: server.provider.clone(),
                    model: Some(model.name),
                    key: SetupKey::None {},
                    options: Value::Null,
                };
                offered.push(ModelChoice { target: ChoiceTarget::Running(choice), title });
            }
        }
    }
    offered
}

/// A name for the profile of a choice that replaces no other profile.
fn free_name(agent: &Agent, choice: &SetupChoice) -> String {
    let models = agent.engine.models();
    let is_taken = |name: &str| models.profiles().any(|profile| profile.name == name);
    let model = choice.model.iter().flat_map(|model| model.chars());
    let model: String = model.map(|char| if char.is_alphanumeric() { char } else { '-' }).collect();
    let names = [choice.provider.clone(), format!("{}-{model}", choice.provider)].into_iter();
    let numbered = (2_u32..).map(|number| format!("{}-{model}-{number}", choice.provider));
    names.chain(numbered).find(|name| !is_taken(name)).unwrap_or_default()
}

/// Profiles have different names, and so the titles differ.
fn offered(profile: &Profile, now: &str) -> ModelChoice {
    let mark = if profile.name == now { ", now" } else { "" };
    let title = printable(&format!("{} ({}, {}{mark})", profile.name, profile.model, profile.host()));
    ModelChoice { target: ChoiceTarget::Profile(profile.name.clone()), title }
}
