//! One line for each claim: what the paper says, what we found, yes or no.

use std::fmt;

/// A claim, checked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verdict {
    /// The claim, in a few words.
    pub claim: String,
    /// Our value.
    pub ours: String,
    /// The published value, or the band that follows from it.
    pub published: String,
    /// Whether they agree.
    pub holds: bool,
}

impl Verdict {
    /// A verdict on a claim.
    pub fn new(claim: impl Into<String>, ours: impl fmt::Display, published: &str, holds: bool) -> Self {
        Self { claim: claim.into(), ours: ours.to_string(), published: published.to_owned(), holds }
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let word = if self.holds { "yes" } else { "no" };
        write!(f, "{}: ours {}, published {}: {word}", self.claim, self.ours, self.published)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_verdict_is_one_line() {
        let verdict = Verdict::new("three layers are best", 3, "3", true);
        assert_eq!(verdict.to_string(), "three layers are best: ours 3, published 3: yes");
    }
}
