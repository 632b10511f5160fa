//! The HTTP client of the exporter: that of all other requests of the process.
//!
//! Rule: a request has a time limit, its answer a bounded size; an error names the collector and no header.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use hyper::http::{Request, Response};
use kode_net::http;
use opentelemetry_http::{HttpClient, HttpError, ResponseBodyTooLarge};
use tokio::runtime::Handle;
use url::Url;

use crate::losses::Losses;
use crate::options::shown;

/// The most bytes of an answer; collectors say little.
const MAX_ANSWER_BYTES: usize = 64 * 1_024;

/// Sends the spans and metrics.
#[derive(Debug)]
pub(crate) struct CollectorClient {
    /// The runtime of the process: exporters run on threads of their own, without one.
    pub(crate) runtime: Handle,
    pub(crate) timeout: Duration,
    pub(crate) losses: Arc<Losses>,
}

#[async_trait]
impl HttpClient for CollectorClient {
    async fn send_bytes(&self, request: Request<Bytes>) -> Result<Response<Bytes>, HttpError> {
        let url = Url::parse(&request.uri().to_string())?;
        let (place, timeout) = (shown(&url), self.timeout);
        let sending = self.runtime.spawn(async move {
            match tokio::time::timeout(timeout, send(&url, request)).await {
                Ok(answer) => answer,
                Err(_) => Err(format!("no answer within {timeout:?}").into()),
            }
        });
        let answer = sending.await.unwrap_or_else(|error| Err(error.into()));
        match &answer {
            Ok(answer) if answer.status().is_success() => {}
            Ok(answer) => self.losses.warn(&place, &format!("it answers with status {}", answer.status())),
            Err(error) => self.losses.warn(&place, &http::causes(error.as_ref())),
        }
        answer
    }
}

async fn send(url: &Url, request: Request<Bytes>) -> Result<Response<Bytes>, HttpError> {
    // The address of the error could hold a password.
    let request = reqwest::Request::try_from(request).map_err(reqwest::Error::without_url)?;
    let sent = http::client(url)?.execute(request).await;
    let mut answer = sent.map_err(reqwest::Error::without_url)?;
    let mut body = Vec::new();
    while let Some(chunk) = answer.chunk().await.map_err(reqwest::Error::without_url)? {
        if body.len() + chunk.len() > MAX_ANSWER_BYTES {
            return Err(ResponseBodyTooLarge::new().into());
        }
        body.extend_from_slice(&chunk);
    }
    let mut response = Response::new(Bytes::from(body));
    *response.status_mut() = answer.status();
    *response.headers_mut() = answer.headers().clone();
    Ok(response)
}
