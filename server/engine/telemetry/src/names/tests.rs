//! Tests of names against the documentation and the dashboard.
//!
//! Rule: a name that is exported is documented, and the dashboard has no other.

use std::collections::BTreeSet;

use serde_json::Value;

use super::*;

const PAGE: &str = include_str!("../../../../docs/telemetry.md");
const DASHBOARD: &str = include_str!("../../../../docs/telemetry-dashboard.json");

/// The queries of the dashboard.
fn queries() -> Vec<String> {
    let dashboard: Value = serde_json::from_str(DASHBOARD).unwrap();
    let panels = dashboard["panels"].as_array().unwrap().iter();
    let targets = panels.flat_map(|panel| panel["targets"].as_array().unwrap());
    targets.map(|target| target["expr"].as_str().unwrap().to_owned()).collect()
}

/// A name as Prometheus has it.
fn label(name: &str) -> String {
    name.replace('.', "_")
}

#[test]
fn the_dashboard_has_all_metrics_and_no_name_that_is_not_exported() {
    let suffixes = ["_bucket", "_sum", "_count", "_total"];
    let labels = [MODEL, PROVIDER, TOKEN_TYPE, PERMISSION_OUTCOME].map(label);
    let mut shown = BTreeSet::new();
    for query in queries() {
        let words = query.split(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_');
        for word in words.filter(|word| word.starts_with("gen_ai_") || word.starts_with("kode_")) {
            if labels.iter().any(|label| label == word) {
                continue;
            }
            let name = suffixes.iter().find_map(|suffix| word.strip_suffix(suffix));
            let metric = METRICS.iter().find(|(_, prometheus)| Some(*prometheus) == name);
            let (metric, _) = metric.unwrap_or_else(|| panic!("{word} in {query} is not exported"));
            shown.insert(*metric);
        }
    }
    assert_eq!(shown, METRICS.iter().map(|(metric, _)| *metric).collect());
}

#[test]
fn names_in_prometheus_are_those_of_the_metrics() {
    for (metric, prometheus) in METRICS {
        assert!(prometheus.starts_with(&label(metric)), "{metric}: {prometheus}");
    }
}

#[test]
fn spans_metrics_and_attributes_are_documented() {
    let spans = [INVOKE_AGENT, CHAT, EXECUTE_TOOL, WAIT_FOR_PERMISSION, WAIT_FOR_ANSWER, MODEL_RETRY];
    let attributes = [
        OPERATION,
        AGENT_NAME,
        AGENT_ID,
        CONVERSATION,
        PROVIDER,
        MODEL,
        TOKEN_TYPE,
        TOOL_NAME,
        TOOL_CALL,
        ERROR_TYPE,
        TOOL_OUTCOME,
        STOP_REASON,
        MODEL_CALLS,
        TOOL_CALLS,
        COST_USD,
        PERMISSION_OUTCOME,
        PERMISSION_SCOPE,
        QUESTION_KIND,
        QUESTION_OUTCOME,
        INPUT_MESSAGES,
        OUTPUT_MESSAGES,
        TOOL_ARGUMENTS,
        TOOL_RESULT,
    ];
    let metrics = METRICS.map(|(metric, _)| metric);
    for name in spans.iter().chain(&attributes).chain(&metrics) {
        assert!(PAGE.contains(&format!("`{name}")), "{name} is not documented");
    }
}
