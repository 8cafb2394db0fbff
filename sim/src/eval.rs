//! The paper's evaluations, and some it ought to have had.
//!
//! Each gives numbers, and [`Verdict`]s: one line for each claim with our
//! value, the published one, and whether they agree.

pub mod ablation;
pub mod admission;
pub mod continuity;
pub mod cooperation;
pub mod dedicated;
pub mod detection;
pub mod recovery;
pub mod reliability;
pub mod search_cost;
pub mod state_level;
pub mod statistics;
pub mod surface;
pub mod tally;
pub mod verdict;

pub use ablation::Ablation;
pub use continuity::{Outcome, Plan, Variant};
pub use cooperation::{Piece, Study};
pub use statistics::Estimate;
pub use surface::{Grid, Job, Sample, Surface};
pub use tally::{Continuity, FailureTally};
pub use verdict::Verdict;
