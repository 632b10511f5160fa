//! Skill: the instructions of a skill, read when they are needed.
//!
//! Rule: the list in the description has names and what they are for; the text of a skill is read only when it is
//! used, and made by the turn by the same rules as when the user types its name.

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::Deserialize;

use kode_base::call::{ToolError, ToolErrorKind, ToolKind, Touch};
use kode_config::extension::{Catalog, Extension, ExtensionKind};
use kode_tool::{CallAction, CallContext, CallPlan, ExtensionUse, OfferContext, Tool, ToolFacts};

/// The arguments of Skill.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SkillInput {
    /// The name of the skill, as listed.
    pub skill: String,
    /// Its arguments, as one text.
    #[serde(default)]
    pub args: Option<String>,
}

/// Reads a skill.
#[derive(Clone, Copy, Debug)]
pub struct Skill;

const NAME: &str = "Skill";

#[async_trait]
impl Tool for Skill {
    type Input = SkillInput;

    fn facts(&self) -> ToolFacts {
        ToolFacts {
            name: NAME,
            kind: ToolKind::ReadOnly,
            concurrency_safe: true,
            description: "Reads the instructions of a skill, which then tell you how to do the work. When what the \
                user wants fits a skill, call this first; never name a skill without calling it.",
        }
    }

    fn describe(&self, offer: &OfferContext<'_>) -> Option<String> {
        let listing = offer.catalog.listing(ExtensionKind::Skill)?;
        Some(format!("{}\n\nThe skills:\n{listing}", self.facts().description))
    }

    async fn plan(&self, input: SkillInput, context: &CallContext) -> Result<CallPlan, ToolError> {
        let name = input.skill.trim().trim_start_matches('/').to_owned();
        use_extension(NAME, ExtensionKind::Skill, &name, input.args.unwrap_or_default(), context)
    }
}

/// Plans to use a skill or command by its name.
pub(super) fn use_extension(
    tool: &'static str,
    kind: ExtensionKind,
    name: &str,
    arguments: String,
    context: &CallContext,
) -> Result<CallPlan, ToolError> {
    let found = find(&context.catalog, tool, kind, name)?.clone();
    let title = match arguments.trim() {
        "" => format!("{tool} {name}"),
        arguments => format!("{tool} {name}: {arguments}"),
    };
    let touches = vec![Touch::Named { tool, name: name.to_owned() }];
    Ok(CallPlan {
        title,
        touches,
        action: CallAction::Use(Box::new(ExtensionUse { extension: found, arguments })),
    })
}

fn find<'a>(
    catalog: &'a Catalog,
    tool: &str,
    kind: ExtensionKind,
    name: &str,
) -> Result<&'a Extension, ToolError> {
    let Some(found) = catalog.find(kind, name) else {
        let nearest = catalog.nearest(name);
        let hint = match nearest.as_slice() {
            [] => "Use one that is listed, or do without.".to_owned(),
            nearest => format!("Did you mean {}?", nearest.join(", ")),
        };
        let what = match kind {
            ExtensionKind::Skill => "skill",
            ExtensionKind::Command => {
                "command of the user's files (the built-in ones are for the user alone)"
            }
        };
        let message = format!("{tool}: there is no {what} `{name}`.");
        return Err(ToolError::new(ToolErrorKind::NotFound, message, hint));
    };
    if !found.model_may_call {
        return Err(ToolError::new(
            ToolErrorKind::Forbidden,
            format!("{tool}: `{name}` is for the user alone (disable-model-invocation)."),
            "Do without it, or ask the user to call it.",
        ));
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::slash_command::SlashCommand;
    use crate::testing::Fixture;

    fn fixture() -> Fixture {
        let fixture = Fixture::new();
        fixture
            .write(".claude/skills/kode-release/SKILL.md", "---\ndescription: Releases.\n---\nRelease $0.");
        fixture.write(".kode/commands/kode-git/commit.md", "Commit $1.");
        fixture.write(".kode/commands/kode-mine.md", "---\ndisable-model-invocation: true\n---\nMine.");
        fixture
    }

    #[tokio::test]
    async fn a_skill_is_asked_for_by_its_name_and_used_with_its_arguments() {
        let fixture = fixture();
        let input = json!({ "skill": "kode-release", "args": "1.2" });
        let plan = fixture.plan(Skill, input.clone()).await.unwrap();
        assert_eq!(plan.touches, [Touch::Named { tool: "Skill", name: "kode-release".into() }]);
        let CallAction::Use(wanted) = plan.action else { panic!("it is used") };
        assert_eq!((wanted.extension.name.as_str(), wanted.arguments.as_str()), ("kode-release", "1.2"));
        let plan = fixture.plan(SlashCommand, json!({ "command": "/kode-git:commit all" })).await.unwrap();
        let CallAction::Use(wanted) = plan.action else { panic!("it is used") };
        assert_eq!((wanted.extension.name.as_str(), wanted.arguments.as_str()), ("kode-git:commit", "all"));
    }

    #[tokio::test]
    async fn what_cannot_be_used_says_why_and_what_there_is() {
        let fixture = fixture();
        for (command, kind, expected) in [
            ("kode-relase", ToolErrorKind::NotFound, "Did you mean kode-release"),
            ("compact", ToolErrorKind::NotFound, "built-in ones are for the user alone"),
            ("/kode-mine", ToolErrorKind::Forbidden, "disable-model-invocation"),
            (" / ", ToolErrorKind::InvalidInput, "`command`"),
        ] {
            let error = fixture.plan(SlashCommand, json!({ "command": command })).await.unwrap_err();
            assert_eq!(error.kind, kind, "{command}: {error}");
            assert!(error.model_text().contains(expected), "{command}: {}", error.model_text());
        }
    }

    #[test]
    fn nothing_to_use_is_not_offered() {
        let catalog = Catalog::default();
        let offer = OfferContext {
            mode: kode_base::mode::Mode::Default,
            can_diagnose: false,
            has_languages: false,
            catalog: &catalog,
            is_denied: &|_| false,
            takes_patches: false,
            in_team: false,
            by_need: false,
            agents: &kode_config::agents::AgentTypes::default(),
        };
        assert_eq!((Skill.describe(&offer), SlashCommand.describe(&offer)), (None, None));
    }
}
