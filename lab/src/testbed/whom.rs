//! Whom a fault is about, in words: `"base-1"`, `"any base"`, `"serving base"`,
//! `"a third of base"`, `"all enh2"`, `"the dead"`, `"viewers"`.

use media::Layer;
use protocol::PeerId;
use serde::de::{Deserialize, Deserializer, Error};
use std::fmt;

/// Some of the nodes and proxies, or all viewers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Whom {
    /// The one of this name.
    Named(PeerId),
    /// One that runs at this level, by lot.
    Any(Layer),
    /// The one at this level that serves the most viewers now.
    Serving(Layer),
    /// All that run at this level.
    All(Layer),
    /// One in so many of this level, rounded up, by lot.
    Part(u8, Layer),
    /// Everybody that was killed or stopped and not started again.
    Dead,
    /// Every viewer's own line.
    Viewers,
}

const HINT: &str = "name a node (base-1) or write \"any base\", \"serving base\", \"all enh2\", \
                    \"a third of base\", \"the dead\" or \"viewers\"";

impl Whom {
    fn read(text: &str) -> Option<Self> {
        let level = |name: &str| name.parse::<Layer>().ok();
        let words: Vec<&str> = text.split_whitespace().collect();
        Some(match words.as_slice() {
            ["viewers"] => Self::Viewers,
            ["the", "dead"] => Self::Dead,
            ["any", of] => Self::Any(level(of)?),
            ["serving", of] => Self::Serving(level(of)?),
            ["all", of] => Self::All(level(of)?),
            ["half", "of", of] => Self::Part(2, level(of)?),
            ["a", "third", "of", of] => Self::Part(3, level(of)?),
            ["a", "quarter", "of", of] => Self::Part(4, level(of)?),
            [name] => Self::Named(name.parse().ok()?),
            _ => return None,
        })
    }
}

impl<'de> Deserialize<'de> for Whom {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let text = String::deserialize(from)?;
        Self::read(&text).ok_or_else(|| D::Error::custom(format!("nobody is called {text:?}; {HINT}")))
    }
}

impl fmt::Display for Whom {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Named(peer) => write!(f, "{peer}"),
            Self::Any(layer) => write!(f, "any {layer}"),
            Self::Serving(layer) => write!(f, "serving {layer}"),
            Self::All(layer) => write!(f, "all {layer}"),
            Self::Part(2, layer) => write!(f, "half of {layer}"),
            Self::Part(3, layer) => write!(f, "a third of {layer}"),
            Self::Part(parts, layer) => write!(f, "one in {parts} of {layer}"),
            Self::Dead => f.write_str("the dead"),
            Self::Viewers => f.write_str("viewers"),
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests state exact values")]
mod tests {
    use super::*;

    #[test]
    fn what_is_read_is_written_the_same() {
        for text in ["base-1", "any base", "serving enh2", "all enh1", "half of base", "a third of base"] {
            assert_eq!(Whom::read(text).unwrap().to_string(), text);
        }
        for text in ["the dead", "viewers"] {
            assert_eq!(Whom::read(text).unwrap().to_string(), text);
        }
        assert_eq!(Whom::read("a quarter of base"), Some(Whom::Part(4, Layer::BASE)));
        for wrong in ["", "any node", "Base 1", "all of base"] {
            assert_eq!(Whom::read(wrong), None, "{wrong:?}");
        }
    }
}
