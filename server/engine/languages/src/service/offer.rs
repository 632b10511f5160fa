//! Whether the tools of language servers are offered: a survey of the workspace, and what the servers of the editor serve.
//!
//! Rule: nothing is started or sent for it. Folders are read at most once in [`SURVEY_AGE`]; what the editor has open counts at once.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use super::WorkspaceServers;
use crate::known::SERVERS;
use crate::selection::ServerSelection;
use kode_base::blocking;
use kode_base::paths::{AbsPath, Target};
use kode_text::workspace::Workspace;

/// How long the languages of a workspace and the installed servers count as known.
const SURVEY_AGE: Duration = Duration::from_secs(300);

/// The languages of a workspace by its folders.
pub(super) struct WorkspaceSurvey {
    at: Instant,
    /// Whether a server of ours serves one of them.
    has_own: bool,
    /// The extensions of its files, and of the documents that were open.
    extensions: Vec<String>,
}

impl WorkspaceServers {
    /// Finds out whether a server serves a language of the workspace.
    pub(super) async fn refresh_offer(&self, workspace: &Workspace) {
        let selection = self.selection().await;
        let open: Vec<AbsPath> =
            workspace.documents().into_iter().filter_map(|document| document.path).collect();
        let survey = self.survey(selection, open.clone()).await;
        // Documents that were opened since the survey can be in a language that their server alone knows.
        let opened: Vec<String> = open.iter().filter_map(extension_of).collect();
        let extensions = survey.extensions.iter().chain(&opened).map(String::as_str);
        self.is_available.store(survey.has_own || self.may_editor_serve(extensions), Ordering::Relaxed);
    }

    /// Keeps whether a server of the editor serves files like this one.
    pub(super) fn note_served(&self, target: &Target, is_served: bool) {
        let Some(path) = target.file() else { return };
        let extension = extension_of(path);
        let mut served = self.served.lock();
        let known = served.entry(extension.unwrap_or_default()).or_insert(is_served);
        *known |= is_served;
    }

    /// Whether a server of the editor may serve files with one of these extensions: one that says so itself; else one of a known
    /// language, about which none of them has refused to answer.
    fn may_editor_serve<'e>(&self, mut extensions: impl Iterator<Item = &'e str>) -> bool {
        let served = self.served.lock();
        self.editor.is_offered()
            && extensions.any(|extension| match (self.editor.serves(extension), served.get(extension)) {
                (Some(is_served), _) | (None, Some(&is_served)) => is_served,
                (None, None) => SERVERS.iter().any(|server| server.serves(extension)),
            })
    }

    /// Whether a server of the editor says itself that it serves files like this one.
    pub(super) fn is_served_by_editor(&self, path: &AbsPath) -> bool {
        self.editor.is_offered()
            && extension_of(path).is_some_and(|extension| self.editor.serves(&extension) == Some(true))
    }

    /// The languages of the workspace by its folders; read again when old.
    async fn survey(&self, selection: Arc<ServerSelection>, open: Vec<AbsPath>) -> Arc<WorkspaceSurvey> {
        let known = self.state.lock().surveyed.clone();
        if let Some(known) = known.filter(|known| known.at.elapsed() < SURVEY_AGE) {
            return known;
        }
        let survey = blocking(move || {
            let can_run = selection.policy.sandbox.is_some();
            let (servers, extensions) = selection.survey(&open);
            let has_own = servers.iter().any(|server| can_run || !server.needs_sandbox);
            WorkspaceSurvey { at: Instant::now(), has_own, extensions: extensions.into_keys().collect() }
        });
        let survey = Arc::new(survey.await);
        self.state.lock().surveyed = Some(Arc::clone(&survey));
        survey
    }
}

/// The extension of a file, in lower case.
fn extension_of(path: &AbsPath) -> Option<String> {
    Some(path.as_path().extension()?.to_string_lossy().to_lowercase())
}
