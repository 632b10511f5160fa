//! The line editor of `kode-ls chat`, on its own thread, with completion of commands and files.
//!
//! Rule: it uses the terminal only while a line is requested.

use std::borrow::Cow;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc as std_mpsc;

use anyhow::Context as _;
use kode_engine::agent::engine::Engine;
use kode_engine::agent::input::complete::{Completer as PromptCompleter, CompletionSources, word_at};
use kode_engine::base::paths::AbsPath;
use rustyline::completion::{Completer, Pair};
use rustyline::error::ReadlineError;
use rustyline::highlight::Highlighter;
use rustyline::hint::Hinter;
use rustyline::history::FileHistory;
use rustyline::validate::{ValidationContext, ValidationResult, Validator};
use rustyline::{CompletionType, Config, Context, Editor, Helper};
use tokio::runtime::Handle;
use tokio::sync::oneshot;

use crate::cli::terminal;

/// The maximum number of prompts in the history.
const REMEMBERED: usize = 1_000;

/// A line of input.
pub(super) enum EditorLine {
    Text(String),
    /// An empty or interrupted line.
    Nothing,
    /// The end of the input.
    End,
}

type LineRequest = (String, oneshot::Sender<anyhow::Result<EditorLine>>);

/// Reads lines.
pub(super) struct LineEditor {
    wanted: std_mpsc::Sender<LineRequest>,
}

impl LineEditor {
    /// Starts the thread. Must be called in a runtime.
    pub(super) fn start(engine: Engine, roots: Vec<AbsPath>, history: PathBuf) -> Self {
        let (wanted, asked) = std_mpsc::channel::<LineRequest>();
        let names = NameHelper { engine, roots, names: Arc::default(), runtime: Handle::current() };
        std::thread::spawn(move || {
            for (prompt, answer) in asked {
                if answer.send(read(&names, &history, &prompt)).is_err() {
                    return;
                }
            }
        });
        Self { wanted }
    }

    /// The next line.
    ///
    /// # Errors
    /// When the terminal cannot be read.
    pub(super) async fn read(&self, prompt: &str) -> anyhow::Result<EditorLine> {
        let (sender, answer) = oneshot::channel();
        let gone = "the line editor has ended";
        self.wanted.send((prompt.to_owned(), sender)).map_err(|_| anyhow::anyhow!(gone))?;
        answer.await.context(gone)?
    }
}

/// Reads a line. The editor replaces the handler of Ctrl-C as long as it lives, so each line has its own.
fn read(names: &NameHelper, history: &Path, prompt: &str) -> anyhow::Result<EditorLine> {
    let config = Config::builder()
        .max_history_size(REMEMBERED)?
        .completion_type(CompletionType::List)
        .auto_add_history(false)
        .build();
    let mut editor: Editor<NameHelper, FileHistory> = Editor::with_config(config)?;
    editor.set_helper(Some(names.clone()));
    // The file does not exist at first.
    drop(editor.load_history(history));
    // Print the empty line separately: the editor counts the prompt's columns.
    let prompt = match prompt.rsplit_once('\n') {
        Some((_, prompt)) => {
            terminal::error_line("");
            prompt
        }
        None => prompt,
    };
    match editor.readline(prompt) {
        Ok(line) => {
            let text = line.replace("\\\n", "\n");
            if text.trim().is_empty() {
                return Ok(EditorLine::Nothing);
            }
            editor.add_history_entry(&line)?;
            if let Err(error) = editor.append_history(history) {
                tracing::info!(%error, "the prompt history could not be saved");
            }
            Ok(EditorLine::Text(text))
        }
        Err(ReadlineError::Interrupted) => Ok(EditorLine::Nothing),
        Err(ReadlineError::Eof) => Ok(EditorLine::End),
        Err(error) => Err(error.into()),
    }
}

/// Completes commands and files.
#[derive(Clone)]
struct NameHelper {
    engine: Engine,
    roots: Vec<AbsPath>,
    names: Arc<PromptCompleter>,
    runtime: Handle,
}

impl Helper for NameHelper {}

impl Completer for NameHelper {
    type Candidate = Pair;

    fn complete(&self, line: &str, at: usize, _: &Context<'_>) -> rustyline::Result<(usize, Vec<Pair>)> {
        let Some(word) = word_at(line, at) else { return Ok((at, Vec::new())) };
        let start = word.start;
        let found = self.runtime.block_on(async {
            let catalog = Arc::clone(&self.engine.extensions(&self.roots).now().await.catalog);
            let sources =
                CompletionSources { roots: self.roots.clone(), catalog, ..CompletionSources::default() };
            self.names.complete(word, &sources).await
        });
        let pairs = found.into_iter().map(|found| Pair {
            display: match found.detail.is_empty() {
                true => found.label,
                false => format!("{}  {}", found.label, found.detail),
            },
            replacement: found.insert,
        });
        Ok((start, pairs.collect()))
    }
}

impl Hinter for NameHelper {
    type Hint = String;
}

impl Highlighter for NameHelper {
    fn highlight_prompt<'b, 's: 'b, 'p: 'b>(&'s self, prompt: &'p str, _: bool) -> Cow<'b, str> {
        Cow::Borrowed(prompt)
    }
}

impl Validator for NameHelper {
    fn validate(&self, context: &mut ValidationContext<'_>) -> rustyline::Result<ValidationResult> {
        let continues = context.input().ends_with('\\');
        Ok(if continues { ValidationResult::Incomplete } else { ValidationResult::Valid(None) })
    }
}
