//! The twenty policies of the golden files.
//!
//! Rule: a case begins as a policy of the product, and goes the way that every policy goes; only the disk is one of ours.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use kode_base::paths::AbsPath;

use super::language::ReadPolicy;
use crate::sandbox::guard::{GuardSurvey, GuardedPath};
use crate::sandbox::helper::places::{PathLookup, PolicyPaths};
use crate::sandbox::policy::{InputMode, Network, ResourceLimits, SandboxKind, SandboxPolicy};
use crate::sandbox::seatbelt::{SeatbeltAccess, SeatbeltNetwork, SeatbeltProfile};

/// A disk of a Mac: the links of its system, and everything but missing paths.
struct Disk<'a> {
    links: &'a [(String, String)],
}

/// Links of every Mac, and one that leads astray.
const LINKS: [(&str, &str); 4] = [
    ("/tmp/link-to-users", "/Users"),
    ("/tmp", "/private/tmp"),
    ("/var", "/private/var"),
    ("/etc", "/private/etc"),
];
const MISSING: &str = "/Users/ada/missing";

impl PathLookup for Disk<'_> {
    fn real(&self, path: &Path) -> io::Result<PathBuf> {
        if path.starts_with(MISSING) {
            return Err(io::ErrorKind::NotFound.into());
        }
        let own = self.links.iter().map(|(from, to)| (from.as_str(), to.as_str()));
        for (from, to) in own.chain(LINKS) {
            if let Ok(rest) = path.strip_prefix(from) {
                return Ok(Path::new(to).join(rest).components().collect());
            }
        }
        Ok(path.to_path_buf())
    }

    fn is_folder(&self, _path: &Path) -> bool {
        true
    }
}

/// A policy with the findings on the disk.
#[derive(Clone, Debug)]
pub(in crate::sandbox::seatbelt) struct Case {
    pub(super) name: &'static str,
    /// Its purpose.
    pub(super) about: &'static str,
    pub(super) writable: Vec<String>,
    pub(super) read_only: Vec<String>,
    pub(super) hidden: Vec<String>,
    pub(super) shown: Vec<String>,
    pub(super) home: Option<String>,
    pub(super) links: Vec<(String, String)>,
    pub(super) survey: GuardSurvey,
    pub(super) access: SeatbeltAccess,
}

impl Case {
    fn policy(&self) -> SandboxPolicy {
        let paths = |paths: &[String]| paths.iter().map(|path| AbsPath::new(path).unwrap()).collect();
        SandboxPolicy {
            kind: SandboxKind::Seatbelt,
            writable: paths(&self.writable),
            scratch: AbsPath::new("/tmp/kode/tmp").unwrap(),
            read_only: paths(&self.read_only),
            hidden: paths(&self.hidden),
            shown: paths(&self.shown),
            home: self.home.as_ref().map(|home| AbsPath::new(home).unwrap()),
            network: Network::Off,
            limits: ResourceLimits::default(),
            input: InputMode::None,
            variables: BTreeMap::new(),
            lasting: false,
        }
    }

    pub(super) fn places(&self) -> io::Result<PolicyPaths> {
        PolicyPaths::on(&self.policy(), &Disk { links: &self.links })
    }

    pub(super) fn profile(&self) -> SeatbeltProfile {
        let places = self.places().unwrap();
        let held = places.held_on(&self.survey, &Disk { links: &self.links });
        SeatbeltProfile::of(&places, &self.survey, &held, self.access)
    }

    /// The policy, read again.
    pub(super) fn read(&self) -> ReadPolicy {
        let profile = self.profile();
        ReadPolicy::read(profile.text(), profile.parameters())
            .unwrap_or_else(|fault| panic!("{}: {fault}\n{}", self.name, profile.text()))
    }

    fn found(mut self, paths: &[(&str, GuardedPath)]) -> Self {
        let paths = paths.iter().map(|(path, guarded)| (PathBuf::from(path), guarded.clone()));
        self.survey.found.extend(paths);
        self
    }

    fn repositories(mut self, paths: &[&str]) -> Self {
        self.survey.repositories.extend(paths.iter().map(PathBuf::from));
        self
    }

    fn absent(mut self, paths: &[&str]) -> Self {
        self.survey.absent.extend(paths.iter().map(PathBuf::from));
        self
    }

    fn keeps(mut self, paths: &[&str]) -> Self {
        self.survey.hidden.extend(paths.iter().map(PathBuf::from));
        self
    }
}

fn owned(paths: &[&str]) -> Vec<String> {
    paths.iter().map(|path| (*path).to_owned()).collect()
}

/// A workspace without anything special.
pub(super) fn base() -> Case {
    Case {
        name: "base",
        about: "",
        writable: owned(&["/Users/ada/app"]),
        read_only: Vec::new(),
        hidden: Vec::new(),
        shown: Vec::new(),
        home: Some("/Users/ada".to_owned()),
        links: Vec::new(),
        survey: GuardSurvey::default(),
        access: SeatbeltAccess { network: SeatbeltNetwork::Off, refuses_names: true },
    }
}

fn of(name: &'static str, about: &'static str) -> Case {
    Case { name, about, ..base() }
}

/// The case of a name.
pub(super) fn case(name: &str) -> Case {
    cases().into_iter().find(|case| case.name == name).unwrap()
}

const SECRETS: [&str; 3] = ["/Users/ada/.ssh", "/Users/ada/.aws", "/Users/ada/.netrc"];

/// All of them.
pub(super) fn cases() -> Vec<Case> {
    let reaching = |network| SeatbeltAccess { network, refuses_names: true };
    let mut cases = vec![
        of("offline", "A workspace without the network."),
        Case { writable: Vec::new(), ..of("read-only", "The profile that writes temporary files alone.") },
        Case {
            access: reaching(SeatbeltNetwork::Proxy(49152)),
            ..of("hosts", "Listed hosts, through the proxy.")
        },
        Case { access: reaching(SeatbeltNetwork::On), ..of("network", "All of the network.") },
        Case { hidden: owned(&SECRETS), ..of("secrets", "Keys at home are hidden.") },
        Case {
            hidden: owned(&["/Users/ada/.claude", "/Users/ada/.kode"]),
            shown: owned(&["/Users/ada/.claude/skills", "/Users/ada/.kode/commands"]),
            ..of("shown-skills", "Skills in hidden folders of agents are seen.")
        },
        of("git-absent", "No guarded file is there yet; settings of git name hooks that are not there.")
            .absent(&["/Users/ada/app/tools/hooks"]),
        Case {
            writable: owned(&["/Users/ada/app", "/Users/ada/.npm", "/Volumes/data"]),
            ..of("extra-folders", "Further folders to write in, at other depths.")
        },
        Case {
            read_only: owned(&["/Users/ada/app/vendor", "/Users/ada/elsewhere"]),
            ..of("deny-write", "Folders of the workspace that settings make read-only.")
        },
        Case {
            access: SeatbeltAccess { network: SeatbeltNetwork::Off, refuses_names: false },
            ..of("checkout", "Git as the server runs it makes the files of a commit.")
        }
        .repositories(&["/Users/ada/app/.git"])
        .found(&[("/Users/ada/app/.git/config", GuardedPath::File)]),
    ];
    cases.extend(cases_of_repositories());
    cases.extend(cases_of_names());
    cases
}

fn cases_of_repositories() -> Vec<Case> {
    vec![
        of("git-present", "A repository with hooks, settings, a submodule and another repository in it.")
            .repositories(&[
                "/Users/ada/app/.git",
                "/Users/ada/app/.git/modules/lib",
                "/Users/ada/app/lib/.git",
            ])
            .found(&[
                ("/Users/ada/app/.git/config", GuardedPath::File),
                ("/Users/ada/app/.git/hooks", GuardedPath::Folder),
                ("/Users/ada/app/.git/info", GuardedPath::Folder),
                ("/Users/ada/app/.git/modules/lib/config", GuardedPath::File),
                ("/Users/ada/app/lib/.git/config", GuardedPath::File),
                ("/Users/ada/app/.husky", GuardedPath::Folder),
            ]),
        of("worktree", "A linked worktree, whose repository lies outside.")
            .found(&[("/Users/ada/app/.git", GuardedPath::File)]),
        of("bare", "A folder that is a repository by its content.")
            .repositories(&["/Users/ada/app/mirror.git"])
            .found(&[("/Users/ada/app/mirror.git/config", GuardedPath::File)]),
        Case {
            links: vec![("/Users/ada/app/.envrc".to_owned(), "/Users/ada/app/env/main".to_owned())],
            ..of("links", "A link that steers programs, and its target.")
        }
        .found(&[("/Users/ada/app/.envrc", GuardedPath::Link(PathBuf::from("env/main")))]),
    ]
}

fn cases_of_names() -> Vec<Case> {
    vec![
        Case {
            writable: owned(&["/Users/ada/app", "/Users/ada/app/vault/shared"]),
            hidden: owned(&["/Users/ada/app/vault", "/Users/ada/app/vault/shared/own"]),
            ..of("nested-hidden", "Hidden within writable within hidden within writable.")
        }
        .keeps(&["/Users/ada/app/.env"]),
        Case {
            writable: owned(&["/Users/ada/.kode/worktrees/w"]),
            hidden: owned(&["/Users/ada/.kode"]),
            ..of("state-worktree", "A worktree in a folder that is hidden and named like a guarded one.")
        }
        .found(&[("/Users/ada/.kode/worktrees/w/.git", GuardedPath::File)]),
        Case {
            writable: owned(&["/Users/ada"]),
            hidden: owned(&SECRETS),
            ..of("home", "The home folder as the workspace.")
        }
        .found(&[("/Users/ada/.zshrc", GuardedPath::File)]),
        Case {
            writable: owned(&["/Users/ada/it's \"(odd)\"\\\n)(allow default) äπ🦀"]),
            hidden: owned(&["/Users/ada/it's \"(odd)\"\\\n)(allow default) äπ🦀/#\"secret\""]),
            ..of(
                "odd-names",
                "Paths with quotation marks, parentheses, backslashes, line breaks and letters of all kinds.",
            )
        },
        Case {
            writable: owned(&["/tmp/work", "/var/data"]),
            hidden: owned(&["/etc/master.passwd", "/Users/ada/missing/key"]),
            ..of(
                "links-of-the-system",
                "Paths below links of the system, by where they lead; a missing one is left out.",
            )
        },
        Case { home: None, ..of("no-home", "A folder that cannot be read, and no home.") }
            .found(&[("/Users/ada/app/closed", GuardedPath::Unreadable)]),
    ]
}
