//! Archives of packages as registries send them, before they were compressed.
//!
//! Rule: unpacking ends, with files or with one reason; only plain files and folders come out, all below the folder they are meant
//! for, and beside it nothing is written.

use std::fs;
use std::io::Write;
use std::path::Path;

use flate2::Compression;
use flate2::write::GzEncoder;
use kode_engine::config::plugin::store::unpack;

/// Where nothing of an archive may come to lie.
const BESIDE: &str = "beside";

pub(crate) fn run(bytes: &[u8]) {
    let folder = tempfile::tempdir().unwrap();
    let into = folder.path().join("into");
    fs::write(folder.path().join(BESIDE), BESIDE).unwrap();
    let mut packing = GzEncoder::new(Vec::new(), Compression::none());
    packing.write_all(bytes).unwrap();
    if let Err(reason) = unpack(&packing.finish().unwrap(), &into) {
        assert!(!reason.is_empty() && !reason.ends_with('.'));
    }
    let mut there: Vec<_> =
        fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    there.sort();
    assert!(there == [BESIDE, "into"] || there == [BESIDE], "{there:?}");
    assert_eq!(fs::read_to_string(folder.path().join(BESIDE)).unwrap(), BESIDE);
    if into.exists() {
        check(&into);
    }
}

fn check(folder: &Path) {
    for entry in fs::read_dir(folder).unwrap() {
        let entry = entry.unwrap();
        let kind = entry.file_type().unwrap();
        assert!(kind.is_file() || kind.is_dir(), "{:?}", entry.path());
        if kind.is_dir() {
            check(&entry.path());
        }
    }
}
