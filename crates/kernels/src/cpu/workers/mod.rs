//! Who works on a run on the CPU: `threads`; with the feature `parallel` left out the caller alone, or in a page whose threads
//! share the module's memory a `crew` of web workers.

#[cfg(not(any(feature = "parallel", all(target_family = "wasm", target_feature = "atomics"))))]
mod alone;
#[cfg(any(test, all(target_family = "wasm", target_feature = "atomics")))]
#[cfg_attr(
    not(all(target_family = "wasm", target_feature = "atomics")),
    expect(unreachable_pub, reason = "only tests have it there")
)]
mod crew;
#[cfg(any(test, feature = "parallel", all(target_family = "wasm", target_feature = "atomics")))]
mod load;
#[cfg(feature = "parallel")]
mod threads;

#[cfg(not(any(feature = "parallel", all(target_family = "wasm", target_feature = "atomics"))))]
pub use alone::{Load, each, run, workers};
#[cfg(all(target_family = "wasm", target_feature = "atomics"))]
pub use crew::{each, run, workers};
#[cfg(all(target_family = "wasm", target_feature = "atomics"))]
pub use crew::{help, set_threads};
#[cfg(any(feature = "parallel", all(target_family = "wasm", target_feature = "atomics")))]
pub use load::Load;
#[cfg(feature = "parallel")]
pub use threads::{each, run, workers};

use crate::error::Result;
use std::sync::{Mutex, PoisonError};

/// [`each`] with work that may fail: one of the errors.
pub(crate) fn try_each<T: Send>(
    parts: impl ExactSizeIterator<Item = T>,
    work: impl Fn(T) -> Result<()> + Sync,
) -> Result<()> {
    let failed = Mutex::new(None);
    each(parts, |part| {
        if let Err(error) = work(part) {
            *failed.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
        }
    });
    failed.into_inner().unwrap_or_else(PoisonError::into_inner).map_or(Ok(()), Err)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_of_a_part_is_returned() {
        let wanted = || crate::error::Error::Internal("as wanted".to_owned());
        let run_with = |bad| {
            run(u64::MAX, usize::MAX, &Mutex::default(), || {
                try_each(0..10_usize, |part| if part == bad { Err(wanted()) } else { Ok(()) })
            })
        };
        assert!(run_with(4).is_err());
        assert!(run_with(10).is_ok());
    }
}
