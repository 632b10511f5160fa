//! Computes the build of the sandbox: a hash of this crate's source, which both programs that contain it have.
//!
//! Rule: two programs of the same source have the same build, on every machine.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::{fs, io};

/// The start value and the factor of FNV-1a with 64 bits, which is the same in every version of the compiler.
const START: u64 = 0xcbf2_9ce4_8422_2325;
const FACTOR: u64 = 0x0100_0000_01b3;

fn main() -> io::Result<()> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut files = BTreeMap::new();
    collect(&root.join("src"), &mut files)?;
    let mut hash = START;
    for (path, content) in &files {
        let name = path.strip_prefix(root).unwrap_or(path).to_string_lossy().replace('\\', "/");
        for byte in name.bytes().chain([0]).chain(content.iter().copied()).chain([0]) {
            hash = (hash ^ u64::from(byte)).wrapping_mul(FACTOR);
        }
    }
    println!("cargo::rerun-if-changed=src");
    println!("cargo::rustc-env=KODE_SANDBOX_BUILD={hash:016x}");
    Ok(())
}

/// Reads all files below a folder.
fn collect(folder: &Path, files: &mut BTreeMap<PathBuf, Vec<u8>>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            collect(&path, files)?;
        } else {
            files.insert(path.clone(), fs::read(&path)?);
        }
    }
    Ok(())
}
