//! Secret places with all links followed, kept from one command to the next.
//!
//! Rule: they are used as long as the kernel has reported no change to a name on the way to one of them. Where it cannot report that,
//! and for places that could not be followed for another reason than that nothing is there, each command follows them again.

use std::collections::HashMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Weak};

use parking_lot::Mutex;

use super::helper::places::{OwnDisk, PathLookup};
use kode_base::change_probe::ChangeProbe;
use kode_base::paths::AbsPath;

/// The tables of this process: most sandboxes hide the same places.
static TABLES: Mutex<Vec<Weak<KnownPlaces>>> = Mutex::new(Vec::new());

/// Where places lead.
#[derive(Debug)]
pub(super) struct KnownPlaces {
    places: Vec<AbsPath>,
    probe: ChangeProbe,
    /// Nothing for a place that is not there.
    real: HashMap<PathBuf, Option<PathBuf>>,
}

/// The table of one sandbox.
#[derive(Debug, Default)]
pub(super) struct PlaceCache(Mutex<CachedTable>);

#[derive(Debug, Default)]
enum CachedTable {
    #[default]
    None,
    Known(Arc<KnownPlaces>),
    /// The kernel does not report the changes.
    Refused,
}

impl PlaceCache {
    /// The table, if all is still as it says. Never blocks on the disk.
    pub(super) fn current(&self) -> Option<Arc<KnownPlaces>> {
        match &*self.0.lock() {
            CachedTable::Known(table) if table.is_current() => Some(Arc::clone(table)),
            CachedTable::None | CachedTable::Known(_) | CachedTable::Refused => None,
        }
    }

    /// Makes the table for the next command, where there is none that is current. Blocks on the disk.
    pub(super) fn renew<'a>(&self, places: impl Iterator<Item = &'a AbsPath>) {
        if self.current().is_some() || matches!(*self.0.lock(), CachedTable::Refused) {
            return;
        }
        let table =
            KnownPlaces::of(places.cloned().collect()).map_or(CachedTable::Refused, CachedTable::Known);
        *self.0.lock() = table;
    }
}

impl KnownPlaces {
    /// The table for these places; `None` where the kernel does not report changes.
    fn of(places: Vec<AbsPath>) -> Option<Arc<Self>> {
        let shared = {
            let mut tables = TABLES.lock();
            tables.retain(|table| table.strong_count() > 0);
            let mut alike = tables.iter().filter_map(Weak::upgrade).filter(|table| table.places == places);
            alike.find(|table| table.is_current())
        };
        if shared.is_some() {
            return shared;
        }
        let disk = OwnDisk::default();
        let named: Vec<_> = places.iter().filter(|place| follow(&disk, place).is_some()).collect();
        let probe = ChangeProbe::of_names(named.iter().copied())?;
        // A change before the probe began is not reported, so they are followed once more.
        let disk = OwnDisk::default();
        let leads = |place: &AbsPath| Some((place.as_path().to_path_buf(), follow(&disk, place)?));
        let real = named.into_iter().filter_map(leads).collect();
        let table = Arc::new(Self { places, probe, real });
        TABLES.lock().push(Arc::downgrade(&table));
        Some(table)
    }

    fn is_current(&self) -> bool {
        self.probe.is_unchanged()
    }
}

/// The disk of this machine, with places that are known already.
#[derive(Default)]
pub(super) struct KnownDisk<'a> {
    pub(super) own: OwnDisk,
    pub(super) known: Option<&'a KnownPlaces>,
}

impl PathLookup for KnownDisk<'_> {
    fn real(&self, path: &Path) -> io::Result<PathBuf> {
        match self.known.and_then(|known| known.real.get(path)) {
            Some(Some(real)) => Ok(real.clone()),
            Some(None) => Err(io::ErrorKind::NotFound.into()),
            None => self.own.real(path),
        }
    }

    fn is_folder(&self, path: &Path) -> bool {
        self.own.is_folder(path)
    }
}

/// Where a place leads, or that nothing is there; `None` where neither can be said.
#[expect(clippy::option_option, reason = "the inner one is an answer")]
fn follow(disk: &OwnDisk, place: &AbsPath) -> Option<Option<PathBuf>> {
    match disk.real(place.as_path()) {
        Ok(real) => Some(Some(real)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Some(None),
        Err(_) => None,
    }
}

#[cfg(test)]
#[cfg(target_os = "linux")]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;
    use std::time::{Duration, Instant};

    use kode_base::paths::real_path;

    use super::*;

    /// A change by another program in the folder of a test.
    type FolderChange<'a> = &'a dyn Fn(&Path);

    /// The names below the folder of a test: a file, one that is not there, one in a folder that is not there, one by a link to a file, and
    /// one by a link to a folder.
    const NAMES: [&str; 5] = ["a/there", "a/absent", "none/absent", "a/link", "linked/deep"];

    fn folder() -> (tempfile::TempDir, PathBuf, Vec<AbsPath>) {
        let folder = tempfile::tempdir().unwrap();
        let root = real_path(folder.path()).unwrap();
        for name in ["a", "target/inner"] {
            fs::create_dir_all(root.join(name)).unwrap();
        }
        for name in ["a/there", "target/file", "target/deep"] {
            fs::write(root.join(name), "").unwrap();
        }
        symlink("../target/file", root.join("a/link")).unwrap();
        symlink("target", root.join("linked")).unwrap();
        let places = NAMES.iter().map(|name| AbsPath::new(root.join(name)).unwrap()).collect();
        (folder, root, places)
    }

    /// Asks until no other test makes a probe.
    fn current(cache: &PlaceCache) -> Option<Arc<KnownPlaces>> {
        let deadline = Instant::now() + Duration::from_secs(10);
        std::iter::repeat_with(|| cache.current())
            .take_while(|_| Instant::now() < deadline)
            .inspect(|_| std::thread::yield_now())
            .find_map(|current| current)
    }

    fn assert_as_on_disk(cache: &PlaceCache, places: &[AbsPath], after: &str) {
        let known = current(cache).unwrap_or_else(|| panic!("{after}"));
        let disk = KnownDisk { known: Some(&known), ..KnownDisk::default() };
        for place in places {
            let expected = real_path(place.as_path()).map_err(|error| error.kind());
            assert!(known.real.contains_key(place.as_path()), "{after}: {place}");
            assert_eq!(
                disk.real(place.as_path()).map_err(|error| error.kind()),
                expected,
                "{after}: {place}"
            );
        }
    }

    #[test]
    fn each_change_of_where_a_place_leads_makes_the_table_anew() {
        let changes: &[(&str, FolderChange<'_>)] = &[
            ("made", &|root| fs::write(root.join("a/absent"), "").unwrap()),
            ("removed", &|root| fs::remove_file(root.join("a/there")).unwrap()),
            ("a folder made on the way", &|root| fs::create_dir(root.join("none")).unwrap()),
            ("a link instead", &|root| {
                symlink("there", root.join("a/new")).unwrap();
                fs::rename(root.join("a/new"), root.join("a/absent")).unwrap();
            }),
            ("a link elsewhere", &|root| {
                symlink("target/inner", root.join("new")).unwrap();
                fs::rename(root.join("new"), root.join("linked")).unwrap();
            }),
            ("the target of a link moved", &|root| {
                fs::rename(root.join("target"), root.join("moved")).unwrap();
            }),
            ("the folder moved", &|root| fs::rename(root.join("a"), root.join("b")).unwrap()),
        ];
        for (what, change) in changes {
            let (_folder, root, places) = folder();
            let cache = PlaceCache::default();
            assert!(cache.current().is_none());
            cache.renew(places.iter());
            assert_as_on_disk(&cache, &places, what);
            change(&root);
            assert!(cache.current().is_none(), "{what}");
            cache.renew(places.iter());
            assert_as_on_disk(&cache, &places, what);
        }
    }

    #[test]
    fn contents_leave_a_table_as_it_is_and_sandboxes_share_it() {
        let (_folder, root, places) = folder();
        let (one, other) = (PlaceCache::default(), PlaceCache::default());
        one.renew(places.iter());
        fs::write(root.join("a/there"), "more").unwrap();
        fs::write(root.join("target/inner/beside"), "").unwrap();
        let table = current(&one).unwrap();
        // Until no other test makes a probe.
        let deadline = Instant::now() + Duration::from_secs(10);
        while Instant::now() < deadline {
            other.renew(places.iter());
            if current(&other).is_some_and(|shared| Arc::ptr_eq(&shared, &table)) {
                return;
            }
            *other.0.lock() = CachedTable::None;
        }
        panic!("the second sandbox has a table of its own");
    }

    #[test]
    fn without_reports_of_changes_there_is_no_table() {
        let cache = PlaceCache::default();
        let places = ["/proc/self/status"].map(|place| AbsPath::new(place).unwrap());
        cache.renew(places.iter());
        assert!(cache.current().is_none());
        assert!(matches!(*cache.0.lock(), CachedTable::Refused));
    }
}
