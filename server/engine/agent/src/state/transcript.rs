//! The transcript of a conversation: its newest items in memory, the older ones in pages on the session's shelf.
//!
//! Rule: it is one sequence, whatever of it is in memory; an item leaves memory when it is old and final. What memory
//! holds follows from the records alone, so that a fold from a base holds the same. Without a shelf nothing leaves memory.

use std::collections::HashMap;
use std::io;
use std::ops::Range;
use std::sync::Arc;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use kode_base::call::ToolKind;
use kode_base::ids::ItemId;
use kode_journal::{Shelf, ShelfSlot};
use kode_record::event::{CallState, Item, ItemBody};

/// The least number of newest items in memory. Small in tests, so that all of them meet items that have left it.
pub const KEPT: usize = if cfg!(test) { 32 } else { 1_000 };

/// The number of items that leave memory together.
pub const PAGE: usize = if cfg!(test) { 8 } else { 250 };

/// The number of items in memory from which on unfinished ones leave it as well.
const MOST_KEPT: usize = 8 * KEPT;

/// The items of a conversation, oldest first.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Transcript {
    older: OlderItems,
    /// The newest items.
    items: Vec<Arc<Item>>,
    /// When its first item was made.
    began: Option<Timestamp>,
    /// The index of the first item in memory.
    #[serde(skip)]
    places: HashMap<ItemId, usize>,
    /// The number of items in memory at which paging is tried again after the disk has refused it.
    #[serde(skip)]
    try_at: usize,
}

/// The items that have left memory, oldest first.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct OlderItems {
    pages: Vec<StoredPage>,
    /// How many items there are in all pages.
    count: usize,
    /// The greatest id of an item in them: most ids that are looked for are greater.
    greatest: Option<ItemId>,
    #[serde(skip)]
    shelf: Option<Arc<Shelf>>,
}

/// Items that have left memory together.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct StoredPage {
    slot: ShelfSlot,
    count: usize,
    /// The smallest and the greatest id of them.
    ids: (ItemId, ItemId),
    /// Whether one of them is a call that changed files.
    has_edits: bool,
}

/// The end of a transcript that was cut off.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct NewestItems {
    /// The rest of the page that the cut went through.
    rest: Vec<Arc<Item>>,
    pages: Vec<StoredPage>,
    items: Vec<Arc<Item>>,
}

/// A part of a transcript, which can be read without holding up the session.
#[derive(Debug)]
pub struct TranscriptPart {
    older: OlderItems,
    /// The part of the older items that is in it.
    range: Range<usize>,
    items: Vec<Arc<Item>>,
    /// Whether there are items before it.
    pub more: bool,
}

impl Transcript {
    /// Lets items leave memory for this shelf, on which those that have left it already lie.
    pub fn attach(&mut self, shelf: &Arc<Shelf>) {
        self.older.shelf = Some(Arc::clone(shelf));
        self.number();
    }

    /// The shelf, if it has one.
    #[must_use]
    pub fn shelf(&self) -> Option<&Arc<Shelf>> {
        self.older.shelf.as_ref()
    }

    /// How many items there are.
    #[must_use]
    pub fn count(&self) -> usize {
        self.older.count + self.items.len()
    }

    /// The newest items, oldest first: those that are in memory. Without a shelf these are all.
    #[must_use]
    pub fn newest(&self) -> &[Arc<Item>] {
        &self.items
    }

    /// As [`Transcript::newest`].
    #[must_use]
    pub fn into_newest(self) -> Vec<Arc<Item>> {
        self.items
    }

    /// The newest items from a place on, as far as they are in memory.
    #[must_use]
    pub fn newest_from(&self, place: usize) -> &[Arc<Item>] {
        self.items.get(place.saturating_sub(self.older.count)..).unwrap_or_default()
    }

    /// When its first item was made.
    #[must_use]
    pub fn began(&self) -> Option<Timestamp> {
        self.began
    }

    /// All items, newest first; older ones are read back as they are asked for.
    pub fn backwards(&self) -> impl Iterator<Item = Arc<Item>> {
        let older = self.older.pages.iter().rev().flat_map(|page| {
            // The shelf is marked as damaged.
            self.older.read_page(page).unwrap_or_default().into_iter().rev()
        });
        self.items.iter().rev().map(Arc::clone).chain(older)
    }

    /// An item in memory.
    #[must_use]
    pub fn get(&self, id: &ItemId) -> Option<&Arc<Item>> {
        self.items.get(self.places.get(id)?.checked_sub(self.older.count)?)
    }

    /// The number of items before one that is in memory.
    #[must_use]
    pub fn place_of(&self, id: &ItemId) -> Option<usize> {
        self.places.get(id).copied()
    }

    /// An item in memory, to be changed.
    pub fn get_mut(&mut self, id: &ItemId) -> Option<&mut Item> {
        self.slot(id).map(Arc::make_mut)
    }

    fn slot(&mut self, id: &ItemId) -> Option<&mut Arc<Item>> {
        self.items.get_mut(self.places.get(id)?.checked_sub(self.older.count)?)
    }

    /// The item at a place, read back if it has left memory.
    #[must_use]
    pub fn at(&self, place: usize) -> Option<Arc<Item>> {
        match place.checked_sub(self.older.count) {
            Some(place) => self.items.get(place).map(Arc::clone),
            None => self.older.read(place..place + 1).ok()?.pop(),
        }
    }

    /// Changes an item, wherever it is, and returns it; `None` for an unknown id.
    pub fn change(&mut self, id: &ItemId, change: impl FnOnce(&mut Item)) -> Option<Arc<Item>> {
        match self.slot(id) {
            Some(item) => {
                change(Arc::make_mut(item));
                Some(Arc::clone(item))
            }
            None => self.older.change(id, change),
        }
    }

    /// Adds an item, or replaces the one of its id.
    pub fn put(&mut self, item: Arc<Item>) {
        if let Some(known) = self.slot(&item.id) {
            *known = item;
            return;
        }
        if self.older.change(&item.id, |known| known.clone_from(&item)).is_some() {
            return;
        }
        self.add(item);
        self.make_room();
    }

    /// Whether everything needed to cut off the items from a place on can be read.
    #[must_use]
    pub fn can_split(&self, place: usize) -> bool {
        let from = place.min(self.older.count);
        self.older.read(from.saturating_sub(PAGE)..(from + 1).min(self.older.count)).is_ok()
    }

    /// Cuts off the items from a place on.
    pub fn split_off(&mut self, place: usize) -> NewestItems {
        let mut tail = NewestItems::default();
        match place.checked_sub(self.older.count) {
            Some(place) => tail.items = self.items.split_off(place.min(self.items.len())),
            None => {
                tail.items = std::mem::take(&mut self.items);
                (self.items, tail.rest, tail.pages) = self.older.split_off(place);
            }
        }
        // The newest items are searched in memory.
        while self.items.len() < PAGE
            && let Some(mut page) = self.older.take_last()
        {
            page.append(&mut self.items);
            self.items = page;
        }
        if self.count() == 0 {
            self.began = None;
        }
        self.number();
        tail
    }

    /// Puts a cut-off end behind the items there are.
    pub fn append(&mut self, tail: NewestItems) {
        let NewestItems { rest, pages, items } = tail;
        if self.count() == 0 {
            self.began = rest.first().or(items.first()).map(|item| item.timestamp);
        }
        self.items.extend(rest);
        if !pages.is_empty() {
            while !self.items.is_empty() {
                if !self.page_out(self.items.len().min(PAGE)) {
                    // Nothing is lost: the journal has it, and the shelf is damaged until it is rebuilt.
                    if let Some(shelf) = self.shelf() {
                        shelf.condemn();
                    }
                    self.items.clear();
                }
            }
            pages.into_iter().for_each(|page| self.older.push(page));
        }
        self.items.extend(items);
        self.number();
        self.make_room();
    }

    /// At most `most` of the newest items.
    #[must_use]
    pub fn newest_part(&self, limit: usize) -> TranscriptPart {
        self.part(self.count().saturating_sub(limit)..self.count())
    }

    /// The items of a range of places.
    #[must_use]
    pub fn part(&self, range: Range<usize>) -> TranscriptPart {
        let border = self.older.count;
        let here = range.start.max(border) - border..range.end.max(border) - border;
        let items = self.items.get(here).unwrap_or_default().to_vec();
        let more = range.start > 0;
        let range = range.start.min(border)..range.end.min(border);
        let older = if range.is_empty() { OlderItems::default() } else { self.older.clone() };
        TranscriptPart { older, range, items, more }
    }

    /// At most `limit` items before one of them; `Err` has the older items in which to search for it.
    ///
    /// # Errors
    /// The older items: [`OlderItems::before`] looks there.
    pub fn before(&self, id: &ItemId, limit: usize) -> Result<TranscriptPart, OlderItems> {
        match self.places.get(id) {
            Some(place) => Ok(self.part(place.saturating_sub(limit)..*place)),
            None => Err(self.older.clone()),
        }
    }

    /// The calls that changed files, as a part to be read.
    #[must_use]
    pub fn edits(&self) -> TranscriptPart {
        let older = self.older.only(|page| page.has_edits);
        let items = self.items.iter().filter(|item| is_edit(item)).cloned().collect();
        TranscriptPart { range: 0..older.count, older, items, more: false }
    }

    /// Items that are not final, as they are in memory.
    pub fn unfinished(&self) -> impl Iterator<Item = &Arc<Item>> {
        self.items.iter().filter(|item| !is_final(item))
    }

    fn add(&mut self, item: Arc<Item>) {
        if self.count() == 0 {
            self.began = Some(item.timestamp);
        }
        self.places.insert(item.id.clone(), self.count());
        self.items.push(item);
    }

    fn number(&mut self) {
        let border = self.older.count;
        let places = self.items.iter().enumerate();
        self.places = places.map(|(place, item)| (item.id.clone(), border + place)).collect();
    }

    fn make_room(&mut self) {
        while self.items.len() >= (KEPT + PAGE).max(self.try_at) {
            let is_needed = self.items[..PAGE].iter().any(|item| !is_final(item));
            if is_needed && self.items.len() < MOST_KEPT {
                return;
            }
            if !self.page_out(PAGE) {
                self.try_at = self.items.len() + PAGE;
                return;
            }
        }
    }

    /// Lets the oldest items leave memory. False when there is no shelf, or it cannot take them.
    fn page_out(&mut self, count: usize) -> bool {
        let Some(page) = self.older.page_of(&self.items[..count]) else { return false };
        self.older.push(page);
        for item in self.items.drain(..count) {
            self.places.remove(&item.id);
        }
        self.try_at = 0;
        true
    }
}

impl OlderItems {
    /// At most `limit` items before one of these; `None` for an unknown one.
    ///
    /// # Errors
    /// When they cannot be read.
    pub fn before(self, id: &ItemId, limit: usize) -> io::Result<Option<TranscriptPart>> {
        let mut start = self.count;
        for page in self.pages.iter().rev() {
            start -= page.count;
            if page.may_hold(id)
                && let Some(at) = self.read_page(page)?.iter().position(|item| item.id == *id)
            {
                let place = start + at;
                let range = place.saturating_sub(limit)..place;
                return Ok(Some(TranscriptPart {
                    more: range.start > 0,
                    range,
                    older: self,
                    items: Vec::new(),
                }));
            }
        }
        Ok(None)
    }

    /// The items of a range of places.
    fn read(&self, range: Range<usize>) -> io::Result<Vec<Arc<Item>>> {
        let (mut items, mut start) = (Vec::with_capacity(range.len()), 0);
        for page in &self.pages {
            let end = start + page.count;
            if start < range.end && range.start < end {
                let wanted = range.start.max(start) - start..range.end.min(end) - start;
                items.extend(self.read_page(page)?.drain(wanted));
            }
            start = end;
        }
        Ok(items)
    }

    fn read_page(&self, page: &StoredPage) -> io::Result<Vec<Arc<Item>>> {
        let shelf = self.shelf.as_ref().ok_or_else(|| io::Error::other("the conversation has no shelf"))?;
        let bytes = shelf.get(&page.slot)?;
        let lines = serde_json::Deserializer::from_slice(&bytes).into_iter::<Arc<Item>>();
        let items = lines.collect::<Result<Vec<_>, _>>().map_err(io::Error::from);
        let is_whole = |items: &Vec<Arc<Item>>| items.len() == page.count;
        let items = items.and_then(|items| match is_whole(&items) {
            true => Ok(items),
            false => Err(io::Error::new(io::ErrorKind::InvalidData, "a page has other items than it should")),
        });
        items.inspect_err(|error| {
            tracing::warn!(%error, "older items cannot be read back");
            shelf.condemn();
        })
    }

    /// Puts items on the shelf.
    fn page_of(&self, items: &[Arc<Item>]) -> Option<StoredPage> {
        let shelf = self.shelf.as_ref()?;
        let put = || {
            let mut bytes = Vec::new();
            for item in items {
                serde_json::to_writer(&mut bytes, item)?;
                bytes.push(b'\n');
            }
            shelf.put(&bytes)
        };
        let slot = put()
            .inspect_err(
                |error| tracing::warn!(%error, "older items stay in memory: they cannot be kept on disk"),
            )
            .ok()?;
        let ids = || items.iter().map(|item| &item.id);
        let ids = (ids().min()?.clone(), ids().max()?.clone());
        Some(StoredPage { slot, count: items.len(), ids, has_edits: items.iter().any(|item| is_edit(item)) })
    }

    fn push(&mut self, page: StoredPage) {
        self.count += page.count;
        if self.greatest.as_ref().is_none_or(|greatest| *greatest < page.ids.1) {
            self.greatest = Some(page.ids.1.clone());
        }
        self.pages.push(page);
    }

    fn may_hold(&self, id: &ItemId) -> bool {
        self.greatest.as_ref().is_some_and(|greatest| id <= greatest)
    }

    /// Changes an item and returns it; `None` for an unknown id, or where it cannot be read or written.
    fn change(&mut self, id: &ItemId, change: impl FnOnce(&mut Item)) -> Option<Arc<Item>> {
        if !self.may_hold(id) {
            return None;
        }
        for at in (0..self.pages.len()).rev() {
            if !self.pages[at].may_hold(id) {
                continue;
            }
            let Ok(mut items) = self.read_page(&self.pages[at]) else { continue };
            let Some(item) = items.iter_mut().find(|item| item.id == *id) else { continue };
            change(Arc::make_mut(item));
            let changed = Arc::clone(item);
            let Some(page) = self.page_of(&items) else {
                // The journal has the change; the shelf lacks it until it is rebuilt.
                if let Some(shelf) = &self.shelf {
                    shelf.condemn();
                }
                return None;
            };
            self.pages[at] = page;
            return Some(changed);
        }
        None
    }

    /// Cuts off the items from a place on: the items before it of the page it is in, the others of that page, and the
    /// pages behind it.
    fn split_off(&mut self, place: usize) -> (Vec<Arc<Item>>, Vec<Arc<Item>>, Vec<StoredPage>) {
        let mut start = 0;
        let at = self.pages.iter().position(|page| {
            let is_it = place < start + page.count;
            start += if is_it { 0 } else { page.count };
            is_it
        });
        let mut behind = self.pages.split_off(at.unwrap_or(self.pages.len()));
        self.recount();
        if behind.is_empty() {
            return (Vec::new(), Vec::new(), behind);
        }
        // Also at the border of a page: the timestamp of the first item is known only from the item.
        match self.read_page(&behind[0]) {
            Ok(mut items) => {
                behind.remove(0);
                let rest = items.split_off(place - start);
                (items, rest, behind)
            }
            // The shelf is damaged now, and is rebuilt.
            Err(_) => (Vec::new(), Vec::new(), behind),
        }
    }

    /// Takes the newest page back.
    fn take_last(&mut self) -> Option<Vec<Arc<Item>>> {
        let items = self.read_page(self.pages.last()?).ok()?;
        self.pages.pop();
        self.recount();
        Some(items)
    }

    fn recount(&mut self) {
        self.count = self.pages.iter().map(|page| page.count).sum();
        self.greatest = self.pages.iter().map(|page| &page.ids.1).max().cloned();
    }

    fn only(&self, is_wanted: impl Fn(&StoredPage) -> bool) -> Self {
        let pages = self.pages.iter().filter(|page| is_wanted(page)).cloned().collect();
        let mut only = Self { pages, shelf: self.shelf.clone(), ..Self::default() };
        only.recount();
        only
    }
}

impl StoredPage {
    fn may_hold(&self, id: &ItemId) -> bool {
        self.ids.0 <= *id && *id <= self.ids.1
    }
}

impl TranscriptPart {
    /// Reads the items, oldest first. May wait for the disk where some have left memory.
    ///
    /// # Errors
    /// When those that have left memory cannot be read.
    pub fn read(self) -> io::Result<Vec<Arc<Item>>> {
        let mut items = self.older.read(self.range)?;
        items.extend(self.items);
        Ok(items)
    }

    /// As [`TranscriptPart::read`], without those that cannot be read: the shelf reports these, and the next page has them
    /// again.
    #[must_use]
    pub fn read_what_can_be(self) -> Vec<Arc<Item>> {
        let mut items = self.older.read(self.range).unwrap_or_default();
        items.extend(self.items);
        items
    }
}

/// Whether an item is a call that changed files.
#[must_use]
pub fn is_edit(item: &Item) -> bool {
    match &item.body {
        ItemBody::ToolCall(call) => call.state == CallState::Completed && call.kind == Some(ToolKind::Write),
        ItemBody::UserMessage { .. }
        | ItemBody::AgentMessage { .. }
        | ItemBody::Thinking { .. }
        | ItemBody::Notice { .. }
        | ItemBody::Command { .. } => false,
    }
}

/// Whether nothing more is to come of an item.
fn is_final(item: &Item) -> bool {
    match &item.body {
        ItemBody::ToolCall(call) => call.state.is_final(),
        ItemBody::AgentMessage { complete, .. } | ItemBody::Thinking { complete, .. } => *complete,
        ItemBody::UserMessage { .. } | ItemBody::Notice { .. } | ItemBody::Command { .. } => true,
    }
}

#[cfg(test)]
mod tests;
