//! What is held of the blocks that were not fed yet.

use crate::message::Part;
use crate::player::io::SourceId;
use crate::quality::Step;
use media::{Layer, Quality, Time};
use std::collections::BTreeMap;

/// What is known of one chunk.
#[derive(Clone, Debug, Default)]
pub(crate) struct Slot {
    pub(crate) held: Option<Time>,
    /// How much of it is held: a proxy may leave out the second half.
    pub(crate) part: Option<Part>,
    /// A proxy leaves it out of this block.
    pub(crate) filtered: bool,
    /// Whether a request for it is open.
    pub(crate) open: bool,
    /// When it was first asked for.
    pub(crate) asked: Option<Time>,
    /// How often it was asked for in vain.
    pub(crate) tries: u32,
    /// Sources that failed it since everybody was last given a new chance.
    pub(crate) failed_by: Vec<SourceId>,
    /// Not to be asked for before this.
    pub(crate) retry_at: Option<Time>,
    /// A source failed under it: if it is late, the rate is not to blame.
    pub(crate) troubled: bool,
}

/// The unfed blocks of the window, by index.
#[derive(Clone, Debug, Default)]
pub(crate) struct Buffer {
    blocks: BTreeMap<u32, Vec<Slot>>,
}

impl Buffer {
    /// The slot of a chunk, made when it is first looked at.
    pub(crate) fn slot_mut(&mut self, block: u32, layer: Layer, layers: u8) -> Option<&mut Slot> {
        let slots = self.blocks.entry(block).or_insert_with(|| vec![Slot::default(); usize::from(layers)]);
        slots.get_mut(layer.index())
    }

    /// The slot of a chunk if it exists already.
    pub(crate) fn slot(&self, block: u32, layer: Layer) -> Option<&Slot> {
        self.blocks.get(&block)?.get(layer.index())
    }

    pub(crate) fn existing_mut(&mut self, block: u32, layer: Layer) -> Option<&mut Slot> {
        self.blocks.get_mut(&block)?.get_mut(layer.index())
    }

    pub(crate) fn holds(&self, block: u32, layer: Layer) -> bool {
        self.slot(block, layer).is_some_and(|slot| slot.held.is_some())
    }

    /// When Base of a block came.
    pub(crate) fn base_held_at(&self, block: u32) -> Option<Time> {
        self.slot(block, Layer::BASE)?.held
    }

    /// How many layers of a block are held without a gap from Base upwards.
    pub(crate) fn quality_of(&self, block: u32) -> Quality {
        let slots = self.blocks.get(&block).map_or(&[][..], Vec::as_slice);
        let whole = slots.iter().take_while(|slot| slot.part == Some(Part::Whole)).count();
        // Above a half of a layer nothing is of use.
        let half = slots.get(whole).is_some_and(|slot| slot.held.is_some());
        Quality(u8::try_from(whole.saturating_add(half.into())).unwrap_or(u8::MAX))
    }

    /// The step that is shown of a block with so many of the layers that are held.
    pub(crate) fn step_of(&self, block: u32, quality: Quality) -> Step {
        let slot = quality.top().and_then(|top| self.slot(block, top));
        if slot.is_some_and(|slot| slot.part == Some(Part::First)) {
            Step::half(quality)
        } else {
            Step::whole(quality)
        }
    }

    /// How many layers of a block have come, or will not.
    pub(crate) fn settled(&self, block: u32) -> Quality {
        let slots = self.blocks.get(&block).map_or(&[][..], Vec::as_slice);
        let count = slots.iter().take_while(|slot| slot.held.is_some() || slot.filtered).count();
        Quality(u8::try_from(count).unwrap_or(u8::MAX))
    }

    /// Whether Base is held from `first` to `last`, both included.
    pub(crate) fn base_held_through(&self, first: u32, last: u32) -> bool {
        (first..=last).all(|block| self.holds(block, Layer::BASE))
    }

    pub(crate) fn forget(&mut self, block: u32) {
        self.blocks.remove(&block);
    }

    /// Forgets the blocks that `keep` does not pick and names them.
    pub(crate) fn retain(&mut self, keep: impl Fn(u32) -> bool) -> Vec<u32> {
        let gone: Vec<u32> = self.blocks.keys().copied().filter(|block| !keep(*block)).collect();
        for block in &gone {
            self.blocks.remove(block);
        }
        gone
    }

    /// When a chunk that had to wait may be asked for again.
    pub(crate) fn retries(&self) -> impl Iterator<Item = Time> {
        let slots = self.blocks.values().flatten();
        slots.filter(|slot| slot.held.is_none() && !slot.open).filter_map(|slot| slot.retry_at)
    }
}
