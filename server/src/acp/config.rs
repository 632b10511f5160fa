//! The choices of a session as config options: mode, model, effort, output style, profile of the sandbox.
//!
//! Rule: every answer has the whole list, in the same order.

use std::sync::Arc;

use agent_client_protocol_schema::v1::{
    Error, SessionConfigOption, SessionConfigOptionCategory, SessionConfigOptionValue,
    SessionConfigSelectOption,
};
use kode_engine::agent::engine::AttachedSession;
use kode_engine::agent::history::Snapshot;
use kode_engine::agent::session::Session;
use kode_engine::agent::state::config::ConfigChange;
use kode_engine::base::effort::Effort;
use kode_engine::base::mode::Mode;
use kode_engine::config::sandbox_profile::DEFAULT_PROFILE;
use kode_engine::config::style::{Style, Styles};

use super::agent::AcpAgent;
use super::{error, mode};

/// The option of the mode.
const MODE: &str = "mode";
/// The option of the model profile.
const MODEL: &str = "model";
/// The option of the thinking effort.
const EFFORT: &str = "effort";
/// The option of the output style.
const STYLE: &str = "style";
/// The option of the sandbox profile.
const SANDBOX: &str = "sandbox";
/// The value that leaves the effort to the profile and the settings, and the style to the settings.
const AUTO: &str = "auto";

/// The options of a session with their current values. Styles of the user are among them once their files were read, and only
/// the process that writes the session knows more than the current style and profile.
pub(super) fn options(
    agent: &AcpAgent,
    attached: &AttachedSession,
    now: &Snapshot,
) -> Vec<SessionConfigOption> {
    let (known, profiles) = match attached {
        AttachedSession::Live(session) => {
            (session.extensions().live().known(), session.gate().sandbox_profiles())
        }
        AttachedSession::Following(_) => (None, Vec::new()),
    };
    let style = match known {
        Some(known) => styles(known.styles.iter(), now.output_style.as_deref()),
        None => styles(Styles::default().iter(), now.output_style.as_deref()),
    };
    let sandbox = sandboxes(profiles, now.sandbox.as_deref());
    vec![modes(now.mode), models(agent, &now.model), efforts(now.effort), style, sandbox]
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
    let values = models.profiles().map(|profile| described(&profile.name, &profile.model)).collect();
    select(MODEL, "Model", current, values).category(SessionConfigOptionCategory::Model)
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

fn styles<'a>(known: impl Iterator<Item = &'a Style>, current: Option<&str>) -> SessionConfigOption {
    let automatic = SessionConfigSelectOption::new(AUTO, "Automatic")
        .description("The style of the settings.".to_owned());
    let named = known.map(|style| described(&style.name, &style.description));
    let values = std::iter::once(automatic).chain(named).collect();
    select(STYLE, "Style", current.unwrap_or(AUTO), values)
        .description("How the agent writes its answers.".to_owned())
}

fn sandboxes(profiles: Vec<(String, String)>, current: Option<&str>) -> SessionConfigOption {
    let values = profiles.iter().map(|(name, description)| described(name, description)).collect();
    select(SANDBOX, "Sandbox", current.unwrap_or(DEFAULT_PROFILE), values)
        .description("The files and hosts that commands can reach.".to_owned())
}

fn described(name: &str, description: &str) -> SessionConfigSelectOption {
    let value = SessionConfigSelectOption::new(name.to_owned(), name.to_owned());
    if description.is_empty() { value } else { value.description(description.to_owned()) }
}

/// An option whose current value is always one of those to choose from, also where its file is gone.
fn select(
    id: &'static str,
    name: &'static str,
    current: &str,
    mut values: Vec<SessionConfigSelectOption>,
) -> SessionConfigOption {
    if !values.iter().any(|value| &*value.value.0 == current) {
        values.insert(0, described(current, ""));
    }
    SessionConfigOption::select(id, name, current.to_owned(), values)
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
        STYLE => {
            let style = match value {
                AUTO => None,
                name => {
                    let found = session.extensions().style_named(name).await;
                    Some(found.map_err(|problem| error::invalid_params(&problem))?)
                }
            };
            session.configure(ConfigChange { output_style: Some(style), ..ConfigChange::default() });
            Ok(())
        }
        SANDBOX => {
            let profile = session.gate().profile_named(value);
            let profile = profile.map_err(|problem| error::invalid_params(&problem))?;
            session.configure(ConfigChange { sandbox: Some(profile), ..ConfigChange::default() });
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
