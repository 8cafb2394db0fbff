//! Presets, and one quality knob for all layers.

use crate::vpx::{Pattern, Speed};
use std::fmt;
use std::str::FromStr;

/// How much time the enhancement encoder takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Preset {
    /// libvpx realtime, cpu-used 5.
    Fast,
    /// libvpx good, cpu-used 3.
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
    /// hand in ALTREF for the next two. Lower layers are coded with less
    /// search: they carry a fifth of the bits.
    pub(crate) fn pattern(self, top: bool) -> Pattern {
        let good = |cpu_used| Speed { realtime: false, cpu_used };
        let (speed, long_term, first, step) = match (self, top) {
            (Self::Fast, _) => (Speed { realtime: true, cpu_used: 5 }, false, 0, 0),
            (Self::Default, false) => (good(5), false, -10, 0),
            (Self::Default, true) => (good(3), true, -6, 1),
            (Self::Best, false) => (good(1), true, -10, 1),
            (Self::Best, true) => (good(1), true, -6, 1),
        };
        Pattern { speed, long_term, first, step }
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
#[derive(Debug, Clone, PartialEq)]
pub struct Settings {
    /// Rate factor of the Base encoder (x264 CRF, 0..=51).
    pub crf: f32,
    /// VP9 quantizer (0..=63) of each enhancement layer, lowest first.
    pub quantizers: Vec<u8>,
}

impl Settings {
    /// The knob's default.
    pub const DEFAULT_QUALITY: f32 = 30.0;

    /// Settings for a quality (the Base's CRF, lower is better) and a number
    /// of layers, Base included.
    pub fn for_quality(quality: f32, layers: usize) -> Self {
        let crf = if quality.is_finite() { quality.clamp(10.0, 45.0) } else { Self::DEFAULT_QUALITY };
        let top = (crf - 2.0).clamp(4.0, 60.0);
        let first = (crf + 8.0).clamp(4.0, 62.0);
        let enhancements = layers.saturating_sub(1);
        let quantizers = (0..enhancements)
            .map(|layer| {
                let steps = u16::try_from(enhancements.saturating_sub(1).max(1)).unwrap_or(u16::MAX);
                let step = u16::try_from(layer).unwrap_or(u16::MAX);
                let share = if enhancements == 1 { 1.0 } else { f32::from(step) / f32::from(steps) };
                nearest(first + (top - first) * share)
            })
            .collect();
        Self { crf, quantizers }
    }
}

/// The nearest of the quantizers 0..=63.
fn nearest(value: f32) -> u8 {
    (0..=63_u8)
        .min_by(|&a, &b| (f32::from(a) - value).abs().total_cmp(&(f32::from(b) - value).abs()))
        .unwrap_or(63)
}
