//! Benches: figures of this code beside the yardsticks of the field, taken in
//! the same run on the same machine. Progress goes to the caller's [`Say`];
//! reports print as tables and serialise as JSON.

pub mod admission;
pub mod bjontegaard;
pub mod combine;
pub mod cooperation;
pub(crate) mod cores;
pub mod encode;
mod error;
pub mod machine;
pub(crate) mod ours;
pub mod proxy;
pub mod rate;
pub mod score;
pub mod serve;
pub mod sim;
pub mod stats;
pub mod table;
pub mod theory;
pub mod tiers;
pub mod x264;
pub mod yuv;

pub use error::BenchError;
pub use machine::Machine;

/// Where a bench tells people how far it is: one line without a line break.
pub type Say<'a> = &'a mut dyn FnMut(&str);

#[cfg(test)]
mod tests;
