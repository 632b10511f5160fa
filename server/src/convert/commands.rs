//! Commands and skills, as clients see them.
//!
//! Rule: values only, no decisions; what their files say to the model stays here.

use std::path::Path;

use kode_engine::config::command::{BUILT_INS, BuiltInCommand, CommandEffect, CommandSource, CommandUse};
use kode_engine::config::extension::{Catalog, Extension, ExtensionKind, ExtensionScope};
use kode_protocol as wire;

/// All commands; `waiting` says what the file of one asks for and the user has not approved.
#[must_use]
pub fn list(catalog: &Catalog, waiting: &dyn Fn(&Extension) -> Vec<String>) -> wire::ListCommandsResult {
    let own = catalog.all().map(|one| {
        let by_built_in = BuiltInCommand::find(&one.name).map(|_| "built-in".to_owned());
        let used = catalog.typed(&one.name).filter(|used| used.path != one.path && one.user_may_call);
        let by = by_built_in.or_else(|| used.map(|used| used.path.to_string()));
        wire::CommandInfo { shadowed_by: by, waiting: waiting(one), ..info(one) }
    });
    let hidden = catalog.shadowed.iter().map(|hidden| wire::CommandInfo {
        shadowed_by: Some(hidden.by.to_string()),
        ..info(&hidden.extension)
    });
    wire::ListCommandsResult {
        commands: BUILT_INS.iter().map(built_in).chain(own).chain(hidden).collect(),
        problems: catalog.problems.iter().map(|(path, reason)| left_out(path, reason)).collect(),
        extension_points: extension_points(),
    }
}

fn left_out(path: &Path, reason: &str) -> wire::FileProblem {
    wire::FileProblem {
        file: path.display().to_string(),
        message: reason.to_owned(),
        severe: true,
        line: None,
    }
}

/// The command that a prompt was.
#[must_use]
pub fn command_use(used: CommandUse) -> wire::CommandUse {
    let source = match used.source {
        CommandSource::BuiltIn => wire::CommandKind::BuiltIn,
        CommandSource::Command => wire::CommandKind::Command,
        CommandSource::Skill => wire::CommandKind::Skill,
    };
    wire::CommandUse { name: used.name, arguments: used.arguments, source }
}

fn built_in(one: &BuiltInCommand) -> wire::CommandInfo {
    wire::CommandInfo {
        name: one.name.to_owned(),
        kind: wire::CommandKind::BuiltIn,
        aliases: one.aliases.iter().map(|alias| (*alias).to_owned()).collect(),
        description: one.description.to_owned(),
        argument_hint: one.argument_hint.to_owned(),
        effect: Some(match one.effect {
            CommandEffect::Show => wire::CommandEffect::Show,
            CommandEffect::Control => wire::CommandEffect::Control,
            CommandEffect::Prompt => wire::CommandEffect::Prompt,
            CommandEffect::Elsewhere => wire::CommandEffect::Elsewhere,
        }),
        scope: None,
        file: None,
        user_invocable: true,
        model_invocable: false,
        shadowed_by: None,
        waiting: Vec::new(),
        notes: Vec::new(),
    }
}

fn info(one: &Extension) -> wire::CommandInfo {
    wire::CommandInfo {
        name: one.name.clone(),
        kind: match one.kind {
            ExtensionKind::Command => wire::CommandKind::Command,
            ExtensionKind::Skill => wire::CommandKind::Skill,
        },
        aliases: Vec::new(),
        description: one.listing.clone(),
        argument_hint: one.argument_hint.clone(),
        effect: None,
        scope: Some(match one.scope {
            ExtensionScope::Project => wire::CommandScope::Project,
            ExtensionScope::Above => wire::CommandScope::Above,
            ExtensionScope::Below => wire::CommandScope::Below,
            ExtensionScope::User => wire::CommandScope::User,
            ExtensionScope::Plugin => wire::CommandScope::Plugin,
        }),
        file: Some(one.path.to_string()),
        user_invocable: one.user_may_call,
        model_invocable: one.model_may_call,
        shadowed_by: None,
        waiting: Vec::new(),
        notes: one.notes.clone(),
    }
}

fn extension_points() -> Vec<wire::ExtensionPoint> {
    let point = |kind: &str, automatic, manual, model_callable| wire::ExtensionPoint {
        kind: kind.to_owned(),
        automatic,
        manual,
        model_callable,
    };
    vec![
        point("hooks", true, false, false),
        // Commands of files, unless their front matter says otherwise; the built-in ones never.
        point("commands", false, true, true),
        point("agents", true, true, true),
        point("skills", true, true, true),
    ]
}
