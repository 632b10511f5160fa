//! Tests of the policies of Seatbelt: twenty of them as golden files, their answers, and that they answer as the policy that
//! every kind of sandbox is given.
//!
//! Rule: no Mac takes part. The text is checked by a reader of the language that knows nothing of how it was written, and the
//! answers by the rules of the policy, written once more without patterns.

mod cases;
mod language;
mod meaning;

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use super::{SeatbeltAccess, SeatbeltNetwork};
use cases::{Case, case, cases};
use language::Subject;

/// The variable that has the golden files written again.
const REFRESH: &str = "KODE_GOLDEN";
const GOLDEN: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/src/sandbox/seatbelt/tests/golden");

/// The text of a golden file: the parameters as comments, then the policy.
fn shown(case: &Case) -> String {
    let profile = case.profile();
    let values = profile.parameters().iter().map(|(name, value)| format!("; {name} = {value:?}\n"));
    format!("; {}\n{}{}", case.about, values.collect::<String>(), profile.text())
}

#[test]
fn twenty_policies_are_as_they_were_approved() {
    let cases = cases();
    assert_eq!(cases.len(), 20);
    let mut files: Vec<_> = fs::read_dir(GOLDEN)
        .map(|entries| entries.flatten().map(|entry| entry.file_name()).collect())
        .unwrap_or_default();
    for case in &cases {
        let name = format!("{}.sb", case.name);
        let path = Path::new(GOLDEN).join(&name);
        let now = shown(case);
        if std::env::var_os(REFRESH).is_some() {
            fs::create_dir_all(GOLDEN).unwrap();
            fs::write(&path, &now).unwrap();
        }
        let approved = fs::read_to_string(&path).unwrap_or_default();
        assert!(approved == now, "{name} differs; {REFRESH}=1 writes it again:\n{now}");
        files.retain(|file| *file != OsString::from(&name));
    }
    assert!(files.is_empty(), "golden files of no policy: {files:?}");
}

#[test]
fn every_policy_is_of_the_language_and_names_no_path_of_the_user() {
    for case in cases() {
        let policy = case.read();
        let of_system = |path: &String| {
            ["/dev/", "^/dev/tty", "/private/var/run/mDNSResponder", "^/[^/]+"]
                .iter()
                .any(|beginning| path.starts_with(beginning))
        };
        let other: Vec<_> = policy.paths.iter().filter(|path| !of_system(path)).collect();
        assert!(other.is_empty(), "{}: {other:?}", case.name);
        let text = case.profile().text().to_owned();
        for (name, value) in case.profile().parameters() {
            let value = value.to_str().unwrap();
            assert!(!text.contains(value), "{}: the value of {name} is in the text", case.name);
        }
    }
}

#[test]
fn arguments_hold_the_text_and_each_value_as_it_is() {
    let case = case("odd-names");
    let arguments = case.profile().arguments().unwrap();
    assert_eq!(arguments[0], "-p");
    assert_eq!(arguments[1], *case.profile().text());
    let odd = Path::new("/Users/ada/it's \"(odd)\"\\\n)(allow default) äπ🦀");
    assert!(arguments.iter().any(|argument| {
        argument.to_str().unwrap().strip_prefix("-DWRITABLE_0=").map(Path::new) == Some(odd)
    }));
    let mut many = cases::base();
    many.hidden = (0..5_000).map(|number| format!("/Users/ada/app/{}/{number}", "x".repeat(200))).collect();
    let refused = many.profile().arguments().unwrap_err().to_string();
    assert!(refused.contains("more than the 524288"), "{refused}");
}

#[test]
fn writable_places_are_written_and_what_is_not_hidden_is_read() {
    for (name, writes, reads) in [
        ("offline", &["/Users/ada/app", "/Users/ada/app/src/a.rs", "/private/tmp/kode/tmp/x"][..], &[][..]),
        ("read-only", &["/private/tmp/kode/tmp/x/y"], &["/Users/ada/app/src/a.rs", "/usr/lib/x"]),
        ("extra-folders", &["/Users/ada/.npm/_cacache/x", "/Volumes/data/out"], &["/Users/ada/other/x"]),
        ("nested-hidden", &["/Users/ada/app/vault/shared/x"], &["/Users/ada/app/vault/shared/x"]),
        ("state-worktree", &["/Users/ada/.kode/worktrees/w/src/a"], &["/Users/ada/.kode/worktrees/w/src/a"]),
        ("shown-skills", &[], &["/Users/ada/.claude/skills/pdf/SKILL.md"]),
        (
            "git-present",
            &[
                "/Users/ada/app/.git/HEAD",
                "/Users/ada/app/.git/HEAD.lock",
                "/Users/ada/app/.git/objects/ab/cd",
                "/Users/ada/app/.git/index.lock",
                "/Users/ada/app/.git/refs/heads/main",
                "/Users/ada/app/.git/modules/lib/objects/x",
                "/Users/ada/app/.git/worktrees/w/index",
                "/Users/ada/app/node_modules/x/.npmrc",
            ],
            &["/Users/ada/app/.git/config", "/Users/ada/app/.git/hooks/pre-commit"],
        ),
        ("checkout", &["/Users/ada/app/.vscode/tasks.json", "/Users/ada/app/lib/.git"], &[]),
        ("bare", &["/Users/ada/app/mirror.git/objects/x", "/Users/ada/app/mirror.git/HEAD"], &[]),
    ] {
        let policy = case(name).read();
        for path in writes {
            assert!(policy.writes(Path::new(path)), "{name}: {path} cannot be written");
        }
        for path in reads {
            assert!(policy.reads(Path::new(path)), "{name}: {path} cannot be read");
        }
    }
}

#[test]
fn hidden_and_guarded_places_are_neither_read_nor_written() {
    for (name, unwritten, unread) in [
        (
            "offline",
            &["/Users/ada/x", "/Users/ada/apple", "/private/tmp/x", "/etc/hosts", "/dev/disk0"][..],
            &[][..],
        ),
        ("read-only", &["/Users/ada/app", "/Users/ada/app/src/a.rs"], &[]),
        ("secrets", &["/Users/ada/.ssh/id"], &["/Users/ada/.ssh/id", "/Users/ada/.aws", "/Users/ada/.netrc"]),
        (
            "nested-hidden",
            &["/Users/ada/app/vault", "/Users/ada/app/vault/key", "/Users/ada/app/vault/shared/own/x"],
            &["/Users/ada/app/vault/key", "/Users/ada/app/vault/shared/own/x", "/Users/ada/app/.env"],
        ),
        (
            "state-worktree",
            &["/Users/ada/.kode/settings.json", "/Users/ada/.kode/worktrees/v"],
            &["/Users/ada/.kode/settings.json"],
        ),
        ("shown-skills", &["/Users/ada/.claude/skills/x"], &["/Users/ada/.claude/settings.json"]),
        (
            "git-present",
            &[
                "/Users/ada/app/.git",
                "/Users/ada/app/.git/config",
                "/Users/ada/app/.git/config.lock",
                "/Users/ada/app/.git/hooks/pre-commit",
                "/Users/ada/app/.git/new",
                "/Users/ada/app/.GIT/hooks/x",
                "/Users/ada/app/.git/modules/lib/config",
                "/Users/ada/app/.git/worktrees/w/config.worktree",
                "/Users/ada/app/deep/er/.git/hooks/x",
                "/Users/ada/app/node_modules/x/.git/config",
                "/Users/ada/app/.husky/pre-commit",
            ],
            &[],
        ),
        (
            "git-absent",
            &[
                "/Users/ada/app/.git",
                "/Users/ada/app/.git/hooks",
                "/Users/ada/app/sub/.git/config",
                "/Users/ada/app/.kode",
                "/Users/ada/app/.Kode/settings.json",
                "/Users/ada/app/x/.vscode/tasks.json",
                "/Users/ada/app/X.code-workspace",
                "/Users/ada/app/.mcp.json",
                "/Users/ada/app/tools/hooks/pre-push",
            ],
            &[],
        ),
        (
            "home",
            &["/Users/ada/.zshrc", "/Users/ada/Library/LaunchAgents/x.plist", "/Users/ada/.config/fish/x"],
            &[],
        ),
        ("bare", &["/Users/ada/app/mirror.git/config", "/Users/ada/app/mirror.git/hooks/x"], &[]),
        ("links", &["/Users/ada/app/.envrc", "/Users/ada/app/env/main"], &[]),
        ("checkout", &["/Users/ada/app/.git/config", "/Users/ada/.zshrc"], &[]),
    ] {
        let policy = case(name).read();
        for path in unwritten {
            assert!(!policy.writes(Path::new(path)), "{name}: {path} can be written");
        }
        for path in unread {
            assert!(!policy.reads(Path::new(path)), "{name}: {path} can be read");
        }
    }
}

#[test]
fn what_lies_around_guarded_files_stays_where_it_is_and_hidden_files_are_noticed() {
    let policy = case("nested-hidden").read();
    for path in
        ["/Users/ada/app", "/Users/ada/app/vault", "/private/tmp/kode/tmp", "/Users/ada/app/vault/shared"]
    {
        assert!(!policy.removes(Path::new(path)), "{path}");
    }
    assert!(policy.removes(Path::new("/Users/ada/app/src")));
    let policy = case("git-present").read();
    for path in
        ["/Users/ada/app/.git", "/Users/ada/app/.git/hooks", "/Users/ada/app/lib", "/Users/ada/app/lib/.git"]
    {
        assert!(!policy.removes(Path::new(path)), "{path}");
    }
    assert!(policy.removes(Path::new("/Users/ada/app/.git/index.lock")));
    let policy = case("nested-hidden").read();
    let metadata = |path: &str| policy.allows("file-read-metadata", &Subject::File(Path::new(path)));
    assert!(metadata("/Users/ada/app/.env") && metadata("/Users/ada/app/vault"));
    assert!(!metadata("/Users/ada/app/vault/key"), "nothing in a hidden folder can be looked up");
    assert!(!policy.allows("file-link", &Subject::File(Path::new("/Users/ada/app/src/a"))));
    assert!(!policy.allows("file-write-setugid", &Subject::File(Path::new("/Users/ada/app/src/a"))));
}

#[test]
fn the_network_is_what_the_policy_says_and_no_socket_of_a_file() {
    let reaches = |name: &str, place: &str| {
        let place = format!("(remote ip {place:?})");
        case(name).read().allows("network-outbound", &Subject::Other(&place))
    };
    assert!(!reaches("offline", "*:*") && !reaches("offline", "localhost:49152"));
    assert!(reaches("hosts", "localhost:49152"));
    assert!(!reaches("hosts", "*:*") && !reaches("hosts", "localhost:49153"));
    assert!(reaches("network", "*:*"));
    for name in ["offline", "hosts", "network"] {
        let policy = case(name).read();
        let socket = Path::new("/private/tmp/com.apple.launchd.x/Listeners");
        assert!(!policy.allows("network-outbound", &Subject::File(socket)), "{name}");
        let finds = |service: &str| {
            policy.allows("mach-lookup", &Subject::Other(&format!("(global-name {service:?})")))
        };
        assert_eq!(finds("com.apple.trustd.agent"), name == "network");
        for service in
            ["com.apple.SecurityServer", "com.apple.coreservices.launchservicesd", "com.apple.pasteboard.1"]
        {
            assert!(!finds(service), "{name}: {service}");
        }
        assert_eq!(
            policy.allows("network-inbound", &Subject::Other("(local ip \"*:*\")")),
            name == "network"
        );
    }
}

#[test]
fn a_folder_that_is_not_there_or_never_to_be_written_makes_no_policy() {
    for folder in
        ["/Users/ada/missing", "/", "/System", "/private/etc", "/etc", "/Users", "/tmp/link-to-users"]
    {
        let mut case = cases::base();
        case.writable = vec![folder.to_owned()];
        assert!(case.places().is_err(), "{folder}");
    }
    let mut links = cases::base();
    links.writable = vec!["/tmp/work".to_owned()];
    assert_eq!(links.places().unwrap().writable, [PathBuf::from("/private/tmp/work")]);
    let access = SeatbeltAccess { network: SeatbeltNetwork::Off, refuses_names: true };
    links.access = access;
    assert!(links.read().writes(Path::new("/private/tmp/work/x")));
}
