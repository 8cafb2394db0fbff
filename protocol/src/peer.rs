//! Who somebody is: a short name that certificates carry.

use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _};
use std::fmt;
use std::str::FromStr;

/// The longest name of a peer in bytes.
pub const MAX_PEER_BYTES: usize = 16;

/// The name of a node, proxy or viewer: 1 to 16 lower-case letters, digits and
/// hyphens. Small enough to be copied about and sorted in any machine.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PeerId([u8; MAX_PEER_BYTES]);

impl PeerId {
    /// The name as text.
    pub fn as_str(&self) -> &str {
        let text = self.0.split(|byte| *byte == 0).next().unwrap_or_default();
        std::str::from_utf8(text).unwrap_or_default()
    }
}

impl FromStr for PeerId {
    type Err = PeerIdError;

    fn from_str(text: &str) -> Result<Self, PeerIdError> {
        let lawful = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
        if text.is_empty() || text.len() > MAX_PEER_BYTES || !text.bytes().all(lawful) {
            return Err(PeerIdError);
        }
        let mut name = [0; MAX_PEER_BYTES];
        for (place, byte) in name.iter_mut().zip(text.bytes()) {
            *place = byte;
        }
        Ok(Self(name))
    }
}

impl fmt::Display for PeerId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl fmt::Debug for PeerId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl Serialize for PeerId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

impl<'de> Deserialize<'de> for PeerId {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = <std::borrow::Cow<'de, str>>::deserialize(deserializer)?;
        text.parse().map_err(D::Error::custom)
    }
}

/// A text that cannot name a peer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a peer's name has 1 to {MAX_PEER_BYTES} lower-case letters, digits and hyphens")]
pub struct PeerIdError;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_short_and_plain() {
        assert_eq!("base-1".parse::<PeerId>().map(|p| p.to_string()), Ok("base-1".into()));
        for bad in ["", "Base", "a b", "seventeen-letters", "\u{e9}"] {
            assert_eq!(bad.parse::<PeerId>(), Err(PeerIdError), "{bad:?}");
        }
    }

    #[test]
    fn order_is_the_order_of_the_text() {
        let mut peers: Vec<PeerId> =
            ["enh1", "base-2", "base-1"].iter().filter_map(|p| p.parse().ok()).collect();
        peers.sort();
        assert_eq!(format!("{peers:?}"), "[base-1, base-2, enh1]");
    }
}
