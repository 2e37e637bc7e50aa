//! Copies between the host's own memory and memory that a driver has mapped.
//!
//! One thread writes to mapped memory at some 20 GB/s on a server whose bus takes 50: large copies
//! are made by several.

use rayon::prelude::*;

/// What a thread copies at a time.
const PIECE: usize = 256 << 10;

/// The length from which several threads are worth waking.
const LARGE: usize = 2 << 20;

/// `bytes` in the pieces that they are copied in.
fn pieces(bytes: &[u8]) -> impl IndexedParallelIterator<Item = &[u8]> {
    bytes.par_chunks(PIECE)
}

/// Copies `from` to the memory `to` of the same length.
#[cfg(feature = "opencl")]
pub(super) fn copy(to: &mut [u8], from: &[u8]) {
    if from.len() < LARGE {
        return to.copy_from_slice(from);
    }
    to.par_chunks_mut(PIECE).zip(pieces(from)).for_each(|(to, from)| to.copy_from_slice(from));
}

/// The same for memory that is only written.
#[cfg(feature = "wgpu")]
pub(super) fn fill(mut to: ::wgpu::WriteOnly<'_, [u8]>, from: &[u8]) {
    if from.len() < LARGE || to.len() != from.len() {
        // Which tells of two lengths that differ.
        return to.copy_from_slice(from);
    }
    let start = Start(to.as_raw_element_ptr().as_ptr());
    pieces(from).enumerate().for_each(|(piece, from)| {
        // SAFETY: the pointer is to as many bytes as there are in all pieces together, which `to` lends
        // this function alone; the pieces lie side by side in them, and those of `from` elsewhere. Test:
        // `every_length_arrives_whole`.
        unsafe { start.at(piece * PIECE).copy_from_nonoverlapping(from.as_ptr(), from.len()) };
    });
}

/// Where memory begins that several threads write to.
#[cfg(feature = "wgpu")]
struct Start(*mut u8);

#[cfg(feature = "wgpu")]
impl Start {
    /// # Safety
    /// The byte `at` is in the memory.
    unsafe fn at(&self, at: usize) -> *mut u8 {
        // SAFETY: promised by the caller.
        unsafe { self.0.add(at) }
    }
}

// SAFETY: an address may be known to any thread; what is done with it is `fill`'s.
#[cfg(feature = "wgpu")]
unsafe impl Sync for Start {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_length_arrives_whole() {
        for length in [0, 1, PIECE, LARGE - 1, LARGE, LARGE + 1, LARGE + PIECE + 3] {
            let from: Vec<u8> = (0..length).map(|byte| (byte % 251) as u8).collect();
            #[cfg(feature = "opencl")]
            {
                let mut to = vec![0; length];
                copy(&mut to, &from);
                assert!(to == from, "{length} bytes");
            }
            #[cfg(feature = "wgpu")]
            {
                let mut to = vec![0; length];
                fill(::wgpu::WriteOnly::from_mut(to.as_mut_slice()), &from);
                assert!(to == from, "{length} bytes, write only");
            }
        }
    }
}
