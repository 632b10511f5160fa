//! The languages of the exercises, and how their own programs run the tests.
//!
//! Rule: a verdict is what the interpreter or the test binary says of one exercise; a program that is missing fails the test and
//! says how to install it.

use std::fs;
use std::path::{Path, PathBuf};

use kode_e2e::{Output, run_program};

use crate::harness::exercise::Exercise;

/// The Rust crate of all exercises.
const CRATE: &str = "exercises";

/// A language with exercises.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Language {
    Python,
    JavaScript,
    Rust,
}

/// The output of one exercise's tests.
#[derive(Debug)]
pub(super) struct Verdict {
    pub(super) name: String,
    pub(super) is_green: bool,
    /// Whether an assertion failed or a function was not written yet: what a stub fails with.
    pub(super) is_unsolved: bool,
    pub(super) output: String,
}

impl Language {
    pub(super) fn folder(self) -> &'static str {
        match self {
            Self::Python => "python",
            Self::JavaScript => "javascript",
            Self::Rust => "rust",
        }
    }

    pub(super) fn ending(self) -> &'static str {
        match self {
            Self::Python => "py",
            Self::JavaScript => "js",
            Self::Rust => "rs",
        }
    }

    /// The mark of a line comment.
    pub(super) fn comment(self) -> &'static str {
        match self {
            Self::Python => "#",
            Self::JavaScript | Self::Rust => "//",
        }
    }

    /// The program that runs or compiles the tests.
    fn program(self) -> PathBuf {
        let (variable, name, package) = match self {
            Self::Python => ("PYTHON", "python3", "Debian has it in `python3`"),
            Self::JavaScript => ("NODE", "node", "`tests/tools/install-node.sh` installs it"),
            Self::Rust => ("RUSTC", "rustc", "rustup installs it with cargo"),
        };
        if let Some(program) = std::env::var_os(variable) {
            return program.into();
        }
        let path = std::env::var_os("PATH").unwrap_or_default();
        std::env::split_paths(&path).map(|folder| folder.join(name)).find(|program| program.is_file()).unwrap_or_else(
            || panic!("the exercises need `{name}`, which is not on the PATH: {package}. {variable} names another one."),
        )
    }

    /// Runs the tests of exercises, whose files are in `folder`, and gives a verdict for each.
    pub(super) fn judge(self, exercises: &[Exercise], folder: &Path) -> Vec<Verdict> {
        for exercise in exercises {
            let name = format!("{}_test.{}", exercise.name, self.ending());
            fs::write(folder.join(name), &exercise.tests).unwrap();
        }
        match self {
            Self::Python | Self::JavaScript => {
                exercises.iter().map(|exercise| self.interpreted(exercise, folder)).collect()
            }
            Self::Rust => compiled(exercises, folder),
        }
    }

    /// The verdict of the test program of one exercise.
    fn interpreted(self, exercise: &Exercise, folder: &Path) -> Verdict {
        let file = folder.join(format!("{}_test.{}", exercise.name, self.ending()));
        let options: &[&str] = if self == Self::Python { &["-B"] } else { &[] };
        let arguments = [options, &[file.to_str().unwrap()]].concat();
        let Output { code, stdout, stderr } = run_program(&self.program(), &arguments, Some(folder), &[], "");
        let is_unsolved = ["AssertionError", "NotImplementedError", "not implemented"]
            .iter()
            .any(|reason| stderr.contains(reason));
        Verdict { name: exercise.name.clone(), is_green: code == 0, is_unsolved, output: stdout + &stderr }
    }
}

/// The verdicts of one crate of all exercises, each a module beside the module of its tests.
fn compiled(exercises: &[Exercise], folder: &Path) -> Vec<Verdict> {
    let modules: String = exercises
        .iter()
        .map(|Exercise { name, .. }| format!("mod {name};\n#[cfg(test)]\nmod {name}_test;\n"))
        .collect();
    let source = folder.join(format!("{CRATE}.rs"));
    fs::write(&source, format!("#![allow(dead_code, unused_variables)]\n{modules}")).unwrap();
    let binary = folder.join(CRATE);
    let options = ["--test", "--edition", "2024", "-A", "warnings", "-C", "debuginfo=0", "-o"];
    let arguments = [&options[..], &[binary.to_str().unwrap(), source.to_str().unwrap()]].concat();
    // rustup finds its toolchains there.
    let home = std::env::var("HOME").unwrap_or_default();
    let built = run_program(&Language::Rust.program(), &arguments, Some(folder), &[("HOME", &home)], "");
    assert_eq!(built.code, 0, "the exercises do not compile:\n{}", built.stderr);
    let run = run_program(&binary, &["--test-threads=2"], Some(folder), &[], "");
    let verdict = |exercise: &Exercise| {
        let prefix = format!("test {}_test::", exercise.name);
        let lines: Vec<&str> = run.stdout.lines().filter(|line| line.starts_with(&prefix)).collect();
        let is_green = !lines.is_empty() && lines.iter().all(|line| line.ends_with("... ok"));
        let is_unsolved = lines.iter().any(|line| line.ends_with("... FAILED"));
        let output = if is_green { lines.join("\n") } else { run.stdout.clone() };
        Verdict { name: exercise.name.clone(), is_green, is_unsolved, output }
    };
    exercises.iter().map(verdict).collect()
}
