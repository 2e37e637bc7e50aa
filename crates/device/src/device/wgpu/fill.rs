//! Copies to mapped memory that may only be written.

use crate::device::copy::{MIN_PARALLEL_BYTES, PIECE_BYTES};
use crate::parallel;

/// Copies `from` to the memory `to` of the same length.
pub(super) fn fill(mut to: wgpu::WriteOnly<'_, [u8]>, from: &[u8]) {
    if from.len() < MIN_PARALLEL_BYTES || to.len() != from.len() {
        // The error names two lengths that differ.
        return to.copy_from_slice(from);
    }
    let start = Start(to.as_raw_element_ptr().as_ptr());
    let pieces = from.chunks(PIECE_BYTES).enumerate().collect();
    parallel::each(pieces, |(piece, from): (usize, &[u8])| {
        // SAFETY: the pointer is to as many bytes as there are in all pieces together, which `to` lends
        // this function alone; the pieces lie side by side in them, and those of `from` elsewhere. Test:
        // `every_length_arrives_whole`.
        unsafe { start.at(piece * PIECE_BYTES).copy_from_nonoverlapping(from.as_ptr(), from.len()) };
    });
}

/// Where memory begins that several threads write to.
struct Start(*mut u8);

impl Start {
    /// # Safety
    /// The byte `at` is in the memory.
    unsafe fn at(&self, at: usize) -> *mut u8 {
        // SAFETY: promised by the caller.
        unsafe { self.0.add(at) }
    }
}

// SAFETY: an address may be known to any thread; what is done with it is `fill`'s.
unsafe impl Sync for Start {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_length_arrives_whole() {
        for length in [
            0,
            1,
            PIECE_BYTES,
            MIN_PARALLEL_BYTES - 1,
            MIN_PARALLEL_BYTES,
            MIN_PARALLEL_BYTES + 1,
            MIN_PARALLEL_BYTES + PIECE_BYTES + 3,
        ] {
            let from: Vec<u8> = (0..length).map(|byte| (byte % 251) as u8).collect();
            let mut to = vec![0; length];
            fill(wgpu::WriteOnly::from_mut(to.as_mut_slice()), &from);
            assert!(to == from, "{length} bytes");
        }
    }
}
