//! Filters of the environment that commands inherit, in the sandbox and outside of it.
//!
//! Rule: no inherited key of a model provider reaches a command, and no variable that loads code into programs. In the sandbox
//! the filter lists the names that pass; outside it lists the names that do not, since commands there act for the user, with the
//! user's agents and sessions.

/// Names of terminal and language, which are kept and mean the same on every machine.
const PORTABLE: [&str; 14] = [
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
    "PAGER",
    "GIT_PAGER",
    "GIT_TERMINAL_PROMPT",
    "CI",
];

/// The beginning of further such names.
const PORTABLE_PREFIX: &str = "LC_";

/// Other names that are kept: folders and programs of this machine.
const KEPT: [&str; 40] = [
    "PATH",
    "HOME",
    "PWD",
    "USER",
    "LOGNAME",
    "SHELL",
    "HOSTNAME",
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

/// The beginning of further such names.
const KEPT_PREFIX: &str = "XDG_CACHE_";

/// The server's own variables and those of loaders, by the beginnings of their names.
const WITHHELD_PREFIXES: [&str; 5] = ["KODE_LS_", "LD_", "DYLD_", "BASH_FUNC_", "GLIBC_TUNABLES"];

/// The ends of names of keys that model providers and their gateways use.
const WITHHELD_SUFFIXES: [&str; 4] = ["_API_KEY", "_API_TOKEN", "_AUTH_TOKEN", "_BEARER_TOKEN"];

/// Other keys of model providers and collectors, and variables that name code which programs load when they start.
const WITHHELD: [&str; 26] = [
    "AWS_BEARER_TOKEN_BEDROCK",
    "HF_TOKEN",
    "HUGGING_FACE_HUB_TOKEN",
    "REPLICATE_TOKEN",
    "ANTHROPIC_CUSTOM_HEADERS",
    "OTEL_EXPORTER_OTLP_HEADERS",
    "OTEL_EXPORTER_OTLP_TRACES_HEADERS",
    "OTEL_EXPORTER_OTLP_METRICS_HEADERS",
    "BASH_ENV",
    "ENV",
    "SHELLOPTS",
    "BASHOPTS",
    "PS4",
    "PROMPT_COMMAND",
    "ZDOTDIR",
    "NODE_OPTIONS",
    "PYTHONSTARTUP",
    "PYTHONINSPECT",
    "PERL5OPT",
    "PERL5DB",
    "RUBYOPT",
    "JAVA_TOOL_OPTIONS",
    "_JAVA_OPTIONS",
    "JDK_JAVA_OPTIONS",
    "GIT_EXEC_PATH",
    "GIT_TEMPLATE_DIR",
];

/// Whether a command outside the sandbox, or an MCP server, inherits the variable. `env` of the settings can still set it.
pub(crate) fn inherits(name: &str) -> bool {
    !WITHHELD.contains(&name)
        && !WITHHELD_PREFIXES.iter().any(|prefix| name.starts_with(prefix))
        && !WITHHELD_SUFFIXES.iter().any(|suffix| name.ends_with(suffix))
}

/// Whether a command in the sandbox keeps the variable of that name. `TMPDIR` is set to its own folder.
#[must_use]
pub fn keeps(name: &str) -> bool {
    is_portable(name) || KEPT.contains(&name) || name.starts_with(KEPT_PREFIX)
}

/// Whether a kept variable means the same in a container.
#[must_use]
pub(crate) fn is_portable(name: &str) -> bool {
    PORTABLE.contains(&name) || name.starts_with(PORTABLE_PREFIX)
}

/// Variables by which the clients of container engines and clusters find their servers.
#[cfg(any(target_os = "linux", target_os = "macos"))]
const OF_LAUNCHERS: [&str; 10] = [
    "XDG_RUNTIME_DIR",
    "DBUS_SESSION_BUS_ADDRESS",
    "DOCKER_HOST",
    "DOCKER_CONTEXT",
    "DOCKER_CONFIG",
    "DOCKER_CERT_PATH",
    "DOCKER_TLS_VERIFY",
    "CONTAINER_HOST",
    "CONTAINERS_CONF",
    "KUBECONFIG",
];

/// Whether a launcher of commands gets the variable. The commands do not.
#[cfg(any(target_os = "linux", target_os = "macos"))]
#[must_use]
pub(crate) fn is_for_launcher(name: &str) -> bool {
    OF_LAUNCHERS.contains(&name)
}

#[cfg(test)]
mod tests {
    use super::{KEPT, PORTABLE, inherits, keeps};

    #[test]
    fn outside_the_sandbox_keys_of_models_and_loaders_are_withheld_and_the_users_own_names_pass() {
        for name in [
            "ANTHROPIC_API_KEY",
            "ANTHROPIC_AUTH_TOKEN",
            "OPENAI_API_KEY",
            "GEMINI_API_KEY",
            "GOOGLE_API_KEY",
            "AZURE_OPENAI_API_KEY",
            "AWS_BEARER_TOKEN_BEDROCK",
            "AI_GATEWAY_API_KEY",
            "HF_TOKEN",
            "OTEL_EXPORTER_OTLP_HEADERS",
            "KODE_LS_HOME",
            "LD_PRELOAD",
            "LD_AUDIT",
            "DYLD_INSERT_LIBRARIES",
            "BASH_ENV",
            "ENV",
            "BASH_FUNC_ls%%",
            "NODE_OPTIONS",
        ] {
            assert!(!inherits(name), "{name}");
        }
        for name in
            ["PATH", "SSH_AUTH_SOCK", "DISPLAY", "EDITOR", "AWS_PROFILE", "GITHUB_TOKEN", "ENVIRONMENT"]
        {
            assert!(inherits(name), "{name}");
        }
        assert!(
            KEPT.iter().chain(&PORTABLE).all(|name| inherits(name)),
            "the sandbox passes no more than there is outside"
        );
    }

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
