//! `kode-ls models`: the model profiles, the reason why a profile cannot be used, and the model servers of this machine.
//!
//! Rule: the usual ports of this machine are the only servers that are asked, beside the address of a published catalog that
//! the user has named. No helper runs, and no key is shown.

use std::collections::BTreeMap;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::Context;
use clap::Args;
use kode_engine::base::paths::AbsPath;
use kode_engine::config::policies::PolicyProvider;
use kode_engine::config::policy::SessionDefaults;
use kode_engine::model::models::{Models, Pointer, ProfileLayer};
use kode_engine::model::{Block, Message, ModelError, ModelRequest};
use kode_engine::providers::discovery::Discovery;
use kode_protocol::{ListModelsResult, ModelInfo, ModelPointers, ModelPrices, ModelServer, ServedModel};

use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use crate::cli::{FolderArgs, terminal};
use crate::convert;
use crate::display::printable;
use crate::policies;

/// The most models that are listed for one server.
const MAX_SERVED: usize = 50;

/// The prompt that checks whether a model answers.
const QUESTION: &str = "Answer with the word OK.";

/// The most tokens of its answer: some models reason before they answer.
const ANSWER_TOKENS: u32 = 256;

/// The longest wait for its answer.
const ANSWER_LIMIT: Duration = Duration::from_secs(60);

/// The arguments of `kode-ls models`.
#[derive(Debug, Args)]
pub struct ModelsArgs {
    #[command(flatten)]
    at: FolderArgs,
}

/// Lists the models. The exit code says whether the main one can be used.
///
/// # Errors
/// When there is no place for the user's state, or the list cannot be written.
pub async fn run(args: ModelsArgs) -> anyhow::Result<ExitCode> {
    let folder = args.at.folder()?;
    let settings = policies::all()?;
    let discovery = Discovery::shared();
    let (refreshed, servers) = tokio::join!(policies::refresh_catalog(&settings), discovery.local(false));
    if let Err(error) = refreshed {
        terminal::error_line(&format!(
            "! The published catalog was not updated: {}",
            printable(&format!("{error:#}"))
        ));
    }
    let listed = listed(Some(&folder))?;
    let (models, ..) = in_folder(Some(&folder))?;
    let servers: Vec<ModelServer> =
        servers.iter().map(|server| convert::models::server(server, &models)).collect();
    let text = if args.at.json {
        let mut listed = serde_json::to_value(&listed).context("could not write the list")?;
        listed["servers"] = serde_json::to_value(&servers).context("could not write the list")?;
        serde_json::to_string_pretty(&listed).context("could not write the list")? + "\n"
    } else {
        table(&listed) + &running(&servers)
    };
    terminal::output(&text).context("could not write")?;
    let works = problem_of_main(Some(&folder))?.is_none();
    Ok(if works { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// The models as the settings, of a folder too where one is given, and the environment of this process have them.
///
/// # Errors
/// When there is no place for the user's state.
pub(super) fn listed(folder: Option<&AbsPath>) -> anyhow::Result<ListModelsResult> {
    let (models, pointers, main) = in_folder(folder)?;
    let mut listed = convert::models::list(&models, &main);
    listed.pointers = ModelPointers {
        task: models.pointer_with(Pointer::Task, &pointers),
        compact: models.pointer_with(Pointer::Compact, &pointers),
        quick: models.pointer_with(Pointer::Quick, &pointers),
        main,
    };
    Ok(listed)
}

/// Why new sessions have no model that can be used, and what to do; `None` when they have one.
///
/// # Errors
/// As [`listed`].
pub(super) fn problem_of_main(folder: Option<&AbsPath>) -> anyhow::Result<Option<String>> {
    let (models, _, main) = in_folder(folder)?;
    let problem = models.profile(&main).err();
    Ok(problem.map(|error| printable(&format!("{} {}", error.message, error.hint()))))
}

/// Asks the model of new sessions a question of a few tokens: what it says of itself and how long it took, or why it does not
/// answer.
///
/// # Errors
/// As [`listed`].
pub(super) async fn ask_main(folder: &AbsPath) -> anyhow::Result<Result<String, String>> {
    let (models, _, main) = in_folder(Some(folder))?;
    let request = ModelRequest {
        messages: vec![Message::user(vec![Block::Text { text: QUESTION.to_owned() }])].into(),
        max_tokens: ANSWER_TOKENS,
        ..ModelRequest::default()
    };
    let began = Instant::now();
    let cancel = CancellationToken::new();
    let asked = async {
        let model = models.connect(&main).await?;
        model.complete(&request, &cancel).await.map(|_| model.name().to_owned())
    };
    let reported = |error: ModelError| printable(&format!("{} {}", error.message, error.hint()));
    Ok(match timeout(ANSWER_LIMIT, asked).await {
        Ok(answered) => answered
            .map(|name| format!("{} answered in {} ms", printable(&name), began.elapsed().as_millis()))
            .map_err(reported),
        Err(_) => Err(format!("no answer within {} s", ANSWER_LIMIT.as_secs())),
    })
}

/// The models, the pointers of a folder, and the profile of its new sessions.
pub(super) fn in_folder(
    folder: Option<&AbsPath>,
) -> anyhow::Result<(Models, BTreeMap<Pointer, String>, String)> {
    let policies = policies::all()?;
    let models = policies::models(&policies, ProfileLayer::default());
    let roots: Vec<AbsPath> = folder.into_iter().cloned().collect();
    let SessionDefaults { model, pointers, .. } = policies.beginning(&roots);
    let named = model.and_then(|name| models.resolve_with(&name, &pointers).ok());
    let main = named.unwrap_or_else(|| models.pointer_with(Pointer::Main, &pointers));
    Ok((models, pointers, main))
}

/// The model servers of this machine that answered, a line for each model.
fn running(servers: &[ModelServer]) -> String {
    let mut text = String::new();
    for server in servers {
        text += &format!("\n{} answers at {}:\n", printable(&server.label), printable(&server.base_url));
        if server.models.is_empty() {
            text += "  no models\n";
        }
        for model in server.models.iter().take(MAX_SERVED) {
            text += &format!("  {}{}\n", printable(&model.name), abilities(model));
        }
        if let Some(more) = server.models.len().checked_sub(MAX_SERVED).filter(|more| *more > 0) {
            text += &format!("  and {more} more\n");
        }
    }
    if !servers.is_empty() {
        text += "`kode-ls setup` makes a profile of one.\n";
    }
    text
}

/// A server's data about a model, in words.
fn abilities(model: &ServedModel) -> String {
    let window = model.context_window.map(|tokens| format!("window {tokens}"));
    let says =
        |is: Option<bool>, yes: &str, no: &str| is.map(|is| if is { yes.to_owned() } else { no.to_owned() });
    let reported = [
        window,
        says(model.tools, "tools", "no tools"),
        says(model.images, "pictures", "no pictures").filter(|_| model.images == Some(true)),
        says(model.thinking, "thinking", "").filter(|_| model.thinking == Some(true)),
        says(model.loaded, "loaded", "").filter(|_| model.loaded == Some(true)),
    ];
    let reported: Vec<String> = reported.into_iter().flatten().collect();
    if reported.is_empty() { String::new() } else { format!(" ({})", reported.join(", ")) }
}

fn table(listed: &ListModelsResult) -> String {
    let head = ["PROFILE", "MODEL", "SERVER", "FORMAT", "WINDOW", "ANSWER", "USD/M IN", "USD/M OUT", "FROM"];
    let mut rows = vec![head.map(str::to_owned)];
    rows.extend(listed.models.iter().filter(|info| info.problem.is_none()).map(row));
    let widths: Vec<usize> = (0..head.len())
        .map(|column| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or_default())
        .collect();
    let mut lines: Vec<String> = rows
        .iter()
        .map(|row| {
            let cells = row.iter().zip(&widths).map(|(cell, width)| format!("{cell:<width$}"));
            cells.collect::<Vec<_>>().join("  ").trim_end().to_owned()
        })
        .collect();
    let pointers = &listed.pointers;
    lines.push(String::new());
    lines.push(format!(
        "main {}, task {}, compact {}, quick {}",
        printable(&pointers.main),
        printable(&pointers.task),
        printable(&pointers.compact),
        printable(&pointers.quick)
    ));
    if let Some(catalog) = &listed.catalog {
        let read = catalog.read_at.as_ref().map(|time| format!(", read {time}")).unwrap_or_default();
        lines.push(format!("Catalog: {} models from {}{read}.", catalog.models, printable(&catalog.source)));
    }
    lines.push(format!(
        "The built-in table of limits and prices is of {}; check prices with your provider.",
        listed.prices_as_of
    ));
    lines.extend(unusable(listed));
    lines.join("\n") + "\n"
}

/// The unusable profiles, a line each.
pub(super) fn unusable(listed: &ListModelsResult) -> Vec<String> {
    let broken = listed.models.iter().filter_map(|info| {
        let problem = info.problem.as_ref()?;
        let (name, source) = (printable(&info.name), printable(&info.source));
        Some(format!("! {name} ({source}): {} {}", printable(&problem.message), problem.hint))
    });
    broken.chain(listed.problems.iter().map(|problem| format!("! {}", printable(problem)))).collect()
}

fn row(info: &ModelInfo) -> [String; 9] {
    let price = |of: fn(&ModelPrices) -> f64| {
        info.prices.as_ref().map_or_else(|| "unknown".to_owned(), |prices| of(prices).to_string())
    };
    [
        printable(&info.name) + if info.active { " *" } else { "" },
        printable(&info.model),
        printable(&info.host),
        info.provider.clone(),
        info.context_window.to_string(),
        info.max_tokens.to_string(),
        price(|prices| prices.input),
        price(|prices| prices.output),
        printable(&info.source),
    ]
}
