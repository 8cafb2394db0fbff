//! What a node holds, by name and length.

use crate::message::Refusal;
use media::{ByteCount, Hash, Layer, Quality, TitleName, TitleSummary};
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
    /// What each layer of the title takes on disk, held or not, Base first.
    pub sizes: Vec<ByteCount>,
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

    /// What a layer takes on disk.
    pub fn size(&self, layer: Layer) -> ByteCount {
        self.sizes.get(layer.index()).copied().unwrap_or_default()
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

    pub(super) fn all(&self) -> impl Iterator<Item = &Held> {
        self.titles.values()
    }

    pub(super) fn summaries(&self) -> Vec<TitleSummary> {
        self.titles.values().map(|held| held.summary.clone()).collect()
    }
}
