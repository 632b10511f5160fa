//! Makes the text of a skill or command: arguments put in, its own commands run, and what it brings along settled.
//!
//! Rule: a command in a file of the workspace runs only as the user has approved it, and every one goes through the gate and
//! the sandbox like a call of the model. Whatever cannot be done breaks it off with the reason, before the model hears of it.

use std::time::Duration;

use tokio_util::sync::CancellationToken;

use crate::edit::ledger::Change;
use crate::extension::template::{SHELL_KEY, Segment, TOOLS_KEY};
use crate::extension::{CommandShell, Extension};
use crate::ids::{CallId, ChangeId, TurnId};
use crate::permission::GateDecision;
use crate::permission::gate::Case;
use crate::permission::rules::{Behavior, Rule};
use crate::session::Session;
use crate::session::equipment::Equipment;
use crate::session::review::HunkKind;
use crate::settings::Wish;
use crate::shell::{CommandSpec, Exit};
use crate::tools::{ToolKind, Touch};
use crate::workspace::blocking;

/// So long one command may take.
const COMMAND_TIME: Duration = Duration::from_secs(30);

/// The most bytes that one command's output may have; more of it breaks the text off.
const MAX_OUTPUT: usize = 64 << 10;

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

impl Session {
    /// Makes the text of a skill or command, for a turn.
    ///
    /// # Errors
    /// Why it cannot be used, for the user.
    pub(crate) async fn expand(
        &self,
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
        let variables = |name: &str| {
            let name = name.strip_prefix("CLAUDE_").or_else(|| name.strip_prefix("KODE_"))?;
            Some(match name {
                "SESSION_ID" => id.clone(),
                "SKILL_DIR" => folder.clone(),
                "PROJECT_DIR" => project.to_string(),
                "EFFORT" => effort.map_or("auto", crate::model::Effort::name).to_owned(),
                _ => return None,
            })
        };
        let segments = template.fill(&extension, arguments, &variables);
        let runs = segments.iter().any(|segment| matches!(segment, Segment::Command(_)));
        if runs && !is_disabled {
            may_embed(&extension, &waiting)?;
        }
        let (mut text, mut words) = (String::new(), String::new());
        for segment in segments {
            match segment {
                Segment::Text(part) => {
                    text.push_str(&part);
                    words.push_str(&part);
                }
                Segment::Command(_) if is_disabled => text.push_str(DISABLED),
                Segment::Command(command) => {
                    text.push_str(&self.embed(turn, &command, &equipment, cancel).await?);
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
    pub async fn unapproved(&self, wishes: Vec<Wish>) -> Vec<Wish> {
        if wishes.is_empty() {
            return wishes;
        }
        let source = self.policy_source();
        // What stands for a wish takes a look at its folder.
        blocking(move || wishes.into_iter().filter(|wish| !source.is_approved(wish)).collect()).await
    }

    /// What a skill or command brings along, and what of it does not count. `waiting` is what waits for the user.
    fn equipment_of(&self, extension: &Extension, waiting: &[Wish]) -> (Equipment, Vec<String>) {
        let mut notes = extension.notes.clone();
        let mut equipment = Equipment {
            deny: extension.disallowed_tools.clone(),
            effort: extension.effort,
            ..Equipment::default()
        };
        if waiting.iter().any(|wish| wish.key == TOOLS_KEY) {
            notes.push(format!(
                "`allowed-tools` of {} waits for your approval (`/trust`); until then these tools ask as usual",
                extension.path
            ));
        } else {
            equipment.allow.clone_from(&extension.allowed_tools);
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
        if let Some(name) = &extension.model {
            match self.model_named(name) {
                Ok(model) => equipment.model = Some(model),
                Err(error) => notes.push(format!("its `model` does not count: {error}")),
            }
        }
        (equipment, notes)
    }

    /// Runs a command of a text and gives what it puts out.
    async fn embed(
        &self,
        turn: &TurnId,
        command: &str,
        equipment: &Equipment,
        cancel: &CancellationToken,
    ) -> Result<String, String> {
        let directory = self.workspace.cwd();
        let input = serde_json::json!({ "command": command });
        let touches = [Touch::Command {
            command: command.to_owned(),
            directory: directory.clone(),
            outside_sandbox: false,
        }];
        let case = Case { tool: "Bash", kind: ToolKind::Execute, input: &input, touches: &touches };
        self.look().await;
        let judged = self.judge_with(&case, self.mode(), equipment);
        match judged.verdict.decision {
            GateDecision::Allow => {}
            GateDecision::Ask => {
                return Err(format!(
                    "`{command}` would have to be asked for ({}); allow it by a rule, or in the `allowed-tools` of the file",
                    judged.verdict.reason
                ));
            }
            GateDecision::Deny => return Err(format!("`{command}` is refused: {}", judged.verdict.reason)),
        }
        // What it changes is entered as the agent's, and must not be taken for what another call changes.
        let _alone = self.agents.alone().await;
        let _until_its_changes_are_entered = self.command_runs();
        let scan = self.before_command().await;
        let shell = self.shell.elsewhere(directory.clone());
        let spec = CommandSpec {
            command: command.to_owned(),
            directory,
            timeout: COMMAND_TIME,
            sandbox: judged.sandbox,
            call: None,
        };
        let ran = shell.run(spec, |_| {}, cancel).await;
        let change = Change {
            id: ChangeId::generate(),
            turn: turn.clone(),
            call: CallId::generate(),
            kind: HunkKind::Text,
            permission: None,
        };
        self.after_command(scan, &change).await;
        match ran {
            Ok(outcome) if outcome.exit == Exit::Code(0) => {
                let text = outcome.output.text.trim_end();
                if text.len() > MAX_OUTPUT {
                    return Err(format!("`{command}` put out more than {MAX_OUTPUT} bytes"));
                }
                Ok(text.to_owned())
            }
            Ok(outcome) => {
                let text = outcome.output.text.trim();
                let shown: String = text.chars().take(1_000).collect();
                Err(format!("`{command}` failed ({}):\n{shown}", ended(&outcome.exit)))
            }
            Err(error) => Err(format!("`{command}` could not be run: {error}")),
        }
    }
}

/// Whether the commands of a file may run at all. `waiting` is what of it waits for the user.
fn may_embed(extension: &Extension, waiting: &[Wish]) -> Result<(), String> {
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

fn ended(exit: &Exit) -> String {
    match exit {
        Exit::Code(code) => format!("exit code {code}"),
        Exit::TimedOut => format!("it took longer than {} s", COMMAND_TIME.as_secs()),
        Exit::Cancelled => "cancelled".to_owned(),
        Exit::Signal(signal) => format!("ended by signal {signal}"),
    }
}
