//! Diagnostics: the errors and warnings of language servers, those of the editor or of the agent's own.
//!
//! Rule: worst first, never more than [`MAX_OF_FILE`] of a file and [`MAX_IN_ALL`], with the number of all; a server without an
//! answer is never treated as code without faults.

use std::fmt::Write as _;

use async_trait::async_trait;
use futures::FutureExt;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use kode_base::call::{Exposure, ToolError, ToolErrorKind, ToolKind, Touch};
use kode_base::paths::Target;
use kode_text::host::{Diagnostic, DiagnosticSeverity, DiagnosticsError, FileDiagnostics};
use kode_text::workspace::Workspace;
use kode_tool::names::DIAGNOSTICS;
use kode_tool::{CallAction, CallContext, CallPlan, OfferContext, Tool, ToolFacts, ToolOutput};

/// The most diagnostics of one file.
const MAX_OF_FILE: usize = 100;
/// The most diagnostics of one call.
const MAX_IN_ALL: usize = 500;
/// The most characters of one message.
const MAX_MESSAGE: usize = 1_000;

/// The arguments of Diagnostics.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DiagnosticsInput {
    /// The file. All files the editor knows something about if left out.
    #[serde(default)]
    pub path: Option<String>,
    /// The mildest kind wanted: error, warning, information or hint. Warnings and worse if left out.
    #[serde(default)]
    pub severity: Option<SeverityInput>,
}

/// How bad a diagnostic is.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SeverityInput {
    /// It does not work.
    Error,
    /// It may not work.
    Warning,
    /// Good to know.
    Information,
    /// Could be nicer.
    Hint,
}

/// Asks language servers.
#[derive(Clone, Copy, Debug)]
pub struct Diagnostics;

#[async_trait]
impl Tool for Diagnostics {
    type Input = DiagnosticsInput;

    fn facts(&self) -> ToolFacts {
        ToolFacts {
            name: DIAGNOSTICS,
            kind: ToolKind::ReadOnly,
            concurrency_safe: true,
            description: "Reports the errors, warnings and hints of language servers for a file or for all files, with \
                their places, worst first. Use it to check code after a change; a server may need a moment to see it. \
                It does not replace building and testing.",
        }
    }

    fn describe(&self, offer: &OfferContext<'_>) -> Option<String> {
        offer.can_diagnose.then(|| self.facts().description.to_owned())
    }

    async fn plan(&self, input: DiagnosticsInput, context: &CallContext) -> Result<CallPlan, ToolError> {
        let mildest = match input.severity {
            Some(SeverityInput::Error) => DiagnosticSeverity::Error,
            None | Some(SeverityInput::Warning) => DiagnosticSeverity::Warning,
            Some(SeverityInput::Information) => DiagnosticSeverity::Information,
            Some(SeverityInput::Hint) => DiagnosticSeverity::Hint,
        };
        let target = input.path.as_deref().map(|path| context.workspace.resolve(path)).transpose();
        let target = target.map_err(|error| {
            let hint = "Give the path of a file, or leave `path` out for all files.";
            ToolError::new(ToolErrorKind::InvalidInput, format!("Diagnostics: `path`: {error}."), hint)
        })?;
        let title = match &target {
            Some(target) => format!("Diagnostics of {}", context.workspace.display(target)),
            None => "Diagnostics of all files".to_owned(),
        };
        let touches = target.clone().map(Touch::Read).into_iter().collect();
        let run = move |context: CallContext| {
            async move {
                let workspace = &context.workspace;
                let asked: Vec<Target> = target.into_iter().collect();
                let mut files = workspace.diagnostics(&asked).await.map_err(|error| unknown(&error))?;
                // Files outside the workspace are not for this session to read, unless they were requested by name.
                files.retain(|file| {
                    asked.contains(&file.target)
                        || workspace.contains(&file.target)
                            && (context.may_read)(&file.target, Exposure::Name)
                });
                Ok(report(files, mildest, workspace))
            }
            .boxed()
        };
        Ok(CallPlan { title, touches, action: CallAction::Run(Box::new(run)) })
    }
}

fn unknown(error: &DiagnosticsError) -> ToolError {
    let hint = match error {
        DiagnosticsError::Unavailable => "Build or test the code with a command instead.",
        DiagnosticsError::Failed(_) => "Try once more, or build the code with a command instead.",
    };
    ToolError::new(ToolErrorKind::Failed, format!("Nothing is known of the code: {error}."), hint)
}

fn report(files: Vec<FileDiagnostics>, mildest: DiagnosticSeverity, workspace: &Workspace) -> ToolOutput {
    let mut files: Vec<FileDiagnostics> = files
        .into_iter()
        .map(|mut file| {
            file.diagnostics.retain(|diagnostic| diagnostic.severity <= mildest);
            file.diagnostics
                .sort_by_key(|diagnostic| (diagnostic.severity, diagnostic.line, diagnostic.column));
            file
        })
        .filter(|file| !file.diagnostics.is_empty())
        .collect();
    files.sort_by_key(|file| file.diagnostics.first().map(|worst| worst.severity));
    let total: usize = files.iter().map(|file| file.diagnostics.len()).sum();
    if total == 0 {
        let model_text = "The language servers say nothing of that kind.".to_owned();
        return ToolOutput {
            model_text,
            display: "Nothing".to_owned(),
            structured: Some(json!([])),
            ..ToolOutput::default()
        };
    }
    let (mut text, mut structured, mut shown) = (String::new(), Vec::new(), 0);
    for file in &files {
        let room = MAX_OF_FILE.min(MAX_IN_ALL - shown);
        let path = workspace.display(&file.target);
        let mark = if file.is_outdated { " (of an older text; lines may have moved)" } else { "" };
        let _ = writeln!(text, "{path}{mark}");
        for diagnostic in file.diagnostics.iter().take(room) {
            let _ = writeln!(text, "  {}", line(diagnostic));
            structured.push(value(&path, diagnostic));
        }
        shown += file.diagnostics.len().min(room);
        let left = file.diagnostics.len().saturating_sub(room);
        if left > 0 {
            let _ = writeln!(text, "  … and {left} more in this file");
        }
        if shown >= MAX_IN_ALL {
            break;
        }
    }
    if shown < total {
        let _ = writeln!(text, "{shown} of {total} are shown; name a file to see the rest of it.");
    }
    let display = format!("{total} in {} files", files.len());
    ToolOutput {
        model_text: text.trim_end().to_owned(),
        display,
        structured: Some(Value::Array(structured)),
        ..ToolOutput::default()
    }
}

fn line(diagnostic: &Diagnostic) -> String {
    let message: String = diagnostic.message.chars().take(MAX_MESSAGE).collect();
    let message = message.split_whitespace().collect::<Vec<_>>().join(" ");
    let by = [diagnostic.source.as_str(), diagnostic.code.as_str()];
    let by = by.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(" ");
    let by = if by.is_empty() { by } else { format!(" [{by}]") };
    let Diagnostic { line, column, severity, .. } = diagnostic;
    format!("{line}:{column} {}: {message}{by}", name(*severity))
}

fn value(path: &str, diagnostic: &Diagnostic) -> Value {
    let Diagnostic { line, column, severity, message, source, code } = diagnostic;
    let message: String = message.chars().take(MAX_MESSAGE).collect();
    json!({
        "path": path, "line": line, "column": column, "severity": name(*severity), "message": message,
        "source": source, "code": code,
    })
}

fn name(severity: DiagnosticSeverity) -> &'static str {
    match severity {
        DiagnosticSeverity::Error => "error",
        DiagnosticSeverity::Warning => "warning",
        DiagnosticSeverity::Information => "information",
        DiagnosticSeverity::Hint => "hint",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Fixture;

    fn diagnostic(line: u32, severity: DiagnosticSeverity) -> Diagnostic {
        Diagnostic {
            line,
            column: 3,
            severity,
            message: "not\nso".into(),
            source: "rustc".into(),
            code: "E1".into(),
        }
    }

    fn file(fixture: &Fixture, name: &str, diagnostics: Vec<Diagnostic>) -> FileDiagnostics {
        let target = Target::File(fixture.root().join(name));
        FileDiagnostics { target, is_outdated: name == "old.rs", diagnostics }
    }

    #[tokio::test]
    async fn the_worst_comes_first_and_what_is_of_an_older_text_is_marked() {
        let mut fixture = Fixture::new();
        let mild = file(&fixture, "mild.rs", vec![diagnostic(1, DiagnosticSeverity::Warning)]);
        let old = vec![
            diagnostic(9, DiagnosticSeverity::Warning),
            diagnostic(2, DiagnosticSeverity::Hint),
            diagnostic(7, DiagnosticSeverity::Error),
        ];
        let old = file(&fixture, "old.rs", old);
        let target = Target::File(fixture.root().parent().unwrap().join("outside.rs"));
        let outside = FileDiagnostics {
            target,
            is_outdated: false,
            diagnostics: vec![diagnostic(1, DiagnosticSeverity::Error)],
        };
        fixture.diagnose(vec![mild, old, outside]);
        let text = fixture.text(Diagnostics, json!({})).await;
        let expected = "old.rs (of an older text; lines may have moved)\n  7:3 error: not so [rustc E1]\n  9:3 \
            warning: not so [rustc E1]\nmild.rs\n  1:3 warning: not so [rustc E1]";
        assert_eq!(text, expected);
        let text = fixture.text(Diagnostics, json!({ "path": "mild.rs", "severity": "error" })).await;
        assert_eq!(text, "The language servers say nothing of that kind.");
    }

    #[tokio::test]
    async fn numbers_are_bounded_and_what_is_left_out_is_counted() {
        let mut fixture = Fixture::new();
        let many = || (0..120).map(|line| diagnostic(line, DiagnosticSeverity::Error)).collect();
        fixture.diagnose((0..7).map(|number| file(&fixture, &format!("{number}.rs"), many())).collect());
        let text = fixture.text(Diagnostics, json!({})).await;
        assert_eq!(text.matches("error").count(), 500);
        assert!(
            text.contains("… and 20 more in this file") && text.contains("500 of 840 are shown"),
            "{text}"
        );
    }

    #[tokio::test]
    async fn an_editor_that_does_not_report_is_an_error_with_another_way() {
        let error = Fixture::new().run(Diagnostics, json!({})).await.unwrap_err();
        assert!(error.message.contains("no editor") && error.hint.contains("command"), "{error:?}");
        let error = Fixture::new().run(Diagnostics, json!({ "path": "" })).await.unwrap_err();
        assert!(error.kind == ToolErrorKind::InvalidInput && error.message.contains("`path`"), "{error:?}");
    }
}
