//! The player: a `protocol::player` machine with GStreamer at its end.
//!
//! [`play`] opens a title at the first node that answers and owns the machine
//! until the film ends: the machine decides by name, tasks of their own fetch
//! chunks, the [`shelf`] holds their bytes until the machine feeds them to the
//! [`pipeline`], and the [`report`] remembers what was seen.
//!
//! ```text
//! machine --Request--> fetch task --bytes--> shelf --Feed--> pipeline --position--> machine
//! ```

mod driver;
mod fetch;
mod link;
mod opening;
mod options;
pub mod pipeline;
pub mod report;
pub mod shelf;
mod sources;

pub use driver::play;
pub use options::{Command, PlayError, PlayOptions, PlayerEvent};
pub use pipeline::{Preview, SinkKind, init};
pub use report::PlayReport;
