//! The team of a session on the wire.
//!
//! Rule: values only, no decisions.

use kode_engine::record::team::{MemberState, TeamMember, TeamTask, TeamTaskState, TeamView};
use kode_protocol as wire;

use super::agent_id;

/// A team.
#[must_use]
pub(super) fn team(team: TeamView) -> wire::Team {
    wire::Team {
        members: team.members.into_iter().map(member).collect(),
        tasks: team.tasks.into_iter().map(task).collect(),
    }
}

fn member(member: TeamMember) -> wire::TeamMember {
    let (state, waits_for) = match member.state {
        MemberState::Working => (wire::TeamMemberState::Working, None),
        MemberState::WaitingFor(on) => (wire::TeamMemberState::Waiting, on),
        MemberState::Permission => (wire::TeamMemberState::Permission, None),
        MemberState::Question => (wire::TeamMemberState::Question, None),
        MemberState::Idle => (wire::TeamMemberState::Idle, None),
        MemberState::Ended => (wire::TeamMemberState::Ended, None),
    };
    wire::TeamMember {
        name: member.name,
        agent_id: member.agent.as_ref().map(agent_id),
        agent_type: member.kind,
        description: member.description,
        state,
        waits_for,
        unread: u32::try_from(member.unread).unwrap_or(u32::MAX),
    }
}

fn task(task: TeamTask) -> wire::TeamTask {
    wire::TeamTask {
        number: task.number,
        title: task.title,
        state: match task.state {
            TeamTaskState::Open => wire::TeamTaskState::Open,
            TeamTaskState::Claimed => wire::TeamTaskState::Claimed,
            TeamTaskState::Completed => wire::TeamTaskState::Completed,
        },
        owner: task.owner,
        blocked_by: task.blocked_by,
    }
}

/// That the team is another one.
pub(super) fn changed(changed: Option<Box<TeamView>>) -> wire::Event {
    wire::Event::TeamChanged(wire::TeamChanged { team: changed.map(|changed| team(*changed)) })
}
