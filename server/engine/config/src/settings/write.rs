//! Writing rules into settings files.
//!
//! Rule: one writer at a time, on the newest text, in one step; everything else in the file stays as it is: unknown keys,
//! order, comments, indentation, line endings. A broken file, or one that leads elsewhere, is never written.

use std::io;

use jsonc_parser::cst::{CstArray, CstNode, CstRootNode};

use super::exclude::exclude;
use super::lock::Lock;
use super::text::{OPTIONS, SettingsText, is_absence};
use super::trust::TrustRequest;
use super::{CONFIG, FOLDERS, LOCAL, OWN_FOLDERS, SHARED, SettingsError, SettingsSources};
use crate::extension::places::XDG_NAME;
use kode_base::atomic;
use kode_base::paths::AbsPath;
use kode_permission::rules::{Behavior, Rule, places};

/// The initial text of a new file.
const NEW_FILE: &str = "{\n  \"permissions\": {}\n}\n";
/// How often a write begins again because the file changed at the last moment.
const ATTEMPTS: usize = 5;

/// Which file a rule is written into.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SettingsScope {
    /// `settings.local.json` in the first workspace folder.
    Local,
    /// `settings.json` in the first workspace folder.
    Project,
    /// `settings.json` of the user.
    User,
}

impl SettingsScope {
    /// The name shown to people.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Local => "local",
            Self::Project => "project",
            Self::User => "user",
        }
    }
}

/// The outcome of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WriteOutcome {
    /// The file.
    pub file: AbsPath,
    /// Whether it was written; not where it already said so.
    pub is_changed: bool,
}

impl SettingsSources {
    /// The file that rules of a scope are written into: `.kode-ls`'s where there is one, else that of the XDG folder where
    /// this folder is there, else `.kode`'s.
    ///
    /// # Errors
    /// [`SettingsError::NoPlace`] without a workspace folder or a home.
    pub fn file(&self, scope: SettingsScope) -> Result<AbsPath, SettingsError> {
        let name = if scope == SettingsScope::Local { LOCAL } else { SHARED };
        let folders: Vec<AbsPath> = match scope {
            SettingsScope::Local | SettingsScope::Project => {
                let root = self.roots.first().ok_or(SettingsError::NoPlace(scope.name()))?;
                FOLDERS.iter().take(OWN_FOLDERS).map(|folder| root.join(folder)).collect()
            }
            SettingsScope::User => self.user_folders.iter().take(OWN_FOLDERS).cloned().collect(),
        };
        let files: Vec<AbsPath> = folders.iter().map(|folder| folder.join(name)).collect();
        let present = files.iter().find(|file| file.as_path().symlink_metadata().is_ok());
        let of_xdg = folders.iter().position(|folder| folder.file_name() == XDG_NAME).map(|at| &files[at]);
        present.or(of_xdg).or(files.last()).cloned().ok_or(SettingsError::NoPlace(scope.name()))
    }

    /// Writes a rule into the file of a scope, and approves it where it has to be. Blocks on the disk.
    ///
    /// # Errors
    /// When the file is broken, leads elsewhere, or cannot be written; it is as before then.
    pub fn add_rule(
        &self,
        scope: SettingsScope,
        behavior: Behavior,
        rule: &Rule,
    ) -> Result<WriteOutcome, SettingsError> {
        rule.check(behavior)
            .map_err(|error| SettingsError::Rule { rule: rule.to_string(), reason: error.to_string() })?;
        let file = self.file(scope)?;
        let mut written = rule.to_string();
        let is_changed = self.change(&file, |text| {
            let list = EditedSettings::new(&file, text)?;
            match list.rules(behavior)?.elements().into_iter().find_map(|node| same(&node, rule)) {
                Some(known) => written = known,
                None => {
                    list.rules(behavior)?.append(rule.to_string().into());
                }
            }
            Ok(list.root.to_string())
        })?;
        if behavior == Behavior::Allow && scope != SettingsScope::User {
            // Unchanged in the file, because that text is approved.
            self.trust().approve([&self.trust_request(&file, behavior, written)])?;
        }
        Ok(WriteOutcome { file, is_changed })
    }

    /// Takes a rule out of a file, however it is spelled there, and takes approvals of it back. Blocks on the disk.
    ///
    /// # Errors
    /// When the file is not ours, broken, leads elsewhere, or cannot be written; it is as before then.
    pub fn remove_rule(
        &self,
        file: &AbsPath,
        behavior: Behavior,
        rule: &Rule,
    ) -> Result<WriteOutcome, SettingsError> {
        let mut removed = Vec::new();
        let is_changed = self.change(file, |text| {
            let list = EditedSettings::new(file, text)?;
            removed.clear();
            for node in list.known_rules(behavior).map(|rules| rules.elements()).unwrap_or_default() {
                if let Some(known) = same(&node, rule) {
                    removed.push(known);
                    node.remove();
                }
            }
            Ok(list.root.to_string())
        })?;
        let trust_requests: Vec<TrustRequest> =
            removed.into_iter().map(|text| self.trust_request(file, behavior, text)).collect();
        if behavior == Behavior::Allow && !trust_requests.is_empty() {
            self.trust().revoke(&trust_requests)?;
        }
        Ok(WriteOutcome { file: file.clone(), is_changed })
    }

    fn trust_request(&self, file: &AbsPath, behavior: Behavior, text: String) -> TrustRequest {
        // `<root>/<folder>/<file>`, as it is loaded: a workspace folder may lie in another.
        let root = file.parent().and_then(|folder| folder.parent());
        TrustRequest {
            root: root.unwrap_or_else(|| file.clone()),
            file: file.clone(),
            key: format!("permissions.{}", behavior.name()),
            text,
        }
    }

    /// Replaces the text of one of our files. Returns whether it was another.
    pub(super) fn change(
        &self,
        file: &AbsPath,
        mut change: impl FnMut(&str) -> Result<String, SettingsError>,
    ) -> Result<bool, SettingsError> {
        let (within, is_user) = self.owner(file)?;
        let failed = |source| SettingsError::Io { file: file.clone(), source };
        let real = self.resolve(file, &within, is_user)?;
        let _lock = Lock::take(&self.state, &real)?;
        for _ in 0..ATTEMPTS {
            // Asked for again under the lock and at each attempt: links may have changed.
            let real = self.resolve(file, &within, is_user)?;
            let read = SettingsText::read(&real).map_err(|reason| broken(file, reason))?;
            let Some(text) = read else {
                let new = change(NEW_FILE)?;
                if new == NEW_FILE {
                    return Ok(false);
                }
                if let Some(folder) = real.parent() {
                    std::fs::create_dir_all(folder.as_path()).map_err(failed)?;
                }
                match atomic::create(real.as_path(), new.as_bytes()) {
                    Err(error) if error.kind() == io::ErrorKind::AlreadyExists => continue,
                    created => {
                        created.map_err(failed)?;
                        if file.file_name() == LOCAL {
                            exclude(&real);
                        }
                        return Ok(true);
                    }
                }
            };
            let new = change(&text.text)?;
            if new == text.text {
                return Ok(false);
            }
            let metadata = match real.as_path().metadata() {
                Ok(metadata) => metadata,
                Err(error) if is_absence(&error) => continue,
                Err(error) => return Err(failed(error)),
            };
            if !atomic::is_writable(real.as_path(), &metadata) {
                return Err(failed(io::ErrorKind::PermissionDenied.into()));
            }
            let old = text.with_bom(&text.text);
            let is_unchanged = || std::fs::read(real.as_path()).is_ok_and(|now| now == old.as_bytes());
            let new = text.with_bom(&new);
            if atomic::replace(real.as_path(), new.as_bytes(), &metadata, is_unchanged).map_err(failed)? {
                return Ok(true);
            }
        }
        Err(SettingsError::Busy { file: file.clone() })
    }

    /// The folder a file of ours must not lead out of, and whether it is the user's.
    fn owner(&self, file: &AbsPath) -> Result<(AbsPath, bool), SettingsError> {
        let own = || FOLDERS.iter().take(OWN_FOLDERS);
        for root in &self.roots {
            let is_one = |name| own().any(|folder| *file == root.join(folder).join(name));
            if is_one(LOCAL) || is_one(SHARED) || is_one(CONFIG) {
                return Ok((root.clone(), false));
            }
        }
        let mut folders = self.user_folders.iter().take(OWN_FOLDERS);
        let folder = folders.find(|folder| *file == folder.join(SHARED) || *file == folder.join(CONFIG));
        folder
            .map(|folder| (folder.clone(), true))
            .ok_or_else(|| SettingsError::NotOurs { file: file.clone() })
    }

    /// Where a file leads. The user's may lead to anywhere in the home folder, where people keep such files together.
    fn resolve(&self, file: &AbsPath, within: &AbsPath, is_user: bool) -> Result<AbsPath, SettingsError> {
        let real = places::real_on_disk(file);
        // A link to nothing cannot be followed, and writing through it would be found out too late.
        let is_dangling = file.as_path().is_symlink() && !file.as_path().exists();
        let home = self.home.as_ref().filter(|_| is_user);
        let folders = [Some(within), home].into_iter().flatten();
        let is_inside = folders.into_iter().any(|folder| real.is_within(&places::real_on_disk(folder)));
        if is_inside && !is_dangling {
            return Ok(real);
        }
        Err(SettingsError::Outside { file: file.clone(), real, within: within.clone() })
    }
}

/// A file's text while it is edited.
struct EditedSettings<'a> {
    file: &'a AbsPath,
    root: CstRootNode,
}

impl<'a> EditedSettings<'a> {
    fn new(file: &'a AbsPath, text: &str) -> Result<Self, SettingsError> {
        let root =
            CstRootNode::parse(text, &OPTIONS).map_err(|error| broken(file, format!("of this: {error}")))?;
        Ok(Self { file, root })
    }

    /// The list of rules of a behavior, which is made if absent.
    fn rules(&self, behavior: Behavior) -> Result<CstArray, SettingsError> {
        let expected = |what: &str| broken(self.file, format!("{what} is something else than it should be"));
        let object = self.root.object_value_or_create().ok_or_else(|| expected("its content"))?;
        let permissions =
            object.object_value_or_create("permissions").ok_or_else(|| expected("`permissions`"))?;
        let is_new = permissions.get(behavior.name()).is_none();
        let name = behavior.name();
        let rules = permissions.array_value_or_create(name).ok_or_else(|| expected(&format!("`{name}`")))?;
        if is_new {
            rules.ensure_multiline();
        }
        Ok(rules)
    }

    fn known_rules(&self, behavior: Behavior) -> Option<CstArray> {
        self.root.object_value()?.object_value("permissions")?.array_value(behavior.name())
    }
}

/// The text of a node that is this rule, however it is spelled.
fn same(node: &CstNode, rule: &Rule) -> Option<String> {
    let text = node.as_string_lit()?.decoded_value().ok()?;
    text.parse::<Rule>().is_ok_and(|known| known == *rule).then_some(text)
}

/// The files of a scope that are ours to write, the strongest first.
pub(super) fn own_files(sources: &SettingsSources, scope: SettingsScope) -> Vec<AbsPath> {
    let root = sources.roots.first();
    let of_root =
        || FOLDERS.iter().take(OWN_FOLDERS).filter_map(move |folder| root.map(|root| root.join(folder)));
    let in_each = |folders: &[AbsPath], names: &[&str]| {
        let files = names.iter().flat_map(|name| folders.iter().map(move |folder| folder.join(name)));
        files.collect::<Vec<_>>()
    };
    match scope {
        SettingsScope::Local => in_each(&of_root().collect::<Vec<_>>(), &[LOCAL]),
        SettingsScope::Project => in_each(&of_root().collect::<Vec<_>>(), &[SHARED, CONFIG]),
        SettingsScope::User => {
            let count = OWN_FOLDERS.min(sources.user_folders.len());
            in_each(&sources.user_folders[..count], &[SHARED, CONFIG])
        }
    }
}

pub(super) fn broken(file: &AbsPath, reason: String) -> SettingsError {
    SettingsError::Broken { file: file.clone(), reason }
}
