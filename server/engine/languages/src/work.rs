//! The work that a server reports by itself: whether it has read its project, and what it still does.
//!
//! Rule: a server is waited for shortly after its start alone, and within a bound. What it has not done by then is named in results.

use std::collections::HashMap;
use std::time::Duration;

use parking_lot::Mutex;
use serde_json::Value;
use tokio::sync::watch;
use tokio::time::{Instant, sleep, timeout};

use crate::known;

/// How long a server that was just started may take to report that it is busy.
const START_GRACE: Duration = Duration::from_millis(700);
/// The same for one that starts a program of its own before, which takes over a second.
const LATE_GRACE: Duration = Duration::from_secs(5);
/// How long a server has to be idle to count as ready: between two parts of its work it reports neither.
const QUIET: Duration = Duration::from_millis(300);
/// How long after its start a server that is busy is waited for. Later on work in progress is that of its daily life.
const SETTLING: Duration = Duration::from_secs(60);
/// How long a busy server is waited for before a request.
const READY_LIMIT: Duration = Duration::from_secs(20);
/// The most kinds of work in progress that are kept.
const MAX_PROGRESS: usize = 100;
/// The most characters of a title of work in progress.
const MAX_TITLE: usize = 200;

/// The work of a server that was started.
pub struct ServerWork {
    state: Mutex<WorkState>,
    changes: watch::Sender<()>,
}

struct WorkState {
    /// How long after its start the server may report that it is busy.
    grace: Duration,
    /// Whether work has begun or ended since the start.
    has_reported: bool,
    /// When the server received `initialized`.
    started: Instant,
    /// The titles of work in progress, by token.
    progress: HashMap<String, String>,
    /// Whether the server says that it has nothing left to do; `None` for one that does not say.
    is_quiescent: Option<bool>,
    /// Until when a server that searches for the files of its project is expected to log the end of it.
    search_limit: Option<Instant>,
    /// When work in progress last began or ended.
    changed: Instant,
}

impl ServerWork {
    /// The work of a server that starts now. `program` is its path or name.
    #[must_use]
    pub fn new(program: &str) -> Self {
        let now = Instant::now();
        let search_limit = known::logs_search(program).then(|| now + SETTLING);
        let grace = if known::reports_late(program) { LATE_GRACE } else { START_GRACE };
        let state = WorkState {
            grace,
            has_reported: false,
            started: now,
            progress: HashMap::new(),
            is_quiescent: None,
            search_limit,
            changed: now,
        };
        Self { state: Mutex::new(state), changes: watch::Sender::new(()) }
    }

    /// Notes that the handshake is over: the server reads its project from now on.
    pub fn begin(&self) {
        self.state.lock().started = Instant::now();
    }

    /// Takes a notification of the server. Returns whether it says something of its work.
    pub fn take(&self, method: &str, parameters: &Value) -> bool {
        let is_news = {
            let mut state = self.state.lock();
            match method {
                "$/progress" => state.report_progress(parameters),
                "experimental/serverStatus" => {
                    state.is_quiescent = parameters.get("quiescent").and_then(Value::as_bool);
                    true
                }
                "window/logMessage" | "window/showMessage" => {
                    let text = parameters.get("message").and_then(Value::as_str).unwrap_or_default();
                    known::ends_search(text) && state.search_limit.take().is_some()
                }
                _ => false,
            }
        };
        if is_news {
            let mut state = self.state.lock();
            state.changed = Instant::now();
            state.has_reported = true;
            drop(state);
            self.changes.send_modify(|()| {});
        }
        is_news
    }

    /// Whether the server searches for the files of its project, and logs the end of it.
    #[must_use]
    pub fn is_searching(&self) -> bool {
        self.state.lock().search_limit.is_some_and(|limit| Instant::now() < limit)
    }

    /// The work in progress, in words; `None` when the server is idle. A server that reports its status may build and check
    /// while it is idle.
    #[must_use]
    pub fn unfinished(&self) -> Option<String> {
        if self.is_searching() {
            return Some("searching for the files of the project".to_owned());
        }
        let state = self.state.lock();
        match state.is_quiescent {
            Some(true) => None,
            Some(false) => Some("loading the project".to_owned()),
            None => state.progress.values().next().cloned(),
        }
    }

    /// Whether the server reports that it loads its project.
    pub(crate) fn is_loading(&self) -> bool {
        self.state.lock().is_quiescent == Some(false)
    }

    /// Whether the server was started so recently that it may not have read its project, or says so.
    #[must_use]
    pub fn is_settling(&self) -> bool {
        self.state.lock().started.elapsed() < SETTLING || self.is_loading()
    }

    /// Waits until a server that was just started has read its project, within a bound.
    pub async fn ready(&self) {
        let mut changes = self.changes.subscribe();
        let idle = async {
            loop {
                changes.mark_unchanged();
                let now = Instant::now();
                let is_calm = {
                    let state = self.state.lock();
                    let grace = if state.has_reported { START_GRACE } else { state.grace };
                    now >= state.started + grace && now >= state.changed.max(state.started) + QUIET
                };
                if is_calm && self.unfinished().is_none() {
                    return;
                }
                tokio::select! {
                    _ = changes.changed() => {}
                    () = sleep(QUIET) => {}
                }
            }
        };
        // Files that it has not read by then are named in the result.
        drop(timeout(READY_LIMIT, idle).await);
    }
}

impl WorkState {
    fn report_progress(&mut self, parameters: &Value) -> bool {
        let Some(token) = parameters.get("token").map(Value::to_string) else { return false };
        let value = parameters.get("value").unwrap_or(&Value::Null);
        match value.get("kind").and_then(Value::as_str) {
            Some("begin") if self.progress.len() < MAX_PROGRESS => {
                let title = value.get("title").and_then(Value::as_str).unwrap_or("working");
                self.progress.insert(token, title.chars().take(MAX_TITLE).collect());
                true
            }
            Some("end") => {
                self.progress.remove(&token);
                true
            }
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn report(kind: &str) -> Value {
        json!({ "token": 1, "value": { "kind": kind, "title": "Indexing" } })
    }

    #[tokio::test(start_paused = true)]
    async fn work_in_progress_is_known_until_its_end() {
        let work = ServerWork::new("words");
        assert!(work.take("$/progress", &report("begin")));
        assert_eq!(work.unfinished().as_deref(), Some("Indexing"));
        assert!(!work.take("$/progress", &report("report")));
        work.take("$/progress", &report("end"));
        assert_eq!(work.unfinished(), None);
        work.take("experimental/serverStatus", &json!({ "quiescent": false }));
        assert!(work.unfinished().is_some() && work.is_loading());
        work.take("$/progress", &report("begin"));
        work.take("experimental/serverStatus", &json!({ "quiescent": true }));
        assert_eq!(work.unfinished(), None, "a check of the code is no loading");
    }

    #[tokio::test(start_paused = true)]
    async fn a_search_for_files_continues_until_the_server_logs_its_end() {
        let log = |work: &ServerWork, text: &str| {
            work.take("window/logMessage", &json!({ "type": 3, "message": text }));
        };
        let work = ServerWork::new("/opt/pyright-langserver");
        log(&work, "Searching for source files");
        assert!(work.unfinished().is_some());
        log(&work, "Found 2 source files");
        assert_eq!(work.unfinished(), None);
        let work = ServerWork::new("pyright-langserver");
        assert!(work.is_searching());
        tokio::time::advance(SETTLING).await;
        assert_eq!(work.unfinished(), None, "a server that does not log");
        assert!(!ServerWork::new("words").is_searching());
    }

    #[tokio::test(start_paused = true)]
    async fn a_server_that_was_just_started_is_waited_for_until_its_work_is_done() {
        let work = ServerWork::new("words");
        let began = Instant::now();
        work.ready().await;
        assert!(began.elapsed() >= START_GRACE, "it may still say that it is busy");
        work.take("$/progress", &report("begin"));
        tokio::select! {
            () = work.ready() => panic!("it works"),
            () = sleep(READY_LIMIT / 2) => {}
        }
        work.take("$/progress", &report("end"));
        let ended = Instant::now();
        work.ready().await;
        assert!(ended.elapsed() >= QUIET && ended.elapsed() < READY_LIMIT / 2);
        work.take("$/progress", &report("begin"));
        let began = Instant::now();
        work.ready().await;
        assert_eq!(began.elapsed(), READY_LIMIT, "the wait is bounded");
    }

    #[tokio::test(start_paused = true)]
    async fn a_server_that_reports_late_is_waited_for_longer_until_it_reports() {
        let work = ServerWork::new("/opt/typescript-language-server");
        let play = async {
            sleep(START_GRACE * 2).await;
            work.take("$/progress", &report("begin"));
            sleep(START_GRACE).await;
            work.take("$/progress", &report("end"));
        };
        let began = Instant::now();
        tokio::join!(work.ready(), play);
        assert!(began.elapsed() >= START_GRACE * 3 && began.elapsed() < LATE_GRACE);
        let work = ServerWork::new("typescript-language-server");
        let began = Instant::now();
        work.ready().await;
        assert!(began.elapsed() >= LATE_GRACE && began.elapsed() < READY_LIMIT);
    }
}
