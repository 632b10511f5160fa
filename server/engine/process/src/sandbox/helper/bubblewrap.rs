//! The arguments of bubblewrap for a policy.
//!
//! Rule: mounts are made from the outside in, so that what lies deeper wins; every folder between a writable one and
//! a guarded path in it is a mount of its own, because a mount cannot be renamed.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use super::places::PolicyPaths;
use super::{STATUS, bridge};
use crate::sandbox::Network;

/// Where the helper and its files are inside.
pub(super) const INSIDE: &str = "/run/kode-ls";
/// What of `/run` programs need: where some systems keep all programs, and the address of the name server.
const OF_RUN: [&str; 4] =
    ["/run/current-system", "/run/opengl-driver", "/run/systemd/resolve/stub-resolv.conf", "/run/resolvconf"];

/// How a path is mounted. Where several apply to one path, the last counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Mount {
    /// Onto itself, to be a mount.
    Pinned,
    Writable,
    ReadOnly,
    HiddenFile,
    HiddenFolder,
}

/// The options that make the namespaces and drop everything else; those that a probe must show to work.
pub(crate) fn namespaces(network: &Network) -> Vec<&'static str> {
    let mut options = vec![
        "--unshare-user",
        "--unshare-pid",
        "--unshare-ipc",
        "--unshare-uts",
        "--unshare-cgroup-try",
        "--disable-userns",
        "--cap-drop",
        "ALL",
        "--new-session",
        "--die-with-parent",
    ];
    match network {
        Network::Off | Network::Allowed { .. } => options.push("--unshare-net"),
        Network::On => {}
    }
    options
}

/// All arguments before the command.
///
/// `empty` is an empty file that stands in for hidden ones; `helper`, the folder `control` and the socket `proxy` are
/// shown inside.
pub(super) fn arguments(
    places: &PolicyPaths,
    held: &[PathBuf],
    network: &Network,
    cwd: &Path,
    [empty, helper, control]: [&Path; 3],
    proxy: Option<&Path>,
) -> Vec<OsString> {
    let mut arguments: Vec<OsString> = namespaces(network).into_iter().map(OsString::from).collect();
    let mut option = |name: &str, paths: &[&OsStr]| {
        arguments.push(name.into());
        arguments.extend(paths.iter().map(|path| (*path).to_owned()));
    };
    option("--ro-bind", &["/".as_ref(), "/".as_ref()]);
    option("--dev", &["/dev".as_ref()]);
    option("--proc", &["/proc".as_ref()]);
    option("--tmpfs", &["/run".as_ref()]);
    for path in OF_RUN {
        option("--ro-bind-try", &[path.as_ref(), path.as_ref()]);
    }
    option("--dir", &[INSIDE.as_ref()]);
    option("--ro-bind", &[helper.as_os_str(), inside("helper").as_os_str()]);
    let status = inside("control").join(STATUS);
    option("--ro-bind", &[control.as_os_str(), inside("control").as_os_str()]);
    option("--bind", &[control.join(STATUS).as_os_str(), status.as_os_str()]);
    if let Some(proxy) = proxy {
        // A socket can be connected to all the same.
        option("--ro-bind", &[proxy.as_os_str(), inside(bridge::SOCKET).as_os_str()]);
    }
    option("--bind", &[places.scratch.as_os_str(), "/tmp".as_ref()]);
    option("--bind", &[places.scratch.as_os_str(), "/var/tmp".as_ref()]);
    let mounts = mounts(places, held);
    // A path sorts after the folders it lies in.
    for (path, mount) in &mounts {
        let path = path.as_os_str();
        match mount {
            Mount::Pinned | Mount::Writable => option("--bind", &[path, path]),
            Mount::ReadOnly => option("--ro-bind", &[path, path]),
            Mount::HiddenFile => option("--ro-bind", &[empty.as_os_str(), path]),
            Mount::HiddenFolder => option("--tmpfs", &[path]),
        }
    }
    for (path, mount) in &mounts {
        if *mount == Mount::HiddenFolder {
            option("--remount-ro", &[path.as_os_str()]);
        }
    }
    option("--remount-ro", &["/run".as_ref()]);
    option("--chdir", &[cwd.as_os_str(), "--".as_ref()]);
    arguments
}

/// A path of the helper inside.
pub(super) fn inside(name: &str) -> PathBuf {
    Path::new(INSIDE).join(name)
}

fn mounts(places: &PolicyPaths, held: &[PathBuf]) -> BTreeMap<PathBuf, Mount> {
    let mut mounts = BTreeMap::new();
    let mut add = |path: &Path, mount: Mount| {
        let entry = mounts.entry(path.to_path_buf()).or_insert(mount);
        *entry = (*entry).max(mount);
    };
    for folder in places.writable.iter().chain([&places.scratch]) {
        add(folder, Mount::Writable);
    }
    for path in &places.hidden {
        // What the user opened as a workspace is to be seen.
        if !places.writable.contains(path) {
            add(path, if path.is_dir() { Mount::HiddenFolder } else { Mount::HiddenFile });
        }
    }
    for path in held {
        add(path, Mount::ReadOnly);
    }
    let fixed: Vec<PathBuf> = held.iter().chain(&places.hidden).cloned().collect();
    for path in fixed {
        for folder in path.ancestors().skip(1).take_while(|folder| places.is_writable(folder)) {
            let is_held = held.iter().chain(&places.hidden).any(|held| folder.starts_with(held));
            if !is_held {
                add(folder, Mount::Pinned);
            }
        }
    }
    mounts
}
