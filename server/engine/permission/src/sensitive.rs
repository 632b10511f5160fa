//! Files that hold secrets or other people's data, by their names and places.
//!
//! Rule: a file of high sensitivity is refused to every tool in every mode, one of medium sensitivity is asked for even
//! where reading is free; only the user's own settings change the table, and nothing what a process keeps in memory.
//! What the sandbox hides from commands is high here too. Letter case does not matter.

use std::collections::HashSet;
use std::ffi::OsStr;
use std::path::Path;
use std::sync::{Arc, LazyLock};

use globset::{Glob, GlobBuilder, GlobSet, GlobSetBuilder};

use crate::rules::places::real_among;
use crate::rules::{Behavior, RuleSet, RuleSubject};
use kode_base::paths::{AbsPath, Target};
use kode_base::real_folders::RealFolders;

/// Keys, credentials and environments: with them an attacker can act as the user.
const HIGH: [&str; 53] = [
    ".env",
    ".env~",
    ".env.*",
    "*.pem",
    "*.key",
    "*.p12",
    "*.pfx",
    "*.jks",
    "*.keystore",
    "*.kdbx",
    "*.ppk",
    "id_rsa",
    "id_dsa",
    "id_ecdsa",
    "id_ed25519",
    "*.pem.bak",
    "*.pem~",
    "*.key.bak",
    "*.key~",
    "id_rsa.bak",
    "id_rsa~",
    "id_dsa.bak",
    "id_dsa~",
    "id_ecdsa.bak",
    "id_ecdsa~",
    "id_ed25519.bak",
    "id_ed25519~",
    ".netrc",
    "_netrc",
    ".pypirc",
    ".git-credentials",
    ".pgpass",
    ".my.cnf",
    ".htpasswd",
    "credentials",
    "credentials.json",
    "credentials.json.bak",
    ".credentials",
    ".credentials.json",
    ".vault-token",
    "credentials.toml",
    "service-account*.json",
    "client_secret*.json",
    ".ssh/**",
    ".gnupg/**",
    ".aws/**",
    ".config/gcloud/**",
    ".config/gh/hosts.yml",
    ".codex/auth.json",
    ".kube/config",
    ".docker/config.json",
    ".netrc.bak",
    ".git-credentials.bak",
];

/// Data and logs: often personal, seldom needed.
const MEDIUM: [&str; 6] = ["*.sqlite", "*.sqlite3", "*.db", "*.mdb", "*.log", ".npmrc"];

/// Files that look like secrets and are meant to be shown.
const HARMLESS: [&str; 6] =
    [".env.example", ".env.sample", ".env.template", ".env.dist", ".env.defaults", ".ssh/*.pub"];

/// The files of a process with its environment or memory, by their names in `/proc`.
const PROCESS_MEMORY: [&str; 3] = ["environ", "mem", "maps"];

/// How careful to be with a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sensitivity {
    /// Like any other file.
    None,
    /// Asked for even where reading is free.
    Medium,
    /// Refused.
    High,
}

impl Sensitivity {
    /// All of them with their names in settings.
    pub const ALL: [(&'static str, Self); 3] =
        [("none", Self::None), ("medium", Self::Medium), ("high", Self::High)];
}

/// The built-in table, made ready when it is needed first.
static HARMLESS_FILES: LazyLock<GlobSet> = LazyLock::new(|| table(&HARMLESS));
static HIGH_FILES: LazyLock<GlobSet> = LazyLock::new(|| table(&HIGH));
static MEDIUM_FILES: LazyLock<GlobSet> = LazyLock::new(|| table(&MEDIUM));

/// Which files are sensitive.
#[derive(Clone, Debug, Default)]
pub struct Sensitive {
    own: Option<RuleSet>,
    /// Folders and files that are refused with all that lies in them.
    places: PlaceSet,
    /// The harmless ones in them.
    shown: PlaceSet,
}

/// Folders and files, of which a path is asked for by each folder above it: there are hundreds, and each name of a listing is
/// judged. Letter case is ignored: on some file systems it is no difference.
#[derive(Clone, Debug, Default)]
struct PlaceSet(Arc<HashSet<Vec<u8>>>);

impl PlaceSet {
    /// These places, under these names and where they lead now.
    fn with_real(places: &[AbsPath]) -> Self {
        let mut folders = RealFolders::default();
        let folded = |place: &AbsPath| place.as_path().as_os_str().as_encoded_bytes().to_ascii_lowercase();
        let both = places.iter().flat_map(|place| [folded(place), folded(&real_among(place, &mut folders))]);
        Self(Arc::new(both.collect()))
    }

    /// Whether a path is one of them or lies in one.
    fn contains(&self, path: &AbsPath) -> bool {
        if self.0.is_empty() {
            return false;
        }
        let path = path.as_path();
        let folded = path.as_os_str().as_encoded_bytes().to_ascii_lowercase();
        path.ancestors().any(|above| {
            let place = folded.get(..above.as_os_str().len());
            place.is_some_and(|place| self.0.contains(place))
        })
    }
}

impl Sensitive {
    /// The built-in table with the user's own lines before it, as rules for reading: deny is high, ask is medium, allow
    /// is not one.
    #[must_use]
    pub fn with(own: RuleSet) -> Self {
        Self { own: Some(own), ..Self::default() }
    }

    /// The same table, in which these folders and files are of high sensitivity with all that lies in them but `shown`, under
    /// these names and where they lead now.
    #[must_use]
    pub fn guarding(self, places: &[AbsPath], shown: &[AbsPath]) -> Self {
        Self { places: PlaceSet::with_real(places), shown: PlaceSet::with_real(shown), ..self }
    }

    /// How careful to be with a file.
    #[must_use]
    pub fn of(&self, path: &AbsPath) -> Sensitivity {
        if is_process_memory(path.as_path()) {
            return Sensitivity::High;
        }
        let own = self.own.as_ref().and_then(|own| {
            let target = Target::File(path.clone());
            let subject = RuleSubject::Read { given: &target, real: &target };
            Behavior::ALL.into_iter().find(|behavior| own.find(*behavior, &subject).is_some())
        });
        match own {
            Some(Behavior::Deny) => return Sensitivity::High,
            Some(Behavior::Ask) => return Sensitivity::Medium,
            Some(Behavior::Allow) => return Sensitivity::None,
            None => {}
        }
        let in_place = || self.places.contains(path) && !self.shown.contains(path);
        let path = path.as_path();
        if HARMLESS_FILES.is_match(path) {
            Sensitivity::None
        } else if HIGH_FILES.is_match(path) || in_place() {
            Sensitivity::High
        } else if MEDIUM_FILES.is_match(path) {
            Sensitivity::Medium
        } else {
            Sensitivity::None
        }
    }
}

/// Whether a path shows the environment or the memory of a process: keys that were kept from commands are there.
fn is_process_memory(path: &Path) -> bool {
    let shows = |name: &OsStr| PROCESS_MEMORY.iter().any(|shown| name == *shown);
    path.starts_with("/proc") && path.components().count() > 3 && path.file_name().is_some_and(shows)
}

/// A glob for the end of a path, wherever the path begins.
fn anywhere(pattern: &str) -> Result<Glob, globset::Error> {
    let pattern = if pattern.starts_with('/') { pattern.to_owned() } else { format!("**/{pattern}") };
    GlobBuilder::new(&pattern).case_insensitive(true).literal_separator(true).build()
}

fn table(patterns: &[&str]) -> GlobSet {
    let mut set = GlobSetBuilder::new();
    for pattern in patterns {
        match anywhere(pattern) {
            Ok(glob) => {
                set.add(glob);
            }
            Err(error) => tracing::error!(pattern, %error, "a built-in pattern cannot be read"),
        }
    }
    set.build().unwrap_or_else(|error| {
        tracing::error!(%error, "the built-in table of sensitive files cannot be used");
        GlobSet::empty()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::{PathBases, PlacedRule, RuleSource, SettingsLayer};
    use kode_base::secret_places::{places, shown};

    fn level(path: &str) -> Sensitivity {
        Sensitive::default().of(&AbsPath::new(path).unwrap())
    }

    #[test]
    fn all_lines_of_the_built_in_table_can_be_read() {
        for pattern in HIGH.iter().chain(&MEDIUM).chain(&HARMLESS) {
            anywhere(pattern).unwrap();
        }
    }

    #[test]
    fn keys_and_credentials_are_high_and_data_is_medium() {
        for path in [
            "/w/.env",
            "/w/app/.ENV.production",
            "/w/tls/server.pem",
            "/home/u/.ssh/config",
            "/home/u/.ssh/keys/old",
            "/home/u/.aws/credentials",
            "/w/credentials.json",
            "/w/id_ed25519",
            "/w/.env~",
            "/w/.env.bak",
            "/w/id_rsa.bak",
            "/w/tls/server.pem.bak",
            "/home/u/.config/gh/hosts.yml",
            "/home/u/.codex/auth.json",
            "/home/u/.claude/.credentials.json",
            "/home/u/.vault-token",
            "/proc/self/environ",
            "/proc/1/mem",
            "/proc/1/task/1/maps",
        ] {
            assert_eq!(level(path), Sensitivity::High, "{path}");
        }
        for path in ["/w/app.sqlite", "/w/var/server.log", "/w/.npmrc"] {
            assert_eq!(level(path), Sensitivity::Medium, "{path}");
        }
        for path in
            ["/w/.env.example", "/w/src/env.rs", "/w/keyboard.rs", "/home/u/.ssh/id_rsa.pub", "/w/log.rs"]
        {
            assert_eq!(level(path), Sensitivity::None, "{path}");
        }
    }

    #[test]
    fn what_the_sandbox_hides_is_refused_whole() {
        let folder = tempfile::tempdir().unwrap();
        let home = AbsPath::new(kode_base::paths::real_path(folder.path()).unwrap()).unwrap();
        std::fs::create_dir_all(home.join("real/.kube").as_path()).unwrap();
        std::os::unix::fs::symlink("real/.kube", home.join(".kube").as_path()).unwrap();
        let state = home.join("state");
        let sensitive = Sensitive::default().guarding(&places(Some(&home), &state), &shown(Some(&home)));
        for name in [
            ".kube/cache/x",
            "real/.kube/cache/x",
            ".AZURE",
            "state/sessions/a",
            ".config/kode-ls/x",
            ".kode.json",
            ".kode/settings.json",
            ".claude/settings.json",
            ".claude/projects/x/y.jsonl",
            ".claude.json",
            ".blade/config.json",
            ".config/github-copilot/hosts.json",
            ".gemini/oauth_creds.json",
            ".cache/huggingface/token",
            ".config/sops/age/keys.txt",
            ".bash_history",
            ".config/Code/User/globalStorage/state.vscdb",
            ".bitcoin/wallet.dat",
        ] {
            assert_eq!(sensitive.of(&home.join(name)), Sensitivity::High, "{name}");
        }
        for name in [
            ".",
            "work/x",
            "states",
            "stat",
            "real/x",
            ".kube.old/x",
            ".claude/skills/pdf/SKILL.md",
            ".kode/commands/x.md",
        ] {
            assert_eq!(sensitive.of(&home.join(name)), Sensitivity::None, "{name}");
        }
    }

    #[test]
    fn the_users_own_lines_come_first() {
        let root = AbsPath::new("/w").unwrap();
        let line = |behavior, text: &str| PlacedRule {
            behavior,
            rule: text.parse().unwrap(),
            source: RuleSource { layer: SettingsLayer::User, file: None, place: None },
            root: Some(root.clone()),
        };
        let lines = vec![
            line(Behavior::Allow, "Read(*.log)"),
            line(Behavior::Deny, "Read(vault/)"),
            line(Behavior::Allow, "Read(.env.ci)"),
        ];
        let places =
            PathBases { cwd: &root, home: None, real: &Clone::clone, is_case_insensitive: &|_| false };
        let sensitive = Sensitive::with(RuleSet::new(lines, &places).0);
        let of = |path: &str| sensitive.of(&AbsPath::new(path).unwrap());
        assert_eq!(of("/w/a.log"), Sensitivity::None);
        assert_eq!(of("/w/vault/a/b"), Sensitivity::High);
        assert_eq!(of("/w/.env.ci"), Sensitivity::None);
        assert_eq!(of("/w/.env"), Sensitivity::High);
    }
}
