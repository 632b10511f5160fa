//! The gatekeeper of a session: the policy, the grants and the workspace that every call is judged by.
//!
//! Rule: every verdict is made from one consistent picture. A changed setting applies from the next call on: the process
//! that begins a call refreshes the picture first, together with those that ask at the same time. Reading waits for the
//! disk on a thread of its own, one at a time; everything else uses the picture that was read last and waits for no disk.

mod conversation;
mod judge;
mod rules;

use std::collections::BTreeSet;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use tokio::runtime::Handle;

use crate::conversation::WorktreeIsolation;
use crate::core::{Core, lock};
use kode_base::blocking;
use kode_base::paths::AbsPath;
use kode_config::hooks::config::Hooks;
use kode_config::in_force::{EffectivePolicy, SessionAdditions};
use kode_config::policy::{Policy, PolicySource};
use kode_config::sandbox_profile::{DEFAULT_PROFILE, with_profile};
use kode_config::settings::{TrustRequest, TrustSummary, WithheldSetting};
use kode_permission::rules::SettingsProblem;
use kode_permission::rules::places::real_on_disk;
use kode_permission::{Deliveries, Grant};
use kode_process::shell::Shell;
use kode_record::event::Event;
use kode_record::record::Record;
use kode_text::workspace::Workspace;
use kode_tool::Registry;

pub(crate) use judge::{CallBounds, Judgment, resolved};
pub use rules::ActiveRules;

/// The gatekeeper of a session.
pub struct Gatekeeper {
    core: Arc<Core>,
    workspace: Arc<Workspace>,
    shell: Arc<Shell>,
    tools: Arc<Registry>,
    source: Arc<dyn PolicySource>,
    /// The worktree that the session works in; `None` for the workspace itself.
    isolation: Option<Arc<WorktreeIsolation>>,
    deliveries: Mutex<Arc<Deliveries>>,
    /// The session's own folders, links resolved, which may be read without a question.
    own: Vec<AbsPath>,
    /// Held while files are read: however slow the disk is, it blocks one thread of a session.
    refreshing: Arc<tokio::sync::Mutex<()>>,
    /// The number of refreshes that have started, and the newest whose news were published. A refresh serves every caller
    /// that asked before it began.
    begun: AtomicU64,
    published: AtomicU64,
    /// The picture of the last refresh. Never locked while a file is read.
    in_force: Mutex<Option<Arc<EffectivePolicy>>>,
    /// The policy of the settings that was read last.
    base: Mutex<Option<Arc<Policy>>>,
    /// The policy that was made last with a profile of the sandbox.
    profiled: Mutex<Option<ProfiledPolicy>>,
    /// The trust requests of workspace files other than settings.
    extension_requests: Mutex<Arc<Vec<TrustRequest>>>,
    announced: Mutex<PublishedNews>,
}

/// A policy with a profile of the sandbox.
#[derive(Debug)]
struct ProfiledPolicy {
    of: Arc<Policy>,
    name: String,
    policy: Arc<Policy>,
}

/// The news of the settings that were published.
#[derive(Debug, Default)]
struct PublishedNews {
    complaints: IneffectiveSettings,
    /// Digests of the settings files; `None` before the first refresh.
    contents: Option<Vec<(AbsPath, u64)>>,
    /// Digests of the trust requests that were published.
    asked: BTreeSet<String>,
    extensions: ExtensionTrust,
    /// The policy whose variables commands get.
    policy: Option<Arc<Policy>>,
}

/// The trust requests of files other than settings that the user has not approved, by one policy.
#[derive(Debug, Default)]
struct ExtensionTrust {
    requests: Arc<Vec<TrustRequest>>,
    policy: Option<Arc<Policy>>,
    waiting: Vec<WithheldSetting>,
    /// Digests of the requests that the user is asked about.
    to_ask: Vec<String>,
}

/// The settings that have no effect although a file contains them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct IneffectiveSettings {
    /// Invalid settings.
    pub problems: Vec<SettingsProblem>,
    /// Settings of workspace files that the user has not approved.
    pub withheld: Vec<WithheldSetting>,
}

impl fmt::Debug for Gatekeeper {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Gatekeeper").finish_non_exhaustive()
    }
}

impl Gatekeeper {
    /// The gatekeeper of a session that works in `workspace`, with `shell` and `tools`.
    pub(crate) fn new(
        core: &Arc<Core>,
        (workspace, shell, tools): (&Arc<Workspace>, &Arc<Shell>, &Arc<Registry>),
        (source, isolation): (Arc<dyn PolicySource>, Option<Arc<WorktreeIsolation>>),
        deliveries: Deliveries,
    ) -> Arc<Self> {
        let own = shell.tasks().outputs().map(|outputs| outputs.folder().clone());
        Arc::new(Self {
            core: Arc::clone(core),
            workspace: Arc::clone(workspace),
            shell: Arc::clone(shell),
            tools: Arc::clone(tools),
            source,
            isolation,
            deliveries: Mutex::new(Arc::new(deliveries)),
            // Resolved now: a link that changes later does not move the session's own folders.
            own: own.into_iter().map(|folder| real_on_disk(&folder)).collect(),
            refreshing: Arc::default(),
            begun: AtomicU64::new(0),
            published: AtomicU64::new(0),
            in_force: Mutex::default(),
            base: Mutex::default(),
            profiled: Mutex::default(),
            extension_requests: Mutex::default(),
            announced: Mutex::default(),
        })
    }

    /// The worktree that the session works in; `None` for the workspace itself.
    pub(crate) fn isolation(&self) -> Option<&Arc<WorktreeIsolation>> {
        self.isolation.as_ref()
    }

    /// The source of the policy.
    pub(crate) fn source(&self) -> Arc<dyn PolicySource> {
        Arc::clone(&self.source)
    }

    /// The delivery of changes to files: the session's own rules, or else the user's.
    #[must_use]
    pub fn deliveries(&self) -> Arc<Deliveries> {
        Arc::clone(&lock(&self.deliveries))
    }

    /// Sets the delivery of changes to files.
    pub fn deliver(&self, deliveries: Deliveries) {
        if self.core.is_closing() {
            return;
        }
        self.core.commit(Record::Delivering { rules: deliveries.rules() });
        *lock(&self.deliveries) = Arc::new(deliveries);
    }

    /// Sets the trust requests of agents, skills, commands and styles.
    pub(crate) fn set_extension_requests(&self, requests: Vec<TrustRequest>) {
        let mut known = lock(&self.extension_requests);
        if **known != requests {
            *known = Arc::new(requests);
        }
    }

    /// Reads the settings files, publishes their news, and returns the picture that applies from now on. Only the caller
    /// waits for the disk.
    pub(crate) async fn refreshed(self: &Arc<Self>) -> Arc<EffectivePolicy> {
        if let Some(in_force) = self.unchanged() {
            return in_force;
        }
        let begun_before = self.begun.load(Ordering::SeqCst);
        let refreshing = Arc::clone(&self.refreshing).lock_owned().await;
        if self.published.load(Ordering::SeqCst) > begun_before {
            return self.in_force();
        }
        let (number, added) = (self.begun.fetch_add(1, Ordering::SeqCst) + 1, self.added());
        // The lock is kept until the news are published: of two refreshes the newer is published last.
        let gate = Arc::clone(self);
        let read = move || {
            let in_force = gate.read(&added);
            let extensions = gate.read_extension_trust(&in_force.policy);
            (in_force, extensions, refreshing)
        };
        let (in_force, extensions, _refreshing) = blocking(read).await;
        self.publish_news(&in_force, extensions);
        self.published.store(number, Ordering::SeqCst);
        in_force
    }

    /// The picture of the last refresh, where another one would read and publish the same; `None` where the system does not say so.
    /// Reads no file.
    fn unchanged(&self) -> Option<Arc<EffectivePolicy>> {
        let base = self.source.unchanged()?;
        let added = self.added();
        let policy = self.profiled(&base, &added);
        let in_force = lock(&self.in_force).clone()?;
        let is_read = Arc::ptr_eq(&in_force.policy, &policy) && in_force.has(&added);
        let requests = Arc::clone(&lock(&self.extension_requests));
        let announced = lock(&self.announced);
        let of = announced.extensions.policy.as_ref();
        let is_published = announced.policy.as_ref().is_some_and(|known| Arc::ptr_eq(known, &policy))
            && of.is_some_and(|known| Arc::ptr_eq(known, &policy))
            && Arc::ptr_eq(&announced.extensions.requests, &requests)
            && announced.complaints.problems == in_force.problems
            && announced.complaints.withheld == policy.withheld;
        (is_read && is_published).then_some(in_force)
    }

    /// Reads the settings files that changed, applies them, and publishes the difference.
    pub async fn refresh(self: &Arc<Self>) {
        self.refreshed().await;
    }

    /// Reads the settings files for the first time and publishes nothing. Blocks on the disk.
    pub(crate) fn load(&self) {
        self.read(&self.added());
    }

    /// The picture of the last refresh. Reads no settings file, except the first time.
    pub(crate) fn in_force(&self) -> Arc<EffectivePolicy> {
        let added = self.added();
        self.known(&added).unwrap_or_else(|| self.read(&added))
    }

    /// Lets the session read and edit files in these folders as its mode says. Settings and instructions in them do not apply,
    /// and commands do not write there.
    pub fn add_folders(&self, folders: &[AbsPath]) {
        let rules = folders
            .iter()
            .flat_map(|folder| ["Read", "Edit"].map(|tool| Grant::Rule(format!("{tool}(/{folder}/**)"))));
        let mut state = self.core.state();
        let grants: Vec<_> = rules.filter(|rule| !state.grants.contains(rule)).collect();
        if !grants.is_empty() {
            self.core.commit_to(&mut state, Record::Granted { grants });
        }
    }

    /// The complaints that were published last. Reads no file.
    #[must_use]
    pub fn complaints(&self) -> IneffectiveSettings {
        lock(&self.announced).complaints.clone()
    }

    /// A summary of the trust requests that wait for the user, as published last; `None` where none waits. Reads no file.
    #[must_use]
    pub fn trust_waiting(&self) -> Option<TrustSummary> {
        let announced = lock(&self.announced);
        let waiting: Vec<_> =
            announced.complaints.withheld.iter().chain(&announced.extensions.waiting).collect();
        (!waiting.is_empty()).then(|| TrustSummary::of(waiting))
    }

    /// The trust requests among these that the user has not approved, by the settings of the last refresh.
    pub async fn unapproved(&self, requests: Vec<TrustRequest>) -> Vec<TrustRequest> {
        if requests.is_empty() {
            return requests;
        }
        let source = self.source();
        // The digest of a request may read its folder.
        blocking(move || requests.into_iter().filter(|request| !source.is_approved(request)).collect()).await
    }

    /// Whether permanent permissions can be stored beyond this session.
    pub(crate) fn can_keep_rules(&self) -> bool {
        self.source.can_keep()
    }

    /// The grants, equipment and folder of the session itself.
    fn added(&self) -> SessionAdditions {
        let (grants, equipment, profile) = {
            let state = self.core.state();
            let profile = state.running.options.sandbox.clone().or_else(|| state.config.sandbox.clone());
            (state.grants.clone(), state.running.equipment.clone(), profile)
        };
        let profile = profile.filter(|name| name != DEFAULT_PROFILE);
        SessionAdditions { grants, equipment, cwd: self.workspace.cwd(), profile }
    }

    /// Reads the files and stores the picture. Blocks on the disk.
    fn read(&self, added: &SessionAdditions) -> Arc<EffectivePolicy> {
        let base = self.source.current();
        let policy = self.profiled(&base, added);
        *lock(&self.base) = Some(base);
        let known = lock(&self.in_force).clone();
        let made = match known {
            Some(known) if Arc::ptr_eq(&known.policy, &policy) && known.has(added) => return known,
            known => self.make(policy, added, known.as_deref()),
        };
        *lock(&self.in_force) = Some(Arc::clone(&made));
        made
    }

    /// The picture of the last refresh with the session's own additions; `None` before the first. Reads no file.
    fn known(&self, added: &SessionAdditions) -> Option<Arc<EffectivePolicy>> {
        let known = lock(&self.in_force).clone()?;
        if known.has(added) {
            return Some(known);
        }
        let base = lock(&self.base).clone()?;
        let made = self.make(self.profiled(&base, added), added, Some(&known));
        let newer = lock(&self.base).clone().filter(|newer| !Arc::ptr_eq(newer, &base));
        match newer {
            // A refresh that ended meanwhile has read a newer policy.
            Some(newer) => Some(self.make(self.profiled(&newer, added), added, Some(&made))),
            None => {
                *lock(&self.in_force) = Some(Arc::clone(&made));
                Some(made)
            }
        }
    }

    /// The policy with the profile of the sandbox that the session or the turn has chosen.
    fn profiled(&self, base: &Arc<Policy>, added: &SessionAdditions) -> Arc<Policy> {
        let Some(name) = &added.profile else { return Arc::clone(base) };
        let mut known = lock(&self.profiled);
        if let Some(known) = &*known
            && Arc::ptr_eq(&known.of, base)
            && known.name == *name
        {
            return Arc::clone(&known.policy);
        }
        let policy = Arc::new(with_profile(base, name, self.workspace.roots()));
        *known =
            Some(ProfiledPolicy { of: Arc::clone(base), name: name.clone(), policy: Arc::clone(&policy) });
        policy
    }

    /// The profiles of the sandbox that there are, with their descriptions.
    #[must_use]
    pub fn sandbox_profiles(&self) -> Vec<(String, String)> {
        let policy = Arc::clone(&self.in_force().policy);
        let settings = "As the settings say".to_owned();
        let own = policy.profiles.iter().map(|(name, profile)| (name.clone(), profile.description.clone()));
        [(DEFAULT_PROFILE.to_owned(), settings)].into_iter().chain(own).collect()
    }

    /// The profile of that name; `None` for the sandbox of the settings.
    ///
    /// # Errors
    /// That there is no such profile, with the names there are.
    pub fn profile_named(&self, name: &str) -> Result<Option<String>, String> {
        let names: Vec<_> = self.sandbox_profiles().into_iter().map(|(name, _)| name).collect();
        match names.iter().any(|known| known == name) {
            true => Ok((name != DEFAULT_PROFILE).then(|| name.to_owned())),
            false => Err(format!("there is no sandbox profile `{name}`; there are {}", names.join(", "))),
        }
    }

    fn make(
        &self,
        policy: Arc<Policy>,
        added: &SessionAdditions,
        known: Option<&EffectivePolicy>,
    ) -> Arc<EffectivePolicy> {
        let SessionAdditions { grants, equipment, cwd, profile } = added;
        let known = known.filter(|known| known.policy.declared == policy.declared && known.cwd == *cwd);
        let hooks = match known {
            Some(known) => Arc::clone(&known.hooks),
            None => Arc::new(Hooks::of(&policy.declared, cwd)),
        };
        let made = EffectivePolicy::new(policy, grants, equipment, cwd);
        let mut made = EffectivePolicy { own: self.own.clone(), profile: profile.clone(), ..made };
        made.problems.extend(hooks.problems.iter().cloned());
        Arc::new(EffectivePolicy { hooks, ..made })
    }

    /// The unapproved requests of files other than settings; `None` where policy and requests are those that were
    /// published last. Blocks on the disk.
    fn read_extension_trust(&self, policy: &Arc<Policy>) -> Option<ExtensionTrust> {
        let requests = Arc::clone(&lock(&self.extension_requests));
        {
            let known = &lock(&self.announced).extensions;
            let is_same = |known: &Arc<Policy>| Arc::ptr_eq(known, policy);
            if known.policy.as_ref().is_some_and(is_same) && Arc::ptr_eq(&known.requests, &requests) {
                return None;
            }
        }
        let waiting: Vec<&TrustRequest> =
            requests.iter().filter(|request| !self.source.is_approved(request)).collect();
        let to_ask = waiting.iter().filter(|request| !self.source.is_put_off(request));
        let to_ask = to_ask.map(|request| request.digest()).collect();
        let waiting = waiting.into_iter().cloned().map(WithheldSetting::of_file).collect();
        Some(ExtensionTrust { requests, policy: Some(Arc::clone(policy)), waiting, to_ask })
    }

    /// Publishes the changes since the last news.
    fn publish_news(&self, in_force: &EffectivePolicy, extensions: Option<ExtensionTrust>) {
        let mut announced = lock(&self.announced);
        if let Some(extensions) = extensions {
            announced.extensions = extensions;
        }
        let policy = &in_force.policy;
        let known = announced.contents.replace(policy.contents.clone());
        let files = known.map(|known| changed(&known, &policy.contents)).unwrap_or_default();
        let complaints =
            IneffectiveSettings { problems: in_force.problems.clone(), withheld: policy.withheld.clone() };
        if !files.is_empty() || announced.complaints != complaints {
            announced.complaints = complaints.clone();
            let IneffectiveSettings { problems, withheld } = complaints;
            self.core.publish(Event::ConfigChanged { files, problems, withheld });
        }
        if !announced.policy.as_ref().is_some_and(|known| Arc::ptr_eq(known, policy)) {
            self.shell.set_variables(policy.declared.variables());
            if let (Some(sandbox), Ok(runtime)) = (policy.sandbox.clone(), Handle::try_current()) {
                // The first command does not wait for the walk through the workspace.
                drop(runtime.spawn_blocking(sandbox.walk_ahead()));
            }
            announced.policy = Some(Arc::clone(policy));
        }
        // A request that has gone may be asked about again, should it come back.
        let to_ask: BTreeSet<String> =
            policy.to_ask.iter().chain(&announced.extensions.to_ask).cloned().collect();
        if !to_ask.is_subset(&announced.asked) {
            let waiting = TrustSummary::of(policy.withheld.iter().chain(&announced.extensions.waiting));
            self.core.publish(Event::TrustRequired { waiting });
        }
        announced.asked = to_ask;
    }
}

/// The files whose contents differ, including those that were added or removed.
fn changed(before: &[(AbsPath, u64)], now: &[(AbsPath, u64)]) -> Vec<AbsPath> {
    let other = |one: &[(AbsPath, u64)], other: &[(AbsPath, u64)]| {
        let news = one.iter().filter(|entry| !other.contains(entry));
        news.map(|(file, _)| file.clone()).collect::<Vec<_>>()
    };
    let mut files = other(now, before);
    files.extend(other(before, now).into_iter().filter(|file| now.iter().all(|(known, _)| known != file)));
    files
}
