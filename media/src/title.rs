//! Titles by name, and what a list of them says.

use crate::class::TitleClass;
use crate::units::Span;
use serde::{Deserialize, Deserializer, Serialize, de::Error as _};
use std::borrow::Borrow;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

/// The longest name of a title, in bytes of UTF-8.
pub const MAX_TITLE_BYTES: usize = 128;

/// The name of a title: the name of its folder in a library and its path in a
/// `lamina://` address. Never empty, never a path: no slash, backslash or
/// control character, no leading dot.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(transparent)]
pub struct TitleName(Arc<str>);

impl TitleName {
    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Borrow<str> for TitleName {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for TitleName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for TitleName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0, f)
    }
}

impl FromStr for TitleName {
    type Err = TitleNameError;

    fn from_str(text: &str) -> Result<Self, TitleNameError> {
        if text.is_empty() {
            return Err(TitleNameError::Empty);
        }
        if text.len() > MAX_TITLE_BYTES {
            return Err(TitleNameError::TooLong(text.len()));
        }
        if text.starts_with('.') {
            return Err(TitleNameError::LeadingDot);
        }
        match text.chars().find(|c| matches!(c, '/' | '\\') || c.is_control()) {
            Some(bad) => Err(TitleNameError::Character(bad)),
            None => Ok(Self(text.into())),
        }
    }
}

impl<'de> Deserialize<'de> for TitleName {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = <std::borrow::Cow<'de, str>>::deserialize(deserializer)?;
        text.parse().map_err(D::Error::custom)
    }
}

/// Why a text cannot name a title.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum TitleNameError {
    /// There is nothing in it.
    #[error("a title's name is never empty")]
    Empty,
    /// It is longer than [`MAX_TITLE_BYTES`].
    #[error("a title's name has at most {MAX_TITLE_BYTES} bytes, this one has {0}")]
    TooLong(usize),
    /// It would be a hidden folder, or lead out of the library.
    #[error("a title's name does not start with a dot")]
    LeadingDot,
    /// It holds a character that no folder's name should have.
    #[error("a title's name does not hold the character {0:?}")]
    Character(char),
}

/// One line of the list of what can be watched.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TitleSummary {
    /// The title's name.
    pub title: TitleName,
    /// How long it runs.
    pub duration: Span,
    /// Width of the displayed picture in pixels.
    pub width: u32,
    /// Height of the displayed picture in pixels.
    pub height: u32,
    /// Number of layers.
    pub layers: u8,
    /// Whether it has sound.
    pub audio: bool,
    /// By what admission tells it from others.
    pub class: TitleClass,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_never_a_path() {
        assert_eq!("big buck bunny".parse::<TitleName>().map(|t| t.to_string()), Ok("big buck bunny".into()));
        assert_eq!("".parse::<TitleName>(), Err(TitleNameError::Empty));
        assert_eq!("..".parse::<TitleName>(), Err(TitleNameError::LeadingDot));
        assert_eq!("a/b".parse::<TitleName>(), Err(TitleNameError::Character('/')));
        assert_eq!("a\nb".parse::<TitleName>(), Err(TitleNameError::Character('\n')));
        assert_eq!("x".repeat(129).parse::<TitleName>(), Err(TitleNameError::TooLong(129)));
        assert!(serde_json::from_str::<TitleName>("\"../etc\"").is_err());
    }
}
