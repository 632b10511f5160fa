//! Progress while the journal of a long session is read.
//!
//! Rule: a load of less than a second shows nothing. A client that is slow to show progress never delays the reading.

use std::sync::Arc;
use std::time::Duration;

use kode_engine::agent::history::LoadProgress;
use kode_engine::base::ids::SessionId;
use kode_engine::base::task;
use lsp_types::notification::Progress;
use lsp_types::request::WorkDoneProgressCreate;
use lsp_types::{
    NumberOrString, ProgressParams, ProgressParamsValue, WorkDoneProgress, WorkDoneProgressBegin,
    WorkDoneProgressCreateParams, WorkDoneProgressEnd, WorkDoneProgressReport,
};
use tokio::sync::watch;
use tokio::time::{sleep, timeout};

use crate::connection::ClientConnection;

/// A shorter load shows no progress.
const MOMENT: Duration = Duration::from_secs(1);

/// The time a client has to create a progress.
const CREATE_LIMIT: Duration = Duration::from_secs(5);

/// Returns a function that reports how much of a session is read. The progress ends when the function is dropped.
pub(crate) fn show(
    connection: Arc<ClientConnection>,
    id: &SessionId,
) -> impl Fn(LoadProgress) + Send + 'static {
    let (reported, news) = watch::channel(LoadProgress { read: 0, total: 0 });
    if connection.facts.get().is_some_and(|facts| facts.work_done_progress) {
        let token = NumberOrString::String(format!("load_{id}"));
        task::spawn(follow(connection, token, news));
    }
    move |loading| {
        reported.send_replace(loading);
    }
}

async fn follow(
    connection: Arc<ClientConnection>,
    token: NumberOrString,
    mut news: watch::Receiver<LoadProgress>,
) {
    let over = async { while news.changed().await.is_ok() {} };
    if timeout(MOMENT, over).await.is_ok() {
        return;
    }
    let (client, wanted) = (connection.client.clone(), WorkDoneProgressCreateParams { token: token.clone() });
    // A task of its own owns the request: the service fails on an answer without a receiver.
    let create = task::spawn(async move { client.send_request::<WorkDoneProgressCreate>(wanted).await });
    if !matches!(timeout(CREATE_LIMIT, create).await, Ok(Ok(Ok(())))) {
        return;
    }
    let at = percentage(*news.borrow_and_update());
    let send = |value| {
        let params = ProgressParams { token: token.clone(), value: ProgressParamsValue::WorkDone(value) };
        connection.client.send_notification::<Progress>(params)
    };
    send(WorkDoneProgress::Begin(WorkDoneProgressBegin {
        title: "Kode: reading a long session".to_owned(),
        cancellable: Some(false),
        message: None,
        percentage: Some(at),
    }))
    .await;
    while news.changed().await.is_ok() {
        let at = percentage(*news.borrow_and_update());
        let report = WorkDoneProgressReport { cancellable: Some(false), message: None, percentage: Some(at) };
        send(WorkDoneProgress::Report(report)).await;
        sleep(MOMENT / 10).await;
    }
    send(WorkDoneProgress::End(WorkDoneProgressEnd { message: Some("done".to_owned()) })).await;
}

fn percentage(loading: LoadProgress) -> u32 {
    let percent = loading.read.saturating_mul(100).checked_div(loading.total).unwrap_or_default();
    u32::try_from(percent).unwrap_or(100).min(100)
}
