//! Loops whose passes may run side by side, on the threads of rayon's pool; without the feature `parallel` they
//! run one after the other.

#[cfg(feature = "parallel")]
use rayon::prelude::*;

/// Threads of the pool.
#[cfg(feature = "parallel")]
pub(crate) fn threads() -> usize {
    rayon::current_num_threads().max(1)
}

/// Threads of the pool.
#[cfg(not(feature = "parallel"))]
pub(crate) fn threads() -> usize {
    1
}

/// Whether the caller is a thread of a pool.
pub(crate) fn in_pool() -> bool {
    #[cfg(all(feature = "parallel", not(target_family = "wasm")))]
    return rayon::current_thread_index().is_some();
    #[cfg(not(all(feature = "parallel", not(target_family = "wasm"))))]
    false
}

/// Does the work with each of `parts`, in no order.
pub(crate) fn each<T: Send>(parts: Vec<T>, work: impl Fn(T) + Send + Sync) {
    #[cfg(feature = "parallel")]
    parts.into_par_iter().for_each(work);
    #[cfg(not(feature = "parallel"))]
    parts.into_iter().for_each(work);
}

/// What the work makes of each of `parts`, in their order.
pub(crate) fn map<'a, T: Sync, R: Send>(parts: &'a [T], work: impl Fn(&'a T) -> R + Send + Sync) -> Vec<R> {
    #[cfg(feature = "parallel")]
    return parts.par_iter().map(work).collect();
    #[cfg(not(feature = "parallel"))]
    parts.iter().map(work).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Mutex;

    #[test]
    fn each_part_is_worked_on_once() {
        let seen = Mutex::new(Vec::new());
        each((0..100).collect(), |part: usize| seen.lock().expect("whole").push(part));
        let mut seen = seen.into_inner().expect("whole");
        seen.sort_unstable();
        assert_eq!(seen, (0..100).collect::<Vec<_>>());
        assert_eq!(map(&seen, |part| 2 * part), (0..100).map(|part| 2 * part).collect::<Vec<_>>());
    }
}
