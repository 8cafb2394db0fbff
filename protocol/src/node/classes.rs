//! Who may watch what at once: end-to-end admission by class of title (Simon et
//! al., sections 2 and 3).
//!
//! A request is held against the threshold of its class, then against what the
//! rules about users say ([`decide`]), then against each resource on its way:
//! the node's slots, the link to the viewers,
//! the link to the origin, and storage. Everything is taken or nothing, and every
//! refusal has a name. What is enforced here is what the exact formulas and the
//! simulation are about: they run this code.
//!
//! Like every part of a node this knows no clock and no bytes: whoever carries
//! them says when a viewing ends and when a copy has arrived.

mod admission;
mod grants;
mod store;

pub use admission::{ClassAdmission, Refusals, Usage};
pub use grants::{Archived, Delivery, Grants, Hold, Moved, TitleFacts};
pub use store::{Placed, TitleStore};

use super::autonomy::admission::{Verdict, decide};
use super::autonomy::agent::EntryKind;
use media::{BitRate, ByClass, ByteCount, TitleClass, TitleName};
use serde::{Deserialize, Serialize};

/// What there is to give away. The defaults bound nothing but memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClassLimits {
    /// `T_k`: viewings of a class at once. `u64::MAX`: no threshold.
    pub thresholds: ByClass<u64>,
    /// C: the node's slots.
    pub slots: u64,
    /// The link to the viewers.
    pub to_viewers: BitRate,
    /// The link to the origin.
    pub to_origin: BitRate,
    /// Storage for titles copied from the origin.
    pub storage: ByteCount,
    /// The most viewings remembered, whatever the slots. Default 4096.
    pub max_grants: usize,
    /// The most titles remembered as stored. Default 1000.
    pub max_titles: usize,
}

impl Default for ClassLimits {
    fn default() -> Self {
        Self {
            thresholds: ByClass::of(|_| u64::MAX),
            slots: u64::MAX,
            to_viewers: BitRate(u64::MAX),
            to_origin: BitRate(u64::MAX),
            storage: ByteCount(u64::MAX),
            max_grants: 4096,
            max_titles: 1000,
        }
    }
}

/// One viewing that wants to begin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Demand {
    /// What is to be watched.
    pub title: TitleName,
    /// Its class.
    pub class: TitleClass,
    /// Whether it counts as a viewing of its class.
    pub charge: Charge,
    /// `b_k`: how many slots it takes.
    pub slots: u64,
    /// What it takes of the link to the viewers.
    pub rate: BitRate,
    /// Where its bytes come from.
    pub source: Source,
}

/// Whether something counts as a viewing of its class.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Charge {
    /// It counts, and the threshold of the class is tested.
    #[default]
    Tested,
    /// It counts, whatever the threshold.
    Untested,
    /// It does not: it is a further layer of a viewing that does.
    None,
}

/// Where the bytes of a viewing come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// The node has them.
    Held,
    /// From the origin, and nothing is kept: the link to the origin is taken for
    /// as long as the viewing lasts.
    Through {
        /// What is taken of the link to the origin.
        rate: BitRate,
    },
    /// From the origin into the store: the link is taken until the copy has
    /// arrived. Who wants what is stored or arriving takes nothing of the link.
    Copied {
        /// What is taken of the link to the origin.
        rate: BitRate,
        /// What is taken of the storage.
        size: ByteCount,
    },
    /// As `Copied`, but the link is taken for as long as the viewing lasts for
    /// which the copy began; should that end first, until the copy has arrived.
    Kept {
        /// What is taken of the link to the origin.
        rate: BitRate,
        /// What is taken of the storage.
        size: ByteCount,
    },
}

/// Why a viewing may not begin. A viewer is told these words.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, thiserror::Error,
)]
#[serde(rename_all = "kebab-case")]
pub enum Reason {
    /// As many titles of this class are watched as may be.
    #[error("as many titles of this class are being watched as the node allows")]
    Threshold,
    /// Few slots are free, and they are kept for entries that rank higher.
    #[error("the last slots are kept for viewers who rank higher")]
    BottomLine,
    /// No slot is free, and no backup may leave for this user.
    #[error("no slot is free, and nobody may be moved for this viewer")]
    NothingToDisplace,
    /// No slot is free.
    #[error("all slots of the node are taken")]
    Slots,
    /// The link to the viewers has no room.
    #[error("the link to the viewers is full")]
    ViewerLink,
    /// The link to the origin has no room.
    #[error("the link to the origin is full, and the title is not stored here")]
    OriginLink,
    /// The store has no room, and nothing in it may be deleted.
    #[error("the store is full of titles that are being watched")]
    Storage,
    /// The node remembers no more viewings.
    #[error("the node remembers no more viewings")]
    Bound,
}

impl Reason {
    /// All of them, in the order in which a request is tested.
    pub const ALL: [Self; 8] = [
        Self::Threshold,
        Self::BottomLine,
        Self::NothingToDisplace,
        Self::Slots,
        Self::ViewerLink,
        Self::OriginLink,
        Self::Storage,
        Self::Bound,
    ];

    /// The word in reports.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Threshold => "threshold",
            Self::BottomLine => "bottom-line",
            Self::NothingToDisplace => "nothing-to-displace",
            Self::Slots => "slots",
            Self::ViewerLink => "viewer-link",
            Self::OriginLink => "origin-link",
            Self::Storage => "storage",
            Self::Bound => "bound",
        }
    }

    /// Whether the same title at a lower quality might be let in.
    pub const fn cured_by_less(self) -> bool {
        matches!(self, Self::Slots | Self::ViewerLink | Self::OriginLink | Self::Storage)
    }
}

/// What the rules about users say of a request, as [`ClassAdmission::admit`]
/// wants it: `free` slots against the bottom line, the kind asked for against the
/// lowest kind present. Nothing is moved or deleted here.
pub fn standing(
    free: u32,
    bottom_line: u32,
    request: EntryKind,
    low: Option<EntryKind>,
) -> Result<(), Reason> {
    match decide(free, bottom_line, request, low) {
        Verdict::Accept | Verdict::AcceptAndMove | Verdict::AcceptAndReplace => Ok(()),
        Verdict::Refuse if free == 0 => Err(Reason::Slots),
        Verdict::Refuse => Err(Reason::BottomLine),
    }
}

/// The number of a viewing that was let in; never used twice by one node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct GrantId(pub u64);

/// A viewing was let in.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use = "what was granted is taken until it is released"]
pub struct Grant {
    /// By this it is released.
    pub id: GrantId,
    /// Whether a copy from the origin has to begin now;
    /// [`ClassAdmission::copied`] ends it.
    pub copy: bool,
    /// Titles that left the store for it and are to be deleted first.
    pub evicted: Vec<TitleName>,
}

#[cfg(test)]
mod tests;
