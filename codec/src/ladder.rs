//! The ladder of layers: how much smaller than the display each one is.

use crate::error::CodecError;
use crate::picture::MAX_SIDE;

/// The largest number of layers of a title, Base included.
pub const MAX_LAYERS: usize = 8;

/// Sizes of all layers of a title.
///
/// A layer with down-scale factor `f` has `ceil(size / f)` samples a side,
/// rounded up to even. Factors are powers of two (at most 128) and never grow
/// from one layer to the next; the topmost must be 1. `[2, 1, 1]` is the usual ladder.
///
/// ```
/// let ladder = codec::Ladder::new(321, 241, &[2, 1, 1])?;
/// assert_eq!(ladder.size(0), (162, 122));
/// assert_eq!(ladder.size(2), (322, 242));
/// assert_eq!(ladder.display(), (321, 241));
/// # Ok::<(), codec::LadderError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ladder {
    width: u32,
    height: u32,
    factors: Vec<u8>,
}

/// Why a ladder was refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LadderError {
    /// The display size is outside 1..=16384 a side.
    #[error("a display of {width}x{height} is outside 1x1..16384x16384")]
    Display {
        /// Asked width in samples.
        width: u32,
        /// Asked height in samples.
        height: u32,
    },
    /// There must be 1 to 8 layers.
    #[error("{0} layers, 1 to 8 are possible")]
    Layers(usize),
    /// A factor is no power of two.
    #[error("a down-scale factor of {0} is no power of two")]
    Factor(u8),
    /// A layer would be smaller than the one below it.
    #[error("down-scale factors must not grow: {below} is followed by {above}")]
    Grows {
        /// Factor of the lower layer.
        below: u8,
        /// Factor of the layer above.
        above: u8,
    },
    /// The topmost layer is smaller than the display.
    #[error("the topmost layer has factor {0}, it must have the display's size (1)")]
    Top(u8),
}

impl Ladder {
    /// Makes a ladder for a display size, one factor per layer, Base first.
    pub fn new(width: u32, height: u32, factors: &[u8]) -> Result<Self, LadderError> {
        if !(1..=MAX_SIDE).contains(&width) || !(1..=MAX_SIDE).contains(&height) {
            return Err(LadderError::Display { width, height });
        }
        if !(1..=MAX_LAYERS).contains(&factors.len()) {
            return Err(LadderError::Layers(factors.len()));
        }
        if let Some(&factor) = factors.iter().find(|factor| !factor.is_power_of_two()) {
            return Err(LadderError::Factor(factor));
        }
        for (&below, &above) in factors.iter().zip(factors.iter().skip(1)) {
            if above > below {
                return Err(LadderError::Grows { below, above });
            }
        }
        match factors.last() {
            Some(&top) if top != 1 => Err(LadderError::Top(top)),
            _ => Ok(Self { width, height, factors: factors.to_vec() }),
        }
    }

    /// Number of layers, Base included.
    pub fn layers(&self) -> usize {
        self.factors.len()
    }

    /// Number of layers above Base.
    pub fn enhancements(&self) -> usize {
        self.factors.len().saturating_sub(1)
    }

    /// Down-scale factors, Base first.
    pub fn factors(&self) -> &[u8] {
        &self.factors
    }

    /// Width and height of the display, in luma samples.
    pub fn display(&self) -> (u32, u32) {
        (self.width, self.height)
    }

    /// Width and height of a layer's pictures; a layer beyond the topmost has
    /// the topmost's size.
    pub fn size(&self, layer: usize) -> (u32, u32) {
        self.size_at(self.factor(layer))
    }

    pub(crate) fn factor(&self, layer: usize) -> u8 {
        self.factors.get(layer).copied().unwrap_or(1)
    }

    /// Size of a picture scaled down by `factor`.
    pub(crate) fn size_at(&self, factor: u8) -> (u32, u32) {
        let side = |side: u32| side.div_ceil(u32::from(factor.max(1))).next_multiple_of(2);
        (side(self.width), side(self.height))
    }

    /// Size of a layer as VP9 codes it: sides are multiples of 8.
    pub(crate) fn coded_size(&self, layer: usize) -> (u32, u32) {
        let (width, height) = self.size(layer);
        (width.next_multiple_of(8), height.next_multiple_of(8))
    }

    pub(crate) fn check(
        what: &'static str,
        expected: (u32, u32),
        found: (u32, u32),
    ) -> Result<(), CodecError> {
        if expected == found { Ok(()) } else { Err(CodecError::SizeMismatch { what, expected, found }) }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests state exact values")]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_rounded_up_to_even() {
        let ladder = Ladder::new(321, 241, &[4, 2, 1]).unwrap();
        let sizes: Vec<_> = (0..3).map(|layer| ladder.size(layer)).collect();
        assert_eq!(sizes, [(82, 62), (162, 122), (322, 242)]);
        assert_eq!(ladder.coded_size(1), (168, 128));
        assert_eq!(Ladder::new(960, 540, &[1]).unwrap().coded_size(0), (960, 544));
    }

    #[test]
    fn unlawful_ladders_are_named() {
        let refused = |factors: &[u8]| Ladder::new(64, 64, factors).unwrap_err();
        assert_eq!(refused(&[]), LadderError::Layers(0));
        assert_eq!(refused(&[1; 9]), LadderError::Layers(9));
        assert_eq!(refused(&[0, 1]), LadderError::Factor(0));
        assert_eq!(refused(&[3, 1]), LadderError::Factor(3));
        assert_eq!(refused(&[2, 4, 1]), LadderError::Grows { below: 2, above: 4 });
        assert_eq!(refused(&[4, 2]), LadderError::Top(2));
        assert_eq!(Ladder::new(0, 5, &[1]).unwrap_err(), LadderError::Display { width: 0, height: 5 });
    }
}
