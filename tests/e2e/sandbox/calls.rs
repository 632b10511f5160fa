//! Calls of the system that are refused inside, made by number.
//!
//! Rule: each is made with arguments for which the system itself would say something else than what the filter says.

use rustix::io::Errno;

use super::KINDS;
use super::fixture::{Fixture, User};

/// Calls by their number, with arguments as perl takes them.
const REFUSED: [(&str, i64, &str); 26] = [
    ("ptrace", libc::SYS_ptrace, "0, 0, 0, 0"),
    ("process_vm_readv", libc::SYS_process_vm_readv, "$$, 0, 0, 0, 0, 0"),
    ("process_vm_writev", libc::SYS_process_vm_writev, "$$, 0, 0, 0, 0, 0"),
    ("kcmp", libc::SYS_kcmp, "$$, $$, 0, 0, 0"),
    ("pidfd_getfd", libc::SYS_pidfd_getfd, "-1, 0, 0"),
    ("bpf", libc::SYS_bpf, "-1, 0, 0"),
    ("perf_event_open", libc::SYS_perf_event_open, "0, 0, 0, 0, 0"),
    ("userfaultfd", libc::SYS_userfaultfd, "1"),
    ("add_key", libc::SYS_add_key, "0, 0, 0, 0, 0"),
    ("request_key", libc::SYS_request_key, "0, 0, 0, 0"),
    ("keyctl", libc::SYS_keyctl, "0, -3, 0"),
    ("mount", libc::SYS_mount, "0, 0, 0, 0, 0"),
    ("umount2", libc::SYS_umount2, "0, 0"),
    ("pivot_root", libc::SYS_pivot_root, "0, 0"),
    ("open_tree", libc::SYS_open_tree, "-100, 0, 0"),
    ("move_mount", libc::SYS_move_mount, "-1, 0, -1, 0, 0"),
    ("fsopen", libc::SYS_fsopen, "0, 0"),
    ("fsmount", libc::SYS_fsmount, "-1, 0, 0"),
    ("mount_setattr", libc::SYS_mount_setattr, "-1, 0, 0, 0, 0"),
    ("setns", libc::SYS_setns, "-1, 0"),
    ("unshare", libc::SYS_unshare, "0"),
    ("open_by_handle_at", libc::SYS_open_by_handle_at, "-1, 0, 0"),
    ("kexec_load", libc::SYS_kexec_load, "0, 0, 0, 0"),
    ("finit_module", libc::SYS_finit_module, "-1, 0, 0"),
    // A namespace by `clone`, which would otherwise want more rights or make a child.
    ("clone", libc::SYS_clone, "0x10000000 | 17, 0, 0, 0, 0"),
    ("ioctl", libc::SYS_ioctl, "0, 0x5412, 0"),
];
/// Calls that are reported as missing.
const MISSING: [(&str, i64, &str); 4] = [
    ("io_uring_setup", libc::SYS_io_uring_setup, "0, 0"),
    ("io_uring_enter", libc::SYS_io_uring_enter, "-1, 0, 0, 0, 0, 0"),
    ("clone3", libc::SYS_clone3, "0, 0"),
    ("a call of x32", 0x4000_0027, ""),
];

fn errno(fixture: &Fixture, kind: &str, number: i64, arguments: &str) -> String {
    let comma = if arguments.is_empty() { "" } else { ", " };
    let script = format!("perl -e 'syscall({number}{comma}{arguments}); print $! + 0'");
    fixture.run(&["--kind", kind], &script).stdout
}

#[test]
fn calls_that_reach_past_the_sandbox_fail() {
    for kind in KINDS {
        let fixture = Fixture::new(User::Own);
        for (calls, expected) in [(&REFUSED[..], Errno::PERM), (&MISSING, Errno::NOSYS)] {
            for (name, number, arguments) in calls {
                let found = errno(&fixture, kind, *number, arguments);
                assert_eq!(found, expected.raw_os_error().to_string(), "{kind}: {name}");
            }
        }
        // The others are as they were: the probe itself works.
        assert_eq!(errno(&fixture, kind, libc::SYS_close, "-1"), Errno::BADF.raw_os_error().to_string());
        assert_eq!(errno(&fixture, kind, libc::SYS_getpid, ""), "0", "{kind}");
    }
}

#[test]
fn typing_into_a_terminal_is_refused_whatever_the_upper_half_of_the_number() {
    for kind in KINDS {
        let fixture = Fixture::new(User::Own);
        for request in ["0x5412", "0x541C", "0x1_0000_5412"] {
            let found = errno(&fixture, kind, libc::SYS_ioctl, &format!("0, {request}, 0"));
            assert_eq!(found, Errno::PERM.raw_os_error().to_string(), "{kind}: {request}");
        }
        let found = errno(&fixture, kind, libc::SYS_ioctl, "0, 0x5401, 0");
        assert_eq!(found, Errno::NOTTY.raw_os_error().to_string(), "{kind}: asking what it is");
    }
}
