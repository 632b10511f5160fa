//! Open and closed places that lie in each other, as layers.
//!
//! Rule: of the places around a path, the innermost decides. A place that changes nothing is left out, so that each place of a
//! layer lies in one of the layer before, and layers are open and closed in turn.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// The layers, the outermost first.
#[derive(Debug, Default)]
pub(super) struct PlaceLayers(Vec<Vec<PathBuf>>);

impl PlaceLayers {
    /// Those of these places, each with whether it is open, where everything else is open or closed.
    pub(super) fn of(places: &BTreeMap<PathBuf, bool>, is_open_elsewhere: bool) -> Self {
        let mut levels: BTreeMap<&Path, usize> = BTreeMap::new();
        let mut layers: Vec<Vec<PathBuf>> = Vec::new();
        // A path sorts after the folders it lies in.
        for (path, is_open) in places {
            let around = path.ancestors().skip(1).find_map(|folder| levels.get(folder).copied());
            let level = around.map_or(0, |level| level + 1);
            let is_open_around = is_open_elsewhere == (level % 2 == 0);
            if *is_open == is_open_around {
                continue;
            }
            levels.insert(path, level);
            if layers.len() <= level {
                layers.resize_with(level + 1, Vec::new);
            }
            if let Some(layer) = layers.get_mut(level) {
                layer.push(path.clone());
            }
        }
        Self(layers)
    }

    /// Each second layer from `first` on, with the one that lies in it.
    pub(super) fn pairs(&self, first: usize) -> impl Iterator<Item = (&[PathBuf], &[PathBuf])> {
        let inner = |at: usize| self.0.get(at).map_or(&[][..], Vec::as_slice);
        (first..self.0.len()).step_by(2).map(move |at| (inner(at), inner(at + 1)))
    }

    /// The outermost layer.
    pub(super) fn outermost(&self) -> &[PathBuf] {
        self.0.first().map_or(&[][..], Vec::as_slice)
    }
}
