//! What a node holds, by name and length.

use crate::message::Refusal;
use media::{Hash, Layer, Quality, TitleName, TitleSummary};
use std::collections::BTreeMap;

/// A title that is held, whole or in part.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Held {
    /// What is told about it in a list.
    pub summary: TitleSummary,
    /// Length of the manifest in bytes.
    pub manifest_length: u64,
    /// BLAKE3 of the manifest.
    pub manifest_hash: Hash,
    /// Number of blocks.
    pub blocks: u32,
    /// The layers that are here.
    pub layers: Vec<Layer>,
}

impl Held {
    /// The best quality the title has anywhere.
    pub fn top_quality(&self) -> Quality {
        Quality(self.summary.layers)
    }

    /// Whether the layer is here.
    pub fn has(&self, layer: Layer) -> bool {
        self.layers.contains(&layer)
    }
}

/// All titles that are held.
#[derive(Clone, Debug, Default)]
pub(super) struct Shelf {
    titles: BTreeMap<TitleName, Held>,
}

impl Shelf {
    /// Forgets everything and holds these, at most `max` of them.
    pub(super) fn replace(&mut self, held: Vec<Held>, max: usize) {
        let named = held.into_iter().map(|held| (held.summary.title.clone(), held));
        self.titles = named.take(max).collect();
    }

    pub(super) fn title(&self, name: &TitleName) -> Result<&Held, Refusal> {
        self.titles.get(name).ok_or(Refusal::NoSuchTitle)
    }

    pub(super) fn summaries(&self) -> Vec<TitleSummary> {
        self.titles.values().map(|held| held.summary.clone()).collect()
    }
}
