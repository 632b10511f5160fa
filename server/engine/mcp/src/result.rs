//! The result of a server, as the model and people get it.
//!
//! Rule: text stays as it is and is bounded by tokens; the cut part is in a file that the text names; nothing that a server
//! says is a picture is sent as one unless it is one.

use std::fmt::Write as _;
use std::sync::Arc;

use rmcp::model::{CallToolResult, ContentBlock, ResourceContents};

use kode_base::call::{ToolError, ToolErrorKind};
use kode_base::ids::CallId;
use kode_model::Image;
use kode_process::shell::Outputs;
use kode_tool::ToolOutput;

/// Number of characters that count as one token without a count.
const CHARS_PER_TOKEN: usize = 4;

/// From this many tokens on the model learns that a result is large.
const WARN_TOKENS: usize = 10_000;

/// Maximum number of images of one result that are sent.
const MAX_IMAGES: usize = 20;

/// The attachments of a result.
pub(crate) struct ResultBounds<'a> {
    /// Number of tokens that the model gets.
    pub(crate) tokens: usize,
    /// Where the whole of it is kept when that is not all.
    pub(crate) outputs: Option<&'a Arc<Outputs>>,
    /// The call it is of.
    pub(crate) call: &'a CallId,
}

/// The result of a call.
///
/// # Errors
/// What the server says went wrong.
pub(crate) fn output(
    shown: &str,
    result: CallToolResult,
    bounds: &ResultBounds<'_>,
) -> Result<ToolOutput, ToolError> {
    let CallToolResult { content, structured_content, is_error, .. } = result;
    let (mut text, images) = reported(content);
    if let Some(structured) = &structured_content
        && text.trim().is_empty()
        && images.is_empty()
    {
        text = structured.to_string();
    }
    let text = bounded(text, bounds);
    if is_error == Some(true) {
        let message = match text.trim() {
            "" => format!("{shown} failed and did not say why."),
            said => said.to_owned(),
        };
        let structured = structured_content.map(Box::new);
        let hint = "This is what the MCP server said. Check the arguments, or go on without it.";
        return Err(ToolError { structured, ..ToolError::new(ToolErrorKind::Failed, message, hint) });
    }
    let model_text = match (text.trim(), images.is_empty()) {
        ("", true) => format!("{shown} is done; it gave no text."),
        _ => text,
    };
    Ok(ToolOutput { model_text, structured: structured_content, images, ..ToolOutput::default() })
}

/// Contents as text and pictures.
pub(crate) fn reported(content: Vec<ContentBlock>) -> (String, Vec<Image>) {
    let (mut parts, mut images) = (Vec::new(), Vec::new());
    for block in content {
        match block {
            ContentBlock::Text(text) => parts.push(text.text),
            ContentBlock::Image(image) => match Image::of_base64(&image.mime_type, &image.data) {
                Ok(image) if images.len() < MAX_IMAGES => images.push(image),
                Ok(_) => parts.push(format!("[A picture; more than {MAX_IMAGES} are not shown]")),
                Err(error) => parts.push(format!("[A picture that cannot be shown: {error}]")),
            },
            ContentBlock::Audio(audio) => {
                parts.push(format!(
                    "[Sound of type {}, {} bytes in base64]",
                    audio.mime_type,
                    audio.data.len()
                ));
            }
            ContentBlock::Resource(resource) => parts.push(resource_text(resource.resource, &mut images)),
            ContentBlock::ResourceLink(link) => {
                let title = link.title.as_deref().unwrap_or(&link.name);
                parts.push(format!("[Resource {}: {title}]", link.uri));
            }
            other => parts.push(serde_json::to_string(&other).unwrap_or_default()),
        }
    }
    (parts.join("\n"), images)
}

/// The contents of a resource as text; a picture joins the others.
pub(crate) fn resource_text(resource: ResourceContents, images: &mut Vec<Image>) -> String {
    match resource {
        ResourceContents::TextResourceContents { uri, text, .. } => format!("[Resource {uri}]\n{text}"),
        ResourceContents::BlobResourceContents { uri, mime_type, blob, .. } => {
            let kind = mime_type.unwrap_or_else(|| "an unknown type".to_owned());
            match Image::of_base64(&kind, &blob) {
                Ok(image) if images.len() < MAX_IMAGES => {
                    images.push(image);
                    format!("[Resource {uri}: the picture beside this]")
                }
                Ok(_) | Err(_) => format!("[Resource {uri}: {kind}, {} bytes in base64]", blob.len()),
            }
        }
        other => serde_json::to_string(&other).unwrap_or_default(),
    }
}

/// A text of as many tokens as may be, with where the rest is.
pub(crate) fn bounded(text: String, bounds: &ResultBounds<'_>) -> String {
    let tokens = text.chars().count().div_ceil(CHARS_PER_TOKEN);
    if tokens <= WARN_TOKENS.min(bounds.tokens) {
        return text;
    }
    if tokens <= bounds.tokens {
        return format!(
            "{text}\n[This is a large result, about {tokens} tokens: ask for less where you can]"
        );
    }
    let end = text.char_indices().nth(bounds.tokens * CHARS_PER_TOKEN).map_or(text.len(), |(at, _)| at);
    let mut cut = text[..end].to_owned();
    let file = bounds.outputs.and_then(|outputs| outputs.keep(bounds.call, &text));
    let _ = write!(cut, "\n[Cut off: about {tokens} tokens in all, of which {} are shown. ", bounds.tokens);
    match file {
        Some(file) => {
            let _ = write!(cut, "The whole result is in {}; read the parts you need.]", file.path);
        }
        None => cut.push_str("Ask for less in one call.]"),
    }
    cut
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use kode_base::paths::AbsPath;

    fn result(value: serde_json::Value) -> CallToolResult {
        serde_json::from_value(value).unwrap()
    }

    fn plain(value: serde_json::Value) -> Result<ToolOutput, ToolError> {
        let call = CallId::generate();
        output("s:t", result(value), &ResultBounds { tokens: 25_000, outputs: None, call: &call })
    }

    #[test]
    fn every_kind_of_content_is_reported() {
        let pixel = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
        let output = plain(json!({ "content": [
            { "type": "text", "text": "one" },
            { "type": "image", "data": pixel, "mimeType": "image/png" },
            { "type": "image", "data": "AAAA", "mimeType": "image/png" },
            { "type": "audio", "data": "AAAA", "mimeType": "audio/wav" },
            { "type": "resource", "resource": { "uri": "x://a", "text": "inside" } },
            { "type": "resource_link", "uri": "x://b", "name": "b" },
        ], "structuredContent": { "n": 1 } }))
        .unwrap();
        assert_eq!(output.images.len(), 1);
        assert_eq!(output.structured, Some(json!({ "n": 1 })));
        for said in ["one", "cannot be shown", "audio/wav", "[Resource x://a]\ninside", "[Resource x://b: b]"]
        {
            assert!(output.model_text.contains(said), "{said}: {}", output.model_text);
        }
    }

    #[test]
    fn a_result_without_text_shows_its_structure_or_says_that_it_is_done() {
        assert_eq!(
            plain(json!({ "content": [], "structuredContent": { "n": 1 } })).unwrap().model_text,
            r#"{"n":1}"#
        );
        assert_eq!(plain(json!({ "content": [] })).unwrap().model_text, "s:t is done; it gave no text.");
    }

    #[test]
    fn an_error_of_the_server_is_one_of_the_call() {
        let error =
            plain(json!({ "isError": true, "content": [{ "type": "text", "text": "no such file" }] }))
                .unwrap_err();
        assert_eq!((error.kind, error.message.as_str()), (ToolErrorKind::Failed, "no such file"));
        assert!(
            plain(json!({ "isError": true, "content": [] })).unwrap_err().message.contains("did not say why")
        );
    }

    #[test]
    fn what_is_too_much_is_cut_and_all_of_it_is_in_a_file() {
        let folder = tempfile::tempdir().unwrap();
        let outputs = Arc::new(Outputs::new(AbsPath::new(folder.path().join("output")).unwrap()));
        let call = CallId::generate();
        let bounds = ResultBounds { tokens: 100, outputs: Some(&outputs), call: &call };
        let text = "ä".repeat(100 * CHARS_PER_TOKEN + 1);
        let cut = bounded(text.clone(), &bounds);
        assert!(cut.starts_with(&"ä".repeat(100 * CHARS_PER_TOKEN)) && cut.contains("Cut off"));
        let file = outputs.path(&call);
        assert!(cut.contains(&file.to_string()));
        assert_eq!(std::fs::read_to_string(file).unwrap(), text);
    }
}
