//! The end of the server: who may ask for it, and what must be done before it.
//!
//! Rule: the end happens once, however many ask for it; whatever must not be lost registers here and gets a
//! bounded time, whether the editor says goodbye or just disappears. An editor that has said it may come back is outlived by the
//! work that runs, for a bounded time as well.

use std::future::Future;
use std::mem;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures::FutureExt;
use futures::future::{BoxFuture, Shared};
use kode_engine::base::task;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::processes::process_exists;

/// How long the tasks of the end may take together.
const END_LIMIT: Duration = Duration::from_secs(5);

/// How long work may outlive an editor that has said it may come back.
const OUTLIVE_LIMIT: Duration = Duration::from_secs(30 * 60);

/// How often the editor's process is looked for.
const WATCH_INTERVAL: Duration = Duration::from_secs(3);

/// The life of one server.
#[derive(Default)]
pub struct Lifecycle {
    stop: CancellationToken,
    at_end: Mutex<Vec<BoxFuture<'static, ()>>>,
    ending: Mutex<Option<Shared<BoxFuture<'static, ()>>>>,
    /// The work that outlives the connection.
    outliving: Mutex<Option<BoxFuture<'static, ()>>>,
    /// Whether the editor has said that it goes and may come back.
    left: CancellationToken,
}

impl Lifecycle {
    /// Asks the serve loop to end as if the editor had gone.
    pub fn stop(&self) {
        self.stop.cancel();
    }

    /// Waits until the end is requested.
    pub async fn stopped(&self) {
        self.stop.cancelled().await;
    }

    /// Whether the end has started: there is nothing to tell the editor any more.
    pub fn is_ending(&self) -> bool {
        lock(&self.ending).is_some()
    }

    /// Registers something to be done before the process ends. The tasks run at the same time, on `shutdown` or
    /// when the connection is lost.
    pub fn at_end(&self, task: impl Future<Output = ()> + Send + 'static) {
        lock(&self.at_end).push(task.boxed());
    }

    /// Has the end of the connection wait for this work, and the end of the editor's process end nothing by itself. Later work
    /// replaces earlier work.
    pub fn outlive(&self, work: impl Future<Output = ()> + Send + 'static) {
        *lock(&self.outliving) = Some(work.boxed());
        self.left.cancel();
    }

    /// Does the work that outlives the connection, if there is any: to its end, for its time, or until the end is requested.
    pub async fn linger(&self) {
        let Some(work) = lock(&self.outliving).take() else { return };
        tracing::info!("the editor is gone and may come back; the turns that run go on");
        tokio::select! {
            biased;
            () = self.stop.cancelled() => tracing::info!("the end was requested before the turns were over"),
            outlived = tokio::time::timeout(OUTLIVE_LIMIT, work) => {
                if outlived.is_err() {
                    tracing::warn!("the editor did not come back and the turns are not over; they end now");
                }
            }
        }
    }

    /// Runs the registered work; the second and later calls wait for the first to be done.
    pub async fn end(&self) {
        let ending = lock(&self.ending)
            .get_or_insert_with(|| {
                // A task of its own, because a handler that waits here may be dropped at any time.
                let tasks = task::spawn(run_tasks(mem::take(&mut *lock(&self.at_end))));
                tasks.map(|_| ()).boxed().shared()
            })
            .clone();
        ending.await;
    }

    /// Stops the server when the process with this id is gone.
    pub fn watch_process(&self, id: u32) {
        let (stop, left) = (self.stop.clone(), self.left.clone());
        task::spawn(async move {
            let mut interval = tokio::time::interval(WATCH_INTERVAL);
            while process_exists(id) {
                tokio::select! {
                    _ = interval.tick() => {}
                    () = stop.cancelled() => return,
                }
            }
            // The end of the connection tells it then.
            if !left.is_cancelled() {
                stop.cancel();
            }
        });
    }
}

async fn run_tasks(tasks: Vec<BoxFuture<'static, ()>>) {
    let mut running: JoinSet<()> = tasks.into_iter().collect();
    let all = async {
        while let Some(task) = running.join_next().await {
            if let Err(error) = task {
                tracing::error!(%error, "something to be done before the end failed");
            }
        }
    };
    if tokio::time::timeout(END_LIMIT, all).await.is_err() {
        tracing::error!("the work before the end took too long and was cancelled");
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn the_end_of_a_watched_process_stops_the_server() {
        let mut editor = std::process::Command::new("sleep").arg("1000").spawn().unwrap();
        let lifecycle = Lifecycle::default();
        lifecycle.watch_process(editor.id());
        editor.kill().unwrap();
        editor.wait().unwrap();
        lifecycle.stopped().await;
    }
}
