//! Handles of wgpu whose end does not end the program.

use super::scope::unpanicked;
use std::fmt;
use std::mem::ManuallyDrop;
use std::ops::Deref;

/// A handle. wgpu 30 panics when the last one of a queue goes on which a driver had no memory for commands: here that is
/// logged, and what wgpu has not released by then stays.
pub(super) struct Kept<T>(ManuallyDrop<T>);

impl<T> Kept<T> {
    pub(super) fn new(handle: T) -> Self {
        Kept(ManuallyDrop::new(handle))
    }
}

impl<T> Deref for Kept<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T: fmt::Debug> fmt::Debug for Kept<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl<T> Drop for Kept<T> {
    fn drop(&mut self) {
        // SAFETY: taken here alone, after which nothing reaches it. Test: `a_panic_at_the_end_is_kept`.
        let handle = unsafe { ManuallyDrop::take(&mut self.0) };
        if let Err(panic) = unpanicked(|| drop(handle)) {
            tracing::warn!("{panic}");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    struct Loud<'a>(&'a Cell<u32>);

    impl Drop for Loud<'_> {
        fn drop(&mut self) {
            self.0.set(self.0.get() + 1);
            panic!("loud");
        }
    }

    #[test]
    fn a_panic_at_the_end_is_kept() {
        let dropped = Cell::new(0);
        let kept = Kept::new(Loud(&dropped));
        assert_eq!(kept.0.0.get(), 0);
        drop(kept);
        assert_eq!(dropped.get(), 1);
    }
}
