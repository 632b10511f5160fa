//! Whether sessions are exported, where to, and with which headers.
//!
//! Rule: nothing is exported unless the environment of the process or the user's own settings name a collector; the value of
//! a header is a secret.

use std::time::Duration;

use serde::Deserialize;
use serde_json::{Map, Value};
use url::Url;

use kode_base::secret::Secret;

/// The time limit of a request, where the environment has none.
const TIMEOUT: Duration = Duration::from_secs(10);

const ENDPOINT: &str = "OTEL_EXPORTER_OTLP_ENDPOINT";
const DISABLED: &str = "OTEL_SDK_DISABLED";
const REQUEST_TIMEOUT: &str = "OTEL_EXPORTER_OTLP_TIMEOUT";
const SERVICE_NAME: &str = "OTEL_SERVICE_NAME";
const RESOURCE: &str = "OTEL_RESOURCE_ATTRIBUTES";

/// A kind of data with an address of its own.
#[derive(Clone, Copy, Debug)]
struct Signal {
    /// The variable with its whole address.
    variable: &'static str,
    /// The path behind the address of the collector.
    path: &'static str,
}

const TRACES: Signal = Signal { variable: "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", path: "v1/traces" };
const METRICS: Signal = Signal { variable: "OTEL_EXPORTER_OTLP_METRICS_ENDPOINT", path: "v1/metrics" };

/// How sessions are exported.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TelemetryOptions {
    /// Where spans go.
    pub(crate) traces: Option<Url>,
    /// Where metrics go.
    pub(crate) metrics: Option<Url>,
    /// The headers of the user's settings.
    pub(crate) headers: Vec<(String, Secret)>,
    /// Whether prompts, answers and arguments and results of tools are exported.
    pub(crate) content: bool,
    /// The time limit of a request.
    pub(crate) timeout: Duration,
    /// Whether the environment names the service.
    pub(crate) service_is_named: bool,
    /// Whether the environment tells this process from others.
    pub(crate) instance_is_named: bool,
}

/// Why nothing is exported although a collector is named.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TelemetryError {
    /// The setting does not have the form it should.
    #[error("the setting `telemetry` cannot be read: {0}")]
    Setting(String),
    /// No address of an HTTP server.
    #[error("{0} has to be an address such as http://127.0.0.1:4318")]
    Address(String),
    /// The variable of a header is not set.
    #[error("the variable {variable} of the header `{header}` of `telemetry` is not set")]
    MissingVariable {
        /// The header.
        header: String,
        /// The variable.
        variable: String,
    },
    /// The exporter cannot be set up.
    #[error("the export cannot begin: {0}")]
    Exporter(String),
}

/// The setting `telemetry`.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
struct TelemetrySetting {
    endpoint: Option<String>,
    headers: Map<String, Value>,
    content: bool,
}

/// The value of a header: the name of a variable that has it.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct HeaderValueSource {
    from_env: String,
}

impl TelemetryOptions {
    /// The options by the user's setting `telemetry` and the variables of the process; `None` where nothing is to be exported.
    ///
    /// # Errors
    /// [`TelemetryError`] where a collector is named in a way that cannot be followed.
    pub fn read(
        setting: Option<&Value>,
        variable: &dyn Fn(&str) -> Option<String>,
    ) -> Result<Option<Self>, TelemetryError> {
        let variable = |name: &str| variable(name).filter(|value| !value.trim().is_empty());
        if variable(DISABLED).is_some_and(|value| value.trim().eq_ignore_ascii_case("true")) {
            return Ok(None);
        }
        // Other agents have a switch of this name.
        let setting = setting.filter(|setting| setting.is_object());
        let setting = match setting.map(TelemetrySetting::deserialize) {
            Some(Ok(setting)) => setting,
            // The error could repeat the value, and a header may be part of it.
            Some(Err(_)) => {
                let form = "write `endpoint`, `headers` and `content`".to_owned();
                return Err(TelemetryError::Setting(form));
            }
            None => TelemetrySetting::default(),
        };
        let base = match (variable(ENDPOINT), &setting.endpoint) {
            (Some(endpoint), _) => Some(address(ENDPOINT, &endpoint)?),
            (None, Some(endpoint)) => Some(address("`telemetry.endpoint`", endpoint)?),
            (None, None) => None,
        };
        let (traces, metrics) =
            (TRACES.address(base.as_ref(), &variable)?, METRICS.address(base.as_ref(), &variable)?);
        if traces.is_none() && metrics.is_none() {
            return Ok(None);
        }
        // A key for one server is not sent to another that the environment names.
        let is_by_variable =
            [ENDPOINT, TRACES.variable, METRICS.variable].iter().any(|name| variable(name).is_some());
        let headers = if is_by_variable { Vec::new() } else { headers(&setting.headers, &variable)? };
        let timeout = variable(REQUEST_TIMEOUT).and_then(|text| text.trim().parse().ok());
        let resource = variable(RESOURCE).unwrap_or_default();
        let names = |key: &str| {
            resource.split(',').filter_map(|entry| entry.split_once('=')).any(|(name, _)| name.trim() == key)
        };
        let service_is_named = variable(SERVICE_NAME).is_some() || names("service.name");
        let instance_is_named = names("service.instance.id");
        let (timeout, content) = (timeout.map_or(TIMEOUT, Duration::from_millis), setting.content);
        Ok(Some(Self { traces, metrics, headers, content, timeout, service_is_named, instance_is_named }))
    }

    /// The addresses for people: without user, password and query.
    #[must_use]
    pub fn addresses(&self) -> Vec<String> {
        [&self.traces, &self.metrics].into_iter().flatten().map(shown).collect()
    }

    /// The values of headers, which no command is to see.
    #[must_use]
    pub fn secrets(&self) -> Vec<Secret> {
        self.headers.iter().map(|(_, value)| value.clone()).collect()
    }

    /// Whether prompts, answers and arguments and results of tools are exported.
    #[must_use]
    pub fn exports_content(&self) -> bool {
        self.content
    }
}

impl Signal {
    fn address(
        self,
        base: Option<&Url>,
        variable: &dyn Fn(&str) -> Option<String>,
    ) -> Result<Option<Url>, TelemetryError> {
        if let Some(whole) = variable(self.variable) {
            return address(self.variable, &whole).map(Some);
        }
        Ok(base.map(|base| {
            let mut url = base.clone();
            url.set_path(&format!("{}/{}", base.path().trim_end_matches('/'), self.path));
            url
        }))
    }
}

fn address(place: &str, text: &str) -> Result<Url, TelemetryError> {
    let url = Url::parse(text.trim()).ok().filter(|url| matches!(url.scheme(), "http" | "https"));
    url.filter(Url::has_host).ok_or_else(|| TelemetryError::Address(place.to_owned()))
}

fn headers(
    named: &Map<String, Value>,
    variable: &dyn Fn(&str) -> Option<String>,
) -> Result<Vec<(String, Secret)>, TelemetryError> {
    let value_of = |(header, value): (&String, &Value)| {
        let source = HeaderValueSource::deserialize(value).map_err(|_| {
            let form = format!("the header `{header}` has to be {{ \"fromEnv\": \"VARIABLE\" }}");
            TelemetryError::Setting(form)
        })?;
        let missing =
            || TelemetryError::MissingVariable { header: header.clone(), variable: source.from_env.clone() };
        let text = variable(&source.from_env).ok_or_else(missing)?;
        Ok((header.clone(), Secret::new(text)))
    };
    named.iter().map(value_of).collect()
}

/// An address for people.
pub(crate) fn shown(url: &Url) -> String {
    let mut url = url.clone();
    // These fail for addresses without a host, which were refused above.
    let _ = url.set_username("");
    let _ = url.set_password(None);
    url.set_query(None);
    url.set_fragment(None);
    url.to_string()
}

#[cfg(test)]
mod tests;
