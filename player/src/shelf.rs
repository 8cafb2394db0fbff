//! The bytes of the chunks that were fetched and not fed yet.

use bytes::Bytes;
use media::{Layer, Quality};
use std::collections::BTreeMap;

/// Chunks by name. It is as small as the machine's buffer: the machine says
/// what is put here and what is forgotten.
#[derive(Debug, Default)]
pub struct Shelf {
    chunks: BTreeMap<(u32, Layer), Bytes>,
}

impl Shelf {
    /// Keeps a verified chunk.
    pub fn put(&mut self, block: u32, layer: Layer, bytes: Bytes) {
        self.chunks.insert((block, layer), bytes);
    }

    /// The first layers of a block, Base first; none if one of them is missing.
    pub fn take(&self, block: u32, quality: Quality) -> Option<Vec<Bytes>> {
        let chunk = |layer| self.chunks.get(&(block, layer)).cloned();
        Layer::first(quality.layers()).map(chunk).collect()
    }

    /// Forgets all layers of a block.
    pub fn evict(&mut self, block: u32) {
        self.chunks.retain(|(of, _), _| *of != block);
    }

    /// How many bytes are held.
    pub fn bytes(&self) -> usize {
        self.chunks.values().map(Bytes::len).sum()
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests state exact values")]
mod tests {
    use super::*;

    #[test]
    fn a_block_is_taken_whole_or_not_at_all() {
        let mut shelf = Shelf::default();
        shelf.put(3, Layer::BASE, Bytes::from_static(b"base"));
        shelf.put(3, Layer::ENH2, Bytes::from_static(b"enh2"));
        assert_eq!(shelf.take(3, Quality::BRONZE).unwrap(), ["base"]);
        assert_eq!(shelf.take(3, Quality::GOLD), None);
        assert_eq!(shelf.bytes(), 8);
        shelf.evict(3);
        assert_eq!((shelf.take(3, Quality::BRONZE), shelf.bytes()), (None, 0));
    }
}
