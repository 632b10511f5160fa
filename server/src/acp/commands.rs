//! The slash commands of a session.
//!
//! Rule: commands are listed without their slash. Those that belong to a terminal are left out.

use std::collections::BTreeSet;

use agent_client_protocol_schema::v1::{
    AvailableCommand, AvailableCommandInput, AvailableCommandsUpdate, SessionUpdate, UnstructuredCommandInput,
};
use kode_engine::config::command::{BUILT_INS, CommandEffect};
use kode_engine::config::extension::Catalog;

use super::session::AcpSession;

/// The command that makes this process the writer of a session.
pub(super) const TAKE_OVER: &str = "takeover";

/// The alias that is listed beside its command, because users search for it.
const UNDO: &str = "undo";

/// The commands as they are now; `None` where another process writes the session.
pub(super) async fn update(session: &AcpSession) -> Option<SessionUpdate> {
    let catalog = session.live().ok()?.extensions().skills_and_commands().await;
    let update = AvailableCommandsUpdate::new(list(&catalog));
    Some(SessionUpdate::AvailableCommandsUpdate(update))
}

fn list(catalog: &Catalog) -> Vec<AvailableCommand> {
    let mut names = BTreeSet::new();
    let mut commands = Vec::new();
    for built_in in BUILT_INS.iter().filter(|built_in| built_in.effect != CommandEffect::Elsewhere) {
        let aliases = built_in.aliases.iter().filter(|alias| **alias == UNDO);
        for name in std::iter::once(&built_in.name).chain(aliases) {
            names.insert((*name).to_owned());
            commands.push(command(name, built_in.description, built_in.argument_hint));
        }
    }
    commands.push(command(TAKE_OVER, "Continues a session here that another process has open", "[force]"));
    for one in catalog.all().filter(|one| one.user_may_call) {
        if names.insert(one.name.clone()) {
            let description = one.listing.lines().next().unwrap_or_default();
            commands.push(command(&one.name, description, &one.argument_hint));
        }
    }
    commands
}

fn command(name: &str, description: &str, hint: &str) -> AvailableCommand {
    let input =
        (!hint.is_empty()).then(|| AvailableCommandInput::Unstructured(UnstructuredCommandInput::new(hint)));
    AvailableCommand::new(name, description).input(input)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_commands_of_the_session_are_listed_once_and_those_of_terminals_are_not() {
        let listed = list(&Catalog::default());
        let names: Vec<&str> = listed.iter().map(|command| command.name.as_str()).collect();
        for name in ["rewind", "undo", "fork", "review", "trust", "takeover", "context"] {
            assert_eq!(names.iter().filter(|other| **other == name).count(), 1, "{name}");
        }
        assert!(!names.contains(&"vim") && names.iter().all(|name| !name.starts_with('/')));
    }
}
