//! Progress while the journal of a long session is read.
//!
//! Rule: what is loaded within a moment shows nothing; reading is never held up by a client that is slow to show.

use std::sync::Arc;
use std::time::Duration;

use kode_engine::agent::session::Loading;
use kode_engine::base::ids::SessionId;
use lsp_types::notification::Progress;
use lsp_types::request::WorkDoneProgressCreate;
use lsp_types::{
    NumberOrString, ProgressParams, ProgressParamsValue, WorkDoneProgress, WorkDoneProgressBegin,
    WorkDoneProgressCreateParams, WorkDoneProgressEnd, WorkDoneProgressReport,
};
use tokio::sync::watch;
use tokio::time::{sleep, timeout};

use crate::connection::Connection;

/// What is read in less time shows no progress.
const MOMENT: Duration = Duration::from_secs(1);

/// So long a client may take to make a progress.
const CREATE_LIMIT: Duration = Duration::from_secs(5);

/// Shows how far reading a session is, as what is returned is told. It ends when that is dropped.
pub(crate) fn show(connection: Arc<Connection>, id: &SessionId) -> impl Fn(Loading) + Send + 'static {
    let (told, news) = watch::channel(Loading { read: 0, total: 0 });
    if connection.facts.get().is_some_and(|facts| facts.work_done_progress) {
        let token = NumberOrString::String(format!("load_{id}"));
        tokio::spawn(follow(connection, token, news));
    }
    move |loading| {
        told.send_replace(loading);
    }
}

async fn follow(connection: Arc<Connection>, token: NumberOrString, mut news: watch::Receiver<Loading>) {
    let over = async { while news.changed().await.is_ok() {} };
    if timeout(MOMENT, over).await.is_ok() {
        return;
    }
    let (client, wanted) = (connection.client.clone(), WorkDoneProgressCreateParams { token: token.clone() });
    // The request is owned by a task of its own: the service cannot bear an answer nobody waits for.
    let create = tokio::spawn(async move { client.send_request::<WorkDoneProgressCreate>(wanted).await });
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

fn percentage(loading: Loading) -> u32 {
    let percent = loading.read.saturating_mul(100).checked_div(loading.total).unwrap_or_default();
    u32::try_from(percent).unwrap_or(100).min(100)
}
