//! Which calls of the system a command may not make.
//!
//! Rule: a call that could reach past the sandbox fails with an error programs know, so that they continue without it;
//! calls in another machine's numbering end the process.

use std::collections::{BTreeMap, BTreeSet};

use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter, SeccompRule,
    TargetArch, apply_filter, sock_filter,
};

use crate::sandbox::Network;

/// Refused whatever the arguments: looking into or steering other processes, changing mounts and namespaces, loading
/// code into the kernel, keys of the user.
const REFUSED: [i64; 45] = [
    libc::SYS_ptrace,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_kcmp,
    libc::SYS_pidfd_getfd,
    libc::SYS_bpf,
    libc::SYS_perf_event_open,
    libc::SYS_userfaultfd,
    libc::SYS_add_key,
    libc::SYS_request_key,
    libc::SYS_keyctl,
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_pivot_root,
    libc::SYS_chroot,
    libc::SYS_open_tree,
    libc::SYS_move_mount,
    libc::SYS_fsopen,
    libc::SYS_fsconfig,
    libc::SYS_fsmount,
    libc::SYS_fspick,
    libc::SYS_mount_setattr,
    libc::SYS_setns,
    libc::SYS_unshare,
    libc::SYS_open_by_handle_at,
    libc::SYS_kexec_load,
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_delete_module,
    libc::SYS_swapon,
    libc::SYS_swapoff,
    libc::SYS_reboot,
    libc::SYS_acct,
    libc::SYS_quotactl,
    libc::SYS_quotactl_fd,
    libc::SYS_syslog,
    libc::SYS_settimeofday,
    libc::SYS_clock_settime,
    libc::SYS_clock_adjtime,
    libc::SYS_adjtimex,
    libc::SYS_sethostname,
    libc::SYS_setdomainname,
    libc::SYS_vhangup,
    libc::SYS_fanotify_init,
    libc::SYS_nfsservctl,
];
/// Said not to exist, so that programs do it in an older way that can be judged: rings that make calls past this
/// filter, and a `clone` whose flags lie in memory.
const MISSING: [i64; 4] =
    [libc::SYS_io_uring_setup, libc::SYS_io_uring_enter, libc::SYS_io_uring_register, libc::SYS_clone3];
/// Refused without a process namespace, where process ids name the user's other processes: what moves, inspects or
/// throttles them; and without an IPC namespace, the System V and POSIX objects of other programs.
const REFUSED_ALONE: [i64; 17] = [
    libc::SYS_migrate_pages,
    libc::SYS_move_pages,
    libc::SYS_process_madvise,
    libc::SYS_get_robust_list,
    libc::SYS_shmget,
    libc::SYS_shmat,
    libc::SYS_shmctl,
    libc::SYS_msgget,
    libc::SYS_msgsnd,
    libc::SYS_msgrcv,
    libc::SYS_msgctl,
    libc::SYS_semget,
    libc::SYS_semop,
    libc::SYS_semtimedop,
    libc::SYS_semctl,
    libc::SYS_mq_open,
    libc::SYS_mq_unlink,
];
/// Calls that set limits or scheduling of a process, with the place of the process id among their arguments. A zero
/// there means the caller itself.
const OF_A_PROCESS: [(i64, u8); 6] = [
    (libc::SYS_sched_setaffinity, 0),
    (libc::SYS_sched_setscheduler, 0),
    (libc::SYS_sched_setparam, 0),
    (libc::SYS_sched_setattr, 0),
    (libc::SYS_setpriority, 1),
    (libc::SYS_ioprio_set, 1),
];
/// Calls that set the priority of all processes of a user, with the value of their first argument that means it.
const OF_A_USER: [(i64, u64); 2] = [(libc::SYS_setpriority, 2), (libc::SYS_ioprio_set, 3)];
/// New namespaces, by the flags of `clone`.
const NAMESPACES: [i32; 7] = [
    libc::CLONE_NEWUSER,
    libc::CLONE_NEWNS,
    libc::CLONE_NEWPID,
    libc::CLONE_NEWNET,
    libc::CLONE_NEWIPC,
    libc::CLONE_NEWUTS,
    libc::CLONE_NEWCGROUP,
];
/// Typing into someone else's terminal: `TIOCSTI` and `TIOCLINUX`, whose type in `libc` differs between glibc and musl.
const TERMINAL: [u64; 2] = [0x5412, 0x541C];
/// The families of sockets of the internet.
const INTERNET: [i32; 2] = [libc::AF_INET, libc::AF_INET6];
/// The calls of the bridge to the proxy.
const UNIX: [i32; 1] = [libc::AF_UNIX];
/// Calls from this number on are in the numbering of another machine (x32).
const FOREIGN: u32 = 0x4000_0000;
/// Second names of files.
const SECOND_NAMES: &[i64] = &[
    libc::SYS_linkat,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_link,
];
/// This machine, in the numbering of filters.
const ARCH: u32 = if cfg!(target_arch = "x86_64") { 0xC000_003E } else { 0xC000_00B7 };
/// Instructions: one that loads a field of the call, two that compare it, one that skips some, and one that gives the outcome.
const LOAD: u16 = 0x20;
const JUMP_IF_EQUAL: u16 = 0x15;
const JUMP_IF_AT_LEAST: u16 = 0x35;
const JUMP: u16 = 0x05;
const GIVE: u16 = 0x06;
/// The most calls that are compared one after the other.
const FEW: usize = 4;
/// The fields of a call (`struct seccomp_data`), in bytes.
const OFFSET_NUMBER: u32 = 0;
const OFFSET_ARCH: u32 = 4;

/// Which sockets may be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sockets {
    /// The calls of the internet; the network is empty, or allowed.
    Internet,
    /// The calls to processes of this machine.
    Unix,
    /// None but pairs.
    None,
}

impl Sockets {
    /// The calls of a network without a namespace around it.
    pub(super) fn without_namespace(network: &Network) -> Self {
        match network {
            Network::Off | Network::Allowed { .. } => Self::None,
            Network::On => Self::Internet,
        }
    }

    fn families(self) -> &'static [i32] {
        match self {
            Self::Internet => &INTERNET,
            Self::Unix => &UNIX,
            Self::None => &[],
        }
    }
}

/// Applies the filter to this process and all it will start. `alone` means that no namespaces hold them. `one_name` refuses
/// second names of files: one beside a hidden file would be none to a later command.
///
/// All of it is one program: the kernel compiles each program for each command again, and tries it with every call.
pub(super) fn apply(sockets: Sockets, alone: bool, one_name: bool) -> Result<(), String> {
    let program = program(sockets, alone, one_name)?;
    apply_filter(&program).map_err(|error| error.to_string())
}

/// Whether filters can be made for this machine.
pub(crate) fn is_supported() -> bool {
    TargetArch::try_from(std::env::consts::ARCH).is_ok()
}

/// libc does not name it for musl on ARM.
const KEXEC_FILE_LOAD: i64 = if cfg!(target_arch = "x86_64") { 320 } else { 294 };

type SyscallRules = BTreeMap<i64, Vec<SeccompRule>>;

/// The calls that are refused whatever their arguments.
fn refused(alone: bool, one_name: bool) -> BTreeSet<i64> {
    let mut calls = BTreeSet::from(REFUSED);
    calls.insert(KEXEC_FILE_LOAD);
    #[cfg(target_arch = "x86_64")]
    calls.extend([libc::SYS_iopl, libc::SYS_ioperm]);
    if alone {
        calls.extend(REFUSED_ALONE);
    }
    if one_name {
        calls.extend(SECOND_NAMES);
    }
    calls
}

/// The calls that are refused for some arguments.
fn conditions(sockets: Sockets, alone: bool) -> Result<SyscallRules, seccompiler::BackendError> {
    let mut rules = SyscallRules::new();
    let of_another = |argument| when(&[(argument, SeccompCmpArgLen::Dword, SeccompCmpOp::Ne, 0)]);
    // The helper inside shares the command's process namespace: its limits would end it before it reports.
    rules.insert(libc::SYS_prlimit64, vec![of_another(0)?]);
    if alone {
        for (call, argument) in OF_A_PROCESS {
            rules.insert(call, vec![of_another(argument)?]);
        }
        for (call, user) in OF_A_USER {
            let of_all = when(&[(0, SeccompCmpArgLen::Dword, SeccompCmpOp::Eq, user)])?;
            rules.entry(call).or_default().push(of_all);
        }
    }
    let namespaces = NAMESPACES.into_iter().map(|flag| {
        let flag = flag.cast_unsigned().into();
        when(&[(0, SeccompCmpArgLen::Qword, SeccompCmpOp::MaskedEq(flag), flag)])
    });
    rules.insert(libc::SYS_clone, namespaces.collect::<Result<_, _>>()?);
    // The kernel checks the lower half of the number only.
    let typing = TERMINAL.into_iter().map(|request| {
        when(&[(1, SeccompCmpArgLen::Dword, SeccompCmpOp::Eq, request & u64::from(u32::MAX))])
    });
    rules.insert(libc::SYS_ioctl, typing.collect::<Result<_, _>>()?);
    let others: Vec<_> = sockets
        .families()
        .iter()
        .map(|family| (0, SeccompCmpArgLen::Dword, SeccompCmpOp::Ne, family.cast_unsigned().into()))
        .collect();
    // A rule without conditions is not one; no rule at all refuses every family.
    let families = if others.is_empty() { vec![] } else { vec![when(&others)?] };
    rules.insert(libc::SYS_socket, families);
    Ok(rules)
}

/// All of these conditions.
fn when(
    conditions: &[(u8, SeccompCmpArgLen, SeccompCmpOp, u64)],
) -> Result<SeccompRule, seccompiler::BackendError> {
    let conditions = conditions.iter().map(|(argument, length, operator, value)| {
        SeccompCondition::new(*argument, length.clone(), operator.clone(), *value)
    });
    SeccompRule::new(conditions.collect::<Result<_, _>>()?)
}

/// The program of all refusals. The compiler makes programs with one error, without comparisons of ranges, and that compare a call
/// with one number after the other, so calls that are refused whatever their arguments come before its part.
fn program(sockets: Sockets, alone: bool, one_name: bool) -> Result<BpfProgram, String> {
    let arch = TargetArch::try_from(std::env::consts::ARCH).map_err(|error| error.to_string())?;
    let action = SeccompAction::Errno(libc::EPERM.cast_unsigned());
    let conditions = conditions(sockets, alone).and_then(|rules| {
        SeccompFilter::new(rules, SeccompAction::Allow, action, arch).and_then(BpfProgram::try_from)
    });
    let refused = refused(alone, one_name).into_iter().map(|call| (call, libc::EPERM));
    let outcomes = refused.chain(MISSING.map(|call| (call, libc::ENOSYS))).map(|(call, error)| {
        let outcome = libc::SECCOMP_RET_ERRNO | error.cast_unsigned();
        u32::try_from(call).map(|call| (call, outcome)).map_err(|error| error.to_string())
    });
    let outcomes: BTreeMap<_, _> = outcomes.collect::<Result<_, _>>()?;
    let outcomes: Vec<_> = outcomes.into_iter().collect();
    let end = statement(GIVE, libc::SECCOMP_RET_KILL_PROCESS);
    let foreign = statement(GIVE, libc::SECCOMP_RET_ERRNO | libc::ENOSYS.cast_unsigned());
    let mut program = vec![
        statement(LOAD, OFFSET_ARCH),
        sock_filter { code: JUMP_IF_EQUAL, jt: 1, jf: 0, k: ARCH },
        end,
        statement(LOAD, OFFSET_NUMBER),
        sock_filter { code: JUMP_IF_AT_LEAST, jt: 0, jf: 1, k: FOREIGN },
        foreign,
    ];
    program.extend(search(&outcomes, 0)?);
    program.extend(conditions.map_err(|error| error.to_string())?);
    Ok(program)
}

/// A binary search for a call in this sorted list. For another call the program continues `behind` instructions after its own end. The
/// kernel tries a filter with all of some 450 calls when it is applied, so each comparison counts.
fn search(outcomes: &[(u32, u32)], behind: u32) -> Result<BpfProgram, String> {
    if outcomes.len() <= FEW {
        let compare = |(call, outcome): &(u32, u32)| {
            let unless = sock_filter { code: JUMP_IF_EQUAL, jt: 0, jf: 1, k: *call };
            [unless, statement(GIVE, *outcome)]
        };
        let mut program: Vec<_> = outcomes.iter().flat_map(compare).collect();
        program.push(statement(JUMP, behind));
        return Ok(program);
    }
    let (lower, upper) = outcomes.split_at(outcomes.len() / 2);
    let (middle, _) = upper[0];
    let upper = search(upper, behind)?;
    let over = u32::try_from(upper.len()).map_err(|error| error.to_string())?;
    let lower = search(lower, behind + over)?;
    let jt = u8::try_from(lower.len()).map_err(|error| error.to_string())?;
    let halve = sock_filter { code: JUMP_IF_AT_LEAST, jt, jf: 0, k: middle };
    Ok([vec![halve], lower, upper].concat())
}

fn statement(code: u16, k: u32) -> sock_filter {
    sock_filter { code, jt: 0, jf: 0, k }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs a program for a call, as the kernel does.
    fn outcome(program: &[sock_filter], number: u32) -> u32 {
        let mut at = 0;
        loop {
            let sock_filter { code, jt, jf, k } = program[at].clone();
            let skip = match code {
                GIVE => return k,
                JUMP => usize::try_from(k).unwrap(),
                JUMP_IF_EQUAL => usize::from(if number == k { jt } else { jf }),
                JUMP_IF_AT_LEAST => usize::from(if number >= k { jt } else { jf }),
                other => panic!("instruction {other:#x}"),
            };
            at += 1 + skip;
        }
    }

    #[test]
    fn each_call_of_a_list_of_any_length_is_found_and_no_other() {
        for length in 0..=120 {
            let outcomes: Vec<_> = (0..length).map(|index| (index * 3 + index % 2, 1_000 + index)).collect();
            let mut program = search(&outcomes, 0).unwrap();
            program.push(statement(GIVE, 0));
            let expected: BTreeMap<_, _> = outcomes.into_iter().collect();
            for number in 0..length * 3 + 9 {
                let found = expected.get(&number).copied().unwrap_or_default();
                assert_eq!(outcome(&program, number), found, "call {number} of {length}");
            }
        }
    }

    #[test]
    fn the_longest_list_of_refusals_can_be_made() {
        for sockets in [Sockets::Internet, Sockets::Unix, Sockets::None] {
            assert!(program(sockets, true, true).is_ok());
            assert!(program(sockets, false, false).is_ok());
        }
    }
}
