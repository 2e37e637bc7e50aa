//! Sums of products of bytes of each channel by itself with NEON: widened to 16 bits, or, with dot products, the bytes of
//! four taps interleaved, so that an instruction adds four products to the sum of each channel.

use super::Finish;
use super::GROUP;
use super::neon::eight;
use super::neon_dot::{sdot, usdot};
use std::arch::aarch64::*;

/// Channels of a vector.
const BLOCK: usize = 16;

/// The bytes of one pixel, from those of its taps and their weights, of which rows are `width` long.
///
/// # Safety
/// Each tap and each row have as many bytes as `dst`, at least, and there are as many rows as taps that count; bias and scale
/// have a number for each channel of each block of 16.
#[target_feature(enable = "neon")]
pub(super) unsafe fn pixel(taps: &[&[u8]], rows: &[i8], width: usize, finish: Finish<'_>, dst: &mut [u8]) {
    let taps = taps.get(..rows.len().checked_div(width).unwrap_or(0)).unwrap_or(taps);
    let mut first = 0;
    // SAFETY: the caller's.
    unsafe {
        while first + BLOCK <= dst.len() {
            let sums = block::<true>(taps, rows.as_ptr(), width, [first, BLOCK]);
            store(sums, finish, first, dst);
            first += BLOCK;
        }
        if first < dst.len() {
            let sums = block::<false>(taps, rows.as_ptr(), width, [first, dst.len() - first]);
            store(sums, finish, first, dst);
        }
    }
}

/// The sums of 16 channels from one on, or of as many as are left.
///
/// # Safety
/// That of [`pixel`].
#[target_feature(enable = "neon")]
unsafe fn block<const WHOLE: bool>(
    taps: &[&[u8]],
    mut weights: *const i8,
    width: usize,
    [first, left]: [usize; 2],
) -> [int32x4_t; GROUP] {
    let mut sums = [vdupq_n_s32(0); GROUP];
    for tap in taps {
        // SAFETY: the caller's; at the end as many bytes are read as are left.
        let (x, w) = unsafe {
            (some::<WHOLE>(tap.as_ptr().add(first), left), some::<WHOLE>(weights.add(first).cast(), left))
        };
        weights = weights.wrapping_add(width);
        let w = vreinterpretq_s8_u8(w);
        let low = (vreinterpretq_s16_u16(vmovl_u8(vget_low_u8(x))), vmovl_s8(vget_low_s8(w)));
        let high = (vreinterpretq_s16_u16(vmovl_high_u8(x)), vmovl_high_s8(w));
        sums[0] = vmlal_s16(sums[0], vget_low_s16(low.0), vget_low_s16(low.1));
        sums[1] = vmlal_high_s16(sums[1], low.0, low.1);
        sums[2] = vmlal_s16(sums[2], vget_low_s16(high.0), vget_low_s16(high.1));
        sums[3] = vmlal_high_s16(sums[3], high.0, high.1);
    }
    sums
}

/// Functions for one instruction.
macro_rules! dots {
    ($name:ident, $block:ident, $features:literal, $needed:literal, |$sum:ident, $x:ident, $w:ident| $dot:expr) => {
        /// The bytes of one pixel, from those of its taps, whose number is a multiple of four.
        ///
        /// # Safety
        #[doc = concat!("The machine has ", $needed, ". Each tap has as many bytes as `dst`, at least; `weights` has 16")]
        /// words for each block of 16 channels and each group of taps; bias and scale have a number for each channel of each block.
        #[target_feature(enable = $features)]
        pub(super) unsafe fn $name(taps: &[&[u8]], weights: &[f32], finish: Finish<'_>, dst: &mut [u8]) {
            let groups = taps.as_chunks::<GROUP>().0;
            let mut weights = weights.as_ptr();
            let mut first = 0;
            // SAFETY: the caller's.
            unsafe {
                while first + BLOCK <= dst.len() {
                    let sums = $block::<true>(groups, weights, [first, BLOCK]);
                    store(sums, finish, first, dst);
                    weights = weights.wrapping_add(groups.len() * BLOCK);
                    first += BLOCK;
                }
                if first < dst.len() {
                    let sums = $block::<false>(groups, weights, [first, dst.len() - first]);
                    store(sums, finish, first, dst);
                }
            }
        }

        /// The sums of 16 channels from one on, or of as many as are left.
        ///
        /// # Safety
        #[doc = concat!("That of [`", stringify!($name), "`].")]
        #[target_feature(enable = $features)]
        unsafe fn $block<const WHOLE: bool>(
            groups: &[[&[u8]; GROUP]],
            mut weights: *const f32,
            [first, left]: [usize; 2],
        ) -> [int32x4_t; GROUP] {
            let mut sums = [vdupq_n_s32(0); GROUP];
            for [a, b, c, d] in groups {
                // SAFETY: the caller's; at the end as many bytes are read as are left.
                unsafe {
                    let (a, b) = (
                        some::<WHOLE>(a.as_ptr().add(first), left),
                        some::<WHOLE>(b.as_ptr().add(first), left),
                    );
                    let (c, d) = (
                        some::<WHOLE>(c.as_ptr().add(first), left),
                        some::<WHOLE>(d.as_ptr().add(first), left),
                    );
                    let (low, low2) =
                        (vreinterpretq_u16_u8(vzip1q_u8(a, b)), vreinterpretq_u16_u8(vzip1q_u8(c, d)));
                    let (high, high2) =
                        (vreinterpretq_u16_u8(vzip2q_u8(a, b)), vreinterpretq_u16_u8(vzip2q_u8(c, d)));
                    let groups = [
                        vzip1q_u16(low, low2),
                        vzip2q_u16(low, low2),
                        vzip1q_u16(high, high2),
                        vzip2q_u16(high, high2),
                    ];
                    for vector in 0..GROUP {
                        let ($sum, $x) = (sums[vector], vreinterpretq_u8_u16(groups[vector]));
                        let $w = vld1q_s8(weights.add(BLOCK / GROUP * vector).cast());
                        sums[vector] = $dot;
                    }
                }
                weights = weights.wrapping_add(BLOCK);
            }
            sums
        }
    };
}

dots!(signed, signed_block, "neon,dotprod", "FEAT_DotProd", |sum, x, w| {
    sdot(sum, vreinterpretq_s8_u8(veorq_u8(x, vdupq_n_u8(128))), w)
});
dots!(mixed, mixed_block, "neon,i8mm", "FEAT_I8MM", |sum, x, w| usdot(sum, x, w));

/// 16 bytes from a place on; if they are not a `WHOLE` vector, as many as `count`, and zeros behind them.
///
/// # Safety
/// There are as many.
#[inline]
#[target_feature(enable = "neon")]
unsafe fn some<const WHOLE: bool>(place: *const u8, count: usize) -> uint8x16_t {
    // SAFETY: the caller's.
    unsafe {
        if WHOLE {
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
        let (low, high) = (eight([a, b], &finish, first), eight([c, d], &finish, first + BLOCK / 2));
        vst1q_u8(found.as_mut_ptr(), vcombine_u8(low, high));
    }
    let dst = dst.get_mut(first..).unwrap_or_default();
    match dst.first_chunk_mut::<BLOCK>() {
        Some(whole) => *whole = found,
        None => dst.iter_mut().zip(found).for_each(|(byte, found)| *byte = found),
    }
}
