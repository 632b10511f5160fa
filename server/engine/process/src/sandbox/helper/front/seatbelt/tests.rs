//! Tests of the front process of macOS, with a script in the place of `sandbox-exec`.
//!
//! Rule: nothing here was held by Seatbelt: these tests show which program is started, how, and how it ends.

use std::collections::BTreeMap;
use std::fs;

use tempfile::TempDir;

use super::*;
use crate::sandbox::policy::{ProxyToken, ResourceLimits};
use crate::sandbox::{HelperReport, SandboxPolicy};
use kode_base::paths::{AbsPath, real_path};

/// Notes its arguments, passes over those before the command, and becomes the command.
const SCRIPT: &str = r#"#!/bin/sh
here=${0%/*}
[ -e "$here/refuse" ] && { echo "bad policy" >&2; exit 65; }
printf '%s\n' "$@" >> "$here/arguments"
echo END >> "$here/arguments"
while :; do
  case $1 in
    -p) shift 2 ;;
    -D*) shift ;;
    *) break ;;
  esac
done
[ "$1" = /usr/bin/true ] && exit 0
exec "$@"
"#;

struct Fixture {
    _folder: TempDir,
    root: AbsPath,
    request: HelperRequest,
}

impl Fixture {
    fn new() -> Self {
        let folder = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).unwrap();
        let root = AbsPath::new(real_path(folder.path()).unwrap()).unwrap();
        for name in ["work", "tmp", "control"] {
            fs::create_dir(root.join(name)).unwrap();
        }
        fs::write(root.join("sandbox-exec"), SCRIPT).unwrap();
        fs::set_permissions(root.join("sandbox-exec"), fs::Permissions::from_mode(0o755)).unwrap();
        let unlimited = ResourceLimits { processes: u64::MAX, open_files: u64::MAX, file_size: u64::MAX };
        let policy = SandboxPolicy {
            kind: SandboxKind::Seatbelt,
            writable: vec![root.join("work")],
            scratch: root.join("tmp"),
            read_only: Vec::new(),
            hidden: Vec::new(),
            shown: Vec::new(),
            home: None,
            network: Network::Off,
            limits: unlimited,
            // The input of the tests is nothing to be waited for.
            input: InputMode::Rest,
            variables: BTreeMap::from([("GIVEN".to_owned(), "yes".to_owned())]),
            lasting: false,
        };
        let control = root.join("control");
        let request =
            HelperRequest { policy, control, proxy: None, guard: None, launcher: None, is_checkout: false };
        Self { _folder: folder, root, request }
    }

    fn run(&self, command: &[&str]) -> (HelperReport, Option<i32>) {
        let front = HelperFront::new(&self.request).unwrap();
        let program = self.root.join("sandbox-exec");
        let system = SeatbeltSystem::by(program.as_path(), false, &front, &self.request).unwrap();
        let command: Vec<_> = command.iter().map(OsString::from).collect();
        front.run(&system, &command)
    }

    fn sh(&self, script: &str) -> (HelperReport, Option<i32>) {
        self.run(&["/bin/sh", "-c", script, "sh", self.root.join("work").as_path().to_str().unwrap()])
    }

    fn output(&self, name: &str) -> String {
        fs::read_to_string(self.root.join("work").join(name)).unwrap()
    }
}

#[test]
fn a_command_runs_below_the_program_with_the_policy_that_was_tried_before() {
    let fixture = Fixture::new();
    let (report, code) = fixture.sh("echo \"$GIVEN ${TMPDIR##*/} ${HTTP_PROXY-none}\" > $1/out; exit 3");
    assert_eq!((report.failure, report.signal, code), (None, None, Some(3)));
    assert_eq!(fixture.output("out"), "yes tmp none\n");
    let enforced = report.enforced.unwrap();
    assert_eq!((&*enforced.kind, &*enforced.network), ("seatbelt", "off"));
    assert!(enforced.weaker.iter().any(|reason| reason.contains("leaves the group")), "{enforced:?}");
    let arguments = fs::read_to_string(fixture.root.join("arguments")).unwrap();
    let calls: Vec<_> = arguments.split("END\n").collect();
    let [trial, command, ""] = calls.as_slice() else { panic!("{arguments}") };
    let before = |call: &str, program: &str| call.split_once(program).map(|(before, _)| before.to_owned());
    let policy = before(trial, "/usr/bin/true\n").unwrap();
    assert!(policy.starts_with("-p\n(version 1)\n(deny default)\n"), "{policy}");
    let root = fixture.root.join("work");
    assert!(policy.contains(&format!("-DWRITABLE_0={}\n", root.as_path().display())), "{policy}");
    assert_eq!(before(command, "/bin/sh\n"), Some(policy));
}

#[test]
fn how_a_command_ends_is_told_apart_from_one_that_was_not_run() {
    let fixture = Fixture::new();
    let (report, code) = fixture.sh("kill -9 $$");
    assert_eq!((report.failure, report.signal, code), (None, Some(9), None));
    let (report, _) = fixture.run(&["no-program-of-that-name"]);
    assert!(matches!(report.failure, Some(StartFailure::NotFound(_))), "{report:?}");
    let (report, _) = fixture.run(&[fixture.root.join("work").as_path().to_str().unwrap()]);
    assert!(matches!(report.failure, Some(StartFailure::NotStarted(_))), "{report:?}");
    let (report, _) = fixture.run(&[]);
    assert!(matches!(report.failure, Some(StartFailure::NotStarted(_))), "{report:?}");
    fs::write(fixture.root.join("refuse"), "").unwrap();
    let (report, code) = fixture.sh("touch $1/ran");
    let reason = "Seatbelt does not take the policy: bad policy".to_owned();
    assert_eq!((report.failure, report.enforced, code), (Some(StartFailure::Sandbox(reason)), None, None));
    assert!(!fixture.root.join("work/ran").as_path().exists());
}

#[test]
fn what_a_command_leaves_in_its_group_ends_with_it() {
    let fixture = Fixture::new();
    let (_, code) = fixture.sh("sleep 600 & echo $! > $1/pid");
    assert_eq!(code, Some(0));
    let id = fixture.output("pid").trim().parse().unwrap();
    let state = || fs::read_to_string(format!("/proc/{id}/stat")).unwrap_or_default();
    // A killed process may wait to be collected by its new parent.
    let is_over =
        || state().rsplit(") ").next().is_none_or(|rest| rest.is_empty() || rest.starts_with(['Z', 'X']));
    let deadline = Instant::now() + Duration::from_secs(20);
    while !is_over() && Instant::now() < deadline {
        thread::yield_now();
    }
    assert!(is_over(), "{}", state());
    let _: i32 = id;
}

#[test]
fn listed_hosts_are_reached_by_the_proxy_alone_and_its_token_is_in_the_variables_alone() {
    let mut fixture = Fixture::new();
    let hosts = vec!["example.com".parse().unwrap()];
    fixture.request.policy.network = Network::Allowed { hosts, denied: Vec::new(), local: false };
    let (report, _) = fixture.sh("echo ${HTTP_PROXY-none} > $1/out");
    let enforced = report.enforced.unwrap();
    assert_eq!((&*enforced.network, &*fixture.output("out")), ("off", "none\n"));
    assert!(enforced.weaker.iter().any(|reason| reason.contains("no proxy")), "{enforced:?}");
    let token = ProxyToken::random();
    fixture.request.proxy = Some(ProxyAddress::Loopback { port: 4711, token: token.clone() });
    fs::remove_file(fixture.root.join("arguments")).unwrap();
    let (report, _) = fixture.sh("echo \"$https_proxy|$NO_PROXY|\" > $1/out");
    let url = format!("http://kode-ls:{}@127.0.0.1:4711||\n", token.expose());
    assert_eq!((&*report.enforced.unwrap().network, fixture.output("out")), ("listed hosts", url));
    let arguments = fs::read_to_string(fixture.root.join("arguments")).unwrap();
    assert!(arguments.contains("(remote ip \"localhost:4711\")"), "{arguments}");
    assert!(!arguments.contains(token.expose()), "a token in arguments is seen by every user of the machine");
    assert!(!format!("{:?}", fixture.request).contains(token.expose()));
}

#[test]
fn a_policy_of_another_system_is_refused() {
    let mut fixture = Fixture::new();
    fixture.request.policy.kind = SandboxKind::Landlock;
    let front = HelperFront::new(&fixture.request).unwrap();
    let refused = SeatbeltSystem::by(Path::new(SANDBOX_EXEC), false, &front, &fixture.request).unwrap_err();
    assert_eq!(refused.to_string(), "landlock is a sandbox of Linux");
}
