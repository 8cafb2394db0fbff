//! The dream of Lamina, pure: the machines of `protocol` under virtual time.
//!
//! There is no socket, no clock, no thread and no randomness of the machine
//! here: a [`world`] owns the machines, a queue owns the time, and one seed
//! decides everything, so that the same seed gives the same trace byte for
//! byte. What is measured in the [`eval`]uations is what runs in production.

pub mod chaos;
pub mod checkers;
pub mod eval;
pub mod faults;
pub mod link;
pub mod loss;
pub mod proxies;
pub mod queue;
pub mod rng;
pub mod theory;
pub mod topology;
pub mod viewing;
pub mod whole;
pub mod workload;
pub mod world;

pub use checkers::{Checkers, Violation};
pub use faults::Fault;
pub use link::{LinkModel, Links, Passage, Pipe, PipeShape, Trace, TraceError};
pub use queue::Queue;
pub use rng::Rng;
pub use topology::{Shape, SiteId, Topology, TopologyError};
pub use workload::{Arrival, Sla, Workload};
pub use world::{Viewer, World, WorldConfig};
