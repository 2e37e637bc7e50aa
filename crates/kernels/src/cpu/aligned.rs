//! Values that begin where a cache line does, so that no vector of them lies in two.

use crate::alloc;
use crate::error::Result;
use std::ops::{Deref, DerefMut};

/// Bytes of a cache line, and of the widest vector.
const LINE: usize = 64;

/// The place of the first of `values` that a cache line begins with.
pub(crate) fn first_aligned(values: &[f32]) -> usize {
    values.as_ptr().align_offset(LINE).min(LINE / 4)
}

/// The most values that [`first_aligned`] skips.
pub(crate) const SKIPPED: usize = LINE / 4;

/// Values that begin where a cache line does.
#[derive(Debug, Default)]
pub struct Aligned {
    values: Vec<f32>,
    first: usize,
    len: usize,
}

impl Aligned {
    /// `len` zeros.
    pub(crate) fn zeros(len: usize) -> Self {
        Self::of(vec![0.0; len + SKIPPED], len)
    }

    /// Zeros, if there is memory for them.
    pub fn try_zeros(len: usize, what: &str) -> Result<Self> {
        Ok(Self::of(alloc::zeros(len.saturating_add(SKIPPED), what)?, len))
    }

    fn of(values: Vec<f32>, len: usize) -> Self {
        Aligned { first: first_aligned(&values), values, len }
    }
}

impl From<&[f32]> for Aligned {
    fn from(values: &[f32]) -> Self {
        let mut copy = Aligned::zeros(values.len());
        copy.copy_from_slice(values);
        copy
    }
}

impl Clone for Aligned {
    fn clone(&self) -> Self {
        Aligned::from(&**self)
    }
}

impl Deref for Aligned {
    type Target = [f32];

    fn deref(&self) -> &[f32] {
        self.values.get(self.first..self.first + self.len).unwrap_or_default()
    }
}

impl DerefMut for Aligned {
    fn deref_mut(&mut self) -> &mut [f32] {
        self.values.get_mut(self.first..self.first + self.len).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copies_are_aligned_too() {
        for len in [0, 1, 7, 1000] {
            let mut values = Aligned::zeros(len);
            values.fill(3.0);
            let copy = values.clone();
            assert_eq!(copy.len(), len);
            assert!(copy.iter().all(|&value| value == 3.0));
            assert!([&values, &copy].iter().all(|values| values.as_ptr().addr().is_multiple_of(LINE)));
        }
    }
}
