//! Sums of products of bytes with NEON as every 64-bit ARM has it: signed bytes are multiplied to 16 bits, whose pairs are
//! added to sums of 32 bits. And what becomes of sums, for the kernels of later cores too.

use super::Finish;
use super::tile::{Bytes, PANEL, Tile};
use std::arch::aarch64::*;

// Loops fill arrays: the closures of functions of arrays are not inlined among so many vectors.

/// Pixels whose sums are held in registers.
const PIXELS: usize = 4;

/// Vectors of a panel, of four channels each.
pub(super) const VECTORS: usize = PANEL / 4;

/// Vectors of a panel that are summed at a time.
const HALF: usize = VECTORS / 2;

/// [`Tile::finish`] by NEON: the bytes of all pixels of the tile. It takes bytes less 128, so each channel's bias must have
/// `128 * (sum of the weights)`.
///
/// # Safety
/// The tile's words and weights are there; bias and scale have as many numbers as the tile has channels.
#[target_feature(enable = "neon")]
pub(super) unsafe fn finish(tile: &Tile<'_>, finish: Finish<'_>, bytes: &mut Bytes) {
    for panel in 0..tile.panels {
        for first in (0..VECTORS).step_by(HALF) {
            let mut pixel = 0;
            while pixel < tile.pixels {
                let count = (tile.pixels - pixel).min(PIXELS);
                // SAFETY: the caller's.
                unsafe {
                    match count {
                        1 => sums::<1>(tile, [pixel, panel, first], finish, bytes),
                        2 => sums::<2>(tile, [pixel, panel, first], finish, bytes),
                        3 => sums::<3>(tile, [pixel, panel, first], finish, bytes),
                        _ => sums::<4>(tile, [pixel, panel, first], finish, bytes),
                    }
                }
                pixel += count;
            }
        }
    }
}

/// `M` pixels from one on, and the vectors of a panel from one on.
///
/// # Safety
/// That of [`finish`], for pixels, a panel and vectors of the tile.
#[target_feature(enable = "neon")]
#[expect(clippy::needless_range_loop, reason = "sums, pixels and weights by their numbers")]
unsafe fn sums<const M: usize>(
    tile: &Tile<'_>,
    [pixel, panel, first]: [usize; 3],
    finish: Finish<'_>,
    bytes: &mut Bytes,
) {
    // Two sums of each of four channels.
    let mut sums: [[[int32x4_t; 2]; HALF]; M] = [[[vdupq_n_s32(0); 2]; HALF]; M];
    // SAFETY: a pixel's first word and each line behind it are in `src`, and the panel in `weights`, as the caller has
    // checked: all places below are within them.
    unsafe {
        let mut weights = tile.weights.as_ptr().add(panel * PANEL * tile.depth() + 4 * first);
        for &line in tile.lines {
            let mut rows = [tile.src.as_ptr().add(line); M];
            for m in 0..M {
                rows[m] = rows[m].add(tile.first[pixel + m]);
            }
            for word in 0..tile.len {
                let mut x = [vdup_n_s8(0); M];
                for m in 0..M {
                    let word = vreinterpret_u8_u32(vld1_dup_u32(rows[m].add(word).cast()));
                    x[m] = vreinterpret_s8_u8(veor_u8(word, vdup_n_u8(128)));
                }
                for v in 0..HALF {
                    let w = vld1q_s8(weights.add(4 * v).cast());
                    for m in 0..M {
                        let [low, high] = sums[m][v];
                        sums[m][v] = [
                            vpadalq_s16(low, vmull_s8(vget_low_s8(w), x[m])),
                            vpadalq_s16(high, vmull_s8(vget_high_s8(w), x[m])),
                        ];
                    }
                }
                weights = weights.add(PANEL);
            }
        }
        for m in 0..M {
            let Some(bytes) = bytes.get_mut((pixel + m) * tile.panels + panel) else { return };
            let [[a, b], [c, d]] = sums[m];
            store([vpaddq_s32(a, b), vpaddq_s32(c, d)], finish, [panel, first], bytes);
        }
    }
}

/// Stores the bytes of two vectors of sums, those of a panel from `first` on.
///
/// # Safety
/// Bias and scale have numbers for the panel, and `first` is at most 2.
#[inline]
#[target_feature(enable = "neon")]
pub(super) unsafe fn store(
    sums: [int32x4_t; HALF],
    finish: Finish<'_>,
    [panel, first]: [usize; 2],
    bytes: &mut [u8; PANEL],
) {
    // SAFETY: the caller's; eight bytes from the fourth, at most, are those of the panel.
    unsafe {
        let found = eight(sums, &finish, panel * PANEL + 4 * first);
        vst1_u8(bytes.as_mut_ptr().add(4 * first), found);
    }
}

/// The bytes of the sums of eight channels from `channel` on.
///
/// # Safety
/// Bias and scale have numbers for these channels.
#[inline]
#[target_feature(enable = "neon")]
pub(super) unsafe fn eight(sums: [int32x4_t; 2], finish: &Finish<'_>, channel: usize) -> uint8x8_t {
    let [low, high] = finish.bounds;
    let (low, high) = (vdupq_n_f32(low as f32), vdupq_n_f32(high as f32));
    let zero = vdupq_n_s32(finish.zero.into());
    let mut halves = [vdup_n_s16(0); 2];
    for (at, (half, sum)) in halves.iter_mut().zip(sums).enumerate() {
        // SAFETY: the caller's.
        let (bias, scale) = unsafe {
            let channel = channel + 4 * at;
            (vld1q_s32(finish.bias.as_ptr().add(channel)), vld1q_f32(finish.scale.as_ptr().add(channel)))
        };
        let steps = vmulq_f32(vcvtq_f32_s32(vaddq_s32(sum, bias)), scale);
        // Of a number and of what is none, these take the number, as those of `f32` do.
        let steps = vcvtnq_s32_f32(vminnmq_f32(vmaxnmq_f32(steps, low), high));
        *half = vmovn_s32(vaddq_s32(steps, zero));
    }
    vreinterpret_u8_s8(vmovn_s16(vcombine_s16(halves[0], halves[1])))
}
