//! Profiles from all the places where users describe them.
//!
//! Rule: layers come from the strongest to the weakest, and a profile counts as the strongest layer has it, whole; what the
//! environment describes is the weakest. A bad profile is kept with the reason, and hides none of another name.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::{Connector, Models, Pointer, UnusableProfile};
use crate::catalog::{CatalogEntry, ModelCatalog, PublishedCatalog};
use crate::fallback::{Fallback, Trigger};
use crate::profile::{KeyHelper, Profile, ProfileContext, ProfileOptions};
use crate::{ModelError, ModelErrorKind};

/// The name of the profile that the environment describes, where another one is the main one.
const ENVIRONMENT: &str = "environment";

/// The most profiles that are kept.
const MAX_PROFILES: usize = 200;

/// Profiles and pointers of one place.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ProfileLayer {
    /// The place, in words for people.
    pub source: String,
    /// The profiles by name, or why the value is invalid.
    pub profiles: BTreeMap<String, Result<ProfileOptions, String>>,
    /// The targets of the pointers: names of profiles or models.
    pub pointers: BTreeMap<Pointer, String>,
}

/// All that the models of a server are made from.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ModelSources {
    /// The places, the strongest first.
    pub layers: Vec<ProfileLayer>,
    /// The fallback of profiles that name none.
    pub fallback: Option<String>,
    /// The helper for Anthropic's key, where neither profile nor environment has one.
    pub helper: Option<KeyHelper>,
    /// The user's model data.
    pub catalog: Vec<CatalogEntry>,
    /// The published catalog that the user has named.
    pub published: Option<PublishedSource>,
}

/// A published catalog of models.
#[derive(Clone, Debug, PartialEq)]
pub enum PublishedSource {
    /// Its path or address.
    At(String),
    /// The catalog.
    Read(Arc<PublishedCatalog>),
    /// Why it cannot be read.
    Unreadable(String),
}

impl Models {
    /// The models that `sources` and the environment describe; `variable` gives the value of a variable. Never fails:
    /// what cannot be used is in [`Models::unusable`], and what else is wrong in [`Models::problems`].
    #[must_use]
    pub fn assemble(
        sources: ModelSources,
        variable: &dyn Fn(&str) -> Option<String>,
        connector: Arc<dyn Connector>,
    ) -> Self {
        let mut catalog = ModelCatalog::with(sources.catalog);
        if let Some(PublishedSource::Read(published)) = &sources.published {
            catalog = catalog.published(Arc::clone(published));
        }
        let around = ProfileContext { variable, catalog: &catalog, helper: sources.helper };
        let environment = Profile::resolve(Pointer::Main.name(), ProfileOptions::default(), &around);
        // Without any other the models are those of the environment, or the reason why none exist.
        let mut models = Self::new(environment.clone(), connector);
        match sources.published {
            Some(PublishedSource::Read(published)) => models.published = Some(published),
            Some(PublishedSource::Unreadable(reason)) => {
                models.problems.push(format!("The setting `modelCatalog` is ignored: {reason}."));
            }
            Some(PublishedSource::At(_)) | None => {}
        }
        models.sources.insert("demo".to_owned(), "built in".to_owned());
        models.profiles.remove(Pointer::Main.name());
        for layer in &sources.layers {
            for (name, options) in &layer.profiles {
                models.take(name, options, &layer.source, &around);
            }
        }
        models.point(&sources.layers, environment);
        models.fall_back(sources.fallback.as_deref());
        models
    }

    /// Takes a profile in, unless a stronger layer has one of its name.
    fn take(
        &mut self,
        name: &str,
        options: &Result<ProfileOptions, String>,
        source: &str,
        around: &ProfileContext<'_>,
    ) {
        if self.sources.contains_key(name) && name != "demo" || self.unusable.contains_key(name) {
            return;
        }
        if self.profiles.len() + self.unusable.len() >= MAX_PROFILES {
            self.problems.push(format!(
                "The model profile `{name}` ({source}) is left out: there are {MAX_PROFILES} already."
            ));
            return;
        }
        let made = match options {
            Ok(options) => Profile::resolve(name, options.clone(), around),
            Err(reason) => Err(ModelError::new(ModelErrorKind::Configuration, reason.clone())),
        };
        match made {
            Ok(profile) => {
                self.profiles.insert(name.to_owned(), profile);
                self.sources.insert(name.to_owned(), source.to_owned());
            }
            Err(error) => {
                let unusable = UnusableProfile { name: name.to_owned(), source: source.to_owned(), error };
                self.unusable.insert(name.to_owned(), unusable);
            }
        }
    }

    /// Settles what each pointer points to.
    fn point(&mut self, layers: &[ProfileLayer], environment: Result<Profile, ModelError>) {
        let main = Pointer::Main.name();
        let (named, has_main) = (self.named(Pointer::Main, layers), self.has(main));
        // A main profile that is described in a stronger place than the pointer counts before it.
        let described = layers.iter().position(|layer| layer.profiles.contains_key(main));
        let pointed = layers.iter().position(|layer| layer.pointers.contains_key(&Pointer::Main));
        let is_pointed = match (described, pointed) {
            (Some(described), Some(pointed)) => pointed <= described,
            (_, pointed) => pointed.is_some(),
        };
        let default = match named.filter(|_| is_pointed) {
            Some(name) => name,
            None => main.to_owned(),
        };
        if let Ok(profile) = environment.clone() {
            let name = if default == main { main } else { ENVIRONMENT };
            if !self.has(name) {
                self.sources.insert(name.to_owned(), "the environment".to_owned());
                self.profiles.insert(name.to_owned(), Profile { name: name.to_owned(), ..profile });
            }
        }
        self.missing = if default == main && !has_main { environment.err() } else { None };
        self.default = default;
        for pointer in Pointer::ALL {
            if pointer != Pointer::Main
                && let Some(name) = self.named(pointer, layers)
            {
                self.pointers.insert(pointer, name);
            }
        }
    }

    /// The profile that a pointer names in the strongest layer that says anything of it.
    fn named(&mut self, pointer: Pointer, layers: &[ProfileLayer]) -> Option<String> {
        let layer = layers.iter().find(|layer| layer.pointers.contains_key(&pointer))?;
        let wanted = layer.pointers.get(&pointer)?;
        if self.has(wanted) {
            return Some(wanted.clone());
        }
        // `main` may be the environment's, which is taken in later.
        if wanted == Pointer::Main.name() {
            return None;
        }
        let found =
            self.profiles().find(|profile| profile.model == *wanted).map(|profile| profile.name.clone());
        if found.is_none() {
            self.problems.push(format!(
                "The model pointer `{}` ({}) names `{wanted}`, which is no profile.",
                pointer.name(),
                layer.source
            ));
        }
        found
    }

    fn has(&self, name: &str) -> bool {
        self.profiles.contains_key(name) || self.unusable.contains_key(name)
    }

    /// Gives every profile without a fallback the common one, and takes away those that lead nowhere.
    fn fall_back(&mut self, common: Option<&str>) {
        let mut settled = BTreeMap::new();
        for (name, profile) in &self.profiles {
            let own = profile.fallback.clone();
            let common =
                common.map(|profile| Fallback { profile: profile.to_owned(), triggers: Trigger::usual() });
            let Some(fallback) = own.clone().or(common) else { continue };
            match self.resolve(&fallback.profile) {
                Ok(target) if target == *name => {}
                Ok(target) => {
                    settled.insert(name.clone(), Fallback { profile: target, ..fallback });
                }
                Err(error) if own.is_some() => {
                    self.problems
                        .push(format!("The fallback of the model profile `{name}` is ignored: {error}."));
                }
                Err(_) => {}
            }
        }
        if let Some(common) = common
            && let Err(error) = self.resolve(common)
        {
            self.problems.push(format!("The setting `fallbackModel` is ignored: {error}."));
        }
        for (name, profile) in &mut self.profiles {
            profile.fallback = settled.remove(name);
        }
    }
}
