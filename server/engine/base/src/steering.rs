//! Files that steer other programs: editors, shells, git and agents run or obey what such a file says.
//!
//! Rule: one table for the permission gate and the sandbox. A name is compared without regard to letter case, because some
//! file systems ignore it.

use std::ffi::OsStr;
use std::path::Path;

/// The folder, or the file that names the folder, in which git keeps a repository's own data.
pub const GIT: &str = ".git";

/// Names that steer programs in whichever folder they lie.
const NAMES: [&str; 63] = [
    GIT,
    ".gitmodules",
    ".gitconfig",
    ".pre-commit-config.yaml",
    ".husky",
    "lefthook.yml",
    "lefthook.yaml",
    "lefthook.json",
    "lefthook.toml",
    ".lefthook.yml",
    ".lefthook.yaml",
    ".lefthook.json",
    ".lefthook.toml",
    ".vscode",
    ".idea",
    ".zed",
    ".fleet",
    ".devcontainer",
    ".devcontainer.json",
    ".exrc",
    ".nvimrc",
    ".nvim.lua",
    ".vimrc",
    ".dir-locals.el",
    ".envrc",
    ".npmrc",
    ".yarnrc",
    ".yarnrc.yml",
    ".pnpmfile.cjs",
    ".ripgreprc",
    ".kode",
    ".kode.json",
    ".kode-ls",
    ".claude",
    ".claude.json",
    ".blade",
    ".cursor",
    ".windsurf",
    ".codex",
    ".gemini",
    ".qwen",
    ".opencode",
    "opencode.json",
    "opencode.jsonc",
    ".kiro",
    ".roo",
    ".aider.conf.yml",
    ".mcp.json",
    ".mcprc",
    ".bashrc",
    ".bash_profile",
    ".bash_login",
    ".bash_logout",
    ".bash_aliases",
    ".profile",
    ".zshrc",
    ".zshenv",
    ".zprofile",
    ".zlogin",
    ".zlogout",
    ".inputrc",
    ".xinitrc",
    ".xprofile",
];

/// Files that keep others from agents, in the syntax of `.gitignore`: kode-ls obeys each of them.
pub const IGNORE_FILES: [&str; 5] =
    [".aiignore", ".codexignore", ".claudeignore", ".cursorignore", ".geminiignore"];

/// Ends of names that steer programs in whichever folder they lie.
const SUFFIXES: [&str; 1] = [".code-workspace"];

/// Places below the home folder that steer programs there.
pub const AT_HOME: [&str; 20] = [
    ".config/fish",
    ".config/zsh",
    ".config/git",
    ".config/nvim",
    ".config/helix",
    ".config/autostart",
    ".config/systemd",
    ".config/environment.d",
    ".config/kode-ls",
    ".pam_environment",
    ".tmux.conf",
    ".emacs",
    ".emacs.d",
    "Library/LaunchAgents",
    "Library/Services",
    "Library/Application Scripts",
    "Library/Application Support/Code/User",
    "Library/Application Support/Code - Insiders/User",
    "Library/Application Support/VSCodium/User",
    "Library/Application Support/Cursor/User",
];

/// Folders of dependencies and build results. No program is opened in them, so that in them only repositories steer one.
const OF_DEPENDENCIES: [&str; 5] = ["node_modules", "target", ".venv", "__pycache__", ".tox"];

/// The names of files and folders that steer programs in whichever folder they lie, but for [`GIT`]; letter case does not matter.
pub fn names() -> impl Iterator<Item = &'static str> {
    NAMES.iter().chain(&IGNORE_FILES).copied().filter(|name| *name != GIT)
}

/// The ends of such names; letter case does not matter.
pub fn suffixes() -> impl Iterator<Item = &'static str> {
    SUFFIXES.iter().copied()
}

/// The names of folders of dependencies and build results.
pub fn dependencies() -> impl Iterator<Item = &'static str> {
    OF_DEPENDENCIES.iter().copied()
}

/// Whether a file or folder of that name steers programs in whichever folder it lies.
#[must_use]
pub fn is_steering(name: &OsStr) -> bool {
    let is = |other: &&str| name.eq_ignore_ascii_case(other);
    NAMES.iter().any(is)
        || is_ignore_file(name)
        || SUFFIXES.iter().any(|suffix| {
            let (name, suffix) = (name.as_encoded_bytes(), suffix.as_bytes());
            let end = name.len().checked_sub(suffix.len()).and_then(|start| name.get(start..));
            end.is_some_and(|end| end.eq_ignore_ascii_case(suffix))
        })
}

/// Whether a name is that of a file that keeps others from agents.
#[must_use]
pub fn is_ignore_file(name: &OsStr) -> bool {
    IGNORE_FILES.iter().any(|other| name.eq_ignore_ascii_case(other))
}

/// Whether a name is that of a repository's own data.
#[must_use]
pub fn is_repository(name: &OsStr) -> bool {
    name.eq_ignore_ascii_case(GIT)
}

/// Whether a folder of that name holds dependencies or build results.
#[must_use]
pub fn holds_dependencies(name: &OsStr) -> bool {
    OF_DEPENDENCIES.iter().any(|other| name == *other)
}

/// The place of [`AT_HOME`] that a path is or lies in.
#[must_use]
pub fn place_at_home(path: &Path, home: &Path) -> Option<&'static str> {
    let below = path.strip_prefix(home).ok()?;
    let lies_in = |place: &&&str| {
        let mut parts = below.components();
        Path::new(place).components().all(|part| {
            parts.next().is_some_and(|own| own.as_os_str().eq_ignore_ascii_case(part.as_os_str()))
        })
    };
    AT_HOME.iter().find(lies_in).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_compared_without_letter_case() {
        for name in [".git", ".GIT", ".VSCode", "App.code-workspace", ".MCP.json", ".bashrc", ".AIignore"] {
            assert!(is_steering(OsStr::new(name)), "{name}");
        }
        for name in ["git", ".gitignore", "code-workspace", ".vscode2", "README.md", ""] {
            assert!(!is_steering(OsStr::new(name)), "{name}");
        }
    }

    #[test]
    fn places_at_home_cover_what_lies_in_them() {
        let home = Path::new("/home/u");
        assert_eq!(place_at_home(Path::new("/home/u/.config/fish/config.fish"), home), Some(".config/fish"));
        assert_eq!(place_at_home(Path::new("/home/u/.config/FISH"), home), Some(".config/fish"));
        assert_eq!(place_at_home(Path::new("/home/u/.config/fishes"), home), None);
        assert_eq!(place_at_home(Path::new("/w/.config/fish"), home), None);
        let agent = Path::new("/home/u/library/launchagents/x.plist");
        assert_eq!(place_at_home(agent, home), Some("Library/LaunchAgents"));
    }
}
