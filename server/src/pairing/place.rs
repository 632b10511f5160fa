//! Where language servers offer themselves to be paired with, and which of them is of the same editor.
//!
//! Rule: the folder is this user's alone, and an offer in it is believed only if it is this user's file.

#![expect(
    clippy::disallowed_methods,
    reason = "variables name the folder, and offers that are over are removed"
)]

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;

use kode_engine::base::atomic;
use kode_engine::base::host_name::host_name;
use kode_engine::base::paths::{AbsPath, real_path};
use kode_engine::base::{private, regular};

use super::wire::{PairOffer, VERSION};
use crate::home;
use crate::processes::{ancestors, process_exists};

/// The mode bits of an offer.
const OFFER_MODE: u32 = 0o600;

/// The most bytes of an offer.
const MAX_OFFER: u64 = 64 << 10;

/// The most offers that are read.
const MAX_OFFERS: usize = 256;

/// The folder of the offers, made if need be: in the user's runtime folder, or where the state lives.
///
/// # Errors
/// When there is no such folder, or it is not this user's alone.
pub(super) fn folder() -> io::Result<AbsPath> {
    let runtime = std::env::var_os("XDG_RUNTIME_DIR").filter(|_| std::env::var_os("KODE_LS_HOME").is_none());
    let runtime = runtime.and_then(|folder| AbsPath::new(std::path::PathBuf::from(folder)).ok());
    let folder = match runtime.filter(|folder| folder.as_path().is_dir()) {
        Some(folder) => folder.join("kode-ls"),
        None => home::folder().map_err(io::Error::other)?.join("pairs"),
    };
    private::create_folders(folder.as_path())?;
    let metadata = fs::symlink_metadata(&folder)?;
    let is_own = metadata.is_dir()
        && metadata.uid() == rustix::process::geteuid().as_raw()
        && metadata.mode() & 0o077 == 0;
    match is_own {
        true => Ok(folder),
        false => Err(io::Error::other(format!("{folder} is not a folder of this user alone"))),
    }
}

/// Writes an offer, and removes those of processes of this host that have ended.
///
/// # Errors
/// The error of the system.
pub(super) fn publish(offer: &PairOffer, folder: &AbsPath) -> io::Result<()> {
    for old in offers(folder) {
        if !process_exists(old.process) {
            withdraw(&old, folder);
        }
    }
    let text = serde_json::to_vec(offer).map_err(io::Error::other)?;
    withdraw_file(&file(offer, folder));
    atomic::create_as(file(offer, folder).as_path(), &text, OFFER_MODE)
}

/// Removes an offer with its socket.
pub(super) fn withdraw(offer: &PairOffer, folder: &AbsPath) {
    withdraw_file(&file(offer, folder));
    if offer.socket.is_within(folder) {
        withdraw_file(&offer.socket);
    }
}

fn withdraw_file(path: &AbsPath) {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            tracing::info!(%error, %path, "an offer to pair is left behind");
        }
        Ok(()) | Err(_) => {}
    }
}

fn file(offer: &PairOffer, folder: &AbsPath) -> AbsPath {
    folder.join(format!("{}.json", name(&offer.host, offer.process)))
}

/// The name of an offer's files, without their ends. Hosts with a common state folder have processes with the same ids.
pub(super) fn name(host: &str, process: u32) -> String {
    format!("{host}-{process}")
}

/// The offers of this user on this host.
fn offers(folder: &AbsPath) -> Vec<PairOffer> {
    let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
    let names = entries.flatten().map(|entry| entry.path());
    let files = names.filter(|path| path.extension().is_some_and(|extension| extension == "json"));
    let read = |path: std::path::PathBuf| {
        let metadata = fs::symlink_metadata(&path).ok()?;
        let is_own = metadata.uid() == rustix::process::geteuid().as_raw() && metadata.mode() & 0o077 == 0;
        let text = is_own.then(|| regular::read_text(&path, MAX_OFFER).ok())??;
        let offer: PairOffer = serde_json::from_str(&text).ok()?;
        (offer.version == VERSION && offer.host == host_name()).then_some(offer)
    };
    files.take(MAX_OFFERS).filter_map(read).collect()
}

/// The offer of the language server that the editor above this process runs for a folder; of several the one whose workspace
/// is nearest.
pub(super) fn find(cwd: &AbsPath) -> Option<PairOffer> {
    let folder = folder().ok()?;
    let cwd = real_path(cwd).ok().and_then(|path| AbsPath::new(path).ok())?;
    let ancestors = ancestors();
    let fits = |offer: &PairOffer| {
        let nearest = offer
            .roots
            .iter()
            .filter(|root| cwd.is_within(root))
            .map(|root| root.as_path().as_os_str().len());
        nearest.max().filter(|_| ancestors.contains(&offer.editor) && process_exists(offer.process))
    };
    let fitting = offers(&folder).into_iter().filter_map(|offer| Some((fits(&offer)?, offer)));
    fitting.max_by_key(|(nearest, offer)| (*nearest, offer.process)).map(|(_, offer)| offer)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn offer(process: u32, folder: &AbsPath) -> PairOffer {
        let host = host_name().to_owned();
        let socket = folder.join(format!("{}.sock", name(&host, process)));
        PairOffer {
            version: VERSION,
            host,
            process,
            editor: 1,
            roots: Vec::new(),
            socket,
            token: "t".to_owned(),
        }
    }

    #[test]
    fn offers_are_private_and_those_of_processes_that_have_ended_are_removed() {
        let temporary = tempfile::tempdir().unwrap();
        let folder = AbsPath::new(temporary.path()).unwrap();
        let (own, gone) = (offer(std::process::id(), &folder), offer(i32::MAX as u32, &folder));
        publish(&gone, &folder).unwrap();
        fs::write(&gone.socket, "").unwrap();
        assert_eq!(offers(&folder).len(), 1);
        publish(&own, &folder).unwrap();
        let processes: Vec<u32> = offers(&folder).iter().map(|offer| offer.process).collect();
        assert_eq!((processes, gone.socket.as_path().exists()), (vec![own.process], false));
        let path = file(&own, &folder);
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, OFFER_MODE);
        fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
        assert!(offers(&folder).is_empty(), "others could have read its token");
    }

    #[test]
    fn an_offer_of_another_host_in_a_common_folder_is_left_alone() {
        let temporary = tempfile::tempdir().unwrap();
        let folder = AbsPath::new(temporary.path()).unwrap();
        // Its process has an id that no process here has, and later one of this process.
        for process in [i32::MAX.cast_unsigned(), std::process::id()] {
            let foreign = PairOffer { host: "devbox".to_owned(), ..offer(process, &folder) };
            publish(&foreign, &folder).unwrap();
            let own = offer(std::process::id(), &folder);
            publish(&own, &folder).unwrap();
            let found: Vec<String> = offers(&folder).into_iter().map(|offer| offer.host).collect();
            assert_eq!(found, [host_name()]);
            assert!(file(&foreign, &folder).as_path().exists());
        }
    }
}
