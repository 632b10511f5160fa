//! The arguments of bubblewrap for a policy.
//!
//! Rule: bubblewrap makes the namespaces, the root, and the folders to write in; what lies in them is mounted inside.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use super::mounts::{self, MountStandIns, Mounts};
use super::places::PolicyPaths;
use super::{STATUS, bridge};
use crate::sandbox::Network;

/// Where the helper and its files are inside.
pub(super) const INSIDE: &str = "/run/kode-ls";
/// The part of `/run` that programs need: where some systems keep all programs, and the address of the name server.
const OF_RUN: [&str; 4] =
    ["/run/current-system", "/run/opengl-driver", "/run/systemd/resolve/stub-resolv.conf", "/run/resolvconf"];

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

/// The mounts inside besides the disk.
#[derive(Clone, Copy, Debug)]
pub(super) struct InsidePaths<'a> {
    /// The helper.
    pub(super) helper: &'a Path,
    /// The folder of its files.
    pub(super) control: &'a Path,
    /// The socket of the proxy.
    pub(super) proxy: Option<&'a Path>,
}

/// All arguments before the command. `outside` are the mounts that are made here, with the placeholders for hidden files;
/// without them they are made inside.
pub(super) fn arguments(
    places: &PolicyPaths,
    network: &Network,
    cwd: &Path,
    shown: InsidePaths<'_>,
    outside: Option<(&Mounts, &MountStandIns)>,
) -> Vec<OsString> {
    let InsidePaths { helper, control, proxy } = shown;
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
    let mut writable: Vec<_> = places.writable.iter().chain([&places.scratch]).collect();
    // A path sorts after the folders it lies in.
    writable.sort();
    for folder in writable {
        option("--bind", &[folder.as_os_str(), folder.as_os_str()]);
    }
    match outside {
        Some((mounts, stand_ins)) => arguments.extend(mounts::arguments(mounts, stand_ins)),
        // It is given up before the command is there.
        None => option("--cap-add", &["CAP_SYS_ADMIN".as_ref()]),
    }
    let mut option = |name: &str, paths: &[&OsStr]| {
        arguments.push(name.into());
        arguments.extend(paths.iter().map(|path| (*path).to_owned()));
    };
    option("--remount-ro", &["/run".as_ref()]);
    option("--chdir", &[cwd.as_os_str(), "--".as_ref()]);
    arguments
}

/// A path of the helper inside.
pub(super) fn inside(name: &str) -> PathBuf {
    Path::new(INSIDE).join(name)
}
