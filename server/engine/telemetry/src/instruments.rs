//! The metrics.
//!
//! Rule: attributes of metrics are models, providers, kinds and outcomes: a bounded number, and no content.

use std::time::Duration;

use opentelemetry::KeyValue;
use opentelemetry::metrics::{Counter, Histogram, Meter};

use crate::names;

/// The boundaries that the conventions want for tokens.
const TOKENS: [f64; 14] = [
    1.0,
    4.0,
    16.0,
    64.0,
    256.0,
    1_024.0,
    4_096.0,
    16_384.0,
    65_536.0,
    262_144.0,
    1_048_576.0,
    4_194_304.0,
    16_777_216.0,
    67_108_864.0,
];
/// The boundaries that the conventions want for the time of a model call, in seconds.
const SECONDS: [f64; 14] =
    [0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92];
/// The boundaries for the time of people, in seconds.
const WAITING: [f64; 11] = [0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0, 900.0, 3_600.0];

/// The metrics of all sessions.
#[derive(Clone, Debug)]
pub(crate) struct Instruments {
    tokens: Histogram<u64>,
    duration: Histogram<f64>,
    cost: Counter<f64>,
    edits: Counter<u64>,
    waiting: Histogram<f64>,
}

impl Instruments {
    pub(crate) fn of(meter: &Meter) -> Self {
        let seconds = |name: &'static str, about: &'static str, boundaries: &[f64]| {
            let histogram = meter.f64_histogram(name).with_unit("s").with_description(about);
            histogram.with_boundaries(boundaries.to_vec()).build()
        };
        Self {
            tokens: meter
                .u64_histogram(names::TOKEN_USAGE)
                .with_unit("{token}")
                .with_description("Tokens of a model call")
                .with_boundaries(TOKENS.to_vec())
                .build(),
            duration: seconds(names::OPERATION_DURATION, "Time of a model call", &SECONDS),
            // In braces, units are remarks: Prometheus does not add them to the name.
            cost: meter
                .f64_counter(names::COST)
                .with_unit("{USD}")
                .with_description("Cost of model calls")
                .build(),
            edits: meter
                .u64_counter(names::EDITS)
                .with_unit("{hunk}")
                .with_description("Hunks that the user kept or undid")
                .build(),
            waiting: seconds(names::PERMISSION_WAIT, "Time that a permission prompt waited", &WAITING),
        }
    }

    /// Counts a model call.
    pub(crate) fn model_call(
        &self,
        attributes: &[KeyValue],
        (input, output): (u64, u64),
        took: Option<Duration>,
        cost: Option<f64>,
    ) {
        for (kind, tokens) in [("input", input), ("output", output)] {
            let mut attributes = attributes.to_vec();
            attributes.push(KeyValue::new(names::TOKEN_TYPE, kind));
            self.tokens.record(tokens, &attributes);
        }
        if let Some(took) = took {
            self.duration.record(took.as_secs_f64(), attributes);
        }
        if let Some(cost) = cost {
            self.cost.add(cost, attributes);
        }
    }

    /// Counts hunks with the user's decision about them.
    pub(crate) fn edits(&self, decision: &'static str, hunks: u64) {
        self.edits.add(hunks, &[KeyValue::new(names::DECISION, decision)]);
    }

    /// Counts the waiting time of a permission prompt.
    pub(crate) fn waited(&self, time: Duration, outcome: String) {
        self.waiting.record(time.as_secs_f64(), &[KeyValue::new(names::PERMISSION_OUTCOME, outcome)]);
    }
}
