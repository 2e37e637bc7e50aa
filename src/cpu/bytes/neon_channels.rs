//! Sums of products of bytes of each channel by itself with NEON: widened to 16 bits, or, with dot products, the bytes of
//! four taps interleaved, so that an instruction adds four products to the sum of each channel.

use super::Finish;
use super::channels::GROUP;
use super::neon::eight;
use super::neon_dot::{sdot, usdot};
use std::arch::aarch64::*;

/// Channels of a vector.
const BLOCK: usize = 16;

/// The bytes of one pixel, from those of its taps and their weights.
///
/// # Safety
/// Each tap and its weights have as many bytes as `dst`, at least; bias and scale have a number for each channel of each
/// block of 16.
#[target_feature(enable = "neon")]
pub(super) unsafe fn pixel<'a>(
    taps: impl Iterator<Item = (&'a [u8], &'a [i8])> + Clone,
    finish: Finish<'_>,
    dst: &mut [u8],
) {
    let mut first = 0;
    while first < dst.len() {
        let left = (dst.len() - first).min(BLOCK);
        let mut sums = [vdupq_n_s32(0); GROUP];
        // SAFETY: the caller's; at the end as many bytes are read as are left.
        unsafe {
            for (tap, weights) in taps.clone() {
                let x = some(tap.as_ptr().add(first), left);
                let w = vreinterpretq_s8_u8(some(weights.as_ptr().add(first).cast(), left));
                let x =
                    [vmovl_u8(vget_low_u8(x)), vmovl_u8(vget_high_u8(x))].map(|x| vreinterpretq_s16_u16(x));
                let w = [vmovl_s8(vget_low_s8(w)), vmovl_s8(vget_high_s8(w))];
                for half in 0..2 {
                    let (x, w) = (x[half], w[half]);
                    sums[2 * half] = vmlal_s16(sums[2 * half], vget_low_s16(x), vget_low_s16(w));
                    sums[2 * half + 1] = vmlal_high_s16(sums[2 * half + 1], x, w);
                }
            }
            store(sums, finish, first, dst);
        }
        first += BLOCK;
    }
}

/// A function for one instruction.
macro_rules! dots {
    ($name:ident, $features:literal, $needed:literal, |$sum:ident, $x:ident, $w:ident| $dot:expr) => {
        /// The bytes of one pixel, from those of its taps, whose number is a multiple of four.
        ///
        /// # Safety
        #[doc = concat!("The machine has ", $needed, ". Each tap has as many bytes as `dst`, at least; `weights` has 16")]
        /// words for each block of 16 channels and each group of taps; bias and scale have a number for each channel of each block.
        #[target_feature(enable = $features)]
        pub(super) unsafe fn $name(taps: &[&[u8]], weights: &[f32], finish: Finish<'_>, dst: &mut [u8]) {
            let mut weights = weights.as_ptr();
            let mut first = 0;
            while first < dst.len() {
                let left = (dst.len() - first).min(BLOCK);
                let mut sums = [vdupq_n_s32(0); GROUP];
                // SAFETY: the caller's; at the end as many bytes are read as are left.
                unsafe {
                    for taps in taps.as_chunks::<GROUP>().0 {
                        let [a, b, c, d] = taps.map(|tap| some(tap.as_ptr().add(first), left));
                        let halves = |a, b| [vzip1q_u8(a, b), vzip2q_u8(a, b)].map(|x| vreinterpretq_u16_u8(x));
                        let (ab, cd) = (halves(a, b), halves(c, d));
                        let groups = [
                            vzip1q_u16(ab[0], cd[0]),
                            vzip2q_u16(ab[0], cd[0]),
                            vzip1q_u16(ab[1], cd[1]),
                            vzip2q_u16(ab[1], cd[1]),
                        ];
                        for (vector, ($sum, group)) in sums.iter_mut().zip(groups).enumerate() {
                            let $x = vreinterpretq_u8_u16(group);
                            let $w = vld1q_s8(weights.add(BLOCK / GROUP * vector).cast());
                            *$sum = $dot;
                        }
                        weights = weights.add(BLOCK);
                    }
                    store(sums, finish, first, dst);
                }
                first += BLOCK;
            }
        }
    };
}

dots!(signed, "neon,dotprod", "FEAT_DotProd", |sum, x, w| {
    sdot(*sum, vreinterpretq_s8_u8(veorq_u8(x, vdupq_n_u8(128))), w)
});
dots!(mixed, "neon,i8mm", "FEAT_I8MM", |sum, x, w| usdot(*sum, x, w));

/// The first bytes from a place on, as many as `count`, at most 16; behind them zeros.
///
/// # Safety
/// There are as many.
#[inline]
#[target_feature(enable = "neon")]
unsafe fn some(place: *const u8, count: usize) -> uint8x16_t {
    // SAFETY: the caller's.
    unsafe {
        if count == BLOCK {
            return vld1q_u8(place);
        }
        let mut part = [0; BLOCK];
        std::ptr::copy_nonoverlapping(place, part.as_mut_ptr(), count.min(BLOCK));
        vld1q_u8(part.as_ptr())
    }
}

/// Stores the bytes of 16 channels from `first` on, or of as many as are left.
///
/// # Safety
/// Bias and scale have numbers for these channels.
#[inline]
#[target_feature(enable = "neon")]
unsafe fn store([a, b, c, d]: [int32x4_t; GROUP], finish: Finish<'_>, first: usize, dst: &mut [u8]) {
    let mut found = [0; BLOCK];
    // SAFETY: the caller's; `found` has as many bytes as a vector.
    unsafe {
        let halves = [eight([a, b], &finish, first), eight([c, d], &finish, first + BLOCK / 2)];
        vst1q_u8(found.as_mut_ptr(), vcombine_u8(halves[0], halves[1]));
    }
    let dst = dst.get_mut(first..).unwrap_or_default();
    match dst.first_chunk_mut::<BLOCK>() {
        Some(whole) => *whole = found,
        None => dst.iter_mut().zip(found).for_each(|(byte, found)| *byte = found),
    }
}
