//! The hooks of settings files, read once: groups, handlers, conditions, and their problems.
//!
//! Rule: one bad handler disables itself alone and is reported at its place; a group that waits for the user's approval has
//! no handler that could run. Nothing in here is run or reached.

use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Map, Value};

use crate::hooks::event::HookEvent;
use crate::hooks::matcher::{MatchSubject, Matcher};
use crate::in_force::EffectivePolicy;
use crate::plugin::Folders;
use crate::policy::Policy;
use crate::settings::declared::{Approval, Declaration};
use crate::settings::{Declarations, runs_script_in};
use kode_base::mask::masked_text;
use kode_base::mode::Mode;
use kode_base::paths::AbsPath;
use kode_permission::GateDecision;
use kode_permission::equipment::Equipment;
use kode_permission::gate::GateCase;
use kode_permission::rules::{
    Behavior, PlacedRule, ProblemSeverity, Rule, RuleSource, SettingsLayer, SettingsProblem,
};
use kode_text::workspace::Workspace;

/// The most handlers of all files together.
const MAX_HANDLERS: usize = 500;

/// A time limit above this is most likely one in milliseconds, in seconds.
const LONG_TIMEOUT: f64 = 3_600.0;

/// The longest time limit there is.
const MAX_TIMEOUT: Duration = Duration::from_secs(24 * 3_600);

/// The time limit of commands and requests by default.
const TIMEOUT: Duration = Duration::from_secs(600);

/// The same in files of agents that give them less.
const SHORT_TIMEOUT: Duration = Duration::from_secs(60);

/// The time limit of questions to a model, and of hooks that hold back a prompt, by default.
const ASKED_TIMEOUT: Duration = Duration::from_secs(30);

/// The shells that can run a handler's command.
const SHELLS: [&str; 3] = ["bash", "sh", "zsh"];

/// The fields any handler may have.
const COMMON: [&str; 5] = ["type", "if", "timeout", "statusMessage", "once"];

/// Something to run.
#[derive(Debug)]
pub struct HookHandler {
    /// The event it is for.
    pub event: HookEvent,
    /// The action.
    pub action: HookAction,
    /// How long it may take.
    pub timeout: Duration,
    /// Whether the file says how long it may take.
    pub has_own_timeout: bool,
    /// The text for people while it runs.
    pub status_message: Option<String>,
    /// Whether it runs once in a session.
    pub once: bool,
    /// Whether no caller waits for it.
    pub is_async: bool,
    /// The place of its group.
    pub source: RuleSource,
    /// The folder that the file's own relative paths are relative to.
    pub root: AbsPath,
    /// The plugin that brings it, if one does.
    pub plugin: Option<Arc<Folders>>,
    /// Whether it runs in the sandbox, because it runs a script that a command of the agent may have written.
    pub is_confined: bool,
    /// Represents the handler when the settings are read again.
    pub key: u64,
    matcher: Arc<Matcher>,
    condition: Option<HookCondition>,
}

/// The output of a handler.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum HookAction {
    /// A command.
    Command {
        /// The command line, or the program where there are arguments.
        command: String,
        /// The arguments; no shell is used then.
        args: Option<Vec<String>>,
        /// The shell; the usual one when `None`.
        shell: Option<String>,
    },
    /// A request to a server.
    Http {
        /// The address.
        url: String,
        /// Headers, names and values.
        headers: Vec<(String, String)>,
        /// The variables that headers may hold.
        allowed: Vec<String>,
    },
    /// A question to a model.
    Prompt {
        /// The question; `$ARGUMENTS` represents what the event tells.
        prompt: String,
        /// The model, by whatever name; the quick one when `None`.
        model: Option<String>,
    },
}

/// A permission rule that a call has to be matched by.
#[derive(Debug)]
pub(super) struct HookCondition(EffectivePolicy);

/// The base of relative patterns.
#[derive(Clone, Copy)]
pub(super) struct PatternBase<'a> {
    /// The working directory.
    pub(super) cwd: &'a AbsPath,
    /// The folder of the file.
    pub(super) root: &'a AbsPath,
}

/// All hooks that settings files declare, ready to be looked up.
#[derive(Debug, Default)]
pub struct Hooks {
    by_event: [Vec<Arc<HookHandler>>; HookEvent::ALL.len()],
    /// Everything that is declared, also what never runs, as people see it.
    pub listed: Vec<DeclaredHook>,
    /// The problem, and its place.
    pub problems: Vec<SettingsProblem>,
    /// Groups that wait for the user's approval, by their files.
    pub waiting: Vec<RuleSource>,
    /// Whether all of them are switched off.
    pub is_disabled: bool,
    /// Folders that commands of the agent write in, and whose scripts are not guarded for these hooks.
    unguarded: Vec<AbsPath>,
}

/// A handler as it is declared, whether it can run or not.
#[derive(Clone, Debug)]
pub struct DeclaredHook {
    /// The event, as it is written.
    pub event: String,
    /// The matcher; `None` where none is written.
    pub matcher: Option<String>,
    /// The kind of handler, as settings name it.
    pub kind: String,
    /// The beginning of the action, without secrets.
    pub head: String,
    /// Where it is declared.
    pub source: RuleSource,
    /// Whether it needs the user's approval.
    pub approval: Approval,
    /// Why it does not run.
    pub problem: Option<String>,
    /// Names the handler in the record of runs; `None` if no action can run.
    pub key: Option<u64>,
}

impl HookAction {
    /// The kind, as settings name it.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Command { .. } => "command",
            Self::Http { .. } => "http",
            Self::Prompt { .. } => "prompt",
        }
    }

    /// The beginning of the action, in one line for people, without secrets.
    #[must_use]
    pub fn head(&self) -> String {
        let text = match self {
            Self::Command { command, args: Some(args), .. } => format!("{command} {}", args.join(" ")),
            Self::Command { command, .. } => command.clone(),
            Self::Http { url, .. } => url.clone(),
            Self::Prompt { prompt, .. } => prompt.clone(),
        };
        head_of(&masked_text(&text))
    }
}

impl HookCondition {
    /// Reads a permission rule.
    ///
    /// # Errors
    /// Its problems.
    pub(super) fn parse(text: &str, anchor: PatternBase<'_>) -> Result<Self, String> {
        let (rule, _) =
            Rule::parse(text).map_err(|error| format!("`{text}` is no permission rule: {error}"))?;
        let source = RuleSource { layer: SettingsLayer::Default, file: None, place: None };
        // Deny rules mean all that they could mean.
        let root = Some(anchor.root.clone());
        let rules = vec![PlacedRule { behavior: Behavior::Deny, rule, source, root }];
        let picture = EffectivePolicy::new(
            Arc::new(Policy { rules, ..Policy::default() }),
            &[],
            &Equipment::default(),
            anchor.cwd,
        );
        match picture.problems.first() {
            Some(problem) => Err(problem.message.clone()),
            None => Ok(Self(picture)),
        }
    }

    /// Whether the rule refers to a call.
    pub(super) fn holds(&self, call: &GateCase<'_>, workspace: &Workspace) -> bool {
        let verdict = self.0.judge(call, Mode::BypassPermissions, workspace, &|_| None);
        verdict.decision == GateDecision::Deny && verdict.rule.is_some()
    }
}

impl HookHandler {
    /// Whether it runs at a moment.
    pub(super) fn is_for(&self, subject: MatchSubject<'_>) -> bool {
        self.matcher.matches(subject)
            && self.condition.as_ref().is_none_or(|condition| {
                subject.call.is_some_and(|call| condition.holds(call, subject.workspace))
            })
    }

    /// Whether a file of the workspace has it run.
    #[must_use]
    pub fn is_of_workspace(&self) -> bool {
        matches!(self.source.layer, SettingsLayer::Local | SettingsLayer::Project)
    }
}

impl Hooks {
    /// Reads the declarations, for sessions in `cwd`.
    #[must_use]
    pub fn of(declared: &Declarations, cwd: &AbsPath) -> Self {
        let is_disabled = declared.switches.disable_all_hooks == Some(true);
        Self::of_entries(declared.hooks.iter().cloned(), is_disabled, cwd)
    }

    /// Reads these groups, for sessions in `cwd`.
    pub fn of_entries(
        entries: impl IntoIterator<Item = Declaration>,
        is_disabled: bool,
        cwd: &AbsPath,
    ) -> Self {
        Self { is_disabled, ..Self::default() }.with(entries, cwd)
    }

    /// Reads the groups of files whose scripts are not guarded as those of settings are: what runs a script in these folders,
    /// where commands of the agent write, is confined. Blocks on the disk.
    pub fn of_files(
        entries: impl IntoIterator<Item = Declaration>,
        is_disabled: bool,
        cwd: &AbsPath,
        folders: Vec<AbsPath>,
    ) -> Self {
        Self { is_disabled, unguarded: folders, ..Self::default() }.with(entries, cwd)
    }

    fn with(mut self, entries: impl IntoIterator<Item = Declaration>, cwd: &AbsPath) -> Self {
        for entry in entries {
            self.group(&entry, cwd);
        }
        self
    }

    /// The handlers of an event, the strongest layer first.
    #[must_use]
    pub fn of_event(&self, event: HookEvent) -> &[Arc<HookHandler>] {
        &self.by_event[event as usize]
    }

    /// Whether nothing could ever run at an event.
    #[must_use]
    pub fn has_none(&self, event: HookEvent) -> bool {
        self.is_disabled || self.of_event(event).is_empty()
    }

    /// The handlers of an event, added to the `found` ones, each once.
    pub fn at(
        &self,
        event: HookEvent,
        subject: MatchSubject<'_>,
        mut found: Vec<Arc<HookHandler>>,
    ) -> Vec<Arc<HookHandler>> {
        if self.is_disabled {
            return found;
        }
        for handler in self.of_event(event) {
            let is_known =
                |known: &Arc<HookHandler>| known.action == handler.action && known.root == handler.root;
            if !found.iter().any(is_known) && handler.is_for(subject) {
                found.push(Arc::clone(handler));
            }
        }
        found
    }

    fn group(&mut self, entry: &Declaration, cwd: &AbsPath) {
        if let Approval::Waiting(_) = entry.approval {
            self.waiting.push(entry.source.clone());
        }
        let Value::Object(group) = &entry.value else {
            return self.wrong(entry, None, "a group of hooks is an object with `hooks`, a list of handlers");
        };
        let matcher = group.get("matcher");
        let Some(Value::Array(handlers)) = group.get("hooks") else {
            return self.wrong(
                entry,
                matcher,
                "the group has no `hooks`, a list of handlers, so it does nothing",
            );
        };
        let event = HookEvent::of_name(&entry.name);
        let compiled =
            Matcher::parse(matcher, is_glob_dialect(entry), PatternBase { cwd, root: &entry.root });
        let compiled = match compiled {
            Ok(compiled) => Arc::new(compiled),
            Err(error) => {
                return self.wrong(entry, matcher, &format!("its hooks do not run: {error}"));
            }
        };
        if event.is_none() {
            let known = if HookEvent::is_known_elsewhere(&entry.name) {
                ""
            } else {
                " and no agent known here has it"
            };
            let problem = format!("this event is not fired here{known}, so its hooks do not run");
            return self.wrong(entry, matcher, &problem);
        }
        for value in handlers {
            self.handler(entry, event, value, &compiled, cwd);
        }
    }

    fn handler(
        &mut self,
        entry: &Declaration,
        event: Option<HookEvent>,
        value: &Value,
        matcher: &Arc<Matcher>,
        cwd: &AbsPath,
    ) {
        let listed = listed(entry, entry.value.get("matcher"), Some(value));
        let Some(event) = event else { return };
        if self.listed.len() >= MAX_HANDLERS {
            if self.listed.len() == MAX_HANDLERS {
                let message =
                    format!("there are more than {MAX_HANDLERS} hooks; those from here on do not run");
                self.report(entry, ProblemSeverity::Error, &message);
            }
            return;
        }
        let mut notes = Vec::new();
        match read(entry, event, value, matcher, cwd, &mut notes) {
            Ok(handler) => {
                self.listed.push(DeclaredHook {
                    key: Some(handler.key),
                    problem: notes.first().cloned(),
                    ..listed
                });
                notes.iter().for_each(|note| self.report(entry, ProblemSeverity::Warning, note));
                if entry.is_in_force() {
                    let is_confined = self.unguarded.iter().any(|folder| runs_script_in(folder, value));
                    self.by_event[event as usize].push(Arc::new(HookHandler { is_confined, ..handler }));
                }
            }
            Err(problem) => {
                self.report(entry, ProblemSeverity::Warning, &format!("it does not run: {problem}"));
                self.listed.push(DeclaredHook { problem: Some(problem), ..listed });
            }
        }
    }

    /// Notes a group none of whose handlers run.
    fn wrong(&mut self, entry: &Declaration, matcher: Option<&Value>, problem: &str) {
        let severity = if HookEvent::is_known_elsewhere(&entry.name) {
            ProblemSeverity::Information
        } else {
            ProblemSeverity::Warning
        };
        self.report(entry, severity, problem);
        let handlers = entry.value.get("hooks").and_then(Value::as_array).cloned().unwrap_or_default();
        let handlers: Vec<_> =
            if handlers.is_empty() { vec![None] } else { handlers.iter().map(Some).collect() };
        let handlers = handlers.into_iter().take(MAX_HANDLERS.saturating_sub(self.listed.len()));
        self.listed.extend(handlers.map(|handler| DeclaredHook {
            problem: Some(problem.to_owned()),
            ..listed(entry, matcher, handler)
        }));
    }

    fn report(&mut self, entry: &Declaration, severity: ProblemSeverity, problem: &str) {
        self.problems.push(SettingsProblem {
            file: entry.source.file.clone(),
            place: entry.source.place,
            severity,
            message: format!("A hook of {}: {}.", entry.name, problem.trim_end_matches('.')),
        });
    }
}

fn listed(entry: &Declaration, matcher: Option<&Value>, handler: Option<&Value>) -> DeclaredHook {
    let text = |name: &str| handler.and_then(|handler| handler.get(name)?.as_str()).map(str::to_owned);
    let head = ["command", "url", "prompt", "tool"].iter().find_map(|name| text(name));
    DeclaredHook {
        event: entry.name.clone(),
        matcher: matcher.map(|matcher| match matcher {
            Value::String(text) => text.clone(),
            other => other.to_string(),
        }),
        kind: text("type").unwrap_or_else(|| "command".to_owned()),
        head: head_of(&masked_text(&head.unwrap_or_default())),
        source: entry.source.clone(),
        approval: entry.approval.clone(),
        problem: None,
        key: None,
    }
}

fn read(
    entry: &Declaration,
    event: HookEvent,
    value: &Value,
    matcher: &Arc<Matcher>,
    cwd: &AbsPath,
    notes: &mut Vec<String>,
) -> Result<HookHandler, String> {
    let Value::Object(fields) = value else { return Err("a handler is an object".to_owned()) };
    let action = action(fields, notes)?;
    let condition = match fields.get("if") {
        None | Some(Value::Null) => None,
        Some(Value::String(_)) if !event.is_of_tool() => {
            return Err("`if` is for events about calls of tools only".to_owned());
        }
        Some(Value::String(rule)) => {
            Some(HookCondition::parse(rule, PatternBase { cwd, root: &entry.root })?)
        }
        Some(_) => return Err("`if` is one permission rule, as `Bash(git *)`".to_owned()),
    };
    let own = timeout(fields, notes)?;
    let usual = match &action {
        HookAction::Prompt { .. } => ASKED_TIMEOUT,
        _ if event == HookEvent::UserPromptSubmit => ASKED_TIMEOUT,
        HookAction::Command { .. } if is_short_dialect(entry) => SHORT_TIMEOUT,
        HookAction::Command { .. } | HookAction::Http { .. } => TIMEOUT,
    };
    let flag = |name: &str| fields.get(name).and_then(Value::as_bool).unwrap_or(false);
    let matcher_text = entry.value.get("matcher").map(Value::to_string);
    let mut hasher = DefaultHasher::new();
    (event, &action, matcher_text, fields.get("if").map(Value::to_string)).hash(&mut hasher);
    Ok(HookHandler {
        event,
        timeout: own.unwrap_or(usual),
        has_own_timeout: own.is_some(),
        status_message: fields.get("statusMessage").and_then(Value::as_str).map(str::to_owned),
        once: flag("once"),
        is_async: matches!(action, HookAction::Command { .. }) && (flag("async") || flag("asyncRewake")),
        action,
        source: entry.source.clone(),
        root: entry.root.clone(),
        plugin: entry.plugin.clone(),
        is_confined: false,
        key: hasher.finish(),
        matcher: Arc::clone(matcher),
        condition,
    })
}

fn action(fields: &Map<String, Value>, notes: &mut Vec<String>) -> Result<HookAction, String> {
    let text = |name: &str| match fields.get(name) {
        Some(Value::String(text)) if !text.trim().is_empty() => Ok(text.clone()),
        _ => Err(format!("it has no `{name}`, a text")),
    };
    let kind = fields.get("type").map_or(Some("command"), Value::as_str).unwrap_or_default();
    let (action, known): (_, &[&str]) = match kind {
        "command" => {
            let shell = fields.get("shell").and_then(Value::as_str).map(str::to_owned);
            if let Some(shell) = shell.as_ref().filter(|shell| !SHELLS.contains(&shell.as_str())) {
                return Err(format!("no shell `{shell}` is used here; there are {}", SHELLS.join(", ")));
            }
            let args = fields.get("args").map(|args| texts(args, "args")).transpose()?;
            if fields.get("asyncRewake").and_then(Value::as_bool) == Some(true) {
                notes.push(
                    "`asyncRewake` is treated as `async`: its output does not resume the agent".to_owned(),
                );
            }
            let action = HookAction::Command { command: text("command")?, args, shell };
            (action, &["command", "args", "async", "asyncRewake", "shell"])
        }
        "http" => {
            let url = text("url")?;
            let headers = match fields.get("headers") {
                None | Some(Value::Null) => Vec::new(),
                Some(Value::Object(headers)) => headers
                    .iter()
                    .map(|(name, value)| {
                        let value =
                            value.as_str().ok_or_else(|| format!("the header `{name}` is not text"))?;
                        Ok((name.clone(), value.to_owned()))
                    })
                    .collect::<Result<_, String>>()?,
                Some(_) => return Err("`headers` is an object of texts".to_owned()),
            };
            let allowed = fields.get("allowedEnvVars").map(|names| texts(names, "allowedEnvVars"));
            let allowed = allowed.transpose()?.unwrap_or_default();
            (HookAction::Http { url, headers, allowed }, &["url", "headers", "allowedEnvVars"])
        }
        "prompt" => {
            let model = fields.get("model").and_then(Value::as_str).map(str::to_owned);
            (HookAction::Prompt { prompt: text("prompt")?, model }, &["prompt", "model"])
        }
        "agent" | "mcp_tool" => return Err(format!("handlers of type `{kind}` are not run here")),
        other => {
            return Err(format!("there are no handlers of type `{other}`; write command, http or prompt"));
        }
    };
    let unknown =
        fields.keys().filter(|key| !COMMON.contains(&key.as_str()) && !known.contains(&key.as_str()));
    notes.extend(unknown.map(|key| format!("`{key}` means nothing in a handler of type `{kind}`")));
    Ok(action)
}

fn timeout(fields: &Map<String, Value>, notes: &mut Vec<String>) -> Result<Option<Duration>, String> {
    let Some(said) = fields.get("timeout").filter(|said| !said.is_null()) else { return Ok(None) };
    let seconds = said.as_f64().filter(|seconds| seconds.is_finite() && *seconds > 0.0);
    let seconds = seconds.ok_or("`timeout` is a number of seconds above 0")?;
    if seconds > LONG_TIMEOUT {
        notes.push(format!(
            "`timeout` is in seconds, and {said} of them are more than an hour; {} may be meant",
            seconds / 1_000.0
        ));
    }
    Ok(Some(Duration::try_from_secs_f64(seconds).unwrap_or(MAX_TIMEOUT).min(MAX_TIMEOUT)))
}

fn texts(value: &Value, name: &str) -> Result<Vec<String>, String> {
    let wrong = || format!("`{name}` is a list of texts");
    let list = value.as_array().ok_or_else(wrong)?;
    list.iter().map(|text| text.as_str().map(str::to_owned).ok_or_else(wrong)).collect()
}

/// Whether a file is one of an agent in whose matchers `*` represents any text.
fn is_glob_dialect(entry: &Declaration) -> bool {
    is_in_folder(entry, &[".kode"])
}

/// Whether a file is one of an agent that gives hooks less time.
fn is_short_dialect(entry: &Declaration) -> bool {
    is_in_folder(entry, &[".kode", ".blade"])
}

/// Whether a file lies in such a folder, or deeper in one of its root.
fn is_in_folder(entry: &Declaration, names: &[&str]) -> bool {
    let Some(file) = &entry.source.file else { return false };
    let beneath = file.as_path().strip_prefix(entry.root.as_path()).ok();
    let first = beneath.and_then(|path| path.components().next()?.as_os_str().to_str());
    let parent = file.parent().map(|parent| parent.file_name());
    first.is_some_and(|first| names.contains(&first))
        || parent.is_some_and(|parent| names.contains(&parent.as_str()))
}

/// The first line of a text, cut where it is long.
fn head_of(text: &str) -> String {
    const LENGTH: usize = 120;
    let mut lines = text.trim().lines();
    let line = lines.next().unwrap_or_default();
    match line.char_indices().nth(LENGTH) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None if lines.next().is_some() => format!("{line} …"),
        None => line.to_owned(),
    }
}

#[cfg(test)]
mod tests;
