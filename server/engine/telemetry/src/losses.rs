//! Spans and metrics that a collector did not take: counted, with one warning.
//!
//! Rule: no more spans wait than [`QUEUE`]; others are dropped and counted, and the session that ended them notices nothing.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use opentelemetry::Context;
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::error::OTelSdkResult;
use opentelemetry_sdk::trace::{
    BatchConfigBuilder, BatchSpanProcessor, Span, SpanData, SpanExporter, SpanProcessor,
};

/// The most spans that wait for the collector.
pub(crate) const QUEUE: usize = 2_048;

/// The spans that wait, and those that were lost.
#[derive(Debug, Default)]
pub(crate) struct Losses {
    waiting: AtomicUsize,
    lost: AtomicUsize,
    warned: AtomicBool,
}

impl Losses {
    /// Spans that no collector has.
    pub(crate) fn lost(&self) -> usize {
        self.lost.load(Ordering::Relaxed)
    }

    /// Warns of a collector, once.
    pub(crate) fn warn(&self, place: &str, reason: &str) {
        if !self.warned.swap(true, Ordering::Relaxed) {
            tracing::warn!(
                collector = place,
                reason,
                "the telemetry collector does not take what is sent; what it misses is dropped, and this is not repeated"
            );
        }
    }

    /// Makes room for a span; false where the queue is full.
    fn enter(&self) -> bool {
        let room = self.waiting.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |waiting| {
            (waiting < QUEUE).then_some(waiting + 1)
        });
        if room.is_err() {
            self.lost.fetch_add(1, Ordering::Relaxed);
        }
        room.is_ok()
    }

    fn leave(&self, spans: usize, exported: bool) {
        let _ = self.waiting.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |waiting| {
            Some(waiting.saturating_sub(spans))
        });
        if !exported {
            self.lost.fetch_add(spans, Ordering::Relaxed);
        }
    }
}

/// A queue of spans with a bound, before an exporter.
#[derive(Debug)]
pub(crate) struct BoundedProcessor {
    batches: BatchSpanProcessor,
    losses: Arc<Losses>,
}

impl BoundedProcessor {
    pub(crate) fn new(exporter: impl SpanExporter + 'static, losses: &Arc<Losses>) -> Self {
        let exporter = CountedExporter { exporter, losses: Arc::clone(losses) };
        // Its own bound is never reached: it drops without a number that could be read.
        let config = BatchConfigBuilder::default().with_max_queue_size(QUEUE).build();
        let batches = BatchSpanProcessor::builder(exporter).with_batch_config(config).build();
        Self { batches, losses: Arc::clone(losses) }
    }
}

impl SpanProcessor for BoundedProcessor {
    fn on_start(&self, span: &mut Span, context: &Context) {
        self.batches.on_start(span, context);
    }

    fn on_end(&self, span: SpanData) {
        if self.losses.enter() {
            self.batches.on_end(span);
        }
    }

    fn force_flush(&self) -> OTelSdkResult {
        self.batches.force_flush()
    }

    fn shutdown_with_timeout(&self, timeout: Duration) -> OTelSdkResult {
        self.batches.shutdown_with_timeout(timeout)
    }

    fn set_resource(&mut self, resource: &Resource) {
        self.batches.set_resource(resource);
    }
}

/// An exporter whose failures are counted.
#[derive(Debug)]
struct CountedExporter<E> {
    exporter: E,
    losses: Arc<Losses>,
}

impl<E: SpanExporter> SpanExporter for CountedExporter<E> {
    async fn export(&self, batch: Vec<SpanData>) -> OTelSdkResult {
        let spans = batch.len();
        let exported = self.exporter.export(batch).await;
        self.losses.leave(spans, exported.is_ok());
        exported
    }

    fn shutdown_with_timeout(&self, timeout: Duration) -> OTelSdkResult {
        self.exporter.shutdown_with_timeout(timeout)
    }

    fn set_resource(&mut self, resource: &Resource) {
        self.exporter.set_resource(resource);
    }
}
