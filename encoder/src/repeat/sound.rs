//! The sound of a repeated programme: frames that run on.

use media::container::{AAC_FRAME, AudioSample, BlockSamples};

/// Longest hole between two frames that is filled by the frame before it; a
/// longer one was silence in the film and stays.
const FILLED: u64 = 3 * AAC_FRAME;

/// Puts frames of all rounds one behind the other.
pub(super) struct SoundRun {
    rate: u32,
    timescale: u32,
    last: Option<AudioSample>,
}

impl SoundRun {
    pub(super) fn new(rate: u32, timescale: u32) -> Self {
        Self { rate, timescale, last: None }
    }

    /// Places the frames of a block that starts its round at `offset` ticks.
    /// A frame that would come more than half a frame late is left out; a hole
    /// of more than half a frame is filled with the frame before it.
    pub(super) fn place(&mut self, frames: Vec<AudioSample>, offset: u64) -> Vec<AudioSample> {
        let moved = self.samples(offset);
        let mut placed = Vec::with_capacity(frames.len() + 1);
        for frame in frames {
            let wanted = frame.pts.saturating_add(moved);
            let mut next = self.last.as_ref().map(|last| last.pts + AAC_FRAME);
            while let (Some(at), Some(last)) = (next, &self.last)
                && wanted > at + AAC_FRAME / 2
                && wanted - at <= FILLED
            {
                let again = AudioSample { pts: at, ..last.clone() };
                placed.push(again.clone());
                self.last = Some(again);
                next = Some(at + AAC_FRAME);
            }
            let pts = match next {
                Some(at) if at > wanted + AAC_FRAME / 2 => continue,
                Some(at) if wanted.saturating_sub(at) <= FILLED => at,
                Some(_) | None => wanted,
            };
            let frame = AudioSample { pts, ..frame };
            placed.push(frame.clone());
            self.last = Some(frame);
        }
        placed
    }

    /// Gives frames to the block that holds their time, where moving them has
    /// carried some over an edge.
    pub(super) fn settle(&self, earlier: Option<&mut BlockSamples>, block: &mut BlockSamples) {
        let start = block.start;
        let before = |pts: u64| {
            u128::from(pts) * u128::from(self.timescale) < u128::from(start) * u128::from(self.rate)
        };
        let Some(earlier) = earlier else { return };
        let early = block.audio.iter().take_while(|frame| before(frame.pts)).count();
        let late = earlier.audio.iter().skip_while(|frame| before(frame.pts)).count();
        let late = earlier.audio.split_off(earlier.audio.len() - late);
        earlier.audio.extend(block.audio.drain(..early));
        block.audio.splice(0..0, late);
    }

    /// Ticks of the title as samples, rounded.
    fn samples(&self, ticks: u64) -> u64 {
        let (rate, scale) = (u128::from(self.rate), u128::from(self.timescale.max(1)));
        u64::try_from((u128::from(ticks) * rate + scale / 2) / scale).unwrap_or(u64::MAX)
    }
}

#[cfg(test)]
#[allow(clippy::indexing_slicing, reason = "tests state exact values")]
mod tests {
    use super::*;

    /// Places `rounds` of `frames` frames in a programme of `ticks` at 1000 a second.
    fn rounds(rounds: u64, frames: u64, ticks: u64) -> Vec<u64> {
        let mut run = SoundRun::new(48_000, 1_000);
        let frame = |n| AudioSample { pts: n * AAC_FRAME, duration: AAC_FRAME, data: vec![1].into() };
        let round = |r| run.place((0..frames).map(frame).collect(), r * ticks);
        (0..rounds).flat_map(round).map(|frame| frame.pts).collect()
    }

    #[test]
    fn frames_run_on_and_never_leave_their_pictures() {
        // A second is 46.875 frames; the film has 47 or, cut early, 46.
        for frames in [46, 47] {
            let placed = rounds(60, frames, 1_000);
            assert!(placed.windows(2).all(|pair| pair[1] - pair[0] == AAC_FRAME));
            let end = placed[placed.len() - 1] + AAC_FRAME;
            assert!(end.abs_diff(60 * 48_000) <= 2 * AAC_FRAME, "{end}");
        }
    }

    #[test]
    fn silence_of_the_film_stays_silence() {
        let placed = rounds(2, 10, 1_000);
        assert_eq!(placed[9] + AAC_FRAME, 10_240);
        assert_eq!(placed[10], 48_000);
    }
}
