//! `kode-ls doctor`: what keeps commands in check on this machine, what the settings make of it, which instructions
//! and extensions are found, and the missing parts.
//!
//! Rule: everything it says was tried just now; nothing is changed, and no server is asked but with `--online`.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context;
use clap::Args;
use kode_engine::base::command_shell::CommandShell;
use kode_engine::base::paths::AbsPath;
use kode_engine::base::secret_places as secrets;
use kode_engine::config::extension::live::LoadedExtensions;
use kode_engine::config::extension::places::ExtensionFolders;
use kode_engine::config::extension::report::ExtensionReport;
use kode_engine::config::ignore_files::report::IgnoreReport;
use kode_engine::config::memory;
use kode_engine::config::memory::{InstructionFate, Memory};
use kode_engine::config::policy::{Policy, PolicySource};
use kode_engine::config::settings::{Settings, StatementStanding};
use kode_engine::journal::shared_locks::unshared_locks;
use kode_engine::permission::gate::Confinement;
use kode_engine::permission::rules::ProblemSeverity;
use kode_engine::process::programs::{self, on_path};
use kode_engine::process::sandbox::{SandboxKind, SandboxSupport, detect};
use serde_json::{Value, json};

use crate::cli::{models, sessions, terminal, working_directory};
use crate::convert::agents;
use crate::display::printable;
use crate::home;
use crate::policies::{self, WebSearchStatus};
use crate::telemetry;

/// Programs that the agent uses where they are there.
const TOOLS: [&str; 2] = ["sh", "git"];

/// The arguments of `kode-ls doctor`.
#[derive(Debug, Args)]
pub struct DoctorArgs {
    /// One JSON object
    #[arg(long)]
    json: bool,

    /// Send the model a short request, to check key, name and address
    #[arg(long)]
    online: bool,

    /// The workspace folder instead of the current one
    #[arg(long, value_name = "FOLDER")]
    cwd: Option<PathBuf>,
}

/// Prints the findings. The exit code is 1 without a usable model, and with `--online` without an answer.
///
/// # Errors
/// When it cannot be written.
pub async fn run(args: DoctorArgs) -> anyhow::Result<ExitCode> {
    let folder = working_directory(args.cwd.as_ref())?;
    let mut findings = findings(detect(), &folder)?;
    let mut works = findings["models"]["problem"].is_null();
    if args.online && works {
        let answer = models::ask_main(&folder).await?;
        works = answer.is_ok();
        findings["models"]["answers"] = json!(works);
        findings["models"]["online"] = json!(answer.unwrap_or_else(|problem| problem));
    }
    let text = if args.json { format!("{findings:#}\n") } else { text(&findings) };
    terminal::output(&text).context("could not write")?;
    Ok(if works { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn findings(support: &SandboxSupport, folder: &AbsPath) -> anyhow::Result<Value> {
    let best = support.best();
    let is_full = best.as_ref().is_ok_and(|kind| *kind != SandboxKind::Landlock);
    let has_namespaces = best.as_ref().is_ok_and(|kind| matches!(kind, SandboxKind::Bubblewrap { .. }));
    let bubblewrap = match &support.bubblewrap {
        Ok(found) => json!({ "path": found.program, "version": found.version }),
        Err(reason) => json!({ "missing": reason }),
    };
    let home = etcetera::home_dir().ok().and_then(|home| AbsPath::new(home).ok());
    let hidden = secrets::places(home.as_ref(), &home::folder()?);
    let hidden: Vec<_> = hidden.into_iter().filter(|place| place.as_path().exists()).collect();
    let tools = TOOLS
        .map(|tool| {
            (tool.to_owned(), json!(on_path(tool.as_ref()).map(|path| path.to_string_lossy().into_owned())))
        })
        .into_iter();
    let shells = CommandShell::ALL.map(|shell| {
        let program = programs::shell(shell).map(|path| path.to_string_lossy().into_owned());
        (shell.tool().to_owned(), json!(program))
    });
    Ok(json!({
        "version": env!("CARGO_PKG_VERSION"),
        "models": models(folder)?,
        "sandbox": {
            "kind": best.as_ref().map_or("none", |kind| kind.name()),
            "why": match &best {
                Ok(_) if is_full => Value::Null,
                Ok(_) => json!(support.bubblewrap.as_ref().err()),
                Err(reason) => json!(reason),
            },
            "bubblewrap": bubblewrap,
            "landlock": support.landlock,
            "seccomp": support.seccomp,
            "seatbelt": support.seatbelt.as_ref().map(|tried| match tried {
                Ok(()) => json!("works"),
                Err(reason) => json!({ "missing": reason }),
            }),
            "namespaces": if has_namespaces { json!(["user", "mount", "pid", "net", "ipc", "uts"]) } else { json!([]) },
            "network": if is_full { "off, but for hosts that are listed" } else { "off" },
            "guarded": match &best {
                Ok(_) if is_full => "cannot be changed",
                Ok(_) => "put back after each command",
                Err(_) => "not guarded",
            },
            "hidden": hidden,
        },
        "settings": settings(folder)?,
        "ignoreFiles": ignore_files(folder)?,
        "instructions": instructions(folder)?,
        "extensions": extensions(folder)?,
        "webSearch": web_search()?,
        "telemetry": telemetry()?,
        "sessions": stored_sessions()?,
        "shells": serde_json::Map::from_iter(shells),
        "tools": tools.collect::<serde_json::Map<_, _>>(),
    }))
}

/// How much is stored, and whether hosts that share the folder would write over each other's sessions.
fn stored_sessions() -> anyhow::Result<Value> {
    let mut stored = sessions::totals()?;
    if let Some(reason) = unshared_locks(home::folder()?.as_path()) {
        stored["unsharedLocks"] = json!(reason);
    }
    Ok(stored)
}

/// The settings files of a folder, and their effect on the sandbox.
fn settings(folder: &AbsPath) -> anyhow::Result<Value> {
    let source = policies::of(folder)?;
    let (settings, policy) = (source.settings(), source.current());
    let problems = policy.problems.iter().map(|problem| {
        json!({
            "severe": problem.severity == ProblemSeverity::Error,
            "message": problem.message,
            "file": problem.file,
            "line": problem.place.map(|place| place.line + 1),
        })
    });
    let withheld = policy.withheld.iter().map(|withheld| {
        json!({ "key": withheld.trust_request.key, "value": withheld.trust_request.shown(), "file": withheld.trust_request.file })
    });
    Ok(json!({
        "files": settings.files,
        "loaded": loaded(&settings),
        "rules": policy.rules.len(),
        "problems": problems.collect::<Vec<_>>(),
        "withheld": withheld.collect::<Vec<_>>(),
        "commands": commands(&policy.confinement),
    }))
}

/// The loaded parts of each file.
fn loaded(settings: &Settings) -> Vec<Value> {
    let of_file = |file: &AbsPath| {
        let stated = settings.statements.iter().filter(|stated| stated.source.file.as_ref() == Some(file));
        let stated: Vec<_> = stated.collect();
        let count = |standing| stated.iter().filter(|one| one.standing == standing).count();
        json!({
            "file": file,
            "layer": stated.first().map_or("nothing stated", |one| one.source.layer.name()),
            "inForce": count(StatementStanding::InForce),
            "waiting": count(StatementStanding::Waiting),
            "ignored": count(StatementStanding::Ignored),
        })
    };
    settings.files.iter().map(of_file).collect()
}

/// The state of commands by the settings, in a sentence.
fn commands(confinement: &Confinement) -> String {
    match confinement {
        Confinement::Off => "run outside a sandbox: `sandbox.enabled` is false".to_owned(),
        Confinement::Missing(why) => format!("run outside a sandbox: {why}"),
        Confinement::Sandbox { runs_unasked, may_leave, excluded } => {
            let asked = if *runs_unasked { "unasked" } else { "and are asked for as the rules say" };
            let leave = if *may_leave { "may be asked for" } else { "are refused" };
            let always = match excluded.len() {
                0 => String::new(),
                count => format!("; {count} excluded by `sandbox.excludedCommands`"),
            };
            format!("run in the sandbox {asked}; runs outside of it {leave}{always}")
        }
    }
}

/// The files such as `.aiignore` that count in a folder, and what they keep from the agent.
fn ignore_files(folder: &AbsPath) -> anyhow::Result<Value> {
    let disabled = policies::of(folder)?.current().preferences.disabled_ignore_files.clone();
    let report = IgnoreReport::of(folder, &disabled);
    let files = report.files.iter().map(|found| {
        let faults = found.faults.iter();
        let faults =
            faults.map(|fault| json!({ "line": fault.line, "text": fault.text, "message": fault.message }));
        json!({
            "file": found.file,
            "patterns": found.patterns,
            "paths": found.paths,
            "problem": found.problem,
            "faults": faults.collect::<Vec<_>>(),
        })
    });
    Ok(json!({ "files": files.collect::<Vec<_>>(), "complete": report.is_complete, "disabled": disabled }))
}

/// The report about ignore files.
fn ignore_files_text(report: &Value) -> Vec<String> {
    let said = |value: &Value| printable(value.as_str().unwrap_or_default());
    let files = report["files"].as_array().cloned().unwrap_or_default();
    let state = if files.is_empty() { "no files" } else { "" };
    let mut lines = vec![format!("{:<18}{state}", "ignore files").trim_end().to_owned()];
    for file in &files {
        let name = said(&file["file"]);
        lines.push(match file["problem"].as_str() {
            Some(problem) => {
                format!(
                    "  ! {name}: cannot be read, so all of its folder is kept from the agent: {}",
                    printable(problem)
                )
            }
            None => format!(
                "  {name} ({} patterns, {} paths kept from the agent)",
                file["patterns"], file["paths"]
            ),
        });
        let faults = file["faults"].as_array().into_iter().flatten();
        lines.extend(faults.map(|fault| {
            format!(
                "  ! {name}:{}: `{}` matches nothing: {}",
                fault["line"],
                said(&fault["text"]),
                said(&fault["message"])
            )
        }));
    }
    for name in report["disabled"].as_array().into_iter().flatten() {
        lines.push(format!("  {} is off by `disabledIgnoreFiles`", said(name)));
    }
    if report["complete"] == false {
        lines.push("  the folder is too large to be searched in full".to_owned());
    }
    lines.push(String::new());
    lines
}

/// The instruction files that are found from a folder, and what becomes of each.
fn instructions(folder: &AbsPath) -> anyhow::Result<Value> {
    let excludes = policies::of(folder)?.current().preferences.memory_excludes.clone();
    let places = memory::InstructionFolders::usual(folder.clone(), vec![folder.clone()], excludes);
    let memory = Memory::load(&places, &|_| Ok(()));
    let files = memory.loaded().iter().map(|loaded| {
        let fate = match &loaded.fate {
            InstructionFate::Given => "given".to_owned(),
            InstructionFate::Cut => "cut".to_owned(),
            InstructionFate::LeftOut(reason) => format!("left out: {reason}"),
        };
        json!({ "file": loaded.path, "bytes": loaded.bytes, "fate": fate })
    });
    Ok(json!(files.collect::<Vec<_>>()))
}

/// The users' files seen from a folder, and the state of each.
fn extensions(folder: &AbsPath) -> anyhow::Result<Value> {
    // The problems of settings, and instruction files, stand elsewhere.
    let policy = Policy { problems: Vec::new(), ..Policy::clone(&*policies::of(folder)?.current()) };
    let plugins = policy.declared.plugins_in_use().cloned().collect();
    let loaded =
        LoadedExtensions::read(&ExtensionFolders::usual(vec![folder.clone()]).with_plugins(plugins), &|_| {
            true
        });
    let report = ExtensionReport::of(&loaded, &Memory::default(), &policy);
    Ok(serde_json::to_value(agents::report(&report))?)
}

/// Which models there are, and which cannot be used.
fn models(folder: &AbsPath) -> anyhow::Result<Value> {
    let listed = models::listed(Some(folder))?;
    let usable: Vec<_> =
        listed.models.iter().filter(|info| info.problem.is_none()).map(|info| &info.name).collect();
    let main = listed.models.iter().find(|info| info.name == listed.pointers.main);
    Ok(json!({
        "main": listed.pointers.main,
        "model": main.map(|info| &info.model),
        "problem": models::problem_of_main(Some(folder))?,
        "usable": usable,
        "problems": models::unusable(&listed),
    }))
}

/// The report about the models, first of all of the one that new sessions have.
fn models_text(models: &Value) -> Vec<String> {
    let said = |value: &Value| printable(value.as_str().unwrap_or_default());
    let main = match models["problem"].as_str() {
        Some(problem) => format!("none: {}", printable(problem)),
        None => format!("{} ({})", said(&models["model"]), said(&models["main"])),
    };
    let mut lines = vec![format!("{:<18}{main}", "model")];
    match models["online"].as_str() {
        Some(answer) => lines.push(format!("  {:<16}{}", "asked", printable(answer))),
        None if models["problem"].is_null() => {
            lines.push(format!("  {:<16}not tried; `kode-ls doctor --online` asks it", "asked"));
        }
        None => {}
    }
    let usable: Vec<_> = models["usable"].as_array().into_iter().flatten().map(said).collect();
    lines.push(format!(
        "  {:<16}{}",
        "profiles",
        if usable.is_empty() { "none".to_owned() } else { usable.join(", ") }
    ));
    let problems = models["problems"].as_array().into_iter().flatten();
    lines.extend(problems.map(|problem| format!("  {}", said(problem))));
    lines.push(String::new());
    lines
}

fn web_search() -> anyhow::Result<Value> {
    Ok(match policies::equipment(&policies::all()?).search {
        WebSearchStatus::On(service) => json!({ "on": true, "service": service }),
        WebSearchStatus::Off => json!({ "on": false, "how": policies::how_to_search() }),
        broken @ WebSearchStatus::Broken(_) => json!({ "on": false, "problem": broken.problem() }),
    })
}

/// Where sessions are exported to; no header is among it.
fn telemetry() -> anyhow::Result<Value> {
    Ok(match telemetry::options(&policies::all()?) {
        Ok(None) => json!({ "on": false }),
        Ok(Some(options)) => {
            json!({ "on": true, "addresses": options.addresses(), "content": options.exports_content() })
        }
        Err(error) => json!({ "on": false, "problem": error.to_string() }),
    })
}

/// The report about the export of sessions.
fn telemetry_text(telemetry: &Value) -> String {
    let addresses = telemetry["addresses"].as_array().into_iter().flatten().filter_map(Value::as_str);
    let content = if telemetry["content"] == true { "with content" } else { "without content" };
    let state = match (telemetry["on"] == true, telemetry["problem"].as_str()) {
        (true, _) => format!("to {}, {content}", addresses.collect::<Vec<_>>().join(" and ")),
        (false, Some(problem)) => format!("off: {problem}"),
        (false, None) => "off".to_owned(),
    };
    format!("{:<18}{}", "telemetry", printable(&state))
}

fn text(findings: &Value) -> String {
    let sandbox = &findings["sandbox"];
    let said = |value: &Value| match value {
        Value::Null => "none".to_owned(),
        Value::String(text) => printable(text),
        Value::Array(values) if values.is_empty() => "none".to_owned(),
        Value::Array(values) => values.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(", "),
        other => other.to_string(),
    };
    let mut lines = vec![format!("kode-ls {}", said(&findings["version"])), String::new()];
    lines.extend(models_text(&findings["models"]));
    let mut line = |name: &str, value: String| lines.push(format!("{name:<18}{value}"));
    line("sandbox", said(&sandbox["kind"]));
    if !sandbox["why"].is_null() {
        line("  not better", said(&sandbox["why"]));
    }
    let of_linux = ["landlock", "seccomp", "namespaces"];
    match (&sandbox["seatbelt"], &sandbox["bubblewrap"]["path"]) {
        (Value::Null, Value::String(path)) => {
            line("  bubblewrap", format!("{path} {}", said(&sandbox["bubblewrap"]["version"])));
        }
        (Value::Null, _) => line("  bubblewrap", said(&sandbox["bubblewrap"]["missing"])),
        (Value::String(works), _) => line("  seatbelt", printable(works)),
        (seatbelt, _) => line("  seatbelt", said(&seatbelt["missing"])),
    }
    let of_linux = of_linux.into_iter().filter(|_| sandbox["seatbelt"].is_null());
    for name in of_linux.chain(["network", "guarded", "hidden"]) {
        let label = if name == "guarded" { "guarded files" } else { name };
        line(&format!("  {label}"), said(&sandbox[name]));
    }
    lines.push(String::new());
    lines.extend(settings_text(&findings["settings"]));
    lines.extend(ignore_files_text(&findings["ignoreFiles"]));
    let files = findings["instructions"].as_array().cloned().unwrap_or_default();
    lines.push(
        format!("{:<18}{}", "instructions", if files.is_empty() { "no files" } else { "" })
            .trim_end()
            .to_owned(),
    );
    lines.extend(files.iter().map(|file| format!("  {} ({})", said(&file["file"]), said(&file["fate"]))));
    lines.push(String::new());
    lines.extend(extensions_text(&findings["extensions"]));
    lines.push(String::new());
    let search = &findings["webSearch"];
    let searching = ["service", "problem", "how"].iter().find_map(|name| search[name].as_str());
    let state = if search["on"] == true { "on: " } else { "" };
    lines.push(format!("{:<18}{state}{}", "web search", printable(searching.unwrap_or_default())));
    lines.push(telemetry_text(&findings["telemetry"]));
    lines.push(String::new());
    let stored = &findings["sessions"];
    let room = sessions::bytes(stored["bytes"].as_u64().unwrap_or_default());
    lines.push(format!(
        "{:<18}{} stored, {room}; `kode-ls sessions` lists them",
        "sessions", stored["sessions"]
    ));
    if let Some(reason) = stored["unsharedLocks"].as_str() {
        lines.push(format!(
            "{:<18}the folder of the sessions is on a file system without common locks ({reason}): two hosts that \
             use it write over each other's sessions. Set KODE_LS_HOME to a folder on a local disk of each host",
            ""
        ));
    }
    lines.push(String::new());
    let shells = findings["shells"].as_object().into_iter().flatten();
    let tools = findings["tools"].as_object().into_iter().flatten();
    lines.extend(shells.chain(tools).map(|(tool, path)| match path.as_str() {
        Some(path) => format!("{tool:<18}{}", printable(path)),
        None => format!("{tool:<18}not found"),
    }));
    lines.join("\n") + "\n"
}

/// The report about users' files: the used ones of each kind in a line, each other one in a line of its own.
fn extensions_text(report: &Value) -> Vec<String> {
    let said = |value: &Value| printable(value.as_str().unwrap_or_default());
    let of_kind = |kind: &'static str| {
        let findings = report["findings"].as_array().into_iter().flatten();
        findings.filter(move |finding| finding["kind"] == kind)
    };
    let mut lines = Vec::new();
    for (label, kind) in [
        ("sub-agents", "agent"),
        ("skills", "skill"),
        ("commands", "command"),
        ("output styles", "style"),
        ("plugins", "plugin"),
        ("hooks", "hook"),
        ("MCP servers", "server"),
    ] {
        let used = of_kind(kind).filter(|finding| finding["fate"] == "loaded");
        let used: Vec<_> = used.map(|finding| said(&finding["name"])).collect();
        let used = if used.is_empty() { "none".to_owned() } else { used.join(", ") };
        lines.push(format!("{label:<18}{used}"));
        lines.extend(of_kind(kind).filter_map(|finding| {
            let (name, file) = (said(&finding["name"]), said(&finding["file"]));
            let by = finding["by"].as_str().map_or("the built-in one".to_owned(), printable);
            match finding["fate"].as_str()? {
                "shadowed" => Some(format!("  {name} ({}) is hidden by {by}", said(&finding["source"]))),
                "waiting" => Some(format!("  {name} of {file} waits for your approval")),
                _ => None,
            }
        }));
    }
    let problems = report["problems"].as_array().into_iter().flatten();
    lines.extend(problems.map(|problem| {
        let line = problem["line"].as_u64().map(|line| format!(":{line}")).unwrap_or_default();
        format!("  ! {}{line}: {}", said(&problem["file"]), said(&problem["message"]))
    }));
    lines
}

fn settings_text(settings: &Value) -> Vec<String> {
    let list = |name: &str| settings[name].as_array().cloned().unwrap_or_default();
    let said = |value: &Value| printable(value.as_str().unwrap_or_default());
    let files = list("files");
    let mut lines = vec![format!("{:<18}{}", "settings", if files.is_empty() { "no files" } else { "" })];
    lines.extend(list("loaded").iter().map(|file| {
        let (path, layer) = (said(&file["file"]), said(&file["layer"]));
        format!(
            "  {path} ({layer}: {} in force, {} waiting, {} ignored)",
            file["inForce"], file["waiting"], file["ignored"]
        )
    }));
    lines.push(format!("  {:<16}{}", "rules", settings["rules"]));
    lines.push(format!("  {:<16}{}", "commands", said(&settings["commands"])));
    lines.extend(list("problems").iter().map(|problem| {
        let place = match (problem["file"].as_str(), problem["line"].as_u64()) {
            (Some(file), Some(line)) => format!("{}:{line}: ", printable(file)),
            (Some(file), None) => format!("{}: ", printable(file)),
            (None, _) => String::new(),
        };
        let mark = if problem["severe"] == true { "error" } else { "!" };
        format!("  {mark} {place}{}", said(&problem["message"]))
    }));
    lines.extend(list("withheld").iter().map(|trust_request| {
        let (key, value, file) =
            (said(&trust_request["key"]), said(&trust_request["value"]), said(&trust_request["file"]));
        format!("  waits for `kode-ls trust approve {file}`: {key} {value}")
    }));
    lines.push(String::new());
    lines.iter().map(|line| line.trim_end().to_owned()).collect()
}
