//! What a viewer was promised, signed by the cluster's authority: who is a VIP is
//! not a wish. Signing and checking are the transport's; here are the words.

use crate::node::autonomy::Sla;
use crate::peer::PeerId;
use media::Quality;
use serde::{Deserialize, Serialize};

/// The longest signature in bytes.
pub const MAX_SIGNATURE_BYTES: usize = 128;

/// What is promised to whom, until when.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Promise {
    /// The viewer's name.
    pub viewer: PeerId,
    /// Its class.
    pub sla: Sla,
    /// The best quality it may watch.
    pub top: Quality,
    /// The last second of the Unix epoch at which this holds.
    pub until: u64,
}

/// A promise with the authority's signature over it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SignedToken {
    /// What is promised.
    pub promise: Promise,
    /// At most [`MAX_SIGNATURE_BYTES`].
    pub signature: Vec<u8>,
}

/// What a node believes of a viewer once its token was checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Claims {
    /// Its class.
    pub sla: Sla,
    /// The best quality it may watch.
    pub top: Quality,
}

impl Claims {
    /// Those of a viewer who shows no token: normal, in any quality.
    pub const NONE: Self = Self { sla: Sla::Normal, top: Quality(u8::MAX) };
}

impl From<Promise> for Claims {
    fn from(promise: Promise) -> Self {
        Self { sla: promise.sla, top: promise.top }
    }
}
