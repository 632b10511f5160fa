//! Tests of queue and end of the export.
//!
//! Rule: collectors are exporters of the test.

use std::time::Instant;

use kode_base::ids::{SessionId, TurnId};
use kode_record::event::Event;
use opentelemetry::trace::{Span, Tracer};
use opentelemetry_sdk::error::OTelSdkResult;
use opentelemetry_sdk::trace::{InMemorySpanExporter, SpanData};

use super::*;
use crate::losses::QUEUE;

/// A collector that never answers.
#[derive(Debug)]
struct SilentExporter;

impl opentelemetry_sdk::trace::SpanExporter for SilentExporter {
    async fn export(&self, _batch: Vec<SpanData>) -> OTelSdkResult {
        std::thread::sleep(Duration::from_secs(60));
        Ok(())
    }
}

fn telemetry(exporter: impl opentelemetry_sdk::trace::SpanExporter + 'static) -> Telemetry {
    let losses = Arc::new(Losses::default());
    let processor = BoundedProcessor::new(exporter, &losses);
    let tracer = SdkTracerProvider::builder().with_span_processor(processor).build();
    Telemetry::with(SignalProviders { tracer, meter: SdkMeterProvider::default() }, losses, false)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_is_read_to_its_end_and_exported() {
    let exported = InMemorySpanExporter::default();
    let telemetry = telemetry(exported.clone());
    let log = EventLog::new(SessionId::generate(), 0);
    telemetry.begin(&log);
    log.publish(Event::TurnStarted { turn: TurnId::generate() });
    log.close();
    telemetry.readers.close();
    telemetry.readers.wait().await;
    telemetry.providers.lock().as_ref().unwrap().tracer.force_flush().unwrap();
    assert_eq!(exported.get_finished_spans().unwrap().len(), 1);
    telemetry.end().await;
    telemetry.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_silent_collector_costs_no_time_and_its_spans_are_counted() {
    let telemetry = telemetry(SilentExporter);
    let began = Instant::now();
    for _ in 0..QUEUE + 50 {
        telemetry.sinks.tracer.start("a span").end();
    }
    assert!(began.elapsed() < Duration::from_secs(2), "{:?}", began.elapsed());
    assert_eq!(telemetry.losses.lost(), 50);
    telemetry.end().await;
    assert!(began.elapsed() < END_LIMIT + Duration::from_secs(2), "{:?}", began.elapsed());
}

#[test]
fn the_service_has_a_name_and_no_machine() {
    let endpoint = serde_json::json!({ "endpoint": "http://127.0.0.1:4318" });
    let resource = resource(&TelemetryOptions::read(Some(&endpoint), &|_| None).unwrap().unwrap());
    let named: Vec<_> = resource.iter().map(|(key, _)| key.to_string()).collect();
    assert!(
        named.iter().all(|key| key.starts_with("service.") || key.starts_with("telemetry.")),
        "{named:?}"
    );
    let service = resource.get(&opentelemetry::Key::from_static_str("service.name"));
    assert_eq!(service.map(|name| name.to_string()).as_deref(), Some("kode-ls"));
}
