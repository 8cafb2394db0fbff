//! Layers and the qualities they add up to.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// The most layers a title may have.
pub const MAX_LAYERS: usize = 8;

/// One layer of a title, counted from the bottom: 0 is Base, 1 the first
/// enhancement. How many there are is data of the title.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Layer(pub u8);

impl Layer {
    /// The layer that decodes alone and carries the audio.
    pub const BASE: Self = Self(0);
    /// The first enhancement.
    pub const ENH1: Self = Self(1);
    /// The second enhancement.
    pub const ENH2: Self = Self(2);

    /// The position of the layer in lists ordered from Base upwards.
    pub fn index(self) -> usize {
        usize::from(self.0)
    }

    /// The quality that this layer completes.
    pub fn quality(self) -> Quality {
        Quality(self.0.saturating_add(1))
    }

    /// The first `count` layers, Base first.
    pub fn first(count: u8) -> impl DoubleEndedIterator<Item = Self> {
        (0..count).map(Self)
    }
}

impl fmt::Display for Layer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            0 => f.write_str("base"),
            n => write!(f, "enh{n}"),
        }
    }
}

impl FromStr for Layer {
    type Err = LayerParseError;

    fn from_str(text: &str) -> Result<Self, LayerParseError> {
        let number = match text {
            "base" => 0,
            _ => text
                .strip_prefix("enh")
                .and_then(|n| n.parse::<u8>().ok())
                .filter(|n| *n > 0)
                .ok_or(LayerParseError)?,
        };
        if usize::from(number) < MAX_LAYERS { Ok(Self(number)) } else { Err(LayerParseError) }
    }
}

/// A text that names no layer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a layer is `base`, `enh1`, `enh2` and so on")]
pub struct LayerParseError;

/// How good a picture is: the number of layers it was made from. 0 is nothing
/// at all; 1, 2 and 3 are called bronze, silver and gold.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Quality(pub u8);

impl Quality {
    /// No picture.
    pub const NONE: Self = Self(0);
    /// Base alone.
    pub const BRONZE: Self = Self(1);
    /// Base and one enhancement.
    pub const SILVER: Self = Self(2);
    /// Base and two enhancements.
    pub const GOLD: Self = Self(3);

    /// The number of layers.
    pub fn layers(self) -> u8 {
        self.0
    }

    /// The highest layer of this quality; none for no picture.
    pub fn top(self) -> Option<Layer> {
        self.0.checked_sub(1).map(Layer)
    }

    /// Whether `layer` belongs to this quality.
    pub fn includes(self, layer: Layer) -> bool {
        layer.0 < self.0
    }
}

impl fmt::Display for Quality {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            0 => f.write_str("none"),
            1 => f.write_str("bronze"),
            2 => f.write_str("silver"),
            3 => f.write_str("gold"),
            n => write!(f, "{n} layers"),
        }
    }
}

impl FromStr for Quality {
    type Err = QualityParseError;

    fn from_str(text: &str) -> Result<Self, QualityParseError> {
        match text {
            "bronze" => Ok(Self::BRONZE),
            "silver" => Ok(Self::SILVER),
            "gold" => Ok(Self::GOLD),
            _ => match text.strip_suffix(" layers").unwrap_or(text).parse::<u8>() {
                Ok(n) if n > 0 && usize::from(n) <= MAX_LAYERS => Ok(Self(n)),
                _ => Err(QualityParseError),
            },
        }
    }
}

/// A text that names no quality.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a quality is `bronze`, `silver`, `gold` or a number of layers from 1 to {MAX_LAYERS}")]
pub struct QualityParseError;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_back_as_written() {
        for n in 0..8 {
            assert_eq!(Layer(n).to_string().parse(), Ok(Layer(n)));
            assert_eq!(Quality(n + 1).to_string().parse(), Ok(Quality(n + 1)));
        }
        assert!("enh0".parse::<Layer>().is_err());
        assert!("enh8".parse::<Layer>().is_err());
        assert!("platinum".parse::<Quality>().is_err());
        assert!("0".parse::<Quality>().is_err());
    }

    #[test]
    fn silver_is_base_and_one_enhancement() {
        assert!(Quality::SILVER.includes(Layer::BASE));
        assert!(Quality::SILVER.includes(Layer::ENH1));
        assert!(!Quality::SILVER.includes(Layer::ENH2));
        assert_eq!(Quality::SILVER.top(), Some(Layer::ENH1));
        assert_eq!(Layer::ENH2.quality(), Quality::GOLD);
        assert_eq!(Quality::NONE.top(), None);
    }
}
