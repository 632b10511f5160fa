//! Attempts to print what commands must not see.

/// Files in the home folder that hold a secret.
pub(super) const PLACES: &[&str] = &[
    ".ssh/id_ed25519",
    ".aws/credentials",
    ".netrc",
    ".kode.json",
    ".kode/settings.json",
    ".kode-ls/settings.json",
    ".claude/settings.json",
    ".claude/.credentials.json",
    ".claude/projects/x/session.jsonl",
    ".claude.json",
    ".blade/config.json",
    ".config/github-copilot/hosts.json",
    ".gemini/oauth_creds.json",
    ".codex/auth.json",
    ".cache/huggingface/token",
    ".config/sops/age/keys.txt",
    ".bash_history",
    ".zsh_history",
    ".python_history",
    ".config/Code/User/globalStorage/state.vscdb",
    ".bitcoin/wallet.dat",
    ".local/share/keyrings/login.keyring",
    ".config/gh/hosts.yml",
    ".kube/config",
    ".docker/config.json",
    ".mozilla/firefox/x/logins.json",
];

/// How a command tries to print `$1`.
pub(super) const WAYS: &[&str] = &[
    "cat \"$1\"",
    "ln -s \"$1\" l; cat l",
    "ln \"$1\" l; cat l",
    "cd \"$(dirname \"$1\")\"; cat \"$(basename \"$1\")\"",
    "cat \"/proc/self/root$1\"",
    "tar -cf - \"$1\" | tar -xOf -",
    "find ~ -type f -exec cat {} +",
    "perl -e 'open F, $ARGV[0] and print <F>' \"$1\"",
];

/// Files of an agent that are made to be read.
pub(super) const SHOWN: &[&str] = &[".claude/skills/x/SKILL.md", ".kode/commands/x.md"];
