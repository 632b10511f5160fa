//! A collector on this machine that keeps what it gets, decoded.
//!
//! Rule: it decodes with the types of the standard, never with code of the server.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;

use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceRequest;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::{KeyValue, any_value};
use opentelemetry_proto::tonic::metrics::v1::{Metric, metric, number_data_point};
use opentelemetry_proto::tonic::resource::v1::Resource;
use opentelemetry_proto::tonic::trace::v1::Span;
use prost::Message;

/// A request as it came.
#[derive(Clone, Debug)]
pub(crate) struct ReceivedExport {
    pub(crate) path: String,
    pub(crate) headers: String,
    pub(crate) body: Vec<u8>,
}

/// A collector.
pub(crate) struct Collector {
    pub(crate) address: String,
    received: Arc<Mutex<Vec<ReceivedExport>>>,
}

impl Collector {
    pub(crate) fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let received: Arc<Mutex<Vec<ReceivedExport>>> = Arc::default();
        let kept = Arc::clone(&received);
        thread::spawn(move || {
            for connection in listener.incoming().map_while(Result::ok) {
                let kept = Arc::clone(&kept);
                thread::spawn(move || serve(&connection, &kept));
            }
        });
        Self { address, received }
    }

    pub(crate) fn received(&self) -> Vec<ReceivedExport> {
        self.received.lock().unwrap().clone()
    }

    /// All bodies as text, for what must not be in them. Texts are in protobuf as they are.
    pub(crate) fn text(&self) -> String {
        let bodies = self.received();
        bodies.iter().map(|export| String::from_utf8_lossy(&export.body).into_owned()).collect()
    }

    fn exports<T: Message + Default>(&self, path: &str) -> Vec<T> {
        let received = self.received();
        let exports = received.iter().filter(|export| export.path == path);
        exports.map(|export| T::decode(export.body.as_slice()).expect("what the standard wants")).collect()
    }

    pub(crate) fn spans(&self) -> Vec<Span> {
        let exports = self.exports::<ExportTraceServiceRequest>("/v1/traces");
        let resources = exports.into_iter().flat_map(|export| export.resource_spans);
        resources.flat_map(|resource| resource.scope_spans).flat_map(|scope| scope.spans).collect()
    }

    pub(crate) fn resource(&self) -> Resource {
        let exports = self.exports::<ExportTraceServiceRequest>("/v1/traces");
        let mut resources = exports.into_iter().flat_map(|export| export.resource_spans);
        resources.next().and_then(|spans| spans.resource).expect("a resource")
    }

    /// The newest state of the metrics.
    pub(crate) fn metrics(&self) -> Vec<Metric> {
        let newest = self.exports::<ExportMetricsServiceRequest>("/v1/metrics").pop().unwrap_or_default();
        let resources = newest.resource_metrics.into_iter();
        resources.flat_map(|resource| resource.scope_metrics).flat_map(|scope| scope.metrics).collect()
    }

    /// The sum of a metric over its points that have this attribute.
    pub(crate) fn sum(&self, name: &str, with: (&str, &str)) -> f64 {
        let has = |attributes: &[KeyValue]| attribute(attributes, with.0).as_deref() == Some(with.1);
        let metric = self.metrics().into_iter().find(|metric| metric.name == name);
        match metric.and_then(|metric| metric.data) {
            Some(metric::Data::Histogram(histogram)) => {
                let points = histogram.data_points.iter().filter(|point| has(&point.attributes));
                points.filter_map(|point| point.sum).sum()
            }
            Some(metric::Data::Sum(sum)) => {
                let points = sum.data_points.iter().filter(|point| has(&point.attributes));
                points.filter_map(|point| point.value.as_ref()).map(number).sum()
            }
            other => panic!("{name} is {other:?}"),
        }
    }
}

fn number(value: &number_data_point::Value) -> f64 {
    match value {
        number_data_point::Value::AsDouble(number) => *number,
        number_data_point::Value::AsInt(number) => *number as f64,
    }
}

/// An attribute as text.
pub(crate) fn attribute(attributes: &[KeyValue], key: &str) -> Option<String> {
    let found = attributes.iter().find(|attribute| attribute.key == key)?;
    match found.value.as_ref()?.value.as_ref()? {
        any_value::Value::StringValue(text) => Some(text.clone()),
        any_value::Value::IntValue(number) => Some(number.to_string()),
        any_value::Value::DoubleValue(number) => Some(number.to_string()),
        other => Some(format!("{other:?}")),
    }
}

fn serve(connection: &TcpStream, kept: &Mutex<Vec<ReceivedExport>>) {
    let mut reader = BufReader::new(connection);
    loop {
        let (mut first, mut headers) = (String::new(), String::new());
        if reader.read_line(&mut first).unwrap_or(0) == 0 {
            return;
        }
        loop {
            let mut line = String::new();
            if reader.read_line(&mut line).unwrap_or(0) <= 2 {
                break;
            }
            headers.push_str(&line.to_lowercase());
        }
        let length = headers.lines().find_map(|line| line.strip_prefix("content-length:"));
        let length = length.and_then(|length| length.trim().parse().ok()).unwrap_or(0);
        let mut body = vec![0; length];
        if reader.read_exact(&mut body).is_err() {
            return;
        }
        // Collectors that forward compress.
        if headers.contains("content-encoding: gzip") {
            let mut plain = Vec::new();
            flate2::read::GzDecoder::new(body.as_slice()).read_to_end(&mut plain).expect("gzip");
            body = plain;
        }
        let path = first.split(' ').nth(1).unwrap_or_default().to_owned();
        kept.lock().unwrap().push(ReceivedExport { path, headers, body });
        let mut answer = connection;
        if answer.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n").is_err() {
            return;
        }
    }
}
