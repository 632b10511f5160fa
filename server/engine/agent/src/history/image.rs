//! Images that were attached to prompts, read again from the journal.
//!
//! Rule: an image is read when a client asks for it and stored nowhere else; the journal is read line by line up to the prompt.

use crate::history::SessionHistory;
use crate::history::paging::PagingError;
use kode_base::blocking;
use kode_base::ids::ItemId;
use kode_journal::JournalLines;
use kode_model::{Block, Image};
use kode_record::prompt::{Attachment, AttachmentKind};
use kode_record::record::Record;

impl SessionHistory {
    /// The image behind the attachment with this index of a prompt.
    ///
    /// # Errors
    /// [`PagingError::UnknownItem`] when the prompt has no such image, and [`PagingError::Storage`].
    pub async fn attached_image(&self, item: ItemId, index: usize) -> Result<Image, PagingError> {
        let path = self.core.journal().path().to_path_buf();
        blocking(move || {
            for line in JournalLines::<Record>::open(&path, 0)? {
                if let (_, Record::Attached { item: of, content, shown, .. }) = line?
                    && of == item
                {
                    return image_at(content, &shown, index).ok_or(PagingError::UnknownItem(item));
                }
            }
            Err(PagingError::UnknownItem(item))
        })
        .await
    }
}

/// The image of an attachment: each that is an image has one block.
fn image_at(content: Vec<Block>, shown: &[Attachment], index: usize) -> Option<Image> {
    let is_image =
        |attachment: &Attachment| attachment.kind == AttachmentKind::Image && attachment.problem.is_none();
    shown.get(index).filter(|attachment| is_image(attachment))?;
    let before = shown.iter().take(index).filter(|attachment| is_image(attachment)).count();
    let images = content.into_iter().filter_map(|block| match block {
        Block::Image(image) => Some(image),
        _ => None,
    });
    images.into_iter().nth(before)
}
