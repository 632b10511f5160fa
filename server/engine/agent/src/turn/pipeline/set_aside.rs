//! The user's decision about files that commands made and that other programs obey.
//!
//! Rule: such a file was taken away before anybody obeyed it. Only the user's own word puts it back; without one it stays where
//! it is, and the model learns the decision.

use std::fmt::Write as _;
use std::path::Path;

use super::Pipeline;
use crate::turn::questions::ask_while_running;
use kode_base::blocking;
use kode_base::call::ToolError;
use kode_base::mode::Mode;
use kode_base::paths::{is_deceptive, one_line};
use kode_base::question::{Inquiry, QuestionDraft, QuestionKind, QuestionOption};
use kode_process::sandbox::QuarantinedFile;
use kode_tool::ToolOutput;

/// How many files are asked about one by one.
const MAX_ASKED: usize = 8;
/// How much of a file's text is shown, in characters.
const MAX_EXCERPT: usize = 1_500;
/// The answers.
const LEAVE: &str = "Leave it aside";
const KEEP: &str = "Keep it";

impl Pipeline<'_> {
    /// Asks the user about what commands have left, and tells the model of the answer.
    pub(super) async fn decide_set_aside(
        &self,
        result: Result<ToolOutput, ToolError>,
    ) -> Result<ToolOutput, ToolError> {
        let in_force = self.services().gate.in_force_for(self.conversation());
        let Some(sandbox) = in_force.policy.sandbox.clone() else { return result };
        let files = sandbox.undecided();
        if files.is_empty() {
            return result;
        }
        let mode = in_force.mode(self.mode());
        let kept = if mode == Mode::DontAsk { Vec::new() } else { self.ask_to_keep(&files).await };
        let mut note = String::new();
        for file in &files {
            let path = shown(&file.path);
            let what = match kept.iter().find(|(kept, _)| kept == file) {
                Some((_, Ok(()))) => format!("The user keeps `{path}`; it is back in its place."),
                Some((_, Err(why))) => {
                    format!("The user wants to keep `{path}`, but it could not be put back: {why}.")
                }
                None => format!("`{path}` stays set aside; do not make it again."),
            };
            let _ = write!(note, "\n\n{what}");
        }
        match result {
            Ok(output) => Ok(ToolOutput { model_text: output.model_text + &note, ..output }),
            Err(error) => Err(ToolError { message: error.message + &note, ..error }),
        }
    }

    /// The files that the user wants to keep, with the results of their restore.
    async fn ask_to_keep(&self, files: &[QuarantinedFile]) -> Vec<(QuarantinedFile, Result<(), String>)> {
        let groups: Vec<&[QuarantinedFile]> = match files.len() {
            0..=MAX_ASKED => files.chunks(1).collect(),
            _ => vec![files],
        };
        let questions = groups.iter().map(|group| inquiry(group)).collect();
        let draft = QuestionDraft::new(QuestionKind::Choice, questions);
        let call = self.call;
        let reply = ask_while_running(self.turn, &call.id, &call.item, draft, self.cancel).await;
        let answers = reply.and_then(|reply| reply.answers).unwrap_or_default();
        let wanted =
            groups.iter().zip(&answers).filter(|(_, picked)| picked.labels.iter().any(|label| label == KEEP));
        let wanted: Vec<QuarantinedFile> = wanted.flat_map(|(group, _)| group.to_vec()).collect();
        blocking(move || {
            let put_back = |file: QuarantinedFile| {
                let done = file.put_back().map_err(|error| error.to_string());
                (file, done)
            };
            wanted.into_iter().map(put_back).collect()
        })
        .await
    }
}

/// The question about some files.
fn inquiry(files: &[QuarantinedFile]) -> Inquiry {
    let names: Vec<_> = files.iter().map(|file| format!("`{}`", shown(&file.path))).collect();
    let obeyed_by = files.first().map_or("other programs", |file| file.obeyed_by.as_str());
    let question = match files {
        [file] => format!(
            "A command made {}, which {obeyed_by} obeys. It was set aside in `{}`. Keep it?",
            names.join(", "),
            shown(&file.kept)
        ),
        _ => format!(
            "Commands made {} files that other programs obey: {}. They were set aside. Keep all of them?",
            files.len(),
            names.join(", ")
        ),
    };
    let shown = match files {
        [file] => excerpt(file),
        _ => String::new(),
    };
    let options =
        vec![QuestionOption::new(LEAVE, "Nothing obeys it there."), QuestionOption::new(KEEP, &shown)];
    Inquiry { question, header: "Set aside".to_owned(), options, multi_select: false }
}

/// A path on one line.
fn shown(path: &Path) -> String {
    one_line(&path.display().to_string()).into_owned()
}

/// The beginning of a file's content, without characters that could pass for something else.
fn excerpt(file: &QuarantinedFile) -> String {
    let text = file.excerpt();
    let clean = text.chars().take(MAX_EXCERPT).map(|letter| match letter {
        '\n' | '\t' => letter,
        _ if is_deceptive(letter) => '\u{fffd}',
        _ => letter,
    });
    format!("It says:\n{}", clean.collect::<String>())
}
