//! Prompts as clients hand them in, and their attachments.
//!
//! Rule: what the user typed is the prompt; what they point at goes beside it and is looked up by the engine. A part
//! that cannot be one is refused with its place.

use kode_engine::agent::prompt::Prompt;
use kode_engine::base::paths::Target;
use kode_engine::model::Image;
use kode_engine::model::image::{MAX_ALL_IMAGES_BYTES, MAX_IMAGES};
use kode_engine::record::prompt::{Attachment, AttachmentKind, DiffOf, EditorContext, LineSpan, PromptPart};
use kode_protocol as wire;
use lsp_types::Url;

use crate::convert::UriNames;
use crate::documents;

/// A text of more characters than this goes with the prompt instead of being it.
const PASTED_CHARS: usize = 10_000;

/// A text of more lines than this does too.
const PASTED_LINES: usize = 200;

/// A part of a prompt that cannot be one.
#[derive(Debug, PartialEq, Eq)]
pub struct InvalidPart {
    /// Where it is in the parameters.
    pub path: String,
    /// Its problems.
    pub message: String,
}

/// A prompt as it was submitted.
///
/// # Errors
/// [`InvalidPart`]: an invalid URI, an invalid image, too many images, or too large ones together.
pub fn prompt(
    input: Vec<wire::InputPart>,
    context: Option<wire::EditorContext>,
) -> Result<Prompt, InvalidPart> {
    let (mut texts, mut parts) = (Vec::new(), Vec::new());
    let (mut images, mut image_bytes) = (0, 0);
    for (at, input) in input.into_iter().enumerate() {
        let at = format!("input[{at}]");
        parts.push(match input {
            wire::InputPart::Text(part) if is_pasted(&part.text) => PromptPart::Pasted { text: part.text },
            wire::InputPart::Text(part) => {
                texts.push(part.text);
                continue;
            }
            wire::InputPart::Mention(part) => {
                PromptPart::Mention { target: target(&at, &part.uri)?, lines: part.range.map(lines) }
            }
            wire::InputPart::Selection(part) => PromptPart::Selection {
                target: target(&at, &part.uri)?,
                lines: lines(part.range),
                text: part.text,
            },
            wire::InputPart::Symbol(part) => PromptPart::Symbol {
                name: part.name,
                target: part.uri.map(|uri| target(&at, &uri)).transpose()?,
                lines: part.range.map(lines),
            },
            wire::InputPart::Diagnostics(part) => PromptPart::Diagnostics {
                target: part.uri.map(|uri| target(&at, &uri)).transpose()?,
                lines: part.range.map(lines),
                message: part.message,
            },
            wire::InputPart::Diff(part) => PromptPart::Diff {
                of: match (part.revision, part.staged) {
                    (Some(revision), _) => DiffOf::Revision(revision),
                    (None, true) => DiffOf::Staged,
                    (None, false) => DiffOf::Head,
                },
            },
            wire::InputPart::Session(part) => PromptPart::Session { session: part.session },
            wire::InputPart::Image(part) => {
                images += 1;
                if images > MAX_IMAGES {
                    let message = format!("a prompt may have {MAX_IMAGES} images");
                    return Err(InvalidPart { path: at, message });
                }
                let image = Image::of_base64(&part.media_type, &part.data).map_err(|error| InvalidPart {
                    path: format!("{at}.data"),
                    message: format!("the image cannot be sent: {error}"),
                })?;
                image_bytes += image.size();
                if image_bytes > MAX_ALL_IMAGES_BYTES {
                    let message =
                        format!("the images of a prompt may have {MAX_ALL_IMAGES_BYTES} bytes together");
                    return Err(InvalidPart { path: at, message });
                }
                PromptPart::Image(image)
            }
            wire::InputPart::Pasted(part) => PromptPart::Pasted { text: part.text },
        });
    }
    parts.extend(context.map(editor).transpose()?);
    if texts.iter().all(|text| text.trim().is_empty())
        && let Some(PromptPart::Pasted { text }) =
            parts.iter().find(|part| matches!(part, PromptPart::Pasted { .. }))
    {
        // A prompt needs a name for people.
        texts = vec![format!("[Pasted text, {} lines]", text.lines().count())];
    }
    Ok(Prompt::new(texts.join("\n"), parts))
}

/// Whether a text is too long to have been typed.
fn is_pasted(text: &str) -> bool {
    text.lines().nth(PASTED_LINES).is_some() || text.chars().nth(PASTED_CHARS).is_some()
}

fn editor(context: wire::EditorContext) -> Result<PromptPart, InvalidPart> {
    let active = context.active_uri.map(|uri| target("context.activeUri", &uri)).transpose()?;
    let open = context.open_uris.iter().enumerate();
    let open: Result<_, _> = open.map(|(at, uri)| named(&format!("context.openUris[{at}]"), uri)).collect();
    let context = EditorContext {
        active,
        selection: context.selection.map(lines),
        selected: context.selected_text.unwrap_or_default(),
        visible: context.visible_range.map(lines),
        open: open?,
    };
    Ok(PromptPart::Editor(context.bounded()))
}

fn target(path: &str, uri: &wire::Uri) -> Result<Target, InvalidPart> {
    let path = if path.starts_with("context") { path.to_owned() } else { format!("{path}.uri") };
    named(&path, uri)
}

/// The file or document that a parameter names.
fn named(path: &str, uri: &wire::Uri) -> Result<Target, InvalidPart> {
    let parsed = Url::parse(uri.as_str());
    parsed.map(|uri| documents::target(&uri)).map_err(|reason| InvalidPart {
        path: path.to_owned(),
        message: format!("`{uri}` is not a URI: {reason}"),
    })
}

/// Lines as people and models count them, from 1.
#[must_use]
pub fn lines(range: lsp_types::Range) -> LineSpan {
    let first = range.start.line.saturating_add(1);
    // A range that ends at the start of a line does not contain that line.
    let last = if range.end.character == 0 && range.end.line > range.start.line {
        range.end.line
    } else {
        range.end.line.saturating_add(1)
    };
    LineSpan { first, last: last.max(first) }
}

/// An attachment of a prompt.
#[must_use]
pub fn attachment(attachment: Attachment, names: UriNames<'_>) -> wire::Attachment {
    wire::Attachment {
        kind: kind(attachment.kind),
        label: attachment.label,
        uri: attachment.path.map(|path| names.file(path)),
        lines: attachment.lines,
        bytes: attachment.bytes,
        cut: attachment.cut,
        problem: attachment.problem,
    }
}

fn kind(kind: AttachmentKind) -> wire::AttachmentKind {
    match kind {
        AttachmentKind::File => wire::AttachmentKind::File,
        AttachmentKind::Folder => wire::AttachmentKind::Folder,
        AttachmentKind::Symbol => wire::AttachmentKind::Symbol,
        AttachmentKind::Diagnostics => wire::AttachmentKind::Diagnostics,
        AttachmentKind::Diff => wire::AttachmentKind::Diff,
        AttachmentKind::Session => wire::AttachmentKind::Session,
        AttachmentKind::Selection => wire::AttachmentKind::Selection,
        AttachmentKind::Image => wire::AttachmentKind::Image,
        AttachmentKind::Pasted => wire::AttachmentKind::Pasted,
        AttachmentKind::Editor => wire::AttachmentKind::Editor,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(input: serde_json::Value, context: serde_json::Value) -> Result<Prompt, InvalidPart> {
        prompt(serde_json::from_value(input).unwrap(), serde_json::from_value(context).unwrap())
    }

    #[test]
    fn what_the_user_points_at_goes_beside_what_they_typed() {
        let range = json!({ "start": { "line": 1, "character": 0 }, "end": { "line": 3, "character": 0 } });
        let input = json!([
            { "type": "text", "text": "fix" },
            { "type": "mention", "uri": "file:///w/a%20b.rs", "range": range },
            { "type": "selection", "uri": "untitled:Untitled-1", "range": range, "text": "let x;" },
            { "type": "diff", "staged": true },
            { "type": "text", "text": "this" },
        ]);
        let context =
            json!({ "activeUri": "file:///w/c.rs", "openUris": ["file:///w/c.rs", "file:///w/d.rs"] });
        let prompt = read(input, context).unwrap();
        assert_eq!(prompt.text(), "fix\nthis");
        let file = |path| Target::File(kode_engine::base::paths::AbsPath::new(path).unwrap());
        let lines = LineSpan { first: 2, last: 3 };
        let untitled = Target::Untitled("untitled:Untitled-1".into());
        assert_eq!(
            prompt.parts(),
            [
                PromptPart::Mention { target: file("/w/a b.rs"), lines: Some(lines) },
                PromptPart::Selection { target: untitled, lines, text: "let x;".into() },
                PromptPart::Diff { of: DiffOf::Staged },
                PromptPart::Editor(EditorContext {
                    active: Some(file("/w/c.rs")),
                    open: vec![file("/w/c.rs"), file("/w/d.rs")],
                    ..EditorContext::default()
                }),
            ]
        );
    }

    #[test]
    fn a_text_too_long_to_be_typed_goes_beside_the_prompt() {
        let log = "a line\n".repeat(PASTED_LINES + 1);
        let alone = read(json!([{ "type": "text", "text": log }]), json!(null)).unwrap();
        assert_eq!(alone.text(), "[Pasted text, 201 lines]");
        assert_eq!(alone.parts(), [PromptPart::Pasted { text: log.clone() }]);
        let both = json!([{ "type": "text", "text": "why?" }, { "type": "text", "text": log }]);
        assert_eq!(read(both, json!(null)).unwrap().text(), "why?");
        let typed = "a line\n".repeat(PASTED_LINES);
        assert_eq!(read(json!([{ "type": "text", "text": typed }]), json!(null)).unwrap().parts(), []);
    }

    #[test]
    fn a_part_that_cannot_be_one_is_refused_with_its_place() {
        let picture = json!({ "type": "image", "mediaType": "image/png", "data": "iVBORw0KGgo=" });
        let text = json!({ "type": "text", "text": "see" });
        let wrong = |input: serde_json::Value| read(input, json!(null)).unwrap_err().path;
        assert_eq!(wrong(json!([text, { "type": "mention", "uri": "no uri" }])), "input[1].uri");
        let gif = json!({ "type": "image", "mediaType": "image/gif", "data": "iVBORw0KGgo=" });
        assert_eq!(wrong(json!([gif])), "input[0].data");
        assert_eq!(wrong(json!(vec![picture.clone(); MAX_IMAGES + 1])), format!("input[{MAX_IMAGES}]"));
        assert!(read(json!(vec![picture; MAX_IMAGES]), json!(null)).is_ok());
        // Five mebibytes each, of which four are as many as there may be.
        let data = format!("iVBORw0KGgoA{}", "AAAA".repeat((5 << 20) / 3 - 3));
        let large = json!({ "type": "image", "mediaType": "image/png", "data": data });
        assert!(read(json!(vec![large.clone(); 4]), json!(null)).is_ok());
        let refused = read(json!(vec![large; 5]), json!(null)).unwrap_err();
        assert_eq!(refused.path, "input[4]");
        assert!(refused.message.contains("20971520 bytes together"), "{}", refused.message);
        let context = read(json!([]), json!({ "openUris": ["file:///a", "no uri"] })).unwrap_err();
        assert_eq!(context.path, "context.openUris[1]");
    }
}
