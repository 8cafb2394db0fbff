//! How long the chunks of a title are, in bytes and in time.

use media::{ByteCount, Layer, Span};

/// Lengths of every chunk of one title, whether it is held here or not.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ChunkLengths {
    durations: Vec<Span>,
    layers: Vec<Vec<ByteCount>>,
}

impl ChunkLengths {
    /// The duration of each block, and for each layer, Base first, the length of
    /// its chunk of each block.
    pub fn new(durations: Vec<Span>, layers: Vec<Vec<ByteCount>>) -> Self {
        Self { durations, layers }
    }

    /// The length of one chunk; nothing if there is none.
    pub fn of(&self, block: u32, layer: Layer) -> Option<ByteCount> {
        self.layers.get(layer.index())?.get(usize::try_from(block).ok()?).copied()
    }

    /// The most bytes of a layer in any run of whole blocks that lasts for
    /// `window`, and how long that run is; the whole title, if it is shorter.
    ///
    /// A mean over the title would not do for a film of quiet and busy scenes: a
    /// viewer in a busy one would get its chunks too late.
    pub fn busiest(&self, layer: Layer, window: Span) -> (ByteCount, Span) {
        let Some(lengths) = self.layers.get(layer.index()) else { return Default::default() };
        let blocks = || self.durations.iter().zip(lengths).map(|(span, bytes)| (*span, bytes.0));
        let (mut bytes, mut span) = (0_u64, Span::ZERO);
        let (mut most, mut lasts) = (0_u64, Span::ZERO);
        let mut first = blocks().peekable();
        for (duration, length) in blocks() {
            bytes = bytes.saturating_add(length);
            span += duration;
            // The shortest run that ends here and is long enough.
            while let Some((gone, less)) =
                first.next_if(|(gone, _)| span.saturating_sub(*gone) >= window && *gone < span)
            {
                bytes = bytes.saturating_sub(less);
                span = span.saturating_sub(gone);
            }
            if bytes > most {
                (most, lasts) = (bytes, span);
            }
        }
        // The first run may hold the most before it is long enough.
        let whole = blocks().fold(Span::ZERO, |sum, (duration, _)| sum + duration);
        (ByteCount(most), lasts.max(window.min(whole)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lengths(blocks: &[(u64, u64)]) -> ChunkLengths {
        let durations = blocks.iter().map(|(millis, _)| Span::from_millis(*millis)).collect();
        ChunkLengths::new(durations, vec![blocks.iter().map(|(_, bytes)| ByteCount(*bytes)).collect()])
    }

    #[test]
    fn the_busiest_run_counts_and_not_the_mean() {
        let film = lengths(&[(1000, 10), (1000, 10), (1000, 90), (1000, 80), (1000, 10), (1000, 10)]);
        let of = |millis| film.busiest(Layer::BASE, Span::from_millis(millis));
        assert_eq!(of(1000), (ByteCount(90), Span::from_millis(1000)));
        assert_eq!(of(2000), (ByteCount(170), Span::from_millis(2000)));
        assert_eq!(of(2001), (ByteCount(180), Span::from_millis(3000)), "whole blocks");
        assert_eq!(of(60_000), (ByteCount(210), Span::from_millis(6000)), "no longer than the title");
        assert_eq!(film.busiest(Layer::ENH1, Span::from_secs(1)), (ByteCount(0), Span::ZERO));
        assert_eq!(film.of(2, Layer::BASE), Some(ByteCount(90)));
        assert_eq!((film.of(6, Layer::BASE), film.of(0, Layer::ENH1)), (None, None));
    }
}
