//! The host's clock, where there is one: `std`'s panics on `wasm32-unknown-unknown`.

#[cfg(not(target_family = "wasm"))]
pub use std::time::{Instant, SystemTime};
#[cfg(target_family = "wasm")]
pub use web_time::{Instant, SystemTime};

/// Milliseconds since the beginning of 1970.
pub fn since_1970() -> u64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    since.map_or(0, |since| u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
}
