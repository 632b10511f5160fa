//! What the settings say about permissions, as the gate takes it.
//!
//! Rule: files are looked at before every use and read when one has changed; a change that cannot be read in full makes
//! nothing looser. Whoever asks may wait for the disk, so nobody asks on a thread that answers clients.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::Value;

use super::effective::{Effective, effective};
use super::{
    Change, Editor, Scope as FileScope, SensitiveFile, SetError, Settings, SettingsSources, Severity,
    Sourced, TrustState, Values, Wish, Withheld,
};
use crate::engine::Policies;
use crate::model::models::{ModelSources, ProfileLayer};
use crate::paths::AbsPath;
use crate::permission::gate::Confinement;
use crate::permission::policy::{Beginning, KeepError, Policy, PolicySource};
use crate::permission::rules::{Behavior, PlacedRule, Places, Problem, Rule, Rules};
use crate::permission::shell::CommandPattern;
use crate::permission::{Scope, Sensitive, Sensitivity};
use crate::plugin::PluginId;
use crate::plugin::installed::InstalledPlaces;
use crate::preferences::Preferences;
use crate::sandbox::secrets::places;
use crate::sandbox::{HostPattern, Limits, Network, Sandbox, SandboxOptions, detect};

/// What policies are made from besides the settings files.
#[derive(Clone, Debug)]
pub struct PolicyOptions {
    /// The home folder.
    pub home: Option<AbsPath>,
    /// The folder for the product's state.
    pub state: AbsPath,
    /// The program that can be started as the sandbox's helper: the server itself.
    pub helper: PathBuf,
    /// Rules from the command line.
    pub command_line: Vec<(Behavior, String)>,
    /// What the editor says; nothing where there is none.
    pub editor: Editor,
}

/// Policies by workspace, from settings files.
#[derive(Debug)]
pub struct SettingsPolicies(PolicyOptions);

impl SettingsPolicies {
    /// Policies made with these options. Nothing is read yet.
    #[must_use]
    pub fn new(options: PolicyOptions) -> Self {
        Self(options)
    }

    /// The policy of one workspace.
    #[must_use]
    pub fn of_workspace(&self, roots: &[AbsPath]) -> SettingsPolicy {
        SettingsPolicy::new(self.0.clone(), roots)
    }

    /// What models are made from: what `own` says before the settings of the user and the administrator, and those before
    /// what other agents' files say. Reads the files.
    #[must_use]
    pub fn models(&self, own: ProfileLayer) -> ModelSources {
        let sources = self.0.sources(&[]);
        sources.load().values.models.sources(own, sources.imported_models())
    }

    /// What the editor says.
    #[must_use]
    pub fn editor(&self) -> &Editor {
        &self.0.editor
    }

    /// The files that the settings of a workspace, or of none, depend on, there or not. Reads the files.
    #[must_use]
    pub fn watched(&self, roots: &[AbsPath]) -> Vec<AbsPath> {
        let sources = self.0.sources(roots);
        let named: Vec<_> = sources.load().named.into_iter().map(|(file, _)| file).collect();
        sources.watched().chain(named).collect()
    }

    /// See [`Settings::cleanup_days`], for the user and the administrator. Reads the files.
    #[must_use]
    pub fn cleanup_days(&self) -> Option<u32> {
        self.0.sources(&[]).load().cleanup_days()
    }

    /// Where the user's plugins are.
    #[must_use]
    pub fn plugins(&self) -> InstalledPlaces {
        self.0.sources(&[]).plugins()
    }

    /// What the settings of the user and the administrator say, whatever the workspace. Reads the files.
    #[must_use]
    pub fn values(&self) -> Values {
        self.0.sources(&[]).load().values
    }
}

impl PolicyOptions {
    fn sources(&self, roots: &[AbsPath]) -> SettingsSources {
        let environment = |name: &str| std::env::var_os(name);
        let mut sources =
            SettingsSources::new(roots.to_vec(), self.home.clone(), self.state.clone(), &environment);
        sources.command_line.clone_from(&self.command_line);
        sources.with_editor(self.editor.clone())
    }
}

impl Policies for SettingsPolicies {
    fn of(&self, roots: &[AbsPath]) -> Arc<dyn PolicySource> {
        // What the machine offers is found out while the user types; the first command then need not wait.
        std::thread::spawn(|| {
            detect();
        });
        Arc::new(self.of_workspace(roots))
    }

    fn beginning(&self, roots: &[AbsPath]) -> Beginning {
        let values = self.0.sources(roots).load().values;
        Beginning {
            mode: values.default_mode.map(|mode| mode.value),
            is_bypass_disabled: values.is_bypass_disabled,
            model: values.stated.model,
            pointers: values.models.pointers,
        }
    }
}

/// The policy of one workspace, from settings files.
#[derive(Debug)]
pub struct SettingsPolicy {
    options: PolicyOptions,
    sources: SettingsSources,
    /// What other files of the workspace ask for.
    beside: Vec<Wish>,
    /// Held while the files are looked at; whoever takes it may wait for the disk.
    looking: Mutex<()>,
    /// As they were looked at last. Never held while a file is looked at.
    loaded: Mutex<Option<Arc<Loaded>>>,
}

#[derive(Debug)]
struct Loaded {
    settings: Settings,
    policy: Arc<Policy>,
}

impl SettingsPolicy {
    /// The same with what other files of the workspace ask for, such as skills, so that the user is shown all of it at once.
    #[must_use]
    pub fn with_wishes(mut self, wishes: Vec<Wish>) -> Self {
        self.beside = wishes;
        self
    }

    fn new(options: PolicyOptions, roots: &[AbsPath]) -> Self {
        let sources = options.sources(roots);
        let (looking, loaded) = Default::default();
        Self { options, sources, beside: Vec::new(), looking, loaded }
    }

    /// The settings as they are now.
    #[must_use]
    pub fn settings(&self) -> Settings {
        self.fresh().settings.clone()
    }

    /// What counts, key by key, with the place it comes from.
    #[must_use]
    pub fn effective(&self) -> Vec<Effective> {
        effective(&self.fresh().settings)
    }

    /// Writes a value into the file of a scope, or takes the key out of it. Blocks on the disk.
    ///
    /// # Errors
    /// [`SetError`]; the file is as it was before then.
    pub fn set(&self, scope: FileScope, path: &str, value: Option<&Value>) -> Result<Change, SetError> {
        self.sources.set(scope, path, value)
    }

    /// The settings as they are now. Blocks on the disk.
    fn fresh(&self) -> Arc<Loaded> {
        let _looking = lock(&self.looking);
        let known = lock(&self.loaded).clone();
        if let Some(known) = known.filter(|known| !self.sources.is_stale(&known.settings)) {
            return known;
        }
        let loaded = Arc::new(self.load());
        *lock(&self.loaded) = Some(Arc::clone(&loaded));
        loaded
    }

    fn load(&self) -> Loaded {
        let mut settings = self.sources.load();
        for wish in &self.beside {
            let asked = Withheld::of_file(wish.clone());
            match self.sources.trust().is_approved(wish) {
                true => settings.approved.push(asked),
                false => settings.withheld.push(asked),
            }
        }
        let policy = Arc::new(self.policy(&settings));
        Loaded { settings, policy }
    }

    fn policy(&self, settings: &Settings) -> Policy {
        let values = &settings.values;
        let mut problems = settings.problems.clone();
        let (confinement, sandbox) = self.confinement(settings, &mut problems);
        let lost = settings.has_lost_protection().then(|| {
            let broken = problems.iter().find(|problem| problem.severity == Severity::Error);
            broken.map(|problem| problem.message.clone()).unwrap_or_default()
        });
        Policy {
            rules: settings.rules.clone(),
            order: values.order.unwrap_or_default(),
            sensitive: self.sensitive(&values.sensitive_files),
            confinement,
            sandbox,
            additional: values.additional_directories.iter().map(|folder| folder.value.clone()).collect(),
            default_mode: values.default_mode.as_ref().map(|mode| mode.value),
            is_bypass_disabled: values.is_bypass_disabled,
            preferences: Preferences {
                pointers: values.models.pointers.clone(),
                ..values.stated.preferences()
            },
            lost,
            withheld: settings.withheld.clone(),
            to_ask: self.sources.trust().to_ask(settings),
            contents: settings.contents().to_vec(),
            declared: Arc::new(settings.declared.clone()),
            problems,
        }
    }

    /// What is sensitive: by these lines, by the built-in table, and all that the sandbox hides from commands.
    fn sensitive(&self, lines: &[Sourced<SensitiveFile>]) -> Sensitive {
        let hidden = places(self.options.home.as_ref(), &self.options.state);
        self.by_name(lines).guarding(hidden)
    }

    fn by_name(&self, lines: &[Sourced<SensitiveFile>]) -> Sensitive {
        let Some(cwd) = self.sources.roots.first().filter(|_| !lines.is_empty()) else {
            return Sensitive::default();
        };
        let rule = |line: &Sourced<SensitiveFile>| PlacedRule {
            behavior: match line.value.level {
                Sensitivity::None => Behavior::Allow,
                Sensitivity::Medium => Behavior::Ask,
                Sensitivity::High => Behavior::Deny,
            },
            rule: Rule::read(line.value.pattern.clone()),
            source: line.source.clone(),
            root: line.root.clone(),
        };
        let places = Places::on_disk(cwd, self.options.home.as_ref());
        Sensitive::with(Rules::new(lines.iter().map(rule).collect(), &places).0)
    }

    /// What holds commands back by these settings.
    fn confinement(
        &self,
        settings: &Settings,
        problems: &mut Vec<Problem>,
    ) -> (Confinement, Option<Arc<Sandbox>>) {
        let wanted = &settings.values.sandbox;
        if wanted.enabled == Some(false) {
            return (Confinement::Off, None);
        }
        let missing = |why: String| (Confinement::Missing(why), None);
        let kind = match detect().best() {
            Ok(kind) => kind,
            Err(why) => return missing(why),
        };
        let folders = |paths: &[super::Sourced<String>]| {
            paths.iter().filter_map(|path| self.folder(&path.value, path.root.as_ref())).collect::<Vec<_>>()
        };
        let mut writable = self.sources.roots.clone();
        writable.extend(settings.values.additional_directories.iter().map(|folder| folder.value.clone()));
        writable.extend(folders(&wanted.allow_write));
        let options = SandboxOptions {
            helper: self.options.helper.clone(),
            kind,
            writable,
            read_only: folders(&wanted.deny_write),
            hidden: folders(&wanted.deny_read),
            home: self.options.home.clone(),
            state: self.options.state.clone(),
            network: network(wanted, problems),
            limits: Limits::default(),
        };
        let excluded = wanted.excluded_commands.iter().filter_map(|pattern| {
            pattern
                .value
                .parse::<CommandPattern>()
                .inspect_err(|error| {
                    problems.push(Problem {
                        file: pattern.source.file.clone(),
                        place: pattern.source.place,
                        severity: Severity::Warning,
                        message: format!(
                            "`{}` in sandbox.excludedCommands is ignored: {error}.",
                            pattern.value
                        ),
                    });
                })
                .ok()
        });
        let excluded = excluded.collect();
        match Sandbox::new(options) {
            Ok(sandbox) => {
                let confinement = Confinement::Sandbox {
                    runs_unasked: wanted.auto_allow_bash.unwrap_or(false),
                    may_leave: wanted.allow_unsandboxed.unwrap_or(true),
                    excluded,
                };
                (confinement, Some(Arc::new(sandbox.giving(settings.declared.variables()))))
            }
            Err(error) => missing(format!("there is no place for its temporary files: {error}")),
        }
    }

    fn folder(&self, text: &str, root: Option<&AbsPath>) -> Option<AbsPath> {
        if let Some(rest) = text.strip_prefix("~/") {
            return self.options.home.as_ref().map(|home| home.join(rest));
        }
        if let Some(rest) = text.strip_prefix("//") {
            return AbsPath::new(format!("/{rest}")).ok();
        }
        match root {
            Some(root) => Some(root.join(text.trim_start_matches("./"))),
            None => AbsPath::new(text).ok(),
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Which network commands get. An entry that cannot be read allows nothing, and where one that denies cannot be read,
/// nothing is allowed.
fn network(wanted: &super::Sandbox, problems: &mut Vec<Problem>) -> Network {
    let mut read = |entries: &[Sourced<String>], severity: Severity, consequence: &str| {
        let patterns = entries.iter().filter_map(|entry| match entry.value.parse::<HostPattern>() {
            Ok(pattern) => Some(pattern),
            Err(error) => {
                problems.push(Problem {
                    file: entry.source.file.clone(),
                    place: entry.source.place,
                    severity,
                    message: format!("`{}` in sandbox.network{consequence}: {error}.", entry.value),
                });
                None
            }
        });
        patterns.collect::<Vec<_>>()
    };
    let hosts = read(&wanted.allowed_domains, Severity::Warning, ".allowedDomains is ignored");
    let denied = read(
        &wanted.denied_domains,
        Severity::Error,
        ".deniedDomains cannot be read, so commands have no network",
    );
    if hosts.is_empty() || denied.len() < wanted.denied_domains.len() {
        return Network::Off;
    }
    Network::Allowed { hosts, denied, local: wanted.allow_local_binding.unwrap_or(false) }
}

impl PolicySource for SettingsPolicy {
    fn current(&self) -> Arc<Policy> {
        Arc::clone(&self.fresh().policy)
    }

    fn can_keep(&self) -> bool {
        true
    }

    fn keep(&self, scope: Scope, behavior: Behavior, rule: &Rule) -> Result<AbsPath, KeepError> {
        let scope = match scope {
            Scope::User => FileScope::User,
            Scope::Project => FileScope::Local,
            Scope::Once | Scope::Session => return Err(KeepError::NoSettings),
        };
        let change = self.sources.add_rule(scope, behavior, rule);
        change.map(|change| change.file).map_err(|error| KeepError::File(error.to_string()))
    }

    fn remove(&self, file: &AbsPath, behavior: Behavior, rule: &Rule) -> Result<bool, KeepError> {
        let change = self.sources.remove_rule(file, behavior, rule);
        change.map(|change| change.is_changed).map_err(|error| KeepError::File(error.to_string()))
    }

    fn switch_plugin(&self, plugin: &PluginId, is_on: bool) -> Result<AbsPath, KeepError> {
        let change =
            self.set(FileScope::User, &format!("enabledPlugins.{plugin}"), Some(&Value::Bool(is_on)));
        change.map(|change| change.file).map_err(|error| KeepError::File(error.to_string()))
    }

    fn is_approved(&self, wish: &Wish) -> bool {
        self.sources.trust().is_approved(wish)
    }

    fn is_put_off(&self, wish: &Wish) -> bool {
        self.sources.trust().is_dismissed(wish)
    }

    fn approve_wishes(&self, wishes: &[Wish]) -> Result<(), KeepError> {
        self.sources.trust().approve(wishes).map_err(|error| KeepError::File(error.to_string()))
    }

    fn trust(&self) -> TrustState {
        self.sources.trust().state(&self.fresh().settings)
    }

    fn approve(&self, digests: &[String]) -> Result<usize, KeepError> {
        let approved = self.sources.trust().approve_digests(&self.settings(), digests);
        approved.map_err(|error| KeepError::File(error.to_string()))
    }

    fn revoke(&self, digests: &[String]) -> Result<usize, KeepError> {
        let revoked = self.sources.trust().revoke_digests(&self.settings(), digests);
        revoked.map_err(|error| KeepError::File(error.to_string()))
    }

    fn dismiss(&self, digests: &[String]) -> Result<(), KeepError> {
        let dismissed = self.sources.trust().dismiss(digests);
        dismissed.map_err(|error| KeepError::File(error.to_string()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::permission::rules::{Layer, Source};

    fn network_of(allowed: &[&str], denied: &[&str]) -> (Network, Vec<Severity>) {
        let source = Source { layer: Layer::User, file: None, place: None };
        let entries = |texts: &[&str]| {
            let entry =
                |text: &&str| Sourced { value: (*text).to_owned(), source: source.clone(), root: None };
            texts.iter().map(entry).collect::<Vec<_>>()
        };
        let wanted = super::super::Sandbox {
            allowed_domains: entries(allowed),
            denied_domains: entries(denied),
            ..Default::default()
        };
        let mut problems = Vec::new();
        let network = network(&wanted, &mut problems);
        (network, problems.iter().map(|problem| problem.severity).collect())
    }

    #[test]
    fn domains_that_cannot_be_read_open_nothing() {
        let patterns =
            |texts: &[&str]| texts.iter().map(|text| text.parse().unwrap()).collect::<Vec<HostPattern>>();
        let allowed = |hosts: &[&str], denied: &[&str]| Network::Allowed {
            hosts: patterns(hosts),
            denied: patterns(denied),
            local: false,
        };
        let lists = ["a.example", "*.b.example"];
        assert_eq!(network_of(&lists, &["c.b.example"]), (allowed(&lists, &["c.b.example"]), vec![]));
        assert_eq!(
            network_of(&["*", "a.example"], &[]),
            (allowed(&["a.example"], &[]), vec![Severity::Warning])
        );
        assert_eq!(network_of(&["*"], &[]), (Network::Off, vec![Severity::Warning]));
        assert_eq!(network_of(&[], &["a.example"]), (Network::Off, vec![]));
        // Who denies everything, in whatever words, is not to get anything through.
        assert_eq!(network_of(&lists, &["*"]), (Network::Off, vec![Severity::Error]));
    }
}
