//! Fetching a package of an npm registry.
//!
//! Rule: nothing is unpacked before its bytes are those that the registry's digest represents, and no script of a package
//! ever runs. Which registry is asked is set by the source itself or by the user, never by a project.

#![expect(clippy::disallowed_methods, reason = "the npm configuration names variables")]

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::io;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use semver::{Version, VersionReq};
use serde::Deserialize;
use sha1::Sha1;
use sha2::{Digest, Sha512};

use super::{StoreError, download, unpack};
use crate::plugin::tree;
use kode_base::paths::AbsPath;
use kode_base::{blocking, regular};

/// The default registry.
const DEFAULT: &str = "https://registry.npmjs.org";

/// The variables that name another, and the file of the user that does.
const VARIABLES: [&str; 2] = ["npm_config_registry", "NPM_CONFIG_REGISTRY"];
const FILE: &str = ".npmrc";

/// The most bytes of that file.
const MAX_FILE: u64 = 1 << 20;

/// The requested form: all versions in the short form, where the registry has one.
const DOCUMENT: &str = "application/vnd.npm.install-v1+json, application/json;q=0.8";
const TARBALL: &str = "application/octet-stream, */*;q=0.5";

/// The most bytes of a document with all versions of a package.
const MAX_DOCUMENT: usize = 32 << 20;

/// The most bytes of a package before it is unpacked.
const MAX_TARBALL: usize = tree::MAX_BYTES as usize;

/// The version that is meant where none is named.
const LATEST: &str = "latest";

/// The data of a registry about a package.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct PackageDocument {
    #[serde(rename = "dist-tags")]
    tags: BTreeMap<String, String>,
    versions: BTreeMap<String, PackageRelease>,
}

#[derive(Clone, Debug, Deserialize)]
struct PackageRelease {
    dist: PackageArchive,
}

/// The file of a version, and what represents its bytes.
#[derive(Clone, Debug, Deserialize)]
struct PackageArchive {
    tarball: String,
    integrity: Option<String>,
    shasum: Option<String>,
}

/// Fetches a package into a folder that is not there yet, and says which version it is. `wanted` is a version, a tag or a range;
/// the newest release is meant without it.
///
/// # Errors
/// [`StoreError::Fetch`] and [`StoreError::Unusable`].
pub(super) async fn fetch(
    package: &str,
    wanted: Option<&str>,
    registry: Option<&str>,
    into: &AbsPath,
) -> Result<String, StoreError> {
    let unusable = |reason: String| StoreError::Unusable { what: format!("the package `{package}`"), reason };
    let registry = match registry {
        Some(registry) => registry.to_owned(),
        None => {
            let package = package.to_owned();
            blocking(move || registry_of_user(&package)).await.map_err(unusable)?
        }
    };
    let address = format!("{}/{}", registry.trim_end_matches('/'), package.replace('/', "%2f"));
    let document = download::fetch(&address, DOCUMENT, MAX_DOCUMENT).await?;
    let document: PackageDocument = serde_json::from_slice(&document).map_err(|error| StoreError::Fetch {
        address,
        reason: format!("its entry in the registry cannot be read: {error}"),
    })?;
    let (version, archive) = document.choose(wanted).map_err(unusable)?;
    let bytes = download::fetch(&archive.tarball, TARBALL, MAX_TARBALL).await?;
    let (what, into) = (format!("{package}@{version}"), into.clone());
    let unpacked = blocking(move || {
        archive.check(&bytes)?;
        unpack::unpack(&bytes, into.as_path())
    });
    unpacked
        .await
        .map_err(|reason| StoreError::Unusable { what: format!("the package `{what}`"), reason })?;
    Ok(version)
}

/// Whether something may be the name of a package: it becomes a part of an address.
///
/// # Errors
/// That it may not, without a period.
pub(in crate::plugin) fn check_name(name: &str) -> Result<(), String> {
    let part = |part: &str| {
        let fits = |char: char| char.is_ascii_alphanumeric() || "-_.~".contains(char);
        part.starts_with(|char: char| char.is_ascii_alphanumeric() || "-~".contains(char))
            && part.chars().all(fits)
    };
    let is_name = match name.strip_prefix('@').map(|scoped| scoped.split_once('/')) {
        Some(Some((scope, name))) => part(scope) && part(name),
        Some(None) => false,
        None => part(name),
    };
    if is_name && name.len() <= 214 { Ok(()) } else { Err(format!("`{name}` is no name of a package")) }
}

/// The registry that the user means for a package.
fn registry_of_user(package: &str) -> Result<String, String> {
    let file = std::env::home_dir().map(|home| home.join(FILE));
    let text = file.as_deref().map(|file| (file, regular::read_text(file, MAX_FILE)));
    let text = match text {
        Some((_, Ok(text))) => text,
        Some((file, Err(error))) if error.kind() != io::ErrorKind::NotFound => {
            return Err(format!("{} cannot be read: {error}", file.display()));
        }
        Some((_, Err(_))) | None => String::new(),
    };
    registry_of(package, &text, &|name| std::env::var(name).ok())
}

/// The registry for a package by a file of settings and by variables: that of its scope goes before that of all others.
fn registry_of(
    package: &str,
    file: &str,
    variable: &dyn Fn(&str) -> Option<String>,
) -> Result<String, String> {
    let of_file = |wanted: &str| {
        let lines = file.lines().map(str::trim).filter(|line| !line.starts_with([';', '#']));
        let mut values =
            lines.filter_map(|line| line.split_once('=')).filter(|(name, _)| name.trim() == wanted);
        // The last one counts.
        values.next_back().map(|(_, value)| value.trim().trim_matches(['"', '\'']).to_owned())
    };
    let scope = package.split_once('/').map(|(scope, _)| format!("{scope}:registry"));
    let of_variables = || VARIABLES.iter().find_map(|name| variable(name)).filter(|value| !value.is_empty());
    let said = scope.and_then(|scope| of_file(&scope)).or_else(of_variables).or_else(|| of_file("registry"));
    let Some(said) = said else { return Ok(DEFAULT.to_owned()) };
    let expanded = kode_base::variables::expand(&said, variable).complete();
    let address =
        expanded.map_err(|name| format!("its registry names the variable `{name}`, which is not set"))?;
    download::check(&address).map_err(|reason| format!("its registry cannot be asked: {reason}"))?;
    Ok(address)
}

impl PackageDocument {
    /// The version that is wanted.
    fn choose(mut self, wanted: Option<&str>) -> Result<(String, PackageArchive), String> {
        let wanted = wanted.map_or(LATEST, str::trim);
        let found = match self.versions.contains_key(wanted) {
            true => Some(wanted.to_owned()),
            false => match range(wanted) {
                Some(range) => self.newest(&range),
                None => self.tags.remove(wanted),
            },
        };
        let release = found.and_then(|version| self.versions.remove_entry(&version));
        let (version, release) =
            release.ok_or_else(|| format!("the registry has no version of it that `{wanted}` fits"))?;
        Ok((version, release.dist))
    }

    fn newest(&self, range: &[VersionReq]) -> Option<String> {
        let versions = self.versions.keys().filter_map(|text| Some((Version::parse(text).ok()?, text)));
        let fitting = versions.filter(|(version, _)| range.iter().any(|range| range.matches(version)));
        fitting.max().map(|(_, text)| text.clone())
    }
}

impl PackageArchive {
    /// Whether these are the bytes that the registry means.
    fn check(&self, bytes: &[u8]) -> Result<(), String> {
        let words = self.integrity.iter().flat_map(|integrity| integrity.split_whitespace());
        let said: Vec<&str> = words.filter_map(|word| word.strip_prefix("sha512-")).collect();
        let is_same = match (said.as_slice(), &self.shasum) {
            ([], None) => return Err("the registry gives no digest of it".to_owned()),
            ([], Some(said)) => {
                let found: String = Sha1::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect();
                said.eq_ignore_ascii_case(&found)
            }
            (said, _) => {
                let found = BASE64_STANDARD.encode(Sha512::digest(bytes));
                said.iter().any(|said| said.split('?').next() == Some(&found))
            }
        };
        if is_same { Ok(()) } else { Err("its content does not match the registry's digest".to_owned()) }
    }
}

/// The alternatives of a range as npm writes them; `None` for an invalid one.
fn range(text: &str) -> Option<Vec<VersionReq>> {
    text.split("||").map(alternative).collect()
}

fn alternative(text: &str) -> Option<VersionReq> {
    let words: Vec<&str> = text.split_whitespace().collect();
    if let [low, "-", high] = words.as_slice() {
        return VersionReq::parse(&format!(">={}, <={}", plain(low), plain(high))).ok();
    }
    let mut comparators = Vec::new();
    let mut operator = "";
    for word in words {
        let split = word.find(|char: char| !"<>=^~".contains(char)).unwrap_or(word.len());
        let (said, version) = word.split_at(split);
        // An operator may stand apart from its version.
        operator = if said.is_empty() { operator } else { said };
        if !version.is_empty() {
            comparators.push(comparator(operator, plain(version)));
            operator = "";
        }
    }
    if !operator.is_empty() {
        return None;
    }
    match comparators.is_empty() {
        true => Some(VersionReq::STAR),
        false => VersionReq::parse(&comparators.join(", ")).ok(),
    }
}

/// A version alone is that very one here, and not the least of those that go with it.
fn comparator(operator: &str, version: &str) -> String {
    match operator {
        _ if matches!(version, "*" | "x" | "X") => "*".to_owned(),
        "" => format!("={version}"),
        "~>" => format!("~{version}"),
        operator => format!("{operator}{version}"),
    }
}

fn plain(version: &str) -> &str {
    version.strip_prefix('v').unwrap_or(version)
}
