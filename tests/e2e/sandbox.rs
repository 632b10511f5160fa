//! The sandbox for commands, by trying to get out of it.
//!
//! Rule: the tests run the program's own helper in both kinds, as the current user and as a user without rights, and
//! fail where the machine has no sandbox: `tests/tools/install-bubblewrap.sh` installs missing programs.

mod calls;
pub(crate) mod fixture;
mod helper;
mod network;
mod probes;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use fixture::{Fixture, Outside, SECRET, User, wait_until_gone};
use probes::{Expected, PROBES, Probe};

const BUBBLEWRAP: &str = "bubblewrap";
const LANDLOCK: &str = "landlock";
const KINDS: [&str; 2] = [BUBBLEWRAP, LANDLOCK];

/// Tries everything in the table, each thing in surroundings of its own.
fn check_all(kind: &str, expected: fn(&Probe) -> Expected) {
    let mut wrong = Vec::new();
    for user in User::all() {
        for probe in PROBES {
            let what = format!("{kind}, {user:?}: {}", probe.name);
            let mut fixture = Fixture::new(user);
            let listener = fixture.listen_abstract();
            let output = fixture.run(&["--kind", kind], probe.script);
            let found = if output.code == 0 { Expected::Works } else { Expected::Refused };
            if found != expected(probe) || output.code == 125 {
                wrong.push(format!("{what}: {found:?}: {output:?}"));
            }
            if output.stdout.contains(SECRET) {
                wrong.push(format!("{what}: a secret was read: {output:?}"));
            }
            assert!(listener.accept().is_err(), "{what}: somebody connected to the socket without a folder");
            let is_weaker = expected(probe) == Expected::Works && probe.bubblewrap == Expected::Refused;
            fixture.check(if is_weaker { Outside::ContentsUntouched } else { Outside::Untouched }, &what);
        }
    }
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), PROBES.len(), wrong.join("\n"));
}

#[test]
fn nothing_gets_out_of_bubblewrap() {
    check_all(BUBBLEWRAP, |probe| probe.bubblewrap);
}

#[test]
fn landlock_alone_holds_but_for_what_is_known() {
    check_all(LANDLOCK, |probe| probe.landlock);
}

#[test]
fn files_beside_hidden_ones_are_named_to_landlock_and_not_opened() {
    for user in User::all() {
        let fixture = Fixture::new(user);
        // A pipe without a writer, and a program that its user may not read.
        let made = Command::new("mkfifo").arg(fixture.path("home/pipe")).status().unwrap();
        assert!(made.success());
        let program = fixture.path("home/program");
        fs::copy("/bin/true", &program).unwrap();
        fs::set_permissions(&program, fs::Permissions::from_mode(0o111)).unwrap();
        let output = fixture.run(&["--kind", LANDLOCK], "~/program && echo ran");
        assert_eq!((output.code, &*output.stdout), (0, "ran\n"), "{user:?}: {output:?}");
    }
}

#[test]
fn landlock_hides_what_its_user_could_open_and_needs_no_rules_for_what_another_has_shut() {
    for user in User::all() {
        let fixture = Fixture::new(user);
        let shut = fixture.path("ws/shut");
        fs::write(&shut, SECRET).unwrap();
        fs::set_permissions(&shut, fs::Permissions::from_mode(0o000)).unwrap();
        let hide = ["--kind", LANDLOCK, "--hide", shut.to_str().unwrap()];
        // Beside a hidden file no command reads the files that it makes.
        let check = |made: &str, expected: &str, what: &str| {
            let output = fixture.run(&hide, &format!("echo made > {made} && cat {made}"));
            assert_eq!(output.stdout, expected, "{user:?}, {what}: {output:?}");
            let output = fixture.run(&hide, "chmod 644 shut; cat shut");
            assert_eq!(output.stdout, "", "{user:?}, {what}: {output:?}");
        };
        match user {
            User::Own => check("first", "", "a file of the user"),
            User::Nobody => {
                check("first", "made\n", "a file of another user");
                fixture::give(&shut);
                check("second", "", "a file of the user");
            }
        }
    }
}

#[test]
fn what_a_command_says_and_how_it_ends_is_passed_on() {
    for kind in KINDS {
        let fixture = Fixture::new(User::Own);
        let run = |script: &str| {
            let output = fixture.run(&["--kind", kind], script);
            (output.code, output.stdout, output.stderr)
        };
        assert_eq!(run("echo out; echo err >&2; exit 7"), (7, "out\n".into(), "err\n".into()), "{kind}");
        assert_eq!(run("kill -9 $$"), (137, String::new(), String::new()), "{kind}");
        assert_eq!(run("kill -TERM $$"), (143, String::new(), String::new()), "{kind}");
        let cwd = format!("{}\n", fixture.path("ws").display());
        assert_eq!(run("pwd; echo $PWD"), (0, cwd.repeat(2), String::new()), "{kind}");
        assert_eq!(
            run("echo seen > >(sed s/seen/changed/)"),
            (0, "changed\n".into(), String::new()),
            "{kind}"
        );
    }
}

#[test]
fn a_program_that_is_not_there_is_distinguished_from_a_sandbox_that_is_not() {
    for kind in KINDS {
        let fixture = Fixture::new(User::Own);
        let arguments = ["sandbox", "--kind", kind, "--", "no-such-program"];
        let output = fixture::collect(fixture.kode_ls(&arguments).spawn().unwrap());
        assert_eq!(output.code, 127, "{kind}: {output:?}");
        assert!(output.stderr.contains("no-such-program"), "{kind}: {output:?}");
    }
}

#[test]
fn nothing_a_command_has_started_outlives_it() {
    for (index, kind) in KINDS.into_iter().enumerate() {
        for user in User::all() {
            let fixture = Fixture::new(user);
            let mark = format!("kode-left-{}-{index}-{user:?}", std::process::id());
            let script = format!(
                "for i in 1 2 3; do setsid bash -c 'exec -a {mark} sleep 600' >/dev/null 2>&1 </dev/null & done
                 (setsid bash -c '(exec -a {mark} sleep 600 &) &' >/dev/null 2>&1 &)
                 until [ $(grep -al ^{mark} /proc/[0-9]*/cmdline 2>/dev/null | wc -l) = 4 ]; do :; done; echo started"
            );
            let output = fixture.run(&["--kind", kind], &script);
            assert_eq!((output.code, &*output.stdout), (0, "started\n"), "{kind} {user:?}: {output:?}");
            wait_until_gone(&mark);
        }
    }
}

#[test]
fn the_number_of_processes_is_bounded() {
    let script = "perl -e 'for (1 .. 600) { my $p = fork; exit 3 unless defined $p; unless ($p) { sleep 600; exit } }'";
    for kind in KINDS {
        for user in User::all() {
            let fixture = Fixture::new(user);
            let output = fixture.run(&["--kind", kind, "--max-processes", "300"], script);
            assert_eq!(output.code, 3, "{kind} {user:?}: {output:?}");
        }
    }
}

#[test]
fn new_guarded_files_are_reported_and_leave_no_stand_ins() {
    for kind in KINDS {
        let mut fixture = Fixture::new(User::Own);
        let output =
            fixture.run(&["--kind", kind], "ls -A; mkdir .idea sub; echo x > .idea/x; echo x > sub/.envrc");
        let before = ".git\n.mcp.json\n.vscode\ndeep\nlink-out\nsrc\n";
        assert_eq!((output.code, &*output.stdout), (0, before), "{kind}: {output:?}");
        for created in ["ws/.idea", "ws/sub/.envrc"] {
            let said = format!("made {}", fixture.path(created).display());
            assert!(output.stderr.contains(&said), "{kind}: {output:?}");
        }
        fixture.check(Outside::Untouched, kind);
    }
}

#[test]
fn a_guarded_file_that_is_a_link_is_a_link_again() {
    for kind in KINDS {
        let fixture = Fixture::new(User::Own);
        std::os::unix::fs::symlink("src", fixture.path("ws/.idea")).unwrap();
        let output = fixture.run(&["--kind", kind], "rm .idea && mkdir .idea && echo evil > .idea/x");
        // A kernel that lets a link be mounted on holds it in bubblewrap.
        let is_held = kind == BUBBLEWRAP && output.stderr.contains("cannot remove");
        assert!(is_held || output.stderr.contains("put back"), "{kind}: {output:?}");
        let target = std::fs::read_link(fixture.path("ws/.idea")).unwrap();
        assert_eq!(target, std::path::Path::new("src"), "{kind}");
    }
}

#[test]
fn more_can_be_given_and_taken() {
    for kind in KINDS {
        let fixture = Fixture::new(User::Own);
        let extra = fixture.path("home/extra");
        std::fs::create_dir(&extra).unwrap();
        let options = [
            "--kind",
            kind,
            "--write",
            extra.to_str().unwrap(),
            "--hide",
            "../outside/precious",
            "--network",
        ];
        let script = "echo x > ~/extra/new && ! grep -q . \"$out/precious\" && exec 3<>/dev/tcp/127.0.0.1/$tcp && ! cat ~/.ssh/id";
        let output = fixture.run(&options, script);
        assert_eq!(output.code, 0, "{kind}: {output:?}");
    }
    let fixture = Fixture::new(User::Own);
    let output = fixture.run(&["--kind", BUBBLEWRAP, "--read-only", "src"], "echo x > src/main.txt");
    assert_eq!(output.code, 1, "{output:?}");
    let output = fixture.run(&["--write", "/"], "echo ran");
    assert_eq!((output.code, &*output.stdout), (125, ""), "{output:?}");
}

/// The programs that may read hidden files, each in a shell of its own.
const WAYS_TO_HIDDEN: [&str; 15] = [
    "private/run SECRET",
    "cat private/deep/key .env",
    "tar -cf - . | tar -xOf -",
    "find . -type f -exec cat {} +",
    "cat /proc/self/root$PWD/private/deep/key /proc/self/cwd/.env",
    "ln -s private s; cat s/deep/key; rm s",
    "mv private renamed; cat renamed/deep/key",
    "mv private/deep renamed; cat renamed/key",
    "mv private/deep/key key; cat key",
    "mv private src/private; cat src/private/deep/key",
    "mv .env src/env; cat src/env",
    "ln .env env; cat env",
    "mkdir new; ln .env new/env; ln private/deep/key src/key; cat new/env src/key",
    "cp -a private copy; cat copy/deep/key",
    "perl -e 'rename \".env\", \"other\"; link \".env\", \"another\"; open F, \"other\" and print <F>'",
];

#[test]
fn what_is_hidden_in_the_workspace_is_seen_by_no_command_and_by_none_after_it() {
    for kind in KINDS {
        for user in User::all() {
            let fixture = Fixture::new(user);
            std::fs::create_dir_all(fixture.path("ws/private/deep")).unwrap();
            for name in ["ws/private/deep/key", "ws/.env"] {
                std::fs::write(fixture.path(name), fixture::SECRET).unwrap();
            }
            // A program can be run without being read.
            std::fs::copy("/bin/echo", fixture.path("ws/private/run")).unwrap();
            if user == User::Nobody {
                fixture::give(&fixture.path("ws"));
            }
            let options = ["--kind", kind, "--hide", "private", "--hide", ".env"];
            for way in WAYS_TO_HIDDEN {
                let output = fixture.run(&options, way);
                assert!(!output.stdout.contains(fixture::SECRET), "{kind} {user:?} {way}: {output:?}");
                assert_ne!(output.code, 125, "{kind} {user:?} {way}: {output:?}");
                let after = fixture.run(&options, "tar -cf - . | tar -xOf -; cat env other another src/*");
                assert!(!after.stdout.contains(fixture::SECRET), "{kind} {user:?} after {way}: {after:?}");
            }
            let honest = "cat src/main.txt && echo more >> src/main.txt && echo new > src/new && mv src/new src/newer                           && cat src/newer && rm src/newer && mkdir src/d && rmdir src/d && echo made > made";
            let output = fixture.run(&options, honest);
            assert_eq!((output.code, &*output.stdout), (0, "text\nnew\n"), "{kind} {user:?}: {output:?}");
        }
    }
}

#[test]
fn the_home_folder_as_workspace_keeps_start_files_and_keys() {
    let mut fixture = Fixture::new(User::Own);
    let home = fixture.path("home");
    let options = ["--kind", BUBBLEWRAP, "--write", home.to_str().unwrap()];
    let script = "echo x > ~/note && rm ~/note; echo evil >> ~/.bashrc; mv ~/.ssh ~/x; mv ~/.config ~/x; cat ~/.ssh/id ~/.config/gcloud/key; echo evil > ~/.ssh/new";
    let output = fixture.run(&options, script);
    assert_eq!((output.code, &*output.stdout), (1, ""), "{output:?}");
    fixture.check(Outside::Untouched, "home");
}

#[test]
fn the_doctor_says_what_is_enforced() {
    let fixture = Fixture::new(User::Own);
    let output = fixture::collect(fixture.kode_ls(&["doctor", "--json"]).spawn().unwrap());
    assert_eq!(output.code, 0, "{output:?}");
    let findings: serde_json::Value = serde_json::from_str(&output.stdout).unwrap();
    let sandbox = &findings["sandbox"];
    assert_eq!(
        (&sandbox["kind"], &sandbox["why"]),
        (&"bubblewrap".into(), &serde_json::Value::Null),
        "{findings}"
    );
    let path = sandbox["bubblewrap"]["path"].as_str().unwrap();
    assert!(path.starts_with('/') && path.ends_with("/bwrap"), "{findings}");
    let ssh = fixture.path("home/.ssh");
    assert!(
        sandbox["hidden"].as_array().unwrap().iter().any(|place| place == ssh.to_str().unwrap()),
        "{findings}"
    );
    let output = fixture::collect(fixture.kode_ls(&["doctor"]).spawn().unwrap());
    assert!(output.code == 0 && output.stdout.contains("bubblewrap"), "{output:?}");
}
