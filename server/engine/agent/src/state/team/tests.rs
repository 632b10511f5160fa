//! Mailboxes, waits and shared tasks of a team, and its fold.
//!
//! Rule: a test changes the team by the entries that the functions of the team return, as the loop does.

use kode_base::ids::CallId;
use kode_base::team::MAX_TASKS;
use kode_record::team::{TeamTask, TeamTaskState};
use kode_tool::team::TaskAction;

use super::*;

/// A team with these sub-agents at work.
fn team(names: &[&str]) -> Team {
    let mut team = Team::default();
    for name in names {
        let agent = AgentId::from_external(format!("agent_{name}"));
        let (_, entry) = team.joining(agent, Some(name), ("general-purpose", "it")).unwrap();
        team.apply(entry);
    }
    team
}

fn send(team: &mut Team, from: &str, to: &str, text: &str) -> Result<(), TeamError> {
    let entry = team.sending(from, to, text)?;
    team.apply(entry);
    Ok(())
}

/// A wait while a turn of the main conversation runs.
fn wait(team: &mut Team, name: &str, on: Option<&str>) -> Result<(), TeamError> {
    let entry = team.waiting(name, on, true)?;
    team.apply(entry);
    Ok(())
}

fn act(team: &mut Team, name: &str, action: TaskAction) -> Result<(), TaskError> {
    if let Some(entry) = team.tasks.change(name, &action)? {
        team.apply(entry);
    }
    Ok(())
}

fn add(team: &mut Team, title: &str, blocked_by: &[u32]) -> Result<(), TaskError> {
    act(team, MAIN, TaskAction::Add { title: title.to_owned(), blocked_by: blocked_by.to_vec() })
}

fn texts(team: &Team, name: &str) -> Vec<String> {
    team.unread(name).iter().map(|message| format!("{}: {}", message.from, message.text)).collect()
}

fn state_of(team: &Team, name: &str) -> MemberState {
    let view = team.view(true).unwrap();
    view.members.into_iter().find(|member| member.name == name).unwrap().state
}

fn leave(team: &mut Team, name: &str) {
    team.apply(TeamEntry::Left { name: name.to_owned() });
}

#[test]
fn names_are_unique_also_after_the_end_and_a_resumed_sub_agent_keeps_its_own() {
    let mut team = team(&["one"]);
    let other = || AgentId::from_external("agent_2");
    let taken = team.joining(other(), Some("one"), ("t", "d")).unwrap_err();
    assert!(
        taken.to_string().contains("`one` is taken") && taken.to_string().contains("`main`, `one`"),
        "{taken}"
    );
    leave(&mut team, "one");
    assert!(team.joining(other(), Some("one"), ("t", "d")).is_err(), "messages name it");
    let (name, entry) = team.joining(AgentId::from_external("agent_one"), None, ("t", "d")).unwrap();
    assert_eq!(name, "one");
    team.apply(entry);
    assert_eq!(team.live().collect::<Vec<_>>(), ["one"]);
    let (name, _) = team.joining(other(), None, ("general-purpose", "d")).unwrap();
    assert_eq!(name, "general-purpose-1");
}

#[test]
fn a_message_reaches_its_recipients_and_no_other() {
    let mut team = team(&["one", "two"]);
    send(&mut team, "one", "two", "a").unwrap();
    send(&mut team, "two", "*", "b").unwrap();
    send(&mut team, USER, "*", "c").unwrap();
    assert_eq!(texts(&team, "one"), ["two: b", "user: c"]);
    assert_eq!(texts(&team, "two"), ["one: a", "user: c"]);
    assert_eq!(texts(&team, MAIN), ["two: b"], "the user writes to it by a prompt");
    assert_eq!(send(&mut team, USER, MAIN, "d"), Err(TeamError::ByPrompt));
    assert_eq!(send(&mut team, "one", "one", "d"), Err(TeamError::Oneself("one".to_owned())));
    assert_eq!(send(&mut team, "one", "two", " \n"), Err(TeamError::Empty));
    assert_eq!(
        send(&mut team, "one", "two", &"a".repeat(MAX_MESSAGE + 1)),
        Err(TeamError::TooLong(MAX_MESSAGE + 1))
    );
    let unknown = send(&mut team, "one", "three", "d").unwrap_err().to_string();
    assert!(unknown.contains("no `three`") && unknown.contains("`main`, `one`, `two`"), "{unknown}");
    leave(&mut team, "two");
    let ended = send(&mut team, "one", "two", "d").unwrap_err().to_string();
    assert!(ended.contains("`two` has ended") && ended.ends_with("there are `main`, `one`"), "{ended}");
}

#[test]
fn a_full_mailbox_refuses_a_message_as_a_whole_until_it_is_read() {
    let mut team = team(&["one", "two"]);
    for number in 0..MAX_UNREAD {
        send(&mut team, MAIN, "one", &number.to_string()).unwrap();
    }
    assert_eq!(send(&mut team, MAIN, "one", "more"), Err(TeamError::Full("one".to_owned())));
    assert_eq!(send(&mut team, MAIN, "*", "more"), Err(TeamError::Full("one".to_owned())));
    assert!(team.unread("two").is_empty(), "nobody gets what one cannot get");
    let numbers = team.unread("one").iter().take(1).map(|message| message.number).collect();
    team.apply(TeamEntry::Read { by: "one".to_owned(), numbers });
    assert_eq!(texts(&team, "one")[0], "main: 1");
    send(&mut team, MAIN, "*", "more").unwrap();
}

#[test]
fn unread_messages_of_a_sub_agent_that_ends_go_back_once() {
    let mut team = team(&["one", "two"]);
    send(&mut team, "one", "two", "a").unwrap();
    send(&mut team, USER, "two", "b").unwrap();
    leave(&mut team, "two");
    let back = team.unread("one");
    assert_eq!(back.len(), 1);
    assert_eq!((back[0].text.as_str(), back[0].unread_by.as_deref()), ("a", Some("two")));
    assert!(back[0].number > 2, "it is a message of its own");
    leave(&mut team, "one");
    assert!(team.unread(MAIN).is_empty());
}

#[test]
fn a_cycle_of_waits_is_refused_with_its_names() {
    let mut three = team(&["one", "two", "three"]);
    wait(&mut three, "one", Some("two")).unwrap();
    wait(&mut three, "two", Some("three")).unwrap();
    let refused = wait(&mut three, "three", Some("one")).unwrap_err().to_string();
    let cycle = "`three` would wait for `one`, which waits for `two`, which waits for `three`";
    assert!(refused.ends_with(cycle), "{refused}");
    assert_eq!(state_of(&three, "three"), MemberState::Working, "it was not entered");
    wait(&mut three, "three", Some(MAIN)).unwrap();
    assert!(matches!(wait(&mut three, MAIN, Some("one")), Err(TeamError::Cycle(_))));
    assert!(matches!(wait(&mut three, MAIN, None), Err(TeamError::Cycle(_))), "all others wait");
    three.apply(TeamEntry::Continued { name: "two".to_owned() });
    wait(&mut three, MAIN, None).unwrap();
    assert_eq!(state_of(&three, MAIN), MemberState::WaitingFor(None));
    assert_eq!(state_of(&three, "one"), MemberState::WaitingFor(Some("two".to_owned())));
}

#[test]
fn a_wait_for_anybody_is_good_while_one_can_go_on() {
    let mut pair = team(&["one", "two"]);
    wait(&mut pair, "one", None).unwrap();
    wait(&mut pair, "two", Some("one")).unwrap();
    assert!(matches!(wait(&mut pair, MAIN, Some("two")), Err(TeamError::Cycle(_))));
    // Without a turn the user can still send.
    let entry = pair.waiting("two", Some(MAIN), false).unwrap();
    pair.apply(entry);
    assert!(pair.waiting("two", None, false).is_ok());
    let mut alone = Team::default();
    assert_eq!(wait(&mut alone, MAIN, None), Err(TeamError::Alone));
    let mut ended = team(&["one"]);
    leave(&mut ended, "one");
    assert!(matches!(wait(&mut ended, MAIN, Some("one")), Err(TeamError::Ended { .. })));
}

#[test]
fn a_call_that_waits_for_the_user_shows_in_the_state_until_it_moves() {
    let mut team = team(&["one"]);
    let agent = AgentId::from_external("agent_one");
    let moved = |state, permission| Record::CallMoved {
        item: ItemId::from_external("item_1"),
        at: Timestamp::UNIX_EPOCH,
        state,
        title: String::new(),
        permission,
        known: Vec::new(),
    };
    let asks = moved(CallState::ApprovalRequired, Some(kode_base::ids::PermissionId::from_external("p")));
    assert!(team.note_call(Some(&agent), &asks));
    assert_eq!(state_of(&team, "one"), MemberState::Permission);
    assert!(team.note_call(Some(&agent), &moved(CallState::Executing, None)));
    assert_eq!(state_of(&team, "one"), MemberState::Working);
    assert!(team.note_call(None, &moved(CallState::ApprovalRequired, None)));
    assert_eq!(state_of(&team, MAIN), MemberState::Question);
    let stranger = AgentId::from_external("agent_9");
    assert!(!team.note_call(Some(&stranger), &asks), "it is in no team");
    assert!(!Team::default().note_call(None, &asks), "there is no team to show");
}

#[test]
fn one_of_two_gets_a_task_and_the_other_is_told_who_has_it() {
    let mut team = team(&["one", "two"]);
    add(&mut team, "a", &[]).unwrap();
    act(&mut team, "one", TaskAction::Claim(1)).unwrap();
    act(&mut team, "one", TaskAction::Claim(1)).unwrap();
    assert_eq!(act(&mut team, "two", TaskAction::Claim(1)), Err(TaskError::Claimed(1, "one".to_owned())));
    assert_eq!(act(&mut team, "two", TaskAction::Complete(1)), Err(TaskError::Claimed(1, "one".to_owned())));
    assert_eq!(act(&mut team, "two", TaskAction::Release(1)), Err(TaskError::Claimed(1, "one".to_owned())));
    leave(&mut team, "one");
    act(&mut team, "two", TaskAction::Claim(1)).unwrap();
    act(&mut team, "two", TaskAction::Complete(1)).unwrap();
    assert_eq!(act(&mut team, "two", TaskAction::Claim(1)), Err(TaskError::Completed(1, "two".to_owned())));
    leave(&mut team, "two");
    let view = team.view(true).unwrap();
    assert_eq!(
        (view.tasks[0].state, view.tasks[0].owner.as_deref()),
        (TeamTaskState::Completed, Some("two"))
    );
}

#[test]
fn a_blocked_task_is_free_once_those_before_it_are_completed_and_cycles_are_refused() {
    let mut team = team(&["one"]);
    add(&mut team, "a", &[]).unwrap();
    add(&mut team, "b", &[1]).unwrap();
    add(&mut team, "c", &[2, 1, 2]).unwrap();
    assert_eq!(add(&mut team, "d", &[4]), Err(TaskError::Unknown(4)));
    assert_eq!(
        act(&mut team, "one", TaskAction::Claim(3)),
        Err(TaskError::Blocked(3, "tasks 1, 2".to_owned()))
    );
    let block = |task, blocked_by: &[u32]| TaskAction::Block { task, blocked_by: blocked_by.to_vec() };
    let cycle = act(&mut team, "one", block(1, &[3])).unwrap_err().to_string();
    assert!(cycle.ends_with("1 after 3 after 1") || cycle.ends_with("1 after 3 after 2 after 1"), "{cycle}");
    assert!(matches!(act(&mut team, "one", block(1, &[1])), Err(TaskError::Cycle(_))));
    act(&mut team, "one", TaskAction::Claim(1)).unwrap();
    assert_eq!(act(&mut team, "one", block(1, &[])), Err(TaskError::InWork(1, "one".to_owned())));
    act(&mut team, "one", TaskAction::Complete(1)).unwrap();
    assert_eq!(act(&mut team, "one", TaskAction::Claim(3)), Err(TaskError::Blocked(3, "task 2".to_owned())));
    act(&mut team, "one", block(3, &[])).unwrap();
    act(&mut team, "one", TaskAction::Claim(3)).unwrap();
    assert_eq!(
        team.tasks.text(),
        "1. [completed by `one`] a\n2. [free] b\n3. [claimed by `one`] c",
        "the list as the model gets it"
    );
}

#[test]
fn the_list_is_bounded_and_completed_tasks_make_room() {
    let mut team = team(&["one"]);
    assert_eq!(add(&mut team, " ", &[]), Err(TaskError::Title(0)));
    assert_eq!(add(&mut team, &"a".repeat(301), &[]), Err(TaskError::Title(301)));
    for _ in 0..MAX_TASKS {
        add(&mut team, "a", &[]).unwrap();
    }
    assert_eq!(add(&mut team, "a", &[]), Err(TaskError::Full));
    act(&mut team, MAIN, TaskAction::Complete(7)).unwrap();
    add(&mut team, "b\nc", &[7]).unwrap();
    let view = team.view(true).unwrap().tasks;
    assert_eq!((view.len(), view[6].number), (MAX_TASKS, 8));
    let last = view.last().unwrap();
    assert_eq!((last.number, last.title.as_str(), last.blocked_by.len()), (201, "b c", 0));
    act(&mut team, "one", TaskAction::Claim(201)).unwrap();
}

/// Numbers from a fixed seed (SplitMix64).
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, bound: u32) -> u32 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        u32::try_from((mixed ^ (mixed >> 31)) % u64::from(bound)).unwrap()
    }
}

/// Whether the blockers of the tasks can be put into an order.
fn is_ordered(tasks: &[TeamTask]) -> bool {
    let mut left: Vec<&TeamTask> = tasks.iter().collect();
    loop {
        let numbers: Vec<u32> = left.iter().map(|task| task.number).collect();
        let before = left.len();
        left.retain(|task| task.blocked_by.iter().any(|blocker| numbers.contains(blocker)));
        if left.is_empty() {
            return true;
        }
        if left.len() == before {
            return false;
        }
    }
}

#[test]
fn whatever_members_do_the_tasks_stay_in_order_and_the_fold_is_the_same_from_the_journal() {
    let names = [MAIN, "one", "two", "three"];
    for seed in 0..200 {
        let mut numbers = Numbers(seed);
        let mut live = team(&names[1..]);
        let mut journal: Vec<String> = Vec::new();
        let beginning = serde_json::to_string(&live).unwrap();
        for _ in 0..80 {
            let name = names[numbers.below(4) as usize];
            let (task, other) = (1 + numbers.below(8), 1 + numbers.below(8));
            let action = match numbers.below(6) {
                0 => TaskAction::Add { title: "t".to_owned(), blocked_by: vec![other] },
                1 => TaskAction::Add { title: "t".to_owned(), blocked_by: vec![] },
                2 => TaskAction::Claim(task),
                3 => TaskAction::Complete(task),
                4 => TaskAction::Release(task),
                _ => TaskAction::Block { task, blocked_by: vec![other, 1 + numbers.below(8)] },
            };
            if let Ok(Some(entry)) = live.tasks.change(name, &action) {
                journal.push(serde_json::to_string(&Record::Team { entry: entry.clone() }).unwrap());
                live.apply(entry);
            }
            let tasks = live.view(true).unwrap().tasks;
            assert!(is_ordered(&tasks), "seed {seed}: {action:?} made a cycle: {tasks:?}");
            for task in &tasks {
                let has_owner = task.owner.is_some();
                assert_eq!(has_owner, task.state != TeamTaskState::Open, "seed {seed}: {task:?}");
                assert!(
                    !has_owner || task.blocked_by.is_empty(),
                    "seed {seed}: {task:?} is blocked and owned"
                );
            }
        }
        let mut replayed: Team = serde_json::from_str(&beginning).unwrap();
        for line in &journal {
            match serde_json::from_str(line).unwrap() {
                Record::Team { entry } => replayed.apply(entry),
                other => panic!("{other:?}"),
            }
        }
        assert_eq!(replayed.view(true), live.view(true), "seed {seed}");
    }
}

#[test]
fn a_session_without_sub_agents_in_the_background_has_no_team_and_old_ends_are_forgotten() {
    assert_eq!(Team::default().view(true), None);
    let mut team = team(&["one"]);
    team.apply(TeamEntry::Withdrawn { name: "one".to_owned() });
    assert_eq!(team.view(true), None, "it did not begin");
    for number in 0..MAX_ENDED + 5 {
        let agent = AgentId::from_external(CallId::generate().as_str());
        let (name, entry) = team.joining(agent, Some(&format!("a{number}")), ("t", "d")).unwrap();
        team.apply(entry);
        leave(&mut team, &name);
    }
    let members = team.view(false).unwrap().members;
    assert_eq!(members.len(), 1 + MAX_ENDED);
    assert_eq!((members[0].name.as_str(), &members[0].state), (MAIN, &MemberState::Idle));
    assert_eq!(members[1].name, "a5");
}
