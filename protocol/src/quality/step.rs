//! The steps between qualities of a title in halves.

use crate::message::Part;
use media::{Layer, Quality};
use serde::{Serialize, Serializer};
use std::fmt;

/// All layers of a quality, or all but the second half of the topmost one: the `a`
/// half of a layer is of use only where nothing stands above it. Lower steps come
/// before higher ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Step {
    /// The layers, of which the topmost may be there by half.
    pub quality: Quality,
    /// How much of the topmost one.
    pub part: Part,
}

impl Step {
    /// All of a quality.
    pub const fn whole(quality: Quality) -> Self {
        Self { quality, part: Part::Whole }
    }

    /// A quality without the second half of its topmost layer. Base has no halves.
    pub fn half(quality: Quality) -> Self {
        let part = if quality <= Quality::BRONZE { Part::Whole } else { Part::First };
        Self { quality, part }
    }

    /// How much of a layer belongs to it; none of those above.
    pub fn part_of(self, layer: Layer) -> Option<Part> {
        if !self.quality.includes(layer) {
            return None;
        }
        Some(if self.quality.top() == Some(layer) { self.part } else { Part::Whole })
    }

    /// This step and all below it, down to bronze, the best first; with half steps
    /// among them if the title is in halves.
    pub fn downwards(self, halves: bool) -> impl Iterator<Item = Self> {
        let qualities = (1..=self.quality.layers()).rev().map(Quality);
        let half = move |quality| Some(Self::half(quality)).filter(|step| halves && step.part == Part::First);
        let steps = qualities.flat_map(move |quality| [Some(Self::whole(quality)), half(quality)]);
        steps.flatten().filter(move |step| *step <= self)
    }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.part {
            Part::Whole => self.quality.fmt(f),
            Part::First => write!(f, "{}/a", self.quality),
        }
    }
}

/// As it is written for people.
impl Serialize for Step {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_steps_lie_between_the_qualities_and_only_the_topmost_layer_is_halved() {
        let down = |halves| -> Vec<String> {
            Step::whole(Quality::GOLD).downwards(halves).map(|step| step.to_string()).collect()
        };
        assert_eq!(down(false), ["gold", "silver", "bronze"]);
        assert_eq!(down(true), ["gold", "gold/a", "silver", "silver/a", "bronze"]);
        let step = Step::half(Quality::GOLD);
        assert!(Step::whole(Quality::SILVER) < step && step < Step::whole(Quality::GOLD));
        let parts = [Layer::BASE, Layer::ENH1, Layer::ENH2].map(|layer| step.part_of(layer));
        assert_eq!(parts, [Some(Part::Whole), Some(Part::Whole), Some(Part::First)]);
        assert_eq!(Step::whole(Quality::SILVER).part_of(Layer::ENH2), None);
        assert_eq!(Step::half(Quality::BRONZE), Step::whole(Quality::BRONZE));
    }
}
