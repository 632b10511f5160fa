//! Places that no command and no tool may see: keys, credentials and histories at the places where programs keep them.
//!
//! Rule: one table for the permission gate and the sandbox. It names places, whether something is there or not; a place below
//! a folder that the user works in is hidden all the same.

use crate::paths::AbsPath;

/// Below the home folder: keys and credentials of programs.
const CREDENTIALS: [&str; 100] = [
    ".ssh",
    ".gnupg",
    ".local/share/gnupg",
    ".pki",
    ".step",
    ".config/sops",
    ".config/age",
    ".age",
    ".password-store",
    ".lastpass",
    ".config/Bitwarden",
    ".config/Bitwarden CLI",
    ".config/1Password",
    ".config/op",
    ".config/keepassxc",
    ".local/share/keyrings",
    ".local/share/kwalletd",
    ".aws",
    ".azure",
    ".oci",
    ".aliyun",
    ".config/gcloud",
    ".config/doctl",
    ".config/hcloud",
    ".config/scw",
    ".config/linode-cli",
    ".config/heroku",
    ".config/netlify",
    ".netlify",
    ".config/vercel",
    ".vercel",
    ".local/share/com.vercel.cli",
    ".fly",
    ".config/stripe",
    ".config/ngrok",
    ".ngrok2",
    ".databricks",
    ".databrickscfg",
    ".snowsql",
    ".dbt",
    ".kaggle",
    ".config/wandb",
    ".pulumi",
    ".terraform.d/credentials.tfrc.json",
    ".terraformrc",
    ".vault-token",
    ".doppler",
    ".kube",
    ".config/argocd",
    ".config/helm",
    ".docker",
    ".config/containers/auth.json",
    ".config/gh",
    ".config/glab-cli",
    ".config/hub",
    ".config/rclone",
    ".config/git/credentials",
    ".git-credentials",
    ".netrc",
    ".npmrc",
    ".yarnrc.yml",
    ".pypirc",
    ".config/pip",
    ".config/pypoetry",
    ".cargo/credentials",
    ".cargo/credentials.toml",
    ".gem/credentials",
    ".bundle/config",
    ".m2/settings.xml",
    ".m2/settings-security.xml",
    ".gradle/gradle.properties",
    ".ivy2/.credentials",
    ".sbt/credentials",
    ".nuget/NuGet/NuGet.Config",
    ".composer/auth.json",
    ".pgpass",
    ".my.cnf",
    ".s3cfg",
    ".boto",
    ".cache/huggingface/token",
    ".huggingface",
    ".local/share/jupyter/runtime",
    ".bitcoin",
    ".ethereum",
    ".electrum",
    ".monero",
    ".config/solana",
    ".mozilla",
    ".thunderbird",
    ".config/google-chrome",
    ".config/chromium",
    ".config/BraveSoftware",
    ".config/microsoft-edge",
    ".config/vivaldi",
    ".config/Signal",
    ".config/Slack",
    ".config/discord",
    ".config/kode-ls",
    ".local/state/kode-ls",
    ".local/share/kode-ls",
];

/// Below the home folder: what users have typed into shells and databases.
const HISTORIES: [&str; 15] = [
    ".bash_history",
    ".zsh_history",
    ".zhistory",
    ".histfile",
    ".sh_history",
    ".local/share/fish/fish_history",
    ".python_history",
    ".node_repl_history",
    ".psql_history",
    ".mysql_history",
    ".sqlite_history",
    ".rediscli_history",
    ".lesshst",
    ".viminfo",
    ".local/state/bash/history",
];

/// Below the home folder: settings, keys and transcripts of agents and editors.
const OF_AGENTS: [&str; 33] = [
    ".kode",
    ".kode.json",
    ".kode-ls",
    ".config/kode-ls",
    ".claude",
    ".claude.json",
    ".claude.json.backup",
    ".blade",
    ".codex",
    ".gemini",
    ".qwen",
    ".copilot",
    ".config/github-copilot",
    ".config/opencode",
    ".local/share/opencode",
    ".config/goose",
    ".config/amp",
    ".local/share/amp",
    ".config/anthropic",
    ".anthropic",
    ".config/openai",
    ".openai",
    ".config/io.datasette.llm",
    ".continue",
    ".codeium",
    ".aider.conf.yml",
    ".config/Code/User/globalStorage",
    ".config/Code - Insiders/User/globalStorage",
    ".config/VSCodium/User/globalStorage",
    ".config/Cursor/User/globalStorage",
    ".vscode-server/data/User/globalStorage",
    ".local/share/code-server/User/globalStorage",
    ".cursor",
];

/// The folders of agents whose skills, commands and instructions are seen nevertheless.
const AGENTS: [&str; 5] = [".kode", ".kode-ls", ".config/kode-ls", ".claude", ".blade"];

/// The visible files of these folders: they are written for models.
const SHOWN: [&str; 11] = [
    "skills",
    "commands",
    "agents",
    "plugins",
    "output-styles",
    "rules",
    "agent-memory",
    "AGENTS.md",
    "CLAUDE.md",
    "KODE.md",
    "BLADE.md",
];

/// Of the system itself; a server that runs as root could read them.
const OF_THE_SYSTEM: [&str; 6] =
    ["/etc/shadow", "/etc/shadow-", "/etc/gshadow", "/etc/gshadow-", "/etc/ssl/private", "/etc/krb5.keytab"];

/// The places that are hidden from commands: those of the user, of the system, and the product's own `state` folder.
#[must_use]
pub fn places(home: Option<&AbsPath>, state: &AbsPath) -> Vec<AbsPath> {
    let at_home = CREDENTIALS.iter().chain(&HISTORIES).chain(&OF_AGENTS);
    let of_the_user = home.into_iter().flat_map(|home| at_home.clone().map(|place| home.join(place)));
    let of_the_system = OF_THE_SYSTEM.iter().filter_map(|place| AbsPath::new(place).ok());
    of_the_user.chain(of_the_system).chain([state.clone()]).collect()
}

/// The places in hidden ones that are seen nevertheless.
#[must_use]
pub fn shown(home: Option<&AbsPath>) -> Vec<AbsPath> {
    let of = |home: &AbsPath| {
        let folders = AGENTS.map(|folder| home.join(folder));
        folders.into_iter().flat_map(|folder| SHOWN.map(|name| folder.join(name))).collect::<Vec<_>>()
    };
    home.map(of).unwrap_or_default()
}
