//! The export: exporters with their queues, and a reader for each session.
//!
//! Rule: a reader only reads what sessions publish; the end waits for readers and exporters no longer than [`END_LIMIT`].

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use kode_record::event::{EventLog, Subscription};
use kode_record::observer::{ObserverEnd, SessionObserver};
use opentelemetry::KeyValue;
use opentelemetry::metrics::MeterProvider;
use opentelemetry::trace::TracerProvider;
use opentelemetry_otlp::{
    MetricExporter, Protocol, RetryPolicy, SpanExporter, WithExportConfig, WithHttpConfig,
};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::metrics::SdkMeterProvider;
use opentelemetry_sdk::trace::SdkTracerProvider;
use parking_lot::Mutex;
use tokio::runtime::Handle;
use tokio::sync::oneshot;
use tokio::time::timeout;
use tokio_util::task::TaskTracker;
use url::Url;
use uuid::Uuid;

use crate::client::CollectorClient;
use crate::instruments::Instruments;
use crate::losses::{BoundedProcessor, Losses};
use crate::names;
use crate::options::{TelemetryError, TelemetryOptions};
use crate::spans::{SessionSpans, Sinks};

/// How long the end may take.
const END_LIMIT: Duration = Duration::from_secs(2);
/// How much of that the readers may take: the rest is for what they have read.
const READERS_LIMIT: Duration = Duration::from_millis(500);

/// The export of all sessions of a process.
pub struct Telemetry {
    sinks: Sinks,
    providers: Mutex<Option<SignalProviders>>,
    losses: Arc<Losses>,
    readers: TaskTracker,
}

struct SignalProviders {
    tracer: SdkTracerProvider,
    meter: SdkMeterProvider,
}

impl Telemetry {
    /// Begins the export. Asks no server. Must be called in a runtime.
    ///
    /// # Errors
    /// [`TelemetryError::Exporter`].
    pub fn start(options: TelemetryOptions) -> Result<Arc<Self>, TelemetryError> {
        let losses = Arc::new(Losses::default());
        let resource = resource(&options);
        let exporters = Exporters { options: &options, losses: &losses };
        let mut tracer = SdkTracerProvider::builder().with_resource(resource.clone());
        if let Some(url) = &options.traces {
            tracer = tracer.with_span_processor(BoundedProcessor::new(exporters.spans(url)?, &losses));
        }
        let mut meter = SdkMeterProvider::builder().with_resource(resource);
        if let Some(url) = &options.metrics {
            meter = meter.with_periodic_exporter(exporters.metrics(url)?);
        }
        let providers = SignalProviders { tracer: tracer.build(), meter: meter.build() };
        Ok(Arc::new(Self::with(providers, losses, options.content)))
    }

    fn with(providers: SignalProviders, losses: Arc<Losses>, content: bool) -> Self {
        let sinks = Sinks {
            tracer: providers.tracer.tracer(names::SCOPE),
            instruments: Instruments::of(&providers.meter.meter(names::SCOPE)),
            content,
        };
        Self { sinks, providers: Mutex::new(Some(providers)), losses, readers: TaskTracker::new() }
    }
}

impl SessionObserver for Telemetry {
    fn begin(&self, events: &Arc<EventLog>) {
        let events = events.subscribe(events.newest(), Vec::new());
        self.readers.spawn(read(events, self.sinks.clone()));
    }

    fn end(&self) -> ObserverEnd {
        let (readers, losses) = (self.readers.clone(), Arc::clone(&self.losses));
        let providers = self.providers.lock().take();
        readers.close();
        Box::pin(async move {
            let Some(providers) = providers else { return };
            let flushed = timeout(END_LIMIT, async {
                let _ = timeout(READERS_LIMIT, readers.wait()).await;
                providers.shut_down().await;
            });
            if flushed.await.is_err() {
                tracing::info!("the telemetry collector was not waited for any longer");
            }
            if losses.lost() > 0 {
                tracing::info!(spans = losses.lost(), "the telemetry collector has not got all spans");
            }
        })
    }
}

impl SignalProviders {
    /// Exports the rest. The library blocks in that, and a thread of its own keeps no runtime from its end.
    async fn shut_down(self) {
        let Self { tracer, meter } = self;
        let (tracer_done, traced) = oneshot::channel();
        let (meter_done, metered) = oneshot::channel();
        std::thread::spawn(move || {
            let _ = tracer.shutdown_with_timeout(END_LIMIT);
            let _ = tracer_done.send(());
        });
        std::thread::spawn(move || {
            let _ = meter.shutdown_with_timeout(END_LIMIT);
            let _ = meter_done.send(());
        });
        let _ = tokio::join!(traced, metered);
    }
}

/// Reads the events of a session until it ends.
async fn read(mut events: Subscription, sinks: Sinks) {
    let mut spans = None;
    loop {
        match events.next().await {
            Ok(Some(records)) => {
                for record in &records {
                    let session =
                        spans.get_or_insert_with(|| SessionSpans::new(record.session.clone(), sinks.clone()));
                    session.follow(record);
                }
            }
            Ok(None) => break,
            Err(gap) => {
                tracing::info!(%gap, "events of a session came too fast for its telemetry");
                spans.iter_mut().for_each(|session| session.close(Timestamp::now()));
            }
        }
    }
    spans.iter_mut().for_each(|session| session.close(Timestamp::now()));
}

/// Makes exporters.
struct Exporters<'a> {
    options: &'a TelemetryOptions,
    losses: &'a Arc<Losses>,
}

impl Exporters<'_> {
    fn spans(&self, url: &Url) -> Result<SpanExporter, TelemetryError> {
        let builder = self.over_http(SpanExporter::builder().with_http(), url);
        builder.build().map_err(|error| TelemetryError::Exporter(error.to_string()))
    }

    fn metrics(&self, url: &Url) -> Result<MetricExporter, TelemetryError> {
        let builder = self.over_http(MetricExporter::builder().with_http(), url);
        builder.build().map_err(|error| TelemetryError::Exporter(error.to_string()))
    }

    fn over_http<B: WithExportConfig + WithHttpConfig>(&self, builder: B, url: &Url) -> B {
        let timeout = self.options.timeout;
        let client = CollectorClient { runtime: Handle::current(), timeout, losses: Arc::clone(self.losses) };
        let headers = self.options.headers.iter();
        builder
            .with_endpoint(url.as_str())
            .with_protocol(Protocol::HttpBinary)
            .with_timeout(timeout)
            .with_headers(headers.map(|(name, value)| (name.clone(), value.expose().to_owned())).collect())
            .with_retry_policy(retries())
            .with_http_client(client)
    }
}

/// Few and soon: a batch that fails is dropped, so that the next one has room.
fn retries() -> RetryPolicy {
    RetryPolicy::recommended().with_max_retries(2).with_max_delay(Duration::from_millis(500))
}

/// What all spans and metrics are of. The environment adds to it; nothing names the user or the machine.
fn resource(options: &TelemetryOptions) -> Resource {
    let mut builder =
        Resource::builder().with_attribute(KeyValue::new("service.version", env!("CARGO_PKG_VERSION")));
    if !options.service_is_named {
        builder = builder.with_service_name(names::SERVICE);
    }
    if !options.instance_is_named {
        // Without it the sums of two processes would be one sum that goes up and down.
        let id = Uuid::now_v7().simple().to_string();
        builder = builder.with_attribute(KeyValue::new("service.instance.id", id));
    }
    builder.build()
}

#[cfg(test)]
mod tests;
