//! See the crate's manifest for what belongs here.
