//! The attachments of a prompt as blocks for the model, read when the turn of the prompt begins.
//!
//! Rule: an attachment that cannot be read is named with the reason, and never keeps the prompt from its turn. The
//! attachments of one prompt are bounded in size and in time.

use std::time::Duration;

use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use crate::conversation::Conversation;
use crate::core::thread::ThreadHandle;
use crate::input::InputReader;
use crate::input::look_up::{FoundPart, LookUp};
use crate::input::mention::{Mention, MentionTarget, mentions};
use crate::instructions::FolderInstructions;
use kode_base::ids::{ItemId, TurnId};
use kode_base::paths::{AbsPath, Target};
use kode_model::Block;
use kode_model::image::{MAX_ALL_IMAGES_BYTES, MAX_IMAGES};
use kode_record::event::NoticeLevel;
use kode_record::prompt::{Attachment, AttachmentKind, PromptPart};
use kode_record::record::Record;

/// The most bytes of text that go with one prompt.
const MAX_TOTAL_BYTES: usize = 256 << 10;

/// The smallest room in which anything is attached, in bytes.
const MIN_ROOM: usize = 512;

/// The most time to read one attachment.
const LOOK_UP_TIME: Duration = Duration::from_secs(10);

/// The most time to read all attachments of a prompt.
const ATTACH_TIME: Duration = Duration::from_secs(30);

/// The attachments of a prompt, read so far.
#[derive(Debug, Default)]
struct Attachments {
    content: Vec<Block>,
    shown: Vec<Attachment>,
    /// The folders whose instructions are in `content`.
    instructed: Vec<AbsPath>,
    images: usize,
    image_bytes: u64,
    bytes: usize,
}

impl InputReader {
    /// Reads the attachments of a prompt and records them behind it; `item` is the prompt in the turn. `input` are its text,
    /// whose mentions are attachments as well, and its parts.
    pub(crate) async fn attach(
        &self,
        turn: &TurnId,
        item: &ItemId,
        input: (&str, &[PromptPart]),
        cancel: &CancellationToken,
    ) {
        let mut gathered = Attachments::default();
        tokio::select! {
            biased;
            () = cancel.cancelled() => return,
            over = timeout(ATTACH_TIME, self.gather(input, cancel, &mut gathered)) => if over.is_err() {
                tracing::warn!("the attachments of a prompt were not read in time");
            },
        }
        let Attachments { content, shown, instructed, .. } = gathered;
        // An empty result is recorded as well: otherwise a resume takes the parts for unread ones.
        if content.is_empty() && shown.is_empty() && input.1.is_empty() {
            return;
        }
        let problems: Vec<_> = shown
            .iter()
            .filter_map(|one| Some(format!("{}: {}", one.label, one.problem.as_ref()?)))
            .collect();
        let (of, item_id) = (turn.clone(), item.clone());
        self.core.commit(Record::Attached { turn: of, item: item_id, content, shown, instructed });
        if !problems.is_empty() {
            let text = format!("Not attached: {}.", problems.join("; "));
            ThreadHandle::main(&self.core).notice(turn, NoticeLevel::Warning, text, None);
        }
    }

    /// The things that a text points at, as one text for the model; `None` if none exist.
    pub(crate) async fn mentioned(&self, text: &str, cancel: &CancellationToken) -> Option<String> {
        let mut gathered = Attachments::default();
        tokio::select! {
            biased;
            () = cancel.cancelled() => return None,
            over = timeout(ATTACH_TIME, self.gather((text, &[]), cancel, &mut gathered)) => if over.is_err() {
                tracing::warn!("the mentions of a text were not read in time");
            },
        }
        let texts = gathered.content.into_iter().filter_map(|block| match block {
            Block::Text { text } => Some(text),
            _ => None,
        });
        let texts: Vec<_> = texts.collect();
        (!texts.is_empty()).then(|| texts.join("\n\n"))
    }

    async fn gather(
        &self,
        (text, parts): (&str, &[PromptPart]),
        cancel: &CancellationToken,
        gathered: &mut Attachments,
    ) {
        let mut wanted: Vec<(PromptPart, bool)> = Vec::new();
        for part in parts {
            if !wanted.iter().any(|(known, _)| known == part) {
                wanted.push((part.clone(), true));
            }
        }
        for mention in mentions(text) {
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
        let conversation = Conversation::main(&self.core, &self.environment);
        let look_up = LookUp::new(self, cancel);
        for (part, is_certain) in wanted {
            let room = MAX_TOTAL_BYTES.saturating_sub(gathered.bytes);
            let is_image = matches!(part, PromptPart::Image(_));
            let found = if room < MIN_ROOM && !is_image {
                Some(FoundPart::problem(
                    look_up.named(&part),
                    "there is no room for more; name less, or parts of it",
                ))
            } else {
                match timeout(LOOK_UP_TIME, look_up.find(&part, room)).await {
                    Ok(found) => found,
                    Err(_) => Some(FoundPart::problem(look_up.named(&part), "it took too long")),
                }
            };
            match found {
                Some(found) => {
                    let is_read = found.shown.kind == AttachmentKind::File && found.shown.problem.is_none();
                    gathered.take(found);
                    if let (PromptPart::Mention { target, .. }, true) = (&part, is_read)
                        && let Some(FolderInstructions { text, folders }) =
                            self.instructions.beside(&conversation, target).await
                    {
                        gathered.content.push(Block::Text { text });
                        gathered.instructed.extend(folders);
                    }
                }
                None if is_certain && !matches!(part, PromptPart::Editor(_)) => {
                    gathered.take(FoundPart::problem(look_up.named(&part), "nothing was found"));
                }
                None => {}
            }
        }
    }

    /// The part that a mention names; `None` for an unknown name.
    async fn part_of(&self, mention: &Mention) -> Option<PromptPart> {
        Some(match &mention.named {
            MentionTarget::Path { path, lines } => {
                PromptPart::Mention { target: self.existing(path).await?, lines: *lines }
            }
            MentionTarget::Symbol(name) => {
                PromptPart::Symbol { name: name.clone(), target: None, lines: None }
            }
            MentionTarget::Diagnostics(None) => {
                PromptPart::Diagnostics { target: None, lines: None, message: None }
            }
            MentionTarget::Diagnostics(Some(path)) => PromptPart::Diagnostics {
                target: Some(self.existing(path).await?),
                lines: None,
                message: None,
            },
            MentionTarget::Diff(of) => PromptPart::Diff { of: of.clone() },
            MentionTarget::Session(session) => PromptPart::Session { session: session.clone() },
            // Without such a server it is a plain word.
            MentionTarget::Resource { server, uri } => {
                self.servers.all().info(server).ok()?;
                PromptPart::Resource { server: server.clone(), uri: uri.clone() }
            }
        })
    }

    /// The file, folder or document of a name, from the working directory or from another folder of the workspace.
    async fn existing(&self, path: &str) -> Option<Target> {
        let target = self.environment.workspace.resolve(path).ok()?;
        let Target::File(first) = &target else {
            return self.environment.workspace.open_document(&target).await.is_some().then_some(target);
        };
        let others = self.environment.workspace.roots().iter().map(|root| root.join(path));
        for candidate in [first.clone()].into_iter().chain(others) {
            let on_disk = tokio::fs::metadata(candidate.as_path()).await.is_ok();
            let candidate = Target::File(candidate);
            if on_disk || self.environment.workspace.open_document(&candidate).await.is_some() {
                return Some(candidate);
            }
        }
        None
    }
}

impl Attachments {
    fn take(&mut self, found: FoundPart) {
        let FoundPart { shown, blocks } = found;
        let sizes = blocks
            .iter()
            .filter_map(|block| if let Block::Image(image) = block { Some(image.size()) } else { None });
        let (images, image_bytes) = sizes.fold((0, 0), |(count, all), size| (count + 1, all + size));
        let problem = if self.images + images > MAX_IMAGES {
            Some(format!("a prompt may have {MAX_IMAGES} images"))
        } else if self.image_bytes + image_bytes > MAX_ALL_IMAGES_BYTES {
            Some(format!("the images of a prompt may have {MAX_ALL_IMAGES_BYTES} bytes together"))
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
        let mut gathered = Attachments::default();
        for _ in 0..5 {
            let shown =
                Attachment { problem: None, ..Attachment::missing(AttachmentKind::Image, "image/png", "") };
            gathered.take(FoundPart { shown, blocks: vec![Block::Image(image.clone())] });
        }
        let refused: Vec<_> = gathered.shown.iter().map(|one| one.problem.is_some()).collect();
        assert_eq!((gathered.content.len(), refused), (4, vec![false, false, false, false, true]));
        assert!(gathered.shown[4].problem.as_ref().unwrap().contains("20971520 bytes together"));
    }
}
