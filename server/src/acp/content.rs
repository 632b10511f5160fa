//! The content blocks of a prompt as a prompt of the engine.
//!
//! Rule: text is the prompt; a link to a file is a mention beside it, and embedded text goes with the prompt under its address.
//! Text that a client adds to a command of the user is no argument of it. A block that cannot be read is refused with its number
//! and its type.

use agent_client_protocol_schema::v1::{
    ContentBlock, EmbeddedResourceResource, Error, ResourceLink, TextResourceContents,
};
use kode_engine::agent::prompt::Prompt;
use kode_engine::base::paths::{AbsPath, Target};
use kode_engine::model::Image;
use kode_engine::model::image::{MAX_ALL_IMAGES_BYTES, MAX_IMAGES};
use kode_engine::record::prompt::{LineSpan, PromptPart};
use url::Url;

use super::error;
use crate::documents::file_path;

/// The prompt in these blocks.
///
/// # Errors
/// A block that is not supported, or an image that cannot be read.
pub(super) fn prompt(blocks: Vec<ContentBlock>) -> Result<Prompt, Error> {
    let mut reader = BlockReader::default();
    for (at, block) in blocks.into_iter().enumerate() {
        reader.block(at, block)?;
    }
    Ok(Prompt::new(reader.text, reader.parts))
}

#[derive(Default)]
struct BlockReader {
    text: String,
    /// Whether the block before was a text.
    is_after_text: bool,
    parts: Vec<PromptPart>,
    images: usize,
    image_bytes: u64,
}

impl BlockReader {
    fn block(&mut self, at: usize, block: ContentBlock) -> Result<(), Error> {
        let is_after_text =
            std::mem::replace(&mut self.is_after_text, matches!(block, ContentBlock::Text(_)));
        match block {
            ContentBlock::Text(text) if is_after_text && self.is_whole_command() => {
                self.parts.push(PromptPart::Pasted { text: text.text });
            }
            ContentBlock::Text(text) if is_after_text => self.paragraph(&text.text),
            ContentBlock::Text(text) => self.add(&text.text),
            ContentBlock::Image(image) => self.image(at, &image.mime_type, &image.data)?,
            ContentBlock::ResourceLink(link) => self.link(&link),
            ContentBlock::Resource(embedded) => match embedded.resource {
                EmbeddedResourceResource::TextResourceContents(resource) => self.resource(&resource),
                EmbeddedResourceResource::BlobResourceContents(resource) => {
                    let kind = resource.mime_type.as_deref().unwrap_or("application/octet-stream");
                    if !kind.starts_with("image/") {
                        return Err(unsupported(at, &format!("a binary resource of type `{kind}`")));
                    }
                    self.image(at, kind, &resource.blob)?;
                }
                _ => return Err(unsupported(at, "a resource of an unknown form")),
            },
            ContentBlock::Audio(_) => return Err(unsupported(at, "audio")),
            _ => return Err(unsupported(at, "a block of an unknown type")),
        }
        Ok(())
    }

    fn image(&mut self, at: usize, kind: &str, data: &str) -> Result<(), Error> {
        self.images += 1;
        if self.images > MAX_IMAGES {
            return Err(error::invalid_params(&format!("A prompt may have {MAX_IMAGES} images.")));
        }
        let image = Image::of_base64(kind, data).map_err(|bad| {
            error::invalid_params(&format!("prompt[{at}]: the image cannot be sent: {bad}."))
        })?;
        self.image_bytes += image.size();
        if self.image_bytes > MAX_ALL_IMAGES_BYTES {
            let message = format!("The images of a prompt may have {MAX_ALL_IMAGES_BYTES} bytes together.");
            return Err(error::invalid_params(&message));
        }
        self.parts.push(PromptPart::Image(image));
        Ok(())
    }

    /// Whether the text so far is a command that nothing more is to be an argument of.
    fn is_whole_command(&self) -> bool {
        self.text.starts_with('/') && !self.text.ends_with(char::is_whitespace)
    }

    /// Adds a text that follows a text.
    fn paragraph(&mut self, text: &str) {
        if !self.text.ends_with('\n') && !text.starts_with('\n') {
            self.text.push('\n');
        }
        self.text.push_str(text);
    }

    /// Adds to the text, behind a blank where two words would become one.
    fn add(&mut self, text: &str) {
        let ends_word = |before: char| before.is_alphanumeric() || before == '>';
        let begins_word = |after: char| after.is_alphanumeric() || after == '<';
        if self.text.ends_with(ends_word) && text.starts_with(begins_word) {
            self.text.push(' ');
        }
        self.text.push_str(text);
    }

    /// Adds the name of a block beside the text.
    fn name(&mut self, name: &str) {
        if !self.is_whole_command() {
            self.add(name);
        }
    }

    /// Adds a link: a file of this machine is attached, and any other address is named in the text.
    fn link(&mut self, link: &ResourceLink) {
        match file(&link.uri) {
            Some((path, lines)) => {
                self.name(&link.name);
                self.parts.push(PromptPart::Mention { target: Target::File(path), lines });
            }
            None => self.add(&link.uri),
        }
    }

    fn resource(&mut self, resource: &TextResourceContents) {
        let shown = match file(&resource.uri) {
            Some((path, _)) => path.file_name(),
            None => resource.uri.clone(),
        };
        self.name(&shown);
        self.parts.push(PromptPart::Pasted { text: format!("{}\n\n{}", resource.uri, resource.text) });
    }
}

fn unsupported(at: usize, what: &str) -> Error {
    error::invalid_params(&format!(
        "prompt[{at}] is {what}, which is not supported. Send text, an image or a link."
    ))
}

/// The file behind an address, and the lines that its fragment names: `#L3`, `#L3:9` or `#L3-L9`.
fn file(uri: &str) -> Option<(AbsPath, Option<LineSpan>)> {
    let url = Url::parse(uri).ok()?;
    let mut whole = url.clone();
    whole.set_fragment(None);
    whole.set_query(None);
    Some((file_path(&whole)?, url.fragment().and_then(lines)))
}

fn lines(fragment: &str) -> Option<LineSpan> {
    let fragment = fragment.strip_prefix('L')?;
    let (first, last) = fragment.split_once([':', '-']).unwrap_or((fragment, fragment));
    let (first, last) = (first.parse().ok()?, last.trim_start_matches('L').parse().ok()?);
    (first > 0 && last >= first).then_some(LineSpan { first, last })
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn read(blocks: Value) -> Result<Prompt, Error> {
        prompt(serde_json::from_value(blocks).unwrap())
    }

    #[test]
    fn links_and_resources_go_beside_the_text() {
        let prompt = read(json!([
            { "type": "text", "text": "Fix " },
            { "type": "resource_link", "name": "a b.rs", "uri": "file:///w/a%20b.rs#L3:9" },
            { "type": "text", "text": " as in " },
            { "type": "resource", "resource": { "uri": "zed:///thread/1", "text": "a thread" } },
            { "type": "resource_link", "name": "page", "uri": "https://example.com/x" },
        ]))
        .unwrap();
        assert_eq!(prompt.text(), "Fix a b.rs as in zed:///thread/1 https://example.com/x");
        let target = Target::File(AbsPath::new("/w/a b.rs").unwrap());
        assert_eq!(
            prompt.parts(),
            [
                PromptPart::Mention { target, lines: Some(LineSpan { first: 3, last: 9 }) },
                PromptPart::Pasted { text: "zed:///thread/1\n\na thread".into() },
            ]
        );
    }

    #[test]
    fn blocks_of_text_do_not_run_together() {
        let text = |text: &str| json!({ "type": "text", "text": text });
        let link = json!({ "type": "resource_link", "name": "a.rs", "uri": "file:///w/a.rs" });
        for (blocks, expected) in [
            (json!([text("one"), text("two")]), "one\ntwo"),
            (json!([text("one\n"), text("two")]), "one\ntwo"),
            (json!([link, text("<context>x</context>"), link]), "a.rs <context>x</context> a.rs"),
            (json!([text("Fix ("), link, text(")."), link]), "Fix (a.rs).a.rs"),
        ] {
            assert_eq!(read(blocks).unwrap().text(), expected);
        }
    }

    #[test]
    fn what_a_client_adds_to_a_command_is_beside_it() {
        let text = |text: &str| json!({ "type": "text", "text": text });
        let link = json!({ "type": "resource_link", "name": "a.rs", "uri": "file:///w/a.rs" });
        let prompt = read(json!([text("/undo 1"), text("<environment>x</environment>"), link])).unwrap();
        assert_eq!((prompt.text(), prompt.parts().len()), ("/undo 1", 2));
        // A link that is typed into a command is an argument.
        let prompt = read(json!([text("/review "), link, text(" again")])).unwrap();
        assert_eq!((prompt.text(), prompt.parts().len()), ("/review a.rs again", 1));
    }

    #[test]
    fn a_block_that_cannot_be_read_is_refused_by_its_name() {
        let audio = json!([{ "type": "text", "text": "x" }, { "type": "audio", "data": "", "mimeType": "audio/wav" }]);
        assert!(read(audio).unwrap_err().message.starts_with("prompt[1] is audio"));
        let image = json!([{ "type": "image", "data": "AAAA", "mimeType": "image/png" }]);
        assert!(read(image).unwrap_err().message.contains("prompt[0]: the image"));
    }

    #[test]
    fn lines_are_read_in_the_forms_of_clients() {
        let span = |first, last| Some(LineSpan { first, last });
        for (fragment, expected) in [
            ("L3", span(3, 3)),
            ("L3:9", span(3, 9)),
            ("L3-L9", span(3, 9)),
            ("L9:3", None),
            ("L0", None),
            ("section", None),
        ] {
            assert_eq!(lines(fragment), expected, "{fragment}");
        }
    }
}
