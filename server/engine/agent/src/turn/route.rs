//! The choice of the model: the conversation's own, or its fallback.
//!
//! Rule: a fallback is asked only where the profile of the own model names it for what happened, and each time that
//! happens a notice reports it. The own model then rests for [`REST`], and is tried again with the first call after it, or
//! when the fallback fails: an answer fails only when both were asked, or there is no fallback.

use std::collections::HashSet;
use std::sync::atomic::Ordering;
use std::time::Duration;

use crate::models::SessionModels;
use crate::turn::services::TurnContext;
use kode_model::fallback::Trigger;
use kode_model::models::Models;
use kode_model::retry::WAIT_CEILING;
use kode_model::{ModelError, ModelErrorKind};
use kode_record::event::{NoticeKind, NoticeLevel};

/// The time that a model rests after its fallback was called, unless its server names a longer one.
pub(crate) const REST: Duration = Duration::from_secs(120);

/// The choice of the profile for one answer.
pub(super) struct Route<'a> {
    turn: TurnContext<'a>,
    own: String,
    asked: String,
    /// Whether the other of the two was asked before, so that nothing is left to turn to.
    has_turned: bool,
}

impl<'a> Route<'a> {
    /// Begins with the conversation's own model, or with its fallback while the own rests or where `fallback_first` says
    /// so and there is one.
    ///
    /// # Errors
    /// When there is no such profile.
    pub(super) fn begin(turn: TurnContext<'a>, fallback_first: bool) -> Result<Self, ModelError> {
        let models = &turn.services.models;
        let own = turn.conversation.model();
        models.now().profile(&own)?;
        let mut route = Self { turn, asked: own.clone(), own, has_turned: false };
        if fallback_first && route.fall_back(Trigger::IncompleteIntent, None) {
            // The own model was not asked for this answer.
            route.has_turned = false;
        } else if models.rests(&route.own)
            && let Some(fallback) = route.fallback(None)
        {
            route.notify_rest(&fallback);
            route.asked = fallback;
        }
        Ok(route)
    }

    /// The profile that is asked.
    pub(super) fn profile(&self) -> &str {
        &self.asked
    }

    /// Switches to the fallback and notifies the user; false without one for this trigger, or it was called already.
    pub(super) fn fall_back(&mut self, trigger: Trigger, error: Option<&ModelError>) -> bool {
        // The user may want the fallback for announcements although the profile does not name them.
        let named = (trigger != Trigger::IncompleteIntent).then_some(trigger);
        let Some(fallback) = self.fallback(named).filter(|_| self.asked == self.own && !self.has_turned)
        else {
            return false;
        };
        let (from, to) = (self.model_of(&self.own), self.model_of(&fallback));
        let what = match trigger {
            Trigger::Overloaded => "is overloaded",
            Trigger::RateLimited => "takes no more requests for now",
            Trigger::ServerError => "failed",
            Trigger::Network => "cannot be reached",
            Trigger::ContextTooLong => "cannot read that many tokens",
            Trigger::IncompleteIntent => "only announced what to do",
            Trigger::Refusal => "declined to answer",
        };
        let hint = error.map(ToString::to_string).unwrap_or_default();
        let text = format!("{from} {what}, asking {to}.");
        self.turn.notice_of(NoticeKind::Fallback, (NoticeLevel::Warning, &text, &hint));
        // A request that is too long is no fault of the model: it can read a shorter one.
        if let Some(error) = error.filter(|_| trigger != Trigger::ContextTooLong) {
            self.turn.conversation.rest_notified.store(true, Ordering::Relaxed);
            let asked_for = error.retry_after.unwrap_or_default().min(WAIT_CEILING);
            self.turn.services.models.rest(&self.own, REST.max(asked_for));
        }
        (self.asked, self.has_turned) = (fallback, true);
        true
    }

    /// Says once in a turn that the fallback is asked because the own model rests.
    fn notify_rest(&self, fallback: &str) {
        if !self.turn.conversation.rest_notified.swap(true, Ordering::Relaxed) {
            let (from, to) = (self.model_of(&self.own), self.model_of(fallback));
            let text = format!("{from} failed shortly before and is not asked for a while, asking {to}.");
            self.turn.notice_of(NoticeKind::Fallback, (NoticeLevel::Warning, &text, ""));
        }
    }

    /// Turns to the model that was not asked yet and says so: to the fallback if the fault triggers it, or back to the own
    /// that was passed over; false if absent.
    pub(super) fn turn_from(&mut self, error: &ModelError) -> bool {
        if self.asked == self.own || self.has_turned || error.kind == ModelErrorKind::Cancelled {
            return self.fall_back_from(error);
        }
        let (from, to) = (self.model_of(&self.asked), self.model_of(&self.own));
        let text = format!("{from} failed as well, asking {to} all the same.");
        let hint = error.to_string();
        self.turn.notice_of(NoticeKind::Fallback, (NoticeLevel::Warning, &text, &hint));
        self.turn.services.models.wake(&self.own);
        (self.asked, self.has_turned) = (self.own.clone(), true);
        true
    }

    /// Turns to the fallback after a fault, if it is one that triggers it.
    fn fall_back_from(&mut self, error: &ModelError) -> bool {
        match error.kind {
            ModelErrorKind::Cancelled => false,
            ModelErrorKind::Configuration
            | ModelErrorKind::Authentication
            | ModelErrorKind::Payment
            | ModelErrorKind::BadRequest
            | ModelErrorKind::ContextTooLong
            | ModelErrorKind::RateLimited
            | ModelErrorKind::Server
            | ModelErrorKind::Network
            | ModelErrorKind::Interrupted
            | ModelErrorKind::Protocol => {
                Trigger::of(error).is_some_and(|trigger| self.fall_back(trigger, Some(error)))
            }
        }
    }

    /// The profile to ask instead of the own, if it is named for this trigger, or for any where none is given.
    fn fallback(&self, trigger: Option<Trigger>) -> Option<String> {
        fallback(&self.turn.services.models.now(), &self.own, trigger)
    }

    /// The model of a profile as the provider knows it.
    fn model_of(&self, profile: &str) -> String {
        let models = self.turn.services.models.now();
        let known = models.profile(profile);
        known.map_or_else(|_| profile.to_owned(), |profile| profile.model.clone())
    }
}

/// The profiles of `names` in the order in which they are asked: for one that rests its fallback is, and itself only when
/// all others have failed.
pub(super) fn by_rest(models: &SessionModels, names: &[&str]) -> Vec<String> {
    let (mut order, mut resting) = (Vec::new(), Vec::new());
    for name in names {
        if models.rests(name) {
            let fallback = fallback(&models.now(), name, None);
            order.extend(fallback.filter(|fallback| !models.rests(fallback)));
            resting.push((*name).to_owned());
        } else {
            order.push((*name).to_owned());
        }
    }
    order.append(&mut resting);
    let mut known = HashSet::new();
    order.retain(|name| known.insert(name.clone()));
    order
}

/// The profile to ask instead of `own`, if it is named for this trigger, or for any where none is given.
fn fallback(models: &Models, own: &str, trigger: Option<Trigger>) -> Option<String> {
    let profile = models.profile(own).ok()?;
    let fallback = profile.fallback.as_ref()?;
    if trigger.is_some_and(|trigger| !fallback.triggers.contains(&trigger)) {
        return None;
    }
    match models.resolve(&fallback.profile) {
        Ok(name) => Some(name).filter(|name| name != own),
        Err(error) => {
            tracing::warn!(profile = %own, %error, "the fallback cannot be asked");
            None
        }
    }
}
