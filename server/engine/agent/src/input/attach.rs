//! Turns what goes with a prompt into what the model reads, when the turn of the prompt begins.
//!
//! Rule: whatever cannot be attached is named with the reason, and never keeps the prompt from its turn; all that goes
//! with one prompt is bounded in size and in time.

use std::time::Duration;

use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use crate::input::Prompt;
use crate::input::look_up::{Found, LookUp};
use crate::input::mention::{Mention, Named, mentions};
use crate::session::Session;
use crate::session::conversation::Conversation;
use crate::session::standing::Beside;
use kode_base::ids::{ItemId, TurnId};
use kode_base::paths::{AbsPath, Target};
use kode_model::Block;
use kode_model::image::{MAX_ALL_IMAGES_BYTES, MAX_IMAGES};
use kode_record::event::NoticeLevel;
use kode_record::prompt::{Attachment, AttachmentKind, PromptPart};
use kode_record::record::Record;

/// The most bytes of text that go with one prompt.
const MAX_TOTAL_BYTES: usize = 256 << 10;

/// With less room than this nothing more is attached.
const MIN_ROOM: usize = 512;

/// So long one thing is looked up.
const LOOK_UP_TIME: Duration = Duration::from_secs(10);

/// So long all of it is looked up.
const ATTACH_TIME: Duration = Duration::from_secs(30);

/// What became of what goes with a prompt.
#[derive(Debug, Default)]
struct Gathered {
    content: Vec<Block>,
    shown: Vec<Attachment>,
    /// The folders whose instructions are in `content`.
    instructed: Vec<AbsPath>,
    images: usize,
    image_bytes: u64,
    bytes: usize,
}

impl Session {
    /// Looks up what goes with a prompt and enters it behind the prompt, which is the item `item` of the turn.
    pub(crate) async fn attach(
        &self,
        turn: &TurnId,
        item: &ItemId,
        prompt: &Prompt,
        cancel: &CancellationToken,
    ) {
        let mut gathered = Gathered::default();
        tokio::select! {
            biased;
            () = cancel.cancelled() => return,
            over = timeout(ATTACH_TIME, self.gather(prompt, cancel, &mut gathered)) => if over.is_err() {
                tracing::warn!("not all that goes with a prompt was found in time");
            },
        }
        let Gathered { content, shown, instructed, .. } = gathered;
        // That nothing of it is attached is told as well: else a resume takes it for something nobody has looked up.
        if content.is_empty() && shown.is_empty() && prompt.parts.is_empty() {
            return;
        }
        let problems: Vec<_> = shown
            .iter()
            .filter_map(|one| Some(format!("{}: {}", one.label, one.problem.as_ref()?)))
            .collect();
        let (of, item_id) = (turn.clone(), item.clone());
        self.commit(Record::Attached { turn: of, item: item_id, content, shown, instructed });
        if !problems.is_empty() {
            let text = format!("Not attached: {}.", problems.join("; "));
            Conversation::main(self).notice(turn, NoticeLevel::Warning, text, None);
        }
    }

    /// What a text points at, as one text for the model; `None` when that is nothing.
    pub(crate) async fn mentioned(&self, text: &str, cancel: &CancellationToken) -> Option<String> {
        let mut gathered = Gathered::default();
        let prompt = Prompt::text(text);
        tokio::select! {
            biased;
            () = cancel.cancelled() => return None,
            over = timeout(ATTACH_TIME, self.gather(&prompt, cancel, &mut gathered)) => if over.is_err() {
                tracing::warn!("not all that a text points at was found in time");
            },
        }
        let texts = gathered.content.into_iter().filter_map(|block| match block {
            Block::Text { text } => Some(text),
            _ => None,
        });
        let texts: Vec<_> = texts.collect();
        (!texts.is_empty()).then(|| texts.join("\n\n"))
    }

    async fn gather(&self, prompt: &Prompt, cancel: &CancellationToken, gathered: &mut Gathered) {
        let mut wanted: Vec<(PromptPart, bool)> = Vec::new();
        for part in &prompt.parts {
            if !wanted.iter().any(|(known, _)| known == part) {
                wanted.push((part.clone(), true));
            }
        }
        for mention in mentions(&prompt.text) {
            match self.part_of(&mention).await {
                Some(part) if wanted.iter().any(|(known, _)| *known == part) => {}
                Some(part) => wanted.push((part, false)),
                None if mention.is_quoted => {
                    let problem = "there is nothing of that name";
                    gathered.shown.push(Attachment::missing(AttachmentKind::File, &mention.written, problem));
                }
                None => {}
            }
        }
        let look_up = LookUp::new(self, cancel);
        for (part, is_certain) in wanted {
            let room = MAX_TOTAL_BYTES.saturating_sub(gathered.bytes);
            let is_image = matches!(part, PromptPart::Image(_));
            let found = if room < MIN_ROOM && !is_image {
                Some(Found::problem(
                    look_up.named(&part),
                    "there is no room for more; name less, or parts of it",
                ))
            } else {
                match timeout(LOOK_UP_TIME, look_up.find(&part, room)).await {
                    Ok(found) => found,
                    Err(_) => Some(Found::problem(look_up.named(&part), "it took too long")),
                }
            };
            match found {
                Some(found) => {
                    let is_read = found.shown.kind == AttachmentKind::File && found.shown.problem.is_none();
                    gathered.take(found);
                    if let (PromptPart::Mention { target, .. }, true) = (&part, is_read)
                        && let Some(Beside { text, folders }) =
                            self.instructions_beside(&Conversation::main(self), target).await
                    {
                        gathered.content.push(Block::Text { text });
                        gathered.instructed.extend(folders);
                    }
                }
                None if is_certain && !matches!(part, PromptPart::Editor(_)) => {
                    gathered.take(Found::problem(look_up.named(&part), "nothing was found"));
                }
                None => {}
            }
        }
    }

    /// What a mention means here; `None` when there is nothing of that name.
    async fn part_of(&self, mention: &Mention) -> Option<PromptPart> {
        Some(match &mention.named {
            Named::Path { path, lines } => {
                PromptPart::Mention { target: self.existing(path).await?, lines: *lines }
            }
            Named::Symbol(name) => PromptPart::Symbol { name: name.clone(), target: None, lines: None },
            Named::Diagnostics(None) => PromptPart::Diagnostics { target: None, lines: None, message: None },
            Named::Diagnostics(Some(path)) => PromptPart::Diagnostics {
                target: Some(self.existing(path).await?),
                lines: None,
                message: None,
            },
            Named::Diff(of) => PromptPart::Diff { of: of.clone() },
            Named::Session(session) => PromptPart::Session { session: session.clone() },
            // Without such a server it is a word like any other.
            Named::Resource { server, uri } => {
                self.servers().info(server).ok()?;
                PromptPart::Resource { server: server.clone(), uri: uri.clone() }
            }
        })
    }

    /// The file, folder or document of a name, from the working directory or from another folder of the workspace.
    async fn existing(&self, path: &str) -> Option<Target> {
        let target = self.workspace.resolve(path).ok()?;
        let Target::File(first) = &target else {
            return self.workspace.open_document(&target).await.is_some().then_some(target);
        };
        let others = self.workspace.roots().iter().map(|root| root.join(path));
        for candidate in [first.clone()].into_iter().chain(others) {
            let on_disk = tokio::fs::metadata(candidate.as_path()).await.is_ok();
            let candidate = Target::File(candidate);
            if on_disk || self.workspace.open_document(&candidate).await.is_some() {
                return Some(candidate);
            }
        }
        None
    }
}

impl Gathered {
    fn take(&mut self, found: Found) {
        let Found { shown, blocks } = found;
        let sizes = blocks
            .iter()
            .filter_map(|block| if let Block::Image(image) = block { Some(image.size()) } else { None });
        let (images, image_bytes) = sizes.fold((0, 0), |(count, all), size| (count + 1, all + size));
        let problem = if self.images + images > MAX_IMAGES {
            Some(format!("a prompt may have {MAX_IMAGES} pictures"))
        } else if self.image_bytes + image_bytes > MAX_ALL_IMAGES_BYTES {
            Some(format!("the pictures of a prompt may have {MAX_ALL_IMAGES_BYTES} bytes together"))
        } else {
            None
        };
        if problem.is_some() {
            self.shown.push(Attachment { problem, ..shown });
            return;
        }
        self.images += images;
        self.image_bytes += image_bytes;
        for block in &blocks {
            if let Block::Text { text } = block {
                self.bytes += text.len();
            }
        }
        self.content.extend(blocks);
        self.shown.push(shown);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kode_model::Image;
    use kode_model::image::MAX_IMAGE_BYTES;

    #[test]
    fn the_pictures_of_a_prompt_are_bounded_together() {
        let mut bytes = b"\x89PNG\r\n\x1a\n".to_vec();
        bytes.resize(MAX_IMAGE_BYTES, 0);
        let image = Image::of_bytes(&bytes).unwrap();
        let mut gathered = Gathered::default();
        for _ in 0..5 {
            let shown =
                Attachment { problem: None, ..Attachment::missing(AttachmentKind::Image, "image/png", "") };
            gathered.take(Found { shown, blocks: vec![Block::Image(image.clone())] });
        }
        let refused: Vec<_> = gathered.shown.iter().map(|one| one.problem.is_some()).collect();
        assert_eq!((gathered.content.len(), refused), (4, vec![false, false, false, false, true]));
        assert!(gathered.shown[4].problem.as_ref().unwrap().contains("20971520 bytes together"));
    }
}
