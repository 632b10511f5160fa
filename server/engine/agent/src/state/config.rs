//! The choices that are in effect in a session: mode, model, effort, style, delivery.

use serde::{Deserialize, Serialize};

use kode_base::effort::Effort;
use kode_base::mode::{Mode, StoredMode};
use kode_permission::EditDeliveryRule;
use kode_record::event::Event;
use kode_record::record::Record;

/// The choices of a session.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct SessionConfig {
    /// The mode.
    pub mode: Mode,
    /// The recorded name of the mode where this build does not know it; the default mode applies then.
    pub unknown_mode: Option<String>,
    /// The mode that plan mode was entered from, while it lasts.
    pub mode_before_plan: Option<Mode>,
    /// The mode in which the model answered last.
    pub mode_known: Option<Mode>,
    /// The name of the model profile.
    pub model: String,
    /// The thinking effort; `None` where the user has chosen none for this session.
    pub effort: Option<Effort>,
    /// The name of the output style; `None` where the user has chosen none for this session.
    pub output_style: Option<String>,
    /// The profile of the sandbox; `None` where the user has chosen none for this session.
    #[serde(default)]
    pub sandbox: Option<String>,
    /// The rules by which changes reach the files; `None` where the session has none of its own.
    pub deliveries: Option<Vec<EditDeliveryRule>>,
}

/// A change of the choices; `None` leaves one as it is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ConfigChange {
    /// The mode.
    pub mode: Option<Mode>,
    /// The name of the model profile.
    pub model: Option<String>,
    /// The thinking effort; `Some(None)` is that of the profile and the settings.
    pub effort: Option<Option<Effort>>,
    /// The name of the output style; `Some(None)` is that of the settings.
    pub output_style: Option<Option<String>>,
    /// The profile of the sandbox; `Some(None)` is what the settings say.
    pub sandbox: Option<Option<String>>,
}

impl SessionConfig {
    /// The choices a session begins with.
    pub(super) fn new(mode: &StoredMode, model: String) -> Self {
        Self {
            mode: mode.known().unwrap_or_default(),
            unknown_mode: mode.unknown().map(str::to_owned),
            mode_before_plan: None,
            mode_known: None,
            model,
            effort: None,
            output_style: None,
            sandbox: None,
            deliveries: None,
        }
    }

    /// The record of a change; `None` where nothing would change.
    pub(crate) fn changed(&self, change: ConfigChange) -> Option<Record> {
        let mode = change.mode.unwrap_or(self.mode);
        let model = change.model.unwrap_or_else(|| self.model.clone());
        let effort = change.effort.unwrap_or(self.effort);
        let output_style = change.output_style.unwrap_or_else(|| self.output_style.clone());
        let sandbox = change.sandbox.unwrap_or_else(|| self.sandbox.clone());
        let is_same = mode == self.mode
            && model == self.model
            && effort == self.effort
            && output_style == self.output_style
            && sandbox == self.sandbox;
        (!is_same).then(|| Record::Configured { mode: mode.into(), model, effort, output_style, sandbox })
    }

    /// Sets mode, model, effort and style.
    pub(super) fn configure(
        &mut self,
        mode: &StoredMode,
        model: String,
        effort: Option<Effort>,
        output_style: Option<String>,
    ) -> Event {
        self.unknown_mode = mode.unknown().map(str::to_owned);
        let mode = mode.known().unwrap_or_default();
        if mode != self.mode {
            self.mode_before_plan = (mode == Mode::Plan).then_some(self.mode);
        }
        (self.mode, self.model, self.effort, self.output_style) = (mode, model, effort, output_style);
        let (model, output_style, sandbox) =
            (self.model.clone(), self.output_style.clone(), self.sandbox.clone());
        Event::ModeChanged { mode, model, effort, output_style, sandbox }
    }
}
