//! The choices of a session as config options: mode, model, effort, output style.
//!
//! Rule: every answer has the whole list, in the same order.

use std::sync::Arc;

use agent_client_protocol_schema::v1::{
    Error, SessionConfigOption, SessionConfigOptionCategory, SessionConfigOptionValue,
    SessionConfigSelectOption,
};
use kode_engine::agent::history::Snapshot;
use kode_engine::agent::session::Session;
use kode_engine::agent::state::config::ConfigChange;
use kode_engine::base::effort::Effort;
use kode_engine::base::mode::Mode;

use super::agent::AcpAgent;
use super::{error, mode};

/// The option of the mode.
const MODE: &str = "mode";
/// The option of the model profile.
const MODEL: &str = "model";
/// The option of the thinking effort.
const EFFORT: &str = "effort";
/// The value that leaves the effort to the profile and the settings.
const AUTO: &str = "auto";

/// The options of a session with their current values.
pub(super) fn options(agent: &AcpAgent, now: &Snapshot) -> Vec<SessionConfigOption> {
    vec![modes(now.mode), models(agent, &now.model), efforts(now.effort)]
}

fn modes(current: Mode) -> SessionConfigOption {
    let value = |mode: &Mode| {
        SessionConfigSelectOption::new(mode.name(), mode.label())
            .description(mode::description(*mode).to_owned())
    };
    let values: Vec<_> = Mode::ALL.iter().map(value).collect();
    SessionConfigOption::select(MODE, "Mode", current.name(), values)
        .description("The calls that the agent may make without asking.".to_owned())
        .category(SessionConfigOptionCategory::Mode)
}

fn models(agent: &AcpAgent, current: &str) -> SessionConfigOption {
    let models = agent.engine.models();
    let mut values: Vec<_> = models
        .profiles()
        .map(|profile| {
            SessionConfigSelectOption::new(profile.name.clone(), profile.name.clone())
                .description(profile.model.clone())
        })
        .collect();
    // The current value is always one of those to choose from, also a profile that cannot be used.
    if !models.profiles().any(|profile| profile.name == current) {
        values.insert(0, SessionConfigSelectOption::new(current.to_owned(), current.to_owned()));
    }
    SessionConfigOption::select(MODEL, "Model", current.to_owned(), values)
        .category(SessionConfigOptionCategory::Model)
}

fn efforts(current: Option<Effort>) -> SessionConfigOption {
    let name = |effort: Option<Effort>| effort.map_or(AUTO, Effort::name);
    let label = |effort: Option<Effort>| match effort {
        None => "Automatic",
        Some(Effort::Low) => "Low",
        Some(Effort::Medium) => "Medium",
        Some(Effort::High) => "High",
    };
    let all = std::iter::once(None).chain(Effort::ALL.into_iter().map(Some));
    let values: Vec<_> =
        all.map(|effort| SessionConfigSelectOption::new(name(effort), label(effort))).collect();
    SessionConfigOption::select(EFFORT, "Thinking effort", name(current), values)
        .category(SessionConfigOptionCategory::ThoughtLevel)
}

/// Sets an option of a session.
///
/// # Errors
/// An unknown option, or a value that it does not have.
pub(super) async fn set(
    session: &Arc<Session>,
    option: &str,
    value: &SessionConfigOptionValue,
) -> Result<(), Error> {
    let SessionConfigOptionValue::ValueId { value } = value else {
        return Err(error::invalid_params(&format!("The option `{option}` takes one of its values.")));
    };
    let value: &str = &value.0;
    match option {
        MODE => set_mode(session, value).await,
        MODEL => {
            let model = session.models().named(value).map_err(|problem| {
                error::invalid_params(&format!("{} {}", problem.message, problem.hint()))
            })?;
            session.configure(ConfigChange { model: Some(model), ..ConfigChange::default() });
            Ok(())
        }
        EFFORT => {
            let effort = Effort::ALL.into_iter().find(|effort| effort.name() == value);
            if effort.is_none() && value != AUTO {
                return Err(error::invalid_params(&format!("There is no effort `{value}`.")));
            }
            session.configure(ConfigChange { effort: Some(effort), ..ConfigChange::default() });
            Ok(())
        }
        _ => Err(error::invalid_params(&format!("There is no option `{option}`."))),
    }
}

/// Sets the mode of a session.
///
/// # Errors
/// An unknown mode, or one that the settings have switched off.
pub(super) async fn set_mode(session: &Arc<Session>, name: &str) -> Result<(), Error> {
    let mode = Mode::ALL.into_iter().find(|mode| mode.name() == name);
    let mode = mode.ok_or_else(|| error::invalid_params(&format!("There is no mode `{name}`.")))?;
    session.gate().allow_mode(mode).await.map_err(|disabled| error::invalid_params(&disabled.to_string()))?;
    session.set_mode(mode);
    Ok(())
}
