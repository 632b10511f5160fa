//! The text of a skill or command: its arguments filled in, its own commands run, its equipment settled.
//!
//! Rule: a command in a file of the workspace runs only as the user has approved it, and every command passes the whole
//! pipeline of a Bash call. An expansion that fails ends with its reason before the model reads anything.

use tokio_util::sync::CancellationToken;

use crate::models::SessionModels;
use crate::turn::embed;
use crate::turn::services::TurnContext;
use kode_base::blocking;
use kode_base::command_shell::CommandShell;
use kode_base::effort::Effort;
use kode_base::paths::Target;
use kode_base::variables::expand;
use kode_config::extension::Extension;
use kode_config::extension::template::{SHELL_KEY, TOOLS_KEY, TemplateSegment};
use kode_config::hooks::declared::HOOKS_KEY;
use kode_config::settings::TrustRequest;
use kode_permission::equipment::Equipment;
use kode_permission::rules::{Behavior, Rule};
use kode_process::programs;

/// The text in the place of a command whose execution is disabled.
const DISABLED: &str = "[not run: disableSkillShellExecution is set]";

/// The expansion of a skill or command.
#[derive(Debug)]
pub(crate) struct ExtensionExpansion {
    /// The extension as its file describes it now.
    pub(crate) extension: Extension,
    /// Its text for the model.
    pub(crate) text: String,
    /// The same without the output of commands, in which nothing is a mention.
    pub(crate) words: String,
    /// Its equipment.
    pub(crate) equipment: Equipment,
    /// The parts of it that do not apply, for people.
    pub(crate) notes: Vec<String>,
}

/// Expands a skill or command for a turn.
///
/// # Errors
/// Why it cannot be used, for the user.
pub(crate) async fn expand_extension(
    turn: TurnContext<'_>,
    extension: &Extension,
    arguments: &str,
    cancel: &CancellationToken,
) -> Result<ExtensionExpansion, String> {
    let known = extension.clone();
    let (extension, template) = blocking(move || known.read()).await?;
    let (services, workspace) = (turn.services, &turn.services.environment.workspace);
    // An approval, and its withdrawal, applies at once.
    let is_disabled =
        services.gate.refreshed().await.policy.declared.switches.disable_shell_embeds == Some(true);
    let waiting = services.gate.unapproved(extension.trust_requests.clone()).await;
    let (equipment, notes) = equipment_of(&services.models, &extension, &waiting);
    let (id, folder) = (services.core.id().to_string(), extension.folder.to_string());
    let project = workspace.roots().first().cloned().unwrap_or_else(|| workspace.cwd());
    let effort = services.core.state().config.effort.or(equipment.effort);
    let plugin = extension.plugin.clone();
    if let Some(plugin) = plugin.clone() {
        blocking(move || plugin.make_data()).await;
    }
    let variables = |name: &str| {
        if let Some(found) = plugin.as_ref().and_then(|plugin| plugin.variable(name)) {
            return Some(found);
        }
        let name = name.strip_prefix("CLAUDE_").or_else(|| name.strip_prefix("KODE_"))?;
        Some(match name {
            "SESSION_ID" => id.clone(),
            "SKILL_DIR" => folder.clone(),
            "PROJECT_DIR" => project.to_string(),
            "EFFORT" => effort.map_or("auto", Effort::name).to_owned(),
            _ => return None,
        })
    };
    let segments = template.fill(&extension, arguments, &variables);
    let runs = segments.iter().any(|segment| matches!(segment, TemplateSegment::Command(_)));
    if runs && !is_disabled {
        may_embed(&extension, &waiting)?;
    }
    let place = workspace.display(&Target::File(extension.path.clone()));
    let (mut text, mut words) = (String::new(), String::new());
    for segment in segments {
        match segment {
            TemplateSegment::Text(part) => {
                text.push_str(&part);
                words.push_str(&part);
            }
            TemplateSegment::Command(_) if is_disabled => text.push_str(DISABLED),
            TemplateSegment::Command(command) => {
                let of_file = (place.as_str(), extension.shell, command.as_str());
                text.push_str(&embed::run(turn, of_file, &equipment, cancel).await?);
                words.push(' ');
            }
        }
    }
    let text = format!(
        "`{}` from {}. Base folder of the relative paths in it: {folder}\n\n{}",
        extension.name,
        extension.path,
        text.trim()
    );
    Ok(ExtensionExpansion { extension, text, words, equipment, notes })
}

/// The equipment of a skill or command, and the parts of it that do not apply. `waiting` are the requests that wait for the
/// user's approval.
fn equipment_of(
    models: &SessionModels,
    extension: &Extension,
    waiting: &[TrustRequest],
) -> (Equipment, Vec<String>) {
    let mut notes = extension.notes.clone();
    let mut equipment = Equipment { deny: extension.disallowed_tools.clone(), ..Equipment::default() };
    if waiting.iter().any(|trust_request| trust_request.key == TOOLS_KEY) {
        notes.push(format!(
            "`allowed-tools` of {} waits for your approval (`/trust`); until then these tools ask as usual",
            extension.path
        ));
    } else {
        let of_plugin = |name: &str| extension.plugin.as_ref().and_then(|plugin| plugin.variable(name));
        let rules = extension.allowed_tools.iter();
        equipment.allow = rules.map(|rule| expand(rule, &of_plugin).text).collect();
    }
    for (rules, behavior) in [(&mut equipment.allow, Behavior::Allow), (&mut equipment.deny, Behavior::Deny)]
    {
        rules.retain(|text| match text.parse::<Rule>().and_then(|rule| rule.check(behavior)) {
            Ok(()) => true,
            Err(error) => {
                notes.push(format!("`{text}` is ignored: {error}"));
                false
            }
        });
    }
    if waiting.iter().any(|trust_request| trust_request.key.starts_with(HOOKS_KEY)) {
        notes.push(format!(
            "`hooks` of {} wait for your approval (`/trust`); until then they do not run",
            extension.path
        ));
    }
    let chosen = models.chosen(extension.model.as_deref(), extension.effort, waiting);
    if chosen.waits {
        notes.push(format!(
            "`model` and `effort` of {} wait for your approval (`/trust`); until then those of the session count",
            extension.path
        ));
    }
    equipment.effort = chosen.effort;
    match chosen.model {
        Some(Ok(model)) => equipment.model = Some(model),
        Some(Err(error)) => notes.push(format!("its `model` is ignored: {error}")),
        None => {}
    }
    (equipment, notes)
}

/// Whether the commands of a file may run. `waiting` are its requests that wait for the user's approval.
fn may_embed(extension: &Extension, waiting: &[TrustRequest]) -> Result<(), String> {
    if waiting.iter().any(|trust_request| trust_request.key == SHELL_KEY) {
        return Err(format!(
            "{} runs commands, which wait for your approval: `/trust` shows and approves them",
            extension.path
        ));
    }
    match extension.shell {
        CommandShell::Bash => Ok(()),
        CommandShell::PowerShell if programs::shell(CommandShell::PowerShell).is_some() => Ok(()),
        CommandShell::PowerShell => {
            Err(format!("{} is written for PowerShell, which is not there", extension.path))
        }
    }
}
