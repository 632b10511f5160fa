//! The policy of Seatbelt for one command: the text of its rules, and the values of its parameters.
//!
//! Rule: everything is denied but for a list, and each place is in it once: a rule allows a place without the held, hidden and
//! closed paths in it, so that the order of rules matters for removals alone, which are denied last.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};

use kode_base::steering::{AT_HOME, is_repository};

use super::filter::Filter;
use super::layers::PlaceLayers;
use super::names::NamePatterns;
use crate::git_obeys::folders::OF_BARE;
use crate::sandbox::guard::{GuardSurvey, GuardedPath};
use crate::sandbox::helper::places::PolicyPaths;

/// How long text and parameters may be together, in bytes: macOS passes a program at most a megabyte, with its variables.
const MAX_ARGUMENTS: usize = 512 * 1024;

/// The needs of programs of developers besides files and the network: processes, facts about the machine, and services of the
/// system that neither pass secrets on nor start programs. Left out therefore: those of the key chain, of the clipboard, of
/// opening files by other programs, and of Apple events.
const BASE: &str = r#"(version 1)
(deny default)

; Programs, which keep this policy, and signals among them.
(allow process-exec* process-fork)
(allow process-info* signal
  (target same-sandbox))

; Facts about the machine.
(allow sysctl-read
  (sysctl-name "hw.activecpu")
  (sysctl-name "hw.byteorder")
  (sysctl-name "hw.cachelinesize")
  (sysctl-name "hw.cachelinesize_compat")
  (sysctl-name "hw.cpufamily")
  (sysctl-name "hw.cpufrequency")
  (sysctl-name "hw.cpufrequency_compat")
  (sysctl-name "hw.cputype")
  (sysctl-name "hw.l1dcachesize_compat")
  (sysctl-name "hw.l1icachesize_compat")
  (sysctl-name "hw.l2cachesize_compat")
  (sysctl-name "hw.l3cachesize_compat")
  (sysctl-name "hw.logicalcpu")
  (sysctl-name "hw.logicalcpu_max")
  (sysctl-name "hw.machine")
  (sysctl-name "hw.memsize")
  (sysctl-name "hw.model")
  (sysctl-name "hw.ncpu")
  (sysctl-name "hw.nperflevels")
  (sysctl-name "hw.packages")
  (sysctl-name "hw.pagesize")
  (sysctl-name "hw.pagesize_compat")
  (sysctl-name "hw.physicalcpu")
  (sysctl-name "hw.physicalcpu_max")
  (sysctl-name "hw.tbfrequency_compat")
  (sysctl-name "hw.vectorunit")
  (sysctl-name "kern.argmax")
  (sysctl-name "kern.hostname")
  (sysctl-name "kern.maxfilesperproc")
  (sysctl-name "kern.maxproc")
  (sysctl-name "kern.ngroups")
  (sysctl-name "kern.osproductversion")
  (sysctl-name "kern.osrelease")
  (sysctl-name "kern.ostype")
  (sysctl-name "kern.osvariant_status")
  (sysctl-name "kern.osversion")
  (sysctl-name "kern.secure_kernel")
  (sysctl-name "kern.usrstack64")
  (sysctl-name "kern.version")
  (sysctl-name "machdep.ptrauth_enabled")
  (sysctl-name "sysctl.proc_cputype")
  (sysctl-name "vm.loadavg")
  (sysctl-name-prefix "hw.optional.arm")
  (sysctl-name-prefix "hw.perflevel")
  (sysctl-name-prefix "kern.proc.pgrp.")
  (sysctl-name-prefix "kern.proc.pid.")
  (sysctl-name-prefix "machdep.cpu."))
; Java asks for a fact about the processor by a call that also writes.
(allow sysctl-write
  (sysctl-name "kern.grade_cputype"))

; Users and groups, the log, changes of files, and preferences.
(allow mach-lookup
  (global-name "com.apple.FSEvents")
  (global-name "com.apple.bsd.dirhelper")
  (global-name "com.apple.cfprefsd.agent")
  (global-name "com.apple.cfprefsd.daemon")
  (global-name "com.apple.logd")
  (global-name "com.apple.system.logger")
  (global-name "com.apple.system.notification_center")
  (global-name "com.apple.system.opendirectoryd.libinfo")
  (global-name "com.apple.system.opendirectoryd.membership"))
(allow user-preference-read)
(allow ipc-posix-shm-read*
  (ipc-posix-name-prefix "apple.cfprefs."))

; Semaphores and shared memory that Python and OpenMP make.
(allow ipc-posix-sem)
(allow ipc-posix-shm*
  (ipc-posix-name-regex #"^/(psm_|__KMP_REGISTERED_LIB_)"))

; Devices, and terminals that the command has made itself.
(allow file-write-data file-ioctl
  (literal "/dev/null")
  (literal "/dev/zero")
  (literal "/dev/random")
  (literal "/dev/urandom"))
(allow file-write-data
  (subpath "/dev/fd"))
(allow pseudo-tty)
(allow file-write* file-ioctl
  (literal "/dev/ptmx"))
(allow file-write* file-ioctl
  (require-all
    (regex #"^/dev/ttys[0-9]+$")
    (extension "com.apple.sandbox.pty")))
"#;

/// All of the network, without sockets of files but that of the service that looks names up.
const NETWORK: &str = r#"
; The network. Sockets of files stay closed: agents for keys and services that start programs listen on them.
(allow network-outbound
  (remote ip "*:*")
  (literal "/private/var/run/mDNSResponder"))
(allow network-bind network-inbound
  (local ip "*:*"))
(allow system-socket)
(allow sysctl-read
  (sysctl-name-prefix "net.routetable."))
(allow mach-lookup
  (global-name "com.apple.SystemConfiguration.DNSConfiguration")
  (global-name "com.apple.SystemConfiguration.configd")
  (global-name "com.apple.dnssd.service")
  (global-name "com.apple.mDNSResponder")
  (global-name "com.apple.networkd")
  (global-name "com.apple.ocspd")
  (global-name "com.apple.trustd")
  (global-name "com.apple.trustd.agent"))
"#;

/// The access of a command to other things than the places of its policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SeatbeltAccess {
    /// Its network.
    pub(crate) network: SeatbeltNetwork,
    /// Whether new files that steer other programs are refused. They are not to git as the server runs it: they may be those of
    /// a commit.
    pub(crate) refuses_names: bool,
}

/// The network of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SeatbeltNetwork {
    /// None.
    Off,
    /// The proxy that listens on this port of loopback, and nothing else.
    Proxy(u16),
    /// All of it.
    On,
}

/// The policy of one command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SeatbeltProfile {
    text: String,
    /// The parameters with their values, in the order of the text.
    parameters: Vec<(String, PathBuf)>,
}

impl SeatbeltProfile {
    /// The policy for these places. `held` are the paths of [`PolicyPaths::held`].
    pub(crate) fn of(
        places: &PolicyPaths,
        survey: &GuardSurvey,
        held: &BTreeSet<PathBuf>,
        access: SeatbeltAccess,
    ) -> Self {
        let files = FilePlaces::of(places, survey, held, access.refuses_names);
        let mut profile = ProfileText::default();
        profile.text.push_str(BASE);
        profile.reads(&files);
        profile.writes(&files);
        match access.network {
            SeatbeltNetwork::Off => {}
            SeatbeltNetwork::Proxy(port) => profile.text.push_str(&format!(
                "\n; The proxy for listed hosts.\n(allow network-outbound\n  (remote ip \"localhost:{port}\"))\n"
            )),
            SeatbeltNetwork::On => profile.text.push_str(NETWORK),
        }
        Self { text: profile.text, parameters: profile.parameters }
    }

    /// The text of the rules.
    #[cfg(test)]
    pub(super) fn text(&self) -> &str {
        &self.text
    }

    /// The values of its parameters.
    #[cfg(test)]
    pub(super) fn parameters(&self) -> &[(String, PathBuf)] {
        &self.parameters
    }

    /// The arguments of `sandbox-exec` before the command.
    ///
    /// # Errors
    /// When they are too long to be passed.
    pub(crate) fn arguments(&self) -> io::Result<Vec<OsString>> {
        let mut arguments = vec![OsString::from("-p"), OsString::from(&self.text)];
        for (name, value) in &self.parameters {
            let mut argument = OsString::from(format!("-D{name}="));
            argument.push(value);
            arguments.push(argument);
        }
        let length: usize = arguments.iter().map(|argument| argument.len() + 1).sum();
        if length > MAX_ARGUMENTS {
            return Err(io::Error::other(format!(
                "the policy takes {length} bytes, more than the {MAX_ARGUMENTS} that macOS passes on; hide or guard \
                 folders instead of single files"
            )));
        }
        Ok(arguments)
    }
}

/// The places of a policy by the rights of the command there.
struct FilePlaces {
    reads: PlaceLayers,
    writes: PlaceLayers,
    /// Hidden paths in writable folders: git asks whether they are there.
    noticed: BTreeSet<PathBuf>,
    /// Hidden folders on the way to paths in them that are seen.
    passed: BTreeSet<PathBuf>,
    /// Folders that may neither be renamed nor removed, because of guarded paths in them.
    pinned: BTreeSet<PathBuf>,
    scratch: PathBuf,
    refuses_names: bool,
}

impl FilePlaces {
    fn of(places: &PolicyPaths, survey: &GuardSurvey, held: &BTreeSet<PathBuf>, refuses_names: bool) -> Self {
        let roots: BTreeSet<_> = places.writable.iter().chain([&places.scratch]).cloned().collect();
        // The folder that the user opened as a workspace stays visible.
        let hidden = places.hidden.iter().chain(&survey.hidden).filter(|path| !roots.contains(*path));
        let hidden: BTreeSet<_> = hidden.cloned().collect();
        let mut reads: BTreeMap<_, _> = places.shown.iter().map(|path| (path.clone(), true)).collect();
        reads.extend(hidden.iter().map(|path| (path.clone(), false)));
        reads.extend(roots.iter().map(|path| (path.clone(), true)));
        let reads = PlaceLayers::of(&reads, true);

        let mut closed = held.clone();
        closed.extend(guarded_links(places, survey));
        if refuses_names {
            closed.extend(awaited(places, survey));
        }
        closed.extend(hidden.iter().cloned());
        let mut writes: BTreeMap<_, _> = roots.iter().map(|path| (path.clone(), true)).collect();
        writes.extend(closed.iter().map(|path| (path.clone(), false)));
        let writes = PlaceLayers::of(&writes, false);

        let pinned = pinned(places, survey, &closed);
        let passed = reads.pairs(1).flat_map(|(open, _)| open);
        let passed = passed.flat_map(|path| {
            let above: Vec<_> = path.ancestors().skip(1).collect();
            let hidden = above.iter().rposition(|folder| hidden.contains(*folder));
            above.into_iter().take(hidden.map_or(0, |at| at + 1)).map(Path::to_path_buf)
        });
        let noticed: BTreeSet<_> = hidden.iter().filter(|path| places.is_writable(path)).cloned().collect();
        let passed = passed.filter(|path| !noticed.contains(path)).collect();
        let scratch = places.scratch.clone();
        Self { reads, writes, noticed, passed, pinned, scratch, refuses_names }
    }
}

/// Links that steer programs.
fn guarded_links<'a>(places: &'a PolicyPaths, survey: &'a GuardSurvey) -> impl Iterator<Item = PathBuf> + 'a {
    let links = survey.found.iter().filter(|(_, guarded)| matches!(guarded, GuardedPath::Link(_)));
    links.map(|(path, _)| path).filter(|path| places.is_in_a_root(path)).cloned()
}

/// Paths that would steer programs if they were there, by where they lie and not by their names.
fn awaited(places: &PolicyPaths, survey: &GuardSurvey) -> BTreeSet<PathBuf> {
    let at_home = places.home.iter().flat_map(|home| AT_HOME.map(|name| home.join(name)));
    // The names of entries of a `.git` are known wherever it lies.
    let is_named = |path: &Path| path.iter().any(is_repository);
    let by_content = survey.repositories.iter().filter(|path| !is_named(path));
    let by_content = by_content.flat_map(|path| OF_BARE.map(|name| path.join(name)));
    let absent = survey.absent.iter().cloned();
    absent.chain(at_home).chain(by_content).filter(|path| places.is_in_a_root(path)).collect()
}

/// The folders to write in, those around closed paths in them, and repositories.
fn pinned(places: &PolicyPaths, survey: &GuardSurvey, closed: &BTreeSet<PathBuf>) -> BTreeSet<PathBuf> {
    let roots = places.writable.iter().chain([&places.scratch]);
    let around = closed.iter().flat_map(|path| path.ancestors().skip(1));
    let repositories = survey.repositories.iter().flat_map(|path| path.ancestors());
    let around = around.chain(repositories).filter(|folder| places.is_writable(folder));
    let pinned = roots.map(PathBuf::as_path).chain(around);
    // Of the places around it, the innermost decides: a folder to write in may lie in a hidden one.
    let is_root = |path: &Path| places.writable.iter().chain([&places.scratch]).any(|root| root == path);
    let is_open = |path: &&Path| {
        let nearest = path.ancestors().find(|folder| closed.contains(*folder) || is_root(folder));
        nearest.is_some_and(|folder| !closed.contains(folder))
    };
    pinned.filter(is_open).map(Path::to_path_buf).collect()
}

/// The text while it is made.
#[derive(Default)]
struct ProfileText {
    text: String,
    parameters: Vec<(String, PathBuf)>,
    counts: BTreeMap<&'static str, usize>,
}

impl ProfileText {
    /// A new parameter with this value, numbered among those of its kind.
    fn parameter(&mut self, kind: &'static str, value: &Path) -> String {
        let count = self.counts.entry(kind).or_default();
        let name = format!("{kind}_{count}");
        *count += 1;
        self.parameters.push((name.clone(), value.to_path_buf()));
        name
    }

    fn subpaths<'p>(
        &mut self,
        kind: &'static str,
        paths: impl IntoIterator<Item = &'p PathBuf>,
    ) -> Vec<Filter> {
        paths.into_iter().map(|path| Filter::Subpath(self.parameter(kind, path))).collect()
    }

    fn literals<'p>(
        &mut self,
        kind: &'static str,
        paths: impl IntoIterator<Item = &'p PathBuf>,
    ) -> Vec<Filter> {
        paths.into_iter().map(|path| Filter::Literal(self.parameter(kind, path))).collect()
    }

    fn rule(&mut self, comment: &str, head: &str, filter: Option<&Filter>) {
        if !comment.is_empty() {
            self.text.push_str(&format!("\n; {comment}\n"));
        }
        self.text.push_str(&format!("({head}"));
        if let Some(filter) = filter {
            self.text.push('\n');
            filter.write(&mut self.text, 1);
        }
        self.text.push_str(")\n");
    }

    fn reads(&mut self, files: &FilePlaces) {
        let hidden = self.subpaths("HIDDEN", files.reads.outermost());
        let seen = Filter::none_of(hidden);
        self.rule("Files, but for hidden ones.", "allow file-read*", seen.as_ref());
        let pairs: Vec<_> = files.reads.pairs(1).collect();
        for (open, closed) in pairs {
            let open = self.subpaths("SHOWN", open);
            let closed = self.subpaths("HIDDEN", closed);
            self.rule("", "allow file-read*", Some(&Filter::but_for(open, closed)));
        }
        let mut looked_up = self.literals("NOTICED", &files.noticed);
        looked_up.extend(self.literals("PASSED", &files.passed));
        if !looked_up.is_empty() {
            self.rule(
                "That hidden ones of the workspace are there, and the way to seen ones.",
                "allow file-read-metadata",
                Some(&Filter::Any(looked_up)),
            );
        }
    }

    fn writes(&mut self, files: &FilePlaces) {
        for (open, closed) in files.writes.pairs(0) {
            // Patterns of names begin with the depth of the folder.
            let mut groups: BTreeMap<Option<usize>, Vec<&PathBuf>> = BTreeMap::new();
            for path in open {
                let has_names = files.refuses_names && *path != files.scratch;
                groups.entry(has_names.then(|| depth(path))).or_default().push(path);
            }
            for (depth, open) in groups {
                let closed: Vec<_> =
                    closed.iter().filter(|path| open.iter().any(|folder| path.starts_with(folder))).collect();
                self.write_rule(depth, &open, &closed, &files.scratch);
            }
        }
        let pinned = self.literals("PINNED", &files.pinned);
        self.rule(
            "Folders to write in stay where they are, and so do folders around guarded files.",
            "deny file-write-unlink",
            Some(&Filter::Any(pinned)),
        );
        self.rule(
            "No program is made to run with the rights of another user.",
            "deny file-write-setugid",
            None,
        );
    }

    fn write_rule(&mut self, depth: Option<usize>, open: &[&PathBuf], closed: &[&PathBuf], scratch: &Path) {
        let open = open.iter().map(|path| {
            let kind = if *path == scratch { "SCRATCH" } else { "WRITABLE" };
            Filter::Subpath(self.parameter(kind, path))
        });
        let mut all = vec![Filter::Any(open.collect())];
        let guarded = closed.iter().flat_map(|path| {
            let name = self.parameter("GUARDED", path);
            [Filter::Literal(name.clone()), Filter::Subpath(name)]
        });
        all.extend(Filter::none_of(guarded.collect()));
        if let Some(patterns) = depth.map(NamePatterns::at) {
            let steering = patterns.steering().into_iter().map(Filter::Regex).collect();
            let dependencies = vec![Filter::Regex(patterns.dependencies())];
            all.push(Filter::Not(Box::new(Filter::but_for(steering, dependencies))));
            let git = vec![Filter::Regex(patterns.git())];
            let data = vec![Filter::Regex(patterns.git_data())];
            all.push(Filter::Not(Box::new(Filter::but_for(git, data))));
        }
        self.rule(
            "A folder to write in, but for guarded and hidden paths in it.",
            "allow file-write*",
            Some(&Filter::All(all)),
        );
    }
}

/// How many names a path has.
fn depth(path: &Path) -> usize {
    path.iter().skip(1).count()
}
