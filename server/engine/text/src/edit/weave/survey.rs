//! The places of the layers of a weave and the layers on them, found for all of them in one pass.
//!
//! Rule: a survey answers for the weave as it is; what it says of one layer costs what that layer reaches over, never
//! what the weave holds, so that a list of all layers is no slower than the text is long.

use std::cell::OnceCell;
use std::ops::Range;

use ropey::Rope;

use super::{LayerId, LayerPlace, LayerRun, Weave, WeaveSpan};

/// The data about the layers of a weave.
pub struct WeaveSurvey<'weave> {
    weave: &'weave Weave,
    /// The byte of the text at which each span starts.
    starts: Vec<usize>,
    footprints: Vec<Option<Footprint>>,
    /// For each layer those that it is on.
    supports: OnceCell<Vec<Vec<LayerId>>>,
}

/// The range of a layer, from the first of its spans to the last.
#[derive(Clone, Debug)]
struct Footprint {
    spans: Range<usize>,
    bytes: Range<usize>,
}

impl<'weave> WeaveSurvey<'weave> {
    pub(super) fn of(weave: &'weave Weave) -> Self {
        let mut starts = Vec::with_capacity(weave.spans.len());
        let mut footprints: Vec<Option<Footprint>> = vec![None; weave.active.len()];
        let mut at = 0;
        for (index, span) in weave.spans.iter().enumerate() {
            starts.push(at);
            let end = at + if span.hidden.is_none() { span.len } else { 0 };
            for run in span.runs() {
                let Some(footprint) = footprints.get_mut(run.layer as usize) else { continue };
                let footprint = footprint.get_or_insert(Footprint { spans: index..index, bytes: at..at });
                footprint.spans.end = index + 1;
                footprint.bytes.end = end;
            }
            at = end;
        }
        Self { weave, starts, footprints, supports: OnceCell::new() }
    }

    /// Where a layer is in `text`, which is the text as it is.
    #[must_use]
    pub fn place(&self, text: &Rope, layer: LayerId) -> LayerPlace {
        let footprint = self.footprint(layer);
        let range = footprint.map_or(0..0, |footprint| footprint.bytes.clone());
        let last = self.spans_of(layer).last().and_then(|span| span.hidden.as_deref());
        let lines = lines_around(text, &range, last);
        let side = |active| {
            self.project_range(text, &lines, &self.weave.with_switched(&[(layer, active)]), &[layer])
        };
        LayerPlace { without: side(false), with: side(true), lines, range }
    }

    /// Whether the user has changed what the layer put in or, when it is out of the text, what it would take out.
    #[must_use]
    pub fn is_amended(&self, layer: LayerId) -> bool {
        self.runs_of(layer, WeaveSpan::is_of_run).into_iter().any(|spans| {
            let mut spans = self.weave.spans[spans].iter();
            spans.any(|span| (span.gone && span.is_of(layer)) || (span.is_plain() && span.hidden.is_none()))
        })
    }

    /// The layers in the text that cannot stay when `layer` goes: they stand within what it put in, or replace some of
    /// that.
    #[must_use]
    pub fn dependents(&self, layer: LayerId) -> Vec<LayerId> {
        let mut found = self.standing_on(layer);
        found.retain(|other| self.weave.is_active(*other));
        found
    }

    /// The layers out of the text without which `layer` cannot be in it.
    #[must_use]
    pub fn supports(&self, layer: LayerId) -> Vec<LayerId> {
        let supports = self.supports.get_or_init(|| {
            let mut supports = vec![Vec::new(); self.footprints.len()];
            for below in (0..self.footprints.len()).filter_map(|layer| LayerId::try_from(layer).ok()) {
                for above in self.standing_on(below) {
                    supports[above as usize].push(below);
                }
            }
            supports
        });
        let below = supports.get(layer as usize).into_iter().flatten();
        below.copied().filter(|below| !self.weave.is_active(*below)).collect()
    }

    /// The layers with the bytes of the text that they reach over.
    pub(super) fn extents(&self) -> impl Iterator<Item = (LayerId, &Range<usize>)> {
        let known = self.footprints.iter().enumerate();
        known.filter_map(|(layer, footprint)| {
            Some((LayerId::try_from(layer).ok()?, &footprint.as_ref()?.bytes))
        })
    }

    /// A stretch of the text with other layers switched on. Of the hidden text at its two ends only that of `own` layers
    /// is part of it.
    pub(super) fn project_range(
        &self,
        text: &Rope,
        range: &Range<usize>,
        active: &[bool],
        own: &[LayerId],
    ) -> String {
        let mut projected = String::new();
        // The span before the first that starts in the range may reach into it.
        let first = self.starts.partition_point(|start| *start < range.start).saturating_sub(1);
        for (span, at) in self.weave.spans[first..].iter().zip(self.starts[first..].iter().copied()) {
            if at > range.end {
                break;
            }
            match &span.hidden {
                None => {
                    let (start, end) = (at.max(range.start), (at + span.len).min(range.end));
                    if start < end && span.is_visible(active) {
                        projected.extend(text.byte_slice(start..end).chunks());
                    }
                }
                Some(hidden) => {
                    let within = at > range.start && at < range.end;
                    let at_end =
                        (at == range.start || at == range.end) && own.iter().any(|layer| span.is_of(*layer));
                    if (within || at_end) && span.is_visible(active) {
                        projected.push_str(hidden);
                    }
                }
            }
        }
        projected
    }

    fn footprint(&self, layer: LayerId) -> Option<&Footprint> {
        self.footprints.get(layer as usize)?.as_ref()
    }

    /// The spans from the first of a layer to the last.
    fn spans_of(&self, layer: LayerId) -> &'weave [WeaveSpan] {
        self.footprint(layer).map_or(&[], |footprint| &self.weave.spans[footprint.spans.clone()])
    }

    /// For each run of a layer: the spans from the first to the last that belong to it.
    fn runs_of(&self, layer: LayerId, belongs: fn(&WeaveSpan, &LayerRun) -> bool) -> Vec<Range<usize>> {
        let mut runs: Vec<(LayerRun, Range<usize>)> = Vec::new();
        let first = self.footprint(layer).map_or(0, |footprint| footprint.spans.start);
        for (at, span) in (first..).zip(self.spans_of(layer)) {
            for run in span.runs().filter(|run| run.layer == layer && belongs(span, run)) {
                match runs.iter_mut().find(|(known, _)| known == run) {
                    Some((_, spans)) => spans.end = at + 1,
                    None => runs.push((*run, at..at + 1)),
                }
            }
        }
        runs.into_iter().map(|(_, spans)| spans).collect()
    }

    /// The layers, in the text or not, that stand within what `layer` puts in, or replace some of that.
    fn standing_on(&self, layer: LayerId) -> Vec<LayerId> {
        let within = self.runs_of(layer, WeaveSpan::is_put_in_by);
        let within = within.into_iter().flat_map(|spans| &self.weave.spans[spans]);
        let put_within = within.filter_map(|span| span.inserted.map(|run| run.layer));
        let put_in_by = |span: &&WeaveSpan| span.inserted.is_some_and(|run| run.layer == layer);
        let replaced = self.spans_of(layer).iter().filter(put_in_by);
        let taken_out = replaced.flat_map(|span| &span.removed).map(|run| run.layer);
        let mut found: Vec<LayerId> = put_within.chain(taken_out).filter(|other| *other != layer).collect();
        found.sort_unstable();
        found.dedup();
        found
    }
}

/// The whole lines around a change whose last own span is hidden with this text, if it is. Where whole lines were taken
/// out, and nothing was put in, no layer remains.
fn lines_around(text: &Rope, range: &Range<usize>, last: Option<&str>) -> Range<usize> {
    let starts_line = |at: usize| text.line_to_byte(text.byte_to_line(at)) == at;
    let whole_lines = last.is_some_and(|text| text.ends_with(['\n', '\r']));
    if range.is_empty() && starts_line(range.start) && whole_lines {
        return range.clone();
    }
    let start = text.line_to_byte(text.byte_to_line(range.start));
    let end = match range.end > range.start && starts_line(range.end) {
        true => range.end,
        false => text.line_to_byte((text.byte_to_line(range.end) + 1).min(text.len_lines())),
    };
    start..end
}
