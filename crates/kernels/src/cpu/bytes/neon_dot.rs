//! Sums of products of bytes with the dot products of ARM: an instruction adds four products to each of four sums.
//!
//! `sdot` (FEAT_DotProd) multiplies signed bytes, so bytes are taken less 128; `sudot` and `usdot` (FEAT_I8MM) multiply
//! signed bytes with unsigned ones. Rust's own functions for them are not stable.

use super::Finish;
use super::neon::{VECTORS, store};
use super::tile::{Bytes, PANEL, Tile};
use std::arch::aarch64::*;
use std::arch::asm;

/// Words that are multiplied by their places in a vector.
const WORDS: usize = 4;

/// `sum + a * b`, four products of signed bytes for each sum.
///
/// # Safety
/// The machine has FEAT_DotProd.
#[inline]
#[target_feature(enable = "neon,dotprod")]
pub(super) unsafe fn sdot(mut sum: int32x4_t, a: int8x16_t, b: int8x16_t) -> int32x4_t {
    // SAFETY: it reads and writes registers only.
    unsafe {
        asm!("sdot {0:v}.4s, {1:v}.16b, {2:v}.16b", inout(vreg) sum, in(vreg) a, in(vreg) b,
            options(pure, nomem, nostack, preserves_flags));
    }
    sum
}

/// `sum + a * b`, four products of an unsigned and a signed byte for each sum.
///
/// # Safety
/// The machine has FEAT_I8MM.
#[inline]
#[target_feature(enable = "neon,i8mm")]
pub(super) unsafe fn usdot(mut sum: int32x4_t, a: uint8x16_t, b: int8x16_t) -> int32x4_t {
    // SAFETY: it reads and writes registers only.
    unsafe {
        asm!("usdot {0:v}.4s, {1:v}.16b, {2:v}.16b", inout(vreg) sum, in(vreg) a, in(vreg) b,
            options(pure, nomem, nostack, preserves_flags));
    }
    sum
}

/// The kernel of one pair of instructions: by a word's place in a vector, and of whole vectors.
macro_rules! dots {
    ($module:ident, $features:literal, $needed:literal, $of_place:literal, $of_vectors:literal, $flips:expr) => {
        pub(super) mod $module {
            use super::*;

            #[doc = concat!("[`Tile::finish`] by `", $of_vectors, "`: the bytes of all pixels of the tile.")]
            ///
            /// # Safety
            #[doc = concat!("The machine has ", $needed, "; the tile's words and weights are there; bias and scale")]
            /// have as many numbers as the tile has channels.
            #[target_feature(enable = $features)]
            pub(in super::super) unsafe fn finish(tile: &Tile<'_>, finish: Finish<'_>, bytes: &mut Bytes) {
                // Two panels of one pixel, one of two pixels, half a one of more: at least eight sums that do not wait
                // for each other, and at most 16.
                // SAFETY: the caller's.
                unsafe {
                    let mut panel = 0;
                    while panel < tile.panels {
                        let mut together = 1;
                        match tile.pixels {
                            1 if tile.panels - panel >= 2 => {
                                together = 2;
                                sums::<1, 2, VECTORS>(tile, [panel, 0], finish, bytes);
                            }
                            1 => sums::<1, 1, VECTORS>(tile, [panel, 0], finish, bytes),
                            2 => sums::<2, 1, VECTORS>(tile, [panel, 0], finish, bytes),
                            _ => {
                                for first in [0, 2] {
                                    let place = [panel, first];
                                    match tile.pixels {
                                        3 => sums::<3, 1, 2>(tile, place, finish, bytes),
                                        4 => sums::<4, 1, 2>(tile, place, finish, bytes),
                                        5 => sums::<5, 1, 2>(tile, place, finish, bytes),
                                        6 => sums::<6, 1, 2>(tile, place, finish, bytes),
                                        7 => sums::<7, 1, 2>(tile, place, finish, bytes),
                                        _ => sums::<8, 1, 2>(tile, place, finish, bytes),
                                    }
                                }
                            }
                        }
                        panel += together;
                    }
                }
            }

            /// `M` pixels, and of `N` panels from one on `V` vectors from one on.
            ///
            /// # Safety
            /// That of [`finish`], for pixels, panels and vectors of the tile.
            #[target_feature(enable = $features)]
            unsafe fn sums<const M: usize, const N: usize, const V: usize>(
                tile: &Tile<'_>,
                [panel, first]: [usize; 2],
                finish: Finish<'_>,
                bytes: &mut Bytes,
            ) {
                let mut sums: [[[int32x4_t; V]; N]; M] = [[[vdupq_n_s32(0); V]; N]; M];
                let flip = vdupq_n_u8(if $flips { 128 } else { 0 });
                let depth = tile.depth();
                // SAFETY: a pixel's first word and each line behind it are in `src`, and the panels in `weights`, as the
                // caller has checked: all places below are within them.
                unsafe {
                    let mut weights = [tile.weights.as_ptr().add(4 * first); N];
                    for n in 0..N {
                        weights[n] = weights[n].add((panel + n) * PANEL * depth);
                    }
                    for &line in tile.lines {
                        let mut rows = [tile.src.as_ptr().add(line); M];
                        for m in 0..M {
                            rows[m] = rows[m].add(tile.first[m]);
                        }
                        let mut word = 0;
                        while word + WORDS <= tile.len {
                            let mut x = [flip; M];
                            for m in 0..M {
                                let words = vld1q_u8(rows[m].add(word).cast());
                                x[m] = if $flips { veorq_u8(words, flip) } else { words };
                            }
                            macro_rules! place {
                                ($place:literal) => {
                                    for n in 0..N {
                                        for v in 0..V {
                                            let w = vld1q_s8(weights[n].add(PANEL * $place + 4 * v).cast());
                                            for m in 0..M {
                                                asm!(concat!($of_place, "[", $place, "]"),
                                                    inout(vreg) sums[m][n][v], in(vreg) w, in(vreg) x[m],
                                                    options(pure, nomem, nostack, preserves_flags));
                                            }
                                        }
                                    }
                                };
                            }
                            place!(0);
                            place!(1);
                            place!(2);
                            place!(3);
                            for n in 0..N {
                                weights[n] = weights[n].add(WORDS * PANEL);
                            }
                            word += WORDS;
                        }
                        while word < tile.len {
                            let mut x = [flip; M];
                            for m in 0..M {
                                let words = vld1q_dup_u32(rows[m].add(word).cast());
                                let words = vreinterpretq_u8_u32(words);
                                x[m] = if $flips { veorq_u8(words, flip) } else { words };
                            }
                            for n in 0..N {
                                for v in 0..V {
                                    let w = vld1q_s8(weights[n].add(4 * v).cast());
                                    for m in 0..M {
                                        asm!($of_vectors, inout(vreg) sums[m][n][v], in(vreg) x[m], in(vreg) w,
                                            options(pure, nomem, nostack, preserves_flags));
                                    }
                                }
                            }
                            for n in 0..N {
                                weights[n] = weights[n].add(PANEL);
                            }
                            word += 1;
                        }
                    }
                    for m in 0..M {
                        for n in 0..N {
                            let panel = panel + n;
                            let Some(bytes) = bytes.get_mut(m * tile.panels + panel) else { return };
                            for (at, pair) in sums[m][n].as_chunks::<2>().0.iter().enumerate() {
                                store(*pair, finish, [panel, first + 2 * at], bytes);
                            }
                        }
                    }
                }
            }
        }
    };
}

dots!(
    signed,
    "neon,dotprod",
    "FEAT_DotProd",
    "sdot {0:v}.4s, {1:v}.16b, {2:v}.4b",
    "sdot {0:v}.4s, {1:v}.16b, {2:v}.16b",
    true
);
dots!(
    mixed,
    "neon,i8mm",
    "FEAT_I8MM",
    "sudot {0:v}.4s, {1:v}.16b, {2:v}.4b",
    "usdot {0:v}.4s, {1:v}.16b, {2:v}.16b",
    false
);
