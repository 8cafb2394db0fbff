//! From a layer's picture to the size of a layer above it.

use crate::error::CodecError;
use crate::ladder::Ladder;
use crate::picture::{Picture, PictureRef};
use crate::scale;

/// Scales pictures of one layer up to a larger size, by doubling as often as
/// needed, and keeps its buffers.
///
/// After each doubling the picture is cropped to what the ladder gives that
/// factor, so a step never depends on where the scaling ends.
#[derive(Debug)]
pub(crate) struct Lift {
    /// The part of the incoming picture that belongs to the layer.
    from: (u32, u32),
    /// Visible size and buffer after each doubling; without any, only padding.
    steps: Vec<Step>,
    /// Pads or crops when nothing is scaled and the sizes differ.
    copy: Option<Picture>,
}

#[derive(Debug)]
struct Step {
    visible: (u32, u32),
    buffer: Picture,
}

impl Lift {
    /// The prediction for a layer: the picture of the layer below, at this
    /// layer's size, extended to its coded size.
    pub(crate) fn prediction(ladder: &Ladder, layer: usize) -> Result<Self, CodecError> {
        let below = layer.saturating_sub(1);
        let target = ladder.coded_size(layer);
        Self::new(ladder, below, ladder.factor(layer), ladder.size(layer), target)
    }

    /// What is shown when `layer` is the topmost one at hand.
    pub(crate) fn display(ladder: &Ladder, layer: usize) -> Result<Self, CodecError> {
        Self::new(ladder, layer, 1, ladder.display(), ladder.display())
    }

    fn new(
        ladder: &Ladder,
        below: usize,
        factor: u8,
        visible: (u32, u32),
        target: (u32, u32),
    ) -> Result<Self, CodecError> {
        let mut steps = Vec::new();
        let mut reached = ladder.factor(below);
        while reached > factor {
            reached /= 2;
            let (visible, size) = if reached == factor {
                (visible, target)
            } else {
                (ladder.size_at(reached), ladder.size_at(reached))
            };
            steps.push(Step { visible, buffer: Picture::new(size.0, size.1)? });
        }
        let copy = if steps.is_empty() { Some(Picture::new(target.0, target.1)?) } else { None };
        Ok(Self { from: ladder.size(below), steps, copy })
    }

    /// Scales one picture. It may come with VP9's padding around it.
    ///
    /// A coded picture that already has the target's size passes through as it
    /// is, its padding included.
    pub(crate) fn run<'a>(&'a mut self, source: PictureRef<'a>) -> PictureRef<'a> {
        if let Some(copy) = &mut self.copy {
            if source.size() == copy.size() {
                return source;
            }
            copy.copy_from(source.cropped(self.from.0, self.from.1));
            return copy.view();
        }
        let mut current = source.cropped(self.from.0, self.from.1);
        for Step { visible, buffer } in &mut self.steps {
            scale::up_into(current, visible.0, visible.1, buffer);
            current = buffer.view();
        }
        current
    }
}
