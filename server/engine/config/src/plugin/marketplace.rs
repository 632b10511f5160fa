//! Marketplaces: lists of plugins, and where each of them and the list itself is to be had.
//!
//! Rule: a list is data of others. An entry that cannot be used disables itself alone and is reported; an address is one of
//! the few forms known here, and nothing is fetched by reading it.

use jsonc_parser::ast::{Object, Value as Node};
use jsonc_parser::common::Ranged;
use serde_json::{Value, json};

use super::document::{self, PluginDocument};
use super::store::{download, npm};
use super::{FOLDERS, check_name};
use kode_base::paths::{AbsPath, real_path};
use kode_permission::rules::{ProblemSeverity, SettingsProblem};

/// The name of the file.
pub(super) const FILE: &str = "marketplace.json";

/// The most plugins of a marketplace that are checked.
const MAX_PLUGINS: usize = 2_000;

/// The most characters of an address.
const MAX_ADDRESS: usize = 2_000;

/// Where addresses without a host lead.
const GITHUB: &str = "https://github.com";

/// How the path of an address ends that is a list and no repository.
const LIST: &str = ".json";

/// Where something is to be had.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PluginSource {
    /// A folder of the marketplace itself, by its path in it.
    Inside(String),
    /// A folder on this machine.
    Directory(AbsPath),
    /// A file with a list, on this machine.
    File(AbsPath),
    /// A git repository.
    Git {
        /// Its address.
        address: String,
        /// A branch, a tag or a commit; what the repository says when `None`.
        reference: Option<String>,
        /// The folder in it; the whole when `None`.
        folder: Option<String>,
    },
    /// A list at an address of the web.
    Web(String),
    /// A package of an npm registry.
    Npm {
        /// Its name, with its scope if it has one.
        package: String,
        /// A version, a tag or a range; the newest release when `None`.
        version: Option<String>,
        /// The registry's address; the user's when `None`.
        registry: Option<String>,
    },
}

/// A list of plugins.
#[derive(Clone, Debug, PartialEq)]
pub struct Marketplace {
    /// Its name.
    pub name: String,
    /// Its maintainer; may be empty.
    pub owner: String,
    /// The plugins, in its order.
    pub plugins: Vec<PluginOffer>,
    /// The folder that paths in it begin from.
    pub root: AbsPath,
}

/// A plugin that a marketplace offers.
#[derive(Clone, Debug, PartialEq)]
pub struct PluginOffer {
    /// Its name.
    pub name: String,
    /// Its purpose; may be empty.
    pub description: String,
    /// Its version, if the marketplace says one.
    pub version: Option<String>,
    /// Where it is to be had, or why it cannot be.
    pub source: Result<PluginSource, String>,
    /// All that the marketplace says of it.
    pub said: Value,
}

impl PluginSource {
    /// Reads an address as people write it: a folder, a file, the address of a list (its path ends in `.json`),
    /// `owner/repository`, or the address of a git repository; `#` and a branch, a tag or a commit behind the last two. Relative
    /// paths are relative to `folder`.
    ///
    /// # Errors
    /// The error text, without a period.
    pub fn parse(text: &str, folder: &AbsPath) -> Result<Self, String> {
        let path = match text.strip_prefix("~/").zip(std::env::home_dir()) {
            Some((rest, home)) => home.join(rest),
            None => folder.join(text).into(),
        };
        if let Some(path) = real_path(path).ok().and_then(|real| AbsPath::new(real).ok()) {
            return Ok(if path.as_path().is_dir() { Self::Directory(path) } else { Self::File(path) });
        }
        if let Some(web) = Self::web(text) {
            return web;
        }
        let (address, reference) = match text.split_once('#') {
            Some((address, reference)) => (address, Some(reference.to_owned())),
            None => (text, None),
        };
        let is_repository = |text: &str| {
            let part = |part: &str| check_name(part).is_ok();
            text.split_once('/').is_some_and(|(owner, name)| part(owner) && part(name))
        };
        let address =
            if is_repository(address) { format!("{GITHUB}/{address}.git") } else { address.to_owned() };
        Self::git(address, reference, None)
    }

    /// Reads what a list or a setting says of where something is.
    ///
    /// # Errors
    /// Why that cannot be used, without a period.
    pub fn read(value: &Value) -> Result<Self, String> {
        let text = |name: &str| value.get(name).and_then(Value::as_str).map(str::to_owned);
        let needed = |name: &str| text(name).ok_or_else(|| format!("its source has no `{name}`"));
        let path = |name: &str| {
            let path = needed(name)?;
            AbsPath::new(&path).map_err(|_| format!("`{path}` is not an absolute path"))
        };
        // A commit is meant before the branch that it is on.
        let reference = || text("sha").or_else(|| text("ref"));
        match (value, text("source").as_deref()) {
            (Value::String(inside), _) => Ok(Self::Inside(inside.clone())),
            (_, Some("github")) => {
                Self::git(format!("{GITHUB}/{}.git", needed("repo")?), reference(), text("path"))
            }
            (_, Some("git" | "url" | "git-subdir")) => {
                let address = needed("url")?;
                Self::web(&address).unwrap_or_else(|| Self::git(address, reference(), text("path")))
            }
            (_, Some("npm")) => {
                let (package, version, registry) = (needed("package")?, text("version"), text("registry"));
                npm::check_name(&package)?;
                registry.as_deref().map(download::check).transpose()?;
                Ok(Self::Npm { package, version, registry })
            }
            (_, Some("directory" | "local")) => path("path").map(Self::Directory),
            (_, Some("file")) => path("path").map(Self::File),
            (_, Some(other)) => Err(format!("sources of the kind `{other}` are not fetched here")),
            (_, None) => Err("its source is neither a path nor an object with `source`".to_owned()),
        }
    }

    /// The list at an address; `None` where the address is not that of a list.
    fn web(address: &str) -> Option<Result<Self, String>> {
        let is_list = address.starts_with("http") && address.split(['?', '#']).next()?.ends_with(LIST);
        is_list.then(|| download::check(address).map(|url| Self::Web(url.into())))
    }

    /// The same, if a marketplace can be had there.
    ///
    /// # Errors
    /// That none can, without a period.
    pub fn of_marketplace(self) -> Result<Self, String> {
        match self {
            Self::Npm { .. } => Err("a marketplace is not fetched from npm".to_owned()),
            source => Ok(source),
        }
    }

    /// The same, if a plugin can be had there.
    ///
    /// # Errors
    /// That none can, without a period.
    fn of_plugin(self) -> Result<Self, String> {
        match self {
            Self::Web(address) => Err(format!("`{address}` is a list and no plugin")),
            source => Ok(source),
        }
    }

    fn git(address: String, reference: Option<String>, folder: Option<String>) -> Result<Self, String> {
        let is_plain = |text: &str| {
            !text.is_empty()
                && text.len() <= MAX_ADDRESS
                && !text.starts_with('-')
                && !text.contains(|char: char| char.is_whitespace() || char.is_control())
        };
        let has_scheme = ["https://", "ssh://", "file:///"].iter().any(|scheme| address.starts_with(scheme));
        let is_short_ssh = !address.contains("://")
            && address.split_once(':').is_some_and(|(host, _)| host.contains('@') && !host.contains('/'));
        if !is_plain(&address) || !(has_scheme || is_short_ssh) {
            return Err(format!(
                "`{address}` is neither there nor the address of a git repository (`https://`, `ssh://`, `file://`)"
            ));
        }
        if let Some(reference) = reference.as_ref().filter(|reference| !is_plain(reference)) {
            return Err(format!("`{reference}` cannot be a branch, a tag or a commit"));
        }
        Ok(Self::Git { address, reference, folder })
    }

    /// The same as a list or a record says it.
    #[must_use]
    pub fn to_value(&self) -> Value {
        match self {
            Self::Inside(path) => json!(path),
            Self::Directory(path) => json!({ "source": "directory", "path": path }),
            Self::File(path) => json!({ "source": "file", "path": path }),
            Self::Git { address, reference, folder } => {
                json!({ "source": "git", "url": address, "ref": reference, "path": folder })
            }
            Self::Web(address) => json!({ "source": "url", "url": address }),
            Self::Npm { package, version, registry } => {
                json!({ "source": "npm", "package": package, "version": version, "registry": registry })
            }
        }
    }

    /// The same as people write it.
    #[must_use]
    pub fn shown(&self) -> String {
        match self {
            Self::Inside(path) | Self::Web(path) => path.clone(),
            Self::Npm { package, version: Some(version), .. } => format!("{package}@{version}"),
            Self::Npm { package, version: None, .. } => package.clone(),
            Self::Directory(path) | Self::File(path) => path.to_string(),
            Self::Git { address, reference, .. } => {
                let short = address.strip_prefix(GITHUB).and_then(|rest| rest.strip_suffix(".git"));
                let address = short.map_or(address.as_str(), |short| short.trim_start_matches('/'));
                reference.as_ref().map_or(address.to_owned(), |reference| format!("{address}#{reference}"))
            }
        }
    }
}

impl Marketplace {
    /// Reads the list in a folder, or the list that a file is. `None` where the list is missing or invalid, which is reported
    /// then. Blocks on the disk.
    #[must_use]
    pub fn read(place: &AbsPath, problems: &mut Vec<SettingsProblem>) -> Option<Self> {
        let (file, root) = match place.as_path().is_file() {
            true => {
                let folder = place.parent()?;
                let is_usual = FOLDERS.contains(&folder.file_name().as_str());
                (place.clone(), folder.parent().filter(|_| is_usual).unwrap_or(folder))
            }
            false => {
                let mut files = FOLDERS.iter().map(|folder| place.join(folder).join(FILE));
                (files.find(|file| file.as_path().symlink_metadata().is_ok())?, place.clone())
            }
        };
        document::read(&file, &root, problems, |document, object| take(document, object, &root))?
    }

    /// The plugin of that name.
    #[must_use]
    pub fn find(&self, name: &str) -> Option<&PluginOffer> {
        self.plugins.iter().find(|offer| offer.name == name)
    }
}

fn take(document: &mut PluginDocument<'_>, object: &Object<'_>, root: &AbsPath) -> Option<Marketplace> {
    let said = crate::settings::json(&Node::Object(object.clone()));
    let text = |value: &Value, name: &str| value.get(name).and_then(Value::as_str).map(str::to_owned);
    let name = text(&said, "name").ok_or_else(|| "it has no `name`".to_owned());
    let name = match name.and_then(|name| check_name(&name).map(|()| name)) {
        Ok(name) => name,
        Err(reason) => {
            document.report(
                ProblemSeverity::Error,
                object.range(),
                format!("This marketplace is not used: {reason}."),
            );
            return None;
        }
    };
    let owner = text(&said["owner"], "name").unwrap_or_default();
    let base = text(&said["metadata"], "pluginRoot").unwrap_or_default();
    let mut plugins: Vec<PluginOffer> = Vec::new();
    let listed = object.get_array("plugins").map(|list| list.elements.as_slice()).unwrap_or_default();
    for node in listed.iter().take(MAX_PLUGINS) {
        let said = crate::settings::json(node);
        let name = text(&said, "name").ok_or_else(|| "it has no `name`".to_owned());
        let name = name.and_then(|name| check_name(&name).map(|()| name)).and_then(|name| {
            let is_known = plugins.iter().any(|known| known.name == name);
            if is_known { Err(format!("there is a plugin `{name}` before it")) } else { Ok(name) }
        });
        match name {
            Ok(name) => plugins.push(PluginOffer {
                name,
                description: text(&said, "description").unwrap_or_default(),
                version: text(&said, "version"),
                source: PluginSource::read(&said["source"]).and_then(PluginSource::of_plugin).map(|source| {
                    match source {
                        PluginSource::Inside(path) if !base.is_empty() && !path.starts_with("./") => {
                            PluginSource::Inside(format!("{}/{path}", base.trim_end_matches('/')))
                        }
                        source => source,
                    }
                }),
                said,
            }),
            Err(reason) => {
                document.report(
                    ProblemSeverity::Warning,
                    node.range(),
                    format!("This plugin is left out: {reason}."),
                );
            }
        }
    }
    Some(Marketplace { name, owner, plugins, root: root.clone() })
}
