//! Names the form of what this build folds a journal into: a hash of the sources that define it.
//!
//! Rule: a change of a source changes the name. Tests are left out.

use std::hash::{DefaultHasher, Hasher};
use std::path::{Path, PathBuf};
use std::{fs, io};

/// The crates whose types are in the fold.
const CRATES: [&str; 10] =
    ["base", "journal", "process", "model", "text", "permission", "config", "tool", "record", "agent"];

fn main() -> io::Result<()> {
    let mut files = Vec::new();
    for name in CRATES {
        collect(&Path::new("..").join(name).join("src"), &mut files)?;
    }
    files.sort();
    let mut hasher = DefaultHasher::new();
    for file in &files {
        let path = file.to_string_lossy().replace('\\', "/");
        writeln(&format!("cargo::rerun-if-changed={path}"))?;
        hasher.write(path.as_bytes());
        hasher.write(&fs::read(file)?);
    }
    writeln(&format!("cargo::rustc-env=KODE_FOLD_FORM={:016x}", hasher.finish()))
}

/// The sources below a folder.
fn collect(folder: &Path, files: &mut Vec<PathBuf>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        let is_test = path.file_stem().is_some_and(|name| name == "tests" || name == "testing");
        if is_test {
            continue;
        }
        if path.is_dir() {
            collect(&path, files)?;
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
    Ok(())
}

fn writeln(line: &str) -> io::Result<()> {
    use io::Write;
    io::stdout().write_all(format!("{line}\n").as_bytes())
}
