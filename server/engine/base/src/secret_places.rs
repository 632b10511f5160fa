//! What no command may see: keys and credentials at the places where programs keep them.
//!
//! Rule: the list names places, whether something is there or not; a place below a folder that the user works in is
//! hidden all the same.

use crate::paths::AbsPath;

/// Below the home folder.
const AT_HOME: [&str; 40] = [
    ".ssh",
    ".aws",
    ".azure",
    ".gnupg",
    ".kube",
    ".docker",
    ".password-store",
    ".config/gcloud",
    ".config/gh",
    ".config/glab-cli",
    ".config/hub",
    ".config/op",
    ".config/rclone",
    ".config/containers/auth.json",
    ".config/git/credentials",
    ".config/google-chrome",
    ".config/chromium",
    ".local/share/keyrings",
    ".mozilla",
    ".thunderbird",
    ".netrc",
    ".npmrc",
    ".pypirc",
    ".git-credentials",
    ".cargo/credentials",
    ".cargo/credentials.toml",
    ".gem/credentials",
    ".m2/settings.xml",
    ".m2/settings-security.xml",
    ".composer/auth.json",
    ".terraform.d/credentials.tfrc.json",
    ".vault-token",
    ".pgpass",
    ".my.cnf",
    ".s3cfg",
    ".boto",
    ".claude/.credentials.json",
    ".codex/auth.json",
    ".local/share/opencode/auth.json",
    ".config/kode-ls",
];

/// Of the system itself; a server that runs as root could read them.
const OF_THE_SYSTEM: [&str; 6] =
    ["/etc/shadow", "/etc/shadow-", "/etc/gshadow", "/etc/gshadow-", "/etc/ssl/private", "/etc/krb5.keytab"];

/// The places that are hidden from commands: those of the user, of the system, and the product's own `state` folder.
#[must_use]
pub fn places(home: Option<&AbsPath>, state: &AbsPath) -> Vec<AbsPath> {
    let of_the_user = home.into_iter().flat_map(|home| AT_HOME.iter().map(|place| home.join(place)));
    let of_the_system = OF_THE_SYSTEM.iter().filter_map(|place| AbsPath::new(place).ok());
    of_the_user.chain(of_the_system).chain([state.clone()]).collect()
}
