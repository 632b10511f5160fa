//! Profiles of the sandbox: named ways to hold commands, which the user chooses for a session or for one turn.
//!
//! Rule: a profile is built on the sandbox of the settings, and all commands run in it: none may leave. Where there is no such
//! sandbox, or no such profile, commands have none, and every one of them is asked for.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::policy::Policy;
use kode_base::paths::AbsPath;
use kode_permission::gate::Confinement;
use kode_process::sandbox::Sandbox;
use kode_process::sandbox::policy::Network;

/// The name of the sandbox of the settings itself.
pub const DEFAULT_PROFILE: &str = "default";

/// The longest name of a profile, in characters.
const MAX_NAME: usize = 40;

/// The profiles that there are, by name.
pub type SandboxProfiles = BTreeMap<String, SandboxProfile>;

/// A named way to hold commands.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SandboxProfile {
    /// Its purpose, for people.
    pub description: String,
    /// Whether commands write in their temporary folder and in `writable` alone.
    pub is_read_only: bool,
    /// Which network they get; `None` for that of the settings.
    pub network: Option<Network>,
    /// Further folders that they may write in.
    pub writable: Vec<AbsPath>,
}

/// Whether a text can be the name of a profile.
#[must_use]
pub fn is_profile_name(name: &str) -> bool {
    let is_letter = |letter: char| letter.is_ascii_alphanumeric() || "-_.".contains(letter);
    name != DEFAULT_PROFILE && !name.is_empty() && name.len() <= MAX_NAME && name.chars().all(is_letter)
}

/// The built-in profiles.
#[must_use]
pub fn built_in() -> SandboxProfiles {
    let offline = SandboxProfile {
        description: "Commands have no network".to_owned(),
        network: Some(Network::Off),
        ..SandboxProfile::default()
    };
    let read_only = SandboxProfile {
        description: "Commands change no file and have no network".to_owned(),
        is_read_only: true,
        ..offline.clone()
    };
    [("offline".to_owned(), offline), ("read-only".to_owned(), read_only)].into()
}

/// The policy with this profile of it. `roots` are the folders of the workspace.
#[must_use]
pub fn with_profile(policy: &Policy, name: &str, roots: &[AbsPath]) -> Policy {
    let made = match (policy.profiles.get(name), &policy.sandbox) {
        (None, _) => Err(format!("there is no sandbox profile `{name}`")),
        (Some(_), None) => Err(format!("the sandbox profile `{name}` has no sandbox to work with")),
        (Some(profile), Some(sandbox)) => held(profile, sandbox, roots)
            .map_err(|error| format!("the sandbox profile `{name}` cannot be set up: {error}")),
    };
    let mut own = policy.clone();
    match made {
        Ok(sandbox) => {
            let runs_unasked = match &policy.confinement {
                Confinement::Sandbox { runs_unasked, .. } => *runs_unasked,
                Confinement::Off | Confinement::Missing(_) => false,
            };
            own.confinement = Confinement::Sandbox { runs_unasked, may_leave: false, excluded: Vec::new() };
            own.is_read_only = policy.profiles.get(name).is_some_and(|profile| profile.is_read_only);
            own.sandbox = Some(Arc::new(sandbox));
        }
        Err(reason) => (own.confinement, own.sandbox) = (Confinement::Missing(reason), None),
    }
    own
}

fn held(profile: &SandboxProfile, sandbox: &Sandbox, roots: &[AbsPath]) -> std::io::Result<Sandbox> {
    let SandboxProfile { description: _, is_read_only, network, writable: further } = profile;
    let policy = sandbox.policy();
    let own = match is_read_only {
        true => {
            let mut seen: Vec<_> = roots.iter().chain(&policy.writable).cloned().collect();
            seen.retain(|folder| !further.iter().any(|one| folder.is_within(one)));
            sandbox.writing_in(further.clone(), &seen)?
        }
        false => sandbox.writing_in(policy.writable.iter().chain(further).cloned().collect(), &[])?,
    };
    Ok(match network {
        Some(network) => own.reaching(network.clone()),
        None => own,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_profiles_are_short_words_and_not_the_name_of_the_settings() {
        for name in ["offline", "read-only", "a.b_c", "7"] {
            assert!(is_profile_name(name), "{name}");
        }
        for name in ["", "default", "a b", "ä", "a/b", &"x".repeat(41)] {
            assert!(!is_profile_name(name), "{name}");
        }
    }

    #[test]
    fn a_profile_without_a_sandbox_or_a_definition_leaves_no_sandbox_and_says_why() {
        for (name, reason) in
            [("offline", "no sandbox to work with"), ("other", "no sandbox profile `other`")]
        {
            let own = with_profile(&Policy::default(), name, &[]);
            let Confinement::Missing(said) = &own.confinement else { panic!("{:?}", own.confinement) };
            assert!(said.contains(reason) && own.sandbox.is_none(), "{said}");
        }
    }
}
