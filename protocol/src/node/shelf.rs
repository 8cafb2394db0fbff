//! What a node holds, by name and length.

use super::classes::TitleFacts;
use super::lengths::ChunkLengths;
use crate::message::Refusal;
use media::{ByteCount, Hash, Layer, Quality, TitleName, TitleSummary};
use std::collections::BTreeMap;
use std::sync::Arc;

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
    /// How long its chunks are.
    pub lengths: Arc<ChunkLengths>,
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

    /// What admission has to know of it. A layer takes its mean rate of a link.
    pub(super) fn facts(&self) -> TitleFacts {
        let duration = self.summary.duration;
        let rates = self.sizes.iter().map(|size| size.over(duration)).collect();
        TitleFacts { title: self.summary.title.clone(), class: self.summary.class, rates }
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
    /// Versions that were replaced, while somebody may watch them.
    former: BTreeMap<(TitleName, Hash), Held>,
}

impl Shelf {
    /// Forgets everything and holds these, at most `max` of them. What was
    /// replaced is kept until it is released.
    pub(super) fn replace(&mut self, held: Vec<Held>, max: usize) {
        let named = held.into_iter().map(|held| (held.summary.title.clone(), held));
        let before = std::mem::replace(&mut self.titles, named.take(max).collect());
        for (title, held) in before {
            let version = held.manifest_hash;
            if self.titles.get(&title).is_some_and(|now| now.manifest_hash != version) {
                self.former.insert((title, version), held);
            }
        }
        for held in self.titles.values() {
            self.former.remove(&(held.summary.title.clone(), held.manifest_hash));
        }
    }

    /// Forgets, and names, the replaced versions that nobody watches, and those
    /// of titles that are gone.
    pub(super) fn release(&mut self, watched: impl Fn(&TitleName, Hash) -> bool) -> Vec<(TitleName, Hash)> {
        let over = |(title, version): &&(TitleName, Hash)| {
            !self.titles.contains_key(title) || !watched(title, *version)
        };
        let over: Vec<(TitleName, Hash)> = self.former.keys().filter(over).cloned().collect();
        for key in &over {
            self.former.remove(key);
        }
        over
    }

    pub(super) fn title(&self, name: &TitleName) -> Result<&Held, Refusal> {
        self.titles.get(name).ok_or(Refusal::NoSuchTitle)
    }

    /// The version of a title that a session is about; the one that is here now
    /// for who has no session.
    pub(super) fn watched(&self, name: &TitleName, version: Option<Hash>) -> Result<&Held, Refusal> {
        let now = self.title(name)?;
        match version.filter(|version| *version != now.manifest_hash) {
            Some(version) => self.former.get(&(name.clone(), version)).ok_or(Refusal::NoSuchTitle),
            None => Ok(now),
        }
    }

    /// Whether this version of a layer is here.
    pub(super) fn has_version(&self, name: &TitleName, layer: Layer, version: Hash) -> bool {
        self.titles.get(name).is_some_and(|held| held.manifest_hash == version && held.has(layer))
    }

    pub(super) fn all(&self) -> impl Iterator<Item = &Held> {
        self.titles.values()
    }

    pub(super) fn summaries(&self) -> Vec<TitleSummary> {
        self.titles.values().map(|held| held.summary.clone()).collect()
    }
}
