//! Sums of products of bytes with the matrix products of ARM (FEAT_I8MM): `usmmla` multiplies eight unsigned bytes of two
//! pixels with eight signed ones of two channels, 32 products in an instruction.

use super::Finish;
use super::neon::{VECTORS, store};
use super::neon_dot::mixed;
use super::tile::{Bytes, PANEL, Tile};
use std::arch::aarch64::*;
use std::arch::asm;

/// [`Tile::finish`] by FEAT_I8MM: the bytes of all pixels of the tile.
///
/// # Safety
/// The machine has FEAT_I8MM; the tile's words and weights are there; bias and scale have as many numbers as the tile has
/// channels.
#[target_feature(enable = "neon,i8mm")]
pub(super) unsafe fn finish(tile: &Tile<'_>, finish: Finish<'_>, bytes: &mut Bytes) {
    // SAFETY: the caller's.
    unsafe {
        if tile.pixels < 2 {
            return mixed::finish(tile, finish, bytes);
        }
        for panel in 0..tile.panels {
            // At most 16 sums: what they are made from takes registers too.
            match tile.pixels.div_ceil(2) {
                1 => sums::<1, VECTORS>(tile, [panel, 0], finish, bytes),
                2 => sums::<2, VECTORS>(tile, [panel, 0], finish, bytes),
                3 => {
                    sums::<3, 2>(tile, [panel, 0], finish, bytes);
                    sums::<3, 2>(tile, [panel, 2], finish, bytes);
                }
                _ => {
                    sums::<4, 2>(tile, [panel, 0], finish, bytes);
                    sums::<4, 2>(tile, [panel, 2], finish, bytes);
                }
            }
        }
    }
}

/// `P` pairs of pixels, and of a panel `V` vectors from one on.
///
/// # Safety
/// That of [`finish`], for pixels, a panel and vectors of the tile.
#[target_feature(enable = "neon,i8mm")]
#[expect(clippy::needless_range_loop, reason = "sums, pixels and weights by their numbers")]
unsafe fn sums<const P: usize, const V: usize>(
    tile: &Tile<'_>,
    [panel, first]: [usize; 2],
    finish: Finish<'_>,
    bytes: &mut Bytes,
) {
    // Of each pair and each half of a vector: two channels of the first pixel, the same of the second.
    let mut sums: [[[int32x4_t; 2]; V]; P] = [[[vdupq_n_s32(0); 2]; V]; P];
    let last = tile.pixels - 1;
    // SAFETY: a pixel's first word and each line behind it are in `src`, and the panel in `weights`, as the caller has
    // checked: all places below are within them. Where pixels are odd, the last one is its own pair.
    unsafe {
        let mut weights = tile.weights.as_ptr().add(panel * PANEL * tile.depth() + 4 * first);
        for &line in tile.lines {
            let mut rows = [[tile.src.as_ptr().add(line); 2]; P];
            for p in 0..P {
                for of_pair in 0..2 {
                    let pixel = (2 * p + of_pair).min(last);
                    rows[p][of_pair] = rows[p][of_pair].add(tile.first[pixel]);
                }
            }
            // Two words of all pairs of pixels, with those of the weights: the second may be zeros.
            macro_rules! multiply {
                ($x:ident, |$w:ident| $next:expr) => {
                    for v in 0..V {
                        let $w = weights.add(4 * v);
                        let (w, next) = (vld1q_s32($w.cast()), $next);
                        let w = [vzip1q_s32(w, next), vzip2q_s32(w, next)];
                        for p in 0..P {
                            for half in 0..2 {
                                asm!("usmmla {0:v}.4s, {1:v}.16b, {2:v}.16b",
                                    inout(vreg) sums[p][v][half], in(vreg) $x[p], in(vreg) w[half],
                                    options(pure, nomem, nostack, preserves_flags));
                            }
                        }
                    }
                };
            }
            let mut word = 0;
            while word + 4 <= tile.len {
                let mut x = [[vdupq_n_u64(0); P]; 2];
                for p in 0..P {
                    let [a, b] =
                        [vld1q_u64(rows[p][0].add(word).cast()), vld1q_u64(rows[p][1].add(word).cast())];
                    (x[0][p], x[1][p]) = (vzip1q_u64(a, b), vzip2q_u64(a, b));
                }
                for x in x {
                    multiply!(x, |w| vld1q_s32(w.add(PANEL).cast()));
                    weights = weights.add(2 * PANEL);
                }
                word += 4;
            }
            while word + 2 <= tile.len {
                let mut x = [vdupq_n_u8(0); P];
                for p in 0..P {
                    let [a, b] = [vld1_u8(rows[p][0].add(word).cast()), vld1_u8(rows[p][1].add(word).cast())];
                    x[p] = vcombine_u8(a, b);
                }
                multiply!(x, |w| vld1q_s32(w.add(PANEL).cast()));
                weights = weights.add(2 * PANEL);
                word += 2;
            }
            if word < tile.len {
                let mut x = [vdupq_n_u8(0); P];
                for p in 0..P {
                    x[p] = vcombine_u8(alone(rows[p][0].add(word)), alone(rows[p][1].add(word)));
                }
                multiply!(x, |_w| vdupq_n_s32(0));
                weights = weights.add(PANEL);
            }
        }
        for p in 0..P {
            for of_pair in 0..2 {
                let pixel = 2 * p + of_pair;
                if pixel > last {
                    return;
                }
                let mut own = [vdupq_n_s32(0); V];
                for v in 0..V {
                    let [low, high] = [sums[p][v][0], sums[p][v][1]];
                    let (low, high) = (vreinterpretq_s64_s32(low), vreinterpretq_s64_s32(high));
                    own[v] = vreinterpretq_s32_s64(match of_pair {
                        0 => vzip1q_s64(low, high),
                        _ => vzip2q_s64(low, high),
                    });
                }
                let Some(bytes) = bytes.get_mut(pixel * tile.panels + panel) else { return };
                for (at, pair) in own.as_chunks::<2>().0.iter().enumerate() {
                    store(*pair, finish, [panel, first + 2 * at], bytes);
                }
            }
        }
    }
}

/// The bytes of one word, and zeros.
///
/// # Safety
/// There is a word.
#[inline]
#[target_feature(enable = "neon")]
unsafe fn alone(place: *const f32) -> uint8x8_t {
    // SAFETY: the caller's.
    vcreate_u8(unsafe { place.cast::<u32>().read_unaligned() }.into())
}
