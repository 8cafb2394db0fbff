//! What a node holds, by name and length.

use super::classes::{Archived, TitleFacts};
use super::lengths::ChunkLengths;
use crate::message::Refusal;
use media::{BitRate, ByteCount, Hash, Layer, Quality, TitleName, TitleSummary};
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
    /// Whether it lies in the store of titles from the origin's archive, or comes
    /// there; it was not placed then, and is counted apart.
    pub archived: bool,
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
    pub(super) fn facts(&self, whole: bool) -> TitleFacts {
        let duration = self.summary.duration;
        let rates: Vec<BitRate> = self.sizes.iter().map(|size| size.over(duration)).collect();
        let archive = self.archived.then(|| Archived {
            size: self.sizes.iter().fold(ByteCount(0), |sum, size| sum + *size),
            rate: BitRate(rates.iter().fold(0, |sum, rate| sum.saturating_add(rate.0))),
            whole,
        });
        TitleFacts { title: self.summary.title.clone(), class: self.summary.class, rates, archive }
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
    /// Titles in the store.
    archived: BTreeMap<TitleName, Held>,
    /// Titles on their way into the store.
    arriving: BTreeMap<TitleName, Held>,
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
        let placed = || self.titles.get(name);
        let stored = self.archived.get(name).or_else(|| self.arriving.get(name));
        stored.or_else(placed).ok_or(Refusal::NoSuchTitle)
    }

    /// This is all that the store holds now. What was on its way and is there has
    /// arrived.
    pub(super) fn store(&mut self, held: impl Iterator<Item = Held>) {
        self.archived = held.map(|held| (held.summary.title.clone(), held)).collect();
        let archived = &self.archived;
        let version = |title: &TitleName| archived.get(title).map(|held| held.manifest_hash);
        self.arriving.retain(|title, held| version(title) != Some(held.manifest_hash));
    }

    /// A title comes into the store, or might.
    pub(super) fn arrives(&mut self, held: Held) {
        self.arriving.insert(held.summary.title.clone(), held);
    }

    /// A title does not come, or leaves the store. Whether there was one.
    pub(super) fn evict(&mut self, title: &TitleName) -> bool {
        let arriving = self.arriving.remove(title).is_some();
        self.archived.remove(title).is_some() || arriving
    }

    /// A title does not come into the store after all.
    pub(super) fn stays_away(&mut self, title: &TitleName) {
        self.arriving.remove(title);
    }

    /// Whether this version is on its way into the store.
    pub(super) fn comes(&self, title: &TitleName, version: Hash) -> bool {
        self.arriving.get(title).is_some_and(|held| held.manifest_hash == version)
    }

    /// Titles in the store, whole, and their versions.
    pub(super) fn archived(&self) -> impl Iterator<Item = (&TitleName, Hash)> {
        self.archived.iter().map(|(title, held)| (title, held.manifest_hash))
    }

    /// What admission has to know: what is in the store goes before what was
    /// placed, since its viewers need all of it.
    pub(super) fn facts(&self) -> Vec<TitleFacts> {
        let placed = self.titles.values().map(|held| held.facts(true));
        let arriving = self.arriving.values().map(|held| held.facts(false));
        let stored = self.archived.values().map(|held| held.facts(true));
        let named = placed.chain(arriving).chain(stored).map(|facts| (facts.title.clone(), facts));
        named.collect::<BTreeMap<TitleName, TitleFacts>>().into_values().collect()
    }

    /// The version of a title that a session is about; the one that is here now
    /// for who has no session.
    pub(super) fn watched(&self, name: &TitleName, version: Option<Hash>) -> Result<&Held, Refusal> {
        let now = self.title(name)?;
        let Some(version) = version.filter(|version| *version != now.manifest_hash) else { return Ok(now) };
        let others = [&self.archived, &self.arriving, &self.titles].into_iter();
        let other = others.filter_map(|titles| titles.get(name)).find(|held| held.manifest_hash == version);
        other.or_else(|| self.former.get(&(name.clone(), version))).ok_or(Refusal::NoSuchTitle)
    }

    /// Whether this version of a layer is here.
    pub(super) fn has_version(&self, name: &TitleName, layer: Layer, version: Hash) -> bool {
        self.titles.get(name).is_some_and(|held| held.manifest_hash == version && held.has(layer))
    }

    /// A title that was placed here, or is an origin's own.
    pub(super) fn placed(&self, name: &TitleName) -> Option<&Held> {
        self.titles.get(name)
    }

    pub(super) fn all(&self) -> impl Iterator<Item = &Held> {
        self.titles.values()
    }

    pub(super) fn summaries(&self) -> Vec<TitleSummary> {
        let all = self.titles.iter().chain(&self.arriving).chain(&self.archived);
        let named: BTreeMap<&TitleName, &Held> = all.collect();
        let most = crate::message::MAX_TITLES;
        named.into_values().take(most).map(|held| held.summary.clone()).collect()
    }
}
