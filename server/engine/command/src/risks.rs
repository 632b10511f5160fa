//! Options that run programs, load code or write files, so that no prefix of a command says what it does.
//!
//! Rule: an option counts however it is written: short for a long one, in a cluster, with its value attached.

use super::wrappers::{is_shell, program};
use super::{CommandWord, builtins, git};

/// The risk of a program's command.
struct Risks {
    names: &'static [&'static str],
    /// Letters, in a cluster or with a value; in a cluster only letters before an option's value apply, but
    /// which letters take one is not known here: any place in the word does.
    letters: &'static [char],
    /// Long options, however far they are spelled out.
    long: &'static [&'static str],
    /// Beginnings of words that are neither: `SHELL=`, `-exec`.
    words: &'static [&'static str],
}

// One line for each program.
#[rustfmt::skip]
const RISKS: [Risks; 34] = [
    Risks { names: &["find"], letters: &[], long: &[], words: &["-exec", "-ok", "-delete", "-fprint", "-fls"] },
    Risks { names: &["fd", "fdfind"], letters: &['x', 'X'], long: &["exec", "exec-batch"], words: &[] },
    Risks { names: &["rg"], letters: &['z'], long: &["pre", "hostname-bin", "search-zip"], words: &[] },
    Risks { names: &["ag", "ack"], letters: &[], long: &["pager"], words: &[] },
    Risks { names: &["bat", "batcat"], letters: &[], long: &["pager"], words: &["cache"] },
    Risks { names: &["sort"], letters: &['o', 'T'], long: &["compress-program", "output", "files0-from", "temporary-directory"], words: &[] },
    Risks { names: &["split"], letters: &[], long: &["filter"], words: &[] },
    Risks { names: &["tar", "bsdtar", "gtar"], letters: &['I', 'F'], long: &["to-command", "use-compress-program", "checkpoint-action", "checkpoint", "info-script", "new-volume-script", "rsh-command", "rmt-command"], words: &[] },
    Risks { names: &["rsync"], letters: &['e', 'M'], long: &["rsh", "rsync-path", "remote-option"], words: &[] },
    Risks { names: &["scp", "sftp"], letters: &['S', 'o', 'F', 'D', 'J'], long: &[], words: &[] },
    Risks { names: &["perl", "ruby", "lua", "luajit"], letters: &['e', 'E', 'n', 'p', 'i', 'r', 'I', 'M', 'm', 'x', 'd', 'l'], long: &[], words: &[] },
    Risks { names: &["node", "deno", "bun"], letters: &['e', 'p', 'r'], long: &["eval", "print", "require", "import", "loader", "experimental-loader", "env-file", "preload", "config"], words: &["eval"] },
    Risks { names: &["php"], letters: &['r', 'B', 'R', 'E', 'd', 'c'], long: &["run", "define", "php-ini"], words: &[] },
    Risks { names: &["npm", "npx", "pnpm", "yarn", "bunx"], letters: &['c', 'C'], long: &["call", "node-options", "script-shell", "prefix", "userconfig", "globalconfig", "cwd", "dir", "use-yarnrc", "shell-mode"], words: &["exec", "dlx"] },
    Risks { names: &["cargo"], letters: &['C', 'Z'], long: &["config", "manifest-path", "target-dir", "artifact-dir", "out-dir", "lockfile-path"], words: &[] },
    Risks { names: &["rustc", "rustdoc", "clippy-driver"], letters: &['C', 'o', 'L'], long: &["codegen", "extern", "out-dir", "emit", "sysroot", "test-builder"], words: &[] },
    Risks { names: &["go"], letters: &[], long: &["exec", "toolexec", "vettool", "overlay", "modfile"], words: &["-exec", "-toolexec", "-vettool", "-o", "-overlay", "-modfile", "-C", "-pkgdir", "-ldflags", "-gccgoflags"] },
    Risks { names: &["make", "gmake", "just", "ninja"], letters: &['f', 'E', 'C', 'I'], long: &["eval", "file", "makefile", "directory", "include-dir", "justfile", "shell"], words: &[] },
    Risks { names: &["docker", "podman", "nerdctl", "kubectl"], letters: &[], long: &[], words: &["run", "exec"] },
    Risks { names: &["zip"], letters: &['T'], long: &["unzip-command"], words: &[] },
    Risks { names: &["curl"], letters: &['o', 'O', 'K', 'T', 'd', 'F', 'c', 'D', 'J', 'q', 'X', 'b', 'E'], long: &["output", "output-dir", "remote-name", "remote-name-all", "remote-header-name", "config", "upload-file", "data", "data-binary", "data-raw", "data-urlencode", "data-ascii", "json", "form", "form-string", "url-query", "cookie", "cookie-jar", "dump-header", "trace", "trace-ascii", "stderr", "proxy", "request", "etag-save", "hsts", "alt-svc", "libcurl", "engine", "variable", "expand", "unix-socket", "netrc-file", "cert", "key"], words: &[] },
    Risks { names: &["wget"], letters: &['O', 'o', 'a', 'P', 'i', 'e'], long: &["output-document", "output-file", "append-output", "directory-prefix", "input-file", "post-file", "post-data", "body-file", "body-data", "method", "config", "execute", "use-askpass", "save-cookies", "load-cookies", "warc-file"], words: &[] },
    Risks { names: &["gcc", "g++", "cc", "c++", "clang", "clang++"], letters: &['B'], long: &[], words: &["-wrapper", "-fplugin", "-specs", "--specs", "-B", "-Xclang", "-load", "@"] },
    Risks { names: &["sqlite3"], letters: &[], long: &[], words: &[".", "-cmd", "--cmd", "-init", "--init"] },
    Risks { names: &["gdb", "lldb"], letters: &['x', 'o', 's'], long: &["eval-command", "init-eval-command", "command", "init-command", "one-line", "source"], words: &["-ex", "-iex", "-ix"] },
    Risks { names: &["pytest", "py.test"], letters: &['p', 'c', 'o'], long: &["rootdir", "confcutdir", "basetemp", "override-ini", "config-file", "import-mode", "pastebin", "junitxml", "junit-xml", "debug", "log-file", "pdbcls"], words: &[] },
    Risks { names: &["eslint"], letters: &['f', 'c', 'o'], long: &["format", "config", "rulesdir", "plugin", "parser", "resolve-plugins-relative-to", "output-file", "fix", "fix-dry-run"], words: &[] },
    Risks { names: &["jest", "vitest", "mocha", "webpack", "vite", "tsc", "prettier", "rollup"], letters: &['c', 'r'], long: &["config", "require", "plugin", "globalSetup", "setupFiles", "testRunner", "transform", "reporter", "resolver"], words: &[] },
    Risks { names: &["cmake", "ctest"], letters: &['P', 'S', 'C', 'D'], long: &["toolchain", "build-and-test", "script"], words: &["-E"] },
    Risks { names: &["pip", "pip3", "uv"], letters: &['e', 't', 'i'], long: &["target", "prefix", "root", "index-url", "extra-index-url", "editable", "python", "config-file", "log", "directory"], words: &[] },
    Risks { names: &["tcpdump"], letters: &['z', 'w'], long: &[], words: &[] },
    Risks { names: &["yq", "jq"], letters: &['i', 'L'], long: &["inplace", "library-path", "split-exp"], words: &[] },
    Risks { names: &["tree"], letters: &['o', 'R'], long: &["output"], words: &[] },
    Risks { names: &["diff", "colordiff"], letters: &[], long: &["output"], words: &[] },
];

/// Programs that run what they are given, whatever their options.
const ALWAYS: [&str; 18] = [
    "awk", "gawk", "mawk", "nawk", "ssh", "xargs", "parallel", "env", "sudo", "doas", "su", "vi", "vim",
    "nvim", "emacs", "less", "more", "ed",
];

/// Whether a command's options can run programs or write files, so that no prefix says what it does.
pub(super) fn is_risky(argv: &[CommandWord]) -> bool {
    let Some((name, arguments)) = argv.split_first() else { return true };
    let program = program(name);
    if !name.literal || builtins::objection(argv).is_some() || ALWAYS.contains(&program) {
        return true;
    }
    let listed = RISKS.iter().filter(|risks| risks.names.contains(&program));
    if listed.into_iter().any(|risks| arguments.iter().any(|word| risks.holds(word))) {
        return true;
    }
    let contains = |letters: &[char]| {
        arguments.iter().any(|word| {
            word.open
                || word.text.starts_with('-') && !word.text.starts_with("--") && word.text.contains(letters)
        })
    };
    match program {
        _ if is_shell(program) => contains(&['c', 's', 'o']),
        "man" => true,
        "git" => git::is_risky(arguments),
        "sed" | "gsed" => !crate::sed::prints(arguments),
        "perl" | "ruby" | "lua" | "node" | "deno" | "bun" | "php" => arguments.is_empty(),
        // The letters of old need no dash.
        "tar" | "bsdtar" | "gtar" => arguments
            .first()
            .is_some_and(|word| !word.text.starts_with('-') && word.text.contains(['I', 'F'])),
        // A variable of a makefile may run a program, or name the one that is run.
        "make" | "gmake" => arguments.iter().any(|word| {
            word.open || word.text.contains('$') || word.text.contains('`') || word.text.contains('=')
        }),
        "psql" | "mysql" | "mariadb" | "sqlite3" => {
            let shells = |word: &CommandWord| word.text.contains(['\\', '!']) || word.text.contains(".shell");
            arguments.iter().any(|word| word.open || shells(word) || word.text.contains("system"))
        }
        _ if program.starts_with("python") => {
            contains(&['c']) || arguments.is_empty() || arguments.iter().all(|word| word.text == "-")
        }
        _ => false,
    }
}

impl Risks {
    fn holds(&self, word: &CommandWord) -> bool {
        // Text that could turn into an option could turn into one of these.
        if word.open {
            return true;
        }
        let text = word.text.trim_start_matches(['"', '\'']);
        if self.words.iter().any(|start| text.starts_with(start)) {
            return true;
        }
        match text.strip_prefix("--") {
            Some(long) => {
                let name = long.split('=').next().unwrap_or(long);
                !name.is_empty()
                    && self.long.iter().any(|risky| risky.starts_with(name) || name.starts_with(risky))
            }
            None => text.starts_with('-') && text.contains(self.letters),
        }
    }
}
