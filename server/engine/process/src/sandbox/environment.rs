//! Which variables a command in the sandbox keeps.
//!
//! Rule: a list of what is kept, never one of what is dropped; nothing that loads code into programs is on it.

/// Names that are kept.
const KEPT: [&str; 54] = [
    "PATH",
    "HOME",
    "PWD",
    "LANG",
    "LANGUAGE",
    "TERM",
    "COLORTERM",
    "NO_COLOR",
    "CLICOLOR",
    "FORCE_COLOR",
    "COLUMNS",
    "LINES",
    "TZ",
    "USER",
    "LOGNAME",
    "SHELL",
    "HOSTNAME",
    "PAGER",
    "GIT_PAGER",
    "GIT_TERMINAL_PROMPT",
    "CI",
    "MAKEFLAGS",
    "CARGO_HOME",
    "CARGO_TARGET_DIR",
    "CARGO_BUILD_JOBS",
    "RUSTUP_HOME",
    "RUSTUP_TOOLCHAIN",
    "RUST_BACKTRACE",
    "GOPATH",
    "GOROOT",
    "GOMODCACHE",
    "GOCACHE",
    "GOFLAGS",
    "JAVA_HOME",
    "MAVEN_HOME",
    "GRADLE_HOME",
    "GRADLE_USER_HOME",
    "ANDROID_HOME",
    "NVM_DIR",
    "NODE_ENV",
    "NODE_PATH",
    "NODE_EXTRA_CA_CERTS",
    "PNPM_HOME",
    "BUN_INSTALL",
    "DENO_DIR",
    "VOLTA_HOME",
    "PYENV_ROOT",
    "PYTHONPATH",
    "VIRTUAL_ENV",
    "CONDA_PREFIX",
    "RBENV_ROOT",
    "GEM_HOME",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
];

/// Beginnings of names that are kept.
const KEPT_PREFIXES: [&str; 2] = ["LC_", "XDG_CACHE_"];

/// Whether a command in the sandbox keeps the variable of that name. `TMPDIR` is set to its own folder.
#[must_use]
pub fn keeps(name: &str) -> bool {
    KEPT.contains(&name) || KEPT_PREFIXES.iter().any(|prefix| name.starts_with(prefix))
}

#[cfg(test)]
mod tests {
    use super::keeps;

    #[test]
    fn what_programs_need_is_kept_and_keys_and_preloads_are_not() {
        for name in ["PATH", "HOME", "LC_ALL", "CARGO_HOME", "JAVA_HOME"] {
            assert!(keeps(name), "{name}");
        }
        for name in [
            "ANTHROPIC_API_KEY",
            "OPENAI_API_KEY",
            "GITHUB_TOKEN",
            "AWS_SECRET_ACCESS_KEY",
            "KODE_LS_HOME",
            "LD_PRELOAD",
            "LD_LIBRARY_PATH",
            "BASH_ENV",
            "ENV",
            "PROMPT_COMMAND",
            "NODE_OPTIONS",
            "GIT_SSH_COMMAND",
            "SSH_AUTH_SOCK",
            "DBUS_SESSION_BUS_ADDRESS",
            "DISPLAY",
            "EDITOR",
            "path",
            "",
        ] {
            assert!(!keeps(name), "{name}");
        }
    }
}
