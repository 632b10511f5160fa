//! The attempts of commands, and their results in either kind of sandbox.
//!
//! Rule: a probe's exit code says whether it could do what it tried: zero that it could. Where the weaker kind lets
//! something pass, the table says so; nothing is left out of it.

/// The result of a probe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Expected {
    /// It does what it tries.
    Works,
    /// It does not.
    Refused,
}

use Expected::{Refused, Works};

/// Something a command tries.
pub(super) struct Probe {
    /// Its kind.
    pub(super) name: &'static str,
    /// How it is tried, for bash.
    pub(super) script: &'static str,
    /// Its result in bubblewrap.
    pub(super) bubblewrap: Expected,
    /// Its result with Landlock and seccomp alone.
    pub(super) landlock: Expected,
}

const fn probe(name: &'static str, script: &'static str, expected: Expected) -> Probe {
    Probe { name, script, bubblewrap: expected, landlock: expected }
}

/// One where the kinds differ: the expectation of bubblewrap first.
const fn differs(
    name: &'static str,
    script: &'static str,
    bubblewrap: Expected,
    landlock: Expected,
) -> Probe {
    Probe { name, script, bubblewrap, landlock }
}

/// All probes.
pub(super) const PROBES: &[Probe] = &[
    // The purpose of commands.
    probe("write in the workspace", "echo x > src/new && mkdir -p a/b && mv a c && rm -r c", Works),
    probe(
        "append, truncate, link and mode in the workspace",
        "echo x >> src/main.txt && : > src/t && ln src/t src/h && ln -s t src/s && chmod 755 src/t",
        Works,
    ),
    probe(
        "the folder for temporary files",
        "f=$(mktemp) && echo x > \"$f\" && [ \"${f#\"$TMPDIR\"/}\" != \"$f\" ]",
        Works,
    ),
    probe(
        "/dev/null, zero and urandom",
        "echo x > /dev/null && head -c 8 /dev/zero >/dev/null && head -c 8 /dev/urandom > /dev/null",
        Works,
    ),
    probe(
        "programs and libraries of the system",
        "ls / >/dev/null && sort /etc/passwd > /dev/null && perl -e 1",
        Works,
    ),
    probe(
        "pipes, subshells and here-documents",
        "[ \"$(cat <<< x | tr x y)\" = y ] && cat <(echo x) >/dev/null",
        Works,
    ),
    probe("ending it first when memory runs out", "[ $(cat /proc/self/oom_score_adj) = 1000 ]", Works),
    probe("socket pairs", "perl -MSocket -e 'socketpair(A, B, AF_UNIX, SOCK_STREAM, 0) or exit 1'", Works),
    probe(
        "a write into the objects of git",
        "mkdir -p .git/objects/aa && echo x > .git/objects/aa/bb && echo y > .git/HEAD",
        Works,
    ),
    probe("threads and children", "perl -e 'my $p = fork; exit 0 unless $p; waitpid $p, 0; exit $?'", Works),
    probe("signals to its own children", "sleep 100 & kill $!; wait $!; [ $? = 143 ]", Works),
    differs("files in /tmp", "echo x > /tmp/kode-own && cat /tmp/kode-own", Works, Refused),
    differs("shared memory", "echo x > /dev/shm/kode-own", Works, Refused),
    // The user of these tests may read each of them outside: loop devices are the disks that every system has.
    probe(
        "a disk",
        "for f in /dev/loop[0-9] /dev/sda /dev/vda /dev/zram0; do head -c 1 $f && exit; done; false",
        Refused,
    ),
    probe("the text on the screen", "head -c 1 /dev/vcs || head -c 1 /dev/vcs1", Refused),
    differs(
        "a server of its own on loopback",
        "perl -MSocket -e 'socket(S, AF_INET, SOCK_STREAM, 0) && bind(S, pack_sockaddr_in(0, INADDR_LOOPBACK)) && listen(S, 1) or exit 1'",
        Works,
        Refused,
    ),
    // Files outside.
    probe("a file outside", "echo evil > \"$out/precious\"", Refused),
    probe("a new file outside", "echo evil > \"$out/new\"", Refused),
    probe("removing a file outside", "rm -f \"$out/precious\"", Refused),
    probe("renaming a file outside", "mv \"$out/precious\" \"$out/moved\"", Refused),
    probe("cutting a file outside", "perl -e 'truncate $ARGV[0], 0 or exit 1' \"$out/precious\"", Refused),
    probe("moving a file from outside in", "mv \"$out/precious\" taken", Refused),
    probe("a file of the system", "echo evil > /etc/kode-evil || echo evil > /usr/kode-evil", Refused),
    probe("the root folder", "mkdir /kode-evil", Refused),
    probe("/proc/sys", "echo evil > /proc/sys/kernel/core_pattern", Refused),
    probe("a cgroup", "mkdir /sys/fs/cgroup/kode-evil || mkdir /sys/fs/cgroup/pids/kode-evil", Refused),
    probe("the start file of the shell", "echo evil >> ~/.bashrc", Refused),
    probe("the state of the product", "echo evil > \"$state/new\"", Refused),
    probe("/run", "echo x > /run/kode-evil || echo x > /run/kode-ls/evil", Refused),
    probe("through a link that was there", "echo evil > link-out/precious", Refused),
    probe("through a link of its own", "ln -s \"$out\" l && echo evil > l/precious", Refused),
    probe("through a chain of links", "ln -s \"$out\" l1 && ln -s l1 l2 && echo evil > l2/new", Refused),
    probe("through dots", "echo evil > ../outside/precious", Refused),
    probe("a hard link to a file outside", "ln \"$out/precious\" hard && echo evil > hard", Refused),
    probe("a link outside", "ln -s x \"$out/link\"", Refused),
    probe("through /proc/self/root", "echo evil > \"/proc/self/root$out/precious\"", Refused),
    probe("through /proc/self/cwd", "echo evil > /proc/self/cwd/../outside/precious", Refused),
    probe("a device node", "mknod disk b 254 0 && head -c 1 disk", Refused),
    differs("the mode of a file outside", "chmod 777 \"$out/precious\"", Refused, Works),
    differs("the times of a file outside", "touch -d 2001-01-01 -c \"$out/precious\"", Refused, Works),
    differs("files of others in /tmp", "[ -e \"$marker\" ]", Refused, Works),
    // Guarded files.
    differs("a hook", "echo evil > .git/hooks/pre-commit", Refused, Works),
    differs("a new hook", "echo evil > .git/hooks/post-commit", Refused, Works),
    differs("the mode of a hook", "chmod 755 .git/hooks/pre-commit", Refused, Works),
    differs("git's settings", "echo evil >> .git/config", Refused, Works),
    differs("git's settings by renaming over them", "echo evil > c && mv -f c .git/config", Refused, Works),
    differs(
        "git's settings by removing them",
        "rm -f .git/config && echo evil > .git/config",
        Refused,
        Works,
    ),
    differs("git's settings by a hard link", "ln .git/config c && echo evil > c", Refused, Works),
    differs(
        "git's settings by an exchange of names",
        "echo evil > c && perl -e 'exit !rename(\".git/config\", \"d\")' && mv c .git/config",
        Refused,
        Works,
    ),
    differs(
        "moving .git away",
        "mv .git x && mkdir -p .git/hooks && echo evil > .git/hooks/pre-commit",
        Refused,
        Works,
    ),
    differs(
        "moving the hooks away",
        "mv .git/hooks x && mkdir .git/hooks && echo evil > .git/hooks/pre-commit",
        Refused,
        Works,
    ),
    differs(
        "a link in place of the hooks",
        "mv .git/hooks x && mkdir y && ln -s ../y .git/hooks",
        Refused,
        Works,
    ),
    differs("a link in place of .git that leads out", "mv .git x && ln -s \"$out\" .git", Refused, Works),
    differs("the settings of a submodule", "echo evil > .git/modules/lib/config", Refused, Works),
    differs(
        "moving the submodules away",
        "mv .git/modules x && mkdir -p .git/modules/lib && echo evil > .git/modules/lib/config",
        Refused,
        Works,
    ),
    differs("tasks of an editor", "echo evil > .vscode/tasks.json", Refused, Works),
    differs("servers of tools", "echo evil > .mcp.json", Refused, Works),
    differs(
        "moving a guarded file's folder away",
        "mv deep x && mkdir -p deep/er && echo evil > deep/er/.envrc",
        Refused,
        Works,
    ),
    differs("removing a guarded folder", "rm -rf .vscode", Refused, Works),
    // Secrets.
    probe("a key", "cat ~/.ssh/id", Refused),
    probe("a key by a link", "ln -s ~/.ssh s && cat s/id", Refused),
    probe("a key by a hard link", "ln ~/.ssh/id k && cat k", Refused),
    probe("a key by /proc/self/root", "cat \"/proc/self/root$HOME/.ssh/id\"", Refused),
    probe("a key further down", "cat ~/.config/gcloud/key", Refused),
    probe("a password", "grep -q . ~/.netrc", Refused),
    probe("a token of the product", "cat \"$state/token\"", Refused),
    probe("password hashes", "grep -q . /etc/shadow", Refused),
    probe("keys in the environment", "env | grep -q SECRET", Refused),
    probe("keys in the environment of the helper", "cat /proc/$PPID/environ | grep -qa SECRET", Refused),
    probe("the memory of the helper", ": < /proc/$PPID/mem", Refused),
    // Other processes.
    probe("a signal to a process outside", "kill -9 $victim", Refused),
    probe("a signal to all processes outside", "kill -0 $victim || kill -0 -- -$victim", Refused),
    probe("the environment of a process outside", "cat /proc/$victim/environ", Refused),
    probe("the memory of a process outside", "head -c 1 /proc/$victim/mem", Refused),
    probe("the root of a process outside", "ls /proc/$victim/root/", Refused),
    probe(
        "the root of the first process",
        "ls /proc/1/root/home >/dev/null && cat \"/proc/1/root$HOME/.ssh/id\"",
        Refused,
    ),
    probe(
        "the files a process outside has open",
        "readlink /proc/$victim/fd/1 || cat /proc/$victim/fd/0",
        Refused,
    ),
    differs("the numbers of files a process outside has open", "ls /proc/$victim/fd/", Refused, Works),
    probe("the memory of the helper", "echo x > /proc/$PPID/mem", Refused),
    probe("the limits of a process outside", "prlimit --pid $victim --nofile=0:0 --fsize=0:0", Refused),
    // Where process ids are shared, the parents are the helper and the server.
    probe(
        "the limits of the helper outside",
        "for f in $PPID $(sed -n 's/^PPid:\t//p' /proc/$PPID/status); do prlimit --pid $f --fsize=0:0 && exit; done; false",
        Refused,
    ),
    probe("the processors of a process outside", "taskset -p 1 $victim", Refused),
    probe("the priority of a process outside", "renice -n 19 -p $victim", Refused),
    probe(
        "the priority of all processes of the user",
        "renice -n 19 -u $(id -u) && [ $(nice) = 19 ] && [ -d /proc/$victim ]",
        Refused,
    ),
    probe("the disk priority of a process outside", "ionice -c 3 -p $victim", Refused),
    probe("the scheduling of a process outside", "chrt -i -p 0 $victim", Refused),
    probe(
        "shared memory of System V",
        "ipcs -m -i $segment | grep -q bytes && perl -e 'exit !shmread($ARGV[0], my $x, 0, 6)' $segment",
        Refused,
    ),
    probe(
        "a message queue of System V",
        "perl -e 'exit !msgsnd($ARGV[0], pack(\"l! a*\", 1, \"x\"), 04000)' $queue",
        Refused,
    ),
    probe(
        "semaphores of System V",
        "perl -e 'exit !semop($ARGV[0], pack(\"s!3\", 0, 1, 04000))' $semaphores",
        Refused,
    ),
    probe("shared memory of another program", "cat $posix", Refused),
    probe(
        "the answer of the helper",
        "echo x > /run/kode-ls/control/status.json || echo x > /run/kode-ls/control/report.json",
        Refused,
    ),
    probe("the helper itself", "echo x > /run/kode-ls/helper", Refused),
    differs("a list of processes outside", "[ -d /proc/$victim ]", Refused, Works),
    // The network.
    probe("a listener on loopback", "exec 3<>/dev/tcp/127.0.0.1/$tcp", Refused),
    probe("an address elsewhere", "timeout 5 bash -c 'exec 3<>/dev/tcp/192.0.2.1/80'", Refused),
    probe("a datagram elsewhere", "echo x > /dev/udp/192.0.2.1/53", Refused),
    probe("a name server", "timeout 10 getent ahostsv4 example.com", Refused),
    probe(
        "a socket in a folder",
        "perl -MSocket -e 'socket(S, AF_UNIX, SOCK_STREAM, 0) && connect(S, pack_sockaddr_un($ARGV[0])) or exit 1' \"$socket\"",
        Refused,
    ),
    probe(
        "a socket in no folder",
        "perl -MSocket -e 'socket(S, AF_UNIX, SOCK_STREAM, 0) && connect(S, pack_sockaddr_un(\"\\0$ARGV[0]\")) or exit 1' \"$abstract\"",
        Refused,
    ),
    probe(
        "any socket of this machine",
        "perl -MSocket -e 'socket(S, AF_UNIX, SOCK_DGRAM, 0) or exit 1'",
        Refused,
    ),
    probe("a socket for packets", "perl -e 'socket(S, 17, 3, 768) or exit 1'", Refused),
    probe("a socket for the kernel", "perl -e 'socket(S, 16, 3, 0) or exit 1'", Refused),
    probe("a socket for other machines", "perl -e 'socket(S, 40, 1, 0) or exit 1'", Refused),
    differs("a datagram on loopback", "echo x > /dev/udp/127.0.0.1/$udp", Works, Refused),
    // More rights.
    probe("no new privileges", "grep -q '^NoNewPrivs:.1$' /proc/self/status", Works),
    probe("filtered calls", "grep -q '^Seccomp:.2$' /proc/self/status", Works),
    probe(
        "no capabilities",
        "grep -q '^CapEff:.0000000000000000$' /proc/self/status && grep -q '^CapPrm:.0000000000000000$' /proc/self/status",
        Works,
    ),
    probe("no core files", "[ \"$(ulimit -c)\" = 0 ] && ! ulimit -c 10", Works),
    probe("a user namespace", "unshare -U true", Refused),
    probe("a mount namespace", "unshare -m true", Refused),
    probe("a mount namespace of a user namespace", "unshare -Ur bash -c 'mount --bind /usr /mnt'", Refused),
    probe("a mount", "mount -t tmpfs none src", Refused),
    probe("a bind mount", "mount --bind / src", Refused),
    probe("a mount made writable", "mount -o remount,rw /", Refused),
    probe(
        "an unmount over a guarded file",
        "umount .git/config || umount -l .git/hooks || umount -l /run",
        Refused,
    ),
    probe("another root", "chroot / true", Refused),
    probe("another user", "perl -e '$> = 1; exit($> != 1)'", Refused),
    probe("a terminal", "true < /dev/tty", Refused),
    probe("a larger limit", "ulimit -n 1048576", Refused),
];
