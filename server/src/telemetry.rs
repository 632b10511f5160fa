//! The export of sessions of this process, as the environment and the user's settings want it.
//!
//! Rule: a collector that cannot be used is reported in the log, and sessions go on without it.

#![expect(clippy::disallowed_methods, reason = "the standard variables of OpenTelemetry name the collector")]

use std::sync::Arc;

use kode_engine::agent::engine::Engine;
use kode_engine::config::settings::SettingsPolicies;
use kode_engine::record::observer::SessionObserver;
use kode_engine::telemetry::{Telemetry, TelemetryError, TelemetryOptions};

/// The options of the export; `None` where nothing is exported. Reads the settings.
///
/// # Errors
/// [`TelemetryError`].
pub(crate) fn options(policies: &SettingsPolicies) -> Result<Option<TelemetryOptions>, TelemetryError> {
    TelemetryOptions::read(policies.values().telemetry.as_ref(), &|name| std::env::var(name).ok())
}

/// Begins the export of an engine's sessions, where a collector is named. Must be called in a runtime.
pub(crate) fn begin(engine: &Engine, policies: &SettingsPolicies) {
    let started = options(policies).and_then(|options| {
        let Some(options) = options else { return Ok(None) };
        engine.withhold(options.secrets());
        Telemetry::start(options).map(Some)
    });
    match started {
        Ok(Some(telemetry)) => engine.observe(telemetry as Arc<dyn SessionObserver>),
        Ok(None) => {}
        Err(error) => tracing::warn!(%error, "sessions are not exported"),
    }
}
