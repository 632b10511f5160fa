//! The model profiles a server knows, what they are used for, and the connections made so far.
//!
//! Rule: a name is looked up here and nowhere else; a model is connected when it is first asked, once. A profile that
//! cannot be used costs itself alone, and says why.

mod sources;
#[cfg(test)]
mod tests;

use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};

use super::catalog::PublishedCatalog;
use super::price::Prices;
use super::profile::Profile;
use super::{Model, ModelError, ModelErrorKind};
use crate::provider::Provider;
use kode_base::secret::Secret;

pub use sources::{ModelSources, ProfileLayer, PublishedSource};

/// The longest that a first request waits for its server to tell how it serves the model.
const LOOK_UP_WAIT: Duration = Duration::from_secs(1);

/// The purposes of a profile.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Pointer {
    /// Conversations.
    Main,
    /// Sub-agents.
    Task,
    /// Summaries of long conversations.
    Compact,
    /// Small things that are to be quick and cheap.
    Quick,
}

impl Pointer {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Main, Self::Task, Self::Compact, Self::Quick];

    /// Its name in settings and lists.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Main => "main",
            Self::Task => "task",
            Self::Compact => "compact",
            Self::Quick => "quick",
        }
    }

    /// The meaning of a name or alias: its own name, or what other agents' files call their strong and their quick model.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        match name {
            "main" | "default" | "opus" | "sonnet" => Some(Self::Main),
            "task" => Some(Self::Task),
            "compact" => Some(Self::Compact),
            "quick" | "haiku" => Some(Self::Quick),
            _ => None,
        }
    }
}

/// Makes the model of a profile, ready to be asked; nothing is sent yet.
#[async_trait]
pub trait Connector: Send + Sync {
    /// The model of a profile.
    ///
    /// # Errors
    /// Of kind [`ModelErrorKind::Configuration`] when the profile cannot work.
    async fn connect(&self, profile: &Profile) -> Result<Arc<dyn Model>, ModelError>;

    /// How a profile's server serves its model, as far as it tells. Only servers of this machine are asked.
    async fn serving(&self, _profile: &Profile) -> Serving {
        Serving::default()
    }

    /// The model servers of this machine that answer, with the names of their models. Called when the user asks for models.
    async fn running(&self) -> Vec<RunningServer> {
        Vec::new()
    }
}

/// A model server of this machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunningServer {
    /// Its name for people.
    pub label: String,
    /// Its address.
    pub base_url: String,
    /// The names of its models.
    pub models: Vec<String>,
}

/// How a server serves a model, as far as it tells.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Serving {
    /// The context window in tokens.
    pub context_window: Option<u64>,
    /// Whether the model's template has a place for tools. Without one servers leave tools out in silence.
    pub tools: Option<bool>,
}

/// A profile that cannot be used.
#[derive(Clone, Debug)]
pub struct UnusableProfile {
    /// Its name for users.
    pub name: String,
    /// Where it is described.
    pub source: String,
    /// Why it cannot be used.
    pub error: ModelError,
}

/// Connects nothing: all models are of this process.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoConnector;

#[async_trait]
impl Connector for NoConnector {
    async fn connect(&self, profile: &Profile) -> Result<Arc<dyn Model>, ModelError> {
        let message = format!("The model profile `{}` has no model in this process.", profile.name);
        Err(ModelError::new(ModelErrorKind::Configuration, message))
    }
}

/// The models as they are now. Clones are the same ones.
#[derive(Clone)]
pub struct CurrentModels(Arc<parking_lot::Mutex<Arc<Models>>>, Arc<parking_lot::Mutex<ServedTable>>);

/// Facts about how servers serve models, by host and model.
#[derive(Debug, Default)]
struct ServedTable {
    found: HashMap<ServedKey, Serving>,
    /// The models whose servers were asked; true once they have answered.
    asked: HashMap<ServedKey, tokio::sync::watch::Receiver<bool>>,
}

type ServedKey = (String, String);

fn key(profile: &Profile) -> ServedKey {
    (profile.host(), profile.model.clone())
}

impl CurrentModels {
    /// These, until others take their place.
    #[must_use]
    pub fn new(models: Models) -> Self {
        Self(Arc::new(parking_lot::Mutex::new(Arc::new(models))), Arc::default())
    }

    /// The current models. A holder continues with them after a replacement.
    #[must_use]
    pub fn now(&self) -> Arc<Models> {
        Arc::clone(&self.0.lock())
    }

    /// Takes in how the server of `profile` serves its model. All profiles of that model at that host get it, now and after
    /// a change of settings. False when it was known.
    pub async fn learn(&self, profile: &Profile, serving: Serving) -> bool {
        let is_new = {
            let mut served = self.served();
            let known = served.found.entry(key(profile)).or_default();
            let merged = Serving {
                context_window: serving.context_window.or(known.context_window),
                tools: serving.tools.or(known.tools),
            };
            std::mem::replace(known, merged) != merged
        };
        if is_new {
            let before = self.now();
            let models = Models {
                profiles: before.profiles.clone(),
                sources: before.sources.clone(),
                unusable: before.unusable.clone(),
                default: before.default.clone(),
                pointers: before.pointers.clone(),
                missing: before.missing.clone(),
                problems: before.problems.clone(),
                published: before.published.clone(),
                connector: Arc::clone(&before.connector),
                connected: tokio::sync::Mutex::default(),
            };
            self.replace(models).await;
        }
        is_new
    }

    /// The model servers of this machine that answer.
    pub async fn running(&self) -> Vec<RunningServer> {
        let connector = Arc::clone(&self.now().connector);
        connector.running().await
    }

    /// Asks the server of a profile how it serves its model, in the background and once.
    pub fn look_up(&self, profile: &Profile) {
        if profile.provider == Provider::Demo {
            return;
        }
        // Outside of a runtime nothing is asked of any model.
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        let (done, receiver) = tokio::sync::watch::channel(false);
        match self.served().asked.entry(key(profile)) {
            Entry::Occupied(_) => return,
            Entry::Vacant(vacant) => drop(vacant.insert(receiver)),
        }
        let (models, profile, connector) = (self.clone(), profile.clone(), Arc::clone(&self.now().connector));
        runtime.spawn(async move {
            let serving = connector.serving(&profile).await;
            if serving != Serving::default() {
                models.learn(&profile, serving).await;
            }
            done.send_replace(true);
        });
    }

    /// Waits for the answer to [`CurrentModels::look_up`] where it is still to come, and no longer than [`LOOK_UP_WAIT`]:
    /// a request that is sent before may go to a model that cannot read it.
    pub async fn looked_up(&self, profile: &Profile) {
        let waiting = self.served().asked.get(&key(profile)).cloned();
        if let Some(mut waiting) = waiting {
            let answered = waiting.wait_for(|done| *done);
            let _ = tokio::time::timeout(LOOK_UP_WAIT, answered).await;
        }
    }

    fn served(&self) -> parking_lot::MutexGuard<'_, ServedTable> {
        self.1.lock()
    }

    /// Lets others count from now on, and says whether they are others. Connections to profiles that are as before stay.
    pub async fn replace(&self, mut models: Models) -> bool {
        for profile in models.profiles.values_mut() {
            let known = self.served().found.get(&key(profile)).copied();
            if let Some(serving) = known {
                profile.serve(serving);
            }
        }
        let before = self.now();
        if models.says_the_same(&before) {
            return false;
        }
        {
            let (mut connected, known) = (models.connected.lock().await, before.connected.lock().await);
            let stays = |name: &String| match (models.profiles.get(name), before.profiles.get(name)) {
                (Some(new), Some(old)) => new.connects_as(old),
                (None, None) => true,
                (Some(_), None) | (None, Some(_)) => false,
            };
            let kept = known.iter().filter(|(name, _)| stays(name));
            connected.extend(kept.map(|(name, model)| (name.clone(), Arc::clone(model))));
        }
        *self.0.lock() = Arc::new(models);
        true
    }
}

/// The model profiles a server knows, and the connections made so far.
pub struct Models {
    profiles: BTreeMap<String, Profile>,
    /// Where each profile is described.
    sources: BTreeMap<String, String>,
    unusable: BTreeMap<String, UnusableProfile>,
    default: String,
    /// The targets of the pointers but `main`, where set.
    pointers: BTreeMap<Pointer, String>,
    /// Why the default profile cannot be used, told when a turn wants it.
    missing: Option<ModelError>,
    /// Problems beyond single profiles, for the user.
    problems: Vec<String>,
    /// The published catalog that the profiles were resolved with.
    published: Option<Arc<PublishedCatalog>>,
    connector: Arc<dyn Connector>,
    connected: tokio::sync::Mutex<HashMap<String, Arc<dyn Model>>>,
}

impl Models {
    /// The built-in demo profile and `main`, or the reason why there is no `main`. With `main` it is the default,
    /// and without it as well: a turn then names the missing part.
    #[must_use]
    pub fn new(main: Result<Profile, ModelError>, connector: Arc<dyn Connector>) -> Self {
        let demo = Profile::demo();
        let mut profiles = BTreeMap::from([(demo.name.clone(), demo)]);
        let (default, missing) = match main {
            Ok(profile) => {
                let name = profile.name.clone();
                profiles.insert(name.clone(), profile);
                (name, None)
            }
            Err(error) => (Pointer::Main.name().to_owned(), Some(error)),
        };
        Self {
            profiles,
            sources: BTreeMap::new(),
            unusable: BTreeMap::new(),
            default,
            pointers: BTreeMap::new(),
            missing,
            problems: Vec::new(),
            published: None,
            connector,
            connected: tokio::sync::Mutex::default(),
        }
    }

    /// A profile with a model of this process. Nothing else can be connected.
    #[must_use]
    pub fn in_process(profile: Profile, model: Arc<dyn Model>) -> Self {
        let connected = HashMap::from([(profile.name.clone(), model)]).into();
        Self { connected, ..Self::new(Ok(profile), Arc::new(NoConnector)) }
    }

    /// The same with another profile and its model of this process.
    #[must_use]
    pub fn with_in_process(mut self, profile: Profile, model: Arc<dyn Model>) -> Self {
        self.connected.get_mut().insert(profile.name.clone(), model);
        self.profiles.insert(profile.name.clone(), profile);
        self
    }

    /// The same with a pointer to one of its profiles.
    #[must_use]
    pub fn pointing(mut self, pointer: Pointer, name: &str) -> Self {
        self.pointers.insert(pointer, name.to_owned());
        self
    }

    /// Whether others describe the same.
    fn says_the_same(&self, other: &Self) -> bool {
        let unusable = |models: &Self| {
            let all = models.unusable.values();
            all.map(|one| (one.name.clone(), one.source.clone(), one.error.to_string())).collect::<Vec<_>>()
        };
        let missing = |models: &Self| models.missing.as_ref().map(ToString::to_string);
        self.profiles == other.profiles
            && self.sources == other.sources
            && self.default == other.default
            && self.pointers == other.pointers
            && self.problems == other.problems
            && self.published == other.published
            && unusable(self) == unusable(other)
            && missing(self) == missing(other)
    }

    /// The published catalog that the profiles were resolved with.
    #[must_use]
    pub fn published(&self) -> Option<&PublishedCatalog> {
        self.published.as_deref()
    }

    /// The name of the profile new sessions use.
    #[must_use]
    pub fn default_name(&self) -> &str {
        &self.default
    }

    /// The name of the profile that a pointer points to; that of `main` by default.
    #[must_use]
    pub fn pointer(&self, pointer: Pointer) -> String {
        self.pointers.get(&pointer).unwrap_or(&self.default).clone()
    }

    /// Why the default profile cannot be used, if it cannot.
    #[must_use]
    pub fn missing(&self) -> Option<&ModelError> {
        self.missing.as_ref()
    }

    /// The profiles that can be used, by name.
    pub fn profiles(&self) -> impl Iterator<Item = &Profile> {
        self.profiles.values()
    }

    /// The first usable profile of a model at an address.
    #[must_use]
    pub fn profile_of(&self, base_url: &str, model: &str) -> Option<&Profile> {
        self.profiles().find(|profile| profile.base_url == base_url && profile.model == model)
    }

    /// The profiles that cannot be used, by name.
    pub fn unusable(&self) -> impl Iterator<Item = &UnusableProfile> {
        self.unusable.values()
    }

    /// Where a profile is described, in words for people.
    #[must_use]
    pub fn source(&self, name: &str) -> Option<&str> {
        self.sources.get(name).map(String::as_str)
    }

    /// Problems beyond single profiles, for the user.
    #[must_use]
    pub fn problems(&self) -> &[String] {
        &self.problems
    }

    /// The prices of a profile's model, if known.
    #[must_use]
    pub fn prices(&self, name: &str) -> Option<&Prices> {
        self.profiles.get(name)?.prices.as_ref()
    }

    /// The keys of the profiles; the built-in demo has none worth hiding.
    #[must_use]
    pub fn secrets(&self) -> Vec<Secret> {
        let real = self.profiles().filter(|profile| profile.provider != Provider::Demo);
        real.flat_map(|profile| profile.credentials.secret().into_iter().chain(profile.headers.values()))
            .cloned()
            .collect()
    }

    /// The profile of that name.
    ///
    /// # Errors
    /// Of kind [`ModelErrorKind::Configuration`]: why it cannot be used, or the names of the profiles there are.
    pub fn profile(&self, name: &str) -> Result<&Profile, ModelError> {
        if let Some(profile) = self.profiles.get(name) {
            return Ok(profile);
        }
        if let Some(unusable) = self.unusable.get(name) {
            let message = format!("The model profile `{name}` cannot be used: {}", unusable.error.message);
            return Err(ModelError { message, ..unusable.error.clone() });
        }
        if let (Some(missing), true) = (&self.missing, name == self.default) {
            return Err(missing.clone());
        }
        let known: Vec<_> = self.profiles.keys().map(String::as_str).collect();
        let message = format!("there is no model profile `{name}`; there are: {}", known.join(", "));
        Err(ModelError::new(ModelErrorKind::Configuration, message))
    }

    /// The name of the profile that a name means, by what fits first: the name of a profile, a pointer or an alias of
    /// one, the name of a model, a part of a model's name.
    ///
    /// # Errors
    /// As [`Models::profile`].
    pub fn resolve(&self, name: &str) -> Result<String, ModelError> {
        self.resolve_with(name, &BTreeMap::new())
    }

    /// As [`Models::resolve`], where a workspace has pointers of its own.
    ///
    /// # Errors
    /// As [`Models::profile`].
    pub fn resolve_with(&self, name: &str, own: &BTreeMap<Pointer, String>) -> Result<String, ModelError> {
        if self.profiles.contains_key(name) {
            return Ok(name.to_owned());
        }
        if let Some(pointer) = Pointer::parse(name).filter(|_| !self.unusable.contains_key(name)) {
            return Ok(self.pointer_with(pointer, own));
        }
        let exact = |profile: &&Profile| profile.model == name;
        let alike = |profile: &&Profile| !name.is_empty() && profile.model.contains(name);
        let found = self.profiles().find(exact).or_else(|| self.profiles().find(alike));
        found.map_or_else(|| self.profile(name), Ok).map(|profile| profile.name.clone())
    }

    /// The name of the profile that a pointer points to, where a workspace has pointers of its own. One that points to
    /// nothing there is counts as not said.
    #[must_use]
    pub fn pointer_with(&self, pointer: Pointer, own: &BTreeMap<Pointer, String>) -> String {
        let named = own.get(&pointer).filter(|named| Pointer::parse(named).is_none());
        named.and_then(|named| self.resolve(named).ok()).unwrap_or_else(|| self.pointer(pointer))
    }

    /// The model of a profile, connected at the first call.
    ///
    /// # Errors
    /// As [`Models::profile`], or what connecting says.
    pub async fn connect(&self, name: &str) -> Result<Arc<dyn Model>, ModelError> {
        let mut connected = self.connected.lock().await;
        if let Some(model) = connected.get(name) {
            return Ok(Arc::clone(model));
        }
        let profile = self.profile(name)?;
        let model = self.connector.connect(profile).await?;
        connected.insert(name.to_owned(), Arc::clone(&model));
        Ok(model)
    }
}
