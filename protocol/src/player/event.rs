//! What happens to a viewer, for people and figures.

use crate::player::io::{FetchFailure, SourceId};
use crate::quality::{Cause, Step};
use media::{Layer, Quality, Span, Time};
use std::fmt;

/// Why a layer is served by somebody else.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum MoveCause {
    /// The backup took over and said so.
    DeliveryStart,
    /// The viewer found the old source silent.
    Silence,
    /// The connection to the old source was lost.
    Lost,
    /// Another source was faster with what the old one was asked for.
    Hedge,
    /// The Base node said so.
    Moved,
    /// The viewer sought service again.
    Repull,
}

impl fmt::Display for MoveCause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::DeliveryStart => "delivery start",
            Self::Silence => "silence",
            Self::Lost => "lost",
            Self::Hedge => "hedge",
            Self::Moved => "moved",
            Self::Repull => "repull",
        })
    }
}

/// What happened, for people and figures.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// Play begins, at the start or after a seek.
    Started {
        /// The first block.
        block: u32,
        /// How good it is.
        quality: Quality,
        /// From the start or seek to here.
        waited: Span,
    },
    /// From this block on another step is fed.
    Transition {
        /// The first block of the new step.
        block: u32,
        /// When its first picture is shown.
        position: Span,
        /// The step before.
        from: Step,
        /// The step from here on.
        to: Step,
        /// Why.
        cause: Cause,
    },
    /// A source answered nothing for too long.
    Silent {
        /// Which.
        source: SourceId,
        /// When it was last heard.
        heard: Time,
    },
    /// A connection was lost, or could not be made.
    SourceLost {
        /// Which.
        source: SourceId,
    },
    /// A source has another version of the title.
    OtherVersion {
        /// Which.
        source: SourceId,
    },
    /// A source can be asked, for the first time or again.
    SourceUp {
        /// Which.
        source: SourceId,
    },
    /// A layer is served by another source.
    FailedOver {
        /// The layer.
        layer: Layer,
        /// Who served it.
        from: SourceId,
        /// Who serves it.
        to: SourceId,
        /// When the old source was last heard.
        heard: Time,
        /// When it was given up.
        verdict: Time,
        /// Requests that were open at it and were asked again.
        reasked: u32,
        /// Why.
        cause: MoveCause,
    },
    /// From here on this node keeps the viewer's record.
    ServedBy {
        /// Which.
        source: SourceId,
        /// In which epoch.
        epoch: u64,
    },
    /// It is known who takes over if the Base node dies.
    BackupKnown {
        /// Who.
        source: SourceId,
    },
    /// A backup wanted to take over while the old node still delivers.
    StillServed {
        /// Which backup.
        source: SourceId,
        /// The epoch that it had begun.
        epoch: u64,
    },
    /// Nobody serves Base: service is sought anew.
    Repull {
        /// Where.
        door: SourceId,
    },
    /// A source has the title fetched from an archive first; it is waited for.
    Coming {
        /// Which.
        source: SourceId,
    },
    /// A request came to nothing and is asked elsewhere, or given up.
    FetchFailed {
        /// The block.
        block: u32,
        /// The layer.
        layer: Layer,
        /// Who failed.
        source: SourceId,
        /// Why.
        why: FetchFailure,
    },
    /// A chunk came whole.
    Fetched {
        /// The block.
        block: u32,
        /// The layer.
        layer: Layer,
        /// From whom.
        source: SourceId,
        /// From the request to here.
        took: Span,
    },
    /// Enhancement requests were stopped so that Base does not wait.
    BaseFirst {
        /// What Base holds.
        level: Span,
        /// How many requests were stopped.
        stopped: u32,
    },
    /// Nothing is left to show, and the next block is not here.
    Starved {
        /// The block that is missing.
        block: u32,
    },
    /// The missing block is here.
    Refilled {
        /// The block.
        block: u32,
        /// How long nothing could be fed.
        after: Span,
    },
    /// The programme is over.
    Ended,
}
