//! The trust requests of workspace files, and the user's approval.
//!
//! Rule: only requests that were shown before are approved, with the same text; new ones are shown first.

use std::fmt::Write as _;

use serde_json::json;

use super::CommandContext;
use crate::core::lock;
use kode_base::blocking;
use kode_config::command::CommandReport;
use kode_config::settings::TrustRequest;

/// The most characters of one request that are shown.
const MAX_SHOWN: usize = 2_000;

impl CommandContext<'_> {
    pub(super) async fn trust(&self) -> CommandReport {
        if self.in_turn || !self.session.is_busy() {
            self.session.extensions().refresh().await;
        }
        let waiting = self.waiting().await;
        if self.arguments.is_empty() {
            lock(&self.session.commands.requests_shown).clone_from(&waiting);
            return self.list(&waiting);
        }
        let shown = lock(&self.session.commands.requests_shown).clone();
        let is_meant = |trust_request: &&TrustRequest| {
            let path = self.path(&trust_request.file);
            self.arguments == "all"
                || self.arguments == path
                || self.arguments == trust_request.file.to_string()
        };
        let meant: Vec<TrustRequest> = waiting.iter().filter(is_meant).cloned().collect();
        if meant.is_empty() {
            return CommandReport::failure(format!(
                "Nothing of `{}` waits; `/trust` lists what does.",
                self.arguments
            ));
        }
        if let Some(long) = meant.iter().find(|trust_request| trust_request.text.chars().count() > MAX_SHOWN)
        {
            return CommandReport::failure(format!(
                "Nothing was approved: `{}` of {} is too long to be shown here; `kode-ls trust` shows it whole.",
                long.key,
                self.path(&long.file)
            ));
        }
        if !meant.iter().all(|trust_request| shown.contains(trust_request)) {
            lock(&self.session.commands.requests_shown).extend(meant.iter().cloned());
            let list = self.list(&meant);
            let text = format!("Read this first, and then say it again:\n\n{}", list.text);
            return CommandReport { text, failed: true, ..list };
        }
        match self.approve(meant.clone()).await {
            Ok(()) => {
                let count = meant.len();
                CommandReport::text(format!("{count} approved; a change of the text asks again."))
                    .with(json!({ "approved": count }))
            }
            Err(error) => CommandReport::failure(format!("Nothing was approved: {error}")),
        }
    }

    /// The requests of workspace files that the user has not approved.
    pub(super) async fn waiting(&self) -> Vec<TrustRequest> {
        let in_force = self.session.gate().in_force();
        let catalog = self.session.extensions().catalog();
        let of_settings = in_force.policy.withheld.iter().map(|withheld| withheld.trust_request.clone());
        let agents = self.session.extensions().agent_types();
        let of_files = catalog.trust_requests().chain(agents.trust_requests()).cloned().collect();
        let of_files = self.session.gate().unapproved(of_files).await;
        of_settings.chain(of_files).collect()
    }

    fn list(&self, trust_requests: &[TrustRequest]) -> CommandReport {
        if trust_requests.is_empty() {
            return CommandReport::text("Nothing in this workspace waits for your approval.")
                .with(json!({ "wishes": [] }));
        }
        let mut text = String::new();
        let mut file = None;
        for trust_request in trust_requests {
            if file != Some(&trust_request.file) {
                let _ = writeln!(text, "\n**{}** asks for", self.path(&trust_request.file));
                file = Some(&trust_request.file);
            }
            let shown: String = trust_request.shown().chars().take(MAX_SHOWN).collect();
            let _ =
                writeln!(text, "\n{}:\n\n~~~text\n{}\n~~~", trust_request.key, shown.replace("~~~", "~ ~ ~"));
        }
        text.push_str("\n`/trust FILE` approves what a file asks for, `/trust all` everything above.");
        let trust_requests: Vec<_> = trust_requests
            .iter()
            .map(|trust_request| json!({ "file": trust_request.file.to_string(), "key": trust_request.key, "text": trust_request.shown() }))
            .collect();
        CommandReport::text(text.trim_start()).with(json!({ "wishes": trust_requests }))
    }

    async fn approve(&self, trust_requests: Vec<TrustRequest>) -> Result<(), String> {
        let source = self.session.gate().source();
        blocking(move || source.approve_trust_requests(&trust_requests))
            .await
            .map_err(|error| error.to_string())?;
        // Applies at once, not only with the next prompt.
        self.session.gate().refresh().await;
        self.session.servers().refresh().await;
        Ok(())
    }
}
