//! Presets, and one quality knob for all layers.

use crate::vpx::{Pattern, Speed};
use std::fmt;
use std::str::FromStr;

/// How much time the enhancement encoder takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Preset {
    /// libvpx realtime, cpu-used 5.
    Fast,
    /// libvpx good, cpu-used 3 in the topmost layer and 5 below.
    #[default]
    Default,
    /// libvpx good, cpu-used 1.
    Best,
}

impl Preset {
    /// All presets, fastest first.
    pub const ALL: [Self; 3] = [Self::Fast, Self::Default, Self::Best];

    /// How a layer is coded; `top` for the topmost one.
    ///
    /// The first picture of a block has nothing but the layer below to be
    /// predicted from, and all others build on it, so it is coded finer. In the
    /// topmost layer every second picture is a little finer too and stays at
    /// hand in ALTREF for the next two. The first picture of the lower layer is
    /// as fine as the topmost layer's: what does not move is then coded once for
    /// both. Lower layers are coded with less search, which there costs nothing.
    /// With `halves` nothing refers to the odd pictures, so they are coded coarser.
    pub(crate) fn pattern(self, top: bool, halves: bool) -> Pattern {
        let good = |cpu_used| Speed { realtime: false, cpu_used };
        let (speed, long_term, first, step) = match (self, top) {
            (Self::Fast, _) => (Speed { realtime: true, cpu_used: 5 }, false, 0, 0),
            (Self::Default, false) => (good(5), false, -28, 0),
            (Self::Default, true) => (good(3), true, -8, 1),
            (Self::Best, false) => (good(1), false, -28, 0),
            (Self::Best, true) => (good(1), true, -8, 1),
        };
        let step = if halves { step + 2 } else { step };
        // In halves LAST is the even picture before, and ALTREF takes the odd ones.
        let long_term = long_term && !halves;
        Pattern { speed, long_term, first, step, droppable: halves }
    }

    /// The preset's name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Fast => "fast",
            Self::Default => "default",
            Self::Best => "best",
        }
    }
}

impl fmt::Display for Preset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// A text that names no preset.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("no preset {0:?}: fast, default and best exist")]
pub struct UnknownPreset(pub String);

impl FromStr for Preset {
    type Err = UnknownPreset;

    fn from_str(text: &str) -> Result<Self, UnknownPreset> {
        Self::ALL
            .into_iter()
            .find(|preset| preset.name() == text)
            .ok_or_else(|| UnknownPreset(text.to_owned()))
    }
}

/// Quantizers of all layers of a title.
///
/// One knob moves them together: the *quality*; 6 more halve the precision of
/// every enhancement layer. The topmost layer's quantizer step is `152 *
/// 2^((quality - 30) / 6)`, that of the lowest enhancement layer 2.5 times that,
/// so that silver lies between bronze and gold. Base's rate factor is 27 at
/// quality 30 and moves by two where the quality moves by three: at high quality
/// a very fine Base would leave silver nothing to add, at low quality a good one
/// costs little.
#[derive(Debug, Clone, PartialEq)]
pub struct Settings {
    /// Rate factor of the Base encoder (x264 CRF, 0..=51).
    pub crf: f32,
    /// VP9 quantizer (0..=63) of each enhancement layer, lowest first.
    pub quantizers: Vec<u8>,
}

/// VP9's quantizer step for each quantizer 0..=63 of libvpx (VP9 bitstream
/// specification, `ac_qlookup` at libvpx's `quantizer_to_qindex`).
const STEPS: [u16; 64] = [
    4, 11, 15, 19, 23, 27, 31, 35, 39, 43, 47, 51, 55, 59, 63, 67, 71, 75, 79, 83, 87, 91, 95, 99, 104, 112,
    120, 128, 136, 144, 152, 164, 176, 188, 200, 215, 231, 247, 265, 285, 305, 329, 353, 380, 408, 440, 474,
    510, 550, 593, 639, 689, 743, 801, 864, 933, 1007, 1087, 1173, 1267, 1369, 1479, 1628, 1828,
];

impl Settings {
    /// The knob's default.
    pub const DEFAULT_QUALITY: f32 = 30.0;

    /// Lawful values of the knob; others are moved to the nearest one.
    pub const QUALITIES: std::ops::RangeInclusive<f32> = 10.0..=46.0;

    /// Settings for a quality (lower is better) and a number of layers, Base
    /// included.
    pub fn for_quality(quality: f32, layers: usize) -> Self {
        let quality = if quality.is_finite() { quality } else { Self::DEFAULT_QUALITY };
        let quality = quality.clamp(*Self::QUALITIES.start(), *Self::QUALITIES.end());
        let top = 152.0 * 2_f32.powf((quality - 30.0) / 6.0);
        let enhancements = u8::try_from(layers.saturating_sub(1)).unwrap_or(u8::MAX);
        // Distance of the lowest enhancement layer from the topmost, in sixths
        // of an octave, shared evenly by the steps between them.
        let distance = if enhancements > 2 { 12.0 } else { 8.0 };
        let quantizers = (1..=enhancements)
            .map(|layer| {
                let steps = f32::from(enhancements.saturating_sub(1).max(1));
                let above = f32::from(enhancements - layer);
                nearest(top * 2_f32.powf(distance * above / steps / 6.0))
            })
            .collect();
        Self { crf: 7.0 + quality * 2.0 / 3.0, quantizers }
    }

    /// The rate factor as encoders take it that know whole ones only.
    pub fn whole_crf(&self) -> u32 {
        let off = |whole: u8| (f32::from(whole) - self.crf).abs();
        (0..=50_u8).min_by(|&a, &b| off(a).total_cmp(&off(b))).unwrap_or(0).into()
    }
}

impl Default for Settings {
    /// Three layers at the default quality.
    fn default() -> Self {
        Self::for_quality(Self::DEFAULT_QUALITY, 3)
    }
}

/// The quantizer whose step is nearest, as a ratio.
fn nearest(step: f32) -> u8 {
    let off = |(_, candidate): &(u8, u16)| (f32::from(*candidate) / step).log2().abs();
    (0..).zip(STEPS).min_by(|a, b| off(a).total_cmp(&off(b))).map_or(0, |(quantizer, _)| quantizer)
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests state exact values")]
mod tests {
    use super::*;

    #[test]
    fn one_knob_moves_every_layer() {
        let table = [
            (10.0, 14, [8, 2]),
            (26.0, 24, [37, 22]),
            (30.0, 27, [43, 30]),
            (34.0, 30, [49, 37]),
            (46.0, 38, [63, 55]),
        ];
        for (quality, crf, quantizers) in table {
            let settings = Settings::for_quality(quality, 3);
            assert_eq!((settings.whole_crf(), settings.quantizers), (crf, quantizers.to_vec()), "{quality}");
        }
    }

    #[test]
    fn any_number_of_layers_and_any_knob_is_lawful() {
        assert_eq!(Settings::for_quality(30.0, 1).quantizers, [0_u8; 0]);
        assert_eq!(Settings::for_quality(30.0, 2).quantizers, [30]);
        assert_eq!(Settings::for_quality(30.0, 4).quantizers, [49, 40, 30]);
        for quality in [f32::NAN, f32::INFINITY, -5.0, 1e9] {
            let settings = Settings::for_quality(quality, 8);
            assert!((6.0..=42.0).contains(&settings.crf) && (6..=42).contains(&settings.whole_crf()));
            assert!(settings.quantizers.iter().all(|&quantizer| quantizer <= 63));
            assert!(settings.quantizers.is_sorted_by(|below, above| below >= above));
        }
    }

    #[test]
    fn presets_are_read_as_they_are_written() {
        for preset in Preset::ALL {
            assert_eq!(preset.to_string().parse(), Ok(preset));
        }
        let unknown = "medium".parse::<Preset>().unwrap_err();
        assert_eq!(unknown.to_string(), "no preset \"medium\": fast, default and best exist");
    }
}
