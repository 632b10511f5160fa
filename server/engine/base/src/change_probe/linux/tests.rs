//! What a probe sees: everything that changes the stamp of one of its paths, at once.
//!
//! Rule: each change is made by the call that a program would make, and asked for without a pause.

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::time::{Duration, Instant};

use proptest::prelude::*;

use super::*;
use crate::change_probe::ChangeProbe;
use crate::paths::AbsPath;

/// Device, inode, time of the last change in seconds and nanoseconds, and length.
type FileStamp = (u64, u64, i64, i64, u64);

/// A change by another program.
type FolderChange<'a> = &'a dyn Fn(&ProbedFolder);

struct ProbedFolder {
    folder: tempfile::TempDir,
    paths: Vec<AbsPath>,
}

impl ProbedFolder {
    /// A folder with probed paths in it: two files that are there, one that is not, one in a folder that is not, one by a link to a
    /// file, and one by a link to a folder.
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        for name in ["a/b", "elsewhere/c"] {
            fs::create_dir_all(at(name)).unwrap();
        }
        for name in ["a/b/there.json", "a/other.json", "elsewhere/target.json", "elsewhere/c/deep.json"] {
            fs::write(at(name), "{}").unwrap();
        }
        symlink("../elsewhere/target.json", at("a/link.json")).unwrap();
        symlink(at("elsewhere/c"), at("a/folder")).unwrap();
        let paths = [
            "a/b/there.json",
            "a/other.json",
            "a/b/absent.json",
            "no/such/x.json",
            "a/link.json",
            "a/folder/deep.json",
        ];
        let paths = paths.iter().map(|name| AbsPath::new(at(name)).unwrap()).collect();
        Self { folder, paths }
    }

    fn at(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn probe(&self) -> ChangeProbe {
        ChangeProbe::of(&self.paths).expect("the temporary folder is on a local disk")
    }

    /// The stamps of all paths, as [`crate::change_probe`] stands for them.
    fn stamps(&self) -> Vec<Option<FileStamp>> {
        use std::os::unix::fs::MetadataExt;
        let stamp = |path: &AbsPath| {
            let metadata = path.as_path().metadata().ok()?;
            Some((metadata.dev(), metadata.ino(), metadata.ctime(), metadata.ctime_nsec(), metadata.len()))
        };
        self.paths.iter().map(stamp).collect()
    }

    /// Asks until no other test makes a probe.
    fn is_unchanged(probe: &ChangeProbe) -> bool {
        let deadline = Instant::now() + Duration::from_secs(10);
        std::iter::repeat_with(std::thread::yield_now)
            .take_while(|()| Instant::now() < deadline)
            .any(|()| probe.is_unchanged())
    }
}

#[test]
fn each_way_to_change_a_path_is_seen_at_once() {
    let ways: &[(&str, FolderChange<'_>)] = &[
        ("written", &|of| fs::write(of.at("a/other.json"), "[]").unwrap()),
        ("appended to", &|of| {
            let mut file = OpenOptions::new().append(true).open(of.at("a/b/there.json")).unwrap();
            file.write_all(b" ").unwrap();
            assert!(!of.probe_sees_nothing_of(&file));
        }),
        ("truncated", &|of| drop(fs::File::create(of.at("a/other.json")).unwrap())),
        ("replaced", &|of| fs::rename(of.at("elsewhere/target.json"), of.at("a/other.json")).unwrap()),
        ("deleted", &|of| fs::remove_file(of.at("a/other.json")).unwrap()),
        ("created", &|of| fs::write(of.at("a/b/absent.json"), "").unwrap()),
        ("on the way", &|of| fs::create_dir(of.at("no")).unwrap()),
        ("forbidden", &|of| {
            fs::set_permissions(of.at("a/other.json"), fs::Permissions::from_mode(0o000)).unwrap();
        }),
        ("its folder moved", &|of| fs::rename(of.at("a"), of.at("z")).unwrap()),
        ("written behind a link", &|of| fs::write(of.at("elsewhere/target.json"), "1").unwrap()),
        ("replaced behind a link", &|of| {
            fs::rename(of.at("a/other.json"), of.at("elsewhere/target.json")).unwrap();
        }),
        ("written behind a linked folder", &|of| fs::write(of.at("elsewhere/c/deep.json"), "1").unwrap()),
        ("its linked folder moved", &|of| fs::rename(of.at("elsewhere"), of.at("gone")).unwrap()),
        ("its link changed", &|of| {
            symlink("b/there.json", of.at("a/new")).unwrap();
            fs::rename(of.at("a/new"), of.at("a/link.json")).unwrap();
        }),
        ("written under another name", &|of| {
            fs::hard_link(of.at("a/other.json"), of.at("hard.json")).unwrap();
            let probe = of.probe();
            fs::write(of.at("hard.json"), "another").unwrap();
            assert!(!probe.is_unchanged());
        }),
    ];
    for (way, change) in ways {
        let of = ProbedFolder::new();
        let probe = of.probe();
        assert!(ProbedFolder::is_unchanged(&probe), "before it is {way}");
        change(&of);
        assert!(!probe.is_unchanged(), "a path is {way}");
        assert!(!probe.is_unchanged(), "and stays changed");
    }
}

#[test]
fn what_does_not_change_a_path_is_no_change() {
    let of = ProbedFolder::new();
    let probe = of.probe();
    fs::read(of.at("a/other.json")).unwrap();
    fs::read_dir(of.at("a")).unwrap().for_each(drop);
    fs::write(of.at("a/beside.json"), "").unwrap();
    fs::write(of.at("elsewhere/beside.json"), "").unwrap();
    fs::create_dir(of.at("another")).unwrap();
    fs::remove_dir(of.at("another")).unwrap();
    assert!(ProbedFolder::is_unchanged(&probe));
}

#[test]
fn a_probe_of_names_sees_where_paths_lead_and_not_their_contents() {
    let of = ProbedFolder::new();
    let folder = AbsPath::new(of.at("elsewhere")).unwrap();
    let probe = ChangeProbe::of_names(of.paths.iter().chain([&folder])).unwrap();
    fs::write(of.at("a/other.json"), "[]").unwrap();
    fs::write(of.at("elsewhere/target.json"), "[]").unwrap();
    fs::write(of.at("elsewhere/beside.json"), "").unwrap();
    assert!(ProbedFolder::is_unchanged(&probe));
    fs::rename(of.at("elsewhere"), of.at("gone")).unwrap();
    assert!(!probe.is_unchanged());
    for (name, change) in [
        ("a/b/absent.json", (|path| fs::write(path, "").unwrap()) as fn(PathBuf)),
        ("a/other.json", |path| fs::remove_file(path).unwrap()),
        ("no", |path| fs::create_dir(path).unwrap()),
    ] {
        let of = ProbedFolder::new();
        let probe = ChangeProbe::of_names(&of.paths).unwrap();
        change(of.at(name));
        assert!(!probe.is_unchanged(), "{name}");
    }
}

#[test]
fn a_probe_on_a_disk_that_is_not_local_is_not_made() {
    let paths = ["/proc/self/status", "/sys/kernel"].map(|path| AbsPath::new(path).unwrap());
    for path in &paths {
        assert!(ChangeProbe::of([path]).is_none(), "{path}");
    }
}

#[test]
fn names_are_compared_as_a_folder_may_compare_them() {
    let listener = |name: &str| ProbeListener { name: Some(name.into()), changed: Weak::new() };
    for (own, other, hears) in [
        ("settings.json", "settings.json", true),
        ("settings.json", "Settings.JSON", true),
        ("settings.json", "settings.jsonc", false),
        ("einstellungen.json", "ärger.json", true),
    ] {
        assert_eq!(listener(own).hears(Some(OsStr::new(other))), hears, "{own} and {other}");
    }
    assert!(listener("a").hears(None));
}

#[test]
fn watches_end_with_the_probes_that_need_them() {
    // Probes of other tests come and go meanwhile, but none is for a file of this name.
    let gone = "watches_end.json";
    let folder = tempfile::tempdir().unwrap();
    let [first, second] = [gone, "x"].map(|name| AbsPath::new(folder.path().join(name)).unwrap());
    let listeners_of = |name: &str| {
        let instance = INSTANCE.lock();
        let name = Some(OsString::from(name));
        instance.as_ref().unwrap().watches.values().flatten().filter(|one| one.name == name).count()
    };
    let probe = ChangeProbe::of([&first]).unwrap();
    assert_eq!(listeners_of(gone), 1);
    drop(probe);
    // The next one removes them.
    let _probe = ChangeProbe::of([&second]).unwrap();
    assert_eq!(listeners_of(gone), 0);
}

/// A call of another program.
#[derive(Clone, Debug)]
enum FolderCall {
    Write(usize),
    Remove(usize),
    Rename(usize, usize),
    Link(usize, usize),
    Folder(usize),
    RemoveFolder(usize),
}

const PLACES: [&str; 9] = [
    "a",
    "a/b",
    "a/b/there.json",
    "a/other.json",
    "elsewhere",
    "elsewhere/c",
    "elsewhere/target.json",
    "a/link.json",
    "no",
];

fn call() -> impl Strategy<Value = FolderCall> {
    let place = 0..PLACES.len();
    prop_oneof![
        place.clone().prop_map(FolderCall::Write),
        place.clone().prop_map(FolderCall::Remove),
        (place.clone(), place.clone()).prop_map(|(from, to)| FolderCall::Rename(from, to)),
        (place.clone(), place.clone()).prop_map(|(from, to)| FolderCall::Link(from, to)),
        place.clone().prop_map(FolderCall::Folder),
        place.prop_map(FolderCall::RemoveFolder),
    ]
}

impl ProbedFolder {
    fn carry_out(&self, call: &FolderCall) {
        let at = |place: &usize| self.at(PLACES[*place]);
        // A call that fails changes nothing, or is seen as well.
        let _ = match call {
            FolderCall::Write(place) => fs::write(at(place), "text"),
            FolderCall::Remove(place) => fs::remove_file(at(place)),
            FolderCall::Rename(from, to) => fs::rename(at(from), at(to)),
            FolderCall::Link(from, to) => symlink(at(to), at(from)),
            FolderCall::Folder(place) => fs::create_dir(at(place)),
            FolderCall::RemoveFolder(place) => fs::remove_dir_all(at(place)),
        };
    }

    /// Whether a new probe sees nothing of a further byte in an open file.
    fn probe_sees_nothing_of(&self, mut file: &fs::File) -> bool {
        let probe = self.probe();
        file.write_all(b" ").unwrap();
        probe.is_unchanged()
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// No sequence of calls changes a stamp unseen.
    #[test]
    fn a_stamp_that_differs_is_never_called_unchanged(calls in prop::collection::vec(call(), 1..30)) {
        let of = ProbedFolder::new();
        // A way through a file or in a circle of links has no probe.
        let mut known: Option<(ChangeProbe, _)> = None;
        for call in &calls {
            if known.is_none() {
                known = ChangeProbe::of(&of.paths).map(|probe| (probe, of.stamps()));
            }
            of.carry_out(call);
            if let Some((probe, stamps)) = &known {
                match probe.is_unchanged() {
                    true => prop_assert_eq!(&of.stamps(), stamps, "after {:?}", call),
                    false => known = None,
                }
            }
        }
    }
}
