//! The `Read` tool: numbered lines of a file or open document.
//!
//! Rule: the shown text is the user's text, every cut is marked, and only a text that was shown counts as read.
//! Long files are read as streams, open documents never. Pictures and PDF documents go to the model as they are.

pub(crate) mod page;

use std::fmt::Write as _;

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use kode_base::blocking;
use kode_base::call::{ToolError, ToolErrorKind, ToolKind, Touch};
use kode_base::encoding::{PDF_DOCUMENT, TextFormat};
use kode_base::paths::{AbsPath, Target};
use kode_model::Image;
use kode_model::image::{MAX_IMAGE_BYTES, MAX_PDF_BYTES, PDF, media_type};
use kode_text::file_text::{FileText, TextSource};
use kode_text::workspace::overlay::MAX_FILE_BYTES;
use kode_text::workspace::{OpenText, Portion, ReadError, TextStream, Workspace};
use kode_tool::names::READ;
use kode_tool::{CallAction, CallContext, CallPlan, Tool, ToolFacts, ToolOutput};
use page::{MAX_OUTPUT_BYTES, TextPage};

/// Lines shown when no limit is given.
const DEFAULT_LINES: usize = 2_000;

/// A search in a long file reports every this many lines.
const PROGRESS_LINES: usize = 100;

/// Arguments of `Read`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ReadInput {
    /// The file to read: an absolute path, a path relative to the working folder, or the URI of an open document.
    pub file_path: String,
    /// The number of the first line to show, from 1. Only for files too long to read at once.
    #[serde(default)]
    pub offset: Option<usize>,
    /// How many lines to show, 2000 if not given. Only for files too long to read at once.
    #[serde(default)]
    #[schemars(range(min = 1))]
    pub limit: Option<usize>,
}

/// Shows the text of a file.
pub struct Read;

#[async_trait]
impl Tool for Read {
    type Input = ReadInput;

    fn facts(&self) -> ToolFacts {
        ToolFacts { name: READ, kind: ToolKind::ReadOnly, concurrency_safe: true, description: DESCRIPTION }
    }

    async fn plan(&self, input: ReadInput, context: &CallContext) -> Result<CallPlan, ToolError> {
        let target = context.workspace.resolve(&input.file_path)?;
        if input.limit == Some(0) {
            return Err(ToolError::new(
                ToolErrorKind::InvalidInput,
                "Read: `limit` must be at least 1",
                "Leave it out to read up to 2000 lines.",
            ));
        }
        let title = format!("Read {}", context.workspace.display(&target));
        let touches = vec![Touch::Read(target.clone())];
        let window = LineWindow {
            first: input.offset.unwrap_or(1).max(1),
            limit: input.limit.unwrap_or(DEFAULT_LINES),
            ..LineWindow::default()
        };
        let window = LineWindow {
            bytes: context.text_limit.unwrap_or(MAX_OUTPUT_BYTES).min(MAX_OUTPUT_BYTES),
            ..window
        };
        let run = move |context: CallContext| -> futures::future::BoxFuture<'static, _> {
            Box::pin(read(target, window, context))
        };
        Ok(CallPlan { title, touches, action: CallAction::Run(Box::new(run)) })
    }
}

const DESCRIPTION: &str = "\
Reads a file or an open document as the user sees it, unsaved changes included.

- The result has numbered lines: the number, a tab, then the line. The number and the tab are not part of the text.
- Up to 2000 lines are shown, and 2000 characters of each. Use offset and limit for the rest of a long file.
- Text in any common encoding is read, and PNG, JPEG, GIF and WebP pictures, and PDF documents. Other binary files are refused.
- A file must be read before Edit or Write may change it.
- Several files can be read at once by several calls in one answer.";

/// Which part of a text is shown.
#[derive(Clone, Copy, Debug)]
struct LineWindow {
    /// The first line, from 1.
    first: usize,
    /// The most lines.
    limit: usize,
    /// The most bytes.
    bytes: usize,
}

impl Default for LineWindow {
    fn default() -> Self {
        Self { first: 1, limit: DEFAULT_LINES, bytes: MAX_OUTPUT_BYTES }
    }
}

/// The result of reading, apart from the lines.
struct ReadOutcome {
    page: TextPage,
    /// How many lines there are; `None` when the end was not reached.
    total: Option<usize>,
    source: &'static str,
    /// `None` for an open document, which its editor writes.
    format: Option<TextFormat>,
    /// Size in bytes of a file that is too long to be edited.
    too_long: Option<u64>,
}

/// Shows a part of a text, which counts as read then, or a picture.
async fn read(target: Target, window: LineWindow, context: CallContext) -> Result<ToolOutput, ToolError> {
    let (workspace, LineWindow { first, .. }) = (&context.workspace, window);
    let path = workspace.display(&target);
    let real = target.file().and_then(|path| context.resolved.get(path));
    let open = tokio::select! {
        open = workspace.open_judged(&target, real) => open,
        () = context.cancel.cancelled() => return Err(cancelled()),
    };
    let open = match open {
        Err(error @ (ReadError::Image { .. } | ReadError::Binary { what: PDF_DOCUMENT, .. })) => {
            return picture(&target, &path, (workspace, real), error).await;
        }
        open => open?,
    };
    let page = TextPage::new(first, window.limit, window.bytes);
    let reading = match open {
        OpenText::Whole(file) => {
            let reading = read_whole(&file, page);
            refuse_past_end(&reading, first, &path)?;
            if !is_kept_output(&target, &context) {
                workspace.note_read(&file, &reading.portion(first));
            }
            reading
        }
        OpenText::Stream(stream) => {
            let work = {
                let (context, path) = (context.clone(), path.clone());
                move || read_stream(stream, page, &path, &context)
            };
            let (reading, stream) = blocking(work).await?;
            refuse_past_end(&reading, first, &path)?;
            if !is_kept_output(&target, &context) {
                workspace.note_stream_read(&stream, &reading.portion(first));
            }
            reading
        }
    };
    Ok(ToolOutput {
        display: format!("Read {} lines of {path}", reading.page.shown()),
        structured: Some(json!({
            "path": path,
            "absolutePath": target.file().map(ToString::to_string),
            "firstLine": first,
            "lines": reading.page.shown(),
            "totalLines": reading.total,
            "partial": reading.total.is_none_or(|total| reading.page.shown() < total),
            "source": reading.source,
            "encoding": reading.format.map(|format| format.to_string()),
            "lineEnding": reading.page.line_ending().name(),
        })),
        model_text: reading.into_text(first),
        ..ToolOutput::default()
    })
}

/// A picture or PDF document, where it is of a kind that models take and not too large.
async fn picture(
    target: &Target,
    path: &str,
    (workspace, real): (&Workspace, Option<&AbsPath>),
    error: ReadError,
) -> Result<ToolOutput, ToolError> {
    let bytes = workspace.bytes_judged(target, real).await;
    let Some(bytes) = bytes.filter(|bytes| media_type(bytes).is_some()) else { return Err(error.into()) };
    let image = Image::of_bytes(&bytes).map_err(|bad| {
        let limit = if media_type(&bytes) == Some(PDF) { MAX_PDF_BYTES } else { MAX_IMAGE_BYTES };
        let hint = format!("Make a smaller copy of it with Bash; the limit is {limit} bytes.");
        ToolError::new(ToolErrorKind::Mismatch, format!("`{path}` cannot be shown: {bad}"), hint)
    })?;
    let image = blocking(move || image.readable()).await;
    let kind = image.media_type.clone();
    let what = if image.is_pdf() { "a PDF document" } else { "a picture" };
    Ok(ToolOutput {
        model_text: format!("[{path}: {what}, {kind}, {} bytes]", bytes.len()),
        display: format!("Read {path}, {kind}"),
        structured: Some(json!({
            "path": path,
            "absolutePath": target.file().map(ToString::to_string),
            "mediaType": kind,
            "bytes": bytes.len(),
        })),
        images: vec![image],
    })
}

/// Whether a file is output of a command of this session. It is not there to be edited, and that it grows is no news.
fn is_kept_output(target: &Target, context: &CallContext) -> bool {
    let outputs = context.shell.tasks().outputs();
    target.file().zip(outputs).is_some_and(|(path, outputs)| path.is_within(outputs.folder()))
}

fn read_whole(file: &FileText, mut page: TextPage) -> ReadOutcome {
    page.feed(&file.text);
    page.end();
    let total = Some(page.lines());
    let (source, format) = match file.source {
        TextSource::Document(_) => ("document", None),
        TextSource::Disk => ("disk", Some(file.format)),
    };
    ReadOutcome { page, total, source, format, too_long: None }
}

/// Goes through the file until the page is full; to its end if it can be edited, so that its hash is known.
fn read_stream(
    mut stream: TextStream,
    mut page: TextPage,
    path: &str,
    context: &CallContext,
) -> Result<(ReadOutcome, TextStream), ToolError> {
    let mut reported = 0;
    let is_editable = stream.is_editable();
    let mut total = None;
    while is_editable || !page.has_more() {
        if context.cancel.is_cancelled() {
            return Err(cancelled());
        }
        let Some(piece) = stream.next_piece()? else {
            page.end();
            total = Some(page.lines());
            break;
        };
        page.feed(piece);
        while reported + PROGRESS_LINES <= page.shown() {
            reported += PROGRESS_LINES;
            (context.progress)(format!("Read {reported} lines of {path}"));
        }
    }
    let too_long = (!is_editable).then(|| stream.size());
    let format = Some(stream.format());
    Ok((ReadOutcome { page, total, source: "disk", format, too_long }, stream))
}

fn refuse_past_end(reading: &ReadOutcome, first: usize, path: &str) -> Result<(), ToolError> {
    match reading.total {
        Some(total) if first > total.max(1) => Err(ToolError::new(
            ToolErrorKind::InvalidInput,
            format!("`{path}` has {total} lines; line {first} is past its end"),
            "Read it without offset, or with a smaller one.",
        )),
        Some(_) | None => Ok(()),
    }
}

impl ReadOutcome {
    /// How much of the text is shown. A line that is cut is not seen, and neither are its neighbors then.
    fn portion(&self, first: usize) -> Portion {
        let shown = if self.page.has_cut_line() { 0 } else { self.page.shown() };
        match self.total {
            Some(total) => Portion::Lines { shown: first..first + shown, total },
            None => Portion::Lines { shown: first..first, total: usize::MAX },
        }
    }

    fn into_text(self, first: usize) -> String {
        let Self { page, total, format, too_long, .. } = self;
        let shown = page.shown();
        let (last, next) = ((first + shown).saturating_sub(1), first + shown);
        let mut text = page.into_text();
        match total {
            Some(0) => text.push_str("[The file is empty]\n"),
            Some(total) if last < total => {
                let _ = writeln!(text, "[Lines {first} to {last} of {total}; continue with offset {next}]");
            }
            Some(total) if shown < total => {
                let _ = writeln!(text, "[Lines {first} to {last} of {total}]");
            }
            Some(_) => {}
            None => {
                let _ = writeln!(
                    text,
                    "[Lines {first} to {last}; more lines follow, continue with offset {next}]"
                );
            }
        }
        // UTF-8 goes without saying; anything else was found out by looking, and that is never silent.
        if let Some(format) = format.filter(|format| *format != TextFormat::UTF_8) {
            let kept = if too_long.is_some() { "" } else { ", kept when the file is edited" };
            let _ = writeln!(text, "[Encoding: {format}{kept}]");
        }
        if let Some(size) = too_long {
            let _ = writeln!(
                text,
                "[The file is too long to be changed with Edit or Write: {size} bytes, the limit is \
                 {MAX_FILE_BYTES}]"
            );
        }
        text.pop();
        text
    }
}

fn cancelled() -> ToolError {
    ToolError::new(ToolErrorKind::Cancelled, "Read was cancelled", "Nothing to do.")
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::page::MAX_LINE_CHARS;
    use super::*;
    use crate::rig::ToolRig;
    use parking_lot::Mutex;

    async fn read(rig: &ToolRig, input: serde_json::Value) -> String {
        rig.call("Read", input).await.unwrap().model_text
    }

    /// A document of one page.
    const DOCUMENT: &str = "%PDF-1.4\n1 0 obj <</Type /Catalog /Pages 2 0 R>> endobj\n\
        2 0 obj <</Type /Pages /Kids [3 0 R] /Count 1>> endobj\n\
        3 0 obj <</Type /Page /Parent 2 0 R /Contents 4 0 R /MediaBox [0 0 300 300] \
        /Resources <</Font <</F1 5 0 R>>>>>> endobj\n\
        4 0 obj <</Length 43>> stream\nBT /F1 12 Tf 20 200 Td (Invoice 4711) Tj ET\nendstream endobj\n\
        5 0 obj <</Type /Font /Subtype /Type1 /BaseFont /Courier /Encoding /WinAnsiEncoding>> endobj\n\
        trailer <</Root 1 0 R /Size 6>>\n%%EOF\n";

    #[tokio::test]
    async fn a_pdf_document_is_handed_over_with_its_text() {
        let rig = ToolRig::new();
        rig.write("a.pdf", DOCUMENT);
        let output = rig.call("Read", json!({"file_path": "a.pdf"})).await.unwrap();
        assert!(output.model_text.contains("a PDF document, application/pdf"), "{}", output.model_text);
        assert_eq!(output.images.len(), 1);
        assert_eq!(output.images[0].text.as_deref(), Some("[Page 1 of 1]\nInvoice 4711\n"));
    }

    #[tokio::test]
    async fn lines_are_numbered_like_cat_n() {
        let rig = ToolRig::new();
        rig.write("a.txt", "one\r\n\ttwo\rthree\n\nno break");
        let text = read(&rig, json!({"file_path": "a.txt"})).await;
        assert_eq!(text, "     1\tone\n     2\t\ttwo\n     3\tthree\n     4\t\n     5\tno break");
    }

    #[tokio::test]
    async fn a_page_is_exact_and_says_where_to_proceed() {
        let rig = ToolRig::new();
        let lines: String = (1..=5_000).map(|number| format!("line {number}\n")).collect();
        rig.write("a.txt", lines);
        let text = read(&rig, json!({"file_path": "a.txt"})).await;
        assert!(text.ends_with("  2000\tline 2000\n[Lines 1 to 2000 of 5000; continue with offset 2001]"));
        let text = read(&rig, json!({"file_path": "a.txt", "offset": 4999, "limit": 1})).await;
        assert_eq!(text, "  4999\tline 4999\n[Lines 4999 to 4999 of 5000; continue with offset 5000]");
        let text = read(&rig, json!({"path": "a.txt", "start_line": "4999", "end_line": "5000"})).await;
        assert_eq!(text, "  4999\tline 4999\n  5000\tline 5000\n[Lines 4999 to 5000 of 5000]");
    }

    #[tokio::test]
    async fn limits_cut_lines_and_pages_visibly() {
        let rig = ToolRig::new();
        rig.write("wide.txt", "é".repeat(MAX_LINE_CHARS + 3));
        let text = read(&rig, json!({"file_path": "wide.txt"})).await;
        assert_eq!(text, format!("     1\t{}... [3 more characters]", "é".repeat(MAX_LINE_CHARS)));
        rig.write("large.txt", format!("{}\n", "x".repeat(1_500)).repeat(400));
        let output = rig.call("Read", json!({"file_path": "large.txt"})).await.unwrap();
        assert!(output.model_text.len() < MAX_OUTPUT_BYTES + 100);
        let shown = output.structured.unwrap()["lines"].as_u64().unwrap();
        let expected = format!("[Lines 1 to {shown} of 400; continue with offset {}]", shown + 1);
        assert!(output.model_text.ends_with(&expected));
    }

    #[tokio::test]
    async fn an_empty_file_and_an_offset_past_the_end_are_reported() {
        let rig = ToolRig::new();
        rig.write("empty.txt", "");
        rig.write("a.txt", "one\ntwo\n");
        assert_eq!(read(&rig, json!({"file_path": "empty.txt"})).await, "[The file is empty]");
        let error = rig.call("Read", json!({"file_path": "a.txt", "offset": 3})).await.unwrap_err();
        assert_eq!(error.message, "`a.txt` has 2 lines; line 3 is past its end");
        let error = rig.call("Edit", json!({"file_path": "a.txt", "old_string": "one", "new_string": "1"}));
        assert!(error.await.is_err(), "nothing was shown, so nothing was read");
    }

    #[tokio::test]
    async fn unsaved_text_is_read_and_a_guessed_encoding_is_reported() {
        let rig = ToolRig::new();
        rig.write("a.txt", "saved");
        rig.open("a.txt", "unsaved");
        rig.write("utf16.txt", [0xff, 0xfe, b'h', 0, b'i', 0]);
        let output = rig.call("Read", json!({"file_path": "a.txt"})).await.unwrap();
        assert_eq!(output.model_text, "     1\tunsaved");
        assert_eq!(output.structured.unwrap()["source"], "document");
        let output = rig.call("Read", json!({"file_path": "utf16.txt"})).await.unwrap();
        assert!(output.model_text.starts_with("     1\thi\n[Encoding: UTF-16LE with BOM"));
        assert_eq!(output.structured.unwrap()["encoding"], "UTF-16LE with BOM");
    }

    #[tokio::test]
    async fn reading_declares_what_it_touches_and_does_nothing_before_it_may() {
        let rig = ToolRig::new();
        let input = ReadInput { file_path: "missing.txt".to_owned(), offset: None, limit: None };
        let plan = Read.plan(input, &rig.context).await.unwrap();
        assert_eq!(plan.title, "Read missing.txt");
        assert_eq!(plan.touches, [Touch::Read(rig.target("missing.txt"))]);
    }

    /// Numbered lines, together longer than a file that is read whole.
    fn long_text(lines: usize) -> String {
        (1..=lines).map(|number| format!("{number:030}\n")).collect()
    }

    #[tokio::test]
    async fn a_window_of_a_long_file_is_exact_and_counts_as_read() {
        let rig = ToolRig::new();
        rig.write("a.log", format!("{}last", long_text(50_000)));
        let input = json!({"file_path": "a.log", "offset": 40_000, "limit": 2});
        let output = rig.call("Read", input).await.unwrap();
        assert_eq!(
            output.model_text,
            format!(
                " 40000\t{:030}\n 40001\t{:030}\n[Lines 40000 to 40001 of 50001; continue with offset 40002]",
                40_000, 40_001
            )
        );
        let structured = output.structured.unwrap();
        assert_eq!((&structured["totalLines"], &structured["lines"]), (&json!(50_001), &json!(2)));
        let text = read(&rig, json!({"file_path": "a.log", "offset": 50_001})).await;
        assert_eq!(text, " 50001\tlast\n[Lines 50001 to 50001 of 50001]");
        let edit = json!({"file_path": "a.log", "old_string": "last", "new_string": "end"});
        rig.call("Edit", edit).await.unwrap();
        assert!(rig.text("a.log").ends_with("50000\nend"));
        let error = rig.call("Read", json!({"file_path": "a.log", "offset": 50_002})).await.unwrap_err();
        assert_eq!(error.message, "`a.log` has 50001 lines; line 50002 is past its end");
    }

    #[tokio::test]
    async fn of_a_huge_file_no_more_is_read_than_is_shown() {
        let rig = ToolRig::new();
        rig.write("huge.log", long_text(60_000));
        // Text follows: reading it would be an error.
        let file = std::fs::File::options().write(true).open(rig.path("huge.log")).unwrap();
        file.set_len(500 << 20).unwrap();
        let output = rig.call("Read", json!({"file_path": "huge.log", "limit": 100})).await.unwrap();
        let ending = format!(
            "   100\t{:030}\n[Lines 1 to 100; more lines follow, continue with offset 101]\n[The file is too long to be \
             changed with Edit or Write: 524288000 bytes, the limit is 67108864]",
            100
        );
        assert!(output.model_text.ends_with(&ending), "{}", output.model_text);
        let structured = output.structured.unwrap();
        assert_eq!((&structured["totalLines"], &structured["partial"]), (&json!(null), &json!(true)));
    }

    #[tokio::test]
    async fn a_long_file_reports_every_hundred_lines_and_can_be_cancelled() {
        let rig = ToolRig::new();
        rig.write("a.log", long_text(40_000));
        let reports = Arc::new(Mutex::new(Vec::new()));
        let mut context = rig.context.clone();
        let sink = Arc::clone(&reports);
        context.progress = Arc::new(move |text| sink.lock().push(text));
        let input = json!({"file_path": "a.log", "offset": 5, "limit": 1_000});
        rig.call_in(&context, "Read", input.clone()).await.unwrap();
        let reports = reports.lock().clone();
        assert_eq!((reports.len(), reports[9].as_str()), (10, "Read 1000 lines of a.log"));
        context.cancel.cancel();
        let error = rig.call_in(&context, "Read", input).await.unwrap_err();
        assert_eq!(error.kind, ToolErrorKind::Cancelled);
    }
}
