//! Makes the text of a skill or command: arguments put in, its own commands run, and what it brings along settled.
//!
//! Rule: a command in a file of the workspace runs only as the user has approved it, and every one goes the whole way of a
//! call of Bash. Whatever cannot be done breaks it off with the reason, before the model hears of it.

use tokio_util::sync::CancellationToken;

use crate::session::Session;
use crate::session::conversation::Conversation;
use crate::turn::embed;
use kode_base::blocking;
use kode_base::effort::Effort;
use kode_base::ids::TurnId;
use kode_base::paths::Target;
use kode_base::variables::expand;
use kode_config::extension::template::{MODEL_KEY, SHELL_KEY, TOOLS_KEY, TemplateSegment};
use kode_config::extension::{CommandShell, Extension};
use kode_config::hooks::declared::HOOKS_KEY;
use kode_config::settings::TrustRequest;
use kode_model::ModelError;
use kode_model::models::Pointer;
use kode_permission::equipment::Equipment;
use kode_permission::rules::{Behavior, Rule};

/// What stands where a command would have run, where that is switched off.
const DISABLED: &str = "[not run: disableSkillShellExecution is set]";

/// A skill or command that can be handed to the model.
#[derive(Debug)]
pub(crate) struct Expanded {
    /// What its file says of it now.
    pub(crate) extension: Extension,
    /// Its text as the model gets it.
    pub(crate) text: String,
    /// The same without what commands put out: in that, nothing is a mention.
    pub(crate) words: String,
    /// What it brings along.
    pub(crate) equipment: Equipment,
    /// What of it does not count, for people.
    pub(crate) notes: Vec<String>,
}

/// What counts of the model and the effort that a file names.
#[derive(Debug)]
pub(crate) struct Chosen {
    /// The name of the profile, or why there is none; `None` where the file names none that counts.
    pub(crate) model: Option<Result<String, ModelError>>,
    /// How hard it thinks.
    pub(crate) effort: Option<Effort>,
    /// Whether some of it waits for the user's approval.
    pub(crate) waits: bool,
}

impl Session {
    /// Makes the text of a skill or command, for a turn of a conversation.
    ///
    /// # Errors
    /// Why it cannot be used, for the user.
    pub(crate) async fn expand(
        &self,
        conversation: &Conversation<'_>,
        turn: &TurnId,
        extension: &Extension,
        arguments: &str,
        cancel: &CancellationToken,
    ) -> Result<Expanded, String> {
        let known = extension.clone();
        let (extension, template) = blocking(move || known.read()).await?;
        // Whoever approves, and whoever takes it back, is heard at once.
        let is_disabled = self.look().await.policy.declared.switches.disable_shell_embeds == Some(true);
        let waiting = self.unapproved(extension.wishes.clone()).await;
        let (equipment, notes) = self.equipment_of(&extension, &waiting);
        let (id, folder) = (self.id().to_string(), extension.folder.to_string());
        let project = self.workspace.roots().first().cloned().unwrap_or_else(|| self.workspace.cwd());
        let effort = self.state().effort.or(equipment.effort);
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
        let place = self.display(&Target::File(extension.path.clone()));
        let (mut text, mut words) = (String::new(), String::new());
        for segment in segments {
            match segment {
                TemplateSegment::Text(part) => {
                    text.push_str(&part);
                    words.push_str(&part);
                }
                TemplateSegment::Command(_) if is_disabled => text.push_str(DISABLED),
                TemplateSegment::Command(command) => {
                    let of_file = (place.as_str(), command.as_str());
                    text.push_str(&embed::run(conversation, turn, of_file, &equipment, cancel).await?);
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
        Ok(Expanded { extension, text, words, equipment, notes })
    }

    /// What of this, which files of the workspace ask for, the user has not approved, by the settings as they were looked at
    /// last.
    pub async fn unapproved(&self, wishes: Vec<TrustRequest>) -> Vec<TrustRequest> {
        if wishes.is_empty() {
            return wishes;
        }
        let source = self.policy_source();
        // What stands for a wish takes a look at its folder.
        blocking(move || wishes.into_iter().filter(|wish| !source.is_approved(wish)).collect()).await
    }

    /// What a skill or command brings along, and what of it does not count. `waiting` is what waits for the user.
    fn equipment_of(&self, extension: &Extension, waiting: &[TrustRequest]) -> (Equipment, Vec<String>) {
        let mut notes = extension.notes.clone();
        let mut equipment = Equipment { deny: extension.disallowed_tools.clone(), ..Equipment::default() };
        if waiting.iter().any(|wish| wish.key == TOOLS_KEY) {
            notes.push(format!(
                "`allowed-tools` of {} waits for your approval (`/trust`); until then these tools ask as usual",
                extension.path
            ));
        } else {
            let of_plugin = |name: &str| extension.plugin.as_ref().and_then(|plugin| plugin.variable(name));
            let rules = extension.allowed_tools.iter();
            equipment.allow = rules.map(|rule| expand(rule, &of_plugin).text).collect();
        }
        for (rules, behavior) in
            [(&mut equipment.allow, Behavior::Allow), (&mut equipment.deny, Behavior::Deny)]
        {
            rules.retain(|text| match text.parse::<Rule>().and_then(|rule| rule.check(behavior)) {
                Ok(()) => true,
                Err(error) => {
                    notes.push(format!("`{text}` does not count: {error}"));
                    false
                }
            });
        }
        if waiting.iter().any(|wish| wish.key.starts_with(HOOKS_KEY)) {
            notes.push(format!(
                "`hooks` of {} wait for your approval (`/trust`); until then they do not run",
                extension.path
            ));
        }
        let chosen = self.chosen(extension.model.as_deref(), extension.effort, waiting);
        if chosen.waits {
            notes.push(format!(
                "`model` and `effort` of {} wait for your approval (`/trust`); until then those of the session count",
                extension.path
            ));
        }
        equipment.effort = chosen.effort;
        match chosen.model {
            Some(Ok(model)) => equipment.model = Some(model),
            Some(Err(error)) => notes.push(format!("its `model` does not count: {error}")),
            None => {}
        }
        (equipment, notes)
    }

    /// What counts of the model and the effort that a file names which asks for these things. Until the user has approved
    /// it, a file of the workspace can name the roles that the user has given models to, and nothing else. `waiting` is what of
    /// it waits for the user.
    pub(crate) fn chosen(
        &self,
        model: Option<&str>,
        effort: Option<Effort>,
        waiting: &[TrustRequest],
    ) -> Chosen {
        let waits = waiting.iter().any(|wish| wish.key == MODEL_KEY);
        if !waits {
            return Chosen { model: model.map(|name| self.model_named(name)), effort, waits };
        }
        let role = model.and_then(Pointer::parse);
        Chosen { model: role.map(|role| Ok(self.pointer(role))), effort: None, waits }
    }
}

/// Whether the commands of a file may run at all. `waiting` is what of it waits for the user.
fn may_embed(extension: &Extension, waiting: &[TrustRequest]) -> Result<(), String> {
    if waiting.iter().any(|wish| wish.key == SHELL_KEY) {
        return Err(format!(
            "{} runs commands, which wait for your approval: `/trust` shows and approves them",
            extension.path
        ));
    }
    match extension.shell {
        CommandShell::Bash => Ok(()),
        CommandShell::PowerShell => {
            Err(format!("{} is written for PowerShell, which is not started here", extension.path))
        }
    }
}
