//! Archives of plugins, hostile ones included.

use std::io::Write;

use flate2::Compression;
use flate2::write::GzEncoder;
use tar::Header;

use super::*;

/// An archive while it is made, with whatever a hostile one may hold.
pub(in crate::plugin::store) struct Packing(GzEncoder<Vec<u8>>);

impl Packing {
    pub(in crate::plugin::store) fn file(&mut self, name: &str, content: &[u8]) {
        self.entry(EntryType::Regular, name, "", 0o644, content);
    }

    /// The name is written as it is, which the library would refuse.
    fn entry(&mut self, kind: EntryType, name: &str, link: &str, mode: u32, content: &[u8]) {
        let mut header = Header::new_ustar();
        header.as_mut_bytes()[..name.len()].copy_from_slice(name.as_bytes());
        header.as_mut_bytes()[157..157 + link.len()].copy_from_slice(link.as_bytes());
        header.set_entry_type(kind);
        header.set_mode(mode);
        header.set_size(content.len() as u64);
        header.set_cksum();
        self.0.write_all(header.as_bytes()).unwrap();
        self.0.write_all(content).unwrap();
        self.0.write_all(&vec![0; content.len().next_multiple_of(512) - content.len()]).unwrap();
    }
}

pub(in crate::plugin::store) fn packed(fill: impl FnOnce(&mut Packing)) -> Vec<u8> {
    let mut packing = Packing(GzEncoder::new(Vec::new(), Compression::fast()));
    fill(&mut packing);
    packing.0.write_all(&[0; 1024]).unwrap();
    packing.0.finish().unwrap()
}

struct Unpacked {
    folder: tempfile::TempDir,
    result: Result<(), String>,
}

fn unpacked(bytes: &[u8]) -> Unpacked {
    let folder = tempfile::tempdir().unwrap();
    let result = unpack(bytes, &folder.path().join("into"));
    Unpacked { folder, result }
}

#[test]
fn files_come_out_without_the_folder_that_all_are_in() {
    let bytes = packed(|archive| {
        archive.entry(EntryType::XGlobalHeader, "pax_global_header", "", 0o644, b"20 comment=whatever\n");
        archive.entry(EntryType::Directory, "package/", "", 0o755, b"");
        archive.entry(EntryType::Directory, "package/empty/", "", 0o755, b"");
        archive.file("./package/a/b.txt", b"text");
        archive.entry(EntryType::Regular, "package/run.sh", "", 0o755, b"true\n");
    });
    let unpacked = unpacked(&bytes);
    assert_eq!(unpacked.result, Ok(()));
    let into = unpacked.folder.path().join("into");
    assert_eq!(fs::read_to_string(into.join("a/b.txt")).unwrap(), "text");
    assert!(into.join("empty").is_dir());
    let is_program = |name: &str| {
        use std::os::unix::fs::PermissionsExt;
        fs::metadata(into.join(name)).unwrap().permissions().mode() & 0o100 != 0
    };
    assert!(is_program("run.sh") && !is_program("a/b.txt"));
    assert!(!into.join("pax_global_header").exists());
}

#[test]
fn nothing_but_files_and_folders_below_the_folder_comes_out() {
    for (kind, name, link, expected) in [
        (EntryType::Regular, "/etc/evil", "", "leads out of it"),
        (EntryType::Regular, "package/../../evil", "", "leads out of it"),
        (EntryType::Directory, "../evil/", "", "leads out of it"),
        (EntryType::Symlink, "package/link", "/etc", "neither a file nor a folder"),
        (EntryType::Symlink, "package/link", "inside", "neither a file nor a folder"),
        (EntryType::Link, "package/link", "/etc/passwd", "neither a file nor a folder"),
        (EntryType::Char, "package/device", "", "neither a file nor a folder"),
        (EntryType::Block, "package/device", "", "neither a file nor a folder"),
        (EntryType::Fifo, "package/pipe", "", "neither a file nor a folder"),
    ] {
        let unpacked = unpacked(&packed(|archive| archive.entry(kind, name, link, 0o644, b"")));
        let failed = unpacked.result.unwrap_err();
        assert!(failed.contains(expected) && failed.contains(name), "{kind:?} {name}: {failed}");
        let names: Vec<_> =
            fs::read_dir(unpacked.folder.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(names, ["into"], "{kind:?} {name}");
        assert_eq!(fs::read_dir(unpacked.folder.path().join("into")).unwrap().count(), 0, "{kind:?} {name}");
    }
    let deep = format!("package/{}x", "a/".repeat(MAX_DEPTH + 1));
    let failed = unpacked(&packed(|archive| archive.file(&deep, b""))).result.unwrap_err();
    assert!(failed.contains("deep"), "{failed}");
    let twice = packed(|archive| (0..2).for_each(|_| archive.file("package/x", b"x")));
    assert!(unpacked(&twice).result.unwrap_err().contains("cannot be written"));
    let cut = packed(|archive| archive.file("package/x", &[7; 4096]));
    assert!(unpacked(&cut[..cut.len() / 2]).result.unwrap_err().contains("cannot be unpacked"));
}

#[test]
fn an_archive_that_would_grow_beyond_the_bounds_of_plugins_is_given_up() {
    let half = vec![0; usize::try_from(MAX_BYTES).unwrap() / 2 + 1];
    let bomb =
        packed(|archive| ["package/a", "package/b"].into_iter().for_each(|name| archive.file(name, &half)));
    assert!(bomb.len() < 1 << 20, "small until it is unpacked: {}", bomb.len());
    let unpacked_bomb = unpacked(&bomb);
    assert_eq!(unpacked_bomb.result, Err(too_large()));
    assert!(!unpacked_bomb.folder.path().join("into/b").exists());

    // The overhead of files counts as well: a name may be as long as all else together.
    let endless = packed(|archive| {
        let name = vec![b'x'; usize::try_from(MAX_BYTES + MAX_AROUND).unwrap() + 1];
        archive.entry(EntryType::GNULongName, "././@LongLink", "", 0o644, &name);
        archive.file("package/x", b"x");
    });
    assert_eq!(unpacked(&endless).result, Err(too_large()));

    let many = packed(|archive| {
        (0..=MAX_ENTRIES).for_each(|number| archive.file(&format!("package/{number}"), b""))
    });
    let failed = unpacked(&many).result.unwrap_err();
    assert!(failed.contains("more than 10000 files"), "{failed}");
}
