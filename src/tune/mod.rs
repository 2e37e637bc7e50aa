//! Tunes one problem, which work-group its kernel gets: tables, and a tuner that times kernels on the user's own device.
//!
//! A candidate is a [`crate::Choice`]: (variant, tile, work-group). [`search`] lists them, a
//! [`Bench`] compiles, checks and times them, [`TuningRun`] decides which is sampled next, and
//! [`verdict`] when one beats the default. Everything but the bench is pure over samples: the same
//! seed and samples give the same verdict. [`db`] keeps what was found.

pub(crate) mod bench;
pub mod clock;
pub mod db;
#[cfg(not(target_family = "wasm"))]
pub mod facts;
pub mod generators;
pub(crate) mod heat;
pub mod journal;
pub mod key;
pub mod quirks;
pub mod repeat;
pub mod search;
pub mod statistics;
pub mod tables;
pub(crate) mod verdict;
pub mod work_group;

#[cfg(not(target_family = "wasm"))]
mod ahead;
mod entry;
mod explore;
mod op_bench;
#[cfg(test)]
mod phones;
mod problem;
pub(crate) mod proof;
mod tuning;

pub use bench::{Bench, Check};
pub use op_bench::OpBench;
pub use repeat::{Repeats, Round};
pub use search::Search;
pub use tuning::{Progress, TuneOptions, TuningRun};
pub use verdict::Outcome;
pub(crate) use verdict::{Trial, Verdict};
