//! The permissions of the settings, as the gate takes it.
//!
//! Rule: files are checked before every use and read when one has changed; a change that cannot be read in full makes
//! nothing looser. A check asks a probe where the system has one for these files, and compares stamps elsewhere. The caller may
//! wait for the disk, so do not call it on a thread that answers clients, but for [`PolicySource::unchanged`].

#![expect(clippy::disallowed_methods, reason = "a variable names the folder of the settings")]

use std::collections::VecDeque;
use std::sync::Arc;

use parking_lot::Mutex;
use serde_json::Value;

use super::effective::{EffectiveSetting, effective};
use super::{
    EditorSettings, SandboxSettings, SensitiveFile, SetError, Settings, SettingsScope as FileScope,
    SettingsSources, SettingsValues, SourcedValue, StatedRemote, TrustRequest, TrustState, WithheldSetting,
    WriteOutcome,
};
use crate::ignore_files::IgnoreLook;
use crate::plugin::installed::PluginPaths;
use crate::plugin::{Plugin, PluginId};
use crate::policies::PolicyProvider;
use crate::policy::{KeepRuleError, Policy, PolicySource, SessionDefaults};
use crate::preferences::Preferences;
use crate::sandbox_profile::{self, SandboxProfile, SandboxProfiles};
use kode_base::change_probe::ChangeProbe;
use kode_base::paths::AbsPath;
use kode_base::secret_places::{places, shown};
use kode_base::steering::IGNORE_FILES;
use kode_command::CommandPattern;
use kode_model::models::{ModelSources, ProfileLayer};
use kode_permission::gate::Confinement;
use kode_permission::rules::{
    Behavior, PathBases, PlacedRule, ProblemSeverity, Rule, RuleSet, SettingsProblem, Unreadable,
};
use kode_permission::{Scope, Sensitive, Sensitivity};
use kode_process::programs;
use kode_process::sandbox::{
    CommandLauncher, HelperProgram, HiddenFilter, HostEntry, Network, ResourceLimits, Sandbox,
    SandboxOptions, detect,
};

/// The workspaces whose settings are remembered, those that were asked for last.
const MAX_REMEMBERED: usize = 8;

/// The sources of policies besides the settings files.
#[derive(Clone, Debug)]
pub struct PolicyOptions {
    /// The home folder.
    pub home: Option<AbsPath>,
    /// The folder for the product's state.
    pub state: AbsPath,
    /// The program that the sandbox's helper is started from.
    pub helper: HelperProgram,
    /// Rules from the command line.
    pub command_line: Vec<(Behavior, String)>,
    /// The editor's settings; nothing if absent.
    pub editor: EditorSettings,
}

/// Policies by workspace, from settings files.
#[derive(Debug)]
pub struct SettingsPolicies {
    options: PolicyOptions,
    /// Of the workspaces that were asked for last, the newest first.
    remembered: Mutex<VecDeque<Arc<WorkspaceFiles>>>,
}

impl SettingsPolicies {
    /// Policies made with these options. Nothing is read yet.
    #[must_use]
    pub fn new(options: PolicyOptions) -> Self {
        Self { options, remembered: Mutex::default() }
    }

    /// The policy of one workspace.
    #[must_use]
    pub fn of_workspace(&self, roots: &[AbsPath]) -> SettingsPolicy {
        SettingsPolicy::new(self.options.clone(), self.files(roots))
    }

    /// The files of a workspace, or of none: the same for all that ask for the same folders, so that what one has read serves
    /// the others.
    fn files(&self, roots: &[AbsPath]) -> Arc<WorkspaceFiles> {
        let mut remembered = self.remembered.lock();
        let at = remembered.iter().position(|files| files.sources.roots == roots);
        let files = at.and_then(|at| remembered.remove(at));
        let files = files.unwrap_or_else(|| Arc::new(WorkspaceFiles::new(self.options.sources(roots))));
        remembered.push_front(Arc::clone(&files));
        remembered.truncate(MAX_REMEMBERED);
        files
    }

    /// The sources of models: the values of `own` before the settings of the user and the administrator, and those before
    /// what other agents' files say. Reads the files.
    #[must_use]
    pub fn models(&self, own: ProfileLayer) -> ModelSources {
        let files = self.files(&[]);
        files.fresh().values.models.clone().sources(own, files.sources.imported_models())
    }

    /// The editor's settings.
    #[must_use]
    pub fn editor(&self) -> &EditorSettings {
        &self.options.editor
    }

    /// The files that the settings of a workspace, or of none, depend on, there or not. Reads the files.
    #[must_use]
    pub fn watched(&self, roots: &[AbsPath]) -> Vec<AbsPath> {
        let files = self.files(roots);
        let settings = files.fresh();
        files.sources.watched().chain(settings.named.iter().map(|(file, _)| file.clone())).collect()
    }

    /// See [`Settings::cleanup_days`], for the user and the administrator. Reads the files.
    #[must_use]
    pub fn cleanup_days(&self) -> Option<u32> {
        self.files(&[]).fresh().cleanup_days()
    }

    /// Where the user's plugins are.
    #[must_use]
    pub fn plugins(&self) -> PluginPaths {
        self.options.sources(&[]).plugins()
    }

    /// The settings of the user and the administrator, for any workspace. Reads the files.
    #[must_use]
    pub fn values(&self) -> SettingsValues {
        self.files(&[]).fresh().values.clone()
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

impl PolicyProvider for SettingsPolicies {
    fn of(&self, roots: &[AbsPath]) -> Arc<dyn PolicySource> {
        Arc::new(self.of_workspace(roots))
    }

    fn beginning(&self, roots: &[AbsPath]) -> SessionDefaults {
        let settings = self.files(roots).fresh();
        let values = &settings.values;
        SessionDefaults {
            mode: values.default_mode.as_ref().map(|mode| mode.value),
            is_bypass_disabled: values.is_bypass_disabled,
            model: values.stated.model.clone(),
            pointers: values.models.pointers.clone(),
        }
    }
}

/// The settings files of one workspace, or of none.
#[derive(Debug)]
struct WorkspaceFiles {
    sources: SettingsSources,
    /// The last state. Held while they are checked: taking it may wait for the disk.
    read: Mutex<Option<CheckedSettings>>,
}

/// Settings as they were when their files were checked last.
#[derive(Debug)]
struct CheckedSettings {
    settings: Arc<Settings>,
    probe: Option<ChangeProbe>,
}

impl WorkspaceFiles {
    fn new(sources: SettingsSources) -> Self {
        Self { sources, read: Mutex::default() }
    }

    /// Their current values. Checks each, and reads them when one has changed. Blocks on the disk.
    fn fresh(&self) -> Arc<Settings> {
        let mut read = self.read.lock();
        if let Some(known) = &mut *read {
            if self.is_unchanged(known) {
                return Arc::clone(&known.settings);
            }
            // The new probe comes before the look: what happens after the look is its news.
            let probe = known.probe.take().and_then(|_| known.settings.probe());
            if !self.sources.is_stale(&known.settings) {
                known.probe = probe;
                return Arc::clone(&known.settings);
            }
        }
        let settings = Arc::new(self.sources.load());
        let probe = settings.probe().filter(|_| !self.sources.is_stale(&settings));
        Arc::clone(&read.insert(CheckedSettings { settings, probe }).settings)
    }

    /// The values of the last check, where the system says that nothing has happened to the files since. Never blocks.
    fn unchanged(&self) -> Option<Arc<Settings>> {
        let read = self.read.try_lock()?;
        let known = read.as_ref().filter(|known| self.is_unchanged(known))?;
        Some(Arc::clone(&known.settings))
    }

    fn is_unchanged(&self, known: &CheckedSettings) -> bool {
        known.probe.as_ref().is_some_and(ChangeProbe::is_unchanged)
            && self.sources.is_of_editor(&known.settings)
    }
}

/// The policy of one workspace, from settings files.
#[derive(Debug)]
pub struct SettingsPolicy {
    options: PolicyOptions,
    files: Arc<WorkspaceFiles>,
    /// The trust requests of workspace files.
    beside: Vec<TrustRequest>,
    /// The last result of the files. Held while they are checked: taking it may wait for the disk.
    made: Mutex<Option<Arc<BuiltPolicy>>>,
}

/// The result of settings.
#[derive(Debug)]
struct BuiltPolicy {
    /// As they were read.
    of: Arc<Settings>,
    /// The same with what other files ask for.
    settings: Settings,
    policy: Arc<Policy>,
}

impl SettingsPolicy {
    /// The same with what other files of the workspace ask for, such as skills, so that the user is shown all of it at once.
    #[must_use]
    pub fn with_trust_requests(mut self, trust_requests: Vec<TrustRequest>) -> Self {
        self.beside = trust_requests;
        self
    }

    fn new(options: PolicyOptions, files: Arc<WorkspaceFiles>) -> Self {
        Self { options, files, beside: Vec::new(), made: Mutex::default() }
    }

    fn sources(&self) -> &SettingsSources {
        &self.files.sources
    }

    /// The settings as they are now.
    #[must_use]
    pub fn settings(&self) -> Settings {
        self.fresh().settings.clone()
    }

    /// The effective settings, key by key, with the place it comes from.
    #[must_use]
    pub fn effective(&self) -> Vec<EffectiveSetting> {
        effective(&self.fresh().settings)
    }

    /// Writes a value into the file of a scope, or takes the key out of it. Blocks on the disk.
    ///
    /// # Errors
    /// [`SetError`]; the file is as it was before then.
    pub fn set(&self, scope: FileScope, path: &str, value: Option<&Value>) -> Result<WriteOutcome, SetError> {
        self.sources().set(scope, path, value)
    }

    /// The settings as they are now, and their result. Blocks on the disk.
    fn fresh(&self) -> Arc<BuiltPolicy> {
        let mut made = self.made.lock();
        let read = self.files.fresh();
        match &*made {
            Some(known) if Arc::ptr_eq(&known.of, &read) => Arc::clone(known),
            Some(_) | None => Arc::clone(made.insert(Arc::new(self.make(read)))),
        }
    }

    fn make(&self, of: Arc<Settings>) -> BuiltPolicy {
        let mut settings = Settings::clone(&of);
        for trust_request in &self.beside {
            let asked = WithheldSetting::of_file(trust_request.clone());
            match self.sources().trust().is_approved(trust_request) {
                true => settings.approved.push(asked),
                false => settings.withheld.push(asked),
            }
        }
        let policy = Arc::new(self.policy(&settings));
        BuiltPolicy { of, settings, policy }
    }

    fn policy(&self, settings: &Settings) -> Policy {
        let values = &settings.values;
        let mut problems = settings.problems.clone();
        let (confinement, sandbox) = self.confinement(settings, &mut problems);
        let profiles = Arc::new(self.profiles(&values.sandbox, &mut problems));
        let lost = settings.has_lost_protection().then(|| {
            let broken = problems.iter().find(|problem| problem.severity == ProblemSeverity::Error);
            broken.map(|problem| problem.message.clone()).unwrap_or_default()
        });
        Policy {
            rules: settings.rules.clone(),
            order: values.order.unwrap_or_default(),
            sensitive: self.sensitive(&values.sensitive_files),
            confinement,
            sandbox,
            profiles,
            is_read_only: false,
            additional: values.additional_directories.iter().map(|folder| folder.value.clone()).collect(),
            default_mode: values.default_mode.as_ref().map(|mode| mode.value),
            is_bypass_disabled: values.is_bypass_disabled,
            preferences: preferences(values),
            lost,
            withheld: settings.withheld.clone(),
            to_ask: self.sources().trust().to_ask(settings),
            contents: settings.contents().to_vec(),
            hook_scripts: self.hook_scripts(settings),
            declared: Arc::new(settings.declared.clone()),
            problems,
        }
    }

    /// The sensitive paths: by these lines, by the built-in table, and all that the sandbox hides from commands.
    fn sensitive(&self, lines: &[SourcedValue<SensitiveFile>]) -> Sensitive {
        let home = self.options.home.as_ref();
        self.by_name(lines).guarding(&places(home, &self.options.state), &shown(home))
    }

    /// Paths that the user's rules hide: no program in the sandbox reads it either.
    fn unreadable(&self, settings: &Settings) -> Option<Unreadable> {
        let cwd = self.sources().roots.first()?;
        let lines =
            settings.values.sensitive_files.iter().filter(|line| line.value.level == Sensitivity::High);
        let mut rules = settings.rules.clone();
        rules.extend(lines.map(|line| PlacedRule {
            behavior: Behavior::Deny,
            rule: Rule::read(line.value.pattern.clone()),
            source: line.source.clone(),
            root: line.root.clone(),
        }));
        RuleSet::against_reading(&rules, &PathBases::on_disk(cwd, self.options.home.as_ref()))
    }

    fn by_name(&self, lines: &[SourcedValue<SensitiveFile>]) -> Sensitive {
        let Some(cwd) = self.sources().roots.first().filter(|_| !lines.is_empty()) else {
            return Sensitive::default();
        };
        let rule = |line: &SourcedValue<SensitiveFile>| PlacedRule {
            behavior: match line.value.level {
                Sensitivity::None => Behavior::Allow,
                Sensitivity::Medium => Behavior::Ask,
                Sensitivity::High => Behavior::Deny,
            },
            rule: Rule::read(line.value.pattern.clone()),
            source: line.source.clone(),
            root: line.root.clone(),
        };
        let places = PathBases::on_disk(cwd, self.options.home.as_ref());
        Sensitive::with(RuleSet::new(lines.iter().map(rule).collect(), &places).0)
    }

    fn folders(&self, paths: &[SourcedValue<String>]) -> Vec<AbsPath> {
        paths.iter().filter_map(|path| self.folder(&path.value, path.root.as_ref())).collect()
    }

    /// The folders that commands may write in.
    fn writable(&self, settings: &Settings) -> Vec<AbsPath> {
        let values = &settings.values;
        let mut writable = self.sources().roots.clone();
        writable.extend(values.additional_directories.iter().map(|folder| folder.value.clone()));
        writable.extend(self.folders(&values.sandbox.allow_write));
        writable
    }

    /// Scripts of hooks that commands could write.
    fn hook_scripts(&self, settings: &Settings) -> Vec<AbsPath> {
        settings.declared.hook_scripts(&self.sources().roots, &self.writable(settings))
    }

    /// The sandbox of the commands by these settings.
    fn confinement(
        &self,
        settings: &Settings,
        problems: &mut Vec<SettingsProblem>,
    ) -> (Confinement, Option<Arc<Sandbox>>) {
        let wanted = &settings.values.sandbox;
        let additional = settings.values.additional_directories.iter().map(|folder| &folder.value);
        programs::exclude(self.sources().roots.iter().chain(additional));
        if wanted.enabled == Some(false) {
            return (Confinement::Off, None);
        }
        let missing = |why: String| (Confinement::Missing(why), None);
        let kind = match detect().best() {
            Ok(kind) => kind,
            Err(why) => return missing(why),
        };
        let remote = match wanted.remote.as_ref().map(|stated| launcher(&stated.value)).transpose() {
            Ok(remote) => remote,
            Err(why) => return missing(why),
        };
        let folders = |paths: &[super::SourcedValue<String>]| self.folders(paths);
        let writable = self.writable(settings);
        let unreadable = self.unreadable(settings);
        let mut hidden = folders(&wanted.deny_read);
        hidden.extend(unreadable.iter().flat_map(|unreadable| unreadable.fixed.iter().cloned()));
        let options = SandboxOptions {
            helper: self.options.helper.clone(),
            kind,
            writable,
            read_only: folders(&wanted.deny_write),
            scripts: self.hook_scripts(settings),
            hidden,
            hides: Some(hidden_by(unreadable, settings.values.stated.preferences().disabled_ignore_files)),
            home: self.options.home.clone(),
            state: self.options.state.clone(),
            network: network(wanted, problems),
            limits: ResourceLimits::default(),
            remote,
        };
        let excluded = wanted.excluded_commands.iter().filter_map(|pattern| {
            pattern
                .value
                .parse::<CommandPattern>()
                .inspect_err(|error| {
                    problems.push(SettingsProblem {
                        file: pattern.source.file.clone(),
                        place: pattern.source.place,
                        severity: ProblemSeverity::Warning,
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

    /// The profiles of the sandbox: the user's, and the built-in ones that the user has not replaced.
    fn profiles(&self, wanted: &SandboxSettings, problems: &mut Vec<SettingsProblem>) -> SandboxProfiles {
        let mut profiles = sandbox_profile::built_in();
        for (name, stated) in &wanted.profiles {
            let network = stated.allowed_domains.clone().map(|allowed_domains| {
                network(&SandboxSettings { allowed_domains, ..wanted.clone() }, problems)
            });
            let profile = SandboxProfile {
                description: stated.description.clone(),
                is_read_only: stated.is_read_only,
                network,
                writable: self.folders(&stated.allow_write),
            };
            profiles.insert(name.clone(), profile);
        }
        profiles
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

fn preferences(values: &SettingsValues) -> Preferences {
    Preferences { pointers: values.models.pointers.clone(), ..values.stated.preferences() }
}

/// The filter for what rules and ignore files keep from being read.
fn hidden_by(unreadable: Option<Unreadable>, disabled: Vec<String>) -> HiddenFilter {
    let key = unreadable.as_ref().map(|unreadable| unreadable.key.clone()).unwrap_or_default();
    let key = format!("{key} {}", disabled.join(" "));
    let unreadable = Arc::new(unreadable);
    HiddenFilter::new(key, &IGNORE_FILES, move || {
        let (ignored, unreadable) = (IgnoreLook::without(&disabled), Arc::clone(&unreadable));
        Box::new(move |path, is_folder| {
            let covers = |unreadable: &Unreadable| {
                AbsPath::new(path).is_ok_and(|path| unreadable.covers(&path, is_folder))
            };
            ignored.denies_entry(path, &|| is_folder).is_some()
                || unreadable.as_ref().as_ref().is_some_and(covers)
        })
    })
}

/// The launcher of commands that `sandbox.remote` describes, or the reason why it cannot be used.
fn launcher(stated: &StatedRemote) -> Result<CommandLauncher, String> {
    let found = |program: &[String]| {
        let (name, arguments) =
            program.split_first().ok_or_else(|| "`sandbox.remote` names no program".to_owned())?;
        let found =
            programs::find(name).map_err(|error| format!("`sandbox.remote` cannot be used: {error}"))?;
        let found = found
            .to_str()
            .ok_or_else(|| format!("`sandbox.remote`: {name} is at a path that is no UTF-8"))?;
        Ok::<_, String>([found.to_owned()].into_iter().chain(arguments.iter().cloned()).collect())
    };
    if !cfg!(target_os = "linux") {
        return Err("`sandbox.remote` works on Linux alone".to_owned());
    }
    let StatedRemote { engine, image, options, command } = stated;
    match (engine.is_empty(), image, command.is_empty()) {
        (false, Some(image), true) => Ok(CommandLauncher::Engine {
            program: found(engine)?,
            image: image.clone(),
            options: options.clone(),
        }),
        (true, None, false) if options.is_empty() => {
            Ok(CommandLauncher::Program { program: found(command)? })
        }
        _ => {
            Err("`sandbox.remote` takes either `engine` and `image`, with `options`, or `command`".to_owned())
        }
    }
}

/// Which network commands get. An entry that cannot be read allows nothing, and where one that denies cannot be read,
/// nothing is allowed.
fn network(wanted: &SandboxSettings, problems: &mut Vec<SettingsProblem>) -> Network {
    let mut read = |entries: &[SourcedValue<String>], severity: ProblemSeverity, consequence: &str| {
        let patterns = entries.iter().filter_map(|entry| match entry.value.parse::<HostEntry>() {
            Ok(pattern) => Some(pattern),
            Err(error) => {
                problems.push(SettingsProblem {
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
    let hosts = read(&wanted.allowed_domains, ProblemSeverity::Warning, ".allowedDomains is ignored");
    let denied = read(
        &wanted.denied_domains,
        ProblemSeverity::Error,
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

    fn unchanged(&self) -> Option<Arc<Policy>> {
        let made = self.made.try_lock()?;
        let read = self.files.unchanged()?;
        let known = made.as_ref().filter(|known| Arc::ptr_eq(&known.of, &read))?;
        Some(Arc::clone(&known.policy))
    }

    fn plugins_in_use(&self) -> Vec<Arc<Plugin>> {
        self.files.fresh().declared.plugins_in_use().cloned().collect()
    }

    fn preferences(&self) -> Preferences {
        preferences(&self.files.fresh().values)
    }

    fn can_keep(&self) -> bool {
        true
    }

    fn keep(&self, scope: Scope, behavior: Behavior, rule: &Rule) -> Result<AbsPath, KeepRuleError> {
        let scope = match scope {
            Scope::User => FileScope::User,
            Scope::Project => FileScope::Local,
            Scope::Once | Scope::Session => return Err(KeepRuleError::NoSettings),
        };
        let change = self.sources().add_rule(scope, behavior, rule);
        change.map(|change| change.file).map_err(|error| KeepRuleError::File(error.to_string()))
    }

    fn remove(&self, file: &AbsPath, behavior: Behavior, rule: &Rule) -> Result<bool, KeepRuleError> {
        let change = self.sources().remove_rule(file, behavior, rule);
        change.map(|change| change.is_changed).map_err(|error| KeepRuleError::File(error.to_string()))
    }

    fn switch_plugin(&self, plugin: &PluginId, is_on: bool) -> Result<AbsPath, KeepRuleError> {
        let change =
            self.set(FileScope::User, &format!("enabledPlugins.{plugin}"), Some(&Value::Bool(is_on)));
        change.map(|change| change.file).map_err(|error| KeepRuleError::File(error.to_string()))
    }

    fn is_approved(&self, trust_request: &TrustRequest) -> bool {
        self.sources().trust().is_approved(trust_request)
    }

    fn is_put_off(&self, trust_request: &TrustRequest) -> bool {
        self.sources().trust().is_dismissed(trust_request)
    }

    fn approve_trust_requests(&self, trust_requests: &[TrustRequest]) -> Result<(), KeepRuleError> {
        self.sources().trust().approve(trust_requests).map_err(|error| KeepRuleError::File(error.to_string()))
    }

    fn trust(&self) -> TrustState {
        self.sources().trust().state(&self.fresh().settings)
    }

    fn approve(&self, digests: &[String]) -> Result<usize, KeepRuleError> {
        let approved = self.sources().trust().approve_digests(&self.settings(), digests);
        approved.map_err(|error| KeepRuleError::File(error.to_string()))
    }

    fn revoke(&self, digests: &[String]) -> Result<usize, KeepRuleError> {
        let revoked = self.sources().trust().revoke_digests(&self.settings(), digests);
        revoked.map_err(|error| KeepRuleError::File(error.to_string()))
    }

    fn dismiss(&self, digests: &[String]) -> Result<(), KeepRuleError> {
        let dismissed = self.sources().trust().dismiss(digests);
        dismissed.map_err(|error| KeepRuleError::File(error.to_string()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kode_permission::rules::{RuleSource, SettingsLayer};

    fn network_of(allowed: &[&str], denied: &[&str]) -> (Network, Vec<ProblemSeverity>) {
        let source = RuleSource { layer: SettingsLayer::User, file: None, place: None };
        let entries = |texts: &[&str]| {
            let entry =
                |text: &&str| SourcedValue { value: (*text).to_owned(), source: source.clone(), root: None };
            texts.iter().map(entry).collect::<Vec<_>>()
        };
        let wanted = super::SandboxSettings {
            allowed_domains: entries(allowed),
            denied_domains: entries(denied),
            ..Default::default()
        };
        let mut problems = Vec::new();
        let network = network(&wanted, &mut problems);
        (network, problems.iter().map(|problem| problem.severity).collect())
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn a_launcher_is_an_engine_with_an_image_or_a_command_and_its_program_is_found() {
        let words = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
        let of = |engine: &str, image: Option<&str>, options: &str, command: &str| {
            launcher(&StatedRemote {
                engine: words(engine),
                image: image.map(str::to_owned),
                options: words(options),
                command: words(command),
            })
        };
        let CommandLauncher::Engine { program, .. } = of("sh -x", Some("debian"), "--memory 4g", "").unwrap()
        else {
            panic!("it is an engine")
        };
        assert!(program[0].ends_with("/sh") && program[1] == "-x", "{program:?}");
        assert!(matches!(of("", None, "", "/bin/sh -c"), Ok(CommandLauncher::Program { .. })));
        for (engine, image, options, command) in [
            ("", None, "", ""),
            ("sh", None, "", ""),
            ("", Some("debian"), "", ""),
            ("sh", Some("debian"), "", "sh"),
            ("", None, "--memory 4g", "sh"),
        ] {
            let why = of(engine, image, options, command).unwrap_err();
            assert!(why.contains("either `engine` and `image`"), "{why}");
        }
        let why = of("no-such-engine", Some("debian"), "", "").unwrap_err();
        assert!(why.contains("sandbox.remote") && why.contains("no-such-engine"), "{why}");
    }

    /// Policies with everything in this folder.
    fn policies_in(place: &AbsPath) -> SettingsPolicies {
        SettingsPolicies::new(PolicyOptions {
            home: Some(place.join("home")),
            state: place.join("state"),
            helper: HelperProgram::itself("/nonexistent".into()),
            command_line: Vec::new(),
            editor: EditorSettings::default(),
        })
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn a_policy_is_called_unchanged_until_a_file_or_the_editor_says_something_else() {
        let folder = tempfile::tempdir().unwrap();
        let place = AbsPath::new(kode_base::paths::real_path(folder.path()).unwrap()).unwrap();
        let policies = policies_in(&place);
        let source = policies.of_workspace(&[place.join("one")]);
        assert!(source.unchanged().is_none(), "nothing is read yet");
        // There is no answer while another test makes a probe.
        let deadline = std::time::Instant::now() + std::time::Duration::from_secs(10);
        let unchanged = || {
            std::iter::repeat_with(std::thread::yield_now)
                .take_while(|()| std::time::Instant::now() < deadline)
                .find_map(|()| source.unchanged())
        };
        let write = |name: &str, text: &str| {
            let file = place.join(name);
            std::fs::create_dir_all(file.parent().unwrap().as_path()).unwrap();
            std::fs::write(file.as_path(), text).unwrap();
            assert!(source.unchanged().is_none(), "{name} is written");
        };
        let mut known = source.current();
        assert!(Arc::ptr_eq(&unchanged().unwrap(), &known));
        for (number, (name, text)) in [
            ("one/.kode/settings.json", r#"{ "permissions": { "deny": ["Read(a)"] } }"#),
            ("one/.kode/settings.json", r#"{ "permissions": { "deny": ["Read(b)"] } }"#),
            ("home/.claude/settings.json", r#"{ "permissions": { "deny": ["Read(c)"] } }"#),
        ]
        .into_iter()
        .enumerate()
        {
            write(name, text);
            let read = source.current();
            assert!(!Arc::ptr_eq(&read, &known), "change {number}");
            assert!(Arc::ptr_eq(&unchanged().unwrap(), &read), "change {number}");
            known = read;
        }
        // A new name on the way that leads to the same files.
        std::fs::create_dir(place.join("one/.claude").as_path()).unwrap();
        assert!(source.unchanged().is_none());
        assert!(Arc::ptr_eq(&source.current(), &known));
        assert!(Arc::ptr_eq(&unchanged().unwrap(), &known));
        policies.editor().change(|update| update.is_distrusted = true);
        assert!(source.unchanged().is_none());
    }

    #[test]
    fn what_one_has_read_serves_all_of_a_workspace_until_a_file_changes() {
        let folder = tempfile::tempdir().unwrap();
        let place = AbsPath::new(kode_base::paths::real_path(folder.path()).unwrap()).unwrap();
        let policies = policies_in(&place);
        let roots = [place.join("one")];
        let write = |text: &str| {
            std::fs::create_dir_all(place.join("one/.kode").as_path()).unwrap();
            std::fs::write(place.join("one/.kode/settings.json").as_path(), text).unwrap();
        };
        write(r#"{ "permissions": { "deny": ["Read(a)"] } }"#);
        let (one, other) = (policies.of_workspace(&roots), policies.of_workspace(&roots));
        let read = one.fresh();
        assert!(Arc::ptr_eq(&read.of, &other.fresh().of));
        // The sandbox of each has temporary files of its own.
        assert!(!Arc::ptr_eq(&read.policy, &other.fresh().policy));
        write(r#"{ "permissions": { "deny": ["Read(a)", "Read(b)"] } }"#);
        assert_eq!(other.fresh().settings.rules.len(), 2);
        assert_eq!(one.fresh().settings.rules.len(), 2);
        for number in 0..MAX_REMEMBERED {
            policies.files(&[place.join(format!("w{number}"))]);
        }
        assert_eq!(policies.remembered.lock().len(), MAX_REMEMBERED);
        assert!(!Arc::ptr_eq(&policies.of_workspace(&roots).files, &one.files), "the oldest is forgotten");
    }

    #[test]
    fn domains_that_cannot_be_read_open_nothing() {
        let patterns =
            |texts: &[&str]| texts.iter().map(|text| text.parse().unwrap()).collect::<Vec<HostEntry>>();
        let allowed = |hosts: &[&str], denied: &[&str]| Network::Allowed {
            hosts: patterns(hosts),
            denied: patterns(denied),
            local: false,
        };
        let lists = ["a.example", "*.b.example"];
        assert_eq!(network_of(&lists, &["c.b.example"]), (allowed(&lists, &["c.b.example"]), vec![]));
        assert_eq!(
            network_of(&["*", "a.example"], &[]),
            (allowed(&["a.example"], &[]), vec![ProblemSeverity::Warning])
        );
        assert_eq!(network_of(&["*"], &[]), (Network::Off, vec![ProblemSeverity::Warning]));
        assert_eq!(network_of(&[], &["a.example"]), (Network::Off, vec![]));
        // A rule that denies everything, in any form, must not allow anything.
        assert_eq!(network_of(&lists, &["*"]), (Network::Off, vec![ProblemSeverity::Error]));
    }
}
