//! The members that can still send: the check before a member begins to wait.
//!
//! Rule: a member can go on while it does not wait, or while one of those it waits for can go on. A wait is refused when its
//! member could not go on any more: then all in the cycle wait for one another.

use std::collections::BTreeSet;

use crate::state::team::{Team, TeamError, Wait};
use kode_base::team::MAIN;

/// Checks a wait of `name` for a message of `on`, or of any member.
pub(super) fn check(team: &Team, name: &str, on: Option<&str>, is_busy: bool) -> Result<(), TeamError> {
    let members: Vec<&str> = std::iter::once(MAIN).chain(team.live()).collect();
    let waits_of = |member: &str| -> Option<Vec<&str>> {
        let wait = match member {
            member if member == name => Some(Wait { on: on.map(str::to_owned) }),
            // Without a turn the user decides when it goes on.
            MAIN if !is_busy => None,
            member => team.presence(member)?.wait.clone(),
        }?;
        let is_one = |other: &&str| match &wait.on {
            Some(on) => on == *other,
            None => *other != member,
        };
        Some(members.iter().copied().filter(is_one).collect())
    };
    let mut able: BTreeSet<&str> = BTreeSet::new();
    loop {
        let more = members.iter().copied().find(|member| {
            !able.contains(member)
                && waits_of(member).is_none_or(|others| others.iter().any(|other| able.contains(other)))
        });
        match more {
            Some(more) => able.insert(more),
            None => break,
        };
    }
    if able.contains(name) {
        return Ok(());
    }
    let mut path = vec![name];
    loop {
        let last = path[path.len() - 1];
        let others = waits_of(last).unwrap_or_default();
        // The caller, if it is among them: the cycle that is refused goes through it where it can.
        let next = others.iter().find(|other| **other == name).or_else(|| others.first()).copied();
        let Some(next) = next else { break };
        let is_closed = path.contains(&next);
        path.push(next);
        if is_closed {
            break;
        }
    }
    let named: Vec<_> = path.iter().map(|member| format!("`{member}`")).collect();
    Err(TeamError::Cycle(named.join(", which waits for ").replacen(", which waits", " would wait", 1)))
}
