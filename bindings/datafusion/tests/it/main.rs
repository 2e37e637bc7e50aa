//! The functions in DataFusion and in a Ballista cluster of processes.

#![expect(clippy::unwrap_used, clippy::panic, reason = "tests")]

mod lost;
mod queries;
mod results;

#[cfg(feature = "ballista")]
mod cluster;

#[cfg(feature = "ballista")]
#[path = "../../src/bin/diptych-ballista/local.rs"]
mod local;
#[expect(dead_code, reason = "the program has more use for it")]
#[path = "../../src/bin/diptych-ballista/pictures.rs"]
mod pictures;
