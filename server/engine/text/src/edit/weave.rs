//! The weave of a text: every byte the agent put in or took out of it, interleaved with everything else, so that any
//! of its changes can be taken out again and put back, in any order.
//!
//! Rule: what the user typed is never part of a layer, so no switch of layers can hide it; what the user deleted comes
//! back only when the user brings it back. The visible spans, joined, are the text as it is.

mod survey;
#[cfg(test)]
mod tests;

use std::ops::Range;

use parking_lot::Mutex;
use ropey::Rope;
use serde::{Deserialize, Serialize};

use crate::edit::TextEdit;
use crate::edit::diff::word_changes;

pub use survey::WeaveSurvey;

/// Maximum distance, in bytes, between an edit's stated and actual position.
const MAX_REACH: usize = 4 << 10;

/// Names one layer: one hunk, which can be in the text or not.
pub type LayerId = u32;

/// A region is searched for layers that the user switched by an undo of their own only up to this size, in bytes.
const MAX_RECOGNISED_BYTES: usize = 1 << 20;

/// One contiguous change of a layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct LayerRun {
    layer: LayerId,
    number: u32,
}

/// A stretch of text with one fate.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct WeaveSpan {
    len: usize,
    /// The text while it is hidden; visible text is in the document.
    hidden: Option<Box<str>>,
    /// The change that put it in; `None` for text that was there, or that the user typed.
    inserted: Option<LayerRun>,
    /// The changes that take it out.
    removed: Vec<LayerRun>,
    /// Whether the user deleted it.
    gone: bool,
}

/// A text as the interleaving of all its changes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Weave {
    spans: Vec<WeaveSpan>,
    /// Whether each layer is in the text.
    active: Vec<bool>,
    runs: u32,
    #[serde(skip)]
    cursor: WeaveCursor,
}

/// The span that was looked for last, and the byte of the text at which it starts. The next keystroke is most often near it, so that
/// it is searched from there and not from the start of the text. Each change that adds, removes, joins, shows or hides spans resets it.
#[derive(Debug, Default)]
struct WeaveCursor(Mutex<(usize, usize)>);

impl Clone for WeaveCursor {
    fn clone(&self) -> Self {
        Self::default()
    }
}

impl PartialEq for WeaveCursor {
    /// Two weaves are the same wherever the user has typed last.
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for WeaveCursor {}

/// Where a layer is in the text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LayerPlace {
    /// The bytes it reaches over.
    pub range: Range<usize>,
    /// The whole lines around it, in bytes.
    pub lines: Range<usize>,
    /// These lines without the layer.
    pub without: String,
    /// These lines with it.
    pub with: String,
}

impl Weave {
    /// A weave for unchanged text of this many bytes.
    #[must_use]
    pub fn new(len: usize) -> Self {
        let mut weave =
            Self { spans: Vec::new(), active: Vec::new(), runs: 0, cursor: WeaveCursor::default() };
        if len > 0 {
            weave.spans.push(WeaveSpan::plain(len));
        }
        weave
    }

    /// Whether the layer is in the text.
    #[must_use]
    pub fn is_active(&self, layer: LayerId) -> bool {
        self.active.get(layer as usize).copied().unwrap_or_default()
    }

    /// Weaves a change of the agent's in as a new layer. The edits are of `text`, sorted and not overlapping. With
    /// `active` the text after it has them, without it they are only proposed and the text stays.
    pub fn add_layer(&mut self, text: &Rope, edits: &[TextEdit], active: bool) -> LayerId {
        let layer = LayerId::try_from(self.active.len()).unwrap_or(LayerId::MAX);
        self.cursor = WeaveCursor::default();
        self.active.push(active);
        for edit in edits.iter().rev() {
            let run = LayerRun { layer, number: self.runs };
            self.runs += 1;
            let (first, last) = self.isolate(&edit.range, HiddenSide::Left);
            for span in self.spans[first..last].iter_mut().filter(|span| span.hidden.is_none()) {
                span.removed.push(run);
            }
            if active {
                let mut at = edit.range.start;
                for span in self.spans[first..last].iter_mut().filter(|span| span.hidden.is_none()) {
                    span.hidden = Some(slice(text, at..at + span.len));
                    at += span.len;
                }
            }
            if !edit.new_text.is_empty() {
                let hidden = (!active).then(|| edit.new_text.as_str().into());
                let span = WeaveSpan { inserted: Some(run), hidden, ..WeaveSpan::plain(edit.new_text.len()) };
                self.spans.insert(last, span);
            }
        }
        layer
    }

    /// Tells apart what the user did to `text`: what switches whole layers, as an undo in the editor does, with whether
    /// these are in the text then, and all other edits, sorted and as small as they can be. Only layers that
    /// `may_switch` are treated as switched.
    #[must_use]
    pub fn distinguish(
        &self,
        text: &Rope,
        edits: &[TextEdit],
        may_switch: &dyn Fn(LayerId) -> bool,
    ) -> (Vec<TextEdit>, Vec<(LayerId, bool)>) {
        let edits: Vec<TextEdit> = edits.iter().flat_map(|edit| smallest(text, edit)).collect();
        // A switch of layers changes text beside plain text.
        if edits.iter().all(|edit| self.plain_around(&reach(text, edit)).is_some()) {
            return (edits, Vec::new());
        }
        let (mut typed, mut switched) = (Vec::new(), Vec::new());
        let survey = self.survey();
        for cluster in clusters(&survey, text, &edits) {
            match self.recognise(&survey, text, &cluster, may_switch) {
                Some(layers) => switched.extend(layers),
                None => typed.extend(cluster.edits),
            }
        }
        (typed, switched)
    }

    /// Takes in what the user typed into `text`: edits sorted and not overlapping.
    pub fn type_in(&mut self, text: &Rope, edits: &[TextEdit]) {
        let mut is_plain = true;
        // From the end, so that the offsets of those before stay.
        for edit in edits.iter().rev() {
            match self.plain_around(&edit.range) {
                Some(span) => {
                    let span = &mut self.spans[span];
                    span.len = span.len - edit.range.len() + edit.new_text.len();
                }
                None => {
                    is_plain = false;
                    self.cursor = WeaveCursor::default();
                    self.type_one(text, edit);
                }
            }
        }
        if !is_plain {
            self.join();
        }
    }

    /// The span of plain text in the document that reaches beyond both ends of these bytes, if they are within one.
    fn plain_around(&self, range: &Range<usize>) -> Option<usize> {
        let mut cursor = self.cursor.0.lock();
        let visible = |index: usize| match self.spans[index].hidden {
            None => self.spans[index].len,
            Some(_) => 0,
        };
        let (mut index, mut at) = *cursor;
        while at > range.start {
            index -= 1;
            at -= visible(index);
        }
        while index < self.spans.len() && at + visible(index) < range.start {
            at += visible(index);
            index += 1;
        }
        *cursor = (index, at);
        let span = self.spans.get(index)?;
        let is_around = at < range.start && range.end < at + visible(index);
        (is_around && span.is_plain()).then_some(index)
    }

    /// The edits of the text that put the layers in or take them out.
    #[must_use]
    pub fn edits_to_switch(&self, layers: &[(LayerId, bool)]) -> Vec<TextEdit> {
        let will = self.with_switched(layers);
        let mut edits: Vec<TextEdit> = Vec::new();
        let mut at = 0;
        for span in &self.spans {
            let visible = span.hidden.is_none();
            match (visible, span.is_visible(&will)) {
                (true, false) => push_edit(&mut edits, at..at + span.len, ""),
                (false, true) => push_edit(&mut edits, at..at, span.hidden.as_deref().unwrap_or_default()),
                (true, true) | (false, false) => {}
            }
            at += if visible { span.len } else { 0 };
        }
        edits
    }

    /// Puts layers in or takes them out, as [`Weave::edits_to_switch`] says the text changes. `text` is the text
    /// before.
    pub fn switch(&mut self, text: &Rope, layers: &[(LayerId, bool)]) {
        self.active = self.with_switched(layers);
        self.cursor = WeaveCursor::default();
        let mut at = 0;
        for span in &mut self.spans {
            let was_visible = span.hidden.is_none();
            let is_visible = span.is_visible(&self.active);
            match (was_visible, is_visible) {
                (true, false) => span.hidden = Some(slice(text, at..at + span.len)),
                (false, true) => span.hidden = None,
                (true, true) | (false, false) => {}
            }
            at += if was_visible { span.len } else { 0 };
        }
    }

    /// The places of all its layers, and the layers on them.
    #[must_use]
    pub fn survey(&self) -> WeaveSurvey<'_> {
        WeaveSurvey::of(self)
    }

    /// The text as it would be with the layers switched.
    #[must_use]
    pub fn project(&self, text: &Rope, layers: &[(LayerId, bool)]) -> String {
        let will = self.with_switched(layers);
        let mut projected = String::with_capacity(text.len_bytes());
        let mut at = 0;
        for span in &self.spans {
            let visible = span.hidden.is_none();
            if span.is_visible(&will) {
                span.push_text(&mut projected, text, at);
            }
            at += if visible { span.len } else { 0 };
        }
        projected
    }

    /// Makes layers part of the text for good, in it or out of it as they are now.
    pub fn retire(&mut self, layers: &[LayerId]) {
        let active = &self.active;
        let is_retired = |run: &LayerRun| layers.contains(&run.layer);
        self.spans.retain_mut(|span| {
            // Text that the user has deleted between layers may still come back with them.
            let is_touched = span.runs().any(is_retired);
            if let Some(run) = span.inserted.filter(is_retired) {
                if !active[run.layer as usize] {
                    return false;
                }
                span.inserted = None;
            }
            let taken_out = span.removed.iter().any(|run| is_retired(run) && active[run.layer as usize]);
            span.removed.retain(|run| !is_retired(run));
            let is_dead = taken_out || (span.gone && is_touched && span.is_plain());
            !is_dead
        });
        self.join();
    }

    fn with_switched(&self, layers: &[(LayerId, bool)]) -> Vec<bool> {
        let mut active = self.active.clone();
        for (layer, is_active) in layers {
            if let Some(place) = active.get_mut(*layer as usize) {
                *place = *is_active;
            }
        }
        active
    }

    /// Takes in one edit of the user's.
    fn type_one(&mut self, text: &Rope, edit: &TextEdit) {
        let side = self.side_of_typing(text, edit);
        let (first, last) = self.isolate(&edit.range, side);
        let touches_layer = self.spans[first..last].iter().any(|span| !span.is_plain());
        let mut at = edit.range.start;
        let mut deleted = Vec::new();
        for (index, span) in self.spans.iter_mut().enumerate().take(last).skip(first) {
            if span.hidden.is_some() {
                continue;
            }
            deleted.push(index);
            // Kept beside a layer only: an undo of the user's may bring it back to where it belongs.
            span.hidden = Some(if touches_layer { slice(text, at..at + span.len) } else { "".into() });
            span.gone = true;
            at += span.len;
        }
        let mut end = last;
        if !touches_layer {
            let kept: Vec<WeaveSpan> =
                self.spans.drain(first..last).filter(|span| !(span.gone && span.is_plain())).collect();
            end = first + kept.len();
            self.spans.splice(first..first, kept);
            deleted.clear();
        }
        if !edit.new_text.is_empty() && !self.bring_back(first..end, &deleted, &edit.new_text) {
            let place = match side {
                HiddenSide::Left => first,
                HiddenSide::Right => end,
            };
            self.spans.insert(place, WeaveSpan::plain(edit.new_text.len()));
        }
    }

    /// Makes text that the user had deleted visible again where the user puts the very same text. The text `deleted`
    /// just now does not count.
    fn bring_back(&mut self, place: Range<usize>, deleted: &[usize], new_text: &str) -> bool {
        let before = self.spans[..place.start].iter().rposition(|span| span.hidden.is_none());
        let after = self.spans[place.end..].iter().position(|span| span.hidden.is_none());
        let from = before.map_or(0, |at| at + 1);
        let to = after.map_or(self.spans.len(), |at| place.end + at);
        let can_return: Vec<usize> = (from..to)
            .filter(|at| {
                self.spans[*at].gone && self.spans[*at].is_wanted(&self.active) && !deleted.contains(at)
            })
            .collect();
        for start in 0..can_return.len() {
            let mut rest = new_text;
            for (count, at) in can_return[start..].iter().enumerate() {
                let hidden = self.spans[*at].hidden.as_deref().unwrap_or_default();
                let Some(left) = rest.strip_prefix(hidden) else { break };
                rest = left;
                if rest.is_empty() {
                    for at in &can_return[start..=start + count] {
                        self.spans[*at].gone = false;
                        self.spans[*at].hidden = None;
                    }
                    return true;
                }
            }
        }
        false
    }

    /// Which side of hidden text the user types on. Whole lines that were taken out stay above the typed text at the
    /// start of the line below them; everything else stays behind it.
    fn side_of_typing(&self, text: &Rope, edit: &TextEdit) -> HiddenSide {
        let start = edit.range.start;
        if !edit.range.is_empty()
            || (start > 0 && !matches!(text.byte(start - 1), b'\n' | b'\r'))
            || edit.new_text.ends_with('\n')
        {
            return HiddenSide::Left;
        }
        let (first, last) = self.hidden_at(start);
        let hidden = &self.spans[first..last];
        let next_is_layers = self.spans.get(last).is_some_and(|span| span.inserted.is_some());
        match hidden.last().and_then(|span| span.hidden.as_deref()) {
            Some(text) if text.ends_with('\n') && !next_is_layers => HiddenSide::Right,
            _ => HiddenSide::Left,
        }
    }

    /// The hidden spans between the visible ones at an offset.
    fn hidden_at(&self, offset: usize) -> (usize, usize) {
        let mut at = 0;
        let mut first = None;
        for (index, span) in self.spans.iter().enumerate() {
            if at == offset && first.is_none() {
                first = Some(index);
            }
            if span.hidden.is_none() {
                if at == offset && first.is_some() {
                    return (first.unwrap_or(index), index);
                }
                at += span.len;
            }
        }
        (first.unwrap_or(self.spans.len()), self.spans.len())
    }

    /// Cuts spans so that the bytes `range` of the text are spans of their own, and answers these, hidden ones between
    /// them included. Of an empty range: the place before or behind the hidden text.
    fn isolate(&mut self, range: &Range<usize>, side: HiddenSide) -> (usize, usize) {
        self.cut(range.start);
        self.cut(range.end);
        if range.is_empty() {
            let (first, last) = self.hidden_at(range.start);
            return match side {
                HiddenSide::Left => (first, first),
                HiddenSide::Right => (last, last),
            };
        }
        let (_, first) = self.hidden_at(range.start);
        let (last, _) = self.hidden_at(range.end);
        (first, last)
    }

    /// Makes an offset of the text a border of spans.
    fn cut(&mut self, offset: usize) {
        let mut at = 0;
        for index in 0..self.spans.len() {
            let span = &mut self.spans[index];
            if span.hidden.is_some() {
                continue;
            }
            if at < offset && offset < at + span.len {
                let mut rest = span.clone();
                rest.len = at + span.len - offset;
                span.len = offset - at;
                self.spans.insert(index + 1, rest);
                return;
            }
            if at >= offset {
                return;
            }
            at += span.len;
        }
    }

    /// Joins neighbors of one fate, so that spans are as many as changes and not as keystrokes.
    fn join(&mut self) {
        self.cursor = WeaveCursor::default();
        self.spans.dedup_by(|next, span| {
            let same = span.inserted == next.inserted
                && span.removed == next.removed
                && span.hidden.is_none()
                && next.hidden.is_none();
            if same {
                span.len += next.len;
            }
            same
        });
    }

    // -- recognising the user's own undo ----------------------------------------------------------------------------

    /// The layers whose switch comes to the same as the edits.
    fn recognise(
        &self,
        survey: &WeaveSurvey<'_>,
        text: &Rope,
        cluster: &Cluster,
        may_switch: &dyn Fn(LayerId) -> bool,
    ) -> Option<Vec<(LayerId, bool)>> {
        if cluster.layers.is_empty() || cluster.range.len() > MAX_RECOGNISED_BYTES {
            return None;
        }
        let after = cluster.text_after(text);
        let switched = |layers: &[LayerId]| -> Vec<(LayerId, bool)> {
            layers.iter().map(|layer| (*layer, !self.is_active(*layer))).collect()
        };
        let known: Vec<LayerId> = cluster.layers.iter().copied().filter(|layer| may_switch(*layer)).collect();
        let of = |active| -> Vec<LayerId> {
            known.iter().copied().filter(|layer| self.is_active(*layer) == active).collect()
        };
        let single = known.iter().rev().map(|layer| vec![*layer]);
        let candidates = [of(true), of(false)].into_iter().filter(|layers| layers.len() > 1).chain(single);
        candidates.map(|layers| switched(&layers)).find(|layers| {
            let active = self.with_switched(layers);
            survey.project_range(text, &cluster.range, &active, &cluster.layers) == after
        })
    }
}

/// The edits with the layers they touch, gathered where they touch the same ones.
fn clusters(survey: &WeaveSurvey<'_>, text: &Rope, edits: &[TextEdit]) -> Vec<Cluster> {
    let extents: Vec<_> = survey.extents().collect();
    let mut clusters: Vec<Cluster> = Vec::new();
    for edit in edits {
        let mut cluster = Cluster { range: reach(text, edit), edits: vec![edit.clone()], layers: Vec::new() };
        // A touched layer may reach further and touch more.
        while let Some((layer, extent)) = extents
            .iter()
            .find(|(layer, extent)| !cluster.layers.contains(layer) && touch(extent, &cluster.range))
        {
            cluster.layers.push(*layer);
            cluster.range.start = cluster.range.start.min(extent.start);
            cluster.range.end = cluster.range.end.max(extent.end);
        }
        cluster.layers.sort_unstable();
        match clusters.last_mut() {
            Some(last) if !last.layers.is_empty() && cluster.range.start <= last.range.end => {
                last.range.end = last.range.end.max(cluster.range.end);
                last.range.start = last.range.start.min(cluster.range.start);
                last.edits.push(edit.clone());
                last.layers.extend(cluster.layers);
                last.layers.sort_unstable();
                last.layers.dedup();
            }
            _ => clusters.push(cluster),
        }
    }
    clusters
}

/// Edits of the user's, and the layers they touch.
struct Cluster {
    range: Range<usize>,
    edits: Vec<TextEdit>,
    layers: Vec<LayerId>,
}

impl Cluster {
    fn text_after(&self, text: &Rope) -> String {
        let mut after = String::new();
        let mut at = self.range.start;
        for edit in &self.edits {
            after.extend(text.byte_slice(at..edit.range.start).chunks());
            after.push_str(&edit.new_text);
            at = edit.range.end;
        }
        after.extend(text.byte_slice(at..self.range.end).chunks());
        after
    }
}

/// A side of hidden text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum HiddenSide {
    Left,
    Right,
}

impl WeaveSpan {
    fn plain(len: usize) -> Self {
        Self { len, hidden: None, inserted: None, removed: Vec::new(), gone: false }
    }

    /// Whether no layer put it in or takes it out: text that was there before, or that the user typed.
    fn is_plain(&self) -> bool {
        self.inserted.is_none() && self.removed.is_empty()
    }

    fn runs(&self) -> impl Iterator<Item = &LayerRun> {
        self.inserted.iter().chain(&self.removed)
    }

    fn is_of(&self, layer: LayerId) -> bool {
        self.runs().any(|run| run.layer == layer)
    }

    fn is_of_run(&self, run: &LayerRun) -> bool {
        self.runs().any(|known| known == run)
    }

    fn is_put_in_by(&self, run: &LayerRun) -> bool {
        self.inserted.as_ref() == Some(run)
    }

    /// Whether the layers want it to be seen.
    fn is_wanted(&self, active: &[bool]) -> bool {
        let is = |run: &LayerRun| active.get(run.layer as usize).copied().unwrap_or_default();
        self.inserted.as_ref().is_none_or(is) && !self.removed.iter().any(is)
    }

    fn is_visible(&self, active: &[bool]) -> bool {
        !self.gone && self.is_wanted(active)
    }

    fn push_text(&self, to: &mut String, text: &Rope, at: usize) {
        match &self.hidden {
            Some(hidden) => to.push_str(hidden),
            None => to.extend(text.byte_slice(at..at + self.len).chunks()),
        }
    }
}

fn slice(text: &Rope, range: Range<usize>) -> Box<str> {
    text.byte_slice(range).to_string().into()
}

/// An edit as the changes it makes, word by word: editors and formatters replace more than they change.
fn smallest(text: &Rope, edit: &TextEdit) -> Vec<TextEdit> {
    if edit.range.is_empty() || edit.new_text.is_empty() {
        let changes = !edit.range.is_empty() || !edit.new_text.is_empty();
        return changes.then(|| edit.clone()).into_iter().collect();
    }
    let mut changes = word_changes(&slice(text, edit.range.clone()), &edit.new_text);
    for change in &mut changes {
        change.range = change.range.start + edit.range.start..change.range.end + edit.range.start;
    }
    changes
}

/// The bytes within which an edit could as well be said to be: where text repeats itself, it is unknown which of two
/// equal pieces was put in or taken out.
fn reach(text: &Rope, edit: &TextEdit) -> Range<usize> {
    let Range { start, end } = edit.range;
    let new = edit.new_text.as_bytes();
    let (before, behind) = (|at| text.bytes_at(at).reversed(), |at| text.bytes_at(at));
    // By how much the edit can move to the left, and to the right, and come to the same.
    let (left, right) = match (edit.range.is_empty(), new.is_empty()) {
        (true, false) => (
            common_length(before(start), new.iter().rev().copied().cycle()),
            common_length(behind(end), new.iter().copied().cycle()),
        ),
        (false, true) => {
            (common_length(before(start), before(end)), common_length(behind(start), behind(end)))
        }
        (true, true) | (false, false) => (0, 0),
    };
    whole_chars(text, start - left..end + right)
}

fn common_length(one: impl Iterator<Item = u8>, other: impl Iterator<Item = u8>) -> usize {
    one.zip(other).take(MAX_REACH).take_while(|(one, other)| one == other).count()
}

fn whole_chars(text: &Rope, range: Range<usize>) -> Range<usize> {
    let start = text.char_to_byte(text.byte_to_char(range.start));
    let end = text.byte_to_char(range.end);
    let is_whole = text.char_to_byte(end) == range.end;
    start..if is_whole { range.end } else { text.char_to_byte(end + 1) }
}

fn touch(one: &Range<usize>, other: &Range<usize>) -> bool {
    one.start <= other.end && other.start <= one.end
}

fn push_edit(edits: &mut Vec<TextEdit>, range: Range<usize>, new_text: &str) {
    match edits.last_mut() {
        Some(last) if last.range.end == range.start => {
            last.range.end = range.end;
            last.new_text.push_str(new_text);
        }
        _ => edits.push(TextEdit { range, new_text: new_text.to_owned() }),
    }
}
