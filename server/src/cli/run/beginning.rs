//! The engine and the session of a front end without an editor.
//!
//! Rule: a session without an answer is not stored, so that `--continue` resumes work and not a failure.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use clap::Args;
use kode_engine::acp::guest::Guests;
use kode_engine::agent::engine::{Engine, EngineOptions, NewSession};
use kode_engine::agent::session::Session;
use kode_engine::agent::sessions::{ListSessions, WorkspaceFilter};
use kode_engine::agent::state::config::ConfigChange;
use kode_engine::agent::transfer::ForkPoint;
use kode_engine::base::ids::SessionId;
use kode_engine::base::mode::Mode;
use kode_engine::base::paths::{AbsPath, real_path};
use kode_engine::base::scratch::{self, Scratch};
use kode_engine::base::task;
use kode_engine::config::policies::PolicyProvider;
use kode_engine::config::settings::EditorUpdate;
use kode_engine::languages::Languages;
use kode_engine::mcp::Mcp;
use kode_engine::model::Role;
use kode_engine::permission::Deliveries;
use kode_engine::permission::rules::{Behavior, Rule};
use kode_engine::record::event::ItemBody;
use kode_engine::text::host::NoEditor;
use kode_engine::tools::web_search::CurrentSearch;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::cli::{ModelArgs, terminal, working_directory};
use crate::display::printable;
use crate::home;
use crate::policies;
use crate::telemetry;

/// The most notices of a new session that are printed.
const MAX_NOTICES: usize = 10;

/// The longest time that the first prompt waits for MCP servers. A one-shot run could not use their tools otherwise.
const MCP_WAIT: Duration = Duration::from_secs(30);

/// The session to work in, and its options.
#[derive(Debug, Default, Args)]
pub(in crate::cli) struct SessionArgs {
    /// Folder to work in [default: the current folder]
    #[arg(long, value_name = "FOLDER")]
    cwd: Option<PathBuf>,

    /// Continue the folder's last session
    #[arg(short, long, conflicts_with = "resume", help_heading = "Session")]
    r#continue: bool,
    /// Continue this session; a unique prefix of its id is enough, with or without `ses_`
    #[arg(short, long, value_name = "ID", help_heading = "Session")]
    resume: Option<String>,
    /// Continue in a copy of that session
    #[arg(long, help_heading = "Session")]
    fork: bool,
    /// Work in a new git worktree of the folder, at its newest commit
    #[arg(long, conflicts_with_all = ["continue", "resume", "fork", "ephemeral"], help_heading = "Session")]
    worktree: bool,
    /// Do not store the session
    #[arg(long, conflicts_with_all = ["continue", "resume", "fork"], help_heading = "Session")]
    ephemeral: bool,
    /// Text appended to the system prompt, instead of the `appendSystemPrompt` setting
    #[arg(long, value_name = "TEXT", help_heading = "Session")]
    append_system_prompt: Option<String>,

    /// Permission mode [default: from the settings]
    #[arg(long, value_name = "MODE", value_parser = parse_mode, help_heading = "Safety")]
    mode: Option<Mode>,
    /// Sandbox profile for the commands of this session
    #[arg(long, value_name = "PROFILE", help_heading = "Safety")]
    sandbox: Option<String>,
    /// Permission rules that allow calls, comma-separated, such as `Edit,Bash(npm test:*)`
    #[arg(long, value_name = "RULES", help_heading = "Safety")]
    allowed_tools: Vec<String>,
    /// Permission rules that deny calls; a bare tool name removes the tool
    #[arg(long, value_name = "RULES", help_heading = "Safety")]
    disallowed_tools: Vec<String>,
    /// Additional folder that the agent may work in
    #[arg(long, value_name = "FOLDER", help_heading = "Safety")]
    add_dir: Vec<PathBuf>,
}

/// The mode of that name.
///
/// # Errors
/// The names there are.
pub(in crate::cli) fn parse_mode(name: &str) -> Result<Mode, String> {
    Mode::parse(name).ok_or_else(|| {
        let names: Vec<_> = Mode::ALL.iter().map(|mode| mode.name()).collect();
        format!("one of {}", names.join(", "))
    })
}

impl SessionArgs {
    /// Appends text to the system prompt.
    pub(in crate::cli) fn add_instructions(&mut self, text: &str) {
        let own = self.append_system_prompt.take();
        self.append_system_prompt =
            Some(own.map_or_else(|| text.to_owned(), |own| format!("{own}\n\n{text}")));
    }

    /// The permission rules of the command line.
    ///
    /// # Errors
    /// A rule that cannot be parsed, or an allow rule that a deny rule covers.
    pub(in crate::cli) fn rules(&self) -> anyhow::Result<Vec<(Behavior, String)>> {
        let allowed: Vec<String> = self.allowed_tools.iter().flat_map(|text| rules(text)).collect();
        let denied: Vec<String> = self.disallowed_tools.iter().flat_map(|text| rules(text)).collect();
        for rule in allowed.iter().chain(&denied) {
            rule.parse::<Rule>().with_context(|| format!("invalid permission rule `{}`", printable(rule)))?;
        }
        for rule in &allowed {
            let tool = rule.split('(').next().unwrap_or_default();
            if let Some(other) = denied.iter().find(|other| *other == rule || *other == tool) {
                anyhow::bail!(
                    "the allow rule `{rule}` has no effect: `{other}` denies the same calls. Remove one of them"
                );
            }
        }
        let of = |behavior: Behavior| move |rule: String| (behavior, rule);
        Ok(denied
            .into_iter()
            .map(of(Behavior::Deny))
            .chain(allowed.into_iter().map(of(Behavior::Allow)))
            .collect())
    }

    /// The arguments that replace settings, as a settings object.
    fn settings(&self) -> anyhow::Result<Value> {
        let folders = self.add_dir.iter().map(|folder| Ok(working_directory(Some(folder))?.to_string()));
        let folders = folders.collect::<anyhow::Result<Vec<_>>>()?;
        let mut settings = serde_json::Map::new();
        if !folders.is_empty() {
            settings.insert("permissions".into(), json!({ "additionalDirectories": folders }));
        }
        if let Some(text) = &self.append_system_prompt {
            settings.insert("appendSystemPrompt".into(), json!(text));
        }
        Ok(if settings.is_empty() { Value::Null } else { Value::Object(settings) })
    }
}

/// Splits an argument into rules at commas outside parentheses.
fn rules(text: &str) -> Vec<String> {
    let mut depth = 0_u32;
    let parts = text.split(|letter: char| {
        match letter {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            _ => {}
        }
        letter == ',' && depth == 0
    });
    parts.map(|rule| rule.trim().to_owned()).filter(|rule| !rule.is_empty()).collect()
}

/// A front end's engine and session.
pub(in crate::cli) struct RunSession {
    pub(in crate::cli) engine: Engine,
    pub(in crate::cli) session: Arc<Session>,
    /// The number of messages before this run.
    messages: usize,
    is_new: bool,
    /// The state folder of a session that is not stored.
    ephemeral: Option<Scratch>,
}

impl RunSession {
    /// Whether the session can be continued later.
    pub(in crate::cli) fn is_kept(&self) -> bool {
        self.ephemeral.is_none() && !self.is_vain()
    }

    /// Whether it is a new session without an answer of the model.
    fn is_vain(&self) -> bool {
        let said = self.session.history().messages_from(self.messages);
        self.is_new && !said.iter().any(|(_, message)| message.role == Role::Assistant)
    }

    /// Shuts the engine down. Deletes a session without an answer.
    pub(in crate::cli) async fn end(self) {
        let is_vain = self.is_vain();
        let Self { engine, session, ephemeral, .. } = self;
        let id = session.id().clone();
        drop(session);
        if is_vain
            && ephemeral.is_none()
            && let Err(error) = engine.delete_session(&WorkspaceFilter::All, &id).await
        {
            tracing::info!(%error, "an empty session could not be deleted");
        }
        engine.shutdown().await;
        drop(ephemeral);
    }
}

/// Starts a session, or resumes one.
///
/// # Errors
/// Invalid arguments, an unusable model, or an unknown session.
pub(in crate::cli) async fn begin(
    args: SessionArgs,
    rules: Vec<(Behavior, String)>,
    model: &ModelArgs,
) -> anyhow::Result<RunSession> {
    task::spawn_blocking(scratch::sweep);
    let cwd = working_directory(args.cwd.as_ref())?;
    let policies = policies::with_rules(rules)?;
    let user_settings = args.settings()?;
    policies.editor().say(EditorUpdate { user_settings, ..EditorUpdate::default() });
    let (models, profile) = model.models(&policies);
    let equipment = policies::equipment(&policies);
    if let Some(problem) = equipment.search.problem() {
        terminal::error_line(&format!("! {}", printable(&problem)));
    }
    let search = CurrentSearch::default();
    search.set(equipment.provider);
    let state = home::folder()?;
    let ephemeral = match args.ephemeral {
        true => Some(Scratch::new().context("no temporary folder")?),
        false => None,
    };
    let home = match &ephemeral {
        Some(folder) => AbsPath::new(real_path(folder.path()).context("no temporary folder")?)?,
        None => state.clone(),
    };
    let policies = Arc::new(policies);
    let engine = Engine::new(EngineOptions {
        home,
        tools: policies::tools(&search),
        servers: Arc::new(Mcp::new(state).waiting(MCP_WAIT).asking_for_pages(terminal::is_interactive())),
        languages: Arc::new(Languages::default()),
        host: Arc::new(NoEditor),
        models,
        policies: Arc::clone(&policies) as Arc<dyn PolicyProvider>,
        concurrency: equipment.concurrency,
        save_before_commands: true,
        deliveries: Deliveries::default(),
    })
    .with_guests(Arc::new(Guests));
    telemetry::begin(&engine, &policies);
    engine.name_client("kode-ls run");
    let is_new = args.resume.is_none() && !args.r#continue;
    anyhow::ensure!(!args.fork || !is_new, "--fork needs a session to copy: add --continue or --resume ID");
    let session = match is_new {
        true => {
            let new = NewSession { roots: vec![cwd], mode: args.mode, model: profile };
            let session = match args.worktree {
                true => engine.new_session_in_worktree(new, &CancellationToken::new()).await?,
                false => engine.new_session(new)?,
            };
            // Fail before the first turn, so that no session is left behind.
            let named = session.snapshot(0).model;
            if let Err(error) = engine.models().profile(&named) {
                let id = session.id().clone();
                drop(session);
                drop(engine.delete_session(&WorkspaceFilter::All, &id).await);
                return Err(anyhow::anyhow!("{} {}", error.message, error.hint()));
            }
            print_notices(&session);
            session
        }
        false => resume(&engine, &cwd, &args, profile).await?,
    };
    if let Some(name) = &args.sandbox {
        let chosen =
            session.gate().profile_named(name).map_err(|error| anyhow::anyhow!("--sandbox: {error}"))?;
        session.configure(ConfigChange { sandbox: Some(chosen), ..ConfigChange::default() });
    }
    let messages = session.history().messages_from(0).last().map_or(0, |(number, _)| number + 1);
    Ok(RunSession { engine, session, messages, is_new, ephemeral })
}

/// Prints the notices of a session that has just begun: events before the first turn are not followed.
fn print_notices(session: &Session) {
    for item in session.snapshot(MAX_NOTICES).items {
        if let ItemBody::Notice { text, hint, .. } = &item.body {
            let hint = hint.as_ref().map(|hint| format!(" {hint}")).unwrap_or_default();
            terminal::error_line(&format!("! {}", printable(&format!("{text}{hint}"))));
        }
    }
}

/// Resumes or forks the requested session.
async fn resume(
    engine: &Engine,
    cwd: &AbsPath,
    args: &SessionArgs,
    profile: Option<String>,
) -> anyhow::Result<Arc<Session>> {
    let folders = std::slice::from_ref(cwd);
    let id = which(engine, args.resume.as_deref(), cwd).await?;
    let session = match args.fork {
        true => engine.fork_session(folders, &id, ForkPoint::End).await?,
        false => engine.load_session(folders, &id).await?,
    };
    if let Some(mode) = args.mode {
        session.gate().allow_mode(mode).await?;
    }
    let model = profile.map(|name| session.models().named(&name)).transpose()?;
    session.configure(ConfigChange { mode: args.mode, model, ..ConfigChange::default() });
    Ok(session)
}

/// Finds the named session of a folder, or its last one.
async fn which(engine: &Engine, id: Option<&str>, cwd: &AbsPath) -> anyhow::Result<SessionId> {
    let (catalogue, here) = (Arc::clone(engine.catalogue()), WorkspaceFilter::These(vec![cwd.clone()]));
    let wanted = id.map(str::to_owned);
    let found = task::spawn_blocking(move || match wanted {
        Some(wanted) => catalogue.complete(&here, &wanted).map(Some).map_err(anyhow::Error::from),
        None => {
            let page = catalogue.list(&ListSessions::newest(here, 1), &|_| None)?;
            Ok(page.sessions.into_iter().next().map(|session| session.id))
        }
    });
    found.await??.with_context(|| format!("{cwd} has no session to continue"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_are_split_at_commas_outside_parentheses() {
        assert_eq!(rules("Edit, Bash(a, b),Read"), ["Edit", "Bash(a, b)", "Read"]);
        assert_eq!(rules(""), Vec::<String>::new());
    }

    #[test]
    fn an_allow_rule_that_a_deny_rule_covers_is_an_error() {
        let args = |allowed: &str, denied: &str| SessionArgs {
            allowed_tools: vec![allowed.into()],
            disallowed_tools: vec![denied.into()],
            ..SessionArgs::default()
        };
        for (allowed, denied) in [("Edit", "Edit"), ("Read,Bash(git:*)", "Bash"), ("Bash(a)", "Bash(a)")] {
            let error = args(allowed, denied).rules().unwrap_err().to_string();
            assert!(error.contains("has no effect"), "{error}");
        }
        assert_eq!(args("Bash(git:*)", "Bash(git push:*)").rules().unwrap().len(), 2);
    }
}
