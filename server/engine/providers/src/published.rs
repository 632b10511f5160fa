//! The published catalog of models that the user names in `modelCatalog`: a file, or an address with a stored copy.
//!
//! Rule: an address is requested when the user asks for models, and at most once a day. Sessions read the stored copy.

#![expect(clippy::disallowed_methods, reason = "it keeps the published catalog")]

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use jiff::Timestamp;
use parking_lot::Mutex;
use url::Url;

use kode_base::file_moves;
use kode_model::catalog::PublishedCatalog;
use kode_net::http;

/// The folder of stored copies, in the state folder.
const FOLDER: &str = "catalogs";

/// The age at which a stored copy is requested again.
const MAX_AGE: Duration = Duration::from_secs(24 * 60 * 60);

/// The time limit of one request.
const TIMEOUT: Duration = Duration::from_secs(10);

/// The size limit of a catalog, in bytes. The one of models.dev has about 2 MB.
const MAX_BYTES: u64 = 16 << 20;

/// The longest name of a stored copy, in bytes.
const MAX_NAME: usize = 120;

/// The catalog that was parsed last, by the path, size and time of its file.
static NEWEST: Mutex<Option<(Stamp, Arc<PublishedCatalog>)>> = Mutex::new(None);

type Stamp = (PathBuf, u64, SystemTime);

/// Why there is no catalog.
#[derive(Debug, thiserror::Error)]
pub enum PublishedError {
    /// The setting names neither a file nor an address.
    #[error("{0} is neither an absolute path, a path below `~/`, nor an https address")]
    NoPlace(String),
    /// An address has no stored copy yet.
    #[error("{0} has no stored copy yet; `kode-ls models` requests it")]
    NotRequested(String),
    /// The file cannot be read, or the copy cannot be written.
    #[error("{path}: {source}")]
    File {
        /// Which file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// The server did not answer with a catalog.
    #[error("{source_name}: {reason}")]
    Request {
        /// The address.
        source_name: String,
        /// Why.
        reason: String,
    },
    /// It is larger than catalogs are.
    #[error("{0} is larger than {MAX_BYTES} bytes")]
    TooLarge(String),
    /// It is no catalog.
    #[error("{0}")]
    NoCatalog(String),
}

/// Where a catalog is.
enum CatalogLocation {
    File(PathBuf),
    Address { url: Url, copy: PathBuf },
}

impl CatalogLocation {
    fn of(source: &str, home: Option<&Path>, state: &Path) -> Result<Self, PublishedError> {
        let no_place = || PublishedError::NoPlace(source.to_owned());
        if source.contains("://") {
            let url = Url::parse(source).map_err(|_| no_place())?;
            if url.scheme() != "https" && !(url.scheme() == "http" && http::is_loopback(&url)) {
                return Err(no_place());
            }
            let letters = |char: char| if char.is_ascii_alphanumeric() { char } else { '-' };
            let name: String = source.chars().map(letters).take(MAX_NAME).collect();
            return Ok(Self::Address { url, copy: state.join(FOLDER).join(name + ".json") });
        }
        let path = match source.strip_prefix("~/") {
            Some(rest) => home.ok_or_else(no_place)?.join(rest),
            None => PathBuf::from(source),
        };
        if path.is_absolute() { Ok(Self::File(path)) } else { Err(no_place()) }
    }
}

/// Reads the catalog of a file, or the stored copy of an address. `home` is the user's home folder, `state` the folder of
/// the program's state. Blocks.
///
/// # Errors
/// [`PublishedError`].
pub fn load(
    source: &str,
    home: Option<&Path>,
    state: &Path,
) -> Result<Arc<PublishedCatalog>, PublishedError> {
    let place = CatalogLocation::of(source, home, state)?;
    let (CatalogLocation::File(path) | CatalogLocation::Address { copy: path, .. }) = &place;
    let unreadable = |error: std::io::Error| match place {
        CatalogLocation::Address { .. } if error.kind() == std::io::ErrorKind::NotFound => {
            PublishedError::NotRequested(source.to_owned())
        }
        CatalogLocation::File(_) | CatalogLocation::Address { .. } => {
            PublishedError::File { path: path.clone(), source: error }
        }
    };
    let metadata = fs::metadata(path).map_err(unreadable)?;
    if metadata.len() > MAX_BYTES {
        return Err(PublishedError::TooLarge(source.to_owned()));
    }
    let modified = metadata.modified().unwrap_or(SystemTime::UNIX_EPOCH);
    let stamp = (path.clone(), metadata.len(), modified);
    let mut newest = NEWEST.lock();
    if let Some((known, catalog)) = &*newest
        && *known == stamp
    {
        return Ok(Arc::clone(catalog));
    }
    let bytes = fs::read(path).map_err(unreadable)?;
    let catalog = PublishedCatalog::read(&bytes, source).map_err(PublishedError::NoCatalog)?;
    let catalog = Arc::new(catalog.dated(Timestamp::try_from(modified).ok()));
    *newest = Some((stamp, Arc::clone(&catalog)));
    Ok(catalog)
}

/// Requests the catalog of an address, unless its stored copy is younger than a day; whether there is a new copy. A file
/// needs no request.
///
/// # Errors
/// [`PublishedError`]. A copy that is stored already stays.
pub async fn refresh(source: &str, state: &Path) -> Result<bool, PublishedError> {
    let CatalogLocation::Address { url, copy } = CatalogLocation::of(source, Some(Path::new("/")), state)?
    else {
        return Ok(false);
    };
    let age = fs::metadata(&copy).and_then(|copy| copy.modified()).ok().and_then(|time| time.elapsed().ok());
    if age.is_some_and(|age| age < MAX_AGE) {
        return Ok(false);
    }
    let failed = |reason: String| PublishedError::Request { source_name: source.to_owned(), reason };
    let bytes = tokio::time::timeout(TIMEOUT, request(url)).await;
    let bytes = bytes.map_err(|_| failed(format!("no answer within {} s", TIMEOUT.as_secs())))?;
    let bytes = bytes.map_err(failed)?;
    PublishedCatalog::read(&bytes, source).map_err(PublishedError::NoCatalog)?;
    let part = copy.with_extension("part");
    let unwritable = |source| PublishedError::File { path: copy.clone(), source };
    fs::create_dir_all(state.join(FOLDER)).map_err(unwritable)?;
    fs::write(&part, &bytes).and_then(|()| file_moves::rename(&part, &copy)).map_err(unwritable)?;
    Ok(true)
}

async fn request(url: Url) -> Result<Vec<u8>, String> {
    let reason = |error: reqwest::Error| http::causes(&error.without_url());
    let client = http::client(&url).map_err(|error| error.to_string())?;
    let mut answer = client.get(url).send().await.map_err(reason)?;
    if !answer.status().is_success() {
        return Err(format!("the server answered {}", answer.status()));
    }
    let mut bytes = Vec::new();
    while let Some(chunk) = answer.chunk().await.map_err(reason)? {
        bytes.extend_from_slice(&chunk);
        if bytes.len() as u64 > MAX_BYTES {
            return Err(format!("the answer is larger than {MAX_BYTES} bytes"));
        }
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    const CATALOG: &str = r#"{"a": {"models": {"m": {"limit": {"context": 1000, "output": 100}}}}}"#;

    #[test]
    fn a_file_is_read_again_when_it_has_changed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("models.json");
        fs::write(&path, CATALOG).unwrap();
        let load = || load("~/models.json", Some(folder.path()), folder.path());
        let first = load().unwrap();
        assert!(first.read_at.is_some() && Arc::ptr_eq(&first, &load().unwrap()));
        fs::write(&path, CATALOG.replace("\"m\"", "\"m\": {}, \"n\"")).unwrap();
        assert_eq!(load().unwrap().len(), 2);
        fs::write(&path, "no catalog").unwrap();
        assert!(matches!(load(), Err(PublishedError::NoCatalog(_))));
    }

    #[test]
    fn other_places_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        for source in ["models.json", "http://models.example.com/api.json", "ftp://example.com/a", "://"] {
            let error = load(source, None, folder.path()).unwrap_err();
            assert!(matches!(error, PublishedError::NoPlace(_)), "{source}: {error}");
        }
        let error = load("https://models.example.com/api.json", None, folder.path()).unwrap_err();
        assert!(matches!(error, PublishedError::NotRequested(_)), "{error}");
    }
}
