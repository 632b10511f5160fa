//! Commands that show something.
//!
//! Rule: they change nothing, and show the current values from their source.

use std::fmt::Write as _;

use serde_json::{Value, json};

use super::{CommandContext, unknown};
use crate::hooks::{HookList, HookOwnerKind};
use kode_base::todo;
use kode_config::command::{BUILT_INS, BuiltInCommand, CommandEffect, CommandReport, mcp_login};
use kode_config::extension::ExtensionKind;
use kode_config::memory::InstructionFate;
use kode_config::settings::declared::Approval;
use kode_model::Usage;
use kode_model::models::Pointer;
use kode_permission::rules::SettingsProblem;
use kode_tool::offer::ToolInfo;
use kode_tool::status::ServerState;

/// The most characters of a description in a list.
const MAX_SHOWN: usize = 160;

impl CommandContext<'_> {
    pub(super) async fn help(&self) -> CommandReport {
        let catalog = self.session.extensions().catalog();
        let wanted = self.arguments.trim_start_matches('/');
        if !wanted.is_empty() {
            return self.help_on(wanted).await;
        }
        let mut text = "**Commands**\n\n".to_owned();
        for built_in in BUILT_INS.iter().filter(|built_in| built_in.effect != CommandEffect::Elsewhere) {
            let _ = writeln!(text, "- {}: {}", shown(built_in), built_in.description);
        }
        let own: Vec<_> = catalog.all().filter(|one| one.user_may_call).collect();
        if !own.is_empty() {
            text.push_str("\n**Of files**\n\n");
        }
        for one in &own {
            let name = format!("/{} {}", one.name, one.argument_hint);
            let from = format!("{}, {}", one.scope.name(), self.path(&one.path));
            let _ = writeln!(text, "- `{}`: {} ({from})", name.trim_end(), short(&one.listing));
        }
        let built_in: Vec<_> = BUILT_INS.iter().map(|built_in| built_in.name).collect();
        let own: Vec<_> = own.iter().map(|one| one.name.as_str()).collect();
        CommandReport::text(text).with(json!({ "builtIn": built_in, "files": own }))
    }

    async fn help_on(&self, name: &str) -> CommandReport {
        if let Some(built_in) = BuiltInCommand::find(name) {
            let mut text = format!("{}: {}.", shown(built_in), built_in.description.trim_end_matches('.'));
            if !built_in.aliases.is_empty() {
                let aliases: Vec<_> = built_in.aliases.iter().map(|alias| format!("`/{alias}`")).collect();
                let _ = write!(text, " Also {}.", aliases.join(", "));
            }
            return CommandReport::text(text);
        }
        let catalog = self.session.extensions().catalog();
        let Some(one) = catalog.typed(name) else { return unknown(&self.session.services, name) };
        let named = format!("/{} {}", one.name, one.argument_hint);
        let mut text =
            format!("`{}`: {}\n\n- File: {} ({})", named.trim_end(), one.listing, one.path, one.scope.name());
        let lists = [("Runs unasked", &one.allowed_tools), ("Does not run", &one.disallowed_tools)];
        for (label, list) in lists.into_iter().filter(|(_, list)| !list.is_empty()) {
            let _ = write!(text, "\n- {label}: {}", code(list));
        }
        for trust_request in self.session.gate().unapproved(one.trust_requests.clone()).await {
            let _ = write!(text, "\n- Waits for your approval (`/trust`): {}", trust_request.key);
        }
        for note in &one.notes {
            let _ = write!(text, "\n- {note}");
        }
        CommandReport::text(text)
    }

    pub(super) fn context(&self) -> CommandReport {
        let using = match self.session.context_use() {
            Ok(using) => using,
            Err(error) => return CommandReport::failure(error.to_string()),
        };
        let share = |tokens: u64| {
            let share = tokens.saturating_mul(1000).checked_div(using.window).unwrap_or_default();
            format!("{}.{} %", share / 10, share % 10)
        };
        let mut text = format!(
            "**{}** of {} tokens ({}).\n\n| part | tokens | share |\n| --- | ---: | ---: |\n",
            grouped(using.tokens),
            grouped(using.window),
            share(using.tokens)
        );
        let parts = using.parts;
        let rows = [
            ("system prompt", parts.system),
            ("tools", parts.tools),
            ("instruction files", parts.memory),
            ("your messages", parts.user),
            ("answers", parts.assistant),
            ("results of tools", parts.results),
            ("pictures", parts.images),
            ("summary of older messages", parts.summary),
            ("kept free for the answer", using.reserved),
            ("free", using.free()),
        ];
        for (part, tokens) in rows {
            let _ = writeln!(text, "| {part} | {} | {} |", grouped(tokens), share(tokens));
        }
        match using.trigger {
            Some(trigger) => {
                let _ = write!(text, "\nCompacted from {} tokens on.", grouped(trigger));
            }
            None => text.push_str("\nNot compacted by itself."),
        }
        CommandReport::text(text).with(json!(using))
    }

    pub(super) fn cost(&self) -> CommandReport {
        let spending = self.session.spending();
        let money = |cost: Option<f64>| cost.map_or("not known".to_owned(), |cost| format!("${cost:.4}"));
        let total = spending.total().total();
        let mut text = format!("This session has cost **{}**.\n", money(total));
        if spending.models().next().is_some() {
            text.push_str("\n| model | calls | in | from cache | out | cost |\n| --- | ---: | ---: | ---: | ---: | ---: |\n");
        }
        for (model, spent) in spending.models() {
            let Usage { cache_read_tokens, output_tokens, .. } = spent.usage;
            let fresh = spent.usage.prompt_tokens().saturating_sub(cache_read_tokens);
            let _ = writeln!(
                text,
                "| {model} | {} | {} | {} | {} | {} |",
                spent.calls,
                grouped(fresh),
                grouped(cache_read_tokens),
                grouped(output_tokens),
                money(spent.cost.total())
            );
        }
        let models: Vec<_> = spending
            .models()
            .map(|(model, spent)| {
                json!({ "model": model, "calls": spent.calls, "usage": spent.usage, "costUsd": spent.cost.total() })
            })
            .collect();
        CommandReport::text(text).with(json!({ "totalCostUsd": total, "models": models }))
    }

    pub(super) async fn status(&self) -> CommandReport {
        let session = self.session;
        let (id, title, model, effort, style) = {
            let state = session.core().state();
            let style = state.config.output_style.clone();
            (
                state.id.to_string(),
                state.title.text.clone(),
                state.config.model.clone(),
                state.config.effort,
                style,
            )
        };
        let (in_force, waiting) = (session.gate().in_force(), self.waiting().await);
        let mode = in_force.mode(session.mode()).name();
        let models = session.models().now();
        let profile = models.profile(&model);
        let asked = profile.as_ref().map_or_else(|error| error.to_string(), |profile| profile.model.clone());
        let folders: Vec<_> = session.roots().iter().map(ToString::to_string).collect();
        let version = env!("CARGO_PKG_VERSION");
        let mut sandbox = match (&in_force.policy.sandbox, &in_force.profile) {
            (Some(_), None) => "on".to_owned(),
            (Some(_), Some(profile)) => format!("on, profile {profile}"),
            (None, _) => "off".to_owned(),
        };
        if let Some(launcher) = in_force.policy.sandbox.as_ref().and_then(|sandbox| sandbox.remote()) {
            let _ = write!(sandbox, ", {launcher}");
        }
        let effort = effort.map_or("as the profile says", kode_base::effort::Effort::name);
        let style = style.unwrap_or_else(|| session.instructions().current().style.name.clone());
        let text = format!(
            "- Session: `{id}` {title}\n- Version: kode-ls {version}\n- Model: {model} ({asked})\n- Effort: {effort}\n\
             - Output style: {style}\n- Mode: {mode}\n- Folders: {}\n- Sandbox for commands: {sandbox}\n\
             - Problems with settings: {}\n- Waiting for your approval: {}",
            code(&folders),
            in_force.problems.len(),
            waiting.len()
        );
        CommandReport::text(text).with(json!({
            "sessionId": id, "version": version, "model": model, "mode": mode, "folders": folders, "sandbox": sandbox,
        }))
    }

    pub(super) async fn doctor(&self) -> CommandReport {
        let session = self.session;
        let (in_force, instructions) = (session.gate().in_force(), session.instructions().current());
        let loaded = session.extensions().live().now().await;
        let mut bad: Vec<String> = Vec::new();
        let (models, model) = (session.models().now(), session.core().state().config.model.clone());
        if let Err(error) = models.profile(&model) {
            bad.push(format!("model: {error}"));
        }
        bad.extend(models.unusable().map(|one| format!("model profile `{}`: {}", one.name, one.error)));
        bad.extend(models.problems().iter().cloned());
        bad.extend(in_force.problems.iter().map(|problem| self.problem(problem)));
        bad.extend(instructions.memory.problems().iter().cloned());
        bad.extend(instructions.style_problem.clone());
        bad.extend(loaded.problems().iter().map(|problem| self.problem(problem)));
        let sandbox = match &in_force.policy.sandbox {
            Some(_) => "Commands run in the sandbox.".to_owned(),
            None => "Commands run without a sandbox.".to_owned(),
        };
        let mut text = match bad.len() {
            0 => "Nothing is wrong.\n".to_owned(),
            1 => "One thing is wrong:\n".to_owned(),
            many => format!("{many} things are wrong:\n"),
        };
        text.push('\n');
        text.push_str(&bullets(&bad));
        let waiting = self.waiting().await.len();
        if waiting > 0 {
            let _ = writeln!(text, "\n{waiting} wishes of files wait for your approval: `/trust`.");
        }
        let report = kode_config::extension::report::ExtensionReport::of(
            &loaded,
            &instructions.memory,
            &in_force.policy,
        );
        let _ = writeln!(text, "\n{sandbox} `kode-ls doctor` in a terminal checks the machine as well.\n");
        text.push_str(&report.to_text());
        CommandReport::text(text).with(json!({ "problems": bad, "waiting": waiting }))
    }

    pub(super) fn config(&self) -> CommandReport {
        let policy = std::sync::Arc::clone(&self.session.gate().in_force().policy);
        let preferences = &policy.preferences;
        let or = |text: &Option<String>, none: &str| text.clone().unwrap_or_else(|| none.to_owned());
        let effort = preferences.effort.map_or("as the profile says", kode_base::effort::Effort::name);
        let rows = [
            ("model", or(&preferences.model, "main")),
            ("effortLevel", effort.to_owned()),
            ("language", or(&preferences.language, "that of your message")),
            ("outputStyle", or(&preferences.output_style, "Default")),
            ("autoCompactEnabled", preferences.auto_compact.to_string()),
            ("autoCompactThreshold", preferences.compact_threshold.to_string()),
            ("maxTurns", preferences.max_turns.map_or("100".to_owned(), |turns| turns.to_string())),
            ("candidateAnswers", preferences.candidate_answers.to_string()),
            ("projectOverview", preferences.project_overview.to_string()),
            (
                "cleanupPeriodDays",
                preferences.cleanup_days.map_or("never".to_owned(), |days| days.to_string()),
            ),
        ];
        let mut text = "| setting | value |\n| --- | --- |\n".to_owned();
        for (name, value) in &rows {
            let _ = writeln!(text, "| {name} | {value} |");
        }
        let folders: Vec<_> = policy.additional.iter().map(ToString::to_string).collect();
        if !folders.is_empty() {
            let _ = writeln!(text, "\nAdditional folders: {}", code(&folders));
        }
        text.push_str(&self.problems(&policy.problems));
        let values: serde_json::Map<_, _> =
            rows.into_iter().map(|(name, value)| (name.to_owned(), Value::String(value))).collect();
        CommandReport::text(text).with(Value::Object(values))
    }

    pub(super) fn agents(&self) -> CommandReport {
        let types = self.session.extensions().agent_types();
        let mut text = String::new();
        for one in types.iter() {
            let from = one.file.as_ref().map_or("built in".to_owned(), |file| self.path(file));
            let _ = writeln!(text, "- **{}**: {} ({from})", one.name, short(&one.listed()));
        }
        text.push_str(&self.problems(&types.problems));
        let names: Vec<_> = types.iter().map(|one| one.name.clone()).collect();
        CommandReport::text(text).with(json!({ "agents": names }))
    }

    pub(super) fn skills(&self) -> CommandReport {
        let catalog = self.session.extensions().catalog();
        let mut text = String::new();
        for (kind, heading) in [(ExtensionKind::Skill, "Skills"), (ExtensionKind::Command, "Commands")] {
            let of_kind: Vec<_> = catalog.all().filter(|one| one.kind == kind).collect();
            if of_kind.is_empty() {
                continue;
            }
            let _ = writeln!(text, "**{heading}**\n");
            for one in of_kind {
                let who = match (one.user_may_call, one.model_may_call) {
                    (true, true) => "",
                    (true, false) => ", only by you",
                    (false, true) => ", only by the model",
                    (false, false) => ", not callable",
                };
                let from = format!("{}, {}{who}", one.scope.name(), self.path(&one.path));
                let _ = writeln!(text, "- `{}`: {} ({from})", one.name, short(&one.listing));
            }
            text.push('\n');
        }
        for one in &catalog.shadowed {
            let _ = writeln!(text, "- Hidden by {}: {}", self.path(&one.by), self.path(&one.extension.path));
        }
        for (file, reason) in &catalog.problems {
            let _ = writeln!(text, "- Left out: {}: {reason}", file.display());
        }
        if text.is_empty() {
            text.push_str(
                "There are no skills and no commands of files. A skill is `.claude/skills/NAME/SKILL.md`, a command \
                 `.claude/commands/NAME.md`, here or in your home folder.",
            );
        }
        let names: Vec<_> = catalog.all().map(|one| one.name.clone()).collect();
        CommandReport::text(text.trim_end()).with(json!({ "names": names }))
    }

    pub(super) fn memory(&self) -> CommandReport {
        let instructions = self.session.instructions().current();
        let loaded = instructions.memory.loaded();
        let mut text = String::new();
        for one in loaded {
            let fate = match &one.fate {
                InstructionFate::Given => format!("{} bytes", one.bytes),
                InstructionFate::Cut => format!("the first {} bytes", one.bytes),
                InstructionFate::LeftOut(reason) => format!("left out: {reason}"),
            };
            let _ = writeln!(text, "- {}: {fate}", self.path(&one.path));
        }
        if loaded.is_empty() {
            text.push_str("The model is given no instruction files. `/init` writes one, and so does a note: `# use tabs`.\n");
        }
        text.push_str(&bullets(instructions.memory.problems()));
        let files: Vec<_> = loaded.iter().map(|one| one.path.to_string()).collect();
        CommandReport::text(text.trim_end()).with(json!({ "files": files }))
    }

    pub(super) fn todos(&self) -> CommandReport {
        let todos = self.session.todos();
        CommandReport::text(format!("```text\n{}\n```", todo::render(&todos))).with(json!({ "todos": todos }))
    }

    pub(super) fn tasks(&self) -> CommandReport {
        let tasks = self.session.tasks().list();
        let mut text = String::new();
        for task in &tasks {
            let how = task.ended.as_ref().map_or("runs".to_owned(), |(_, end)| end.to_string());
            let _ = writeln!(text, "- `{}` `{}`: {how}", task.id, task.title);
        }
        if tasks.is_empty() {
            text.push_str("No command runs in the background, and none has.");
        }
        let ids: Vec<_> =
            tasks.iter().map(|task| json!({ "id": task.id, "runs": task.ended.is_none() })).collect();
        CommandReport::text(text.trim_end()).with(json!({ "tasks": ids }))
    }

    pub(super) async fn hooks(&self) -> CommandReport {
        let HookList { is_disabled, hooks, problems: _ } = self.session.hooks().list().await;
        let mut text = String::new();
        for hook in &hooks {
            let matcher = hook.matcher.as_ref().map(|matcher| format!(" `{matcher}`")).unwrap_or_default();
            let waits = match &hook.approval {
                Approval::Waiting(_) => "; waits for your approval: `/trust`",
                Approval::NotNeeded | Approval::Approved => "",
            };
            let bad = hook.problem.as_ref().map(|problem| format!("; {problem}")).unwrap_or_default();
            let when = hook.owner.as_ref().map(|of| match of.kind {
                HookOwnerKind::Agent => format!("; while the agent `{}` works", of.name),
                HookOwnerKind::Skill | HookOwnerKind::Command => {
                    format!("; once the {} `{}` was used", of.kind.name(), of.name)
                }
            });
            let (event, head, source) = (&hook.event, &hook.head, &hook.source);
            let when = when.unwrap_or_default();
            let _ = writeln!(text, "- **{event}**{matcher}: `{head}` ({source}{when}{waits}{bad})");
        }
        if hooks.is_empty() {
            text.push_str("Neither the settings nor the files of agents and skills declare hooks.");
        }
        if is_disabled {
            text.push_str("\n\nAll of them are switched off by `disableAllHooks`.");
        }
        let events: Vec<_> = hooks.iter().map(|hook| &hook.event).collect();
        CommandReport::text(text.trim_end()).with(json!({ "hooks": events }))
    }

    pub(super) async fn mcp(&self) -> CommandReport {
        let servers = self.session.servers();
        if let Some(server) = mcp_login(self.arguments) {
            return self.login(server).await;
        }
        if let Some(server) = self.arguments.strip_prefix("tools") {
            let server = Some(server.trim()).filter(|server| !server.is_empty());
            let tools = servers.tool_list(server);
            let line = |tool: &ToolInfo| format!("- `{}`: {}\n", tool.name, short(&tool.description));
            let text: String = match tools.as_slice() {
                [] => {
                    "No tools: no MCP server is connected that has any. `/mcp` says how they are.".to_owned()
                }
                tools => tools.iter().map(line).collect(),
            };
            let names: Vec<_> = tools.iter().map(|tool| &tool.name).collect();
            return CommandReport::text(text.trim_end()).with(json!({ "tools": names }));
        }
        let servers = servers.list();
        let mut text = String::new();
        for server in &servers {
            let state = match server.state {
                ServerState::Disabled => "switched off",
                ServerState::WaitingForApproval => "waits for your approval: `/trust`",
                ServerState::Stopped => "starts with the next prompt",
                ServerState::Starting => "starting",
                ServerState::Connected => "connected",
                ServerState::NeedsAuth => "you have to sign in: `/mcp login` with its name",
                ServerState::Failed => "failed",
            };
            let (name, kind, target, source) = (&server.name, server.kind, &server.target, &server.source);
            let _ = write!(text, "- **{name}** {state}: {kind} `{target}` ({source})");
            if server.state == ServerState::Connected {
                let (tools, prompts, resources) = (server.tools, server.prompts, server.resources);
                let _ = write!(text, "; {tools} tools, {prompts} prompts, {resources} resources");
            }
            if let Some(failure) = &server.failure {
                let _ = write!(text, "; {failure}");
            }
            text.push('\n');
        }
        if servers.is_empty() {
            text.push_str("No MCP servers are declared in the settings or in `.mcp.json`.");
        }
        let names: Vec<_> = servers.iter().map(|server| &server.name).collect();
        CommandReport::text(text.trim_end()).with(json!({ "servers": names }))
    }

    /// A list of the problems with settings; empty without any.
    pub(super) fn problems(&self, problems: &[SettingsProblem]) -> String {
        let lines = problems.iter().map(|problem| format!("\n- {}", self.problem(problem)));
        let lines: String = lines.collect();
        if lines.is_empty() { lines } else { format!("\n**Problems**\n{lines}\n") }
    }

    fn problem(&self, problem: &SettingsProblem) -> String {
        match &problem.file {
            Some(file) => format!("{}: {}", self.path(file), problem.message),
            None => problem.message.clone(),
        }
    }

    /// A path for people.
    pub(super) fn path(&self, path: &kode_base::paths::AbsPath) -> String {
        self.session.display(&kode_base::paths::Target::File(path.clone()))
    }

    /// The pointers to a profile.
    pub(super) fn pointers_to(&self, name: &str) -> Vec<&'static str> {
        let others = [Pointer::Task, Pointer::Compact, Pointer::Quick];
        others
            .into_iter()
            .filter(|pointer| self.session.models().pointer(*pointer) == name)
            .map(Pointer::name)
            .collect()
    }
}

fn shown(built_in: &BuiltInCommand) -> String {
    format!("`{}`", format!("/{} {}", built_in.name, built_in.argument_hint).trim_end())
}

pub(super) fn code(texts: &[String]) -> String {
    texts.iter().map(|text| format!("`{text}`")).collect::<Vec<_>>().join(", ")
}

/// A list, each line ended.
pub(super) fn bullets(texts: &[String]) -> String {
    texts.iter().map(|text| format!("- {text}\n")).collect()
}

fn short(text: &str) -> String {
    match text.char_indices().nth(MAX_SHOWN) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

/// A number with its thousands apart.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}
