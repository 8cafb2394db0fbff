//! The sound: which AAC passes through, and when its frames start.

use bytes::Bytes;
use media::Span;
use media::container::{AAC_FRAME, AudioSample};

/// Sampling rates by their index in an `AudioSpecificConfig` (ISO/IEC 14496-3,
/// table 1.18).
const RATES: [u32; 13] =
    [96_000, 88_200, 64_000, 48_000, 44_100, 32_000, 24_000, 22_050, 16_000, 12_000, 11_025, 8_000, 7_350];

/// AAC-LC as the container and the players need it described.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct AudioFormat {
    /// Samples a second.
    pub(crate) sample_rate: u32,
    /// Number of channels.
    pub(crate) channels: u8,
    /// The `AudioSpecificConfig`.
    pub(crate) config: Vec<u8>,
    /// Silent samples that the encoder put before the sound.
    pub(crate) priming: u32,
}

impl AudioFormat {
    /// Reads an `AudioSpecificConfig`. None unless it is plain AAC-LC with
    /// frames of 1024 samples and a known layout of channels.
    pub(crate) fn parse(config: &[u8], priming: u32) -> Option<Self> {
        let (first, second) = (u16::from(*config.first()?), u16::from(*config.get(1)?));
        let bits = (first << 8) | second;
        let (object, rate, channels) = (bits >> 11, (bits >> 7) & 15, (bits >> 3) & 15);
        let short_frames = bits & 4 != 0;
        // What follows may announce SBR, or (ffmpeg, Android) say that there is none.
        let extended = matches!(config, [_, _, 0x56, 0xe5, flag, ..] if flag & 0x80 != 0);
        let known = object == 2 && (1..=7).contains(&channels) && !short_frames && !extended;
        let sample_rate = *RATES.get(usize::from(rate)).filter(|_| known)?;
        let channels = if channels == 7 { 8 } else { u8::try_from(channels).ok()? };
        Some(Self { sample_rate, channels, config: config.to_vec(), priming })
    }
}

/// Counts frames of sound in samples from the first picture.
#[derive(Debug)]
pub(crate) struct AudioClock {
    rate: u32,
    priming: u32,
    origin: i64,
    next: Option<u64>,
    /// Where the first hole in the sound begins and ends, in samples.
    hole: Option<(u64, u64)>,
}

impl AudioClock {
    /// `origin` is the time of the first picture in nanoseconds.
    pub(crate) fn new(format: &AudioFormat, origin: i64) -> Self {
        Self { rate: format.sample_rate, priming: format.priming, origin, next: None, hole: None }
    }

    /// Where the sound that was placed ends.
    pub(crate) fn end(&self) -> Span {
        Span::from_ticks(self.next.unwrap_or(0), self.rate)
    }

    /// Where sound is missing for the first time in the middle of it, and how long.
    pub(crate) fn hole(&self) -> Option<(Span, Span)> {
        let (from, to) = self.hole?;
        Some((Span::from_ticks(from, self.rate), Span::from_ticks(to.saturating_sub(from), self.rate)))
    }

    /// The frame with its place, or nothing if it starts before the first
    /// picture. Frames follow each other without gap while the film's times
    /// agree within 10 ms; beyond that the film is right: a gap stays a gap,
    /// and frames that would overlap are left out.
    pub(crate) fn place(&mut self, nanos: i64, data: Bytes) -> Option<AudioSample> {
        let since = i128::from(nanos) - i128::from(self.origin);
        let rate = i128::from(self.rate);
        let samples = (since * rate + 500_000_000).div_euclid(1_000_000_000) - i128::from(self.priming);
        let tolerance = u64::from(self.rate / 100);
        // A rounding error must not cost a frame.
        let said = u64::try_from(samples + i128::from(self.rate / 1_000)).ok()?;
        let said = said.saturating_sub(u64::from(self.rate / 1_000));
        let pts = match self.next {
            Some(next) if next.abs_diff(said) <= tolerance => next,
            Some(next) if said < next => return None,
            Some(next) => {
                self.hole.get_or_insert((next, said));
                said
            }
            None => said,
        };
        self.next = Some(pts.saturating_add(AAC_FRAME));
        Some(AudioSample { pts, duration: AAC_FRAME, data })
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests state exact values")]
mod tests {
    use super::*;

    #[test]
    fn plain_aac_passes_and_nothing_else() {
        let format = AudioFormat::parse(&[0x11, 0x90], 0).unwrap();
        assert_eq!((format.sample_rate, format.channels), (48_000, 2));
        assert_eq!(AudioFormat::parse(&[0x12, 0x30], 0).unwrap().channels, 6);
        assert!(AudioFormat::parse(&[0x2b, 0x11, 0x88], 0).is_none(), "SBR");
        assert!(AudioFormat::parse(&[0x11, 0x94], 0).is_none(), "frames of 960 samples");
        assert!(AudioFormat::parse(&[0x13, 0x10, 0x56, 0xe5, 0x80], 0).is_none(), "announced SBR");
        assert!(AudioFormat::parse(&[0x12, 0x10, 0x56, 0xe5, 0x00], 0).is_some(), "no SBR, said so");
        assert!(AudioFormat::parse(&[0x11], 0).is_none());
    }

    #[test]
    fn sound_before_the_first_picture_is_cut_and_gaps_stay() {
        let format = AudioFormat::parse(&[0x11, 0x90], 0).unwrap();
        let mut clock = AudioClock::new(&format, 1_000_000_000);
        let mut at = |millis: i64| clock.place(millis * 1_000_000, Bytes::new()).map(|frame| frame.pts);
        assert_eq!(at(990), None);
        assert_eq!(at(1_011), Some(528));
        assert_eq!(at(1_032), Some(1_552), "a rounded time does not tear the sound");
        assert_eq!(at(1_500), Some(24_000));
        assert_eq!(at(1_480), None, "an overlap");
        assert_eq!(at(1_522), Some(25_024));
        let hole = (Span::from_ticks(2_576, 48_000), Span::from_ticks(21_424, 48_000));
        assert_eq!(clock.hole(), Some(hole), "told once, where it begins");
    }
}
